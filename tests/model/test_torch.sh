#!/bin/bash
# slow: it imports torch and transformers and runs eight small models
# Proves that vlmprof.torch times the stages of transformers models and writes result files (tests/python/stages.py). PYTHON: one that has torch.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof} python=${PYTHON:-python3}
. tests/check.sh
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
if ! "$python" -c 'import torch, transformers, PIL' 2>"$work/missing"; then
    echo "skipped: vlmprof.torch: $(tail -n 1 "$work/missing") (PYTHON=path of one that has torch, transformers and Pillow)"
    echo "test_torch: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ -d "${goldens=../shared/goldens/othermodels}" ] || { goldens=; echo "skipped: checkpoints of the families: no $goldens here"; }
export VLMPROF=$(realpath "$PROGRAM") PYTHONPATH=python:tests/python PYTHONDONTWRITEBYTECODE=1
"$python" tests/python/stages.py "$work" $goldens >"$work/stages" 2>&1
grep -E '^(FAILED|skipped)' "$work/stages"
counts=$(grep -oE '^stages: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/stages") || tail -n 5 "$work/stages"
read -r _ passed _ failed _ skipped _ <<<"${counts:-stages: 0 passed, 1 failed, 0 skipped}"
# the samples, with the families' small checkpoints
folder_of() { case $1 in qwen_vl) echo qwen2_5_vl ;; *) echo "$1" ;; esac; }
for sample in samples/torch/*.py; do
    [ "$sample" != samples/torch/measure.py ] || continue
    name=$(basename "$sample" .py)
    if [ -z "$goldens" ]; then "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$sample"
    else
        "$python" "$sample" "$goldens/$(folder_of "$name")/checkpoint" "$work/$name" >"$work/printed" 2>&1 && "$PROGRAM" report "$work/$name" >"$work/report" 2>&1
    fi
    if [ $? -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $sample"; tail -n 3 "$work/printed"; fi
done
# the program of README prints what README quotes; the one of the guide runs
sed -n '/^```python$/,/^```$/p' README.md | grep -v '^```' >"$work/readme.py"
sed -nE "/^    (import|def )/,/^[^ ]/s/^    //p; /^$/p" cli/guides/torch.txt | sed "s|build/|$work/|" >"$work/guide.py"
check "README's program runs" "$python" "$work/readme.py" && cp "$work/out" "$work/printed"
check "and prints what README quotes" [ -z "$(tests/readme_figures.sh "$work/printed" 2>&1 >/dev/null | grep '# ')" ]
check "the guide's programs run" "$python" "$work/guide.py"
echo "test_torch: $passed passed, $failed failed, $((skipped + $([ -n "$goldens" ] && echo 0 || echo 1))) skipped"
[ "$failed" -eq 0 ]
