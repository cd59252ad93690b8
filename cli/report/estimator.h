/* estimator.h: the latency model (E3): fits it, tests it on configurations that it never saw, writes and reads it.
 * Predictions are double [ESTIMATE_PARTS, measurements->count], in ms; NaN if none. */
#ifndef VLMPROF_CLI_ESTIMATOR_H
#define VLMPROF_CLI_ESTIMATOR_H
#include "report/measurements.h"
#include "report/model_file.h"
#include "results/result_read.h"
#include "vlmprof_latency.h"

/* The statistic of predictions, and of a sample's time over its runs: the mean, not the median. */
#define ESTIMATE_LOCATION "mean"

enum { EVALUATION_POINTS = 200 };

/* The errors of a part. */
struct part_errors {
    vp_linear_errors of;        /* count is 0 if there are none */
    double bias_low, bias_high; /* interval of the bias at ESTIMATE_LEVEL; NaN with one configuration */
    double measured_mean;
    double mape_low, mape_high; /* the same for MAPE */
};

/* How well models predict. */
struct evaluation {
    struct part_errors errors[ESTIMATE_KINDS][SPLIT_COUNT][ESTIMATE_PARTS];
    /* The average error of the mean over a sample's runs, as a share; no model's MAPE can be below it. NaN for single
     * runs. */
    double noise;
    int point_split; /* SPLIT_*: the split whose predictions the points use */
    double points[ESTIMATE_PARTS][EVALUATION_POINTS][2]; /* [measured, predicted], for a plot */
    size_t point_counts[ESTIMATE_PARTS];
};

/* Predicts each row's stages with a model, for the stages that were measured. */
void estimator_predict_rows(const vp_latency_model *fits, const struct measurements *measurements, double *predicted);

/* Adds the predicted totals: the sum of the stages that run, or NaN if one of them has no prediction. */
void add_totals(const struct measurements *measurements, double *predicted);

/* The measured ms of a part (a stage or ESTIMATE_TOTAL); NaN if none. */
double measured_part(const struct measurements *measurements, int part, size_t row);

/* The errors of each part. The errors within a configuration are correlated, so the interval of the bias comes from the
 * spread over configurations. */
void errors_of(const struct measurements *measurements, const double *predicted,
               struct part_errors errors[ESTIMATE_PARTS]);

/* The errors of all parts, as an object that is a value. */
void parts_put(vp_json_writer *writer, const struct part_errors *errors);

/* A row of a table of errors: one or two words (second may be NULL), then the columns of ERROR_COLUMNS. */
#define ERROR_COLUMNS "MAE ms|MAPE %|R2|P95 error ms|bias ms|bias 95 % interval|rows"
void error_row(struct text_list *table, const char *first, const char *second, const struct part_errors *errors);

#define ERRORS_FAR_OFF "are far off: do not rely on them"
/* Warns if, for configurations that it never saw, predictions of the chosen kind are far off, biased, worse than the
 * mean, or worse than a baseline (any other kind). Gives the remedy. */
void warn_of_errors(const struct evaluation *evaluation, int chosen, struct text_list *warnings);

/* Compares all kinds of models by all splits; the points use the chosen kind. Returns 0 or an exit code. */
int estimator_evaluate(const struct measurements *measurements, vp_latency_features chosen,
                       struct evaluation *evaluation);

struct estimator {
    vp_latency_model model;
    /* correlations of the stages' residuals, for the intervals of totals */
    double correlation[VP_LATENCY_STAGE_COUNT][VP_LATENCY_STAGE_COUNT];
    vp_latency_limits limits[ESTIMATE_PARTS]; /* limits from held-out ratios; count is 0 if there are too few */
    struct number_range ranges[ESTIMATE_KNOB_COUNT];
    int64_t expert_count;
    char *model_name, *device, *architecture; /* architecture is NULL if unknown */
    char *weights;                            /* for all data, if a file has it; NULL if unknown or several */
    struct own_knobs own;                     /* knobs of the files that are inputs, too */
    char own_names[VP_LATENCY_OWN][KNOB_TEXT_BYTES]; int own_columns;
    char own_step_names[VP_LATENCY_OWN][KNOB_TEXT_BYTES + 8]; /* "steps*NAME": of decode, whose columns are per step */
    int is_synthetic, knows_pruning;          /* knows_pruning: some of the data was pruned */
    char *provenance;                         /* JSON */
    struct text_list warnings;
};

void estimator_free(struct estimator *estimator); /* also frees the struct itself */

/* Fits a model to all rows, into an estimator that is zero but for own and warnings. Returns 0 or an exit code. */
int estimator_make(const struct measurements *measurements, const struct results *results, vp_latency_features kind,
                   int64_t experts, struct estimator *estimator);

/* Gets the names of a stage's columns, the own ones last. Returns their number. */
int stage_columns(const struct estimator *estimator, int stage, const char *names[VP_LATENCY_COLUMNS_LIMIT]);

/* Writes the model to a file, or to stdout, as JSON with a newline; with its evaluation if that is not NULL. Returns 0
 * or an exit code. */
int estimator_write(const char *path, const struct estimator *estimator, const struct evaluation *evaluation);
int estimator_print(const struct estimator *estimator, const struct evaluation *evaluation);

/* Reads a model of ESTIMATOR_SCHEMA. Returns 0 or an exit code; *out is set on success, for estimator_free. */
int estimator_read(struct model_reader *reader, struct estimator **out);


#endif
