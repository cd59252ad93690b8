/* bench_tiler.c: images per second of vp_layout_compute (adaptive tiling, at most 12 crops) on one core, over random photo sizes: the median and the
 * spread of nine rounds. Build: cc -O2 -I. tests/bench/bench_tiler.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include <stdio.h>

enum { IMAGES = 100000, ROUNDS = 9 };

int main(void) {
    static int32_t sizes[IMAGES][2];
    const vp_geometry geometry = vp_geometry_default();
    const vp_tile_options options = vp_tile_options_default();
    double rate[ROUNDS], sorted[ROUNDS];
    vp_statistics s;
    vp_random random;
    int64_t tokens = 0;
    vp_random_seed(&random, 66);
    for (int i = 0; i < IMAGES; i++)
        for (int side = 0; side < 2; side++) sizes[i][side] = 200 + (int32_t)vp_random_below(&random, 3800);
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        const int64_t start = vp_clock_ns();
        for (int i = 0; i < IMAGES; i++) {
            vp_layout layout;
            if (vp_layout_compute(&geometry, &options, sizes[i][0], sizes[i][1], &layout, NULL) == VP_OK) tokens += layout.image_tokens;
        }
        if (round >= 0) rate[round] = IMAGES / ((double)(vp_clock_ns() - start) * 1e-9) / 1e6;
    }
    if (vp_statistics_compute(rate, ROUNDS, sorted, &s) != VP_OK) return 1;
    printf("%-22s %8.2f million images/s (min %.2f, max %.2f, %d rounds; %.0f tokens/image)\n", "adaptive 12, pad", s.p50, s.min, s.max, ROUNDS,
           (double)tokens / ((double)(ROUNDS + 1) * IMAGES));
    return 0;
}
