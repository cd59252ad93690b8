#!/bin/bash
# slow: reads each recipe with bash, 10 s
# Proves that the Makefile's targets are consistent: `make help` lists each of them and nothing else; bash accepts every recipe, with and without nvcc,
# with and without a GPU driver; the files that recipes name exist.
CDPATH= cd "$(dirname "$0")/.." || exit 1
B=${B:-build} CC=${CC:-cc}
. tests/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
makefiles=(Makefile mk/*.mk)

targets=$(sed -n 's/^\.PHONY: //p' "${makefiles[@]}" | tr ' ' '\n' | grep -vxE 'all|FORCE|instrumented|fuzz-deps|stage-launches|zig|(dist|wheel|deb)-.*' | sort)
make help >"$work/help"
check "make help lists the targets" diff <(echo "$targets") <(sed -n 's/^make \([a-z-]*\) .*/\1/p' "$work/help" | grep . | sort)
check "make help describes make itself" grep -q '^make  *[a-z]' "$work/help"
check "make help needs no build folder" [ "$(make help B="$work/none" | wc -l)-$(ls "$work" | grep -c none)" = "$(wc -l <"$work/help")-0" ]

are_there() { # are_there FILE: the paths below the folders of sources that its commands name
    local path lost=0
    while read -r path; do [ -e "$path" ] || { echo "there is no $path"; lost=1; }; done \
        < <(tr ' "=;' '\n' <"$1" | grep -xE '(tests|samples|packaging|parts|cli|mk)/[A-Za-z0-9_./-]+[A-Za-z0-9]' | grep -v '^tests/bench/results' | sort -u)
    return $lost
}
# A target that drops a device's code where no driver is here looks at all goals: one run with such goals, one without. Each prints every recipe, as
# nothing is built in that folder.
with_driver=$(grep -E '^(demo|test)' <<<"$targets" | grep -vE '^test-(gpu|sanitized|threads)$')
others=$(grep -vxF "$with_driver" <<<"$targets" | grep -vx help)
if ! command -v aarch64-linux-gnu-gcc >/dev/null; then # make -n asks the compiler of packages for another processor as well
    with_driver=$(grep -vx test-dist <<<"$with_driver")
    others=$(grep -vE '^(dist|wheel|deb|bench-portable)(-|$)' <<<"$others")
fi
for compiler in "" /opt/none/nvcc; do
    for driver in "" /dev/none; do
        for goals in "$with_driver" "$others"; do
            name="nvcc \"$compiler\", driver \"$driver\", $(wc -l <<<"$goals") targets"
            make -n $goals B="$work/none" PROGRAM="$work/none/vlmprof" CC="$CC" NVCC="$compiler" GPU_DRIVER="$driver" >"$work/recipes" 2>"$work/said"
            check "make -n: $name: ends well" [ $? -eq 0 -a ! -s "$work/said" ] || head -n 3 "$work/said"
            check "make -n: $name: prints recipes" [ "$(wc -l <"$work/recipes")" -gt 100 ]
            check "make -n: $name: bash reads the recipes" bash -n "$work/recipes"
            check "make -n: $name: files that recipes name exist" are_there "$work/recipes"
        done
    done
done
# an old nvcc is asked for what it knows, one that is too old for nothing
old_nvcc() { # old_nvcc RELEASE: the recipe of the GPU object with an nvcc of that release
    printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.1"\n' "$1" "$1" >"$work/nvcc"
    chmod +x "$work/nvcc"
    make -n "$work/none/vlmprof_cuda.o" B="$work/none" CC="$CC" NVCC="$work/nvcc" GPU_DRIVER=/dev/none 2>&1
}
check "nvcc 12.8 compiles for compute capability 10.0" grep -q 'code=\[sm_100,compute_100\]' <(old_nvcc 12.8)
check "nvcc 12.4 leaves that out" bash -c '! grep -q sm_100 && true' <<<"$(old_nvcc 12.4)"
check "nvcc 12.4: it says so, and PTX of 9.0 takes its place" bash -c 'grep -q "older than 12.8" <<<"$1" && grep -q "code=compute_90 " <<<"$1"' - "$(old_nvcc 12.4)"
check "nvcc 11.8 is too old" grep -q 'echo .*too old for the GPU code.*exit 1' <(old_nvcc 11.8)
check "a driver without nvcc: what to install" grep -q 'install the CUDA Toolkit 12.8 or later with cuBLAS' <(make -n B="$work/none" CC="$CC" NVCC= GPU_DRIVER=/dev/none)
# the checks above see what they are for: a file that is gone, a comma that splits a call of $(if)
echo "cc tests/full_size.c tests/no_such.c" >"$work/recipes"
are_there "$work/recipes" >"$work/missing"
check "a file that is gone is found" [ "$(cat "$work/missing")" = "there is no tests/no_such.c" ]
sed 's/echo "No GPU driver here: /echo "No GPU driver here, /' mk/demo.mk >"$work/demo.mk"
cmp -s mk/demo.mk "$work/demo.mk" && check "the remark about GPU code stands in mk/demo.mk" false
make -n demo -f <(sed "s|mk/demo.mk|$work/demo.mk|" Makefile) B="$work/none" NVCC=/opt/none/nvcc GPU_DRIVER= >"$work/recipes" 2>&1
check "a comma in a call of \$(if) is found" [ "$(bash -n "$work/recipes" 2>&1 | wc -l)" -gt 0 ]
echo "test_make: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
