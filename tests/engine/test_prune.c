/* slow-emulated: each pruning method on the emulated GPU, 7 s; in make test test_model runs there */
/* test_prune.c - pruned image tokens: the rules on given numbers (tests/golden/pruning/select), with the device's kernels if there are any; whole requests of
 * models/ and others/ in fp32: kept tokens, positions, rows of every block, tokens, features, logits; counts against the work done; rejections with their reasons. With
 * TEST_DEVICE: the same on that device.
 * links: engine */
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

#include "engine/engine_internal.h"

#include "support/check.h"
#include "support/json_file.h"

#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif
enum { STEPS = 6 };

/* ---------------------------------------------------------------------------------------------------------------- case.json */
static uint32_t node_of(const json_file *file, uint32_t object, const char *key) {
    const uint32_t node = vp_json_get(&file->json, object, key);
    return node != VP_JSON_NONE && file->json.nodes[node].type == VP_JSON_NULL ? VP_JSON_NONE : node;
}
static double number_in(const json_file *file, uint32_t object, const char *key, double otherwise) {
    const uint32_t node = node_of(file, object, key);
    double value;
    return node != VP_JSON_NONE && vp_json_to_double(&file->json, node, &value) == VP_OK ? value : otherwise;
}
static int whole_of(const json_file *file, const char *key) { return (int)number_in(file, 0, key, -1); }
static void text_of(const json_file *file, const char *key, char out[256]) {
    size_t needed;
    const uint32_t node = node_of(file, 0, key);
    out[0] = 0;
    if (node != VP_JSON_NONE) vp_json_text(&file->json, node, out, 256, &needed);
}
/* the numbers of an array, including nested arrays; NULL if there are none */
static int32_t *ints_at(const json_file *file, uint32_t list, int32_t *count) {
    int32_t *out;
    *count = 0;
    if (list == VP_JSON_NONE || file->json.nodes[list].type != VP_JSON_ARRAY) return NULL;
    out = (int32_t *)malloc((size_t)(file->json.nodes[list].end - list) * sizeof *out);
    for (uint32_t i = list + 1; i < file->json.nodes[list].end; i++) {
        int64_t value = 0;
        if (file->json.nodes[i].type == VP_JSON_ARRAY || vp_json_to_int(&file->json, i, &value) != VP_OK) continue;
        out[(*count)++] = (int32_t)value;
    }
    return out;
}
static int32_t *ints_of(const json_file *file, const char *key, int32_t *count) { return ints_at(file, node_of(file, 0, key), count); }
static void check_ints(const int32_t *got, int32_t got_count, const json_file *file, const char *key) {
    int32_t count, *want = ints_of(file, key, &count);
    if (CHECK(want) && CHECK_INT(got_count, count))
        for (int32_t i = 0; i < count; i++)
            if (!CHECK_INT(got[i], want[i])) { printf("%s[%d]\n", key, i); break; }
    free(want);
}

/* ---------------------------------------------------------------------------------------------------------------- the rules */
static const vk_backend *backend;
static vk_queue *queue;
static char *room; /* memory of the device */
static size_t used;
enum { ROOM = 4 << 20 };
static int open_device(void) {
    vk_extent extent = {0};
    vp_error error;
    backend = strcmp(TEST_DEVICE, "cpu") && vk_gpu_code ? vk_gpu_code() : vk_cpu_code();
    vk_setup setup = {.threads = 2};
    setup.wide = extent.wide = 1;
    extent.marks = 8;
    extent.vit.tokens = extent.llm.tokens = 8;
    extent.vit.heads = extent.vit.kv_heads = extent.llm.heads = extent.llm.kv_heads = 1;
    extent.vit.head_dim = extent.llm.head_dim = 8;
    if (!CHECK_INT(backend->open(&setup, &queue, &error), VP_OK)) return 0;
    size_t scratch = vk_round_up(backend->scratch_bytes(queue, &extent), 256);
    room = (char *)backend->allocate(queue, ROOM + scratch);
    return CHECK(room && backend->use(queue, &extent, room + ROOM));
}
static void *take(size_t count) { /* 4 bytes each */
    void *at = room + used;
    used += vk_round_up(count * 4, 256);
    CHECK(used <= ROOM);
    return at;
}
static void *give(const void *values, size_t count) {
    void *at = take(count);
    memcpy(backend->stage(queue, at, count * 4), values, count * 4);
    backend->commit(queue, at, count * 4);
    return at;
}
static float *given_floats(const check_array *a) {
    float *values = (float *)malloc((size_t)a->count * sizeof *values + 4);
    for (int64_t i = 0; i < a->count; i++) values[i] = (float)check_at(a, i);
    return values;
}
static float *read_array(const char *folder, const char *name, check_array *a) {
    char path[200];
    memset(a, 0, sizeof *a);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    return CHECK(check_golden(path) && check_npy(check_golden(path), a)) ? given_floats(a) : NULL;
}
/* equal rows cannot be distinguished, so each is compared as the first of them */
static void fold_twins(const json_file *file, int32_t *values, int32_t count, int sorts) {
    int32_t twins, *twin_of = ints_of(file, "twin_of", &twins);
    for (int32_t i = 0; i < count && twin_of; i++) if (CHECK(values[i] >= 0 && values[i] < twins)) values[i] = twin_of[values[i]];
    if (sorts) vk_prune_sort(values, count);
    free(twin_of);
}
static void check_folded(const json_file *file, const char *key, int32_t *got, int32_t count, int sorts) {
    int32_t want_count, *want = ints_of(file, key, &want_count);
    if (CHECK(want) && CHECK_INT(count, want_count)) {
        fold_twins(file, got, count, sorts);
        fold_twins(file, want, count, sorts);
        for (int32_t i = 0; i < count; i++) CHECK_INT(got[i], want[i]);
    }
    free(want);
}

enum { MOST = 4096 };
static int32_t kept[MOST], order[MOST], list[MOST], start[MOST], base[MOST];
static vk_rank ranks[MOST];
static int64_t draws[MOST];
static void select_blindly(const json_file *file, int draws_too) {
    const int n = whole_of(file, "n"), keep = whole_of(file, "keep");
    if (draws_too) {
        vk_prune_random(n, keep, (uint32_t)number_in(file, 0, "seed", 0), draws, kept);
        for (int i = 0; i < keep; i++) order[i] = (int32_t)draws[i];
        check_ints(order, keep, file, "drawing_order");
    } else vk_prune_stride(n, keep, kept);
    check_ints(kept, keep, file, "kept");
}
static void select_pool(const json_file *file, const char *folder) {
    const int rows = whole_of(file, "rows"), columns = whole_of(file, "columns"), count = vk_prune_pool_count(rows, columns);
    check_array features, pooled;
    float *values = read_array(folder, "features", &features), *want = read_array(folder, "pooled", &pooled), *got;
    const int width = (int)(features.count / (rows * columns));
    int members = 0;
    for (int i = 0; i < count; i++) {
        start[i] = members;
        members += vk_prune_pool_members(rows, columns, i, list + members);
    }
    start[count] = members;
    CHECK_INT(pooled.count, (int64_t)count * width);
    float *in = (float *)give(values, (size_t)features.count), *out = (float *)take((size_t)pooled.count);
    backend->kernels.mean_rows(queue, out, in, NULL, (int32_t *)give(list, (size_t)members), (int32_t *)give(start, (size_t)count + 1), count, members, width);
    got = (float *)malloc((size_t)pooled.count * sizeof *got);
    backend->fetch(queue, got, out, (size_t)pooled.count * sizeof *got);
    CHECK_NEAR(relative(got, &pooled, 0, pooled.count), 0, 5e-6);
    FREE_ALL(got, values, want);
    check_free(&features);
    check_free(&pooled);
}
static void select_fastv(const json_file *file, const char *folder) {
    const int heads = whole_of(file, "heads"), keys = whole_of(file, "keys"), n = whole_of(file, "n"), from = whole_of(file, "image_start"),
              keep = whole_of(file, "keep");
    check_array a;
    float *attention = read_array(folder, "attention", &a), *scores = (float *)calloc((size_t)n, sizeof *scores);
    for (int i = 0; i < n; i++) {
        for (int head = 0; head < heads; head++) scores[i] += attention[head * keys + from + i];
        scores[i] /= (float)heads;
    }
    vk_prune_top(scores, n, keep, ranks, kept);
    check_ints(kept, keep, file, "kept");
    FREE_ALL(scores, attention);
    check_free(&a);
}
/* [heads, rows, d] -> [rows, heads * d] */
static float *heads_aside(const float *keys, int heads, int rows, int d) {
    float *out = (float *)malloc((size_t)(heads * rows * d) * sizeof *out);
    for (int h = 0; h < heads; h++)
        for (int r = 0; r < rows; r++) memcpy(out + (r * heads + h) * d, keys + (h * rows + r) * d, (size_t)d * sizeof *out);
    return out;
}
static void select_visionzip(const json_file *file, const char *folder) {
    static int32_t dominant[MOST], targets[MOST], merged[MOST], assigned[MOST];
    check_array attention, keys, hidden, tokens;
    float *a = read_array(folder, "cls_attention", &attention), *k = read_array(folder, "keys", &keys), *x = read_array(folder, "hidden", &hidden),
          *t = read_array(folder, "tokens", &tokens), *got, *scores;
    const int rows = (int)keys.shape[1], heads = (int)keys.shape[0], d = (int)keys.shape[2], n = rows - 1, width = (int)(hidden.count / rows);
    vk_zip zip = { whole_of(file, "dominant_count"), whole_of(file, "contextual_count"), 0, dominant, targets, merged, assigned };
    float *aside = heads_aside(k, heads, rows, d), *metric = (float *)take((size_t)(rows * d)), *unit = (float *)take((size_t)(rows * d));
    scores = (float *)calloc((size_t)n, sizeof *scores);
    for (int h = 0; h < heads; h++) for (int i = 0; i < n; i++) scores[i] += a[h * n + i];
    dominant[0] = 0;
    vk_prune_top(scores, n, zip.dominant_count - 1, ranks, dominant + 1);
    for (int i = 1; i < zip.dominant_count; i++) dominant[i]++;
    zip.target_count = vk_prune_targets(rows, dominant, zip.dominant_count, zip.target_count, targets, merged);
    zip.merged_count = rows - zip.dominant_count - zip.target_count;
    int keep = zip.dominant_count + zip.target_count;
    check_ints(dominant, zip.dominant_count, file, "dominant");
    check_ints(targets, zip.target_count, file, "targets");
    check_ints(merged, zip.merged_count, file, "merged");
    backend->kernels.mean_heads(queue, metric, give(aside, (size_t)(rows * heads * d)), rows, heads, d, heads * d, 1);
    backend->kernels.unit_rows(queue, unit, metric, NULL, rows, d, d);
    int32_t *out = (int32_t *)take((size_t)zip.merged_count + 1);
    backend->kernels.nearest_target(queue, out, unit, (int32_t *)give(merged, (size_t)zip.merged_count), zip.merged_count,
                                    (int32_t *)give(targets, (size_t)zip.target_count), zip.target_count, d);
    backend->fetch(queue, assigned, out, (size_t)zip.merged_count * sizeof *assigned);
    check_ints(assigned, zip.merged_count, file, "assigned_to");
    vk_prune_merge(&zip, 0, base, list, start);
    CHECK_INT(start[keep], zip.merged_count);
    float *sums = (float *)take((size_t)tokens.count), *in = (float *)give(x, (size_t)hidden.count);
    backend->kernels.mean_rows(queue, sums, in, (int32_t *)give(base, (size_t)keep), (int32_t *)give(list, (size_t)start[keep] + 1),
                               (int32_t *)give(start, (size_t)keep + 1), keep, start[keep], width);
    got = (float *)malloc((size_t)tokens.count * sizeof *got);
    backend->fetch(queue, got, sums, (size_t)tokens.count * sizeof *got);
    if (CHECK_INT(tokens.count, (int64_t)keep * width)) CHECK_NEAR(relative(got, &tokens, 0, tokens.count), 0, 5e-6);
    free(got); free(scores); free(aside); free(a); free(k); free(x); free(t);
    check_free(&attention); check_free(&keys); check_free(&hidden); check_free(&tokens);
}
static void select_dart(const json_file *file, const char *folder) {
    static unsigned char flags[MOST];
    static int32_t pivots[VP_PRUNE_PIVOTS_MAX];
    const int n = whole_of(file, "n"), from = whole_of(file, "image_start"), images = whole_of(file, "pivot_image"), texts = whole_of(file, "pivot_text");
    check_array states, keys;
    float *h = read_array(folder, "states", &states), *k = read_array(folder, "keys", &keys), *sizes, *cosines;
    const int heads = (int)keys.shape[0], rows = (int)keys.shape[1], d = (int)keys.shape[2], width = (int)(states.count / rows), all = images + texts;
    float *aside = heads_aside(k, heads, rows, d), *out = (float *)take((size_t)rows), *unit = (float *)take((size_t)(n * width)),
          *unit_pivots = (float *)take((size_t)(all * width)), *products = (float *)take((size_t)(all * n)), *in;
    int32_t image_rows[MOST];
    backend->kernels.row_size(queue, out, give(aside, (size_t)keys.count), rows, heads * d, heads * d, 1);
    sizes = (float *)malloc((size_t)rows * sizeof *sizes);
    backend->fetch(queue, sizes, out, (size_t)rows * sizeof *sizes);
    vk_prune_top(sizes + from, n, images, ranks, pivots);
    vk_prune_top(sizes + from + n, rows - from - n, texts, ranks, pivots + images);
    memset(flags, 0, sizeof flags);
    for (int i = 0; i < images; i++) flags[pivots[i]] = 1;
    if (node_of(file, 0, "twin_of") == VP_JSON_NONE) check_ints(pivots, images, file, "pivots_image");
    for (int i = 0; i < images; i++) pivots[i] += from;
    for (int i = images; i < all; i++) pivots[i] += from + n;
    if (node_of(file, 0, "twin_of") == VP_JSON_NONE) check_ints(pivots, all, file, "order");
    for (int i = 0; i < n; i++) image_rows[i] = from + i;
    in = (float *)give(h, (size_t)states.count);
    backend->kernels.unit_rows(queue, unit, in, (int32_t *)give(image_rows, (size_t)n), n, width, width);
    backend->kernels.unit_rows(queue, unit_pivots, in, (int32_t *)give(pivots, (size_t)all), all, width, width);
    backend->kernels.row_products(queue, products, unit_pivots, unit, all, n, width);
    cosines = (float *)malloc((size_t)(all * n) * sizeof *cosines);
    backend->fetch(queue, cosines, products, (size_t)(all * n) * sizeof *cosines);
    check_folded(file, "kept", kept, vk_prune_dart(cosines, all, n, whole_of(file, "per_pivot"), flags, ranks, kept), 1);
    free(cosines); free(sizes); free(aside); free(h); free(k);
    check_free(&states);
    check_free(&keys);
}
static void select_spread(const json_file *file, const char *folder) {
    const int n = whole_of(file, "n"), keep = whole_of(file, "keep");
    check_array features;
    float *x = read_array(folder, "features", &features);
    const int width = (int)(features.count / n);
    float *unit = (float *)take((size_t)(n * width));
    backend->kernels.unit_rows(queue, unit, (float *)give(x, (size_t)features.count), NULL, n, width, width);
    vk_prune_spread(backend, queue, unit, (float *)take((size_t)n), (int32_t *)take((size_t)keep), n, width, keep, order);
    memcpy(kept, order, (size_t)keep * sizeof *kept);
    vk_prune_sort(kept, keep);
    for (int i = 1; i < keep; i++) CHECK(kept[i] > kept[i - 1]); /* no duplicates */
    check_folded(file, "order", order, keep, 0);
    check_folded(file, "kept", kept, keep, 1);
    free(x);
    check_free(&features);
}
static void test_rules(void) {
    static const char *const methods[] = { "random", "stride", "pool", "fastv", "visionzip", "dart", "divprune" };
    int cases = 0;
    if (!open_device()) return;
    for (int m = 0; m < 7; m++)
        for (int number = 1; number < 10; number++) {
            char folder[120], path[160];
            json_file file;
            snprintf(folder, sizeof folder, "pruning/select/%s-%d", methods[m], number);
            snprintf(path, sizeof path, "%s/case.json", folder);
            if (!check_golden(path)) continue;
            check_case("%s", folder);
            if (!CHECK(json_open(check_golden(path), &file))) continue;
            used = 0;
            cases++;
            if (m < 2) select_blindly(&file, m == 0);
            else if (m == 2) select_pool(&file, folder);
            else if (m == 3) select_fastv(&file, folder);
            else if (m == 4) select_visionzip(&file, folder);
            else if (m == 5) select_dart(&file, folder);
            else select_spread(&file, folder);
            json_close(&file);
        }
    check_case("cases of the rules");
    CHECK(cases >= 21);
    backend->close(queue);
}
static void test_shares(void) {
    check_case("a share of tokens is rounded half to even");
    CHECK_INT(vk_prune_count(0.5, 5), 2);
    CHECK_INT(vk_prune_count(0.5, 7), 4);
    CHECK_INT(vk_prune_count(0.098, 576), 56);
    CHECK_INT(vk_prune_count(10.0 / 64.0, 192), 30);
    check_case("a score that is not a number ranks last, equal ones by index");
    const float scores[] = { 1, NAN, 2, 2, 1, -INFINITY };
    vk_prune_top(scores, 6, 3, ranks, kept);
    CHECK(kept[0] == 0 && kept[1] == 2 && kept[2] == 3);
    vk_prune_top(scores, 6, 5, ranks, kept);
    CHECK_INT(kept[1], 1);
}

/* ---------------------------------------------------------------------------------------------------------------- requests */
typedef struct model {
    vp_model_config config;
    vp_checkpoint *checkpoint;
    vp_engine *engine, *paper;
} model;
static void close_model(model *m) {
    vp_engine_close(m->engine);
    vp_engine_close(m->paper);
    vp_checkpoint_close(m->checkpoint);
    memset(m, 0, sizeof *m);
}
/* folder: of checkpoints, relative to the golden folders. Returns 0 if it does not exist. */
static int open_model(const char *folder, vp_weights weights, model *m) {
    char path[200], weights_at[512];
    size_t bytes = 0, preprocessor_bytes = 0;
    vp_engine_options options = vp_engine_options_default();
    vp_error error = { VP_OK, -1, "", "" };
    memset(m, 0, sizeof *m);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (!check_golden(path)) return 0;
    snprintf(weights_at, sizeof weights_at, "%s", check_golden(path));
    *strrchr(weights_at, '/') = 0;
    snprintf(path, sizeof path, "%s/config.json", folder);
    char *text = check_read(check_golden(path), &bytes);
    snprintf(path, sizeof path, "%s/preprocessor_config.json", folder);
    char *preprocessor = check_read(check_golden(path), &preprocessor_bytes);
    if (!CHECK(text) || !CHECK_INT(vp_model_config_parse(text, bytes, preprocessor, preprocessor_bytes, &m->config, &error), VP_OK)
        || !CHECK_INT(vp_checkpoint_open(weights_at, &m->config, &m->checkpoint, &error), VP_OK))
        printf("%s: %s: %s\n", folder, error.where, error.text);
    FREE_ALL(text, preprocessor);
    options.config = &m->config; options.checkpoint = m->checkpoint; options.weights = weights; options.device = TEST_DEVICE;
    options.max_sequence = 256; options.max_views = m->config.vit_native ? 80 : 13;
    options.prunes = 1;
    if (!CHECK_INT(vp_engine_open(&options, &m->engine, &error), VP_OK)) printf("%s: %s: %s\n", folder, error.where, error.text);
    options.counts_only = 1;
    CHECK_INT(vp_engine_open(&options, &m->paper, &error), VP_OK);
    return m->engine && m->paper;
}
typedef struct input { int32_t *ids, count, *index, views, rows, cols, *ends; float *pixels, *masks; } input;
static void free_input(input *in) { free(in->ids); free(in->index); free(in->pixels); free(in->masks); free(in->ends); }
/* pictures of crop x crop, stacked, or one picture that is cut into them -> patches of normalised values */
static void load_pictures(input *in, const vp_model_config *config, const char *path) {
    const vp_geometry *g = &config->geometry;
    const int32_t side = g->crop_px / g->patch_px, values = 3 * g->patch_px * g->patch_px;
    size_t bytes = 0;
    char *file = check_read(path, &bytes);
    vp_image image;
    vp_error error;
    int32_t view_px = g->crop_px;
    float *to;
    if (!CHECK(file) || !CHECK_INT(vp_image_decode((const uint8_t *)file, bytes, &image, &error), VP_OK)) return;
    free(file);
    if (!config->vit_native) view_px = image.width_px;
    in->cols = image.width_px / view_px;
    in->rows = image.height_px / view_px;
    in->views = in->rows * in->cols;
    to = in->pixels = (float *)malloc((size_t)(in->views * side * side * values) * sizeof(float));
    in->masks = (float *)calloc((size_t)(in->views * config->vit_positions), sizeof(float));
    for (int32_t patch = 0; patch < in->views * side * side; patch++)
        for (int32_t y = 0; y < g->patch_px; y++)
            for (int32_t x = 0; x < 3 * g->patch_px; x++) {
                const int32_t view = patch / (side * side), row = view / in->cols * view_px + patch % (side * side) / side * g->patch_px + y,
                              at = (row * image.width_px + view % in->cols * view_px + patch % side * g->patch_px) * 3 + x;
                *to++ = ((float)image.rgb[at] - (float)((double)g->mean[x % 3] * 255.0)) / (float)((double)g->std[x % 3] * 255.0);
            }
    vp_image_free(&image);
}
/* file: the case with ids; picture: its pixels. Returns 0 if something is missing. */
static int load_input(const json_file *file, const char *picture, const vp_model_config *config, input *in) {
    const int32_t token = whole_of(file, "image_token_id");
    int32_t found = 0;
    memset(in, 0, sizeof *in);
    in->ids = ints_of(file, "input_ids", &in->count);
    if (!CHECK(in->ids) || !CHECK(check_golden(picture))) return 0;
    load_pictures(in, config, check_golden(picture));
    in->index = (int32_t *)malloc((size_t)in->count * sizeof *in->index);
    in->ends = (int32_t *)malloc((size_t)in->count * sizeof *in->ends);
    for (int32_t i = 0; i < in->count; i++) {
        if (in->ids[i] == token) in->index[found++] = i;
        in->ends[i] = i + 1;
    }
    return CHECK_INT(found, in->views * vp_geometry_tokens_per_crop(&config->geometry)) && in->pixels;
}
/* the request's pointers are valid until the next call */
static vp_request request_of(const vp_model_config *config, const input *in, const vp_prune *prune, int32_t blocks[64]) {
    static vp_image_views image;
    vp_request r = {0};
    image = (vp_image_views){ in->views, in->rows, in->cols };
    for (int32_t b = 0; b < config->block_count; b++) blocks[r.active_block_count++] = b;
    r.input_ids = in->ids; r.input_count = in->count;
    r.pixels = in->pixels; r.image_masks = in->masks; r.image_input_idx = in->index; r.views = in->views;
    r.images = &image; r.image_count = in->views > 0; r.span_ends = in->ends;
    r.top_k = config->top_k; r.active_blocks = blocks;
    r.max_new_tokens = STEPS; r.ignore_eos = 1; r.eos_id = -1;
    r.prune = prune;
    return r;
}
static vp_prune prune_of(const json_file *file, vp_prune_positions positions) {
    static const struct { const char *key; size_t offset; } wholes[] = {
        { "layer", offsetof(vp_prune, layer) }, { "K", offsetof(vp_prune, layer) }, { "seed", offsetof(vp_prune, seed) },
        { "dominant", offsetof(vp_prune, dominant) }, { "contextual", offsetof(vp_prune, contextual) }, { "pivot_image", offsetof(vp_prune, pivot_image) },
        { "pivot_text", offsetof(vp_prune, pivot_text) }, { "per_pivot", offsetof(vp_prune, per_pivot) } };
    const uint32_t with = node_of(file, 0, "parameters"), ratios = node_of(file, with, "ratios");
    int32_t count = 0, *layers = ints_at(file, node_of(file, with, "layers"), &count);
    char method[256];
    text_of(file, "method", method);
    vp_prune prune = vp_prune_default(VP_PRUNE_NONE);
    for (int m = 0; m < VP_PRUNE_METHOD_COUNT; m++) if (!strcmp(vp_prune_name((vp_prune_method)m), method)) prune = vp_prune_default((vp_prune_method)m);
    prune.positions = positions;
    prune.keep = number_in(file, with, "keep", 0);
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        int32_t *to = (int32_t *)(void *)((char *)&prune + wholes[i].offset);
        *to = (int32_t)number_in(file, with, wholes[i].key, *to);
    }
    prune.cut_count = count;
    for (int32_t i = 0; i < count; i++) prune.layers[i] = layers[i];
    for (uint32_t i = ratios == VP_JSON_NONE ? 0 : ratios + 1, k = 0; ratios != VP_JSON_NONE && i < file->json.nodes[ratios].end; i++)
        vp_json_to_double(&file->json, i, &prune.ratios[k++]);
    free(layers);
    return prune;
}
typedef struct output { float *logits, *features; int32_t *kept, *positions, tokens[STEPS]; vp_reply reply; } output;
static void free_output(output *o) { free(o->logits); free(o->features); free(o->kept); free(o->positions); }
static vp_result run(const model *m, const vp_request *request, output *o, vp_error *error) {
    static int64_t step_ns[STEPS];
    vp_request r = *request;
    vp_dump dump = {0};
    memset(o, 0, sizeof *o);
    o->logits = dump.logits = (float *)malloc((size_t)(STEPS * m->config.embedding_size) * sizeof(float));
    o->features = dump.kept_features = (float *)malloc((size_t)(r.input_count * m->config.d_model) * sizeof(float));
    o->kept = dump.kept = (int32_t *)calloc((size_t)r.input_count, sizeof(int32_t));
    o->positions = dump.kept_positions = (int32_t *)calloc((size_t)r.input_count * 3, sizeof(int32_t));
    r.dump = &dump;
    o->reply.tokens = o->tokens; o->reply.step_ns = step_ns;
    return vp_engine_run(m->engine, &r, &o->reply, error);
}
/* The stages add up: all work of the device is in exactly one of them. */
static void check_closure(const vp_reply *reply, int64_t wall_ns) {
    int64_t sum = 0;
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) sum += reply->times.device_ns[stage];
    CHECK(sum > 0 && (strcmp(TEST_DEVICE, "cpu") || sum <= wall_ns));
    CHECK_INT(reply->times.begin_ns[VP_STAGE_DECODE], sum - reply->times.device_ns[VP_STAGE_DECODE]);
}
/* rows of each block in the prefill, compared with the case's list */
static void check_rows(const model *m, const vp_request *r, const json_file *file, vp_pruned *pruned) {
    int32_t count, *want = ints_of(file, "cache_lengths", &count);
    vp_error error = { VP_OK, -1, "", "" };
    if (!want) want = ints_of(file, "rows_per_block", &count);
    if (CHECK(want) && CHECK_INT(vp_prune_request(&m->config, r, VP_WEIGHTS_FP32, pruned, &error), VP_OK)) {
        uint64_t rows = 0;
        for (int32_t b = 0; b < count; b++) {
            int32_t region = 0;
            for (int32_t i = 0; i < pruned->region_count; i++) if (pruned->first_block[i] <= b) region = i;
            CHECK_INT(pruned->rows[region], want[b]);
            rows += (uint64_t)(want[b] + STEPS - 1);
        }
        CHECK_INT(pruned->cache_bytes, rows * 8 * (uint64_t)(m->config.kv_head_count * m->config.head_dim));
        CHECK(pruned->cache_bytes <= pruned->full_cache_bytes);
        CHECK_INT(pruned->image_tokens, whole_of(file, "image_tokens"));
        CHECK_INT(pruned->kept_tokens, whole_of(file, "image_tokens_after"));
    }
    free(want);
}
static void compare(const model *m, const vp_request *r, const json_file *file, const char *folder, const char *logits_file, int positions_checked) {
    const int64_t vocabulary = m->config.embedding_size, d = m->config.d_model, start_ns = vp_clock_ns();
    char path[200];
    check_array a;
    vp_error error = { VP_OK, -1, "", "" };
    vp_pruned pruned;
    output o;
    double logits = 0;
    if (!CHECK_INT(run(m, r, &o, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); free_output(&o); return; }
    check_closure(&o.reply, vp_clock_ns() - start_ns);
    check_rows(m, r, file, &pruned);
    CHECK_INT(o.reply.times.ran[VP_STAGE_PRUNE], r->prune->method != VP_PRUNE_NONE);
    snprintf(path, sizeof path, "%s/%s", folder, logits_file);
    if (CHECK(check_golden(path) && check_npy(check_golden(path), &a)) && CHECK_INT(a.count, STEPS * vocabulary))
        for (int s = 0; s < STEPS; s++) logits = fmax(logits, relative(o.logits + s * vocabulary, &a, s * vocabulary, vocabulary));
    CHECK_NEAR(logits, 0, 2e-5);
    check_free(&a);
    snprintf(path, sizeof path, "%s/kept_features.npy", folder);
    if (r->prune->method != VP_PRUNE_NONE && CHECK(check_golden(path) && check_npy(check_golden(path), &a))) {
        if (CHECK_INT(a.count, (int64_t)o.reply.kept_tokens * d)) CHECK_NEAR(relative(o.features, &a, 0, a.count), 0, 5e-6);
        check_free(&a);
        if (node_of(file, 0, "kept") != VP_JSON_NONE) check_ints(o.kept, o.reply.kept_count, file, "kept");
        else CHECK_INT(o.reply.kept_count, 0);
    }
    if (positions_checked && r->prune->method != VP_PRUNE_NONE) {
        const char *key = node_of(file, 0, "positions") != VP_JSON_NONE ? "positions" : "positions_behind_block_K";
        int32_t count, *want = ints_of(file, key, &count), rows = pruned.rows[pruned.region_count - 1], axes = count / rows;
        for (int32_t i = 0; i < count && want; i++) CHECK_INT(o.positions[i / rows * r->input_count + i % rows], want[i]);
        CHECK(!want || (axes == 1 && rows == count) || axes == 3);
        free(want);
    }
    free_output(&o);
}
static void check_tokens(const model *m, const vp_request *r, const int32_t *want, int32_t count) {
    static int32_t tokens[STEPS];
    static int64_t step_ns[STEPS];
    vp_reply reply = {0};
    vp_error error = { VP_OK, -1, "", "" };
    reply.tokens = tokens; reply.step_ns = step_ns;
    for (int round = 0; round < 2; round++) { /* the second round replays recorded steps, if there are any */
        if (!CHECK_INT(vp_engine_run(m->engine, r, &reply, &error), VP_OK) || !CHECK_INT(count, STEPS)) return;
        for (int i = 0; i < STEPS; i++) CHECK_INT(tokens[i], want[i]);
    }
}
/* counts without pixels, ids and positions equal the work of a run */
static void compare_counted(const model *m, const vp_request *request) {
    static int32_t tokens[STEPS];
    static int64_t step_ns[STEPS];
    vp_request bare = *request;
    vp_prune prune = *request->prune;
    vp_reply reply = {0};
    vp_stage_times work;
    vp_error error = { VP_OK, -1, "", "" };
    reply.tokens = tokens; reply.step_ns = step_ns;
    bare.input_ids = bare.image_input_idx = NULL;
    bare.pixels = bare.image_masks = NULL;
    bare.prune = &prune;
    for (int i = 0; i < vk_request_image_tokens(&m->config, &bare); i++) prune.image_tokens += request->image_input_idx[i] >= 0;
    if (!CHECK_INT(vp_engine_run(m->engine, request, &reply, &error), VP_OK) || !CHECK_INT(vp_engine_count(m->paper, &bare, &work, &error), VP_OK)) return;
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        check_note(work.launches[stage] == reply.times.launches[stage] && work.flops[stage] == reply.times.flops[stage]
                   && work.bytes[stage] == reply.times.bytes[stage] && work.ran[stage] == reply.times.ran[stage], __FILE__, __LINE__,
                   "%s: counted %lld launches, %lld FLOPs, %lld bytes; recorded %lld, %lld, %lld", vp_stage_name((vp_stage)stage), (long long)work.launches[stage],
                   (long long)work.flops[stage], (long long)work.bytes[stage], (long long)reply.times.launches[stage], (long long)reply.times.flops[stage],
                   (long long)reply.times.bytes[stage]);
    }
}
/* The emulated GPU is slow: make test runs the quick cases there, make test-slow the others. */
static int is_left(int is_quick) { return strcmp(TEST_DEVICE, "cpu") && is_quick == check_all(); }
static int is_wanted(const char *name) { return !getenv("ONLY") || strstr(name, getenv("ONLY")); }
static int run_golden(const model *m, const char *folder, vp_prune_positions positions, int is_other) {
    char path[200], picture[300], image[256];
    int32_t blocks[64], count, *tokens;
    json_file file, inputs;
    input in;
    snprintf(path, sizeof path, "%s/case.json", folder);
    if (!check_golden(path) || !is_wanted(folder) || !CHECK(json_open(check_golden(path), &file))) return 0;
    check_case("%s", folder);
    if (is_other) {
        text_of(&file, "case", image);
        snprintf(path, sizeof path, "%s", strstr(image, "othermodels/"));
        snprintf(picture, sizeof picture, "%.*s/pixels.png", (int)(strrchr(path, '/') - path), path);
    } else {
        text_of(&file, "image", image);
        snprintf(picture, sizeof picture, "pruning/images%s", strrchr(image, '/'));
    }
    if (CHECK(json_open(check_golden(path), &inputs)) && load_input(&inputs, picture, &m->config, &in)) {
        vp_prune prune = prune_of(&file, positions);
        vp_request r = request_of(&m->config, &in, &prune, blocks);
        compare(m, &r, &file, folder, "logits.npy", 1);
        tokens = ints_of(&file, "tokens", &count);
        check_tokens(m, &r, tokens, count);
        free(tokens);
        compare_counted(m, &r);
        if (!is_other && node_of(&file, 0, "positions_kept") != VP_JSON_NONE) {
            prune.positions = VP_PRUNE_KEEP;
            check_case("%s, positions=keep", folder);
            compare(m, &r, &file, folder, "logits_positions_kept.npy", 0);
            tokens = ints_at(&file, node_of(&file, node_of(&file, 0, "positions_kept"), "tokens"), &count);
            check_tokens(m, &r, tokens, count);
            free(tokens);
        }
        free_input(&in);
    }
    json_close(&inputs);
    json_close(&file);
    return 1;
}
static void test_models(void) {
    static const char *const models[] = { "llava-144", "llava-225" };
    int cases = 0;
    for (int i = 0; i < 2; i++) {
        model m;
        char folder[160];
        snprintf(folder, sizeof folder, "pruning/models/%s/checkpoint", models[i]);
        if (!open_model(folder, VP_WEIGHTS_FP32, &m)) continue;
        for (int method = 0; method < VP_PRUNE_METHOD_COUNT; method++)
            for (const char *which = "ab"; *which; which++) {
                if (is_left(*which == 'a' && method >= VP_PRUNE_VISIONZIP && method != VP_PRUNE_FASTV)) continue;
                snprintf(folder, sizeof folder, "pruning/models/%s/%s-%c", models[i], vp_prune_name((vp_prune_method)method), *which);
                cases += run_golden(&m, folder, VP_PRUNE_PUBLISHED, 0);
            }
        close_model(&m);
    }
    check_case("cases of models");
    CHECK(getenv("ONLY") || cases >= (is_left(0) ? 4 : is_left(1) ? 14 : 18));
}
static void test_others(void) {
    static const char *const models[] = { "llava", "smolvlm", "internvl", "qwen2_5_vl", "qwen3_vl", "gemma3", "molmo_7b_o", "molmo2", "qwen3_vl_moe" };
    int cases = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        model m = {0};
        char folder[160];
        for (int method = 0; method < VP_PRUNE_METHOD_COUNT; method++) {
            snprintf(folder, sizeof folder, "pruning/others/%s-%s/case.json", models[i], vp_prune_name((vp_prune_method)method));
            if (!check_golden(folder)) continue;
            snprintf(folder, sizeof folder, "othermodels/%s/checkpoint", models[i]);
            if (!m.engine && !open_model(folder, VP_WEIGHTS_FP32, &m)) continue;
            snprintf(folder, sizeof folder, "pruning/others/%s-%s", models[i], vp_prune_name((vp_prune_method)method));
            cases += run_golden(&m, folder, VP_PRUNE_KEEP, 1);
        }
        close_model(&m);
    }
    check_case("cases of other models");
    CHECK(getenv("ONLY") || cases >= 2);
    if (cases < 16 && !getenv("ONLY")) check_skip("other models' cases", "they are shared golden data");
}

/* ---------------------------------------------------------------------------------------------------------------- without golden data */
static uint32_t noise_state;
static double noise(void) { /* -1..1 */
    noise_state = noise_state * 1664525u + 1013904223u;
    return (double)(noise_state >> 8) / 8388608.0 - 1.0;
}
/* a synthetic picture within text; image tokens are read in a different order from the connector's output, and some outputs are not tokens */
static void make_input(const vp_model_config *config, int shuffled, input *in) {
    const vp_geometry *g = &config->geometry;
    const int32_t patches = config->vit_positions - config->vit_class_token, before = 5, behind = 9;
    int32_t all, count = 0;
    memset(in, 0, sizeof *in);
    in->rows = in->cols = 1;
    in->views = config->connector == VP_CONNECTOR_STITCHED || config->connector == VP_CONNECTOR_POOLING ? 2 : vp_geometry_tokens_per_crop(g) < 16 ? 5 : 1;
    if (config->vit_native) { in->rows = 4; in->cols = 6; in->views = 24; }
    all = vk_image_tokens(config, in->views, in->rows, in->cols);
    in->index = (int32_t *)malloc((size_t)all * sizeof *in->index);
    for (int32_t i = 0; i < all; i++) in->index[i] = shuffled && i % 5 == 3 ? -1 : before + count++;
    if (shuffled) /* columns before rows */
        for (int32_t i = 0, j = all - 1; i < j; i++, j--) { const int32_t held = in->index[i]; in->index[i] = in->index[j]; in->index[j] = held; }
    in->count = before + count + behind;
    in->ids = (int32_t *)malloc((size_t)in->count * sizeof *in->ids);
    in->ends = (int32_t *)malloc((size_t)in->count * sizeof *in->ends);
    for (int32_t i = 0; i < in->count; i++) {
        in->ids[i] = (i * 7 + 3) % config->embedding_size;
        in->ends[i] = i >= before && i < before + count ? before + count : i + 1;
    }
    in->pixels = (float *)malloc((size_t)(in->views * patches * g->patch_px * g->patch_px * 3) * sizeof(float));
    for (int32_t i = 0; i < in->views * patches * g->patch_px * g->patch_px * 3; i++) in->pixels[i] = (float)noise();
    in->masks = (float *)malloc((size_t)(in->views * patches) * sizeof(float));
    for (int32_t i = 0; i < in->views * patches; i++) in->masks[i] = 1.0f;
}
/* random weights with a checkpoint's shapes */
static int open_made(const char *name, vp_weights weights, model *m) {
    char path[200];
    size_t bytes = 0, preprocessor_bytes = 0;
    vp_engine_options options = vp_engine_options_default();
    vp_error error = { VP_OK, -1, "", "" };
    memset(m, 0, sizeof *m);
    snprintf(path, sizeof path, "othermodels/%s/checkpoint/config.json", name);
    char *text = check_read(check_golden(path), &bytes);
    snprintf(path, sizeof path, "othermodels/%s/checkpoint/preprocessor_config.json", name);
    char *preprocessor = check_read(check_golden(path), &preprocessor_bytes);
    if (!CHECK(text) || !CHECK_INT(vp_model_config_parse(text, bytes, preprocessor, preprocessor_bytes, &m->config, &error), VP_OK)) printf("%s\n", error.text);
    FREE_ALL(text, preprocessor);
    options.config = &m->config; options.weights = weights; options.device = TEST_DEVICE; options.max_sequence = 512; options.max_views = 30;
    options.checkpoint = m->checkpoint;
    options.prunes = 1;
    if (!CHECK_INT(vp_engine_open(&options, &m->engine, &error), VP_OK)) printf("%s: %s\n", name, error.text);
    options.counts_only = 1;
    CHECK_INT(vp_engine_open(&options, &m->paper, &error), VP_OK);
    return m->engine && m->paper;
}
static double worst(const output *a, const output *b, int64_t vocabulary) {
    double most = 0;
    for (int s = 0; s < STEPS; s++) {
        double difference = 0, size = 0;
        for (int64_t i = 0; i < vocabulary; i++) {
            const double w = b->logits[s * vocabulary + i], d = (double)a->logits[s * vocabulary + i] - w;
            difference += d * d;
            size += w * w;
        }
        most = fmax(most, sqrt(difference / size));
    }
    return most;
}
/* A request pruned before the language model, with compact positions, equals one whose prompt never had the dropped image tokens. */
static void test_shortened(const char *name) {
    int32_t blocks[64], *index, *ids, *ends, *row_of, rows = 0, all;
    vp_prune prune = vp_prune_default(VP_PRUNE_RANDOM);
    vp_error error = { VP_OK, -1, "", "" };
    output pruned, shortened;
    model m;
    input in;
    check_case("%s: pruning equals a prompt without the dropped tokens", name);
    if (!open_made(name, VP_WEIGHTS_FP32, &m)) { close_model(&m); return; }
    make_input(&m.config, !m.config.image_bidirectional, &in);
    all = vk_image_tokens(&m.config, in.views, in.rows, in.cols);
    prune.keep = 0.4;
    prune.positions = VP_PRUNE_COMPACT;
    vp_request r = request_of(&m.config, &in, &prune, blocks);
    if (!CHECK_INT(run(&m, &r, &pruned, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    if (!m.config.image_bidirectional) compare_counted(&m, &r);
    index = (int32_t *)malloc((size_t)all * sizeof *index);
    ids = (int32_t *)malloc((size_t)in.count * 3 * sizeof *ids);
    ends = ids + in.count;
    row_of = ends + in.count;
    for (int32_t row = 0, token = 0, next = 0; row < in.count; row++) { /* tokens in order of their rows */
        int is_image = 0, goes_on = 1;
        for (int32_t i = 0; i < all; i++) is_image |= in.index[i] == row;
        if (is_image) {
            goes_on = next < pruned.reply.kept_count && pruned.kept[next] == token;
            next += goes_on;
            token++;
        }
        row_of[row] = goes_on ? rows : -1;
        if (goes_on) ids[rows++] = in.ids[row];
    }
    for (int32_t i = 0; i < all; i++) index[i] = in.index[i] < 0 ? -1 : row_of[in.index[i]];
    for (int32_t row = 0, at = 0; row < in.count; row++) {
        if (row_of[row] < 0) continue;
        ends[at] = 0;
        for (int32_t other = 0; other < in.ends[row]; other++) ends[at] += row_of[other] >= 0;
        at++;
    }
    r.prune = NULL;
    r.input_ids = ids; r.input_count = rows; r.image_input_idx = index; r.span_ends = ends;
    if (!CHECK_INT(run(&m, &r, &shortened, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    CHECK_NEAR(worst(&pruned, &shortened, m.config.embedding_size), 0, 1e-6);
    for (int i = 0; i < STEPS; i++) CHECK_INT(pruned.tokens[i], shortened.tokens[i]);
    free_output(&pruned);
    free_output(&shortened);
    FREE_ALL(index, ids);
    free_input(&in);
    close_model(&m);
}
/* PyramidDrop before block l computes block l's query and keys first; FastV at l + 1 has them from the block itself. Both keep the same tokens. */
static void check_same_scores(const model *m, vp_request r) {
    vp_prune prune[2] = { vp_prune_default(VP_PRUNE_PDROP), vp_prune_default(VP_PRUNE_FASTV) };
    vp_error error = { VP_OK, -1, "", "" };
    output o[2] = {0};
    int good = 1;
    for (int block = 0; block + 1 < m->config.block_count; block++) {
        prune[0].cut_count = 1;
        prune[0].layers[0] = block;
        prune[0].ratios[0] = 0.4;
        prune[1].layer = block + 1;
        for (int i = 0; i < 2 && good; i++) {
            r.prune = &prune[i];
            good = CHECK_INT(run(m, &r, &o[i], &error), VP_OK);
            prune[1].keep = o[0].reply.kept_count;
        }
        if (good && CHECK_INT(o[0].reply.kept_count, o[1].reply.kept_count)) CHECK(!memcmp(o[0].kept, o[1].kept, (size_t)o[0].reply.kept_count * sizeof(int32_t)));
        free_output(&o[0]);
        free_output(&o[1]);
        memset(o, 0, sizeof o);
    }
}
/* A window counts positions: in each row of a region, the dropped positions are those at least a window before it. */
static void check_window(const model *m, vp_request r) {
    const int window = m->config.sliding_window;
    const vk_pruning *pruning = &m->engine->pruning;
    vp_prune prune = vp_prune_default(VP_PRUNE_FASTV);
    vp_error error = { VP_OK, -1, "", "" };
    output o;
    int gaps = 0;
    prune.keep = 0.4;
    prune.layer = 1;
    r.prune = &prune;
    if (CHECK_INT(run(m, &r, &o, &error), VP_OK) && CHECK(pruning->region_count == 2 && pruning->regions[1].gone_counted && !pruning->regions[0].gone_counted)) {
        const int rows = pruning->regions[1].rows;
        for (int row = 0; row < rows + STEPS - 1; row++) {
            const int at = row < rows ? o.positions[row] : r.input_count + row - rows;
            int gone = 0;
            for (int other = 0; other < row; other++) gone += at - (other < rows ? o.positions[other] : r.input_count + other - rows) >= window;
            CHECK_INT(pruning->regions[1].gone_counted[row], gone);
            gaps += gone != (row + 1 > window ? row + 1 - window : 0);
        }
        CHECK(gaps > 0); /* otherwise counting rows would also pass */
    }
    free_output(&o);
}
/* every method runs on every model or gives the reason why not; counts equal the work of a run; if all tokens are kept, results equal those without pruning */
static void test_every_method(const char *name, vp_weights weights) {
    int32_t blocks[64];
    vp_error error = { VP_OK, -1, "", "" };
    output full;
    model m;
    input in;
    if (!open_made(name, weights, &m)) { close_model(&m); return; }
    make_input(&m.config, !m.config.image_bidirectional && !m.config.vit_native, &in);
    vp_request r = request_of(&m.config, &in, NULL, blocks);
    check_case("%s, weights %d: without pruning", name, (int)weights);
    if (!CHECK_INT(run(&m, &r, &full, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
    for (int method = VP_PRUNE_RANDOM; method < VP_PRUNE_METHOD_COUNT; method++) {
        vp_prune prune = vp_prune_default((vp_prune_method)method);
        vp_pruned pruned;
        output o;
        check_case("%s, weights %d: %s", name, (int)weights, vp_prune_name(prune.method));
        if (method == VP_PRUNE_DART) { prune.pivot_image = 2; prune.pivot_text = 1; prune.per_pivot = 2; }
        else prune.keep = 0.4;
        if (prune.layer) prune.layer = 1;
        prune.cut_count = method == VP_PRUNE_PDROP ? 2 : 0;
        prune.layers[0] = 0; prune.layers[1] = 1; prune.ratios[0] = 0.6; prune.ratios[1] = 0.3;
        r.prune = &prune;
        if (vp_prune_request(&m.config, &r, weights, &pruned, &error) != VP_OK) {
            CHECK(prune.method == VP_PRUNE_POOL);
            CHECK_INT(vp_prune_request(&m.config, &r, weights, &pruned, &error), VP_ERR_UNSUPPORTED);
            CHECK_TEXT(error.where, "prune");
            CHECK(strstr(error.text, vp_prune_name(prune.method)) == error.text && strlen(error.text) > 40);
            CHECK_INT(run(&m, &r, &o, &error), VP_ERR_UNSUPPORTED);
            free_output(&o);
            continue;
        }
        CHECK(pruned.kept_tokens > 0 && pruned.kept_tokens < pruned.image_tokens && pruned.cache_bytes < pruned.full_cache_bytes);
        if (!CHECK_INT(run(&m, &r, &o, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
        CHECK_INT(o.reply.kept_tokens, pruned.kept_tokens);
        CHECK(worst(&o, &full, m.config.embedding_size) > 1e-3);
        for (int i = 1; i < o.reply.kept_count; i++) CHECK(o.kept[i] > o.kept[i - 1] && o.kept[i] < pruned.image_tokens);
        if (!m.config.image_bidirectional) compare_counted(&m, &r); /* with bidirectional attention, the scores depend on the kept tokens */
        free_output(&o);
        if (prune.method == VP_PRUNE_POOL || prune.method == VP_PRUNE_PDROP || prune.method == VP_PRUNE_DART) continue;
        prune.keep = pruned.image_tokens;
        if (prune.method == VP_PRUNE_VISIONZIP) prune.positions = VP_PRUNE_KEEP;
        if (CHECK_INT(run(&m, &r, &o, &error), VP_OK)) CHECK(worst(&o, &full, m.config.embedding_size) == 0);
        free_output(&o);
    }
    if (m.config.sliding_window) {
        check_case("%s: the window counts positions, not rows", name);
        check_window(&m, r);
    }
    if (weights == VP_WEIGHTS_FP32) {
        check_case("%s: PyramidDrop has the same scores as FastV", name);
        check_same_scores(&m, r);
    }
    free_output(&full);
    free_input(&in);
    close_model(&m);
}

/* ---------------------------------------------------------------------------------------------------------------- rejections */
static void test_rejected(void) {
    static const struct { vp_prune_method method; double keep; int layer, a, b; const char *says; } bad[] = {
        { VP_PRUNE_FASTV, 0, 1, 0, 0, "keep must be" }, { VP_PRUNE_FASTV, -3, 1, 0, 0, "keep must be" }, { VP_PRUNE_FASTV, NAN, 1, 0, 0, "keep must be" },
        { VP_PRUNE_FASTV, 2.5, 1, 0, 0, "keep must be" }, { VP_PRUNE_FASTV, 1e9, 1, 0, 0, "but the image has 36 tokens" },
        { VP_PRUNE_FASTV, 37, 1, 0, 0, "but the image has 36 tokens" }, { VP_PRUNE_RANDOM, 0.001, 0, 0, 0, "keeps none" },
        { VP_PRUNE_FASTV, 0.5, 0, 0, 0, "layer must be at least 1" }, { VP_PRUNE_FASTV, 0.5, 99, 0, 0, "the last block that runs is 2" },
        { VP_PRUNE_STRIDE, 0.5, -1, 0, 0, "layer must be 0 or more" }, { VP_PRUNE_DIVPRUNE, 0.5, 1, 0, 0, "acts before the language model" },
        { VP_PRUNE_DART, 4, 1, 0, 0, "at least the number of pivots" }, { VP_PRUNE_VISIONZIP, 0, 0, 30, 30, "dominant and contextual sum to 37" },
        { VP_PRUNE_VISIONZIP, 0, 0, 38, 0, "dominant must be 1 to 37" }, { VP_PRUNE_PDROP, 0, 0, 2, 1, "must ascend" } };
    int32_t blocks[64];
    vp_error error = { VP_OK, -1, "", "" };
    vp_pruned pruned;
    vp_prune prune;
    vp_request r;
    model m;
    input in;
    output o;
    if (!open_made("llava", VP_WEIGHTS_BF16, &m)) { close_model(&m); return; }
    make_input(&m.config, 0, &in);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_case("rejected: %s, %s", vp_prune_name(bad[i].method), bad[i].says);
        prune = vp_prune_default(bad[i].method);
        prune.keep = bad[i].keep;
        prune.layer = bad[i].layer;
        prune.dominant = bad[i].a;
        prune.contextual = bad[i].b;
        prune.cut_count = bad[i].method == VP_PRUNE_PDROP ? 2 : 0;
        prune.layers[0] = bad[i].a; prune.layers[1] = bad[i].b; prune.ratios[0] = 0.5; prune.ratios[1] = 0.25;
        r = request_of(&m.config, &in, &prune, blocks);
        error.text[0] = 0;
        CHECK_INT(run(&m, &r, &o, &error), VP_ERR_RANGE);
        free_output(&o);
        if (!CHECK(strstr(error.text, bad[i].says))) printf("%s\n", error.text);
    }
    check_case("rejected: the block that provides the scores is skipped");
    prune = vp_prune_default(VP_PRUNE_FASTV);
    prune.keep = 0.5;
    r = request_of(&m.config, &in, &prune, blocks);
    blocks[1] = 2;
    r.active_block_count = 2;
    CHECK_INT(vp_prune_request(&m.config, &r, VP_WEIGHTS_BF16, &pruned, &error), VP_ERR_RANGE);
    CHECK(strstr(error.text, "block 1, which does not run"));
    check_case("a request without an image works as before");
    r = request_of(&m.config, &in, &prune, blocks);
    r.views = 0;
    if (CHECK_INT(run(&m, &r, &o, &error), VP_OK)) CHECK_INT(o.reply.times.ran[VP_STAGE_PRUNE], 0);
    free_output(&o);
    CHECK_INT(vp_prune_request(&m.config, &r, VP_WEIGHTS_BF16, &pruned, &error), VP_OK);
    CHECK(pruned.image_tokens == 0 && pruned.cache_bytes == pruned.full_cache_bytes && pruned.region_count == 1);
    free_input(&in);
    close_model(&m);
    check_case("rejected: an engine without memory for pruning, a model without images");
    vp_engine_options options = vp_engine_options_default();
    if (!open_made("llava", VP_WEIGHTS_BF16, &m)) return;
    make_input(&m.config, 0, &in);
    vp_engine_close(m.engine);
    options.config = &m.config; options.device = TEST_DEVICE; options.max_sequence = 256; options.max_views = 1;
    CHECK_INT(vp_engine_open(&options, &m.engine, &error), VP_OK);
    r = request_of(&m.config, &in, &prune, blocks);
    CHECK_INT(run(&m, &r, &o, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "this engine was opened without `prunes`");
    free_output(&o);
    m.config.vit_block_count = 0;
    CHECK_INT(vp_prune_request(&m.config, &r, VP_WEIGHTS_BF16, &pruned, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "accepts only text"));
    free_input(&in);
    close_model(&m);
}

int main(void) {
    static const char *const made[] = { "llava", "own_molmo_a", "own_gemma3_a", "own_molmo2_a", "own_smolvlm_a", "own_internvl_a", "own_qwen2_5_vl_a", "own_qwen3_vl_a" };
    if (!is_left(1)) {
        test_rules();
        test_shares();
    }
    test_models();
    if (!is_left(0)) test_others();
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        if (!is_wanted(made[i]) || is_left(i == 6)) continue;
        if (i < 6) test_shortened(made[i]);
        test_every_method(made[i], i % 2 ? VP_WEIGHTS_BF16 : VP_WEIGHTS_FP32);
    }
    if (is_wanted("int8") && !is_left(0)) test_every_method("own_internvl_a", VP_WEIGHTS_INT8);
    if (is_wanted("rejected") && !is_left(1)) test_rejected();
    return check_done(strcmp(TEST_DEVICE, "cpu") ? "test_prune_" TEST_DEVICE : "test_prune");
}
