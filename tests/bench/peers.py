"""peers.py: this project next to PyTorch, the reference implementation, llama.cpp, Hugging Face's tokenizers, torchvision and PIL, on the CPU.

    make bench-peers PEERS_TORCH=~/venv/bin/python PEERS_REFERENCE=~/molmo_hf PEERS_LLAMA=~/llama/bin/python

A peer takes part where its variable names it; nothing is downloaded. Every program is loaded once; then all of them take turns, one round to warm
up and PEERS_ROUNDS that count. Printed: medians, each run, and how many times longer than this project a peer takes (a median of the ratios of
each round). Random weights in MolmoE-1B's shape, PEERS_BLOCKS of the tower's and of the language model's blocks, so that all fit in memory at once.

    PEERS_TORCH      a python with torch; torchvision, PIL and tokenizers where it has them
    PEERS_REFERENCE  a checkout of ChulanZhang/molmo_hf; PEERS_REFERENCE_PYTHON: a python with torch and transformers 4.45 (default PEERS_TORCH)
    PEERS_LLAMA      a python with xllamacpp, gguf and numpy; its OLMoE has the same widths, in bf16, Q8_0 and Q4_0, heads in bf16
    PEERS_WEIGHTS    weights of this project next to bf16, heads in bf16 (default "int8 int4")
    PEERS_ROUNDS (5), PEERS_BLOCKS (2), PEERS_TOWER (of the tower, if others), PEERS_VIEWS (3), PEERS_TOKENS (451), PEERS_THREADS (all),
    PEERS_TOKENIZER, PEERS_TEXT, PEERS_PHOTO
    PEERS_ONLY       rows to run: of "crops tokenizer model" (default all)
    PEERS_ALONE=1    models are opened one after another in each round, not all at once: full-size ones (PEERS_BLOCKS=16) do not fit together.
                     Each has PEERS_TURNS (1) turns then. PEERS_FOLDER, a folder, keeps the files of llama.cpp (27 GB for 16 blocks)
    PEERS_CALM       per cent, such as 4: a turn in which other programs used more of the cores than this is taken again, 8 times at most (Linux)
    PEERS_MODELS     which of the models take part, such as "vlmprof bf16,vlmprof int4,llama.cpp q4_0" (default all); the first one is compared with

Called with a worker's name, this file is the other side: it loads a peer, and answers each line with a line of JSON, in milliseconds."""
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NEW = 17
WIDTH, HEADS, EXPERTS, USED, HIDDEN, VOCABULARY = 2048, 16, 64, 8, 1024, 50304


# ---- workers: each runs in a peer's own python
def answer(ready, turn):
    """Says what is ready, then takes a turn for each line."""
    print(ready, flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn()), flush=True)


def ms_since(start):
    return (time.perf_counter() - start) * 1e3


def work_tokenizers(tokenizer_file, text_file):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    lines = open(text_file, encoding="utf-8", newline="").read().split("\n")

    def turn():
        start = time.perf_counter()
        tokens = 0
        for line in lines:
            tokens += len(tokenizer.encode(line, add_special_tokens=False).ids)
        one_by_one = ms_since(start)
        start = time.perf_counter()
        tokenizer.encode_batch(lines, add_special_tokens=False)
        return {"encode": one_by_one, "encode_batch": ms_since(start), "tokens": tokens}
    answer("tokenizers " + tokenizers.__version__, turn)


MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def sizes(photo, rows, columns):
    """What the crops are cut from, and the image in it: as vp_layout_compute has them, by Molmo's rule."""
    from PIL import Image
    image = Image.open(photo).convert("RGB")
    canvas = (columns * 224 + 112, rows * 224 + 112)
    scale = min(canvas[0] / image.width, canvas[1] / image.height)
    return image, canvas, (int(image.width * scale), int(image.height * scale)), \
        tuple(int(side * min(336 / image.width, 336 / image.height)) for side in image.size)


def work_torchvision(photo, rows, columns, threads):
    import torch
    import torchvision
    from torchvision.transforms.v2 import functional as F
    torch.set_num_threads(int(threads))
    rows, columns = int(rows), int(columns)
    image, canvas, large, small = sizes(photo, rows, columns)
    rgb = F.pil_to_tensor(image)

    def fitted(side, to):
        resized = F.resize(rgb.float().div(255.0), [side[1], side[0]], F.InterpolationMode.BILINEAR, antialias=True).clamp(0.0, 1.0)
        left, top = (to[0] - side[0]) // 2, (to[1] - side[1]) // 2
        resized = F.pad(resized, [left, top, to[0] - side[0] - left, to[1] - side[1] - top])
        return F.normalize(resized, MEAN, STD)

    def patches(view):
        return view.reshape(3, 24, 14, 24, 14).permute(1, 3, 2, 4, 0).reshape(576, 588)

    def turn():
        start = time.perf_counter()
        with torch.inference_mode():
            whole = fitted(large, canvas)
            views = [patches(fitted(small, (336, 336)))]
            views += [patches(whole[:, r * 224:r * 224 + 336, c * 224:c * 224 + 336]) for r in range(rows) for c in range(columns)]
            torch.stack(views)
        return {"crops": ms_since(start)}
    answer("torchvision " + torchvision.__version__, turn)


def work_pil(photo, rows, columns, threads):
    import numpy
    import PIL
    from PIL import Image
    rows, columns = int(rows), int(columns)
    image, canvas, large, small = sizes(photo, rows, columns)
    mean, std = numpy.array(MEAN, numpy.float32), numpy.array(STD, numpy.float32)

    def fitted(side, to):
        whole = numpy.zeros((to[1], to[0], 3), numpy.float32)
        left, top = (to[0] - side[0]) // 2, (to[1] - side[1]) // 2
        whole[top:top + side[1], left:left + side[0]] = numpy.asarray(image.resize(side, Image.Resampling.BILINEAR), numpy.float32) / 255.0
        return (whole - mean) / std

    def patches(view):
        return view.reshape(24, 14, 24, 14, 3).transpose(0, 2, 1, 3, 4).reshape(576, 588)

    def turn():
        start = time.perf_counter()
        whole = fitted(large, canvas)
        views = [patches(fitted(small, (336, 336)))]
        views += [patches(whole[r * 224:r * 224 + 336, c * 224:c * 224 + 336]) for r in range(rows) for c in range(columns)]
        numpy.stack(views)
        return {"crops": ms_since(start)}
    answer("PIL " + PIL.__version__, turn)


def reference_model(repository, tower, blocks):
    """The reference's own model file with random bf16 weights; its package's __init__ would import what only training needs."""
    import importlib
    import types
    import torch
    for name, path in (("molmo", "/molmo"), ("molmo.models", "/molmo/models")):
        module = types.ModuleType(name)
        module.__path__ = [repository + path]
        sys.modules[name] = module
    modeling = importlib.import_module("molmo.models.modeling_molmoe")
    settings = json.load(open(repository + "/configs/model/config.json"))
    settings.pop("auto_map", None)
    settings["n_layers"] = blocks
    settings["vision_backbone"]["image_num_layers"] = tower
    if tower < 8:
        settings["vit_layers"] = [-2, -1]
    config = importlib.import_module("molmo.models.config_molmoe").MolmoConfig(**settings)
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    model = modeling.MolmoForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    pool = (torch.randn(1 << 22) * 0.02).to(torch.bfloat16)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            flat = parameter.data.view(-1)
            if "norm" in name or "pre_ln" in name or "ln_f" in name:
                flat.fill_(0.0 if name.endswith("bias") else 1.0)
                continue
            for at in range(0, flat.numel(), 1 << 22):
                piece = flat[at:at + (1 << 22)]
                piece.copy_(pool[:piece.numel()])
    return model


def work_reference(repository, tower, blocks, views, tokens, threads):
    import torch
    import transformers
    torch.set_num_threads(int(threads))
    views, tokens = int(views), int(tokens)
    model = reference_model(repository, int(tower), int(blocks))
    images, masks = torch.randn(1, views, 576, 588).to(torch.bfloat16), torch.ones(1, views, 576)
    ids, seen = torch.randint(0, 50000, (1, tokens)), torch.ones(1, tokens + NEW, dtype=torch.long)

    def step(ids, positions, **more):
        out = model(input_ids=ids, attention_mask=seen, position_ids=positions, use_cache=True, last_logits_only=True, **more)
        token = out.logits[:, -1].float().argmax(-1)
        int(token)
        return token.view(1, 1), out.past_key_values

    def turn():
        with torch.inference_mode():
            start = time.perf_counter()
            model.model.vision_backbone(images, masks)
            vision = ms_since(start)
            start = time.perf_counter()
            token, cache = step(ids, torch.arange(tokens).view(1, -1), append_last_valid_logits=torch.tensor([tokens - 1]))
            prefill = ms_since(start)
            start = time.perf_counter()
            for made in range(NEW - 1):
                token, cache = step(token, torch.tensor([[tokens + made]]), past_key_values=cache)
            return {"vision": vision, "prefill": prefill, "decode": ms_since(start) / (NEW - 1)}
    answer(f"torch {torch.__version__}, transformers {transformers.__version__}", turn)


def write_olmoe(path, blocks, kind):
    """A random OLMoE of MolmoE-1B's widths; embeddings and head bf16, norms and router f32."""
    import gguf
    import numpy
    types = gguf.GGMLQuantizationType
    inner = {"bf16": types.BF16, "q8_0": types.Q8_0, "q4_0": types.Q4_0}[kind]
    numbers = (numpy.random.default_rng(1).standard_normal((2048, WIDTH), dtype=numpy.float32) * numpy.float32(0.02))
    raw = {t: gguf.quants.quantize(numbers, t).view(numpy.uint8).reshape(-1) for t in {inner, types.BF16}}
    writer = gguf.GGUFWriter(path, "olmoe")
    writer.add_vocab_size(VOCABULARY); writer.add_context_length(4096); writer.add_embedding_length(WIDTH); writer.add_block_count(blocks)
    writer.add_feed_forward_length(HIDDEN); writer.add_head_count(HEADS); writer.add_head_count_kv(HEADS); writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5); writer.add_expert_count(EXPERTS); writer.add_expert_used_count(USED)
    writer.add_expert_feed_forward_length(HIDDEN)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "<s>", "</s>"] + [f"t{i}" for i in range(3, VOCABULARY)])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([2, 3, 3] + [1] * (VOCABULARY - 3))
    tensors = [("token_embd", (VOCABULARY, WIDTH), types.BF16), ("output", (VOCABULARY, WIDTH), types.BF16), ("output_norm", (WIDTH,), None)]
    for block in range(blocks):
        at = f"blk.{block}."
        tensors += [(at + name, (WIDTH,), None) for name in ("attn_norm", "attn_q_norm", "attn_k_norm", "ffn_norm")]
        tensors += [(at + name, (WIDTH, WIDTH), inner) for name in ("attn_q", "attn_k", "attn_v", "attn_output")]
        tensors += [(at + "ffn_gate_inp", (EXPERTS, WIDTH), types.F32), (at + "ffn_gate_exps", (EXPERTS, HIDDEN, WIDTH), inner),
                    (at + "ffn_up_exps", (EXPERTS, HIDDEN, WIDTH), inner), (at + "ffn_down_exps", (EXPERTS, WIDTH, HIDDEN), inner)]
    made = {}  # blocks share their numbers: a file of 13 GB takes no more memory than one block
    for name, shape, kind in tensors:
        count = int(numpy.prod(shape))
        if kind is None:
            writer.add_tensor(name + ".weight", numpy.ones(shape, numpy.float32))
        elif kind == types.F32:
            writer.add_tensor(name + ".weight", numbers.reshape(-1)[:count].reshape(shape))
        else:
            size, elements = gguf.GGML_QUANT_SIZES[kind][1], gguf.GGML_QUANT_SIZES[kind][0]
            if (shape, kind) not in made:
                made[shape, kind] = numpy.resize(raw[kind], (*shape[:-1], shape[-1] // elements * size))
            writer.add_tensor(name + ".weight", made[shape, kind], raw_dtype=kind)
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()


def work_llama(folder, kind, blocks, tokens, threads):
    import xllamacpp
    path, tokens, threads = os.path.join(folder, f"olmoe-{kind}-{blocks}.gguf"), int(tokens), int(threads)
    if not os.path.exists(path):
        write_olmoe(path + ".part", int(blocks), kind)
        os.rename(path + ".part", path)
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx = 1024; settings.n_batch = settings.n_ubatch = 512; settings.n_gpu_layers = 0; settings.warmup = True
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(settings)
    prompt = [(i * 379 + 7) % 50000 for i in range(tokens)]

    def turn():
        out = server.handle_completions({"prompt": prompt, "n_predict": NEW, "temperature": 0.0, "ignore_eos": True, "cache_prompt": False})
        times = (json.loads(out) if isinstance(out, (str, bytes)) else out)["timings"]
        return {"prefill": times["prompt_ms"], "decode": times["predicted_per_token_ms"], "tokens": times["prompt_n"]}
    answer(f"xllamacpp {xllamacpp.__version__}, {kind}", turn)


# ---- the turns
def cpu_s(process=None):
    """seconds of CPU that a process, or all of them, have used"""
    ticks = open(f"/proc/{process}/stat" if process else "/proc/stat").read()
    fields = ticks.rsplit(")", 1)[1].split()[11:13] if process else [v for i, v in enumerate(ticks.split("\n")[0].split()[1:9]) if i not in (3, 4)]
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")


class Peer:
    def __init__(self, name, command):
        self.name, self.turns, self.command = name, [], command

    def open(self):
        environment = dict(os.environ, TOKENIZERS_PARALLELISM="true", HF_HUB_OFFLINE="1")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.ready = self.line()
        return self

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"peers.py: {self.name} ended")
        return line.strip()

    def turn(self):
        most = float(os.environ.get("PEERS_CALM", "0")) / 100.0
        for _ in range(8 if most else 1):
            start, everyone, own = time.time(), cpu_s() if most else 0.0, cpu_s(self.process.pid) if most else 0.0
            times = self.one_turn()
            if not most or cpu_s() - everyone - (cpu_s(self.process.pid) - own) <= most * os.cpu_count() * (time.time() - start) + 0.02:
                return times
            time.sleep(1.0)
        print(f"  {self.name}: other programs used the cores in 8 turns; the last one counts")
        return times

    def one_turn(self):
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        line = self.line()
        while not line.startswith("{"):
            line = self.line()
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def take_turns(title, peers, rounds, rows, alone=False):
    """peers[0] is this project; rows: (key, peers' names or None for all); alone: each is open only for its turn of a round"""
    print(f"\n{title}", flush=True)
    each = int(os.environ.get("PEERS_TURNS", "1")) if alone else 1
    for number in range(0 if alone else -1, rounds):
        for peer in peers:
            if alone or number < 0:
                peer.open()
                print(f"  {peer.name}: {peer.ready}", flush=True)
            if alone:
                peer.turn()
            time.sleep(0.2)
            times = [peer.turn() for _ in range(each)]
            if number >= 0:
                peer.turns += times
            if alone:
                peer.close()
    for key in rows:
        for peer in peers:
            if key not in peer.turns[0]:
                continue
            values = [turn[key] for turn in peer.turns]
            own = "encode" if key == "encode_batch" else key
            ratio = statistics.median(value / first[own] for value, first in zip(values, peers[0].turns))
            print(f"  {key:13} {peer.name:22} {statistics.median(values):10.2f} ms  {ratio:6.2f} x  [{' '.join('%.2f' % value for value in values)}]")
    for peer in peers:
        if not alone:
            peer.close()
    sys.stdout.flush()


def main():
    get = os.environ.get
    rounds, blocks, views, tokens = (int(get("PEERS_" + name, value)) for name, value in (("ROUNDS", 5), ("BLOCKS", 2), ("VIEWS", 3), ("TOKENS", 451)))
    tower, threads, only = get("PEERS_TOWER", str(blocks)), get("PEERS_THREADS", str(os.cpu_count())), get("PEERS_ONLY", "crops tokenizer model").split()
    torch, llama, reference = get("PEERS_TORCH"), get("PEERS_LLAMA"), get("PEERS_REFERENCE")
    reference_python = get("PEERS_REFERENCE_PYTHON", torch)
    ours, me = os.path.join(HERE, "../../build/bench/bench_peers"), os.path.abspath(__file__)
    photo = get("PEERS_PHOTO", os.path.join(HERE, "../../samples/astronaut.jpg"))
    text = get("PEERS_TEXT", os.path.join(HERE, "../../vlmprof.h"))
    tokenizer = get("PEERS_TOKENIZER", os.path.join(HERE, "../golden/tokenizer/small-tokenizer.json"))
    os.environ["OMP_NUM_THREADS"] = threads
    commit = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False).stdout.strip()
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine()) \
        if os.path.exists("/proc/cpuinfo") else platform.machine()
    print(f"{time.strftime('%F')}, commit {commit}, {processor}, {threads} threads, {rounds} rounds in turns; ratios: a peer's time / this project's")

    def has(python, module):
        return python and not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode

    def left_out(what, why):
        print(f"  left out: {what} ({why})")
    if "crops" in only:
        first = Peer("vlmprof, 1 thread", [ours, "crops", photo])
        made_of, rows, columns = first.open().ready.split()[:3]
        first.close()
        peers = [first]
        for worker, module in (("torchvision", "torchvision"), ("pil", "PIL")):
            if not has(torch, module):
                left_out(worker, f"PEERS_TORCH has no {module}")
                continue
            for count in (["1", threads] if worker == "torchvision" and threads != "1" else ["1"]):
                peers.append(Peer(f"{worker}, {count} thread{'s' if count != '1' else ''}", [torch, me, worker, photo, rows, columns, count]))
        take_turns(f"a photograph, {os.path.basename(photo)}, decoded, to {made_of} views of normalised patches", peers, rounds, ["crops"])
    if "tokenizer" in only:
        peers = [Peer("vlmprof", [ours, "tokenizer", tokenizer, text])]
        if has(torch, "tokenizers"):
            peers.append(Peer("tokenizers", [torch, me, "tokenizers", tokenizer, text]))
        else:
            left_out("tokenizers", "PEERS_TORCH has none")
        take_turns(f"{os.path.basename(text)}, line by line, {os.path.getsize(text) / 1e6:.2f} MB, by {os.path.basename(tokenizer)}", peers, rounds,
                   ["encode", "encode_batch"])
        counts = {peer.name: peer.turns[-1]["tokens"] for peer in peers}
        print("  tokens: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    if "model" in only:
        with tempfile.TemporaryDirectory() as made:
            folder = get("PEERS_FOLDER", made)
            shape = [tower, str(blocks), str(views), str(tokens)]
            peers = [Peer("vlmprof bf16", [ours, "engine", *shape])]
            for weights in get("PEERS_WEIGHTS", "int8 int4").split():
                peers.append(Peer("vlmprof " + weights, [ours, "engine", *shape, weights]))
            if reference and has(reference_python, "torch, transformers, einops"):
                peers.append(Peer("reference bf16", [reference_python, me, "reference", reference, *shape, threads]))
            else:
                left_out("the reference", "PEERS_REFERENCE, or a python with torch, transformers and einops")
            if has(llama, "xllamacpp, gguf, numpy"):
                for kind in ("bf16", "q8_0", "q4_0"):
                    peers.append(Peer("llama.cpp " + kind, [llama, me, "llama", folder, kind, str(blocks), str(tokens), threads]))
            else:
                left_out("llama.cpp", "PEERS_LLAMA, a python with xllamacpp, gguf and numpy")
            wanted = get("PEERS_MODELS", "").split(",")
            peers = [peer for peer in peers if wanted == [""] or peer.name in wanted]
            take_turns(f"{tower} blocks of the tower, {views} views; {blocks} blocks of the language model, {tokens} tokens; a decode step", peers, rounds,
                       ["vision", "prefill", "decode"], bool(get("PEERS_ALONE")))


if __name__ == "__main__":
    workers = {"tokenizers": work_tokenizers, "torchvision": work_torchvision, "pil": work_pil, "reference": work_reference, "llama": work_llama}
    if len(sys.argv) > 1 and sys.argv[1] in workers:
        workers[sys.argv[1]](*sys.argv[2:])
    else:
        main()
