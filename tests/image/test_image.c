/* test_image.c: pixels, masks and image files against the reference's own outputs (goldens/preprocess: PNG values within 2e-6, PNG bytes by SHA-256, JPEG within the
 * differences of decoders), against a second, plain implementation of the resize rules (bit for bit, random sizes), and against hostile files made here. */
#define VLMPROF_IMAGE_IMPLEMENTATION
#include "vlmprof_json.h"
#include "vlmprof_image.h"
#include "base/files.h"
#include "support/check.h"
#include "support/json_file.h"

/* ---- small helpers */
static uint32_t random_state = 20261121u;
static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}
static int64_t json_int(const json_file *f, uint32_t node) {
    int64_t value = INT64_MIN;
    if (node != VP_JSON_NONE) vp_json_to_int(&f->json, node, &value);
    return value;
}
static int64_t json_pair(const json_file *f, const char *key, uint32_t index) {
    return json_int(f, vp_json_at(&f->json, vp_json_get(&f->json, 0, key), index));
}
static void json_string(const json_file *f, const char *key, char *out, size_t capacity) {
    size_t needed;
    uint32_t node = vp_json_get(&f->json, 0, key);
    out[0] = 0;
    if (node != VP_JSON_NONE) vp_json_text(&f->json, node, out, capacity, &needed);
}
static const char *golden_at(const char *name, const char *file) {
    char relative[256];
    snprintf(relative, sizeof relative, "preprocess/cases/%s/%s", name, file);
    return check_golden(relative);
}
static int same_bits(float a, float b) { return memcmp(&a, &b, 4) == 0; }
/* a new array of floats; outputs are filled with NaN, so an unwritten value exceeds every tolerance */
static float *poisoned(size_t count) {
    float *values = (float *)malloc((count + 16) * sizeof(float));
    for (size_t i = 0; values && i < count + 16; i++) values[i] = (float)NAN;
    return values;
}
static int fence_stands(const float *values, size_t count) {
    for (size_t i = count; i < count + 16; i++) if (values[i] == values[i]) return 0;
    return 1;
}

/* ---- goldens */
typedef struct produced { vp_geometry geometry; vp_layout layout; size_t pixel_count, mask_count; float *pixels, *masks; } produced;
static int produce(const vp_image *image, const vp_tile_options *options, produced *p) {
    memset(p, 0, sizeof *p);
    p->geometry = vp_geometry_default();
    if (!CHECK_INT(vp_layout_compute(&p->geometry, options, image->width_px, image->height_px, &p->layout, NULL), VP_OK)) return 0;
    p->pixel_count = vp_preprocess_pixel_count(&p->geometry, &p->layout);
    p->mask_count = (size_t)p->layout.views * 576;
    CHECK_INT(p->pixel_count, (int64_t)p->layout.views * 576 * 588);
    size_t scratch_bytes = vp_preprocess_scratch_bytes(&p->geometry, &p->layout);
    CHECK(scratch_bytes > 0);
    void *scratch = malloc(scratch_bytes); /* the exact size, so that the address sanitizer detects an overrun */
    p->pixels = poisoned(p->pixel_count);
    p->masks = poisoned(p->mask_count);
    vp_result result = vp_preprocess(&p->geometry, &p->layout, image->rgb, p->pixels, p->masks, scratch, scratch_bytes);
    free(scratch);
    return CHECK_INT(result, VP_OK) && CHECK(fence_stands(p->pixels, p->pixel_count)) && CHECK(fence_stands(p->masks, p->mask_count));
}
static void produced_free(produced *p) { free(p->pixels); free(p->masks); }

static vp_tile_options options_of(const char *mode) {
    vp_tile_options options = vp_tile_options_default();
    if (strcmp(mode, "adaptive-fill") == 0) options.fit = VP_FIT_FILL;
    else if (strncmp(mode, "adaptive", 8) != 0) {
        options.rule = VP_TILE_TIER;
        options.fit = VP_FIT_FILL;
        options.tier = vp_tier_find(mode);
    }
    return options;
}

static void check_picture(const json_file *f, const vp_image *image, int png, int loose) {
    char want[80], got[80];
    uint32_t samples = vp_json_get(&f->json, 0, "rgb_samples_x_y_r_g_b"), i, c;
    int32_t levels = png ? 0 : loose ? 27 : 3;
    CHECK_INT(image->width_px, json_pair(f, "size_wh", 0));
    CHECK_INT(image->height_px, json_pair(f, "size_wh", 1));
    CHECK(samples != VP_JSON_NONE && f->nodes[samples].count == 24);
    for (i = 0; i < 24; i++) {
        uint32_t row = vp_json_at(&f->json, samples, i);
        int64_t x = json_int(f, vp_json_at(&f->json, row, 0)), y = json_int(f, vp_json_at(&f->json, row, 1));
        for (c = 0; c < 3; c++)
            CHECK_NEAR(image->rgb[((size_t)y * (size_t)image->width_px + (size_t)x) * 3 + c], json_int(f, vp_json_at(&f->json, row, 2 + c)), levels);
    }
    if (!png) return;
    json_string(f, "rgb_sha256", want, sizeof want);
    sha256_text(image->rgb, (size_t)image->width_px * (size_t)image->height_px * 3, got);
    CHECK_TEXT(got, want);
}

static void check_layout(const json_file *f, const vp_layout *layout, int fill) {
    CHECK_INT(layout->tiling.rows, json_pair(f, "tiling", 0));
    CHECK_INT(layout->tiling.cols, json_pair(f, "tiling", 1));
    CHECK_INT(layout->views, json_int(f, vp_json_get(&f->json, 0, "images")));
    CHECK_INT(layout->canvas_width_px, json_pair(f, "target_canvas_wh", 0));
    CHECK_INT(layout->canvas_height_px, json_pair(f, "target_canvas_wh", 1));
    CHECK_INT(layout->resized_width_px, json_pair(f, "resized_wh", 0));
    CHECK_INT(layout->resized_height_px, json_pair(f, "resized_wh", 1));
    CHECK_INT(layout->offset_left_px, json_pair(f, fill ? "crop_left_top" : "pad_left_top", 0));
    CHECK_INT(layout->offset_top_px, json_pair(f, fill ? "crop_left_top" : "pad_left_top", 1));
    CHECK_INT(layout->global_resized_width_px, json_pair(f, "global_resized_wh", 0));
    CHECK_INT(layout->global_resized_height_px, json_pair(f, "global_resized_wh", 1));
}

/* sampled pixels, masks, and sum and sum of squares of every view */
static void check_values(const char *name, const produced *p, int png, int loose) {
    check_array index, value, masks, sums;
    double worst = 0, total = 0, tolerance = png ? 2e-6 : loose ? 0.45 : 0.05;
    if (!CHECK(check_npy(golden_at(name, "pixels_index.npy"), &index) && check_npy(golden_at(name, "pixels_value.npy"), &value))) return;
    CHECK(index.count == 3 * value.count && value.count > 0);
    for (int64_t i = 0; i < value.count; i++) {
        size_t at = ((size_t)check_at(&index, 3 * i) * 576 + (size_t)check_at(&index, 3 * i + 1)) * 588 + (size_t)check_at(&index, 3 * i + 2);
        double got = at < p->pixel_count ? (double)p->pixels[at] : NAN, difference = fabs(got - check_at(&value, i));
        if (!(difference <= worst)) worst = difference;
        total += difference;
    }
    CHECK_NEAR(worst, 0, tolerance);
    CHECK_NEAR(total / (double)value.count, 0, png ? 1e-7 : loose ? 0.005 : 0.003);
    check_free(&index);
    check_free(&value);
    if (!CHECK(check_npy(golden_at(name, "image_masks.npy"), &masks))) return;
    CHECK_INT(masks.count, (int64_t)p->mask_count);
    for (int64_t i = 0; i < masks.count && (size_t)i < p->mask_count; i++) CHECK_NEAR(p->masks[i], check_at(&masks, i), 1e-6);
    check_free(&masks);
    if (!png || !CHECK(check_npy(golden_at(name, "crop_sums.npy"), &sums))) return;
    CHECK_INT(sums.shape[0], p->layout.views);
    for (int64_t k = 0; k < sums.shape[0]; k++) {
        double sum = 0, squares = 0, absolute = 0, room;
        for (int64_t i = 0; i < 576 * 588; i++) {
            double v = (double)p->pixels[k * 576 * 588 + i];
            sum += v;
            squares += v * v;
            absolute += fabs(v);
        }
        room = 1e-6 * absolute > 0.05 ? 1e-6 * absolute : 0.05;
        CHECK_NEAR(sum, check_at(&sums, 2 * k), room);
        CHECK_NEAR(squares, check_at(&sums, 2 * k + 1), room);
    }
    check_free(&sums);
}

static int decode_golden(const char *relative, vp_image *image) {
    char path[256];
    size_t bytes = 0;
    int32_t width = 0, height = 0;
    vp_error error;
    snprintf(path, sizeof path, "preprocess/%s", relative);
    memset(image, 0, sizeof *image);
    uint8_t *file = (uint8_t *)check_read(check_golden(path), &bytes);
    if (!CHECK(file != NULL)) return 0;
    int good = CHECK_INT(vp_image_size(file, bytes, &width, &height, &error), VP_OK) && CHECK_INT(vp_image_decode(file, bytes, image, &error), VP_OK);
    CHECK_INT(width, image->width_px);
    CHECK_INT(height, image->height_px);
    free(file);
    return good;
}

static int check_case_named(const char *name) {
    json_file f;
    char file[128], mode[64];
    vp_image image;
    produced p;
    const char *path = golden_at(name, "case.json");
    if (!path || !golden_at(name, "pixels_value.npy")) return 0; /* other tests may include only part of a case */
    check_case("golden %s", name);
    if (!CHECK(json_open(path, &f))) return 1;
    json_string(&f, "image", file, sizeof file);
    json_string(&f, "mode", mode, sizeof mode);
    int png = strstr(file, ".png") != NULL;
    int loose = strstr(file, "422") != NULL;
    vp_tile_options options = options_of(mode);
    if (decode_golden(file, &image)) {
        if (strcmp(mode, "adaptive-hf-load") == 0) { /* made from the stored picture, so turn it back (8 undoes 6) */
            uint8_t *stored = vp_impl_image_upright(image.rgb, 8, &image.width_px, &image.height_px);
            vp_impl_rgb_free(image.rgb);
            image.rgb = stored;
        }
        check_picture(&f, &image, png, loose);
        if (produce(&image, &options, &p)) {
            check_layout(&f, &p.layout, options.fit == VP_FIT_FILL);
            check_values(name, &p, png, loose);
        }
        produced_free(&p);
    }
    vp_image_free(&image);
    json_close(&f);
    return 1;
}

static void test_goldens(void) {
    json_file list;
    uint32_t node, left_out = 0;
    char name[128], text[96];
    size_t needed;
    check_case("list of golden cases");
    if (!CHECK(json_open(check_golden("preprocess/cases.json"), &list))) return;
    CHECK_INT(list.nodes[0].count, 73);
    for (node = 1; node < list.nodes[0].end; node = list.nodes[node].end) {
        vp_json_text(&list.json, node, name, sizeof name, &needed);
        if (!check_case_named(name)) left_out++;
    }
    json_close(&list);
    snprintf(text, sizeof text, "%u golden cases", left_out);
    if (left_out) check_skip(text, "they are only in ../shared/goldens/preprocess");
}

/* ---- a second resize, pixel by pixel from the whole picture, without skipping or caching: it must give the same bits */
static float plain_weight(int32_t in, int32_t out, int32_t i, int32_t *low, int32_t *count, float *weights) {
    volatile float scale = (float)in / (float)out, half = (float)i + 0.5f, centre = scale * half, inverse = scale >= 1 ? 1.0f / scale : 1.0f;
    volatile float support = scale > 1 ? scale : 1.0f, begin = centre - support, end = centre + support, sum = 0;
    int32_t high = (int32_t)(end + 0.5f), j;
    *low = (int32_t)(begin + 0.5f) > 0 ? (int32_t)(begin + 0.5f) : 0;
    if (high > in) high = in;
    *count = high - *low;
    for (j = 0; j < *count; j++) {
        volatile float distance = (float)(j + *low) - centre, middle = distance + 0.5f, scaled = middle * inverse;
        weights[j] = 1.0f - fabsf(scaled) > 0 ? 1.0f - fabsf(scaled) : 0.0f;
        sum = sum + weights[j];
    }
    for (j = 0; j < *count; j++) weights[j] /= sum;
    return sum;
}
static float plain_pixel(const vp_image *image, int32_t out_width, int32_t out_height, int32_t x, int32_t y, int32_t channel) {
    static float across[4096], down[4096];
    int32_t left, top, columns, lines, i, j;
    float value = 0, sum;
    plain_weight(image->width_px, out_width, x, &left, &columns, across);
    plain_weight(image->height_px, out_height, y, &top, &lines, down);
    if (out_width == image->width_px) { left = x; columns = 1; across[0] = 1; }
    if (out_height == image->height_px) { top = y; lines = 1; down[0] = 1; }
    for (i = 0; i < lines; i++) {
        const uint8_t *row = image->rgb + ((size_t)(top + i) * (size_t)image->width_px + (size_t)left) * 3 + channel;
        sum = (float)row[0] / 255.0f * across[0];
        for (j = 1; j < columns; j++) sum = fmaf((float)row[3 * j] / 255.0f, across[j], sum);
        value = i ? fmaf(sum, down[i], value) : sum * down[0];
    }
    return value < 0 ? 0 : value > 1 ? 1 : value;
}
/* one value of one view, computed from its definition */
static float plain_value(const vp_image *image, const vp_geometry *g, const vp_layout *l, int32_t view, int32_t patch, int32_t element) {
    int32_t crop = view - 1, channel = element % 3, side = g->crop_px / g->patch_px;
    int32_t x = patch % side * g->patch_px + element / 3 % g->patch_px, y = patch / side * g->patch_px + element / 3 / g->patch_px;
    int32_t width = view ? l->resized_width_px : l->global_resized_width_px, height = view ? l->resized_height_px : l->global_resized_height_px;
    int32_t left = view ? l->offset_left_px : l->global_offset_left_px, top = view ? l->offset_top_px : l->global_offset_top_px;
    float value = 0;
    if (view) {
        x += crop % l->tiling.cols * vp_geometry_window_px(g);
        y += crop / l->tiling.cols * vp_geometry_window_px(g);
    }
    x = l->fit == VP_FIT_PAD ? x - left : x + left;
    y = l->fit == VP_FIT_PAD ? y - top : y + top;
    if (x >= 0 && x < width && y >= 0 && y < height) value = plain_pixel(image, width, height, x, y, channel);
    return (value - g->mean[channel]) / g->std[channel];
}

/* the vector loops against the plain ones, on every remainder of the vector width */
/* the whole resize is within rounding of the plain one, for random sizes; nothing is written after the pixels */
static void test_resize(void) {
    check_case("a resized image equals the plain resize, rounded");
    for (int turn = 0; turn < 40; turn++) {
        const int32_t width = 1 + (int32_t)random_below(90), height = 1 + (int32_t)random_below(90);
        const int32_t new_width = turn ? 1 + (int32_t)random_below(120) : width, new_height = turn ? 1 + (int32_t)random_below(120) : height;
        const size_t bytes = (size_t)width * (size_t)height * 3, new_bytes = (size_t)new_width * (size_t)new_height * 3;
        uint8_t *rgb = malloc(bytes), *resized = malloc(new_bytes + 1);
        vp_image image = {width, height, rgb};
        double worst = 0;
        for (size_t i = 0; i < bytes; i++) rgb[i] = (uint8_t)random_below(256);
        resized[new_bytes] = 0xa5;
        CHECK_INT(vp_image_resize(rgb, width, height, resized, new_width, new_height), VP_OK);
        for (size_t i = 0; i < new_bytes; i++) {
            const int32_t pixel = (int32_t)(i / 3);
            double off = fabs(resized[i] - 255.0 * (double)plain_pixel(&image, new_width, new_height, pixel % new_width, pixel / new_width, (int32_t)(i % 3)));
            worst = off > worst ? off : worst;
        }
        CHECK(worst <= 0.5 + 1e-3); /* half a level, plus float32 rounding of values up to 255 over several hundred products */
        CHECK_INT(resized[new_bytes], 0xa5);
        if (!turn) CHECK(!memcmp(rgb, resized, bytes)); /* the same size: the same image */
        FREE_ALL(rgb, resized);
    }
    check_case("invalid sizes are rejected");
    uint8_t one[3] = {1, 2, 3}, out[3] = {9, 9, 9};
    {
        uint8_t three[9] = {1, 2, 3, 50, 60, 70, 200, 210, 220}, wanted[6];
        const vp_image image = {3, 1, three};
        vp_image made = {0, 0, NULL};
        CHECK_INT(vp_image_resized(&image, 2, 1, &made), VP_OK);
        CHECK_INT(vp_image_resize(three, 3, 1, wanted, 2, 1), VP_OK);
        CHECK(made.width_px == 2 && made.height_px == 1 && memcmp(made.rgb, wanted, sizeof wanted) == 0);
        vp_image_free(&made);
        CHECK_INT(vp_image_resized(&image, 3, 1, &made), VP_OK);
        CHECK(made.rgb != three && memcmp(made.rgb, three, sizeof three) == 0);
        vp_image_free(&made);
        CHECK_INT(vp_image_resized(&image, 0, 1, &made), VP_ERR_RANGE);
        CHECK_INT(vp_image_resized(&image, 10001, 10000, &made), VP_ERR_RANGE);
        CHECK(made.rgb == NULL);
    }
    CHECK_INT(vp_image_resize(NULL, 1, 1, out, 1, 1), VP_ERR_RANGE);
    CHECK_INT(vp_image_resize(one, 1, 1, NULL, 1, 1), VP_ERR_RANGE);
    CHECK_INT(vp_image_resize(one, 0, 1, out, 1, 1), VP_ERR_RANGE);
    CHECK_INT(vp_image_resize(one, 1, 1, out, 1, 0), VP_ERR_RANGE);
    CHECK_INT(vp_image_resize(one, 1, 1, out, 10001, 10000), VP_ERR_RANGE);
    CHECK_INT(vp_image_resize(one, INT32_MAX, INT32_MAX, out, 1, 1), VP_ERR_RANGE);
    CHECK(out[0] == 9 && out[1] == 9 && out[2] == 9);
}
static void test_loops(void) {
#ifdef VP_IMPL_PREPROCESS_AVX2
    static float line[1200], weights[1200], a[1200], b[1200];
    static uint8_t bytes[1200];
    int32_t first[64], taps, count, i;
    vp_impl_resizer r = {0};
    const float *rows[8];
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        check_skip("vector loops", "this processor has no AVX2 with FMA");
        return;
    }
    check_case("vector loops give the same bits as plain loops");
    for (i = 0; i < 1200; i++) {
        bytes[i] = (uint8_t)random_below(256);
        line[i] = (float)random_below(1u << 24) / 16777216.0f;
        weights[i] = (float)random_below(1u << 24) / 30000000.0f;
    }
    for (count = 0; count < 70; count++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        vp_impl_row_to_float(bytes + count, (size_t)count, a);
        vp_impl_row_to_float_avx2(bytes + count, (size_t)count, b);
        CHECK(memcmp(a, b, sizeof a) == 0);
    }
    for (taps = 1; taps <= 8; taps++) {
        for (i = 0; i < 64; i++) first[i] = (int32_t)random_below(380);
        vp_impl_row_filter(line, first, weights, taps, 64, a);
        vp_impl_row_filter_avx2(line, first, weights, taps, 64, b);
        CHECK(memcmp(a, b, 64 * 3 * sizeof(float)) == 0);
        for (i = 0; i < taps; i++) rows[i] = line + 100 * i;
        for (i = 0; i < VP_IMPL_LANES; i++) { r.mean[i] = 0.1f * (float)(i % 3); r.std[i] = 0.3f + 0.1f * (float)(i % 3); }
        r.rows = rows;
        r.y_weights = weights + taps;
        vp_impl_row_blend(&r, taps, 96, a);
        vp_impl_row_blend_avx2(&r, taps, 96, b);
        CHECK(memcmp(a, b, 96 * sizeof(float)) == 0);
    }
#else
    check_skip("vector loops", "this build has only the plain ones");
#endif
}

static void test_limits(void) {
    vp_geometry geometry = vp_geometry_default(), bad;
    vp_tile_options options = options_of("high");
    vp_layout layout, broken;
    uint8_t rgb[48] = {0};
    float *pixels = poisoned(16 * 576 * 588), *masks = poisoned(16 * 576);
    int32_t *fields[12];
    check_case("scratch size is limited by the canvas, not by the resized image");
    CHECK_INT(vp_layout_compute(&geometry, &options, 1, 5000, &layout, NULL), VP_OK);
    CHECK(vp_preprocess_scratch_bytes(&geometry, &layout) < 100000);
    CHECK_INT(vp_layout_compute(&geometry, &options, 10000, 10000, &layout, NULL), VP_OK);
    CHECK(vp_preprocess_scratch_bytes(&geometry, &layout) < 2000000);
    check_case("errors of vp_preprocess leave the outputs unchanged");
    CHECK_INT(vp_layout_compute(&geometry, &options, 4, 4, &layout, NULL), VP_OK);
    size_t needed = vp_preprocess_scratch_bytes(&geometry, &layout);
    void *scratch = malloc(needed);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, pixels, masks, scratch, needed - 1), VP_ERR_CAPACITY);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, pixels, masks, scratch, 0), VP_ERR_CAPACITY);
    CHECK_INT(vp_preprocess(NULL, &layout, rgb, pixels, masks, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess(&geometry, NULL, rgb, pixels, masks, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess(&geometry, &layout, NULL, pixels, masks, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, NULL, masks, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, pixels, NULL, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, pixels, masks, NULL, needed), VP_ERR_RANGE);
    bad = geometry;
    bad.std[1] = 0;
    CHECK_INT(vp_preprocess(&bad, &layout, rgb, pixels, masks, scratch, needed), VP_ERR_RANGE);
    bad = geometry;
    bad.mean[0] = (float)NAN;
    CHECK_INT(vp_preprocess(&bad, &layout, rgb, pixels, masks, scratch, needed), VP_ERR_RANGE);
    fields[0] = &broken.width_px; fields[1] = &broken.height_px; fields[2] = &broken.tiling.rows; fields[3] = &broken.tiling.cols;
    fields[4] = &broken.views; fields[5] = &broken.canvas_width_px; fields[6] = &broken.canvas_height_px; fields[7] = &broken.resized_width_px;
    fields[8] = &broken.resized_height_px; fields[9] = &broken.offset_left_px; fields[10] = &broken.global_resized_width_px;
    fields[11] = &broken.global_offset_top_px;
    for (size_t i = 0; i < 12; i++) {
        static const int32_t values[] = {0, -1, INT32_MIN, INT32_MAX};
        for (size_t k = 0; k < 4; k++) {
            broken = layout;
            if (*fields[i] == values[k]) continue; /* an offset of 0 is valid */
            *fields[i] = values[k];
            if (values[k] == INT32_MAX && (i == 7 || i == 8 || i == 10)) continue; /* a huge resized side is valid, because only the window is computed */
            vp_result result = vp_preprocess(&geometry, &broken, rgb, pixels, masks, scratch, needed);
            check_note(result == VP_ERR_RANGE || result == VP_ERR_MISMATCH, __FILE__, __LINE__, "field %d = %d gives %d", (int)i, (int)values[k], (int)result);
            CHECK_INT(vp_preprocess_scratch_bytes(&geometry, &broken), 0);
            CHECK_INT(vp_preprocess_pixel_count(&geometry, &broken), 0);
        }
    }
    broken = layout;
    broken.views++;
    CHECK_INT(vp_preprocess(&geometry, &broken, rgb, pixels, masks, scratch, needed), VP_ERR_MISMATCH);
    broken = layout;
    broken.fit = VP_FIT_PAD; /* crop values do not fit a pad */
    broken.offset_left_px = 1;
    CHECK_INT(vp_preprocess(&geometry, &broken, rgb, pixels, masks, scratch, needed), VP_ERR_MISMATCH);
    CHECK(fence_stands(pixels, 0) && fence_stands(pixels, 16 * 576 * 588) && fence_stands(masks, 0));
    check_case("more views than the pixel limit allows are rejected");
    options = vp_tile_options_default();
    options.rule = VP_TILE_CROPS;
    options.crops = 1024; /* 1025 views of 336 x 336: 116 million pixels */
    CHECK_INT(vp_layout_compute(&geometry, &options, 400, 400, &layout, NULL), VP_OK);
    CHECK_INT(vp_preprocess(&geometry, &layout, rgb, pixels, masks, scratch, needed), VP_ERR_RANGE);
    CHECK_INT(vp_preprocess_scratch_bytes(&geometry, &layout), 0);
    FREE_ALL(scratch, pixels, masks);
}

/* other crop and patch sizes and uneven margins: nothing of Molmo's geometry is hard-wired */
static void test_geometry(void) {
    vp_geometry g = vp_geometry_default();
    vp_tile_options options = options_of("medium");
    vp_layout layout;
    vp_image image;
    int different = 0;
    check_case("other geometry: crops of 48, patches of 4, margins 2 and 4");
    g.crop_px = 48;
    g.patch_px = 4;
    g.margin_left_patches = 2;
    g.margin_right_patches = 4;
    g.mean[1] = 0.25f;
    g.std[2] = 2.0f;
    image.width_px = 123;
    image.height_px = 77;
    image.rgb = (uint8_t *)malloc(123 * 77 * 3);
    for (size_t i = 0; i < 123 * 77 * 3; i++) image.rgb[i] = (uint8_t)random_below(256);
    CHECK_INT(vp_layout_compute(&g, &options, 123, 77, &layout, NULL), VP_OK);
    size_t count = vp_preprocess_pixel_count(&g, &layout);
    CHECK_INT(count, (int64_t)layout.views * 48 * 48 * 3);
    float *pixels = poisoned(count);
    float *masks = poisoned((size_t)layout.views * 144);
    size_t scratch_bytes = vp_preprocess_scratch_bytes(&g, &layout);
    void *scratch = malloc(scratch_bytes);
    CHECK_INT(vp_preprocess(&g, &layout, image.rgb, pixels, masks, scratch, scratch_bytes), VP_OK);
    for (size_t i = 0; i < count; i++)
        different += !same_bits(pixels[i], plain_value(&image, &g, &layout, (int32_t)(i / 6912), (int32_t)(i / 48 % 144), (int32_t)(i % 48)));
    CHECK_INT(different, 0);
    CHECK(fence_stands(pixels, count) && fence_stands(masks, (size_t)layout.views * 144));
    FREE_ALL(scratch, pixels, masks, image.rgb);
}

/* ---- image files made here */
typedef struct bytes_buffer { uint8_t *data; size_t count; } bytes_buffer;
static void put(bytes_buffer *b, const void *data, size_t count) {
    b->data = (uint8_t *)realloc(b->data, b->count + count + 1);
    if (count) memcpy(b->data + b->count, data, count);
    b->count += count;
}
static void put_be32(bytes_buffer *b, uint32_t value) {
    uint8_t bytes[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    put(b, bytes, 4);
}
static void put_chunk(bytes_buffer *b, const char *type, const void *data, size_t count) {
    uint32_t crc = 0xFFFFFFFFu;
    int bit;
    put_be32(b, (uint32_t)count);
    size_t at = b->count;
    put(b, type, 4);
    put(b, data, count);
    for (size_t i = at; i < b->count; i++)
        for (crc ^= b->data[i], bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xEDB88320u ^ crc >> 1 : crc >> 1;
    put_be32(b, ~crc);
}
/* a PNG with stored (uncompressed) data; extra: a chunk before the data, or NULL */
static bytes_buffer make_png(uint32_t width, uint32_t height, int depth, int colour, const uint8_t *raw, size_t raw_bytes, const char *extra,
                             const void *extra_data, size_t extra_bytes) {
    bytes_buffer png = {NULL, 0}, header = {NULL, 0}, data = {NULL, 0};
    uint8_t tail[5] = {(uint8_t)depth, (uint8_t)colour, 0, 0, 0};
    size_t at = 0;
    put(&png, "\x89PNG\r\n\x1a\n", 8);
    put_be32(&header, width);
    put_be32(&header, height);
    put(&header, tail, 5);
    put_chunk(&png, "IHDR", header.data, header.count);
    if (extra) put_chunk(&png, extra, extra_data, extra_bytes);
    put(&data, "\x78\x01", 2);
    do {
        size_t block = raw_bytes - at < 65535 ? raw_bytes - at : 65535;
        uint8_t head[5] = {(uint8_t)(at + block == raw_bytes), (uint8_t)block, (uint8_t)(block >> 8), (uint8_t)~block, (uint8_t)(~block >> 8)};
        put(&data, head, 5);
        put(&data, raw + at, block);
        at += block;
    } while (at < raw_bytes);
    put_be32(&data, 1); /* the stream's checksum is not verified */
    put_chunk(&png, "IDAT", data.data, data.count);
    put_chunk(&png, "IEND", NULL, 0);
    FREE_ALL(header.data, data.data);
    return png;
}
/* decoding and size must both reject it with this code and a text that contains `words` (size only if the header is wrong) */
static void refuses(const bytes_buffer *file, vp_result code, const char *words) {
    vp_image image = {-7, -7, NULL};
    vp_error error = {0};
    CHECK_INT(vp_image_decode(file->data, file->count, &image, &error), code);
    CHECK_INT(error.code, code);
    check_note(strstr(error.text, words) != NULL, __FILE__, __LINE__, "\"%s\" does not say \"%s\"", error.text, words);
    CHECK(image.width_px == -7 && image.height_px == -7 && !image.rgb);
    CHECK_INT(vp_image_decode(file->data, file->count, &image, NULL), code);
}
static void refuses_made(bytes_buffer file, vp_result code, const char *words) {
    refuses(&file, code, words);
    free(file.data);
}
static void size_refuses(const bytes_buffer *file, vp_result code) {
    int32_t width = -7, height = -7;
    vp_error error;
    CHECK_INT(vp_image_size(file->data, file->count, &width, &height, &error), code);
    CHECK(width == -7 && height == -7);
}

static size_t make_exif(uint8_t *out, int little, int orientation, int type) {
    uint8_t big[26] = {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t swaps[] = {2, 2, 4, 4, 8, 2, 10, 2, 12, 2, 14, 4};
    big[13] = (uint8_t)type;
    if (type == 4) big[21] = (uint8_t)orientation;
    else if (type == 3) big[19] = (uint8_t)orientation;
    else big[18] = (uint8_t)orientation;
    memcpy(out, big, 26);
    if (!little) return 26;
    out[0] = out[1] = 'I';
    for (size_t i = 0; i < sizeof swaps; i += 2)
        for (size_t k = 0; k < swaps[i + 1]; k++) out[swaps[i] + k] = big[swaps[i] + swaps[i + 1] - 1 - k];
    if (type == 1) return 26;
    for (size_t k = 0; k < (type == 3 ? 2u : 4u); k++) out[18 + k] = big[18 + (type == 3 ? 1u : 3u) - k];
    return 26;
}

/* every orientation, both byte orders and all integer types, pixel by pixel from the standard's definition */
static void test_orientation(void) {
    uint8_t raw[3 * (1 + 5 * 3)], exif[26];
    int32_t x, y, width = 0, height = 0, sx, sy;
    for (y = 0; y < 3; y++) {
        raw[y * 16] = 0;
        for (x = 0; x < 15; x++) raw[y * 16 + 1 + x] = (uint8_t)(y * 50 + x * 3);
    }
    for (int orientation = 0; orientation <= 9; orientation++)
        for (int little = 0; little < 2; little++)
            for (int type = 1; type <= 5; type++) {
                size_t exif_bytes = make_exif(exif, little, orientation, type);
                bytes_buffer png = make_png(5, 3, 8, 2, raw, sizeof raw, "eXIf", exif, exif_bytes);
                vp_image image = {0, 0, NULL};
                int works = orientation >= 1 && orientation <= 8 && (type == 1 || type == 3 || type == 4) ? orientation : 1, bad = 0;
                check_case("orientation %d, %s, type %d", orientation, little ? "little-endian" : "big-endian", type);
                CHECK_INT(vp_image_decode(png.data, png.count, &image, NULL), VP_OK);
                CHECK_INT(vp_image_size(png.data, png.count, &width, &height, NULL), VP_OK);
                CHECK(width == (works >= 5 ? 3 : 5) && height == (works >= 5 ? 5 : 3) && image.width_px == width && image.height_px == height);
                for (y = 0; image.rgb && y < height; y++)
                    for (x = 0; x < width; x++) {
                        switch (works) { /* the stored position of this upright pixel */
                            case 2: sx = 4 - x; sy = y; break;
                            case 3: sx = 4 - x; sy = 2 - y; break;
                            case 4: sx = x; sy = 2 - y; break;
                            case 5: sx = y; sy = x; break;
                            case 6: sx = y; sy = 2 - x; break;
                            case 7: sx = 4 - y; sy = 2 - x; break;
                            case 8: sx = 4 - y; sy = x; break;
                            default: sx = x; sy = y;
                        }
                        bad += memcmp(image.rgb + (y * width + x) * 3, raw + sy * 16 + 1 + sx * 3, 3) != 0;
                    }
                CHECK_INT(bad, 0);
                vp_image_free(&image);
                CHECK(image.rgb == NULL);
                free(png.data);
            }
    check_case("a truncated or invalid EXIF block is ignored");
    for (x = 0; x < 26; x++) {
        make_exif(exif, 1, 6, 3);
        CHECK_INT(vp_impl_exif_orientation(exif, (size_t)x), x < 22 ? 1 : vp_impl_exif_orientation(exif, (size_t)x));
        exif[4] = (uint8_t)(250 - x); /* the table is outside the block */
        CHECK_INT(vp_impl_exif_orientation(exif, 26), 1);
    }
}

static void test_png_files(void) {
    uint8_t raw[4096] = {0};
    vp_image image = {0, 0, NULL};
    check_case("palette indices after the last entry are always black");
    raw[1] = 0; raw[2] = 1; raw[3] = 200;
    bytes_buffer png = make_png(3, 1, 8, 3, raw, 4, "PLTE", "\1\2\3\4\5\6", 6);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(vp_image_decode(png.data, png.count, &image, NULL), VP_OK);
        CHECK(image.rgb && memcmp(image.rgb, "\1\2\3\4\5\6\0\0\0", 9) == 0);
        vp_image_free(&image);
    }
    png.data[png.count - 20] ^= 1; /* inside the data chunk */
    check_case("the chunk's checksum detects a flipped bit");
    refuses(&png, VP_ERR_FORMAT, "checksum");
    free(png.data);
    check_case("4-bit grey and 16-bit grey");
    raw[1] = 0x0F; raw[2] = 0x80;
    png = make_png(3, 1, 4, 0, raw, 3, NULL, NULL, 0);
    CHECK_INT(vp_image_decode(png.data, png.count, &image, NULL), VP_OK);
    CHECK(image.rgb && memcmp(image.rgb, "\0\0\0\377\377\377\210\210\210", 9) == 0);
    vp_image_free(&image);
    free(png.data);
    memcpy(raw + 1, "\0\7\0\376\0\377\1\0\377\377", 10);
    png = make_png(5, 1, 16, 0, raw, 11, NULL, NULL, 0);
    CHECK_INT(vp_image_decode(png.data, png.count, &image, NULL), VP_OK);
    CHECK(image.rgb && memcmp(image.rgb, "\7\7\7\376\376\376\377\377\377\377\377\377\377\377\377", 15) == 0);
    vp_image_free(&image);
    free(png.data);

    check_case("bombs: more data than the header declares, larger headers than the data");
    uint8_t *much = (uint8_t *)calloc(1, 4000000);
    png = make_png(200, 200, 8, 2, much, 4000000, NULL, NULL, 0);
    refuses(&png, VP_ERR_FORMAT, "more data than its header");
    FREE_ALL(png.data, much);
    refuses_made(make_png(9000, 9000, 8, 2, raw, 1000, NULL, NULL, 0), VP_ERR_FORMAT, "more pixels than the file can contain");
    refuses_made(make_png(100, 100, 8, 2, raw, 1000, NULL, NULL, 0), VP_ERR_FORMAT, "cannot be decoded");
    refuses_made(make_png(10001, 10000, 8, 2, raw, 1000, NULL, NULL, 0), VP_ERR_RANGE, "10001 x 10000");
    refuses_made(make_png(20000000, 1, 8, 2, raw, 1000, NULL, NULL, 0), VP_ERR_RANGE, "20000000 x 1");

    check_case("impossible PNG headers");
    for (int i = 0; i < 6; i++) {
        static const struct { uint32_t width, height; int depth, colour; } bad[6] = {
            {0, 5, 8, 2}, {5, 0x80000000u, 8, 2}, {5, 5, 3, 0}, {5, 5, 16, 3}, {5, 5, 8, 5}, {5, 5, 4, 2}};
        png = make_png(bad[i].width, bad[i].height, bad[i].depth, bad[i].colour, raw, 100, NULL, NULL, 0);
        refuses(&png, VP_ERR_FORMAT, "impossible");
        size_refuses(&png, VP_ERR_FORMAT);
        free(png.data);
    }
    refuses_made(make_png(5, 5, 8, 3, raw, 30, NULL, NULL, 0), VP_ERR_FORMAT, "palette");
    check_case("misplaced chunks");
    refuses_made(make_png(5, 5, 8, 2, raw, 80, "IHDR", raw, 13), VP_ERR_FORMAT, "two headers");
    png = make_png(5, 5, 8, 2, raw, 80, "CgBI", raw, 4);
    refuses(&png, VP_ERR_UNSUPPORTED, "CgBI");
    size_refuses(&png, VP_ERR_UNSUPPORTED);
    free(png.data);
    refuses_made(make_png(5, 5, 8, 2, raw, 80, "QQqq", raw, 4), VP_ERR_UNSUPPORTED, "critical chunk");
    png = make_png(5, 5, 8, 2, raw, 80, "qqQq", raw, 4);
    CHECK_INT(vp_image_decode(png.data, png.count, &image, NULL), VP_OK);
    vp_image_free(&image);
    memcpy(png.data + 12, "IHDX", 4);
    refuses(&png, VP_ERR_FORMAT, "begin with a header");
    free(png.data);
}

/* a JPEG of headers only */
static bytes_buffer make_jpeg(int marker, int precision, int height, int width, int components) {
    bytes_buffer jpeg = {NULL, 0};
    uint8_t head[] = {0xFF, 0xD8, 0xFF, (uint8_t)marker, 0, 8, (uint8_t)precision, (uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8),
                      (uint8_t)width, (uint8_t)components};
    put(&jpeg, head, sizeof head);
    put(&jpeg, "\xFF\xDA\0\2\1\2\3\xFF\0\xFF\xD3\xFF\xD9", 13);
    return jpeg;
}

static void test_jpeg_files(void) {
    static const struct { int marker, precision, height, width, components; vp_result code; const char *words; } bad[] = {
        {0xC0, 8, 4, 4, 4, VP_ERR_UNSUPPORTED, "CMYK"}, {0xC0, 12, 4, 4, 3, VP_ERR_UNSUPPORTED, "8 bits"}, {0xC0, 8, 0, 4, 3, VP_ERR_UNSUPPORTED, "DNL"},
        {0xC0, 8, 4, 0, 3, VP_ERR_FORMAT, "width"}, {0xC0, 8, 4, 4, 2, VP_ERR_FORMAT, "components"}, {0xC3, 8, 4, 4, 3, VP_ERR_UNSUPPORTED, "lossless"},
        {0xC9, 8, 4, 4, 3, VP_ERR_UNSUPPORTED, "arithmetic"}, {0xC5, 8, 4, 4, 3, VP_ERR_UNSUPPORTED, "hierarchical"},
        {0xC0, 8, 20000, 20000, 3, VP_ERR_RANGE, "20000 x 20000"}, {0xC0, 8, 9000, 9000, 3, VP_ERR_FORMAT, "can contain"},
        {0xC0, 8, 4, 4, 3, VP_ERR_UNSUPPORTED, "tables"}};
    bytes_buffer jpeg;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_case("JPEG: %s", bad[i].words);
        jpeg = make_jpeg(bad[i].marker, bad[i].precision, bad[i].height, bad[i].width, bad[i].components);
        refuses(&jpeg, bad[i].code, bad[i].words);
        free(jpeg.data);
    }
    check_case("misplaced JPEG markers");
    jpeg = make_jpeg(0xC0, 8, 4, 4, 3);
    jpeg.data[14] = 0; jpeg.data[15] = 1; /* a segment shorter than its own length field */
    refuses(&jpeg, VP_ERR_FORMAT, "impossible length");
    free(jpeg.data);
    jpeg = make_jpeg(0xC0, 8, 4, 4, 3);
    jpeg.data[3] = 0xFE; /* the frame header becomes a comment */
    refuses(&jpeg, VP_ERR_FORMAT, "before the frame header");
    jpeg.data[13] = 0xFE;
    refuses(&jpeg, VP_ERR_FORMAT, "without an image");
    free(jpeg.data);
    jpeg = make_jpeg(0xC0, 8, 4, 4, 3);
    jpeg.data[13] = 0xD8;
    refuses(&jpeg, VP_ERR_FORMAT, "second start marker");
    free(jpeg.data);
    check_case("Huffman tables that would make stb_image write out of bounds");
    for (size_t i = 0; i < 4; i++) {
        uint8_t table[2 + 2 + 17 + 600] = {0xFF, 0xC4, 0, 0, 0x10};
        size_t symbols = i == 0 ? 257 : 200, length = i == 1 ? 100 : i == 2 ? 17 + 200 + 3 : 17 + symbols; /* too many symbols; truncated; leftover bytes; valid */
        table[5 + 15] = 200;
        if (i == 0) table[5 + 14] = 57;
        table[2] = (uint8_t)((length + 2) >> 8);
        table[3] = (uint8_t)(length + 2);
        jpeg.data = NULL;
        jpeg.count = 0;
        put(&jpeg, "\xFF\xD8", 2);
        put(&jpeg, table, 4 + length);
        put(&jpeg, "\xFF\xDB\0\2\xFF\xC0\0\b\b\0\4\0\4\3\xFF\xDA\0\2\xFF\xD9", 20);
        refuses(&jpeg, VP_ERR_FORMAT, i < 3 ? "Huffman table" : "cannot be decoded");
        free(jpeg.data);
    }
    check_case("a JPEG of a thousand scans");
    jpeg = make_jpeg(0xC2, 8, 4, 4, 3);
    jpeg.count -= 2;
    for (size_t i = 0; i < 1000; i++) put(&jpeg, "\xFF\xDA\0\2", 4);
    put(&jpeg, "\xFF\xD9", 2);
    refuses(&jpeg, VP_ERR_UNSUPPORTED, "scans");
    free(jpeg.data);
}

/* JPEG: the first EXIF block counts, but none after the picture */
static void test_jpeg_orientation(void) {
    uint8_t segment[36] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0};
    size_t bytes = 0;
    uint8_t *file = (uint8_t *)check_read(check_golden("preprocess/images/420.jpg"), &bytes);
    check_case("JPEG with EXIF blocks before and after the picture");
    if (!CHECK(file && bytes > 4)) return;
    for (int place = 0; place < 4; place++) { /* 0: before, 1: before twice, 2: after, 3: both */
        bytes_buffer jpeg = {NULL, 0};
        vp_image image = {0, 0, NULL};
        int32_t width = 0, height = 0;
        int turned = place != 2;
        put(&jpeg, file, 2);
        make_exif(segment + 10, 1, 6, 3);
        if (place != 2) put(&jpeg, segment, 36);
        make_exif(segment + 10, 0, 3, 3);
        if (place == 1) put(&jpeg, segment, 36);
        put(&jpeg, file + 2, bytes - 4);
        if (place >= 2) put(&jpeg, segment, 36);
        put(&jpeg, "\xFF\xD9", 2);
        CHECK_INT(vp_image_size(jpeg.data, jpeg.count, &width, &height, NULL), VP_OK);
        CHECK(width == (turned ? 122 : 189) && height == (turned ? 189 : 122));
        CHECK_INT(vp_image_decode(jpeg.data, jpeg.count, &image, NULL), VP_OK);
        CHECK(image.width_px == width && image.height_px == height);
        if (place == 2) { /* not turned by 180 degrees either */
            vp_image plain = {0, 0, NULL};
            CHECK_INT(vp_image_decode(file, bytes, &plain, NULL), VP_OK);
            CHECK(image.rgb && plain.rgb && memcmp(image.rgb, plain.rgb, 189 * 122 * 3) == 0);
            vp_image_free(&plain);
        }
        vp_image_free(&image);
        free(jpeg.data);
    }
    free(file);
}

/* JPEG: bytes between segments, which libjpeg skips, change nothing */
static void test_jpeg_junk(void) {
    static const char *const names[] = {"420.jpg", "progressive.jpg", "422-restart.jpg"};
    static const struct { const char *bytes; size_t count; } junk[] = {{"A\1\376", 3}, {"\377\0\377\0", 4}, {"\377\377", 2}, {"\377\323", 2}, {"\0\0\0\0\0\0", 6},
        {"\377\0\377\0\377\0\377\0\377\0\377\0", 12}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char relative[96];
        size_t bytes = 0, at = 2, segments = 0;
        vp_image plain = {0, 0, NULL};
        snprintf(relative, sizeof relative, "preprocess/images/%s", names[i]);
        uint8_t *file = (uint8_t *)check_read(check_golden(relative), &bytes);
        check_case("%s with bytes between its segments", names[i]);
        if (!CHECK(file && vp_image_decode(file, bytes, &plain, NULL) == VP_OK)) continue;
        for (int scan = 0; !scan;) { /* not before the first segment: as for Pillow, such a file is no JPEG */
            scan = file[at + 1] == 0xDA;
            at = scan ? bytes - 2 : at + 2 + (size_t)(file[at + 2] << 8 | file[at + 3]);
            segments = scan ? 5 : segments + 1;
            bytes_buffer jpeg = {NULL, 0};
            vp_image image = {0, 0, NULL};
            put(&jpeg, file, at);
            put(&jpeg, junk[scan ? 5 : segments % 5].bytes, junk[scan ? 5 : segments % 5].count); /* after the scan: stuffed bytes */
            put(&jpeg, file + at, bytes - at);
            CHECK_INT(vp_image_decode(jpeg.data, jpeg.count, &image, NULL), VP_OK);
            CHECK(image.rgb && memcmp(image.rgb, plain.rgb, (size_t)plain.width_px * (size_t)plain.height_px * 3) == 0);
            vp_image_free(&image);
            free(jpeg.data);
        }
        CHECK(segments >= 4);
        vp_image_free(&plain);
        free(file);
    }
}

/* whole golden files, truncated at every length and with bytes after the end */
static void test_truncation(void) {
    static const char *const names[] = {"420.jpg", "progressive.jpg", "422-restart.jpg", "exif6.jpg", "rgba.png", "bit1.png", "interlaced.png"};
    size_t i, k, bytes = 0;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        char relative[96], whole_hash[80], hash[80];
        vp_image image = {0, 0, NULL};
        int32_t width, height, want_width, want_height;
        uint8_t *file, *copy;
        vp_error error;
        snprintf(relative, sizeof relative, "preprocess/images/%s", names[i]);
        file = (uint8_t *)check_read(check_golden(relative), &bytes);
        check_case("%s truncated, and with bytes after it", names[i]);
        if (!CHECK(file != NULL)) continue;
        CHECK_INT(vp_image_decode(file, bytes, &image, NULL), VP_OK);
        sha256_text(image.rgb, (size_t)image.width_px * (size_t)image.height_px * 3, whole_hash);
        want_width = image.width_px;
        want_height = image.height_px;
        vp_image_free(&image);
        for (k = 0; k < bytes; k += k < 700 ? 1 : 1 + random_below(150)) {
            copy = (uint8_t *)malloc(k ? k : 1); /* the exact size, for the address sanitizer */
            memcpy(copy, file, k);
            memset(&error, 0, sizeof error);
            CHECK_INT(vp_image_decode(copy, k, &image, &error), VP_ERR_FORMAT);
            CHECK(error.text[0] && !image.rgb);
            if (vp_image_size(copy, k, &width, &height, NULL) == VP_OK) {
                if (k >= bytes / 2) CHECK(width == want_width && height == want_height);
            } else {
                CHECK(k < bytes / 2);
            }
            free(copy);
        }
        copy = (uint8_t *)malloc(bytes * 2 + 100);
        memcpy(copy, file, bytes);
        memset(copy + bytes, 0xFF, 100);
        memcpy(copy + bytes + 100, file, bytes); /* a second image after the first, as phones write it */
        for (k = 0; k < 3; k++) {
            CHECK_INT(vp_image_decode(copy, bytes + (k == 0 ? 1 : k == 1 ? 100 : bytes + 100), &image, NULL), VP_OK);
            if (image.rgb) sha256_text(image.rgb, (size_t)image.width_px * (size_t)image.height_px * 3, hash);
            CHECK_TEXT(hash, whole_hash);
            vp_image_free(&image);
        }
        FREE_ALL(copy, file);
    }
}

static void test_other_formats(void) {
    static const struct { const char *bytes; size_t count; const char *words; } foreign[] = {
        {"GIF89a..........", 16, "GIF"}, {"RIFF\1\2\3\4WEBPVP8 ", 16, "WebP"}, {"\0\0\0\40ftypavif\0\0\0\0", 16, "AVIF"},
        {"\0\0\0\40ftypheic\0\0\0\0", 16, "HEIC"}, {"\0\0\0\40ftypmif1\0\0\0\0", 16, "HEIF"}, {"\0\0\0\40ftypisom\0\0\0\0", 16, "video"},
        {"II*\0............", 16, "TIFF"}, {"MM\0*............", 16, "TIFF"}, {"BM..............", 16, "BMP"}, {"8BPS............", 16, "Photoshop"},
        {"\0\0\0\14JXL \r\n\x87\n....", 16, "JPEG XL"}, {"\0\0\0\14jP  \r\n\x87\n....", 16, "JPEG 2000"},
        {"P6\n1 1\n255\n....", 16, "PNM"}, {"%PDF-1.7........", 16, "PDF"}, {"<svg xmlns=.....", 16, "SVG"}};
    bytes_buffer file;
    uint8_t byte = 0;
    vp_image image = {0, 0, NULL};
    int32_t width, height;
    vp_error error;
    check_case("other formats are named in the error");
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        file.count = foreign[i].count;
        file.data = (uint8_t *)malloc(file.count);
        memcpy(file.data, foreign[i].bytes, file.count);
        refuses(&file, VP_ERR_UNSUPPORTED, foreign[i].words);
        size_refuses(&file, VP_ERR_UNSUPPORTED);
        free(file.data);
    }
    check_case("not an image");
    file.data = &byte;
    file.count = 0;
    refuses(&file, VP_ERR_FORMAT, "empty");
    file.count = 1;
    refuses(&file, VP_ERR_FORMAT, "neither");
    size_refuses(&file, VP_ERR_FORMAT);
    CHECK_INT(vp_image_decode(NULL, 5, &image, &error), VP_ERR_RANGE);
    CHECK_INT(vp_image_decode(&byte, 1, NULL, &error), VP_ERR_RANGE);
    CHECK_INT(vp_image_size(NULL, 5, &width, &height, &error), VP_ERR_RANGE);
    CHECK_INT(vp_image_size(&byte, 1, NULL, &height, &error), VP_ERR_RANGE);
    vp_image_free(NULL);
    vp_image_free(&image);
}

int main(void) {
    RUN_TESTS(test_resize, test_loops, test_limits, test_geometry, test_orientation, test_png_files, test_jpeg_files,
              test_jpeg_orientation, test_jpeg_junk, test_other_formats, test_truncation, test_goldens);
    return check_done("test_image");
}
