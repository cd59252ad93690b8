#!/usr/bin/env python3
"""write_numbers.py: measures the figures of guide numbers on this machine, and writes the page from its template.

    tests/bench/write_numbers.py [--only WORD] [--template FILE] [--page FILE]      (make numbers)
    tests/bench/write_numbers.py --check [--template FILE] [--page FILE]

A template is the page with {EXPRESSION:FORMAT} where a figure stands. A paragraph that begins with [WORD] is measured: its first line of text is the title,
which has no figure, and lines that begin in the first column say how.
  $ COMMAND        is run by bash in the repository's root, and shown below the text; DIR is a folder of this run
  % COMMAND        is run, too, and not shown
  = NAME..: REGEX  the groups of REGEX (multi-line), numbers or texts, in what the last command printed; its seconds and most_mb (memory) are set, too
  ? memory GB      needs so much free memory; ? file PATH: needs that file. Without it the paragraph says so and has no figures
Outside of these paragraphs {cpu}, {memory_gb}, {compiler}, {commit}, {date} and {load} say where and when. A command that fails, or prints something else
than its REGEX, ends this without a page. --only measures the paragraphs whose word has WORD in it and shows them on stdout. --check compares the page's
text with the template's, whatever the figures are.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIGURE = re.compile(r"\{([^{}:]+)(?::([^{}]+))?\}")
NOT_MEASURED = "    not measured: "


def paragraphs(text):
    """[(word or None, lines)], a paragraph each; blank lines lie between them"""
    found = []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        word = lines[0][1:-1] if re.fullmatch(r"\[\w+\]", lines[0]) else None
        found.append((word, lines[1:] if word else lines))
    return found


def parts(lines):
    """a measured paragraph: its text, its control lines (kind, rest)"""
    return [line for line in lines if line[:2] not in ("$ ", "% ", "= ", "? ")], [(line[0], line[2:]) for line in lines if line[:2] in ("$ ", "% ", "= ", "? ")]


def commands_of(control):
    return ["    " + rest.replace("./vlmprof", "vlmprof") for kind, rest in control if kind == "$"]


def lacking(control):
    """why this machine cannot measure it, or None"""
    for kind, rest in control:
        if kind != "?":
            continue
        what, value = rest.split(" ", 1)
        if what == "file" and not os.path.exists(os.path.join(ROOT, value)):
            return "there is no %s" % value
        if what == "memory":
            with open("/proc/meminfo", encoding="utf-8") as file:
                free = int(re.search(r"MemAvailable: +(\d+)", file.read()).group(1)) * 1024 / 1e9
            if free < float(value):
                return "it needs %s GB of free memory, %.1f GB were free" % (value, free)
    return None


def run(command, folder):
    """what a command printed, its seconds, and the most memory in MB that it or a program it started had"""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(["bash", "-o", "pipefail", "-c", re.sub(r"\bDIR\b", folder, command)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.PIPE, text=True, errors="replace")
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit("write_numbers.py: %s ended with %d\n%s" % (command, process.returncode, errors))
        out.seek(0)
        return out.read(), time.monotonic() - begin, usage.ru_maxrss * 1024 / 1e6


def number_or_text(text):
    try:
        return float(text)
    except ValueError:
        return text


def measure(control, folder):
    """the values of a paragraph"""
    values, printed = {}, ""
    for kind, rest in control:
        if kind in "$%":
            print("write_numbers.py: %s" % rest, file=sys.stderr)
            printed, values["seconds"], values["most_mb"] = run(rest, folder)
        elif kind == "=":
            names, pattern = rest.split(": ", 1)
            match = re.search(pattern, printed, re.M)
            if not match or len(match.groups()) != len(names.split()):
                sys.exit("write_numbers.py: \"%s\" is not in what the command printed, or has not the groups %s:\n%s" % (pattern, names, printed))
            values.update(zip(names.split(), map(number_or_text, match.groups())))
    return values


def filled(line, values):
    return FIGURE.sub(lambda match: format(eval(match.group(1), {"__builtins__": {}}, values), match.group(2) or ""), line)


def first_line(command):
    return subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")[0].strip()


def here():
    """where and when"""
    info = subprocess.run([os.environ.get("PROGRAM", "./vlmprof"), "info"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commit = first_line("git rev-parse --short HEAD") or "unknown"
    changed = first_line("git status --porcelain --untracked-files=no")
    return {"cpu": re.search(r"^cpu +(.*)$", info, re.M).group(1), "memory_gb": float(re.search(r"^memory +([\d.]+) GB", info, re.M).group(1)),
            "compiler": first_line("${CC:-cc} --version"), "commit": commit + (" with changes" if changed else ""),
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "load": os.getloadavg()[0]}


def write(template, only):
    """the page's text"""
    values, out = here(), []
    folder = tempfile.mkdtemp(prefix="vlmprof-numbers-")
    try:
        for word, lines in paragraphs(template):
            if word is None:
                out.append("\n".join(filled(line, values) for line in lines) if not only else None)
                continue
            if only and only not in word:
                continue
            text, control = parts(lines)
            if FIGURE.search(text[0]):
                sys.exit("write_numbers.py: [%s]: the title has a figure" % word)
            reason = lacking(control)
            if reason is None:
                found = measure(control, folder)
                text = [filled(line, found) for line in text]
            else:
                text = [text[0], NOT_MEASURED + reason]
            out.append("\n".join(text + commands_of(control)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n\n".join(block for block in out if block is not None) + "\n"


def pattern_of(template):
    """a regular expression of each page that this template can give"""
    def line_pattern(line):
        return re.sub("\0", r"[^\\n]+?", re.escape(FIGURE.sub("\0", line)).replace("\\\0", "\0"))
    blocks = []
    for word, lines in paragraphs(template):
        if word is None:
            blocks.append("\n".join(line_pattern(line) for line in lines))
            continue
        text, control = parts(lines)
        commands = "".join("\n" + re.escape(command) for command in commands_of(control))
        blocks.append("(?:%s|%s)%s" % ("\n".join(line_pattern(line) for line in text), re.escape(text[0] + "\n" + NOT_MEASURED) + r"[^\n]+", commands))
    return "\n\n".join(blocks) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", default=os.path.join(ROOT, "tests", "bench", "numbers.template"))
    parser.add_argument("--page", default=os.path.join(ROOT, "cli", "guides", "numbers.txt"))
    parser.add_argument("--only", metavar="WORD")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with open(options.template, encoding="utf-8") as file:
        template = file.read()
    if options.check:
        with open(options.page, encoding="utf-8") as file:
            page = file.read()
        if not re.fullmatch(pattern_of(template), page):
            sys.exit("write_numbers.py: %s is not made of %s: change the template, then `make numbers`" % (options.page, options.template))
        return
    text = write(template, options.only)
    if options.only:
        print(text, end="")
        return
    with open(options.page, "w", encoding="utf-8") as file:
        file.write(text)
    print("write_numbers.py: written: %s" % os.path.relpath(options.page, ROOT))


if __name__ == "__main__":
    main()
