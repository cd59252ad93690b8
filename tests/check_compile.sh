#!/bin/bash
# check_compile.sh: vlmprof.h and each header for copying compile without a warning by gcc and clang, as C11 and as C++17: alone, twice, static, as
# declarations, after a system header, all in one file; vlmprof.h alone in an empty folder; the kernels as C and C++, the engine and the program as
# C11. stb_image that the includer brings. Where the cross compilers are installed (Debian: mingw-w64, gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu):
# all headers and samples for Windows and ARM, the whole program for ARM. Where wine64 or qemu-aarch64 (qemu-user) is: samples and tests of headers
# on both, the program and the tests of kernels and models on ARM. The emulated ARM tests take tens of minutes on 2 cores. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
top=$PWD
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
strict="-Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off"

count() { # count NAME STATUS: one result; shows the log of a failure
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAILED $1"
    grep -E 'error|warning|undefined' "$work/log" | head -n 5
}
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
one() { # one NAME COMPILER ARGUMENT...
    local name=$1
    shift
    "$@" $strict -O1 -fopenmp -I. -Iparts -Iparts/lib -Icli -c -o "$work/object" >"$work/log" 2>&1
    count "$name: $*" $?
}

parts=$(cd parts && ls vlmprof_*.h)
implementation='#define VLMPROF_IMPLEMENTATION'
for header in vlmprof.h $parts; do
    printf '%s\n#include "%s"\n' "$implementation" "$header" >"$work/whole-$header"
    printf '#include <stdio.h>\n%s\n#include "%s"\n' "$implementation" "$header" >"$work/system-header-first-$header"
    printf '#include "%s"\n%s\n#include "%s"\n#include "%s"\n' "$header" "$implementation" "$header" "$header" >"$work/twice-$header"
    printf '#include "%s"\nint unused_declaration;\n' "$header" >"$work/declarations-$header"
    printf '#define VLMPROF_STATIC\n%s\n#include "%s"\n' "$implementation" "$header" >"$work/static-$header"
done
{ echo "$implementation"; for header in vlmprof.h $parts; do echo "#include \"$header\""; done; } >"$work/all-headers"
# an includer with its own stb_image: from a path, declared or implemented before, implemented after
printf '%s\n#define VLMPROF_STB_IMAGE "stb/stb_image.h"\n#include "vlmprof_image.h"\n' "$implementation" >"$work/stb-path"
printf '%s\n#define VLMPROF_NO_STB\n#include "vlmprof_image.h"\n' "$implementation" >"$work/stb-none"
stb='#include <stb/stb_image.h>' own='#define STB_IMAGE_IMPLEMENTATION' image='#include "vlmprof_image.h"'
printf '%s\n%s\n%s\n%s\n' "$own" "$stb" "$implementation" "$image" >"$work/stb-implemented-before"
printf '%s\n%s\n%s\n%s\n%s\n' "$stb" "$implementation" "$image" "$own" "$stb" >"$work/stb-declared-before"
printf '#define VLMPROF_STB_EXTERNAL\n%s\n%s\n%s\n%s\n' "$implementation" "$image" "$own" "$stb" >"$work/stb-implemented-after"

for pair in "gcc -std=c11 -x c" "clang -std=c11 -x c" "g++ -std=c++17 -x c++" "clang++ -std=c++17 -x c++"; do
    compiler=${pair%% *}
    if ! command -v "$compiler" >/dev/null; then skip "$compiler: not installed"; continue; fi
    for unit in "$work"/{whole,system-header-first,twice,declarations,static}-* "$work/all-headers" "$work/stb-path" "$work/stb-none"; do
        one "${unit##*/}" $pair -Wconversion -Wsign-conversion "$unit"
    done
    for unit in "$work"/stb-*-{before,after}; do # warnings inside stb_image are the includer's
        $pair -O1 -I. -Iparts -c "$unit" -o "$work/object" >"$work/log" 2>&1
        count "${unit##*/}: $pair" $?
    done
    mkdir -p "$work/alone" && rm -f "$work/alone"/* && cp vlmprof.h parts/vlmprof_families.h "$work/alone" && cat samples/01_count_tokens.c >"$work/alone/01.c"
    case $pair in *++*) one vlmprof_ranges.hpp $pair -Wconversion -Wsign-conversion samples/05_ranges.cpp
        printf '#include "vlmprof_ranges.hpp"\nvoid f() { vlmprof::stage(nullptr, "x"); vlmprof::range(nullptr, "y"); }\n' >"$work/unnamed.cpp"
        [ "$($pair -Wall -I. -Iparts -c "$work/unnamed.cpp" -o "$work/object" 2>&1 | grep -c 'warning.*nodiscard')" = 2 ]
        count "a guard without a name ends at once: $pair warns" $?;;
    esac
    (cd "$work/alone" && $pair $strict 01.c -o count -lm && [ "$(./count)" = "640x480: 2 rows, 3 columns, 704 vision tokens"$'\n'"qwen3-vl: 300 image tokens" ]) >"$work/log" 2>&1
    count "both headers alone in a folder: $pair" $?
    one vlmprof_kernels.cu $pair vlmprof_kernels.cu
done
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for unit in cli.c $(find cli -name "*.c") parts/lib/*.c parts/engine/*.c; do one "$unit" $compiler -std=c11 -D_DEFAULT_SOURCE -Wmissing-prototypes "$unit"; done
done

# other systems. Static programs: the emulators need no library of theirs. libstb-dev's header is searched after the compiler's own.
run() { # run NAME COMMAND...: one result; a program that hangs fails
    local name=$1
    shift
    timeout 1200 "$@" >"$work/log" 2>&1 </dev/null
    count "$name" $?
}
windows=x86_64-w64-mingw32- arm=aarch64-linux-gnu-
wine=$(command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null)
qemu=$(command -v qemu-aarch64)
export WINEPREFIX=$work/wine WINEDEBUG=-all TMPDIR=$work
for cross in "$windows $wine" "$arm $qemu -cpu max"; do
    prefix=${cross%% *} emulator=${cross#* }
    flags="$strict -static -idirafter /usr/include -I. -Iparts -Itests"
    if ! command -v ${prefix}gcc >/dev/null || ! command -v ${prefix}g++ >/dev/null; then skip "${prefix}gcc, ${prefix}g++: not installed"; continue; fi
    for unit in "$work"/{whole,twice,declarations,static}-* "$work/all-headers"; do
        one "${unit##*/}" ${prefix}gcc -std=c11 -x c -Wconversion -Wsign-conversion -idirafter /usr/include "$unit"
    done
    one all-headers ${prefix}g++ -std=c++17 -x c++ -Wconversion -Wsign-conversion -idirafter /usr/include "$work/all-headers"
    for sample in samples/*.c; do run "$sample: ${prefix}gcc" ${prefix}gcc -std=c11 $flags "$sample" -o "$work/$(basename "$sample" .c).exe" -lm -lpthread; done
    run "samples/05_ranges.cpp: ${prefix}g++" ${prefix}g++ -std=c++17 $flags samples/05_ranges.cpp -o "$work/05_ranges.exe" -lm
    tests="test_portable"
    if [ $prefix = $arm ]; then tests="test_portable test_tiler test_json"; fi
    for test in $tests; do
        run "$test: ${prefix}gcc" ${prefix}gcc -std=c11 -D_DEFAULT_SOURCE -O1 $flags -DVLMPROF_IMPLEMENTATION= tests/*/"$test.c" -o "$work/$test.exe" -lm
    done
    if [ -z "${emulator%% *}" ] || ! command -v ${emulator%% *} >/dev/null; then skip "$prefix programs: no emulator"; continue; fi
    for program in $tests 01_count_tokens 02_time_and_report 04_profile_yourself 05_ranges; do run "$program runs: $prefix" $emulator "$work/$program.exe"; done
    run "03_tokens_of_folder runs: $prefix" $emulator "$work/03_tokens_of_folder.exe" samples
done
# the program on ARM. An emulated processor is slow: the quick cases of the golden models, for the fastest GEMM kernel and the plain one
if command -v ${arm}gcc >/dev/null; then
    B=$work/arm
    make="make -j$(nproc) CC=${arm}gcc NVCC= B=$B PROGRAM=$B/vlmprof LDFLAGS=-static"
    $make CFLAGS="-O2 -g -Werror" $B/vlmprof $B/tests/test_gemm >"$work/log" 2>&1
    count "the program for ARM" $?
    ${arm}gcc -std=c11 -D_DEFAULT_SOURCE -O1 -fopenmp -static $strict -DTEST_SMALL -I. -Iparts -Iparts/lib -Itests tests/engine/test_model.c $B/libvlmprof.a -o $B/tests/test_model_small -lm \
        >"$work/log" 2>&1
    count "test_model.c for ARM" $?
    if [ -n "$qemu" ]; then
        for name in test_gemm test_model_small; do run "$name on ARM" $qemu -cpu max $B/tests/$name; done
        run "run on ARM" $qemu -cpu max $B/vlmprof run --synthetic tiny samples/cat.jpg -p "What is this?"
    else skip "the program on ARM: no qemu-aarch64"; fi
fi
echo "check_compile: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
