/* test_tiler.c: tilings, sizes, token counts and index maps equal the reference's (golden/tiling, golden/preprocess), in every column; the rules are compared with slow,
 * simple versions of themselves on random sizes; each rejection is provoked and leaves its outputs unchanged. */
#include "support/check.h"
#include "support/scan.h"
#include "vlmprof.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
enum { FIELDS = 32, NONE = -999999 };

/* one row of a CSV file: integers (NONE if empty), and the text of each field */
typedef struct row { long field[FIELDS]; char text[FIELDS][24]; int count; } row;

static const char *csv_row(const char *p, row *r) {
    memset(r, 0, sizeof *r);
    for (;;) {
        const size_t bytes = strcspn(p, ",\r\n");
        snprintf(r->text[r->count], sizeof r->text[0], "%.*s", (int)bytes, p);
        r->field[r->count] = bytes ? strtol(p, NULL, 10) : NONE;
        r->count++;
        p += bytes;
        if (*p != ',') break;
        p++;
    }
    p += strspn(p, "\r");
    return *p ? p + 1 : p;
}
/* ------------------------------------------------------------------------------------------------------------- geometry */
static void test_geometry(void) {
    vp_geometry g = vp_geometry_default(), bad;
    int32_t *field[6];
    /* a field and a value that makes the geometry impossible */
    static const struct { int field; int32_t value; } wrong[] = {
        {0, 0}, {0, -336}, {0, 335}, {0, 32774}, {0, INT32_MAX}, {0, INT32_MIN}, {1, 0}, {1, -14}, {1, 13}, {1, 672}, {2, -2}, {2, 3}, {2, 20},
        {2, INT32_MAX}, {3, -2}, {3, 5}, {3, 20}, {3, INT32_MAX}, {4, 0}, {4, -1}, {4, 5}, {4, 48}, {5, 0}, {5, -1}, {5, 65537}, {5, INT32_MIN},
    };
    check_case("geometry: the default and its derived values");
    CHECK_INT(vp_geometry_check(&g), VP_OK);
    CHECK_INT(g.crop_px, 336);
    CHECK_INT(g.max_crops, 12);
    CHECK_INT(vp_geometry_patches_per_side(&g), 24);
    CHECK_INT(vp_geometry_tokens_per_crop(&g), 144);
    CHECK_INT(vp_geometry_window_px(&g), 224);
    CHECK_INT(vp_geometry_margin_px(&g), 112);
    CHECK(g.mean[0] == 0.48145466f && g.mean[1] == 0.4578275f && g.mean[2] == 0.40821073f);
    CHECK(g.std[0] == 0.26862954f && g.std[1] == 0.26130258f && g.std[2] == 0.27577711f);
    check_case("geometry: each impossible value is rejected");
    for (int i = 0; i < COUNT(wrong); i++) {
        bad = g;
        field[0] = &bad.crop_px;
        field[1] = &bad.patch_px;
        field[2] = &bad.margin_left_patches;
        field[3] = &bad.margin_right_patches;
        field[4] = &bad.pool;
        field[5] = &bad.max_crops;
        *field[wrong[i].field] = wrong[i].value;
        check_note(vp_geometry_check(&bad) == VP_ERR_RANGE, __FILE__, __LINE__, "field %d = %d passes", wrong[i].field, (int)wrong[i].value);
        CHECK_INT(vp_geometry_patches_per_side(&bad) + vp_geometry_tokens_per_crop(&bad), 0);
        CHECK_INT(vp_geometry_window_px(&bad) + vp_geometry_margin_px(&bad), 0);
    }
    for (int i = 0; i < 3; i++) {
        bad = g, bad.std[i] = 0;
        CHECK_INT(vp_geometry_check(&bad), VP_ERR_RANGE);
        bad = g, bad.std[i] = (float)NAN;
        CHECK_INT(vp_geometry_check(&bad), VP_ERR_RANGE);
        bad = g, bad.mean[i] = (float)NAN;
        CHECK_INT(vp_geometry_check(&bad), VP_ERR_RANGE);
        bad = g, bad.mean[i] = -(float)INFINITY;
        CHECK_INT(vp_geometry_check(&bad), VP_ERR_RANGE);
    }
    bad = g, bad.margin_left_patches = 0, bad.margin_right_patches = 0, bad.pool = 5;
    CHECK_INT(vp_geometry_check(&bad), VP_ERR_RANGE);
    bad = g, bad.margin_left_patches = 0, bad.margin_right_patches = 0, bad.crop_px = 32760, bad.pool = 1;
    CHECK_INT(vp_geometry_check(&bad), VP_OK);
    CHECK_INT(vp_geometry_margin_px(&bad), 0);
}
static void test_presets(void) {
    check_case("tier presets");
    CHECK(vp_tier_at(-1) == NULL && vp_tier_at(3) == NULL && vp_tier_at(INT32_MAX) == NULL);
    CHECK_TEXT(vp_tier_at(0)->name, "low");
    CHECK_TEXT(vp_tier_at(1)->name, "medium");
    CHECK_TEXT(vp_tier_at(2)->name, "high");
    const vp_tier *tier = vp_tier_find("high");
    CHECK(tier && tier->min_crops == 9 && tier->max_crops == 15);
    CHECK(vp_tier_find("High") == NULL && vp_tier_find("") == NULL);
}
/* --------------------------------------------------------------------------------------------------------- golden tables */
/* Columns of adaptive.csv that a layout must reproduce, in file order starting at column 3. */
static int adaptive_columns(const vp_layout *l, long *out) {
    const long value[] = {l->tiling.rows, l->tiling.cols, l->views, l->feature_tokens, l->col_tokens, l->marker_tokens, l->image_tokens,
                          l->canvas_width_px, l->canvas_height_px, l->resized_width_px, l->resized_height_px, l->offset_left_px,
                          l->offset_top_px, l->global_resized_width_px, l->global_resized_height_px};
    memcpy(out, value, sizeof value);
    return COUNT(value);
}
/* tokens after the experiments' collator, which keeps the first max_crops views, including the global one */
static long collated_tokens(const vp_geometry *g, const vp_layout *l, long views) {
    const size_t per_crop = (size_t)vp_geometry_tokens_per_crop(g), entries = (size_t)l->views * per_crop;
    int32_t *map = (int32_t *)malloc(entries * sizeof *map);
    long kept = 0;
    CHECK_INT(vp_tokens_index_map(g, l, 1, map, entries), VP_OK);
    for (size_t i = 0; i < entries && i < (size_t)views * per_crop; i++) kept += map[i] >= 0;
    free(map);
    return kept;
}
/* Columns of tier.csv, starting at column 3. */
static int tier_columns(const vp_geometry *g, const vp_tier *tier, const vp_layout *l, long *out) {
    const long views = l->views < tier->max_crops ? l->views : tier->max_crops;
    const long value[] = {tier->max_crops, l->crops, l->tiling.rows, l->tiling.cols, l->views, l->theoretical_tokens, l->feature_tokens,
                          l->col_tokens, l->marker_tokens, l->image_tokens, l->canvas_width_px, l->canvas_height_px, l->resized_width_px,
                          l->resized_height_px, l->offset_left_px, l->offset_top_px, l->global_resized_width_px, l->global_resized_height_px, views,
                          collated_tokens(g, l, views)};
    memcpy(out, value, sizeof value);
    return COUNT(value);
}
/* first column that differs, or -1 */
static int differing(const long *got, const row *want, int columns) {
    for (int i = 0; i < columns; i++) {
        if (got[i] != want->field[3 + i]) return 3 + i;
    }
    return -1;
}
/* The comparison itself must detect an error in any column: damages them one by one. */
static void check_damage(const long *got, const row *want, int columns) {
    for (int i = 0; i < columns; i++) {
        row damaged = *want;
        damaged.field[3 + i]++;
        CHECK_INT(differing(got, &damaged, columns), 3 + i);
    }
}
static void test_adaptive_table(void) {
    const vp_geometry g = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    char *text;
    const char *p;
    int rows = 0, errors = 0;
    row r;
    check_case("adaptive.csv, every column");
    p = text = check_read(check_golden("tiling/adaptive.csv"), NULL);
    CHECK(text != NULL);
    for (p = text ? csv_row(text, &r) : NULL; p && *p; rows++) {
        const char *line = p;
        long got[FIELDS];
        vp_layout layout;
        vp_tiling tiling = {0, 0};
        vp_error error;
        p = csv_row(line, &r);
        options.max_crops = (int32_t)r.field[2];
        memset(&layout, 0xA5, sizeof layout);
        vp_result result = vp_layout_compute(&g, &options, (int32_t)r.field[0], (int32_t)r.field[1], &layout, &error);
        CHECK_INT(vp_tiler_adaptive(&g, (int32_t)r.field[0], (int32_t)r.field[1], options.max_crops, &tiling), VP_OK);
        check_note(tiling.rows == r.field[3] && tiling.cols == r.field[4], __FILE__, __LINE__, "%.30s: tiling %dx%d", line, (int)tiling.rows, (int)tiling.cols);
        if (r.text[r.count - 1][0]) { /* the reference raises an error */
            check_note(result == VP_ERR_RANGE && error.code == VP_ERR_RANGE && error.text[0], __FILE__, __LINE__, "%.30s is not refused", line);
            errors++;
        } else {
            const int columns = adaptive_columns(&layout, got), bad = differing(got, &r, columns);
            check_note(result == VP_OK && bad < 0, __FILE__, __LINE__, "%.30s: column %d (counted from 0)", line, bad);
            if (rows == 0) check_damage(got, &r, columns);
        }
    }
    CHECK_INT(rows, 2890);
    CHECK_INT(errors, 110);
    free(text);
}
static void test_tier_table(void) {
    const vp_geometry g = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    int rows = 0;
    row r;
    check_case("tier.csv, every column");
    char *text = check_read(check_golden("tiling/tier.csv"), NULL);
    CHECK(text != NULL);
    options.rule = VP_TILE_TIER;
    options.fit = VP_FIT_FILL;
    options.max_crops = -1; /* belongs to another rule and must not be read */
    for (const char *p = text ? csv_row(text, &r) : NULL; p && *p; rows++) {
        const char *line = p;
        long got[FIELDS];
        vp_layout layout;
        p = csv_row(line, &r);
        options.tier = vp_tier_find(r.text[2]);
        memset(&layout, 0xA5, sizeof layout);
        vp_result result = vp_layout_compute(&g, &options, (int32_t)r.field[0], (int32_t)r.field[1], &layout, NULL);
        if (check_note(result == VP_OK, __FILE__, __LINE__, "%.30s is refused", line)) {
            const int columns = tier_columns(&g, options.tier, &layout, got), bad = differing(got, &r, columns);
            check_note(bad < 0, __FILE__, __LINE__, "%.30s: column %d (counted from 0)", line, bad);
            if (rows == 0) check_damage(got, &r, columns);
        }
    }
    CHECK_INT(rows, 2955);
    free(text);
}
/* ------------------------------------------------------------------------------------------------------ experiment_maths */
/* reads the numbers of one list, and checks that it has `rows` rows of `width` numbers */
static double *maths_list(const char *text, const char *key, size_t width, size_t rows) {
    size_t count = 0;
    double *numbers = scan_numbers(scan_key(text, key, NULL), &count);
    check_note(count == width * rows, __FILE__, __LINE__, "%s has %d numbers", key, (int)count);
    return numbers;
}
static vp_geometry geometry_of(int32_t window_px, int32_t margin_px, int32_t patch_px) {
    vp_geometry g = vp_geometry_default();
    g.patch_px = patch_px;
    g.crop_px = window_px + margin_px;
    g.margin_left_patches = g.margin_right_patches = margin_px / patch_px / 2;
    return g;
}
static void maths_tilings(const char *text) {
    const vp_geometry g = vp_geometry_default();
    double *n = maths_list(text, "crops_to_tiling", 4, 740);
    vp_tiling t = { 0, 0 };
    check_case("experiment_maths.json: crops -> tiling");
    for (size_t i = 0; i < 740; i++) {
        const double *r = n + 4 * i;
        const vp_result result = vp_tiler_exact(&g, (int32_t)r[0], r[1], &t);
        if (r[0] == 0) { /* known difference: the reference returns [1, 0] */
            CHECK_INT(result, VP_ERR_RANGE);
        } else {
            check_note(result == VP_OK && t.rows == r[2] && t.cols == r[3], __FILE__, __LINE__, "%g crops, aspect %.17g: %dx%d", r[0], r[1], (int)t.rows, (int)t.cols);
        }
    }
    free(n);
    n = maths_list(text, "crops_to_tiling_default_aspect", 3, 49);
    for (size_t i = 1; i < 49; i++) { /* row 0 is 0 crops */
        CHECK_INT(vp_tiler_exact(&g, (int32_t)n[3 * i], 1.0, &t), VP_OK);
        CHECK(t.rows == n[3 * i + 1] && t.cols == n[3 * i + 2]);
    }
    check_case("the example of guide tokens: for a landscape image, a prime number of crops is a column");
    CHECK_INT(vp_tiler_exact(&g, 5, 1024.0 / 768.0, &t), VP_OK);
    CHECK_INT(t.rows, 5);
    CHECK_INT(t.cols, 1);
    free(n);
}
static void maths_sizes(const char *text) {
    const vp_geometry g = vp_geometry_default();
    int32_t width, height;
    vp_tiling t = { 0, 0 };
    size_t i, refused = 0;
    double *n = maths_list(text, "tiling_to_resolution", 4, 96);
    check_case("experiment_maths.json: tiling <-> resolution");
    for (i = 0; i < 96; i++) {
        t.rows = (int32_t)n[4 * i];
        t.cols = (int32_t)n[4 * i + 1];
        CHECK_INT(vp_select_canvas(&g, t, &width, &height), VP_OK);
        CHECK(height == n[4 * i + 2] && width == n[4 * i + 3]);
        CHECK_INT(vp_select_tiling(&g, width, height, &t), VP_OK);
        CHECK(t.rows == n[4 * i] && t.cols == n[4 * i + 1]);
    }
    free(n);
    n = maths_list(text, "tiling_to_resolution_other", 6, 3);
    for (i = 0; i < 3; i++) {
        const vp_geometry other = geometry_of((int32_t)n[6 * i + 2], (int32_t)n[6 * i + 3], n[6 * i + 2] == 448 ? 16 : 14);
        t.rows = (int32_t)n[6 * i];
        t.cols = (int32_t)n[6 * i + 1];
        CHECK_INT(vp_select_canvas(&other, t, &width, &height), VP_OK);
        CHECK(height == n[6 * i + 4] && width == n[6 * i + 5]);
    }
    free(n);
    n = maths_list(text, "image_size_to_tiling", 4, 304);
    for (i = 0; i < 304; i++) {
        const double *r = n + 4 * i;
        const vp_result result = vp_select_tiling(&g, (int32_t)r[1], (int32_t)r[0], &t);
        if (r[0] < 1 || r[1] < 1) { /* known difference: the reference gives results for sizes that are not positive */
            CHECK_INT(result, VP_ERR_RANGE);
            refused++;
        } else {
            check_note(result == VP_OK && t.rows == r[2] && t.cols == r[3], __FILE__, __LINE__, "[h %g, w %g] -> %dx%d", r[0], r[1], (int)t.rows, (int)t.cols);
        }
    }
    CHECK(refused > 0 && refused < 30);
    free(n);
}
static void test_maths(void) {
    const vp_geometry g = vp_geometry_default();
    check_case("experiment_maths.json: tokens -> crops");
    char *text = check_read(check_golden("tiling/experiment_maths.json"), NULL);
    if (!check_note(text != NULL, __FILE__, __LINE__, "missing")) return;
    double *n = maths_list(text, "tokens_to_crops", 2, 147);
    for (size_t i = 0; i < 147; i++) {
        int32_t crops = -7;
        const vp_result result = vp_select_crops(&g, (int32_t)n[2 * i], &crops);
        if (n[2 * i] < 1) { /* known difference: the reference gives 1 crop for no tokens */
            CHECK_INT(result, VP_ERR_RANGE);
            CHECK_INT(crops, -7);
        } else {
            CHECK_INT(result, VP_OK);
            CHECK_INT(crops, n[2 * i + 1]);
        }
    }
    free(n);
    maths_tilings(text);
    maths_sizes(text);
    free(text);
}
/* ---------------------------------------------------------------------------------- options: exact crops and target tokens */
static void test_options(void) {
    const vp_geometry g = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_layout layout, other;
    vp_tiling t = { 0, 0 };
    int32_t crops, tokens = 0;
    check_case("shrinking to zero is also a size");
    CHECK_INT(vp_tiler_shrink(336, 336, 640, 480, &crops, &tokens), VP_OK);
    CHECK(crops == 336 && tokens == 251);
    CHECK_INT(vp_tiler_shrink(336, 336, 1, 5000, &crops, &tokens), VP_OK);
    CHECK(crops == 0 && tokens == 336);
    CHECK_INT(vp_tiler_shrink(336, 336, 0, 5, &crops, &tokens), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_shrink(VP_CANVAS_PX_LIMIT + 1, 336, 5, 5, &crops, &tokens), VP_ERR_RANGE);
    CHECK(crops == 0 && tokens == 336);
    check_case("exact crops and target tokens, by layouts");
    CHECK(options.rule == VP_TILE_ADAPTIVE && options.fit == VP_FIT_PAD && options.max_crops == 12 && options.tier == NULL);
    for (crops = 1; crops <= 40; crops++) {
        options.rule = VP_TILE_CROPS;
        options.crops = crops;
        options.vision_tokens = -1; /* belongs to the other rule and must not be read */
        CHECK_INT(vp_layout_compute(&g, &options, 1200, 800, &layout, NULL), VP_OK);
        CHECK_INT(vp_tiler_exact(&g, crops, 1.5, &t), VP_OK);
        CHECK(layout.tiling.rows == t.rows && layout.tiling.cols == t.cols && t.rows * t.cols == crops);
        CHECK_INT(layout.views, crops + 1);
        CHECK_INT(vp_select_vision_tokens(&g, crops, &tokens), VP_OK);
        CHECK_INT(tokens, 144 * (crops + 1));
        CHECK_INT(tokens, layout.theoretical_tokens);
        options.rule = VP_TILE_TOKENS;
        options.crops = -1;
        options.vision_tokens = tokens + 143; /* the largest target that still gives this number of crops */
        CHECK_INT(vp_layout_compute(&g, &options, 1200, 800, &other, NULL), VP_OK);
        CHECK(other.crops == layout.crops && other.image_tokens == layout.image_tokens && other.tiling.rows == t.rows);
    }
}
/* ------------------------------------------------------------------------------------------- index maps of real requests */
/* returns 0 if the case does not exist; some machines have only a few */
static int compare_case(const char *name) {
    char path[256];
    const vp_geometry g = vp_geometry_default();
    vp_tile_options options = vp_tile_options_default();
    vp_special_ids ids = {50279, 50279, 1, -1, -1, -1, -1, -1};
    vp_layout l;
    check_array index, tokens;
    int32_t *map, *sequence;
    size_t count;
    snprintf(path, sizeof path, "preprocess/cases/%s/case.json", name);
    char *text = check_read(check_golden(path), NULL);
    snprintf(path, sizeof path, "preprocess/cases/%s/image_input_idx.npy", name);
    if (!text || !check_npy(check_golden(path), &index)) {
        free(text);
        return 0;
    }
    check_case("preprocess/%s: layout, image_input_idx, image_tokens", name);
    const char *mode = scan_key(text, "mode", NULL) + 1;
    for (int64_t i = 0; vp_tier_at((int32_t)i); i++) {
        const vp_tier *tier = vp_tier_at((int32_t)i);
        if (strncmp(mode, tier->name, strlen(tier->name)) == 0) options.tier = tier;
    }
    options.rule = options.tier ? VP_TILE_TIER : VP_TILE_ADAPTIVE;
    options.fit = options.tier || strncmp(mode, "adaptive-fill", 13) == 0 ? VP_FIT_FILL : VP_FIT_PAD;
    double *size = scan_numbers(scan_key(text, "size_wh", NULL), &count);
    double *resized = scan_numbers(scan_key(text, "resized_wh", NULL), &count);
    double *offset = scan_numbers(scan_key(text, options.fit == VP_FIT_FILL ? "crop_left_top" : "pad_left_top", NULL), &count);
    double *whole = scan_numbers(scan_key(text, "global_resized_wh", NULL), &count);
    ids.im_start = (int32_t)scan_number(text, "<im_start>", NULL);
    ids.im_end = (int32_t)scan_number(text, "<im_end>", NULL);
    ids.im_patch = (int32_t)scan_number(text, "<im_patch>", NULL);
    ids.im_col = (int32_t)scan_number(text, "<im_col>", NULL);
    CHECK_INT(vp_layout_compute(&g, &options, (int32_t)size[0], (int32_t)size[1], &l, NULL), VP_OK);
    CHECK(l.resized_width_px == resized[0] && l.resized_height_px == resized[1]);
    CHECK(l.offset_left_px == offset[0] && l.offset_top_px == offset[1]);
    CHECK(l.global_resized_width_px == whole[0] && l.global_resized_height_px == whole[1]);
    CHECK_INT(l.theoretical_tokens, scan_number(text, "target_vision_tokens", NULL));
    CHECK_INT(l.feature_tokens, scan_number(scan_key(text, "target_vision_tokens", NULL), "vision_tokens", NULL)); /* not set by after_collator */
    CHECK_INT(l.image_tokens, scan_number(text, "image_sequence_tokens", NULL));
    snprintf(path, sizeof path, "preprocess/cases/%s/image_tokens.npy", name);
    if (!CHECK(check_npy(check_golden(path), &tokens))) memset(&tokens, 0, sizeof tokens);
    CHECK_INT(index.count, (int64_t)l.views * 144);
    CHECK_INT(tokens.count, l.image_tokens);
    map = (int32_t *)malloc(((size_t)index.count + 1) * sizeof *map);
    sequence = (int32_t *)malloc(((size_t)tokens.count + 1) * sizeof *sequence);
    map[index.count] = sequence[tokens.count] = -12345; /* guard values */
    CHECK_INT(vp_tokens_index_map(&g, &l, 1, map, (size_t)index.count), VP_OK);
    CHECK_INT(vp_tokens_image_ids(&g, &l, &ids, sequence, (size_t)tokens.count), VP_OK);
    for (int64_t i = 0; i < index.count; i++) CHECK_INT(map[i], check_at(&index, i));
    for (int64_t i = 0; i < tokens.count; i++) CHECK_INT(sequence[i], check_at(&tokens, i));
    CHECK(map[index.count] == -12345 && sequence[tokens.count] == -12345);
    check_free(&index);
    check_free(&tokens);
    FREE_ALL(map, sequence, size, resized, offset, whole, text);
    return 1;
}
static void test_cases(void) {
    static const char *own[] = {"mix-1200x800-png__adaptive", "mix-1200x800-png__low", "stripes-37x2000-png__high", "mix-200x150-png__adaptive-fill"};
    char *text = check_read(check_golden("preprocess/cases.json"), NULL);
    char *name = text ? strtok(text, "[]\", \r\n") : NULL;
    int i, seen = 0;
    for (; name; name = strtok(NULL, "[]\", \r\n")) seen += compare_case(name);
    if (seen < 70) {
        check_skip("index maps of the full set of preprocess cases", "only the cases that are kept with the tests are there");
        for (i = 0; i < COUNT(own); i++) CHECK(compare_case(own[i]));
    }
    free(text);
}
/* --------------------------------------------------------------------------------------------------------------- properties */
/* Molmo's rule as in the reference: all tilings in the order (rows * cols, rows), searched in float32. Intentionally slow. */
static vp_tiling slow_adaptive(int32_t window, int32_t margin, int32_t width, int32_t height, int32_t most) {
    const float h = (float)(height - margin), w = (float)(width - margin);
    vp_tiling best_up = {0, 0}, best_down = {0, 0};
    float up = 0, down = 0;
    for (int32_t area = 1; area <= most; area++) {
        for (int32_t rows = 1; rows <= area; rows++) {
            if (area % rows) continue;
            float scale_h = h == 0 ? (float)INFINITY : (float)(window * rows) / h;
            float scale_w = w == 0 ? (float)INFINITY : (float)(window * (area / rows)) / w;
            float scale = scale_h < scale_w ? scale_h : scale_w;
            if (scale >= 1 && (!best_up.rows || scale < up)) up = scale, best_up.rows = rows, best_up.cols = area / rows;
            if (scale < 1 && (!best_down.rows || scale > down)) down = scale, best_down.rows = rows, best_down.cols = area / rows;
        }
    }
    return best_up.rows ? best_up : best_down;
}
/* The same in integers, for sides so long that float32 cannot distinguish neighbouring scales; both sides are above the margin. */
static vp_tiling slow_adaptive_exact(int64_t window, int64_t h, int64_t w, int32_t most) {
    vp_tiling best_up = {0, 0}, best_down = {0, 0};
    int64_t up[2] = {0, 1}, down[2] = {0, 1}; /* numerator, denominator */
    for (int32_t area = 1; area <= most; area++) {
        for (int32_t rows = 1; rows <= area; rows++) {
            int64_t top, bottom;
            if (area % rows) continue;
            top = window * rows, bottom = h;
            if (window * (area / rows) * bottom < top * w) top = window * (area / rows), bottom = w;
            if (top >= bottom && (!best_up.rows || top * up[1] < up[0] * bottom)) {
                up[0] = top, up[1] = bottom, best_up.rows = rows, best_up.cols = area / rows;
            }
            if (top < bottom && (!best_down.rows || top * down[1] > down[0] * bottom)) {
                down[0] = top, down[1] = bottom, best_down.rows = rows, best_down.cols = area / rows;
            }
        }
    }
    return best_up.rows ? best_up : best_down;
}
/* The tier rule (margin 0) and the exact rule, in their simplest form. */
static vp_tiling slow_nearest(const int32_t *counts, int number, double aspect, int skip_primes, int32_t window, int32_t margin) {
    vp_tiling best = {1, 0};
    double least = INFINITY;
    for (int i = 0; i < number; i++) {
        int32_t rows, divisors = 0;
        for (rows = 1; rows <= counts[i]; rows++) divisors += counts[i] % rows == 0;
        if (skip_primes && counts[i] > 2 && divisors == 2) continue;
        for (rows = 1; rows <= counts[i]; rows++) {
            const double ratio = (double)(window * (counts[i] / rows) + margin) / (double)(window * rows + margin);
            if (counts[i] % rows == 0 && fabs(ratio - aspect) < least) {
                least = fabs(ratio - aspect);
                best.rows = rows;
                best.cols = counts[i] / rows;
            }
        }
    }
    return best;
}
static int same(vp_tiling a, vp_tiling b) { return a.rows == b.rows && a.cols == b.cols; }

/* image sides of every magnitude, more often where results change */
static int32_t random_side(vp_random *random, int32_t window, int32_t margin) {
    const uint64_t kind = vp_random_below(random, 9);
    if (kind < 5) return 1 + (int32_t)vp_random_below(random, 4999);
    if (kind < 7) { /* near a multiple of windows */
        const int32_t side = margin + window * (int32_t)vp_random_below(random, 40) + (int32_t)vp_random_below(random, 4) - 2;
        return side < 1 ? 1 : side;
    }
    return 1 + (int32_t)(vp_random_below(random, INT32_MAX - 1) >> vp_random_below(random, 30)); /* up to INT32_MAX */
}
static vp_geometry random_geometry(vp_random *random) {
    vp_geometry g = vp_geometry_default();
    const int32_t pool = 1 + (int32_t)vp_random_below(random, 2), window = pool * (1 + (int32_t)vp_random_below(random, 5));
    g.pool = pool;
    g.patch_px = 1 + (int32_t)vp_random_below(random, 15);
    g.margin_left_patches = pool * (int32_t)vp_random_below(random, 3);
    g.margin_right_patches = pool * (int32_t)vp_random_below(random, 3);
    g.crop_px = g.patch_px * (window + g.margin_left_patches + g.margin_right_patches);
    return g;
}
static void test_rules(void) {
    const uint32_t seed = 20261121;
    vp_random random;
    int round, in_float = 0;
    check_case("property: fast rules equal slow rules (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (round = 0; round < 6000; round++) {
        const vp_geometry g = round % 3 ? vp_geometry_default() : random_geometry(&random);
        const int32_t window = vp_geometry_window_px(&g), margin = vp_geometry_margin_px(&g);
        const int32_t width = random_side(&random, window, margin), height = random_side(&random, window, margin);
        const int32_t most = 1 + (int32_t)vp_random_below(&random, round % 10 ? 15 : 80), crops = 1 + (int32_t)vp_random_below(&random, 199);
        const double aspect = (double)width / (double)height;
        const int32_t longer = width > height ? width : height, shorter = width < height ? width : height;
        vp_tiling got = {-1, -1}, want = {1, 1};
        vp_tier tier = {"own", 1, 1, 0, {0, 0, 0, 0}};
        int32_t order[80], i;
        int number = 0;
        CHECK_INT(vp_geometry_check(&g), VP_OK);
        if (longer < 8388608 / most) {
            want = slow_adaptive(window, margin, width, height, most);
            in_float++;
        } else if (shorter > margin) {
            want = slow_adaptive_exact(window, height - margin, width - margin, most);
        } else if (shorter == margin) { /* infinite: only the long side decides, and it is longer than the crops can show */
            want.rows = width == margin ? most : 1;
            want.cols = width == margin ? 1 : most;
        }
        CHECK_INT(vp_tiler_adaptive(&g, width, height, most, &got), VP_OK);
        check_note(same(got, want), __FILE__, __LINE__, "adaptive %dx%d, most %d, window %d, margin %d: %dx%d, expected %dx%d", (int)width,
                   (int)height, (int)most, (int)window, (int)margin, (int)got.rows, (int)got.cols, (int)want.rows, (int)want.cols);
        CHECK_INT(vp_tiler_exact(&g, crops, aspect, &got), VP_OK);
        want = slow_nearest(&crops, 1, aspect, 0, window, margin);
        check_note(same(got, want), __FILE__, __LINE__, "exact %d, aspect %g", (int)crops, aspect);
        tier.min_crops = 1 + (int32_t)vp_random_below(&random, 12);
        tier.max_crops = tier.min_crops + (int32_t)vp_random_below(&random, 12);
        tier.preferred_count = (int32_t)vp_random_below(&random, 4);
        for (i = 0; i < tier.preferred_count; i++) { /* some are outside the tier, which makes them invalid */
            tier.preferred[i] = (int32_t)vp_random_below(&random, 27);
            if (tier.preferred[i] >= tier.min_crops && tier.preferred[i] <= tier.max_crops) order[number++] = tier.preferred[i];
        }
        for (i = tier.min_crops; i <= tier.max_crops; i++) order[number++] = i; /* repeats for the preferred ones: strict < makes no difference */
        want = slow_nearest(order, number, aspect, 1, window, 0);
        if (want.cols == 0) want.cols = tier.min_crops; /* all primes */
        CHECK_INT(vp_tiler_tier(&tier, width, height, &got), VP_OK);
        check_note(same(got, want), __FILE__, __LINE__, "tier %d-%d, aspect %g: %dx%d, expected %dx%d", (int)tier.min_crops,
                   (int)tier.max_crops, aspect, (int)got.rows, (int)got.cols, (int)want.rows, (int)want.cols);
    }
    CHECK(in_float > 3000 && in_float < 5900); /* both slow versions were used */
}
/* Random geometries and tilings: the kept cells cover the high-resolution grid and the global view exactly once, each refers to a patch token, and each cell is inside
 * the crop that keeps it. */
static void check_map(const vp_geometry *g, const vp_layout *l, int32_t first) {
    const vp_special_ids ids = {0, 0, 0, 11, 12, 13, 14, 15};
    const int32_t side = vp_geometry_patches_per_side(g) / g->pool, per_crop = side * side, stride = vp_geometry_window_px(g) / g->patch_px / g->pool;
    const int32_t grid_rows = l->canvas_height_px / g->patch_px / g->pool, grid_cols = l->canvas_width_px / g->patch_px / g->pool;
    const size_t entries = (size_t)l->views * (size_t)per_crop;
    int32_t *map = (int32_t *)malloc((entries + 1) * sizeof *map), *sequence = (int32_t *)malloc(((size_t)l->image_tokens + 1) * sizeof *sequence);
    unsigned char *seen = (unsigned char *)calloc((size_t)l->image_tokens, 1);
    int32_t kept = 0, patches = 0, i;
    map[entries] = sequence[l->image_tokens] = -12345;
    CHECK_INT(vp_tokens_index_map(g, l, first, map, entries), VP_OK);
    CHECK_INT(vp_tokens_image_ids(g, l, &ids, sequence, (size_t)l->image_tokens), VP_OK);
    CHECK(map[entries] == -12345 && sequence[l->image_tokens] == -12345);
    CHECK_INT(per_crop + grid_rows * grid_cols, l->feature_tokens);
    for (i = 0; i < l->image_tokens; i++) patches += sequence[i] == ids.im_patch;
    CHECK_INT(patches, l->feature_tokens);
    for (size_t e = 0; e < entries; e++) {
        const int32_t place = map[e] - first, view = (int32_t)(e / (size_t)per_crop), cell = (int32_t)(e % (size_t)per_crop);
        if (map[e] == -100) continue;
        if (!CHECK(place >= 0 && place < l->image_tokens && !seen[place] && sequence[place] == ids.im_patch)) continue;
        seen[place] = 1;
        kept++;
        if (view > 0) { /* the crop's position, from only the tiling */
            const int32_t y = (view - 1) / l->tiling.cols * stride + cell / side, x = (view - 1) % l->tiling.cols * stride + cell % side;
            CHECK_INT(place, 3 + side * (side + 1) + y * (grid_cols + 1) + x);
        } else {
            CHECK_INT(place, 1 + cell / side * (side + 1) + cell % side);
        }
    }
    CHECK_INT(kept, l->feature_tokens);
    FREE_ALL(map, sequence, seen);
}
static void test_maps(void) {
    const uint32_t seed = 42;
    vp_random random;
    check_case("property: kept cells tile the grid exactly once (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (int round = 0; round < 600; round++) {
        const vp_geometry g = round % 2 ? vp_geometry_default() : random_geometry(&random);
        vp_tile_options options = vp_tile_options_default();
        vp_layout l;
        options.fit = VP_FIT_FILL;
        options.rule = round % 3 ? VP_TILE_ADAPTIVE : VP_TILE_CROPS;
        options.max_crops = options.crops = 1 + (int32_t)vp_random_below(&random, 39);
        int32_t width = 1 + (int32_t)vp_random_below(&random, 3999);
        int32_t height = 1 + (int32_t)vp_random_below(&random, 3999);
        CHECK_INT(vp_layout_compute(&g, &options, width, height, &l, NULL), VP_OK);
        check_map(&g, &l, (int32_t)vp_random_below(&random, 1000));
    }
}
/* ------------------------------------------------------------------------------------------------------------------ refusals */
static void test_extremes(void) {
    const vp_geometry g = vp_geometry_default();
    vp_geometry square = g; /* crops of 256 px without overlap */
    vp_tile_options options = vp_tile_options_default();
    vp_layout l;
    vp_error error;
    square.patch_px = 16;
    square.crop_px = 256;
    square.margin_left_patches = square.margin_right_patches = 0;
    check_case("extreme sizes: fill accepts them, pad rejects sizes below a pixel");
    options.fit = VP_FIT_FILL;
    CHECK_INT(vp_layout_compute(&g, &options, 1, 5000, &l, NULL), VP_OK);
    CHECK_INT(l.resized_width_px, 336);
    CHECK_INT(l.resized_height_px, 1680000);
    CHECK_INT(vp_layout_compute(&g, &options, 1, 6391320, &l, NULL), VP_OK); /* 336 * 6391320 = 2147483520, the last float32 below 2^31 */
    CHECK_INT(l.resized_height_px, 2147483520);
    memset(&error, 0xA5, sizeof error);
    CHECK_INT(vp_layout_compute(&g, &options, 1, 6391321, &l, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "an image of 1x6391321 px that fills 336x336 px is more than 2147483647 px on its long side; crop it first");
    CHECK_INT(vp_layout_compute(&square, &options, 1, 8388608, &l, NULL), VP_ERR_RANGE); /* exactly 2^31 */
    CHECK_INT(vp_layout_compute(&square, &options, 1, 8388607, &l, NULL), VP_OK);
    CHECK_INT(l.resized_height_px, 2147483392);
    CHECK_INT(vp_layout_compute(&g, &options, 1, INT32_MAX, &l, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_layout_compute(&g, &options, INT32_MAX, INT32_MAX, &l, NULL), VP_OK);
    CHECK_INT(l.tiling.rows * 10 + l.tiling.cols, 33);
    options.fit = VP_FIT_PAD;
    CHECK_INT(vp_layout_compute(&g, &options, INT32_MAX, INT32_MAX, &l, NULL), VP_OK);
    CHECK_INT(l.resized_width_px, 784);
    CHECK_INT(vp_layout_compute(&g, &options, 1, 1, &l, NULL), VP_OK);
    CHECK_INT(vp_layout_compute(&g, &options, 1, 336, &l, NULL), VP_OK);
    CHECK_INT(vp_layout_compute(&g, &options, 1, 5000, &l, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "image size");
    CHECK_TEXT(error.text, "an image of 1x5000 px fitted into 336x336 px is less than a pixel on its short side; crop it, or use a fill mode");
    options.max_crops = 36; /* 10x1 crops would show it, but the global view would not: 7 * (336 / 2400) < 1 */
    CHECK_INT(vp_layout_compute(&g, &options, 7, 2400, &l, &error), VP_ERR_RANGE);
}
static void expect_range(const vp_geometry *g, const vp_tile_options *options, int32_t width, int32_t height, const char *where) {
    vp_layout l, poison;
    vp_error error = {0};
    memset(&poison, 0xA5, sizeof poison);
    l = poison;
    CHECK_INT(vp_layout_compute(g, options, width, height, &l, &error), VP_ERR_RANGE);
    CHECK(memcmp(&l, &poison, sizeof l) == 0);
    CHECK_TEXT(error.where, where);
    CHECK_INT(error.code, VP_ERR_RANGE);
    CHECK_INT(vp_layout_compute(g, options, width, height, &l, NULL), VP_ERR_RANGE); /* without an error to fill */
}
static void test_layout_refusals(void) {
    const vp_geometry g = vp_geometry_default();
    vp_geometry bad = g, large = g;
    const vp_tile_options adaptive = vp_tile_options_default();
    vp_tile_options options = adaptive;
    vp_tier tier = *vp_tier_at(0);
    vp_layout layout;
    check_case("VP_ERR_RANGE of vp_layout_compute, with names");
    bad.pool = 0;
    expect_range(&bad, &options, 640, 480, "geometry");
    expect_range(&g, &options, 0, 480, "image size");
    expect_range(&g, &options, 640, -1, "image size");
    expect_range(&g, &options, INT32_MIN, INT32_MIN, "image size");
    options.fit = (vp_fit)2;
    expect_range(&g, &options, 640, 480, "fit");
    options = adaptive;
    options.rule = (vp_tile_rule)4;
    expect_range(&g, &options, 640, 480, "rule");
    options = adaptive;
    options.max_crops = 0;
    expect_range(&g, &options, 640, 480, "max_crops");
    options.max_crops = VP_CROPS_LIMIT + 1;
    expect_range(&g, &options, 640, 480, "max_crops");
    options.rule = VP_TILE_CROPS;
    expect_range(&g, &options, 640, 480, "crops");
    options.crops = VP_CROPS_LIMIT + 1;
    expect_range(&g, &options, 640, 480, "crops");
    options.rule = VP_TILE_TOKENS;
    expect_range(&g, &options, 640, 480, "vision_tokens");
    options.vision_tokens = -144;
    expect_range(&g, &options, 640, 480, "vision_tokens");
    options.vision_tokens = INT32_MAX;
    expect_range(&g, &options, 640, 480, "vision_tokens");
    options.rule = VP_TILE_TIER;
    expect_range(&g, &options, 640, 480, "tier");
    options.tier = &tier;
    tier.min_crops = 0;
    expect_range(&g, &options, 640, 480, "tier");
    tier.min_crops = 4;
    expect_range(&g, &options, 640, 480, "tier");
    tier.max_crops = VP_CROPS_LIMIT + 1;
    expect_range(&g, &options, 640, 480, "tier");
    tier = *vp_tier_at(0);
    tier.preferred_count = 5;
    expect_range(&g, &options, 640, 480, "tier");
    tier.preferred_count = -1;
    expect_range(&g, &options, 640, 480, "tier");
    options = adaptive;
    options.rule = VP_TILE_CROPS;
    options.crops = 65521; /* a prime: one column or one row of 65521 windows */
    expect_range(&g, &options, 640, 480, "tiling");
    expect_range(&g, &options, INT32_MAX, 1, "tiling");
    large.patch_px = 1;
    large.pool = 1;
    large.crop_px = 16384;
    options.crops = 16; /* 17 views of 2^28 tokens */
    expect_range(&large, &options, 640, 480, "tiling");
    large.margin_left_patches = large.margin_right_patches = 8191; /* nearly everything overlaps: 2^29 features, but still 17 views */
    expect_range(&large, &options, 640, 480, "tiling");
    options.crops = 1;
    CHECK_INT(vp_layout_compute(&large, &options, 640, 480, &layout, NULL), VP_OK);
    CHECK_INT(layout.theoretical_tokens, 1 << 29);
}
static void test_refusals(void) {
    const vp_geometry g = vp_geometry_default();
    vp_geometry bad = g;
    vp_tiling t = {-7, -7}, wide = {1, 37449};
    const vp_tier *low = vp_tier_at(0);
    int32_t a = -7, b = -7;
    bad.patch_px = 0;
    check_case("VP_ERR_RANGE of tiler and select; outputs are unchanged");
    CHECK_INT(vp_tiler_adaptive(&bad, 640, 480, 12, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_adaptive(&g, 0, 480, 12, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_adaptive(&g, 640, -1, 12, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_adaptive(&g, 640, 480, 0, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_adaptive(&g, 640, 480, VP_CROPS_LIMIT + 1, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_tier(NULL, 640, 480, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_tier(low, 0, 480, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_tier(low, 640, INT32_MIN, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, 0, 1.0, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, VP_CROPS_LIMIT + 1, 1.0, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, 4, 0.0, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, 4, -1.0, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, 4, (double)NAN, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tiler_exact(&g, 4, (double)INFINITY, &t), VP_ERR_RANGE);
    CHECK_INT(vp_select_tiling(&bad, 640, 480, &t), VP_ERR_RANGE);
    CHECK_INT(vp_select_tiling(&g, 0, 480, &t), VP_ERR_RANGE);
    CHECK_INT(vp_select_tiling(&g, 640, 0, &t), VP_ERR_RANGE);
    CHECK_INT(t.rows + t.cols, -14);
    CHECK_INT(vp_select_crops(&bad, 144, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_crops(&g, 0, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_crops(&g, INT32_MIN, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_crops(&g, INT32_MAX, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_vision_tokens(&bad, 1, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_vision_tokens(&g, 0, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_vision_tokens(&g, VP_CROPS_LIMIT + 1, &a), VP_ERR_RANGE);
    bad = g, bad.patch_px = 1, bad.pool = 1; /* 192 squared tokens per crop */
    CHECK_INT(vp_select_vision_tokens(&bad, VP_CROPS_LIMIT, &a), VP_ERR_RANGE);
    CHECK_INT(vp_select_canvas(&g, t, &a, &b), VP_ERR_RANGE);
    CHECK_INT(vp_select_canvas(&g, wide, &a, &b), VP_ERR_RANGE);
    wide.cols = INT32_MAX;
    CHECK_INT(vp_select_canvas(&g, wide, &a, &b), VP_ERR_RANGE);
    CHECK_INT(a + b, -14);
    wide.cols = 37448;
    CHECK_INT(vp_select_canvas(&g, wide, &a, &b), VP_OK);
    CHECK_INT(a, 8388464);
    CHECK_INT(vp_select_tiling(&g, INT32_MAX, 1, &t), VP_OK);
    CHECK(t.rows == 1 && t.cols == 9586980);
}
static void test_token_refusals(void) {
    const vp_geometry g = vp_geometry_default();
    const vp_tile_options options = vp_tile_options_default();
    const vp_special_ids ids = {0, 0, 0, 11, 12, 13, 14, 15};
    vp_geometry other = g;
    vp_layout l, bad;
    int32_t out[2000];
    check_case("rejections of tokens: capacity, range, mismatch");
    memset(out, 0xA5, sizeof out);
    CHECK_INT(vp_layout_compute(&g, &options, 640, 480, &l, NULL), VP_OK); /* 2x3, 7 views, 740 tokens */
    CHECK_INT(vp_tokens_index_map(&g, &l, 1, out, 7 * 144 - 1), VP_ERR_CAPACITY);
    CHECK_INT(vp_tokens_index_map(&g, &l, 1, out, 0), VP_ERR_CAPACITY);
    CHECK_INT(vp_tokens_image_ids(&g, &l, &ids, out, 739), VP_ERR_CAPACITY);
    CHECK_INT(vp_tokens_index_map(&g, &l, -1, out, 2000), VP_ERR_RANGE);
    CHECK_INT(vp_tokens_index_map(&g, &l, INT32_MAX - 739, out, 2000), VP_ERR_RANGE);
    other.pool = 0;
    CHECK_INT(vp_tokens_index_map(&other, &l, 1, out, 2000), VP_ERR_RANGE);
    CHECK_INT(vp_tokens_image_ids(&other, &l, &ids, out, 2000), VP_ERR_RANGE);
    other.pool = 1;
    CHECK_INT(vp_tokens_index_map(&other, &l, 1, out, 2000), VP_ERR_MISMATCH);
    CHECK_INT(vp_tokens_image_ids(&other, &l, &ids, out, 2000), VP_ERR_MISMATCH);
    bad = l, bad.tiling.rows = 3; /* an edited layout must not make a loop run past the buffer */
    CHECK_INT(vp_tokens_index_map(&g, &bad, 1, out, 2000), VP_ERR_MISMATCH);
    bad = l, bad.crops = 1;
    CHECK_INT(vp_tokens_index_map(&g, &bad, 1, out, 2000), VP_ERR_MISMATCH);
    bad = l, bad.views = 1;
    CHECK_INT(vp_tokens_index_map(&g, &bad, 1, out, 2000), VP_ERR_MISMATCH);
    bad = l, bad.image_tokens = 100;
    CHECK_INT(vp_tokens_image_ids(&g, &bad, &ids, out, 2000), VP_ERR_MISMATCH);
    bad = l, bad.tiling.rows = INT32_MAX, bad.tiling.cols = INT32_MAX;
    CHECK_INT(vp_tokens_image_ids(&g, &bad, &ids, out, 2000), VP_ERR_RANGE);
    bad.tiling.rows = 0;
    CHECK_INT(vp_tokens_index_map(&g, &bad, 1, out, 2000), VP_ERR_RANGE);
    CHECK_INT(out[0], (int32_t)0xA5A5A5A5u);
    CHECK_INT(vp_tokens_index_map(&g, &l, INT32_MAX - 740, out, 2000), VP_OK);
    CHECK_INT(out[0], INT32_MAX - 739);
}
int main(void) {
    RUN_TESTS(test_geometry, test_presets, test_adaptive_table, test_tier_table, test_maths, test_options, test_cases,
              test_rules, test_maps, test_extremes, test_layout_refusals, test_refusals, test_token_refusals);
    return check_done("test_tiler");
}
