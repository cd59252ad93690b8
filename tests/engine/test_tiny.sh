#!/bin/bash
# slow: 180 answers of the trained model, 50 s
# The small model of samples/tiny: held-out questions, the first 40 (TINY_QUESTIONS=100: all that have a golden answer), at the low and the high tier.
# In fp32 every token of every answer is that of the recipe's PyTorch model (tests/golden/tiny/answers.jsonl, written by samples/tiny/compare.py --save),
# in bf16 of 99 of 100, and the accuracy is pinned. Five of them on the emulated GPU as well.
CDPATH= cd "$(dirname "$0")/../.." || exit 1
B=${B:-build} PROGRAM=${PROGRAM:-./vlmprof}
small=samples/tiny golden=tests/golden/tiny/answers.jsonl
. tests/check.sh
bytes_of() { cat "$@" | wc -c; }
asked() { sed -n 's/.*"id": "\([^"]*\)".*/\1/p' "$1" | sort; }
answers_of() { # answers_of RESULT: id and tokens of each row
    sed -n 's/.*"output_token_ids": \(\[[^]]*\]\).*"id": "\([^"]*\)".*/\2 \1/p' "$1" | sort
}
wanted_of() { # wanted_of TIER: the same from PyTorch
    sed -n 's/.*"id": "\([^"]*\)", "tier": "'"$1"'", "tokens": \(\[[^]]*\]\).*/\1 \2/p' "$golden" | sort
}
right_of() { # right_of RESULT [KIND]: questions answered rightly
    grep -cE '"accuracy": 1\.0.*"kind": "'"${2:-[^\"]*}"'"' "$1"
}

check "the model holds 6 MB at most" [ "$(bytes_of $small/model/*)" -le 6000000 ]
check "the pictures hold 3 MB at most" [ "$(bytes_of $small/pictures/*.png)" -le 3000000 ]
check "1,000 questions of five kinds" [ "$(wc -l < $small/heldout.jsonl) $(sed -n 's/.*"kind": "\([^"]*\)".*/\1/p' $small/heldout.jsonl | sort -u | wc -l)" = "1000 5" ]
check "each question's picture is there" [ -z "$(sed -n 's/.*"image": "\([^"]*\)".*/\1/p' $small/heldout.jsonl | sort -u | while read -r f; do [ -s "$small/$f" ] || echo "$f"; done)" ]

# measure NAME PROGRAM QUESTIONS LEAST TIERS OPTIONS...: at least LEAST answers in 100 are PyTorch's, token by token; sets right_NAME_TIER and small_NAME_TIER
measure() {
    local name=$1 program=$2 questions=$3 least=$4 tiers=$5 tier equal
    shift 5
    head -n "$questions" $small/heldout.jsonl > "$work/first.jsonl"
    "$program" sweep --model $small/model --data "$work/first.jsonl" --image_dir $small --output_dir "$work/$name" --metric em --tier_list $tiers \
        --num_runs_per_sample 1 --max_new_tokens 8 --bare_every 0 --quiet "$@" 2> "$work/err"
    check "$name: $questions questions" [ $? -eq 0 ] || cat "$work/err"
    for tier in $tiers; do
        answers_of "$work/$name/"*imgsizetier-$tier*.json > "$work/answers"
        wanted_of $tier > "$work/wanted"
        equal=$(comm -12 "$work/answers" "$work/wanted" | wc -l)
        check "$name, $tier: every question is answered" [ "$(cut -d' ' -f1 "$work/answers")" = "$(asked "$work/first.jsonl")" ]
        check "$name, $tier: PyTorch's tokens in $equal answers" [ $((100 * equal)) -ge $((least * questions)) ]
        declare -g "right_${name}_$tier=$(right_of "$work/$name/"*imgsizetier-$tier*.json)" \
            "small_${name}_$tier=$(right_of "$work/$name/"*imgsizetier-$tier*.json "small print")"
    done
}
# right answers, pinned: in fp32 PyTorch's very answers, in bf16 one more or less
questions=${TINY_QUESTIONS:-40} LOW=86 HIGH=93
[ "$questions" = 100 ] || { questions=40 LOW=35 HIGH=37; }
within_one() { [ $(($1 - $2)) -ge -1 ] && [ $(($1 - $2)) -le 1 ]; }
measure fp32 "$PROGRAM" $questions 100 "low high" --weights fp32 --device cpu
check "fp32: $right_fp32_low of $questions right at low, $right_fp32_high at high" [ "$right_fp32_low $right_fp32_high" = "$LOW $HIGH" ]
measure bf16 "$PROGRAM" $questions 99 "low high" --weights bf16 --device cpu
check "bf16: $right_bf16_low of $questions right at low" within_one $right_bf16_low $LOW
check "bf16: $right_bf16_high of $questions right at high" within_one $right_bf16_high $HIGH
check "more crops read smaller print: $small_bf16_low at low, $small_bf16_high at high" [ "$small_bf16_high" -gt "$small_bf16_low" ]
measure emulated_fp32 "$B/emulated/vlmprof" 5 100 low --weights fp32 --device cuda
measure emulated_bf16 "$B/emulated/vlmprof" 5 80 low --weights bf16 --device cuda
echo "test_tiny: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
