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

static const struct { const char *word; uint32_t flag; } GROUPS[] = {
    {"none", 0}, {"shape", VP_OPS_BY_SHAPE}, {"stage", VP_OPS_BY_STAGE}, {"part", VP_OPS_BY_PART}, {"block", VP_OPS_BY_BLOCK},
    {"step", VP_OPS_BY_STEP}, {"place", VP_OPS_BY_PLACE}};

typedef struct profiler {
    const options *o;
    session *s;
    int on_gpu;
    vp_launch *launches; int64_t launch_capacity;
    vp_span *spans; int64_t span_capacity;              /* CPU, while a trace is written */
    vp_range records[PROFILE_RANGES]; vp_ranges ranges;
    vp_op *rows; vp_ops ops;
    int64_t steps, lost_launches;                       /* recorded; launches that found no room */
    double stage_ns[VP_STAGE_COUNT], op_ns[VP_STAGE_COUNT], total_ns; /* on the device, sums over the recorded steps */
    int64_t negative_idle;                              /* stages whose launches took longer than they did */
    vp_trace *trace; char *trace_path;                  /* that is being written */
    text_list notes;                                    /* for stderr, when all is done */
    int64_t traces;                                     /* that were closed */
} profiler;

static uint32_t groups_of(const options *o) { /* --group_by, checked before */
    const option_value *v = opt(o, "group_by");
    uint32_t flags = given(o, "group_by_input_shape") ? (uint32_t)VP_OPS_BY_SHAPE : 0;
    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < sizeof GROUPS / sizeof *GROUPS; k++) if (!strcmp(v->items[i], GROUPS[k].word)) flags |= GROUPS[k].flag;
    return flags;
}
/* more than a request makes, where that is below a million */
static int64_t launch_bound(const model *m, int32_t new_tokens) {
    int64_t blocks = (int64_t)m->config.block_count + 2;
    int64_t most = 64 * (blocks + m->config.vit_block_count + 16) + (int64_t)new_tokens * blocks * 48;
    return most < PROFILE_LAUNCHES_MOST ? most : (int64_t)PROFILE_LAUNCHES_MOST;
}
static int profiler_open(profiler *p, const options *o, session *s, int32_t new_tokens, uint32_t group_by, int32_t stack_n) {
    int64_t row_count;
    vp_ceilings ceilings;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    memset(p, 0, sizeof *p);
    p->o = o;
    p->s = s;
    p->on_gpu = gpu_of(s->engine) >= 0;
    p->launch_capacity = launch_bound(s->m, new_tokens);
    p->launches = resize(NULL, (size_t)p->launch_capacity, sizeof *p->launches);
    row_count = p->launch_capacity + 64 < PROFILE_ROWS_MOST ? p->launch_capacity + 64 : (int64_t)PROFILE_ROWS_MOST;
    p->rows = resize(NULL, (size_t)row_count, sizeof *p->rows);
    vp_ops_init(&p->ops, p->rows, row_count, group_by, stack_n);
    p->ops.clock = p->on_gpu ? VP_OPS_DEVICE : VP_OPS_HOST;
    p->ops.device_name = p->on_gpu ? "CUDA" : NULL;
    vp_ranges_init(&p->ranges, p->records, PROFILE_RANGES, 0, "main", vp_engine_range_hooks());
    if ((r = vp_engine_ceilings(s->engine, &ceilings, &error)) != VP_OK) return complain_result(exit_code_of(r), "ceilings", r, &error);
    p->ops.ceilings.bytes_per_s = ceilings.bytes_per_s;
    p->ops.ceilings.flops_per_s = ceilings.flops_per_s;
    return 0;
}
static void profiler_free(profiler *p) {
    vp_trace_free(p->trace);
    free(p->trace_path);
    free(p->launches);
    free(p->spans);
    free(p->rows);
    text_list_free(&p->notes);
}

/* ---- one request into the table */
static void stack_of(vp_op *op, int stage, const char *part) { /* innermost first, behind the operation's own place */
    if (part) op->stack[op->stack_count++].name = part;
    op->stack[op->stack_count++].name = STAGE_RANGES[stage];
    op->stack[op->stack_count++].name = "engine";
    op->stack[op->stack_count++].name = "request";
}
static vp_result add_launch(profiler *p, const vp_launch *l) {
    vp_op op = vp_op_default();
    op.name = l->name;
    op.stage = vp_stage_name((vp_stage)l->stage);
    op.part = vp_part_name((vp_part)l->part);
    op.block = l->block < 0 ? (int32_t)VP_OP_NONE : l->block;
    op.step = l->step > 0 ? l->step : (int32_t)VP_OP_NONE;
    op.file = op.stack[0].file = "vlmprof_kernels.cu";
    op.line = op.stack[0].line = l->line;
    op.stack[0].name = l->name;
    op.stack_count = 1;
    stack_of(&op, l->stage, op.part);
    memcpy(op.shape, l->shape, sizeof op.shape);
    op.dimensions = l->dimensions;
    op.host_total_ns = op.host_self_ns = l->host_ns;
    if (p->on_gpu) op.device_total_ns = op.device_self_ns = l->ns;
    op.flops = (int64_t)l->flops;
    op.bytes = (int64_t)l->bytes;
    return vp_ops_add(&p->ops, &op);
}
/* The stages of a pass as rows around its launches; *engine_ns gets their time on the host. */
static vp_result add_stages(profiler *p, const timing *t, int64_t *engine_ns) {
    int64_t host_ns[VP_STAGE_COUNT] = {0}, device_ns[VP_STAGE_COUNT] = {0};
    vp_result r = VP_OK;
    for (int64_t i = 0; i < t->launch_count && i < p->launch_capacity; i++) {
        host_ns[p->launches[i].stage] += p->launches[i].host_ns;
        device_ns[p->launches[i].stage] += p->launches[i].ns;
    }
    *engine_ns = 0;
    for (int i = 0; i < VP_STAGE_COUNT && r == VP_OK; i++) {
        vp_op op = vp_op_default();
        if (!t->times.ran[i] || is_host_stage(i)) continue;
        p->stage_ns[i] += (double)t->times.device_ns[i];
        p->op_ns[i] += (double)device_ns[i];
        p->negative_idle += device_ns[i] > t->times.device_ns[i];
        *engine_ns += t->times.wall_ns[i];
        op.name = STAGE_RANGES[i];
        op.stage = vp_stage_name((vp_stage)i);
        stack_of(&op, i, NULL);
        op.host_total_ns = t->times.wall_ns[i];
        op.host_self_ns = t->times.wall_ns[i] > host_ns[i] ? t->times.wall_ns[i] - host_ns[i] : 0;
        if (p->on_gpu) op.device_total_ns = device_ns[i]; /* as torch: an annotation has no device time of its own */
        r = vp_ops_add(&p->ops, &op);
    }
    return r;
}
static vp_result add_pass(profiler *p, const timing *t, int64_t step_ns) {
    vp_op op = vp_op_default();
    int64_t engine_ns = 0, within_ns = 0;
    vp_result r = add_stages(p, t, &engine_ns);
    for (int64_t i = 0; i < t->launch_count && r == VP_OK; i++) {
        if (i < p->launch_capacity) r = add_launch(p, &p->launches[i]); else p->lost_launches++;
        if (r == VP_ERR_CAPACITY) r = VP_OK; /* counted by the table */
    }
    for (int64_t i = 0; i < p->ranges.count; i++) {
        if (!strcmp(p->records[i].name, "engine")) p->records[i].children_ns += engine_ns;
        if (!p->records[i].depth) within_ns += p->records[i].end_ns - p->records[i].begin_ns;
    }
    if (r == VP_OK) r = vp_ops_add_ranges(&p->ops, &p->ranges);
    op.name = "ProfilerStep*";
    op.host_total_ns = step_ns;
    op.host_self_ns = step_ns - within_ns;
    if (r == VP_OK) r = vp_ops_add(&p->ops, &op);
    p->total_ns += (double)step_ns;
    p->steps++;
    return r;
}

/* ---- traces */
/* The file of the cycle that begins: of a run (worker NULL) --trace FILE or --chrome_trace for the first one, else
 * DIR/profiler_traces/<worker>.<ns>.pt.trace.json. *path: NULL where none is wanted, and with a notice where a file of
 * that name was written already. 0 or an exit code. */
static int trace_path_of(profiler *p, const char *worker, char **path) {
    const options *o = p->o;
    int is_run = worker == NULL;
    const char *file = is_run ? text_of(o, "trace") : NULL, *folder = text_of(o, "output_dir");
    char name[700], *traces;
    struct timespec now;
    int code;
    *path = NULL;
    if ((!file && !folder) || (!is_run && !given(o, "trace"))) return 0;
    if (file || (is_run && given(o, "chrome_trace"))) {
        *path = file ? copy_text(file, strlen(file)) : join_path(folder, VP_TRACE_NAME);
        if (!p->traces) return file ? 0 : make_folder(folder);
        text_list_add(&p->notes, "%s is saved already: the traces of later cycles are left out; --output_dir alone gives each cycle its own file",
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
static int trace_failed(const profiler *p, vp_result r, const vp_error *error) {
    if (r == VP_OK || r == VP_ERR_CAPACITY) return 0; /* full: told when it is closed */
    return complain_result(exit_code_of(r) == EXIT_USAGE ? EXIT_WORK : exit_code_of(r), p->trace_path, r, error);
}
/* What the engine holds stands at the start of a trace as one change of memory for each block. */
static int trace_memory_blocks(profiler *p, int64_t at_ns) {
    uint64_t sums[2] = {0, 0};
    vp_memory_block b;
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b) && !code; i++) {
        int on_device = p->on_gpu && b.on_device;
        sums[on_device] += b.bytes;
        code = trace_failed(p, vp_trace_memory(p->trace, at_ns, on_device ? 0 : -1, (uint64_t)i + 1, (int64_t)b.bytes, sums[on_device],
                                               sums[on_device], &error), &error);
    }
    return code;
}
static int trace_begin(profiler *p, const char *path) {
    vp_trace_options t = vp_trace_options_default();
    vp_trace_device device;
    vp_device_info gpu;
    vp_rank rank;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_trace_metadata metadata[] = {{"vlmprof_version", VLMPROF_VERSION}, {"model", p->s->m->name}, {"device", vp_engine_device(p->s->engine)}};
    vp_result r;
    free(p->trace_path);
    p->trace_path = copy_text(path, strlen(path));
    t.path = path;
    t.max_bytes = (uint64_t)number_of(p->o, "trace_max_bytes");
    t.record_shapes = given(p->o, "record_shapes");
    t.with_stack = given(p->o, "with_stack");
    t.profile_memory = given(p->o, "profile_memory");
    if (vp_rank_from_environment(environment, NULL, &rank, NULL) == VP_OK) {
        t.rank = rank.rank;
        t.world_size = rank.world_size;
    }
    t.metadata = metadata;
    t.metadata_count = 3;
    if (p->on_gpu && vp_device_describe(gpu_of(p->s->engine), &gpu, &error) == VP_OK) {
        device = vp_trace_device_of(0, gpu.name, gpu.memory_bytes, gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count);
        t.devices = &device;
        t.device_count = 1;
        t.emulated = strstr(gpu.name, "emulated") != NULL;
    }
    if (!p->on_gpu && !p->spans) { /* 8 threads of each launch: what is more is left out */
        p->span_capacity = p->launch_capacity * 8;
        p->spans = resize(NULL, (size_t)p->span_capacity, sizeof *p->spans);
    }
    r = vp_trace_open(&t, &p->trace, &error);
    if (r != VP_OK) return complain_result(r == VP_ERR_RANGE ? EXIT_USAGE : exit_code_of(r), path, r, &error);
    return given(p->o, "profile_memory") ? trace_memory_blocks(p, vp_clock_ns()) : 0;
}
static int trace_pass(profiler *p, const timing *t, int64_t step, int64_t begin_ns, int64_t end_ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_times times = t->times;
    vp_trace_run run;
    vp_result r;
    int code;
    memset(&run, 0, sizeof run);
    times.ran[VP_STAGE_PREPROCESS] = times.ran[VP_STAGE_DETOK] = 0; /* they are ranges */
    run.begin_ns = t->engine_begin_ns;
    run.device = p->on_gpu ? 0 : -1;
    run.launches = p->launches;
    run.launch_count = t->launch_count < p->launch_capacity ? t->launch_count : p->launch_capacity;
    run.spans = p->spans;
    run.span_count = t->span_count < p->span_capacity ? t->span_count : p->span_capacity;
    run.times = &times;
    run.step_ns = t->step_ns;
    run.step_count = t->token_count > 1 ? t->token_count - 1 : 0;
    if ((code = trace_failed(p, vp_trace_step_begin(p->trace, step, begin_ns, &error), &error)) != 0) return code;
    if ((code = trace_failed(p, vp_trace_ranges(p->trace, &p->ranges, &error), &error)) != 0) return code;
    if ((code = trace_failed(p, vp_trace_launches(p->trace, &run, &error), &error)) != 0) return code;
    r = vp_trace_step_end(p->trace, end_ns, &error);
    return r == VP_ERR_STATE ? 0 : trace_failed(p, r, &error); /* the step's begin found no room */
}
static int trace_end(profiler *p) {
    vp_trace_info info;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code = 0;
    if (!p->trace) return 0;
    r = vp_trace_close(p->trace, &info, &error);
    if (r != VP_OK) code = complain_result(exit_code_of(r), p->trace_path, r, &error);
    else if (info.truncated)
        text_list_add(&p->notes, "%s: recording stopped at --trace_max_bytes %lld: %lld steps and %lld launches are left out", p->trace_path,
                      (long long)number_of(p->o, "trace_max_bytes"), (long long)info.dropped_steps, (long long)info.dropped_launches);
    if (r == VP_OK) text_list_add(&p->notes, "trace written: %s (%lld events, %llu bytes)", p->trace_path, (long long)info.events,
                                  (unsigned long long)info.bytes);
    p->traces += r == VP_OK;
    vp_trace_free(p->trace);
    p->trace = NULL;
    return code;
}

/* ---- one pass of the schedule's steps */
/* Of a run: the image is decoded and the prompt tokenized again, within the step. Else NULL. */
typedef struct profile_source { sample *a; vp_image *image; } profile_source;
static int prepare_pass(profiler *p, const profile_source *from, work *k) {
    char reason[LINE_BYTES];
    int code = 0;
    if (!from) return 0;
    if (k->layout) {
        vp_range_payload payload;
        memset(&payload, 0, sizeof payload);
        vp_image_free(from->image);
        from->image->rgb = NULL;
        VP_RANGE(&p->ranges, "load image");
        if ((code = load_image(from->a->image_path, from->image, reason, sizeof reason)) != 0) complain(code, "%s", reason);
        else if (from->image->width_px != k->layout->width_px || from->image->height_px != k->layout->height_px)
            code = complain(EXIT_INPUT, "%s: the image has changed", from->a->image_path);
        payload.memory_bytes = payload.bytes = (int64_t)k->layout->width_px * k->layout->height_px * 3;
        vp_range_set(&p->ranges, &payload);
        vp_range_end(&p->ranges);
    }
    if (code) return code;
    VP_RANGE(&p->ranges, "tokenize");
    free(from->a->text_ids);
    from->a->text_ids = NULL;
    code = tokenize_prompt(p->s->m, from->a);
    k->text_ids = from->a->text_ids;
    vp_range_end(&p->ranges);
    return code;
}
/* One request with every launch timed. record: into the table and, where one is open, into the trace; else it only warms up. */
static int profile_pass(profiler *p, work *base, const profile_source *from, timing *t, int64_t step, int record) {
    vp_error error = {VP_OK, -1, "", ""};
    work k = *base;
    int64_t begin_ns, end_ns;
    vp_result r;
    int code;
    vp_ranges_clear(&p->ranges);
    k.timing = VP_TIMING_KERNEL;
    k.launches = p->launches;
    k.launch_capacity = p->launch_capacity;
    if (p->trace) {
        k.spans = p->spans;
        k.span_capacity = p->span_capacity;
    }
    k.ranges = &p->ranges;
    begin_ns = vp_clock_ns();
    code = prepare_pass(p, from, &k);
    base->text_ids = k.text_ids;
    if (code) return code;
    if ((r = request_run(p->s, &k, t, &error)) != VP_OK) return complain_result(exit_code_of(r), NULL, r, &error);
    end_ns = vp_clock_ns();
    if (!record) {
        if (t->launch_count <= p->launch_capacity) return 0;
        p->launch_capacity = t->launch_count;
        p->launches = resize(p->launches, (size_t)p->launch_capacity, sizeof *p->launches);
        return 0;
    }
    if ((r = add_pass(p, t, end_ns - begin_ns)) != VP_OK) return complain(EXIT_WORK, "the table of operations: %s", vp_result_text(r));
    return p->trace ? trace_pass(p, t, step, begin_ns, end_ns) : 0;
}

/* ---- run --profile */
static vp_schedule schedule_of(const options *o) {
    vp_schedule s = vp_schedule_default();
    s.skip_first = number_of(o, "skip_first");
    s.wait = number_of(o, "wait");
    s.warmup = number_of(o, "warmup");
    s.active = number_of(o, "active");
    s.repeat = number_of(o, "repeat");
    s.every_n_steps = number_of(o, "schedule_every_n_steps");
    return s;
}
/* How many requests: --num_runs, or as many as the schedule's cycles need. 0 or an exit code. */
static int plan_steps(const options *o, vp_schedule *s, int64_t *steps) {
    vp_error error = {VP_OK, -1, "", ""};
    int no_warmup = 0;
    int64_t cycle;
    vp_result r;
    *s = schedule_of(o);
    if ((r = vp_schedule_check(s, &no_warmup, &error)) != VP_OK) return complain_result(EXIT_USAGE, "schedule", r, &error);
    cycle = s->wait + s->warmup + s->active;
    if (given(o, "num_runs")) *steps = number_of(o, "num_runs");
    else if (!s->repeat) return complain(EXIT_USAGE, "--repeat 0 goes on until the runs end: say how many with --num_runs");
    else *steps = s->skip_first + (s->repeat - 1) * (s->every_n_steps ? s->every_n_steps : cycle) + cycle;
    if (*steps > 1000000) return complain(EXIT_USAGE, "this schedule has %lld requests: at most 1000000", (long long)*steps);
    if (no_warmup)
        complain(0, "--warmup 0: the first recorded request pays for what starts up in this mode; --warmup 1 keeps that out of the table");
    return 0;
}
static int check_groups(const options *o) {
    const option_value *groups = opt(o, "group_by");
    for (size_t i = 0; i < groups->count; i++) {
        size_t k = 0;
        while (k < sizeof GROUPS / sizeof *GROUPS && strcmp(groups->items[i], GROUPS[k].word)) k++;
        if (k == sizeof GROUPS / sizeof *GROUPS)
            return complain(EXIT_USAGE, "--group_by: \"%s\" is none of: none shape stage part block step place", groups->items[i]);
    }
    return check_sort_key(text_of(o, "sort_by"));
}
int profile_check(const options *o) {
    static const char *const only[] = {"sort_by", "group_by", "group_by_input_shape", "group_by_stack_n", "row_limit", "profile_format", "trace",
        "output_dir", "chrome_trace", "trace_max_bytes", "record_shapes", "profile_memory", "with_stack", "wait", "warmup", "active", "repeat",
        "skip_first", "schedule_every_n_steps", "cost", "cost_rounds", "output"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !given(o, "profile"); i++)
        if (given(o, only[i])) return complain(EXIT_USAGE, "--%s goes with --profile", only[i]);
    if (given(o, "trace") && given(o, "output_dir")) return complain(EXIT_USAGE, "--trace FILE and --output_dir DIR exclude each other");
    if (given(o, "chrome_trace") && !given(o, "output_dir")) return complain(EXIT_USAGE, "--chrome_trace needs --output_dir DIR");
    if (given(o, "cost_rounds") && !given(o, "cost")) return complain(EXIT_USAGE, "--cost_rounds goes with --cost");
    if (given(o, "dump") && given(o, "profile")) return complain(EXIT_USAGE, "--dump and --profile exclude each other: copying would be timed");
    if (given(o, "json") && given(o, "profile_format"))
        return complain(EXIT_USAGE, "--json has a form of its own: leave --profile_format out (--profile_format json is the bare table)");
    return check_groups(o);
}
static int32_t stack_frames_of(const options *o) {
    return given(o, "group_by_stack_n") ? (int32_t)number_of(o, "group_by_stack_n") : given(o, "with_stack") ? 1 : 0;
}

/* The loop of requests: what the schedule says of each. A cycle that the loop's end or Ctrl-C cuts short is saved as well. */
static int profile_loop(profiler *p, run_state *x, const vp_schedule *schedule, int64_t steps) {
    profile_source from = {&x->a, &x->image};
    vp_error error = {VP_OK, -1, "", ""};
    vp_schedule_step now;
    int64_t in_cycle = 0;
    int code = 0;
    for (int64_t i = 0; i < steps && !code && !interrupted; i++) {
        vp_result r = vp_schedule_at(schedule, i, &now);
        int record = r == VP_OK && (now.state == VP_SCHEDULE_RECORD || now.state == VP_SCHEDULE_RECORD_AND_SAVE);
        if (r != VP_OK) return complain(EXIT_USAGE, "schedule: %s", vp_result_text(r));
        show_progress("request %lld of %lld: %s", (long long)i + 1, (long long)steps, vp_schedule_state_name(now.state));
        if (record && !in_cycle++) {
            char *path = NULL;
            if ((code = trace_path_of(p, NULL, &path)) == 0 && path) code = trace_begin(p, path);
            free(path);
        }
        if (now.state == VP_SCHEDULE_NONE && !code) {
            if ((r = request_run(&x->s, &x->k, x->runs, &error)) != VP_OK) code = complain_result(exit_code_of(r), NULL, r, &error);
        } else if (!code) code = profile_pass(p, &x->k, &from, x->runs, i, record);
        if (now.ends_cycle) {
            in_cycle = 0;
            if (!code) code = trace_end(p);
        }
    }
    if (in_cycle && !code) {
        text_list_add(&p->notes, "the last cycle was cut short after %lld of %lld active requests: what it recorded is saved", (long long)in_cycle,
                      (long long)schedule->active);
        code = trace_end(p);
    }
    return code;
}

/* ---- what this mode costs: whole requests in each mode, in random order within every round, held against the bare one of the same round */
enum { COST_OFF, COST_STAGE, COST_OP, COST_TRACE };

static const char *const COST_NAMES[COST_MODES] = {"off", "stage", "op", "trace"};

typedef struct cost_report { double *ns[COST_MODES]; size_t rounds; vp_paired paired[COST_MODES]; } cost_report;
static void cost_free(cost_report *c) { for (int i = 0; i < COST_MODES; i++) free(c->ns[i]); }
/* From the start of a request until the next could start: with what the mode does with its records. */
static int cost_run(profiler *p, work *k, timing *t, int mode, int64_t step, double *ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = p->trace;
    int64_t begin = vp_clock_ns();
    int code;
    if (mode >= COST_OP) {
        if (mode == COST_OP) p->trace = NULL;
        code = profile_pass(p, k, NULL, t, step, 1);
        p->trace = trace;
    } else {
        vp_result r;
        k->timing = mode == COST_OFF ? VP_TIMING_OFF : VP_TIMING_STAGE;
        r = request_run(p->s, k, t, &error);
        code = r == VP_OK ? 0 : complain_result(exit_code_of(r), NULL, r, &error);
        k->timing = VP_TIMING_STAGE;
    }
    *ns = (double)(vp_clock_ns() - begin);
    return code;
}
/* The same request in all modes. A profiler of its own, so that these runs are in no table; its trace is thrown away. */
static int cost_measure(const options *o, session *s, work *k, timing *t, cost_report *c) {
    const char *temporary = getenv("TMPDIR");
    char path[600];
    uint64_t state = (uint64_t)number_of(o, "seed");
    profiler *p = zeroed(1, sizeof *p);
    double *scratch;
    int code;
    c->rounds = (size_t)number_of(o, "cost_rounds");
    scratch = zeroed(c->rounds, sizeof *scratch);
    for (int i = 0; i < COST_MODES; i++) c->ns[i] = zeroed(c->rounds, sizeof *c->ns[i]);
    snprintf(path, sizeof path, "%.500s/vlmprof-cost-%ld.pt.trace.json", temporary ? temporary : "/tmp", (long)getpid());
    code = profiler_open(p, o, s, k->new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = trace_begin(p, path);
    for (int mode = COST_MODES; mode-- > 0 && !code;) code = cost_run(p, k, t, mode, 0, scratch); /* each mode once untimed */
    for (size_t round = 0; round < c->rounds && !code && !interrupted; round++) {
        int order[COST_MODES] = {0, 1, 2, 3};
        show_progress("cost of the profiler: round %zu of %zu", round + 1, c->rounds);
        for (int i = COST_MODES - 1; i > 0; i--) {
            int other, held;
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            other = (int)((state >> 33) % (uint64_t)(i + 1));
            held = order[i];
            order[i] = order[other];
            order[other] = held;
        }
        for (int i = 0; i < COST_MODES && !code; i++) code = cost_run(p, k, t, order[i], (int64_t)round + 1, &c->ns[order[i]][round]);
    }
    if (interrupted && !code) c->rounds = 0;
    for (int i = 0; i < COST_MODES && !code && c->rounds; i++) vp_statistics_paired(c->ns[COST_OFF], c->ns[i], c->rounds, scratch, &c->paired[i]);
    profiler_free(p); /* an unfinished trace leaves no file */
    free(p);
    free(scratch);
    return code;
}
static void write_cost(text_buffer *out, const cost_report *c) {
    char line[300];
    snprintf(line, sizeof line, "\ncost of the profiler: %zu rounds of one request in each mode, in random order, held against off; 95 %% intervals\n"
                                "%-8s %12s %12s %30s %30s\n", c->rounds, "mode", "mean ms", "median ms",
             "mean of differences, %", "median of differences, %");
    text_add_string(out, line);
    for (int i = 0; i < COST_MODES; i++) {
        const vp_paired *p = &c->paired[i];
        double *sorted = resize(NULL, c->rounds, sizeof *sorted);
        char mean[64] = "-", median[64] = "-";
        memcpy(sorted, c->ns[i], c->rounds * sizeof *sorted);
        if (i) {
            snprintf(mean, sizeof mean, "%+.2f [%+.2f, %+.2f]", 100 * p->relative_mean.value, 100 * p->relative_mean.low,
                     100 * p->relative_mean.high);
            snprintf(median, sizeof median, "%+.2f [%+.2f, %+.2f]", 100 * p->relative_median.value, 100 * p->relative_median.low,
                     100 * p->relative_median.high);
        }
        snprintf(line, sizeof line, "%-8s %12.3f %12.3f %30s %30s\n", COST_NAMES[i], vp_statistics_mean(c->ns[i], c->rounds) / 1e6,
                 median_of(sorted, c->rounds).value / 1e6, mean, median);
        text_add_string(out, line);
        free(sorted);
    }
}
static void put_estimate_percent(vp_json_writer *w, const char *key, vp_estimate e) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_double(w, "value", 100 * e.value);
    put_double(w, "low", 100 * e.low);
    put_double(w, "high", 100 * e.high);
    vp_json_end_object(w);
}
static void put_cost(vp_json_writer *w, const cost_report *c) {
    vp_json_key(w, "cost");
    if (!c->rounds) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rounds", (int64_t)c->rounds);
    for (int i = 0; i < COST_MODES; i++) {
        vp_json_key(w, COST_NAMES[i]);
        vp_json_begin_object(w);
        put_double(w, "mean_ms", vp_statistics_mean(c->ns[i], c->rounds) / 1e6);
        if (i) {
            put_estimate_percent(w, "mean_difference_percent", c->paired[i].relative_mean);
            put_estimate_percent(w, "median_difference_percent", c->paired[i].relative_median);
        }
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

/* ---- telling it */
static vp_ops_print_options print_options_of(const options *o) {
    vp_ops_print_options how = vp_ops_print_options_default();
    how.row_limit = number_of(o, "row_limit");
    how.with_flops = how.with_rates = 1;
    how.with_memory = given(o, "profile_memory");
    return how;
}
static void write_stages_closure(text_buffer *out, const profiler *p) {
    double stages = 0, ops = 0, n = (double)p->steps;
    char line[200];
    snprintf(line, sizeof line, "\n%-12s %14s %14s %14s %8s   mean of %lld request%s\n", "stage", "device ms", "operations ms", "idle ms", "idle %",
             (long long)p->steps, p->steps == 1 ? "" : "s");
    text_add_string(out, line);
    for (int i = 0; i <= VP_STAGE_COUNT; i++) {
        double stage = i < VP_STAGE_COUNT ? p->stage_ns[i] : stages, op = i < VP_STAGE_COUNT ? p->op_ns[i] : ops;
        if (!(stage > 0)) continue;
        snprintf(line, sizeof line, "%-12s %14.4f %14.4f %14.4f %8.2f\n", i < VP_STAGE_COUNT ? vp_stage_name((vp_stage)i) : "sum", stage / n / 1e6,
                 op / n / 1e6, (stage - op) / n / 1e6, 100 * (stage - op) / stage);
        text_add_string(out, line);
        if (i == VP_STAGE_COUNT) break;
        stages += stage;
        ops += op;
    }
    snprintf(line, sizeof line, "%-12s %14.4f   whole requests, image file to text, with the stamps of this mode\n", "step", p->total_ns / n / 1e6);
    text_add_string(out, line);
}
static int64_t peak_resident_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : (int64_t)usage.ru_maxrss * 1024;
}
static void write_memory(text_buffer *out, const profiler *p) {
    char line[200];
    vp_memory_block b;
    text_add_string(out, "\nmemory                          bytes   where\n");
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b); i++) {
        snprintf(line, sizeof line, "%-20s %16llu   %s\n", b.name, (unsigned long long)b.bytes, p->on_gpu && b.on_device ? "device" : "host");
        text_add_string(out, line);
    }
    snprintf(line, sizeof line, "%-20s %16lld   host: the most that this process had resident\n", "peak", (long long)peak_resident_bytes());
    text_add_string(out, line);
}
static void write_profile_notes(text_buffer *out, const profiler *p) {
    char line[300];
    snprintf(line, sizeof line, "ceilings measured on this device: reading %.4g GB/s, products %.4g TFLOP/s\n", p->ops.ceilings.bytes_per_s / 1e9,
             p->ops.ceilings.flops_per_s / 1e12);
    text_add_string(out, line);
    if (p->ops.dropped_calls + p->lost_launches) {
        snprintf(line, sizeof line, "%lld calls are in no row: there was no room\n", (long long)(p->ops.dropped_calls + p->lost_launches));
        text_add_string(out, line);
    }
    if (p->negative_idle) {
        snprintf(line, sizeof line, "%lld stages have operations that add up to more than the stage\n", (long long)p->negative_idle);
        text_add_string(out, line);
    }
}
static vp_result write_table(text_buffer *out, const profiler *p, const char *format) {
    vp_ops_print_options how = print_options_of(p->o);
    vp_json_writer w;
    vp_result r;
    if (!strcmp(format, "csv")) return vp_ops_print_csv(&p->ops, text_sink, out);
    if (!strcmp(format, "cprofile")) return vp_ops_print_cprofile(&p->ops, &how, text_sink, out);
    if (!strcmp(format, "torch")) return vp_ops_print_torch(&p->ops, &how, text_sink, out);
    vp_json_writer_init_sink(&w, text_sink, out, 1);
    vp_ops_write_json(&w, &p->ops);
    r = vp_json_finish(&w);
    text_add_string(out, "\n");
    return r;
}
static void put_profile_memory(vp_json_writer *w, const profiler *p) {
    vp_memory_block b;
    vp_json_key(w, "memory");
    vp_json_begin_object(w);
    vp_json_key(w, "blocks");
    vp_json_begin_array(w);
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b); i++) {
        vp_json_begin_object(w);
        put_text(w, "name", b.name);
        put_int(w, "bytes", (int64_t)b.bytes);
        put_bool(w, "on_device", p->on_gpu && b.on_device);
        put_int(w, "bytes_a_position", (int64_t)b.bytes_a_position);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    put_int(w, "peak_resident_bytes", peak_resident_bytes());
    vp_json_end_object(w);
}
static void put_profile(vp_json_writer *w, const profiler *p, const run_state *x, const cost_report *c) {
    double n = (double)p->steps;
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-profile-1");
    put_text(w, "model", x->m.name);
    put_bool(w, "synthetic", x->m.synthetic);
    put_answer(w, "answer", x->runs);
    put_text(w, "timing", "op");
    put_int(w, "steps", p->steps);
    put_double(w, "step_ms", p->total_ns / n / 1e6);
    put_int(w, "lost_launches", p->lost_launches);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!(p->stage_ns[i] > 0)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        put_double(w, "device_ms", p->stage_ns[i] / n / 1e6);
        put_double(w, "operations_ms", p->op_ns[i] / n / 1e6);
        put_double(w, "idle_ms", (p->stage_ns[i] - p->op_ns[i]) / n / 1e6);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    put_profile_memory(w, p);
    put_cost(w, c);
    vp_json_key(w, "ops");
    vp_ops_write_json(w, &p->ops);
    vp_json_key(w, "provenance");
    vp_json_begin_object(w);
    put_provenance(w, p->o, p->s->engine);
    vp_json_end_object(w);
    put_config(w, p->o);
    vp_json_end_object(w);
}
static int profile_tell(profiler *p, const run_state *x, const cost_report *c) {
    const options *o = p->o;
    const char *format = text_of(o, "profile_format"), *file = text_of(o, "output");
    const char *key = text_of(o, "sort_by") ? text_of(o, "sort_by") : !strcmp(format, "cprofile") ? "tottime"
                    : p->on_gpu ? "self_device_time_total" : "self_cpu_time_total";
    int is_text = !given(o, "json") && (!strcmp(format, "torch") || !strcmp(format, "cprofile"));
    text_buffer table = {NULL, 0, 0}, rest = {NULL, 0, 0};
    vp_json_writer w;
    vp_result r = vp_ops_sort(&p->ops, key);
    int code = 0;
    if (r == VP_OK && !given(o, "json")) r = write_table(&table, p, format);
    else if (r == VP_OK) {
        vp_json_writer_init_sink(&w, text_sink, &table, 2);
        put_profile(&w, p, x, c);
        r = vp_json_finish(&w);
        text_add_string(&table, "\n");
    }
    if (r != VP_OK) code = complain(EXIT_WORK, "the table of operations: %s", vp_result_text(r));
    if (!code && (is_text || file) && !given(o, "json")) {
        write_stages_closure(&rest, p);
        if (given(o, "profile_memory")) write_memory(&rest, p);
        write_profile_notes(&rest, p);
        if (c->rounds) write_cost(&rest, c);
    }
    if (!code && file) code = file_write_text(file, &table);
    else if (!code) fwrite(table.data, 1, table.bytes, stdout); /* main checks stdout */
    if (!code && rest.bytes) fwrite(rest.data, 1, rest.bytes, stdout);
    free(table.data);
    free(rest.data);
    return code;
}
int profile_run(const options *o, run_state *x) {
    profiler *p = zeroed(1, sizeof *p);
    cost_report cost;
    vp_schedule schedule;
    vp_schedule_sum sum;
    int64_t steps = 0;
    int code = plan_steps(o, &schedule, &steps);
    memset(&cost, 0, sizeof cost);
    end_in_order(); /* Ctrl-C: the request that runs is finished, and what was recorded is saved and told */
    if (!code && (vp_schedule_count(&schedule, steps, &sum) != VP_OK || sum.recorded_steps + sum.partial_steps < 1))
        code = complain(EXIT_USAGE, "none of %lld request%s would be recorded: this schedule skips the first %lld", (long long)steps,
                        steps == 1 ? "" : "s", (long long)(schedule.skip_first + schedule.wait + schedule.warmup));
    x->run_count = 1;
    x->runs = timings_make(1, x->k.new_tokens);
    if (!code) code = engine_open(o, &x->m, sequence_of(&x->k) + x->k.new_tokens, x->k.layout ? x->layout.views : 1, &x->s.engine);
    x->s.m = &x->m;
    if (!code) code = profiler_open(p, o, &x->s, x->k.new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = profile_loop(p, x, &schedule, steps);
    if (!code && !interrupted && given(o, "cost")) code = cost_measure(o, &x->s, &x->k, x->runs, &cost);
    close_progress();
    for (size_t i = 0; i < p->notes.count; i++) complain(0, "%s", p->notes.items[i]);
    if (!code && p->steps) code = profile_tell(p, x, &cost);
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    cost_free(&cost);
    profiler_free(p);
    free(p);
    return code;
}

/* ---- sweep --use_profiler */
int profile_check_sweep(const options *o) {
    static const char *const only[] = {"use_profiler_on_all_samples", "sort_by", "group_by", "group_by_input_shape", "group_by_stack_n", "row_limit",
        "trace", "trace_max_bytes", "record_shapes", "profile_memory", "with_stack"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !given(o, "use_profiler"); i++)
        if (given(o, only[i])) return complain(EXIT_USAGE, "--%s goes with --use_profiler", only[i]);
    return check_groups(o);
}
/* Is the file of this point there, written by this configuration and sample? The index of a configuration changes when the grid does. */
static int is_profiled(const char *path, const char *head) {
    char line[600] = "";
    FILE *f = fopen(path, "rb");
    int same = f && fgets(line, sizeof line, f) && !strncmp(line, head, strlen(head)) && line[strlen(head)] == '\n';
    if (f) fclose(f);
    return same;
}
int profile_point(const options *o, session *s, const work *base, timing *run, const profile_place *profiled) {
    char name[120], worker[120], head[500];
    text_buffer out = {NULL, 0, 0};
    work k = *base;
    char *path, *file = NULL;
    profiler *p;
    int code;
    if (!given(o, "use_profiler") || !(profiled->is_first || given(o, "use_profiler_on_all_samples"))) return 0;
    snprintf(name, sizeof name, "profiler_results_config_%zu_sample_%lld.txt", profiled->configuration, (long long)profiled->sample_id);
    snprintf(worker, sizeof worker, "config_%zu_sample_%lld", profiled->configuration, (long long)profiled->sample_id);
    snprintf(head, sizeof head, "%.400s, sample %lld", profiled->file_name, (long long)profiled->sample_id);
    path = join_path(text_of(o, "output_dir"), name);
    code = is_profiled(path, head);
    free(path);
    if (code) return 0;
    p = zeroed(1, sizeof *p);
    code = profiler_open(p, o, s, k.new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = profile_pass(p, &k, NULL, run, 0, 0);
    if (!code && (code = trace_path_of(p, worker, &file)) == 0 && file) code = trace_begin(p, file);
    if (!code) code = profile_pass(p, &k, NULL, run, 0, 1);
    if (!code) code = trace_end(p);
    if (!code && p->steps) {
        vp_ops_sort(&p->ops, text_of(o, "sort_by") ? text_of(o, "sort_by") : p->on_gpu ? "self_device_time_total" : "self_cpu_time_total");
        text_add_string(&out, head);
        text_add_string(&out, "\n");
        if (write_table(&out, p, "torch") != VP_OK) code = EXIT_WORK;
        write_stages_closure(&out, p);
        if (given(o, "profile_memory")) write_memory(&out, p);
        write_profile_notes(&out, p);
        if (!code) code = file_write_whole(text_of(o, "output_dir"), name, out.data, out.bytes);
    }
    free(file);
    free(out.data);
    profiler_free(p);
    free(p);
    return code == EXIT_OUTPUT ? code : 0;
}
