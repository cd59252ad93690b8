/* load_check.c: does the summary in a trial's file agree with its requests? */
#include "load/load_check.h"

#include "base/console.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Other compilers and libraries may round the last digits of a percentile or an interval differently. */
static const double SAME_WITHIN = 1e-6;

static int is_same(double left, double right) {
    if (!isfinite(left) || !isfinite(right)) return isfinite(left) == isfinite(right);
    return fabs(left - right) <= SAME_WITHIN * fmax(1, fmax(fabs(left), fabs(right)));
}
static const char *number_text(double number, char out[32]) {
    if (isfinite(number)) snprintf(out, 32, "%.9g", number);
    else snprintf(out, 32, "null");
    return out;
}
/* Compares two values of one name, and lists and objects member by member. */
static int check_value(const char *path, const char *name, const vp_json *file, uint32_t left, const vp_json *again,
                       uint32_t right) {
    char texts[2][32], inner[200];
    if (node_is(file, left, VP_JSON_OBJECT)) {
        for (uint32_t key = left + 1; key < file->nodes[left].end; key = file->nodes[key + 1].end) {
            char *word = node_text(file, key);
            const uint32_t other = word ? vp_json_get(again, right, word) : VP_JSON_NONE;
            int code = 0;
            snprintf(inner, sizeof inner, "%.120s.%.60s", name, word ? word : "");
            if (other != VP_JSON_NONE)
                code = check_value(path, inner, file, key + 1, again, other);
            free(word);
            if (code) return code;
        }
        return 0;
    }
    if (node_is(file, left, VP_JSON_ARRAY) && node_is(again, right, VP_JSON_ARRAY)) {
        for (uint32_t i = 0; i < file->nodes[left].count; i++) {
            const int code = check_value(path, name, file, vp_json_at(file, left, i), again,
                                         vp_json_at(again, right, i));
            if (code) return code;
        }
        return 0;
    }
    if (is_same(node_number(file, left), node_number(again, right))) return 0;
    return complain(EXIT_INPUT, "%s: %s is %s, but its requests give %s: the file was changed after it was written",
                    path, name, number_text(node_number(file, left), texts[0]),
                    number_text(node_number(again, right), texts[1]));
}
int load_check_summary(const char *path, const vp_json *json, uint32_t summary, const vp_json *computed) {
    return check_value(path, "summary", json, summary, computed, 0);
}
