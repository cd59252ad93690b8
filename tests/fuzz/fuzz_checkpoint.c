/* fuzz_checkpoint.c: hostile config.json, preprocessor_config.json, safetensors headers, shard indexes and score texts. The
 * first byte picks the target. libFuzzer entry. */
#include "fuzz.h"
#include "vlmprof.h"
#include "vlmprof_config.c"
#include "vlmprof_checkpoint.c"
#include "vlmprof_score.h"

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

static void check_error(const vp_error *error) {
    MUST(error->text[0] && vp_utf8_valid_bytes(error->text, strlen(error->text)) == strlen(error->text));
}

/* A folder for each form of a checkpoint; its names lead to files in memory. */
enum { FOLDER_SINGLE, FOLDER_INDEX, FOLDER_COUNT };
static char folders[FOLDER_COUNT][300];
static const struct { int folder; const char *name; } links[] = {
    {FOLDER_SINGLE, "model.safetensors"}, {FOLDER_INDEX, "model.safetensors.index.json"}, {FOLDER_INDEX, "a"}};
enum { FILE_SINGLE, FILE_INDEX, FILE_SHARD, FILE_COUNT }; /* in the order of links */
static struct memory_file files[FILE_COUNT];

static const char *link_path(int file) {
    static char path[400];
    vp_impl_print(path, sizeof path, "%s/%s", folders[links[file].folder], links[file].name);
    return path;
}
static void remove_folders(void) {
    for (int i = 0; i < FILE_COUNT; i++) unlink(link_path(i));
    for (int i = 0; i < FOLDER_COUNT; i++) rmdir(folders[i]);
}
static void prepare(void) {
    int i;
    for (i = 0; i < FOLDER_COUNT; i++) MUST(temporary_folder("fuzz", folders[i], sizeof folders[i]));
    for (i = 0; i < FILE_COUNT; i++) MUST(symlink(memory_file_fill(&files[i], "\2\0\0\0\0\0\0\0{}", 10), link_path(i)) == 0);
    atexit(remove_folders);
}
static void write_file(int file, const uint8_t *prefix, size_t prefix_bytes, const uint8_t *data, size_t size) {
    uint8_t *all = (uint8_t *)malloc(prefix_bytes + size + 1);
    MUST(all != NULL);
    memcpy(all, prefix, prefix_bytes);
    if (size) memcpy(all + prefix_bytes, data, size);
    memory_file_fill(&files[file], all, prefix_bytes + size);
    free(all);
}

static void open_files(const uint8_t *data, size_t size, int index) {
    uint8_t length[8];
    uint64_t header = size;
    vp_checkpoint *cp = NULL;
    vp_error error;
    while (header > 0 && data[header - 1] != '}') header--; /* the buffer begins after the last brace */
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(header >> (8 * i));
    write_file(index ? FILE_INDEX : FILE_SINGLE, length, index ? 0 : 8, data, size);
    if (vp_checkpoint_open(folders[index ? FOLDER_INDEX : FOLDER_SINGLE], NULL, &cp, &error) == VP_OK) {
        for (size_t k = 0; k < cp->entry_count; k++) {
            vp_tensor t;
            volatile unsigned char byte;
            if (vp_checkpoint_find(cp, cp->entries[k].name, &t) != VP_OK || !t.bytes) continue;
            byte = t.data[0];
            byte = t.data[t.bytes - 1];
            (void)byte;
        }
    } else {
        MUST(cp == NULL);
        check_error(&error);
    }
    vp_checkpoint_close(cp);
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
    if (!files[0].path[0]) prepare();
    switch (data[0] % 5) {
        case 0:
            if (vp_model_config_parse((const char *)data + 1, size - 1, NULL, 0, &config, &error) == VP_OK) check_config(&config);
            else check_error(&error);
            break;
        case 1:
            if (vp_model_config_parse(config_seed, sizeof config_seed - 1, (const char *)data + 1, size - 1, &config, &error) == VP_OK)
                check_config(&config);
            else check_error(&error);
            break;
        case 2: open_files(data + 1, size - 1, 0); break;
        case 3: open_files(data + 1, size - 1, 1); break;
        default: score(data + 1, size - 1); break;
    }
    return 0;
}
