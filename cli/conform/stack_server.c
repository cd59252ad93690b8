/* stack_server.c: a server as a stack: its answer, its counts, and the log probabilities of the first token. */
#include "conform/stack.h"

#include "base/console.h"
#include "base/json.h"
#include "base/memory.h"
#include "server/ask.h"
#include "server/picture.h"

#include <stdlib.h>
#include <string.h>

/* {"token": "..", "logprob": -0.1} -> the next likely token of the stack. */
static void take_likely(const vp_json *json, uint32_t node, struct stack *stack) {
    struct likely_token *likely = &stack->likely[stack->likely_count];
    const uint32_t token = vp_json_get(json, node, "token");
    const double logprob = node_number(json, vp_json_get(json, node, "logprob"));
    if (stack->likely_count == LIKELY_MOST || !node_is(json, token, VP_JSON_STRING) || !(logprob <= 0)) return;
    vp_json_text(json, token, NULL, 0, &likely->bytes);
    likely->text = resize(NULL, likely->bytes + 1, 1);
    vp_json_text(json, token, likely->text, likely->bytes + 1, NULL);
    likely->logprob = logprob;
    stack->likely_count++;
}
/* choices[0].logprobs: {"content": [{"token", "logprob", "top_logprobs": [...]}, ...]}. */
static void take_logprobs(const char *text, struct stack *stack) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t content, first, top;
    if (!text || parse_json(&parsed, text, strlen(text), &error) != VP_OK) {
        free(parsed.nodes);
        return;
    }
    content = vp_json_get(&parsed.json, 0, "content");
    if (node_is(&parsed.json, content, VP_JSON_ARRAY) && parsed.json.nodes[content].count) {
        first = content + 1;
        top = vp_json_get(&parsed.json, first, "top_logprobs");
        if (node_is(&parsed.json, top, VP_JSON_ARRAY) && parsed.json.nodes[top].count)
            for (uint32_t i = top + 1; i < parsed.json.nodes[top].end; i = parsed.json.nodes[i].end)
                take_likely(&parsed.json, i, stack);
        else
            take_likely(&parsed.json, first, stack);
    }
    free(parsed.nodes);
}

int stack_of_server(struct endpoint *endpoint, const struct probe *probe, struct stack *stack) {
    const vp_chat_knob knobs[] = {{"logprobs", "true"}, {"top_logprobs", "5"}};
    struct question question;
    struct picture picture;
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange;
    char reason[LINE_BYTES];
    vp_result result;
    int code = 0;
    memset(&question, 0, sizeof question);
    memset(&picture, 0, sizeof picture);
    stack->is_server = 1;
    stack->prompt_tokens = stack->image_tokens = -1;
    if (probe->is_raw) return complain(EXIT_USAGE, "--raw_prompt: a chat server applies its own template");
    if (probe->image_path) {
        code = picture_of_file(probe->image_path, &picture, reason, sizeof reason);
        if (code) return complain(code, "%s", reason);
        question.picture = &picture;
    }
    question.text = probe->prompt;
    question.max_tokens = probe->new_tokens;
    question.no_stream = question.no_cache = 1;
    question.knobs = knobs;
    question.knob_count = endpoint->api == VP_CHAT_COMPLETIONS ? sizeof knobs / sizeof *knobs : 0;
    result = ask_begin(endpoint, &question, &exchange, &error);
    code = result != VP_OK ? complain_result(exit_code_of(result), endpoint->url, result, &error)
                           : endpoint_ask(endpoint, &exchange);
    if (!code) {
        stack->prompt_tokens = exchange.reply.usage.prompt_tokens;
        stack->image_tokens = exchange.reply.usage.image_tokens;
        stack->answer = copy_text(exchange.reply.text, exchange.reply.text_bytes);
        stack->answer_bytes = exchange.reply.text_bytes;
        take_logprobs(exchange.reply.logprobs, stack);
    }
    ask_free(&exchange);
    picture_free(&picture);
    return code;
}
