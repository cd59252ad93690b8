#!/bin/bash
# slow: compiles the header some fifty times, a minute
# Counts, tilings and statistics are the same whatever flags the including file is compiled with: the parts of -ffast-math that other projects pass,
# contraction, x87; gcc and clang, C and C++, 64 and 32 bits, ARM under qemu where it is installed. Where the header knows no pragma for a compiler, it
# refuses with VP_ERR_UNSUPPORTED instead of being wrong.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
skipped=0
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
finish() { echo "test_flags: $passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit; }
is() { check "$1" test "$2" = "$3" || head -n 4 <<<"$2"; } # is NAME FOUND EXPECTED
sets=("-O2" "-O3" "-O0" "-O2 -ffp-contract=fast" "-O2 -ffast-math" "-O2 -ffast-math -fno-finite-math-only" "-O3 -ffast-math -fno-finite-math-only -mfma" "-Ofast"
    "-O2 -funsafe-math-optimizations" "-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math" "-O2 -freciprocal-math" "-O2 -ffinite-math-only")
works() { echo 'int main(void) { return 0; }' | "$@" -x c - -o "$work/probe" 2>/dev/null; } # COMPILER AND FLAGS
if ! works ${CC:-cc} -ffp-contract=off; then skip "flags: no compiler"; finish; fi
${CC:-cc} -std=c11 -O1 -ffp-contract=off -I. -Iparts tests/core/flags.c -o "$work/plain" -lm && "$work/plain" >"$work/expected"
check "families, layouts and statistics" test "$(grep -c . "$work/expected")" -ge 318
same() { # same NAME RUNNER COMPILER AND FLAGS...: the same lines; b of other C libraries may differ in the last digits
    local name=$1 runner=$2; shift 2
    "$@" -Wall -Wextra -Wpedantic -Werror -I. -Iparts tests/core/flags.c -o "$work/program" -lm 2>"$work/log"
    is "$name" "$(head -n 3 "$work/log"; timeout 60 $runner "$work/program" | diff "$work/expected" - | head -n 4)" ""
}
for compiler in "gcc -std=c11" "clang -std=c11" "g++ -std=c++17 -x c++" "clang++ -std=c++17 -x c++"; do
    if ! works ${compiler%% *}; then skip "flags: no ${compiler%% *}"; continue; fi
    for set in "${sets[@]}"; do
        case $set$(uname -m) in *-mfma*aarch64) continue;; esac
        same "$compiler $set" "" $compiler $set
    done
done
for compiler in "gcc -std=c11 -m32" "g++ -std=c++17 -x c++ -m32" "clang -std=c11 -m32"; do
    if ! works ${compiler%% *} -m32; then skip "flags: ${compiler%% *} without -m32"; continue; fi
    for set in "-O2" "-O0" "-O3 -ffast-math -fno-finite-math-only" "-O2 -msse2 -mfpmath=sse"; do
        case $compiler$set in clang*mfpmath*) continue;; esac
        same "$compiler $set" "" $compiler $set
    done
done
for target in aarch64-linux-gnu arm-linux-gnueabihf; do
    compiler=$(command -v $target-gcc || command -v $target-gcc-12) qemu=qemu-${target%%-*}-static
    if [ -z "$compiler" ] || ! command -v "$qemu" >/dev/null; then skip "flags: no $target compiler with qemu"; continue; fi
    for set in "-O2 -std=gnu11" "-O3 -std=gnu11 -ffast-math -fno-finite-math-only -ffp-contract=fast"; do
        same "$target $set" "$qemu -L /usr/$target" "$compiler" $set
    done
done
# a compiler whose pragmas the header does not know
for set in "-O2 -ffast-math -fno-finite-math-only" "-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math"; do
    for compiler in gcc clang; do
        works $compiler || continue
        $compiler -std=c11 $set -DVP_EXACT_BEGIN= -DVP_EXACT_END= -I. -Iparts tests/core/flags.c -o "$work/program" -lm 2>"$work/log"
        is "refused: $compiler $set" "$("$work/program" result)" "result -4 -4"
    done
done
finish
