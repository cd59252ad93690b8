#!/bin/bash
# slow: quick test programs once on each strange machine
# strange_machines.sh [PROGRAM...]: runs test programs (default: quick ones that look at what is strange) and some commands of $PROGRAM on machines
# as other people have them: made-up processors, one core, many threads, no AVX, root or not, no network, other locales, time zones, homes and
# temporary folders, tools that are missing, the variables of a launcher or a proxy. A program may skip there, and must not fail; a command must
# print what it prints on the machine unchanged. A machine that cannot be made here is a skip with its reason. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
export B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof} VLMPROF_TEST_SYSTEM=/dev/null OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000
. tests/check.sh
skipped=0
asked=("$@")
# the test programs that look at a part of their machine
cpu="command_info noise tests/measure/test_host.sh"
user="checkpoint console file files journal merge"
network="endpoint server"
words="command_tile command_tokenize document json locale options report_text score"
launcher="launcher ranks"
folders="file files portable plan provenance request"
chmod 755 "$work"
mkdir -m 1777 "$work/tmp"
export TMPDIR=$work/tmp
if [ "$(id -u)" = 0 ]; then spaces=(unshare) own_network=(unshare -n); else spaces=(unshare -r) own_network=(unshare -rn); fi
skip() { echo "skipped: $1: $2"; skipped=$((skipped + 1)); }

# What commands print that must not depend on the machine.
commands() {
    "$@" "$PROGRAM" tile 640x480 4032x3024 33x900 --compare internvl,gemma3,qwen3-vl --csv
    "$@" "$PROGRAM" tile samples/cat.jpg --json
    "$@" "$PROGRAM" report "$work/results" --csv
    "$@" "$PROGRAM" report "$work/results" --resamples 50
    "$@" "$PROGRAM" tokenize --tokenizer tests/golden/tokenizer/small-tokenizer.json "What is 1.5 + 2,5?"
    "$@" "$PROGRAM" run --synthetic tiny -p "What?" --max_new_tokens 3 --device cpu --gemm plain --weights fp32 --json --quiet |
        grep -E '"(output_token_ids|answer)"'
} </dev/null 2>&1
cp -r tests/golden/journals "$work/results"
"$PROGRAM" merge "$work/results" --quiet
commands env >"$work/wanted"
check "commands print something" [ "$(wc -l <"$work/wanted")" -gt 100 -a "$(grep -c output_token_ids "$work/wanted")" = 1 ]

# machine NAME TESTS PREFIX...: tests and commands, each started behind PREFIX
machine() {
    local name=$1 tests=($2) program counts
    shift 2
    if [ -n "$ONLY" ] && [[ $name != $ONLY ]]; then return; fi
    if [ ${#asked[@]} -gt 0 ]; then tests=("${asked[@]}"); fi
    for program in "${tests[@]}"; do
        [[ $program == */* ]] || program=$B/tests/test_$program
        timeout 300 "$@" "$program" </dev/null >"$work/log" 2>&1
        counts=$(grep -aE '^[^ ]+: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/log" | tail -n 1)
        [[ $counts == *" 0 failed, "* ]] && ! grep -aq '^FAILED' "$work/log"
        if ! check "$name: ${program##*/}" [ $? -eq 0 ]; then
            grep -aE '^FAILED' "$work/log" | head -n 5
            tail -n 2 "$work/log"
        fi
    done
    commands "$@" >"$work/got"
    check "$name: commands print the same" diff "$work/wanted" "$work/got"
}
# can NAME PROBE...: the probe succeeds, else the machine is skipped with what it says
can() {
    local name=$1 said
    shift
    if ! command -v "$1" >/dev/null; then skip "$name" "no program \"$1\""; return 1; fi
    said=$("$@" 2>&1 >/dev/null </dev/null) && return 0
    said=${said%%$'\n'*}
    skip "$name" "${said:-$* fails}"
    return 1
}
# mounted SETUP...: a machine whose file system was changed by the shell command SETUP
mounted() {
    printf '%s\nexec "$@"\n' "$1" >"$work/setup"
    prefix=("${spaces[@]}" -m bash -e "$work/setup")
}

# ---- processors: $work/cpuinfo in the place of /proc/cpuinfo
processor() {
    local name=$1
    cat >"$work/cpuinfo"
    mounted "mount --bind '$work/cpuinfo' /proc/cpuinfo"
    can "$name" "${prefix[@]}" true && machine "$name" "$cpu" "${prefix[@]}"
}
processor "a name with the marks of expressions" <<<'model name	: Intel(R) Xeon(R) CPU+ @ 2.20GHz [a*b] \1 $x {2} ^a|b? 100% "q" & <i> /s'
processor "a name with blanks at its ends" <<<'model name	:        Intel(R) Pentium(R) 4 CPU 3.00GHz   '
processor "a long name" < <(printf 'model name\t: %0300d\n' 7)
processor "ARM: no name, two kinds of cores" < <(for part in d05 d05 d0b; do printf 'processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0x%s\n\n' $part; done)
processor "64 cores of an unknown ARM" < <(for core in {0..63}; do printf 'processor\t: %d\nCPU implementer\t: 0x99\nCPU part\t: 0x999\n\n' $core; done)
processor "an empty cpuinfo" </dev/null
printf 'MemTotal:       2113929216 kB\nMemFree:        1000000000 kB\n' >"$work/meminfo"
mounted "mount --bind '$work/meminfo' /proc/meminfo"
name="2 TB, a system that does not tell what is available"
can "$name" "${prefix[@]}" true && machine "$name" "$cpu" "${prefix[@]}"
mounted "mount -t tmpfs none /sys"
can "no /sys" "${prefix[@]}" true && machine "no /sys" "$cpu" "${prefix[@]}"

# ---- cores and instructions
core=$(taskset -cp $$ 2>/dev/null | sed -nE 's/.*: *([0-9]+).*/\1/p')
can "one core" taskset -c "${core:-0}" true && machine "one core" "$cpu" taskset -c "$core"
machine "64 threads" "noise tests/measure/test_host.sh" env OMP_NUM_THREADS=64
machine "one thread" "$cpu" env OMP_NUM_THREADS=1
# an emulator that knows no AVX-512, and AVX where asked for; scripts and what a test starts are not emulated
for pair in "no AVX: Nehalem" "AVX2 and no AVX-512: max"; do
    if can "${pair%:*}" qemu-x86_64 -cpu "${pair#*: }" "$PROGRAM" --version; then machine "${pair%:*}" "tiler" qemu-x86_64 -cpu "${pair#*: }"; fi
done

# ---- users
if [ "$(id -u)" = 0 ]; then
    nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent)
    can "not root" "${nobody[@]}" test -r Makefile -a -x "$PROGRAM" -a -x "$work" && machine "not root" "$user $folders" "${nobody[@]}"
    skip "root by a name space" "this user is root already"
else
    skip "not root" "this user is not root already"
    can "root by a name space" unshare -r true && machine "root by a name space" "$user" unshare -r
fi
machine "files for nobody else" "$user $folders" bash -c 'umask 077; exec "$@"' -

# ---- network
lonely=("${own_network[@]}" bash -c 'ip link set lo up && exec "$@"' -)
can "no network" "${lonely[@]}" true && machine "no network" "$network" "${lonely[@]}"
can "no loopback either" "${own_network[@]}" true && machine "no loopback either" "$network" "${own_network[@]}"
machine "a proxy" "$network" env http_proxy=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 no_proxy=

# ---- locales, time, terminal
mkdir "$work/locales"
for name in de_DE.UTF-8 tr_TR.UTF-8; do
    if can "$name" localedef -i ${name%.*} -f UTF-8 "$work/locales/$name"; then machine "$name" "$words" env LOCPATH="$work/locales" LC_ALL=$name LANGUAGE=${name%_*}; fi
done
machine "the locale C" "$words" env LC_ALL=C
machine "a locale that is not there" "command_tile document" env LC_ALL=xx_YY.UTF-8
machine "a time zone 14 hours east" "$folders report_text" env TZ=EAST-14
machine "a terminal of two columns" "console document report_text" env TERM=dumb COLUMNS=2 LINES=1
machine "colours wanted and not" "console document" env CLICOLOR_FORCE=1 FORCE_COLOR=1 NO_COLOR=1
can "a terminal" script -qec true /dev/null && machine "a terminal" "console document options" bash -c 'script -qefc "$(printf "%q " "$@")" /dev/null </dev/null | tr -d "\r"; exit "${PIPESTATUS[0]}"' -
can "no terminal at all" setsid true && machine "no terminal at all" "console document" setsid -w

# ---- environment
machine "no environment" "$launcher files portable plan" env -i PATH="$PATH" B="$B" PROGRAM="$PROGRAM" TMPDIR="$TMPDIR"
machine "no home" "$folders endpoint" env -u HOME
machine "a home that cannot be written" "$folders endpoint" env HOME=/proc XDG_CONFIG_HOME=/proc XDG_CACHE_HOME=/proc XDG_RUNTIME_DIR=/proc
machine "a rank of torchrun" "$launcher plan_cost plan" env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2
machine "a step of srun" "$launcher plan" env SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1
machine "a key" "$network" env OPENAI_API_KEY=sk-somebody VLLM_API_KEY=sk-somebody
machine "POSIX's tools" "document tests/measure/test_host.sh tests/kernels/test_gpu_report.sh" env POSIXLY_CORRECT=1
machine "other folders first" "tests/measure/test_host.sh $folders" env CDPATH=/usr:/tmp GREP_COLORS='mt=01;31' GREP_OPTIONS= LS_COLORS= QUOTING_STYLE=c TIME_STYLE=full-iso BLOCKSIZE=1M

# ---- temporary folders
long=$work/tmp/$(printf 'a%.0s' {1..60})/$(printf 'b%.0s' {1..60})
mkdir -p "$long" "$work/tmp/two  blanks" "$work/tmp/\$HOME [a-z]*"
machine "a long TMPDIR" "$user $folders" env TMPDIR="$long"
machine "a TMPDIR with blanks" "$user $folders best tests/kernels/test_gpu_report.sh" env TMPDIR="$work/tmp/two  blanks"
machine "a TMPDIR with a dollar and brackets" "$user $folders" env TMPDIR="$work/tmp/\$HOME [a-z]*"
machine "no TMPDIR" "$folders" env -u TMPDIR
mkdir "$work/my code"
mounted "mount --bind '$PWD' '$work/my code'; cd '$work/my code'"
can "a repository in a folder with blanks" "${prefix[@]}" true && machine "a repository in a folder with blanks" "$folders tests/measure/test_host.sh" "${prefix[@]}"

# ---- tools: bash, the tools that every system has, the compiler, and nothing else
mkdir "$work/bin"
for tool in bash sh env cat head tail cut sort uniq wc tr ls mkdir rm mv cp ln chmod touch date dirname basename mktemp sleep seq tee cmp diff printf \
    test true false expr id rmdir nproc realpath readlink stat df du timeout xargs paste comm uname od install find grep sed awk gawk mawk cc gcc g++ as ld ar make; do
    if path=$(type -ap $tool | grep -v ccache | head -n 1) && [ -x "$path" ]; then ln -s "$(realpath "$path")" "$work/bin/$tool"; fi
done
machine "few tools" "tests/trace/test_nvtx.sh tests/trace/test_cupti.sh tests/commands/test_install.sh tests/measure/test_host.sh
    server" env PATH="$work/bin" CC=cc NVCC=

# ---- an nvcc that compiles nothing, and no GPU: make leaves GPU code out, and says so; GPU=1 builds it
mkdir "$work/cuda"
printf '#!/bin/sh\nexit 1\n' >"$work/cuda/nvcc"
chmod 755 "$work/cuda/nvcc"
name="an nvcc and no GPU"
machine "$name" "command_info tests/measure/test_host.sh" env PATH="$work/cuda:$PATH" NVCC="$work/cuda/nvcc"
if [ -n "$(make -pn help | sed -n 's/^GPU_DRIVER := //p')" ]; then skip "$name: make demo" "there is a GPU here"
elif [ -z "$ONLY" ] || [[ $name == $ONLY ]]; then
    for goal in all demo test; do
        check "$name: make $goal compiles no GPU code" bash -c 'make -n "$1" B="$2/new" NVCC="$2/cuda/nvcc" >"$2/made" && grep -q "cli.c" "$2/made" && ! grep -q vlmprof_cuda "$2/made"' - $goal "$work"
    done
    check "$name: make says so" grep -q "no NVIDIA driver here: make GPU=1 adds" <(make -n all NVCC="$work/cuda/nvcc")
    check "$name: GPU=1 compiles it" grep -q vlmprof_cuda <(make -n all GPU=1 B="$work/new" NVCC="$work/cuda/nvcc")
fi

echo "strange_machines: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
