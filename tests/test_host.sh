#!/bin/bash
# What info says of this machine against what the system says: the processor's name, its threads, memory.
cd "$(dirname "$0")/.." || exit 1
PROGRAM=${PROGRAM:-./vlmprof} skipped=0
. tests/check.sh
name=$(sed -n 's/^model name[[:blank:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1 | cut -c1-90)
"$PROGRAM" info --json >"$work/info.json" 2>"$work/err"
check "info ends well" [ $? -eq 0 ]
if [ -n "$name" ]; then
    check "the processor is named as the system names it: $name" grep -qF "\"name\": \"$name\"" "$work/info.json"
    check "and in the text" grep -qE "^cpu +$name, [0-9]+ thread" <("$PROGRAM" info)
    "$PROGRAM" run -p "What?" --synthetic tiny --device cpu --max_new_tokens 1 --json >"$work/run.json" 2>/dev/null
    check "so is the device of a request" grep -qF "\"device\": \"cpu: $name, " "$work/run.json"
else
    echo "skipped: /proc/cpuinfo names no processor here"
    skipped=1
fi
check "one thread is no threads" grep -qE '^cpu .*, 1 thread$' <(OMP_NUM_THREADS=1 taskset -c 0 "$PROGRAM" info)
total_kb=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)
check "memory is the system's" grep -q "\"memory_bytes\": $((total_kb * 1024))," "$work/info.json"
echo "test_host: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
