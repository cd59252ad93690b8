/* prompt.c: makes the text of a prompt from a record's fields. */
#include "model/prompt.h"

#include "base/json.h"

void prompt_fields_free(struct prompt_fields *fields) {
    FREE_ALL(fields->dataset, fields->style, fields->hint, fields->question_type);
    text_list_free(&fields->questions);
    text_list_free(&fields->options);
    free(fields->places);
}

static vp_result read_member_text(const vp_json *json, const char *key, char **text, vp_error *error) {
    if (!has_value(json, 0, key)) return VP_OK;
    *text = node_text(json, vp_json_get(json, 0, key));
    return *text ? VP_OK : bad_member(error, key, "a string (without \\u0000)");
}
static vp_result read_member_texts(const vp_json *json, const char *key, struct text_list *texts, vp_error *error) {
    uint32_t array = vp_json_get(json, 0, key);
    if (!has_value(json, 0, key)) return VP_OK;
    if (!node_is(json, array, VP_JSON_ARRAY)) return bad_member(error, key, "an array of strings");
    for (uint32_t i = array + 1; i < json->nodes[array].end; i = json->nodes[i].end) {
        char *text = node_text(json, i);
        if (!text) return bad_member(error, key, "an array of strings (without \\u0000)");
        text_list_take(texts, text);
    }
    return VP_OK;
}
static vp_result read_member_index(const vp_json *json, const char *key, int64_t *value, vp_error *error) {
    if (!has_value(json, 0, key)) return VP_OK;
    if (vp_json_to_int(json, vp_json_get(json, 0, key), value) == VP_OK && *value >= 0 && *value <= UINT32_MAX)
        return VP_OK;
    return bad_member(error, key, "a whole number, 0..4294967295");
}

uint32_t image_count_of(const vp_json *json) {
    const uint32_t list = vp_json_get(json, 0, "images");
    if (node_is(json, list, VP_JSON_ARRAY)) return json->nodes[list].count;
    return has_value(json, 0, "image") != 0;
}
/* "content": texts and positions of images, [{"text": ..}, {"image": 0}, ..], with each image once and in order. They
 * make up the question. */
static vp_result read_content(const vp_json *json, struct prompt_fields *fields, vp_error *error) {
    static const char want[] = "a list of {\"text\": \"..\"} and {\"image\": N}, with N from 0 in order, each image "
                               "once, and no \"question\" in the record";
    const uint32_t list = vp_json_get(json, 0, "content"), images = image_count_of(json);
    struct text_buffer question = {NULL, 0, 0};
    uint32_t found = 0;
    int good =
        node_is(json, list, VP_JSON_ARRAY) && !has_value(json, 0, "question") && !has_value(json, 0, "questions");
    fields->places = resize(NULL, (size_t)images + 1, sizeof *fields->places);
    for (uint32_t i = list + 1; good && i < json->nodes[list].end; i = json->nodes[i].end) {
        char *text = node_is(json, i, VP_JSON_OBJECT) ? node_text(json, vp_json_get(json, i, "text")) : NULL;
        int64_t image = -1;
        if (text) text_add_string(&question, text);
        else {
            good = node_is(json, i, VP_JSON_OBJECT) && found < images
                   && vp_json_to_int(json, vp_json_get(json, i, "image"), &image) == VP_OK && image == found;
            if (good) fields->places[found++] = question.bytes;
        }
        free(text);
    }
    text_list_take(&fields->questions, question.data ? question.data : copy_text("", 0));
    return good && found == images ? VP_OK : bad_member(error, "content", want);
}
vp_result read_prompt_fields(const vp_json *json, struct prompt_fields *fields, vp_error *error) {
    const char *const keys[] = {"dataset", "style", "hint", "question_type"};
    char **const texts[] = {&fields->dataset, &fields->style, &fields->hint, &fields->question_type};
    char *origin = NULL;
    vp_result result = VP_OK;
    fields->seed = fields->index = fields->rng_seed = -1;
    for (int i = 0; i < 4 && result == VP_OK; i++) result = read_member_text(json, keys[i], texts[i], error);
    if (result == VP_OK && has_value(json, 0, "questions"))
        result = read_member_texts(json, "questions", &fields->questions, error);
    else if (result == VP_OK && has_value(json, 0, "question")) {
        char *question = NULL;
        result = read_member_text(json, "question", &question, error);
        if (result == VP_OK) text_list_take(&fields->questions, question);
    }
    if (result == VP_OK && has_value(json, 0, "content")) result = read_content(json, fields, error);
    if (result == VP_OK) result = read_member_text(json, "prompt_origin", &origin, error);
    fields->is_asked = origin && strcmp(origin, "none");
    free(origin);
    if (fields->is_asked) { /* nothing is added to its question */
        free(fields->hint);
        fields->hint = NULL;
    } else {
        struct text_list labels = {NULL, 0};
        const char *bad = json_options(json, 0, &fields->options, &labels);
        fields->has_options = has_value(json, 0, "options") || has_value(json, 0, "choices");
        if (result == VP_OK && bad) result = vp_error_set(error, VP_ERR_FORMAT, -1, "", bad);
        text_list_free(&labels);
    }
    if (result == VP_OK) result = read_member_index(json, "seed", &fields->seed, error);
    if (result == VP_OK) result = read_member_index(json, "index", &fields->index, error);
    if (result == VP_OK) result = read_member_index(json, "rng_seed", &fields->rng_seed, error);
    return result;
}

const vp_prompt_dataset *prompt_dataset_of(const struct prompt_fields *fields, const vp_prompt_dataset *fallback) {
    const vp_prompt_dataset *defaults = vp_prompt_dataset_find(fields->dataset);
    if (!defaults) defaults = fallback ? fallback : vp_prompt_dataset_of_style(fields->style);
    /* its own question has priority over the drawn one */
    return defaults && defaults->kind == VP_PROMPT_CAPTION && !fields->dataset && fields->questions.count ? NULL
                                                                                                          : defaults;
}
vp_result build_prompt(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, const char *style,
                       int64_t seed, int64_t index, char **text, vp_prompt_info *info, vp_error *error) {
    size_t needed = 0;
    static const char *const no_options[1] = {NULL}; /* an empty list; NULL would be a missing one */
    int64_t lot = fields->rng_seed;
    if (fields->seed >= 0) seed = fields->seed;
    if (fields->index >= 0) index = fields->index;
    if (lot < 0 || fields->seed >= 0 || fields->index >= 0) lot = seed + index;
    vp_prompt prompt = {.dataset = prompt_dataset_of(fields, fallback),
                        .style = fields->style ? fields->style : style,
                        .hint = fields->hint,
                        .questions = (const char *const *)fields->questions.items,
                        .question_count = fields->questions.count,
                        .options = !fields->has_options    ? NULL
                                   : fields->options.count ? (const char *const *)fields->options.items
                                                           : no_options,
                        .option_count = fields->options.count,
                        .question_type = fields->question_type,
                        .rng_seed = (uint32_t)(lot & UINT32_MAX)};
    if (prompt.dataset && prompt.dataset->kind == VP_PROMPT_CAPTION && lot > UINT32_MAX)
        return vp_error_set(error, VP_ERR_RANGE, -1, "",
                            "seed + index exceeds 4294967295, which RandomState does not accept");
    /* a file with this name can contain other questions */
    if (prompt.dataset && prompt.dataset->kind == VP_PROMPT_SCIENCE && !fields->has_options && !fields->dataset) {
        if (!prompt.style) prompt.style = prompt.dataset->style;
        prompt.dataset = NULL;
    }
    vp_result result = vp_prompt_build(&prompt, NULL, 0, &needed, info, error);
    if (result != VP_ERR_CAPACITY) return result;
    *text = resize(NULL, needed + 1, 1);
    return vp_prompt_build(&prompt, *text, needed + 1, &needed, info, error);
}
/* Extracts "STYLE: TEXT" from " User: STYLE: TEXT Assistant:", in place, and then removes the style. */
static void strip_roles(char *text, const char *style) {
    static const char before[] = " User: ", after[] = " Assistant:";
    size_t first = strlen(before), end = strlen(text) - strlen(after);
    if (style) first += strlen(style) + 1; /* and the colon */
    while (first < end && text[first] == ' ') first++;
    while (end > first && (text[end - 1] == '\n' || text[end - 1] == ' ')) end--;
    memmove(text, text + first, end - first);
    text[end - first] = 0;
}
vp_result build_message(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, int64_t seed,
                        int64_t index, const char *hint, char **text, vp_prompt_info *info, vp_error *error) {
    const vp_prompt_dataset *dataset = prompt_dataset_of(fields, fallback);
    struct prompt_fields last = *fields; /* its texts still belong to fields */
    struct text_buffer message = {NULL, 0, 0};
    if (fields->questions.count > 1 && (!dataset || dataset->kind == VP_PROMPT_QUESTIONS)) {
        last.questions.items += last.questions.count - 1;
        last.questions.count = 1;
    }
    vp_result result = build_prompt(&last, fallback, NULL, seed, index, text, info, error);
    if (result != VP_OK) return result;
    strip_roles(*text, info->style);
    if (!hint) return VP_OK;
    text_add_string(&message, *text);
    text_add_string(&message, "\n");
    text_add_string(&message, hint);
    free(*text);
    *text = message.data;
    return VP_OK;
}
char *make_prompt(const char *style, const char *question) {
    size_t needed = 0;
    vp_prompt prompt = {.style = style, .questions = &question, .question_count = 1};
    /* a single question always makes a prompt */
    if (vp_prompt_build(&prompt, NULL, 0, &needed, NULL, NULL) != VP_ERR_CAPACITY) abort();
    char *text = resize(NULL, needed + 1, 1);
    vp_prompt_build(&prompt, text, needed + 1, &needed, NULL, NULL);
    return text;
}
