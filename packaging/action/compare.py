#!/usr/bin/env python3
"""compare.py - measures a baseline and a change in turns, compares them round by round and reports in Markdown.

Environment: VLMPROF_BASELINE, VLMPROF_CHANGE (empty: the same command): shell commands that write result files into the folder $VLMPROF_OUTPUT;
VLMPROF_ROUNDS, VLMPROF_MARGIN [%]; VLMPROF_TOKEN: for the comment. On GitHub also GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, GITHUB_EVENT_PATH,
GITHUB_REPOSITORY and GITHUB_API_URL; without them the report goes to stdout alone.
Exit: 0; 1 if the change is slower or less accurate in more than half of the rounds; 2 for wrong input or a command that failed.
"""
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path


def refuse(text):
    print(f"vlmprof action: {text}", file=sys.stderr)
    sys.exit(2)


def number(name, least):
    try:
        value = float(os.environ.get(name, ""))
    except ValueError:
        value = -1.0
    if not value >= least:
        refuse(f"{name} is {os.environ.get(name, '')!r}: expected a number, at least {least}")
    return value


def measure(name, command, folder):
    folder.mkdir(parents=True)
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "VLMPROF_OUTPUT": str(folder)}, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        refuse(f"the command of the {name} ended with {done.returncode}: {command}")
    if not any(folder.glob("*.json")):
        refuse(f"the command of the {name} wrote no result file into $VLMPROF_OUTPUT: {command}")


def compare(baseline, change, margin):
    program = os.environ.get("VLMPROF_PROGRAM", "vlmprof")
    done = subprocess.run([program, "compare", str(baseline), str(change), "--margin", f"{margin:g}", "--json", "--quiet"], capture_output=True, check=False)
    if done.returncode not in (0, 1):
        refuse(f"vlmprof compare ended with {done.returncode}: {done.stderr.decode().strip()}")
    return json.loads(done.stdout)


def difference(row):
    if row["difference"] is None:
        return ""
    return f"{100 * row['difference']:+.1f} {'%' if row['scale'] == 'log' else 'points'}"


def markdown(rounds, verdict):
    """A table of the rounds, and one of the measures of the middle round."""
    lines = [f"### vlmprof: {verdict}", "", "| round | verdict |", "|---|---|"]
    lines += [f"| {index + 1} | {one['verdict']} |" for index, one in enumerate(rounds)]
    lines += ["", "| data set | measure | baseline | change | difference | verdict |", "|---|---|---|---|---|---|"]
    rows = rounds[len(rounds) // 2]["comparisons"]
    for row in [row for row in rows if row["configuration"] is None] or rows:  # of all configurations together, where there are several
        values = ["" if row[side] is None else f"{row[side]:.4g}" for side in ("a", "b")]
        lines.append(f"| {row['dataset_name']} | {row['of']} | {values[0]} | {values[1]} | {difference(row)} | {row['verdict']} |")
    warnings = sorted({warning for one in rounds for warning in one.get("warnings", [])})
    return "\n".join(lines + [""] + [f"- {warning}" for warning in warnings]) + "\n"


def comment(text):
    """On the pull request of this run, if it has one."""
    path, token = os.environ.get("GITHUB_EVENT_PATH"), os.environ.get("VLMPROF_TOKEN")
    pull = json.loads(Path(path).read_text(encoding="utf-8")).get("pull_request") if path else None
    if not pull or not token:
        return
    address = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{pull['number']}/comments"
    request = urllib.request.Request(address, data=json.dumps({"body": text}).encode(), method="POST",
                                     headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except OSError as error:  # a fork's token may not comment; the verdict is still worth having
        print(f"vlmprof action: no comment: {error}", file=sys.stderr)


def main():
    baseline = os.environ.get("VLMPROF_BASELINE", "")
    change = os.environ.get("VLMPROF_CHANGE", "") or baseline
    if not baseline:
        refuse("VLMPROF_BASELINE is empty: expected a command that writes result files into $VLMPROF_OUTPUT")
    rounds, count, margin = [], int(number("VLMPROF_ROUNDS", 1)), number("VLMPROF_MARGIN", 0)
    work = Path(tempfile.mkdtemp(prefix="vlmprof-action-"))
    for index in range(count):
        turns = [("baseline", baseline), ("change", change)]
        for name, command in turns if index % 2 == 0 else turns[::-1]:  # who is first takes turns
            measure(name, command, work / name / str(index))
        rounds.append(compare(work / "baseline" / str(index), work / "change" / str(index), margin))
    worse = sum(one["worse"] for one in rounds)
    verdicts = [one["verdict"] for one in rounds]
    most = max(set(verdicts), key=verdicts.count)
    verdict = most if 2 * verdicts.count(most) > count else "INCONCLUSIVE"
    text = markdown(rounds, verdict)
    print(text)
    for name, more in (("GITHUB_STEP_SUMMARY", text), ("GITHUB_OUTPUT", f"verdict={verdict}\n")):
        if os.environ.get(name):
            with open(os.environ[name], "a", encoding="utf-8") as file:
                file.write(more)
    comment(text)
    sys.exit(1 if 2 * worse > count else 0)


if __name__ == "__main__":
    main()
