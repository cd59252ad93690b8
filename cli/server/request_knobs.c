/* request_knobs.c: members of the request body that the user sets: --request_knob PATH=V1,V2,... */
#include "server/request_knobs.h"

#include "base/console.h"
#include "base/json.h"

enum { COMBINATIONS_MAX = 100000 };

/* The length of the first value, up to a comma outside brackets, braces and quotes. *is_open: it ends inside them. */
static size_t value_bytes(const char *text, int *is_open) {
    size_t depth = 0, i = 0;
    int in_quotes = 0;
    for (; text[i] && (depth || in_quotes || text[i] != ','); i++) {
        if (in_quotes && text[i] == '\\' && text[i + 1]) i++;
        else if (text[i] == '"') in_quotes = !in_quotes;
        else if (in_quotes) continue;
        else if (text[i] == '[' || text[i] == '{') depth++;
        else if ((text[i] == ']' || text[i] == '}') && depth) depth--;
    }
    *is_open = depth || in_quotes;
    return i;
}
static char *json_of_value(const char *value) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    const int is_json = parse_json(&parsed, value, strlen(value), NULL) == VP_OK;
    free(parsed.nodes);
    if (is_json) return copy_text(value, strlen(value));
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_string(&writer, value);
    vp_json_finish(&writer);
    return text.data;
}
static const char *option_of(const struct request_knobs *knobs) {
    return knobs->option ? knobs->option : "request_knob";
}
static int knob_add_values(const char *option, struct request_knob *knob, const char *text) {
    for (;;) {
        int is_open;
        const size_t bytes = value_bytes(text, &is_open);
        char *word = copy_text(text, bytes), *value;
        text_list_take(&knob->words, word);
        if (is_open)
            return complain(EXIT_USAGE, "--%s %.200s: a bracket or quote is not closed: %.200s", option, knob->path,
                            word);
        if (!bytes) return complain(EXIT_USAGE, "--%s %.200s: a value is empty (use \"\" for the empty string)", option,
                                    knob->path);
        value = json_of_value(word);
        if (text_list_has(&knob->values, value)) {
            free(value);
            return complain(EXIT_USAGE, "--%s %.200s: %.200s is listed twice", option, knob->path, word);
        }
        text_list_take(&knob->values, value);
        if (!text[bytes]) return 0;
        text += bytes + 1;
    }
}
int knobs_add(struct request_knobs *knobs, const char *text) {
    const char *equal = strchr(text, '=');
    if (!equal || equal == text)
        return complain(EXIT_USAGE,
                        "--%s \"%.200s\": expected %s", option_of(knobs), text,
                        knobs->option ? "NAME=V1,V2" : "PATH=VALUE, like mm_processor_kwargs.max_pixels=501760");
    for (size_t i = 0; i < knobs->count; i++)
        if (strlen(knobs->items[i].path) == (size_t)(equal - text)
            && !strncmp(knobs->items[i].path, text, (size_t)(equal - text)))
            return complain(EXIT_USAGE, "--%s %.200s is given twice", option_of(knobs), knobs->items[i].path);
    knobs->items = resize(knobs->items, knobs->count + 1, sizeof *knobs->items);
    struct request_knob *knob = &knobs->items[knobs->count++];
    memset(knob, 0, sizeof *knob);
    knob->path = copy_text(text, (size_t)(equal - text));
    int code = knob_add_values(option_of(knobs), knob, equal + 1);
    if (!code && knobs_combinations(knobs) > COMBINATIONS_MAX)
        code = complain(EXIT_USAGE, "--%s: more than %d combinations", option_of(knobs), COMBINATIONS_MAX);
    return code;
}
int knobs_add_all(const struct option_value *list, struct request_knobs *knobs) {
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) code = knobs_add(knobs, list->items[i]);
    return code;
}
void knobs_free(struct request_knobs *knobs) {
    for (size_t i = 0; i < knobs->count; i++) {
        free(knobs->items[i].path);
        text_list_free(&knobs->items[i].values);
        text_list_free(&knobs->items[i].words);
    }
    free(knobs->items);
    memset(knobs, 0, sizeof *knobs);
}
size_t knobs_combinations(const struct request_knobs *knobs) {
    size_t count = 1;
    for (size_t i = 0; i < knobs->count; i++) count *= knobs->items[i].values.count;
    return count;
}
/* The index of a knob's value in a combination; *index keeps the part for the previous knobs. */
static size_t value_index(const struct request_knob *knob, size_t *index) {
    const size_t value = *index % knob->values.count;
    *index /= knob->values.count;
    return value;
}
void knobs_combination(const struct request_knobs *knobs, size_t index, vp_chat_knob *out) {
    for (size_t i = knobs->count; i-- > 0;) {
        out[i].path = knobs->items[i].path;
        out[i].value = knobs->items[i].values.items[value_index(&knobs->items[i], &index)];
    }
}
size_t knobs_image_last(vp_chat_knob *knobs, size_t count) {
    static const char image[] = "image_url.";
    vp_chat_knob *all = resize(NULL, count + 1, sizeof *all);
    size_t placed = 0, before = 0;
    if (count) memcpy(all, knobs, count * sizeof *all);
    for (int of_images = 0; of_images < 2; of_images++) {
        for (size_t i = 0; i < count; i++)
            if ((strncmp(all[i].path, image, strlen(image)) == 0) == of_images) knobs[placed++] = all[i];
        if (!of_images) before = placed;
    }
    free(all);
    return before;
}
static const char *end_of_path(const char *path) { return strrchr(path, '.') ? strrchr(path, '.') + 1 : path; }
static const char *knob_name(const struct request_knobs *knobs, size_t which) {
    const char *end = end_of_path(knobs->items[which].path);
    for (size_t i = 0; i < knobs->count; i++)
        if (i != which && !strcmp(end_of_path(knobs->items[i].path), end)) return knobs->items[which].path;
    return end;
}
void knobs_words(const struct request_knobs *knobs, size_t index, struct text_buffer *out) {
    size_t *values = resize(NULL, knobs->count + 1, sizeof *values);
    for (size_t i = knobs->count; i-- > 0;) values[i] = value_index(&knobs->items[i], &index);
    for (size_t i = 0; i < knobs->count; i++)
        text_add_format(out, "%s%s=%s", i ? " " : "", knob_name(knobs, i), knobs->items[i].words.items[values[i]]);
    free(values);
}
void put_knobs(vp_json_writer *writer, const vp_chat_knob *knobs, size_t count) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    PUT(writer, KEY_OBJECT("request_knobs"));
    for (size_t i = 0; i < count; i++) {
        vp_json_key(writer, knobs[i].path);
        if (parse_json(&parsed, knobs[i].value, strlen(knobs[i].value), NULL) == VP_OK)
            json_node(writer, &parsed.json, 0);
        else vp_json_null(writer);
    }
    vp_json_end_object(writer);
    free(parsed.nodes);
}
