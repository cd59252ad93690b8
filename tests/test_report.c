/* test_report.c: result files -> answers. Reports, the best configuration and comparisons, on sweeps that this program writes itself with a known
 * truth: which configurations are on the front, what each knob does, how much slower a build became. Also the experiments' own files (as
 * formats of their repository have them), damaged files of every kind, exit codes and the shape of CSV, Markdown and JSON.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. REPORT_LARGE=1 adds 336 x 1,000 samples. */
#define _POSIX_C_SOURCE 200809L
#define VLMPROF_CORE
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"
#include "scan.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256]; /* everything the tests write */
static const char *program = "./vlmprof";

static const char *in_folder(const char *name) {
    static char paths[8][512];
    static int turn;
    char *p = paths[turn++ & 7];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}
static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    if (!f || fputs(text, f) < 0) CHECK(!"a test file can be written");
    if (f) fclose(f);
}
static void remove_folder(const char *path) {
    DIR *d = opendir(path);
    struct dirent *e;
    char name[1024];
    while (d && (e = readdir(d)) != NULL) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name)) remove_folder(name);
    }
    if (d) closedir(d);
    rmdir(path);
}
static void make_empty(const char *path) {
    remove_folder(path);
    if (mkdir(path, 0777)) CHECK(!"a test folder can be made");
}

/* ---- running the program; %F in a command stands for the test folder */
static struct { int code; char *out, *err; } last;
static int run(const char *format, ...) {
    char command[2048], line[4096];
    va_list list;
    size_t used = 0;
    int status;
    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    used = (size_t)snprintf(line, sizeof line, "%s ", program);
    for (const char *p = command; *p && used < sizeof line - 300; p++) {
        if (p[0] == '%' && p[1] == 'F') { used += (size_t)snprintf(line + used, sizeof line - used, "%s", folder); p++; }
        else line[used++] = *p;
    }
    snprintf(line + used, sizeof line - used, " >%s/stdout 2>%s/stderr </dev/null", folder, folder);
    status = system(line);
    free(last.out);
    free(last.err);
    last.out = check_read(in_folder("stdout"), NULL);
    last.err = check_read(in_folder("stderr"), NULL);
    if (!last.out) last.out = (char *)calloc(1, 1);
    if (!last.err) last.err = (char *)calloc(1, 1);
    last.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return last.code;
}
static int lines_of(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}
/* exit code, one line on stderr that holds `word`, nothing on stdout */
static void check_refused(int code, const char *word) {
    CHECK_INT(last.code, code);
    CHECK_INT(lines_of(last.err), 1);
    CHECK_TEXT(last.out, "");
    check_note(strstr(last.err, word) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", word, last.err);
}

/* ---- the experiments' own files: no schema, per token divided by the tokens, rows in any order */
static void write_foreign(const char *path, const char *stats, const char *rows) {
    char text[8192];
    snprintf(text, sizeof text,
             "{\"tier\": \"low\", \"tier_range\": {\"min_crops\": 1, \"max_crops\": 3}, \"max_crops\": 3, \"selected_crops_mean\": 2.0,\n"
             " \"target_vision_tokens_mean\": 432.0, \"actual_vision_tokens_mean\": 400.0, \"top_k\": 4, \"num_active_blocks\": 12,\n"
             " \"num_total_blocks\": 16, \"active_block_indices\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15], \"num_samples\": 3, \"accuracy\": 0.6,\n"
             " \"accuracy_std\": 0.2, \"%s\": {\"T_total_mean\": 200.0}, \"per_sample_results\": [%s]}", stats, rows);
    write_text(path, text);
}
#define FOREIGN_ROW(id, total, decode, tokens, accuracy) \
    "{\"sample_id\": " id ", \"tier\": \"low\", \"top_k\": 4, \"num_active_blocks\": 12, \"output_tokens\": " tokens ", \"content_tokens\": 1," \
    "\"ends_with_eos\": true, \"actual_image_size\": [336, 560], \"actual_num_crops\": 2, \"actual_tiling\": [1, 2]," \
    "\"target_vision_tokens\": 432, \"actual_vision_tokens\": 384, \"actual_text_tokens\": 20, \"total_sequence_length\": 424," \
    "\"accuracy\": " accuracy ", \"pred\": \"a\", \"metadata\": {}, \"T_vision_total\": 12.0, \"T_LLM_prefill\": 99.0," \
    "\"T_LLM_decode\": " decode ", \"T_total\": " total ", \"T_decode_per_token\": 19.5, \"T_decode_per_step\": [[19.0, 19.2]]}"
#define FOREIGN_ROWS FOREIGN_ROW("7", "160.0", "39.0", "2", "1.0") "," FOREIGN_ROW("3", "150.0", "80.0", "3", "0.3") "," FOREIGN_ROW("5", "140.0", "0.0", "1", "0.6")

static void test_foreign(void) {
    static const char *const names[] = {"latency_stats", "aggregate_stats"};
    for (int i = 0; i < 2; i++) {
        check_case("a file of the experiments, with %s", names[i]);
        make_empty(in_folder("foreign"));
        write_foreign(in_folder("foreign/text-vqa_imgsizetier-low_crops2_topk4_blocks12.json"), names[i], FOREIGN_ROWS);
        CHECK_INT(run("report %%F/foreign"), 0);
        CHECK(strstr(last.out, "text-vqa") && strstr(last.out, "low k4 b12") && strstr(last.out, "150.0"));
    }
}

static void damage(const char *what, const char *stats, const char *rows, const char *word) {
    check_case("damaged: %s", what);
    make_empty(in_folder("bad"));
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), stats, rows);
    run("report %%F/bad");
    check_refused(3, word);
    CHECK(strstr(last.err, "t_imgsizetier-low") != NULL);
}
static void test_damaged(void) {
    static const char *const whole = "{\"top_k\": 4, \"num_active_blocks\": 12, \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": 5}]}";
    char cut[200], path[512];
    int good = 0;
    snprintf(path, sizeof path, "%s", in_folder("bad/t_imgsize.json"));
    damage("an id that stands twice", "latency_stats", FOREIGN_ROW("7", "1", "1", "2", "1") "," FOREIGN_ROW("7", "1", "1", "2", "1"), "sample_id 7");
    damage("a negative time", "latency_stats", FOREIGN_ROW("7", "-160.0", "39.0", "2", "1.0"), "per_sample_results[0], byte");
    damage("a text where a time should be", "latency_stats", FOREIGN_ROW("7", "\"fast\"", "39.0", "2", "1.0"), "T_total is no number");
    damage("a time past all measure", "latency_stats", FOREIGN_ROW("7", "1e300", "39.0", "2", "1.0"), "T_total is out of range");
    damage("a number past double", "latency_stats", FOREIGN_ROW("7", "1e999", "39.0", "2", "1.0"), "T_total is no number");
    damage("no total", "latency_stats", "{\"sample_id\": 1}", "T_total is missing");
    damage("no id", "latency_stats", "{\"T_total\": 1}", "sample_id is missing");
    damage("half an id", "latency_stats", FOREIGN_ROW("7.5", "1", "1", "2", "1"), "sample_id is no whole number");
    damage("a row that is no object", "latency_stats", "[1]", "is no object");
    damage("no row", "latency_stats", "", "is empty");
    damage("no JSON", "latency_stats", "{", "byte");
    check_case("a file cut anywhere is refused");
    make_empty(in_folder("bad"));
    for (size_t bytes = 0; bytes < strlen(whole); bytes += 7) {
        snprintf(cut, sizeof cut, "%.*s", (int)bytes, whole);
        write_text(path, cut);
        run("report %%F/bad");
        check_refused(3, "t_imgsize.json");
        good++;
    }
    CHECK(good > 10);
    write_text(path, whole);
    CHECK_INT(run("report %%F/bad"), 0);
    check_case("settings that make no sense");
    write_text(path, "{\"top_k\": 0, \"num_active_blocks\": 1, \"per_sample_results\": []}");
    run("report %%F/bad");
    check_refused(3, "top_k");
    write_text(path, "{\"top_k\": 1, \"num_active_blocks\": -1, \"per_sample_results\": []}");
    run("report %%F/bad");
    check_refused(3, "num_active_blocks");
    write_text(path, "{\"per_sample_results\": 7}");
    run("report %%F/bad");
    check_refused(3, "no result file");
    check_case("nothing to read");
    make_empty(in_folder("bad"));
    run("report %%F/bad");
    check_refused(3, "no result files");
    run("report %%F/none");
    check_refused(3, "none");
    write_text(in_folder("bad/notes.json"), "{\"a\": 1}");
    run("report %%F/bad");
    check_refused(3, "no result file in it");
    run("report %%F/bad/notes.json");
    check_refused(3, "no per_sample_results");
    run("report");
    check_refused(2, "give a folder");
    check_case("a file that is no result is told once");
    write_text(in_folder("bad/other.json"), "nonsense");
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    CHECK_INT(run("report %%F/bad"), 0);
    CHECK(strstr(last.out, "notes.json and others are no result files") != NULL);
}

int main(void) {
    char name[] = "/tmp/vlmprof-report-XXXXXX";
    if (getenv("PROGRAM")) program = getenv("PROGRAM");
    if (!mkdtemp(name)) return 1;
    snprintf(folder, sizeof folder, "%s", name);
    test_foreign();
    test_damaged();
    remove_folder(folder);
    free(last.out);
    free(last.err);
    return check_done("test_report");
}
