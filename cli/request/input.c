/* input.c: a prompt and its knobs to a request that is ready to run. */
#include "request/input.h"

#include "base/console.h"
#include "base/memory.h"
#include "vlmprof_tokenizer.h"

#include <string.h>

int32_t target_tokens_of(const vp_tile_options *t, const vp_layout *l) {
    return t->rule == VP_TILE_TOKENS ? t->vision_tokens : l->theoretical_tokens;
}

int tokenize_prompt(const model *m, sample *a) {
    size_t count = 0, bytes = strlen(a->prompt);
    vp_result r;
    a->text_ids = resize(NULL, bytes + 1, sizeof *a->text_ids); /* a byte makes one token at most... */
    r = vp_tokenizer_encode(m->tokenizer, a->prompt, bytes, a->text_ids, bytes + 1, &count);
    if (r == VP_ERR_CAPACITY) { /* ... but normalisation can lengthen the text */
        a->text_ids = resize(a->text_ids, count, sizeof *a->text_ids);
        r = vp_tokenizer_encode(m->tokenizer, a->prompt, bytes, a->text_ids, count, &count);
    }
    if (r != VP_OK || count > INT32_MAX / 2)
        return complain(EXIT_USAGE, "the prompt cannot be tokenized: %s", r != VP_OK ? vp_result_text(r) : "it is too long");
    a->text_count = (int32_t)count;
    a->text_ids = resize(a->text_ids, count, sizeof *a->text_ids); /* a data set keeps many */
    return 0;
}

int check_sequence(const model *m, const work *k) {
    if (positions_of(k) <= m->config.max_positions) return 0;
    return complain(EXIT_USAGE, "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), the model has %d: "
                                "use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(k), k->layout ? k->layout->image_tokens : 0, k->text_count, k->new_tokens, m->config.max_positions);
}
