/* estimator.h: the latency model: fitted, held against configurations that it never saw, written and read. */
#ifndef VLMPROF_CLI_ESTIMATOR_H
#define VLMPROF_CLI_ESTIMATOR_H
#include "base/document.h"
#include "base/memory.h"
#include "report/measurements.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_latency.h"

enum { EVALUATION_POINTS = 200 };

struct evaluation {
    vp_linear_errors errors[ESTIMATE_KINDS][SPLIT_COUNT][ESTIMATE_PARTS]; /* count 0: none */
    vp_guardrail guardrails[BUDGET_COUNT + 1];
    /* share by which the mean over a sample's runs is off, on average: no model's MAPE is below it; NaN: single runs */
    double noise;
    int guardrail_count, guardrail_split;
    double reference_ms;  /* P95 of measured totals; budgets are shares of it */
    double own_budget_ms; /* one more that was asked for; 0: none */
    double points[ESTIMATE_PARTS][EVALUATION_POINTS][2]; /* measured and predicted, by the same split: for a plot */
    size_t point_counts[ESTIMATE_PARTS];
};

/* What a fit of all rows says of each: [ESTIMATE_PARTS, count]; NaN where there is nothing to compare. */
void estimator_predict_rows(const vp_latency_model *fits, const struct measurements *measurements, double *predicted);
void estimator_predict_left_out(vp_latency_features kind, const struct measurements *measurements, int split,
                                double *predicted);

/* The total of a row is the sum of the stages that run; one that has no prediction leaves none. */
void add_totals(const struct measurements *measurements, double *predicted);
double measured_part(const struct measurements *measurements, int part, size_t row);

/* Rows of a part that have both numbers; pairs: double [2, count], first the measured ones. */
size_t pair_rows(const struct measurements *measurements, const double *predicted, int part, double *pairs);
void errors_of(const struct measurements *measurements, const double *predicted,
               vp_linear_errors errors[ESTIMATE_PARTS]);

/* Which requests a budget lets through, by predictions of totals; budgets are shares of the P95 that was measured. */
void guard_budgets(const struct measurements *measurements, const double *predicted, struct evaluation *evaluation);
int estimator_evaluate(const struct measurements *measurements, vp_latency_features chosen,
                       struct evaluation *evaluation);

struct knob_range { int32_t least, median, most; };

struct estimator {
    vp_latency_model model;
    /* of what the stages' models miss: for intervals of totals */
    double correlation[VP_LATENCY_STAGE_COUNT][VP_LATENCY_STAGE_COUNT];
    struct knob_range ranges[ESTIMATE_KNOB_COUNT];                             /* of the data */
    int64_t expert_count;
    char *model_name, *device;
    int is_synthetic;
    char *provenance, *recalibration; /* JSON; the latter NULL: as fitted */
    struct text_list warnings;
};

void estimator_free(struct estimator *estimator);
int estimator_make(const struct measurements *measurements, const struct results *results, vp_latency_features kind,
                   int64_t experts, struct estimator *estimator);
void put_parts(vp_json_writer *writer, const vp_linear_errors errors[ESTIMATE_PARTS]);
void put_guardrails(vp_json_writer *writer, const struct evaluation *evaluation, const char *predictions);

/* "ms" for the constant, "ms per views" for others */
const char *unit_text(const char *name, char out[64]);
int estimator_write(const char *path, const struct estimator *estimator, const struct evaluation *evaluated);

/* 0 or an exit code; *out is malloc'ed on success. */
int estimator_read(const char *path, struct estimator **out);

void error_row(struct text_list *table, const char *first, const char *second, const vp_linear_errors *errors);
void write_guardrails(struct document *document, const struct evaluation *evaluation, const char *predictions);
int estimator_print(const struct estimator *estimator, const struct evaluation *evaluation);

#endif
