/* test_clock.c: run, run --profile, sweep and sweep --plan with a clock that advances with each reading ($B/tests/vlmprof-clock), so every run has the same times. Its
 * output is compared word by word (tests/golden/texts/clock-*). The machine's name, its memory and the date are masked. Runs from the repository's root; its files are in
 * a temporary folder. KEEP_TEXTS=1 writes the texts again. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

/* the value after each of these words becomes MASKED, up to one of the listed end characters */
static const char *const MASKS[][2] = {
    {"cpu: ", ",;\"\n"}, {"\"build\": ", ",\n"}, {"\"host\": ", ",\n"}, {"\"kernel\": ", ",\n"}, {"\"date\": ", ",\n"}, {"\"unix_s\": ", ",\n"},
    {"_clock_mhz\": ", ",\n}"}, {"\"power_w\": ", ",\n}"}, {"\"temperature_c\": ", ",\n}"}, {"\"throttle_reasons\": ", ",\n}"}, {"\"throttle_count\": ", ",\n}"},
    {"\"argv\": [", "]"}, {"_bytes\": ", ",\n}"}, {"memory      ", " "}, {"\"measured_from\": ", ",\n"}, {"\"measured_to\": ", ",\n"}, {"\"stamp_cost_ns\": ", ",\n}"},
    {"\"plan\": \"", "\""}, {"vlmprof_kernels.cu(", ")"}, {"vlmprof_kernels.cu:", "("}, {"\"line\": ", ",\n}"},
    {"\"data_hash\": ", ",\n"}, {"\"content_hash\": ", ",\n"}, {"\"output_dir\": ", ",\n"}};
static void mask(char **text) {
    kept_text t = {NULL, 0, 0};
    kept_add(&t, "", 0);
    for (const char *at = *text; *at;) {
        size_t which = 0;
        while (which < sizeof MASKS / sizeof *MASKS && strncmp(at, MASKS[which][0], strlen(MASKS[which][0]))) which++;
        if (which == sizeof MASKS / sizeof *MASKS) { kept_add(&t, at++, 1); continue; }
        at += strlen(MASKS[which][0]);
        kept_add(&t, MASKS[which][0], strlen(MASKS[which][0]));
        kept_add(&t, "MASKED", 6);
        at += strcspn(at, MASKS[which][1]);
    }
    free(*text);
    *text = t.data;
}
#define ARITHMETIC "--weights fp32 --gemm plain --threads 1 --device cpu "
#define MODEL "--synthetic tiny " ARITHMETIC
/* a hundredth of the work; parts that do not depend on the model are shown with it */
#define SMALL "--synthetic tiny-qwen3-vl-moe " ARITHMETIC
static void check_printed(const char *name, const char *command) {
    char file[80];
    check_case("%s", command);
    run("%s", command);
    mask(&last.out);
    mask(&last.err);
    snprintf(file, sizeof file, "clock-%s.txt", name);
    check_kept_run(file, 0);
}
static void test_run(void) {
    check_printed("run", "run samples/cat.jpg -p 'What is it?' --tier low --max_new_tokens 3 --ignore_eos " MODEL);
    check_printed("run-many", "run samples/chart.png -p 'What?' --crops 4 --max_new_tokens 4 --ignore_eos --num_runs 3 --top_k 1 --num_active_blocks 2 " MODEL);
    check_printed("run-six", "run samples/cat.jpg -p 'What?' --max_new_tokens 4 --ignore_eos --num_runs 6 --cold " SMALL);
    check_printed("run-text", "run -p 'Why?' --max_new_tokens 1 --ignore_eos " MODEL);
    check_printed("run-json", "run samples/cat.jpg -p 'What is it?' --tier low --max_new_tokens 3 --ignore_eos --num_runs 2 --json " MODEL);
}
#define PROFILE "run samples/cat.jpg -p 'What?' --image_knob max_pixels=65536 --max_new_tokens 3 --ignore_eos --profile " SMALL
static void test_profile(void) {
    check_printed("profile", "run samples/cat.jpg -p 'What?' --tier low --max_new_tokens 3 --ignore_eos --profile --num_runs 1 --row_limit 12 " MODEL);
    check_printed("profile-groups", PROFILE "--group_by stage step --sort_by count --num_runs 4 --active 2 --skip_first 1");
    check_printed("profile-shapes", PROFILE "--num_runs 1 --group_by part shape --sort_by cpu_time --row_limit 20");
    check_printed("profile-block", PROFILE "--num_runs 1 --group_by block --profile_format cprofile --sort_by cumulative --row_limit 30");
    check_printed("profile-csv", PROFILE "--num_runs 1 --profile_format csv");
    check_printed("profile-json", PROFILE "--num_runs 1 --profile_format json --group_by none");
}
static void test_sweep(void) {
    char here[512] = "", text[2000], path[600];
    CHECK(getcwd(here, sizeof here) != NULL);
    snprintf(text, sizeof text, "{\"question\": \"What?\", \"image\": \"%s/samples/cat.jpg\", \"answers\": [\"cat\"]}\n{\"question\": \"Why?\"}\n"
             "{\"question\": \"Where?\", \"image\": \"%s/samples/rocket.jpg\", \"answers\": [\"here\", \"there\"]}\n", here, here);
    write_text(in_folder("set.jsonl"), text);
#define SWEEP "sweep --data %%F/set.jsonl --max_new_tokens 3 --ignore_eos --top_k_list 1 2 "
#define TIERS SWEEP "--tier_list low --num_runs_per_sample 2 --bare_every 2 " MODEL
#define PIXELS SWEEP "--image_knob max_pixels=65536 --num_runs_per_sample 3 " SMALL
    snprintf(text, sizeof text, "%s/samples/", here); /* the test's folder may also be in the repository */
    check_case("sweep");
    run(TIERS "--output_dir %%F/out --kernel_pass");
    mask(&last.err);
    check_kept_run("clock-sweep.txt", 0);
    snprintf(path, sizeof path, "%s/out/set_imgsizetier-low_crops1_topk1_blocks4.json", folder);
    char *file = text_of_file(path), *at;
    CHECK(*file);
    while ((at = strstr(file, text)) != NULL) memmove(at, at + strlen(here), strlen(at + strlen(here)) + 1);
    mask(&file);
    check_kept("clock-sweep-0.json", file);
    free(file);
    check_case("a sweep that stops by intervals");
    run(PIXELS "--output_dir %%F/stop --stop_half_width 0.2 --max_runs 6 --use_profiler --group_by stage --json");
    mask(&last.out);
    mask(&last.err);
    check_kept_run("clock-sweep-stop.txt", 0);
    check_printed("plan-tiers", "sweep --data samples/questions.jsonl --tier_list low high --num_samples 7 --max_new_tokens 2 --plan " MODEL);
    check_printed("plan-tokens", "sweep --data samples/questions.jsonl samples/tiny/heldout.jsonl --vision_tokens_list 288 1008 --num_samples 5 --plan --json " MODEL);
    check_case("sweep --plan, for an empty folder and for a journal");
    run(TIERS "--output_dir %%F/none --plan");
    mask(&last.out);
    check_kept_run("clock-plan.txt", 0);
    run(TIERS "--output_dir %%F/out --plan --json");
    mask(&last.out);
    check_kept_run("clock-plan-json.txt", 0);
}

int main(void) {
    if (!program_begin("clock")) return 1;
    program = built("tests/vlmprof-clock");
    setenv("OMP_NUM_THREADS", "1", 1);
    RUN_TESTS(test_run, test_profile, test_sweep);
    free(json_nodes);
    return program_done("test_clock");
}
