/* other_model.h: what models other than Molmo need around the engine: their processor, their special ids, the prompt and
 * the sequence with the image's tokens inside. Functions return 0 or an exit code after a message on stderr, unless they
 * say otherwise. */
#ifndef VLMPROF_CLI_OTHER_MODEL_H
#define VLMPROF_CLI_OTHER_MODEL_H
#include "base/json.h"
#include "request/model.h"
#include "request/record.h"
#include "vlmprof.h"
#include "vlmprof_processor.h"

/* Sets processor, ids and image_token of a model whose config and tokenizer are loaded; of the ids only bos and eos
 * have a meaning, -1: there is none. Reads generation_config.json, tokenizer_config.json and the chat template of the
 * folder. preprocessor: NULL when the folder has none. */
int other_model_load(struct model *model, const vp_json *config, const vp_json *preprocessor);
/* The same of a preset, whose byte tokenizer has set the ids: it reads text alone. */
void other_model_preset(struct model *model);
void other_model_free(struct model *model);

/* The prompt of a question by the model's chat template, malloc'ed; with `raw` the text as it is. Warns when the folder's
 * template is not the known one. */
int other_model_prompt(const struct model *model, const char *text, int raw, int has_image, char **prompt);

/* How an image is cut, and the same as a layout, which counts its tokens. */
int other_model_picture(const struct model *model, const char *path, int32_t width_px, int32_t height_px,
                        vp_picture *picture, vp_layout *layout);

/* Tokenizes sample->prompt with the image's tokens in their places, behind the tokenizer's first token where it has one.
 * picture: NULL without an image. sample->text_ids becomes the whole sequence, sample->text_count what of it stands for
 * no image, sample->no_bos true. */
int other_model_tokenize(const struct model *model, const vp_picture *picture, const vp_layout *layout,
                         struct sample *sample);

/* Positions of the image's tokens in a sequence: image_input_idx of vp_request. Returns 0 when there are not `count`. */
int other_model_index(const struct model *model, const int32_t *ids, int32_t id_count, int32_t *index, size_t count);

#endif
