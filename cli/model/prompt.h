/* prompt.h: makes the text of a prompt from a record's fields, which are parsed JSON. Prints nothing. */
#ifndef VLMPROF_CLI_PROMPT_H
#define VLMPROF_CLI_PROMPT_H
#include "base/memory.h"
#include "vlmprof_json.h"
#include "vlmprof_prompt.h"

/* The fields of a record that describe its prompt. It owns its texts, which are NULL if absent. */
struct prompt_fields {
    char *dataset, *style, *hint, *question_type;
    struct text_list questions;
    int is_asked;     /* 1: "prompt_origin" names a tool, whose complete prompt the question is */
    size_t *places;   /* byte offsets of the images in the question; NULL if before it */
    struct text_list options; int has_options; /* 1 if the record has options, perhaps an empty list */
    int64_t seed, index, rng_seed; /* seed of captions; -1 if absent */
};

void prompt_fields_free(struct prompt_fields *fields);

/* Reads a record, an object. *fields must be zeroed; the caller calls prompt_fields_free, also after a failure. Returns
 * VP_OK, or VP_ERR_FORMAT if a member has the wrong type. */
vp_result read_prompt_fields(const vp_json *json, struct prompt_fields *fields, vp_error *error);
uint32_t image_count_of(const vp_json *json); /* the number of images that the record names */

/* The data set of a record: by its name, otherwise the fallback, otherwise by its style. NULL if it is none of the nine
 * known ones, or if it is captions but the record has its own question. */
const vp_prompt_dataset *prompt_dataset_of(const struct prompt_fields *fields, const vp_prompt_dataset *fallback);

/* Builds the prompt. *text is malloc'ed, and *info describes its parts. style, seed and index are for records without
 * them; style may be NULL. After a failure *text must be freed if it was set. */
vp_result build_prompt(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, const char *style,
                       int64_t seed, int64_t index, char **text, vp_prompt_info *info, vp_error *error);

/* The same as a message to a chat server, whose own template adds the roles. It has no roles and no style, which only
 * MolmoE knows. Of several questions, it has the last one. `hint` is below it on a separate line; NULL if none. */
vp_result build_message(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, int64_t seed,
                        int64_t index, const char *hint, char **text, vp_prompt_info *info, vp_error *error);

/* Returns " User: STYLE: TEXT Assistant:", malloc'ed, or " User: TEXT Assistant:" if style is NULL. */
char *make_prompt(const char *style, const char *question);

#endif
