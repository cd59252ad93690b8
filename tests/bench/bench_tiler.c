/* bench_tiler.c: images per second of vp_layout_compute on one core, over random photo sizes. Prints one row per rule: the median and the spread of
 * nine rounds. Build: cc -O2 -I. tests/bench/bench_tiler.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include <stdio.h>

enum { IMAGES = 100000, PASSES = 1, ROUNDS = 9 };

static void bench(const char *name, vp_tile_rule rule, vp_fit fit, const int32_t (*sizes)[2]) {
    const vp_geometry geometry = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    double rate[ROUNDS], sorted[ROUNDS];
    vp_statistics s;
    int64_t tokens = 0;
    options.rule = rule;
    options.fit = fit;
    options.tier = vp_tier_find("high");
    options.crops = 12;
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        const int64_t start = vp_clock_ns();
        for (int pass = 0; pass < PASSES; pass++) {
            for (int i = 0; i < IMAGES; i++) {
                vp_layout layout;
                if (vp_layout_compute(&geometry, &options, sizes[i][0], sizes[i][1], &layout, NULL) == VP_OK) tokens += layout.image_tokens;
            }
        }
        int64_t elapsed = vp_clock_ns() - start;
        if (round >= 0) rate[round] = (double)PASSES * IMAGES / ((double)elapsed * 1e-9) / 1e6;
    }
    if (vp_statistics_compute(rate, ROUNDS, sorted, &s) != VP_OK) return;
    printf("%-22s %8.2f million images/s (min %.2f, max %.2f, %d rounds; %.0f tokens/image)\n", name, s.p50, s.min, s.max, ROUNDS,
           (double)tokens / ((double)(ROUNDS + 1) * PASSES * IMAGES));
}

int main(void) {
    static int32_t sizes[IMAGES][2];
    vp_random random;
    vp_random_seed(&random, 66);
    for (int i = 0; i < IMAGES; i++) {
        sizes[i][0] = 200 + (int32_t)vp_random_below(&random, 3800);
        sizes[i][1] = 200 + (int32_t)vp_random_below(&random, 3800);
    }
    bench("adaptive 12, pad", VP_TILE_ADAPTIVE, VP_FIT_PAD, (const int32_t (*)[2])sizes);
    bench("adaptive 12, fill", VP_TILE_ADAPTIVE, VP_FIT_FILL, (const int32_t (*)[2])sizes);
    bench("tier high, fill", VP_TILE_TIER, VP_FIT_FILL, (const int32_t (*)[2])sizes);
    bench("exactly 12, pad", VP_TILE_CROPS, VP_FIT_PAD, (const int32_t (*)[2])sizes);
    return 0;
}
