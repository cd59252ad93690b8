/* estimator.c: the latency model: fitted, held against configurations that it never saw, written and read. */
#include "report/estimator.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "vlmprof_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void estimator_predict_rows(const vp_latency_model *fits, const measurements *m, double *predicted) {
    for (size_t i = 0; i < m->count; i++) {
        vp_latency_prediction p;
        int good = vp_latency_predict(fits, &m->requests[i], &p) == VP_OK;
        for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++)
            predicted[(size_t)s * m->count + i] = good && isfinite(m->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s]) ? p.stage[s] : (double)NAN;
    }
}
void estimator_predict_left_out(vp_latency_features kind, const measurements *m, int split, double *predicted) {
    const uint32_t *groups = split == SPLIT_CONFIG ? m->configs : m->sizes;
    size_t bytes = vp_latency_leave_out_scratch_bytes(m->config_count);
    double *values = resize(NULL, m->count, sizeof *values);
    void *scratch = resize(NULL, bytes, 1);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        double *out = predicted + (size_t)s * m->count;
        for (size_t i = 0; i < m->count; i++) values[i] = m->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s];
        if ((split == SPLIT_CONFIG ? m->config_count : m->size_count) > 1
            && vp_latency_leave_out(kind, (vp_latency_stage)s, m->requests, values, groups, m->count, m->config_count, scratch, bytes, out,
                                    NULL) == VP_OK)
            continue;
        for (size_t i = 0; i < m->count; i++) out[i] = (double)NAN; /* one group alone, or too few rows without it */
    }
    free(scratch);
    free(values);
}
void add_totals(const measurements *m, double *predicted) {
    for (size_t i = 0; i < m->count; i++) {
        double sum = 0;
        for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) if (stage_runs(s, &m->requests[i])) sum += predicted[(size_t)s * m->count + i];
        predicted[ESTIMATE_TOTAL * m->count + i] = sum;
    }
}
double measured_part(const measurements *m, int part, size_t row) {
    return part == ESTIMATE_TOTAL ? m->total[row] : m->measured[row * VP_LATENCY_STAGE_COUNT + (size_t)part];
}
size_t pair_rows(const measurements *m, const double *predicted, int part, double *pairs) {
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        double p = predicted[(size_t)part * m->count + i], y = measured_part(m, part, i);
        if (!isfinite(p) || !isfinite(y)) continue;
        pairs[n] = y;
        pairs[m->count + n++] = p;
    }
    return n;
}
void errors_of(const measurements *m, const double *predicted, vp_linear_errors errors[ESTIMATE_PARTS]) {
    double *pairs = resize(NULL, m->count, 3 * sizeof *pairs);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs);
        memset(&errors[part], 0, sizeof errors[part]);
        if (n) vp_linear_errors_compute(pairs, pairs + m->count, n, pairs + 2 * m->count, &errors[part]);
    }
    free(pairs);
}
void guard_budgets(const measurements *m, const double *predicted, evaluation *e) {
    double *pairs = resize(NULL, m->count, 3 * sizeof *pairs);
    size_t n = pair_rows(m, predicted, ESTIMATE_TOTAL, pairs);
    vp_statistics s;
    if (n && vp_statistics_compute(pairs, n, pairs + 2 * m->count, &s) == VP_OK) {
        e->reference_ms = s.p95;
        e->guardrail_count = BUDGET_COUNT + (e->own_budget_ms > 0);
        for (int b = 0; b < e->guardrail_count; b++)
            vp_guardrail_compute(pairs + m->count, pairs, n, b < BUDGET_COUNT ? e->reference_ms * BUDGET_SHARES[b] : e->own_budget_ms, 1,
                                 BUDGET_TOLERANCE, &e->guardrails[b]);
    }
    free(pairs);
}
/* Rows from first to last, as many as a plot can show. */
static void pick_points(const measurements *m, const double *predicted, evaluation *e) {
    double *pairs = resize(NULL, m->count, 2 * sizeof *pairs);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs), shown = n < EVALUATION_POINTS ? n : (size_t)EVALUATION_POINTS;
        for (size_t i = 0; i < shown; i++) {
            size_t row = (size_t)((double)i * (double)n / (double)shown);
            e->points[part][i][0] = pairs[row];
            e->points[part][i][1] = pairs[m->count + row];
        }
        e->point_counts[part] = shown;
    }
    free(pairs);
}
int estimator_evaluate(const measurements *m, vp_latency_features chosen, evaluation *e) {
    double *predicted = resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    vp_latency_model *fits = zeroed(1, sizeof *fits);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    memset(e, 0, sizeof *e);
    e->noise = m->noise_count ? m->noise / (double)m->noise_count : (double)NAN;
    for (int kind = 0; kind < ESTIMATE_KINDS && r == VP_OK; kind++) {
        r = vp_latency_fit((vp_latency_features)kind, m->requests, m->measured, m->count, fits, &error);
        for (int split = 0; split < SPLIT_COUNT && r == VP_OK; split++) {
            if (split == SPLIT_NONE) estimator_predict_rows(fits, m, predicted);
            else estimator_predict_left_out((vp_latency_features)kind, m, split, predicted);
            add_totals(m, predicted);
            errors_of(m, predicted, e->errors[kind][split]);
            if (kind != (int)chosen || split == SPLIT_SIZE || !e->errors[kind][split][ESTIMATE_TOTAL].count) continue;
            e->guardrail_split = split;
            guard_budgets(m, predicted, e);
            pick_points(m, predicted, e);
        }
    }
    free(fits);
    free(predicted);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), "fit", r, &error);
}
void estimator_free(estimator *e) {
    free(e->model_name);
    free(e->device);
    free(e->provenance);
    free(e->recalibration);
    text_list_free(&e->warnings);
    free(e);
}
static int by_count(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}
static void find_ranges(const measurements *m, estimator *e) {
    int32_t *values = resize(NULL, m->count, sizeof *values);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        for (size_t i = 0; i < m->count; i++) values[i] = knob_at(&m->requests[i], k);
        qsort(values, m->count, sizeof *values, by_count);
        e->ranges[k].least = values[0];
        e->ranges[k].median = values[(m->count - 1) / 2];
        e->ranges[k].most = values[m->count - 1];
    }
    free(values);
}
/* Correlation of two stages' residuals, weighted as the fit weighs them, over the rows that have both. */
static double residual_correlation(const measurements *m, const double *predicted, int a, int b, int is_relative) {
    double x = 0, y = 0, xx = 0, yy = 0, both = 0, n = 0, spread;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < m->count; i++) {
            double p = predicted[(size_t)a * m->count + i], q = predicted[(size_t)b * m->count + i], u, v;
            if (!isfinite(p) || !isfinite(q)) continue;
            u = measured_part(m, a, i);
            v = measured_part(m, b, i);
            u = is_relative ? (u - p) / u : u - p;
            v = is_relative ? (v - q) / v : v - q;
            if (!turn) { x += u; y += v; n++; continue; }
            xx += (u - x / n) * (u - x / n);
            yy += (v - y / n) * (v - y / n);
            both += (u - x / n) * (v - y / n);
        }
    }
    spread = sqrt(xx) * sqrt(yy);
    return spread > 0 ? fmax(-1, fmin(1, both / spread)) : 0; /* rounding alone takes it past 1 */
}
static void find_correlations(const measurements *m, estimator *e) {
    double *predicted = resize(NULL, m->count, VP_LATENCY_STAGE_COUNT * sizeof *predicted);
    estimator_predict_rows(&e->model, m, predicted);
    for (int a = 0; a < VP_LATENCY_STAGE_COUNT; a++)
        for (int b = 0; b < VP_LATENCY_STAGE_COUNT; b++)
            e->correlation[a][b] = a == b ? 1
                : residual_correlation(m, predicted, a < b ? a : b, a < b ? b : a, e->model.features == VP_LATENCY_PHYSICAL);
    free(predicted);
}
static void warn_of_fit(estimator *e, const measurements *m) {
    if (m->config_count < 2) text_list_add(&e->warnings, "one configuration alone: no error on configurations that were not seen can be told");
    if (m->size_count < 2) text_list_add(&e->warnings, "one image size alone: no error on image sizes that were not seen can be told");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_linear *fit = &e->model.fit[s];
        text_buffer features = {NULL, 0, 0};
        if (!e->model.fitted[s]) {
            text_list_add(&e->warnings, "%s: nothing was measured of this stage: it is not in the model", part_name(s));
            continue;
        }
        for (int c = 0; c < fit->columns; c++) {
            if (fit->state[c] != VP_LINEAR_DROPPED) continue;
            if (features.bytes) text_add_string(&features, ", ");
            text_add_string(&features, vp_latency_column_name(e->model.features, (vp_latency_stage)s, c));
        }
        if (features.bytes)
            text_list_add(&e->warnings, "%s: these data cannot tell %s from the features before: left out, what they cost lies in the others",
                          part_name(s), features.data);
        if (fit->degrees < 10) text_list_add(&e->warnings, "%s: %.0f degrees of freedom are few", part_name(s), fit->degrees);
        free(features.data);
    }
}
static void put_data_sets(vp_json_writer *w, const results *r) {
    vp_json_key(w, "data_sets");
    vp_json_begin_array(w);
    for (size_t i = 0; i < r->group_count; i++) {
        const result_file *f = &r->files[r->groups[i].first];
        vp_json_begin_object(w);
        put_text(w, "dataset_name", f->task);
        put_text(w, "data", f->data);
        put_text(w, "data_hash", f->data_hash);
        put_int(w, "configurations", (int64_t)r->groups[i].count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
/* What a model was made of, as JSON text; malloc'ed. */
static char *provenance_of(const results *r, const measurements *m) {
    text_buffer out = {NULL, 0, 0};
    const result_file *f = &r->files[0];
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, &out, 1);
    vp_json_begin_object(&w);
    put_text(&w, "device", m->device);
    put_text(&w, "host", f->host);
    put_text(&w, "model", m->model);
    put_bool(&w, "synthetic", f->is_synthetic);
    put_text(&w, "weights", f->weights);
    put_text(&w, "timing", f->timing);
    put_text(&w, "measured_by", f->version);
    put_text(&w, "measured_from", f->measured_from);
    put_text(&w, "measured_to", f->measured_to);
    put_data_sets(&w, r);
    put_int(&w, "configurations", (int64_t)m->config_count);
    put_int(&w, "image_sizes", (int64_t)m->size_count);
    put_int(&w, "rows", (int64_t)m->count);
    put_int(&w, "rows_left_out", (int64_t)m->incomplete);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) abort(); /* memory ends the program before */
    return out.data;
}
int estimator_make(const measurements *m, const results *r, vp_latency_features kind, int64_t experts, estimator *e) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_latency_fit(kind, m->requests, m->measured, m->count, &e->model, &error);
    if (result != VP_OK) return complain_result(exit_code_of(result), "fit", result, &error);
    e->expert_count = experts;
    e->is_synthetic = r->files[0].is_synthetic;
    e->model_name = copy_text(m->model, strlen(m->model));
    e->device = copy_text(m->device, strlen(m->device));
    e->provenance = provenance_of(r, m);
    find_ranges(m, e);
    find_correlations(m, e);
    warn_of_fit(e, m);
    return 0;
}

static void put_errors(vp_json_writer *w, const vp_linear_errors *e) {
    if (!e->count) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rows", (int64_t)e->count);
    put_double(w, "mae_ms", e->mae);
    put_double(w, "rmse_ms", e->rmse);
    put_double(w, "mape_percent", 100 * e->mape);
    put_double(w, "r2", e->r2);
    put_double(w, "p95_absolute_ms", e->p95_absolute);
    put_double(w, "max_absolute_ms", e->max_absolute);
    put_double(w, "bias_ms", e->bias);
    vp_json_end_object(w);
}
void put_parts(vp_json_writer *w, const vp_linear_errors errors[ESTIMATE_PARTS]) {
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        put_errors(w, &errors[part]);
    }
    vp_json_end_object(w);
}
static void put_guardrail(vp_json_writer *w, const vp_guardrail *g) {
    vp_json_begin_object(w);
    put_double(w, "budget_ms", g->budget);
    put_int(w, "requests", (int64_t)g->count);
    put_int(w, "accepted", (int64_t)g->accepted);
    put_int(w, "over_budget", (int64_t)g->over_budget);
    put_int(w, "violations", (int64_t)g->violations);
    put_int(w, "false_accepts", (int64_t)g->false_accepts);
    put_int(w, "false_rejects", (int64_t)g->false_rejects);
    put_double(w, "violation_rate", g->violation_rate);
    put_double(w, "false_accept_rate", g->false_accept_rate);
    put_double(w, "false_reject_rate", g->false_reject_rate);
    vp_json_end_object(w);
}
void put_guardrails(vp_json_writer *w, const evaluation *e, const char *predictions) {
    vp_json_key(w, "guardrail");
    vp_json_begin_object(w);
    put_text(w, "predictions", predictions);
    put_double(w, "reference_ms", e->reference_ms);
    put_text(w, "reference", "P95 of T_total over the rows");
    put_double(w, "violation_tolerance", BUDGET_TOLERANCE);
    vp_json_key(w, "budgets");
    vp_json_begin_array(w);
    for (int b = 0; b < e->guardrail_count; b++) put_guardrail(w, &e->guardrails[b]);
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static void put_measured_predicted(vp_json_writer *w, const evaluation *e) {
    vp_json_key(w, "measured_predicted_ms");
    vp_json_begin_object(w);
    put_text(w, "predictions", SPLIT_KEYS[e->guardrail_split]);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        vp_json_begin_array(w);
        for (size_t i = 0; i < e->point_counts[part]; i++) {
            vp_json_begin_array(w);
            for (int k = 0; k < 2; k++) vp_json_double(w, e->points[part][i][k]);
            vp_json_end_array(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}
static void put_evaluation(vp_json_writer *w, const evaluation *e) {
    vp_json_key(w, "evaluation");
    vp_json_begin_object(w);
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        vp_json_key(w, ESTIMATE_KIND_KEYS[kind]);
        vp_json_begin_object(w);
        for (int split = 0; split < SPLIT_COUNT; split++) {
            vp_json_key(w, SPLIT_KEYS[split]);
            put_parts(w, e->errors[kind][split]);
        }
        vp_json_end_object(w);
    }
    put_double(w, "run_noise_mape_percent", 100 * e->noise);
    put_guardrails(w, e, SPLIT_KEYS[e->guardrail_split]);
    put_measured_predicted(w, e);
    vp_json_end_object(w);
}
const char *unit_text(const char *name, char out[64]) {
    if (strcmp(name, "1")) snprintf(out, 64, "ms / (%.40s)", name); else snprintf(out, 64, "ms");
    return out;
}
static void put_stage_model(vp_json_writer *w, const estimator *e, int s) {
    const vp_linear *fit = &e->model.fit[s];
    const vp_affine *line = &e->model.affine[s];
    char unit[64];
    if (!e->model.fitted[s]) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rows", (int64_t)fit->rows);
    put_double(w, "degrees_of_freedom", fit->degrees);
    put_double(w, "sigma", fit->sigma);
    put_double(w, "condition", fit->condition);
    vp_json_key(w, "columns");
    vp_json_begin_array(w);
    for (int c = 0; c < fit->columns; c++) {
        const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
        double low = (double)NAN, high = (double)NAN;
        int known = vp_linear_coefficient(fit, c, ESTIMATE_LEVEL, &low, &high) == VP_OK;
        vp_json_begin_object(w);
        put_text(w, "name", name);
        put_text(w, "unit", unit_text(name, unit));
        put_text(w, "state", LINEAR_STATE_KEYS[fit->state[c]]);
        put_double(w, "coefficient", fit->coefficient[c]);
        put_double(w, "standard_error", fit->error[c]);
        put_interval(w, "interval", known, low, high);
        vp_json_key(w, "root");
        vp_json_begin_array(w);
        for (int k = 0; k < fit->columns; k++) vp_json_double(w, fit->root[c * fit->columns + k]);
        vp_json_end_array(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "affine");
    vp_json_begin_object(w);
    put_double(w, "slope", line->slope);
    put_double(w, "offset_ms", line->offset);
    put_double(w, "condition", line->condition);
    put_int(w, "measurements", (int64_t)line->count);
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void put_ranges(vp_json_writer *w, const estimator *e) {
    vp_json_key(w, "ranges");
    vp_json_begin_object(w);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        vp_json_key(w, ESTIMATE_KNOBS[k].name);
        vp_json_begin_object(w);
        put_int(w, "least", e->ranges[k].least);
        put_int(w, "median", e->ranges[k].median);
        put_int(w, "most", e->ranges[k].most);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}
/* The file: {"schema": "vlmprof-estimator-1", ...}. evaluation may be NULL. */
static vp_result put_estimator(vp_json_writer *w, const estimator *e, const evaluation *evaluated) {
    vp_json_begin_object(w);
    put_text(w, "schema", ESTIMATOR_SCHEMA);
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &e->warnings);
    put_text(w, "features", ESTIMATE_KIND_KEYS[e->model.features]);
    put_text(w, "model", e->model_name);
    put_bool(w, "synthetic", e->is_synthetic);
    put_text(w, "device", e->device);
    put_int(w, "num_experts", e->expert_count);
    put_double(w, "level", ESTIMATE_LEVEL);
    vp_json_key(w, "provenance");
    vp_json_raw(w, e->provenance, strlen(e->provenance));
    if (e->recalibration) {
        vp_json_key(w, "recalibration");
        vp_json_raw(w, e->recalibration, strlen(e->recalibration));
    }
    put_ranges(w, e);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_json_key(w, part_name(s));
        put_stage_model(w, e, s);
    }
    vp_json_end_object(w);
    vp_json_key(w, "residual_correlation");
    vp_json_begin_array(w);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_json_begin_array(w);
        for (int k = 0; k < VP_LATENCY_STAGE_COUNT; k++) vp_json_double(w, e->correlation[s][k]);
        vp_json_end_array(w);
    }
    vp_json_end_array(w);
    if (evaluated) put_evaluation(w, evaluated);
    vp_json_end_object(w);
    return vp_json_finish(w);
}
int estimator_write(const char *path, const estimator *e, const evaluation *evaluated) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : copy_text(".", 1);
    text_buffer out = {NULL, 0, 0};
    vp_json_writer w;
    vp_result r;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &out, 1);
    r = put_estimator(&w, e, evaluated);
    text_add_string(&out, "\n");
    code = r == VP_OK ? file_write_whole(folder, slash ? slash + 1 : path, out.data, out.bytes)
        : complain(EXIT_WORK, "%s: %s", path, vp_result_text(r));
    free(out.data);
    free(folder);
    return code;
}

/* ---- reading it back: every byte may be wrong */
typedef struct estimator_reader { const char *path; parsed p; int code; char where[128]; } estimator_reader;
/* The first thing that is wrong is told, at `where`.key; returns a node that is none. */
static uint32_t estimator_fail(estimator_reader *r, uint32_t node, const char *key, const char *what) {
    if (!r->code)
        r->code = complain(EXIT_INPUT, "%s: byte %llu: %s%s%s %s", r->path,
                           (unsigned long long)(node < r->p.json.node_count ? r->p.json.nodes[node].start : 0), r->where, r->where[0] ? "." : "",
                           key, what);
    return VP_JSON_NONE;
}
static uint32_t estimator_member(estimator_reader *r, uint32_t object, const char *key, vp_json_type type) {
    uint32_t node = vp_json_get(&r->p.json, object, key);
    static const char *const kinds[] = {"is missing", "is not of the right type"};
    return node_is(&r->p.json, node, type) ? node : estimator_fail(r, node == VP_JSON_NONE ? object : node, key, kinds[node != VP_JSON_NONE]);
}
static double estimator_node(estimator_reader *r, uint32_t node, const char *key, double least, double most) {
    double value = node_number(&r->p.json, node);
    if (!(value >= least && value <= most)) estimator_fail(r, node, key, "is out of range");
    return value;
}
static double estimator_number(estimator_reader *r, uint32_t object, const char *key, double least, double most) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_NUMBER);
    return node == VP_JSON_NONE ? (double)NAN : estimator_node(r, node, key, least, most);
}
/* null stands for what is not known: NaN */
static double estimator_optional(estimator_reader *r, uint32_t object, const char *key, double least, double most) {
    return node_is(&r->p.json, vp_json_get(&r->p.json, object, key), VP_JSON_NULL) ? (double)NAN : estimator_number(r, object, key, least, most);
}
static int64_t estimator_count(estimator_reader *r, uint32_t object, const char *key, int64_t least, int64_t most) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_NUMBER);
    int64_t value = least;
    if (node != VP_JSON_NONE && (vp_json_to_int(&r->p.json, node, &value) != VP_OK || value < least || value > most))
        estimator_fail(r, node, key, "is no count that makes sense");
    return r->code ? least : value;
}
static char *estimator_text(estimator_reader *r, uint32_t object, const char *key) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_STRING);
    char *text = node == VP_JSON_NONE ? NULL : result_text(&r->p.json, object, key);
    if (node != VP_JSON_NONE && !text) estimator_fail(r, node, key, "is no text");
    return text ? text : copy_text("", 0);
}
/* An object's member, by a list of words: its place in the list. */
static int estimator_word(estimator_reader *r, uint32_t object, const char *key, const char *const *words, int count) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_STRING);
    for (int i = 0; node != VP_JSON_NONE && i < count; i++) if (vp_json_equals(&r->p.json, node, words[i])) return i;
    if (node != VP_JSON_NONE) estimator_fail(r, node, key, "is no word that is known");
    return 0;
}
static void read_stage_column(estimator_reader *r, uint32_t node, estimator *e, int s, int c) {
    const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
    vp_linear *fit = &e->model.fit[s];
    uint32_t named, root, item;
    snprintf(r->where, sizeof r->where, "stages.%s.columns[%d]", part_name(s), c);
    if (!node_is(&r->p.json, node, VP_JSON_OBJECT)) { estimator_fail(r, node, "name", "is missing"); return; }
    named = estimator_member(r, node, "name", VP_JSON_STRING);
    if (named != VP_JSON_NONE && !vp_json_equals(&r->p.json, named, name))
        estimator_fail(r, named, "name", "is not the one that this version computes");
    fit->state[c] = (unsigned char)estimator_word(r, node, "state", LINEAR_STATE_KEYS, 3);
    fit->coefficient[c] = estimator_number(r, node, "coefficient", e->model.features == VP_LATENCY_PHYSICAL ? 0 : -1e30, 1e30);
    fit->error[c] = estimator_optional(r, node, "standard_error", 0, 1e30);
    if (fit->state[c] != VP_LINEAR_USED && !(fit->coefficient[c] <= 0 && fit->coefficient[c] >= 0))
        estimator_fail(r, node, "coefficient", "is not 0 though the column is not used");
    fit->used_columns += fit->state[c] == VP_LINEAR_USED;
    root = estimator_member(r, node, "root", VP_JSON_ARRAY);
    if (root == VP_JSON_NONE) return;
    if (r->p.json.nodes[root].count != (uint32_t)fit->columns) { estimator_fail(r, root, "root", "has not one number a column"); return; }
    item = root + 1;
    for (int k = 0; k < fit->columns; k++, item = r->p.json.nodes[item].end)
        fit->root[c * fit->columns + k] = estimator_node(r, item, "root", -1e30, 1e30);
}
static void read_stage_model(estimator_reader *r, uint32_t object, estimator *e, int s) {
    vp_linear *fit = &e->model.fit[s];
    vp_affine *line = &e->model.affine[s];
    uint32_t columns, affine, item;
    int count = 0;
    while (vp_latency_column_name(e->model.features, (vp_latency_stage)s, count)) count++;
    line->slope = line->condition = 1;
    if (node_is(&r->p.json, vp_json_get(&r->p.json, object, part_name(s)), VP_JSON_NULL)) return;
    object = estimator_member(r, object, part_name(s), VP_JSON_OBJECT);
    if (r->code) return;
    snprintf(r->where, sizeof r->where, "stages.%s", part_name(s));
    e->model.fitted[s] = 1;
    fit->rows = (uint64_t)estimator_count(r, object, "rows", 1, INT64_C(1) << 53);
    fit->degrees = estimator_number(r, object, "degrees_of_freedom", 0, 1e16);
    fit->sigma = estimator_optional(r, object, "sigma", 0, 1e30);
    fit->condition = estimator_optional(r, object, "condition", 1 - 1e-9, 1e300);
    fit->columns = count;
    columns = estimator_member(r, object, "columns", VP_JSON_ARRAY);
    affine = estimator_member(r, object, "affine", VP_JSON_OBJECT);
    if (!r->code && r->p.json.nodes[columns].count != (uint32_t)count) estimator_fail(r, columns, "columns", "has another number of columns");
    if (r->code) return;
    item = columns + 1;
    for (int c = 0; c < count; c++, item = r->p.json.nodes[item].end) read_stage_column(r, item, e, s, c);
    snprintf(r->where, sizeof r->where, "stages.%s", part_name(s));
    if (!(fabs(fit->degrees - ((double)fit->rows - fit->used_columns)) <= 0))
        estimator_fail(r, object, "degrees_of_freedom", "is not rows - used columns");
    snprintf(r->where, sizeof r->where, "stages.%s.affine", part_name(s));
    line->slope = estimator_number(r, affine, "slope", -1e12, 1e12);
    line->offset = estimator_number(r, affine, "offset_ms", -MS_MOST, MS_MOST);
    line->condition = estimator_optional(r, affine, "condition", 1 - 1e-9, 1e300);
    line->count = (size_t)estimator_count(r, affine, "measurements", 0, INT64_C(1) << 40);
}
static void read_ranges(estimator_reader *r, uint32_t object, estimator *e) {
    for (int k = 0; k < ESTIMATE_KNOB_COUNT && !r->code; k++) {
        uint32_t range;
        snprintf(r->where, sizeof r->where, "ranges");
        range = estimator_member(r, object, ESTIMATE_KNOBS[k].name, VP_JSON_OBJECT);
        snprintf(r->where, sizeof r->where, "ranges.%s", ESTIMATE_KNOBS[k].name);
        if (r->code) return;
        e->ranges[k].least = (int32_t)estimator_count(r, range, "least", 0, 1000000000);
        e->ranges[k].median = (int32_t)estimator_count(r, range, "median", e->ranges[k].least, 1000000000);
        e->ranges[k].most = (int32_t)estimator_count(r, range, "most", e->ranges[k].median, 1000000000);
    }
}
static void read_correlations(estimator_reader *r, uint32_t rows, estimator *e) {
    r->where[0] = 0;
    for (uint32_t s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        uint32_t row = vp_json_at(&r->p.json, rows, s);
        for (uint32_t k = 0; k < VP_LATENCY_STAGE_COUNT && !r->code; k++)
            e->correlation[s][k] = estimator_node(r, vp_json_at(&r->p.json, row, k), "residual_correlation", s == k ? 1 : -1, 1);
        for (uint32_t k = 0; k < s && !r->code; k++)
            if (!(fabs(e->correlation[s][k] - e->correlation[k][s]) <= 0)) estimator_fail(r, row, "residual_correlation", "is not symmetric");
    }
}
static void check_duplicates(estimator_reader *r) {
    const vp_json *j = &r->p.json;
    uint32_t *scratch = resize(NULL, j->node_count, sizeof *scratch), duplicate;
    for (uint32_t i = 0; i < j->node_count && !r->code; i++)
        if (node_is(j, i, VP_JSON_OBJECT) && vp_json_has_duplicates(j, i, scratch, j->node_count, &duplicate) == VP_OK && duplicate != VP_JSON_NONE)
            estimator_fail(r, duplicate, "a key", "stands twice");
    free(scratch);
}
static char *estimator_raw(const vp_json *j, uint32_t node) { return copy_text(j->text + j->nodes[node].start, j->nodes[node].bytes); }
static void read_estimator_nodes(estimator_reader *r, estimator *e) {
    const vp_json *j = &r->p.json;
    uint32_t stages, ranges, correlations, provenance, warnings, item, synthetic = vp_json_get(j, 0, "synthetic");
    check_duplicates(r);
    e->model.features = (vp_latency_features)estimator_word(r, 0, "features", ESTIMATE_KIND_KEYS, ESTIMATE_KINDS);
    e->model_name = estimator_text(r, 0, "model");
    e->device = estimator_text(r, 0, "device");
    e->is_synthetic = node_is(j, synthetic, VP_JSON_TRUE);
    if (!e->is_synthetic && !node_is(j, synthetic, VP_JSON_FALSE)) estimator_fail(r, synthetic, "synthetic", "is neither true nor false");
    e->expert_count = estimator_count(r, 0, "num_experts", 1, 1000000);
    provenance = estimator_member(r, 0, "provenance", VP_JSON_OBJECT);
    warnings = estimator_member(r, 0, "warnings", VP_JSON_ARRAY);
    ranges = estimator_member(r, 0, "ranges", VP_JSON_OBJECT);
    stages = estimator_member(r, 0, "stages", VP_JSON_OBJECT);
    correlations = estimator_member(r, 0, "residual_correlation", VP_JSON_ARRAY);
    if (r->code) return;
    e->provenance = estimator_raw(j, provenance);
    item = warnings + 1;
    for (uint32_t i = 0; i < j->nodes[warnings].count && !r->code; i++, item = j->nodes[item].end) {
        char *text = node_text(j, item);
        if (text) text_list_add(&e->warnings, "%s", text); else estimator_fail(r, item, "warnings", "holds what is no text");
        free(text);
    }
    read_ranges(r, ranges, e);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT && !r->code; s++) {
        snprintf(r->where, sizeof r->where, "stages");
        read_stage_model(r, stages, e, s);
    }
    if (!r->code) read_correlations(r, correlations, e);
}
int estimator_read(const char *path, estimator **out) {
    estimator_reader *r = zeroed(1, sizeof *r);
    estimator *e = zeroed(1, sizeof *e);
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    size_t bytes = 0;
    vp_result result = vp_file_read(path, ESTIMATOR_BYTES_MOST, &text, &bytes, &error);
    int code;
    r->path = path;
    if (result != VP_OK) r->code = complain_result(EXIT_INPUT, path, result, &error);
    else if ((result = parse_json(&r->p, text, bytes, &error)) != VP_OK)
        r->code = complain(EXIT_INPUT, "%s: byte %lld: %s", path, (long long)error.offset, error.text[0] ? error.text : vp_result_text(result));
    else if (!node_is(&r->p.json, 0, VP_JSON_OBJECT) || !vp_json_equals(&r->p.json, vp_json_get(&r->p.json, 0, "schema"), ESTIMATOR_SCHEMA))
        r->code = complain(EXIT_INPUT, "%s is no model of vlmprof fit: its schema is not %s", path, ESTIMATOR_SCHEMA);
    else read_estimator_nodes(r, e);
    code = r->code;
    if (code) estimator_free(e); else *out = e;
    free(r->p.nodes);
    free(r);
    free(text);
    return code;
}

/* ---- in words */
void error_row(text_list *table, const char *first, const char *second, const vp_linear_errors *e) {
    text_list_add(table, "%s", first);
    if (second) text_list_add(table, "%s", second);
    text_list_add(table, "%s", e->count ? figure_number(e->mae).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.2f", 100 * e->mape).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.4f", e->r2).text : "-");
    text_list_add(table, "%s", e->count ? figure_number(e->p95_absolute).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.3f", e->bias).text : "-");
    text_list_add(table, "%zu", e->count);
}
void write_guardrails(document *d, const evaluation *e, const char *predictions) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Guardrail: only requests predicted to hold a budget are let through (%s)", predictions);
    document_text(d, BLOCK_LINE, "budgets are shares of %.3f ms, the P95 of T_total; a violation takes more than %.1f times the budget",
                  e->reference_ms, BUDGET_TOLERANCE);
    table = document_table(d, "share|budget ms|let through|violations %|false accepts %|false rejects %");
    for (int b = 0; b < e->guardrail_count; b++) {
        const vp_guardrail *g = &e->guardrails[b];
        text_list_add(table, "%s", b < BUDGET_COUNT ? figure_of("%.2f", BUDGET_SHARES[b]).text : "given");
        text_list_add(table, "%s", figure_number(g->budget).text);
        text_list_add(table, "%zu of %zu", g->accepted, g->count);
        text_list_add(table, "%s", figure_percent(g->violation_rate).text);
        text_list_add(table, "%s", figure_percent(g->false_accept_rate).text);
        text_list_add(table, "%s", figure_percent(g->false_reject_rate).text);
    }
    document_text(d, BLOCK_LINE, "violations: of those let through; false accepts: of those over the budget; false rejects: of those within it");
}
int estimator_print(const estimator *e, const evaluation *v) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    if (put_estimator(&w, e, v) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return 0;
}
