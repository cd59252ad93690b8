#!/bin/bash
# Proves that README, manual and samples are true: the README's C block, the manual's example and samples/01 are one text; the samples run and
# print what is promised; make targets, files, options and commands that the README names exist; commands that need no checkpoint are run.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() { # check NAME COMMAND...: the command must succeed
    local name=$1
    shift
    if "$@" >"$work/out" 2>"$work/err"; then passed=$((passed + 1)); return 0; fi
    failed=$((failed + 1))
    echo "FAILED $name"
    cat "$work/out" "$work/err" | head -n 4
    return 1
}

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' > "$work/readme.c"
sed -n '/Smallest example/,/What it does not do/p' vlmprof.h | sed -n 's/^ \*     //p' > "$work/manual.c"
check "README's C block is samples/01_count_tokens.c" diff "$work/readme.c" samples/01_count_tokens.c
check "the manual's example is samples/01_count_tokens.c" diff "$work/manual.c" samples/01_count_tokens.c

first=$("$B/samples/01_count_tokens")
check "sample 01 runs and counts 704 tokens for 640x480" [ "$first" = "640x480: 2 rows, 3 columns, 704 vision tokens" ]
check "README quotes what sample 01 prints" grep -qF "\`$first\`" README.md
"$B/samples/02_time_and_report" > "$work/report.json"
check "sample 02 ends well" [ $? -eq 0 ]
check "sample 02 counts its runs" grep -q '"count": 200' "$work/report.json"
check "sample 02 has finite percentiles" [ "$(grep -cE '"(min|p50|p95|p99|max)": [0-9.e+-]+,?$' "$work/report.json")" -eq 5 ]

for target in $(grep -ohE '`?make [a-z-]+' README.md | awk '{ print $2 }' | sort -u); do
    check "README's make $target is a target" grep -qE "^([a-z-]+ )*$target:" Makefile
done
for file in $(grep -oE '^\| `[^`]+` \|' README.md | tr -d '|` '); do
    check "README's file $file exists" [ -e "$file" ]
done

# commands in backquotes at the end of a table row; those that need a checkpoint (DIR) or 15 GB (molmoe-1b) are only looked up in the help
grep -E '^\|' README.md | grep -oE '\| `\./vlmprof [^`]+` \|$' | sed 's/^| `//; s/` |$//' > "$work/commands"
check "README has commands" [ -s "$work/commands" ]
while IFS= read -r command; do
    read -r _ name _ <<<"$command"
    case $name in -*) name=;; esac
    "$PROGRAM" $name --help </dev/null >"$work/help" 2>&1
    for option in $(grep -oE ' --[a-z_]+' <<<"$command"); do
        check "README's option $option is in the help of ${name:-the program}" grep -qE -e "$option\b" "$work/help"
    done
done < "$work/commands"
while IFS= read -r command; do
    case $command in *" DIR "*|*molmoe-1b*) continue;; esac
    check "README's command runs: $command" timeout 120 bash -c "${command/.\/vlmprof/$PROGRAM}" </dev/null
done < "$work/commands"
rm -rf build/readme-sweep
echo "test_readme: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
