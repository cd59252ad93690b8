/* token_cost.c: checks whether an image token adds as much to a server's TTFT as a text token. */
#include "server/checks/audit.h"
#include "vlmprof_statistics.h"

#include <stdlib.h>

static double slope(const struct cost_round *round, enum cost_request less, enum cost_request more) {
    return (round->ms[more] - round->ms[less]) / (double)(round->tokens[more] - round->tokens[less]);
}
static vp_estimate mean_of(const double *values, size_t count) {
    vp_estimate mean = {vp_statistics_mean(values, count), 0, 0};
    vp_statistics_mean_interval(values, count, 0.95, &mean.low, &mean.high);
    return mean;
}
int token_cost_find(const struct cost_round *rounds, size_t count, struct token_cost *cost) {
    double *image = resize(NULL, count + 1, 3 * sizeof *image), *text = image + count, *scratch = text + count;
    vp_paired paired;
    int is_found = count >= 2;
    for (size_t i = 0; i < count && is_found; i++) {
        is_found = rounds[i].tokens[COST_LARGE_IMAGE] - rounds[i].tokens[COST_SMALL_IMAGE] >= COST_TOKENS_LEAST
                   && rounds[i].tokens[COST_LONG_TEXT] - rounds[i].tokens[COST_SHORT_TEXT] >= COST_TOKENS_LEAST;
        if (!is_found) break;
        image[i] = slope(&rounds[i], COST_SMALL_IMAGE, COST_LARGE_IMAGE);
        text[i] = slope(&rounds[i], COST_SHORT_TEXT, COST_LONG_TEXT);
    }
    is_found = is_found && vp_statistics_paired(text, image, count, scratch, &paired) == VP_OK;
    if (is_found) {
        cost->rounds = count;
        cost->image = mean_of(image, count);
        cost->text = mean_of(text, count);
        cost->difference = paired.mean;
        cost->is_hint = paired.mean.high < 0;
    }
    free(image);
    return is_found;
}
void token_cost_words(const struct token_cost *cost, struct text_list *out) {
    text_list_add(out, "%s: over %zu rounds an image token adds %.4f ms [%.4f, %.4f] to the TTFT, a text token %.4f "
                       "ms [%.4f, %.4f]; difference %.4f [%.4f, %.4f]",
                  cost->is_hint ? "hint at pruning" : "no hint at pruning", cost->rounds, cost->image.value,
                  cost->image.low, cost->image.high, cost->text.value, cost->text.low, cost->text.high,
                  cost->difference.value, cost->difference.low, cost->difference.high);
    text_list_add(out, "%s",
                  cost->is_hint ? "the language model does the same work for both, and an image also passes through an "
                                  "encoder: some image tokens may not reach all blocks, or come from a cache. This is "
                                  "a hint, not a verdict: compare the answers with those of an unpruned server"
                                : "a server that prunes can still look like this if its image encoder takes as long as "
                                  "pruning saves");
}
char *token_cost_text(int64_t words, uint64_t number) {
    static const char *const common[16] = {"time",  "water", "house", "light", "small", "green", "under", "place",
                                           "right", "table", "paper", "point", "early", "music", "stone", "river"};
    struct text_buffer text = {NULL, 0, 0};
    text_add_format(&text, "%llu", (unsigned long long)number);
    for (int64_t i = 0; i < words; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        text_add_format(&text, " %s", common[number >> 60]);
    }
    return text.data;
}
