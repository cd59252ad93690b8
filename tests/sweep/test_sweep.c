/* slow: sweeps that are killed, damaged and run on emulated devices, 50 s */
/* test_sweep.c: sweeps can be trusted, killed and scaled out. Kills at random moments, resumed until done, against the
 * unbroken run; ranks against one process; merge; damaged journals; device errors and insufficient memory on the emulated GPU; closure with a planted
 * pause; the stop rule; the tool's own cost. Runs $PROGRAM, $B/emulated/vlmprof and $B/tests/vlmprof-hooks from the repository's root; files are in a
 * temporary folder. SWEEP_KILLS=N kills N times (default 8; 200 and more: in 20 different sweeps), SWEEP_SEED seeds the moments and chooses the sweeps. */
#define _GNU_SOURCE 1
#include "support/command.h"

#define BEGIN(command) start(command, NULL, in_folder("stdout"), 0)
#define END(child) finish(child, in_folder("stdout"))
#define SAYS(words) check_note(last.err && strstr(last.err, words), __FILE__, __LINE__, "stderr lacks \"%s\": %s", words, last.err ? last.err : "")
#define RUNS(want, command) runs_at(__FILE__, __LINE__, want, command)
static int runs_at(const char *file, int line, int want, const char *command) {
    cli(command);
    return check_note(last.code == want, file, line, "%s: exit %d, expected %d: %s", command, last.code, want, last.err ? last.err : "");
}
static const char *text(const char *format, ...) {
    static char room[4][2000];
    static int turn;
    char *p = room[turn++ & 3];
    va_list list;
    va_start(list, format);
    vsnprintf(p, sizeof room[0], format, list);
    va_end(list);
    return p;
}

#include "support/same_results.h"
/* Number of files in a folder whose names begin with a dot. */
static int count_hidden(const char *name) {
    DIR *d = opendir(in_folder(name));
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += e->d_name[0] == '.' && strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d) closedir(d);
    return count;
}
static int count_results(const char *name) {
    DIR *d = opendir(in_folder(name));
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += strstr(e->d_name, "_imgsize") != NULL;
    if (d) closedir(d);
    return count;
}
/* Each (configuration, sample, run) is in the journals of a folder once, and each point is closed once. */
static int count_lines(const char *path, const char *kind, int *twice) {
    char *lines = check_read(path, NULL), *seen[4096];
    int count = 0;
    for (char *p = lines, *end; p && *p && (end = strchr(p, '\n')) != NULL; p = end + 1) {
        char *at = strncmp(p, "{\"config\"", 9) ? NULL : strstr(p, "\"prev\": ");
        *end = 0;
        if (!at || !(at = strchr(at, ',')) || strncmp(at + 2, kind, strlen(kind))) continue;
        at[2 + strlen(kind) + strspn(at + 2 + strlen(kind), "\": 0123456789")] = 0;
        { char *prev = strstr(p, "\"prev\": "); memset(prev, ' ', (size_t)(at - prev)); }
        for (int i = 0; i < count; i++) *twice += !strcmp(seen[i], p);
        if (count < 4096) seen[count++] = p;
    }
    free(lines);
    return count;
}
static void check_journal(const char *name, int runs, int points) {
    char path[600];
    int twice = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_INT(count_lines(path, "\"run\"", &twice), runs);
    CHECK_INT(count_lines(path, "\"done\"", &twice), points);
    CHECK_INT(twice, 0);
}

/* ---- the sweep for all kinds of breaks: 4 samples (one with only text), 2 configurations, 2 runs */
#define GRID \
    "sweep --synthetic tiny --data %F/data/set.jsonl --tier_list low --top_k_list 1 2 --num_runs_per_sample 2 --max_new_tokens 2 --bare_every 3 --quiet "
enum { RUNS = 16, POINTS = 8 };
static void make_data(void) {
    char lines[2000], here[512] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    mkdir(in_folder("data"), 0777);
    snprintf(lines, sizeof lines,
             "{\"id\": 1, \"image\": \"%s/%s\", \"question\": \"What?\", \"answers\": [\"bus\", \"bus\", \"car\"]}\n"
             "{\"id\": 2, \"question\": \"Only words?\", \"answers\": []}\n"
             "{\"id\": 3, \"question\": \"More words, \\\"done\\\": 1\"}\n"
             "{\"id\": 4, \"question\": \"And more?\", \"options\": [\"red\", \"blue\"], \"answer\": 1}\n", here, check_golden("images/img-200x150.png"));
    write_file(in_folder("data/set.jsonl"), lines, strlen(lines));
    snprintf(lines, sizeof lines, "{\"question\": \"Only words?\"}\n");
    write_file(in_folder("data/words.jsonl"), lines, strlen(lines));
    snprintf(lines, sizeof lines, "{\"image\": \"%s/%s\", \"question\": \"?\"}\n", here, check_golden("images/img-200x150.png"));
    write_file(in_folder("data/one.jsonl"), lines, strlen(lines));
}
static uint64_t random_state;
static uint32_t random_below(uint32_t limit) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % limit;
}
static void pause_us(long us) {
    struct timespec t;
    t.tv_sec = us / 1000000;
    t.tv_nsec = us % 1000000 * 1000;
    nanosleep(&t, NULL);
}

/* One of 216 sweeps; consecutive ones differ. */
static struct { char words[400]; int runs, points; } variant;
static void make_variant(unsigned number) {
    static const char *const top_k[] = {"1", "1 2", "2"}, *const tiers[] = {"low", "low medium"}, *const bare[] = {"3", "0", "1"};
    unsigned ks = number % 3, tier = number / 3 % 2, runs = 1 + number / 6 % 3, pairs = number / 18 % 3, tokens = 1 + number / 54 % 2, kernels = number / 108 % 2;
    snprintf(variant.words, sizeof variant.words,
             "sweep --synthetic tiny --data %%F/data/set.jsonl --tier_list %s --top_k_list %s --num_runs_per_sample %u --max_new_tokens %u --bare_every %s "
             "%s--quiet --output_dir %%F/", tiers[tier], top_k[ks], runs, tokens, bare[pairs], kernels ? "--kernel_pass " : "");
    variant.points = 4 * (ks == 1 ? 2 : 1) * (int)(tier + 1);
    variant.runs = variant.points * (int)runs;
}
/* Kills one sweep repeatedly until it completes, at most `kills` times. Returns the number of kills. */
static int kill_sweep(int kills, int64_t span_us) {
    int done = 0;
    for (int i = 0; i < 40; i++) {
        pid_t child = BEGIN(text("%skilled", variant.words));
        pause_us((long)random_below((uint32_t)span_us));
        if (done < kills) kill(child, SIGKILL);
        END(child);
        if (last.code == -SIGKILL) { done++; continue; }
        CHECK_INT(last.code, 0);
        break;
    }
    if (last.code) RUNS(0, text("%skilled", variant.words));
    same_results(in_folder("unbroken"), in_folder("killed"));
    check_journal("killed/journal.jsonl", variant.runs, variant.points);
    CHECK_INT(count_hidden("killed"), 1); /* only the merge lock is left: files of killed writers were removed */
    return done;
}
static void test_kills(void) {
    int kills = getenv("SWEEP_KILLS") ? atoi(getenv("SWEEP_KILLS")) : 8, rounds = kills >= 200 ? 20 : kills >= 40 ? 4 : 1, all = 0, sweeps = 0;
    unsigned seed = getenv("SWEEP_SEED") ? (unsigned)strtoul(getenv("SWEEP_SEED"), NULL, 10) : 1;
    random_state = seed;
    check_case("the sweep that other tests compare with");
    RUNS(0, GRID "--output_dir %F/whole");
    CHECK_INT(count_results("whole"), 2);
    check_journal("whole/journal.jsonl", RUNS, POINTS);
    for (int round = 0; round < rounds; round++) {
        int share = kills * (round + 1) / rounds - kills * round / rounds, done = 0;
        int64_t begun = vp_clock_ns(), span_us;
        make_variant(seed * 20 + (unsigned)round);
        check_case("killed at %d random moments (SWEEP_SEED=%u) and resumed: the same results, nothing measured twice: %s", share, seed, variant.words);
        RUNS(0, text("%sunbroken", variant.words));
        span_us = (vp_clock_ns() - begun) / 1000;
        check_journal("unbroken/journal.jsonl", variant.runs, variant.points);
        for (int tries = 0; done < share && tries < 10 * share; tries++, sweeps++) {
            int failed_before = check_state.case_failed;
            done += kill_sweep(share - done, span_us);
            if (check_state.case_failed > failed_before) printf("  sweep %d, kill %d\n", sweeps, done);
            remove_folder(in_folder("killed"));
        }
        remove_folder(in_folder("unbroken"));
        CHECK_INT(done, share);
        all += done;
        if (getenv("SWEEP_KILLS")) printf("%d kills of %d sweeps in %d variants\n", all, sweeps, round + 1);
        fflush(stdout);
    }
}

#define LOUD "sweep --synthetic tiny --data %F/data/words.jsonl --tier_list low --top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 2 --bare_every 0 "
#define SMALL LOUD "--quiet "

/* ---- damaged journals */
static void test_damage(void) {
    size_t bytes = 0;
    check_case("a damaged line in the middle is reported, and its samples are measured again");
    RUNS(0, GRID "--output_dir %F/out");
    char *journal = check_read(in_folder("out/journal.jsonl"), &bytes);
    char *at = journal ? strstr(journal, "\"run\": 0") : NULL;
    if (CHECK(at != NULL)) {
        at[-1] = '\x01';
        write_file(in_folder("out/journal.jsonl"), journal, bytes);
    }
    RUNS(0, GRID "--output_dir %F/out");
    SAYS("is damaged and was skipped");
    SAYS("out/journal.jsonl: line ");
    at = strstr(last.err, "is damaged and was skipped");
    CHECK(at && !strstr(at + 1, "is damaged and was skipped")); /* said once */
    same_results(in_folder("whole"), in_folder("out"));
    CHECK_INT(cli("merge %F/out --quiet"), 0);
    same_results(in_folder("whole"), in_folder("out"));
    free(journal);
    check_case("a last line that is cut off is reported, and how many points were measured before");
    RUNS(0, LOUD "--output_dir %F/loud");
    journal = check_read(in_folder("loud/journal.jsonl"), &bytes);
    if (CHECK(journal != NULL)) write_file(in_folder("loud/journal.jsonl"), journal, bytes - 20);
    free(journal);
    RUNS(0, LOUD "--output_dir %F/loud");
    SAYS("loud/journal.jsonl: the last line is cut off and skipped");
    SAYS(" points are already measured");
    remove_folder(in_folder("loud"));
    check_case("merge does not silently drop points");
    journal = check_read(in_folder("out/journal.jsonl"), &bytes);
    at = journal;
    for (char *p = journal; p && (p = strstr(p, "\"done\": 2")) != NULL; p++) at = p; /* the last one, because an earlier one may be void */
    if (CHECK(at != NULL)) {
        at[-1] = '\x01';
        write_file(in_folder("out/journal.jsonl"), journal, bytes);
    }
    free(journal);
    CHECK_INT(cli("merge %F/out --quiet"), 1);
    SAYS("1 points are missing");
    RUNS(0, GRID "--output_dir %F/out");
    same_results(in_folder("whole"), in_folder("out"));
    remove_folder(in_folder("out"));
}

/* ---- an image disappears during the sweep */
static void test_vanished_image(void) {
    char lines[1200];
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-200x150.png"), &bytes);
    document d;
    check_case("an image disappears while the sweep runs: a failed row, the rest is measured");
    if (!CHECK(image != NULL)) return;
    write_file(in_folder("data/a.png"), image, bytes);
    write_file(in_folder("data/b.png"), image, bytes);
    snprintf(lines, sizeof lines, "{\"image\": \"a.png\", \"question\": \"?\"}\n{\"image\": \"b.png\", \"question\": \"?\"}\n{\"question\": \"?\"}\n");
    write_file(in_folder("data/pair.jsonl"), lines, strlen(lines));
    pid_t child = BEGIN("sweep --synthetic tiny --data %F/data/pair.jsonl --tier_list low --top_k_list 1 --num_runs_per_sample 40 --max_new_tokens 2 "
                        "--output_dir %F/out");
    for (int i = 0; i < 2000; i++) {
        char *journal = check_read(in_folder("out/journal.jsonl"), NULL);
        int begun = journal && strstr(journal, "\"run\": 0");
        free(journal);
        if (begun) break;
        pause_us(5000);
    }
    unlink(in_folder("data/b.png"));
    CHECK_INT(END(child), 1);
    SAYS("1 failed");
    if (CHECK(load(&d, in_folder("out/pair_imgsizetier-low_crops1_topk1_blocks4.json")))) {
        CHECK_INT(number(&d, 0, "num_ok"), 2);
        CHECK_INT(number(&d, 0, "num_failed"), 1);
    }
    unload(&d);
    check_case("the image is back: --retry_failed measures the point");
    write_file(in_folder("data/b.png"), image, bytes);
    RUNS(0, "sweep --synthetic tiny --data %F/data/pair.jsonl --tier_list low --top_k_list 1 --num_runs_per_sample 40 --max_new_tokens 2 "
            "--output_dir %F/out --retry_failed");
    SAYS("(1 measured now, 0 failed)");
    remove_folder(in_folder("out"));
    free(image);
}

/* ---- an image that cannot be read during planning */
#define IMAGES "sweep --synthetic tiny --data %F/data/images.jsonl --tier_list medium --top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 1 --bare_every 0 "
static void test_missing_image(void) {
    static const char lines[] = "{\"image\": \"small.png\", \"question\": \"?\"}\n{\"image\": \"wide.png\", \"question\": \"?\"}\n";
    size_t small_bytes = 0, wide_bytes = 0;
    char *small = check_read(check_golden("images/img-90x90.png"), &small_bytes), *wide = check_read(check_golden("images/img-640x300.png"), &wide_bytes);
    if (!CHECK(small && wide)) return;
    write_file(in_folder("data/images.jsonl"), lines, sizeof lines - 1);
    write_file(in_folder("data/small.png"), small, small_bytes);
    check_case("an image is missing during planning and returns later: the same plan and the same files");
    CHECK_INT(cli(IMAGES "--output_dir %F/out"), 1);
    SAYS("(2 measured now, 1 failed)");
    CHECK_INT(cli(IMAGES "--output_dir %F/out"), 1);
    SAYS("(0 measured now, 1 failed)");
    write_file(in_folder("data/wide.png"), wide, wide_bytes);
    RUNS(0, IMAGES "--output_dir %F/out --retry_failed");
    SAYS("(1 measured now, 0 failed)");
    CHECK_INT(count_results("out"), 1);
    RUNS(0, IMAGES "--output_dir %F/out");
    SAYS("(0 measured now, 0 failed)");
    remove_folder(in_folder("out"));
    check_case("... between the starts of two ranks");
    unlink(in_folder("data/wide.png"));
    RUNS(0, "RANK=0 WORLD_SIZE=2 " IMAGES "--output_dir %F/out");
    write_file(in_folder("data/wide.png"), wide, wide_bytes);
    RUNS(0, "RANK=1 WORLD_SIZE=2 " IMAGES "--output_dir %F/out");
    CHECK_INT(count_results("out"), 1);
    remove_folder(in_folder("out"));
    FREE_ALL(small, wide);
}
/* ---- an invalid result file */
static void test_garbage(void) {
    static const char *const files[] = {"", "garbage", "{\n  \"schema\": \"vlmprof-sweep-2\",\n  \"pl", "[]", "{\"plan\": \"0123456789abcdef\"}"};
    char *path = in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json"), kept[600];
    snprintf(kept, sizeof kept, "%s", path);
    RUNS(0, SMALL "--output_dir %F/unbroken");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        check_case("a result file next to a good journal contains \"%.20s\"", files[i]);
        RUNS(0, SMALL "--output_dir %F/out");
        write_file(kept, files[i], strlen(files[i]));
        RUNS(0, LOUD "--output_dir %F/out"); /* --quiet drops warnings */
        SAYS("blocks4.json was not a result file of a sweep and is written again from the journal");
        same_results(in_folder("unbroken"), in_folder("out"));
        write_file(kept, files[i], strlen(files[i]));
        RUNS(0, "merge %F/out");
        SAYS("is written again from the journal");
        same_results(in_folder("unbroken"), in_folder("out"));
        write_file(kept, files[i], strlen(files[i]));
        unlink(in_folder("out/journal.jsonl"));
        CHECK_INT(cli(SMALL "--output_dir %F/out"), 2);
        SAYS("exists and is not a result file of a sweep");
        remove_folder(in_folder("out"));
    }
    remove_folder(in_folder("unbroken"));
}

/* ---- ranks */
#define RANK2(r) "RANK=" #r " WORLD_SIZE=2 LOCAL_RANK=" #r " "
static void test_ranks(void) {
    size_t bytes = 0, again_bytes = 0;
    check_case("two ranks, once merged, equal one process");
    pid_t first = start(RANK2(0) GRID "--output_dir %F/ranks", NULL, in_folder("rank0"), 0);
    pid_t second = start(RANK2(1) GRID "--output_dir %F/ranks --json", NULL, in_folder("rank1"), 0);
    CHECK_INT(finish(first, in_folder("rank0")), 0);
    CHECK_INT(finish(second, in_folder("rank1")), 0);
    CHECK(last.out && strstr(last.out, "\"world_size\": 2"));
    CHECK_INT(count_results("ranks"), 2);
    same_results(in_folder("whole"), in_folder("ranks"));
    check_journal("ranks/journal_rank0of2.jsonl", RUNS / 2, POINTS / 2);
    check_journal("ranks/journal_rank1of2.jsonl", RUNS / 2, POINTS / 2);
    check_case("merging manually gives the same bytes every time");
    char *before = check_read(in_folder("ranks/set_imgsizetier-low_crops1_topk1_blocks4.json"), &bytes);
    RUNS(0, "merge %F/ranks --quiet");
    char *after = check_read(in_folder("ranks/set_imgsizetier-low_crops1_topk1_blocks4.json"), &again_bytes);
    CHECK(before && after && bytes == again_bytes && !memcmp(before, after, bytes));
    FREE_ALL(before, after);
    check_case("merge rejects journals of different plans");
    CHECK_INT(cli("merge %F/ranks %F/ranks --output_dir %F/merged"), 2);
    SAYS("overlap");
    CHECK_INT(cli("merge %F/ranks %F/whole --output_dir %F/merged"), 2);
    SAYS("do not belong to the same sweep");
    RUNS(0, SMALL "--output_dir %F/small");
    CHECK_INT(cli("merge %F/ranks %F/small --output_dir %F/merged"), 2);
    SAYS("another plan");
    CHECK_INT(cli("merge %F/data --output_dir %F/merged"), 3);
    CHECK_INT(cli("merge"), 2);
    CHECK_INT(cli("RANK=0 WORLD_SIZE=3 " GRID "--output_dir %F/ranks"), 2);
    SAYS("with 2 processes, but this one has 3");
    CHECK_INT(cli("RANK=3 WORLD_SIZE=2 " GRID "--output_dir %F/ranks"), 2);
    remove_folder(in_folder("ranks"));
    check_case("a rank is killed: the other reports it, merge names it, and its part can be run separately");
    for (int attempt = 0; attempt < 20; attempt++) { /* if it finishes before the signal arrives, try again */
        remove_folder(in_folder("ranks"));
        second = start(RANK2(1) GRID "--output_dir %F/ranks", NULL, in_folder("rank1"), 0);
        for (int i = 0; i < 5000; i++) {
            char *journal = check_read(in_folder("ranks/journal_rank1of2.jsonl"), NULL);
            int begun = journal && strstr(journal, attempt < 10 ? "\"run\": 0" : "\"plan\"");
            free(journal);
            if (begun) break;
            pause_us(1000);
        }
        kill(second, SIGKILL);
        if (finish(second, in_folder("rank1")) == -SIGKILL) break;
    }
    CHECK_INT(last.code, -SIGKILL);
    first = start("RANK=0 WORLD_SIZE=2 sweep --synthetic tiny --data %F/data/set.jsonl --tier_list low --top_k_list 1 2 --num_runs_per_sample 2 "
                  "--max_new_tokens 2 --bare_every 3 --output_dir %F/ranks", NULL, in_folder("rank0"), 0);
    CHECK_INT(finish(first, in_folder("rank0")), 0);
    SAYS("not finished: rank 1 (stopped)");
    SAYS("RANK=R, the same WORLD_SIZE");
    CHECK_INT(count_results("ranks"), 0);
    CHECK_INT(cli("merge %F/ranks"), 1);
    SAYS("rank 1 (stopped)");
    CHECK_INT(cli("merge %F/ranks --partial --quiet"), 1);
    CHECK_INT(count_results("ranks"), 2);
    char *err = check_read(in_folder("ranks/set_imgsizetier-low_crops1_topk1_blocks4.json"), NULL);
    CHECK(err && strstr(err, "\"status\": \"partial\"") && !strstr(err, "\"num_missing\": 0"));
    free(err);
    RUNS(0, "RANK=1 WORLD_SIZE=2 " GRID "--output_dir %F/ranks");
    same_results(in_folder("whole"), in_folder("ranks"));
    check_journal("ranks/journal_rank1of2.jsonl", RUNS / 2, POINTS / 2);
    remove_folder(in_folder("ranks"));
    remove_folder(in_folder("merged"));
}

/* ---- numbers */
static double p50_of(const document *d, const char *set, const char *metric) {
    return number(d, member(d, member(d, member(d, 0, "statistics"), set), metric), "p50");
}
static void test_numbers(void) {
    document d;
    check_case("closure on the CPU, and the tool's own overhead");
    RUNS(0, "sweep --synthetic tiny --data %F/data/set.jsonl --tier_list low --top_k_list 2 --num_runs_per_sample 6 --max_new_tokens 4 --ignore_eos "
            "--bare_every 1 --output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/set_imgsizetier-low_crops1_topk2_blocks4.json")))) {
        uint32_t cost = member(&d, 0, "tool_cost"), all = member(&d, member(&d, 0, "statistics"), "over_runs"), total = member(&d, all, "T_total");
        uint32_t row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 1), flags = member(&d, row, "run_flags");
        CHECK(p50_of(&d, "over_samples", "closure") > 0 && p50_of(&d, "over_samples", "closure") <= 1);
        CHECK(p50_of(&d, "over_runs", "closure") > 0 && p50_of(&d, "over_runs", "closure") <= 1);
        CHECK(number(&d, cost, "stamps_share") >= 0 && number(&d, cost, "stamps_per_request") > 8 && number(&d, cost, "stamp_cost_ns") >= 0);
        CHECK_INT(number(&d, cost, "bare_pairs"), 4);
        CHECK_INT(d.nodes[member(&d, cost, "bare_difference_share_interval")].count, 2);
        CHECK_INT(number(&d, total, "count"), 24);
        CHECK_INT(number(&d, member(&d, member(&d, member(&d, 0, "statistics"), "over_samples"), "T_total"), "count"), 4);
        CHECK_INT(d.nodes[member(&d, total, "p50_interval")].count, 2);
        CHECK_INT(d.nodes[member(&d, total, "unsupported")].count, 2); /* P95 needs 60 values, P99 300 */
        CHECK(is_text(&d, row, "stop", "runs") && number(&d, row, "num_runs") == 6);
        CHECK_NEAR(number(&d, row, "decode_tokens_per_s") * number(&d, row, "T_decode_per_token"), 1000, 1e-6);
        CHECK_NEAR(number(&d, row, "output_tokens_per_s") * number(&d, row, "T_total"), 1000 * number(&d, row, "output_tokens"), 1e-6);
        if (CHECK_INT(d.nodes[member(&d, row, "T_total_p50_interval")].count, 2)) {
            uint32_t interval = member(&d, row, "T_total_p50_interval");
            double low = 0, high = 0, p50 = number(&d, row, "T_total_p50");
            CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 0), &low), VP_OK);
            CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 1), &high), VP_OK);
            CHECK(low > 0 && low <= p50 && p50 <= high);
        }
        CHECK_INT(d.nodes[member(&d, flags, "outlier")].count, 6);
        CHECK_INT(d.nodes[member(&d, flags, "throttled")].count, 6);
        CHECK(number(&d, row, "T_total_bare") > 0 && number(&d, row, "T_total_staged") > 0);
        CHECK(member(&d, member(&d, 0, "provenance"), "kernel") != VP_JSON_NONE && member(&d, 0, "data_hash") != VP_JSON_NONE);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("a pause of 5 ms between stages is unaccounted");
    program = built("tests/vlmprof-hooks");
    RUNS(0, "VLMPROF_TEST_PAUSE_NS=5000000 " SMALL "--output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        CHECK(p50_of(&d, "over_runs", "unaccounted") >= 5);
        CHECK(p50_of(&d, "over_runs", "unaccounted") <= p50_of(&d, "over_runs", "T_total"));
    }
    unload(&d);
    remove_folder(in_folder("out"));
    program = getenv("PROGRAM") ? getenv("PROGRAM") : built("tests/vlmprof-hooks");
    check_case("--timing off: only the total, without unmeasured values");
    RUNS(0, SMALL "--timing off --output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        uint32_t row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0);
        CHECK(number(&d, row, "T_total") > 0 && isnan(number(&d, row, "T_LLM_prefill")) && isnan(number(&d, row, "closure")));
        CHECK(is_text(&d, 0, "timing", "off"));
    }
    unload(&d);
    CHECK_INT(cli(SMALL "--output_dir %F/out"), 2); /* never mixed in one folder */
    SAYS("another plan");
    remove_folder(in_folder("out"));
}
static void test_stop_rule(void) {
    document d;
    check_case("a stop rule: as many runs as the interval needs, up to the limit");
    RUNS(0, SMALL "--stop_half_width 90 --max_runs 30 --output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        uint32_t row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0);
        CHECK(number(&d, row, "num_runs") >= 6 && (is_text(&d, row, "stop", "interval") || is_text(&d, row, "stop", "max")));
    }
    unload(&d);
    remove_folder(in_folder("out"));
    RUNS(0, SMALL "--stop_half_width 0.0001 --max_runs 7 --output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        uint32_t row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0);
        CHECK(number(&d, row, "num_runs") == 7 && is_text(&d, row, "stop", "max"));
        CHECK_INT(number(&d, member(&d, 0, "stops"), "max"), 1);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    RUNS(0, SMALL "--stop_half_width 0.0001 --time_box_s 0.0001 --output_dir %F/out");
    if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk1_blocks4.json"))))
        CHECK(is_text(&d, vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0), "stop", "box"));
    unload(&d);
    remove_folder(in_folder("out"));
    CHECK_INT(cli(SMALL "--max_runs 7 --output_dir %F/out"), 2);
    CHECK_INT(cli(SMALL "--stop_half_width 1 --num_runs_per_sample 9 --max_runs 7 --output_dir %F/out"), 2);
    CHECK_INT(cli(SMALL "--stop_half_width -1 --output_dir %F/out"), 2);
    CHECK_INT(cli(SMALL "--stop_half_width 1e1 --output_dir %F/out"), 2);
}

/* ---- a device that fails (the emulated GPU's n-th call) */
#define GPU "sweep --synthetic tiny --data %F/data/words.jsonl --device cuda --tier_list low --top_k_list 1 2 --num_runs_per_sample 2 --max_new_tokens 2 --quiet "
/* Two samples with answers, so that each rank has one and there is a front. The answers are long enough for the energy counter to advance. */
#define GPU_PAIR "sweep --synthetic tiny --data %F/data/pair.jsonl --device cuda --tier_list low --top_k_list 1 2 --num_runs_per_sample 2 --max_new_tokens 8 --quiet "
/* The emulated counter advances at 300 W by the host's clock, in steps of 5 ms. */
static void test_energy(void) {
    static const char pair[] = "{\"id\": \"a\", \"question\": \"one two\", \"answers\": [\"x\"]}\n{\"id\": \"b\", \"question\": \"three\", \"answers\": [\"y\"]}\n";
    document d;
    check_case("emulated: energy of each request, also as an axis of fronts");
    if (CHECK(load(&d, in_folder("gpu/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        uint32_t rows = member(&d, 0, "per_sample_results"), row = vp_json_at(&d.json, rows, 0);
        double joules = number(&d, row, "energy_j"), resolution = number(&d, row, "energy_resolution_j");
        CHECK(joules >= 0.3 * number(&d, row, "T_total") - 1.51 && joules <= 0.3 * number(&d, row, "T_total") + 30);
        CHECK(resolution >= 1.4);
        CHECK_NEAR(number(&d, row, "energy_per_token_j"), joules / 2, 1e-9);
        CHECK_INT(d.nodes[member(&d, member(&d, row, "runs"), "energy_j")].count, 2);
        CHECK_INT(number(&d, member(&d, member(&d, member(&d, 0, "statistics"), "over_runs"), "energy_j"), "count"), 2 * d.nodes[rows].count);
    }
    unload(&d);
    write_file(in_folder("data/pair.jsonl"), pair, strlen(pair));
    RUNS(0, GPU_PAIR "--output_dir %F/pair");
    RUNS(0, "report %F/pair --latency token_energy --resamples 20");
    CHECK(last.out && strstr(last.out, "P50 of energy_per_token_j") && !strstr(last.out, "energy_per_token_j, ms"));
    check_case("emulated: a GPU without an energy counter, and a CPU: the keys are omitted, no front has this axis; throttling is counted, not read at one moment");
    cli("CUDA_ON_CPU_NVML=nvmlDeviceGetTotalEnergyConsumption,nvmlDeviceGetCurrentClocksEventReasons=3 CUDA_ON_CPU_THROTTLE=0x40 " GPU "--output_dir %F/none");
    CHECK_INT(last.code, 0);
    char *text_of_file = check_read(in_folder("none/words_imgsizetier-low_crops0_topk1_blocks4.json"), NULL);
    CHECK(text_of_file && !strstr(text_of_file, "energy_") && strstr(text_of_file, "\"throttled\": [true, true]"));
    free(text_of_file);
    RUNS(0, "report %F/none --latency energy --resamples 20");
    CHECK(last.out && !strstr(last.out, "E2: front"));
    check_case("emulated: info lists a GPU's readings and the command that locks its clocks");
    RUNS(0, "info");
    CHECK(last.out && strstr(last.out, "counted by NVML") && strstr(last.out, "sudo nvidia-smi -i 0 -lgc 1395,1395"));
    cli("CUDA_ON_CPU_NVML=nvmlDeviceGetTotalEnergyConsumption=3 info");
    CHECK(last.out && strstr(last.out, "not counted: NVML: does not count energy on this device: Not Supported (status 3)"));
    cli("CUDA_ON_CPU_NVML=0 info --json");
    CHECK(last.out && strstr(last.out, "\"energy\": false") && strstr(last.out, "\"telemetry\": false"));
    remove_folder(in_folder("none"));
    check_case("emulated: info and a profile name the source of launch times");
    CHECK(strstr(last.out, "\"launch_timer\": \"CUDA events: no libcupti.so.13; it comes with the CUDA Toolkit\"") != NULL);
    cli("CUDA_ON_CPU_CUPTI=130001 info");
    CHECK(last.out && strstr(last.out, "launches on a GPU are timed by activity records of CUPTI, version 130001"));
    cli("CUDA_ON_CPU_CUPTI=130001 run --synthetic tiny --prompt a --device cuda --profile --num_runs 1 --max_new_tokens 4 --trace %F/cupti.json");
    CHECK(last.out && strstr(last.out, "launches timed by activity records of CUPTI, version 130001") && strstr(last.out, "gemm: emulated_gemm_"));
    text_of_file = check_read(in_folder("cupti.json"), NULL);
    CHECK(text_of_file && strstr(text_of_file, "\"cudaGraphLaunch\"") && strstr(text_of_file, "\"name\": \"emulated_gemm_")
          && strstr(text_of_file, "\"launch_timer\": \"activity records of CUPTI"));
    free(text_of_file);
    cli("CUDA_ON_CPU_CAPABILITY=9.0 run --synthetic tiny --prompt a --device cuda --gpu dependent wgmma --max_new_tokens 3 --json");
    CHECK_INT(last.code, 0);
    cli("run --synthetic tiny --prompt a --device cuda --gpu wgmma --max_new_tokens 2");
    CHECK(last.code == 0 && last.out && strstr(last.out, "experts do not use wgmma: it needs exactly compute capability 9.0"));
    cli("CUDA_ON_CPU_CAPABILITY=9.0 run samples/cat.jpg -p a --synthetic tiny --tier low --top_k 8 --device cuda --gpu wgmma --profile --num_runs 1 --max_new_tokens 2");
    CHECK(last.out && strstr(last.out, "k_gate_up_wgmma128") && strstr(last.out, "k_down_wgmma128"));
    cli("CUDA_ON_CPU_CUPTI=130001 run --synthetic tiny --prompt a --device cuda --gpu events --profile --num_runs 1 --max_new_tokens 2");
    CHECK(last.out && strstr(last.out, "launches timed by CUDA events: as asked") && !strstr(last.out, "emulated_gemm_"));
}
static void test_two_devices(void) {
    char *journals[2];
    check_case("emulated: two ranks on a machine with two GPUs use one each, and measure the same as one rank");
    for (int rank = 0; rank < 2; rank++) {
        cli(text("CUDA_ON_CPU_DEVICES=2 RANK=%d LOCAL_RANK=%d WORLD_SIZE=2 %s", rank, rank, GPU_PAIR "--output_dir %F/ranks"));
        CHECK_INT(last.code, 0);
        journals[rank] = check_read(in_folder(rank ? "ranks/journal_rank1of2.jsonl" : "ranks/journal_rank0of2.jsonl"), NULL);
        CHECK(journals[rank] && strstr(journals[rank], rank ? "\"device\": \"cuda:1" : "\"device\": \"cuda:0"));
        CHECK(journals[rank] && !strstr(journals[rank], rank ? "\"device\": \"cuda:0" : "\"device\": \"cuda:1"));
        free(journals[rank]);
    }
    same_results(in_folder("pair"), in_folder("ranks"));
    remove_folder(in_folder("pair"));
    remove_folder(in_folder("ranks"));
}
static void test_device(void) {
    static const char *const kinds[] = {"launch", "gemm", "copy", "sync", "illegal", "event"};
    document d;
    int fired = 0;
    program = built("emulated/vlmprof");
    check_case("emulated: the unbroken sweep, with kernels timed one by one");
    RUNS(0, GPU "--output_dir %F/gpu --kernel_pass");
    if (CHECK(load(&d, in_folder("gpu/words_imgsizetier-low_crops0_topk1_blocks4.json")))) {
        uint32_t pass = vp_json_at(&d.json, member(&d, 0, "kernel_pass"), 0), stage = member(&d, member(&d, pass, "stages"), "prefill"), parts;
        CHECK_INT(d.nodes[member(&d, 0, "kernel_pass")].count, 1);
        CHECK(number(&d, stage, "kernel_ms") > 0 && number(&d, stage, "kernel_ms") <= number(&d, stage, "device_ms"));
        parts = member(&d, stage, "parts");
        CHECK_NEAR(number(&d, parts, "dense") + number(&d, parts, "attention") + number(&d, parts, "router") + number(&d, parts, "experts"),
                   number(&d, stage, "kernel_ms"), 1e-6);
        CHECK_INT(d.nodes[parts].count, 4);
    }
    unload(&d);
    test_energy();
    test_two_devices();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        check_case("emulated: a failing %s is tried again", kinds[i]);
        for (int n = 30; n <= 470; n += 110) {
            cli(text("CUDA_ON_CPU_FAIL=%s:%d %s", kinds[i], n, GPU "--output_dir %F/out"));
            if (last.code == 4) { /* during the first opening of the engine, so nothing was measured */
                RUNS(0, GPU "--output_dir %F/out");
            } else check_note(last.code == 0, __FILE__, __LINE__, "%s:%d: exit %d: %s", kinds[i], n, last.code, last.err);
            same_results(in_folder("gpu"), in_folder("out"));
            if (CHECK(load(&d, in_folder("out/words_imgsizetier-low_crops0_topk2_blocks4.json")))) fired += number(&d, 0, "num_retries") > 0;
            unload(&d);
            remove_folder(in_folder("out"));
        }
    }
    CHECK(fired >= 2);
    check_case("emulated: no memory when the engine opens again: tried once more");
    for (int n = 1; n < 60; n++) { /* the first ones are in the first opening, so nothing was measured */
        double retries = 0;
        remove_folder(in_folder("out"));
        cli(text("CUDA_ON_CPU_FAIL=illegal:150,alloc:%d %s", n, GPU "--output_dir %F/out"));
        if (last.code == 4) continue;
        CHECK(n > 1);
        CHECK_INT(last.code, 0);
        same_results(in_folder("gpu"), in_folder("out"));
        for (int k = 1; k <= 2; k++) { /* the order of configurations is random */
            if (CHECK(load(&d, in_folder(k == 1 ? "out/words_imgsizetier-low_crops0_topk1_blocks4.json" : "out/words_imgsizetier-low_crops0_topk2_blocks4.json"))))
                retries += number(&d, 0, "num_retries");
            unload(&d);
        }
        CHECK(retries >= 2);
        remove_folder(in_folder("out"));
        break;
    }
    check_case("emulated: without retries, the point fails with its reason, and the sweep continues");
    CHECK_INT(cli("CUDA_ON_CPU_FAIL=launch:150 " GPU "--max_retries 0 --output_dir %F/out"), 1);
    RUNS(0, GPU "--max_retries 0 --retry_failed --output_dir %F/out");
    same_results(in_folder("gpu"), in_folder("out"));
    remove_folder(in_folder("out"));
    check_case("emulated: configurations that do not fit into memory fail, the others are measured");
    CHECK_INT(cli("CUDA_ON_CPU_MEMORY=100000000 sweep --synthetic tiny --data %F/data/one.jsonl --device cuda --tier_list low high "
                  "--top_k_list 1 --num_runs_per_sample 1 --max_new_tokens 1 --bare_every 0 --output_dir %F/out"), 1);
    SAYS("crops12_topk1_blocks4.json does not fit: ");
    SAYS("(2 measured now, 1 failed)");
    remove_folder(in_folder("out"));
    remove_folder(in_folder("gpu"));
    program = getenv("PROGRAM") ? getenv("PROGRAM") : built("tests/vlmprof-hooks");
}

static void test_interrupts(void) {
    check_case("Ctrl-C ends the current run and explains how to continue; --quiet prints nothing else");
    pid_t child = BEGIN(GRID "--num_runs_per_sample 2 --output_dir %F/out");
    CHECK_INT(END(child), 2); /* the signal is sent twice */
    child = BEGIN("sweep --synthetic tiny --data %F/data/set.jsonl --tier_list low --num_runs_per_sample 500 --max_new_tokens 2 --output_dir %F/out");
    pause_us(700000);
    kill(child, SIGINT);
    CHECK_INT(END(child), 130);
    SAYS("run the same command again to continue");
    check_case("a second Ctrl-C ends the program at once");
    child = BEGIN("sweep --synthetic tiny --data %F/data/set.jsonl --tier_list low --num_runs_per_sample 500 --max_new_tokens 2 --output_dir %F/out");
    pause_us(300000);
    kill(child, SIGINT);
    pause_us(1000);
    kill(child, SIGINT);
    CHECK_INT(END(child), 130);
    remove_folder(in_folder("out"));
}

int main(void) {
    setenv("OMP_WAIT_POLICY", "passive", 0);
    setenv("GOMP_SPINCOUNT", "1000", 0);
    if (!command_begin("sweep")) return 1;
        make_data();
    RUN_TESTS(test_kills, test_damage, test_vanished_image, test_missing_image, test_garbage, test_ranks, test_numbers, test_stop_rule, test_interrupts, test_device);
    return command_end("test_sweep");
}
