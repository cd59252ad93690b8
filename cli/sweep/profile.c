/* profile.c: a request operation by operation: tables, schedules, traces, and what that costs.
 * The engine's launch records, its stages and the host's ranges go into one table (vp_ops) and into a trace. Rows
 * nest: a step is its ranges, the engine's range is its stages, a stage is its launches; self is what is not within.
 * So the self times of a step's rows add up to it, and the self time of a stage is its idle time. Times of this mode
 * cost time themselves (--cost): they never enter the statistics of stages. */
#include "sweep/profile.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "request/model.h"
#include "request/provenance.h"
#include "request/record.h"
#include "tile/image.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"
#include "vlmprof_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PROFILE_RANGES = 64, PROFILE_LAUNCHES_MOST = 1 << 20, PROFILE_ROWS_MOST = 1 << 17, COST_MODES = 4 };

static const char *const STAGE_RANGES[VP_STAGE_COUNT] = {
#define STAGE_RANGE(name, text) "stage::" text,
    VP_STAGES(STAGE_RANGE)
#undef STAGE_RANGE
};

static const struct { const char *word; uint32_t flag;
} GROUPS[] = {{"none", 0},
              {"shape", VP_OPS_BY_SHAPE},
              {"stage", VP_OPS_BY_STAGE},
              {"part", VP_OPS_BY_PART},
              {"block", VP_OPS_BY_BLOCK},
              {"step", VP_OPS_BY_STEP},
              {"place", VP_OPS_BY_PLACE}};

struct profiler {
    const struct options *options;
    struct session *session;
    int on_gpu;
    vp_launch *launches; int64_t launch_capacity;
    vp_span *spans; int64_t span_capacity;              /* CPU, while a trace is written */
    vp_range records[PROFILE_RANGES]; vp_ranges ranges;
    vp_op *rows; vp_ops ops;
    int64_t steps, lost_launches;                       /* recorded; launches that found no room */
    double stage_ns[VP_STAGE_COUNT], op_ns[VP_STAGE_COUNT], total_ns; /* on the device, sums over the recorded steps */
    int64_t negative_idle;                              /* stages whose launches took longer than they did */
    vp_trace *trace; char *trace_path;                  /* that is being written */
    struct text_list notes;                                    /* for stderr, when all is done */
    int64_t traces;                                     /* that were closed */
};

static uint32_t groups_of(const struct options *options) { /* --group_by, checked before */
    const struct option_value *value = opt(options, "group_by");
    uint32_t flags = is_given(options, "group_by_input_shape") ? (uint32_t)VP_OPS_BY_SHAPE : 0;
    for (size_t i = 0; i < value->count; i++)
        for (size_t k = 0; k < sizeof GROUPS / sizeof *GROUPS; k++)
            if (!strcmp(value->items[i], GROUPS[k].word)) flags |= GROUPS[k].flag;
    return flags;
}
/* more than a request makes, where that is below a million */
static int64_t launch_bound(const struct model *model, int32_t new_tokens) {
    int64_t blocks = (int64_t)model->config.block_count + 2;
    int64_t most = 64 * (blocks + model->config.vit_block_count + 16) + (int64_t)new_tokens * blocks * 48;
    return most < PROFILE_LAUNCHES_MOST ? most : (int64_t)PROFILE_LAUNCHES_MOST;
}
static int profiler_open(struct profiler *profiler, const struct options *options, struct session *session,
                         int32_t new_tokens, uint32_t group_by, int32_t stack_n) {
    int64_t row_count;
    vp_ceilings ceilings;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    memset(profiler, 0, sizeof *profiler);
    profiler->options = options;
    profiler->session = session;
    profiler->on_gpu = gpu_of(session->engine) >= 0;
    profiler->launch_capacity = launch_bound(session->model, new_tokens);
    profiler->launches = resize(NULL, (size_t)profiler->launch_capacity, sizeof *profiler->launches);
    row_count = profiler->launch_capacity + 64 < PROFILE_ROWS_MOST ? profiler->launch_capacity + 64
                                                                   : (int64_t)PROFILE_ROWS_MOST;
    profiler->rows = resize(NULL, (size_t)row_count, sizeof *profiler->rows);
    vp_ops_init(&profiler->ops, profiler->rows, row_count, group_by, stack_n);
    profiler->ops.clock = profiler->on_gpu ? VP_OPS_DEVICE : VP_OPS_HOST;
    profiler->ops.device_name = profiler->on_gpu ? "CUDA" : NULL;
    vp_ranges_init(&profiler->ranges, profiler->records, PROFILE_RANGES, 0, "main", vp_engine_range_hooks());
    if ((result = vp_engine_ceilings(session->engine, &ceilings, &error)) != VP_OK)
        return complain_result(exit_code_of(result), "ceilings", result, &error);
    profiler->ops.ceilings.bytes_per_s = ceilings.bytes_per_s;
    profiler->ops.ceilings.flops_per_s = ceilings.flops_per_s;
    return 0;
}
static void profiler_free(struct profiler *profiler) {
    vp_trace_free(profiler->trace);
    free(profiler->trace_path);
    free(profiler->launches);
    free(profiler->spans);
    free(profiler->rows);
    text_list_free(&profiler->notes);
}

/* ---- one request into the table */
static void stack_of(vp_op *op, int stage, const char *part) { /* innermost first, behind the operation's own place */
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
    op.file = op.stack[0].file = "vlmprof_kernels.cu";
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
/* The stages of a pass as rows around its launches; *engine_ns gets their time on the host. */
static vp_result add_stages(struct profiler *profiler, const struct pass_result *run, int64_t *engine_ns) {
    int64_t host_ns[VP_STAGE_COUNT] = {0}, device_ns[VP_STAGE_COUNT] = {0};
    vp_result result = VP_OK;
    for (int64_t i = 0; i < run->launch_count && i < profiler->launch_capacity; i++) {
        host_ns[profiler->launches[i].stage] += profiler->launches[i].host_ns;
        device_ns[profiler->launches[i].stage] += profiler->launches[i].ns;
    }
    *engine_ns = 0;
    for (int i = 0; i < VP_STAGE_COUNT && result == VP_OK; i++) {
        vp_op op = vp_op_default();
        if (!run->times.ran[i] || is_host_stage(i)) continue;
        profiler->stage_ns[i] += (double)run->times.device_ns[i];
        profiler->op_ns[i] += (double)device_ns[i];
        profiler->negative_idle += device_ns[i] > run->times.device_ns[i];
        *engine_ns += run->times.wall_ns[i];
        op.name = STAGE_RANGES[i];
        op.stage = vp_stage_name((vp_stage)i);
        stack_of(&op, i, NULL);
        op.host_total_ns = run->times.wall_ns[i];
        op.host_self_ns = run->times.wall_ns[i] > host_ns[i] ? run->times.wall_ns[i] - host_ns[i] : 0;
        /* as torch: an annotation has no device time of its own */
        if (profiler->on_gpu) op.device_total_ns = device_ns[i];
        result = vp_ops_add(&profiler->ops, &op);
    }
    return result;
}
static vp_result add_pass(struct profiler *profiler, const struct pass_result *run, int64_t step_ns) {
    vp_op op = vp_op_default();
    int64_t engine_ns = 0, within_ns = 0;
    vp_result result = add_stages(profiler, run, &engine_ns);
    for (int64_t i = 0; i < run->launch_count && result == VP_OK; i++) {
        if (i < profiler->launch_capacity) result = add_launch(profiler, &profiler->launches[i]);
        else profiler->lost_launches++;
        if (result == VP_ERR_CAPACITY) result = VP_OK; /* counted by the table */
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
/* The file of the cycle that begins: of a run (worker NULL) --trace FILE or --chrome_trace for the first one, else
 * DIR/profiler_traces/<worker>.<ns>.pt.trace.json. *path: NULL where none is wanted, and with a notice where a file of
 * that name was written already. 0 or an exit code. */
static int trace_path_of(struct profiler *profiler, const char *worker, char **path) {
    const struct options *options = profiler->options;
    int is_run = worker == NULL;
    const char *file = is_run ? text_of(options, "trace") : NULL, *folder = text_of(options, "output_dir");
    char name[700], *traces;
    struct timespec now;
    int code;
    *path = NULL;
    if ((!file && !folder) || (!is_run && !is_given(options, "trace"))) return 0;
    if (file || (is_run && is_given(options, "chrome_trace"))) {
        *path = file ? copy_text(file, strlen(file)) : join_path(folder, VP_TRACE_NAME);
        if (!profiler->traces) return file ? 0 : make_folder(folder);
        text_list_add(
            &profiler->notes,
            "%s is saved already: the traces of later cycles are left out; --output_dir alone gives each cycle its "
            "own file",
            *path);
        free(*path);
        *path = NULL;
        return 0;
    }
    traces = join_path(folder, "profiler_traces");
    timespec_get(&now, TIME_UTC);
    code = make_folder(traces);
    if (!code && vp_trace_file_name(worker, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, name, sizeof name) != VP_OK)
        code = complain(EXIT_OUTPUT, "%s: no name for a trace can be made", traces);
    if (!code) *path = join_path(traces, name);
    free(traces);
    return code;
}
static int trace_failed(const struct profiler *profiler, vp_result result, const vp_error *error) {
    if (result == VP_OK || result == VP_ERR_CAPACITY) return 0; /* full: told when it is closed */
    return complain_result(exit_code_of(result) == EXIT_USAGE ? EXIT_WORK : exit_code_of(result), profiler->trace_path,
                           result, error);
}
/* What the engine holds stands at the start of a trace as one change of memory for each block. */
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
static int trace_begin(struct profiler *profiler, const char *path) {
    vp_trace_options settings = vp_trace_options_default();
    vp_trace_device device;
    vp_device_info gpu;
    vp_rank rank;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_trace_metadata metadata[] = {{"vlmprof_version", VLMPROF_VERSION},
                                          {"model", profiler->session->model->name},
                                          {"device", vp_engine_device(profiler->session->engine)}};
    vp_result result;
    free(profiler->trace_path);
    profiler->trace_path = copy_text(path, strlen(path));
    settings.path = path;
    settings.max_bytes = (uint64_t)number_of(profiler->options, "trace_max_bytes");
    settings.record_shapes = is_given(profiler->options, "record_shapes");
    settings.with_stack = is_given(profiler->options, "with_stack");
    settings.profile_memory = is_given(profiler->options, "profile_memory");
    if (vp_rank_from_environment(environment, NULL, &rank, NULL) == VP_OK) {
        settings.rank = rank.rank;
        settings.world_size = rank.world_size;
    }
    settings.metadata = metadata;
    settings.metadata_count = 3;
    if (profiler->on_gpu && vp_device_describe(gpu_of(profiler->session->engine), &gpu, &error) == VP_OK) {
        device = vp_trace_device_of(0, gpu.name, gpu.memory_bytes, gpu.compute_major, gpu.compute_minor,
                                    gpu.multiprocessor_count);
        settings.devices = &device;
        settings.device_count = 1;
        settings.emulated = strstr(gpu.name, "emulated") != NULL;
    }
    if (!profiler->on_gpu && !profiler->spans) { /* 8 threads of each launch: what is more is left out */
        profiler->span_capacity = profiler->launch_capacity * 8;
        profiler->spans = resize(NULL, (size_t)profiler->span_capacity, sizeof *profiler->spans);
    }
    result = vp_trace_open(&settings, &profiler->trace, &error);
    if (result != VP_OK)
        return complain_result(result == VP_ERR_RANGE ? EXIT_USAGE : exit_code_of(result), path, result, &error);
    return is_given(profiler->options, "profile_memory") ? trace_memory_blocks(profiler, vp_clock_ns()) : 0;
}
static int trace_pass(struct profiler *profiler, const struct pass_result *run, int64_t step, int64_t begin_ns,
                      int64_t end_ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_times times = run->times;
    vp_trace_run traced;
    vp_result result;
    int code;
    memset(&traced, 0, sizeof traced);
    times.ran[VP_STAGE_PREPROCESS] = times.ran[VP_STAGE_DETOK] = 0; /* they are ranges */
    traced.begin_ns = run->engine_begin_ns;
    traced.device = profiler->on_gpu ? 0 : -1;
    traced.launches = profiler->launches;
    traced.launch_count = run->launch_count < profiler->launch_capacity ? run->launch_count : profiler->launch_capacity;
    traced.spans = profiler->spans;
    traced.span_count = run->span_count < profiler->span_capacity ? run->span_count : profiler->span_capacity;
    traced.times = &times;
    traced.step_ns = run->step_ns;
    traced.step_count = run->token_count > 1 ? run->token_count - 1 : 0;
    if ((code = trace_failed(profiler, vp_trace_step_begin(profiler->trace, step, begin_ns, &error), &error)) != 0)
        return code;
    if ((code = trace_failed(profiler, vp_trace_ranges(profiler->trace, &profiler->ranges, &error), &error)) != 0)
        return code;
    if ((code = trace_failed(profiler, vp_trace_launches(profiler->trace, &traced, &error), &error)) != 0) return code;
    result = vp_trace_step_end(profiler->trace, end_ns, &error);
    return result == VP_ERR_STATE ? 0 : trace_failed(profiler, result, &error); /* the step's begin found no room */
}
static int trace_end(struct profiler *profiler) {
    vp_trace_info info;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    int code = 0;
    if (!profiler->trace) return 0;
    result = vp_trace_close(profiler->trace, &info, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), profiler->trace_path, result, &error);
    else if (info.truncated)
        text_list_add(&profiler->notes,
                      "%s: recording stopped at --trace_max_bytes %lld: %lld steps and %lld launches are left out",
                      profiler->trace_path, (long long)number_of(profiler->options, "trace_max_bytes"),
                      (long long)info.dropped_steps, (long long)info.dropped_launches);
    if (result == VP_OK)
        text_list_add(&profiler->notes, "trace written: %s (%lld events, %llu bytes)", profiler->trace_path,
                      (long long)info.events, (unsigned long long)info.bytes);
    profiler->traces += result == VP_OK;
    vp_trace_free(profiler->trace);
    profiler->trace = NULL;
    return code;
}

/* ---- one pass of the schedule's steps */
/* Of a run: the image is decoded and the prompt tokenized again, within the step. Else NULL. */
struct profile_source { struct sample *sample; vp_image *image; };
static int prepare_pass(struct profiler *profiler, const struct profile_source *from, struct pass_input *input) {
    char reason[LINE_BYTES];
    int code = 0;
    if (!from) return 0;
    if (input->layout) {
        vp_range_payload payload;
        memset(&payload, 0, sizeof payload);
        vp_image_free(from->image);
        from->image->rgb = NULL;
        VP_RANGE(&profiler->ranges, "load image");
        if ((code = load_image(from->sample->image_path, from->image, reason, sizeof reason)) != 0)
            complain(code, "%s", reason);
        else if (from->image->width_px != input->layout->width_px || from->image->height_px != input->layout->height_px)
            code = complain(EXIT_INPUT, "%s: the image has changed", from->sample->image_path);
        payload.memory_bytes = payload.bytes = (int64_t)input->layout->width_px * input->layout->height_px * 3;
        vp_range_set(&profiler->ranges, &payload);
        vp_range_end(&profiler->ranges);
    }
    if (code) return code;
    VP_RANGE(&profiler->ranges, "tokenize");
    free(from->sample->text_ids);
    from->sample->text_ids = NULL;
    code = tokenize_prompt(profiler->session->model, from->sample);
    input->text_ids = from->sample->text_ids;
    vp_range_end(&profiler->ranges);
    return code;
}
/* One request with every launch timed. record: into the table and, where one is open, into the trace; else it only
 * warms up. */
static int profile_pass(struct profiler *profiler, struct pass_input *base, const struct profile_source *from,
                        struct pass_result *run, int64_t step, int record) {
    vp_error error = {VP_OK, -1, "", ""};
    struct pass_input input = *base;
    int64_t begin_ns, end_ns;
    vp_result result;
    int code;
    vp_ranges_clear(&profiler->ranges);
    input.timing = VP_TIMING_KERNEL;
    input.launches = profiler->launches;
    input.launch_capacity = profiler->launch_capacity;
    if (profiler->trace) {
        input.spans = profiler->spans;
        input.span_capacity = profiler->span_capacity;
    }
    input.ranges = &profiler->ranges;
    begin_ns = vp_clock_ns();
    code = prepare_pass(profiler, from, &input);
    base->text_ids = input.text_ids;
    if (code) return code;
    if ((result = request_run(profiler->session, &input, run, &error)) != VP_OK)
        return complain_result(exit_code_of(result), NULL, result, &error);
    end_ns = vp_clock_ns();
    if (!record) {
        if (run->launch_count <= profiler->launch_capacity) return 0;
        profiler->launch_capacity = run->launch_count;
        profiler->launches = resize(profiler->launches, (size_t)profiler->launch_capacity, sizeof *profiler->launches);
        return 0;
    }
    if ((result = add_pass(profiler, run, end_ns - begin_ns)) != VP_OK)
        return complain(EXIT_WORK, "the table of operations: %s", vp_result_text(result));
    return profiler->trace ? trace_pass(profiler, run, step, begin_ns, end_ns) : 0;
}

/* ---- run --profile */
static vp_schedule schedule_of(const struct options *options) {
    vp_schedule schedule = vp_schedule_default();
    schedule.skip_first = number_of(options, "skip_first");
    schedule.wait = number_of(options, "wait");
    schedule.warmup = number_of(options, "warmup");
    schedule.active = number_of(options, "active");
    schedule.repeat = number_of(options, "repeat");
    schedule.every_n_steps = number_of(options, "schedule_every_n_steps");
    return schedule;
}
/* How many requests: --num_runs, or as many as the schedule's cycles need. 0 or an exit code. */
static int plan_steps(const struct options *options, vp_schedule *schedule, int64_t *steps) {
    vp_error error = {VP_OK, -1, "", ""};
    int no_warmup = 0;
    int64_t cycle;
    vp_result result;
    *schedule = schedule_of(options);
    if ((result = vp_schedule_check(schedule, &no_warmup, &error)) != VP_OK)
        return complain_result(EXIT_USAGE, "schedule", result, &error);
    cycle = schedule->wait + schedule->warmup + schedule->active;
    if (is_given(options, "num_runs")) *steps = number_of(options, "num_runs");
    else if (!schedule->repeat)
        return complain(EXIT_USAGE, "--repeat 0 goes on until the runs end: say how many with --num_runs");
    else
        *steps = schedule->skip_first
                 + (schedule->repeat - 1) * (schedule->every_n_steps ? schedule->every_n_steps : cycle) + cycle;
    if (*steps > 1000000)
        return complain(EXIT_USAGE, "this schedule has %lld requests: at most 1000000", (long long)*steps);
    if (no_warmup)
        complain(
            0,
            "--warmup 0: the first recorded request pays for what starts up in this mode; --warmup 1 keeps that out "
            "of the table");
    return 0;
}
static int check_groups(const struct options *options) {
    const struct option_value *groups = opt(options, "group_by");
    for (size_t i = 0; i < groups->count; i++) {
        size_t group = 0;
        while (group < sizeof GROUPS / sizeof *GROUPS && strcmp(groups->items[i], GROUPS[group].word)) group++;
        if (group == sizeof GROUPS / sizeof *GROUPS)
            return complain(EXIT_USAGE, "--group_by: \"%s\" is none of: none shape stage part block step place",
                            groups->items[i]);
    }
    return check_sort_key(text_of(options, "sort_by"));
}
int profile_check(const struct options *options) {
    static const char *const only[] = {"sort_by",
                                       "group_by",
                                       "group_by_input_shape",
                                       "group_by_stack_n",
                                       "row_limit",
                                       "profile_format",
                                       "trace",
                                       "output_dir",
                                       "chrome_trace",
                                       "trace_max_bytes",
                                       "record_shapes",
                                       "profile_memory",
                                       "with_stack",
                                       "wait",
                                       "warmup",
                                       "active",
                                       "repeat",
                                       "skip_first",
                                       "schedule_every_n_steps",
                                       "cost",
                                       "cost_rounds",
                                       "output"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !is_given(options, "profile"); i++)
        if (is_given(options, only[i])) return complain(EXIT_USAGE, "--%s goes with --profile", only[i]);
    if (is_given(options, "trace") && is_given(options, "output_dir"))
        return complain(EXIT_USAGE, "--trace FILE and --output_dir DIR exclude each other");
    if (is_given(options, "chrome_trace") && !is_given(options, "output_dir"))
        return complain(EXIT_USAGE, "--chrome_trace needs --output_dir DIR");
    if (is_given(options, "cost_rounds") && !is_given(options, "cost"))
        return complain(EXIT_USAGE, "--cost_rounds goes with --cost");
    if (is_given(options, "dump") && is_given(options, "profile"))
        return complain(EXIT_USAGE, "--dump and --profile exclude each other: copying would be timed");
    if (is_given(options, "json") && is_given(options, "profile_format"))
        return complain(
            EXIT_USAGE,
            "--json has a form of its own: leave --profile_format out (--profile_format json is the bare table)");
    return check_groups(options);
}
static int32_t stack_frames_of(const struct options *options) {
    return is_given(options, "group_by_stack_n") ? (int32_t)number_of(options, "group_by_stack_n")
           : is_given(options, "with_stack")     ? 1
                                                 : 0;
}

/* The loop of requests: what the schedule says of each. A cycle that the loop's end or Ctrl-C cuts short is saved as
 * well. */
static int profile_loop(struct profiler *profiler, struct run_state *state, const vp_schedule *schedule,
                        int64_t steps) {
    struct profile_source from = {&state->sample, &state->image};
    vp_error error = {VP_OK, -1, "", ""};
    vp_schedule_step now;
    int64_t in_cycle = 0;
    int code = 0;
    for (int64_t i = 0; i < steps && !code && !interrupted; i++) {
        vp_result result = vp_schedule_at(schedule, i, &now);
        int record = result == VP_OK && (now.state == VP_SCHEDULE_RECORD || now.state == VP_SCHEDULE_RECORD_AND_SAVE);
        if (result != VP_OK) return complain(EXIT_USAGE, "schedule: %s", vp_result_text(result));
        show_progress("request %lld of %lld: %s", (long long)i + 1, (long long)steps,
                      vp_schedule_state_name(now.state));
        if (record && !in_cycle++) {
            char *path = NULL;
            if ((code = trace_path_of(profiler, NULL, &path)) == 0 && path) code = trace_begin(profiler, path);
            free(path);
        }
        if (now.state == VP_SCHEDULE_NONE && !code) {
            if ((result = request_run(&state->session, &state->input, state->runs, &error)) != VP_OK)
                code = complain_result(exit_code_of(result), NULL, result, &error);
        } else if (!code) code = profile_pass(profiler, &state->input, &from, state->runs, i, record);
        if (now.ends_cycle) {
            in_cycle = 0;
            if (!code) code = trace_end(profiler);
        }
    }
    if (in_cycle && !code) {
        text_list_add(&profiler->notes,
                      "the last cycle was cut short after %lld of %lld active requests: what it recorded is saved",
                      (long long)in_cycle, (long long)schedule->active);
        code = trace_end(profiler);
    }
    return code;
}

/* ---- what this mode costs: whole requests in each mode, in random order within every round, held against the bare
 * one of the same round */
enum { COST_OFF, COST_STAGE, COST_OP, COST_TRACE };

static const char *const COST_NAMES[COST_MODES] = {"off", "stage", "op", "trace"};

struct cost_report { double *ns[COST_MODES]; size_t rounds; vp_paired paired[COST_MODES]; };
static void cost_free(struct cost_report *cost) { for (int i = 0; i < COST_MODES; i++) free(cost->ns[i]); }
/* From the start of a request until the next could start: with what the mode does with its records. */
static int cost_run(struct profiler *profiler, struct pass_input *input, struct pass_result *run, int mode,
                    int64_t step, double *ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = profiler->trace;
    int64_t begin = vp_clock_ns();
    int code;
    if (mode >= COST_OP) {
        if (mode == COST_OP) profiler->trace = NULL;
        code = profile_pass(profiler, input, NULL, run, step, 1);
        profiler->trace = trace;
    } else {
        vp_result result;
        input->timing = mode == COST_OFF ? VP_TIMING_OFF : VP_TIMING_STAGE;
        result = request_run(profiler->session, input, run, &error);
        code = result == VP_OK ? 0 : complain_result(exit_code_of(result), NULL, result, &error);
        input->timing = VP_TIMING_STAGE;
    }
    *ns = (double)(vp_clock_ns() - begin);
    return code;
}
/* The same request in all modes. A profiler of its own, so that these runs are in no table; its trace is thrown
 * away. */
static int cost_measure(const struct options *options, struct session *session, struct pass_input *input,
                        struct pass_result *run, struct cost_report *cost) {
    const char *temporary = getenv("TMPDIR");
    char path[600];
    uint64_t state = (uint64_t)number_of(options, "seed");
    struct profiler *profiler = zeroed(1, sizeof *profiler);
    double *scratch;
    int code;
    cost->rounds = (size_t)number_of(options, "cost_rounds");
    scratch = zeroed(cost->rounds, sizeof *scratch);
    for (int i = 0; i < COST_MODES; i++) cost->ns[i] = zeroed(cost->rounds, sizeof *cost->ns[i]);
    snprintf(path, sizeof path, "%.500s/vlmprof-cost-%ld.pt.trace.json", temporary ? temporary : "/tmp",
             (long)getpid());
    code = profiler_open(profiler, options, session, input->new_tokens, groups_of(options), stack_frames_of(options));
    if (!code) code = trace_begin(profiler, path);
    /* each mode once untimed */
    for (int mode = COST_MODES; mode-- > 0 && !code;) code = cost_run(profiler, input, run, mode, 0, scratch);
    for (size_t round = 0; round < cost->rounds && !code && !interrupted; round++) {
        int order[COST_MODES] = {0, 1, 2, 3};
        show_progress("cost of the profiler: round %zu of %zu", round + 1, cost->rounds);
        for (int i = COST_MODES - 1; i > 0; i--) {
            int other, held;
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            other = (int)((state >> 33) % (uint64_t)(i + 1));
            held = order[i];
            order[i] = order[other];
            order[other] = held;
        }
        for (int i = 0; i < COST_MODES && !code; i++)
            code = cost_run(profiler, input, run, order[i], (int64_t)round + 1, &cost->ns[order[i]][round]);
    }
    if (interrupted && !code) cost->rounds = 0;
    for (int i = 0; i < COST_MODES && !code && cost->rounds; i++)
        vp_statistics_paired(cost->ns[COST_OFF], cost->ns[i], cost->rounds, scratch, &cost->paired[i]);
    profiler_free(profiler); /* an unfinished trace leaves no file */
    free(profiler);
    free(scratch);
    return code;
}
static void write_cost(struct text_buffer *out, const struct cost_report *cost) {
    char line[300];
    snprintf(
        line, sizeof line,
        "\ncost of the profiler: %zu rounds of one request in each mode, in random order, held against off; 95 "
        "%% intervals\n"
        "%-8s %12s %12s %30s %30s\n",
        cost->rounds, "mode", "mean ms", "median ms", "mean of differences, %", "median of differences, %");
    text_add_string(out, line);
    for (int i = 0; i < COST_MODES; i++) {
        const vp_paired *paired = &cost->paired[i];
        double *sorted = resize(NULL, cost->rounds, sizeof *sorted);
        char mean[64] = "-", median[64] = "-";
        memcpy(sorted, cost->ns[i], cost->rounds * sizeof *sorted);
        if (i) {
            snprintf(mean, sizeof mean, "%+.2f [%+.2f, %+.2f]", 100 * paired->relative_mean.value,
                     100 * paired->relative_mean.low, 100 * paired->relative_mean.high);
            snprintf(median, sizeof median, "%+.2f [%+.2f, %+.2f]", 100 * paired->relative_median.value,
                     100 * paired->relative_median.low, 100 * paired->relative_median.high);
        }
        snprintf(line, sizeof line, "%-8s %12.3f %12.3f %30s %30s\n", COST_NAMES[i],
                 vp_statistics_mean(cost->ns[i], cost->rounds) / 1e6, median_of(sorted, cost->rounds).value / 1e6, mean,
                 median);
        text_add_string(out, line);
        free(sorted);
    }
}
static void put_estimate_percent(vp_json_writer *writer, const char *key, vp_estimate estimate) {
    vp_json_key(writer, key);
    vp_json_begin_object(writer);
    put_double(writer, "value", 100 * estimate.value);
    put_double(writer, "low", 100 * estimate.low);
    put_double(writer, "high", 100 * estimate.high);
    vp_json_end_object(writer);
}
static void put_cost(vp_json_writer *writer, const struct cost_report *cost) {
    vp_json_key(writer, "cost");
    if (!cost->rounds) { vp_json_null(writer); return; }
    vp_json_begin_object(writer);
    put_int(writer, "rounds", (int64_t)cost->rounds);
    for (int i = 0; i < COST_MODES; i++) {
        vp_json_key(writer, COST_NAMES[i]);
        vp_json_begin_object(writer);
        put_double(writer, "mean_ms", vp_statistics_mean(cost->ns[i], cost->rounds) / 1e6);
        if (i) {
            put_estimate_percent(writer, "mean_difference_percent", cost->paired[i].relative_mean);
            put_estimate_percent(writer, "median_difference_percent", cost->paired[i].relative_median);
        }
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}

/* ---- telling it */
static vp_ops_print_options print_options_of(const struct options *options) {
    vp_ops_print_options how = vp_ops_print_options_default();
    how.row_limit = number_of(options, "row_limit");
    how.with_flops = how.with_rates = 1;
    how.with_memory = is_given(options, "profile_memory");
    return how;
}
static void write_stages_closure(struct text_buffer *out, const struct profiler *profiler) {
    double stages = 0, ops = 0, count = (double)profiler->steps;
    char line[200];
    snprintf(line, sizeof line, "\n%-12s %14s %14s %14s %8s   mean of %lld request%s\n", "stage", "device ms",
             "operations ms", "idle ms", "idle %", (long long)profiler->steps, profiler->steps == 1 ? "" : "s");
    text_add_string(out, line);
    for (int i = 0; i <= VP_STAGE_COUNT; i++) {
        double stage = i < VP_STAGE_COUNT ? profiler->stage_ns[i] : stages,
               op = i < VP_STAGE_COUNT ? profiler->op_ns[i] : ops;
        if (!(stage > 0)) continue;
        snprintf(line, sizeof line, "%-12s %14.4f %14.4f %14.4f %8.2f\n",
                 i < VP_STAGE_COUNT ? vp_stage_name((vp_stage)i) : "sum", stage / count / 1e6, op / count / 1e6,
                 (stage - op) / count / 1e6, 100 * (stage - op) / stage);
        text_add_string(out, line);
        if (i == VP_STAGE_COUNT) break;
        stages += stage;
        ops += op;
    }
    snprintf(line, sizeof line, "%-12s %14.4f   whole requests, image file to text, with the stamps of this mode\n",
             "step", profiler->total_ns / count / 1e6);
    text_add_string(out, line);
}
static int64_t peak_resident_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : (int64_t)usage.ru_maxrss * 1024;
}
static void write_memory(struct text_buffer *out, const struct profiler *profiler) {
    char line[200];
    vp_memory_block block;
    text_add_string(out, "\nmemory                          bytes   where\n");
    for (int32_t i = 0; vp_engine_memory(profiler->session->engine, i, &block); i++) {
        snprintf(line, sizeof line, "%-20s %16llu   %s\n", block.name, (unsigned long long)block.bytes,
                 profiler->on_gpu && block.on_device ? "device" : "host");
        text_add_string(out, line);
    }
    snprintf(line, sizeof line, "%-20s %16lld   host: the most that this process had resident\n", "peak",
             (long long)peak_resident_bytes());
    text_add_string(out, line);
}
static void write_profile_notes(struct text_buffer *out, const struct profiler *profiler) {
    char line[300];
    snprintf(line, sizeof line, "ceilings measured on this device: reading %.4g GB/s, products %.4g TFLOP/s\n",
             profiler->ops.ceilings.bytes_per_s / 1e9, profiler->ops.ceilings.flops_per_s / 1e12);
    text_add_string(out, line);
    if (profiler->ops.dropped_calls + profiler->lost_launches) {
        snprintf(line, sizeof line, "%lld calls are in no row: there was no room\n",
                 (long long)(profiler->ops.dropped_calls + profiler->lost_launches));
        text_add_string(out, line);
    }
    if (profiler->negative_idle) {
        snprintf(line, sizeof line, "%lld stages have operations that add up to more than the stage\n",
                 (long long)profiler->negative_idle);
        text_add_string(out, line);
    }
}
static vp_result write_table(struct text_buffer *out, const struct profiler *profiler, const char *format) {
    vp_ops_print_options how = print_options_of(profiler->options);
    vp_json_writer writer;
    vp_result result;
    if (!strcmp(format, "csv")) return vp_ops_print_csv(&profiler->ops, text_sink, out);
    if (!strcmp(format, "cprofile")) return vp_ops_print_cprofile(&profiler->ops, &how, text_sink, out);
    if (!strcmp(format, "torch")) return vp_ops_print_torch(&profiler->ops, &how, text_sink, out);
    vp_json_writer_init_sink(&writer, text_sink, out, 1);
    vp_ops_write_json(&writer, &profiler->ops);
    result = vp_json_finish(&writer);
    text_add_string(out, "\n");
    return result;
}
static void put_profile_memory(vp_json_writer *writer, const struct profiler *profiler) {
    vp_memory_block block;
    vp_json_key(writer, "memory");
    vp_json_begin_object(writer);
    vp_json_key(writer, "blocks");
    vp_json_begin_array(writer);
    for (int32_t i = 0; vp_engine_memory(profiler->session->engine, i, &block); i++) {
        vp_json_begin_object(writer);
        put_text(writer, "name", block.name);
        put_int(writer, "bytes", (int64_t)block.bytes);
        put_bool(writer, "on_device", profiler->on_gpu && block.on_device);
        put_int(writer, "bytes_a_position", (int64_t)block.bytes_a_position);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
    put_int(writer, "peak_resident_bytes", peak_resident_bytes());
    vp_json_end_object(writer);
}
static void put_profile(vp_json_writer *writer, const struct profiler *profiler, const struct run_state *state,
                        const struct cost_report *cost) {
    double count = (double)profiler->steps;
    vp_json_begin_object(writer);
    put_text(writer, "schema", "vlmprof-profile-1");
    put_text(writer, "model", state->model.name);
    put_bool(writer, "synthetic", state->model.synthetic);
    put_answer(writer, "answer", state->runs);
    put_text(writer, "timing", "op");
    put_int(writer, "steps", profiler->steps);
    put_double(writer, "step_ms", profiler->total_ns / count / 1e6);
    put_int(writer, "lost_launches", profiler->lost_launches);
    vp_json_key(writer, "stages");
    vp_json_begin_object(writer);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!(profiler->stage_ns[i] > 0)) continue;
        vp_json_key(writer, vp_stage_name((vp_stage)i));
        vp_json_begin_object(writer);
        put_double(writer, "device_ms", profiler->stage_ns[i] / count / 1e6);
        put_double(writer, "operations_ms", profiler->op_ns[i] / count / 1e6);
        put_double(writer, "idle_ms", (profiler->stage_ns[i] - profiler->op_ns[i]) / count / 1e6);
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
    put_profile_memory(writer, profiler);
    put_cost(writer, cost);
    vp_json_key(writer, "ops");
    vp_ops_write_json(writer, &profiler->ops);
    vp_json_key(writer, "provenance");
    vp_json_begin_object(writer);
    put_provenance(writer, profiler->options, profiler->session->engine);
    vp_json_end_object(writer);
    put_config(writer, profiler->options);
    vp_json_end_object(writer);
}
static int profile_tell(struct profiler *profiler, const struct run_state *state, const struct cost_report *cost) {
    const struct options *options = profiler->options;
    const char *format = text_of(options, "profile_format"), *file = text_of(options, "output");
    const char *key = text_of(options, "sort_by")   ? text_of(options, "sort_by")
                      : !strcmp(format, "cprofile") ? "tottime"
                      : profiler->on_gpu            ? "self_device_time_total"
                                                    : "self_cpu_time_total";
    int is_text = !is_given(options, "json") && (!strcmp(format, "torch") || !strcmp(format, "cprofile"));
    struct text_buffer table = {NULL, 0, 0}, rest = {NULL, 0, 0};
    vp_json_writer writer;
    vp_result result = vp_ops_sort(&profiler->ops, key);
    int code = 0;
    if (result == VP_OK && !is_given(options, "json")) result = write_table(&table, profiler, format);
    else if (result == VP_OK) {
        vp_json_writer_init_sink(&writer, text_sink, &table, 2);
        put_profile(&writer, profiler, state, cost);
        result = vp_json_finish(&writer);
        text_add_string(&table, "\n");
    }
    if (result != VP_OK) code = complain(EXIT_WORK, "the table of operations: %s", vp_result_text(result));
    if (!code && (is_text || file) && !is_given(options, "json")) {
        write_stages_closure(&rest, profiler);
        if (is_given(options, "profile_memory")) write_memory(&rest, profiler);
        write_profile_notes(&rest, profiler);
        if (cost->rounds) write_cost(&rest, cost);
    }
    if (!code && file) code = file_write_text(file, &table);
    else if (!code) fwrite(table.data, 1, table.bytes, stdout); /* main checks stdout */
    if (!code && rest.bytes) fwrite(rest.data, 1, rest.bytes, stdout);
    free(table.data);
    free(rest.data);
    return code;
}
int profile_run(const struct options *options, struct run_state *state) {
    struct profiler *profiler = zeroed(1, sizeof *profiler);
    struct cost_report cost;
    vp_schedule schedule;
    vp_schedule_sum sum;
    int64_t steps = 0;
    int code = plan_steps(options, &schedule, &steps);
    memset(&cost, 0, sizeof cost);
    end_in_order(); /* Ctrl-C: the request that runs is finished, and what was recorded is saved and told */
    if (!code && (vp_schedule_count(&schedule, steps, &sum) != VP_OK || sum.recorded_steps + sum.partial_steps < 1))
        code = complain(EXIT_USAGE, "none of %lld request%s would be recorded: this schedule skips the first %lld",
                        (long long)steps, steps == 1 ? "" : "s",
                        (long long)(schedule.skip_first + schedule.wait + schedule.warmup));
    state->run_count = 1;
    state->runs = runs_make(1, state->input.new_tokens);
    if (!code)
        code = engine_open(options, &state->model, sequence_of(&state->input) + state->input.new_tokens,
                           state->input.layout ? state->layout.views : 1, &state->session.engine);
    state->session.model = &state->model;
    if (!code)
        code = profiler_open(profiler, options, &state->session, state->input.new_tokens, groups_of(options),
                             stack_frames_of(options));
    if (!code) code = profile_loop(profiler, state, &schedule, steps);
    if (!code && !interrupted && is_given(options, "cost"))
        code = cost_measure(options, &state->session, &state->input, state->runs, &cost);
    close_progress();
    for (size_t i = 0; i < profiler->notes.count; i++) complain(0, "%s", profiler->notes.items[i]);
    if (!code && profiler->steps) code = profile_tell(profiler, state, &cost);
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    cost_free(&cost);
    profiler_free(profiler);
    free(profiler);
    return code;
}

/* ---- sweep --use_profiler */
int profile_check_sweep(const struct options *options) {
    static const char *const only[] = {"use_profiler_on_all_samples",
                                       "sort_by",
                                       "group_by",
                                       "group_by_input_shape",
                                       "group_by_stack_n",
                                       "row_limit",
                                       "trace",
                                       "trace_max_bytes",
                                       "record_shapes",
                                       "profile_memory",
                                       "with_stack"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !is_given(options, "use_profiler"); i++)
        if (is_given(options, only[i])) return complain(EXIT_USAGE, "--%s goes with --use_profiler", only[i]);
    return check_groups(options);
}
/* Is the file of this point there, written by this configuration and sample? The index of a configuration changes
 * when the grid does. */
static int is_profiled(const char *path, const char *head) {
    char line[600] = "";
    FILE *file = fopen(path, "rb");
    int same = file && fgets(line, sizeof line, file) && !strncmp(line, head, strlen(head))
               && line[strlen(head)] == '\n';
    if (file) fclose(file);
    return same;
}
int profile_point(const struct options *options, struct session *session, const struct pass_input *base,
                  struct pass_result *run, const struct profile_place *profiled) {
    char name[120], worker[120], head[500];
    struct text_buffer out = {NULL, 0, 0};
    struct pass_input input = *base;
    char *path, *file = NULL;
    struct profiler *profiler;
    int code;
    if (!is_given(options, "use_profiler") || !(profiled->is_first || is_given(options, "use_profiler_on_all_samples")))
        return 0;
    snprintf(name, sizeof name, "profiler_results_config_%zu_sample_%lld.txt", profiled->configuration,
             (long long)profiled->sample_id);
    snprintf(worker, sizeof worker, "config_%zu_sample_%lld", profiled->configuration, (long long)profiled->sample_id);
    snprintf(head, sizeof head, "%.400s, sample %lld", profiled->file_name, (long long)profiled->sample_id);
    path = join_path(text_of(options, "output_dir"), name);
    code = is_profiled(path, head);
    free(path);
    if (code) return 0;
    profiler = zeroed(1, sizeof *profiler);
    code = profiler_open(profiler, options, session, input.new_tokens, groups_of(options), stack_frames_of(options));
    if (!code) code = profile_pass(profiler, &input, NULL, run, 0, 0);
    if (!code && (code = trace_path_of(profiler, worker, &file)) == 0 && file) code = trace_begin(profiler, file);
    if (!code) code = profile_pass(profiler, &input, NULL, run, 0, 1);
    if (!code) code = trace_end(profiler);
    if (!code && profiler->steps) {
        vp_ops_sort(&profiler->ops, text_of(options, "sort_by") ? text_of(options, "sort_by")
                                    : profiler->on_gpu          ? "self_device_time_total"
                                                                : "self_cpu_time_total");
        text_add_string(&out, head);
        text_add_string(&out, "\n");
        if (write_table(&out, profiler, "torch") != VP_OK) code = EXIT_WORK;
        write_stages_closure(&out, profiler);
        if (is_given(options, "profile_memory")) write_memory(&out, profiler);
        write_profile_notes(&out, profiler);
        if (!code) code = file_write_whole(text_of(options, "output_dir"), name, out.data, out.bytes);
    }
    free(file);
    free(out.data);
    profiler_free(profiler);
    free(profiler);
    return code == EXIT_OUTPUT ? code : 0;
}
