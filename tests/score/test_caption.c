/* Corpus scores of captions: every golden value of each image and corpus, hostile input and every error
 * code; and the built-in tokenizer against the golden tokens. */
#include "vlmprof_caption.h"
#include "support/check.h"
#include "support/golden_rows.h"

enum { IMAGES_MAX = 64, REFERENCES_MAX = 64, NODES_MAX = 1 << 15, TEXT_MAX = 4096 };

/* ------------------------------------------------------------------------------------------------------- the golden sets */
typedef struct set {
    char name[64];
    size_t image_count;
    vp_caption_image split[IMAGES_MAX], tokenised[IMAGES_MAX]; /* as the built-in tokenizer splits the captions, and as the set does */
    double wanted[IMAGES_MAX], corpus;
} set;
static vp_json_node nodes[NODES_MAX];
static vp_json json;
static void *kept[1 << 14];
static size_t kept_count;

static void *keep(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory || kept_count == sizeof kept / sizeof *kept) exit(1);
    return kept[kept_count++] = memory;
}
static void release(void) {
    while (kept_count) free(kept[--kept_count]);
}
static vp_caption_text text_of(const char *text) {
    vp_caption_text t;
    t.text = text;
    t.bytes = strlen(text);
    return t;
}
/* in memory of exactly its length, so that sanitizers detect an overrun */
static vp_caption_text text_at(uint32_t node, int split) {
    static char text[TEXT_MAX], words[6 * TEXT_MAX];
    vp_caption_text t;
    CHECK_INT(vp_json_text(&json, node, text, sizeof text, &t.bytes), VP_OK);
    CHECK_INT(split ? vp_caption_tokenise(text, t.bytes, words, sizeof words, &t.bytes) : VP_OK, VP_OK);
    char *copy = (char *)keep(t.bytes);
    memcpy(copy, split ? words : text, t.bytes);
    t.text = copy;
    return t;
}
static vp_caption_image image_at(uint32_t object, const char *candidate, const char *references, int split) {
    uint32_t list = vp_json_get(&json, object, references), i;
    vp_caption_image image;
    vp_caption_text *texts;
    image.candidate = text_at(vp_json_get(&json, object, candidate), split);
    image.reference_count = json.nodes[list].count;
    image.references = texts = (vp_caption_text *)keep(image.reference_count * sizeof *texts);
    for (i = 0; i < image.reference_count; i++) texts[i] = text_at(vp_json_at(&json, list, i), split);
    return image;
}
static double score_at(uint32_t object) {
    double score = (double)NAN;
    CHECK_INT(vp_json_to_double(&json, vp_json_get(&json, object, "cider_d"), &score), VP_OK);
    return score;
}
static void set_read(uint32_t object, set *s) {
    uint32_t list = vp_json_get(&json, object, "images"), i;
    CHECK_INT(vp_json_text(&json, vp_json_get(&json, object, "name"), s->name, sizeof s->name, NULL), VP_OK);
    s->corpus = score_at(vp_json_get(&json, object, "corpus"));
    s->image_count = json.nodes[list].count;
    if (!CHECK(s->image_count <= IMAGES_MAX)) exit(1);
    for (i = 0; i < s->image_count; i++) {
        uint32_t image = vp_json_at(&json, list, i);
        int raw = vp_json_get(&json, image, "candidate_tokenised") != VP_JSON_NONE;
        s->split[i] = image_at(image, "candidate", "references", 1);
        s->tokenised[i] = image_at(image, raw ? "candidate_tokenised" : "candidate", raw ? "references_tokenised" : "references", 0);
        s->wanted[i] = score_at(image);
    }
}

/* 1e-10 relative, 1e-12 absolute; NaN fails */
static int near_enough(double got, double wanted) { return fabs(got - wanted) <= 1e-12 || fabs(got - wanted) <= 1e-10 * fabs(wanted); }
/* One check of all scores of a set; a failure names the first that differs. */
static void check_scores(const set *s, const double *each, double corpus) {
    size_t i = 0;
    while (i < s->image_count && near_enough(each[i], s->wanted[i])) i++;
    check_note(i == s->image_count && near_enough(corpus, s->corpus), __FILE__, __LINE__, "image %zu of %s: %.12g, expected %.12g; corpus %.12g, expected %.12g",
               i, s->name, i < s->image_count ? each[i] : 0.0, i < s->image_count ? s->wanted[i] : 0.0, corpus, s->corpus);
}

/* ------------------------------------------------------------------------------------------------------------- properties */
static void check_sets(void) {
    static set sets[8];
    static double each[IMAGES_MAX + 1];
    size_t bytes = 0, needed, k, count;
    char *file = check_read(check_golden("scores/captions.json"), &bytes);
    double corpus;
    if (!file) { check_skip("captions.json", "golden file not found"); return; }
    check_case("captions.json can be parsed");
    if (!CHECK_INT(vp_json_parse(file, bytes, nodes, NODES_MAX, &json, &needed, NULL), VP_OK)) { free(file); return; }
    count = json.nodes[vp_json_get(&json, 0, "sets")].count;
    if (!CHECK(count >= 6 && count <= 8)) { free(file); return; }
    for (k = 0; k < count; k++) set_read(vp_json_at(&json, vp_json_get(&json, 0, "sets"), (uint32_t)k), &sets[k]);
    for (k = 0; k < count; k++) {
        const set *s = &sets[k];
        for (int raw = 0; raw < 2; raw++) {
            const vp_caption_image *images = raw ? s->split : s->tokenised;
            check_case("%s, %s: scores of every image and of the corpus", s->name, raw ? "built-in tokenizer" : "as it is");
            memset(each, 0x55, sizeof each);
            memset(&corpus, 0xff, sizeof corpus);
            CHECK_INT(vp_caption_corpus(images, s->image_count, each, &corpus, NULL), VP_OK);
            check_scores(s, each, corpus);
            CHECK_INT(*(unsigned char *)&each[s->image_count], 0x55);
        }
    }
    release();
    free(file);
}

/* -------------------------------------------------------------------------------------------------------- odd texts by hand */
static vp_caption_image image_of(const char *candidate, const vp_caption_text *references, size_t count) {
    vp_caption_image image;
    image.candidate = text_of(candidate);
    image.references = references;
    image.reference_count = count;
    return image;
}

static void check_odd_texts(void) {
    vp_caption_text texts[3], zero;
    vp_caption_image images[3];
    double each[3], corpus;
    char nul[] = "a\0b a\0c", other[] = "a\0b a\0d";
    check_case("words are separated by any white space");
    texts[0] = text_of("a dog runs");
    texts[1] = text_of("");
    images[0] = image_of("a  dog\t\xE2\x80\x83runs\n", texts, 1); /* the long gap is U+2003 */
    images[1] = image_of("", texts + 1, 1);
    images[2] = image_of("a dog runs", texts, 1);
    CHECK_INT(vp_caption_corpus(images, 3, each, &corpus, NULL), VP_OK);
    CHECK_NEAR(each[0], each[2], 0);
    CHECK(each[0] > 0 && each[1] == 0);
    check_case("a corpus of one image scores 0");
    CHECK_INT(vp_caption_corpus(images, 1, each, &corpus, NULL), VP_OK);
    CHECK(each[0] == 0 && corpus == 0);
    check_case("NUL is a character, and a NULL text of zero bytes is empty");
    zero.text = NULL;
    zero.bytes = 0;
    texts[0].text = other;
    texts[0].bytes = sizeof other - 1;
    texts[1] = zero;
    images[0] = image_of("", texts, 2);
    images[0].candidate.text = nul;
    images[0].candidate.bytes = sizeof nul - 1;
    images[1] = image_of("x", texts + 1, 1);
    CHECK_INT(vp_caption_corpus(images, 2, each, NULL, NULL), VP_OK);
    CHECK(each[0] > 0 && each[0] < 10 && each[1] == 0);
}

static void check_errors(void) {
    vp_caption_text texts[2];
    vp_caption_image images[2];
    double each[2], corpus, poison;
    vp_error error;
    char out[16];
    size_t needed = 77;
    memset(&poison, 0x55, sizeof poison);
    texts[0] = text_of("a dog");
    images[0] = images[1] = image_of("a cat", texts, 1);
    each[0] = each[1] = corpus = poison;
    check_case("what vp_caption_corpus rejects");
    CHECK_INT(vp_caption_corpus(NULL, 1, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_INT(vp_caption_corpus(images, 0, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "no images to score");
    CHECK_INT(vp_caption_corpus(images, (size_t)1 << 29, each, &corpus, &error), VP_ERR_RANGE);
    images[1].reference_count = 0;
    CHECK_INT(vp_caption_corpus(images, 2, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "image 1");
    CHECK(strstr(error.text, "no reference"));
    images[1].reference_count = 1;
    images[1].references = NULL;
    CHECK_INT(vp_caption_corpus(images, 2, each, &corpus, NULL), VP_ERR_RANGE);
    images[1] = images[0];
    images[1].candidate.text = NULL;
    CHECK_INT(vp_caption_corpus(images, 2, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "image 1");
    CHECK_INT(vp_caption_corpus(images, 2, each, &corpus, &error), VP_ERR_RANGE);
    CHECK(memcmp(&each[0], &poison, sizeof poison) == 0 && memcmp(&each[1], &poison, sizeof poison) == 0 && memcmp(&corpus, &poison, sizeof poison) == 0);
    check_case("what vp_caption_tokenise rejects");
    memset(out, 0x55, sizeof out);
    CHECK_INT(vp_caption_tokenise(NULL, 1, out, sizeof out, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_caption_tokenise("a", 1, NULL, 1, &needed), VP_ERR_RANGE);
    CHECK_INT(needed, 77);
    CHECK_INT(vp_caption_tokenise("It's", 4, out, 5, &needed), VP_ERR_CAPACITY);
    CHECK_INT(needed, 5);
    CHECK_INT(out[0], 0x55);
    CHECK_INT(vp_caption_tokenise("It's", 4, NULL, 0, &needed), VP_ERR_CAPACITY);
    CHECK_INT(vp_caption_tokenise("It's", 4, out, 6, NULL), VP_OK);
    CHECK_TEXT(out, "it 's");
    CHECK_INT(out[6], 0x55);
}

/* -------------------------------------------------------------------------------------------------------- built-in tokenizer */
/* Counts the matching golden rows. The tokenizer does not follow all of the reference's rules, so a few may differ. */
static void check_tokens(void) {
    static char text[TEXT_MAX], wanted[TEXT_MAX], got[TEXT_MAX];
    char *file = check_read(check_golden("scores/ptb_tokens.jsonl"), NULL), *p = file, *end;
    int count[2] = {0, 0}, equal[2] = {0, 0};
    if (!file) { check_skip("ptb_tokens.jsonl", "golden file not found"); return; }
    check_case("ptb_tokens.jsonl");
    for (; *p; p = end + 1) {
        size_t needed, bytes = 0;
        end = strchr(p, '\n');
        if (!end) break;
        CHECK_INT(vp_json_parse(p, (size_t)(end - p), nodes, NODES_MAX, &json, &needed, NULL), VP_OK);
        CHECK_INT(vp_json_text(&json, vp_json_get(&json, 0, "text"), text, sizeof text, &bytes), VP_OK);
        CHECK_INT(vp_json_text(&json, vp_json_get(&json, 0, "tokens"), wanted, sizeof wanted, NULL), VP_OK);
        CHECK_INT(vp_caption_tokenise(text, bytes, got, sizeof got, NULL), VP_OK);
        int ascii = json.nodes[vp_json_get(&json, 0, "ascii")].type == VP_JSON_TRUE;
        count[ascii]++;
        equal[ascii] += strcmp(got, wanted) == 0;
        if (strcmp(got, wanted)) printf("\"%s\" gives \"%s\", the reference \"%s\"\n", text, got, wanted);
    }
    printf("ptb_tokens.jsonl, built-in tokenizer: ASCII %d of %d equal, other %d of %d\n", equal[1], count[1], equal[0], count[0]);
    CHECK(count[0] + count[1] >= 103);
    CHECK((equal[0] + equal[1]) * 100 >= (count[0] + count[1]) * 97);
    free(file);
}

/* outputs of pycocoevalcap 1.2 with its Java tokenizer, one for each rule */
static void check_token_rules(void) {
    golden_rows rows;
    char out[512];
    if (!golden_open(&rows, "scores/ptb_rules.jsonl")) return;
    while (golden_next(&rows)) {
        char *text = golden_text(&rows, "text"), *tokens = golden_text(&rows, "tokens");
        check_case("tokens of: %s", text);
        CHECK_INT(vp_caption_tokenise(text, strlen(text), out, sizeof out, NULL), VP_OK);
        CHECK_TEXT(out, tokens);
        FREE_ALL(text, tokens);
    }
    CHECK_INT(rows.count, 23);
    check_case("tokens of bytes that are not UTF-8");
    CHECK_INT(vp_caption_tokenise("a\x01\xFF\xC3(b \xE2\x80", 9, out, sizeof out, NULL), VP_OK);
    CHECK_TEXT(out, "a -lrb- b");
}

/* texts that force a rule to look far ahead at every position: 200 kB each must not take long */
static void check_far_looks(void) {
    static const char *const units[] = {"a,", "<a ", "<!a ", "=", "1a.", "a@b..", "http://", "'em", "a'", "(", "((((", "-", ".", "a.", "12 ", "\xE6\xBC\xA2",
        "<a b='", "A&", "a-b ", "&amp;", "\xFF", "?", "B. ", "Ta'", "a@"};
    enum { BYTES = 200000 };
    char *text = (char *)malloc(BYTES), *out = (char *)malloc(6 * BYTES + 1);
    size_t i, at, needed;
    for (i = 0; i < sizeof units / sizeof *units; i++) {
        check_case("200 kB of \"%s\"", units[i]);
        for (at = 0; at < BYTES; at++) text[at] = units[i][at % strlen(units[i])];
        CHECK_INT(vp_caption_tokenise(text, BYTES, out, 6 * BYTES + 1, &needed), VP_OK);
        CHECK(needed <= 6 * BYTES && strlen(out) == needed);
        CHECK(vp_utf8_valid_bytes(out, needed) == needed);
    }
    FREE_ALL(text, out);
}

/* A corpus as large as COCO's validation half, to test frequencies over many images and growing memory. */
static void check_many(void) {
    enum { COUNT = 5000 };
    vp_caption_image *images = (vp_caption_image *)malloc(COUNT * sizeof *images);
    vp_caption_text *texts = (vp_caption_text *)malloc(2 * COUNT * sizeof *texts);
    char (*lines)[32] = (char (*)[32])malloc(COUNT * sizeof *lines);
    double *each = (double *)malloc(COUNT * sizeof *each), corpus;
    check_case("%d images, each with its own word", (int)COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(lines[i], sizeof lines[i], "a dog and word%d here", (int)i);
        texts[2 * i] = text_of(lines[i]);
        texts[2 * i + 1] = text_of("a dog");
        images[i] = image_of(lines[i], texts + 2 * i, 2);
    }
    CHECK_INT(vp_caption_corpus(images, COUNT, each, &corpus, NULL), VP_OK);
    /* only n-grams with the image's own word count, and the other reference has none: half of 10 * (1 + 1 + 1 + 1) / 4 */
    for (size_t i = 0; i < COUNT; i += 777) CHECK_NEAR(each[i], 5.0, 1e-12);
    CHECK_NEAR(corpus, 5.0, 1e-10);
    FREE_ALL(images, texts, lines, each);
}

int main(void) {
    RUN_TESTS(check_sets, check_odd_texts, check_many, check_errors, check_tokens, check_token_rules, check_far_looks);
    return check_done("test_caption");
}
