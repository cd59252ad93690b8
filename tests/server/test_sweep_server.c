/* test_sweep_server.c: sweeps of servers against a scripted server on 127.0.0.1: the requests sent and the values kept, two models and knobs in one report, resumed after
 * kill -9 and Ctrl-C with the same answers and counts, failures and rejections, and no file that contains the key. Runs $PROGRAM from the
 * repository's root; files are in a temporary folder. SWEEP_KILLS=N kills N times (default 8). */
#define _GNU_SOURCE 1
#include "vlmprof.h"
#define VLMPROF_FAMILIES_IMPLEMENTATION
#include "vlmprof_families.h"
#include "support/command.h"
#include "support/server_command.h"
#include "support/same_results.h"
#include "support/texts.h"

#define URL "--endpoint http://127.0.0.1:%P/v1 "
#define ONE "sweep " URL "--endpoint_model model-a --data %F/set.jsonl --max_new_tokens 8 "
#define TWO "sweep " URL "--endpoint_model model-a model-b --data %F/set.jsonl --max_new_tokens 8 "

static void make_set(void) {
    char here[512] = "", text[3000];
    CHECK(getcwd(here, sizeof here) != NULL);
    snprintf(text, sizeof text,
             "{\"id\": \"one\", \"image\": \"%s/%s\", \"question\": \"What is it?\", \"answers\": [\"bus\", \"bus\", \"car\"], \"style\": \"vqa2\"}\n"
             "{\"id\": 2, \"image\": \"%s/%s\", \"question\": \"Which?\", \"options\": [\"red\", \"blue\"], \"answers\": [\"blue\"]}\n"
             "{\"id\": 3, \"question\": \"Why?\", \"answers\": [\"so\"]}\n",
             here, check_golden("images/img-200x150.png"), here, check_golden("images/img-333x517.png"));
    write_text(in_folder("set.jsonl"), text);
}
/* the file of a configuration whose name contains both words; "" if there is not exactly one */
static const char *result_of(const char *out, const char *one, const char *other) {
    static char path[800];
    DIR *d = opendir(in_folder(out));
    struct dirent *e;
    int count = 0;
    path[0] = 0;
    while (d && (e = readdir(d)) != NULL)
        if (strstr(e->d_name, "_imgsize") && strstr(e->d_name, one) && strstr(e->d_name, other)) {
            snprintf(path, sizeof path, "%s/%s/%s", folder, out, e->d_name);
            count++;
        }
    if (d) closedir(d);
    return count == 1 ? path : "";
}
static int count_files(const char *out) {
    DIR *d = opendir(in_folder(out));
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += strstr(e->d_name, "_imgsize") != NULL;
    if (d) closedir(d);
    return count;
}

/* ---- measurements */
static void check_row(const document *d, uint32_t row, int has_image) {
    const uint32_t usage = member(d, row, "usage"), runs = member(d, row, "served_runs"), itl = member(d, row, "itl"), sent = member(d, row, "sent_image");
    CHECK(is_text(d, row, "status", "ok"));
    CHECK(is_null(d, row, "top_k") && is_null(d, row, "num_active_blocks") && is_null(d, row, "actual_tiling") && is_null(d, row, "output_token_ids"));
    CHECK(is_null(d, row, "T_vision_total") && is_null(d, row, "T_LLM_prefill") && is_null(d, row, "closure"));
    CHECK(number(d, row, "TTFT") > 0 && number(d, row, "T_total") > number(d, row, "TTFT"));
    if (!is_null(d, row, "T_decode_per_token")) /* null if the pieces came at once */
        CHECK_NEAR(number(d, row, "T_decode_per_token"), (number(d, row, "T_total") - number(d, row, "TTFT")) / (number(d, usage, "completion_tokens") - 1), 1e-6);
    CHECK_INT(number(d, row, "actual_vision_tokens"), number(d, usage, "image_tokens"));
    CHECK_INT(number(d, row, "total_sequence_length"), number(d, usage, "prompt_tokens"));
    CHECK_INT(number(d, row, "input_text_tokens"), 12);
    CHECK_INT(d->nodes[runs].count, 2);
    CHECK_INT(d->nodes[itl].count, 2);
    CHECK_INT(number(d, member(d, runs + 1, "server_timings"), "prompt_ms") * 10, 15);
    CHECK(is_text(d, runs + 1, "finish_reason", "stop") && number(d, runs + 1, "attempts") == 1);
    CHECK(d->nodes[itl + 1].count == number(d, runs + 1, "pieces") - 1 || d->nodes[itl + 1].count == 0); /* 0: they came at once */
    CHECK_INT(d->nodes[sent].type, has_image ? VP_JSON_OBJECT : VP_JSON_NULL);
}
static void test_files(void) {
    document d;
    check_case("two models and a knob over unchanged images and text: files, rows, kinds of lines in the journal");
    RUNS(0, TWO "--request_knob image_url.detail=low,high --num_runs_per_sample 2 --output_dir %F/out --json");
    CHECK_INT(count_files("out"), 4);
    if (CHECK(load(&d, result_of("out", "asis_model-b", "detail=high")))) {
        const uint32_t rows = member(&d, 0, "per_sample_results"), reasons = member(&d, 0, "null_reasons");
        CHECK(is_text(&d, 0, "endpoint_model", "model-b") && is_text(&d, 0, "model", "model-b") && is_text(&d, 0, "endpoint_api", "chat"));
        CHECK(is_text(&d, member(&d, 0, "request_knobs"), "image_url.detail", "high"));
        CHECK(is_null(&d, 0, "top_k") && is_null(&d, 0, "active_block_indices") && is_null(&d, 0, "tier") && is_null(&d, 0, "target_vision_tokens"));
        check_keys(&d, reasons, "top_k stages T_vision_total T_LLM_prefill closure");
        CHECK(member(&d, reasons, "TTFT") == VP_JSON_NONE);
        CHECK_INT(number(&d, 0, "num_cached_runs"), 0);
        CHECK_INT(d.nodes[rows].count, 3);
        for (uint32_t i = rows + 1, k = 0; i < d.nodes[rows].end; i = d.nodes[i].end, k++) check_row(&d, i, k < 2);
        CHECK(strstr(d.text, "\"server\": \"llama.cpp b7-scripted\"") != NULL);
    }
    unload(&d);
    check_case("the question is a chat message: no roles, no style, options after it; the body of the last request");
    char *request = server.request_body;
    CHECK(strstr(request, "\"Why?\"") != NULL && strstr(request, "User:") == NULL && strstr(request, "\"stream\"") != NULL);
    RUNS(0, ONE "--num_samples 3 --answer_hint 'Answer briefly.' --plan --json");
    RUNS(0, ONE "--answer_hint 'Answer briefly.' --num_runs_per_sample 1 --output_dir %F/hint");
    CHECK(holds(in_folder("hint"), "\"Which?\\nA: red\\nB: blue\\nAnswer briefly.\""));
    CHECK(holds(in_folder("hint"), "\"What is it?\\nAnswer briefly.\""));
    check_case("a second run measures nothing; the same folder accepts one more model");
    chat.answers = 0;
    RUNS(0, TWO "--request_knob image_url.detail=low,high --num_runs_per_sample 2 --output_dir %F/out");
    SAYS("(0 measured now, 0 failed)");
    CHECK_INT(chat.answers, 0);
    RUNS(0, "sweep " URL "--endpoint_model model-a model-b model-c --request_knob image_url.detail=low,high --data %F/set.jsonl --max_new_tokens 8 "
            "--num_runs_per_sample 2 --output_dir %F/out");
    SAYS("(6 measured now, 0 failed)");
    CHECK_INT(chat.answers, 12 + 6); /* plus the warm-ups of six variants */
    remove_folder(in_folder("hint"));
}
static void test_key(void) {
    char path[700];
    check_case("the key is sent, but is not in any file, message or output");
    CHECK(strstr(server.request, KEY) != NULL);
    CHECK(!holds(folder, KEY));
    check_case("a key read from a file");
    snprintf(path, sizeof path, "%s/key", folder);
    FILE *f = fopen(path, "w");
    if (CHECK(f != NULL)) {
        fputs("sk-of-a-file-0815\n", f);
        fclose(f);
    }
    RUNS(0, ONE "--api_key_file %F/key --num_runs_per_sample 1 --output_dir %F/keyed");
    CHECK(strstr(server.request, "Bearer sk-of-a-file-0815") != NULL);
    unlink(path);
    CHECK(!holds(folder, "sk-of-a-file-0815"));
    remove_folder(in_folder("keyed"));
}
static void test_readers(void) {
    document d;
    char line[1000];
    check_case("report: models and members of the request are knobs, stages are reported as unknown");
    RUNS(0, "report %F/out");
    CHECK(strstr(last.out, "unchanged model-a detail=low") && strstr(last.out, "a client cannot measure a server's stages"));
    CHECK(strstr(last.out, "model x detail") && strstr(last.out, "model model-b at http://127.0.0.1:"));
    CHECK(!strstr(last.out, "idle") && !strstr(last.out, "differ in their model"));
    if (CHECK(cli_json("report %F/out --json", 0, &d))) {
        const uint32_t configurations = member(&d, member(&d, 0, "e1_stage_decomposition"), "configurations");
        CHECK_INT(d.nodes[configurations].count, 6);
        CHECK(is_text(&d, member(&d, configurations + 1, "knobs"), "image_url.detail", "high") && is_null(&d, configurations + 1, "top_k"));
        free(d.nodes);
    }
    RUNS(0, "report %F/out --csv");
    CHECK(!strncmp(last.out, "task,tier,target_vision_tokens,top_k,num_active_blocks,num_samples,endpoint,endpoint_model,", 86));
    RUNS(0, "report %F/out --html");
    CHECK(strstr(last.out, "id=\"front\"") && !strstr(last.out, "vision, ms"));
    check_case("best names the file, compare pairs variants, merge reads the journal, score prints the answers, fit rejects a server");
    RUNS(0, "best %F/out --budget_ms 100000");
    CHECK(strstr(last.out, "  file        ") && strstr(last.out, "detail="));
    RUNS(0, "merge %F/out");
    snprintf(line, sizeof line, "score --predictions '%s'", result_of("out", "asis_model-b", "detail=high"));
    RUNS(0, line);
    RUNS(3, "fit %F/out");
    CHECK(strstr(last.err, "comes from a server: its stages cannot be measured by a client") != NULL);
    cli("compare %F/out %F/out --force noise");
    CHECK(strstr(last.out, "6 configurations") != NULL);
    remove_folder(in_folder("out"));
}

static void test_texts(void) {
    static const char *const kept[][2] = {{"report-servers.txt", "report %F/made"}, {"report-servers.csv", "report %F/made --csv"},
                                          {"best-servers.txt", "best %F/made --budget_ms 90"}, {"merge-servers.txt", "merge %F/made"}};
    char *journal = check_read(check_golden("journals/made.jsonl"), NULL);
    if (!CHECK(journal != NULL)) return;
    make_empty(in_folder("made"));
    write_text(in_folder("made/journal.jsonl"), journal);
    free(journal);
    for (int i = 3; i >= 0; i--) { /* merge first, because it writes the files */
        check_case("word by word: %s", kept[i][1]);
        cli(kept[i][1]);
        check_kept_run(kept[i][0], 0);
    }
    remove_folder(in_folder("made"));
}

/* ---- requests */
static void test_sizes(void) {
    static const int32_t images[2][2] = {{200, 150}, {333, 517}};
    vp_family family;
    vp_vision_count count;
    document d;
    check_case("tiers set the size of MolmoE's canvas; images are sent as PNG");
    RUNS(0, ONE "--tier_list low --num_runs_per_sample 1 --output_dir %F/out");
    if (CHECK(load(&d, result_of("out", "tier-low", "model-a")))) {
        const uint32_t rows = member(&d, 0, "per_sample_results"), sent = member(&d, rows + 1, "sent_image");
        CHECK_INT(number(&d, sent, "width_px"), 336);
        CHECK_INT(number(&d, sent, "height_px"), 336);
        CHECK(is_text(&d, sent, "media_type", "image/png") && is_null(&d, rows + 1, "image_tokens_by_rule"));
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("--family: the largest size within the target by the family's rule; a knob sets the rule's key");
    RUNS(0, ONE "--family qwen2_vl --vision_tokens_list 40 1000 --num_runs_per_sample 1 --output_dir %F/out");
    vp_family_default(vp_family_find("qwen2_vl"), &family);
    if (CHECK(load(&d, result_of("out", "tokens40", "model-a")))) {
        const uint32_t rows = member(&d, 0, "per_sample_results");
        for (uint32_t i = rows + 1, k = 0; k < 2; i = d.nodes[i].end, k++) {
            const uint32_t sent = member(&d, i, "sent_image");
            const int32_t width = (int32_t)number(&d, sent, "width_px"), height = (int32_t)number(&d, sent, "height_px");
            CHECK(vp_family_count(&family, width, height, &count, NULL) == VP_OK);
            CHECK_INT(number(&d, i, "image_tokens_by_rule"), count.total_tokens);
            CHECK(count.total_tokens <= 40 && count.total_tokens >= 25);
            CHECK_NEAR((double)width / height, (double)images[k][0] / images[k][1], 0.02);
        }
    }
    unload(&d);
    if (CHECK(load(&d, result_of("out", "tokens1000", "model-a")))) { /* an image with fewer tokens is enlarged */
        const uint32_t rows = member(&d, 0, "per_sample_results");
        CHECK(number(&d, rows + 1, "image_tokens_by_rule") > 900 && number(&d, rows + 1, "image_tokens_by_rule") <= 1000);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    RUNS(0, ONE "--family qwen2_vl --request_knob mm_processor_kwargs.max_pixels=12544 --num_runs_per_sample 1 --output_dir %F/out");
    vp_family_set(&family, "max_pixels", "12544", NULL);
    if (CHECK(load(&d, result_of("out", "asis", "model-a")))) {
        CHECK(vp_family_count(&family, 200, 150, &count, NULL) == VP_OK);
        CHECK_INT(number(&d, member(&d, 0, "per_sample_results") + 1, "image_tokens_by_rule"), count.total_tokens);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("--no_cache: all requests differ, and answers are still recorded");
    RUNS(0, ONE "--no_cache --num_runs_per_sample 2 --output_dir %F/out");
    CHECK(strstr(server.request_body, "\"cache_salt\"") != NULL);
    remove_folder(in_folder("out"));
}

/* Every 7th image is dropped: a warning during the sweep, a count, a flag of its row, a finding. */
static void test_dropped(void) {
    static const char *const families[] = {"", "--family llava1_5 "};
    char text[8000] = "", line[700], here[300] = "";
    document d;
    CHECK(getcwd(here, sizeof here) != NULL);
    chat.image_tokens = 576;
    for (int i = 0; i < 20; i++) { /* one size, texts of different lengths */
        snprintf(line, sizeof line, "{\"id\": %d, \"image\": \"%s/%s\", \"question\": \"What %.*s?\", \"answers\": [\"bus\"]}\n", i, here,
                 check_golden("images/img-200x150.png"), i * 2, "is this that we see here, and is it ours");
        strcat(text, line);
    }
    write_text(in_folder("twenty.jsonl"), text);
    for (int i = 0; i < 2; i++)
        for (int every = 7; every >= 0; every -= 7) {
            check_case("images dropped: %s, %s", every ? "every 7th" : "none", *families[i] ? "by the rule" : "by equal sizes");
            chat.answers = 0;
            chat.dropped_every = every;
            snprintf(line, sizeof line, "sweep --endpoint http://127.0.0.1:%d --endpoint_model model-a --data %%F/twenty.jsonl --max_new_tokens 8 %s",
                     server.port, families[i]);
            strcat(line, "--num_runs_per_sample 1 --output_dir %F/out");
            RUNS(0, line);
            if (every) SAYS("the prompt has 16 tokens, but with its image at least");
            CHECK(!every == !strstr(last.err, "image dropped: in "));
            if (CHECK(load(&d, result_of("out", "asis", "model-a")))) {
                int flagged = 0;
                const uint32_t rows = member(&d, 0, "per_sample_results");
                CHECK_INT(number(&d, 0, "num_dropped_image_runs"), every ? 3 : 0); /* answers 7, 14 and 21; the first is the warm-up */
                for (uint32_t row = rows + 1; row < d.nodes[rows].end; row = d.nodes[row].end) {
                    flagged += d.nodes[member(&d, row, "image_dropped")].type == VP_JSON_TRUE;
                    CHECK((number(&d, row, "total_sequence_length") == 16) == (d.nodes[member(&d, row, "image_dropped")].type == VP_JSON_TRUE));
                }
                CHECK_INT(flagged, every ? 3 : 0);
            }
            unload(&d);
            RUNS(0, "report %F/out");
            CHECK(!every == !strstr(last.out, "the server dropped an image in 3 of 20 runs"));
            remove_folder(in_folder("out"));
        }
    chat.image_tokens = 0;
}
static void test_server_times(void) {
    document d;
    check_case("the server's queue, encoder and prefill are columns and stages; the client's delay is none of them; the only model is found");
    chat.metrics = "\"time_to_first_token_ms\":9,\"queue_time_ms\":1.25,\"encoder_time_ms\":2.5,\"prefill_time\":0.004";
    RUNS(0, ONE "--request_knob include_metrics=true --num_runs_per_sample 1 --output_dir %F/out");
    chat.metrics = NULL;
    if (CHECK(load(&d, result_of("out", "asis", "model-a")))) {
        const uint32_t row = member(&d, 0, "per_sample_results") + 1, times = member(&d, row, "stages"), details = member(&d, row, "served_runs") + 1;
        CHECK_NEAR(number(&d, row, "T_queue"), 1.25, 0);
        CHECK_NEAR(number(&d, row, "T_vision_total"), 2.5, 0);
        CHECK_NEAR(number(&d, row, "T_LLM_prefill"), 4, 1e-9);
        CHECK_NEAR(number(&d, times, "vit"), 2.5, 0);
        CHECK(number(&d, row, "T_client_delay") > 0 && number(&d, details, "sent_ms") == 0);
    }
    unload(&d);
    RUNS(0, "report %F/out");
    CHECK(strstr(last.out, "vision") && !strstr(last.out, "stage times cannot be measured"));
    remove_folder(in_folder("out"));
}
static void test_order(void) {
    int changes = 0, lines = 0;
    char *journal, before[80] = "", *at;
    check_case("the order of the configurations is drawn anew for each sample and run");
    RUNS(0, TWO "--num_runs_per_sample 20 --output_dir %F/out");
    journal = check_read(in_folder("out/journal.jsonl"), NULL);
    for (at = journal; at && (at = strstr(at, "\"config\"")) != NULL; at++) {
        const char *end = strchr(at, '\n'), *of_run = strstr(at, "\"run\"");
        if (!of_run || of_run > end) continue;
        const char *name = strstr(at, "model-b") && strstr(at, "model-b") < end ? "b" : "a";
        if (lines++ % 2 == 0) { /* the first of a round */
            changes += *before && strcmp(before, name);
            strcpy(before, name);
        }
    }
    CHECK_INT(lines, 2 * 3 * 20);
    check_note(changes > 15 && changes < 45, __FILE__, __LINE__, "%d changes in 60 rounds", changes);
    free(journal);
    remove_folder(in_folder("out"));
}

/* One server under two names, on a machine that other programs keep busy: a difference is found in 2 of 20 seeds at most, as times are real. Only
 * with VLMPROF_TEST_ALL=1. */
static void test_equal_servers(void) {
    enum { BUSY_MOST = 64 };
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int busy_count = processors > 0 && processors < BUSY_MOST ? (int)processors : BUSY_MOST;
    pid_t busy[BUSY_MOST];
    int found = 0, noticed = 0;
    if (!check_all()) return;
    check_case("equal servers on a busy machine");
    unsetenv("VLMPROF_TEST_SYSTEM"); /* the machine's own other activity */
    chat.piece_ms = 5;
    for (int i = 0; i < busy_count; i++)
        if ((busy[i] = fork()) == 0) for (volatile int turn = 0;; turn++) {}
    for (int seed = 1; seed <= 20; seed++) {
        char line[400];
        snprintf(line, sizeof line, "sweep --endpoint http://127.0.0.1:%d http://localhost:%d --endpoint_model model-a --data %%F/twenty.jsonl --max_new_tokens 8 ",
                 server.port, server.port);
        snprintf(line + strlen(line), sizeof line - strlen(line), "--num_samples 12 --num_runs_per_sample 2 --seed %d --output_dir %%F/out", seed);
        RUNS(0, line);
        noticed += strstr(last.err, "the machine was not quiet") != NULL;
        RUNS(0, "report %F/out");
        found += !strstr(last.out, "no significant effect on mean T_total") && !strstr(last.out, "but other programs ran");
        remove_folder(in_folder("out"));
    }
    check_note(found <= 2 && noticed >= 18, __FILE__, __LINE__, "%d differences, %d times not quiet", found, noticed);
    for (int i = 0; i < busy_count; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    chat.piece_ms = 0;
    setenv("VLMPROF_TEST_SYSTEM", folder, 1);
}

/* ---- interrupted and resumed */
static void pause_until_answers(int count) {
    for (int i = 0; i < 20000 && hostile_count(&server, &server.request_count) < count && !count_files("killed"); i++) pause_ms(1);
}
#define LONG TWO "--tier_list low high --num_runs_per_sample 2 --output_dir "
static void test_kills(void) {
    const int kills = getenv("SWEEP_KILLS") ? atoi(getenv("SWEEP_KILLS")) : 8;
    pid_t child;
    check_case("killed %d times and resumed: the same answers and counts, nothing measured twice", kills);
    chat.piece_ms = 2;
    chat.answers = 0;
    RUNS(0, LONG "%F/unbroken");
    int all = chat.answers;
    CHECK_INT(all, 2 + 2 * 2 * 3 * 2); /* warm-ups; models, tiers, samples, runs */
    for (int i = 0; i < kills; i++) {
        const int first = hostile_count(&server, &server.request_count);
        child = start(with_port(LONG "%F/killed"), NULL, in_folder("stdout"), 0);
        pause_until_answers(first + 6 + (i * 5) % 11); /* after four GETs and two warm-ups */
        pause_ms(i % 3 * 3);
        kill(child, SIGKILL);
        finish(child, in_folder("stdout"));
        if (count_files("killed")) { /* it had completed: start again */
            RUNS(0, LONG "%F/killed");
            same_results(in_folder("unbroken"), in_folder("killed"));
            remove_folder(in_folder("killed"));
        }
    }
    check_case("Ctrl-C: exit 130, and how to continue");
    chat.piece_ms = 200; /* the rest takes many seconds */
    all = hostile_count(&server, &server.request_count);
    child = start(with_port(LONG "%F/killed"), NULL, in_folder("stdout"), 0);
    pause_until_answers(all + 8);
    kill(child, SIGINT);
    finish(child, in_folder("stdout"));
    CHECK_INT(last.code, 130);
    chat.piece_ms = 0;
    RUNS(0, LONG "%F/killed");
    same_results(in_folder("unbroken"), in_folder("killed"));
    same_results(in_folder("killed"), in_folder("unbroken"));
    remove_folder(in_folder("unbroken"));
    remove_folder(in_folder("killed"));
}
static void test_failures(void) {
    document d;
    check_case("answers that break off are requested again");
    chat.broken_every = 4;
    RUNS(0, ONE "--num_runs_per_sample 3 --output_dir %F/out --json");
    if (CHECK(load(&d, result_of("out", "asis", "model-a")))) CHECK(number(&d, 0, "num_retries") >= 2 && number(&d, 0, "num_failed") == 0);
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("without retries such points fail, and --retry_failed measures them");
    chat.answers = 0;
    chat.broken_every = 3;
    RUNS(1, ONE "--num_runs_per_sample 1 --max_retries 0 --output_dir %F/out");
    SAYS("failed points are rows");
    chat.broken_every = 0;
    RUNS(0, ONE "--num_runs_per_sample 1 --max_retries 0 --retry_failed --output_dir %F/out");
    remove_folder(in_folder("out"));
    check_case("a server disappears: after 8 failures the sweep stops and leaves their points open");
    chat.answers = 0;
    chat.broken_from = 4; /* after two warm-ups and one run */
    RUNS(4, LONG "%F/out --max_retries 0");
    SAYS("8 consecutive failures");
    chat.broken_from = 0;
    RUNS(0, LONG "%F/out --max_retries 0");
    SAYS("0 failed)");
    remove_folder(in_folder("out"));
    check_case("invalid output fails the point and gives the reason");
    chat.answers = 0;
    chat.nonsense_from = 2;
    RUNS(1, ONE "--num_runs_per_sample 1 --output_dir %F/out");
    CHECK(holds(in_folder("out"), "\"status\": \"failed\""));
    chat.nonsense_from = 0;
    remove_folder(in_folder("out"));
    check_case("a knob that the server rejects fails its configurations with the server's message; the others are measured");
    RUNS(1, ONE "--request_knob image_url.detail=low,refused --num_runs_per_sample 1 --output_dir %F/out");
    SAYS("(6 measured now, 3 failed)");
    CHECK(holds(in_folder("out"), "detail refused is none"));
    remove_folder(in_folder("out"));
    check_case("without usage, counts are null, with a reason");
    chat.is_silent = 1;
    RUNS(0, ONE "--num_runs_per_sample 1 --output_dir %F/out");
    if (CHECK(load(&d, result_of("out", "asis", "model-a")))) {
        const uint32_t row = member(&d, 0, "per_sample_results") + 1;
        CHECK(is_null(&d, row, "output_tokens") && is_null(&d, row, "T_decode_per_token") && is_null(&d, row, "output_tokens_per_s"));
        CHECK(!is_null(&d, row, "TTFT") && is_text(&d, member(&d, 0, "null_reasons"), "T_decode_per_token", "the server does not report how many tokens it generated"));
    }
    unload(&d);
    chat.is_silent = 0;
    remove_folder(in_folder("out"));
    check_case("prompts read from a cache give a warning, in the sweep and in its report");
    chat.is_cached = 1;
    RUNS(0, ONE "--num_runs_per_sample 1 --output_dir %F/out");
    SAYS("at least half of the prompt from a cache in 3 of 3 runs");
    RUNS(0, "report %F/out");
    CHECK(strstr(last.out, "from a cache in 3 of 3 runs") != NULL);
    chat.is_cached = 0;
    remove_folder(in_folder("out"));
}
static void test_refusals(void) {
    static const struct { const char *options, *words; } table[] = {
        {"--synthetic tiny", "--synthetic and --endpoint cannot be used together"},
        {"--top_k_list 1 2", "--top_k_list and --endpoint cannot be used together: the server decides"},
        {"--use_profiler", "--use_profiler and --endpoint cannot be used together"},
        {"--style vqa2", "--style and --endpoint cannot be used together"},
        {"--request_knob image_url", "expected PATH=VALUE"},
        {"--request_knob messages[7].x=1", "--request_knob"},
        {"--family qwen2_vl --tier_list low", "with --family, give target tokens"},
        {"--family no_such_family", "--family"},
        {"--family qwen2_vl --no_such_key 3", "no_such_key"},
        {"--tier_list low --vision_tokens_list 600", "cannot be used together"},
        {"--vision_tokens_list 600", "needs --family NAME"},
        {"--api_key_env NO_SUCH_NAME_HERE", "there is no such environment variable"}};
    char line[1500];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        check_case("rejected: %s", table[i].options);
        snprintf(line, sizeof line, "%s--output_dir %%F/none %s", with_port(ONE), table[i].options);
        REFUSED(line, 2, table[i].words);
        CHECK(access(in_folder("none"), F_OK) != 0);
    }
    check_case("rejected: a different number of servers and models, and a password in a URL");
    REFUSED("sweep --endpoint http://h1 http://h2 --endpoint_model a b c --data %F/set.jsonl --output_dir %F/none", 2, "2 servers, but --endpoint_model has 3 names");
    REFUSED("sweep --endpoint http://me:secret@127.0.0.1:1 --endpoint_model a --data %F/set.jsonl --output_dir %F/none", 2,
            "must not contain a user name or password");
    check_case("rejected: server options without a server, several processes, a folder of another plan");
    REFUSED("sweep --synthetic tiny --data %F/set.jsonl --output_dir %F/none --request_knob a=1", 2, "--request_knob needs --endpoint URL");
    REFUSED(with_port("sweep " URL "--data %F/set.jsonl --output_dir %F/none"), 2, "needs --endpoint_model");
    setenv("WORLD_SIZE", "2", 1);
    setenv("RANK", "0", 1);
    REFUSED(with_port(ONE "--output_dir %F/none"), 2, "measured by one process");
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
    RUNS(0, ONE "--num_runs_per_sample 1 --output_dir %F/out");
    REFUSED(with_port(ONE "--num_runs_per_sample 1 --same_image --output_dir %F/out"), 2, "belongs to another plan");
    REFUSED("sweep --synthetic tiny --data %F/set.jsonl --max_new_tokens 8 --num_runs_per_sample 1 --output_dir %F/out", 2, "belongs to another plan");
    check_case("--plan: the grid, and a note that the time must be measured; a journal provides it");
    RUNS(0, ONE "--plan");
    CHECK(strstr(last.out, "time        not known until each configuration has a run") != NULL);
    RUNS(0, ONE "--num_runs_per_sample 1 --output_dir %F/out --plan");
    CHECK(strstr(last.out, "3 runs measured, 0 left") != NULL);
    remove_folder(in_folder("out"));
    check_case("an unreachable server: exit 4, and the journal contains only the plan");
    hostile_stop(&server);
    CHECK_INT(cli(with_port(ONE "--max_retries 0 --output_dir %F/out")), 4);
    SAYS("warm-up of model-a: ");
    CHECK_INT(count_files("out"), 0);
}

int main(void) {
    if (!command_begin("sweep-server")) return 1;
    setenv("OPENAI_API_KEY", KEY, 1);
    chat_start(&server);
    RUN_TESTS(make_set, test_files, test_key, test_readers, test_texts, test_sizes, test_dropped, test_server_times, test_order, test_equal_servers,
              test_kills, test_failures, test_refusals);
    return command_end("test_sweep_server");
}
