#!/bin/bash
# atlas.sh: which stacks compute the same function. `vlmprof conform` over the small random checkpoints of the goldens, our engine in fp32 against
# transformers in three types, which runs the script that the program prints. One line for each model, picture and type: what parts first.
#   PYTHON=python-with-torch-and-transformers [PROGRAM=./vlmprof] [GOLDENS=../shared/goldens/othermodels] tests/servers/atlas.sh [MODEL...]
# With the packages xllamacpp and gguf also against llama.cpp's server, on GGUF files (F32) that tests/tools/gguf_of_folder.py makes of the same folders:
# tests/servers/conform.py, with a picture that needs no resizing and two that do.
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
# llama.cpp: model, side of the picture that its tower reads, what stands for the image, the text around it
against_llama() {
    local model=$1 side=$2 placeholder=$3 prompt=$4 mmproj=$work/$1-mmproj.gguf
    "$python" tests/tools/gguf_of_folder.py "$goldens/$model/checkpoint" "$work/$model.gguf" "$mmproj" f32 >"$work/log" 2>&1 \
        || { echo "$model llama.cpp: no GGUF file: $(tail -n 1 "$work/log")"; return 1; }
    "$python" -c 'import sys; from PIL import Image; Image.open(sys.argv[1]).convert("RGB").resize([int(sys.argv[3])] * 2, Image.BICUBIC).save(sys.argv[2])' \
        "$goldens/images/mix-200x150.png" "$work/exact-$side.png" "$side" || return 1
    timeout 300 "$python" tests/servers/conform.py "$work/$model.gguf" --mmproj "$mmproj" --folder "$goldens/$model/checkpoint" --program "$program" \
        --image "$work/exact-$side.png" "$goldens"/images/{mix-200x150,stripes-333x517}.png --placeholder "$placeholder" --prompt "$prompt" --tokens 8 \
        --weights fp32 >"$work/answers" 2>"$work/log"
    local code=$?
    grep -E "^(none|prompt|pixels|features|tokens) " "$work/answers" | sed "s/^/$model llama.cpp: /"
    [ -s "$work/answers" ] || echo "$model llama.cpp: $(tail -n 1 "$work/log")"
    return $code
}
if "$python" -c 'import gguf, xllamacpp' 2>/dev/null; then
    "$python" -c 'import importlib.metadata as m; print("xllamacpp", m.version("xllamacpp"), "gguf", m.version("gguf"))'
    vision='<|vision_start|><|image_pad|><|vision_end|>'
    chat=$'<|im_start|>user\n@What is this?<|im_end|>\n<|im_start|>assistant\n'
    for model in "$@"; do
        case $model in
            llava) against_llama llava 84 '<image>' $'USER: <image>\nWhat is this? ASSISTANT:' ;;
            smolvlm) against_llama smolvlm 64 '<image>' 'User:<image>What is this?' ;;
            internvl) against_llama internvl 56 '<IMG_CONTEXT>' "${chat/@/$'<IMG_CONTEXT>\n'}" ;;
            qwen2_5_vl) against_llama qwen2_5_vl 84 "$vision" "${chat/@/$vision}" ;;
            qwen3_vl) against_llama qwen3_vl 224 "$vision" "${chat/@/$vision}" ;;
            gemma3) against_llama gemma3 112 '<start_of_image>' $'<start_of_turn>user\n<start_of_image>What is this?<end_of_turn>\n<start_of_turn>model\n' ;;
            *) echo "$model llama.cpp: no such kind of GGUF file here" ;;
        esac || parted=1
    done
fi
exit $parted
