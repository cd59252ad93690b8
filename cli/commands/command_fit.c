/* command_fit.c: fits a latency model of the engine's stages to result files. It is written to a file. Its errors on
 * rows that the fit did not see, and its coefficients, are printed as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "report/model_file.h"
#include "results/result_read.h"
#include "vlmprof_latency.h"

#include <math.h>

static const struct option_spec FIT_OPTIONS[] = {
    OPTION_GROUP("model"),
    {"features", CHOICE, "KIND", "physical", 0, 0, "physical seed mean",
     "terms of the model: physical (work, such as blocks*sequence), seed (settings, such as top_k), mean (constant)"},
    {"num_experts", COUNT, "N", NULL, 1, 1000000, NULL, "number of experts, if the files do not contain it"},
    OPTION_GROUP("output"),
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "file for the model (short: -o)"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for e3_latency_estimator.json, which contains the same model "
                                                  "and its prediction errors"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* Writes the model to the path of --output or --output_dir. Returns 0 or an exit code. */
static int save_model(const struct options *options, const struct estimator *estimator,
                      const struct evaluation *evaluation) {
    const char *path = text_of(options, "output"), *folder = text_of(options, "output_dir");
    int code = path ? estimator_write(path, estimator, evaluation) : 0;
    if (!code && folder && (code = make_folder(folder)) == 0) {
        char *file = join_path(folder, "e3_latency_estimator.json");
        code = estimator_write(file, estimator, evaluation);
        free(file);
    }
    return code;
}
static void coefficients_add(struct text_list *table, const char *part, const vp_linear *fit,
                             const char *const *names) {
    for (int column = 0; column < fit->columns; column++) {
        double low = (double)NAN, high = (double)NAN;
        char unit[64];
        vp_linear_coefficient(fit, column, ESTIMATE_LEVEL, &low, &high);
        text_list_add(table, "%s", part);
        text_list_add(table, "%s", names[column]);
        text_list_add(table, "%.4g", fit->coefficient[column]);
        if (fit->state[column] == VP_LINEAR_USED && isfinite(low)) text_list_add(table, "[%.4g, %.4g]", low, high);
        else text_list_add(table, "-");
        text_list_add(table, "%s", unit_text(names[column], unit));
        text_list_add(table, "%s", LINEAR_STATE_KEYS[fit->state[column]]);
    }
}
static void write_coefficients(struct document *document, const struct estimator *estimator) {
    const char *names[VP_LATENCY_COLUMNS_LIMIT];
    document_text(document, BLOCK_HEADING, "Coefficients (%s features, 95 %% intervals)",
                  ESTIMATE_KIND_KEYS[estimator->model.features]);
    struct text_list *table = document_table(document, "stage|feature|coefficient|interval|unit|state");
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        stage_columns(estimator, stage, names);
        if (estimator->model.fitted[stage])
            coefficients_add(table, part_name(stage), &estimator->model.fit[stage], names);
    }
}
/* "vision = 0.84 + 19.5 views": the terms in use; the buffer's data is malloc'ed. */
static struct text_buffer formula_text(const char *part, const vp_linear *fit, const char *const *names) {
    struct text_buffer out = {NULL, 0, 0};
    int terms = 0;
    text_add_format(&out, "%s = ", part);
    for (int column = 0; column < fit->columns; column++) {
        const double coefficient = fit->coefficient[column];
        if (fit->state[column] != VP_LINEAR_USED) continue;
        text_add_string(&out, !terms++ ? coefficient < 0 ? "-" : "" : coefficient < 0 ? " - " : " + ");
        text_add_format(&out, "%.4g", fabs(coefficient));
        if (strcmp(names[column], "1")) text_add_format(&out, " %s", names[column]);
    }
    if (!terms) text_add_string(&out, "0");
    return out;
}
static void formula_add(struct document *document, const char *formula, const struct part_errors *held_out) {
    if (held_out->of.count && held_out->mape_high < 1e-8) /* only its rounding */
        document_text(document, BLOCK_LINE, "%s; MAPE below 0.000001 %%", formula);
    else if (held_out->of.count)
        document_text(document, BLOCK_LINE, "%s; MAPE %s %%", formula,
                      number_estimate(100, held_out->of.mape, held_out->mape_low, held_out->mape_high).text);
    else document_text(document, BLOCK_LINE, "%s", formula);
}
/* Writes the command's answer: the formula of each stage, with its error on configurations that the fit did not see. */
static void write_formulas(struct document *document, const struct estimator *estimator,
                           const struct evaluation *evaluation) {
    const int kind =
        estimator->model.features == VP_LATENCY_WEIGHTS ? VP_LATENCY_PHYSICAL : (int)estimator->model.features;
    const struct part_errors *held_out = evaluation->errors[kind][SPLIT_CONFIG];
    const char *names[VP_LATENCY_COLUMNS_LIMIT];
    struct text_buffer total = {NULL, 0, 0};
    document_text(document, BLOCK_HEADING, "Latency in "
                                           "ms; MAPE on configurations not seen by the fit [95 %% interval]");
    text_add_format(&total, "%s =", part_name(ESTIMATE_TOTAL));
    for (int stage = 0, terms = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        struct text_buffer formula;
        if (!estimator->model.fitted[stage]) continue;
        stage_columns(estimator, stage, names);
        formula = formula_text(part_name(stage), &estimator->model.fit[stage], names);
        formula_add(document, formula.data, &held_out[stage]);
        free(formula.data);
        text_add_format(&total, "%s %s", terms++ ? " +" : "", part_name(stage));
    }
    formula_add(document, total.data, &held_out[ESTIMATE_TOTAL]);
    free(total.data);
}
static void write_errors(struct document *document, const struct evaluation *evaluation) {
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        document_text(document, BLOCK_HEADING, "Errors of %s", part_name(part));
        struct text_list *table = document_table(document, "features|rows predicted|" ERROR_COLUMNS);
        for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
            for (int split = 0; split < SPLIT_COUNT; split++)
                error_row(table, split ? "" : ESTIMATE_KIND_KEYS[kind], SPLIT_NAMES[split],
                          &evaluation->errors[kind][split][part]);
    }
}
static void write_fit(struct document *document, const struct estimator *estimator, const struct evaluation *evaluation,
                      const struct measurements *measurements) {
    write_formulas(document, estimator, evaluation);
    document_list(document, "Warnings", &estimator->warnings);
    document_text(document, BLOCK_HEADING, "vlmprof fit: %zu measurement%s of %zu configuration%s, %zu image size%s",
                  measurements->count, plural_s((int64_t)measurements->count), measurements->config_count,
                  plural_s((int64_t)measurements->config_count), measurements->size_count,
                  plural_s((int64_t)measurements->size_count));
    document_text(document, BLOCK_LINE, "model %s, %s", estimator->model_name,
                  strcmp(estimator->device, "not said") ? estimator->device : "unknown device");
    document_text(document, BLOCK_LINE,
                  "predicted: the " ESTIMATE_LOCATION " time of requests with these inputs; measured: each sample's "
                  ESTIMATE_LOCATION " over its runs; bias: the " ESTIMATE_LOCATION " of predicted - measured");
    document_text(document, BLOCK_LINE,
                  "baselines: seed: linear in the settings (vision_tokens, top_k, ..); mean: the " ESTIMATE_LOCATION
                  " of the fitted rows");
    if (isfinite(evaluation->noise))
        document_text(
            document, BLOCK_LINE,
            "noise floor: the runs of a sample vary, so the mean of its T_total is off by %.2f %% on average; no model "
            "can reach a lower MAPE for the total, and a load that drifts between samples raises it",
            100 * evaluation->noise);
    write_errors(document, evaluation);
    write_coefficients(document, estimator);
}
static int fit_engine(const struct options *options, const struct results *results) {
    struct estimator *estimator;
    struct evaluation evaluation;
    struct measurements measurements;
    int64_t experts = 0;
    int kind = 0, code;
    while (strcmp(ESTIMATE_KIND_KEYS[kind], text_of(options, "features"))) kind++; /* the option allows no other word */
    estimator = zeroed(1, sizeof *estimator);
    memset(&measurements, 0, sizeof measurements);
    code = own_knobs_find(results, &estimator->own)
               ? measurements_make(number_of(options, "num_experts"), results, &experts, &estimator->own, &measurements,
                                   &estimator->warnings)
               : complain(EXIT_USAGE, "the files' own knobs have too many values for one model, which allows %d: fit "
                                      "them separately", VP_LATENCY_OWN);
    if (!code) code = estimator_make(&measurements, results, (vp_latency_features)kind, experts, estimator);
    if (!code) code = estimator_evaluate(&measurements, estimator->model.features, &evaluation);
    if (!code) warn_of_errors(&evaluation, kind, &estimator->warnings);
    if (!code) code = save_model(options, estimator, &evaluation);
    if (!code && is_given(options, "json")) code = estimator_print(estimator, &evaluation);
    else if (!code) {
        struct document document = {NULL, 0, NULL};
        write_fit(&document, estimator, &evaluation, &measurements);
        code = print_document(&document);
    }
    measurements_free(&measurements);
    estimator_free(estimator);
    return code;
}
static int run_command(const struct options *options) {
    struct results results;
    int code;
    if (!options->operand_count)
        return complain(EXIT_USAGE, "fit needs folders of result files; see vlmprof fit --help");
    if ((code = results_read(&results, options->operands, options->operand_count)) != 0) return code;
    code = fit_engine(options, &results);
    results_free(&results);
    return code;
}

const struct command command_fit = {
    "fit", "DIR... [-o MODEL.json]",
    "fit a model of the stages' mean latencies to result files, and report its error on unseen configurations",
    "vlmprof fit results\n  vlmprof fit results -o model.json",
    SIZE_MAX, COMMAND_OPTIONS(FIT_OPTIONS), NULL, run_command};
