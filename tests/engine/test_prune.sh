#!/bin/bash
# --prune and --prune_list as a program: values and what is wrong with them, the dump, a sweep that stops and goes on, its forecast, report and best.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof}
. tests/check.sh
export OMP_NUM_THREADS=1
golden=tests/golden/pruning/models/llava-144
ask() { "$PROGRAM" run samples/cat.jpg -p "What?" --synthetic tiny --max_new_tokens 2 --cold --quiet "$@" >"$work/said" 2>"$work/complaint"; }
rejected() { # rejected VALUE WORDS: exit code 2, and the message has the words
    ask --prune "$1"
    [ $? -eq 2 ] && grep -qF -- "$2" "$work/complaint"
}
while IFS='|' read -r value words; do check "rejected: $value" rejected "$value" "$words"; done <<'CASES'
foo|unknown method "foo"; expected one of: none random stride pool visionzip divprune fastv dart pdrop
cdpruner|it needs CLIP's text tower
fastv:|keys are missing after the colon
fastv:keep|fastv: expected KEY=VALUE, got "keep"
fastv:dominant=3|unknown key of fastv "dominant"; expected one of: keep layer positions
fastv:kep=0.5|unknown key of fastv "kep"; did you mean keep?
fastvv|unknown method "fastvv"; did you mean fastv?
fastv:keep=0|keep=0: expected 2 or more tokens, or a share
fastv:keep=1|keep=1: expected
fastv:keep=-5|keep=-5: expected
fastv:keep=nan|keep=nan: expected
fastv:keep=inf|keep=inf: expected
fastv:keep=1.5|keep=1.5: expected
fastv:keep= 4|keep= 4: expected
fastv:keep=99999|keep=99999, but the image has 384 tokens
fastv:keep=0.0001|keeps none
fastv:keep=4,keep=5|keep is given twice
fastv:layer=0|layer=0: expected an integer from 1 to 100000
fastv:layer=77|the last block that runs is 3
random|keep is missing
random:keep=4,seed=-1|seed=-1: expected an integer from 0 to 4294967295
random:keep=4,positions=both|positions=both: expected published, keep or compact
none:keep=3|takes no keys
pool|not whole grids
visionzip:contextual=3|contextual needs dominant
visionzip:contextual=0|contextual needs dominant
visionzip:keep=9,dominant=3|cannot be used together
visionzip:keep=9,contextual=0|cannot be used together
dart:pivot_image=0|pivot_image=0: expected an integer from 1 to 64
dart:keep=4|at least the number of pivots
pdrop:layers=1/2,ratios=0.5|must have the same length
pdrop:layers=2/1,ratios=0.5/0.2|layers must be ascending and ratios descending
pdrop:layers=1/x,ratios=0.5/0.2|layers=1/x: expected 1 to 8 block numbers
pdrop:layers=1/2,ratios=0.5/1.2|ratios=0.5/1.2: expected 1 to 8 shares
pdrop|the last block that runs is 3
CASES
for value in none random:keep=0.25 random:keep=9,seed=4,layer=1 stride:keep=9 divprune fastv dart visionzip visionzip:keep=40 visionzip:dominant=9,contextual=0 pdrop:layers=1/2,ratios=0.5/0.25; do
    check "runs: $value" ask --prune "$value"
done
check "a text has nothing to prune" "$PROGRAM" run -p "What?" --synthetic tiny --max_new_tokens 2 --prune fastv --quiet
ask --prune fastv:keep=0.25 --num_runs 3
check "the stage has a row, and the line says what goes on" grep -qE '^prune    fastv:keep=0.25: 96 of 384 image tokens: 436 rows from block 0, 148 rows from block 2;' "$work/said"
check "prune is a stage of its own" grep -qE '^prune +[0-9]' "$work/said"
ask
check "without it there is none" [ "$(grep -c '^prune' "$work/said")" = 0 ]
ask --prune fastv:keep=0.25 --json
check "the same as JSON" grep -q '"rows_from_block": \[\[0, 436\], \[2, 148\]\]' <(tr -d '\n' <"$work/said" | sed -E 's/ +/ /g; s/\[ /[/g; s/ \]/]/g')

# the program's own way to a golden case: prompt, picture, tokens, kept tokens
numbers() { sed -n "/^ \"$2\": \[/,/\]/p" "$1" | tr -cd '0-9\n' | grep . | tr '\n' ' '; }
dumped() { od -An -v -t "$2" -j "$3" "$1" | tr -s ' \n' ' ' | sed 's/^ //'; }
prompt=$(sed -n 's/^ "prompt": "\(.*\)",$/\1/p' $golden/fastv-a/case.json)
"$PROGRAM" run tests/golden/pruning/images/llava-144-a.png -p "$prompt" --model $golden/checkpoint --weights fp32 --max_new_tokens 6 --ignore_eos --cold --quiet \
    --prune fastv:keep=72,layer=2 --dump "$work/dump" >/dev/null 2>"$work/complaint"
check "a golden case from its prompt" [ $? -eq 0 ]
check "kept.npy is the golden case's" [ "$(dumped "$work/dump/kept.npy" d4 128)" = "$(numbers $golden/fastv-a/case.json kept)" ]
check "its tokens are the golden case's" [ "$(dumped "$work/dump/tokens.npy" d8 128)" = "$(numbers $golden/fastv-a/case.json tokens)" ]
check "kept_features.npy has a row for each" grep -aq "'shape': (72, 64)" "$work/dump/kept_features.npy"

# a sweep: a value that some images are too small for fails there, and nowhere else
sweep() {
    "$PROGRAM" sweep --synthetic tiny --data samples/questions.jsonl --output_dir "$work/sweep" --tier_list low --num_samples 3 --num_runs_per_sample 1 \
        --max_new_tokens 2 --quiet --prune_list none random:keep=0.25 fastv:keep=0.25,layer=2 random:keep=300 "$@" >"$work/said" 2>"$work/complaint"
}
sweep --max_points 5
sweep
check "a file for each value" [ "$(ls "$work/sweep"/*_prune-*.json | wc -l)" = 4 ]
check "a keep that an image cannot give is a failed row with the reason" grep -q 'random: keep=300, but the image has' "$work/sweep"/*prune-random-keep-300.json
check "rows say how many tokens went on" grep -q '"kept_vision_tokens": 96' "$work/sweep"/*prune-fastv-keep-0.25-layer-2.json
check "and how many rows a block had" grep -qE '"mean_sequence_length": [0-9]' "$work/sweep"/*prune-fastv-keep-0.25-layer-2.json
check "without pruning they do not" [ "$(grep -c kept_vision_tokens "$work/sweep"/*prune-none.json)" = 0 ]
rm "$work/sweep"/*keep-300.json
"$PROGRAM" report "$work/sweep" >"$work/said" 2>/dev/null
check "the report pairs with none and random" grep -qE 'prune=fastv:keep=0.25,layer=2 +[0-9.]+ +25.0 ' "$work/said"
"$PROGRAM" report "$work/sweep" --output_dir "$work/report" >"$work/said" 2>/dev/null
check "the page has the section, a mark for each pruned configuration and its table" [ "$(grep -c 'id="pruning"' "$work/report/report.html")$(grep -c 'prune=fastv:keep=0.25,layer=2<td>88' "$work/report/report.html")" = 11 ]
check "JSON has a row for each, with what is saved and lost" [ "$(sed -n '/"pruning": \[/,/^ *\]/p' "$work/report/e2_pareto_coupling.json" | grep -cE '"(method|kv_cache_bytes|prefill_speedup|accuracy_to_none_interval|accuracy_to_random_interval)":')" = 10 ]
check "CSV has the same, empty where nothing is pruned" [ "$(sed 's/"[^"]*"/quoted/g' "$work/report/report.csv" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print ($at["kept_vision_tokens"] != "") ($at["accuracy_to_random_low"] != "") }' | sort | tr '\n' ' ')" = "00 10 11 " ]
"$PROGRAM" sweep --synthetic tiny --data samples/questions.jsonl --tier_list low --num_samples 3 --plan --prune_list none random:keep=0.1 >"$work/said" 2>/dev/null
check "a forecast with few tokens is shorter" [ "$(awk '/prune-none/ { none = $5 } /prune-random/ { few = $5 } END { gsub("~", "", none); gsub("~", "", few); print few + 0 < none + 0 }' "$work/said")" = 1 ]
"$PROGRAM" sweep --synthetic tiny --data samples/questions.jsonl --tier_list low --num_samples 3 --plan --prune_list none random:keep=300 >"$work/said" 2>/dev/null
check "the forecast has kept tokens and the KV cache, and fails what an image cannot give" [ "$(awk '/prune-none/ { none = $NF; all = $(NF - 1); good = $(NF - 2) } /random-keep-300/ { few = $NF; kept = $(NF - 1); failing = $(NF - 2) } END { print (few + 0 < none + 0 && kept + 0 == 300 && all + 0 > 300 && failing == 1 && good == 0) }' "$work/said")" = 1 ]
"$PROGRAM" fit "$work/sweep" -o "$work/model.json" --quiet >"$work/said" 2>/dev/null
check "fit knows pruned rows" [ "$(grep -c '"rows_pruned": 6' "$work/model.json")" = 1 ]
check "and does not warn that the files differ in what it knows" [ "$(grep -c 'differ in prune' "$work/said")" = 0 ]
"$PROGRAM" predict "$work/model.json" 640x480 --tier low --prune fastv:keep=0.25,layer=2 --json >"$work/said" 2>/dev/null
check "predict has what goes on" grep -q '"kept_vision_tokens": 72' "$work/said"
check "and how many blocks see all" grep -q '"num_full_blocks": 2' "$work/said"
"$PROGRAM" predict "$work/model.json" 640x480 --tier low --prune fastv:keep=9999 >"$work/said" 2>"$work/complaint"
check "predict rejects what the request has no tokens for" grep -q -- '--prune: fastv: keep=9999, but the image has' "$work/complaint"
check "a list with a bad value does not begin" [ "$("$PROGRAM" sweep --synthetic tiny --data samples/questions.jsonl --output_dir "$work/no" --prune_list none foo 2>&1 | grep -c 'unknown method "foo"')" = 1 ]
echo "test_prune.sh: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
