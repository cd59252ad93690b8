# functions.awk: each function definition of C sources: `FILE LINE NAME LINES PARAMETER...`, for check_style.sh. It reads the house's form: a
# definition begins in column 0, its last line is a brace in column 0 (or it ends on the line where its body begins).
# With -v unused=PATTERN: instead, the definitions in files whose names match PATTERN that stand nowhere else but in prototypes, `FILE:LINE: NAME`. A name
# that a macro pastes together counts where its pieces stand.
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
function one_parameter(text,   name) {
    gsub(/\[[^]]*\]/, "", text)
    if (match(text, /\( *\*+ *[A-Za-z_][A-Za-z0-9_]*/)) { name = substr(text, RSTART, RLENGTH); gsub(/[^A-Za-z0-9_]/, "", name); return name }
    gsub(/[^A-Za-z0-9_.]+/, " ", text)
    sub(/ +$/, "", text)
    sub(/^ +/, "", text)
    if (text == "" || text == "void" || text ~ /\.\.\./ || text !~ / /) return "" # a type alone: the parameter has no name
    sub(/^.* /, "", text)
    return text
}
function parameters(text,   i, c, depth, piece, out, name) { # of what stands between the outermost parentheses
    for (i = 1; i <= length(text) + 1; i++) {
        c = i > length(text) ? "," : substr(text, i, 1)
        if (c == "," && !depth) {
            name = one_parameter(piece)
            if (name != "") out = out " " name
            piece = ""
            continue
        }
        if (c == "(") depth++
        if (c == ")") depth--
        piece = piece c
    }
    return out
}
function uses(text,   count, i, words, pieces) { # the names in a piece of code that is neither a prototype nor the head of a definition
    if (unused == "") return
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
function begin_function(   open_at, i, depth, name) {
    open_at = match(head, /[A-Za-z_][A-Za-z0-9_]* *\(/)
    while (open_at && substr(head, open_at, RLENGTH) ~ /^(__attribute__|__launch_bounds__|BOUNDS|defined) *\(/) {
        head = substr(head, 1, open_at - 1) substr(head, open_at + RLENGTH)
        sub(/^[^)]*\)+/, "", head)
        open_at = match(head, /[A-Za-z_][A-Za-z0-9_]* *\(/)
    }
    if (!open_at) return 0
    name = substr(head, open_at, RLENGTH)
    sub(/ *\($/, "", name)
    i = open_at + RLENGTH
    for (depth = 1; i <= length(head) && depth; i++) {
        if (substr(head, i, 1) == "(") depth++
        if (substr(head, i, 1) == ")") depth--
    }
    if (name == "KERNEL") { # KERNEL(name, ..): the macro's first argument
        name = substr(head, open_at + RLENGTH)
        sub(/[^A-Za-z0-9_].*/, "", name)
    }
    current = name parameters_text(substr(head, open_at + RLENGTH, i - open_at - RLENGTH - 1))
    return 1
}
function parameters_text(text) { return "|" parameters(text) }
function finish(last,   part) {
    split(current, part, "|")
    if (unused == "") print FILENAME, start, part[1], last - start + 1 part[2]
    else if (FILENAME ~ unused) defined[part[1]] = FILENAME ":" start
    current = ""
}
FNR == 1 { head = ""; current = ""; in_comment = 0; directive = 0 }
{
    line = plain($0)
    was_directive = directive
    directive = (line ~ /^[ \t]*#/ || was_directive) && line ~ /\\$/
    if (was_directive || line ~ /^[ \t]*#/) { uses(line); next }
    if (current != "") { uses(line); if (line ~ /^}/) finish(FNR); next }
    if (head == "" && line !~ /^[A-Za-z_]/) { uses(line); next }
    if (head == "" && line ~ /^(typedef|enum|struct|union|extern)[^(]*[{;]/) { uses(line); next }
    if (head == "") start = FNR
    head = head " " line
    brace = index(head, "{")
    if (brace) {
        body = substr(head, brace)
        head = substr(head, 1, brace - 1)
        if (head !~ /=/ && head !~ /(^|[^A-Za-z_])(typedef|enum) / && head ~ /\)/ && begin_function()) { if (line ~ /} *$/) finish(FNR) } else uses(head)
        uses(body)
        head = ""
    } else if (line ~ /;[ \t]*$/ || line ~ /^[A-Z_]+\(.*\)[ \t]*$/) {
        if (head ~ /=/ || head !~ /[A-Za-z0-9_*][ *]+[A-Za-z_][A-Za-z0-9_]* *\(/) uses(head)
        head = ""
    }
}
END { for (name in defined) if (!(name in used) && !is_pasted(name)) print defined[name] ": " name }
