#!/bin/bash
# slow: compiles a copy of the tree
# Proves that `make demo` works in a fresh copy of the tree, next to an nvcc that it does not use because there is no GPU driver.
CDPATH= cd "$(dirname "$0")/.." || exit 1
CC=${CC:-cc}
. tests/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
files=$(git ls-files -co --exclude-standard 2>/dev/null)
mkdir "$work/copy" && tar -cf - $(if [ -n "$files" ]; then ls -d $files; else ls | grep -vxE 'build|vlmprof'; fi) | tar -xf - -C "$work/copy"
# with little optimisation: what is proven is that its rules build and run all that it needs
check "make demo in a copy of the tree" make -C "$work/copy" demo CC="$CC" CFLAGS=-O0 KERNEL_FLAGS=-O1 NVCC=/opt/none/nvcc GPU_DRIVER= DEMO_SAMPLES=2
cp "$work/out" "$work/demo"
check "make demo says that GPU code is left out" grep -q "^No GPU driver here" "$work/demo"
check "make demo has results and a report" [ "$(ls "$work/copy/build/demo"/*.json | wc -l)" -ge 12 -a -s "$work/copy/build/demo/report/report.html" ]
check "make demo reports what resolution costs and buys" grep -q "^High resolution costs .* of low.* points" "$work/demo"
check "the command that it proposes works when pasted" sh -c "cd '$work/copy' && $(sed -n 's/^The most accurate .* by P50): //p' "$work/demo")"
cp "$work/out" "$work/best"
check "and names the best configuration" grep -q "the best within" "$work/best"
echo "test_demo: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
