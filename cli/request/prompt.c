/* prompt.c: a record's fields to the text of its prompt. */
#include "request/prompt.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void prompt_fields_free(prompt_fields *f) {
    free(f->dataset);
    free(f->style);
    free(f->hint);
    free(f->question_type);
    text_list_free(&f->questions);
    text_list_free(&f->options);
}

vp_result bad_member(vp_error *error, const char *key, const char *want) {
    char text[160];
    snprintf(text, sizeof text, "\"%s\" must be %s", key, want);
    return vp_fail(error, VP_ERR_FORMAT, -1, "", text);
}
static vp_result read_member_text(const vp_json *j, const char *key, char **text, vp_error *error) {
    if (!has_value(j, 0, key)) return VP_OK;
    *text = node_text(j, vp_json_get(j, 0, key));
    return *text ? VP_OK : bad_member(error, key, "a string (without \\u0000)");
}
static vp_result read_member_texts(const vp_json *j, const char *key, text_list *texts, vp_error *error) {
    uint32_t array = vp_json_get(j, 0, key);
    if (!has_value(j, 0, key)) return VP_OK;
    if (!node_is(j, array, VP_JSON_ARRAY)) return bad_member(error, key, "an array of strings");
    for (uint32_t i = array + 1; i < j->nodes[array].end; i = j->nodes[i].end) {
        char *text = node_text(j, i);
        if (!text) return bad_member(error, key, "an array of strings (without \\u0000)");
        text_list_take(texts, text);
    }
    return VP_OK;
}
static vp_result read_member_index(const vp_json *j, const char *key, int64_t *value, vp_error *error) {
    if (!has_value(j, 0, key)) return VP_OK;
    if (vp_json_to_int(j, vp_json_get(j, 0, key), value) == VP_OK && *value >= 0 && *value <= UINT32_MAX) return VP_OK;
    return bad_member(error, key, "a whole number, 0..4294967295");
}

vp_result read_prompt_fields(const vp_json *j, prompt_fields *f, vp_error *error) {
    const char *const keys[] = {"dataset", "style", "hint", "question_type"};
    char **const texts[] = {&f->dataset, &f->style, &f->hint, &f->question_type};
    vp_result r = VP_OK;
    f->seed = f->index = f->rng_seed = -1;
    for (int i = 0; i < 4 && r == VP_OK; i++) r = read_member_text(j, keys[i], texts[i], error);
    if (r == VP_OK && has_value(j, 0, "questions")) r = read_member_texts(j, "questions", &f->questions, error);
    else if (r == VP_OK && has_value(j, 0, "question")) {
        char *question = NULL;
        r = read_member_text(j, "question", &question, error);
        if (r == VP_OK) text_list_take(&f->questions, question);
    }
    f->has_options = has_value(j, 0, "options");
    if (r == VP_OK) r = read_member_texts(j, "options", &f->options, error);
    if (r == VP_OK) r = read_member_index(j, "seed", &f->seed, error);
    if (r == VP_OK) r = read_member_index(j, "index", &f->index, error);
    if (r == VP_OK) r = read_member_index(j, "rng_seed", &f->rng_seed, error);
    return r;
}

const vp_prompt_dataset *prompt_dataset_of(const prompt_fields *f, const vp_prompt_dataset *fallback) {
    const vp_prompt_dataset *d = vp_prompt_dataset_find(f->dataset);
    if (!d) d = fallback ? fallback : vp_prompt_dataset_of_style(f->style);
    return d && d->kind == VP_PROMPT_CAPTION && !f->dataset && f->questions.count ? NULL : d; /* its own question wins over the lot */
}
vp_result build_prompt(const prompt_fields *f, const vp_prompt_dataset *fallback, const char *style, int64_t seed, int64_t index, char **text,
                       vp_prompt_info *info, vp_error *error) {
    vp_prompt p;
    size_t needed = 0;
    static const char *const no_options[1] = {NULL}; /* a list that is empty is no missing list */
    int64_t lot = f->rng_seed;
    vp_result r;
    if (f->seed >= 0) seed = f->seed;
    if (f->index >= 0) index = f->index;
    if (lot < 0 || f->seed >= 0 || f->index >= 0) lot = seed + index;
    memset(&p, 0, sizeof p);
    p.dataset = prompt_dataset_of(f, fallback);
    if (p.dataset && p.dataset->kind == VP_PROMPT_CAPTION && lot > UINT32_MAX)
        return vp_fail(error, VP_ERR_RANGE, -1, "", "seed + index is over 4294967295, which no RandomState takes");
    p.style = f->style ? f->style : style;
    if (p.dataset && p.dataset->kind == VP_PROMPT_SCIENCE && !f->has_options && !f->dataset) { /* a file of this name can hold other questions */
        if (!p.style) p.style = p.dataset->style;
        p.dataset = NULL;
    }
    p.questions = (const char *const *)f->questions.items;
    p.question_count = f->questions.count;
    p.options = !f->has_options ? NULL : f->options.count ? (const char *const *)f->options.items : no_options;
    p.option_count = f->options.count;
    p.hint = f->hint;
    p.question_type = f->question_type;
    p.rng_seed = (uint32_t)(lot & UINT32_MAX);
    r = vp_prompt_build(&p, NULL, 0, &needed, info, error);
    if (r != VP_ERR_CAPACITY) return r;
    *text = resize(NULL, needed + 1, 1);
    return vp_prompt_build(&p, *text, needed + 1, &needed, info, error);
}
char *make_prompt(const char *style, const char *question) {
    vp_prompt p;
    size_t needed = 0;
    char *text;
    memset(&p, 0, sizeof p);
    p.style = style;
    p.questions = &question;
    p.question_count = 1;
    if (vp_prompt_build(&p, NULL, 0, &needed, NULL, NULL) != VP_ERR_CAPACITY) abort(); /* one question always makes a prompt */
    text = resize(NULL, needed + 1, 1);
    vp_prompt_build(&p, text, needed + 1, &needed, NULL, NULL);
    return text;
}
