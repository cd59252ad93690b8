#!/bin/bash
# keep_outputs.sh DIR PROGRAM [RESULTS]: what the program says and writes, for a comparison of two builds: `diff -r DIR1 DIR2` must print nothing.
#
# DIR gets one file for each call below: the command line, what it printed, what it said on stderr, its exit code; and the files that it wrote.
# The program runs with a clock of its own, so that times are the same numbers every time: a monotonic clock that moves on with each reading by
# steps of a fixed sequence, and a calendar that is still. A change that reads the clock more often shifts all times after it: compare again
# with the first build's DIR as RESULTS, then the readers of results read the first build's files. Blanked: version, build, host, processor,
# memory, argv, line numbers of source files. Binary files are kept as checksums.
set -u
if [ $# -lt 2 ]; then sed -n '2,8s/^# //p' "$0"; exit 2; fi
root=$(CDPATH= cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1" || exit 1
keep=$(cd "$1" && pwd) program=$(realpath "$2") results=${3:+$(realpath "$3")}
rm -rf "${keep:?}"/*
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/clock.c" <<'EOF'
#define _GNU_SOURCE
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static unsigned long state = 42;
static long now_ns;
int clock_gettime(clockid_t id, struct timespec *t) {
    if (id != CLOCK_REALTIME) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        now_ns += 9000000 + (long)(state >> 33) % 6000000;
    }
    t->tv_sec = 1700000000 + (id != CLOCK_REALTIME ? now_ns / 1000000000 : 0);
    t->tv_nsec = id != CLOCK_REALTIME ? now_ns % 1000000000 : 0;
    return 0;
}
time_t time(time_t *t) { if (t) *t = 1700000000; return 1700000000; }
int gettimeofday(struct timeval *t, void *zone) { (void)zone; t->tv_sec = 1700000000; t->tv_usec = 0; return 0; }
int timespec_get(struct timespec *t, int base) { t->tv_sec = 1700000000; t->tv_nsec = 0; return base; }
pid_t getpid(void) { return 4242; }
EOF
${CC:-cc} -shared -fPIC -O1 "$work/clock.c" -o "$work/clock.so" || exit 1
ln -s "$program" "$work/vlmprof"
ln -s "$root/samples" "$root/tests" "$work/"
cd "$work" || exit 1
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=1000 LC_ALL=C TMPDIR=/tmp

blank() { # what differs between two machines or two builds
    sed -E -e 's/("(version|vlmprof_version|build|host|kernel|device|device_note|cpu|processor|cores|memory_bytes|gemm_rows_[0-9]+)": )("[^"]*"|[0-9.]+|null)/\1"-"/g' \
        -e 's/"(available_bytes|peak_resident_bytes)": [0-9]+/"\1": "-"/; s/^(peak +)[0-9]+ +host/\1- host/' \
        -e 's/"clocks": \{[^}]*\}/"clocks": "-"/g' -e 's/"gpu": (\{[^}]*\}|null)/"gpu": "-"/g' \
        -e 's/"clocks": \{$/"clocks": "-"/; s/"((sm|memory)_clock[a-z_]*|power_w|temperature_c|throttle_[a-z]+)": [^],}]*/"\1": "-"/g' \
        -e 's/"(prev|session)": [0-9]+/"\1": "-"/g' -e 's/"argv": \[[^]]*\]/"argv": "-"/g' -e 's/vlmprof 0\.[0-9]+\.[0-9]+/vlmprof -/g' \
        -e 's/[a-z_\/]+\.(cu|c)(\(|:|,)[0-9]+/SOURCE\2-/g; s/"file": "[a-z_\/]+\.(cu|c)"/"file": "SOURCE"/; s/(SOURCE\(-\): [a-z ]*[a-z]) +/\1 /' \
        -e 's/events, [0-9]+ bytes/events, - bytes/; s/^vlmprof - \(.*/vlmprof -/' -e 's/"line": [0-9]+/"line": "-"/g' -e "s|$work|WORK|g" \
        -e 's/device: cpu[^"]*/device: -/; s/^(vlmprof|cpu|memory|gemm|gpu|  bf16|  fp32)( +)(0\.|[A-Z]|[0-9.]+ GB|avx|plain|none|fastest).*/\1\2-/'
}
say() { # say NAME ARGUMENTS...: one call of the program, kept as NAME.txt; stdin is $input
    local name=$1 code
    shift
    LD_PRELOAD=$work/clock.so ./vlmprof "$@" >"$work/out" 2>"$work/err" <"${input:-/dev/null}"
    code=$?
    { printf 'vlmprof'; printf ' %q' "$@"; printf '\nexit %s\n---- stdout\n' $code; blank <"$work/out"; printf -- '---- stderr\n'; blank <"$work/err"; } >"$keep/$name.txt"
}
files() { # files FOLDER: what a call wrote, text blanked, the rest as checksums
    local file
    (cd "$1" && find . -type f ! -name '.vlmprof-merge' | sort) | while read -r file; do
        mkdir -p "$keep/$1/$(dirname "$file")"
        case $file in
        *.json | *.jsonl | *.txt | *.csv | *.md | *.html) blank <"$1/$file" >"$keep/$1/$file" ;;
        *) sha256sum <"$1/$file" >"$keep/$1/$file.sha256" ;;
        esac
    done
}

commands=$(./vlmprof --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
gemm=plain # the vectors' kernel where the processor has it: faster
if ./vlmprof info | grep -q '^gemm.*avx2'; then gemm=avx2; fi
say version --version
say help --help
say no_command
say wrong_command nonsense
for command in $commands; do
    say "help_$command" "$command" --help
    say "usage_$command" "$command"
    say "unknown_option_$command" "$command" --top_kk 3
done

say tile tile 640x480 1920x1080 301x7
say tile_json tile 640x480 1920x1080 --json
say tile_csv tile 640x480 1920x1080 --tier medium --csv
say tile_target tile 1280x720 --vision_tokens 1000
say tile_files tile samples/cat.jpg samples/chart.png
say tile_list tile --list_families
say tile_list_json tile --list_families --json
for form in "" --json --csv; do
    say "tile_family$form" tile --family qwen2.5-vl --max_pixels 1003520 640x480 1920x1080 $form
    say "tile_compare$form" tile --compare qwen3-vl,internvl3,smolvlm,gemma3 1920x1080 $form
    say "tile_inverse$form" tile --family qwen2.5-vl --max_tokens 500 640x480 1280x720 800x600 $form
    say "tile_checkpoint$form" tile --checkpoint tests/golden/models/tiny-a 640x480 $form
done
mkdir draw
say tile_draw tile --family internvl3 samples/cat.jpg --draw draw/out.png
files draw

tokenizer=tests/golden/models/tiny-a/tokenizer.json
say tokenize tokenize --tokenizer $tokenizer "What is this?" "Ein Bild, 12 Äpfel"
say tokenize_decode tokenize --tokenizer $tokenizer --decode "41 134 47 283" --skip_special --clean_up
input=samples/questions.jsonl say tokenize_records tokenize --synthetic tiny --jsonl
for rule in anls em vqa_official mmmu vqa_seed nonsense; do
    input=tests/golden/scores/anls.jsonl say "score_$rule" score --metric $rule
done
for rule in cider; do
    printf '{"id": 1, "prediction": "a cat sits", "references": ["a cat is sitting", "the cat sits"]}\n{"id": 2, "prediction": "two dogs", "references": ["two dogs run", "dogs"]}\n' >captions
    say "score_$rule" score --metric $rule captions
done

question=(samples/cat.jpg -p "What is this?" --max_new_tokens 6 --device cpu --threads 1 --gemm $gemm)
say run run "${question[@]}" --synthetic tiny --num_runs 3
say run_json run "${question[@]}" --synthetic tiny --num_runs 3 --json
say run_tiny run "${question[@]}" --model samples/tiny/model --weights fp32 --top_k 2 --num_active_blocks 3 --importance_scores_file samples/tiny/importance-scores.json --json
say run_text run -p "Hello" --synthetic tiny --max_new_tokens 3 --device cpu --threads 1 --gemm $gemm --json
say run_prompt run samples/cat.jpg -p "What is this?" --style vqa2 --synthetic tiny --show_prompt
say run_dump run "${question[@]}" --synthetic tiny --dump dump
files dump
for form in torch cprofile csv json; do
    say "run_profile_$form" run "${question[@]}" --synthetic tiny --profile --profile_format $form --with_stack --record_shapes --profile_memory
    say "run_profile_steps_$form" run "${question[@]}" --synthetic tiny --num_runs 4 --profile --profile_format $form --group_by shape stage block --active 2
done
say run_trace run "${question[@]}" --synthetic tiny --profile --with_stack --record_shapes --profile_memory --trace run_trace.json
say run_worker run "${question[@]}" --synthetic tiny --profile --output_dir worker --output worker.txt
files worker
say run_cost run "${question[@]}" --synthetic tiny --profile --cost --cost_rounds 2
say run_cost_json run "${question[@]}" --synthetic tiny --profile --cost --cost_rounds 2 --json

head -n 300 samples/tiny/heldout.jsonl | awk 'NR % 60 < 3' >questions.jsonl
grid=(--model samples/tiny/model --importance_scores_file samples/tiny/importance-scores.json --data questions.jsonl --image_dir samples/tiny --max_new_tokens 8 --device cpu --threads 1
    --gemm $gemm --tier_list low medium --top_k_list 1 2 --num_active_blocks_list 3 5 --num_samples 5)
say sweep_plan sweep "${grid[@]}" --plan --output_dir planned
say sweep_plan_json sweep "${grid[@]}" --plan --output_dir planned --json
say sweep sweep "${grid[@]}" --num_runs_per_sample 2 --bare_every 5 --kernel_pass --output_dir results --json
say sweep_again sweep "${grid[@]}" --num_runs_per_sample 2 --bare_every 5 --kernel_pass --output_dir results
say sweep_plan_known sweep "${grid[@]}" --num_runs_per_sample 2 --bare_every 5 --kernel_pass --plan --output_dir results
files results
say sweep_profiler sweep "${grid[@]}" --num_runs_per_sample 1 --use_profiler --trace --sampling_strategy lhs --output_dir profiled --quiet
files profiled
say sweep_stop sweep --synthetic tiny --data samples/questions.jsonl --vision_tokens_list 300 800 --num_samples 2 --stop_half_width 5 --max_runs 5 --max_new_tokens 4 --timing off \
    --device cpu --threads 1 --gemm $gemm --output_dir stopped
files stopped
RANK=0 WORLD_SIZE=2 say sweep_rank0 sweep "${grid[@]}" --num_runs_per_sample 1 --bare_every 0 --output_dir ranks
say merge_partial merge ranks --output_dir merged_partial --partial
RANK=1 WORLD_SIZE=2 say sweep_rank1 sweep "${grid[@]}" --num_runs_per_sample 1 --bare_every 0 --output_dir ranks
say merge merge ranks --output_dir merged --json
files ranks
files merged_partial
files merged
say sweep_seed7 sweep "${grid[@]}" --num_runs_per_sample 2 --bare_every 0 --seed 7 --weights fp32 --output_dir others --quiet

if [ -n "$results" ]; then # the first build's files, for the readers of results
    rm -rf results others run_trace.json
    cp -r "$results/read/results" "$results/read/others" "$results/read/run_trace.json" .
fi
mkdir -p "$keep/read"
for read in results others; do # blanked, or a second build could not read the same
    mkdir -p "$keep/read/$read"
    for file in "$read"/*; do blank <"$file" >"$keep/read/$file"; done
done
blank <run_trace.json >"$keep/read/run_trace.json"
rm -rf results others run_trace.json
cp -r "$keep"/read/* .

for form in "" --json --csv --markdown --html; do
    say "report$form" report results $form
    say "report_options$form" report results others --latency prefill --percentile 95 --resamples 50 --peak_tflops 1 --peak_gbs 20 $form
done
say report_files report results --output_dir answers --resamples 100
files answers
for form in "" --json; do
    say "fit$form" fit results others --num_experts 8 $form
    say "best$form" best results --budget_ms 1 $form
    say "best_none$form" best results --budget_ms 0.001 $form
    say "best_accurate$form" best results --budget_ms 30 --latency prefill --percentile 99 --min_accuracy 0.3 $form
    say "compare_same$form" compare results results $form
    say "compare_refused$form" compare results others $form
    say "compare$form" compare results others --force all --plan $form
    say "trace_torch$form" trace tests/golden/trace/torch_cpu.pt.trace.json $form
    say "trace_run$form" trace run_trace.json $form
    say "info$form" info --synthetic tiny $form
    say "info_model$form" info --model samples/tiny/model $form
    say "selftest$form" selftest --device cpu --threads 1 $form
done
say fit_files fit results --output model.json --output_dir fitted --num_experts 8
mkdir models
mv model.json models
files models
files fitted
for form in "" --json; do
    say "predict$form" predict models/model.json 640x480 1280x720 --tier medium --top_k 2 --output_tokens 4 --budget_ms 1 $form
    say "predict_counts$form" predict models/model.json --views 3 --sequence 500 --num_active_blocks 4 $form
    say "predict_data$form" predict models/model.json --data others $form
    say "predict_recalibrate$form" predict models/model.json --recalibrate others -n 20 -o other.json $form
done
for table in summary annotations ops kernels launches tracks memory; do
    say "trace_$table" trace run_trace.json --table $table
    say "trace_csv_$table" trace run_trace.json --table $table --csv
done
say trace_cprofile trace tests/golden/trace/torch_cpu.pt.trace.json --profile_format cprofile --sort_by count --group_by_input_shape
one=$(ls results/*imgsizetier*.json | head -n 1)
say score_predictions score --predictions "$one"
echo "$(find "$keep" -type f | wc -l) files in $keep"
