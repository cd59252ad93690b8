/* command_predict.c: what requests will cost that were not measured. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "report/result_read.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec PREDICT_OPTIONS[] = {
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    {"vision_tokens", COUNT, "N", NULL, 0, 1000000, NULL,
     "of a size: the target number; with --views: those the language model sees"},
    {"views", COUNT, "N", NULL, 0, 100000, NULL,
     "a request by its counts: passes of the vision encoder, crops and global view; 0: text only"},
    {"sequence", COUNT, "N", NULL, 1, 1000000000, NULL, "prompt positions: BOS, image and text"},
    {"text_tokens", COUNT, "N", NULL, 0, 1000000000, NULL, "tokens of the prompt's text (default: the data's median)"},
    {"top_k", COUNT, "K", NULL, 1, 1000000, NULL, "experts a token uses (default: the data's median)"},
    {"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, "decoder blocks that run (default: the data's median)"},
    {"output_tokens", COUNT, "N", NULL, 1, 1000000000, NULL, "tokens of the answer (default: the data's median)"},
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL, "does a request hold this many ms, and how likely"},
    {"data", TEXT, "DIR", NULL, 0, 0, NULL, "compare predictions with the result files of a folder"},
    {"recalibrate", TEXT, "DIR", NULL, 0, 0, NULL,
     "fit the model to the device of these result files, by a line a stage"},
    {"measurements", COUNT, "N", "25", 2, INT32_MAX, NULL,
     "with --recalibrate: how many of them it may use (short: -n)"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, "with --recalibrate: the new model (short: -o)"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "with --recalibrate: of the choice of measurements"},
    OPTION_JSON,
    OPTION_HELP,
};

/* ---- predict: one request */
typedef struct prediction {
    char name[48];                     /* "640x480"; empty: counts were given */
    vp_latency_request request;
    double value[ESTIMATE_PARTS], low[ESTIMATE_PARTS], high[ESTIMATE_PARTS]; /* ms; NaN: the stage is not in the model, or no interval is known */
    double within;                     /* probability to hold the budget; NaN: none given */
} prediction;
/* The interval of a sum: half-widths add as their residuals are correlated. */
static void predict_total_interval(const estimator *e, prediction *p) {
    double half[VP_LATENCY_STAGE_COUNT], sum = 0, widest = 0;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        half[s] = stage_runs(s, &p->request) && e->model.fitted[s] ? (p->high[s] - p->low[s]) / 2 : 0;
        widest = half[s] <= widest ? widest : half[s]; /* NaN stays */
    }
    for (int a = 0; a < VP_LATENCY_STAGE_COUNT; a++) for (int b = 0; b < VP_LATENCY_STAGE_COUNT; b++) sum += e->correlation[a][b] * half[a] * half[b];
    sum = sum >= widest * widest ? sqrt(sum) : widest; /* what cancels out in these rows need not do so in a new one */
    p->low[ESTIMATE_TOTAL] = p->value[ESTIMATE_TOTAL] - sum;
    p->high[ESTIMATE_TOTAL] = p->value[ESTIMATE_TOTAL] + sum;
}
/* 0: a count of the request is out of range */
static int predict_request(const estimator *e, double budget, prediction *p) {
    const double z = vp_normal_quantile(0.5 + ESTIMATE_LEVEL / 2);
    vp_latency_prediction made;
    if (vp_latency_predict(&e->model, &p->request, &made) != VP_OK) return 0;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_linear_range range;
        p->value[s] = p->low[s] = p->high[s] = made.stage[s];
        if (!e->model.fitted[s] || !stage_runs(s, &p->request)) continue;
        p->low[s] = p->high[s] = (double)NAN;
        if (vp_latency_interval(&e->model, (vp_latency_stage)s, &p->request, ESTIMATE_LEVEL, &range) != VP_OK) continue;
        p->low[s] = range.low;
        p->high[s] = range.high;
    }
    p->value[ESTIMATE_TOTAL] = made.total;
    predict_total_interval(e, p);
    p->within = 1 - vp_normal_tail((budget - made.total) / ((p->high[ESTIMATE_TOTAL] - made.total) / z));
    return 1;
}
/* A knob outside of what was measured, once for all requests that share it; what cannot be. */
static void warn_of_ranges(const estimator *e, const prediction *p, size_t count, text_list *warnings) {
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        const knob_range *range = &e->ranges[k];
        size_t outside = 0;
        int32_t value = 0;
        if ((k == KNOB_TEXT || k == KNOB_TIER) && e->model.features != VP_LATENCY_SEED) continue; /* no feature of it */
        for (size_t i = 0; i < count; i++) {
            int32_t at = knob_at(&p[i].request, k);
            if ((at < range->least || at > range->most) && !outside++) value = at;
        }
        if (outside)
            text_list_add(warnings, "extrapolation: %s %d is outside of %d..%d, the data of the model (%zu of %zu requests)",
                          ESTIMATE_KNOBS[k].name, value, range->least, range->most, outside, count);
    }
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        size_t negative = 0;
        for (size_t i = 0; i < count; i++) negative += p[i].value[s] < 0;
        if (!e->model.fitted[s]) text_list_add(warnings, "%s is not in the model: the total is without it", part_name(s));
        if (negative)
            text_list_add(warnings, "%s: below 0 ms in %zu of %zu requests: %s", part_name(s), negative, count,
                          e->model.affine[s].count ? "they are too small for the line of the recalibration"
                                                   : "these features allow what no machine does");
    }
}
static const char *verdict_of(const prediction *p, double budget) {
    return p->high[ESTIMATE_TOTAL] <= budget ? "holds" : p->low[ESTIMATE_TOTAL] > budget ? "exceeds" : "unsure";
}
static void write_prediction(document *d, const prediction *p, double budget) {
    const vp_latency_request *q = &p->request;
    text_list *table;
    document_text(d, BLOCK_HEADING,
                  "%s%s%d views, %d vision tokens, %d text tokens, sequence %d, top_k %d of %d, %d blocks, %d output tokens",
                  p->name, p->name[0] ? ": " : "", q->views, q->vision_tokens, q->text_tokens, q->sequence, q->top_k, q->expert_count,
                  q->active_blocks, q->output_tokens);
    table = document_table(d, "stage|ms|95 % interval");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        int runs = part == ESTIMATE_TOTAL || stage_runs(part, q);
        text_list_add(table, "%s", part_name(part));
        text_list_add(table, "%s", !runs ? "does not run" : figure_of("%.3f", p->value[part]).text);
        if (runs && isfinite(p->low[part])) text_list_add(table, "[%.3f, %.3f]", p->low[part], p->high[part]);
        else text_list_add(table, "-");
    }
    if (isfinite(budget))
        document_text(d, BLOCK_LINE, "budget %.3f ms: %s, with probability %s", budget, verdict_of(p, budget), figure_of("%.3f", p->within).text);
}
static void put_prediction(vp_json_writer *w, const prediction *p, double budget) {
    vp_json_begin_object(w);
    put_text(w, "size", p->name[0] ? p->name : NULL);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) put_int(w, ESTIMATE_KNOBS[k].name, knob_at(&p->request, k));
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        int runs = part == ESTIMATE_TOTAL || stage_runs(part, &p->request);
        vp_json_key(w, part_name(part));
        if (!runs || !isfinite(p->value[part])) { vp_json_null(w); continue; }
        vp_json_begin_object(w);
        put_double(w, "ms", p->value[part]);
        put_range(w, "interval_ms", p->low[part], p->high[part]);
        vp_json_end_object(w);
    }
    if (isfinite(budget)) {
        put_double(w, "budget_ms", budget);
        put_text(w, "verdict", verdict_of(p, budget));
        put_double(w, "probability_within_budget", p->within);
    }
    vp_json_end_object(w);
}
static int print_predictions(const options *o, const estimator *e, const prediction *p, size_t count, double budget, const text_list *warnings) {
    if (given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_object(&w);
        put_text(&w, "schema", "vlmprof-prediction-1");
        put_text(&w, "model", e->model_name);
        put_text(&w, "device", e->device);
        put_list(&w, "warnings", warnings);
        vp_json_key(&w, "predictions");
        vp_json_begin_array(&w);
        for (size_t i = 0; i < count; i++) put_prediction(&w, &p[i], budget);
        vp_json_end_array(&w);
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
        return 0;
    }
    document d = {NULL, 0};
    int code;
    if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
    for (size_t i = 0; i < count; i++) write_prediction(&d, &p[i], budget);
    code = print_document(&d);
    document_free(&d);
    return code;
}
/* A count of the command line, or the data's median. */
static int32_t knob_of(const options *o, const estimator *e, int knob) {
    return given(o, ESTIMATE_KNOBS[knob].name) ? (int32_t)number_of(o, ESTIMATE_KNOBS[knob].name) : e->ranges[knob].median;
}
static int predict_size(const options *o, const vp_tile_options *tiles, const char *text, prediction *p) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_geometry geometry = vp_geometry_default();
    int64_t width = 0, height = 0;
    vp_layout l;
    vp_result r;
    if (!parse_size(text, "x", &width, &height) || width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return complain(EXIT_USAGE, "%s: want WIDTHxHEIGHT in pixels, like 640x480", text);
    if ((r = vp_layout_compute(&geometry, tiles, (int32_t)width, (int32_t)height, &l, &error)) != VP_OK)
        return complain_result(EXIT_USAGE, text, r, &error);
    snprintf(p->name, sizeof p->name, "%lldx%lld%s%s", (long long)width, (long long)height, tiles->rule == VP_TILE_TIER ? " " : "",
             tiles->rule == VP_TILE_TIER ? tiles->tier->name : "");
    for (int32_t i = 0; text_of(o, "tier") && vp_tier_at(i); i++) if (!strcmp(vp_tier_at(i)->name, text_of(o, "tier"))) p->request.tier_index = i;
    p->request.views = l.views;
    p->request.vision_tokens = l.feature_tokens;
    p->request.sequence = 1 + l.image_tokens + p->request.text_tokens;
    return 0;
}
/* --views, --vision_tokens, --sequence: counts as they are */
static int predict_counts(const options *o, prediction *p) {
    vp_latency_request *q = &p->request;
    q->views = (int32_t)number_of(o, "views");
    q->vision_tokens = given(o, "vision_tokens") ? (int32_t)number_of(o, "vision_tokens") : 0;
    if (!given(o, "views")) return complain(EXIT_USAGE, "predict: say what the request is: sizes like 640x480, or --views N (0: text only)");
    if (given(o, "tier") || given(o, "crops") || given(o, "max_crops") || given(o, "preprocess"))
        return complain(EXIT_USAGE, "predict: --tier, --crops, --max_crops and --preprocess are for sizes like 640x480");
    if (q->views && !(given(o, "vision_tokens") && given(o, "sequence")))
        return complain(EXIT_USAGE, "predict: --views %d needs --vision_tokens and --sequence; or give sizes like 640x480", q->views);
    if (!q->views && q->vision_tokens) return complain(EXIT_USAGE, "predict: --vision_tokens %d without --views", q->vision_tokens);
    q->sequence = given(o, "sequence") ? (int32_t)number_of(o, "sequence") : 1 + q->text_tokens;
    if (q->vision_tokens >= q->sequence)
        return complain(EXIT_USAGE, "predict: %d vision tokens do not fit into a sequence of %d", q->vision_tokens, q->sequence);
    return 0;
}
static int predict_requests(const options *o, const estimator *e) {
    size_t count = o->operand_count > 1 ? o->operand_count - 1 : 1;
    double budget = given(o, "budget_ms") ? opt(o, "budget_ms")->real : (double)NAN;
    prediction *p = zeroed(count, sizeof *p);
    text_list warnings = {NULL, 0};
    vp_tile_options tiles;
    int code = 0;
    if (o->operand_count > 1 && (given(o, "views") || given(o, "sequence")))
        code = complain(EXIT_USAGE, "predict: --views and --sequence are for requests without a size");
    if (!code && o->operand_count > 1) code = tile_options_of(o, &tiles);
    for (size_t i = 0; i < count && !code; i++) {
        vp_latency_request *q = &p[i].request;
        q->text_tokens = knob_of(o, e, KNOB_TEXT);
        q->output_tokens = knob_of(o, e, KNOB_OUTPUT);
        q->top_k = knob_of(o, e, KNOB_EXPERTS);
        q->active_blocks = knob_of(o, e, KNOB_ACTIVE);
        q->expert_count = (int32_t)e->expert_count;
        if (q->top_k > q->expert_count) code = complain(EXIT_USAGE, "--top_k: %d is more than the model's %d experts", q->top_k, q->expert_count);
        if (!code) code = o->operand_count > 1 ? predict_size(o, &tiles, o->operands[i + 1], &p[i]) : predict_counts(o, &p[i]);
        if (!code && !predict_request(e, budget, &p[i])) code = complain(EXIT_USAGE, "predict: a count of the request is out of range");
    }
    if (!code) {
        warn_of_ranges(e, p, count, &warnings);
        code = print_predictions(o, e, p, count, budget, &warnings);
    }
    text_list_free(&warnings);
    free(p);
    return code;
}

/* ---- predict --data: how far it is off; --recalibrate: another device */
typedef struct trial_errors { vp_linear_errors errors[ESTIMATE_PARTS]; double inside[ESTIMATE_PARTS]; } trial_errors; /* share within the intervals */
static void try_model(const estimator *e, const measurements *m, trial_errors *t, evaluation *v) {
    double *predicted = resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    size_t inside[ESTIMATE_PARTS] = {0};
    estimator_predict_rows(&e->model, m, predicted);
    add_totals(m, predicted);
    errors_of(m, predicted, t->errors);
    for (size_t i = 0; i < m->count; i++) {
        prediction p;
        memset(&p, 0, sizeof p);
        p.request = m->requests[i];
        if (!predict_request(e, (double)NAN, &p)) continue;
        for (int part = 0; part < ESTIMATE_PARTS; part++) {
            double y = measured_part(m, part, i);
            inside[part] += isfinite(predicted[(size_t)part * m->count + i]) && y >= p.low[part] && y <= p.high[part];
        }
    }
    for (int part = 0; part < ESTIMATE_PARTS; part++)
        t->inside[part] = t->errors[part].count ? (double)inside[part] / (double)t->errors[part].count : (double)NAN;
    if (v) guard_budgets(m, predicted, v);
    free(predicted);
}
static void write_trial(document *d, const char *heading, const trial_errors *t) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "%s", heading);
    table = document_table(d, "stage|MAE ms|MAPE %|R2|P95 error ms|bias ms|rows|within 95 % interval %");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        error_row(table, part_name(part), NULL, &t->errors[part]);
        text_list_add(table, "%s", figure_percent(t->inside[part]).text);
    }
}
static void put_trial(vp_json_writer *w, const char *key, const trial_errors *t) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    vp_json_key(w, "errors");
    put_parts(w, t->errors);
    vp_json_key(w, "share_within_intervals");
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) put_double(w, part_name(part), t->inside[part]);
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void warn_of_target(const estimator *e, const measurements *m, text_list *warnings) {
    prediction *p = zeroed(m->count, sizeof *p);
    if (strcmp(e->device, m->device)) text_list_add(warnings, "the model is of %s, these files of %s", e->device, m->device);
    if (strcmp(e->model_name, m->model))
        text_list_add(warnings, "the model is of %s, these files of %s: other weights, other shapes", e->model_name, m->model);
    for (size_t i = 0; i < m->count; i++) p[i].request = m->requests[i];
    warn_of_ranges(e, p, m->count, warnings);
    free(p);
}
static int predict_files(const options *o, const estimator *e, const measurements *m, const text_list *warnings) {
    trial_errors t;
    evaluation v;
    document d = {NULL, 0};
    int code = 0;
    memset(&v, 0, sizeof v);
    if (given(o, "budget_ms")) v.own_budget_ms = opt(o, "budget_ms")->real;
    try_model(e, m, &t, &v);
    if (given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_object(&w);
        put_text(&w, "schema", "vlmprof-prediction-1");
        put_text(&w, "model", e->model_name);
        put_text(&w, "device", e->device);
        put_text(&w, "measured_on", m->device);
        put_list(&w, "warnings", warnings);
        put_trial(&w, "measured", &t);
        if (v.reference_ms > 0) put_guardrails(&w, &v, "of this model");
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
        return 0;
    }
    if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
    write_trial(&d, "Predictions against measurements", &t);
    if (v.reference_ms > 0) write_guardrails(&d, &v, "this model");
    code = print_document(&d);
    document_free(&d);
    return code;
}

typedef struct recalibration {
    size_t wanted;                        /* measurements that the lines are made of */
    uint32_t seed;
    vp_affine_curve curves[ESTIMATE_PARTS][CURVE_COUNT]; /* draws 0: none */
    trial_errors before, after;           /* over the measurements that were not drawn */
    size_t left;
} recalibration;
static measurements pick_rows(const measurements *m, const int64_t *order, size_t count) { /* its texts and groups are m's own */
    measurements p = *m;
    p.requests = resize(NULL, count, sizeof *p.requests);
    p.measured = resize(NULL, count, VP_LATENCY_STAGE_COUNT * sizeof *p.measured);
    p.total = resize(NULL, count, sizeof *p.total);
    p.configs = p.sizes = NULL;
    p.count = count;
    for (size_t i = 0; i < count; i++) {
        p.requests[i] = m->requests[order[i]];
        p.total[i] = m->total[order[i]];
        memcpy(p.measured + i * VP_LATENCY_STAGE_COUNT, m->measured + (size_t)order[i] * VP_LATENCY_STAGE_COUNT,
               VP_LATENCY_STAGE_COUNT * sizeof *p.measured);
    }
    return p;
}
/* What N measurements do for all others, by stage; the total's line is drawn through totals. */
static void find_curves(const estimator *e, const measurements *m, recalibration *c) {
    double *predicted = resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    double *pairs = resize(NULL, m->count, 2 * sizeof *pairs);
    vp_latency_model *plain = resize(NULL, 1, sizeof *plain);
    *plain = e->model;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        memset(&plain->affine[s], 0, sizeof plain->affine[s]);
        plain->affine[s].slope = plain->affine[s].condition = 1;
    }
    estimator_predict_rows(plain, m, predicted);
    add_totals(m, predicted);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs), bytes = vp_affine_curve_scratch_bytes(n, CURVE_DRAWS);
        void *scratch = resize(NULL, bytes, 1);
        for (int k = 0; k < CURVE_COUNT; k++)
            if (vp_affine_learning(pairs + m->count, pairs, n, CURVE_POINTS[k], CURVE_DRAWS, c->seed, scratch, bytes, &c->curves[part][k]) != VP_OK)
                memset(&c->curves[part][k], 0, sizeof c->curves[part][k]);
        free(scratch);
    }
    free(plain);
    free(pairs);
    free(predicted);
}
static void write_recalibration(document *d, const estimator *e, const recalibration *c, const measurements *m) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Recalibration to %s: %zu of %zu measurements, drawn with seed %u", m->device, c->wanted, m->count, c->seed);
    table = document_table(d, "stage|slope|offset ms|measurements|condition");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_affine *line = &e->model.affine[s];
        text_list_add(table, "%s", part_name(s));
        text_list_add(table, "%s", figure_number(line->count ? line->slope : (double)NAN).text);
        text_list_add(table, "%s", figure_number(line->count ? line->offset : (double)NAN).text);
        text_list_add(table, "%zu", line->count);
        text_list_add(table, "%s", figure_number(line->count ? line->condition : (double)NAN).text);
    }
    if (c->left) {
        write_trial(d, "Before, on the measurements that were not drawn", &c->before);
        write_trial(d, "After, on the same", &c->after);
    }
    document_text(d, BLOCK_HEADING, "Learning curve: MAPE %% of the rest after N measurements, mean [P5, P95] of %d draws", CURVE_DRAWS);
    table = document_table(d, "stage|before|10|25|50|100|lines refused");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        double before = (double)NAN;
        size_t refused = 0;
        for (int k = 0; k < CURVE_COUNT; k++) {
            if (c->curves[part][k].draws) before = c->curves[part][k].before;
            refused += c->curves[part][k].refused;
        }
        text_list_add(table, "%s", part_name(part));
        text_list_add(table, "%s", figure_percent(before).text);
        for (int k = 0; k < CURVE_COUNT; k++) {
            const vp_affine_curve *learned = &c->curves[part][k];
            text_list_add(table, "%s", learned->draws ? figure_estimate(100, learned->mean, learned->low, learned->high).text : "-");
        }
        text_list_add(table, "%zu", refused);
    }
}
static void put_recalibration(vp_json_writer *w, const recalibration *c, const measurements *m, const char *folder) {
    vp_json_begin_object(w);
    put_text(w, "device", m->device);
    put_text(w, "data", folder);
    put_int(w, "measurements", (int64_t)c->wanted);
    put_int(w, "of", (int64_t)m->count);
    put_int(w, "seed", c->seed);
    if (c->left) put_trial(w, "before", &c->before);
    if (c->left) put_trial(w, "after", &c->after);
    vp_json_key(w, "learning_curve");
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        vp_json_begin_array(w);
        for (int k = 0; k < CURVE_COUNT; k++) {
            const vp_affine_curve *learned = &c->curves[part][k];
            if (!learned->draws) continue;
            vp_json_begin_object(w);
            put_int(w, "measurements", (int64_t)learned->points);
            put_int(w, "draws", (int64_t)learned->draws);
            put_int(w, "refused", (int64_t)learned->refused);
            put_double(w, "mape_percent_before", 100 * learned->before);
            put_double(w, "mape_percent", 100 * learned->mean);
            put_range(w, "mape_percent_p5_p95", 100 * learned->low, 100 * learned->high);
            vp_json_end_object(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
}
/* Lines through `wanted` drawn rows; what they do for the others. 0 or an exit code. */
static int recalibrate(estimator *e, const measurements *m, recalibration *c) {
    int64_t *order = resize(NULL, m->count, sizeof *order);
    double *scratch = resize(NULL, c->wanted, 2 * sizeof *scratch);
    measurements drawn, rest;
    vp_error error = {VP_OK, -1, "", ""};
    vp_random random;
    vp_result r;
    for (size_t i = 0; i < m->count; i++) order[i] = (int64_t)i;
    vp_random_seed(&random, c->seed);
    vp_random_permutation(&random, order, m->count);
    drawn = pick_rows(m, order, c->wanted);
    c->left = m->count - c->wanted;
    rest = pick_rows(m, order + c->wanted, c->left);
    find_curves(e, m, c);
    if (c->left) try_model(e, &rest, &c->before, NULL);
    /* a stage that is not measured here keeps its line, which is not of these */
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) e->model.affine[s].count = 0;
    r = vp_latency_recalibrate(&e->model, drawn.requests, drawn.measured, drawn.count, 0, scratch, &error);
    if (r == VP_OK && c->left) try_model(e, &rest, &c->after, NULL);
    measurements_free(&drawn);
    measurements_free(&rest);
    free(scratch);
    free(order);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), "recalibration refused", r, &error);
}
static int predict_recalibrate(const options *o, estimator *e, const measurements *m, const text_list *warnings) {
    const char *path = text_of(o, "output");
    recalibration *c = zeroed(1, sizeof *c);
    text_buffer out = {NULL, 0, 0};
    vp_json_writer w;
    int code = 0;
    c->wanted = (size_t)number_of(o, "measurements");
    c->seed = (uint32_t)number_of(o, "seed");
    if (c->wanted > m->count)
        code = complain(EXIT_USAGE, "-n %zu: %s holds %zu measurements", c->wanted, text_of(o, "recalibrate"), m->count);
    if (!code) code = recalibrate(e, m, c);
    if (!code) {
        vp_json_writer_init_sink(&w, text_sink, &out, 1);
        put_recalibration(&w, c, m, text_of(o, "recalibrate"));
        if (vp_json_finish(&w) != VP_OK) abort(); /* memory ends the program before */
        free(e->recalibration);
        free(e->device);
        e->recalibration = out.data;
        e->device = copy_text(m->device, strlen(m->device));
        code = estimator_write(path, e, NULL);
    }
    if (!code && given(o, "json")) code = estimator_print(e, NULL);
    else if (!code) {
        document d = {NULL, 0};
        if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
        for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
        write_recalibration(&d, e, c, m);
        code = print_document(&d);
        document_free(&d);
    }
    free(c);
    return code;
}
/* Options that do not go together, before anything is read. */
static int check_predict_options(const options *o) {
    static const char *const of_request[] = {"tier", "crops", "max_crops", "preprocess", "views", "vision_tokens", "text_tokens", "sequence", "top_k",
                                             "num_active_blocks", "output_tokens"};
    int by_files = given(o, "data") || given(o, "recalibrate");
    if (!o->operand_count) return complain(EXIT_USAGE, "predict: give a model of vlmprof fit; see vlmprof predict --help");
    if (given(o, "data") && given(o, "recalibrate")) return complain(EXIT_USAGE, "predict: --data and --recalibrate exclude each other");
    if (given(o, "recalibrate") && !given(o, "output")) return complain(EXIT_USAGE, "predict: --recalibrate needs -o FILE for the new model");
    if (!given(o, "recalibrate") && (given(o, "output") || given(o, "measurements") || given(o, "seed")))
        return complain(EXIT_USAGE, "predict: -o, -n and --seed go with --recalibrate DIR");
    if (given(o, "recalibrate") && given(o, "budget_ms")) return complain(EXIT_USAGE, "predict: --budget_ms goes with requests and --data");
    if (by_files && o->operand_count > 1) return complain(EXIT_USAGE, "predict: sizes and --data or --recalibrate exclude each other");
    for (size_t i = 0; i < sizeof of_request / sizeof of_request[0] && by_files; i++)
        if (given(o, of_request[i]))
            return complain(EXIT_USAGE, "predict: --%s is for a request; with --data and --recalibrate the files say it", of_request[i]);
    return 0;
}
static int run_command(const options *o) {
    estimator *e = NULL;
    measurements m;
    results r;
    text_list warnings = {NULL, 0};
    const char *folder = text_of(o, "data") ? text_of(o, "data") : text_of(o, "recalibrate");
    int code;
    if ((code = check_predict_options(o)) != 0 || (code = estimator_read(o->operands[0], &e)) != 0) return code;
    if (!folder) code = predict_requests(o, e);
    else if ((code = results_read(&r, &folder, 1)) == 0) {
        int64_t experts = e->expert_count;
        if ((code = measurements_make(o, &r, &experts, &m, &warnings)) == 0) {
            warn_of_target(e, &m, &warnings);
            code = (given(o, "data") ? predict_files(o, e, &m, &warnings) : predict_recalibrate(o, e, &m, &warnings));
        }
        measurements_free(&m);
        results_free(&r);
    }
    text_list_free(&warnings);
    estimator_free(e);
    return code;
}

const command command_predict = {
    "predict", "MODEL.json (WxH... | --views N | --data DIR | --recalibrate DIR)",
    "milliseconds of requests that were not measured, with intervals; errors on other files; another device",
    "vlmprof predict model.json 640x480 1280x720 --tier medium --top_k 4 --output_tokens 16 --budget_ms 250\n"
    "  vlmprof predict model.json --recalibrate other-device -n 50 -o other.json",
    SIZE_MAX, PREDICT_OPTIONS, sizeof PREDICT_OPTIONS / sizeof *PREDICT_OPTIONS, NULL, run_command};
