#!/bin/bash
# first_run.sh [OUT FIRST_GPU VLMPROF]: everything that ten minutes on a GPU can show, in one file that is sent back: OUT/first-gpu-CHIP-COMMIT.tar.gz. In the folder
# of `make first-gpu-pack` no argument is needed. Nothing is downloaded.
#
# Each case of first_gpu is a process of its own under `timeout`; its lines are appended to first-gpu.jsonl at once, so a hang costs one line and a stop
# in the middle nothing that was found before. A case that fails runs again with CUDA_LAUNCH_BLOCKING=1, which names the kernel. FIRST_GPU_SECONDS
# (default 575) is all it may take: counters (ncu) and the yardstick (torch) are left out first. For trials: FIRST_GPU_TINY=1 takes small shapes,
# FIRST_GPU_PATIENCE=N gives a case or tool N times its seconds, FIRST_GPU_TOOLS=none leaves out sanitizer, counters and yardstick.
here=$(cd "$(dirname "$0")" && pwd)
commit=$(cat "$here/commit" 2>/dev/null || git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
out=${1:-$PWD/first-gpu} first=$(realpath "${2:-$here/first_gpu}") vlmprof=$(realpath "${3:-$here/vlmprof}")
limit=${FIRST_GPU_SECONDS:-575}
tiny=${FIRST_GPU_TINY:+--tiny}
[ -x "$first" ] && [ -x "$vlmprof" ] || { echo "first_run.sh: $first and $vlmprof must be programs" >&2; exit 2; }
mkdir -p "$out/log" && cd "$out" || exit 5
: >first-gpu.jsonl
# cuBLAS and CUPTI may be those of Python's packages
for folder in $(python3 -c 'import glob, sys; print(*[f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")], sep="\n")' 2>/dev/null) \
    /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64; do
    [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH

left() { echo $((limit - SECONDS)); }
quoted() { tr -d '\\"' <<<"$1" | tr -c '[:print:]' ' ' | sed 's/ *$//'; } # as the inside of a JSON string
line() { printf '{"case": "%s", "step": %s, "status": "%s", "text": "%s", "seconds": %s}\n' "$(quoted "$1")" "$2" "$3" "$(quoted "${4:0:400}")" "$5" >>first-gpu.jsonl; }
# one case: within SECONDS, and within the time that remains; 125: that was less, and is over
attempt() { # attempt SECONDS COMMAND..: its output in log/out and log/err
    local seconds=$1 most status
    shift
    most=$(left)
    [ "$most" -gt 0 ] || { : >log/out; : >log/err; return 125; }
    timeout -k 5 $((seconds < most ? seconds : most)) "$@" >log/out 2>log/err </dev/null
    status=$?
    if [ "$most" -lt "$seconds" ] && { [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; }; then return 125; fi
    return "$status"
}
run_case() { # run_case STEP SECONDS CASE..
    local step=$1 seconds=$(($2 * ${FIRST_GPU_PATIENCE:-1})) status since=$SECONDS text
    shift 2
    attempt "$seconds" "$first" $tiny "$@"
    status=$?
    sed "s/^{/{\"step\": $step, /" log/out >>first-gpu.jsonl
    cat log/err >>log/errors.txt
    [ "$status" -eq 0 ] && return
    if [ "$status" -eq 125 ]; then line "$*" "$step" SKIPPED "no time left" 0; return; fi
    text=$(tail -n 1 log/err)
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        line "$*" "$step" HANG "no end after $seconds s; ${text:-nothing on stderr}" $((SECONDS - since))
        return
    fi
    # again, each launch waited for: the error is then that of the kernel itself
    attempt "$seconds" env CUDA_LAUNCH_BLOCKING=1 "$first" $tiny "$@"
    line "$*" "$step" FAULT "exit $status; ${text:-nothing on stderr}; with CUDA_LAUNCH_BLOCKING=1: $(tail -n 1 log/err)" $((SECONDS - since))
}
tool() { # tool STEP SECONDS NAME COMMAND..: a program that may be missing
    local step=$1 seconds=$(($2 * ${FIRST_GPU_PATIENCE:-1})) name=$3 status since=$SECONDS
    shift 3
    { [ "${FIRST_GPU_TOOLS:-}" != none ] || [ "$name" = selftest ]; } && command -v "$1" >/dev/null || { line "$name" "$step" SKIPPED "no program $1" 0; return; }
    attempt "$seconds" "$@"
    status=$?
    cat log/out log/err >"log/$name.txt"
    case $status in
        0) line "$name" "$step" OK "$(tail -n 1 log/out)" $((SECONDS - since));;
        124|137) line "$name" "$step" HANG "no end after $((SECONDS - since)) s; $(tail -n 1 log/err)" $((SECONDS - since));;
        125) line "$name" "$step" SKIPPED "no time left" 0;;
        *) line "$name" "$step" FAULT "exit $status; $(tail -n 1 log/out) $(tail -n 1 log/err)" $((SECONDS - since));;
    esac
}
finish() {
    local chip
    trap - EXIT INT TERM
    [ -z "$clocks" ] || kill "$clocks" 2>/dev/null
    rm -f log/out log/err
    chip=$(sed -n 's/.*"gpu": "\([^"]*\)".*/\1/p' first-gpu.jsonl | head -n 1 | tr -cd 'A-Za-z0-9')
    if command -v python3 >/dev/null; then python3 "$here/first_report.py" first-gpu.jsonl | tee report.txt
    else echo "no python3 here: python3 first_report.py first-gpu.jsonl makes the report elsewhere"; fi
    for file in log/*; do [ "$(stat -c %s "$file")" -le 200000 ] || { tail -c 200000 "$file" >"$file.end"; mv "$file.end" "$file"; }; done
    tar czf "first-gpu-${chip:-unknown}-$commit.tar.gz" first-gpu.jsonl $(ls report.txt 2>/dev/null) log
    echo "send back: $out/first-gpu-${chip:-unknown}-$commit.tar.gz ($(($(stat -c %s "first-gpu-${chip:-unknown}-$commit.tar.gz") / 1000)) kB)"
}
trap finish EXIT
trap 'exit 130' INT TERM

clocks=
if command -v nvidia-smi >/dev/null; then
    timeout -k 2 10 nvidia-smi -q >log/nvidia-smi.txt 2>&1
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active --format=csv -l 1 >log/clocks.csv 2>&1 &
    clocks=$!
fi
timeout 20 "$vlmprof" info >log/info.txt 2>&1
line "$(tail -n 1 log/info.txt)" 0 INFO "commit $commit; $(grep -m 1 -i gpu log/info.txt)" "$SECONDS"
"$first" $tiny list >log/cases.txt || exit 4
steps() { # steps FIRST LAST: the cases of these steps
    local step seconds words
    while read -r step seconds words; do
        if [ "$step" -ge "$1" ] && [ "$step" -le "$2" ]; then run_case "$step" "$seconds" $words; fi
    done <log/cases.txt
}
steps 0 2
tool 3 60 selftest "$vlmprof" selftest --device cuda ${FIRST_GPU_WORDS:+--gpu $FIRST_GPU_WORDS}
steps 3 5
small=$(awk '$1 == 2 && /skewed default/ { $1 = $2 = ""; print; exit }' log/cases.txt)
for check in memcheck racecheck synccheck; do tool 6 25 "$check" compute-sanitizer --tool "$check" --error-exitcode 9 "$first" --tiny $small; done
steps 9 9
if [ "$(left)" -gt 45 ]; then
    tool 7 40 counters ncu --clock-control none --target-processes all -k 'regex:k_(gate_up|experts|down|linear|attention)' -c 5 --metrics \
        dram__bytes.sum,lts__t_bytes.sum,sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active,gpu__time_duration.sum --csv "$first" $tiny $small
else line counters 7 SKIPPED "no time left" 0; fi
if [ "${FIRST_GPU_TOOLS:-}" != none ] && [ "$(left)" -gt 25 ] && timeout $((20 * ${FIRST_GPU_PATIENCE:-1})) python3 -c 'import torch' 2>/dev/null; then
    tool 8 30 yardstick python3 "$here/yardstick.py"
    grep '^{' log/yardstick.txt | sed 's/^{/{"step": 8, /' >>first-gpu.jsonl
else line yardstick 8 SKIPPED "no torch, or no time left" 0; fi
