/* test_report.c: result files -> answers. Reports, the best configuration and comparisons, on sweeps that this program writes itself with a known
 * truth: which configurations are on the front, what each knob does, how much slower a build became. Also the experiments' own files (as
 * formats of their repository have them), damaged files of every kind, exit codes and the shape of CSV, Markdown and JSON.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. REPORT_LARGE=1 adds 336 x 1,000 samples. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "check.h"
#include "program.h"
#include "scan.h"
#include <sys/resource.h>

static int lines_of(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}
/* exit code, one line on stderr that holds `word`, nothing on stdout */
static void check_refused(int code, const char *word) {
    CHECK_INT(last.code, code);
    CHECK_INT(lines_of(last.err), 1);
    CHECK_TEXT(last.out, "");
    check_note(strstr(last.err, word) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", word, last.err);
}

/* ---- the experiments' own files: no schema, per token divided by the tokens, rows in any order */
static void write_foreign(const char *path, const char *stats, const char *rows) {
    char text[8192];
    snprintf(text, sizeof text,
             "{\"tier\": \"low\", \"tier_range\": {\"min_crops\": 1, \"max_crops\": 3}, \"max_crops\": 3, \"selected_crops_mean\": 2.0,\n"
             " \"target_vision_tokens_mean\": 432.0, \"actual_vision_tokens_mean\": 400.0, \"top_k\": 4, \"num_active_blocks\": 12,\n"
             " \"num_total_blocks\": 16, \"active_block_indices\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15], \"num_samples\": 3, \"accuracy\": 0.6,\n"
             " \"accuracy_std\": 0.2, \"%s\": {\"T_total_mean\": 200.0}, \"per_sample_results\": [%s]}", stats, rows);
    write_text(path, text);
}
#define FOREIGN_ROW(id, total, decode, tokens, accuracy) \
    "{\"sample_id\": " id ", \"tier\": \"low\", \"top_k\": 4, \"num_active_blocks\": 12, \"output_tokens\": " tokens ", \"content_tokens\": 1," \
    "\"ends_with_eos\": true, \"actual_image_size\": [336, 560], \"actual_num_crops\": 2, \"actual_tiling\": [1, 2]," \
    "\"target_vision_tokens\": 432, \"actual_vision_tokens\": 384, \"actual_text_tokens\": 20, \"total_sequence_length\": 424," \
    "\"accuracy\": " accuracy ", \"pred\": \"a\", \"metadata\": {}, \"T_vision_total\": 12.0, \"T_LLM_prefill\": 99.0," \
    "\"T_LLM_decode\": " decode ", \"T_total\": " total ", \"T_decode_per_token\": 19.5, \"T_decode_per_step\": [[19.0, 19.2]]}"
#define FOREIGN_ROWS FOREIGN_ROW("7", "160.0", "39.0", "2", "1.0") "," FOREIGN_ROW("3", "150.0", "80.0", "3", "0.3") "," FOREIGN_ROW("5", "140.0", "0.0", "1", "0.6")

static void test_foreign(void) {
    static const char *const names[] = {"latency_stats", "aggregate_stats"};
    for (int i = 0; i < 2; i++) {
        check_case("a file of the experiments, with %s", names[i]);
        make_empty(in_folder("foreign"));
        write_foreign(in_folder("foreign/text-vqa_imgsizetier-low_crops2_topk4_blocks12.json"), names[i], FOREIGN_ROWS);
        CHECK_INT(run("report %%F/foreign"), 0);
        CHECK(strstr(last.out, "text-vqa") && strstr(last.out, "low k4 b12") && strstr(last.out, "150.0"));
    }
}

static void damage(const char *what, const char *stats, const char *rows, const char *word) {
    check_case("damaged: %s", what);
    make_empty(in_folder("bad"));
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), stats, rows);
    run("report %%F/bad");
    check_refused(3, word);
    CHECK(strstr(last.err, "t_imgsizetier-low") != NULL);
}
static void test_damaged(void) {
    static const char *const whole = "{\"top_k\": 4, \"num_active_blocks\": 12, \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": 5}]}";
    char cut[200], path[512];
    int good = 0;
    snprintf(path, sizeof path, "%s", in_folder("bad/t_imgsize.json"));
    damage("an id that stands twice", "latency_stats", FOREIGN_ROW("7", "1", "1", "2", "1") "," FOREIGN_ROW("7", "1", "1", "2", "1"), "sample_id 7");
    damage("a negative time", "latency_stats", FOREIGN_ROW("7", "-160.0", "39.0", "2", "1.0"), "per_sample_results[0], byte");
    damage("a text where a time should be", "latency_stats", FOREIGN_ROW("7", "\"fast\"", "39.0", "2", "1.0"), "T_total is no number");
    damage("a time past all measure", "latency_stats", FOREIGN_ROW("7", "1e300", "39.0", "2", "1.0"), "T_total is out of range");
    damage("a number past double", "latency_stats", FOREIGN_ROW("7", "1e999", "39.0", "2", "1.0"), "T_total is no number");
    damage("no total", "latency_stats", "{\"sample_id\": 1}", "T_total is missing");
    damage("no id", "latency_stats", "{\"T_total\": 1}", "sample_id is missing");
    damage("half an id", "latency_stats", FOREIGN_ROW("7.5", "1", "1", "2", "1"), "sample_id is no whole number");
    damage("a row that is no object", "latency_stats", "[1]", "is no object");
    damage("no row", "latency_stats", "", "is empty");
    damage("no JSON", "latency_stats", "{", "byte");
    check_case("a file cut anywhere is refused");
    make_empty(in_folder("bad"));
    for (size_t bytes = 0; bytes < strlen(whole); bytes += 7) {
        snprintf(cut, sizeof cut, "%.*s", (int)bytes, whole);
        write_text(path, cut);
        run("report %%F/bad");
        check_refused(3, "t_imgsize.json");
        good++;
    }
    CHECK(good > 10);
    write_text(path, whole);
    CHECK_INT(run("report %%F/bad"), 0);
    check_case("settings that make no sense");
    write_text(path, "{\"top_k\": 0, \"num_active_blocks\": 1, \"per_sample_results\": []}");
    run("report %%F/bad");
    check_refused(3, "top_k");
    write_text(path, "{\"top_k\": 1, \"num_active_blocks\": -1, \"per_sample_results\": []}");
    run("report %%F/bad");
    check_refused(3, "num_active_blocks");
    write_text(path, "{\"per_sample_results\": 7}");
    run("report %%F/bad");
    check_refused(3, "no result file");
    check_case("nothing to read");
    make_empty(in_folder("bad"));
    run("report %%F/bad");
    check_refused(3, "no result files");
    run("report %%F/none");
    check_refused(3, "none");
    write_text(in_folder("bad/notes.json"), "{\"a\": 1}");
    run("report %%F/bad");
    check_refused(3, "no result file in it");
    run("report %%F/bad/notes.json");
    check_refused(3, "no per_sample_results");
    run("report");
    check_refused(2, "give a folder");
    check_case("a file that is no result is told once");
    write_text(in_folder("bad/other.json"), "nonsense");
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    CHECK_INT(run("report %%F/bad"), 0);
    CHECK(strstr(last.out, "notes.json and others are no result files") != NULL);
}

/* ---- sweeps with a known truth: latency is a sum of what a sample and the knobs cost, times noise; a sample is answered rightly by a configuration
 * when its own difficulty, the same for all, is below the configuration's skill */
enum { SIZES = 3, LEVELS = 9 };
static const char *const TIERS[SIZES] = {"low", "medium", "high"};
typedef struct truth {
    const char *task, *device, *metric;
    int size_count, top_k_count, block_count, top_k[LEVELS], blocks[LEVELS];
    int samples, runs, seed, noise_seed, first_id;
    double noise;       /* relative, of a run */
    double slower;      /* factor of every time */
    double skill_less;  /* of all configurations' skill */
    double block_skill; /* what a level of blocks adds to it */
    double lost_share;  /* of T_total in no stage */
    int is_corpus, details, parts; /* parts: kernels were timed one by one */
} truth;
static truth truth_default(void) {
    truth t;
    memset(&t, 0, sizeof t);
    t.task = "made";
    t.device = "cpu: test";
    t.metric = "vqa_seed";
    t.size_count = 3;
    t.top_k_count = t.block_count = 2;
    t.top_k[0] = 4; t.top_k[1] = 8;
    t.blocks[0] = 12; t.blocks[1] = 16;
    t.samples = 400;
    t.runs = 2;
    t.seed = 42;
    t.noise_seed = 1;
    t.noise = 0.01;
    t.slower = 1;
    t.block_skill = 0.02;
    return t;
}
static double uniform(vp_random *r) { return vp_random_double(r); }
static double normal(vp_random *r) { /* twelve uniform numbers: near enough, and the same everywhere */
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform(r);
    return sum;
}
/* ms: 10 a view, 0.05 a token of prefill times blocks / 16, 2 a step times top_k / 8; the highest tier with the larger top_k costs 30 more */
static double truth_vision(int views) { return 10.0 * views; }
static double truth_prefill(int sequence, int blocks) { return 0.05 * sequence * blocks / 16; }
static double truth_decode(int steps, int top_k) { return 2.0 * steps * top_k / 8; }
static double truth_skill(const truth *t, int size, int k, int b) {
    return 0.4 + 0.15 * size + 0.1 * k / (t->top_k_count > 1 ? t->top_k_count - 1 : 1) + t->block_skill * b;
}

static void write_times(FILE *f, const truth *t, const double *ms, double total) { /* vision, prefill, decode, interaction */
    fprintf(f, "\"T_vision_total\": %.6f, \"T_LLM_prefill\": %.6f, \"T_LLM_decode\": %.6f, \"T_total\": %.6f, \"T_decode_per_token\": %.6f, \"TTFT\": %.6f, "
            "\"unaccounted\": %.6f, \"closure\": %.6f, "
            "\"stages\": {\"preprocess\": %.6f, \"h2d\": null, \"vit\": %.6f, \"prefill\": %.6f, \"decode\": %.6f}",
            ms[0], ms[1], ms[2], total, ms[2] / 7, ms[0] + ms[1] + ms[3], total * t->lost_share, 1 - t->lost_share, ms[3], ms[0], ms[1], ms[2]);
    fprintf(f, ", \"stage_detail\": {\"vit\": {\"wall_ms\": %.6f, \"device_ms\": %.6f, \"launches\": 100.0, \"flops\": %.1f, \"bytes\": 1e6}, "
            "\"prefill\": {\"wall_ms\": %.6f, "
            "\"flops\": %.1f, \"bytes\": 1e7}, \"decode\": {\"wall_ms\": 1.0, \"launches\": 7, \"flops\": 1e6, \"bytes\": %.1f}}",
            ms[0], ms[0], 1e9 * ms[0], ms[1], 5e8 * ms[1], 2e6 * ms[2]);
    for (int i = 0; i < t->details; i++) /* as many bytes as a real row has */
        fprintf(f, ", \"detail_%d\": {\"wall_ms\": 26.26995, \"device_ms\": null, \"launches\": 340.0, \"flops\": 6444752800.0, \"bytes\": 141222400.0}", i);
}
static void write_made(const char *name, const truth *t, int size, int k, int b) {
    vp_random samples, noise;
    char path[512];
    FILE *f;
    int right = 0;
    snprintf(path, sizeof path, "%s/%s_imgsizetier-%s_crops%d_topk%d_blocks%d.json", in_folder(name), t->task, TIERS[size], 1 + 4 * size, t->top_k[k], t->blocks[b]);
    f = fopen(path, "wb");
    if (!CHECK(f != NULL)) return;
    vp_random_seed(&samples, 7);
    vp_random_seed(&noise, (uint32_t)(t->noise_seed * 100000 + size * 10000 + k * 100 + b));
    fprintf(f, "{\n \"schema\": \"vlmprof-sweep-2\", \"plan\": \"00\", \"status\": \"complete\", \"num_failed\": 0, \"num_missing\": 0, \"num_runs_per_sample\": %d,\n"
            " \"timing\": \"stage\", \"synthetic\": false, \"model\": \"made\", \"dataset_name\": \"%s\", \"data\": \"made.jsonl\", \"data_hash\": \"77\",\n"
            " \"max_new_tokens\": 8, \"tier\": \"%s\", \"target_vision_tokens\": null,"
            " \"top_k\": %d, \"num_active_blocks\": %d, \"num_total_blocks\": 16,\n"
            " \"active_block_indices\": [0, 1, 3], \"accuracy\": %.3f, \"accuracy_metric\": \"%s\", \"num_throttled_runs\": 0,\n"
            " \"provenance\": {\"device\": \"%s\", \"host\": \"h\", \"version\": \"0.1.0\"}, \"config\": {\"seed\": %d, \"weights\": \"bf16\"},\n",
            t->runs, t->task, TIERS[size], t->top_k[k], t->blocks[b], truth_skill(t, size, k, b), t->metric, t->device, t->seed);
    if (t->parts) /* two shapes: of 10 + 30 ms of prefill 6 + 14 are experts', 4 idle; decode has no more than the sum, as older files */
        fprintf(f, " \"kernel_pass\": [{\"stages\": {\"prefill\": {\"device_ms\": 10.0, \"kernel_ms\": 9.0, \"idle_share\": 0.1, "
                "\"parts\": {\"experts\": 6.0, \"attention\": 3.0}}}}, {\"stages\": {\"prefill\": {\"device_ms\": 30.0, \"kernel_ms\": 27.0, "
                "\"idle_share\": 0.1, \"parts\": {\"experts\": 14.0, \"attention\": 5.0, \"router\": 8.0, \"dense\": 1e9, \"unknown\": 1}}, "
                "\"decode\": {\"device_ms\": 4.0, \"kernel_ms\": 3.0, \"idle_share\": 0.25}}}],\n");
    fprintf(f, " \"per_sample_results\": [");
    for (int i = 0; i < t->samples; i++) {
        int views = 2 + 4 * size + (int)vp_random_below(&samples, 1), sequence = 100 * views + (int)vp_random_below(&samples, 200);
        double own = 5 * uniform(&samples), hard = uniform(&samples), ms[4] = {0, 0, 0, 0}, totals[16], sum = 0;
        for (int r = 0; r < t->runs; r++) {
            double factor = t->slower * (1 + t->noise * normal(&noise));
            ms[0] += truth_vision(views) * factor / t->runs;
            ms[1] += truth_prefill(sequence, t->blocks[b]) * factor / t->runs;
            ms[2] += truth_decode(7, t->top_k[k]) * factor / t->runs;
            ms[3] += (own + (size == 2 && k == 1 ? 30 : 0)) * factor / t->runs;
            totals[r] = (truth_vision(views) + truth_prefill(sequence, t->blocks[b]) + truth_decode(7, t->top_k[k]) + own + (size == 2 && k == 1 ? 30 : 0)) * factor
                      / (1 - t->lost_share);
            sum += totals[r];
        }
        right = hard < truth_skill(t, size, k, b) - t->skill_less;
        fprintf(f, "%s\n  {\"sample_id\": %d, \"status\": \"ok\", \"actual_num_crops\": %d, \"actual_vision_tokens\": %d, \"input_text_tokens\": 20, "
                "\"total_sequence_length\": %d, \"output_tokens\": 8, ", i ? "," : "", i + t->first_id, views - 1, 144 * views, sequence);
        if (t->is_corpus) fprintf(f, "\"accuracy\": null, "); else fprintf(f, "\"accuracy\": %d.0, ", right);
        write_times(f, t, ms, sum / t->runs);
        fprintf(f, ", \"runs\": {\"T_total\": [");
        for (int r = 0; r < t->runs; r++) fprintf(f, "%s%.6f", r ? ", " : "", totals[r]);
        fprintf(f, "]}}");
    }
    fprintf(f, "]}\n");
    if (fclose(f)) CHECK(!"a result file can be written");
}
static void write_sweep(const char *name, const truth *t) {
    make_empty(in_folder(name));
    for (int size = 0; size < t->size_count; size++)
        for (int k = 0; k < t->top_k_count; k++)
            for (int b = 0; b < t->block_count; b++) write_made(name, t, size, k, b);
}

/* ---- reading what the program printed */
static vp_json json;
static vp_json_node *json_nodes;
static int read_json(const char *text) {
    size_t needed = 0;
    free(json_nodes);
    json_nodes = NULL;
    if (vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL) != VP_ERR_CAPACITY) return CHECK(!"the output is JSON");
    json_nodes = (vp_json_node *)malloc(needed * sizeof *json_nodes);
    return json_nodes && CHECK_INT(vp_json_parse(text, strlen(text), json_nodes, needed, &json, NULL, NULL), VP_OK);
}
static uint32_t get(uint32_t node, const char *key) { return vp_json_get(&json, node, key); }
static double number(uint32_t node) {
    double value;
    return vp_json_to_double(&json, node, &value) == VP_OK ? value : (double)NAN;
}
static int64_t whole(uint32_t node) {
    int64_t value;
    return vp_json_to_int(&json, node, &value) == VP_OK ? value : -1;
}
static int is_text(uint32_t node, const char *text) { return vp_json_equals(&json, node, text); }
static uint32_t count_of(uint32_t node) { return node == VP_JSON_NONE ? 0 : json.nodes[node].count; }
/* 1 when an interval holds a value */
static int holds(uint32_t interval, double value) {
    return number(vp_json_at(&json, interval, 0)) <= value && value <= number(vp_json_at(&json, interval, 1));
}
/* the element of an array whose members say so; keys and values in turn, NULL ends */
static uint32_t find(uint32_t array, const char *key, const char *value, const char *key2, const char *value2) {
    for (uint32_t i = 0; i < count_of(array); i++) {
        uint32_t item = vp_json_at(&json, array, i);
        if (is_text(get(item, key), value) && (!key2 || is_text(get(item, key2), value2))) return item;
    }
    return VP_JSON_NONE;
}
static uint32_t configuration(uint32_t array, int size, int top_k, int blocks) {
    for (uint32_t i = 0; i < count_of(array); i++) {
        uint32_t item = vp_json_at(&json, array, i);
        if (is_text(get(item, "tier"), TIERS[size]) && whole(get(item, "top_k")) == top_k && whole(get(item, "num_active_blocks")) == blocks) return item;
    }
    return VP_JSON_NONE;
}

/* what the generator's formulas say of a configuration: mean over its samples */
static double true_mean(const truth *t, int size, int k, int b) {
    vp_random samples;
    double sum = 0;
    vp_random_seed(&samples, 7);
    for (int i = 0; i < t->samples; i++) {
        int views = 2 + 4 * size + (int)vp_random_below(&samples, 1), sequence = 100 * views + (int)vp_random_below(&samples, 200);
        double own = 5 * uniform(&samples);
        uniform(&samples);
        sum += truth_vision(views) + truth_prefill(sequence, t->blocks[b]) + truth_decode(7, t->top_k[k]) + own + (size == 2 && k == 1 ? 30 : 0);
    }
    return sum / t->samples;
}
/* The split of a stage into parts: shares of its device time over all shapes, in every form of the report; nothing where no kernel was timed. */
static void test_parts(void) {
    truth t = truth_default();
    uint32_t stages, parts;
    char *page;
    t.size_count = t.top_k_count = t.block_count = 1;
    t.samples = 20;
    t.parts = 1;
    check_case("prefill and decode by part, where kernels were timed");
    write_sweep("parts", &t);
    CHECK_INT(run("report %%F/parts"), 0);
    CHECK(last.out && strstr(last.out, "what prefill and decode are made of") && strstr(last.out, " attention  router  experts  idle"));
    CHECK_INT(run("report %%F/parts --csv"), 0);
    CHECK(last.out && strstr(last.out, ",prefill_experts_share,prefill_head_share,prefill_sample_share,decode_embed_share,"));
    CHECK(last.out && strstr(last.out, ",,,0.2,0.2,0.5,,,,,,,,,,0.11363636363636365,")); /* prefill's embed .. sample, decode's, idle of all */
    CHECK_INT(run("report %%F/parts --json"), 0);
    if (!read_json(last.out)) return;
    stages = get(vp_json_at(&json, get(get(0, "e1_stage_decomposition"), "configurations"), 0), "stages");
    parts = get(get(stages, "prefill"), "parts");
    CHECK_INT(count_of(parts), 3);
    CHECK_NEAR(number(get(parts, "experts")), 0.5, 1e-12);
    CHECK_NEAR(number(get(parts, "attention")), 0.2, 1e-12);
    CHECK_NEAR(number(get(parts, "router")), 0.2, 1e-12);
    CHECK_NEAR(number(get(get(stages, "prefill"), "idle_share")), 0.1, 1e-12);
    CHECK(json.nodes[get(get(stages, "decode"), "parts")].type == VP_JSON_NULL && fabs(number(get(get(stages, "decode"), "idle_share")) - 0.25) < 1e-12);
    CHECK(json.nodes[get(get(stages, "vit"), "parts")].type == VP_JSON_NULL);
    CHECK_INT(run("report %%F/parts --html=%%F/parts.html"), 0);
    page = check_read(in_folder("parts.html"), NULL);
    CHECK(page && strstr(page, "What prefill and decode are made of") && strstr(page, "\nexperts 50.0 %") && strstr(page, "\nidle 10.0 %"));
    free(page);
    check_case("and none where they were not");
    t.parts = 0;
    write_sweep("parts", &t);
    CHECK_INT(run("report %%F/parts"), 0);
    CHECK(last.out && !strstr(last.out, "made of"));
}
static void check_effect(uint32_t effects, const char *knob, const char *level, double want, int *inside) {
    uint32_t e = find(effects, "knob", knob, "level", level);
    *inside += holds(get(e, "interval"), want);
    CHECK_NEAR(number(get(e, "estimate")), want, 0.5);
}
static void test_truth(void) {
    truth t = truth_default();
    uint32_t e1, e2, set, configs, effects, curves;
    double cell[3][2][2], mean = 0, size_mean[3] = {0, 0, 0}, k_mean[2] = {0, 0}, b_mean[2] = {0, 0}, shares = 0;
    char level[16];
    int inside = 0;
    check_case("a sweep with a known truth is reported");
    write_sweep("made", &t);
    CHECK_INT(run("report %%F/made --json"), 0);
    if (!read_json(last.out)) return;
    e1 = get(0, "e1_stage_decomposition");
    e2 = get(0, "e2_pareto_coupling");
    set = vp_json_at(&json, get(e2, "datasets"), 0);
    configs = get(set, "configurations");
    CHECK_INT(count_of(get(e1, "configurations")), 12);
    CHECK_INT(count_of(configs), 12);
    CHECK_INT(whole(get(set, "num_samples")), 400);

    check_case("means, effects and interactions are those of the truth");
    for (int s = 0; s < 3; s++) for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) {
        double m = cell[s][k][b] = true_mean(&t, s, k, b);
        uint32_t c = configuration(get(e1, "configurations"), s, t.top_k[k], t.blocks[b]);
        CHECK_NEAR(number(get(get(get(c, "latency_ms"), "T_total"), "mean")), m, 0.005 * m);
        mean += m / 12; size_mean[s] += m / 4; k_mean[k] += m / 6; b_mean[b] += m / 6;
    }
    effects = get(set, "latency_effects");
    for (int s = 0; s < 3; s++) check_effect(effects, "image_size", TIERS[s], size_mean[s] - mean, &inside);
    for (int k = 0; k < 2; k++) {
        snprintf(level, sizeof level, "%d", t.top_k[k]);
        check_effect(effects, "top_k", level, k_mean[k] - mean, &inside);
        snprintf(level, sizeof level, "%d", t.blocks[k]);
        check_effect(effects, "num_active_blocks", level, b_mean[k] - mean, &inside);
    }
    CHECK(inside >= 6);
    {
        double want = (cell[2][1][0] + cell[2][1][1]) / 2 - size_mean[2] - k_mean[1] + mean;
        uint32_t pair = find(effects, "name", "image size high x top_k 8", NULL, NULL);
        CHECK(want > 4 && holds(get(pair, "interval"), want));
    }
    for (uint32_t i = 0; i < count_of(get(set, "variance_shares")); i++) shares += number(get(vp_json_at(&json, get(set, "variance_shares"), i), "latency"));
    CHECK_INT(count_of(get(set, "variance_shares")), 7);
    CHECK_NEAR(shares, 1, 1e-9);

    check_case("curves have the slopes of the truth");
    curves = get(e1, "curves");
    CHECK_NEAR(number(get(find(curves, "name", "vision", NULL, NULL), "slope")), 10, 0.02);
    CHECK(holds(get(find(curves, "name", "vision", NULL, NULL), "slope_interval"), 10));
    CHECK_NEAR(number(get(find(curves, "name", "prefill", "of", "k4 b16"), "slope")), 0.05, 1e-4);
    CHECK_NEAR(number(get(find(curves, "name", "prefill", "of", "k4 b12"), "slope")), 0.0375, 1e-4);
    CHECK_INT(whole(get(find(curves, "name", "prefill", "of", "k4 b12"), "count")), 1200);

    check_case("roofs and bounds");
    CHECK_NEAR(number(get(e1, "peak_tflops")), 1, 1e-6);
    CHECK_NEAR(number(get(e1, "peak_gbs")), 2, 1.5); /* decode's 2, or prefill's 1e7 bytes in the shortest prefill */
    {
        uint32_t stages = get(configuration(get(e1, "configurations"), 2, 8, 16), "stages");
        CHECK(is_text(get(get(stages, "vit"), "bound"), "compute") && is_text(get(get(stages, "decode"), "bound"), "memory"));
        CHECK_NEAR(number(get(get(stages, "decode"), "gb_per_s")), 2, 1e-6);
    }
    CHECK_INT(run("report %%F/made --json --peak_tflops 100 --peak_gbs 1000"), 0);
    if (read_json(last.out)) {
        uint32_t stages = get(configuration(get(get(0, "e1_stage_decomposition"), "configurations"), 2, 8, 16), "stages");
        CHECK(is_text(get(get(stages, "vit"), "bound"), "launch") && is_text(get(get(stages, "decode"), "bound"), "launch"));
    }
}
/* the finding on a knob and accuracy: points from its lowest to its highest value, with their interval; 0 where no effect is claimed */
static int accuracy_finding(const char *knob, double points[3]) {
    const char *at = last.out ? strstr(last.out, knob) : NULL;
    for (; at; at = strstr(at + 1, knob))
        if (sscanf(at + strlen(knob), " changes accuracy by %lf points [%lf, %lf]", points, points + 1, points + 2) == 3) return 1;
    return 0;
}
static void test_findings(void) {
    truth t = truth_default();
    double p[3];
    check_case("what each knob does to accuracy");
    CHECK_INT(run("report %%F/made"), 0);
    if (CHECK(accuracy_finding("image size from low to high", p))) { CHECK_NEAR(p[0], 30, 3); CHECK(p[1] < 30 && 30 < p[2]); }
    if (CHECK(accuracy_finding("top_k from 4 to 8", p))) { CHECK_NEAR(p[0], 10, 3); CHECK(p[1] > 5 && p[1] < 10 && 10 < p[2] && p[2] < 15); }
    if (CHECK(accuracy_finding("blocks from 12 to 16", p))) { CHECK_NEAR(p[0], 2, 1.5); CHECK(p[1] > 0 && p[1] < 2 && 2 < p[2]); }
    check_case("no effect is claimed where the interval holds 0");
    t.block_skill = 0;
    write_sweep("flat", &t);
    CHECK_INT(run("report %%F/flat"), 0);
    CHECK(accuracy_finding("top_k from 4 to 8", p) && !accuracy_finding("blocks from 12 to 16", p));
    CHECK(last.out && strstr(last.out, "blocks from 12 to 16 shows no effect on accuracy: the interval of +0.00 points, [+0.00, +0.00], holds 0"));
}
static void test_front(void) {
    truth t = truth_default();
    uint32_t set, configs, c;
    int members = 0;
    check_case("the front is the truth's, with memberships");
    CHECK_INT(run("report %%F/made --json --latency total --percentile mean --resamples 500"), 0);
    if (!read_json(last.out)) return;
    set = vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0);
    configs = get(set, "configurations");
    for (int s = 0; s < 3; s++) for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) { /* here every knob costs and buys: what no other beats by the formulas */
        int on_front = 1;
        c = configuration(configs, s, t.top_k[k], t.blocks[b]);
        for (int i = 0; i < 12; i++)
            on_front &= !(true_mean(&t, i / 4, i / 2 % 2, i % 2) < true_mean(&t, s, k, b) && truth_skill(&t, i / 4, i / 2 % 2, i % 2) >= truth_skill(&t, s, k, b));
        CHECK(vp_json_equals(&json, get(c, "tier"), TIERS[s]));
        if (on_front) { members++; CHECK(number(get(c, "membership")) > 0.9); }
        else CHECK(number(get(c, "membership")) < 0.1);
        CHECK(holds(get(c, "latency_interval"), true_mean(&t, s, k, b)));
    }
    CHECK_INT(count_of(get(set, "front")), members);
    CHECK(members > 5 && count_of(get(set, "epsilon_front")) <= (uint32_t)members);
    check_case("two configurations of equal values are one point of the front");
    t.top_k[1] = 4; /* its file has another name below */
    t.size_count = 1;
    t.block_count = 1;
    t.top_k_count = 1;
    t.samples = 30;
    write_sweep("twice", &t);
    t.blocks[0] = 12;
    {
        char *text = check_read(in_folder("twice/made_imgsizetier-low_crops1_topk4_blocks12.json"), NULL), *at = text ? strstr(text, "\"num_active_blocks\": 12") : NULL;
        if (CHECK(at != NULL)) {
            memcpy(at, "\"num_active_blocks\": 13", 23);
            write_text(in_folder("twice/made_imgsizetier-low_crops1_topk4_blocks13.json"), text);
        }
        free(text);
    }
    CHECK_INT(run("report %%F/twice --json"), 0);
    if (!read_json(last.out)) return;
    set = vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0);
    CHECK_INT(count_of(get(set, "front")), 1);
    CHECK_INT(whole(get(vp_json_at(&json, get(set, "configurations"), 0), "equal_points")), 2);
}
static void test_warnings(void) {
    truth t = truth_default();
    check_case("what a reader must know stands first");
    t.samples = 20;
    t.size_count = 2;
    t.lost_share = 0.05;
    write_sweep("warned", &t);
    CHECK_INT(run("report %%F/warned"), 0);
    CHECK(strstr(last.out, "only 20 samples") && strstr(last.out, "less than 99 % of T_total in 8 of 8") && strstr(last.out, "P99 comes from"));
    CHECK(strstr(last.out, "Warnings") < strstr(last.out, "E1: latency"));
    check_case("samples that some configurations lack are left out of what is paired, and told");
    t.samples = 15;
    t.lost_share = 0;
    write_made("warned", &t, 1, 1, 1);
    t.samples = 5;
    write_made("warned", &t, 0, 0, 0);
    CHECK_INT(run("report %%F/warned --json"), 0);
    CHECK(strstr(last.out, "5 of 20 samples are not measured in all configurations") && strstr(last.out, "low k4 b12: 5 of 20 samples"));
    if (read_json(last.out)) CHECK_INT(whole(get(vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0), "num_samples")), 15);
    check_case("a corpus metric has no scores of samples");
    t = truth_default();
    t.samples = 20;
    t.is_corpus = 1;
    t.metric = "cider";
    write_sweep("corpus", &t);
    CHECK_INT(run("report %%F/corpus"), 0);
    CHECK(strstr(last.out, "the metric cider is one of the whole corpus") != NULL);
    CHECK_INT(run("best %%F/corpus --budget_ms 1000"), 0);
    check_case("two data sets are two fronts");
    t = truth_default();
    t.samples = 20;
    t.size_count = 1;
    write_sweep("sets", &t);
    t.task = "other";
    for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) write_made("sets", &t, 0, k, b);
    CHECK_INT(run("report %%F/sets"), 0);
    CHECK(strstr(last.out, "P50 of T_total, made, 20 samples") && strstr(last.out, "P50 of T_total, other, 20 samples"));
    CHECK(strstr(last.out, "\n  made: top_k from 4 to 8 changes mean T_total by") && strstr(last.out, "\n  other: blocks from 12 to 16 changes mean T_total by"));
    run("best %%F/sets --budget_ms 1000");
    check_refused(2, "--dataset_name");
    CHECK_INT(run("best %%F/sets --budget_ms 1000 --dataset_name other"), 0);
    run("best %%F/sets --budget_ms 1000 --dataset_name none");
    check_refused(2, "none");
}

static void test_forms(void) {
    static const char *const files[] = {"report.md", "report.csv", "e1_stage_decomposition.json", "e2_pareto_coupling.json"};
    int columns = 0;
    check_case("CSV: a head and a row a configuration, all as wide");
    CHECK_INT(run("report %%F/made --csv"), 0);
    CHECK_INT(lines_of(last.out), 13);
    for (char *line = strtok(last.out, "\n"); line; line = strtok(NULL, "\n")) {
        int commas = 0;
        for (char *p = line; *p; p++) commas += *p == ',';
        if (!columns) columns = commas;
        CHECK_INT(commas, columns);
    }
    CHECK(columns > 60);
    check_case("Markdown: rows of a table have the columns of its head");
    CHECK_INT(run("report %%F/made --markdown"), 0);
    columns = 0;
    for (char *line = strtok(last.out, "\n"); line; line = strtok(NULL, "\n")) {
        int bars = 0;
        for (char *p = line; *p; p++) bars += *p == '|';
        if (*line != '|') { columns = 0; CHECK(*line == '#' || *line == '-'); continue; }
        if (!columns) columns = bars;
        CHECK_INT(bars, columns);
    }
    check_case("a folder of all forms");
    CHECK_INT(run("report %%F/made --output_dir %%F/out/deep"), 0);
    CHECK_TEXT(last.out, "");
    for (int i = 0; i < 4; i++) {
        char path[100], *text;
        snprintf(path, sizeof path, "out/deep/%s", files[i]);
        text = check_read(in_folder(path), NULL);
        CHECK(text && strlen(text) > 1000);
        if (text && i > 1) read_json(text);
        free(text);
    }
    check_case("reports among results are passed over");
    CHECK_INT(run("report %%F/made --output_dir %%F/made"), 0);
    CHECK_INT(run("report %%F/made"), 0);
    CHECK(!strstr(last.out, "no result file"));
    run("report %%F/made/e2_pareto_coupling.json");
    check_refused(3, "is a report");
    check_case("exit codes of report");
    run("report %%F/made --csv --json");
    check_refused(2, "forms of one output");
    run("report %%F/made --latency nothing");
    check_refused(2, "total vision prefill decode ttft");
    run("report %%F/made --output_dir %%F/stderr/x");
    check_refused(5, "stderr");
    CHECK_INT(run("report %%F/made --latency vision --percentile 99"), 0);
    CHECK(strstr(last.out, "front of accuracy against P99 of T_vision_total") != NULL);
    check_case("the same input gives the same bytes");
    {
        char *before;
        run("report %%F/made --json");
        before = last.out;
        last.out = NULL;
        run("report %%F/made --json");
        CHECK_TEXT(last.out, before);
        free(before);
    }
}

static void test_best(void) {
    truth t = truth_default();
    double cost = true_mean(&t, 1, 1, 1);
    check_case("the best within a budget");
    CHECK_INT(run("best %%F/made --percentile mean --budget_ms %.3f --json", cost * 1.02), 0);
    if (read_json(last.out)) {
        uint32_t best = get(0, "best");
        CHECK(is_text(get(best, "tier"), "medium") && whole(get(best, "top_k")) == 8 && whole(get(best, "num_active_blocks")) == 16);
        CHECK(number(get(best, "probability_within_budget")) > 0.95);
        CHECK(number(get(best, "probability_best")) > 0.5);
        CHECK(is_text(get(best, "options"), "--model made --tier medium --top_k 8 --active_blocks 0,1,3 --max_new_tokens 8"));
        CHECK(get(0, "runner_up") != VP_JSON_NONE && is_text(get(get(0, "runner_up"), "tier"), "medium"));
        CHECK_INT(whole(get(0, "requests")), 800);
        CHECK(number(get(0, "requests_within_budget")) > 0.3 && number(get(0, "requests_within_budget")) < 0.9);
        CHECK(holds(get(0, "requests_within_budget_interval"), number(get(0, "requests_within_budget"))));
    }
    CHECK_INT(run("best %%F/made --budget_ms 1000000"), 0);
    CHECK(strstr(last.out, "high k8 b16: the best") && strstr(last.out, "100.0 % of 800 timed requests") && strstr(last.out, "vlmprof run IMAGE -p TEXT --model made"));
    check_case("none holds it: exit 1 and the fastest");
    run("best %%F/made --budget_ms 1");
    check_refused(1, "the fastest is low k4 b12");
    run("best %%F/made --budget_ms 1000 --min_accuracy 0.99");
    check_refused(1, "0.99");
    check_case("exit codes of best");
    run("best %%F/made");
    check_refused(2, "--budget_ms");
    run("best");
    check_refused(2, "folder");
    run("best %%F/made --budget_ms x");
    check_refused(2, "budget_ms");
    run("best %%F/none --budget_ms 1");
    check_refused(3, "none");
}

static const char *verdict_of(const char *of) { /* over all configurations */
    static char text[32];
    uint32_t rows = get(0, "comparisons");
    text[0] = 0;
    for (uint32_t i = 0; i < count_of(rows); i++) {
        uint32_t row = vp_json_at(&json, rows, i);
        if (is_text(get(row, "of"), of) && json.nodes[get(row, "configuration")].type == VP_JSON_NULL) vp_json_text(&json, get(row, "verdict"), text, sizeof text, NULL);
    }
    return text;
}
static void test_compare(void) {
    truth t = truth_default();
    check_case("A/A says SAME and exits 0");
    t.samples = 200;
    write_sweep("a", &t);
    t.noise_seed = 2;
    write_sweep("b", &t);
    CHECK_INT(run("compare %%F/a %%F/b --json"), 0);
    if (read_json(last.out)) {
        CHECK_TEXT(verdict_of("T_total"), "SAME");
        CHECK_TEXT(verdict_of("accuracy"), "SAME");
        CHECK_INT(count_of(get(0, "comparisons")), 13 * 7);
    }
    CHECK_INT(run("compare %%F/a %%F/a"), 0);
    check_case("a planted slow-down of 3 % exits 1, a gain of 3 % exits 0");
    t.noise_seed = 3;
    t.slower = 1.03;
    write_sweep("b", &t);
    CHECK_INT(run("compare %%F/a %%F/b --json"), 1);
    if (read_json(last.out)) {
        uint32_t row = vp_json_at(&json, get(0, "comparisons"), 0);
        CHECK_TEXT(verdict_of("T_total"), "SLOWER");
        CHECK_TEXT(verdict_of("T_LLM_prefill"), "SLOWER");
        CHECK_TEXT(verdict_of("accuracy"), "SAME");
        CHECK(holds(get(row, "difference_interval"), 0.03));
    }
    CHECK_INT(run("compare %%F/b %%F/a --json"), 0);
    if (read_json(last.out)) CHECK_TEXT(verdict_of("T_total"), "FASTER");
    check_case("a margin above the change says SAME");
    CHECK_INT(run("compare %%F/a %%F/b --json --margin 5"), 0);
    if (read_json(last.out)) CHECK_TEXT(verdict_of("T_total"), "SAME");
    check_case("accuracy that was lost exits 1, by McNemar's test where scores are 0 or 1");
    t.slower = 1;
    t.skill_less = 0.15;
    write_sweep("b", &t);
    CHECK_INT(run("compare %%F/a %%F/b --json"), 1);
    if (read_json(last.out)) {
        uint32_t rows = get(0, "comparisons"), row = vp_json_at(&json, rows, count_of(rows) - 1);
        CHECK_TEXT(verdict_of("accuracy"), "LOWER");
        CHECK(is_text(get(row, "of"), "accuracy") && is_text(get(row, "test"), "mcnemar"));
    }
    CHECK_INT(run("compare %%F/b %%F/a"), 0);
    CHECK(strstr(last.out, "HIGHER") && strstr(last.out, "not worse"));
}
static void test_not_comparable(void) {
    truth t = truth_default();
    check_case("what is not alike is refused, unless forced by name");
    t.samples = 20;
    t.size_count = 1;
    write_sweep("a", &t);
    t.device = "cuda:0: other";
    t.seed = 43;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b");
    check_refused(2, "device (cpu: test / cuda:0: other), seed (42 / 43); --force device seed");
    run("compare %%F/a %%F/b --force device");
    check_refused(2, "seed (42 / 43)");
    CHECK_INT(run("compare %%F/a %%F/b --force device seed"), 0);
    CHECK(strstr(last.out, "they differ in device") != NULL);
    CHECK_INT(run("compare %%F/a %%F/b --force all"), 0);
    run("compare %%F/a %%F/b --force seeds");
    check_refused(2, "\"seeds\" is none of");
    run("compare %%F/a/made_imgsizetier-low_crops1_topk4_blocks12.json %%F/a/made_imgsizetier-low_crops1_topk8_blocks12.json");
    check_refused(2, "configuration (low k4 b12 / low k8 b12)");
    CHECK_INT(run("compare %%F/a/made_imgsizetier-low_crops1_topk4_blocks12.json %%F/a/made_imgsizetier-low_crops1_topk8_blocks12.json --force configuration"), 1);
    check_case("nothing in common");
    t = truth_default();
    t.samples = 20;
    t.size_count = 1;
    t.first_id = 100;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b");
    check_refused(2, "fewer than 2 samples in common");
    t.task = "other";
    write_sweep("b", &t);
    run("compare %%F/a %%F/b");
    check_refused(2, "no configuration in common");
    check_case("exit codes of compare");
    run("compare %%F/a");
    check_refused(2, "two folders");
    run("compare %%F/a %%F/none");
    check_refused(3, "none");
    run("compare %%F/a %%F/a --margin 0");
    check_refused(2, "margin of 0");
    run("compare %%F/a %%F/a --effect 1");
    check_refused(2, "--effect");
}
/* The size that --plan names keeps its word: A/A is SAME, 3 % are found. */
static void test_plan(void) {
    truth t = truth_default();
    int needed = 0, same_count = 0, found = 0, tries = 20;
    check_case("the sample size that --plan names");
    t.size_count = t.block_count = 1;
    t.noise = 0.06;
    t.runs = 1;
    t.samples = 400;
    write_sweep("a", &t);
    t.noise_seed = 2;
    write_sweep("b", &t);
    run("compare %%F/a %%F/b --plan");
    CHECK(strstr(last.out, "samples that would do") != NULL);
    run("compare %%F/a %%F/b --json");
    if (!read_json(last.out)) return;
    needed = (int)whole(get(vp_json_at(&json, get(0, "comparisons"), 0), "samples_needed"));
    CHECK(needed > 50 && needed < 5000);
    t.samples = needed;
    for (int i = 0; i < tries; i++) {
        t.noise_seed = 10 + 3 * i;
        t.slower = 1;
        write_sweep("a", &t);
        t.noise_seed++;
        write_sweep("b", &t);
        run("compare %%F/a %%F/b --json");
        same_count += read_json(last.out) && !strcmp(verdict_of("T_total"), "SAME") && last.code == 0;
        t.noise_seed++;
        t.slower = 1.03;
        write_sweep("b", &t);
        run("compare %%F/a %%F/b --json");
        found += read_json(last.out) && !strcmp(verdict_of("T_total"), "SLOWER") && last.code == 1;
    }
    check_note(same_count >= tries - 1, __FILE__, __LINE__, "SAME in %d of %d A/A comparisons of %d samples", same_count, tries, needed);
    check_note(found >= tries - 1, __FILE__, __LINE__, "3 %% found in %d of %d comparisons of %d samples", found, tries, needed);
}
/* 336 configurations x 1,000 samples, about 1.1 GB of JSON; minutes of writing, so only when asked. Prints the figures. */
static void test_large(void) {
    truth t = truth_default();
    struct rusage usage;
    if (!getenv("REPORT_LARGE")) return;
    check_case("336 configurations x 1,000 samples");
    t.samples = 1000;
    t.runs = 3;
    t.details = 20;
    t.top_k_count = t.block_count = 9;
    for (int i = 0; i < 9; i++) { t.top_k[i] = 2 + i; t.blocks[i] = 8 + i; }
    t.size_count = 3; /* 243; the rest by more blocks */
    write_sweep("large", &t);
    for (int i = 0; i < 9; i++) t.blocks[i] = 17 + i;
    for (int i = 0, done = 0; i < 3 * 9 * 9 && done < 93; i++, done++) write_made("large", &t, i / 81, i / 9 % 9, i % 9);
    fflush(stdout);
    CHECK_INT(system("du -sm ${TMPDIR:-/tmp}/vlmprof-report-*/large | tail -n 1") != -1, 1);
    CHECK_INT(run("report %%F/large --output_dir %%F/large-report"), 0);
    for (int i = 0; i < 3; i++) {
        int64_t start = vp_clock_ns();
        CHECK_INT(run("report %%F/large --json"), 0);
        getrusage(RUSAGE_CHILDREN, &usage);
        printf("report of 336 x 1,000: %.2f s, at most %.0f MB\n", (double)(vp_clock_ns() - start) / 1e9, (double)usage.ru_maxrss / 1e3);
    }
}

int main(void) {
    if (!program_begin("report")) return 1;
    test_foreign();
    test_damaged();
    test_truth();
    test_parts();
    test_findings();
    test_front();
    test_warnings();
    test_forms();
    test_best();
    test_compare();
    test_not_comparable();
    test_plan();
    test_large();
    program_end();
    free(json_nodes);
    return check_done("test_report");
}
