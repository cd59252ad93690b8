"""vlmprof load, vLLM's client, guidellm and AIPerf in turns against bench_load serve, which stamps each request: how far is each client's TTFT from the server's?

    python3 load_clients.py VLMPROF BENCH_LOAD FOLDER [--streams 50] [--rounds 3] [--requests 8] [--client NAME=COMMAND..]

A closed loop of --streams requests at once, --requests of them for each stream, text alone; the server answers after 100 ms in 20 pieces, 50 ms apart.
NAME=COMMAND: where vllm, guidellm and aiperf are; one that is not named is left out. FOLDER keeps their results. Printed for each run: requests;
mean and P95 of the client's TTFT less the server's own; TPOT less the 50 ms of the plan; seconds of CPU. Without a network AIPerf needs
AIPERF_TOKENIZER, the name of a repository in HF_HOME, with HF_HUB_OFFLINE=1."""
import argparse
import json
import glob
import os
import resource
import shutil
import statistics
import subprocess
import time

TOKENS = 20


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def vlmprof(command, url, folder, streams, count):
    """(TTFT of each request in ms, TPOT mean)"""
    subprocess.run([*command, "load", "--endpoint", url, "--endpoint_model", "m", "--data", os.path.join(folder, "questions.jsonl"), "--output_dir",
        folder + "/out", "--concurrency",
                    str(streams), "--duration_s", str(1.05 * count), "--ramp_s", "0", "--cool_down_s", "0", "--max_new_tokens", str(TOKENS), "--quiet",
                        "--export", "vllm", folder + "/out.json"],
                   stdout=subprocess.DEVNULL, check=True)
    result = json.load(open(folder + "/out.json"))
    return [1e3 * t for t in result["ttfts"]], result["mean_tpot_ms"]


def vllm(command, url, folder, streams, count):
    subprocess.run([*command, "bench", "serve", "--backend", "openai-chat", "--base-url", url, "--endpoint", "/v1/chat/completions", "--model", "m",
        "--tokenizer", folder, "--dataset-name",
                    "random", "--random-input-len", "16", "--random-output-len", str(TOKENS), "--num-prompts", str(streams * count), "--max-concurrency",
                    str(streams), "--save-result",
                    "--save-detailed", "--result-dir", folder, "--result-filename", "out.json", "--disable-tqdm", "--ready-check-timeout-sec", "0"],
                    stdout=subprocess.DEVNULL, check=True)
    result = json.load(open(folder + "/out.json"))
    return [1e3 * t for t in result["ttfts"]], result["mean_tpot_ms"]


def guidellm(command, url, folder, streams, count):
    subprocess.run([*command, "run", "--backend", f"kind=openai_http,target={url},model=m,request_format=/v1/chat/completions,validate_backend=false", "--profile",
                    f"kind=concurrent,streams=[{streams}]", "--constraint", f"kind=max_requests,count={streams * count}", "--tokenizer",
                        f"kind=hf_auto,model={folder}", "--data",
                    f"kind=synthetic_text,prompt_tokens=16,output_tokens={TOKENS}", "--output", f"kind=json,path={folder}/out.json", "--disable-console"],
                        stdout=subprocess.DEVNULL, check=True)
    result = json.load(open(folder + "/out.json"))
    requests = result["benchmarks"][0]["requests"]["successful"]
    return [one["time_to_first_token_ms"] for one in requests], statistics.mean(one["inter_token_latency_ms"] for one in requests)


def aiperf(command, url, folder, streams, count):
    subprocess.run([*command, "profile", "--model", "m", "--url", url, "--endpoint-type", "chat", "--streaming", "--tokenizer",
        os.environ.get("AIPERF_TOKENIZER", "builtin"), "--concurrency", str(streams), "--request-count",
                    str(streams * count), "--isl", "16", "--osl", str(TOKENS), "--artifact-dir", folder + "/out", "--ui", "none", "--no-server-metrics",
                        "--no-gpu-telemetry"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    requests = [json.loads(line)["metrics"] for line in open(glob.glob(folder + "/out/**/profile_export.jsonl", recursive=True)[0])]
    return [one["time_to_first_token"]["value"] for one in requests], statistics.mean(one["inter_token_latency"]["value"] for one in requests)


CLIENTS = {"vlmprof": vlmprof, "vllm": vllm, "guidellm": guidellm, "aiperf": aiperf}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vlmprof")
    parser.add_argument("bench_load")
    parser.add_argument("folder", help="questions.jsonl of text alone, and tokenizer.json and tokenizer_config.json for vLLM's client and guidellm")
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--client", action="append", default=[])
    a = parser.parse_args()
    places = {"vlmprof": a.vlmprof} | dict(one.split("=", 1) for one in a.client)
    server = subprocess.Popen([a.bench_load, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    for number in range(a.rounds):
        for name, place in places.items():
            shutil.rmtree(a.folder + "/out", ignore_errors=True)
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
            try:
                ttft, tpot = CLIENTS[name]([place], url, a.folder, a.streams, a.requests)
            except (subprocess.CalledProcessError, OSError, KeyError, IndexError) as why:
                print(f"round {number + 1}  {name:9} failed: {why!r}"[:400], flush=True)
                continue
            finally:
                server.stdin.write("\n")
                server.stdin.flush()
                truth = json.loads(server.stdout.readline())
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"round {number + 1}  {name:9} {len(ttft):5} requests ({truth['requests']} at the server)  "
                  f"TTFT less the server's {truth['ttft_mean_ms']:.1f}: mean {statistics.mean(ttft) - truth['ttft_mean_ms']:8.2f} "
                  f"P95 {percentile(ttft, .95) - truth['ttft_p95_ms']:8.2f} ms  TPOT less 50: {tpot - 50:7.2f} ms  CPU {cpu:5.1f} s "
                  f"in {time.time() - start:.1f} s", flush=True)
    server.stdin.close()
    server.wait()


if __name__ == "__main__":
    main()
