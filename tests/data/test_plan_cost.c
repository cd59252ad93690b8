/* test_plan_cost.c: sweep --plan compared with a measured sweep: each configuration's time is the mean of its own rows, the counts are those of completed and remaining
 * runs, and the time is not known without a journal; the counted work of a pass, and memory, equal the engine's. Includes the source for its static functions, and runs
 * $PROGRAM (default ./vlmprof) from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1
#include "cli/sweep/plan_cost.c"
#include "commands/commands.h"
#include "commands/settings.h"
#include "model/image.h"
#include "measure/input.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"

#define SWEEP "sweep --synthetic tiny --data samples/questions.jsonl --output_dir %%F/out --top_k_list 1 --num_samples 2 --max_new_tokens 2 --ignore_eos " \
              "--bare_every 0 "
/* mean of T_total over the rows of the result file of that name */
static double rows_mean(const char *name) {
    char path[600], *text;
    vp_json_node *nodes;
    vp_json file;
    size_t needed = 0;
    double sum = 0, value = 0;
    snprintf(path, sizeof path, "%s/%s", in_folder("out"), name);
    text = check_read(path, NULL);
    if (!CHECK(text != NULL)) return (double)NAN;
    vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL);
    nodes = (vp_json_node *)malloc((needed + 1) * sizeof *nodes);
    CHECK_INT(vp_json_parse(text, strlen(text), nodes, needed, &file, NULL, NULL), VP_OK);
    uint32_t rows = vp_json_get(&file, 0, "per_sample_results");
    for (uint32_t i = 0; i < nodes[rows].count; i++) {
        vp_json_to_double(&file, vp_json_get(&file, vp_json_at(&file, rows, i), "T_total"), &value);
        sum += value / nodes[rows].count;
    }
    FREE_ALL(nodes, text);
    return sum;
}
static void test_measured(void) {
    double means[2] = {0, 0};
    check_case("each configuration's measured time is that of its own rows");
    CHECK_INT(run(SWEEP "--tier_list low high --num_runs_per_sample 1 --quiet"), 0);
    if (!RUNS_JSON(0, SWEEP "--tier_list low high --num_runs_per_sample 1 --plan --json")) return;
    uint32_t all = get(0, "configurations");
    CHECK_INT(count_of(all), 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t one = vp_json_at(&json, all, i);
        char name[200] = "";
        vp_json_text(&json, get(one, "file_name"), name, sizeof name, NULL);
        means[i] = rows_mean(name);
        CHECK_NEAR(number(get(one, "T_total_measured")), means[i], 1e-6 * means[i]);
        CHECK_INT(whole(get(one, "num_runs_measured")), 2);
        CHECK_INT(whole(get(one, "num_runs_left")), 0);
    }
    CHECK(means[1] > 1.2 * means[0]);
    CHECK(number(get(0, "expected_seconds")) == 0);
    CHECK(is_text(get(0, "expected_from"), "measured"));
}
/* without a journal the work is counted, ordered by tier, and the time is not known */
static void test_counted(void) {
    double before = 0;
    check_case("work: one count per configuration; no time without a journal");
    if (!RUNS_JSON(0, "sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium high --top_k_list 1 --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 2 --bare_every 0 --plan --json --output_dir %%F/none")) return;
    uint32_t all = get(0, "configurations");
    CHECK_INT(count_of(all), 3);
    for (uint32_t i = 0; i < count_of(all); i++) {
        uint32_t one = vp_json_at(&json, all, i);
        double flops = number(get(one, "flops_mean"));
        CHECK(flops > before && number(get(one, "bytes_mean")) > 1e6);
        before = flops;
        CHECK_INT(whole(get(one, "num_runs_left")), 6);
        CHECK_INT(whole(get(one, "num_runs_measured")), 0);
    }
    CHECK_INT(whole(get(0, "num_runs_left")), 18);
    CHECK(strstr(last.out, "\"expected_seconds\": null") && is_text(get(0, "expected_from"), "none"));
    check_case("with a request rate the arrivals give the time, and the ramps add to it");
    if (!RUNS_JSON(0, "sweep --endpoint http://127.0.0.1:9 --endpoint_model m --data samples/questions.jsonl --request_rate_list 2 4 --ramp_s 1 --num_samples 10 "
                  "--num_runs_per_sample 3 --plan --json --output_dir %%F/none")) return;
    CHECK_NEAR(number(get(0, "expected_seconds")), 30.0 / 2 + 30.0 / 4 + 2 * 3 * 2 * 1, 1e-9);
    CHECK(is_text(get(0, "expected_from"), "arrivals"));
}

static struct model tiny;
/* the options of a sweep of the tiny model */
static int parse_words(const char *words, struct options *o) {
    static char line[1024];
    static char *argv[32];
    int argc = 0;
    snprintf(line, sizeof line, "vlmprof sweep --synthetic tiny %s", words);
    for (char *word = strtok(line, " "); word && argc < 31; word = strtok(NULL, " ")) argv[argc++] = word;
    argv[argc] = NULL;
    memset(o, 0, sizeof *o);
    o->command = &command_sweep;
    return options_parse(o, argc, argv);
}

/* ---- the plan's counts equal the engine's */
/* A preset's request of samples/cat.jpg and a question is run and counted: launches, FLOPs and bytes of every stage are equal. */
static void check_counts(struct model *m, const struct image_size *size, const char *weights, int32_t new_tokens) {
    enum { NEW_MOST = 9 };
    vp_engine_options e = vp_engine_options_default();
    struct session s = {0}, counter;
    struct pass_input input = {0};
    vp_image image;
    struct cuts cuts = {0};
    vp_stage_times work;
    vp_error error = {VP_OK, -1, "", ""};
    char reason[300];
    int32_t blocks[64];
    if (!CHECK_INT(load_image("samples/cat.jpg", &image, reason, sizeof reason), 0)) return;
    struct image_px px = (struct image_px){image.width_px, image.height_px};
    CHECK_INT(model_cut(m, size, &px, 1, &cuts, &error), VP_OK);
    struct sample sample = {.prompt = m->rules->prompt(m, NULL, "What animal is this?", NULL, 1)};
    CHECK_INT(tokenize_sample(m, &cuts, &sample), 0);
    for (int32_t i = 0; i < m->config.block_count; i++) blocks[i] = i;
    input.images = &image; input.cuts = &cuts;
    input.tokens = sample.tokens;
    input.engine.top_k = m->config.expert_count ? m->config.expert_count : 0; /* all experts have tokens */
    input.engine.active_blocks = blocks; input.engine.active_block_count = m->config.block_count; input.engine.max_new_tokens = new_tokens; input.engine.ignore_eos = 1;
    e.config = &m->config; e.device = "cpu"; e.gemm = steady_gemm(); e.weights = weights_of(weights);
    e.max_sequence = (int32_t)positions_of(&input); e.max_views = cuts.whole.views;
    s.model = m;
    counter = s;
    struct pass_result *run = runs_make(1, NEW_MOST);
    CHECK_INT(vp_engine_open(&e, &s.engine, &error), VP_OK);
    e.counts_only = 1;
    CHECK_INT(vp_engine_open(&e, &counter.engine, &error), VP_OK);
    CHECK_INT(request_run(&s, &input, run, &error), VP_OK);
    input.images = NULL; input.tokens.ids = NULL;
    CHECK_INT(request_count(&counter, &input, &work, &error), VP_OK);
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        CHECK_INT(work.launches[stage], run->reply.times.launches[stage]);
        CHECK_INT(work.flops[stage], run->reply.times.flops[stage]);
        CHECK_INT(work.bytes[stage], run->reply.times.bytes[stage]);
    }
    CHECK(work.flops[VP_STAGE_VIT] > 0 && work.flops[VP_STAGE_PREFILL] > 0 && (new_tokens == 1 || work.flops[VP_STAGE_DECODE] > 0));
    runs_free(run, 1);
    session_free(&s);
    session_free(&counter);
    cuts_free(&cuts);
    sample_free(&sample);
    vp_image_free(&image);
}
static void test_counts(void) {
    static const char *const presets[] = {"tiny", "tiny-dense", "tiny-gemma3", "tiny-qwen3-vl-moe"}, *const weights[] = {"bf16", "fp32", "int8", "int4"};
    for (int i = 0; i < 4; i++) {
        struct image_size size = {NULL, 0, NULL, 0, NULL};
        struct model m = {.name = presets[i]};
        check_case("%s: the counted launches, FLOPs and bytes of a pass equal those that run", presets[i]);
        if (!CHECK_INT(model_load_preset(&m), 0)) continue;
        if (m.rules->is_tiled) size.tier = vp_tier_at(1);
        else if (i == 2) { size.knob = "max_num_crops"; size.knob_value = 4; } /* views whose tokens see only their own view */
        for (int kind = 0; kind < 4; kind++) check_counts(&m, &size, weights[kind], kind == 3 ? 1 : 5);
        model_free(&m);
    }
}
static void test_memory(void) {
    struct options o;
    struct model m = tiny;
    vp_engine_options e = vp_engine_options_default();
    vp_engine *engine = NULL;
    check_case("the forecast's memory equals the engine's request");
    CHECK_INT(parse_words("--data samples/questions.jsonl --device cpu", &o), 0);
    struct plan p = {.max_sequence = 900, .max_views = 5};
    struct needs x = {.weights = "bf16"};
    const vp_engine_options asked = engine_options_of(&o);
    needs_find(&asked, &m, &p, &x);
    CHECK_TEXT(x.reason, "");
    e.config = &m.config;
    e.device = "cpu";
    e.max_sequence = 900;
    e.max_views = 5;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_INT(x.memory_bytes, vp_engine_bytes(engine));
    vp_engine_close(engine);
    check_case("the memory that an engine would reserve, without reserving it");
    session_free(&x.counter);
    e.weights = VP_WEIGHTS_INT4;
    e.head_weights = VP_WEIGHTS_INT8;
    e.counts_only = 1;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    uint64_t bytes = vp_engine_bytes(engine);
    CHECK(vp_engine_free_bytes(engine) > bytes);
    vp_engine_close(engine);
    e.counts_only = 0;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_INT(bytes, vp_engine_bytes(engine));
    vp_engine_close(engine);
    e.weights = VP_WEIGHTS_FP32;
    e.counts_only = 1;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_ERR_RANGE);
    options_free(&o);
}

static double plan_number(const char *key) { return read_json(last.out) ? number(get(0, key)) : (double)NAN; }
#define PLAN "sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium --top_k_list 1 2 --max_new_tokens 4 --plan "
static void test_plan(void) {
    const char *name = "questions_imgsizetier-low_crops1_topk1_blocks4.json";
    check_case("--plan prints grid, memory, time and resolution, and writes nothing");
    CHECK_INT(run(PLAN "--output_dir %%F/planned"), 0);
    CHECK(access(in_folder("planned"), F_OK) != 0);
    CHECK(strstr(last.out, "4 configurations, 52 points, 3 runs each; 0 runs measured, 156 left"));
    CHECK(strstr(last.out, name) && strstr(last.out, "questions_imgsizetier-medium_crops5_topk2_blocks4.json"));
    CHECK(strstr(last.out, "memory  ") && strstr(last.out, "time        not known") && strstr(last.out, "warning     fewer than 500"));
    CHECK_INT(run(PLAN "--json"), 0);
    CHECK_NEAR(plan_number("num_points"), 52, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 156, 0);
    CHECK(plan_number("engine_bytes") > 1e6 && strstr(last.out, "\"too_few_samples\": true"));
}
/* The journal of test_measured's sweep, cut after the points of its first sample. */
static void test_started(void) {
    char *text = text_of_file(in_folder("out/journal.jsonl")), *end = text;
    double sum = 0;
    check_case("--plan uses a journal's measurements, only from the same plan");
    for (int done = 0; done < 2 && end; done++) end = strstr(end, "\"done\": ") ? strstr(end, "\"done\": ") + 1 : NULL;
    if (!CHECK(end != NULL)) return;
    *strchr(end, '\n') = 0;
    strcat(text, "\n");
    CHECK_INT(mkdir(in_folder("part"), 0777), 0);
    write_text(in_folder("part/journal.jsonl"), text);
    free(text);
    CHECK_INT(run("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %%F/part --top_k_list 1 --num_samples 2 --max_new_tokens 2 "
                  "--ignore_eos --bare_every 0 --tier_list low high --num_runs_per_sample 1 --plan --json"), 0);
    CHECK_NEAR(plan_number("num_runs_measured"), 2, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 2, 0);
    uint32_t all = get(0, "configurations");
    for (uint32_t i = 0; i < 2; i++) sum += number(get(vp_json_at(&json, all, i), "T_total_measured")) / 1e3;
    CHECK_NEAR(number(get(0, "expected_seconds")), sum, 1e-9 * sum);
    CHECK_INT(run("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %%F/part --top_k_list 1 --num_samples 2 --max_new_tokens 2 "
                  "--ignore_eos --bare_every 0 --tier_list low high --num_runs_per_sample 1 --plan --seed 7"), 0);
    CHECK(strstr(last.out, "journals of another plan") && strstr(last.out, "0 runs measured"));
}

int main(void) {
    if (!program_begin("plan_cost")) return 1;
    tiny.name = "tiny";
    CHECK_INT(model_load_preset(&tiny), 0);
    RUN_TESTS(test_measured, test_counted, test_counts, test_memory, test_plan, test_started);
    model_free(&tiny);
    free(json_nodes);
    return program_done("test_plan_cost");
}
