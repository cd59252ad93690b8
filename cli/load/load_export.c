/* load_export.c: writes trials in the formats of other tools, and their requests as CSV. Names and definitions are
 * those of AIPerf 0.13 (docs/metrics-reference.md, docs/reference/json-export-schema.md) and of vLLM's
 * benchmarks/serve.py (commit 009e6d4): latencies are measured from the time of sending, the duration is from the first
 * request sent to the last one completed, and the standard deviation is the population's. OpenMetrics uses the names of
 * OpenTelemetry's semantic conventions for generative AI where they exist. */
#include "load/load_export.h"

#include "base/console.h"
#include "base/files.h"
#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A trial's requests that are due within its window, with sums over the answered requests. */
struct exported {
    const struct load_level *level;
    struct load_request *requests; size_t count;        /* all requests of the trial */
    const struct load_record **chosen; size_t in_window;
    double completed, failed, good, input, output, begin_s, end_s;
};

/* ---- the rows: numbers with many values, and single ones */
enum { OF_TTFT, OF_TPOT, OF_ITL, OF_E2E, OF_QUEUED, OF_E2E_QUEUED, OF_INPUT, OF_OUTPUT };
/* vllm: NULL if that tool lacks the number. scale: factor to the unit of OpenMetrics */
struct many_row { int which; const char *aiperf, *unit, *vllm, *openmetrics, *labels; double scale; };
static const struct many_row MANY[] = {
    {OF_TTFT, "time_to_first_token", "ms", "ttft", "gen_ai_client_operation_time_to_first_chunk_seconds", "", 1e-3},
    {OF_TPOT, "inter_token_latency", "ms", "tpot", "gen_ai_server_time_per_output_token_seconds", "", 1e-3},
    {OF_ITL, "inter_chunk_latency", "ms", "itl", "gen_ai_client_operation_time_per_output_chunk_seconds", "", 1e-3},
    {OF_E2E, "request_latency", "ms", "e2el", "gen_ai_client_operation_duration_seconds", "", 1e-3},
    {OF_QUEUED, NULL, "ms", "client_queue_time", "vlmprof_client_queue_seconds", "", 1e-3},
    {OF_E2E_QUEUED, NULL, "ms", "e2el_including_client_queue", "vlmprof_client_queue_and_operation_duration_seconds",
     "", 1e-3},
    {OF_INPUT, "input_sequence_length", "tokens", NULL, "gen_ai_client_token_usage", ",gen_ai_token_type=\"input\"", 1},
    {OF_OUTPUT, "output_sequence_length", "tokens", NULL, "gen_ai_client_token_usage", ",gen_ai_token_type=\"output\"",
     1}};
enum { MANY_COUNT = sizeof MANY / sizeof *MANY };

static double duration_of(const struct exported *trial) { return trial->end_s - trial->begin_s; }
static double completed_of(const struct exported *trial) { return trial->completed; }
static double failed_of(const struct exported *trial) { return trial->failed; }
static double good_of(const struct exported *trial) { return trial->level->slo ? trial->good : (double)NAN; }
static double input_of(const struct exported *trial) { return trial->input; }
static double output_of(const struct exported *trial) { return trial->output; }
static double request_rate_of(const struct exported *trial) { return trial->completed / duration_of(trial); }
static double goodput_of(const struct exported *trial) { return good_of(trial) / duration_of(trial); }
static double prompt_rate_of(const struct exported *trial) { return trial->input / duration_of(trial); }
static double answer_rate_of(const struct exported *trial) { return trial->output / duration_of(trial); }
static double token_rate_of(const struct exported *trial) {
    return (trial->input + trial->output) / duration_of(trial);
}
struct one_row {
    double (*value)(const struct exported *trial);
    const char *aiperf, *unit, *vllm, *openmetrics;
    int is_whole;
};
static const struct one_row ONE[] = {
    {duration_of, "benchmark_duration", "sec", "duration", "vlmprof_benchmark_duration_seconds", 0},
    {completed_of, "request_count", "requests", "completed", "vlmprof_requests_completed", 1},
    {failed_of, "error_request_count", "requests", "failed", "vlmprof_requests_failed", 1},
    {good_of, "good_request_count", "requests", NULL, "vlmprof_requests_good", 1},
    {input_of, "total_isl", "tokens", "total_input_tokens", "vlmprof_input_tokens", 1},
    {output_of, "total_osl", "tokens", "total_output_tokens", "vlmprof_output_tokens", 1},
    {request_rate_of, "request_throughput", "requests/sec", "request_throughput", "vlmprof_request_throughput", 0},
    {goodput_of, "goodput", "requests/sec", "request_goodput", "vlmprof_goodput", 0},
    {prompt_rate_of, "input_token_throughput", "tokens/sec", NULL, "vlmprof_input_token_throughput", 0},
    {answer_rate_of, "output_token_throughput", "tokens/sec", "output_throughput",
     "vlmprof_output_token_throughput", 0},
    {token_rate_of, "total_token_throughput", "tokens/sec", "total_token_throughput", "vlmprof_total_token_throughput",
     0}};
enum { ONE_COUNT = sizeof ONE / sizeof *ONE };

/* ---- a trial's numbers */
static double number_of_request(const struct load_record *record, int which) {
    if (record->reason) return (double)NAN;
    switch (which) {
    case OF_TTFT: return load_latency(record, LOAD_TTFT_SENT);
    case OF_TPOT: return load_latency(record, LOAD_TPOT);
    case OF_E2E: return load_latency(record, LOAD_E2E_SENT);
    case OF_QUEUED: return load_latency(record, LOAD_QUEUED);
    case OF_E2E_QUEUED: return load_latency(record, LOAD_QUEUED) + load_latency(record, LOAD_E2E_SENT);
    case OF_INPUT: return record->usage.prompt_tokens >= 0 ? (double)record->usage.prompt_tokens : (double)NAN;
    default: return record->usage.completion_tokens >= 0 ? (double)record->usage.completion_tokens : (double)NAN;
    }
}
/* The values of a row, ascending, malloc'ed. */
static double *values_of(const struct exported *trial, int which, size_t *count) {
    double *values;
    if (which == OF_ITL) values = load_gaps(trial->chosen, trial->in_window, count);
    else {
        values = resize(NULL, trial->in_window + 1, sizeof *values);
        *count = 0;
        for (size_t i = 0; i < trial->in_window; i++) {
            const double value = number_of_request(trial->chosen[i], which);
            if (isfinite(value)) values[(*count)++] = value;
        }
    }
    vp_sort_double(values, *count);
    return values;
}
static void exported_free(struct exported *trial) {
    load_requests_free(trial->requests, trial->count);
    free((void *)trial->chosen);
}
static int exported_read(struct exported *trial, const struct load_level *level) {
    const vp_slo none = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    vp_slo slo = none;
    int code;
    memset(trial, 0, sizeof *trial);
    trial->level = level;
    trial->begin_s = HUGE_VAL;
    if ((code = load_level_requests(level, &trial->requests, &trial->count)) != 0) return code;
    if (level->slo) vp_slo_parse(level->slo, &slo, NULL);
    trial->chosen = (const struct load_record **)resize(NULL, trial->count + 1, sizeof *trial->chosen);
    for (size_t i = 0; i < trial->count; i++) {
        const struct load_record *record = &trial->requests[i].record;
        const double due_s = (double)record->due_ns / 1e9;
        if (due_s < level->summary.from_s || due_s >= level->summary.to_s) continue;
        trial->chosen[trial->in_window++] = record;
        trial->failed += record->reason != NULL;
        if (record->reason) continue;
        trial->completed++;
        trial->good += load_is_good(record, &slo);
        trial->begin_s = fmin(trial->begin_s, (double)record->start_ns / 1e9);
        trial->end_s = fmax(trial->end_s, (double)record->end_ns / 1e9);
        if (record->usage.prompt_tokens > 0) trial->input += (double)record->usage.prompt_tokens;
        if (record->usage.completion_tokens > 0) trial->output += (double)record->usage.completion_tokens;
    }
    return 0;
}

/* ---- AIPerf: profile_export_aiperf.json */
static void put_time(vp_json_writer *writer, const char *key, const struct load_level *level, double since_s) {
    char text[32] = "";
    const time_t at = (time_t)(level->begin_unix_s + (int64_t)since_s);
    struct tm parts;
    if (gmtime_r(&at, &parts)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    PUT(writer, KEY(key, text));
}
static void write_aiperf(vp_json_writer *writer, const struct exported *trial) {
    static const double percentiles[] = {1, 5, 10, 25, 50, 75, 90, 95, 99};
    PUT(writer, KEY("schema_version", "1.5"), KEY_BOOL("was_cancelled", !trial->level->is_complete));
    put_time(writer, "start_time", trial->level, trial->begin_s);
    put_time(writer, "end_time", trial->level, trial->end_s);
    for (size_t i = 0; i < ONE_COUNT; i++)
        if (isfinite(ONE[i].value(trial)))
            PUT(writer, KEY_OBJECT(ONE[i].aiperf), KEY("unit", ONE[i].unit), KEY("avg", ONE[i].value(trial)),
                END_OBJECT);
    for (size_t i = 0; i < MANY_COUNT; i++) {
        size_t count;
        double *values = values_of(trial, MANY[i].which, &count);
        if (count && MANY[i].aiperf) {
            PUT(writer, KEY_OBJECT(MANY[i].aiperf), KEY("unit", MANY[i].unit),
                KEY("avg", vp_statistics_mean(values, count)), KEY("min", values[0]), KEY("max", values[count - 1]));
            for (size_t p = 0; p < sizeof percentiles / sizeof *percentiles; p++) {
                char key[16];
                snprintf(key, sizeof key, "p%g", percentiles[p]);
                PUT(writer, KEY(key, vp_statistics_percentile(values, count, percentiles[p])));
            }
            PUT(writer, KEY("std", vp_statistics_std(values, count)), KEY("count", (int64_t)count),
                KEY("sum", vp_statistics_sum(values, count)), END_OBJECT);
        }
        free(values);
    }
}

/* ---- vLLM: the result file of `vllm bench serve --save-result --save-detailed` */
static void put_value(vp_json_writer *writer, const struct one_row *row, double value) {
    if (row->is_whole) PUT(writer, KEY(row->vllm, (int64_t)value)); else PUT(writer, KEY(row->vllm, value));
}
enum { LIST_INPUT, LIST_OUTPUT, LIST_TTFT, LIST_ITL, LIST_LATENCY, LIST_START, LIST_QUEUE, LIST_TEXT, LIST_ERROR };
static void put_element(vp_json_writer *writer, const struct load_record *record, int list) {
    const int64_t tokens = list == LIST_INPUT ? record->usage.prompt_tokens : record->usage.completion_tokens;
    const double wait_s = load_latency(record, LOAD_QUEUED) / 1e3;
    switch (list) {
    case LIST_INPUT:
    case LIST_OUTPUT: PUT(writer, KEY(NULL, !record->reason && tokens > 0 ? tokens : (int64_t)0)); break;
    case LIST_TTFT: PUT(writer, KEY(NULL, load_latency(record, LOAD_TTFT_SENT) / 1e3)); break;
    case LIST_LATENCY: PUT(writer, KEY(NULL, load_latency(record, LOAD_E2E_SENT) / 1e3)); break;
    case LIST_START: PUT(writer, KEY(NULL, (double)record->start_ns / 1e9)); break;
    case LIST_QUEUE: PUT(writer, KEY(NULL, isfinite(wait_s) ? wait_s : 0)); break;
    case LIST_TEXT: json_lossy(writer, record->answer ? record->answer : ""); break;
    case LIST_ERROR: json_lossy(writer, record->reason ? record->reason : ""); break;
    default:
        PUT(writer, KEY_ARRAY(NULL));
        for (size_t k = 0; k < record->gap_count && !record->reason; k++)
            PUT(writer, KEY(NULL, record->gaps_us[k] / 1e6));
        PUT(writer, END_ARRAY);
    }
}
static void write_vllm(vp_json_writer *writer, const struct exported *trial) {
    static const char *const lists[] = {"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times",
                                        "queue_times", "generated_texts", "errors"};
    const struct load_level *level = trial->level;
    PUT(writer, KEY("backend", "openai-chat"), KEY("model_id", level->model),
        KEY("num_prompts", (int64_t)trial->in_window));
    if (level->rate > 0) PUT(writer, KEY("request_rate", level->rate)); else PUT(writer, KEY("request_rate", "inf"));
    PUT(writer, KEY_KNOWN("max_concurrency", level->concurrency || level->places,
                          level->concurrency ? level->concurrency : level->places));
    for (size_t i = 0; i < ONE_COUNT; i++)
        if (ONE[i].vllm) put_value(writer, &ONE[i], ONE[i].value(trial));
    for (int list = 0; list <= LIST_ERROR; list++) {
        PUT(writer, KEY_ARRAY(lists[list]));
        for (size_t i = 0; i < trial->in_window; i++) put_element(writer, trial->chosen[i], list);
        PUT(writer, END_ARRAY);
    }
    for (size_t i = 0; i < MANY_COUNT; i++) {
        size_t count;
        double *values = values_of(trial, MANY[i].which, &count);
        char key[80];
        if (count && MANY[i].vllm) {
            const struct { const char *name; double value; } numbers[] = {
                {"mean", vp_statistics_mean(values, count)}, {"median", vp_statistics_percentile(values, count, 50)},
                {"std", vp_statistics_std(values, count)}, {"p90", vp_statistics_percentile(values, count, 90)},
                {"p95", vp_statistics_percentile(values, count, 95)},
                {"p99", vp_statistics_percentile(values, count, 99)}};
            for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
                snprintf(key, sizeof key, "%s_%s_ms", numbers[k].name, MANY[i].vllm);
                PUT(writer, KEY(key, numbers[k].value));
            }
        }
        free(values);
    }
}

/* ---- OpenMetrics: all trials in one file, grouped by metric family */
static void add_labels(struct text_buffer *out, const struct load_level *level, const char *more,
                       const char *quantile) {
    char load[48];
    text_add_string(out, "{gen_ai_request_model=\"");
    for (const char *at = level->model ? level->model : ""; *at; at++) {
        if (*at == '"' || *at == '\\') text_add(out, "\\", 1);
        text_add(out, *at == '\n' ? " " : at, 1);
    }
    text_add_format(out, "\",trial=\"%s\"%s", load_level_text(level, load), more);
    if (quantile) text_add_format(out, ",quantile=\"%s\"", quantile);
    text_add_string(out, "} ");
}
static void add_sample(struct text_buffer *out, const char *name, const char *ending, double value,
                       const struct load_level *level, const char *more, const char *quantile) {
    char number[32];
    text_add_format(out, "%s%s", name, ending);
    add_labels(out, level, more, quantile);
    vp_number_format(value, number);
    text_add_format(out, "%s\n", number);
}
static void add_family(struct text_buffer *out, const char *name, const char *type) {
    const char *unit = strlen(name) > 8 && !strcmp(name + strlen(name) - 8, "_seconds") ? "seconds" : NULL;
    text_add_format(out, "# TYPE %s %s\n", name, type);
    if (unit) text_add_format(out, "# UNIT %s %s\n", name, unit);
}
static void add_summary(struct text_buffer *out, const struct exported *trial, const struct many_row *row) {
    static const char *const quantiles[] = {"0.5", "0.9", "0.95", "0.99"};
    size_t count;
    double *values = values_of(trial, row->which, &count);
    for (size_t q = 0; count && q < sizeof quantiles / sizeof *quantiles; q++)
        add_sample(out, row->openmetrics, "",
                   row->scale * vp_statistics_percentile(values, count, 100 * strtod(quantiles[q], NULL)), trial->level,
                   row->labels, quantiles[q]);
    if (count) {
        add_sample(out, row->openmetrics, "_sum", row->scale * vp_statistics_sum(values, count), trial->level,
                   row->labels, NULL);
        add_sample(out, row->openmetrics, "_count", (double)count, trial->level, row->labels, NULL);
    }
    free(values);
}
static void write_openmetrics(struct text_buffer *out, const struct exported *trials, size_t count) {
    for (size_t i = 0; i < MANY_COUNT; i++) {
        if (!i || strcmp(MANY[i].openmetrics, MANY[i - 1].openmetrics) != 0)
            add_family(out, MANY[i].openmetrics, "summary");
        for (size_t k = 0; k < count; k++) add_summary(out, &trials[k], &MANY[i]);
    }
    for (size_t i = 0; i < ONE_COUNT; i++) {
        add_family(out, ONE[i].openmetrics, "gauge");
        for (size_t k = 0; k < count; k++)
            if (isfinite(ONE[i].value(&trials[k])))
                add_sample(out, ONE[i].openmetrics, "", ONE[i].value(&trials[k]), trials[k].level, "", NULL);
    }
    text_add_string(out, "# EOF\n");
}

/* ---- files */
/* "out.json" and rate 4: "out_rate4.json" */
static char *path_of_trial(const char *path, const struct load_level *level) {
    struct text_buffer out = {NULL, 0, 0};
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t bytes = dot ? (size_t)(dot - path) : strlen(path);
    char name[48];
    text_add(&out, path, bytes);
    text_add_format(&out, "_%s%s", load_level_name(level, name), path + bytes);
    return out.data;
}
static int write_json(const char *path, const struct exported *trial, int is_vllm) {
    struct text_buffer out = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &out, 2);
    vp_json_begin_object(&writer);
    if (is_vllm) write_vllm(&writer, trial); else write_aiperf(&writer, trial);
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) != VP_OK) abort(); /* out of memory would have ended the program before */
    text_add_string(&out, "\n");
    int code = file_write_text(path, &out);
    free(out.data);
    return code;
}
int load_export_check(const char *const *pairs, size_t count) {
    if (count % 2)
        return complain(EXIT_USAGE, "--export needs a format and a file: aiperf, vllm or openmetrics, then FILE");
    for (size_t i = 0; i < count; i += 2)
        if (!has_word(LOAD_EXPORT_FORMATS, pairs[i]))
            return complain_word("export", "format", pairs[i], LOAD_EXPORT_FORMATS);
    return 0;
}
int load_export(const char *format, const char *path, const struct load_level *levels, size_t count) {
    struct exported *trials = zeroed(count, sizeof *trials);
    struct text_buffer out = {NULL, 0, 0};
    size_t read = 0;
    int code = 0;
    for (; read < count && !code; read++) code = exported_read(&trials[read], &levels[read]);
    if (!code && !strcmp(format, "openmetrics")) {
        write_openmetrics(&out, trials, count);
        code = file_write_text(path, &out);
    } else {
        for (size_t i = 0; i < count && !code; i++) {
            char *own = count > 1 ? path_of_trial(path, &levels[i]) : copy_text(path, strlen(path));
            code = write_json(own, &trials[i], !strcmp(format, "vllm"));
            free(own);
        }
    }
    for (size_t i = 0; i < read; i++) exported_free(&trials[i]);
    FREE_ALL(trials, out.data);
    return code;
}
/* The "id" of each body's record as text, malloc'ed; NULL if it has none. */
static char **ids_of(const struct load_bodies *bodies) {
    char **ids = (char **)zeroed(bodies->count + 1, sizeof *ids);
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    for (size_t i = 0; i < bodies->count; i++) {
        const char *record = bodies->samples[i].record;
        if (!record || parse_json(&parsed, record, strlen(record), NULL) != VP_OK) continue;
        uint32_t id = vp_json_get(&parsed.json, 0, "id");
        if (id == VP_JSON_NONE) continue;
        ids[i] = node_text(&parsed.json, id);
        if (!ids[i] && node_is(&parsed.json, id, VP_JSON_NUMBER)) {
            char text[40];
            snprintf(text, sizeof text, "%.17g", node_number(&parsed.json, id));
            ids[i] = copy_text(text, strlen(text));
        }
    }
    free(parsed.nodes);
    return ids;
}
static const char *id_of(const struct load_bodies *bodies, char *const *ids, int64_t sample_id) {
    for (size_t i = 0; i < bodies->count; i++) if (bodies->ids[i] == sample_id) return ids[i];
    return NULL;
}
int load_export_requests(const char *path, const struct load_level *levels, size_t count,
                         const struct load_bodies *bodies) {
    struct text_buffer out = {NULL, 0, 0};
    char **ids = ids_of(bodies);
    int code = 0;
    text_add_string(&out, "trial,counted,id");
    fields_csv_heads(&out, &LOAD_REQUEST);
    for (size_t i = 0; i < count && !code; i++) {
        struct load_request *requests;
        size_t request_count;
        char load[48];
        if ((code = load_level_requests(&levels[i], &requests, &request_count)) != 0) break;
        for (size_t k = 0; k < request_count; k++) {
            const double due_s = (double)requests[k].record.due_ns / 1e9;
            const char *id = id_of(bodies, ids, requests[k].sample_id);
            csv_text(&out, load_level_text(&levels[i], load));
            text_add_string(&out, due_s >= levels[i].summary.from_s && due_s < levels[i].summary.to_s ? ",1," : ",0,");
            csv_text(&out, id ? id : "");
            fields_csv(&out, &LOAD_REQUEST, &requests[k]);
        }
        load_requests_free(requests, request_count);
    }
    if (!code) code = file_write_text(path, &out);
    for (size_t i = 0; i < bodies->count; i++) free(ids[i]);
    FREE_ALL((void *)ids, out.data);
    return code;
}
