#!/bin/bash
# check_style.sh: what a machine can check of the style rules. Prints each offence and ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
# How many lines the parts of the repository may have together. A row is lowered when its part has shrunk, and never raised: what does not fit waits.
budgets='cli                      42500  ^cli/.*\.(c|h|css|js)$
parts_and_kernels        40400  ^(parts/.*\.(c|h|hpp)|vlmprof_kernels\.cu)$
vlmprof.h                 3460  ^vlmprof\.h$
tests                    57900  ^tests/.*\.(c|h|sh|py|cu)$
python                    3500  ^python/.*\.(py|c)$
pinned_texts             16500  ^tests/golden/texts/'
# And how many one file may have: the first row that fits it. Generated tables have no limit; headers that are copied out are one file each.
file_limits='vlmprof_unicode    99999  ^parts/.*unicode
header              3480  ^vlmprof\.h$
program              100  ^cli\.c$
kernels             3990  ^vlmprof_kernels\.cu$
copied_headers      2250  ^parts/vlmprof_[a-z]+\.h$
parts_lib           2030  ^parts/lib/vlmprof_[a-z]+\.[ch]$
kernel_tests        2970  ^tests/kernels/test_kernels\.c$
emulated_gpu        3200  ^tests/emulator/cuda_on_cpu\.h$
any_other           1230  \.(c|h|hpp|css|js|sh|py|cu)$'
product=(vlmprof.h cli.c vlmprof_kernels.cu)
while IFS= read -r file; do product+=("$file"); done < <(find parts cli \( -name '*.c' -o -name '*.h' \) 2>/dev/null | sort)
sources=("${product[@]}")
while IFS= read -r file; do sources+=("$file"); done < <(find tests samples cli/page/*.css cli/page/*.js \( -name '*.[ch]' -o -name '*.cu' -o -name '*.css' -o -name '*.js' \) | sort)
texts=("${sources[@]}" README.md Makefile mk/*.mk samples/README.md)
while IFS= read -r file; do texts+=("$file"); done < <(find packaging -type f -not -name THIRD-PARTY.txt -not -path '*__pycache__*' | sort)
while IFS= read -r file; do texts+=("$file"); done < <(find tests .ci -name '*.sh' -o -path '.ci/run' | sort)
passed=0 failed=0

rule() { # rule NAME OFFENCES: passes when there are none
    if [ -z "$2" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAILED $1:"
    head -n 10 <<<"$2"
}
# the tables of vlmprof_unicode.h are generated
rule "lines of at most 120 columns, 170 in tests with their tables" "$(awk 'FILENAME !~ /vlmprof_unicode/ && length > (FILENAME ~ /^tests/ ? 170 : 120) { print FILENAME ":" FNR ": " length }' "${sources[@]}")"
counted=$(find cli cli.c parts python tests vlmprof.h vlmprof_kernels.cu -type f -not -path '*/build/*' | grep -E '\.(c|h|hpp|css|js|sh|py|cu)$|^tests/golden/texts/' | sort | xargs wc -l | awk '$2 != "total" { print $2, $1 }')
rule "lines within the budgets on top of this script" "$(awk 'FNR == NR { name[FNR] = $1; limit[FNR] = $2; files[FNR] = $3; rows = FNR; next }
    { for (i = 1; i <= rows; i++) if ($1 ~ files[i]) sum[i] += $2 }
    END { for (i = 1; i <= rows; i++) if (!(sum[i] > 0 && sum[i] <= limit[i])) print name[i] ": " sum[i] + 0 " lines, budget " limit[i] }' <(echo "$budgets") <(echo "$counted"))"
rule "files within the limits on top of this script" "$(awk 'FNR == NR { limit[FNR] = $2; files[FNR] = $3; rows = FNR; next }
    { for (i = 1; i < rows && $1 !~ files[i]; i++); if ($2 > limit[i]) print $1 ": " $2 " lines, limit " limit[i] }' <(echo "$file_limits") <(echo "$counted"))"
rule "30 sources at most in a folder of parts/ and cli/" "$(printf '%s\n' "${product[@]}" | grep / | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 30 { print $2 ": " $1 " files" }')"
functions=$(awk -f tests/tools/functions.awk "${product[@]}")
rule "functions of 80 lines at most, kernels of 100" "$(awk '$4 > ($3 ~ /^k_/ ? 100 : 80) { print $1 ":" $2 ": " $3 ": " $4 " lines" }' <<<"$functions")"
share=$(awk '{ for (i = 5; i <= NF; i++) { all++; one += length($i) == 1 } } END { printf "%d of %d, %.1f %%", one, all, 100 * one / all }' <<<"$functions")
rule "fewer than 10 % of the functions' parameters have one letter ($share; tests/tools/functions.awk lists them)" "$(awk '{ for (i = 5; i <= NF; i++) { all++; one += length($i) == 1; in_file[$1] += length($i) == 1 } }
    END { if (10 * one >= all) for (file in in_file) if (in_file[file]) print file ": " in_file[file] }' <<<"$functions" | sort -t: -k2nr)"
# English: texts.awk lists the texts, phrases.txt what to write instead
planted='planted.c:1:comment: Truth: a sum that surely holds. There is no other sum, too.'
found=$(awk -f tests/tools/phrases.awk tests/tools/phrases.txt - <<<"$planted" | sed 's/.*: "\(.*\)" (.*/\1/' | xargs)
rule "planted phrases are found, and nothing else in the text" "$([ "$found" = "holds surely truth , too" ] || echo "$found")"
words_of() { # words_of KIND FILE...: the offences among texts of this kind
    local kind=$1; shift
    awk -f tests/tools/texts.awk "$@" | grep -E "^[^:]*:[0-9]+:$kind: " | awk -f tests/tools/phrases.awk tests/tools/phrases.txt -
}
words() { # words LIMIT KIND WHAT FILE...
    local limit=$1 kind=$2 what=$3 offences count; shift 3
    offences=$(words_of "$kind" "$@")
    count=$(grep -c . <<<"$offences")
    rule "$what: $count listed phrases, at most $limit (tests/tools/phrases.txt)" "$([ "$count" -le "$limit" ] || echo "$offences")"
}
guides=(cli/guides/*.txt README.md samples/README.md)
others=(); for file in "${texts[@]}"; do case $file in cli/*|parts/*|vlmprof*|cli.c|*.md|Makefile) ;; *) others+=("$file") ;; esac; done
words 0 text "guides and README" "${guides[@]}"
words 0 string "strings of the product" "${product[@]}"
words 20 comment "comments of the product" "${product[@]}" cli/page/*.css cli/page/*.js
words 15 comment "comments of tests, samples and scripts" "${others[@]}" Makefile
rule "no tabs" "$(grep -n $'\t' "${sources[@]}")"
rule "no blanks at the end of a line" "$(grep -nE ' +$' "${sources[@]}")"
rule "nothing left to be done later" "$(grep -nE '\b(TOD[O]|FIXM[E]|XX[X])\b' "${texts[@]}")"
rule "no fast-math, nothing tied to this processor" "$(grep -nE 'f(fast|unsafe)-mat[h]|-Ofas[t]|-march=nativ[e]|use_fast_mat[h]' Makefile mk/*.mk .ci/run $(find tests -name '*.sh'); grep -nE '(pragma|optimize).*fast-mat[h]' "${sources[@]}")"
rule "no path of a developer's machine" "$(grep -nE '(^|[^A-Za-z.])/(wor[k]|hom[e]|roo[t])(/|$)' "${texts[@]}")"
# double underscores belong to the compiler: its names begin with them; a feature-test macro is the only leading underscore that is defined
rule "no double underscore inside a name" "$(grep -noE '\b[A-Za-z0-9]\w*__\w*' "${sources[@]}" | grep -vE ':(_mm|_tile|stbi__|[0-9a-z]+__(low|medium|high|adaptive))')"
rule "no double underscore before an own name" "$(grep -noE '\b__\w+' $(printf '%s\n' "${product[@]}" | grep -vE "\.cu$|^parts/kernels/") $(find tests samples -name '*.c' -o -name 'check.h') |
    grep -vE ':__(attribute__|asm__|builtin_\w+|cplusplus|GNUC\w*|clang_\w*|FAST_MATH__|CUDACC__|CUDA_ARCH__|x86_64__|aarch64__|linux__|unix__|APPLE__|FILE__|LINE__|func__|VA_ARGS__|has_\w+|STRICT_ANSI__|SANITIZE_\w+|FLT16_\w+|STDC_\w+|OPTIMIZE__|VERSION__|BYTE_ORDER__|ORDER_\w+|SIZEOF_\w+|AVX\w+|thread|atomic_\w+|ATOMIC_\w+|m[0-9]+\w*|extension__|fish_\w+)$')"
# (cuda_on_cpu.h stands for CUDA's own headers)
rule "no own macro with a leading underscore" "$(grep -nE '^ *# *define +_' "${sources[@]}" | grep -vE '^tests/emulator/cuda_on_cpu.h:' | grep -vE 'define _(DEFAULT|POSIX_C|GNU|XOPEN|DARWIN_C)_SOURCE|define _FILE_OFFSET_BITS')"
# every tag of the manual's table has a banner, and every banner is in the table
manual=$(sed -n '/Table of contents/,/Vocabulary/p' vlmprof.h | grep -oE '>>[a-z_]+' | sort -u)
banners=$(sed -n '/#ifndef VLMPROF_H/,$p' vlmprof.h | grep -oE '>>[a-z_]+' | sort -u)
rule "table of contents and banners name the same tags" "$(diff <(echo "$manual") <(echo "$banners"))"
tracked=$(git ls-files 2>/dev/null)
tracked=${tracked:-$(find . -path ./build -prune -o -type f -print)}
rule "nothing else at the top level" "$(sed 's|/.*||' <<<"${tracked//.\//}" | sort -u | grep -vxE '\.ci|\.editorconfig|\.gitignore|LICENSE|Makefile|README\.md|cli|cli\.c|mk|packaging|parts|python|samples|tests|vlmprof\.h|vlmprof_kernels\.cu|vlmprof|build|')"
# (examples of names contain NAME; data/ and models/ are those of other projects)
rule "files of ours that comments name exist" "$(awk -f tests/tools/texts.awk "${product[@]}" | awk 'FNR == NR { while (sub(/^[^\/]*\//, "|&") && match($0, /\//)) { sub(/^\|/, ""); is_there[$0] = 1; sub(/^[^\/]*\//, "") } next }
    /^[^:]*:[0-9]+:comment: / { at = $0; sub(/:comment: .*/, "", at); text = $0
        while (match(text, /(base|cli|commands|engine|help|kernels|measure|model|page|parts|profile|report|request|results|score|server|sweep|tests|tile|trace)(\/[A-Za-z0-9_]+)+\.(c|h|cu|sh|py|js|css)/)) {
            name = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
            if (!(name in is_there) && name !~ /NAME/) print at ": " name } }' <(echo "$tracked") -)"
rule "nothing that an editor or a patch left" "$(grep -E '\.(orig|rej|bak|swp)$|~$' <<<"$tracked")"
# (make runs tests/*/test_*.sh; a script that names itself alone does not count)
rule "each script is named by a target, another script, a test, a guide or a README" "$(find Makefile mk packaging README.md .ci/run cli parts samples tests -type f \
    \( -name Makefile -o -name '*.mk' -o -path '.ci/run' -o -name '*.txt' -path '*guides*' -o -name '*.md' -o -name '*.sh' -o -name '*.py' -o -name '*.[ch]' -o -name '*.template' \) -print0 |
    xargs -0 grep -oE '[A-Za-z0-9_]+\.(sh|py)' | awk -F: '{ file = $1; sub(/.*\//, "", file); if (file != $2) named[$2] = 1 }
        END { while (("find tests samples packaging .ci -name \"*.sh\" -o -name \"*.py\"" | getline path) > 0) {
            name = path; sub(/.*\//, "", name); if (!(name in named) && name !~ /^test_.*\.sh$/ && path !~ /^packaging\/python\//) print path } }')"
rule "each function is called by the program, a test or a sample (tests/tools/functions.awk)" "$(
    awk -v unused='^(cli|parts|vlmprof|tests/support)' -f tests/tools/functions.awk "${sources[@]}" $(find tests samples -name '*.cpp') parts/*.hpp)"
rule "each source has a row of tests/mutate_tests.txt, each row a source, each of its tests a file" "$(printf '%s\n' "${product[@]}" | awk '
    function file_of(test) { sub(/.*\//, "", test); sub(/^corpus_/, "fuzz_", test); return test ~ /\.sh$/ ? test : test == "emulator" ? test ".cpp" : test ".c" }
    function is_there(name) { return name in there }
    FILENAME == ARGV[1] { sub(/.*\//, ""); there[$0] = 1; next }
    FILENAME != "-" && /^[^#]/ { row[++rows] = $1; sub(/:$/, "", row[rows]); tests[rows] = substr($0, length($1) + 2)
        if (tests[rows] ~ /^\(.*\)$/) next
        for (i = 2; i <= NF; i++) if ($i != "test_@" && !is_there(file_of($i))) print row[rows] ": there is no " file_of($i) }
    FILENAME == "-" { for (i = 1; i <= rows && index($0, row[i]) != 1; i++); fits[i] = 1
        if (i > rows) { print $0 ": no row"; next }
        own = $0; sub(/.*\//, "", own); sub(/^vlmprof_/, "", own); sub(/\..*/, "", own)
        if (tests[i] == "test_@" && !is_there(file_of("test_" own)) && $0 ~ /\.c$|^parts/) print $0 ": there is no " file_of("test_" own) }
    END { for (i = 1; i <= rows; i++) if (!fits[i]) print row[i] ": no source begins so" }' <(find tests -type f) tests/mutate_tests.txt -)"
echo "check_style: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
