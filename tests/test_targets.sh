#!/bin/bash
# test_targets.sh: each target that the Makefile calls a command can be made: make -n finds a rule for all that it needs, and each file of the repository
# that its commands name is there. Nothing is built or run. Ends with a count line.
cd "$(dirname "$0")/.." || exit 1
. tests/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
# MAKE=true: what a command hands to another make is asked of that target itself. total.sh, which test-all runs, would want the counts of tests.
dry_run() { make -n -o test-all MAKE=true NVCC=true "$@"; }
are_there() { # are_there TEXT: the paths below the folders of sources that the text names
    local path lost=0
    while read -r path; do [ -e "$path" ] || { echo "there is no $path"; lost=1; }; done \
        < <(grep -oE "(^|[ '\"=<])(tests|samples|cli|parts)/[A-Za-z0-9_./*$%-]+" <<<"$1" | grep -v '[*$%]' | sed "s/^[ '\"=<]//; s/\.$//" | sort -u)
    return $lost
}
targets=$(sed -n 's/^\.PHONY: //p' Makefile mk/*.mk 2>/dev/null | tr ' ' '\n' | grep -vx test-all | sort -u)
for target in $targets; do
    commands=$(dry_run "$target" 2>"$work/err")
    check "make -n $target: $(tail -n 1 "$work/err")" [ $? -eq 0 ] && check "make $target: its files" are_there "$commands"
done
check "the targets are found" grep -qx full-size <<<"$targets"
check "a file that is gone is noticed" bash -c '! "$@"' - bash -c "$(declare -f are_there); are_there 'cc tests/full_size.c tests/no_such.c'"
commands=$(dry_run no-such-target 2>&1)
check "and a target without a rule" [ $? -ne 0 ]
echo "test_targets: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
