#!/bin/bash
# Proves that the Makefile's targets hold together: `make help` lists each of them and nothing else; bash accepts every recipe, with and without nvcc,
# with and without a GPU driver; the files that recipes name exist. With VLMPROF_TEST_ALL: `make demo` works in a copy of the tree, beside an nvcc that is
# not used as no GPU driver is here.
cd "$(dirname "$0")/.." || exit 1
B=${B:-build} CC=${CC:-cc}
. tests/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
makefiles=(Makefile mk/*.mk)

targets=$(sed -n 's/^\.PHONY: //p' "${makefiles[@]}" | tr ' ' '\n' | grep -vxE 'all|FORCE|instrumented|fuzz-deps' | sort)
make help >"$work/help"
check "make help lists the targets" diff <(echo "$targets") <(sed -n 's/^make \([a-z-]*\) .*/\1/p' "$work/help" | grep . | sort)
check "make help describes make itself" grep -q '^make  *[a-z]' "$work/help"
check "make help needs no build folder" [ "$(make help B="$work/none" | wc -l)-$(ls "$work" | grep -c none)" = "$(wc -l <"$work/help")-0" ]

# A target that drops a device's code where no driver is here looks at all goals: one run with such goals, one without. Each prints every recipe, as
# nothing is built in that folder.
with_driver=$(grep -E '^(demo|test)' <<<"$targets" | grep -vE '^test-(gpu|sanitized|threads)$')
others=$(grep -vxF "$with_driver" <<<"$targets" | grep -vx help)
for compiler in "" /opt/none/nvcc; do
    for driver in "" /dev/none; do
        for goals in "$with_driver" "$others"; do
            name="nvcc \"$compiler\", driver \"$driver\", $(wc -l <<<"$goals") targets"
            make -n $goals B="$work/none" PROGRAM="$work/none/vlmprof" CC="$CC" NVCC="$compiler" GPU_DRIVER="$driver" >"$work/recipes" 2>"$work/said"
            check "make -n: $name: ends well" [ $? -eq 0 -a ! -s "$work/said" ] || head -n 3 "$work/said"
            check "make -n: $name: prints recipes" [ "$(wc -l <"$work/recipes")" -gt 100 ]
            check "make -n: $name: bash reads the recipes" bash -n "$work/recipes"
            tr ' "=;' '\n' <"$work/recipes" | grep -xE '(tests|samples|packaging|parts|cli|mk)/[A-Za-z0-9_./-]+[A-Za-z0-9]' | grep -v '^tests/bench/results' | sort -u >"$work/names"
            check "make -n: $name: files that recipes name exist" [ -z "$(while read -r file; do [ -e "$file" ] || echo "$file"; done <"$work/names" | tee "$work/missing")" ] ||
                head -n 3 "$work/missing"
        done
    done
done
# the check above sees what it is for: a comma that splits a call of $(if)
sed 's/echo "No GPU driver here: /echo "No GPU driver here, /' mk/demo.mk >"$work/demo.mk"
cmp -s mk/demo.mk "$work/demo.mk" && check "the remark about GPU code stands in mk/demo.mk" false
make -n demo -f <(sed "s|mk/demo.mk|$work/demo.mk|" Makefile) B="$work/none" NVCC=/opt/none/nvcc GPU_DRIVER= >"$work/recipes" 2>&1
check "a comma in a call of \$(if) is found" [ "$(bash -n "$work/recipes" 2>&1 | wc -l)" -gt 0 ]

if [ -n "$VLMPROF_TEST_ALL" ]; then
    files=$(git ls-files -co --exclude-standard 2>/dev/null)
    mkdir "$work/copy" && tar -cf - $(if [ -n "$files" ]; then ls -d $files; else ls | grep -vxE 'build|vlmprof'; fi) | tar -xf - -C "$work/copy"
    check "make demo in a copy of the tree" make -C "$work/copy" demo CC="$CC" NVCC=/opt/none/nvcc GPU_DRIVER= DEMO_SAMPLES=2
    check "make demo says that GPU code is left out" grep -q "^No GPU driver here" "$work/out"
    check "make demo has results and a report" [ "$(ls "$work/copy/build/demo"/*.json | wc -l)" -ge 24 -a -s "$work/copy/build/demo/report/report.html" ]
fi
echo "test_make: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
