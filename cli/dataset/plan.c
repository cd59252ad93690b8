/* plan.c: the grid of knobs times samples, the names of its files, its fingerprint. */
#include "dataset/plan.h"

#include "base/console.h"
#include "base/files.h"
#include "base/memory.h"
#include "vlmprof_file.h"
#include "vlmprof_score.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vp_tile_options cell_tiles(const cell *c) {
    vp_tile_options t = vp_tile_options_default();
    t.fit = VP_FIT_FILL;
    t.rule = c->tier ? VP_TILE_TIER : VP_TILE_TOKENS;
    t.tier = c->tier;
    t.vision_tokens = c->vision_tokens;
    return t;
}

const vp_layout *cell_layout(const model *m, const cell *c, const entry *e, vp_layout *layout, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_tile_options tiles = cell_tiles(c);
    vp_result r;
    snprintf(reason, capacity, "%s", e->reason ? c->set->reasons[e->reason - 1] : "");
    if (!e->has_image || e->reason) return NULL;
    r = vp_layout_compute(&m->config.geometry, &tiles, e->width_px, e->height_px, layout, &error);
    if (r == VP_OK) return layout;
    error_line(reason, capacity, r, &error);
    return NULL;
}

int32_t entry_sequence(const entry *e, const vp_layout *l) { return !e->no_bos + (l ? l->image_tokens : 0) + e->text_count; }

void cell_work(const plan *p, const cell *c, const sample *a, const vp_layout *layout, const vp_image *image, work *k) {
    memset(k, 0, sizeof *k);
    k->image = image;
    k->layout = layout;
    k->text_ids = a->text_ids;
    k->text_count = a->text_count;
    k->no_bos = a->no_bos;
    k->top_k = c->top_k;
    k->blocks = c->blocks;
    k->block_count = c->block_count;
    k->new_tokens = c->set->new_tokens;
    k->ignore_eos = p->ignore_eos;
}

/* File name, and the longest request of the configuration. A sequence that does not fit becomes a failed row later. */
static void plan_cell(const model *m, plan *p, cell *c) {
    char name[512], reason[LINE_BYTES];
    vp_layout layout;
    int64_t crops = 0, count = 0;
    for (size_t i = 0; i < c->set->count; i++) {
        const entry *e = &c->set->samples[i];
        const vp_layout *l = cell_layout(m, c, e, &layout, reason, sizeof reason);
        int64_t need = (int64_t)entry_sequence(e, l) + c->set->new_tokens - 1;
        if (l) { crops += l->crops; count++; }
        if (reason[0]) continue;
        if (need > m->config.max_positions) continue;
        if (need > c->need_sequence) c->need_sequence = (int32_t)need;
        if (l && l->views > c->need_views) c->need_views = l->views;
    }
    if (c->need_sequence > p->max_sequence) p->max_sequence = c->need_sequence;
    if (c->need_views > p->max_views) p->max_views = c->need_views;
    if (c->tier) /* the mean is cut to an integer, as the experiments do */
        snprintf(name, sizeof name, "%s_imgsizetier-%s_crops%d_topk%d_blocks%d.json", c->set->task, c->tier->name,
                 count ? (int)(crops / count) : 0, c->top_k, c->block_count);
    else snprintf(name, sizeof name, "%s_imgsizetokens%d_topk%d_blocks%d.json", c->set->task, c->vision_tokens, c->top_k, c->block_count);
    c->file_name = copy_text(name, strlen(name));
    c->in_book = -1;
    p->point_count += c->set->count;
}

static int check_lists(const options *o, const model *m) {
    const option_value *tiers = opt(o, "tier_list"), *tokens = opt(o, "vision_tokens_list"), *ks = opt(o, "top_k_list");
    int32_t least = 2 * vp_geometry_tokens_per_crop(&m->config.geometry);
    if (tiers->given && tokens->given) return complain(EXIT_USAGE, "--tier_list and --vision_tokens_list exclude each other");
    for (size_t i = 0; i < tiers->count; i++) if (!vp_tier_find(tiers->items[i]))
        return complain(EXIT_USAGE, "--tier_list: \"%s\" is none of: low medium high", tiers->items[i]);
    for (size_t i = 0; i < tokens->count; i++) if (tokens->numbers[i] < least)
        return complain(EXIT_USAGE, "--vision_tokens_list %s: the global view and one crop have %d tokens already", tokens->items[i], least);
    for (size_t i = 0; i < ks->count; i++) if (ks->numbers[i] > m->config.expert_count)
        return complain(EXIT_USAGE, "--top_k_list %s: the model has %d experts", ks->items[i], m->config.expert_count);
    return 0;
}

/* The points of the grid that the strategy visits, as places in the three lists: int32 [*count, 3], malloc'ed. */
static int grid_points(const options *o, const int32_t counts[3], int32_t **index, size_t *count, size_t *repeats) {
    const char *name = text_of(o, "sampling_strategy");
    uint32_t seed = (uint32_t)number_of(o, "seed");
    size_t points = vp_sampler_lhs_points(counts);
    vp_grid_strategy strategy = VP_GRID_FULL;
    vp_result r = vp_sampler_strategy_find(name, &strategy); /* the option table knows the names */
    if (r == VP_OK) r = vp_sampler_grid(strategy, counts, seed, points, NULL, 0, count, repeats);
    if (r != VP_OK && r != VP_ERR_CAPACITY) return complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(r));
    if (!*count) return complain(EXIT_USAGE, "--sampling_strategy %s draws no point of so small a grid; lengthen the lists or use full", name);
    *index = resize(NULL, *count * 3, sizeof **index);
    r = vp_sampler_grid(strategy, counts, seed, points, *index, *count, count, repeats);
    return r == VP_OK ? 0 : complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(r));
}

static int plan_grid(const options *o, const model *m, plan *p) {
    const option_value *tiers = opt(o, "tier_list"), *tokens = opt(o, "vision_tokens_list");
    const option_value *ks = opt(o, "top_k_list"), *blocks = opt(o, "num_active_blocks_list");
    int32_t counts[3] = {0, ks->given ? (int32_t)ks->count : 1, blocks->given ? (int32_t)blocks->count : 1}, *index = NULL;
    size_t count = 0;
    int code = check_lists(o, m);
    while (vp_tier_at(counts[0])) counts[0]++;
    if (tokens->given || tiers->given) counts[0] = (int32_t)(tokens->given ? tokens->count : tiers->count);
    if (!code) code = grid_points(o, counts, &index, &count, &p->repeats);
    p->cells = zeroed(p->set_count * count + 1, sizeof *p->cells);
    for (size_t i = 0; !code && i < p->set_count * count; i++) {
        const int32_t *at = index + i % count * 3;
        cell *c = &p->cells[p->cell_count++];
        c->set = &p->sets[i / count];
        if (tokens->given) c->vision_tokens = (int32_t)tokens->numbers[at[0]];
        else c->tier = tiers->given ? vp_tier_find(tiers->items[at[0]]) : vp_tier_at(at[0]);
        c->top_k = ks->given ? (int32_t)ks->numbers[at[1]] : m->config.top_k;
        c->block_count = blocks->given ? (int32_t)blocks->numbers[at[2]] : m->config.block_count;
        c->blocks = resize(NULL, (size_t)m->config.block_count, sizeof *c->blocks);
        if ((code = model_choose_blocks(o, m, c->block_count, c->blocks)) == 0) plan_cell(m, p, c);
    }
    free(index);
    return code;
}

static int plan_fingerprint(const options *o, const model *m, plan *p) {
    static const char *const numbers[] = {"num_runs_per_sample", "seed", "threads", "max_runs", "bare_every"};
    static const char *const texts[] = {"weights", "device", "gemm", "timing", "stop_half_width", "time_box_s"};
    uint64_t h = hash_number(hash_text(HASH_START, m->name), (int64_t)m->identity);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) h = hash_number(h, number_of(o, numbers[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) h = hash_text(h, text_of(o, texts[i]));
    h = hash_number(h, p->ignore_eos);
    if (text_of(o, "importance_scores_file")) {
        vp_error error = {VP_OK, -1, "", ""};
        char *text = NULL;
        size_t bytes = 0;
        vp_result r = vp_file_read(text_of(o, "importance_scores_file"), JSON_FILE_BYTES_MAX, &text, &bytes, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, text_of(o, "importance_scores_file"), r, &error);
        h = hash_bytes(h, text, bytes);
        free(text);
    }
    for (size_t s = 0; s < p->set_count; s++) {
        h = hash_text(hash_text(h, p->sets[s].task), vp_score_metric_of(p->sets[s].metric)->name);
        h = hash_number(hash_number(h, p->sets[s].new_tokens), (int64_t)p->sets[s].hash);
    }
    p->fingerprint = h;
    return 0;
}

int plan_make(const options *o, const model *m, plan *p) {
    const option_value *data = opt(o, "data");
    int code;
    p->run_count = (int32_t)number_of(o, "num_runs_per_sample");
    p->ignore_eos = given(o, "ignore_eos");
    p->max_views = 1;
    p->sets = zeroed(data->count, sizeof *p->sets);
    for (size_t i = 0; i < data->count; i++) {
        dataset *d = &p->sets[p->set_count++];
        d->path = data->items[i];
        if ((code = dataset_load(o, m, d)) != 0) return code;
        if (d->new_tokens > p->new_tokens) p->new_tokens = d->new_tokens;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(d->task, p->sets[k].task))
                return complain(EXIT_USAGE, "--data: %s and %s are both called %s; sweep them into two folders", p->sets[k].path, d->path, d->task);
    }
    code = plan_grid(o, m, p);
    return code ? code : plan_fingerprint(o, m, p);
}
void plan_free(plan *p) {
    for (size_t s = 0; s < p->set_count; s++) dataset_free(&p->sets[s]);
    for (size_t i = 0; i < p->cell_count; i++) {
        free(p->cells[i].blocks);
        free(p->cells[i].file_name);
        free(p->cells[i].shapes);
        free(p->cells[i].dropped);
    }
    free(p->sets);
    free(p->cells);
}
