/* estimator.h: the latency model: fitted, held against configurations that it never saw, written and read. */
#ifndef VLMPROF_CLI_ESTIMATOR_H
#define VLMPROF_CLI_ESTIMATOR_H
#include "base/document.h"
#include "base/memory.h"
#include "report/measurements.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

enum { EVALUATION_POINTS = 200 };

typedef struct evaluation {
    vp_linear_errors errors[ESTIMATE_KINDS][SPLIT_COUNT][ESTIMATE_PARTS]; /* count 0: none */
    vp_guardrail guardrails[BUDGET_COUNT + 1];
    double noise; /* share by which the mean over a sample's runs is off, on average: no model's MAPE is below it; NaN: single runs */
    int guardrail_count, guardrail_split;
    double reference_ms;  /* P95 of measured totals; budgets are shares of it */
    double own_budget_ms; /* one more that was asked for; 0: none */
    double points[ESTIMATE_PARTS][EVALUATION_POINTS][2]; /* measured and predicted, by the same split: for a plot */
    size_t point_counts[ESTIMATE_PARTS];
} evaluation;

/* What a fit of all rows says of each: [ESTIMATE_PARTS, count]; NaN where there is nothing to compare. */
void estimator_predict_rows(const vp_latency_model *fits, const measurements *m, double *predicted);
void estimator_predict_left_out(vp_latency_features kind, const measurements *m, int split, double *predicted);

/* The total of a row is the sum of the stages that run; one that has no prediction leaves none. */
void add_totals(const measurements *m, double *predicted);
double measured_part(const measurements *m, int part, size_t row);

/* Rows of a part that have both numbers; pairs: double [2, count], first the measured ones. */
size_t pair_rows(const measurements *m, const double *predicted, int part, double *pairs);
void errors_of(const measurements *m, const double *predicted, vp_linear_errors errors[ESTIMATE_PARTS]);

/* Which requests a budget lets through, by predictions of totals; budgets are shares of the P95 that was measured. */
void guard_budgets(const measurements *m, const double *predicted, evaluation *e);
int estimator_evaluate(const measurements *m, vp_latency_features chosen, evaluation *e);

typedef struct knob_range { int32_t least, median, most; } knob_range;

typedef struct estimator {
    vp_latency_model model;
    double correlation[VP_LATENCY_STAGE_COUNT][VP_LATENCY_STAGE_COUNT]; /* of what the stages' models miss: for intervals of totals */
    knob_range ranges[ESTIMATE_KNOB_COUNT];                             /* of the data */
    int64_t expert_count;
    char *model_name, *device;
    int is_synthetic;
    char *provenance, *recalibration; /* JSON; the latter NULL: as fitted */
    text_list warnings;
} estimator;

void estimator_free(estimator *e);
int estimator_make(const measurements *m, const results *r, vp_latency_features kind, int64_t experts, estimator *e);
void put_parts(vp_json_writer *w, const vp_linear_errors errors[ESTIMATE_PARTS]);
void put_guardrails(vp_json_writer *w, const evaluation *e, const char *predictions);

/* "ms" for the constant, "ms per views" for others */
const char *unit_text(const char *name, char out[64]);
int estimator_write(const char *path, const estimator *e, const evaluation *evaluated);

/* 0 or an exit code; *out is malloc'ed on success. */
int estimator_read(const char *path, estimator **out);

void error_row(text_list *table, const char *first, const char *second, const vp_linear_errors *e);
void write_guardrails(document *d, const evaluation *e, const char *predictions);
int estimator_print(const estimator *e, const evaluation *v);

#endif
