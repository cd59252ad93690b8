/* test_merge.c: journals of two processes (tests/golden/journals) to result files, word by word (tests/golden/texts/merge-*): both, one, none; the output as a
 * table, as JSON, and with --quiet. The numbers of the files are recomputed here from the journals' own lines.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

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
    check_refused(run("merge %%F/none"), 3, "contains no sweep journal");
    check_refused(run("merge %%F/gone"), 3, "gone");
    write_text(in_folder("file"), "");
    check_refused(run("merge %%F/one --partial --output_dir %%F/file"), 5, "a file with this name already exists");
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

int main(void) {
    if (!program_begin("merge")) return 1;
    RUN_TESTS(test_both, test_one, test_whole, test_numbers);
    free(json_nodes);
    return program_done("test_merge");
}
