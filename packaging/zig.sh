#!/bin/bash
# zig.sh FOLDER: makes a virtual environment with the compiler zig (PyPI's ziglang) in FOLDER, or leaves one that is whole. Prints nothing when all is
# there; where it cannot be had, prints the reason in one line and exits 1. PYTHON: which Python 3.
set -u
folder=$1 python=${PYTHON:-python3} version=0.17.1
refuse() { echo "zig $version: $1"; exit 1; }
[ "$("$folder/bin/python" -m ziglang version 2>/dev/null)" = "$version" ] && exit 0
"$python" -c 'import venv' 2>/dev/null || refuse "no $python with venv"
rm -rf "$folder"
said=$("$python" -m venv "$folder" 2>&1) || refuse "$python -m venv: $(grep . <<<"$said" | tail -n 1)"
said=$(timeout 600 "$folder/bin/pip" install --disable-pip-version-check --only-binary :all: --retries 1 --timeout 15 -q "ziglang==$version" 2>&1) ||
    refuse "pip cannot install it (without a network?): $(grep . <<<"$said" | tail -n 1)"
"$folder/bin/python" -m ziglang version >/dev/null 2>&1 || refuse "it does not start here"
