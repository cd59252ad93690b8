/* test_virtual.c: load, its report, page, fit and prediction, ask --twins and audit against a virtual server and clock ($B/tests/vlmprof-virtual): their output, word by
 * word (tests/golden/texts/virtual-*). Dates and the machine are masked. KEEP_TEXTS=1 writes the texts again. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"
#include <unistd.h>

#define SERVER "--endpoint http://127.0.0.1:8 --endpoint_model m "
#define LOAD "load " SERVER "--data samples/questions.jsonl --num_samples 4 --arrivals constant --output_dir %%F/"
static void server(const char *settings) { setenv("VLMPROF_VIRTUAL", settings, 1); }
static int there(const char *name) {
    char *text = text_of_file(in_folder(name));
    free(text);
    return text != NULL;
}
static void kept(const char *name, int code) {
    char file[80];
    snprintf(file, sizeof file, "virtual-%s.txt", name);
    check_kept_run(file, code);
}
static void test_trials(void) {
    char *page;
    server("");
    check_case("load at two rates and four concurrencies");
    run(LOAD "l --duration_s 1 --request_rate 40 80 --slo e2e:60,ttft:50");
    kept("rates", 0);
    run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --output_dir %%F/l --duration_s 2 --concurrency 1 2 4 8 --slo e2e:60,ttft:50");
    kept("concurrency", 0);
    check_case("the same command again measures nothing and prints the same");
    run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --output_dir %%F/l --duration_s 2 --concurrency 1 2 4 8 --slo e2e:60,ttft:50 --quiet");
    kept("again", 0);
    check_case("report of the trials: the objective is among the first findings; Markdown, JSON and the page");
    run("report %%F/l");
    kept("report", 0);
    run("report %%F/l --markdown");
    kept("report-markdown", 0);
    CHECK_INT(run("report %%F/l --html=%%F/l.html"), 0);
    page = text_of_file(in_folder("l.html"));
    for (char *at = page; at && (at = strstr(at, "nonce")) != NULL; at += 7)
        memset(at + (at[5] == '-' ? 6 : 7), '0', 16); /* it is a hash of the page, which contains the folder's name */
    for (char *at = page; at && (at = strstr(at, "<dd>20")) != NULL; at += 24) memcpy(at + 4, "0000-00-00T00:00:00Z", 20);
    for (char *at = page; at && (at = strstr(at, "\"day\">20")) != NULL; at += 16) memcpy(at + 6, "0000-00-00", 10);
    if (CHECK(page != NULL)) check_kept("virtual-page.html", page);
    free(page);
}
static void test_rates(void) {
    check_case("--find_rate: a server that takes 8 ms per request sustains 125 per second");
    server("");
    run(LOAD "f --duration_s 1 --find_rate --request_rate 60 --slo e2e:30 --slo_share 80 --rate_precision 20");
    kept("find-rate", 0);
    check_case("a client that stalls for 400 ms: visible from the due time, hidden from the time of sending");
    server("stall_at_ms=300 stall_ms=400 service_us=1000");
    run(LOAD "s --duration_s 1 --request_rate 100 --ramp_s 0.01 --cool_down_s 0.01");
    kept("stall", 0);
}
static void test_places(void) {
    char *text;
    check_case("a rate with --concurrency: a limit on requests in flight; the wait in the client is in the file and is reported");
    server("places=8");
    run(LOAD "p --duration_s 1 --request_rate 400 --concurrency 2");
    kept("places", 0);
    text = text_of_file(in_folder("p/questions_load_rate400_concurrency2.json"));
    CHECK(text && strstr(text, "\"max_concurrency\": 2") && strstr(text, "\"queued_ms\": ") && strstr(text, "\"queued\": {"));
    free(text);
    run("report %%F/p");
    CHECK(last.code == 0 && strstr(last.out, "rate 400, at most 2"));
}
static void test_metrics(void) {
    static const struct { const char *metrics, *file; } servers[] = {{"metrics=1 ", "vllm"}, {"metrics=2 ", "sglang"}, {"metrics=3 ", "llamacpp"}};
    char setting[80], name[40], *page;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        check_case("/metrics of a server like %s: queue and caches during the trial, by its metric names", servers[i].file);
        snprintf(setting, sizeof setting, "%splaces=2 service_us=30000", servers[i].metrics);
        server(setting);
        run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --arrivals constant --output_dir %%F/m%zu --duration_s 6 --request_rate 80", i);
        snprintf(name, sizeof name, "metrics-%s", servers[i].file);
        kept(name, 0);
    }
    check_case("... the page shows them next to the latencies, over the time of the trial");
    CHECK_INT(run("report %%F/m0 --html=%%F/m.html"), 0);
    page = text_of_file(in_folder("m.html"));
    CHECK(page && strstr(page, "id=\"time\"") && strstr(page, "rate 80: latency over the trial") && strstr(page, "rate 80: requests in the server")
          && strstr(page, "rate 80: caches and speculation") && strstr(page, "prefix cache hits 0.25") && !strstr(page, "accepted tokens 0"));
    free(page);
    check_case("missing or unknown metrics: one line, and the trial continues");
    server("metrics=4");
    CHECK_INT(run(LOAD "m3 --duration_s 1 --request_rate 40 --metrics_url http://127.0.0.1:9/x"), 0);
    CHECK(strstr(last.err, "no metrics at http://127.0.0.1:9/x that are known") != NULL && !strstr(last.out, "server's metrics"));
    server("");
    CHECK_INT(run(LOAD "m4 --duration_s 1 --request_rate 40 --quiet"), 0);
    CHECK(!strstr(last.err, "no metrics"));
}
static void test_random(void) {
    static const char *const made = "load " SERVER "--arrivals constant --output_dir %%F/r1 --duration_s 1 --request_rate 40 --random_image 64x48 "
                                    "--random_prompt 30 --num_samples 6 ";
    const char *at;
    char *text;
    int counts = 0;
    long first = 0;
    check_case("synthetic pictures and prompts without a data set; token counts from the server's usage");
    server("");
    run("load " SERVER "--arrivals constant --output_dir %%F/r1 --duration_s 1 --request_rate 40 --random_image 64x48 --random_prompt 30 --num_samples 6 "
        "--output_tokens 3");
    kept("random", 0);
    text = text_of_file(in_folder("r1/random_64x48_30_load_rate40.json"));
    CHECK(text && strstr(text, "\"dataset_name\": \"random_64x48_30\"") && strstr(text, "\"metric\": null") && strstr(text, "\"accuracy\": null"));
    for (at = text ? strstr(text, "\"requests\"") : NULL; at && (at = strstr(at, "\"prompt_tokens\": ")) != NULL; at += 17) {
        const long tokens = atol(at + 17);
        CHECK(tokens > 7 + 30 && tokens < 7 + 30 * 5 + 64); /* this server counts one token per two bytes of text */
        if (!first) first = tokens;
        counts += tokens != first;
    }
    CHECK(counts > 0); /* no two prompts are equal */
    free(text);
    CHECK_INT(run("report %%F/r1"), 0);
    check_case("... answers whose length differs from --output_tokens are reported; the same synthetic requests are not measured again");
    CHECK_INT(run("load " SERVER "--arrivals constant --output_dir %%F/r2 --duration_s 1 --request_rate 40 --random_prompt 9 --num_samples 6 "
                  "--output_tokens 8"), 0);
    CHECK(strstr(last.err, "39 of 39 answers do not have --output_tokens 8 (their mean is 3)") != NULL);
    CHECK_INT(run(made), 2);
    CHECK(strstr(last.err, "made with another max_new_tokens (3, now 16)") != NULL);
    check_case("... and cannot be used with --data");
    CHECK_INT(run(LOAD "r3 --request_rate 40 --random_prompt 9"), 2);
    CHECK(strstr(last.err, "--random_prompt and --data cannot be used together") != NULL);
    CHECK_INT(run("load " SERVER "--output_dir %%F/r3 --request_rate 40 --random_image 0x5"), 2);
}
/* Answers are right without load, and wrong if a request waited 5 ms in the server's queue. */
static void test_correct(void) {
    static const char *const rate = "load " SERVER "--data %%F/right.jsonl --metric anls --output_dir %%F/g%d --duration_s 4 ";
    char line[300], *text;
    FILE *file = fopen(in_folder("right.jsonl"), "w");
    for (int i = 0; file && i < 40; i++) fprintf(file, "{\"question\": \"What is %d?\", \"answers\": [\"a a a\"]}\n", i);
    if (file) fclose(file);
    check_case("correct goodput: in time and right; the accuracy lost under load, compared with one request at a time");
    server("wrong_wait_us=5000");
    snprintf(line, sizeof line, "%s--request_rate 40 80 --arrivals poisson --unloaded --slo e2e:60", rate);
    run(line, 1);
    kept("correct", 0);
    text = text_of_file(in_folder("g1/right_load_rate80.json"));
    CHECK(text && strstr(text, "\"correct_goodput_per_s\": ") && strstr(text, "\"correct_goodput_interval\": ["));
    free(text);
    CHECK(there("g1/right_load_concurrency1.json"));
    strcat(line, " --json --quiet");
    run(line, 1);
    CHECK(last.code == 0 && strstr(last.out, "\"accuracy_change\": {") && strstr(last.out, "\"samples\": 40"));
    check_case("--find_rate with an accuracy: the rate is below the one that latencies allow");
    snprintf(line, sizeof line, "%s--find_rate --request_rate 40 --slo e2e:1000,accuracy:0.8 --rate_precision 20", rate);
    run(line, 2);
    kept("find-accuracy", 0);
    run("best %%F/g2 --slo e2e:1000,accuracy:0.8");
    CHECK(last.code == 0 && strstr(last.out, "fails") != NULL);
    check_case("... if answers are wrong without load, no rate is searched for");
    server("wrong_every=2");
    run(line, 3);
    CHECK(last.code == 1 && strstr(last.out, "no rate can meet the objective: one request at a time has an accuracy of 0.50"));
    text = text_of_file(in_folder("g3/right_find_rate.json"));
    CHECK(text && strstr(text, "\"ended_by\": \"wrong without load\""));
    free(text);
    CHECK_INT(run("load " SERVER "--random_prompt 5 --output_dir %%F/g4 --request_rate 4 --slo accuracy:0.8"), 2);
    CHECK(strstr(last.err, "needs --data with answers") != NULL);
}
/* The contents of a file, with times of day masked. */
static void kept_file(const char *name, const char *golden) {
    char *text = text_of_file(in_folder(name));
    for (char *at = text; at && (at = strstr(at, "_time\": \"20")) != NULL; at += 30) memcpy(at + 9, "0000-00-00T00:00:00Z", 20);
    if (CHECK(text != NULL)) check_kept(golden, text);
    free(text);
}
static void test_exports(void) {
    char *text;
    check_case("--export: a trial in the formats of AIPerf, vLLM's bench and OpenMetrics; --requests_csv");
    server("");
    CHECK_INT(run(LOAD "x2 --duration_s 0.4 --request_rate 40 --slo e2e:60 --export aiperf %%F/a.json vllm %%F/v.json --export openmetrics %%F/o.txt "
                  "--requests_csv %%F/r.csv"), 0);
    kept_file("a.json", "virtual-export-aiperf.json");
    kept_file("v.json", "virtual-export-vllm.json");
    kept_file("o.txt", "virtual-export-openmetrics.txt");
    kept_file("r.csv", "virtual-requests.csv");
    check_case("... several trials, read from their files: a file each, one OpenMetrics file, a column for the trial");
    CHECK_INT(run(LOAD "x2 --duration_s 0.4 --request_rate 40 80 --concurrency 1 --slo e2e:60 --export aiperf %%F/b.json --export openmetrics %%F/o.txt "
                  "--requests_csv %%F/r.csv"), 0);
    text = text_of_file(in_folder("b_rate80_concurrency1.json"));
    CHECK(text && strstr(text, "\"request_latency\": {") && strstr(text, "\"unit\": \"requests/sec\""));
    free(text);
    text = text_of_file(in_folder("o.txt"));
    CHECK(text && strstr(text, "trial=\"rate 80, at most 1\",quantile=\"0.99\"") && !strcmp(text + strlen(text) - 6, "# EOF\n"));
    free(text);
    text = text_of_file(in_folder("r.csv"));
    CHECK(text && strstr(text, "\n\"rate 80, at most 1\",") && strstr(text, "\n\"rate 40, at most 1\","));
    free(text);
    check_case("... an unknown format, or one without a file, is rejected before anything is measured");
    CHECK_INT(run(LOAD "x3 --duration_s 0.4 --request_rate 40 --export csv %%F/a.json"), 2);
    CHECK(strstr(last.err, "unknown format \"csv\"") != NULL);
    CHECK_INT(run(LOAD "x3 --duration_s 0.4 --request_rate 40 --export vllm"), 2);
    CHECK(strstr(last.err, "--export needs a format and a file") != NULL);
}
/* The machine's files: a thread's schedstat. The trial's clock is virtual and the file does not change, so the shares are 0. */
static void test_client(void) {
    char *text;
    check_case("the client's own CPU time and waiting are in the trial's file; null if the system does not report them");
    server("");
    CHECK_INT(run(LOAD "c --duration_s 1 --request_rate 40"), 0);
    text = text_of_file(in_folder("c/questions_load_rate40.json"));
    CHECK(strstr(text, "\"client_cpu_share\": null") && strstr(text, "\"client_busy\": false") && strstr(text, "\"begin_unix_s\": 1"));
    free(text);
}
/* A server that caches images: 20 ms of each image's cost are saved if the same bytes come again. */
static void test_caches(void) {
    check_case("each request of load has its own image; with --same_image the server's cache is used, and every table reports it");
    server("image_us=20000 cache=1");
    CHECK_INT(run(LOAD "unique --duration_s 2 --request_rate 20"), 0);
    CHECK(strstr(last.out, "images: unique") && strstr(last.out, "cached, %") && strstr(last.out, " 0.0\n"));
    CHECK_INT(run(LOAD "same --duration_s 2 --request_rate 20 --same_image"), 0);
    CHECK(strstr(last.out, "images: same") && !strstr(last.out, " 0.0\n"));
    CHECK(strstr(last.err, "share 4 samples, of which 4 have the same bytes each time") != NULL);
    check_case("compare rejects the two with the reason; report and best reject a mixture");
    CHECK_INT(run("compare %%F/unique %%F/same"), 2);
    CHECK(strstr(last.err, "images unique, --no_cache not given / images same") != NULL);
    CHECK_INT(run("compare %%F/unique %%F/same --force images"), 0);
    CHECK(strstr(last.out, "FASTER") && strstr(last.out, "prompt tokens from their caches"));
    CHECK_INT(run("report %%F/unique %%F/same"), 2);
    CHECK(strstr(last.err, "differ in images (") != NULL);
    CHECK_INT(run("best %%F/unique %%F/same --slo e2e:60"), 2);
    check_case("ask and sweep: the same, in the answer's cache line and the report's column");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--num_runs 3"), 0);
    CHECK(strstr(last.out, "cache    0 prompt tokens") && strstr(last.out, "sent as image/jpeg, ") != NULL);
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--num_runs 3 --same_image"), 0);
    CHECK(strstr(last.out, "cache    64 prompt tokens") && strstr(last.err, "it would not happen without --same_image"));
#define CACHED_SWEEP "sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 2 --quiet --output_dir %%F/"
    CHECK_INT(run(CACHED_SWEEP "su"), 0);
    CHECK_INT(run(CACHED_SWEEP "ss --same_image"), 0);
    CHECK_INT(run("report %%F/su"), 0);
    CHECK(strstr(last.out, "images: unique") && strstr(last.out, "cached %"));
    CHECK_INT(run("compare %%F/su %%F/ss"), 2);
    CHECK(strstr(last.err, "images (unique / same)") != NULL);
    CHECK_INT(run(CACHED_SWEEP "sk --same_image --request_knob seed=1"), 0);
    CHECK_INT(run("best %%F/su %%F/sk --budget_ms 1000"), 2);
    CHECK(strstr(last.err, "some files were measured with --same_image and some without") != NULL);
    CHECK_INT(run("report %%F/su %%F/sk"), 0);
    CHECK(strstr(last.out, "the files differ in --same_image") != NULL);
}
static void test_records(void) {
    char *text, *failed, *record;
    check_case("records: request ids and image sizes; a broken stream keeps what arrived; null if nothing is known");
    server("break_every=4");
    CHECK_INT(run(LOAD "r --duration_s 1 --request_rate 40"), 1);
    text = text_of_file(in_folder("r/questions_load_rate40.json"));
    failed = strstr(text, "\"failed\": \"");
    CHECK(strstr(text, "\"request_id\": \"virtual-7\"") && strstr(text, "\"image_size\": [") && strstr(text, "\"image_tokens\": null"));
    CHECK(failed && !strstr(text, "tokens\": -1"));
    if (failed) {
        *failed = 0;
        record = text;
        for (char *at = text; (at = strstr(at, "\"sample_id\": ")) != NULL;) record = at++; /* the request that failed */
        CHECK(strstr(record, "\"pred\": \"a \"") && !strstr(record, "\"first_ms\": null") && strstr(record, "\"TTFT\": null"));
        CHECK(strstr(record, "\"pieces\": 1") && strstr(record, "\"completion_tokens\": null"));
    }
    free(text);
    CHECK_INT(run("report %%F/r"), 0);
    check_case("TPOT is shown only for answers of at least 5 tokens");
    CHECK(strstr(last.out, "TPOT is not shown if answers have fewer than 5 tokens on average") != NULL);
    server("pieces=6");
    CHECK_INT(run(LOAD "six --duration_s 1 --request_rate 20"), 0);
    CHECK(!strstr(last.out, "TPOT is not shown"));
    server("gap_us=1000");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER), 0);
    CHECK(strstr(last.out, "needs 5 tokens or more, the answer has 3") != NULL);
}
static void test_image_keys(void) {
    static const char *const keys[] = {"picture", "img", "image_path", "image_url"};
    char line[300];
    server("");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        check_case("a record with its image under \"%s\" is an error that names the right key, not a question without an image", keys[i]);
        snprintf(line, sizeof line, "{\"%s\": \"samples/cat.jpg\", \"question\": \"What?\", \"answers\": [\"cat\"]}\n", keys[i]);
        write_text(in_folder("keys.jsonl"), line);
        CHECK_INT(run("load " SERVER "--data %%F/keys.jsonl --output_dir %%F/k --duration_s 1 --concurrency 1"), 3);
        snprintf(line, sizeof line, "line 1: it has no \"image\", but has \"%s\"", keys[i]);
        CHECK(strstr(last.err, line) != NULL);
    }
    check_case("a data set without any image is measured, with one warning");
    write_text(in_folder("keys.jsonl"), "{\"question\": \"What?\", \"answers\": [\"cat\"]}\n{\"question\": \"Why?\", \"answers\": [\"cat\"]}\n");
    CHECK_INT(run("load " SERVER "--data %%F/keys.jsonl --output_dir %%F/k --duration_s 1 --concurrency 1"), 0);
    CHECK(strstr(last.err, "no record has an image") && !strstr(strstr(last.err, "no record has an image") + 1, "no record has an image"));
}
static void test_no_rate(void) {
    static const char *const hopeless = LOAD "n --duration_s 1 --find_rate --slo e2e:3 --request_rate 8";
    check_case("--find_rate if even a single request misses the objective: the reason, exit code 1");
    server("");
    CHECK_INT(run(hopeless), 1);
    CHECK(strstr(last.out, "requests that ran alone were good, but 95 % are required, so a lower rate does not help"));
    check_case("empty answers are neither failed nor good, and are in no share; --find_rate ends with them as the reason");
    server("empty_every=3");
    CHECK_INT(run(LOAD "e --duration_s 1 --request_rate 40 --slo e2e:60 --json"), 0);
    CHECK(strstr(last.out, "\"num_empty\": 11") && strstr(last.out, "\"num_failed\": 0") && strstr(last.out, "\"value\": 1.0,"));
    CHECK(strstr(last.err, "answers are empty") != NULL);
    CHECK_INT(run(LOAD "g --duration_s 1 --find_rate --request_rate 40 --slo e2e:60"), 1);
    CHECK(strstr(last.out, "answers are empty, and a lower rate does not change that") && strstr(last.out, "; 1 trial in"));
    check_case("an overloaded server: goodput counts requests by due time, as a warning explains");
    server("");
    CHECK_INT(run(LOAD "swamped --duration_s 1 --request_rate 300 --slo e2e:60000"), 0);
    CHECK(strstr(last.err, "rate 300: the goodput") && strstr(last.err, "it counts good requests by due time"));
    check_case("a search continues from its trials with a larger budget");
    server("");
    CHECK_INT(run(LOAD "c --find_rate --request_rate 60 --slo e2e:30 --budget_s 15"), 0);
    CHECK(strstr(last.err, "or after 15 s") != NULL);
    CHECK_INT(run(LOAD "c --find_rate --request_rate 60 --slo e2e:30 --budget_s 60 --rate_precision 20"), 0);
    CHECK(strstr(last.err, "exists but was made with") == NULL && strstr(last.err, "vlmprof: rate 60 for") == NULL);
    check_case("the result of a search is a file, and --budget_s ends a search");
    {
        char *text = text_of_file(in_folder("g/questions_find_rate.json"));
        CHECK(strstr(text, "\"ended_by\": \"empty answers\"") && strstr(text, "\"realised_rate\": "));
        free(text);
    }
    server("");
    CHECK_INT(run(LOAD "b --duration_s 1 --find_rate --request_rate 60 --slo e2e:30 --budget_s 5"), 0);
    CHECK(strstr(last.out, "--rate_precision 10 was not reached within --budget_s 5"));
}
static void test_ends(void) {
    char *text;
    double offered;
    check_case("Ctrl-C: completed requests are kept as a partial trial; the next run measures it completely");
    server("interrupt_ms=700");
    run(LOAD "i --duration_s 1 --request_rate 50");
    kept("interrupt", 130);
    CHECK(last.err && strstr(last.err, "vlmprof: interrupted: 0 complete trials are in ") && strstr(last.err, "the running one is kept as partial"));
    text = text_of_file(in_folder("i/questions_load_rate50.json"));
    CHECK(text && strstr(text, "\"status\": \"partial\""));
    offered = text && strstr(text, "\"offered_per_s\": ") ? strtod(strstr(text, "\"offered_per_s\": ") + 17, NULL) : 0;
    CHECK(offered > 35 && offered < 65); /* per second of the 0.6 s until then, not of the planned 0.8 s */
    free(text);
    CHECK_INT(run("report %%F/i"), 0);
    CHECK(strstr(last.out, "rate 50 was interrupted: its numbers cover the ") != NULL);
    check_case("a trial that was interrupted in its ramp decides nothing");
    server("interrupt_ms=2700");
    CHECK_INT(run(LOAD "i3 --duration_s 100 --request_rate 50 --slo e2e:60 --quiet"), 130);
    CHECK(strstr(last.out, "was interrupted: its numbers cover the first 0 requests") && !strstr(last.out, "too high") && !strstr(last.out, "too few"));
    server("");
    CHECK_INT(run(LOAD "i --duration_s 1 --request_rate 50 --quiet"), 0);
    text = text_of_file(in_folder("i/questions_load_rate50.json"));
    CHECK(text && strstr(text, "\"status\": \"complete\""));
    free(text);
    check_case("compare: trials whose answers may differ in length are compared with a warning");
    CHECK_INT(run(LOAD "j --duration_s 1 --request_rate 50 --max_new_tokens 3 --quiet"), 0);
    run("compare %%F/i %%F/j");
    CHECK(strstr(last.out, "A and B differ in max_new_tokens (") != NULL);
    check_case("a server that rejects all requests, and one that rejects later ones");
    server("fail_from=2");
    run(LOAD "x --duration_s 1 --request_rate 50");
    kept("refused", 4);
    server("fail_from=30");
    run(LOAD "y --duration_s 1 --request_rate 50");
    kept("refused-later", 1);
    check_case("requests that fail are the first finding, with their reason, and make compare say WORSE");
    CHECK_INT(run("report %%F/y"), 0);
    text = strstr(last.out, "Findings");
    CHECK(text && strstr(text, " of 40 requests failed, the first at 0.") && strstr(text, " s: HTTP 503: busy ("));
    CHECK(text && strstr(text, "requests failed") < strstr(text, "most output tokens"));
    CHECK_INT(run("compare %%F/i %%F/y"), 1);
    CHECK(!strncmp(last.out, "verdict: WORSE\n", 15) && strstr(last.out, " failed, share ") && strstr(last.out, "B: "));
    CHECK_INT(run("compare %%F/y %%F/i"), 0);
    CHECK(strstr(last.out, "BETTER") != NULL);
    CHECK_INT(run("compare %%F/i %%F/i"), 0);
    CHECK(!strstr(last.out, " failed, share "));
    check_case("a trial that is too short to prove the share: how many requests are needed, and how long that takes");
    server("");
    CHECK_INT(run(LOAD "few --duration_s 1 --request_rate 20 400 --slo e2e:60"), 0);
    CHECK(strstr(last.out, "  rate 20: 16 of 16 requests meet e2e:60, too few to prove 95 % (about 73 are needed: --duration_s 5)\n"));
    CHECK(strstr(last.out, "  rate 400 is too high: only ") && strstr(last.out, " requests meet e2e:60, 95 % are required\n"));
    CHECK(strstr(last.out, "  rate 400 is more than this server can handle: 40"));
    CHECK_INT(run("best %%F/few --slo e2e:60"), 1);
    CHECK(strstr(last.out, "independent") && strstr(last.out, "A single trial decides only if its share of that many requests is reliably above or below 95 %"));
    check_case("... and a second run reports that the trial was already measured, and how to repeat it");
    server("");
    CHECK_INT(run(LOAD "y --duration_s 1 --request_rate 50"), 1);
    CHECK(strstr(last.err, "rate 50: already measured (") && strstr(last.err, "questions_load_rate50.json to measure it again"));
    CHECK(strstr(last.err, " of 40 requests failed, the first at "));
    check_case("a server that holds every answer back for 2 s: the silence is a finding with its times");
    server("jam_at_ms=3000 jam_ms=2000");
    CHECK_INT(run(LOAD "jam --duration_s 10 --request_rate 50"), 0);
    CHECK(strstr(last.out, "rate 50: no request received a piece for 2.0 s, from 3.0 s to "));
    CHECK(strstr(last.err, "no request received a piece for 2.0 s") != NULL);
}
/* Trials of a queue at loads 0.6 and 0.75: service times are random, arrivals are the same on both sides. */
static int changed_of_ten(int service_us) {
    int found = 0;
    for (int i = 0; i < 10; i++) {
        static const char *const trial = "load " SERVER "--data samples/questions.jsonl --num_samples 4 --duration_s 6 --request_rate 75 "
                                         "--seed %d --output_dir %%F/p%d-%d-%c --quiet";
        char settings[100];
        for (int side = 0; side < 2; side++) {
            snprintf(settings, sizeof settings, "service_us=%d pieces=6 jitter=50 jitter_seed=%d", side ? service_us : 8000, 2 * i + side + 1);
            server(settings);
            run(trial, i + 1, service_us, i, 'a' + side);
        }
        run("compare %%F/p%d-%d-a %%F/p%d-%d-b", service_us, i, service_us, i);
        found += strstr(last.out, "SLOWER") || strstr(last.out, "FASTER");
        if (!i) CHECK(strstr(last.out, " TTFT, ms ") && strstr(last.out, " TPOT, ms ") && strstr(last.out, " E2E, ms "));
    }
    return found;
}
static void test_pairs(void) {
    check_case("compare pairs requests by due time and sample: a service that takes 25 %% longer is found in 10 of 10 trials");
    CHECK_INT(changed_of_ten(10000), 10);
    check_case("the same server twice is judged slower or faster in at most 1 of 10");
    CHECK(changed_of_ten(8000) <= 1);
    check_case("trials with other arrivals are not paired");
    server("");
    CHECK_INT(run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --duration_s 6 --request_rate 75 --seed 99 --output_dir %%F/q --quiet"), 0);
    run("compare %%F/p8000-0-a %%F/q");
    CHECK(strstr(last.out, "E2E P50, ms") && !strstr(last.out, " E2E, ms "));
    check_case("a trial compared with itself is the same");
    CHECK_INT(run("compare %%F/q %%F/q --fail_on_unsure"), 0);
    CHECK(!strncmp(last.out, "verdict: SAME\n", 14));
}
static void test_twins(void) {
    check_case("ask --twins: an image that takes 40 ms longer than a text of the same number of tokens, and one that does not");
    server("image_us=40000 gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9");
    kept("twins", 0);
    server("gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9 --quiet");
    kept("twins-none", 0);
    check_case("ask: three images, each with its tokens by the rule; --twins for all and for the first");
    server("image_us=40000 gap_us=1000");
    run("ask samples/cat.jpg samples/astronaut.jpg samples/cat.jpg -p what " SERVER "--resize 280x280 --family qwen2_vl --twins 9");
    kept("twins-several", 0);
    run("ask samples/cat.jpg samples/astronaut.jpg -p what " SERVER "--resize 280x280 --family qwen2_vl --twins 9 --json --quiet");
    CHECK(strstr(last.out, "\"T_first_image_outside\": 40") && strstr(last.out, "\"T_further_image_outside\": 40"));
    CHECK(strstr(last.out, "\"image\": null") && strstr(last.out, "\"images\": [") && strstr(last.out, "\"image_tokens_by_rule\": 200"));
    check_case("ask --twins --json: each pair, and the time to the first part of the stream");
    server("image_us=40000 gap_us=1000");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 6 --json"), 0);
    CHECK(strstr(last.out, "\"basis\": \"TTFT\"") && strstr(last.out, "\"first_chunk_ms\": {") && strstr(last.out, "\"image_chunk_ms\": 48."));
    {
        int pairs = 0;
        for (const char *at = last.out; (at = strstr(at, "\"image_first\": ")) != NULL; at++) pairs++;
        CHECK_INT(pairs, 6);
    }
    check_case("ask --twins 4 is rejected: an estimate needs at least 5 pairs; an image with a negative cost exits 1");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--twins 4"), 2);
    CHECK(strstr(last.err, "an estimate needs at least 5 pairs") != NULL);
    server("image_us=-4000 gap_us=1000");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 6"), 1);
    CHECK(strstr(last.err, "is wrong, because the cost of an image cannot be negative. The likely cause: ") != NULL);
    check_case("sweep --twins over three sizes: the line finds 30 ms and 0.6 ms per token");
    server("image_us=30000 token_us=600 gap_us=1000");
    run("sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 16 64 144 --twins 5 --output_dir "
        "%%F/w --quiet");
    CHECK_INT(last.code, 0);
    run("report %%F/w");
    CHECK(strstr(last.out, " 0.600  ms/token     30.00") != NULL);
    check_case("fit keeps the twins' line; predict --workers takes the encoder's time from it, and prefill is the rest of TTFT");
    CHECK_INT(run("fit %%F/w -o %%F/w.json --quiet"), 0);
    CHECK(strstr(last.out, "image from outside, by twins = 30 + 0.6 image tokens") != NULL);
    CHECK_INT(run("predict %%F/w.json --vision_tokens 100 --text_tokens 14 --output_tokens 20 --rate 20 --workers"), 0);
    CHECK(strstr(last.out, "20 requests per second need 3 encoder and 1 language-model workers") && strstr(last.out, "vision encoder            90.0"));
    check_case("audit: equal by the family's rule, and by another");
    server("");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit", 0);
    run("audit " SERVER "--family gemma3 --images 12 --image_pixels 100000");
    kept("audit-other", 1);
    check_case("audit --images_per_request: each image counts as it does separately; a server that drops the third");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000 --images_per_request 4");
    kept("audit-together", 0);
    server("images_most=2");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000 --images_per_request 4");
    kept("audit-dropped", 1);
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000 --images_per_request 3 --json");
    CHECK(last.code == 1 && strstr(last.out, "\"together_words\": [") && strstr(last.out, "\"added\": 0"));
    server("image_us=300000 interrupt_ms=2000");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit-interrupt", 130);
}

/* TTFT = 20 ms + 0.175 ms per image token + 0.05 ms per text token + 60 ns per image byte; service times vary by 4 %. */
static void write_pictures(const char *name, const char *const *pictures, int count) {
    static const char *const questions[] = {"What is it?", "Describe all that can be seen in this picture, from left to right, as exactly as possible.",
                                            "Which colours are there, and which of them covers most of the picture?"};
    char here[2048], text[9000];
    size_t bytes = 0;
    if (!getcwd(here, sizeof here)) return;
    for (int i = 0; i < 3 * count; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "{\"id\": %d, \"image\": \"%s/samples/%s\", \"question\": \"%s\", \"answers\": [\"a\"]}\n", i, here,
                                  pictures[i / 3], questions[i % 3]);
    write_text(in_folder(name), text);
}
static double number_behind(const char *text, const char *object, const char *key) {
    const char *at = text ? strstr(text, object) : NULL;
    at = at ? strstr(at, key) : NULL;
    return at ? atof(at + strlen(key)) : (double)NAN;
}
static void test_law(void) {
    static const char *const seen[] = {"cat.jpg", "astronaut.jpg", "coffee.jpg", "rocket.jpg"}, *const others[] = {"deep-field.jpg", "chart.png", "turned-house.jpg"};
#define LAW_SWEEP "sweep " SERVER "--max_new_tokens 6 --num_runs_per_sample 1 --family qwen2_vl --quiet "
    double mape, width;
    write_pictures("seen.jsonl", seen, 4);
    write_pictures("others.jsonl", others, 3);
    server("service_us=20000 token_us=175 text_us=50 byte_ns=60 gap_us=4000 pieces=6 jitter=4 jitter_seed=5 sizes=1");
    check_case("sweep --plan proposes the grid that separates the cost of an image's bytes from that of its tokens");
    CHECK_INT(run(LAW_SWEEP "--data %%F/seen.jsonl --plan"), 0);
    CHECK(strstr(last.out, "--vision_tokens_list ") && strstr(last.out, "vlmprof fit"));
    check_case("fit: unchanged JPEG files and PNG files of other sizes give the cost of a byte and of a token, each with its own interval");
    CHECK_INT(run(LAW_SWEEP "--data %%F/seen.jsonl --output_dir %%F/la"), 0);
    CHECK_INT(run(LAW_SWEEP "--data %%F/seen.jsonl --vision_tokens_list 64 256 480 --output_dir %%F/lb"), 0);
    CHECK_INT(run("fit %%F/la %%F/lb -o %%F/law.json --json"), 0);
    CHECK(strstr(last.out, "\"has_image_bytes\": true") != NULL);
    CHECK_NEAR(number_behind(last.out, "\"name\": \"image bytes\"", "\"coefficient\": "), 60e-6, 8e-6);
    CHECK_NEAR(number_behind(last.out, "\"name\": \"image tokens\"", "\"coefficient\": "), 0.175, 0.015);
    check_case("predict --data: on pictures and sizes not in the fit, TTFT is off by at most 5 %% on average; the width of intervals is reported");
    CHECK_INT(run(LAW_SWEEP "--data %%F/others.jsonl --output_dir %%F/lc"), 0);
    CHECK_INT(run(LAW_SWEEP "--data %%F/others.jsonl --vision_tokens_list 100 300 --output_dir %%F/lc2"), 0);
    CHECK_INT(run("predict %%F/law.json --data %%F/lc2 --json"), 0);
    mape = number_behind(last.out, "\"TTFT\": {", "\"mape_percent\": ");
    width = number_behind(strstr(last.out, "\"intervals\""), "\"TTFT\": {", "\"median_width_share\": ");
    printf("held-out TTFT: MAPE %.2f %%, intervals %.1f %% wide, %.0f %% inside\n", mape, 100 * width,
           100 * number_behind(strstr(last.out, "\"intervals\""), "\"TTFT\": {", "\"coverage\": "));
    CHECK(mape > 0 && mape <= 5 && width > 0 && width < 0.4);
    CHECK_INT(run("predict %%F/law.json --data %%F/lc"), 0);
    CHECK(strstr(last.out, "interval width, %") && strstr(last.out, "measurements inside, %"));
    CHECK_INT(run(LAW_SWEEP "--data %%F/others.jsonl --vision_tokens_list 100 --plan --json"), 0);
    CHECK(strstr(last.out, "\"fit_bytes_apart\": {") != NULL);
}
static void write_set(void) {
    char here[2048], text[4600];
    size_t bytes = 0;
    if (!getcwd(here, sizeof here)) return;
    for (int i = 0; i < 2; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "{\"id\": %d, \"image\": \"%s/samples/%s.jpg\", \"question\": \"What is it?\", "
                                  "\"answers\": [\"a\"]}\n", i, here, i ? "astronaut" : "cat");
    write_text(in_folder("set.jsonl"), text);
}

int main(void) {
    if (!program_begin("virtual")) return 1;
    setenv("VLMPROF_TEST_SYSTEM", in_folder("no-system"), 1); /* so that the texts do not depend on this machine */
    write_set();
    program = built("tests/vlmprof-virtual");
    test_trials();
    test_rates();
    test_places();
    test_exports();
    test_metrics();
    test_random();
    test_correct();
    test_no_rate();
    test_caches();
    test_records();
    test_image_keys();
    test_client();
    test_ends();
    test_pairs();
    test_twins();
    test_law();
    program_end();
    return check_done("test_virtual");
}
