/* report_text.c: the report as text. */
#include "report/report_text.h"

#include "results/metrics.h"
#include "results/result_read.h"
#include "vlmprof_analysis.h"
#include "vlmprof_stages.h"

#include <math.h>

struct number_text number_plain(double value) {
    return value > -1e15 && value < 1e15 && !(fabs(value - floor(value)) > 0) ? number_formatted("%.0f", value)
                                                                              : number_short(value);
}
struct number_text number_of_estimate(vp_estimate estimate) {
    return number_estimate(1, estimate.value, estimate.low, estimate.high);
}
/* The first few servers of the files, without repeats. */
static void write_servers(struct document *document, const struct results *results) {
    enum { SHOWN = 8 };
    struct text_list lines = {NULL, 0};
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        struct text_buffer line = {NULL, 0, 0};
        text_add_string(&line, "model ");
        text_add_string(&line, knob_text(&file->knobs, KNOB_ENDPOINT_MODEL));
        text_add_string(&line, " at ");
        text_add_string(&line, knob_text(&file->knobs, KNOB_ENDPOINT));
        if (file->server) {
            text_add_string(&line, ", ");
            text_add_string(&line, file->server);
        }
        if (text_list_has(&lines, line.data)) free(line.data); else text_list_take(&lines, line.data);
    }
    for (size_t i = 0; i < lines.count && i < SHOWN; i++) document_text(document, BLOCK_LINE, "%s", lines.items[i]);
    if (lines.count > SHOWN) document_text(document, BLOCK_LINE, "and %zu more", lines.count - SHOWN);
    text_list_free(&lines);
}
static void write_summary(struct document *document, const struct report *report) {
    const struct results *results = report->results;
    const struct result_file *file = &results->files[0];
    char *weights = weights_text(results);
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (results->files[i].count < least) least = results->files[i].count;
        if (results->files[i].count > most) most = results->files[i].count;
    }
    document_text(document, BLOCK_HEADING, "vlmprof report: %zu configuration%s", results->count,
                  plural_s((int64_t)results->count));
    document_list(document, "Findings", &report->findings);
    document_list(document, "Warnings", &report->warnings);
    document_text(document, BLOCK_HEADING, "Measured");
    for (size_t i = 0; i < results->group_count; i++) {
        const struct result_file *first = &results->files[results->groups[i].first];
        document_text(document, BLOCK_LINE, "data set %s: %zu configuration%s, accuracy by %s", first->dataset_name,
                      results->groups[i].count, plural_s((int64_t)results->groups[i].count),
                      first->accuracy_metric ? first->accuracy_metric : "an unknown metric");
    }
    if (are_all_served(results)) write_servers(document, results);
    else
        document_text(document, BLOCK_LINE, "model %s%s%s%s, %s", file->model ? file->model : "unknown",
                      file->synthetic ? " (synthetic weights)" : "", weights ? ", " : "", weights ? weights : "",
                      file->device ? file->device : "unknown device");
    free(weights);
    if (least == most)
        document_text(document, BLOCK_LINE, "%zu sample%s per configuration", most, plural_s((int64_t)most));
    else document_text(document, BLOCK_LINE, "%zu to %zu samples per configuration", least, most);
}
static void write_provenance(struct document *document, const struct report *report) {
    const struct result_file *file = &report->results->files[0];
    if (!(file->num_runs_per_sample > 0) && !(file->measured_from && file->measured_to)) return;
    document_text(document, BLOCK_HEADING, "Provenance");
    if (file->num_runs_per_sample > 0)
        document_text(document, BLOCK_LINE, "at least %lld run%s per sample; %s", (long long)file->num_runs_per_sample,
                      plural_s(file->num_runs_per_sample),
                      knobs_are_loaded(&file->knobs) ? "under load, each one is a request"
                                                     : "a sample's value is the mean of its runs");
    if (file->measured_from && file->measured_to)
        document_text(document, BLOCK_LINE, "first file measured %s to %s by vlmprof %s on %s", file->measured_from,
                      file->measured_to, file->version ? file->version : "?", file->host ? file->host : "?");
}
static void cell_name(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const struct decomposition *times = (const struct decomposition *)row;
    cell_set_text(cell, report_full_name(((const struct report *)context)->results, times->file, own));
}
/* The point of a row's file in its data set's trade-off, or NULL. */
static const vp_bootstrap_point *point_of(const void *row, const void *context) {
    const struct report *report = context;
    const size_t file = (size_t)((const struct decomposition *)row - report->items);
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        for (size_t i = 0; tradeoff->points && i < tradeoff->config_count; i++)
            if (tradeoff->group->paired[i] == file) return &tradeoff->points[i];
    }
    return NULL;
}
static void cell_samples(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    (void)context, (void)own;
    *cell = KEY(cell->key, ((const struct decomposition *)row)->file->count);
}
static void cell_accuracy(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const vp_bootstrap_point *point = point_of(row, context);
    const vp_estimate accuracy =
        point ? point_accuracy(point) : file_accuracy(((const struct decomposition *)row)->file);
    cell_set_text(cell, strcpy(own, number_of_estimate(accuracy).text));
}
static void cell_front(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const struct report *report = context;
    (void)own;
    cell_set_text(cell, is_on_front(report, (size_t)((const struct decomposition *)row - report->items)) ? "yes" : "");
}
static void cell_member(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const vp_bootstrap_point *point = point_of(row, context);
    (void)own;
    *cell = KEY(cell->key, point ? point->membership : (double)NAN);
}
/* columns that only stages can fill, columns that only servers can fill, and columns of the page */
enum { WITH_STAGES = 1, WITH_CACHES = 2, WITH_FRONT = 4 };
static void cell_cached(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const double share = result_cached_share(((const struct decomposition *)row)->file);
    (void)context;
    if (!isfinite(share)) return;
    snprintf(own, CELL_BYTES, "%s", number_percent(share).text);
    cell_set_text(cell, own);
}
/* TPOT; for servers, omitted for answers with few tokens. */
static void cell_tpot(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    const struct decomposition *times = (const struct decomposition *)row;
    const vp_estimate p50 = times->p50[METRIC_PER_TOKEN];
    (void)context;
    if (!isfinite(p50.value) || (times->file->is_served && result_has_few_tokens(times->file))) return;
    snprintf(own, CELL_BYTES, "%s", number_measured(p50.value, p50.low, p50.high).text);
    cell_set_text(cell, own);
}
#define OF(member) CELL(struct decomposition, member)
#define P50(metric) CELL_ESTIMATE(struct decomposition, p50[metric])
static const struct table_column LATENCIES[] = {
    {CELL_MADE(cell_name), NULL, "configuration"}, {CELL_MADE(cell_samples), NULL, "samples", .in = WITH_FRONT},
    {CELL_MADE(cell_accuracy), NULL, "accuracy", .in = WITH_FRONT}, {P50(METRIC_TOTAL), NULL, "T_total"},
    {OF(p95[METRIC_TOTAL]), NULL, "P95"}, {P50(METRIC_TTFT), NULL, "TTFT"},
    {P50(METRIC_VISION), NULL, "vision", .in = WITH_STAGES},
    {P50(METRIC_PREFILL), NULL, "prefill", .in = WITH_STAGES}, {P50(METRIC_DECODE), NULL, "decode"},
    {CELL_MADE(cell_tpot), NULL, "TPOT"}, {CELL_MADE(cell_cached), NULL, "cached %", .in = WITH_CACHES},
    {OF(run_spread), NULL, "run spread %", .as = number_percent},
    {OF(closure), NULL, "closure %", "%.2f", .scale = 100, .in = WITH_STAGES},
    {OF(idle_share), NULL, "idle %", .as = number_percent, .in = WITH_STAGES},
    {CELL_MADE(cell_front), NULL, "front", .in = WITH_FRONT},
    {CELL_MADE(cell_member), NULL, "member %", .as = number_percent, .in = WITH_FRONT}};
struct table latency_table(const struct report *report, size_t group, int has_front) {
    const struct results *results = report->results;
    const int is_one = group < results->group_count;
    const unsigned has = (are_all_served(results) ? WITH_CACHES : 0) | (report_has_stages(report) ? WITH_STAGES : 0)
                         | (has_front ? WITH_FRONT : 0);
    return (struct table)TABLE(LATENCIES, report->items + (is_one ? results->groups[group].first : 0),
                               is_one ? results->groups[group].count : results->count, report, has);
}

static void write_latencies(struct document *document, const struct report *report) {
    static const int explained[] = {METRIC_TOTAL, METRIC_TTFT, METRIC_DECODE, METRIC_PER_TOKEN};
    const struct results *results = report->results;
    const int is_served = are_all_served(results);
    int has_intervals = 0;
    const struct table table = latency_table(report, SIZE_MAX, 0);
    for (size_t i = 0; i < results->count; i++) has_intervals |= isfinite(report->items[i].p50[METRIC_TOTAL].low);
    document_text(document, BLOCK_HEADING, "E1: latency, ms; P50 over %s%s",
                  report->loads.count == results->count ? "requests" : report->loads.count
                  ? "samples, under load over requests" : "samples",
                  has_intervals ? " [95 % interval]" : "");
    document_add_table(document, &table);
    if (is_served) {
        document_text(document, BLOCK_LINE, "configuration: image size, and the differences between the servers");
        document_text(document, BLOCK_LINE, "cached: share of prompt tokens that the servers read from their caches; "
                                            "images: %s",
                      results->files[0].images ? results->files[0].images : "not reported");
        for (size_t i = 0; i < results->count; i++) {
            if (!result_has_few_tokens(&results->files[i])) continue;
            document_text(document, BLOCK_LINE, "TPOT is not shown if answers have fewer than %d tokens on average, "
                                                "because one late piece would dominate it; the files contain it",
                          TPOT_TOKENS_LEAST);
            break;
        }
        if (stages_unknown_text(report)) document_text(document, BLOCK_LINE, "%s", stages_unknown_text(report));
        terms_add(document, 1, explained, sizeof explained / sizeof *explained);
        return;
    }
    if (!results->files[0].is_foreign || knob_number(&results->files[0].knobs, KNOB_TOP_K) > 0
        || knob_is_set(&results->files[0].knobs, KNOB_BLOCKS)) /* otherwise only the knobs of another engine */
        document_text(document, BLOCK_LINE, "configuration: image size, top_k (k), active decoder blocks (b)%s",
                      results->files[0].varied >> KNOB_WEIGHTS & 1 ? ", weights" : "");
    terms_add(document, 0, LATENCY_TERMS, LATENCY_TERM_COUNT);
}
/* Writes the cost of images measured by twins, and the part of it that grows with their tokens. */
static void write_outside(struct document *document, const struct report *report) {
    struct text_list *list = NULL;
    for (size_t i = 0; i < report->results->count; i++) {
        const struct outside *outside = &report->results->files[i].outside;
        char name[160];
        if (!report->results->files[i].is_served || !outside->pairs) continue;
        if (!list) {
            document_text(document, BLOCK_HEADING, "E1: the cost of an image, measured by the client, ms; medians of "
                                                   "pairs");
            list = document_table(
                document,
                "configuration|T_image_outside|TTFT image|TTFT text|floor|by the server|pairs|left out|basis");
        }
        CELLS(list, report_full_name(report->results, &report->results->files[i], name),
              number_measured(outside->ms, outside->low, outside->high).text, number_short(outside->image_ms).text,
              number_short(outside->text_ms).text, number_short(outside->floor_ms).text,
              number_short(outside->server_ms).text);
        text_list_add(list, "%lld%s", (long long)outside->pairs, outside->adjusted ? " adjusted" : "");
        text_list_add(list, "%lld", (long long)outside->left_out);
        text_list_add(list, "%s", outside->basis ? outside->basis : "TTFT");
    }
    if (!list) return;
    document_text(document, BLOCK_LINE, "%s", TWINS_TEXT);
    for (size_t i = 0; i < report->results->count; i++)
        if (report->results->files[i].outside.high < 0)
            document_text(document, BLOCK_LINE, "costs below 0 are wrong: an image was cached, or the server ignored "
                                                "it (check with vlmprof audit)");
    for (size_t i = 0; i < report->curves.count; i++) {
        const struct curve *curve = &report->curves.items[i];
        if (strcmp(curve->name, "image")) continue;
        if (!isfinite(curve->slope.value)) {
            document_text(document, BLOCK_LINE, "%s: no fit against image tokens: %s%s", curve->label,
                          curve->bin_count == 1 ? "all images have the same number: " : "too few samples",
                          curve->bin_count == 1 ? number_plain(curve->bins[0].x).text : "");
            continue;
        }
        document_text(document, BLOCK_LINE, "%s: %s ms fixed + %s ms per image token (fit to %zu samples, R2 %s)",
                      curve->label,
                      number_measured(curve->intercept.value, curve->intercept.low, curve->intercept.high).text,
                      number_measured(curve->slope.value, curve->slope.low, curve->slope.high).text, curve->count,
                      number_formatted("%.3f", curve->r2).text);
    }
}
/* Writes how close each configuration is to its baseline. */
static void cell_file(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    cell_set_text(cell, report_full_name((const struct results *)context, (const struct result_file *)row, own));
}
#define AGAINST(member) CELL(struct result_file, fidelity.member)
#define AGAINST_RANGE(member, interval) \
    CELL_RANGE(struct result_file, fidelity.member, fidelity.interval.low, fidelity.interval.high)
enum { OF_SERVER = 1 };
static const struct table_column AGREEMENTS[] = {
    {CELL_MADE(cell_file), NULL, "configuration"},
    {AGAINST_RANGE(kl_divergence_mean, kl_divergence_mean_interval), NULL, "KL divergence, nats"},
    {AGAINST(kl_divergence_mean_at_most), NULL, "at most", .in = OF_SERVER},
    {AGAINST(kl_divergence_median), NULL, "median"}, {AGAINST(kl_divergence_p99), NULL, "P99"},
    {AGAINST(kl_divergence_max), NULL, "max"},
    {AGAINST_RANGE(top1_agreement, top1_agreement_interval), NULL, "top1_agreement"},
    {AGAINST_RANGE(answer_agreement, answer_agreement_interval), NULL, "answer_agreement"},
    {AGAINST(first_difference_index), NULL, "first difference"},
    {AGAINST(first_difference_baseline_margin), NULL, "margin, nats"},
    {AGAINST(first_difference_margin), NULL, "own margin"}, {AGAINST(num_ties), NULL, "ties"},
    {AGAINST(fidelity_count), NULL, "samples"}};

static const struct result_file *first_of(const struct results *results, size_t group) {
    return &results->files[results->groups[group].first];
}
struct table agreement_table(const struct results *results, size_t group) {
    const struct result_file *first = first_of(results, group);
    return (struct table)TABLE(AGREEMENTS, first, results->groups[group].count, results,
                               first->is_served ? OF_SERVER : 0);
}
void agreement_notes(struct text_list *notes, const struct results *results, size_t group) {
    text_list_add(notes, "%s; first difference: median token index, from 0; ties: answers that diverge at a margin "
                         "below %g", FIDELITY_TEXT, TIE_NATS);
    if (first_of(results, group)->is_served)
        text_list_add(notes, "a server reports only its most likely tokens, so KL divergences are lower bounds, up to "
                             "the first token that differs");
}
static void write_agreement(struct document *document, const struct results *results, size_t group) {
    const struct table table = agreement_table(results, group);
    struct text_list notes = {NULL, 0};
    if (!report_baseline(results, group)) return;
    document_text(document, BLOCK_HEADING, "E2: agreement with %s", report_baseline(results, group));
    document_add_table(document, &table);
    agreement_notes(&notes, results, group);
    for (size_t i = 0; i < notes.count; i++) document_text(document, BLOCK_LINE, "%s", notes.items[i]);
    text_list_free(&notes);
}
static void write_shares(struct document *document, const struct report *report) {
    struct text_buffer heads = {NULL, 0, 0};
    struct text_list *list;
    text_add_string(&heads, "configuration");
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        if (!stage_is_known(report, stage)) continue;
        text_add_string(&heads, "|");
        text_add_string(&heads, vp_stage_name((vp_stage)stage));
    }
    if (heads.bytes > 13) {
        text_add_string(&heads, "|unaccounted|sum");
        document_text(document, BLOCK_HEADING, "E1: where the time goes, %% of T_total (means)");
        list = document_table(document, heads.data);
        for (size_t i = 0; i < report->results->count; i++) {
            const struct decomposition *decomposition = &report->items[i];
            double sum = decomposition->unaccounted_share;
            char name[160];
            text_list_add(list, "%s", report_full_name(report->results, decomposition->file, name));
            for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
                if (isfinite(decomposition->stages[stage].share)) sum += decomposition->stages[stage].share;
                if (stage_is_known(report, stage))
                    text_list_add(list, "%s", number_formatted("%.2f", 100 * decomposition->stages[stage].share).text);
            }
            text_list_add(list, "%s", number_formatted("%.4f", 100 * decomposition->unaccounted_share).text);
            text_list_add(list, "%s", number_formatted("%.2f", 100 * sum).text);
        }
    }
    free(heads.data);
}
static int part_is_known(const struct report *report, int part) {
    for (size_t i = 0; i < report->results->count; i++)
        for (int which = 0; which < PART_STAGE_COUNT; which++)
            if (isfinite(report->items[i].stages[PART_STAGES[which]].parts[part])) return 1;
    return 0;
}
int parts_cells(const struct report *report, struct text_buffer *heads, struct text_list *cells) {
    text_add_string(heads, "configuration|stage");
    for (int part = 0; part < VP_PART_COUNT; part++)
        if (part_is_known(report, part)) text_add_format(heads, "|%s", vp_part_name((vp_part)part));
    text_add_string(heads, "|idle");
    for (size_t i = 0; i < report->results->count; i++)
        for (int which = 0; which < PART_STAGE_COUNT; which++) {
            const struct stage_cost *cost = &report->items[i].stages[PART_STAGES[which]];
            char name[160];
            if (!stage_has_parts(cost)) continue;
            CELLS(cells, report_full_name(report->results, report->items[i].file, name),
                  vp_stage_name((vp_stage)PART_STAGES[which]));
            for (int part = 0; part < VP_PART_COUNT; part++)
                if (part_is_known(report, part))
                    text_list_add(cells, "%s", number_formatted("%.1f", 100 * cost->parts[part]).text);
            text_list_add(cells, "%s", number_formatted("%.1f", 100 * cost->idle_share).text);
        }
    return cells->count > 0;
}
static void write_parts(struct document *document, const struct report *report) {
    struct text_buffer heads = {NULL, 0, 0};
    struct text_list cells = {NULL, 0};
    if (parts_cells(report, &heads, &cells)) {
        document_text(document, BLOCK_HEADING,
                      "E1: parts of prefill and decode, %% of their time on the device (--kernel_pass)");
        struct text_list *table = document_table(document, heads.data);
        for (size_t i = 0; i < cells.count; i++) text_list_copy(table, cells.items[i]);
    }
    free(heads.data);
    text_list_free(&cells);
}
static const char *limits_text(const struct report *report, int stage, char out[96]) { /* "memory 10, launch 2" */
    size_t used = 0;
    out[0] = 0;
    for (int limit = BOUND_COMPUTE; limit <= BOUND_LAUNCH; limit++) {
        size_t count = 0;
        for (size_t i = 0; i < report->results->count; i++)
            count += report->items[i].stages[stage].limit == (bound)limit;
        if (count == report->results->count) snprintf(out, 96, "%s", BOUND_NAMES[limit]);
        else if (count)
            used += (size_t)snprintf(out + used, 96 - used, "%s%s %zu", used ? ", " : "", BOUND_NAMES[limit], count);
    }
    return out;
}
/* Returns 1 if other programs or a virtual machine's host used CPU time while one of the files was measured. */
static int is_measured_busy(const struct report *report) {
    int reasons = 0;
    for (size_t i = 0; i < report->results->count; i++) reasons |= vp_noise_reasons(&report->results->files[i].noise);
    return (reasons & (VP_NOISE_IS_BUSY | VP_NOISE_IS_STOLEN)) != 0;
}
static const char *above_roof_text(const struct report *report) {
    return report->peaks_are_given
               ? "above a roof: some of the counted bytes came from caches, not memory, or the given roof is lower "
                 "than the device's"
               : "above a roof: some of the counted bytes came from caches, not memory, and these roofs come from "
                 "larger stages, so they are not the device's limits";
}
/* A rate as a share of a roof. If the roof is the best stage itself, that stage is marked, not shown as 100 %. */
static struct number_text roof_share(const struct report *report, double rate, double roof) {
    if (report->peaks_are_given || rate < 0.9995 * roof) return number_share(rate / roof);
    return number_formatted(rate <= 1.0005 * roof ? "best" : "above", 0);
}
static void write_roofline(struct document *document, const struct report *report) {
    struct text_list *list;
    int is_above = 0;
    if (!(report->peak_tflops > 0) || !(report->peak_gbs > 0)) return;
    document_text(document, BLOCK_HEADING, "E1: work and time, means over all configurations");
    if (report->peaks_are_given)
        document_text(document, BLOCK_LINE,
                      "roofs %s TFLOP/s and %s GB/s, as given; launch: less than a third of both roofs",
                      number_short(report->peak_tflops).text, number_short(report->peak_gbs).text);
    else
        document_text(document, BLOCK_LINE,
                      "roofs unknown: compared with the best stage that takes at least 1 %% of a request, %s TFLOP/s "
                      "and %s GB/s%s; run --profile measures this machine's roofs, --peak_tflops and --peak_gbs set "
                      "them; launch: less than a third of both",
                      number_short(report->peak_tflops).text, number_short(report->peak_gbs).text,
                      is_measured_busy(report) ? ", measured on a busy machine" : "");
    list = document_table(document, report->peaks_are_given
                                        ? "stage|GFLOP|MB|launches|ms|TFLOP/s|of roof|GB/s|of roof|idle %|bound"
                                        : "stage|GFLOP|MB|launches|ms|TFLOP/s|of best|GB/s|of best|idle %|bound");
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
        double flops = 0, bytes = 0, launches = 0, ms = 0, idle = 0, count = 0, idle_count = 0;
        char limits[96];
        for (size_t i = 0; i < report->results->count; i++) {
            const struct stage_cost *cost = &report->items[i].stages[stage];
            if (!(cost->flops > 0 || cost->bytes > 0)) continue;
            flops += cost->flops;
            bytes += cost->bytes;
            launches += cost->launches;
            ms += cost->mean;
            count++;
            if (isfinite(cost->idle_share)) { idle += cost->idle_share; idle_count++; }
        }
        if (!(count > 0) || !(ms > 0)) continue;
        CELLS(list, vp_stage_name((vp_stage)stage), number_short(flops / count / 1e9).text,
            number_short(bytes / count / 1e6).text, number_short(launches / count).text, number_short(ms / count).text,
            number_short(flops / ms / 1e9).text, roof_share(report, flops / ms / 1e9, report->peak_tflops).text,
            number_short(bytes / ms / 1e6).text, roof_share(report, bytes / ms / 1e6, report->peak_gbs).text,
            number_percent(idle / idle_count).text, limits_text(report, stage, limits));
        is_above |= flops / ms / 1e9 > report->peak_tflops || bytes / ms / 1e6 > report->peak_gbs;
    }
    if (is_above) document_text(document, BLOCK_LINE, "%s", above_roof_text(report));
}
static void write_curves(struct document *document, const struct report *report, size_t group) {
    struct text_list *list = NULL;
    for (size_t i = 0; i < report->curves.count; i++) {
        const struct curve *curve = &report->curves.items[i];
        if (report->curves.items[i].group != group) continue;
        if (!list) {
            document_text(document, BLOCK_HEADING,
                          "E1: scaling of %s: ms against the quantity that should determine it, linear fits [95 %% "
                          "interval]",
                          report->results->files[report->results->groups[group].first].dataset_name);
            list = document_table(document, "latency|against|of|slope|unit|at 0, ms|R2|points");
        }
        CELLS(list, curve->y_name, curve->x_name, curve->label, number_of_estimate(curve->slope).text, curve->unit,
              number_short(curve->intercept.value).text, number_formatted("%.3f", curve->r2).text,
              number_whole(curve->count).text);
    }
    for (size_t i = 0; i < report->curves.count; i++) { /* medians: for vision, and for the largest language model */
        const struct curve *curve = &report->curves.items[i];
        int is_last = i + 1 == report->curves.count || report->curves.items[i + 1].group != group
                      || strcmp(report->curves.items[i + 1].name, curve->name);
        if (report->curves.items[i].group != group || !is_last) continue;
        document_text(document, BLOCK_LINE, "medians of %s over %s (%s)", curve->y_name, curve->x_name, curve->label);
        list = document_table(document, "at|ms|points");
        for (size_t bin = 0; bin < curve->bin_count; bin++) {
            CELLS(list, number_plain(curve->bins[bin].x).text, number_of_estimate(curve->bins[bin].p50).text,
                  number_whole(curve->bins[bin].count).text);
        }
    }
}
static const char *config_text(const struct report *report, const struct tradeoff *tradeoff, size_t config,
                               char out[80]) {
    return setting_text(&report->results->files[tradeoff->group->paired[config]], out);
}
/* Adds the cells of a configuration: name, latency, accuracy and membership. */
static void write_point(struct text_list *table, const struct report *report, const struct tradeoff *tradeoff,
                        size_t config) {
    const vp_bootstrap_point *point = &tradeoff->points[config];
    char name[80];
    CELLS(table, config_text(report, tradeoff, config, name), number_of_estimate(point_latency(point)).text,
          number_of_estimate(point_accuracy(point)).text, number_percent(point->membership).text);
}
static void write_front(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    const char *axis = METRIC_KEYS[report->settings.axis], *percentile = percentile_text(report->settings.percentile);
    char latency[64], few[NO_INTERVAL_BYTES];
    no_interval_text(tradeoff, report->settings.percentile, few);
    document_text(document, BLOCK_HEADING, "E2: front of accuracy against %s of %s, %s, %zu common samples", percentile,
                  axis, report->results->files[tradeoff->group->first].dataset_name, tradeoff->sample_count);
    if (tradeoff->is_corpus)
        document_text(
            document, BLOCK_LINE,
            "the metric %s scores the whole corpus, not single samples, so accuracy has no intervals, shares on the "
            "front or effects",
            report->results->files[tradeoff->group->first].accuracy_metric
                ? report->results->files[tradeoff->group->first].accuracy_metric
                : "of these files");
    else if (!few[0])
        document_text(document, BLOCK_LINE,
                      "member: how often the configuration is on the front in %zu resamples of the samples, at most %s "
                      "%%, the most that %zu samples can show",
                      report->settings.resamples,
                      number_percent((double)tradeoff->sample_count / (double)(tradeoff->sample_count + 1)).text,
                      tradeoff->sample_count);
    document_text(document, BLOCK_LINE,
                  "equal points: configurations with exactly this latency and accuracy; *: a shorter front; each "
                  "configuration is within %s ms and %g point of one of these",
                  number_short(tradeoff->epsilon_latency).text, 100 * EPSILON_ACCURACY);
    if (few[0]) document_text(document, BLOCK_LINE, "%s; members are unknown", few);
    if (!tradeoff->is_corpus && !tradeoff->range.is_known)
        document_text(document, BLOCK_LINE,
                      "the score range of this metric is unknown: accuracy has Student's t intervals, and none if all "
                      "scores are equal");
    if (tradeoff->front_count == 1)
        document_text(document, BLOCK_LINE,
                      "no configuration is more accurate than the fastest one: the front is a single point");
    snprintf(latency, sizeof latency, "configuration|%s|accuracy|member %%|equal points|",
             TERMS[report->settings.axis].unit);
    struct text_list *table = document_table(document, latency);
    for (size_t i = 0; i < tradeoff->front_count; i++) {
        write_point(table, report, tradeoff, tradeoff->front[i]);
        text_list_add(table, "%zu", equal_points(tradeoff, tradeoff->front[i]));
        text_list_add(table, "%s", is_listed(tradeoff->kept, tradeoff->kept_count, tradeoff->front[i]) ? "*" : "");
    }
}
/* Writes configurations that are not on the front, but are on it in at least 5 % of the resamples. */
static void write_near_front(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    struct text_list *table = NULL;
    char head[64];
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const vp_bootstrap_point *point = &tradeoff->points[i];
        if (!(point->membership * (double)(tradeoff->sample_count + 1) > 1.001 && point->membership >= 0.05)
            || is_listed(tradeoff->front, tradeoff->front_count, i)) continue;
        if (!table) {
            document_text(document, BLOCK_LINE, "not on the front, but on it in some resamples");
            snprintf(head, sizeof head, "configuration|%s|accuracy|member %%", TERMS[report->settings.axis].unit);
            table = document_table(document, head);
        }
        write_point(table, report, tradeoff, i);
    }
}
static void write_effect_shares(struct document *document, const struct tradeoff *tradeoff) {
    struct table table = variance_shares(tradeoff);
    document_text(document, BLOCK_LINE, "shares of the variance between the configurations' means, %%");
    document_add_table(document, &table);
    free((void *)table.rows);
}
static void write_effect(struct text_list *table, const vp_effect *effect, double scale) {
    text_list_add(table, "%s", effect ? number_estimate(scale, effect->estimate, effect->low, effect->high).text : "-");
}
static void write_effects(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    const int is_energy = report->settings.axis >= METRIC_ENERGY;
    char name[160];
    if (!tradeoff->order) {
        document_text(document, BLOCK_LINE, "effects of knobs: %s",
                      tradeoff->is_loaded ? "none under load: compare the rows of \"Under load\""
                      : tradeoff->knobs.knob_count ? "this grid cannot separate them" : "no knob varies");
        return;
    }
    document_text(document, BLOCK_HEADING, "E2: effects of the knobs on mean %s%s, %s [95 %% interval]",
                  METRIC_KEYS[report->settings.axis], tradeoff->effects[1] ? " and accuracy" : "",
                  report->results->files[tradeoff->group->first].dataset_name);
    write_effect_shares(document, tradeoff);
    document_text(document, BLOCK_LINE, "main effects: a level's mean minus the mean of all; %s mean %s %s%s%s",
                  is_energy ? "energy" : "latency", number_short(tradeoff->effects[0][0].estimate).text,
                  TERMS[report->settings.axis].unit, tradeoff->effects[1] ? ", accuracy mean " : "",
                  tradeoff->effects[1] ? number_short(tradeoff->effects[1][0].estimate).text : "");
    struct text_list *table =
        document_table(document, is_energy ? "level|energy, J|accuracy, points" : "level|latency, ms|accuracy, points");
    for (size_t i = 0; i < tradeoff->effect_count; i++) {
        if (tradeoff->effects[0][i].kind != VP_EFFECT_MAIN) continue;
        effect_name(tradeoff, report->results, &tradeoff->effects[0][i], name);
        text_list_add(table, "%s", name);
        write_effect(table, &tradeoff->effects[0][i], 1);
        write_effect(table, tradeoff->effects[1] ? &tradeoff->effects[1][i] : NULL, 100);
    }
}
/* Writes pairs of levels whose joint effect differs from the sum of both, by a test adjusted for their number, the
 * largest first. */
struct found_pair { size_t at; double size; };
static int by_size(const void *left_item, const void *right_item) {
    const struct found_pair *left = left_item, *right = right_item;
    if (left->size > right->size || left->size < right->size) return left->size < right->size ? 1 : -1;
    return left->at < right->at ? -1 : left->at > right->at;
}
static size_t find_pairs(const vp_effect *effects, size_t effect_count, struct found_pair *found) {
    double *p_values = resize(NULL, effect_count, 2 * sizeof *p_values), *adjusted = p_values + effect_count;
    size_t *at = resize(NULL, effect_count, sizeof *at), count = 0, kept = 0;
    uint32_t *order = resize(NULL, effect_count, sizeof *order);
    for (size_t i = 0; i < effect_count; i++) {
        if (effects[i].kind != VP_EFFECT_PAIR || !(effects[i].p >= 0 && effects[i].p <= 1)) continue;
        at[count] = i;
        p_values[count++] = effects[i].p;
    }
    if (count && vp_adjust(p_values, count, VP_ADJUST_BENJAMINI_HOCHBERG, order, adjusted) == VP_OK) {
        for (size_t i = 0; i < count; i++) {
            if (!(adjusted[i] <= 0.05)) continue;
            found[kept].at = at[i];
            found[kept++].size = fabs(effects[at[i]].estimate);
        }
    }
    qsort(found, kept, sizeof *found, by_size);
    FREE_ALL(p_values, at, order);
    return kept;
}
static void write_pairs(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    enum { SHOWN = 8 };
    struct found_pair *found = resize(NULL, tradeoff->effect_count, sizeof *found);
    for (int which = 0; which < 2 && tradeoff->order == 2; which++) {
        size_t count =
            tradeoff->effects[which] ? find_pairs(tradeoff->effects[which], tradeoff->effect_count, found) : 0;
        if (!tradeoff->effects[which]) continue;
        document_text(document, BLOCK_LINE, "interactions in %s: %zu significant (Benjamini-Hochberg, 5 %%)%s",
                      which ? "accuracy" : "latency", count, count > SHOWN ? ", the largest 8" : "");
        if (!count) continue;
        struct text_list *table = document_table(document, which ? "levels together|points beyond the sum"
                                                                 : "levels together|ms beyond the sum");
        for (size_t i = 0; i < count && i < SHOWN; i++) {
            char name[160];
            effect_name(tradeoff, report->results, &tradeoff->effects[which][found[i].at], name);
            text_list_add(table, "%s", name);
            write_effect(table, &tradeoff->effects[which][found[i].at], which ? 100 : 1);
        }
    }
    free(found);
}
static void write_knob_fronts(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    if (!tradeoff->knob_front_count) return;
    document_text(document, BLOCK_HEADING, "E2: fronts with one knob fixed");
    document_text(
        document, BLOCK_LINE,
        "area dominated by the front, up to the slowest and the least accurate configuration, as %% of the whole "
        "front's");
    struct text_list *table = document_table(document, "fixed|points|area %|fastest|most accurate");
    for (size_t i = 0; i < tradeoff->knob_front_count; i++) {
        const struct knob_front *front = &tradeoff->fronts[i];
        char level[KNOB_TEXT_BYTES], fast[80], best[80];
        text_list_add(table, "%s %s", KNOBS[front->knob].axis,
                      report_level_text(tradeoff, report->results, front->knob, front->level, level));
        CELLS(table, number_whole(front->count).text, number_percent(front->area / tradeoff->area).text,
              front->count ? config_text(report, tradeoff, front->front[0], fast) : "-",
              front->count ? config_text(report, tradeoff, front->front[front->count - 1], best) : "-");
    }
}
static void write_gains(struct document *document, const struct report *report, const struct tradeoff *tradeoff) {
    struct text_list *table = NULL;
    int is_any_free = 0;
    for (size_t i = 0; i < tradeoff->gain_count; i++) {
        const struct knob_gain *gain = &tradeoff->gains[i];
        const int is_free = !(gain->gain.latency.mean > 0);
        char from[80], level[KNOB_TEXT_BYTES];
        if (!is_listed(tradeoff->front, tradeoff->front_count, gain->from)) continue;
        if (!table) {
            document_text(document, BLOCK_HEADING,
                          "E2: gain from a knob's next level, for the points on the front; means over samples");
            table = document_table(document, "from|to|ms more|points more|points per ms");
        }
        for (int32_t k = 0, level_index = 0; k < tradeoff->knobs.knob_count; k++) {
            if (tradeoff->knob_of[k] != gain->knob) continue;
            level_index = tradeoff->levels[gain->to * (size_t)tradeoff->knobs.knob_count + (size_t)k];
            report_level_text(tradeoff, report->results, gain->knob, level_index, level);
        }
        text_list_add(table, "%s", config_text(report, tradeoff, gain->from, from));
        text_list_add(table, "%s %s", KNOBS[gain->knob].axis, level);
        CELLS(table, number_estimate(1, gain->gain.latency.mean, gain->gain.latency.low, gain->gain.latency.high).text,
              number_estimate(100, gain->gain.accuracy.mean, gain->gain.accuracy.low, gain->gain.accuracy.high).text);
        is_any_free |= is_free;
        if (is_free) text_list_add(table, "-");
        else if (isfinite(gain->gain.low) && isfinite(gain->gain.high))
            text_list_add(table, "%s", number_estimate(100, gain->gain.gain, gain->gain.low, gain->gain.high).text);
        else text_list_add(table, "unbounded"); /* the latency may be unchanged */
    }
    if (is_any_free)
        document_text(document, BLOCK_LINE, "-: the next level was not slower, so points per ms is undefined%s",
                      is_measured_busy(report) ? "; these times come from a busy machine, which can hide the cost"
                                               : "");
}
/* Writes the loss from pruning image tokens, compared with all tokens and with random ones. */
static void write_pruning(struct document *document, const struct report *report, size_t group) {
    const struct tradeoff *tradeoff = &report->tradeoffs[group];
    const struct table table = pruned_table(&report->pruned[group]);
    if (!table.row_count) return;
    document_text(document, BLOCK_HEADING, "E2: accuracy against kept image tokens, %s",
                  report->results->files[tradeoff->group->first].dataset_name);
    document_text(document, BLOCK_LINE,
                  "points: accuracy minus that without pruning, and minus that with the same number of random tokens "
                  "(within 5 %%), paired over %zu samples, with 95 %% intervals; prefill: speedup factor, including "
                  "prune",
                  tradeoff->sample_count);
    document_add_table(document, &table);
}
static void write_categories(struct document *document, const struct report *report) {
    const struct table categories = category_table(&report->categories);
    if (!categories.row_count) return;
    document_text(document, BLOCK_HEADING, "Accuracy by %s", report->by);
    document_add_table(document, &categories);
}
static void write_loads(struct document *document, const struct report *report) {
    const struct table loads = load_table(&report->loads);
    if (!loads.row_count) return;
    document_text(document, BLOCK_HEADING, "Under load: times from the due time, over requests [95 %% interval]");
    document_add_table(document, &loads);
    document_text(document, BLOCK_LINE, "failed samples count as wrong; correct/s: done/s times accuracy");
}
void report_text_write(struct document *document, const struct report *report) {
    write_summary(document, report);
    write_loads(document, report);
    for (size_t i = 0; i < report->results->group_count; i++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[i];
        if (tradeoff->reason[0]) {
            document_text(document, BLOCK_HEADING, "E2: %s", first_of(report->results, i)->dataset_name);
            document_text(document, BLOCK_LINE, "no front: %s", tradeoff->reason);
            continue;
        }
        write_front(document, report, tradeoff);
        write_near_front(document, report, tradeoff);
    }
    for (size_t i = 0; i < report->results->group_count; i++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[i];
        if (tradeoff->reason[0] && !tradeoff->order) continue;
        write_effects(document, report, tradeoff);
        write_pairs(document, report, tradeoff);
        write_knob_fronts(document, report, tradeoff);
        write_gains(document, report, tradeoff);
        write_pruning(document, report, i);
    }
    for (size_t i = 0; i < report->results->group_count; i++) write_agreement(document, report->results, i);
    write_categories(document, report);
    write_shares(document, report);
    write_parts(document, report);
    for (size_t i = 0; i < report->results->group_count; i++) write_curves(document, report, i);
    write_roofline(document, report);
    write_outside(document, report);
    write_latencies(document, report);
    write_provenance(document, report);
}
