/* test_schema.c: samples/result.schema.json is made from the rows of cli/results and describes the result files of a sweep: files of the program must fit it, damaged
 * ones must not, and every key has a description (check_schema.py). Runs $PROGRAM, and $B/emulated/vlmprof for the additions of a GPU, from the
 * repository's root. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/chat_server.h"
#include "support/folder.h"
#include "support/result_schema.h"

/* Counts the result files of a folder. Returns the first one's text, or NULL. */
static char *check_files(const char *out, int want_files) {
    char *first = NULL, path[600];
    struct dirent *e;
    DIR *d = opendir(out);
    int files = 0;
    while (d && (e = readdir(d)) != NULL) {
        if (!strstr(e->d_name, "imgsize")) continue;
        snprintf(path, sizeof path, "%s/%.255s", out, e->d_name);
        if (!files++) first = check_read(path, NULL);
    }
    if (d) closedir(d);
    CHECK_INT(files, want_files);
    return first;
}
/* Sweeps into a new folder below `folder`. Returns the first result file's text, or NULL. The other files are checked too. */
static char *sweep(const char *program, const char *arguments, int want_code, int want_files) {
    static int turn;
    char command[1200], out[300];
    snprintf(out, sizeof out, "%s/out%d", folder, turn++);
    snprintf(command, sizeof command, "OMP_WAIT_POLICY=passive %s sweep %s --max_new_tokens 3 --output_dir '%s' %s >/dev/null 2>\"$TEST_FOLDER\"/err", program,
             strstr(arguments, "--endpoint") ? "" : "--synthetic tiny", out, arguments);
    int code = system(command);
    check_note(code == want_code << 8, __FILE__, __LINE__, "%s: status %d", command, code);
    return check_files(out, want_files);
}
/* A good file with one change, which the schema must reject: `from` (its first occurrence after `behind`) becomes `to`. */
static void check_damage(const char *text, const char *behind, const char *from, const char *to) {
    static int turn;
    const char *start = strstr(text, behind), *place = start ? strstr(start, from) : NULL;
    char path[400];
    snprintf(path, sizeof path, "%s/bad/%d_imgsize.json", folder, turn++);
    FILE *f = fopen(path, "w");
    if (CHECK(place && f)) CHECK(fprintf(f, "%.*s%s%s", (int)(place - text), text, to, place + strlen(from)) > 0);
    if (f) fclose(f);
}
static void test_damage(const char *text) {
    static const char *const damages[][3] = { /* undescribed keys: at the top, in a row, in a stage; and others */
        {"", "\"schema\": \"vlmprof-sweep-2\"", "\"schema\": \"vlmprof-sweep-0\""}, {"", "\"plan\":", "\"new\": 1, \"plan\":"},
        {"per_sample_results", "\"sample_id\":", "\"new\": 1, \"sample_id\":"}, {"\"stage_detail\"", "\"wall_ms\":", "\"new\": 1, \"wall_ms\":"},
        {"\"stage_detail\"", "\"vit\":", "\"vlt\":"}, {"\"stages\"", "\"vit\":", "\"vlt\":"}, {"", "\"num_failed\":", "\"num_fai1ed\":"},
        {"", "\"latency_stats\":", "\"latency_stat\":"}, {"\"latency_stats\"", "\"T_total_p50\":", "\"T_total_p51\":"},
        {"\"latency_stats\"", "\"T_total_p50\": ", "\"T_total_p50\": -"}, {"per_sample_results", "\"T_total\": ", "\"T_total\": -"},
        {"per_sample_results", "\"status\": \"ok\"", "\"status\": \"fine\""}, {"per_sample_results", "\"actual_tiling\": [", "\"actual_tiling\": [1, "},
        {"per_sample_results", "\"ends_with_eos\": ", "\"ends_with_eos\": 1, \"x\": "}, {"\"T_decode_per_step\"", "[", "[3, "},
        {"\"runs\": {", "\"vit\":", "\"runs_of_vit\":"}, {"\"provenance\"", "\"argv\":", "\"args\":"}, {"\"pos_1\"", "\"count\":", "\"counts\":"}};
    char path[400];
    snprintf(path, sizeof path, "%s/bad", folder);
    CHECK(!mkdir(path, 0777));
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) check_damage(text, damages[i][0], damages[i][1], damages[i][2]);
}
/* The files of a sweep of servers with a failing sample. */
static void test_served_files(const char *program) {
    hostile_server server;
    char arguments[700], *text;
    check_case("result files: servers");
    chat_start(&server);
    snprintf(arguments, sizeof arguments, "--endpoint http://127.0.0.1:%d --endpoint_model model-a model-b --request_knob image_url.detail=low "
                                          "--family qwen2_vl --vision_tokens_list 60 --data \"$TEST_FOLDER\"/odd.jsonl --num_runs_per_sample 2", server.port);
    text = sweep(program, arguments, 1, 2);
    CHECK(text && strstr(text, "\"served_runs\": [{\"usage\"") && strstr(text, "\"status\": \"failed\""));
    free(text);
    check_case("result files: servers, with twins");
    snprintf(arguments, sizeof arguments, "--endpoint http://127.0.0.1:%d --endpoint_model model-a --data samples/questions.jsonl --num_samples 1 "
                                          "--num_runs_per_sample 1 --twins 3", server.port);
    text = sweep(program, arguments, 0, 1);
    CHECK(text && strstr(text, "\"pairs\": [{\"image_ms\""));
    free(text);
    hostile_stop(&server);
}
static void test_files(const char *program) {
    char arguments[700], path[400], *text;
    check_case("result files: tiers");
    text = sweep(program, "--data samples/questions.jsonl --tier_list low --top_k_list 1 2 --num_samples 3 --num_runs_per_sample 2", 0, 2);
    if (CHECK(text != NULL)) test_damage(text);
    free(text);
    check_case("result files: a folder of images, target tokens, no reference answers");
    free(sweep(program, "--data samples -p 'What is this?' --vision_tokens_list 300 --num_samples 2 --num_runs_per_sample 1", 0, 1));
    check_case("result files: text only, a failed sample");
    snprintf(path, sizeof path, "%s/odd.jsonl", folder);
    FILE *f = fopen(path, "w");
    if (CHECK(f != NULL)) {
        fputs("{\"id\": 1, \"question\": \"Why?\", \"answers\": [\"so\"]}\n{\"id\": 2, \"question\": \"Where?\", \"image\": \"gone.jpg\"}\n", f);
        fclose(f);
    }
    snprintf(arguments, sizeof arguments, "--data '%s' --tier_list high --num_runs_per_sample 1 --ignore_eos", path);
    text = sweep(program, arguments, 1, 1);
    CHECK(text && strstr(text, "complete with failures") && strstr(text, "\"status\": \"failed\""));
    free(text);
}
/* One process of two has run, and only its journal is merged. */
static void test_partial(const char *program) {
    char command[1500], *text;
    check_case("result files: part of a sweep, merged");
    snprintf(command, sizeof command, "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 OMP_WAIT_POLICY=passive %s sweep --synthetic tiny --max_new_tokens 3 "
             "--output_dir \"$TEST_FOLDER\"/part --data samples/questions.jsonl --tier_list low --num_samples 4 --num_runs_per_sample 1 >/dev/null 2>&1", program);
    CHECK_INT(system(command), 0);
    snprintf(command, sizeof command, "%s merge \"$TEST_FOLDER\"/part --partial >/dev/null 2>&1", program);
    CHECK_INT(system(command), 1 << 8);
    snprintf(command, sizeof command, "%s/part", folder);
    text = check_files(command, 1);
    CHECK(text && strstr(text, "\"status\": \"partial\"") && strstr(text, "\"num_missing\": 2,"));
    free(text);
}
/* The knobs in the result: the blocks that an importance file keeps; more experts than in training. */
static void test_knobs(const char *program) {
    static const struct { const char *scores; int blocks; const char *want; } table[] = {
        {"{\"1\": 0.5, \"2\": 0.5}", 3, "\"active_block_indices\": [0, 1, 3],"}, /* a tie: by the file's order */
        {"{\"2\": 0.5, \"1\": 0.5}", 3, "\"active_block_indices\": [0, 2, 3],"},
        {"{\"2\": 0.5, \"1\": 0.4}", 2, "\"active_block_indices\": [0, 3],"},    /* first and last, whatever their scores */
        {"{\"2\": 0.5, \"1\": 0.4}", 1, "\"active_block_indices\": [0],"}};
    char arguments[700], *text;
    check_case("knobs: importance files, top_k above the trained 2");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/scores.json", folder);
        FILE *f = fopen(path, "w");
        if (!CHECK(f != NULL)) return;
        fputs(table[i].scores, f);
        fclose(f);
        snprintf(arguments, sizeof arguments, "--data samples/questions.jsonl --tier_list low --num_samples 1 --num_runs_per_sample 1 --top_k_list 8"
                 " --num_active_blocks_list %d --importance_scores_file '%s'", table[i].blocks, path);
        text = sweep(program, arguments, 0, 1);
        check_note(text && strstr(text, table[i].want) && strstr(text, "\"top_k\": 8,"), __FILE__, __LINE__, "%s: %s", table[i].scores, table[i].want);
        free(text);
    }
    text = sweep(program, "--data samples/questions.jsonl --tier_list low --num_samples 1 --top_k_list 9", 2, 0); /* it has 8 experts */
    CHECK(text == NULL);
}
static void test_gpu_files(void) {
    char program[400];
    const char *b = getenv("B");
    snprintf(program, sizeof program, "%s/emulated/vlmprof", b ? b : "build");
    if (access(program, X_OK)) {
        check_skip("result files of a GPU", "build/emulated/vlmprof is not built");
        return;
    }
    check_case("result files: a GPU (emulated)");
    free(sweep(program, "--device cuda --data samples/questions.jsonl --tier_list low --num_samples 1 --num_runs_per_sample 1", 0, 1));
}
/* --write regenerates the file. */
int main(int argc, char **argv) {
    const char *program = getenv("PROGRAM") ? getenv("PROGRAM") : "build/tests/vlmprof-hooks";
    char *made = result_schema(), *kept;
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        FILE *file = fopen("samples/result.schema.json", "w");
        const int good = file && fputs(made, file) >= 0;
        return !(file && !fclose(file) && good);
    }
    check_case("samples/result.schema.json matches the rows of cli/results (build/tests/test_schema --write regenerates it)");
    kept = check_read("samples/result.schema.json", NULL);
    CHECK_TEXT(kept, made);
    FREE_ALL(kept, made);
    if (!CHECK(folder_make("schema"))) return 1;
    test_files(program);
    test_served_files(program);
    test_partial(program);
    test_knobs(program);
    test_gpu_files();
    check_case("the schema: every key described; it accepts each of these files, and rejects each one with a single error");
    const int code = system("python3 tests/results/check_schema.py samples/result.schema.json \"$TEST_FOLDER\"");
    if (code == 77 << 8) check_skip("files and their schema", "python3 has no jsonschema");
    else CHECK_INT(code, 0);
    remove_folder(folder);
    return check_done("test_schema");
}
