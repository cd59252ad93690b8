/* load_result.c: a trial as a JSON file, and what reports need of such a file. */
#include "load/load_result.h"

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "load/load_check.h"
#include "results/fields.h"
#include "vlmprof_file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void load_level_free(struct load_level *level) {
    free(level->path);
    free(level->task);
    free(level->endpoint);
    free(level->model);
    free(level->arrivals);
    free(level->slo);
    free(level->plan);
    free(level->date);
    memset(level, 0, sizeof *level);
}
const char *load_level_text(const struct load_level *level, char out[48]) {
    if (level->concurrency) snprintf(out, 48, "concurrency %d", level->concurrency);
    else snprintf(out, 48, "rate %.6g", level->rate);
    return out;
}
const char *load_level_name(const struct load_level *level, char out[48]) {
    if (level->concurrency) snprintf(out, 48, "concurrency%d", level->concurrency);
    else snprintf(out, 48, "rate%.6g", level->rate);
    return out;
}

/* ---- the numbers of a summary; good_share and the percentiles: "value", "interval", "correlation_time" */
static const struct field SERIES_ROW[] = {LOAD_SERIES_ROWS(FIELD_AT, vp_series_value)};
static const struct fields LOAD_SERIES = {SERIES_ROW, sizeof SERIES_ROW / sizeof *SERIES_ROW, sizeof(vp_series_value)};
static const struct field SUMMARY_ROW[] = {LOAD_SUMMARY_ROWS(FIELD_AT, struct load_summary)};
static const struct fields LOAD_SUMMARY = {SUMMARY_ROW, sizeof SUMMARY_ROW / sizeof *SUMMARY_ROW,
                                           sizeof(struct load_summary)};

static void put_load_members(vp_json_writer *writer, const struct load_summary *summary) {
    vp_json_begin_object(writer);
    fields_put(writer, &LOAD_SUMMARY, summary);
    for (int which = 0; which < LOAD_LATENCY_COUNT; which++) {
        vp_json_key(writer, LOAD_KEYS[which]);
        vp_json_begin_object(writer);
        put_int(writer, "count", summary->latency_count[which]);
        put_double(writer, "mean", summary->mean[which]);
        for (int p = 0; p < LOAD_PERCENTILES; p++) {
            char key[16];
            snprintf(key, sizeof key, "p%g", LOAD_PERCENTILE[p]);
            fields_put_object(writer, key, &LOAD_SERIES, &summary->latency[which][p]);
        }
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}
void put_load_summary(vp_json_writer *writer, const struct load_summary *summary) {
    vp_json_key(writer, "summary");
    put_load_members(writer, summary);
}
void put_load_level(vp_json_writer *writer, const struct load_level *level) {
    put_text(writer, "status", level->is_complete ? "complete" : "partial");
    if (level->concurrency) put_null(writer, "request_rate"); else put_double(writer, "request_rate", level->rate);
    if (level->concurrency) put_int(writer, "concurrency", level->concurrency); else put_null(writer, "concurrency");
}
/* A stamp in ms since the trial began; null: it did not come to that. */
static void put_stamp(vp_json_writer *writer, const char *key, int64_t stamp_ns) {
    put_double(writer, key, stamp_ns < 0 ? (double)NAN : (double)stamp_ns / 1e6);
}
void put_load_requests(vp_json_writer *writer, const struct load_records *records, const int64_t *sample_ids) {
    vp_json_key(writer, "requests");
    vp_json_begin_array(writer);
    for (size_t i = 0; i < records->count; i++) {
        const struct load_record *record = &records->items[i];
        vp_json_begin_object(writer);
        put_int(writer, "sample_id", sample_ids[record->body]);
        put_stamp(writer, "due_ms", record->due_ns);
        put_stamp(writer, "start_ms", record->start_ns);
        put_stamp(writer, "sent_ms", record->sent_ns);
        put_stamp(writer, "headers_ms", record->headers_ns);
        put_stamp(writer, "first_ms", record->first_ns);
        put_stamp(writer, "last_ms", record->last_ns);
        put_stamp(writer, "end_ms", record->end_ns);
        for (int which = 0; which < LOAD_LATENCY_COUNT; which++)
            put_double(writer, LOAD_KEYS[which], load_latency(record, which));
        put_int(writer, "pieces", (int64_t)record->piece_count);
        put_double(writer, "longest_gap_ms",
                   record->piece_count > 1 ? (double)record->longest_gap_ns / 1e6 : (double)NAN);
        put_int(writer, "prompt_tokens", record->usage.prompt_tokens);
        put_int(writer, "completion_tokens", record->usage.completion_tokens);
        put_int(writer, "cached_tokens", record->usage.cached_tokens);
        put_int(writer, "attempts", record->attempts);
        put_bool(writer, "new_connection", record->is_new_connection);
        vp_json_key(writer, "pred");
        if (record->reason) vp_json_null(writer);
        else vp_json_string_bytes(writer, record->answer, record->answer_bytes);
        put_double(writer, "accuracy", record->accuracy);
        put_bool(writer, "empty", record->is_empty);
        put_text(writer, "failed", record->reason);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}

/* ---- reading */
static void read_summary(const vp_json *json, uint32_t object, struct load_summary *summary) {
    fields_read(json, object, &LOAD_SUMMARY, summary);
    for (int which = 0; which < LOAD_LATENCY_COUNT; which++) {
        const uint32_t latency = vp_json_get(json, object, LOAD_KEYS[which]);
        summary->latency_count[which] = node_int(json, latency, "count", 0);
        summary->mean[which] = node_number(json, vp_json_get(json, latency, "mean"));
        for (int p = 0; p < LOAD_PERCENTILES; p++) {
            char key[16];
            snprintf(key, sizeof key, "p%g", LOAD_PERCENTILE[p]);
            fields_read(json, vp_json_get(json, latency, key), &LOAD_SERIES, &summary->latency[which][p]);
        }
    }
}
/* Truth: the numbers are those of a trial. A file is anybody's. */
static int is_level(const struct load_level *level) {
    const struct load_summary *summary = &level->summary;
    if ((level->rate > 0) == (level->concurrency > 0) || !(level->rate < 1e9)) return 0;
    return summary->due >= 0 && summary->from_s >= 0 && summary->to_s > summary->from_s && summary->to_s < 1e9;
}
/* A stamp of put_stamp in ns; -1: there is none. */
static int64_t stamp_ns(const vp_json *json, uint32_t object, const char *key) {
    const double ms = node_number(json, vp_json_get(json, object, key));
    return ms >= 0 && ms < 1e12 ? (int64_t)llround(ms * 1e6) : -1;
}
/* Returns 1 if every request was due and its counts are possible; then the array is filled. */
static int can_read_requests(const vp_json *json, uint32_t list, struct load_request **requests, size_t *count) {
    static char failed[] = "failed";
    uint32_t item = list + 1;
    if (!node_is(json, list, VP_JSON_ARRAY)) return 0;
    *requests = zeroed((size_t)json->nodes[list].count + 1, sizeof **requests);
    for (*count = 0; *count < json->nodes[list].count; item = json->nodes[item].end) {
        struct load_request *request = &(*requests)[(*count)++];
        struct load_record *record = &request->record;
        request->sample_id = node_int(json, item, "sample_id", -1);
        record->due_ns = stamp_ns(json, item, "due_ms");
        record->start_ns = stamp_ns(json, item, "start_ms");
        record->first_ns = stamp_ns(json, item, "first_ms");
        record->last_ns = stamp_ns(json, item, "last_ms");
        record->end_ns = stamp_ns(json, item, "end_ms");
        record->usage.prompt_tokens = node_int(json, item, "prompt_tokens", -1);
        record->usage.completion_tokens = node_int(json, item, "completion_tokens", -1);
        record->usage.cached_tokens = node_int(json, item, "cached_tokens", -1);
        record->attempts = (int32_t)node_int(json, item, "attempts", 1);
        record->is_new_connection = node_is(json, vp_json_get(json, item, "new_connection"), VP_JSON_TRUE);
        record->reason = has_value(json, item, "failed") ? failed : NULL;
        record->is_empty = node_is(json, vp_json_get(json, item, "empty"), VP_JSON_TRUE);
        record->accuracy = node_number(json, vp_json_get(json, item, "accuracy"));
        if (record->due_ns < 0 || record->usage.prompt_tokens > INT32_MAX || record->usage.completion_tokens > INT32_MAX
            || record->usage.cached_tokens > INT32_MAX) return 0;
    }
    return 1;
}
/* The numbers of requests, as the trial counted them. */
static struct load_summary summarize_again(const struct load_level *level, const struct load_request *requests,
                                           size_t count, const vp_slo *slo) {
    struct load_records records;
    struct load_summary summary;
    memset(&records, 0, sizeof records);
    records.items = zeroed(count + 1, sizeof *records.items);
    for (; records.count < count; records.count++) records.items[records.count] = requests[records.count].record;
    summary = load_summarize(&records, level->summary.from_s, level->summary.to_s, slo);
    free(records.items);
    return summary;
}
/* Returns 0, or an exit code after a message: the file's summary is not that of its requests. */
static int check_summary(const struct load_level *level, const vp_json *json, const struct load_summary *computed) {
    struct text_buffer text = {NULL, 0, 0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_json_writer writer;
    int code;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    put_load_members(&writer, computed);
    code = vp_json_finish(&writer) == VP_OK && parse_json(&parsed, text.data, text.bytes, NULL) == VP_OK
               ? load_check_summary(level->path, json, vp_json_get(json, 0, "summary"), &parsed.json)
               : complain(EXIT_WORK, "%s: the summary of its requests cannot be written as JSON", level->path);
    free(parsed.nodes);
    free(text.data);
    return code;
}
/* Replaces the summary that was read by that of the requests, if it says the same. Returns 0 or an exit code after a
 * message. */
static int check_level(struct load_level *level, const vp_json *json) {
    struct load_request *requests = NULL;
    struct load_summary again;
    vp_slo slo;
    size_t count = 0;
    int code;
    if (level->slo && vp_slo_parse(level->slo, &slo, NULL) != VP_OK)
        return complain(EXIT_INPUT, "%s: slo \"%.60s\" is not a list of limits", level->path, level->slo);
    if (!can_read_requests(json, vp_json_get(json, 0, "requests"), &requests, &count))
        code = complain(EXIT_INPUT, "%s: requests is no list of requests that were due", level->path);
    else {
        again = summarize_again(level, requests, count, level->slo ? &slo : NULL);
        again.incomplete = level->summary.incomplete; /* no request says this */
        code = check_summary(level, json, &again);
        level->summary = again;
    }
    free(requests);
    return code;
}
int load_level_read(const char *path, struct load_level *level) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    const vp_json *json = &parsed.json;
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL, *status = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    memset(level, 0, sizeof *level);
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), path, result, &error);
    else if (!node_is(json, 0, VP_JSON_OBJECT) || !vp_json_equals(json, vp_json_get(json, 0, "schema"), LOAD_SCHEMA))
        code = NO_TRIAL;
    else {
        const double rate = node_number(json, vp_json_get(json, 0, "request_rate"));
        const int64_t concurrency = node_int(json, 0, "concurrency", 0);
        level->rate = isfinite(rate) ? rate : 0;
        level->concurrency = concurrency > 0 && concurrency <= INT32_MAX ? (int32_t)concurrency : 0;
        level->path = copy_text(path, strlen(path));
        level->task = node_text(json, vp_json_get(json, 0, "dataset_name"));
        level->endpoint = node_text(json, vp_json_get(json, 0, "endpoint"));
        level->model = node_text(json, vp_json_get(json, 0, "endpoint_model"));
        level->arrivals = node_text(json, vp_json_get(json, 0, "arrivals"));
        level->slo = node_text(json, vp_json_get(json, 0, "slo"));
        level->plan = node_text(json, vp_json_get(json, 0, "plan"));
        level->date = node_text(json, vp_json_get(json, vp_json_get(json, 0, "provenance"), "date"));
        level->duration_s = node_number(json, vp_json_get(json, 0, "duration_s"));
        level->slo_share = node_number(json, vp_json_get(json, 0, "slo_share"));
        status = node_text(json, vp_json_get(json, 0, "status"));
        level->is_complete = status && !strcmp(status, "complete");
        read_summary(json, vp_json_get(json, 0, "summary"), &level->summary);
        if (!is_level(level)) code = complain(EXIT_INPUT, "%s: request_rate, concurrency or the window is wrong", path);
        else code = check_level(level, json);
    }
    free(status);
    free(text);
    free(parsed.nodes);
    if (code) load_level_free(level);
    return code;
}
int load_level_requests(const struct load_level *level, struct load_request **requests, size_t *count) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result result = vp_file_read(level->path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    *requests = NULL;
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), level->path, result, &error);
    else if (!can_read_requests(&parsed.json, vp_json_get(&parsed.json, 0, "requests"), requests, count)) {
        code = complain(EXIT_INPUT, "%s: requests is no list of requests that were due", level->path);
        free(*requests);
    }
    free(parsed.nodes);
    free(text);
    return code;
}
int load_level_judge(struct load_level *level, const vp_slo *slo) {
    struct load_request *requests;
    struct load_summary summary;
    size_t count;
    const int code = load_level_requests(level, &requests, &count);
    if (code) return code;
    summary = summarize_again(level, requests, count, slo);
    level->summary.due = summary.due;
    level->summary.good_share = summary.good_share;
    level->summary.goodput = summary.goodput;
    level->summary.goodput_low = summary.goodput_low;
    level->summary.goodput_high = summary.goodput_high;
    free(requests);
    return 0;
}
static int by_load(const void *left_item, const void *right_item) {
    const struct load_level *left = left_item, *right = right_item;
    if (left->concurrency != right->concurrency) return left->concurrency < right->concurrency ? -1 : 1;
    if (left->rate < right->rate || left->rate > right->rate) return left->rate < right->rate ? -1 : 1;
    return strcmp(left->path, right->path);
}
/* Truth: a file of this name can be a trial; others are not even opened. */
static int is_trial_name(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t bytes = strlen(name);
    return strstr(name, "_load_") && bytes > 5 && !strcmp(name + bytes - 5, ".json");
}
static int levels_add(struct load_levels *levels, const char *path) {
    struct load_level level;
    int code = is_trial_name(path) ? load_level_read(path, &level) : NO_TRIAL;
    if (code == NO_TRIAL) return 0; /* there are other files, too */
    if (code) return code;
    levels->items = resize(levels->items, levels->count + 1, sizeof *levels->items);
    levels->items[levels->count++] = level;
    return 0;
}
int load_levels_read(struct load_levels *levels, const char *const *operands, size_t count) {
    int code = 0;
    memset(levels, 0, sizeof *levels);
    for (size_t i = 0; i < count && !code; i++) {
        struct text_list names = {NULL, 0};
        if (!is_folder(operands[i])) { code = levels_add(levels, operands[i]); continue; }
        code = names_of_folder(operands[i], &names);
        for (size_t k = 0; k < names.count && !code; k++) {
            char *path = join_path(operands[i], names.items[k]);
            code = levels_add(levels, path);
            free(path);
        }
        text_list_free(&names);
    }
    if (levels->count) qsort(levels->items, levels->count, sizeof *levels->items, by_load);
    return code;
}
void load_levels_free(struct load_levels *levels) {
    for (size_t i = 0; i < levels->count; i++) load_level_free(&levels->items[i]);
    free(levels->items);
    memset(levels, 0, sizeof *levels);
}

/* ---- tables */
static void add_series_value(struct text_list *cells, const vp_series_value *value, double scale) {
    text_list_add(cells, "%s", number_measured(scale * value->value, scale * value->low, scale * value->high).text);
}
static void add_latencies(struct document *document, const struct load_level *levels, size_t count) {
    struct text_list *cells = document_table(
        document,
        "ms from when it was due|requests|TTFT P50|TTFT P95|TPOT P50|E2E P50|E2E P95|E2E P99|E2E P95 from send");
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        char text[48];
        CELLS(cells, load_level_text(&levels[i], text), number_whole(summary->due).text);
        add_series_value(cells, &summary->latency[LOAD_TTFT][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_TTFT][LOAD_P95], 1);
        add_series_value(cells, &summary->latency[LOAD_TPOT][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P50], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P95], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E][LOAD_P99], 1);
        add_series_value(cells, &summary->latency[LOAD_E2E_SENT][LOAD_P95], 1);
    }
}
static void add_flow(struct document *document, const struct load_level *levels, size_t count) {
    struct text_list *cells = document_table(document, "per second|due|ended|output tokens|at once|good, %|goodput|"
                                                       "accuracy|failed|empty|late sends");
    for (size_t i = 0; i < count; i++) {
        const struct load_summary *summary = &levels[i].summary;
        const double unknown = (double)NAN;
        char text[48];
        CELLS(cells, load_level_text(&levels[i], text), number_measured(summary->offered, unknown, unknown).text,
            number_measured(summary->ended, unknown, unknown).text,
            number_measured(summary->output_rate, unknown, unknown).text,
            number_measured(summary->in_flight, unknown, unknown).text);
        add_series_value(cells, &summary->good_share, 100);
        CELLS(cells, number_measured(summary->goodput, summary->goodput_low, summary->goodput_high).text,
            number_measured(summary->accuracy.value, summary->accuracy.low, summary->accuracy.high).text,
            number_whole(summary->failed).text, number_whole(summary->empty).text,
            number_whole(summary->late).text);
    }
}
void load_levels_add(struct document *document, const struct load_level *levels, size_t count) {
    add_latencies(document, levels, count);
    add_flow(document, levels, count);
    document_text(document, BLOCK_LINE, "[low, high] is a 95 %% interval that allows for requests that wait for one "
                                        "another; - where a trial is too short for the number");
    document_text(document, BLOCK_LINE, "TTFT, E2E: from the time at which a request was due; \"from send\" leaves out "
                                        "what it waited before; late: sent more than %g ms after that time",
                  LOAD_LATE_MS);
    if (levels[0].slo)
        document_text(document, BLOCK_LINE, "good: a request that met all of %s (ms), from the time it was due; "
                                            "goodput: good requests per second", levels[0].slo);
    else document_text(document, BLOCK_LINE, "good: a request that was answered (--slo sets limits)");
}
int load_levels_print(const struct load_level *levels, size_t count) {
    struct document document = {NULL, 0, NULL};
    int code;
    if (!count) return 0;
    load_levels_add(&document, levels, count);
    code = print_document(&document);
    document_free(&document);
    return code;
}

/* ---- what the trials say */
int load_level_saturates(const struct load_level *level) {
    return !level->concurrency && load_is_queue_growing(&level->summary);
}
static void find_objective(const struct load_levels *levels, struct text_list *texts) {
    const double share = isfinite(levels->items[0].slo_share) ? levels->items[0].slo_share : 0.95;
    const struct load_level *holds = NULL, *fails = NULL;
    char high[48], low[48];
    if (!levels->items[0].slo) return;
    for (size_t i = 0; i < levels->count; i++) {
        const vp_trial trial = vp_trial_of(&levels->items[i].summary.good_share, share);
        if (trial == VP_TRIAL_HOLDS && !fails) holds = &levels->items[i];
        if (trial == VP_TRIAL_FAILS && !fails) fails = &levels->items[i];
    }
    if (holds && fails)
        text_list_add(texts, "at least %g %% of the requests meet %s at %s, and no longer at %s", 100 * share,
                      levels->items[0].slo, load_level_text(holds, high), load_level_text(fails, low));
    else if (holds)
        text_list_add(texts, "at least %g %% of the requests meet %s at every load that was tried, up to %s",
                      100 * share, levels->items[0].slo, load_level_text(holds, high));
    else if (fails)
        text_list_add(texts, "no load that was tried holds %s for %g %% of the requests: at %s %.1f %% are good",
                      levels->items[0].slo, 100 * share, load_level_text(fails, high),
                      100 * fails->summary.good_share.value);
    else text_list_add(texts, "no trial was long enough to tell whether %g %% of the requests meet %s", 100 * share,
                       levels->items[0].slo);
}
void load_findings(const struct load_levels *levels, struct text_list *texts) {
    const struct load_level *best = NULL;
    char text[48];
    find_objective(levels, texts);
    for (size_t i = 0; i < levels->count; i++) {
        const struct load_level *level = &levels->items[i];
        if (!best || level->summary.output_rate > best->summary.output_rate) best = level;
    }
    if (best->summary.output_rate > 0)
        text_list_add(texts, "most output tokens per second: %s at %s, where E2E has a P50 of %s ms",
                      number_measured(best->summary.output_rate, (double)NAN, (double)NAN).text,
                      load_level_text(best, text),
                      number_measured(best->summary.latency[LOAD_E2E][LOAD_P50].value,
                                      best->summary.latency[LOAD_E2E][LOAD_P50].low,
                                      best->summary.latency[LOAD_E2E][LOAD_P50].high).text);
    for (size_t i = 0; i < levels->count; i++)
        if (load_level_saturates(&levels->items[i])) {
            text_list_add(texts, "at %s fewer requests end (%.3g per second) than are due (%.3g): the queue grows, and "
                          "latencies depend on how long the trial lasts", load_level_text(&levels->items[i], text),
                          levels->items[i].summary.ended, levels->items[i].summary.offered);
            break;
        }
    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].summary.late * 100 > levels->items[i].summary.due) {
            text_list_add(texts, "at %s %lld of %lld requests were sent late: the client was busy; only times from the "
                          "send leave that out", load_level_text(&levels->items[i], text),
                          (long long)levels->items[i].summary.late, (long long)levels->items[i].summary.due);
            break;
        }
}
