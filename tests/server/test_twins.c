/* test_twins.c: the search for a text with an exact number of prompt tokens, against synthetic tokenizers; pairs of times; and `sweep --twins` over sizes
 * against a server whose images cost time by their tokens. */
#define _GNU_SOURCE
#include "server/checks/twins.h"

#include "support/check.h"
#include "support/hostile_server.h"
#include "support/program.h"

/* ---- the search, with synthetic tokenizers */
/* tokens of a text: a chat template, then tokens by the kind of tokenizer */
enum { PER_LETTER, PER_LETTERS, PER_WORD, IN_STEPS, SHAKY, KINDS };
static const char *const KIND_NAMES[KINDS] = {"a token for each letter", "a token for some letters", "some tokens for each word", "tokens in steps",
                                              "words that cost more at times"};
static int64_t count_tokens(const char *text, int kind, int64_t size, int64_t template_tokens) {
    const int64_t letters = (int64_t)strlen(text);
    int64_t words = 0, glued = 0;
    for (const char *at = text; *at; at++) {
        words += *at != ' ' && (at == text || at[-1] == ' ');
        glued += *at != ' ';
    }
    switch (kind) {
    case PER_LETTER: return template_tokens + letters;
    case PER_LETTERS: return template_tokens + (letters + size - 1) / size;
    case PER_WORD: return template_tokens + words * size + (glued - words) / 2; /* two more letters in a word: one token more */
    case IN_STEPS: return template_tokens + (letters + 3) / 4 * size;
    default: return template_tokens + words + (words % 7 == 3); /* sometimes it decreases */
    }
}
static int64_t ask_tokenizer(const struct twin_search *search, int kind, int64_t size, int64_t template_tokens) {
    char *text = twin_text(search->filler, search->next, 7);
    const int64_t count = count_tokens(text, kind, size, template_tokens);
    free(text);
    return count;
}
static struct twin_search search_for(int64_t wanted, int kind, int64_t size, int64_t template_tokens, const struct twin_text *known) {
    struct twin_search search;
    for (twin_search_begin(wanted, known, &search); search.next >= 0;) twin_search_take(&search, ask_tokenizer(&search, kind, size, template_tokens));
    return search;
}
/* Returns 1 if the text found has the number of tokens that the search reports. */
static int is_true(const struct twin_search *search, int kind, int64_t size, int64_t template_tokens) {
    char *text = twin_text(search->nearest.filler, search->nearest.repeats, 99);
    const int good = count_tokens(text, kind, size, template_tokens) == search->nearest.tokens;
    free(text);
    return good;
}
static void test_search(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == IN_STEPS) continue;
        for (int64_t size = 1; size <= (kind == PER_LETTER || kind == SHAKY ? 1 : 4); size++)
            for (int64_t template_tokens = 0; template_tokens <= 33; template_tokens += 11)
                for (int64_t wanted = 80; wanted < 3000; wanted += 211) {
                    const struct twin_search search = search_for(wanted, kind, size, template_tokens, NULL);
                    check_case("%s (%lld), template %lld: %lld tokens are found", KIND_NAMES[kind], (long long)size, (long long)template_tokens, (long long)wanted);
                    if (kind == SHAKY && (wanted - template_tokens) % 7 == 3) /* no text has this number of tokens */
                        CHECK(!search.is_found && llabs(search.nearest.tokens - wanted) == 1 && search.tries <= TWIN_TRIES);
                    else CHECK(search.is_found && search.nearest.tokens == wanted && search.tries < 30);
                    CHECK(is_true(&search, kind, size, template_tokens));
                }
    }
    for (int64_t step = 2; step <= 3; step++)
        for (int64_t wanted = 100; wanted < 112; wanted++) {
            const struct twin_search search = search_for(wanted, IN_STEPS, step, 0, NULL);
            check_case("tokens in steps of %lld: %lld is found if it is a step; otherwise the nearest is reported", (long long)step, (long long)wanted);
            CHECK_INT(search.is_found, wanted % step == 0);
            CHECK(llabs(search.nearest.tokens - wanted) < step && search.tries <= TWIN_TRIES && is_true(&search, IN_STEPS, step, 0));
        }
}
static void test_search_ends(void) {
    struct twin_search search = search_for(5, PER_LETTER, 1, 9, NULL);
    check_case("a text that is already too long: the search ends at once, and the mark only is the nearest");
    CHECK(!search.is_found && search.tries == 1 && search.nearest.repeats == 0);
    check_case("a tokenizer whose count never grows");
    for (twin_search_begin(50, NULL, &search); search.next >= 0;) twin_search_take(&search, 20);
    CHECK(!search.is_found && search.tries <= TWIN_TRIES && search.nearest.tokens == 20);
    check_case("impossible counts also end the search");
    for (twin_search_begin(50, NULL, &search); search.next >= 0;) twin_search_take(&search, search.tries % 2 ? 10 : 90);
    CHECK(!search.is_found && search.tries <= TWIN_TRIES);
    for (twin_search_begin(INT64_MAX, NULL, &search); search.next >= 0;) twin_search_take(&search, -1);
    CHECK(!search.is_found && search.nearest.tokens == -1);
    const struct twin_text known = {0, 5, 4};
    twin_search_begin(INT64_MAX, &known, &search);
    CHECK_INT(search.next, 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t state = seed;
        for (twin_search_begin(500, NULL, &search); search.next >= 0;) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            CHECK(search.next <= 1 << 20 && search.filler < TWIN_FILLERS);
            twin_search_take(&search, (int64_t)(state >> 54));
        }
        CHECK(search.tries <= TWIN_TRIES);
    }
    twin_search_take(&search, 500); /* after the end, nothing changes */
    CHECK(search.next == -1);
}
static void test_memory(void) {
    struct twin_memory memory = {0};
    struct twin_search search;
    int64_t tries = 0;
    check_case("the next search begins at texts found earlier, from both sides; the same number needs no try");
    CHECK(twin_recall(&memory, 100) == NULL);
    for (int64_t wanted = 600; wanted >= 100; wanted -= 100) {
        search = search_for(wanted, PER_WORD, 1, 20, twin_recall(&memory, wanted));
        CHECK(search.is_found && search.nearest.tokens == wanted);
        if (wanted < 600) tries += search.tries;
        twin_remember(&memory, &search.nearest);
        twin_remember(&memory, &search.nearest);
    }
    CHECK(memory.count == 6 && tries <= 5);
    search = search_for(333, PER_LETTERS, 4, 3, twin_recall(&memory, 333));
    CHECK(search.is_found); /* texts found with another tokenizer mislead the search, but not forever */
    twin_search_begin(300, twin_recall(&memory, 300), &search);
    CHECK(search.is_found && search.next == -1 && search.tries == 0 && search.nearest.tokens == 300);
    CHECK_INT(twin_recall(&memory, 1 << 30)->tokens, 600);
    twin_forget(&memory);
    CHECK(memory.count == 0 && memory.texts == NULL);
    check_case("texts of the same length with other marks are different texts");
    char *one = twin_text(0, 3, 1), *other = twin_text(0, 3, 123456789012345678u), *glued = twin_text(1, 3, 0), *none = twin_text(1, 0, 0);
    CHECK_TEXT(one, "b a a a a a a a a a a");
    CHECK_INT(strlen(one), strlen(other));
    CHECK(strcmp(one, other) != 0);
    CHECK_TEXT(glued, "a a a a a a a a aaa");
    CHECK_TEXT(none, "a a a a a a a a");
    FREE_ALL(one, other, glued, none);
}

/* ---- pairs */
static void make_pairs(struct twin_pair *pairs, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const struct twin_pair pair = {.image_ms = 100 + 10.0 * i, .text_ms = 50 + 9.0 * i, .floor_ms = 5, .upload_ms = 2, .image_prompt_ms = 80 + 10.0 * i,
                                       .text_prompt_ms = 40 + 9.0 * i, .image_tokens = 300, .text_tokens = 300, .floor_tokens = 10, .image_cached = 4,
                                       .text_cached = -1, .image_first = i % 2, .image_chunk_ms = (double)NAN, .text_chunk_ms = (double)NAN};
        pairs[i] = pair;
    }
}
static void test_pairs(void) {
    struct twin_pair pairs[20];
    struct text_list warnings = {NULL, 0};
    char words[1000];
    make_pairs(pairs, 20);
    check_case("the difference is the median over pairs, with a range; the difference of medians is next to it");
    struct twin_result result = twins_result(pairs, 20);
    CHECK(result.pairs == 20 && result.difference.median == 59.5 && result.difference.low < 59.5 && result.difference.high > 59.5);
    CHECK(result.difference.level >= 0.95 && result.floor_ms == 5 && result.upload_ms == 2 && result.adjusted == 0 && isnan(result.ms_per_token));
    CHECK(result.prompt_difference_ms == 49.5 && result.image_prompt_ms == 175 && result.image_ms == 195);
    twins_warn(&warnings, &result);
    CHECK_INT(warnings.count, 0);
    check_case("pairs of which one was cached, or without text, are dropped; one with another number of tokens is corrected; each with a warning");
    pairs[0].image_cached = 150;
    pairs[1].text_cached = 299;
    pairs[2].text_tokens = 301;
    pairs[3].text_ms = (double)NAN;
    pairs[4].image_prompt_ms = (double)NAN;
    result = twins_result(pairs, 20);
    CHECK(result.pairs == 17 && result.cached == 2 && result.adjusted == 1 && result.silent == 1);
    CHECK(isfinite(result.prompt_difference_ms));
    twins_warn(&warnings, &result);
    CHECK_INT(warnings.count, 3);
    text_list_free(&warnings);
    check_case("an image whose whole range is below 0 is an error with its likely cause; a range that contains 0 is a warning");
    make_pairs(pairs, 20);
    CHECK(!twins_are_wrong(&result, words, sizeof words));
    for (int i = 0; i < 20; i++) pairs[i].image_ms = pairs[i].text_ms - 417;
    result = twins_result(pairs, 20);
    twins_warn(&warnings, &result);
    CHECK_INT(warnings.count, 0);
    CHECK(twins_are_wrong(&result, words, sizeof words));
    CHECK(strstr(words, "T_image_outside of -417 ms is wrong, because the cost of an image cannot be negative.") && strstr(words, "ignored the image"));
    for (int i = 0; i < 20; i++) pairs[i].image_cached = 100, pairs[i].text_cached = 0;
    result = twins_result(pairs, 20);
    CHECK(twins_are_wrong(&result, words, sizeof words) && strstr(words, "came from the server's cache"));
    for (int i = 0; i < 20; i++) pairs[i].image_ms = pairs[i].text_ms + (i % 3 ? -1 : 5);
    result = twins_result(pairs, 20);
    twins_warn(&warnings, &result);
    CHECK(!twins_are_wrong(&result, words, sizeof words) && warnings.count == 1 && strstr(warnings.items[0], "its interval includes 0"));
    text_list_free(&warnings);
    check_case("fewer than 5 pairs give no estimate, and a warning with their number");
    make_pairs(pairs, 20);
    result = twins_result(pairs, 5);
    CHECK(result.difference.median == 52 && result.difference.low == 50 && result.difference.high == 54);
    result = twins_result(pairs, 4);
    CHECK(result.pairs == 4 && isnan(result.difference.median) && isnan(result.difference.low) && isnan(result.image_ms) && isnan(result.prompt_difference_ms));
    twins_warn(&warnings, &result);
    CHECK(warnings.count == 1 && strstr(warnings.items[0], "4 usable image/text pairs: a result needs at least 5"));
    text_list_free(&warnings);
    result = twins_result(pairs, 0);
    CHECK(result.pairs == 0 && isnan(result.difference.median) && isnan(result.floor_ms));
    check_case("without text, the first part of the stream is compared, else the server's own time; the output names the source");
    make_pairs(pairs, 20);
    for (int i = 0; i < 20; i++) {
        pairs[i].text_ms = (double)NAN;
        pairs[i].image_chunk_ms = 90 + i;
        pairs[i].text_chunk_ms = 30 + i;
    }
    result = twins_result(pairs, 20);
    CHECK(result.basis == TWINS_CHUNK && result.pairs == 20 && result.difference.median == 60 && result.chunk_difference_ms == 60);
    twins_warn(&warnings, &result);
    CHECK(warnings.count == 1 && strstr(warnings.items[0], "on the first chunk of each stream, not on TTFT"));
    text_list_free(&warnings);
    for (int i = 0; i < 20; i++) pairs[i].text_chunk_ms = (double)NAN;
    result = twins_result(pairs, 20);
    CHECK(result.basis == TWINS_SERVER && result.pairs == 20 && result.difference.median == 49.5);
    make_pairs(pairs, 20);
    for (int i = 0; i < 9; i++) pairs[i].text_ms = (double)NAN; /* most have a text */
    CHECK(twins_result(pairs, 20).basis == TWINS_TTFT);
}
static void test_adjusted(void) {
    struct twin_pair pairs[9];
    struct text_list warnings = {NULL, 0};
    check_case("adjusted: texts of 2 tokens fewer or more, at 0.5 ms per token: 30 ms is found, and reported as adjusted");
    for (int i = 0; i < 9; i++) {
        const int64_t more = (i % 3 - 1) * 2;
        const struct twin_pair pair = {.image_ms = 5 + 0.5 * 400 + 30, .text_ms = 5 + 0.5 * (double)(400 + more), .floor_ms = 5, .image_tokens = 410,
                                       .text_tokens = 410 + more, .floor_tokens = 10, .image_cached = -1, .text_cached = -1};
        pairs[i] = pair;
    }
    struct twin_result result = twins_result(pairs, 9);
    CHECK(result.pairs == 9 && result.adjusted == 6 && result.unequal == 0);
    CHECK_NEAR(result.difference.median, 30, 1e-9);
    CHECK_NEAR(result.difference.low, 30, 1e-9);
    CHECK_NEAR(result.ms_per_token, 0.5, 1e-9);
    twins_warn(&warnings, &result);
    CHECK(warnings.count == 1 && strstr(warnings.items[0], "adjusted") != NULL);
    text_list_free(&warnings);
    check_case("without a difference to the floor, the cost of a token is unknown: omitted, not guessed");
    for (int i = 0; i < 9; i++) pairs[i].floor_tokens = pairs[i].text_tokens;
    CHECK(twins_result(pairs, 9).unequal == 6);
}
static void test_json(void) {
    check_case("the time of a prompt by the server's own clock: llama.cpp, Ollama, others");
    CHECK(twin_prompt_ms("{\"prompt_n\": 3, \"prompt_ms\": 12.5}") == 12.5 && twin_prompt_ms("{\"prompt_eval_duration\": 2500000}") == 2.5);
    CHECK(isnan(twin_prompt_ms(NULL)) && isnan(twin_prompt_ms("{}")) && isnan(twin_prompt_ms("[1]")) && isnan(twin_prompt_ms("{\"prompt_ms\": -1}")));
}

static double number_of_key(const char *key) {
    const char *object = strstr(last.out, "\"T_image_outside\": {"), *at = object ? strstr(object, key) : NULL;
    return at ? atof(at + strlen(key)) : (double)NAN;
}

/* ---- a sweep over sizes: an image takes 30 ms plus 0.6 ms per token, with one token per 28 x 28 pixels */
enum { FIXED_MS = 30, TOKENS_OF_QUESTION = 30 };
#define MS_PER_TOKEN 0.6
static int steps_of_texts; /* number of tokens by which texts can grow; 1: any number is possible */
static int is_cached_always;
static hostile_reply answer_sizes(hostile_server *server) {
    static char text[2][700];
    static hostile_step steps[2][4];
    static int turn;
    const char *body = server->request_body, *said = strstr(body, "\"text\": \""), *image = strstr(body, ";base64,");
    const int is_question = said && !strncmp(said + 9, "What is it", 10);
    int32_t side[2], image_tokens = 0;
    hostile_step *to = steps[turn ^= 1];
    if (!strncmp(server->request, "GET", 3)) {
        to[0] = (hostile_step){HOSTILE_SEND, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 0};
        to[1] = (hostile_step){HOSTILE_CLOSE, NULL, 0};
        return to;
    }
    if (!said) said = strstr(body, "\"content\": \"");
    if (image) {
        CHECK(hostile_png_size(body, side));
        image_tokens = ((side[0] + 27) / 28) * ((side[1] + 27) / 28);
    }
    long tokens = image || is_question || !said || strstr(body, "What is it") ? TOKENS_OF_QUESTION + image_tokens
                  : 5 + (long)(strcspn(said + 9, "\"") + 1) / 2 / steps_of_texts * steps_of_texts;
    snprintf(text[turn], sizeof text[turn], HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_DELTA("a") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%ld,"
             "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":%ld}},\"timings\":{\"prompt_ms\":%d.5}}\n\ndata: [DONE]\n\n", tokens,
             is_cached_always && !image ? tokens - 1 : 0, image ? 60 : 20);
    to[0] = (hostile_step){HOSTILE_WAIT, NULL, 5 + (image ? FIXED_MS + (int)(MS_PER_TOKEN * image_tokens + 0.5) : 0)};
    to[1] = (hostile_step){HOSTILE_SEND, text[turn], 0};
    to[2] = (hostile_step){HOSTILE_CLOSE, NULL, 0};
    return to;
}
/* the file of 64 tokens, whose name ends with a hash of the server */
static const char *result_of(const char *out) {
    static char path[900];
    DIR *d = opendir(in_folder(out));
    struct dirent *e;
    path[0] = 0;
    while (d && (e = readdir(d)) != NULL)
        if (strstr(e->d_name, "tokens64_")) snprintf(path, sizeof path, "%s/%s", in_folder(out), e->d_name);
    if (d) closedir(d);
    return path;
}
static double number_after(const char *text, const char *where, const char *key) {
    const char *at = text ? strstr(text, where) : NULL;
    at = at ? strstr(at, key) : NULL;
    return at ? atof(at + strlen(key)) : (double)NAN;
}
static void write_set(void) {
    FILE *f = fopen(in_folder("set.jsonl"), "w");
    char here[512] = "";
    CHECK(f != NULL && getcwd(here, sizeof here) != NULL);
    for (int i = 0; f && i < 3; i++)
        fprintf(f, "{\"id\": %d, \"image\": \"%s/samples/%s.jpg\", \"question\": \"What is it?\", \"answers\": [\"a\"]}\n", i, here, i == 1 ? "astronaut" : "cat");
    if (f) fprintf(f, "{\"id\": 3, \"question\": \"What is it?\", \"answers\": [\"a\"]}\n");
    if (f) fclose(f);
}
static void test_sweep(void) {
    static const hostile_reply none[] = {NULL};
    hostile_server server;
    char command[900], *before, *after, *journal, *twins;
    hostile_start(&server, none, 1);
    server.choose = answer_sizes;
    steps_of_texts = 1;
    write_set();
    snprintf(command, sizeof command, "sweep --endpoint http://127.0.0.1:%d --endpoint_model m --data %%F/set.jsonl --max_new_tokens 2 "
                                      "--num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 16 64 144 --twins 5 --output_dir %%F/out", server.port);
    check_case("sweep --twins over three sizes: each point has its pairs, and the report's line has the fixed cost and the cost per token");
    EXITS(run("%s", command), 0, out, "T_image_outside");
    CHECK_INT(run("report %%F/out --json"), 0);
    /* test_virtual.c checks the line on a virtual clock; here only that there is one */
    CHECK(isfinite(number_after(last.out, "\"y\": \"T_image_outside\"", "\"slope\": ")) && strstr(last.out, "\"slope_interval\": [") != NULL);
    CHECK(number_after(last.out, "\"T_image_outside\": {", "\"pairs\": ") == 15);
    CHECK(number_after(last.out, "\"T_image_outside\": {", "\"server_prompt_difference_ms\": ") == 40);
    CHECK_INT(run("report %%F/out"), 0);
    CHECK(strstr(last.out, "ms fixed + ") != NULL && strstr(last.out, "the cost of an image, measured by the client") != NULL);
    EXITS(run("report %%F/out --html"), 0, out, "T_image_outside against image tokens");
    check_case("a second run sends nothing; result files are rebuilt from the journal, word by word");
    before = check_read(result_of("out"), NULL);
    CHECK(before && number_after(before, "\"T_image_outside\": {\"ms\"", "\"image_tokens\": ") >= 40 && strstr(before, "\"T_vision_total\": null"));
    EXITS(run("%s", command), 0, err, "(0 measured now");
    CHECK_INT(unlink(result_of("out")), 0);
    CHECK_INT(run("merge %%F/out"), 0);
    after = check_read(result_of("out"), NULL);
    CHECK(before && after && !strcmp(before, after));
    FREE_ALL(before, after);
    check_case("a journal truncated before a point's twins: only these are measured again");
    journal = check_read(in_folder("out/journal.jsonl"), NULL);
    twins = NULL;
    for (char *at = journal; at && (at = strstr(at, "\"twins\": {")) != NULL; at++) twins = at;
    if (CHECK(twins != NULL)) {
        int count = 0;
        while (twins > journal && twins[-1] != '\n') twins--;
        FILE *f = fopen(in_folder("out/journal.jsonl"), "w");
        if (CHECK(f != NULL)) {
            fwrite(journal, 1, (size_t)(twins - journal), f);
            fclose(f);
        }
        CHECK_INT(run("%s --json", command), 0);
        CHECK(number_after(last.out, "{", "\"runs_now\": ") <= 3); /* the text's pairs, which came after it */
        free(journal);
        journal = check_read(in_folder("out/journal.jsonl"), NULL);
        for (char *at = journal; at && (at = strstr(at, "\"twins\": {")) != NULL; at++) count++;
        CHECK_INT(count, 9);
    }
    free(journal);
    check_case("a server that counts in steps of 5: the nearest text is corrected, and that is reported");
    steps_of_texts = 5;
    snprintf(command, sizeof command, "sweep --endpoint http://127.0.0.1:%d --endpoint_model m --data %%F/set.jsonl --num_samples 1 "
                                      "--max_new_tokens 2 --num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 64 --twins 5", server.port);
    EXITS(run("%s --output_dir %%F/adjusted", command), 0, err, "adjusted");
    CHECK_INT(run("ask samples/cat.jpg -p 'What is it?' --endpoint http://127.0.0.1:%d --endpoint_model m --twins 5 --resize 200x200 --json",
                  server.port), 0);
    CHECK(strstr(last.out, "\"method\": \"adjusted\"") != NULL && number_of_key("\"pairs_adjusted\": ") == 5);
    check_case("texts answered from a cache: no pair counts, with a warning");
    steps_of_texts = 1;
    is_cached_always = 1;
    CHECK_INT(run("ask samples/cat.jpg -p 'What is it?' --endpoint http://127.0.0.1:%d --endpoint_model m --twins 5 --resize 200x200 --json", server.port), 0);
    CHECK(strstr(last.err, "5 of 5 image/text pairs were dropped: their prompts came from the server's cache") != NULL);
    CHECK(number_of_key("\"pairs_cached\": ") == 5 && isnan(number_of_key("\"ms\": ")) | (number_of_key("\"ms\": ") == 0));
    is_cached_always = 0;
    check_case("rejected: twins without a server");
    CHECK_INT(run("sweep --synthetic tiny --data samples/questions.jsonl --twins 5 --output_dir %%F/no"), 2);
    hostile_stop(&server);
}

int main(void) {
    if (!program_begin("test_twins")) return 1;
    RUN_TESTS(test_search, test_search_ends, test_memory, test_pairs, test_adjusted, test_json);
    if (run("ask -p x --endpoint http://127.0.0.1:1 --endpoint_model m --cold") == 4 && strstr(last.err, "libcurl")) check_skip("ask --twins", "libcurl is not there");
    else {
        test_sweep();
    }
    return program_done("test_twins");
}
