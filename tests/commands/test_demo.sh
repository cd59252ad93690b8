#!/bin/bash
# slow: compiles a copy of the tree
# Proves that `make demo` works in a fresh copy of the tree.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc}
. tests/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
files=$(git ls-files -co --exclude-standard 2>/dev/null)
mkdir "$work/copy" && tar -cf - $(if [ -n "$files" ]; then ls -d $files; else ls | grep -vxE 'build|vlmprof'; fi) | tar -xf - -C "$work/copy"
# with little optimisation: the rules must build and run all that the demo needs
demo_of_copy=(make -C "$work/copy" demo CC="$CC" CFLAGS=-O0 KERNEL_FLAGS=-O1 NVCC=/opt/none/nvcc GPU_DRIVER= DEMO_SAMPLES=2)
check "make demo in a copy of the tree" "${demo_of_copy[@]}"
cp "$work/out" "$work/demo"
# an interrupted demo, and a file that is not the demo's
demo=$work/copy/build/demo
rm -r "$demo/report" "$demo"/*imgsize*.json && head -n 9 "$demo/journal.jsonl" >"$work/journal" && mv "$work/journal" "$demo/journal.jsonl" && echo mine >"$demo/model.json"
check "make demo goes on" "${demo_of_copy[@]}"
cp "$work/out" "$work/on"
check "it says from where" grep -qE "^vlmprof: [1-9][0-9]* of 24 points are already measured: resuming" "$work/on"
check "make demo starts again" "${demo_of_copy[@]}"
cp "$work/out" "$work/demo"
check "and measures all" grep -q "24 points (24 measured now" "$work/demo"
check "what is not the demo's stays" grep -q mine "$demo/model.json"
check "make demo names the page" grep -q "^3. The report: build/demo/report/report.html" "$work/demo"
check "its first number is of one request, before the sweep" [ "$(grep -nE '^total +[0-9.]+ +100.0%|^2. A sweep' "$work/demo" | sed 's/^[0-9]*://' | cut -c1-5 | xargs)" = "total 2. A" ]
check "it prints what README quotes of the request" [ -z "$(tests/readme_figures.sh "$work/demo" 2>&1 >/dev/null | grep -E 'not printed: (answer|stage|vit|prefill|total)')" ]
check "then one sentence of policy" grep -qE '^[A-Z].* (static|single) .*\.$' <(sed -n '/^4\. /{n;p}' "$work/demo")
check "then what to type for an own model" [ "$(sed -n '/^Next, your own model:/,$p' "$work/demo" | grep -c '^  .*vlmprof')" = 4 ]
check "make demo has results and a report" [ "$(ls "$work/copy/build/demo"/*.json | wc -l)" -ge 12 -a -s "$work/copy/build/demo/report/report.html" ]
check "make demo reports what resolution costs and buys" grep -q "^high resolution .* low.* points" "$work/demo"
check "the commands that it proposes work when pasted" sh -c "cd '$work/copy' && $(sed -n '/^More from/,/^$/s/^  //p' "$work/demo" | paste -sd'&' | sed 's/&/ \&\& /g')"
echo "test_demo: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
