/* test_command_sweep.c: the sweep command: files against their own rows, strategies, failures, resuming after a signal, a kill, a torn journal and a full disk.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"
#include "support/small_sweep.h"

/* ---------------------------------------------------------------------------------------------------------------- sweep */
static const char ROW_KEYS[] =
    "sample_id target_vision_tokens target_crops actual_vision_tokens top_k num_active_blocks input_text_tokens output_tokens theoretical_num_crops "
    "theoretical_tiling theoretical_image_size theoretical_vision_tokens actual_num_crops actual_tiling actual_image_size accuracy pred metadata "
    "T_vision_total T_LLM_prefill T_LLM_decode T_total T_decode_per_token tier content_tokens ends_with_eos actual_text_tokens "
    "total_sequence_length T_decode_per_step stages stage_detail runs prompt status reason closure";
static const char CONFIG_KEYS[] =
    "tier tier_range selected_crops_mean selected_crops_std selected_crops_distribution target_vision_tokens_mean target_vision_tokens_std "
    "actual_vision_tokens_mean actual_vision_tokens_std max_crops top_k num_active_blocks num_total_blocks active_block_indices accuracy accuracy_std "
    "num_samples theoretical_num_crops theoretical_tiling theoretical_image_size theoretical_vision_tokens aggregate_stats latency_stats "
    "per_sample_results schema provenance config synthetic";

/* Each statistic of a configuration must match its rows. */
static void check_statistics(const document *d, uint32_t rows) {
    static const char *const names[] = {"T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token"};
    uint32_t stats = vp_json_get(&d->json, 0, "aggregate_stats"), again = vp_json_get(&d->json, 0, "latency_stats");
    for (int n = 0; n < 5; n++) {
        double values[64], scratch[64];
        size_t count = 0;
        char key[64];
        vp_statistics s;
        for (uint32_t i = rows + 1; i < d->nodes[rows].end && count < 64; i = d->nodes[i].end)
            if (isfinite(number(d, i, names[n]))) values[count++] = number(d, i, names[n]);
        if (!CHECK(vp_statistics_compute(values, count, scratch, &s) == VP_OK)) continue;
        snprintf(key, sizeof key, "%s_mean", names[n]);
        CHECK_NEAR(number(d, stats, key), s.mean, 0);
        snprintf(key, sizeof key, "%s_std", names[n]);
        CHECK_NEAR(number(d, stats, key), s.std, 0);
        snprintf(key, sizeof key, "%s_p95", names[n]);
        CHECK_NEAR(number(d, stats, key), s.p95, 0);
        CHECK_NEAR(number(d, again, key), s.p95, 0);
    }
    check_keys(d, stats, "T_decode_per_step_stats vision_tokens_mean vision_tokens_std vision_tokens_diff_mean T_total_p50 T_total_p99");
    CHECK_INT(d->nodes[vp_json_get(&d->json, stats, "T_decode_per_step_stats")].count, 2); /* 3 tokens, so 2 steps */
    check_keys(d, vp_json_get(&d->json, vp_json_get(&d->json, stats, "T_decode_per_step_stats"), "pos_1"), "mean std p50 p95 p99 count");
}

static void check_result(int index) {
    document d;
    uint32_t rows, row, steps;
    if (!CHECK(load(&d, result_path(index)))) { unload(&d); return; }
    check_keys(&d, 0, CONFIG_KEYS);
    rows = vp_json_get(&d.json, 0, "per_sample_results");
    CHECK_INT(d.nodes[rows].count, 3);
    CHECK_INT(number(&d, 0, "num_samples"), 3);
    CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "synthetic")].type, VP_JSON_TRUE);
    for (int i = 0; i < 3; i++) {
        row = vp_json_at(&d.json, rows, (uint32_t)i);
        check_keys(&d, row, ROW_KEYS);
        check_keys(&d, vp_json_get(&d.json, row, "metadata"), "question answers image_id id");
        CHECK_INT(number(&d, row, "sample_id"), i);
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "status"), "ok") && is_null(&d, row, "reason"));
        CHECK_INT(number(&d, row, "top_k"), index % 2 + 1);
        CHECK(number(&d, row, "T_total") >= number(&d, row, "T_LLM_prefill"));
        CHECK_INT(number(&d, row, "output_tokens"), 3);
        if (index % 2) check_stage_detail(&d, row, number(&d, row, "total_sequence_length"), 4); /* top_k 2 */
        steps = vp_json_get(&d.json, row, "T_decode_per_step");
        CHECK_INT(d.nodes[steps].count, 2);
        CHECK_INT(d.nodes[vp_json_at(&d.json, steps, 0)].count, 2);
        CHECK_NEAR(number(&d, row, "T_decode_per_token"), number(&d, row, "T_LLM_decode") / 2, 1e-9);
    }
    row = vp_json_at(&d.json, rows, 0);
    CHECK(isfinite(number(&d, row, "accuracy")));
    CHECK_NEAR(number(&d, 0, "accuracy"), number(&d, row, "accuracy"), 0); /* the only sample with references */
    CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, vp_json_get(&d.json, row, "metadata"), "id"), "one"));
    row = vp_json_at(&d.json, rows, 1);
    CHECK(is_null(&d, row, "accuracy") && !is_null(&d, row, "accuracy_reason"));
    CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "prompt"), " User: Which?\nA: red\nB: blue\n Assistant:"));
    row = vp_json_at(&d.json, rows, 2); /* text only */
    CHECK(is_null(&d, row, "T_vision_total") && is_null(&d, row, "actual_tiling") && number(&d, row, "T_total") > 0);
    check_statistics(&d, rows);
    CHECK_INT(number(&d, vp_json_get(&d.json, 0, "model_shape"), "num_experts"), 8); /* the tiny model's shape, which fit needs */
    CHECK_INT(number(&d, vp_json_get(&d.json, 0, "model_shape"), "d_model"), 128);
    unload(&d);
}

/* Number of lines on stderr, without progress lines: a slow machine prints one every ten seconds. */
static int lines_without_progress(void) {
    int lines = last.err_lines;
    for (const char *at = last.err; at && (at = strstr(at, "points/s, ETA")) != NULL; at++) lines--;
    return lines;
}

static void test_sweep(void) {
    char *before[4], *after;
    size_t bytes[4], after_bytes;
    check_case("sweep: files and rows");
    make_data("{\"id\": \"three\", \"question\": \"Only words?\", \"answers\": []}\n");
    EXITS(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0, err, "synthetic weights");
    CHECK(strstr(last.err, "1 of 3 samples have no image: their requests are text only") != NULL);
    CHECK(lines_without_progress() == 3 || (lines_without_progress() == 4 && strstr(last.err, "no CUDA"))); /* a build for GPUs says where it went */
    CHECK(last.out && strstr(last.out, "  output_tokens_per_s  scored ") && strstr(last.out, " accuracy\n"));
    CHECK(last.out && strstr(last.out, "accuracy: [low, high] is a 95 % interval\n"));
    CHECK(last.out && strstr(last.out, "\n  small-set_imgsizetier-low_crops1_topk1_blocks4     3  "));
    CHECK(last.out && strstr(last.out, "\n  T_total in brackets: [min, max] of 3 samples contains the median with 75 % confidence\n"));
    CHECK(last.out && strstr(last.out, "\n  TTFT: time to first token"));
    CHECK_INT(count_results(), 4);
    CHECK_INT(count_rows(), 12);
    for (int i = 0; i < 4; i++) check_result(i);
    check_case("sweep: a second run finds everything measured");
    for (int i = 0; i < 4; i++) before[i] = check_read(result_path(i), &bytes[i]);
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0);
    CHECK(last.err && strstr(last.err, "(0 measured now") && last.out && strstr(last.out, "P50 over samples, ms"));
    check_case("sweep: --json omits the table, --quiet everything except errors");
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos --json"), 0);
    CHECK(last.out && last.out[0] == '{' && !strstr(last.out, "P50 over samples") && strstr(last.out, "\"T_total_p50_range_level\": 0.75"));
    CHECK(last.out && strstr(last.out, "\"output_tokens_per_s_p50\": ") && strstr(last.out, "\"decode_tokens_per_s_p50\": "));
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos --quiet"), 0);
    CHECK(!last.out_bytes && !last.err_lines);
    check_case("sweep: a lost file is restored from the journal, byte for byte");
    CHECK_INT(unlink(result_path(2)), 0);
    EXITS(cli(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos"), 0, err, "(0 measured now");
    for (int i = 0; i < 4; i++) {
        after = check_read(result_path(i), &after_bytes);
        CHECK(before[i] && after && bytes[i] == after_bytes && !memcmp(before[i], after, after_bytes));
        FREE_ALL(after, before[i]);
    }
    check_case("sweep: a grid can grow; a different plan is rejected");
    EXITS(cli(SWEEP "--tier_list low --top_k_list 1 3 --num_runs_per_sample 2 --ignore_eos"), 0, err, "(3 measured now");
    REFUSED(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos --seed 7", 2, "another plan: --seed 42 instead of 7; use");
    REFUSED(SWEEP GRID "--num_runs_per_sample 1", 2, "another plan: --ignore_eos true instead of false, --num_runs_per_sample 2 instead of 1; use");
    CHECK_INT(unlink(in_folder("out/journal.jsonl")), 0);
    REFUSED(SWEEP GRID "--num_runs_per_sample 1 --ignore_eos", 2, "another plan: --num_runs_per_sample 2 instead of 1; use");
    write_text(in_folder("out/journal.jsonl"), "something else\n");
    REFUSED(SWEEP GRID "--num_runs_per_sample 2 --ignore_eos", 2, "is not a journal");
    remove_folder(in_folder("out"));
    check_case("sweep: --vision_tokens instead of tiers");
    CHECK_INT(cli(SWEEP "--vision_tokens_list 432 --top_k_list 2 --num_runs_per_sample 1 --dataset_name my_task --num_samples 2"), 0);
    CHECK(access(in_folder("out/my-task_imgsizetokens432_topk2_blocks4.json"), F_OK) == 0);
    remove_folder(in_folder("out"));
}

static void test_sweep_strategies(void) {
    make_data("");
    write_text(in_folder("data/small_set.jsonl"), "{\"question\": \"Only words?\"}\n");
    check_case("sweep: a strategy visits its points and repeats once");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 3 4 5 --num_active_blocks_list 3 4 --num_runs_per_sample 1 --sampling_strategy stratified"), 0);
    CHECK_INT(count_results(), 6); /* one tier, indices 0, 2, 4 of top_k, both depths */
    CHECK(last.err && strstr(last.err, "repeats points 21 times"));
    CHECK(access(in_folder("out/small-set_imgsizetier-low_crops0_topk3_blocks4.json"), F_OK) == 0);
    check_case("sweep: a Latin hypercube contains every value of the longest list");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 3 4 5 --num_active_blocks_list 3 4 --num_runs_per_sample 1 --sampling_strategy lhs"), 0);
    for (int k = 1; k <= 5; k++) {
        int found = 0;
        for (int b = 3; b <= 4; b++) {
            char name[200];
            snprintf(name, sizeof name, "out/small-set_imgsizetier-low_crops0_topk%d_blocks%d.json", k, b);
            found += access(in_folder(name), F_OK) == 0;
        }
        CHECK(found >= 1);
    }
    remove_folder(in_folder("out"));
}

static void test_sweep_failures(void) {
    document d;
    check_case("sweep: without a usable sample it stops at once and gives the reason");
    mkdir(in_folder("data"), 0777);
    write_text(in_folder("data/small_set.jsonl"), "{\"image\": \"none.png\", \"question\": \"?\"}\n");
    CHECK_INT(cli(SWEEP "--tier_list low"), 3);
    CHECK(last.err_lines == 1 && strstr(last.err, "no sample can be used") && strstr(last.err, "none.png"));
    CHECK(access(in_folder("out"), F_OK) != 0);
    check_case("sweep: a failed image becomes a row with the reason");
    make_data("{\"id\": 3, \"image\": \"cut.png\", \"question\": \"?\"}\n{\"id\": 4, \"image\": \"none.png\", \"question\": \"?\"}\n");
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-640x300.png"), &bytes);
    if (CHECK(image != NULL)) write_file(in_folder("data/cut.png"), image, bytes / 2);
    free(image);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 2 --num_runs_per_sample 1"), 1);
    CHECK(last.out && strstr(last.out, "P50 over samples, ms") && last.err_lines <= 4); /* the measured points are shown */
    if (CHECK(load(&d, result_path(1)))) {
        uint32_t rows = vp_json_get(&d.json, 0, "per_sample_results");
        CHECK_INT(d.nodes[rows].count, 4);
        CHECK_INT(number(&d, 0, "num_failed"), 2);
        for (uint32_t i = 2; i < 4; i++) {
            uint32_t row = vp_json_at(&d.json, rows, i);
            check_keys(&d, row, ROW_KEYS);
            CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, row, "status"), "failed") && !is_null(&d, row, "reason"));
            CHECK(is_null(&d, row, "T_total") && is_null(&d, row, "T_LLM_decode") && is_null(&d, row, "accuracy") && is_null(&d, row, "pred"));
            CHECK(is_null(&d, row, "output_tokens"));
        }
    }
    unload(&d);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 2 --num_runs_per_sample 1"), 1); /* finished, but still with failed rows */
    CHECK(last.err && strstr(last.err, "(0 measured now, 2 failed)"));
    remove_folder(in_folder("out"));
    check_case("sweep: a sequence that is too long");
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/out --num_samples 1 --tier_list low --max_new_tokens 4000"), 1);
    remove_folder(in_folder("out"));
}

/* Stops a sweep with a signal after it has measured some points. These are kept, and the rest follow. */
static void stop_and_resume(int signal_number, int code) {
    static const char command[] = SWEEP GRID "--num_runs_per_sample 6 --ignore_eos";
    size_t kept_bytes = 0, whole_bytes = 0;
    int rows = 0;
    check_case("sweep: stopped by signal %d, then resumed", signal_number);
    pid_t child = start(command, NULL, in_folder("stdout"), 0);
    for (int i = 0; i < 3000 && rows < 2; i++) {
        pause_ms(10);
        rows = count_rows();
    }
    kill(child, signal_number);
    CHECK_INT(finish(child, in_folder("stdout")), code);
    rows = count_rows();
    CHECK(rows >= 2 && rows < 12);
    CHECK_INT(count_results(), 0);
    if (code == 130) CHECK(last.err && strstr(last.err, "run the same command again") && last.err_lines <= 4 && !last.out_bytes);
    char *kept = check_read(in_folder("out/journal.jsonl"), &kept_bytes);
    CHECK_INT(cli(command), 0);
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    char *whole = check_read(in_folder("out/journal.jsonl"), &whole_bytes);
    while (kept_bytes && kept[kept_bytes - 1] != '\n') kept_bytes--; /* a kill may tear the last line */
    CHECK(kept && whole && whole_bytes > kept_bytes && !memcmp(kept, whole, kept_bytes));
    FREE_ALL(kept, whole);
    remove_folder(in_folder("out"));
}

/* the last line of a journal */
#define FINISHED "{\"finished\": true, \"sum\": \"944cecfd55587fca\"}"
static void test_resume(void) {
    static const char command[] = SWEEP GRID "--num_runs_per_sample 1 --ignore_eos";
    size_t bytes = 0;
    make_data("{\"id\": \"three\", \"question\": \"Only words?\"}\n");
    stop_and_resume(SIGINT, 130);
    stop_and_resume(SIGTERM, 130);
    stop_and_resume(SIGKILL, -SIGKILL);
    check_case("sweep: a torn last line is dropped");
    CHECK_INT(cli(command), 0);
    char *text = check_read(in_folder("out/journal.jsonl"), &bytes);
    for (int i = 0; i < 4; i++) unlink(result_path(i));
    if (CHECK(text != NULL)) write_file(in_folder("out/journal.jsonl"), text, bytes - sizeof FINISHED - 11); /* also the line of the last point */
    free(text);
    EXITS(cli(command), 0, err, "(1 measured now");
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    remove_folder(in_folder("out"));
    check_case("sweep: first the disk is full, then it is not");
    CHECK_INT(cli_with(command, NULL, in_folder("stdout"), 20000), 5);
    CHECK(last.err_lines >= 1 && last.err_lines <= 4 && strstr(last.err, "run the same command again"));
    CHECK(count_rows() > 0 && count_rows() < 12 && count_results() < 4);
    CHECK_INT(cli(command), 0);
    CHECK_INT(count_rows(), 12);
    CHECK_INT(count_results(), 4);
    remove_folder(in_folder("out"));
}

/* --knob without --server: a setting of the user's own, under which the whole sweep runs */
static void test_own_knob(void) {
#define SHORT "sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_runs_per_sample 1 --threads 1 --data %F/data/small_set.jsonl "
#define LABELLED SHORT "--knob blur="
    make_data("{\"id\": \"three\", \"question\": \"Only words?\"}\n");
    CHECK_INT(cli(LABELLED "0 --output_dir %F/blur0"), 0);
    CHECK_INT(cli(LABELLED "3 --output_dir %F/blur3"), 0);
    EXITS(cli("report %F/blur0 %F/blur3"), 0, out, "blur=3");
    REFUSED(LABELLED "4 --output_dir %F/blur3", 2, "--knob [\"blur=3\"] instead of [\"blur=4\"]");
    check_case("--knob with a value for each data file: the files alternate");
    char sets[7] = "", *text;
#define FILES SHORT "%F/data/other.jsonl --knob blur=0,3 "
    text = check_read(in_folder("data/small_set.jsonl"), NULL);
    write_text(in_folder("data/other.jsonl"), text);
    free(text);
    CHECK_INT(cli(FILES "--output_dir %F/blur"), 0);
    text = check_read(in_folder("blur/journal.jsonl"), NULL);
    for (char *at = text, *end = sets; at && end < sets + 6 && (at = strstr(at, "\n{\"sample\": ")) != NULL; at++)
        *end++ = strstr(at, "\"set\": ")[7];
    free(text);
    CHECK_TEXT(sets, "011001");
    EXITS(cli("report %F/blur"), 0, out, "blur=3");
    CHECK(!strstr(last.out, "drift of the machine"));
    REFUSED(LABELLED "0,3 --output_dir %F/x", 2, "--knob has 2 values, but there is 1 data file");
    make_data("{\"id\": \"another\", \"question\": \"Only words?\"}\n");
    EXITS(cli(FILES "--output_dir %F/x"), 3, err, " where ");
}

/* an unreadable plan is reported in one line */
static void test_full_plan(void) {
    check_case("--plan on a full disk");
    if (access("/dev/full", W_OK)) { check_skip("a full disk", "there is no /dev/full"); return; }
    CHECK_INT(cli_with(SWEEP GRID "--plan", NULL, "/dev/full", 0), 5);
    CHECK(last.err_lines == 3 && strstr(last.err, "\nvlmprof: cannot write to stdout: No space left on device\n"));
    CHECK_INT(cli_with(SWEEP GRID "--plan --json", NULL, "/dev/full", 0), 5);
    CHECK(last.err_lines == 3 && strstr(last.err, "\nvlmprof: cannot write to stdout: No space left on device\n"));
}

/* ---------------------------------------------------------------------------------------------------- load by other processes */
/* The test's own /proc, whose two CPUs advance by 10 ticks each time: `other` of them for other processes, `steal` for the host. */
static void write_system(int64_t turn, int other, int steal) {
    char text[400], next[600];
    snprintf(text, sizeof text, "cpu  %lld 0 0 %lld 0 0 0 %lld 0 0\ncpu0 0 0\ncpu1 0 0\n", (long long)turn * other, (long long)turn * (20 - other - steal),
             (long long)turn * steal);
    snprintf(next, sizeof next, "%s/system/proc/next", folder);
    write_text(next, text);
    rename(next, in_folder("system/proc/stat"));
}
static pid_t system_begin(int other, int steal) {
    pid_t child;
    make_empty(in_folder("system"));
    make_empty(in_folder("system/proc"));
    make_empty(in_folder("system/proc/self"));
    write_text(in_folder("system/proc/self/stat"), "1 (a) R 1 -1 1 0 -1 4194304 101 0 0 0 0 0 0 0 20\n");
    write_text(in_folder("system/proc/loadavg"), "1.25 0 0 1/2 3\n");
    write_system(1, other, steal);
    setenv("VLMPROF_TEST_SYSTEM", in_folder("system"), 1);
    if ((child = fork()) == 0) {
        for (int64_t turn = 2; turn < 60000 && getppid() != 1; turn++) {
            write_system(turn, other, steal);
            pause_ms(1);
        }
        _exit(0);
    }
    return child;
}
static void system_end(pid_t child) {
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0) { }
    setenv("VLMPROF_TEST_SYSTEM", folder, 1);
}
/* Runs sweeps on such a system, reports and compares them, and looks for the words of a warning; if NULL, there must be no warning. */
static void check_noise(int other, int steal, const char *words) {
    pid_t child = system_begin(other, steal);
    document d;
    make_data("{\"id\": 4, \"question\": \"What is two and two?\"}\n");
    CHECK_INT(cli(SWEEP GRID "--num_runs_per_sample 1 --json"), 0);
    system_end(child);
    CHECK(words ? strstr(last.err, "the machine was not quiet: ") && strstr(last.err, words) : !strstr(last.err, "quiet"));
    CHECK(words ? strstr(last.out, "\"warnings\": [\"the machine was not quiet: ") && strstr(last.out, words) : strstr(last.out, "\"warnings\": []") != NULL);
    if (CHECK(load(&d, result_path(0)))) {
        uint32_t noise = vp_json_get(&d.json, 0, "noise"), flags;
        int64_t bad = (int64_t)number(&d, noise, other >= 2 ? "busy_samples" : "stolen_samples");
        CHECK(number(&d, noise, "samples") >= 1 && number(&d, noise, "other_samples") >= 1);
        CHECK_INT(bad > 0, words != NULL);
        CHECK_NEAR(number(&d, noise, "other_cpu_percent"), other * 5, 0.1);
        CHECK_NEAR(number(&d, noise, "steal_percent"), steal * 5, 0.1);
        CHECK_NEAR(number(&d, noise, "load"), 1.25, 0);
        CHECK(is_null(&d, noise, "frequency_mhz"));
        flags = vp_json_get(&d.json, vp_json_at(&d.json, vp_json_get(&d.json, 0, "per_sample_results"), 0), "run_flags");
        CHECK_INT(d.nodes[vp_json_get(&d.json, flags, "other_cpu_percent")].count, 1);
    }
    unload(&d);
    CHECK_INT(cli("report %F/out --output_dir %F/report"), 0);
    CHECK_INT(cli("report %F/out"), 0);
    CHECK(words ? strstr(last.out, "the machine was not quiet: ") && strstr(last.out, words) : !strstr(last.out, "quiet"));
    char *page = check_read(in_folder("report/report.html"), NULL);
    CHECK(page && (words ? strstr(page, "<h3>Warnings</h3><ul>\n<li>the machine was not quiet: ") && strstr(page, words) : !strstr(page, "not quiet")));
    free(page);
    CHECK_INT(cli("merge %F/out --json --quiet"), 0);
    CHECK(words ? strstr(last.out, words) != NULL : !strstr(last.out, "quiet"));
    remove_folder(in_folder("report"));
}
static void test_noise(void) {
    check_case("other processes use 60 %% of the CPUs: reported on stderr, in JSON, files, report, page and merge");
    check_noise(12, 0, "other processes used 60 % of the CPU during ");
    remove_folder(in_folder("out"));
    check_case("the host takes 10 %% of the CPU time");
    check_noise(0, 2, "the host of this virtual machine took 10 % of the CPU during ");
    remove_folder(in_folder("out"));
    check_case("other programs use 5 %% of the CPUs: no warning");
    check_noise(1, 0, NULL);
    remove_folder(in_folder("out"));
}

static void test_without_experts(void) {
    document d;
    check_case("a model without experts: top_k is 0 in files, which can be read again; options of experts are rejected");
    CHECK_INT(cli("sweep --synthetic tiny-dense --data samples/questions.jsonl --output_dir %F/dense --tier_list low --num_active_blocks_list 2 4"
                  " --num_samples 3 --num_runs_per_sample 1 --max_new_tokens 2 --quiet"), 0);
    if (CHECK(load(&d, in_folder("dense/questions_imgsizetier-low_crops1_topk0_blocks2.json")))) {
        CHECK_INT(number(&d, 0, "top_k"), 0);
        CHECK_INT(number(&d, vp_json_get(&d.json, 0, "model_shape"), "num_experts"), 0);
    }
    unload(&d);
    CHECK_INT(cli("report %F/dense"), 0);
    CHECK(last.out && strstr(last.out, "low b4") && !strstr(last.out, "k0"));
    CHECK_INT(cli("fit %F/dense -o %F/dense/model"), 0);
    CHECK_INT(cli("predict %F/dense/model 640x480"), 0);
    CHECK(last.out && strstr(last.out, "views,") && !strstr(last.out, "top_k"));
    REFUSED("predict %F/dense/model 640x480 --top_k 2", 2, "--top_k");
    REFUSED("fit %F/dense --num_experts 4", 2, "without experts");
    CHECK_INT(cli("best %F/dense --budget_ms 100000"), 0);
    CHECK(last.out && strstr(last.out, "run it") && !strstr(last.out, "--top_k"));
    REFUSED("sweep --synthetic tiny-dense --data samples/questions.jsonl --output_dir %F/x --top_k_list 1", 2, "no experts");
    remove_folder(in_folder("dense"));
}

/* Each kind is in the name and in the file, and each row says what was used. auto and bf16 exist on every machine. */
static void test_activations(void) {
    static const char *const kinds[2] = {"auto", "bf16"};
    check_case("activations: each point with both");
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/a --tier_list low --num_samples 3 --num_runs_per_sample 1 --max_new_tokens 2 "
                  "--bare_every 0 --device cpu --quiet --weights int8 --activations auto bf16"), 0);
    for (int i = 0; i < 2; i++) {
        char name[120];
        document d;
        snprintf(name, sizeof name, "a/questions_imgsizetier-low_crops1_topk2_blocks4_activations-%s.json", kinds[i]);
        if (!CHECK(load(&d, in_folder(name)))) { unload(&d); continue; }
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, 0, "activations"), kinds[i]));
        const uint32_t used = vp_json_get(&d.json, vp_json_at(&d.json, vp_json_get(&d.json, 0, "per_sample_results"), 1), "activations_used");
        CHECK(vp_json_equals(&d.json, used, "bf16") || (!i && (vp_json_equals(&d.json, used, "int8") || vp_json_equals(&d.json, used, "int16"))));
        unload(&d);
    }
    EXITS(cli("report %F/a"), 0, out, "low k2 b4 activations=bf16");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/b --device cpu --activations bf16 int7", 2, "--activations: unknown value \"int7\"");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/b --device cpu --activations int8", 2, "expected auto, bf16");
}
/* ---- weights as a knob: each format has an engine, each file names it, and reports distinguish them */
static void test_weights(void) {
    document one, other;
    check_case("weights: a sweep of bf16 continues with int4");
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/w --tier_list low --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 4 --bare_every 0 --device cpu --quiet"), 0);
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/w --tier_list low --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 4 --bare_every 0 --device cpu --weights_list bf16 int4"), 0);
    CHECK(last.err && strstr(last.err, "(3 measured now, 0 failed)"));
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/single --tier_list low --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 4 --bare_every 0 --device cpu --quiet --weights int4"), 0);
    if (CHECK(load(&one, in_folder("w/questions_imgsizetier-low_crops1_topk2_blocks4_weightsint4.json")))
        && CHECK(load(&other, in_folder("single/questions_imgsizetier-low_crops1_topk2_blocks4.json")))) {
        const uint32_t rows = vp_json_get(&one.json, 0, "per_sample_results"), same = vp_json_get(&other.json, 0, "per_sample_results");
        CHECK(vp_json_equals(&one.json, vp_json_get(&one.json, 0, "weights"), "int4"));
        CHECK(vp_json_equals(&other.json, vp_json_get(&other.json, 0, "weights"), "int4"));
        for (uint32_t i = 0; i < 3; i++) {
            const uint32_t ids = vp_json_get(&one.json, vp_json_at(&one.json, rows, i), "output_token_ids"),
                           wanted = vp_json_get(&other.json, vp_json_at(&other.json, same, i), "output_token_ids");
            for (uint32_t k = 0; k < 4; k++) {
                int64_t token = -1, want = -2;
                vp_json_to_int(&one.json, vp_json_at(&one.json, ids, k), &token);
                vp_json_to_int(&other.json, vp_json_at(&other.json, wanted, k), &want);
                CHECK_INT(token, want);
            }
        }
    }
    unload(&one);
    unload(&other);
    if (CHECK(load(&one, in_folder("w/questions_imgsizetier-low_crops1_topk2_blocks4.json")))) /* its name does not change */
        CHECK(vp_json_equals(&one.json, vp_json_get(&one.json, 0, "weights"), "bf16"));
    unload(&one);
    check_case("weights: reports, fit and compare");
    CHECK_INT(cli("report %F/w"), 0);
    CHECK(last.out && strstr(last.out, "low k2 b4 int4") && strstr(last.out, "low k2 b4 bf16") && strstr(last.out, "weights int4"));
    EXITS(cli("report %F/w --csv"), 0, out, ",weights,");
    CHECK_INT(cli("report %F/w --output_dir %F/w/report"), 0);
    CHECK_INT(cli("fit %F/w -o %F/w/model"), 0);
    EXITS(cli("predict %F/w/model 640x480 --tier low --weights int4"), 0, out, "weights of 4 bits");
    CHECK_INT(cli("fit %F/single -o %F/w/model"), 0);
    REFUSED("predict %F/w/model 640x480 --tier low --weights int8", 2, "the model was fitted to only int4 weights");
    CHECK_INT(cli("predict %F/w/model 640x480 --tier low --weights int4"), 0);
    CHECK(cli("compare %F/w %F/single") <= 1); /* int4 with int4; exit code 1 if times differ */
    CHECK(last.out && strstr(last.out, "1 configuration is only in"));
    CHECK_INT(cli("best %F/w --budget_ms 100000"), 0);
    remove_folder(in_folder("w/report"));
    remove_folder(in_folder("w"));
    CHECK_INT(cli("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/w --tier_list low --num_samples 3 --num_runs_per_sample 2 "
                  "--max_new_tokens 4 --bare_every 0 --device cpu --quiet"), 0);
    REFUSED("compare %F/w %F/single", 2, "weights (bf16 / int4)");
    CHECK(cli("compare %F/w %F/single --force weights") <= 1);
    remove_folder(in_folder("w"));
    remove_folder(in_folder("single"));
}

/* ---- models other than Molmo */
#define OTHER "tests/golden/othermodels/"
#define FEW " --num_samples 3 --num_runs_per_sample 2 --max_new_tokens 3 --quiet "
static void check_other(const char *model, const char *options, const char *data, const char *file_name, const char *architecture, int tokens) {
    char command[600], path[200];
    document d;
    const int is_preset = !strncmp(model, "tiny", 4);
    check_case("%s", model);
    snprintf(command, sizeof command, "sweep %s%s%s --data '%s' --output_dir %%F/other %s" FEW, is_preset ? "--synthetic " : "--model " OTHER, model,
             is_preset ? "" : "/checkpoint", data, options);
    CHECK_INT(cli(command), 0);
    CHECK_INT(cli(command), 0); /* all points are already measured */
    snprintf(path, sizeof path, "other/%s", file_name);
    if (CHECK(load(&d, in_folder(path)))) {
        uint32_t rows = vp_json_get(&d.json, 0, "per_sample_results"), row = vp_json_at(&d.json, rows, 0);
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, 0, "architecture"), architecture));
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, 0, "status"), "complete"));
        if (tokens) CHECK_INT(number(&d, row, "actual_vision_tokens"), tokens);
        else CHECK(vp_json_get(&d.json, row, "actual_vision_tokens") != VP_JSON_NONE);
        CHECK(number(&d, row, "total_sequence_length") > tokens);
    }
    unload(&d);
    strcat(command, "--plan");
    CHECK_INT(cli(command), 0);
    CHECK_INT(cli("report %F/other --json"), 0);
    CHECK_INT(cli("report %F/other --output_dir %F/other/report"), 0);
    CHECK_INT(cli("fit %F/other -o %F/other/model"), 0);
    if (strncmp(architecture, "Molmo", 5)) REFUSED("predict %F/other/model 640x480", 2, architecture);
    else CHECK_INT(cli("predict %F/other/model 640x480"), 0);
    CHECK_INT(cli("predict %F/other/model --views 1 --vision_tokens 16 --sequence 40"), 0);
    CHECK_INT(cli("best %F/other --budget_ms 100000"), 0);
    CHECK_INT(cli("compare %F/other %F/other"), 0);
    remove_folder(in_folder("other/report"));
    remove_folder(in_folder("other"));
}
static void test_other_models(void) {
    static const char questions[] = "samples/questions.jsonl", text[] = "{\"id\": 1, \"question\": \"What is this?\", \"answers\": [\"a\"]}\n"
                                    "{\"id\": 2, \"question\": \"Why is the sky blue?\", \"answers\": [\"b\"]}\n";
    char path[300];
    check_other("llava", "--num_active_blocks_list 1 2 --kernel_pass", questions, "questions_imgsizeasis_topk0_blocks1.json", "LLaVA", 36);
    check_other("smolvlm", "--vision_tokens_list 24 60 --num_active_blocks_list 2", questions, "questions_imgsizetokens24_topk0_blocks2.json", "SmolVLM", 20);
    check_other("internvl", "--image_knob max_patches=1,4 --use_profiler", questions, "questions_imgsizemax_patches1_topk0_blocks4.json", "InternVL", 4);
    check_other("molmo_7b_d", "--tier_list low --num_active_blocks_list 1 3 --kernel_pass", questions, "questions_imgsizetier-low_crops1_topk0_blocks1.json", "Molmo", 0);
    snprintf(path, sizeof path, "%s", in_folder("text.jsonl"));
    write_text(path, text);
    check_other("olmoe", "--top_k_list 1 2", path, "text_imgsizeasis_topk1_blocks3.json", "OLMoE", 0);
    check_other("tiny-qwen3-vl-moe", "--image_knob max_pixels=16384,65536 --top_k_list 1 2 4", questions,
                "questions_imgsizemax_pixels16384_topk4_blocks4.json", "Qwen3-VL-MoE", 16);
    check_other("tiny-gemma3", "--image_knob max_num_crops=1,2,4 --num_active_blocks_list 2 6", questions,
                "questions_imgsizemax_num_crops2_topk0_blocks6.json", "Gemma 3", 0);
    check_case("sweep: knobs that other models do not have");
    REFUSED("sweep --model " OTHER "olmoe/checkpoint --data samples/questions.jsonl --plan", 3, "line 1: has an image, but the model accepts only text");
    REFUSED("sweep --model " OTHER "llava/checkpoint --data samples/questions.jsonl --plan --tier_list low", 2,
            "--tier_list: tiers exist only for Molmo models, not for LLaVA");
    REFUSED("sweep --model " OTHER "llava/checkpoint --data samples/questions.jsonl --plan --vision_tokens_list 288", 2,
            "--vision_tokens_list: LLaVA: vision_tokens: this model's images have one size");
    REFUSED("sweep --model " OTHER "internvl/checkpoint --data samples/questions.jsonl --plan --image_knob max_patches=2 --vision_tokens_list 9", 2,
            "cannot be used together");
    REFUSED("sweep --synthetic tiny-qwen3-vl-moe --data samples/questions.jsonl --plan --image_knob longest_edge=448", 2, "settings: max_pixels, min_pixels");
    REFUSED("sweep --synthetic tiny-qwen3-vl-moe --data samples/questions.jsonl --plan --image_knob max_pixels=65536,4095", 2, "below min_pixels, which is 4096");
    REFUSED("sweep --synthetic tiny-qwen3-vl-moe --data samples/questions.jsonl --plan --image_knob min_pixels=1048577", 2, "above max_pixels, which is 1048576");
    REFUSED("sweep --synthetic tiny-qwen3-vl-moe --data samples/questions.jsonl --plan --top_k_list 9", 2, "8");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --plan --answer_hint short", 2, "--answer_hint needs --endpoint");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --plan --image_knob longest_edge=2", 2, "max_crops");
}

/* A sweep stopped after the kernel pass of the second configuration does not repeat either pass. */
static void test_kernel_pass(void) {
#define PASSES "sweep --synthetic tiny-qwen3-vl-moe --data samples/questions.jsonl --num_samples 1 --image_knob max_pixels=65536 --max_new_tokens 2 --ignore_eos " \
    "--top_k_list 1 2 --num_runs_per_sample 1 --device cpu --gemm plain --kernel_pass --quiet --output_dir %F/passes"
    int passes = 0;
    check_case("the kernels of a shape are timed once, even if a sweep resumes");
    CHECK_INT(cli(PASSES), 0);
    char *journal = check_read(in_folder("passes/journal.jsonl"), NULL);
    char *end = journal ? strstr(journal, "{\"kernels\": {\"config\": \"questions_imgsizemax_pixels65536_topk2") : NULL;
    if (CHECK(end != NULL)) {
        *(char *)(size_t)next_line(end) = 0;
        write_text(in_folder("passes/journal.jsonl"), journal);
        CHECK_INT(cli(PASSES), 0);
        free(journal);
        journal = check_read(in_folder("passes/journal.jsonl"), NULL);
        for (const char *line = journal; line && *line; line = next_line(line)) passes += !strncmp(line, "{\"kernels\"", 10);
        CHECK_INT(passes, 2);
        CHECK(journal && strstr(journal, FINISHED));
    }
    free(journal);
    remove_folder(in_folder("passes"));
}

int main(void) {
    if (!command_begin("command_sweep")) return 1;
    RUN_TESTS(test_sweep, test_own_knob, test_sweep_strategies, test_sweep_failures, test_resume, test_kernel_pass, test_full_plan,
              test_noise, test_without_experts, test_activations, test_weights, test_other_models);
    return command_end("test_command_sweep");
}
