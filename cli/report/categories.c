/* categories.c: the rows of a report below its configurations: scores by category, with the intervals of
 * accuracies. */
#include "report/report.h"

#include "base/json.h"
#include "base/json_stream.h"
#include "report/tradeoff.h"

#include <math.h>

enum { CATEGORIES_MAX = 1000 };

struct scores { char *name; double *values; size_t count, capacity; };
/* A file whose rows are being read. */
struct reading {
    const struct result_file *file;
    const char *field;
    struct text_buffer *fields; /* keys of the first scored sample's record */
    char configuration[160];
    struct scores *categories; size_t category_count;
};

/* A field's value, used as the name of a category; NULL if it has none. */
static char *category_of(const vp_json *json, uint32_t metadata, const char *field) {
    uint32_t node = vp_json_get(json, metadata, field);
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return NULL;
    return node_is(json, node, VP_JSON_STRING) ? node_text(json, node) : json_text(json, node);
}
static void add_score(struct reading *reading, char *name, double score) {
    size_t i = 0;
    while (i < reading->category_count && strcmp(reading->categories[i].name, name) != 0) i++;
    if (i == reading->category_count) {
        if (i == CATEGORIES_MAX) {
            free(name);
            return;
        }
        ADDED(reading->categories, reading->category_count)->name = name;
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
    if ((name = category_of(json, metadata, reading->field)) != NULL) add_score(reading, name, score);
    return VP_OK;
}
static struct category_row *add_row(struct category_rows *rows, const struct reading *reading, const char *name) {
    struct category_row *row = ADDED(rows->items, rows->count);
    memcpy(row->configuration, reading->configuration, sizeof row->configuration);
    snprintf(row->name, sizeof row->name, "%.*s", (int)vp_utf8_valid_bytes(name, strnlen(name, 110)), name);
    return row;
}
static int by_name(const void *left, const void *right) {
    return strcmp(((const struct scores *)left)->name, ((const struct scores *)right)->name);
}
/* Makes the rows of a file that was read. */
static void finish(struct reading *reading, struct category_rows *categories) {
    const struct score_range range = score_range_of(reading->file);
    if (reading->category_count)
        qsort(reading->categories, reading->category_count, sizeof *reading->categories, by_name);
    for (size_t i = 0; i < reading->category_count; i++) {
        const struct scores *scores = &reading->categories[i];
        vp_bounded_interval interval = accuracy_interval(range, NULL, scores->values, scores->count);
        struct category_row *row = add_row(categories, reading, scores->name);
        row->count = (int64_t)scores->count;
        row->value = (vp_estimate){interval.mean, interval.low, interval.high};
    }
}
static void reading_free(struct reading *reading) {
    for (size_t i = 0; i < reading->category_count; i++) {
        FREE_ALL(reading->categories[i].name, reading->categories[i].values);
    }
    free(reading->categories);
}
int categories_read(const struct results *results, const char *field, file_namer *name,
                    struct category_rows *categories, struct text_list *warnings) {
    struct text_buffer fields = {NULL, 0, 0};
    int code = 0;
    for (size_t i = 0; i < results->count; i++) {
        struct reading reading = {.file = &results->files[i], .field = field, .fields = &fields};
        struct stream_visitor visitor = {"per_sample_results", take_sample, NULL, &reading, 0};
        struct source source;
        vp_error error = {VP_OK, -1, "", ""};
        vp_result result;
        name(results, reading.file, reading.configuration);
        if ((result = source_open(&source, reading.file->path, &error)) == VP_OK) {
            result = stream_walk(&source, &visitor, &error);
            source_close(&source);
        }
        if (result == VP_OK) finish(&reading, categories);
        else text_list_add(warnings, "%s: no categories: %s", reading.file->path, error.text);
        reading_free(&reading);
    }
    if (!categories->count)
        code = complain(EXIT_USAGE, "--by %s: no scored sample has this field in its record%s%s", field,
                        fields.bytes ? "; the fields are " : "", fields.bytes ? fields.data : "");
    free(fields.data);
    return code;
}
void category_rows_free(struct category_rows *rows) { free(rows->items); }

static const struct table_column CATEGORIES[] = {
    {CELL(struct category_row, configuration), "configuration", "configuration"},
    {CELL(struct category_row, name), "category", "category"},
    {CELL(struct category_row, count), "count", "count"},
    {CELL_ESTIMATE(struct category_row, value), "accuracy", "accuracy", .range_key = "accuracy_interval"},
};
struct table category_table(const struct category_rows *rows) {
    return (struct table)TABLE(CATEGORIES, rows->items, rows->count, NULL, 0);
}
