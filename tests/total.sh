#!/bin/bash
# total.sh COMMAND...: runs the commands one after another, each of which ends with a line `N passed, N failed, N skipped`, and prints the sum of
# these as its last line. A command without such a line, or one that ends non-zero without a failure, counts as one failure. Exits 1 when something failed.
case ${MAKEFLAGS%% *} in *[-=]*) ;; *n*) for command in "$@"; do bash -c "$command"; done; exit ;; esac # make -n
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
for command in "$@"; do
    bash -c "$command" | tee "$log"
    status=${PIPESTATUS[0]} p=0 f=0 s=0
    if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
    else status=1; fi
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
        echo "FAILED $command"
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
