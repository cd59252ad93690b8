/* report_data.c: the report as CSV and JSON. */
#include "report/report_text.h"

#include "base/document.h"
#include "base/json.h"
#include "base/table.h"
#include "results/metrics.h"
#include "results/result_read.h"
#include "vlmprof_analysis.h"
#include "vlmprof_stages.h"

#include <math.h>

/* ---- CSV: one row per configuration */
/* Returns 1 if the CSV needs a column for the knob. Some knobs are always listed, some if any file sets them, some only
 * if the files differ. */
static int has_knob(const struct report *report, int knob) {
    const struct results *results = report->results;
    if (KNOBS[knob].always & KNOB_IN_CSV) return 1;
    if (KNOBS[knob].only_varied && KNOBS[knob].of != KNOB_OF_SERVERS)
        return results->count && (results->files[0].varied >> knob & 1);
    for (size_t i = 0; i < results->count && KNOBS[knob].of != KNOB_OF_SWEEP; i++)
        if (knob_is_set(&results->files[i].knobs, knob))
            return 1;
    return 0;
}
/* Writes the header line, or the line of a configuration: the same calls name and fill the fields. */
struct csv_line { struct text_buffer *out; int is_head, fields; };
static void csv_begin(struct csv_line *line, const char *key, const char *ending) {
    if (line->fields++) text_add_string(line->out, ",");
    if (!line->is_head) return;
    text_add_string(line->out, key);
    text_add_string(line->out, ending);
}
static void csv_texts(struct csv_line *line, const char *key, const char *text) {
    csv_begin(line, key, "");
    if (!line->is_head && text) csv_text(line->out, text);
}
static void csv_value(struct csv_line *line, const char *key, const char *ending, double value) {
    char text[26];
    csv_begin(line, key, ending);
    const size_t bytes = vp_number_format(value, text);
    if (bytes > 2 && !strcmp(text + bytes - 2, ".0")) text[bytes - 2] = 0; /* 4, not 4.0 */
    if (!line->is_head) text_add_string(line->out, text);
}
static void csv_estimate(struct csv_line *line, const char *key, vp_estimate estimate) {
    csv_value(line, key, "", estimate.value);
    csv_value(line, key, "_low", estimate.low);
    csv_value(line, key, "_high", estimate.high);
}
/* Writes the knobs that are in all reports, or the others. */
static void csv_knobs(struct csv_line *line, const struct report *report, const struct result_file *file, int always) {
    char text[KNOB_TEXT_BYTES];
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const int is_set = knob_is_set(&file->knobs, knob) && !(file->is_served && KNOBS[knob].of == KNOB_OF_ENGINE);
        const double number = is_set ? (double)knob_number(&file->knobs, knob) : (double)NAN;
        if (((KNOBS[knob].always & KNOB_IN_CSV) != 0) != always || !has_knob(report, knob)) continue;
        if (KNOBS[knob].type == KNOB_IS_NUMBER) csv_value(line, KNOBS[knob].key, "", number);
        else if (knob < KNOB_OWN) csv_texts(line, KNOBS[knob].key, is_set ? knob_text(&file->knobs, knob) : NULL);
        else csv_texts(line, KNOBS[knob].key, is_set ? knob_value_text(&file->knobs, knob, text) : NULL);
        if (KNOBS[knob].number_key) csv_value(line, KNOBS[knob].number_key, "", number);
    }
}
/* Returns 1 if the columns of this metric are omitted because no file has it. */
static int is_metric_unknown(const struct report *report, int metric) {
    for (size_t i = 0; i < report->results->count; i++)
        if (!is_left_out(metric, report->items[i].mean[metric])) return 0;
    return 1;
}
static void csv_times(struct csv_line *line, const struct report *report, const struct decomposition *times) {
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        const char *key = METRIC_KEYS[metric];
        if (is_metric_unknown(report, metric)) continue;
        csv_value(line, key, "_mean", times->mean[metric]);
        csv_value(line, key, "_p50", times->p50[metric].value);
        csv_value(line, key, "_p50_low", times->p50[metric].low);
        csv_value(line, key, "_p50_high", times->p50[metric].high);
        csv_value(line, key, "_p95", times->p95[metric]);
        csv_value(line, key, "_p99", times->p99[metric]);
    }
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        const char *key = vp_stage_name((vp_stage)stage);
        if (stage == VP_STAGE_PRUNE && !stage_is_known(report, stage)) continue;
        csv_value(line, key, "_ms", times->stages[stage].mean);
        csv_value(line, key, "_share", times->stages[stage].share);
        csv_value(line, key, "_tflops", times->stages[stage].tflops);
        csv_value(line, key, "_gbs", times->stages[stage].gbs);
    }
    for (int which = 0; which < PART_STAGE_COUNT; which++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) {
            char key[64];
            snprintf(key, sizeof key, "%s_%s", vp_stage_name((vp_stage)PART_STAGES[which]),
                     vp_part_name((vp_part)part));
            csv_value(line, key, "_share", times->stages[PART_STAGES[which]].parts[part]);
        }
}
static int has_baseline(const struct report *report) {
    for (size_t i = 0; i < report->results->count; i++) if (report->results->files[i].fidelity.baseline) return 1;
    return 0;
}
static void csv_fidelity(struct csv_line *line, const struct result_fidelity *fidelity) {
    const struct field_range *kl = &fidelity->kl_divergence_mean_interval, *top1 = &fidelity->top1_agreement_interval,
                             *answers = &fidelity->answer_agreement_interval;
    csv_texts(line, "baseline", fidelity->baseline);
    csv_estimate(line, "kl_divergence_mean", (vp_estimate){fidelity->kl_divergence_mean, kl->low, kl->high});
    csv_value(line, "kl_divergence_median", "", fidelity->kl_divergence_median);
    csv_value(line, "kl_divergence_p99", "", fidelity->kl_divergence_p99);
    csv_value(line, "kl_divergence_max", "", fidelity->kl_divergence_max);
    csv_estimate(line, "top1_agreement", (vp_estimate){fidelity->top1_agreement, top1->low, top1->high});
    csv_estimate(line, "answer_agreement", (vp_estimate){fidelity->answer_agreement, answers->low, answers->high});
    csv_value(line, "first_difference_index", "", fidelity->first_difference_index);
}
static int has_pruned(const struct report *report) {
    size_t count = 0;
    for (size_t i = 0; i < report->results->group_count; i++) count += report->pruned[i].count;
    return count > 0;
}
/* Writes the loss from pruning; row is NULL if the line's configuration is not pruned. */
static void csv_pruning(struct csv_line *line, const struct pruned_row *row) {
    static const vp_bounded_interval unknown = {.mean = NAN, .low = NAN, .high = NAN};
    const vp_bounded_interval *full = row ? &row->to_full : &unknown, *random = row ? &row->to_random : &unknown;
    csv_value(line, "kept_vision_tokens", "", row ? row->kept : (double)NAN);
    csv_value(line, "kept_share", "", row ? row->share : (double)NAN);
    csv_value(line, "kv_cache_bytes", "", row ? row->cache_bytes : (double)NAN);
    csv_value(line, "prefill_speedup", "", row ? row->prefill_ratio : (double)NAN);
    csv_estimate(line, "accuracy_to_none", (vp_estimate){full->mean, full->low, full->high});
    csv_estimate(line, "accuracy_to_random", (vp_estimate){random->mean, random->low, random->high});
}
static void csv_add_line(struct text_buffer *out, const struct report *report, size_t index, int is_head) {
    struct csv_line line = {out, is_head, 0};
    const struct decomposition *times = &report->items[index];
    const struct tradeoff *tradeoff = report->tradeoffs;
    const vp_bootstrap_point *point = NULL;
    size_t config = 0;
    while (index >= tradeoff->group->first + tradeoff->group->count) tradeoff++;
    while (config < tradeoff->config_count && tradeoff->group->paired[config] != index) config++;
    if (config < tradeoff->config_count && !tradeoff->reason[0]) point = &tradeoff->points[config];
    csv_texts(&line, "task", times->file->dataset_name);
    csv_knobs(&line, report, times->file, 1);
    csv_value(&line, "num_samples", "", (double)times->file->count);
    csv_knobs(&line, report, times->file, 0);
    csv_times(&line, report, times);
    csv_value(&line, "idle_share", "", times->idle_share);
    if (are_all_served(report->results)) csv_value(&line, "cached_share", "", result_cached_share(times->file));
    csv_estimate(&line, "accuracy", point ? point_accuracy(point) : file_accuracy(times->file));
    if (has_baseline(report)) csv_fidelity(&line, &times->file->fidelity);
    csv_estimate(&line, "latency", point ? point_latency(point) : (vp_estimate){NAN, NAN, NAN});
    csv_value(&line, "front", "",
              point ? (double)is_listed(tradeoff->front, tradeoff->front_count, config) : (double)NAN);
    csv_value(&line, "membership", "", point ? point->membership : (double)NAN);
    if (has_pruned(report)) {
        const struct pruned_rows *pruned = &report->pruned[tradeoff - report->tradeoffs];
        size_t at = 0;
        while (at < pruned->count && pruned->items[at].config != config) at++;
        csv_pruning(&line, at < pruned->count ? &pruned->items[at] : NULL);
    }
    csv_texts(&line, "path", times->file->path);
    text_add_string(out, "\n");
}
void report_csv(struct text_buffer *out, const struct report *report) {
    for (size_t i = 0; i < report->results->count; i++)
        for (int is_head = !i; is_head >= 0; is_head--) csv_add_line(out, report, i, is_head);
}

/* ---- JSON */
static void put_stage_cost(vp_json_writer *writer, const struct stage_cost *cost) {
    PUT(writer, KEY_OBJECT(NULL), KEY("mean_ms", cost->mean), KEY("share", cost->share),
        KEY_ESTIMATE("p50_ms", "p50_interval", cost->p50), KEY("flops", cost->flops), KEY("bytes", cost->bytes),
        KEY("launches", cost->launches), KEY("tflops_per_s", cost->tflops), KEY("gb_per_s", cost->gbs),
        KEY("host_share", cost->host_share), KEY("idle_share", cost->idle_share));
    if (stage_has_parts(cost)) { /* null if kernels were not timed */
        PUT(writer, KEY_OBJECT("parts"));
        for (int part = 0; part < VP_PART_COUNT; part++)
            if (isfinite(cost->parts[part])) put_double(writer, vp_part_name((vp_part)part), cost->parts[part]);
        vp_json_end_object(writer);
    } else put_null(writer, "parts");
    PUT(writer, KEY("bound", cost->limit == BOUND_NONE ? NULL : BOUND_NAMES[cost->limit]), END_OBJECT);
}
/* Writes the cost of the images measured by twins; null without twins. */
static void put_outside(vp_json_writer *writer, const struct outside *outside) {
    if (outside->pairs)
        PUT(writer, KEY_OBJECT("T_image_outside"), KEY("ms", outside->ms),
            KEY_RANGE("interval", outside->low, outside->high), KEY("level", outside->level),
            KEY("basis", outside->basis ? outside->basis : "TTFT"),
            KEY("method", outside->adjusted ? "adjusted" : "exact"), KEY("pairs", outside->pairs),
            KEY("pairs_left_out", outside->left_out), KEY("TTFT_image", outside->image_ms),
            KEY("TTFT_text", outside->text_ms), KEY("floor_ms", outside->floor_ms),
            KEY("server_prompt_difference_ms", outside->server_ms), END_OBJECT);
    else put_null(writer, "T_image_outside");
}
static void put_decomposition(vp_json_writer *writer, const struct decomposition *decomposition) {
    vp_json_begin_object(writer);
    put_setting_of(writer, decomposition->file);
    PUT(writer, KEY("path", decomposition->file->path), KEY("num_samples", decomposition->file->count),
        KEY("num_failed", decomposition->file->failed_count), KEY_OBJECT("latency_ms"));
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        if (is_left_out(metric, decomposition->mean[metric])) continue;
        PUT(writer, KEY_OBJECT(METRIC_KEYS[metric]), KEY("count", decomposition->counts[metric]),
            KEY("mean", decomposition->mean[metric]), KEY_ESTIMATE("p50", "p50_interval", decomposition->p50[metric]),
            KEY("p95", decomposition->p95[metric]), KEY("p99", decomposition->p99[metric]), END_OBJECT);
    }
    PUT(writer, END_OBJECT, KEY("closure", decomposition->closure),
        KEY("unaccounted_share", decomposition->unaccounted_share), KEY("idle_share", decomposition->idle_share),
        KEY("run_spread", decomposition->run_spread));
    if (decomposition->file->is_served)
        PUT(writer, KEY("images", decomposition->file->images), KEY_BOOL("no_cache", decomposition->file->no_cache),
            KEY("cached_share", result_cached_share(decomposition->file)));
    if (decomposition->file->is_served) put_outside(writer, &decomposition->file->outside);
    if (decomposition->file->fidelity.baseline)
        fields_put_object(writer, "fidelity", &RESULT_FIDELITY, &decomposition->file->fidelity);
    PUT(writer, KEY("tool_cost_share", decomposition->file->cost.bare_difference_share),
        KEY_RANGE("tool_cost_share_interval", decomposition->file->cost.bare_difference_share_interval.low,
                  decomposition->file->cost.bare_difference_share_interval.high),
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
        KEY("dataset_name", report->results->files[report->results->groups[curve->group].first].dataset_name),
        KEY("of", curve->label), KEY("x", curve->x_name), KEY("y", curve->y_name), KEY("unit", curve->unit),
        KEY_ESTIMATE("slope", "slope_interval", curve->slope),
        KEY_ESTIMATE("intercept_ms", "intercept_interval", curve->intercept), KEY("r2", curve->r2),
        KEY("count", curve->count), KEY_ARRAY("bins"));
    for (size_t bin = 0; bin < curve->bin_count; bin++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("x", curve->bins[bin].x),
            KEY_ESTIMATE("p50_ms", "p50_interval", curve->bins[bin].p50), KEY("mean_x", curve->bins[bin].mean_x),
            KEY_ESTIMATE("mean_ms", "mean_interval", curve->bins[bin].mean), KEY("count", curve->bins[bin].count),
            END_OBJECT);
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
    PUT(writer, KEY_ARRAY("configurations"));
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
        PUT(writer, KEY_ARRAY(key));
        for (size_t i = 0; tradeoff->effects[which] && i < tradeoff->effect_count; i++) {
            const vp_effect *effect = &tradeoff->effects[which][i];
            char name[2 * KNOB_TEXT_BYTES + 60], level[KNOB_TEXT_BYTES];
            vp_json_begin_object(writer);
            effect_name(tradeoff, report->results, effect, name);
            PUT(writer, KEY("kind", kinds[effect->kind]), KEY("name", name),
                KEY("knob", effect->knob_a < 0 ? NULL : KNOBS[tradeoff->knob_of[effect->knob_a]].axis_key),
                KEY("level", effect->knob_a < 0
                                 ? NULL
                                 : report_level_text(tradeoff, report->results, tradeoff->knob_of[effect->knob_a],
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
struct share_row { char term[80], key[80]; double latency, accuracy; };
static const struct table_column SHARES[] = {
    {CELL(struct share_row, key), "term"}, {CELL(struct share_row, term), NULL, "term"},
    {CELL(struct share_row, latency), "latency", "latency", .as = number_percent},
    {CELL(struct share_row, accuracy), "accuracy", "accuracy", .as = number_percent}};
struct table variance_shares(const struct tradeoff *tradeoff) {
    const int32_t knobs = tradeoff->knobs.knob_count;
    struct share_row *rows = zeroed((size_t)(knobs + 1) * (size_t)(knobs + 1), sizeof *rows);
    size_t count = 0;
    for (int32_t first = 0; tradeoff->order && first < knobs; first++) {
        snprintf(rows[count].term, 80, "%s", KNOBS[tradeoff->knob_of[first]].axis);
        snprintf(rows[count++].key, 80, "%s", KNOBS[tradeoff->knob_of[first]].axis_key);
    }
    for (int32_t first = 0; first < knobs && tradeoff->order == 2; first++)
        for (int32_t second = first + 1; second < knobs; second++) {
            const struct knob *one = &KNOBS[tradeoff->knob_of[first]], *other = &KNOBS[tradeoff->knob_of[second]];
            snprintf(rows[count].term, 80, "%s x %s", one->axis, other->axis);
            snprintf(rows[count++].key, 80, "%s x %s", one->axis_key, other->axis_key);
        }
    if (tradeoff->order) {
        snprintf(rows[count].term, 80, "remainder");
        snprintf(rows[count++].key, 80, "left");
    }
    for (size_t i = 0; i < count; i++) {
        rows[i].latency = tradeoff->shares[0] ? tradeoff->shares[0][i] : (double)NAN;
        rows[i].accuracy = tradeoff->shares[1] ? tradeoff->shares[1][i] : (double)NAN;
    }
    return (struct table)TABLE(SHARES, rows, count, NULL, 0);
}
static void put_knob_fronts(vp_json_writer *writer, const struct report *report, const struct tradeoff *tradeoff) {
    PUT(writer, KEY_ARRAY("fronts_with_knob_held"));
    for (size_t i = 0; i < tradeoff->knob_front_count; i++) {
        const struct knob_front *front = &tradeoff->fronts[i];
        char level[KNOB_TEXT_BYTES];
        PUT(writer, KEY_OBJECT(NULL), KEY("knob", KNOBS[front->knob].axis_key),
            KEY("level", report_level_text(tradeoff, report->results, front->knob, front->level, level)),
            KEY("area", front->area), /* indices into configurations */ KEY_ARRAY("front"));
        for (size_t k = 0; k < front->count; k++) vp_json_int(writer, front->front[k]);
        PUT(writer, END_ARRAY, END_OBJECT);
    }
    vp_json_end_array(writer);
}
static void put_gains(vp_json_writer *writer, const struct tradeoff *tradeoff) {
    PUT(writer, KEY_ARRAY("marginal_gains"));
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
    const uint32_t *const fronts[] = {tradeoff->front, tradeoff->kept};
    const size_t counts[] = {tradeoff->front_count, tradeoff->kept_count};
    PUT(writer, KEY_OBJECT(NULL), KEY("dataset_name", report->results->files[tradeoff->group->first].dataset_name),
        KEY("reason", tradeoff->reason[0] ? tradeoff->reason : NULL), KEY_BOOL("corpus_metric", tradeoff->is_corpus),
        KEY("num_samples", tradeoff->sample_count));
    if (tradeoff->reason[0] && tradeoff->order) put_effects(writer, report, tradeoff);
    if (!tradeoff->reason[0]) {
        PUT(writer, KEY("epsilon_ms", tradeoff->epsilon_latency), KEY("area", tradeoff->area));
        struct table shares = variance_shares(tradeoff);
        put_points(writer, report, tradeoff);
        for (int which = 0; which < 2; which++) {
            vp_json_key(writer, which ? "epsilon_front" : "front"); /* indices into configurations */
            vp_json_begin_array(writer);
            for (size_t i = 0; i < counts[which]; i++) vp_json_int(writer, fronts[which][i]);
            vp_json_end_array(writer);
        }
        table_put(writer, "variance_shares", &shares);
        free((void *)shares.rows);
        put_effects(writer, report, tradeoff);
        put_knob_fronts(writer, report, tradeoff);
        put_gains(writer, tradeoff);
        if (report->pruned[tradeoff - report->tradeoffs].count) {
            const struct table pruned = pruned_table(&report->pruned[tradeoff - report->tradeoffs]);
            table_put(writer, "pruning", &pruned);
        }
    }
    vp_json_end_object(writer);
}
void report_put_e2(vp_json_writer *writer, const struct report *report) {
    const struct table categories = category_table(&report->categories), loads = load_table(&report->loads);
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-e2-1"), KEY("version", VLMPROF_VERSION),
        KEY_TEXTS("warnings", &report->warnings), KEY("latency", METRIC_KEYS[report->settings.axis]),
        KEY("percentile", percentile_text(report->settings.percentile)), KEY("resamples", report->settings.resamples),
        KEY("seed", BOOTSTRAP_SEED), KEY("epsilon_accuracy", EPSILON_ACCURACY), KEY_ARRAY("datasets"));
    for (size_t i = 0; i < report->results->group_count; i++) put_tradeoff(writer, report, &report->tradeoffs[i]);
    vp_json_end_array(writer);
    if (loads.row_count) table_put(writer, "load", &loads);
    if (categories.row_count) {
        put_text(writer, "by", report->by);
        table_put(writer, "categories", &categories);
    }
    vp_json_end_object(writer);
}
