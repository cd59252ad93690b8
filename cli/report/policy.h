/* policy.h: what a policy that chooses a configuration for each sample can gain over the best single one. Result files
 * of one data set come in; policies, a verdict, tables and a file of choices come out. */
#ifndef VLMPROF_CLI_POLICY_H
#define VLMPROF_CLI_POLICY_H
#include "base/table.h"
#include "results/result_read.h"
#include "vlmprof_policy.h"

struct policy_settings {
    vp_policy_options options;           /* budget_ms is infinite without --budget_ms */
    int axis;                            /* METRIC_*: the latency */
    struct text_list by;                 /* fields of the lookup */
    struct text_list choices;            /* files of choices */
    int keeps_policies;                  /* 1: policies that were run are configurations, too */
};

/* ---- policy_data.c: outcomes of the samples that all configurations have, and what is known of each sample */
struct policy_field { const char *name; int is_number; struct text_list words; double *values; };
/* The choices of a file: for each sample an index in configs, or -1. */
struct policy_choices { const char *file; int32_t *of; size_t strangers; /* lines for samples of no result file */ };
struct policy_data {
    const struct results *results;
    size_t *configs, config_count;   /* indices in results->files */
    int64_t *ids; char **names;      /* [samples] names: the record's own id, otherwise the sample_id, as JSON */
    size_t sample_count, dropped;    /* dropped: samples that some configuration lacks */
    size_t failed;                   /* points of these samples that failed */
    double *accuracy, *latency;      /* [configs, samples]; NaN: failed */
    struct policy_field *fields; size_t field_count;
    struct policy_choices *given; size_t given_count;
};
/* Reads them. The caller calls policy_data_free, also after a failure. Returns 0 or an exit code. */
int policy_data_read(const struct results *results, const struct result_group *group,
                     const struct policy_settings *settings, struct policy_data *data);
void policy_data_free(struct policy_data *data);
/* Returns 1 for a member of a server's requests. */
int policy_is_in_request(const struct result_file *file, int knob);
/* Writes the members "config" and "knobs" of a choice. */
void policy_put_choice(vp_json_writer *writer, const struct policy_data *data, size_t config);

/* ---- policy.c */
struct policy_row {
    char name[160];
    vp_policy_row row;
    vp_estimate beats_static, beats_mixture; /* in points of accuracy; NaN where that says nothing */
};
/* The policies within a budget. */
struct policy_part {
    double budget_ms;
    struct policy_row *rows; size_t row_count; /* static, mixture, lookup (with fields), oracle, luck, choices:FILE */
    vp_policy_table table;
    size_t compared; /* 1 + the configuration that is static within any budget; 0: the best one */
    vp_estimate same_ms; /* the lookup's mean at the accuracy of static; NaN: not known */
};
/* A policy that was run against the best single configuration ([1], [0]), as measured. */
struct policy_check {
    const char *verdict; /* NULL: not asked for */
    int64_t samples;
    double needed; /* samples for a verdict; 0: there is one, or it is not known */
    vp_estimate gain, more_ms;
    double most_ms, accuracy[2], mean_ms[2]; /* most_ms: of more_ms, as promised */
};
struct policy_report {
    const struct policy_data *data;
    const struct policy_settings *settings;
    struct policy_part *parts; size_t part_count; /* one, or one for each budget of the curve */
    int is_curve;
    struct text_list verdict, notes;
    struct policy_check check;
};
/* Computes them. The caller calls policy_report_free, also after a failure. Returns 0 or an exit code. */
int policy_report_make(const struct policy_data *data, const struct policy_settings *settings,
                       struct policy_report *report);
/* policy_check.c: adds whether the one policy of the report, with a budget, kept its promise in measured results.
 * Returns 0 or an exit code. */
int policy_check_make(struct policy_report *report, const struct results *measured);
void policy_check_put(vp_json_writer *writer, const struct policy_check *check);
void policy_report_free(struct policy_report *report);
void policy_document(const struct policy_report *report, struct document *document);
/* Writes the report as one object. */
void policy_put(vp_json_writer *writer, const struct policy_report *report);
/* Adds a line for each sample with the lookup's choice, or static's without fields; nothing for a curve. */
void policy_choices_write(const struct policy_report *report, struct text_buffer *out);
#endif
