"""A vision chat server without a model, for trying vlmprof's commands: python3 samples/stub_server.py

It answers any model name on http://127.0.0.1:8000 with made-up words. One worker takes 60 ms and 0.2 ms per image token,
then 3 ms per token, so requests queue. It counts image tokens as Qwen2-VL does with --max_pixels.
"""
import argparse
import base64
import json
import math
import os
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def image_size(data):
    """Returns the width and height of a PNG or JPEG file."""
    if data[:4] == b"\x89PNG":
        return struct.unpack(">II", data[16:24])
    at = 2
    while not 0xC0 <= data[at + 1] <= 0xC3:
        at += 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
    height, width = struct.unpack(">HH", data[at + 5:at + 9])
    return width, height


def image_tokens(width, height, max_pixels, min_pixels=3136):
    rows, columns = max(28, round(height / 28) * 28), max(28, round(width / 28) * 28)
    if rows * columns > max_pixels:
        scale = math.sqrt(height * width / max_pixels)
        rows, columns = (max(28, math.floor(side / scale / 28) * 28) for side in (height, width))
    elif rows * columns < min_pixels:
        scale = math.sqrt(min_pixels / (height * width))
        rows, columns = (math.ceil(side * scale / 28) * 28 for side in (height, width))
    return rows // 28 * (columns // 28)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    worker = threading.Lock()
    max_pixels, token_s, wrong_below, answers = 0, 0.0, 0, {}

    def log_message(self, *_):
        pass

    def reply(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]})
        else:
            self.reply(404, {"error": {"message": "not found"}})

    def chunk(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text.encode()), text.encode()))

    def event(self, choices, **more):
        self.chunk("data: " + json.dumps({"object": "chat.completion.chunk", "model": "stub", "choices": choices, **more}) + "\n\n")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.left -= 1
        if Handler.left == -1:
            os._exit(1)
        text, image, asked = 8, 0, ""
        for message in request["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "text":
                    text += len(part["text"].split())
                    asked += part["text"]
                else:
                    data = base64.b64decode(part["image_url"]["url"].split(",", 1)[1])
                    image += image_tokens(*image_size(data), self.max_pixels)
        tokens = request.get("max_tokens") or request.get("max_completion_tokens") or 16
        usage = {"prompt_tokens": text + image, "completion_tokens": tokens, "total_tokens": text + image + tokens}
        word = " word" if image >= self.wrong_below else " other"
        words = [word] * tokens
        for question, answer in self.answers.items():
            if question in asked and image >= self.wrong_below:
                words = [" "] + [""] * (tokens - 2) + [answer] if tokens > 1 else [answer]
        with self.worker:
            time.sleep(0.06 + self.token_s * image)
            if not request.get("stream"):
                time.sleep(0.003 * tokens)
                message = {"role": "assistant", "content": "".join(words)}
                self.reply(200, {"object": "chat.completion", "model": "stub", "usage": usage,
                                 "choices": [{"index": 0, "message": message, "finish_reason": "length"}]})
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for word in words:
                self.event([{"index": 0, "delta": {"content": word}, "finish_reason": None}])
                time.sleep(0.003)
        self.event([{"index": 0, "delta": {}, "finish_reason": "length"}])
        self.event([], usage=usage)
        self.chunk("data: [DONE]\n\n")
        self.chunk("")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=8000, help="0: a free one (default: 8000)")
    options.add_argument("--max_pixels", type=int, default=200704, help="most pixels of an image (default: 200704)")
    options.add_argument("--token_ms", type=float, default=0.2, help="time of an image token (default: 0.2)")
    options.add_argument("--wrong_below", type=int, default=0, help="answer wrongly below so many image tokens (see --answers)")
    options.add_argument("--answers", metavar="FILE", help="answer the questions of a data set rightly, such as samples/questions.jsonl")
    options.add_argument("--die_after", type=int, default=1 << 40, help="end without an answer after so many requests (default: never)")
    given = options.parse_args()
    Handler.left = given.die_after
    Handler.max_pixels, Handler.token_s, Handler.wrong_below = given.max_pixels, given.token_ms / 1000, given.wrong_below
    if given.answers:
        with open(given.answers, encoding="utf-8") as lines:
            Handler.answers = {line["question"]: line["answers"][0] for line in map(json.loads, lines)}
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 256
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
