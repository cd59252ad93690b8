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

/* ---- CSV: a row for each configuration */
/* Truth: the rows name the knob: all do, or it is set in one of the files and, where only that counts, varies. */
static int has_knob(const struct report *report, int knob) {
    const struct results *results = report->results;
    if (KNOBS[knob].always & KNOB_IN_CSV) return 1;
    if (KNOBS[knob].only_varied) return results->count && (results->files[0].told_apart >> knob & 1);
    for (size_t i = 0; i < results->count && KNOBS[knob].of != KNOB_OF_SWEEP; i++)
        if (knob_is_set(&results->files[i].knobs, knob)) return 1;
    return 0;
}
static int is_always(int knob) { return (KNOBS[knob].always & KNOB_IN_CSV) != 0; }
/* The heads of the knobs that all reports name, or of the others. */
static void knob_heads(struct text_buffer *out, const struct report *report, int always) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (is_always(knob) != always || !has_knob(report, knob)) continue;
        if (knob == KNOB_VARIANT) text_add_string(out, ",variant");
        text_add_string(out, ",");
        text_add_string(out, KNOBS[knob].key);
        if (!KNOBS[knob].number_key) continue;
        text_add_string(out, ",");
        text_add_string(out, KNOBS[knob].number_key);
    }
}
static void csv_field(struct text_buffer *out, const char *text) {
    text_add_string(out, ",");
    csv_text(out, text ? text : "");
}
static void knob_fields(struct text_buffer *out, const struct report *report, const struct result_file *file,
                        int always) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const int is_set = knob_is_set(&file->knobs, knob) && !(file->is_served && KNOBS[knob].of == KNOB_OF_ENGINE);
        const double number = is_set ? (double)knob_number(&file->knobs, knob) : (double)NAN;
        if (is_always(knob) != always || !has_knob(report, knob)) continue;
        if (knob == KNOB_VARIANT) csv_field(out, file->variant);
        if (KNOBS[knob].type == KNOB_IS_NUMBER) csv_number(out, number);
        else csv_field(out, is_set ? knob_text(&file->knobs, knob) : NULL);
        if (KNOBS[knob].number_key) csv_number(out, number);
    }
}
/* Truth: the columns of this metric are left out, because no file has it. */
static int is_metric_unknown(const struct report *report, int metric) {
    for (size_t i = 0; i < report->results->count; i++)
        if (!is_left_out(metric, report->items[i].mean[metric])) return 0;
    return 1;
}
void report_csv_heads(struct text_buffer *out, const struct report *report) {
    text_add_string(out, "task");
    knob_heads(out, report, 1);
    text_add_string(out, ",num_samples");
    knob_heads(out, report, 0);
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        if (is_metric_unknown(report, metric)) continue;
        static const char *const suffixes[] = {"mean", "p50", "p50_low", "p50_high", "p95", "p99"};
        for (int k = 0; k < 6; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", METRIC_KEYS[metric], suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        static const char *const suffixes[] = {"ms", "share", "tflops", "gbs"};
        for (int k = 0; k < 4; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", vp_stage_name((vp_stage)stage), suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int which = 0; which < PART_STAGE_COUNT; which++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s_share", vp_stage_name((vp_stage)PART_STAGES[which]),
                     vp_part_name((vp_part)part));
            text_add_string(out, head);
        }
    text_add_string(
        out,
        ",idle_share,accuracy,accuracy_low,accuracy_high,latency,latency_low,latency_high,front,membership,path\n");
}
void report_csv_row(struct text_buffer *out, const struct report *report, size_t file_index) {
    const struct decomposition *decomposition = &report->items[file_index];
    const struct result_file *file = decomposition->file;
    const struct tradeoff *tradeoff = report->tradeoffs;
    size_t config = 0;
    while (file_index >= tradeoff->group->first + tradeoff->group->count) tradeoff++;
    while (config < tradeoff->config_count && tradeoff->group->paired[config] != file_index) config++;
    csv_text(out, file->task);
    knob_fields(out, report, file, 1);
    csv_number(out, (double)file->count);
    knob_fields(out, report, file, 0);
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        if (is_metric_unknown(report, metric)) continue;
        double values[6];
        values[0] = decomposition->mean[metric];
        values[1] = decomposition->p50[metric].value;
        values[2] = decomposition->p50[metric].low;
        values[3] = decomposition->p50[metric].high;
        values[4] = decomposition->p95[metric];
        values[5] = decomposition->p99[metric];
        for (int k = 0; k < 6; k++) csv_number(out, values[k]);
    }
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        csv_number(out, decomposition->stages[stage].mean);
        csv_number(out, decomposition->stages[stage].share);
        csv_number(out, decomposition->stages[stage].tflops);
        csv_number(out, decomposition->stages[stage].gbs);
    }
    for (int which = 0; which < PART_STAGE_COUNT; which++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++)
            csv_number(out, decomposition->stages[PART_STAGES[which]].parts[part]);
    csv_number(out, decomposition->idle_share);
    if (config == tradeoff->config_count || tradeoff->reason[0]) {
        const vp_estimate accuracy = file_accuracy(file);
        csv_number(out, accuracy.value);
        csv_number(out, accuracy.low);
        csv_number(out, accuracy.high);
        text_add_string(out, ",,,,,");
    } else {
        const vp_bootstrap_point *point = &tradeoff->points[config];
        csv_number(out, point->accuracy);
        csv_number(out, point->accuracy_low);
        csv_number(out, point->accuracy_high);
        csv_number(out, point->latency);
        csv_number(out, point->latency_low);
        csv_number(out, point->latency_high);
        csv_number(out, is_listed(tradeoff->front, tradeoff->front_count, config));
        csv_number(out, point->membership);
    }
    text_add_string(out, ",");
    csv_text(out, file->path);
    text_add_string(out, "\n");
}

/* ---- JSON */
static void put_stage_cost(vp_json_writer *writer, const struct stage_cost *cost) {
    PUT(writer, KEY_OBJECT(NULL), KEY("mean_ms", cost->mean), KEY("share", cost->share), KEY("p50_ms", cost->p50.value),
        KEY_RANGE("p50_interval", cost->p50.low, cost->p50.high), KEY("flops", cost->flops), KEY("bytes", cost->bytes),
        KEY("launches", cost->launches), KEY("tflops_per_s", cost->tflops), KEY("gb_per_s", cost->gbs),
        KEY("host_share", cost->host_share), KEY("idle_share", cost->idle_share));
    vp_json_key(writer, "parts"); /* null: kernels were not timed */
    if (stage_has_parts(cost)) {
        vp_json_begin_object(writer);
        for (int part = 0; part < VP_PART_COUNT; part++)
            if (isfinite(cost->parts[part])) put_double(writer, vp_part_name((vp_part)part), cost->parts[part]);
        vp_json_end_object(writer);
    } else vp_json_null(writer);
    PUT(writer, KEY("bound", cost->limit == BOUND_NONE ? NULL : BOUND_NAMES[cost->limit]), END_OBJECT);
}
/* What the images cost by their twins; null without them. */
static void put_outside(vp_json_writer *writer, const struct outside *outside) {
    vp_json_key(writer, "T_image_outside");
    if (outside->pairs) {
        PUT(writer, KEY_OBJECT(NULL), KEY("ms", outside->ms), KEY_RANGE("interval", outside->low, outside->high),
            KEY("level", outside->level), KEY("method", outside->adjusted ? "adjusted" : "exact"),
            KEY("pairs", outside->pairs), KEY("pairs_left_out", outside->left_out),
            KEY("TTFT_image", outside->image_ms), KEY("TTFT_text", outside->text_ms),
            KEY("floor_ms", outside->floor_ms), KEY("server_prompt_difference_ms", outside->server_ms), END_OBJECT);
    } else vp_json_null(writer);
}
static void put_decomposition(vp_json_writer *writer, const struct decomposition *decomposition) {
    vp_json_begin_object(writer);
    put_setting_of(writer, decomposition->file);
    PUT(writer, KEY("path", decomposition->file->path), KEY("num_samples", decomposition->file->count),
        KEY("num_failed", decomposition->file->failed_count), KEY_OBJECT("latency_ms"));
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        if (is_left_out(metric, decomposition->mean[metric])) continue;
        PUT(writer, KEY_OBJECT(METRIC_KEYS[metric]), KEY("count", decomposition->counts[metric]),
            KEY("mean", decomposition->mean[metric]), KEY("p50", decomposition->p50[metric].value),
            KEY_RANGE("p50_interval", decomposition->p50[metric].low, decomposition->p50[metric].high),
            KEY("p95", decomposition->p95[metric]), KEY("p99", decomposition->p99[metric]), END_OBJECT);
    }
    PUT(writer, END_OBJECT, KEY("closure", decomposition->closure),
        KEY("unaccounted_share", decomposition->unaccounted_share), KEY("idle_share", decomposition->idle_share),
        KEY("run_spread", decomposition->run_spread));
    if (decomposition->file->is_served) put_outside(writer, &decomposition->file->outside);
    PUT(writer, KEY("tool_cost_share", decomposition->file->cost_share),
        KEY_RANGE("tool_cost_share_interval", decomposition->file->cost_low, decomposition->file->cost_high),
        KEY_OBJECT("stages"));
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        if (!isfinite(decomposition->stages[stage].mean)) continue;
        vp_json_key(writer, vp_stage_name((vp_stage)stage));
        put_stage_cost(writer, &decomposition->stages[stage]);
    }
    PUT(writer, END_OBJECT, END_OBJECT);
}
static void put_curve(vp_json_writer *writer, const struct report *report, size_t index) {
    const struct curve *curve = &report->curves.items[index];
    PUT(writer, KEY_OBJECT(NULL), KEY("name", curve->name),
        KEY("dataset_name", report->results->files[report->results->groups[curve->group].first].task),
        KEY("of", curve->label), KEY("x", curve->x_name), KEY("y", curve->y_name), KEY("unit", curve->unit),
        KEY("slope", curve->slope.value), KEY_RANGE("slope_interval", curve->slope.low, curve->slope.high),
        KEY("intercept_ms", curve->intercept.value),
        KEY_RANGE("intercept_interval", curve->intercept.low, curve->intercept.high), KEY("r2", curve->r2),
        KEY("count", curve->count), KEY_ARRAY("bins"));
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("x", curve->bins[bin].x), KEY("p50_ms", curve->bins[bin].p50.value),
            KEY_RANGE("p50_interval", curve->bins[bin].p50.low, curve->bins[bin].p50.high),
            KEY("mean_x", curve->bins[bin].mean_x), KEY("mean_ms", curve->bins[bin].mean.value),
            KEY_RANGE("mean_interval", curve->bins[bin].mean.low, curve->bins[bin].mean.high),
            KEY("count", curve->bins[bin].count), END_OBJECT);
    }
    PUT(writer, END_ARRAY, END_OBJECT);
}
void report_put_e1(vp_json_writer *writer, const struct report *report) {
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-e1-1"), KEY("version", VLMPROF_VERSION),
        KEY_TEXTS("warnings", &report->warnings), KEY_TEXTS("findings", &report->findings),
        KEY("peak_tflops", report->peak_tflops > 0 ? report->peak_tflops : (double)NAN),
        KEY("peak_gbs", report->peak_gbs > 0 ? report->peak_gbs : (double)NAN),
        KEY_BOOL("peaks_are_given", report->peaks_are_given), KEY_ARRAY("configurations"));
    for (size_t i = 0; i < report->results->count; i++) put_decomposition(writer, &report->items[i]);
    PUT(writer, END_ARRAY, KEY_ARRAY("curves"));
    for (size_t i = 0; i < report->curves.count; i++) put_curve(writer, report, i);
    PUT(writer, END_ARRAY, END_OBJECT);
}
static void put_points(vp_json_writer *writer, const struct report *report, const struct tradeoff *tradeoff) {
    vp_json_key(writer, "configurations");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const vp_bootstrap_point *point = &tradeoff->points[i];
        vp_json_begin_object(writer);
        put_setting_of(writer, &report->results->files[tradeoff->group->paired[i]]);
        PUT(writer, KEY("latency_ms", point->latency),
            KEY_RANGE("latency_interval", point->latency_low, point->latency_high), KEY("accuracy", point->accuracy),
            KEY_RANGE("accuracy_interval", point->accuracy_low, point->accuracy_high),
            KEY("membership", point->membership),
            KEY_BOOL("on_front", is_listed(tradeoff->front, tradeoff->front_count, i)),
            KEY_BOOL("on_epsilon_front", is_listed(tradeoff->kept, tradeoff->kept_count, i)),
            KEY("equal_points", (int64_t)equal_points(tradeoff, i)), END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_effects(vp_json_writer *writer, const struct report *report, const struct tradeoff *tradeoff) {
    static const char *const values[] = {"latency", "accuracy"}, *const kinds[] = {"mean", "main", "step",
                                                                                   "interaction"};
    for (int which = 0; which < 2; which++) {
        char key[32];
        snprintf(key, sizeof key, "%s_effects", values[which]);
        vp_json_key(writer, key);
        vp_json_begin_array(writer);
        for (size_t i = 0; tradeoff->effects[which] && i < tradeoff->effect_count; i++) {
            const vp_effect *effect = &tradeoff->effects[which][i];
            char name[2 * KNOB_TEXT_BYTES + 60], level[KNOB_TEXT_BYTES];
            vp_json_begin_object(writer);
            effect_name(tradeoff, report->results, effect, name);
            PUT(writer, KEY("kind", kinds[effect->kind]), KEY("name", name),
                KEY("knob", effect->knob_a < 0 ? NULL : KNOBS[tradeoff->knob_of[effect->knob_a]].axis_key),
                KEY("level", effect->knob_a < 0 ? NULL
                                                : report_level_text(tradeoff, report->results,
                                                                    tradeoff->knob_of[effect->knob_a],
                                                                    effect->level_a, level)));
            if (effect->kind == VP_EFFECT_PAIR) {
                PUT(writer, KEY("second_knob", KNOBS[tradeoff->knob_of[effect->knob_b]].axis_key),
                    KEY("second_level", report_level_text(tradeoff, report->results, tradeoff->knob_of[effect->knob_b],
                                                          effect->level_b, level)));
            }
            PUT(writer, KEY("estimate", effect->estimate), KEY_RANGE("interval", effect->low, effect->high),
                KEY("p", effect->p), END_OBJECT);
        }
        vp_json_end_array(writer);
    }
}
static void put_shares(vp_json_writer *writer, const struct tradeoff *tradeoff) {
    vp_json_key(writer, "variance_shares");
    vp_json_begin_array(writer);
    for (int32_t row = 0, term = 0, knobs = tradeoff->knobs.knob_count;
         tradeoff->order && row <= knobs + (tradeoff->order == 2 ? knobs * (knobs - 1) / 2 : 0); row++, term++) {
        char name[80] = "left";
        int32_t pair = row - knobs, first = 0;
        if (pair < 0) snprintf(name, sizeof name, "%s", KNOBS[tradeoff->knob_of[row]].axis_key);
        else if (tradeoff->order == 2 && pair < knobs * (knobs - 1) / 2) {
            while (pair >= knobs - 1 - first) pair -= knobs - 1 - first++;
            snprintf(name, sizeof name, "%s x %s", KNOBS[tradeoff->knob_of[first]].axis_key,
                     KNOBS[tradeoff->knob_of[first + 1 + pair]].axis_key);
        }
        PUT(writer, KEY_OBJECT(NULL), KEY("term", name),
            KEY("latency", tradeoff->shares[0] ? tradeoff->shares[0][term] : (double)NAN),
            KEY("accuracy", tradeoff->shares[1] ? tradeoff->shares[1][term] : (double)NAN), END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_knob_fronts(vp_json_writer *writer, const struct report *report, const struct tradeoff *tradeoff) {
    vp_json_key(writer, "fronts_with_knob_held");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < tradeoff->knob_front_count; i++) {
        const struct knob_front *front = &tradeoff->fronts[i];
        char level[KNOB_TEXT_BYTES];
        PUT(writer, KEY_OBJECT(NULL), KEY("knob", KNOBS[front->knob].axis_key),
            KEY("level", report_level_text(tradeoff, report->results, front->knob, front->level, level)),
            KEY("area", front->area), /* places in configurations */ KEY_ARRAY("front"));
        for (size_t k = 0; k < front->count; k++) vp_json_int(writer, front->front[k]);
        PUT(writer, END_ARRAY, END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_gains(vp_json_writer *writer, const struct tradeoff *tradeoff) {
    vp_json_key(writer, "marginal_gains");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < tradeoff->gain_count; i++) {
        const struct knob_gain *gain = &tradeoff->gains[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("from", gain->from), KEY("to", gain->to),
            KEY("knob", KNOBS[gain->knob].axis_key), KEY("latency_ms", gain->gain.latency.mean),
            KEY_RANGE("latency_interval", gain->gain.latency.low, gain->gain.latency.high),
            KEY("accuracy", gain->gain.accuracy.mean),
            KEY_RANGE("accuracy_interval", gain->gain.accuracy.low, gain->gain.accuracy.high),
            KEY("accuracy_per_ms", gain->gain.gain),
            KEY_RANGE("accuracy_per_ms_interval", gain->gain.low, gain->gain.high), END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_tradeoff(vp_json_writer *writer, const struct report *report, const struct tradeoff *tradeoff) {
    const uint32_t *fronts[2];
    size_t counts[2];
    PUT(writer, KEY_OBJECT(NULL), KEY("dataset_name", report->results->files[tradeoff->group->first].task),
        KEY("reason", tradeoff->reason[0] ? tradeoff->reason : NULL), KEY_BOOL("corpus_metric", tradeoff->is_corpus),
        KEY("num_samples", tradeoff->sample_count));
    if (!tradeoff->reason[0]) {
        fronts[0] = tradeoff->front; fronts[1] = tradeoff->kept;
        counts[0] = tradeoff->front_count; counts[1] = tradeoff->kept_count;
        PUT(writer, KEY("epsilon_ms", tradeoff->epsilon_latency), KEY("area", tradeoff->area));
        put_points(writer, report, tradeoff);
        for (int which = 0; which < 2; which++) {
            vp_json_key(writer, which ? "epsilon_front" : "front"); /* places in configurations */
            vp_json_begin_array(writer);
            for (size_t i = 0; i < counts[which]; i++) vp_json_int(writer, fronts[which][i]);
            vp_json_end_array(writer);
        }
        put_shares(writer, tradeoff);
        put_effects(writer, report, tradeoff);
        put_knob_fronts(writer, report, tradeoff);
        put_gains(writer, tradeoff);
    }
    vp_json_end_object(writer);
}
void report_put_e2(vp_json_writer *writer, const struct report *report) {
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-e2-1"), KEY("version", VLMPROF_VERSION),
        KEY_TEXTS("warnings", &report->warnings), KEY("latency", METRIC_KEYS[report->settings.axis]),
        KEY("percentile", percentile_text(report->settings.percentile)), KEY("resamples", report->settings.resamples),
        KEY("seed", report->settings.seed), KEY("epsilon_accuracy", report->settings.epsilon_accuracy),
        KEY_ARRAY("datasets"));
    for (size_t i = 0; i < report->results->group_count; i++) put_tradeoff(writer, report, &report->tradeoffs[i]);
    PUT(writer, END_ARRAY, END_OBJECT);
}
