/* latency_model.h: errors, ranges, coefficients and predictions of a latency model, as text and JSON. A model predicts
 * the parts of a request from its numbers. */
#ifndef VLMPROF_CLI_LATENCY_MODEL_H
#define VLMPROF_CLI_LATENCY_MODEL_H
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/measurements.h"
#include "report/model_file.h"
#include "results/result_read.h"
#include "vlmprof_latency.h"

/* The statistic of predictions, and of a sample's time over its runs: the mean, not the median. */
#define ESTIMATE_LOCATION "mean"

/* ---- ranges of the data that a model was fitted to */
void ranges_find(int count, const vp_latency_request *requests, size_t request_count,
                 struct number_range *ranges);
void ranges_put(vp_json_writer *writer, int count, const struct number_range *ranges);
void ranges_read(struct model_reader *reader, uint32_t object, int count, struct number_range *ranges);

/* Warns about requests with a number outside its range. */
void range_warn(int which, const struct number_range *range, const vp_latency_request *requests, size_t count,
                struct text_list *warnings);

/* ---- errors */
/* The errors of a part. */
struct part_errors {
    vp_linear_errors of;        /* count is 0 if there are none */
    double bias_low, bias_high; /* interval of the bias at MODEL_LEVEL; NaN with one configuration */
    double measured_mean;
    double mape_low, mape_high; /* the same for MAPE */
};

/* Computes the errors of double [count] measured and predicted, in which NaN means none. The errors within a group are
 * correlated, so the interval of the bias comes from the spread over groups. groups NULL: each row is its own group. */
void part_errors_of(const double *measured, const double *predicted, size_t count, const uint32_t *groups,
                    size_t group_count, struct part_errors *errors);

/* The limits of measured / predicted, over the rows that have both, with a prediction above `least`. count is 0 if
 * there are too few rows, or if a prediction is not positive. */
void part_limits_of(const double *measured, const double *predicted, size_t count, double least,
                    vp_latency_limits *limits);

/* Errors of all parts, written as an object that is a value. Errors [kinds, splits, parts], written as members of the
 * open object, or as a table for each part. */
void parts_put(vp_json_writer *writer, const struct part_errors *errors);
void errors_put(vp_json_writer *writer, const struct part_errors *errors);
void errors_describe(struct document *document, const struct part_errors *errors);

/* "vision = 0.84 + 19.5 views": the terms in use; the buffer's data is malloc'ed. Also as a line of the document, with
 * the error on rows that the fit did not see. */
struct text_buffer formula_text(const char *part, const vp_linear *fit, const char *const *names);
void formula_add(struct document *document, const char *formula, const struct part_errors *held_out);

/* A row of a table of errors: one or two words (second may be NULL), then the columns of ERROR_COLUMNS. */
#define ERROR_COLUMNS "MAE ms|MAPE %|R2|P95 error ms|bias ms|bias 95 % interval|rows"
void error_row(struct text_list *table, const char *first, const char *second, const struct part_errors *errors);

/* Opens the table of coefficients, and adds those of a part. */
struct text_list *coefficients_table(struct document *document, const char *heading);
void coefficients_add(struct text_list *table, const char *part, const vp_linear *fit, const char *const *names);

/* "held_out_ratios": the limits of each part; null with too few rows (then Student's intervals). */
void limits_put(vp_json_writer *writer, const vp_latency_limits *limits);
void limits_read(struct model_reader *reader, uint32_t object, vp_latency_limits *limits);

/* ---- predictions */
/* ms of each part; NaN if the part is not in the model or its interval is unknown. */
struct prediction {
    double value[ESTIMATE_PARTS], low[ESTIMATE_PARTS], high[ESTIMATE_PARTS];
    size_t held_out[ESTIMATE_PARTS]; /* number of held-out ratios that give the interval; 0: it is Student's */
    int is_idle[ESTIMATE_PARTS];    /* 1 if the request does not have the part */
};

/* Adds two cells: a number and its interval. */
void estimate_cells(struct text_list *table, vp_estimate estimate);

/* Adds a table of the parts, and whether the total meets a budget (NaN: none). The same as members of the open
 * object. */
void prediction_describe(struct document *document, const struct prediction *prediction, double budget);
void prediction_put(vp_json_writer *writer, const struct prediction *prediction, double budget);

#endif
