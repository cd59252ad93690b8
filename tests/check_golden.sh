#!/bin/bash
# check_golden.sh [begin]: which golden files do the tests read? `begin` sets their access times back, then the tests run, and without a word it lists
# the files whose times did not move: no test reads them. READMEs and index.json say what is next to them. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
golden() { find tests/golden -type f ! -name README.md ! -name index.json "$@"; }
long_ago='2001-01-01 00:00' later='2001-01-02 00:00'
case ${1:-} in
begin) golden -exec touch -a -d "$long_ago" {} + ;;
'')
    probe=tests/golden/texts/README.md # is a reader noticed here at all? (not on a file system mounted with noatime)
    touch -a -d "$long_ago" "$probe" && cat "$probe" >/dev/null
    if [ -z "$(find "$probe" -newerat "$later")" ]; then
        echo "skipped: golden files that nobody reads: this file system does not keep when a file was read"
        echo "check_golden: 0 passed, 0 failed, 1 skipped"
        exit
    fi
    unread=$(golden ! -newerat "$later" | sort)
    if [ -z "$unread" ]; then echo "check_golden: 1 passed, 0 failed, 0 skipped"; exit; fi
    printf 'FAILED no test reads %s\n' $unread
    echo "check_golden: 0 passed, $(wc -l <<<"$unread") failed, 0 skipped"
    exit 1 ;;
*) sed -n '2,3s/^# //p' "$0"; exit 2 ;;
esac
