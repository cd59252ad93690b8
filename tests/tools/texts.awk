# texts.awk: the English of the files named, one text a line: `FILE:LINE:KIND: TEXT`, for check_style.sh and for reading. KIND is comment, string or
# text. Comment lines that follow one another are one text, and so are adjacent string literals; strings without a blank are left out. Of Markdown and
# guides each paragraph outside code is one, of scripts and Makefiles the comments.
function flush() {
    if (kind != "") {
        gsub(/[ \t]+/, " ", pending)
        sub(/^ /, "", pending)
        if (kind != "string" || pending ~ / /) print at ":" kind ": " pending
    }
    kind = pending = ""
}
function add(what, text) {
    if (kind != what) { flush(); kind = what; at = FILENAME ":" FNR; pending = text; return }
    pending = pending (what == "string" ? "" : " ") text
}
function c_line(line,   text, first, comment_only) {
    comment_only = line ~ /^ *(\/\/|\/\*)/
    if (in_comment) {
        if (match(line, /\*\//)) { add("comment", substr(line, 1, RSTART - 1)); flush(); in_comment = 0; line = substr(line, RSTART + 2) }
        else { sub(/^ *\*? ?/, "", line); if (line == "") flush(); else add("comment", line); return }
    } else if (kind == "comment" && !comment_only) flush()
    while (match(line, /["']|\/\/|\/\*/)) {
        first = substr(line, RSTART, RLENGTH)
        text = substr(line, 1, RSTART - 1)
        if (text !~ /^( |[A-Z]*PRI[A-Za-z0-9]+)*$/ && kind == "string") flush()
        line = substr(line, RSTART + RLENGTH)
        if (first == "//") { add("comment", line); if (!comment_only) flush(); return }
        if (first == "/*") {
            if (match(line, /\*\//)) { add("comment", substr(line, 1, RSTART - 1)); flush(); line = substr(line, RSTART + 2); continue }
            in_comment = 1
            if (line !~ /^\** *$/) add("comment", line)
            return
        }
        if (!match(line, first == "'" ? "^([^'\\\\]|\\\\.)*'" : "^([^\"\\\\]|\\\\.)*\"")) return
        if (first == "\"") add("string", substr(line, 1, RLENGTH - 1))
        line = substr(line, RLENGTH + 1)
    }
    if (kind == "string" && line !~ /^( |PRI[A-Za-z0-9]+|\\)*$/) flush()
}
FNR == 1 { flush(); in_comment = fenced = 0 }
FILENAME ~ /\.(c|h|cu|hpp|cpp|css|js)$/ { if ($0 !~ /^ *# *include/) c_line($0); next }
FILENAME ~ /\.(md|txt)$/ {
    if ($0 ~ /^```/) { fenced = !fenced; flush(); next }
    if (fenced || $0 ~ /^ *$/) { flush(); next }
    if ($0 ~ /^ *([-*|#]|[a-zA-Z_, .]+   )/) flush()
    add("text", $0)
    next
}
{
    if (match($0, /(^|[ \t])#[ !]/) && substr($0, RSTART) !~ /^#!/) {
        if ($0 !~ /^[ \t]*#/) flush()
        add("comment", substr($0, RSTART + RLENGTH))
        if ($0 !~ /^[ \t]*#/) flush()
    } else flush()
}
END { flush() }
