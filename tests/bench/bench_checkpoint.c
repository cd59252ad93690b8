/* bench_checkpoint.c: time and memory of loading weights: a made-up MolmoE with the real widths, cut to one block of 16 experts, is written as a bf16 folder
 * of one file and of shards, and packed; each is opened in a process of its own. "at most" is VmHWM, which counts the pages of mapped files too:
 * what loading keeps at once must stay near the weights plus one tensor. Build: make build/bench/bench_checkpoint */
#define _DEFAULT_SOURCE 1
#define VLMPROF_IMPLEMENTATION
#include "../support/temporary.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include <sys/wait.h>

static const char config_text[] =
    "{\"block_type\":\"moe\",\"attention_layer_norm\":true,\"image_padding_embed\":\"pad_and_partial_pad\",\"image_pooling_2d\":\"attention-meanq\","
    "\"include_bias\":false,\"layer_norm_type\":\"rms\",\"rope\":true,\"rope_impl\":\"llama\",\"weight_tying\":false,\"d_model\":2048,\"n_heads\":16,"
    "\"n_layers\":1,\"moe_num_experts\":16,\"moe_top_k\":8,\"vocab_size\":50280,\"embedding_size\":50304,\"additional_vocab_size\":128,\"mlp_ratio\":1,"
    "\"vit_layers\":[-2,-4],\"vision_backbone\":{\"image_mlp_activations\":\"quick_gelu\",\"image_emb_dim\":1024,\"image_num_heads\":16,"
    "\"image_head_dim\":64,\"image_mlp_dim\":4096,\"image_num_key_value_heads\":16,\"image_num_layers\":5}}";
static char folder[300];
static vp_model_config config;

static double status_mb(const char *key) { /* of /proc/self/status */
    char line[200];
    double kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) if (!strncmp(line, key, strlen(key))) kilobytes = strtod(line + strlen(key), NULL);
    if (f) fclose(f);
    return kilobytes * 1024 / 1e6;
}
static void fail(const char *what, const vp_error *error) {
    fprintf(stderr, "bench_checkpoint: %s: %s: %s\n", what, error->where, error->text);
    exit(1);
}
static void write_folder(vp_convert_layout layout, uint64_t shard_bytes) {
    vp_convert_options o = vp_convert_options_default();
    vp_error error;
    o.config = &config;
    o.directory = folder;
    o.layout = layout;
    o.shard_bytes = shard_bytes;
    if (vp_engine_convert(&o, &error) != VP_OK) fail("convert", &error);
}

static void open_folder(const char *name) {
    vp_checkpoint *checkpoint = NULL;
    vp_engine *engine = NULL;
    vp_error error;
    vp_tensor_spec spec;
    int64_t i, start = vp_clock_ns();
    double largest = 0, weights = 0, before = status_mb("VmHWM:"), seconds;
    for (i = 0; vp_model_tensor(&config, i, &spec) == VP_OK; i++) {
        double bytes = 2.0 * (double)spec.shape[0] * (double)(spec.dimensions > 1 ? spec.shape[1] : 1);
        weights += bytes;
        if (bytes > largest) largest = bytes;
    }
    if (vp_checkpoint_open(folder, &config, &checkpoint, &error) != VP_OK) fail(name, &error);
    vp_engine_options o = {.config = &config, .checkpoint = checkpoint, .device = "cpu", .max_sequence = 64, .max_views = 1};
    if (vp_engine_open(&o, &engine, &error) != VP_OK) fail(name, &error);
    seconds = (double)(vp_clock_ns() - start) * 1e-9;
    printf("open %-26s %6.2f s, %7.1f MB at most (%.1f before); bf16 weights %.1f MB, largest tensor %.1f MB, buffers %.1f MB\n", name, seconds,
           status_mb("VmHWM:"), before, weights / 1e6, largest / 1e6, (double)vp_engine_bytes(engine) / 1e6 - weights / 1e6);
    vp_engine_close(engine);
    vp_checkpoint_close(checkpoint);
}

/* in a process of its own: its memory is this step's alone */
static int step(const char *name, vp_convert_layout layout, uint64_t shard_bytes) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (name) open_folder(name); else write_folder(layout, shard_bytes);
        fflush(stdout);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(void) {
    static const struct { const char *name; vp_convert_layout layout; uint64_t shard_bytes; } forms[] = {
        {"safetensors, one file", VP_CONVERT_HF, 5000000000u}, {"safetensors, shards", VP_CONVERT_HF, 100000000u}, {"packed", VP_CONVERT_PACKED, 5000000000u}};
    char command[400];
    vp_error error;
    int failed = 0;
    if (vp_model_config_parse(config_text, sizeof config_text - 1, NULL, 0, &config, &error) != VP_OK) fail("config", &error);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !failed; i++) {
        if (!temporary_folder("bench", folder, sizeof folder)) return 1;
        failed = step(NULL, forms[i].layout, forms[i].shard_bytes) || step(forms[i].name, forms[i].layout, 0);
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        if (system(command)) failed = 1;
    }
    return failed;
}
