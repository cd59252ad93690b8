#!/bin/bash
# check_page.sh: the pages of report --html and of run --profile --html in a real browser, at 400, 800 and 1280 px, light and dark. tests/support/browse.py looks for texts over one
# another, letters below 10 px and what sticks out, and uses the page: marks, series, data sets, the table. Findings of axe-core that are serious or
# critical fail as well, where AXE names an axe.min.js, or build/axe contains one (python3 -m venv build/axe && build/axe/bin/pip install axe-playwright-python).
# Skipped without chromium (or CHROMIUM=program) or python3. SHOTS=folder keeps the pictures.
CDPATH= cd "$(dirname "$0")/.." || exit 1
. tests/check.sh
PROGRAM=${PROGRAM:-./vlmprof}
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
if [ -z "$CHROMIUM" ] || ! command -v python3 >/dev/null; then
    echo "skipped: the page in a browser: chromium and python3 are needed"
    echo "check_page: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
if [[ $(realpath "$(command -v "$CHROMIUM")") == */snap* ]] || LC_ALL=C grep -aqs '/snap/' <(head -c 4096 "$(command -v "$CHROMIUM")"); then
    echo "skipped: the page in a browser: the chromium of snap cannot read temporary folders (CHROMIUM=program of another)"
    echo "check_page: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
AXE=${AXE:-$(find "${B:-build}/axe" -name axe.min.js 2>/dev/null | head -n 1)}
skipped=0
if [ -z "$AXE" ]; then skipped=1; echo "skipped: axe-core: no axe.min.js in ${B:-build}/axe, and AXE is not set"; fi

# One data set of 12 configurations as in the demo, whose page is at most four screens; two of them; one of 36, in all of whose figures there is more than fits.
python3 - "$work" <<'MADE'
import json, os, random, sys
def stage(ms, work):
    return {"wall_ms": ms, "device_ms": ms, "launches": 3, "flops": work * 9e7, "bytes": work * 2e6}
def sample(noise, i, tokens, k, b):
    spread, views, outs = 1 + 0.02 * noise.random(), tokens / 144, 2 + i % 5
    vit, prefill, decode = 5 * views * spread, (1 + b * (0.3 + 0.001 * tokens * k)) * spread, (outs - 1) * (0.2 + 0.3 * b) * spread
    total = 1 + vit + prefill + decode
    return {"sample_id": i, "output_tokens": outs, "actual_num_crops": views - 1, "actual_vision_tokens": tokens, "input_text_tokens": 20 + i % 7,
            "actual_text_tokens": 20 + i % 7, "total_sequence_length": tokens + 21 + i % 7, "accuracy": min(1, (2 + int(5 * noise.random()) + b // 4) / 10),
            "T_vision_total": vit, "T_LLM_prefill": prefill, "T_LLM_decode": decode, "T_total": total, "T_decode_per_token": decode / (outs - 1),
            "TTFT": 1 + vit + prefill, "unaccounted": 0.01, "closure": 0.999, "stages": {"preprocess": 0.99, "vit": vit, "prefill": prefill, "decode": decode},
            "stage_detail": {"vit": stage(vit, views * 40), "prefill": stage(prefill, b * k * tokens * 0.1), "decode": stage(decode, b * 0.2)}}
def sweep(folder, task, sizes, top_ks, blocks):
    noise = random.Random(1)
    os.makedirs(folder, exist_ok=True)
    for place in range(sizes * top_ks * blocks):
        tokens, k, b = 288 + 144 * (place // top_ks // blocks), 1 + place // blocks % top_ks, 2 + 2 * (place % blocks)
        result = {"schema": "vlmprof-sweep-2", "dataset_name": task, "model": "made-up", "device": "cpu: made up", "num_experts": 64, "target_vision_tokens": tokens,
                  "top_k": k, "num_active_blocks": b, "accuracy": 0.5, "per_sample_results": [sample(noise, i, tokens, k, b) for i in range(20)]}
        with open(f"{folder}/{task}_imgsizetokens{tokens}_topk{k}_blocks{b}.json", "w") as f:
            json.dump(result, f)
sweep(sys.argv[1] + "/one", "alpha", 3, 2, 2)
sweep(sys.argv[1] + "/two", "alpha", 3, 2, 2)
sweep(sys.argv[1] + "/two", "beta", 3, 2, 2)
sweep(sys.argv[1] + "/many", "many", 4, 3, 3)
MADE
for name in one two many; do
    shots=() short=()
    [ "$name" != one ] || short=(--screens 4)
    if [ -n "$SHOTS" ]; then mkdir -p "$SHOTS/$name" && shots=(--shots "$SHOTS/$name"); fi
    check "the page of \"$name\" is made" "$PROGRAM" report "$work/$name" --resamples 200 --html="$work/$name.html" \
        && check "the page of \"$name\" in a browser" timeout 300 python3 tests/support/browse.py "$CHROMIUM" "$work/$name.html" ${AXE:+--axe "$AXE"} "${short[@]}" "${shots[@]}"
done
shots=()
if [ -n "$SHOTS" ]; then mkdir -p "$SHOTS/flame" && shots=(--shots "$SHOTS/flame"); fi
check "the page of a profiled request is made" "$PROGRAM" run samples/cat.jpg -p "What animal is this?" --synthetic tiny --profile --num_runs 2 --quiet \
    --html "$work/flame.html" >/dev/null \
    && check "the page of a profiled request in a browser" timeout 300 python3 tests/support/browse.py "$CHROMIUM" "$work/flame.html" --flame ${AXE:+--axe "$AXE"} "${shots[@]}"
# the browser's look must be able to fail
check "a page that is too long is refused" bash -c \
    "! timeout 100 python3 tests/support/browse.py '$CHROMIUM' '$work/many.html' --probe --screens 1 >'$work/long' && grep -q 'screens of 1280 x 800, more than 1' '$work/long'"
printf '<!DOCTYPE html><html lang="en"><title>t</title><body><main><p style="font-size:8px">small</p><p style="margin:0">one</p><p style="margin-top:-1em">two</p></main>' >"$work/bad.html"
check "a page with small letters and a text over another is refused" bash -c \
    "! timeout 100 python3 tests/support/browse.py '$CHROMIUM' '$work/bad.html' --probe >'$work/bad' && grep -q 'letters of 8' '$work/bad' && grep -q 'one over the other' '$work/bad'"
echo "check_page: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
