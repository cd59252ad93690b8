/* served_answer.c: gets a server's answer with the next-token probabilities that it reports. */
#include "measure/served_answer.h"

#include "base/console.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    vp_chat_knob *knobs = resize(NULL, question->knob_count + 2, sizeof *knobs);
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange;
    char number[16];
    vp_result result;
    int code;
    snprintf(number, sizeof number, "%d", length);
    if (question->knob_count) memcpy(knobs, question->knobs, question->knob_count * sizeof *knobs);
    knobs[question->knob_count] = (vp_chat_knob){"logprobs", "true"};
    knobs[question->knob_count + 1] = (vp_chat_knob){"top_logprobs", number};
    asked.knobs = knobs;
    asked.knob_count += length > 0 ? 2 : 0;
    asked.no_stream = 1;
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
        snprintf(reason, capacity, "compared up to the first different token: after it the texts differ");
}
