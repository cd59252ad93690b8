"""The package without torch: counts are those of `vlmprof tile`, commands return what the program prints, each wrong input has its sentence."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import vlmprof
from checks import check, done, equal, refused

program = os.environ["VLMPROF"]
work = Path(tempfile.mkdtemp(dir=sys.argv[1]))


def printed(*words):
    return subprocess.run([program, *words], capture_output=True, check=False).stdout.decode()


# ---- counts: every family and several sizes, next to the program's own
equal("version", printed("--version").split()[1], vlmprof.__version__)
check("66 families and more", len(vlmprof.families()) >= 66, len(vlmprof.families()))
equal("a setting", vlmprof.count_tokens("qwen3-vl", 1920, 1080, max_pixels=200704),
      json.loads(printed("tile", "1920x1080", "--family", "qwen3-vl", "--max_pixels", "200704", "--json"))[0]["total_tokens"])


class Picture:
    size = (640, 480)


class Array:
    shape = (480, 640, 3)


equal("tokens_of a pair, a picture, an array, a file", vlmprof.tokens_of([(640, 480), Picture(), Array(), "samples/cat.jpg"], "qwen3-vl"),
      [300, 300, 300, vlmprof.count_tokens("qwen3-vl", 451, 300)])
refused("an unknown family", ValueError, "unknown family", lambda: vlmprof.count_tokens("nope", 1, 1))
refused("an unknown setting names the nearest", ValueError, "the nearest is max_pixels", lambda: vlmprof.count_tokens("qwen3-vl", 64, 64, max_pixel=3))
refused("a side that is no whole number", ValueError, "1920.5 x 64: expected width", lambda: vlmprof.count_tokens("qwen3-vl", 1920.5, 64))
refused("a family that is no name", TypeError, "family: expected a name, not None", lambda: vlmprof.count_tokens(None, 64, 64))
refused("what is no image", TypeError, "expected a path", lambda: vlmprof.tokens_of([7], "qwen3-vl"))
(work / "text.png").write_text("no picture")
refused("a file that is no picture", Exception, "text.png", lambda: vlmprof.tokens_of([work / "text.png"], "qwen3-vl"))

# ---- commands
answer = vlmprof.run(["run", "samples/cat.jpg", "-p", "What?", "--synthetic", "tiny", "--max_new_tokens", 3])
equal("run returns the request", (answer["synthetic"], answer["output_tokens"]), (True, 3))
with contextlib.redirect_stderr(io.StringIO()) as said:
    wrote = vlmprof.sweep(work / "sweep", synthetic="tiny", data="samples/questions.jsonl", tier_list=["low", "medium"], top_k_list=[1], num_samples=3,
                          num_runs_per_sample=1, max_new_tokens=2)
check("what the program says is not hidden", "2 configurations, 6 points" in said.getvalue(), said.getvalue())
equal("sweep has both configurations", len(wrote["configurations"]), 2)
check("compare returns a dict", "verdict" in vlmprof.compare(work / "sweep", work / "sweep", quiet=True))
try:
    vlmprof.run(["info", "x"])
except vlmprof.CommandError as error:
    equal("a usage error has the program's words and exit code", ("unexpected" in str(error), error.code), (True, 2))

# ---- where the program is found: VLMPROF, the checkout, PATH; a clear error otherwise
named = os.environ.pop("VLMPROF")
in_checkout = Path(__file__).resolve().parents[2] / "vlmprof"
if in_checkout.exists():
    equal("the checkout's program", vlmprof.program(), str(in_checkout))
os.environ["VLMPROF"] = "nowhere/vlmprof"
refused("VLMPROF names no program", FileNotFoundError, "VLMPROF=nowhere/vlmprof: there is no such program", vlmprof.program)
os.environ["VLMPROF"] = named

# ---- another platform
(work / "vlmprof").write_bytes(b"\xcf\xfa\xed\xfe another system's program")
(work / "vlmprof").chmod(0o755)
os.environ["VLMPROF"] = str(work / "vlmprof")
refused("a program of another platform", OSError, "is for another system or processor", lambda: vlmprof.run(["info"]))
done("api")
