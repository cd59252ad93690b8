# phrases.awk -v kind=KIND: of the texts of this kind that texts.awk prints, those in which a phrase of phrases.txt (the first file) is:
# `FILE:LINE: "PHRASE" (write: ..): TEXT`.
FNR == NR {
    if ($0 ~ /^#/ || !match($0, / -> /)) next
    allowed = sub(/^allow /, "")
    match($0, / -> /)
    pattern = (/^,/ ? "(" : "(^|[^a-z0-9_])(") substr($0, 1, RSTART - 1) ")"
    if (pattern !~ /\$\)\)$/) pattern = pattern "($|[^a-z0-9_])"
    if (allowed) allow[++allows] = pattern
    else { phrase[++phrases] = pattern; better[phrases] = substr($0, RSTART + RLENGTH) }
    next
}
match($0, ":[0-9]+:" kind ": ") {
    where = substr($0, 1, RSTART - 1)
    text = substr($0, RSTART + RLENGTH)
    lower = tolower(text)
    gsub(/\\[nt]/, "  ", lower)
    for (i = 1; i <= allows; i++) gsub(allow[i], " . ", lower)
    for (i = 1; i <= phrases; i++) if (match(lower, phrase[i])) {
        found = substr(lower, RSTART, RLENGTH)
        gsub(/^[^a-z,]+|[^a-z]+$/, "", found)
        print where ": \"" found "\" (write: " better[i] "): " substr(text, 1, 300)
    }
}
