#!/bin/bash
# readme_count.sh [write]: the last line of `make test`, kept in $B/tests/total.txt, must be within 2 % of the line that README shows, what was skipped
# counted in, because machines skip different tests. With write it becomes that line. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
total=${B:-build}/tests/total.txt
line='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
was=$(grep -E "$line" README.md)
is=$(grep -E "$line" "$total" 2>/dev/null)
if [ -z "$is" ] || [ "$(wc -l <<<"$was")" -ne 1 ]; then
    echo "FAILED readme_count: needs $total, which make test leaves, and one such line in README.md"
    echo "readme_count: 0 passed, 1 failed, 0 skipped"
    exit 1
fi
if [ "${1:-}" = write ]; then
    if [[ $is != *" 0 failed,"* ]]; then echo "readme_count: README stays: $is" >&2; exit 1; fi
    sed -i -E "s/$line/$is/" README.md
    echo "README: $is"
    exit
fi
read -r is_passed _ _ _ is_skipped _ <<<"$is"
read -r was_passed _ _ _ was_skipped _ <<<"$was"
off=$((is_passed + is_skipped - was_passed - was_skipped))
if [ $((50 * ${off#-})) -le $((was_passed + was_skipped)) ]; then echo "readme_count: 1 passed, 0 failed, 0 skipped"; exit; fi
echo "FAILED README says \"$was\", make test says \"$is\": make readme-count writes it"
echo "readme_count: 0 passed, 1 failed, 0 skipped"
exit 1
