/* test_schema.c: samples/result.schema.json is made from the rows of cli/results and describes the result files of a sweep: files of the program are checked against it,
 * damaged ones must fail, and every key has a description. The validator below supports only the words in this schema and rejects others. Runs $PROGRAM (default
 * ./vlmprof), and $B/emulated/vlmprof for the additions of a GPU, from the repository's root. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/check.h"
#include "support/chat_server.h"
#include "support/folder.h"
#include "support/result_schema.h"

typedef struct document { char *text; vp_json_node *nodes; vp_json json; } document;

static int document_parse(document *d, char *text) { /* takes ownership of the text */
    size_t needed = 0, bytes = text ? strlen(text) : 0;
    vp_error error;
    memset(d, 0, sizeof *d);
    d->text = text;
    if (!text || vp_json_parse(text, bytes, NULL, 0, &d->json, &needed, &error) != VP_ERR_CAPACITY) return 0;
    d->nodes = (vp_json_node *)malloc(needed * sizeof *d->nodes);
    return d->nodes && vp_json_parse(text, bytes, d->nodes, needed, &d->json, &needed, &error) == VP_OK;
}
static void document_free(document *d) {
    FREE_ALL(d->nodes, d->text);
}
static char *own(const char *text) {
    char *copy = (char *)malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

/* ---------------------------------------------------------------------------------------------------- the validator */
typedef struct checker { const vp_json *schema, *value; char where[400], what[400]; } checker;

static int complain(checker *c, const char *path, const char *what, const char *name) {
    snprintf(c->where, sizeof c->where, "%s", path);
    snprintf(c->what, sizeof c->what, "%s%s%s", what, name[0] ? ": " : "", name);
    return 0;
}
static const char *words_of(const vp_json *j, uint32_t node) {
    static char room[4][300];
    static int turn;
    char *out = room[turn++ & 3];
    size_t needed;
    if (vp_json_text(j, node, out, sizeof room[0], &needed) != VP_OK) snprintf(out, sizeof room[0], "(no text)");
    return out;
}
static int type_is(const vp_json *j, uint32_t node) { return node == VP_JSON_NONE ? -1 : (int)j->nodes[node].type; }
static int key_is(const vp_json *j, uint32_t key, const char *const *names) {
    for (; *names; names++) if (vp_json_equals(j, key, *names)) return 1;
    return 0;
}
/* visits members: for (i = object + 1; i < end; i = next), with the key at i and its value at i + 1 */
#define EACH_MEMBER(j, object, i) for (uint32_t i = (object) + 1; i < (j)->nodes[object].end; i = (j)->nodes[i + 1].end)
#define EACH_ELEMENT(j, array, i) for (uint32_t i = (array) + 1; i < (j)->nodes[array].end; i = (j)->nodes[i].end)

static uint32_t resolve(const vp_json *s, uint32_t schema) { /* accepts only "#/$defs/name" */
    uint32_t reference = vp_json_get(s, schema, "$ref");
    const char *name;
    if (reference == VP_JSON_NONE) return schema;
    name = words_of(s, reference);
    if (strncmp(name, "#/$defs/", 8)) return VP_JSON_NONE;
    return vp_json_get(s, vp_json_get(s, 0, "$defs"), name + 8);
}

/* Returns 1 if the validator supports the whole schema. Every part is checked, used or not. */
static int schema_check(checker *c, uint32_t node, int in_properties, const char *path, int depth) {
    static const char *const words[] = {"$schema", "title", "description", "$defs", "$ref", "type", "properties", "required", "items", "enum",
                                        "additionalProperties", "minimum", "minItems", "maxItems", NULL};
    static const char *const types[] = {"null", "boolean", "integer", "number", "string", "array", "object", NULL};
    const vp_json *s = c->schema;
    uint32_t part, properties = vp_json_get(s, node, "properties");
    char below[400];
    if (depth > 20 || type_is(s, node) != VP_JSON_OBJECT) return complain(c, path, "a schema is an object, at most 20 deep", "");
    if (resolve(s, node) == VP_JSON_NONE) return complain(c, path, "this $ref leads nowhere", "");
    if (in_properties && type_is(s, vp_json_get(s, node, "description")) != VP_JSON_STRING) return complain(c, path, "no description", "");
    EACH_MEMBER(s, node, i) if (!key_is(s, i, words)) return complain(c, path, "unknown word", words_of(s, i));
    if ((part = vp_json_get(s, node, "type")) != VP_JSON_NONE) {
        if (type_is(s, part) == VP_JSON_STRING && !key_is(s, part, types)) return complain(c, path, "unknown type", words_of(s, part));
        if (type_is(s, part) == VP_JSON_ARRAY) EACH_ELEMENT(s, part, i) if (!key_is(s, i, types)) return complain(c, path, "unknown type", words_of(s, i));
    }
    if ((part = vp_json_get(s, node, "enum")) != VP_JSON_NONE)
        EACH_ELEMENT(s, part, i) if (type_is(s, i) != VP_JSON_STRING && type_is(s, i) != VP_JSON_NULL) return complain(c, path, "enum of neither texts nor null", "");
    if ((part = vp_json_get(s, node, "required")) != VP_JSON_NONE)
        EACH_ELEMENT(s, part, i) if (vp_json_get(s, properties, words_of(s, i)) == VP_JSON_NONE && vp_json_get(s, node, "additionalProperties") != VP_JSON_NONE)
            return complain(c, path, "required, but no property", words_of(s, i));
    for (int k = 0; k < 2; k++) {
        if ((part = vp_json_get(s, node, k ? "$defs" : "properties")) == VP_JSON_NONE) continue;
        EACH_MEMBER(s, part, i) {
            snprintf(below, sizeof below, "%.300s/%s", path, words_of(s, i));
            if (!schema_check(c, i + 1, !k, below, depth + 1)) return 0;
        }
    }
    for (int k = 0; k < 2; k++) {
        part = vp_json_get(s, node, k ? "items" : "additionalProperties");
        snprintf(below, sizeof below, "%.300s/%s", path, k ? "items" : "additionalProperties");
        if (part == VP_JSON_NONE || (!k && (type_is(s, part) == VP_JSON_FALSE || type_is(s, part) == VP_JSON_TRUE))) continue;
        if (!schema_check(c, part, 0, below, depth + 1)) return 0;
    }
    return 1;
}

static int has_type(checker *c, uint32_t wanted, uint32_t value) {
    static const char *const names[] = {"null", "boolean", "boolean", "number", "string", "array", "object"};
    int64_t whole;
    if (vp_json_equals(c->schema, wanted, "integer")) return vp_json_to_int(c->value, value, &whole) == VP_OK;
    return vp_json_equals(c->schema, wanted, names[c->value->nodes[value].type]);
}

static int valid(checker *c, uint32_t schema, uint32_t value, const char *path, int depth);

static int valid_object(checker *c, uint32_t schema, uint32_t value, const char *path, int depth) {
    const vp_json *s = c->schema, *v = c->value;
    uint32_t part, properties = vp_json_get(s, schema, "properties"), others = vp_json_get(s, schema, "additionalProperties");
    char below[400];
    if ((part = vp_json_get(s, schema, "required")) != VP_JSON_NONE)
        EACH_ELEMENT(s, part, i) if (vp_json_get(v, value, words_of(s, i)) == VP_JSON_NONE) return complain(c, path, "lacks", words_of(s, i));
    EACH_MEMBER(v, value, i) {
        uint32_t own_schema = vp_json_get(s, properties, words_of(v, i));
        if (own_schema == VP_JSON_NONE && type_is(s, others) == VP_JSON_FALSE) return complain(c, path, "not described", words_of(v, i));
        if (own_schema == VP_JSON_NONE && type_is(s, others) == VP_JSON_OBJECT) own_schema = others;
        if (own_schema == VP_JSON_NONE) continue;
        snprintf(below, sizeof below, "%.300s/%s", path, words_of(v, i));
        if (!valid(c, own_schema, i + 1, below, depth + 1)) return 0;
    }
    return 1;
}

static int valid_array(checker *c, uint32_t schema, uint32_t value, const char *path, int depth) {
    const vp_json *s = c->schema, *v = c->value;
    uint32_t items = vp_json_get(s, schema, "items"), count = 0;
    int64_t least = 0, most = INT64_MAX;
    char below[400];
    vp_json_to_int(s, vp_json_get(s, schema, "minItems"), &least); /* without the keyword, the value does not change */
    vp_json_to_int(s, vp_json_get(s, schema, "maxItems"), &most);
    EACH_ELEMENT(v, value, i) {
        snprintf(below, sizeof below, "%.300s/%u", path, (unsigned)count++);
        if (items != VP_JSON_NONE && !valid(c, items, i, below, depth + 1)) return 0;
    }
    return (int64_t)count >= least && (int64_t)count <= most ? 1 : complain(c, path, "wrong number of items", "");
}

static int valid(checker *c, uint32_t schema, uint32_t value, const char *path, int depth) {
    const vp_json *s = c->schema, *v = c->value;
    uint32_t part;
    double least, number;
    int good;
    if (depth > 40) return complain(c, path, "too deep", "");
    while (vp_json_get(s, schema, "$ref") != VP_JSON_NONE) { /* in this schema, only descriptions are next to references */
        schema = resolve(s, schema);
        if (schema == VP_JSON_NONE || depth++ > 40) return complain(c, path, "this $ref leads nowhere", "");
    }
    if ((part = vp_json_get(s, schema, "type")) != VP_JSON_NONE) {
        good = type_is(s, part) == VP_JSON_STRING && has_type(c, part, value);
        if (type_is(s, part) == VP_JSON_ARRAY) EACH_ELEMENT(s, part, i) good |= has_type(c, i, value);
        if (!good) return complain(c, path, "wrong type", "");
    }
    if ((part = vp_json_get(s, schema, "enum")) != VP_JSON_NONE) {
        good = 0;
        EACH_ELEMENT(s, part, i) good |= type_is(s, i) == VP_JSON_NULL ? type_is(v, value) == VP_JSON_NULL : vp_json_equals(v, value, words_of(s, i));
        if (!good) return complain(c, path, "none of the values of enum", "");
    }
    if ((part = vp_json_get(s, schema, "minimum")) != VP_JSON_NONE && type_is(v, value) == VP_JSON_NUMBER) {
        good = vp_json_to_double(s, part, &least) == VP_OK && vp_json_to_double(v, value, &number) == VP_OK && number >= least;
        if (!good) return complain(c, path, "below its minimum", "");
    }
    if (type_is(v, value) == VP_JSON_OBJECT) return valid_object(c, schema, value, path, depth);
    return type_is(v, value) == VP_JSON_ARRAY ? valid_array(c, schema, value, path, depth) : 1;
}

/* ---------------------------------------------------------------------------------------------------- the validator's own test */
/* 1: valid, 0: invalid, -1: the schema is rejected, -2: the schema or the value is not JSON */
static int verdict(const char *schema, const char *value) {
    document s, v;
    checker c = {0};
    int result = -2;
    if (document_parse(&s, own(schema)) && document_parse(&v, own(value))) {
        c.schema = &s.json;
        c.value = &v.json;
        result = !schema_check(&c, 0, 0, "", 0) ? -1 : valid(&c, 0, 0, "", 0);
        document_free(&v);
    }
    document_free(&s);
    return result;
}

static void test_validator(void) {
    static const struct { const char *schema, *value; int verdict; } table[] = {
        {"{}", "3", 1}, {"[]", "3", -1}, {"{\"pattern\": \"x\"}", "3", -1}, {"{\"type\": \"double\"}", "3", -1}, {"{\"type\": [\"integer\", 3]}", "3", -1},
        {"{\"type\": \"number\"}", "3.5", 1}, {"{\"type\": \"number\"}", "\"3\"", 0}, {"{\"type\": \"integer\"}", "3", 1},
        {"{\"type\": \"integer\"}", "3.0", 1}, {"{\"type\": \"integer\"}", "3.5", 0}, {"{\"type\": [\"integer\", \"null\"]}", "null", 1},
        {"{\"type\": [\"integer\", \"null\"]}", "true", 0}, {"{\"type\": \"boolean\"}", "false", 1}, {"{\"type\": \"boolean\"}", "0", 0},
        {"{\"type\": \"object\"}", "[]", 0}, {"{\"type\": \"array\"}", "[]", 1}, {"{\"minimum\": 0}", "-1e-300", 0}, {"{\"minimum\": 0}", "0", 1},
        {"{\"minimum\": 0}", "\"-1\"", 1}, {"{\"enum\": [\"a\", null]}", "null", 1}, {"{\"enum\": [\"a\"]}", "\"b\"", 0}, {"{\"enum\": [\"a\"]}", "null", 0},
        {"{\"enum\": [3]}", "3", -1}, {"{\"items\": {\"type\": \"string\"}}", "[\"a\", 1]", 0}, {"{\"items\": {\"type\": \"string\"}}", "[\"a\"]", 1},
        {"{\"items\": {\"typo\": \"string\"}}", "[]", -1}, {"{\"minItems\": 2, \"maxItems\": 2}", "[1]", 0}, {"{\"minItems\": 2, \"maxItems\": 2}", "[1, 2, 3]", 0},
        {"{\"minItems\": 2, \"maxItems\": 2}", "[1, 2]", 1}, {"{\"properties\": {\"a\": {\"description\": \"d\", \"type\": \"null\"}}}", "{\"b\": 1}", 1},
        {"{\"properties\": {\"a\": {\"description\": \"d\", \"type\": \"null\"}}}", "{\"a\": 1}", 0}, {"{\"properties\": {\"a\": {\"type\": \"null\"}}}", "{}", -1},
        {"{\"additionalProperties\": false}", "{\"b\": 1}", 0}, {"{\"additionalProperties\": true}", "{\"b\": 1}", 1},
        {"{\"additionalProperties\": {\"type\": \"null\"}}", "{\"b\": 1}", 0}, {"{\"required\": [\"a\"]}", "{\"b\": 1}", 0}, {"{\"required\": [\"a\"]}", "{\"a\": 1}", 1},
        {"{\"required\": [\"a\"], \"additionalProperties\": false}", "{}", -1}, {"{\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"type\": \"null\"}}}", "null", 1},
        {"{\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"type\": \"null\"}}}", "1", 0}, {"{\"$ref\": \"#/$defs/y\", \"$defs\": {\"x\": {}}}", "1", -1},
        {"{\"$ref\": \"http://x\"}", "1", -1}, {"{\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"$ref\": \"#/$defs/x\"}}}", "1", 0}};
    check_case("the validator: values that it accepts and rejects, and unsupported keywords");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        check_note(verdict(table[i].schema, table[i].value) == table[i].verdict, __FILE__, __LINE__, "%s on %s: %d", table[i].schema, table[i].value,
                   verdict(table[i].schema, table[i].value));
}

/* ---------------------------------------------------------------------------------------------------- result files */
static document schema;
static char result_path[600];

static uint32_t row_of(const vp_json *j, uint32_t index) { return vp_json_at(j, vp_json_get(j, 0, "per_sample_results"), index); }

/* Checks all result files of a folder. Returns the first one's text, or NULL. */
static char *check_files(const char *out, int want_files) {
    char *first = NULL;
    struct dirent *e;
    DIR *d = opendir(out);
    int files = 0;
    while (d && (e = readdir(d)) != NULL) {
        document v;
        if (!strstr(e->d_name, "imgsize")) continue;
        snprintf(result_path, sizeof result_path, "%s/%.255s", out, e->d_name);
        files++;
        if (!CHECK(document_parse(&v, check_read(result_path, NULL)))) continue;
        checker c = {.schema = &schema.json, .value = &v.json};
        check_note(valid(&c, 0, 0, "", 0), __FILE__, __LINE__, "%s: %s: %s (a new key is a row of cli/results/fields.h)", e->d_name, c.where, c.what);
        if (!first) first = own(v.text);
        document_free(&v);
    }
    if (d) closedir(d);
    CHECK_INT(files, want_files);
    return first;
}
/* Sweeps into a new folder below `folder`. Returns the first result file's text, or NULL. The other files are checked too. */
static char *sweep(const char *program, const char *arguments, int want_code, int want_files) {
    static int turn;
    char command[1200], out[300];
    snprintf(out, sizeof out, "%s/out%d", folder, turn++);
    snprintf(command, sizeof command, "OMP_WAIT_POLICY=passive %s sweep %s --max_new_tokens 3 --output_dir '%s' %s >/dev/null 2>\"$TEST_FOLDER\"/err", program,
             strstr(arguments, "--endpoint") ? "" : "--synthetic tiny", out, arguments);
    int code = system(command);
    check_note(code == want_code << 8, __FILE__, __LINE__, "%s: status %d", command, code);
    return check_files(out, want_files);
}

/* the reference's keys, from a file of its combined profiler */
static void check_reference_keys(const vp_json *j) {
    static const char *const top[] = {"tier", "tier_range", "max_crops", "selected_crops_distribution", "selected_crops_mean", "selected_crops_std",
        "target_vision_tokens_mean", "target_vision_tokens_std", "actual_vision_tokens_mean", "actual_vision_tokens_std", "top_k", "num_active_blocks",
        "num_total_blocks", "active_block_indices", "num_samples", "accuracy", "accuracy_std", "latency_stats", "aggregate_stats", "per_sample_results"};
    static const char *const row[] = {"sample_id", "tier", "top_k", "num_active_blocks", "output_tokens", "content_tokens", "ends_with_eos",
        "actual_image_size", "actual_num_crops", "actual_tiling", "target_vision_tokens", "actual_vision_tokens", "actual_text_tokens",
        "total_sequence_length", "accuracy", "pred", "metadata", "T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token",
        "T_decode_per_step"};
    static const char *const times[] = {"T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token"};
    static const char *const numbers[] = {"mean", "std", "p50", "p95", "p99", "count"};
    uint32_t step;
    size_t i, k, s;
    check_case("the reference's keys exist, with statistics under both names");
    for (i = 0; i < sizeof top / sizeof top[0]; i++) check_note(vp_json_get(j, 0, top[i]) != VP_JSON_NONE, __FILE__, __LINE__, "%s", top[i]);
    for (i = 0; i < sizeof row / sizeof row[0]; i++) check_note(vp_json_get(j, row_of(j, 0), row[i]) != VP_JSON_NONE, __FILE__, __LINE__, "row: %s", row[i]);
    CHECK(vp_json_get(j, vp_json_get(j, 0, "tier_range"), "min_crops") != VP_JSON_NONE && vp_json_get(j, vp_json_get(j, 0, "tier_range"), "max_crops") != VP_JSON_NONE);
    for (s = 0; s < 2; s++) {
        const uint32_t statistics = vp_json_get(j, 0, s ? "latency_stats" : "aggregate_stats");
        for (i = 0; i < 5; i++) for (k = 0; k < 5; k++) {
            char key[64];
            snprintf(key, sizeof key, "%s_%s", times[i], numbers[k]);
            check_note(type_is(j, vp_json_get(j, statistics, key)) == VP_JSON_NUMBER, __FILE__, __LINE__, "%s", key);
        }
        step = vp_json_get(j, vp_json_get(j, statistics, "T_decode_per_step_stats"), "pos_1");
        for (k = 0; k < 6; k++) check_note(vp_json_get(j, step, numbers[k]) != VP_JSON_NONE, __FILE__, __LINE__, "pos_1: %s", numbers[k]);
    }
}

/* The schema must reject a good file with one change: `from` (its first occurrence after `after`) becomes `to`. */
static void check_damage(const char *text, const char *behind, const char *from, const char *to) {
    const char *start = strstr(text, behind), *place = start ? strstr(start, from) : NULL;
    char *changed = (char *)malloc(strlen(text) + strlen(to) + 1);
    document v;
    checker c = {0};
    if (CHECK(place && changed)) {
        memcpy(changed, text, (size_t)(place - text));
        strcpy(changed + (place - text), to);
        strcat(changed, place + strlen(from));
        if (check_note(document_parse(&v, changed), __FILE__, __LINE__, "%s -> %s is no JSON any more", from, to)) {
            c.schema = &schema.json;
            c.value = &v.json;
            check_note(!valid(&c, 0, 0, "", 0), __FILE__, __LINE__, "%s -> %s passes", from, to);
        }
        document_free(&v);
    } else free(changed);
}

static void test_damage(const char *text) {
    check_case("a result file with a single error is rejected");
    check_damage(text, "", "\"schema\": \"vlmprof-sweep-2\"", "\"schema\": \"vlmprof-sweep-0\"");
    check_damage(text, "", "\"plan\":", "\"new\": 1, \"plan\":");              /* undescribed keys: at the top, in a row, in a stage */
    check_damage(text, "per_sample_results", "\"sample_id\":", "\"new\": 1, \"sample_id\":");
    check_damage(text, "\"stage_detail\"", "\"wall_ms\":", "\"new\": 1, \"wall_ms\":");
    check_damage(text, "\"stage_detail\"", "\"vit\":", "\"vlt\":");
    check_damage(text, "\"stages\"", "\"vit\":", "\"vlt\":");
    check_damage(text, "", "\"num_failed\":", "\"num_fai1ed\":");
    check_damage(text, "", "\"latency_stats\":", "\"latency_stat\":");
    check_damage(text, "\"latency_stats\"", "\"T_total_p50\":", "\"T_total_p51\":");
    check_damage(text, "\"latency_stats\"", "\"T_total_p50\": ", "\"T_total_p50\": -");
    check_damage(text, "per_sample_results", "\"T_total\": ", "\"T_total\": -");
    check_damage(text, "per_sample_results", "\"status\": \"ok\"", "\"status\": \"fine\"");
    check_damage(text, "per_sample_results", "\"actual_tiling\": [", "\"actual_tiling\": [1, ");
    check_damage(text, "per_sample_results", "\"ends_with_eos\": ", "\"ends_with_eos\": 1, \"x\": ");
    check_damage(text, "\"T_decode_per_step\"", "[", "[3, ");
    check_damage(text, "\"runs\": {", "\"vit\":", "\"runs_of_vit\":");
    check_damage(text, "\"provenance\"", "\"argv\":", "\"args\":");
    check_damage(text, "\"pos_1\"", "\"count\":", "\"counts\":");
}

/* The files of a sweep of servers with a failing sample. */
static void test_served_files(const char *program) {
    hostile_server server;
    char arguments[700], *text;
    check_case("result files: servers");
    chat_start(&server);
    snprintf(arguments, sizeof arguments, "--endpoint http://127.0.0.1:%d --endpoint_model model-a model-b --request_knob image_url.detail=low "
                                          "--family qwen2_vl --vision_tokens_list 60 --data \"$TEST_FOLDER\"/odd.jsonl --num_runs_per_sample 2", server.port);
    text = sweep(program, arguments, 1, 2);
    CHECK(text && strstr(text, "\"served_runs\": [{\"usage\"") && strstr(text, "\"status\": \"failed\""));
    free(text);
    check_case("result files: servers, with twins");
    snprintf(arguments, sizeof arguments, "--endpoint http://127.0.0.1:%d --endpoint_model model-a --data samples/questions.jsonl --num_samples 1 "
                                          "--num_runs_per_sample 1 --twins 3 --twins_method adjusted", server.port);
    text = sweep(program, arguments, 0, 1);
    CHECK(text && strstr(text, "\"pairs\": [{\"image_ms\""));
    free(text);
    hostile_stop(&server);
}
static void test_files(const char *program) {
    char arguments[700], path[400], *text;
    document v;
    check_case("result files: tiers");
    text = sweep(program, "--data samples/questions.jsonl --tier_list low --top_k_list 1 2 --num_samples 3 --num_runs_per_sample 2", 0, 2);
    if (CHECK(text && document_parse(&v, text))) {
        check_reference_keys(&v.json);
        test_damage(v.text);
        document_free(&v);
    }
    check_case("result files: a folder of images, target tokens, no reference answers");
    free(sweep(program, "--data samples -p 'What is this?' --vision_tokens_list 300 --num_samples 2 --num_runs_per_sample 1", 0, 1));
    check_case("result files: text only, a failed sample");
    snprintf(path, sizeof path, "%s/odd.jsonl", folder);
    FILE *f = fopen(path, "w");
    if (CHECK(f != NULL)) {
        fputs("{\"id\": 1, \"question\": \"Why?\", \"answers\": [\"so\"]}\n{\"id\": 2, \"question\": \"Where?\", \"image\": \"gone.jpg\"}\n", f);
        fclose(f);
    }
    snprintf(arguments, sizeof arguments, "--data '%s' --tier_list high --num_runs_per_sample 1 --ignore_eos", path);
    text = sweep(program, arguments, 1, 1);
    CHECK(text && strstr(text, "complete with failures") && strstr(text, "\"status\": \"failed\""));
    free(text);
}

/* One process of two has run, and only its journal is merged. */
static void test_partial(const char *program) {
    char command[1500], *text;
    check_case("result files: part of a sweep, merged");
    snprintf(command, sizeof command, "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 OMP_WAIT_POLICY=passive %s sweep --synthetic tiny --max_new_tokens 3 "
             "--output_dir \"$TEST_FOLDER\"/part --data samples/questions.jsonl --tier_list low --num_samples 4 --num_runs_per_sample 1 >/dev/null 2>&1", program);
    CHECK_INT(system(command), 0);
    snprintf(command, sizeof command, "%s merge \"$TEST_FOLDER\"/part --partial >/dev/null 2>&1", program);
    CHECK_INT(system(command), 1 << 8);
    snprintf(command, sizeof command, "%s/part", folder);
    text = check_files(command, 1);
    CHECK(text && strstr(text, "\"status\": \"partial\"") && strstr(text, "\"num_missing\": 2,"));
    free(text);
}

/* The knobs in the result: the blocks that an importance file keeps; more experts than in training. */
static void test_knobs(const char *program) {
    static const struct { const char *scores; int blocks; const char *want; } table[] = {
        {"{\"1\": 0.5, \"2\": 0.5}", 3, "\"active_block_indices\": [0, 1, 3],"}, /* a tie: by the file's order */
        {"{\"2\": 0.5, \"1\": 0.5}", 3, "\"active_block_indices\": [0, 2, 3],"},
        {"{\"2\": 0.5, \"1\": 0.4}", 2, "\"active_block_indices\": [0, 3],"},    /* first and last, whatever their scores */
        {"{\"2\": 0.5, \"1\": 0.4}", 1, "\"active_block_indices\": [0],"}};
    char arguments[700], *text;
    check_case("knobs: importance files, top_k above the trained 2");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/scores.json", folder);
        FILE *f = fopen(path, "w");
        if (!CHECK(f != NULL)) return;
        fputs(table[i].scores, f);
        fclose(f);
        snprintf(arguments, sizeof arguments, "--data samples/questions.jsonl --tier_list low --num_samples 1 --num_runs_per_sample 1 --top_k_list 8"
                 " --num_active_blocks_list %d --importance_scores_file '%s'", table[i].blocks, path);
        text = sweep(program, arguments, 0, 1);
        check_note(text && strstr(text, table[i].want) && strstr(text, "\"top_k\": 8,"), __FILE__, __LINE__, "%s: %s", table[i].scores, table[i].want);
        free(text);
    }
    text = sweep(program, "--data samples/questions.jsonl --tier_list low --num_samples 1 --top_k_list 9", 2, 0); /* it has 8 experts */
    CHECK(text == NULL);
}

static void test_gpu_files(void) {
    char program[400];
    const char *b = getenv("B");
    snprintf(program, sizeof program, "%s/emulated/vlmprof", b ? b : "build");
    if (access(program, X_OK)) {
        check_skip("result files of a GPU", "build/emulated/vlmprof is not built");
        return;
    }
    check_case("result files: a GPU (emulated)");
    free(sweep(program, "--device cuda --data samples/questions.jsonl --tier_list low --num_samples 1 --num_runs_per_sample 1", 0, 1));
}

/* --write regenerates the file. */
int main(int argc, char **argv) {
    const char *program = getenv("PROGRAM") ? getenv("PROGRAM") : "./vlmprof";
    checker c = {0};
    char *made = result_schema(), *kept;
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        FILE *file = fopen("samples/result.schema.json", "w");
        const int good = file && fputs(made, file) >= 0;
        return !(file && !fclose(file) && good);
    }
    check_case("samples/result.schema.json matches the rows of cli/results (build/tests/test_schema --write regenerates it)");
    kept = check_read("samples/result.schema.json", NULL);
    CHECK_TEXT(kept, made);
    FREE_ALL(kept, made);
    test_validator();
    check_case("the schema: no unknown keyword, every key described");
    if (CHECK(folder_make("schema")) && CHECK(document_parse(&schema, check_read("samples/result.schema.json", NULL)))) {
        c.schema = &schema.json;
        check_note(schema_check(&c, 0, 0, "", 0), __FILE__, __LINE__, "%s: %s", c.where, c.what);
        test_files(program);
        test_served_files(program);
        test_partial(program);
        test_knobs(program);
        test_gpu_files();
    }
    document_free(&schema);
    remove_folder(folder);
    return check_done("test_schema");
}
