/* tile_options.c: the options that choose a tiling, and sizes as text. */
#include "tile/tile_options.h"

#include "base/console.h"

#include <stdlib.h>
#include <string.h>

int tile_options_of(const options *o, vp_tile_options *t) {
    const char *how = text_of(o, "preprocess"), *tier = text_of(o, "tier");
    int by_tier = tier != NULL, by_crops = given(o, "crops"), by_tokens = given(o, "vision_tokens");
    *t = vp_tile_options_default();
    t->fit = strcmp(how, "adaptive") ? VP_FIT_FILL : VP_FIT_PAD;
    t->max_crops = (int32_t)number_of(o, "max_crops");
    if (by_tier + by_crops + by_tokens > 1) return complain(EXIT_USAGE, "--tier, --crops and --vision_tokens exclude each other");
    if (by_tier && given(o, "preprocess") && strcmp(how, "tier"))
        return complain(EXIT_USAGE, "--tier %s goes with --preprocess tier, not %s", tier, how);
    if (!by_tier && !strcmp(how, "tier"))
        return complain(EXIT_USAGE, "--preprocess tier needs --tier low, medium or high (for --crops: --preprocess adaptive-fill)");
    if (given(o, "max_crops") && (by_crops || by_tokens))
        return complain(EXIT_USAGE, "--max_crops is for adaptive tiling; leave it out with --crops and --vision_tokens");
    if (by_tier) {
        t->rule = VP_TILE_TIER;
        t->fit = VP_FIT_FILL;
        t->tier = vp_tier_find(tier);
        if (given(o, "max_crops") && t->max_crops != t->tier->max_crops)
            return complain(EXIT_USAGE, "--max_crops %d contradicts --tier %s (at most %d crops)", t->max_crops, tier, t->tier->max_crops);
        t->max_crops = t->tier->max_crops;
    } else if (by_crops || by_tokens) {
        t->rule = by_crops ? VP_TILE_CROPS : VP_TILE_TOKENS;
        t->crops = (int32_t)number_of(o, "crops");
        t->vision_tokens = (int32_t)number_of(o, "vision_tokens");
    }
    return 0;
}

int parse_size(const char *text, const char *separators, int64_t *width, int64_t *height) {
    size_t first = strspn(text, "0123456789"), gap = strspn(text + first, separators), second = strspn(text + first + gap, "0123456789");
    if (!first || !gap || !second || first > 18 || second > 18 || text[first + gap + second]) return 0;
    if (gap > 1 && memchr(text + first, 'x', gap)) return 0;
    *width = strtoll(text, NULL, 10);
    *height = strtoll(text + first + gap, NULL, 10);
    return 1;
}
