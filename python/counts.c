/* counts.c: vision tokens by family for callers that cannot read C headers: Python's ctypes. One call with texts and whole numbers only. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#define VLMPROF_FAMILIES_IMPLEMENTATION
#include "vlmprof_families.h"

#include <stdio.h>
#include <string.h>

const char *vlmprof_version(void);
int vlmprof_count(const char *family, const char *const *keys, const char *const *values, int32_t key_count, int32_t width_px,
                  int32_t height_px, int64_t counts[9], char text[1024]);
const char *vlmprof_family_name(int32_t index);

const char *vlmprof_version(void) { return VLMPROF_VERSION; }
/* The name of a family in the order of the list; NULL past the end. */
const char *vlmprof_family_name(int32_t index) {
    const vp_family_preset *preset = vp_family_at(index);
    return preset ? preset->name : NULL;
}
/* in:      keys, values [key_count]  the family's settings, as vp_family_set reads them
 * out:     counts  resized width and height [px], rows, cols, views, feature, separator, marker and total tokens;
 *                  -1: the rule has no such number
 *          text    on failure: one line
 * returns: 0, or vp_result's negative number */
int vlmprof_count(const char *family, const char *const *keys, const char *const *values, int32_t key_count, int32_t width_px,
                  int32_t height_px, int64_t counts[9], char text[1024]) {
    const vp_family_preset *preset = vp_family_find(family);
    vp_family set;
    vp_vision_count count;
    vp_error error;
    vp_result result = VP_OK;
    memset(&error, 0, sizeof error);
    if (!preset) result = vp_error_set(&error, VP_ERR_NOT_FOUND, -1, family, "no such family");
    else vp_family_default(preset, &set);
    for (int32_t i = 0; i < key_count && result == VP_OK; i++) result = vp_family_set(&set, keys[i], values[i], &error);
    if (result == VP_OK) result = vp_family_count(&set, width_px, height_px, &count, &error);
    if (result != VP_OK) {
        snprintf(text, 1024, "%s: %s", error.where, error.text);
        return result;
    }
    counts[0] = count.resized_width_px, counts[1] = count.resized_height_px;
    counts[2] = count.rows, counts[3] = count.cols, counts[4] = count.views;
    counts[5] = count.feature_tokens, counts[6] = count.separator_tokens, counts[7] = count.marker_tokens;
    counts[8] = count.total_tokens;
    return 0;
}
