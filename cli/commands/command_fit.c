/* command_fit.c: a latency model from result files. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "report/result_read.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const option_spec FIT_OPTIONS[] = {
    {"features", CHOICE, "KIND", "physical", 0, 0, "physical seed mean",
     "of the model that is written: what the hardware does, the experiments' inputs, or none"},
    {"num_experts", COUNT, "N", NULL, 1, 1000000, NULL, "experts of the model, where the files do not say it"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "write the model there (short: -o)"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "write e3_latency_estimator.json there: the same model and errors"},
    OPTION_JSON,
    OPTION_HELP,
};

static void write_coefficients(document *d, const estimator *e) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Coefficients (%s features, 95 %% intervals)", ESTIMATE_KIND_KEYS[e->model.features]);
    table = document_table(d, "stage|feature|coefficient|interval|unit|state");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++)
        for (int c = 0; e->model.fitted[s] && c < e->model.fit[s].columns; c++) {
            const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
            double low = (double)NAN, high = (double)NAN;
            char unit[64];
            vp_linear_coefficient(&e->model.fit[s], c, ESTIMATE_LEVEL, &low, &high);
            text_list_add(table, "%s", part_name(s));
            text_list_add(table, "%s", name);
            text_list_add(table, "%.4g", e->model.fit[s].coefficient[c]);
            if (e->model.fit[s].state[c] == VP_LINEAR_USED && isfinite(low)) text_list_add(table, "[%.4g, %.4g]", low, high);
            else text_list_add(table, "-");
            text_list_add(table, "%s", unit_text(name, unit));
            text_list_add(table, "%s", LINEAR_STATE_KEYS[e->model.fit[s].state[c]]);
        }
}
static void write_fit(document *d, const estimator *e, const evaluation *v, const measurements *m) {
    if (e->warnings.count) document_text(d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < e->warnings.count; i++) document_text(d, BLOCK_LINE, "%s", e->warnings.items[i]);
    document_text(d, BLOCK_HEADING, "vlmprof fit: %zu measurements of %zu configurations, %zu image sizes", m->count, m->config_count, m->size_count);
    document_text(d, BLOCK_LINE, "model %s, %s", e->model_name, e->device);
    if (isfinite(v->noise))
        document_text(d, BLOCK_LINE, "the runs of a sample scatter so that the mean of its T_total is off by %.2f %% on average; "
                      "no MAPE of the total can be below that, and a load that drifts from sample to sample comes on top", 100 * v->noise);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        text_list *table;
        document_text(d, BLOCK_HEADING, "Errors of %s", part_name(part));
        table = document_table(d, "features|rows predicted|MAE ms|MAPE %|R2|P95 error ms|bias ms|rows");
        for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
            for (int split = 0; split < SPLIT_COUNT; split++)
                error_row(table, split ? "" : ESTIMATE_KIND_KEYS[kind], SPLIT_NAMES[split], &v->errors[kind][split][part]);
    }
    write_coefficients(d, e);
    if (v->reference_ms > 0) write_guardrails(d, v, SPLIT_NAMES[v->guardrail_split]);
}
static int run_command(const options *o) {
    const char *path = text_of(o, "output"), *folder = text_of(o, "output_dir");
    estimator *e;
    evaluation v;
    measurements m;
    results r;
    int64_t experts = 0;
    int kind = 0, code;
    if (!o->operand_count) return complain(EXIT_USAGE, "fit: give folders of result files; see vlmprof fit --help");
    if ((code = results_read(&r, o->operands, o->operand_count)) != 0) return code;
    while (strcmp(ESTIMATE_KIND_KEYS[kind], text_of(o, "features"))) kind++;
    e = zeroed(1, sizeof *e);
    if ((code = measurements_make(o, &r, &experts, &m, &e->warnings)) == 0)
        code = estimator_make(&m, &r, (vp_latency_features)kind, experts, e);
    if (!code) code = estimator_evaluate(&m, e->model.features, &v);
    if (!code && path) code = estimator_write(path, e, &v);
    if (!code && folder && (code = make_folder(folder)) == 0) {
        char *file = join_path(folder, "e3_latency_estimator.json");
        code = estimator_write(file, e, &v);
        free(file);
    }
    if (!code && given(o, "json")) code = estimator_print(e, &v);
    else if (!code) {
        document d = {NULL, 0};
        write_fit(&d, e, &v, &m);
        code = print_document(&d);
        document_free(&d);
    }
    measurements_free(&m);
    estimator_free(e);
    results_free(&r);
    return code;
}

const command command_fit = {
    "fit", "DIR... [-o MODEL.json]",
    "a model of each stage's latency from result files, and how far it is off on configurations it never saw",
    "vlmprof fit results -o model.json",
    SIZE_MAX, FIT_OPTIONS, sizeof FIT_OPTIONS / sizeof *FIT_OPTIONS, NULL, run_command};
