/* test_blocks.c - linears in the block formats of GGUF files: random blocks of each format, packed into panels, widen to exactly the values of the file's reader, rounded
 * to bf16. Each kernel's product with a row of inputs equals that of these values in float64, and differs from that of a damaged block. Linears of several formats, and
 * rows in pairs, are placed correctly. */
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_config.h"
#include "vlmprof_gguf.h"

#include "engine/weights.h"
#include "vlmprof_kernels.cu"

#include "support/check.h"

enum { K = 512, N = 75, ROW_BYTES_MOST = K / 32 * 34 };
typedef struct format { const char *name; vp_dtype dtype; int halves[2]; } format;
static const format formats[] = {{"Q8_0", VP_DTYPE_Q8_0, {0, -1}}, {"Q4_0", VP_DTYPE_Q4_0, {0, -1}}, {"Q4_K", VP_DTYPE_Q4_K, {0, 2}}, {"Q6_K", VP_DTYPE_Q6_K, {208, -1}},
                                 {"Q5_0", VP_DTYPE_Q5_0, {0, -1}}};
enum { FORMATS = 5 };
static int panels_of(const format *of) { return vk_format_of_type(of->dtype); }
static size_t row_bytes_of(vp_dtype dtype) { return (size_t)(K / vp_dtype_block(dtype) * vp_dtype_block_bytes(dtype)); }

/* random blocks: any bits, and scales near 1, some of them negative, 0 or not normal */
static unsigned char *random_blocks(const format *of, int rows, uint64_t seed) {
    const size_t bytes = row_bytes_of(of->dtype), block_bytes = (size_t)vp_dtype_block_bytes(of->dtype);
    unsigned char *blocks = (unsigned char *)malloc(bytes * (size_t)rows);
    for (size_t i = 0; i < bytes * (size_t)rows; i++) blocks[i] = (unsigned char)vk_mix(seed + i);
    for (size_t at = 0; at < bytes * (size_t)rows; at += block_bytes)
        for (int h = 0; h < 2 && of->halves[h] >= 0; h++) {
            const uint64_t random = vk_mix(seed ^ (at * 2 + (size_t)h + 77));
            uint16_t half = (uint16_t)(0x2c00 + random % 0x1000) | (uint16_t)(random >> 40 & 0x8000);
            if (random >> 59 == 0) half = (uint16_t)(random & 0x83ff);
            memcpy(blocks + at + of->halves[h], &half, 2);
        }
    return blocks;
}
static vk_source source_of(const format *of, const unsigned char *blocks, int rows) {
    vk_source source = {.tensor.dtype = of->dtype, .tensor.data = blocks, .tensor.dimensions = 2};
    source.tensor.shape[0] = rows;
    source.tensor.shape[1] = K;
    return source;
}
/* a linear of `runs` formats with N rows in all; its panels are malloc'ed and zeroed, followed by 64 bytes of 0x5a */
static vk_linear linear_of(const int *rows_of, const format *const *of, int runs) {
    vk_arena arena = { NULL, 0 };
    vk_linear linear = {0};
    int first = 0;
    for (int r = 0; r < runs; r++) {
        linear.runs[r].first = first / VK_PAD;
        linear.runs[r].format = panels_of(of[r]);
        first += rows_of[r];
    }
    vk_layout_linear(&arena, &linear, first, K, 0, 0, 0, runs);
    linear.weights = calloc(arena.used + 64, 1);
    memset((char *)linear.weights + vk_runs_bytes(&linear), 0x5a, 64);
    return linear;
}
static int is_fenced(const vk_linear *linear) {
    const unsigned char *fence = (const unsigned char *)linear->weights + vk_runs_bytes(linear);
    for (int i = 0; i < 64; i++) if (fence[i] != 0x5a) return 0;
    return 1;
}
static void row_values(const format *of, const unsigned char *blocks, int row, float *values) {
    vp_dtype_to_f32(of->dtype, blocks + (size_t)row * row_bytes_of(of->dtype), K, values);
}

static int same_number(uint16_t one, uint16_t other) { return one == other || !((one | other) & 0x7fff); }
/* number of values of a panel that differ from those of rows first.. of the blocks; zeros may have any sign */
static int64_t widened_wrong(const format *of, const vk_linear *linear, int panel, const unsigned char *blocks, int first, int rows) {
    static uint16_t pairs[K * VK_PAD];
    static float values[K];
    int64_t wrong = 0;
    static uint16_t plain[K * VK_PAD];
    vk_blocks_widen(pairs, vk_panel_at(linear, panel), K, panels_of(of));
    vk_blocks_widen_plain(plain, vk_panel_at(linear, panel), K, panels_of(of));
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) wrong += !same_number(pairs[i], plain[i]);
    for (int c = 0; c < rows; c++) {
        row_values(of, blocks, first + c, values);
        for (int k = 0; k < K; k++) wrong += !same_number(pairs[(size_t)(k / 2 * VK_PAD + c) * 2 + (size_t)(k % 2)], vk_f2b(values[k]));
    }
    return wrong;
}

/* The largest distance of a kernel's sums from the products in float64, as a share of the allowed rounding. Inputs of 16 bits are off by at most 2^-16 of a block's
 * largest value; each addition by 2^-24 of the amount added. */
static double distance(vk_blocks_row kernel, const format *of, const vk_linear *linear, int panel, const unsigned char *blocks, int first, int rows, int kind) {
    static uint16_t x[K];
    static float values[K];
    vk_fine fine[K / VK_QUANT_BLOCK];
    float sums[VK_PAD + 2];
    double worst = 0;
    for (int k = 0; k < K; k++) {
        const uint64_t random = vk_mix((uint64_t)(k + 1000 * kind));
        x[k] = kind == 0 ? (uint16_t)(0x3f00 + random % 0x100) : vk_f2b((float)(int32_t)random * (kind == 1 ? 1e-9f : ldexpf(1e-9f, (int)(random >> 32 & 15) - 8)));
        if (kind == 3 && k / VK_QUANT_BLOCK % 2) x[k] = 0;
    }
    vk_quant_fine(fine, x, K / VK_QUANT_BLOCK, 4);
    sums[VK_PAD] = sums[VK_PAD + 1] = 12345.0f;
    kernel(sums, fine, vk_panel_at(linear, panel), K / VK_QUANT_BLOCK, panels_of(of));
    CHECK(sums[VK_PAD] == 12345.0f && sums[VK_PAD + 1] == 12345.0f);
    for (int c = 0; c < rows; c++) {
        double sum = 0, size = 0, inputs = 0;
        row_values(of, blocks, first + c, values);
        for (int b = 0; b < K; b += VK_QUANT_BLOCK) {
            double most = 0, weights = 0, least = 0;
            for (int k = b; k < b + VK_QUANT_BLOCK; k++) {
                sum += (double)values[k] * (double)vk_b2f(x[k]);
                most = fmax(most, fabs((double)vk_b2f(x[k])));
                weights += fabs((double)values[k]);
                least = fmax(least, fabs((double)values[k]));
            }
            inputs += ldexp(most, -16) * weights;
            size += 64 * most * least; /* both parts of Q4_K, which are at most twice the largest value of 63 * 15 / 16 .. */
        }
        worst = fmax(worst, fabs((double)sums[c] - sum) / (inputs + ldexp(size, -22) + 1e-30));
    }
    return worst;
}
typedef struct kernel { const char *name; vk_blocks_row row; int (*present)(void); } kernel;
static const kernel kernels[] = {
    {"plain", vk_blocks_row_plain, vk_has_c},
#ifdef VK_X86
    {"avx512", vk_blocks_row_avx512, vk_has_avx512},
    {"vnni", vk_blocks_row_vnni, vk_has_avx512bf16},
#endif
};
static void test_format(const format *of) {
    const vk_loader loader = { .threads = 2 };
    const int all = N;
    unsigned char *blocks = random_blocks(of, N, (uint64_t)of->dtype * 1000003);
    vk_source source = source_of(of, blocks, N);
    vk_linear linear = linear_of(&all, &of, 1);
    check_case("%s: panels have the file's values", of->name);
    CHECK_INT(vk_pack_blocks(&loader, &source, &linear, 0, N), 1);
    CHECK(is_fenced(&linear));
    CHECK_INT(vk_runs_bytes(&linear), (N + VK_PAD - 1) / VK_PAD * (int64_t)vk_blocks_bytes(panels_of(of), K));
    for (int p = 0; p < 3; p++) CHECK_INT(widened_wrong(of, &linear, p, blocks, p * VK_PAD, p < 2 ? VK_PAD : N - 64), 0);
    blocks[5 * row_bytes_of(of->dtype) + 20] ^= 4;
    CHECK(widened_wrong(of, &linear, 0, blocks, 0, VK_PAD) > 0);
    blocks[5 * row_bytes_of(of->dtype) + 20] ^= 4;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        check_case("%s: a row by %s", of->name, kernels[i].name);
        if (!kernels[i].present()) { check_skip(kernels[i].name, "not this processor"); continue; }
        for (int kind = 0; kind < 4; kind++)
            for (int p = 0; p < 3; p++) CHECK(distance(kernels[i].row, of, &linear, p, blocks, p * VK_PAD, p < 2 ? VK_PAD : N - 64, kind) <= 1);
        blocks[40 * row_bytes_of(of->dtype) + 20] ^= 4; /* an integer in one row */
        CHECK(distance(kernels[i].row, of, &linear, 1, blocks, VK_PAD, VK_PAD, 0) > 1);
        blocks[40 * row_bytes_of(of->dtype) + 20] ^= 4;
    }
    check_case("%s: a tensor of another type is not packed", of->name);
    source.tensor.dtype = panels_of(of) == VK_Q8_0 ? VP_DTYPE_Q4_0 : VP_DTYPE_Q8_0;
    CHECK_INT(vk_pack_blocks(&loader, &source, &linear, 0, N), 0);
    FREE_ALL(linear.weights, blocks);
}
/* q, k and v: 64, 32 and 11 rows, of which the first are in pairs */
static void test_runs(void) {
    const vk_loader loader = { .threads = 1 };
    const format *of[] = {&formats[2], &formats[0], &formats[3]};
    const int rows[] = {64, 32, 11}, first[] = {0, 64, 96};
    vk_linear linear = linear_of(rows, of, 3), part;
    unsigned char *blocks[3], *turned;
    size_t bytes = row_bytes_of(of[0]->dtype);
    check_case("a linear of three formats");
    for (int r = 0; r < 3; r++) {
        blocks[r] = random_blocks(of[r], rows[r], 31 + (uint64_t)r);
        vk_source source = source_of(of[r], blocks[r], rows[r]);
        source.tensor.paired_heads = r ? 0 : 4;
        CHECK_INT(vk_pack_blocks(&loader, &source, &linear, first[r], rows[r]), 1);
    }
    CHECK(is_fenced(&linear));
    turned = (unsigned char *)malloc(bytes * 64);
    for (int row = 0; row < 64; row++) /* heads of 16 rows: 0, 2, .. 14, then 1, 3, .. 15 */
        memcpy(turned + (size_t)row * bytes, blocks[0] + (size_t)(row / 16 * 16 + (row % 16 < 8 ? row % 8 * 2 : row % 8 * 2 + 1)) * bytes, bytes);
    for (int p = 0; p < 2; p++) CHECK_INT(widened_wrong(of[0], &linear, p, turned, p * VK_PAD, VK_PAD), 0);
    CHECK_INT(widened_wrong(of[1], &linear, 2, blocks[1], 0, VK_PAD), 0);
    CHECK_INT(widened_wrong(of[2], &linear, 3, blocks[2], 0, 11), 0);
    CHECK_INT(vk_runs_bytes(&linear), 2 * vk_blocks_bytes(VK_Q4_K, K) + vk_blocks_bytes(VK_Q8_0, K) + vk_blocks_bytes(VK_Q6_K, K));
    part = linear; /* the linear's last 43 rows */
    for (int i = 0; i < 3; i++) part.runs[i].first -= 2;
    CHECK(vk_panel_at(&part, 0) == vk_panel_at(&linear, 2) && vk_panel_at(&part, 1) == vk_panel_at(&linear, 3));
    for (int r = 0; r < 3; r++) free(blocks[r]);
    FREE_ALL(turned, linear.weights);
}
/* ---- a model: products of many rows equal those of bf16 bit by bit, products of one row approximately; the memory is that of the blocks */
static const char config_text[] = "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":256,\"intermediate_size\":512,"
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":96,\"max_position_embeddings\":64,"
    "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false,\"hidden_act\":\"silu\",\"head_dim\":64}";
enum { PROMPT = 9, NEW = 4, VOCABULARY = 96 };
static int format_named(const char *name) {
    static const struct { const char *in; int which; } of[] = {{"q_proj", 2}, {"k_proj", 2}, {"v_proj", 3}, {"o_proj", 4},
                                                               {"gate_proj", 1}, {"up_proj", 1}, {"down_proj", 3}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) if (strstr(name, of[i].in)) return of[i].which;
    return -1;
}
static vp_checkpoint *random_checkpoint(const vp_model_config *config, uint64_t *block_bytes, uint64_t *block_values) {
    const int64_t count = vp_model_tensor_count(config);
    vp_named_tensor *tensors = (vp_named_tensor *)calloc((size_t)count, sizeof *tensors);
    const unsigned char *maps[1] = {NULL};
    const size_t map_bytes[1] = {0};
    vp_checkpoint *checkpoint = NULL;
    vp_error error;
    *block_bytes = *block_values = 0;
    for (int64_t i = 0; i < count; i++) {
        vp_tensor_spec spec;
        vp_tensor *tensor = &tensors[i].tensor;
        int64_t values = 1;
        CHECK_INT(vp_model_tensor(config, i, &spec), VP_OK);
        for (int d = 0; d < spec.dimensions; d++) values *= tensor->shape[d] = spec.shape[d];
        int which = format_named(spec.name);
        snprintf(tensors[i].name, sizeof tensors[i].name, "%s", spec.name);
        tensor->dimensions = spec.dimensions;
        tensor->shard = -1;
        tensor->dtype = which < 0 ? VP_DTYPE_F32 : formats[which].dtype;
        tensor->bytes = which < 0 ? (uint64_t)values * 4 : (uint64_t)(values / vp_dtype_block(tensor->dtype) * vp_dtype_block_bytes(tensor->dtype));
        tensors[i].owned = (unsigned char *)malloc((size_t)tensor->bytes);
        tensor->data = tensors[i].owned;
        for (int64_t k = 0; which < 0 && k < values; k++) {
            float value = spec.dimensions == 1 ? 1.0f : (float)(int32_t)vk_mix((uint64_t)(k + 7919 * i)) * 1e-10f;
            memcpy(tensors[i].owned + 4 * k, &value, 4);
        }
        for (int64_t k = 0; which >= 0 && k < (int64_t)tensor->bytes; k++) tensors[i].owned[k] = (unsigned char)vk_mix((uint64_t)(k + 104729 * i));
        for (int64_t at = 0; which >= 0 && at < (int64_t)tensor->bytes; at += vp_dtype_block_bytes(tensor->dtype))
            for (int h = 0; h < 2 && formats[which].halves[h] >= 0; h++) {
                const uint16_t half = which == 0 ? 0x0c00 : which == 1 || which == 4 ? 0x2000 : 0x0200; /* values about 0.03 to 0.1 */
                memcpy(tensors[i].owned + at + formats[which].halves[h], &half, 2);
            }
        if (which >= 0) {
            *block_bytes += vk_blocks_bytes(panels_of(&formats[which]), (int)spec.shape[1]) * (uint64_t)(spec.shape[0] / VK_PAD);
            *block_values += (uint64_t)values;
        }
    }
    CHECK_INT(vp_checkpoint_of(tensors, (size_t)count, maps, map_bytes, 0, &checkpoint, &error), VP_OK);
    return checkpoint;
}
static uint64_t answer_of(const vp_model_config *config, const vp_checkpoint *checkpoint, vp_weights weights, const char *gemm, float *logits) {
    vp_engine_options options = vp_engine_options_default();
    int32_t ids[PROMPT], blocks[2] = {0, 1}, tokens[NEW];
    int64_t step_ns[NEW];
    vp_memory_block memory = {0};
    vp_engine *engine = NULL;
    vp_request request = {0};
    vp_reply reply = {0};
    vp_dump dump = {0};
    vp_error error;
    options.config = config;
    options.checkpoint = checkpoint;
    options.weights = weights;
    options.device = "cpu";
    options.gemm = gemm;
    options.max_sequence = PROMPT + NEW;
    if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) { printf("  %s: %s\n", error.where, error.text); return 0; }
    for (int i = 0; i < PROMPT; i++) ids[i] = 3 + i * 7;
    request.input_ids = ids; request.input_count = PROMPT;
    request.active_blocks = blocks; request.active_block_count = 2;
    request.max_new_tokens = NEW; request.ignore_eos = 1; request.dump = &dump;
    dump.logits = logits;
    reply.tokens = tokens; reply.step_ns = step_ns;
    if (!CHECK_INT(vp_engine_run(engine, &request, &reply, &error), VP_OK)) printf("  %s: %s\n", error.where, error.text);
    CHECK_INT(vp_engine_memory(engine, 0, &memory), 1);
    vp_engine_close(engine);
    return memory.bytes;
}
static void test_model(void) {
    static float want[NEW * VOCABULARY], got[NEW * VOCABULARY];
    vp_model_config config;
    vp_error error;
    uint64_t block_bytes, block_values, before, after;
    check_case("a model with block weights");
    if (!CHECK_INT(vp_model_config_parse(config_text, strlen(config_text), NULL, 0, &config, &error), VP_OK)) { printf("  %s: %s\n", error.where, error.text); return; }
    vp_checkpoint *checkpoint = random_checkpoint(&config, &block_bytes, &block_values);
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) {
        double difference = 0, size = 0;
        check_case("a model with block weights, %s", vp_engine_gemm_name(i));
        before = answer_of(&config, checkpoint, VP_WEIGHTS_BF16, vp_engine_gemm_name(i), want);
        after = answer_of(&config, checkpoint, VP_WEIGHTS_GGUF, vp_engine_gemm_name(i), got);
        CHECK_INT(before - after, 2 * block_values - block_bytes);
        CHECK(!memcmp(want, got, VOCABULARY * sizeof *want)); /* the prompt's last product has a bf16 head */
        for (int k = VOCABULARY; k < 2 * VOCABULARY; k++) {
            difference += (double)(want[k] - got[k]) * (double)(want[k] - got[k]);
            size += (double)want[k] * (double)want[k];
        }
        CHECK(difference > 0 && sqrt(difference / size) < 0.02); /* weights and results are rounded to bf16 */
    }
    vp_checkpoint_close(checkpoint);
}

static void test_halves(void) {
    int64_t wrong = 0;
    check_case("all 16-bit numbers");
    for (int h = 0; h < 0x10000; h++) {
        const float got = vk_h2f((uint16_t)h), want = vp_f16_to_f32((uint16_t)h);
        wrong += isnan(want) ? !isnan(got) : memcmp(&got, &want, 4) != 0;
    }
    CHECK_INT(wrong, 0);
}

int main(void) {
    test_halves();
    for (int f = 0; f < FORMATS; f++) test_format(&formats[f]);
    test_runs();
    test_model();
    return check_done("test_blocks");
}
