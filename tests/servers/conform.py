"""The same GGUF file, prompt and image through vlmprof and llama.cpp's own server: which stage differs first.

    python3 conform.py MODEL.gguf [--mmproj FILE] [--image FILE...] [--prompt TEXT...] [--tokens 32] [--weights bf16]
                       [--program ./vlmprof] [--threads 1] [--as_shipped] [--csv] [--twin ONE OTHER...]

For each prompt, and each image with it, one line: which stage differs first (prompt: its ids; pixels: how many tokens the image costs;
features: with an image, the answer; tokens: without one, the answer), and how many tokens of the greedy answer are equal before that.
--twin: whether llama.cpp answers the same about two pictures, to the last of its log probabilities: what it does to one is then what the other shows.
There llama.cpp's two best tokens are so many nats apart: a small margin is rounding, a large one a fault.
Exit code 0: nothing differs; 1: something does. Needs xllamacpp."""
import argparse
import base64
import http.client
import json
import os
import subprocess
import sys
import urllib.parse

import xllamacpp

from serve import free_port

PROMPTS = [
    "def fibonacci(n):",
    "The capital of France is",
    "// Sorts an array of numbers in place\nfunction sort(",
    "Once upon a time there was a king who",
    "SELECT name, COUNT(*) FROM orders",
    "Das Wetter ist heute",
    "1, 2, 3, 5, 8, 13,",
    "#include <stdio.h>\nint main(void) {",
]


def start(a):
    p = xllamacpp.CommonParams()
    p.model.path = a.model
    if a.mmproj:
        p.mmproj.path = a.mmproj
    p.port = free_port()
    p.n_ctx = 4096
    p.n_parallel = 1
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = a.threads
    if not a.as_shipped:  # flash attention and its F16 cache round what vlmprof does not: up to 0.02 nats of a small model's logits
        p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    p.warmup = False
    p.verbosity = -1
    return xllamacpp.Server(p)


def post(server, path, body):
    address = urllib.parse.urlparse(server.listening_address)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    connection.request("POST" if body is not None else "GET", path, body and json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        sys.exit(f"{path}: {answer.status}: {text[:300]!r}")
    return json.loads(text)


def ours(a, prompt, image, *options):
    command = [a.program, "run", "--quiet", "--model", a.folder or a.model, "--raw_prompt", "--prompt", prompt, "--device", "cpu", "--weights", a.weights,
               "--max_new_tokens", str(a.tokens), "--cold", *options]
    if a.mmproj and not a.folder:
        command += ["--mmproj", a.mmproj]
    if image:
        command += [image]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def equal_beginning(one, other):
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def margin(step):
    """nats between the two best tokens of a step"""
    best = step["top_logprobs"]
    return best[0]["logprob"] - best[1]["logprob"] if len(best) > 1 else float("inf")


def ask(a, server, marker, prompt, image):
    text = prompt.replace(a.placeholder, a.around + marker + a.around) if image else prompt
    asked = {"prompt": text, "n_predict": a.tokens, "temperature": 0, "cache_prompt": False, "return_tokens": True, "n_probs": 2}
    if image:
        with open(image, "rb") as file:
            asked["prompt"] = {"prompt_string": text, "multimodal_data": [base64.b64encode(file.read()).decode()]}
    return post(server, "/completion", asked)


def show_twins(a, server, marker):
    for one, other in zip(a.twin[::2], a.twin[1::2]):
        answers = [ask(a, server, marker, a.prompt[0], image) for image in (one, other)]
        tops = [[[top["logprob"] for top in step["top_logprobs"]] for step in answer["completion_probabilities"]] for answer in answers]
        same = answers[0]["tokens"] == answers[1]["tokens"] and tops[0] == tops[1]
        print(f"twins    {'the same' if same else 'not the same'}: {os.path.basename(one)} {os.path.basename(other)}")


def compare(a, server, marker, prompt, image):
    row = {"prompt": prompt.replace("\n", "\\n"), "image": image or ""}
    theirs = ask(a, server, marker, prompt, image)
    mine = ours(a, prompt, image, "--json")
    if image:
        # llama.cpp counts what it evaluated: the image's tokens and the text's
        row["prompt_tokens"] = f"{mine['total_sequence_length']}/{theirs['tokens_evaluated']}"
        row["prompt_equal"] = mine["total_sequence_length"] == theirs["tokens_evaluated"]
    else:
        ids = post(server, "/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"]
        shown = ours(a, prompt, image, "--show_prompt")["ids"]
        row["prompt_tokens"] = f"{len(shown)}/{len(ids)}"
        row["prompt_equal"] = shown == ids
    got, want = mine["output_token_ids"], theirs["tokens"]
    if a.answers:
        with open(a.answers, "a", encoding="utf-8") as file:
            print(*want, file=file)
    if mine["ends_with_eos"]:
        got = [i for i in got if i != mine["output_token_ids"][-1]] if len(got) > len(want) else got
    same = equal_beginning(got, want)
    row["tokens"], row["equal"] = len(want), same
    row["first"] = ("pixels" if image else "prompt") if not row["prompt_equal"] else "none" if same == len(want) else "features" if image else "tokens"
    steps = theirs.get("completion_probabilities", [])
    row["margin"] = f"{margin(steps[same]):.3f}" if same < len(want) and same < len(steps) else ""
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--mmproj")
    parser.add_argument("--folder")  # what vlmprof runs instead of MODEL.gguf: the folder that it was made of
    parser.add_argument("--image", nargs="*", default=[])
    parser.add_argument("--prompt", nargs="*", default=PROMPTS)
    parser.add_argument("--placeholder", default="<image>")  # where a prompt has its image
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--weights", default="bf16")
    parser.add_argument("--program", default="./vlmprof")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--as_shipped", action="store_true")  # llama.cpp with its own defaults
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--around", default="")  # what llama.cpp's prompt needs around the image, for it puts less there than the processor
    parser.add_argument("--twin", nargs="*", default=[])
    parser.add_argument("--answers")  # a file that gets llama.cpp's tokens, a line for each image
    a = parser.parse_args()
    server = start(a)
    marker = post(server, "/props", None).get("media_marker", "<__media__>") if a.image else ""
    rows = [compare(a, server, marker, prompt, image) for prompt in a.prompt for image in a.image or [None]]
    keys = ("image", "prompt_tokens", "prompt_equal", "tokens", "equal", "margin", "first", "prompt")
    if a.csv:
        print(",".join(keys))
    for row in rows:
        print(",".join('"' + str(row[k]).replace('"', '""') + '"' if k in ("prompt", "image") else str(row[k]) for k in keys) if a.csv else
              f"{row['first']:8} ids {row['prompt_tokens']:>9} tokens {row['equal']:3} of {row['tokens']:3} {row['margin'] and 'margin ' + row['margin']:13} "
              f"{os.path.basename(row['image'])} {row['prompt'][:60]}")
    show_twins(a, server, marker)
    whole, equal = sum(row["first"] == "none" for row in rows), sum(row["equal"] for row in rows)
    print(f"{whole} of {len(rows)} answers equal; {equal} of {sum(row['tokens'] for row in rows)} tokens before the first difference; "
          f"prompts equal in {sum(row['prompt_equal'] for row in rows)}", flush=True)
    os._exit(whole != len(rows))  # xllamacpp's own end waits for its threads


if __name__ == "__main__":
    main()
