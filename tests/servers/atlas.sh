#!/bin/bash
# atlas.sh: which stacks compute the same function. `vlmprof conform` over the small random checkpoints of the goldens, our engine in fp32 against
# transformers in three types, which runs the script that the program prints. One line for each model, picture and type: what parts first.
#   PYTHON=python-with-torch-and-transformers [PROGRAM=./vlmprof] [GOLDENS=../shared/goldens/othermodels] tests/servers/atlas.sh [MODEL...]
# Exit code 1: something parted.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
program=${PROGRAM:-./vlmprof}
python=${PYTHON:-python3}
goldens=${GOLDENS:-../shared/goldens/othermodels}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- llava smolvlm internvl qwen2_5_vl qwen3_vl qwen3_vl_moe gemma3
"$program" conform --script >"$work/dump.py" || exit 1
"$python" -c 'import torch, transformers; print("torch", torch.__version__, "transformers", transformers.__version__)' || exit 1
parted=0
for model in "$@"; do
    for picture in mix-200x150 stripes-333x517; do
        for type in float32 bfloat16 float16; do
            rm -rf "$work/dumped"
            "$python" "$work/dump.py" --model "$goldens/$model/checkpoint" --image "$goldens/images/$picture.png" -p "What is this?" --output "$work/dumped" \
                --dtype $type --max_new_tokens 6 2>"$work/log" || { echo "$model $picture $type: the script failed: $(tail -n 1 "$work/log")"; parted=1; continue; }
            answer=$("$program" conform "$goldens/images/$picture.png" -p "What is this?" --max_new_tokens 6 --model "$goldens/$model/checkpoint" \
                --against "dump:$work/dumped" 2>&1) || parted=1
            echo "$model $picture $type: $(head -n 1 <<<"$answer")"
        done
    done
done
exit $parted
