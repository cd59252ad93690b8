#!/bin/bash
# atlas.sh: which stacks compute the same function. `vlmprof conform` over the small random checkpoints of the goldens, our engine in fp32 against
# transformers in three types, which runs the script that the program prints; Molmo-7B and MolmoE, whose classes transformers lacks, against what the
# published files computed. One line for each model, picture and type: what parts first.
#   PYTHON=python-with-torch-and-transformers [PROGRAM=./vlmprof] [GOLDENS=../shared/goldens] tests/servers/atlas.sh [MODEL...]
# With the packages xllamacpp and gguf also against llama.cpp's server, on GGUF files (F32) that tests/tools/gguf_of_folder.py makes of the same folders:
# tests/servers/conform.py, with a picture that needs no resizing and two that do, and for each known difference what shows its cause.
# Molmo2 needs two threads of torch or more: with one, torch resizes by another kernel.
# Exit code 1: something parted.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
program=${PROGRAM:-./vlmprof}
python=${PYTHON:-python3}
all=${GOLDENS:-../shared/goldens}
goldens=$all/othermodels
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- llava smolvlm internvl qwen2_5_vl qwen3_vl qwen3_vl_moe gemma3 molmo2 olmoe internvl_llama molmo_7b_d molmo_7b_o molmoe
"$program" conform --script >"$work/dump.py" || exit 1
"$python" -c 'import torch, transformers; print("torch", torch.__version__, "transformers", transformers.__version__)' || exit 1
parted=0
# conform's first line: what is compared, the files, the tokens, the model, the picture or nothing, the prompt
first_line() {
    local what=$1 dump=$2 tokens=$3 model=$4 picture=$5 prompt=$6 answer
    answer=$("$program" conform ${picture:+"$picture"} -p "$prompt" --max_new_tokens "$tokens" --model "$model" --against "dump:$dump" 2>&1) || parted=1
    echo "$what: $(head -n 1 <<<"$answer")"
}
own=() published=() folders=()
for model in "$@"; do case $model in molmo_7b_* | molmoe) published+=("$model") ;; *) own+=("$model") ;; esac; done
folder_of() { # some are changed: see atlas_folders.py
    case $1 in
        internvl_llama) [ -e "$work/$1" ] || "$python" tests/servers/atlas_folders.py "$1" "$goldens/internvl/checkpoint" "$work/$1" >&2; echo "$work/$1" ;;
        smolvlm | qwen3_vl_moe) [ -e "$work/$1" ] || "$python" tests/servers/atlas_folders.py "$1" "$goldens/$1/checkpoint" "$work/$1" >&2; echo "$work/$1" ;;
        *) echo "$goldens/$1/checkpoint" ;;
    esac
}
for model in "${own[@]}"; do folders+=("$model=$(folder_of "$model")"); done
"$python" tests/servers/atlas_dumps.py run "$work/dump.py" "$goldens/images" "$work/dumps" "${folders[@]}" >/dev/null || exit 1
for model in "${own[@]}"; do
    for dump in "$work/dumps/$model"/*/{float32,bfloat16,float16}; do
        name=$model/${dump#"$work/dumps/$model/"} picture=$goldens/images/$(basename "$(dirname "$dump")").png
        [ -e "$picture" ] || picture=
        if [ -e "$dump/failed" ]; then echo "$name: the script failed: $(cat "$dump/failed")"; parted=1
        else first_line "$name" "$dump" 6 "$(folder_of "$model")" "$picture" "What is this?"; fi
    done
done
recorded() { # name, folder of the model, case, picture or nothing, tokens
    local prompt
    prompt=$("$python" tests/servers/atlas_dumps.py recorded "$3" "$work/recorded/$1") && first_line "$1, recorded" "$work/recorded/$1" "$5" "$2" "$4" "$prompt"
}
for model in "${published[@]}"; do
    if [ "$model" = molmoe ]; then
        recorded molmoe/a1 "$all/models/tiny-a" "$all/models/cases/a1-adaptive-wide" "$all/images/img-640x300.png" 16
        recorded molmoe/a6 "$all/models/tiny-a" "$all/models/cases/a6-text-only" "" 16
        continue
    fi
    recorded "$model/image-a" "$goldens/$model/checkpoint" "$goldens/$model/image-a" "$goldens/images/mix-200x150.png" 6
    recorded "$model/image-b" "$goldens/$model/checkpoint" "$goldens/$model/image-b" "$goldens/images/stripes-333x517.png" 6
    recorded "$model/text" "$goldens/$model/checkpoint" "$goldens/$model/text" "" 6
done

# ---- llama.cpp
# Model, folder, side of the picture that its tower reads, what stands for the image, the text around it; then options of conform.py. Without a picture: 0.
against_llama() {
    local model=$1 folder=$2 side=$3 placeholder=$4 prompt=$5 mmproj=$work/$1-mmproj.gguf more=()
    shift 5
    [ "$side" != 0 ] || mmproj=-
    "$python" tests/tools/gguf_of_folder.py "$folder" "$work/$model.gguf" "$mmproj" f32 >"$work/log" 2>&1 \
        || { echo "$model llama.cpp: no GGUF file: $(tail -n 1 "$work/log")"; return 1; }
    if [ "$side" != 0 ]; then
        "$python" -c 'import sys; from PIL import Image; Image.open(sys.argv[1]).convert("RGB").resize([int(sys.argv[3])] * 2, Image.BICUBIC).save(sys.argv[2])' \
            "$goldens/images/mix-200x150.png" "$work/exact-$side.png" "$side" || return 1
        more=(--mmproj "$mmproj" --image "$work/exact-$side.png" "$goldens"/images/{mix-200x150,stripes-333x517}.png --placeholder "$placeholder" --prompt "$prompt")
    fi
    rm -f "$work/$model.ids"
    timeout 600 "$python" tests/servers/conform.py "$work/$model.gguf" --folder "$folder" --program "$program" "${more[@]}" --tokens 8 --weights fp32 \
        --answers "$work/$model.ids" "$@" >"$work/answers" 2>"$work/log"
    local code=$?
    grep -E "^(none|prompt|pixels|features|tokens|twins) " "$work/answers" | sed "s/^/$model llama.cpp: /"
    [ -s "$work/answers" ] || echo "$model llama.cpp: $(grep -m 1 -E 'GGML_ASSERT|error' "$work/log" || tail -n 1 "$work/log")"
    return $code
}
# Who is right about the picture of the tower's size: transformers in float64 as it is, and with the class token behind the patches.
referee() {
    local model=$1 side=$2 prompt=$3 way
    for way in "" --class_last; do
        echo "$model transformers in float64 $way: $("$python" tests/servers/referee.py "$goldens/$model/checkpoint" "$work/exact-$side.png" "$prompt" $way 2>"$work/log" \
            | tail -n 1); llama.cpp: $(head -n 1 "$work/$model.ids")"
    done
}
# The two pictures as llama.cpp resizes them, black around them, in the size that the model wants: what the tower reads is then known.
with_bars() { # model, filter, size of mix-200x150, of stripes-333x517
    local model=$1 filter=$2 name size
    twins=()
    for size in "$3 mix-200x150" "$4 stripes-333x517"; do
        name=${size##* } size=${size%% *}
        echo "$model $name: $("$python" tests/servers/resize.py "$goldens/images/$name.png" "${size%x*}" "${size#*x}" "$filter" "$work/$name-stretched.png" "$work/$name-bars.png")"
        twins+=("$goldens/images/$name.png" "$work/$name-bars.png")
    done
}
if "$python" -c 'import gguf, xllamacpp' 2>/dev/null; then
    "$python" -c 'import importlib.metadata as m; print("xllamacpp", m.version("xllamacpp"), "gguf", m.version("gguf"))'
    vision='<|vision_start|><|image_pad|><|vision_end|>'
    chat=$'<|im_start|>user\n@What is this?<|im_end|>\n<|im_start|>assistant\n'
    llava=$'USER: <image>\nWhat is this? ASSISTANT:' internvl=${chat/@/$'<IMG_CONTEXT>\n'}
    for model in "$@"; do
        folder=$(folder_of "$model")
        case $model in
            llava) against_llama llava "$folder" 84 '<image>' "$llava"; code=$?; referee llava 84 "$llava" ;;
            smolvlm) against_llama smolvlm "$folder" 64 '<image>' 'User:<image>What is this?'; code=$? ;;
            internvl) against_llama internvl "$folder" 56 '<IMG_CONTEXT>' "$internvl"; code=$?; referee internvl 56 "$internvl" ;;
            qwen2_5_vl) with_bars $model bicubic 196x140 252x392; against_llama $model "$folder" 84 "$vision" "${chat/@/$vision}" --twin "${twins[@]}"; code=$? ;;
            qwen3_vl | qwen3_vl_moe) with_bars $model bicubic 192x160 288x448
                against_llama $model "$folder" 224 "$vision" "${chat/@/$vision}" --twin "${twins[@]}"; code=$? ;;
            # the line ends that mtmd.cpp leaves out are in llama.cpp's prompt
            gemma3) with_bars $model bilinear 112x112 112x112
                against_llama gemma3 "$folder" 112 '<start_of_image>' $'<start_of_turn>user\n<start_of_image>What is this?<end_of_turn>\n<start_of_turn>model\n' \
                    --around $'\n\n' --twin "${twins[@]}"; code=$? ;;
            olmoe) against_llama olmoe "$folder" 0 '' ''; code=$? ;;
            *) echo "$model llama.cpp: it has no such class" ; code=0 ;;
        esac
        [ $code = 0 ] || parted=1
    done
fi
exit $parted
