/* fidelity.c: compares the next-token distributions of one request with those of a baseline. */
#include "measure/fidelity.h"

#include "base/console.h"

#include <math.h>

static const double FLOOR_NATS = 16; /* a token missing in a list is at least as likely as e^-16 */

/* ---- logits */
static double log_total(const float *logits, size_t count) {
    double most = (double)logits[0], sum = 0;
    for (size_t i = 1; i < count; i++) most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < count; i++) sum += exp((double)logits[i] - most);
    return most + log(sum);
}
/* The terms p log(p / q) - p + q are never negative, and their sum is the divergence, because p and q sum to 1. Small
 * differences of nearly equal distributions are therefore not lost between terms of opposite signs. */
double kl_divergence(const float *baseline, const float *other, size_t count) {
    const double total = log_total(baseline, count), other_total = log_total(other, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double log_p = (double)baseline[i] - total, log_q = (double)other[i] - other_total, d = log_p - log_q,
                     p = exp(log_p);
        if (p <= 0) sum += exp(log_q);
        else sum += fabs(d) < 1 ? p * (d + expm1(-d)) : p * d - p + exp(log_q);
    }
    return sum;
}
static size_t likeliest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) if (logits[i] > logits[best]) best = i;
    return best;
}
void fidelity_begin(struct fidelity *fidelity, const char *baseline, const char *reason) {
    *fidelity = (struct fidelity){.baseline = copy_text(baseline, strlen(baseline)),
                                  .reason = reason ? copy_text(reason, strlen(reason)) : NULL};
    fidelity->answers_equal = fidelity->first_difference = -1;
    fidelity->margin = fidelity->baseline_margin = (double)NAN;
}
static void add_divergence(struct fidelity *fidelity, struct divergence divergence) {
    *ADDED(fidelity->divergences, fidelity->divergence_count) = divergence;
}
void fidelity_step(void *with, int32_t step, const float *logits) {
    const struct fidelity_pass *pass = (const struct fidelity_pass *)with;
    struct fidelity *to = pass->to;
    const float *baseline = pass->baseline ? pass->baseline + (size_t)step * pass->width : NULL;
    const size_t wanted = (size_t)pass->answer[step], best = likeliest(logits, pass->width);
    if (!step) { /* also when a pass is repeated */
        to->top1_count = to->divergence_count = 0;
        to->first_difference = -1;
        to->margin = to->baseline_margin = (double)NAN;
    }
    to->positions = step + 1;
    to->top1_count += best == wanted;
    to->answers_equal = to->top1_count == pass->answer_count;
    if (best != wanted && to->first_difference < 0) {
        to->first_difference = step;
        to->margin = (double)logits[best] - (double)logits[wanted];
        if (baseline) to->baseline_margin = (double)baseline[wanted] - (double)baseline[best];
    }
    if (baseline) add_divergence(to, (struct divergence){kl_divergence(baseline, logits, pass->width), (double)NAN});
}

/* ---- a server's lists */
/* Reads {"token": "..", "logprob": -0.1}. Returns 0 if it is something else. */
static int has_read_likely(const vp_json *json, uint32_t node, struct likely *likely) {
    const uint32_t token = vp_json_get(json, node, "token");
    likely->logprob = node_number(json, vp_json_get(json, node, "logprob"));
    if (!node_is(json, token, VP_JSON_STRING) || !(likely->logprob <= 0)) return 0;
    vp_json_text(json, token, NULL, 0, &likely->bytes);
    likely->text = resize(NULL, likely->bytes + 1, 1);
    vp_json_text(json, token, likely->text, likely->bytes + 1, NULL);
    return 1;
}
static void read_top(const vp_json *json, uint32_t top, struct likely_step *step) {
    if (!node_is(json, top, VP_JSON_ARRAY)) return;
    step->top = zeroed((size_t)json->nodes[top].count + 1, sizeof *step->top);
    for (uint32_t i = top + 1; i < json->nodes[top].end && step->top_count < LIKELY_STEP_MOST; i = json->nodes[i].end)
        step->top_count += (size_t)has_read_likely(json, i, &step->top[step->top_count]);
}
/* Reads choices[0].logprobs of a chat completion. NULL and anything else gives no steps. */
static void likely_read(const char *logprobs, struct likely_steps *steps) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t content;
    memset(steps, 0, sizeof *steps);
    if (logprobs && parse_json(&parsed, logprobs, strlen(logprobs), &error) == VP_OK
        && node_is(&parsed.json, content = vp_json_get(&parsed.json, 0, "content"), VP_JSON_ARRAY)) {
        const vp_json *json = &parsed.json;
        steps->steps = zeroed((size_t)json->nodes[content].count + 1, sizeof *steps->steps);
        for (uint32_t i = content + 1; i < json->nodes[content].end; i = json->nodes[i].end) {
            struct likely_step *step = &steps->steps[steps->count];
            if (!has_read_likely(json, i, &step->own)) break; /* later tokens have no known position */
            steps->count++;
            read_top(json, vp_json_get(json, i, "top_logprobs"), step);
        }
    }
    free(parsed.nodes);
}
static void likely_free(struct likely_steps *steps) {
    for (size_t i = 0; i < steps->count; i++) {
        for (size_t k = 0; k < steps->steps[i].top_count; k++) free(steps->steps[i].top[k].text);
        FREE_ALL(steps->steps[i].top, steps->steps[i].own.text);
    }
    free(steps->steps);
    memset(steps, 0, sizeof *steps);
}
static int is_same_token(const struct likely *left, const struct likely *right) {
    return left->bytes == right->bytes && !memcmp(left->text, right->text, left->bytes);
}
static const struct likely *find_likely(const struct likely_step *step, const struct likely *token) {
    for (size_t i = 0; i < step->top_count; i++) if (is_same_token(&step->top[i], token)) return &step->top[i];
    return is_same_token(&step->own, token) ? &step->own : NULL;
}
/* The probability of all tokens that are not in a list. */
static double rest_of(double known) { return known < 1 ? 1 - known : 0; }
struct divergence likely_divergence(const struct likely_step *baseline, const struct likely_step *other) {
    double both = 0, shown = 0, known = 0, other_known = 0, single = 0, least = 0;
    for (size_t i = 0; i < baseline->top_count; i++) {
        const struct likely *token = &baseline->top[i], *same = find_likely(other, token);
        const double p = exp(token->logprob);
        shown += p;
        least = fmin(least, token->logprob);
        if (same) {
            both += p * (token->logprob - same->logprob);
            known += p;
            other_known += exp(same->logprob);
        } else single += p * (token->logprob + FLOOR_NATS);
    }
    double rest = rest_of(known);
    double other_rest = rest_of(other_known);
    return (struct divergence){
        fmax(0, both + (rest <= 0 ? 0 : rest * (log(rest) - (other_rest > 0 ? log(other_rest) : -FLOOR_NATS)))),
        fmax(0, both + single + rest_of(shown) * fmax(0, least + FLOOR_NATS))};
}
/* The number of equal tokens before the first difference; the smaller count if there is none. */
static size_t equal_steps(const struct likely_steps *left, const struct likely_steps *right) {
    size_t i = 0;
    while (i < left->count && i < right->count && is_same_token(&left->steps[i].own, &right->steps[i].own)) i++;
    return i;
}
/* The margin of a list's own token over another one. A token missing in the list counts like the list's last one. */
static double margin_of(const struct likely_step *step, const struct likely *token) {
    const struct likely *entry = find_likely(step, token);
    return entry ? step->own.logprob - entry->logprob : (double)NAN;
}
void fidelity_of_answers(struct fidelity *fidelity, const struct answer_of *baseline, const struct answer_of *other) {
    const struct likely_steps *first = baseline->steps, *second = other->steps;
    const size_t equal = equal_steps(first, second), both = first->count < second->count ? first->count : second->count;
    fidelity->answers_equal = baseline->bytes == other->bytes && !memcmp(baseline->text, other->text, baseline->bytes);
    for (size_t i = 0; i < both && i <= equal; i++) {
        const struct likely_step *ours = &first->steps[i], *theirs = &second->steps[i];
        fidelity->positions++;
        fidelity->top1_count += is_same_token(&ours->own, &theirs->own);
        if (ours->top_count && theirs->top_count) add_divergence(fidelity, likely_divergence(ours, theirs));
    }
    if (!both || (equal == both && fidelity->answers_equal)) return;
    fidelity->first_difference = (int32_t)equal;
    if (equal == both) return; /* one answer is a prefix of the other */
    fidelity->margin = margin_of(&second->steps[equal], &first->steps[equal].own);
    fidelity->baseline_margin = margin_of(&first->steps[equal], &second->steps[equal].own);
}

/* ---- a server's answer with the probabilities of its tokens */
/* Servers have different limits: 20 for OpenAI and vLLM, 5 for others. */
static const int LENGTHS[] = {20, 5, -1};
enum { LENGTH_COUNT = sizeof LENGTHS / sizeof *LENGTHS };

void served_answer_free(struct served_answer *answer) {
    free(answer->text);
    likely_free(&answer->steps);
    memset(answer, 0, sizeof *answer);
}
/* Sends the question with lists of that length; -1: without. *http_status is the response's status. */
static int ask_with(struct endpoint *endpoint, const struct question *question, int length,
                    struct served_answer *answer, int *http_status, char *reason, size_t capacity) {
    struct question asked = *question;
    const size_t count = question->request.knob_count;
    vp_chat_knob *knobs = resize(NULL, count + 2, sizeof *knobs);
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange;
    char number[16];
    vp_result result;
    int code;
    snprintf(number, sizeof number, "%d", length);
    if (count) memcpy(knobs, question->request.knobs, count * sizeof *knobs);
    knobs[count] = (vp_chat_knob){"logprobs", "true"};
    knobs[count + 1] = (vp_chat_knob){"top_logprobs", number};
    asked.request.knobs = knobs;
    asked.request.knob_count += length > 0 ? 2 : 0;
    asked.request.no_stream = 1;
    result = ask_begin(endpoint, &asked, &exchange, &error);
    if (result != VP_OK) {
        error_line(reason, capacity, result, &error);
        code = result == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_USAGE;
    } else code = endpoint_try(endpoint, &exchange, reason, capacity);
    if (!code) {
        answer->bytes = exchange.reply.text_bytes;
        answer->text = copy_text(exchange.reply.text ? exchange.reply.text : "", answer->bytes);
        likely_read(exchange.reply.logprobs, &answer->steps);
    }
    *http_status = exchange.http_status;
    ask_free(&exchange);
    free(knobs);
    return code;
}
int served_answer_ask(struct endpoint *endpoint, const struct question *question, int *most_likely,
                      struct served_answer *answer, char *reason, size_t capacity) {
    int code = EXIT_DEVICE, at = endpoint->api == VP_CHAT_COMPLETIONS ? 0 : LENGTH_COUNT - 1;
    while (*most_likely && LENGTHS[at] != *most_likely && at + 1 < LENGTH_COUNT) at++;
    for (; at < LENGTH_COUNT; at++) {
        int http_status = 0;
        code = ask_with(endpoint, question, LENGTHS[at], answer, &http_status, reason, capacity);
        if (!code) *most_likely = LENGTHS[at];
        if (!code || (http_status != 400 && http_status != 422)) break; /* servers reject lists that are too long */
    }
    if (!code) reason[0] = 0;
    return code;
}
void served_answers_compare(const struct served_answer *baseline, const struct served_answer *other,
                            struct fidelity *fidelity, char *reason, size_t capacity) {
    const struct answer_of first = {baseline->text, baseline->bytes, &baseline->steps},
                           second = {other->text, other->bytes, &other->steps};
    fidelity_of_answers(fidelity, &first, &second);
    reason[0] = 0;
    if (!fidelity->positions)
        snprintf(reason, capacity, "%s reports no log probabilities: only the texts are compared",
                 baseline->steps.count ? "this server" : "the baseline's server");
    else if (!fidelity->divergence_count)
        snprintf(reason, capacity, "no list of likely tokens (top_logprobs): only the tokens are compared");
    else if (fidelity->first_difference >= 0)
        snprintf(reason, capacity, "compared only up to the first token that differs: the texts differ after it");
}

/* ---- all positions */
struct divergence_summary divergences_summary(const struct divergence *divergences, size_t count) {
    struct divergence_summary summary = {(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double *values = resize(NULL, count + 1, 2 * sizeof *values);
    vp_statistics statistics;
    for (size_t i = 0; i < count; i++) values[i] = divergences[i].nats;
    if (vp_statistics_compute(values, count, values + count, &statistics) == VP_OK) {
        summary =
            (struct divergence_summary){statistics.mean, statistics.p50, statistics.p99, statistics.max, (double)NAN};
        for (size_t i = 0; i < count; i++) values[i] = divergences[i].at_most;
        if (isfinite(values[0])) summary.mean_at_most = vp_statistics_mean(values, count);
    }
    free(values);
    return summary;
}
void put_fidelity_row(vp_json_writer *writer, const struct fidelity *fidelity) {
    const struct divergence_summary kl = divergences_summary(fidelity->divergences, (size_t)fidelity->divergence_count);
    struct fidelity_row row = {.baseline = fidelity->baseline, .kl_divergence_mean = kl.mean,
        .kl_divergence_median = kl.median, .kl_divergence_p99 = kl.p99, .kl_divergence_max = kl.most,
        .kl_divergence_mean_at_most = kl.mean_at_most,
        .top1_agreement = fidelity->positions ? (double)fidelity->top1_count / fidelity->positions : (double)NAN,
        .answer_agreement = fidelity->answers_equal < 0 ? (double)NAN : fidelity->answers_equal,
        .first_difference_index = fidelity->first_difference, .first_difference_margin = fidelity->margin,
        .first_difference_baseline_margin = fidelity->baseline_margin, .fidelity_tokens = fidelity->positions,
        .fidelity_reason = fidelity->reason};
    fields_put(writer, &FIDELITY, &row);
}
