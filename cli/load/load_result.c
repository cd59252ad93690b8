/* load_result.c: writes a trial as a JSON file, and reads the parts that reports need. */
#include "load/load_result.h"

#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "load/load_check.h"
#include "vlmprof_file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests that the server's metrics do not show: so many, and so large a share of those in flight, are a finding. */
static const double UNSEEN_LEAST = 0.5, UNSEEN_SHARE = 0.3;

const char *load_level_text(const struct load_level *level, char out[48]) {
    if (level->concurrency) snprintf(out, 48, "concurrency %d", level->concurrency);
    else if (level->places) snprintf(out, 48, "rate %.6g, at most %d", level->rate, level->places);
    else snprintf(out, 48, "rate %.6g", level->rate);
    size_t bytes = strlen(out);
    if (level->tag && bytes < 40) snprintf(out + bytes, 48 - bytes, " (%.*s)", (int)(44 - bytes), level->tag);
    return out;
}
const char *load_level_name(const struct load_level *level, char out[48]) {
    if (level->concurrency) snprintf(out, 48, "concurrency%d", level->concurrency);
    else if (level->places) snprintf(out, 48, "rate%.6g_concurrency%d", level->rate, level->places);
    else snprintf(out, 48, "rate%.6g", level->rate);
    return out;
}

/* ---- the contents of a file: a trial, the size of its load, each request */
#define LEVEL struct load_level
FIELD_TABLE(LOAD_SERVER, LEVEL, LOAD_SERVER_ROWS(FIELD_AT, LEVEL))
FIELD_TABLE(LOAD_SIZE, LEVEL, LOAD_SIZE_ROWS(FIELD_AT, LEVEL))
FIELD_TABLE(LOAD_WAY, LEVEL, LOAD_WAY_ROWS(FIELD_AT, LEVEL))
FIELD_TABLE(LOAD_SAMPLES, LEVEL, LOAD_SAMPLES_ROWS(FIELD_AT, LEVEL))
FIELD_TABLE(LOAD_LEVEL, LEVEL,
            LOAD_SERVER_ROWS(FIELD_AT, LEVEL) LOAD_SIZE_ROWS(FIELD_AT, LEVEL) LOAD_WAY_ROWS(FIELD_AT, LEVEL)
                LOAD_SAMPLES_ROWS(FIELD_AT, LEVEL))
FIELD_TABLE(LOAD_REQUEST, struct load_request, LOAD_REQUEST_ROWS(FIELD_AT, struct load_request))

void load_level_free(struct load_level *level) {
    FREE_ALL(level->path, level->date, level->tag, level->failures, level->silence);
    fields_free(&LOAD_LEVEL, level);
}
void put_load_server(vp_json_writer *writer, const struct load_level *level) {
    fields_put(writer, &LOAD_SERVER, level);
}
void put_load_way(vp_json_writer *writer, const struct load_level *level) { fields_put(writer, &LOAD_WAY, level); }
void put_load_metrics(vp_json_writer *writer, const struct load_level *level) {
    fields_put(writer, &LOAD_SAMPLES, level);
}
void put_load_level(vp_json_writer *writer, const struct load_level *level) {
    struct load_level line = *level;
    line.status = level->is_complete ? "complete" : "partial";
    if (level->concurrency) line.rate = (double)NAN;
    fields_put(writer, &LOAD_SIZE, &line);
}
void put_load_requests(vp_json_writer *writer, const struct load_records *records, const struct load_body *bodies,
                       const int64_t *sample_ids) {
    PUT(writer, KEY_ARRAY("requests"));
    for (size_t i = 0; i < records->count; i++) {
        const size_t body = records->items[i].body;
        struct load_request line
            = {sample_ids[body], {bodies[body].height_px, bodies[body].width_px}, records->items[i], {0}};
        for (int which = 0; which < LOAD_LATENCY_COUNT; which++)
            line.latency[which] = load_latency(&line.record, which);
        if (line.record.reason && !line.record.answer_bytes) line.record.answer = NULL;
        if (line.record.piece_count < 2) line.record.longest_gap_ns = -1;
        vp_json_begin_object(writer);
        fields_put(writer, &LOAD_REQUEST, &line);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}

/* ---- the numbers of a summary; good_share and percentiles are objects: "value", "interval", "correlation_time" */
FIELD_TABLE(LOAD_SERIES, vp_series_value, LOAD_SERIES_ROWS(FIELD_AT, vp_series_value))
FIELD_TABLE(LOAD_SUMMARY, struct load_summary, LOAD_SUMMARY_ROWS(FIELD_AT, struct load_summary))

static void put_load_members(vp_json_writer *writer, const struct load_summary *summary) {
    vp_json_begin_object(writer);
    fields_put(writer, &LOAD_SUMMARY, summary);
    for (int which = 0; which < LOAD_SPREADS; which++) {
        if (which == LOAD_QUEUED && !summary->latency_count[which]) continue;
        PUT(writer, KEY_OBJECT(LOAD_KEYS[which]), KEY("count", summary->latency_count[which]),
            KEY("mean", summary->mean[which]), KEY("std", summary->std[which]), KEY("min", summary->least[which]),
            KEY("max", summary->most[which]));
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

/* ---- reading */
static void read_summary(const vp_json *json, uint32_t object, struct load_summary *summary) {
    fields_read(json, object, &LOAD_SUMMARY, summary);
    for (int which = 0; which < LOAD_SPREADS; which++) {
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
/* Returns 1 if the numbers are possible for a trial. A file may come from anywhere. */
static int is_level(const struct load_level *level) {
    const struct load_summary *summary = &level->summary;
    if ((level->rate > 0) == (level->concurrency > 0) || !(level->rate < 1e9)) return 0;
    return summary->due >= 0 && summary->from_s >= 0 && summary->to_s > summary->from_s && summary->to_s < 1e9;
}
void load_requests_free(struct load_request *requests, size_t count) {
    for (size_t i = 0; i < count; i++) load_record_free(&requests[i].record);
    free(requests);
}
/* Returns 1, with the array filled, if every request has a due time and its counts are possible. */
static int can_read_requests(const vp_json *json, uint32_t list, struct load_request **requests, size_t *count) {
    uint32_t item = list + 1;
    if (!node_is(json, list, VP_JSON_ARRAY)) return 0;
    *requests = zeroed((size_t)json->nodes[list].count + 1, sizeof **requests);
    for (*count = 0; *count < json->nodes[list].count; item = json->nodes[item].end) {
        struct load_request *request = &(*requests)[(*count)++];
        struct load_record *record = &request->record;
        fields_read(json, item, &LOAD_REQUEST, request);
        if (!record->attempts) record->attempts = 1; /* missing in older files */
        if (record->due_ns < 0 || record->usage.prompt_tokens > INT32_MAX || record->usage.completion_tokens > INT32_MAX
            || record->usage.cached_tokens > INT32_MAX) return 0;
    }
    return 1;
}
void load_level_note(struct load_level *level, const struct load_records *records) {
    FREE_ALL(level->failures, level->silence);
    level->failures = load_failures_text(records, level->summary.from_s, level->summary.to_s);
    level->silence = load_silence_text(records, level->summary.from_s, level->summary.to_s);
}
/* The counts of requests, as recorded by the trial. */
static struct load_summary summarize_again(struct load_level *level, const struct load_request *requests, size_t count,
                                           const vp_slo *slo) {
    struct load_records records = {0};
    struct load_summary summary;
    records.items = zeroed(count + 1, sizeof *records.items);
    for (; records.count < count; records.count++) records.items[records.count] = requests[records.count].record;
    summary = load_summarize(&records, level->summary.from_s, level->summary.to_s, slo);
    load_level_note(level, &records);
    free(records.items);
    return summary;
}
/* Returns 0, or an exit code after a message if the file's summary does not match its requests. */
static int check_summary(const struct load_level *level, const vp_json *json, const struct load_summary *computed) {
    struct text_buffer text = {NULL, 0, 0};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    put_load_members(&writer, computed);
    int code = vp_json_finish(&writer) == VP_OK && parse_json(&parsed, text.data, text.bytes, NULL) == VP_OK
                   ? load_check_summary(level->path, json, vp_json_get(json, 0, "summary"), &parsed.json)
                   : complain(EXIT_WORK, "%s: the summary of its requests cannot be written as JSON", level->path);
    FREE_ALL(parsed.nodes, text.data);
    return code;
}
/* Replaces the summary from the file by one computed from the requests, if the two agree. Returns 0 or an exit code
 * after a message. */
static int check_level(struct load_level *level, const vp_json *json) {
    struct load_request *requests = NULL;
    struct load_summary again;
    vp_slo slo;
    size_t count = 0;
    int code;
    if (level->slo && vp_slo_parse(level->slo, &slo, NULL) != VP_OK)
        return complain(EXIT_INPUT, "%s: slo \"%.60s\" is not a list of limits", level->path, level->slo);
    if (!can_read_requests(json, vp_json_get(json, 0, "requests"), &requests, &count))
        code = complain(EXIT_INPUT, "%s: \"requests\" is not a list of requests with due times", level->path);
    else {
        again = summarize_again(level, requests, count, level->slo ? &slo : NULL);
        again.incomplete = level->summary.incomplete; /* (no request contains this) */
        code = check_summary(level, json, &again);
        level->summary = again;
    }
    load_requests_free(requests, count);
    return code;
}
int load_level_read(const char *path, struct load_level *level) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    const vp_json *json = &parsed.json;
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    memset(level, 0, sizeof *level);
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), path, result, &error);
    else if (!node_is(json, 0, VP_JSON_OBJECT) || !vp_json_equals(json, vp_json_get(json, 0, "schema"), LOAD_SCHEMA))
        code = NO_TRIAL;
    else {
        fields_read(json, 0, &LOAD_LEVEL, level);
        if (!isfinite(level->rate)) level->rate = 0;
        if (level->concurrency < 0) level->concurrency = 0;
        if (level->places < 0) level->places = 0;
        level->is_complete = level->status && !strcmp(level->status, "complete");
        level->path = copy_text(path, strlen(path));
        level->date = node_text(json, vp_json_get(json, vp_json_get(json, 0, "provenance"), "date"));
        level->other_cpu = node_number(json, vp_json_get(json, vp_json_get(json, 0, "noise"), "other_cpu_percent"));
        read_summary(json, vp_json_get(json, 0, "summary"), &level->summary);
        if (!is_level(level)) code = complain(EXIT_INPUT, "%s: invalid request_rate, concurrency or window", path);
        else code = check_level(level, json);
    }
    FREE_ALL(text, parsed.nodes);
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
    *count = 0;
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), level->path, result, &error);
    else if (!can_read_requests(&parsed.json, vp_json_get(&parsed.json, 0, "requests"), requests, count)) {
        code = complain(EXIT_INPUT, "%s: \"requests\" is not a list of requests with due times", level->path);
        load_requests_free(*requests, *count);
    }
    FREE_ALL(parsed.nodes, text);
    return code;
}
int load_level_judge(struct load_level *level, const vp_slo *slo) {
    struct load_request *requests;
    size_t count;
    const int code = load_level_requests(level, &requests, &count);
    if (code) return code;
    struct load_summary summary = summarize_again(level, requests, count, slo);
    level->summary.due = summary.due;
    level->summary.good_share = summary.good_share;
    level->summary.goodput = summary.goodput;
    level->summary.goodput_low = summary.goodput_low;
    level->summary.goodput_high = summary.goodput_high;
    load_requests_free(requests, count);
    return 0;
}
struct load_point load_level_point(const struct load_level *level, const vp_slo *slo) {
    vp_slo own = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (!slo && level->slo) vp_slo_parse(level->slo, &own, NULL);
    return load_point_of(&level->summary, level->concurrency ? level->concurrency : level->summary.offered,
                         slo ? slo->accuracy : own.accuracy);
}
void load_levels_answer(const struct load_level *levels, size_t count, const vp_slo *slo, double share,
                        struct load_answer *answer) {
    struct load_point *points = resize(NULL, count + 1, sizeof *points);
    for (size_t i = 0; i < count; i++) points[i] = load_level_point(&levels[i], slo);
    load_answer_of(points, count, share, answer);
    free(points);
}
vp_trial load_level_trial(const struct load_level *level, const struct load_answer *answer) {
    const struct load_point point = load_level_point(level, NULL);
    return load_answer_at(answer, &point);
}
static int by_load(const void *left_item, const void *right_item) {
    const struct load_level *left = left_item, *right = right_item;
    if (left->concurrency != right->concurrency) return left->concurrency < right->concurrency ? -1 : 1;
    if (left->places != right->places) return left->places < right->places ? -1 : 1;
    if (left->rate < right->rate || left->rate > right->rate) return left->rate < right->rate ? -1 : 1;
    return strcmp(left->path, right->path);
}
void load_levels_sort(struct load_levels *levels) {
    if (levels->count) qsort(levels->items, levels->count, sizeof *levels->items, by_load);
}
/* Returns 1 if a file of this name can be a trial; other files are not opened. */
static int is_trial_name(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t bytes = strlen(name);
    return strstr(name, "_load_") && bytes > 5 && !strcmp(name + bytes - 5, ".json");
}
static int levels_add(struct load_levels *levels, const char *path) {
    struct load_level level;
    int code = is_trial_name(path) ? load_level_read(path, &level) : NO_TRIAL;
    if (code == NO_TRIAL) return 0; /* folders also contain other files */
    if (code) return code;
    levels->items = resize(levels->items, levels->count + 1, sizeof *levels->items);
    levels->items[levels->count++] = level;
    return 0;
}
/* The folder of a file, or the file's name if it has none, malloc'ed. */
static char *folder_of(const char *path) {
    const char *name = strrchr(path, '/'), *from = name;
    if (!name) return copy_text(path, strlen(path));
    while (from > path && from[-1] != '/') from--;
    return copy_text(from, (size_t)(name - from));
}
/* Tags trials at the same load with their folders. */
static void add_tags(struct load_levels *levels) {
    for (size_t i = 0; i < levels->count; i++) {
        char text[48], other[48];
        int is_twice = 0;
        load_level_name(&levels->items[i], text);
        for (size_t k = 0; k < levels->count && !is_twice; k++)
            is_twice = k != i && !strcmp(load_level_name(&levels->items[k], other), text);
        if (is_twice) levels->items[i].tag = folder_of(levels->items[i].path);
    }
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
    load_levels_sort(levels);
    add_tags(levels);
    return code;
}
int load_levels_difference(const struct load_level *one, const struct load_level *other, const char **what,
                           char values[2][80]) {
    const struct { const char *name, *texts[2]; } texts[] = {
        {"server", {one->endpoint, other->endpoint}}, {"model", {one->model, other->model}},
        {"server's version", {one->server, other->server}}, {"data set", {one->task, other->task}},
        {"images", {one->images, other->images}},
        {"--no_cache", {one->no_cache > 0 ? "given" : "not given", other->no_cache > 0 ? "given" : "not given"}},
        {"arrivals", {one->concurrency ? other->arrivals : one->arrivals,
                      other->concurrency ? one->arrivals : other->arrivals}}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *left = texts[i].texts[0], *right = texts[i].texts[1];
        *what = texts[i].name;
        snprintf(values[0], 80, "%.79s", left ? left : "not said");
        snprintf(values[1], 80, "%.79s", right ? right : "not said");
        if (strcmp(left ? left : "", right ? right : "") != 0) return 1;
    }
    *what = "max_new_tokens";
    snprintf(values[0], 80, "%lld", (long long)one->new_tokens);
    snprintf(values[1], 80, "%lld", (long long)other->new_tokens);
    if (one->new_tokens != other->new_tokens) return 1;
    *what = "--slo";
    snprintf(values[0], 80, "%.79s", one->slo ? one->slo : "none");
    snprintf(values[1], 80, "%.79s", other->slo ? other->slo : "none");
    return strcmp(values[0], values[1]) != 0;
}
int load_levels_check(const struct load_levels *levels, const char *command) {
    char values[2][80];
    const char *what;
    for (size_t i = 0; i < levels->count; i++)
        for (size_t k = i + 1; k < levels->count; k++)
            if (load_levels_difference(&levels->items[i], &levels->items[k], &what, values)
                && strcmp(what, "--slo") != 0)
                return complain(EXIT_USAGE, "%s: %.200s and %.200s differ in %s (%s / %s), so they are not comparable "
                                            "trials of one server: put each in its own folder and use compare on "
                                            "two of them", command, levels->items[i].path, levels->items[k].path,
                                what, values[0], values[1]);
    return 0;
}
void load_levels_free(struct load_levels *levels) {
    for (size_t i = 0; i < levels->count; i++) load_level_free(&levels->items[i]);
    free(levels->items);
    memset(levels, 0, sizeof *levels);
}

/* ---- the findings from the trials */
double load_cached_share(const struct load_summary *summary) {
    return summary->cached_known && summary->prompt_tokens > 0
               ? (double)summary->cached_tokens / (double)summary->prompt_tokens : (double)NAN;
}
int load_level_saturates(const struct load_level *level) {
    return !level->concurrency && load_is_queue_growing(&level->summary);
}
vp_estimate load_metric_of(const struct load_level *level, int metric) {
    vp_estimate found = {0, (double)NAN, (double)NAN};
    size_t count = 0;
    for (size_t i = 0; i < level->metric_count; i++) {
        const double value = level->metrics[i].values[metric], at_s = (double)level->metrics[i].at_ns / 1e9;
        if (!isfinite(value) || at_s < level->summary.from_s || at_s >= level->summary.to_s) continue;
        found.value += value;
        found.low = fmin(found.low, value);
        found.high = fmax(found.high, value);
        count++;
    }
    found.value = count ? found.value / (double)count : (double)NAN;
    return found;
}
/* Requests that are neither running nor waiting by the server's metrics are somewhere before its scheduler. */
static void find_unseen(const struct load_level *level, struct text_list *texts) {
    const double in_flight = level->summary.in_flight, running = load_metric_of(level, PROM_RUNNING).value,
                 waiting = load_metric_of(level, PROM_WAITING).value, known = running + (waiting > 0 ? waiting : 0);
    char text[48];
    if (!(in_flight - known > UNSEEN_LEAST) || !(in_flight - known > UNSEEN_SHARE * in_flight)) return;
    text_list_add(texts, "%s: %.3g requests were in flight, but by the server's metrics %.3g were running and %.3g "
                  "waiting: the others were outside its scheduler, for example in image preprocessing or the network",
                  load_level_text(level, text), in_flight, running, waiting > 0 ? waiting : 0);
}
/* Adds what is missing to decide a trial that meets the share, but is too short to prove it. */
static void find_short_trial(const struct load_level *level, double share, struct text_list *texts) {
    const struct load_point point = load_level_point(level, NULL);
    const double more = point.good - share,
                 needed = 3.841459 * share * (1 - share) / (more * more) * point.count / point.independent,
                 needed_s = level->duration_s * needed / point.count;
    char text[48];
    if (more > 0.01 && isfinite(needed_s) && needed_s < 1e6)
        text_list_add(texts, "%s: %.0f of %.0f requests meet %s, too few to prove %g %% (about %.0f are needed: "
                      "--duration_s %.0f)", load_level_text(level, text), point.good * point.count, point.count,
                      level->slo, 100 * share, ceil(needed), ceil(needed_s));
    else
        text_list_add(texts, "%s: %.1f %% of %.0f requests meet %s, too close to %g %% to decide",
                      load_level_text(level, text), 100 * point.good, point.count, level->slo, 100 * share);
}
/* Adds the answer of trials of one kind on the objective of their files. */
static void find_objective(const struct load_level *levels, size_t count, struct text_list *texts) {
    const double share = isfinite(levels->slo_share) ? levels->slo_share : 0.95;
    const char *kind = levels->concurrency ? "load" : "rate";
    const struct load_level *holds = NULL, *fails = NULL, *open = NULL;
    struct load_answer answer;
    char high[48], low[48];
    load_levels_answer(levels, count, NULL, share, &answer);
    for (size_t i = 0; i < count; i++) {
        const vp_trial trial = load_level_trial(&levels[i], &answer);
        if (trial == VP_TRIAL_HOLDS) holds = &levels[i];
        if (trial == VP_TRIAL_FAILS && !fails) fails = &levels[i];
        if (trial == VP_TRIAL_UNDECIDED && !fails && levels[i].summary.good_share.value >= share) open = &levels[i];
    }
    if (open && !holds) find_short_trial(open, share, texts);
    if (holds && fails)
        text_list_add(texts, "at least %g %% of the requests meet %s at %s, but not at %s", 100 * share, levels->slo,
                      load_level_text(holds, high), load_level_text(fails, low));
    else if (holds)
        text_list_add(texts, "at least %g %% of the requests meet %s at %s; no tried %s is known to be too "
                      "high", 100 * share, levels->slo, load_level_text(holds, high), kind);
    else if (fails)
        text_list_add(texts, "%s is too high: only %.1f %% of the requests meet %s, %g %% are required%s%s%s",
                      load_level_text(fails, high), 100 * fails->summary.good_share.value, levels->slo, 100 * share,
                      open ? "" : "; no lower ", open ? "" : kind,
                      open              ? ""
                      : fails == levels ? " was tried"
                                        : " that was tried is known to meet it");
    else if (!open)
        text_list_add(texts, "no trial was long enough to decide whether %g %% of the requests meet %s", 100 * share,
                      levels->slo);
    if (!isnan(answer.fitted) && answer.low > 0 && answer.high < HUGE_VAL)
        text_list_add(texts, "the highest %s that meets it is within [%.4g, %.4g], most likely %.4g%s", kind,
                      answer.low, answer.high, answer.fitted,
                      levels->concurrency ? "" : ", by the requests that were really due");
}
static void find_objectives(const struct load_levels *levels, struct text_list *texts) {
    size_t rates = 0;
    if (!levels->items[0].slo) return;
    while (rates < levels->count && !levels->items[rates].concurrency) rates++; /* rates are first */
    if (rates) find_objective(levels->items, rates, texts);
    if (rates < levels->count) find_objective(levels->items + rates, levels->count - rates, texts);
}
void load_findings(const struct load_levels *levels, struct text_list *texts) {
    const struct load_level *best = NULL;
    char text[48];
    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].failures)
            text_list_add(texts, "%s: %s", load_level_text(&levels->items[i], text), levels->items[i].failures);
    for (size_t i = 0; i < levels->count; i++)
        if (load_level_saturates(&levels->items[i])) {
            const struct load_summary *summary = &levels->items[i].summary;
            text_list_add(texts, "%s is more than %s can handle: %.3g requests per second were due, %.3g ended, and "
                          "E2E grew %.2g-fold within the trial", load_level_text(&levels->items[i], text),
                          levels->items[i].places ? "so many slots" : "this server", summary->offered, summary->ended,
                          summary->growth);
            break;
        }
    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].silence)
            text_list_add(texts, "%s: %s", load_level_text(&levels->items[i], text), levels->items[i].silence);
    for (size_t i = 0; i < levels->count; i++) find_unseen(&levels->items[i], texts);
    find_objectives(levels, texts);
    for (size_t i = 0; i < levels->count; i++) {
        const struct load_level *level = &levels->items[i];
        if (!best || level->summary.output_rate > best->summary.output_rate) best = level;
    }
    if (best->summary.output_rate > 0)
        text_list_add(texts, "most output tokens per second: %s at %s, with an E2E P50 of %s ms",
                      number_measured(best->summary.output_rate, (double)NAN, (double)NAN).text,
                      load_level_text(best, text),
                      number_measured(best->summary.latency[LOAD_E2E][LOAD_P50].value,
                                      best->summary.latency[LOAD_E2E][LOAD_P50].low,
                                      best->summary.latency[LOAD_E2E][LOAD_P50].high).text);
    for (size_t i = 0; i < levels->count; i++)
        if (!levels->items[i].is_complete)
            text_list_add(texts, "%s was interrupted: its numbers cover the first %lld request%s",
                          load_level_text(&levels->items[i], text), (long long)levels->items[i].summary.due,
                          plural_s((int64_t)levels->items[i].summary.due));
    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].client_busy > 0)
            text_list_add(texts, "at %s this client used %.0f %% of a CPU and waited for one during %.0f %% of the "
                          "trial, which increases the latencies", load_level_text(&levels->items[i], text),
                          100 * levels->items[i].client_cpu, 100 * levels->items[i].client_delay);
    for (size_t i = 0; i < levels->count; i++)
        if (levels->items[i].other_cpu >= LOAD_CPU_BUSY) {
            text_list_add(texts, "at %s, other processes used %.0f %% of this machine's CPUs (a server on it is one of "
                          "them): their competition is part of the latencies",
                          load_level_text(&levels->items[i], text), levels->items[i].other_cpu);
            break;
        }
    for (size_t i = 0; i < levels->count; i++)
        if (load_is_late(&levels->items[i].summary)) {
            const struct load_summary *summary = &levels->items[i].summary;
            text_list_add(texts, "at %s, %lld of %lld requests were sent more than %g ms late, up to %.3g ms, because "
                          "the client was busy; only times from sending exclude this delay",
                          load_level_text(&levels->items[i], text), (long long)summary->late, (long long)summary->due,
                          LOAD_LATE_MS, summary->latest_ms);
            break;
        }
}
