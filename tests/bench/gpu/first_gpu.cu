/* first_gpu.cu - one case of the first run on a GPU (first_run.sh), in a process of its own; one JSON line on stdout for each finding, flushed.
 *
 *   first_gpu [--tiny] [--seed N] CASE...      runs it; exit 0: the line says what was found, 3: the device failed, which stderr describes
 *   first_gpu [--tiny] list                    STEP SECONDS CASE, a line for each
 *
 * It is compiled with the kernels, so that operations are captured and timed as the engine sends them, and by -DVK_SPIN_LIMIT with waits that end.
 * Inputs are drawn from a fresh seed; outputs are NaN before each run and all buffers have canaries around them; an operation runs three times and must
 * give the same bits. Every output is compared with a plain fp32 kernel, those of decode with fp64 sums on the host. Time: the median of 30 replays of a
 * graph, whose operands rotate over three times the second-level cache. Ended by SIGTERM it says which kernel was sent last. Emulated
 * (tests/engine/test_first_gpu.sh) FIRST_GPU_PLANT=FAULT:WORD,.. plants hang, illegal or wrong in the kernel, unsteady in the cases of that name. */
#ifdef CUDA_ON_CPU
#undef CUDA_LAUNCH
#define CUDA_LAUNCH(kernel, grid, threads, shared, stream, ...) \
    (plant_before(#kernel), cuda_on_cpu::launch(#kernel, kernel, grid, threads, shared, stream, __VA_ARGS__), plant_after(#kernel, stream, __VA_ARGS__))
static int planted(const char *fault, const char *name) {
    char list[200], *rest = list;
    size_t length = strlen(fault);
    snprintf(list, sizeof list, "%s", getenv("FIRST_GPU_PLANT") ? getenv("FIRST_GPU_PLANT") : "");
    for (char *plant = strtok_r(list, ",", &rest); plant; plant = strtok_r(NULL, ",", &rest))
        if (!strncmp(plant, fault, length) && plant[length] == ':' && strstr(name, plant + length + 1)) return 1;
    return 0;
}
static void plant_before(const char *kernel) {
    while (planted("hang", kernel)) pause();
    if (planted("illegal", kernel)) cuda_on_cpu_fail("illegal", 1);
}
/* what a kernel writes to: its first argument that is such a pointer, or that has one */
template <class T> static void *plant_target(T *to, int) { return std::is_const<T>::value ? NULL : (void *)(size_t)to; }
template <class T> static auto plant_target(const T &to, int) -> decltype((void *)to.y) { return (void *)to.y; }
template <class T> static void *plant_target(const T &, long) { return NULL; }
template <class... A> static void plant_after(const char *kernel, cudaStream_t stream, const A &...arguments) {
    void *to = NULL;
    if (!planted("wrong", kernel)) return;
    ((to = to ? to : plant_target(arguments, 0)), ...);
    cudaMemsetAsync(to, 0x41, 4, stream);
}
#else
#define planted(fault, name) 0
#endif
#define vk_gpu_code vk_gpu_code_itself /* below: one that knows which queue is open */
#include "vlmprof_kernels.cu"
#undef vk_gpu_code

#include "engine/engine_internal.h"
#include "vlmprof_checkpoint.h"
#include <signal.h>
#include <unistd.h>
#include <time.h>

enum { REPLAYS = 30, SETS_MOST = 16, BUFFERS_MOST = 512, CANARY = 512, LAUNCHES = 1 << 15, EXPERTS = 64, TOP_K = 8, RUNS = 15, BLOCKS_FEW = 4 };
static struct first {
    char name[160];
    int tiny, guilty; /* guilty: the launch whose result was wrong, if that is known; else -1 */
    unsigned seed;
    const vk_backend *backend;
    vk_queue *queue;
    vk_cuda *cuda;
    struct cudaDeviceProp device;
    struct { char *from; size_t bytes; } buffer[BUFFERS_MOST];
    int buffers;
} f;
static vk_backend itself[2];
static vp_result open_itself(const vk_setup *setup, vk_queue **queue, vp_error *error) {
    vp_result result = vk_gpu_code_itself()->open(setup, queue, error);
    if (result == VP_OK) f.queue = *queue;
    return result;
}
extern "C" const vk_backend *vk_gpu_code(void) {
    itself[0] = *vk_gpu_code_itself();
    itself[1] = *itself[0].by_cublas;
    itself[0].open = itself[1].open = open_itself;
    itself[0].by_cublas = &itself[1];
    return itself;
}
typedef struct gpu_way { const char *word; uint32_t bit; int same_bits; vp_weights weights; } gpu_way;
#define WAY(name, bit, word, same_bits) { word, bit, same_bits, VP_WEIGHTS_BF16 },
static const gpu_way WAYS[] = { { "default", 0, 1, VP_WEIGHTS_BF16 }, VP_GPU_SWITCHES(WAY) { "int8", 0, 0, VP_WEIGHTS_INT8 }, { "int4", 0, 0, VP_WEIGHTS_INT4 } };
static const gpu_way *way_of(const char *word) {
    for (size_t i = 0; word && i < sizeof WAYS / sizeof *WAYS; i++) if (!strcmp(WAYS[i].word, word)) return &WAYS[i];
    fprintf(stderr, "first_gpu: there is no way %s\n", word ? word : "");
    exit(2);
}

/* ---------------------------------------------------------------------------------------------------------------------------- lines and failures */
static void begin_line(const char *status) { printf("{\"case\": \"%s\", \"status\": \"%s\", \"seed\": %u", f.name, status, f.seed); }
static void end_line(void) {
    printf("}\n");
    fflush(stdout);
}
static void put(const char *key, double value) { printf(isfinite(value) ? ", \"%s\": %.9g" : ", \"%s\": null", key, value); }
static void put_text(const char *key, const char *text) {
    printf(", \"%s\": \"", key);
    for (; *text; text++) if (*text != '"' && *text != '\\' && (unsigned char)*text >= ' ') putchar(*text);
    putchar('"');
}
static void die(const char *where, const char *text) {
    fprintf(stderr, "first_gpu: %s: %s: %s\n", f.name, where, text);
    exit(3);
}
static void check(cudaError_t status, const char *what) { if (status != cudaSuccess) die(what, cudaGetErrorString(status)); }
#define CHECK(call) check(call, #call)
/* on the queue's stream, which waits for no other one */
static void fill(void *at, int byte, size_t bytes) { CHECK(cudaMemsetAsync(at, byte, bytes, f.cuda->stream)); }
static void move(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    CHECK(cudaMemcpyAsync(to, from, bytes, kind, f.cuda->stream));
    CHECK(cudaStreamSynchronize(f.cuda->stream));
}
static void settle(void) {
    vp_error error = { VP_OK, -1, "", "" };
    f.backend->mark(f.queue, 0, NULL);
    if (f.backend->wait(f.queue, 0, &error) != VP_OK) die(error.where, error.text);
}

/* -------------------------------------------------------------------------------------------------------------------------------------- buffers */
static void *room(size_t bytes) {
    char *from;
    if (f.buffers == BUFFERS_MOST) die("room", "too many buffers");
    CHECK(cudaMalloc((void **)&from, bytes + 2 * CANARY));
    fill(from, 0xc5, bytes + 2 * CANARY);
    fill(from + CANARY, 0xff, bytes);
    f.buffer[f.buffers].from = from;
    f.buffer[f.buffers++].bytes = bytes;
    return from + CANARY;
}
static void poison(void *at, size_t bytes) { fill(at, 0xff, bytes); }
/* 1: nothing around a buffer was written */
static int canaries_live(void) {
    unsigned char edge[CANARY];
    for (int i = 0; i < f.buffers; i++)
        for (int end = 0; end < 2; end++) {
            move(edge, f.buffer[i].from + (end ? CANARY + f.buffer[i].bytes : 0), CANARY, cudaMemcpyDeviceToHost);
            for (int j = 0; j < CANARY; j++) if (edge[j] != 0xc5) return 0;
        }
    return 1;
}
FN unsigned first_hash(unsigned i, unsigned seed) {
    unsigned h = (i + seed * 40503u) * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return h;
}
/* values of both signs below `size`, in the first k of ld columns; zeros behind */
KERNEL(k_first_draw, void *to, unsigned seed, int rows, int k, int ld, float size, int wide) {
    for (int row = (int)BLK; row < rows; row += (int)gridDim.x)
        EACH(i, ld) vk_put(to, (size_t)row * (size_t)ld + (size_t)i,
                           i < k ? size * ((float)(first_hash((unsigned)(row * ld + i), seed) >> 8) / 8388608.0f - 1.0f) : 0.0f, wide);
}
static unsigned draws;
static void *drawn(int rows, int k, int ld, float size, int wide) {
    void *to = room((size_t)rows * (size_t)ld * (wide ? 4 : 2));
    CUDA_LAUNCH(k_first_draw, (unsigned)(rows < 65535 ? rows : 65535), 256u, (size_t)0, f.cuda->stream, to, f.seed + ++draws, rows, k, ld, size, wide);
    CHECK(cudaGetLastError());
    return to;
}

/* ----------------------------------------------------------------------------------------------------------- references, each a plain fp32 loop
 * worst[block]: the largest error in tolerances; a NaN is infinitely wrong. Sums on tensor cores are cut 16 products at a time, and results rounded. */
FN float first_wrong(float got, double want, double scale, int k, int is_bf16, double more) {
    double tolerance = scale * (k / 16 + 4) * 1.2e-7 + (is_bf16 ? fabs(want) / 256.0 : 0.0) + more + 1e-30, d = fabs((double)got - want);
    return d <= tolerance * 1e9 ? (float)(d / tolerance) : INFINITY;
}
typedef struct first_linear {
    const void *y; const uint16_t *x, *w; const float *bias; int ldy, ldx, n, k, k_padded, epilogue, wide; float before; const float *added;
} first_linear;
KERNEL(k_first_linear, float *worst, first_linear job) {
    float most = 0.0f;
    EACH_MAX(c, job.n, most) {
        float sum = job.bias ? job.bias[c] : 0.0f, bias = fabsf(sum), scale = bias, value, wrong;
        int gelu = job.epilogue == VK_QUICKGELU;
        for (int i = 0; i < job.k; i++) {
            float product = vk_b2f(job.x[BLK * (size_t)job.ldx + (size_t)i]) * vk_b2f(job.w[(size_t)c * (size_t)job.k_padded + (size_t)i]);
            sum += product;
            scale += fabsf(product);
        }
        value = job.epilogue == VK_ADD_F32 ? sum + (job.added ? job.added[c] : job.before) : gelu ? vk_quickgelu(sum) : sum;
        /* a bias, and what an activation of its own launch reads, may be rounded to bf16; its slope is below 1.1 */
        wrong = first_wrong(vk_get(job.y, BLK * (size_t)job.ldy + (size_t)c, job.wide), value, 1.1 * scale, job.k, !job.wide,
                            bias / 256.0 + (gelu ? 1.1 * fabs((double)sum) / 256.0 : 0.0));
        most = wrong > most ? wrong : most;
    }
    most = block_max(most);
    if (TID == 0) worst[BLK] = most;
}
typedef struct first_experts {
    const uint16_t *x, *up, *down, *hidden, *y;
    const float *share;
    const int32_t *list, *index;
    size_t up_stride, down_stride; /* bytes */
    int ldx, ldh, ldy, d, dim, k_padded, dim_padded, top_k;
} first_experts;
KERNEL(k_first_hidden, float *worst, first_experts job) {
    const int32_t pair = job.list[BLK];
    const uint16_t *x = job.x + (size_t)(pair / job.top_k) * (size_t)job.ldx,
                   *w = (const uint16_t *)(const void *)((const char *)job.up + (size_t)job.index[pair] * job.up_stride);
    float most = 0.0f;
    EACH_MAX(c, job.dim, most) {
        const uint16_t *gate = w + (size_t)c * (size_t)job.k_padded, *up = gate + (size_t)job.dim * (size_t)job.k_padded;
        float g = 0.0f, u = 0.0f, gs = 0.0f, us = 0.0f, s, wrong;
        for (int i = 0; i < job.d; i++) {
            float v = vk_b2f(x[i]), a = v * vk_b2f(gate[i]), b = v * vk_b2f(up[i]);
            g += a; u += b; gs += fabsf(a); us += fabsf(b);
        }
        s = vk_silu(g);
        wrong = first_wrong(vk_b2f(job.hidden[BLK * (size_t)job.ldh + (size_t)c]), (double)s * (double)u,
                            1.1 * fabs((double)u) * (double)gs + fabs((double)s) * (double)us, job.d, 1, 0.0);
        most = wrong > most ? wrong : most;
    }
    most = block_max(most);
    if (TID == 0) worst[BLK] = most;
}
KERNEL(k_first_down, float *worst, first_experts job) {
    const int32_t pair = job.list[BLK];
    const uint16_t *x = job.hidden + BLK * (size_t)job.ldh,
                   *w = (const uint16_t *)(const void *)((const char *)job.down + (size_t)job.index[pair] * job.down_stride);
    float most = 0.0f;
    EACH_MAX(c, job.d, most) {
        float sum = 0.0f, scale = 0.0f, wrong;
        for (int i = 0; i < job.dim; i++) {
            float product = vk_b2f(x[i]) * vk_b2f(w[(size_t)c * (size_t)job.dim_padded + (size_t)i]);
            sum += product;
            scale += fabsf(product);
        }
        wrong = first_wrong(vk_b2f(job.y[BLK * (size_t)job.ldy + (size_t)c]), (double)(sum * job.share[pair]), (double)(scale * fabsf(job.share[pair])), job.dim, 1, 0.0);
        most = wrong > most ? wrong : most;
    }
    most = block_max(most);
    if (TID == 0) worst[BLK] = most;
}
typedef struct first_attention { const uint16_t *y, *q, *k, *v; int tokens, heads, head_dim, ldy, ld, causal; } first_attention;
KERNEL(k_first_attention, float *worst, first_attention job) {
    SHARED float weight[2048];
    int head = (int)(BLK % (size_t)job.heads), row = (int)(BLK / (size_t)job.heads), first = row / job.tokens * job.tokens,
        keys = job.causal ? row - first + 1 : job.tokens;
    const uint16_t *q = job.q + (size_t)row * (size_t)job.ld + head * job.head_dim;
    float top = -INFINITY, all = 0.0f, most = 0.0f;
    EACH_MAX(j, keys, top) {
        float s = 0.0f;
        for (int i = 0; i < job.head_dim; i++) s += vk_b2f(q[i]) * vk_b2f(job.k[(size_t)(first + j) * (size_t)job.ld + (size_t)(head * job.head_dim + i)]);
        weight[j] = s / sqrtf((float)job.head_dim);
        top = weight[j] > top ? weight[j] : top;
    }
    top = block_max(top);
    EACH_SUM(j, keys, all) { weight[j] = expf(weight[j] - top); all += weight[j]; }
    all = block_sum(all);
    SYNC();
    EACH_MAX(c, job.head_dim, most) {
        float sum = 0.0f, scale = 0.0f, wrong;
        for (int j = 0; j < keys; j++) {
            float product = weight[j] / all * vk_b2f(job.v[(size_t)(first + j) * (size_t)job.ld + (size_t)(head * job.head_dim + c)]);
            sum += product;
            scale += fabsf(product);
        }
        /* weights are rounded to bf16 before they are multiplied */
        wrong = first_wrong(vk_b2f(job.y[(size_t)row * (size_t)job.ldy + (size_t)(head * job.head_dim + c)]), sum, scale, keys, 1, scale / 128.0);
        most = wrong > most ? wrong : most;
    }
    most = block_max(most);
    if (TID == 0) worst[BLK] = most;
}

/* ----------------------------------------------------------------------------------------------------------------------------------- operations */
typedef struct op {
    const char *stage, *way;
    char shape[64];
    void (*send)(int set);   /* what is measured, on one set of operands */
    void (*reset)(int set);  /* what outputs contain before it; NULL: NaN */
    double (*judge)(float *judged); /* the largest error of set 0, in tolerances */
    int judged;              /* blocks of the judge */
    int sets;
    struct { void *at; size_t bytes; } out[4]; /* of set 0 */
} op;
/* what judges wrote: the largest error of all blocks */
static double largest(const float *there, int blocks) {
    float *here = (float *)malloc((size_t)blocks * sizeof(float));
    double worst = 0.0;
    CHECK(cudaGetLastError());
    move(here, there, (size_t)blocks * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < blocks; i++) if (!((double)here[i] <= worst)) worst = (double)here[i];
    free(here);
    return worst;
}
/* of the results of several launches; the first wrong one is guilty */
static double worst_of(const double *each, int count) {
    double worst = 0.0;
    for (int i = count - 1; i >= 0; i--) {
        if (!(each[i] <= worst)) worst = each[i];
        if (!(each[i] <= 1.0)) f.guilty = i;
    }
    return worst;
}
#define JUDGE(kernel, blocks, job) \
    (CUDA_LAUNCH(kernel, (unsigned)(blocks), 256u, (size_t)0, f.cuda->stream, judged, job), largest(judged, (int)(blocks)))
static void put_launches(const op *o) {
    static vp_launch log[64];
    f.queue->dry = 1;
    f.queue->log = log;
    f.queue->log_capacity = 64;
    f.queue->log_count = 0;
    o->send(0);
    printf(", \"launches\": [");
    for (int64_t i = 0; i < f.queue->log_count && i < 64; i++)
        printf("%s[\"%s\", %u, [%d, %d, %d, %d], %llu, %llu]", i ? ", " : "", log[i].name, log[i].grid, (int)log[i].shape[0], (int)log[i].shape[1],
               (int)log[i].shape[2], (int)log[i].shape[3], (unsigned long long)log[i].flops, (unsigned long long)log[i].bytes);
    printf("]");
    if (f.guilty >= 0 && f.guilty < f.queue->log_count) put_text("kernel", log[f.guilty].name);
    f.queue->dry = 0;
    f.queue->log = NULL;
    f.queue->log_count = 0;
}
static int by_value(const void *a, const void *b) { return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b); }
/* ms of one replay of what `send` sends for each set: the median */
static float replayed(void (*send)(int), int sets) {
    float ms[REPLAYS];
    const int replays = f.tiny ? 3 : REPLAYS;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t event[2];
    for (int i = 0; i < sets; i++) send(i); /* whatever is chosen or loaded at first use */
    settle();
    CHECK(cudaStreamBeginCapture(f.cuda->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < sets; i++) send(i);
    CHECK(cudaStreamEndCapture(f.cuda->stream, &graph));
    if (f.queue->error) settle();
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++) CHECK(cudaEventCreate(&event[i]));
    for (int i = -1; i < replays; i++) {
        CHECK(cudaEventRecord(event[0], f.cuda->stream));
        CHECK(cudaGraphLaunch(exec, f.cuda->stream));
        CHECK(cudaEventRecord(event[1], f.cuda->stream));
        CHECK(cudaEventSynchronize(event[1]));
        if (i >= 0) CHECK(cudaEventElapsedTime(&ms[i], event[0], event[1]));
    }
    qsort(ms, (size_t)replays, sizeof ms[0], by_value);
    return ms[replays / 2];
}
static void run_once(const op *o, int run) {
    for (int i = 0; i < 4 && !o->reset; i++) if (o->out[i].at) poison(o->out[i].at, o->out[i].bytes);
    if (o->reset) o->reset(0);
    o->send(0);
    settle();
    if (run == 1 && planted("unsteady", f.name)) fill(o->out[0].at, 0x41, 2);
}
static void run_op(op *o) {
    char *before[4] = { NULL }, *now[4] = { NULL };
    int steady = 1, live;
    for (int i = 0; i < 4; i++) {
        before[i] = (char *)malloc(o->out[i].bytes + 1);
        now[i] = (char *)malloc(o->out[i].bytes + 1);
    }
    for (int run = 0; run < 3; run++) {
        run_once(o, run);
        for (int i = 0; i < 4; i++) {
            if (!o->out[i].at) continue;
            move(run ? now[i] : before[i], o->out[i].at, o->out[i].bytes, cudaMemcpyDeviceToHost);
            steady &= !run || !memcmp(now[i], before[i], o->out[i].bytes);
        }
    }
    f.guilty = -1;
    double worst = o->judge((float *)room((size_t)(o->judged + 1) * sizeof(float)));
    live = canaries_live();
    begin_line(!steady ? "NONDETERMINISTIC" : !(worst <= 1.0) || !live ? "WRONG" : "OK");
    put_text("stage", o->stage);
    put_text("shape", o->shape);
    put_text("way", o->way);
    put("error", worst);
    if (!live) put_text("text", "a buffer was written past its end");
    if (f.queue->note[0]) put_text("note", f.queue->note);
    put("ns", (double)replayed(o->send, o->sets) * 1e6 / o->sets);
    put_launches(o);
    end_line();
    for (int i = 0; i < 4; i++) { free(before[i]); free(now[i]); }
}
/* how many sets of operands are three times the second-level cache */
static int sets_of(size_t bytes) {
    size_t sets = 3 * (size_t)f.device.l2CacheSize / (bytes ? bytes : 1) + 1;
    return f.tiny ? 2 : sets > SETS_MOST ? SETS_MOST : (int)sets;
}
static void open_queue(const gpu_way *way, int tokens, int heads, int head_dim) {
    vk_setup setup;
    vk_extent extent;
    vp_error error = { VP_OK, -1, "", "" };
    memset(&setup, 0, sizeof setup);
    memset(&extent, 0, sizeof extent);
    setup.gpu = way->bit;
    extent.marks = 8;
    extent.experts = EXPERTS;
    extent.vit.tokens = extent.llm.tokens = tokens;
    extent.vit.heads = extent.vit.kv_heads = extent.llm.heads = extent.llm.kv_heads = heads;
    extent.vit.head_dim = extent.llm.head_dim = head_dim;
    if (f.backend->open(&setup, &f.queue, &error) != VP_OK) die(error.where, error.text);
    f.cuda = vk_cuda_of(f.queue);
    const auto encode = f.cuda->encode;
    size_t scratch = vk_round_up(f.backend->scratch_bytes(f.queue, &extent), 256);
    void *memory = f.backend->allocate(f.queue, scratch);
    if (!memory || !f.backend->use(f.queue, &extent, memory)) {
        settle(); /* dies of the queue's own error, if there is one */
        die("open", "no memory");
    }
    settle();
    f.cuda->encode = encode; /* by wgmma whatever its self-check found, so that it shows which result is wrong */
}

/* ---- a linear layer of vision or prefill */
typedef struct linear_kind { const char *name; int n, k, bias; vk_epilogue epilogue; int vision; } linear_kind;
static const linear_kind LINEARS[] = { { "vision-qkv", 3072, 1024, 1, VK_STORE, 1 }, { "vision-out", 1024, 1024, 1, VK_ADD_F32, 1 },
    { "vision-fc1", 4096, 1024, 1, VK_QUICKGELU, 1 }, { "vision-fc2", 1024, 4096, 1, VK_ADD_F32, 1 },
    { "prefill-qkv", 6144, 2048, 0, VK_STORE_F32, 0 }, { "prefill-out", 2048, 2048, 0, VK_ADD_F32, 0 } };
static const struct { const char *name; int views, tokens; } SHAPES[] = { { "3/482", 3, 482 }, { "7/1058", 7, 1058 }, { "13/1922", 13, 1922 } };
static struct { vk_linear w[SETS_MOST]; void *x[SETS_MOST], *y[SETS_MOST]; const linear_kind *kind; int m, wide; size_t y_bytes; } lin;
static void send_linear(int i) { f.backend->linear(f.queue, lin.y[i], lin.w[i].n, lin.x[i], lin.w[i].k_padded, lin.m, &lin.w[i], lin.kind->epilogue); }
static void reset_linear(int i) {
    if (lin.kind->epilogue == VK_ADD_F32) fill(lin.y[i], 0x3f, lin.y_bytes); /* 0x3f3f3f3f = 0.747 */
    else poison(lin.y[i], lin.y_bytes);
}
static float before_linear(void) {
    const uint32_t bits = 0x3f3f3f3fu;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static double judge_linear(float *judged) {
    const vk_linear *w = &lin.w[0];
    first_linear job = { lin.y[0], (const uint16_t *)lin.x[0], (const uint16_t *)w->weights, w->bias, w->n, w->k_padded, w->n, w->k, w->k_padded,
                         (int)lin.kind->epilogue, lin.wide, before_linear(), NULL };
    return JUDGE(k_first_linear, lin.m, job);
}
static void case_linear(const linear_kind *kind, int shape, const gpu_way *way) {
    int n = f.tiny ? kind->n / 8 : kind->n, k = f.tiny ? kind->k / 4 : kind->k;
    op o;
    memset(&o, 0, sizeof o);
    lin.kind = kind;
    lin.m = f.tiny ? 150 : kind->vision ? SHAPES[shape].views * 577 : SHAPES[shape].tokens;
    lin.wide = kind->epilogue == VK_STORE_F32 || kind->epilogue == VK_ADD_F32;
    lin.y_bytes = (size_t)lin.m * (size_t)n * (lin.wide ? 4 : 2);
    open_queue(way, 64, 16, 64);
    o.sets = sets_of(2 * ((size_t)n * (size_t)k + (size_t)lin.m * (size_t)k) + lin.y_bytes);
    for (int i = 0; i < o.sets; i++) {
        vk_linear *w = &lin.w[i];
        w->n = n;
        w->k = w->k_padded = k;
        w->weights = drawn(n, k, k, 0.1f, 0);
        if (kind->bias) {
            w->bias = (const float *)drawn(1, n, n, 1.0f, 1);
            w->bias_bf16 = room((size_t)n * 2);
            f.backend->kernels.convert(f.queue, w->bias_bf16, w->bias, 1, n, n, 0);
        }
        lin.x[i] = drawn(lin.m, k, k, 1.0f, 0);
        lin.y[i] = room(lin.y_bytes);
    }
    o.stage = kind->vision ? "vision" : "prefill";
    o.way = way->word;
    snprintf(o.shape, sizeof o.shape, "%dx%dx%d", lin.m, n, k);
    o.send = send_linear;
    o.reset = reset_linear;
    o.judge = judge_linear;
    o.judged = lin.m;
    o.out[0].at = lin.y[0];
    o.out[0].bytes = lin.y_bytes;
    run_op(&o);
}

/* ---- experts: both products, for uniform choices of prompts and for a skewed one with tiles that are empty, whole, and one row more */
static struct { vk_experts_job job; vk_linear up, down; int32_t *index; int tokens, dim, d; } ex;
static void send_experts(int i) { (void)i; f.backend->experts(f.queue, &ex.job); }
static void reset_experts(int i) {
    (void)i;
    poison(ex.job.y, (size_t)ex.job.pairs * (size_t)ex.job.ldy * 2);
    fill(ex.job.stream, 0, (size_t)ex.tokens * (size_t)ex.d * 4);
}
static double judge_experts(float *judged) {
    const vk_experts_job *job = &ex.job;
    first_experts e = { (const uint16_t *)job->x, (const uint16_t *)ex.up.weights, (const uint16_t *)ex.down.weights, (const uint16_t *)job->hidden,
                        (const uint16_t *)job->y, job->weight, job->list, ex.index, job->gate_up_stride, job->down_stride, job->ldx, ex.down.k_padded, job->ldy,
                        ex.d, ex.dim, ex.up.k_padded, ex.down.k_padded, job->top_k };
    const double each[2] = { JUDGE(k_first_hidden, job->pairs, e), JUDGE(k_first_down, job->pairs, e) };
    return worst_of(each, 2);
}
static vk_linear drawn_linear(int copies, int n, int k, int wide) {
    vk_linear w;
    memset(&w, 0, sizeof w);
    w.weights = drawn(copies * n, k, k, 0.1f, wide);
    w.n = n;
    w.k = w.k_padded = k;
    w.wide = wide;
    return w;
}
static void route_experts(int skewed, int32_t *index) {
    static const int counts[6] = { 0, 1, 127, 128, 129, 600 };
    int pairs = ex.job.pairs, expert = 0, left = counts[0];
    for (int i = 0; i < pairs; i++) {
        if (!skewed) { index[i] = (int32_t)(((uint32_t)i * 2654435761u + f.seed) >> 7) % EXPERTS; continue; }
        while (!left && expert < 5) left = counts[++expert] / (f.tiny ? 8 : 1);
        index[(int)((int64_t)i * 7919 % pairs)] = expert < 5 || left > 0 ? expert : EXPERTS - 1;
        if (left) left--;
    }
}
static void case_experts(int shape, int skewed, const gpu_way *way) {
    int tiles;
    op o;
    memset(&o, 0, sizeof o);
    ex.d = f.tiny ? 320 : 2048;
    ex.dim = f.tiny ? 160 : 1024;
    ex.tokens = skewed ? (f.tiny ? 131 : 985) : f.tiny ? 40 : SHAPES[shape].tokens;
    ex.job.top_k = skewed ? 1 : TOP_K;
    ex.job.pairs = ex.tokens * ex.job.top_k;
    ex.job.experts = EXPERTS;
    ex.job.ldx = ex.job.ldy = ex.d;
    open_queue(way, 64, 16, 64);
    ex.up = drawn_linear(EXPERTS, 2 * ex.dim, ex.d, 0);
    ex.down = drawn_linear(EXPERTS, ex.d, ex.dim, 0);
    ex.job.gate_up_stride = 2 * (ex.job.down_stride = (size_t)ex.d * (size_t)ex.dim * 2);
    ex.job.gate_up = &ex.up;
    ex.job.down = &ex.down;
    ex.job.x = drawn(ex.tokens, ex.d, ex.d, 1.0f, 0);
    ex.job.weight = (const float *)drawn(1, ex.job.pairs, ex.job.pairs, 1.0f, 1);
    ex.job.stream = (float *)room((size_t)ex.tokens * (size_t)ex.d * 4);
    ex.job.hidden = room((size_t)ex.job.pairs * (size_t)ex.dim * 2);
    ex.job.y = room((size_t)ex.job.pairs * (size_t)ex.d * 2);
    ex.index = (int32_t *)room((size_t)ex.job.pairs * 4);
    int32_t *index = (int32_t *)malloc((size_t)ex.job.pairs * 4);
    route_experts(skewed, index);
    move(ex.index, index, (size_t)ex.job.pairs * 4, cudaMemcpyHostToDevice);
    free(index);
    tiles = ex.job.pairs / VK_TILE_ROWS + EXPERTS;
    int32_t *lists = (int32_t *)room((size_t)(2 * EXPERTS + 1 + 2 * ex.job.pairs + 2 * tiles) * 4);
    ex.job.start = lists + EXPERTS;
    ex.job.list = ex.job.start + EXPERTS + 1;
    ex.job.slot_row = ex.job.list + ex.job.pairs;
    ex.job.tiles = ex.job.list + 2 * ex.job.pairs;
    l_moe_lists(f.queue, lists, (int32_t *)(size_t)ex.job.start, (int32_t *)(size_t)ex.job.list, (int32_t *)(size_t)ex.job.slot_row, (int32_t *)(size_t)ex.job.tiles,
                ex.index, EXPERTS, ex.job.pairs, VK_TILE_ROWS);
    o.stage = "prefill";
    o.way = way->word;
    snprintf(o.shape, sizeof o.shape, "%s%dx%dx%d of %d", skewed ? "skewed " : "", ex.job.pairs, 2 * ex.dim, ex.d, EXPERTS);
    o.send = send_experts;
    o.reset = reset_experts;
    o.judge = judge_experts;
    o.judged = ex.job.pairs;
    o.sets = 1; /* all weights are more than the cache */
    o.out[0].at = ex.job.y;
    o.out[0].bytes = (size_t)ex.job.pairs * (size_t)ex.d * 2;
    o.out[1].at = ex.job.stream;
    o.out[1].bytes = (size_t)ex.tokens * (size_t)ex.d * 4;
    run_op(&o);
}

/* ---- attention of the tower and of prefill */
static vk_attention_job at_job;
static void send_attention(int i) { (void)i; f.backend->attention(f.queue, &at_job); }
static double judge_attention(float *judged) {
    first_attention job = { (const uint16_t *)at_job.y, (const uint16_t *)at_job.q, (const uint16_t *)at_job.k, (const uint16_t *)at_job.v, at_job.tokens, at_job.heads,
                            at_job.head_dim, at_job.ldy, at_job.ldq, at_job.causal };
    return JUDGE(k_first_attention, at_job.batch * at_job.tokens * at_job.heads, job);
}
static void case_attention(int vision, int shape) {
    op o;
    memset(&o, 0, sizeof o);
    at_job.batch = vision && !f.tiny ? SHAPES[shape].views : 1;
    at_job.tokens = f.tiny ? 130 : vision ? 577 : SHAPES[shape].tokens;
    at_job.heads = at_job.kv_heads = f.tiny ? 2 : 16;
    at_job.head_dim = vision ? 64 : 128;
    at_job.causal = !vision;
    int width = at_job.heads * at_job.head_dim;
    at_job.ldy = width;
    at_job.ldq = at_job.ldk = 3 * width;
    open_queue(way_of("default"), 64, 16, at_job.head_dim);
    at_job.q = drawn(at_job.batch * at_job.tokens, 3 * width, 3 * width, 1.0f, 0);
    at_job.k = (const uint16_t *)at_job.q + width;
    at_job.v = (const uint16_t *)at_job.q + 2 * width;
    o.out[0].bytes = (size_t)at_job.batch * (size_t)at_job.tokens * (size_t)width * 2;
    o.out[0].at = at_job.y = room(o.out[0].bytes);
    o.stage = vision ? "vision" : "prefill";
    o.way = "default";
    snprintf(o.shape, sizeof o.shape, "%dx%dx%dx%d", at_job.batch, at_job.tokens, at_job.heads, at_job.head_dim);
    o.send = send_attention;
    o.judge = judge_attention;
    o.judged = at_job.batch * at_job.tokens * at_job.heads;
    o.sets = 1;
    run_op(&o);
}

#include "first_decode.h"

/* --------------------------------------------------------------------------------------------------------------------------------- instruments
 * What times are worth here, and the constants of predict.py as this device has them */
KERNEL(k_first_empty, int *nothing) { vk_let_next_begin(); vk_wait_for_last(); (void)nothing; }
/* reads `vectors` vectors `times` times; every block all of them, from another place on */
KERNEL(k_first_cached, float *sums, const uint4 *from, int vectors, int times) {
    float sum = 0.0f;
    for (int t = 0; t < times; t++)
        for (int i = TID; i < vectors; i += NTID) {
            uint4 v = __ldcg(from + (size_t)((size_t)i + BLK * 4099 * (size_t)NTID) % (size_t)vectors);
            sum += __uint_as_float(v.x & 0x3f800000u) + __uint_as_float(v.w & 0x3f800000u);
        }
    if (TID == 0) sums[BLK] = sum;
}
static void *scratch_a, *scratch_b;
static struct { int n; void *x, *w, *y; } gm;
static void send_empties(int i) {
    (void)i;
    for (int j = 0; j < 64; j++) CUDA_LAUNCH(k_first_empty, 1u, 32u, (size_t)0, f.cuda->stream, (int *)NULL);
}
static void send_dependents(int i) {
    (void)i;
    for (int j = 0; j < 64; j++) CUDA_LAUNCH_DEPENDENT(k_first_empty, 1u, 32u, (size_t)0, f.cuda->stream, (int *)NULL);
}
static void send_read(int i) { (void)i; f.backend->kernels.read(f.queue, (float *)scratch_b, (const float *)scratch_a, f.tiny ? 64 : 16384, 1 << 16, 4); }
static void send_copy(int i) { (void)i; f.backend->copy(f.queue, scratch_b, scratch_a, f.tiny ? 1 << 20 : (size_t)1 << 30); }
static void send_cached(int i) {
    (void)i;
    CUDA_LAUNCH(k_first_cached, (unsigned)(2 * f.cuda->multiprocessors), 512u, (size_t)0, f.cuda->stream, (float *)scratch_b, (const uint4 *)scratch_a,
                f.tiny ? 1024 : 1 << 20, 4);
}
static void send_product(int i) {
    vk_linear w;
    (void)i;
    memset(&w, 0, sizeof w);
    w.weights = gm.w;
    w.n = w.k = w.k_padded = gm.n;
    f.backend->linear(f.queue, gm.y, gm.n, gm.x, gm.n, gm.n, &w, VK_STORE);
}
static void constant(const char *name, double value) {
    begin_line("OK");
    put_text("constant", name);
    put("value", value);
    end_line();
}
static void case_instruments(const gpu_way *way) {
    open_queue(way, 64, 16, 64);
    scratch_a = room(f.tiny ? 64 << 18 : (size_t)4 << 30);
    scratch_b = room(f.tiny ? 64 << 18 : (size_t)1 << 30);
    constant("gap", (double)replayed(send_empties, 1) * 1e-3 / 64);
    if (f.device.major >= 9) constant("gap_dependent", (double)replayed(send_dependents, 1) * 1e-3 / 64);
    constant("l2", (f.tiny ? 1024.0 : 1048576.0) * 16 * 4 * 2 * f.cuda->multiprocessors / ((double)replayed(send_cached, 1) * 1e-3));
    constant("memory", (f.tiny ? 64.0 : 16384.0) * 65536 * 4 / ((double)replayed(send_read, 1) * 1e-3));
    constant("copy", 2.0 * (f.tiny ? 1048576.0 : 1073741824.0) / ((double)replayed(send_copy, 1) * 1e-3));
    gm.n = f.tiny ? 128 : 8192;
    gm.x = drawn(gm.n, gm.n, gm.n, 1.0f, 0);
    gm.w = drawn(gm.n, gm.n, gm.n, 1.0f, 0);
    gm.y = room((size_t)gm.n * (size_t)gm.n * 2);
    constant("rate", 2.0 * gm.n * gm.n * gm.n / ((double)replayed(send_product, 1) * 1e-3));
    gm.n = f.tiny ? 64 : 3072; /* about as many FLOPs as a layer of 13 passes: what cuBLAS leaves of that */
    constant("cublas", 2.0 * gm.n * gm.n * gm.n / ((double)replayed(send_product, 1) * 1e-3));
}

/* --------------------------------------------------------------------------------------------------------------------------------- whole models */
static struct { vp_model_config config; vp_engine *engine; float *pixels, *masks; int32_t *ids, *index; int32_t blocks[64]; int blocks_count, max_views, max_tokens; } md;
static void open_model(const char *device, const gpu_way *way, int blocks, int tokens, int views) {
    vp_engine_options options = vp_engine_options_default();
    vp_error error = { VP_OK, -1, "", "" };
    if (vp_model_config_preset(f.tiny ? "tiny" : "molmoe-1b", &md.config) != VP_OK) die("preset", "is not there");
    if (f.tiny) { /* heads as wide as the real ones, which have kernels of their own */
        md.config.head_dim = md.config.d_model;
        md.config.vit_head_dim = md.config.vit_width;
        md.config.head_count = md.config.kv_head_count = md.config.vit_head_count = 1;
    }
    if (blocks && blocks < md.config.block_count) md.config.block_count = blocks;
    md.blocks_count = md.config.block_count;
    for (int i = 0; i < md.blocks_count; i++) md.blocks[i] = i;
    size_t patches = (size_t)md.config.vit_positions - 1;
    size_t values = patches * (size_t)(md.config.geometry.patch_px * md.config.geometry.patch_px * 3);
    md.ids = (int32_t *)realloc(md.ids, (size_t)tokens * 4);
    md.pixels = (float *)realloc(md.pixels, (size_t)(views + 1) * values * 4);
    md.masks = (float *)realloc(md.masks, (size_t)(views + 1) * patches * 4);
    md.index = (int32_t *)realloc(md.index, (size_t)(views + 1) * patches * 4);
    for (int i = 0; i < tokens; i++) md.ids[i] = (int32_t)((unsigned)i * 2654435761u % (unsigned)md.config.vocab_size);
    for (size_t i = 0; i < (size_t)views * values; i++) md.pixels[i] = (float)((i * 2654435761u >> 8) % 1999) / 1000.0f - 0.9995f;
    for (size_t i = 0; i < (size_t)views * patches; i++) md.masks[i] = 1.0f;
    options.config = &md.config;
    options.device = device;
    options.gpu = way->bit;
    options.weights = options.head_weights = way->weights;
    options.max_sequence = tokens + 64;
    options.max_views = views ? views : 1;
    if (vp_engine_open(&options, &md.engine, &error) != VP_OK) die(error.where, error.text);
}
static void run_model(const vp_request *r, vp_reply *reply) {
    static int32_t tokens[64];
    static int64_t step_ns[64];
    vp_error error = { VP_OK, -1, "", "" };
    memset(reply, 0, sizeof *reply);
    reply->tokens = tokens;
    reply->step_ns = step_ns;
    if (vp_engine_run(md.engine, r, reply, &error) != VP_OK) die(error.where, error.text);
}
static vp_request model_request(int tokens, int views, int top_k, int new_tokens, vp_timing timing) {
    vp_request r;
    memset(&r, 0, sizeof r);
    for (int i = 0; i < views * (md.config.vit_positions - 1); i++) md.index[i] = i + 1 < tokens ? i + 1 : -100;
    r.input_ids = md.ids;
    r.input_count = tokens;
    r.views = views;
    if (views) { r.pixels = md.pixels; r.image_masks = md.masks; r.image_input_idx = md.index; }
    r.top_k = top_k < md.config.expert_count ? top_k : md.config.expert_count;
    r.active_blocks = md.blocks;
    r.active_block_count = md.blocks_count;
    r.max_new_tokens = new_tokens;
    r.ignore_eos = 1;
    r.eos_id = -1;
    r.timing = timing;
    return r;
}
static uint64_t hash_of(const void *data, size_t bytes, uint64_t hash) {
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211ull;
    return hash;
}
/* || a - b || / || b - mean(b) || */
static double distance(const float *a, const float *b, size_t count) {
    double mean = 0.0, difference = 0.0, spread = 0.0;
    for (size_t i = 0; i < count; i++) mean += (double)b[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        spread += ((double)b[i] - mean) * ((double)b[i] - mean);
    }
    return sqrt(difference / spread);
}
/* a request's logits and tokens, as a hash as well */
static uint64_t answer(vp_request r, float *logits, vp_reply *reply) {
    const size_t bytes = (size_t)r.max_new_tokens * (size_t)md.config.embedding_size * 4;
    vp_dump dump;
    memset(&dump, 0, sizeof dump);
    dump.logits = logits;
    r.dump = &dump;
    memset(logits, 0xff, bytes);
    run_model(&r, reply);
    return hash_of(reply->tokens, (size_t)r.max_new_tokens * 4, hash_of(logits, bytes, 14695981039346656037ull));
}
/* Answers by a way, a hundred times, against those of the default: all bits where they are promised, else the prompt's logits as close as chosen experts allow when
 * roundings flip some (unrelated logits have a distance of 1.4). `compare`: against those of the library, with the same weights, the largest prompt and
 * all experts, so that no choice flips, and each step's logits as long as the tokens are the same. */
static void case_model(const gpu_way *way, int compare) {
    const int tokens = f.tiny ? 20 : compare ? 1922 : 256, views = compare && !f.tiny ? 13 : 1, new_tokens = f.tiny ? 5 : compare ? 8 : 48;
    gpu_way base = *way_of(compare ? "library" : "default");
    uint64_t hash[2] = { 0, 0 };
    int steady = 1;
    int32_t first[64];
    float *logits[2];
    double error = 0.0;
    vp_reply reply;
    if (compare) base.weights = way->weights;
    for (int i = 0; i < 2; i++) {
        open_model("cuda", i ? way : &base, compare ? 2 : BLOCKS_FEW, tokens, views);
        logits[i] = (float *)malloc((size_t)new_tokens * (size_t)md.config.embedding_size * 4);
        for (int run = 0; run < (!i ? 1 : compare || f.tiny ? 2 : 100); run++) {
            uint64_t now = answer(model_request(tokens, views, compare ? md.config.expert_count : TOP_K, new_tokens, VP_TIMING_STAGE), logits[i], &reply);
            if (!run) hash[i] = now;
            steady &= now == hash[i] && !(run && planted("unsteady", f.name));
        }
        if (i < 1) { memcpy(first, reply.tokens, sizeof first); vp_engine_close(md.engine); }
    }
    for (int i = 0; i < (compare ? new_tokens : 1) && (!i || first[i - 1] == reply.tokens[i - 1]); i++) {
        const size_t at = (size_t)i * (size_t)md.config.embedding_size;
        double apart = distance(logits[1] + at, logits[0] + at, (size_t)md.config.embedding_size);
        if (!(apart <= error)) error = apart <= 1e9 ? apart : INFINITY;
    }
    const int other_bits = !compare && way->same_bits && hash[0] != hash[1];
    begin_line(!steady ? "NONDETERMINISTIC" : other_bits || !(error <= (compare ? 0.05 : 0.5)) ? "WRONG" : "OK");
    put_text("stage", "model");
    put_text("kernel", compare ? "model against the library" : way->same_bits ? "model, bit by bit" : "model");
    put_text("way", way->word);
    printf(", \"shape\": \"%d tokens, %d new\"", tokens, new_tokens);
    put("error", other_bits && error == 0.0 ? 1.0 : error);
    put_text("note", vp_engine_device_note(md.engine));
    end_line();
}
/* one request: of the smallest model, as a canary that sends each kind of kernel, or of the largest prompt, for a profiler */
static void case_once(const gpu_way *way, int small) {
    vp_reply reply;
    int finite = 1;
    if (small) f.tiny = 1;
    open_model("cuda", way, small ? 0 : 3, f.tiny ? 40 : 1922, f.tiny ? 1 : 13);
    float *logits = (float *)malloc(5 * (size_t)md.config.embedding_size * 4);
    answer(model_request(f.tiny ? 40 : 1922, f.tiny ? 1 : 13, TOP_K, 5, VP_TIMING_STAGE), logits, &reply);
    for (int i = 0; i < 5 * md.config.embedding_size; i++) finite &= isfinite(logits[i]) != 0;
    const char *note = vp_engine_device_note(md.engine);
    begin_line(finite && !strstr(note, "differ") ? "OK" : "WRONG"); /* the self-check of wgmma notes what it found */
    put_text("kernel", "every kind once");
    put_text("way", way->word);
    put_text("text", finite ? note : "logits that are not finite");
    end_line();
}
static int by_ns(const void *a, const void *b) { return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b); }
static void stage_line(const gpu_way *way, const char *stage, const char *shape, int64_t *ns, int count, int64_t launches) {
    qsort(ns, (size_t)count, sizeof *ns, by_ns);
    begin_line("OK");
    put_text("stage", stage);
    put_text("stage_shape", shape);
    put_text("way", way->word);
    put("blocks", md.blocks_count);
    put("stage_ns", (double)ns[count / 2]);
    put("launches_count", (double)launches);
    end_line();
}
/* vision, prefill and decode by events at the borders of stages */
static void case_stages(const gpu_way *way, int all_blocks) {
    int64_t ns[RUNS * 48];
    const int runs = f.tiny ? 1 : RUNS, steps = f.tiny ? 3 : 47, top = f.tiny ? 0 : 2;
    vp_reply reply;
    open_model("cuda", way, all_blocks ? 0 : BLOCKS_FEW, f.tiny ? 40 : 1922, f.tiny ? 1 : 13);
    for (int shape = f.tiny || all_blocks ? 0 : 2; shape <= top; shape++) {
        int tokens = f.tiny ? 20 : SHAPES[shape].tokens, views = f.tiny ? 1 : SHAPES[shape].views, at = 0;
        vp_request r = model_request(tokens, views, TOP_K, 1, VP_TIMING_STAGE);
        int64_t vision[RUNS];
        for (int i = -1; i < runs; i++) {
            run_model(&r, &reply);
            if (i < 0) continue;
            vision[i] = reply.times.device_ns[VP_STAGE_VIT];
            ns[i] = reply.times.device_ns[VP_STAGE_PREFILL];
        }
        stage_line(way, "vision", SHAPES[shape].name, vision, runs, reply.times.launches[VP_STAGE_VIT]);
        stage_line(way, "prefill", SHAPES[shape].name, ns, runs, reply.times.launches[VP_STAGE_PREFILL]);
        r = model_request(tokens, 0, TOP_K, steps + 1, VP_TIMING_STAGE);
        for (int i = -1; i < (runs + 2) / 3; i++) {
            run_model(&r, &reply);
            for (int s = 2; s < steps && i >= 0; s++) ns[at++] = reply.step_ns[s]; /* a graph's first steps are longer */
        }
        stage_line(way, "decode", SHAPES[shape].name, ns, at, reply.times.launches[VP_STAGE_DECODE] / steps);
    }
}
/* one request launch by launch: kernels of a stage, by the names that CUPTI reports, and the gaps between them */
static void case_profile(const gpu_way *way) {
    static vp_launch log[LAUNCHES];
    static struct { const char *name; int stage, first; int64_t calls, ns; } row[128];
    const int tokens = f.tiny ? 20 : 1922, views = f.tiny ? 1 : 13;
    int rows = 0;
    vp_reply reply;
    open_model("cuda", way, BLOCKS_FEW, tokens, views);
    vp_request r = model_request(tokens, views, TOP_K, 6, VP_TIMING_KERNEL);
    r.launches = log;
    r.launch_capacity = LAUNCHES;
    for (int i = 0; i < 2; i++) run_model(&r, &reply);
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        int64_t sum = 0, first = -1, last = 0;
        for (int64_t i = 0; i < reply.launch_count && i < LAUNCHES; i++) {
            if ((int)log[i].stage != stage) continue;
            if (first < 0) first = log[i].begin_ns;
            if (log[i].begin_ns + log[i].ns > last) last = log[i].begin_ns + log[i].ns;
            sum += log[i].ns;
        }
        if (first < 0) continue;
        /* by CUPTI's clock a stage is its kernels and the gaps between them, and events at its borders must agree within 3 % */
        double by_events = fabs((double)(last - first) - (double)reply.times.device_ns[stage]);
        begin_line(by_events <= 0.03 * (double)reply.times.device_ns[stage] + 2e4 || strncmp(vp_engine_launch_timer(md.engine), "activity", 8) ? "OK" : "WRONG");
        put_text("kernel", "clocks of a stage");
        put("error", by_events / (0.03 * (double)reply.times.device_ns[stage] + 2e4));
        put_text("profiled_stage", vp_stage_name((vp_stage)stage));
        put_text("timer", vp_engine_launch_timer(md.engine));
        put("kernels_ns", (double)sum);
        put("between_ns", (double)(last - first - sum));
        put("stage_ns", (double)reply.times.device_ns[stage]);
        end_line();
    }
    for (int64_t i = 0; i < reply.launch_count && i < LAUNCHES; i++) {
        int at = 0;
        const vp_launch *l = &log[i];
        while (at < rows && (row[at].stage != (int)l->stage || strcmp(row[at].name, l->name) || memcmp(log[row[at].first].shape, l->shape, sizeof l->shape))) at++;
        if (at == 128) continue;
        if (at == rows) { row[rows].name = l->name; row[rows].stage = (int)l->stage; row[rows++].first = (int)i; }
        row[at].calls++;
        row[at].ns += l->ns;
    }
    for (int i = 0; i < rows; i++) {
        const vp_launch *l = &log[row[i].first];
        begin_line("OK");
        put_text("stage", row[i].stage == VP_STAGE_VIT ? "vision" : vp_stage_name((vp_stage)row[i].stage));
        put_text("kernel", l->name);
        put_text("way", way->word);
        printf(", \"shape\": \"%dx%dx%d\"", (int)l->shape[0], (int)l->shape[1], (int)l->shape[2]);
        put("calls", (double)row[i].calls);
        put("kernel_ns", (double)row[i].ns / (double)row[i].calls);
        printf(", \"launches\": [[\"%s\", %u, [%d, %d, %d, %d], %llu, %llu]]", l->name, l->grid, (int)l->shape[0], (int)l->shape[1], (int)l->shape[2], (int)l->shape[3],
               (unsigned long long)l->flops, (unsigned long long)l->bytes);
        end_line();
    }
}
/* ---------------------------------------------------------------------------------------------------------------------------------------- cases */
static void case_identity(void) {
    vp_device_info info;
    vp_telemetry t;
    vp_error error = { VP_OK, -1, "", "" };
    struct timespec now;
    if (vp_device_describe(0, &info, &error) != VP_OK) die(error.where, error.text);
    clock_gettime(CLOCK_REALTIME, &now);
    begin_line("OK");
    put_text("gpu", info.name);
    put("compute_capability", info.compute_major + info.compute_minor / 10.0);
    put("multiprocessors", info.multiprocessor_count);
    put("memory_bytes", (double)info.memory_bytes);
    put("l2_bytes", f.device.l2CacheSize);
    put("driver_cuda", info.driver_version);
    put("toolkit_cuda", (double)vp_device_toolkit());
    put("unix_time", (double)now.tv_sec);
    if (vp_device_telemetry(0, &t, &error) == VP_OK) {
        put("sm_clock_mhz", t.sm_clock_mhz);
        put("sm_clock_max_mhz", t.sm_clock_max_mhz);
        put("memory_clock_mhz", t.memory_clock_mhz);
        put("power_w", t.power_w);
        put("power_limit_w", t.power_limit_w);
        put("temperature_c", t.temperature_c);
    }
    end_line();
}
/* step, seconds and words of each case, the most telling first: first_run.sh has tools of its own at steps 2 and from 10 on */
static void list_cases(void) {
    static const char *const ways[] = { "default", "tuned" }, *const expert_ways[] = { "default", "wgmma" };
    const int shapes = f.tiny ? 1 : 3;
    printf("0 10 identity\n1 20 canary default\n1 20 canary library\n3 40 compare default\n4 60 stages all default\n");
    printf("5 20 attention prefill %s\n5 20 decode\n6 40 profile default\n7 25 instruments default\n", SHAPES[shapes - 1].name);
    for (int s = 0; s < shapes; s++)
        for (size_t i = 0; i < sizeof LINEARS / sizeof *LINEARS; i++)
            for (int w = 0; w < 2; w++) if (!f.tiny || (int)i == (w ? 2 : 4)) printf("8 20 linear %s %s %s\n", LINEARS[i].name, SHAPES[s].name, ways[w]);
    for (int w = 0; w < 2; w++) {
        for (int s = 0; s < shapes; s++) printf("8 30 experts %s %s\n", SHAPES[s].name, expert_ways[w]);
        printf("8 30 experts skewed %s\n", expert_ways[w]);
    }
    for (int s = 0; s < shapes; s++) {
        if (s < shapes - 1) printf("8 20 attention prefill %s\n", SHAPES[s].name);
        printf("8 20 attention vision %s\n", SHAPES[s].name);
    }
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        const char *word = WAYS[i].word;
        if (!strcmp(word, "events") || (f.tiny && i && !(WAYS[i].bit & (VP_GPU_DEPENDENT | VP_GPU_WGMMA)))) continue;
        if (WAYS[i].weights != VP_WEIGHTS_BF16) printf("9 40 compare %s\n", word);
        else if (i && strcmp(word, "library")) printf("9 20 canary %s\n9 40 model %s\n", word, word);
        printf("9 40 stages few %s\n", word);
    }
    printf("9 40 stages few default\n");
}
static int shape_of(const char *name) {
    for (int i = 0; i < 3; i++) if (name && !strcmp(name, SHAPES[i].name)) return i;
    return -1;
}
static int run_case(int count, char **word) {
    const char *what = word[0], *second = count > 1 ? word[1] : "", *third = count > 2 ? word[2] : NULL, *fourth = count > 3 ? word[3] : NULL;
    if (!strcmp(what, "identity")) case_identity();
    else if (!strcmp(what, "canary") || !strcmp(what, "once")) case_once(way_of(second), what[0] == 'c');
    else if (!strcmp(what, "instruments")) case_instruments(way_of(second));
    else if (!strcmp(what, "linear") && shape_of(third) >= 0) {
        for (size_t i = 0; i < sizeof LINEARS / sizeof *LINEARS; i++)
            if (!strcmp(LINEARS[i].name, second)) { case_linear(&LINEARS[i], shape_of(third), way_of(fourth)); return 0; }
        return 2;
    } else if (!strcmp(what, "experts") && (!strcmp(second, "skewed") || shape_of(second) >= 0)) case_experts(shape_of(second), second[0] == 's', way_of(third));
    else if (!strcmp(what, "attention") && shape_of(third) >= 0) case_attention(!strcmp(second, "vision"), shape_of(third));
    else if (!strcmp(what, "decode")) case_decode();
    else if (!strcmp(what, "model") || !strcmp(what, "compare")) case_model(way_of(second), what[0] == 'c');
    else if (!strcmp(what, "stages")) case_stages(way_of(third), !strcmp(second, "all"));
    else if (!strcmp(what, "profile")) case_profile(way_of(second));
    else return 2;
    return 0;
}
static void ended(int signal) {
    char text[300];
    (void)signal;
    int count = snprintf(text, sizeof text, "first_gpu: %s: ended; sent last: %s: \n", f.name, f.queue && f.queue->last_sent ? f.queue->last_sent : "nothing");
    if (count > 0 && write(2, text, (size_t)count) > 0) _exit(3);
    _exit(3);
}
int main(int argc, char **argv) {
    int at = 1;
    int32_t devices;
    struct timespec now;
    vp_error error = { VP_OK, -1, "", "" };
    clock_gettime(CLOCK_REALTIME, &now);
    f.seed = (unsigned)(now.tv_nsec ^ now.tv_sec) % 1000000u;
    if (at < argc && !strcmp(argv[at], "--tiny")) { f.tiny = 1; at++; }
    if (at + 1 < argc && !strcmp(argv[at], "--seed")) { f.seed = (unsigned)atoi(argv[at + 1]); at += 2; }
    for (int i = at; i < argc; i++) snprintf(f.name + strlen(f.name), sizeof f.name - strlen(f.name), "%s%s", i > at ? " " : "", argv[i]);
    if (at < argc && !strcmp(argv[at], "list")) { list_cases(); return 0; }
    signal(SIGTERM, ended);
    f.backend = vk_gpu_code();
    if (at < argc && f.backend->device_count(&devices, &error) != VP_OK) die(error.where, error.text);
    if (at < argc) CHECK(cudaGetDeviceProperties(&f.device, 0));
    if (at < argc && run_case(argc - at, argv + at) == 0) return 0;
    fprintf(stderr, "usage: first_gpu [--tiny] [--seed N] list | CASE, as the list has it\n");
    return 2;
}
