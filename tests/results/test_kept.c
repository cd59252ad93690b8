/* test_kept.c: journals and result files written by earlier versions (tests/golden/journals, tests/golden/results). This program merges each journal to the same result
 * files, byte for byte; continues it without measuring anything again; and reads the result files in report, best, compare and fit (tests/golden/texts/kept-*).
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"

#define DATA "sweep --data tests/golden/journals/set.jsonl --image_dir tests/golden/images --quiet "
#define ENGINE DATA "--max_new_tokens 3 --device cpu --threads 1 --gemm plain "
#define SERVER DATA "--max_new_tokens 4 --endpoint http://127.0.0.1:47945 "
static const struct { const char *name, *sweep; int files, forms; } kept[] = {
    {"tiers", ENGINE "--synthetic tiny --num_runs_per_sample 2 --tier_list low medium --top_k_list 1 --num_active_blocks_list 2 --weights_list bf16 int8 "
     "--bare_every 2 --kernel_pass", 4, 2},
    {"tokens", ENGINE "--synthetic tiny --num_runs_per_sample 1 --vision_tokens_list 288 432 --head_weights int8", 2, 2},
    {"crops", ENGINE "--synthetic tiny-gemma3 --num_runs_per_sample 1 --bare_every 0 --image_knob max_num_crops=1,2", 2, 2},
    {"servers", SERVER "--endpoint_model model-a model-b --request_knob image_url.detail=low,high --family qwen2_vl --vision_tokens_list 60 "
     "--num_runs_per_sample 2 --same_image", 4, 3},
    {"twins", SERVER "--endpoint_model model-a --num_runs_per_sample 1 --twins 3 --same_image", 1, 3},
    /* the last version whose result files have a checksum in each row; its times are those of a clock that counts its readings */
    {"grid", "sweep --data samples/questions.jsonl --image_dir samples --quiet --max_new_tokens 3 --device cpu --threads 1 --gemm plain --synthetic tiny "
     "--num_runs_per_sample 1 --tier_list low medium high --top_k_list 1 2 --num_active_blocks_list 2 4 --num_samples 4", 12, 2}};
enum { KEPT = sizeof kept / sizeof *kept };

/* Removes the checksums of lines and rows, which not all versions wrote. */
static void remove_sums(char *text) {
    static const char member[] = ", \"sum\": \"0123456789abcdef\"";
    for (char *at = text; (at = strstr(at, ", \"sum\": \"")) != NULL;) memmove(at, at + sizeof member - 1, strlen(at + sizeof member - 1) + 1);
}
static void check_same(const char *one, const char *other) {
    char *a = text_of_file(one), *b = text_of_file(other);
    size_t at = 0;
    remove_sums(a);
    remove_sums(b);
    while (a[at] && a[at] == b[at]) at++;
    check_note(a[0] && a[at] == b[at], __FILE__, __LINE__, "%s differs from %s at byte %zu: %.60s / %.60s", one, other, at, a + at, b + at);
    FREE_ALL(a, b);
}
/* The folder contains every result file of tests/golden/results/NAME and no other. */
static void check_results(const char *name, int files) {
    char golden[300], path[600], other[600];
    struct dirent *entry;
    int count = 0;
    snprintf(golden, sizeof golden, "tests/golden/results/%s", name);
    DIR *directory = opendir(golden);
    while (directory && (entry = readdir(directory)) != NULL) {
        if (!strstr(entry->d_name, "_imgsize")) continue;
        snprintf(path, sizeof path, "%s/%.255s", golden, entry->d_name);
        snprintf(other, sizeof other, "%s/%s/%.255s", folder, name, entry->d_name);
        check_same(path, other);
        count++;
    }
    if (directory) closedir(directory);
    CHECK_INT(count, files);
    directory = opendir(in_folder(name));
    while (directory && (entry = readdir(directory)) != NULL) count -= strstr(entry->d_name, "_imgsize") != NULL;
    if (directory) closedir(directory);
    CHECK_INT(count, 0);
}
static void test_journal(int i) {
    char golden[300], path[600], *text;
    snprintf(golden, sizeof golden, "tests/golden/journals/%s/journal.jsonl", kept[i].name);
    snprintf(path, sizeof path, "%s/%s/journal.jsonl", folder, kept[i].name);
    for (int resumed = 0; resumed < 2; resumed++) {
        check_case(resumed ? "%s: a sweep that is gone on with" : "%s: merged", kept[i].name);
        make_empty(in_folder(kept[i].name));
        text = text_of_file(golden);
        write_text(path, text);
        free(text);
        if (resumed) run("%s --output_dir %%F/%s", kept[i].sweep, kept[i].name);
        else run("merge %%F/%s --quiet", kept[i].name);
        /* in sets of three samples, an image is missing, so its points failed */
        check_note(last.code == (strcmp(kept[i].name, "grid") != 0), __FILE__, __LINE__, "exit %d: %s", last.code, last.err);
        check_same(golden, path);
        check_results(kept[i].name, kept[i].files);
    }
}
static void test_readers(int i) {
    static const char *const reports[] = {"txt", "csv", "json"};
    char name[80];
    check_case("%s: report and best", kept[i].name);
    for (int k = 0; k < kept[i].forms; k++) {
        run("report tests/golden/results/%s --resamples 20 %s%s", kept[i].name, k ? "--" : "", k ? reports[k] : "");
        snprintf(name, sizeof name, "kept-%s.%s", kept[i].name, reports[k]);
        check_kept_run(name, 0);
    }
    run("best tests/golden/results/%s --budget_ms 1000 --resamples 20", kept[i].name);
    snprintf(name, sizeof name, "kept-%s-best.txt", kept[i].name);
    check_kept_run(name, last.code);
    run("compare tests/golden/results/%s tests/golden/results/%s", kept[i].name, kept[i].name);
    snprintf(name, sizeof name, "kept-%s-compare.txt", kept[i].name);
    check_kept_run(name, last.code);
    if (kept[i].files < 12) return; /* too few configurations for a latency model */
    run("fit tests/golden/results/%s", kept[i].name);
    snprintf(name, sizeof name, "kept-%s-fit.txt", kept[i].name);
    check_kept_run(name, 0);
}

/* the golden journal with its pairs overwritten: twins were requested but none was measured */
static void test_no_pairs(void) {
    char *text = text_of_file("tests/golden/journals/twins/journal.jsonl"), path[600];
    struct dirent *entry;
    int found = 0;
    check_case("twins without a pair: the result gives the reason for the missing number");
    for (char *at = text; (at = strstr(at, "\"pairs\": [{")) != NULL; at++) memset(at + 10, ' ', strcspn(at + 10, "]"));
    make_empty(in_folder("none"));
    write_text(in_folder("none/journal.jsonl"), text);
    free(text);
    run("merge %%F/none --quiet");
    DIR *directory = opendir(in_folder("none"));
    while (directory && (entry = readdir(directory)) != NULL) {
        if (!strstr(entry->d_name, "_imgsize")) continue;
        snprintf(path, sizeof path, "%s/none/%.255s", folder, entry->d_name);
        text = text_of_file(path);
        found += strstr(text, "\"T_image_outside\": \"no pair was measured\"") != NULL;
        free(text);
    }
    if (directory) closedir(directory);
    CHECK_INT(found, 1);
}

int main(void) {
    if (!program_begin("kept")) return 1;
    test_no_pairs();
    for (int i = 0; i < KEPT; i++) {
        test_journal(i);
        test_readers(i);
    }
    check_case("all files in one report");
    run("report tests/golden/results/tiers tests/golden/results/tokens tests/golden/results/servers --resamples 20 --csv");
    check_kept_run("kept-all.csv", 0);
    return program_done("test_kept");
}
