/* bench_gpu.c - the real model's shape with random weights on a GPU: ceilings, vision of 3, 7 and 13 passes, prefill of 482, 1058 and 1922 tokens,
 * decode for top_k 4, 8, 12 and 12, 14, 16 blocks; what the floor is, what was measured, the ratio; what timing by stages costs; launches of a decode
 * step; where a request's time goes, kernel by kernel; the largest shapes once more with each word of --gpu and with integer weights of blocks and head.
 * A table on stdout, all of it as JSON in a file.
 *
 *   bench_gpu OUT.json COMMIT DATE [tiny]     tiny: the small model and few runs, to try the program itself on any device
 *
 * Floor: FLOPs over the measured rate of bf16 products, or bytes over the measured rate of reading, whichever is longer, in turn for what cannot
 * overlap (dense part, experts, head). What must be read: weights once, of experts those that uniformly drawn tokens hit, and the cache.
 * Measured: the median of some runs by the device's clock, timing by stages. links: engine */
#include "vlmprof.h"
#include "vlmprof_stages.h"
#include "vlmprof_engine.h"
#include <math.h>
#include <string.h>

#include <stdio.h>
#include <stdlib.h>

enum { RUNS_MAX = 31, STEPS = 48, LAUNCHES_MAX = 1 << 17, NAMES_MAX = 64 };
typedef struct bench {
    vp_model_config config;
    vp_engine *engine;
    vp_ceilings ceilings;
    FILE *json;
    float *pixels, *masks;
    int32_t *ids, *index;
    vp_launch *launches;
    int runs, steps, max_views, max_sequence, failed, entries; /* entries: of the JSON list that is open */
    double weight_bytes; /* of a weight of the language model's linears */
    const char *way;     /* what is before a shape */
} bench;

static int compare_times(const void *a, const void *b) { return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b); }
static int64_t median(int64_t *ns, int count) {
    qsort(ns, (size_t)count, sizeof *ns, compare_times);
    return ns[count / 2];
}
static double longer(double flops, double bytes, const vp_ceilings *c) {
    double compute = flops / c->flops_per_s, read = bytes / c->bytes_per_s;
    return 1e3 * (compute > read ? compute : read);
}

/* ------------------------------------------------------------------------------------------------------------- floors, in ms */
static double floor_vision(const vp_model_config *c, int views, const vp_ceilings *at) {
    double t = c->vit_positions, w = c->vit_width, f = c->vit_mlp_dim, layers = c->vit_blocks_needed, patches = t - 1,
           values = (double)c->geometry.patch_px * c->geometry.patch_px * 3, weights = layers * (4 * w * w + 2 * w * f) + values * w;
    return longer(views * (2 * t * layers * (4 * w * w + 2 * w * f) + 2 * patches * values * w + 4 * layers * t * t * w), 2 * weights, at);
}
static double floor_prefill(const vp_model_config *c, double tokens, double k, double blocks, double bytes, const vp_ceilings *at) {
    double d = c->d_model, h = c->expert_dim, e = c->expert_count, hit = e * (1.0 - pow(1.0 - k / e, tokens)), dense = 4 * d * d + e * d;
    return longer(blocks * (2 * tokens * dense + 2 * tokens * tokens * d), blocks * (bytes * dense + 4 * tokens * d), at) +
           longer(blocks * tokens * k * 6 * d * h, blocks * hit * 3 * bytes * d * h, at);
}
static double floor_decode(const vp_model_config *c, double position, double k, double blocks, double bytes, const vp_ceilings *at) {
    double d = c->d_model, h = c->expert_dim, e = c->expert_count, weights = blocks * (4 * d * d + e * d + k * 3 * d * h) + c->embedding_size * d;
    return longer(2 * weights + blocks * 4 * position * d, bytes * weights + blocks * 4 * position * d, at);
}

/* ---------------------------------------------------------------------------------------------------------------- requests */
static vp_request request_of(const bench *b, int tokens, int views, int k, int block_count, const int32_t *blocks, int new_tokens, vp_timing timing) {
    vp_request r;
    memset(&r, 0, sizeof r);
    r.input_ids = b->ids; r.input_count = tokens;
    r.views = views;
    if (views) { r.pixels = b->pixels; r.image_masks = b->masks; r.image_input_idx = b->index; }
    r.top_k = k; r.active_blocks = blocks; r.active_block_count = block_count;
    r.max_new_tokens = new_tokens; r.ignore_eos = 1; r.eos_id = -1;
    r.timing = timing;
    return r;
}
/* first and last blocks stay; the number in between is what a sweep chooses too */
static void choose_blocks(const bench *b, int count, int32_t *blocks) {
    for (int i = 0; i < count; i++) blocks[i] = i + 1 < count ? i : b->config.block_count - 1;
}
static int run(bench *b, const vp_request *r, vp_reply *reply) {
    static int32_t tokens[STEPS + 1];
    static int64_t step_ns[STEPS + 1];
    vp_error error = { VP_OK, -1, "", "" };
    memset(reply, 0, sizeof *reply);
    reply->tokens = tokens;
    reply->step_ns = step_ns;
    if (vp_engine_run(b->engine, r, reply, &error) == VP_OK) return 1;
    fprintf(stderr, "bench_gpu: %s: %s\n", error.where, error.text);
    b->failed = 1;
    return 0;
}
static void open_list(bench *b, const char *name) {
    fprintf(b->json, "%s\n  \"%s\": [", b->entries ? "," : "", name);
    b->entries = 0;
}
static void close_list(bench *b) {
    fprintf(b->json, "\n  ]");
    b->entries = 1; /* the object goes on with a comma */
}
static void result(bench *b, const char *what, const char *shape, double floor_ms, double ms, int64_t launches) {
    printf("%-9s %-46s %10.4f %10.4f %7.2f %8lld\n", what, shape, floor_ms, ms, ms / floor_ms, (long long)launches);
    fflush(stdout);
    fprintf(b->json, "%s\n    {\"shape\": \"%s\", \"floor_ms\": %.9f, \"measured_ms\": %.6f, \"ratio\": %.4f, \"launches\": %lld}", b->entries ? "," : "", shape,
            floor_ms, ms, ms / floor_ms, (long long)launches);
    b->entries++;
}
static void vision(bench *b, int views) {
    int64_t ns[RUNS_MAX];
    char shape[64];
    int32_t blocks[1] = { 0 };
    vp_request r = request_of(b, b->max_views * vp_geometry_tokens_per_crop(&b->config.geometry), views, 1, 1, blocks, 1, VP_TIMING_STAGE);
    vp_reply reply;
    if (r.input_count > b->config.max_positions) r.input_count = b->config.max_positions;
    for (int i = -1; i < b->runs; i++) {
        if (!run(b, &r, &reply)) return;
        if (i >= 0) ns[i] = reply.times.device_ns[VP_STAGE_VIT];
    }
    snprintf(shape, sizeof shape, "%s%d passes", b->way, views);
    result(b, "vision", shape, floor_vision(&b->config, views, &b->ceilings), (double)median(ns, b->runs) * 1e-6, reply.times.launches[VP_STAGE_VIT]);
}
static void prefill(bench *b, int tokens, int k) {
    int64_t ns[RUNS_MAX];
    char shape[64];
    int32_t blocks[256];
    int count = b->config.block_count;
    vp_request r;
    vp_reply reply;
    choose_blocks(b, count, blocks);
    r = request_of(b, tokens, 0, k, count, blocks, 1, VP_TIMING_STAGE);
    for (int i = -1; i < b->runs; i++) {
        if (!run(b, &r, &reply)) return;
        if (i >= 0) ns[i] = reply.times.device_ns[VP_STAGE_PREFILL];
    }
    snprintf(shape, sizeof shape, "%s%d tokens, top_k %d, %d blocks", b->way, tokens, k, count);
    result(b, "prefill", shape, floor_prefill(&b->config, tokens, k, count, b->weight_bytes, &b->ceilings), (double)median(ns, b->runs) * 1e-6,
           reply.times.launches[VP_STAGE_PREFILL]);
}
static void decode(bench *b, int tokens, int k, int count) {
    int64_t ns[RUNS_MAX * STEPS], launches;
    char shape[64];
    int32_t blocks[256];
    int at = 0;
    vp_request r;
    vp_reply reply;
    choose_blocks(b, count, blocks);
    r = request_of(b, tokens, 0, k, count, blocks, b->steps + 1, VP_TIMING_STAGE);
    for (int i = -1; i < (b->runs + 2) / 3; i++) {
        if (!run(b, &r, &reply)) return;
        for (int s = 2; s < b->steps && i >= 0; s++) ns[at++] = reply.step_ns[s]; /* a graph's first steps are longer */
    }
    launches = reply.times.launches[VP_STAGE_DECODE] / b->steps;
    snprintf(shape, sizeof shape, "%safter %d, top_k %d, %d blocks", b->way, tokens, k, count);
    result(b, "decode", shape, floor_decode(&b->config, tokens + b->steps / 2, k, count, b->weight_bytes, &b->ceilings), (double)median(ns, at) * 1e-6, launches);
}
/* whole requests by the host's clock, timing by stages and off in turn */
static void stage_cost(bench *b, int tokens, int k) {
    int64_t ns[2][RUNS_MAX], stamps = 0;
    int32_t blocks[256];
    int count = b->config.block_count;
    double off, on, stamp_ns;
    vp_reply reply;
    choose_blocks(b, count, blocks);
    for (int i = -2; i < 2 * b->runs; i++) {
        vp_request r = request_of(b, tokens, b->max_views < 3 ? b->max_views : 3, k, count, blocks, b->steps + 1, i & 1 ? VP_TIMING_STAGE : VP_TIMING_OFF);
        int64_t since = vp_clock_ns();
        if (!run(b, &r, &reply)) return;
        if (i >= 0) ns[i & 1][i / 2] = vp_clock_ns() - since;
        if (i & 1) stamps = reply.times.stamps;
    }
    off = (double)median(ns[0], b->runs) * 1e-6;
    on = (double)median(ns[1], b->runs) * 1e-6;
    stamp_ns = (double)vp_engine_stamp_cost_ns(b->engine);
    printf("stage mode: %.3f ms a request with it, %.3f without (%+.2f %%); %lld stamps of %.0f ns: %.3f %% of the request\n", on, off,
           (on / off - 1.0) * 100.0, (long long)stamps, stamp_ns, (double)stamps * stamp_ns * 1e-6 / off * 100.0);
    fprintf(b->json, ",\n  \"stage_mode\": {\"on_ms\": %.6f, \"off_ms\": %.6f, \"stamps\": %lld, \"stamp_ns\": %.1f}", on, off, (long long)stamps, stamp_ns);
}
/* one request timed launch by launch, added up by stage and name */
static void kernels(bench *b, int tokens, int views, int k) {
    static struct { const char *name; int32_t stage; int64_t calls, ns; double flops, bytes; } row[NAMES_MAX];
    int count = b->config.block_count, rows = 0;
    int32_t blocks[256];
    vp_request r;
    vp_reply reply;
    choose_blocks(b, count, blocks);
    r = request_of(b, tokens, views, k, count, blocks, 5, VP_TIMING_KERNEL);
    r.launches = b->launches;
    r.launch_capacity = LAUNCHES_MAX;
    for (int i = 0; i < 2; i++) if (!run(b, &r, &reply)) return;
    for (int64_t i = 0; i < reply.launch_count && i < LAUNCHES_MAX; i++) {
        const vp_launch *l = &b->launches[i];
        int at = 0;
        while (at < rows && (row[at].stage != l->stage || strcmp(row[at].name, l->name))) at++;
        if (at == NAMES_MAX) continue;
        if (at == rows) { memset(&row[rows], 0, sizeof row[0]); row[rows].name = l->name; row[rows++].stage = l->stage; }
        row[at].calls++;
        row[at].ns += l->ns;
        row[at].flops += (double)l->flops;
        row[at].bytes += (double)l->bytes;
    }
    printf("one request, %d passes, %d tokens, top_k %d, 4 decode steps:\n%-10s %-24s %7s %10s %9s %9s\n", views, tokens, k, "stage", "launch", "calls", "ms",
           "TFLOP/s", "GB/s");
    open_list(b, "launches");
    for (int i = 0; i < rows; i++) {
        double ms = (double)row[i].ns * 1e-6;
        printf("%-10s %-24s %7lld %10.4f %9.1f %9.1f\n", vp_stage_name((vp_stage)row[i].stage), row[i].name, (long long)row[i].calls, ms,
               row[i].flops / ms * 1e-9, row[i].bytes / ms * 1e-6);
        fprintf(b->json, "%s\n    {\"stage\": \"%s\", \"launch\": \"%s\", \"calls\": %lld, \"ms\": %.6f, \"flops\": %.0f, \"bytes\": %.0f}", i ? "," : "",
                vp_stage_name((vp_stage)row[i].stage), row[i].name, (long long)row[i].calls, ms, row[i].flops, row[i].bytes);
    }
    close_list(b);
}

/* --------------------------------------------------------------------------------------------------------------------- frame */
/* by the words of --gpu, and with weights of that precision in blocks and head; 0: said on stderr */
static int open_engine(bench *b, uint32_t gpu, vp_weights weights) {
    vp_engine_options options = vp_engine_options_default();
    vp_error error = { VP_OK, -1, "", "" };
    options.config = &b->config;
    options.device = "cuda";
    options.gpu = gpu;
    options.weights = options.head_weights = weights;
    options.max_sequence = b->max_sequence;
    options.max_views = b->max_views;
    b->weight_bytes = weights == VP_WEIGHTS_INT8 ? 8.5 / 8 : weights == VP_WEIGHTS_INT4 ? 4.5 / 8 : 2.0;
    if (vp_engine_open(&options, &b->engine, &error) == VP_OK) return 1;
    fprintf(stderr, "bench_gpu: %s: %s\n", error.where, error.text);
    return 0;
}
static int open_bench(bench *b, int tiny) {
    vp_error error = { VP_OK, -1, "", "" };
    size_t patches, values;
    if (vp_model_config_preset(tiny ? "tiny" : "molmoe-1b", &b->config) != VP_OK) return 0;
    b->runs = tiny ? 1 : 15;
    b->steps = tiny ? 4 : STEPS;
    b->max_views = tiny ? 1 : 13;
    patches = (size_t)b->config.vit_positions - 1;
    values = patches * (size_t)(b->config.geometry.patch_px * b->config.geometry.patch_px * 3);
    b->max_sequence = tiny ? 256 : 2048;
    b->way = "";
    b->pixels = (float *)malloc((size_t)b->max_views * values * sizeof(float));
    b->masks = (float *)malloc((size_t)b->max_views * patches * sizeof(float));
    b->ids = (int32_t *)malloc((size_t)b->max_sequence * sizeof(int32_t));
    b->index = (int32_t *)malloc((size_t)b->max_views * patches * sizeof(int32_t));
    b->launches = (vp_launch *)malloc(LAUNCHES_MAX * sizeof *b->launches);
    if (!b->pixels || !b->masks || !b->ids || !b->index || !b->launches) { fprintf(stderr, "bench_gpu: no memory\n"); return 0; }
    for (size_t i = 0; i < (size_t)b->max_views * values; i++) b->pixels[i] = (float)((i * 2654435761u >> 8) % 1999) / 1000.0f - 0.9995f;
    for (size_t i = 0; i < (size_t)b->max_views * patches; i++) b->masks[i] = 1.0f;
    for (int i = 0; i < b->max_sequence; i++) b->ids[i] = (int32_t)((unsigned)i * 2654435761u % (unsigned)b->config.vocab_size);
    /* features of views go nowhere: of the text it is only the length that counts here */
    for (size_t i = 0; i < (size_t)b->max_views * patches; i++) b->index[i] = -100;
    if (!open_engine(b, 0, VP_WEIGHTS_BF16)) return 0;
    if (vp_engine_ceilings(b->engine, &b->ceilings, &error) == VP_OK) return 1;
    fprintf(stderr, "bench_gpu: %s: %s\n", error.where, error.text);
    return 0;
}
static void text(FILE *f, const char *name, const char *value) {
    fprintf(f, ",\n  \"%s\": \"", name);
    for (; *value; value++) if (*value != '"' && *value != '\\' && (unsigned char)*value >= ' ') fputc(*value, f);
    fputc('"', f);
}
static void number(FILE *f, const char *name, double value) {
    if (isnan(value)) fprintf(f, ",\n  \"%s\": null", name);
    else fprintf(f, ",\n  \"%s\": %.10g", name, value);
}
static void machine(bench *b, const char *when) { /* clocks before and after the measurements */
    vp_telemetry t;
    vp_error error;
    char name[48];
    if (vp_device_telemetry(0, &t, &error) != VP_OK) { printf("telemetry: %s\n", error.text); return; }
    printf("%s: SM %.0f of %.0f MHz, memory %.0f MHz, %.0f of %.0f W, %.0f C\n", when, t.sm_clock_mhz, t.sm_clock_max_mhz, t.memory_clock_mhz, t.power_w,
           t.power_limit_w, t.temperature_c);
    snprintf(name, sizeof name, "sm_clock_mhz_%s", when); number(b->json, name, t.sm_clock_mhz);
    snprintf(name, sizeof name, "memory_clock_mhz_%s", when); number(b->json, name, t.memory_clock_mhz);
    snprintf(name, sizeof name, "power_w_%s", when); number(b->json, name, t.power_w);
    snprintf(name, sizeof name, "throttle_reasons_%s", when); number(b->json, name, t.has_throttle_reasons ? (double)t.throttle_reasons : (double)NAN);
}
static void measure(bench *b, int tiny) {
    static const int views[3] = { 3, 7, 13 }, tokens[3] = { 482, 1058, 1922 }, ks[3] = { 4, 8, 12 }, blocks[3] = { 12, 14, 16 };
    printf("%-9s %-46s %10s %10s %7s %8s\n", "", "", "floor ms", "measured", "ratio", "launches");
    b->entries = 1;
    open_list(b, "vision");
    for (int i = 0; i < (tiny ? 1 : 3); i++) vision(b, tiny ? 1 : views[i]);
    close_list(b);
    open_list(b, "prefill");
    for (int i = 0; i < (tiny ? 2 : 9); i++) prefill(b, tiny ? 20 + 20 * i : tokens[i / 3], tiny ? 2 : ks[i % 3]);
    close_list(b);
    open_list(b, "decode");
    for (int i = 0; i < (tiny ? 2 : 9); i++) decode(b, tiny ? 20 : tokens[0], tiny ? 1 + i : ks[i / 3], tiny ? 2 : blocks[i % 3]);
    for (int i = 0; i < 2 && !tiny; i++) decode(b, tokens[1 + i], 8, 16);
    close_list(b);
    stage_cost(b, tiny ? 20 : tokens[0], tiny ? 2 : 8);
    kernels(b, tiny ? 20 : tokens[2], tiny ? 1 : 13, tiny ? 2 : 8);
}
/* the largest shapes with other switches, each in its own engine; first once more unchanged, because the card is warmer now */
static void measure_ways(bench *b, int tiny) {
    static const struct { const char *name; uint32_t gpu; vp_weights weights; } ways[] = {
        { "default: ", 0, VP_WEIGHTS_BF16 }, { "tuned: ", VP_GPU_TUNED, VP_WEIGHTS_BF16 }, { "wgmma: ", VP_GPU_WGMMA, VP_WEIGHTS_BF16 },
        { "clusters: ", VP_GPU_CLUSTERS, VP_WEIGHTS_BF16 }, { "dependent: ", VP_GPU_DEPENDENT, VP_WEIGHTS_BF16 },
        { "persistent: ", VP_GPU_PERSISTENT, VP_WEIGHTS_BF16 }, { "int8: ", 0, VP_WEIGHTS_INT8 }, { "int4: ", 0, VP_WEIGHTS_INT4 } };
    open_list(b, "ways");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        vp_engine_close(b->engine);
        b->engine = NULL;
        if (!open_engine(b, ways[i].gpu, ways[i].weights)) { b->failed = 1; break; }
        b->way = ways[i].name;
        if (vp_engine_device_note(b->engine)[0]) printf("%s%s\n", b->way, vp_engine_device_note(b->engine));
        if (ways[i].weights == VP_WEIGHTS_BF16) vision(b, b->max_views);
        prefill(b, tiny ? 20 : 1922, tiny ? 2 : 8);
        decode(b, tiny ? 20 : 1922, tiny ? 2 : 8, b->config.block_count);
    }
    close_list(b);
}
int main(int argc, char **argv) {
    static bench b;
    vp_device_info info;
    vp_error error;
    int tiny = argc == 5 && !strcmp(argv[4], "tiny");
    if (argc < 4 || argc > 5 || (argc == 5 && !tiny)) { fprintf(stderr, "bench_gpu OUT.json COMMIT DATE [tiny]\n"); return 2; }
    if (vp_device_describe(0, &info, &error) != VP_OK) { fprintf(stderr, "bench_gpu: %s: %s\n", error.where, error.text); return 4; }
    if (!open_bench(&b, tiny)) return 4;
    b.json = fopen(argv[1], "w");
    if (!b.json) { fprintf(stderr, "bench_gpu: %s cannot be written\n", argv[1]); return 5; }
    printf("%s, driver's CUDA %d, built with %d, %s\n", vp_engine_device(b.engine), (int)info.driver_version, (int)vp_device_toolkit(), vp_engine_gemm(b.engine, 577));
    if (vp_engine_device_note(b.engine)[0]) printf("note: %s\n", vp_engine_device_note(b.engine));
    printf("ceilings: reading %.0f GB/s, copying %.0f GB/s (read + written), bf16 products %.1f TFLOP/s (n = %d)\n", b.ceilings.bytes_per_s * 1e-9,
           b.ceilings.copy_bytes_per_s * 1e-9, b.ceilings.flops_per_s * 1e-12, (int)b.ceilings.product_size);
    fprintf(b.json, "{\n  \"schema\": \"vlmprof-bench-gpu-1\"");
    text(b.json, "model", tiny ? "tiny" : "molmoe-1b");
    text(b.json, "commit", argv[2]);
    text(b.json, "date", argv[3]);
    text(b.json, "device", vp_engine_device(b.engine));
    text(b.json, "device_note", vp_engine_device_note(b.engine));
    text(b.json, "gemm", vp_engine_gemm(b.engine, 577));
    number(b.json, "driver_cuda_version", info.driver_version);
    number(b.json, "toolkit_version", vp_device_toolkit());
    number(b.json, "read_bytes_per_s", b.ceilings.bytes_per_s);
    number(b.json, "copy_bytes_per_s", b.ceilings.copy_bytes_per_s); /* read + written */
    number(b.json, "bf16_flops_per_s", b.ceilings.flops_per_s);
    machine(&b, "before");
    measure(&b, tiny);
    measure_ways(&b, tiny);
    machine(&b, "after");
    fprintf(b.json, "\n}\n");
    if (fclose(b.json)) { fprintf(stderr, "bench_gpu: %s cannot be written\n", argv[1]); return 5; }
    vp_engine_close(b.engine);
    free(b.pixels); free(b.masks); free(b.ids); free(b.index); free(b.launches);
    return b.failed;
}
