/* prompt.h: a record's fields to the text of its prompt. */
#ifndef VLMPROF_CLI_PROMPT_H
#define VLMPROF_CLI_PROMPT_H
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_prompt.h"

/* what a record says about its prompt; owns its texts */
typedef struct prompt_fields {
    char *dataset, *style, *hint, *question_type;
    text_list questions, options; int has_options;
    int64_t seed, index, rng_seed; /* of captions; -1: not said */
} prompt_fields;

void prompt_fields_free(prompt_fields *f);

vp_result bad_member(vp_error *error, const char *key, const char *want);

/* Fields to release with prompt_fields_free, also after a failure. */
vp_result read_prompt_fields(const vp_json *j, prompt_fields *f, vp_error *error);

/* The data set of a record: by name, by style where that says it, else the fallback. */
const vp_prompt_dataset *prompt_dataset_of(const prompt_fields *f, const vp_prompt_dataset *fallback);

/* Prompt text, malloc'ed. seed and index are those of a record that says nothing. */
vp_result build_prompt(const prompt_fields *f, const vp_prompt_dataset *fallback, const char *style, int64_t seed, int64_t index, char **text,
                       vp_prompt_info *info, vp_error *error);

/* " User: STYLE: TEXT Assistant:", without STYLE " User: TEXT Assistant:" */
char *make_prompt(const char *style, const char *question);

#endif
