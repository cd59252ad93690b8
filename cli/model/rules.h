/* rules.h: what families of models do each in their own way: how images are cut, prompts are made and tokenized. A row
 * for each family: that of MolmoE and Molmo in molmo.c, that of all others, which say it in their Hugging Face folders,
 * in hf.c. */
#ifndef VLMPROF_CLI_RULES_H
#define VLMPROF_CLI_RULES_H
#include "base/memory.h"
#include "base/options.h"
#include "model/cuts.h"
#include "vlmprof.h"
#include "vlmprof_image.h"

struct model; /* model.h */

/* How large a model is to see images. All empty: as the model's own settings say. */
struct image_size {
    const vp_tier *tier;          /* NULL: none */
    int32_t vision_tokens;        /* aimed at; 0: none */
    const char *knob; int32_t knob_value; /* the model's own setting, as --image_knob names it; NULL: none */
    const vp_tile_options *tiles; /* of models that are tiled: these, whatever the other members say; NULL */
};

/* A prompt as tokens, malloc'ed: the text after BOS and image where a model is tiled, otherwise the whole sequence. */
struct prompt_tokens {
    int32_t *ids;
    int32_t count; /* those that do not stand for an image */
    int no_bos;    /* 1 if no BOS goes in front */
};

/* What the engine is shown: room for a request's inputs, and the ids of its sequence. */
struct input_buffers { struct buffer pixels, masks, index, spans, ids, scratch; };

struct model_rules {
    int has_styles;   /* prompts have a style; the others' questions can have an answer hint */
    int is_tiled;     /* images are crops of a canvas and the global view (vp_tile_options), with shares of padding */
    int decode_flags; /* of vp_tokenizer_decode next to VP_DECODE_SKIP_SPECIAL */

    /* Sets ids and whatever the other rules need, from config.json and preprocessor_config.json (NULL: there is none);
     * shape and tokenizer are there. `what` names the tokenizer's file. Returns 0 or an exit code after a message. */
    int (*load)(struct model *model, const char *what, const vp_json *config, const vp_json *preprocessor);
    /* The same of a preset, and its tokenizer. */
    int (*load_preset)(struct model *model);

    /* Why a prompt has one image at most; NULL: it can have several. */
    const char *(*one_image)(const struct model *model);
    /* The prompt of a question, malloc'ed. style NULL: none. places [image_count]: bytes of the question before which
     * the images are, where the model's prompts say it; NULL: in front. */
    char *(*prompt)(const struct model *model, const char *style, const char *question, const size_t *places,
                    int32_t image_count);
    /* Complains about a size that no image of the model can have. Returns 0 or EXIT_USAGE. */
    int (*knobs)(const struct options *options, const struct model *model, const struct image_size *size);
    /* How an image of that size is cut. Nothing is printed. */
    vp_result (*cut)(const struct model *model, const struct image_size *size, int32_t width_px, int32_t height_px,
                     vp_layout *layout, vp_error *error);

    /* Counts a prompt's tokens before the image's size is known; ids NULL: they depend on how the image is cut. Returns
     * 0 or an exit code after a message. */
    int (*count)(const struct model *model, const char *prompt, int32_t image_count, struct prompt_tokens *tokens);
    /* Tokenizes a prompt with images that are cut so. Returns 0 or an exit code after a message. */
    int (*tokenize)(const struct model *model, const char *prompt, const struct cuts *cuts,
                    struct prompt_tokens *tokens);

    /* Bytes of scratch that `fill` needs for an image. */
    size_t (*scratch_bytes)(const struct model *model, const vp_layout *layout);
    /* Fills the buffers, which have room, for a sequence of `count` tokens. images: [cuts->count]. */
    vp_result (*fill)(const struct model *model, const struct cuts *cuts, const vp_image *images,
                      const struct prompt_tokens *tokens, int32_t count, struct input_buffers *buffers);
    /* span_ends (vp_request) of a sequence of `count` tokens that begins with its images, where image_bidirectional;
     * otherwise NULL. Wherever an image is, its spans are as long. */
    void (*spans)(const struct model *model, const vp_layout *layout, int32_t count, int32_t *ends);
};
extern const struct model_rules MOLMO_RULES, HF_RULES;

/* Tokens of a text, without a token in front. Returns 0 or an exit code after a message. */
int tokenize_text(const struct model *model, const char *text, struct prompt_tokens *tokens);

/* Molmo's tiling of a size: by a tier or a target, which fill the canvas, or adaptive up to the knob's crops. */
vp_tile_options image_size_tiles(const struct image_size *size);

#endif
