/* profiler.c: times every operation of requests, and records them into one table and into a trace.
 * The engine's launch records, its stages and the host's ranges go into one table (vp_ops) and into a trace. Rows
 * nest: a step contains its ranges, the engine's range its stages, a stage its launches. The self time of a row is the
 * time outside its nested rows. The self times of a step's rows therefore add up to the step, and the self time of a
 * stage is its idle time. */
#include "profile/profiler.h"

#include "base/console.h"
#include "base/files.h"
#include "base/launcher.h"

#include <time.h>

enum { PROFILE_LAUNCHES_MOST = 1 << 20, PROFILE_ROWS_MOST = 1 << 17, TRACE_BYTES_MOST = 250000000 };

static const char *const STAGE_RANGES[VP_STAGE_COUNT] = {
#define STAGE_RANGE(name, text) "stage::" text,
    VP_STAGES(STAGE_RANGE)
#undef STAGE_RANGE
};

/* An upper bound for the launches of a request, at most a million. */
static int64_t launch_bound(const struct model *model, int32_t new_tokens) {
    int64_t blocks = (int64_t)model->config.block_count + 2;
    int64_t most = 64 * (blocks + model->config.vit_block_count + 16) + (int64_t)new_tokens * blocks * 48;
    return most < PROFILE_LAUNCHES_MOST ? most : (int64_t)PROFILE_LAUNCHES_MOST;
}
/* Measures the ceilings of the device. In the tests' build, a variable can set them: "BYTES_PER_S FLOPS_PER_S". */
static vp_result find_ceilings(vp_engine *engine, int is_again, vp_ceilings *out, vp_error *error) {
#ifdef VLMPROF_TEST_HOOKS
    const char *given = getenv("VLMPROF_TEST_CEILINGS");
    if (given && sscanf(given, "%lf %lf", &out->bytes_per_s, &out->flops_per_s) == 2) return VP_OK;
#endif
    return is_again ? vp_engine_ceilings_again(engine, out, error) : vp_engine_ceilings(engine, out, error);
}
int profiler_ceilings(struct profiler *profiler, int is_again) {
    vp_ceilings ceilings;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = find_ceilings(profiler->session->engine, is_again, &ceilings, &error);
    if (result != VP_OK) return complain_result(exit_code_of(result), "ceilings", result, &error);
    if (!is_again) profiler->first_ceilings = ceilings;
    profiler->ops.ceilings.bytes_per_s = ceilings.bytes_per_s;
    profiler->ops.ceilings.flops_per_s = ceilings.flops_per_s;
    return 0;
}
int profiler_ceilings_rose(const struct profiler *profiler) {
    return profiler->ops.ceilings.bytes_per_s > 1.05 * profiler->first_ceilings.bytes_per_s
           || profiler->ops.ceilings.flops_per_s > 1.05 * profiler->first_ceilings.flops_per_s;
}
int profiler_open(struct profiler *profiler, const struct profile_settings *settings, struct session *session,
                  int32_t new_tokens) {
    profiler->settings = settings;
    profiler->session = session;
    profiler->on_gpu = gpu_of(session->engine) >= 0;
    profiler->launch_capacity = launch_bound(session->model, new_tokens);
    profiler->launches = resize(NULL, (size_t)profiler->launch_capacity, sizeof *profiler->launches);
    int64_t row_count = profiler->launch_capacity + 64 < PROFILE_ROWS_MOST ? profiler->launch_capacity + 64
                                                                           : (int64_t)PROFILE_ROWS_MOST;
    profiler->rows = resize(NULL, (size_t)row_count, sizeof *profiler->rows);
    vp_ops_init(&profiler->ops, profiler->rows, row_count, settings->groups, settings->stack_frames);
    profiler->ops.clock = profiler->on_gpu ? VP_OPS_DEVICE : VP_OPS_HOST;
    profiler->ops.device_name = profiler->on_gpu ? "CUDA" : NULL;
    vp_ranges_init(&profiler->ranges, profiler->records, PROFILE_RANGES, 0, "main", vp_engine_range_hooks());
    return profiler_ceilings(profiler, 0);
}
/* Frees the trace. An open trace leaves no file. */
static void drop_trace(void *user) {
    struct profiler *profiler = user;
    unfinished_end(&profiler->unfinished);
    vp_torch_trace_free(profiler->trace);
    profiler->trace = NULL;
}
void profiler_free(struct profiler *profiler) {
    drop_trace(profiler);
    FREE_ALL(profiler->trace_path, profiler->launches, profiler->spans, profiler->rows, profiler->kept.launches,
             profiler->kept.step_ns);
    text_list_free(&profiler->notes);
}

/* ---- one request into the table */
/* Adds the frames around an operation to its stack, after the operation's own place, the innermost first. */
static void stack_of(vp_op *op, int stage, const char *part) {
    if (part) op->stack[op->stack_count++].name = part;
    op->stack[op->stack_count++].name = STAGE_RANGES[stage];
    op->stack[op->stack_count++].name = "engine";
    op->stack[op->stack_count++].name = "request";
}
static vp_result add_launch(struct profiler *profiler, const vp_launch *launch) {
    vp_op op = vp_op_default();
    op.name = launch->name;
    op.stage = vp_stage_name((vp_stage)launch->stage);
    op.part = vp_part_name((vp_part)launch->part);
    op.block = launch->block < 0 ? (int32_t)VP_OP_NONE : launch->block;
    op.step = launch->step > 0 ? launch->step : (int32_t)VP_OP_NONE;
    op.file = op.stack[0].file = launch->file;
    op.line = op.stack[0].line = launch->line;
    op.stack[0].name = launch->name;
    op.stack_count = 1;
    stack_of(&op, launch->stage, op.part);
    memcpy(op.shape, launch->shape, sizeof op.shape);
    op.dimensions = launch->dimensions;
    op.host_total_ns = op.host_self_ns = launch->host_ns;
    if (profiler->on_gpu) op.device_total_ns = op.device_self_ns = launch->ns;
    op.flops = (int64_t)launch->flops;
    op.bytes = (int64_t)launch->bytes;
    return vp_ops_add(&profiler->ops, &op);
}
/* Adds the stages of a pass as rows around its launches; *engine_ns becomes their time on the host. */
static vp_result add_stages(struct profiler *profiler, const struct pass_result *run, int64_t *engine_ns) {
    int64_t host_ns[VP_STAGE_COUNT] = {0}, device_ns[VP_STAGE_COUNT] = {0};
    vp_result result = VP_OK;
    for (int64_t i = 0; i < run->reply.launch_count && i < profiler->launch_capacity; i++) {
        host_ns[profiler->launches[i].stage] += profiler->launches[i].host_ns;
        device_ns[profiler->launches[i].stage] += profiler->launches[i].ns;
    }
    *engine_ns = 0;
    for (int i = 0; i < VP_STAGE_COUNT && result == VP_OK; i++) {
        vp_op op = vp_op_default();
        if (!run->reply.times.ran[i] || is_host_stage(i)) continue;
        profiler->stage_ns[i] += (double)run->reply.times.device_ns[i];
        profiler->op_ns[i] += (double)(is_copy_stage(i) ? run->reply.times.device_ns[i] : device_ns[i]);
        profiler->negative_idle += device_ns[i] > run->reply.times.device_ns[i];
        *engine_ns += run->reply.times.wall_ns[i];
        op.name = STAGE_RANGES[i];
        op.stage = vp_stage_name((vp_stage)i);
        stack_of(&op, i, NULL);
        op.host_total_ns = run->reply.times.wall_ns[i];
        op.host_self_ns = run->reply.times.wall_ns[i] > host_ns[i] ? run->reply.times.wall_ns[i] - host_ns[i] : 0;
        /* like torch: an annotation has no device time of its own */
        if (profiler->on_gpu) op.device_total_ns = device_ns[i];
        result = vp_ops_add(&profiler->ops, &op);
    }
    return result;
}
/* Adds a recorded step: its stages, launches, ranges and, around all of them, the step itself. */
static vp_result add_pass(struct profiler *profiler, const struct pass_result *run, int64_t step_ns) {
    vp_op op = vp_op_default();
    int64_t engine_ns = 0, within_ns = 0;
    vp_result result = add_stages(profiler, run, &engine_ns);
    for (int64_t i = 0; i < run->reply.launch_count && result == VP_OK; i++) {
        if (i < profiler->launch_capacity) result = add_launch(profiler, &profiler->launches[i]);
        else profiler->lost_launches++;
        if (result == VP_ERR_CAPACITY) result = VP_OK; /* the table counts these */
    }
    for (int64_t i = 0; i < profiler->ranges.count; i++) {
        if (!strcmp(profiler->records[i].name, "engine")) profiler->records[i].children_ns += engine_ns;
        if (!profiler->records[i].depth) within_ns += profiler->records[i].end_ns - profiler->records[i].begin_ns;
    }
    if (result == VP_OK) result = vp_ops_add_ranges(&profiler->ops, &profiler->ranges);
    op.name = "ProfilerStep*";
    op.host_total_ns = step_ns;
    op.host_self_ns = step_ns - within_ns;
    if (result == VP_OK) result = vp_ops_add(&profiler->ops, &op);
    profiler->total_ns += (double)step_ns;
    profiler->steps++;
    return result;
}

/* ---- traces */
/* The file of the trace that starts now, malloc'ed in *path; NULL if no trace is wanted or, with a note, if that file
 * is already written. */
static int trace_path_of(struct profiler *profiler, const char *worker, char **path) {
    const char *file = profiler->settings->trace, *folder = profiler->settings->trace_dir;
    char name[700], *traces;
    struct timespec now;
    *path = NULL;
    if (!file && !folder) return 0;
    if (file && !profiler->traces) *path = copy_text(file, strlen(file));
    else if (file)
        text_list_add(&profiler->notes,
                      "%s is already saved: the traces of later cycles are skipped; with --output_dir, each cycle has "
                      "its own file", file);
    if (file) return 0;
    traces = join_path(folder, "profiler_traces");
    timespec_get(&now, TIME_UTC);
    int code = make_folder(traces);
    if (!code && vp_trace_file_name(worker, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, name, sizeof name) != VP_OK)
        code = complain(EXIT_OUTPUT, "%s: cannot create a name for a trace file", traces);
    if (!code) *path = join_path(traces, name);
    free(traces);
    return code;
}
/* The exit code of a call that wrote to the trace. A full trace is not a failure; it is reported at the end. */
static int trace_failed(const struct profiler *profiler, vp_result result, const vp_error *error) {
    if (result == VP_OK || result == VP_ERR_CAPACITY) return 0;
    return complain_result(exit_code_of(result) == EXIT_USAGE ? EXIT_WORK : exit_code_of(result), profiler->trace_path,
                           result, error);
}
/* Writes the engine's memory at the start of a trace, as one change of memory per block. */
static int trace_memory_blocks(struct profiler *profiler, int64_t at_ns) {
    uint64_t sums[2] = {0, 0};
    vp_memory_block block;
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    for (int32_t i = 0; vp_engine_memory(profiler->session->engine, i, &block) && !code; i++) {
        int on_device = profiler->on_gpu && block.on_device;
        sums[on_device] += block.bytes;
        code = trace_failed(profiler,
                            vp_trace_memory(profiler->trace, at_ns, on_device ? 0 : -1, (uint64_t)i + 1,
                                            (int64_t)block.bytes, sums[on_device], sums[on_device], &error),
                            &error);
    }
    return code;
}
/* Allocates the spans of the CPU's threads, 8 per launch; more are dropped. A GPU has none. */
static void reserve_spans(struct profiler *profiler) {
    if (profiler->on_gpu || profiler->spans) return;
    profiler->span_capacity = profiler->launch_capacity * 8;
    profiler->spans = resize(NULL, (size_t)profiler->span_capacity, sizeof *profiler->spans);
}
static int open_trace(struct profiler *profiler, const char *path) {
    vp_torch_trace_options settings = vp_torch_trace_options_default();
    vp_trace_device device;
    vp_device_info gpu;
    struct launched rank;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_trace_metadata metadata[] = {{"vlmprof_version", VLMPROF_VERSION},
                                          {"model", profiler->session->model->name},
                                          {"device", vp_engine_device(profiler->session->engine)},
                                          {"launch_timer", vp_engine_launch_timer(profiler->session->engine)}};
    free(profiler->trace_path);
    profiler->trace_path = copy_text(path, strlen(path));
    settings.path = path;
    settings.max_bytes = TRACE_BYTES_MOST;
    settings.record_shapes = profiler->settings->record_shapes;
    settings.with_stack = profiler->settings->with_stack;
    settings.profile_memory = profiler->settings->profile_memory;
    if (launched_read(environment, NULL, &rank, NULL) == VP_OK) {
        settings.rank = rank.rank;
        settings.world_size = rank.world_size;
    }
    settings.metadata = metadata;
    settings.metadata_count = 4;
    if (profiler->on_gpu && vp_device_describe(gpu_of(profiler->session->engine), &gpu, &error) == VP_OK) {
        device = vp_trace_device_of(0, gpu.name, gpu.memory_bytes, gpu.compute_major, gpu.compute_minor,
                                    gpu.multiprocessor_count);
        settings.devices = &device;
        settings.device_count = 1;
        settings.emulated = strstr(gpu.name, "emulated") != NULL;
    }
    reserve_spans(profiler);
    vp_result result = vp_torch_trace_open(&settings, &profiler->trace, &error);
    if (result != VP_OK)
        return complain_result(result == VP_ERR_RANGE ? EXIT_USAGE : exit_code_of(result), path, result, &error);
    unfinished_begin(&profiler->unfinished, drop_trace, profiler);
    return profiler->settings->profile_memory ? trace_memory_blocks(profiler, vp_clock_ns()) : 0;
}
int profiler_trace_begin(struct profiler *profiler, const char *worker) {
    char *path = NULL;
    int code = trace_path_of(profiler, worker, &path);
    if (!code && path) code = open_trace(profiler, path);
    free(path);
    return code;
}
static int64_t recorded(int64_t count, int64_t capacity) { return count < capacity ? count : capacity; }
static int32_t steps_of_reply(const vp_reply *reply) { return reply->token_count > 1 ? reply->token_count - 1 : 0; }
/* Writes the latest recorded step into the open trace: its ranges, launches and spans. */
static int trace_pass(struct profiler *profiler, const struct pass_result *run, int64_t step, int64_t begin_ns,
                      int64_t end_ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_times times = run->reply.times;
    const vp_trace_run traced = {
        .begin_ns = run->engine_begin_ns, .device = profiler->on_gpu ? 0 : -1, .launches = profiler->launches,
        .launch_count = recorded(run->reply.launch_count, profiler->launch_capacity), .spans = profiler->spans,
        .span_count = recorded(run->reply.span_count, profiler->span_capacity), .times = &times,
        .step_ns = run->reply.step_ns, .step_count = steps_of_reply(&run->reply)};
    times.ran[VP_STAGE_PREPROCESS] = times.ran[VP_STAGE_DETOK] = 0; /* they are already ranges */
    int code = trace_failed(profiler, vp_trace_step_begin(profiler->trace, step, begin_ns, &error), &error);
    if (!code) code = trace_failed(profiler, vp_trace_ranges(profiler->trace, &profiler->ranges, &error), &error);
    if (!code) code = trace_failed(profiler, vp_trace_launches(profiler->trace, &traced, &error), &error);
    if (code) return code;
    vp_result result = vp_trace_step_end(profiler->trace, end_ns, &error);
    return result == VP_ERR_STATE ? 0 : trace_failed(profiler, result, &error); /* the start of the step did not fit */
}
int profiler_trace_end(struct profiler *profiler) {
    vp_torch_trace_info info;
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    if (!profiler->trace) return 0;
    vp_result result = vp_torch_trace_close(profiler->trace, &info, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), profiler->trace_path, result, &error);
    else if (info.truncated)
        text_list_add(&profiler->notes, "%s: recording stopped at %lld bytes: %lld steps and %lld launches are missing",
                      profiler->trace_path, (long long)TRACE_BYTES_MOST, (long long)info.dropped_steps,
                      (long long)info.dropped_launches);
    if (result == VP_OK)
        text_list_add(&profiler->notes, "trace written: %s (%lld events, %llu bytes)", profiler->trace_path,
                      (long long)info.events, (unsigned long long)info.bytes);
    profiler->traces += result == VP_OK;
    drop_trace(profiler);
    return code;
}

/* ---- a step */
void profiler_step_begin(struct profiler *profiler) {
    vp_ranges_clear(&profiler->ranges);
    profiler->step_begin_ns = vp_clock_ns();
}
/* Makes space for all launches of a request like the latest one. */
static void reserve_launches(struct profiler *profiler, int64_t launch_count) {
    if (launch_count <= profiler->launch_capacity) return;
    profiler->launch_capacity = launch_count;
    profiler->launches = resize(profiler->launches, (size_t)profiler->launch_capacity, sizeof *profiler->launches);
}
/* Copies the latest recorded request. */
static void keep_request(struct profiler *profiler, const struct pass_result *run, int64_t end_ns) {
    struct kept_request *kept = &profiler->kept;
    const int64_t launches = recorded(run->reply.launch_count, profiler->launch_capacity),
                  ranges = profiler->ranges.count, steps = steps_of_reply(&run->reply);
    kept->launches = resize(kept->launches, (size_t)launches, sizeof *kept->launches);
    memcpy(kept->launches, profiler->launches, (size_t)launches * sizeof *kept->launches);
    memcpy(kept->ranges, profiler->records, (size_t)ranges * sizeof *kept->ranges);
    kept->step_ns = resize(kept->step_ns, (size_t)steps, sizeof *kept->step_ns);
    memcpy(kept->step_ns, run->reply.step_ns, (size_t)steps * sizeof *kept->step_ns);
    kept->times = run->reply.times;
    kept->drawn = (struct flame_request){
        .begin_ns = profiler->step_begin_ns, .total_ns = end_ns - profiler->step_begin_ns,
        .engine_begin_ns = run->engine_begin_ns, .ranges = kept->ranges, .range_count = ranges,
        .launches = kept->launches, .launch_count = launches, .lost_launches = run->reply.launch_count - launches,
        .times = &kept->times, .step_ns = kept->step_ns, .step_count = steps};
}
int profiler_step_run(struct profiler *profiler, const struct pass_input *asked, struct pass_result *run, int64_t step,
                      int record) {
    vp_error error = {VP_OK, -1, "", ""};
    struct pass_input input = *asked;
    vp_result result;
    input.engine.timing = VP_TIMING_KERNEL;
    input.engine.launches = profiler->launches;
    input.engine.launch_capacity = profiler->launch_capacity;
    if (profiler->trace) {
        input.engine.spans = profiler->spans;
        input.engine.span_capacity = profiler->span_capacity;
    }
    input.ranges = &profiler->ranges;
    if ((result = request_run(profiler->session, &input, run, &error)) != VP_OK)
        return complain_result(exit_code_of(result), NULL, result, &error);
    int64_t end_ns = vp_clock_ns();
    if (!record) {
        reserve_launches(profiler, run->reply.launch_count);
        return 0;
    }
    if (profiler->keeps_request) keep_request(profiler, run, end_ns);
    if ((result = add_pass(profiler, run, end_ns - profiler->step_begin_ns)) != VP_OK)
        return complain(EXIT_WORK, "the table of operations: %s", vp_result_text(result));
    return profiler->trace ? trace_pass(profiler, run, step, profiler->step_begin_ns, end_ns) : 0;
}
