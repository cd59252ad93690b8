/* result_read.c: result files to flat arrays of what was measured.
 * Result files are ours or the experiments' own. All that reports, estimates and comparisons are made of. */
#include "report/result_read.h"

#include "base/files.h"
#include "base/json.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stage_column(int stage, int detail) { return COLUMN_STAGE + detail * VP_STAGE_COUNT + stage; }

static void result_file_free(result_file *f) {
    char **texts[] = {&f->path, &f->task, &f->tier, &f->status, &f->model, &f->weights, &f->importance, &f->data, &f->data_hash, &f->metric,
                      &f->timing, &f->device, &f->host, &f->version, &f->measured_from, &f->measured_to};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free(*texts[i]);
    for (int i = 0; i < COLUMN_COUNT; i++) free(f->columns[i]);
    free(f->blocks);
    free(f->ids);
    free(f->run_total);
    free(f->run_at);
    memset(f, 0, sizeof *f);
}
void results_free(results *r) {
    for (size_t i = 0; i < r->count; i++) result_file_free(&r->files[i]);
    for (size_t i = 0; i < r->group_count; i++) {
        free(r->groups[i].paired);
        free(r->groups[i].ids);
    }
    free(r->files);
    free(r->groups);
    text_list_free(&r->notes);
    memset(r, 0, sizeof *r);
}
double result_at(const result_file *f, int which, size_t row) { return f->columns[which] ? f->columns[which][row] : (double)NAN; }

size_t result_row(const result_file *f, int64_t id) {
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->ids[middle] < id) low = middle + 1; else high = middle;
    }
    return low < f->count && f->ids[low] == id ? low : f->count;
}
enum { RESULT_READERS = 4, RESULT_BYTES_MOST = 1 << 30 };

static int result_fail(result_file *f, const vp_json *j, uint32_t node, size_t row, const char *key, const char *what) {
    char row_text[96] = "";
    if (row != SIZE_MAX) snprintf(row_text, sizeof row_text, "per_sample_results[%zu], ", row);
    if (!f->error[0])
        snprintf(f->error, sizeof f->error, "%.500s: %sbyte %llu: %.80s %.100s", f->path, row_text,
                 (unsigned long long)(node == VP_JSON_NONE ? 0 : j->nodes[node].start), key, what);
    return 0;
}
static int key_is(const vp_json *j, uint32_t key, const char *text, size_t bytes) {
    return j->nodes[key].bytes == bytes && !memcmp(j->text + j->nodes[key].start, text, bytes);
}
/* A number within bounds, or NaN for null; 0: f->error says why not. */
static int result_number(result_file *f, const vp_json *j, uint32_t node, size_t row, const char *key, double least, double most, double *value) {
    *value = (double)NAN;
    if (node_is(j, node, VP_JSON_NULL)) return 1;
    if (!node_is(j, node, VP_JSON_NUMBER) || vp_json_to_double(j, node, value) != VP_OK) return result_fail(f, j, node, row, key, "is no number");
    if (!(*value >= least && *value <= most)) return result_fail(f, j, node, row, key, "is out of range");
    return 1;
}
/* A whole number of the head, or -1 where there is none. */
static int result_count(result_file *f, const vp_json *j, uint32_t object, const char *key, int64_t most, int64_t *value) {
    uint32_t node = vp_json_get(j, object, key);
    *value = -1;
    if (node == VP_JSON_NONE || node_is(j, node, VP_JSON_NULL)) return 1;
    if (vp_json_to_int(j, node, value) != VP_OK || *value < 0 || *value > most)
        return result_fail(f, j, node, SIZE_MAX, key, "is no count that makes sense");
    return 1;
}
char *result_text(const vp_json *j, uint32_t object, const char *key) {
    char *text = node_text(j, vp_json_get(j, object, key));
    for (char *p = text; p && *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?'; /* it will stand in tables */
    return text;
}
static void result_put(result_file *f, size_t rows, int which, size_t row, double value) {
    if (!isfinite(value)) return;
    if (!f->columns[which]) {
        f->columns[which] = resize(NULL, rows, sizeof(double));
        for (size_t i = 0; i < rows; i++) f->columns[which][i] = (double)NAN;
    }
    f->columns[which][row] = value;
}

/* "stages" and "stage_detail": which stage a key names, or VP_STAGE_COUNT */
static int stage_of_key(const vp_json *j, uint32_t key) {
    int stage = 0;
    while (stage < VP_STAGE_COUNT && !key_is(j, key, vp_stage_name((vp_stage)stage), strlen(vp_stage_name((vp_stage)stage)))) stage++;
    return stage;
}
static int read_stage_times(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(j, object, VP_JSON_OBJECT)) return 1;
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        int stage = stage_of_key(j, key);
        double value;
        if (stage == VP_STAGE_COUNT) continue;
        if (!result_number(f, j, key + 1, row, vp_stage_name((vp_stage)stage), 0, MS_MOST, &value)) return 0;
        result_put(f, rows, stage_column(stage, 0), f->count, value);
    }
    return 1;
}
static int read_stage_details(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(j, object, VP_JSON_OBJECT)) return 1;
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        int stage = stage_of_key(j, key);
        uint32_t item = key + 2;
        if (stage == VP_STAGE_COUNT || !node_is(j, key + 1, VP_JSON_OBJECT)) continue;
        for (uint32_t n = 0; n < j->nodes[key + 1].count; n++, item = j->nodes[item + 1].end) {
            int d = DETAIL_WALL;
            double value;
            while (d < DETAIL_COUNT && !key_is(j, item, DETAIL_KEYS[d], strlen(DETAIL_KEYS[d]))) d++;
            if (d == DETAIL_COUNT || d == DETAIL_DEVICE) continue; /* the device's time is what "stages" has: half of the time here is numbers */
            if (!result_number(f, j, item + 1, row, DETAIL_KEYS[d], 0, 1e24, &value)) return 0;
            result_put(f, rows, stage_column(stage, d), f->count, value);
        }
    }
    return 1;
}
/* "runs": T_total of each run */
static int read_runs(result_file *f, const vp_json *j, uint32_t object, size_t row, size_t *capacity) {
    uint32_t array = vp_json_get(j, object, "T_total"), item = array + 1;
    size_t at = f->run_at[f->count];
    if (!node_is(j, array, VP_JSON_ARRAY)) return 1;
    for (uint32_t i = 0; i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        double value;
        if (!result_number(f, j, item, row, "runs.T_total", 0, MS_MOST, &value)) return 0;
        if (!isfinite(value)) continue;
        if (at == *capacity) {
            *capacity = *capacity * 2 + 1024;
            f->run_total = resize(f->run_total, *capacity, sizeof(double));
        }
        f->run_total[at++] = value;
    }
    f->run_at[f->count + 1] = at;
    return 1;
}

typedef struct row_key { const char *name; int column; double least, most; } row_key;
static const row_key ROW_KEYS[] = {
    {"T_vision_total", METRIC_VISION, 0, MS_MOST}, {"T_LLM_prefill", METRIC_PREFILL, 0, MS_MOST}, {"T_LLM_decode", METRIC_DECODE, 0, MS_MOST},
    {"T_total", METRIC_TOTAL, 0, MS_MOST}, {"T_decode_per_token", METRIC_PER_TOKEN, 0, MS_MOST}, {"TTFT", METRIC_TTFT, 0, MS_MOST},
    {"unaccounted", METRIC_UNACCOUNTED, -MS_MOST, MS_MOST}, {"accuracy", COLUMN_ACCURACY, -1e6, 1e6},
    {"actual_num_crops", COLUMN_VIEWS, 0, 1e6}, {"actual_vision_tokens", COLUMN_VISION_TOKENS, 0, 1e9},
    {"input_text_tokens", COLUMN_TEXT_TOKENS, 0, 1e9}, {"actual_text_tokens", COLUMN_TEXT_TOKENS, 0, 1e9},
    {"total_sequence_length", COLUMN_SEQUENCE, 0, 1e9}, {"output_tokens", COLUMN_OUTPUT_TOKENS, 0, 1e9},
};

enum { ROW_KEY_COUNT = sizeof ROW_KEYS / sizeof ROW_KEYS[0] };

enum { ROW_ID = -1, ROW_STATUS = -2, ROW_STAGES = -3, ROW_DETAIL = -4, ROW_RUNS = -5, ROW_OTHER = -6 };

static int row_member(const vp_json *j, uint32_t key, const row_key **found) {
    static const struct { const char *name; int what; } others[] = {{"sample_id", ROW_ID}, {"status", ROW_STATUS}, {"stages", ROW_STAGES},
                                                                    {"stage_detail", ROW_DETAIL}, {"runs", ROW_RUNS}};
    for (int i = 0; i < ROW_KEY_COUNT; i++)
        if (key_is(j, key, ROW_KEYS[i].name, strlen(ROW_KEYS[i].name))) { *found = &ROW_KEYS[i]; return ROW_KEYS[i].column; }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) if (key_is(j, key, others[i].name, strlen(others[i].name))) return others[i].what;
    return ROW_OTHER;
}
/* What a row implies: views are crops and the global view; N tokens take N - 1 steps, where the experiments divided by N. */
static void finish_row(result_file *f, size_t rows) {
    double crops = result_at(f, COLUMN_VIEWS, f->count), tokens = result_at(f, COLUMN_OUTPUT_TOKENS, f->count), steps = tokens - 1;
    if (isfinite(crops)) f->columns[COLUMN_VIEWS][f->count] = crops + 1;
    else if (!f->is_foreign) {
        result_put(f, rows, COLUMN_VIEWS, f->count, 0); /* a question without an image */
        result_put(f, rows, COLUMN_VISION_TOKENS, f->count, 0);
    }
    if (f->is_foreign && f->columns[METRIC_PER_TOKEN])
        f->columns[METRIC_PER_TOKEN][f->count] = steps > 0 ? result_at(f, METRIC_DECODE, f->count) / steps : (double)NAN;
    result_put(f, rows, METRIC_CLOSURE, f->count, 1 - result_at(f, METRIC_UNACCOUNTED, f->count) / result_at(f, METRIC_TOTAL, f->count));
    f->count++;
}
/* Reads one object of per_sample_results; failed ones are counted and leave nothing. */
static int read_row(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row, size_t *capacity) {
    uint32_t key = object + 1;
    int has_id = 0, failed = 0;
    if (!node_is(j, object, VP_JSON_OBJECT)) return result_fail(f, j, object, row, "the row", "is no object");
    f->run_at[f->count + 1] = f->run_at[f->count];
    for (int i = 0; i < COLUMN_COUNT; i++) if (f->columns[i]) f->columns[i][f->count] = (double)NAN; /* a failed row may have left a number */
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        const row_key *k = NULL;
        int what = row_member(j, key, &k);
        double value;
        if (what == ROW_ID) {
            has_id = vp_json_to_int(j, key + 1, &f->ids[f->count]) == VP_OK && f->ids[f->count] >= 0;
            if (!has_id) return result_fail(f, j, key + 1, row, "sample_id", "is no whole number from 0");
        } else if (what == ROW_STATUS) failed = !vp_json_equals(j, key + 1, "ok");
        else if (what == ROW_STAGES) { if (!read_stage_times(f, j, key + 1, rows, row)) return 0; }
        else if (what == ROW_DETAIL) { if (!read_stage_details(f, j, key + 1, rows, row)) return 0; }
        else if (what == ROW_RUNS) { if (!read_runs(f, j, key + 1, row, capacity)) return 0; }
        else if (what != ROW_OTHER) {
            if (!result_number(f, j, key + 1, row, k->name, k->least, k->most, &value)) return 0;
            if (k->column != COLUMN_TEXT_TOKENS || isfinite(value)) result_put(f, rows, k->column, f->count, value);
        }
    }
    if (!has_id) return result_fail(f, j, object, row, "sample_id", "is missing");
    if (failed) { f->failed_count++; return 1; }
    if (!(result_at(f, METRIC_TOTAL, f->count) > 0)) return result_fail(f, j, object, row, "T_total", "is missing or 0");
    finish_row(f, rows);
    return 1;
}
int by_row_id(const void *a, const void *b) {
    const row_order *x = (const row_order *)a, *y = (const row_order *)b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}
/* Rows ascending by id, as ours are written; a repeated id is an error. */
static int sort_rows(result_file *f) {
    row_order *order = resize(NULL, f->count, sizeof *order);
    double *moved = resize(NULL, f->count, sizeof *moved), *runs;
    size_t *at, filled = 0, sorted = 1;
    for (size_t i = 0; i < f->count; i++) { order[i].id = f->ids[i]; order[i].at = i; }
    while (sorted < f->count && f->ids[sorted - 1] < f->ids[sorted]) sorted++;
    if (sorted < f->count) qsort(order, f->count, sizeof *order, by_row_id);
    for (size_t i = 1; i < f->count && !f->error[0]; i++)
        if (order[i].id == order[i - 1].id)
            snprintf(f->error, sizeof f->error, "%.500s: sample_id %lld stands in two rows", f->path, (long long)order[i].id);
    if (sorted < f->count) {
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (!f->columns[c]) continue;
            for (size_t i = 0; i < f->count; i++) moved[i] = f->columns[c][order[i].at];
            memcpy(f->columns[c], moved, f->count * sizeof *moved);
        }
        runs = resize(NULL, f->run_at[f->count], sizeof *runs);
        at = zeroed(f->count + 1, sizeof *at);
        for (size_t i = 0; i < f->count; i++) {
            for (size_t r = f->run_at[order[i].at]; r < f->run_at[order[i].at + 1]; r++) runs[filled++] = f->run_total[r];
            at[i + 1] = filled;
            f->ids[i] = order[i].id;
        }
        free(f->run_total);
        free(f->run_at);
        f->run_total = runs;
        f->run_at = at;
    }
    free(order);
    free(moved);
    return !f->error[0];
}
static int read_rows(result_file *f, const vp_json *j, uint32_t array) {
    size_t rows = j->nodes[array].count, capacity = 0;
    uint32_t item = array + 1;
    f->ids = zeroed(rows + 1, sizeof *f->ids); /* one more: the row behind the last is written to before it is known to be bad */
    f->run_at = zeroed(rows + 2, sizeof *f->run_at);
    for (size_t i = 0; i < rows; i++, item = j->nodes[item].end) if (!read_row(f, j, item, rows, i, &capacity)) return 0;
    return sort_rows(f);
}

static int read_blocks(result_file *f, const vp_json *j, uint32_t array) {
    uint32_t item = array + 1;
    if (!node_is(j, array, VP_JSON_ARRAY)) return 1;
    f->blocks = zeroed((size_t)j->nodes[array].count + 1, sizeof *f->blocks);
    for (uint32_t i = 0; i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        int64_t value;
        if (vp_json_to_int(j, item, &value) != VP_OK || value < 0 || value > 1000000)
            return result_fail(f, j, item, SIZE_MAX, "active_block_indices", "holds no block's number");
        f->blocks[f->listed_blocks++] = (int32_t)value;
    }
    return 1;
}
static void read_kernel_pass(result_file *f, const vp_json *j, uint32_t array) {
    uint32_t item = array + 1;
    for (int s = 0; s < VP_STAGE_COUNT; s++) f->kernel_ms[s] = f->kernel_device_ms[s] = (double)NAN;
    memset(f->part_ms, 0, sizeof f->part_ms);
    for (uint32_t i = 0; node_is(j, array, VP_JSON_ARRAY) && i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        uint32_t stages = vp_json_get(j, item, "stages");
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            uint32_t stage = vp_json_get(j, stages, vp_stage_name((vp_stage)s));
            double device = node_number(j, vp_json_get(j, stage, "device_ms")), kernels = node_number(j, vp_json_get(j, stage, "kernel_ms"));
            if (!(device >= 0 && device <= MS_MOST && kernels >= 0 && kernels <= MS_MOST)) continue;
            f->kernel_device_ms[s] = (isfinite(f->kernel_device_ms[s]) ? f->kernel_device_ms[s] : 0) + device;
            f->kernel_ms[s] = (isfinite(f->kernel_ms[s]) ? f->kernel_ms[s] : 0) + kernels;
            for (int part = 0; part < VP_PART_COUNT; part++) {
                double ms = node_number(j, vp_json_get(j, vp_json_get(j, stage, "parts"), vp_part_name((vp_part)part)));
                if (ms >= 0 && ms <= kernels * (1 + 1e-9)) f->part_ms[s][part] += ms;
            }
        }
    }
}
/* <task>_imgsize...: what the file name says of the task */
static char *task_of_path(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *end = strstr(name, "_imgsize");
    char *task = copy_text(name, end ? (size_t)(end - name) : strcspn(name, "."));
    for (char *p = task; *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?';
    return task;
}
static void read_provenance(result_file *f, const vp_json *j) {
    uint32_t from = vp_json_get(j, 0, "provenance"), config = vp_json_get(j, 0, "config"), cost = vp_json_get(j, 0, "tool_cost");
    uint32_t interval = vp_json_get(j, cost, "bare_difference_share_interval");
    vp_model_config preset;
    f->device = result_text(j, from, "device");
    f->host = result_text(j, from, "host");
    f->version = result_text(j, from, "version");
    f->measured_from = result_text(j, 0, "measured_from");
    f->measured_to = result_text(j, 0, "measured_to");
    f->weights = result_text(j, config, "weights");
    f->importance = result_text(j, config, "importance_scores_file");
    f->seed = node_int(j, config, "seed", -1);
    f->ignore_eos = vp_json_get(j, config, "ignore_eos") == VP_JSON_NONE ? -1 : node_is(j, vp_json_get(j, config, "ignore_eos"), VP_JSON_TRUE);
    f->cost_share = node_number(j, vp_json_get(j, cost, "bare_difference_share"));
    f->cost_low = node_number(j, vp_json_at(j, interval, 0));
    f->cost_high = node_number(j, vp_json_at(j, interval, 1));
    if (f->expert_count < 0 && f->is_synthetic && f->model && vp_model_config_preset(f->model, &preset) == VP_OK)
        f->expert_count = preset.expert_count;
}
static int read_head(result_file *f, const vp_json *j) {
    static const char *const stats[] = {"aggregate_stats", "latency_stats"};
    uint32_t node;
    f->is_foreign = vp_json_get(j, 0, "schema") == VP_JSON_NONE;
    f->task = result_text(j, 0, "dataset_name");
    if (!f->task) f->task = task_of_path(f->path);
    f->tier = result_text(j, 0, "tier");
    f->status = result_text(j, 0, "status");
    f->model = result_text(j, 0, "model");
    f->data = result_text(j, 0, "data");
    f->data_hash = result_text(j, 0, "data_hash");
    f->metric = result_text(j, 0, "accuracy_metric");
    f->timing = result_text(j, 0, "timing");
    f->is_synthetic = node_is(j, vp_json_get(j, 0, "synthetic"), VP_JSON_TRUE);
    if (!result_count(f, j, 0, "target_vision_tokens", 1000000000, &f->target_tokens) || !result_count(f, j, 0, "top_k", 1000000, &f->top_k)
        || !result_count(f, j, 0, "num_active_blocks", 1000000, &f->block_count)
        || !result_count(f, j, 0, "num_total_blocks", 1000000, &f->total_blocks) || !result_count(f, j, 0, "num_experts", 1000000, &f->expert_count)
        || !result_count(f, j, 0, "num_runs_per_sample", 1000000, &f->runs_per_sample)
        || !result_count(f, j, 0, "max_new_tokens", 1000000000, &f->max_new_tokens)
        || !result_count(f, j, 0, "num_missing", INT64_C(1) << 60, &f->missing_count)
        || !result_count(f, j, 0, "num_throttled_runs", INT64_C(1) << 60, &f->throttled_runs)
        || !result_count(f, j, 0, "num_outlier_runs", INT64_C(1) << 60, &f->outlier_runs)) return 0;
    if (f->top_k < 1) return result_fail(f, j, vp_json_get(j, 0, "top_k"), SIZE_MAX, "top_k", "is missing or 0");
    if (f->block_count < 1) return result_fail(f, j, vp_json_get(j, 0, "num_active_blocks"), SIZE_MAX, "num_active_blocks", "is missing or 0");
    node = vp_json_get(j, 0, "accuracy");
    f->accuracy = (double)NAN;
    if (node != VP_JSON_NONE && !result_number(f, j, node, SIZE_MAX, "accuracy", -1e6, 1e6, &f->accuracy)) return 0;
    for (int i = 0; i < 2; i++) { /* by one of its names; what it says is computed again from the rows */
        node = vp_json_get(j, 0, stats[i]);
        if (node != VP_JSON_NONE && !node_is(j, node, VP_JSON_OBJECT)) return result_fail(f, j, node, SIZE_MAX, stats[i], "is no object");
    }
    read_provenance(f, j);
    read_kernel_pass(f, j, vp_json_get(j, 0, "kernel_pass"));
    return read_blocks(f, j, vp_json_get(j, 0, "active_block_indices"));
}
/* Reads f->path into f; f->is_other or f->error where it is not to be used. */
static void read_result(result_file *f, parsed *scratch) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &scratch->json;
    char *text = NULL, *schema;
    size_t bytes = 0;
    uint32_t rows;
    vp_result r = vp_file_read(f->path, RESULT_BYTES_MOST, &text, &bytes, &error);
    if (r == VP_OK && (r = parse_json(scratch, text, bytes, &error)) != VP_OK) {
        f->is_other = 3;
        snprintf(f->error, sizeof f->error, "%.500s: byte %lld: %.200s", f->path, (long long)error.offset,
                 error.text[0] ? error.text : vp_result_text(r));
    } else if (r != VP_OK) {
        error_line(f->error, sizeof f->error, r, &error);
        if (!strstr(f->error, f->path)) snprintf(f->error, sizeof f->error, "%.500s: %.200s", f->path, vp_result_text(r));
    } else {
        schema = result_text(j, 0, "schema");
        rows = vp_json_get(j, 0, "per_sample_results");
        if (schema && (!strncmp(schema, "vlmprof-report", 14) || !strncmp(schema, "vlmprof-estimator", 17))) f->is_other = 2;
        else if (!node_is(j, rows, VP_JSON_ARRAY) || (schema && strncmp(schema, "vlmprof-sweep-", 14))) f->is_other = 1;
        else if (read_head(f, j) && read_rows(f, j, rows) && !f->count && !f->failed_count)
            snprintf(f->error, sizeof f->error, "%.500s: per_sample_results is empty", f->path);
        free(schema);
    }
    free(text);
}

/* ---- many files */
static int result_name_is_ours(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    return strstr(name, "_imgsize") != NULL;
}
/* The *.json of a folder, or the file itself; 0 or an exit code. */
static int list_results(text_list *paths, const char *operand) {
    size_t first = paths->count;
    DIR *d;
    if (!is_folder(operand)) {
        text_list_add(paths, "%s", operand);
        return 0;
    }
    d = opendir(operand);
    if (!d) return complain(EXIT_INPUT, "%s: the folder cannot be read: %s", operand, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        char *path;
        if (e->d_name[0] == '.' || !dot || strcmp(dot, ".json")) continue;
        path = join_path(operand, e->d_name);
        text_list_add(paths, "%s", path);
        free(path);
    }
    closedir(d);
    if (paths->count == first)
        return complain(EXIT_INPUT, "%s: the folder holds no result files (*_imgsize*.json): run vlmprof sweep, or merge", operand);
    text_list_sort(paths, first);
    return 0;
}
int64_t size_rank(const result_file *f) {
    if (f->tier) {
        for (int32_t i = 0; vp_tier_at(i); i++) if (!strcmp(f->tier, vp_tier_at(i)->name)) return i;
        return 100;
    }
    return 1000 + f->target_tokens;
}
int compare_settings(const result_file *x, const result_file *y) {
    int task = strcmp(x->task, y->task), tier = strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
    if (task) return task;
    if (size_rank(x) != size_rank(y)) return size_rank(x) < size_rank(y) ? -1 : 1;
    if (tier) return tier;
    if (x->top_k != y->top_k) return x->top_k < y->top_k ? -1 : 1;
    return x->block_count != y->block_count ? (x->block_count < y->block_count ? -1 : 1) : 0;
}
static int by_setting(const void *a, const void *b) {
    const result_file *x = (const result_file *)a, *y = (const result_file *)b;
    int order = compare_settings(x, y);
    return order ? order : strcmp(x->path, y->path);
}
const char *setting_text(const result_file *f, char out[80]) {
    if (f->tier) snprintf(out, 80, "%.30s k%lld b%lld", f->tier, (long long)f->top_k, (long long)f->block_count);
    else if (f->target_tokens >= 0)
        snprintf(out, 80, "%lld tokens k%lld b%lld", (long long)f->target_tokens, (long long)f->top_k, (long long)f->block_count);
    else snprintf(out, 80, "k%lld b%lld", (long long)f->top_k, (long long)f->block_count);
    return out;
}

/* Configurations that take part in paired statistics, and the samples that all of them have. */
static void pair_group(results *r, result_group *g) {
    size_t most = 0, *seen;
    int64_t *all = NULL;
    size_t all_count = 0;
    for (size_t i = g->first; i < g->first + g->count; i++) if (r->files[i].count > most) most = r->files[i].count;
    g->paired = zeroed(g->count, sizeof *g->paired);
    for (size_t i = g->first; i < g->first + g->count; i++) {
        char name[80];
        if (r->files[i].count && r->files[i].count * 2 >= most) g->paired[g->paired_count++] = i;
        else text_list_add(&r->notes, "%.60s %s: %zu of %zu samples are measured: left out of fronts and effects", r->files[i].task,
                           setting_text(&r->files[i], name), r->files[i].count, most);
    }
    for (size_t p = 0; p < g->paired_count; p++) { /* the union, ascending: small next to the files */
        const result_file *f = &r->files[g->paired[p]];
        int64_t *both = resize(NULL, all_count + f->count, sizeof *both);
        size_t a = 0, b = 0, n = 0;
        while (a < all_count || b < f->count) {
            if (b == f->count || (a < all_count && all[a] < f->ids[b])) both[n++] = all[a++];
            else {
                if (a < all_count && all[a] == f->ids[b]) a++;
                both[n++] = f->ids[b++];
            }
        }
        free(all);
        all = both;
        all_count = n;
    }
    seen = zeroed(all_count, sizeof *seen);
    for (size_t p = 0; p < g->paired_count; p++)
        for (size_t a = 0, b = 0; b < r->files[g->paired[p]].count; a++)
            if (all[a] == r->files[g->paired[p]].ids[b]) { seen[a]++; b++; }
    for (size_t a = 0; a < all_count; a++) if (seen[a] == g->paired_count) all[g->id_count++] = all[a];
    g->ids = all;
    g->uncommon_count = all_count - g->id_count;
    if (g->uncommon_count)
        text_list_add(&r->notes, "%.60s: %zu of %zu samples are not measured in all configurations: left out of what is paired",
                      r->files[g->first].task,
                      g->uncommon_count, all_count);
    free(seen);
}
static void group_results(results *r) {
    size_t kept = 0;
    qsort(r->files, r->count, sizeof *r->files, by_setting);
    for (size_t i = 0; i < r->count; i++) {
        if (kept && !compare_settings(&r->files[kept - 1], &r->files[i])) {
            text_list_add(&r->notes, "%.300s is the same configuration as %.300s: left out", r->files[i].path, r->files[kept - 1].path);
            result_file_free(&r->files[i]);
        } else if (kept++ != i) r->files[kept - 1] = r->files[i];
    }
    r->count = kept;
    for (size_t i = 0; i < r->count; i++) {
        if (!i || strcmp(r->files[i].task, r->files[i - 1].task)) {
            r->groups = resize(r->groups, r->group_count + 1, sizeof *r->groups);
            memset(&r->groups[r->group_count], 0, sizeof *r->groups);
            r->groups[r->group_count++].first = i;
        }
        r->groups[r->group_count - 1].count++;
    }
    for (size_t i = 0; i < r->group_count; i++) pair_group(r, &r->groups[i]);
}
/* Keeps the usable files; 0 or an exit code. A file that the caller named, or that is called as a result is, must be one. */
static int keep_results(results *r, const text_list *paths, const unsigned char *is_named) {
    size_t kept = 0, others = 0;
    const char *first_other = NULL;
    int code = 0;
    for (size_t i = 0; i < r->count; i++) {
        result_file *f = &r->files[i];
        int must = is_named[i] || result_name_is_ours(paths->items[i]);
        if (f->is_other == 1 && must) snprintf(f->error, sizeof f->error, "%.500s is no result file: it has no per_sample_results", f->path);
        if (!code && f->error[0] && (must || f->is_other != 3)) code = complain(EXIT_INPUT, "%s", f->error);
        else if (!code && f->is_other == 2 && is_named[i]) code = complain(EXIT_INPUT, "%s is a report, no result file", f->path);
        if (f->is_other & 1 && !others++) first_other = paths->items[i];
        if (f->is_other || f->error[0]) result_file_free(f);
        else if (kept++ != i) { r->files[kept - 1] = *f; memset(f, 0, sizeof *f); }
    }
    r->count = kept;
    if (code) return code;
    if (others)
        text_list_add(&r->notes, "%.300s%s no result file%s: left out", first_other, others > 1 ? " and others are" : " is", others > 1 ? "s" : "");
    return kept ? 0 : complain(EXIT_INPUT, "%s: no result file in it", paths->items[0]);
}
int results_read(results *r, const char *const *operands, size_t operand_count) {
    text_list paths = {NULL, 0};
    unsigned char *is_named = NULL;
    int code = 0;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < operand_count && !code; i++) {
        size_t before = paths.count;
        code = list_results(&paths, operands[i]);
        is_named = resize(is_named, paths.count, 1);
        for (size_t k = before; k < paths.count; k++) is_named[k] = !is_folder(operands[i]);
    }
    if (!code) {
        r->files = zeroed(paths.count, sizeof *r->files);
        r->count = paths.count;
        for (size_t i = 0; i < paths.count; i++) r->files[i].path = copy_text(paths.items[i], strlen(paths.items[i]));
#ifdef _OPENMP
        #pragma omp parallel num_threads(RESULT_READERS)
#endif
        {
            parsed scratch = {{NULL, NULL, 0}, NULL, 0};
#ifdef _OPENMP
            #pragma omp for schedule(dynamic)
#endif
            for (int64_t i = 0; i < (int64_t)paths.count; i++) read_result(&r->files[i], &scratch);
            free(scratch.nodes);
        }
        code = keep_results(r, &paths, is_named);
    }
    if (!code) group_results(r);
    else results_free(r);
    text_list_free(&paths);
    free(is_named);
    return code;
}
size_t paired_ids(const results *r, const result_group *g, const int *columns, int column_count, int64_t **ids) {
    unsigned char *good = resize(NULL, g->id_count, 1);
    size_t count = 0;
    memset(good, 1, g->id_count);
    for (size_t p = 0; p < g->paired_count; p++) {
        const result_file *f = &r->files[g->paired[p]];
        for (size_t a = 0, b = 0; a < g->id_count; a++) {
            while (f->ids[b] < g->ids[a]) b++; /* it is there: the id is common */
            for (int i = 0; i < column_count; i++) good[a] &= isfinite(result_at(f, columns[i], b)) != 0;
        }
    }
    *ids = resize(NULL, g->id_count, sizeof **ids);
    for (size_t a = 0; a < g->id_count; a++) if (good[a]) (*ids)[count++] = g->ids[a];
    free(good);
    return count;
}
double *paired_column(const results *r, const result_group *g, int which, const int64_t *ids, size_t id_count) {
    double *values;
    if (id_count && g->paired_count > SIZE_MAX / sizeof *values / id_count) id_count = SIZE_MAX; /* resize refuses it */
    values = resize(NULL, id_count, g->paired_count * sizeof *values);
    for (size_t p = 0; p < g->paired_count; p++) {
        const result_file *f = &r->files[g->paired[p]];
        for (size_t a = 0, b = 0; a < id_count; a++) {
            while (f->ids[b] < ids[a]) b++;
            values[p * id_count + a] = result_at(f, which, b);
        }
    }
    return values;
}
int same_size(const result_file *x, const result_file *y) {
    return size_rank(x) == size_rank(y) && !strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
}
