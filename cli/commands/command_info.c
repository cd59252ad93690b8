/* command_info.c: prints facts about this build, this machine and, with --model, a checkpoint, as text or JSON. */
#include "base/console.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "model/model.h"
#include "measure/provenance.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_file.h"
#include "vlmprof_stages.h"
#include "vlmprof_tokenizer.h"

#include <math.h>

static const struct option_spec INFO_OPTIONS[] = {
    OPTION_GROUP("input"), OPTION_MODEL, OPTION_SYNTHETIC, OPTION_GROUP("output"), OPTION_JSON, OPTIONS_OF_ALL,
};

/* GEMM kernels are chosen by the number of rows: one, few or many. These are examples. */
enum { ROW_CLASSES = 3 };
static const int32_t CLASS_ROWS[ROW_CLASSES] = {1, 8, 1024};

struct cpu_info {
    char name[200];
    int64_t threads, memory_bytes, available_bytes; /* -1 if unknown */
    char chosen[2][ROW_CLASSES][24];                /* the chosen GEMM kernels in bf16 and in fp32 */
    /* "always", "madvise" or "never": whether the engine gets the large pages that it requests; "" if unknown */
    char huge_pages[16];
};

/* The value of a line "KEY N kB" of /proc/meminfo, in bytes; -1 if it is missing. */
static int64_t meminfo_bytes(const char *text, const char *key) {
    const char *found = text ? strstr(text, key) : NULL;
    return found ? strtoll(found + strlen(key), NULL, 10) * 1024 : -1;
}
static void read_memory(struct cpu_info *cpu) {
    char *text = NULL;
    size_t bytes = 0;
    if (vp_file_read("/proc/meminfo", 1 << 20, &text, &bytes, NULL) != VP_OK) text = NULL;
    cpu->memory_bytes = meminfo_bytes(text, "MemTotal:");
    cpu->available_bytes = meminfo_bytes(text, "MemAvailable:");
    free(text);
}
/* the word in brackets of "always [madvise] never" */
static void read_huge_pages(struct cpu_info *cpu) {
    char *text = NULL, *open, *close;
    size_t bytes = 0;
    cpu->huge_pages[0] = 0;
    if (vp_file_read("/sys/kernel/mm/transparent_hugepage/enabled", 4096, &text, &bytes, NULL) != VP_OK) return;
    open = strchr(text, '[');
    close = open ? strchr(open, ']') : NULL;
    if (close) snprintf(cpu->huge_pages, sizeof cpu->huge_pages, "%.*s", (int)(close - open - 1), open + 1);
    free(text);
}
/* Opens an engine of a tiny model in both arithmetics to get its kernels and the device's name, which is "cpu: NAME, N
 * threads". Returns 0 or an exit code. */
static int read_cpu(struct cpu_info *cpu) {
    vp_model_config config;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_model_config_preset("tiny", &config);
    for (int fp32 = 0; fp32 < 2 && result == VP_OK; fp32++) {
        vp_engine_options settings = vp_engine_options_default();
        vp_engine *engine = NULL;
        settings.config = &config;
        settings.device = "cpu";
        settings.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
        settings.max_sequence = 1;
        if ((result = vp_engine_open(&settings, &engine, &error)) != VP_OK) break;
        snprintf(cpu->name, sizeof cpu->name, "%s", vp_engine_device(engine) + strlen("cpu: "));
        for (int i = 0; i < ROW_CLASSES; i++)
            snprintf(cpu->chosen[fp32][i], sizeof cpu->chosen[fp32][i], "%s", vp_engine_gemm(engine, CLASS_ROWS[i]));
        vp_engine_close(engine);
    }
    if (result != VP_OK) return complain_result(exit_code_of(result), "info", result, &error);
    char *comma = strrchr(cpu->name, ',');
    cpu->threads = comma ? strtoll(comma + 1, NULL, 10) : -1;
    if (comma) *comma = 0;
    return 0;
}

enum { PART_VISION, PART_EXPERTS, PART_LANGUAGE, PART_EMBEDDINGS, PART_COUNT };

static const char *const PART_KEYS[PART_COUNT] = {"vision", "experts", "other_llm", "embeddings_and_head"};

static const char *const DTYPE_KEYS[VP_DTYPE_COUNT] = {"F32", "BF16", "F16"};
/* What a checkpoint contains: parameters by part, tensors by type, tokens of the tokenizer. */
struct holdings { int64_t parameters, parts[PART_COUNT], tensors, dtypes[VP_DTYPE_COUNT], tokens; };

static int has_any(const char *name, const char *const *pieces) {
    for (; *pieces; pieces++) if (strstr(name, *pieces)) return 1;
    return 0;
}
/* the part that a tensor belongs to, by its name */
static int part_of(const char *name) {
    static const char *const vision[] = {"vision_", "multi_modal_projector.", "connector.", NULL},
                             *const tables[] = {".wte.", "embed_tokens", "lm_head", "model.transformer.ff_out.", NULL};
    return has_any(name, vision)       ? PART_VISION
           : strstr(name, ".experts.") ? PART_EXPERTS
           : has_any(name, tables)     ? PART_EMBEDDINGS
                                       : PART_LANGUAGE;
}
static void read_holdings(const struct model *model, struct holdings *holdings) {
    vp_tensor_spec spec;
    memset(holdings, 0, sizeof *holdings);
    holdings->tensors = vp_model_tensor_count(&model->config);
    for (int64_t i = 0; i < holdings->tensors && vp_model_tensor(&model->config, i, &spec) == VP_OK; i++) {
        vp_tensor tensor;
        int64_t count = 1;
        for (int32_t k = 0; k < spec.dimensions; k++) count *= spec.shape[k];
        holdings->parameters += count;
        holdings->parts[part_of(spec.name)] += count;
        if (model->checkpoint && vp_checkpoint_find(model->checkpoint, spec.name, &tensor) == VP_OK)
            holdings->dtypes[tensor.dtype]++;
    }
    /* some ids of the embedding have no text */
    for (int32_t id = 0; id < model->config.embedding_size + model->config.additional_vocab_size; id++) {
        char nothing[1];
        size_t needed = 0;
        vp_tokenizer_decode(model->tokenizer, &id, 1, 0, nothing, 0, &needed);
        holdings->tokens += needed > 0;
    }
}
/* Bytes per token of the KV cache of all blocks, as vp_engine_open allocates it. */
static int64_t cache_bytes(const struct model *model, int fp32) {
    return (fp32 ? 8 : 4) * (int64_t)model->config.kv_head_count * model->config.head_dim * model->config.block_count;
}

static void put_model(vp_json_writer *writer, const struct model *model, const struct holdings *holdings) {
    const vp_model_config *config = &model->config;
    PUT(writer, KEY_OBJECT(NULL), KEY("name", model->name), KEY_BOOL("synthetic", model->synthetic),
        KEY("architecture", vp_architecture_name(config->architecture)), KEY("class_name", model->class_name),
        KEY("num_blocks", config->block_count), KEY("d_model", config->d_model), KEY("num_heads", config->head_count),
        KEY("num_kv_heads", config->kv_head_count), KEY("mlp_dim", config->mlp_dim),
        KEY("num_experts", config->expert_count), KEY("expert_dim", config->expert_dim), KEY("top_k", config->top_k),
        KEY("embedding_size", config->embedding_size), KEY("max_positions", config->max_positions),
        KEY("vit_num_blocks", config->vit_block_count), KEY("vit_blocks_needed", config->vit_blocks_needed),
        KEY("vit_width", config->vit_width), KEY("vit_num_heads", config->vit_head_count),
        KEY("vit_mlp_dim", config->vit_mlp_dim), KEY("tokenizer_size", holdings->tokens), KEY_OBJECT("parameters"),
        KEY("total", holdings->parameters));
    for (int i = 0; i < PART_COUNT; i++) put_int(writer, PART_KEYS[i], holdings->parts[i]);
    PUT(writer, END_OBJECT, KEY("tensors", holdings->tensors), /* tensors of each type */ KEY_OBJECT("dtypes"));
    for (int i = 0; i < VP_DTYPE_COUNT; i++) put_int(writer, DTYPE_KEYS[i], holdings->dtypes[i]);
    vp_json_end_object(writer);
    PUT(writer, KEY("files", model->file_count), KEY("file_bytes", model->file_bytes));
    for (int fp32 = 0; fp32 < 2; fp32++) {
        PUT(writer, KEY_OBJECT(fp32 ? "fp32" : "bf16"), KEY("weights_bytes", (fp32 ? 4 : 2) * holdings->parameters),
            KEY("kv_cache_bytes_per_token", cache_bytes(model, fp32)), END_OBJECT);
    }
    vp_json_end_object(writer);
}

static void print_model(const struct model *model, const struct holdings *holdings) {
    const vp_model_config *config = &model->config;
    print_plain("model       %s: %s (%s)%s\n", model->name, vp_architecture_name(config->architecture),
                model->class_name, model->synthetic ? ", random weights" : "");
    char heads[48] = "";
    if (config->kv_head_count != config->head_count)
        snprintf(heads, sizeof heads, " (%d for keys and values)", config->kv_head_count);
    print_plain("language    %d blocks of width %d, %d heads%s; ", config->block_count, config->d_model,
                config->head_count, heads);
    if (config->expert_count)
        print_plain("%d experts of width %d, top_k %d; ", config->expert_count, config->expert_dim, config->top_k);
    else print_plain("mlp %d; ", config->mlp_dim);
    print_plain("at most %d positions\n", config->max_positions);
    if (config->vit_block_count)
        print_plain("vision      %d blocks of width %d (%d used), %d heads, mlp %d\n", config->vit_block_count,
                    config->vit_width, config->vit_blocks_needed, config->vit_head_count, config->vit_mlp_dim);
    print_plain("tokenizer   %lld tokens; %d embedding rows\n", (long long)holdings->tokens,
                config->embedding_size + config->additional_vocab_size);
    print_plain("parameters  %.4g M: vision %.4g M, experts %.4g M, other LLM %.4g M, embeddings and head %.4g M\n",
                (double)holdings->parameters / 1e6, (double)holdings->parts[PART_VISION] / 1e6,
                (double)holdings->parts[PART_EXPERTS] / 1e6, (double)holdings->parts[PART_LANGUAGE] / 1e6,
                (double)holdings->parts[PART_EMBEDDINGS] / 1e6);
    if (!model->synthetic) {
        print_plain("files       %lld tensors (", (long long)holdings->tensors);
        for (int i = 0, shown = 0; i < VP_DTYPE_COUNT; i++)
            if (holdings->dtypes[i])
                print_plain("%s%lld %s", shown++ ? ", " : "", (long long)holdings->dtypes[i], DTYPE_KEYS[i]);
        print_plain(") in %lld file%s, %.4g GB\n", (long long)model->file_count, plural_s((int64_t)model->file_count),
                    (double)model->file_bytes / 1e9);
    }
    for (int fp32 = 0; fp32 < 2; fp32++)
        print_plain("%-11s weights %.4g GB, KV cache %lld bytes per token (%.4g GB for all positions), and buffers\n",
                    fp32 ? "  fp32" : "  bf16", (fp32 ? 4 : 2) * (double)holdings->parameters / 1e9,
                    (long long)cache_bytes(model, fp32),
                    (double)cache_bytes(model, fp32) * config->max_positions / 1e9);
}

static void put_cpu(vp_json_writer *writer, const struct cpu_info *cpu) {
    char text[24];
    PUT(writer, KEY_OBJECT("cpu"), KEY("name", cpu->name), KEY("threads", cpu->threads),
        KEY_KNOWN("memory_bytes", cpu->memory_bytes >= 0, cpu->memory_bytes),
        KEY_KNOWN("available_bytes", cpu->available_bytes >= 0, cpu->available_bytes),
        KEY("huge_pages", cpu->huge_pages[0] ? cpu->huge_pages : NULL), KEY_ARRAY("gemm"));
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) vp_json_string(writer, vp_engine_gemm_name(i));
    vp_json_end_array(writer);
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_json_key(writer, fp32 ? "gemm_fp32" : "gemm_bf16"); /* the fastest kernel for CLASS_ROWS rows */
        vp_json_begin_object(writer);
        for (int i = 0; i < ROW_CLASSES; i++) {
            snprintf(text, sizeof text, "rows_%d", CLASS_ROWS[i]);
            put_text(writer, text, cpu->chosen[fp32][i]);
        }
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}
static void put_gpus(vp_json_writer *writer, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        vp_device_info gpu;
        vp_error error = {VP_OK, -1, "", ""};
        if (vp_device_describe(i, &gpu, &error) == VP_OK) {
            put_gpu(writer, i, &gpu);
            continue;
        }
        PUT(writer, KEY_OBJECT(NULL), KEY("index", i), KEY("error", error.text), END_OBJECT);
    }
}
/* A clock rate that the power limit should allow: 71 % of the maximum, in steps of 15 MHz. */
static int64_t steady_clock_mhz(const vp_telemetry *telemetry) {
    return isfinite(telemetry->sm_clock_max_mhz) ? (int64_t)(telemetry->sm_clock_max_mhz * 0.71 / 15) * 15 : 0;
}
/* Prints which readings a GPU offers next to its times, and the settings that make times repeatable. */
static void print_gpu_tools(int32_t index) {
    vp_telemetry telemetry;
    vp_error error = {VP_OK, -1, "", ""};
    char ways[600];
    double joules;
    if (vp_device_ways(index, ways, sizeof ways, &error) == VP_OK) print_plain("  ways      %s\n", ways);
    if (vp_device_energy(index, &joules, &error) == VP_OK)
        print_plain("  energy    counted by NVML: results have energy_j\n");
    else print_plain("  energy    not counted: %s: %s\n", error.where, error.text);
    if (vp_device_telemetry(index, &telemetry, &error) != VP_OK) {
        print_plain("  clocks    unknown: %s: %s\n", error.where, error.text);
        return;
    }
    if (isfinite(telemetry.sm_clock_mhz) && steady_clock_mhz(&telemetry))
        print_plain("  clocks    SM %.0f of %.0f MHz. vlmprof does not set clocks; for repeatable times: sudo "
                    "nvidia-smi -i %d -lgc %lld,%lld (-rgc undoes it)\n",
                    telemetry.sm_clock_mhz, telemetry.sm_clock_max_mhz, index, (long long)steady_clock_mhz(&telemetry),
                    (long long)steady_clock_mhz(&telemetry));
}
static void print_gpus(int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        vp_device_info gpu;
        vp_error error = {VP_OK, -1, "", ""};
        char driver[24], runtime[24], free_text[32] = "unknown";
        if (vp_device_describe(i, &gpu, &error) != VP_OK) {
            print_plain("gpu %d       cannot be used: %s\n", i, error.text);
            continue;
        }
        if (gpu.free_bytes != UINT64_MAX)
            snprintf(free_text, sizeof free_text, "%.4g GB", (double)gpu.free_bytes / 1e9);
        print_plain("gpu %d       %s, compute capability %d.%d, %d multiprocessors, %.4g GB, %s free; driver for "
                    "CUDA %s, runtime %s\n",
                    i, gpu.name, gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count,
                    (double)gpu.memory_bytes / 1e9, free_text, version_text(gpu.driver_version, driver),
                    version_text(gpu.runtime_version, runtime));
        print_gpu_tools(i);
    }
}

static const char *gigabytes(int64_t bytes, char text[32]) {
    if (bytes < 0) return "an unknown amount";
    snprintf(text, 32, "%.4g GB", (double)bytes / 1e9);
    return text;
}
static void print_info(const struct cpu_info *cpu, int32_t gpu_count, const char *no_gpu, const struct model *model,
                       const struct holdings *holdings) {
    char all[32], available[32];
    print_plain("vlmprof     %s, %s\n", VLMPROF_VERSION, build_text());
    print_plain("cpu         %s, %lld thread%s\n", cpu->name, (long long)cpu->threads, plural_s((int64_t)cpu->threads));
    print_plain("memory      %s, %s available\n", gigabytes(cpu->memory_bytes, all),
                gigabytes(cpu->available_bytes, available));
    if (!strcmp(cpu->huge_pages, "never"))
        print_plain("huge pages  none: transparent_hugepage is \"never\", so decoding is slower\n");
    else print_plain("huge pages  %s\n", cpu->huge_pages[0] ? cpu->huge_pages : "unknown");
    print_plain("gemm        ");
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) print_plain("%s%s", i ? ", " : "", vp_engine_gemm_name(i));
    putchar('\n');
    for (int fp32 = 0; fp32 < 2; fp32++)
        print_plain("  %s      fastest: %s for 1 row, %s for a few, %s for many\n", fp32 ? "fp32" : "bf16",
                    cpu->chosen[fp32][0], cpu->chosen[fp32][1], cpu->chosen[fp32][2]);
    if (no_gpu) print_plain("gpu         none: %s\n", no_gpu);
    print_gpus(gpu_count);
    if (gpu_count && vp_device_launch_timer()) /* "activity records of CUPTI ..." or "CUDA events: REASON" */
        print_plain("profiles    launches on a GPU are timed by %s\n", vp_device_launch_timer());
    if (model) print_model(model, holdings);
}

static void put_gpu_tools(vp_json_writer *writer, int32_t index) {
    vp_telemetry telemetry;
    vp_error energy = {VP_OK, -1, "", ""}, clocks = {VP_OK, -1, "", ""};
    char ways[600];
    double joules;
    const int counts = vp_device_energy(index, &joules, &energy) == VP_OK,
              reads = vp_device_telemetry(index, &telemetry, &clocks) == VP_OK,
              has_ways = vp_device_ways(index, ways, sizeof ways, NULL) == VP_OK;
    const int64_t steady_mhz = reads ? steady_clock_mhz(&telemetry) : 0; /* 0 if unknown */
    PUT(writer, KEY_OBJECT(NULL), KEY("index", index), KEY_BOOL("energy", counts),
        KEY("energy_reason", counts ? NULL : energy.text), KEY_BOOL("telemetry", reads),
        KEY("telemetry_reason", reads ? NULL : clocks.text), KEY("ways", has_ways ? ways : NULL),
        KEY_KNOWN("steady_clock_mhz", steady_mhz, steady_mhz), END_OBJECT);
}

static void print_info_json(const struct cpu_info *cpu, int32_t gpu_count, const char *no_gpu,
                            const struct model *model, const struct holdings *holdings) {
    vp_json_writer writer;
    char text[24];
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-info-1"), KEY("version", VLMPROF_VERSION),
        KEY("compiler", __VERSION__),
        KEY("cuda_toolkit", vp_device_toolkit() ? version_text(vp_device_toolkit(), text) : NULL));
    put_cpu(&writer, cpu);
    PUT(&writer, KEY_ARRAY("gpus"));
    put_gpus(&writer, gpu_count);
    PUT(&writer, END_ARRAY, KEY("gpus_note", no_gpu), KEY("launch_timer", gpu_count ? vp_device_launch_timer() : NULL),
        KEY_ARRAY("gpu_tools"));
    for (int32_t i = 0; i < gpu_count; i++) put_gpu_tools(&writer, i);
    vp_json_end_array(&writer);
    vp_json_key(&writer, "model");
    if (model) put_model(&writer, model, holdings); else vp_json_null(&writer);
    vp_json_end_object(&writer);
    json_end(&writer); /* main checks stdout */
}

static int run_command(const struct options *options) {
    int has_model = is_given(options, "model") || is_given(options, "synthetic"), code = 0;
    vp_error no_gpu = {VP_OK, -1, "", ""};
    int32_t gpu_count = 0;
    const char *reason;
    struct cpu_info cpu = {0};
    struct holdings holdings = {0};
    struct model model = {0};
    if (has_model && (code = model_load(options, &model)) == 0 && (code = checkpoint_open(&model)) == 0)
        read_holdings(&model, &holdings);
    if (!code) code = read_cpu(&cpu);
    if (!code) read_memory(&cpu);
    if (!code) read_huge_pages(&cpu);
    if (!code) {
        reason = vp_device_count(&gpu_count, &no_gpu) == VP_OK ? NULL : no_gpu.text;
        (is_given(options, "json") ? print_info_json : print_info)(&cpu, gpu_count, reason, has_model ? &model : NULL,
                                                                   &holdings);
    }
    model_free(&model);
    return code;
}

const struct command command_info = {
    "info", "[--model DIR | --synthetic NAME]",
    "show this build, processor, memory, kernels and GPUs; with --model, a checkpoint's contents and memory needs",
    "vlmprof info\n  vlmprof info --model checkpoint",
    0, COMMAND_OPTIONS(INFO_OPTIONS), NULL, run_command};
