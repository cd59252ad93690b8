/* choices.c: reads files of choices. */
#include "results/choices.h"

#include "base/console.h"
#include "base/files.h"

#include <errno.h>

#define OVERHEAD_MS_MOST 1e8 /* a day */

/* Returns 1 if the knob has the value of the node. */
static int has_value_of(const struct knob_values *knobs, int knob, const vp_json *json, uint32_t node) {
    char own[KNOB_TEXT_BYTES];
    const char *value;
    char *text;
    int is_equal;
    if (!knob_is_set(knobs, knob)) return node_is(json, node, VP_JSON_NULL);
    if (KNOBS[knob].type == KNOB_IS_NUMBER)
        return node_is(json, node, VP_JSON_NUMBER) && node_number(json, node) == (double)knob_number(knobs, knob);
    value = knob_is_own(knob) ? knob_own_json(knobs, knob, own) : knob_text(knobs, knob);
    text = KNOBS[knob].type == KNOB_IS_TEXT ? node_text(json, node) : json_text(json, node);
    is_equal = text && !strcmp(text, value);
    free(text);
    return is_equal;
}
/* Returns 1 if the line describes the configuration: by "knobs", otherwise by "config", the name of its file.
 * *unknown becomes the key of "knobs" that is not a knob, if there is one. */
static int is_described(const struct choice_config *config, const vp_json *json, uint32_t *unknown) {
    const uint32_t knobs = vp_json_get(json, 0, "knobs"), name = vp_json_get(json, 0, "config");
    if (!node_is(json, knobs, VP_JSON_OBJECT)) return vp_json_equals(json, name, config->file_name);
    for (uint32_t member = 0, at = knobs + 1; member < json->nodes[knobs].count;
         member++, at = json->nodes[at + 1].end) {
        int knob = 0;
        while (knob < KNOB_COUNT && !(KNOBS[knob].key && vp_json_equals(json, at, KNOBS[knob].key))) knob++;
        if (knob == KNOB_COUNT) *unknown = at;
        if (knob == KNOB_COUNT || !has_value_of(config->knobs, knob, json, at + 1)) return 0;
    }
    return 1;
}
/* Reads a line. The search for its sample begins after the one before: files usually keep the order. */
static int read_choice(const vp_json *json, const char *place, size_t *next, struct choices *choices) {
    const uint32_t overhead = vp_json_get(json, 0, "overhead_ms");
    const int is_static = node_is(json, vp_json_get(json, 0, "static"), VP_JSON_TRUE);
    char *id = node_is(json, 0, VP_JSON_OBJECT) ? json_text(json, vp_json_get(json, 0, "id")) : NULL;
    size_t matches = 0, sample = *next, tried = 0;
    uint32_t unknown = VP_JSON_NONE;
    int code;
    if (!id && !is_static)
        return complain(EXIT_INPUT, "%s: expected {\"id\": ID, \"knobs\": {KNOB: VALUE}} or \"config\"", place);
    for (; !is_static && tried < choices->count; tried++, sample++) {
        if (sample >= choices->count) sample = 0;
        if (choices->ids[sample] && !strcmp(choices->ids[sample], id)) break;
    }
    free(id);
    choices->strangers += !is_static && tried == choices->count;
    if (!is_static && tried == choices->count) return 0;
    if (is_static) sample = choices->count;
    if (choices->of[sample] >= 0) return complain(EXIT_INPUT, "%s: an earlier line has the same id", place);
    for (size_t c = 0; c < choices->config_count; c++)
        if (is_described(&choices->configs[c], json, &unknown)) {
            matches++;
            choices->of[sample] = (int32_t)c;
        }
    *next = sample + 1;
    if (has_value(json, 0, "overhead_ms")) choices->overhead_ms[sample] = node_number(json, overhead);
    if (!(choices->overhead_ms[sample] >= 0 && choices->overhead_ms[sample] <= OVERHEAD_MS_MOST))
        return complain(EXIT_INPUT, "%s: overhead_ms: expected a number from 0 to %.0f", place, OVERHEAD_MS_MOST);
    if (matches == 1) return 0;
    if (unknown != VP_JSON_NONE) {
        id = json_text(json, unknown);
        code = complain(EXIT_INPUT, "%s: %.80s is not a knob of these configurations", place, id);
        free(id);
        return code;
    }
    return complain(EXIT_INPUT, "%s: %zu of the %zu configurations match; name one by \"config\", the name of its "
                                "result file, or by \"knobs\"", place, matches, choices->config_count);
}
int choices_read(const char *path, struct choices *choices) {
    struct parsed line = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL, place[LINE_BYTES];
    size_t capacity = 0, bytes, next = 0;
    int64_t number = 0;
    int code = 0;
    FILE *file = fopen(path, "rb");
    choices->of = resize(NULL, choices->count + 1, sizeof *choices->of);
    memset(choices->of, 255, (choices->count + 1) * sizeof *choices->of);
    choices->overhead_ms = zeroed(choices->count + 1, sizeof *choices->overhead_ms);
    if (!file) return complain(EXIT_INPUT, "--choices: %s: %s", path, strerror(errno));
    while (!code && (bytes = line_read(file, &text, &capacity, LINE_BYTES_MOST)) != 0) {
        vp_error error = {VP_OK, -1, "", ""};
        snprintf(place, sizeof place, "%.300s, line %lld", path, (long long)++number);
        if (text[strspn(text, " \t\r\n")] == 0) continue;
        const vp_result result = parse_json(&line, text, bytes, &error);
        code = result != VP_OK ? complain_result(EXIT_INPUT, place, result, &error)
                               : read_choice(&line.json, place, &next, choices);
    }
    if (!code && ferror(file)) code = complain(EXIT_INPUT, "--choices: %s: cannot be read", path);
    fclose(file);
    FREE_ALL(text, line.nodes);
    return code;
}
