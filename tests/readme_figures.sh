#!/bin/bash
# readme_figures.sh FILE...: README.md, in which each line of the text blocks, and each comment line of the Python block, is replaced by the last line of FILE...
# that differs from it only in numbers. Names the lines that no file has on stderr, and then ends with 1.
CDPATH= cd "$(dirname "$0")/.." || exit 1
awk 'function shape(line) { sub(/^ +/, "", line); gsub(/[-+]?[0-9][0-9.,]*(e[-+]?[0-9]+)?/, "N", line); gsub(/ +/, " ", line); return line }
    FILENAME != "README.md" { at = shape($0); sub(/^ +/, ""); printed[at] = $0; next }
    /^```/ { block = block == "" ? $0 : "" }
    {
        mark = block == "```python" && /^# / ? "# " : ""
        line = substr($0, length(mark) + 1)
        if (mark != "" || block == "```text" && !/^```/) {
            if (shape(line) in printed) $0 = mark printed[shape(line)]
            else { print "not printed: " $0 >"/dev/stderr"; missing = 1 }
        }
        print
    }
    END { exit missing }' "$@" README.md
