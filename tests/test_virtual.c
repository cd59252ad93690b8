/* test_virtual.c: load, its report, page, fit and prediction, ask --twins and audit against a server and a clock that are made up ($B/tests/vlmprof-virtual):
 * what they print, word by word (tests/golden/texts/virtual-*). Dates and the machine are masked. KEEP_TEXTS=1 writes the texts again. */
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
static void kept(const char *name, int code) {
    char file[80];
    snprintf(file, sizeof file, "virtual-%s.txt", name);
    check_kept_run(file, code);
}
static void test_trials(void) {
    char *page;
    server("");
    check_case("load at two rates and four numbers of requests at once");
    run(LOAD "l --duration_s 1 --request_rate 40 80 --slo e2e:60,ttft:50");
    kept("rates", 0);
    run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --output_dir %%F/l --duration_s 2 --concurrency 1 2 4 8 --slo e2e:60,ttft:50");
    kept("concurrency", 0);
    check_case("the same command again measures nothing and prints the same");
    run("load " SERVER "--data samples/questions.jsonl --num_samples 4 --output_dir %%F/l --duration_s 2 --concurrency 1 2 4 8 --slo e2e:60,ttft:50 --quiet");
    kept("again", 0);
    check_case("report of the trials: the objective is the first finding; Markdown, JSON and the page");
    run("report %%F/l");
    kept("report", 0);
    run("report %%F/l --markdown");
    kept("report-markdown", 0);
    CHECK_INT(run("report %%F/l --html=%%F/l.html"), 0);
    page = text_of_file(in_folder("l.html"));
    for (char *at = page; at && (at = strstr(at, "nonce")) != NULL; at += 7)
        memset(at + (at[5] == '-' ? 6 : 7), '0', 16); /* it is made of the page, which names the folder */
    for (char *at = page; at && (at = strstr(at, "<dd>20")) != NULL; at += 24) memcpy(at + 4, "0000-00-00T00:00:00Z", 20);
    if (CHECK(page != NULL)) check_kept("virtual-page.html", page);
    free(page);
}
static void test_rates(void) {
    check_case("--find_rate: a server that takes 8 ms a request holds 125 a second");
    server("");
    run(LOAD "f --duration_s 1 --find_rate --request_rate 60 --slo e2e:30 --slo_share 80 --rate_precision 20");
    kept("find-rate", 0);
    check_case("a client that stands still for 400 ms: seen from when requests were due, hidden from the send");
    server("stall_at_ms=300 stall_ms=400 service_us=1000");
    run(LOAD "s --duration_s 1 --request_rate 100 --ramp_s 0.01 --cool_down_s 0.01");
    kept("stall", 0);
}
/* The machine as files say it: a thread's schedstat. The trial's clock is made up; the file stays unchanged, so the shares are 0. */
static void test_client(void) {
    char *text;
    check_case("the client's own CPU time and waiting are in the trial's file; null where the system does not say");
    server("");
    CHECK_INT(run(LOAD "c --duration_s 1 --request_rate 40"), 0);
    text = text_of_file(in_folder("c/questions_load_rate40.json"));
    CHECK(strstr(text, "\"client_cpu_share\": null") && strstr(text, "\"client_busy\": false") && strstr(text, "\"begin_unix_s\": 1"));
    free(text);
}
static void test_image_keys(void) {
    static const char *const keys[] = {"picture", "img", "image_path", "image_url"};
    char line[300];
    server("");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        check_case("a record whose image is under \"%s\" is an error with the right key, not a question without an image", keys[i]);
        snprintf(line, sizeof line, "{\"%s\": \"samples/cat.jpg\", \"question\": \"What?\", \"answers\": [\"cat\"]}\n", keys[i]);
        write_text(in_folder("keys.jsonl"), line);
        CHECK_INT(run("load " SERVER "--data %%F/keys.jsonl --output_dir %%F/k --duration_s 1 --concurrency 1"), 3);
        snprintf(line, sizeof line, "line 1: it has no \"image\", but \"%s\"", keys[i]);
        CHECK(strstr(last.err, line) != NULL);
    }
    check_case("a data set without any image is measured, with one warning");
    write_text(in_folder("keys.jsonl"), "{\"question\": \"What?\", \"answers\": [\"cat\"]}\n{\"question\": \"Why?\", \"answers\": [\"cat\"]}\n");
    CHECK_INT(run("load " SERVER "--data %%F/keys.jsonl --output_dir %%F/k --duration_s 1 --concurrency 1"), 0);
    CHECK(strstr(last.err, "no record has an image") && !strstr(strstr(last.err, "no record has an image") + 1, "no record has an image"));
}
static void test_no_rate(void) {
    static const char *const hopeless = LOAD "n --duration_s 1 --find_rate --slo e2e:3 --request_rate 8";
    check_case("--find_rate where even a request that is alone misses the objective: one trial, the reason, exit code 1");
    server("");
    CHECK_INT(run(hopeless), 1);
    CHECK(strstr(last.out, "no rate can meet the objective: fewer than 95 % of the") && strstr(last.out, "; 1 trial in"));
    check_case("empty answers: neither failed nor good, in no share; --find_rate ends with them as the reason");
    server("empty_every=3");
    CHECK_INT(run(LOAD "e --duration_s 1 --request_rate 40 --slo e2e:60 --json"), 0);
    CHECK(strstr(last.out, "\"num_empty\": 11") && strstr(last.out, "\"num_failed\": 0") && strstr(last.out, "\"value\": 1.0,"));
    CHECK(strstr(last.err, "answers are empty") != NULL);
    CHECK_INT(run(LOAD "g --duration_s 1 --find_rate --request_rate 40 --slo e2e:60"), 1);
    CHECK(strstr(last.out, "answers are empty, and a lower rate does not change that") && strstr(last.out, "; 1 trial in"));
    check_case("the result of a search is a file, and --budget_s ends a search");
    {
        char *text = text_of_file(in_folder("g/questions_find_rate.json"));
        CHECK(strstr(text, "\"ended_by\": \"empty answers\"") && strstr(text, "\"realised_rate\": "));
        free(text);
    }
    server("");
    CHECK_INT(run(LOAD "b --duration_s 1 --find_rate --request_rate 60 --slo e2e:30 --budget_s 5"), 0);
    CHECK(strstr(last.out, "--budget_s ended first") != NULL);
}
static void test_ends(void) {
    char *text;
    double offered;
    check_case("Ctrl-C: what had ended is kept as a partial trial; the next run measures it whole");
    server("interrupt_ms=700");
    run(LOAD "i --duration_s 1 --request_rate 50");
    kept("interrupt", 130);
    CHECK(last.err && strstr(last.err, "vlmprof: interrupted: 0 complete trials are in ") && strstr(last.err, "the one that ran is kept as partial"));
    text = text_of_file(in_folder("i/questions_load_rate50.json"));
    CHECK(text && strstr(text, "\"status\": \"partial\""));
    offered = text && strstr(text, "\"offered_per_s\": ") ? strtod(strstr(text, "\"offered_per_s\": ") + 17, NULL) : 0;
    CHECK(offered > 35 && offered < 65); /* per second of the 0.6 s until then, not of the 0.8 s that were planned */
    free(text);
    CHECK_INT(run("report %%F/i"), 0);
    CHECK(strstr(last.out, "rate 50 was interrupted: its numbers cover the ") != NULL);
    server("");
    CHECK_INT(run(LOAD "i --duration_s 1 --request_rate 50 --quiet"), 0);
    text = text_of_file(in_folder("i/questions_load_rate50.json"));
    CHECK(text && strstr(text, "\"status\": \"complete\""));
    free(text);
    check_case("compare: trials whose answers may have other lengths are compared with a warning");
    CHECK_INT(run(LOAD "j --duration_s 1 --request_rate 50 --max_new_tokens 3 --quiet"), 0);
    run("compare %%F/i %%F/j");
    CHECK(strstr(last.out, "they differ in max_new_tokens (") != NULL);
    check_case("a server that rejects from the first and from a later request on");
    server("fail_from=2");
    run(LOAD "x --duration_s 1 --request_rate 50");
    kept("refused", 4);
    server("fail_from=30");
    run(LOAD "y --duration_s 1 --request_rate 50");
    kept("refused-later", 1);
}
static void test_twins(void) {
    check_case("ask --twins: an image that takes 40 ms longer than a text of as many tokens, and one that takes no longer");
    server("image_us=40000 gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9");
    kept("twins", 0);
    server("gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9 --quiet");
    kept("twins-none", 0);
    check_case("sweep --twins over three sizes: the line finds 30 ms and 0.6 ms a token");
    server("image_us=30000 token_us=600 gap_us=1000");
    run("sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 16 64 144 --twins 3 --output_dir "
        "%%F/w --quiet");
    CHECK_INT(last.code, 0);
    run("report %%F/w");
    CHECK(strstr(last.out, " 0.600  ms/token     30.00") != NULL);
    check_case("audit: equal by the family's rule, and by another");
    server("");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit", 0);
    run("audit " SERVER "--family gemma3 --images 12 --image_pixels 100000");
    kept("audit-other", 1);
    server("image_us=300000 interrupt_ms=2000");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit-interrupt", 130);
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
    setenv("VLMPROF_TEST_SYSTEM", in_folder("no-system"), 1); /* nothing of this machine is in the texts */
    write_set();
    program = built("tests/vlmprof-virtual");
    test_trials();
    test_rates();
    test_no_rate();
    test_image_keys();
    test_client();
    test_ends();
    test_twins();
    program_end();
    return check_done("test_virtual");
}
