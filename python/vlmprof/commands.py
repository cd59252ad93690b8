"""Calls the program with --json."""
from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Union

Words = Sequence[Union[str, int, float, "os.PathLike[str]"]]


class CommandError(RuntimeError):
    """The program failed; the text is its error message.

    code: 1 the work failed, 2 usage, 3 input file, 4 memory or device, 5 output"""

    def __init__(self, code: int, text: str):
        super().__init__(text.strip() or f"vlmprof ended with {code}")
        self.code = code


def _candidates() -> Iterator[Path]:
    for folder in (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")):
        yield Path(folder) / "vlmprof"
    package = Path(__file__).resolve().parent
    yield package.parent / "bin" / "vlmprof"  # pip install --target
    yield package.parent.parent / "vlmprof"  # python/ of a checkout
    noted = package / "checkout"  # pip install ./python: the checkout that it came from
    if noted.is_file():
        yield Path(noted.read_text(encoding="utf-8").strip()) / "vlmprof"


def program() -> str:
    """The program's path: from VLMPROF, otherwise this package's wheel, the checkout, or the first one in PATH."""
    named = os.environ.get("VLMPROF")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise FileNotFoundError(f"VLMPROF={named}: there is no such program")
        return named
    found = next((str(path) for path in _candidates() if path.is_file() and os.access(path, os.X_OK)), None) or shutil.which("vlmprof")
    if not found:
        raise FileNotFoundError("the program vlmprof was not found: set VLMPROF=/path/of/vlmprof, put it in PATH, or "
                                "build it in the checkout that this package came from (make); `make wheel` includes it")
    return found


def _words(options: Dict[str, Any]) -> List[str]:
    words: List[str] = []
    for key, value in options.items():
        if value is None or value is False:
            continue
        words.append(f"--{key}")
        if value is not True:
            words += [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
    return words


def _printed(args: Words, ok: Sequence[int] = (0,)) -> str:
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in args]
    path = program()
    try:
        done = subprocess.run([path, *words], capture_output=True, check=False)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            raise OSError(f"{path} is for another system or processor; vlmprof has binaries for Linux with glibc 2.28 or later on x86_64 and aarch64, and this is "
                                f"{sys.platform} on {platform.machine()}. Build it from source: make, then set VLMPROF") from None
        raise
    if done.returncode not in ok:
        raise CommandError(done.returncode, done.stderr.decode(errors="replace"))
    sys.stderr.write(done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


def version() -> str:
    """The program's version, "0.2.0"."""
    return _printed(["--version"]).split()[1]


def run(args: Words, ok: Sequence[int] = (0,), lines: bool = False) -> Any:
    """Runs `vlmprof ARGS --json` and returns what it printed: run(["tile", "1920x1080"]), run(["run", "cat.jpg", "-p", "What?", "--synthetic", "tiny"]).

    ok: exit codes that are not errors; for compare and audit, 1 is a verdict. Other codes raise CommandError.
    lines: the command prints one object per line. The program's stderr, such as warnings, goes to sys.stderr."""
    text = _printed([*args, *(["--json"] if "--json" not in args else [])], ok)
    return [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)


def sweep(output_dir: Union[str, os.PathLike[str]], **options: Any) -> Any:
    """`vlmprof sweep` with its options: sweep("results", synthetic="tiny", data="questions.jsonl", tier_list=["low", "high"], num_samples=5)."""
    return run(["sweep", "--output_dir", output_dir, *_words(options)])


def compare(baseline: Union[str, os.PathLike[str]], change: Union[str, os.PathLike[str]], **options: Any) -> Any:
    """`vlmprof compare BASELINE CHANGE` for two folders of result files. A verdict SLOWER is a result, not an error."""
    return run(["compare", baseline, change, *_words(options)], ok=(0, 1))
