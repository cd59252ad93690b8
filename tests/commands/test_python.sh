#!/bin/bash
# slow: installs the package several times, 12 s
# Proves that the Python package counts as the program does and calls it (tests/python/api.py, checks.py), that it reads data sets, tables and scores
# (data.py, tables.py) and compares stacks (conform.py), that `pip install ./python` and a wheel of the ordinary program install into an empty virtual
# environment without an index and run there, that the same input gives the same wheel, that the source package has what it builds from, and that ruff
# and mypy find nothing. PYTHON: one that has pandas, pyarrow, numpy and matplotlib; what lacks its library is skipped.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof} python=${PYTHON:-python3}
. tests/check.sh
skipped=0
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
finish() { echo "test_python: $passed passed, $failed failed, $skipped skipped"; [ "$failed" -eq 0 ]; exit; }
"$python" -c 'import ctypes, json, sys; assert sys.version_info >= (3, 9)' 2>/dev/null || { skip "all: no python3 of version 3.9 or later"; finish; }
program=$(realpath "$PROGRAM")

with() { VLMPROF=$program PYTHONPATH=python:tests/python PYTHONDONTWRITEBYTECODE=1 "$python" "$@"; }
count() { # count NAME: runs tests/python/NAME.py; its counts become ours
    local p f s counts
    mkdir "$work/$1"
    with "tests/python/$1.py" "$work/$1" >"$work/said" 2>&1
    grep -E '^(FAILED|skipped)|Error' "$work/said" | head -n 20
    counts=$(grep -oE "^$1: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$" "$work/said")
    check "tests/python/$1.py ends with its counts" [ -n "$counts" ]
    read -r _ p _ f _ s _ <<<"${counts:-none 0 0 0 0 0}"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}
count api     # tests/python/api.py
count data    # tests/python/data.py
count tables  # tests/python/tables.py
count conform # tests/python/conform.py

sed -n '/^    import/,/^$/s/^    //p' cli/guides/python.txt | sed "s|build/|$work/|" >"$work/guide.py"
check "the program of the guide python runs" with "$work/guide.py"

# ---- what tools find
for tool in ruff mypy; do
    if "$python" -m $tool --version >/dev/null 2>&1; then
        arguments=$([ $tool = ruff ] && echo "check --no-cache ." || echo "--cache-dir=$work/mypy")
        # shellcheck disable=SC2086
        (cd python && "$python" -m $tool $arguments) >"$work/said" 2>&1
        check "$tool: $(tail -n 1 "$work/said")" [ $? -eq 0 ]
    else skip "tools: no $tool"; fi
done

# ---- the wheel with the program
mkdir "$work/here" && cp "$program" "$work/here/vlmprof"
check "a wheel is made" "$python" packaging/wheel.py wheel "$work/here" "linux_$(uname -m)" "$work/wheels"
wheel=$(ls "$work"/wheels/*.whl)
cp "$wheel" "$work/first.whl"
check "and made again" "$python" packaging/wheel.py wheel "$work/here" "linux_$(uname -m)" "$work/wheels"
check "the same bytes" cmp "$wheel" "$work/first.whl"
"$python" -m zipfile -l "$wheel" >"$work/list"
for file in vlmprof/torch/families.py vlmprof/data/tables.py vlmprof/conform/__main__.py vlmprof/py.typed licenses/LICENSE licenses/THIRD-PARTY.txt; do
    check "the wheel has $file" grep -q "$file" "$work/list"
done
if "$python" -m venv "$work/venv" >/dev/null 2>&1 && "$python" -m venv "$work/checkout" >/dev/null 2>&1; then
    check "it installs into an empty environment" "$work/venv/bin/pip" install --disable-pip-version-check -q --no-index "$wheel"
    top=$PWD
    cd "$work" || exit 1
    check "the console script is the program" cmp "$work/venv/bin/vlmprof" "$program"
    check "the console script runs" "$work/venv/bin/vlmprof" tile 640x480
    check "python -m vlmprof runs the same" [ "$("$work/venv/bin/python" -m vlmprof tile 640x480)" = "$("$work/venv/bin/vlmprof" tile 640x480)" ]
    check "the package finds both" [ "$("$work/venv/bin/python" -c 'import vlmprof; print(vlmprof.count_tokens("qwen3-vl", 640, 480), vlmprof.run(["tile", "640x480"])[0]["width"])')" = "300 640" ]
    "$work/venv/bin/python" -c 'import vlmprof.torch' >"$work/said" 2>&1
    check "without torch vlmprof.torch says what to install" grep -q 'vlmprof.torch needs torch and transformers: pip install' "$work/said"
    check "pip install ./python needs no index and no compiler" env PATH="$work/checkout/bin:/usr/bin:/bin" CC=/none "$work/checkout/bin/pip" install \
        --disable-pip-version-check -q --no-index "$top/python"
    [ ! -x "$top/vlmprof" ] || check "it finds the program of the checkout" [ "$("$work/checkout/bin/python" -c 'import vlmprof; print(vlmprof.program())')" = "$top/vlmprof" ]
    check "or the one that VLMPROF names" [ "$(VLMPROF=$program "$work/checkout/bin/python" -m vlmprof tile 640x480)" = "$("$program" tile 640x480)" ]
    rm "$work"/checkout/lib/python*/site-packages/vlmprof/checkout
    PATH=/none "$work/checkout/bin/python" -c 'import vlmprof; vlmprof.run(["tile"])' >"$work/said" 2>&1
    check "and says where it looks if there is none" grep -q 'the program vlmprof was not found: set VLMPROF=' "$work/said"
    PATH=$work/venv/bin "$work/checkout/bin/python" -c 'import vlmprof; print(vlmprof.program())' >"$work/said" 2>&1
    check "the first of PATH" grep -qx "$work/venv/bin/vlmprof" "$work/said"
    cd - >/dev/null || exit 1
else skip "the wheel in an environment of its own: no $python with venv"; fi
check "a source package is made" "$python" packaging/wheel.py sdist "$work"
tar -tzf "$work"/vlmprof-*.tar.gz >"$work/list"
for file in pyproject.toml PKG-INFO Makefile mk/dist.mk vlmprof.h vlmprof_kernels.cu cli.c tests/deps.sh packaging/wheel.py python/backend.py python/vlmprof/torch/sweep.py; do
    check "the source package has $file" grep -qE "^vlmprof-[0-9.]+/$file$" "$work/list"
done

finish
