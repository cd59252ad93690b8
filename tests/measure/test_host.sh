#!/bin/bash
# Compares what info reports about this machine with what the system reports: the processor's name, its threads, memory.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
PROGRAM=${PROGRAM:-./vlmprof} skipped=0
. tests/check.sh
is() { [ "$1" = "$2" ] || { echo "\"$1\", expected \"$2\""; return 1; }; }
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
cpu() { "$PROGRAM" info | sed -n 's/^cpu         //p'; }
"$PROGRAM" info --json >"$work/info.json" 2>"$work/err"
check "info ends well" [ $? -eq 0 ]
name=$(sed -n 's/^model name[[:blank:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1 | LC_ALL=C cut -b1-90)
quoted=$(sed 's/[\\"]/\\&/g' <<<"$name") # as JSON writes it
if [ -n "$name" ]; then
    check "the processor is named as the system names it: $name" grep -qF "\"name\": \"$quoted\"" "$work/info.json"
    check "and in the text" is "$(OMP_NUM_THREADS=2 cpu)" "$name, 2 threads"
    "$PROGRAM" run -p "What?" --synthetic tiny --device cpu --max_new_tokens 1 --json >"$work/run.json" 2>/dev/null
    check "so is the device of a request" grep -qF "\"device\": \"cpu: $quoted, " "$work/run.json"
else skip "/proc/cpuinfo names no processor here"; fi
check "one thread is no threads" grep -q ', 1 thread$' <(OMP_NUM_THREADS=1 cpu)
total_kb=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null)
if [ -n "$total_kb" ]; then check "memory is the system's" grep -q "\"memory_bytes\": $((total_kb * 1024))," "$work/info.json"
else skip "/proc/meminfo has no MemTotal here"; fi
echo "test_host: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
