/* test_estimator.c: result files -> a latency model -> predictions. This program writes sweeps of a machine with known costs: fit must find them within their intervals,
 * its held-out errors must equal those of a small computation here, and predictions must cover later measurements of the same machine. Also
 * hostile model files and exit codes. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "vlmprof_latency.h"
#include "support/check.h"
#include "support/program.h"

/* ---- JSON by a path: "stages.vision.columns.0.coefficient" */
static struct { char *text; vp_json_node *nodes; vp_json json; } document;
static void parse(const char *text) {
    size_t needed = 0;
    FREE_ALL(document.text, document.nodes);
    document.text = (char *)malloc(strlen(text) + 1);
    strcpy(document.text, text);
    memset(&document.json, 0, sizeof document.json);
    vp_json_parse(text, strlen(text), NULL, 0, NULL, &needed, NULL);
    document.nodes = (vp_json_node *)calloc(needed + 1, sizeof *document.nodes);
    CHECK_INT(vp_json_parse(document.text, strlen(text), document.nodes, needed, &document.json, &needed, NULL), VP_OK);
}
static uint32_t node_at(const char *path) {
    uint32_t node = 0;
    while (*path && node != VP_JSON_NONE) {
        char key[64];
        size_t bytes = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)bytes, path);
        if (document.nodes[node].type == (uint8_t)VP_JSON_ARRAY) node = vp_json_at(&document.json, node, (uint32_t)atoi(key));
        else node = vp_json_get(&document.json, node, key);
        path += bytes + (path[bytes] == '.');
    }
    return node;
}
static double number_at(const char *format, ...) {
    char path[256];
    va_list list;
    double value = (double)NAN;
    va_start(list, format);
    vsnprintf(path, sizeof path, format, list);
    va_end(list);
    vp_json_to_double(&document.json, node_at(path), &value);
    return value;
}
/* ---- the machine: ms of each stage, by its cost for each column of the physical features */
static const double COSTS[VP_LATENCY_STAGE_COUNT][VP_LATENCY_COLUMNS_LIMIT] = {
    {2, 3, 0.004, 0, 0, 0, 0}, {1, 0.01, 0.6, 0.002, 0.0006, 2e-6, 0.05}, {0.5, 0.2, 0.05, 2e-4, 0, 0, 0}, {0.5, 0.2, 0.002, 0, 0, 0, 0}};
#define SCATTER 0.02
enum { EXPERTS = 64, SAMPLES = 14, CONFIGS = 27, ROWS = SAMPLES * CONFIGS };
static const char *const TIERS[] = {"low", "medium", "high"};
static const char *architecture; /* architecture of the model, which sets the number of crops; if NULL, there is one view more than crops */
static int crops;
static double lognormal; /* sigma of log-normal noise, or 0 for SCATTER; the cost is then the median */
static struct { vp_latency_request requests[ROWS]; double measured[ROWS][VP_LATENCY_STAGE_COUNT], total[ROWS]; uint32_t configs[ROWS]; int count; } made;
static double normal(vp_random *random) {
    double u = 1 - vp_random_double(random), v = vp_random_double(random);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
static vp_latency_request request_of(int tier, int top_k, int blocks, int sample, vp_random *random) {
    static const int views[3][4] = {{2, 3, 3, 2}, {5, 7, 6, 9}, {10, 13, 16, 11}};
    vp_latency_request q = {0};
    q.views = sample < 3 ? 0 : views[tier][sample % 4]; /* the first samples are text only */
    q.vision_tokens = q.views ? q.views * 100 + sample % 3 * 16 : 0;
    q.text_tokens = 5 + (int)vp_random_below(random, 60);
    q.sequence = 1 + q.text_tokens + q.vision_tokens + q.views * 5;
    q.output_tokens = 1 + sample % 7 * 3;
    q.tier_index = tier;
    q.top_k = top_k;
    q.expert_count = EXPERTS;
    q.active_blocks = blocks;
    return q;
}
static void measure(int row, double slope, double offset, vp_random *random) {
    const vp_latency_request *q = &made.requests[row];
    made.total[row] = 0;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        double x[VP_LATENCY_COLUMNS_LIMIT], ms = 0;
        int32_t columns = 0;
        int runs = s == VP_LATENCY_VISION ? q->views > 0 : s != VP_LATENCY_DECODE || q->output_tokens > 1;
        vp_latency_row(VP_LATENCY_PHYSICAL, (vp_latency_stage)s, q, x, &columns);
        for (int c = 0; c < columns; c++) ms += COSTS[s][c] * x[c];
        made.measured[row][s] = runs ? (slope * ms + offset) * (lognormal > 0 ? exp(lognormal * normal(random)) : 1 + SCATTER * normal(random))
                                      : (double)NAN;
        if (runs) made.total[row] += made.measured[row][s];
    }
}
static void put_ms(FILE *f, const char *key, double value) {
    if (value > 0) fprintf(f, ", \"%s\": %.17g", key, value); else fprintf(f, ", \"%s\": null", key);
}
static void write_row(FILE *f, int row, int sample) {
    const vp_latency_request *q = &made.requests[row];
    fprintf(f, "%s{\"sample_id\": %d, \"status\": \"ok\", \"accuracy\": 1", sample ? ",\n" : "", sample);
    if (q->views) fprintf(f, ", \"actual_num_crops\": %d, \"actual_vision_tokens\": %d", architecture ? crops : q->views - 1, q->vision_tokens);
    fprintf(f, ", \"input_text_tokens\": %d, \"total_sequence_length\": %d, \"output_tokens\": %d", q->text_tokens, q->sequence, q->output_tokens);
    put_ms(f, "T_vision_total", made.measured[row][0]);
    put_ms(f, "T_LLM_prefill", made.measured[row][1]);
    put_ms(f, "T_LLM_decode", q->output_tokens > 1 ? made.measured[row][2] : 0);
    put_ms(f, "T_total", made.total[row]);
    fprintf(f, "}");
}
/* A sweep of 3 tiers x 3 top_k x 3 blocks on a device. slope and offset apply to every stage. samples: at most SAMPLES. */
static void write_sweep(const char *name, const char *device, uint32_t seed, double slope, double offset, int config_count, int same) {
    vp_random random;
    vp_random_seed(&random, seed);
    make_empty(in_folder(name));
    made.count = 0;
    for (int c = 0; c < config_count; c++) {
        int tier = c % 3, top_k = 1 << (c / 3 % 3), blocks = 2 + c / 9 * 2;
        char path[1024];
        snprintf(path, sizeof path, "%s/t_imgsizetier-%s_crops%d_topk%d_blocks%d.json", in_folder(name), TIERS[tier], tier, top_k, blocks);
        FILE *f = fopen(path, "wb");
        if (!f) { CHECK(!"a result file can be written"); return; }
        fprintf(f, "{\"schema\": \"vlmprof-sweep-2\", \"status\": \"complete\", \"timing\": \"stage\", \"synthetic\": false, \"model\": \"made\",\n");
        if (architecture) fprintf(f, " \"architecture\": \"%s\",\n", architecture);
        fprintf(f,
                   " \"dataset_name\": \"%s\", \"data_hash\": \"abc\", \"tier\": \"%s\", \"top_k\": %d, \"num_active_blocks\": %d, \"num_experts\": %d,\n"
                   " \"provenance\": {\"device\": \"%s\", \"version\": \"1\", \"host\": \"h\"}, \"per_sample_results\": [\n", name, TIERS[tier], top_k, blocks,
                EXPERTS, device);
        for (int s = 0; s < SAMPLES; s++) {
            made.requests[made.count] = same ? request_of(0, 2, 2, 4, &random) : request_of(tier, top_k, blocks, s, &random);
            if (same) { made.requests[made.count].text_tokens = 20; made.requests[made.count].sequence = 500; }
            made.configs[made.count] = (uint32_t)c;
            measure(made.count, slope, offset, &random);
            write_row(f, made.count++, s);
        }
        fprintf(f, "]}\n");
        if (fclose(f)) CHECK(!"a result file can be closed");
    }
}
/* ---- fit */
static void test_recovery(void) {
    int inside = 0, count = 0;
    check_case("known costs are found within their intervals");
    write_sweep("a", "machine A", 7, 1, 0, CONFIGS, 0);
    CHECK_INT(run("fit %%F/a -o %%F/model.json --output_dir %%F/out --json"), 0);
    CHECK_TEXT(last.err, "");
    parse(last.out);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++)
        for (int c = 0; vp_latency_column_name(VP_LATENCY_PHYSICAL, (vp_latency_stage)s, c); c++) {
            const char *stage = vp_latency_stage_name((vp_latency_stage)s);
            double got = number_at("stages.%s.columns.%d.coefficient", stage, c), error = number_at("stages.%s.columns.%d.standard_error", stage, c);
            double low = number_at("stages.%s.columns.%d.interval.0", stage, c), high = number_at("stages.%s.columns.%d.interval.1", stage, c);
            check_note(fabs(got - COSTS[s][c]) <= 4 * error, __FILE__, __LINE__, "%s %d: %g +- %g, truth %g", stage, c, got, error, COSTS[s][c]);
            inside += COSTS[s][c] >= low && COSTS[s][c] <= high;
            count++;
        }
    CHECK_INT(count, 17);
    CHECK(inside >= 14); /* of 17 at 95 %; fewer occur for one seed in 1,000 */
    CHECK_NEAR(number_at("evaluation.physical.leave_one_configuration_out.prefill.mape_percent"), 100 * SCATTER * 0.798, 0.3);
    CHECK_INT(number_at("ranges.sequence.least") < 100, 1);
    CHECK_INT((int)number_at("ranges.top_k.most"), 4);
    CHECK_INT((int)number_at("ranges.num_active_blocks.least"), 2);
    CHECK(number_at("evaluation.seed.leave_one_configuration_out.prefill.mape_percent") > 5); /* a linear model cannot express a product */
    CHECK(number_at("evaluation.mean.in_sample.decode.mape_percent") > 30);
    CHECK_INT(document.json.nodes[node_at("evaluation.measured_predicted_ms.total")].count, 200);
    CHECK_NEAR(number_at("evaluation.measured_predicted_ms.total.7.1") / number_at("evaluation.measured_predicted_ms.total.7.0"), 1, 4 * SCATTER);
}
/* Weighted least squares by normal equations in long double, which is accurate enough for these columns and independent of the code under test. */
static int solve(int s, const unsigned char *use, const double *weights, double *coefficient, int columns) {
    long double a[8][9];
    memset(a, 0, sizeof a);
    for (int i = 0; i < made.count; i++) {
        double x[VP_LATENCY_COLUMNS_LIMIT], y = made.measured[i][s];
        int32_t n = 0;
        if (!use[i] || !(y > 0)) continue;
        vp_latency_row(VP_LATENCY_PHYSICAL, (vp_latency_stage)s, &made.requests[i], x, &n);
        for (int r = 0; r < columns; r++) {
            for (int c = 0; c < columns; c++) a[r][c] += (long double)weights[i] * x[r] * x[c];
            a[r][columns] += (long double)weights[i] * x[r] * y;
        }
    }
    for (int p = 0; p < columns; p++)
        for (int r = 0; r < columns; r++) {
            long double factor = a[r][p] / a[p][p];
            for (int c = p; r != p && c <= columns; c++) a[r][c] -= factor * a[p][c];
        }
    for (int p = 0; p < columns; p++) coefficient[p] = (double)(a[p][columns] / a[p][p]);
    for (int p = 0; p < columns; p++) if (!(coefficient[p] > 0)) return 0;
    return 1;
}
/* Weights 1 / predicted^2 of a fit to all rows, iterated from equal weights until they converge. */
static int weigh(int s, double *weights, int columns) {
    unsigned char all[ROWS];
    double coefficient[8], x[VP_LATENCY_COLUMNS_LIMIT];
    memset(all, 1, sizeof all);
    for (int i = 0; i < made.count; i++) weights[i] = 1;
    for (int round = 0; round < 40; round++) {
        if (!solve(s, all, weights, coefficient, columns)) return round > 0 ? 0 : -1;
        for (int i = 0; i < made.count; i++) {
            double predicted = 0;
            int32_t ignored;
            vp_latency_row(VP_LATENCY_PHYSICAL, (vp_latency_stage)s, &made.requests[i], x, &ignored);
            for (int c = 0; c < columns; c++) predicted += coefficient[c] * x[c];
            weights[i] = predicted > 0 ? 1 / (predicted * predicted) : 0;
        }
    }
    return 1;
}
static int tier_of_row(int row) { return (int)(made.configs[row] % 3); }
static void check_held_out(int s, int columns, int by_size) {
    const char *stage = vp_latency_stage_name((vp_latency_stage)s), *split = by_size ? "leave_one_image_size_out" : "leave_one_configuration_out";
    static double weights[ROWS];
    double mae = 0, mape = 0, bias = 0, squares = 0, mean = 0, spread = 0;
    int n = 0;
    for (int i = 0; i < made.count; i++) if (made.measured[i][s] > 0) { mean += made.measured[i][s]; n++; }
    mean /= n;
    CHECK_INT(weigh(s, weights, columns), 1);
    for (int group = 0; group < (by_size ? 3 : CONFIGS); group++) {
        unsigned char use[ROWS];
        double coefficient[8], x[VP_LATENCY_COLUMNS_LIMIT];
        for (int i = 0; i < made.count; i++) use[i] = (by_size ? tier_of_row(i) : (int)made.configs[i]) != group;
        CHECK(solve(s, use, weights, coefficient, columns)); /* all costs are positive, so sign limits have no effect */
        for (int i = 0; i < made.count; i++) {
            double y = made.measured[i][s], predicted = 0;
            int32_t ignored;
            if (use[i] || !(y > 0)) continue;
            vp_latency_row(VP_LATENCY_PHYSICAL, (vp_latency_stage)s, &made.requests[i], x, &ignored);
            for (int c = 0; c < columns; c++) predicted += coefficient[c] * x[c];
            mae += fabs(predicted - y) / n;
            mape += 100 * fabs(predicted - y) / y / n;
            bias += (predicted - y) / n;
            squares += (predicted - y) * (predicted - y);
            spread += (y - mean) * (y - mean);
        }
    }
    CHECK_INT((int)number_at("evaluation.physical.%s.%s.rows", split, stage), n);
    CHECK_NEAR(number_at("evaluation.physical.%s.%s.mae_ms", split, stage), mae, 1e-7 * mae);
    CHECK_NEAR(number_at("evaluation.physical.%s.%s.mape_percent", split, stage), mape, 1e-7 * mape);
    CHECK_NEAR(number_at("evaluation.physical.%s.%s.bias_ms", split, stage), bias, 1e-7 * mae);
    CHECK_NEAR(number_at("evaluation.physical.%s.%s.r2", split, stage), 1 - squares / spread, 1e-7);
}
static void test_held_out(void) {
    double mape = 0;
    check_case("held-out errors equal those of an independent computation");
    check_held_out(VP_LATENCY_VISION, 3, 0);
    check_held_out(VP_LATENCY_DECODE, 4, 0);
    check_held_out(VP_LATENCY_OTHER, 3, 0);
    check_held_out(VP_LATENCY_VISION, 3, 1);
    check_case("the mean of all others, as a baseline");
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        int n = 0;
        for (int k = 0; k < ROWS; k++) if (made.configs[k] != made.configs[i]) { sum += made.measured[k][VP_LATENCY_PREFILL]; n++; }
        mape += 100 * fabs(sum / n - made.measured[i][VP_LATENCY_PREFILL]) / made.measured[i][VP_LATENCY_PREFILL] / ROWS;
    }
    CHECK_NEAR(number_at("evaluation.mean.leave_one_configuration_out.prefill.mape_percent"), mape, 1e-9 * mape);
}
/* What a tool of this kind says about a budget: counted again from predictions out of sample */
static void test_predictions(void) {
    check_case("a prediction is the file's coefficients times the request");
    CHECK_INT(run("predict %%F/model.json --views 5 --vision_tokens 516 --text_tokens 20 --sequence 560 --top_k 2 --num_active_blocks 4 --output_tokens 10 --json"), 0);
    parse(last.out);
    CHECK_INT(document.json.nodes[node_at("warnings")].count, 0);
    CHECK_NEAR(number_at("predictions.0.vision.ms"), 2 + 3 * 5 + 0.004 * 516, 0.3);
    CHECK_NEAR(number_at("predictions.0.decode.ms"), 9 * (0.5 + 0.2 * 4 + 0.05 * 8) + 2e-4 * 4 * (9 * 560 + 36), 0.3);
    CHECK_NEAR(number_at("predictions.0.total.ms"), number_at("predictions.0.vision.ms") + number_at("predictions.0.prefill.ms")
               + number_at("predictions.0.decode.ms") + number_at("predictions.0.other.ms"), 1e-9);
    double low = number_at("predictions.0.vision.interval_ms.0");
    double high = number_at("predictions.0.vision.interval_ms.1");
    CHECK_NEAR((high - low) / 2 / number_at("predictions.0.vision.ms"), 1.96 * SCATTER, 0.006);
    check_case("intervals contain the same machine's next measurements");
    write_sweep("b", "machine A", 8, 1, 0, CONFIGS, 0);
    CHECK_INT(run("predict %%F/model.json --data %%F/b --json"), 0);
    parse(last.out);
    for (int s = 0; s <= VP_LATENCY_STAGE_COUNT; s++) {
        const char *name = s == VP_LATENCY_STAGE_COUNT ? "total" : vp_latency_stage_name((vp_latency_stage)s);
        CHECK_NEAR(number_at("measured.share_within_intervals.%s", name), 0.95, 0.04);
        CHECK(number_at("measured.errors.%s.mape_percent", name) < 2.2);
    }
    check_case("sizes go through the tiler");
    CHECK_INT(run("predict %%F/model.json --tier medium 640x480 100x100 --top_k 1 --num_active_blocks 2 --output_tokens 1 --text_tokens 30 --json"), 0);
    parse(last.out);
    CHECK_INT((int)number_at("predictions.0.views"), 7); /* 2 x 3 crops and the global view */
    CHECK_INT((int)number_at("predictions.0.vision_tokens"), 704);
    CHECK_INT((int)number_at("predictions.0.sequence"), 771);
    CHECK_INT((int)number_at("predictions.1.views"), 5);
    CHECK(node_at("predictions.0.decode") != VP_JSON_NONE && !isfinite(number_at("predictions.0.decode.ms")));
    check_case("the verdict of a budget");
    EXITS(run("predict %%F/model.json --views 0 --budget_ms 1000"), 0, out, "budget 1000.000 ms: holds, with probability 0.9");
    EXITS(run("predict %%F/model.json --views 0 --budget_ms 1"), 0, out, "exceeds, with probability 0.0");
    check_case("extrapolation is reported");
    CHECK_INT(run("predict %%F/model.json --views 0 --text_tokens 4000 --top_k 8"), 0);
    CHECK(strstr(last.out, "extrapolation: top_k 8 is outside 1..4") && strstr(last.out, "extrapolation: sequence 4001"));
    CHECK(strstr(last.out, "extrapolation: num_active_blocks") == NULL);
    check_case("the file of E3 is the same model; a result folder may contain models");
    CHECK_INT(run("predict %%F/out/e3_latency_estimator.json --views 0"), 0);
    CHECK_INT(run("fit %%F/b -o %%F/b/model.json"), 0);
    CHECK_INT(run("fit %%F/b --features seed -o %%F/seed.json"), 0);
    CHECK(strstr(last.out, "no result file") == NULL);
    CHECK_INT(run("predict %%F/seed.json --tier low 640x480"), 0);
}
/* In some models the tower sees only the crops. If the single crop is the image itself, no view is added. */
static void test_views(void) {
    static const struct { const char *architecture; int views_of_one, views_of_nine; } models[] = {
        {"Qwen2.5-VL", 1, 9}, {"LLaVA", 1, 9}, {"Gemma 3", 1, 10}, {"InternVL", 1, 10}, {"SmolVLM", 1, 10}, {"MolmoE", 2, 10}, {"Molmo2", 2, 10}};
    for (size_t i = 0; i < 2 * sizeof models / sizeof *models; i++) {
        const int is_one = i % 2;
        architecture = models[i / 2].architecture;
        crops = is_one ? 1 : 9;
        check_case("views of %s, %d crops", architecture, crops);
        write_sweep("views", "machine A", 5, 1, 0, CONFIGS, 0);
        CHECK_INT(run("fit %%F/views -o %%F/views.json --json"), 0);
        parse(last.out);
        CHECK_INT((int)number_at("ranges.views.least"), 0); /* text only */
        CHECK_INT((int)number_at("ranges.views.most"), is_one ? models[i / 2].views_of_one : models[i / 2].views_of_nine);
    }
    architecture = NULL;
}
/* Log-normal times with sigma 0.5: the mean is exp(0.125) = 1.133 times the median. The model predicts the mean, and its intervals contain the next measurements. */
static void test_noise(void) {
    double medians = 0, means = 0;
    check_case("noise of sigma 0.5: the mean is predicted without bias, and intervals contain the machine's next measurements");
    lognormal = 0.5;
    write_sweep("noisy", "machine A", 21, 1, 0, CONFIGS, 0);
    CHECK_INT(run("fit %%F/noisy -o %%F/noisy.json --json"), 0);
    parse(last.out);
    CHECK(vp_json_equals(&document.json, node_at("location"), "mean") && vp_json_equals(&document.json, node_at("evaluation.measured"), "mean"));
    for (int s = 0; s <= VP_LATENCY_STAGE_COUNT; s++) {
        const char *name = s == VP_LATENCY_STAGE_COUNT ? "total" : vp_latency_stage_name((vp_latency_stage)s);
        double bias = number_at("evaluation.physical.leave_one_configuration_out.%s.bias_ms", name);
        double low = number_at("evaluation.physical.leave_one_configuration_out.%s.bias_ms_interval.0", name);
        double high = number_at("evaluation.physical.leave_one_configuration_out.%s.bias_ms_interval.1", name);
        check_note(low <= 0 && high >= 0 && bias >= low && bias <= high, __FILE__, __LINE__, "%s: bias %g [%g, %g]", name, bias, low, high);
    }
    write_sweep("noisy2", "machine A", 22, 1, 0, CONFIGS, 0);
    for (int i = 0; i < made.count; i++) {
        double ms = 2 + 3 * made.requests[i].views + 0.004 * made.requests[i].vision_tokens;
        if (!made.requests[i].views) continue;
        medians += ms;
        means += ms * exp(0.125);
    }
    lognormal = 0;
    CHECK_INT(run("predict %%F/noisy.json --data %%F/noisy2 --json"), 0);
    parse(last.out);
    for (int s = 0; s <= VP_LATENCY_STAGE_COUNT; s++) {
        const char *name = s == VP_LATENCY_STAGE_COUNT ? "total" : vp_latency_stage_name((vp_latency_stage)s);
        CHECK_NEAR(number_at("measured.share_within_intervals.%s", name), 0.95, 0.05);
    }
    CHECK_INT(run("predict %%F/noisy.json --views 8 --vision_tokens 816 --sequence 880 --json"), 0);
    parse(last.out);
    CHECK(vp_json_equals(&document.json, node_at("location"), "mean") && vp_json_equals(&document.json, node_at("predictions.0.vision.interval_of"), "held_out_ratios"));
    CHECK_NEAR(number_at("predictions.0.vision.ms") / (2 + 3 * 8 + 0.004 * 816), means / medians, 0.08); /* 1.133; weights of 1 / measured^2 would give 0.6 */
    CHECK(number_at("predictions.0.vision.interval_ms.0") > 0);
}
/* ---- invalid model files */
static void damage(const char *whole, const char *from, const char *to, const char *word) {
    const char *at = strstr(whole, from);
    char *text = (char *)malloc(strlen(whole) + strlen(to) + 1);
    check_case("a model with %.60s", to);
    CHECK(at != NULL);
    if (at && text) {
        sprintf(text, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
        write_text(in_folder("bad.json"), text);
        check_refused(run("predict %%F/bad.json --views 0"), 3, word);
        CHECK(strstr(last.err, "bad.json") != NULL);
    }
    free(text);
}
static void test_damaged(void) {
    char *whole = check_read(in_folder("model.json"), NULL), *cut;
    size_t bytes = whole ? strlen(whole) : 0, step = bytes / 40 + 1;
    int refused = 0;
    if (!whole) { CHECK(!"the model is there"); return; }
    damage(whole, "vlmprof-estimator-1", "vlmprof-estimator-9", "schema");
    damage(whole, "\"physical\"", "\"magic\"", "features is not a known value");
    damage(whole, "\"name\": \"views\"", "\"name\": \"crops\"", "stages.vision.columns[1].name");
    damage(whole, "\"state\": \"used\"", "\"state\": \"lost\"", "stages.vision.columns[0].state");
    damage(whole, "\"state\": \"used\"", "\"state\": \"dropped\"", "is not 0, but the column is unused");
    damage(whole, "\"coefficient\": ", "\"coefficient\": -", "stages.vision.columns[0].coefficient is out of range");
    damage(whole, "\"coefficient\": ", "\"coefficient\": 1e999, \"x\": ", "stages.vision.columns[0].coefficient is out of range");
    damage(whole, "\"coefficient\": ", "\"coefficient\": \"3\", \"x\": ", "has the wrong type");
    damage(whole, "\"root\": [", "\"root\": [1, ", "root does not have one number per column");
    damage(whole, "\"root\": [", "\"root\": 3, \"x\": [", "root has the wrong type");
    damage(whole, "\"degrees_of_freedom\": ", "\"degrees_of_freedom\": 1", "is not rows - used columns");
    damage(whole, "\"slope\": ", "\"slope\": null, \"x\": ", "affine.slope");
    damage(whole, "\"num_experts\": 64", "\"num_experts\": -1", "num_experts");
    damage(whole, "\"num_experts\": 64", "\"num_experts\": 64, \"num_experts\": 32", "appears twice");
    damage(whole, "\"most\": ", "\"most\": -", "ranges.views.most");
    damage(whole, "\"least\": ", "\"least\": 1e3, \"x\": ", "ranges.views");
    damage(whole, "\"prefill\": {\n   \"rows\"", "\"prefills\": {\n   \"rows\"", "stages.prefill is missing");
    damage(whole, "\"residual_correlation\": [\n  [1.0", "\"residual_correlation\": [\n  [0.5", "residual_correlation");
    damage(whole, "\"location\": \"mean\"", "\"location\": \"median\"", "location is not mean");
    damage(whole, "\"location\": \"mean\"", "\"location\": 1", "location has the wrong type");
    damage(whole, "\"held_out_ratios\": {", "\"held_out_ratios\": 3, \"x\": {", "held_out_ratios has the wrong type");
    damage(whole, "\"held_out_ratios\": {", "\"held_out_ratios\": {\"vision\": 3, \"x\": null, ", "");
    damage(whole, "\"low\": ", "\"low\": 9", "held_out_ratios.vision.high is out of range");
    damage(whole, "\"synthetic\": false", "\"synthetic\": 1", "synthetic");
    damage(whole, "\"warnings\": [", "\"warnings\": [7, ", "");
    check_case("a model cut off at any byte is rejected");
    cut = (char *)malloc(bytes + 1);
    for (size_t n = 0; cut && n + 2 < bytes; n += step) {
        memcpy(cut, whole, n);
        cut[n] = 0;
        write_text(in_folder("bad.json"), cut);
        check_refused(run("predict %%F/bad.json --views 0"), 3, "bad.json");
        refused++;
    }
    CHECK(refused > 30);
    FREE_ALL(cut, whole);
    check_case("no model file");
    check_refused(run("predict %%F/none.json --views 0"), 3, "none.json");
    check_refused(run("predict %%F --views 0"), 3, "");
}
static void test_usage(void) {
    check_case("usage");
    write_sweep("c", "machine B", 9, 1.7, 0.8, CONFIGS, 0);
    check_refused(run("fit %%F/a %%F/c"), 2, "differ in device");
    check_refused(run("fit %%F/a -o %%F/no/such/model.json"), 5, "cannot be written");
    check_refused(run("fit %%F/a --num_experts 2"), 3, "more than the model's 2 experts");
    check_case("a single configuration is reported");
    write_sweep("one", "machine A", 11, 1, 0, 1, 0);
    CHECK_INT(run("fit %%F/one"), 0);
    CHECK(strstr(last.out, "a single configuration") && strstr(last.out, "dropped as collinear"));
    check_case("times of stages that were not measured");
    make_empty(in_folder("off"));
    write_text(in_folder("off/t_imgsizetier-low_crops2_topk4_blocks12.json"),
               "{\"schema\": \"vlmprof-sweep-2\", \"timing\": \"off\", \"tier\": \"low\", \"top_k\": 4, \"num_active_blocks\": 12,"
               "\"per_sample_results\": [{\"sample_id\": 1, \"status\": \"ok\", \"T_total\": 5, \"output_tokens\": 3}]}");
    check_refused(run("fit %%F/off --num_experts 64"), 3, "--timing off");
    check_case("the experiments' own files: a decode of 0 ms counts as missing");
    write_text(in_folder("off/t_imgsizetier-low_crops2_topk4_blocks12.json"),
               "{\"tier\": \"low\", \"top_k\": 4, \"num_active_blocks\": 12, \"per_sample_results\": ["
               "{\"sample_id\": 1, \"actual_num_crops\": 2, \"actual_vision_tokens\": 384, \"actual_text_tokens\": 20, \"total_sequence_length\": 424,"
               " \"output_tokens\": 3, \"T_vision_total\": 12, \"T_LLM_prefill\": 99, \"T_LLM_decode\": 0, \"T_total\": 120},"
               "{\"sample_id\": 2, \"actual_num_crops\": 1, \"actual_vision_tokens\": 288, \"actual_text_tokens\": 20, \"total_sequence_length\": 324,"
               " \"output_tokens\": 3, \"T_vision_total\": 10, \"T_LLM_prefill\": 80, \"T_LLM_decode\": 60, \"T_total\": 155}]}");
    CHECK_INT(run("fit %%F/off --num_experts 64 -o %%F/off.json"), 0);
    CHECK(!strstr(last.out, "assumed") && strstr(last.out, "1 stage times of 0 ms or less left out"));
    CHECK_INT(run("predict %%F/off.json --tier low 640x480"), 0);
}
int main(void) {
    if (!program_begin("fit")) return 1;
    RUN_TESTS(test_recovery, test_held_out, test_predictions, test_views, test_noise, test_damaged,
              test_usage);
    FREE_ALL(document.text, document.nodes);
    return program_done("test_estimator");
}
