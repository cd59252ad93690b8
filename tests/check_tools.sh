#!/bin/bash
# check_tools.sh: the field's own tools over the repository: clang-tidy, shellcheck (errors), codespell, ruff and mypy. A tool that is not installed is skipped;
# `make check` installs them where it may. Ends with a count line.
CDPATH= cd "$(dirname "$0")/.." || exit 1
B=${B:-build}
passed=0 failed=0 skipped=0
PATH=$PATH:$PWD/$B/tools/bin
tool() { # tool NAME WHAT ARGUMENTS...: passes if the tool, called so, finds nothing
    local name=$1 what=$2 said; shift 2
    if ! command -v "$name" >/dev/null; then skipped=$((skipped + 1)); echo "skipped: $what: no $name"; return; fi
    if said=$("$name" "$@" 2>&1); then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $what:"; head -n 20 <<<"$said"; fi
}
mapfile -t scripts < <(git ls-files '*.sh' .ci/run | grep -v '^tests/check\.sh$') # check.sh is read by others
mapfile -t texts < <(git ls-files README.md Makefile mk cli cli.c parts vlmprof.h vlmprof_kernels.cu packaging python samples/README.md | grep -vE 'THIRD-PARTY|unicode')
tool shellcheck "scripts" -S error "${scripts[@]}"
# words of formulas and tables: MAPE, rouge_l, cudaDeviceGetAttribute's ...OptIn, Penn Treebank's pieces, VQA's contractions
tool codespell "spelling" -q 3 -L mape,rouge,optin,carmel,upto,bu,pres,ore,arithmetics --skip parts/vlmprof_score.h,parts/lib/vlmprof_caption.c "${texts[@]}"
tool ruff "python/ by ruff" check python
tool mypy "python/ by mypy" --config-file python/pyproject.toml python/vlmprof
mapfile -t sources < <(git ls-files 'cli/*.c' cli.c 'parts/*.c')
tool clang-tidy "C by clang-tidy (.clang-tidy)" --quiet --warnings-as-errors='*' "${sources[@]}" -- -std=c11 -D_DEFAULT_SOURCE -I. -Iparts -Iparts/lib -Icli
echo "check_tools: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
