#!/bin/bash
# check_style.sh: the rules of style that compilers, clang-tidy, shellcheck and codespell do not know: budgets, the top level, words, names that must
# exist. Prints each offence and ends with a count line. Allowed includes: check_layers.sh; the tools: check_tools.sh.
CDPATH= cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
# How many lines the parts of the repository may have together. Rows are lowered. They rose twice: when a sweep learned load and start-up options of servers
# (cli 42,480 before), and when policies came (cli 42,595, header_parts_kernels 42,611, tests 55,791 before). Both are to be paid back before anything is added.
budgets='cli                      43527  ^cli/.*\.(c|h|css|js)$
header_parts_kernels     43525  ^(vlmprof\.h|parts/.*\.(c|h|hpp)|vlmprof_kernels\.cu)$
vlmprof.h                 2300  ^vlmprof\.h$
tests                    56209  ^tests/.*\.(c|h|sh|py|cu)$
python                    3490  ^python/.*\.(py|c)$
pinned_texts             14440  ^tests/golden/texts/'
# And how many one file may have: the first row that fits it.
file_limits='generated_or_copied 99999  ^(vlmprof\.h|parts/.*unicode|tests/golden)
kernels                3990  ^vlmprof_kernels\.cu$
tests_of_kernels       3200  ^tests/(kernels/test_kernels\.c|emulator/cuda_on_cpu\.h)$
copied_headers         2250  ^parts/vlmprof_[a-z]+\.h$
parts_lib              2030  ^parts/lib/
any_other              1230  .'
tracked=$(git ls-files -co --exclude-standard 2>/dev/null || find . -type f -not -path './build/*' -printf '%P\n')
files() { grep -E "$1" <<<"$tracked" | grep -vE "${2:-^$}" | xargs ls -d 2>/dev/null; } # files PATTERN [BUT]
product=$(files '^(cli|parts|vlmprof).*\.(c|h|cu)$')
sources=$(files '^(cli|parts|vlmprof|tests|samples).*\.(c|h|cu|css|js)$')
others=$(files '^((tests|samples)/.*\.(c|h|cu|css|js|sh)|Makefile|mk/.*|packaging/.*|\.ci/run)$' THIRD-PARTY)
passed=0 failed=0
rule() { # rule NAME OFFENCES: passes when there are none
    if [ -z "$2" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1)); echo "FAILED $1:"; head -n 10 <<<"$2"
}
words() { # words LIMIT KIND FILE...: at most LIMIT of the phrases of tests/tools/phrases.txt in texts of this kind (texts.awk)
    local limit=$1 kind=$2 offences; shift 2
    offences=$(awk -f tests/tools/texts.awk "$@" | awk -f tests/tools/phrases.awk -v kind="$kind" tests/tools/phrases.txt -)
    rule "at most $limit listed phrases, each $kind" "$([ "$(grep -c . <<<"$offences")" -le "$limit" ] || echo "$offences")"
}
lines=$(files '\.(c|h|hpp|css|js|sh|py|cu)$|^tests/golden/texts/' | xargs wc -l | awk '$2 != "total" { print $2, $1 }')
rule "lines within the budgets" "$(awk 'FNR == NR { limit[$1] = $2; pattern[$1] = $3; next } { for (row in limit) if ($1 ~ pattern[row]) sum[row] += $2 }
    END { for (row in limit) if (!(sum[row] > 0 && sum[row] <= limit[row])) print row ": " sum[row] + 0 " lines, budget " limit[row] }' <(echo "$budgets") <(echo "$lines"))"
rule "files within the limits" "$(awk 'FNR == NR { limit[FNR] = $2; pattern[FNR] = $3; next }
    { for (i = 1; $1 !~ pattern[i]; i++); if ($2 > limit[i]) print $1 ": " $2 " lines, limit " limit[i] }' <(echo "$file_limits") <(echo "$lines"))"
rule "30 sources at most in a folder of parts/ and cli/" "$(grep / <<<"$product" | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 30')"
rule "lines of at most 120 columns, 170 in tests with their tables" "$(awk 'FILENAME !~ /vlmprof_unicode/ && length > (FILENAME ~ /^tests/ ? 170 : 120) { print FILENAME ":" FNR ": " length }' $sources)"
words 0 text cli/guides/*.txt README.md samples/README.md
words 0 string $product
words 20 comment $product cli/page/*.css cli/page/*.js
words 15 comment $others
rule "nothing left to be done later" "$(grep -nE '\b(TOD[O]|FIXM[E]|XX[X])\b' $sources $others)"
rule "no fast-math, nothing tied to this processor" "$(grep -nE 'f(fast|unsafe)-mat[h]|-Ofas[t]|-march=nativ[e]|use_fast_mat[h]' $others | grep -v '^tests/core/test_flags.sh:')"
rule "no path of a developer's machine" "$(grep -nE '(^|[^A-Za-z.])/(wor[k]|hom[e]|roo[t])(/|$)' $sources $others README.md samples/README.md)"
tags() { sed -n "$1" vlmprof.h | grep -oE '>>[a-z_]+' | sort -u; }
rule "table of contents and banners name the same tags" "$(diff <(tags '/Table of contents/,/Vocabulary/p') <(tags '/#ifndef VLMPROF_H/,$p'))"
rule "nothing else at the top level, and nothing that an editor or a patch left" "$(sed 's|/.*||' <<<"$tracked" | sort -u |
    grep -vxE '\.ci|\.clang-format|\.clang-tidy|\.editorconfig|\.git-blame-ignore-revs|\.gitignore|LICENSE|Makefile|README\.md|cli|cli\.c|mk|packaging|parts|python|samples|tests|vlmprof(\.h|_kernels\.cu)?'
    grep -E '\.(orig|rej|bak|swp)$|~$' <<<"$tracked")"
# examples of names contain NAME
rule "files of ours that the product names exist" "$(grep -noE '\b(base|cli|commands|engine|help|kernels|measure|model|page|parts|profile|report|results|score|server|sweep|tests|tile|trace)(/\w+)+\.(c|h|cu|sh|py|js|css)\b' $product |
    awk -F: 'FNR == NR { for (at = "/" $0; at != ""; sub(/^\/[^\/]*/, "", at)) there[substr(at, 2)] = 1; next } !($3 in there) && $3 !~ /NAME/' <(echo "$tracked") -)"
rule "each function is called by the program, a test or a sample" "$(awk -f tests/tools/unused.awk $sources $(files '^(tests|samples)/.*\.cpp$|^parts/.*\.hpp$'))"
echo "check_style: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
