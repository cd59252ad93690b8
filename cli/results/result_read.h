/* result_read.h: result files to flat arrays of what was measured. */
#ifndef VLMPROF_CLI_RESULT_READ_H
#define VLMPROF_CLI_RESULT_READ_H
#include "base/console.h"
#include "base/memory.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "results/metrics.h"
#include "vlmprof.h"
#include "vlmprof_noise.h"
#include "vlmprof_stages.h"

int stage_column(int stage, int detail); /* VP_STAGE_*, DETAIL_*: a column */

/* What a JSON file is. */
enum { FILE_RESULT, FILE_OTHER_JSON, FILE_OWN_REPORT, FILE_NOT_JSON };

/* The file of one configuration. Texts are NULL and numbers -1 where a file does not say; the experiments' own say
 * little. */
struct result_file {
    char *path;
    int is_foreign;                  /* 1 if of the experiments, without a "schema" */
    /* what the head says, by its keys */
    union { struct result_head head; struct { RESULT_ROWS(FIELD_MEMBER, 0) }; };
    union { struct result_accuracy scores; struct { RESULT_ACCURACY_ROWS(FIELD_MEMBER, 0) }; };
    struct result_fidelity fidelity; /* with --baseline; baseline NULL: without */
    int is_agreement;                /* 1 if its accuracy is the agreement with its baseline, for lack of answers */
    union { struct result_vision sums; struct { RESULT_VISION_ROWS(FIELD_MEMBER, 0) }; };
    union { struct result_time times; struct { RESULT_TIME_ROWS(FIELD_MEMBER, 0) }; };
    struct tool_cost cost;           /* of stage times: staged less bare, as a share of T_total */
    struct knob_values knobs;
    uint32_t told_apart;             /* knobs whose values differ among the files that were read with it, as bits */
    int64_t total_blocks, expert_count;
    int is_served;                   /* 1 if of a server */
    char *server;                    /* what it says it is */
    char *variant;                   /* model, endpoint and knobs as far as the files differ in them; never NULL */
    char *variant_name;              /* the same, short enough for a table */
    struct outside {                 /* T_image_outside, by the twins of all samples; NaN and 0 without them */
        double ms, low, high, level, image_ms, text_ms, floor_ms, server_ms; /* server: by its own clock */
        int64_t pairs, adjusted, left_out;
        char *basis;                 /* what differs: "TTFT", "first_chunk", ..; NULL: TTFT, of an older file */
    } outside;
    const char *images;              /* "unique": each request had pixels of its own; "same"; NULL: not said, or an
                                      * engine's */
    int no_cache;                    /* 1 if --no_cache */
    double cached_tokens, cached_of; /* prompt tokens from a cache, of those of the runs where that is known */
    int64_t cached_runs;             /* whose prompt the server read from a cache; -1: not said */
    char *importance, *device, *host, *version, *command; /* command: of the sweep */
    int64_t seed, ignore_eos;
    vp_noise_summary noise;          /* what else the machine did; of older files nothing is known */
    int64_t failed_count;
    char *failed_reason;             /* of the first failed row; NULL: none */
    /* sums over the shapes whose kernels were timed; NaN: none */
    double kernel_ms[VP_STAGE_COUNT], kernel_device_ms[VP_STAGE_COUNT];
    double part_ms[VP_STAGE_COUNT][VP_PART_COUNT]; /* kernel_ms by part; a stage without any: not known */
    size_t count;                    /* samples that were measured, ascending by id */
    int64_t *ids;
    double *columns[COLUMN_COUNT];   /* [count]; NULL: no one has it. NaN: this sample has not */
    double *run_total; size_t *run_at; /* each run's T_total: of sample i from run_at[i] to run_at[i + 1] */
    char error[LINE_BYTES];          /* why the file cannot be used; empty: it can */
    int error_code;                  /* the exit code that goes with it */
    int kind;                        /* FILE_RESULT: it is kept */
};

/* The configurations of one data set, which are next to one another in results->files. Paired statistics are over
 * the samples that all `paired` ones have. */
struct result_group {
    size_t first, count;
    size_t *paired, paired_count;    /* places in files of those with at least half of the most samples */
    int64_t *ids; size_t id_count;   /* common to all of them */
    size_t uncommon_count;           /* ids that some of them lack */
};

struct results {
    struct result_file *files; size_t count; /* by task, image size, top_k, blocks */
    struct result_group *groups; size_t group_count;
    struct text_list notes;                  /* what a reader must know: files left out, samples that are missing */
};

/* Reads folders and files, several at a time. What stays in memory is arrays. 0 or an exit code; then results are
 * empty. */
int results_read(struct results *results, const char *const *operands, size_t operand_count);
void results_free(struct results *results);

/* A number of a sample, by column and row; NaN: the file has none. */
double result_at(const struct result_file *file, int column, size_t row);

/* Share of the prompt tokens that the server read from its caches; NaN: it does not say. */
double result_cached_share(const struct result_file *file);

/* Returns 1 if the answers have fewer than TPOT_TOKENS_LEAST tokens on average. */
int result_has_few_tokens(const struct result_file *file);

/* Returns 1 if some servers' files were measured with other rules for caches than the first: *words is what they differ
 * in. A cached image is another measurement. */
int results_differ_in_caches(const struct results *results, const char **words);

/* The row of a sample, or file->count. */
size_t result_row(const struct result_file *file, int64_t id);

#define MS_MOST ((double)FIELD_MS_MAX)

/* A text member of an object, malloc'ed; NULL: there is none. */
char *result_text(const vp_json *json, uint32_t object, const char *key);

/* For qsort: rows ascending by id, equal ids by place. */
struct row_order { int64_t id; size_t at; };
int by_row_id(const void *left_item, const void *right_item);

/* Returns 1 if the same image size. */
int is_same_size(const struct result_file *left, const struct result_file *right);

/* Orders the values of an axis: below 0, 0 or above 0. Variants of servers go by what differs between them, after the
 * engine's files. */
int compare_axis(const struct result_file *left, const struct result_file *right, int axis);

/* Orders configurations as results->files has them: below 0, 0 or above 0. 0: the same point of the grid. */
int compare_settings(const struct result_file *left, const struct result_file *right);

/* The weights of all files, each once: "int4, int8, bf16"; NULL: the first file says none. malloc'ed. */
char *weights_text(const struct results *results);

/* The value of an axis: "medium", "4", "int8", a variant's name. Returns out. */
const char *axis_text(const struct result_file *file, int axis, char out[KNOB_TEXT_BYTES]);

/* Returns 1 if all files are of servers, whose stages are unknown from outside. */
int are_all_served(const struct results *results);

/* The setting without its image size: "k4 b12", a variant's name. Returns out. */
const char *language_text(const struct result_file *file, char out[KNOB_TEXT_BYTES]);

/* "medium k4 b12" or "576 tokens k4 b12", and "medium k4 b12 int8" where files differ in their weights; of a server
 * "medium max_pixels=501760". Returns out. */
const char *setting_text(const struct result_file *file, char out[80]);

/* The samples of a group that have a number in all of some columns, in all paired configurations. *ids is malloc'ed.
 * Returns their number. */
size_t paired_ids(const struct results *results, const struct result_group *group, const int *columns, int column_count,
                  int64_t **ids);

/* A column of those samples: double [paired_count, id_count], malloc'ed. ids are those of paired_ids. */
double *paired_column(const struct results *results, const struct result_group *group, int column, const int64_t *ids,
                      size_t id_count);

#endif
