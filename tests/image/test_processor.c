/* test_processor.c: prompts, expanded texts, 8-bit pixels and pixel values of models other than Molmo against the official processors (tests/golden/othermodels, and
 * additional cases of the shared goldens), and rejections. */
#include "vlmprof_families.h"
#include "vlmprof_image.h"
#include "vlmprof_processor.h"
#include "support/check.h"

static const struct { const char *name; vp_processor_kind kind; int32_t crop_px, patch_px, pool; const char *cases[3]; } models[] = {
    { "olmoe", VP_PROCESSOR_OLMOE, 336, 14, 2, { "text1", "text2", "text3" } },
    { "llava", VP_PROCESSOR_LLAVA, 84, 14, 1, { "text", "image-a", "image-b" } },
    { "smolvlm", VP_PROCESSOR_IDEFICS3, 64, 16, 2, { "text", "image-a", "image-b" } },
    { "internvl", VP_PROCESSOR_INTERNVL, 56, 14, 2, { "text", "image-a", "image-b" } },
    { "qwen2_5_vl", VP_PROCESSOR_QWEN2_5_VL, 28, 14, 2, { "text", "image-a", "image-b" } },
    { "qwen3_vl", VP_PROCESSOR_QWEN3_VL, 32, 16, 2, { "text", "image-a", "image-b" } },
    { "qwen3_vl_moe", VP_PROCESSOR_QWEN3_VL, 32, 16, 2, { "text", "image-a", "image-b" } },
    { "gemma3", VP_PROCESSOR_GEMMA3, 112, 14, 2, { "text", "image-a", "image-b" } },
    { "molmo2", VP_PROCESSOR_MOLMO2, 70, 14, 1, { "text", "image-a", "image-b" } },
};
enum { MODELS = sizeof models / sizeof models[0], TEXT_BYTES = 1 << 16 };

static const char *place(size_t model, const char *rest) {
    char path[256];
    snprintf(path, sizeof path, "othermodels/%s/%s", models[model].name, rest);
    return check_golden(path);
}
typedef struct json_file { char *text; vp_json_node nodes[4000]; vp_json json; } json_file;
static json_file *json_open(const char *path) {
    static json_file files[2];
    static int turn;
    json_file *file = &files[turn++ & 1];
    size_t bytes = 0;
    free(file->text);
    file->text = check_read(path, &bytes);
    return file->text && vp_json_parse(file->text, bytes, file->nodes, 4000, &file->json, NULL, NULL) == VP_OK ? file : NULL;
}
static const char *json_text(const json_file *file, const char *key, char *out) {
    size_t needed = 0;
    uint32_t node = vp_json_get(&file->json, 0, key);
    return node != VP_JSON_NONE && vp_json_text(&file->json, node, out, TEXT_BYTES, &needed) == VP_OK ? out : NULL;
}
static vp_geometry geometry_of(size_t model, const json_file *file) {
    vp_geometry geometry = vp_geometry_default();
    geometry.crop_px = models[model].crop_px;
    geometry.patch_px = models[model].patch_px;
    geometry.pool = models[model].pool;
    geometry.margin_left_patches = geometry.margin_right_patches = models[model].kind == VP_PROCESSOR_MOLMO2;
    if (models[model].kind == VP_PROCESSOR_MOLMO2) geometry.max_crops = 6;
    for (uint32_t i = 0; file && i < 3; i++) {
        double mean = 0, std = 0;
        CHECK_INT(vp_json_to_double(&file->json, vp_json_at(&file->json, vp_json_get(&file->json, 0, "image_mean"), i), &mean), VP_OK);
        CHECK_INT(vp_json_to_double(&file->json, vp_json_at(&file->json, vp_json_get(&file->json, 0, "image_std"), i), &std), VP_OK);
        geometry.mean[i] = (float)mean;
        geometry.std[i] = (float)std;
    }
    return geometry;
}
static int open_processor(size_t model, vp_processor *processor) {
    json_file *file = models[model].kind == VP_PROCESSOR_OLMOE ? NULL : json_open(place(model, "checkpoint/preprocessor_config.json"));
    vp_geometry geometry = geometry_of(model, file);
    vp_error error;
    if (!CHECK_INT(vp_processor_read(models[model].kind, &geometry, file ? &file->json : NULL, processor, &error), VP_OK)) return 0;
    if (models[model].kind != VP_PROCESSOR_MOLMO2) return 1;
    file = json_open(place(model, "checkpoint/processor_config.json"));
    json_file *texts = json_open(place(model, "checkpoint/tokenizer_config.json"));
    return CHECK(file && texts) && CHECK_INT(vp_processor_read_text(processor, &file->json, &texts->json, &error), VP_OK);
}

static int is_native(size_t model) { return models[model].kind == VP_PROCESSOR_QWEN2_5_VL || models[model].kind == VP_PROCESSOR_QWEN3_VL; }
/* pixel_values.npy: the values [views, 3, height, width], or their sums over each patch and channel [views, 3, rows, columns]; for pictures of any size [patches, 3],
 * over two equal frames */
static void check_values(size_t model, const char *name, const vp_processor *processor, const vp_layout *picture, const float *pixels) {
    char rest[64];
    check_array values;
    const int32_t patch = processor->geometry.patch_px, crop = processor->geometry.crop_px, side = crop / patch;
    const int64_t count = (int64_t)picture->views * 3 * crop * crop;
    double worst = 0;
    snprintf(rest, sizeof rest, "%s/pixel_values.npy", name);
    if (!place(model, rest)) { check_skip(rest, "not among the committed goldens"); return; }
    if (!CHECK(check_npy(place(model, rest), &values))) return;
    int sums = values.count == (int64_t)picture->views * 3 * side * side;
    CHECK(sums || values.count == count);
    for (int64_t view = 0; view < picture->views; view++)
        for (int64_t at = 0; at < (int64_t)side * side; at++) {
            double sum[3] = { 0, 0, 0 };
            const float *from = pixels + (view * side * side + at) * patch * patch * 3;
            for (int64_t i = 0; i < (int64_t)patch * patch; i++)
                for (int c = 0; c < 3; c++) {
                    const int64_t y = at / side * patch + i / patch, x = at % side * patch + i % patch;
                    sum[c] += from[i * 3 + c];
                    if (!sums) worst = fmax(worst, fabs(from[i * 3 + c] - check_at(&values, ((view * 3 + c) * crop + y) * crop + x)));
                }
            for (int c = 0; sums && is_native(model) && c < 3; c++) worst = fmax(worst, fabs(2 * sum[c] - check_at(&values, (view * side * side + at) * 3 + c)));
            const int rows_first = models[model].kind == VP_PROCESSOR_MOLMO2; /* [views, patches, 3] */
            for (int c = 0; sums && rows_first && c < 3; c++) worst = fmax(worst, fabs(sum[c] - check_at(&values, (view * side * side + at) * 3 + c)));
            for (int c = 0; sums && !is_native(model) && !rows_first && c < 3; c++)
                worst = fmax(worst, fabs(sum[c] - check_at(&values, (view * 3 + c) * side * side + at)));
        }
    CHECK_NEAR(worst, 0, sums ? 1e-4 : 1e-6);
    if (getenv("VERBOSE")) printf("%s %s: %s differ by %.2g\n", models[model].name, name, sums ? "sums" : "values", worst);
    check_free(&values);
}
/* the views of an image equal pixels.png level by level, and their values equal the processor's */
static void check_picture(size_t model, const char *name, const vp_processor *processor, const char *path, vp_layout *picture) {
    char rest[64];
    size_t bytes = 0, view_bytes;
    char *file = check_read(place(model, path), &bytes);
    vp_image image, want;
    vp_error error;
    float *pixels;
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &image, &error), VP_OK)) return;
    free(file);
    CHECK_INT(vp_processor_layout(processor, image.width_px, image.height_px, picture, &error), VP_OK);
    snprintf(rest, sizeof rest, "%s/pixels.png", name);
    file = check_read(place(model, rest), &bytes);
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &want, &error), VP_OK)) return;
    free(file);
    if (is_native(model)) {
        CHECK_INT(picture->resized_width_px, want.width_px);
        CHECK_INT(picture->resized_height_px, want.height_px);
        CHECK_INT(picture->feature_tokens, want.width_px / processor->geometry.crop_px * (want.height_px / processor->geometry.crop_px));
    } else CHECK_INT(picture->views * processor->geometry.crop_px, want.height_px);
    view_bytes = (size_t)picture->views * (size_t)processor->geometry.crop_px * (size_t)processor->geometry.crop_px * 3;
    uint8_t *views = (uint8_t *)calloc(view_bytes, 1);
    pixels = (float *)malloc(view_bytes * sizeof *pixels);
    if (!views || !pixels) abort();
    CHECK_INT(vp_processor_views(processor, picture, image.rgb, views), VP_OK);
    for (size_t i = 0, differing = 0; i <= view_bytes; i++) {
        if (i == view_bytes) { CHECK_INT(differing, 0); break; }
        size_t crop = (size_t)processor->geometry.crop_px, line = i / (crop * 3), view = line / crop, cols = is_native(model) ? (size_t)picture->tiling.cols : 1;
        differing += views[i] != want.rgb[((view / cols * crop + line % crop) * cols + view % cols) * crop * 3 + i % (crop * 3)];
    }
    vp_processor_pixels(processor, picture, views, pixels);
    check_values(model, name, processor, picture, pixels);
    FREE_ALL(views, pixels);
    vp_image_free(&image);
    vp_image_free(&want);
}
static void check_model_case(size_t model, const char *name) {
    static char question[TEXT_BYTES], text[TEXT_BYTES], expanded[TEXT_BYTES], image[TEXT_BYTES], got[TEXT_BYTES];
    char rest[64];
    vp_processor processor;
    vp_layout picture;
    size_t needed = 0, again = 0;
    snprintf(rest, sizeof rest, "%s/case.json", name);
    check_case("%s %s", models[model].name, name);
    if (!place(model, rest)) { check_skip(rest, "not among the committed goldens"); return; }
    if (!open_processor(model, &processor)) return;
    json_file *file = json_open(place(model, rest));
    if (!CHECK(file)) return;
    int has_image = json_text(file, "image", image) != NULL;
    if (!CHECK(json_text(file, "prompt", question)) || !CHECK(json_text(file, "text", text)) || !CHECK(json_text(file, "expanded_text", expanded))) return;
    if (strcmp(question, text) != 0) { /* the case was made with the chat template */
        CHECK_INT(vp_processor_prompt(models[model].kind, question, NULL, has_image, NULL, 0, &needed), VP_ERR_CAPACITY);
        CHECK_INT(vp_processor_prompt(models[model].kind, question, NULL, has_image, got, needed, &again), VP_ERR_CAPACITY);
        CHECK_INT(vp_processor_prompt(models[model].kind, question, NULL, has_image, got, needed + 1, &again), VP_OK);
        CHECK_INT(again, needed);
        CHECK_TEXT(got, text);
    }
    if (has_image) check_picture(model, name, &processor, image + strlen("../"), &picture);
    CHECK_INT(vp_processor_expand(&processor, &picture, has_image, text, NULL, 0, &needed), VP_ERR_CAPACITY);
    CHECK_INT(vp_processor_expand(&processor, &picture, has_image, text, got, needed + 1, &again), VP_OK);
    CHECK_TEXT(got, expanded);
    if (has_image) CHECK_INT(vp_processor_expand(&processor, NULL, 0, text, got, sizeof got, &needed), VP_ERR_MISMATCH);
}
static void test_templates(void) {
    for (size_t model = 0; model < MODELS; model++) {
        size_t bytes = 0;
        char *text = check_read(place(model, "checkpoint/chat_template.jinja"), &bytes);
        check_case("%s: chat template", models[model].name);
        if (!text && !strcmp(models[model].name, "qwen3_vl_moe")) { check_skip("chat template", "not among the committed goldens"); continue; }
        if (!CHECK(text)) continue;
        for (int kind = 0; kind < VP_PROCESSOR_COUNT; kind++)
            CHECK_INT(vp_processor_knows_template((vp_processor_kind)kind, text, bytes), kind == (int)models[model].kind
                          || (models[model].kind == VP_PROCESSOR_GEMMA3 && kind == VP_PROCESSOR_GEMMA3_TEXT));
        text[0]++;
        CHECK(!vp_processor_knows_template(models[model].kind, text, bytes));
        free(text);
    }
}
/* texts of language models with their chat templates, compared with transformers' result for " Q " */
static void test_text_kinds(void) {
    static const char chatml[] = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                                 "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    static const struct { vp_processor_kind kind; const char *text; } rows[] = {
        { VP_PROCESSOR_CHATML, "<|im_start|>user\n Q <|im_end|>\n<|im_start|>assistant\n" },
        { VP_PROCESSOR_QWEN2_5, "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
                                "<|im_start|>user\n Q <|im_end|>\n<|im_start|>assistant\n" },
        { VP_PROCESSOR_GEMMA3_TEXT, "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n" },
        { VP_PROCESSOR_PLAIN, " Q " },
    };
    size_t bytes = 0;
    char got[256], *gemma = check_read(check_golden("othermodels/gemma3/checkpoint/chat_template.jinja"), &bytes);
    check_case("chat templates of language models");
    CHECK_INT(vp_processor_text_kind(chatml, strlen(chatml)), VP_PROCESSOR_CHATML);
    CHECK_INT(vp_processor_text_kind(chatml, strlen(chatml) - 1), VP_PROCESSOR_PLAIN);
    CHECK_INT(vp_processor_text_kind(gemma, bytes), VP_PROCESSOR_GEMMA3_TEXT);
    CHECK_INT(vp_processor_text_kind("", 0), VP_PROCESSOR_PLAIN);
    free(gemma);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(vp_processor_prompt(rows[i].kind, " Q ", NULL, 0, got, sizeof got, &bytes), VP_OK);
        CHECK_TEXT(got, rows[i].text);
        CHECK_INT(vp_processor_prompt(rows[i].kind, " Q ", NULL, 1, got, sizeof got, &bytes), VP_ERR_RANGE);
    }
}
/* a model's file with `from` replaced by `to` is rejected with an error that names the setting */
static void test_refusals(void) {
    static const struct { size_t model; const char *from, *to; vp_result code; const char *where; } rows[] = {
        { 1, "\"do_resize\": true", "\"do_resize\": false", VP_ERR_UNSUPPORTED, "do_resize" },
        { 1, "\"do_center_crop\": true", "\"do_center_crop\": false", VP_ERR_UNSUPPORTED, "do_center_crop" },
        { 1, "\"resample\": 3", "\"resample\": 2", VP_ERR_UNSUPPORTED, "resample" },
        { 1, "0.00392156862745098", "0.0078", VP_ERR_UNSUPPORTED, "rescale_factor" },
        { 1, "\"shortest_edge\": 84", "\"shortest_edge\": 80", VP_ERR_UNSUPPORTED, "size.shortest_edge" },
        { 1, "\"shortest_edge\"", "\"height\"", VP_ERR_NOT_FOUND, "size.shortest_edge" },
        { 1, "\"width\": 84", "\"width\": 83", VP_ERR_MISMATCH, "crop_size" },
        { 2, "\"do_image_splitting\": true", "\"do_image_splitting\": false", VP_ERR_UNSUPPORTED, "do_image_splitting" },
        { 2, "\"longest_edge\": 64", "\"longest_edge\": 32", VP_ERR_MISMATCH, "max_image_size.longest_edge" },
        { 2, "\"longest_edge\": 256", "\"longest_edge\": 0", VP_ERR_RANGE, "longest_edge" },
        { 2, "\"resample\": 1", "\"resample\": 3", VP_ERR_UNSUPPORTED, "resample" },
        { 3, "\"max_patches\": 12", "\"max_patches\": null", VP_ERR_NOT_FOUND, "max_patches" },
        { 3, "\"height\": 56", "\"height\": 448", VP_ERR_MISMATCH, "size" },
        { 4, "\"min_pixels\": 3136", "\"min_pixels\": 0", VP_ERR_RANGE, "min_pixels" },
        { 4, "\"max_pixels\": 100352", "\"max_pixels\": 1e9", VP_ERR_RANGE, "max_pixels" },
        { 4, "\"patch_size\": 14", "\"patch_size\": 16", VP_ERR_MISMATCH, "patch_size" },
        { 4, "\"merge_size\": 2", "\"merge_size\": 1", VP_ERR_MISMATCH, "merge_size" },
        { 5, "\"longest_edge\"", "\"height\"", VP_ERR_NOT_FOUND, "max_pixels" },
        { 5, "\"temporal_patch_size\": 2", "\"temporal_patch_size\": 1", VP_ERR_MISMATCH, "temporal_patch_size" },
    };
    vp_processor processor;
    vp_layout picture;
    vp_geometry geometry = vp_geometry_default();
    vp_error error;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static vp_json_node nodes[400];
        char edited[4096], where[96];
        size_t bytes = 0;
        vp_json json;
        char *text = check_read(place(rows[i].model, "checkpoint/preprocessor_config.json"), &bytes), *at = text ? strstr(text, rows[i].from) : NULL;
        check_case("%s: %s", models[rows[i].model].name, rows[i].to);
        if (!CHECK(at)) { free(text); continue; }
        snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, rows[i].to, at + strlen(rows[i].from));
        CHECK_INT(vp_json_parse(edited, strlen(edited), nodes, 400, &json, NULL, NULL), VP_OK);
        geometry = geometry_of(rows[i].model, NULL);
        CHECK_INT(vp_processor_read(models[rows[i].model].kind, &geometry, &json, &processor, &error), rows[i].code);
        snprintf(where, sizeof where, "preprocessor_config.json: %s", rows[i].where);
        CHECK_TEXT(error.where, where);
        free(text);
    }
    check_case("a missing file, a file that is not an image, too many pixels");
    CHECK_INT(vp_processor_read(VP_PROCESSOR_LLAVA, &geometry, NULL, &processor, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_processor_read(VP_PROCESSOR_OLMOE, &geometry, NULL, &processor, &error), VP_OK);
    CHECK_INT(vp_processor_layout(&processor, 10, 10, &picture, &error), VP_ERR_UNSUPPORTED);
    if (open_processor(1, &processor)) CHECK_INT(vp_processor_layout(&processor, 1, 100000000, &picture, &error), VP_ERR_RANGE);
}
/* Gemma 3's crops (pan and scan) from its processor: two side by side, two of 259 and 258 rows, three of 67, 67 and 66 columns; and their text. c is cropped to its upper
 * rows. Also invalid values of the knobs. */
static void test_crops(void) {
    static const struct { const char *name; int32_t rows, cols; const char *knob; int32_t value; } cases[] = {
        { "pan-a", 1, 2, "min_crop_size", 40 }, { "pan-b", 2, 1, "max_num_crops", 3 }, { "pan-c", 1, 3, "min_crop_size", 50 } };
    static char text[TEXT_BYTES], expanded[TEXT_BYTES], path[TEXT_BYTES], got[TEXT_BYTES];
    size_t model = 0;
    vp_processor processor, fresh;
    vp_layout picture;
    vp_error error;
    while (models[model].kind != VP_PROCESSOR_GEMMA3) model++;
    if (!open_processor(model, &fresh)) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 0, needed = 0, differing = 0, count;
        char rest[64], *data;
        double height = 0;
        vp_image image, want;
        check_case("gemma3 %s", cases[i].name);
        snprintf(rest, sizeof rest, "%s/case.json", cases[i].name);
        json_file *file = json_open(place(model, rest));
        if (!CHECK(file) || !CHECK(json_text(file, "text", text)) || !CHECK(json_text(file, "expanded_text", expanded))
            || !CHECK(json_text(file, "image", path))) continue;
        CHECK_INT(vp_json_to_double(&file->json, vp_json_get(&file->json, 0, "rows"), &height), VP_OK);
        data = check_read(place(model, path + strlen("../")), &bytes);
        if (!CHECK(data) || !CHECK_INT(vp_image_decode((const uint8_t *)data, bytes, &image, &error), VP_OK)) continue;
        free(data);
        snprintf(rest, sizeof rest, "%s/pixels.png", cases[i].name);
        data = check_read(place(model, rest), &bytes);
        if (!CHECK(data) || !CHECK_INT(vp_image_decode((const uint8_t *)data, bytes, &want, &error), VP_OK)) continue;
        free(data);
        processor = fresh;
        CHECK_INT(vp_processor_set(&processor, cases[i].knob, cases[i].value, &error), VP_OK);
        CHECK_INT(vp_processor_layout(&processor, image.width_px, (int32_t)height, &picture, &error), VP_OK);
        CHECK_INT(picture.tiling.rows, cases[i].rows);
        CHECK_INT(picture.tiling.cols, cases[i].cols);
        CHECK_INT(picture.views, 1 + picture.tiling.rows * picture.tiling.cols);
        CHECK_INT(picture.views * processor.view_px, want.height_px);
        count = (size_t)want.height_px * (size_t)want.width_px * 3;
        uint8_t *views = (uint8_t *)calloc(count, 1);
        CHECK_INT(vp_processor_views(&processor, &picture, image.rgb, views), VP_OK);
        for (size_t at = 0; at < count; at++) differing += views[at] != want.rgb[at];
        CHECK_INT(differing, 0);
        CHECK_INT(vp_processor_expand(&processor, &picture, 1, text, got, sizeof got, &needed), VP_OK);
        CHECK_TEXT(got, expanded);
        free(views);
        vp_image_free(&image);
        vp_image_free(&want);
    }
    check_case("gemma3: knobs for crops");
    processor = fresh;
    CHECK_TEXT(vp_processor_knob(&processor, 0), "max_num_crops");
    CHECK_INT(vp_processor_layout(&processor, 900, 300, &picture, &error), VP_OK);
    CHECK_INT(picture.views, 1);
    CHECK_INT(vp_processor_aim(&processor, 900, 300, 4 * 4 * 4 - 1, &error), VP_OK);
    CHECK_INT(vp_processor_layout(&processor, 900, 300, &picture, &error), VP_OK);
    CHECK_INT(picture.feature_tokens, 48);
    CHECK_INT(vp_processor_set(&processor, "max_num_crops", 1, &error), VP_OK);
    CHECK_INT(vp_processor_layout(&processor, 900, 300, &picture, &error), VP_OK);
    CHECK_INT(picture.views, 1);
    CHECK_INT(vp_processor_set(&processor, "max_num_crops", 0, &error), VP_ERR_RANGE);
    CHECK_INT(vp_processor_set(&processor, "min_crop_size", 1, &error), VP_OK);
    CHECK_INT(vp_processor_set(&processor, "max_num_crops", 4, &error), VP_OK);
    CHECK_INT(vp_processor_layout(&processor, 9, 2, &picture, &error), VP_ERR_RANGE); /* the fourth crop would begin at column 9 */
}
/* the limits of an image's pixels: counted as in vlmprof_families.h, from the folder or set (transformers' smart_resize) */
static void test_pixel_limits(void) {
    static const struct { int32_t width, height; int64_t least, most; int32_t cols, rows; } rows[] = {
        { 200, 150, 0, 0, 7, 5 }, { 200, 150, 0, 28 * 28 * 12, 4, 3 }, { 40, 30, 28 * 28 * 20, 0, 6, 4 }, { 10, 1000, 0, 0, 1, 20 }, { 5, 5, 1, 0, 1, 1 },
        { 1000, 900, 0, 28 * 28 * 50, 7, 6 }
    };
    vp_processor processor;
    vp_layout picture;
    vp_vision_count count;
    vp_error error;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_case("pixels: %d x %d, %d to %d", rows[i].width, rows[i].height, (int)rows[i].least, (int)rows[i].most);
        if (!open_processor(4, &processor)) return;
        if (rows[i].least) CHECK_INT(vp_family_set_number(&processor.family, "min_pixels", (double)rows[i].least, &error), VP_OK);
        if (rows[i].most) CHECK_INT(vp_family_set_number(&processor.family, "max_pixels", (double)rows[i].most, &error), VP_OK);
        CHECK_INT(vp_processor_layout(&processor, rows[i].width, rows[i].height, &picture, &error), VP_OK);
        CHECK_INT(vp_family_count(&processor.family, rows[i].width, rows[i].height, &count, &error), VP_OK);
        CHECK_INT(picture.feature_tokens, count.feature_tokens);
        CHECK_INT(picture.tiling.cols, rows[i].cols);
        CHECK_INT(picture.tiling.rows, rows[i].rows);
        CHECK_INT(picture.views, picture.tiling.rows * picture.tiling.cols);
    }
    CHECK_INT(vp_processor_layout(&processor, 1, 1000, &picture, &error), VP_ERR_RANGE); /* sides whose ratio exceeds 200 */
}
/* sizes, limits and results of transformers' processor (tests/golden/families): the picture, its tokens, and the same number in the text */
static void test_pixel_counts(void) {
    static const struct { size_t model; const char *file; } files[] = { { 4, "families/qwen2_5_vl_hf.csv" }, { 5, "families/qwen3_vl_hf.csv" } };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = check_read(check_golden(files[i].file), NULL), *line = text ? strchr(text, '\n') : NULL;
        vp_processor fresh, processor;
        vp_layout picture;
        vp_error error;
        int refused = 0, counted = 0;
        check_case("%s", files[i].file);
        if (!CHECK(line) || !open_processor(files[i].model, &fresh)) { free(text); continue; }
        for (; line && line[1]; line = strchr(line + 1, '\n')) {
            int width, height, least, most, new_width, new_height, rows, cols, tokens, fields;
            size_t needed = 0, around = 0;
            fields = sscanf(line + 1, "%d,%d,%d,%d,%d,%d,%d,%d,,%d", &width, &height, &least, &most, &new_width, &new_height, &rows, &cols, &tokens);
            if (!CHECK(fields == 9 || fields == 4)) break;
            processor = fresh;
            CHECK_INT(vp_processor_set(&processor, "min_pixels", 1, &error), VP_OK);
            CHECK_INT(vp_processor_set(&processor, "max_pixels", most, &error), VP_OK);
            CHECK_INT(vp_processor_set(&processor, "min_pixels", least, &error), VP_OK);
            if (fields == 4) { /* the processor itself rejects the size */
                CHECK_INT(vp_processor_layout(&processor, width, height, &picture, &error), VP_ERR_RANGE);
                refused++;
                continue;
            }
            if (!CHECK_INT(vp_processor_layout(&processor, width, height, &picture, &error), VP_OK)) continue;
            CHECK_INT(picture.resized_width_px, new_width);
            CHECK_INT(picture.resized_height_px, new_height);
            CHECK_INT(picture.tiling.rows * processor.geometry.pool, rows);
            CHECK_INT(picture.tiling.cols * processor.geometry.pool, cols);
            CHECK_INT(picture.feature_tokens, tokens);
            vp_processor_expand(&processor, &picture, 1, "<|image_pad|>", NULL, 0, &needed);
            vp_processor_expand(&processor, NULL, 0, "", NULL, 0, &around);
            CHECK_INT(needed, (size_t)tokens * strlen("<|image_pad|>") + around);
            counted++;
        }
        CHECK(counted > 100);
        if (getenv("VERBOSE")) printf("%s: %d sizes equal, %d refused by both\n", files[i].file, counted, refused);
        free(text);
    }
}
/* max_pixels and min_pixels as knobs, and max_pixels from a target: no larger value stays within it */
static void test_pixel_knobs(void) {
    vp_processor processor, other;
    vp_layout picture;
    vp_error error;
    check_case("pixels as knobs");
    if (!open_processor(4, &processor)) return;
    CHECK_TEXT(vp_processor_knob(&processor, 0), "max_pixels");
    CHECK_TEXT(vp_processor_knob(&processor, 1), "min_pixels");
    CHECK(!vp_processor_knob(&processor, 2));
    CHECK_INT(vp_processor_set(&processor, "longest_edge", 1, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_processor_set(&processor, "max_pixels", VP_PROCESSOR_VIEW_PIXELS_MAX + 1, &error), VP_ERR_RANGE);
    CHECK_INT(vp_processor_set(&processor, "min_pixels", 0, &error), VP_ERR_RANGE);
    other = processor;
    CHECK_INT(vp_processor_set(&processor, "max_pixels", 3135, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "is below min_pixels, which is 3136");
    CHECK(memcmp(&processor, &other, sizeof other) == 0);
    CHECK_INT(vp_processor_set(&processor, "max_pixels", 3136, &error), VP_OK);
    CHECK_INT(vp_processor_set(&processor, "min_pixels", 3137, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "is above max_pixels, which is 3136");
    CHECK_INT(vp_processor_layout(&processor, 640, 480, &picture, &error), VP_OK);
    CHECK_INT(picture.feature_tokens, 2);
    for (int32_t width = 30; width <= 1500; width = width * 3 / 2)
        for (int32_t tokens = 4; tokens <= 1500; tokens = tokens * 5 / 3) {
            const int32_t height = 600;
            processor = other;
            if (vp_processor_aim(&processor, width, height, tokens, &error) != VP_OK) { /* even the minimum that min_pixels allows is too much */
                CHECK_INT(vp_processor_set(&processor, "max_pixels", 3136, &error), VP_OK);
                CHECK(vp_processor_layout(&processor, width, height, &picture, &error) != VP_OK || picture.feature_tokens > tokens);
                continue;
            }
            int64_t most = processor.family.value[VP_SLOT_MAX];
            CHECK_INT(vp_processor_layout(&processor, width, height, &picture, &error), VP_OK);
            CHECK(picture.feature_tokens <= tokens);
            for (int64_t more = most + 1; more < 4 * most && more <= VP_PROCESSOR_VIEW_PIXELS_MAX; more += most / 7 + 1) {
                CHECK_INT(vp_processor_set(&processor, "max_pixels", (int32_t)more, &error), VP_OK);
                CHECK(vp_processor_layout(&processor, width, height, &picture, &error) != VP_OK || picture.feature_tokens > tokens);
            }
        }
    processor = other;
    CHECK_INT(vp_processor_aim(&processor, 640, 480, 1, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "vision_tokens");
    CHECK(memcmp(&processor, &other, sizeof other) == 0);
    CHECK_INT(vp_processor_aim(&processor, 1, 1000, 100, &error), VP_ERR_RANGE); /* sides whose ratio exceeds 200 */
}
/* a flat image stays flat under both filters, at any size: the weights of a pixel sum to one level */
static void test_resize(void) {
    static uint8_t from[64 * 48 * 3], to[200 * 200 * 3];
    check_case("resize: flat images, unchanged sizes, errors");
    for (int filter = 0; filter < 2; filter++)
        for (int32_t side = 1; side <= 200; side += 37)
            for (int level = 0; level < 256; level += 51) {
                memset(from, level, sizeof from);
                CHECK_INT(vp_processor_resize(from, 64, 48, to, side, 201 - side, (vp_filter)filter), VP_OK);
                for (int32_t i = 0; i < side * (201 - side) * 3; i++) CHECK_INT(to[i], level);
            }
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * 7);
    CHECK_INT(vp_processor_resize(from, 64, 48, to, 64, 48, VP_FILTER_LANCZOS), VP_OK);
    CHECK(memcmp(from, to, sizeof from) == 0);
    CHECK_INT(vp_processor_resize(from, 64, 48, to, 0, 48, VP_FILTER_LANCZOS), VP_ERR_RANGE);
    CHECK_INT(vp_processor_resize(NULL, 64, 48, to, 64, 48, VP_FILTER_LANCZOS), VP_ERR_RANGE);
}

/* Linear between pixel centres, with the border's value outside: Molmo2's filter, against the same in double precision. `shift` damages it. */
static double plain_at(const uint8_t *rgb, int32_t width, int32_t height, double x, double y, int channel) {
    const double across = fmin(fmax(x, 0), width - 1), down = fmin(fmax(y, 0), height - 1);
    const int32_t left = (int32_t)across, top = (int32_t)down, right = left < width - 1 ? left + 1 : left, bottom = top < height - 1 ? top + 1 : top;
    const double upper = rgb[(top * width + left) * 3 + channel] * (1 - (across - left)) + rgb[(top * width + right) * 3 + channel] * (across - left),
                 lower = rgb[(bottom * width + left) * 3 + channel] * (1 - (across - left)) + rgb[(bottom * width + right) * 3 + channel] * (across - left);
    return upper * (1 - (down - top)) + lower * (down - top);
}
static double plain_worst(const uint8_t *from, int32_t width, int32_t height, const uint8_t *to, int32_t new_width, int32_t new_height, double shift) {
    double worst = 0;
    for (int32_t i = 0; i < new_width * new_height * 3; i++) {
        const double x = (i / 3 % new_width + 0.5) * width / new_width - 0.5 + shift, y = (i / 3 / new_width + 0.5) * height / new_height - 0.5 + shift;
        worst = fmax(worst, fabs(to[i] - plain_at(from, width, height, x, y, i % 3)));
    }
    return worst;
}
static void test_resize_plain(void) {
    static const int32_t sides[][4] = { { 23, 17, 46, 34 }, { 23, 17, 9, 5 }, { 23, 17, 50, 6 }, { 23, 17, 7, 64 }, { 23, 17, 23, 17 }, { 23, 17, 1, 1 },
                                       { 1, 1, 5, 4 }, { 2, 391, 3, 60 } };
    static uint8_t from[23 * 17 * 3 * 2], to[64 * 64 * 3];
    /* half a level from rounding to 8 bits; a float coordinate is off by 4 roundings of up to 391, which each of two axes turns into levels */
    const double tolerance = 0.5 + 2 * 255 * 391 * 4 * ldexp(1, -24);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * i * 31 + i * 7);
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        const int32_t *s = sides[i];
        check_case("plain resize, %d x %d to %d x %d", (int)s[0], (int)s[1], (int)s[2], (int)s[3]);
        CHECK_INT(vp_processor_resize_plain(from, s[0], s[1], to, s[2], s[3]), VP_OK);
        CHECK_NEAR(plain_worst(from, s[0], s[1], to, s[2], s[3], 0), 0, tolerance);
        CHECK(s[0] == 1 || plain_worst(from, s[0], s[1], to, s[2], s[3], 0.25) > 2 * tolerance);
    }
    check_case("plain resize: errors");
    CHECK_INT(vp_processor_resize_plain(from, 23, 17, to, 0, 5), VP_ERR_RANGE);
    CHECK_INT(vp_processor_resize_plain(from, 23, 0, to, 5, 5), VP_ERR_RANGE);
    CHECK_INT(vp_processor_resize_plain(NULL, 23, 17, to, 5, 5), VP_ERR_RANGE);
    CHECK_INT(vp_processor_resize_plain(from, 23, 17, NULL, 5, 5), VP_ERR_RANGE);
    CHECK_INT(vp_processor_resize_plain(from, 1 << 20, 1 << 20, to, 5, 5), VP_ERR_RANGE);
}

/* Idefics3: from views of 40 pixels, the tower reads 6 x 6 patches of 6 pixels. The last rows and columns are computed but not read. */
static void test_part_of_a_patch(void) {
    static const char text[] = "{\"size\": {\"longest_edge\": 80}, \"max_image_size\": {\"longest_edge\": %d}}";
    static const int32_t sides[] = { 36, 40, 41, 42, 35 };
    vp_geometry geometry = vp_geometry_default();
    vp_error error;
    geometry.crop_px = 36; geometry.patch_px = 6; geometry.pool = 3; geometry.margin_left_patches = geometry.margin_right_patches = 0;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        static uint8_t rgb[80 * 40 * 3], views[3 * 41 * 41 * 3];
        static float pixels[3 * 36 * 36 * 3];
        static vp_json_node nodes[20];
        const int32_t side = sides[i];
        char file[200];
        vp_json json;
        vp_processor processor;
        vp_layout picture;
        vp_result wanted = side >= 36 && side < 42 ? VP_OK : VP_ERR_MISMATCH;
        check_case("views of %d pixels, patches of 6", (int)side);
        snprintf(file, sizeof file, text, (int)side);
        CHECK_INT(vp_json_parse(file, strlen(file), nodes, 20, &json, NULL, NULL), VP_OK);
        if (!CHECK_INT(vp_processor_read(VP_PROCESSOR_IDEFICS3, &geometry, &json, &processor, &error), wanted) || wanted != VP_OK) continue;
        CHECK_INT(processor.view_px, side);
        if (side != 40) continue;
        for (size_t at = 0; at < sizeof rgb; at++) rgb[at] = (uint8_t)(at * 7 + at / 240 * 31);
        if (!CHECK_INT(vp_processor_layout(&processor, 80, 40, &picture, &error), VP_OK)) continue;
        CHECK(picture.tiling.rows == 1 && picture.tiling.cols == 2 && picture.views == 3 && picture.feature_tokens == 3 * 4);
        CHECK_INT(vp_processor_views(&processor, &picture, rgb, views), VP_OK);
        vp_processor_pixels(&processor, &picture, views, pixels);
        for (int32_t at = 0; at < 2 * 36 * 36; at++) { /* without resizing: the pixels of the picture */
            const int32_t view = at / 1296, patch = at % 1296 / 36, y = patch / 6 * 6 + at % 36 / 6, x = patch % 6 * 6 + at % 6 + view * 40;
            const float want = ((float)rgb[(y * 80 + x) * 3] - (float)((double)geometry.mean[0] * 255.0)) / (float)((double)geometry.std[0] * 255.0);
            if (!CHECK(pixels[at * 3] == want)) break;
        }
    }
}

int main(void) {
    test_part_of_a_patch();
    for (size_t model = 0; model < MODELS; model++)
        for (int i = 0; i < 3; i++) check_model_case(model, models[model].cases[i]);
    RUN_TESTS(test_templates, test_text_kinds, test_refusals, test_crops, test_pixel_limits, test_pixel_counts, test_pixel_knobs, test_resize, test_resize_plain);
    return check_done("test_processor");
}
