/* test_server_law.c: result files of servers -> a latency model of TTFT and of the time per token -> predictions. This program writes sweeps of a server with known
 * costs: fit must find them within their intervals, its held-out errors must be the planted noise, and predictions must cover later times of the same server. Also
 * servers that report little, hostile files, exit codes. Runs $PROGRAM (default ./vlmprof) from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/made_server.h"

enum { SAMPLES = 40 };

/* ---- the latency model */
static int check_line(const char *line, const double *planted, int columns) {
    int inside = 0;
    for (int c = 0; c < columns; c++) {
        double got = number_at("laws.0.lines.%s.columns.%d.coefficient", line, c), error = number_at("laws.0.lines.%s.columns.%d.standard_error", line, c);
        double low = number_at("laws.0.lines.%s.columns.%d.interval.0", line, c), high = number_at("laws.0.lines.%s.columns.%d.interval.1", line, c);
        check_note(fabs(got - planted[c]) <= 4 * error, __FILE__, __LINE__, "%s %d: %g +- %g, truth %g", line, c, got, error, planted[c]);
        inside += low <= planted[c] && planted[c] <= high;
    }
    return inside;
}
static void test_recovery(void) {
    const double ttft[] = {SERVER.fixed, SERVER.image, SERVER.text, SERVER.byte}, step[] = {SERVER.step, SERVER.step_prompt};
    const double noise = 100 * SERVER.noise * 0.798; /* mean |error| of a normal distribution */
    check_case("known costs are found within their intervals");
    write_server("a", &SERVER, 7, SAMPLES);
    CHECK_INT(run("fit %%F/a -o %%F/law.json --output_dir %%F/out --json"), 0);
    CHECK_TEXT(last.err, "");
    if (!read_json(last.out)) return;
    CHECK_INT(whole(at_path("laws.0.rows")), SIZE_COUNT * SAMPLES);
    CHECK(is_text(at_path("laws.0.image_tokens_of"), "usage"));
    CHECK_INT(json.nodes[at_path("laws.0.warnings")].count, 0);
    CHECK(check_line("TTFT", ttft, 4) + check_line("T_decode_per_token", step, 2) >= 5); /* 5 of 6 at 95 % */
    check_case("errors on unseen samples equal the planted noise");
    CHECK_NEAR(number_at("laws.0.evaluation.law.leave_one_configuration_out.TTFT.mape_percent"), noise, 0.5);
    CHECK_NEAR(number_at("laws.0.evaluation.law.leave_prompt_lengths_out.TTFT.mape_percent"), noise, 0.5);
    CHECK_NEAR(number_at("laws.0.evaluation.law.leave_one_configuration_out.T_decode_per_token.mape_percent"), noise, 0.5);
    CHECK(number_at("laws.0.evaluation.law.leave_one_configuration_out.T_total.mape_percent") < noise);
    CHECK(number_at("laws.0.evaluation.law.leave_one_configuration_out.T_total.r2") > 0.95);
    CHECK(number_at("laws.0.evaluation.mean.in_sample.TTFT.mape_percent") > 20);
    CHECK(number_at("laws.0.evaluation.mean.leave_one_configuration_out.TTFT.r2") < 0);
    CHECK_INT(json.nodes[at_path("laws.0.evaluation")].count, 3); /* the latency model, the mean, and the noise of runs */
    check_case("the text contains the same numbers");
    CHECK_INT(run("fit %%F/a"), 0);
    CHECK(strstr(last.out, "200 measurements of 5 configurations of made-vl at http://127.0.0.1:8000") && strstr(last.out, "Errors of TPOT"));
    CHECK(strstr(last.out, "configuration left out") && strstr(last.out, "prompt lengths left out") && strstr(last.out, "ms / (image tokens)"));
    {
        char *one = text_of_file(in_folder("law.json")), *other = text_of_file(in_folder("out/e3_latency_estimator.json"));
        CHECK_TEXT(one, other);
        FREE_ALL(one, other);
    }
}
static void test_predictions(void) {
    vp_random random;
    int inside[3] = {0}, count = 150;
    check_case("intervals cover the server's next times");
    vp_random_seed(&random, 99);
    for (int i = 0; i < count; i++) {
        double image = 60 + vp_random_below(&random, 900), text = 15 + vp_random_below(&random, 180), bytes = 3e4 + 9e5 * vp_random_double(&random);
        double tokens = 2 + vp_random_below(&random, 35), takes[3];
        takes[0] = ttft_of(&SERVER, image, text, bytes) * (1 + SERVER.noise * normal(&random));
        takes[1] = step_of(&SERVER, image + text) * (1 + SERVER.noise * normal(&random));
        takes[2] = takes[0] + (tokens - 1) * takes[1];
        CHECK_INT(run("predict %%F/law.json --vision_tokens %.0f --text_tokens %.0f --image_bytes %.0f --output_tokens %.0f --json", image, text, bytes, tokens), 0);
        if (!read_json(last.out)) return;
        for (int part = 0; part < 3; part++) {
            static const char *const keys[] = {"TTFT", "T_decode_per_token", "T_total"};
            inside[part] += takes[part] >= number_at("laws.0.predictions.0.%s.interval_ms.0", keys[part])
                            && takes[part] <= number_at("laws.0.predictions.0.%s.interval_ms.1", keys[part]);
        }
    }
    for (int part = 0; part < 3; part++) /* at 95 %, fewer than 90 % occur in one seed of 100 */
        check_note(inside[part] >= 0.9 * count && inside[part] < count, __FILE__, __LINE__, "part %d: %d of %d inside", part, inside[part], count);
    CHECK(is_text(at_path("laws.0.predictions.0.TTFT.interval_of"), "held_out_ratios"));
    check_case("sizes by a family's rule, medians of the data, budgets, extrapolation");
    CHECK_INT(run("predict %%F/law.json 448x448 --family qwen2-vl --text_tokens 40 --output_tokens 20"), 0);
    CHECK(strstr(last.out, "448x448: 256 image tokens, 40 text tokens, 296 prompt tokens, 20 output tokens") && !strstr(last.out, "extrapolation"));
    CHECK_INT(run("predict %%F/law.json 448x448 --family qwen2-vl --max_pixels 100352 --text_tokens 40 --output_tokens 20"), 0);
    CHECK(strstr(last.out, "448x448: 121 image tokens") != NULL);
    CHECK_INT(run("predict %%F/law.json 448x448 896x896 --family qwen2-vl --text_tokens 40 --output_tokens 20 --json"), 0);
    if (read_json(last.out))
        for (int i = 0; i < 2; i++) {
            char path[60];
            snprintf(path, sizeof path, "laws.0.predictions.%d.TTFT.ms", i);
            CHECK_NEAR(number_at(path) - number_at("laws.0.predictions.0.TTFT.ms"), i * (1024 - 256) * SERVER.image, i * 20);
        }
    CHECK_INT(run("predict %%F/law.json --vision_tokens 0 --sequence 50 --output_tokens 1 --budget_ms 1000 --json"), 0);
    if (read_json(last.out)) {
        CHECK_NEAR(number_at("laws.0.predictions.0.TTFT.ms"), ttft_of(&SERVER, 0, 50, 0), 1.5);
        CHECK_NEAR(number_at("laws.0.predictions.0.T_total.ms"), number_at("laws.0.predictions.0.TTFT.ms"), 1e-9);
        CHECK(is_text(at_path("laws.0.predictions.0.verdict"), "holds") && number_at("laws.0.predictions.0.probability_within_budget") > 0.999);
    }
    CHECK_INT(run("predict %%F/law.json --vision_tokens 5000 --text_tokens 20"), 0);
    CHECK(strstr(last.out, "extrapolation: image_tokens 5000 is outside 0..1") != NULL);
}
static void test_little_said(void) {
    server quiet = SERVER, two = SERVER;
    check_case("image tokens by the rule; without a rule, one cost for all tokens");
    quiet.hides = "image";
    write_server("ruled", &quiet, 3, SAMPLES);
    CHECK_INT(run("fit %%F/ruled --json"), 0);
    if (read_json(last.out))
        CHECK(is_text(at_path("laws.0.image_tokens_of"), "rule") && fabs(number_at("laws.0.lines.TTFT.columns.1.coefficient") - SERVER.image) < 0.01);
    quiet.hides = "rule";
    quiet.byte = 0;
    quiet.text = quiet.image;
    write_server("quiet", &quiet, 3, SAMPLES);
    CHECK_INT(run("fit %%F/quiet -o %%F/quiet.json"), 0);
    CHECK(strstr(last.out, "image and text tokens have the same cost (sweep --family NAME") != NULL);
    CHECK_INT(run("predict %%F/quiet.json --sequence 500 --output_tokens 2 --json"), 0);
    if (read_json(last.out)) CHECK_NEAR(number_at("laws.0.predictions.0.TTFT.ms"), ttft_of(&quiet, 400, 100, 0), 3);
    run("predict %%F/quiet.json --vision_tokens 100");
    check_refused(2, "--sequence N");
    quiet.hides = "prompt";
    write_server("silent", &quiet, 3, 3);
    run("fit %%F/silent");
    check_refused(3, "usage.prompt_tokens");
    check_case("a latency model for each server and model");
    write_server("two", &SERVER, 3, SAMPLES);
    two.model = "slower";
    two.fixed *= 2;
    write_server("two", &two, 4, SAMPLES);
    CHECK_INT(run("fit %%F/two -o %%F/two.json --json"), 0);
    if (read_json(last.out)) CHECK(json.nodes[at_path("laws")].count == 2 && number_at("laws.1.lines.TTFT.columns.0.coefficient") > 50);
    CHECK_INT(run("predict %%F/two.json --vision_tokens 256"), 0);
    CHECK(strstr(last.out, "made-vl at http") && strstr(last.out, "slower at http"));
    check_case("only one size; few rows");
    two.sizes = 1;
    write_server("one", &two, 5, 12);
    CHECK_INT(run("fit %%F/one -o %%F/one.json"), 0);
    CHECK(strstr(last.out, "only 12 measurements") && strstr(last.out, "a single configuration"));
    CHECK_INT(run("predict %%F/one.json --vision_tokens 60"), 0);
    CHECK(strstr(last.out, "Student") && !strstr(last.out, "held-out"));
}

/* ---- load: waits are exponential, so their P50 is mean * ln 2 and their P95 mean * ln 20; means are 50 ms per request/s */
static void test_load(void) {
    static const double RATES[] = {1, 2, 3, 4};
    trial t = {0, 0, 0, 1500, 0, NULL, 0};
    check_case("waits beyond the model, held out over rates");
    for (int i = 0; i < 4; i++) {
        t.rate = RATES[i];
        t.wait_ms = 50 * t.rate;
        write_trial("load", &SERVER, &t, 30 + (uint32_t)i);
    }
    CHECK_INT(run("fit %%F/a %%F/load --json"), 0);
    if (read_json(last.out))
        for (int i = 0; i < 4; i++) /* only rates between two others are held out */
            CHECK((json.nodes[at_path(i ? i == 1 ? "load.0.trials.1.held_out.TTFT.p50.ms" : i == 2 ? "load.0.trials.2.held_out.TTFT.p50.ms"
                                        : "load.0.trials.3.held_out.TTFT.p50.ms" : "load.0.trials.0.held_out.TTFT.p50.ms")].type == VP_JSON_NULL) == (i % 3 == 0));
    t.rate = 0;
    t.concurrency = 4;
    write_trial("load", &SERVER, &t, 40);
    CHECK_INT(run("fit %%F/a %%F/load -o %%F/loaded.json --json"), 0);
    CHECK_TEXT(last.err, "");
    if (!read_json(last.out)) return;
    CHECK_INT(count_of(at_path("load.0.trials")), 4);
    for (int i = 0; i < 4; i++) {
        const double mean = 50 * RATES[i];
        CHECK_INT(whole(at_path("load.0.trials.0.requests")), 1500);
        CHECK_NEAR(number_at("load.0.trials.%d.waits.TTFT.p50.ms", i), mean * log(2), 0.12 * mean + 3);
        CHECK_NEAR(number_at("load.0.trials.%d.waits.TTFT.p95.ms", i), mean * log(20), 0.3 * mean + 3);
        CHECK(number_at("load.0.trials.%d.waits.TTFT.p95.interval_ms.0", i) < number_at("load.0.trials.%d.waits.TTFT.p95.ms", i));
        if (i == 1 || i == 2) { /* the true waits grow linearly, so held-out predictions are nearly exact */
            CHECK_NEAR(number_at("load.0.trials.%d.held_out.TTFT.p50.ms", i), number_at("load.0.trials.%d.waits.TTFT.p50.ms", i), 0.15 * mean);
            CHECK_NEAR(number_at("load.0.trials.%d.held_out.T_total.p95.ms", i), number_at("load.0.trials.%d.waits.T_total.p95.ms", i), 0.45 * mean);
        } else CHECK(json.nodes[at_path(i ? "load.0.trials.3.held_out.TTFT.p50.ms" : "load.0.trials.0.held_out.TTFT.p50.ms")].type == (uint8_t)VP_JSON_NULL);
    }
    CHECK(strstr(last.out, "1 trials are skipped: they are by concurrency") != NULL);
    check_case("predictions between the measured rates, but not outside them");
    CHECK_INT(run("predict %%F/loaded.json --vision_tokens 200 --text_tokens 50 --image_bytes 100000 --output_tokens 10 --rate 2.5 --json"), 0);
    if (read_json(last.out)) {
        const double law = ttft_of(&SERVER, 200, 50, 1e5);
        CHECK_NEAR(number_at("laws.0.predictions.0.under_load.TTFT_p50.ms"), law + 125 * log(2), 15);
        CHECK_NEAR(number_at("laws.0.predictions.0.under_load.T_total_p95.ms"), law + 9 * step_of(&SERVER, 250) + 125 * log(20), 45);
        CHECK(number_at("laws.0.predictions.0.under_load.T_total_p95.interval_ms.1") > number_at("laws.0.predictions.0.under_load.T_total_p95.ms"));
    }
    CHECK_INT(run("predict %%F/loaded.json --vision_tokens 200 --rate 4"), 0);
    CHECK(strstr(last.out, "at 4 requests per second: the latency model's prediction plus the additional wait") && strstr(last.out, "E2E P95"));
    run("predict %%F/loaded.json --vision_tokens 200 --rate 4.1");
    check_refused(2, "outside the measured rates of made-vl, 1 to 4");
    run("predict %%F/loaded.json --vision_tokens 200 --rate 0.5");
    check_refused(2, "outside the measured rates");
    run("predict %%F/law.json --vision_tokens 200 --rate 2");
    check_refused(2, "no load trials of");
    check_case("requests for other samples are ignored");
    {
        server other = SERVER;
        other.model = "another";
        write_server("another", &other, 9, SAMPLES);
        CHECK_INT(run("fit %%F/another %%F/load"), 0);
        CHECK(strstr(last.out, "5 trials are skipped: they are by concurrency, or of another server or model") && !strstr(last.out, "Waits under load"));
    }
}

/* ---- hostile files, exit codes */
/* predict with a copy of the model in which `from` is replaced by `to` once */
static void check_damaged(const char *model, const char *from, const char *to, const char *word) {
    char *text = text_of_file(in_folder(model)), *at = strstr(text, from), *damaged;
    check_case("%s: %s becomes %s", model, from, to);
    if (!at) { CHECK(!"the text is there"); free(text); return; }
    damaged = (char *)malloc(strlen(text) + strlen(to) + 1);
    sprintf(damaged, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(in_folder("damaged.json"), damaged);
    run("predict %%F/damaged.json --vision_tokens 100");
    check_refused(3, word);
    FREE_ALL(damaged, text);
}
static void test_damaged(void) {
    static const struct { const char *from, *to, *word; } cases[] = {
        {"vlmprof-estimator-server-1", "vlmprof-estimator-server-9", "schema"}, {"\"laws\": [", "\"laws\": 3, \"x\": [", "laws"},
        {"\"image_tokens_of\": \"usage\"", "\"image_tokens_of\": \"hearsay\"", "image_tokens_of"}, {"\"endpoint\": \"", "\"endpoint\": 1, \"e\": \"", "endpoint"},
        {"\"coefficient\": ", "\"coefficient\": -", "coefficient"}, {"\"coefficient\": ", "\"coefficient\": 1e400, \"c\": ", "coefficient"},
        {"\"name\": \"image tokens\"", "\"name\": \"images\"", "name"}, {"\"degrees_of_freedom\": ", "\"degrees_of_freedom\": 1", "degrees_of_freedom"},
        {"\"has_image_bytes\": true", "\"has_image_bytes\": false", "columns"}, {"\"has_image_bytes\": true", "\"has_image_bytes\": 1", "has_image_bytes"},
        {"\"most\": ", "\"most\": -", "ranges"}, {"\"least\": ", "\"least\": 1e9, \"l\": ", "median"},
        {"\"held_out\": \"leave", "\"held_out\": \"left", "held_out"}, {"\"held_out_ratios\": {", "\"held_out_ratios\": 0, \"h\": {", "held_out_ratios"},
        {"\"rows\": ", "\"rows\": 0, \"rows\": ", "appears twice"}, {"\"lines\": {", "\"lines\": [], \"l\": {", "lines"}};
    static const struct { const char *from, *to, *word; } loads[] = {
        {"\"load\": [", "\"load\": 7, \"x\": [", "load"}, {"\"law\": 0", "\"law\": 1", "law"}, {"\"trials\": [", "\"trials\": [3, ", "load.trials"},
        {"\"trials\": [", "\"trials\": [], \"x\": [", "trials is empty"}, {"\"request_rate\": 1", "\"request_rate\": 3", "is not above the previous one"},
        {"\"p50\": {", "\"p51\": {", "p50"}, {"\"interval_ms\": [", "\"interval_ms\": [1e9, ", "interval_ms"}, {"\"load\": [", "\"load\": [null, ", "law"}};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) check_damaged("loaded.json", loads[i].from, loads[i].to, loads[i].word);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_damaged("law.json", cases[i].from, cases[i].to, cases[i].word);
    check_case("truncated at many positions: never a crash");
    {
        char *text = text_of_file(in_folder("law.json"));
        size_t bytes = strlen(text);
        for (size_t cut = 1; cut < bytes - 3; cut += bytes / 40) {
            char *part = (char *)malloc(cut + 1);
            memcpy(part, text, cut);
            part[cut] = 0;
            write_text(in_folder("damaged.json"), part);
            run("predict %%F/damaged.json --vision_tokens 100");
            check_refused(3, "damaged.json");
            free(part);
        }
        free(text);
    }
    check_case("damaged result files");
    {
        char *text = text_of_file(in_folder("a/t_imgsize64_made-vl0.json")), *at = strstr(text, "\"bytes\": ");
        mkdir(in_folder("bad"), 0777);
        if (at) memcpy(at, "\"bytes\":-", 9);
        write_text(in_folder("bad/t_imgsize64_x.json"), text);
        run("fit %%F/bad");
        check_refused(3, "sent_image.bytes");
        free(text);
    }
}
static void test_usage(void) {
    truth engine = truth_default();
    check_case("files that can be combined, and files that cannot");
    run("predict %%F/law.json");
    check_refused(2, "--vision_tokens N (0: text only)");
    run("predict %%F/law.json 640x480");
    check_refused(2, "--family NAME");
    run("predict %%F/law.json 640x480 --family qwen2-vl --vision_tokens 3");
    check_refused(2, "without a size");
    run("predict %%F/law.json --vision_tokens 9 --family qwen2-vl");
    check_refused(2, "--family is only for sizes");
    run("predict %%F/law.json --vision_tokens 100 --text_tokens 5 --sequence 100");
    check_refused(2, "not the sum");
    run("predict %%F/law.json --vision_tokens 100 --sequence 50");
    check_refused(2, "not the sum");
    run("predict %%F/law.json --views 3");
    check_refused(2, "--views is only for models of vlmprof's engine");
    CHECK_INT(run("predict %%F/law.json --data %%F/a"), 0);
    run("fit %%F/a --features seed");
    check_refused(2, "--features");
    engine.details = 1;
    write_sweep("engine", &engine);
    run("fit %%F/a %%F/engine");
    check_refused(3, "comes from a server");
    CHECK_INT(run("fit %%F/engine --num_experts 64 -o %%F/engine.json"), 0);
    run("predict %%F/engine.json 640x480 --family qwen2-vl");
    check_refused(2, "--family is only for models of servers");
}

/* ---- separate workers for an encoder and a language model */
static void test_workers(void) {
    static const server APART = {20, 0.30, 0.05, 0, 4, 0.002, 0.02, SIZE_COUNT, "http://127.0.0.1:8000", "apart-vl", "", ""};
    const double image_ms = (APART.image - APART.text) * 400, model_ms = APART.fixed + APART.text * 450 + 19 * step_of(&APART, 450);
    check_case("workers of 30 requests per second: the planted times of the stages, within their intervals");
    write_server("apart", &APART, 5, SAMPLES);
    CHECK_INT(run("fit %%F/apart -o %%F/apart.json"), 0);
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 400 --text_tokens 50 --output_tokens 20 --rate 30 --workers --json"), 0);
    if (!read_json(last.out)) return;
    double low = number_at("laws.0.workers.stages.0.interval_ms.0");
    double high = number_at("laws.0.workers.stages.0.interval_ms.1");
    CHECK(low < image_ms && image_ms < high && high - low < 0.1 * image_ms); /* 100 ms */
    CHECK_NEAR(number_at("laws.0.workers.stages.1.ms"), model_ms, 0.03 * model_ms);
    CHECK_NEAR(number_at("laws.0.workers.stages.0.busy_workers"), 0.03 * number_at("laws.0.workers.stages.0.ms"), 1e-9);
    CHECK_INT(whole(at_path("laws.0.workers.stages.0.workers")), 4); /* 3.0 are busy, 80 % of 4 */
    CHECK_INT(whole(at_path("laws.0.workers.stages.1.workers")), (int)ceil(0.03 * model_ms / 0.8));
    CHECK(number_at("laws.0.workers.TTFT_p95_ms") > number_at("laws.0.workers.TTFT_p50_ms"));
    CHECK(number_at("laws.0.workers.TTFT_p50_ms") >= image_ms * 0.95 + APART.fixed + APART.text * 400);
    check_case("... requests decoded together need fewer workers; an encoder time measured elsewhere; a text has no encoder time");
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 400 --text_tokens 50 --output_tokens 20 --rate 30 --workers --decode_batch 8 --encoder_ms 60 55 66 --json"), 0);
    if (!read_json(last.out)) return;
    CHECK_NEAR(number_at("laws.0.workers.stages.0.ms"), 60, 1e-12);
    CHECK_INT(whole(at_path("laws.0.workers.stages.0.workers")), 3); /* 1.8 / 0.8 */
    CHECK_INT(whole(at_path("laws.0.workers.stages.0.workers_low")), 3);
    CHECK_NEAR(number_at("laws.0.workers.stages.1.ms"), ttft_of(&APART, 400, 50, 0) - 60 + 19 * step_of(&APART, 450) / 8, 3);
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 0 --text_tokens 50 --output_tokens 20 --rate 30 --workers"), 0);
    CHECK(strstr(last.out, "need 0 encoder and 4 language-model workers") != NULL);
    check_case("... if image tokens are cheaper than text tokens, the encoder's time is unknown; twins measure it");
    CHECK_INT(run("predict %%F/law.json --vision_tokens 400 --text_tokens 50 --output_tokens 20 --rate 30 --workers"), 2);
    CHECK(strstr(last.err, "has no vision encoder time: fit it to a sweep with --twins") != NULL);
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 400 --text_tokens 50 --rate 30 --workers --encoder_ms 60 70"), 2);
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 400 --text_tokens 50 --rate 30 --workers --encoder_ms 600"), 2);
    CHECK(strstr(last.err, "a TTFT longer than the 600 ms of the image") != NULL);
    CHECK_INT(run("predict %%F/apart.json --vision_tokens 400 --text_tokens 50 --workers"), 2);
    CHECK(strstr(last.err, "--workers needs --rate") != NULL);
}

int main(void) {
    if (!program_begin("server_law")) return 1;
    test_recovery();
    test_predictions();
    test_workers();
    test_little_said();
    test_load();
    test_damaged();
    test_usage();
    program_end();
    free(json_nodes);
    return check_done("test_server_law");
}
