#!/bin/bash
# first_run.sh: everything that ten minutes on a GPU can show, the most telling first, in the folder that `make first-gpu-pack` made. Nothing is downloaded or
# built. It leaves three files in FIRST_GPU_OUT (default ./first-gpu): first-gpu.jsonl, report.txt, and both with logs as first-gpu-CHIP-COMMIT.tar.gz.
#
# Steps: 0 identity, 1 canaries, 2 selftest, 3 library against default, 4 stages of the whole model, 5 attention and decode over 1,922 keys, 6 profile,
# 7 instruments, 8 kernels, 9 ways, 10 sanitizers, 11 counters (ncu), 12 yardstick (torch). FIRST_GPU_STEPS=A-B takes some, always with 0 and 1, so that
# two calls can split the time; the report then wants both files. FIRST_GPU_SECONDS (default 575) is all that a call may take.
# Each case of first_gpu is a process of its own under `timeout`; its lines are appended to first-gpu.jsonl at once, so a hang costs one line and a stop
# in the middle nothing that was found before. A case that fails or hangs runs again with CUDA_LAUNCH_BLOCKING=1, which names the kernel. If the canary
# of a way fails, later cases do without it: those of the default take `library`, others are left out. After a hang, cases of its kind are left out.
# For trials: FIRST_GPU_TINY=1 takes small shapes, FIRST_GPU_PATIENCE=N gives a case or tool N times its seconds, FIRST_GPU_TOOLS=none leaves out tools.
here=$(cd "$(dirname "$0")" && pwd)
commit=$(cat "$here/commit" 2>/dev/null || echo unknown)
out=${FIRST_GPU_OUT:-$PWD/first-gpu} first=$here/first_gpu vlmprof=$here/vlmprof
limit=${FIRST_GPU_SECONDS:-575} from=${FIRST_GPU_STEPS%-*} to=${FIRST_GPU_STEPS#*-} patience=${FIRST_GPU_PATIENCE:-1}
tiny=${FIRST_GPU_TINY:+--tiny}
[ -x "$first" ] && [ -x "$vlmprof" ] || { echo "first_run.sh: $first and $vlmprof must be programs" >&2; exit 2; }
log=$(mktemp -d)/log
mkdir -p "$out" "$log" && out=$(cd "$out" && pwd) && cd "${log%/log}" || exit 5
jsonl=$out/first-gpu.jsonl
: >"$jsonl"
# cuBLAS and CUPTI may be those of Python's packages; libgomp is in the folder
for folder in $(python3 -c 'import glob, sys; print(*[f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib")], sep="\n")' 2>/dev/null) \
    /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 "$here/lib"; do
    [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH

left() { echo $((limit - SECONDS)); }
quoted() { tr -d '\\"' <<<"$1" | tr -c '[:print:]' ' ' | sed 's/ *$//'; } # as the inside of a JSON string
line() { printf '{"case": "%s", "step": %s, "status": "%s", "text": "%s", "seconds": %s}\n' "$(quoted "$1")" "$2" "$3" "$(quoted "${4:0:400}")" "$5" >>"$jsonl"; }
# one case: within SECONDS, and within the time that remains; 125: that was less, and is over
attempt() { # attempt SECONDS COMMAND..: its output in log/out and log/err
    local seconds=$1 most status
    shift
    most=$(left)
    : >log/out; : >log/err
    [ "$most" -gt 0 ] || return 125
    timeout -k 5 $((seconds < most ? seconds : most)) "$@" >log/out 2>log/err </dev/null
    status=$?
    [ "$status" -ne 137 ] || status=124
    if [ "$most" -lt "$seconds" ] && [ "$status" -eq 124 ]; then return 125; fi
    return "$status"
}
broken=' ' hung=' '
run_case() { # run_case STEP SECONDS CASE..
    local step=$1 seconds=$(($2 * patience)) status since=$SECONDS text='' kind='' name word
    shift 2
    name=" $* "
    # these judge a way's own kernels, whatever became of its canary
    if ! [[ $1 =~ ^(canary|compare|experts)$ ]]; then
        [[ $broken != *" default "* ]] || name=${name/ default / library }
        for word in $broken; do [[ $name != *" $word "* ]] || text="the canary of $word failed"; done
    fi
    [[ $broken != *" default "* ]] || [ "$step" -ne 9 ] || [[ $name = *" library "* ]] || text="the canary of default failed"
    set -- $name
    for word; do [[ $word = */* ]] || kind+=/$word; done
    [[ $hung != *" $kind "* ]] || text="one of $kind hung"
    [ "$(left)" -gt 0 ] || text="no time left"
    if [ -n "$text" ]; then line "$*" "$step" SKIPPED "$text" 0; return; fi
    attempt "$seconds" "$first" $tiny "$@"
    status=$?
    sed "s/^{/{\"step\": $step, /" log/out >>"$jsonl"
    cat log/err >>log/errors.txt
    [ "$1" != canary ] || grep -q '"status": "OK"' log/out || broken+="$2 "
    [ "$status" -ne 0 ] || return
    text="exit $status; $(tail -n 1 log/err)"
    [ "$status" -ne 124 ] || { hung+="$kind "; text="no end after $seconds s; $(tail -n 1 log/err)"; }
    if [ "$status" -eq 125 ]; then line "$*" "$step" SKIPPED "no time left" 0; return; fi
    # again, each launch waited for: the error is then that of the kernel itself
    attempt $((seconds < 10 * patience ? seconds : 10 * patience)) env CUDA_LAUNCH_BLOCKING=1 "$first" $tiny "$@"
    line "$*" "$step" "$([ "$status" -eq 124 ] && echo HANG || echo FAULT)" "$text; with CUDA_LAUNCH_BLOCKING=1: $(tail -n 1 log/err)" $((SECONDS - since))
}
tool() { # tool STEP SECONDS NAME COMMAND..: a program that may be missing. Only the selftest's own end is one of ours: a tool that ends nowhere is slow
    local step=$1 seconds=$(($2 * patience)) name=$3 status since=$SECONDS
    shift 3
    wanted "$step" || return
    { [ "${FIRST_GPU_TOOLS:-}" != none ] || [ "$name" = selftest ]; } && command -v "$1" >/dev/null || { line "$name" "$step" SKIPPED "no program $1" 0; return; }
    attempt "$seconds" "$@"
    status=$?
    cat log/out log/err >"log/$name.txt"
    case $status in
    0) line "$name" "$step" OK "$(tail -n 1 log/out)" $((SECONDS - since));;
    124) line "$name" "$step" "$([ "$name" = selftest ] && echo HANG || echo SKIPPED)" "no end after $((SECONDS - since)) s; $(tail -n 1 log/err)" $((SECONDS - since));;
    125) line "$name" "$step" SKIPPED "no time left" 0;;
    *) line "$name" "$step" FAULT "exit $status; $(tail -n 1 log/out) $(tail -n 1 log/err)" $((SECONDS - since));;
    esac
}
finish() {
    local chip
    trap - EXIT INT TERM
    [ -z "$clocks" ] || kill "$clocks" 2>/dev/null
    rm -f log/out log/err
    chip=$(sed -n 's/.*"gpu": "\([^"]*\)".*/\1/p' "$jsonl" | head -n 1 | tr -cd 'A-Za-z0-9')
    if command -v python3 >/dev/null; then python3 "$here/first_report.py" "$jsonl" | tee "$out/report.txt"
    else echo "no python3 here: python3 first_report.py first-gpu.jsonl makes the report elsewhere"; fi
    for file in log/*; do [ "$(stat -c %s "$file")" -le 200000 ] || { tail -c 200000 "$file" >"$file.end"; mv "$file.end" "$file"; }; done
    cp "$out"/first-gpu.jsonl "$out"/report.txt . 2>/dev/null
    tar czf "$out/first-gpu-${chip:-unknown}-$commit.tar.gz" -- *
    rm -r "${log%/log}"
    echo "send back: $out/first-gpu-${chip:-unknown}-$commit.tar.gz ($(($(stat -c %s "$out/first-gpu-${chip:-unknown}-$commit.tar.gz") / 1000)) kB)"
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
wanted() { [ "$1" -le 1 ] || { [ "$1" -ge "${from:-0}" ] && [ "$1" -le "${to:-99}" ]; }; }
steps() { # steps FIRST LAST: the cases of these steps
    local step seconds words
    while read -r step seconds words; do
        if [ "$step" -ge "$1" ] && [ "$step" -le "$2" ] && wanted "$step"; then run_case "$step" "$seconds" $words; fi
    done <log/cases.txt
}
steps 0 1
tool 2 60 selftest "$vlmprof" selftest --device cuda ${FIRST_GPU_WORDS:+--gpu $FIRST_GPU_WORDS}
steps 3 9
safe=default
[[ $broken != *" default "* ]] || safe=library
tool 10 90 memcheck compute-sanitizer --tool memcheck --error-exitcode 9 "$vlmprof" selftest --device cuda --synthetic tiny
tool 10 25 racecheck compute-sanitizer --tool racecheck --error-exitcode 9 "$first" --tiny decode
tool 10 25 synccheck compute-sanitizer --tool synccheck --error-exitcode 9 "$first" --tiny canary $safe
# of the real model: after 21 layers of vision its last attention and two blocks of prefill; after the prompt's last row a block of a decode step
metrics=sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active,dram__bytes.sum,gpu__time_duration.sum
counted() { # counted NAME REGEX SKIP COUNT
    tool 11 60 "$1" ncu --clock-control none --target-processes all -k "regex:$2" --launch-skip "$3" -c "$4" --metrics $metrics --csv "$first" $tiny once $safe
}
counted counters-prefill 'k_(attention_head|experts_(gate_up|down))' 21 7
counted counters-decode k_decode 8 8
if wanted 12 && [ "${FIRST_GPU_TOOLS:-}" != none ] && [ "$(left)" -gt 25 ] && timeout $((20 * patience)) python3 -c 'import torch' 2>/dev/null; then
    tool 12 30 yardstick python3 "$here/yardstick.py"
    grep '^{' log/yardstick.txt | sed 's/^{/{"step": 12, /' >>"$jsonl"
else line yardstick 12 SKIPPED "no torch, not wanted, or no time left" 0; fi
