#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_families.h"
#include <stdio.h>
int main(void) {
    vp_geometry geometry = vp_geometry_default();        // MolmoE-1B
    vp_tile_options options = vp_tile_options_default(); // adaptive tiling, at most 12 crops
    vp_layout layout;
    if (vp_layout_compute(&geometry, &options, 640, 480, &layout, NULL) != VP_OK) return 1;
    printf("640x480: %d rows, %d columns, %d vision tokens\n",
           (int)layout.tiling.rows, (int)layout.tiling.cols, (int)layout.feature_tokens);
    printf("qwen3-vl: %d image tokens\n", (int)vp_count_tokens("qwen3-vl", 640, 480));
    return 0;
}
