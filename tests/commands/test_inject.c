/* test_inject.c: run, sweep, merge and report, in which the n-th call of a kind fails (tests/commands/fault_injector.c): memory, mmap, opening, reading, writing, fsync,
 * rename. Each must end by itself with the exit code given in the help, with a message, leave no half-written file, and lose nothing: the same command, run again without
 * faults, gives the result of an unbroken run. The failing calls are spread over the life of the command: some, four times as many with VLMPROF_TEST_ALL=1, all with
 * INJECT_ALL=1. Runs $B/tests/vlmprof-hooks with $B/tests/fault_injector.so. */
#define _GNU_SOURCE 1
#include "fault_injector.h"
#include "support/command.h"
#include "support/page_reader.h"
#include "support/server_command.h"
#include "vlmprof.h"

#define IMAGE "tests/golden/images/img-200x150.png "
#define SHORT "--max_new_tokens 2 --threads 1 --gemm plain "
#define GRID "--image_knob max_pixels=16384 --top_k_list 1 2 --num_active_blocks_list 2 --num_runs_per_sample 1 --bare_every 0 "
static const struct walk {
    const char *name, *words;
    const char *again; /* the same command without faults if it needs other words; NULL if not */
    int places;        /* maximum number of faults of each kind */
} WALKS[] = {
    {"run", "run --model tests/golden/models/tiny-a -p What? " SHORT "--profile --num_runs 1 --trace %F/out/trace.json -o %F/out/table --html %F/out/page.html", NULL, 6},
    {"run with threads",
     "run --model tests/golden/othermodels/molmo_7b_o/checkpoint " IMAGE "-p What? --tier low --max_new_tokens 2 --threads 2 --dump %F/out/dump", NULL, 4},
    {"sweep", "sweep --synthetic tiny-qwen3-vl-moe --data %F/data.jsonl --output_dir %F/out --quiet " GRID SHORT,
     "sweep --synthetic tiny-qwen3-vl-moe --data %F/data.jsonl --output_dir %F/out --quiet --retry_failed " GRID SHORT, 6},
    {"merge", "merge %F/out --quiet", NULL, 20},
    {"report", "report %F/base --output_dir %F/out", NULL, 20},
};
/* most of its calls are those of libcurl and of the libraries that it loads */
static const struct walk ASK = {"ask", "ask " IMAGE "-p What? --endpoint http://127.0.0.1:%P --endpoint_model model-a --max_new_tokens 2 --num_runs 2", NULL, 60};
static const struct kind { const char *name, *codes; } KINDS[INJECT_KINDS] = {
    {"memory", "04"}, {"mmap", "04"}, {"opening an input", "03"}, {"opening an output", "5"}, {"reading", "03"},
    {"writing", "5"}, {"fsync", "5"}, {"rename", "5"},
};
static char injector[512];

/* Runs the command while call number `at` of a kind fails; none if `at` is 0. *counted receives the injector's counts. */
static int run_with(const char *words, int kind, long at, struct injected *counted) {
    static const struct injected none;
    char number[32];
    write_file(in_folder("state"), &none, sizeof none);
    setenv("INJECT_FILE", in_folder("state"), 1);
    snprintf(number, sizeof number, "%d", kind);
    setenv("INJECT_KIND", number, 1);
    snprintf(number, sizeof number, "%ld", at);
    setenv("INJECT_AT", number, 1);
    setenv("LD_PRELOAD", injector, 1);
    cli(with_port(words));
    unsetenv("LD_PRELOAD");
    char *state = check_read(in_folder("state"), NULL);
    if (state) memcpy(counted, state, sizeof *counted);
    free(state);
    return last.code;
}

/* ---- folders as texts */
/* Copies all files of a folder whose names begin with `prefix`. */
static void copy_files(const char *from, const char *to, const char *prefix) {
    DIR *listing = opendir(from);
    struct dirent *entry;
    while (listing && (entry = readdir(listing)) != NULL) {
        char source[700], target[700], *text;
        size_t bytes = 0;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || strncmp(entry->d_name, prefix, strlen(prefix))) continue;
        snprintf(source, sizeof source, "%.400s/%.255s", from, entry->d_name);
        snprintf(target, sizeof target, "%.400s/%.255s", to, entry->d_name);
        text = check_read(source, &bytes);
        if (CHECK(text != NULL)) write_file(target, text, bytes);
        free(text);
    }
    if (listing) closedir(listing);
}
/* Number of files below a folder that are still being written, or were left unfinished. */
static int writing_below(const char *path) {
    DIR *listing = opendir(path);
    struct dirent *entry;
    int count = 0;
    while (listing && (entry = readdir(listing)) != NULL) {
        char inside[1024];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        count += !strncmp(entry->d_name, ".vlmprof-writing", 16);
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < (int)sizeof inside) count += writing_below(inside);
    }
    if (listing) closedir(listing);
    return count;
}
/* Returns 1 if every file of the folder `whole` is in `other` with the same bytes or, if old is not NULL, with that text. */
static int same_files(const char *whole, const char *other, const char *old) {
    DIR *listing = opendir(whole);
    struct dirent *entry;
    int good = listing != NULL;
    while (listing && (entry = readdir(listing)) != NULL) {
        char path[700], *one, *two;
        size_t one_bytes = 0, two_bytes = 0;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.400s/%.255s", whole, entry->d_name);
        one = check_read(path, &one_bytes);
        snprintf(path, sizeof path, "%.400s/%.255s", other, entry->d_name);
        two = check_read(path, &two_bytes);
        if (one && two && strstr(entry->d_name, ".html")) { blank_nonce(one); blank_nonce(two); }
        good &= check_note(two && ((old && !strcmp(two, old)) || (one && one_bytes == two_bytes && !memcmp(one, two, one_bytes))),
                           __FILE__, __LINE__, "%s is neither the old nor the whole new file", path);
        FREE_ALL(one, two);
    }
    if (listing) closedir(listing);
    return good;
}
/* Returns 1 if the result files of two sweeps are equal except for times: the number of points, and each answer. */
static int same_results(const char *whole, const char *other) {
    static const char *const keys[] = {"\"status\": ", "\"num_ok\": ", "\"num_failed\": ", "\"num_missing\": ", "\"sample_id\": ", "\"num_runs\": ",
                                       "\"output_token_ids\": ", "\"pred\": ", "\"accuracy\": ", "\"actual_vision_tokens\": "};
    int good = 1;
    for (int file = 1; file <= 2; file++) {
        char path[2][700], *text[2], *at[2];
        for (int i = 0; i < 2; i++) {
            snprintf(path[i], sizeof path[i], "%.400s/data_imgsizemax_pixels16384_topk%d_blocks2.json", i ? other : whole, file);
            text[i] = check_read(path[i], NULL);
        }
        if (!check_note(text[0] && text[1], __FILE__, __LINE__, "%s is not there", path[1])) return 0;
        for (size_t key = 0; key < sizeof keys / sizeof *keys; key++) {
            at[0] = strstr(text[0], keys[key]);
            at[1] = strstr(text[1], keys[key]);
            while (at[0] && at[1] && good) {
                size_t bytes = strcspn(at[0], ",]\n");
                good = check_note(!strncmp(at[0], at[1], bytes + 1), __FILE__, __LINE__, "%s: %.60s, expected %.60s", path[1], at[1], at[0]);
                at[0] = strstr(at[0] + bytes, keys[key]);
                at[1] = strstr(at[1] + bytes, keys[key]);
            }
            good &= check_note(!at[0] && !at[1], __FILE__, __LINE__, "%s: more or fewer %s", path[1], keys[key]);
        }
        FREE_ALL(text[0], text[1]);
    }
    return good;
}

/* ---- one command */
static int is_walk(const struct walk *walk, const char *name) { return !strncmp(walk->name, name, strlen(name)); }
/* Prepares what the command finds: an empty folder, the journal of a sweep, or old outputs. */
static void prepare(const struct walk *walk) {
    static const char *const reports[] = {"report.txt", "report.csv", "report.html", "e1_stage_decomposition.json", "e2_pareto_coupling.json"};
    char path[64];
    make_empty(in_folder("out"));
    if (is_walk(walk, "merge")) copy_files(in_folder("base"), in_folder("out"), "");
    for (size_t i = 0; i < 5 && is_walk(walk, "report"); i++) {
        snprintf(path, sizeof path, "out/%s", reports[i]);
        write_text(in_folder(path), "old\n");
    }
    if (!strcmp(walk->name, "run")) {
        write_text(in_folder("out/trace.json"), "old\n");
        write_text(in_folder("out/table"), "old\n");
        write_text(in_folder("out/page.html"), "old\n");
    }
}
static int is_old_or_json(const char *path) {
    document d;
    if (!load(&d, path)) {
        int good = d.text && !strcmp(d.text, "old\n");
        unload(&d);
        return good;
    }
    unload(&d);
    return 1;
}
/* Conditions after a fault, and after the same command was run again. */
static void check_left(const struct walk *walk, const char *what) {
    struct injected counted;
    int code = last.code;
    check_note(!writing_below(in_folder("out")), __FILE__, __LINE__, "%s: a file is left half written", what);
    if (!strcmp(walk->name, "run")) CHECK(is_old_or_json(in_folder("out/trace.json")));
    if (is_walk(walk, "report")) same_files(in_folder("whole"), in_folder("out"), code ? "old\n" : NULL);
    if (is_walk(walk, "run") || is_walk(walk, "report") || is_walk(walk, "ask")) return;
    if (code) {
        run_with(walk->again ? walk->again : walk->words, INJECT_MEMORY, 0, &counted);
        check_note(last.code == 0, __FILE__, __LINE__, "%s, then once more: exit %d: %s", what, last.code, last.err ? last.err : "");
    }
    if (is_walk(walk, "sweep")) same_results(in_folder("whole"), in_folder("out"));
    else same_files(in_folder("whole"), in_folder("out"), NULL);
}
/* Returns 1 if the command may end with this code after a fault of this kind. */
static int may_end_with(const struct walk *walk, int kind, int code) {
    const char *said = last.err ? last.err : "";
    int is_sweep = is_walk(walk, "sweep"), is_input = kind == INJECT_OPEN_INPUT || kind == INJECT_READ;
    if (code >= 0 && code <= 9 && strchr(KINDS[kind].codes, '0' + code)) return 1;
    if (is_walk(walk, "ask") && code == 3) return strstr(said, "or memory ran out") != NULL; /* libcurl says the same for both */
    if (is_walk(walk, "ask") && code == 127) return strstr(said, "thread-local data: ABORT") != NULL; /* the loader, at exit */
    if (is_sweep && is_input && code == 1) return strstr(said, "failed points are rows") != NULL; /* an image that could be read before */
    if (code == 5 && strstr(said, "cannot be written: Cannot allocate memory")) return 1; /* the C library found no memory for the file */
    /* a folder is also opened to be synced */
    return is_input && code == 5 && (strstr(said, "written") || strstr(said, "not safely on disk"));
}
static void try_place(const struct walk *walk, int kind, long at) {
    struct injected counted;
    char what[200];
    prepare(walk);
    int code = run_with(walk->words, kind, at, &counted);
    snprintf(what, sizeof what, "%s, call %ld of %s fails", walk->name, at, KINDS[kind].name);
    check_note(may_end_with(walk, kind, code), __FILE__, __LINE__, "%s: exit %d: %.300s", what, code, last.err ? last.err : "");
    check_note(!code || (last.err && *last.err), __FILE__, __LINE__, "%s: exit %d without words", what, code);
    check_left(walk, what);
}
static void test_walk(const struct walk *walk) {
    struct injected counted = {0};
    long places = getenv("INJECT_ALL") ? 1000000 : check_all() ? 4 * walk->places : walk->places;
    check_case("%s without faults", walk->name);
    prepare(walk);
    if (!check_note(run_with(walk->words, INJECT_MEMORY, 0, &counted) == 0, __FILE__, __LINE__, "exit %d: %s", last.code, last.err ? last.err : "")) return;
    CHECK(counted.calls[INJECT_MEMORY] > 100);
    remove_folder(in_folder("whole"));
    CHECK_INT(rename(in_folder("out"), in_folder("whole")), 0);
    for (int kind = 0; kind < (is_walk(walk, "ask") ? 1 : INJECT_KINDS); kind++) {
        long calls = counted.calls[kind], tried = calls < places ? calls : places;
        if (!calls) continue;
        check_case("%s: %s fails at %ld of %ld places", walk->name, KINDS[kind].name, tried, calls);
        for (long i = 0; i < tried; i++) try_place(walk, kind, tried > 1 ? 1 + i * (calls - 1) / (tried - 1) : 1);
    }
}

int main(void) {
    char text[2000], here[512] = "";
    struct injected counted;
    if (CHECK_SANITIZED) {
        check_skip("injected faults", "a sanitizer's memory functions cannot be replaced");
        return check_done("test_inject");
    }
    if (!command_begin("inject") || !getcwd(here, sizeof here)) return 1;
    snprintf(injector, sizeof injector, "%s", built("tests/fault_injector.so"));
    program = built("tests/vlmprof-hooks");
    setenv("OMP_WAIT_POLICY", "passive", 1); /* otherwise the program restarts itself */
    setenv("GOMP_SPINCOUNT", "1000", 1);
    snprintf(text, sizeof text,
             "{\"id\": \"one\", \"image\": \"%s/tests/golden/images/img-200x150.png\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n"
             "{\"id\": \"two\", \"question\": \"What?\", \"answers\": [\"bus\"]}\n", here);
    write_text(in_folder("data.jsonl"), text);
    check_case("a sweep for report");
    make_empty(in_folder("out"));
    CHECK_INT(run_with(WALKS[2].words, INJECT_MEMORY, 0, &counted), 0);
    CHECK_INT(rename(in_folder("out"), in_folder("base")), 0);
    for (size_t i = 0; i < sizeof WALKS / sizeof *WALKS; i++) test_walk(&WALKS[i]);
    chat_start(&server);
    test_walk(&ASK);
    hostile_stop(&server);
    return command_end("test_inject");
}
