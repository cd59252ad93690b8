/* twin_pairs.c: sends a server requests with an image and with its twin, alternately.
 * After each pair, a text of a few tokens is sent, which measures network and server almost without a prompt. Caches
 * contain nothing useful: every image has unique pixels, and every text starts with a unique mark. */
#include "server/checks/twins.h"

#include "base/console.h"

#include <math.h>

/* Only the first token matters; if it is part of a character, the second may complete it. */
enum { TOKENS = 2, PAIR_TRIES = 3 };

/* The result of a request. */
struct reply { double ttft_ms, chunk_ms, upload_ms, prompt_ms; int64_t tokens, cached; int is_streamed; };
static struct reply reply_of(const struct pass_result *run) {
    const struct served *served = run->served;
    const int64_t upload_ns = served->uploaded_ns - served->sent_ns;
    return (struct reply){.ttft_ms = metric_of(run, METRIC_TTFT), .chunk_ms = served_ms(served->first_chunk_ns),
                          .upload_ms = served->sent_ns < 0 || upload_ns < 0 ? (double)NAN : (double)upload_ns / 1e6,
                          .prompt_ms = twin_prompt_ms(served->timings), .tokens = served->usage.prompt_tokens,
                          .cached = served->usage.cached_tokens, .is_streamed = served->is_streamed};
}
/* Sends a text, or the images if it is NULL. Returns 0 or an exit code with a line in `reason`. */
static int ask(const struct twin_plan *plan, const char *text, struct reply *reply, char *reason, size_t capacity) {
    struct pass_result *run = runs_make(1, 0);
    struct question question = plan->question;
    struct sent_request sent;
    if (text) {
        question.picture_count = 0;
        question.unique = NULL;
        question.request.text = text;
        question.request.image_places = NULL;
        question.request.knob_count = plan->text_knob_count;
    }
    question.request.max_tokens = TOKENS;
    question.request.ignore_eos = 0;
    int code = ask_once(plan->endpoint, &question, run, &sent, reason, capacity);
    plan->memory->is_away = code == EXIT_DEVICE && sent.http_status < 400;
    if (!code) *reply = reply_of(run);
    runs_free(run, 1);
    if (!code && reply->tokens < 0) {
        snprintf(reason, capacity, "the server does not report prompt tokens, which --twins needs");
        return EXIT_INPUT;
    }
    if (!code && !reply->is_streamed) {
        snprintf(reason, capacity, "the answer is not streamed, so --twins cannot time its first token");
        return EXIT_INPUT;
    }
    return code;
}
static int ask_filler(const struct twin_plan *plan, const struct twin_text *filler, struct reply *reply, char *reason,
                      size_t capacity) {
    char *text = twin_text(filler->filler, filler->repeats, ask_mark());
    const int code = ask(plan, text, reply, reason, capacity);
    free(text);
    return code;
}

/* ---- the text */
/* Gets the number of prompt tokens of the question without its image. Each question is sent once. */
static int count_question(const struct twin_plan *plan, int64_t *tokens, char *reason, size_t capacity) {
    const uint64_t question = hash_text(HASH_START, plan->question.request.text);
    struct reply reply;
    int code = 0;
    if (!plan->memory->question_tokens || plan->memory->question != question) {
        code = ask(plan, plan->question.request.text, &reply, reason, capacity);
        if (code) return code;
        plan->memory->question = question;
        plan->memory->question_tokens = reply.tokens;
    }
    *tokens = plan->memory->question_tokens;
    return code;
}
/* Finds the text with as many prompt tokens as the image request. */
static int find_text(const struct twin_plan *plan, int64_t wanted, struct twin_text *text, char *reason,
                     size_t capacity) {
    struct twin_search search;
    struct reply reply;
    int code = 0;
    for (twin_search_begin(wanted, twin_recall(plan->memory, wanted), &search); !code && search.next >= 0;) {
        const struct twin_text next = {search.filler, search.next, -1};
        if (interrupted) return EXIT_INTERRUPTED;
        show_progress("%s: looking for a text of %lld tokens, try %d", plan->name, (long long)wanted, search.tries + 1);
        code = ask_filler(plan, &next, &reply, reason, capacity);
        if (!code) twin_search_take(&search, reply.tokens);
    }
    if (code) return code;
    if (search.nearest.tokens < 0) {
        snprintf(reason, capacity,
                 "no text with about %lld prompt tokens was found in %d tries: the image has fewer tokens than the "
                 "marker at the start of each text", (long long)wanted, search.tries);
        return EXIT_INPUT;
    }
    *text = search.nearest;
    twin_remember(plan->memory, text);
    return 0;
}

/* ---- the pairs */
static int measure_pair(const struct twin_plan *plan, const struct twin_text *text, struct twin_pair *pair,
                        char *reason, size_t capacity) {
    static const struct twin_text few = {0, 0, -1};
    struct reply with_image, of_text, floor;
    int code = 0;
    for (int turn = 0; turn < 2 && !code; turn++)
        code = (turn == 0) == pair->image_first ? ask(plan, NULL, &with_image, reason, capacity)
                                                : ask_filler(plan, text, &of_text, reason, capacity);
    if (!code) code = ask_filler(plan, &few, &floor, reason, capacity);
    if (code) return code;
    *pair = (struct twin_pair){
        .image_first = pair->image_first, .upload_ms = with_image.upload_ms,
        .image_ms = with_image.ttft_ms, .text_ms = of_text.ttft_ms, .floor_ms = floor.ttft_ms,
        .image_prompt_ms = with_image.prompt_ms, .text_prompt_ms = of_text.prompt_ms,
        .image_chunk_ms = with_image.chunk_ms, .text_chunk_ms = of_text.chunk_ms,
        .image_tokens = with_image.tokens, .text_tokens = of_text.tokens, .floor_tokens = floor.tokens,
        .image_cached = with_image.cached, .text_cached = of_text.cached};
    return 0;
}
/* Drawn at random for every other pair. The next pair has the opposite order, so that drift affects both equally. */
static int is_image_first(const struct twin_plan *plan, int32_t pair) {
    return (int)(hash_number(hash_number(HASH_START, (int64_t)plan->seed), pair / 2) >> 33 & 1) ^ (pair & 1);
}
int twins_measure(const struct twin_plan *plan, struct twins *twins, char *reason, size_t capacity) {
    struct twin_text text;
    struct reply reply;
    int64_t question_tokens = 0;
    *twins = (struct twins){.pairs = zeroed((size_t)plan->pairs + 1, sizeof *twins->pairs)};
    for (; twins->count < plan->known_count && twins->count < plan->pairs; twins->count++)
        twins->pairs[twins->count] = plan->known[twins->count];
    reason[0] = 0;
    show_progress("%s: the image's tokens", plan->name);
    int code = ask(plan, NULL, &reply, reason, capacity);
    if (code) return code;
    twins->prompt_tokens = reply.tokens;
    code = count_question(plan, &question_tokens, reason, capacity);
    twins->image_tokens = twins->prompt_tokens - question_tokens;
    if (!code && twins->image_tokens <= 2) { /* markers only */
        snprintf(reason, capacity, "the image adds %lld tokens to the prompt: the server dropped it or does not count "
                                   "it, so its cost cannot be measured; run vlmprof audit",
                 (long long)twins->image_tokens);
        code = EXIT_WORK;
    }
    if (!code) code = find_text(plan, twins->prompt_tokens, &text, reason, capacity);
    for (int32_t i = -1; i < plan->pairs && !code && !interrupted; i = twins->count) { /* -1: the warm-up */
        struct twin_pair pair = {.image_first = is_image_first(plan, i < 0 ? 0 : i)};
        show_progress(i < 0 ? "%s: warm-up" : "%s: pair %d of %d", plan->name, i + 1, plan->pairs);
        code = measure_pair(plan, &text, &pair, reason, capacity);
        for (int tries = 1; tries < PAIR_TRIES && code && plan->memory->is_away && !interrupted; tries++)
            code = measure_pair(plan, &text, &pair, reason, capacity);
        if (!code && i >= 0) twins->pairs[twins->count++] = pair;
    }
    close_progress();
    return !code && interrupted ? EXIT_INTERRUPTED : code;
}
void twins_free(struct twins *twins) {
    free(twins->pairs);
    memset(twins, 0, sizeof *twins);
}
