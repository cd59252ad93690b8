/* result_read.h: reads result files into flat arrays of measurements. */
#ifndef VLMPROF_CLI_RESULT_READ_H
#define VLMPROF_CLI_RESULT_READ_H
#include "base/console.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "results/metrics.h"
#include "vlmprof_noise.h"

int stage_column(int stage, int detail); /* VP_STAGE_*, DETAIL_* to column */

/* The kind of a JSON file. */
enum { FILE_RESULT, FILE_OTHER_JSON, FILE_OWN_REPORT, FILE_NOT_JSON };

/* The file of one configuration. Texts are NULL and numbers -1 if the file lacks them; files of the reference's
 * experiments contain little. */
struct result_file {
    char *path;
    int is_policy;    /* 1 if its samples have different configurations: sweep --choices */
    int is_foreign;   /* 1 if it comes from the reference or another engine: it has no "schema" */
    int is_unnamed;   /* 1 if it has no dataset_name: its own name counts */
    char own_stages[80]; /* names in "stages" that are not vp_stage_name's, between commas; as many as fit */
    size_t derived_ttft; /* rows without a TTFT of their own */
    int divides_anew; /* 1 if it gives a T_decode_per_token other than T_LLM_decode / (output_tokens - 1) */
    /* the members of the head, by key */
    union { struct result_head head; struct { RESULT_ROWS(FIELD_MEMBER, 0) }; };
    union { struct result_accuracy scores; struct { RESULT_ACCURACY_ROWS(FIELD_MEMBER, 0) }; };
    struct result_fidelity fidelity; /* with --baseline; otherwise its baseline is NULL */
    int is_agreement;                /* 1 if there are no answers and its accuracy is the agreement with its baseline */
    union { struct result_vision sums; struct { RESULT_VISION_ROWS(FIELD_MEMBER, 0) }; };
    union { struct result_time times; struct { RESULT_TIME_ROWS(FIELD_MEMBER, 0) }; };
    struct tool_cost cost;           /* cost of stage times: staged minus bare, as a share of T_total */
    struct knob_values knobs;
    uint32_t varied; /* bits of the knobs whose values differ among the files read together */
    int64_t total_blocks, expert_count;
    int is_served; /* 1 for a server */
    char *server;  /* the server's description of itself */
    /* names and values in turn, as JSON: the knobs of "knobs" or of a server's requests, up to own_knobs; after them,
     * of a file without "schema", settings in the head without an axis, such as unknown members. Long values: hashes */
    struct text_list own; size_t own_knobs;
    struct text_list units; /* names and units in turn, of "knob_units" */
    size_t namesakes;   /* number of earlier configurations with the same short name */
    struct outside {    /* T_image_outside from the twins of all samples; NaN and 0 if there are none */
        double ms, low, high, level, image_ms, text_ms, floor_ms, server_ms; /* server_ms: by the server's clock */
        int64_t pairs, adjusted, left_out;
        char *basis; /* time that is compared: "TTFT", "first_chunk", ..; NULL: TTFT (older file) */
    } outside;
    const char *images;              /* "unique": each request had its own pixels; "same"; NULL: not recorded, or not a
                                      * server's */
    int no_cache;                    /* 1 if --no_cache */
    double cached_tokens, cached_of; /* prompt tokens from a cache, and all prompt tokens, of runs that report both */
    int64_t cached_runs;             /* runs whose prompt the server read from a cache; -1: not recorded */
    int64_t dropped_runs;            /* runs that lack an image; -1: not recorded */
    char *importance, *device, *host, *version, *command; /* command: of the sweep */
    int64_t seed, ignore_eos;
    vp_noise_summary noise; /* other activity of the machine; not known for older files */
    int64_t failed_count;
    char *failed_reason; /* reason of the first failed row, or NULL */
    /* sums over the shapes whose kernels were timed; NaN if there are none */
    double kernel_ms[VP_STAGE_COUNT], kernel_device_ms[VP_STAGE_COUNT];
    double part_ms[VP_STAGE_COUNT][VP_PART_COUNT]; /* kernel_ms by part; not known for a stage without parts */
    size_t count;                                  /* measured samples, ascending by id */
    int64_t *ids;                    /* below 0 for a text, the same number in all files */
    char **id_texts;                 /* while the files are read; NULL if no id is a text */
    size_t row_count;                /* failed rows included */
    double *columns[COLUMN_COUNT];   /* [count]; NULL if no sample has the number. NaN if this sample lacks it */
    /* T_total of each run, and under load its other times (NaN: not known); sample i: run_at[i] .. run_at[i + 1] - 1 */
    double *run_ms[METRIC_STAGE]; size_t *run_at;
    struct load_line *loads; size_t load_count; /* of a server under load: its blocks */
    char error[LINE_BYTES];          /* why the file cannot be used; empty if it can */
    int error_code;                  /* the exit code that goes with it */
    int kind;                        /* FILE_RESULT: the file is kept */
};

/* The configurations of one data set, which are consecutive in results->files. Paired statistics use the samples that
 * all `paired` configurations have. */
struct result_group {
    size_t first, count;
    size_t *paired, paired_count;    /* indices in files: configurations with at least half of the most samples */
    int64_t *ids; size_t id_count;   /* sample ids common to all of them */
    size_t uncommon_count;           /* number of ids that some of them lack */
};

struct results {
    struct result_file *files; size_t count; /* sorted by task, image size, top_k, blocks */
    struct result_group *groups; size_t group_count;
    struct text_list notes;                  /* notes for the reader: skipped files, missing samples */
    /* the notes of files that repeat a configuration, and of those without dataset_name; NULL if there are none */
    const char *repeats, *unnamed;
    struct text_list unlike;                 /* as of results_differ for two files, and their paths; or empty */
};

/* Reads folders and files, several at a time. Only arrays remain in memory. Returns 0 or an exit code; then the results
 * are empty. */
int results_read(struct results *results, const char *const *operands, size_t operand_count);
/* The same, with only the configurations that have these values, texts "KNOB=VALUE". */
struct option_value;
int results_read_at(struct results *results, const char *const *operands, size_t operand_count,
                    const struct option_value *at);
/* Complains about an unknown "KNOB=VALUE" or "KNOB" of an option, and lists the knobs and values there are. bytes: of
 * the knob's name; knob: KNOB_COUNT if no file has it. Returns EXIT_USAGE. */
int results_complain_of_value(const struct results *results, const char *option, const char *text, size_t bytes,
                              int knob);
void results_free(struct results *results);

/* A number of a sample, by column and row; NaN if the file lacks it. */
double result_at(const struct result_file *file, int column, size_t row);

/* Adds name, value and other value of each own knob in which the files differ, and with `others` 1 of each setting of
 * the head without an axis, with 2 only of those. Returns 1 if there is one. */
int results_differ(const struct result_file *one, const struct result_file *other, int others, struct text_list *out);

/* Share of the prompt tokens that the server read from its caches; NaN if it is not reported. */
double result_cached_share(const struct result_file *file);

/* Returns 1 if the answers have fewer than TPOT_TOKENS_LEAST tokens on average. */
int result_has_few_tokens(const struct result_file *file);

/* Returns 1 if servers' files were measured with different cache rules, and sets *words to the difference. Results with
 * cached images are not comparable to others. */
int results_differ_in_caches(const struct results *results, const char **words);

/* The row of a sample, or file->count. */
size_t result_row(const struct result_file *file, int64_t id);

#define MS_MOST ((double)FIELD_MS_MAX)

/* A text member of an object, malloc'ed; NULL if there is none. */
char *result_text(const vp_json *json, uint32_t object, const char *key);

/* For qsort: rows ascending by id, equal ids by position. */
struct row_order { int64_t id; size_t at; };
int by_row_id(const void *left_item, const void *right_item);

/* Returns 1 if both have the same image size. */
int is_same_size(const struct result_file *left, const struct result_file *right);

/* Compares the values of an axis: returns below 0, 0 or above 0. */
int compare_axis(const struct result_file *left, const struct result_file *right, int axis);

/* Compares configurations in the order of results->files: returns below 0, above 0, or 0 for the same point of the
 * grid. */
int compare_settings(const struct result_file *left, const struct result_file *right);

/* The weights of all files, each once: "int4, int8, bf16"; NULL if the first file has none. malloc'ed. */
char *weights_text(const struct results *results);

/* The value of an axis: "medium", "4", "int8", "3 px". Returns out. */
const char *axis_text(const struct result_file *file, int axis, char out[KNOB_TEXT_BYTES]);

/* Returns 1 if all files come from servers, whose stages are unknown from outside. */
int are_all_served(const struct results *results);

/* The setting without its image size: "k4 b12", "attn=sdpa". Returns out. */
const char *language_text(const struct result_file *file, char out[KNOB_TEXT_BYTES]);

/* "medium k4 b12" or "576 tokens k4 b12", and "medium k4 b12 int8" if files differ in their weights; for a server
 * "medium max_pixels=501760". Returns out. */
const char *setting_text(const struct result_file *file, char out[80]);

/* The samples of a group that have a number in all the columns, in all paired configurations. *ids is malloc'ed.
 * Returns the number of samples. */
size_t paired_ids(const struct results *results, const struct result_group *group, const int *columns, int column_count,
                  int64_t **ids);

/* A column of these samples: double [paired_count, id_count], malloc'ed. ids come from paired_ids. */
double *paired_column(const struct results *results, const struct result_group *group, int column, const int64_t *ids,
                      size_t id_count);

/* ---- result_scores.c: anybody's scores, put into result files */
/* One JSON object per answer on stdout: {"id", "sample_id", "config", "dataset_name", "prediction", and the members of
 * the sample's record}. Returns 0 or an exit code. */
int predictions_print(const char *const *operands, size_t operand_count);

/* What score --scores does. FILE has lines {"id": ID, "score": 0..1}. ID is the record's own id or a sample_id;
 * "sample_id" instead of "id" is only the latter, and "config" limits a line to one result file. */
struct score_request {
    const char *file, *name, *folder; /* of the scores; of the metric; where the new result files go */
    const char *const *operands; size_t operand_count;
    int is_json;
};

/* Writes each result file that has a score into the folder, which must not have a file of its name: its rows get these
 * scores, and its statistics are computed from them. Prints a summary. Returns 0 or an exit code; nothing is
 * written if a line is wrong. */
int scores_apply(const struct score_request *request);

#endif
