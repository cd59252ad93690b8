/* test_forecast.c: sweep --plan beside a sweep that was measured: each configuration's time is the mean of its own rows, counts of what is done and
 * left, and the time left is that of the runs left; FLOPs, bytes and memory of the forecast against the engine's.
 * Includes the room for its inner parts, and runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1
#include "cli/dataset/forecast.c"
#include "commands/commands.h"
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
    uint32_t rows;
    snprintf(path, sizeof path, "%s/%s", in_folder("out"), name);
    text = check_read(path, NULL);
    if (!CHECK(text != NULL)) return (double)NAN;
    vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL);
    nodes = (vp_json_node *)malloc((needed + 1) * sizeof *nodes);
    CHECK_INT(vp_json_parse(text, strlen(text), nodes, needed, &file, NULL, NULL), VP_OK);
    rows = vp_json_get(&file, 0, "per_sample_results");
    for (uint32_t i = 0; i < nodes[rows].count; i++) {
        vp_json_to_double(&file, vp_json_get(&file, vp_json_at(&file, rows, i), "T_total"), &value);
        sum += value / nodes[rows].count;
    }
    free(nodes);
    free(text);
    return sum;
}
static void test_measured(void) {
    uint32_t all;
    double means[2] = {0, 0};
    check_case("each configuration's measured time is its own");
    CHECK_INT(run(SWEEP "--tier_list low high --num_runs_per_sample 1 --quiet"), 0);
    CHECK_INT(run(SWEEP "--tier_list low high --num_runs_per_sample 1 --plan --json"), 0);
    if (!read_json(last.out)) return;
    all = get(0, "configurations");
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
/* estimates that no measurement scales: in the order of the work, and the time left is their sum over the runs left */
static void test_estimated(void) {
    uint32_t all;
    double sum = 0, before = 0;
    check_case("estimates: of each configuration its own, and their sum");
    CHECK_INT(run("sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium high --top_k_list 1 --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 2 --bare_every 0 --plan --json --output_dir %%F/none"), 0);
    if (!read_json(last.out)) return;
    all = get(0, "configurations");
    CHECK_INT(count_of(all), 3);
    for (uint32_t i = 0; i < count_of(all); i++) {
        uint32_t one = vp_json_at(&json, all, i);
        double ms = number(get(one, "T_total_estimate"));
        CHECK(ms > before);
        before = ms;
        CHECK_INT(whole(get(one, "num_runs_left")), 6);
        CHECK_INT(whole(get(one, "num_runs_measured")), 0);
        sum += ms / 1e3 * 6;
    }
    CHECK_INT(whole(get(0, "num_runs_left")), 18);
    CHECK_NEAR(number(get(0, "expected_seconds")), sum, 1e-6 * sum);
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

/* ---- the forecast's FLOPs and bytes are the engine's */
static void test_cost(void) {
    static const int32_t passes[][5] = {{0, 40, 1, 4, 3}, {0, 200, 2, 4, 9}, {3, 600, 2, 4, 4}, {5, 800, 1, 2, 2}};
    for (int kind = 0; kind < 5; kind++) {
        static const char *const weights[] = {"bf16", "fp32", "int8", "int4", "int4"};
        const int fp32 = kind == 1;
        struct widths widths = {fp32 ? 4 : 2, bytes_of(weights[kind]), fp32 ? 4 : kind == 4 ? 1.125 : 2};
        vp_engine_options e = vp_engine_options_default();
        vp_engine *engine = NULL;
        struct session s;
        e.config = &tiny.config;
        e.device = "cpu";
        e.weights = weights_of(weights[kind]);
        e.head_weights = kind == 4 ? VP_WEIGHTS_INT8 : VP_WEIGHTS_BF16;
        check_case("FLOPs and bytes of a pass against the engine's counters, %s", weights[kind]);
        e.max_sequence = 1300;
        e.max_views = 8;
        memset(&s, 0, sizeof s);
        if (!CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK)) return;
        for (size_t i = 0; i < (fp32 ? 3 : sizeof passes / sizeof *passes); i++) {
            struct pass_shape p = {passes[i][0], passes[i][0] * vp_geometry_tokens_per_crop(&tiny.config.geometry), passes[i][1], passes[i][2],
                                   passes[i][3], passes[i][4]};
            size_t views = (size_t)p.views, patches = (size_t)tiny.config.vit_positions - 1;
            size_t values = (size_t)tiny.config.geometry.patch_px * (size_t)tiny.config.geometry.patch_px * 3;
            int32_t blocks[4] = {0, 1, 2, 3}, tokens[16];
            int32_t *ids = (int32_t *)resize(NULL, (size_t)p.sequence, sizeof *ids);
            int32_t *index = (int32_t *)zeroed(views * (size_t)vp_geometry_tokens_per_crop(&tiny.config.geometry) + 1, sizeof *index);
            float *pixels = (float *)zeroed(views * patches * values + 1, sizeof *pixels), *masks = (float *)zeroed(views * patches + 1, sizeof *masks);
            int64_t step_ns[16];
            vp_request q;
            vp_reply reply;
            struct pass_cost c;
            for (int32_t k = 0; k < p.sequence; k++) ids[k] = k * 37 % 250;
            memset(&q, 0, sizeof q);
            memset(&reply, 0, sizeof reply);
            q.input_ids = ids; q.input_count = p.sequence; q.views = p.views;
            q.pixels = pixels; q.image_masks = masks; q.image_input_idx = index;
            q.top_k = p.top_k; q.active_blocks = blocks; q.active_block_count = p.block_count;
            q.max_new_tokens = p.new_tokens; q.ignore_eos = 1;
            reply.tokens = tokens; reply.step_ns = step_ns;
            CHECK_INT(vp_engine_run(engine, &q, &reply, NULL), VP_OK);
            cost_of(&tiny.config, &p, &widths, &c);
            for (int stage = VP_STAGE_VIT; stage <= VP_STAGE_DECODE; stage++) {
                double flops = (double)reply.times.flops[stage], bytes = (double)reply.times.bytes[stage];
                CHECK_NEAR(c.flops[stage], flops, 0.01 * flops);
                CHECK_NEAR(c.bytes[stage], bytes, (kind < 3 ? 0.03 : 0.04) * bytes); /* what is left out is the same in all, and weights of int4 are few */
            }
            free(ids); free(index); free(pixels); free(masks);
        }
        vp_engine_close(engine);
    }
}
static void test_memory(void) {
    struct options o;
    struct plan p;
    struct rates x;
    struct model m = tiny;
    vp_engine_options e = vp_engine_options_default();
    vp_engine *engine = NULL;
    uint64_t bytes = 0, free_bytes = 0;
    check_case("the forecast's memory is what the engine asks for");
    CHECK_INT(parse_words("--data samples/questions.jsonl --device cpu", &o), 0);
    memset(&p, 0, sizeof p);
    memset(&x, 0, sizeof x);
    p.max_sequence = 900;
    p.max_views = 5;
    x.weights = "bf16";
    CHECK_INT(calibrate(&o, &m, &p, &x), 0);
    CHECK_TEXT(x.reason, "");
    e.config = &m.config;
    e.device = "cpu";
    e.max_sequence = 900;
    e.max_views = 5;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_INT(x.memory_bytes, vp_engine_bytes(engine));
    vp_engine_close(engine);
    check_case("what an engine would reserve, without reserving it");
    e.weights = VP_WEIGHTS_INT4;
    e.head_weights = VP_WEIGHTS_INT8;
    CHECK_INT(vp_engine_needs(&e, &bytes, &free_bytes, NULL), VP_OK);
    CHECK(free_bytes > bytes);
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_INT(bytes, vp_engine_bytes(engine));
    vp_engine_close(engine);
    e.weights = VP_WEIGHTS_FP32;
    CHECK_INT(vp_engine_needs(&e, &bytes, &free_bytes, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_model_config_preset("molmoe-1b", &m.config), VP_OK);
    m.config = calibration_config(&m.config);
    CHECK(parameter_count(&m.config) < 400000000 && m.config.d_model == 2048 && m.config.vit_width == 1024);
    options_free(&o);
}

static double plan_number(const char *key) { return read_json(last.out) ? number(get(0, key)) : (double)NAN; }
#define PLAN "sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium --top_k_list 1 2 --max_new_tokens 4 --plan "
static void test_plan(void) {
    struct options o;
    struct plan p;
    char text[900];
    const char *name = "questions_imgsizetier-low_crops1_topk1_blocks4.json";
    check_case("--plan prints grid, memory, time and resolution, and writes nothing");
    CHECK_INT(run(PLAN "--output_dir %%F/planned"), 0);
    CHECK(access(in_folder("planned"), F_OK) != 0);
    CHECK(strstr(last.out, "4 configurations, 52 points, 3 runs each; 0 runs measured, 156 left"));
    CHECK(strstr(last.out, name) && strstr(last.out, "questions_imgsizetier-medium_crops5_topk2_blocks4.json"));
    CHECK(strstr(last.out, "memory  ") && strstr(last.out, "(estimate)") && strstr(last.out, "warning     fewer than 500"));
    CHECK_INT(run(PLAN "--json"), 0);
    CHECK_NEAR(plan_number("num_points"), 52, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 156, 0);
    CHECK(plan_number("expected_seconds") > 0.05 && plan_number("engine_bytes") > 1e6);
    CHECK(strstr(last.out, "\"too_few_samples\": true") && strstr(last.out, "\"expected_from\": \"estimate\""));
    check_case("--plan goes by what a journal holds, of this plan only");
    memset(&p, 0, sizeof p);
    CHECK_INT(parse_words("--data samples/questions.jsonl --tier_list low medium --top_k_list 1 2 --max_new_tokens 4 --plan", &o), 0);
    CHECK_INT(plan_make(&o, &tiny, &p), 0);
    snprintf(text, sizeof text, "{\"schema\": \"vlmprof-journal-2\", \"plan\": \"%016llx\"}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 0, \"total_ns\": 2000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 1, \"total_ns\": 4000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 2, \"total_ns\": 6000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"done\": 3}\n{\"config\": \"%s\", \"sample_id\": 1, \"fai",
                 (unsigned long long)p.fingerprint, name, name, name, name, name);
    plan_free(&p);
    options_free(&o);
    CHECK_INT(mkdir(in_folder("planned"), 0777), 0);
    write_text(in_folder("planned/journal_rank0of2.jsonl"), text);
    CHECK_INT(run(PLAN "--output_dir %%F/planned --json"), 0);
    CHECK_NEAR(plan_number("num_runs_measured"), 3, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 153, 0);
    CHECK(plan_number("expected_seconds") > 36 * 4 + 117 * 4 / 4); /* the others are scaled: a larger tier takes no less */
    CHECK(strstr(last.out, "\"T_total_measured\": 4000"));
    CHECK_INT(run(PLAN "--output_dir %%F/planned --seed 7"), 0);
    CHECK(strstr(last.out, "belongs to another plan") && strstr(last.out, "0 runs measured"));
}

int main(void) {
    if (!program_begin("forecast")) return 1;
    tiny.name = "tiny";
    CHECK_INT(model_load_preset(&tiny), 0);
    test_measured();
    test_estimated();
    test_cost();
    test_memory();
    test_plan();
    model_free(&tiny);
    program_end();
    free(json_nodes);
    return check_done("test_forecast");
}
