/* flags.c: prints what must not depend on compiler flags, for test_flags.sh: the counts of every family over 303 sizes as one hash a family, the layouts of
 * the tiler, statistics bit for bit (a), and quantiles that the C library's log and erfc take part in, in 12 digits (b). Its own arithmetic is exact. */
#define VLMPROF_STATIC
#define VLMPROF_IMPLEMENTATION
#include "vlmprof_statistics.h"
#include "vlmprof_families.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_bits(const char *name, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    printf("a %s %08lx%08lx\n", name, (unsigned long)(bits >> 32), (unsigned long)(bits & 0xffffffffu));
}
static uint64_t mix(uint64_t hash, int64_t value) { return (hash ^ (uint64_t)value) * UINT64_C(1099511628211); }
static void print_hash(const char *name, uint64_t hash) {
    printf("a %s %08lx%08lx\n", name, (unsigned long)(hash >> 32), (unsigned long)(hash & 0xffffffffu));
}
static void draw_size(vp_random *random, int i, int32_t *width, int32_t *height) {
    const uint64_t most = i % 3 ? 2000 : 6000;
    *width = i ? 1 + (int32_t)vp_random_below(random, most) : 1920;
    *height = i ? 1 + (int32_t)vp_random_below(random, most) : 1080;
    if (i % 7 == 1) { *width = *width / 28 * 28 + 14; *height = *height / 14 * 14 + 14; } /* halves of units */
    if (i % 7 == 2) *height = *width;
}
int main(int argc, char **argv) {
    enum { SIZES = 303, SETS = 50, VALUES = 200 };
    vp_random random;
    if (argc > 1) { /* one count and one statistic, as results */
        const double values[2] = {1.0, 2.0};
        double scratch[2];
        vp_statistics statistics;
        printf("%s %d %d\n", argv[1], (int)vp_count_tokens("qwen3-vl", 1920, 1080), (int)vp_statistics_compute(values, 2, scratch, &statistics));
        return 0;
    }
    for (int32_t f = 0; vp_family_at(f); f++) {
        uint64_t hash = UINT64_C(1469598103934665603);
        vp_family family;
        vp_family_default(vp_family_at(f), &family);
        vp_random_seed(&random, 7u);
        for (int i = 0; i < SIZES; i++) {
            vp_vision_count count;
            int32_t width, height;
            draw_size(&random, i, &width, &height);
            const vp_result result = vp_family_count(&family, width, height, &count, NULL);
            hash = mix(hash, result);
            if (result != VP_OK) continue;
            const int64_t members[] = {count.total_tokens, count.views, count.rows, count.cols, count.resized_width_px, count.resized_height_px};
            for (size_t k = 0; k < sizeof members / sizeof *members; k++) hash = mix(hash, members[k]);
        }
        print_hash(vp_family_at(f)->name, hash);
    }
    uint64_t hash = 0;
    for (int i = 0; i < 4 * SIZES; i++) {
        const vp_geometry geometry = vp_geometry_default();
        vp_tile_options options = vp_tile_options_default();
        vp_layout layout;
        int32_t width, height;
        draw_size(&random, i, &width, &height);
        if (i % 2) {
            options.rule = VP_TILE_TIER;
            options.tier = vp_tier_at(i % 3);
        }
        if (i % 5 == 0) options.fit = VP_FIT_FILL;
        hash = mix(hash, vp_layout_compute(&geometry, &options, width, height, &layout, NULL));
        hash = mix(mix(mix(hash, layout.resized_width_px), layout.resized_height_px), layout.image_tokens);
    }
    print_hash("layouts", hash);
    vp_random_seed(&random, 11u);
    for (int set = 0; set < SETS; set++) {
        double values[VALUES], scratch[2 * VALUES], low = 0.0, high = 0.0;
        const size_t count = 2 + (size_t)vp_random_below(&random, VALUES - 2);
        vp_statistics statistics;
        for (size_t i = 0; i < count; i++) values[i] = (double)(int32_t)vp_random_below(&random, 1u << 30) / (set % 3 ? 1048576.0 : 1073741824.0);
        if (vp_statistics_compute(values, count, scratch, &statistics) != VP_OK) return 1;
        print_bits("mean", statistics.mean);
        print_bits("std", statistics.std);
        print_bits("p50", statistics.p50);
        print_bits("p95", statistics.p95);
        if (vp_statistics_mean_interval(values, count, 0.95, &low, &high) != VP_OK) return 1;
        printf("b %.12g %.12g %.12g\n", low, high, vp_statistics_student(0.975, (double)count));
    }
    const double bad[3] = {1.0, (double)NAN, 2.0};
    double scratch[3];
    vp_statistics statistics;
    printf("b a value that is no number: %d\n", (int)vp_statistics_compute(bad, 3, scratch, &statistics));
    return 0;
}
