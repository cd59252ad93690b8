/* request.c: one timed pass, from pixels to text. */
#include "request/request.h"

#include "request/provenance.h"
#include "vlmprof_tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENERGY_WAIT_NS = 500000000 }; /* a counter that does not move for so long has this resolution, or idles */

void session_end_engine(struct session *session) {
    int32_t broken_gpu = session->engine && vp_engine_broken(session->engine) ? gpu_of(session->engine) : -1;
    if (session->engine) vp_engine_close(session->engine);
    session->engine = NULL;
    session->energy = (struct energy_counter){0, 0};
    if (broken_gpu >= 0) vp_device_reset(broken_gpu, NULL); /* opening the next engine reports what is still wrong */
}
void session_free(struct session *session) {
    free(session->pixels.data);
    free(session->masks.data);
    free(session->index.data);
    free(session->spans.data);
    free(session->ids.data);
    free(session->scratch.data);
    free(session->answer.data);
    session_end_engine(session);
}
int32_t sequence_of(const struct pass_input *input) {
    return !input->no_bos + (input->layout ? input->layout->image_tokens : 0) + input->text_count;
}
int64_t positions_of(const struct pass_input *input) { return (int64_t)sequence_of(input) + input->new_tokens - 1; }

void session_reserve(struct session *session, const struct pass_input *input) {
    const vp_geometry *geometry = &session->model->config.geometry;
    reserve(&session->ids, (size_t)sequence_of(input), sizeof(int32_t));
    reserve(&session->answer, (size_t)input->new_tokens * 64 + 1024, 1);
    if (!input->layout) return;
    size_t patches = (size_t)vp_geometry_patches_per_side(geometry) * (size_t)vp_geometry_patches_per_side(geometry);
    size_t values = (size_t)input->layout->views * (size_t)geometry->crop_px * (size_t)geometry->crop_px * 3;
    reserve(&session->pixels, values, sizeof(float));
    reserve(&session->masks, (size_t)input->layout->views * patches, sizeof(float));
    reserve(&session->index, (size_t)input->layout->views * (size_t)vp_geometry_tokens_per_crop(geometry),
            sizeof(int32_t));
    reserve(&session->spans, (size_t)sequence_of(input), sizeof(int32_t));
    size_t view_px = input->picture ? (size_t)session->model->other.processor.view_px : 0;
    reserve(&session->scratch,
            input->picture ? (size_t)input->layout->views * view_px * view_px * 3
                           : vp_preprocess_scratch_bytes(geometry, input->layout), 1);
}

/* The image's tokens see each other; the first of them stands before the first one of a feature. */
static void fill_picture_span(struct session *session, const int32_t *ids, int32_t image_tokens, int32_t count) {
    int32_t *ends = (int32_t *)session->spans.data, first = 0;
    while (first < count && ids[first] != session->model->other.image_token) first++;
    for (int32_t i = 0; i < count; i++) {
        const int inside = i + 1 >= first && i + 1 < first + image_tokens;
        ends[i] = inside ? first - 1 + image_tokens : i + 1;
    }
}
/* The tokens of a view see each other: they stand side by side. */
static void fill_spans(struct session *session, const int32_t *ids, int32_t image_tokens, int32_t count) {
    int32_t *ends = (int32_t *)session->spans.data;
    if (session->model->other.processor.kind == VP_PROCESSOR_MOLMO2) { /* its start, columns and ends do, too */
        fill_picture_span(session, ids, image_tokens, count);
        return;
    }
    for (int32_t i = count - 1; i >= 0; i--) {
        const int32_t token = session->model->other.image_token;
        ends[i] = i + 1 < count && ids[i] == token && ids[i + 1] == token ? ends[i + 1] : i + 1;
    }
}
/* The same for models other than Molmo: their sequence is whole, and no share of a patch is padding. */
static vp_result fill_other_inputs(struct session *session, const struct pass_input *input) {
    const vp_processor *processor = &session->model->other.processor;
    uint8_t *views = (uint8_t *)session->scratch.data;
    int32_t *ids = (int32_t *)session->ids.data;
    const size_t image_tokens = input->picture ? (size_t)input->picture->tokens : 0;
    size_t found = 0;
    vp_result result;
    memcpy(ids, input->text_ids, (size_t)sequence_of(input) * sizeof *ids);
    if (!input->picture) return VP_OK;
    result = vp_processor_views(processor, input->picture, input->image->rgb, views);
    if (result != VP_OK) return result;
    vp_processor_pixels(processor, input->picture, views, (float *)session->pixels.data);
    memset(session->masks.data, 0, session->masks.bytes);
    if (session->model->config.image_bidirectional)
        fill_spans(session, ids, input->layout->image_tokens, sequence_of(input));
    for (int32_t i = 0; i < sequence_of(input); i++) /* features go to the image's tokens in their order */
        if (ids[i] == session->model->other.image_token && found++ < image_tokens)
            ((int32_t *)session->index.data)[found - 1] = i;
    return found == image_tokens ? VP_OK : VP_ERR_MISMATCH;
}
/* Fills the session's buffers: pixels, index map, and the sequence of BOS, image tokens and text. */
static vp_result fill_inputs(struct session *session, const struct pass_input *input) {
    const vp_geometry *geometry = &session->model->config.geometry;
    int32_t *ids = (int32_t *)session->ids.data, image_tokens = input->layout ? input->layout->image_tokens : 0;
    vp_result result = VP_OK;
    if (!model_is_molmo(session->model)) return fill_other_inputs(session, input);
    if (!input->no_bos) ids[0] = session->model->ids.bos; /* only a prompt without image can lack it */
    memcpy(ids + !input->no_bos + image_tokens, input->text_ids, (size_t)input->text_count * sizeof *ids);
    if (!input->layout) return VP_OK;
    result = vp_preprocess(geometry, input->layout, input->image->rgb, (float *)session->pixels.data,
                           (float *)session->masks.data, session->scratch.data, session->scratch.bytes);
    if (result == VP_OK)
        result = vp_tokens_image_ids(geometry, input->layout, &session->model->ids, ids + 1, (size_t)image_tokens);
    if (result == VP_OK)
        result = vp_tokens_index_map(geometry, input->layout, 1, (int32_t *)session->index.data,
                                     session->index.bytes / sizeof(int32_t));
    return result;
}

/* The tokens of the run as text, in the session's buffer `answer`; run->answer_bytes becomes its length. */
static vp_result decode_answer(struct session *session, struct pass_result *run) {
    /* Molmo's tokenizers clean up, as the reference scores it; the others' do not */
    int flags = VP_DECODE_SKIP_SPECIAL | (model_is_molmo(session->model) ? VP_DECODE_CLEAN_UP : 0);
    const vp_tokenizer *tokenizer = session->model->tokenizer;
    size_t count = (size_t)run->token_count;
    vp_result result = vp_tokenizer_decode(tokenizer, run->tokens, count, flags, (char *)session->answer.data,
                                           session->answer.bytes, &run->answer_bytes);
    if (result != VP_ERR_CAPACITY) return result;
    reserve(&session->answer, run->answer_bytes + 1, 1);
    return vp_tokenizer_decode(tokenizer, run->tokens, count, flags, (char *)session->answer.data,
                               session->answer.bytes, &run->answer_bytes);
}

/* Waits in the tests' build only: a pause that belongs to no stage must show as unaccounted time. */
static void test_pause(void) {
#ifdef VLMPROF_TEST_HOOKS
    struct timespec pause = {0, 0};
    if (getenv("VLMPROF_TEST_PAUSE_NS")) pause.tv_nsec = strtol(getenv("VLMPROF_TEST_PAUSE_NS"), NULL, 10);
    nanosleep(&pause, NULL);
#endif
}
static void range_begin(const struct pass_input *input, const char *name, int32_t line) {
    if (input->ranges) vp_range_begin(input->ranges, name, "cli/request/request.c", line);
}
static void range_end(const struct pass_input *input) { if (input->ranges) vp_range_end(input->ranges); }

/* What the engine is asked for: the session's buffers, which fill_inputs has filled, and the knobs of the input. */
static vp_request engine_request(const struct session *session, const struct pass_input *input) {
    vp_request request;
    memset(&request, 0, sizeof request);
    request.input_ids = (const int32_t *)session->ids.data;
    request.input_count = sequence_of(input);
    if (input->layout) {
        request.pixels = (const float *)session->pixels.data;
        request.image_masks = (const float *)session->masks.data;
        request.image_input_idx = (const int32_t *)session->index.data;
        request.views = input->layout->views;
        request.grid_rows = input->layout->tiling.rows; /* read where a picture's views are its tokens */
        request.grid_cols = input->layout->tiling.cols;
        request.span_ends = (const int32_t *)session->spans.data;
    }
    request.top_k = input->top_k;
    request.active_blocks = input->blocks;
    request.active_block_count = input->block_count;
    request.max_new_tokens = input->new_tokens;
    request.ignore_eos = input->ignore_eos;
    request.eos_id = session->model->ids.eos;
    request.more_eos_ids = session->model->other.more_eos;
    request.more_eos_count = session->model->other.more_eos_count;
    request.dump = input->dump;
    request.timing = input->timing;
    request.launches = input->launches;
    request.launch_capacity = input->launch_capacity;
    request.spans = input->spans;
    request.span_capacity = input->span_capacity;
    return request;
}

/* Ids that have the image's tokens in the order of a prompt, in front: the spans of their sequence are as long. */
static void fill_counted_spans(struct session *session, const struct pass_input *input) {
    const int32_t views = input->layout->views, a_view = input->picture->tokens / views;
    int32_t *ids, at = 1;
    reserve(&session->ids, (size_t)sequence_of(input), sizeof(int32_t));
    reserve(&session->spans, (size_t)sequence_of(input), sizeof(int32_t));
    ids = (int32_t *)session->ids.data;
    for (int32_t i = 0; i < sequence_of(input); i++) ids[i] = -1;
    for (int32_t view = 0; view < views; view++, at++) /* something else stands between views */
        for (int32_t i = 0; i < a_view && at < sequence_of(input); i++) ids[at++] = session->model->other.image_token;
    fill_spans(session, ids, input->layout->image_tokens, sequence_of(input));
}
vp_result request_count(struct session *session, const struct pass_input *input, vp_stage_times *work,
                        vp_error *error) {
    vp_request request;
    if (input->layout && session->model->config.image_bidirectional) fill_counted_spans(session, input);
    request = engine_request(session, input);
    return vp_engine_count(session->engine, &request, work, error);
}

/* The clock around the parts of a pass that run outside the engine. */
struct part_stamps { int64_t preprocess_begin_ns, preprocess_end_ns, detok_begin_ns, detok_end_ns; };

/* Preprocessing, engine, text: each in a range of its own, which is closed whether the part fails or not. The first
 * part that fails is the last one. */
static vp_result run_parts(struct session *session, const struct pass_input *input, struct pass_result *run,
                           vp_reply *reply, struct part_stamps *stamps, vp_error *error) {
    vp_request request;
    vp_result result;
    stamps->preprocess_begin_ns = vp_clock_ns();
    range_begin(input, "preprocess", __LINE__);
    result = fill_inputs(session, input);
    range_end(input);
    stamps->preprocess_end_ns = vp_clock_ns();
    if (result != VP_OK) return vp_fail(error, result, -1, "preprocess", vp_result_text(result));
    test_pause();
    request = engine_request(session, input);
    range_begin(input, "engine", __LINE__);
    run->engine_begin_ns = input->launches ? vp_clock_ns() : 0;
    result = vp_engine_run(session->engine, &request, reply, error);
    range_end(input);
    if (result != VP_OK) return result;
    stamps->detok_begin_ns = vp_clock_ns();
    run->token_count = reply->token_count;
    run->launch_count = reply->launch_count;
    run->span_count = reply->span_count;
    range_begin(input, "detok", __LINE__);
    result = decode_answer(session, run);
    range_end(input);
    stamps->detok_end_ns = vp_clock_ns();
    return result == VP_OK ? VP_OK : vp_fail(error, result, -1, "detok", vp_result_text(result));
}
/* Waits for two steps of the device's counter, half a second at most: its resolution. */
static void find_energy_counter(struct session *session) {
    const struct timespec pause = {0, 200000};
    const int64_t start_ns = vp_clock_ns();
    const int32_t gpu = gpu_of(session->engine);
    double last = 0, now = 0;
    int64_t step_ns = 0;
    session->energy.update_ns = -1;
    if (gpu < 0 || vp_device_energy(gpu, &last, NULL) != VP_OK) return;
    session->energy.update_ns = ENERGY_WAIT_NS;
    while (vp_clock_ns() - start_ns < ENERGY_WAIT_NS) {
        nanosleep(&pause, NULL);
        if (vp_device_energy(gpu, &now, NULL) != VP_OK) return;
        if (!(now > last)) continue;
        session->energy.step_j = now - last;
        last = now;
        if (step_ns) {
            session->energy.update_ns = vp_clock_ns() - step_ns;
            return;
        }
        step_ns = vp_clock_ns();
    }
}
/* The counter, and when it was read; at_ns 0: not known. */
struct energy_reading { double joules; int64_t at_ns; };
static struct energy_reading read_energy(struct session *session) {
    struct energy_reading reading = {0, 0};
    if (!session->energy.update_ns) find_energy_counter(session);
    if (session->energy.update_ns > 0 && vp_device_energy(gpu_of(session->engine), &reading.joules, NULL) == VP_OK)
        reading.at_ns = vp_clock_ns();
    return reading;
}
/* What the device used between the two readings; the resolution is what it uses in a step of its counter. */
static void set_energy(const struct session *session, struct energy_reading before, struct energy_reading after,
                       struct pass_result *run) {
    double per_step;
    run->has_energy = before.at_ns && after.at_ns && after.joules >= before.joules;
    run->energy_j = run->energy_resolution_j = 0;
    if (!run->has_energy) return;
    run->energy_j = after.joules - before.joules;
    per_step = run->energy_j * (double)session->energy.update_ns / (double)(after.at_ns - before.at_ns + 1);
    run->energy_resolution_j = per_step > session->energy.step_j ? per_step : session->energy.step_j;
}
vp_result request_run(struct session *session, const struct pass_input *input, struct pass_result *run,
                      vp_error *error) {
    struct part_stamps stamps = {0, 0, 0, 0};
    struct energy_reading energy;
    vp_reply reply;
    vp_result result;
    int64_t begin_ns, total_ns;
    session_reserve(session, input);
    memset(&reply, 0, sizeof reply);
    reply.tokens = run->tokens;
    reply.step_ns = run->step_ns;
    energy = read_energy(session);
    vp_engine_settle(session->engine);
    begin_ns = vp_clock_ns();
    range_begin(input, "request", __LINE__);
    result = run_parts(session, input, run, &reply, &stamps, error);
    range_end(input);
    total_ns = vp_clock_ns() - begin_ns;
    if (result != VP_OK) return result;
    set_energy(session, energy, read_energy(session), run);
    run->total_ns = total_ns;
    run->ended_by_eos = reply.ended_by_eos;
    memset(&run->times, 0, sizeof run->times);
    free(run->answer);
    run->answer = copy_text((const char *)session->answer.data, run->answer_bytes);
    if (input->timing == VP_TIMING_OFF) return VP_OK; /* the total alone was measured */
    run->times = reply.times;
    run->times.wall_ns[VP_STAGE_PREPROCESS] = stamps.preprocess_end_ns - stamps.preprocess_begin_ns;
    run->times.wall_ns[VP_STAGE_DETOK] = stamps.detok_end_ns - stamps.detok_begin_ns;
    run->times.ran[VP_STAGE_PREPROCESS] = run->times.ran[VP_STAGE_DETOK] = 1;
    return VP_OK;
}
