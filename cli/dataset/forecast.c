/* forecast.c: sweep --plan: the memory and the time of a sweep, and what its samples can tell apart. */
#include "dataset/forecast.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "dataset/dataset.h"
#include "request/provenance.h"
#include "request/request.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* ---- sweep --plan: what a sweep would measure, need and tell; the model itself is not run, nothing is written */
/* FLOPs and bytes of one pass by stage, from its shapes alone, as the engine counts them (tests/test_plan.c: within 1 and 3 %) */
typedef struct pass_cost { double flops[VP_STAGE_COUNT], bytes[VP_STAGE_COUNT]; } pass_cost;
typedef struct pass { int32_t views, sequence, top_k, block_count, new_tokens; } pass;
static void cost_add(pass_cost *c, int stage, double flops, double bytes) { c->flops[stage] += flops; c->bytes[stage] += bytes; }
/* a linear layer, done `times` times: each reads its weights again */
static void cost_linear(pass_cost *c, int stage, double times, double rows, double n, double k, double element, double result_bytes) {
    cost_add(c, stage, times * 2 * rows * n * k, times * (n * k * element + rows * k * element + rows * n * result_bytes));
}
static void cost_vision(const vp_model_config *m, const pass *p, double element, pass_cost *c) {
    double w = m->vit_width, tokens = m->vit_positions, blocks = m->vit_blocks_needed, views = p->views, rows = tokens, /* of one view */
           features = w * m->vit_layer_count, windows = vp_geometry_tokens_per_crop(&m->geometry), members = m->geometry.pool * m->geometry.pool,
           values = (double)m->geometry.patch_px * m->geometry.patch_px * 3, h = m->projector_dim;
    cost_add(c, VP_STAGE_VIT, views * 9 * rows * w, views * (rows * values * (4 + element) + 20 * rows * w + 8 * rows * features));
    cost_linear(c, VP_STAGE_VIT, views, tokens - 1, w, values, element, 4);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, 3 * w, w, element, element);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, w, w, element, 8);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, m->vit_mlp_dim, w, element, element);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, w, m->vit_mlp_dim, element, 8);
    cost_add(c, VP_STAGE_VIT, views * blocks * (rows * rows * (4 * w + 5.0 * m->vit_head_count) + 22 * rows * w + 5 * rows * m->vit_mlp_dim),
             views * blocks * (4 * rows * w * element + 2 * rows * w * (4 + element)));
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, w, features, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows * members, 2 * w, features, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, w, w, element, element);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, 2 * h, w, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, m->d_model, h, element, 4);
    cost_add(c, VP_STAGE_CONNECTOR, views * windows * (members * (3 * features + 4 * w + 2 * w + 5.0 * m->vit_head_count) + features + 4 * h),
             views * windows * (members * features * (4 + element) + features * element + w * (4 + 8 * members + element) + h * (8 + element)));
}
/* `times` blocks over `rows` new tokens that look at `scores` keys in all and read `kept` rows of the cache */
static void cost_blocks(const vp_model_config *m, int stage, double times, double rows, double scores, double kept, int32_t top_k, double element,
                        pass_cost *c) {
    double d = m->d_model, h = m->expert_dim, experts = m->expert_count, pairs = rows * top_k,
           used = experts * (1 - pow(1 - top_k / experts, rows)); /* experts that some token chose, when each is as likely */
    cost_linear(c, stage, times, rows, 3 * d, d, element, 4);
    cost_linear(c, stage, times, rows, d, d, element, 8);
    cost_linear(c, stage, times, rows, experts, d, 4, 4);
    cost_add(c, stage, times * (scores * (4 * d + 5.0 * m->head_count) + 28 * rows * d + rows * experts * (4 + experts) + 2 * experts * pairs),
             times * (kept * 2 * d * element + rows * d * (20 + 5 * element + (element < 4 ? 8 : 0)) + 4 * rows * experts));
    cost_add(c, stage, times * pairs * (6 * h * d + 4 * h + 2 * d),
             times * (used * 3 * h * d * element + pairs * (2 * d * element + h * (16 + 2 * element) + 8 * d + 24) + rows * d * (8 + element)));
}
static void cost_of(const vp_model_config *m, const pass *p, int fp32, pass_cost *c) {
    double n = p->sequence, steps = p->new_tokens - 1, d = m->d_model, vocabulary = m->embedding_size, element = fp32 ? 4 : 2;
    memset(c, 0, sizeof *c);
    if (p->views) cost_vision(m, p, element, c);
    n = p->sequence;
    cost_add(c, VP_STAGE_EMBED, p->views * (double)vp_geometry_tokens_per_crop(&m->geometry) * d,
             n * d * (4 + element) + 12 * p->views * (double)vp_geometry_tokens_per_crop(&m->geometry) * d);
    cost_blocks(m, VP_STAGE_PREFILL, p->block_count, n, n * (n + 1) / 2, 2 * n, p->top_k, element, c);
    cost_linear(c, VP_STAGE_HEAD, 1, 1, vocabulary, d, element, 4);
    cost_add(c, VP_STAGE_SAMPLE, 2 * vocabulary, 4 * vocabulary);
    cost_blocks(m, VP_STAGE_DECODE, p->block_count * steps, 1, n + (steps + 1) / 2, n + (steps + 1) / 2, p->top_k, element, c);
    cost_linear(c, VP_STAGE_DECODE, steps, 1, vocabulary, d, element, 4);
    cost_add(c, VP_STAGE_DECODE, steps * 2 * vocabulary, steps * 4 * vocabulary);
}

/* ---- this machine's rates: a few passes of a model of the same widths and few blocks, random weights */
enum { CALIBRATION_TEXT = 32, CALIBRATION_TOKENS = 4, CALIBRATION_RUNS = 3 };

typedef struct rates {
    char reason[LINE_BYTES];   /* why there are none; "" */
    char device[160];
    double flops_ns[VP_STAGE_COUNT], bytes_ns[VP_STAGE_COUNT]; /* per ns of a stage */
    double view_ns;            /* preprocess and h2d of a view */
    int64_t memory_bytes;      /* that the engine of the whole model will ask for */
    double seconds;            /* that the calibration took */
} rates;
static int is_compute_stage(int stage) { return stage == VP_STAGE_VIT || stage == VP_STAGE_CONNECTOR || stage == VP_STAGE_PREFILL; }
static int64_t parameter_count(const vp_model_config *c) {
    vp_tensor_spec spec;
    int64_t sum = 0;
    for (int64_t i = 0; vp_model_tensor(c, i, &spec) == VP_OK; i++) sum += spec.shape[0] * (spec.dimensions > 1 ? spec.shape[1] : 1);
    return sum;
}
/* weights and KV cache; the rest of an engine's memory hardly depends on the number of blocks */
static int64_t held_bytes(const vp_model_config *c, int fp32, int32_t max_sequence) {
    return (fp32 ? 4 : 2) * (parameter_count(c) + 2 * (int64_t)c->d_model * c->block_count * max_sequence);
}
static vp_model_config calibration_config(const vp_model_config *whole) {
    vp_model_config c = *whole;
    if (parameter_count(whole) <= 64000000) return c;
    if (c.vit_block_count > VP_VIT_LAYERS_MAX) {
        c.vit_block_count = c.vit_blocks_needed = VP_VIT_LAYERS_MAX;
        for (int32_t i = 0; i < c.vit_layer_count; i++) c.vit_layers[i] = -1 - i;
    }
    c.block_count = 1;
    if (c.expert_count > 32 && c.top_k <= 32) c.expert_count = 32;
    if (c.embedding_size > 8192) c.embedding_size = c.vocab_size = 8192;
    return c;
}
static vp_result calibration_pass(vp_engine *engine, const vp_model_config *c, const vp_layout *layout, session *s, vp_stage_times *times,
                                  vp_error *error) {
    vp_request q;
    vp_reply reply;
    int32_t tokens[CALIBRATION_TOKENS], *blocks = resize(NULL, (size_t)c->block_count, sizeof *blocks);
    int64_t step_ns[CALIBRATION_TOKENS], begin = vp_clock_ns();
    vp_result r = VP_OK;
    work k;
    for (int32_t i = 0; i < c->block_count; i++) blocks[i] = i;
    memset(&q, 0, sizeof q);
    memset(&reply, 0, sizeof reply);
    memset(&k, 0, sizeof k);
    k.layout = layout;
    k.text_count = CALIBRATION_TEXT;
    k.new_tokens = CALIBRATION_TOKENS;
    session_reserve(s, &k);
    if (layout) {
        size_t bytes = (size_t)layout->width_px * (size_t)layout->height_px * 3;
        uint8_t *rgb = resize(NULL, bytes, 1);
        memset(rgb, 100, bytes);
        begin = vp_clock_ns();
        r = vp_preprocess(&c->geometry, layout, rgb, (float *)s->pixels.data, (float *)s->masks.data, s->scratch.data, s->scratch.bytes);
        if (r == VP_OK) r = vp_tokens_index_map(&c->geometry, layout, 1, (int32_t *)s->index.data, s->index.bytes / sizeof(int32_t));
        free(rgb);
        q.pixels = (const float *)s->pixels.data;
        q.image_masks = (const float *)s->masks.data;
        q.image_input_idx = (const int32_t *)s->index.data;
        q.views = layout->views;
    }
    reply.times.wall_ns[VP_STAGE_PREPROCESS] = vp_clock_ns() - begin;
    memset(s->ids.data, 0, s->ids.bytes);
    for (int32_t i = 0; i < sequence_of(&k); i++) ((int32_t *)s->ids.data)[i] = i % 256;
    q.input_ids = (const int32_t *)s->ids.data;
    q.input_count = sequence_of(&k);
    q.top_k = c->top_k;
    q.active_blocks = blocks;
    q.active_block_count = c->block_count;
    q.max_new_tokens = CALIBRATION_TOKENS;
    q.ignore_eos = 1;
    reply.tokens = tokens;
    reply.step_ns = step_ns;
    begin = reply.times.wall_ns[VP_STAGE_PREPROCESS];
    if (r == VP_OK) r = vp_engine_run(engine, &q, &reply, error);
    vp_engine_settle(engine);
    reply.times.device_ns[VP_STAGE_PREPROCESS] = begin;
    *times = reply.times;
    free(blocks);
    return r;
}
/* Takes the fastest of some passes. Whatever fails is a reason for no estimate, not for no plan; 0 or EXIT_INTERRUPTED. */
static int calibrate(const options *o, const model *m, const plan *p, rates *x) {
    model small = *m;
    vp_engine_options e;
    vp_engine *engine = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    vp_tile_options tiles = vp_tile_options_default();
    vp_layout layout;
    session s;
    int fp32 = !strcmp(text_of(o, "weights"), "fp32");
    int32_t views = 0, sequence = CALIBRATION_TEXT + CALIBRATION_TOKENS;
    int64_t start = vp_clock_ns();
    vp_result r = VP_OK;
    memset(&s, 0, sizeof s);
    small.config = calibration_config(&m->config);
    small.checkpoint = NULL;
    s.m = &small;
    tiles.rule = VP_TILE_CROPS;
    tiles.fit = VP_FIT_FILL;
    tiles.crops = 1;
    if (p->max_views > 1 && (r = vp_layout_compute(&m->config.geometry, &tiles, 640, 480, &layout, &error)) == VP_OK) {
        views = layout.views;
        sequence += layout.image_tokens;
    }
    if (sequence < p->max_sequence) sequence = p->max_sequence;
    e = engine_options_of(o, &small, sequence, views > p->max_views ? views : p->max_views);
    e.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
    e.gemm = text_of(o, "gemm");
    if (r == VP_OK) r = vp_engine_open(&e, &engine, &error);
    for (int i = 0; i < CALIBRATION_RUNS && r == VP_OK && !interrupted; i++) {
        vp_stage_times t;
        r = calibration_pass(engine, &small.config, views ? &layout : NULL, &s, &t, &error);
        for (int stage = 0; stage < VP_STAGE_COUNT && i && r == VP_OK; stage++) { /* the first warms up */
            double ns = (double)(t.device_ns[stage] > 0 ? t.device_ns[stage] : 1);
            x->flops_ns[stage] = fmax(x->flops_ns[stage], (double)t.flops[stage] / ns);
            x->bytes_ns[stage] = fmax(x->bytes_ns[stage], (double)t.bytes[stage] / ns);
        }
        if (views && r == VP_OK) x->view_ns = (double)(t.device_ns[VP_STAGE_PREPROCESS] + t.device_ns[VP_STAGE_H2D]) / views;
    }
    close_progress();
    if (engine) {
        x->memory_bytes = (int64_t)vp_engine_bytes(engine) - held_bytes(&small.config, fp32, sequence) + held_bytes(&m->config, fp32, sequence);
        snprintf(x->device, sizeof x->device, "%s", vp_engine_device(engine));
        vp_engine_close(engine);
    }
    s.engine = NULL;
    session_free(&s);
    if (r != VP_OK) error_line(x->reason, sizeof x->reason, r, &error);
    x->seconds = (double)(vp_clock_ns() - start) / 1e9;
    return interrupted ? EXIT_INTERRUPTED : 0;
}
/* A pass's time: the stages of many tokens by the slower of their arithmetic and of reading memory as decode does, the others by their bytes. */
static double pass_ns(const rates *x, const pass_cost *c, int32_t views) {
    double sum = views * x->view_ns;
    for (int i = VP_STAGE_VIT; i <= VP_STAGE_DECODE; i++) {
        double by_flops = is_compute_stage(i) ? c->flops[i] / x->flops_ns[i] : 0;
        double by_bytes = c->bytes[i] / x->bytes_ns[is_compute_stage(i) ? VP_STAGE_DECODE : i];
        if (c->flops[i] > 0 || c->bytes[i] > 0) sum += by_flops > by_bytes ? by_flops : by_bytes;
    }
    return sum;
}

/* ---- the forecast of a configuration */
typedef struct forecast {
    int64_t crops, vision_tokens, layouts, longest, failing; /* sums over samples; failing: samples that will be failed rows */
    double ns, squares; int64_t count; /* estimate of one run, over the samples that can run */
    double measured_ns; int64_t runs_measured, points_closed; /* from the journals in output_dir */
} forecast;
static void forecast_cell(const model *m, const cell *c, const rates *x, int fp32, forecast *f) {
    for (size_t i = 0; i < c->set->count; i++) {
        const entry *e = &c->set->samples[i];
        char reason[LINE_BYTES];
        vp_layout layout;
        const vp_layout *l = cell_layout(m, c, e, &layout, reason, sizeof reason);
        pass one = {l ? l->views : 0, entry_sequence(e, l), c->top_k, c->block_count, c->set->new_tokens};
        pass_cost spent;
        double ns;
        if (l) {
            f->layouts++;
            f->crops += l->crops;
            f->vision_tokens += l->feature_tokens;
        }
        if (reason[0] || (int64_t)one.sequence + one.new_tokens - 1 > m->config.max_positions) {
            f->failing++;
            continue;
        }
        if (one.sequence > f->longest) f->longest = one.sequence;
        f->count++;
        if (x->reason[0]) continue;
        cost_of(&m->config, &one, fp32, &spent);
        ns = pass_ns(x, &spent, one.views);
        f->ns += ns;
        f->squares += ns * ns;
    }
}

/* Runs that journals hold already, by configuration. A journal of another plan is named in `note`. */
static void read_measured(const plan *p, const char *path, forecast *f, char *note, size_t capacity) {
    FILE *file = fopen(path, "rb");
    parsed x = {{NULL, NULL, 0}, NULL, 0};
    char *line = NULL, wanted[32];
    size_t room = 0;
    ssize_t bytes;
    snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)p->fingerprint);
    for (int64_t number = 0; file && (bytes = getline(&line, &room, file)) > 0 && line[bytes - 1] == '\n'; number++) {
        const vp_json *j = &x.json;
        uint32_t name;
        double ns;
        if (parse_json(&x, line, (size_t)bytes - 1, NULL) != VP_OK || !node_is(j, 0, VP_JSON_OBJECT)) continue;
        if (!number && !vp_json_equals(j, vp_json_get(j, 0, "plan"), wanted)) {
            snprintf(note, capacity, "%.400s belongs to another plan: the sweep would refuse it", path);
            break;
        }
        name = vp_json_get(j, 0, "config");
        if (!node_is(j, name, VP_JSON_STRING)) continue;
        ns = node_number(j, vp_json_get(j, 0, "total_ns"));
        for (size_t i = 0; i < p->cell_count; i++) {
            if (!vp_json_equals(j, name, p->cells[i].file_name)) continue;
            f[i].points_closed += vp_json_get(j, 0, "done") != VP_JSON_NONE || vp_json_get(j, 0, "failed") != VP_JSON_NONE;
            if (!(ns > 0)) break;
            f[i].measured_ns += ns;
            f[i].runs_measured++;
            break;
        }
    }
    if (file) fclose(file);
    free(line);
    free(x.nodes);
}
static void read_journals(const options *o, const plan *p, forecast *f, char *note, size_t capacity) {
    const char *folder = text_of(o, "output_dir");
    DIR *d = folder ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t bytes = strlen(e->d_name);
        char *path;
        if (strncmp(e->d_name, "journal", 7) || bytes < 13 || strcmp(e->d_name + bytes - 6, ".jsonl")) continue;
        path = join_path(folder, e->d_name);
        read_measured(p, path, f, note, capacity);
        free(path);
    }
    if (d) closedir(d);
}

/* all that --plan prints */
typedef struct outlook {
    const options *o;
    const model *m;
    const plan *p;
    rates x;
    forecast *cells;
    double scale;              /* measured / estimated, over the configurations that have both; 1 */
    int64_t runs_measured, runs_left;
    double seconds;            /* of the runs left; NaN: not known */
    size_t fewest;             /* samples of the smallest data set */
    double variation;          /* of T_total over samples, the largest of the configurations; NaN: not known */
    vp_resolution resolution;
    char note[LINE_BYTES];
} outlook;
static const double PLAN_DISCORDANCE = 0.2; /* share of questions on which just one of two configurations is right: as seen on VQA v2; up to 0.5 */
enum { PLAN_SAMPLES_ENOUGH = 500 };

static double cell_ms(const outlook *k, size_t i) { /* T_total of one run, the mean over samples */
    const forecast *f = &k->cells[i];
    if (f->runs_measured) return f->measured_ns / (double)f->runs_measured / 1e6;
    return f->count && f->ns > 0 ? f->ns / (double)f->count * k->scale / 1e6 : (double)NAN;
}
static int64_t cell_runs_left(const outlook *k, size_t i) {
    const forecast *f = &k->cells[i];
    int64_t all = f->count * k->p->run_count, closed = f->points_closed * k->p->run_count;
    int64_t done = f->runs_measured > closed ? f->runs_measured : closed;
    return done < all ? all - done : 0;
}
static void look_ahead(outlook *k) {
    double both = 0, estimated = 0;
    int fp32 = !strcmp(text_of(k->o, "weights"), "fp32");
    k->fewest = SIZE_MAX;
    k->variation = (double)NAN;
    for (size_t i = 0; i < k->p->cell_count; i++) {
        forecast *f = &k->cells[i];
        const cell *c = &k->p->cells[i];
        double mean, spread;
        forecast_cell(k->m, c, &k->x, fp32, f);
        if (c->set->count < k->fewest) k->fewest = c->set->count;
        if (!f->count || !(f->ns > 0)) continue;
        mean = f->ns / (double)f->count;
        spread = sqrt(fmax(0, f->squares / (double)f->count - mean * mean)) / mean;
        if (!(spread <= k->variation)) k->variation = spread;
    }
    read_journals(k->o, k->p, k->cells, k->note, sizeof k->note);
    for (size_t i = 0; i < k->p->cell_count; i++) {
        const forecast *f = &k->cells[i];
        k->runs_measured += f->runs_measured;
        if (!f->runs_measured || !(f->ns > 0)) continue;
        both += f->measured_ns;
        estimated += f->ns / (double)f->count * (double)f->runs_measured;
    }
    k->scale = estimated > 0 ? both / estimated : 1;
    k->seconds = 0;
    for (size_t i = 0; i < k->p->cell_count; i++) {
        int64_t left = cell_runs_left(k, i);
        k->runs_left += left;
        if (left) k->seconds += cell_ms(k, i) / 1e3 * (double)left;
    }
    k->resolution.accuracy = k->resolution.mean = k->resolution.p50 = (double)NAN;
    vp_statistics_resolution(k->fewest, PLAN_DISCORDANCE, isfinite(k->variation) ? k->variation : 0, &k->resolution);
    if (!isfinite(k->variation)) k->resolution.mean = k->resolution.p50 = (double)NAN;
}
static const char *time_source(const outlook *k) {
    int estimate = 0;
    for (size_t i = 0; i < k->p->cell_count; i++) estimate |= !k->cells[i].runs_measured && cell_runs_left(k, i) > 0;
    if (!estimate) return k->runs_measured ? "measured" : k->runs_left ? "none" : "nothing left";
    return k->x.reason[0] ? "none" : k->runs_measured ? "estimate, scaled by what is measured" : "estimate";
}

static void put_plan_data(vp_json_writer *w, const plan *p) {
    vp_json_key(w, "data");
    vp_json_begin_array(w);
    for (size_t s = 0; s < p->set_count; s++) {
        const dataset *d = &p->sets[s];
        int64_t unusable = 0;
        for (size_t i = 0; i < d->count; i++) unusable += d->samples[i].reason > 0;
        vp_json_begin_object(w);
        put_text(w, "dataset_name", d->task);
        put_text(w, "path", d->path);
        put_int(w, "num_samples", (int64_t)d->count);
        put_int(w, "num_unusable_images", unusable);
        put_text(w, "accuracy_metric", vp_score_metric_of(d->metric)->name);
        put_int(w, "max_new_tokens", d->new_tokens);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_plan_cell(vp_json_writer *w, const outlook *k, size_t i) {
    const cell *c = &k->p->cells[i];
    const forecast *f = &k->cells[i];
    double layouts = f->layouts ? (double)f->layouts : (double)NAN;
    vp_json_begin_object(w);
    put_text(w, "file_name", c->file_name);
    put_text(w, "dataset_name", c->set->task);
    put_text(w, "tier", c->tier ? c->tier->name : NULL);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
    put_int(w, "num_samples", (int64_t)c->set->count);
    put_int(w, "num_failing", f->failing);
    put_double(w, "selected_crops_mean", (double)f->crops / layouts);
    put_double(w, "actual_vision_tokens_mean", (double)f->vision_tokens / layouts);
    put_int(w, "total_sequence_length_max", f->longest);
    put_double(w, "T_total_estimate", f->count && f->ns > 0 ? f->ns / (double)f->count / 1e6 : (double)NAN);
    put_double(w, "T_total_measured", f->runs_measured ? cell_ms(k, i) : (double)NAN);
    put_int(w, "num_runs_measured", f->runs_measured);
    put_int(w, "num_runs_left", cell_runs_left(k, i));
    vp_json_end_object(w);
}
static void put_calibration(vp_json_writer *w, const rates *x) {
    vp_json_key(w, "calibration");
    vp_json_begin_object(w);
    put_text(w, "reason", x->reason[0] ? x->reason : NULL);
    put_text(w, "device", x->device[0] ? x->device : NULL);
    put_double(w, "seconds", x->seconds);
    for (int i = VP_STAGE_VIT; i <= VP_STAGE_DECODE; i++) {
        char key[48];
        int compute = is_compute_stage(i);
        double rate = compute ? x->flops_ns[i] * 1e9 : x->bytes_ns[i] * 1e9;
        snprintf(key, sizeof key, "%s_%s_per_s", vp_stage_name((vp_stage)i), compute ? "flops" : "bytes");
        put_double(w, key, rate > 0 ? rate : (double)NAN);
    }
    put_double(w, "view_ms", x->view_ns / 1e6);
    vp_json_end_object(w);
}
static int print_plan_json(const outlook *k) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-plan-1");
    put_text(&w, "model", k->m->name);
    put_bool(&w, "synthetic", k->m->synthetic);
    put_plan_data(&w, k->p);
    vp_json_key(&w, "configurations");
    vp_json_begin_array(&w);
    for (size_t i = 0; i < k->p->cell_count; i++) put_plan_cell(&w, k, i);
    vp_json_end_array(&w);
    put_int(&w, "num_points", (int64_t)k->p->point_count);
    put_int(&w, "num_runs_per_sample", k->p->run_count);
    put_int(&w, "num_runs_measured", k->runs_measured);
    put_int(&w, "num_runs_left", k->runs_left);
    put_double(&w, "expected_seconds", k->seconds);
    put_text(&w, "expected_from", time_source(k));
    put_double(&w, "engine_bytes", k->x.memory_bytes > 0 ? (double)k->x.memory_bytes : (double)NAN);
    put_calibration(&w, &k->x);
    vp_json_key(&w, "resolution");
    vp_json_begin_object(&w);
    put_int(&w, "num_samples", (int64_t)k->fewest);
    put_double(&w, "discordance", PLAN_DISCORDANCE);
    put_double(&w, "accuracy", k->resolution.accuracy);
    put_double(&w, "T_total_variation", k->variation);
    put_double(&w, "T_total_mean", k->resolution.mean);
    put_double(&w, "T_total_p50", k->resolution.p50);
    vp_json_end_object(&w);
    put_bool(&w, "too_few_samples", k->fewest < PLAN_SAMPLES_ENOUGH);
    put_text(&w, "note", k->note[0] ? k->note : NULL);
    put_config(&w, k->o);
    vp_json_end_object(&w);
    return vp_json_finish(&w) == VP_OK && putchar('\n') != EOF && !fflush(stdout) ? 0 : complain(EXIT_OUTPUT, "the plan cannot be written");
}

static void print_plan_grid(const outlook *k) {
    int width = 13;
    for (size_t i = 0; i < k->p->cell_count; i++) if ((int)strlen(k->p->cells[i].file_name) > width) width = (int)strlen(k->p->cells[i].file_name);
    printf("%-*s  crops  vision_tokens  longest  T_total_ms  runs_left  failing\n", width, "configuration");
    for (size_t i = 0; i < k->p->cell_count; i++) {
        const forecast *f = &k->cells[i];
        double layouts = f->layouts ? (double)f->layouts : 1, ms = cell_ms(k, i);
        char time[32] = "-";
        if (isfinite(ms)) snprintf(time, sizeof time, "%s%.4g", f->runs_measured ? "" : "~", ms);
        printf("%-*s  %5.1f  %13.1f  %7lld  %10s  %9lld  %7lld\n", width, k->p->cells[i].file_name, (double)f->crops / layouts,
               (double)f->vision_tokens / layouts, (long long)f->longest, time, (long long)cell_runs_left(k, i), (long long)f->failing);
    }
}
static void print_plan_time(const outlook *k) {
    const rates *x = &k->x;
    const char *from = time_source(k);
    if (x->memory_bytes > 0) printf("memory      %.4g GB on %s: weights, KV cache and buffers\n", (double)x->memory_bytes / 1e9, x->device);
    if (isfinite(k->seconds) && strcmp(from, "none")) {
        int64_t s = (int64_t)ceil(k->seconds);
        printf("time        %lld:%02lld:%02lld for %lld runs, without decoding images and warming up (%s)\n", (long long)(s / 3600),
               (long long)(s / 60 % 60), (long long)(s % 60), (long long)k->runs_left, from);
    } else printf("time        not known: %s\n", x->reason[0] ? x->reason : "no sample can run");
    if (strncmp(from, "estimate", 8) == 0)
        printf("            made of each stage's FLOPs and bytes and the rates of a few blocks (%.1f s): vit %.4g, prefill %.4g TFLOP/s, "
               "decode %.4g GB/s;\n            answers are taken to be as long as allowed\n",
               x->seconds, x->flops_ns[VP_STAGE_VIT] / 1e3, x->flops_ns[VP_STAGE_PREFILL] / 1e3, x->bytes_ns[VP_STAGE_DECODE]);
}
static void print_plan_resolution(const outlook *k) {
    const vp_resolution *r = &k->resolution;
    if (isfinite(r->accuracy))
        printf("resolution  %zu samples tell accuracies apart that differ by %.1f points of 100 (if just one is right on %.0f %% of the questions)\n",
               k->fewest, 100 * r->accuracy, 100 * PLAN_DISCORDANCE);
    else printf("resolution  %zu samples are too few to tell two accuracies apart\n", k->fewest);
    if (isfinite(r->mean))
        printf("            and mean latencies that differ by %.2g %%, P50s by %.2g %% (%.2g %% spread over samples; pairs tell more)\n",
               100 * r->mean, 100 * r->p50, 100 * k->variation);
    if (k->fewest < PLAN_SAMPLES_ENOUGH)
        printf("warning     fewer than %d samples: accuracies of neighbouring configurations differ by less than the noise; raise --num_samples\n",
               PLAN_SAMPLES_ENOUGH);
}
static int print_plan(const outlook *k) {
    const plan *p = k->p;
    printf("plan        %zu configuration%s, %zu points, %d runs each; %lld runs measured, %lld left\n", p->cell_count, p->cell_count == 1 ? "" : "s",
           p->point_count, p->run_count, (long long)k->runs_measured, (long long)k->runs_left);
    for (size_t s = 0; s < p->set_count; s++) {
        const dataset *d = &p->sets[s];
        int64_t unusable = 0;
        for (size_t i = 0; i < d->count; i++) unusable += d->samples[i].reason > 0;
        printf("data        %s: %zu samples of %s, metric %s, at most %d new tokens\n", d->task, d->count, d->path,
               vp_score_metric_of(d->metric)->name, d->new_tokens);
        if (unusable)
            printf("            %lld of their images cannot be used: %s%s\n", (long long)unusable, d->reasons[0], d->reason_count > 1 ? " ..." : "");
    }
    print_plan_grid(k);
    print_plan_time(k);
    print_plan_resolution(k);
    if (p->repeats) printf("note        %s repeats points %zu times; each is measured once\n", text_of(k->o, "sampling_strategy"), p->repeats);
    if (k->note[0]) printf("note        %s\n", k->note);
    return fflush(stdout) || ferror(stdout) ? complain(EXIT_OUTPUT, "the plan cannot be written: %s", strerror(errno)) : 0;
}
int forecast_show(const options *o, const model *m, const plan *p) {
    outlook k;
    int code;
    memset(&k, 0, sizeof k);
    k.o = o;
    k.m = m;
    k.p = p;
    k.cells = zeroed(p->cell_count, sizeof *k.cells);
    code = calibrate(o, m, p, &k.x);
    if (!code) {
        look_ahead(&k);
        code = given(o, "json") ? print_plan_json(&k) : print_plan(&k);
    }
    free(k.cells);
    return code;
}
