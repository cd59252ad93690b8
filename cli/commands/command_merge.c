/* command_merge.c: result files from the journals of a sweep's processes. */
#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "sweep/journal.h"
#include "sweep/ranks.h"
#include "sweep/result_write.h"
#include "vlmprof.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const option_spec MERGE_OPTIONS[] = {
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the result files (default: the first DIR)"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL,
     "write what is there: ranks, points that are missing are counted in the files"},
    OPTION_JSON_OF_FILES,
    OPTION_QUIET,
    OPTION_HELP,
};

static int run_command(const options *o) {
    const char *folder = text_of(o, "output_dir") ? text_of(o, "output_dir") : o->operand_count ? o->operands[0] : NULL;
    summaries results = {NULL, 0};
    int64_t failed = 0, missing = 0;
    book b;
    int code = 0, fd = -1;
    if (!folder || !o->operand_count) return complain(EXIT_USAGE, "merge needs the folders with the journals: vlmprof merge DIR...");
    memset(&b, 0, sizeof b);
    for (size_t i = 0; i < o->operand_count && !code; i++) code = ranks_read_folder(&b, o->operands[i], NULL);
    if (!code && !b.file_count) code = complain(EXIT_INPUT, "%s: there is no journal of a sweep in it", o->operands[0]);
    if (!code) code = make_folder(folder);
    if (!code && (fd = ranks_lock(folder)) < 0) code = EXIT_OUTPUT;
    if (!code) code = ranks_merge(&b, folder, given(o, "partial"), &results);
    if (fd >= 0) close(fd);
    for (size_t i = 0; i < results.count; i++) { failed += results.items[i].failed; missing += results.items[i].missing; }
    if (!code && (failed || missing)) code = EXIT_WORK;
    if (results.count && !given(o, "quiet")) {
        if (!code || isatty(STDERR_FILENO)) summaries_print(&results);
        fprintf(stderr, "vlmprof: %zu result files from %d journals in %s (%lld points failed, %lld missing)\n", results.count, b.file_count, folder,
                (long long)failed, (long long)missing);
    }
    if (results.count && given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 1);
        vp_json_begin_object(&w);
        put_text(&w, "output_dir", folder);
        put_text(&w, "status", missing ? "partial" : failed ? "complete with failures" : "complete");
        summaries_put(&w, &results);
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) code = complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
    }
    summaries_free(&results);
    book_free(&b);
    return code;
}

const command command_merge = {
    "merge", "DIR...",
    "result files from the journals of a sweep's processes, wherever these lie; needs no model",
    "vlmprof merge results\n  vlmprof merge node0/results node1/results --output_dir results --partial",
    SIZE_MAX, MERGE_OPTIONS, sizeof MERGE_OPTIONS / sizeof *MERGE_OPTIONS, NULL, run_command};
