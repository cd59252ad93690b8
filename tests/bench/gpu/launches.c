/* launches.c - what a GPU would be sent for the real model in bf16, without a GPU: kernel, threads a block, dynamic shared memory, blocks and launches,
 * one line for each kernel and block size, on stdout; also for the kernels of integer weights (blocks' and head's). `launches stages
 * [int8|int4|wgmma]`: one line for each kind of launch of a stage, for the shapes of first_gpu.cu:
 *
 *   shape stage part kernel calls grid threads shared_bytes d0 d1 d2 d3 flops bytes     (of one call; a dimension that is none is 0)
 *
 * Requests of the real size are only recorded: weights and buffers are addresses that nothing may
 * touch. Linked with the emulated GPU, whose table of launchers is the real one. gpu_report.sh and predict.py read it. */
#include "vlmprof.h"
#include "vlmprof_stages.h"
#include "vlmprof_engine.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_internal.h"

enum { TOKENS = 1922, VIEWS = 13, TOP_K = 8, ROOM = 1 << 16 };
typedef struct row { const char *name; uint32_t threads, shared_bytes, grid; int64_t prefill, decode; } row;
static row rows[256];
static int row_count;

static vp_engine *open_paper(const vp_model_config *config, uint32_t gpu, vp_weights weights, vp_error *error) {
    vp_engine_options options = vp_engine_options_default();
    vp_engine *e = NULL;
    options.config = config; options.device = "cuda"; options.gpu = gpu; options.counts_only = 1;
    options.weights = options.head_weights = weights; options.max_sequence = TOKENS + 8; options.max_views = VIEWS;
    if (vp_engine_open(&options, &e, error) != VP_OK) return NULL;
    e->pixels = e->buffers.pixels;
    e->masks = e->buffers.masks;
    return e;
}
/* what goes before the layers of the language model, and after them */
static const char *stage_of(const vp_launch *l, int decode) {
    if (decode) return "decode";
    return l->part <= VP_PART_VIT_ATTENTION ? "vision" : l->part <= VP_PART_PROJECTOR ? "connector" : l->part == VP_PART_EMBED ? "embed"
         : l->part >= VP_PART_HEAD ? "head" : "prefill";
}
static int same_kind(const vp_launch *a, const vp_launch *b) {
    return !strcmp(a->name, b->name) && a->part == b->part && a->grid == b->grid && a->threads == b->threads && a->shared_bytes == b->shared_bytes
        && a->flops == b->flops && a->bytes == b->bytes && !memcmp(a->shape, b->shape, sizeof a->shape);
}
static void print_stages(const vp_launch *log, int64_t prefill, int64_t all, const char *shape) {
    static int printed[ROOM];
    memset(printed, 0, sizeof printed);
    for (int64_t i = 0; i < all; i++) {
        const vp_launch *l = &log[i];
        const char *stage = stage_of(l, i >= prefill);
        int calls = 0;
        for (int64_t j = i; j < all && !printed[i]; j++)
            if (same_kind(l, &log[j]) && !strcmp(stage, stage_of(&log[j], j >= prefill))) { calls++; printed[j] |= j > i; }
        if (calls)
            printf("%s %s %s %s %d %u %u %u %d %d %d %d %llu %llu\n", shape, stage, vp_part_name((vp_part)l->part), l->name, calls, l->grid, l->threads,
                   l->shared_bytes, (int)l->shape[0], (int)l->shape[1], (int)l->shape[2], (int)l->shape[3], (unsigned long long)l->flops,
                   (unsigned long long)l->bytes);
    }
}
static void count(const vp_launch *l, int decode) {
    row *r = rows;
    if (!l->threads) return; /* a copy or a product of cuBLAS */
    while (r < rows + row_count && (strcmp(r->name, l->name) || r->threads != l->threads || r->shared_bytes != l->shared_bytes)) r++;
    if (r == rows + row_count) {
        if (row_count == (int)(sizeof rows / sizeof rows[0])) return;
        row_count++;
        r->name = l->name; r->threads = l->threads; r->shared_bytes = l->shared_bytes;
    }
    if (l->grid > r->grid) r->grid = l->grid;
    if (decode) r->decode++;
    else r->prefill++;
}
/* a request and a decode step after it, recorded: launches of the request, 0: more than the log has room for */
static int64_t record(vp_engine *e, vp_launch *log, int tokens, int views, int64_t *all) {
    vp_reply reply = {0};
    vp_request r = {0};
    int32_t blocks[64];
    for (int i = 0; i < e->config.block_count; i++) blocks[i] = i;
    r.input_count = tokens; r.views = views; r.top_k = TOP_K; r.active_blocks = blocks; r.active_block_count = e->config.block_count;
    e->queue->dry = 1;
    e->queue->log = log;
    e->queue->log_capacity = ROOM;
    e->queue->log_count = 0;
    vk_begin_pruning(e, &r);
    vk_prefill(e, &r, &reply);
    int64_t prefill = e->queue->log_count;
    vk_step(e, &r, tokens);
    *all = e->queue->log_count;
    if (*all <= ROOM) return prefill;
    fprintf(stderr, "launches: more than %d\n", ROOM);
    return 0;
}
static int usage(void) { fprintf(stderr, "launches [stages [int8|int4|wgmma]]\n"); return 2; }
int main(int argc, char **argv) {
    static const int tokens[3] = { 482, 1058, TOKENS }, views[3] = { 3, 7, VIEWS };
    static const struct { const char *word, *mark; vp_weights weights; uint32_t gpu; } kinds[] = { /* mark: of the kernels that are counted for it */
        { "bf16", "", VP_WEIGHTS_BF16, 0 }, { "int8", "k_quant_", VP_WEIGHTS_INT8, 0 }, { "int4", "k_quant_", VP_WEIGHTS_INT4, 0 },
        { "wgmma", "wgmma", VP_WEIGHTS_BF16, VP_GPU_WGMMA } };
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    vp_model_config config;
    static vp_launch log[ROOM];
    vp_error error = { VP_OK, -1, "", "" };
    int64_t prefill, all, totals[2] = { 0, 0 };
    int stages = argc > 1, only = argc < 3 ? 0 : -1;
    for (int kind = 0; argc > 2 && kind < KINDS; kind++) if (!strcmp(argv[2], kinds[kind].word)) only = kind;
    if (argc > 3 || only < 0 || (stages && strcmp(argv[1], "stages"))) return usage();
    for (int kind = 0; kind < KINDS; kind++) {
        vp_engine *e = NULL;
        if (stages && kind != only) continue;
        if (vp_model_config_preset("molmoe-1b", &config) != VP_OK || (e = open_paper(&config, kinds[kind].gpu, kinds[kind].weights, &error)) == NULL) {
            fprintf(stderr, "launches: %s: %s\n", error.where, error.text);
            return 1;
        }
        for (int i = 0; i < 3 && stages; i++) {
            char shape[32];
            prefill = record(e, log, tokens[i], views[i], &all);
            if (!prefill) return 1;
            snprintf(shape, sizeof shape, "%d/%d", views[i], tokens[i]);
            print_stages(log, prefill, all, shape);
        }
        if (stages) {
            vp_engine_close(e);
            return 0;
        }
        prefill = record(e, log, TOKENS, VIEWS, &all);
        if (!prefill) return 1;
        for (int64_t i = 0; i < all; i++)
            if (strstr(log[i].name, kinds[kind].mark)) count(&log[i], i >= prefill);
        if (!kind) { totals[0] = prefill; totals[1] = all - prefill; }
        vp_engine_close(e);
    }
    printf("total %lld %lld\n", (long long)totals[0], (long long)totals[1]);
    for (int i = 0; i < row_count; i++)
        printf("%s %u %u %u %lld %lld\n", rows[i].name, rows[i].threads, rows[i].shared_bytes, rows[i].grid, (long long)rows[i].prefill,
               (long long)rows[i].decode);
    return 0;
}
