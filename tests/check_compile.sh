#!/bin/bash
# check_compile.sh: the header (whole, core, static) and the kernels compile without a warning by gcc and clang, as C11 and as C++17,
# also with a system header before the header; the program as C11. Ends with a count line.
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
implementation='#define VLMPROF_IMPLEMENTATION'
printf '%s\n#include "vlmprof.h"\n' "$implementation" > "$work/header"
printf '#define VLMPROF_CORE\n%s\n#include "vlmprof.h"\n' "$implementation" > "$work/core"
printf '#define VLMPROF_CORE\n#define VLMPROF_FAMILIES\n%s\n#include "vlmprof.h"\n' "$implementation" > "$work/core-families"
printf '#define VLMPROF_CORE\n#define VLMPROF_RANGES\n%s\n#include "vlmprof.h"\n' "$implementation" > "$work/core-ranges"
printf '#define VLMPROF_CORE\n#define VLMPROF_STATIC\n%s\n#include "vlmprof.h"\n' "$implementation" > "$work/core-static"
printf '#include <stdio.h>\n%s\n#include "vlmprof.h"\n' "$implementation" > "$work/system-header-first"
printf '#include "vlmprof.h"\n%s\n#include "vlmprof.h"\n#include "vlmprof.h"\n' "$implementation" > "$work/twice"
printf '#include "vlmprof.h"\nint unused_declaration;\n' > "$work/declarations"

one() { # one NAME COMPILER MODE... SOURCE
    local name=$1
    shift
    if "$@" -Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off -O1 -fopenmp -I. -c -o "$work/object" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name: $*"
        grep -E 'error|warning' "$work/log" | head -n 5
    fi
}
for pair in "gcc -std=c11 -x c" "clang -std=c11 -x c" "g++ -std=c++17 -x c++" "clang++ -std=c++17 -x c++"; do
    compiler=${pair%% *}
    if ! command -v "$compiler" >/dev/null; then
        echo "skipped: $compiler: not installed"
        skipped=$((skipped + 1))
        continue
    fi
    for unit in declarations header core core-families core-ranges core-static system-header-first twice; do one "$unit" $pair "$work/$unit"; done
    if [[ $pair == *c11* ]]; then # the program is C11 alone
        for room in cli.c cli/*/*.c; do one "$room" $pair -Wmissing-prototypes -Iparts -Icli "$room"; done
    fi
    one vlmprof_kernels.cu $pair vlmprof_kernels.cu
done
echo "check_compile: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
