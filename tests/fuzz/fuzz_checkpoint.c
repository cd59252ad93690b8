/* fuzz_checkpoint.c: hostile config.json, preprocessor_config.json, safetensors headers, shard indexes, score texts and packed files. The
 * first byte picks the target. libFuzzer entry. */
#define _POSIX_C_SOURCE 200809L
#define VLMPROF_CHECKPOINT_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_score.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "fuzz_checkpoint: line %d: %s\n", __LINE__, #condition); abort(); } } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config_seed[] =
    "{\"block_type\":\"moe\",\"attention_layer_norm\":true,\"image_padding_embed\":\"pad_and_partial_pad\",\"image_pooling_2d\":\"attention-meanq\","
    "\"include_bias\":false,\"layer_norm_type\":\"rms\",\"rope\":true,\"rope_impl\":\"llama\",\"weight_tying\":false,\"d_model\":128,\"n_heads\":4,"
    "\"n_layers\":4,\"moe_num_experts\":8,\"moe_top_k\":2,\"vocab_size\":655,\"embedding_size\":704,\"additional_vocab_size\":16,\"mlp_ratio\":1,"
    "\"vit_layers\":[-2,-4],\"vision_backbone\":{\"image_mlp_activations\":\"quick_gelu\",\"image_emb_dim\":64,\"image_num_heads\":4,"
    "\"image_head_dim\":16,\"image_mlp_dim\":256,\"image_num_key_value_heads\":4,\"image_num_layers\":5}}";

/* what the engine may rely on */
static void check_config(const vp_model_config *c) {
    vp_tensor_spec spec;
    int64_t count = vp_model_tensor_count(c), i;
    MUST(c->d_model == c->head_count * c->head_dim && c->head_dim % 2 == 0 && c->top_k >= 1 && c->top_k <= c->expert_count && c->expert_dim >= 1);
    MUST(c->vit_width == c->vit_head_count * c->vit_head_dim && c->embedding_size >= c->vocab_size && c->norm_eps > 0 && c->vit_norm_eps > 0);
    MUST(c->vit_blocks_needed >= 1 && c->vit_blocks_needed <= c->vit_block_count);
    MUST(c->vit_layer_count >= 1 && c->vit_layer_count <= VP_VIT_LAYERS_MAX);
    MUST(vp_geometry_check(&c->geometry) == VP_OK);
    for (i = 0; i < count; i += count / 50 + 1) {
        MUST(vp_model_tensor(c, i, &spec) == VP_OK && spec.name[0] && spec.shape[0] > 0);
        MUST(spec.dimensions == 1 || (spec.dimensions == 2 && spec.shape[1] > 0));
    }
}

static char directory[] = "/tmp/vlmprof-fuzz-XXXXXX";
static void remove_directory(void) { rmdir(directory); }

static void write_file(const char *name, const uint8_t *prefix, size_t prefix_bytes, const uint8_t *data, size_t size) {
    char path[128];
    FILE *file;
    vp_impl_print(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "wb");
    MUST(file != NULL);
    fwrite(prefix, 1, prefix_bytes, file);
    fwrite(data, 1, size, file);
    fclose(file);
}

static void prepare_directory(void) {
    static int ready;
    if (ready) return;
    MUST(mkdtemp(directory) != NULL);
    ready = 1;
    atexit(remove_directory);
}

/* The first byte says how: 1 the file as it is, else a header of the next 20 bytes' fields, its sum right; 2 the true length; 4 with the config;
 * 8 and with its hash; 16 the next three bytes are a change of one byte of the header. The weights follow. */
static void open_packed(const uint8_t *data, size_t size) {
    const int how = size ? data[0] : 1;
    unsigned char header[VP_PACKED_HEADER_BYTES];
    vp_model_config config;
    vp_packed packed, found;
    vp_checkpoint *cp = NULL;
    vp_error error;
    char path[128];
    size_t i;
    prepare_directory();
    MUST(vp_model_config_parse(config_seed, sizeof config_seed - 1, NULL, 0, &config, &error) == VP_OK);
    memset(&packed, 0, sizeof packed);
    if (size) { data++; size--; }
    if (!(how & 1) && size >= 20) {
        memcpy(&packed.model_hash, data, 8);
        memcpy(&packed.weights_bytes, data + 8, 8);
        memcpy(&packed.panel_columns, data + 16, 4);
        data += 20;
        size -= 20;
        if (how & 8) packed.model_hash = vp_model_hash(&config);
        if (how & 2) packed.weights_bytes = (how & 16) && size >= 3 ? size - 3 : size;
        vp_packed_header(&packed, header);
        if ((how & 16) && size >= 3) {
            header[(data[0] | data[1] << 8) % VP_PACKED_HEADER_BYTES] ^= data[2];
            data += 3;
            size -= 3;
        }
        write_file(VP_PACKED_FILE, header, sizeof header, data, size);
    } else write_file(VP_PACKED_FILE, header, 0, data, size);
    error.text[0] = 0;
    if (vp_checkpoint_open(directory, how & 4 ? &config : NULL, &cp, &error) == VP_OK) {
        volatile unsigned char byte = 0;
        vp_tensor t;
        MUST(vp_checkpoint_packed(cp, &found) == VP_OK && vp_checkpoint_find(cp, "x", &t) == VP_ERR_NOT_FOUND);
        MUST(!(how & 4) || found.model_hash == vp_model_hash(&config));
        MUST((how & 1) || found.weights_bytes == size);
        for (i = 0; i < found.weights_bytes; i += 997) byte ^= found.weights[i];
        if (found.weights_bytes) byte ^= found.weights[found.weights_bytes - 1];
        (void)byte;
    } else MUST(cp == NULL && error.text[0]);
    vp_checkpoint_close(cp);
    vp_impl_print(path, sizeof path, "%s/%s", directory, VP_PACKED_FILE);
    remove(path);
}

static void open_files(const uint8_t *data, size_t size, int index) {
    char path[128];
    uint8_t length[8];
    uint64_t header = size;
    vp_checkpoint *cp = NULL;
    vp_error error;
    int i;
    prepare_directory();
    while (header > 0 && data[header - 1] != '}') header--; /* the buffer begins behind the last brace */
    for (i = 0; i < 8; i++) length[i] = (uint8_t)(header >> (8 * i));
    write_file(index ? "model.safetensors.index.json" : "model.safetensors", length, index ? 0 : 8, data, size);
    if (index) write_file("a", (const uint8_t *)"\2\0\0\0\0\0\0\0{}", 10, data, 0);
    if (vp_checkpoint_open(directory, NULL, &cp, &error) == VP_OK) {
        size_t k;
        for (k = 0; k < cp->entry_count; k++) {
            vp_tensor t;
            volatile unsigned char byte;
            if (vp_checkpoint_find(cp, cp->entries[k].name, &t) != VP_OK || !t.bytes) continue;
            byte = t.data[0];
            byte = t.data[t.bytes - 1];
            (void)byte;
        }
    } else MUST(cp == NULL && error.text[0]);
    vp_checkpoint_close(cp);
    for (i = 0; i < 3; i++) {
        static const char *const names[3] = {"model.safetensors", "model.safetensors.index.json", "a"};
        vp_impl_print(path, sizeof path, "%s/%s", directory, names[i]);
        remove(path);
    }
}

static void score(const uint8_t *data, size_t size) {
    char *text = (char *)malloc(size + 1), *out = (char *)malloc(2 * size + 64), *scratch = (char *)malloc(4 * size + 64);
    const char *references[3];
    double value = -1;
    size_t needed = 0;
    MUST(text && out && scratch);
    memcpy(text, data, size);
    text[size] = 0;
    MUST(vp_score_clean(text, out, strlen(text) + 1, &needed) == VP_OK && strlen(out) == needed);
    MUST(vp_score_vqa_normalise(text, out, 2 * size + 64, &needed) == VP_OK && strlen(out) == needed && 2 * needed <= 3 * strlen(text));
    references[0] = references[1] = references[2] = text;
    MUST(vp_score_vqa_seed(text, references, 3, scratch, 4 * size + 64, &value) == VP_OK && value == 1.0);
    free(text);
    free(out);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vp_model_config config;
    vp_error error;
    if (size < 1) return 0;
    switch (data[0] == 5 ? 5 : data[0] % 5) { /* 5 came later: older inputs keep their target */
        case 5: open_packed(data + 1, size - 1); break;
        case 0:
            if (vp_model_config_parse((const char *)data + 1, size - 1, NULL, 0, &config, &error) == VP_OK) check_config(&config);
            break;
        case 1:
            if (vp_model_config_parse(config_seed, sizeof config_seed - 1, (const char *)data + 1, size - 1, &config, &error) == VP_OK)
                check_config(&config);
            break;
        case 2: open_files(data + 1, size - 1, 0); break;
        case 3: open_files(data + 1, size - 1, 1); break;
        default: score(data + 1, size - 1); break;
    }
    return 0;
}
