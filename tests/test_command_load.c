/* test_command_load.c: the load command against a server with a known queue: files, a second run, reports, rejections. (test_virtual.c tests its output, the rate search
 * and Ctrl-C.) */
#define _GNU_SOURCE
#include "support/queue_server.h"

#include "support/check.h"
#include "support/program.h"
#include "vlmprof.h"

static struct queue_server server;
static char command[600]; /* options common to all runs */

static void start(int places, int64_t service_us) {
    memset(&server, 0, sizeof server);
    server.places = places;
    server.service_us = service_us;
    server.pieces = 3;
    server.gap_us = 500;
    if (!queue_start(&server)) { printf("no server can be started\n"); exit(1); }
    snprintf(command, sizeof command, "load --endpoint http://127.0.0.1:%d --endpoint_model m --data samples/questions.jsonl --num_samples 4 --duration_s 1",
             server.port);
}
static int has(const char *text, const char *words) { return text && strstr(text, words) != NULL; }
static int there(const char *name) {
    struct stat status;
    return stat(in_folder(name), &status) == 0;
}

/* data files of other tools: requests contain their questions and pictures */
static void test_formats(void) {
    static const struct { const char *file; int most; } files[] = {{"vlmevalkit_tsv/MMStar_mini.tsv", 4}, {"hf_parquet/docvqa_validation.parquet", 3},
        {"openai_messages/messages.jsonl", 4}, {"aiperf_jsonl/single_turn.jsonl", 4}, {"arrow/saved", 4}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[100];
        const int before = server.request_count;
        check_case("load --data %s", files[i].file);
        snprintf(name, sizeof name, "f%zu", i);
        run("load --endpoint http://127.0.0.1:%d --endpoint_model m --data tests/golden/datasets/%s --num_samples %d --duration_s 1 --output_dir %%F/%s "
            "--concurrency 1", server.port, files[i].file, files[i].most, name);
        CHECK_INT(last.code, 0);
        CHECK(server.request_count > before + 1 && has(last.out, "concurrency 1"));
    }
}
static void test_trials(void) {
    int before;
    check_case("two rates and one concurrency: a file each, a table, exit code 0");
    CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 80 --arrivals constant --slo e2e:60000,ttft:50000", command), 0);
    CHECK(has(last.out, "rate 40") && has(last.out, "rate 80") && has(last.out, "E2E P95 from send") && has(last.out, "goodput"));
    CHECK(there("l/questions_load_rate40.json") && there("l/questions_load_rate80.json"));
    CHECK_INT(run("%s --output_dir %%F/l --concurrency 3 --slo e2e:60000,ttft:50000", command), 0);
    CHECK(there("l/questions_load_concurrency3.json"));
    {
        char *text = text_of_file(in_folder("l/questions_load_rate40.json"));
        CHECK(has(text, "\"schema\": \"vlmprof-load-1\"") && has(text, "\"status\": \"complete\"") && has(text, "\"goodput_interval\""));
        CHECK(has(text, "\"pred\": \"a a a \"") && has(text, "\"completion_tokens\": 3"));
        CHECK(strlen(text) > 3 && !strcmp(text + strlen(text) - 3, "\n}\n"));
        free(text);
    }
    check_case("the same command again measures only the warm-up and prints the same");
    {
        char *first = NULL;
        CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 80 --arrivals constant --slo e2e:60000,ttft:50000 --quiet", command), 0);
        before = server.request_count;
        first = strdup(last.out);
        CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 80 --arrivals constant --slo e2e:60000,ttft:50000 --quiet", command), 0);
        CHECK_INT(server.request_count, before + 1);
        CHECK_TEXT(last.out, first);
        free(first);
    }
    check_case("other options for the same folder are rejected, and nothing is overwritten");
    CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 --arrivals constant --slo e2e:61", command), 2);
    CHECK(has(last.err, "made with another --slo (e2e:60000,ttft:50000, now e2e:61)") && has(last.err, "best DIR --slo evaluates"));
    CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 --slo e2e:60000,ttft:50000", command), 2);
    CHECK(has(last.err, "made with another arrivals (constant, now poisson)") && !has(last.err, "best DIR"));
    CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 --arrivals constant --slo e2e:60000,ttft:50000 --seed 7", command), 2);
    CHECK(has(last.err, "made with other data or options"));
    check_case("--json: one document with the levels");
    CHECK_INT(run("%s --output_dir %%F/l --request_rate 40 --arrivals constant --slo e2e:60000,ttft:50000 --json", command), 0);
    CHECK(last.out[0] == '{' && has(last.out, "\"levels\"") && has(last.out, "\"good_share\"") && has(last.out, "\"find_rate\": null"));
    check_case("report: findings and tables of the folder; Markdown; a page");
    CHECK_INT(run("report %%F/l"), 0);
    CHECK(has(last.out, "Findings") && has(last.out, "most output tokens per second") && has(last.out, "concurrency 3"));
    CHECK_INT(run("report %%F/l --markdown"), 0);
    CHECK(has(last.out, "| rate 40"));
    CHECK_INT(run("report %%F/l --html=%%F/l.html"), 0);
    {
        char *page = text_of_file(in_folder("l.html"));
        CHECK(has(page, "Good requests against requests per second"));
        CHECK(has(page, "Content-Security-Policy") && has(page, "Requests and goodput against requests per second")
              && has(page, "E2E latency against requests at once") && has(page, "</html>"));
        free(page);
    }
    CHECK_INT(run("report %%F/l --csv"), 2);
    CHECK_INT(run("fit %%F/l/questions_load_rate40.json"), 3);
    CHECK(has(last.err, "is a trial of load; a result file of a sweep is needed"));
    check_case("two trials at the same rate are distinguished by their folders");
    CHECK_INT(run("%s --output_dir %%F/again --request_rate 40 --arrivals constant --slo e2e:60000,ttft:50000", command), 0);
    CHECK_INT(run("report %%F/l %%F/again"), 0);
    CHECK(has(last.out, "rate 40 (l)") && has(last.out, "rate 40 (again)") && !has(last.out, "rate 80 ("));
    check_case("the page's title names the first trial");
    {
        char *text = text_of_file(in_folder("l/questions_load_rate40.json")), *page, *model = text ? strstr(text, "\"endpoint_model\": \"m\"") : NULL;
        if (CHECK(model != NULL)) {
            model[strlen("\"endpoint_model\": \"")] = 'F';
            write_text(in_folder("l/questions_load_rate40.json"), text);
            CHECK_INT(run("report %%F/l/questions_load_rate40.json --html=%%F/l.html"), 0);
            page = text_of_file(in_folder("l.html"));
            CHECK(has(page, "<title>vlmprof: F at http"));
            free(page);
            check_case("trials of different servers or settings are not combined in one report or answer");
            CHECK_INT(run("report %%F/l"), 2);
            CHECK(has(last.err, "differ in model ("));
            CHECK_INT(run("best %%F/l --slo e2e:60000"), 2);
            CHECK(has(last.err, "differ in model"));
        }
        free(text);
    }
}
/* synthetic requests: only as many as are sent; two runs of one folder belong to one plan */
static void test_random(void) {
    check_case("synthetic requests: only those that are due are made; another rate in the same folder belongs to the same plan");
    CHECK_INT(run("load --endpoint http://127.0.0.1:%d --endpoint_model m --random_prompt 5 --duration_s 1 --output_dir %%F/m --request_rate 10 --arrivals constant",
                  server.port), 0);
    char *text = text_of_file(in_folder("m/random_5_load_rate10.json"));
    CHECK(has(text, "\"num_samples\": 10,"));
    free(text);
    CHECK_INT(run("load --endpoint http://127.0.0.1:%d --endpoint_model m --random_prompt 5 --duration_s 1 --output_dir %%F/m --request_rate 10 20 --arrivals constant",
                  server.port), 0);
}
static void test_refusals(void) {
    static const struct { const char *options, *words; } rows[] = {
        {"--output_dir %F/r", "needs --concurrency N, --request_rate R"},
        {"--output_dir %F/r --concurrency 1 2 --request_rate 1", "maximum of concurrent requests: give only one number"},
        {"--output_dir %F/r --request_rate 0", "--request_rate 0: expected a number"},
        {"--output_dir %F/r --request_rate fast", "--request_rate fast: expected a number"},
        {"--output_dir %F/r --request_rate 1 --arrivals burst", "--arrivals burst"},
        {"--output_dir %F/r --request_rate 1 --arrivals gamma:0", "--arrivals gamma:0"},
        {"--output_dir %F/r --concurrency 1 --arrivals poisson", "--arrivals needs --request_rate"},
        {"--output_dir %F/r --find_rate", "--find_rate needs --slo"},
        {"--output_dir %F/r --request_rate 1 --slo itl:5", "unknown limit \"itl\""},
        {"--output_dir %F/r --request_rate 1 --slo tfft:500", "unknown limit \"tfft\"; did you mean ttft?"},
        {"--output_dir %F/r --request_rate 1 --slo ttft", "ttft"},
        {"--output_dir %F/r --request_rate 1 --slo ttft=500", "name:number, as in ttft:500,e2e:5000"},
        {"--output_dir %F/r --request_rate 1 --url http://x", "did you mean --endpoint?"},
        {"--output_dir %F/r --find_rate --slo ttft:5 --budget_s 3", "too short for 4 trials of --duration_s 1"},
        {"--output_dir %F/r --request_rate 1 --ramp_s 1", "leave no time"},
        {"--output_dir %F/r --concurrency 60000", "open files"},
        {"--output_dir %F/r --request_rate 1 --request_knob a=1,2", "one value"},
        {"--request_rate 1", "--output_dir DIR"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_case("rejected: %s", rows[i].options);
        CHECK_INT(run("%s %s", command, rows[i].options), 2);
        CHECK(has(last.err, rows[i].words));
        CHECK(last.out[0] == 0);
    }
    check_case("without data: --random_image is named, and a wrong size is rejected before the server is asked");
    CHECK_INT(run("load --endpoint http://127.0.0.1:1 --endpoint_model m --output_dir %%F/r --concurrency 1"), 2);
    CHECK(has(last.err, "or --random_image WxH"));
    CHECK_INT(run("load --endpoint http://127.0.0.1:1 --endpoint_model m --output_dir %%F/r --concurrency 1 --random_image 224"), 2);
    check_case("a trace: times from a file; a line without a time is rejected with its line number");
    write_text(in_folder("trace"), "0.1\n0.15\n 0.3\n0.9\n7\n");
    CHECK_INT(run("%s --output_dir %%F/t --arrivals trace=%%F/trace --ramp_s 0.01 --cool_down_s 0.01", command), 0);
    CHECK(there("t/questions_load_rate4.json"));
    write_text(in_folder("trace"), "0.1\n0.3\nsoon\n");
    CHECK_INT(run("%s --output_dir %%F/u --arrivals trace=%%F/trace", command), 3);
    CHECK(has(last.err, "line 3"));
    write_text(in_folder("trace"), "0.4\n0.3\n");
    CHECK_INT(run("%s --output_dir %%F/u --arrivals trace=%%F/trace", command), 3);
    CHECK(has(last.err, "line 2 has an earlier time"));
    check_case("hostile trial files: rejected with a message");
    CHECK(run("%s --output_dir %%F/h --concurrency 1", command) == 0);
    write_text(in_folder("h/x_load_rate1.json"), "{\"schema\": \"vlmprof-load-1\", \"request_rate\": -1}");
    CHECK_INT(run("report %%F/h"), 3);
    write_text(in_folder("h/x_load_rate1.json"), "{\"schema\": \"vlmprof-load-1\", \"request_rate\": 1, \"summary\": {\"window_from_s\": 0, \"window_to_s\": 1e300}}");
    CHECK_INT(run("report %%F/h"), 3);
    write_text(in_folder("h/x_load_rate1.json"), "{\"schema\"");
    CHECK_INT(run("report %%F/h"), 3);
    check_case("an unreachable server: exit code 4 and a remedy");
    queue_stop(&server);
    CHECK_INT(run("%s --output_dir %%F/a --concurrency 1", command), 4);
    CHECK(has(last.err, "is the server up"));
    check_case("... the same without the model's name, and before synthetic pictures are made");
    CHECK_INT(run("load --endpoint http://127.0.0.1:%d --data samples/questions.jsonl --output_dir %%F/a --concurrency 1", server.port), 4);
    CHECK(has(last.err, "is the server up"));
    CHECK_INT(run("load --endpoint http://127.0.0.1:%d --endpoint_model m --random_image 64x64 --output_dir %%F/a --concurrency 1", server.port), 4);
    CHECK(has(last.err, "is the server up") && !has(last.err, "making request"));
}

int main(void) {
    if (!program_begin("test_command_load")) return 1;
    start(1, 8000);
    if (run("%s --output_dir %%F/probe --concurrency 1 --duration_s 0.2", command) == 4 && has(last.err, "libcurl")) {
        check_skip("load", "libcurl is not there");
        return check_done("test_command_load");
    }
    test_trials();
    test_formats();
    test_random();
    test_refusals();
    program_end();
    return check_done("test_command_load");
}
