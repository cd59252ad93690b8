/* other_files.h: what the folder of a model other than Molmo says about prompts and images.
 * Settings and a tokenizer come in; a processor, special ids and what is known of the chat template go out. */
#ifndef VLMPROF_CLI_OTHER_FILES_H
#define VLMPROF_CLI_OTHER_FILES_H
#include "request/model_files.h"
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_processor.h"
#include "vlmprof_tokenizer.h"

enum { OTHER_MORE_EOS = 15 };
struct other_files {
    vp_processor processor;
    int32_t image_token;              /* -1: none */
    int32_t more_eos[OTHER_MORE_EOS]; /* ids that end an answer beside ids.eos */
    int32_t more_eos_count;
    char *prompt_front;               /* what stands in front of the prompt's text; NULL: nothing */
    int has_template, knows_template; /* truth: the folder has a chat template; it is the known one */
};

/* Reads generation_config.json, tokenizer_config.json and the chat template of a model, and adds them to *identity.
 * preprocessor: NULL when the folder has none. *files is zeroed before; of the ids only bos and eos get a meaning, -1:
 * there is none. Returns 0 or an exit code after a message on stderr. */
int other_files_load(const struct model_files *source, const vp_model_config *config, const vp_tokenizer *tokenizer,
                     const vp_json *config_json, const vp_json *preprocessor, struct other_files *files,
                     vp_special_ids *ids, uint64_t *identity);

/* The same of a preset, and its tokenizer: a token for each byte, and the names that stand around questions and images,
 * which are the last ids of the vocabulary. Returns 0 or an exit code after a message on stderr. */
int other_files_preset(const char *name, const vp_model_config *config, struct other_files *files, vp_special_ids *ids,
                       vp_tokenizer **tokenizer);
void other_files_free(struct other_files *files);

#endif
