/* bench_families.c: counts per second of vp_family_count on one core, over random photo sizes, for every family; then the median over the families
 * that tile, and over all. A round counts all sizes once; a family's number is the median of its rounds.
 * Build: cc -O2 -ffp-contract=off -I. tests/bench/bench_families.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_families.h"
#include <stdio.h>

enum { IMAGES = 20000, ROUNDS = 7, FAMILIES_MOST = 128 };
static int32_t sizes[IMAGES][2];

static double bench(const vp_family *family, double *tokens) {
    double rate[ROUNDS], sorted[ROUNDS];
    vp_statistics s;
    int64_t sum = 0;
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        const int64_t start = vp_clock_ns();
        for (int i = 0; i < IMAGES; i++) {
            vp_vision_count c;
            if (vp_family_count(family, sizes[i][0], sizes[i][1], &c, NULL) == VP_OK) sum += c.total_tokens;
        }
        if (round >= 0) rate[round] = IMAGES / ((double)(vp_clock_ns() - start) * 1e-9) / 1e6;
    }
    *tokens = (double)sum / ((double)(ROUNDS + 1) * IMAGES);
    return vp_statistics_compute(rate, ROUNDS, sorted, &s) == VP_OK ? s.p50 : 0.0;
}
static double median(const double *values, int count) {
    double sorted[FAMILIES_MOST];
    vp_statistics s;
    return vp_statistics_compute(values, (size_t)count, sorted, &s) == VP_OK ? s.p50 : 0.0;
}

int main(void) {
    static const char *const tiling[] = {"closest", "ocr", "fit", "molmo", "anyres", "canvas", "split", "padded", "growing", "covering", "lfm2", "slices", "perception",
        "windows"};
    static vp_family family;
    double all[FAMILIES_MOST], tiles[FAMILIES_MOST], tokens;
    int all_count = 0, tile_count = 0, i;
    vp_random random;
    vp_random_seed(&random, 66);
    for (i = 0; i < IMAGES; i++) {
        sizes[i][0] = 200 + (int32_t)vp_random_below(&random, 3800);
        sizes[i][1] = 200 + (int32_t)vp_random_below(&random, 3800);
    }
    for (i = 0; vp_family_at(i) && all_count < FAMILIES_MOST; i++) {
        const vp_family_preset *preset = vp_family_at(i);
        if (!strcmp(preset->rule, "constant") || !strcmp(preset->rule, "gemini")) continue;
        vp_family_default(preset, &family);
        all[all_count] = bench(&family, &tokens);
        for (size_t k = 0; k < sizeof tiling / sizeof *tiling; k++) if (!strcmp(preset->rule, tiling[k])) tiles[tile_count++] = all[all_count];
        printf("%-27s %-14s %8.2f million counts/s (%.0f tokens/image)\n", preset->name, preset->rule, all[all_count++], tokens);
    }
    printf("median of %d tiling families %.2f million counts/s, of all %d %.2f\n", tile_count, median(tiles, tile_count), all_count, median(all, all_count));
    return 0;
}
