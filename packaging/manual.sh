#!/bin/bash
# manual.sh PROGRAM FOLDER: manual pages with the texts of the program's help: vlmprof(1), vlmprof-COMMAND(1), vlmprof-TOPIC(7)
set -eu
program=$1 folder=$2
version=$(sed -n 's/^#define VLMPROF_VERSION "\(.*\)"/\1/p' vlmprof.h)
page() { # page NAME SECTION SUMMARY WORDS...: SUMMARY is the sed command that prints the summary of the text of `vlmprof WORDS`
    local name=$1 section=$2 text
    text=$("$program" "${@:4}" | sed "s/\\\\/\\\\e/g; s/-/\\\\-/g; s/'/\\\\(aq/g; s/\^/\\\\(ha/g; s/~/\\\\(ti/g; s/^\./\\\\\&./")
    printf '.TH "%s" %d "" "vlmprof %s" "vlmprof"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n' "${name^^}" "$section" "$version" \
        "${name//-/\\-}" "$(sed -n "$3" <<<"$text")" "$text" >"$folder/$name.$section"
}
page vlmprof 1 '1s/^[^:]*: //p' help
for word in $("$program" help --list); do
    if [ -e "cli/commands/command_$word.c" ]; then section=1 all=--all; else section=7 all=; fi
    page "vlmprof-$word" $section '1s/^[^ ]* \\- //p' help "$word" $all
done
