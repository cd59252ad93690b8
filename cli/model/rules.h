/* rules.h: the differences between families of models: how images are cut, and how prompts are made and tokenized.
 * molmo.c has the row of MolmoE and Molmo. hf.c has the row of all others, whose Hugging Face folders describe the
 * rules. */
#ifndef VLMPROF_CLI_RULES_H
#define VLMPROF_CLI_RULES_H
#include "model/image.h"
#include "vlmprof_json.h"
#include "vlmprof_image.h"

struct model; /* model.h */

/* The requested size of images. All empty: use the model's own settings. */
struct image_size {
    const vp_tier *tier;          /* NULL if none */
    int32_t vision_tokens;        /* target number; 0 if none */
    const char *knob; int32_t knob_value; /* the model's own setting, named as in --image_knob; NULL if none */
    const vp_tile_options *tiles; /* for tiled models: overrides the other members unless NULL */
};

/* The engine's input: buffers for the inputs of a request, and the ids of its sequence. */
struct input_buffers { struct buffer pixels, masks, index, spans, ids, scratch; };

struct model_rules {
    int has_styles;   /* prompts have a style; without styles, a question can have an answer hint */
    int is_tiled;     /* images are crops of a canvas and the global view (vp_tile_options), with shares of padding */
    int decode_flags; /* flags of vp_tokenizer_decode in addition to VP_DECODE_SKIP_SPECIAL */

    /* Sets ids and everything that the other rules need, from config.json and preprocessor_config.json (NULL if
     * absent). Shape and tokenizer are already loaded. `what` names the tokenizer's file. Returns 0 or an exit code
     * after a message. */
    int (*load)(struct model *model, const char *what, const vp_json *config, const vp_json *preprocessor);
    /* The same for a preset, and its tokenizer. */
    int (*load_preset)(struct model *model);

    /* The reason if a prompt can have at most one image; otherwise NULL. */
    const char *(*one_image)(const struct model *model);
    /* The prompt of a question, malloc'ed. style may be NULL. places [image_count]: byte offsets of the images in the
     * question, if the model's prompts support them; NULL: images come first. */
    char *(*prompt)(const struct model *model, const char *style, const char *question, const size_t *places,
                    int32_t image_count);
    /* Complains about a size that no image of the model can have. `option` is the name of the option of vision tokens.
     * Returns 0 or EXIT_USAGE. */
    int (*knobs)(const struct model *model, const struct image_size *size, const char *option);
    /* Computes how an image of this size is cut. Prints nothing. */
    vp_result (*cut)(const struct model *model, const struct image_size *size, int32_t width_px, int32_t height_px,
                     vp_layout *layout, vp_error *error);

    /* Counts a prompt's tokens before the image's size is known; ids is NULL if they depend on how the image is cut.
     * Returns 0 or an exit code after a message. */
    int (*count)(const struct model *model, const char *prompt, int32_t image_count, struct prompt_tokens *tokens);
    /* Tokenizes a prompt whose images are cut as in `cuts`. Returns 0 or an exit code after a message. */
    int (*tokenize)(const struct model *model, const char *prompt, const struct cuts *cuts,
                    struct prompt_tokens *tokens);

    /* The size of the scratch memory that `fill` needs for an image, in bytes. */
    size_t (*scratch_bytes)(const struct model *model, const vp_layout *layout);
    /* Fills the buffers, which must be large enough, for a sequence of `count` tokens. images: [cuts->count]. */
    vp_result (*fill)(const struct model *model, const struct cuts *cuts, const vp_image *images,
                      const struct prompt_tokens *tokens, int32_t count, struct input_buffers *buffers);
    /* Sets span_ends (vp_request) of a sequence of `count` tokens that begins with its images, if image_bidirectional;
     * otherwise NULL. The spans of an image have the same length wherever it is. */
    void (*spans)(const struct model *model, const vp_layout *layout, int32_t count, int32_t *ends);
};
extern const struct model_rules MOLMO_RULES, HF_RULES;

/* Tokenizes a text, without a token before it. Returns 0 or an exit code after a message. */
int tokenize_text(const struct model *model, const char *text, struct prompt_tokens *tokens);

/* Molmo's tiling of a size: by a tier or a target, which fill the canvas, or adaptive up to the knob's number of
 * crops. */
vp_tile_options image_size_tiles(const struct image_size *size);

#endif
