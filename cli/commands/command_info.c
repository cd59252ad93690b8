/* command_info.c: this build, this machine, a checkpoint. */
#include "base/console.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/model.h"
#include "request/provenance.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"
#include "vlmprof_stages.h"
#include "vlmprof_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec INFO_OPTIONS[] = {
    OPTION_MODEL,
    OPTION_SYNTHETIC,
    OPTION_JSON,
    OPTION_HELP,
};

enum { ROW_CLASSES = 3 }; /* of the GEMM kernels' choice: one row, few, many */
static const int32_t CLASS_ROWS[ROW_CLASSES] = {1, 8, 1024};

typedef struct cpu_info {
    char name[200];
    int64_t threads, memory_bytes, available_bytes; /* -1: unknown */
    char chosen[2][ROW_CLASSES][24];                /* GEMM kernels in bf16 and fp32 */
} cpu_info;

static int64_t meminfo_bytes(const char *text, const char *key) { /* "\nKey:   N kB" */
    const char *p = text ? strstr(text, key) : NULL;
    return p ? strtoll(p + strlen(key), NULL, 10) * 1024 : -1;
}
/* Name and threads come from an engine of a tiny model, as its kernels do: "cpu: NAME, N threads". */
static int read_cpu(cpu_info *c) {
    vp_model_config config;
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL, *comma;
    size_t bytes = 0;
    vp_result r = vp_model_config_preset("tiny", &config);
    for (int fp32 = 0; fp32 < 2 && r == VP_OK; fp32++) {
        vp_engine_options e = vp_engine_options_default();
        vp_engine *engine = NULL;
        e.config = &config;
        e.device = "cpu";
        e.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
        e.max_sequence = 1;
        if ((r = vp_engine_open(&e, &engine, &error)) != VP_OK) break;
        snprintf(c->name, sizeof c->name, "%s", vp_engine_device(engine) + strlen("cpu: "));
        for (int i = 0; i < ROW_CLASSES; i++) snprintf(c->chosen[fp32][i], sizeof c->chosen[fp32][i], "%s", vp_engine_gemm(engine, CLASS_ROWS[i]));
        vp_engine_close(engine);
    }
    if (r != VP_OK) return complain_result(exit_code_of(r), "info", r, &error);
    comma = strrchr(c->name, ',');
    c->threads = comma ? strtoll(comma + 1, NULL, 10) : -1;
    if (comma) *comma = 0;
    if (vp_file_read("/proc/meminfo", 1 << 20, &text, &bytes, NULL) != VP_OK) text = NULL;
    c->memory_bytes = meminfo_bytes(text, "MemTotal:");
    c->available_bytes = meminfo_bytes(text, "MemAvailable:");
    free(text);
    return 0;
}

/* what a checkpoint holds */
enum { PART_VISION, PART_EXPERTS, PART_LANGUAGE, PART_EMBEDDINGS, PART_COUNT };

static const char *const PART_KEYS[PART_COUNT] = {"vision", "experts", "other_llm", "embeddings_and_head"};

static const char *const DTYPE_KEYS[] = {"F32", "BF16", "F16"}; /* by vp_dtype */
typedef struct holdings { int64_t parameters, parts[PART_COUNT], tensors, dtypes[3], tokens; } holdings;

static void read_holdings(const model *m, holdings *h) {
    vp_tensor_spec spec;
    memset(h, 0, sizeof *h);
    h->tensors = vp_model_tensor_count(&m->config);
    for (int64_t i = 0; i < h->tensors && vp_model_tensor(&m->config, i, &spec) == VP_OK; i++) {
        int64_t count = spec.shape[0] * (spec.dimensions > 1 ? spec.shape[1] : 1);
        vp_tensor tensor;
        h->parameters += count;
        h->parts[strstr(spec.name, "vision_backbone.") ? PART_VISION : strstr(spec.name, ".experts.") ? PART_EXPERTS
                 : strstr(spec.name, ".wte.") || strstr(spec.name, "lm_head") ? PART_EMBEDDINGS : PART_LANGUAGE] += count;
        if (m->checkpoint && vp_checkpoint_find(m->checkpoint, spec.name, &tensor) == VP_OK) h->dtypes[tensor.dtype]++;
    }
    for (int32_t id = 0; id < m->config.embedding_size + m->config.additional_vocab_size; id++) { /* ids that stand for a text */
        char nothing[1];
        size_t needed = 0;
        vp_tokenizer_decode(m->tokenizer, &id, 1, 0, nothing, 0, &needed);
        h->tokens += needed > 0;
    }
}
/* of keys and values of all blocks; see vp_engine_open */
static int64_t cache_bytes(const model *m, int fp32) { return (fp32 ? 8 : 4) * (int64_t)m->config.d_model * m->config.block_count; }

static void put_model(vp_json_writer *w, const model *m, const holdings *h) {
    const vp_model_config *c = &m->config;
    vp_json_begin_object(w);
    put_text(w, "name", m->name);
    put_bool(w, "synthetic", m->synthetic);
    put_text(w, "architecture", m->architecture);
    put_int(w, "num_blocks", c->block_count);
    put_int(w, "d_model", c->d_model);
    put_int(w, "num_heads", c->head_count);
    put_int(w, "num_experts", c->expert_count);
    put_int(w, "expert_dim", c->expert_dim);
    put_int(w, "top_k", c->top_k);
    put_int(w, "embedding_size", c->embedding_size);
    put_int(w, "max_positions", c->max_positions);
    put_int(w, "vit_num_blocks", c->vit_block_count);
    put_int(w, "vit_blocks_needed", c->vit_blocks_needed);
    put_int(w, "vit_width", c->vit_width);
    put_int(w, "vit_num_heads", c->vit_head_count);
    put_int(w, "vit_mlp_dim", c->vit_mlp_dim);
    put_int(w, "tokenizer_size", h->tokens);
    vp_json_key(w, "parameters");
    vp_json_begin_object(w);
    put_int(w, "total", h->parameters);
    for (int i = 0; i < PART_COUNT; i++) put_int(w, PART_KEYS[i], h->parts[i]);
    vp_json_end_object(w);
    put_int(w, "tensors", h->tensors);
    vp_json_key(w, "dtypes"); /* tensors of each */
    vp_json_begin_object(w);
    for (int i = 0; i < 3; i++) put_int(w, DTYPE_KEYS[i], h->dtypes[i]);
    vp_json_end_object(w);
    put_bool(w, "packed", is_packed(m)); /* for the CPU, in bf16 */
    put_int(w, "files", m->file_count);
    put_int(w, "file_bytes", m->file_bytes);
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_json_key(w, fp32 ? "fp32" : "bf16");
        vp_json_begin_object(w);
        put_int(w, "weights_bytes", (fp32 ? 4 : 2) * h->parameters);
        put_int(w, "kv_cache_bytes_per_token", cache_bytes(m, fp32));
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

static void print_model(const model *m, const holdings *h) {
    const vp_model_config *c = &m->config;
    printf("model       %s: %s%s\n", m->name, m->architecture, m->synthetic ? ", random weights" : "");
    printf("language    %d blocks of width %d, %d heads; %d experts of width %d, top_k %d; %d positions at most\n", c->block_count, c->d_model,
           c->head_count, c->expert_count, c->expert_dim, c->top_k, c->max_positions);
    printf("vision      %d blocks of width %d (%d are run), %d heads, mlp %d\n", c->vit_block_count, c->vit_width, c->vit_blocks_needed,
           c->vit_head_count, c->vit_mlp_dim);
    printf("tokenizer   %lld tokens; %d rows of embeddings\n", (long long)h->tokens, c->embedding_size + c->additional_vocab_size);
    printf("parameters  %.4g M: vision %.4g M, experts %.4g M, other LLM %.4g M, embeddings and head %.4g M\n", (double)h->parameters / 1e6,
           (double)h->parts[PART_VISION] / 1e6, (double)h->parts[PART_EXPERTS] / 1e6, (double)h->parts[PART_LANGUAGE] / 1e6,
           (double)h->parts[PART_EMBEDDINGS] / 1e6);
    if (!m->synthetic) {
        printf("files       %lld tensors (%s", (long long)h->tensors, is_packed(m) ? "packed for the CPU, bf16" : "");
        for (int i = 0, shown = 0; i < 3; i++) if (h->dtypes[i]) printf("%s%lld %s", shown++ ? ", " : "", (long long)h->dtypes[i], DTYPE_KEYS[i]);
        printf(") in %lld file%s, %.4g GB\n", (long long)m->file_count, m->file_count == 1 ? "" : "s", (double)m->file_bytes / 1e9);
    }
    for (int fp32 = 0; fp32 < 2; fp32++)
        printf("%-11s weights %.4g GB, KV cache %lld bytes a token (%.4g GB for all positions), and buffers\n", fp32 ? "  fp32" : "  bf16",
               (fp32 ? 4 : 2) * (double)h->parameters / 1e9, (long long)cache_bytes(m, fp32), (double)cache_bytes(m, fp32) * c->max_positions / 1e9);
}

/* GPUs as text lines or as JSON objects */
static void show_gpus(vp_json_writer *w, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        vp_device_info gpu;
        vp_error error = {VP_OK, -1, "", ""};
        char driver[24], runtime[24];
        vp_result r = vp_device_describe(i, &gpu, &error);
        if (w && r == VP_OK) put_gpu(w, i, &gpu);
        else if (w) {
            vp_json_begin_object(w);
            put_int(w, "index", i);
            put_text(w, "error", error.text);
            vp_json_end_object(w);
        } else if (r != VP_OK) printf("gpu %d       cannot be used: %s\n", i, error.text);
        else
            printf("gpu %d       %s, compute capability %d.%d, %d multiprocessors, %.4g GB, %.4g GB free; driver for CUDA %s, runtime %s\n", i,
                   gpu.name, gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count, (double)gpu.memory_bytes / 1e9,
                   (double)gpu.free_bytes / 1e9, version_text(gpu.driver_version, driver), version_text(gpu.runtime_version, runtime));
    }
}

static void print_info(const cpu_info *c, int32_t gpu_count, const char *no_gpu, const model *m, const holdings *h) {
    printf("vlmprof     %s, %s\n", VLMPROF_VERSION, build_text());
    printf("cpu         %s, %lld thread%s\n", c->name, (long long)c->threads, c->threads == 1 ? "" : "s");
    printf("memory      %.4g GB, %.4g GB available\n", (double)c->memory_bytes / 1e9, (double)c->available_bytes / 1e9);
    printf("gemm        ");
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) printf("%s%s", i ? ", " : "", vp_engine_gemm_name(i));
    putchar('\n');
    for (int fp32 = 0; fp32 < 2; fp32++)
        printf("  %s      fastest: %s for 1 row, %s for few, %s for many\n", fp32 ? "fp32" : "bf16", c->chosen[fp32][0], c->chosen[fp32][1],
               c->chosen[fp32][2]);
    if (no_gpu) printf("gpu         none: %s\n", no_gpu);
    show_gpus(NULL, gpu_count);
    if (m) print_model(m, h);
}

static void print_info_json(const cpu_info *c, int32_t gpu_count, const char *no_gpu, const model *m, const holdings *h) {
    vp_json_writer w;
    char text[24];
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-info-1");
    put_text(&w, "version", VLMPROF_VERSION);
    put_text(&w, "compiler", __VERSION__);
    put_text(&w, "cuda_toolkit", vp_device_toolkit() ? version_text(vp_device_toolkit(), text) : NULL);
    vp_json_key(&w, "cpu");
    vp_json_begin_object(&w);
    put_text(&w, "name", c->name);
    put_int(&w, "threads", c->threads);
    put_int(&w, "memory_bytes", c->memory_bytes);
    put_int(&w, "available_bytes", c->available_bytes);
    vp_json_key(&w, "gemm");
    vp_json_begin_array(&w);
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) vp_json_string(&w, vp_engine_gemm_name(i));
    vp_json_end_array(&w);
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_json_key(&w, fp32 ? "gemm_fp32" : "gemm_bf16"); /* the fastest for 1, 8 and 1024 rows */
        vp_json_begin_object(&w);
        for (int i = 0; i < ROW_CLASSES; i++) {
            snprintf(text, sizeof text, "rows_%d", CLASS_ROWS[i]);
            put_text(&w, text, c->chosen[fp32][i]);
        }
        vp_json_end_object(&w);
    }
    vp_json_end_object(&w);
    vp_json_key(&w, "gpus");
    vp_json_begin_array(&w);
    show_gpus(&w, gpu_count);
    vp_json_end_array(&w);
    put_text(&w, "gpus_note", no_gpu);
    vp_json_key(&w, "model");
    if (m) put_model(&w, m, h); else vp_json_null(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

static int run_command(const options *o) {
    int has_model = given(o, "model") || given(o, "synthetic"), code = 0;
    vp_error no_gpu = {VP_OK, -1, "", ""};
    int32_t gpu_count = 0;
    const char *reason;
    cpu_info cpu;
    holdings h;
    model m;
    memset(&m, 0, sizeof m);
    memset(&h, 0, sizeof h);
    memset(&cpu, 0, sizeof cpu);
    if (has_model && (code = model_load(o, &m)) == 0 && (code = checkpoint_open(&m)) == 0) read_holdings(&m, &h);
    if (!code) code = read_cpu(&cpu);
    if (!code) {
        reason = vp_device_count(&gpu_count, &no_gpu) == VP_OK ? NULL : no_gpu.text;
        (given(o, "json") ? print_info_json : print_info)(&cpu, gpu_count, reason, has_model ? &m : NULL, &h);
    }
    model_free(&m);
    return code;
}

const command command_info = {
    "info", "[--model DIR | --synthetic NAME]",
    "this build, its processor, memory, kernels and GPUs; with --model, what a checkpoint holds and needs",
    "vlmprof info --model checkpoint --json",
    0, INFO_OPTIONS, sizeof INFO_OPTIONS / sizeof *INFO_OPTIONS, NULL, run_command};
