/* result_values.c: lists the knobs and values in result files, for a user who asked for ones that they lack. */
#include "base/console.h"
#include "base/options.h"
#include "results/result_read.h"

/* Adds " V1 V2": the values of a knob in the files, each once. */
static void add_knob_values(struct text_buffer *out, const struct results *results, int knob) {
    struct text_list values = {NULL, 0};
    for (size_t i = 0, k; i < results->count; i++) {
        const int of = KNOBS[knob].of, is_engine = of == KNOB_OF_ENGINE || of == KNOB_OF_SWEEP;
        char value[KNOB_TEXT_BYTES];
        if (!knob_is_set(&results->files[i].knobs, knob) || (is_engine && results->files[i].is_served)) continue;
        knob_value_text(&results->files[i].knobs, knob, value);
        for (k = 0; k < values.count && strcmp(values.items[k], value) != 0;) k++;
        if (k < values.count || !strcmp(value, "{}")) continue;
        text_add_format(out, " %.60s", value);
        text_list_copy(&values, value);
    }
    text_list_free(&values);
}
int results_complain_of_value(const struct results *results, const char *option, const char *text, size_t bytes,
                              int knob) {
    struct text_buffer values = {NULL, 0, 0}, near = {NULL, 0, 0};
    char *name = copy_text(text, bytes);
    if (knob < KNOB_COUNT) add_knob_values(&values, results, knob);
    const int has_values = values.bytes > 0;
    for (int i = 0; i < KNOB_COUNT && !has_values; i++) {
        struct text_buffer one = {NULL, 0, 0};
        if (KNOBS[i].key) add_knob_values(&one, results, i);
        if (!one.bytes) continue;
        add_near_word(&near, name, "", KNOBS[i].key);
        text_add_format(&values, "%s %s =%s", values.bytes ? ";" : "", KNOBS[i].key, one.data);
        free(one.data);
    }
    complain(EXIT_USAGE, "%s %.120s: %s%s%s:%.400s", option, text,
             has_values ? "the values are" : "no file has this knob", near.bytes ? near.data : "",
             has_values ? "" : near.bytes ? "? the knobs are" : "; the knobs are",
             values.bytes ? values.data : " none");
    FREE_ALL(values.data, near.data, name);
    return EXIT_USAGE;
}
