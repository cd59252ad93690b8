"""Serves a folder of tiny_gguf.py with llama.cpp's own HTTP server on 127.0.0.1 (package xllamacpp).

    python3 serve.py DIR [--port 0] [--seconds 600] [--min_tokens N] [--max_tokens N] [--slots 2] [--threads 1] [--api_key_file FILE]
                          [--drop_images]

Prints its address as one line when it answers requests. Ends when its input ends, or after --seconds.
--drop_images: the printed address is of a proxy that takes the images out of each request, as a broken gateway would."""
import argparse
import http.client
import http.server
import json
import os
import socket
import sys
import threading

import xllamacpp


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class ImageDropper(http.server.BaseHTTPRequestHandler):
    """Forwards requests to 127.0.0.1:behind_port without their images; answers are passed on as they come."""
    protocol_version = "HTTP/1.1"
    behind_port = 0

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.command == "POST":
            request = json.loads(body)
            for message in request.get("messages", []):
                if isinstance(message["content"], list):
                    message["content"] = [part for part in message["content"] if part["type"] != "image_url"]
            body = json.dumps(request).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.behind_port, timeout=600)
        headers = {name: self.headers[name] for name in ("Content-Type", "Authorization", "Accept") if name in self.headers}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    do_GET = do_POST = forward

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--min_tokens", type=int)
    parser.add_argument("--max_tokens", type=int)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)  # llama.cpp's threads spin for each other: slow where other programs run
    parser.add_argument("--api_key_file")
    parser.add_argument("--drop_images", action="store_true")
    a = parser.parse_args()
    p = xllamacpp.CommonParams()
    p.model.path = os.path.join(a.dir, "text.gguf")
    p.mmproj.path = os.path.join(a.dir, "mmproj.gguf")
    p.model_alias = {os.path.basename(os.path.normpath(a.dir))}
    p.port = a.port or free_port()
    p.n_ctx = 8192 * a.slots
    p.n_parallel = a.slots
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = a.threads
    p.warmup = False
    p.endpoint_metrics = True
    p.verbosity = -1
    if a.min_tokens:
        p.image_min_tokens = a.min_tokens
    if a.max_tokens:
        p.image_max_tokens = a.max_tokens
    if a.api_key_file:
        with open(a.api_key_file) as file:
            p.api_keys = [file.read().strip()]
    server = xllamacpp.Server(p)
    address = server.listening_address
    if a.drop_images:
        ImageDropper.behind_port = p.port
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ImageDropper)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{proxy.server_address[1]}"
    print(address, flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    ended.wait(a.seconds)
    os._exit(0)  # xllamacpp's own end waits for its threads


if __name__ == "__main__":
    main()
