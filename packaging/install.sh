#!/bin/bash
# install.sh install|uninstall FOLDER: copies the files of packaging/files.txt below FOLDER, or removes them and the folders that are this program's own.
# make sets B, PROGRAM and GPU_OBJECT, which is empty in a program without GPU code.
set -eu
action=$1 root=$2
folders=()
while read -r folder names; do
    names=${names//'$B'/$B} names=${names//'$PROGRAM'/$PROGRAM} names=${names//'$GPU_OBJECT'/$GPU_OBJECT}
    case $folder in *vlmprof*) folders+=("$root/$folder") ;; esac
    for from in $names; do
        to=$root/$folder/${from##*[/=]} from=${from%=*}
        if [ "$action" = uninstall ]; then rm -f "$to"
        elif [ -x "$from" ]; then install -D -m 755 "$from" "$to"
        else install -D -m 644 "$from" "$to"; fi
    done
done < <(grep -v '^#' packaging/files.txt)
if [ "$action" = uninstall ]; then # the innermost folders first; some contain folders only
    printf '%s\n' "${folders[@]}" "$root"/share/vlmprof/parts{,/kernels} | sort -r | while read -r folder; do
        if [ -d "$folder" ]; then rmdir --ignore-fail-on-non-empty "$folder"; fi
    done
fi
