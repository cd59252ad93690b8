#!/bin/bash
# slow: what make numbers does, which few people run
# test_numbers.sh: what `make numbers` does, on a template of its own: figures in their places, a figure that cannot be had here, a command that fails or
# prints something else; and guide numbers is made of its template. Nothing is measured. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3} PROGRAM=${PROGRAM:-./vlmprof}
. tests/check.sh
if ! "$python" -c pass 2>/dev/null; then
    echo "skipped: make numbers: there is no $python"
    echo "test_numbers: 0 passed, 0 failed, 1 skipped"
    exit
fi
numbers() { "$python" tests/bench/write_numbers.py --template "$work/template" --page "$work/page" "$@"; }

cat >"$work/template" <<'END'
numbers - of {cpu}, {memory_gb:.0f} GB, {compiler}, {commit}, {date}, {load:.1f}

[first]
  The first
    {a:.0f} and {100 * b:+.1f} of {name}, {seconds:.0f} s
$ echo "4 0.25 some text" >DIR/file && cat DIR/file
= a b: ^(\d+) (\S+)
= name: \d (some \w+)$

[second]
  The second
    {a:.0f}
? file no/such/file
$ ./vlmprof tile {a}
= a: (\d+)

The end
END
check "a page is written" numbers
check "its head says where and when" grep -qE "^numbers - of [^{},]+, .*, [0-9]+ GB, [^{},]+, [0-9a-f]+( with changes)?, 20[0-9-]+, [0-9.]+$" "$work/page"
check "its figures and commands" diff <(tail -n +2 "$work/page") - <<'END'

  The first
    4 and +25.0 of some text, 0 s
    echo "4 0.25 some text" >DIR/file && cat DIR/file

  The second
    not measured: there is no no/such/file
    vlmprof tile {a}

The end
END
check "the page is its template's" numbers --check
sed -i 's/^    4 and/    about/' "$work/page"
numbers --check >"$work/said" 2>&1
check "a page whose words were changed is not" [ $? -eq 1 ]
check "one paragraph alone, on stdout" [ "$(numbers --only first 2>"$work/said" | sed -n 2p)" = "    4 and +25.0 of some text, 0 s" ]
cp "$work/page" "$work/before"
fails() { # fails NAME WORDS: no page is written, and these words say why
    numbers >"$work/said" 2>&1
    check "$1: exit code" [ $? -eq 1 ]
    check "$1: words" grep -q "$2" "$work/said"
    check "$1: the page stays" cmp "$work/before" "$work/page"
}
sed -i 's/^= name: .*/= name: (other)/' "$work/template"
fails "another text than expected" '"(other)" is not in what the command printed'
sed -i 's/^= name: .*/= name more: (some)/' "$work/template"
fails "a group too few" "has not the groups name more"
sed -i 's/^\$ echo .*/$ echo lost >\&2; false | cat/' "$work/template"
fails "a command that fails" "^lost$"
check "guide numbers is made of tests/bench/numbers.template" "$python" tests/bench/write_numbers.py --check
echo "test_numbers: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
