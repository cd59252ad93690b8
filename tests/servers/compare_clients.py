"""Times the same requests with vlmprof and with a client of its own (Python's http.client), and prints how far apart they are.

    python3 compare_clients.py VLMPROF URL MODEL IMAGE [--turns 20] [--runs 5] [--max_tokens 32] [--body '{"cache_prompt": false}'] [--relay]

Both send the image's own bytes with one question, streamed, after a warm-up. In each turn both make --runs requests, who begins
changes from turn to turn. A turn gives a ratio of medians; printed is the median of these ratios, with its 95 % interval by order statistics.
--relay: vlmprof asks a relay in this program, which asks the server with http.client: both time the very same requests, so that a machine with
other work does not part them.
TTFT: to the first piece with text; ITL: mean gap between pieces; E2E: to the last piece."""
import argparse
import base64
import http.client
import http.server
import json
import math
import mimetypes
import statistics
import subprocess
import threading
import time
import urllib.parse

QUESTION = "What is this?"


class Client:
    def __init__(self, url, body):
        self.place = urllib.parse.urlsplit(url)
        self.body = body
        self.connection = None

    def ask(self, forward=lambda piece: None):
        """One request: TTFT, ITL, E2E in ms; the answer; its usage. forward: is handed what arrives."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.place.hostname, self.place.port)
        start = time.perf_counter()
        try:
            self.connection.request("POST", "/v1/chat/completions", self.body, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):  # llama.cpp closes after a stream: as vlmprof, connect anew
            self.connection.close()
            self.connection = None
            return self.ask(forward)
        if response.status != 200:
            raise SystemExit(f"HTTP {response.status}: {response.read()[:300]}")
        stamps, answer, usage, rest = [], "", None, b""
        while piece := response.read1(65536):
            now = time.perf_counter()
            forward(piece)
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                usage = event.get("usage") or usage
                text = event["choices"][0]["delta"].get("content") if event["choices"] else None
                if text:
                    stamps.append(now)
                    answer += text
        gaps = [b - a for a, b in zip(stamps, stamps[1:])]
        return {"TTFT": (stamps[0] - start) * 1e3, "ITL": statistics.mean(gaps) * 1e3, "E2E": (stamps[-1] - start) * 1e3, "answer": answer,
                "usage": usage}


class Relay(http.server.BaseHTTPRequestHandler):
    """Passes requests on with Client, and answers as they come."""
    protocol_version = "HTTP/1.1"
    url = ""
    seen = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.seen.append(Client(self.url, body).ask(self.wfile.write))
        self.close_connection = True

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


def by_client(client, runs):
    client.ask()
    return middle([client.ask() for _ in range(runs)])


def middle(results):
    return {key: statistics.median(r[key] for r in results) for key in ("TTFT", "ITL", "E2E")} | {
        "answer": results[0]["answer"], "prompt_tokens": results[0]["usage"]["prompt_tokens"]}


def by_vlmprof(a, url):
    command = [a.vlmprof, "run", a.image, "-p", QUESTION, "--endpoint", url, "--endpoint_model", a.model, "--num_runs", str(a.runs),
               "--max_new_tokens", str(a.max_tokens), "--json", "--quiet"]
    for key, value in json.loads(a.body).items():
        command += ["--request_knob", f"{key}={json.dumps(value)}"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    gap = statistics.median(statistics.mean(result["itl"][i:i + result["pieces"] - 1])
                            for i in range(0, len(result["itl"]), result["pieces"] - 1))
    return {"TTFT": result["medians"]["TTFT"]["median"], "ITL": gap, "E2E": result["medians"]["T_total"]["median"], "answer": result["answer"],
            "prompt_tokens": result["usage"]["prompt_tokens"]}


def interval(values):
    """Order statistics around the median that cover it at 95 %: their ranks by the binomial distribution."""
    values, n, k, outside = sorted(values), len(values), 0, 0.0
    while outside + math.comb(n, k) * 0.5 ** n <= 0.025:
        outside += math.comb(n, k) * 0.5 ** n
        k += 1
    return values[max(k - 1, 0)], values[n - max(k, 1)]


def main():
    parser = argparse.ArgumentParser()
    for name in ("vlmprof", "url", "model", "image"):
        parser.add_argument(name)
    for name, default in (("turns", 20), ("runs", 5), ("max_tokens", 32)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--body", default='{"cache_prompt": false}')
    parser.add_argument("--relay", action="store_true")
    a = parser.parse_args()
    with open(a.image, "rb") as file:
        picture = f"data:{mimetypes.guess_type(a.image)[0]};base64,{base64.b64encode(file.read()).decode()}"
    body = {"model": a.model, "temperature": 0, "max_tokens": a.max_tokens, "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": QUESTION}]}]}
    client = Client(a.url, json.dumps(body | json.loads(a.body)).encode())
    Relay.url = a.url
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    relay = f"http://127.0.0.1:{server.server_address[1]}"
    ratios = {"TTFT": [], "ITL": [], "E2E": []}
    for turn in range(a.turns):
        if turn % 2 and not a.relay:
            ours, other = by_vlmprof(a, a.url), by_client(client, a.runs)
        elif a.relay:
            Relay.seen = []
            ours, other = by_vlmprof(a, relay), middle(Relay.seen[1:])  # without the warm-up
        else:
            other, ours = by_client(client, a.runs), by_vlmprof(a, a.url)
        if (ours["answer"], ours["prompt_tokens"]) != (other["answer"], other["prompt_tokens"]):
            raise SystemExit(f"the requests are not the same: {ours} and {other}")
        print(f"turn {turn + 1:3}:", *(f"{key} {ours[key]:.3f} / {other[key]:.3f} ms" for key in ratios), sep="  ", flush=True)
        for key in ratios:
            ratios[key].append(ours[key] / other[key])
    for key, values in ratios.items():
        low, high = interval(values)
        print(f"{key}: vlmprof / http.client {statistics.median(values):.4f} [{low:.4f}, {high:.4f}], {len(values)} turns of {a.runs} requests")


if __name__ == "__main__":
    main()
