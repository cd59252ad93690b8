#!/usr/bin/env python3
"""mutate.py: do the tests of a room find a fault in it?

    tests/mutate.py [--seed N] [--count N] [--jobs N] [--keep FOLDER] [--list] [--tests PROGRAM,..] SOURCE...

Plants COUNT faults in the sources (files, or folders for all their .c, .h and .cu), one at a time, in a copy of the tree: another operator,
constant, index or condition, a statement dropped. Each time the copy is built by make and the tests of that room alone are run (TESTS below,
or --tests). Prints each survivor with its place and change, and the share that was found. A fault that does not compile is not counted: another is
drawn. A fault that makes no difference can be listed in tests/mutate_equal.txt with its reason; it is not drawn. The same seed draws
the same faults. Without --keep the copy lies in a temporary folder and is removed.
"""
import argparse
import filecmp
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Room -> the tests that hold it, quick ones first; the first row that a source begins with. Programs that are not in the tree are passed over.
TESTS = [
    ("cli/base/options", "test_options"),
    ("cli/base/json_stream", "test_json_stream test_dataset corpus_dataset"),
    ("cli/base/json", "test_json_values"),
    ("cli/base/", "test_@ test_report_text"),
    ("cli/tile/image", "test_command_tile test_dataset"),
    ("cli/tile/", "test_texts test_command_tile test_families"),
    ("cli/score/", "test_texts test_score_rules test_score"),
    ("cli/trace/", "test_texts test_profile test_trace"),
    ("cli/request/provenance", "test_provenance test_schema test_command_run"),
    ("cli/request/record", "test_record test_result_write test_schema"),
    ("cli/request/", "test_@ test_command_run test_clock test_result_write test_command_sweep test_profile test_schema"),
    ("cli/dataset/dataset", "test_dataset corpus_dataset"),
    ("cli/dataset/plan", "test_plan test_forecast test_dataset test_command_sweep"),
    ("cli/dataset/", "test_forecast test_clock test_dataset test_command_sweep"),
    ("cli/results/", "test_kept test_plan test_journal test_merge test_report test_best test_compare"),
    ("cli/sweep/journal", "test_kept test_journal test_journal_hostile test_merge test_result_write test_command_sweep test_sweep"),
    ("cli/sweep/ranks", "test_ranks test_merge test_sweep"),
    ("cli/sweep/result_write", "test_kept test_merge test_result_write test_command_sweep test_schema test_sweep"),
    ("cli/sweep/profile", "test_clock test_profile"),
    ("cli/sweep/", "test_clock test_merge test_result_write test_sweep"),
    ("cli/page/report_page", "test_texts test_report_page"),
    ("cli/page/page", "test_texts test_report_page"),
    ("cli/page/plot", "test_texts test_report_page"),
    ("cli/report/estimator", "test_texts test_estimator"),
    ("cli/report/measurements", "test_measurements test_estimator"),
    ("cli/report/", "test_texts test_report_text test_report test_best test_compare test_report_page"),
    ("cli/commands/command_best", "test_texts test_best"),
    ("cli/commands/command_compare", "test_texts test_compare"),
    ("cli/commands/command_report", "test_texts test_report_text test_report"),
    ("cli/commands/command_fit", "test_texts test_estimator"),
    ("cli/commands/command_predict", "test_texts test_estimator"),
    ("cli/commands/command_trace", "test_texts test_profile"),
    ("cli/commands/command_sweep", "test_clock test_forecast test_result_write test_sweep"),
    ("cli/commands/command_merge", "test_merge test_result_write test_sweep"),
    ("cli/commands/command_convert", "test_command_convert test_convert"),
    ("cli/commands/command_tile", "test_texts test_command_tile"),
    ("cli/commands/command_score", "test_texts test_score_rules test_score"),
    ("cli/commands/command_rescore", "test_texts test_score_rules test_score"),
    ("cli/commands/command_run", "test_clock test_command_run"),
    ("cli/commands/", "test_@ test_texts test_command_run test_command_tokenize test_command_info test_command_selftest"),
    ("cli.c", "test_options"),
    ("parts/vlmprof_checkpoint", "test_checkpoint"),
    ("parts/vlmprof_image", "test_image"),
    ("parts/vlmprof_engine", "test_engine"),
    ("parts/engine/", "test_engine test_convert test_counts"),
    ("parts/vlmprof_", "test_@"),  # of the same name
    ("vlmprof_kernels.cu", "test_kernels test_gemm test_engine test_counts"),
    ("vlmprof.h", "test_result test_tiler test_sampler test_timer test_json"),
]
# tests that run more than $PROGRAM
NEEDED = {"test_clock": ["build/tests/vlmprof-clock"], "test_sweep": ["build/emulated/vlmprof", "build/tests/vlmprof-hooks"],
          "test_command_selftest": ["build/emulated/vlmprof"]}
OPERATORS = [("<=", "<"), (">=", ">"), ("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&"), (" < ", " <= "), (" > ", " >= "), (" + ", " - "),
             (" - ", " + "), (" * ", " / "), (" / ", " * "), ("+= ", "-= "), ("++", "--")]
STATEMENT = re.compile(r"^(\s+)(?!return\b|break\b|goto\b|case\b|default\b|else\b|\w*free\(|memset\(|static\b|const\b|(?:[A-Za-z_]\w*[ *]+)+\w+(?:\[[^\]]*\])?\s*(?:=|;|,))"
                       r"[A-Za-z_*(].*;\s*(?:/\*.*\*/)?\s*$")


def code_spans(text):
    """(begin, end) of what is neither comment, text, character nor directive."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
    at, spans = 0, []
    for match in pattern.finditer(text):
        spans.append((at, match.start()))
        at = match.end()
    spans.append((at, len(text)))
    return spans


def faults_of(path, text):
    """All faults of a file: (path, begin, end, replacement, kind)."""
    found = []
    inside = bytearray(len(text))
    for begin, end in code_spans(text):
        for i in range(begin, end):
            inside[i] = 1
    # inside function bodies only: between a brace that ends a line of column 0 and one in column 0
    body, depth, at = bytearray(len(text)), 0, 0
    for line in text.splitlines(keepends=True):
        if line.startswith("}"):
            depth = 0
        if depth:
            body[at:at + len(line)] = b"\1" * len(line)
        elif line[:1].isalpha() and line.rstrip().endswith("{") and "(" in line and "=" not in line.split("(")[0]:
            depth = 1
        elif line[:1] in " \t" and line.rstrip().endswith("{") and not depth and ")" in line:
            depth = 1
        elif line[:1].isalpha() and "{" in line and line.rstrip().endswith("}") and "(" in line and not line.startswith(("enum", "typedef", "struct")):
            start = line.index("{")
            if "=" not in line[:start]:
                body[at + start:at + len(line)] = b"\1" * (len(line) - start)
        at += len(line)

    def add(begin, end, new, kind):
        if all(inside[begin:end]) and all(body[begin:end]):
            found.append((path, begin, end, new, kind))
    for old, new in OPERATORS:
        at = text.find(old)
        while at >= 0:
            around = text[max(0, at - 1):at + len(old) + 1]
            if not (old in ("<=", ">=") and ("<<" in around or ">>" in around)):
                add(at, at + len(old), new, "operator")
            at = text.find(old, at + len(old))
    for match in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.\]])", text):
        value = match.group()
        add(match.start(), match.end(), value + "5" if "." in value else "1" if value == "0" else "0" if value == "1" else str(int(value) + 1), "constant")
    for match in re.finditer(r"(?<=[\w)])\[([A-Za-z_]\w*)\]", text):
        add(match.start(), match.end(), "[0]", "index")
    for match in re.finditer(r"\bif \(", text):
        close, depth = match.end(), 1
        while close < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[close], 0)
            close += 1
        if match.end() < close:
            if inside[match.start()] and body[match.start()]:
                found.append((path, match.start(), close, "if (!(" + text[match.end():close] + ")", "condition"))
    at = 0
    for line in text.splitlines(keepends=True):
        if STATEMENT.match(line) and line.count("(") == line.count(")") and "{" not in line:
            begin = at + len(line) - len(line.lstrip())
            if inside[begin] and body[begin]:
                found.append((path, begin, at + len(line.rstrip()), ";", "statement"))
        at += len(line)
    return found


def shown(text, fault):
    path, begin, end, new, kind = fault
    number = text.count("\n", 0, begin) + 1
    start = text.rfind("\n", 0, begin) + 1
    stop = text.find("\n", end)
    old = " ".join(text[start:stop].split())
    changed = " ".join((text[start:begin] + new + text[end:stop]).split())
    return "%s:%d: %s: %s  ->  %s" % (path, number, kind, old, changed)


def equal_list():
    """lines `FILE: OLD LINE -> NEW LINE  # reason`, blanks squeezed"""
    path = os.path.join(ROOT, "tests", "mutate_equal.txt")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        lines = [line.split("  # ")[0] for line in file if line.strip() and not line.startswith("#")]
    return {" ".join(line.split()) for line in lines}


def without_place(line):
    path, _, kind, rest = line.split(":", 3)
    return " ".join((path + ": " + rest).split())


def tests_of(path, available):
    for prefix, names in TESTS:
        if path.startswith(prefix):
            name = re.sub(r"^vlmprof_|\.\w+$", "", os.path.basename(path))
            return [test for test in names.replace("@", name).split() if test in available]
    return []


def programs(tests, changed=""):
    """what make builds for these tests; where the file `changed` alone is another than before: what can be another"""
    built = ["build/tests/" + test for test in tests if not changed.startswith("cli/") or holds_rooms(test)]
    return ["./vlmprof"] + built + sorted({more for test in tests for more in NEEDED.get(test, [])})


def holds_rooms(test):
    """does the test link rooms of cli/, rather than run the program?"""
    path = os.path.join(ROOT, "tests", test + ".c")
    if not os.path.exists(path):
        return True
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return "support/room.h" in text or bool(re.search(r'include "(?!support/|vlmprof\w*\.h)', text))


def run(command, folder, seconds, **more):
    """exit code; None: it took too long"""
    try:
        return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds,
                              **more).returncode
    except subprocess.TimeoutExpired:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds of a test program")
    parser.add_argument("--tests", help="these instead of the table's")
    parser.add_argument("--keep", help="folder of the copy, kept for the next call")
    parser.add_argument("--list", action="store_true", help="show what would be planted")
    options = parser.parse_args()

    paths = []
    for source in options.sources:
        full = os.path.join(ROOT, source)
        if os.path.isdir(full):
            for folder, _, names in os.walk(full):
                paths += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith((".c", ".h", ".cu"))]
        else:
            paths.append(os.path.relpath(full, ROOT))
    texts = {}
    for path in sorted(set(paths)):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            texts[path] = file.read()
    equals = equal_list()
    faults = [fault for path in sorted(texts) for fault in faults_of(path, texts[path])]
    # a kind is drawn first, then a fault of it: there are many more constants than dropped statements
    draw = random.Random(options.seed)
    by_kind = {}
    for fault in faults:
        by_kind.setdefault(fault[4], []).append(fault)
    order = []
    while by_kind:
        kind = draw.choice(sorted(by_kind))
        order.append(by_kind[kind].pop(draw.randrange(len(by_kind[kind]))))
        if not by_kind[kind]:
            del by_kind[kind]
    order = [fault for fault in order if without_place(shown(texts[fault[0]], fault)) not in equals]
    print("%d places for a fault in %d files, seed %d" % (len(order), len(texts), options.seed))
    if options.list:
        for fault in order[:options.count]:
            print(shown(texts[fault[0]], fault))
        return 0

    tree = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="vlmprof-mutate-")
    for name in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n"):
        old, new = os.path.join(ROOT, name), os.path.join(tree, name)
        if not name or not os.path.isfile(old):
            continue
        if os.path.exists(new) and filecmp.cmp(old, new, shallow=False):
            continue
        os.makedirs(os.path.dirname(new), exist_ok=True)
        shutil.copyfile(old, new)  # with the time of now: make must see it
        shutil.copymode(old, new)
    available = {os.path.splitext(name)[0] for name in os.listdir(os.path.join(ROOT, "tests")) if name.startswith("test_") and name.endswith(".c")}
    available |= {"corpus_" + name[5:-2] for name in os.listdir(os.path.join(ROOT, "tests", "fuzz")) if name.startswith("fuzz_")}
    if options.tests:
        available |= set(options.tests.split(","))
    make = ["make", "-j%d" % options.jobs, "NVCC=", "CFLAGS=-O1"]
    environment = dict(os.environ, B="build", PROGRAM="./vlmprof", OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="1000")
    found = survived = tried = 0
    try:
        chosen = {path: options.tests.split(",") if options.tests else tests_of(path, available) for path in texts}
        needed = sorted({test for path in texts for test in chosen[path]})
        begin = time.time()
        if run(make + programs(needed), tree, 3600) != 0:
            print("the tree as it is does not build: cd %s && %s" % (tree, " ".join(make + programs(needed))), file=sys.stderr)
            return 1
        for test in needed:
            if run(["build/tests/" + test], tree, options.timeout, env=environment) != 0:
                print("%s fails without a fault" % test, file=sys.stderr)
                return 1
        print("built and passed as it is: %s, %.0f s" % (" ".join(needed), time.time() - begin), flush=True)
        for fault in order:
            if found + survived >= options.count:
                break
            path, start, end, new, _ = fault
            text, names, place = texts[path], chosen[path], os.path.join(tree, path)
            if not names:
                print("no tests: %s" % path, flush=True)
                return 1
            tried += 1
            with open(place, "w", encoding="utf-8") as file:
                file.write(text[:start] + new + text[end:])
            # each test is built when its turn comes: most faults are found by the first one
            built, finder = run(make + ["./vlmprof"], tree, 1200), None
            for test in names:
                if built == 0:
                    built = run(make + programs([test], path), tree, 1200)
                if built == 0 and run(["build/tests/" + test], tree, options.timeout, env=environment) != 0:
                    finder = test
                if built != 0 or finder:
                    break
            with open(place, "w", encoding="utf-8") as file:
                file.write(text)
            if built != 0:
                continue
            found += finder is not None
            survived += finder is None
            print("%s %s" % ("found by %s:" % finder if finder else "SURVIVED", shown(text, fault)), flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(tree, ignore_errors=True)
    total = found + survived
    print("mutate: %d of %d faults found, %.0f %% (%d more did not compile)" % (found, total, 100.0 * found / total if total else 0, tried - total))
    return 0 if total and not survived else 1


if __name__ == "__main__":
    sys.exit(main())
