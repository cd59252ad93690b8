/* twins.c: the cost of an image, measured from outside: a request with the image against a text of equal length. */
#include "server/checks/twins.h"

#include "base/document.h"

#include <math.h>

/* ---- the text */
/* head: between the mark and the first filler, so that no tokenizer joins them */
static const struct { const char *head, *again; } FILLERS[TWIN_FILLERS] = {
    {"", " a"}, {" ", "a"}, {" ", "."}, {" ", "1 "}};
static const int64_t REPEATS_MOST = 1 << 20;
enum { MARK_LETTERS = 8 };

void twin_search_begin(int64_t wanted, const struct twin_text *known, struct twin_search *search) {
    memset(search, 0, sizeof *search);
    search->wanted = wanted;
    search->low = search->high = -1;
    search->nearest.tokens = -1;
    if (!known) return;
    search->filler = known->filler;
    if (known->tokens == wanted) {
        search->nearest = *known;
        search->is_found = 1;
        search->next = -1;
        return;
    }
    /* most fillers are one token each */
    search->next = wanted - known->tokens > REPEATS_MOST ? 0 : known->repeats + (wanted - known->tokens);
    if (search->next < 0 || search->next > REPEATS_MOST) search->next = 0;
}
static void next_filler(struct twin_search *search) {
    search->low = search->high = -1;
    search->low_tokens = search->high_tokens = 0;
    search->next = ++search->filler < TWIN_FILLERS ? 0 : -1;
}
/* The number of repeats between the two bounds by linear interpolation, but never a bound itself. */
static int64_t between(const struct twin_search *search) {
    const double share =
        (double)(search->wanted - search->low_tokens) / (double)(search->high_tokens - search->low_tokens);
    int64_t at = search->low + (int64_t)floor(share * (double)(search->high - search->low) + 0.5);
    if (at <= search->low) at = search->low + 1;
    return at >= search->high ? search->high - 1 : at;
}
static void keep_nearest(struct twin_search *search, int64_t tokens) {
    const struct twin_text now = {search->filler, search->next, tokens};
    if (tokens < 0) return;
    if (search->nearest.tokens < 0 || llabs(tokens - search->wanted) < llabs(search->nearest.tokens - search->wanted))
        search->nearest = now;
}
void twin_search_take(struct twin_search *search, int64_t tokens) {
    const int64_t at = search->next;
    if (at < 0) return;
    keep_nearest(search, tokens);
    search->is_found = tokens == search->wanted;
    if (tokens < 0) tokens = 0;
    if (search->is_found || ++search->tries >= TWIN_TRIES) {
        search->next = -1;
        return;
    }
    if (tokens > search->wanted) {
        if (!at) {
            search->next = -1; /* even only the mark is too long */
            return;
        }
        search->high = at;
        search->high_tokens = tokens;
    } else {
        search->low = at;
        search->low_tokens = tokens;
    }
    if (search->high < 0) {
        const int64_t missing = search->wanted - tokens;
        search->next = missing > REPEATS_MOST || at + missing > REPEATS_MOST ? REPEATS_MOST + 1
                                                                             : at + (missing > at ? missing : at) + 1;
        if (search->next > REPEATS_MOST) next_filler(search);
    } else if (search->low < 0) { /* the known text to start from was too long */
        const int64_t extra = tokens - search->wanted;
        search->next = at > extra ? at - extra : 0;
    } else if (search->high - search->low < 2) next_filler(search);
    else search->next = between(search);
}
char *twin_text(int filler, int64_t repeats, uint64_t mark) {
    struct text_buffer text = {NULL, 0, 0};
    for (int i = 0; i < MARK_LETTERS; i++, mark /= 26) {
        const char letter[3] = {' ', (char)('a' + mark % 26), 0};
        text_add_string(&text, letter + !i);
    }
    if (repeats) text_add_string(&text, FILLERS[filler].head);
    for (int64_t i = 0; i < repeats; i++) text_add_string(&text, FILLERS[filler].again);
    return text.data;
}

const struct twin_text *twin_recall(const struct twin_memory *memory, int64_t wanted) {
    const struct twin_text *nearest = NULL;
    for (size_t i = 0; i < memory->count; i++)
        if (!nearest || llabs(memory->texts[i].tokens - wanted) < llabs(nearest->tokens - wanted))
            nearest = &memory->texts[i];
    return nearest;
}
void twin_remember(struct twin_memory *memory, const struct twin_text *text) {
    const struct twin_text *known = twin_recall(memory, text->tokens);
    if (known && known->tokens == text->tokens) return;
    memory->texts = resize(memory->texts, memory->count + 1, sizeof *memory->texts);
    memory->texts[memory->count++] = *text;
}
void twin_forget(struct twin_memory *memory) {
    free(memory->texts);
    memset(memory, 0, sizeof *memory);
}

static const double MS_LIMIT = 1e12;

/* ---- the result of pairs */
const char *const TWIN_BASES[TWINS_BASES] = {"TTFT", "first_chunk", "server_prompt_ms"};
static int is_cached(int64_t cached, int64_t tokens) { return cached > 0 && cached * 2 >= tokens; }
static double difference_of(const struct twin_pair *pair, enum twin_basis basis) {
    return basis == TWINS_TTFT    ? pair->image_ms - pair->text_ms
           : basis == TWINS_CHUNK ? pair->image_chunk_ms - pair->text_chunk_ms
                                  : pair->image_prompt_ms - pair->text_prompt_ms;
}
/* Returns 1 if a pair is usable; otherwise counts the reason. */
static int is_counted(const struct twin_pair *pair, double ms_per_token, struct twin_result *result) {
    const int is_equal = pair->image_tokens == pair->text_tokens;
    if (is_cached(pair->image_cached, pair->image_tokens) || is_cached(pair->text_cached, pair->text_tokens))
        result->cached++;
    else if (!isfinite(difference_of(pair, result->basis))) result->silent++;
    else if (!is_equal && !isfinite(ms_per_token)) result->unequal++;
    else {
        result->adjusted += !is_equal;
        return 1;
    }
    return 0;
}
/* TTFT, unless half of the pairs or more lack it and another basis is known for more of them. */
static enum twin_basis basis_of(const struct twin_pair *pairs, int32_t count) {
    int32_t known[TWINS_BASES] = {0, 0, 0};
    for (int32_t i = 0; i < count; i++)
        for (int basis = 0; basis < TWINS_BASES; basis++)
            known[basis] += isfinite(difference_of(&pairs[i], (enum twin_basis)basis));
    if (2 * known[TWINS_TTFT] > count) return TWINS_TTFT;
    return known[TWINS_CHUNK] > known[TWINS_TTFT]    ? TWINS_CHUNK
           : known[TWINS_SERVER] > known[TWINS_TTFT] ? TWINS_SERVER : TWINS_TTFT;
}
/* The median of a member over the pairs, ignoring NaN; NaN with fewer than TWIN_PAIRS_LEAST values. */
static double median_at(const struct twin_pair *pairs, int32_t count, size_t offset, double *scratch) {
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) {
        const double value = *(const double *)(const void *)((const char *)&pairs[i] + offset);
        if (isfinite(value)) scratch[used++] = value;
    }
    return used < TWIN_PAIRS_LEAST ? (double)NAN : median_range_of(scratch, used).median;
}
#define MEDIAN(pairs, count, member, scratch) median_at(pairs, count, offsetof(struct twin_pair, member), scratch)
/* The cost of a text token, from the floor to the twins, over all pairs; NaN if their tokens do not differ. */
static double token_cost(const struct twin_pair *pairs, int32_t count, double *scratch) {
    const double text_ms = MEDIAN(pairs, count, text_ms, scratch), floor_ms = MEDIAN(pairs, count, floor_ms, scratch);
    double more = 0;
    for (int32_t i = 0; i < count; i++) scratch[i] = (double)(pairs[i].text_tokens - pairs[i].floor_tokens);
    more = median_range_of(scratch, (size_t)count).median;
    return more > 0 ? (text_ms - floor_ms) / more : (double)NAN;
}
/* The median of the differences of a basis. `values` is scratch. */
static double difference_at(const struct twin_pair *pairs, int32_t count, enum twin_basis basis, double *values) {
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) {
        const double value = difference_of(&pairs[i], basis);
        if (isfinite(value)) values[used++] = value;
    }
    return used < TWIN_PAIRS_LEAST ? (double)NAN : median_range_of(values, used).median;
}
static double mean_cached(const struct twin_pair *pairs, int32_t count, int of_text) {
    double sum = 0;
    int32_t known = 0;
    for (int32_t i = 0; i < count; i++) {
        const int64_t cached = of_text ? pairs[i].text_cached : pairs[i].image_cached;
        if (cached < 0) continue;
        sum += (double)cached;
        known++;
    }
    return known ? sum / known : (double)NAN;
}
struct twin_result twins_result(const struct twin_pair *pairs, int32_t count) {
    const struct median_range none = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double *values = resize(NULL, (size_t)count * 2 + 1, sizeof *values), *scratch = values + (size_t)count;
    struct twin_pair *kept = resize(NULL, (size_t)count + 1, sizeof *kept);
    struct twin_result result = {.basis = basis_of(pairs, count)};
    double ms_per_token = result.basis == TWINS_TTFT ? token_cost(pairs, count, scratch) : (double)NAN;
    for (int32_t i = 0; i < count; i++) {
        const struct twin_pair *pair = &pairs[i];
        const int64_t more = pair->image_tokens - pair->text_tokens;
        if (!is_counted(pair, ms_per_token, &result)) continue;
        values[result.pairs] = difference_of(pair, result.basis) - (more ? ms_per_token * (double)more : 0);
        kept[result.pairs++] = *pair;
    }
    result.ms_per_token = result.adjusted ? ms_per_token : (double)NAN;
    result.difference = result.pairs < TWIN_PAIRS_LEAST ? none : median_range_of(values, (size_t)result.pairs);
    result.prompt_difference_ms = difference_at(kept, result.pairs, TWINS_SERVER, scratch);
    result.chunk_difference_ms = difference_at(kept, result.pairs, TWINS_CHUNK, scratch);
    result.image_ms = MEDIAN(kept, result.pairs, image_ms, scratch);
    result.text_ms = MEDIAN(kept, result.pairs, text_ms, scratch);
    result.floor_ms = MEDIAN(kept, result.pairs, floor_ms, scratch);
    result.upload_ms = MEDIAN(kept, result.pairs, upload_ms, scratch);
    result.image_prompt_ms = MEDIAN(kept, result.pairs, image_prompt_ms, scratch);
    result.text_prompt_ms = MEDIAN(kept, result.pairs, text_prompt_ms, scratch);
    result.image_chunk_ms = MEDIAN(kept, result.pairs, image_chunk_ms, scratch);
    result.text_chunk_ms = MEDIAN(kept, result.pairs, text_chunk_ms, scratch);
    result.image_cached = mean_cached(kept, result.pairs, 0);
    result.text_cached = mean_cached(kept, result.pairs, 1);
    FREE_ALL(kept, values);
    return result;
}
static void put_medians(vp_json_writer *writer, const char *key, double image, double text, double difference) {
    if (isfinite(difference))
        PUT(writer, KEY_OBJECT(key), KEY("image", image), KEY("text", text), KEY("difference", difference), END_OBJECT);
    else put_null(writer, key);
}
void twins_put(vp_json_writer *writer, const struct twin_result *result, int64_t prompt_tokens, int64_t image_tokens) {
    PUT(writer, KEY_OBJECT("T_image_outside"), KEY("ms", result->difference.median), KEY("low", result->difference.low),
        KEY("high", result->difference.high), KEY("level", result->difference.level),
        KEY("basis", TWIN_BASES[result->basis]), KEY("method", result->adjusted ? "adjusted" : "exact"),
        KEY("pairs", result->pairs), KEY("pairs_adjusted", result->adjusted), KEY("pairs_cached", result->cached),
        KEY("pairs_unequal", result->unequal), KEY("pairs_silent", result->silent), KEY("TTFT_image", result->image_ms),
        KEY("TTFT_text", result->text_ms), KEY("floor_ms", result->floor_ms), KEY("upload_ms", result->upload_ms),
        KEY("ms_per_token", result->ms_per_token));
    put_medians(writer, "first_chunk_ms", result->image_chunk_ms, result->text_chunk_ms, result->chunk_difference_ms);
    put_medians(writer, "server_prompt_ms", result->image_prompt_ms, result->text_prompt_ms,
                result->prompt_difference_ms); /* medians by the server's clock */
    PUT(writer, KEY_KNOWN("prompt_tokens", prompt_tokens >= 0, prompt_tokens),
        KEY_KNOWN("image_tokens", image_tokens >= 0, image_tokens), END_OBJECT);
}
void twins_warn(struct text_list *warnings, const struct twin_result *result) {
    const int32_t all = result->pairs + result->cached + result->unequal + result->silent;
    if (result->cached)
        text_list_add(warnings, "%d of %d image/text pairs were dropped: their prompts came from the server's cache",
                      result->cached, all);
    if (result->unequal)
        text_list_add(warnings, "%d of %d image/text pairs were dropped: their numbers of tokens differ",
                      result->unequal, all);
    if (result->silent)
        text_list_add(warnings, "%d of %d image/text pairs were dropped: an answer had no text, so its first token "
                                "could not be timed", result->silent, all);
    if (result->adjusted)
        text_list_add(warnings, "T_image_outside is adjusted: %d of %d pairs have unequal numbers of tokens, corrected "
                                "by %.4g ms per text token", result->adjusted, result->pairs, result->ms_per_token);
    if (all && result->pairs < TWIN_PAIRS_LEAST)
        text_list_add(warnings, "%d usable image/text pair%s: a result needs at least %d", result->pairs,
                      result->pairs == 1 ? "" : "s", TWIN_PAIRS_LEAST);
    if (result->basis != TWINS_TTFT && result->pairs)
        text_list_add(warnings, "most answers had no text: T_image_outside is based on %s, not on TTFT",
                      result->basis == TWINS_CHUNK ? "the first chunk of each stream" : "the server's own prompt time");
    if (result->difference.median < 0 && result->difference.high >= 0)
        text_list_add(warnings,
                      "T_image_outside of %s ms is below 0, but its interval includes 0: the image costs less than the "
                      "times vary; measure more pairs on a quiet server",
                      number_measured(result->difference.median, result->difference.low, result->difference.high).text);
}
int twins_are_wrong(const struct twin_result *result, char *out, size_t capacity) {
    const struct median_range *range = &result->difference;
    const char *cause = "the server ignored the image, pruned its tokens before the language model, or was slower "
                        "without an image; vlmprof audit shows whether it counts the image";
    if (!(range->high < 0)) return 0;
    if (result->image_cached > result->text_cached + 1)
        cause = "more of the image's prompt came from the server's cache; use --no_cache without --same_image";
    else if (result->basis == TWINS_SERVER)
        cause = "the server's own prompt time excludes the image encoder";
    snprintf(out, capacity, "T_image_outside of %s ms is wrong, because the cost of an image cannot be negative. The "
                            "likely cause: %s", number_measured(range->median, range->low, range->high).text, cause);
    return 1;
}

double twin_prompt_ms(const char *timings) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    double ms = (double)NAN;
    if (timings && parse_json(&parsed, timings, strlen(timings), NULL) == VP_OK
        && node_is(&parsed.json, 0, VP_JSON_OBJECT)) {
        ms = node_number(&parsed.json, vp_json_get(&parsed.json, 0, "prompt_ms"));
        if (!isfinite(ms))
            ms = node_number(&parsed.json, vp_json_get(&parsed.json, 0, "prompt_eval_duration")) / 1e6; /* Ollama: ns */
    }
    free(parsed.nodes);
    return ms >= 0 && ms <= MS_LIMIT ? ms : (double)NAN;
}
