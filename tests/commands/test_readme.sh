#!/bin/bash
# slow: runs the commands of README and manual, 20 s
# Proves that README, manual and samples are true: the manual's example is samples/01, README's C block is of samples/02; the samples run and print what is
# promised; make targets and files that README names exist; all lines of its sh blocks are run, those for servers with samples/stub_server.py.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof}
. tests/check.sh

block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" README.md | grep -v '^```'; } # block LANGUAGE: the lines of README's blocks in it
sed -n '/Smallest example/,/What it does not do/p' vlmprof.h | sed -n 's/^ \*     //p' > "$work/manual.c"
check "README's C block is of samples/02_time_and_report.c" [ "$(block c | grep -cxFf <(sed 's/^ *//' samples/02_time_and_report.c))" -eq "$(block c | wc -l)" ]
check "the manual's example is samples/01_count_tokens.c" diff "$work/manual.c" samples/01_count_tokens.c

"$B/samples/01_count_tokens" >"$work/first"
check "sample 01 counts 640x480 in MolmoE and as vlmprof tile in Qwen3-VL" diff "$work/first" - <<LINES
640x480: 2 rows, 3 columns, 704 vision tokens
qwen3-vl: $("$PROGRAM" tile --family qwen3-vl 640x480 --csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "feature_tokens") c = i; next } { print $c }') image tokens
LINES
while read -r line; do check "README quotes what sample 01 prints: $line" grep -qF "\`$line\`" README.md; done <"$work/first"
"$B/samples/02_time_and_report" > "$work/report.json"
check "sample 02 ends well" [ $? -eq 0 ]
"$PROGRAM" report "$work/report.json" > "$work/said" 2>&1
check "report reads what sample 02 prints, without a warning" [ "$(grep -cE "^  600 samples per configuration|^  prefill takes|Warnings" "$work/said")" -eq 2 ]
check "sample 02 has at most 50 lines" [ "$(wc -l <samples/02_time_and_report.c)" -le 50 ]

# sample 03: its counts are those of vlmprof tile, its total and mean those of its rows; a file that is not an image is named, and the rest counted
pictures=$(cd samples && ls *.jpg *.png | LC_ALL=C sort)
tokens_of() { # tokens_of OPTIONS...: vision tokens of the pictures, a line each, as vlmprof tile counts them
    (cd samples && "$program" tile $pictures --csv "$@") | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(features|actual_vision_tokens|total_tokens)$/) c = i }
        NR > 1 { print $c }'
}
program=$(realpath "$PROGRAM")
paste -d' ' <(echo "$pictures") <(tokens_of) <(tokens_of --tier low) <(tokens_of --tier medium) <(tokens_of --tier high) <(tokens_of --family qwen3-vl) > "$work/wanted"
"$B/samples/03_tokens_of_folder" samples > "$work/tokens"
check "sample 03 ends well" [ $? -eq 0 ]
check "sample 03 has a row for each of the 10 pictures" [ "$(wc -l < "$work/wanted") $(wc -l < "$work/tokens")" = "10 15" ]
check "sample 03 counts what vlmprof tile counts" diff <(awk 'NR > 1 && NR < 12 { print $1, $5, $6, $7, $8, $9 }' "$work/tokens") "$work/wanted"
check "sample 03 adds up" diff <(awk '$1 == "total" || $1 == "mean" { print $1, $2, $3, $4, $5, $6 }' "$work/tokens") \
    <(awk '{ for (i = 2; i < 7; i++) s[i] += $i } END { for (r = 1; r < 11; r += 9) printf "%s %.1f %.1f %.1f %.1f %.1f\n", r == 1 ? "total" : "mean", s[2] / r, s[3] / r, s[4] / r, s[5] / r, s[6] / r }' "$work/wanted")
mkdir "$work/folder" && cp samples/cat.jpg "$work/folder/" && echo "no picture" > "$work/folder/b.png" && mkdir "$work/folder/c.png"
"$B/samples/03_tokens_of_folder" "$work/folder" > "$work/tokens" 2> "$work/named"
check "sample 03 ends with 1 after a file that is no image" [ $? -eq 1 ]
check "sample 03 names such files and counts the others" [ "$(cut -d: -f1 "$work/named" | xargs) $(wc -l < "$work/tokens")" = "b.png c.png 6" ]
"$B/samples/03_tokens_of_folder" > "$work/tokens" 2>&1
check "sample 03 without a folder shows its usage" [ "$? $(cut -c1-6 "$work/tokens")" = "2 usage:" ]

# sample 04: 31 ranges of the sort a step in three recorded steps, in both tables; the saved one is JSON
"$B/samples/04_profile_yourself" "$work/profile.json" > "$work/profile"
check "sample 04 ends well" [ $? -eq 0 ]
check "sample 04 prints torch's columns" grep -qE '^ +Name +Self CPU % +Self CPU +CPU total % +CPU total +CPU time avg +# of Calls' "$work/profile"
check "sample 04 counts the calls of its sort" [ "$(awk '$1 == "sort" { print $7 } / by: / { print $3, $4 } /\(sort\)$/ { print $1 }' "$work/profile" | xargs)" = \
    "93 cumulative time 93/3" ]
check "sample 04 saves its table" [ "$(grep -cE '"schema": "vlmprof-ops-1"|"calls": (93|3),' "$work/profile.json")" -eq 5 ]

check "sample 05 ends its ranges with their scopes" grep -q "sum 3000, 6 ranges, 0 open" <("$B/samples/05_ranges")

"$B/samples/06_threads_and_device" "$work/rows.json" > "$work/rows"
check "sample 06 times its decode steps and writes a trace" [ "$? $(grep -cE '^32 decode steps, P50 [0-9]+ us$|rows.json: written$' "$work/rows")" = "0 2" ]
check "sample 06 has a row for each thread and for the device, and no more" \
    [ "$(grep -oE '"ph": "X".*"tid": [0-9]+' "$work/rows.json" | sed 's/.* //' | sort | uniq -c | xargs)" = "8 0 48 1 40 2" ]

for target in $(grep -ohE '(^|`)make [a-z0-9_-]+' README.md | awk '{ print $2 }' | sort -u); do
    check "README's make $target is a target" grep -qE "^([a-z0-9_-]+ )*$target:" Makefile mk/*.mk
done
for file in $(sed -n 's/^| \(`[^|]*`\) |.*/\1/p' README.md | tr -d '`,'); do
    check "README's file $file exists" [ -e "$file" ]
done

check "README has at most 12,000 bytes and 170 lines" [ "$(wc -c <README.md)" -le 12000 -a "$(wc -l <README.md)" -le 170 ]
check "each of README's four doors has at most 20 lines" [ -z "$(awk '/^## / { door++; start = NR } door && door < 5 && /./ && NR - start >= 20' README.md)" ]
check "README names every command" [ -z "$(for name in $(ls cli/commands/command_*.c | sed 's/.*command_//; s/\.c//'); do grep -qF "\`$name\`" README.md || echo "$name"; done)" ]
check "README names every guide" diff <(grep -oE '\]\(cli/guides/[a-z]+\.txt\)' README.md | tr -d ']()' | sort) <(ls cli/guides/*.txt)

# what the commands write to build/ is written to a folder of this test's own
python=${PYTHON:-python3} skipped=0 url=
runs() {
    timeout 300 bash -c "$(sed "s|\bbuild/|\"\$0\"/|g; s|^\./vlmprof|vlmprof|; s|^vlmprof|\"\$1\"|; s|http://127.0.0.1:8000|$url|; s|--request_rate_list|--ramp_s 0.2 &|" <<<"$1")" \
        "$work/build" "$PROGRAM" </dev/null
}
mkdir "$work/build"
if "$python" -c 'import http.server, ctypes; ctypes.CDLL("libcurl.so.4")' 2>"$work/missing"; then
    "$python" samples/stub_server.py --port 0 >"$work/url" & stub=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$work/url" ] || sleep 0.5; done
    url=$(cat "$work/url")
else
    skipped=$((skipped + 1))
    echo "skipped: samples/stub_server.py: libcurl is not there, or Python: $(tail -n 1 "$work/missing")"
fi
block sh >"$work/commands"
check "README has commands" [ "$(wc -l <"$work/commands")" -ge 15 ]
while IFS= read -r command; do
    case $command in *" --endpoint "*|*" build/load "*) [ -n "$url" ] || continue;; esac
    check "README's command runs: $command" runs "$command"
done <"$work/commands"
[ -z "$url" ] || kill "$stub"

# guides: each says its name and summary; every option that they name is one of a command's; lines "    vlmprof .." are run, those with files of
# yours (DIR, FILE, OUT, A B, model.json) or 15 GB only looked up
for name in $("$PROGRAM" help --list); do "$PROGRAM" help "$name" --all; done >"$work/all-help"
for guide in cli/guides/*.txt; do
    name=$(basename "$guide" .txt)
    check "guide $name begins with its name" grep -qE "^$name - .{20,}" <(head -n 1 "$guide")
    check "guide $name keeps to 100 columns outside commands" [ -z "$(grep -vE '^ +(vlmprof|cc) ' "$guide" | grep -E '.{101}')" ]
    "$PROGRAM" help "$name" >"$work/printed"
    # lines in braces stand for the program's own tables
    check "guide $name is printed" [ -z "$(diff <(sed -E 's/^## (.*)/\U\1/; /^\{.*\}$/d' "$guide") "$work/printed" | grep '^<')" ]
done
"$PROGRAM" help definitions >"$work/printed"
check "definitions say what TPOT is, once" [ "$(grep -A1 '^  T_decode_per_token$' "$work/printed" | grep -c 'TPOT, time per output token') $(grep -c 'time per output token' "$work/printed")" = "1 1" ]
for key in $(grep -ohE 'ROW\("[A-Za-z_]+"' cli/results/metrics.h | cut -d'"' -f2); do
    check "definitions have $key" grep -qE "^  $key$" "$work/printed"
done
# (llama.cpp's, SGLang's and vLLM's own options, and those of python -m vlmprof.NAME, aside)
for option in $(grep -ohE -e '--[a-z][a-z_-]+' cli/guides/*.txt | grep -vxE -e '--(metrics|enable-metrics|save-result|save-detailed)' | grep -vxF -f <(grep -ohE -e '--[a-z_]+' python/vlmprof/*/__init__.py) | sort -u); do
    check "the guides' option $option exists" grep -qE -e "^ +$option\b|$option N|tile --family.*$option" <(cat "$work/all-help" <("$PROGRAM" tile --list_families | grep -oE '\b[a-z_]+=' | sed -E 's/(.*)=/  --\1/'))
done
# (the commands of guide numbers measure for minutes; test_servers.sh runs those of guide servers)
grep -hE '^    vlmprof ' $(ls cli/guides/*.txt | grep -v -e numbers -e servers) | sed 's/^ *//' >"$work/commands"
check "guides have commands" [ "$(wc -l <"$work/commands")" -ge 10 ]
while IFS= read -r command; do
    case $command in *" DIR"*|*" FILE"*|*" A B"*|*" model.json"*|*molmoe-1b*|*" --endpoint "*) continue;; esac
    check "the guides' command runs: $command" runs "$command"
done <"$work/commands"
echo "test_readme: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
