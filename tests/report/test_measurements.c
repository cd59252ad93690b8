/* test_measurements.c: from synthetic result files in memory to the requests and times of a latency model: which samples count, the rest of T_total, the noise of the
 * means, warnings, and files that do not belong together. */
#define _POSIX_C_SOURCE 200809L
#include "base/console.h"
#include "commands/commands.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"

enum { ROWS = 4 };
static struct result_file files[3];
static double values[3][COLUMN_COUNT][ROWS], runs[3][2 * ROWS];
static size_t run_at[3][ROWS + 1];
static struct results results = {.files = files, .count = 2};
static struct text_list warnings;
static struct measurements got;

/* two files of four samples each; column k of row r in file f has count 100 f + 10 k + r */
static void make(void) {
    static const int counts[] = {COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_PROMPT, COLUMN_OUTPUT_TOKENS};
    for (int f = 0; f < 3; f++) knob_values_free(&files[f].knobs);
    memset(files, 0, sizeof files);
    memset(values, 0, sizeof values);
    for (int f = 0; f < 3; f++) {
        struct result_file *file = &files[f];
        file->path = f ? f == 1 ? (char *)(size_t)"second" : (char *)(size_t)"third" : (char *)(size_t)"first";
        knob_set_text(&file->knobs, KNOB_TIER, f ? "high" : "medium");
        file->device = (char *)(size_t)"cpu: made";
        file->model = (char *)(size_t)"made";
        knob_set_text(&file->knobs, KNOB_WEIGHTS, "bf16");
        knob_set_number(&file->knobs, KNOB_TOP_K, 4 + f);
        knob_set_number(&file->knobs, KNOB_BLOCKS, 12 + f);
        file->expert_count = 64;
        file->count = ROWS;
        for (int k = 0; k < COLUMN_COUNT; k++) file->columns[k] = values[f][k];
        for (int r = 0; r < ROWS; r++) {
            for (int k = 0; k < 5; k++) values[f][counts[k]][r] = 100 * f + 10 * (k + 1) + r;
            values[f][METRIC_VISION][r] = 10 + r;
            values[f][METRIC_PREFILL][r] = 20 + r;
            values[f][METRIC_DECODE][r] = 40 + r;
            values[f][METRIC_TOTAL][r] = 100 + 5 * r;
            runs[f][2 * r] = 99 + 5 * r;
            runs[f][2 * r + 1] = 101 + 5 * r;
            run_at[f][r] = 2 * (size_t)r;
        }
        run_at[f][ROWS] = 2 * ROWS;
        file->run_ms[METRIC_TOTAL] = runs[f];
        file->run_at = run_at[f];
    }
    results.count = 2;
}
static void make_case(const char *name) { check_case("%s", name); make(); }
static int measure(const char *words, int64_t *experts) {
    struct options options;
    measurements_free(&got);
    text_list_free(&warnings);
    listen_begin();
    int code = options_of_words(&options, &command_fit, words);
    if (!code) code = measurements_make(number_of(&options, "num_experts"), &results, experts, NULL, &got, &warnings);
    listen_end();
    options_free(&options);
    return code;
}
static int is_warned(const char *words) {
    for (size_t i = 0; i < warnings.count; i++) if (strstr(warnings.items[i], words)) return 1;
    return 0;
}
static void test_read(void) {
    int64_t experts = -1;
    double noise = 0;
    make_case("each sample becomes a request and its times");
    CHECK_INT(measure("first", &experts), 0);
    CHECK_TEXT(room_said, "");
    CHECK(got.count == 8 && experts == 64 && got.config_count == 2 && got.size_count == 2 && !got.incomplete && !got.not_positive);
    CHECK_TEXT(got.device, "cpu: made");
    CHECK_TEXT(got.model, "made");
    for (int i = 0; i < 8; i++) {
        int f = i / 4, r = i % 4;
        static const char *const names[] = {"views", "vision_tokens", "text_tokens", "sequence", "output_tokens", "tier_index", "top_k", "num_active_blocks",
                                            "weight_bits"};
        for (int knob = 0; knob < ESTIMATE_KNOB_COUNT; knob++) {
            int want = knob < 5 ? 100 * f + 10 * (knob + 1) + r : knob == 5 ? 1 + f : knob == 6 ? 4 + f : knob == 7 ? 12 + f : 16;
            CHECK_TEXT(ESTIMATE_KNOBS[knob].name, names[knob]);
            CHECK_INT(knob_at(&got.requests[i], knob), want);
        }
        CHECK_INT(got.requests[i].expert_count, 64);
        CHECK(got.configs[i] == (uint32_t)f && got.sizes[i] == (uint32_t)f);
        CHECK_NEAR(got.total[i], 100 + 5 * r, 0);
        CHECK_NEAR(got.measured[i * VP_LATENCY_STAGE_COUNT + VP_LATENCY_VISION], 10 + r, 0);
        CHECK_NEAR(got.measured[i * VP_LATENCY_STAGE_COUNT + VP_LATENCY_PREFILL], 20 + r, 0);
        CHECK_NEAR(got.measured[i * VP_LATENCY_STAGE_COUNT + VP_LATENCY_DECODE], 40 + r, 0);
        CHECK_NEAR(got.measured[i * VP_LATENCY_STAGE_COUNT + VP_LATENCY_OTHER], 30 + 2 * r, 1e-12);
        noise += sqrt(2 / 3.14159265358979323846) * 1.0 / (100 + 5 * r); /* two runs at mean - 1 and + 1: a standard error of 1 */
    }
    CHECK_NEAR(got.noise, noise, 1e-12);
    CHECK_INT(got.noise_count, 8);
    CHECK(warnings.count == 1 && is_warned("only 8 measurements: errors and intervals are unreliable"));
    make_case("files of one image size share a size index");
    knob_set_text(&files[1].knobs, KNOB_TIER, knob_text(&files[0].knobs, KNOB_TIER));
    results.count = 3;
    CHECK_INT(measure("first", &experts), 0);
    CHECK(got.count == 12 && got.size_count == 2 && got.config_count == 3);
    for (int i = 0; i < 12; i++) CHECK(got.configs[i] == (uint32_t)i / 4 && got.sizes[i] == (i < 8 ? 0 : 2));
    make_case("a tier without a number, and no tier");
    knob_set_text(&files[0].knobs, KNOB_TIER, "other");
    knob_set_text(&files[1].knobs, KNOB_TIER, NULL);
    knob_set_number(&files[1].knobs, KNOB_TOKENS, 432);
    CHECK_INT(measure("first", &experts), 0);
    CHECK(got.requests[0].tier_index == 0 && got.requests[7].tier_index == 0);
}
static void test_left_out(void) {
    static const struct { int column; double value; int is_out; } rows[] = {
        {COLUMN_VIEWS, (double)NAN, 1}, {COLUMN_VIEWS, -1, 1}, {COLUMN_VIEWS, 0, 0}, {COLUMN_VISION_TOKENS, 0, 0}, {COLUMN_TEXT_TOKENS, 0, 0},
        {COLUMN_TEXT_TOKENS, -1, 1}, {COLUMN_PROMPT, 0, 1}, {COLUMN_PROMPT, 1, 0}, {COLUMN_OUTPUT_TOKENS, 0, 1}, {COLUMN_OUTPUT_TOKENS, 1, 0},
        {COLUMN_PROMPT, 1e9, 0}, {COLUMN_PROMPT, 1.1e9, 1}, {METRIC_PREFILL, 0, 1}, {METRIC_PREFILL, (double)NAN, 1}, {METRIC_PREFILL, 0.001, 0}};
    int64_t experts = -1;
    check_case("a sample without a count or a prefill time is dropped and counted");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make();
        values[1][rows[i].column][2] = rows[i].value;
        CHECK_INT(measure("first", &experts), 0);
        check_note(got.incomplete == (size_t)rows[i].is_out && got.count == 8 - got.incomplete, __FILE__, __LINE__, "row %zu: %zu left out", i, got.incomplete);
        CHECK(is_warned("1 sample skipped") == rows[i].is_out);
        CHECK_INT(got.requests[got.count - 1].views, 113);
    }
    make_case("the number of tokens that pruning drops, and of blocks that still see them");
    values[0][COLUMN_PROMPT][0] = 100; /* 20 vision tokens, of which 5 are kept: 85 rows after pruning */
    values[0][COLUMN_KEPT_TOKENS][0] = 5;
    values[0][COLUMN_SEQUENCE][0] = (3 * 100 + 9 * 85) / 12.0;
    values[0][COLUMN_KEPT_TOKENS][1] = 21; /* all are kept */
    values[0][COLUMN_KEPT_TOKENS][2] = 23; /* more than exist */
    values[0][COLUMN_KEPT_TOKENS][3] = 5;  /* and a number of rows that pruning cannot leave */
    values[0][COLUMN_SEQUENCE][3] = 7;
    CHECK_INT(measure("first", &experts), 0);
    CHECK(got.incomplete == 2 && got.pruned == 1 && got.requests[0].dropped_tokens == 15 && got.requests[1].dropped_tokens == 0);
    CHECK_NEAR(got.requests[0].full_blocks, 3, 1e-9);
    make_case("stages that a request does not have, and invalid times");
    values[0][COLUMN_VIEWS][0] = 0;
    values[0][COLUMN_OUTPUT_TOKENS][1] = 1;
    values[0][METRIC_DECODE][2] = 0;
    values[0][METRIC_TOTAL][3] = 50; /* less than the sum of its stages */
    CHECK_INT(measure("first", &experts), 0);
    CHECK(isnan(got.measured[VP_LATENCY_VISION]) && got.measured[VP_LATENCY_OTHER] == 40);
    CHECK(isnan(got.measured[1 * VP_LATENCY_STAGE_COUNT + VP_LATENCY_DECODE]));
    CHECK_NEAR(got.measured[1 * VP_LATENCY_STAGE_COUNT + VP_LATENCY_OTHER], 105 - 11 - 21, 1e-12);
    CHECK(isnan(got.measured[2 * VP_LATENCY_STAGE_COUNT + VP_LATENCY_DECODE]) && isnan(got.measured[3 * VP_LATENCY_STAGE_COUNT + VP_LATENCY_OTHER]));
    CHECK_INT(got.not_positive, 2);
    CHECK(is_warned("2 stage times of 0 ms or less left out"));
    CHECK(!stage_is_run(VP_LATENCY_VISION, &got.requests[0]) && stage_is_run(VP_LATENCY_PREFILL, &got.requests[0]) && stage_is_run(VP_LATENCY_DECODE, &got.requests[0]));
    CHECK(stage_is_run(VP_LATENCY_VISION, &got.requests[1]) && !stage_is_run(VP_LATENCY_DECODE, &got.requests[1]) && stage_is_run(VP_LATENCY_OTHER, &got.requests[1]));
    make_case("noise is estimated from samples with two or more runs");
    files[0].run_at = NULL;
    run_at[1][1] = 1; /* one run, then three */
    runs[1][1] = 105;
    runs[1][2] = 105;
    runs[1][3] = 108;
    CHECK_INT(measure("first", &experts), 0);
    CHECK_INT(got.noise_count, 3);
    CHECK_NEAR(got.noise, sqrt(2 / 3.14159265358979323846) * (sqrt((1 + 1 + 4) / 2.0 / 3) / 106 + 1.0 / 110 + 1.0 / 115), 1e-12);
}
static void test_warnings(void) {
    int64_t experts = -1;
    make_case("notes for the reader");
    files[0].failed_count = 2;
    files[1].failed_count = 1;
    files[1].num_missing = 4;
    files[0].num_missing = -1;
    files[0].num_throttled_runs = 5;
    files[1].num_throttled_runs = -1;
    files[1].synthetic = 1;
    text_list_copy(&results.notes, "a note");
    CHECK_INT(measure("first", &experts), 0);
    CHECK(is_warned("3 points failed, 4 are missing") && is_warned("5 runs were throttled") && is_warned("synthetic weights") && is_warned("a note"));
    CHECK_INT(warnings.count, 5);
    text_list_free(&results.notes);
    make_case("no time can be used");
    for (int f = 0; f < 2; f++) for (int r = 0; r < ROWS; r++) values[f][METRIC_PREFILL][r] = (double)NAN;
    CHECK_INT(measure("first", &experts), EXIT_INPUT);
    CHECK(strstr(room_said, "first: no sample has both stage times and token counts") != NULL);
    make_case("files with several weight formats use the model with weights");
    knob_set_text(&files[1].knobs, KNOB_WEIGHTS, "int8");
    CHECK_INT(measure("first", &experts), 0);
    CHECK(got.weights_vary && got.requests[0].weight_bits == 16 && got.requests[7].weight_bits == 8);
    CHECK(features_of(&got, VP_LATENCY_PHYSICAL) == VP_LATENCY_WEIGHTS && features_of(&got, VP_LATENCY_SEED) == VP_LATENCY_SEED);
    make();
    knob_set_text(&files[0].knobs, KNOB_WEIGHTS, NULL);
    CHECK_INT(measure("first", &experts), EXIT_USAGE);
    CHECK(strstr(room_said, "differ in weights (not said, bf16)") != NULL);
    make();
    files[0].device = files[1].device = NULL;
    files[0].model = files[1].model = NULL;
    CHECK_INT(measure("first", &experts), 0);
    CHECK_TEXT(got.device, "not said");
    CHECK_TEXT(got.model, "not said");
}
/* the interval of a bias, from configurations with a common error; rows that lack a number are ignored */
static void test_bias(void) {
    static double predicted[ESTIMATE_PARTS * 12];
    struct part_errors errors[ESTIMATE_PARTS];
    int64_t experts = -1;
    make_case("the bias of predictions has an interval from the configurations");
    results.count = 3;
    CHECK_INT(measure("first", &experts), 0);
    for (int part = 0; part < ESTIMATE_PARTS; part++)
        for (size_t i = 0; i < 12; i++) predicted[(size_t)part * 12 + i] = measured_part(&got, part, i) + 1 + (double)got.configs[i]; /* errors of 1, 2, 3 */
    errors_of(&got, predicted, errors);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        CHECK_INT(errors[part].of.count, 12);
        CHECK_NEAR(errors[part].of.bias, 2, 1e-12);
        CHECK_NEAR(errors[part].bias_high - 2, 4.302652729911275 / sqrt(3), 1e-9); /* Student with 2 degrees of freedom; three values with deviation 1 */
        CHECK_NEAR(errors[part].bias_low + errors[part].bias_high, 4, 1e-9);
    }
    CHECK_NEAR(errors[VP_LATENCY_VISION].measured_mean, 11.5, 1e-12);
    static double shares[ESTIMATE_PARTS * 12];
    struct part_errors of[ESTIMATE_PARTS];
    for (int part = 0; part < ESTIMATE_PARTS; part++)
        for (size_t i = 0; i < 12; i++) shares[(size_t)part * 12 + i] = measured_part(&got, part, i) * (1.1 + 0.1 * (double)got.configs[i]); /* errors of 10, 20, 30 %
                                                                                                                                              * */
    errors_of(&got, shares, of);
    CHECK_NEAR(of[VP_LATENCY_VISION].of.mape, 0.2, 1e-12);
    CHECK_NEAR(of[VP_LATENCY_VISION].mape_high - 0.2, 0.1 * 4.302652729911275 / sqrt(3), 1e-9);
    CHECK_NEAR(of[VP_LATENCY_VISION].mape_low, 0, 1e-12); /* at least 0 */
    double kept = errors[VP_LATENCY_VISION].bias_high;
    for (size_t i = 4; i < 12; i++) predicted[(size_t)VP_LATENCY_VISION * 12 + i] = (double)NAN; /* only one configuration remains */
    errors_of(&got, predicted, errors);
    CHECK(errors[VP_LATENCY_VISION].of.count == 4 && isnan(errors[VP_LATENCY_VISION].bias_low) && isnan(errors[VP_LATENCY_VISION].bias_high));
    CHECK_NEAR(errors[VP_LATENCY_PREFILL].bias_high, kept, 1e-12);
    for (size_t i = 0; i < 4; i++) predicted[(size_t)VP_LATENCY_VISION * 12 + i] = (double)NAN;
    errors_of(&got, predicted, errors);
    CHECK_INT(errors[VP_LATENCY_VISION].of.count, 0);
}
static struct evaluation evaluation;
static struct part_errors held[ESTIMATE_KINDS][ESTIMATE_PARTS];
static size_t count_warnings(int chosen) {
    text_list_free(&warnings);
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) memcpy(evaluation.errors[kind][SPLIT_CONFIG], held[kind], sizeof held[kind]);
    warn_of_errors(&evaluation, chosen, &warnings);
    return warnings.count;
}
static void test_warnings_of_errors(void) {
    struct part_errors *vision = &held[VP_LATENCY_PHYSICAL][VP_LATENCY_VISION], *total = &held[VP_LATENCY_PHYSICAL][ESTIMATE_TOTAL];
    check_case("warnings about predictions: a large bias, worse than the mean, worse than a baseline, each with its remedy");
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
        for (int part = 0; part < ESTIMATE_PARTS; part++) {
            struct part_errors one = {{8, 0.9, 1, 1.5, 0, 0.1, 2, 3}, -1, 1, 100, 0, 0};
            held[kind][part] = one;
        }
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0);
    vision->of.mape = 0.51;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    CHECK(is_warned("held-out configurations: predictions of vision (MAPE 51 %) are far off: do not rely on them"));
    CHECK_INT(count_warnings(VP_LATENCY_SEED), 0);
    vision->of.mape = 0.49;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0);
    vision->of.bias = -3; vision->bias_low = -4; vision->bias_high = -2;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    CHECK(is_warned("held-out configurations: predictions of vision are biased (-3.0 [-4.0, -2.0] ms, 3.0 % of the mean): measure more"));
    CHECK_INT(count_warnings(VP_LATENCY_SEED), 0);
    vision->of.bias = 3; vision->bias_low = 2; vision->bias_high = 4;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    vision->bias_low = -1;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0); /* may be chance */
    vision->of.bias = 1; vision->bias_low = 0.5;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0); /* 1 % is too small to matter */
    vision->bias_low = vision->bias_high = (double)NAN; vision->of.bias = 50;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0); /* unknown, so no warning */
    total->of.r2 = -0.25;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    CHECK(is_warned("held-out configurations: the mean of all rows predicts total better than the model (R2 -0.250): measure more"));
    total->of.r2 = (double)NAN;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0);
    held[VP_LATENCY_MEAN][VP_LATENCY_DECODE].of.r2 = -0.1; /* slightly worse than the mean, which the mean model always is */
    CHECK_INT(count_warnings(VP_LATENCY_MEAN), 0);
    held[VP_LATENCY_SEED][VP_LATENCY_DECODE].of.rmse = 1.43;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0);
    held[VP_LATENCY_SEED][VP_LATENCY_DECODE].of.rmse = 1.42;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    CHECK(is_warned("held-out configurations: the baseline \"seed\" predicts decode better (")
          && !is_warned("fit --features")); /* not for the total */
    held[VP_LATENCY_PHYSICAL][VP_LATENCY_DECODE].of.rmse = 1.4;
    held[VP_LATENCY_SEED][VP_LATENCY_DECODE].of.rmse = 1.2;
    held[VP_LATENCY_SEED][VP_LATENCY_PREFILL].of.rmse = 1.9; /* each model predicts one part better */
    held[VP_LATENCY_SEED][ESTIMATE_TOTAL].of.rmse = 1.49;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 1);
    CHECK(is_warned("measure more configurations and runs; until then, use fit --features seed"));
    CHECK_INT(count_warnings(VP_LATENCY_SEED), 2);
    CHECK(is_warned("the baseline \"physical\" predicts prefill better") && !is_warned("fit --features"));
    held[VP_LATENCY_PHYSICAL][VP_LATENCY_DECODE].of.rmse = 1.5;
    held[VP_LATENCY_SEED][VP_LATENCY_DECODE].of.rmse = 1.42;
    held[VP_LATENCY_SEED][VP_LATENCY_PREFILL].of.rmse = 1.5;
    held[VP_LATENCY_SEED][ESTIMATE_TOTAL].of.rmse = 1.5;
    CHECK_INT(count_warnings(VP_LATENCY_SEED), 0);
    held[VP_LATENCY_SEED][VP_LATENCY_DECODE].of.count = 0;
    CHECK_INT(count_warnings(VP_LATENCY_PHYSICAL), 0);
}
static void test_experts(void) {
    int64_t experts = -1;
    make_case("the number of experts: from the files, the option or the caller; without any, an error instead of a guess");
    files[0].expert_count = -1;
    files[1].expert_count = 16;
    CHECK_INT(measure("first", &experts), 0);
    CHECK(experts == 16 && got.requests[0].expert_count == 16);
    CHECK_INT(measure("first --num_experts 32", &experts), 0);
    CHECK_INT(experts, 32);
    files[1].expert_count = -1;
    experts = 7;
    CHECK_INT(measure("first", &experts), 0);
    CHECK_INT(experts, 7);
    experts = -1;
    CHECK_INT(measure("first", &experts), EXIT_INPUT);
    CHECK(strstr(room_said, "first does not contain the model's number of experts") && strstr(room_said, "set --num_experts N"));
    CHECK_INT(experts, -1);
    files[0].expert_count = 16;
    files[1].expert_count = 32;
    CHECK_INT(measure("first", &experts), EXIT_USAGE);
    CHECK(strstr(room_said, "second comes from a model with 32 experts, but other files come from one with 16: fit them separately") != NULL);
    CHECK_INT(measure("first --num_experts 32", &experts), EXIT_USAGE);
    files[1].expert_count = 16;
    knob_set_number(&files[1].knobs, KNOB_TOP_K, 17);
    CHECK_INT(measure("first", &experts), EXIT_INPUT);
    CHECK(strstr(room_said, "second: top_k 17 is more than the model's 16 experts") != NULL);
    knob_set_number(&files[1].knobs, KNOB_TOP_K, 16);
    CHECK_INT(measure("first", &experts), 0);
    check_case("names");
    CHECK_TEXT(part_name(ESTIMATE_TOTAL), "total");
    CHECK_TEXT(part_name(VP_LATENCY_PREFILL), vp_latency_stage_name(VP_LATENCY_PREFILL));
}

int main(void) {
    if (!folder_make("measurements")) return 1;
    RUN_TESTS(test_read, test_left_out, test_warnings, test_bias, test_warnings_of_errors, test_experts);
    for (int f = 0; f < 3; f++) knob_values_free(&files[f].knobs);
    measurements_free(&got);
    text_list_free(&warnings);
    return room_end("test_measurements");
}
