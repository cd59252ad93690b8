# Completes vlmprof's commands, topics, options and files in bash, from the program's own help. zsh reads it after bashcompinit.
_vlmprof() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ] || [ "$command" = help ]; then mapfile -t COMPREPLY < <(compgen -W "$(vlmprof help --list)" -- "$word")
    elif [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W "$(vlmprof help "$command" --all 2>/dev/null | grep -oE '^  --[a-z0-9_]+')" -- "$word")
    else mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi
}
complete -o filenames -F _vlmprof vlmprof
