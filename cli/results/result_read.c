/* result_read.c: reads result files into flat arrays of measurements.
 * They come from vlmprof, another engine or the reference. Reports, estimates and comparisons use only these arrays. */
#include "results/result_read.h"

#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "vlmprof_config.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <math.h>

int stage_column(int stage, int detail) { return COLUMN_STAGE + detail * VP_STAGE_COUNT + stage; }

static void result_file_free(struct result_file *file) {
    char **texts[] = {&file->path,    &file->importance, &file->device,  &file->host,        &file->version,
                      &file->command, &file->server};
    fields_free(&RESULT, &file->head);
    fields_free(&RESULT_ACCURACY, &file->scores);
    fields_free(&RESULT_FIDELITY, &file->fidelity);
    fields_free(&RESULT_TIME, &file->times);
    knob_values_free(&file->knobs);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free(*texts[i]);
    for (int i = 0; i < COLUMN_COUNT; i++) free(file->columns[i]);
    text_list_free(&file->own);
    text_list_free(&file->units);
    for (int i = 0; i < METRIC_STAGE; i++) free(file->run_ms[i]);
    FREE_ALL(file->ids, file->failed_reason, file->outside.basis, file->run_at, file->loads);
    memset(file, 0, sizeof *file);
}
void results_free(struct results *results) {
    for (size_t i = 0; i < results->count; i++) result_file_free(&results->files[i]);
    for (size_t i = 0; i < results->group_count; i++) { FREE_ALL(results->groups[i].paired, results->groups[i].ids); }
    FREE_ALL(results->files, results->groups);
    text_list_free(&results->notes);
    text_list_free(&results->unlike);
    memset(results, 0, sizeof *results);
}
double result_at(const struct result_file *file, int column, size_t row) {
    return file->columns[column] ? file->columns[column][row] : (double)NAN;
}

size_t result_row(const struct result_file *file, int64_t id) {
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->ids[middle] < id) low = middle + 1; else high = middle;
    }
    return low < file->count && file->ids[low] == id ? low : file->count;
}
enum { RESULT_READERS = 4, RESULT_BYTES_MOST = 1 << 30, OWN_BYTES_MOST = 60 };

/* Writes the first error into file->error. row: SIZE_MAX outside the rows. Returns EXIT_INPUT. */
static int result_fail(struct result_file *file, const vp_json *json, uint32_t node, size_t row, const char *key,
                       const char *what) {
    char row_text[96] = "";
    if (row != SIZE_MAX) snprintf(row_text, sizeof row_text, "per_sample_results[%zu], ", row);
    if (!file->error[0])
        snprintf(file->error, sizeof file->error, "%.500s: %sbyte %llu: %.80s %.100s", file->path, row_text,
                 (unsigned long long)(node == VP_JSON_NONE ? 0 : json->nodes[node].start), key, what);
    return EXIT_INPUT;
}
static int key_is(const vp_json *json, uint32_t key, const char *text, size_t bytes) {
    return json->nodes[key].bytes == bytes && !memcmp(json->text + json->nodes[key].start, text, bytes);
}
/* Reads a number within bounds; NaN for null. Returns 0, or an exit code after setting file->error. */
static int read_number(struct result_file *file, const vp_json *json, uint32_t node, size_t row, const char *key,
                       double least, double most, double *value) {
    *value = (double)NAN;
    if (node_is(json, node, VP_JSON_NULL)) return 0;
    if (!node_is(json, node, VP_JSON_NUMBER) || vp_json_to_double(json, node, value) != VP_OK)
        return result_fail(file, json, node, row, key, "is not a number");
    if (!(*value >= least && *value <= most)) return result_fail(file, json, node, row, key, "is out of range");
    return 0;
}
/* Reads an integer of the head; -1 if there is none. Returns 0 or an exit code. */
static int read_count(struct result_file *file, const vp_json *json, uint32_t object, const char *key, int64_t most,
                      int64_t *value) {
    uint32_t node = vp_json_get(json, object, key);
    *value = -1;
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return 0;
    if (vp_json_to_int(json, node, value) != VP_OK || *value < 0 || *value > most)
        return result_fail(file, json, node, SIZE_MAX, key, "is not a valid count");
    return 0;
}
char *result_text(const vp_json *json, uint32_t object, const char *key) {
    return text_without_controls(node_text(json, vp_json_get(json, object, key)));
}
static void result_put(struct result_file *file, size_t rows, int column, size_t row, double value) {
    if (!isfinite(value)) return;
    if (!file->columns[column]) {
        file->columns[column] = resize(NULL, rows, sizeof(double));
        for (size_t i = 0; i < rows; i++) file->columns[column][i] = (double)NAN;
    }
    file->columns[column][row] = value;
}

/* The stage named by a key of "stages" or "stage_detail", or VP_STAGE_COUNT. */
static int stage_of_key(const vp_json *json, uint32_t key) {
    int stage = 0;
    while (stage < VP_STAGE_COUNT
           && !key_is(json, key, vp_stage_name((vp_stage)stage), strlen(vp_stage_name((vp_stage)stage))))
        stage++;
    return stage;
}
/* Adds the name of an engine's own stage, unless it is there. */
static void note_own_stage(struct result_file *file, const vp_json *json, uint32_t key) {
    const size_t used = strlen(file->own_stages);
    char name[60] = ", ";
    if (vp_json_text(json, key, name + 2, sizeof name - 2, NULL) != VP_OK) return;
    if (!strstr(file->own_stages, name + 2) && used + strlen(name) < sizeof file->own_stages)
        strcpy(file->own_stages + used, used ? name : name + 2);
}
/* "stages": ms by stage */
static int read_stage_times(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (uint32_t member = 0; member < json->nodes[object].count; member++, key = json->nodes[key + 1].end) {
        int stage = stage_of_key(json, key);
        double value;
        if (stage == VP_STAGE_COUNT) {
            note_own_stage(file, json, key);
            continue;
        }
        if (read_number(file, json, key + 1, row, vp_stage_name((vp_stage)stage), 0, MS_MOST, &value))
            return EXIT_INPUT;
        result_put(file, rows, stage_column(stage, 0), file->count, value);
    }
    return 0;
}
/* "stage_detail": objects of DETAIL_KEYS by stage. DETAIL_DEVICE is skipped, because "stages" has it and half of the
 * time here is spent on numbers. */
static int read_stage_details(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (uint32_t member = 0; member < json->nodes[object].count; member++, key = json->nodes[key + 1].end) {
        int stage = stage_of_key(json, key);
        uint32_t item = key + 2;
        if (stage == VP_STAGE_COUNT || !node_is(json, key + 1, VP_JSON_OBJECT)) continue;
        for (uint32_t i = 0; i < json->nodes[key + 1].count; i++, item = json->nodes[item + 1].end) {
            int detail = DETAIL_WALL;
            double value;
            while (detail < DETAIL_COUNT && !key_is(json, item, DETAIL_KEYS[detail], strlen(DETAIL_KEYS[detail])))
                detail++;
            if (detail == DETAIL_COUNT || detail == DETAIL_DEVICE) continue;
            if (read_number(file, json, item + 1, row, DETAIL_KEYS[detail], 0, 1e24, &value)) return EXIT_INPUT;
            result_put(file, rows, stage_column(stage, detail), file->count, value);
        }
    }
    return 0;
}
/* "runs": T_total of each run; under load also its other times */
static int read_runs(struct result_file *file, const vp_json *json, uint32_t object, size_t row, size_t *capacity) {
    const uint32_t array = vp_json_get(json, object, "T_total");
    const int is_loaded = knobs_are_loaded(&file->knobs);
    const int first = is_loaded ? 0 : METRIC_TOTAL, after = is_loaded ? METRIC_STAGE : METRIC_TOTAL + 1;
    uint32_t item = array + 1, others[METRIC_STAGE];
    size_t at = file->run_at[file->count];
    for (int metric = first; metric < after; metric++) others[metric] = vp_json_get(json, object, METRIC_KEYS[metric]);
    if (!node_is(json, array, VP_JSON_ARRAY)) return 0;
    for (uint32_t i = 0; i < json->nodes[array].count; i++, item = json->nodes[item].end) {
        double value;
        if (read_number(file, json, item, row, "runs.T_total", 0, MS_MOST, &value)) return EXIT_INPUT;
        if (!isfinite(value)) continue;
        if (at == *capacity) {
            *capacity = *capacity * 2 + 1024;
            for (int metric = first; metric < after; metric++)
                file->run_ms[metric] = resize(file->run_ms[metric], *capacity, sizeof(double));
        }
        for (int metric = first; metric < after; metric++)
            file->run_ms[metric][at] = node_is(json, others[metric], VP_JSON_ARRAY)
                                               && json->nodes[others[metric]].count == json->nodes[array].count
                                           ? node_number(json, vp_json_at(json, others[metric], i))
                                           : (double)NAN;
        file->run_ms[METRIC_TOTAL][at++] = value;
    }
    file->run_at[file->count + 1] = at;
    return 0;
}
/* "sent_image": null if no image was sent to the server */
static int read_image(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row) {
    double bytes = 0;
    if (object == VP_JSON_NONE) return 0;
    if (!node_is(json, object, VP_JSON_NULL)
        && read_number(file, json, vp_json_get(json, object, "bytes"), row, "sent_image.bytes", 1, 1e12, &bytes))
        return EXIT_INPUT;
    if (bytes > 0 || !isfinite(result_at(file, COLUMN_IMAGE_BYTES, file->count)))
        result_put(file, rows, COLUMN_IMAGE_BYTES, file->count, bytes);
    return 0;
}

/* "served_runs": the usage of each run */
static void read_usage(struct result_file *file, const vp_json *json, uint32_t array) {
    uint32_t item = array + 1;
    if (!node_is(json, array, VP_JSON_ARRAY)) return;
    for (uint32_t i = 0; i < json->nodes[array].count; i++, item = json->nodes[item].end) {
        const uint32_t usage = vp_json_get(json, item, "usage");
        const int64_t cached = node_int(json, usage, "cached_tokens", -1),
                      prompt = node_int(json, usage, "prompt_tokens", -1);
        if (cached < 0 || prompt <= 0 || cached > prompt) continue;
        file->cached_tokens += (double)cached;
        file->cached_of += (double)prompt;
    }
}
double result_cached_share(const struct result_file *file) {
    return file->cached_of > 0 ? file->cached_tokens / file->cached_of : (double)NAN;
}
int result_has_few_tokens(const struct result_file *file) {
    double sum = 0;
    for (size_t i = 0; i < file->count; i++) sum += fmax(0, result_at(file, COLUMN_OUTPUT_TOKENS, i));
    return sum < TPOT_TOKENS_LEAST * (double)file->count;
}
int results_differ_in_caches(const struct results *results, const char **words) {
    const struct result_file *first = &results->files[0];
    for (size_t i = 1; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (!file->is_served || !first->is_served) continue;
        *words = file->no_cache != first->no_cache ? "--no_cache" : "--same_image";
        if (file->no_cache != first->no_cache
            || strcmp(file->images ? file->images : "", first->images ? first->images : "")) return 1;
    }
    return 0;
}

/* "T_image_outside": null without twins */
static int read_outside_row(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row) {
    double ms, tokens;
    if (object == VP_JSON_NONE || node_is(json, object, VP_JSON_NULL)) return 0;
    if (read_number(file, json, vp_json_get(json, object, "ms"), row, "T_image_outside.ms", -MS_MOST, MS_MOST, &ms)
        || read_number(file, json, vp_json_get(json, object, "image_tokens"), row, "T_image_outside.image_tokens", 0,
                       INT32_MAX, &tokens))
        return EXIT_INPUT;
    result_put(file, rows, COLUMN_IMAGE_OUTSIDE, file->count, ms);
    result_put(file, rows, COLUMN_IMAGE_TOKENS, file->count, tokens);
    return 0;
}

/* Reads the numbers of the row that have a column, by the rows of their fields. Returns 0 or an exit code. */
static int read_columns(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row) {
    static const struct fields *const tables[] = {&ANSWER_TOKENS, &ANSWER, &FIDELITY, &SIZES, &SENT};
    double value;
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        const uint32_t node = vp_json_get(json, object, METRIC_KEYS[metric]);
        if (metric == METRIC_CLOSURE || node == VP_JSON_NONE) continue;
        if (read_number(file, json, node, row, METRIC_KEYS[metric], metric == METRIC_UNACCOUNTED ? -MS_MOST : 0,
                        MS_MOST, &value))
            return EXIT_INPUT;
        result_put(file, rows, metric, file->count, value);
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct field *field = tables[i]->rows; field < tables[i]->rows + tables[i]->count; field++) {
            const uint32_t node = field->column ? vp_json_get(json, object, field->key) : VP_JSON_NONE;
            if (node == VP_JSON_NONE) continue;
            if (read_number(file, json, node, row, field->key, (double)field->least, (double)field->most, &value))
                return EXIT_INPUT;
            result_put(file, rows, field->column, file->count, value);
        }
    return 0;
}
static double views_of(const struct result_file *file, double crops) {
    const vp_views views = vp_architecture_views(file->architecture);
    return views == VP_VIEWS_CROPS || (views == VP_VIEWS_SPLIT && crops <= 1) ? crops : crops + 1;
}
/* A time that an engine's row lacks, from its stages, as metric_of computes it. */
static void put_from_stages(struct result_file *file, size_t rows, int metric, int needed, int first, int last) {
    double sum = 0;
    if (!file->is_foreign || isfinite(result_at(file, metric, file->count))
        || !isfinite(result_at(file, stage_column(needed, 0), file->count)))
        return;
    for (int stage = first; stage <= last; stage++) {
        const double ms = result_at(file, stage_column(stage, 0), file->count);
        if (isfinite(ms)) sum += ms;
    }
    if (metric == METRIC_UNACCOUNTED) sum = result_at(file, METRIC_TOTAL, file->count) - sum;
    result_put(file, rows, metric, file->count, sum);
}
/* Adds the derived numbers of a row. N tokens take N - 1 decode steps; the reference divides by N. */
static void finish_row(struct result_file *file, size_t rows) {
    double crops = result_at(file, COLUMN_VIEWS, file->count),
           tokens = result_at(file, COLUMN_OUTPUT_TOKENS, file->count);
    if (isfinite(result_at(file, COLUMN_VIEWS_OF_IMAGES, file->count)))
        result_put(file, rows, COLUMN_VIEWS, file->count, result_at(file, COLUMN_VIEWS_OF_IMAGES, file->count));
    else if (isfinite(crops)) file->columns[COLUMN_VIEWS][file->count] = views_of(file, crops);
    else if (file->is_served) {
        if (result_at(file, COLUMN_IMAGE_BYTES, file->count) <= 0)
            result_put(file, rows, COLUMN_VISION_TOKENS, file->count, 0);
    } else if (!file->is_foreign) {
        result_put(file, rows, COLUMN_VIEWS, file->count, 0); /* a question without an image */
        result_put(file, rows, COLUMN_VISION_TOKENS, file->count, 0);
    }
    put_from_stages(file, rows, METRIC_VISION, VP_STAGE_VIT, VP_STAGE_VIT, VP_STAGE_CONNECTOR);
    put_from_stages(file, rows, METRIC_PREFILL, VP_STAGE_PREFILL, VP_STAGE_EMBED, VP_STAGE_SAMPLE);
    put_from_stages(file, rows, METRIC_DECODE, VP_STAGE_DECODE, VP_STAGE_DECODE, VP_STAGE_DECODE);
    file->derived_ttft += !isfinite(result_at(file, METRIC_TTFT, file->count));
    put_from_stages(file, rows, METRIC_TTFT, VP_STAGE_PREFILL, 0, VP_STAGE_DECODE - 1);
    put_from_stages(file, rows, METRIC_UNACCOUNTED, VP_STAGE_PREFILL, 0, VP_STAGE_COUNT - 1);
    if (file->is_foreign && isfinite(tokens) && isfinite(result_at(file, METRIC_DECODE, file->count))) {
        const double step = tokens > 1 ? result_at(file, METRIC_DECODE, file->count) / (tokens - 1) : (double)NAN;
        const double given = result_at(file, METRIC_PER_TOKEN, file->count);
        file->divides_anew |= isfinite(given) && !(fabs(given - step) <= 1e-3 * given);
        if (isfinite(given)) file->columns[METRIC_PER_TOKEN][file->count] = step;
        else result_put(file, rows, METRIC_PER_TOKEN, file->count, step);
    }
    if (!isfinite(result_at(file, COLUMN_SEQUENCE, file->count)))
        result_put(file, rows, COLUMN_SEQUENCE, file->count, result_at(file, COLUMN_PROMPT, file->count));
    result_put(file, rows, METRIC_CLOSURE, file->count,
               1 - result_at(file, METRIC_UNACCOUNTED, file->count) / result_at(file, METRIC_TOTAL, file->count));
    file->count++;
}
/* Reads "sample_id": an integer of 0 or more, or a text, which name_samples turns into a number. */
static int read_id(struct result_file *file, const vp_json *json, uint32_t id, size_t rows, size_t row) {
    int64_t *number = &file->ids[file->count];
    char *text;
    if (id == VP_JSON_NONE) return result_fail(file, json, id, row, "sample_id", "is missing");
    if (node_is(json, id, VP_JSON_STRING) && json->nodes[id].bytes && (text = node_text(json, id)) != NULL) {
        if (!file->id_texts) file->id_texts = zeroed(rows + 1, sizeof *file->id_texts);
        free(file->id_texts[file->count]); /* that of a failed row */
        file->id_texts[file->count] = text_without_controls(text);
        *number = -1;
        return 0;
    }
    if (vp_json_to_int(json, id, number) == VP_OK && *number >= 0) return 0;
    return result_fail(file, json, id, row, "sample_id", "is neither a non-negative integer nor a string");
}
/* Reads one object of per_sample_results. A failed sample is counted but gets no row. Returns 0 or an exit code. */
static int read_row(struct result_file *file, const vp_json *json, uint32_t object, size_t rows, size_t row,
                    size_t *capacity) {
    const uint32_t id = vp_json_get(json, object, "sample_id"), status = vp_json_get(json, object, "status");
    if (!node_is(json, object, VP_JSON_OBJECT))
        return result_fail(file, json, object, row, "the row", "is not an object");
    file->run_at[file->count + 1] = file->run_at[file->count];
    /* a failed row may have left numbers here */
    for (int i = 0; i < COLUMN_COUNT; i++) if (file->columns[i]) file->columns[i][file->count] = (double)NAN;
    if (read_id(file, json, id, rows, row) || read_columns(file, json, object, rows, row)
        || read_stage_times(file, json, vp_json_get(json, object, "stages"), rows, row)
        || read_stage_details(file, json, vp_json_get(json, object, "stage_detail"), rows, row)
        || read_runs(file, json, vp_json_get(json, object, "runs"), row, capacity)
        || read_image(file, json, vp_json_get(json, object, "sent_image"), rows, row)
        || read_outside_row(file, json, vp_json_get(json, object, "T_image_outside"), rows, row))
        return EXIT_INPUT;
    read_usage(file, json, vp_json_get(json, object, "served_runs"));
    result_put(file, rows, COLUMN_ROW, file->count, (double)row);
    if (status != VP_JSON_NONE && !vp_json_equals(json, status, "ok")) {
        if (!file->failed_count++) file->failed_reason = result_text(json, object, "reason");
        /* under load, it is a wrong answer without a time */
        file->count += knobs_are_loaded(&file->knobs) && isfinite(result_at(file, COLUMN_ACCURACY, file->count));
        return 0;
    }
    if (!(result_at(file, METRIC_TOTAL, file->count) > 0))
        return result_fail(file, json, object, row, "T_total", "is missing or 0");
    finish_row(file, rows);
    return 0;
}
int by_row_id(const void *left_item, const void *right_item) {
    const struct row_order *left = (const struct row_order *)left_item, *right = (const struct row_order *)right_item;
    return left->id != right->id ? (left->id < right->id ? -1 : 1) : left->at < right->at ? -1 : left->at > right->at;
}
/* Reorders the rows, with the numbers of their runs. */
static void move_rows(struct result_file *file, const struct row_order *order) {
    double *moved = resize(NULL, file->count, sizeof *moved);
    size_t *run_at = zeroed(file->count + 1, sizeof *run_at);
    for (int column = 0; column < COLUMN_COUNT; column++) {
        if (!file->columns[column]) continue;
        for (size_t i = 0; i < file->count; i++) moved[i] = file->columns[column][order[i].at];
        memcpy(file->columns[column], moved, file->count * sizeof *moved);
    }
    for (size_t i = 0; i < file->count; i++) {
        run_at[i + 1] = run_at[i] + file->run_at[order[i].at + 1] - file->run_at[order[i].at];
        file->ids[i] = order[i].id;
    }
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        double *runs = file->run_ms[metric];
        if (!runs) continue;
        file->run_ms[metric] = resize(NULL, run_at[file->count], sizeof *runs);
        for (size_t i = 0; i < file->count; i++)
            memcpy(file->run_ms[metric] + run_at[i], runs + file->run_at[order[i].at],
                   (run_at[i + 1] - run_at[i]) * sizeof *runs);
        free(runs);
    }
    FREE_ALL(moved, file->run_at);
    file->run_at = run_at;
}
/* Sorts the rows ascending by id, as in our own files. A repeated id is the file's error. */
static void sort_rows(struct result_file *file) {
    struct row_order *order = resize(NULL, file->count, sizeof *order);
    size_t sorted = 1;
    for (size_t i = 0; i < file->count; i++) { order[i].id = file->ids[i]; order[i].at = i; }
    while (sorted < file->count && file->ids[sorted - 1] < file->ids[sorted]) sorted++;
    if (sorted < file->count) qsort(order, file->count, sizeof *order, by_row_id);
    for (size_t i = 1; i < file->count && !file->error[0]; i++) {
        if (order[i].id != order[i - 1].id) continue;
        if (order[i].id < 0)
            snprintf(file->error, sizeof file->error, "%.500s: sample_id \"%.200s\" is in two rows", file->path,
                     file->id_texts[order[i].at]);
        else snprintf(file->error, sizeof file->error, "%.500s: sample_id %lld is in two rows", file->path,
                      (long long)order[i].id);
    }
    if (sorted < file->count) move_rows(file, order);
    free(order);
}
/* Where requests also wait, the sum of an engine's stages is far below the time to the first token. */
static void drop_short_ttft(struct result_file *file) {
    double rest = 0, total = 0;
    for (size_t i = 0; i < file->count; i++) {
        rest += fmax(result_at(file, METRIC_UNACCOUNTED, i), 0);
        total += result_at(file, METRIC_TOTAL, i);
    }
    if (!file->is_foreign || file->derived_ttft < file->count || !(rest > 0.1 * total)) return;
    free(file->columns[METRIC_TTFT]);
    file->columns[METRIC_TTFT] = NULL;
}
static int read_rows(struct result_file *file, const vp_json *json, uint32_t array) {
    size_t rows = json->nodes[array].count, capacity = 0;
    uint32_t item = array + 1;
    /* one more, because a row is written before it is known to be bad, even after the last good one */
    file->row_count = rows;
    file->ids = zeroed(rows + 1, sizeof *file->ids);
    file->run_at = zeroed(rows + 2, sizeof *file->run_at);
    for (size_t i = 0; i < rows; i++, item = json->nodes[item].end)
        if (read_row(file, json, item, rows, i, &capacity)) return EXIT_INPUT;
    drop_short_ttft(file);
    return 0;
}
/* A text that is an id: its hash, its number, and where the number goes. */
struct id_text { uint64_t hash; int64_t id, *to; };
static int by_id_text(const void *left_item, const void *right_item) {
    const struct id_text *left = (const struct id_text *)left_item, *right = (const struct id_text *)right_item;
    if (left->hash != right->hash) return left->hash < right->hash ? -1 : 1;
    return (left->id > right->id) - (left->id < right->id);
}
/* Gives each text that is an id one number in all files of this program's run, and sorts the rows of these files. The
 * numbers are below 0 and ascend in the order in which the files name the samples, which is that of measuring. */
static void name_samples(struct result_file *files, size_t count) {
    static struct id_text *texts; /* those of earlier calls first */
    static size_t text_count;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; files[i].id_texts && k < files[i].count; k++) {
            if (files[i].ids[k] >= 0) continue;
            if (!(text_count & (text_count - 1))) texts = resize(texts, 2 * text_count + 1, sizeof *texts);
            texts[text_count] = (struct id_text){hash_text(HASH_START, files[i].id_texts[k]),
                                                 INT64_MIN + (int64_t)text_count, &files[i].ids[k]};
            text_count++;
        }
    if (text_count) qsort(texts, text_count, sizeof *texts, by_id_text);
    for (size_t i = 0; i < text_count; i++) {
        if (i && texts[i].hash == texts[i - 1].hash) texts[i].id = texts[i - 1].id;
        if (texts[i].to) *texts[i].to = texts[i].id;
        texts[i].to = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (files[i].kind == FILE_RESULT && !files[i].error[0]) sort_rows(&files[i]);
        for (size_t k = 0; files[i].id_texts && k <= files[i].row_count; k++) free(files[i].id_texts[k]);
        free(files[i].id_texts);
        files[i].id_texts = NULL;
    }
}

static int read_knob_list(struct result_file *file, const vp_json *json, int knob) {
    const char *key = KNOBS[knob].list_key;
    const uint32_t array = vp_json_get(json, 0, key);
    struct knob_value *blocks = &file->knobs.of[knob];
    uint32_t item = array + 1;
    if (!node_is(json, array, VP_JSON_ARRAY)) return 0;
    blocks->list = zeroed((size_t)json->nodes[array].count + 1, sizeof *blocks->list);
    for (uint32_t i = 0; i < json->nodes[array].count; i++, item = json->nodes[item].end) {
        int64_t value;
        if (vp_json_to_int(json, item, &value) != VP_OK || value < 0 || value > 1000000)
            return result_fail(file, json, item, SIZE_MAX, key, "contains an invalid block index");
        blocks->list[blocks->list_count++] = (int32_t)value;
    }
    return 0;
}
static void read_kernel_pass(struct result_file *file, const vp_json *json, uint32_t array) {
    uint32_t item = array + 1;
    for (int stage = 0; stage < VP_STAGE_COUNT; stage++)
        file->kernel_ms[stage] = file->kernel_device_ms[stage] = (double)NAN;
    memset(file->part_ms, 0, sizeof file->part_ms);
    for (uint32_t i = 0; node_is(json, array, VP_JSON_ARRAY) && i < json->nodes[array].count;
         i++, item = json->nodes[item].end) {
        uint32_t stages = vp_json_get(json, item, "stages");
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            uint32_t stage_node = vp_json_get(json, stages, vp_stage_name((vp_stage)stage));
            double device = node_number(json, vp_json_get(json, stage_node, "device_ms")),
                   kernels = is_copy_stage(stage) ? device
                                                  : node_number(json, vp_json_get(json, stage_node, "kernel_ms"));
            if (!(device >= 0 && device <= MS_MOST && kernels >= 0 && kernels <= MS_MOST)) continue;
            file->kernel_device_ms[stage] =
                (isfinite(file->kernel_device_ms[stage]) ? file->kernel_device_ms[stage] : 0) + device;
            file->kernel_ms[stage] = (isfinite(file->kernel_ms[stage]) ? file->kernel_ms[stage] : 0) + kernels;
            for (int part = 0; part < VP_PART_COUNT; part++) {
                double ms = node_number(
                    json, vp_json_get(json, vp_json_get(json, stage_node, "parts"), vp_part_name((vp_part)part)));
                if (ms >= 0 && ms <= kernels * (1 + 1e-9)) file->part_ms[stage][part] += ms;
            }
        }
    }
}
/* The task from the file's name, <task>_imgsize...; malloc'ed. */
static char *task_of_path(const char *path) {
    const char *name = name_in_path(path), *end = strstr(name, "_imgsize");
    return text_without_controls(copy_text(name, end ? (size_t)(end - name) : strcspn(name, ".")));
}
static void read_knob_text(struct result_file *file, const vp_json *json, uint32_t object, int knob) {
    char *text = result_text(json, object, KNOBS[knob].key);
    knob_set_text(&file->knobs, knob, text);
    free(text);
}
/* Adds the members of an object to the file's own knobs, or settings of the head without an axis to its other members:
 * `settings`, and what is not known. Long values are replaced by their hash. Returns 0 or an exit code. */
static int read_own(struct result_file *file, const vp_json *json, uint32_t object) {
#define NAME_OF_ROW(S, type, key, ...) #key,
#define NAME_ELSE(type, key, ...) key,
    static const char *const known[] = {RESULT_KEYS(NAME_OF_ROW, NAME_OF_ROW, NAME_ELSE)
                                            SESSION_ROWS(NAME_ELSE) "knobs"};
    static const char *const settings[] = {"model", "architecture", "max_new_tokens", "num_total_blocks"};
    for (uint32_t i = object + 1; i < json->nodes[object].end; i = json->nodes[i + 1].end) {
        const vp_json_node *value = &json->nodes[i + 1];
        const char *start = json->text + value->start;
        char *name = text_without_controls(node_text(json, i)), digits[27] = "";
        int is_known = !name;
        double number;
        for (size_t k = 0; k < sizeof known / sizeof *known && !object; k++)
            is_known |= vp_json_equals(json, i, known[k]);
        for (int knob = 0; knob < KNOB_OWN && (!object || !file->is_served); knob++)
            is_known |= ((!object || KNOBS[knob].of != KNOB_OF_FILES) && vp_json_equals(json, i, KNOBS[knob].key))
                        || (KNOBS[knob].number_key && vp_json_equals(json, i, KNOBS[knob].number_key));
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
            is_known &= !vp_json_equals(json, i, settings[k]);
        if (is_known) free(name);
        if (is_known) continue;
        text_list_take(&file->own, name);
        if (object && !file->is_served && (value->type == VP_JSON_NULL || value->type >= VP_JSON_ARRAY))
            return result_fail(file, json, i + 1, SIZE_MAX, name,
                               "in \"knobs\" is not a number, a string, true or false");
        if (!file->is_served && vp_json_to_double(json, i + 1, &number) == VP_OK) { /* 4 and 4.0 are equal */
            const size_t bytes = vp_number_format(number, digits);
            if (bytes > 2 && !strcmp(digits + bytes - 2, ".0")) digits[bytes - 2] = 0;
            text_list_copy(&file->own, digits);
        } else if (object && value->type == VP_JSON_STRING)
            text_list_add(&file->own, "\"%.*s\"", (int)value->bytes, start);
        else if (object || value->bytes <= OWN_BYTES_MOST)
            text_list_take(&file->own, copy_text(start, (size_t)value->bytes));
        else text_list_add(&file->own, "#%016llx", (unsigned long long)hash_bytes(HASH_START, start, value->bytes));
    }
    if (object) file->own_knobs = file->own.count;
    return 0;
}
/* Reads the knobs of images and of the engine from the head, or from its "knobs". Returns 0 or an exit code. */
static int read_knobs(struct result_file *file, const vp_json *json, uint32_t object) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const struct knob *row = &KNOBS[knob];
        const char *key = row->type == KNOB_IS_NUMBER ? row->key : row->number_key;
        int64_t number = -1;
        if (row->of != KNOB_OF_IMAGES && row->of != KNOB_OF_ENGINE) continue;
        const uint32_t node = vp_json_get(json, object, row->key);
        if (object && node == VP_JSON_NONE) continue;
        if (row->type == KNOB_IS_TEXT && node != VP_JSON_NONE && !node_is(json, node, VP_JSON_NULL)
            && !node_is(json, node, VP_JSON_STRING))
            return result_fail(file, json, node, SIZE_MAX, row->key, "is not a string");
        if (row->type == KNOB_IS_TEXT) read_knob_text(file, json, object, knob);
        if (key && read_count(file, json, object, key, row->most_read ? row->most_read : INT32_MAX, &number))
            return EXIT_INPUT;
        if (number < 0) continue;
        if (row->type == KNOB_IS_NUMBER) knob_set_number(&file->knobs, knob, number);
        else file->knobs.of[knob].number = number;
    }
    return 0;
}
/* Reads "knobs" with "knob_units" and, of an engine's file, settings in the head without an axis. A built-in name in
 * "knobs" is the built-in knob. Returns 0 or an exit code. */
static int read_own_knobs(struct result_file *file, const vp_json *json) {
    static const char *const keys[] = {"knobs", "knob_units"};
    uint32_t nodes[2];
    for (int i = 0; i < 2; i++) {
        nodes[i] = vp_json_get(json, 0, keys[i]);
        if (nodes[i] != VP_JSON_NONE && !node_is(json, nodes[i], VP_JSON_OBJECT))
            return result_fail(file, json, nodes[i], SIZE_MAX, keys[i], "is not an object");
    }
    if (nodes[0] != VP_JSON_NONE
        && (read_own(file, json, nodes[0]) || (!file->is_served && read_knobs(file, json, nodes[0]))))
        return EXIT_INPUT;
    for (size_t i = 0; i < file->own_knobs; i += 2) /* rows of files are made later, by one thread */
        for (int knob = KNOB_RATE; knob <= KNOB_CONCURRENCY; knob++)
            if (!strcmp(file->own.items[i], KNOBS[knob].key)) knob_set_text(&file->knobs, knob, file->own.items[i + 1]);
    for (uint32_t i = nodes[1] + 1; nodes[1] != VP_JSON_NONE && i < json->nodes[nodes[1]].end;
         i = json->nodes[i + 1].end) {
        char *name = node_text(json, i), *unit = text_without_controls(node_text(json, i + 1));
        if (name && unit) { text_list_copy(&file->units, name); text_list_copy(&file->units, unit); }
        FREE_ALL(name, unit);
    }
    return file->is_foreign && !file->is_served ? read_own(file, json, 0) : 0;
}
/* The blocks of a server under load; one that does not fit is left out. */
static void read_load(struct result_file *file, const vp_json *json, uint32_t list) {
    if (!node_is(json, list, VP_JSON_ARRAY) || !knobs_are_loaded(&file->knobs)) return;
    file->loads = zeroed(json->nodes[list].count, sizeof *file->loads);
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end)
        if (fields_fit(json, i, &LOAD, -1)) fields_read(json, i, &LOAD, &file->loads[file->load_count++]);
}
/* The command of "argv" in shell syntax; NULL: the file does not say it. */
static char *read_command(const vp_json *json, uint32_t provenance) {
    const uint32_t list = vp_json_get(json, provenance, "argv");
    struct text_buffer out = {NULL, 0, 0};
    if (list == VP_JSON_NONE || json->nodes[list].type != VP_JSON_ARRAY) return NULL;
    for (uint32_t i = list + 1, k = 0; k < json->nodes[list].count; k++, i = json->nodes[i].end) {
        char *word = node_text(json, i);
        if (k) text_add_string(&out, " ");
        shell_word(&out, word ? word : "");
        free(word);
    }
    return out.data;
}
static void read_provenance(struct result_file *file, const vp_json *json) {
    uint32_t from = vp_json_get(json, 0, "provenance"), config = vp_json_get(json, 0, "config");
    vp_model_config preset;
    file->device = result_text(json, from, "device");
    file->host = result_text(json, from, "host");
    file->command = read_command(json, from);
    file->version = result_text(json, from, "version");
    for (int knob = 0; knob < KNOB_COUNT; knob++) /* knobs of a sweep, and the weights of older files */
        if (KNOBS[knob].of == KNOB_OF_SWEEP || (knob == KNOB_WEIGHTS && !knob_is_set(&file->knobs, knob)))
            read_knob_text(file, json, config, knob);
    file->importance = result_text(json, config, "importance_scores_file");
    file->seed = node_int(json, config, "seed", -1);
    file->ignore_eos = vp_json_get(json, config, "ignore_eos") == VP_JSON_NONE
                           ? -1
                           : node_is(json, vp_json_get(json, config, "ignore_eos"), VP_JSON_TRUE);
    file->no_cache = node_is(json, vp_json_get(json, config, "no_cache"), VP_JSON_TRUE);
    if (vp_json_get(json, config, "same_image") != VP_JSON_NONE)
        file->images = node_is(json, vp_json_get(json, config, "same_image"), VP_JSON_TRUE) ? "same" : "unique";
    else if (vp_json_get(json, config, "unique_image") != VP_JSON_NONE) /* in older versions it was an option */
        file->images = node_is(json, vp_json_get(json, config, "unique_image"), VP_JSON_TRUE) ? "unique" : "same";
    if (!file->is_served) file->images = NULL;
    fields_read(json, vp_json_get(json, 0, "tool_cost"), &TOOL_COST, &file->cost);
    if (file->expert_count < 0 && file->synthetic && file->model
        && vp_model_config_preset(file->model, &preset) == VP_OK)
        file->expert_count = preset.expert_count;
}
/* The description that this file's server gave of itself in the session. */
static char *server_words(const struct result_file *file, const vp_json *json) {
    const uint32_t servers = vp_json_get(json, vp_json_get(json, 0, "provenance"), "servers");
    for (uint32_t i = 0; node_is(json, servers, VP_JSON_ARRAY) && i < json->nodes[servers].count; i++) {
        const uint32_t server = vp_json_at(json, servers, i);
        if (node_is(json, server, VP_JSON_OBJECT)
            && vp_json_equals(json, vp_json_get(json, server, "endpoint"), knob_text(&file->knobs, KNOB_ENDPOINT)))
            return result_text(json, server, "server");
    }
    return NULL;
}
/* Reads the cost of the images by their twins. Returns 0 or an exit code. */
static int read_outside(struct result_file *file, const vp_json *json) {
    struct outside *outside = &file->outside;
    const struct { const char *key; double *to; double least; } times[] = {
        {"ms", &outside->ms, -MS_MOST},         {"low", &outside->low, -MS_MOST},
        {"high", &outside->high, -MS_MOST},     {"level", &outside->level, 0},
        {"TTFT_image", &outside->image_ms, 0},  {"TTFT_text", &outside->text_ms, 0},
        {"floor_ms", &outside->floor_ms, 0}};
    static const char *const left_out[] = {"pairs_cached", "pairs_unequal", "pairs_silent"};
    const uint32_t object = vp_json_get(json, 0, "T_image_outside");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) *times[i].to = (double)NAN;
    outside->server_ms = (double)NAN;
    if (object == VP_JSON_NONE || node_is(json, object, VP_JSON_NULL)) return 0;
    if (!node_is(json, object, VP_JSON_OBJECT))
        return result_fail(file, json, object, SIZE_MAX, "T_image_outside", "is not an object");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (read_number(file, json, vp_json_get(json, object, times[i].key), SIZE_MAX, times[i].key, times[i].least,
                        MS_MOST, times[i].to))
            return EXIT_INPUT;
    uint32_t server = vp_json_get(json, vp_json_get(json, object, "server_prompt_ms"), "difference");
    if (server != VP_JSON_NONE
        && read_number(file, json, server, SIZE_MAX, "server_prompt_ms", -MS_MOST, MS_MOST, &outside->server_ms))
        return EXIT_INPUT;
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        int64_t count = 0;
        if (read_count(file, json, object, left_out[i], INT64_C(1) << 40, &count)) return EXIT_INPUT;
        outside->left_out += count > 0 ? count : 0;
    }
    outside->basis = result_text(json, object, "basis");
    return read_count(file, json, object, "pairs", INT64_C(1) << 40, &outside->pairs)
           || read_count(file, json, object, "pairs_adjusted", INT64_C(1) << 40, &outside->adjusted);
}
/* Reads the server of the file, if there is one. Returns 0 or an exit code. */
static int read_server(struct result_file *file, const vp_json *json) {
    const uint32_t request = vp_json_get(json, 0, KNOBS[KNOB_REQUEST].key);
    char *text;
    read_knob_text(file, json, 0, KNOB_ENDPOINT);
    file->is_served = knobs_are_served(&file->knobs);
    if (!file->is_served) return 0;
    read_knob_text(file, json, 0, KNOB_ENDPOINT_MODEL);
    if (!knob_is_set(&file->knobs, KNOB_ENDPOINT_MODEL))
        return result_fail(file, json, vp_json_get(json, 0, KNOBS[KNOB_ENDPOINT_MODEL].key), SIZE_MAX,
                           KNOBS[KNOB_ENDPOINT_MODEL].key, "is missing");
    if (!node_is(json, request, VP_JSON_OBJECT))
        return result_fail(file, json, request, SIZE_MAX, KNOBS[KNOB_REQUEST].key, "is not an object");
    text = copy_text(json->text + json->nodes[request].start, (size_t)json->nodes[request].bytes);
    knob_set_text(&file->knobs, KNOB_REQUEST, text);
    free(text);
    read_own(file, json, request);
    file->server = server_words(file, json);
    return read_count(file, json, 0, "num_cached_runs", INT64_C(1) << 60, &file->cached_runs)
           || read_count(file, json, 0, "num_dropped_image_runs", INT64_C(1) << 60, &file->dropped_runs)
           || read_outside(file, json) ? EXIT_INPUT : 0;
}
/* Reads the members of the head that reports need; -1 and NULL if missing. Returns 0 or an exit code. */
static int read_members(struct result_file *file, const vp_json *json, const struct fields *fields, void *to) {
    const struct field *bad = fields_read_marked(json, 0, fields, to);
    const uint32_t node = bad ? vp_json_get(json, 0, bad->key) : VP_JSON_NONE;
    if (!bad) return 0;
    return result_fail(file, json, node, SIZE_MAX, bad->key, bad->type == FIELD_INT ? "is not a valid count"
                       : bad->type == FIELD_TEXT ? "is not a string" : bad->type == FIELD_TRUTH ? "is not true or false"
                       : node_is(json, node, VP_JSON_NUMBER) ? "is out of range" : "is not a number");
}
static int knob_fail(struct result_file *file, const vp_json *json, int knob) {
    return result_fail(file, json, vp_json_get(json, 0, KNOBS[knob].key), SIZE_MAX, KNOBS[knob].key,
                       knob_is_set(&file->knobs, knob) ? "is 0" : "is missing");
}
static int read_head(struct result_file *file, const vp_json *json) {
    static const char *const stats[] = {"aggregate_stats", "latency_stats"};
    uint32_t node, shape = vp_json_get(json, 0, "model_shape");
    if (!node_is(json, shape, VP_JSON_OBJECT)) shape = VP_JSON_NONE;
    file->is_foreign = vp_json_get(json, 0, "schema") == VP_JSON_NONE;
    file->is_policy = vp_json_get(json, vp_json_get(json, 0, "knobs"), "policy") != VP_JSON_NONE;
    if (read_members(file, json, &RESULT, &file->head) || read_members(file, json, &RESULT_ACCURACY, &file->scores)
        || read_members(file, json, &RESULT_FIDELITY, &file->fidelity)
        || read_members(file, json, &RESULT_VISION, &file->sums)
        || read_members(file, json, &RESULT_TIME, &file->times))
        return EXIT_INPUT;
    file->is_unnamed = !file->dataset_name;
    if (file->is_unnamed) file->dataset_name = task_of_path(file->path);
    if (read_knobs(file, json, 0) || read_count(file, json, 0, "num_total_blocks", 1000000, &file->total_blocks)
        || read_count(file, json, shape == VP_JSON_NONE ? 0 : shape, "num_experts", 1000000, &file->expert_count))
        return EXIT_INPUT;
    if (read_server(file, json) || read_own_knobs(file, json)) return EXIT_INPUT;
    if (!file->is_served && shape != VP_JSON_NONE && vp_json_get(json, shape, "num_experts") != VP_JSON_NONE
        && file->expert_count == 0)
        knob_set_number(&file->knobs, KNOB_TOP_K, 0);
    else if (file->is_foreign && !file->is_served && !knob_is_set(&file->knobs, KNOB_TOP_K))
        knob_set_number(&file->knobs, KNOB_TOP_K, 0); /* an engine of its own need not have experts */
    else if (!file->is_foreign && !file->is_served && !file->is_policy
             && knob_number(&file->knobs, KNOB_TOP_K) < 1)
        return knob_fail(file, json, KNOB_TOP_K);
    if (file->is_foreign && !knob_is_set(&file->knobs, KNOB_BLOCKS)) file->knobs.of[KNOB_BLOCKS].number = 1;
    else if (!file->is_served && !file->is_policy && knob_number(&file->knobs, KNOB_BLOCKS) < 1)
        return knob_fail(file, json, KNOB_BLOCKS);
    for (int knob = 0; knob < KNOB_COUNT && file->is_served; knob++)
        if (KNOBS[knob].of == KNOB_OF_ENGINE) file->knobs.of[knob].is_set = 0;
    for (int i = 0; i < 2; i++) { /* under one of its two names; its content is computed again from the rows */
        node = vp_json_get(json, 0, stats[i]);
        if (node != VP_JSON_NONE && !node_is(json, node, VP_JSON_OBJECT))
            return result_fail(file, json, node, SIZE_MAX, stats[i], "is not an object");
    }
    read_provenance(file, json);
    read_kernel_pass(file, json, vp_json_get(json, 0, "kernel_pass"));
    fields_read(json, vp_json_get(json, 0, "noise"), &NOISE, &file->noise);
    read_load(file, json, vp_json_get(json, 0, "load"));
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (KNOBS[knob].list_key && read_knob_list(file, json, knob)) return EXIT_INPUT;
    return 0;
}
/* Reads file->path. file->kind and file->error show whether and why a file cannot be used. */
static void read_result(struct result_file *file, struct parsed *scratch) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *json = &scratch->json;
    char *text = NULL, *schema;
    size_t bytes = 0;
    uint32_t rows;
    vp_result result = vp_file_read(file->path, RESULT_BYTES_MOST, &text, &bytes, &error);
    file->error_code = result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
    if (result == VP_OK && (result = parse_json(scratch, text, bytes, &error)) != VP_OK) {
        file->kind = FILE_NOT_JSON;
        snprintf(file->error, sizeof file->error, "%.500s: byte %lld: %.200s", file->path, (long long)error.offset,
                 error.text[0] ? error.text : vp_result_text(result));
    } else if (result != VP_OK) {
        error_line(file->error, sizeof file->error, result, &error);
        if (!strstr(file->error, file->path))
            snprintf(file->error, sizeof file->error, "%.500s: %.200s", file->path,
                     error.text[0] ? error.text : vp_result_text(result));
    } else {
        schema = result_text(json, 0, "schema");
        rows = vp_json_get(json, 0, "per_sample_results");
        if (schema && (!strncmp(schema, "vlmprof-report", 14) || !strncmp(schema, "vlmprof-estimator", 17)))
            file->kind = FILE_OWN_REPORT;
        else if (!node_is(json, rows, VP_JSON_ARRAY) || (schema && strncmp(schema, "vlmprof-sweep-", 14)))
            file->kind = FILE_OTHER_JSON;
        else if (!read_head(file, json) && !read_rows(file, json, rows) && !file->count && !file->failed_count)
            snprintf(file->error, sizeof file->error, "%.500s: per_sample_results is empty", file->path);
        free(schema);
    }
    free(text);
}

/* ---- many files */
/* Lists the *.json files of a folder, or the file itself. Returns 0 or an exit code. */
static int list_results(struct text_list *paths, const char *operand) {
    size_t first = paths->count;
    struct text_list names = {NULL, 0};
    int code, has_journal = 0;
    if (vp_path_kind(operand) == VP_PATH_NONE)
        return complain(EXIT_INPUT, "%s: %s", operand,
                        errno == ENOENT ? "no such file or folder" : "a part of its path is not a folder");
    if (!is_folder(operand)) {
        text_list_add(paths, "%s", operand);
        return 0;
    }
    code = names_of_folder(operand, &names);
    for (size_t i = 0; i < names.count; i++) {
        const char *dot = strrchr(names.items[i], '.');
        has_journal |= !strncmp(names.items[i], "journal", 7) && dot && !strcmp(dot, ".jsonl");
        if (names.items[i][0] != '.' && dot && !strcmp(dot, ".json"))
            text_list_take(paths, join_path(operand, names.items[i]));
    }
    text_list_free(&names);
    if (code) return code;
    if (paths->count == first && has_journal)
        return complain(EXIT_INPUT,
                        "%s: the folder contains no result files, only the journal of an unfinished sweep: run the "
                        "sweep again, or vlmprof merge %s --partial",
                        operand, operand);
    if (paths->count == first)
        return complain(EXIT_INPUT,
                        "%s: the folder has no result files (.json with per_sample_results): run vlmprof sweep, or "
                        "merge", operand);
    text_list_sort(paths, first);
    return 0;
}
int compare_axis(const struct result_file *left, const struct result_file *right, int axis) {
    return knob_compare(axis, &left->knobs, &right->knobs);
}
char *weights_text(const struct results *results) {
    struct text_buffer text = {NULL, 0, 0};
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        size_t first = 0;
        if (file->is_served || !knob_is_set(&file->knobs, KNOB_WEIGHTS)) continue;
        while (results->files[first].is_served || compare_axis(&results->files[first], file, KNOB_WEIGHTS)) first++;
        if (first < i) continue;
        text_add_string(&text, text.bytes ? ", " : "");
        text_add_string(&text, knob_text(&file->knobs, KNOB_WEIGHTS));
    }
    return text.data;
}
int compare_settings(const struct result_file *left, const struct result_file *right) {
    int order = strcmp(left->dataset_name, right->dataset_name);
    for (int axis = 0; axis < KNOB_COUNT && !order; axis++)
        if (knob_is_axis(axis)) order = compare_axis(left, right, axis);
    return order;
}
static int by_setting(const void *left_item, const void *right_item) {
    const struct result_file *left = (const struct result_file *)left_item,
                             *right = (const struct result_file *)right_item;
    int order = compare_settings(left, right);
    return order ? order : strcmp(left->path, right->path);
}
static const char *size_text(const struct result_file *file, char out[KNOB_TEXT_BYTES]) {
    if (!knob_size_text(&file->knobs, out)[0] && !file->is_foreign)
        snprintf(out, KNOB_TEXT_BYTES, file->is_policy ? "mixed" : "unchanged");
    return out;
}
const char *axis_text(const struct result_file *file, int axis, char out[KNOB_TEXT_BYTES]) {
    if (axis == KNOB_SIZE) return size_text(file, out);
    if (KNOBS[axis].of == KNOB_OF_SERVERS && !file->is_served) snprintf(out, KNOB_TEXT_BYTES, "vlmprof");
    else if (KNOBS[axis].of == KNOB_OF_ENGINE && file->is_served) snprintf(out, KNOB_TEXT_BYTES, "not known");
    else if (axis >= KNOB_OWN && !knob_is_set(&file->knobs, axis)) snprintf(out, KNOB_TEXT_BYTES, "not set");
    else {
        const size_t used = strlen(knob_value_text(&file->knobs, axis, out));
        if (KNOBS[axis].unit) snprintf(out + used, KNOB_TEXT_BYTES - used, " %.30s", KNOBS[axis].unit);
    }
    return out;
}
const char *language_text(const struct result_file *file, char out[KNOB_TEXT_BYTES]) {
    return knob_language_text(&file->knobs, file->varied, out);
}
const char *setting_text(const struct result_file *file, char out[80]) {
    char size[KNOB_TEXT_BYTES], language[KNOB_TEXT_BYTES], number[24] = "";
    size_text(file, size);
    language_text(file, language);
    if (!size[0] && !language[0]) snprintf(language, sizeof language, "default"); /* an engine without knobs */
    if (file->namesakes) snprintf(number, sizeof number, " #%zu", file->namesakes + 1);
    const size_t most = 47 - strlen(number);
    if (strlen(language) > most) language[vp_utf8_valid_bytes(language, most)] = 0;
    snprintf(out, 80, "%.*s%s%.47s%s", file->is_served ? 30 : 44, size, size[0] && language[0] ? " " : "", language,
             number);
    return out;
}
int are_all_served(const struct results *results) {
    for (size_t i = 0; i < results->count; i++) if (!results->files[i].is_served) return 0;
    return 1;
}

/* ---- knobs that files bring, and how the files differ */
/* What follows a name among the first `count` items of names and values in turn; NULL: nothing. */
static const char *value_of(const struct text_list *list, size_t count, const char *name) {
    for (size_t i = 0; i < count; i += 2) if (!strcmp(list->items[i], name)) return list->items[i + 1];
    return NULL;
}
int results_differ(const struct result_file *one, const struct result_file *other, int others, struct text_list *out) {
    const struct result_file *const files[2] = {one, other};
    for (int side = 0; side < 2; side++)
        for (size_t i = others > 1 ? files[side]->own_knobs : 0;
             i < (others ? files[side]->own.count : files[side]->own_knobs); i += 2) {
            const char *name = files[side]->own.items[i],
                       *value = value_of(&files[!side]->own, files[!side]->own.count, name);
            if (value && (side || !strcmp(files[side]->own.items[i + 1], value))) continue;
            text_list_copy(out, name);
            for (int k = 0; k < 2; k++) {
                value = value_of(&files[k]->own, files[k]->own.count, name);
                const int quoted = value && *value == '"';
                text_list_add(out, "%.*s", quoted && strlen(value) < 62 ? (int)strlen(value) - 2 : 60,
                              value ? value + quoted : "not said");
            }
        }
    return out->count > 0;
}
/* Makes the files' own knobs rows of KNOBS and sets them. An engine's file must have those of all others but "policy";
 * without a member of the request, a server has a value of its own. Returns 0 or an exit code. */
static int adopt_knobs(struct results *results) {
    for (size_t i = 0; i < results->count; i++) {
        struct result_file *file = &results->files[i];
        for (size_t k = 0; k < file->own_knobs; k += 2) {
            const char *unit = value_of(&file->units, file->units.count, file->own.items[k]);
            const int knob = knob_own(file->own.items[k], unit);
            if (knob < 0)
                return complain(EXIT_INPUT, "%.300s: the knob %.100s is one too many: at most %d can be read together",
                                file->path, file->own.items[k], KNOB_OWN_MOST);
            knob_set_text(&file->knobs, knob, file->own.items[k + 1]);
        }
    }
    for (size_t i = 0; i < results->count; i++)
        for (size_t k = 0; k < results->files[i].own_knobs && !results->files[i].is_served; k += 2)
            for (size_t other = 0; other < results->count; other++) {
                const struct result_file *file = &results->files[other];
                const char *name = results->files[i].own.items[k];
                if (file->is_served || value_of(&file->own, file->own_knobs, name) || !strcmp(name, "policy")) continue;
                return complain(EXIT_INPUT, "%.300s lacks the knob %.100s, which %.300s has: each file of a comparison "
                                "needs a value of it in \"knobs\"", file->path, name, results->files[i].path);
            }
    return 0;
}
/* Finds the knobs in which the files of engines differ, and those of servers. */
static void tell_apart(struct results *results) {
    const struct result_file *first[2] = {NULL, NULL};
    uint32_t differ = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (!first[file->is_served]) first[file->is_served] = file;
        for (int knob = 0; knob < KNOB_COUNT; knob++)
            if (knob_compare(knob, &first[file->is_served]->knobs, &file->knobs)) differ |= 1u << knob;
    }
    if (first[0] && first[1]) differ |= 1u << KNOB_ENDPOINT_MODEL;
    for (size_t i = 0; i < results->count; i++) results->files[i].varied = differ;
}
/* Numbers the configurations whose short names would be equal. */
static void number_namesakes(struct results *results) {
    for (size_t i = 0; i < results->count; i++) {
        char name[80], other[80];
        results->files[i].namesakes = 0;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(setting_text(&results->files[i], name), setting_text(&results->files[k], other)) != 0
                || strcmp(results->files[i].dataset_name, results->files[k].dataset_name) != 0)
                continue;
            results->files[i].namesakes++;
            k = (size_t)-1; /* again with the next number */
        }
    }
}

/* Without reference answers, the share of equal most likely tokens replaces the accuracy, if all configurations were
 * compared with the same baseline. */
static void judge_by_baseline(struct results *results, const struct result_group *group) {
    const struct result_file *first = &results->files[group->first];
    for (size_t i = 0; i < group->count; i++) {
        const struct result_file *file = first + i;
        if (isfinite(file->accuracy) || file->columns[COLUMN_ACCURACY] || !file->columns[COLUMN_TOP1]
            || !file->fidelity.baseline || strcmp(file->fidelity.baseline, first->fidelity.baseline) != 0)
            return;
    }
    for (struct result_file *file = &results->files[group->first]; file < first + group->count; file++) {
        double sum = 0;
        size_t count = 0;
        file->columns[COLUMN_ACCURACY] = resize(NULL, file->count, sizeof(double));
        for (size_t i = 0; i < file->count; i++) {
            const double share = file->columns[COLUMN_ACCURACY][i] = file->columns[COLUMN_TOP1][i];
            if (isfinite(share)) { sum += share; count++; }
        }
        file->accuracy = sum / (double)count;
        file->is_agreement = 1;
        free((char *)(size_t)file->accuracy_metric);
        file->accuracy_metric = copy_text("top1_agreement", 14);
    }
    text_list_add(&results->notes, "%.60s has no reference answers: accuracy is the top1_agreement with %.200s",
                  first->dataset_name, first->fidelity.baseline);
}
/* Chooses the configurations for paired statistics: those with at least half of the most samples. */
static void choose_paired(struct results *results, struct result_group *group) {
    size_t most = 0, first_out = 0, out_count = 0;
    for (size_t i = group->first; i < group->first + group->count; i++)
        if (results->files[i].count > most) most = results->files[i].count;
    group->paired = zeroed(group->count, sizeof *group->paired);
    for (size_t i = group->first; i < group->first + group->count; i++) {
        if (results->files[i].count && results->files[i].count * 2 >= most) group->paired[group->paired_count++] = i;
        else if (!out_count++) first_out = i;
    }
    if (out_count) {
        const struct result_file *file = &results->files[first_out];
        char name[80], more[48] = "";
        if (out_count > 1) snprintf(more, sizeof more, ", and %zu more configuration%s", out_count - 1,
                                    plural_s((int64_t)(out_count - 1)));
        text_list_add(&results->notes, "%.60s %s has %zu of %zu samples%s: excluded from fronts and effects",
                      file->dataset_name, setting_text(file, name), file->count, most, more);
    }
}
/* Finds the samples that all paired configurations have. */
static void pair_group(struct results *results, struct result_group *group) {
    struct row_order *all = NULL;
    size_t count = 0, all_count = 0;
    judge_by_baseline(results, group);
    choose_paired(results, group);
    for (size_t place = 0; place < group->paired_count; place++) {
        const struct result_file *file = &results->files[group->paired[place]];
        all = resize(all, count + file->count, sizeof *all);
        for (size_t row = 0; row < file->count; row++) all[count++] = (struct row_order){file->ids[row], place};
    }
    if (count) qsort(all, count, sizeof *all, by_row_id);
    group->ids = resize(NULL, count, sizeof *group->ids);
    for (size_t first = 0, last; first < count; first = last, all_count++) {
        for (last = first; last < count && all[last].id == all[first].id;) last++;
        if (last - first == group->paired_count) group->ids[group->id_count++] = all[first].id;
    }
    free(all);
    group->uncommon_count = all_count - group->id_count;
    if (group->uncommon_count)
        text_list_add(&results->notes,
                      "%.60s: %zu of %zu samples were not "
                      "measured in all configurations: excluded from paired comparisons",
                      results->files[group->first].dataset_name, group->uncommon_count, all_count);
}
static void group_results(struct results *results) {
    struct text_buffer same = {NULL, 0, 0};
    size_t kept = 0, same_count = 0, unnamed = 0;
    tell_apart(results);
    for (size_t i = 1; i < results->count && !results->unlike.count; i++)
        if (results_differ(&results->files[0], &results->files[i], 2, &results->unlike))
            for (int k = 0; k < 2; k++) text_list_copy(&results->unlike, results->files[k ? i : 0].path);
    qsort(results->files, results->count, sizeof *results->files, by_setting);
    for (size_t i = 0; i < results->count; i++) {
        if (kept && !compare_settings(&results->files[kept - 1], &results->files[i])) {
            if (!same_count++) {
                struct text_list differ = {NULL, 0};
                results_differ(&results->files[i], &results->files[kept - 1], 1, &differ);
                text_add_format(&same, "%.300s is the same configuration as %.300s", results->files[i].path,
                                results->files[kept - 1].path);
                for (size_t k = 0; k < differ.count; k += 3)
                    text_add_format(&same, "%s%.100s", k ? ", " : " (they differ in ", differ.items[k]);
                if (differ.count) text_add_string(&same, "; that is not a knob: see vlmprof help library, or sweep "
                                                         "--knob)");
                else if (!knob_values_are_same(&results->files[i].knobs, &results->files[kept - 1].knobs))
                    text_add_string(&same, " (they run different blocks; report them separately, or compare them)");
                text_list_free(&differ);
            }
            result_file_free(&results->files[i]);
        } else if (kept++ != i) results->files[kept - 1] = results->files[i];
    }
    if (same_count > 1)
        text_add_format(&same, "; %zu more file%s others", same_count - 1, same_count > 2 ? "s repeat" : " repeats");
    if (same_count) {
        text_list_add(&results->notes, "%s: skipped", same.data);
        results->repeats = results->notes.items[results->notes.count - 1];
    }
    free(same.data);
    results->count = kept;
    number_namesakes(results);
    for (size_t i = 0; i < results->count; i++) {
        if (!i || strcmp(results->files[i].dataset_name, results->files[i - 1].dataset_name))
            ADDED(results->groups, results->group_count)->first = i;
        results->groups[results->group_count - 1].count++;
    }
    for (size_t i = 0; i < results->group_count; i++)
        unnamed += results->groups[i].count == 1 && results->files[results->groups[i].first].is_unnamed;
    if (unnamed > 1) {
        text_list_add(&results->notes, "%zu files have no dataset_name: each counts as a data set of its own, so they "
                                       "are not compared with each other; give them the same dataset_name", unnamed);
        results->unnamed = results->notes.items[results->notes.count - 1];
    }
    for (size_t i = 0; i < results->group_count; i++) pair_group(results, &results->groups[i]);
}
/* Keeps the usable files. A file named by the caller, or with the name of a result file, must be a result file. Returns
 * 0 or an exit code. */
static int keep_results(struct results *results, const struct text_list *paths, const unsigned char *is_named) {
    enum { BROKEN_NAMED = 3 };
    size_t kept = 0, others = 0, broken = 0;
    const char *first_other = NULL;
    char first_error[LINE_BYTES] = "";
    int code = 0;
    for (size_t i = 0; i < results->count; i++) {
        struct result_file *file = &results->files[i];
        int must = is_named[i] || knob_is_file_name(name_in_path(paths->items[i]));
        if (file->kind == FILE_OTHER_JSON && must)
            snprintf(file->error, sizeof file->error, "%.500s is not a result file: it has no per_sample_results",
                     file->path);
        if (!code && file->error[0] && (must || file->kind != FILE_NOT_JSON))
            code = complain(file->error_code, "%s", file->error);
        else if (!code && file->kind == FILE_OWN_REPORT && is_named[i])
            code = complain(EXIT_INPUT, "%s is a report, not a result file", file->path);
        if (file->kind == FILE_OTHER_JSON && !others++) first_other = paths->items[i];
        if (file->kind == FILE_NOT_JSON) {
            if (!broken++) memcpy(first_error, file->error, sizeof first_error);
            if (broken <= BROKEN_NAMED) text_list_add(&results->notes, "%s: skipped", file->error);
        }
        if (file->kind != FILE_RESULT || file->error[0]) result_file_free(file);
        else if (kept++ != i) { results->files[kept - 1] = *file; memset(file, 0, sizeof *file); }
    }
    results->count = kept;
    if (code) return code;
    if (broken > BROKEN_NAMED)
        text_list_add(&results->notes, "%zu more files are not valid JSON: skipped", broken - BROKEN_NAMED);
    if (others > 1)
        text_list_add(&results->notes, "%.300s and %zu more file%s are not result files: skipped", first_other,
                      others - 1, plural_s((int64_t)others - 1));
    else if (others) text_list_add(&results->notes, "%.300s is not a result file: skipped", first_other);
    if (!kept && broken) return complain(EXIT_INPUT, "%s", first_error);
    return kept ? 0 : complain(EXIT_INPUT, "%s contains no result file (with per_sample_results)", paths->items[0]);
}
static int has_knob_value(const struct result_file *file, int knob, const char *given) {
    char value[KNOB_TEXT_BYTES];
    double wanted, number;
    knob_value_text(&file->knobs, knob, value);
    return !strcmp(value, given) || (vp_number_parse(value, strlen(value), &number) == VP_OK
                                     && vp_number_parse(given, strlen(given), &wanted) == VP_OK
                                     && !(number < wanted) && !(number > wanted));
}
/* Keeps the files with a value of a knob, "KNOB=VALUE". Returns 0 or EXIT_USAGE. */
static int keep_value(struct results *results, const char *text) {
    const size_t bytes = strcspn(text, "=");
    const char *given = text + bytes + (text[bytes] == '=');
    size_t kept = 0, at = 0;
    int knob = 0;
    while (knob < KNOB_COUNT && !(KNOBS[knob].key && !strncmp(KNOBS[knob].key, text, bytes) && !KNOBS[knob].key[bytes]))
        knob++;
    while (at < results->count && !(knob < KNOB_COUNT && has_knob_value(&results->files[at], knob, given))) at++;
    if (at == results->count) return results_complain_of_value(results, "--at", text, bytes, knob);
    for (size_t i = 0; i < results->count; i++) {
        if (!has_knob_value(&results->files[i], knob, given)) result_file_free(&results->files[i]);
        else if (kept++ != i) results->files[kept - 1] = results->files[i];
    }
    results->count = kept;
    return 0;
}
int results_read(struct results *results, const char *const *operands, size_t operand_count) {
    return results_read_at(results, operands, operand_count, NULL);
}
int results_read_at(struct results *results, const char *const *operands, size_t operand_count,
                    const struct option_value *at) {
    struct text_list paths = {NULL, 0};
    unsigned char *is_named = NULL;
    int code = 0;
    memset(results, 0, sizeof *results);
    for (size_t i = 0; i < operand_count && !code; i++) {
        size_t before = paths.count;
        code = list_results(&paths, operands[i]);
        is_named = resize(is_named, paths.count, 1);
        for (size_t k = before; k < paths.count; k++) is_named[k] = !is_folder(operands[i]);
    }
    if (!code) {
        results->files = zeroed(paths.count, sizeof *results->files);
        results->count = paths.count;
        for (size_t i = 0; i < paths.count; i++)
            results->files[i].path = copy_text(paths.items[i], strlen(paths.items[i]));
#ifdef _OPENMP
#pragma omp parallel num_threads(RESULT_READERS)
#endif
        {
            struct parsed scratch = {{NULL, NULL, 0}, NULL, 0};
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
            for (int64_t i = 0; i < (int64_t)paths.count; i++) read_result(&results->files[i], &scratch);
            free(scratch.nodes);
        }
        name_samples(results->files, results->count);
        code = keep_results(results, &paths, is_named);
    }
    if (!code) code = adopt_knobs(results);
    for (size_t i = 0; at && i < at->count && !code; i++) code = keep_value(results, at->items[i]);
    if (!code) group_results(results);
    else results_free(results);
    text_list_free(&paths);
    free(is_named);
    return code;
}
size_t paired_ids(const struct results *results, const struct result_group *group, const int *columns, int column_count,
                  int64_t **ids) {
    unsigned char *good = resize(NULL, group->id_count, 1);
    size_t count = 0;
    memset(good, 1, group->id_count);
    for (size_t place = 0; place < group->paired_count; place++) {
        const struct result_file *file = &results->files[group->paired[place]];
        for (size_t at = 0, row = 0; at < group->id_count; at++) {
            while (file->ids[row] < group->ids[at]) row++; /* the id exists, because it is common */
            for (int i = 0; i < column_count; i++) good[at] &= isfinite(result_at(file, columns[i], row)) != 0;
        }
    }
    *ids = resize(NULL, group->id_count, sizeof **ids);
    for (size_t at = 0; at < group->id_count; at++) if (good[at]) (*ids)[count++] = group->ids[at];
    free(good);
    return count;
}
double *paired_column(const struct results *results, const struct result_group *group, int column, const int64_t *ids,
                      size_t id_count) {
    double *values;
    /* (resize rejects SIZE_MAX) */
    if (id_count && group->paired_count > SIZE_MAX / sizeof *values / id_count) id_count = SIZE_MAX;
    values = resize(NULL, id_count, group->paired_count * sizeof *values);
    for (size_t place = 0; place < group->paired_count; place++) {
        const struct result_file *file = &results->files[group->paired[place]];
        for (size_t at = 0, row = 0; at < id_count; at++) {
            while (file->ids[row] < ids[at]) row++;
            values[place * id_count + at] = result_at(file, column, row);
        }
    }
    return values;
}
int is_same_size(const struct result_file *left, const struct result_file *right) {
    return !compare_axis(left, right, KNOB_SIZE);
}
