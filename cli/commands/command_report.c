/* command_report.c: shows where the time of a sweep goes, and the accuracy it buys. The result files become one report.
 * It is written in the requested form to stdout or to a file, or in all forms into a folder. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "page/report_page.h"
#include "report/report.h"
#include "report/report_text.h"
#include "results/result_read.h"

static const struct option_spec REPORT_OPTIONS[] = {
    OPTION_GROUP("what to compare"),
    {"latency", CHOICE, "PART", "total", 0, 0, "total vision prefill decode ttft energy token_energy",
     "x axis of accuracy plots: a latency, or the energy per request or per output token (GPU)"},
    {"percentile", CHOICE, "P", "50", 0, 0, "50 95 99 mean", "percentile of that latency over the samples"},
    OPTION_RESAMPLES,
    {"peak_tflops", REAL, "T", NULL, 0, 1000000, NULL,
     "the device's peak TFLOP/s (default: the highest that any stage reaches in these results)"},
    {"peak_gbs", REAL, "G", NULL, 0, 1000000, NULL,
     "the device's peak GB/s (default: the highest that any stage reaches in these results)"},
    {"by", TEXT, "FIELD", NULL, 0, 0, NULL,
     "also report the accuracy for each value of a record field, such as category, split or question_type"},
    OPTION_GROUP("output"),
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL,
     "write report.html, report.txt, report.csv, e1_stage_decomposition.json and e2_pareto_coupling.json to this "
     "folder"},
    {"html", MAYBE, "[=FILE]", NULL, 0, 0, NULL,
     "write an HTML page with plots to stdout or FILE; the page needs no network"},
    {"csv", FLAG, NULL, NULL, 0, 0, NULL, "print CSV, one row per configuration, instead of text"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

typedef enum report_form { FORM_TEXT, FORM_CSV, FORM_JSON, FORM_HTML, FORM_E1, FORM_E2, FORM_COUNT } report_form;
/* Appends the report as JSON: e1, e2, or an object with both. */
static void report_json_write(const struct report *report, report_form form, struct text_buffer *out) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, out, 1);
    if (form == FORM_JSON) {
        PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-1"));
        vp_json_key(&writer, "e1_stage_decomposition");
    }
    if (form != FORM_E2) report_put_e1(&writer, report);
    if (form == FORM_JSON) vp_json_key(&writer, "e2_pareto_coupling");
    if (form != FORM_E1) report_put_e2(&writer, report);
    if (form == FORM_JSON) vp_json_end_object(&writer);
    vp_json_finish(&writer);
    text_add_string(out, "\n");
}
static void report_form_write(const struct report *report, report_form form, struct text_buffer *out) {
    if (form == FORM_TEXT) {
        struct document document = {NULL, 0, NULL};
        report_text_write(&document, report);
        document_print(&document, out);
        document_free(&document);
    } else if (form == FORM_HTML) report_page_write(report, out);
    else if (form == FORM_CSV) report_csv(out, report);
    else report_json_write(report, form, out);
}
static int write_report_files(const struct report *report, const char *folder) {
    static const struct {
        const char *name;
        report_form form;
    } files[] = {{"report.txt", FORM_TEXT},
                 {"report.csv", FORM_CSV},
                 {"report.html", FORM_HTML},
                 {"e1_stage_decomposition.json", FORM_E1},
                 {"e2_pareto_coupling.json", FORM_E2}};
    int code = make_folder(folder);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !code; i++) {
        struct text_buffer out = {NULL, 0, 0};
        report_form_write(report, files[i].form, &out);
        code = file_write_whole(folder, files[i].name, out.data, out.bytes);
        free(out.data);
    }
    return code;
}
static int run_command(const struct options *options) {
    static const char *const forms[] = {"", "csv", "json", "html"};
    struct report_settings settings = report_settings_of(options);
    report_form form = FORM_TEXT;
    struct results results;
    struct report report;
    int code = 0, asked = 0;
    if (!options->operand_count)
        return complain(EXIT_USAGE, "report needs a folder of result files; see vlmprof report --help");
    for (int i = FORM_CSV; i <= FORM_HTML; i++)
        if (is_given(options, forms[i])) {
            form = (report_form)i;
            asked++;
        }
    if (asked > 1)
        return complain(EXIT_USAGE,
                        "report: give only one of --csv, --json and --html, or --output_dir for all of them");
    if (is_given(options, "peak_tflops")) settings.peak_tflops = opt(options, "peak_tflops")->real;
    if (is_given(options, "peak_gbs")) settings.peak_gbs = opt(options, "peak_gbs")->real;
    if ((code = results_read(&results, options->operands, options->operand_count)) != 0) return code;
    report_make(&report, &results, &settings);
    if ((code = report_add_categories(&report, text_of(options, "by"))) != 0) {
        report_free(&report);
        results_free(&results);
        return code;
    }
    for (size_t i = 0; i < report.warnings.count && form == FORM_CSV; i++)
        print_note("vlmprof: %s\n", report.warnings.items[i]);
    if (text_of(options, "output_dir")) code = write_report_files(&report, text_of(options, "output_dir"));
    if (!code && (asked || !text_of(options, "output_dir"))) {
        struct text_buffer out = {NULL, 0, 0};
        report_form_write(&report, form, &out);
        const char *page = form == FORM_HTML ? text_of(options, "html") : NULL;
        code = page ? file_write_text(page, &out) : print_whole(&out);
        if (page && !code) print_note("vlmprof: the page is in %s\n", page);
        free(out.data);
    } else if (!code)
        print_note("vlmprof: report.html, report.txt, report.csv, e1_stage_decomposition.json, e2_pareto_coupling.json "
                   "in %s\n",
                   text_of(options, "output_dir"));
    report_free(&report);
    results_free(&results);
    return code;
}

const struct command command_report = {
    "report", "DIR...",
    "show where a sweep's time goes, and what accuracy it buys",
    "vlmprof report results\n  vlmprof report results --output_dir results/report",
    SIZE_MAX, COMMAND_OPTIONS(REPORT_OPTIONS), NULL, run_command};
