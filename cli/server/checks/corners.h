/* corners.h: the image sizes at which a server's count of tokens is worth comparing with a family's rule.
 * A family comes in; sizes at the corners of its rule, each with its count, come out. Nothing is drawn or sent. */
#ifndef VLMPROF_CLI_CORNERS_H
#define VLMPROF_CLI_CORNERS_H
#include "base/memory.h"
#include "vlmprof_families.h"
#include <stddef.h>
#include <stdint.h>

enum { CORNERS_LEAST = 12, CORNERS_DEFAULT = 24, CORNERS_MOST = 1000, CORNER_PIXELS_DEFAULT = 4194304 };

struct corner {
    int32_t width_px, height_px;
    vp_vision_count count;
    const char *why; /* static */
};

/* Sizes of at most most_pixels pixels, in the order of their worth: ordinary, small, large, the widest and the tallest
 * that the family takes (up to 200:1); where a limit of the family begins to count; and, along the width, the height
 * and the diagonal, sizes one pixel below, at and one pixel above where the count changes. A rule without such places
 * is filled up to CORNERS_LEAST; the family takes each size, and none comes twice.
 * out: corners [most], most at least CORNERS_LEAST; notes: limits that no size of so few pixels reaches
 * Returns how many there are; 0: the family takes none. */
size_t corners_of(const vp_family *family, int64_t most_pixels, size_t most, struct corner *corners,
                  struct text_list *notes);

#endif
