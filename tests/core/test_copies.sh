#!/bin/bash
# slow: compiles each header four times, 10 s
# Proves that each header for copying is complete: in an empty folder, with vlmprof.h and the files that README and the manual name for it and nothing
# else, it compiles without a warning as C11 and as C++17, is linked and runs.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
CC=${CC:-cc}
. tests/check.sh
cxx=g++
case $CC in *clang*) cxx=${CC/clang/clang++};; esac
strict="-Wall -Wextra -Wpedantic -Wshadow -Werror -O0 -ffp-contract=off"

# HEADER | headers to copy with it | a call that proves that its functions are there
cat >"$work/sets" <<'TABLE'
vlmprof.h||vp_clock_ns() >= 0
vlmprof_families.h||vp_count_tokens("internvl", 640, 480) > 0
vlmprof_image.h||vp_image_size(NULL, 0, NULL, NULL, NULL) == VP_ERR_RANGE
vlmprof_json.h||vp_json_parse("[]", 2, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY
vlmprof_ranges.h|vlmprof_json.h|vp_op_default().stack_count == 0
vlmprof_results.h||vp_results_row_default().total_ns == -1
vlmprof_score.h|vlmprof_unicode.h vlmprof_json.h|vp_score_scratch_bytes(1, 1) > 0
vlmprof_statistics.h||vp_statistics_percentile_needs(50, 0.95) == 6
vlmprof_torch_trace.h|vlmprof_trace.h vlmprof_file.h vlmprof_json.h vlmprof_ranges.h vlmprof_stages.h|vp_torch_trace_options_default().process_name != NULL
vlmprof_trace.h||vp_trace_open(NULL, NULL, NULL, NULL, NULL) == VP_ERR_RANGE
TABLE
while IFS='|' read -r header others call; do
    rm -rf "$work/folder" && mkdir "$work/folder" && cp vlmprof.h "$work/folder"
    for file in $header $others; do [ "$file" = vlmprof.h ] || cp "parts/$file" "$work/folder"; done
    printf '#define VLMPROF_IMPLEMENTATION\n#include "%s"\nint main(void) { return %s ? 0 : 1; }\n' "$header" "$call" >"$work/folder/main.c"
    printf '#include "%s"\nint declared(void);\nint declared(void) { return VP_OK; }\n' "$header" >"$work/folder/other.c"
    cd "$work/folder" || exit 1
    for compiler in "$CC -std=c11 -x c" "$cxx -std=c++17 -x c++"; do
        check "$header alone: $compiler" $compiler $strict main.c other.c -o program -lm && check "$header alone runs: $compiler" ./program
    done
    cd "$OLDPWD" || exit 1
    check "README names what goes with $header" grep -qE "^\| \`(parts/|vlmprof\.h)\`.*$(sed 's/vlmprof_//; s/\.h//' <<<"${header/vlmprof.h/one file}")" README.md
    for file in $others; do check "the manual of vlmprof.h names $file for $header" grep -qF "$file" <(grep -A 1 -F "$header  " vlmprof.h); done
done <"$work/sets"
check "each header of parts/ is one of these" diff <(cd parts && ls vlmprof_*.h) <(tr '| ' '\n\n' <"$work/sets" | grep -x 'vlmprof_.*\.h' | sort -u)
# The example under "Do this:" at the top of each header in parts/ runs, and what it prints is what the next line says.
for file in parts/vlmprof_*.h; do
    header=${file#parts/}
    awk '/^ \* Do this:/ { on = 1; next } on && /^ \*     / { print substr($0, 4); next } on { exit }' "$file" >"$work/example"
    says=$(grep -m 1 -oE '^ \* It prints [^,;.]*(\.[0-9]+)?' "$file" | sed 's/^ \* It prints //')
    { printf '#define VLMPROF_IMPLEMENTATION\n#include "vlmprof.h"\n#include "%s"\n#include <stdio.h>\nint main(void) {\n' "$header"
      cat "$work/example"; printf 'return 0; }\n'; } >"$work/example.c"
    check "the example of $header compiles" $CC -std=c11 $strict -I. -Iparts "$work/example.c" -o "$work/program" -lm \
        && (cd "$work" && mkdir -p samples && cp "$OLDPWD/LICENSE" . && cp "$OLDPWD/samples/cat.jpg" samples && ./program >printed)
    check "the example of $header prints what its comment says" grep -qF "${says:-(the comment does not say it)}" "$work/printed"
done
# bare metal, and the words of Microsoft's compiler
bare="-std=c11 -ffreestanding -nostdinc -U__linux__ -fsyntax-only -DVLMPROF_IMPLEMENTATION -x c -isystem $($CC -print-file-name=include)"
$CC $bare vlmprof.h 2>"$work/said"
check "one #error names what a platform lacks" [ "$(grep -cE 'error: .*needs <math.h>, <string.h> and a clock' "$work/said")" = 1 ]
if command -v clang >/dev/null; then
    for header in vlmprof.h parts/vlmprof_{families,json,ranges,score,statistics}.h; do
        check "$header as for Microsoft's compiler" clang -std=c11 -fms-compatibility -fms-extensions -fms-compatibility-version=19.30 -U__GNUC__ \
            -Wno-everything -fsyntax-only -DVLMPROF_IMPLEMENTATION -I. -Iparts -x c "$header"
    done
fi
echo "test_copies: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
