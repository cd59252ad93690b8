/* made_results.h: result files with a known truth, written by a test: the configurations on the front, the effect of each knob, the slow-down of a build; and a reader of
 * the program's output. A test includes it after vlmprof.h, check.h and program.h. */
#ifndef MADE_RESULTS_H
#define MADE_RESULTS_H
#include "vlmprof_json.h"

/* ---- the experiments' own files: no schema, per token divided by the tokens, rows in any order */
static inline void write_foreign(const char *path, const char *stats, const char *rows) {
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

/* ---- sweeps with known answers: latency is a sum of costs of a sample and of the knobs, times noise; a configuration answers a sample correctly if the sample's
 * difficulty, the same for all, is below the configuration's skill */
enum { TIERS_IN = 3, LEVELS = 9 };
static const char *const TIERS[TIERS_IN] = {"low", "medium", "high"};
typedef struct truth {
    const char *task, *device, *metric, *weights;
    const char *more; /* members of the file's config, each with a comma before it; or NULL */
    int size_count, top_k_count, block_count, top_k[LEVELS], blocks[LEVELS];
    int samples, runs, seed, noise_seed, first_id;
    int busy_blocks;    /* of 20 blocks of runs, those with other processes that took half of the CPUs */
    double noise;       /* relative, of a run */
    double slower;      /* factor of every time */
    double skill_less;  /* of all configurations' skill */
    double block_skill; /* what a level of blocks adds to it */
    double lost_share;  /* of T_total in no stage */
    double sending;     /* the host's time for a decode stage, as a share of the stage; 0: 1 ms */
    int is_corpus, details, parts; /* parts: kernels were timed one by one */
} truth;
static inline truth truth_of(int samples, int size_count) {
    return (truth){.task = "made", .device = "cpu: test", .metric = "vqa_seed", .weights = "bf16", .size_count = size_count, .top_k_count = 2, .block_count = 2,
                   .top_k = {4, 8}, .blocks = {12, 16}, .samples = samples, .runs = 2, .seed = 42, .noise_seed = 1, .noise = 0.01, .slower = 1, .block_skill = 0.02};
}
static inline double uniform(vp_random *r) { return vp_random_double(r); }
static inline double normal(vp_random *r) { /* twelve uniform numbers: close enough to normal, and equal on all machines */
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform(r);
    return sum;
}
/* ms: 10 a view, 0.05 a token of prefill times blocks / 16, 2 a step times top_k / 8; the highest tier with the larger top_k costs 30 more */
static inline double truth_vision(int views) { return 10.0 * views; }
static inline double truth_prefill(int sequence, int blocks) { return 0.05 * sequence * blocks / 16; }
static inline double truth_decode(int steps, int top_k) { return 2.0 * steps * top_k / 8; }
static inline double truth_skill(const truth *t, int size, int k, int b) {
    return 0.4 + 0.15 * size + 0.1 * k / (t->top_k_count > 1 ? t->top_k_count - 1 : 1) + t->block_skill * b;
}

static inline void write_times(FILE *f, const truth *t, const double *ms, double total) { /* vision, prefill, decode, interaction */
    fprintf(f, "\"T_vision_total\": %.6f, \"T_LLM_prefill\": %.6f, \"T_LLM_decode\": %.6f, \"T_total\": %.6f, \"T_decode_per_token\": %.6f, \"TTFT\": %.6f, "
            "\"unaccounted\": %.6f, \"closure\": %.6f, "
            "\"stages\": {\"preprocess\": %.6f, \"h2d\": null, \"vit\": %.6f, \"prefill\": %.6f, \"decode\": %.6f}",
            ms[0], ms[1], ms[2], total, ms[2] / 7, ms[0] + ms[1] + ms[3], total * t->lost_share, 1 - t->lost_share, ms[3], ms[0], ms[1], ms[2]);
    fprintf(f, ", \"stage_detail\": {\"vit\": {\"wall_ms\": %.6f, \"device_ms\": %.6f, \"launches\": 100.0, \"flops\": %.1f, \"bytes\": 1e6}, "
            "\"prefill\": {\"wall_ms\": %.6f, "
            "\"flops\": %.1f, \"bytes\": 1e7}, \"decode\": {\"wall_ms\": %.6f, \"launches\": 7, \"flops\": 1e6, \"bytes\": %.1f}}",
            ms[0], ms[0], 1e9 * ms[0], ms[1], 5e8 * ms[1], t->sending > 0 ? t->sending * ms[2] : 1.0, 2e6 * ms[2]);
    for (int i = 0; i < t->details; i++) /* as many bytes as a real row has */
        fprintf(f, ", \"detail_%d\": {\"wall_ms\": 26.26995, \"device_ms\": null, \"launches\": 340.0, \"flops\": 6444752800.0, \"bytes\": 141222400.0}", i);
}
static inline void write_made(const char *name, const truth *t, int size, int k, int b) {
    vp_random samples, noise;
    char path[512];
    snprintf(path, sizeof path, "%s/%s_imgsizetier-%s_crops%d_topk%d_blocks%d.json", in_folder(name), t->task, TIERS[size], 1 + 4 * size, t->top_k[k], t->blocks[b]);
    FILE *f = fopen(path, "wb");
    if (!CHECK(f != NULL)) return;
    vp_random_seed(&samples, 7);
    vp_random_seed(&noise, (uint32_t)(t->noise_seed * 100000 + size * 10000 + k * 100 + b));
    fprintf(f, "{\n \"schema\": \"vlmprof-sweep-2\", \"plan\": \"00\", \"status\": \"complete\", \"num_failed\": 0, \"num_missing\": 0, \"num_runs_per_sample\": %d,\n"
            " \"timing\": \"stage\", \"synthetic\": false, \"model\": \"made\", \"dataset_name\": \"%s\", \"data\": \"made.jsonl\", \"data_hash\": \"77\",\n"
            " \"max_new_tokens\": 8, \"tier\": \"%s\", \"target_vision_tokens\": null,"
            " \"top_k\": %d, \"num_active_blocks\": %d, \"num_total_blocks\": 16,\n"
            " \"active_block_indices\": [0, 1, 3], \"accuracy\": %.3f, \"accuracy_metric\": \"%s\", \"num_throttled_runs\": 0,\n"
            " \"provenance\": {\"device\": \"%s\", \"host\": \"h\", \"version\": \"0.1.0\"}, \"config\": {\"seed\": %d, \"weights\": \"%s\"%s},\n",
            t->runs, t->task, TIERS[size], t->top_k[k], t->blocks[b], truth_skill(t, size, k, b), t->metric, t->device, t->seed, t->weights, t->more ? t->more : "");
    if (t->parts) /* two shapes: of 10 + 30 ms of prefill 6 + 14 are experts', 4 idle; decode has no more than the sum, as older files */
        fprintf(f, " \"kernel_pass\": [{\"stages\": {\"prefill\": {\"device_ms\": 10.0, \"kernel_ms\": 9.0, \"idle_share\": 0.1, "
                "\"parts\": {\"experts\": 6.0, \"attention\": 3.0}}}}, {\"stages\": {\"prefill\": {\"device_ms\": 30.0, \"kernel_ms\": 27.0, "
                "\"idle_share\": 0.1, \"parts\": {\"experts\": 14.0, \"attention\": 5.0, \"router\": 8.0, \"dense\": 1e9, \"unknown\": 1}}, "
                "\"decode\": {\"device_ms\": 4.0, \"kernel_ms\": 3.0, \"idle_share\": 0.25}}}],\n");
    if (t->busy_blocks)
        fprintf(f, " \"noise\": {\"samples\": 20, \"other_samples\": 20, \"other_cpu_percent\": 25.0, \"busy_samples\": %d, \"busy_percent\": 50.0},\n", t->busy_blocks);
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
        int right = hard < truth_skill(t, size, k, b) - t->skill_less;
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
static inline void write_sweep(const char *name, const truth *t) {
    make_empty(in_folder(name));
    for (int size = 0; size < t->size_count; size++)
        for (int k = 0; k < t->top_k_count; k++)
            for (int b = 0; b < t->block_count; b++) write_made(name, t, size, k, b);
}

/* ---- reading what the program printed */
static vp_json json;
static vp_json_node *json_nodes;
static inline int read_json(const char *text) {
    size_t needed = 0;
    free(json_nodes);
    json_nodes = NULL;
    if (vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL) != VP_ERR_CAPACITY) return CHECK(!"the output is JSON");
    json_nodes = (vp_json_node *)malloc(needed * sizeof *json_nodes);
    return json_nodes && CHECK_INT(vp_json_parse(text, strlen(text), json_nodes, needed, &json, NULL, NULL), VP_OK);
}
/* a run with this exit code that prints a document, in `json`: if (RUNS_JSON(0, "best --json")) */
#define RUNS_JSON(code, ...) (CHECK_INT(run(__VA_ARGS__), code), read_json(last.out))
static inline uint32_t get(uint32_t node, const char *key) { return vp_json_get(&json, node, key); }
static inline double number(uint32_t node) {
    double value;
    return vp_json_to_double(&json, node, &value) == VP_OK ? value : (double)NAN;
}
static inline int64_t whole(uint32_t node) {
    int64_t value;
    return vp_json_to_int(&json, node, &value) == VP_OK ? value : -1;
}
static inline int is_text(uint32_t node, const char *text) { return vp_json_equals(&json, node, text); }
static inline uint32_t count_of(uint32_t node) { return node == VP_JSON_NONE ? 0 : json.nodes[node].count; }
/* 1 when an interval contains a value */
static inline int holds(uint32_t interval, double value) {
    return number(vp_json_at(&json, interval, 0)) <= value && value <= number(vp_json_at(&json, interval, 1));
}
/* the element of an array whose members have these values; keys and values alternate, NULL ends the list */
static inline uint32_t find(uint32_t array, const char *key, const char *value, const char *key2, const char *value2) {
    for (uint32_t i = 0; i < count_of(array); i++) {
        uint32_t item = vp_json_at(&json, array, i);
        if (is_text(get(item, key), value) && (!key2 || is_text(get(item, key2), value2))) return item;
    }
    return VP_JSON_NONE;
}
static inline uint32_t configuration(uint32_t array, int size, int top_k, int blocks) {
    for (uint32_t i = 0; i < count_of(array); i++) {
        uint32_t item = vp_json_at(&json, array, i);
        if (is_text(get(item, "tier"), TIERS[size]) && whole(get(item, "top_k")) == top_k && whole(get(item, "num_active_blocks")) == blocks) return item;
    }
    return VP_JSON_NONE;
}

/* a configuration's value by the generator's formulas: the mean over its samples */
static inline double true_mean(const truth *t, int size, int k, int b) {
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
#endif
