"""A chat server for tests of the client: fixed_count.py TOKENS prints its URL, and answers each request with one word. An image is TOKENS tokens of
the prompt, a word of text one. It ends when its standard input does."""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, text, kind="application/json"):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(json.dumps({"object": "list", "data": [{"id": "fixed", "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = 0
        for message in request["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                tokens += len(part["text"].split()) if part["type"] == "text" else int(sys.argv[1])
        head = {"id": "1", "created": 1, "model": "fixed"}
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        if not request.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
            return self.send(json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}))
        chunks = [{"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        lines = [json.dumps({**head, "object": "chat.completion.chunk", **chunk}) for chunk in chunks] + ["[DONE]"]
        return self.send("".join(f"data: {line}\n\n" for line in lines), "text/event-stream")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
