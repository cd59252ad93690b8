/* result_schema.h: the schema of result files, made from the rows of cli/results/fields.h, knobs.h and results/metrics.h. */
#ifndef RESULT_SCHEMA_H
#define RESULT_SCHEMA_H
#include "results/fields.h"
#include "results/knobs.h"

#define SCHEMA_TABLE(name, ...) \
    static const struct field name##_ROW[] = {__VA_ARGS__}; \
    static const struct fields name = {name##_ROW, sizeof name##_ROW / sizeof *name##_ROW, 0};
SCHEMA_TABLE(TIER_RANGE, TIER_RANGE_ROWS(FIELD_ELSE))
SCHEMA_TABLE(SETTING, SETTING_ROWS(FIELD_ELSE))
SCHEMA_TABLE(STOPS, STOPS_ROWS(FIELD_ELSE))
SCHEMA_TABLE(SERVER_TIME, SERVER_TIME_ROWS(FIELD_ELSE))
SCHEMA_TABLE(OUTSIDE, OUTSIDE_ROWS(FIELD_ELSE))
SCHEMA_TABLE(COUNTS_OF_RESULT, COUNTS_OF_RESULT_ROWS(FIELD_ELSE))
SCHEMA_TABLE(GPU, GPU_ROWS(FIELD_ELSE))
SCHEMA_TABLE(COLD, COLD_ROWS(FIELD_ELSE))
SCHEMA_TABLE(SERVER_WORDS, SERVER_WORDS_ROWS(FIELD_ELSE))
SCHEMA_TABLE(PROVENANCE, PROVENANCE_ROWS(FIELD_ELSE))
SCHEMA_TABLE(RESULT_END, RESULT_END_ROWS(FIELD_ELSE))
SCHEMA_TABLE(AGGREGATE, AGGREGATE_ROWS(FIELD_ELSE))
SCHEMA_TABLE(STAGE_DETAIL, STAGE_DETAIL_ROWS(FIELD_ELSE))
SCHEMA_TABLE(ROW_TIMES, ROW_TIMES_ROWS(FIELD_ELSE))
SCHEMA_TABLE(RUN_FLAGS, RUN_FLAGS_ROWS(FIELD_ELSE))
SCHEMA_TABLE(ROW_FLAGS, ROW_FLAGS_ROWS(FIELD_ELSE))
SCHEMA_TABLE(ROW_SERVED, ROW_SERVED_ROWS(FIELD_ELSE))
static const char *const PARTS_OF_STATISTICS[] = {"mean", "std", "p50", "p95", "p99"};

static vp_json_writer schema_writer;
static void member(const char *key) {
    vp_json_key(&schema_writer, key);
    vp_json_begin_object(&schema_writer);
}
static void end_member(void) { vp_json_end_object(&schema_writer); }
/* "type": NAME, or [NAME, "null"] */
static void put_type(const char *name, int or_null) {
    vp_json_key(&schema_writer, "type");
    if (or_null) vp_json_begin_array(&schema_writer);
    vp_json_string(&schema_writer, name);
    if (or_null) vp_json_string(&schema_writer, "null");
    if (or_null) vp_json_end_array(&schema_writer);
}
static void put_words(const char *words, const char *unit, const char *null) {
    char text[1000];
    snprintf(text, sizeof text, "%s%s%s%s%s%s", words, unit ? " [" : "", unit ? unit : "", unit ? "]" : "", null ? "; null: " : "", null ? null : "");
    put_text(&schema_writer, "description", text);
}
static void put_leaf(const char *type, int or_null, int is_positive) {
    put_type(type, or_null);
    if (is_positive) put_int(&schema_writer, "minimum", 0);
}
static void put_items(const char *type, int or_null, int is_positive) {
    member("items");
    put_leaf(type, or_null, is_positive);
    end_member();
}
static void put_map(const char *type, int64_t least) {
    member("additionalProperties");
    put_type(type, 0);
    if (least >= 0) put_int(&schema_writer, "minimum", least);
    end_member();
}
static void put_object_of(const struct fields *const *tables, size_t count, int is_open);
static void put_named(const char *key, const char *type, const char *words, const char *unit, const char *null, int is_positive) {
    member(key);
    put_leaf(type, null != NULL, is_positive);
    put_words(words, unit, null);
    end_member();
}
static void begin_list(const char *key) { vp_json_key(&schema_writer, key); vp_json_begin_array(&schema_writer); }
/* those that every request has */
static void put_stage_names(void) {
    for (int i = 0; i < VP_STAGE_COUNT; i++) if (i != VP_STAGE_PRUNE) vp_json_string(&schema_writer, vp_stage_name((vp_stage)i));
}
static void put_unit_words(const char *key, const char *what, int metric) {
    char words[400], name[80];
    snprintf(words, sizeof words, "%s%s", what, METRIC_KEYS[metric]);
    snprintf(name, sizeof name, "%s", key);
    put_named(name, "number", words, TERMS[metric].unit[0] ? TERMS[metric].unit : NULL, "not measured", metric != METRIC_UNACCOUNTED);
}
/* aggregate_stats: KEY_mean ... KEY_p99 of each metric */
static void put_aggregate_schema(void) {
    static const char *const words[] = {"mean of ", "population standard deviation of ", "median of ", "95th percentile, linear, of ", "99th percentile, linear, of "};
    char key[100];
    begin_list("required");
    for (int metric = 0; metric <= METRIC_STAGE; metric++) {
        if (metric < METRIC_STAGE && is_left_out(metric, (double)NAN)) continue;
        for (int k = 0; k < 5; k++) {
            snprintf(key, sizeof key, "%s_%s", metric < METRIC_STAGE ? METRIC_KEYS[metric] : "T_total_runs", PARTS_OF_STATISTICS[k]);
            vp_json_string(&schema_writer, key);
        }
    }
    for (uint32_t i = 0; i < AGGREGATE.count; i++) vp_json_string(&schema_writer, AGGREGATE.rows[i].key);
    vp_json_end_array(&schema_writer);
    vp_json_key(&schema_writer, "additionalProperties");
    vp_json_bool(&schema_writer, 0);
    member("properties");
    for (int metric = 0; metric <= METRIC_STAGE; metric++) for (int k = 0; k < 5; k++) {
        const int of = metric < METRIC_STAGE ? metric : METRIC_TOTAL;
        snprintf(key, sizeof key, "%s_%s", metric < METRIC_STAGE ? METRIC_KEYS[metric] : "T_total_runs", PARTS_OF_STATISTICS[k]);
        member(key);
        put_leaf("number", 1, of != METRIC_UNACCOUNTED || k == 1);
        snprintf(key, sizeof key, "%s%s, over %s", words[k], METRIC_KEYS[of], metric < METRIC_STAGE ? "samples" : "runs");
        put_words(key, TERMS[of].unit[0] ? TERMS[of].unit : NULL, "not measured");
        end_member();
    }
}
/* {"mean" ... "p99", "count"}; with is_whole also the interval of the median */
static void put_distribution_schema(int is_whole) {
    begin_list("required");
    for (int k = 0; k < 5; k++) vp_json_string(&schema_writer, PARTS_OF_STATISTICS[k]);
    vp_json_string(&schema_writer, "count");
    if (is_whole) { vp_json_string(&schema_writer, "p50_interval"); vp_json_string(&schema_writer, "unsupported"); }
    vp_json_end_array(&schema_writer);
    put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (int k = 0; k < 5; k++) put_named(PARTS_OF_STATISTICS[k], "number", "of the values", NULL, "there are none", k == 1);
    put_named("count", "integer", "values", NULL, NULL, 1);
    if (is_whole) {
        member("p50_interval");
        put_type("array", 1);
        put_items("number", 0, 0);
        put_words("95 % interval of the median", NULL, "too few values");
        end_member();
        member("unsupported");
        put_type("array", 0);
        put_items("string", 0, 0);
        put_words("percentiles that so few values cannot support", NULL, NULL);
        end_member();
    }
    end_member();
}
static void put_statistics_schema(void) {
    static const char *const keys[] = {"over_samples", "over_runs"}, *const words[] = {"each value is the mean over a sample's runs", "each value is a run"};
    begin_list("required");
    for (int k = 0; k < 2; k++) vp_json_string(&schema_writer, keys[k]);
    vp_json_end_array(&schema_writer);
    put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (int k = 0; k < 2; k++) {
        member(keys[k]);
        put_type("object", 0);
        put_words(words[k], NULL, NULL);
        member("additionalProperties");
        put_type("object", 0);
        put_distribution_schema(1);
        end_member();
        end_member();
    }
    end_member();
}
/* Objects with a member for each stage; those of runs also have one for each metric. */
static void put_by_stage(const char *key) {
    const int is_runs = !strcmp(key, "runs"), is_detail = !strcmp(key, "stage_detail");
    const struct fields *const detail[] = {&STAGE_DETAIL};
    begin_list("required");
    for (int metric = 0; is_runs && metric < METRIC_STAGE; metric++) if (!is_left_out(metric, (double)NAN)) vp_json_string(&schema_writer, METRIC_KEYS[metric]);
    put_stage_names();
    vp_json_end_array(&schema_writer);
    put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (int i = is_runs ? -METRIC_STAGE : 0; i < VP_STAGE_COUNT; i++) {
        member(i < 0 ? METRIC_KEYS[METRIC_STAGE + i] : vp_stage_name((vp_stage)i));
        put_type(is_runs ? "array" : is_detail ? "object" : "number", !is_runs && !is_detail);
        if (is_runs) put_items("number", 1, 0);
        if (is_detail) put_object_of(detail, 1, 0);
        if (!is_runs && !is_detail) put_int(&schema_writer, "minimum", 0);
        if (i < 0) put_words(TERMS[METRIC_STAGE + i].meaning, TERMS[METRIC_STAGE + i].unit[0] ? TERMS[METRIC_STAGE + i].unit : NULL, NULL);
        else put_words("of the stage", is_detail ? NULL : "ms", NULL);
        end_member();
    }
    end_member();
}
static void put_row_schema(void);
/* What a JSON or LIST row holds, beyond its type. */
static void put_contents(const struct fields *table, const struct field *row) {
    static const struct { const char *key, *type; int or_null, is_positive; } lists[] = {
        {"argv", "string", 0, 0}, {"session_list", "object", 1, 0}, {"outlier", "boolean", 1, 0}, {"throttled", "boolean", 0, 0}, {"session", "integer", 0, 1},
        {"telemetry", "object", 1, 0}, {"steal_percent", "number", 1, 0}, {"other_cpu_percent", "number", 1, 0}, {"cold", "object", 0, 0}};
    static const char *const metadata[] = {"question", "answers", "image_id", "id"};
    for (size_t i = 0; row->type == FIELD_LIST && i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(row->key, lists[i].key)) put_items(lists[i].type, lists[i].or_null, lists[i].is_positive);
    if (!strcmp(row->key, "itl") || !strcmp(row->key, "T_decode_per_step")) {
        member("items");
        put_type("array", 0);
        put_items("number", 0, 1);
        end_member();
    } else if (!strcmp(row->key, "selected_crops_distribution")) put_map("integer", 1);
    else if (!strcmp(row->key, "null_reasons")) put_map("string", -1);
    else if (!strcmp(row->key, "parts")) put_map("number", 0);
    else if (table == &KERNELS) {
        const struct fields *const stage[] = {&KERNEL_STAGE};
        member("additionalProperties");
        put_type("object", 0);
        put_object_of(stage, 1, 0);
        end_member();
    } else if (table == &ROW_TIMES && !strcmp(row->key, "metadata")) {
        begin_list("required");
        for (int i = 0; i < 4; i++) vp_json_string(&schema_writer, metadata[i]);
        vp_json_end_array(&schema_writer);
    } else if (table == &ROW_TIMES && row->type == FIELD_JSON) put_by_stage(row->key);
    else if (strstr(row->key, "_stats") && row->type == FIELD_JSON && table != &AGGREGATE) {
        put_aggregate_schema();
        for (uint32_t i = 0; i < AGGREGATE.count; i++) {
            const struct field *own = &AGGREGATE.rows[i];
            if (own->type == FIELD_NUMBER) put_named(own->key, "number", own->words, NULL, own->null, own->most > 0);
        }
        member("T_decode_per_step_stats");
        put_type("object", 0);
        put_words(AGGREGATE.rows[AGGREGATE.count - 1].words, NULL, NULL);
        member("additionalProperties");
        put_type("object", 0);
        put_distribution_schema(0);
        end_member();
        end_member();
        end_member();
    } else if (!strcmp(row->key, "statistics")) put_statistics_schema();
    if (row->of) put_object_of(&row->of, 1, 1);
}
static void put_enum(const struct field *row) {
    if (!row->choices) return;
    begin_list("enum");
    for (const char *word = row->choices; *word; word += strcspn(word, "|"), word += *word == '|') {
        char one[80];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(word, "|"), word);
        vp_json_string(&schema_writer, one);
    }
    if (row->null) vp_json_null(&schema_writer);
    vp_json_end_array(&schema_writer);
}
static void put_field(const struct fields *table, const struct field *row) {
    static const char *const types[] = {"integer", "number", "string", "string", "boolean", "array",  "array",
                                        "array",   "array",  "object", "object", "object",  "array", "array"};
    const int is_pair = row->type == FIELD_PAIR || row->type == FIELD_INT_RANGE || row->type == FIELD_RANGE;
    member(row->key);
    put_type(types[row->type], row->null != NULL);
    put_words(row->words, row->unit, row->null);
    put_enum(row);
    if (row->least >= 0 && (row->type == FIELD_INT || (row->type == FIELD_NUMBER && row->most > row->least))) put_int(&schema_writer, "minimum", row->least);
    if (is_pair || row->type == FIELD_INTS) put_items(row->type == FIELD_RANGE ? "number" : "integer", 0, row->type != FIELD_RANGE);
    if (is_pair) { put_int(&schema_writer, "minItems", 2); put_int(&schema_writer, "maxItems", 2); }
    if (row->type == FIELD_OBJECT) put_object_of(&row->of, 1, 0);
    if (row->type == FIELD_OBJECTS) {
        member("items");
        put_type("object", 0);
        if (row->of) put_object_of(&row->of, 1, 0); else put_row_schema();
        end_member();
    }
    if (row->type == FIELD_JSON || row->type == FIELD_LIST) put_contents(table, row);
    end_member();
}
static void put_object_of(const struct fields *const *tables, size_t count, int is_open) {
    begin_list("required");
    for (size_t k = 0; k < count; k++) for (uint32_t i = 0; i < tables[k]->count; i++)
        if (!tables[k]->rows[i].is_optional && tables[k] != &ROW_SERVED && tables[k] != &SENT) vp_json_string(&schema_writer, tables[k]->rows[i].key);
    vp_json_end_array(&schema_writer);
    if (!is_open) put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (size_t k = 0; k < count; k++) for (uint32_t i = 0; i < tables[k]->count; i++) put_field(tables[k], &tables[k]->rows[i]);
    end_member();
}
/* The metrics of a row, whose members come from many tables. */
static void put_row_schema(void) {
    static const struct fields *const tables[] = {&ROW_HEAD, &RESULT_SIZES, &ANSWER_TOKENS, &ANSWER, &FIDELITY, &ROW_TIMES,
                                                  &MEASURED, &ROW_FLAGS,    &MEASURED_COST, &SENT,   &ROW_SERVED};
    enum { TABLES = sizeof tables / sizeof *tables };
    begin_list("required");
    for (int metric = 0; metric < METRIC_STAGE; metric++) if (!is_left_out(metric, (double)NAN)) vp_json_string(&schema_writer, METRIC_KEYS[metric]);
    for (size_t k = 0; k < TABLES; k++) for (uint32_t i = 0; i < tables[k]->count; i++)
        if (!tables[k]->rows[i].is_optional && tables[k] != &ROW_SERVED && tables[k] != &SENT) vp_json_string(&schema_writer, tables[k]->rows[i].key);
    vp_json_end_array(&schema_writer);
    put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (int metric = 0; metric < METRIC_STAGE; metric++) put_unit_words(METRIC_KEYS[metric], "mean over the runs of ", metric);
    for (size_t k = 0; k < TABLES; k++) for (uint32_t i = 0; i < tables[k]->count; i++) put_field(tables[k], &tables[k]->rows[i]);
    end_member();
}
static void put_knob_schema(const struct knob *knob) {
    member(knob->key);
    put_type(knob->type == KNOB_IS_NUMBER ? "integer" : knob->type == KNOB_IS_JSON ? "object" : "string", knob->null != NULL);
    put_words(knob->words, NULL, knob->null);
    if (knob->type == KNOB_IS_NUMBER) put_int(&schema_writer, "minimum", 0);
    if (knob->type == KNOB_IS_TEXT && knob->choices) {
        begin_list("enum");
        for (const char *word = knob->choices; *word; word += strcspn(word, " "), word += *word == ' ') {
            char one[80];
            snprintf(one, sizeof one, "%.*s", (int)strcspn(word, " "), word);
            vp_json_string(&schema_writer, one);
        }
        if (knob->null) vp_json_null(&schema_writer);
        vp_json_end_array(&schema_writer);
    }
    end_member();
}
/* The schema, malloc'ed. */
static char *result_schema(void) {
    static const struct fields *const tables[] = {&RESULT, &SETTING, &RESULT_ACCURACY, &RESULT_FIDELITY, &COUNTS_OF_RESULT, &RESULT_VISION, &RESULT_TIME, &RESULT_END};
    enum { TABLES = sizeof tables / sizeof *tables };
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer_init_sink(&schema_writer, text_sink, &text, 1);
    vp_json_begin_object(&schema_writer);
    put_text(&schema_writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
    put_text(&schema_writer, "title", "result file of vlmprof sweep");
    put_text(&schema_writer, "description", "One configuration of a sweep. Times are milliseconds; std is the population's; percentiles are numpy's linear ones; "
             "what was not measured is null, never 0. Made from the rows of cli/results: build/tests/test_schema --write.");
    put_type("object", 0);
    begin_list("required");
    for (int knob = 0; knob < KNOB_OWN; knob++) /* files of older versions lack the others */
        if ((KNOBS[knob].always & KNOB_IN_RESULTS) && knob != KNOB_IMAGE && knob != KNOB_WEIGHTS) vp_json_string(&schema_writer, KNOBS[knob].key);
    for (size_t k = 0; k < TABLES; k++) for (uint32_t i = 0; i < tables[k]->count; i++)
        if (!tables[k]->rows[i].is_optional && strcmp(tables[k]->rows[i].key, "image_knob_value")) vp_json_string(&schema_writer, tables[k]->rows[i].key);
    vp_json_end_array(&schema_writer);
    put_bool(&schema_writer, "additionalProperties", 0);
    member("properties");
    for (int knob = 0; knob < KNOB_OWN; knob++) put_knob_schema(&KNOBS[knob]);
    for (size_t k = 0; k < TABLES; k++) for (uint32_t i = 0; i < tables[k]->count; i++) put_field(tables[k], &tables[k]->rows[i]);
    end_member();
    vp_json_end_object(&schema_writer);
    if (vp_json_finish(&schema_writer) == VP_OK) text_add(&text, "\n", 2);
    return text.data;
}
#endif
