#!/bin/bash
# Proves that marks compile to nothing with VLMPROF_OFF: a function with every kind of mark, and the same without them, give the same machine code, no
# symbol, no text and no warning. In C and C++, gcc and clang; without optimisation, no call and no symbol is left in C.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
cat >"$work/marks.c" <<'C'
#define VLMPROF_OFF
#ifdef __cplusplus
#include "vlmprof_ranges.hpp"
#else
#include "vlmprof_ranges.h"
#endif
int work(int x) {
#ifndef BARE
    vp_stage_clock clock; vp_ranges ranges; vp_range_payload payload; const int64_t at = x;
    vp_stage_begin(&clock, "request");
    VP_RANGE(&ranges, "inner"); vp_range_set(&ranges, &payload); vp_range_end(&ranges);
    vp_stage_add(&clock, "device", at, at);
    if (vp_stage_end(&clock) != VP_OK) return 1;
    vp_stage_reset(&clock);
#ifdef __cplusplus
    vlmprof::stage stage(&clock, "guard");
    vlmprof::range range(&ranges, "guard");
#endif
#endif
    return x + 1;
}
C
skipped=0
for compiler in "gcc -std=c11 -x c" "g++ -std=c++11 -x c++" "clang -std=c11 -x c" "clang++ -std=c++17 -x c++"; do
    command -v "${compiler%% *}" >/dev/null || { skipped=$((skipped + 1)); echo "skipped: ${compiler%% *}: not installed"; continue; }
    for level in -O0 -O1 -O2; do
        case $compiler$level in *++*-O0) continue; esac
        for bare in -UBARE -DBARE; do
            check "compiles: $compiler $level $bare" $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror $level $bare -I. -Iparts -c "$work/marks.c" -o "$work/$bare.o"
            nm "$work/$bare.o" >"$work/$bare.names"
            objcopy -O binary -j .text "$work/$bare.o" "$work/$bare.code"
        done
        check "no symbol is left: $compiler $level" cmp "$work/-UBARE.names" "$work/-DBARE.names"
        [ $level = -O0 ] || check "no text is left: $compiler $level" [ "$(strings -a "$work/-UBARE.o" | grep -cE '^(request|inner|device|guard)$')" = 0 ]
        [ $level = -O0 ] || check "the code is the same: $compiler $level" cmp "$work/-UBARE.code" "$work/-DBARE.code"
    done
done
echo "test_off: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
