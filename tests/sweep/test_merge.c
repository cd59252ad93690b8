/* test_merge.c: journals of two processes (tests/golden/journals) to result files, word by word (tests/golden/texts/merge-*): both, one, none; the output as a
 * table, as JSON, and with --quiet; result files in the layout of the reference's scripts. The numbers of the files are recomputed here from the journals' own lines.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"
#include <unistd.h>

static void copy_journal(const char *folder_name, int rank) {
    char from[100], to[200];
    size_t bytes = 0;
    snprintf(from, sizeof from, "tests/golden/journals/journal_rank%dof2.jsonl", rank);
    snprintf(to, sizeof to, "%s/journal_rank%dof2.jsonl", folder_name, rank);
    char *text = check_read(from, &bytes);
    if (CHECK(text != NULL)) write_file(in_folder(to), text, bytes);
    free(text);
}
static const char NAME[] = "set_imgsizetier-low_crops2_topk2_blocks4.json";
static char *text_in(const char *folder_name, const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder_name, name);
    return text_of_file(in_folder(path));
}
static void check_file(const char *folder_name) {
    char *text = text_in(folder_name, NAME);
    check_kept("merge-both-0.json", text);
    free(text);
}
static void test_both(void) {
    check_case("two journals in two folders: result files");
    make_empty(in_folder("a"));
    make_empty(in_folder("b"));
    copy_journal("a", 0);
    copy_journal("b", 1);
    run("merge %%F/a %%F/b --output_dir %%F/both/out");
    check_kept_run("merge-both.txt", 1);
    check_file("both/out");
    check_case("... as JSON, quietly, into the first folder");
    run("merge %%F/a %%F/b --json");
    check_kept_run("merge-json.txt", 1);
    check_file("a");
    run("merge %%F/a %%F/b --quiet");
    CHECK(last.code == 1 && !last.out[0] && !last.err[0]);
}
static void test_one(void) {
    check_case("one journal is not a whole sweep; with --partial, the files list the missing parts");
    make_empty(in_folder("one"));
    copy_journal("one", 0);
    check_refused(run("merge %%F/one"), 1, "rank 1 (no journal)");
    run("merge %%F/one --partial");
    check_kept_run("merge-partial.txt", 1);
    char *text = text_in("one", NAME);
    if (CHECK(read_json(text))) {
        CHECK(is_text(get(0, "status"), "partial"));
        CHECK_INT(whole(get(0, "num_ok")), 2);
        CHECK_INT(whole(get(0, "num_failed")), 0);
        CHECK_INT(whole(get(0, "num_missing")), 2);
        CHECK_INT(whole(get(0, "sessions")), 1);
        CHECK_INT(count_of(get(0, "per_sample_results")), 2);
    }
    free(text);
    run("merge %%F/one --partial --json --quiet");
    check_kept_run("merge-partial-json.txt", 1);
    check_case("rejections");
    check_refused(run("merge"), 2, "merge needs folders with journals");
    make_empty(in_folder("none"));
    check_refused(run("merge %%F/none"), 3, "contains no journal of a sweep");
    check_refused(run("merge %%F/gone"), 3, "gone");
    write_text(in_folder("file"), "");
    check_refused(run("merge %%F/one --partial --output_dir %%F/file"), 5, "a file of this name exists");
}
/* the first journal as a sweep of its own: nothing failed or is missing, so there is a table */
static void test_whole(void) {
    char *text = text_of_file("tests/golden/journals/journal_rank0of2.jsonl"), *at;
    check_case("a sweep without failures: a table, exit code 0");
    make_empty(in_folder("whole"));
    if ((at = strstr(text, "\"world_size\": 2")) != NULL) at[14] = '1';
    if ((at = strstr(text, "\"num_samples\": 4, \"content_hash")) != NULL) at[15] = '2';
    write_text(in_folder("whole/journal.jsonl"), text);
    free(text);
    run("merge %%F/whole --json");
    check_kept_run("merge-whole.txt", 0);
    run("merge %%F/whole --quiet");
    CHECK(last.code == 0 && !last.out[0] && !last.err[0]);
}
/* sums of the journal's own lines of the first sample */
static void test_numbers(void) {
    char *text = text_of_file(in_folder("a/set_imgsizetier-low_crops2_topk2_blocks4.json")), *journal = text_of_file("tests/golden/journals/journal_rank0of2.jsonl");
    const char *first = "{\"config\": \"set_imgsizetier-low_crops2_topk2_blocks4.json\", \"sample_id\": 0, ";
    double total = 0, vit = 0;
    int count = 0;
    check_case("the first sample's times are the means over its lines");
    for (const char *line = journal; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, first, strlen(first))) continue;
        if (!strstr(line, "\"run\": ") || strstr(line, "\"run\": ") > strchr(line, '\n')) continue;
        total += strtod(strstr(line, "\"total_ns\": ") + 12, NULL) / 1e6;
        vit += strtod(strstr(strstr(line, "\"vit\": [") + 8, ", ") + 2, NULL) / 1e6;
        count++;
    }
    CHECK_INT(count, 2);
    if (CHECK(read_json(text))) {
        uint32_t row = vp_json_at(&json, get(0, "per_sample_results"), 0);
        CHECK_NEAR(number(get(row, "T_total")), total / 2, 1e-9);
        CHECK_NEAR(number(get(get(row, "stages"), "vit")), vit / 2, 1e-9);
        CHECK_INT(count_of(get(0, "per_sample_results")), 4);
        CHECK_INT(whole(get(0, "num_failed")), 1);
        CHECK_INT(whole(get(0, "num_ok")), 3);
    }
    FREE_ALL(text, journal);
}

/* ---- --layout reference */
static const char *const LAID[] = {"set/combined_profiling_results_set_imgsizetier-low_crops2_topk2_blocks4.json",
                                   "set/combined_profiling_results_set_imgsizetier-medium_crops6_topk2_blocks4.json"};
/* writes FOLDER/low.json: the first result file with one text replaced */
static void write_changed(const char *folder_name, const char *from, const char *to) {
    char path[300], *text = text_in("a", NAME), *at = strstr(text, from), *changed = (char *)malloc(strlen(text) + strlen(to) + 1);
    make_empty(in_folder(folder_name));
    if (CHECK(at != NULL)) sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    else changed[0] = 0;
    snprintf(path, sizeof path, "%s/low.json", folder_name);
    write_text(in_folder(path), changed);
    FREE_ALL(changed, text);
}
static void test_layout(void) {
    check_case("--layout reference: file names of the reference's scripts; rows that lack a needed number are omitted");
    run("merge %%F/a --layout reference --output_dir %%F/laid");
    CHECK_INT(last.code, 0);
    CHECK_TEXT(last.out, "");
    CHECK(strstr(last.err, "low_crops2_topk2_blocks4.json: 3 of 4 rows were skipped: a tier or a number is missing"));
    CHECK(strstr(last.err, "vlmprof: 2 result files laid out in "));
    char *text = text_in("laid", LAID[0]);
    if (CHECK(read_json(text))) {
        uint32_t rows = get(0, "per_sample_results");
        uint32_t row = vp_json_at(&json, rows, 0);
        CHECK_INT(count_of(rows), 1); /* of the others, one failed, one has no image, and one has no score */
        CHECK_INT(whole(get(row, "sample_id")), 0);
        CHECK(number(get(row, "T_total")) > 0 && number(get(row, "accuracy")) >= 0);
        CHECK(number(get(get(0, "aggregate_stats"), "T_total_p50")) > 0);
    }
    free(text);
    check_case("... a run may overwrite the files of the previous run; --json lists them, --quiet prints nothing");
    run("merge %%F/a --layout reference --output_dir %%F/laid --json --quiet");
    CHECK_INT(last.code, 0);
    CHECK_TEXT(last.err, "");
    char *words = text_of_file(in_folder("stdout"));
    if (CHECK(read_json(words))) {
        CHECK_INT(count_of(get(0, "files")), 2);
        CHECK_INT(count_of(get(0, "warnings")), 2);
    }
    free(words);
    check_case("... a file with only such rows is copied byte by byte, and its name does not grow");
    run("merge %%F/laid/set --layout reference --output_dir %%F/again");
    CHECK_INT(last.code, 0);
    text = text_in("laid", LAID[1]);
    char *copy = text_in("again", LAID[1]);
    CHECK(text[0] && !strcmp(text, copy));
    FREE_ALL(text, copy);
    check_case("... an underscore in the task's name becomes a hyphen in the folder's");
    write_changed("under", "\"dataset_name\": \"set\"", "\"dataset_name\": \"a_b_set\"");
    run("merge %%F/under --layout reference --output_dir %%F/laid-under");
    CHECK_INT(last.code, 0);
    text = text_in("laid-under", "a-b-set/combined_profiling_results_low.json");
    CHECK(text[0] == '{');
    free(text);
    check_case("... a file that the scripts cannot use is omitted: exit code 1");
    write_changed("null", "\"max_crops\": 3,", "\"max_crops\": null,");
    run("merge %%F/null --layout reference --output_dir %%F/laid-null");
    CHECK_INT(last.code, 1);
    CHECK(strstr(last.err, "low.json was skipped: the scripts need its \"max_crops\""));
}
static void test_layout_refusals(void) {
    check_case("--layout reference: rejections");
    check_refused(run("merge %%F/a --layout reference"), 2, "--layout needs --output_dir");
    check_refused(run("merge %%F/a --layout reference --output_dir %%F/x --partial"), 2, "--layout and --partial cannot be used together");
    run("merge %%F/a --layout other --output_dir %%F/x");
    CHECK_INT(last.code, 2);
    check_refused(run("merge %%F/none --layout reference --output_dir %%F/x"), 3, "contains no result file of a sweep");
    check_refused(run("merge %%F/gone --layout reference --output_dir %%F/x"), 3, "gone");
    check_refused(run("merge %%F/a %%F/both/out --layout reference --output_dir %%F/x"), 3, "are the same configuration");
    write_changed("up", "\"dataset_name\": \"set\"", "\"dataset_name\": \"../set\"");
    check_refused(run("merge %%F/up --layout reference --output_dir %%F/x"), 3, "is not a valid folder name");
    write_changed("plan", "\"plan\": \"", "\"plan\": \"0");
    check_refused(run("merge %%F/a %%F/plan --layout reference --output_dir %%F/x"), 3, "one task but two sweeps");
    check_refused(run("merge %%F/plan --layout reference --output_dir %%F/laid"), 2, "belongs to another plan");
    CHECK(access(in_folder("x"), F_OK) != 0);
    check_case("... a foreign JSON file in the task's folder is kept, and nothing is written next to it");
    make_empty(in_folder("foreign"));
    make_empty(in_folder("foreign/set"));
    write_text(in_folder("foreign/set/notes.json"), "{}");
    check_refused(run("merge %%F/a --layout reference --output_dir %%F/foreign"), 5, "notes.json exists and is not a result file of vlmprof");
    char *text = text_in("foreign", "set/notes.json");
    CHECK_TEXT(text, "{}");
    free(text);
    text = text_in("foreign", LAID[0]);
    CHECK_TEXT(text, "");
    free(text);
    check_refused(run("merge %%F/a --layout reference --output_dir %%F/file"), 5, "a file of this name exists");
}

int main(void) {
    if (!program_begin("merge")) return 1;
    RUN_TESTS(test_both, test_one, test_whole, test_numbers, test_layout, test_layout_refusals);
    free(json_nodes);
    return program_done("test_merge");
}
