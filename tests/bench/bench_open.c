/* bench_open.c - how long an engine with synthetic weights takes to open, next to the first touch of as many bytes: no program can have them faster.
 * bench_open [PRESET [BLOCKS [VIT_BLOCKS]]]: of a large model a few blocks stand for all (2 and 2; 16 and 22: MolmoE-1B whole, 15 GB).
 * Both in turns, ROUNDS times; medians. The first touch is of pages that are asked for as the engine asks, by all threads, and given back before the
 * engine opens, so that both get the same pages from the system. */
#define _DEFAULT_SOURCE 1 /* madvise */
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 5, PIECE = 1 << 21 };

static double first_touch_s(size_t bytes) {
    char *memory = (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t start;
    if (memory == (char *)MAP_FAILED) return 0;
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    start = vp_clock_ns();
    _Pragma("omp parallel for schedule(static)")
    for (size_t at = 0; at < bytes; at += PIECE) memset(memory + at, 1, bytes - at < PIECE ? bytes - at : PIECE);
    start = vp_clock_ns() - start;
    munmap(memory, bytes);
    return (double)start / 1e9;
}
static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}
static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv) {
    static const struct { vp_weights weights; const char *name; } kinds[] = {
        { VP_WEIGHTS_BF16, "bf16" }, { VP_WEIGHTS_INT8, "int8" }, { VP_WEIGHTS_INT4, "int4" } };
    vp_engine_options options = vp_engine_options_default();
    const char *preset = argc > 1 ? argv[1] : "molmoe-1b";
    vp_model_config config;
    if (vp_model_config_preset(preset, &config) != VP_OK) {
        fprintf(stderr, "bench_open: no preset is called %s\n", preset);
        return 2;
    }
    config.block_count = argc > 2 ? atoi(argv[2]) : 2;
    if (config.vit_block_count > 0) {
        config.vit_block_count = config.vit_blocks_needed = argc > 3 ? atoi(argv[3]) : 2;
        for (int i = 0; i < config.vit_layer_count; i++) config.vit_layers[i] = -1 - i;
    }
    options.config = &config;
    options.device = "cpu";
    options.gemm = "plain"; /* no kernel is measured while the clock runs */
    options.max_sequence = 512;
    options.max_views = 2;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        double touch_s[ROUNDS], open_s[ROUNDS], touch, open;
        vp_engine *paper = NULL;
        options.weights = kinds[kind].weights;
        options.counts_only = 1;
        if (vp_engine_open(&options, &paper, NULL) != VP_OK) return 1;
        options.counts_only = 0;
        uint64_t bytes = vp_engine_bytes(paper);
        vp_engine_close(paper);
        for (int round = -1; round < ROUNDS; round++) { /* one that warms up */
            vp_engine *engine = NULL;
            vp_error error = { VP_OK, -1, "", "" };
            const double touched = first_touch_s((size_t)bytes);
            const int64_t start = vp_clock_ns();
            if (vp_engine_open(&options, &engine, &error) != VP_OK) {
                fprintf(stderr, "bench_open: %s\n", error.text);
                return 1;
            }
            if (round >= 0) {
                touch_s[round] = touched;
                open_s[round] = (double)(vp_clock_ns() - start) / 1e9;
            }
            vp_engine_close(engine);
        }
        touch = median(touch_s);
        open = median(open_s);
        printf("open %s %s, %d blocks: %.2f GB, %.3f s, first touch %.3f s, ratio %.2f (%d rounds in turns, each from %.3f / %.3f to %.3f / %.3f s)\n", preset,
               kinds[kind].name, config.block_count, (double)bytes / 1e9, open, touch, open / touch, ROUNDS, open_s[0], touch_s[0], open_s[ROUNDS - 1],
               touch_s[ROUNDS - 1]);
    }
    return 0;
}
