#!/bin/bash
# full_size.sh: builds and runs tests/full_size.c, random weights in the shape of the real model: about 16 GB and some minutes. `make full-size`
# builds the engine first. B: build folder, CC: compiler. Exit 1 when a check failed, also when there is too little memory to run.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
CC=${CC:-cc}
available_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)
if [ "${available_kb:-0}" -lt 17000000 ]; then
    echo "full_size: needs 17 GB of free memory, ${available_kb:-0} kB are free" >&2
    exit 1
fi
if [ ! -f "$B/libengine.a" ]; then
    echo "full_size: $B/libengine.a is missing; run make full-size" >&2
    exit 1
fi
mkdir -p "$B/tests" || exit 1
"$CC" -std=c11 -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off -O2 -fopenmp -I. -Iparts tests/full_size.c "$B/libengine.a" -o "$B/tests/full_size" -lm ||
    exit 1
exec "$B/tests/full_size"
