/* command_merge.c: makes result files from the journals of a sweep's processes. The input is folders with journals.
 * Result files are written into one folder; a summary goes to stderr and with --json to stdout. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "sweep/result_write.h"
#include "sweep/journal.h"
#include "sweep/ranks.h"
#include "vlmprof_file.h"

#include <unistd.h>

static const struct option_spec MERGE_OPTIONS[] = {
    OPTION_GROUP("output"),
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the result files (default: the first DIR)"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL,
     "write the available results; missing ranks and points are counted in the files"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL,
     "print a JSON object instead of the table: files, P50s, accuracies, warnings"},
    OPTIONS_WITH_QUIET("print only errors on stderr, and no table"),
};

/* Prints the summary as JSON. Returns 0 or an exit code. */
static int print_merged(const char *folder, const char *status, const struct summaries *results,
                        const struct text_list *warnings) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("output_dir", folder), KEY("status", status));
    summaries_put(&writer, results);
    PUT(&writer, KEY_TEXTS("warnings", warnings), END_OBJECT);
    return json_end(&writer);
}

static int run_command(const struct options *options) {
    const char *folder = text_of(options, "output_dir") ? text_of(options, "output_dir")
                         : options->operand_count       ? options->operands[0]
                                                        : NULL;
    struct summaries results = {NULL, 0};
    struct text_list warnings = {NULL, 0};
    int64_t failed = 0, missing = 0;
    struct journal_index index = {0};
    int code = 0, fd = -1;
    if (!folder || !options->operand_count)
        return complain(EXIT_USAGE, "merge needs folders with journals: vlmprof merge DIR...");
    for (size_t i = 0; i < options->operand_count && !code; i++)
        code = ranks_read_folder(&index, options->operands[i], NULL);
    if (!code && !index.file_count)
        code = complain(EXIT_INPUT, "%s contains no sweep journal", options->operands[0]);
    if (!code) code = make_folder(folder);
    if (!code) vp_output_clean(folder);
    if (!code && (fd = ranks_lock(folder)) < 0) code = EXIT_OUTPUT;
    if (!code) code = ranks_merge(&index, folder, is_given(options, "partial"), &results);
    if (fd >= 0) close(fd);
    for (size_t i = 0; i < results.count; i++) {
        failed += results.items[i].failed;
        missing += results.items[i].missing;
    }
    if (!code && (failed || missing)) code = EXIT_WORK;
    summaries_warn(&results, &warnings);
    if (results.count) {
        int is_table = !is_given(options, "json") && !is_given(options, "quiet");
        int unwritten = is_table ? summaries_print(&results) : 0;
        if (unwritten) code = unwritten;
        for (size_t i = 0; i < warnings.count; i++) complain(0, "%s", warnings.items[i]);
        print_note("vlmprof: %zu result file%s from %d journal%s in %s (%lld point%s failed, %lld missing)\n",
                   results.count, plural_s((int64_t)results.count), index.file_count,
                   plural_s((int64_t)index.file_count), folder, (long long)failed, plural_s((int64_t)failed),
                   (long long)missing);
    }
    if (results.count && is_given(options, "json")) {
        const char *status = missing ? "partial" : failed ? "complete with failures" : "complete";
        int unwritten = print_merged(folder, status, &results, &warnings);
        if (unwritten) code = unwritten;
    }
    text_list_free(&warnings);
    summaries_free(&results);
    index_free(&index);
    return code;
}

const struct command command_merge = {
    "merge", "DIR...",
    "write result files from the journals of a sweep's processes, in one or more folders; needs no model",
    "vlmprof merge results\n  vlmprof merge node0/results node1/results --output_dir results --partial",
    SIZE_MAX, COMMAND_OPTIONS(MERGE_OPTIONS), NULL, run_command};
