/* test_trace.c - the writer of Chrome traces. Every file is read back with vp_json and checked against the needs of its readers: order of the members, flows and
 * correlations in pairs, slices that nest on every track. Also the writer's promises: byte limit, full disk, names, closing twice; and requests of the engine on this
 * backend, whose stages and launches must come back to the nanosecond.
 * links: engine */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_ranges.h"
#include "vlmprof_stages.h"
#include "vlmprof_engine.h"
#include "vlmprof_torch_trace.h"

#include "support/check.h"
#include "support/small_request.h"
#include "support/folder.h"
#include <signal.h>
#include <sys/resource.h>

#ifdef TEST_EMULATED
void cuda_on_cpu_reset(uint64_t seed);
#endif
#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#define ON_GPU 0
#else
#define ON_GPU 1
#endif

/* ---- a trace as read back ---- */
enum { LONGEST_STACK = 64 };
typedef struct event {
    char phase, category[24], name[96], process[24], thread[24];
    int64_t begin, ns, id, correlation, external_id;
    uint32_t node, args, order;
} event;
typedef struct file {
    char *text;
    size_t bytes;
    vp_json_node *nodes;
    vp_json json;
    event *events;
    size_t count;
} file;
static void forget(file *f) {
    FREE_ALL(f->text, f->nodes, f->events);
    memset(f, 0, sizeof *f);
}
/* "12.345" -> 12345: exactly three decimals; -1 otherwise */
static int64_t ns_of(const file *f, uint32_t node) {
    const vp_json_node *n = node == VP_JSON_NONE ? NULL : &f->json.nodes[node];
    int64_t value = 0;
    if (!n || n->type != VP_JSON_NUMBER || n->bytes < 5 || f->text[n->start + n->bytes - 4] != '.') return -1;
    for (uint64_t i = 0; i < n->bytes; i++) {
        const char c = f->text[n->start + i];
        if (c == '.' && i == n->bytes - 4) continue;
        if (c < '0' || c > '9') return -1;
        value = value * 10 + (c - '0');
    }
    return value;
}
static void text_at(const file *f, uint32_t node, char *out, size_t capacity) {
    int64_t number;
    out[0] = 0;
    if (vp_json_text(&f->json, node, out, capacity, NULL) != VP_OK && vp_json_to_int(&f->json, node, &number) == VP_OK)
        snprintf(out, capacity, "%lld", (long long)number);
}
static int64_t int_at(const file *f, uint32_t node) {
    int64_t value = -1;
    if (vp_json_to_int(&f->json, node, &value) != VP_OK) return -1;
    return value;
}
static void read_event(file *f, uint32_t node, event *e) {
    char phase[8];
    memset(e, 0, sizeof *e);
    e->node = node; e->args = vp_json_get(&f->json, node, "args");
    text_at(f, vp_json_get(&f->json, node, "ph"), phase, sizeof phase);
    e->phase = phase[0];
    text_at(f, vp_json_get(&f->json, node, "cat"), e->category, sizeof e->category);
    text_at(f, vp_json_get(&f->json, node, "name"), e->name, sizeof e->name);
    text_at(f, vp_json_get(&f->json, node, "pid"), e->process, sizeof e->process);
    text_at(f, vp_json_get(&f->json, node, "tid"), e->thread, sizeof e->thread);
    e->begin = ns_of(f, vp_json_get(&f->json, node, "ts")); e->ns = ns_of(f, vp_json_get(&f->json, node, "dur"));
    e->id = int_at(f, vp_json_get(&f->json, node, "id")); e->correlation = int_at(f, vp_json_get(&f->json, e->args, "correlation"));
    e->external_id = int_at(f, vp_json_get(&f->json, e->args, "External id"));
}
static int load(const char *path, file *f) {
    size_t needed = 0, i = 0;
    vp_error error;
    memset(f, 0, sizeof *f);
    f->text = check_read(path, &f->bytes);
    if (!CHECK(f->text != NULL)) return 0;
    if (!CHECK_INT(vp_json_parse(f->text, f->bytes, NULL, 0, NULL, &needed, &error), VP_ERR_CAPACITY)) return 0;
    f->nodes = (vp_json_node *)malloc(needed * sizeof *f->nodes);
    if (!CHECK_INT(vp_json_parse(f->text, f->bytes, f->nodes, needed, &f->json, NULL, &error), VP_OK)) return 0;
    uint32_t events = vp_json_get(&f->json, 0, "traceEvents");
    if (!CHECK(events != VP_JSON_NONE)) return 0;
    f->count = f->nodes[events].count; f->events = (event *)calloc(f->count + 1, sizeof *f->events);
    for (uint32_t node = events + 1; i < f->count; node = f->nodes[node].end, i++) {
        read_event(f, node, &f->events[i]);
        f->events[i].order = (uint32_t)i;
    }
    return 1;
}
static int has_arg(const file *f, const event *e, const char *key) { return vp_json_get(&f->json, e->args, key) != VP_JSON_NONE; }
static int64_t arg(const file *f, const event *e, const char *key) { return int_at(f, vp_json_get(&f->json, e->args, key)); }

/* ---- properties of every trace ---- */
static int by_track(const void *a, const void *b) {
    const event *x = (const event *)a, *y = (const event *)b;
    int order = strcmp(x->process, y->process);
    if (!order) order = strcmp(x->thread, y->thread);
    if (!order) order = (x->begin > y->begin) - (x->begin < y->begin);
    if (!order) order = (x->ns < y->ns) - (x->ns > y->ns);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}
/* A slice begins and ends within the one around it. If both begin at once, the outer one is first in the file. */
static void check_nesting(const file *f) {
    event *slices = (event *)malloc((f->count + 1) * sizeof *slices);
    const event *open[LONGEST_STACK];
    size_t count = 0, depth = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->events[i].phase == 'X') slices[count++] = f->events[i];
    qsort(slices, count, sizeof *slices, by_track);
    for (size_t i = 0; i < count; i++) {
        const event *e = &slices[i];
        if (i && (strcmp(e->process, slices[i - 1].process) || strcmp(e->thread, slices[i - 1].thread))) depth = 0;
        while (depth && open[depth - 1]->begin + open[depth - 1]->ns <= e->begin) depth--;
        if (depth && !check_note(e->begin + e->ns <= open[depth - 1]->begin + open[depth - 1]->ns, __FILE__, __LINE__,
                                 "%s (%lld + %lld) does not nest in %s (%lld + %lld)", e->name, (long long)e->begin, (long long)e->ns,
                                 open[depth - 1]->name, (long long)open[depth - 1]->begin, (long long)open[depth - 1]->ns)) break;
        if (!CHECK(depth < LONGEST_STACK)) break;
        open[depth++] = e;
    }
    free(slices);
}
static int by_id(const void *a, const void *b) {
    const event *x = (const event *)a, *y = (const event *)b;
    const int64_t p = x->phase == 'X' ? x->correlation : x->id, q = y->phase == 'X' ? y->correlation : y->id;
    return p != q ? (p > q) - (p < q) : strcmp(x->category, y->category) ? strcmp(x->category, y->category) : (x->phase < y->phase) - (x->phase > y->phase);
}
static int by_external(const void *a, const void *b) {
    const event *x = (const event *)a, *y = (const event *)b;
    return (x->external_id > y->external_id) - (x->external_id < y->external_id);
}
/* Each launch is four events: flow start, flow end, call, device slice. Returns their number. */
static size_t check_flows(const file *f) {
    event *linked = (event *)malloc((f->count + 1) * sizeof *linked), *ops = (event *)malloc((f->count + 1) * sizeof *ops);
    size_t count = 0, op_count = 0;
    for (size_t i = 0; i < f->count; i++) {
        const event *e = &f->events[i];
        if (e->phase == 's' || e->phase == 'f' || e->correlation >= 0) linked[count++] = *e;
        if (!strcmp(e->category, "cpu_op")) ops[op_count++] = *e;
    }
    qsort(linked, count, sizeof *linked, by_id);
    qsort(ops, op_count, sizeof *ops, by_external);
    for (size_t i = 1; i < op_count; i++) CHECK(ops[i].external_id != ops[i - 1].external_id);
    CHECK_INT(count % 4, 0);
    for (size_t i = 0; i + 3 < count; i += 4) { /* ac2g s, ac2g f, cuda_runtime, then gpu_memcpy or kernel, in order of their names */
        const event *start = &linked[i], *end = &linked[i + 1], *call = &linked[i + 2], *on = &linked[i + 3], *swap;
        if (strcmp(call->category, "cuda_runtime")) { swap = call; call = on; on = swap; }
        if (!CHECK(start->phase == 's' && end->phase == 'f' && !strcmp(call->category, "cuda_runtime"))) break;
        CHECK(!strcmp(on->category, "kernel") || !strcmp(on->category, "gpu_memcpy"));
        CHECK(start->id == end->id && start->id == call->correlation && call->correlation == on->correlation);
        CHECK(i < 4 || linked[i - 4].correlation != call->correlation);
        CHECK(start->begin == call->begin && !strcmp(start->process, call->process) && !strcmp(start->thread, call->thread));
        CHECK(end->begin == on->begin && !strcmp(end->process, on->process) && !strcmp(end->thread, on->thread) && !strcmp(on->thread, "7"));
        CHECK(on->begin > call->begin);
        CHECK(call->external_id > 0 && call->external_id == on->external_id && bsearch(call, ops, op_count, sizeof *ops, by_external));
        CHECK(arg(f, on, "device") == strtol(on->process, NULL, 10) && arg(f, on, "stream") == 7);
        CHECK_INT(arg(f, call, "cbid"), strcmp(call->name, "cudaLaunchKernel") ? 41 : 211);
        CHECK(strcmp(call->name, "cudaLaunchKernel") == 0 || strcmp(call->name, "cudaMemcpyAsync") == 0);
        CHECK(strcmp(on->category, "gpu_memcpy") || (!strncmp(on->name, "Memcpy ", 7) && arg(f, on, "bytes") >= 0
                                                      && has_arg(f, on, "memory bandwidth (GB/s)")));
    }
    FREE_ALL(linked, ops);
    return count / 4;
}
/* the head's members in order; only the name after the events, and no bracket */
static void check_members(const file *f) {
    static const char *const first[] = {"schemaVersion", "deviceProperties"},
                      *const last[] = {"distributedInfo", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"};
    const uint32_t members = f->nodes[0].count, events = vp_json_get(&f->json, 0, "traceEvents");
    uint32_t node = 1, i;
    CHECK_INT(f->nodes[0].type, VP_JSON_OBJECT);
    for (i = 0; i < members; i++) {
        if (i < 2) CHECK(vp_json_equals(&f->json, node, first[i]));
        if (i + 5 >= members) CHECK(vp_json_equals(&f->json, node, last[i + 5 - members]));
        node = f->nodes[node + 1].end;
    }
    CHECK(memchr(f->text + f->nodes[events].start + f->nodes[events].bytes, ']', f->bytes - (size_t)(f->nodes[events].start + f->nodes[events].bytes)) == NULL);
    const char *rank = strstr(f->text, "\"rank\": ");
    const char *line = strstr(f->text, "\"distributedInfo\"");
    CHECK(rank && line && rank > line && !memchr(line, '\n', (size_t)(rank - line)));
}
/* Steps are consecutive. After several, and at the end, there is the empty slice that HTA needs. Its name contains "ProfilerStep" but begins differently, so that readers
 * do not take it for a step. Returns the number of steps. */
static int64_t check_steps(const file *f) {
    const event *last = NULL, *closing = NULL;
    int64_t steps = 0, end = 0;
    for (size_t i = 0; i < f->count; i++) {
        const event *e = &f->events[i];
        if (!strncmp(e->name, "end of ProfilerStep#", 20)) {
            CHECK(!closing);
            closing = e;
            continue;
        }
        if (e->phase == 'X' && strcmp(e->category, "Trace") && e->begin + e->ns > end) end = e->begin + e->ns;
        if (strncmp(e->name, "ProfilerStep#", 13)) continue;
        CHECK_TEXT(e->category, "user_annotation");
        CHECK(!last || (e->begin >= last->begin + last->ns && strtoll(e->name + 13, NULL, 10) > strtoll(last->name + 13, NULL, 10)));
        last = e;
        steps++;
    }
    CHECK((closing != NULL) == (steps > 1));
    if (closing) {
        CHECK(closing->ns == 0 && closing->begin > end);
        CHECK_TEXT(closing->category, "user_annotation");
        CHECK_TEXT(closing->name + 7, last->name);
    }
    return steps;
}
typedef struct trace_facts { size_t launches; int64_t steps; } trace_facts;
static trace_facts check_whole(const file *f) {
    trace_facts facts;
    size_t recorded = 0, ends = 0;
    for (size_t i = 0; i < f->count; i++) {
        const event *e = &f->events[i];
        CHECK(e->phase && e->name[0]);
        CHECK(strchr("XMiCsf", e->phase) != NULL);
        CHECK(e->begin >= 0);
        if (e->phase == 'X') CHECK(e->category[0] && e->ns >= 0);
        if (e->phase == 'f') CHECK(vp_json_equals(&f->json, vp_json_get(&f->json, e->node, "bp"), "e"));
        recorded += e->phase == 'X' && !strcmp(e->category, "Trace") && !strcmp(e->name, "PyTorch Profiler (0)");
        ends += i + 1 == f->count && !strcmp(e->name, "Record Window End");
    }
    CHECK_INT(recorded, 1);
    CHECK_INT(ends, 1);
    check_members(f);
    check_nesting(f);
    facts.launches = check_flows(f); facts.steps = check_steps(f);
    return facts;
}
static trace_facts check_file(const char *path, file *f) {
    trace_facts none = {0, 0};
    return load(path, f) ? check_whole(f) : none;
}
static int there(const char *path) { return access(path, F_OK) == 0; }
static const event *find(const file *f, const char *category, const char *name, size_t nth) {
    for (size_t i = 0; i < f->count; i++)
        if (!strcmp(f->events[i].name, name) && (!category || !strcmp(f->events[i].category, category)) && !nth--) return &f->events[i];
    return NULL;
}
static size_t count_of(const file *f, const char *category) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) count += strcmp(f->events[i].category, category) == 0;
    return count;
}

/* ---- synthetic requests ---- */
enum { BASE = 1000000, MOST = 4096 };
static vp_launch made[MOST];
static vp_stage_times times;
static int64_t step_times[256];
static vp_trace_device gpu;
static vp_torch_trace_options options_for(const char *path) {
    vp_torch_trace_options o = vp_torch_trace_options_default();
    gpu = vp_trace_device_of(0, "Made up", UINT64_C(80000000000), 9, 0, 132);
    o.path = path; o.base_ns = BASE; o.base_unix_ns = INT64_C(1700000000123456789); o.process = o.thread = 4242; o.devices = &gpu; o.device_count = 1;
    return o;
}
static vp_trace *opened(const vp_torch_trace_options *o) {
    vp_trace *trace = NULL;
    CHECK_INT(vp_torch_trace_open(o, &trace, NULL), VP_OK);
    return trace;
}
/* A request of `steps` decode steps: kernels of `ns` without gaps, sent every `host` ns. Returns the number of launches. */
static int64_t make_run(vp_trace_run *run, int64_t begin, int32_t steps, int64_t ns, int64_t host, int32_t per_stage) {
    int64_t count = 0;
    memset(run, 0, sizeof *run);
    memset(&times, 0, sizeof times);
    for (int32_t stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        for (int32_t step = stage == VP_STAGE_DECODE; step <= (stage == VP_STAGE_DECODE ? steps : 0); step++)
            for (int32_t i = 0; i < per_stage && count < MOST; i++, count++) {
                vp_launch *l = &made[count];
                memset(l, 0, sizeof *l);
                l->name = i % 3 == 1 ? "gemm" : "k_rows"; l->stage = stage; l->step = step;
                l->part = i < per_stage / 2 ? VP_PART_ATTENTION : VP_PART_EXPERTS; l->block = stage == VP_STAGE_H2D ? -1 : i / 4;
                l->kind = stage == VP_STAGE_H2D ? VP_LAUNCH_COPY_TO_DEVICE : i == per_stage - 1 ? VP_LAUNCH_COPY : VP_LAUNCH_KERNEL;
                l->file = "vlmprof_kernels.cu"; l->line = 100 + i;
                l->shape[0] = 5; l->shape[1] = 6; l->shape[2] = 7;
                l->dimensions = i % 3 == 1 ? 3 : 2;
                if (i % 3 != 1) { l->grid = 264; l->threads = 256; l->registers = 40; l->shared_bytes = 4096; }
                l->begin_ns = count * ns; l->ns = ns; l->host_begin_ns = count * host; l->host_ns = host - host / 4; l->flops = 1000; l->bytes = 2000;
                times.kernel_ns[stage] += ns;
                if (!times.ran[stage]) times.begin_ns[stage] = count * ns;
                times.device_ns[stage] += ns;
                times.wall_ns[stage] += host;
                times.ran[stage] = 1;
                if (step) step_times[step - 1] = ns * per_stage;
            }
    }
    run->begin_ns = begin; run->launches = made; run->launch_count = count; run->times = &times; run->step_ns = step_times; run->step_count = steps;
    return count;
}
static void close_trace(vp_trace *trace, vp_torch_trace_info *info) {
    CHECK_INT(vp_torch_trace_close(trace, info, NULL), VP_OK);
    vp_torch_trace_free(trace);
}
/* the host's start of the decode stage: the sum of the wall times of the stages before it */
static int64_t decode_begin_ns(void) {
    int64_t ns = 0;
    for (int32_t stage = 0; stage < VP_STAGE_DECODE; stage++) ns += times.ran[stage] ? times.wall_ns[stage] : 0;
    return ns;
}
static int64_t annotated(const file *f, const char *name) {
    const event *e = find(f, "gpu_user_annotation", name, 0);
    return e ? e->ns : -1;
}
static void test_request(void) {
    vp_torch_trace_options o = options_for(in_folder("request.pt.trace.json"));
    vp_trace *trace = NULL;
    vp_torch_trace_info info;
    vp_trace_run run;
    vp_error error;
    file f;
    int64_t launches = make_run(&run, BASE + 10000, 3, 5001, 3000, 8), sum[VP_STAGE_COUNT] = {0};
    check_case("a request of a GPU: stages, parts, launches, flows");
    unlink(o.path); /* a folder given by the user may contain it */
    if (!CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_OK)) return;
    CHECK(unfinished_files() == 1 && !there(o.path));
    CHECK_INT(vp_trace_step_begin(trace, 5, BASE + 9000, &error), VP_OK);
    CHECK_INT(vp_trace_launches(trace, &run, &error), VP_OK);
    CHECK_INT(vp_trace_step_end(trace, BASE + 1000000, &error), VP_OK);
    close_trace(trace, &info);
    CHECK(!unfinished_files());
    trace_facts facts = check_file(o.path, &f);
    CHECK_INT(facts.launches, launches); CHECK_INT(facts.steps, 1);
    CHECK_INT(info.launches, launches); CHECK_INT(info.events, f.count); CHECK_INT(info.bytes, f.bytes);
    CHECK(!info.truncated && !info.dropped_steps && !info.dropped_launches && !info.moved_slices);
    CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "trace_truncated")), 0);
    CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "baseTimeNanoseconds")), INT64_C(1700000000123456789));
    CHECK(find(&f, "user_annotation", "ProfilerStep#5", 0) && !strstr(f.text, "ProfilerStep#6"));
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        char name[48];
        snprintf(name, sizeof name, "stage::%s", vp_stage_name((vp_stage)stage));
        CHECK_NEAR(annotated(&f, name), times.device_ns[stage], 6);
        CHECK(find(&f, "user_annotation", name, 0) != NULL);
    }
    for (int step = 1; step <= 3; step++) {
        char name[48];
        snprintf(name, sizeof name, "decode[%d]", step);
        CHECK_NEAR(annotated(&f, name), step_times[step - 1], 6);
    }
    CHECK(!find(&f, NULL, "decode[4]", 0) && find(&f, "cpu_op", "vlmprof::attention", 0) && find(&f, "cpu_op", "vlmprof::experts", 0));
    for (size_t i = 0; i < f.count; i++) {
        const event *e = &f.events[i];
        if (!strcmp(e->category, "kernel") || !strcmp(e->category, "gpu_memcpy")) sum[0] += e->ns;
        if (!strcmp(e->name, "k_rows") && !strcmp(e->category, "kernel")) {
            CHECK_INT(arg(&f, e, "registers per thread"), 40);
            CHECK_INT(arg(&f, e, "est. achieved occupancy %"), 25); /* 264 blocks on 132 multiprocessors: 2 x 256 of 2048 threads */
        }
        if (!strcmp(e->name, "Memcpy DtoD (Device -> Device)")) CHECK_INT(arg(&f, e, "bytes"), 1000);
    }
    CHECK_NEAR(sum[0], launches * 5001, launches);
    forget(&f);
}
/* kernels whose float times overlap by a few ns, launches that seem to begin after their kernels, and boundaries within a kernel */
static void test_overlap(void) {
    vp_torch_trace_options o = options_for(in_folder("overlap.json"));
    vp_torch_trace_info info;
    vp_trace_run run;
    file f;
    int64_t launches = make_run(&run, BASE, 2, 1000, 900, 6), second;
    check_case("overlapping slices are separated");
    for (int64_t i = 0; i < launches; i++) {
        made[i].ns += i % 5 * 37;
        made[i].host_ns += 333;
        made[i].begin_ns -= made[i].begin_ns > 40 ? i % 3 * 20 : 0;
    }
    times.device_ns[VP_STAGE_VIT] += 700;
    times.wall_ns[VP_STAGE_VIT] += 700;
    for (int stage = VP_STAGE_VIT + 1; stage <= VP_STAGE_DECODE; stage++) times.begin_ns[stage] += 700;
    made[launches / 2].host_begin_ns += 500000;
    for (int64_t i = launches / 2 + 1; i < launches; i++) made[i].host_begin_ns += 500000;
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    second = make_run(&run, BASE + 1000, 1, 700, 100, 6); /* its device time would begin before the first request has ended */
    CHECK_INT(vp_trace_step_begin(trace, 0, BASE + 9000000, NULL), VP_OK);
    run.begin_ns = BASE + 9000001;
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    close_trace(trace, &info);
    CHECK_INT(check_file(o.path, &f).launches, launches + second);
    CHECK(info.moved_slices > 0 && info.moved_ns > 30 && info.moved_ns < 2000);
    CHECK(arg(&f, find(&f, "gpu_user_annotation", "stage::vit", 0), "device clock offset ns") >= 400000);
    forget(&f);
}
/* the rule: of two overlapping slices, the earlier is shortened */
static void test_cut(void) {
    vp_torch_trace_options o = options_for(in_folder("cut.json"));
    vp_trace_run run;
    file f;
    make_run(&run, BASE, 0, 1000, 900, 4);
    check_case("the earlier of two overlapping slices is shortened");
    made[5].ns += 50;      /* k_rows, gemm, k_rows, copy: the gemm of the second stage */
    made[5].host_ns = 950;
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    close_trace(trace, NULL);
    CHECK_INT(check_file(o.path, &f).launches, run.launch_count);
    const event *first = find(&f, "kernel", "gemm", 0);
    const event *second = find(&f, "kernel", "k_rows", 1);
    CHECK(first && second && first->ns == 1000 && second->begin == first->begin + 1000 && second->ns == 1000);
    first = find(&f, "cuda_runtime", "cudaLaunchKernel", 1);
    second = find(&f, "cuda_runtime", "cudaLaunchKernel", 2);
    /* between them one op ends and another begins */
    CHECK(first && second && first->begin + first->ns <= 6 * 900 && first->ns > 890 && second->begin <= 6 * 900 + 4 && second->ns >= 671);
    forget(&f);
}
static void test_shapes_and_stacks(void) {
    char *path = in_folder("shapes.json"), dims[64], stack[256];
    vp_torch_trace_options o = options_for(path);
    vp_trace_run run;
    file f;
    int64_t launches = make_run(&run, BASE + 5, 1, 1000, 900, 6);
    check_case("shapes and stacks");
    o.record_shapes = o.with_stack = o.profile_memory = 1;
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    close_trace(trace, NULL);
    CHECK_INT(check_file(path, &f).launches, launches);
    const event *e = find(&f, "cpu_op", "gemm", 0);
    if (CHECK(e != NULL)) {
        const vp_json_node *n = &f.nodes[vp_json_get(&f.json, e->args, "Input Dims")];
        snprintf(dims, sizeof dims, "%.*s", (int)n->bytes, f.text + n->start);
        CHECK_TEXT(dims, "[[5, 7], [7, 6]]");
        text_at(&f, vp_json_get(&f.json, e->args, "Call stack"), stack, sizeof stack);
        CHECK_TEXT(stack, "vlmprof_kernels.cu(101): attention");
    }
    CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "record_shapes")), 1);
    CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "with_stack")), 1);
    CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "profile_memory")), 1);
    forget(&f);
}
/* on the CPU, a launch is an op of the main thread, and each worker has its own track */
static void test_cpu(void) {
    vp_torch_trace_options o = options_for(in_folder("cpu.json"));
    vp_span spans_of[5] = {{1, 0, 1005, 500}, {1, 1, 1010, 480}, {2, 1, 2000, 700}, {2, 0, 2000, 600}, {0, 1, 900000, 1}};
    vp_trace_run run;
    vp_error error = {VP_OK, -1, "", ""};
    file f;
    int64_t launches = make_run(&run, BASE + 5, 2, 1000, 1000, 4);
    check_case("a request on the CPU, with its threads' work");
    o.devices = NULL; o.device_count = 0;
    run.device = -1; run.spans = spans_of; run.span_count = 5;
    spans_of[4].launch = launches; /* a span whose launch did not fit in the caller's buffer */
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    spans_of[3].launch = -1;
    CHECK_INT(vp_trace_launches(trace, &run, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "run.spans[3].launch");
    spans_of[3].launch = 2; spans_of[3].thread = VP_TRACE_THREADS_LIMIT;
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_ERR_RANGE);
    spans_of[3].thread = -1;
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_ERR_RANGE);
    spans_of[3].thread = 0; spans_of[3].ns = -1;
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_ERR_RANGE);
    close_trace(trace, NULL);
    CHECK_INT(check_file(o.path, &f).launches, 0);
    CHECK_INT(count_of(&f, "kernel") + count_of(&f, "gpu_user_annotation") + count_of(&f, "cuda_runtime"), 0);
    CHECK_INT(count_of(&f, "thread_span"), 4);
    {
        const event *gemm = find(&f, "cpu_op", "gemm", 0), *first = find(&f, "thread_span", "gemm", 0), *second = find(&f, "thread_span", "gemm", 1);
        if (CHECK(gemm && first && second)) {
            CHECK(gemm->begin >= 1005 && gemm->begin < 1020 && gemm->ns > 730 && gemm->ns <= 750 && arg(&f, gemm, "flops") == 1000);
            CHECK(first->begin == 1010 && first->ns == 500 && second->begin == 1015 && strcmp(first->thread, second->thread));
            CHECK(strcmp(first->thread, gemm->thread) && strstr(f.text, "(worker 1)"));
        }
    }
    forget(&f);
}
/* The step times of a CPU request determine the positions of its decode steps, with launches, without them and with nothing else. */
static void test_cpu_steps(void) {
    for (int form = 0; form < 3; form++) {
        vp_torch_trace_options o = options_for(in_folder("steps-cpu.json"));
        vp_trace_run run;
        file f;
        make_run(&run, BASE, 2, 1000, 1000, 4);
        check_case("step_ns on the host's track, %s", form == 0 ? "with launches" : form == 1 ? "without launches" : "without launches and stage times");
        o.devices = NULL; o.device_count = 0;
        run.device = -1;
        step_times[0] = 4321;
        step_times[1] = 7654;
        if (form) run.launch_count = 0;
        if (form == 2) run.times = NULL;
        int64_t begin = form == 2 ? 0 : decode_begin_ns();
        for (int64_t i = 0; i < run.launch_count; i++) /* launches end within their steps */
            if (made[i].step) {
                made[i].host_begin_ns = begin + (made[i].step > 1 ? 4321 : 0) + 500 * (i % 4) + 100;
                made[i].host_ns = 400;
            }
        vp_trace *trace = opened(&o);
        CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
        close_trace(trace, NULL);
        check_file(o.path, &f);
        const event *first = find(&f, "user_annotation", "decode[1]", 0);
        const event *second = find(&f, "user_annotation", "decode[2]", 0);
        if (CHECK(first && second)) { /* edges move by a few ns if slices touch */
            check_note(llabs(first->begin - begin) < 10 && llabs(first->ns - 4321) < 10, __FILE__, __LINE__, "%d: %lld %lld", form, (long long)first->begin,
                       (long long)first->ns);
            check_note(llabs(second->begin - begin - 4321) < 10 && llabs(second->ns - 7654) < 10, __FILE__, __LINE__, "%d: %lld %lld", form, (long long)second->begin,
                       (long long)second->ns);
        }
        forget(&f);
    }
}
/* A program that marks its stages with vp_stage_begin and vp_stage_end finds them in its trace. */
static void test_stage_clock(void) {
    vp_torch_trace_options o = options_for(in_folder("clock.json"));
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_mark marks[3] = {{"request", BASE + 100, BASE + 1000, SIZE_MAX}, {"vision", BASE + 100, BASE + 400, 0}, {"prefill", BASE + 450, BASE + 1000, 0}};
    vp_stage_clock clock = vp_stage_clock_over(marks, 3);
    file f;
    check_case("the marks of a stage clock");
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_stages(trace, &clock, NULL), VP_OK); /* no marks are valid */
    clock.count = 3;
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_OK);
    CHECK_INT(vp_trace_stages(trace, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_stages(NULL, &clock, NULL), VP_ERR_RANGE);
    marks[2].end_ns = -1;
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_ERR_STATE);
    CHECK_TEXT(error.where, "marks"); CHECK_TEXT(error.text, "a mark is still open");
    marks[2].end_ns = BASE + 1001; /* after the request's end: on another row */
    clock.thread = 1;
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_OK);
    CHECK_INT(vp_torch_trace_tell(trace).other_row_slices, 1);
    clock.thread = VP_TRACE_THREADS_LIMIT;
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_ERR_RANGE);
    clock.thread = 0;
    marks[0].begin_ns = BASE - 1;
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "request");
    CHECK(strstr(error.text, "began before the trace") && !strstr(error.text, "ends"));
    vp_trace_run run; /* its slices cross the marks of thread 0, and those of a clock on the same thread cross both */
    make_run(&run, BASE + 300, 2, 100, 30, 3);
    CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    marks[0] = (vp_stage_mark){"request", BASE + 350, BASE + 1500, SIZE_MAX};
    CHECK_INT(vp_trace_stages(trace, &clock, &error), VP_OK);
    CHECK(vp_torch_trace_tell(trace).other_row_slices > 3);
    close_trace(trace, NULL); /* check_file finds slices that do not nest */
    check_file(o.path, &f);
    const event *vision = find(&f, "cpu_op", "vision", 0);
    if (CHECK(vision)) CHECK(vision->begin == 100 && vision->ns == 300);
    forget(&f);
}
static void test_memory_and_counters(void) {
    vp_torch_trace_options o = options_for(in_folder("memory.json"));
    file f;
    check_case("memory");
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_step_begin(trace, 0, BASE, NULL), VP_OK);
    CHECK_INT(vp_trace_memory(trace, BASE + 1, 0, 4096, 1000000, 1000000, 2000000, NULL), VP_OK);
    CHECK_INT(vp_trace_memory(trace, BASE + 2, -1, 8192, 77, 77, 77, NULL), VP_OK);
    CHECK_INT(vp_trace_memory(trace, BASE + 3, 0, 4096, -1000000, 0, 2000000, NULL), VP_OK);
    CHECK_INT(vp_trace_memory(trace, BASE, 1, 1, 1, 1, 1, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_memory(trace, BASE - 1, 0, 1, 1, 1, 1, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_memory(trace, BASE, 0, UINT64_MAX, 1, 1, 1, NULL), VP_ERR_RANGE);
    close_trace(trace, NULL);
    CHECK_INT(check_file(o.path, &f).steps, 1); /* the step was open */
    CHECK_INT(count_of(&f, "cpu_instant_event"), 3);
    {
        const event *taken = find(&f, NULL, "[memory]", 0), *host = find(&f, NULL, "[memory]", 1), *given = find(&f, NULL, "[memory]", 2);
        CHECK(taken->phase == 'i' && arg(&f, taken, "Addr") == 4096 && arg(&f, taken, "Bytes") == 1000000 && arg(&f, taken, "Device Type") == 1);
        CHECK(arg(&f, taken, "Total Allocated") == 1000000 && arg(&f, taken, "Total Reserved") == 2000000 && arg(&f, taken, "Device Id") == 0);
        CHECK(arg(&f, host, "Device Type") == 0 && has_arg(&f, host, "Device Id") && given->begin == 3);
        CHECK(strstr(f.text, "\"Bytes\": -1000000"));
    }
    forget(&f);
}
/* Requests with times that a real clock would not give. In all cases the tracks are in order, launches precede their kernels, and the file is complete at any limit. */
static uint32_t draw(vp_random *random, uint32_t below) { return vp_random_u32(random) % below; }
static void test_random(uint32_t seed, int files) {
    char *path = in_folder("random.json");
    vp_random random;
    check_case("requests at random, seed %u", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (int i = 0; i < files && !check_state.case_failed; i++) {
        vp_torch_trace_options o = options_for(path);
        vp_torch_trace_info info;
        file f;
        int64_t at = BASE;
        const int32_t on_device = (int32_t)draw(&random, 4) ? 0 : -1;
        const uint32_t scale = 1 + draw(&random, 3000);
        o.record_shapes = (int)draw(&random, 2); o.max_bytes = 12000 + draw(&random, 150000);
        vp_trace *trace = opened(&o);
        for (int request = 0; request < 3; request++) {
            vp_trace_run run;
            const int64_t count = make_run(&run, at, (int32_t)draw(&random, 4), draw(&random, scale), draw(&random, scale), 1 + (int32_t)draw(&random, 9));
            int64_t device_at = 0, host_at = 0;
            for (int64_t k = 0; k < count; k++) {
                vp_launch *l = &made[k];
                l->begin_ns = device_at; l->ns = draw(&random, scale); l->host_begin_ns = host_at; l->host_ns = draw(&random, scale);
                device_at += draw(&random, 3) ? l->ns : draw(&random, scale); /* at once, or at any time, even before the end of the last one */
                host_at += draw(&random, 3) ? l->host_ns : draw(&random, scale);
                l->part = (int32_t)draw(&random, VP_PART_COUNT); l->dimensions = (int32_t)draw(&random, 5);
            }
            for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
                times.begin_ns[stage] = draw(&random, 10 * scale); times.device_ns[stage] = draw(&random, 10 * scale);
                times.wall_ns[stage] = draw(&random, 10 * scale); times.ran[stage] = (unsigned char)draw(&random, 2);
            }
            for (int32_t k = 0; k < run.step_count; k++) step_times[k] = draw(&random, 10 * scale);
            if (!draw(&random, 3)) run.times = NULL;
            if (!draw(&random, 3)) run.step_count = 0;
            run.device = on_device;
            CHECK(vp_trace_step_begin(trace, request, at, NULL) != VP_ERR_RANGE);
            vp_result result = vp_trace_launches(trace, &run, NULL);
            CHECK(result == VP_OK || result == VP_ERR_CAPACITY);
            at += 1000 * (int64_t)scale + 1000000; /* after all work of the request on the host */
            vp_trace_step_end(trace, at, NULL);
        }
        close_trace(trace, &info);
        CHECK_INT(check_file(path, &f).launches, on_device < 0 ? 0 : info.launches);
        CHECK(f.bytes == info.bytes && info.bytes <= o.max_bytes);
        forget(&f);
        if (check_state.case_failed) printf("file %d\n", i);
    }
}
/* For every limit from the smallest, the file parses, is complete and not larger than allowed. The number of units in it grows with the limit. */
static void test_limit(void) {
    vp_torch_trace_options o = options_for(in_folder("limit.json"));
    vp_trace *trace = NULL;
    vp_torch_trace_info info, all = {0};
    vp_trace_run run;
    vp_error error;
    file f;
    uint64_t least = 0;
    int64_t before = -1;
    int seen_middle = 0;
    check_case("the size limit in bytes");
    o.max_bytes = 100;
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_ERR_RANGE);
    CHECK(strstr(error.text, "must be ") != NULL && !unfinished_files());
    if (strstr(error.text, "must be at least ")) least = strtoull(strstr(error.text, "must be at least ") + 17, NULL, 10);
    o.max_bytes = least - 1;
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_ERR_RANGE);
    for (uint64_t limit = least; limit < least + 420000; limit += 7919) {
        int64_t launches = 0;
        vp_result result = VP_OK;
        o.max_bytes = limit;
        if (!CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_OK)) return;
        for (int step = 0; step < 3; step++) {
            int64_t some = make_run(&run, BASE + 1000 + step * INT64_C(10000000), 5, 1000, 900, 10);
            vp_result begun = vp_trace_step_begin(trace, step, BASE + step * INT64_C(10000000), &error);
            CHECK(begun == VP_OK || begun == VP_ERR_CAPACITY);
            CHECK(result != VP_ERR_CAPACITY || begun == VP_ERR_CAPACITY); /* once full, always full */
            result = vp_trace_launches(trace, &run, &error);
            CHECK(result == VP_OK || (result == VP_ERR_CAPACITY && strstr(error.text, "limit")));
            launches += some;
            if (begun == VP_OK) CHECK_INT(vp_trace_step_end(trace, BASE + step * INT64_C(10000000) + 9000000, &error), VP_OK);
            else CHECK_INT(vp_trace_step_end(trace, BASE + step * INT64_C(10000000) + 9000000, &error), VP_ERR_CAPACITY);
        }
        close_trace(trace, &info);
        CHECK(info.bytes <= limit);
        CHECK_INT(check_file(o.path, &f).launches, info.launches);
        CHECK_INT(f.bytes, info.bytes);
        CHECK_INT(info.launches + info.dropped_launches, launches);
        CHECK_INT(info.steps + info.dropped_steps, 3);
        CHECK_INT(info.truncated, info.dropped_launches > 0);
        CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "trace_truncated")), info.truncated);
        CHECK_INT(int_at(&f, vp_json_get(&f.json, 0, "dropped_steps")), info.dropped_steps);
        CHECK(info.launches >= before);
        CHECK_INT(info.launches % 10, 0); /* only whole stages and decode steps */
        before = info.launches;
        seen_middle += info.truncated && info.launches % 130 != 0;
        all = info;
        forget(&f);
    }
    CHECK(!all.truncated && all.launches > 0 && seen_middle > 3);
}
static void test_names(void) {
    static const char *const given[] = {"plain", "quo\"ted", "back\\slash", "two\nlines", "bell\a", "tab\t", "caf\xc3\xa9", "bad\xff", "", "]}"},
                      *const read[] = {"plain", "quo\"ted", "back/slash", "twolines", "unknown", "unknown", "caf\xc3\xa9", "unknown", "", "]}"};
    char *path = in_folder("odd ]\"name.json"), name[128];
    vp_torch_trace_options o = options_for(path);
    vp_trace_metadata metadata[2] = {{"argv", "vlmprof run \"a\\b\"\n\ttab ]"}, {"odd \"key\"", "caf\xc3\xa9"}};
    vp_trace_run run;
    file f;
    check_case("hostile names");
    gpu.name = "GPU \"9\" \\ ]";
    o.process_name = "my \"program\""; o.metadata = metadata; o.metadata_count = 2;
    vp_trace *trace = opened(&o);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        make_run(&run, BASE + 1 + (int64_t)i * 1000000, 0, 100, 100, 1);
        made[1].name = given[i];
        CHECK_INT(vp_trace_slice(trace, 5, given[i], BASE + (int64_t)i, BASE + (int64_t)i, NULL, 0, NULL), VP_OK);
        run.launch_count = 2;
        CHECK_INT(vp_trace_launches(trace, &run, NULL), VP_OK);
    }
    close_trace(trace, NULL);
    if (load(path, &f)) {
        size_t kernels = 0;
        check_members(&f);
        for (size_t i = 0; i < sizeof given / sizeof *given; i++) CHECK_TEXT(find(&f, "cpu_op", read[i], 0)->name, read[i]);
        for (size_t i = 0; i < f.count; i++)
            if (!strcmp(f.events[i].category, "gpu_memcpy")) kernels++;
        CHECK_INT(kernels, 2 * (sizeof given / sizeof *given)); /* one launch per stage, the last one, is a copy */
        text_at(&f, vp_json_get(&f.json, 0, "argv"), name, sizeof name);
        CHECK_TEXT(name, metadata[0].text);
        text_at(&f, vp_json_get(&f.json, 0, "odd \"key\""), name, sizeof name);
        CHECK_TEXT(name, metadata[1].text);
        text_at(&f, vp_json_get(&f.json, 0, "traceName"), name, sizeof name);
        CHECK_TEXT(name, path);
    }
    forget(&f);
}
static void test_file_names(void) {
    char name[256], host[200];
    check_case("file names");
    CHECK_INT(vp_trace_file_name("node_17", INT64_C(1700000000123456789), name, sizeof name), VP_OK);
    CHECK_TEXT(name, "node_17.1700000000123456789.pt.trace.json");
    CHECK_INT(vp_trace_file_name("a/b", 5, name, sizeof name), VP_OK);
    CHECK_TEXT(name, "a_b.5.pt.trace.json");
    CHECK_INT(vp_trace_file_name(NULL, 0, name, sizeof name), VP_OK);
    snprintf(host, sizeof host, "_%ld.0.pt.trace.json", (long)getpid());
    CHECK(strlen(name) > strlen(host) && !strcmp(name + strlen(name) - strlen(host), host));
    CHECK_INT(vp_trace_file_name("w", 1, name, 17), VP_ERR_CAPACITY);
    CHECK_INT(vp_trace_file_name("w", 1, name, 18), VP_OK);
    CHECK_INT(vp_trace_file_name("", 1, name, sizeof name), VP_ERR_RANGE);
    CHECK_INT(vp_trace_file_name("w", -1, name, sizeof name), VP_ERR_RANGE);
    CHECK_INT(vp_trace_file_name("w", 1, NULL, 0), VP_ERR_RANGE);
}
static void test_closing(void) {
    vp_torch_trace_options o = options_for(in_folder("closing.json"));
    vp_torch_trace_info info, again;
    vp_error error;
    file f;
    check_case("closing twice, abandoning, replacing");
    write_text(o.path, "what stood there before");
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_step_begin(trace, 3, BASE, NULL), VP_OK);
    vp_torch_trace_free(trace); /* abandoned */
    CHECK(!unfinished_files());
    {
        char *text = check_read(o.path, NULL);
        CHECK_TEXT(text, "what stood there before");
        free(text);
    }
    CHECK_INT(vp_torch_trace_open(&o, &trace, NULL), VP_OK);
    CHECK_INT(vp_torch_trace_close(trace, &info, NULL), VP_OK);
    memset(&again, 1, sizeof again);
    CHECK_INT(vp_torch_trace_close(trace, &again, &error), VP_ERR_STATE);
    CHECK(memcmp(&info, &again, sizeof info) == 0 && strstr(error.text, "already closed"));
    CHECK_INT(vp_trace_step_begin(trace, 3, BASE, NULL), VP_ERR_STATE);
    CHECK_INT(vp_trace_memory(trace, BASE, 0, 1, 1, 1, 1, NULL), VP_ERR_STATE);
    vp_torch_trace_free(trace);
    CHECK_INT(check_file(o.path, &f).steps, 0);
    CHECK_INT(info.events, f.count);
    forget(&f);
    vp_torch_trace_free(NULL);
    CHECK_INT(vp_torch_trace_close(NULL, NULL, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_torch_trace_tell(NULL).events, 0);
}
static void test_steps(void) {
    vp_torch_trace_options o = options_for(in_folder("steps.json"));
    file f;
    check_case("steps in order");
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_step_end(trace, BASE, NULL), VP_ERR_STATE);
    CHECK_INT(vp_trace_step_begin(trace, 2, BASE - 1, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_step_begin(trace, -1, BASE, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_step_begin(trace, 2, BASE + 10, NULL), VP_OK);
    CHECK_INT(vp_trace_step_begin(trace, 3, BASE + 20, NULL), VP_ERR_STATE);
    CHECK_INT(vp_trace_step_end(trace, BASE + 9, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_step_end(trace, BASE + 20, NULL), VP_OK);
    CHECK_INT(vp_trace_step_begin(trace, 3, BASE + 19, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_trace_step_begin(trace, 3, BASE + 20, NULL), VP_OK);
    CHECK_INT(vp_trace_step_end(trace, BASE + 1234587, NULL), VP_OK);
    close_trace(trace, NULL);
    CHECK_INT(check_file(o.path, &f).steps, 2);
    CHECK(find(&f, NULL, "ProfilerStep#3", 0) && find(&f, NULL, "ProfilerStep#3", 0)->ns == 1234567);
    CHECK(strstr(f.text, "\"ts\": 0.020, \"dur\": 1234.567") != NULL);
    forget(&f);
}
/* The disk is full from the start, or later: the error is kept, and only existing files remain. */
static void test_full_disk(void) {
    vp_torch_trace_options o = options_for(in_folder("full.json"));
    vp_trace *trace = NULL;
    vp_trace_run run;
    vp_error error;
    struct rlimit before, little;
    vp_result result = VP_OK;
    check_case("full disk");
    if (access("/dev/full", W_OK) == 0) {
        CHECK_INT(symlink("/dev/full", o.path), 0); /* a device is written directly */
        CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_ERR_WRITE);
        CHECK(strstr(error.text, "No space left") != NULL && !unfinished_files());
        CHECK_INT(unlink(o.path), 0);
    }
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = 200000;
    signal(SIGXFSZ, SIG_IGN);
    write_text(o.path, "old");
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_OK);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (int step = 0; step < 20 && result == VP_OK; step++) {
        make_run(&run, BASE + step * INT64_C(1000000), 3, 300, 400, 8);
        result = vp_trace_launches(trace, &run, &error);
    }
    CHECK_INT(result, VP_ERR_WRITE);
    CHECK_INT(vp_trace_step_begin(trace, 0, BASE, &error), VP_ERR_WRITE);
    CHECK_INT(vp_torch_trace_close(trace, NULL, &error), VP_ERR_WRITE);
    CHECK(error.text[0] && !unfinished_files());
    setrlimit(RLIMIT_FSIZE, &before);
    vp_torch_trace_free(trace);
    {
        char *text = check_read(o.path, NULL);
        CHECK_TEXT(text, "old");
        free(text);
    }
    o.path = in_folder("no/such/folder.json");
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_ERR_WRITE);
    /* the name cannot be used, because it is a folder */
    o.path = in_folder("taken");
    make_empty(o.path);
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_ERR_WRITE);
    CHECK(strstr(error.text, "it is a folder") && !unfinished_files());
}
#define REFUSED(member, value) do { vp_torch_trace_options bad = o; bad.member = (value); CHECK_INT(vp_torch_trace_open(&bad, &trace, NULL), VP_ERR_RANGE); } while (0)
#define WRONG(member, value, code, place) do { const __typeof__(member) good = member; member = (value); \
        CHECK_INT(vp_trace_launches(trace, &run, &error), code); CHECK_TEXT(error.where, place); member = good; } while (0)
static void test_refusals(void) {
    vp_torch_trace_options o = options_for(in_folder("refused.json"));
    vp_trace_device twins[2];
    vp_trace *trace = NULL;
    vp_trace_run run;
    vp_error error = {VP_OK, -1, "", ""};
    char where[80];
    vp_trace_metadata bad_text[1] = {{"key", "\xff"}};
    check_case("rejected options and requests");
    CHECK_INT(vp_torch_trace_open(NULL, &trace, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_torch_trace_open(&o, NULL, NULL), VP_ERR_RANGE);
    REFUSED(path, NULL); REFUSED(path, ""); REFUSED(process, 63); REFUSED(thread, -1); REFUSED(rank, 1); REFUSED(world_size, 0);
    REFUSED(device_count, -1); REFUSED(device_count, 65); REFUSED(devices, NULL); REFUSED(metadata_count, 1); REFUSED(base_unix_ns, -1);
    twins[0] = twins[1] = gpu;
    o.devices = twins; o.device_count = 2;
    CHECK_INT(vp_torch_trace_open(&o, &trace, NULL), VP_ERR_RANGE);
    twins[1].id = 64;
    CHECK_INT(vp_torch_trace_open(&o, &trace, NULL), VP_ERR_RANGE);
    twins[1].id = 1;
    o.metadata = bad_text; o.metadata_count = 1;
    CHECK_INT(vp_torch_trace_open(&o, &trace, NULL), VP_ERR_RANGE);
    o.metadata_count = 0;
    if (!CHECK_INT(vp_torch_trace_open(&o, &trace, NULL), VP_OK)) return;
    make_run(&run, BASE, 1, 10, 10, 2);
    CHECK_INT(vp_trace_launches(trace, NULL, NULL), VP_ERR_RANGE);
    snprintf(where, sizeof where, "run.times->wall_ns[%d]", VP_STAGE_VIT);
    WRONG(run.device, 2, VP_ERR_RANGE, "run.device");
    WRONG(run.device, -2, VP_ERR_RANGE, "run.device");
    WRONG(run.begin_ns, BASE - 1, VP_ERR_RANGE, "run.begin_ns");
    WRONG(made[3].ns, -1, VP_ERR_RANGE, "run.launches[3].ns");
    WRONG(made[3].ns, INT64_MAX, VP_ERR_RANGE, "run.launches[3].ns");
    WRONG(made[3].name, NULL, VP_ERR_RANGE, "run.launches[3].name");
    WRONG(made[3].part, VP_PART_COUNT, VP_ERR_RANGE, "run.launches[3].part");
    WRONG(made[3].step, -1, VP_ERR_RANGE, "run.launches[3].step");
    WRONG(made[3].kind, 4, VP_ERR_RANGE, "run.launches[3].kind");
    WRONG(made[3].stage, VP_STAGE_DECODE, VP_ERR_MISMATCH, "launches");
    WRONG(times.wall_ns[VP_STAGE_VIT], -1, VP_ERR_RANGE, where);
    WRONG(step_times[0], -1, VP_ERR_RANGE, "run.step_ns[0]");
    CHECK_INT(vp_torch_trace_tell(trace).launches, 0);
    vp_torch_trace_free(trace);
}

/* ---- ranges of the host */
static void test_ranges(void) {
    char *path = in_folder("ranges.json"), stack[300];
    vp_torch_trace_options o = options_for(path);
    vp_range_record records[4] = {0};
    file f;
    check_case("ranges of the host");
    o.record_shapes = o.with_stack = 1;
    const struct { const char *name, *file; int32_t line; int64_t parent, begin, end; } given[] = {
        {"request", "main.c", 10, -1, 100, 1000}, {"preprocess", "main.c", 11, 0, 100, 500}, {"tokenise", NULL, 12, 1, 150, 500},
        {"answer \"it\"", "main.c", 13, 0, 500, 1000}};
    for (int i = 0; i < 4; i++)
        records[i] = (vp_range_record){.name = given[i].name, .file = given[i].file, .line = given[i].line, .parent = given[i].parent, .begin_ns = BASE + given[i].begin,
                                       .end_ns = BASE + given[i].end};
    records[2].payload = (vp_range_payload){12, 34, 0, {480, 640}, 2};
    vp_ranges ranges = {.records = records};
    ranges.count = ranges.capacity = 4;
    vp_trace *trace = opened(&o);
    CHECK_INT(vp_trace_ranges(trace, &ranges, NULL), VP_OK);
    ranges.thread = 2; ranges.thread_name = "loader";
    CHECK_INT(vp_trace_ranges(trace, &ranges, NULL), VP_OK);
    CHECK_INT(vp_trace_ranges(trace, NULL, NULL), VP_ERR_RANGE);
#define WRONG_RANGE(member, value, code) \
    do { const __typeof__(member) good = member; member = (value); CHECK_INT(vp_trace_ranges(trace, &ranges, NULL), code); member = good; } while (0)
    ranges.thread = 0;
    WRONG_RANGE(ranges.thread, VP_TRACE_THREADS_LIMIT, VP_ERR_RANGE);
    WRONG_RANGE(records[3].end_ns, BASE + 1001, VP_ERR_RANGE); /* extends beyond its parent */
    WRONG_RANGE(records[3].begin_ns, BASE + 499, VP_ERR_RANGE); /* overlaps its sibling */
    WRONG_RANGE(records[3].parent, 3, VP_ERR_RANGE);
    WRONG_RANGE(records[3].end_ns, INT64_MIN, VP_ERR_STATE);
    close_trace(trace, NULL);
    CHECK_INT(check_file(path, &f).launches, 0);
    CHECK_INT(count_of(&f, "cpu_op"), 8);
    const event *outer = find(&f, "cpu_op", "request", 0);
    const event *inner = find(&f, "cpu_op", "tokenise", 0);
    if (CHECK(outer && inner)) {
        CHECK(outer->begin == 100 && outer->ns == 900 && !strcmp(outer->thread, "4242"));
        CHECK(arg(&f, inner, "flops") == 12 && arg(&f, inner, "bytes") == 34 && strstr(f.text, "\"Input Dims\": [[480, 640]]"));
        text_at(&f, vp_json_get(&f.json, inner->args, "Call stack"), stack, sizeof stack);
        CHECK_TEXT(stack, "unknown(12): tokenise;main.c(11): preprocess;main.c(10): request");
        CHECK(strcmp(find(&f, "cpu_op", "request", 1)->thread, "4242") != 0 && strstr(f.text, "(loader)"));
    }
    forget(&f);
}

/* ---- requests of the engine on this backend */
enum { NEW_TOKENS = 5, LAUNCHES = 20000, SPANS = 40000, REQUESTS = 3 };
static int32_t tokens[NEW_TOKENS];
static vp_launch launches[LAUNCHES];
static vp_span spans[SPANS];

static void make_request(vp_request *r) {
    make_inputs();
    *r = small_request(VP_TIMING_KERNEL, NEW_TOKENS);
    r->launches = launches; r->launch_capacity = LAUNCHES;
    r->spans = spans; r->span_capacity = SPANS;
}
/* the file's contents against the engine's times, stage by stage; requests are consecutive */
static void check_stages(const file *f, const vp_stage_times *said, size_t nth) {
    for (int stage = VP_STAGE_H2D; stage <= VP_STAGE_DECODE; stage++) {
        char name[48];
        int64_t inside = 0, count = 0;
        if (!said->ran[stage] || !said->launches[stage]) continue;
        snprintf(name, sizeof name, "stage::%s", vp_stage_name((vp_stage)stage));
        const event *on = find(f, "gpu_user_annotation", name, nth);
        const event *host = find(f, "user_annotation", name, nth);
        if (!CHECK(host != NULL) || !CHECK(!ON_GPU || on)) return;
        if (!ON_GPU) on = host;
        for (size_t i = 0; i < f->count; i++) {
            const event *e = &f->events[i];
            const int mine = ON_GPU ? !strcmp(e->category, "kernel") || !strcmp(e->category, "gpu_memcpy")
                                    : !strcmp(e->category, "cpu_op") && strncmp(e->name, "vlmprof::", 9);
            if (!mine || strcmp(e->thread, on->thread) || e->begin < on->begin || e->begin + e->ns > on->begin + on->ns) continue;
            inside += e->ns;
            count++;
        }
        CHECK_INT(count, said->launches[stage]);
        check_near((double)inside, (double)said->kernel_ns[stage], 0.005 * (double)said->kernel_ns[stage] + 10.0 * (double)count, name, __FILE__, __LINE__);
        check_near((double)on->ns, (double)(ON_GPU ? said->device_ns[stage] : said->wall_ns[stage]),
                   (ON_GPU ? 0.0005 : 0.005) * (double)said->device_ns[stage] + 10.0, name, __FILE__, __LINE__);
    }
}
static void test_engine(const char *name) {
    char *path = in_folder(name);
    vp_engine_options eo = vp_engine_options_default();
    vp_engine *engine = NULL;
    vp_device_info is; /* the trace contains its name */
    vp_trace_device device;
    vp_trace *trace = NULL;
    vp_torch_trace_info info;
    vp_request r;
    vp_reply reply;
    vp_error error;
    vp_stage_times said[REQUESTS];
    int64_t step_ns[NEW_TOKENS], total = 0, span_total = 0, now = 0;
    file f;
    check_case("requests of the engine on %s", TEST_DEVICE);
    make_request(&r);
    eo.config = &config; eo.device = TEST_DEVICE; eo.threads = 2; eo.max_sequence = 320; eo.max_views = 1;
    if (!CHECK_INT(vp_engine_open(&eo, &engine, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); return; }
    vp_torch_trace_options o = vp_torch_trace_options_default();
    o.path = path; o.profile_memory = 1;
#if ON_GPU
    CHECK_INT(vp_device_describe(0, &is, &error), VP_OK);
    device = vp_trace_device_of(0, is.name, is.memory_bytes, is.compute_major, is.compute_minor, is.multiprocessor_count);
    o.devices = &device; o.device_count = 1; o.emulated = strstr(is.name, "emulated") != NULL;
#else
    (void)device;
    (void)is;
#endif
    CHECK_INT(vp_torch_trace_open(&o, &trace, &error), VP_OK);
    CHECK_INT(vp_trace_memory(trace, vp_clock_ns(), ON_GPU - 1, 4096, (int64_t)vp_engine_bytes(engine), vp_engine_bytes(engine),
                              vp_engine_bytes(engine), &error), VP_OK);
    for (int i = 0; i < REQUESTS; i++) {
        memset(&reply, 0, sizeof reply);
        reply.tokens = tokens; reply.step_ns = step_ns;
        now = o.emulated && i ? now : vp_clock_ns(); /* an emulated device has its own clock, and the steps follow it */
        CHECK_INT(vp_trace_step_begin(trace, i, now, &error), VP_OK);
        vp_trace_run run = {.begin_ns = o.emulated ? now + 5000 : vp_clock_ns()};
        if (!CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK)) break;
        run.spans = spans; run.span_count = reply.span_count;
        span_total += reply.span_count;
        CHECK(reply.span_count <= SPANS && (ON_GPU ? reply.span_count == 0 : reply.span_count > 0));
        run.device = ON_GPU - 1; run.launches = launches; run.launch_count = reply.launch_count; run.times = &reply.times; run.step_ns = step_ns;
        run.step_count = reply.token_count - 1;
        said[i] = reply.times;
        total += reply.launch_count;
        CHECK(reply.launch_count > 0 && reply.launch_count <= LAUNCHES);
        if (!CHECK_INT(vp_trace_launches(trace, &run, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
        now = vp_clock_ns();
        if (o.emulated) {
            const vp_launch *last = &launches[reply.launch_count - 1];
            now = run.begin_ns + last->host_begin_ns + last->host_ns;
            if (now < run.begin_ns + last->begin_ns + last->ns) now = run.begin_ns + last->begin_ns + last->ns;
            now += 5000;
        }
        CHECK_INT(vp_trace_step_end(trace, now, &error), VP_OK);
    }
    close_trace(trace, &info);
    vp_engine_close(engine);
    trace_facts facts = check_file(path, &f);
    CHECK_INT(facts.launches, ON_GPU ? total : 0); CHECK_INT(facts.steps, REQUESTS);
    CHECK_INT(info.launches, total);
    CHECK_INT(count_of(&f, "thread_span"), span_total);
    printf("%s: %lld launches, %llu bytes, %lld moved by at most %lld ns\n", TEST_DEVICE, (long long)total, (unsigned long long)info.bytes,
           (long long)info.moved_slices, (long long)info.moved_ns);
    for (size_t i = 0; i < REQUESTS && f.events; i++) check_stages(&f, &said[i], i);
    CHECK(!ON_GPU || strstr(f.text, "\"emulated\": 1") || !strstr(f.text, "emulated"));
    forget(&f);
    FREE_ALL(pixels, masks);
}

int main(void) {
    if (!folder_make("trace")) return 1;
    RUN_TESTS(test_request, test_overlap, test_cut, test_shapes_and_stacks, test_cpu, test_cpu_steps, test_stage_clock);
    test_random(7, 300);
    RUN_TESTS(test_memory_and_counters, test_limit, test_names, test_file_names, test_closing, test_steps,
              test_full_disk, test_refusals, test_ranges);
    test_engine(ON_GPU ? "emulated.1.pt.trace.json" : "cpu.1.pt.trace.json");
    remove_folder(folder);
    return check_done(ON_GPU ? "test_trace_cuda" : "test_trace");
}
