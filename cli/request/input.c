/* input.c: a prompt and its knobs to a request that is ready to run. */
#include "request/input.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof_tokenizer.h"

#include <string.h>

int32_t target_tokens_of(const vp_tile_options *tiles, const vp_layout *layout) {
    return tiles->rule == VP_TILE_TOKENS ? tiles->vision_tokens : layout->theoretical_tokens;
}

int tokenize_prompt(const struct model *model, struct sample *sample) {
    size_t count = 0, bytes = strlen(sample->prompt);
    vp_result result;
    sample->text_ids = resize(NULL, bytes + 1, sizeof *sample->text_ids); /* a byte makes one token at most... */
    result = vp_tokenizer_encode(model->tokenizer, sample->prompt, bytes, sample->text_ids, bytes + 1, &count);
    if (result == VP_ERR_CAPACITY) { /* ... but normalisation can lengthen the text */
        sample->text_ids = resize(sample->text_ids, count, sizeof *sample->text_ids);
        result = vp_tokenizer_encode(model->tokenizer, sample->prompt, bytes, sample->text_ids, count, &count);
    }
    if (result != VP_OK || count > INT32_MAX / 2)
        return complain(result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE, "the prompt cannot be tokenized: %s",
                        result != VP_OK ? vp_result_text(result) : "it is too long");
    sample->text_count = (int32_t)count;
    sample->text_ids = resize(sample->text_ids, count, sizeof *sample->text_ids); /* a data set keeps many */
    return 0;
}

int check_sequence(const struct model *model, const struct pass_input *input) {
    if (positions_of(input) <= model->config.max_positions) return 0;
    return complain(EXIT_USAGE,
                    "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), the model has %d: "
                    "use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(input), input->layout ? input->layout->image_tokens : 0, input->text_count,
                    input->new_tokens, model->config.max_positions);
}
