/* test_virtual.c: ask --twins, audit and sweep --twins against a virtual server and clock ($B/tests/vlmprof-virtual): their output, word by word
 * (tests/golden/texts/virtual-*). Dates and the machine are masked. KEEP_TEXTS=1 writes the texts again. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"
#include <unistd.h>

#define SERVER "--endpoint http://127.0.0.1:8 --endpoint_model m "
static void server(const char *settings) { setenv("VLMPROF_VIRTUAL", settings, 1); }
static void kept(const char *name, int code) {
    char file[80];
    snprintf(file, sizeof file, "virtual-%s.txt", name);
    check_kept_run(file, code);
}
/* A server that caches images: 20 ms of each image's cost are saved if the same bytes come again. */
static void test_caches(void) {
    server("image_us=20000 cache=1");
    check_case("each request has its own image; with --same_image the server's cache is used: ask reports it, and report in a column");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--num_runs 3"), 0);
    CHECK(strstr(last.out, "cache    0 prompt tokens") && strstr(last.out, "sent as image/jpeg, ") != NULL);
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--num_runs 3 --same_image"), 0);
    CHECK(strstr(last.out, "cache    64 prompt tokens") && strstr(last.err, "this would not happen without --same_image"));
#define CACHED_SWEEP "sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 2 --quiet --output_dir %%F/"
    CHECK_INT(run(CACHED_SWEEP "su"), 0);
    CHECK_INT(run(CACHED_SWEEP "ss --same_image"), 0);
    CHECK_INT(run("report %%F/su"), 0);
    CHECK(strstr(last.out, "images: unique") && strstr(last.out, "cached %"));
    EXITS(run("compare %%F/su %%F/ss"), 2, err, "images (unique / same)");
    CHECK_INT(run(CACHED_SWEEP "sk --same_image --request_knob seed=1"), 0);
    EXITS(run("best %%F/su %%F/sk --budget_ms 1000"), 2, err, "some files were measured with --same_image and some without");
    EXITS(run("report %%F/su %%F/sk"), 0, out, "the files differ in --same_image");
}
static void test_short_answer(void) {
    check_case("TPOT is shown only for answers of at least 5 tokens");
    server("gap_us=1000");
    EXITS(run("ask samples/cat.jpg -p what " SERVER), 0, out, "needs 5 tokens or more, but the answer has 3");
}
static void test_no_image(void) {
    check_case("a data set without any image is measured, with one warning");
    server("");
    write_text(in_folder("words.jsonl"), "{\"question\": \"What?\", \"answers\": [\"cat\"]}\n{\"question\": \"Why?\", \"answers\": [\"cat\"]}\n");
    CHECK_INT(run("sweep " SERVER "--data %%F/words.jsonl --output_dir %%F/k"), 0);
    CHECK(strstr(last.err, "no record has an image") && !strstr(strstr(last.err, "no record has an image") + 1, "no record has an image"));
}
#define PAIRS "sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 64 --twins 5 --output_dir %%F/"
static int pairs_in(const char *file) {
    char *text = text_of_file(in_folder(file));
    int count = 0;
    for (const char *at = text; at && (at = strstr(at, "\"image_first\": ")) != NULL; at++) count++;
    free(text);
    return count;
}
static void test_twins(void) {
    check_case("ask --twins: an image that takes 40 ms longer than a text of the same number of tokens, and one that does not");
    server("image_us=40000 gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9");
    kept("twins", 0);
    server("gap_us=1000");
    run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9 --quiet");
    kept("twins-none", 0);
    check_case("ask: three images, each with its tokens by the rule; --twins for all of them");
    server("image_us=40000 gap_us=1000");
    run("ask samples/cat.jpg samples/astronaut.jpg samples/cat.jpg -p what " SERVER "--resize 280x280 --family qwen2_vl --twins 9");
    kept("twins-several", 0);
    run("ask samples/cat.jpg samples/astronaut.jpg -p what " SERVER "--resize 280x280 --family qwen2_vl --twins 9 --json --quiet");
    CHECK(strstr(last.out, "\"image\": null") && strstr(last.out, "\"images\": [") && strstr(last.out, "\"image_tokens_by_rule\": 200"));
    check_case("ask --twins --json: each pair, and the time to the first chunk of the stream");
    server("image_us=40000 gap_us=1000");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 6 --json"), 0);
    CHECK(strstr(last.out, "\"basis\": \"TTFT\"") && strstr(last.out, "\"first_chunk_ms\": {") && strstr(last.out, "\"image_chunk_ms\": 48."));
    {
        int pairs = 0;
        for (const char *at = last.out; (at = strstr(at, "\"image_first\": ")) != NULL; at++) pairs++;
        CHECK_INT(pairs, 6);
    }
    check_case("ask --twins 4 is rejected: an estimate needs at least 5 pairs; an image with a negative cost exits 1");
    EXITS(run("ask samples/cat.jpg -p what " SERVER "--twins 4"), 2, err, "an estimate needs at least 5 pairs");
    server("images_most=-1");
    EXITS(run("ask samples/cat.jpg -p what " SERVER "--twins 5"), 1, err, "the image adds 0 tokens to the prompt: the server dropped it");
    CHECK(strstr(last.err, " tokens, too few for an image: the server dropped an image"));
    server("image_us=-4000 gap_us=1000");
    CHECK_INT(run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 6"), 1);
    CHECK(strstr(last.err, "is wrong, because the cost of an image cannot be negative. The likely cause: ") != NULL);
    check_case("sweep --twins over three sizes: the line finds 30 ms and 0.6 ms per token");
    server("image_us=30000 token_us=600 gap_us=1000");
    run("sweep " SERVER "--data %%F/set.jsonl --max_new_tokens 2 --num_runs_per_sample 1 --family qwen2_vl --vision_tokens_list 16 64 144 --twins 5 --output_dir "
        "%%F/w --quiet");
    CHECK_INT(last.code, 0);
    run("report %%F/w");
    CHECK(strstr(last.out, " 0.600  ms/token     30.00") != NULL);
    check_case("a crash of the server or Ctrl-C between pairs: the complete pairs are kept, and the same command measures the others, with the same results");
    for (int is_crash = 0; is_crash < 2; is_crash++) {
        const char *const where = is_crash ? "crash" : "stop";
        char path[40];
        snprintf(path, sizeof path, "%s/journal.jsonl", where);
        server(is_crash ? "image_us=30000 gap_us=1000 crash_at=22" : "image_us=30000 gap_us=1000 interrupt_ms=800");
        EXITS(run(PAIRS "%s", where), is_crash ? 4 : 130, err, is_crash ? "3 of 5 pairs of sample 0 are kept" : "interrupted");
        CHECK(strstr(last.err, "run the same command again to continue") && pairs_in(path) % 5 > 0);
        server("image_us=30000 gap_us=1000");
        CHECK_INT(run(PAIRS "%s", where), 0);
        CHECK_INT(run("report %%F/%s --json", where), 0);
        CHECK(strstr(last.out, "\"pairs\": 10") != NULL);
    }
    server("image_us=40000 gap_us=1000 crash_at=25");
    EXITS(run("ask samples/cat.jpg -p what " SERVER "--resize 280x280 --twins 9 --num_runs 3"), 4, err, "of 9 pairs are complete");
    CHECK(strstr(last.out, "T_total") != NULL);
    check_case("audit: equal by the family's rule, and by another");
    server("");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit", 0);
    run("audit " SERVER "--family gemma3 --images 12 --image_pixels 100000");
    kept("audit-other", 1);
    check_case("ask: a server that drops the third image");
    server("images_most=2");
    EXITS(run("ask samples/cat.jpg samples/cat.jpg samples/cat.jpg -p what " SERVER "--resize 280x280 --family qwen2_vl"), 0, err,
          "by qwen2_vl_hf's rule images need 300: the server dropped an image");
    server("image_us=300000 interrupt_ms=2000");
    run("audit " SERVER "--family qwen2-vl --images 12 --image_pixels 100000");
    kept("audit-interrupt", 130);
}

static void write_set(void) {
    char here[2048], text[4600];
    size_t bytes = 0;
    if (!getcwd(here, sizeof here)) return;
    for (int i = 0; i < 2; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "{\"id\": %d, \"image\": \"%s/samples/%s.jpg\", \"question\": \"What is it?\", "
                                  "\"answers\": [\"a\"]}\n", i, here, i ? "astronaut" : "cat");
    write_text(in_folder("set.jsonl"), text);
}

int main(void) {
    if (!program_begin("virtual")) return 1;
    setenv("VLMPROF_TEST_SYSTEM", in_folder("no-system"), 1); /* so that the texts do not depend on this machine */
    write_set();
    program = built("tests/vlmprof-virtual");
    RUN_TESTS(test_caches, test_short_answer, test_no_image, test_twins);
    return program_done("test_virtual");
}
