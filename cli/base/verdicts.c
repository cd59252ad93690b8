/* verdicts.c: verdicts of several comparisons, corrected for their number. */
#include "base/verdicts.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

/* Times in files are rounded, so ratios may differ in the seventh digit. */
static int are_near(double one, double other) { return isnan(one) ? isnan(other) : fabs(one - other) <= 1e-7; }
static int are_proportional(const vp_comparison *one, const vp_comparison *other) {
    return one->count == other->count && are_near(one->estimate, other->estimate) && are_near(one->low, other->low)
           && are_near(one->high, other->high);
}
size_t verdicts_adjust(vp_comparison *comparisons, const size_t *groups, size_t count, double alpha, size_t *like) {
    vp_comparison *family = resize(NULL, count, sizeof *family);
    size_t *places = resize(NULL, count, sizeof *places), members = 0;
    uint32_t *order = resize(NULL, count, sizeof *order);
    double *values = resize(NULL, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        size_t other = 0;
        while (other < i && (groups[other] != groups[i] || !are_proportional(&comparisons[other], &comparisons[i])))
            other++;
        like[i] = other == i ? 0 : like[other] ? like[other] : other + 1;
        places[i] = other == i ? members : places[other];
        if (other == i) family[members++] = comparisons[i];
    }
    if (vp_compare_adjust(family, members, VP_ADJUST_HOLM, alpha, order, values) != VP_OK) abort(); /* see the header */
    for (size_t i = 0; i < count; i++) {
        const vp_comparison *adjusted = &family[places[i]];
        comparisons[i].p_difference = adjusted->p_difference;
        comparisons[i].p_equivalence = adjusted->p_equivalence;
        comparisons[i].verdict = adjusted->verdict;
    }
    FREE_ALL(family, places, order, values);
    return members;
}
