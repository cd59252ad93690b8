/* prompt.h: a record's fields to the text of its prompt.
 * Parsed JSON comes in; malloc'ed text goes out. Nothing is printed. */
#ifndef VLMPROF_CLI_PROMPT_H
#define VLMPROF_CLI_PROMPT_H
#include "base/memory.h"
#include "vlmprof.h"
#include "vlmprof_prompt.h"

/* What a record says about its prompt. It owns its texts; NULL: not said. */
struct prompt_fields {
    char *dataset, *style, *hint, *question_type;
    struct text_list questions;
    int is_asked;     /* 1: "prompt_origin" names a tool, whose prompt the question is; options are in it already */
    size_t *places;   /* bytes of the question before which the images are; NULL: in front */
    struct text_list options; int has_options; /* 1 if the record has options, perhaps an empty list */
    int64_t seed, index, rng_seed; /* of captions; -1: not said */
};

void prompt_fields_free(struct prompt_fields *fields);

/* Reads a record, an object. *fields is zeroed before; the caller calls prompt_fields_free, after a failure too.
 * Returns VP_OK, or VP_ERR_FORMAT when a member has the wrong type. */
vp_result read_prompt_fields(const vp_json *json, struct prompt_fields *fields, vp_error *error);

/* The data set of a record: by its name, otherwise the fallback, otherwise by its style. NULL: none of the nine known
 * ones, or captions where the record has a question of its own. */
const vp_prompt_dataset *prompt_dataset_of(const struct prompt_fields *fields, const vp_prompt_dataset *fallback);

/* Builds the prompt: *text is malloc'ed, *info says what it is made of. style, seed and index are those of a record
 * that says nothing about them; style may be NULL. After a failure *text is to be freed if it was set. */
vp_result build_prompt(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, const char *style,
                       int64_t seed, int64_t index, char **text, vp_prompt_info *info, vp_error *error);

/* The same as a message to a chat server, whose own template says who speaks: without roles and without the style,
 * which only MolmoE knows. Of several questions the last one. `hint` is below it on a line of its own; NULL: none.
 */
vp_result build_message(const struct prompt_fields *fields, const vp_prompt_dataset *fallback, int64_t seed,
                        int64_t index, const char *hint, char **text, vp_prompt_info *info, vp_error *error);

/* " User: STYLE: TEXT Assistant:", malloc'ed; with style NULL " User: TEXT Assistant:". */
char *make_prompt(const char *style, const char *question);

#endif
