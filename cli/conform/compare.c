/* compare.c: compares two stacks' values for one request and gives each stage a verdict.
 *
 * The effect of rounding on a stage is measured, not guessed: the built-in engine runs the same request in fp32 and in
 * the other stack's precision. Two stacks that round the same function at different points are about as far apart as
 * each is from fp32, or sqrt(2) times that. The bound is SPREAD times the distance that the built-in engine shows, and
 * at least the effect of another order of summation in fp32. 200 pairs of stacks that round weights and results
 * differently (tests/test_conform.c) reach 0.8 of that bound. If experts are chosen, rounding can flip a choice. That
 * changed the logits of the small models by up to 0.19. Our own run shows it only by chance, so the bound is then at
 * least FLIPPED. */
#include "conform/compare.h"

#include "base/memory.h"
#include "measure/dump.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const VERDICT_NAMES[VERDICTS] = {"unseen", "equal", "rounding", "parted"};

/* FP32: another order of summation changes tower and features of the small models by up to 2e-6, and logits by up to
 * 4e-6. These effects grow with the square root of the depth, which is 4 blocks there. fp16 has three bits more than
 * bf16. */
static const double SPREAD = 4, FLIPPED = 0.25, FP16_OF_BF16 = 1.0 / 8, FP32_TOWER = 1e-5, FP32_LOGITS = 2e-5,
                    FP32_PIXELS = 1e-6;
enum { FP32_DEPTH = 4 };

/* The allowed margin between two tokens, in standard deviations of a normal error: 6 for each of the two logits. */
static const double TIE_DEVIATIONS = 6;

/* ---- bounds */
static size_t first_different(const struct stage_values *one, const struct stage_values *other) {
    size_t i = 0;
    while (i < one->count && i < other->count && one->whole[i] == other->whole[i]) i++;
    return i;
}
static double fp32_bound(const struct conform_pair *pair, int stage) {
    const vp_model_config *config = &pair->model->config;
    const int depth = stage == CONFORM_PREFILL ? config->block_count + config->vit_blocks_needed
                                               : config->vit_blocks_needed;
    const double growth = sqrt(fmax(1, (double)depth / FP32_DEPTH));
    if (stage == CONFORM_PIXELS) return FP32_PIXELS;
    return growth * (stage == CONFORM_PREFILL ? FP32_LOGITS : FP32_TOWER);
}
/* The distance of our own rounded run from the exact one. A row of logits is a single draw, so the worst of the rows
 * after equal tokens counts. */
static double own_distance(const struct conform_pair *pair, int stage) {
    const struct stage_values *exact = &pair->ours->stages[stage], *rounded = &pair->rounded->stages[stage];
    const struct stage_values *tokens = &pair->ours->stages[CONFORM_TOKENS];
    const size_t width = (size_t)pair->model->config.embedding_size,
                 equal = first_different(tokens, &pair->rounded->stages[CONFORM_TOKENS]);
    double worst = relative_error(rounded->real, exact->real, exact->count);
    for (size_t i = 1; stage == CONFORM_PREFILL && i <= equal && i < pair->ours->step_count; i++)
        worst = fmax(worst, relative_error(pair->rounded->steps + i * width, pair->ours->steps + i * width, width));
    return worst;
}
/* The distance that rounding can explain in a stage. */
static double bound_of(const struct conform_pair *pair, int stage) {
    double least = fp32_bound(pair, stage), own;
    if (pair->precision == PRECISION_FP32 || !pair->rounded) return least;
    if (stage == CONFORM_PIXELS) return ldexp(1, pair->precision == PRECISION_FP16 ? -11 : -8);
    own = own_distance(pair, stage);
    if (pair->precision < PRECISION_INT8) /* one run can be closer by chance: use at least a third of the usual */
        own = fmax(own, rounding_of(&pair->model->config, stage == CONFORM_PREFILL) / 3);
    if (pair->precision == PRECISION_FP16) own *= FP16_OF_BF16;
    if (stage == CONFORM_PREFILL && pair->model->config.expert_count > pair->model->config.top_k)
        least = fmax(least, FLIPPED);
    return fmax(least, SPREAD * own);
}

/* ---- stages */
static struct stage_verdict unseen(const char *note) {
    struct stage_verdict verdict = {VERDICT_UNSEEN, (double)NAN, (double)NAN, ""};
    snprintf(verdict.note, sizeof verdict.note, "%s", note);
    return verdict;
}
static void judge(struct stage_verdict *verdict, double distance, double bound) {
    verdict->distance = distance;
    verdict->bound = bound;
    verdict->verdict = distance == 0       ? VERDICT_EQUAL
                       : distance <= bound ? VERDICT_ROUNDING
                                           : VERDICT_PARTED; /* NaN too */
}
/* Compares integers that both stacks have. Those that only one has are a difference, unless the other may know less. */
static struct stage_verdict compare_whole(int stage, const struct stage_values *ours,
                                          const struct stage_values *theirs) {
    struct stage_verdict verdict = {VERDICT_EQUAL, 0, 0, ""};
    const size_t both = ours->count < theirs->count ? ours->count : theirs->count,
                 first = first_different(ours, theirs);
    double different = stage == CONFORM_IMAGE ? 0 : fabs((double)ours->count - (double)theirs->count);
    for (size_t i = 0; i < both; i++) different += ours->whole[i] != theirs->whole[i];
    judge(&verdict, different, 0);
    if (verdict.verdict == VERDICT_EQUAL) return verdict;
    if (stage == CONFORM_IMAGE) {
        static const char *const names[] = {"image tokens", "views", "px wide", "px high"};
        snprintf(verdict.note, sizeof verdict.note, "%d %s here, %d there", (int)ours->whole[first],
                 names[first < 4 ? first : 3], (int)theirs->whole[first]);
    } else if (first < both)
        snprintf(verdict.note, sizeof verdict.note, "first at text token %zu: %d here, %d there", first,
                 (int)ours->whole[first], (int)theirs->whole[first]);
    else
        snprintf(verdict.note, sizeof verdict.note, "%zu text tokens here, %zu there; the first %zu are equal",
                 ours->count, theirs->count, both);
    return verdict;
}
static struct stage_verdict compare_real(const struct conform_pair *pair, int stage) {
    const struct stage_values *ours = &pair->ours->stages[stage], *theirs = &pair->theirs->stages[stage];
    struct stage_verdict verdict = {VERDICT_PARTED, (double)NAN, bound_of(pair, stage), ""};
    if (ours->count != theirs->count) {
        snprintf(verdict.note, sizeof verdict.note, "%zu values here, %zu there", ours->count, theirs->count);
        return verdict;
    }
    judge(&verdict, relative_error(theirs->real, ours->real, ours->count), verdict.bound);
    return verdict;
}
/* Finds the standard deviation of one logit around the mean of its row, and how much rounding changes the difference of
 * two logits. */
static double tie_of(const struct conform_pair *pair, const float *row, size_t count) {
    double mean = 0, spread = 0;
    for (size_t i = 0; i < count; i++) mean += (double)row[i] / (double)count;
    for (size_t i = 0; i < count; i++) spread += ((double)row[i] - mean) * ((double)row[i] - mean) / (double)count;
    return TIE_DEVIATIONS * sqrt(2 * spread) * bound_of(pair, CONFORM_PREFILL) / SPREAD;
}
/* Compares answers: where they diverge, and how far apart our logits for the two tokens are. An answer that ends early
 * is not a difference if the other one continues after its end. */
static struct stage_verdict compare_tokens(const struct conform_pair *pair) {
    const struct stage_values *ours = &pair->ours->stages[CONFORM_TOKENS],
                              *theirs = &pair->theirs->stages[CONFORM_TOKENS];
    const size_t both = ours->count < theirs->count ? ours->count : theirs->count,
                 first = first_different(ours, theirs), width = (size_t)pair->model->config.embedding_size;
    struct stage_verdict verdict = {VERDICT_EQUAL, 0, (double)NAN, ""};
    if (first == both || first >= pair->ours->step_count) {
        verdict.bound = 0;
        snprintf(verdict.note, sizeof verdict.note, "%zu tokens compared", both);
        return verdict;
    }
    const float *row = pair->ours->steps + first * width;
    if (theirs->whole[first] < 0 || (size_t)theirs->whole[first] >= width) {
        snprintf(verdict.note, sizeof verdict.note, "token %zu: %d there; the model has %zu", first,
                 (int)theirs->whole[first], width);
        verdict.verdict = VERDICT_PARTED;
        verdict.distance = (double)NAN;
        return verdict;
    }
    judge(&verdict, (double)row[ours->whole[first]] - (double)row[theirs->whole[first]], tie_of(pair, row, width));
    if (verdict.verdict == VERDICT_EQUAL) verdict.verdict = VERDICT_ROUNDING; /* an exact tie */
    snprintf(verdict.note, sizeof verdict.note, "token %zu: %d here, %d there; %.3g nats apart in our logits: %s",
             first, (int)ours->whole[first], (int)theirs->whole[first], verdict.distance,
             verdict.verdict == VERDICT_PARTED ? "a fault" : "a tie");
    return verdict;
}

/* ---- servers: the values visible from outside */
/* Computes the log probability of each of our logits. */
static double log_total(const float *row, size_t count) {
    double most = (double)row[0], sum = 0;
    for (size_t i = 1; i < count; i++) most = fmax(most, (double)row[i]);
    for (size_t i = 0; i < count; i++) sum += exp((double)row[i] - most);
    return most + log(sum);
}
/* Our id for a token's text; -1 if no single token decodes to it. Likely tokens are tried first. */
static int32_t id_of_text(const struct model *model, const float *row, const struct likely *token) {
    const int flags = model->rules->decode_flags;
    int32_t best = -1;
    char text[256];
    size_t bytes;
    for (int32_t id = 0; id < model->config.embedding_size; id++) {
        if (best >= 0 && row[id] <= row[best]) continue;
        if (vp_tokenizer_decode(model->tokenizer, &id, 1, flags, text, sizeof text, &bytes) == VP_OK
            && bytes == token->bytes && !memcmp(text, token->text, bytes))
            best = id;
    }
    return best;
}
static struct stage_verdict compare_likely(const struct conform_pair *pair) {
    const float *row = pair->ours->stages[CONFORM_PREFILL].real;
    const size_t width = pair->ours->stages[CONFORM_PREFILL].count;
    const double total = log_total(row, width);
    const struct likely_step *first = pair->theirs->likely.count ? pair->theirs->likely.steps : NULL;
    struct stage_verdict verdict = {VERDICT_EQUAL, 0, (double)NAN, ""};
    double worst = 0;
    size_t found = 0;
    for (size_t i = 0; first && i < (first->top_count ? first->top_count : 1); i++) {
        const struct likely *token = first->top_count ? &first->top[i] : &first->own;
        const int32_t id = id_of_text(pair->model, row, token);
        if (id < 0) continue;
        found++;
        worst = fmax(worst, fabs((double)row[id] - total - token->logprob));
    }
    if (!found) return unseen("the server returned no log probabilities of tokens that the model has");
    judge(&verdict, worst, tie_of(pair, row, width));
    snprintf(verdict.note, sizeof verdict.note,
             "in nats, over the %zu most likely tokens; the server does not report others", found);
    return verdict;
}
static struct stage_verdict compare_counts(int64_t ours, int64_t theirs, const char *what) {
    struct stage_verdict verdict = {VERDICT_EQUAL, 0, 0, ""};
    judge(&verdict, fabs((double)ours - (double)theirs), 0);
    snprintf(verdict.note, sizeof verdict.note, "%lld %s here, %lld there; only their number is known", (long long)ours,
             what, (long long)theirs);
    return verdict;
}
/* The number of bytes before the first that is not UTF-8, or was replaced for that reason (U+FFFD). */
static size_t clear_bytes(const char *text, size_t bytes) {
    const size_t valid = vp_utf8_valid_bytes(text, bytes);
    for (size_t i = 0; i + 3 <= valid; i++) if (!memcmp(text + i, "\xef\xbf\xbd", 3)) return i;
    return valid;
}
/* Our token at which the server's text diverges; the count of our tokens if it never does. Servers may trim the answer,
 * and their JSON cannot contain bytes that are not UTF-8, so texts are compared only up to such a byte. */
static size_t first_in_text(const struct conform_pair *pair) {
    const struct stage_values *ours = &pair->ours->stages[CONFORM_TOKENS];
    const int flags = VP_DECODE_SKIP_SPECIAL | pair->model->rules->decode_flags;
    const char *there = pair->theirs->answer;
    size_t left = pair->theirs->answer_bytes, bytes = 0, token = 0, capacity = ours->count * 256 + 1;
    char *here = resize(NULL, capacity, 1);
    while (left && strchr(" \n", *there)) { there++; left--; }
    left = clear_bytes(there, left);
    for (; token < ours->count; token++) {
        size_t start = 0, clear;
        if (vp_tokenizer_decode(pair->model->tokenizer, ours->whole, token + 1, flags, here, capacity, &bytes) != VP_OK)
            break;
        clear = clear_bytes(here, bytes);
        while (start < clear && strchr(" \n", here[start])) start++;
        if (memcmp(here + start, there, clear - start < left ? clear - start : left) != 0) break;
    }
    free(here);
    return token;
}
/* Compares the answer as text: where it diverges, and by how much our logits prefer the best token to the second best.
 * The other answer's token is one of the rest, so the true margin is at least that. */
static struct stage_verdict compare_answer(const struct conform_pair *pair) {
    const size_t first = first_in_text(pair), width = (size_t)pair->model->config.embedding_size,
                 count = pair->ours->stages[CONFORM_TOKENS].count;
    struct stage_verdict verdict = {VERDICT_EQUAL, 0, 0, ""};
    const float *row = pair->ours->steps + first * width;
    float best = -INFINITY, second = -INFINITY;
    snprintf(verdict.note, sizeof verdict.note, "the text of %zu tokens is equal", count);
    if (first >= count || first >= pair->ours->step_count) return verdict;
    for (size_t i = 0; i < width; i++) {
        if (row[i] > best) { second = best; best = row[i]; }
        else if (row[i] > second) second = row[i];
    }
    judge(&verdict, (double)best - (double)second, tie_of(pair, row, width));
    if (verdict.verdict == VERDICT_EQUAL) verdict.verdict = VERDICT_ROUNDING;
    snprintf(verdict.note, sizeof verdict.note, "the text diverges at our token %zu; our best two are %.3g nats apart: "
                                                "%s",
             first, verdict.distance, verdict.verdict == VERDICT_PARTED ? "a fault" : "a tie");
    return verdict;
}
static void compare_server(const struct conform_pair *pair, struct conformity *out) {
    const struct stack *ours = pair->ours, *theirs = pair->theirs;
    const int64_t image = ours->stages[CONFORM_IMAGE].is_known ? ours->stages[CONFORM_IMAGE].whole[0] : 0,
                  text = (int64_t)ours->stages[CONFORM_PROMPT_IDS].count;
    if (theirs->prompt_tokens >= 0)
        out->stages[CONFORM_PROMPT_IDS] =
            theirs->image_tokens >= 0 || !image
                ? compare_counts(text, theirs->prompt_tokens - (image ? theirs->image_tokens : 0), "text tokens")
                : compare_counts(text + image, theirs->prompt_tokens, "tokens of text and image");
    if (image && theirs->image_tokens >= 0)
        out->stages[CONFORM_IMAGE] = compare_counts(image, theirs->image_tokens, "image tokens");
    if (theirs->likely.count) out->stages[CONFORM_PREFILL] = compare_likely(pair);
    if (theirs->answer) out->stages[CONFORM_TOKENS] = compare_answer(pair);
}

void conform_compare(const struct conform_pair *pair, struct conformity *out) {
    const int is_server = pair->theirs->is_server;
    for (int stage = 0; stage < CONFORM_STAGES; stage++) {
        const struct stage_values *ours = &pair->ours->stages[stage], *theirs = &pair->theirs->stages[stage];
        out->stages[stage] = !ours->is_known     ? unseen("the request has no image")
                             : theirs->is_known ? stage == CONFORM_TOKENS ? compare_tokens(pair)
                                                  : ours->whole           ? compare_whole(stage, ours, theirs)
                                                                          : compare_real(pair, stage)
                             : is_server        ? unseen("not seen from outside")
                                                : unseen("the folder has no such file");
    }
    if (is_server) compare_server(pair, out);
}
int conform_first(const struct conformity *conformity) {
    int stage = 0;
    while (stage < CONFORM_STAGES && conformity->stages[stage].verdict != VERDICT_PARTED) stage++;
    return stage;
}
void conform_merge(struct conformity *all, const struct conformity *one) {
    for (int stage = 0; stage < CONFORM_STAGES; stage++) {
        const struct stage_verdict *now = &all->stages[stage], *more = &one->stages[stage];
        if (more->verdict > now->verdict
            || (more->verdict == now->verdict && !(more->distance <= now->distance)))
            all->stages[stage] = *more;
    }
}
