/* test_twins.c: the search for a text with exactly so many prompt tokens, against made-up tokenizers; pairs of times; and `run --twins` against a
 * server that takes 40 ms longer for an image, and one that takes no longer. */
#define _GNU_SOURCE
#include "server/twins.h"

#include "support/check.h"
#include "support/hostile_server.h"
#include "support/program.h"
#include "vlmprof.h"

/* ---- the search */
/* tokens of a text: a template, then one for every `letters` letters; a filler is 1 or 2 letters long */
static int64_t tokens_of(const struct twin_search *search, int64_t letters, int64_t step, int64_t template_tokens) {
    char *text = twin_text(search->filler, search->next, 7);
    const int64_t count = template_tokens + ((int64_t)strlen(text) + letters - 1) / letters * step;
    free(text);
    return count;
}
static void test_search(void) {
    for (int64_t letters = 1; letters <= 4; letters++)
        for (int64_t wanted = 40; wanted < 3000; wanted += 211) {
            struct twin_search search;
            check_case("a token for every %lld letters: %lld tokens are found", (long long)letters, (long long)wanted);
            for (twin_search_begin(wanted, &search); search.next >= 0;) twin_search_take(&search, tokens_of(&search, letters, 1, 9));
            CHECK(search.found >= 0 && search.tries < 30);
            search.next = search.found;
            CHECK_INT(tokens_of(&search, letters, 1, 9), wanted);
        }
    {
        struct twin_search search;
        check_case("tokens in steps of 3: a number between them is not found, and the search ends");
        for (twin_search_begin(101, &search); search.next >= 0;) twin_search_take(&search, tokens_of(&search, 2, 3, 0));
        CHECK_INT(search.found, -1);
        CHECK(search.tries <= TWIN_TRIES);
        check_case("a text that is too long already, and one that never grows: the search ends");
        for (twin_search_begin(5, &search); search.next >= 0;) twin_search_take(&search, tokens_of(&search, 1, 1, 9));
        CHECK_INT(search.found, -1);
        for (twin_search_begin(50, &search); search.next >= 0;) twin_search_take(&search, 20);
        CHECK_INT(search.found, -1);
        check_case("counts that make no sense end it, too");
        for (twin_search_begin(50, &search); search.next >= 0;) twin_search_take(&search, search.tries % 2 ? 10 : 90);
        CHECK(search.tries <= TWIN_TRIES);
        for (twin_search_begin(INT64_MAX, &search); search.next >= 0;) twin_search_take(&search, -1);
        CHECK_INT(search.found, -1);
    }
    check_case("texts of the same length are another text for another mark");
    {
        char *one = twin_text(0, 3, 1), *other = twin_text(0, 3, 123456789012345678u);
        CHECK_TEXT(one, "000000000001 a a a");
        CHECK_INT(strlen(one), strlen(other));
        CHECK(strcmp(one, other) != 0);
        free(one);
        free(other);
    }
}

/* ---- pairs */
static void test_pairs(void) {
    struct twin_pair pairs[20];
    struct twin_result result;
    for (int i = 0; i < 20; i++) {
        const struct twin_pair pair = {100 + 10.0 * i, 50 + 9.0 * i, 300, 300, 4, -1};
        pairs[i] = pair;
    }
    check_case("the difference is the median of the pairs' own, with a range");
    result = twins_result(pairs, 20);
    CHECK(result.pairs == 20 && result.difference.median == 59.5 && result.difference.low < 59.5 && result.difference.high > 59.5);
    CHECK(result.difference.level >= 0.95);
    check_case("pairs of which a cache knew half are left out, so are those with other numbers of tokens");
    pairs[0].image_cached = 150;
    pairs[1].text_cached = 299;
    pairs[2].text_tokens = 301;
    pairs[3].text_ms = (double)NAN;
    result = twins_result(pairs, 20);
    CHECK(result.pairs == 16 && result.cached == 2 && result.unequal == 2);
    result = twins_result(pairs, 0);
    CHECK(result.pairs == 0 && isnan(result.difference.median));
}

/* ---- against a server: an image costs 40 tokens, a text one for every two letters */
static int image_ms;
static hostile_reply answer(hostile_server *server) {
    static char text[2][600];
    static hostile_step steps[2][4];
    static int turn;
    const char *body = server->request_body, *said = strstr(body, "\"text\": \"");
    const int is_image = strstr(body, "image_url") != NULL;
    const long tokens = is_image ? 40 + 12 : said ? 5 + (long)(strcspn(said + 9, "\"") + 1) / 2 : 12;
    hostile_step *to = steps[turn ^= 1];
    snprintf(text[turn], sizeof text[turn], HOSTILE_STREAM "Connection: close\r\n\r\n" HOSTILE_DELTA("a") "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%ld,"
             "\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\ndata: [DONE]\n\n", tokens);
    to[0] = (hostile_step){HOSTILE_WAIT, NULL, is_image ? 10 + image_ms : 10};
    to[1] = (hostile_step){HOSTILE_SEND, text[turn], 0};
    to[2] = (hostile_step){HOSTILE_CLOSE, NULL, 0};
    return to;
}
static double number_of_key(const char *key) {
    const char *object = strstr(last.out, "\"T_image_outside\": {"), *at = object ? strstr(object, key) : NULL;
    return at ? atof(at + strlen(key)) : (double)NAN;
}
static void test_command(void) {
    static const hostile_reply none[] = {NULL};
    hostile_server server;
    hostile_start(&server, none, 1);
    server.choose = answer;
    for (image_ms = 40; image_ms >= 0; image_ms -= 40) {
        check_case("run --twins: an image that takes %d ms longer than a text of as many tokens", image_ms);
        CHECK_INT(run("run samples/cat.jpg -p what --resize 64x64 --endpoint http://127.0.0.1:%d --endpoint_model m --twins 9 --json", server.port), 0);
        CHECK_NEAR(number_of_key("\"ms\": "), image_ms, 12);
        CHECK(number_of_key("\"low\": ") <= image_ms + 2 && number_of_key("\"high\": ") >= image_ms - 2);
        CHECK(number_of_key("\"pairs\": ") > 8 && number_of_key("\"prompt_tokens\": ") > 51);
        CHECK(strstr(last.out, "\"T_vision_total\": null") != NULL);
    }
    check_case("in words; without an image it is refused");
    CHECK_INT(run("run samples/cat.jpg -p what --resize 64x64 --endpoint http://127.0.0.1:%d --endpoint_model m --twins 3", server.port), 0);
    CHECK(strstr(last.out, "T_image_outside") != NULL && strstr(last.out, "3 pairs in turns") != NULL);
    CHECK_INT(run("run -p what --endpoint http://127.0.0.1:%d --endpoint_model m --twins 3", server.port), 2);
    hostile_stop(&server);
}

int main(void) {
    if (!program_begin("test_twins")) return 1;
    test_search();
    test_pairs();
    if (run("run -p x --endpoint http://127.0.0.1:1 --endpoint_model m --cold") == 4 && strstr(last.err, "libcurl")) check_skip("run --twins", "libcurl is not there");
    else test_command();
    program_end();
    return check_done("test_twins");
}
