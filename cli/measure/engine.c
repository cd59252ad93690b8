/* engine.c: one timed pass of the engine, from pixels to text. */
#include "measure/engine.h"


#include <math.h>
#include <time.h>

enum { ENERGY_WAIT_NS = 500000000 }; /* a counter that does not change for this long has this resolution, or idles */

int32_t gpu_of(const vp_engine *engine) {
    const char *device = vp_engine_device(engine);
    return strncmp(device, "cuda:", 5) ? -1 : (int32_t)strtol(device + 5, NULL, 10);
}
void session_end_engine(struct session *session) {
    int32_t broken_gpu = session->engine && vp_engine_broken(session->engine) ? gpu_of(session->engine) : -1;
    if (session->engine) vp_engine_close(session->engine);
    session->engine = NULL;
    session->energy = (struct energy_counter){0, 0};
    if (broken_gpu >= 0) vp_device_reset(broken_gpu, NULL); /* opening the next engine reports a remaining error */
}
void session_free(struct session *session) {
    struct input_buffers *inputs = &session->inputs;
    struct buffer *const buffers[] = {&inputs->pixels, &inputs->masks,   &inputs->index,  &inputs->spans,
                                      &inputs->ids,    &inputs->scratch, &session->answer};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) free(buffers[i]->data);
    session_end_engine(session);
}
int32_t sequence_of(const struct pass_input *input) {
    return !input->tokens.no_bos + (layout_of(input) ? layout_of(input)->image_tokens : 0) + input->tokens.count;
}
int64_t positions_of(const struct pass_input *input) {
    return (int64_t)sequence_of(input) + input->engine.max_new_tokens - 1;
}

/* Allocates the buffers of a pass, outside any timed part. */
static void session_reserve(struct session *session, const struct pass_input *input) {
    const struct model *model = session->model;
    const vp_layout *layout = layout_of(input);
    struct input_buffers *inputs = &session->inputs;
    const size_t side = (size_t)vp_geometry_patches_per_side(&model->config.geometry),
                 crop_px = (size_t)model->config.geometry.crop_px;
    reserve(&inputs->ids, (size_t)sequence_of(input), sizeof(int32_t));
    reserve(&session->answer, (size_t)input->engine.max_new_tokens * 64 + 1024, 1);
    if (!layout) return;
    reserve(&inputs->pixels, (size_t)layout->views * crop_px * crop_px * 3, sizeof(float));
    reserve(&inputs->masks, (size_t)layout->views * side * side, sizeof(float));
    reserve(&inputs->index, (size_t)layout->views * (size_t)vp_geometry_tokens_per_crop(&model->config.geometry),
            sizeof(int32_t));
    reserve(&inputs->spans, (size_t)sequence_of(input), sizeof(int32_t));
    for (int32_t i = 0; i < input->cuts->count; i++)
        reserve(&inputs->scratch, model->rules->scratch_bytes(model, &input->cuts->each[i]), 1);
}
static const struct cuts NO_CUTS;
/* Fills the session's buffers: pixels, index map, and the ids of the whole sequence. */
static vp_result fill_inputs(struct session *session, const struct pass_input *input) {
    return session->model->rules->fill(session->model, input->cuts ? input->cuts : &NO_CUTS, input->images,
                                       &input->tokens, sequence_of(input), &session->inputs);
}

/* The tokens of the run as text, in the session's buffer `answer`; run->answer_bytes becomes its length. */
static vp_result decode_answer(struct session *session, struct pass_result *run) {
    const int flags = VP_DECODE_SKIP_SPECIAL | session->model->rules->decode_flags;
    const vp_tokenizer *tokenizer = session->model->tokenizer;
    size_t count = (size_t)run->reply.token_count;
    vp_result result = vp_tokenizer_decode(tokenizer, run->reply.tokens, count, flags, (char *)session->answer.data,
                                           session->answer.bytes, &run->answer_bytes);
    if (result != VP_ERR_CAPACITY) return result;
    reserve(&session->answer, run->answer_bytes + 1, 1);
    return vp_tokenizer_decode(tokenizer, run->reply.tokens, count, flags, (char *)session->answer.data,
                               session->answer.bytes, &run->answer_bytes);
}

/* Waits only in the tests' build: a pause outside all stages must be reported as unaccounted time. */
static void test_pause(void) {
#ifdef VLMPROF_TEST_HOOKS
    struct timespec pause = {0, 0};
    if (getenv("VLMPROF_TEST_PAUSE_NS")) pause.tv_nsec = strtol(getenv("VLMPROF_TEST_PAUSE_NS"), NULL, 10);
    nanosleep(&pause, NULL);
#endif
}
static void range_begin(const struct pass_input *input, const char *name, int32_t line) {
    if (input->ranges) vp_range_begin(input->ranges, name, "cli/measure/engine.c", line);
}
static void range_end(const struct pass_input *input) { if (input->ranges) vp_range_end(input->ranges); }

/* The request to the engine, with the session's buffers, filled by fill_inputs. */
static vp_request engine_request(const struct session *session, const struct pass_input *input) {
    const struct input_buffers *inputs = &session->inputs;
    vp_request request = input->engine;
    request.input_ids = (const int32_t *)inputs->ids.data;
    request.input_count = sequence_of(input);
    if (layout_of(input)) {
        request.pixels = (const float *)inputs->pixels.data;
        request.image_masks = (const float *)inputs->masks.data;
        request.image_input_idx = (const int32_t *)inputs->index.data;
        request.views = layout_of(input)->views;
        request.images = input->cuts->views;
        request.image_count = input->cuts->count;
        request.span_ends = (const int32_t *)inputs->spans.data;
    }
    request.eos_id = session->model->ids.eos;
    request.more_eos_ids = session->model->more_eos;
    request.more_eos_count = session->model->more_eos_count;
    if (input->prune.how.method != VP_PRUNE_NONE) request.prune = &input->prune.how;
    return request;
}

const char *request_activations(const struct session *session, const struct pass_input *input) {
    vp_activations used = VP_ACTIVATIONS_AUTO;
    if (session->engine) (void)vp_engine_activations(session->engine, input->engine.activations, &used, NULL);
    return used == VP_ACTIVATIONS_AUTO ? NULL : vp_activations_name(used);
}
vp_result request_pruned(const struct session *session, const struct pass_input *input, vp_weights weights,
                         vp_pruned *pruned, vp_error *error) {
    vp_request request = engine_request(session, input);
    request.image_input_idx = NULL; /* it is not filled for this input */
    return vp_prune_request(&session->model->config, &request, weights, pruned, error);
}
vp_result request_count(struct session *session, const struct pass_input *input, vp_stage_times *work,
                        vp_error *error) {
    const struct model *model = session->model;
    vp_request request;
    if (layout_of(input) && model->config.image_bidirectional)
        model->rules->spans(model, layout_of(input), sequence_of(input),
                            reserve(&session->inputs.spans, (size_t)sequence_of(input), sizeof(int32_t)));
    request = engine_request(session, input);
    request.image_input_idx = NULL; /* it is not filled */
    return vp_engine_count(session->engine, &request, work, error);
}

/* The clock around the parts of a pass that run outside the engine. */
struct part_stamps { int64_t preprocess_begin_ns, preprocess_end_ns, detok_begin_ns, detok_end_ns; };

/* Runs preprocessing, engine and text, each in its own range, which is closed even if the part fails. Nothing runs
 * after a part that fails. */
static vp_result run_parts(struct session *session, const struct pass_input *input, struct pass_result *run,
                           struct part_stamps *stamps, vp_error *error) {
    vp_request request;
    vp_result result;
    stamps->preprocess_begin_ns = vp_clock_ns();
    range_begin(input, "preprocess", __LINE__);
    result = fill_inputs(session, input);
    range_end(input);
    stamps->preprocess_end_ns = vp_clock_ns();
    if (result != VP_OK) return vp_error_set(error, result, -1, "preprocess", vp_result_text(result));
    test_pause();
    request = engine_request(session, input);
    range_begin(input, "engine", __LINE__);
    run->engine_begin_ns = input->engine.launches ? vp_clock_ns() : 0;
    result = vp_engine_run(session->engine, &request, &run->reply, error);
    range_end(input);
    if (result != VP_OK) return result;
    stamps->detok_begin_ns = vp_clock_ns();
    range_begin(input, "detok", __LINE__);
    result = decode_answer(session, run);
    range_end(input);
    stamps->detok_end_ns = vp_clock_ns();
    return result == VP_OK ? VP_OK : vp_error_set(error, result, -1, "detok", vp_result_text(result));
}
/* Waits for two steps of the device's energy counter, at most half a second, to find its resolution. */
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
/* The energy counter and the time of reading; at_ns 0: not known. */
struct energy_reading { double joules; int64_t at_ns; };
static struct energy_reading read_energy(struct session *session) {
    struct energy_reading reading = {0, 0};
    if (!session->energy.update_ns) find_energy_counter(session);
    if (session->energy.update_ns > 0 && vp_device_energy(gpu_of(session->engine), &reading.joules, NULL) == VP_OK)
        reading.at_ns = vp_clock_ns();
    return reading;
}
/* Returns the energy that the device used between the two readings, NaN if not known. The resolution is the energy used
 * during one step of the counter. */
static double set_energy(const struct session *session, struct energy_reading before, struct energy_reading after,
                         struct pass_result *run) {
    const double joules = after.joules - before.joules;
    double per_step;
    run->energy_resolution_j = (double)NAN;
    if (!before.at_ns || !after.at_ns || !(joules >= 0)) return (double)NAN;
    per_step = joules * (double)session->energy.update_ns / (double)(after.at_ns - before.at_ns + 1);
    run->energy_resolution_j = per_step > session->energy.step_j ? per_step : session->energy.step_j;
    return joules;
}
#define KEEP(id, key, unit, meaning, value, ...) run->kept[KEPT_##id] = (value);
vp_result request_run(struct session *session, const struct pass_input *input, struct pass_result *run,
                      vp_error *error) {
    struct part_stamps stamps = {0, 0, 0, 0};
    struct energy_reading energy;
    vp_stage_times *times = &run->reply.times;
    vp_result result;
    int64_t begin_ns, total_ns;
    double joules;
    session_reserve(session, input);
    energy = read_energy(session);
    vp_engine_settle(session->engine);
    begin_ns = vp_clock_ns();
    range_begin(input, "request", __LINE__);
    result = run_parts(session, input, run, &stamps, error);
    range_end(input);
    total_ns = vp_clock_ns() - begin_ns;
    if (result != VP_OK) return result;
    joules = set_energy(session, energy, read_energy(session), run);
    run->total_ns = total_ns;
    free(run->answer);
    run->answer = copy_text((const char *)session->answer.data, run->answer_bytes);
    KEPT_ROWS(KEEP, 0)
    if (input->engine.timing == VP_TIMING_OFF) { /* only the total was measured */
        memset(times, 0, sizeof *times);
        return VP_OK;
    }
    times->wall_ns[VP_STAGE_PREPROCESS] = stamps.preprocess_end_ns - stamps.preprocess_begin_ns;
    times->wall_ns[VP_STAGE_DETOK] = stamps.detok_end_ns - stamps.detok_begin_ns;
    times->ran[VP_STAGE_PREPROCESS] = times->ran[VP_STAGE_DETOK] = 1;
    return VP_OK;
}
