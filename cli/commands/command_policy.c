/* command_policy.c: what a policy that chooses a configuration for each sample can gain. The input is result files of
 * one data set; policies are printed as text or JSON, and the table is written as a file of choices. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "report/policy.h"
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec POLICY_OPTIONS[] = {
    OPTION_GROUP("what to compare"),
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL,
     "latency budget in ms; without it, the gain is shown for a range of mean budgets"},
    {"budget", CHOICE, "WHAT", "mean", 0, 0, "mean each p95",
     "what must not exceed --budget_ms: the mean latency, each sample's latency, or the P95", .needs = "budget_ms"},
    {"by", TEXTS, "FIELD...", NULL, 0, 0, NULL,
     "fit a lookup table to fields that are known before a request: record fields (kind, difficulty, ...), or "
     "image_pixels, aspect, text_tokens, image_tokens (at the largest image setting); numbers are split at quantiles"},
    {"choices", TEXTS, "FILE...", NULL, 0, 0, NULL,
     "evaluate your own policy: one line {\"id\": ID, \"knobs\": {KNOB: VALUE}} or {\"id\": ID, \"config\": NAME} per "
     "sample"},
    {"check", TEXTS, "DIR...", NULL, 0, 0, NULL,
     "check whether the policy kept its promise, in results of sweep --choices, which alternates the policy with "
     "the best single configuration; exits 1 if it did not", .needs = "budget_ms"},
    {"overhead_ms", REAL, "MS", "0", 0, 1000000, NULL,
     "time that a choice takes, added to every request except for static and mixture"},
    {"folds", COUNT, "K", "5", 2, 20, NULL, "cross-validation folds for static, mixture and lookup"},
    OPTION_LATENCY,
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, "data set to use, if the files come from several"},
    OPTION_AT,
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "seed for folds, resamples and shuffles"},
    OPTION_GROUP("output"),
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "write policy.json and, with --budget_ms, the lookup's choices to choices.jsonl, for sweep --choices"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

static struct policy_settings settings_of(const struct options *options) {
    static const char *const kinds[] = {"mean", "each", "p95"};
    struct policy_settings settings = {.options = vp_policy_options_default(),
                                       .axis = axis_of(text_of(options, "latency"))};
    const struct option_value *by = opt(options, "by"), *choices = opt(options, "choices");
    for (size_t i = 0; i < by->count; i++) text_list_copy(&settings.by, by->items[i]);
    for (size_t i = 0; i < choices->count; i++) text_list_copy(&settings.choices, choices->items[i]);
    if (is_given(options, "budget_ms")) settings.options.budget_ms = opt(options, "budget_ms")->real;
    while (strcmp(kinds[settings.options.budget], text_of(options, "budget"))) settings.options.budget++;
    settings.options.overhead_ms = opt(options, "overhead_ms")->real;
    settings.options.folds = (size_t)number_of(options, "folds");
    settings.options.seed = (uint32_t)number_of(options, "seed");
    return settings;
}
static int write_files(const struct policy_report *report, const char *folder) {
    struct text_buffer json = {NULL, 0, 0}, choices = {NULL, 0, 0};
    vp_json_writer writer;
    int code = make_folder(folder);
    vp_json_writer_init_sink(&writer, text_sink, &json, 1);
    policy_put(&writer, report);
    vp_json_finish(&writer);
    policy_choices_write(report, &choices);
    if (!code) code = file_write_whole(folder, "policy.json", json.data, json.bytes);
    if (!code && choices.bytes) code = file_write_whole(folder, "choices.jsonl", choices.data, choices.bytes);
    FREE_ALL(json.data, choices.data);
    return code;
}
static int show_report(const struct options *options, const struct policy_report *report) {
    const char *folder = text_of(options, "output_dir");
    struct document document = {NULL, 0, NULL};
    vp_json_writer writer;
    int code = 0;
    if (folder && (code = write_files(report, folder)) != 0) return code;
    if (is_given(options, "json")) {
        vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
        policy_put(&writer, report);
        code = json_end(&writer);
    } else {
        policy_document(report, &document);
        code = print_document(&document);
    }
    for (size_t i = 0; i < report->part_count && !code; i++) {
        int is_met = 0;
        for (size_t k = 0; k < report->parts[i].row_count; k++) is_met |= report->parts[i].rows[k].row.feasible;
        if (!is_met) code = complain(EXIT_WORK, "policy: no policy meets the budget");
    }
    return code ? code : report->check.verdict && !strncmp(report->check.verdict, "not", 3) ? EXIT_WORK : 0;
}
static int run_command(const struct options *options) {
    struct policy_settings settings;
    struct results results, measured = {0};
    struct policy_data data = {0};
    struct policy_report report = {0};
    struct text_list warnings = {NULL, 0};
    const struct result_group *group;
    int code;
    if (!options->operand_count)
        return complain(EXIT_USAGE, "policy needs a folder of result files; see vlmprof policy --help");
    if (opt(options, "by")->count > VP_POLICY_FIELDS_LIMIT)
        return complain(EXIT_USAGE, "--by: at most %d fields", VP_POLICY_FIELDS_LIMIT);
    if (is_given(options, "budget_ms") && !(opt(options, "budget_ms")->real > 0))
        return complain(EXIT_USAGE, "--budget_ms must be above 0");
    if ((code = results_read_at(&results, options->operands, options->operand_count, opt(options, "at"))) != 0)
        return code;
    settings = settings_of(options);
    results_warn_of_noise(&results, &warnings);
    for (size_t i = 0; i < warnings.count; i++) print_note("vlmprof: %s\n", warnings.items[i]);
    group = group_of_options(&results, options, &code);
    if (!code) code = policy_data_read(&results, group, &settings, &data);
    if (!code) code = policy_report_make(&data, &settings, &report);
    if (!code && is_given(options, "check"))
        code = results_read(&measured, opt(options, "check")->items, opt(options, "check")->count);
    if (!code && measured.count) code = policy_check_make(&report, &measured);
    if (!code) code = show_report(options, &report);
    policy_report_free(&report);
    policy_data_free(&data);
    text_list_free(&settings.by);
    text_list_free(&settings.choices);
    text_list_free(&warnings);
    results_free(&results);
    results_free(&measured);
    return code;
}

const struct command command_policy = {
    "policy",
    "DIR... [--budget_ms MS] [--by FIELD...] [--choices FILE...] [--check DIR...]",
    "find out how much choosing a configuration for each sample can gain over the best single one",
    "vlmprof policy results --budget_ms 250 --by kind image_pixels\n"
    "  vlmprof policy results --budget_ms 250 --by kind --output_dir policy",
    SIZE_MAX,
    COMMAND_OPTIONS(POLICY_OPTIONS),
    NULL,
    run_command};
