/* slow-emulated: every model on the emulated GPU, 12 s; in make test test_model and test_several run there */
/* test_othermodels.c - the engine on models other than MolmoE against the reference implementations: tests/golden/othermodels, and additional cases of the shared
 * goldens; own_*: further shapes. Image and text are those that the reference got (ids of case.json, 8-bit pictures of pixels.png;
 * Molmo-7B: our own preprocessing). With TEST_DEVICE (a device's name): the same on that device. With TEST_EMULATED: also under several schedules of
 * tests/emulator/cuda_on_cpu.h. VERBOSE in the environment prints the errors; ONLY runs just the models whose name contains it.
 */
#include "vlmprof_image.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"

#include "support/check.h"
#include "support/json_file.h"
#include "support/temporary.h"

#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif
#ifdef TEST_EMULATED
void cuda_on_cpu_reset(uint64_t seed);
#endif
enum { STEPS = 6, CASES = 3 };
typedef struct family { const char *name, *final_norm, *cases[CASES]; } family;
static const family families[] = {
    { "olmoe", "model.norm.weight", { "text1", "text2", "text3" } },
    { "molmo_7b_o", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "molmo_7b_d", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "llava", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "smolvlm", "model.text_model.norm.weight", { "text", "image-a", "image-b" } },
    { "internvl", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "qwen2_5_vl", "model.norm.weight", { "text", "image-a", "image-b" } },
    { "qwen3_vl", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "qwen3_vl_moe", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "gemma3", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "molmo2", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_olmoe_a", "model.norm.weight", { "text1", "text2", "text3" } },
    { "own_olmoe_b", "model.norm.weight", { "text1", "text2", "text3" } },
    { "own_llava_a", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_llava_b", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_smolvlm_a", "model.text_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_smolvlm_b", "model.text_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_idefics3_a", "model.text_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_idefics3_b", "model.text_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_molmo_a", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_molmo_b", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_molmo_c", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_internvl_a", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_internvl_chat", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_internvl_b", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_internvl_c", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_internvl_chat_6b", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen2_5_vl_a", "model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen2_5_vl_b", "model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen3_vl_a", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen3_vl_b", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen3_vl_moe_a", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_qwen3_vl_moe_b", "model.language_model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_gemma3_a", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_molmo2_a", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_molmo2_b", "model.transformer.ln_f.weight", { "text", "image-a", "image-b" } },
    { "own_gemma3_b", "language_model.model.norm.weight", { "text", "image-a", "image-b" } },
    { "own_gemma3_text", "model.norm.weight", { "text1", "text2", "text3" } },
    { "own_qwen3_moe_text", "model.norm.weight", { "text1", "text2", "text3" } },
    { "own_llama3_text", "model.norm.weight", { "text1", "text2", "text3" } },
};
enum { FAMILIES = (int)(sizeof families / sizeof families[0]) };

/* ---------------------------------------------------------------------------------------------------------------- cases */
static const char *place(const family *f, const char *rest) {
    char path[256];
    snprintf(path, sizeof path, "othermodels/%s/%s", f->name, rest);
    return check_golden(path);
}
static const char *weights_of(const family *f) { return place(f, "checkpoint/model.safetensors"); }
static int load_npy(const family *f, const char *name, const char *file, check_array *a) {
    char rest[128];
    snprintf(rest, sizeof rest, "%s/%s", name, file);
    memset(a, 0, sizeof *a);
    return place(f, rest) && check_npy(place(f, rest), a);
}
static int32_t *json_ints(const json_file *file, const char *key, int32_t *count) {
    uint32_t list = vp_json_get(&file->json, 0, key);
    int32_t *out;
    *count = 0;
    if (list == VP_JSON_NONE || file->json.nodes[list].type != VP_JSON_ARRAY) return NULL;
    out = (int32_t *)malloc((size_t)file->json.nodes[list].count * sizeof *out + 4);
    for (uint32_t i = list + 1; i < file->json.nodes[list].end; i = file->json.nodes[i].end) {
        int64_t value = 0;
        vp_json_to_int(&file->json, i, &value);
        out[(*count)++] = (int32_t)value;
    }
    return out;
}
static double json_number(const json_file *file, const char *key, double otherwise) {
    uint32_t node = vp_json_get(&file->json, 0, key);
    double value;
    return node != VP_JSON_NONE && vp_json_to_double(&file->json, node, &value) == VP_OK ? value : otherwise;
}

typedef struct test_case {
    const family *of;
    const char *name;
    int32_t *ids, id_count, *tokens, token_count, views, rows, cols, image_token, *index, *seen;
    float *pixels, *masks;
} test_case;
static void free_case(test_case *c) { free(c->seen); free(c->ids); free(c->tokens); free(c->index); free(c->pixels); free(c->masks); }

/* pictures of crop x crop, stacked, or side by side if cut from one picture -> patches of normalised values */
static void load_pictures(test_case *c, const vp_model_config *config, const char *path) {
    const vp_geometry *g = &config->geometry;
    const int32_t side = g->crop_px / g->patch_px, values = 3 * g->patch_px * g->patch_px;
    int32_t cols, view_px = g->crop_px;
    size_t bytes = 0;
    char *file = check_read(path, &bytes);
    vp_image image;
    vp_error error;
    float *to;
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &image, &error), VP_OK)) return;
    free(file);
    if (!config->vit_native) view_px = image.width_px; /* Idefics3's may contain a partial patch that the tower does not read */
    CHECK_INT(view_px - (config->vit_native ? 0 : view_px % g->patch_px), g->crop_px);
    CHECK_INT(image.width_px % view_px, 0);
    CHECK_INT(image.height_px % view_px, 0);
    c->cols = cols = image.width_px / view_px;
    c->rows = image.height_px / view_px;
    c->views = c->rows * cols;
    CHECK(config->vit_native || cols == 1);
    to = c->pixels = (float *)malloc((size_t)c->views * (size_t)(side * side * values) * sizeof(float));
    for (int32_t patch = 0; patch < c->views * side * side; patch++)
        for (int32_t y = 0; y < g->patch_px; y++)
            for (int32_t x = 0; x < 3 * g->patch_px; x++) {
                int32_t view = patch / (side * side), row = view / cols * view_px + patch % (side * side) / side * g->patch_px + y;
                int32_t at = (row * image.width_px + view % cols * view_px + patch % side * g->patch_px) * 3 + x;
                float mean = (float)((double)g->mean[x % 3] * 255.0), std = (float)((double)g->std[x % 3] * 255.0);
                *to++ = ((float)image.rgb[at] - mean) / std;
            }
    vp_image_free(&image);
}
/* image features are assigned to the image tokens in order */
static void load_index(test_case *c, const vp_model_config *config, int32_t token) {
    int32_t count = c->views * vp_geometry_tokens_per_crop(&config->geometry), found = 0;
    c->image_token = token;
    if (config->connector == VP_CONNECTOR_STITCHED) /* windows over the stitched patches of the crops */
        for (int32_t i = count = 0; i < c->id_count; i++) count += c->ids[i] == token;
    c->index = (int32_t *)malloc((size_t)count * sizeof *c->index);
    for (int32_t i = 0; i < c->id_count; i++)
        if (c->ids[i] == token && found++ < count) c->index[found - 1] = i;
    CHECK_INT(found, count);
}
/* Molmo-7B: like MolmoE */
static void load_molmo_image(test_case *c, const vp_model_config *config, const char *path) {
    vp_tile_options options = vp_tile_options_default();
    vp_layout layout;
    vp_image image;
    vp_error error;
    check_array masks, index;
    const size_t patches = (size_t)config->vit_positions - 1;
    const int32_t tokens = vp_geometry_tokens_per_crop(&config->geometry);
    size_t bytes = 0, scratch_bytes;
    char *file = check_read(path, &bytes);
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &image, &error), VP_OK)) return;
    options.max_crops = config->geometry.max_crops;
    CHECK_INT(vp_layout_compute(&config->geometry, &options, image.width_px, image.height_px, &layout, &error), VP_OK);
    scratch_bytes = vp_preprocess_scratch_bytes(&config->geometry, &layout);
    void *scratch = malloc(scratch_bytes);
    c->views = layout.views;
    c->pixels = (float *)malloc(vp_preprocess_pixel_count(&config->geometry, &layout) * sizeof(float));
    c->masks = (float *)malloc((size_t)layout.views * patches * sizeof(float));
    CHECK_INT(vp_preprocess(&config->geometry, &layout, image.rgb, c->pixels, c->masks, scratch, scratch_bytes), VP_OK);
    if (CHECK(load_npy(c->of, c->name, "image_masks.npy", &masks)) && CHECK_INT(masks.count, (int64_t)layout.views * (int64_t)patches))
        for (int64_t i = 0; i < masks.count; i++) CHECK_NEAR(c->masks[i], check_at(&masks, i), 1e-6);
    if (CHECK(load_npy(c->of, c->name, "image_input_idx.npy", &index)) && CHECK_INT(index.count, (int64_t)layout.views * tokens)) {
        c->index = (int32_t *)malloc((size_t)index.count * sizeof *c->index);
        for (int64_t i = 0; i < index.count; i++) c->index[i] = (int32_t)check_at(&index, i);
    }
    check_free(&masks);
    check_free(&index);
    FREE_ALL(scratch, file);
    vp_image_free(&image);
}
/* Molmo2: the crops of the picture, and its tokens, which see each other */
static void load_tiling(test_case *c, const vp_model_config *config, const json_file *info) {
    int32_t count, *size = json_ints(info, "image_size", &count);
    vp_tiling tiling = { 0, 0 };
    if (CHECK_INT(count, 2)) CHECK_INT(vp_tiler_adaptive(&config->geometry, size[0], size[1], config->geometry.max_crops, &tiling), VP_OK);
    c->rows = tiling.rows;
    c->cols = tiling.cols;
    CHECK_INT(tiling.rows * tiling.cols + 1, c->views);
    free(size);
    c->seen = json_ints(info, "mm_token_type_ids", &count);
    CHECK_INT(count, c->id_count);
}
/* returns 0 if the case is not present */
static int load_case(const family *f, const char *name, const vp_model_config *config, test_case *c) {
    char rest[128], image[256], picture[300];
    json_file info;
    size_t needed;
    memset(c, 0, sizeof *c);
    c->of = f;
    c->name = name;
    snprintf(rest, sizeof rest, "%s/case.json", name);
    if (!place(f, rest)) return 0;
    if (!CHECK(json_open(place(f, rest), &info))) return 0;
    c->ids = json_ints(&info, "input_ids", &c->id_count);
    c->tokens = json_ints(&info, "tokens", &c->token_count);
    CHECK_INT(c->token_count, STEPS);
    uint32_t node = vp_json_get(&info.json, 0, "image");
    if (node != VP_JSON_NONE && info.json.nodes[node].type == VP_JSON_STRING) {
        vp_json_text(&info.json, node, image, sizeof image, &needed);
        snprintf(rest, sizeof rest, "%s/pixels.png", name);
        snprintf(picture, sizeof picture, "othermodels/images%s", strrchr(image, '/') ? strrchr(image, '/') : "");
        if (config->connector == VP_CONNECTOR_POOLING && strchr(image, '/')) {
            load_molmo_image(c, config, check_golden(picture));
        } else if (config->connector == VP_CONNECTOR_POOLING) {
            snprintf(rest, sizeof rest, "%s/picture.png", name);
            load_molmo_image(c, config, place(f, rest));
        } else {
            load_pictures(c, config, place(f, rest));
            if (config->connector == VP_CONNECTOR_STITCHED) load_tiling(c, config, &info);
            load_index(c, config, (int32_t)json_number(&info, "image_token_id", -1));
            c->masks = (float *)calloc((size_t)c->views * (size_t)config->vit_positions, sizeof(float));
        }
    }
    json_close(&info);
    return 1;
}

/* ---------------------------------------------------------------------------------------------------------------- runs */
typedef struct output { float *logits, *features, *deepstack, *block_last; int32_t tokens[STEPS]; vp_reply reply; } output;
static void free_output(output *o) { free(o->logits); free(o->features); free(o->deepstack); free(o->block_last); }
/* ends: [id_count], blocks: [block_count] */
static vp_request request_of(const vp_model_config *config, const test_case *c, int32_t skipped, int32_t *ends, int32_t *blocks) {
    static vp_image_views image; /* valid until the next call */
    vp_request r;
    image = (vp_image_views){ c->views, c->rows, c->cols };
    memset(&r, 0, sizeof r);
    for (int32_t b = 0; b < config->block_count; b++) if (b != skipped) blocks[r.active_block_count++] = b;
    r.input_ids = c->ids; r.input_count = c->id_count;
    r.pixels = c->pixels; r.image_masks = c->masks; r.image_input_idx = c->index; r.views = c->views;
    r.images = &image; r.image_count = c->views > 0;
    for (int32_t i = c->id_count - 1; i >= 0; i--) /* a view's tokens are consecutive and see each other */
        ends[i] = i + 1 < c->id_count && c->views && (c->seen ? c->seen[i] && c->seen[i + 1] : c->ids[i] == c->image_token && c->ids[i + 1] == c->image_token)
                  ? ends[i + 1] : i + 1;
    r.span_ends = ends;
    r.top_k = config->top_k; r.active_blocks = blocks;
    r.max_new_tokens = STEPS; r.ignore_eos = 1; r.eos_id = -1;
    return r;
}
static vp_result run_case(vp_engine *engine, const vp_model_config *config, const test_case *c, int32_t skipped, int bare, output *o) {
    int32_t blocks[64], *ends = (int32_t *)malloc((size_t)c->id_count * sizeof *ends);
    int64_t step_ns[STEPS];
    vp_request r = request_of(config, c, skipped, ends, blocks);
    vp_dump dump;
    vp_error error;
    size_t per_view = (size_t)vp_geometry_tokens_per_crop(&config->geometry);
    memset(o, 0, sizeof *o);
    memset(&dump, 0, sizeof dump);
    memset(&error, 0, sizeof error);
    o->logits = dump.logits = (float *)malloc((size_t)STEPS * (size_t)config->embedding_size * sizeof(float));
    o->features = dump.image_features = (float *)malloc(((size_t)c->views * per_view * (size_t)config->d_model + 1) * sizeof(float));
    o->deepstack = dump.deepstack_features =
        (float *)malloc(((size_t)config->deepstack_count * (size_t)c->views * (size_t)config->d_model + 1) * sizeof(float));
    o->block_last = dump.block_last = (float *)malloc((size_t)r.active_block_count * (size_t)config->d_model * sizeof(float));
    r.dump = bare ? NULL : &dump;
    o->reply.tokens = o->tokens; o->reply.step_ns = step_ns;
    vp_result result = vp_engine_run(engine, &r, &o->reply, &error);
    free(ends);
    if (!CHECK_INT(result, VP_OK)) printf("%s: %s\n", error.where, error.text);
    return result;
}
/* || l - g || / || g ||, the measure of the goldens' README.md */
static double relative_error(const float *got, const check_array *want, int64_t from, int64_t count) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double w = check_at(want, from + i), d = (double)got[i] - w;
        difference += d * d;
        size += w * w;
    }
    return sqrt(difference / size);
}
/* the last row of block_last is after the final norm */
static double last_block_error(const vp_checkpoint *checkpoint, const char *norm, const vp_model_config *config, const float *row, const check_array *want,
                               int64_t from) {
    float *normed = (float *)malloc((size_t)config->d_model * sizeof(float));
    double sum = 0, error;
    vp_tensor weight;
    if (!CHECK_INT(vp_checkpoint_find(checkpoint, norm, &weight), VP_OK) || !CHECK(weight.dtype <= VP_DTYPE_BF16)) { free(normed); return NAN; }
    for (int32_t i = 0; i < config->d_model; i++) sum += (double)row[i] * row[i];
    for (int32_t i = 0; i < config->d_model; i++) {
        uint16_t half;
        float value;
        memcpy(&half, weight.data + i * 2, 2);
        if (weight.dtype == VP_DTYPE_F32) memcpy(&value, weight.data + i * 4, 4);
        else value = vp_bf16_to_f32(half);
        normed[i] = (float)(((double)value + config->norm_plus_one) * row[i] / sqrt(sum / config->d_model + (double)config->norm_eps));
    }
    error = relative_error(normed, want, from, config->d_model);
    free(normed);
    return error;
}
static void compare_fp32(const vp_checkpoint *checkpoint, const vp_model_config *config, const test_case *c, const output *o) {
    int64_t n = config->embedding_size, d = config->d_model, last = config->block_count - 1;
    double logits = 0, blocks = 0, features = 0;
    check_array a;
    if (CHECK(load_npy(c->of, c->name, "logits.npy", &a)) && CHECK_INT(a.count, STEPS * n))
        for (int64_t s = 0; s < STEPS; s++) logits = fmax(logits, relative_error(o->logits + s * n, &a, s * n, n));
    check_free(&a);
    if (CHECK(load_npy(c->of, c->name, "block_last.npy", &a)) && CHECK_INT(a.count, (last + 2) * d)) {
        for (int64_t b = 0; b < last; b++) blocks = fmax(blocks, relative_error(o->block_last + b * d, &a, (b + 1) * d, d));
        blocks = fmax(blocks, last_block_error(checkpoint, c->of->final_norm, config, o->block_last + last * d, &a, (last + 1) * d));
    }
    check_free(&a);
    for (int s = 0; s < STEPS; s++) CHECK_INT(o->tokens[s], c->tokens[s]);
    if (c->views && load_npy(c->of, c->name, "image_features.npy", &a)) { /* only if no rows are dropped as overlap */
        int64_t rows = config->connector == VP_CONNECTOR_STITCHED ? a.count / d : (int64_t)c->views * vp_geometry_tokens_per_crop(&config->geometry), kept = 0;
        float *used = (float *)malloc((size_t)(rows * d) * sizeof(float));
        for (int64_t i = 0; i < rows; i++) if (c->index[i] >= 0) memcpy(used + d * kept++, o->features + i * d, (size_t)d * sizeof(float));
        if (CHECK_INT(kept * d, a.count)) features = relative_error(used, &a, 0, a.count);
        free(used);
        check_free(&a);
    }
    CHECK_NEAR(logits, 0, 2e-5);
    CHECK_NEAR(blocks, 0, 2e-5);
    if (c->views && config->deepstack_count) {
        int64_t count = (int64_t)config->deepstack_count * c->views * d;
        CHECK(load_npy(c->of, c->name, "deepstack_features.npy", &a));
        if (CHECK_INT(count, a.count)) features = fmax(features, relative_error(o->deepstack, &a, 0, count));
        check_free(&a);
    }
    CHECK_NEAR(features, 0, 5e-6);
    if (getenv("VERBOSE")) printf("%s %s fp32: logits %.2e, block_last %.2e, features %.2e\n", c->of->name, c->name, logits, blocks, features);
}
/* 1.5 times the reference's largest error in bfloat16 among the checkpoint's cases */
static double bf16_bound(const family *f) {
    double most = 0;
    for (int i = 0; i < CASES; i++) {
        char rest[128];
        json_file file;
        snprintf(rest, sizeof rest, "%s/bf16_error.json", f->cases[i]);
        if (!place(f, rest)) continue;
        if (CHECK(json_open(place(f, rest), &file))) most = fmax(most, json_number(&file, "rel_l2", 0));
        json_close(&file);
    }
    return 1.5 * most;
}
static void compare_bf16(const vp_model_config *config, const test_case *c, const output *o) {
    check_array a;
    double error = NAN;
    if (CHECK(load_npy(c->of, c->name, "logits.npy", &a))) error = relative_error(o->logits, &a, 0, config->embedding_size);
    check_free(&a);
    CHECK_NEAR(error, 0, bf16_bound(c->of));
    if (getenv("VERBOSE")) printf("%s %s bf16: row 0 %.2e, at most %.2e\n", c->of->name, c->name, error, bf16_bound(c->of));
}
static int read_config(const family *f, const char *file, vp_model_config *config) {
    char rest[128];
    size_t bytes = 0, preprocessor_bytes = 0;
    vp_error error;
    int good;
    snprintf(rest, sizeof rest, "checkpoint/%s", file);
    char *text = check_read(place(f, rest), &bytes);
    char *preprocessor = check_read(place(f, "checkpoint/preprocessor_config.json"), &preprocessor_bytes);
    memset(&error, 0, sizeof error);
    good = text && CHECK_INT(vp_model_config_parse(text, bytes, preprocessor, preprocessor_bytes, config, &error), VP_OK);
    if (error.text[0]) printf("%s %s: %s: %s\n", f->name, file, error.where, error.text);
    FREE_ALL(text, preprocessor);
    return good;
}
static vp_result open_folder(const family *f, vp_model_config *config, vp_checkpoint **checkpoint, vp_error *error) {
    char folder[256]; /* the folder that contains the weights */
    snprintf(folder, sizeof folder, "%s", weights_of(f));
    *strrchr(folder, '/') = 0;
    if (config->tied_head) config->tied_head = !vp_checkpoint_has_head(folder);
    return vp_checkpoint_open(folder, config, checkpoint, error);
}
static vp_engine *open_engine(const family *f, vp_weights weights, const char *device, const char *gemm, vp_model_config *config, vp_checkpoint **checkpoint) {
    vp_engine_options options = vp_engine_options_default();
    vp_engine *engine = NULL;
    vp_error error = { VP_OK, -1, "", "" };
    *checkpoint = NULL;
    if (!CHECK(read_config(f, "config.json", config))) return NULL;
    if (!CHECK_INT(open_folder(f, config, checkpoint, &error), VP_OK)) {
        printf("%s: %s\n", error.where, error.text);
        return NULL;
    }
    options.config = config; options.checkpoint = *checkpoint; options.weights = weights; options.device = device; options.gemm = gemm;
    options.max_sequence = 512; options.max_views = config->vit_native ? 150 : 13;
    if (strcmp(device, "cpu") && config->d_model % 4) { /* own_llava_a has such a width */
        CHECK_INT(vp_engine_open(&options, &engine, &error), VP_ERR_UNSUPPORTED);
        CHECK_TEXT(error.where, "hidden_size");
        CHECK(strstr(error.text, "run this model with --device cpu"));
    } else if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    return engine;
}
/* a request without copies to the host gives the same tokens: a GPU then replays recorded steps */
static void compare_bare(vp_engine *engine, const vp_model_config *config, const test_case *c, const output *o) {
    output again;
    if (run_case(engine, config, c, -1, 1, &again) == VP_OK)
        for (int s = 0; s < STEPS; s++) CHECK_INT(again.tokens[s], o->tokens[s]);
    free_output(&again);
}
/* if several ids end an answer, the first one generated ends it */
static void compare_stops(vp_engine *engine, const vp_model_config *config, const test_case *c, const output *o) {
    int32_t blocks[64], *ends = (int32_t *)malloc((size_t)c->id_count * sizeof *ends), tokens[STEPS], more[2] = { 0, o->tokens[2] }, first = 0;
    int64_t step_ns[STEPS];
    vp_request r;
    vp_reply reply;
    vp_error error;
    memset(&r, 0, sizeof r);
    memset(&reply, 0, sizeof reply);
    memset(&error, 0, sizeof error);
    for (int s = 0; s < STEPS; s++) if (more[0] == o->tokens[s]) { more[0]++; s = -1; } /* an id that is never generated */
    while (o->tokens[first] != more[1]) first++;
    for (int32_t i = 0; i < c->id_count; i++) ends[i] = i + 1;
    for (int32_t b = 0; b < config->block_count; b++) blocks[b] = b;
    r.input_ids = c->ids; r.input_count = c->id_count; r.span_ends = ends; r.active_blocks = blocks; r.active_block_count = config->block_count;
    r.top_k = config->top_k; r.max_new_tokens = STEPS; r.eos_id = more[0]; r.more_eos_ids = more; r.more_eos_count = 2;
    reply.tokens = tokens; reply.step_ns = step_ns;
    if (!CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    CHECK_INT(reply.token_count, first + 1);
    CHECK_INT(reply.ended_by_eos, 1);
    for (int s = 0; s <= first; s++) CHECK_INT(tokens[s], o->tokens[s]);
    free(ends);
}
static void run_family(const family *f, vp_weights weights, const char *gemm, int first_case, int last_case) {
    vp_model_config config;
    vp_checkpoint *checkpoint;
    const char *kind = weights == VP_WEIGHTS_FP32 ? "fp32" : "bf16";
    check_case("%s %s %s: open", f->name, kind, gemm ? gemm : "auto");
    if (!weights_of(f)) { check_skip(f->name, "no goldens of this model here"); return; }
    vp_engine *engine = open_engine(f, weights, TEST_DEVICE, gemm, &config, &checkpoint);
    for (int i = first_case; engine && i <= last_case; i++) {
        test_case c;
        output o;
#ifdef TEST_EMULATED /* bf16: one of the last two cases, the other one in the next model; in fp32 both run */
        if (weights == VP_WEIGHTS_BF16 && i && i == 1 + (f - families) % 2) continue;
#endif
        check_case("%s %s %s %s", f->name, f->cases[i], kind, gemm ? gemm : "auto");
        if (!load_case(f, f->cases[i], &config, &c)) { check_skip(f->cases[i], "these goldens are not here"); continue; }
        if (run_case(engine, &config, &c, -1, 0, &o) == VP_OK) {
            if (weights == VP_WEIGHTS_FP32) compare_fp32(checkpoint, &config, &c, &o);
            else compare_bf16(&config, &c, &o);
            if (i == 0) compare_bare(engine, &config, &c, &o);
            if (i == 0) compare_stops(engine, &config, &c, &o);
        }
        free_output(&o);
        free_case(&c);
    }
    vp_engine_close(engine);
    vp_checkpoint_close(checkpoint);
}

/* ---------------------------------------------------------------------------------------------------------------- knobs, configs */
/* Skipping a block leaves the residual unchanged: the result equals the CPU's and differs from a run with the block. */
static void test_knobs(const family *f) {
    vp_model_config config;
    vp_checkpoint *checkpoint, *own_checkpoint;
    test_case c;
    output o, all, own;
    vp_request r;
    vp_reply reply;
    vp_error error;
    int32_t token[1], block = 0;
    int64_t step_ns[1];
    check_case("%s: an inactive block, top_k", f->name);
    if (!weights_of(f)) { check_skip(f->name, "no goldens of this model here"); return; }
    vp_engine *engine = open_engine(f, VP_WEIGHTS_FP32, TEST_DEVICE, NULL, &config, &checkpoint);
    vp_engine *cpu = open_engine(f, VP_WEIGHTS_FP32, "cpu", "plain", &config, &own_checkpoint);
    if (engine && cpu && CHECK(load_case(f, f->cases[0], &config, &c))) {
        double difference = 0, change = 0, size = 0;
        run_case(engine, &config, &c, 1, 0, &o);
        run_case(cpu, &config, &c, 1, 0, &own);
        run_case(engine, &config, &c, -1, 0, &all);
        for (int64_t i = 0; i < config.embedding_size; i++) {
            double a = o.logits[i], b = own.logits[i], w = all.logits[i];
            difference += (a - b) * (a - b);
            change += (a - w) * (a - w);
            size += b * b;
        }
        CHECK_NEAR(sqrt(difference / size), 0, 2e-5);
        CHECK(sqrt(change / size) > 1e-3);
        free_output(&o);
        free_output(&own);
        free_output(&all);
        memset(&r, 0, sizeof r);
        memset(&reply, 0, sizeof reply);
        r.input_ids = c.ids; r.input_count = c.id_count; r.active_blocks = &block; r.active_block_count = 1; r.max_new_tokens = 1;
        reply.tokens = token; reply.step_ns = step_ns;
        r.top_k = config.expert_count ? 0 : 1;
        CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_ERR_RANGE);
        CHECK_TEXT(error.where, "top_k");
        r.top_k = config.top_k;
        CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK);
        free_case(&c);
    }
    vp_engine_close(engine);
    vp_engine_close(cpu);
    vp_checkpoint_close(checkpoint);
    vp_checkpoint_close(own_checkpoint);
}
/* A tied head is stored once; with an untied head, the same model has one more embedding table. An integer head is an additional copy. */
static uint64_t weight_bytes(const vp_model_config *config, vp_weights weights, vp_weights head, int tied) {
    vp_engine_options options = vp_engine_options_default();
    vp_model_config changed = *config;
    vp_memory_block block;
    vp_engine *engine = NULL;
    vp_error error;
    changed.tied_head = tied;
    memset(&block, 0, sizeof block);
    options.config = &changed; options.weights = weights; options.head_weights = head; options.device = TEST_DEVICE;
    options.max_sequence = 16; options.max_views = 1;
    if (CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) CHECK(vp_engine_memory(engine, 0, &block));
    vp_engine_close(engine);
    return block.bytes;
}
static void test_tied(const family *f) {
    vp_model_config config;
    if (!place(f, "checkpoint/config.json")) return;
    check_case("%s: the size of a tied head", f->name);
    if (!CHECK(read_config(f, "config.json", &config)) || !config.tied_head) return;
    uint64_t elements = (uint64_t)config.embedding_size * (uint64_t)config.d_model;
    for (int wide = 0; wide < 2; wide++) {
        vp_weights weights = wide ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
        CHECK_INT(weight_bytes(&config, weights, weights, 0) - weight_bytes(&config, weights, weights, 1), (elements * (wide ? 4 : 2) + 63) / 64 * 64);
    }
    if (!strcmp(TEST_DEVICE, "cpu"))
        CHECK_INT(weight_bytes(&config, VP_WEIGHTS_INT8, VP_WEIGHTS_INT8, 0), weight_bytes(&config, VP_WEIGHTS_INT8, VP_WEIGHTS_INT8, 1));
}
/* The launches and bytes that experts without tokens would add in a prompt; the router decides which experts those are. On tiles, and in the last block of a GPU's
 * prefill, there are no products per expert, so they add nothing. */
static void count_idle(const vp_model_config *config, const vp_request *r, const vp_reply *reply, vp_weights weights, int64_t *missing, int64_t *bytes) {
    const int64_t pairs = (int64_t)r->input_count * r->top_k, most = pairs < config->expert_count ? pairs : config->expert_count,
                  values = 3 * (int64_t)config->expert_dim * config->d_model;
    int64_t idle = 0, used[64] = { 0 };
    int are_grouped = 0;
    for (int64_t i = 0; i < reply->launch_count; i++) {
        const vp_launch *l = &r->launches[i];
        const int is_grouped = !strcmp(l->name, "gemm_grouped");
        if (l->stage != VP_STAGE_PREFILL || l->part != VP_PART_EXPERTS || (!is_grouped && strcmp(l->name, "gemm"))) continue;
        are_grouped |= is_grouped;
        used[l->block] += is_grouped ? l->shape[3] : 1;
    }
    for (int b = 0; b < 64; b++) if (used[b]) idle += 2 * most - used[b]; /* both products are skipped */
    *missing = are_grouped ? 0 : idle;
    *bytes = idle / 2 * (weights == VP_WEIGHTS_FP32 ? 4 * values : weights == VP_WEIGHTS_BF16 ? 2 * values
                         : values * (weights == VP_WEIGHTS_INT8 ? 17 : 9) / 16);
}
/* vp_engine_count, on an engine without memory, gives the launches, FLOPs and bytes of each stage that a run records */
static void compare_counted(vp_engine *engine, vp_engine *paper, const vp_model_config *config, const test_case *c, int32_t skipped, vp_weights weights) {
    enum { ROOM = 1 << 16 };
    static vp_launch launches[ROOM];
    int32_t blocks[64], tokens[STEPS], *ends = (int32_t *)malloc((size_t)c->id_count * sizeof *ends);
    int64_t step_ns[STEPS], missing, idle_bytes;
    vp_request r = request_of(config, c, skipped, ends, blocks), bare;
    vp_reply reply;
    vp_stage_times work;
    vp_error error;
    memset(&reply, 0, sizeof reply);
    reply.tokens = tokens; reply.step_ns = step_ns;
    r.timing = VP_TIMING_KERNEL; r.launches = launches; r.launch_capacity = ROOM;
    if (CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK) && CHECK(reply.launch_count <= ROOM)) {
        bare = r;
        bare.input_ids = NULL; bare.pixels = bare.image_masks = NULL; bare.image_input_idx = NULL;
        CHECK_INT(vp_engine_run(paper, &r, &reply, &error), VP_ERR_STATE);
        CHECK_INT(vp_engine_count(paper, &bare, &work, &error), VP_OK);
        count_idle(config, &r, &reply, weights, &missing, &idle_bytes);
        CHECK(missing >= 0 && missing % 2 == 0 && idle_bytes >= 0);
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            const int is_prefill = stage == VP_STAGE_PREFILL;
            const int64_t counted[] = {work.ran[stage], work.flops[stage], work.launches[stage] - (is_prefill ? missing : 0),
                                       work.bytes[stage] - (is_prefill ? idle_bytes : 0)},
                          ran[] = {reply.times.ran[stage], reply.times.flops[stage], reply.times.launches[stage], reply.times.bytes[stage]};
            for (int k = 0; k < 4; k++)
                check_note(counted[k] == ran[k], __FILE__, __LINE__, "%s: %s counted: %lld, recorded: %lld", vp_stage_name((vp_stage)stage),
                           (const char *const[]){"stages", "FLOPs", "launches", "bytes"}[k], (long long)counted[k], (long long)ran[k]);
        }
        CHECK(work.flops[VP_STAGE_PREFILL] > 0 && work.bytes[VP_STAGE_DECODE] > 0);
        bare.input_count = 513;
        CHECK_INT(vp_engine_count(paper, &bare, &work, &error), VP_ERR_RANGE);
    }
    free(ends);
}
static void test_counted(const family *f) {
    static const struct { vp_weights blocks, head, vision; } kinds[] = {
        { VP_WEIGHTS_FP32, VP_WEIGHTS_BF16, VP_WEIGHTS_BF16 }, { VP_WEIGHTS_BF16, VP_WEIGHTS_BF16, VP_WEIGHTS_BF16 },
        { VP_WEIGHTS_INT8, VP_WEIGHTS_BF16, VP_WEIGHTS_BF16 }, { VP_WEIGHTS_INT4, VP_WEIGHTS_INT8, VP_WEIGHTS_BF16 },
        { VP_WEIGHTS_BF16, VP_WEIGHTS_INT4, VP_WEIGHTS_INT8 }};
    vp_engine_options options = vp_engine_options_default();
    vp_model_config config;
    vp_error error;
    if (!weights_of(f) || !CHECK(read_config(f, "config.json", &config))) return;
    if (strcmp(TEST_DEVICE, "cpu") && config.d_model % 4) return;
    options.config = &config; options.device = TEST_DEVICE; options.max_sequence = 512; options.max_views = config.vit_native ? 150 : 13;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        vp_engine *engine = NULL, *paper = NULL;
#ifdef TEST_EMULATED /* 2 of the 5 for each model, so that 15 models use each of the 5 */
        if ((kind + (size_t)(f - families)) % (sizeof kinds / sizeof *kinds) > 1) continue;
#endif
        options.weights = kinds[kind].blocks; options.head_weights = kinds[kind].head; options.vision_weights = kinds[kind].vision;
        options.counts_only = 0;
        check_case("%s, weights %zu: the counted work equals the work that runs", f->name, kind);
        if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) continue;
        options.counts_only = 1;
        if (CHECK_INT(vp_engine_open(&options, &paper, &error), VP_OK)) CHECK_INT(vp_engine_bytes(paper), vp_engine_bytes(engine));
        for (int i = 0; i < 2 && paper; i++) { /* first a text, then an image */
            test_case c;
            if (!load_case(f, f->cases[i], &config, &c)) continue;
            check_case("%s, weights %zu, %s: the counted work equals the work that runs", f->name, kind, f->cases[i]);
            compare_counted(engine, paper, &config, &c, i - 1, options.weights);
            free_case(&c);
        }
        vp_engine_close(engine);
        vp_engine_close(paper);
    }
}
/* The published config and the one of transformers 5 mean the same if a model has both. Returns 1 if it has. */
static int test_styles(const family *f) {
    vp_model_config config, published;
    if (!place(f, "checkpoint/config_published_style.json")) return 0;
    check_case("%s: both styles of config.json", f->name);
    if (CHECK(read_config(f, "config.json", &config)) && CHECK(read_config(f, "config_published_style.json", &published)))
        CHECK(memcmp(&config, &published, sizeof config) == 0);
    return 1;
}

static int is_wanted(const family *f) { return !getenv("ONLY") || strstr(f->name, getenv("ONLY")); }
int main(void) {
    const int is_cpu = !strcmp(TEST_DEVICE, "cpu");
    int styles = 0;
#ifdef TEST_EMULATED
    cuda_on_cpu_reset(check_all() ? 4 : 2); /* make test has time for one case of each model in one precision; make test-slow runs all, under another schedule */
    for (int i = 0; i < FAMILIES && !check_all(); i++)
        if (is_wanted(&families[i])) run_family(&families[i], i % 2 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16, NULL, 0, 0);
    if (!check_all()) return check_done("test_othermodels_" TEST_DEVICE);
#endif
    for (int i = 0; i < FAMILIES; i++) {
        if (!is_wanted(&families[i])) continue;
        if (is_cpu && check_all()) { /* make test has tried the rest */
            for (int k = 0; vp_engine_gemm_name(k); k++) /* every GEMM kernel of this processor */
                run_family(&families[i], VP_WEIGHTS_BF16, vp_engine_gemm_name(k), 1, 1);
            continue;
        }
        run_family(&families[i], VP_WEIGHTS_FP32, NULL, 0, CASES - 1);
        run_family(&families[i], VP_WEIGHTS_BF16, NULL, 0, CASES - 1);
        test_knobs(&families[i]);
        test_tied(&families[i]);
        test_counted(&families[i]);
        if (is_cpu) styles += test_styles(&families[i]);
    }
    if (is_cpu && !check_all() && !getenv("ONLY")) {
        check_case("models with both styles of config.json");
        CHECK(styles >= 7);
    }
    return check_done(is_cpu ? "test_othermodels" : "test_othermodels_" TEST_DEVICE);
}
