/* result_read.h: result files to flat arrays of what was measured. */
#ifndef VLMPROF_CLI_RESULT_READ_H
#define VLMPROF_CLI_RESULT_READ_H
#include "base/console.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "vlmprof.h"
#include "vlmprof_stages.h"

/* One array a number that a sample has: means over its runs, ms. The first are METRIC_*, from COLUMN_STAGE on those of the stages by DETAIL_*. */
enum {
    COLUMN_ACCURACY = METRIC_STAGE, COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS, COLUMN_STAGE,
    COLUMN_COUNT = COLUMN_STAGE + DETAIL_COUNT * VP_STAGE_COUNT
};

int stage_column(int stage, int detail);

/* A configuration: its file. Texts are NULL and numbers -1 where a file does not say (the experiments' own say little). */
typedef struct result_file {
    char *path;
    int is_foreign;                  /* of the experiments: no "schema" */
    char *task, *tier;               /* tier NULL: by target tokens, or not said */
    int64_t target_tokens, top_k, block_count, total_blocks, expert_count;
    int32_t *blocks; size_t listed_blocks; /* active_block_indices */
    char *status, *model, *weights, *importance, *data, *data_hash, *metric, *timing, *device, *host, *version, *measured_from, *measured_to;
    int is_synthetic;
    int64_t seed, runs_per_sample, max_new_tokens, ignore_eos;
    int64_t failed_count, missing_count, throttled_runs, outlier_runs;
    double accuracy;                 /* of the file: a metric of a whole corpus has no other; NaN: none */
    double cost_share, cost_low, cost_high; /* of stage times: staged less bare, as a share of T_total */
    double kernel_ms[VP_STAGE_COUNT], kernel_device_ms[VP_STAGE_COUNT]; /* sums over the shapes whose kernels were timed; NaN: none */
    double part_ms[VP_STAGE_COUNT][VP_PART_COUNT]; /* kernel_ms by part; a stage without any: not known */
    size_t count;                    /* samples that were measured, ascending by id */
    int64_t *ids;
    double *columns[COLUMN_COUNT];   /* [count]; NULL: nobody has it. NaN: this sample has not */
    double *run_total; size_t *run_at; /* each run's T_total: of sample i from run_at[i] to run_at[i + 1] */
    char error[LINE_BYTES];          /* why the file cannot be used; empty: it can */
    int is_other;                    /* 1: JSON, but no result; 2: one of our own reports; 3: not even JSON */
} result_file;

/* Configurations of one data set, next to one another; the samples that all `paired` ones have, for paired statistics. */
typedef struct result_group {
    size_t first, count;
    size_t *paired, paired_count;    /* places in files of those with at least half of the most samples */
    int64_t *ids; size_t id_count;   /* common to all of them */
    size_t uncommon_count;           /* ids that some of them lack */
} result_group;

typedef struct results {
    result_file *files; size_t count; /* by task, image size, top_k, blocks */
    result_group *groups; size_t group_count;
    text_list notes;                  /* what a reader must know: files left out, samples that are missing */
} results;

void results_free(results *r);
double result_at(const result_file *f, int which, size_t row);

/* Place of a sample, or f->count. */
size_t result_row(const result_file *f, int64_t id);

#define MS_MOST 1e12 /* thirty years: sums and squares of such values are still finite */

char *result_text(const vp_json *j, uint32_t object, const char *key);

typedef struct row_order { int64_t id; size_t at; } row_order;

int by_row_id(const void *a, const void *b);

/* Image sizes from small to large: tiers in their order, other names behind them, then target tokens. */
int64_t size_rank(const result_file *f);
int compare_settings(const result_file *x, const result_file *y); /* 0: the same point of the grid */

/* "medium k4 b12"; "576 tokens k4 b12" */
const char *setting_text(const result_file *f, char out[80]);

/* Reads folders and files, RESULT_READERS at a time: what stays in memory is arrays. 0 or an exit code. */
int results_read(results *r, const char *const *operands, size_t operand_count);

/* The samples of a group that have all of some columns in all paired configurations: *ids is malloc'ed. Returns their number. */
size_t paired_ids(const results *r, const result_group *g, const int *columns, int column_count, int64_t **ids);

/* double [paired_count, id_count] of a column, malloc'ed; ids as above */
double *paired_column(const results *r, const result_group *g, int which, const int64_t *ids, size_t id_count);
int same_size(const result_file *x, const result_file *y);

#endif
