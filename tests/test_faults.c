/* test_faults.c - every call of the GPU runtime and of cuBLAS that a request makes fails once: the engine must say so with the right code, hold
 * nothing afterwards, and work again in a new engine. Runs on the emulated GPU (tests/cuda_on_cpu.h), whose n-th call of a kind can be made to
 * fail; with it machines without a GPU, with an old driver, an old or small GPU, or without cuBLAS.
 * links: engine */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"

#include "check.h"

/* tests/cuda_on_cpu.h */
void cuda_on_cpu_reset(uint64_t seed);
void cuda_on_cpu_fail(const char *what, int n);
int cuda_on_cpu_live(void);
long cuda_on_cpu_calls(const char *what);

enum { NEW_TOKENS = 4, TEXT_TOKENS = 9, MOST_OF_A_KIND = 12 };
static vp_model_config config;
static float *pixels, *masks;
static int32_t ids[512], index_of[144], all_blocks[64];
static int32_t input_count;

static void make_request(void) {
    size_t patches = 576, values = 588;
    CHECK_INT(vp_model_config_preset("tiny", &config), VP_OK);
    /* shallow, because every life of an engine costs emulated time: the calls are the same in all layers */
    config.vit_block_count = config.vit_blocks_needed = 1;
    config.vit_layer_count = 1;
    config.vit_layers[0] = -1;
    config.block_count = 2;
    pixels = (float *)malloc(patches * values * sizeof *pixels);
    masks = (float *)malloc(patches * sizeof *masks);
    for (size_t i = 0; i < patches * values; i++) pixels[i] = 0.5f * sinf((float)i * 0.01f);
    for (size_t i = 0; i < patches; i++) masks[i] = 1.0f;
    input_count = 144 + TEXT_TOKENS;
    for (int i = 0; i < input_count; i++) ids[i] = 5 + i % 60;
    for (int i = 0; i < 144; i++) index_of[i] = i;
    for (int i = 0; i < config.block_count; i++) all_blocks[i] = i;
}
static vp_result open_engine(vp_engine **engine, vp_error *error) {
    vp_engine_options options = vp_engine_options_default();
    options.config = &config;
    options.device = "cuda";
    options.threads = 1;
    options.max_sequence = 320;
    options.max_views = 1;
    return vp_engine_open(&options, engine, error);
}
static vp_result run_request(vp_engine *engine, int32_t *tokens, vp_error *error) {
    vp_request r;
    vp_reply reply;
    int64_t step_ns[NEW_TOKENS];
    memset(&r, 0, sizeof r);
    memset(&reply, 0, sizeof reply);
    r.input_ids = ids; r.input_count = input_count;
    r.pixels = pixels; r.image_masks = masks; r.image_input_idx = index_of; r.views = 1;
    r.top_k = 2; r.active_blocks = all_blocks; r.active_block_count = config.block_count;
    r.max_new_tokens = NEW_TOKENS; r.ignore_eos = 1; r.eos_id = -1;
    reply.tokens = tokens; reply.step_ns = step_ns;
    return vp_engine_run(engine, &r, &reply, error);
}
/* a whole life of an engine: the first thing that goes wrong, and whether its error is told */
static vp_result live(int32_t *tokens, vp_error *error) {
    vp_engine *engine = NULL;
    vp_result result;
    memset(error, 0, sizeof *error);
    result = open_engine(&engine, error);
    if (result == VP_OK) result = run_request(engine, tokens, error);
    if (result != VP_OK && engine) { /* a failed device stays failed: nothing later may look like a success */
        int32_t again[NEW_TOKENS];
        vp_error unused;
        CHECK(run_request(engine, again, &unused) != VP_OK);
    }
    vp_engine_close(engine);
    return result;
}

/* the n-th call of a kind fails, for each n of a healthy life (every one when they are few, else spread over it) */
static void test_kind(const char *kind, const int32_t *healthy) {
    vp_error error;
    int32_t tokens[NEW_TOKENS];
    long calls, step;
    int wrong_code = 0, silent = 0, leaked = 0;
    check_case("failing %s", kind);
    cuda_on_cpu_reset(1);
    if (!CHECK_INT(live(tokens, &error), VP_OK)) return;
    calls = cuda_on_cpu_calls(kind);
    if (!CHECK(calls > 0)) return;
    step = calls / MOST_OF_A_KIND + 1;
    for (long n = 1; n <= calls; n += step) {
        vp_result result;
        cuda_on_cpu_reset((uint64_t)n);
        cuda_on_cpu_fail(kind, (int)n);
        result = live(tokens, &error);
        wrong_code += result != VP_ERR_DEVICE && result != VP_ERR_MEMORY;
        silent += result != VP_OK && (error.where[0] == 0 || error.text[0] == 0);
        leaked += cuda_on_cpu_live() != 0;
        if (!check_note(result == VP_ERR_DEVICE || result == VP_ERR_MEMORY, __FILE__, __LINE__, "call %ld of %ld gave %d", n, calls, (int)result)) break;
        if (!check_note(cuda_on_cpu_live() == 0, __FILE__, __LINE__, "call %ld of %ld left %d behind", n, calls, cuda_on_cpu_live())) break;
    }
    CHECK_INT(wrong_code, 0);
    CHECK_INT(silent, 0);
    CHECK_INT(leaked, 0);
    cuda_on_cpu_reset(1);
    CHECK_INT(live(tokens, &error), VP_OK); /* the next engine starts clean */
    CHECK(memcmp(tokens, healthy, sizeof tokens) == 0);
    CHECK_INT(cuda_on_cpu_live(), 0);
}

/* a machine described by environment variables refuses with one reason, by the code, and holds nothing */
static void test_machine(const char *name, const char *value, vp_result code, const char *reason) {
    vp_error error;
    int32_t tokens[NEW_TOKENS];
    check_case("%s=%s", name, value);
    setenv(name, value, 1);
    cuda_on_cpu_reset(1);
    CHECK_INT(live(tokens, &error), code);
    if (!CHECK(strstr(error.text, reason) != NULL || strstr(error.where, reason) != NULL)) printf("  said: %s: %s\n", error.where, error.text);
    CHECK_INT(cuda_on_cpu_live(), 0);
    unsetenv(name);
    cuda_on_cpu_reset(1);
}

int main(void) {
    static const char *const kinds[] = { "alloc", "host", "launch", "copy", "event", "gemm", "stream", "sync", "graph", "cublas" };
    vp_error error;
    int32_t healthy[NEW_TOKENS], tokens[NEW_TOKENS];
    make_request();
    check_case("a healthy life, under several schedules");
    cuda_on_cpu_reset(1);
    CHECK_INT(live(healthy, &error), VP_OK);
    CHECK_INT(cuda_on_cpu_live(), 0);
    for (uint64_t seed = 2; seed <= 5; seed++) {
        cuda_on_cpu_reset(seed);
        CHECK_INT(live(tokens, &error), VP_OK);
        CHECK(memcmp(tokens, healthy, sizeof tokens) == 0);
        CHECK_INT(cuda_on_cpu_live(), 0);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) test_kind(kinds[i], healthy);
    test_machine("CUDA_ON_CPU_DEVICES", "0", VP_ERR_DEVICE, "no NVIDIA GPU");
    test_machine("CUDA_ON_CPU_DRIVER", "0", VP_ERR_DEVICE, "no NVIDIA driver");
    test_machine("CUDA_ON_CPU_DRIVER", "11040", VP_ERR_DEVICE, "too old: it serves CUDA 11.4");
    test_machine("CUDA_ON_CPU_CAPABILITY", "7.5", VP_ERR_DEVICE, "compute capability 7.5; vlmprof needs 8.0");
    test_machine("CUDA_ON_CPU_MEMORY", "30000000", VP_ERR_MEMORY, "0.03 GB are free on the GPU");
    test_machine("CUDA_ON_CPU_CUBLAS", "0", VP_ERR_DEVICE, "libcublas.so.13");
    free(pixels);
    free(masks);
    return check_done("test_faults");
}
