#!/bin/bash
# run.sh PROGRAM...: runs test programs one after another from the repository's root, shows what they print, adds up their lines
# `name: N passed, N failed, N skipped` and prints the sum as its last line. A program that was not built, crashed, ran past its time,
# printed no such line, or ended non-zero without naming a failure counts as one failure. Exits 1 when something failed.
passed=0 failed=0 skipped=0
export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000 # as ./vlmprof sets for itself: idle threads do not spin through other programs' time
export VLMPROF_TEST_SYSTEM=/dev/null # what else this machine does is not known: no output depends on it
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    name=$(basename "$program")
    if [ ! -x "$program" ]; then
        echo "FAILED $name: it was not built"
        failed=$((failed + 1))
        continue
    fi
    timeout "${TEST_TIMEOUT_S:-600}" "$program" </dev/null 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    counts=$(grep -aE '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1 | sed -E 's/^[^ ]+: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/')
    read -r p f s <<<"${counts:-0 0 0}"
    if [ "$status" -eq 124 ]; then
        echo "FAILED $name: stopped after ${TEST_TIMEOUT_S:-600} s"
        f=$((f + 1))
    elif [ -z "$counts" ]; then
        echo "FAILED $name: exit status $status and no count line"
        f=$((f + 1))
    elif [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAILED $name: exit status $status although no check failed"
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
if [ $# -eq 0 ]; then
    echo "FAILED: no test programs"
    failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
