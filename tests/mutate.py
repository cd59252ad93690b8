#!/usr/bin/env python3
"""mutate.py: do the tests of a room find a fault in it?

    tests/mutate.py [--seed N] [--count N] [--rooms ROOM,..] [--jobs N] [--keep FOLDER] [--list] [--tests PROGRAM,..] SOURCE...

Plants COUNT faults in the sources (files, or folders for all their .c, .h and .cu), one at a time, in a copy of the tree: another operator,
constant, index or condition, a statement dropped. Each room (a folder, or a file of the top one) gets its share of COUNT by its lines. Each time the copy
is built by make, without nvcc, and the tests of that source alone are run (tests/mutate_tests.txt, or --tests). Prints each survivor with its place and
change, and the share that was found in each room. A fault that does not compile is not counted: another one of its room is drawn. A fault that makes no
difference can be listed in tests/mutate_equal.txt with its reason; it is not drawn. The same seed draws the same faults from the same sources. Without
--keep the copy lies in a temporary folder and is removed.
"""
import argparse
import filecmp
import glob
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# what a test runs besides $PROGRAM, as its text names it, and what make builds for that
BESIDE = {"emulated/vlmprof": "build/emulated/vlmprof", "tests/vlmprof-hooks": "build/tests/vlmprof-hooks",
          "tests/vlmprof-clock": "build/tests/vlmprof-clock", "tests/vlmprof-virtual": "build/tests/vlmprof-virtual",
          "tests/fault_injector.so": "build/tests/fault_injector.so"}
OPERATORS = [("<=", "<"), (">=", ">"), ("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&"), (" < ", " <= "), (" > ", " >= "), (" + ", " - "),
             (" - ", " + "), (" * ", " / "), (" / ", " * "), ("+= ", "-= "), ("++", "--")]
DECLARED = re.compile(r"\s+(?:(?:static|const|struct|enum|unsigned) )*[A-Za-z_]\w*[ *]+\w+$")  # what stands before the length of an array
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
        if not DECLARED.match(text[text.rfind("\n", 0, match.start()) + 1:match.start()]):
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


def read_table():
    """tests/mutate_tests.txt: [(beginning of a path, its tests)]"""
    with open(os.path.join(ROOT, "tests", "mutate_tests.txt"), encoding="utf-8") as file:
        return [line.rstrip("\n").split(": ", 1) for line in file if line.strip() and not line.startswith("#")]


def source_of(test):
    """the file that a test of the table is made of"""
    name = test.split("/")[-1].replace("corpus_", "fuzz_")
    name += "" if name.endswith(".sh") else ".cpp" if name == "emulator" else ".c"
    found = glob.glob("tests/*/" + name, root_dir=ROOT)
    return found[0] if found else name


def program_of(test):
    """the program that make builds of it"""
    return source_of(test) if test.endswith(".sh") else "build/" + test if "/" in test else "build/tests/" + test


def tests_of(path, table):
    for prefix, names in table:
        if path.startswith(prefix):
            own = "test_" + re.sub(r"^vlmprof_|\.\w+$", "", os.path.basename(path))
            found = [] if names.startswith("(") else [own if test == "test_@" else test for test in names.split()]
            gone = [test for test in found if test != own and not os.path.exists(os.path.join(ROOT, source_of(test)))]
            if gone:
                sys.exit("tests/mutate_tests.txt: %s: there is no %s" % (prefix, gone[0]))
            return [test for i, test in enumerate(found) if test not in found[:i] and os.path.exists(os.path.join(ROOT, source_of(test)))]
    sys.exit("tests/mutate_tests.txt: no line for %s" % path)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def targets(test, changed=""):
    """what make builds for a test; where the file `changed` alone is another than before: what can be another"""
    text = text_of(source_of(test))
    for header in re.findall(r'include "(support/[^"]+)"', text):
        text += text_of("tests/" + header)
    built = ["build/tests/vlmprof-hooks"] + [BESIDE[name] for name in BESIDE if name in text]
    holds_rooms = "support/room.h" in text or re.search(r'include "(?!support/|vlmprof\w*\.h)', text)  # it links rooms of cli/, too
    if not test.endswith(".sh") and (not changed.startswith("cli") or holds_rooms or test.startswith("corpus_")):
        built.append(program_of(test))
    return built


def room_of(path):
    return os.path.dirname(path) or path


def run(command, folder, seconds, **more):
    """exit code; None: it took too long. With all that it started it is ended then."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               **more)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class Tree:
    """A copy of the tree in which faults are planted."""

    def __init__(self, folder, options):
        self.folder, self.options, self.seconds = folder, options, {}
        self.make = ["make", "-j%d" % options.jobs, "NVCC=", "CFLAGS=-O1"]
        self.environment = dict(os.environ, B="build", PROGRAM="build/tests/vlmprof-hooks", OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="1000", VLMPROF_TEST_SYSTEM="/dev/null",
                                TMPDIR=os.path.join(folder, "build"))
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
        for name in names:
            old, new = os.path.join(ROOT, name), os.path.join(folder, name)
            if not name or not os.path.isfile(old) or os.path.exists(new) and filecmp.cmp(old, new, shallow=False):
                continue
            os.makedirs(os.path.dirname(new), exist_ok=True)
            shutil.copyfile(old, new)  # with the time of now: make must see it
            shutil.copymode(old, new)
        os.makedirs(self.environment["TMPDIR"], exist_ok=True)

    def build(self, what):
        return run(self.make + what, self.folder, 3600) == 0

    def passes(self, test, seconds):
        def limit():  # a fault may ask for all memory there is
            resource.setrlimit(resource.RLIMIT_DATA, (12 << 30, 12 << 30))
        return run([program_of(test)], self.folder, seconds, env=self.environment, preexec_fn=limit) == 0

    def prepare(self, test):
        """builds and runs a test that was not yet run on the tree as it is"""
        if test in self.seconds:
            return
        built, begin = self.build(targets(test)), time.time()
        if not built or not self.passes(test, self.options.timeout):
            sys.exit("%s does not build, or fails without a fault" % test)
        self.seconds[test] = time.time() - begin

    def plant(self, fault, text, tests):
        """the test that finds the fault; "": none does; None: it does not compile"""
        path, start, end, new, _ = fault
        for test in tests:  # each is built when its turn comes: most faults are found by the first one
            self.prepare(test)
            self.write(path, text[:start] + new + text[end:])
            try:
                if not self.build(targets(test, path)):
                    return None
                if not self.passes(test, 10 * self.seconds[test] + 20):
                    return test
            finally:
                self.write(path, text)
        return ""

    def write(self, path, text):
        with open(os.path.join(self.folder, path), "w", encoding="utf-8") as file:
            file.write(text)


def draw_order(faults, draw):
    """A kind is drawn first, then a fault of it: there are many more constants than dropped statements."""
    by_kind, order = {}, []
    for fault in faults:
        by_kind.setdefault(fault[4], []).append(fault)
    while by_kind:
        kind = draw.choice(sorted(by_kind))
        order.append(by_kind[kind].pop(draw.randrange(len(by_kind[kind]))))
        if not by_kind[kind]:
            del by_kind[kind]
    return order


def shares(lines, count):
    """room -> its part of count, by its lines; the largest remainders get what is left"""
    total = sum(lines.values())
    exact = {room: count * lines[room] / total for room in lines}
    part = {room: int(exact[room]) for room in lines}
    for room in sorted(lines, key=lambda room: (part[room] - exact[room], room))[:count - sum(part.values())]:
        part[room] += 1
    return part


def sources_of(arguments):
    paths = set()
    for source in arguments:
        full = os.path.join(ROOT, source)
        if os.path.isdir(full):
            for folder, _, names in os.walk(full):
                paths |= {os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith((".c", ".h", ".cu"))}
        else:
            paths.add(os.path.relpath(full, ROOT))
    return sorted(paths)


def plant_room(tree, order, count, texts, chosen):
    """plants faults in this order until so many were judged: [how many were found, how many survived, how many did not compile]"""
    counts = [0, 0, 0]
    for fault in order:
        if counts[0] + counts[1] >= count:
            break
        finder = tree.plant(fault, texts[fault[0]], chosen[fault[0]])
        counts[2 if finder is None else 0 if finder else 1] += 1
        if finder is not None:
            print("%s %s" % ("found by %s:" % finder if finder else "SURVIVED", shown(texts[fault[0]], fault)), flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rooms", help="of the draw, plant the faults of these rooms alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds of a test program without a fault; with one it gets ten times what it took, and 20 s")
    parser.add_argument("--tests", help="these instead of the table's")
    parser.add_argument("--keep", help="folder of the copy, kept for the next call")
    parser.add_argument("--list", action="store_true", help="show what would be planted")
    options = parser.parse_args()

    table = read_table()
    texts = {path: text_of(path) for path in sources_of(options.sources)}
    chosen = {path: options.tests.split(",") if options.tests else tests_of(path, table) for path in texts}
    equals, orders, lines = equal_list(), {}, {}
    for path in sorted(texts):
        if chosen[path]:
            orders.setdefault(room_of(path), []).extend(faults_of(path, texts[path]))
            lines[room_of(path)] = lines.get(room_of(path), 0) + texts[path].count("\n")
        else:
            print("no tests, not drawn: %s" % path)
    draw = random.Random(options.seed)
    for room in sorted(orders):
        orders[room] = [fault for fault in draw_order(orders[room], draw) if without_place(shown(texts[fault[0]], fault)) not in equals]
    part = shares({room: lines[room] for room in lines if orders[room]}, options.count)
    if options.rooms:
        part = {room: part[room] for room in options.rooms.split(",")}
    print("%d places for a fault in %d files, seed %d" % (sum(map(len, orders.values())), len(texts), options.seed), flush=True)
    if options.list:
        for room in sorted(part):
            for fault in orders[room][:part[room]]:
                print(shown(texts[fault[0]], fault))
        return 0

    folder = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="vlmprof-mutate-")
    counts = {}
    try:
        tree = Tree(folder, options)
        for room in sorted(part):
            if part[room]:
                counts[room] = plant_room(tree, orders[room], part[room], texts, chosen)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for room in sorted(counts):
        print("%-24s %d/%d" % (room, counts[room][0], counts[room][0] + counts[room][1]))
    found, survived, failed = (sum(counts[room][i] for room in counts) for i in range(3))
    total = found + survived
    print("mutate: %d of %d faults found, %.0f %% (%d more did not compile)" % (found, total, 100.0 * found / total if total else 0, failed))
    return 0 if total and not survived else 1


if __name__ == "__main__":
    sys.exit(main())
