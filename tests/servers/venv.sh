#!/bin/bash
# venv.sh FOLDER: makes a virtual environment with llama.cpp's server (requirements.txt) in FOLDER, or leaves one that is whole. Prints nothing when
# all is there; where it cannot be had, prints the reason in one line and exits 1. PYTHON: which Python 3, 3.11 or later.
folder=$(realpath -m "$1") python=${PYTHON:-python3}
CDPATH= cd "$(dirname "$0")" || exit 1
refuse() { echo "$1"; exit 1; }
probe() { "$folder/bin/python" -c 'import gguf, xllamacpp' 2>&1; }

cmp -s requirements.txt "$folder/requirements.txt" && probe >/dev/null && exit 0
"$python" -c 'import ctypes, venv' 2>/dev/null || refuse "no $python with venv"
if [ -e "$folder" ] && [ ! -e "$folder/pyvenv.cfg" ]; then refuse "$folder is no virtual environment"; fi
rm -rf "$folder"
said=$("$python" -m venv "$folder" 2>&1) || refuse "$python -m venv: $(grep -m 1 ensurepip <<<"$said" || grep . <<<"$said" | tail -n 1)"
# an index that does not answer is given up soon: pip alone waits for each of its addresses in turn
package=$(sed -n '1s/==.*//p' requirements.txt)
said=$(timeout 20 "$folder/bin/pip" index versions --disable-pip-version-check --retries 0 --timeout 10 "$package" 2>&1) ||
    refuse "pip finds no $package (without a network?): $(grep . <<<"$said" | tail -n 1)"
said=$(timeout 300 "$folder/bin/pip" install --disable-pip-version-check --only-binary :all: --retries 1 --timeout 15 -q -r requirements.txt 2>&1) ||
    refuse "pip cannot install $(head -n 1 requirements.txt) (without a network?): $(grep . <<<"$said" | tail -n 1)"
said=$(probe) || refuse "xllamacpp does not load: $(tail -n 1 <<<"$said")"
cp requirements.txt "$folder/"
