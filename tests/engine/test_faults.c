/* slow: each call of the runtime fails once, 40 s */
/* test_faults.c - every call of the GPU runtime and of cuBLAS that a request makes fails once. The engine must report it with the right code, serve the next request or
 * report that it is broken, leak nothing, and work again in a new engine. Runs on the emulated GPU (tests/emulator/cuda_on_cpu.h), whose n-th call of a kind can be made
 * to fail. It also emulates machines without a GPU, with an old driver, an old or small GPU, without cuBLAS, or with another NVML. Also tests what only a GPU has: timing
 * by events of its own kinds, on a clock that shows each kernel exactly.
 */
#include "vlmprof_stages.h"
#include "vlmprof_engine.h"

#include "support/check.h"
#include "support/small_request.h"
#include "support/books.h"

/* tests/emulator/cuda_on_cpu.h */
void cuda_on_cpu_reset(uint64_t seed);
unsigned cuda_on_cpu_contexts(void);
void cuda_on_cpu_fail(const char *what, int n);
int cuda_on_cpu_live(void);
/* closes an engine, which must leave nothing behind */
#define CLOSES(engine) (vp_engine_close(engine), CHECK_INT(cuda_on_cpu_live(), 0))
int cuda_on_cpu_set(const char *name, const char *value);
long cuda_on_cpu_calls(const char *what);

enum { NEW_TOKENS = 4, MOST_OF_A_KIND = 9 };
static vp_result open_engine(vp_engine **engine, int32_t max_sequence, vp_error *error) {
    vp_engine_options options = vp_engine_options_default();
    options.config = &config;
    options.device = "cuda";
    options.threads = 1;
    options.max_sequence = max_sequence;
    options.max_views = 1;
    return vp_engine_open(&options, engine, error);
}
typedef struct answer { vp_reply reply; int32_t tokens[NEW_TOKENS]; int64_t step_ns[NEW_TOKENS]; } answer;
static answer healthy;
static vp_request request_of(vp_timing timing) { return small_request(timing, NEW_TOKENS); }
static vp_result run_request(vp_engine *engine, const vp_request *r, answer *a, vp_error *error) {
    memset(a, 0, sizeof *a);
    a->reply.tokens = a->tokens;
    a->reply.step_ns = a->step_ns;
    return vp_engine_run(engine, r, &a->reply, error);
}
static int is_healthy(const answer *a) { return memcmp(a->tokens, healthy.tokens, sizeof healthy.tokens) == 0; }

typedef struct life { answer a; int opened, broken, served_again, noted; } life;
/* the life of an engine from opening to closing: the first failure, whether it is reported, and whether the engine still works afterwards */
static vp_result live(vp_timing timing, life *l, vp_error *error) {
    vp_engine *engine = NULL;
    vp_request r = request_of(timing);
    memset(error, 0, sizeof *error);
    memset(l, 0, sizeof *l);
    vp_result result = open_engine(&engine, 320, error);
    l->opened = result == VP_OK;
    if (result == VP_OK) result = run_request(engine, &r, &l->a, error);
    if (l->opened) {
        l->broken = vp_engine_broken(engine);
        l->noted = vp_engine_device_note(engine)[0] != 0;
    }
    if (result != VP_OK && engine) {
        answer again;
        vp_error told;
        vp_result second = run_request(engine, &r, &again, &told);
        l->served_again = second == VP_OK && is_healthy(&again);
        CHECK_INT(second, l->broken ? VP_ERR_DEVICE : VP_OK);
        CHECK_INT(vp_engine_broken(engine), l->broken);
        CHECK(vp_engine_stamp_cost_ns(engine) == -1 || !l->broken);
        vp_engine_settle(engine);
    }
    vp_engine_close(engine);
    return result;
}

/* the n-th call of a kind fails, for each n of a healthy life (every one if they are few, else spread over it). Errors of some kinds break the device permanently, and
 * only those. */
static void test_kind(const char *kind, vp_timing timing) {
    int sticky = !strcmp(kind, "sync") || !strcmp(kind, "illegal"), planned = !strcmp(kind, "plan"),
        recorded = !strcmp(kind, "graph") || !strcmp(kind, "launch") || !strcmp(kind, "gemm");
    vp_error error;
    life l;
    check_case("failing %s%s", kind, timing == VP_TIMING_KERNEL ? ", timing by kernels" : timing == VP_TIMING_OFF ? ", timing off" : "");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(live(timing, &l, &error), VP_OK) || !CHECK(is_healthy(&l.a))) return;
    long calls = cuda_on_cpu_calls(kind);
    if (!CHECK(calls > 0)) return;
    long step = calls / MOST_OF_A_KIND + 1;
    for (long n = 1; n <= calls; n += step) {
        cuda_on_cpu_reset((uint64_t)n);
        cuda_on_cpu_fail(kind, (int)n);
        vp_result result = live(timing, &l, &error);
        int survived = (recorded || planned) && result == VP_OK && l.noted && is_healthy(&l.a); /* the request did not need the recording or the plan */
        CHECK(survived || !planned);
        if (!check_note(survived || result == VP_ERR_DEVICE || result == VP_ERR_MEMORY, __FILE__, __LINE__, "call %ld of %ld gave %d", n, calls, (int)result)) break;
        CHECK(survived || (error.where[0] && error.text[0]));
        CHECK(result != VP_ERR_MEMORY || !strcmp(kind, "alloc") || !strcmp(kind, "host"));
        CHECK(result == VP_ERR_MEMORY || (strcmp(kind, "alloc") && strcmp(kind, "host")));
        if (l.opened && !survived)
            check_note(l.broken == sticky && l.served_again == !sticky, __FILE__, __LINE__, "call %ld of %ld: broken %d, served again %d", n, calls,
                       l.broken, l.served_again);
        if (!check_note(cuda_on_cpu_live() == 0, __FILE__, __LINE__, "call %ld of %ld left %d behind", n, calls, cuda_on_cpu_live())) break;
        if (l.broken) { /* Only the program may reset its context. Until it does, no engine can open. */
            life none;
            CHECK(cuda_on_cpu_contexts() == 1);
            CHECK_INT(live(timing, &none, &error), VP_ERR_DEVICE);
            CHECK_INT(vp_device_reset(0, &error), VP_OK);
            CHECK(cuda_on_cpu_contexts() == 0);
        }
        if (n + step > calls) { /* a new engine in the same process works; tested after the last failure, the hardest case */
            CHECK_INT(live(timing, &l, &error), VP_OK);
            CHECK(is_healthy(&l.a) && !l.noted);
        }
    }
    CHECK_INT(cuda_on_cpu_live(), 0);
}
/* listing or querying devices allocates no memory on them; only the program resets a context */
static void test_contexts(void) {
    vp_device_info info;
    vp_telemetry telemetry;
    vp_engine *engine = NULL;
    vp_error error;
    check_case("listing and querying devices creates no context");
    setenv("CUDA_ON_CPU_DEVICES", "2", 1);
    cuda_on_cpu_reset(1);
    CHECK_INT(vp_device_reset(1, &error), VP_OK); /* ends by selecting device 0 again, which creates its context */
    CHECK_INT(vp_device_reset(0, &error), VP_OK);
    CHECK(cuda_on_cpu_contexts() == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(vp_device_describe(i, &info, &error), VP_OK);
        CHECK(info.memory_bytes > 0 && info.free_bytes == info.memory_bytes - 1000u * (unsigned)i);
        CHECK_INT(vp_device_telemetry(i, &telemetry, &error), VP_OK);
    }
    CHECK_INT(vp_device_describe(2, &info, &error), VP_ERR_DEVICE);
    CHECK(cuda_on_cpu_contexts() == 0);
    setenv("CUDA_ON_CPU_NVML", "0", 1);
    cuda_on_cpu_reset(1);
    CHECK_INT(vp_device_describe(1, &info, &error), VP_OK);
    CHECK(info.free_bytes == UINT64_MAX && cuda_on_cpu_contexts() == 0);
    unsetenv("CUDA_ON_CPU_NVML");
    check_case("no reset while an engine is open, or of a device that does not exist");
    CHECK_INT(open_engine(&engine, 320, &error), VP_OK);
    CHECK(cuda_on_cpu_contexts() == 1);
    CHECK_INT(vp_device_reset(1, &error), VP_ERR_STATE);
    vp_engine_close(engine);
    CHECK(cuda_on_cpu_contexts() == 1);
    CHECK_INT(vp_device_reset(2, &error), VP_ERR_DEVICE);
    CHECK_INT(vp_device_reset(0, &error), VP_OK);
    CHECK(cuda_on_cpu_contexts() == 0);
    unsetenv("CUDA_ON_CPU_DEVICES");
    cuda_on_cpu_reset(1);
}
/* A decode step cannot be recorded, because one of the four calls fails. A note reports this, and no request fails, now or later. */
static void test_no_recording(void) {
    for (int n = 1; n <= 4; n++) {
        vp_engine *engine = NULL;
        vp_error error;
        answer a;
        vp_request r = request_of(VP_TIMING_STAGE);
        check_case("recording fails at call %d", n);
        cuda_on_cpu_reset(1);
        cuda_on_cpu_fail("graph", n);
        if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
        for (int i = 0; i < 2; i++) {
            CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
            CHECK(is_healthy(&a));
            CHECK_INT(a.reply.times.launches[VP_STAGE_DECODE], healthy.reply.times.launches[VP_STAGE_DECODE]);
        }
        CHECK_INT(cuda_on_cpu_calls("graph"), n); /* recording is not tried again */
        CHECK(strstr(vp_engine_device_note(engine), "not replayed as a graph: cuda") != NULL);
        CHECK_INT(vp_engine_broken(engine), 0);
        CLOSES(engine);
    }
}

/* a request of two tokens warms up, so that everything is loaded and recorded before the next one */
static void test_warm(void) {
    vp_engine *engine = NULL;
    vp_error error;
    answer first, a;
    vp_request r = small_request(VP_TIMING_STAGE, 2);
    check_case("a warm request");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    cuda_on_cpu_set("LOAD", "2000000");
    CHECK_INT(run_request(engine, &r, &first, &error), VP_OK);
    r.max_new_tokens = NEW_TOKENS;
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    cuda_on_cpu_set("LOAD", NULL);
    CHECK(first.reply.times.device_ns[VP_STAGE_PREFILL] > 2000000 && a.reply.times.device_ns[VP_STAGE_PREFILL] < 2000000);
    for (int i = 0; i < NEW_TOKENS - 1; i++) CHECK(a.step_ns[i] > 0 && a.step_ns[i] < 2000000);
    CHECK(is_healthy(&a));
    vp_engine_close(engine);
}
/* The emulated clock gives each operation its own duration, so kernels fill their stage exactly if the host does not wait between them. */
static void test_timing(void) {
    enum { ROOM = 4096 };
    vp_engine *engine = NULL;
    vp_error error;
    answer stage, other;
    vp_request r = request_of(VP_TIMING_STAGE);
    vp_launch *launches = (vp_launch *)malloc(ROOM * sizeof *launches);
    check_case("timing by stages");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    CHECK_INT(run_request(engine, &r, &stage, &error), VP_OK); /* this request records the step */
    long before = cuda_on_cpu_calls("event");
    CHECK_INT(run_request(engine, &r, &stage, &error), VP_OK);
    long events = cuda_on_cpu_calls("event") - before;
    CHECK(is_healthy(&stage));
    CHECK_INT(stage.reply.times.stamps, 1 + 7 + NEW_TOKENS - 1 + 1); /* one at the start, stages up to sample, steps, the host's end of decode */
    CHECK_INT(stage.reply.times.has_kernels, 0);
    for (int s = VP_STAGE_H2D; s <= VP_STAGE_DECODE; s++) /* nothing was skipped */
        CHECK(s == VP_STAGE_PRUNE || (stage.reply.times.device_ns[s] > 0 && stage.reply.times.wall_ns[s] > 0));
    check_case("timing off");
    r.timing = VP_TIMING_OFF;
    before = cuda_on_cpu_calls("event");
    CHECK_INT(run_request(engine, &r, &other, &error), VP_OK);
    CHECK(is_healthy(&other));
    CHECK_INT(other.reply.times.stamps, 0);
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        CHECK(other.reply.times.device_ns[s] == 0 && other.reply.times.wall_ns[s] == 0);
        CHECK(other.reply.times.ran[s] == stage.reply.times.ran[s] && other.reply.times.launches[s] == stage.reply.times.launches[s]);
    }
    for (int i = 0; i < NEW_TOKENS; i++) CHECK_INT(other.step_ns[i], 0);
    /* the others are an event per token, and those of the copies, whose times are not read */
    CHECK_INT(events - (cuda_on_cpu_calls("event") - before), 1 + 7 - 1 + 7 + (NEW_TOKENS - 1));
    check_case("timing by kernels");
    r.timing = VP_TIMING_KERNEL;
    r.launches = launches;
    r.launch_capacity = ROOM;
    before = cuda_on_cpu_calls("graph");
    CHECK_INT(run_request(engine, &r, &other, &error), VP_OK);
    CHECK_INT(cuda_on_cpu_calls("graph"), before);
    CHECK(is_healthy(&other));
    int64_t all = other.reply.launch_count;
    CHECK(all > 90 && all <= ROOM);
    CHECK_INT(other.reply.times.stamps, stage.reply.times.stamps + 2 * all);
    CHECK_INT(other.reply.times.has_kernels, 1);
    books_check(launches, &other.reply, 1);
    for (int64_t i = 0; i < all; i++) CHECK(launches[i].ns > 0 && launches[i].host_ns > 0 && (!i || launches[i].host_begin_ns > launches[i - 1].host_begin_ns));
    for (int s = VP_STAGE_H2D; s <= VP_STAGE_DECODE; s++) {
        double device = (double)other.reply.times.device_ns[s];
        CHECK_INT(other.reply.times.launches[s], stage.reply.times.launches[s]);
        if (s == VP_STAGE_PREFILL || s == VP_STAGE_DECODE) CHECK(other.reply.times.kernel_ns[s] <= other.reply.times.device_ns[s]);
        else CHECK_NEAR((double)other.reply.times.kernel_ns[s], device, 0.001 * device + (s == VP_STAGE_H2D ? 1000 : 200)); /* the host's first launch takes longer */
    }
    check_case("timing by kernels, ended by EOS while the next step is in flight");
    r.ignore_eos = 0;
    r.eos_id = healthy.tokens[1];
    CHECK_INT(run_request(engine, &r, &other, &error), VP_OK);
    CHECK(other.reply.token_count <= 2 && other.reply.ended_by_eos);
    CHECK(other.reply.launch_count < all);
    books_check(launches, &other.reply, 1);
    for (int s = 0; s < VP_STAGE_COUNT; s++) other.reply.launch_count -= other.reply.times.launches[s];
    CHECK_INT(other.reply.launch_count, 0);
    check_case("timing by kernels while the host's clock runs 20 %% fast: no launch is later than its kernel");
    cuda_on_cpu_set("HOST_FAST", "200000");
    r.ignore_eos = 1;
    CHECK_INT(run_request(engine, &r, &other, &error), VP_OK);
    books_check(launches, &other.reply, 1);
    cuda_on_cpu_set("HOST_FAST", NULL);
    check_case("the cost of a stamp");
    vp_engine_settle(engine);
    CHECK(vp_engine_stamp_cost_ns(engine) > 0);
    CHECK_INT(vp_engine_broken(engine), 0);
    CLOSES(engine);
    free(launches);
}
/* ---- CUPTI's records instead of events (tests/emulator/cupti_on_cpu.h describes the values of CUDA_ON_CPU_CUPTI) */
enum { CUPTI_ROOM = 4096 };
/* the same launches, times and tokens as with events, which take no time on the emulated device */
static void check_traced(const vp_launch *traced, const answer *a, const vp_launch *by_events, const answer *events) {
    int named = 0, nodes = 0;
    CHECK(is_healthy(a));
    CHECK_INT(a->reply.launch_count, events->reply.launch_count);
    books_check(traced, &a->reply, 1);
    for (int64_t i = 0; i < a->reply.launch_count; i++) {
        const vp_launch *l = &traced[i], *e = &by_events[i];
        int64_t apart = l->ns - e->ns;
        named += l->kernel != NULL;
        nodes += l->node > 0;
        check_note(!strncmp(l->name, e->name, strlen(e->name)) && l->flops == e->flops && l->stage == e->stage && l->step == e->step && apart >= -130 && apart <= 130,
                   __FILE__, __LINE__, "launch %lld: %s, %lld ns; by events %s, %lld ns", (long long)i, l->name, (long long)l->ns, e->name, (long long)e->ns);
        if (!strncmp(e->name, "gemm", 4))
            check_note(l->kernel && strstr(l->name, l->kernel) && !strncmp(l->kernel, "emulated_gemm_", 14) && l->threads == 384 && l->registers == 77,
                       __FILE__, __LINE__, "launch %lld: %s is %s", (long long)i, l->name, l->kernel ? l->kernel : "nothing");
        else if (strncmp(e->name, "attention", 9)) CHECK(!l->kernel);
    }
    CHECK(named > 0 && nodes > 0);
}
static vp_result open_with_cupti(const char *setting, vp_engine **engine) {
    vp_error error;
    setenv("CUDA_ON_CPU_CUPTI", setting, 1);
    cuda_on_cpu_reset(1);
    check_case("CUPTI=%s", setting);
    return open_engine(engine, 320, &error);
}
static void test_cupti_works(const char *setting, int whole, vp_launch *launches, const vp_launch *by_events, const answer *events) {
    vp_engine *engine = NULL, *second = NULL;
    vp_error error;
    answer a;
    vp_request r = request_of(VP_TIMING_KERNEL);
    if (!CHECK_INT(open_with_cupti(setting, &engine), VP_OK)) return;
    r.launches = launches;
    r.launch_capacity = CUPTI_ROOM;
    for (int i = 0; i < 2; i++) { /* the first request records the step */
        long event_calls = cuda_on_cpu_calls("event");
        long graphs = cuda_on_cpu_calls("graph");
        CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
        check_traced(launches, &a, by_events, events);
        CHECK(cuda_on_cpu_calls("event") - event_calls < 60 && cuda_on_cpu_calls("graph") > graphs);
        CHECK_INT(a.reply.times.stamps, events->reply.times.stamps - 2 * events->reply.launch_count);
    }
    for (int64_t i = 0; i < a.reply.launch_count; i++) CHECK((launches[i].node > 0) == (launches[i].stage == VP_STAGE_DECODE));
    CHECK(strstr(vp_engine_launch_timer(engine), "activity records of CUPTI, version ") != NULL);
    CHECK_TEXT(vp_engine_device_note(engine), "");
    if (!whole) { vp_engine_close(engine); return; }
    r.ignore_eos = 0; /* a step that was sent in advance has records but no launch */
    r.eos_id = healthy.tokens[1];
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    CHECK(a.reply.ended_by_eos && a.reply.launch_count < events->reply.launch_count);
    books_check(launches, &a.reply, 1);
    r.ignore_eos = 1;
    cuda_on_cpu_fail("launch", 20);
    CHECK_INT(run_request(engine, &r, &a, &error), VP_ERR_DEVICE);
    CHECK(strstr(error.text, ".h:") || strstr(error.text, ".cu:"));
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    check_traced(launches, &a, by_events, events);
    CHECK_INT(open_engine(&second, 320, &error), VP_OK);
    CHECK_INT(run_request(second, &r, &a, &error), VP_OK);
    CHECK(is_healthy(&a) && launches[a.reply.launch_count - 1].node == 0);
    CHECK_TEXT(vp_engine_launch_timer(second), "CUDA events: another engine of this process uses CUPTI");
    vp_engine_close(engine);
    CHECK_INT(run_request(second, &r, &a, &error), VP_OK);
    check_traced(launches, &a, by_events, events);
    CLOSES(second);
}
/* If records are lost or wrong, the request is repeated and later ones are timed by events. Both are reported. */
static void test_cupti_fails(const char *setting, const char *timer, const char *note) {
    static vp_launch launches[CUPTI_ROOM];
    vp_engine *engine = NULL;
    vp_error error;
    answer a;
    vp_request r = request_of(VP_TIMING_KERNEL);
    if (!CHECK_INT(open_with_cupti(setting, &engine), VP_OK)) return;
    r.launches = launches;
    r.launch_capacity = CUPTI_ROOM;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
        CHECK(is_healthy(&a));
        if (!strstr(setting, "swap") || i) books_check(launches, &a.reply, 1);
    }
    CHECK(launches[a.reply.launch_count - 1].node == 0 && !launches[a.reply.launch_count - 1].kernel);
    CHECK_TEXT(vp_engine_launch_timer(engine), timer);
    CHECK_TEXT(vp_engine_device_note(engine), note);
    CLOSES(engine);
}
static void no_cupti(const char *setting, const char *timer) {
    check_case("CUPTI=%s", setting);
    cuda_on_cpu_set("CUPTI", setting);
    CHECK_TEXT(vp_device_launch_timer(), timer);
}
static void test_cupti(void) {
    static vp_launch by_events[CUPTI_ROOM], launches[CUPTI_ROOM];
    static const char *const works[] = { "130001", "18", "28,empty", "130001,small", "130001,late" };
    const char *lost = "launches are timed by events: CUPTI lost records", *wrong = "launches are timed by events: CUPTI's records did not match the launches";
    vp_engine *engine = NULL;
    vp_engine_options options = vp_engine_options_default();
    vp_error error;
    answer events;
    vp_request r = request_of(VP_TIMING_KERNEL);
    check_case("launches timed by events, for comparison");
    cuda_on_cpu_reset(1);
    r.launches = by_events;
    r.launch_capacity = CUPTI_ROOM;
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    CHECK_INT(run_request(engine, &r, &events, &error), VP_OK);
    CHECK_TEXT(vp_engine_launch_timer(engine), "CUDA events: no libcupti.so.13; it comes with the CUDA Toolkit");
    vp_engine_close(engine);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) test_cupti_works(works[i], i == 0, launches, by_events, &events);
    test_cupti_fails("130001,drop=70", "CUDA events: CUPTI lost records", lost);
    test_cupti_fails("130001,lose=70", "CUDA events: CUPTI's records did not match the launches", wrong);
    test_cupti_fails("130001,swap", "CUDA events: CUPTI's records did not match the launches", wrong);
    test_cupti_fails("130001,stretch", "CUDA events: a stage takes longer by CUPTI's clock than by events",
                     "launches are timed by events: a stage takes longer by CUPTI's clock than by events");
    no_cupti("130001,cuptiActivityFlushAll", "CUDA events: libcupti.so.13 has no cuptiActivityFlushAll");
    no_cupti("17", "CUDA events: libcupti.so.13 has version 17, which vlmprof does not support");
    no_cupti("140000", "CUDA events: libcupti.so.13 has version 140000, which vlmprof does not support");
    no_cupti("130001,cuptiGetVersion=35", "CUDA events: cuptiGetVersion: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (status 35)");
    no_cupti("130001,cuptiActivityRegisterCallbacks=1", "CUDA events: cuptiActivityRegisterCallbacks: CUPTI_ERROR_UNKNOWN (status 1)");
    test_cupti_fails("17", "CUDA events: libcupti.so.13 has version 17, which vlmprof does not support", "");
    test_cupti_fails("130001,cuptiActivityEnable=39",
                     "CUDA events: cuptiActivityEnable: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (status 39)", "");
    check_case("events on request, although CUPTI is available");
    setenv("CUDA_ON_CPU_CUPTI", "130001", 1);
    cuda_on_cpu_reset(1);
    options.config = &config;
    options.device = "cuda";
    options.gpu = VP_GPU_EVENTS;
    options.max_sequence = 320;
    options.max_views = 1;
    if (CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) {
        CHECK_INT(run_request(engine, &r, &events, &error), VP_OK);
        CHECK(by_events[events.reply.launch_count - 1].node == 0);
        CHECK_TEXT(vp_engine_launch_timer(engine), "CUDA events: as asked");
        vp_engine_close(engine);
    }
    unsetenv("CUDA_ON_CPU_CUPTI");
    cuda_on_cpu_reset(1);
}
/* decode steps with dependent launches: the same bits, under several schedules, as graphs and kernel by kernel */
static void test_dependents(void) {
    vp_engine_options options = vp_engine_options_default();
    vp_request r = request_of(VP_TIMING_STAGE);
    size_t bytes = (size_t)NEW_TOKENS * (size_t)config.embedding_size * sizeof(float);
    float *want = (float *)malloc(bytes), *logits = (float *)malloc(bytes);
    vp_error error;
    answer a;
    setenv("CUDA_ON_CPU_CAPABILITY", "9.0", 1);
    options.config = &config;
    options.device = "cuda";
    options.max_sequence = 320;
    options.max_views = 1;
    for (int seed = 0; seed < 3; seed++) {
        vp_engine *engine = NULL;
        check_case("dependent launches, seed %d", seed);
        cuda_on_cpu_reset((uint64_t)seed + 1);
        options.gpu = seed ? VP_GPU_DEPENDENT : 0;
        vp_dump dump = {.logits = seed ? logits : want};
        r.dump = &dump;
        if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) break;
        for (int i = 0; i < 2; i++) { /* first sent one by one, then as a graph */
            memset(logits, 0, bytes);
            CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
            CHECK(!seed || !memcmp(logits, want, bytes));
        }
        CHECK_TEXT(vp_engine_device_note(engine), "");
        CLOSES(engine);
    }
    unsetenv("CUDA_ON_CPU_CAPABILITY");
    cuda_on_cpu_reset(1);
    FREE_ALL(want, logits);
}
/* One request with or without VP_GPU_TUNED: its logits; ns of its products by the virtual clock; the number of products requested. The third of the emulated cuBLAS's
 * algorithms is the fastest, with 70 % of the first one's time. `fail`: a call of that kind fails while algorithms are timed. */
typedef struct tuning { float *logits; int64_t product_ns; long products; int is_noted; } tuning;
static void tune(tuning *t, uint32_t gpu, const char *fail, int nth) {
    enum { ROOM = 1024 };
    static vp_launch launches[ROOM];
    vp_engine_options options = vp_engine_options_default();
    vp_request r = request_of(VP_TIMING_KERNEL);
    vp_engine *engine = NULL;
    vp_error error;
    answer a;
    options.config = &config;
    options.device = "cuda";
    options.gpu = gpu;
    options.max_sequence = 320;
    options.max_views = 1;
    cuda_on_cpu_reset(1);
    t->logits = (float *)calloc((size_t)NEW_TOKENS * (size_t)config.embedding_size, sizeof(float));
    t->product_ns = 0;
    vp_dump dump = {.logits = t->logits};
    r.dump = &dump;
    r.launches = launches;
    r.launch_capacity = ROOM;
    if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) return;
    if (fail) cuda_on_cpu_fail(fail, nth);
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK); /* warm-up */
    cuda_on_cpu_fail(NULL, 0);
    t->products = cuda_on_cpu_calls("gemm");
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    t->products = cuda_on_cpu_calls("gemm") - t->products;
    CHECK(a.reply.launch_count < ROOM);
    for (int i = 0; i < a.reply.launch_count; i++)
        if (!strncmp(launches[i].name, "gemm", 4) && launches[i].step == 0) t->product_ns += launches[i].ns;
    t->is_noted = strstr(vp_engine_device_note(engine), "algorithms were not timed") != NULL;
    CLOSES(engine);
}
static void test_tuned(void) {
    const size_t bytes = (size_t)NEW_TOKENS * (size_t)config.embedding_size * sizeof(float);
    static const struct { const char *kind; int nth; } faults[] = { { NULL, 0 }, { "gemm", 1 }, { "gemm", 9 }, { "alloc", 1 } };
    tuning plain, tuned;
    check_case("products with the algorithm that cuBLAS expects to be fastest");
    tune(&plain, 0, NULL, 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_case("products tuned, fault %s %d", faults[i].kind ? faults[i].kind : "none", faults[i].nth);
        tune(&tuned, VP_GPU_TUNED, faults[i].kind, faults[i].nth);
        CHECK(!memcmp(tuned.logits, plain.logits, bytes)); /* outputs that products add to were restored after each round */
        CHECK_INT(tuned.products, plain.products);         /* a shape is timed once */
        CHECK_INT(tuned.is_noted, faults[i].kind && !strcmp(faults[i].kind, "alloc"));
        if (!faults[i].kind) CHECK_NEAR((double)tuned.product_ns / (double)plain.product_ns, 0.7, 0.005);
        else CHECK(tuned.product_ns < plain.product_ns && (double)tuned.product_ns > 0.69 * (double)plain.product_ns);
        free(tuned.logits);
    }
    free(plain.logits);
}
/* A decode step is exactly one graph with few kernels: six a block and three around the blocks. Their records equal a hand count for the preset's shapes: additions,
 * multiplications, divisions, exponentials and comparisons one each; every operand read or written once. */
static void test_decode_step(void) {
    enum { ROOM = 4096, MOST_A_BLOCK = 10, KERNELS = 9, SPLITS = 8 };
    int64_t d = config.d_model, heads = config.head_count, hd = config.head_dim, e = config.expert_count, h = config.expert_dim, k = 2,
            n = config.embedding_size, keys = input_count + 1, grid = (n + 7) / 8 < 24 ? (n + 7) / 8 : 24; /* 3 blocks on each of 8 multiprocessors */
    const struct { const char *name; int64_t flops, bytes; } want[KERNELS] = { /* step 1; bf16 except for the router */
        { "k_embed", 0, 2 * d + 4 * d + 4 },
        { "k_decode_qkv", 4 * d + 2 * 3 * d * d, 2 * 3 * d * d + 8 * d + 4 * 3 * d },
        { "k_decode_attention", 14 * d + keys * (4 * d + 5 * heads), 4 * (3 * d + 2 * d + hd + 1) + 2 * 2 * keys * d + 4 * SPLITS * (d + 2 * heads) },
        { "k_decode_out", 2 * d * d + d + SPLITS * (4 * heads + 2 * d) + d, 2 * d * d + 4 * SPLITS * (d + 2 * heads) + 8 * d },
        { "k_decode_router", 4 * d + 2 * e * d, 4 * e * d + 8 * d + 4 * e + 2 * d },
        { "k_decode_gate_up", e * (4 + e) + k * (2 * 2 * h * d + 4 * h), 4 * e + k * 2 * 2 * h * d + 2 * (d + k * h) + 8 * k },
        { "k_decode_down", k * d * (2 * h + 2), k * 2 * (h * d + h) + 8 * k + 8 * d },
        { "k_decode_head", 4 * d + n * (2 * d + 1), 2 * n * d + 8 * d + 4 * n + 8 * grid },
        { "k_decode_pick", grid + 1, 8 * grid + 4 + 8 } };
    vp_engine *engine = NULL;
    vp_error error;
    answer one, all;
    vp_request r = request_of(VP_TIMING_STAGE);
    vp_launch *launches = (vp_launch *)malloc(ROOM * sizeof *launches);
    static const char *const kinds[5] = { "launch", "gemm", "graph", "sync", "copy" };
    long calls[2][5];
    int a_step = 0, a_block[2] = { 0, 0 }, seen[KERNELS] = { 0 };
    check_case("a decode step is one graph");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    CHECK_INT(run_request(engine, &r, &one, &error), VP_OK); /* this request records the step */
    for (int long_one = 0; long_one < 2; long_one++) {
        for (int i = 0; i < 5; i++) calls[long_one][i] = cuda_on_cpu_calls(kinds[i]);
        r.max_new_tokens = long_one ? NEW_TOKENS : 1;
        CHECK_INT(run_request(engine, &r, long_one ? &all : &one, &error), VP_OK);
        for (int i = 0; i < 5; i++) calls[long_one][i] = cuda_on_cpu_calls(kinds[i]) - calls[long_one][i];
    }
    CHECK_INT(calls[1][0], calls[0][0]); /* no launch outside the graph, .. */
    CHECK_INT(calls[1][1], calls[0][1]);
    CHECK_INT(calls[1][4], calls[0][4]); /* no copy of a token, .. */
    CHECK_INT(calls[1][2] - calls[0][2], NEW_TOKENS - 1);
    CHECK_INT(calls[1][3] - calls[0][3], NEW_TOKENS - 1); /* .. and the host waits for each token once */
    check_case("kernels of a decode step");
    r.timing = VP_TIMING_KERNEL;
    r.launches = launches;
    r.launch_capacity = ROOM;
    CHECK_INT(run_request(engine, &r, &all, &error), VP_OK);
    for (int64_t i = 0; i < all.reply.launch_count && i < ROOM; i++) {
        const vp_launch *l = &launches[i];
        int found = 0;
        if (l->step != 1) continue;
        a_step++;
        if (CHECK(l->block >= -1 && l->block < 2) && l->block >= 0) a_block[l->block]++;
        while (found < KERNELS && strcmp(l->name, want[found].name)) found++;
        if (!check_note(found < KERNELS, __FILE__, __LINE__, "%s was not expected", l->name)) continue;
        seen[found]++;
        check_note((int64_t)l->flops == want[found].flops && (int64_t)l->bytes == want[found].bytes, __FILE__, __LINE__, "%s: %lld FLOPs, %lld bytes; by hand %lld, %lld",
                   l->name, (long long)l->flops, (long long)l->bytes, (long long)want[found].flops, (long long)want[found].bytes);
    }
    for (int i = 0; i < KERNELS; i++) CHECK_INT(seen[i], i == 0 || i > 6 ? 1 : config.block_count);
    for (int b = 0; b < config.block_count; b++) CHECK(a_block[b] == 6 && a_block[b] <= MOST_A_BLOCK);
    CHECK_INT(a_step, 3 + 6 * config.block_count);
    CHECK_INT(all.reply.times.launches[VP_STAGE_DECODE], (NEW_TOKENS - 1) * a_step);
    printf("decode step of %d blocks: %d kernels, %d a block, 1 graph launch\n", config.block_count, a_step, a_block[0]);
    CLOSES(engine);
    free(launches);
}
/* Biases are part of their products: the launches with a bias in the vision stages, in order, equal a hand count for the preset's shapes; bf16 except for the residual
 * and the input of pooling. */
static void test_biases(void) {
    enum { ROOM = 4096, PRODUCTS = 8 };
    int64_t w = config.vit_width, f = config.vit_mlp_dim, rows = 577, windows = 144;
    const struct { const char *name; int64_t flops, bytes; } want[PRODUCTS] = {
        { "gemm_bias", rows * 3 * w * (2 * w + 1), 2 * (3 * w * w + rows * w + rows * 3 * w + 3 * w) },
        { "gemm_bias", rows * w * (2 * w + 2), 2 * (w * w + rows * w) + 8 * rows * w + 4 * w },
        { "gemm_bias", rows * f * (2 * w + 1), 2 * (f * w + rows * w + rows * f + f) },
        { "k_quickgelu", 4 * rows * f, 4 * rows * f },
        { "gemm_bias", rows * w * (2 * f + 2), 2 * (w * f + rows * f) + 8 * rows * w + 4 * w },
        { "gemm_bias", windows * w * (2 * w + 1), 2 * (w * w + windows * w) + 4 * windows * w + 4 * w },
        { "gemm_bias", 4 * windows * 2 * w * (2 * w + 1), 2 * (2 * w * w + 4 * windows * w) + 4 * 4 * windows * 2 * w + 4 * 2 * w },
        { "gemm_bias", windows * w * (2 * w + 1), 2 * (w * w + windows * w + windows * w + w) } };
    vp_engine *engine = NULL;
    vp_error error;
    answer a;
    vp_request r = request_of(VP_TIMING_KERNEL);
    vp_launch *launches = (vp_launch *)malloc(ROOM * sizeof *launches);
    int found = 0;
    check_case("products with a bias");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    r.launches = launches;
    r.launch_capacity = ROOM;
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    for (int64_t i = 0; i < a.reply.launch_count && i < ROOM; i++) {
        const vp_launch *l = &launches[i];
        CHECK(strcmp(l->name, "k_bias_rows"));
        if ((strcmp(l->name, "gemm_bias") && strcmp(l->name, "k_quickgelu")) || !CHECK(found < PRODUCTS)) continue;
        check_note(!strcmp(l->name, want[found].name) && (int64_t)l->flops == want[found].flops && (int64_t)l->bytes == want[found].bytes, __FILE__, __LINE__,
                   "number %d is %s: %lld FLOPs, %lld bytes; by hand %s: %lld, %lld", found, l->name, (long long)l->flops, (long long)l->bytes,
                   want[found].name, (long long)want[found].flops, (long long)want[found].bytes);
        found++;
    }
    CHECK_INT(found, PRODUCTS);
    CHECK_TEXT(vp_engine_device_note(engine), "");
    CHECK(strstr(vp_engine_gemm(engine, 577), "biases: cublasLt;") && !strcmp(vp_engine_gemm(engine, 1), "gemv, one graph a step"));
    CLOSES(engine);
    free(launches);
}
/* If cuBLAS lacks a function, or planning fails at the n-th call, that many products take two launches. This is reported, and answers do not change. */
static void test_no_plan(const char *lacks, int n, int products, const char *note) {
    vp_engine *engine = NULL;
    vp_error error;
    answer a;
    vp_request r = request_of(VP_TIMING_STAGE);
    long plans = 0;
    check_case("no plan for products with a bias: %s", lacks ? lacks : "a failed call");
    cuda_on_cpu_reset(1);
    cuda_on_cpu_set("CUBLAS", lacks);
    if (n) cuda_on_cpu_fail("plan", n);
    if (CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) {
        for (int i = 0; i < 2; i++) {
            int64_t more = 0;
            CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
            CHECK(is_healthy(&a));
            for (int s = 0; s < VP_STAGE_COUNT; s++) more += a.reply.times.launches[s] - healthy.reply.times.launches[s];
            CHECK_INT(more, products);
            CHECK_TEXT(vp_engine_device_note(engine), note);
            if (i) CHECK_INT(cuda_on_cpu_calls("plan"), plans); /* nothing is planned twice, not even failed plans */
            plans = cuda_on_cpu_calls("plan");
        }
        CHECK((strstr(vp_engine_gemm(engine, 577), "biases: apart;") != NULL) == (lacks != NULL));
        vp_engine_close(engine);
    }
    CHECK_INT(cuda_on_cpu_live(), 0);
    cuda_on_cpu_set("CUBLAS", NULL);
}
/* on a GPU too small for the longest request, the sizes are reported; a shorter request can then be opened and served */
static void test_memory(void) {
    vp_engine *engine = NULL;
    vp_error error;
    answer a;
    char bytes[32];
    vp_ceilings ceilings;
    vp_request r = request_of(VP_TIMING_STAGE);
    check_case("memory of a GPU");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    uint64_t needed = vp_engine_bytes(engine);
    vp_engine_close(engine);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)needed - 1);
    setenv("CUDA_ON_CPU_MEMORY", bytes, 1);
    cuda_on_cpu_reset(1);
    engine = NULL;
    CHECK_INT(open_engine(&engine, 320, &error), VP_ERR_MEMORY);
    CHECK(!engine);
    CHECK_TEXT(error.where, "engine memory");
    if (!CHECK(strstr(error.text, "weights need ") && strstr(error.text, "buffers ") && strstr(error.text, "(320 positions, 1 views)") &&
               strstr(error.text, "is free on the GPU; --weights int8 needs half and int4 a third; use fewer crops"))) printf("  said: %s\n", error.text);
    CHECK_INT(cuda_on_cpu_live(), 0);
    if (!CHECK_INT(open_engine(&engine, input_count + NEW_TOKENS, &error), VP_OK)) return;
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    CHECK(is_healthy(&a));
    vp_engine_close(engine);
    setenv("CUDA_ON_CPU_MEMORY", "200000000", 1);
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    CHECK_INT(vp_engine_ceilings(engine, &ceilings, &error), VP_ERR_MEMORY);
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    vp_engine_close(engine);
    setenv("CUDA_ON_CPU_MEMORY", "100000", 1);
    cuda_on_cpu_reset(1);
    CHECK_INT(open_engine(&engine, 1, &error), VP_ERR_MEMORY);
    CHECK(strstr(error.text, "even the weights do not fit") != NULL);
    unsetenv("CUDA_ON_CPU_MEMORY");
    cuda_on_cpu_reset(1);
}

/* ------------------------------------------------------------------------------------------------------------------ telemetry */
static void nvml(const char *setting) {
    setenv("CUDA_ON_CPU_NVML", setting, 1);
    cuda_on_cpu_reset(1);
}
static void refuse_telemetry(const char *setting, int32_t device, vp_result code, const char *reason) {
    vp_telemetry t, untouched;
    vp_error error;
    check_case("telemetry, NVML=%s, device %d", setting, (int)device);
    memset(&untouched, 0x5a, sizeof untouched);
    t = untouched;
    nvml(setting);
    CHECK_INT(vp_device_telemetry(device, &t, &error), code);
    CHECK(!memcmp(&t, &untouched, sizeof t));
    if (!CHECK(strstr(error.text, reason) != NULL)) printf("  said: %s: %s\n", error.where, error.text);
}
static void test_telemetry(void) {
    vp_telemetry t;
    vp_error error;
    check_case("telemetry of two devices that NVML lists in a different order");
    setenv("CUDA_ON_CPU_DEVICES", "2", 1);
    setenv("CUDA_ON_CPU_THROTTLE", "0x44", 1);
    for (int i = 0; i < 2; i++) {
        nvml("");
        CHECK_INT(vp_device_telemetry(i, &t, &error), VP_OK);
        CHECK(t.sm_clock_mhz == 1500 + i && t.sm_clock_max_mhz == 1980 + i && t.memory_clock_mhz == 2600 + i && t.memory_clock_max_mhz == 2619 + i);
        CHECK_NEAR(t.power_w, 350.5 + i, 1e-9);
        CHECK_NEAR(t.power_limit_w, 700.0 + i, 1e-9);
        CHECK(t.temperature_c == 41 + i && t.utilisation_percent == 73 + i && t.throttle_count > 0);
        CHECK(t.has_throttle_reasons == 1 && t.throttle_reasons == 0x44 && (t.throttle_reasons & VP_THROTTLE_SLOWED));
    }
    unsetenv("CUDA_ON_CPU_THROTTLE");
    refuse_telemetry("", 2, VP_ERR_DEVICE, "there is no device 2");
    unsetenv("CUDA_ON_CPU_DEVICES");
    check_case("telemetry with a driver that reports less");
    nvml("nvmlDeviceGetPowerUsage,nvmlDeviceGetClockInfo=3,nvmlDeviceGetTemperature=15,nvmlDeviceGetCurrentClocksEventReasons=3,nvmlDeviceGetViolationStatus=3");
    CHECK_INT(vp_device_telemetry(0, &t, &error), VP_OK);
    CHECK(isnan(t.power_w) && isnan(t.sm_clock_mhz) && isnan(t.memory_clock_mhz) && isnan(t.temperature_c) && isnan(t.throttle_count) && !t.has_throttle_reasons);
    CHECK(t.sm_clock_max_mhz == 1980 && t.power_limit_w > 0 && t.utilisation_percent == 73);
    check_case("telemetry with a driver that uses the old name of throttle reasons");
    nvml("nvmlDeviceGetCurrentClocksEventReasons");
    CHECK_INT(vp_device_telemetry(0, &t, &error), VP_OK);
    CHECK(t.has_throttle_reasons == 1 && t.throttle_reasons == 0);
    nvml("nvmlDeviceGetCurrentClocksEventReasons,nvmlDeviceGetCurrentClocksThrottleReasons");
    CHECK_INT(vp_device_telemetry(0, &t, &error), VP_OK);
    CHECK_INT(t.has_throttle_reasons, 0);
    refuse_telemetry("0", 0, VP_ERR_UNSUPPORTED, "libnvidia-ml.so.1");
    refuse_telemetry("nvmlInit_v2", 0, VP_ERR_UNSUPPORTED, "lacks a function");
    refuse_telemetry("nvmlInit_v2=15", 0, VP_ERR_UNSUPPORTED, "cannot start: GPU is lost (status 15)");
    refuse_telemetry("nvmlInit_v2=15,nvmlErrorString", 0, VP_ERR_UNSUPPORTED, "status 15");
    refuse_telemetry("nvmlDeviceGetHandleByPciBusId_v2=6", 0, VP_ERR_UNSUPPORTED, "does not know the device at 0000:10:00.0");
    unsetenv("CUDA_ON_CPU_NVML");
    cuda_on_cpu_reset(1);
}

static void refuse_energy(const char *setting, int32_t device, vp_result code, const char *reason) {
    double joules = -1;
    vp_error error;
    check_case("energy, NVML=%s, device %d", setting, (int)device);
    nvml(setting);
    CHECK_INT(vp_device_energy(device, &joules, &error), code);
    CHECK(joules == -1);
    if (!CHECK(strstr(error.text, reason) != NULL)) printf("  said: %s: %s\n", error.where, error.text);
}
/* the emulated counter: 300 W by the host's clock, 301 W on the second device, in steps of 5 ms */
static void test_energy(void) {
    const struct timespec pause = { 0, 30000000 };
    vp_error error;
    check_case("energy of two devices, by their own counters");
    setenv("CUDA_ON_CPU_DEVICES", "2", 1);
    nvml("");
    for (int i = 0; i < 2; i++) {
        double before = 0, after = 0;
        int64_t since = vp_clock_ns(), until;
        CHECK_INT(vp_device_energy(i, &before, &error), VP_OK);
        nanosleep(&pause, NULL);
        CHECK_INT(vp_device_energy(i, &after, &error), VP_OK);
        until = vp_clock_ns();
        CHECK(after - before >= (300 + i) * 0.025 && after - before <= (300 + i) * ((double)(until - since) * 1e-9 + 0.006));
    }
    refuse_energy("", 2, VP_ERR_DEVICE, "there is no device 2");
    unsetenv("CUDA_ON_CPU_DEVICES");
    refuse_energy("", -1, VP_ERR_UNSUPPORTED, "only on GPUs");
    refuse_energy("0", 0, VP_ERR_UNSUPPORTED, "libnvidia-ml.so.1");
    refuse_energy("nvmlDeviceGetTotalEnergyConsumption", 0, VP_ERR_UNSUPPORTED, "has no nvmlDeviceGetTotalEnergyConsumption");
    refuse_energy("nvmlDeviceGetTotalEnergyConsumption=3", 0, VP_ERR_UNSUPPORTED, "does not count energy on this device: Not Supported (status 3)");
    unsetenv("CUDA_ON_CPU_NVML");
    cuda_on_cpu_reset(1);
}

/* a machine described by environment variables is rejected for one reason, with this code, and nothing remains allocated */
static void test_machine(const char *name, const char *value, vp_result code, const char *reason) {
    vp_error error;
    life l;
    check_case("%s=%s", name, value);
    setenv(name, value, 1);
    cuda_on_cpu_reset(1);
    CHECK_INT(live(VP_TIMING_STAGE, &l, &error), code);
    if (!CHECK(strstr(error.text, reason) != NULL || strstr(error.where, reason) != NULL)) printf("  said: %s: %s\n", error.where, error.text);
    CHECK_INT(cuda_on_cpu_live(), 0);
    unsetenv(name);
    cuda_on_cpu_reset(1);
}

/* Measurements on the emulated clock are known exactly; a failing call is reported, and succeeds when repeated. */
static void test_ceilings(void) {
    static const char *const kinds[] = { "launch", "copy", "gemm", "event" };
    vp_engine *engine = NULL;
    vp_error error;
    vp_ceilings c, untouched;
    vp_memory_block b;
    uint64_t device = 0, pinned = 0;
    answer a;
    vp_request r = request_of(VP_TIMING_STAGE);
    check_case("ceilings and memory blocks of a GPU");
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(open_engine(&engine, 320, &error), VP_OK)) return;
    memset(&c, 0x5a, sizeof c);
    untouched = c;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        cuda_on_cpu_fail(kinds[i], 1);
        CHECK_INT(vp_engine_ceilings(engine, &c, &error), VP_ERR_DEVICE);
        CHECK(!memcmp(&c, &untouched, sizeof c) && !vp_engine_broken(engine));
    }
    cuda_on_cpu_reset(1);
    cuda_on_cpu_set("LOAD", "60000000"); /* a GPU's library also takes time to load */
    if (!CHECK_INT(vp_engine_ceilings(engine, &c, &error), VP_OK)) return;
    cuda_on_cpu_set("LOAD", NULL);
    double blocks = (double)c.read_bytes / 262144.0;
    double n = (double)c.product_size;
    CHECK(n > 256.0); /* the first size is not the last, however long loading its code took */
    CHECK_NEAR(c.bytes_per_s, (double)c.read_bytes * 1e9 / (3000.0 + 2.0 * blocks), 1e-3 * c.bytes_per_s);
    CHECK_NEAR(c.copy_bytes_per_s, 2.0 * 134217728.0 * 1e9 / (2000.0 + 134217728.0 / 1000.0), 1e-3 * c.copy_bytes_per_s);
    CHECK_NEAR(c.flops_per_s, 2.0 * n * n * n * 1e9 / (3000.0 + 2.0 * n * n * n / 1e5), 1e-3 * c.flops_per_s);
    for (int32_t i = 0; vp_engine_memory(engine, i, &b); i++)
        if (b.on_device) device += b.bytes;
        else pinned += b.bytes;
    CHECK(device == vp_engine_bytes(engine) && pinned > (32u << 20) && pinned < (33u << 20));
    CHECK_INT(run_request(engine, &r, &a, &error), VP_OK);
    CHECK(is_healthy(&a));
    CLOSES(engine);
}
int main(void) {
    static const char *const kinds[] = { "alloc", "host", "launch", "copy", "event", "gemm", "stream", "sync", "graph", "cublas", "plan", "illegal" };
    vp_error error;
    life l;
    make_inputs();
    check_case("a run without faults, under several schedules");
    cuda_on_cpu_reset(1);
    CHECK_INT(live(VP_TIMING_STAGE, &l, &error), VP_OK);
    healthy = l.a;
    CHECK_INT(cuda_on_cpu_live(), 0);
    for (uint64_t seed = 2; seed <= 5; seed++) {
        cuda_on_cpu_reset(seed);
        CHECK_INT(live(seed % 2 ? VP_TIMING_OFF : VP_TIMING_KERNEL, &l, &error), VP_OK);
        CHECK(is_healthy(&l.a));
        CHECK_INT(cuda_on_cpu_live(), 0);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) test_kind(kinds[i], VP_TIMING_STAGE);
    test_kind("event", VP_TIMING_KERNEL);
    test_kind("event", VP_TIMING_OFF);
    RUN_TESTS(test_contexts, test_no_recording, test_warm, test_timing, test_cupti, test_dependents, test_tuned, test_decode_step, test_biases);
    test_no_plan("cublasLtMatmul", 0, 7, "products with a bias take two launches: cuBLAS lacks cublasLtMatmul");
    test_no_plan(NULL, 6, 1, "a product of 577 x 192 x 64 and its bias take two launches: cublasLt's find, status 15");
    RUN_TESTS(test_memory, test_ceilings, test_telemetry, test_energy);
    test_machine("CUDA_ON_CPU_DEVICES", "0", VP_ERR_DEVICE, "no NVIDIA GPU");
    test_machine("CUDA_ON_CPU_DRIVER", "0", VP_ERR_DEVICE, "no NVIDIA driver");
    test_machine("CUDA_ON_CPU_DRIVER", "11040", VP_ERR_DEVICE, "too old: it supports CUDA 11.4");
    test_machine("CUDA_ON_CPU_CAPABILITY", "7.5", VP_ERR_DEVICE, "compute capability 7.5; vlmprof needs 8.0");
    test_machine("CUDA_ON_CPU_MEMORY", "30000000", VP_ERR_MEMORY, "0.03 GB is free on the GPU");
    test_machine("CUDA_ON_CPU_CUBLAS", "0", VP_ERR_DEVICE, "libcublas.so.13");
    FREE_ALL(pixels, masks);
    return check_done("test_faults");
}
