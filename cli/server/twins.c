/* twins.c: what an image costs, from outside: an image's request against a text's with as many prompt tokens. */
#include "server/twins.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const FILLERS[TWIN_FILLERS] = {" a", "a", ".", "1 "};
static const int64_t REPEATS_MOST = 1 << 20;

void twin_search_begin(int64_t wanted, struct twin_search *search) {
    memset(search, 0, sizeof *search);
    search->wanted = wanted;
    search->low = -1;
    search->high = -1;
    search->found = -1;
}
static void next_filler(struct twin_search *search) {
    search->low = search->high = -1;
    search->low_tokens = search->high_tokens = 0;
    search->next = ++search->filler < TWIN_FILLERS ? 0 : -1;
}
/* Between two repeats: where a straight line has the wanted number, but never at an end. */
static int64_t between(const struct twin_search *search) {
    const double share = (double)(search->wanted - search->low_tokens)
                         / (double)(search->high_tokens - search->low_tokens);
    int64_t at = search->low + (int64_t)floor(share * (double)(search->high - search->low) + 0.5);
    if (at <= search->low) at = search->low + 1;
    return at >= search->high ? search->high - 1 : at;
}
void twin_search_take(struct twin_search *search, int64_t tokens) {
    const int64_t at = search->next;
    if (at < 0) return;
    if (tokens == search->wanted) {
        search->found = at;
        search->next = -1;
        return;
    }
    if (++search->tries >= TWIN_TRIES) { search->next = -1; return; }
    if (tokens > search->wanted) {
        if (!at) { search->next = -1; return; } /* even the mark alone is too long */
        search->high = at;
        search->high_tokens = tokens;
    } else {
        search->low = at;
        search->low_tokens = tokens;
    }
    if (search->high < 0) {
        const int64_t missing = search->wanted - tokens;
        search->next = at + (missing > at ? missing : at) + 1;
        if (search->next > REPEATS_MOST) next_filler(search);
    } else if (search->high - search->low < 2) next_filler(search);
    else search->next = between(search);
}
char *twin_text(int filler, int64_t repeats, uint64_t mark) {
    struct text_buffer text = {NULL, 0, 0};
    char words[40];
    snprintf(words, sizeof words, "%06u%06u", (unsigned)(mark / 1000000 % 1000000), (unsigned)(mark % 1000000));
    text_add_string(&text, words);
    for (int64_t i = 0; i < repeats; i++) text_add_string(&text, FILLERS[filler]);
    return text.data;
}

static int is_cached(int64_t cached, int64_t tokens) { return cached > 0 && cached * 2 >= tokens; }
struct twin_result twins_result(const struct twin_pair *pairs, int32_t count) {
    double *values = resize(NULL, (size_t)count * 3 + 1, sizeof *values);
    struct twin_result result;
    memset(&result, 0, sizeof result);
    for (int32_t i = 0; i < count; i++) {
        const struct twin_pair *pair = &pairs[i];
        if (!isfinite(pair->image_ms) || !isfinite(pair->text_ms) || pair->image_tokens != pair->text_tokens)
            result.unequal++;
        else if (is_cached(pair->image_cached, pair->image_tokens) || is_cached(pair->text_cached, pair->text_tokens))
            result.cached++;
        else {
            values[result.pairs] = pair->image_ms - pair->text_ms;
            values[count + result.pairs] = pair->image_ms;
            values[2 * count + result.pairs] = pair->text_ms;
            result.pairs++;
        }
    }
    result.difference = median_range_of(values, (size_t)result.pairs);
    result.image_ms = median_range_of(values + count, (size_t)result.pairs).median;
    result.text_ms = median_range_of(values + 2 * count, (size_t)result.pairs).median;
    free(values);
    return result;
}
