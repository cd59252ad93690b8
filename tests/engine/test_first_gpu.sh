#!/bin/bash
# slow: the whole first run on the emulated GPU, some minutes
# test_first_gpu.sh: the folder of `make first-gpu-pack`, run on the emulated GPU, finds a planted hang, an illegal access and a wrong value in an expert's,
# an attention's and a decode step's kernel, names each, and still times the stages; an unsteady sum; by times that are made up a slow kernel, and
# nothing else; stopped midway it keeps what it had; with perfect times every ratio is 1.00. Sanitizer and profiler are stand-ins that read their options and
# start the program; torch is the one of PYTHON. Ends with a count line.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
. tests/check.sh
command -v python3 >/dev/null || { echo 'skipped: the first run: no program "python3"'; echo "test_first_gpu: 0 passed, 0 failed, 1 skipped"; exit 0; }
export CUDA_ON_CPU_CAPABILITY=9.0 CUDA_ON_CPU_MULTIPROCESSORS=4 FIRST_GPU_TINY=1 FIRST_GPU_WORDS=dependent
skipped=0
export PYTHONDONTWRITEBYTECODE=1
pack=(make --no-print-directory B="$B" PACK="$work/pack" PACK_PROGRAMS="$B/emulated/vlmprof $B/emulated/first_gpu" "$work/pack/commit")
check "the folder is packed" "${pack[@]}"
run() { FIRST_GPU_OUT=$work/$1 "$work/pack/first_run.sh" >"$work/$1.txt" 2>&1; }

# ---- stand-ins for NVIDIA's tools
mkdir "$work/tools"
cat >"$work/tools/compute-sanitizer" <<'TOOL'
#!/bin/bash
[ "$1" = --tool ] && [[ $2 =~ ^(memcheck|racecheck|synccheck)$ ]] && [ "$3 $4" = "--error-exitcode 9" ] || exit 2
"${@:5}" || exit 1
[ "$2" != synccheck ] || { echo "ERROR SUMMARY: 1 error"; exit 9; }
echo "ERROR SUMMARY: 0 errors"
TOOL
cat >"$work/tools/ncu" <<'TOOL'
#!/bin/bash
while [[ $1 = -* ]]; do
    case $1 in --clock-control|--target-processes|--launch-skip|-k|-c|--metrics) shift 2;; --csv) shift;; *) exit 2;; esac
done
echo '"ID","Kernel Name","dram__bytes.sum"'
exec "$@"
TOOL
[ -z "${PYTHON:-}" ] || printf '#!/bin/bash\nexec "%s" "$@"\n' "$PYTHON" >"$work/tools/python3"
chmod +x "$work"/tools/*
PATH=$work/tools:$PATH

# ---- stopped by force as soon as the instruments were read: the lines that were there are whole
FIRST_GPU_PATIENCE=20 FIRST_GPU_STEPS=7-7 run killed & runner=$!
for i in $(seq 600); do grep -q '"constant": "gap"' "$work/killed/first-gpu.jsonl" 2>/dev/null && break; sleep 0.5; done
kill -9 "$runner" 2>/dev/null
wait "$runner" 2>/dev/null
lines=$(python3 -c 'import json, sys; print(len([json.loads(line) for line in open(sys.argv[1])]))' "$work/killed/first-gpu.jsonl")
check "a run that was killed keeps each line that it had" [ "${lines:-0}" -ge 5 ]
check "and a report can be made of it" bash -c 'python3 tests/bench/gpu/first_report.py "$1" | grep -q "^first run: CUDA on CPU"' - "$work/killed/first-gpu.jsonl"

# ---- each fault in each kind of kernel: the report names the kernel, and has times of all stages by the default or by the library
planted() { # planted FAULT KERNEL STEPS
    local patience=4
    [ "$1" != hang ] || patience=1
    FIRST_GPU_PLANT=$1:$2 FIRST_GPU_STEPS=$3 FIRST_GPU_PATIENCE=$patience FIRST_GPU_TOOLS=none FIRST_GPU_SECONDS=3000 run "$1-$2"
}
named() { # named FAULT KERNEL STATUS
    grep -qE "^$3 $2 " "$work/$1-$2/report.txt" && for stage in vision prefill decode; do
        grep -qE "\"case\": \"stages [a-z]+ (default|library)\".*\"stage\": \"$stage\".*\"stage_ns\": [0-9]" "$work/$1-$2/first-gpu.jsonl" || return 1
    done
}
for fault in hang illegal; do planted $fault k_attention_head128 4-4 & planted $fault k_decode_out 4-4 & planted $fault k_down_wgmma128 9-9 & done
FIRST_GPU_PLANT=wrong:k_down_wgmma128,wrong:k_attention_head128,wrong:k_decode_out,unsteady:vision-fc1 FIRST_GPU_PATIENCE=6 FIRST_GPU_SECONDS=3000 run planted
wait
for kernel in k_attention_head128 k_decode_out k_down_wgmma128; do
    ln -sfn planted "$work/wrong-$kernel"
    check "a hang in $kernel" named hang $kernel HANG
    check "an illegal access in $kernel" named illegal $kernel FAULT
    check "a wrong value in $kernel" named wrong $kernel WRONG
done
check "after a failed canary of the default, the library; of wgmma, neither" bash -c 'grep -q "\"case\": \"stages all library\"" "$1/hang-k_decode_out/first-gpu.jsonl" &&
    grep -q "\"case\": \"stages few wgmma\", \"step\": 9, \"status\": \"SKIPPED\", \"text\": \"the canary of wgmma failed" "$1/illegal-k_down_wgmma128/first-gpu.jsonl"' - "$work"
check "only the steps that were wanted" bash -c '! grep -qE "\"step\": ([2-8]|1[0-2]), \"(status\": \"[^S]|case\": \"[^y])" "$1/hang-k_down_wgmma128/first-gpu.jsonl"' - "$work"
jsonl=$work/planted/first-gpu.jsonl
inside() { tar xzOf "$work"/planted/first-gpu-*.tar.gz "$1"; }
check "every line is whole" python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$jsonl"
check "three files are left, the archive below 2 MB" bash -c 'set -- "$1"/*; [ $# -eq 3 ] && [ "$(stat -c %s "$1")" -lt 2000000 ]' - "$work/planted"
check "the archive has lines, report and logs" [ "$(tar tzf "$work"/planted/first-gpu-*.tar.gz | grep -cxE "first-gpu.jsonl|report.txt|log/info.txt|log/selftest.txt")" = 4 ]
check "each case of the list has a line" bash -c 'cut -d" " -f3- | while read -r name; do grep -qF "\"case\": \"$name\"" "$1" || exit 1; done' - "$jsonl" < <(inside log/cases.txt)
check "the selftest ran, with the switch" grep -q '"case": "selftest", "step": 2, "status": "OK"' "$jsonl"
check "each tool ran" [ "$(grep -cE '"case": "(memcheck|racecheck|counters-prefill|counters-decode)", "step": 1[01], "status": "OK"' "$jsonl")" = 4 ]
check "what a tool found is a fault" grep -q '"case": "synccheck", "step": 10, "status": "FAULT", "text": "exit 9; ERROR SUMMARY: 1 error' "$jsonl"
check "the counters are in the archive" bash -c 'text=$(cat) && grep -q dram__bytes <<<"$text" && grep -q "\"status\": \"OK\"" <<<"$text"' < <(inside log/counters-decode.txt)
if python3 -c 'import torch' 2>/dev/null; then
    check "torch's times are there, and stand next to ours" bash -c 'grep -q "\"step\": 12, .*\"yardstick_ns\": [0-9]" "$1" && sed "1,/^kernel /d" "$2" | grep -qE " [0-9.]+ x "' \
        - "$jsonl" "$work/planted/report.txt"
else
    echo 'skipped: the yardstick of the first run: python3 has no torch'
    skipped=1
fi
check "at most 40 lines are printed" [ "$(wc -l <"$work/planted/report.txt")" -le 40 ]

# ---- times that are made up: those that are predicted, and for one kernel twice that
made_up() { # made_up OUT FACTOR: planted's lines so; FACTOR 1: without the faults
    python3 - "$jsonl" "$1" "$2" <<'PYTHON'
import json, sys
sys.path.insert(0, "tests/bench/gpu")
import first_report, predict
rows, factor = first_report.read(sys.argv[1]), float(sys.argv[3])
counts, chip = predict.loop_counts(first_report.GATES), first_report.chip_of(rows)[0]
with open(sys.argv[2], "w") as out:
    for row in rows:
        if factor == 1 and row["status"] in ("HANG", "FAULT"):
            continue
        if factor == 1 and row["status"] != "SKIPPED":
            row["status"] = "OK"
        if row.get("constant") in predict.CONSTANTS:
            row["value"] = predict.CONSTANTS[row["constant"]][0]
        if row.get("constant") == "memory":
            row["value"] = predict.CHIPS[chip]
        predicted = first_report.predicted_ns(row, counts, chip) if row.get("launches") else None
        for key in ("ns", "kernel_ns"):
            if key in row and predicted:
                row[key] = predicted * (factor if row["case"] == "linear prefill-qkv 3/482 default" else 1)
        out.write(json.dumps(row) + "\n")
PYTHON
}
made_up "$work/perfect.jsonl" 1
python3 tests/bench/gpu/first_report.py "$work/perfect.jsonl" >"$work/perfect.txt"
check "perfect times: no defect" grep -q '^first run: .* 0 defects' "$work/perfect.txt"
rows() { sed '1,/^kernel /d;/^constant /,$d' "$work/perfect.txt"; }
check "perfect times: kernels of several kinds are listed" [ "$(rows | awk '{ print $1 }' | sort -u | wc -l)" -ge 8 ]
check "perfect times: every ratio is 1.00" [ "$(rows | grep -cE ' 1\.00   1\.00 ')" = "$(rows | wc -l)" ]
check "perfect times: nothing is flagged" bash -c '! grep -qE "wrong|worse|outside" "$1"' - "$work/perfect.txt"
check "perfect times: every constant's ratio is 1.00" [ "$(sed '1,/^constant /d;/^skipped/d' "$work/perfect.txt" | grep -c ' 1\.00 ')" = "$(sed '1,/^constant /d;/^skipped/d' "$work/perfect.txt" | wc -l)" ]
made_up "$work/slow.jsonl" 2
python3 tests/bench/gpu/first_report.py "$work/slow.jsonl" >"$work/slow.txt"
check "the unsteady sum is that of fc1" grep -qE '^NONDETERMINISTIC gemm_bias .*tuned' "$work/slow.txt"
check "the slow one is twice what was predicted" grep -qE '^SLOW gemm .* 2\.00 x predicted' "$work/slow.txt"
sed 's/"stage_shape": "[^"]*"/"stage_shape": "13\/1922"/' "$work/slow.jsonl" >"$work/choose.jsonl"
check "gpu-choose says what becomes of a switch" bash -c 'make gpu-choose FILE="$1" | grep -qE "^dependent   decode .*(becomes the default|can go)"' - "$work/choose.jsonl"

# ---- the folder by itself; without a network where this user may take it away, and with little time
check "it has all that it needs" bash -c 'cd "$1" && ls first_run.sh first_report.py predict.py gates.txt yardstick.py vlmprof first_gpu commit lib/libgomp.so.1' - "$work/pack"
alone=()
unshare -n true 2>/dev/null && alone=(unshare -n)
check "it runs by itself, and ends when its time is over" bash -c 'cd "$1" && FIRST_GPU_SECONDS=12 FIRST_GPU_TOOLS=none "${@:2}" ./first_run.sh >out.txt 2>&1; grep -q "^send back: .*first-gpu-CUDAonCPUemulated-$(cat commit).tar.gz" out.txt' \
    - "$work/pack" "${alone[@]}"
check "what ends for want of time is no defect" grep -q "^first run: CUDA on CPU.* 0 defects" "$work/pack/out.txt"
check "the first lines are results, the last ones say that no time was left" bash -c 'head -n 2 "$1" | grep -q "\"status\": \"OK\"" && tail -n 3 "$1" | grep -q SKIPPED' - "$work/pack/first-gpu/first-gpu.jsonl"
rm "$work/pack/commit"
check "a folder that is too large is an error" bash -c '! "$@"' - "${pack[@]}" PACK_MOST_MB=1
echo "test_first_gpu: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
