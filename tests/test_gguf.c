/* test_gguf.c: vlmprof_gguf.h. Blocks give the values of the gguf package, bit by bit. Models of several architectures and tokenizers answer like llama.cpp from the same
 * file. Each kind of malformed file is rejected with its place. Files cut and changed anywhere never crash the reader. Golden files: tests/tools/make_gguf_goldens.py. */
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_gguf.h"
#include "vlmprof_image.h"
#include "vlmprof_tokenizer.h"
#include "support/check.h"

/* ---- values */
static void test_blocks(void) {
    static const char *const names[] = {"f32", "f16", "bf16", "q8_0", "q5_0", "q4_0", "q4_k", "q6_k"};
    check_array wanted;
    vp_gguf *gguf = NULL;
    vp_error error;
    if (!CHECK(check_npy(check_golden("gguf/types.npy"), &wanted))) return;
    CHECK_INT(vp_gguf_open(check_golden("gguf/types.gguf"), &gguf, &error), VP_OK);
    for (int i = 0; i < 8 && gguf; i++) {
        vp_gguf_tensor tensor;
        vp_dtype dtype;
        float values[1024];
        check_case("%s: the values are the gguf package's, bit by bit", names[i]);
        if (!CHECK_INT(vp_gguf_tensor_find(gguf, names[i], &tensor), VP_OK) || !CHECK(vp_gguf_type_dtype(tensor.type, &dtype))) continue;
        CHECK_INT(tensor.bytes, 1024 / vp_dtype_block(dtype) * vp_dtype_block_bytes(dtype));
        vp_dtype_to_f32(dtype, tensor.data, 1024, values);
        CHECK(!memcmp(values, wanted.data + (size_t)i * sizeof values, sizeof values));
    }
    vp_gguf_close(gguf);
    check_free(&wanted);
}

/* ---- models */
struct opened {
    vp_gguf *gguf;
    vp_model_config config;
    vp_tokenizer *tokenizer;
    vp_checkpoint *checkpoint;
    vp_engine *engine;
};
static vp_result open_text(const vp_gguf *gguf, struct opened *model, vp_error *error) {
    char *text = NULL;
    size_t bytes = 0;
    vp_result result = vp_gguf_file_text(gguf, NULL, "config.json", &text, &bytes, error);
    if (result == VP_OK) result = vp_model_config_parse(text, bytes, NULL, 0, &model->config, error);
    free(text);
    text = NULL;
    if (result == VP_OK) result = vp_gguf_file_text(gguf, NULL, "tokenizer.json", &text, &bytes, error);
    if (result == VP_OK) result = vp_tokenizer_load(text, bytes, &model->tokenizer, error);
    free(text);
    if (result == VP_OK) result = vp_gguf_checkpoint(gguf, NULL, &model->config, &model->checkpoint, error);
    return result;
}
static void close_model(struct opened *model) {
    vp_engine_close(model->engine);
    vp_checkpoint_close(model->checkpoint);
    vp_tokenizer_free(model->tokenizer);
    vp_gguf_close(model->gguf);
}
/* ids of a text as in a prompt, with the initial token; returns their count */
static int32_t encode(const struct opened *model, const char *text, int32_t *ids) {
    size_t count = 0;
    int32_t front = vp_tokenizer_bos(model->tokenizer) >= 0;
    if (front) ids[0] = vp_tokenizer_bos(model->tokenizer);
    return vp_tokenizer_encode(model->tokenizer, text, strlen(text), ids + front, 200, &count) == VP_OK ? (int32_t)count + front : -1;
}
static int same_ids(const vp_json *json, uint32_t list, const int32_t *ids, int32_t count) {
    int64_t id = 0;
    if (list == VP_JSON_NONE || json->nodes[list].count != (uint32_t)count) return 0;
    for (int32_t i = 0; i < count; i++)
        if (vp_json_to_int(json, list + 1 + (uint32_t)i, &id) != VP_OK || id != ids[i]) return 0;
    return 1;
}
static void check_answer(const struct opened *model, const vp_json *json, uint32_t item) {
    int32_t ids[256], blocks[1] = {0}, tokens[16];
    int64_t steps[16];
    char prompt[256];
    size_t needed;
    vp_request request = {0};
    vp_error error = {VP_OK, -1, "", ""};
    CHECK_INT(vp_json_text(json, vp_json_get(json, item, "prompt"), prompt, sizeof prompt, &needed), VP_OK);
    request.input_ids = ids;
    request.input_count = encode(model, prompt, ids);
    request.top_k = model->config.top_k;
    request.active_blocks = blocks;
    request.active_block_count = 1;
    request.max_new_tokens = (int32_t)json->nodes[vp_json_get(json, item, "ids")].count;
    request.ignore_eos = 1;
    request.eos_id = -1;
    vp_reply reply = {.tokens = tokens, .step_ns = steps};
    if (!CHECK_INT(vp_engine_run(model->engine, &request, &reply, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    CHECK(same_ids(json, vp_json_get(json, item, "ids"), tokens, reply.token_count));
}
static void test_model(const char *name) {
    struct opened model = {0};
    vp_engine_options options = vp_engine_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    vp_json json;
    char path[64], *golden;
    size_t bytes = 0, needed;
    vp_json_node nodes[1000];
    uint32_t list, item;
    snprintf(path, sizeof path, "gguf/%s.json", name);
    golden = check_read(check_golden(path), &bytes);
    snprintf(path, sizeof path, "gguf/%s.gguf", name);
    check_case("%s.gguf: config, tokenizer and tensors can be read", name);
    if (!CHECK(golden) || !CHECK_INT(vp_json_parse(golden, bytes, nodes, 1000, &json, &needed, NULL), VP_OK)) return;
    CHECK_INT(vp_gguf_open(check_golden(path), &model.gguf, &error), VP_OK);
    if (!CHECK_INT(open_text(model.gguf, &model, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    options.config = &model.config;
    options.checkpoint = model.checkpoint;
    options.weights = VP_WEIGHTS_FP32;
    options.device = "cpu";
    options.threads = 1;
    options.max_sequence = 128;
    if (!model.checkpoint || !CHECK_INT(vp_engine_open(&options, &model.engine, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    check_case("%s.gguf: texts give llama.cpp's ids", name);
    list = vp_json_get(&json, 0, "texts");
    for (item = list + 1; item < nodes[list].end; item = nodes[item].end) {
        int32_t ids[256], count;
        char text[256];
        CHECK_INT(vp_json_text(&json, vp_json_get(&json, item, "text"), text, sizeof text, &needed), VP_OK);
        count = encode(&model, text, ids);
        if (!CHECK(same_ids(&json, vp_json_get(&json, item, "ids"), ids, count))) printf("\"%s\": %d ids\n", text, (int)count);
    }
    check_case("%s.gguf: greedy answers equal llama.cpp's", name);
    list = vp_json_get(&json, 0, "answers");
    for (item = list + 1; model.engine && item < nodes[list].end; item = nodes[item].end) check_answer(&model, &json, item);
    close_model(&model);
    free(golden);
}

/* ---- a tower */
/* the picture's patches, in the form of vp_request */
static float *read_patches(const vp_geometry *geometry, int32_t *patches) {
    size_t bytes = 0;
    char *file = check_read(check_golden("gguf/picture.png"), &bytes);
    int32_t side = geometry->crop_px / geometry->patch_px, pixel = 3 * geometry->patch_px;
    float *values = (float *)malloc((size_t)(geometry->crop_px * geometry->crop_px * 3) * sizeof *values), *to = values;
    vp_image image;
    vp_error error;
    *patches = side * side;
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &image, &error), VP_OK)) return values;
    for (int32_t patch = 0; patch < *patches; patch++)
        for (int32_t y = 0; y < geometry->patch_px; y++)
            for (int32_t x = 0; x < pixel; x++)
                *to++ = ((float)image.rgb[((patch / side * geometry->patch_px + y) * image.width_px + patch % side * geometry->patch_px) * 3 + x]
                             / 255.0f - geometry->mean[x % 3]) / geometry->std[x % 3];
    vp_image_free(&image);
    free(file);
    return values;
}
static vp_result open_llava(struct opened *model, vp_gguf *tower, vp_error *error) {
    char *config = NULL, *preprocessor = NULL;
    size_t bytes = 0, preprocessor_bytes = 0;
    vp_result result = vp_gguf_file_text(model->gguf, tower, "config.json", &config, &bytes, error);
    if (result == VP_OK)
        result = vp_gguf_file_text(model->gguf, tower, "preprocessor_config.json", &preprocessor, &preprocessor_bytes, error);
    if (result == VP_OK) result = vp_model_config_parse(config, bytes, preprocessor, preprocessor_bytes, &model->config, error);
    if (result == VP_OK) result = vp_gguf_checkpoint(model->gguf, tower, &model->config, &model->checkpoint, error);
    FREE_ALL(config, preprocessor);
    return result;
}
static int32_t read_ids(const vp_json *json, uint32_t list, int32_t *ids) {
    for (uint32_t i = 0; i < json->nodes[list].count; i++) {
        int64_t id = 0;
        vp_json_to_int(json, list + 1 + i, &id);
        ids[i] = (int32_t)id;
    }
    return (int32_t)json->nodes[list].count;
}
static void test_llava(void) {
    struct opened model = {0};
    vp_gguf *tower = NULL;
    vp_engine_options options = vp_engine_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    vp_json_node nodes[400];
    vp_json json;
    size_t bytes = 0, needed;
    char *golden = check_read(check_golden("gguf/llava.json"), &bytes);
    int32_t places[16], blocks[1] = {0}, patches = 0;
    float *pixels, masks[16];
    check_case("llama.gguf with llava-mmproj.gguf: answers about a picture equal those of the published model's arithmetic");
    if (!CHECK(golden) || !CHECK_INT(vp_json_parse(golden, bytes, nodes, 400, &json, &needed, NULL), VP_OK)) return;
    CHECK_INT(vp_gguf_open(check_golden("gguf/llama.gguf"), &model.gguf, &error), VP_OK);
    CHECK_INT(vp_gguf_open(check_golden("gguf/llava-mmproj.gguf"), &tower, &error), VP_OK);
    if (!CHECK_INT(open_llava(&model, tower, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    options.config = &model.config;
    options.checkpoint = model.checkpoint;
    options.weights = VP_WEIGHTS_FP32;
    options.device = "cpu";
    options.threads = 1;
    options.max_sequence = 128;
    options.max_views = 1;
    pixels = read_patches(&model.config.geometry, &patches);
    CHECK_INT(patches, 16);
    for (int32_t i = 0; i < 16; i++) {
        places[i] = 1 + i; /* after the BOS */
        masks[i] = 1.0f;
    }
    if (CHECK_INT(vp_engine_open(&options, &model.engine, &error), VP_OK)) {
        uint32_t list = vp_json_get(&json, 0, "answers");
        for (uint32_t item = list + 1; item < nodes[list].end; item = nodes[item].end) {
            int32_t ids[64], tokens[8];
            int64_t steps[8];
            vp_request request = {0};
            request.input_ids = ids;
            request.input_count = read_ids(&json, vp_json_get(&json, item, "input_ids"), ids);
            request.pixels = pixels;
            request.image_masks = masks;
            request.image_input_idx = places;
            request.views = 1;
            request.active_blocks = blocks;
            request.active_block_count = 1;
            request.max_new_tokens = 8;
            request.ignore_eos = 1;
            request.eos_id = -1;
            vp_reply reply = {.tokens = tokens, .step_ns = steps};
            if (!CHECK_INT(vp_engine_run(model.engine, &request, &reply, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
            CHECK(same_ids(&json, vp_json_get(&json, item, "ids"), tokens, reply.token_count));
        }
    } else printf("%s: %s\n", error.where, error.text);
    free(pixels);
    close_model(&model);
    vp_gguf_close(tower);
    free(golden);
}

/* ---- malformed files, written here */
struct made { unsigned char data[4096]; size_t bytes; };
static void put(struct made *file, uint64_t value, int bytes) {
    for (; bytes > 0; bytes--, value >>= 8) file->data[file->bytes++] = (unsigned char)value;
}
static void put_text(struct made *file, const char *text) {
    put(file, strlen(text), 8);
    memcpy(file->data + file->bytes, text, strlen(text));
    file->bytes += strlen(text);
}
static void begin(struct made *file, uint64_t version, uint64_t tensors, uint64_t keys) {
    memset(file, 0, sizeof *file);
    put(file, 0x46554747, 4);
    put(file, version, 4);
    put(file, tensors, 8);
    put(file, keys, 8);
}
static void put_tensor(struct made *file, const char *name, uint64_t dimensions, uint64_t length, uint64_t type, uint64_t offset) {
    put_text(file, name);
    put(file, dimensions, 4);
    for (uint64_t i = 0; i < dimensions && i < 8; i++) put(file, length, 8);
    put(file, type, 4);
    put(file, offset, 8);
}
/* the data: zeros up to the next multiple of 32, then `bytes` bytes */
static void put_data(struct made *file, size_t bytes) {
    file->bytes = (file->bytes + 31) / 32 * 32 + bytes;
}
static void refuse(const struct made *file, vp_result wanted, const char *text, int64_t offset) {
    vp_gguf *gguf = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    if (CHECK_INT(vp_gguf_read(file->data, file->bytes, "made", &gguf, &error), wanted) && wanted != VP_OK) {
        if (!CHECK(strstr(error.text, text))) printf("    %s\n", error.text);
        CHECK_INT(error.offset, offset);
        CHECK(gguf == NULL);
    }
    vp_gguf_close(gguf);
}
static void test_headers(void) {
    struct made file;
    check_case("not a GGUF file, another version, another byte order, more entries than fit in the file");
    begin(&file, 3, 0, 0);
    refuse(&file, VP_OK, "", 0);
    file.data[0] = 'g';
    refuse(&file, VP_ERR_FORMAT, "does not begin with GGUF", 0);
    file.bytes = 0;
    refuse(&file, VP_ERR_FORMAT, "does not begin with GGUF", 0);
    begin(&file, 1, 0, 0);
    refuse(&file, VP_ERR_UNSUPPORTED, "versions 2 and 3", 4);
    begin(&file, 3u << 24, 0, 0);
    refuse(&file, VP_ERR_UNSUPPORTED, "big-endian", 4);
    begin(&file, 2, 0, UINT64_MAX);
    refuse(&file, VP_ERR_FORMAT, "more keys than fit in the file", 16);
    begin(&file, 3, UINT64_MAX / 2, 0);
    refuse(&file, VP_ERR_FORMAT, "more tensors than fit in the file", 8);
    check_case("keys: a text or an array that ends after the file, an unknown type, an array of arrays, a duplicate name");
    begin(&file, 3, 0, 1);
    put(&file, UINT64_MAX, 8);
    put(&file, 0, 8);
    refuse(&file, VP_ERR_FORMAT, "a key ends beyond the file", 24);
    begin(&file, 3, 0, 1);
    put_text(&file, "k");
    put(&file, VP_GGUF_KIND_COUNT, 4);
    refuse(&file, VP_ERR_FORMAT, "its kind is not one of the format's", 24);
    begin(&file, 3, 0, 1);
    put_text(&file, "k");
    put(&file, VP_GGUF_ARRAY, 4);
    put(&file, VP_GGUF_U64, 4);
    put(&file, (uint64_t)1 << 61, 8); /* 8 times this overflows to 0 */
    refuse(&file, VP_ERR_FORMAT, "the value ends beyond the file", 24);
    file.data[37] = VP_GGUF_STRING;
    refuse(&file, VP_ERR_FORMAT, "a text ends beyond the file", 24);
    file.data[37] = VP_GGUF_ARRAY;
    refuse(&file, VP_ERR_UNSUPPORTED, "an array of arrays", 24);
    begin(&file, 3, 0, 1);
    put_text(&file, "k");
    put(&file, VP_GGUF_BOOL, 4);
    put(&file, 2, 1);
    refuse(&file, VP_ERR_FORMAT, "a boolean is not 0 or 1", 37);
    begin(&file, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_text(&file, "k");
        put(&file, VP_GGUF_U8, 4);
        put(&file, 0, 1);
    }
    refuse(&file, VP_ERR_FORMAT, "this name appears twice", 46);
}
static void test_tensors(void) {
    struct made file;
    check_case("tensors: dimensions, shapes, blocks, offsets, data after the end of the file, unknown types");
    begin(&file, 3, 1, 0);
    put_tensor(&file, "t", 1, 64, 0, 0);
    put_data(&file, 256);
    refuse(&file, VP_OK, "", 0);
    file.bytes--;
    refuse(&file, VP_ERR_FORMAT, "its data end beyond the file", 32);
    begin(&file, 3, 1, 0);
    put_tensor(&file, "t", 5, 1, 0, 0);
    put_data(&file, 256);
    refuse(&file, VP_ERR_FORMAT, "1 to 4 dimensions", 24);
    begin(&file, 3, 1, 0);
    put_tensor(&file, "t", 4, 1 << 16, 0, 0); /* 2^64 elements */
    put_data(&file, 256);
    refuse(&file, VP_ERR_FORMAT, "0 or too many elements", 24);
    begin(&file, 3, 1, 0);
    put_tensor(&file, "t", 2, 0, 0, 0);
    put_data(&file, 256);
    refuse(&file, VP_ERR_FORMAT, "0 or too many elements", 24);
    begin(&file, 3, 1, 0);
    put_tensor(&file, "t", 1, 48, 8, 0);
    put_data(&file, 256);
    refuse(&file, VP_ERR_FORMAT, "not a whole number of its type's blocks", 24);
    begin(&file, 3, 2, 0);
    put_tensor(&file, "t", 1, 9, 0, 0);
    put_tensor(&file, "u", 1, 9, 0, 32); /* the first one ends at 36, so this one starts at 64 */
    put_data(&file, 256);
    refuse(&file, VP_ERR_FORMAT, "does not begin where the previous tensor ends", 65);
    begin(&file, 3, 2, 0);
    put_tensor(&file, "t", 1, 9, 99, 0);
    put_tensor(&file, "u", 1, 9, 0, 64);
    put_data(&file, 256);
    refuse(&file, VP_ERR_UNSUPPORTED, "its type is unknown", 65);
    check_case("an alignment that is not a power of two, and a part of a split model");
    begin(&file, 3, 0, 1);
    put_text(&file, "general.alignment");
    put(&file, VP_GGUF_U32, 4);
    put(&file, 48, 4);
    refuse(&file, VP_ERR_FORMAT, "is not a power of two", 53);
    begin(&file, 3, 0, 1);
    put_text(&file, "split.count");
    put(&file, VP_GGUF_U16, 4);
    put(&file, 2, 2);
    refuse(&file, VP_ERR_UNSUPPORTED, "gguf-split --merge", 47);
}

/* ---- a model's file with one change */
static vp_result open_changed(const char *file, const char *from, const char *to, vp_error *error) {
    struct opened model = {0};
    char path[64], *data, *at = NULL;
    size_t bytes = 0, length = strlen(from);
    snprintf(path, sizeof path, "gguf/%s.gguf", file);
    data = check_read(check_golden(path), &bytes);
    if (!CHECK(data)) return VP_OK;
    for (size_t i = 0; !at && i + length <= bytes; i++)
        if (!memcmp(data + i, from, length)) at = data + i;
    if (CHECK(at != NULL)) memcpy(at, to, strlen(to));
    vp_result result = vp_gguf_read(data, bytes, "changed", &model.gguf, error);
    if (result == VP_OK) result = open_text(model.gguf, &model, error);
    close_model(&model);
    free(data);
    return result;
}
static void test_changes(void) {
    static const struct { const char *file, *from, *to; vp_result result; const char *text; } changes[] = {
        {"qwen2", "tokenizer.ggml.pre", "tokenizer.ggml.prr", VP_ERR_UNSUPPORTED, "\"\" is not supported here; expected one of"},
        {"qwen2", "tokenizer.ggml.merges", "tokenizer.ggml.merger", VP_ERR_FORMAT, "this key is missing"},
        {"llama", "tokenizer.ggml.token_type", "tokenizer.ggml.token_typo", VP_ERR_FORMAT, "a token_type for each"},
        {"llama", "llama.block_count", "llama.block_coant", VP_ERR_FORMAT, "this key is missing"},
        {"llama", "blk.0.attn_q.weight", "blk.0.attn_x.weight", VP_ERR_MISMATCH, "there is no tensor blk.0.attn_q.weight"},
        {"qwen2", "blk.0.attn_q.bias", "blk.0.attn_q.bios", VP_ERR_MISMATCH, "there is no tensor blk.0.attn_q.bias"},
        {"olmoe", "blk.0.ffn_up_exps.weight", "blk.0.ffn_up_expt.weight", VP_ERR_MISMATCH, "there is no tensor blk.0.ffn_up_exps.weight"},
        {"smollm", "tokenizer.ggml.tokens", "tokenizer.ggml.tokenz", VP_ERR_FORMAT, "expected texts"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        check_case("%s.gguf with %s for %s", changes[i].file, changes[i].to, changes[i].from);
        CHECK_INT(open_changed(changes[i].file, changes[i].from, changes[i].to, &error), changes[i].result);
        if (!CHECK(strstr(error.text, changes[i].text))) printf("    %s: %s\n", error.where, error.text);
    }
}
/* Merges are sorted by scores. A score without an order would leave the result undefined. */
static void test_scores(void) {
    static const unsigned char nan[4] = {0, 0, 0xc0, 0x7f}, infinite[4] = {0, 0, 0x80, 0xff};
    for (int i = 0; i < 2; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        size_t bytes = 0, text_bytes = 0;
        char *data = check_read(check_golden("gguf/llama.gguf"), &bytes), *text = NULL;
        vp_gguf *gguf = NULL;
        vp_gguf_value scores;
        check_case("a score that is %s is rejected", i ? "infinite" : "NaN");
        if (!CHECK(data) || !CHECK_INT(vp_gguf_read(data, bytes, "llama.gguf", &gguf, &error), VP_OK)) return;
        CHECK_INT(vp_gguf_value_find(gguf, "tokenizer.ggml.scores", &scores), VP_OK);
        memcpy(data + ((const char *)scores.data - data) + 4 * 300, i ? infinite : nan, 4);
        CHECK_INT(vp_gguf_file_text(gguf, NULL, "tokenizer.json", &text, &text_bytes, &error), VP_ERR_FORMAT);
        CHECK(strstr(error.text, "scores: is not a finite number"));
        free(text);
        vp_gguf_close(gguf);
        free(data);
    }
}
/* factors of RoPE's frequencies, as the converter of llama.cpp computes them for Llama 3.2 */
static void test_rope(void) {
    vp_error error = {VP_OK, -1, "", ""};
    size_t bytes = 0, text_bytes = 0;
    char *data = check_read(check_golden("gguf/rope.gguf"), &bytes), *text = NULL;
    vp_gguf *gguf = NULL;
    vp_gguf_tensor factors;
    vp_model_config config;
    check_case("rope_freqs.weight of Llama 3.2 is recognised by its rule");
    if (!CHECK(data) || !CHECK_INT(vp_gguf_read(data, bytes, "rope.gguf", &gguf, &error), VP_OK)) return;
    CHECK_INT(vp_gguf_file_text(gguf, NULL, "config.json", &text, &text_bytes, &error), VP_OK);
    CHECK_INT(vp_model_config_parse(text, text_bytes, NULL, 0, &config, &error), VP_OK);
    CHECK_INT(config.rope.scaling, VP_ROPE_LLAMA3);
    CHECK_NEAR(config.rope.factor, 32, 0);
    CHECK_NEAR(config.rope.original_positions, 8192, 0);
    CHECK_NEAR(config.rope_theta, 500000, 0);
    free(text);
    text = NULL;
    check_case("a factor that does not follow the rule is rejected");
    CHECK_INT(vp_gguf_tensor_find(gguf, "rope_freqs.weight", &factors), VP_OK);
    data[(const char *)factors.data - data + 2] ^= 8; /* the first factor is 1 */
    CHECK_INT(vp_gguf_file_text(gguf, NULL, "config.json", &text, &text_bytes, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "not the factors of Llama 3.1's rule"));
    vp_gguf_close(gguf);
    free(data);
}
/* mmproj files of towers: with another language model, and with one change */
static void test_towers(void) {
    static const struct { const char *model, *tower, *from, *to; vp_result result; const char *text; } rows[] = {
        {"gemma3/model", "qwen2_5_vl/mmproj", "", "", VP_ERR_MISMATCH, "qwen2.5vl_merger goes with a language model of architecture qwen2vl, not gemma3"},
        {"olmoe", "idefics3/mmproj", "", "", VP_ERR_MISMATCH, "idefics3 goes with a language model of architecture llama, qwen2 or qwen3, not olmoe"},
        {"internvl/model", "gemma3/mmproj", "", "", VP_ERR_MISMATCH, "gemma3 goes with a language model of architecture gemma3, not qwen2"},
        {"internvl/model", "internvl/mmproj", "internvl", "pixtral2", VP_ERR_UNSUPPORTED, "\"pixtral2\" is not supported here; expected one of mlp idefics3"},
        {"internvl/model", "internvl/mmproj", "mm.model.mlp.3.weight", "mm.model.mlp.2.weight", VP_ERR_MISMATCH, "there is no tensor mm.model.mlp.3.weight"},
        {"qwen2_5_vl/model", "qwen2_5_vl/mmproj", "v.blk.0.attn_k.weight", "v.blk.0.attn_x.weight", VP_ERR_MISMATCH, "there is no tensor v.blk.0.attn_k.weight"},
        {"qwen2_5_vl/model", "qwen2_5_vl/mmproj", "v.patch_embd.weight.1", "v.patch_embd.weight.2", VP_ERR_MISMATCH, "there is no tensor v.patch_embd.weight.1"},
        {"qwen2_5_vl/model", "qwen2_5_vl/mmproj", "n_wa_pattern", "n_wb_pattern", VP_ERR_FORMAT, "this key is missing"},
        {"qwen3_vl/model", "qwen3_vl/mmproj", "v.position_embd.weight", "v.position_embd.wxight", VP_ERR_MISMATCH, "the file has no such matrix"},
        {"gemma3/model", "gemma3/mmproj", "mm.soft_emb_norm.weight", "mm.soft_emb_nerm.weight", VP_ERR_MISMATCH, "there is no tensor mm.soft_emb_norm.weight"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opened model = {0};
        vp_gguf *tower = NULL;
        vp_error error = {VP_OK, -1, "", ""};
        size_t bytes = 0, length = strlen(rows[i].from);
        char path[64], *data, *at = NULL;
        check_case("%s.gguf with %s.gguf, %s", rows[i].model, rows[i].tower, rows[i].to);
        snprintf(path, sizeof path, "gguf/%s.gguf", rows[i].model);
        CHECK_INT(vp_gguf_open(check_golden(path), &model.gguf, &error), VP_OK);
        snprintf(path, sizeof path, "gguf/%s.gguf", rows[i].tower);
        data = check_read(check_golden(path), &bytes);
        for (size_t k = 0; length && !at && k + length <= bytes; k++)
            if (!memcmp(data + k, rows[i].from, length)) at = data + k;
        if (at) memcpy(at, rows[i].to, strlen(rows[i].to));
        CHECK(!length || at);
        CHECK_INT(vp_gguf_read(data, bytes, "changed", &tower, &error), VP_OK);
        CHECK_INT(open_llava(&model, tower, &error), rows[i].result);
        if (!CHECK(strstr(error.text, rows[i].text))) printf("    %s: %s\n", error.where, error.text);
        close_model(&model);
        vp_gguf_close(tower);
        free(data);
    }
}
/* a vocabulary without a token for images */
static void test_stand_in(void) {
    struct opened model = {0};
    vp_gguf *tower = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    vp_tokenizer *tokenizer = NULL;
    char *text = NULL, *data;
    size_t bytes = 0, file_bytes = 0;
    check_case("without <image> in the vocabulary, the unknown token is used instead");
    data = check_read(check_golden("gguf/llama.gguf"), &file_bytes);
    if (!CHECK(data)) return;
    for (size_t i = 0; i + 7 <= file_bytes; i++)
        if (!memcmp(data + i, "<image>", 7)) memcpy(data + i, "<imago>", 7);
    CHECK_INT(vp_gguf_read(data, file_bytes, "changed", &model.gguf, &error), VP_OK);
    CHECK_INT(vp_gguf_open(check_golden("gguf/llava-mmproj.gguf"), &tower, &error), VP_OK);
    CHECK_INT(vp_gguf_file_text(model.gguf, NULL, "tokenizer.json", &text, &bytes, &error), VP_OK);
    if (CHECK_INT(vp_tokenizer_load(text, bytes, &tokenizer, &error), VP_OK)) CHECK_INT(vp_tokenizer_added_id(tokenizer, "<image>"), -1);
    vp_tokenizer_free(tokenizer);
    free(text);
    tokenizer = NULL;
    text = NULL;
    CHECK_INT(vp_gguf_file_text(model.gguf, tower, "tokenizer.json", &text, &bytes, &error), VP_OK);
    if (CHECK_INT(vp_tokenizer_load(text, bytes, &tokenizer, &error), VP_OK)) CHECK_INT(vp_tokenizer_added_id(tokenizer, "<image>"), 0);
    vp_tokenizer_free(tokenizer);
    free(text);
    vp_gguf_close(tower);
    vp_gguf_close(model.gguf);
    free(data);
}
/* Qwen's towers: missing keys get llama.cpp's defaults of 2 x 2 patches per token and 8 to 4096 tokens per picture */
static void test_limits(void) {
    static const struct { const char *key; int64_t tokens; } limits[] = {{"min_pixels", 8}, {"max_pixels", 4096}};
    vp_gguf *model = NULL, *tower = NULL;
    vp_gguf_value value;
    vp_error error = {VP_OK, -1, "", ""};
    vp_json json;
    vp_json_node nodes[100];
    size_t bytes = 0, needed;
    char *text = NULL;
    int64_t patch = 0, number = 0;
    check_case("a tower without spatial_merge_size and without pixel limits");
    CHECK_INT(vp_gguf_open(check_golden("gguf/qwen2_5_vl/model.gguf"), &model, &error), VP_OK);
    CHECK_INT(vp_gguf_open(check_golden("gguf/qwen2_5_vl/mmproj.gguf"), &tower, &error), VP_OK);
    CHECK_INT(vp_gguf_value_find(tower, "clip.vision.spatial_merge_size", &value), VP_ERR_NOT_FOUND);
    if (CHECK_INT(vp_gguf_file_text(model, tower, "preprocessor_config.json", &text, &bytes, &error), VP_OK)
        && CHECK_INT(vp_json_parse(text, bytes, nodes, 100, &json, &needed, NULL), VP_OK)) {
        CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, 0, "patch_size"), &patch), VP_OK);
        CHECK(vp_json_to_int(&json, vp_json_get(&json, 0, "merge_size"), &number) == VP_OK && number == 2);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, 0, limits[i].key), &number), VP_OK);
            CHECK_INT(number, limits[i].tokens * 2 * 2 * patch * patch);
        }
    }
    free(text);
    text = NULL;
    if (CHECK_INT(vp_gguf_file_text(model, tower, "config.json", &text, &bytes, &error), VP_OK)) {
        const char *merge = strstr(text, "\"spatial_merge_size\":");
        CHECK(merge && strtol(merge + strlen("\"spatial_merge_size\":"), NULL, 10) == 2);
    }
    free(text);
    vp_gguf_close(tower);
    vp_gguf_close(model);
}
static void test_swapped(void) {
    static const char *const files[] = {"gguf/idefics3/mmproj.gguf", "gguf/idefics3/mmproj-old.gguf"};
    static const char *const names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    struct opened models[2] = {0};
    vp_gguf *towers[2] = {NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    check_case("a tower with ffn_up and ffn_down swapped, as in old files");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(vp_gguf_open(check_golden("gguf/idefics3/model.gguf"), &models[i].gguf, &error), VP_OK);
        CHECK_INT(vp_gguf_open(check_golden(files[i]), &towers[i], &error), VP_OK);
        if (!CHECK_INT(open_llava(&models[i], towers[i], &error), VP_OK)) printf("    %s: %s\n", error.where, error.text);
    }
    for (int i = 0; i < 8 && models[0].checkpoint && models[1].checkpoint; i++) {
        vp_tensor one, other;
        char name[96];
        snprintf(name, sizeof name, "model.vision_model.encoder.layers.%d.mlp.%s", i / 4, names[i % 4]);
        CHECK_INT(vp_checkpoint_find(models[0].checkpoint, name, &one), VP_OK);
        CHECK_INT(vp_checkpoint_find(models[1].checkpoint, name, &other), VP_OK);
        CHECK(one.bytes == other.bytes && !memcmp(one.data, other.data, (size_t)one.bytes));
    }
    for (int i = 0; i < 2; i++) {
        close_model(&models[i]);
        vp_gguf_close(towers[i]);
    }
}
/* Every prefix of a file, and files with a changed byte, give an error or a model, never a crash. Sanitizers check this. */
static void test_damage(void) {
    size_t bytes = 0;
    char *data = check_read(check_golden("gguf/llama.gguf"), &bytes);
    uint32_t seed = 27;
    int opened = 0;
    check_case("damaged files never crash: prefixes, changed bytes (seed 27)");
    for (int i = 0; CHECK(data) && i < 400; i++) {
        struct opened model = {0};
        vp_error error = {VP_OK, -1, "", ""};
        size_t at, length = bytes;
        seed = seed * 1664525u + 1013904223u;
        at = (seed >> 8) % 12000; /* keys and tensor entries */
        if (i % 4 == 0) length = at;
        char *copy = (char *)malloc(length + 1);
        memcpy(copy, data, length);
        unsigned char kept = (unsigned char)seed;
        if (i % 4 && at < length) copy[at] = (char)kept;
        if (vp_gguf_read(copy, length, "damaged", &model.gguf, &error) == VP_OK) opened += open_text(model.gguf, &model, &error) == VP_OK;
        close_model(&model);
        free(copy);
    }
    CHECK(opened > 50); /* most changes hit the vocabulary's text, so the file still opens */
    free(data);
}

int main(void) {
    test_blocks();
    test_model("llama");
    test_model("smollm");
    test_model("qwen2");
    test_model("qwen3");
    test_model("olmoe");
    test_llava();
    test_headers();
    test_tensors();
    test_changes();
    test_scores();
    test_rope();
    test_towers();
    test_stand_in();
    test_limits();
    test_swapped();
    test_damage();
    return check_done("test_gguf");
}
