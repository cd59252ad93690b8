/* stack_server.c: a server as a stack: its answer, its counts, and the log probabilities of the first token. */
#include "conform/stack.h"

#include "base/console.h"
#include "base/memory.h"
#include "server/ask.h"
#include "server/picture.h"

#include <string.h>

int stack_of_server(struct endpoint *endpoint, const struct probe *probe, struct stack *stack) {
    const vp_chat_knob knobs[] = {{"logprobs", "true"}, {"top_logprobs", "5"}};
    struct question question = {0};
    struct picture picture = {0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange;
    char reason[LINE_BYTES];
    int code = 0;
    stack->is_server = 1;
    stack->prompt_tokens = stack->image_tokens = -1;
    if (probe->is_raw) return complain(EXIT_USAGE, "--raw_prompt: a chat server applies its own template");
    if (probe->image_path) {
        code = picture_of_file(probe->image_path, &picture, reason, sizeof reason);
        if (code) return complain(code, "%s", reason);
        question.pictures = &picture;
        question.picture_count = 1;
    }
    question.text = probe->prompt;
    question.max_tokens = probe->new_tokens;
    question.no_stream = question.no_cache = 1;
    question.knobs = knobs;
    question.knob_count = endpoint->api == VP_CHAT_COMPLETIONS ? sizeof knobs / sizeof *knobs : 0;
    vp_result result = ask_begin(endpoint, &question, &exchange, &error);
    code = result != VP_OK ? complain_result(exit_code_of(result), endpoint->url, result, &error)
                           : endpoint_ask(endpoint, &exchange);
    if (!code) {
        stack->prompt_tokens = exchange.reply.usage.prompt_tokens;
        stack->image_tokens = exchange.reply.usage.image_tokens;
        stack->answer = copy_text(exchange.reply.text, exchange.reply.text_bytes);
        stack->answer_bytes = exchange.reply.text_bytes;
        likely_read(exchange.reply.logprobs, &stack->likely);
    }
    ask_free(&exchange);
    picture_free(&picture);
    return code;
}
