/* record.c: writes a measured point as JSON. */
#include "measure/record.h"

#include "server/ask.h"

#include <math.h>
#include <unistd.h>

void sample_free(struct sample *sample) {
    FREE_ALL(sample->record, sample->question, sample->style, sample->prompt);
    text_list_free(&sample->images);
    FREE_ALL(sample->sizes, sample->places, sample->tokens.ids, sample->reason);
}

int has_vanished_image(const struct sample *sample) {
    for (size_t i = 0; i < sample->images.count; i++) if (access(sample->images.items[i], R_OK)) return 1;
    return 0;
}

/* Several images have no common tiling: the result is then none. */
static struct field_pair layout_tiling(const vp_layout *layout) {
    const struct field_pair none = {-1, -1},
                            tiling = {layout ? layout->tiling.rows : 0, layout ? layout->tiling.cols : 0};
    return layout && tiling.first ? tiling : none;
}
static struct field_pair layout_canvas(const vp_layout *layout) {
    const struct field_pair none = {-1, -1},
                            canvas = {layout ? layout->canvas_height_px : 0, layout ? layout->canvas_width_px : 0};
    return layout && layout->tiling.rows ? canvas : none;
}
/* NaN if not pruned or not known. */
static double pruned_rows(const struct point *point) {
    const vp_layout *layout = point->cuts ? &point->cuts->whole : NULL;
    if (!point->pruned || !layout) return (double)NAN;
    return layout->image_tokens - layout->feature_tokens + !point->sample->tokens.no_bos + point->sample->tokens.count
           + point->pruned->mean_image_tokens;
}
void put_images(vp_json_writer *writer, const struct sample *sample) {
    const size_t count = sample->images.count;
    PUT(writer, KEY("image", count == 1 ? first_image(sample) : NULL));
    if (count == 1) put_pair(writer, "image_size", sample->sizes->height_px, sample->sizes->width_px);
    else PUT(writer, KEY_NULL("image_size"));
    if (count < 2) return;
    PUT(writer, KEY_ARRAY("images"));
    for (size_t i = 0; i < count; i++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("image", sample->images.items[i]));
        put_pair(writer, "image_size", sample->sizes[i].height_px, sample->sizes[i].width_px);
        PUT(writer, END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
void put_point_layout(vp_json_writer *writer, const struct point *point) {
    const vp_layout *layout = point->cuts ? &point->cuts->whole : NULL;
    const int64_t image_count = point->cuts && point->cuts->count > 1 ? point->cuts->count : 0;
    int32_t *tokens = image_count ? resize(NULL, (size_t)image_count, sizeof *tokens) : NULL;
    const struct field_ints each = {tokens, image_count};
    for (int64_t i = 0; i < image_count; i++) tokens[i] = point->cuts->each[i].feature_tokens;
    struct sizes sizes = {.tier = knob_text(point->knobs, KNOB_TIER),
        .target_vision_tokens = layout ? point->target_tokens : -1, .target_crops = layout ? point->target_crops : -1,
        .top_k = number_of_knob(point->knobs, KNOB_TOP_K),
        .num_active_blocks = number_of_knob(point->knobs, KNOB_BLOCKS),
        .theoretical_num_crops = layout ? layout->crops : -1, .theoretical_tiling = layout_tiling(layout),
        .theoretical_image_size = layout_canvas(layout),
        .theoretical_vision_tokens = layout ? layout->theoretical_tokens : -1,
        .actual_num_crops = layout ? layout->crops : -1, .actual_tiling = layout_tiling(layout),
        .actual_image_size = layout_canvas(layout), .actual_vision_tokens = layout ? layout->feature_tokens : -1,
        .num_images = image_count ? image_count : -1, .num_views = image_count ? layout->views : -1,
        .vision_tokens_of_images = each, .input_text_tokens = point->sample->tokens.count,
        .actual_text_tokens = point->sample->tokens.count, .total_sequence_length = -1};
    if (layout || !point->sample->images.count)
        sizes.total_sequence_length =
            !point->sample->tokens.no_bos + (layout ? layout->image_tokens : 0) + point->sample->tokens.count;
    sizes.activations_used = point->activations;
    sizes.chosen_config = point->chosen;
    sizes.overhead_ms = point->chosen ? point->overhead_ms : (double)NAN;
    sizes.kept_vision_tokens = point->pruned ? point->pruned->kept_tokens : 0;
    sizes.mean_sequence_length = pruned_rows(point);
    sizes.kv_cache_bytes = point->pruned ? (int64_t)point->pruned->cache_bytes : 0;
    sizes.kv_cache_bytes_unpruned = point->pruned ? (int64_t)point->pruned->full_cache_bytes : 0;
    fields_put(writer, &RESULT_SIZES, &sizes);
    free(tokens);
}
/* The usage of a server's first run; all -1 if there is none. */
static vp_chat_usage usage_of(const struct point *point) {
    const vp_chat_usage unknown = {-1, -1, -1, -1, -1};
    return point->run_count && point->runs[0].served ? point->runs[0].served->usage : unknown;
}
void put_served_layout(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent) {
    const vp_chat_usage usage = usage_of(point);
    const struct field_pair none = {-1, -1};
    const struct field_ints no_items = {NULL, 0};
    struct sizes sizes;
#define UNKNOWN_INT -1
#define UNKNOWN_TEXT NULL
#define UNKNOWN_NUMBER (double)NAN
#define UNKNOWN_PAIR none
#define UNKNOWN_INTS no_items
#define UNKNOWN(of, type, key, ...) (of)->key = UNKNOWN_##type;
    SIZES_ROWS(UNKNOWN, &sizes, FIELD_NULL)
    sizes.tier = sent->tier;
    sizes.chosen_config = sent->chosen_config;
    sizes.overhead_ms = sent->overhead_ms;
    sizes.target_vision_tokens = sent->target_vision_tokens;
    if (sent->sent_image) {
        sizes.actual_image_size.first = sent->sent_image->height_px;
        sizes.actual_image_size.second = sent->sent_image->width_px;
    }
    sizes.actual_vision_tokens = usage.image_tokens;
    sizes.input_text_tokens = sizes.actual_text_tokens = text_tokens_of(&usage);
    sizes.total_sequence_length = usage.prompt_tokens;
    fields_put(writer, &RESULT_SIZES, &sizes);
}
static void put_served_run(vp_json_writer *writer, const struct served *served) {
    struct served_result result = {.usage = served->usage, .model = served->model,
        .finish_reason = served->finish_reason, .pieces = (int64_t)served->piece_count, .attempts = served->attempts,
        .new_connection = served->is_new_connection, .streamed = served->is_streamed,
        .image_dropped = served->image_dropped, .sent_ms = served_ms(served->sent_ns),
        .headers_ms = served_ms(served->headers_ns), .first_output_ms = served_ms(served->first_output_ns),
        .server_timings = served->timings};
    PUT(writer, KEY_OBJECT(NULL));
    fields_put(writer, &SERVED_RESULT, &result);
    PUT(writer, END_OBJECT);
}
void put_served_point(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent) {
    const vp_chat_usage usage = usage_of(point);
    fields_put(writer, &SENT, sent);
    put_usage(writer, &usage);
    PUT(writer, KEY_ARRAY("itl"));
    for (int32_t i = 0; i < point->run_count; i++) {
        PUT(writer, KEY_ARRAY(NULL));
        put_run_gaps(writer, point->runs[i].served);
        PUT(writer, END_ARRAY);
    }
    int dropped = -1;
    for (int32_t i = 0; i < point->run_count; i++)
        if (point->runs[i].served->image_dropped > dropped) dropped = point->runs[i].served->image_dropped;
    PUT(writer, END_ARRAY);
    if (dropped >= 0) PUT(writer, KEY_BOOL("image_dropped", dropped));
    PUT(writer, KEY_ARRAY("served_runs"));
    for (int32_t i = 0; i < point->run_count; i++) put_served_run(writer, point->runs[i].served);
    PUT(writer, END_ARRAY);
}
static const struct pass_result *first_run(const struct point *point) {
    return point->run_count ? &point->runs[0] : NULL;
}
void put_point_tokens(vp_json_writer *writer, const struct point *point) {
    const struct pass_result *run = first_run(point);
    struct tokens tokens;
    tokens.output_tokens = !run ? -1 : run->served ? run->served->usage.completion_tokens : run->reply.token_count;
    tokens.content_tokens = run && !run->served ? run->reply.token_count - (run->reply.ended_by_eos != 0) : -1;
    tokens.ends_with_eos = run && (!run->served || run->served->finish_reason) ? run->reply.ended_by_eos != 0 : -1;
    fields_put(writer, &ANSWER_TOKENS, &tokens);
}

/* "energy_resolution_j" of the mean; each run's reading is off by at most one step at either end. */
static void put_resolution(vp_json_writer *writer, const struct point *point) {
    double sum = 0;
    for (int32_t run = 0; run < point->run_count; run++) sum += point->runs[run].energy_resolution_j;
    if (point->run_count && isfinite(sum)) put_double(writer, "energy_resolution_j", sum / point->run_count);
}
/* The mean of a metric over the runs; NaN if there are none. */
static double mean_of(const struct point *point, int metric) {
    return point->run_count ? metric_mean(point->runs, point->run_count, metric) : (double)NAN;
}
/* Returns 1 for a stage that most points lack, if this point lacks it. */
static int lacks_stage(const struct point *point, int stage) {
    return is_left_out(METRIC_STAGE + stage, mean_of(point, METRIC_STAGE + stage));
}
void put_point_times(vp_json_writer *writer, const struct point *point) {
    int32_t longest = 0;
    for (int metric = 0; metric < METRIC_STAGE; metric++)
        if (!is_left_out(metric, mean_of(point, metric))) PUT(writer, KEY(METRIC_KEYS[metric], mean_of(point, metric)));
    put_resolution(writer, point);
    PUT(writer, KEY_OBJECT("stages"));
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        if (!lacks_stage(point, i)) PUT(writer, KEY(vp_stage_name((vp_stage)i), mean_of(point, METRIC_STAGE + i)));
    PUT(writer, END_OBJECT, KEY_OBJECT("stage_detail")); /* means over the runs */
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (lacks_stage(point, i)) continue;
        PUT(writer, KEY_OBJECT(vp_stage_name((vp_stage)i)));
        for (int detail = DETAIL_WALL; detail < DETAIL_COUNT; detail++)
            PUT(writer, KEY(DETAIL_KEYS[detail], mean_of(point, stage_metric(i, detail))));
        PUT(writer, END_OBJECT);
    }
    for (int32_t run = 0; run < point->run_count && !point->is_served; run++)
        if (point->runs[run].reply.token_count - 1 > longest) longest = point->runs[run].reply.token_count - 1;
    PUT(writer, END_OBJECT, KEY_ARRAY("T_decode_per_step")); /* [position][run]; position 0 is decode step 1 */
    for (int32_t i = 0; i < longest; i++) {
        PUT(writer, KEY_ARRAY(NULL));
        for (int32_t run = 0; run < point->run_count; run++) {
            const vp_reply *reply = &point->runs[run].reply;
            if (i < reply->token_count - 1) vp_json_double(writer, (double)reply->step_ns[i] / 1e6);
        }
        PUT(writer, END_ARRAY);
    }
    PUT(writer, END_ARRAY, KEY_OBJECT("runs"));
    for (int metric = 0; metric < METRIC_STAGE + VP_STAGE_COUNT; metric++) {
        if (is_left_out(metric, point->run_count ? metric_of(&point->runs[0], metric) : (double)NAN)) continue;
        PUT(writer,
            KEY_ARRAY(metric < METRIC_STAGE ? METRIC_KEYS[metric] : vp_stage_name((vp_stage)(metric - METRIC_STAGE))));
        for (int32_t run = 0; run < point->run_count; run++)
            json_double_or_null(writer, metric_of(&point->runs[run], metric));
        PUT(writer, END_ARRAY);
    }
    PUT(writer, END_OBJECT);
}

void put_answer(vp_json_writer *writer, const char *key, const struct pass_result *run) {
    vp_json_key(writer, key);
    if (run) vp_json_string_bytes(writer, run->answer, run->answer_bytes); else vp_json_null(writer);
}
static void score_run(const struct point *point, int32_t run, struct scoring *scoring, vp_score_outcome *outcome) {
    struct parsed record = {{NULL, NULL, 0}, NULL, 0};
    vp_result result;
    memset(scoring, 0, sizeof *scoring);
    scoring_clear(scoring);
    *outcome = (vp_score_outcome){(double)NAN, NULL, 0, -1, NULL, 0};
    const char *answer = point->runs[run].answer;
    scoring->sample.prediction = scoring_own(scoring, copy_text(answer, strlen(answer)));
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
void score_point(const struct point *point, struct scoring *scoring, vp_score_outcome *outcome) {
    const int is_loaded = point->knobs && knobs_are_loaded(point->knobs);
    if (!point->run_count) {
        memset(scoring, 0, sizeof *scoring);
        *outcome = (vp_score_outcome){is_loaded ? 0 : (double)NAN, is_loaded ? NULL : "no answer", 0, -1, NULL, 0};
        return;
    }
    score_run(point, 0, scoring, outcome);
    double sum = outcome->is_unparsed ? 0 : outcome->score;
    for (int32_t i = 1; i < point->run_count && is_loaded; i++) { /* each request has its own answer */
        vp_score_outcome other;
        struct scoring own;
        score_run(point, i, &own, &other);
        sum += other.is_unparsed ? 0 : other.score;
        scoring_free(&own);
    }
    if (is_loaded && !outcome->is_unparsed) outcome->score = sum / point->run_count;
}
int is_truncated(const struct pass_result *run) {
    if (!run->served) return !run->reply.ended_by_eos;
    return run->served->finish_reason ? !strcmp(run->served->finish_reason, "length") : -1;
}
static struct field_bytes bytes_of(const struct pass_result *run) {
    struct field_bytes bytes = {NULL, 0};
    if (!run) return bytes;
    bytes.text = run->answer;
    bytes.bytes = run->answer_bytes;
    return bytes;
}
static struct field_ints token_ids(const struct point *point) {
    static const int32_t none[1];
    struct field_ints ids = {point->is_served ? NULL : none, 0};
    if (point->is_served || !point->run_count) return ids;
    ids.items = point->runs[0].reply.tokens;
    ids.count = point->runs[0].reply.token_count;
    return ids;
}
void put_point_answer(vp_json_writer *writer, const struct point *point, const vp_score_outcome *outcome) {
    const struct pass_result *run = first_run(point);
    struct answer answer = {.accuracy = outcome->is_unparsed ? 0 : outcome->score,
        .accuracy_reason = outcome->is_unparsed ? NULL : outcome->reason, .pred = bytes_of(run),
        .pred_cleaned = run ? outcome->cleaned : NULL, .unparsed = run ? outcome->is_unparsed : -1,
        .truncated = run && !point->ignore_eos ? is_truncated(run) : -1,
        .empty = run && outcome->cleaned ? !outcome->cleaned[0] : -1, .output_token_ids = token_ids(point),
        .answers_equal_over_runs = run ? answers_are_equal(point->runs, point->run_count) : -1,
        .prompt = point->sample->prompt};
    fields_put(writer, &ANSWER, &answer);
}

void put_telemetry(vp_json_writer *writer, const vp_telemetry *telemetry) {
    PUT(writer, KEY_OBJECT(NULL), KEY("sm_clock_mhz", telemetry->sm_clock_mhz),
        KEY("memory_clock_mhz", telemetry->memory_clock_mhz), KEY("power_w", telemetry->power_w),
        KEY("temperature_c", telemetry->temperature_c));
    if (telemetry->has_throttle_reasons) {
        PUT(writer, KEY_ARRAY("throttle_reasons"));
        for (int32_t bit = 0; bit < 64; bit++)
            if ((telemetry->throttle_reasons >> bit & 1) && vp_telemetry_throttle_name(bit))
                vp_json_string(writer, vp_telemetry_throttle_name(bit));
        vp_json_end_array(writer);
    } else put_null(writer, "throttle_reasons");
    PUT(writer, KEY("throttle_count", telemetry->throttle_count), END_OBJECT);
}
void put_metadata(vp_json_writer *writer, struct parsed *scratch, const struct sample *sample) {
    static const char *const always[] = {"question", "answers", "image_id", "id"};
    vp_json *json = &scratch->json;
    if (!sample->record || parse_json(scratch, sample->record, strlen(sample->record), NULL) != VP_OK) return;
    PUT(writer, KEY_OBJECT("metadata"));
    for (int i = 0; i < 4; i++) {
        uint32_t node = vp_json_get(json, 0, always[i]);
        vp_json_key(writer, always[i]);
        if (node != VP_JSON_NONE) json_node(writer, json, node);
        else if (i == 2 && sample->images.count == 1) { /* an image file is usually named after its id */
            const char *name = name_in_path(first_image(sample)), *dot = strrchr(name, '.');
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
