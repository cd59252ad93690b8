/* test_load.c: load as a knob of a served sweep: rates, concurrency and start-up options, from the journal to reports, with a virtual server and clock
 * ($B/tests/vlmprof-virtual) and, for servers that sweep starts itself, samples/stub_server.py. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/program.h"
#include "support/texts.h"
#include <unistd.h>

#define SWEEP "sweep --endpoint http://127.0.0.1:8 --endpoint_model m --data %%F/words.jsonl --metric em --quiet --output_dir %%F/"
#define FILE_OF(rate) "words_imgsizeasis_rate" rate "_m-"
static void server(const char *settings) { setenv("VLMPROF_VIRTUAL", settings, 1); }
/* The text of the one result file in a folder whose name begins so; NULL: none, or several. */
static char *result(const char *where, const char *begin) {
    char command[600], path[500] = "";
    snprintf(command, sizeof command, "ls %s/%s*.json 2>/dev/null", in_folder(where), begin);
    FILE *list = popen(command, "r");
    if (!list) return NULL;
    if (fgets(path, sizeof path, list)) path[strcspn(path, "\n")] = 0;
    pclose(list);
    return *path ? text_of_file(path) : NULL;
}
static int count_of(const char *text, const char *word) {
    int count = 0;
    for (const char *at = text; at && (at = strstr(at, word)) != NULL; at += strlen(word)) count++;
    return count;
}
static const char *in_folder_command(const char *command, const char *where) {
    static char text[1000];
    snprintf(text, sizeof text, command, in_folder(where));
    return text;
}
static int count_in(const char *file, const char *word) {
    char *text = text_of_file(in_folder(file));
    const int count = count_of(text, word);
    free(text);
    return count;
}
static void test_sweep(void) {
    check_case("two rates: a file for each with the rate as a knob, its blocks, and times from the due time; ramps are recorded and not counted");
    server("gap_us=0");
    CHECK_INT(run(SWEEP "r --request_rate_list 30 100.0 --num_samples 60 --num_runs_per_sample 2 --ramp_s 1"), 0);
    char *text = result("r", FILE_OF("100")), *journal = text_of_file(in_folder("r/journal.jsonl"));
    CHECK(text && strstr(text, "\"request_rate\": 100") && count_of(text, "\"round\": ") == 2 && strstr(text, "\"num_ok\": 60"));
    CHECK(count_of(journal, "\"run\": ") == 2 * 2 * 60 && count_of(journal, "\"ramp\": [[") == 4);
    free(text), free(journal);
    EXITS(run("report %%F/r"), 0, out, " of that with 30 requests/s (no interval: under load, requests wait for each other)");
    CHECK(strstr(last.out, "E1: latency, ms; P50 over requests"));
    check_case("under load, E1 has each time over requests, as the sweep's table has: a sample's mean over its rounds is not used");
    server("gap_us=500");
    CHECK_INT(run(SWEEP "e --request_rate_list 30 --num_samples 60 --num_runs_per_sample 2 --ramp_s 1"), 0);
    CHECK_INT(system(in_folder_command("sed -i 's/\"T_LLM_decode\": .1.0, 1.0./\"T_LLM_decode\": [1.0, 9.0]/; "
                                       "s/\"T_decode_per_token\": .0.5, 0.5./\"T_decode_per_token\": [0.5, 3.5]/' %s/words*", "e")), 0);
    EXITS(run("report %%F/e --html"), 0, out, "Times are medians over the requests under load in ms");
    CHECK(strstr(last.out, "percentiles over samples, or requests under load") != NULL);
    EXITS(run("report %%F/e"), 0, out, "    5.00     -       0.0 "); /* between 60 requests of 1 and 60 of 9 ms */
    CHECK_INT(run("report %%F/e --json"), 0);
    CHECK(strstr(last.out, "\"T_LLM_decode\": {\n      \"count\": 120,\n      \"mean\": 5.0"));
    CHECK(strstr(last.out, "\"T_decode_per_token\": {\n      \"count\": 120,\n      \"mean\": 2.0"));
    check_case("a sweep that was stopped in a block goes on in it: no request is measured twice, and none is missing");
    server("gap_us=0 interrupt_ms=4000");
    CHECK_INT(run(SWEEP "k --request_rate_list 30 --num_samples 60 --num_runs_per_sample 2 --ramp_s 1"), 130);
    journal = text_of_file(in_folder("k/journal.jsonl"));
    const int before = count_of(journal, "\"run\": ");
    CHECK(before > 10 && before < 120);
    free(journal);
    server("gap_us=0");
    CHECK_INT(run(SWEEP "k --request_rate_list 30 --num_samples 60 --num_runs_per_sample 2 --ramp_s 1"), 0);
    journal = text_of_file(in_folder("k/journal.jsonl"));
    CHECK_INT(count_of(journal, "\"run\": "), 120);
    CHECK(count_of(journal, "\"done\": 2") == 60 && count_of(journal, "{\"load\": ") == 3);
    free(journal);
    EXITS(run("report %%F/k"), 0, out, " 120       0\n");
    CHECK(!strstr(last.out, "because a block was stopped"));
    check_case("a grid of rates can grow, and merge writes its files again");
    CHECK_INT(run(SWEEP "k --request_rate_list 30 60 --num_samples 60 --num_runs_per_sample 2 --ramp_s 1"), 0);
    CHECK_INT(run("merge %%F/k"), 0);
    text = result("k", FILE_OF("60"));
    CHECK(text && strstr(text, "\"request_rate\": 60") && count_of(text, "\"round\": ") == 2);
    free(text);
    check_case("a closed loop: concurrency is the knob");
    CHECK_INT(run(SWEEP "c --concurrency_list 1 4 --num_samples 60 --num_runs_per_sample 1 --ramp_s 1"), 0);
    EXITS(run("report %%F/c"), 0, out, "conc=4     ");
    CHECK(strstr(last.out, "Under load") && strstr(last.out, "no front: only the load varies"));
    check_case("the page has a plot of each number that was measured");
    CHECK_INT(run("report %%F/c --html"), 0);
    CHECK(count_of(last.out, "Times are measured from when a request was due") == 4 && strstr(last.out, "Correct answers per second"));
    write_text(in_folder("plain.jsonl"), "{\"question\": \"a?\"}\n{\"question\": \"b?\"}\n");
    CHECK_INT(run("sweep --endpoint http://127.0.0.1:8 --endpoint_model m --data %%F/plain.jsonl --quiet --output_dir %%F/p --concurrency_list 1 2 --ramp_s 0"), 0);
    CHECK_INT(run("report %%F/p --html"), 0);
    CHECK(count_of(last.out, "Times are measured from when a request was due") == 4 && !strstr(last.out, "Correct answers per second"));
}
static void test_failures(void) {
    check_case("HTTP 429 under load is a failed row with its reason, not sent again, and a wrong answer; the sweep exits 1");
    server("gap_us=0 fail_every=10");
    EXITS(run("sweep --endpoint http://127.0.0.1:8 --endpoint_model m --data %%F/words.jsonl --metric em --output_dir %%F/f --request_rate_list 30 --num_samples 60 "
              "--num_runs_per_sample 1 --ramp_s 0"), 1, err, "HTTP 429: too many requests");
    char *text = result("f", FILE_OF("30")), *journal = text_of_file(in_folder("f/journal.jsonl"));
    CHECK(text && strstr(text, "\"num_failed\": 6,") && count_of(journal, "\"failed\": \"") == 6 && count_of(journal, "\"run\": ") == 54);
    CHECK_INT(count_of(text, "\"accuracy_count\": 60"), 1);
    free(text), free(journal);
    EXITS(run("report %%F/f"), 0, out, "6 samples failed and count as wrong; the first: http://127.0.0.1:8: HTTP 429");
    CHECK(strstr(last.out, "0.900 [") != NULL);
    check_case("a rate above the server's: no steady state, in the sweep and in the report");
    server("gap_us=0");
    EXITS(run("sweep --endpoint http://127.0.0.1:8 --endpoint_model m --data %%F/words.jsonl --metric em --output_dir %%F/g --request_rate_list 200 --num_samples 200 "
              "--num_runs_per_sample 1 --ramp_s 1"), 0, err, "no steady state: ");
    EXITS(run("report %%F/g"), 0, out, "no steady state in 1 of 1 blocks");
    check_case("an outage in a block: its failures in succession are not answers, and are measured when the sweep goes on");
    server("gap_us=0 crash_at=41");
    EXITS(run("sweep --endpoint http://127.0.0.1:8 --endpoint_model m --data %%F/words.jsonl --metric em --output_dir %%F/o --request_rate_list 30 --num_samples 60 "
              "--num_runs_per_sample 1 --ramp_s 0"), 4, err, "requests in succession got no answer");
    CHECK(strstr(last.err, " points and ") && strstr(last.err, " requests measured now are in ") && strstr(last.err, "; restart the server, then run the same"));
    CHECK_INT(count_in("o/journal.jsonl", "\"failed\": \""), 0);
    server("gap_us=0");
    CHECK_INT(run(SWEEP "o --request_rate_list 30 --num_samples 60 --num_runs_per_sample 1 --ramp_s 0"), 0);
    check_case("bad input is refused before anything is sent");
    static const struct { const char *options, *words; } bad[] = {
        {"--request_rate_list 0", "expected requests/s from 0.001"}, {"--request_rate_list -2", "expected requests/s"},
        {"--request_rate_list 1e9", "expected requests/s"}, {"--knob policy=1", "vlmprof has a knob of this name"},
        {"--request_rate_list 4 4.0", "listed twice"}, {"--request_rate_list 4 --concurrency_list 2", "cannot be used together"}, {"--concurrency_list 0", "outside"},
        {"--request_rate_list 4 --twins 5", "cannot be used together"}, {"--ramp_s 1", "need --request_rate_list"}, {"--knob a=1,2", "but there is 1 data file"},
        {"--server x --knob a=1", "has no {a}"}, {"--server x{a} --knob a=1,1", "listed twice"}, {"--server x{tier} --knob tier=1", "vlmprof has a knob of this name"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) EXITS(run(SWEEP "bad %s", bad[i].options), 2, err, bad[i].words);
    CHECK(access(in_folder("bad"), F_OK) != 0);
}
/* The requests that best says are needed to decide limits in the folder j. */
static int needed(const char *limits) {
    run("best %%F/j --most request_rate --limit %s", limits);
    const char *at = last.out ? strstr(last.out, "undecided: needs about ") : NULL;
    return at ? atoi(at + 23) : 0;
}
static void test_decisions(void) {
    check_case("best --at: one load; --most: the largest rate that keeps all limits, by measured percentiles");
    server("gap_us=0");
    CHECK_INT(run(SWEEP "b --request_rate_list 30 60 100 160 --num_samples 300 --num_runs_per_sample 2 --ramp_s 1"), 0);
    EXITS(run("best %%F/b --budget_ms 1000 --latency ttft --at request_rate=60"), 0, out, "rate=60: the best within 1000 ms (P95 of TTFT)");
    EXITS(run("best %%F/b --budget_ms 1000 --at request_rate=7"), 2, err, "the values are");
    EXITS(run("best %%F/b --budget_ms 1000 --at rate=7"), 2, err, "no file has this knob; did you mean request_rate? the knobs are: endpoint = 127.0.0.1:8;");
    CHECK(strstr(last.err, "request_rate = ") && !strstr(last.err, "weights ="));
    EXITS(run("best %%F/b --budget_ms 1000 --at slot=7"), 2, err, "no file has this knob; the knobs are: ");
    EXITS(run("best %%F/b --most request_rate --limit ttft:60 accuracy:0.9"), 0, out,
          "rate=60: the largest request_rate that reliably meets ttft:60 accuracy:0.9 (P95 of the times)");
    CHECK(strstr(last.out, "unchanged rate=30") < strstr(last.out, "unchanged rate=160"));
    CHECK(strstr(last.out, "with 95 % intervals, which need at least 72 independent requests\n"));
    EXITS(run("best %%F/b --most request_rate --limit ttft:17"), 0, out, "next step: measure request_rate 45, between 30 (yes) and 60 (no)");
    EXITS(run("best %%F/b --most request_rate --limit accuracy:0.5"), 0, out, "reliably meets accuracy:0.5\n");
    check_case("a budget has one rule under load: --budget_ms and --most accept and refuse the same configurations");
    static const int rates[] = {30, 60, 100};
    for (int i = 0; i < 3; i++)
        for (int limit = 8; limit < 120; limit += 7) {
            const int code = run("best %%F/b --most request_rate --limit ttft:%d --at request_rate=%d", limit, rates[i]);
            CHECK_INT(run("best %%F/b --latency ttft --budget_ms %d --at request_rate=%d", limit, rates[i]), code);
            if (code) CHECK(strstr(last.err, "reliably meet")); else CHECK(strstr(last.out, "met reliably, by the rule of --most"));
        }
    EXITS(run("best %%F/b --latency ttft --budget_ms 22"), 0, out, "none: no other configuration reliably meets the budget; 1 undecided");
    EXITS(run("policy %%F/b --budget_ms 60 --budget p95"), 2, err, "under load a limit applies to single requests: use --budget mean");
    EXITS(run("best %%F/b --most request_rate --limit ttft:1"), 1, err, "no configuration reliably meets the limits");
    EXITS(run("best %%F/b --most tier --limit ttft:1"), 2, err, "no file has this knob; the knobs are: ");
    EXITS(run("best %%F/b --most request_rate --limit speed:1"), 2, err, "expected ttft:MS");
    static const char *const meant[][2] = {{"TTFT=60ms", "did you mean ttft:60?"}, {"ttft:0.5s", "did you mean ttft:500?"}, {"e2e:2s", "did you mean e2e:2000?"},
        {"accuracy:80%", "did you mean accuracy:0.8"}, {"700", "did you mean ttft:700?"}};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) EXITS(run("best %%F/b --most request_rate --limit %s", meant[i][0]), 2, err, meant[i][1]);
    EXITS(run("best %%F/b --most request_rate --limit ttft:5min"), 2, err, "SHARE above 0\n");
    EXITS(run("best %%F/b --most request_rate --limit TTFT:60 --json"), 0, out, "\"requests_needed\": null");
    check_case("an undecided limit says how many requests decide it, and --plan warns of too few for P95");
    CHECK_INT(run(SWEEP "few --request_rate_list 30 --num_samples 60 --num_runs_per_sample 1 --ramp_s 1"), 0);
    EXITS(run("best %%F/few --most request_rate --limit ttft:900"), 1, out, "requests; you have 60 (--num_runs_per_sample 3)");
    EXITS(run("best %%F/few --most request_rate --limit ttft:5"), 1, out, " no\n");
    EXITS(run("best %%F/few --latency ttft --budget_ms 5"), 1, err, "best: the only configuration does not reliably meet 5 ms at the P95 of TTFT; it is ");
    check_case("one broken limit decides: the requests needed are those that show it, however many another limit needs");
    server("gap_us=500 jitter=50");
    CHECK_INT(run(SWEEP "j --request_rate_list 100 --num_samples 100 --num_runs_per_sample 2 --ramp_s 1"), 0);
    const int breaks = needed("e2e:35"), keeps = needed("ttft:44");
    CHECK(breaks > 200 && keeps > breaks);
    CHECK_INT(needed("ttft:44 e2e:35"), breaks);
    CHECK_INT(needed("ttft:60 e2e:35"), breaks);
    CHECK_INT(needed("ttft:60 e2e:46"), needed("e2e:46"));
    server("gap_us=0");
    EXITS(run(SWEEP "few2 --plan --request_rate_list 30 --num_samples 60 --num_runs_per_sample 1"), 0, out, "60 requests per load may be too few to decide a limit");
    check_case("compare says WORSE when answers get worse under load, though they come faster");
    CHECK_INT(run(SWEEP "a1 --request_rate_list 60 --num_samples 200 --num_runs_per_sample 1 --ramp_s 1"), 0);
    server("gap_us=0 service_us=6000 wrong_ms=9");
    CHECK_INT(run(SWEEP "a2 --request_rate_list 60 --num_samples 200 --num_runs_per_sample 1 --ramp_s 1"), 0);
    EXITS(run("compare %%F/a1 %%F/a2"), 1, out, "verdict: WORSE");
    CHECK(strstr(last.out, "FASTER") != NULL);
    check_case("a planted 10 %% is found with 200 requests a side");
    server("gap_us=0 jitter=20 jitter_seed=5");
    CHECK_INT(run(SWEEP "p1 --request_rate_list 40 --num_samples 200 --num_runs_per_sample 1 --ramp_s 1"), 0);
    server("gap_us=0 jitter=20 jitter_seed=6 service_us=8800");
    CHECK_INT(run(SWEEP "p2 --request_rate_list 40 --num_samples 200 --num_runs_per_sample 1 --ramp_s 1"), 0);
    EXITS(run("compare %%F/p1 %%F/p2"), 1, out, "verdict: SLOWER (");
    check_case("A/A at one rate: no false verdict in 20 seeds");
    int wrong = 0;
    for (int seed = 0; seed < 20; seed++) {
        char settings[80];
        for (int side = 0; side < 2; side++) {
            snprintf(settings, sizeof settings, "gap_us=0 jitter=20 jitter_seed=%d", 100 + 2 * seed + side);
            server(settings);
            run(SWEEP "s%d-%d --request_rate_list 60 --num_samples 200 --num_runs_per_sample 1 --ramp_s 1", seed, side);
        }
        const int code = run("compare %%F/s%d-0 %%F/s%d-1", seed, seed);
        wrong += code != 0 || strstr(last.out, "verdict: FASTER") || strstr(last.out, "verdict: SLOWER");
    }
    CHECK_INT(wrong, 0);
}
/* Servers that sweep starts. */
static void test_servers(void) {
    if (system("python3 -c 'import http.server' 2>/dev/null")) { check_skip("sweep --server", "no python3"); return; }
    char here[2048];
    if (!getcwd(here, sizeof here)) return;
    program = built("tests/vlmprof-hooks");
#define STARTED "sweep --endpoint http://127.0.0.1:18437 --endpoint_model stub --data %%F/words.jsonl --num_samples 6 --num_runs_per_sample 2 --ramp_s 0 " \
                "--max_new_tokens 2 --ready_timeout_s 60 --output_dir %%F/"
    check_case("--server: each value of a knob in a server of its own, in the order 1 2 2 1; the values are an axis; the servers are ended");
    CHECK_INT(run(STARTED "z --quiet --server 'exec python3 %s/samples/stub_server.py --port 18437 --token_ms {ms}' --knob ms=0,1", here), 0);
    CHECK(count_in("z/server-ms-0.log", "# 2") == 2 && count_in("z/server-ms-1.log", "# 2") == 2);
    EXITS(run("report %%F/z"), 0, out, "ms=1");
    CHECK(system("pgrep -f '[s]tub_server.py --port 18437' >/dev/null") != 0);
    check_case("no server comes up: an error with the end of the log, and no table, no result file and no failed point; values are quoted for the shell");
    EXITS(run(STARTED "y --server 'echo started with {v}; echo and gone; exit 3' --knob 'v=1,$(exit 9) x'"), 4, err,
          "the server exited before http://127.0.0.1:18437/v1/models answered (exit code 3); the end of ");
    CHECK(strstr(last.err, "and gone") && strstr(last.err, "no server was ready, so nothing was measured: try the command") && !strstr(last.err, "next:"));
    CHECK(!*last.out && !result("y", "words_") && count_in("y/journal.jsonl", "\"failed\"") == 0);
    CHECK_INT(count_in("y/server-v---exit-9--x.log", "started with $(exit 9) x"), 1);
    check_case("one of two servers does not come up: its points fail, and its accuracy is not 0 but unknown");
    EXITS(run(STARTED "w --server 'test {v} = 1 && exec python3 %s/samples/stub_server.py --port 18437 --token_ms 0; exit 3' --knob v=2,1 --server_rounds 1",
              here), 1, err, "failed points are rows");
    CHECK(count_in("w/journal.jsonl", "\"failed\": \"the server exited") == 6 && count_in("w/journal.jsonl", "\"run\": ") == 12);
    CHECK(strstr(last.out, "stub-v=2-") && strstr(last.out, " -\n") && strstr(last.out, " -\n") < strstr(last.out, "stub-v=1-"));
    check_case("a server that dies: the rest of its block fails, and it is started again for the next block");
    EXITS(run(STARTED "x --server 'exec python3 %s/samples/stub_server.py --port 18437 --token_ms 0 --die_after 4' --request_rate_list 1 2", here), 1, err,
          "the server exited (exit code 1); the end of ");
    CHECK(!strstr(last.err, "accepted the connection") && strstr(last.err, "failed points are rows"));
    CHECK(count_in("x/server.log", "# 2") >= 2 && count_in("x/journal.jsonl", "\"run\": ") > 2);
    check_case("https at a server that speaks http");
    run("sweep --endpoint https://127.0.0.1:18437 --endpoint_model stub --data %%F/words.jsonl --num_samples 1 --num_runs_per_sample 1 --ramp_s 0 --request_rate_list 1 "
        "--ready http://127.0.0.1:18437/v1/models --server 'exec python3 %s/samples/stub_server.py --port 18437' --output_dir %%F/tls", here);
    CHECK(last.code && strstr(last.err, "; does the server speak http, not https?"));
    program = built("tests/vlmprof-virtual");
}
int main(void) {
    if (!program_begin("load")) return 1;
    setenv("VLMPROF_TEST_SYSTEM", in_folder("no-system"), 1);
    char *text = calloc(400, 80);
    for (int i = 0, at = 0; text && i < 400; i++) at += sprintf(text + at, "{\"id\": %d, \"question\": \"what %d\", \"answers\": [\"a a a\"]}\n", i, i);
    write_text(in_folder("words.jsonl"), text);
    program = built("tests/vlmprof-virtual");
    RUN_TESTS(test_sweep, test_failures, test_decisions, test_servers);
    program_end();
    free(text);
    return check_done("test_load");
}
