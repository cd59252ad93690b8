#!/bin/bash
# venv.sh FOLDER: makes a virtual environment with llama.cpp's server (requirements.txt) in FOLDER, or leaves one that is whole. Prints nothing when
# all is there; where it cannot be had, prints the reason in one line and exits 1.
cd "$(dirname "$0")" || exit 1
folder=$1 python=${PYTHON:-python3}
case $folder in /*) ;; *) folder=$OLDPWD/$folder;; esac
whole() { cmp -s requirements.txt "$folder/requirements.txt" && "$folder/bin/python" -c 'import gguf, xllamacpp' 2>/dev/null; }
refuse() { echo "$1" | tail -n 1; exit 1; }

whole && exit 0
said=$("$python" --version 2>&1) || refuse "no $python: $said"
rm -rf "$folder"
mkdir -p "$folder" || exit 1
said=$("$python" -m venv "$folder" 2>&1) || refuse "$python -m venv: $(head -n 1 <<<"$said")"
said=$("$folder/bin/pip" install --disable-pip-version-check --only-binary :all: --retries 1 --timeout 15 -q -r requirements.txt 2>&1) ||
    refuse "pip install: $(grep -E '^ERROR' <<<"$said" | tail -n 1)"
cp requirements.txt "$folder/"
whole || refuse "the installed wheel of xllamacpp does not load: $("$folder/bin/python" -c 'import gguf, xllamacpp' 2>&1 | tail -n 1)"
