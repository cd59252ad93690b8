/* report_data.c: the report as CSV and JSON. */
#include "report/report_data.h"

#include "base/document.h"
#include "base/json.h"
#include "base/metrics.h"
#include "report/result_read.h"
#include "vlmprof_analysis.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdio.h>

/* ---- CSV: a row a configuration */
void report_csv_heads(text_buffer *out) {
    text_add_string(out, "task,tier,target_vision_tokens,top_k,num_active_blocks,num_samples");
    for (int m = 0; m < METRIC_STAGE; m++) {
        static const char *const suffixes[] = {"mean", "p50", "p50_low", "p50_high", "p95", "p99"};
        for (int k = 0; k < 6; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", METRIC_KEYS[m], suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        static const char *const suffixes[] = {"ms", "share", "tflops", "gbs"};
        for (int k = 0; k < 4; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", vp_stage_name((vp_stage)s), suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int s = 0; s < 2; s++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s_share", vp_stage_name((vp_stage)PART_STAGES[s]), vp_part_name((vp_part)part));
            text_add_string(out, head);
        }
    text_add_string(out, ",idle_share,accuracy,accuracy_low,accuracy_high,latency,latency_low,latency_high,front,membership,path\n");
}
void report_csv_row(text_buffer *out, const report *p, size_t file) {
    const decomposition *c = &p->items[file];
    const result_file *f = c->file;
    const tradeoff *t = p->tradeoffs;
    size_t config = 0;
    while (file >= t->group->first + t->group->count) t++;
    while (config < t->config_count && t->group->paired[config] != file) config++;
    csv_text(out, f->task);
    text_add_string(out, ",");
    csv_text(out, f->tier ? f->tier : "");
    csv_number(out, f->target_tokens >= 0 ? (double)f->target_tokens : (double)NAN);
    csv_number(out, (double)f->top_k);
    csv_number(out, (double)f->block_count);
    csv_number(out, (double)f->count);
    for (int m = 0; m < METRIC_STAGE; m++) {
        double values[6];
        values[0] = c->mean[m]; values[1] = c->p50[m].value; values[2] = c->p50[m].low; values[3] = c->p50[m].high; values[4] = c->p95[m];
        values[5] = c->p99[m];
        for (int k = 0; k < 6; k++) csv_number(out, values[k]);
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        csv_number(out, c->stages[s].mean);
        csv_number(out, c->stages[s].share);
        csv_number(out, c->stages[s].tflops);
        csv_number(out, c->stages[s].gbs);
    }
    for (int s = 0; s < 2; s++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) csv_number(out, c->stages[PART_STAGES[s]].parts[part]);
    csv_number(out, c->idle_share);
    if (config == t->config_count || t->reason[0]) {
        csv_number(out, f->accuracy);
        text_add_string(out, ",,,,,,,");
    } else {
        const vp_bootstrap_point *b = &t->points[config];
        csv_number(out, b->accuracy);
        csv_number(out, b->accuracy_low);
        csv_number(out, b->accuracy_high);
        csv_number(out, b->latency);
        csv_number(out, b->latency_low);
        csv_number(out, b->latency_high);
        csv_number(out, is_listed(t->front, t->front_count, config));
        csv_number(out, b->membership);
    }
    text_add_string(out, ",");
    csv_text(out, f->path);
    text_add_string(out, "\n");
}

/* ---- JSON */
static void put_stage_cost(vp_json_writer *w, const stage_cost *c) {
    vp_json_begin_object(w);
    put_double(w, "mean_ms", c->mean);
    put_double(w, "share", c->share);
    put_double(w, "p50_ms", c->p50.value);
    put_range(w, "p50_interval", c->p50.low, c->p50.high);
    put_double(w, "flops", c->flops);
    put_double(w, "bytes", c->bytes);
    put_double(w, "launches", c->launches);
    put_double(w, "tflops_per_s", c->tflops);
    put_double(w, "gb_per_s", c->gbs);
    put_double(w, "host_share", c->host_share);
    put_double(w, "idle_share", c->idle_share);
    vp_json_key(w, "parts"); /* null: kernels were not timed */
    if (stage_has_parts(c)) {
        vp_json_begin_object(w);
        for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(c->parts[part])) put_double(w, vp_part_name((vp_part)part), c->parts[part]);
        vp_json_end_object(w);
    } else vp_json_null(w);
    put_text(w, "bound", c->limit == BOUND_NONE ? NULL : BOUND_NAMES[c->limit]);
    vp_json_end_object(w);
}
static void put_decomposition(vp_json_writer *w, const decomposition *d) {
    vp_json_begin_object(w);
    put_setting_of(w, d->file);
    put_text(w, "path", d->file->path);
    put_int(w, "num_samples", (int64_t)d->file->count);
    put_int(w, "num_failed", d->file->failed_count);
    vp_json_key(w, "latency_ms");
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE; m++) {
        vp_json_key(w, METRIC_KEYS[m]);
        vp_json_begin_object(w);
        put_int(w, "count", (int64_t)d->counts[m]);
        put_double(w, "mean", d->mean[m]);
        put_double(w, "p50", d->p50[m].value);
        put_range(w, "p50_interval", d->p50[m].low, d->p50[m].high);
        put_double(w, "p95", d->p95[m]);
        put_double(w, "p99", d->p99[m]);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    put_double(w, "closure", d->closure);
    put_double(w, "unaccounted_share", d->unaccounted_share);
    put_double(w, "idle_share", d->idle_share);
    put_double(w, "run_spread", d->run_spread);
    put_double(w, "tool_cost_share", d->file->cost_share);
    put_range(w, "tool_cost_share_interval", d->file->cost_low, d->file->cost_high);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!isfinite(d->stages[s].mean)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)s));
        put_stage_cost(w, &d->stages[s]);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void put_curve(vp_json_writer *w, const report *p, size_t i) {
    const curve *c = &p->curves[i];
    vp_json_begin_object(w);
    put_text(w, "name", c->name);
    put_text(w, "dataset_name", p->r->files[p->r->groups[p->curve_group[i]].first].task);
    put_text(w, "of", c->label);
    put_text(w, "x", c->x_name);
    put_text(w, "y", c->y_name);
    put_text(w, "unit", c->unit);
    put_double(w, "slope", c->slope.value);
    put_range(w, "slope_interval", c->slope.low, c->slope.high);
    put_double(w, "intercept_ms", c->intercept);
    put_double(w, "r2", c->r2);
    put_int(w, "count", (int64_t)c->count);
    vp_json_key(w, "bins");
    vp_json_begin_array(w);
    for (size_t b = 0; b < c->bin_count; b++) {
        vp_json_begin_object(w);
        put_double(w, "x", c->bins[b].x);
        put_double(w, "p50_ms", c->bins[b].y.value);
        put_range(w, "p50_interval", c->bins[b].y.low, c->bins[b].y.high);
        put_int(w, "count", (int64_t)c->bins[b].count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
}
void report_put_e1(vp_json_writer *w, const report *p) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-e1-1");
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &p->warnings);
    put_list(w, "findings", &p->findings);
    put_double(w, "peak_tflops", p->peak_tflops > 0 ? p->peak_tflops : (double)NAN);
    put_double(w, "peak_gbs", p->peak_gbs > 0 ? p->peak_gbs : (double)NAN);
    put_bool(w, "peaks_are_given", p->peaks_are_given);
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->r->count; i++) put_decomposition(w, &p->items[i]);
    vp_json_end_array(w);
    vp_json_key(w, "curves");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->curve_count; i++) put_curve(w, p, i);
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static void put_points(vp_json_writer *w, const report *p, const tradeoff *t) {
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->config_count; i++) {
        const vp_bootstrap_point *b = &t->points[i];
        vp_json_begin_object(w);
        put_setting_of(w, &p->r->files[t->group->paired[i]]);
        put_double(w, "latency_ms", b->latency);
        put_range(w, "latency_interval", b->latency_low, b->latency_high);
        put_double(w, "accuracy", b->accuracy);
        put_range(w, "accuracy_interval", b->accuracy_low, b->accuracy_high);
        put_double(w, "membership", b->membership);
        put_bool(w, "on_front", is_listed(t->front, t->front_count, i));
        put_bool(w, "on_epsilon_front", is_listed(t->kept, t->kept_count, i));
        put_int(w, "equal_points", (int64_t)equal_points(t, i));
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_effects(vp_json_writer *w, const report *p, const tradeoff *t) {
    static const char *const values[] = {"latency", "accuracy"}, *const kinds[] = {"mean", "main", "step", "interaction"};
    for (int v = 0; v < 2; v++) {
        char key[32];
        snprintf(key, sizeof key, "%s_effects", values[v]);
        vp_json_key(w, key);
        vp_json_begin_array(w);
        for (size_t i = 0; t->effects[v] && i < t->effect_count; i++) {
            const vp_effect *e = &t->effects[v][i];
            char name[160], level[48];
            vp_json_begin_object(w);
            effect_name(t, p->r, e, name);
            put_text(w, "kind", kinds[e->kind]);
            put_text(w, "name", name);
            put_text(w, "knob", e->knob_a < 0 ? NULL : KNOB_KEYS[t->knob_of[e->knob_a]]);
            put_text(w, "level", e->knob_a < 0 ? NULL : report_level_text(t, p->r, t->knob_of[e->knob_a], e->level_a, level));
            if (e->kind == VP_EFFECT_PAIR) {
                put_text(w, "second_knob", KNOB_KEYS[t->knob_of[e->knob_b]]);
                put_text(w, "second_level", report_level_text(t, p->r, t->knob_of[e->knob_b], e->level_b, level));
            }
            put_double(w, "estimate", e->estimate);
            put_range(w, "interval", e->low, e->high);
            put_double(w, "p", e->p);
            vp_json_end_object(w);
        }
        vp_json_end_array(w);
    }
}
static void put_shares(vp_json_writer *w, const tradeoff *t) {
    vp_json_key(w, "variance_shares");
    vp_json_begin_array(w);
    for (int32_t a = 0, term = 0, knobs = t->knobs.knob_count; t->order && a <= knobs + (t->order == 2 ? knobs * (knobs - 1) / 2 : 0); a++, term++) {
        char name[80] = "left";
        int32_t pair = a - knobs, first = 0;
        if (pair < 0) snprintf(name, sizeof name, "%s", KNOB_KEYS[t->knob_of[a]]);
        else if (t->order == 2 && pair < knobs * (knobs - 1) / 2) {
            while (pair >= knobs - 1 - first) pair -= knobs - 1 - first++;
            snprintf(name, sizeof name, "%s x %s", KNOB_KEYS[t->knob_of[first]], KNOB_KEYS[t->knob_of[first + 1 + pair]]);
        }
        vp_json_begin_object(w);
        put_text(w, "term", name);
        put_double(w, "latency", t->shares[0] ? t->shares[0][term] : (double)NAN);
        put_double(w, "accuracy", t->shares[1] ? t->shares[1][term] : (double)NAN);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_knob_fronts(vp_json_writer *w, const report *p, const tradeoff *t) {
    vp_json_key(w, "fronts_with_knob_held");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->knob_front_count; i++) {
        const knob_front *f = &t->fronts[i];
        char level[48];
        vp_json_begin_object(w);
        put_text(w, "knob", KNOB_KEYS[f->knob]);
        put_text(w, "level", report_level_text(t, p->r, f->knob, f->level, level));
        put_double(w, "area", f->area);
        vp_json_key(w, "front"); /* places in configurations */
        vp_json_begin_array(w);
        for (size_t k = 0; k < f->count; k++) vp_json_int(w, f->front[k]);
        vp_json_end_array(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_gains(vp_json_writer *w, const tradeoff *t) {
    vp_json_key(w, "marginal_gains");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->gain_count; i++) {
        const knob_gain *g = &t->gains[i];
        vp_json_begin_object(w);
        put_int(w, "from", (int64_t)g->from);
        put_int(w, "to", (int64_t)g->to);
        put_text(w, "knob", KNOB_KEYS[g->knob]);
        put_double(w, "latency_ms", g->gain.latency.mean);
        put_range(w, "latency_interval", g->gain.latency.low, g->gain.latency.high);
        put_double(w, "accuracy", g->gain.accuracy.mean);
        put_range(w, "accuracy_interval", g->gain.accuracy.low, g->gain.accuracy.high);
        put_double(w, "accuracy_per_ms", g->gain.gain);
        put_range(w, "accuracy_per_ms_interval", g->gain.low, g->gain.high);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_tradeoff(vp_json_writer *w, const report *p, const tradeoff *t) {
    const uint32_t *fronts[2];
    size_t counts[2];
    vp_json_begin_object(w);
    put_text(w, "dataset_name", p->r->files[t->group->first].task);
    put_text(w, "reason", t->reason[0] ? t->reason : NULL);
    put_bool(w, "corpus_metric", t->is_corpus);
    put_int(w, "num_samples", (int64_t)t->sample_count);
    if (!t->reason[0]) {
        fronts[0] = t->front; fronts[1] = t->kept;
        counts[0] = t->front_count; counts[1] = t->kept_count;
        put_double(w, "epsilon_ms", t->epsilon_latency);
        put_double(w, "area", t->area);
        put_points(w, p, t);
        for (int which = 0; which < 2; which++) {
            vp_json_key(w, which ? "epsilon_front" : "front"); /* places in configurations */
            vp_json_begin_array(w);
            for (size_t i = 0; i < counts[which]; i++) vp_json_int(w, fronts[which][i]);
            vp_json_end_array(w);
        }
        put_shares(w, t);
        put_effects(w, p, t);
        put_knob_fronts(w, p, t);
        put_gains(w, t);
    }
    vp_json_end_object(w);
}
void report_put_e2(vp_json_writer *w, const report *p) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-e2-1");
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &p->warnings);
    put_text(w, "latency", METRIC_KEYS[p->settings.axis]);
    put_text(w, "percentile", percentile_text(p->settings.percentile));
    put_int(w, "resamples", (int64_t)p->settings.resamples);
    put_int(w, "seed", p->settings.seed);
    put_double(w, "epsilon_accuracy", p->settings.epsilon_accuracy);
    vp_json_key(w, "datasets");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->r->group_count; i++) put_tradeoff(w, p, &p->tradeoffs[i]);
    vp_json_end_array(w);
    vp_json_end_object(w);
}
