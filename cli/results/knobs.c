/* knobs.c: the knobs of a configuration, one row per knob. */
#include "results/knobs.h"

#include "vlmprof_config.h"

#define KNOB_MEMBERS(id, key_, words_, sweep, run, ...) {.key = key_, .words = words_, __VA_ARGS__},
static struct knob rows[KNOB_COUNT] = {KNOB_ROWS(KNOB_MEMBERS)};
const struct knob *const KNOBS = rows;
/* The values of files' own knobs in the order of first sight. They live as long as the process, like their rows. */
static struct text_list own_values[KNOB_OWN_MOST];

/* The last part of a path "a.b.c", or the whole path if another row has that name. */
static const char *last_part(const char *path) {
    const char *end = strrchr(path, '.') && strrchr(path, '.')[1] ? strrchr(path, '.') + 1 : path;
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (rows[knob].axis && !strcmp(rows[knob].axis, end)) return path;
    return end;
}
int knob_own(const char *name, const char *unit) {
    int knob = 0;
    while (knob < KNOB_OWN && !(rows[knob].in_knobs && !strcmp(rows[knob].key, name))) knob++;
    while (knob >= KNOB_OWN && knob < KNOB_COUNT && rows[knob].key && strcmp(rows[knob].key, name)) knob++;
    if (knob == KNOB_COUNT) return -1;
    struct knob *row = &rows[knob];
    if (!row->key) {
        struct text_buffer prefix = {NULL, 0, 0};
        row->axis = last_part(name);
        row->axis = copy_text(row->axis, strlen(row->axis));
        text_add_format(&prefix, "%s=", row->axis);
        row->in_setting = prefix.data;
        row->key = row->axis_key = row->words = copy_text(name, strlen(name));
        row->type = KNOB_IS_JSON;
        row->only_varied = 1;
    }
    if (unit && !row->unit) row->unit = copy_text(unit, strlen(unit));
    return knob;
}

int knob_is_own(int knob) { return knob >= KNOB_OWN || rows[knob].in_knobs; }
void knob_own_forget(void) {
    for (int knob = KNOB_OWN; knob < KNOB_COUNT && rows[knob].key; knob++) {
        char *const texts[] = {(char *)(size_t)rows[knob].axis, (char *)(size_t)rows[knob].in_setting,
                               (char *)(size_t)rows[knob].key, (char *)(size_t)rows[knob].unit};
        for (int i = 0; i < 4; i++) free(texts[i]);
        memset(&rows[knob], 0, sizeof rows[knob]);
        text_list_free(&own_values[knob - KNOB_OWN]);
    }
}
void knob_values_free(struct knob_values *values) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        free(values->of[knob].text);
        free(values->of[knob].list);
    }
    memset(values, 0, sizeof *values);
}
void knob_set_number(struct knob_values *values, int knob, int64_t number) {
    values->of[knob].is_set = 1;
    values->of[knob].number = number;
}
void knob_set_text(struct knob_values *values, int knob, const char *text) {
    char *copy = text ? copy_text(text, strlen(text)) : NULL;
    free(values->of[knob].text);
    values->of[knob].text = copy;
    values->of[knob].is_set = copy != NULL;
    if (copy && knob >= KNOB_OWN && !text_list_has(&own_values[knob - KNOB_OWN], copy))
        text_list_copy(&own_values[knob - KNOB_OWN], copy);
}
void knob_set_list(struct knob_values *values, int knob, const int32_t *list, int32_t count) {
    int32_t *copy = resize(NULL, (size_t)count + 1, sizeof *copy);
    memcpy(copy, list, (size_t)count * sizeof *copy);
    free(values->of[knob].list);
    values->of[knob].list = copy;
    values->of[knob].list_count = count;
    knob_set_number(values, knob, count);
}
void knob_set_of_model(struct knob_values *values, int knob, const vp_model_config *config) {
    int32_t number;
    if (!KNOBS[knob].in_config) return;
    memcpy(&number, (const char *)config + KNOBS[knob].in_config, sizeof number);
    knob_set_number(values, knob, number);
}
void knob_copy_servers(struct knob_values *values, const struct knob_values *from) {
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (KNOBS[knob].of == KNOB_OF_SERVERS || knob_is_own(knob)) knob_set_text(values, knob, knob_text(from, knob));
}
int knob_is_set(const struct knob_values *values, int knob) { return values->of[knob].is_set; }
const char *knob_text(const struct knob_values *values, int knob) { return values->of[knob].text; }
int64_t knob_number(const struct knob_values *values, int knob) { return values->of[knob].number; }
int64_t number_of_knob(const struct knob_values *values, int knob) {
    return knob_is_set(values, knob) ? knob_number(values, knob) : -1;
}
int knobs_are_served(const struct knob_values *values) { return knob_is_set(values, KNOB_ENDPOINT); }
int knobs_are_loaded(const struct knob_values *values) {
    return knob_is_set(values, KNOB_RATE) || knob_is_set(values, KNOB_CONCURRENCY);
}
int knobs_are_dense(const struct knob_values *values) {
    return knob_is_set(values, KNOB_TOP_K) && !knob_number(values, KNOB_TOP_K);
}
const vp_tier *knob_tier(const struct knob_values *values) {
    const char *name = knob_text(values, KNOB_TIER);
    return name ? vp_tier_find(name) : NULL;
}

/* ---- axes */
int knob_is_axis(int knob) { return KNOBS[knob].axis_key != NULL; }
int64_t knob_size_rank(const struct knob_values *values) {
    const char *tier = knob_text(values, KNOB_TIER);
    if (tier) {
        for (int32_t i = 0; vp_tier_at(i); i++) if (!strcmp(tier, vp_tier_at(i)->name)) return i;
        return 100;
    }
    if (knob_is_set(values, KNOB_IMAGE)) return knob_number(values, KNOB_IMAGE);
    return knob_is_set(values, KNOB_TOKENS) ? 1000 + knob_number(values, KNOB_TOKENS) : 999;
}
static int order_of(int64_t left, int64_t right) { return left < right ? -1 : left > right; }
static int compare_texts(const char *left, const char *right) { return strcmp(left ? left : "", right ? right : ""); }
static const char *size_name(const struct knob_values *values) {
    const char *tier = knob_text(values, KNOB_TIER);
    return tier ? tier : knob_text(values, KNOB_IMAGE);
}
int weight_bits(const char *name) {
    static const struct { const char *name; int bits; } types[] = {
        {"int4", 4}, {"int8", 8}, {"bf16", 16}, {"fp32", 32}};
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name)) return types[i].bits;
    return name != NULL;
}
/* A file's own values: numbers before others, those as first seen. */
static int compare_own(int knob, const char *left, const char *right) {
    static const struct text_list none = {NULL, 0};
    const struct text_list *seen = knob < KNOB_OWN ? &none : &own_values[knob - KNOB_OWN];
    double one, other;
    const int is_number = vp_number_parse(left, strlen(left), &one) == VP_OK,
              is_other_number = vp_number_parse(right, strlen(right), &other) == VP_OK;
    if (is_number && is_other_number) return one < other ? -1 : one > other;
    if (is_number || is_other_number) return is_number ? -1 : 1;
    for (size_t i = 0; i < seen->count && strcmp(left, right) != 0; i++)
        if (!strcmp(seen->items[i], left) || !strcmp(seen->items[i], right))
            return strcmp(seen->items[i], left) ? 1 : -1;
    return 0;
}
int knob_compare(int axis, const struct knob_values *left, const struct knob_values *right) {
    const struct knob_value *one = &left->of[axis], *other = &right->of[axis];
    int order;
    if (axis == KNOB_SIZE) {
        order = order_of(knob_size_rank(left), knob_size_rank(right));
        return order ? order : compare_texts(size_name(left), size_name(right));
    }
    if (axis == KNOB_WEIGHTS) {
        const int bits = weight_bits(one->text);
        order = order_of(bits, weight_bits(other->text));
        return order || bits != 1 ? order : compare_texts(one->text, other->text);
    }
    order = order_of(one->is_set, other->is_set);
    if (KNOBS[axis].type == KNOB_IS_JSON && one->is_set && other->is_set)
        return compare_own(axis, one->text, other->text);
    if (!order) order = order_of(one->number, other->number);
    return order ? order : compare_texts(one->text, other->text);
}
int knobs_of_engine_are_same(const struct knob_values *left, const struct knob_values *right) {
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (KNOBS[knob].of == KNOB_OF_ENGINE && knob_compare(knob, left, right)) return 0;
    return 1;
}
static int are_same(const struct knob_value *one, const struct knob_value *other) {
    return one->is_set == other->is_set && one->number == other->number && !compare_texts(one->text, other->text)
           && one->list_count == other->list_count
           && (!one->list_count || !memcmp(one->list, other->list, (size_t)one->list_count * sizeof *one->list));
}
int knob_values_are_same(const struct knob_values *left, const struct knob_values *right) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const struct knob_value *one = &left->of[knob], *other = &right->of[knob];
        if (KNOBS[knob].of == KNOB_OF_SWEEP || (knob == KNOB_WEIGHTS && (!one->is_set || !other->is_set))) continue;
        if (!are_same(one, other)) return 0;
    }
    return 1;
}
void knob_keep_common(struct knob_values *values, const struct knob_values *of, int is_first) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        struct knob_value *value = &values->of[knob];
        const struct knob_value *other = &of->of[knob];
        if (is_first) {
            if (other->list) knob_set_list(values, knob, other->list, other->list_count);
            if (other->text) knob_set_text(values, knob, other->text);
            value->is_set = other->is_set;
            value->number = other->number;
        } else if (!are_same(value, other)) {
            FREE_ALL(value->text, value->list);
            memset(value, 0, sizeof *value);
            if (KNOBS[knob].of == KNOB_OF_SERVERS)
                knob_set_text(values, knob, KNOBS[knob].type == KNOB_IS_JSON ? "{}" : "several");
        }
    }
    if (of->max_crops > values->max_crops) values->max_crops = of->max_crops;
}

/* ---- texts */
const char *knob_size_text(const struct knob_values *values, char out[KNOB_TEXT_BYTES]) {
    out[0] = 0;
    if (knob_is_set(values, KNOB_TIER)) snprintf(out, KNOB_TEXT_BYTES, "%.30s", knob_text(values, KNOB_TIER));
    else if (knob_is_set(values, KNOB_TOKENS))
        snprintf(out, KNOB_TEXT_BYTES, "%lld tokens", (long long)knob_number(values, KNOB_TOKENS));
    else if (knob_is_set(values, KNOB_IMAGE))
        snprintf(out, KNOB_TEXT_BYTES, "%.30s %lld", knob_text(values, KNOB_IMAGE),
                 (long long)knob_number(values, KNOB_IMAGE));
    return out;
}
/* Returns 1 if a table names the knob. A model without experts has no top_k. */
static int is_in_setting(const struct knob_values *values, int knob, uint32_t varied) {
    const int foreign = knobs_are_served(values) ? KNOB_OF_ENGINE : KNOB_OF_SERVERS;
    if (!KNOBS[knob].in_setting || (knob == KNOB_TOP_K && knobs_are_dense(values)) || (int)KNOBS[knob].of == foreign)
        return 0;
    if (knob_is_set(values, knob)) return !KNOBS[knob].only_varied || (varied >> knob & 1);
    return KNOBS[knob].only_varied && (varied >> knob & 1) && knob < KNOB_EACH_END; /* "weights?" */
}
const char *knob_language_text(const struct knob_values *values, uint32_t varied, char out[KNOB_TEXT_BYTES]) {
    size_t used = 0;
    out[0] = 0;
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        char value[KNOB_TEXT_BYTES];
        if (!is_in_setting(values, knob, varied)) continue;
        if (knob_is_set(values, knob)) knob_value_text(values, knob, value);
        else snprintf(value, sizeof value, "%s?", KNOBS[knob].axis);
        used += (size_t)snprintf(out + used, KNOB_TEXT_BYTES - used, "%s%s%.80s", used ? " " : "",
                                 KNOBS[knob].in_setting, value);
        if (used >= KNOB_TEXT_BYTES) break;
    }
    return out;
}
const char *knob_value_text(const struct knob_values *values, int knob, char out[KNOB_TEXT_BYTES]) {
    const char *text = knob_text(values, knob);
    if (!knob_is_set(values, knob)) snprintf(out, KNOB_TEXT_BYTES, "not said");
    else if (KNOBS[knob].type == KNOB_IS_NUMBER)
        snprintf(out, KNOB_TEXT_BYTES, "%lld", (long long)knob_number(values, knob));
    else if (KNOBS[knob].type == KNOB_IS_JSON && *text == '"')
        snprintf(out, KNOB_TEXT_BYTES, "%.*s", (int)(strlen(text) < 102 ? strlen(text) - 2 : 100), text + 1);
    else if (knob == KNOB_ENDPOINT && strstr(text, "://"))
        snprintf(out, KNOB_TEXT_BYTES, "%.100s", strstr(text, "://") + 3);
    else snprintf(out, KNOB_TEXT_BYTES, "%.100s", text);
    return out;
}
const char *knob_own_json(const struct knob_values *values, int knob, char out[KNOB_TEXT_BYTES]) {
    if (!knob_is_set(values, knob)) return NULL;
    if (KNOBS[knob].type == KNOB_IS_JSON) return knob_text(values, knob);
    if (KNOBS[knob].type == KNOB_IS_TEXT) snprintf(out, KNOB_TEXT_BYTES, "\"%.100s\"", knob_text(values, knob));
    else snprintf(out, KNOB_TEXT_BYTES, "%lld", (long long)knob_number(values, knob));
    return out;
}
int knob_is_file_name(const char *name) { return strstr(name, "_imgsize") || !strncmp(name, "policy-", 7); }
void knob_add_name(struct text_buffer *name, const struct knob_values *values, int crops, uint32_t named) {
    const int is_server = knobs_are_served(values);
    char part[KNOB_TEXT_BYTES] = "_imgsizeasis";
    if (knob_is_set(values, KNOB_TIER) && is_server)
        snprintf(part, sizeof part, "_imgsizetier-%s", knob_text(values, KNOB_TIER));
    else if (knob_is_set(values, KNOB_TIER))
        snprintf(part, sizeof part, "_imgsizetier-%s_crops%d", knob_text(values, KNOB_TIER), crops);
    else if (knob_is_set(values, KNOB_TOKENS))
        snprintf(part, sizeof part, "_imgsizetokens%lld", (long long)knob_number(values, KNOB_TOKENS));
    else if (knob_is_set(values, KNOB_IMAGE))
        snprintf(part, sizeof part, "_imgsize%.40s%lld", knob_text(values, KNOB_IMAGE),
                 (long long)knob_number(values, KNOB_IMAGE));
    text_add_string(name, part);
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        char value[KNOB_TEXT_BYTES];
        if (!KNOBS[knob].in_name || !knob_is_set(values, knob)) continue;
        if (KNOBS[knob].only_varied && !(named >> knob & 1)) continue;
        snprintf(part, sizeof part, "_%s%.100s", KNOBS[knob].in_name, knob_value_text(values, knob, value));
        for (char *at = part; *at; at++) if (strchr(":=,/", *at)) *at = '-'; /* (from values like METHOD:KEY=VALUE) */
        text_add_string(name, part);
    }
}

/* ---- JSON */
void knob_put(vp_json_writer *writer, int knob, const struct knob_values *values) {
    const struct knob_value *value = &values->of[knob];
    vp_json_key(writer, KNOBS[knob].key);
    if (!value->is_set) vp_json_null(writer);
    else if (KNOBS[knob].type == KNOB_IS_NUMBER) vp_json_int(writer, value->number);
    else if (KNOBS[knob].type == KNOB_IS_JSON) vp_json_raw(writer, value->text, strlen(value->text));
    else json_lossy(writer, value->text);
}
void knob_put_more(vp_json_writer *writer, int knob, const struct knob_values *values) {
    const struct knob_value *value = &values->of[knob];
    const char *key = KNOBS[knob].number_key;
    if (key && value->is_set) put_int(writer, key, value->number);
    else if (key) put_null(writer, key);
    if ((key = KNOBS[knob].list_key) == NULL) return;
    if (value->is_set) put_ints(writer, key, value->list, value->list_count); else put_null(writer, key);
}
void knob_put_own(vp_json_writer *writer, const struct knob_values *values) {
    int count = 0;
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (!knob_is_set(values, knob) || !knob_is_own(knob)) continue;
        if (!count++) PUT(writer, KEY_OBJECT("knobs"));
        knob_put(writer, knob, values);
    }
    if (count) vp_json_end_object(writer);
}
void knob_put_variant(vp_json_writer *writer, const struct knob_values *values) {
    vp_json_begin_object(writer);
    for (int knob = 0; knob < KNOB_COUNT; knob++)
        if (KNOBS[knob].of == KNOB_OF_SERVERS) knob_put(writer, knob, values);
    vp_json_end_object(writer);
}
/* Returns 1 if journals store the knob as a member of the configuration: all of them, or only some. */
static int is_kept(int knob, int in_all) {
    return (KNOBS[knob].of == KNOB_OF_IMAGES || KNOBS[knob].of == KNOB_OF_ENGINE)
           && !(KNOBS[knob].always & KNOB_IN_JOURNAL) == !in_all;
}
/* For a server, the engine's numbers are 0 and its lists are empty. */
void knob_put_journal(vp_json_writer *writer, const struct knob_values *values) {
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (!is_kept(knob, 1)) continue;
        if (KNOBS[knob].of == KNOB_OF_ENGINE && knobs_are_served(values)) {
            put_int(writer, KNOBS[knob].key, 0);
            if (KNOBS[knob].list_key) put_ints(writer, KNOBS[knob].list_key, NULL, 0);
            continue;
        }
        knob_put(writer, knob, values);
        knob_put_more(writer, knob, values);
        if (knob != KNOB_TOKENS) continue;
        vp_json_key(writer, "max_crops");
        if (values->max_crops) vp_json_int(writer, values->max_crops); else vp_json_null(writer);
    }
    for (int knob = KNOB_COUNT; knob-- > 0;) {
        if (!is_kept(knob, 0) || !knob_is_set(values, knob)) continue;
        knob_put(writer, knob, values);
        knob_put_more(writer, knob, values);
    }
    knob_put_own(writer, values);
    if (!knobs_are_served(values)) return;
    vp_json_key(writer, "variant");
    knob_put_variant(writer, values);
}
static int is_text(const vp_json *json, uint32_t node) {
    char *text = node_text(json, node);
    free(text);
    return text != NULL;
}
static int is_integer(const vp_json *json, uint32_t node, int64_t least, int64_t most) {
    int64_t value = 0;
    return vp_json_to_int(json, node, &value) == VP_OK && value >= least && value <= most;
}
/* Returns 1 if the object has the knob's members in the form that result files use. or_null: the knob may be null. */
static int has_knob(const vp_json *json, uint32_t object, int knob, int or_null, int64_t block_count) {
    const struct knob *row = &KNOBS[knob];
    const uint32_t node = vp_json_get(json, object, row->key);
    const uint32_t number = row->number_key ? vp_json_get(json, object, row->number_key) : VP_JSON_NONE;
    uint32_t list;
    if (or_null && node_is(json, node, VP_JSON_NULL)) return 1;
    if (row->type == KNOB_IS_NUMBER ? !is_integer(json, node, row->least, INT32_MAX)
        : row->type == KNOB_IS_TEXT ? !is_text(json, node)
                                    : !node_is(json, node, VP_JSON_OBJECT))
        return 0;
    if (row->number_key && !is_integer(json, number, row->least, INT32_MAX)) return 0;
    if (!row->list_key) return 1;
    list = vp_json_get(json, object, row->list_key);
    if (!node_is(json, list, VP_JSON_ARRAY) || json->nodes[list].count != node_int(json, object, row->key, -1))
        return 0;
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end)
        if (!is_integer(json, i, 0, block_count - 1)) return 0;
    return 1;
}
static uint32_t members_of(int knob) { return 1 + (KNOBS[knob].number_key != NULL) + (KNOBS[knob].list_key != NULL); }
/* Returns 1 if the object contains exactly endpoint, model and members of the request. */
static int is_variant(const vp_json *json, uint32_t object) {
    uint32_t members = 0;
    if (!node_is(json, object, VP_JSON_OBJECT)) return 0;
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (KNOBS[knob].of != KNOB_OF_SERVERS) continue;
        if (!has_knob(json, object, knob, 0, 0)) return 0;
        members += members_of(knob);
    }
    return json->nodes[object].count == members
           && json->nodes[vp_json_get(json, object, KNOBS[KNOB_REQUEST].key)].count <= KNOB_MEMBERS_MAX;
}
/* Returns 1 if the member "knobs" has only numbers, texts and truths, or is missing. */
static int is_own(const vp_json *json, uint32_t own) {
    if (own == VP_JSON_NONE) return 1;
    if (!node_is(json, own, VP_JSON_OBJECT) || json->nodes[own].count > KNOB_OWN_MOST) return 0;
    for (uint32_t key = own + 1; key < json->nodes[own].end; key = json->nodes[key + 1].end)
        if (json->nodes[key + 1].type == VP_JSON_OBJECT || json->nodes[key + 1].type == VP_JSON_ARRAY
            || json->nodes[key + 1].type == VP_JSON_NULL)
            return 0;
    return 1;
}
int knob_is_journal(const vp_json *json, uint32_t object, uint32_t others, int64_t block_count) {
    const uint32_t variant = vp_json_get(json, object, "variant"), crops = vp_json_get(json, object, "max_crops"),
                   own = vp_json_get(json, object, "knobs");
    const int is_server = variant != VP_JSON_NONE;
    uint32_t members = others + 1 + (uint32_t)is_server + (own != VP_JSON_NONE), sizes = 0;
    char *tier;
    int good;
    if (!node_is(json, object, VP_JSON_OBJECT) || is_server != (block_count == 0)
        || (is_server && !is_variant(json, variant)) || !is_own(json, own)
        || !(node_is(json, crops, VP_JSON_NULL) || is_integer(json, crops, 0, INT32_MAX)))
        return 0;
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const int in_all = is_kept(knob, 1), is_there = vp_json_get(json, object, KNOBS[knob].key) != VP_JSON_NONE;
        if (!in_all && !is_kept(knob, 0)) continue;
        if (!in_all && (!is_there || is_server)) continue;
        /* those of a policy differ */
        const int can_be_null = in_all && (KNOBS[knob].of == KNOB_OF_IMAGES || (own != VP_JSON_NONE && !is_server));
        if (!has_knob(json, object, knob, can_be_null, block_count)) return 0;
        members += members_of(knob);
        sizes += KNOBS[knob].of == KNOB_OF_IMAGES && has_value(json, object, KNOBS[knob].key);
    }
    tier = node_text(json, vp_json_get(json, object, KNOBS[KNOB_TIER].key));
    good = !tier || vp_tier_find(tier) != NULL;
    free(tier);
    /* one image size; none: images unchanged */
    return good && sizes <= 1 && json->nodes[object].count == members;
}
static void read_knob(const vp_json *json, uint32_t object, int knob, struct knob_values *values) {
    const struct knob *row = &KNOBS[knob];
    const uint32_t node = vp_json_get(json, object, row->key),
                   list = row->list_key ? vp_json_get(json, object, row->list_key) : VP_JSON_NONE;
    struct knob_value *value = &values->of[knob];
    int64_t number = 0;
    if (node == VP_JSON_NONE || node_is(json, node, VP_JSON_NULL)) return;
    value->is_set = 1;
    if (row->type == KNOB_IS_NUMBER) value->number = node_int(json, object, row->key, 0);
    else value->text = row->type == KNOB_IS_TEXT ? node_text(json, node) : json_text(json, node);
    if (row->number_key) value->number = node_int(json, object, row->number_key, 0);
    if (list == VP_JSON_NONE) return;
    value->list = resize(NULL, (size_t)json->nodes[list].count + 1, sizeof *value->list);
    for (uint32_t i = list + 1; i < json->nodes[list].end; i = json->nodes[i].end)
        value->list[value->list_count++] = vp_json_to_int(json, i, &number) == VP_OK ? (int32_t)number : -1;
}
void knob_read_journal(const vp_json *json, uint32_t object, uint32_t options, struct knob_values *values) {
    const uint32_t variant = vp_json_get(json, object, "variant"), own = vp_json_get(json, object, "knobs");
    memset(values, 0, sizeof *values);
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (KNOBS[knob].of == KNOB_OF_SERVERS) read_knob(json, variant, knob, values);
        else if (KNOBS[knob].of == KNOB_OF_IMAGES || (KNOBS[knob].of == KNOB_OF_ENGINE && variant == VP_JSON_NONE))
            read_knob(json, object, knob, values);
    }
    /* older heads have the weights of all configurations in their options */
    if (!knob_is_set(values, KNOB_WEIGHTS) && variant == VP_JSON_NONE && own == VP_JSON_NONE)
        read_knob(json, options, KNOB_WEIGHTS, values);
    values->max_crops = node_int(json, object, "max_crops", 0);
    for (uint32_t key = own + 1; own != VP_JSON_NONE && key < json->nodes[own].end; key = json->nodes[key + 1].end) {
        char *name = node_text(json, key), *value = json_text(json, key + 1);
        const int knob = name ? knob_own(name, NULL) : -1;
        if (knob >= 0) knob_set_text(values, knob, value);
        FREE_ALL(name, value);
    }
}
void knob_put_plan(vp_json_writer *writer, const struct knob_values *values) {
    const int is_server = knobs_are_served(values);
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        if (KNOBS[knob].of == KNOB_OF_SERVERS || (KNOBS[knob].of == KNOB_OF_ENGINE && is_server)) continue;
        if (!knob_is_set(values, knob) && !(KNOBS[knob].always & KNOB_IN_REPORTS)) continue;
        knob_put(writer, knob, values);
        knob_put_more(writer, knob, values);
    }
    if (!is_server) return;
    vp_json_key(writer, "variant");
    knob_put_variant(writer, values);
}
