/* record.c: a measured point as JSON. */
#include "request/record.h"

#include "base/memory.h"
#include "server/ask.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void sample_free(struct sample *sample) {
    free(sample->record);
    free(sample->question);
    free(sample->style);
    free(sample->prompt);
    if (sample->has_own_image) unlink(sample->image_path);
    free(sample->image_path);
    free(sample->text_ids);
    free(sample->reason);
}

void put_point_layout(vp_json_writer *writer, const struct point *point) {
    const vp_layout *layout = point->layout;
    knob_put(writer, KNOB_TIER, point->knobs);
    vp_json_key(writer, "target_vision_tokens");
    if (layout) vp_json_int(writer, point->target_tokens); else vp_json_null(writer);
    vp_json_key(writer, "target_crops");
    if (layout) vp_json_int(writer, point->target_crops); else vp_json_null(writer);
    knob_put(writer, KNOB_TOP_K, point->knobs);
    knob_put(writer, KNOB_BLOCKS, point->knobs);
    for (int actual = 0; actual < 2; actual++) {
        static const char *const keys[2][4] = {
            {"theoretical_num_crops", "theoretical_tiling", "theoretical_image_size", "theoretical_vision_tokens"},
            {"actual_num_crops", "actual_tiling", "actual_image_size", "actual_vision_tokens"}};
        if (layout) {
            put_int(writer, keys[actual][0], layout->crops);
            put_pair(writer, keys[actual][1], layout->tiling.rows, layout->tiling.cols);
            put_pair(writer, keys[actual][2], layout->canvas_height_px, layout->canvas_width_px);
            put_int(writer, keys[actual][3], actual ? layout->feature_tokens : layout->theoretical_tokens);
        } else {
            for (int i = 0; i < 4; i++) put_null(writer, keys[actual][i]);
        }
    }
    put_int(writer, "input_text_tokens", point->sample->text_count);
    put_int(writer, "actual_text_tokens", point->sample->text_count);
    vp_json_key(writer, "total_sequence_length");
    if (layout || !point->sample->image_path)
        vp_json_int(writer, !point->sample->no_bos + (layout ? layout->image_tokens : 0) + point->sample->text_count);
    else vp_json_null(writer);
}
/* The usage of a server's first run; all -1 without one. */
static vp_chat_usage usage_of(const struct point *point) {
    const vp_chat_usage unknown = {-1, -1, -1, -1, -1};
    return point->run_count && point->runs[0].served ? point->runs[0].served->usage : unknown;
}
static void put_count_or_null(vp_json_writer *writer, const char *key, int64_t count) {
    if (count < 0) put_null(writer, key); else put_int(writer, key, count);
}
void put_served_layout(vp_json_writer *writer, const struct point *point, const vp_json *sizes) {
    static const char *const unknown[] = {"target_crops", "top_k", "num_active_blocks", "theoretical_num_crops",
                                          "theoretical_tiling", "theoretical_image_size", "theoretical_vision_tokens",
                                          "actual_num_crops", "actual_tiling"};
    const vp_chat_usage usage = usage_of(point);
    const uint32_t sent = vp_json_get(sizes, 0, "sent_image");
    knob_put(writer, KNOB_TIER, point->knobs);
    put_count_or_null(writer, "target_vision_tokens", node_int(sizes, 0, "target_vision_tokens", -1));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) put_null(writer, unknown[i]);
    if (node_is(sizes, sent, VP_JSON_OBJECT))
        put_pair(writer, "actual_image_size", node_int(sizes, sent, "height_px", 0),
                 node_int(sizes, sent, "width_px", 0));
    else put_null(writer, "actual_image_size");
    put_count_or_null(writer, "actual_vision_tokens", usage.image_tokens);
    put_count_or_null(writer, "input_text_tokens", text_tokens_of(&usage));
    put_count_or_null(writer, "actual_text_tokens", text_tokens_of(&usage));
    put_count_or_null(writer, "total_sequence_length", usage.prompt_tokens);
}
static void put_node(vp_json_writer *writer, const char *key, const vp_json *json) {
    const uint32_t node = vp_json_get(json, 0, key);
    vp_json_key(writer, key);
    if (node == VP_JSON_NONE) vp_json_null(writer); else json_node(writer, json, node);
}
/* From each piece of a run's answer to the next, ms. */
static void put_run_gaps(vp_json_writer *writer, const struct served *served) {
    double *gaps = resize(NULL, served->piece_count + 1, sizeof *gaps);
    const size_t count = served_gaps(served, gaps);
    vp_json_begin_array(writer);
    for (size_t i = 0; i < count; i++) vp_json_double(writer, gaps[i]);
    vp_json_end_array(writer);
    free(gaps);
}
static void put_served_run(vp_json_writer *writer, const struct served *served) {
    vp_json_begin_object(writer);
    put_usage(writer, &served->usage);
    put_text(writer, "model", served->model);
    put_text(writer, "finish_reason", served->finish_reason);
    put_int(writer, "pieces", (int64_t)served->piece_count);
    put_int(writer, "attempts", served->attempts);
    put_bool(writer, "new_connection", served->is_new_connection);
    put_bool(writer, "streamed", served->is_streamed);
    put_double(writer, "sent_ms", served->sent_ns < 0 ? (double)NAN : (double)served->sent_ns / 1e6);
    put_double(writer, "headers_ms", served->headers_ns < 0 ? (double)NAN : (double)served->headers_ns / 1e6);
    put_double(writer, "first_output_ms",
               served->first_output_ns < 0 ? (double)NAN : (double)served->first_output_ns / 1e6);
    put_server_timings(writer, served);
    vp_json_end_object(writer);
}
void put_served_point(vp_json_writer *writer, const struct point *point, const vp_json *sizes) {
    const vp_chat_usage usage = usage_of(point);
    put_node(writer, "sent_image", sizes);
    put_node(writer, "image_tokens_by_rule", sizes);
    put_usage(writer, &usage);
    vp_json_key(writer, "itl");
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < point->run_count; i++) put_run_gaps(writer, point->runs[i].served);
    vp_json_end_array(writer);
    vp_json_key(writer, "served_runs");
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < point->run_count; i++) put_served_run(writer, point->runs[i].served);
    vp_json_end_array(writer);
}
void put_point_tokens(vp_json_writer *writer, const struct point *point) {
    int ran = point->run_count > 0;
    int32_t tokens = ran ? point->runs[0].token_count : 0;
    if (point->is_served) { /* a server does not say whether its count has the token that ends the answer */
        const struct served *served = ran ? point->runs[0].served : NULL;
        put_count_or_null(writer, "output_tokens", usage_of(point).completion_tokens);
        put_null(writer, "content_tokens");
        vp_json_key(writer, "ends_with_eos");
        if (served && served->finish_reason) vp_json_bool(writer, point->runs[0].ended_by_eos);
        else vp_json_null(writer);
        return;
    }
    vp_json_key(writer, "output_tokens");
    if (ran) vp_json_int(writer, tokens); else vp_json_null(writer);
    vp_json_key(writer, "content_tokens");
    if (ran) vp_json_int(writer, tokens - (point->runs[0].ended_by_eos != 0)); else vp_json_null(writer);
    vp_json_key(writer, "ends_with_eos");
    if (ran) vp_json_bool(writer, point->runs[0].ended_by_eos); else vp_json_null(writer);
}

/* "energy_resolution_j": of the mean; each run's reading is off by at most a step at either end. */
static void put_resolution(vp_json_writer *writer, const struct point *point) {
    double sum = 0;
    for (int32_t run = 0; run < point->run_count; run++) {
        if (!point->runs[run].has_energy) return;
        sum += point->runs[run].energy_resolution_j;
    }
    if (point->run_count) put_double(writer, "energy_resolution_j", sum / point->run_count);
}
void put_point_times(vp_json_writer *writer, const struct point *point) {
    int32_t longest = 0;
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        const double mean = point->run_count ? metric_mean(point->runs, point->run_count, metric) : (double)NAN;
        if (!is_left_out(metric, mean)) put_double(writer, METRIC_KEYS[metric], mean);
    }
    put_resolution(writer, point);
    vp_json_key(writer, "stages");
    vp_json_begin_object(writer);
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        put_double(writer, vp_stage_name((vp_stage)i),
                   point->run_count ? metric_mean(point->runs, point->run_count, METRIC_STAGE + i) : (double)NAN);
    vp_json_end_object(writer);
    vp_json_key(writer, "stage_detail"); /* means over the runs */
    vp_json_begin_object(writer);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        vp_json_key(writer, vp_stage_name((vp_stage)i));
        vp_json_begin_object(writer);
        for (int detail = DETAIL_WALL; detail < DETAIL_COUNT; detail++)
            put_double(writer, DETAIL_KEYS[detail],
                       point->run_count ? metric_mean(point->runs, point->run_count, stage_metric(i, detail))
                                        : (double)NAN);
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
    for (int32_t run = 0; run < point->run_count && !point->is_served; run++)
        if (point->runs[run].token_count - 1 > longest) longest = point->runs[run].token_count - 1;
    vp_json_key(writer, "T_decode_per_step"); /* [position][run]; position 0 is decode step 1 */
    vp_json_begin_array(writer);
    for (int32_t i = 0; i < longest; i++) {
        vp_json_begin_array(writer);
        for (int32_t run = 0; run < point->run_count; run++)
            if (i < point->runs[run].token_count - 1) vp_json_double(writer, (double)point->runs[run].step_ns[i] / 1e6);
        vp_json_end_array(writer);
    }
    vp_json_end_array(writer);
    vp_json_key(writer, "runs");
    vp_json_begin_object(writer);
    for (int metric = 0; metric < METRIC_STAGE + VP_STAGE_COUNT; metric++) {
        if (is_left_out(metric, point->run_count ? metric_of(&point->runs[0], metric) : (double)NAN)) continue;
        vp_json_key(writer,
                    metric < METRIC_STAGE ? METRIC_KEYS[metric] : vp_stage_name((vp_stage)(metric - METRIC_STAGE)));
        vp_json_begin_array(writer);
        for (int32_t run = 0; run < point->run_count; run++)
            json_double_or_null(writer, metric_of(&point->runs[run], metric));
        vp_json_end_array(writer);
    }
    vp_json_end_object(writer);
}

void put_answer(vp_json_writer *writer, const char *key, const struct pass_result *run) {
    vp_json_key(writer, key);
    if (run) vp_json_string_bytes(writer, run->answer, run->answer_bytes); else vp_json_null(writer);
}
void score_point(const struct point *point, struct scoring *scoring, vp_score_outcome *outcome) {
    vp_score_outcome none = {(double)NAN, NULL, 0, -1, NULL, NULL};
    struct parsed record = {{NULL, NULL, 0}, NULL, 0};
    vp_result result;
    memset(scoring, 0, sizeof *scoring);
    scoring_clear(scoring);
    *outcome = none;
    if (!point->run_count) { outcome->reason = "no answer"; return; }
    scoring->sample.prediction = scoring_own(scoring, copy_text(point->runs[0].answer, strlen(point->runs[0].answer)));
    if (point->sample->record
        && parse_json(&record, point->sample->record, strlen(point->sample->record), NULL) == VP_OK)
        outcome->reason = scoring_read(scoring, (int)point->metric, &record.json, 0);
    scoring_as_run(scoring);
    if (!outcome->reason
        && (result = scoring_run(scoring, point->metric, vp_score_metric_of(point->metric)->run_cleaning, outcome))
               != VP_OK)
        outcome->reason = vp_result_text(result);
    if (outcome->reason && !scoring->sample.references && !scoring->sample.option_count)
        outcome->reason = "the record has no answers to compare with";
    free(record.nodes);
}
/* By their tokens; of a server's answers only the text is known. */
static int is_same_answer(const struct pass_result *left, const struct pass_result *right) {
    if (left->served)
        return left->answer_bytes == right->answer_bytes && !memcmp(left->answer, right->answer, left->answer_bytes);
    return left->token_count == right->token_count
           && !memcmp(left->tokens, right->tokens, (size_t)left->token_count * sizeof(int32_t));
}
int is_truncated(const struct pass_result *run) {
    if (!run->served) return !run->ended_by_eos;
    return run->served->finish_reason ? !strcmp(run->served->finish_reason, "length") : -1;
}
void put_point_answer(vp_json_writer *writer, const struct point *point, const vp_score_outcome *scored) {
    vp_score_outcome outcome = *scored;
    int same = 1, ran = point->run_count > 0;
    const int truncated = ran && !point->ignore_eos ? is_truncated(&point->runs[0]) : -1;
    for (int32_t run = 1; run < point->run_count; run++) same &= is_same_answer(&point->runs[run], &point->runs[0]);
    /* unparsed: the reference guesses there; a guess earns nothing */
    put_double(writer, "accuracy", outcome.is_unparsed ? 0 : outcome.score);
    put_text(writer, "accuracy_reason", outcome.is_unparsed ? NULL : outcome.reason);
    put_answer(writer, "pred", ran ? &point->runs[0] : NULL);
    put_text(writer, "pred_cleaned", ran ? outcome.cleaned : NULL);
    vp_json_key(writer, "unparsed");
    if (ran) vp_json_bool(writer, outcome.is_unparsed); else vp_json_null(writer);
    vp_json_key(writer, "truncated"); /* no EOS among the tokens that were allowed */
    if (truncated >= 0) vp_json_bool(writer, truncated); else vp_json_null(writer);
    vp_json_key(writer, "empty");
    if (ran && outcome.cleaned) vp_json_bool(writer, !outcome.cleaned[0]); else vp_json_null(writer);
    if (point->is_served) put_null(writer, "output_token_ids");
    else put_ints(writer, "output_token_ids", ran ? point->runs[0].tokens : NULL, ran ? point->runs[0].token_count : 0);
    vp_json_key(writer, "answers_equal_over_runs");
    if (ran) vp_json_bool(writer, same); else vp_json_null(writer);
    put_text(writer, "prompt", point->sample->prompt);
}

void put_metadata(vp_json_writer *writer, struct parsed *scratch, const struct sample *sample) {
    static const char *const always[] = {"question", "answers", "image_id", "id"};
    vp_json *json = &scratch->json;
    if (!sample->record || parse_json(scratch, sample->record, strlen(sample->record), NULL) != VP_OK) return;
    vp_json_key(writer, "metadata");
    vp_json_begin_object(writer);
    for (int i = 0; i < 4; i++) {
        uint32_t node = vp_json_get(json, 0, always[i]);
        vp_json_key(writer, always[i]);
        if (node != VP_JSON_NONE) json_node(writer, json, node);
        else if (i == 2 && sample->image_path) { /* an image file is named after its id as a rule */
            const char *name = strrchr(sample->image_path, '/') ? strrchr(sample->image_path, '/') + 1
                                                                : sample->image_path,
                       *dot = strrchr(name, '.');
            char *stem = copy_text(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
            json_lossy(writer, stem);
            free(stem);
        } else vp_json_null(writer);
    }
    for (uint32_t i = 1, member = 0; member < json->nodes[0].count; member++, i = json->nodes[i + 1].end) {
        char *key = node_text(json, i);
        int known = !key || !strcmp(key, always[0]) || !strcmp(key, always[1]) || !strcmp(key, always[2])
                    || !strcmp(key, always[3]);
        if (!known) {
            vp_json_key(writer, key);
            json_node(writer, json, i + 1);
        }
        free(key);
    }
    vp_json_end_object(writer);
}
