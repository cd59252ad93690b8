/* corners.h: finds image sizes at which a server's token count is worth comparing with a family's rule.
 * A family comes in; sizes at the corners of its rule, each with its count, come out. Nothing is drawn or sent. */
#ifndef VLMPROF_CLI_CORNERS_H
#define VLMPROF_CLI_CORNERS_H
#include "base/memory.h"
#include "vlmprof_families.h"
#include <stddef.h>
#include <stdint.h>

enum { CORNERS_LEAST = 12, CORNERS_DEFAULT = 24, CORNERS_MOST = 1000 };

struct corner {
    int32_t width_px, height_px;
    vp_vision_count count;
    const char *why; /* static */
};

/* Finds sizes of at most most_pixels pixels, the most useful first: ordinary, small, large, the widest and the tallest
 * that the family accepts (up to 200:1); sizes at which a limit of the family takes effect; and, along the width, the
 * height and the diagonal, sizes at which the count changes and one pixel below and above. If a rule has too few of
 * them, other sizes are added up to CORNERS_LEAST. The family accepts every size, and none is repeated. out: corners
 * [most], most at least CORNERS_LEAST; notes: limits that no size within most_pixels reaches Returns the number of
 * sizes; 0 if the family accepts none. */
size_t corners_of(const vp_family *family, int64_t most_pixels, size_t most, struct corner *corners,
                  struct text_list *notes);

#endif
