/* load_law.c: the additional time of requests under load, compared with their server's latency model. */
#include "load/load_law.h"

#include "base/console.h"
#include "vlmprof_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const WAIT_NAMES[WAIT_PARTS][WAIT_PERCENTILES] = {{"TTFT P50", "TTFT P95"}, {"E2E P50", "E2E P95"}};
static const char *const PART_KEYS[WAIT_PARTS] = {"TTFT", "T_total"};
static const char *const PERCENTILE_KEYS[WAIT_PERCENTILES] = {"p50", "p95"};
static const double PERCENTILES[WAIT_PERCENTILES] = {50, 95};

/* ---- one trial */
/* Returns 1 if the sample of a request is in the results with the same number of prompt tokens. */
static int can_match(const struct results *results, const struct server_law *law, const struct load_level *level,
                     const struct load_request *asked, struct law_request *request) {
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        size_t row;
        if (!law_is_of(law, file) || strcmp(file->dataset_name, level->task ? level->task : "")) continue;
        row = result_row(file, asked->sample_id);
        if (row < file->count && law_request_of(law, file, row, request)
            && fabs(request->prompt_tokens - (double)asked->record.usage.prompt_tokens) <= 0) {
            request->output_tokens = (double)asked->record.usage.completion_tokens;
            return 1;
        }
    }
    return 0;
}
static struct wait_value percentile_of(const double *waits, size_t count, double percentile, double *scratch) {
    struct wait_value value = {(double)NAN, (double)NAN, (double)NAN};
    vp_series_value series;
    if (!count || !vp_statistics_percentile_supported(count, percentile)
        || vp_series_percentile(waits, count, percentile, MODEL_LEVEL, scratch, &series) != VP_OK)
        return value;
    value.value = series.value;
    value.low = series.low;
    value.high = series.high;
    return value;
}
/* Measures the waits of a trial's requests. Returns the number of requests with a sample in the results. */
static size_t measure_waits(const struct results *results, const struct server_law *law, const struct load_level *level,
                            const struct load_request *asked, size_t count, struct load_wait *wait) {
    double *waits = resize(NULL, count + 1, (WAIT_PARTS + 3) * sizeof *waits),
           *scratch = waits + WAIT_PARTS * (count + 1);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const struct load_record *record = &asked[i].record;
        const double due_s = (double)record->due_ns / 1e9, ttft = load_latency(record, LOAD_TTFT),
                     e2e = load_latency(record, LOAD_E2E);
        struct law_request request;
        struct prediction prediction;
        if (due_s < level->summary.from_s || due_s >= level->summary.to_s || !isfinite(ttft) || !isfinite(e2e))
            continue;
        if (!can_match(results, law, level, &asked[i], &request)) continue;
        law_predict(law, &request, &prediction);
        if (!isfinite(prediction.value[LAW_TOTAL])) continue;
        waits[WAIT_TTFT * (count + 1) + known] = ttft - prediction.value[LAW_TTFT];
        waits[WAIT_E2E * (count + 1) + known++] = e2e - prediction.value[LAW_TOTAL];
    }
    wait->rate = level->rate;
    wait->requests = (int64_t)known;
    for (int part = 0; part < WAIT_PARTS; part++)
        for (int p = 0; p < WAIT_PERCENTILES; p++)
            wait->of[part][p] = percentile_of(waits + (size_t)part * (count + 1), known, PERCENTILES[p], scratch);
    free(waits);
    return known;
}
static int has_waits(const struct load_wait *wait) {
    for (int part = 0; part < WAIT_PARTS; part++)
        for (int p = 0; p < WAIT_PERCENTILES; p++) if (!isfinite(wait->of[part][p].value)) return 0;
    return 1;
}

/* ---- between trials */
static struct wait_value between(const struct wait_value *left, const struct wait_value *right, double share) {
    struct wait_value value = {left->value + share * (right->value - left->value),
                               left->low + share * (right->low - left->low),
                               left->high + share * (right->high - left->high)};
    return value;
}
static void interpolate(const struct load_wait *left, const struct load_wait *right, double rate,
                        struct wait_value of[WAIT_PARTS][WAIT_PERCENTILES]) {
    const double share = right->rate > left->rate ? (rate - left->rate) / (right->rate - left->rate) : 0;
    for (int part = 0; part < WAIT_PARTS; part++)
        for (int p = 0; p < WAIT_PERCENTILES; p++)
            of[part][p] = between(&left->of[part][p], &right->of[part][p], share);
}
int load_wait_at(const struct load_laws *loads, const struct server_laws *laws, size_t law, double rate,
                 struct load_wait *wait) {
    const struct load_law *load = NULL;
    size_t right = 0;
    for (size_t i = 0; i < loads->count; i++) if (loads->items[i].law == law) load = &loads->items[i];
    if (!load)
        return complain(EXIT_USAGE, "predict: --rate: the model has no load trials of %s at %s: fit them with the "
                                    "sweep", laws->items[law].model, laws->items[law].endpoint);
    if (!(rate >= load->items[0].rate && rate <= load->items[load->count - 1].rate))
        return complain(EXIT_USAGE,
                        "predict: --rate %g is outside the measured rates of %s, %g to %g, so nothing is known "
                        "there (vlmprof load measures it)",
                        rate, laws->items[law].model, load->items[0].rate, load->items[load->count - 1].rate);
    while (load->items[right].rate < rate) right++;
    wait->rate = rate;
    wait->requests = load->items[right].requests;
    interpolate(&load->items[right ? right - 1 : 0], &load->items[right], rate, wait->of);
    return 0;
}
static void hold_out(struct load_law *load) {
    load->held_out = zeroed(load->count, sizeof *load->held_out);
    for (size_t i = 0; i < load->count; i++) {
        const int is_inside = i && i + 1 < load->count;
        for (int part = 0; part < WAIT_PARTS; part++)
            for (int p = 0; p < WAIT_PERCENTILES; p++) load->held_out[i][part][p].value = (double)NAN;
        if (is_inside) interpolate(&load->items[i - 1], &load->items[i + 1], load->items[i].rate, load->held_out[i]);
    }
}

/* ---- all trials */
/* Adds a trial, unless it has no information about rates. Returns 0 or an exit code. */
static int add_trial(const struct load_level *level, const struct results *results, const struct server_law *law,
                     struct load_law *load, struct text_list *warnings) {
    struct load_request *asked = NULL;
    struct load_wait wait;
    size_t count = 0, known;
    char name[48];
    int code;
    load_level_text(level, name);
    if (load->count && !(level->rate > load->items[load->count - 1].rate)) {
        text_list_add(warnings, "%s: skipped: another trial has the same rate", level->path);
        return 0;
    }
    if (load_level_saturates(level)) {
        text_list_add(warnings,
                      "%s: skipped: the queue grew during the whole trial, so its waits depend on the duration",
                      name);
        return 0;
    }
    if ((code = load_level_requests(level, &asked, &count)) != 0) return code;
    known = measure_waits(results, law, level, asked, count, &wait);
    if (!has_waits(&wait))
        text_list_add(warnings,
                      "%s: skipped: only %zu requests have samples of these sweeps with the same token count", name,
                      known);
    else {
        load->items = resize(load->items, load->count + 1, sizeof *load->items);
        load->items[load->count++] = wait;
    }
    load_requests_free(asked, count);
    return 0;
}
int load_laws_fit(const struct load_levels *levels, const struct results *results, const struct server_laws *laws,
                  struct load_laws *loads) {
    size_t used = 0;
    int code = 0;
    memset(loads, 0, sizeof *loads);
    loads->items = zeroed(laws->count + 1, sizeof *loads->items);
    for (size_t law = 0; law < laws->count && !code; law++) {
        struct load_law *load = &loads->items[loads->count];
        load->law = law;
        for (size_t i = 0; i < levels->count && !code; i++) {
            const struct load_level *level = &levels->items[i];
            if (level->concurrency || level->places || !level->endpoint || !level->model
                || strcmp(level->endpoint, laws->items[law].endpoint) || strcmp(level->model, laws->items[law].model))
                continue;
            used++;
            code = add_trial(level, results, &laws->items[law], load, &loads->warnings);
        }
        if (load->count) hold_out(load);
        loads->count += load->count > 0;
    }
    if (!code && used < levels->count)
        text_list_add(&loads->warnings,
                      "%zu trials are skipped: they are by concurrency, or of another server or model",
                      levels->count - used);
    return code;
}
void load_laws_free(struct load_laws *loads) {
    for (size_t i = 0; loads->items && i < loads->count; i++) {
        FREE_ALL(loads->items[i].items, loads->items[i].held_out);
    }
    free(loads->items);
    text_list_free(&loads->warnings);
    memset(loads, 0, sizeof *loads);
}

/* ---- as JSON */
static void put_waits(vp_json_writer *writer, struct wait_value of[WAIT_PARTS][WAIT_PERCENTILES]) {
    for (int part = 0; part < WAIT_PARTS; part++) {
        PUT(writer, KEY_OBJECT(PART_KEYS[part]));
        for (int p = 0; p < WAIT_PERCENTILES; p++) {
            PUT(writer, KEY_OBJECT(PERCENTILE_KEYS[p]), KEY_ESTIMATE("ms", "interval_ms", of[part][p]), END_OBJECT);
        }
        vp_json_end_object(writer);
    }
}
void load_laws_put(vp_json_writer *writer, const struct load_laws *loads) {
    PUT(writer, KEY_ARRAY("load"));
    for (size_t i = 0; i < loads->count; i++) {
        const struct load_law *load = &loads->items[i];
        PUT(writer, KEY_OBJECT(NULL), KEY("law", load->law), KEY_ARRAY("trials"));
        for (size_t k = 0; k < load->count; k++) {
            PUT(writer, KEY_OBJECT(NULL), KEY("request_rate", load->items[k].rate),
                KEY("requests", load->items[k].requests), KEY_OBJECT("waits"));
            put_waits(writer, load->items[k].of);
            PUT(writer, END_OBJECT, KEY_OBJECT("held_out"));
            put_waits(writer, load->held_out[k]);
            PUT(writer, END_OBJECT, END_OBJECT);
        }
        PUT(writer, END_ARRAY, END_OBJECT);
    }
    PUT(writer, END_ARRAY, KEY_TEXTS("load_warnings", &loads->warnings));
}
static void read_wait(struct model_reader *reader, uint32_t object, double above, struct load_wait *wait) {
    const vp_json *json = &reader->parsed.json;
    snprintf(reader->where, sizeof reader->where, "load.trials");
    wait->rate = model_number(reader, object, "request_rate", 1e-6, 1e9);
    wait->requests = model_count(reader, object, "requests", 1, INT64_C(1) << 40);
    if (!reader->code && !(wait->rate > above))
        model_fail(reader, object, "request_rate", "is not above the previous one");
    uint32_t waits = model_member(reader, object, "waits", VP_JSON_OBJECT);
    for (int part = 0; part < WAIT_PARTS && !reader->code; part++) {
        const uint32_t percentiles = model_member(reader, waits, PART_KEYS[part], VP_JSON_OBJECT);
        for (int p = 0; p < WAIT_PERCENTILES && !reader->code; p++) {
            struct wait_value *value = &wait->of[part][p];
            const uint32_t node = model_member(reader, percentiles, PERCENTILE_KEYS[p], VP_JSON_OBJECT);
            if (reader->code) return;
            uint32_t range = vp_json_get(json, node, "interval_ms");
            value->value = model_number(reader, node, "ms", -MS_MOST, MS_MOST);
            value->low = value->high = (double)NAN;
            if (node_is(json, range, VP_JSON_NULL) || reader->code) continue;
            value->low = model_node(reader, vp_json_at(json, range, 0), "interval_ms", -MS_MOST, value->value);
            value->high = model_node(reader, vp_json_at(json, range, 1), "interval_ms", value->value, MS_MOST);
        }
    }
}
int load_laws_read(struct model_reader *reader, size_t law_count, struct load_laws *loads) {
    const vp_json *json = &reader->parsed.json;
    memset(loads, 0, sizeof *loads);
    reader->where[0] = 0;
    uint32_t list = model_member(reader, 0, "load", VP_JSON_ARRAY);
    if (reader->code) return reader->code;
    loads->items = zeroed((size_t)json->nodes[list].count + 1, sizeof *loads->items);
    uint32_t item = list + 1;
    for (uint32_t i = 0; i < json->nodes[list].count && !reader->code; i++, item = json->nodes[item].end) {
        struct load_law *load = &loads->items[loads->count++];
        snprintf(reader->where, sizeof reader->where, "load");
        load->law = (size_t)model_count(reader, item, "law", 0, (int64_t)law_count - 1);
        uint32_t trials = model_member(reader, item, "trials", VP_JSON_ARRAY);
        if (!reader->code && !json->nodes[trials].count) model_fail(reader, trials, "trials", "is empty");
        if (reader->code) break;
        load->items = zeroed(json->nodes[trials].count, sizeof *load->items);
        uint32_t trial = trials + 1;
        for (; load->count < json->nodes[trials].count && !reader->code; trial = json->nodes[trial].end) {
            read_wait(reader, trial, load->count ? load->items[load->count - 1].rate : 0, &load->items[load->count]);
            load->count++;
        }
    }
    return reader->code;
}

/* ---- in words */
static void describe_load(struct document *document, const struct server_law *law, const struct load_law *load) {
    document_text(document, BLOCK_HEADING, "Waits under load of %s at %s", law->model, law->endpoint);
    document_text(document, BLOCK_LINE, "ms beyond the latency model's prediction per request, from the due time; "
                                        "held out: interpolated from the adjacent rates, without its own trial");
    struct text_list *cells = document_table(document, "requests per second|of|requests|wait ms|held out ms|error ms");
    for (size_t i = 0; i < load->count; i++)
        for (int part = 0; part < WAIT_PARTS; part++)
            for (int p = 0; p < WAIT_PERCENTILES; p++) {
                const struct wait_value *value = &load->items[i].of[part][p];
                const double held_out = load->held_out[i][part][p].value;
                CELLS(cells, number_formatted("%g", load->items[i].rate).text, WAIT_NAMES[part][p],
                    number_whole(load->items[i].requests).text,
                    number_measured(value->value, value->low, value->high).text, number_short(held_out).text,
                    number_formatted("%+.1f", held_out - value->value).text);
            }
}
void load_laws_describe(struct document *document, const struct server_laws *laws, const struct load_laws *loads) {
    document_list(document, "Warnings of trials", &loads->warnings);
    for (size_t i = 0; i < loads->count; i++)
        describe_load(document, &laws->items[loads->items[i].law], &loads->items[i]);
}
