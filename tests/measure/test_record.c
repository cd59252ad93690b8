/* test_record.c: a synthetic point as JSON, compared as whole texts: layout, tokens, times of runs, answer and score, the record's members. */
#define _POSIX_C_SOURCE 200809L
#include "measure/record.h"
#include "support/check.h"
#include "support/written.h"

static struct sample sample;
static struct cuts cuts;
static struct point point;
static struct knob_values knobs;
static struct pass_result *runs;
/* two runs of 3 and 2 tokens; stage i of run r takes (i + 1) * (r + 1) ms */
static void make(void) {
    static const int32_t blocks[] = {0, 3};
    memset(&sample, 0, sizeof sample);
    memset(&cuts, 0, sizeof cuts);
    memset(&point, 0, sizeof point);
    runs_free(runs, 2);
    runs = runs_make(2, 4);
    vp_layout *layout = &cuts.whole;
    layout->crops = 2; layout->tiling.rows = 1; layout->tiling.cols = 2; layout->canvas_height_px = 336; layout->canvas_width_px = 560;
    layout->feature_tokens = 384; layout->theoretical_tokens = 432; layout->image_tokens = 400;
    cuts.count = 1;
    sample.tokens.count = 7;
    sample.prompt = (char *)(size_t)"the prompt";
    sample.record = (char *)(size_t)"{\"question\": \"q\", \"answers\": [\"cat\", \"cat\", \"cat\"]}";
    point.sample = &sample; point.cuts = &cuts; point.knobs = &knobs; point.target_tokens = 440; point.target_crops = 3;
    knob_set_text(&knobs, KNOB_TIER, "low");
    knob_set_number(&knobs, KNOB_TOP_K, 4);
    knob_set_list(&knobs, KNOB_BLOCKS, blocks, 2);
    point.runs = runs; point.run_count = 2; point.metric = VP_SCORE_VQA_SEED;
    for (int r = 0; r < 2; r++) {
        runs[r].total_ns = INT64_C(100000000) * (r + 1);
        runs[r].reply.token_count = 3 - r;
        runs[r].answer = copy_text("cat", 3);
        runs[r].answer_bytes = 3;
        for (int i = 0; i < 4; i++) { runs[r].reply.tokens[i] = 50 + i; runs[r].reply.step_ns[i] = (10 * r + i + 1) * 1000000; }
        for (int i = 0; i < VP_STAGE_COUNT; i++) {
            runs[r].reply.times.ran[i] = i != VP_STAGE_H2D;
            runs[r].reply.times.device_ns[i] = runs[r].reply.times.wall_ns[i] = (i + 1) * (r + 1) * 1000000;
            runs[r].reply.times.launches[i] = i + r;
        }
    }
}
static void make_case(const char *name) { check_case("%s", name); make(); }
static void test_layout(void) {
    make_case("layout of a point");
    begin();
    put_point_layout(&writer, &point);
    CHECK_TEXT(end(), "{\"tier\": \"low\", \"target_vision_tokens\": 440, \"target_crops\": 3, \"top_k\": 4, \"num_active_blocks\": 2, "
        "\"theoretical_num_crops\": 2, \"theoretical_tiling\": [1, 2], \"theoretical_image_size\": [336, 560], \"theoretical_vision_tokens\": 432, "
        "\"actual_num_crops\": 2, \"actual_tiling\": [1, 2], \"actual_image_size\": [336, 560], \"actual_vision_tokens\": 384, "
        "\"input_text_tokens\": 7, \"actual_text_tokens\": 7, \"total_sequence_length\": 408}");
    check_case("... with only text, and with an unusable image");
    point.cuts = NULL;
    knob_set_text(&knobs, KNOB_TIER, NULL);
    sample.tokens.no_bos = 1;
    begin();
    put_point_layout(&writer, &point);
    CHECK_TEXT(end(), "{\"tier\": null, \"target_vision_tokens\": null, \"target_crops\": null, \"top_k\": 4, \"num_active_blocks\": 2, "
        "\"theoretical_num_crops\": null, \"theoretical_tiling\": null, \"theoretical_image_size\": null, \"theoretical_vision_tokens\": null, "
        "\"actual_num_crops\": null, \"actual_tiling\": null, \"actual_image_size\": null, \"actual_vision_tokens\": null, "
        "\"input_text_tokens\": 7, \"actual_text_tokens\": 7, \"total_sequence_length\": 7}");
    char *path = (char *)(size_t)"a.png";
    sample.images.items = &path; sample.images.count = 1;
    begin();
    put_point_layout(&writer, &point);
    CHECK(strstr(end(), "\"total_sequence_length\": null") != NULL);
}
static void test_tokens(void) {
    make_case("tokens of the first run");
    runs[0].reply.ended_by_eos = 5;
    put_point_tokens(begin(), &point);
    CHECK_TEXT(end(), "{\"output_tokens\": 3, \"content_tokens\": 2, \"ends_with_eos\": true}");
    runs[0].reply.ended_by_eos = 0;
    put_point_tokens(begin(), &point);
    CHECK_TEXT(end(), "{\"output_tokens\": 3, \"content_tokens\": 3, \"ends_with_eos\": false}");
    point.run_count = 0;
    put_point_tokens(begin(), &point);
    CHECK_TEXT(end(), "{\"output_tokens\": null, \"content_tokens\": null, \"ends_with_eos\": null}");
}
static void test_times(void) {
    make_case("times: means, each step by run, each run");
    put_point_times(begin(), &point);
    const char *text = end();
    CHECK(strstr(text, "{\"T_vision_total\": 10.5, \"T_LLM_prefill\": 45.0, \"T_LLM_decode\": 7.0, \"T_total\": 150.0, \"T_decode_per_token\": 6.25, ") == text);
    CHECK(strstr(text, "\"stages\": {\"preprocess\": 1.5, \"h2d\": null, \"vit\": 4.5, ") != NULL);
    CHECK(strstr(text, "\"stage_detail\": {\"preprocess\": {\"wall_ms\": 1.5, \"device_ms\": null, ") != NULL);
    CHECK(strstr(text, "\"vit\": {\"wall_ms\": 4.5, \"device_ms\": 4.5, \"launches\": 2.5, \"flops\": 0.0, \"bytes\": 0.0}") != NULL);
    CHECK(strstr(text, "\"T_decode_per_step\": [[1.0, 11.0], [2.0]], \"runs\": {\"T_vision_total\": [7.0, 14.0], ") != NULL);
    CHECK(strstr(text, "\"T_total\": [100.0, 200.0], \"T_decode_per_token\": [1.5, 11.0], ") != NULL);
    CHECK(strstr(text, "\"h2d\": [null, null], \"vit\": [3.0, 6.0], ") != NULL && strstr(text, "\"detok\": [11.0, 22.0]}}") != NULL);
    check_case("... of a failed point: keys without numbers");
    point.run_count = 0;
    put_point_times(begin(), &point);
    text = end();
    CHECK(strstr(text, "{\"T_vision_total\": null, ") == text && strstr(text, "\"T_decode_per_step\": [], \"runs\": {\"T_vision_total\": [], ") != NULL);
    CHECK(strstr(text, "\"vit\": {\"wall_ms\": null, ") != NULL && !strstr(text, "0.0"));
}
static void test_served(void) {
    struct served *served = zeroed(1, sizeof *served);
    const struct served_sizes sizes = {0};
    make_case("a server's pass: 0 is a valid time, -1 means none");
    served->headers_ns = served->first_ns = -1;
    runs[0].served = served;
    point.run_count = 1;
    point.is_served = 1;
    put_served_point(begin(), &point, &sizes);
    const char *text = end();
    CHECK(strstr(text, "\"sent_ms\": 0.0, \"headers_ms\": null, \"first_output_ms\": 0.0, ") != NULL);
    served->usage.image_tokens = 77;
    put_served_layout(begin(), &point, &sizes);
    CHECK(strstr(end(), "\"actual_vision_tokens\": 77") != NULL);
    served->sent_ns = served->first_output_ns = -1;
    served->headers_ns = 0;
    put_served_point(begin(), &point, &sizes);
    CHECK(strstr(end(), "\"sent_ms\": null, \"headers_ms\": 0.0, \"first_output_ms\": null, ") != NULL);
}
static void answer_is(const char *want) {
    struct scoring scoring;
    vp_score_outcome outcome;
    score_point(&point, &scoring, &outcome);
    put_point_answer(begin(), &point, &outcome);
    CHECK_TEXT(end(), want);
    scoring_free(&scoring);
}
static void test_answer(void) {
    make_case("an answer and its score; runs with different answers");
    answer_is("{\"accuracy\": 1.0, \"accuracy_reason\": null, \"pred\": \"cat\", \"pred_cleaned\": \"cat\", \"unparsed\": false, \"truncated\": true, \"empty\": false, "
              "\"output_token_ids\": [50, 51, 52], \"answers_equal_over_runs\": false, \"prompt\": \"the prompt\"}");
    check_case("the same tokens in all runs, ended by EOS; another answer");
    runs[1].reply.token_count = 3;
    runs[0].reply.ended_by_eos = 1;
    runs[0].answer[0] = 'b';
    answer_is("{\"accuracy\": 0.0, \"accuracy_reason\": null, \"pred\": \"bat\", \"pred_cleaned\": \"bat\", \"unparsed\": false, \"truncated\": false, \"empty\": false, "
              "\"output_token_ids\": [50, 51, 52], \"answers_equal_over_runs\": true, \"prompt\": \"the prompt\"}");
    runs[1].reply.tokens[2]++;
    point.ignore_eos = 1;
    runs[0].answer[0] = 0; /* the text to score ends here, but the written text does not */
    answer_is("{\"accuracy\": 0.0, \"accuracy_reason\": null, \"pred\": \"\\u0000at\", \"pred_cleaned\": \"\", \"unparsed\": false, \"truncated\": null, "
              "\"empty\": true, \"output_token_ids\": [50, 51, 52], \"answers_equal_over_runs\": false, \"prompt\": \"the prompt\"}");
    make_case("without answers in the record, without a record, without an answer");
    sample.record = (char *)(size_t)"{\"question\": \"q\"}";
    {
        static const char none[] = "{\"accuracy\": null, \"accuracy_reason\": \"the record has no answers to compare with\", \"pred\": \"cat\", ";
        struct scoring scoring;
        vp_score_outcome outcome;
        for (int i = 0; i < 2; i++) {
            score_point(&point, &scoring, &outcome);
            put_point_answer(begin(), &point, &outcome);
            CHECK(!strncmp(end(), none, sizeof none - 1));
            scoring_free(&scoring);
            sample.record = NULL;
        }
    }
    point.run_count = 0;
    answer_is("{\"accuracy\": null, \"accuracy_reason\": \"no answer\", \"pred\": null, \"pred_cleaned\": null, \"unparsed\": null, "
              "\"truncated\": null, \"empty\": null, \"output_token_ids\": [], \"answers_equal_over_runs\": null, \"prompt\": \"the prompt\"}");
    make_case("a choice that cannot be parsed scores 0");
    point.metric = VP_SCORE_MC;
    sample.record = (char *)(size_t)"{\"question\": \"q\", \"answers\": [\"b\"], \"answer_idx\": 1, \"options\": [\"a\", \"b\"]}";
    {
        struct scoring scoring;
        vp_score_outcome outcome;
        score_point(&point, &scoring, &outcome);
        outcome.is_unparsed = 1;
        outcome.score = 1;
        outcome.reason = "why";
        put_point_answer(begin(), &point, &outcome);
        CHECK(strstr(end(), "{\"accuracy\": 0.0, \"accuracy_reason\": null, ") == out.data && strstr(out.data, "\"unparsed\": true"));
        scoring_free(&scoring);
    }
}
static void metadata_is(const char *record, const char *path, const char *want) {
    struct parsed scratch = {{NULL, NULL, 0}, NULL, 0};
    sample.record = (char *)(size_t)record;
    char *image = (char *)(size_t)path;
    sample.images.items = &image; sample.images.count = path != NULL;
    put_metadata(begin(), &scratch, &sample);
    CHECK_TEXT(end(), want);
    free(scratch.nodes);
}
static void test_metadata(void) {
    check_case("the record's members: four are always written, the image's name as its id, the others in file order");
    metadata_is("{\"id\": 5, \"more\": [1, {\"a\": 2}], \"question\": \"q\", \"answers\": [\"x\"], \"last\": null}", "dir.d/im.age.png",
                "{\"metadata\": {\"question\": \"q\", \"answers\": [\"x\"], \"image_id\": \"im.age\", \"id\": 5, \"more\": [1, {\"a\": 2}], \"last\": null}}");
    metadata_is("{\"image_id\": \"own\"}", "a/b.png", "{\"metadata\": {\"question\": null, \"answers\": null, \"image_id\": \"own\", \"id\": null}}");
    metadata_is("{}", "name", "{\"metadata\": {\"question\": null, \"answers\": null, \"image_id\": \"name\", \"id\": null}}");
    metadata_is("{}", "a/.png", "{\"metadata\": {\"question\": null, \"answers\": null, \"image_id\": \".png\", \"id\": null}}");
    metadata_is("{}", NULL, "{\"metadata\": {\"question\": null, \"answers\": null, \"image_id\": null, \"id\": null}}");
    metadata_is("{\"a\\u0000\": 1}", NULL, "{\"metadata\": {\"question\": null, \"answers\": null, \"image_id\": null, \"id\": null}}");
    metadata_is(NULL, NULL, "{}");
    metadata_is("no JSON", NULL, "{}");
}

int main(void) {
    RUN_TESTS(test_layout, test_tokens, test_times, test_served, test_answer, test_metadata);
    knob_values_free(&knobs);
    runs_free(runs, 2);
    free(out.data);
    return check_done("test_record");
}
