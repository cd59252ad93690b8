"""The GitHub action's script without GitHub: made result files, slower or equal; turns, the table, what GitHub is given, and a comment to a server here.
action.py FOLDER"""
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from checks import check, done, equal, skip

work = Path(sys.argv[1])
script = "packaging/action/compare.py"
# a sweep of 60 samples, times multiplied by the second argument
(work / "made.py").write_text('''
import json, os, random, sys
factor, folder = float(sys.argv[1]), os.environ["VLMPROF_OUTPUT"]
noise = random.Random(sys.argv[1])
open(sys.argv[2], "a").write(f"{factor} ")
rows = []
for i in range(60):
    vision, prefill, decode = (base * factor * noise.uniform(0.99, 1.01) for base in (20.0, 30.0, 40.0))
    total = vision + prefill + decode
    rows.append({"sample_id": i, "status": "ok", "actual_num_crops": 1, "actual_vision_tokens": 144, "input_text_tokens": 9, "total_sequence_length": 155,
                 "output_tokens": 8, "accuracy": float(i % 2), "T_vision_total": vision, "T_LLM_prefill": prefill, "T_LLM_decode": decode, "T_total": total,
                 "T_decode_per_token": decode / 7, "TTFT": vision + prefill, "unaccounted": 0.0, "closure": 1.0, "runs": {"T_total": [total]}})
head = {"schema": "vlmprof-sweep-2", "plan": "00", "status": "complete", "num_failed": 0, "num_missing": 0, "num_runs_per_sample": 1, "timing": "stage",
        "synthetic": False, "model": "made", "dataset_name": "made", "data": "made.jsonl", "data_hash": "77", "max_new_tokens": 8, "tier": "low",
        "target_vision_tokens": None, "top_k": 4, "num_active_blocks": 16, "num_total_blocks": 16, "active_block_indices": [0], "accuracy": 0.5,
        "accuracy_metric": "em", "num_throttled_runs": 0, "provenance": {"device": "cpu: test", "host": "h", "version": "0.1.0"},
        "config": {"seed": 42, "weights": "bf16"}, "per_sample_results": rows}
json.dump(head, open(folder + "/made_imgsizetier-low_crops1_topk4_blocks16.json", "w"))
''')


def act(change, **more):
    """(exit code, stdout, stderr, the order of turns)"""
    order = work / "order"
    order.unlink(missing_ok=True)
    made = f'"{sys.executable}" "{work}/made.py" %s "{order}"'
    variables = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    variables.update({"VLMPROF_BASELINE": made % "1.0", "VLMPROF_CHANGE": made % change if change else "", "VLMPROF_ROUNDS": "3", "VLMPROF_MARGIN": "2", "TMPDIR": str(work)}, **more)
    ended = subprocess.run([sys.executable, script], env=variables, capture_output=True, check=False)
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode(), order.read_text() if order.exists() else ""


code, text, said, order = act("1.1")
equal("a change 10 % slower ends with 1", code, 1)
check("the verdict is the heading", text.startswith("### vlmprof: SLOWER"), text[:80], said[:200])
equal("who is first takes turns", order.split(), ["1.0", "1.1", "1.1", "1.0", "1.0", "1.1"])
check("the table has T_total", "| made | T_total | " in text and ("| +10." in text or "| +9.9 %" in text) and text.count("| SLOWER |") > 3, text)
code, text, said, _ = act("")
equal("the same command is no change", (code, text.splitlines()[0]), (0, "### vlmprof: IDENTICAL"))
code, text, said, _ = act("0.9")
check("a faster one is no failure", code == 0 and "| FASTER |" in text, code, text)

# ---- what GitHub gets
comments = []


class Api(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        comments.append((self.path, self.headers["Authorization"], body))
        self.send_response(201)
        self.end_headers()


try:
    server = HTTPServer(("127.0.0.1", 0), Api)
except OSError as error:
    server = None
    skip("the action: its comment", str(error))
(work / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
if server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    github = {"GITHUB_OUTPUT": str(work / "output"), "GITHUB_STEP_SUMMARY": str(work / "summary"), "GITHUB_EVENT_PATH": str(work / "event.json"),
              "GITHUB_REPOSITORY": "some/one", "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}"}
    code, text, _, _ = act("1.1", VLMPROF_TOKEN="secret", **github)
    equal("the output is the verdict", (work / "output").read_text(), "verdict=SLOWER\n")
    equal("the summary is the report", (work / "summary").read_text(), text[:-1])
    equal("the comment is the report", [(path, key, body == text[:-1]) for path, key, body in comments],
          [("/repos/some/one/issues/7/comments", "Bearer secret", True)])
    act("1.1", **github)
    equal("without a token no comment", len(comments), 1)
    server.shutdown()

# ---- wrong input
for name, more, words in (("no command", {"VLMPROF_BASELINE": ""}, "VLMPROF_BASELINE is empty"), ("no rounds", {"VLMPROF_ROUNDS": "many"}, "VLMPROF_ROUNDS is 'many'"),
                          ("a command that fails", {"VLMPROF_BASELINE": "exit 3"}, "ended with 3"), ("no result files", {"VLMPROF_BASELINE": "true"}, "wrote no result file")):
    code, text, said, _ = act("1.0", **more)
    equal(f"{name}: exit 2, one line", (code, text, len(said.splitlines())), (2, "", 1))
    check(f"{name}: its reason", words in said, said)
done("action")
