/* latency_model.h: the common part of the latency models of the engine (estimator.h) and of servers (server_law.h). A
 * model predicts the parts of a request from its numbers. Its form names them; errors, ranges, coefficients and
 * predictions of any form are written, read and shown here. */
#ifndef VLMPROF_CLI_LATENCY_MODEL_H
#define VLMPROF_CLI_LATENCY_MODEL_H
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/model_file.h"
#include "results/result_read.h"
#include "vlmprof_latency.h"

/* The statistic that a prediction gives for requests of its kind, and a sample's time for its runs: not the median. */
#define ESTIMATE_LOCATION "mean"

enum { MODEL_PARTS_MOST = VP_LATENCY_STAGE_COUNT + 1 };
struct model_form {
    const char *word;                 /* what it is called: "model", "law" */
    const char *part_heading, *kind_heading; /* columns of its tables */
    const char *total;                /* what a budget is of */
    int part_count;                   /* the last one is the total */
    const char *(*part_key)(int part), *(*part_name)(int part); /* for programs, for readers */
    int kind_count, split_count;      /* the models that are compared; the data a prediction must not have seen */
    const char *const *kind_keys, *const *split_keys, *const *split_names;
    const struct column *numbers;     /* of a request: int32_t for counts, else double, NaN: not known */
    int are_counts;
    size_t request_bytes;
};
double form_number(const struct model_form *form, const void *request, int which);

/* ---- ranges of the data that a model was fitted to. least NaN: not known */
struct number_range { double least, median, most; };
void ranges_find(const struct model_form *form, int count, const void *requests, size_t request_count,
                 struct number_range *ranges);
void ranges_put(vp_json_writer *writer, const struct model_form *form, int count, const struct number_range *ranges);
void ranges_read(struct model_reader *reader, uint32_t object, const struct model_form *form, int count,
                 struct number_range *ranges);

/* Warns about requests whose number is outside its range. */
void range_warn(const struct model_form *form, int which, const struct number_range *range, const void *requests,
                size_t count, struct text_list *warnings);

/* ---- errors */
/* The errors of a part. */
struct part_errors {
    vp_linear_errors of;         /* count 0: none */
    double bias_low, bias_high;  /* interval of the bias at MODEL_LEVEL; NaN: one configuration alone */
    double measured_mean;
    double mape_low, mape_high;  /* of MAPE, likewise */
};

/* Of double [count] measured and predicted, NaN: none. The errors within a group are correlated, so the interval of the
 * bias comes from the spread over groups; groups NULL: each row is its own. */
void part_errors_of(const double *measured, const double *predicted, size_t count, const uint32_t *groups,
                    size_t group_count, struct part_errors *errors);

/* The limits of measured / predicted, over the rows that have both and a prediction above `least`. count 0: too few
 * rows, or a prediction is not above 0. */
void part_limits_of(const double *measured, const double *predicted, size_t count, double least,
                    vp_latency_limits *limits);

/* Errors of all parts: an object that is a value. Errors [kinds, splits, parts]: members of the open object; a table
 * for each part. */
void parts_put(vp_json_writer *writer, const struct model_form *form, const struct part_errors *errors);
void errors_put(vp_json_writer *writer, const struct model_form *form, const struct part_errors *errors);
void errors_describe(struct document *document, const struct model_form *form, const struct part_errors *errors);

/* "vision = 0.84 + 19.5 views": the terms in use; its data is malloc'ed. The same as a line of the document, with the
 * error on rows that the fit did not see. */
struct text_buffer formula_text(const char *part, const vp_linear *fit, const char *const *names);
void formula_add(struct document *document, const char *formula, const struct part_errors *held_out);

/* A row of a table of errors: one or two words (second may be NULL), then the columns of ERROR_COLUMNS. */
#define ERROR_COLUMNS "MAE ms|MAPE %|R2|P95 error ms|bias ms|bias 95 % interval|rows"
void error_row(struct text_list *table, const char *first, const char *second, const struct part_errors *errors);

/* Opens the table of coefficients, and adds those of a part. */
struct text_list *coefficients_table(struct document *document, const struct model_form *form, const char *heading);
void coefficients_add(struct text_list *table, const char *part, const vp_linear *fit, const char *const *names);

/* "held_out_ratios": the limits of each part, null: too few rows, Student's intervals. */
void limits_put(vp_json_writer *writer, const struct model_form *form, const vp_latency_limits *limits);
void limits_read(struct model_reader *reader, uint32_t object, const struct model_form *form,
                 vp_latency_limits *limits);

/* ---- predictions */
/* ms of each part; NaN: the part is not in the model, or no interval is known. */
struct prediction {
    double value[MODEL_PARTS_MOST], low[MODEL_PARTS_MOST], high[MODEL_PARTS_MOST];
    int is_limited[MODEL_PARTS_MOST]; /* 1 if the interval comes from held-out ratios, not Student's */
    int is_idle[MODEL_PARTS_MOST];    /* 1 if the request does not have the part */
};

/* Two cells: a number, and its interval. */
void estimate_cells(struct text_list *table, vp_estimate estimate);

/* A table of the parts and whether the total meets a budget (NaN: none); the same as members of the open object. */
void prediction_describe(struct document *document, const struct model_form *form, const struct prediction *prediction,
                         double budget);
void prediction_put(vp_json_writer *writer, const struct model_form *form, const struct prediction *prediction,
                    double budget);

#endif
