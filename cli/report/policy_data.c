/* policy_data.c: reads what policies are computed from: outcomes of the samples that all configurations have, what is
 * known of each sample before its request, and files of choices. */
#include "report/policy.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/json_stream.h"
#include "results/choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_LEAST = 8 }; /* a field of numbers with fewer values is one of categories */

/* ---- outcomes */
static const struct result_file *file_of(const struct policy_data *data, size_t config) {
    return &data->results->files[data->configs[config]];
}
/* Returns 1 if the file has an outcome of the sample: an answer with its time and score, or a failure. A file that has
 * as many rows as there are samples lacks only failed ones. */
static int has_sample(const struct result_file *file, int64_t id, size_t all) {
    const size_t row = result_row(file, id);
    if (row >= file->count) return file->row_count >= all;
    return !file->columns[COLUMN_ACCURACY] || isfinite(result_at(file, COLUMN_ACCURACY, row));
}
static int by_id(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}
/* The ids of the samples that every configuration has, with a score unless it failed. */
static void find_samples(struct policy_data *data) {
    size_t all = 0, most = 0;
    for (size_t c = 0; c < data->config_count; c++) most += file_of(data, c)->count;
    data->ids = resize(NULL, most + 1, sizeof *data->ids);
    for (size_t c = 0; c < data->config_count; c++) {
        memcpy(data->ids + all, file_of(data, c)->ids, file_of(data, c)->count * sizeof *data->ids);
        all += file_of(data, c)->count;
    }
    qsort(data->ids, all, sizeof *data->ids, by_id);
    for (size_t i = most = 0; i < all; i++)
        if (!most || data->ids[i] != data->ids[most - 1]) data->ids[most++] = data->ids[i];
    for (size_t i = 0; i < most; i++) {
        size_t c = 0;
        while (c < data->config_count && has_sample(file_of(data, c), data->ids[i], most)) c++;
        if (c == data->config_count) data->ids[data->sample_count++] = data->ids[i];
    }
    data->dropped = most - data->sample_count;
}
/* Reads them; configurations that failed on all samples go. */
static void read_outcomes(struct policy_data *data, int axis) {
    const size_t count = data->sample_count;
    size_t kept = 0;
    data->accuracy = resize(NULL, data->config_count * count + 1, sizeof *data->accuracy);
    data->latency = resize(NULL, data->config_count * count + 1, sizeof *data->latency);
    for (size_t c = 0; c < data->config_count; c++) {
        size_t known = 0;
        for (size_t i = 0; i < count; i++) {
            const size_t row = result_row(file_of(data, c), data->ids[i]), at = kept * count + i;
            const int is_there = row < file_of(data, c)->count;
            data->accuracy[at] = is_there ? result_at(file_of(data, c), COLUMN_ACCURACY, row) : (double)NAN;
            data->latency[at] = is_there ? result_at(file_of(data, c), axis, row) : (double)NAN;
            known += isfinite(data->accuracy[at]) && data->latency[at] > 0;
            if (!(isfinite(data->accuracy[at]) && data->latency[at] > 0))
                data->accuracy[at] = data->latency[at] = (double)NAN;
        }
        data->failed += count - known;
        data->configs[kept] = data->configs[c];
        kept += known > 0;
    }
    data->config_count = kept;
}

/* ---- records and fields */
struct reading {
    struct policy_data *data;
    const struct result_file *file;
    size_t *sample_of, row, seen;  /* [rows] the sample, SIZE_MAX: none */
    struct text_buffer members;    /* the names in a record */
};
/* A field that vlmprof knows itself; NaN: not known. */
static double own_field(const struct reading *reading, const vp_json *json, const char *name, size_t sample) {
    const size_t row = result_row(reading->file, reading->data->ids[sample]);
    const uint32_t size = vp_json_get(json, 0, "actual_image_size");
    double height = (double)NAN, width = (double)NAN;
    if (!strcmp(name, "text_tokens")) return result_at(reading->file, COLUMN_TEXT_TOKENS, row);
    if (!strcmp(name, "image_tokens")) return result_at(reading->file, COLUMN_VISION_TOKENS, row);
    if (node_is(json, size, VP_JSON_ARRAY) && json->nodes[size].count == 2) {
        height = node_number(json, vp_json_at(json, size, 0));
        width = node_number(json, vp_json_at(json, size, 1));
    }
    if (!strcmp(name, "image_pixels")) return height * width;
    return !strcmp(name, "aspect") ? width / height : (double)NAN;
}
static double read_field(const struct reading *reading, const vp_json *json, struct policy_field *field,
                         size_t sample) {
    const uint32_t metadata = vp_json_get(json, 0, "metadata");
    const uint32_t node = node_is(json, metadata, VP_JSON_OBJECT) ? vp_json_get(json, metadata, field->name)
                                                                 : VP_JSON_NONE;
    double number;
    char *word;
    size_t at = 0;
    if (node == VP_JSON_NONE) {
        number = own_field(reading, json, field->name, sample);
        if (isfinite(number)) field->is_number |= 1;
        return number;
    }
    if (node_is(json, node, VP_JSON_NULL)) return (double)NAN;
    if (!node_is(json, node, VP_JSON_NUMBER)) field->is_number |= 2;
    word = node_is(json, node, VP_JSON_STRING) ? node_text(json, node) : json_text(json, node);
    if (!word) return (double)NAN;
    while (at < field->words.count && strcmp(field->words.items[at], word)) at++;
    if (at == field->words.count) text_list_take(&field->words, word);
    else free(word);
    return (double)at;
}
static vp_result read_record(void *user, const vp_json *json, int64_t place, size_t bytes, vp_error *error) {
    struct reading *reading = user;
    struct policy_data *data = reading->data;
    const size_t row = reading->row++, sample = row < reading->file->row_count ? reading->sample_of[row] : SIZE_MAX;
    const uint32_t metadata = vp_json_get(json, 0, "metadata");
    uint32_t id = vp_json_get(json, 0, "sample_id");
    (void)place; (void)bytes; (void)error;
    if (sample == SIZE_MAX || data->names[sample]) return VP_OK;
    if (node_is(json, metadata, VP_JSON_OBJECT)) {
        if (has_value(json, metadata, "id")) id = vp_json_get(json, metadata, "id");
        if (!reading->members.bytes) add_fields(json, metadata, &reading->members);
    }
    data->names[sample] = json_text(json, id);
    for (size_t f = 0; f < data->field_count; f++)
        data->fields[f].values[sample] = read_field(reading, json, &data->fields[f], sample);
    reading->seen++;
    return VP_OK;
}
static int read_records_of(struct reading *reading, size_t config) {
    struct stream_visitor visitor = {"per_sample_results", read_record, NULL, reading, 0};
    struct source source;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result;
    reading->file = file_of(reading->data, config);
    reading->sample_of = resize(NULL, reading->file->row_count + 1, sizeof *reading->sample_of);
    memset(reading->sample_of, 255, reading->file->row_count * sizeof *reading->sample_of);
    for (size_t i = 0; i < reading->data->sample_count; i++) {
        const size_t row = result_row(reading->file, reading->data->ids[i]);
        if (row < reading->file->count) reading->sample_of[(size_t)result_at(reading->file, COLUMN_ROW, row)] = i;
    }
    reading->row = 0;
    if ((result = source_open(&source, reading->file->path, &error)) == VP_OK) {
        result = stream_walk(&source, &visitor, &error);
        source_close(&source);
    }
    free(reading->sample_of);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, reading->file->path, result, &error);
}
/* Numbers become the field's values if there are several; otherwise they remain categories. */
static void finish_field(struct policy_field *field, size_t samples) {
    const int is_made = field->is_number == 1 && !field->words.count;
    if (is_made) return;
    field->is_number = !field->is_number && field->words.count >= NUMBERS_LEAST;
    for (size_t i = 0; i < samples && field->is_number; i++)
        if (isfinite(field->values[i])) field->values[i] = strtod(field->words.items[(size_t)field->values[i]], NULL);
}
static int read_records(struct policy_data *data, const struct text_list *by) {
    struct reading reading = {.data = data};
    int code = 0;
    data->names = zeroed(data->sample_count + 1, sizeof *data->names);
    data->fields = zeroed(by->count + 1, sizeof *data->fields);
    for (size_t f = 0; f < by->count; f++) {
        data->fields[f].name = by->items[f];
        data->fields[f].values = resize(NULL, data->sample_count + 1, sizeof(double));
        for (size_t i = 0; i < data->sample_count; i++) data->fields[f].values[i] = (double)NAN;
    }
    data->field_count = by->count;
    /* the last files have the largest images */
    for (size_t c = data->config_count; c-- > 0 && reading.seen < data->sample_count && !code;)
        code = read_records_of(&reading, c);
    for (size_t f = 0; f < data->field_count && !code; f++) {
        size_t known = 0;
        finish_field(&data->fields[f], data->sample_count);
        for (size_t i = 0; i < data->sample_count; i++) known += isfinite(data->fields[f].values[i]) != 0;
        if (!known)
            code = complain(EXIT_USAGE, "--by %.80s: no record has it; the records' metadata have %s; image_pixels, "
                                        "aspect, text_tokens and image_tokens need the image's size and token counts",
                            data->fields[f].name, reading.members.bytes ? reading.members.data : "no fields");
    }
    free(reading.members.data);
    return code;
}

/* ---- files of choices */
int policy_is_in_request(const struct result_file *file, int knob) {
    const char *request = knob_text(&file->knobs, KNOB_REQUEST);
    char member[KNOB_TEXT_BYTES];
    snprintf(member, sizeof member, "\"%.100s\":", KNOBS[knob].key);
    return request && strstr(request, member);
}
void policy_put_choice(vp_json_writer *writer, const struct policy_data *data, size_t config) {
    const struct result_file *file = file_of(data, config);
    PUT(writer, KEY("config", name_in_path(file->path)), KEY_OBJECT("knobs"));
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (!KNOBS[knob].key || !knob_is_set(&file->knobs, knob) || !(KNOBS[knob].axis || knob == KNOB_REQUEST))
            continue;
        if (knob == KNOB_RATE || knob == KNOB_CONCURRENCY) continue; /* a choice can be used at another load */
        if (file->is_served && (KNOBS[knob].of == KNOB_OF_ENGINE || policy_is_in_request(file, knob))) continue;
        knob_put(writer, knob, &file->knobs);
    }
    PUT(writer, END_OBJECT);
}
static int read_choices(const struct policy_data *data, const char *path, struct policy_choices *choices) {
    struct choice_config *configs = resize(NULL, data->config_count + 1, sizeof *configs);
    struct choices read = {data->names, data->sample_count, configs, data->config_count, NULL, NULL, 0};
    for (size_t c = 0; c < data->config_count; c++)
        configs[c] = (struct choice_config){&file_of(data, c)->knobs, name_in_path(file_of(data, c)->path)};
    const int code = choices_read(path, &read);
    *choices = (struct policy_choices){path, read.of, read.strangers};
    FREE_ALL(configs, read.overhead_ms);
    return code;
}

int policy_data_read(const struct results *results, const struct result_group *group,
                     const struct policy_settings *settings, struct policy_data *data) {
    int code;
    memset(data, 0, sizeof *data);
    data->results = results;
    data->configs = resize(NULL, group->paired_count, sizeof *data->configs);
    memcpy(data->configs, group->paired, group->paired_count * sizeof *data->configs);
    for (size_t c = data->config_count = 0; c < group->paired_count; c++)
        if (settings->keeps_policies || !results->files[group->paired[c]].is_policy)
            data->configs[data->config_count++] = group->paired[c];
    if (data->config_count && knobs_are_loaded(&file_of(data, 0)->knobs) && settings->options.budget)
        return complain(EXIT_USAGE, "policy: --budget p95 and each use a sample's mean over its requests, but under "
                                    "load a limit applies to single requests: use --budget mean, or vlmprof best");
    find_samples(data);
    if (!data->sample_count)
        return complain(EXIT_INPUT, "policy: no configuration answered any sample that all of them have");
    read_outcomes(data, settings->axis);
    if (!data->config_count)
        return complain(EXIT_USAGE, "policy: no sample has an accuracy and a %s", METRIC_KEYS[settings->axis]);
    code = read_records(data, &settings->by);
    data->given = zeroed(settings->choices.count + 1, sizeof *data->given);
    for (size_t i = 0; i < settings->choices.count && !code; i++, data->given_count++)
        code = read_choices(data, settings->choices.items[i], &data->given[i]);
    return code;
}
void policy_data_free(struct policy_data *data) {
    for (size_t i = 0; i < data->sample_count && data->names; i++) free(data->names[i]);
    for (size_t f = 0; f < data->field_count; f++) {
        text_list_free(&data->fields[f].words);
        free(data->fields[f].values);
    }
    for (size_t i = 0; i <= data->given_count && data->given; i++) free(data->given[i].of);
    FREE_ALL(data->configs, data->ids, (void *)data->names, data->accuracy, data->latency, data->fields, data->given);
}
