/* plan.h: the grid of knobs times samples, the names of its files, its fingerprint. */
#ifndef VLMPROF_CLI_PLAN_H
#define VLMPROF_CLI_PLAN_H
#include "base/options.h"
#include "dataset/dataset.h"
#include "request/model.h"
#include "request/record.h"
#include "request/request.h"
#include "vlmprof.h"
#include "vlmprof_image.h"

/* one configuration: a data set and a setting of the knobs */
typedef struct shape { int32_t views, sequence, top_k, block_count; } shape;

typedef struct cell {
    const dataset *set;
    const vp_tier *tier; int32_t vision_tokens; /* one of them */
    int32_t top_k, block_count;
    int32_t *blocks;
    char *file_name;
    int32_t need_sequence, need_views; /* of its longest request */
    int32_t in_book;                   /* its number in the journal that was there, -1: none */
    shape *shapes; size_t shape_count; /* whose kernels were timed */
    char *dropped;                     /* why it does not fit into memory; NULL: it does */
} cell;

typedef struct plan {
    dataset *sets; size_t set_count;
    cell *cells; size_t cell_count; /* the cells of a data set stand together */
    int32_t run_count, new_tokens, max_sequence, max_views;
    int ignore_eos;
    uint64_t fingerprint; /* of model, data, seed and options; not of the grid, so that a grid can grow */
    size_t point_count, repeats; /* repeats: points that the strategy's rule names again, left out */
} plan;

vp_tile_options cell_tiles(const cell *c);

/* Layout of a sample's image in a configuration; NULL for text only and where the image cannot be used (then reason says why). */
const vp_layout *cell_layout(const model *m, const cell *c, const entry *e, vp_layout *layout, char *reason, size_t capacity);

int32_t entry_sequence(const entry *e, const vp_layout *l);

void cell_work(const plan *p, const cell *c, const sample *a, const vp_layout *layout, const vp_image *image, work *k);

int plan_make(const options *o, const model *m, plan *p);
void plan_free(plan *p);

#endif
