/* result_gather.c: the points of a configuration read back from their journals, their numbers gathered into lists. */
#include "sweep/result_gather.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- a point as its journal has it */
/* Keeps the room of the parsed sizes. */
static void measured_clear(struct measured *measured) {
    struct parsed kept = measured->sizes;
    for (int32_t i = 0; i < measured->count; i++) free(measured->marks[i].telemetry);
    runs_free(measured->runs, measured->count);
    sample_free(&measured->sample);
    free(measured->sizes_text);
    free(measured->marks);
    free(measured->failed);
    free(measured->stop);
    memset(measured, 0, sizeof *measured);
    measured->sizes = kept;
}
void measured_free(struct measured *measured) {
    measured_clear(measured);
    free(measured->sizes.nodes);
    measured->sizes.nodes = NULL;
}
/* The text of a node as it stands in the journal; NULL when there is none. */
static char *raw_text(const vp_json *json, uint32_t node) {
    return node == VP_JSON_NONE ? NULL
                                : copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
}

/* {"vit": [wall ns, device ns, launches, flops, bytes], ...}: the stages that ran */
static void read_stages(const vp_json *json, uint32_t object, vp_stage_times *times) {
    if (!node_is(json, object, VP_JSON_OBJECT)) return;
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        int64_t *to[5];
        uint32_t list = vp_json_get(json, object, vp_stage_name((vp_stage)i)), item = list + 1;
        if (!node_is(json, list, VP_JSON_ARRAY) || json->nodes[list].count != 5) continue;
        to[0] = &times->wall_ns[i];
        to[1] = &times->device_ns[i];
        to[2] = &times->launches[i];
        to[3] = &times->flops[i];
        to[4] = &times->bytes[i];
        times->ran[i] = 1;
        for (int k = 0; k < 5; k++, item = json->nodes[item].end)
            if (vp_json_to_int(json, item, to[k]) != VP_OK) times->ran[i] = 0;
    }
}
/* Reads a run's line. Returns 0, or EXIT_OUTPUT when it is none; *run is to be freed in both cases. */
static int read_run(const vp_json *json, struct pass_result *run) {
    uint32_t tokens = vp_json_get(json, 0, "tokens"), steps = vp_json_get(json, 0, "step_ns"),
             answer = vp_json_get(json, 0, "answer"), item;
    int64_t value = 0;
    memset(run, 0, sizeof *run);
    if (!node_is(json, tokens, VP_JSON_ARRAY) || !node_is(json, steps, VP_JSON_ARRAY)
        || !node_is(json, answer, VP_JSON_STRING))
        return EXIT_OUTPUT;
    run->total_ns = node_int(json, 0, "total_ns", 0);
    run->token_count = (int32_t)json->nodes[tokens].count;
    run->ended_by_eos = node_is(json, vp_json_get(json, 0, "ended_by_eos"), VP_JSON_TRUE);
    run->tokens = zeroed((size_t)run->token_count + 1, sizeof *run->tokens);
    run->step_ns = zeroed((size_t)run->token_count + 1, sizeof *run->step_ns);
    item = tokens + 1;
    for (int32_t i = 0; i < run->token_count; i++, item = json->nodes[item].end)
        if (vp_json_to_int(json, item, &value) == VP_OK) run->tokens[i] = (int32_t)value;
    item = steps + 1;
    for (int32_t i = 0; i < run->token_count && (uint32_t)i < json->nodes[steps].count;
         i++, item = json->nodes[item].end)
        if (vp_json_to_int(json, item, &value) == VP_OK) run->step_ns[i] = value;
    run->answer = zeroed((size_t)json->nodes[answer].bytes + 1, 1); /* unescaping never lengthens */
    if (vp_json_text(json, answer, run->answer, (size_t)json->nodes[answer].bytes + 1, &run->answer_bytes) != VP_OK)
        run->answer_bytes = 0;
    read_stages(json, vp_json_get(json, 0, "stages"), &run->times);
    return run->total_ns > 0 ? 0 : EXIT_OUTPUT;
}
/* Adds the run of a line. Returns 0, or EXIT_OUTPUT when it is no run's line. */
static int add_run(struct measured *measured, const vp_json *json) {
    const struct run_mark mark = {
        .is_throttled = node_is(json, vp_json_get(json, 0, "throttled"), VP_JSON_TRUE),
        .session = node_int(json, 0, "session", -1),
        .unix_s = node_int(json, 0, "unix_s", 0),
        .telemetry = raw_text(json, vp_json_get(json, 0, "telemetry"))};
    if (measured->count == measured->capacity) {
        measured->capacity = measured->capacity * 2 + 8;
        measured->runs = resize(measured->runs, (size_t)measured->capacity, sizeof *measured->runs);
        measured->marks = resize(measured->marks, (size_t)measured->capacity, sizeof *measured->marks);
    }
    measured->marks[measured->count] = mark;
    measured->stamps = node_int(json, 0, "stamps", 0);
    return read_run(json, &measured->runs[measured->count++]);
}
/* The journal leads from the last run to the first. */
static void reverse_runs(struct measured *measured) {
    for (int32_t i = 0, k = measured->count - 1; i < k; i++, k--) {
        struct pass_result run = measured->runs[i];
        struct run_mark mark = measured->marks[i];
        measured->runs[i] = measured->runs[k];
        measured->marks[i] = measured->marks[k];
        measured->runs[k] = run;
        measured->marks[k] = mark;
    }
}
/* Takes over one line of a point: a run, a pair without and with stage times, or the line that closes the point.
 * Returns 0, or EXIT_OUTPUT when it is none of these or cannot be read. */
static int take_line(struct measured *measured, const vp_json *json) {
    uint32_t bare = vp_json_get(json, 0, "bare");
    if (vp_json_get(json, 0, "run") != VP_JSON_NONE) return add_run(measured, json);
    if (bare != VP_JSON_NONE) {
        measured->bare_ns = node_int(json, bare, "bare_total_ns", 0);
        measured->staged_ns = node_int(json, bare, "staged_total_ns", 0);
        return 0;
    }
    if (vp_json_get(json, 0, "done") == VP_JSON_NONE && vp_json_get(json, 0, "failed") == VP_JSON_NONE)
        return EXIT_OUTPUT;
    measured->failed = node_text(json, vp_json_get(json, 0, "failed"));
    measured->stop = node_text(json, vp_json_get(json, 0, "stop"));
    measured->retries = node_int(json, 0, "retries", 0);
    measured->sizes_text = raw_text(json, vp_json_get(json, 0, "sizes"));
    return 0;
}
/* Reads the lines of a point, from the last one back. */
static int read_lines(struct journal_index *index, int32_t file, int64_t last, struct measured *measured) {
    const vp_json *json = &index->scratch.json;
    for (int64_t at = last, before; at >= 0; at = before) {
        int code = index_read_line(index, file, at);
        if (code) return code;
        before = node_int(json, 0, "prev", -1);
        if (take_line(measured, json))
            return complain(EXIT_OUTPUT, "%s: the run at byte %lld cannot be read", index->files[file].path,
                            (long long)at);
        if (before >= at)
            return complain(EXIT_OUTPUT, "%s: the line at byte %lld names no line before it", index->files[file].path,
                            (long long)at);
    }
    reverse_runs(measured);
    return 0;
}
int measured_read(struct journal_index *index, const struct index_configuration *configuration,
                  const struct index_entry *entry, struct measured *measured) {
    const vp_json *json = &index->scratch.json;
    int code;
    measured_clear(measured);
    if ((code = read_lines(index, entry->file, index_point(entry, configuration).at, measured)) != 0)
        return code;
    if (!measured->sizes_text
        || parse_json(&measured->sizes, measured->sizes_text, strlen(measured->sizes_text), NULL) != VP_OK
        || !node_is(&measured->sizes.json, 0, VP_JSON_OBJECT))
        return complain(EXIT_OUTPUT, "%s: a point of sample %lld lacks its sizes", index->files[entry->file].path,
                        (long long)entry->id);
    if ((code = index_read_line(index, entry->file, entry->line_at)) != 0) return code;
    measured->sample.id = entry->id;
    measured->sample.prompt = node_text(json, vp_json_get(json, 0, "prompt"));
    measured->sample.record = raw_text(json, vp_json_get(json, 0, "metadata"));
    if (!measured->sample.record)
        return complain(EXIT_OUTPUT, "%s: the line of sample %lld cannot be read back", index->files[entry->file].path,
                        (long long)entry->id);
    for (int32_t i = 0; i < measured->count; i++)
        if (!index_has_session(index, entry->file, measured->marks[i].session)) measured->marks[i].session = -1;
    return 0;
}
struct point measured_point(const struct journal_index *index, const struct index_configuration *configuration,
                            const struct measured *measured) {
    struct point point;
    memset(&point, 0, sizeof point);
    point.sample = &measured->sample;
    point.tier = configuration->tier;
    point.top_k = configuration->top_k;
    point.blocks = configuration->blocks;
    point.block_count = configuration->block_count;
    point.runs = measured->runs;
    point.run_count = measured->failed ? 0 : measured->count;
    point.reason = measured->failed;
    point.ignore_eos = index->ignore_eos;
    if (vp_score_metric_find(index->sets[configuration->set].metric, &point.metric) != VP_OK)
        point.metric = VP_SCORE_VQA_SEED;
    return point;
}
int can_find_outliers(const struct measured *measured, uint8_t *flags, vp_outliers *outliers) {
    double *values = resize(NULL, (size_t)measured->count * 2, sizeof *values);
    int known;
    for (int32_t i = 0; i < measured->count; i++) values[i] = metric_of(&measured->runs[i], METRIC_TOTAL);
    memset(flags, 0, (size_t)measured->count);
    memset(outliers, 0, sizeof *outliers);
    known = vp_statistics_outliers(values, (size_t)measured->count, VP_OUTLIER_THRESHOLD, values + measured->count,
                                   flags, outliers)
            == VP_OK;
    free(values);
    return known;
}

/* ---- lists of numbers */
void gathered_free(struct gathered *gathered) {
    for (int i = 0; i < LIST_COUNT; i++) free(gathered->lists[i].values);
    free(gathered->sessions);
}
/* A number that is not finite is none. */
static void list_add(struct number_list *list, double value) {
    if (!isfinite(value)) return;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 64;
        list->values = resize(list->values, list->capacity, sizeof *list->values);
    }
    list->values[list->count++] = value;
}
size_t gathered_session(const struct gathered *gathered, int32_t file, int64_t at) {
    size_t index = 0;
    while (index < gathered->session_count
           && (gathered->sessions[index].file != file || gathered->sessions[index].at != at))
        index++;
    return index;
}

/* ---- a point into the lists */
static void gather_layout(struct gathered *gathered, const vp_json *json) {
    double target = node_number(json, vp_json_get(json, 0, "target_vision_tokens")),
           actual = node_number(json, vp_json_get(json, 0, "actual_vision_tokens"));
    uint32_t tiling = vp_json_get(json, 0, "actual_tiling"), size = vp_json_get(json, 0, "theoretical_image_size");
    list_add(&gathered->lists[LIST_TARGET], target);
    list_add(&gathered->lists[LIST_ACTUAL], actual);
    list_add(&gathered->lists[LIST_DIFF], target - actual);
    list_add(&gathered->lists[LIST_CROPS], node_number(json, vp_json_get(json, 0, "actual_num_crops")));
    if (!node_is(json, tiling, VP_JSON_ARRAY) || !node_is(json, size, VP_JSON_ARRAY)) return;
    list_add(&gathered->lists[LIST_TILING],
             node_number(json, vp_json_at(json, tiling, 0)) * 65536 + node_number(json, vp_json_at(json, tiling, 1)));
    list_add(&gathered->lists[LIST_HEIGHT], node_number(json, vp_json_at(json, size, 0)));
    list_add(&gathered->lists[LIST_WIDTH], node_number(json, vp_json_at(json, size, 1)));
    list_add(&gathered->lists[LIST_TOKENS], node_number(json, vp_json_get(json, 0, "theoretical_vision_tokens")));
}
/* When the runs were, in which sessions, and how many of them the device slowed down. */
static void gather_marks(struct gathered *gathered, const struct measured *measured, int32_t file) {
    for (int32_t i = 0; i < measured->count; i++) {
        const struct run_mark *mark = &measured->marks[i];
        const struct used_session used = {file, mark->session};
        gathered->throttled_count += mark->is_throttled;
        if (!gathered->first_s || mark->unix_s < gathered->first_s) gathered->first_s = mark->unix_s;
        if (mark->unix_s > gathered->last_s) gathered->last_s = mark->unix_s;
        if (gathered_session(gathered, file, mark->session) < gathered->session_count) continue;
        gathered->sessions = resize(gathered->sessions, gathered->session_count + 1, sizeof *gathered->sessions);
        gathered->sessions[gathered->session_count++] = used;
    }
}
/* The times of the decode steps, each with its position. */
static void gather_steps(struct gathered *gathered, const struct pass_result *run) {
    if (!run->times.ran[VP_STAGE_DECODE]) return;
    for (int32_t step = 0; step + 1 < run->token_count; step++) {
        list_add(&gathered->lists[LIST_STEP], (double)run->step_ns[step] / 1e6);
        list_add(&gathered->lists[LIST_STEP_AT], step + 1);
    }
}
double measured_decode_rate(const struct measured *measured) {
    return 1e3 / metric_mean(measured->runs, measured->count, METRIC_PER_TOKEN);
}
double measured_output_rate(const struct measured *measured) {
    return 1e3 * measured->runs[0].token_count / metric_mean(measured->runs, measured->count, METRIC_TOTAL);
}
static void gather_runs(struct gathered *gathered, const struct measured *measured, int32_t file) {
    uint8_t *flags = zeroed((size_t)measured->count, 1);
    vp_outliers outliers;
    if (can_find_outliers(measured, flags, &outliers)) gathered->outlier_count += (int64_t)outliers.count;
    free(flags);
    for (int metric = 0; metric < METRIC_ALL; metric++) {
        list_add(&gathered->lists[LIST_METRICS + metric], metric_mean(measured->runs, measured->count, metric));
        for (int32_t i = 0; i < measured->count; i++)
            list_add(&gathered->lists[LIST_RUNS + metric], metric_of(&measured->runs[i], metric));
    }
    for (int32_t i = 0; i < measured->count; i++) gather_steps(gathered, &measured->runs[i]);
    gather_marks(gathered, measured, file);
    gathered->run_count += measured->count;
    list_add(&gathered->lists[LIST_OUTPUT], measured->runs[0].token_count);
    list_add(&gathered->lists[LIST_DECODE_RATE], measured_decode_rate(measured));
    list_add(&gathered->lists[LIST_OUTPUT_RATE], measured_output_rate(measured));
    list_add(&gathered->lists[LIST_STAMPS], (double)measured->stamps);
    if (measured->bare_ns <= 0 || measured->staged_ns <= 0) return;
    list_add(&gathered->lists[LIST_BARE], (double)measured->bare_ns / 1e6);
    list_add(&gathered->lists[LIST_STAGED], (double)measured->staged_ns / 1e6);
}
static void gather_point(struct gathered *gathered, const struct point *point, const struct measured *measured,
                         int32_t file) {
    vp_score_outcome outcome;
    struct scoring scoring;
    double accuracy;
    gather_layout(gathered, &measured->sizes.json);
    if (measured->failed) gathered->failed_count++; else gathered->ok_count++;
    gathered->retry_count += measured->retries;
    for (int i = 0; measured->stop && i <= VP_STOP_LAST_; i++)
        gathered->stops[i] += !strcmp(measured->stop, vp_stop_name(i));
    if (point->run_count) gather_runs(gathered, measured, file);
    score_point(point, &scoring, &outcome);
    accuracy = outcome.is_unparsed ? 0 : outcome.score;
    list_add(&gathered->lists[LIST_ACCURACY], accuracy);
    tally_add(&gathered->tally, accuracy, 0, 0);
    gathered->unparsed_count += point->run_count && outcome.is_unparsed;
    gathered->truncated_count += point->run_count && !point->ignore_eos && !point->runs[0].ended_by_eos;
    gathered->empty_count += point->run_count && outcome.cleaned && !outcome.cleaned[0];
    scoring_free(&scoring);
}

/* ---- a configuration */
int is_closed_point(const struct index_entry *entry, const struct index_configuration *configuration) {
    return index_point(entry, configuration).state != POINT_OPEN;
}
int gather_configuration(struct journal_index *index, const struct index_configuration *configuration,
                         struct gathered *gathered) {
    const struct index_set *set = &index->sets[configuration->set];
    struct measured measured;
    int code = 0;
    memset(&measured, 0, sizeof measured);
    for (size_t i = 0; i < set->count && !code; i++) {
        struct point point;
        if (!is_closed_point(set->entries[i], configuration)) continue;
        if ((code = measured_read(index, configuration, set->entries[i], &measured)) != 0) break;
        point = measured_point(index, configuration, &measured);
        gather_point(gathered, &point, &measured, set->entries[i]->file);
    }
    gathered->missing_count = set->sample_count - gathered->ok_count - gathered->failed_count;
    measured_free(&measured);
    return code;
}
