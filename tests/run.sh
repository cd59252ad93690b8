#!/bin/bash
# run.sh PROGRAM...: runs test programs from the repository's root, two more at a time than there are cores, as some wait (TEST_JOBS), shows what each printed when it has
# ended, adds up their lines `name: N passed, N failed, N skipped` and prints the sum as its last line. A program that was not built, crashed, ran past
# its time, printed no such line, or ended non-zero without naming a failure counts as one failure. Exits 1 when something failed.
# What was skipped is listed before the last line; with TEST_STRICT_SKIPS a skip that no line of tests/allowed_skips.txt allows counts as a failure.
# With TEST_TOTAL=FILE the last line is kept there as well. $B/tests/times.txt lists each program's processor seconds and wall seconds, the slowest first.
unset MAKEFLAGS MFLAGS MAKELEVEL # a make that a test starts is not a part of the one that started this
export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000 # as ./vlmprof sets for itself: idle threads do not spin through other programs' time
export VLMPROF_TEST_SYSTEM=/dev/null # what else this machine does is not known: no output depends on it
# folders of tests are in memory where there is room: a sweep's journal is written through to the disk at each point
if [ -z "$TMPDIR" ] && [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null; then
    # other users may pass through it: some tests start programs as one of them
    TMPDIR=$(mktemp -d /dev/shm/vlmprof-tests-XXXXXX) && chmod 711 "$TMPDIR" && export TMPDIR && shm=$TMPDIR || unset TMPDIR
fi
export TEST_TIMEOUT_S=${TEST_TIMEOUT_S:-600}
sums=$(mktemp) && skips=$(mktemp) || exit 1
export sums skips
trap 'rm -rf "$sums" "$skips" $shm' EXIT

run_one() { # run_one PROGRAM: its output as one piece, its counts as a line of $sums
    local program=$1 name log status counts p f s wall=0 user=0 system=0 TIMEFORMAT='%R %U %S'
    name=$(basename "$program")
    log=$(mktemp) || exit 1
    if [ ! -x "$program" ]; then
        echo "FAILED $name: it was not built" >"$log"
        p=0 f=1 s=0
    else
        { time timeout "$TEST_TIMEOUT_S" "$program" </dev/null >"$log" 2>&1; } 2>"$log.time"
        status=$?
        read -r wall user system < <(tail -n 1 "$log.time")
        counts=$(grep -aE '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1 | sed -E 's/^[^ ]+: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/')
        read -r p f s <<<"${counts:-0 0 0}"
        if [ "$status" -eq 124 ]; then
            echo "FAILED $name: stopped after $TEST_TIMEOUT_S s" >>"$log"
            f=$((f + 1))
        elif [ -z "$counts" ]; then
            echo "FAILED $name: exit status $status and no count line" >>"$log"
            f=$((f + 1))
        elif [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
            echo "FAILED $name: exit status $status although no check failed" >>"$log"
            f=1
        fi
        sed -n "s/^skipped: /$name: /p" "$log" >"$log.skips"
        [ -n "$TEST_STRICT_SKIPS" ] && while IFS= read -r skip; do
            echo "FAILED $skip: tests/allowed_skips.txt does not allow this skip" >>"$log"
            f=$((f + 1)) s=$((s - 1))
        done < <(grep -vE -f <(sed '/^#/d; s/.*/^&$/' tests/allowed_skips.txt) "$log.skips")
    fi
    { flock 9; cat "$log"; echo "$p $f $s $user $system $wall $program" >>"$sums"; cat "$log.skips" >>"$skips" 2>/dev/null; } 9<"$sums"
    rm -f "$log" "$log.time" "$log.skips"
}
export -f run_one

if [ $# -eq 0 ]; then
    echo "FAILED: no test programs"
    echo "0 1 0 0 0 0 none" >>"$sums"
else
    printf '%s\0' "$@" | xargs -0 -n 1 -P "${TEST_JOBS:-$(($(nproc 2>/dev/null || echo 1) + 2))}" bash -c 'run_one "$0"'
fi
# times of programs that ran before stay in the list
times=${B:-build}/tests/times.txt
mkdir -p "${times%/*}" && touch "$times" && awk '!seen[$NF]++' <(awk '{ printf "%.1f %.1f %s\n", $4 + $5, $6, $7 }' "$sums") "$times" | sort -rn >"$times.new" &&
    mv "$times.new" "$times"
[ -s "$skips" ] && echo "skipped:" && sort "$skips" | uniq -c
# a program whose counts are missing: its runner itself was ended
awk -v wanted=$(($# ? $# : 1)) -v kept="$TEST_TOTAL" '{ p += $1; f += $2; s += $3 } END { f += wanted - NR; total = p " passed, " f " failed, " s " skipped"
    print total; if (kept != "") print total >kept; exit f > 0 }' "$sums"
