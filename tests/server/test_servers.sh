#!/bin/bash
# slow: fetches a server of 210 MB by the network
# vlmprof against a real server: llama.cpp's own, with small models of random weights on this machine (tests/servers). ask, sweep and audit see what
# the server counts; an ignored knob and a dropped image are found; a killed sweep goes on with the same answers; an API key is written nowhere.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
PROGRAM=${PROGRAM:-./vlmprof}
. tests/check.sh
skip() {
    echo "skipped: test_servers: $1"
    echo "test_servers: 0 passed, 0 failed, 1 skipped"
    exit 0
}
place=build/servers-venv # one for every build folder
reason=$(mkdir -p build && flock "$place.lock" tests/servers/venv.sh "$place") || skip "$reason"
reason=$("$PROGRAM" ask --endpoint http://127.0.0.1:9 --endpoint_model m -p x 2>&1 | grep 'libcurl') && skip "$reason"
python=$place/bin/python

# serve NAME OPTIONS...: starts a server; NAME is then its address. It ends with this script: its input does.
serve() {
    local name=$1 input
    shift
    exec {input}> >(exec "$python" tests/servers/serve.py "$@" --seconds 300 >"$work/$name.address" 2>"$work/$name.log")
    for _ in $(seq 300); do
        read -r "$name" <"$work/$name.address" && return 0
        sleep 0.1
    done 2>/dev/null
    echo "FAILED test_servers: no server"
    tail -n 3 "$work/$name.log"
    echo "test_servers: $passed passed, $((failed + 1)) failed, 0 skipped"
    exit 1
}
number() { sed -nE 's/^ *"'"$1"'": ([-0-9.]+|null|true|false),?$/\1/p' "$work/result.json" | head -n 1; } # number KEY of the last ask
string() { sed -nE 's/^ *"'"$1"'": "(.*)",?$/\1/p' "$work/result.json" | head -n 1; }
ask() { "$PROGRAM" ask --json --quiet --cold -p "What is this?" --max_new_tokens 12 "$@" >"$work/result.json" 2>"$work/err" || { cat "$work/err"; return 1; }; }

for family in llava_1_5 qwen2_vl_hf; do
    check "the files of $family are written" "$python" tests/servers/tiny_gguf.py $family "$work/$family"
done
key=sk-$RANDOM$RANDOM$RANDOM
echo "$key" >"$work/key"
serve fixed "$work/llava_1_5" --api_key_file "$work/key"
serve sized "$work/qwen2_vl_hf" --min_tokens 4 --max_tokens 256
serve deaf "$work/llava_1_5" --drop_images
limits="--family qwen2_vl_hf --min_pixels 3136 --max_pixels 200704" # of that server: 28 x 28 pixels a token

# ---- ask: the answer; the prompt is the image's tokens and the text's
check "ask without the key fails" [ "$("$PROGRAM" ask --endpoint $fixed --endpoint_model llava_1_5 -p x >"$work/none" 2>&1; echo $?)" = 4 ]
export OPENAI_API_KEY=$key
check "ask asks a question" ask --endpoint $fixed --endpoint_model llava_1_5
text_tokens=$(number prompt_tokens)
check "ask asks about an image" ask --endpoint $fixed/v1 --endpoint_model llava_1_5 --family llava_1_5 --same_image samples/cat.jpg
check "an image costs what the rule says: $(number prompt_tokens) = $text_tokens text + 1 before an image + 576" \
    [ $(($(number prompt_tokens) - text_tokens - 1)) = "$(number image_tokens_by_rule)" ]
check "the answer has 12 tokens and 12 pieces" [ "$(number completion_tokens) $(number pieces)" = "12 12" ]
check "the answer is text" [ "$(string answer | grep -cE '^[A-Za-z0-9?.,:!]{12}$')" = 1 ]
answer=$(string answer)
check "TTFT, T_total and TPOT fit" awk -v ttft="$(number TTFT)" -v total="$(number T_total)" -v tpot="$(number T_decode_per_token)" \
    'BEGIN { d = ttft + 11 * tpot - total; exit !(ttft > 0 && total > ttft && d < 1e-6 * total && d > -1e-6 * total) }'
unset OPENAI_API_KEY
check "the key comes from a file" ask --endpoint $fixed --endpoint_model llava_1_5 --api_key_file "$work/key" --same_image samples/cat.jpg
check "the same question has the same answer" [ "$(string answer)" = "$answer" ]
check "the server's cache is seen" [ "$(number cached_tokens)" -gt 500 ]
OTHER_KEY=$key check "the key comes from another variable" ask --endpoint $fixed --endpoint_model llava_1_5 --api_key_env OTHER_KEY samples/cat.jpg
check "an image of its own is in no cache" [ "$(number cached_tokens)" -lt 100 ]
ask --endpoint $sized --endpoint_model qwen2_vl_hf
text_tokens=$(number prompt_tokens)
for size in 56x56 300x200 640x480; do
    ask --endpoint $sized --endpoint_model qwen2_vl_hf samples/cat.jpg --resize $size $limits
    check "$size: $(number prompt_tokens) = $text_tokens text + 3 around an image + $(number image_tokens_by_rule)" \
        [ $(($(number prompt_tokens) - text_tokens - 3)) = "$(number image_tokens_by_rule)" ]
done

# ---- audit: the counts of both families; what is wrong has a name
audit() { "$PROGRAM" audit "$@" --quiet >"$work/audit" 2>&1; }
verdict() { # verdict EXIT WORDS OPTIONS...
    local wanted=$1 words=$2
    shift 2
    audit "$@"
    [ $? -eq "$wanted" ] && grep -qE -e "$words" "$work/audit" || { cat "$work/audit"; return 1; }
}
export OPENAI_API_KEY=$key
check "audit: 12 sizes of a fixed count" verdict 0 "1 token more for every image; otherwise all 12 sizes" \
    --endpoint $fixed --endpoint_model llava_1_5 --family llava_1_5
check "audit: 12 sizes of a count by size" verdict 0 "3 tokens more for every image; otherwise all 12 sizes" \
    --endpoint $sized --endpoint_model qwen2_vl_hf $limits --images 12
check "audit: llama.cpp rounds 2.5 x 28 up, the rule to even" verdict 1 "different: 1 of 3 sizes; the first is 70x70: 4 tokens" \
    --endpoint $sized --endpoint_model qwen2_vl_hf $limits --sizes 640x480,70x70,300x200
check "audit: a knob that llama.cpp does not know is ignored" verdict 1 "knob ignored: the counts are the same with and without it" \
    --endpoint $sized --endpoint_model qwen2_vl_hf $limits --images 12 --request_knob mm_processor_kwargs.max_pixels=100352
check "audit: another limit is found by the counts" verdict 1 "another limit configured: all counts fit qwen2_vl_hf with max_pixels = 200704" \
    --endpoint $sized --endpoint_model qwen2_vl_hf --family qwen2_vl_hf --images 12
check "audit: a dropped image" verdict 1 "image dropped: no image adds a token" --endpoint $deaf --endpoint_model llava_1_5 --family llava_1_5

# ---- sweep: killed with kill -9 and resumed, its answers and counts are those of one that was not
cat >"$work/points.py" <<'EOF'
import glob, json, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.json")):
    result = json.load(open(path))
    for row in result["per_sample_results"]:
        print(result["target_vision_tokens"], result["request_knobs"], row["metadata"]["id"], row["status"], row["pred"], row["output_tokens"],
              row["total_sequence_length"], row["actual_image_size"], len(row["runs"]["TTFT"]), row["accuracy"])
EOF
sweep() {
    local folder=$1
    shift
    "$@" "$PROGRAM" sweep --endpoint $sized --endpoint_model qwen2_vl_hf $limits --data samples/questions.jsonl --vision_tokens_list 64 144 \
        --request_knob cache_prompt=true,false --num_samples 6 --num_runs_per_sample 2 --max_new_tokens 8 --quiet --output_dir "$work/$folder"
}
check "a sweep" sweep whole
sweep killed exec >"$work/killed.out" 2>&1 &
child=$!
for _ in $(seq 600); do [ "$(cat "$work/killed/journal.jsonl" 2>/dev/null | wc -l)" -ge 14 ] && break; sleep 0.05; done
kill -9 $child
{ wait $child; } 2>/dev/null
check "the killed sweep was not done" [ "$(ls "$work/killed/"*.json 2>/dev/null | wc -l)" -lt 4 ]
check "the killed sweep goes on" sweep killed
"$python" "$work/points.py" "$work/whole" >"$work/whole.points"
"$python" "$work/points.py" "$work/killed" >"$work/killed.points"
check "24 points" [ "$(grep -c ' ok ' "$work/whole.points")" = 24 ]
check "killed and resumed: equal answers and counts" diff "$work/whole.points" "$work/killed.points"
check "a report of a server" "$PROGRAM" report "$work/killed" --output_dir "$work/report"

# ---- a server that the sweep starts itself, with two values of an option, under two loads
launched() {
    "$PROGRAM" sweep --server "tail -f /dev/null | $PWD/$python tests/servers/serve.py $work/qwen2_vl_hf --port 18473 --max_tokens {max_tokens}" --quiet \
        --knob max_tokens=64,256 --concurrency_list 1 4 --ramp_s 0.2 --endpoint http://127.0.0.1:18473 --endpoint_model qwen2_vl_hf --num_samples 6 \
        --num_runs_per_sample 2 --max_new_tokens 8 --data samples/questions.jsonl --output_dir "$work/launched" 2>&1
}
check "a sweep starts the server" launched
check "24 points under load" [ "$(cat "$work/launched/"*.json | grep -c '"status": "ok"')" = 24 ]
check "fewer image tokens, a shorter prompt" "$python" -c 'import glob, json, sys
rows = [json.load(open(path)) for path in glob.glob(sys.argv[1] + "/*.json")]
most = {of: max(row["total_sequence_length"] for r in rows if r["knobs"]["max_tokens"] == of for row in r["per_sample_results"]) for of in (64, 256)}
sys.exit(not most[64] < most[256])' "$work/launched"

# ---- the commands of README and guides that ask a server, and all of the guide servers
{ sed -n '/^```sh$/,/^```$/s|^\./||p' README.md
  grep -hE '^    vlmprof ' $(ls cli/guides/*.txt | grep -v servers); } | grep -e ' --endpoint ' >"$work/commands"
grep -hE '^    vlmprof ' cli/guides/servers.txt >>"$work/commands"
check "README and guides have commands for servers" [ "$(wc -l <"$work/commands")" -ge 5 ]
sed -i -E "s|^ *vlmprof ||; s|http://127.0.0.1:[0-9]+|$sized|; s|([ =])NAME\b|\1qwen2_vl_hf|; s|\bbuild/|$work/|g" "$work/commands"
while IFS= read -r command; do
    most=0
    case $command in
        audit*) most=1;;   # it finds that llama.cpp has other limits
    esac
    check "runs: vlmprof $command" bash -c "timeout 120 $PROGRAM $command || [ \$? -le $most ]" </dev/null
done <"$work/commands"

[ -z "$(grep -rlF "$key" "$work" --exclude=key)" ]
check "the key is in no output" [ $? -eq 0 ]
echo "test_servers: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
