#!/bin/bash
# check_style.sh: what a machine can check of the style rules. Prints each offence and ends with a count line.
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
sources=(vlmprof.h cli.c vlmprof_kernels.cu)
while IFS= read -r file; do sources+=("$file"); done < <(find cli parts tests samples \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) | sort)
texts=("${sources[@]}" README.md Makefile samples/README.md)
while IFS= read -r file; do texts+=("$file"); done < <(find tests .ci -name '*.sh' -o -path '.ci/run' | sort)
passed=0 failed=0

rule() { # rule NAME OFFENCES: passes when there are none
    if [ -z "$2" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAILED $1:"
    head -n 10 <<<"$2"
}
rule "lines of at most 150 columns, 170 in tests with their tables" "$(awk 'length > (FILENAME ~ /^tests/ ? 170 : 150) { print FILENAME ":" FNR ": " length }' "${sources[@]}")"
rule "no tabs" "$(grep -n $'\t' "${sources[@]}")"
rule "no blanks at the end of a line" "$(grep -nE ' +$' "${sources[@]}")"
rule "nothing left to be done later" "$(grep -nE '\b(TOD[O]|FIXM[E]|XX[X])\b' "${texts[@]}")"
rule "no fast-math, nothing tied to this processor" "$(grep -nE 'f(fast|unsafe)-mat[h]|-Ofas[t]|-march=nativ[e]|use_fast_mat[h]' Makefile .ci/run $(find tests -name '*.sh'); grep -nE '(pragma|optimize).*fast-mat[h]' "${sources[@]}")"
rule "no path of a developer's machine" "$(grep -nE '(^|[^A-Za-z.])/(wor[k]|hom[e]|roo[t])(/|$)' "${texts[@]}")"
# double underscores belong to the compiler: its names begin with them; a feature-test macro is the only leading underscore that is defined
rule "no double underscore inside a name" "$(grep -noE '\b[A-Za-z0-9]\w*__\w*' "${sources[@]}" | grep -vE ':(_mm|_tile|stbi__|[0-9a-z]+__(low|medium|high|adaptive))')"
rule "no double underscore before an own name" "$(grep -noE '\b__\w+' vlmprof.h cli.c $(find cli parts/engine tests samples -name '*.c' -o -name 'check.h') |
    grep -vE ':__(attribute__|builtin_\w+|cplusplus|GNUC\w*|clang__|FAST_MATH__|CUDACC__|CUDA_ARCH__|x86_64__|aarch64__|linux__|unix__|APPLE__|FILE__|LINE__|func__|VA_ARGS__|has_\w+|STRICT_ANSI__|SANITIZE_\w+|FLT16_\w+|STDC_\w+|OPTIMIZE__|VERSION__|BYTE_ORDER__|ORDER_\w+|SIZEOF_\w+|AVX\w+|m[0-9]+\w*|extension__)$')"
# (cuda_on_cpu.h stands for CUDA's own headers)
rule "no own macro with a leading underscore" "$(grep -nE '^ *# *define +_' "${sources[@]}" | grep -vE '^tests/cuda_on_cpu.h:' | grep -vE 'define _(DEFAULT|POSIX_C|GNU|XOPEN|DARWIN_C)_SOURCE|define _FILE_OFFSET_BITS')"
# every tag of the manual's table has a banner, and every banner is in the table
manual=$(sed -n '/Table of contents/,/Vocabulary/p' vlmprof.h | grep -oE '>>[a-z_]+' | sort -u)
banners=$(sed -n '/#ifndef VLMPROF_H/,$p' vlmprof.h | grep -oE '>>[a-z_]+' | sort -u)
rule "table of contents and banners name the same tags" "$(diff <(echo "$manual") <(echo "$banners"))"
echo "check_style: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
