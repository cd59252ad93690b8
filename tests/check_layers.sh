#!/bin/bash
# check_layers.sh [ROOT]: who includes whom. Data and includes go one way: vlmprof.h <- parts/ <- parts/lib/ <- the engine and the kernels <- cli/ <- cli.c.
#
# Two tables below state it. MAY: the first row that fits a file says all that it may include. NEVER: what a file must not reach, also through others.
# A header reaches what its own .c file reaches: who includes report/report.h links report/report.c. A room is a .c file with the .h file of its name.
# Each file of the tree must have a row, each row a file, each quoted include a file; rooms must not need each other in a circle; a .c file
# declares nothing `extern`. Ends with a count line.
cd "${1:-$(dirname "$0")/..}" || exit 1
export LC_ALL=C
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# FILE or FOLDER/ or PATTERN, a colon, and FILES, FOLDERS/ or names of sets. vlmprof_x is parts/vlmprof_x.h or parts/lib/vlmprof_x.h.
cat >"$work/may" <<'TABLE'
vlmprof.h:
parts/vlmprof_score.h:      vlmprof.h vlmprof_json vlmprof_unicode
parts/vlmprof_unicode.h:    vlmprof_json
parts/vlmprof_ranges.h:     vlmprof_json
parts/vlmprof_families.h:   vlmprof.h vlmprof_json
parts/vlmprof_torch_trace.h: vlmprof.h vlmprof_file vlmprof_ranges vlmprof_stages vlmprof_trace
parts/vlmprof_:             vlmprof.h
parts/lib/vlmprof_caption.: vlmprof.h vlmprof_unicode vlmprof_caption
parts/lib/vlmprof_chat.:    vlmprof.h vlmprof_json vlmprof_chat
parts/lib/vlmprof_checkpoint.: vlmprof.h vlmprof_json vlmprof_file vlmprof_config vlmprof_checkpoint
parts/lib/vlmprof_config.:  vlmprof.h vlmprof_json vlmprof_config
parts/lib/vlmprof_engine.:  vlmprof.h vlmprof_stages vlmprof_ranges vlmprof_checkpoint
parts/lib/vlmprof_analysis.: vlmprof.h vlmprof_statistics vlmprof_analysis
parts/lib/vlmprof_latency.: vlmprof.h vlmprof_statistics vlmprof_analysis vlmprof_latency
parts/lib/vlmprof_noise.:   vlmprof.h vlmprof_noise
parts/lib/vlmprof_policy.:  vlmprof.h vlmprof_analysis vlmprof_policy
parts/lib/vlmprof_processor.: vlmprof.h vlmprof_families vlmprof_processor
parts/lib/vlmprof_prompt.:  vlmprof.h vlmprof_prompt
parts/lib/vlmprof_server.:  vlmprof.h vlmprof_chat vlmprof_server
parts/lib/vlmprof_tokenizer.: vlmprof.h vlmprof_unicode vlmprof_tokenizer
parts/engine/backend.h:     vlmprof.h vlmprof_stages vlmprof_ranges
parts/engine/host_loops.h:  vlmprof.h
parts/engine/:              vlmprof.h vlmprof_stages vlmprof_ranges vlmprof_config vlmprof_checkpoint vlmprof_file vlmprof_engine parts/engine/
parts/kernels/:             vlmprof.h vlmprof_stages vlmprof_ranges parts/engine/backend.h parts/engine/host_loops.h parts/kernels/
vlmprof_kernels.cu:         vlmprof.h vlmprof_stages vlmprof_ranges vlmprof_engine parts/engine/backend.h parts/engine/host_loops.h parts/kernels/
cli/base/:                  vlmprof.h vlmprof_json vlmprof_file vlmprof_stages vlmprof_ranges vlmprof_noise vlmprof_analysis vlmprof_chat cli/base/
cli/results/metrics.:       vlmprof.h vlmprof_statistics vlmprof_stages vlmprof_analysis vlmprof_chat cli/base/ cli/results/metrics.h
cli/results/result_read.:   vlmprof.h vlmprof_file vlmprof_stages vlmprof_config vlmprof_noise vlmprof_chat cli/base/ cli/results/
cli/results/result_scores.: vlmprof.h vlmprof_file vlmprof_analysis cli/base/ cli/results/
cli/results/knobs.:         vlmprof.h vlmprof_config cli/base/ cli/results/
cli/results/:               vlmprof.h vlmprof_noise vlmprof_chat cli/base/ cli/results/
cli/model/image.:           vlmprof.h vlmprof_file vlmprof_image cli/base/ cli/model/image.h
cli/model/prompt.:          vlmprof.h vlmprof_json vlmprof_prompt cli/base/ cli/model/prompt.h
cli/model/:                 subjects cli/base/ cli/model/
cli/tile/:                  vlmprof.h vlmprof_file vlmprof_image vlmprof_families cli/base/ cli/model/image.h cli/tile/
cli/score/:                 vlmprof.h vlmprof_file vlmprof_score vlmprof_caption vlmprof_analysis cli/base/ cli/score/
cli/trace/:                 vlmprof.h vlmprof_file vlmprof_ranges vlmprof_trace cli/base/ cli/trace/
cli/help/:                  vlmprof.h vlmprof_families cli/base/ cli/help/
cli/server/:                vlmprof.h vlmprof_statistics vlmprof_file vlmprof_image vlmprof_families vlmprof_chat vlmprof_server vlmprof_noise cli/base/ cli/results/ cli/model/image.h cli/tile/ cli/server/
cli/measure/noise.:         vlmprof.h vlmprof_statistics vlmprof_noise cli/base/ cli/measure/noise.h
cli/measure/:               subjects cli/base/ cli/model/ cli/results/ cli/tile/ cli/score/ cli/server/ cli/measure/
cli/data/:                  vlmprof.h vlmprof_chat vlmprof_families vlmprof_file vlmprof_image vlmprof_prompt vlmprof_score cli/base/ cli/model/ cli/results/ cli/tile/ cli/score/ cli/server/ cli/measure/ cli/data/
cli/profile/:               subjects cli/base/ cli/model/ cli/results/ cli/measure/ cli/profile/ cli/page/flame.h
cli/sweep/:                 subjects cli/base/ cli/model/ cli/results/ cli/tile/ cli/score/ cli/server/ cli/measure/ cli/profile/ cli/data/ cli/sweep/
cli/report/:                vlmprof.h vlmprof_statistics vlmprof_file vlmprof_stages vlmprof_config vlmprof_score vlmprof_analysis vlmprof_latency vlmprof_policy vlmprof_noise cli/base/ cli/score/ cli/results/ cli/report/ cli/measure/noise.h
cli/page/:                  vlmprof.h vlmprof_stages vlmprof_ranges vlmprof_analysis vlmprof_latency cli/base/ cli/report/ cli/page/ cli/results/metrics.h cli/results/result_read.h cli/measure/noise.h
cli/commands/commands.h:    cli/base/
cli/commands/:              subjects rooms cli/commands/commands.h cli/commands/settings.h
cli.c:                      vlmprof.h cli/base/ cli/help/ cli/measure/provenance.h cli/commands/commands.h
TABLE
sets() { # names that stand for several
    sed -E -f <(
        echo 's#\bsubjects\b#vlmprof.h parts/vlmprof_ parts/lib/vlmprof_#g'
        echo 's#\brooms\b#cli/base/ cli/model/ cli/results/ cli/tile/ cli/score/ cli/trace/ cli/help/ cli/server/ cli/measure/ cli/profile/ cli/data/ cli/sweep/ cli/report/ cli/page/#g'
        for path in parts/vlmprof_*.h parts/lib/vlmprof_*.h; do
            name=${path##*/}
            echo "s#(^| )${name%.h}( |\$)#\\1$path\\2#g"
        done)
}
# Who reads results, journals, scores, sizes and traces needs no engine; what one request is made of knows no data set and no sweep.
engine="parts/lib/vlmprof_engine.h parts/engine/ vlmprof_kernels.cu cli/model/model.h cli/measure/engine.h"
cat >"$work/never" <<TABLE
cli/base/:                    $engine
cli/results/:                 $engine
cli/tile/:                    $engine
cli/score/:                   $engine
cli/trace/:                   $engine
cli/help/:                    $engine
cli/server/:                  $engine
cli/report/:                  $engine
cli/page/:                    $engine
cli/measure/noise.:           $engine
cli/measure/record.:          $engine
cli/sweep/journal.:           $engine
cli/sweep/ranks.:             $engine
cli/sweep/result_gather.:     $engine
cli/sweep/result_write.:      $engine
cli/commands/command_compare.: $engine
cli/commands/command_fit.:     $engine
cli/commands/command_merge.:   $engine
cli/commands/command_report.:  $engine
cli/commands/command_score.:   $engine
cli/commands/command_tile.:    $engine
cli/commands/command_trace.:   $engine
parts/:                        cli/ cli.c vlmprof_kernels.cu
TABLE
sed -E 's/ +/ /g; s/: ?/:/' "$work/may" | while IFS=: read -r who what; do echo "$who:$(sets <<<"$what")"; done >"$work/may.sets"
sed -E -i 's/ +/ /g; s/: ?/:/' "$work/never"

find vlmprof.h vlmprof_kernels.cu cli.c parts cli \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) 2>"$work/missing" | sort >"$work/files"
# FILE LINE INCLUDED, an included file by its path from the root: next to the file itself, or where -I. -Iparts -Iparts/lib -Icli find it
xargs grep -HnE '^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"' <"$work/files" | sed -E 's/^([^:]*):([0-9]+):[^"]*"([^"]*)".*/\1 \2 \3/' |
    while read -r file line name; do
        own=${file%"${file##*/}"}
        for at in "$own" "" parts/ parts/lib/ cli/; do
            if [ -f "$at$name" ]; then echo "$file $line $at$name"; continue 2; fi
        done
        echo "$file $line ?$name"
    done >"$work/includes"

passed=0 failed=0
rule() { # rule NAME OFFENCES: passes when there are none
    if [ -z "$2" ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + $(wc -l <<<"$2")))
    echo "FAILED $1:"
    sed 's/^/  /' <<<"$2"
}
rule "the tree is whole" "$(cat "$work/missing")"
rule "each quoted include is a file of the tree" "$(awk '$3 ~ /^\?/ { print $1 ":" $2 ": " substr($3, 2) }' "$work/includes")"
cat >"$work/may.awk" <<'AWK'
function fits(path, pattern) { return path == pattern || (pattern ~ /[\/._]$/ && index(path, pattern) == 1) }
function row_of(path,   i) { for (i = 1; i <= rows; i++) if (fits(path, who[i])) { used[i] = 1; return i } return 0 }
FILENAME == ARGV[1] { split($0, part, ":"); who[++rows] = part[1]; may[rows] = part[2]; next }
FILENAME == ARGV[2] { if (!row_of($1)) print $1 ": has no row in the table"; next }
{
    row = row_of($1)
    count = split(may[row], allowed, " ")
    good = $3 ~ /^\?/
    for (i = 1; i <= count && !good; i++) good = fits($3, allowed[i])
    if (row && !good) print $1 ":" $2 ": includes " $3 "; may: " (count ? may[row] : "nothing")
}
END { for (i = 1; i <= rows; i++) if (!used[i] && who[i] != "parts/kernels/") print who[i] ": a row for nothing" }
AWK
awk -f "$work/may.awk" "$work/may.sets" "$work/files" "$work/includes" >"$work/offences"
rule "each file includes what its row allows" "$(grep -v 'a row for nothing$' "$work/offences")"
rule "each row has a file" "$(grep 'a row for nothing$' "$work/offences")"

# what each file reaches: its includes, a header's own .c file, and so on
cat >"$work/never.awk" <<'AWK'
function fits(path, pattern) { return path == pattern || (pattern ~ /[\/._]$/ && index(path, pattern) == 1) }
function walk(file,   i, next_one, todo, todo_count) { # fills from[]: reached file -> who led there
    split("", from)
    todo[todo_count = 1] = file
    from[file] = "-"
    for (i = 1; i <= todo_count; i++) {
        count = split(edges[todo[i]], to, " ")
        for (k = 1; k <= count; k++) if (!(to[k] in from)) { from[to[k]] = todo[i]; todo[++todo_count] = to[k] }
    }
}
function way(file,   text) { for (text = file; from[file] != "-"; text = file " > " text) file = from[file]; return text }
FILENAME == ARGV[1] { split($0, part, ":"); who[++rows] = part[1]; never[rows] = part[2]; next }
FILENAME == ARGV[2] {
    files[++file_count] = $1
    is_file[$1] = 1
    next
}
{ if ($3 !~ /^\?/) edges[$1] = edges[$1] " " $3 }
END {
    for (f = 1; f <= file_count; f++) if (files[f] ~ /^(cli|parts\/lib)\/.*\.h$/) {
        unit = files[f]
        sub(/\.h$/, ".c", unit)
        if (unit in is_file) edges[files[f]] = edges[files[f]] " " unit
    }
    for (f = 1; f <= file_count; f++) for (row = 1; row <= rows; row++) if (fits(files[f], who[row])) {
        matched[row] = 1
        walk(files[f])
        bad = ""
        count_never = split(never[row], not, " ")
        for (n = 1; n <= count_never; n++) for (reached in from) if (fits(reached, not[n])) bad = way(reached)
        if (bad != "") print files[f] ": " bad
    }
    for (row = 1; row <= rows; row++) if (!matched[row]) print who[row] ": a row for nothing"
}
AWK
rule "no file reaches what its row forbids" "$(awk -f "$work/never.awk" "$work/never" "$work/files" "$work/includes")"

# Rooms of the program in a circle: tsort names them.
awk '{ a = $1; b = $3; sub(/\.[ch]$/, "", a); sub(/\.[ch]$/, "", b); if (a ~ /^cli/ && b ~ /^cli/ && a != b) print a, b }' "$work/includes" >"$work/rooms"
rule "no circle of rooms" "$(tsort "$work/rooms" 2>&1 >/dev/null | sed 's/^tsort: //')"
awk '{ split($1, a, "/"); split($3, b, "/"); if (a[1] == "cli" && b[1] == "cli" && a[3] && b[3] && a[2] != b[2]) print a[2], b[2] }' "$work/includes" | sort -u >"$work/folders"
rule "no two folders of cli/ that include each other, also through others" "$(tsort "$work/folders" 2>&1 >/dev/null | sed 's/^tsort: //')"
rule "results/ includes base/ alone" "$(awk '$1 == "results" && $2 != "base"' "$work/folders")"
# Files of the engine in a circle, by the functions that they call: A B where A calls a function that B defines.
awk '{ line[++lines] = $0; file[lines] = FILENAME }
    /^[A-Za-z].*v[kp]_[a-z0-9_]+\(/ && !/^static/ && !/;$/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); home[name] = FILENAME }
    END { for (i = 1; i <= lines; i++) for (rest = line[i]; match(rest, /v[kp]_[a-z0-9_]+\(/); rest = substr(rest, RSTART + RLENGTH)) {
        name = substr(rest, RSTART, RLENGTH - 1); if (name in home && home[name] != file[i]) print file[i], home[name] } }' parts/engine/*.c | sort -u >"$work/calls"
rule "no circle of calls in the engine" "$(tsort "$work/calls" 2>&1 >/dev/null | sed 's/^tsort: //')"
rule "only commands/ reads options by name" "$(grep -nE '\b(text_of|number_of|is_given|has_option|opt)\(' $(grep -vE '^cli/(commands|base)/|^cli\.c$' "$work/files"))"
rule "no extern in a .c file" "$(grep -E '\.c$' "$work/files" | xargs grep -nE '^[[:blank:]]*extern\b' | grep -v 'extern "C"')"
echo "check_layers: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
