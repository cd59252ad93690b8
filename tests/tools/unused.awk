# unused.awk: the functions of C sources that are named nowhere but in their definitions and prototypes, `FILE:LINE: NAME`, for check_style.sh; those
# of tests and samples do not count. It reads this house's form: a definition begins in column 0, its last line is a brace in column 0 (or it ends on the line where its
# body begins). A name that a macro pastes together counts where its pieces are.
function plain(text,   out, c, i, n, quote) { # without comments and what stands in quotes
    out = ""
    n = length(text)
    for (i = 1; i <= n; i++) {
        c = substr(text, i, 1)
        if (in_comment) { if (c == "*" && substr(text, i + 1, 1) == "/") { in_comment = 0; i++ } continue }
        if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = ""; continue }
        if (c == "/" && substr(text, i + 1, 1) == "*") { in_comment = 1; i++; continue }
        if (c == "/" && substr(text, i + 1, 1) == "/") break
        if (c == "\"" || c == "'") { quote = c; out = out "0"; continue }
        out = out c
    }
    return out
}
function uses(text,   count, i, words, pieces) { # the names in a piece of code
    gsub(/[^A-Za-z0-9_#]+/, " ", text)
    count = split(text, words, " ")
    for (i = 1; i <= count; i++) {
        if (split(words[i], pieces, "##") > 1) { beginnings[pieces[1]] = 1; endings[pieces[2]] = 1 }
        else used[words[i]] = 1
    }
}
function is_pasted(name,   piece, rest) {
    for (piece in beginnings) if (index(name, piece) == 1 && substr(name, length(piece) + 1) in used) return 1
    for (piece in endings) {
        rest = length(name) - length(piece)
        if (rest > 0 && substr(name, rest + 1) == piece && substr(name, 1, rest) in used) return 1
    }
    return 0
}
function begin_function(   open_at) { # the name that head defines is kept; 1: head is that of a function
    while ((open_at = match(head, /[A-Za-z_][A-Za-z0-9_]* *\(/)) && substr(head, open_at, RLENGTH) ~ /^(__attribute__|__launch_bounds__|BOUNDS|defined) *\(/) {
        head = substr(head, 1, open_at - 1) substr(head, open_at + RLENGTH)
        sub(/^[^)]*\)+/, "", head)
    }
    if (!open_at) return 0
    name = substr(head, open_at, RLENGTH)
    sub(/ *\($/, "", name)
    if (name == "KERNEL") name = substr(head, open_at + RLENGTH) # KERNEL(name, ..): the macro's first argument
    sub(/[^A-Za-z0-9_].*/, "", name)
    if (FILENAME ~ /^(cli|parts|vlmprof|tests\/support)/) defined[name] = FILENAME ":" FNR
    return 1
}
FNR == 1 { head = ""; inside = in_comment = directive = 0 }
{
    line = plain($0)
    was_directive = directive
    directive = (line ~ /^[ \t]*#/ || was_directive) && line ~ /\\$/
    if (was_directive || line ~ /^[ \t]*#/) { uses(line); next }
    if (inside) { uses(line); inside = line !~ /^}/; next }
    if (head == "" && line !~ /^[A-Za-z_]/) { uses(line); next }
    if (head == "" && line ~ /^(typedef|enum|struct|union|extern)[^(]*[{;]/) { uses(line); next }
    head = head " " line
    brace = index(head, "{")
    if (brace) {
        body = substr(head, brace)
        head = substr(head, 1, brace - 1)
        if (head !~ /=/ && head !~ /(^|[^A-Za-z_])(typedef|enum) / && head ~ /\)/ && begin_function()) inside = line !~ /} *$/
        else uses(head)
        uses(body)
        head = ""
    } else if (line ~ /;[ \t]*$/ || line ~ /^[A-Z_]+\(.*\)[ \t]*$/) {
        if (head ~ /=/ || head !~ /[A-Za-z0-9_*][ *]+[A-Za-z_][A-Za-z0-9_]* *\(/) uses(head)
        head = ""
    }
}
END { for (name in defined) if (!(name in used) && !is_pasted(name)) print defined[name] ": " name }
