/* report.h: computes where the time of a request goes (E1), and the accuracy it buys (E2). */
#ifndef VLMPROF_CLI_REPORT_H
#define VLMPROF_CLI_REPORT_H
#include "base/table.h"
#include "report/decomposition.h"
#include "report/load.h"
#include "report/pruning.h"
#include "report/tradeoff.h"
#include "results/result_read.h"

/* ---- the rows of a report below its configurations: the scores of each value of a field (--by category) */
/* A category with a 95 % interval. */
struct category_row {
    char configuration[160], name[120];
    int64_t count; /* scored samples */
    vp_estimate value;
};
struct category_rows { struct category_row *items; size_t count; };

/* Reads the rows of every file again and adds the categories of `field`. Problems are added to `warnings`. `name` is
 * report_full_name. Returns 0, or an exit code if no sample has the field. */
typedef const char *file_namer(const struct results *results, const struct result_file *file, char out[160]);
int categories_read(const struct results *results, const char *field, file_namer *name,
                    struct category_rows *categories, struct text_list *warnings);
void category_rows_free(struct category_rows *rows);

/* The rows as a table. */
struct table category_table(const struct category_rows *rows);

struct report {
    const struct results *results;
    struct report_settings settings;
    struct text_list warnings, findings;
    size_t stage_findings;        /* index of the first finding about stages, after those about configurations */
    struct decomposition *items;  /* [results->count] */
    double peak_tflops, peak_gbs; /* the roofs */
    int peaks_are_given;          /* 1 if given by options; otherwise the best that a stage reaches */
    struct curve_list curves;     /* curves by data set, in the order of results->groups */
    struct tradeoff *tradeoffs;   /* [results->group_count] */
    struct pruned_rows *pruned;   /* [results->group_count] */
    struct load_rows loads;       /* of servers under load */
    const char *by;               /* --by: the field of `categories`; NULL if none */
    struct category_rows categories;
};

/* Replaces the stages in reports of only servers; NULL if they are known. */
const char *stages_unknown_text(const struct report *report);
int report_has_stages(const struct report *report); /* returns 1 if stages are known: of the engine, or from a server */

/* results must live as long as the report. report_add_categories reads the result files again for --by FIELD (may be
 * NULL); it returns 0 or an exit code. */
void report_make(struct report *report, const struct results *results, const struct report_settings *settings);
int report_add_categories(struct report *report, const char *field);
void report_free(struct report *report);

/* "low k4 b12", after the data set's name if there are several. Returns out. */
const char *report_full_name(const struct results *results, const struct result_file *file, char out[160]);

/* The baseline of a data set's configurations (sweep --baseline); NULL if there is none. */
const char *report_baseline(const struct results *results, size_t group);

/* Warns if the machine was not quiet. Older files do not record other load; for them, the spread of a sample's runs is
 * used instead, with at least 10 pairs of runs. */
void results_warn_of_noise(const struct results *results, struct text_list *warnings);

/* Returns 1 if any file has times of the stage. */
int stage_is_known(const struct report *report, int stage);

/* Returns 1 if a file, by its index in results->files, is on the front of its data set. */
int is_on_front(const struct report *report, size_t file);

/* Writes the members that identify a configuration: data set, image size, top_k and blocks. */
void put_setting_of(vp_json_writer *writer, const struct result_file *file);
#endif
