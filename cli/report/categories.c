/* categories.c: the rows of a report below its configurations: scores by category, and totals of whole sets. Categories
 * have the intervals of accuracies. Totals get theirs by bootstrap over pictures and questions. */
#include "report/categories.h"

#include "base/json.h"
#include "base/json_stream.h"
#include "formats/tasks.h"
#include "report/accuracy.h"
#include "score/score_circles.h"
#include "score/score_groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CATEGORIES_MAX = 1000, TOTALS_OF_CIRCLES = -100 };

struct scores { char *name; double *values; size_t count, capacity; };
/* A file whose rows are being read. */
struct reading {
    const struct result_file *file;
    const char *field;
    struct text_buffer *fields; /* keys of the first scored sample's record */
    char configuration[160];
    struct scores *categories; size_t category_count;
    int totals;              /* RULE_MME_SETS, RULE_POPE_SETS, TOTALS_OF_CIRCLES; 0 if none */
    struct judged_set *judged;
    struct circles circles;
    struct scoring scoring;
    const char *trouble;     /* reason if there are no totals; otherwise NULL */
    struct category_rows *out;
};

/* The tool that a metric's name refers to. */
static const char *tool_of(const char *metric) {
    return strstr(metric, "vlmevalkit") ? "vlmevalkit" : strstr(metric, "official") ? "official" : "lmms_eval";
}
static int totals_of(const struct result_file *file) {
    const char *metric = file->accuracy_metric ? file->accuracy_metric : "";
    const struct task *task = file->dataset_name ? task_find(file->dataset_name) : NULL;
    if (!strcmp(metric, "mcq_circular_vlmevalkit") || !strcmp(metric, "mmbench_static_lmms")) return TOTALS_OF_CIRCLES;
    if (!strcmp(metric, "mme_lmms")) return RULE_MME_SETS;
    if (!strncmp(metric, "pope_", 5)) return RULE_POPE_SETS;
    if (!strcmp(metric, "yes_no_vlmevalkit") && task && !strcmp(task->name, "mme")) return RULE_MME_SETS;
    return !strcmp(metric, "yes_no_vlmevalkit") && task && !strcmp(task->name, "pope") ? RULE_POPE_SETS : 0;
}
/* A field's value, used as the name of a category; NULL if it has none. */
static char *category_of(const vp_json *json, uint32_t metadata, const char *field) {
    uint32_t node = vp_json_get(json, metadata, field);
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return NULL;
    return node_is(json, node, VP_JSON_STRING)
               ? node_text(json, node)
               : copy_text(json->text + json->nodes[node].start, (size_t)json->nodes[node].bytes);
}
static void add_score(struct reading *reading, char *name, double score) {
    size_t i = 0;
    while (i < reading->category_count && strcmp(reading->categories[i].name, name) != 0) i++;
    if (i == reading->category_count) {
        if (i == CATEGORIES_MAX) {
            free(name);
            return;
        }
        reading->categories = resize(reading->categories, i + 1, sizeof *reading->categories);
        memset(&reading->categories[reading->category_count++], 0, sizeof *reading->categories);
        reading->categories[i].name = name;
    } else free(name);
    struct scores *scores = &reading->categories[i];
    if (scores->count == scores->capacity) {
        scores->capacity = scores->capacity * 2 + 64;
        scores->values = resize(scores->values, scores->capacity, sizeof *scores->values);
    }
    scores->values[scores->count++] = score;
}
static vp_result take_sample(void *user, const vp_json *json, int64_t at, size_t bytes, vp_error *error) {
    struct reading *reading = (struct reading *)user;
    const uint32_t metadata = vp_json_get(json, 0, "metadata");
    const double score = node_number(json, vp_json_get(json, 0, "accuracy"));
    char *name;
    (void)at; (void)bytes; (void)error;
    if (!node_is(json, metadata, VP_JSON_OBJECT) || !isfinite(score)) return VP_OK;
    if (!reading->fields->bytes) add_fields(json, metadata, reading->fields);
    if (reading->field && (name = category_of(json, metadata, reading->field)) != NULL) add_score(reading, name, score);
    if (reading->totals == TOTALS_OF_CIRCLES) circles_add(&reading->circles, json, metadata, score);
    else if (reading->totals && !reading->trouble)
        reading->trouble = judged_add(reading->judged, &reading->scoring, json, metadata,
                                      node_text(json, vp_json_get(json, 0, "pred")));
    return VP_OK;
}
static struct category_row *add_row(struct category_rows *rows, const struct reading *reading, const char *name) {
    rows->items = resize(rows->items, rows->count + 1, sizeof *rows->items);
    struct category_row *row = &rows->items[rows->count++];
    memset(row, 0, sizeof *row);
    memcpy(row->configuration, reading->configuration, sizeof row->configuration);
    snprintf(row->name, sizeof row->name, "%.*s", (int)vp_utf8_valid_bytes(name, strnlen(name, 110)), name);
    return row;
}
static void take_total(void *user, const char *tool, const char *name, double value, double low, double high) {
    const struct reading *reading = (const struct reading *)user;
    struct category_row *row = add_row(reading->out, reading, name);
    row->tool = tool;
    row->count = (int64_t)reading->file->count;
    row->value = (vp_estimate){value, low, high};
}
static int by_name(const void *left, const void *right) {
    return strcmp(((const struct scores *)left)->name, ((const struct scores *)right)->name);
}
/* Makes the rows of a file that was read. */
static void finish(struct reading *reading, struct category_rows *categories, struct category_rows *totals,
                   struct text_list *warnings) {
    const struct score_range range = score_range_of(reading->file);
    double low, high;
    if (reading->category_count)
        qsort(reading->categories, reading->category_count, sizeof *reading->categories, by_name);
    for (size_t i = 0; i < reading->category_count; i++) {
        const struct scores *scores = &reading->categories[i];
        vp_bounded_interval interval = accuracy_interval(range, NULL, scores->values, scores->count);
        struct category_row *row = add_row(categories, reading, scores->name);
        row->count = (int64_t)scores->count;
        row->value = (vp_estimate){interval.mean, interval.low, interval.high};
    }
    reading->out = totals;
    if (reading->trouble)
        text_list_add(warnings, "%s: no totals: %s", reading->configuration, reading->trouble);
    else if (reading->totals == TOTALS_OF_CIRCLES && reading->circles.count) {
        const double mean = circles_mean(&reading->circles, &low, &high);
        take_total(reading, tool_of(reading->file->accuracy_metric), "questions with all rows right", mean, low, high);
        totals->items[totals->count - 1].count = (int64_t)reading->circles.count;
    } else if (reading->totals && reading->totals != TOTALS_OF_CIRCLES && reading->file->count)
        judged_totals(reading->judged, reading->totals, tool_of(reading->file->accuracy_metric), take_total, reading);
}
static void reading_free(struct reading *reading) {
    for (size_t i = 0; i < reading->category_count; i++) {
        FREE_ALL(reading->categories[i].name, reading->categories[i].values);
    }
    free(reading->categories);
    judged_free(reading->judged);
    circles_free(&reading->circles);
    scoring_free(&reading->scoring);
}
int categories_read(const struct results *results, const char *field, file_namer *name,
                    struct category_rows *categories, struct category_rows *totals, struct text_list *warnings) {
    struct text_buffer fields = {NULL, 0, 0};
    int code = 0;
    for (size_t i = 0; i < results->count; i++) {
        struct reading reading;
        struct stream_visitor visitor = {"per_sample_results", take_sample, NULL, &reading, 0};
        struct source source;
        vp_error error = {VP_OK, -1, "", ""};
        vp_result result;
        memset(&reading, 0, sizeof reading);
        reading.file = &results->files[i];
        reading.field = field;
        reading.fields = &fields;
        reading.totals = totals_of(reading.file);
        if (!field && !reading.totals) continue;
        name(results, reading.file, reading.configuration);
        reading.judged = judged_new();
        if ((result = source_open(&source, reading.file->path, &error)) == VP_OK) {
            result = stream_walk(&source, &visitor, &error);
            source_close(&source);
        }
        if (result == VP_OK) finish(&reading, categories, totals, warnings);
        else text_list_add(warnings, "%s: no categories: %s", reading.file->path, error.text);
        reading_free(&reading);
    }
    if (field && !categories->count)
        code = complain(EXIT_USAGE, "--by %s: no scored sample has this field in its record%s%s", field,
                        fields.bytes ? "; the fields are " : "", fields.bytes ? fields.data : "");
    free(fields.data);
    return code;
}
void category_rows_free(struct category_rows *rows) { free(rows->items); }

enum { OF_CATEGORIES = 1, OF_TOTALS = 2 };
static const struct table_column CATEGORIES[] = {
    {CELL(struct category_row, configuration), "configuration", "configuration"},
    {CELL(struct category_row, name), "category", "category", .in = OF_CATEGORIES},
    {CELL(struct category_row, tool), "tool", "rule of", .in = OF_TOTALS},
    {CELL(struct category_row, name), "total", "total", .in = OF_TOTALS},
    {CELL(struct category_row, count), "count", "count"},
    {CELL_ESTIMATE(struct category_row, value), "accuracy", "accuracy", .range_key = "accuracy_interval",
     .in = OF_CATEGORIES},
    {CELL_ESTIMATE(struct category_row, value), "value", "value", .range_key = "interval", .in = OF_TOTALS},
};
struct table category_table(const struct category_rows *rows, int of_totals) {
    return (struct table)TABLE(CATEGORIES, rows->items, rows->count, NULL, of_totals ? OF_TOTALS : OF_CATEGORIES);
}
