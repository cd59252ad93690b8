/* Corpus scores of captions: every golden value of each image and corpus, plausible mistakes in a rule (each must miss a golden value), properties, hostile input and
 * every error code; and the built-in tokenizer against the golden tokens. */
#include "vlmprof.h"
#include "vlmprof_caption.h"
#include "support/check.h"

enum { IMAGES_MAX = 64, REFERENCES_MAX = 64, NODES_MAX = 1 << 15, TEXT_MAX = 4096 };

/* ------------------------------------------------------------------------------------------------------- the golden sets */
typedef struct set {
    char name[64];
    size_t image_count;
    vp_caption_image images[IMAGES_MAX], tokenised[IMAGES_MAX]; /* the same arrays if the set has no raw texts */
    vp_caption_scores wanted[IMAGES_MAX], corpus;
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
static vp_caption_text text_at(uint32_t node) {
    static char text[TEXT_MAX];
    vp_caption_text t;
    CHECK_INT(vp_json_text(&json, node, text, sizeof text, &t.bytes), VP_OK);
    char *copy = (char *)keep(t.bytes);
    memcpy(copy, text, t.bytes);
    t.text = copy;
    return t;
}
static vp_caption_image image_at(uint32_t object, const char *candidate, const char *references) {
    uint32_t list = vp_json_get(&json, object, references), i;
    vp_caption_image image;
    vp_caption_text *texts;
    image.candidate = text_at(vp_json_get(&json, object, candidate));
    image.reference_count = json.nodes[list].count;
    image.references = texts = (vp_caption_text *)keep(image.reference_count * sizeof *texts);
    for (i = 0; i < image.reference_count; i++) texts[i] = text_at(vp_json_at(&json, list, i));
    return image;
}
static vp_caption_scores scores_at(uint32_t object) {
    uint32_t bleu = vp_json_get(&json, object, "bleu"), i;
    vp_caption_scores s;
    for (i = 0; i < 4; i++) CHECK_INT(vp_json_to_double(&json, vp_json_at(&json, bleu, i), &s.bleu[i]), VP_OK);
    CHECK_INT(vp_json_to_double(&json, vp_json_get(&json, object, "cider_d"), &s.cider_d), VP_OK);
    CHECK_INT(vp_json_to_double(&json, vp_json_get(&json, object, "rouge_l"), &s.rouge_l), VP_OK);
    return s;
}
static void set_read(uint32_t object, set *s) {
    uint32_t list = vp_json_get(&json, object, "images"), i;
    int raw;
    CHECK_INT(vp_json_text(&json, vp_json_get(&json, object, "name"), s->name, sizeof s->name, NULL), VP_OK);
    s->corpus = scores_at(vp_json_get(&json, object, "corpus"));
    s->image_count = json.nodes[list].count;
    if (!CHECK(s->image_count <= IMAGES_MAX)) exit(1);
    for (i = 0; i < s->image_count; i++) {
        uint32_t image = vp_json_at(&json, list, i);
        raw = vp_json_get(&json, image, "candidate_tokenised") != VP_JSON_NONE;
        s->images[i] = image_at(image, "candidate", "references");
        s->tokenised[i] = raw ? image_at(image, "candidate_tokenised", "references_tokenised") : s->images[i];
        s->wanted[i] = scores_at(image);
    }
}

/* 1e-10 relative, 1e-12 absolute; NaN fails */
static int near_enough(double got, double wanted) { return fabs(got - wanted) <= 1e-12 || fabs(got - wanted) <= 1e-10 * fabs(wanted); }
static int agree(const vp_caption_scores *a, const vp_caption_scores *b) {
    int i, good = near_enough(a->cider_d, b->cider_d) && near_enough(a->rouge_l, b->rouge_l);
    for (i = 0; i < 4; i++) good = good && near_enough(a->bleu[i], b->bleu[i]);
    return good;
}
static void check_scores(const vp_caption_scores *got, const vp_caption_scores *wanted) {
    check_note(agree(got, wanted), __FILE__, __LINE__, "BLEU %.12g %.12g %.12g %.12g CIDEr-D %.12g ROUGE-L %.12g, expected %.12g %.12g %.12g %.12g %.12g %.12g",
               got->bleu[0], got->bleu[1], got->bleu[2], got->bleu[3], got->cider_d, got->rouge_l, wanted->bleu[0], wanted->bleu[1], wanted->bleu[2],
               wanted->bleu[3], wanted->cider_d, wanted->rouge_l);
}

/* --------------------------------------------------------------------------- the rules once more, slow and plain, with mistakes on demand
 * Words in place of bigrams in the penalty would change nothing: the two differ by one on both sides unless a text is empty, whose product is 0. */
typedef enum mistake { NONE, NO_PENALTY, SIGMA_5, REFERENCES_AS_DOCUMENTS, NOT_CLIPPED, BINARY_COUNTS, NO_NORM, SHORTEST, LONGER_ON_TIES, SUM_CLIP, MEAN_BLEU,
    ROUGE_PAIRED, BETA_1, MISTAKES } mistake;
static const char *const mistake_names[] = {"no mistake", "no length penalty", "sigma 5", "document frequency over references", "not clipped", "counts as 0 or 1",
    "no norm", "shortest reference", "the longer reference on ties", "clipped by the sum over references", "BLEU as a mean of images", "ROUGE of the best reference",
    "beta 1"};
enum { WORDS_MAX = 64, TEXTS_MAX = 512 };
typedef struct line { int word[WORDS_MAX], count; } line;
typedef struct plain { line lines[TEXTS_MAX]; vp_caption_text words[4096]; int word_count; } plain;
static plain book;

static int word_number(const char *text, size_t bytes) {
    int i;
    for (i = 0; i < book.word_count; i++)
        if (book.words[i].bytes == bytes && memcmp(book.words[i].text, text, bytes) == 0) return i;
    book.words[i].text = text;
    book.words[i].bytes = bytes;
    return book.word_count++;
}
static void line_read(line *l, const vp_caption_text *t) {
    size_t i = 0, start;
    l->count = 0;
    while (i < t->bytes) {
        for (start = i; i < t->bytes && t->text[i] != ' ';) i++;
        if (i > start) l->word[l->count++] = word_number(t->text + start, i - start);
        i++;
    }
}
static int same(const int *a, const int *b, int n) { return memcmp(a, b, (size_t)n * sizeof *a) == 0; }
static int occurrences(const line *l, const int *gram, int n) {
    int i, found = 0;
    for (i = 0; i + n <= l->count; i++) found += same(l->word + i, gram, n);
    return found;
}
static int first_time(const line *l, int at, int n) {
    for (int i = 0; i < at; i++)
        if (same(l->word + i, l->word + at, n)) return 0;
    return 1;
}
static double weight(const set *s, const int *gram, int n, int count, mistake m) {
    double documents = 0.0;
    size_t image, reference, at = 0;
    for (image = 0; image < s->image_count; image++) {
        int found = 0;
        at++;
        for (reference = 0; reference < s->images[image].reference_count; reference++, at++) found += occurrences(&book.lines[at], gram, n) > 0;
        documents += m == REFERENCES_AS_DOCUMENTS ? found : found > 0;
    }
    return (m == BINARY_COUNTS ? count > 0 : count) * (log((double)s->image_count) - log(documents > 1.0 ? documents : 1.0));
}
static double plain_cider(const set *s, const line *c, const line *r, mistake m) {
    double sum = 0.0, d = (c->count > 1 ? c->count - 1 : 0) - (r->count > 1 ? r->count - 1 : 0), sigma = m == SIGMA_5 ? 5.0 : 6.0;
    for (int n = 1; n <= 4; n++) {
        double product = 0.0, mine = 0.0, theirs = 0.0;
        for (int i = 0; i + n <= c->count; i++) {
            const int *gram = c->word + i;
            if (!first_time(c, i, n)) continue;
            double h = weight(s, gram, n, occurrences(c, gram, n), m);
            double w = weight(s, gram, n, occurrences(r, gram, n), m);
            product += (m != NOT_CLIPPED && w < h ? w : h) * w;
            mine += h * h;
        }
        for (int i = 0; i + n <= r->count; i++) {
            double w = first_time(r, i, n) ? weight(s, r->word + i, n, occurrences(r, r->word + i, n), m) : 0.0;
            theirs += w * w;
        }
        if (m != NO_NORM && mine != 0.0 && theirs != 0.0) product /= sqrt(mine) * sqrt(theirs);
        sum += product * (m == NO_PENALTY ? 1.0 : exp(-d * d / (2.0 * sigma * sigma)));
    }
    return sum / 4.0;
}
static void bleu_of(const double *correct, const double *guesses, double words, double reference_words, double *bleu) {
    double product = 1.0, ratio = (words + 1e-15) / (reference_words + 1e-9);
    for (int n = 0; n < 4; n++) {
        product *= (correct[n] + 1e-15) / (guesses[n] + 1e-9);
        bleu[n] = pow(product, 1.0 / (n + 1)) * (ratio < 1.0 ? exp(1.0 - 1.0 / ratio) : 1.0);
    }
}
static double subsequence(const line *a, const line *b) {
    static int row[2][WORDS_MAX + 1];
    memset(row, 0, sizeof row);
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) {
            int *now = row[(i + 1) & 1], *before = row[i & 1];
            now[j + 1] = a->word[i] == b->word[j] ? before[j] + 1 : before[j + 1] > now[j] ? before[j + 1] : now[j];
        }
    return row[a->count & 1][b->count];
}
static void plain_image(const set *s, size_t first, size_t reference_count, mistake m, vp_caption_scores *out, double *correct, double *guesses, double *words,
                        double *reference_words) {
    const line *c = &book.lines[first];
    double precision = 0.0, recall = 0.0, paired = 0.0, beta2 = m == BETA_1 ? 1.0 : 1.44;
    int n, i, closest = -1;
    out->cider_d = 0.0;
    for (size_t r = 1; r <= reference_count; r++) {
        const line *l = &book.lines[first + r];
        double common = subsequence(c, l), p = common / (c->count ? c->count : 1), q = common / (l->count ? l->count : 1);
        int nearer = closest < 0 || abs(l->count - c->count) < abs(closest - c->count);
        int tie = closest >= 0 && abs(l->count - c->count) == abs(closest - c->count) && (m == LONGER_ON_TIES ? l->count > closest : l->count < closest);
        if (!c->count && !l->count) p = q = 1.0; /* one empty word on each side */
        out->cider_d += plain_cider(s, c, l, m) * 10.0 / (double)reference_count;
        if (p > precision) precision = p;
        if (q > recall) recall = q;
        if (p > 0.0 && (1.0 + beta2) * p * q / (q + beta2 * p) > paired) paired = (1.0 + beta2) * p * q / (q + beta2 * p);
        if (m == SHORTEST ? closest < 0 || l->count < closest : nearer || tie) closest = l->count;
    }
    out->rouge_l = m == ROUGE_PAIRED ? paired : precision > 0.0 ? (1.0 + beta2) * precision * recall / (recall + beta2 * precision) : 0.0;
    *words = c->count;
    *reference_words = closest;
    for (n = 1; n <= 4; n++) {
        correct[n - 1] = 0.0;
        guesses[n - 1] = c->count >= n ? c->count - n + 1 : 0;
        for (i = 0; i + n <= c->count; i++) {
            int count = occurrences(c, c->word + i, n), clip = 0;
            if (!first_time(c, i, n)) continue;
            for (size_t r = 1; r <= reference_count; r++) {
                int there = occurrences(&book.lines[first + r], c->word + i, n);
                clip = m == SUM_CLIP ? clip + there : there > clip ? there : clip;
            }
            correct[n - 1] += count < clip ? count : clip;
        }
    }
    bleu_of(correct, guesses, *words, *reference_words, out->bleu);
}
/* Returns 1 if the rules with this mistake still give the golden values of a set. */
static int plain_agrees(const set *s, mistake m) {
    double sums[10] = {0}, one[10];
    vp_caption_scores got, mean = {0};
    size_t image, reference, at = 0;
    int i, good = 1;
    book.word_count = 0;
    for (image = 0; image < s->image_count; image++) {
        line_read(&book.lines[at++], &s->tokenised[image].candidate);
        for (reference = 0; reference < s->images[image].reference_count; reference++) line_read(&book.lines[at++], &s->tokenised[image].references[reference]);
    }
    for (image = at = 0; image < s->image_count; image++) {
        plain_image(s, at, s->images[image].reference_count, m, &got, one, one + 4, one + 8, one + 9);
        at += s->images[image].reference_count + 1;
        good = good && agree(&got, &s->wanted[image]);
        for (i = 0; i < 10; i++) sums[i] += one[i];
        mean.cider_d += got.cider_d / (double)s->image_count;
        mean.rouge_l += got.rouge_l / (double)s->image_count;
        for (i = 0; i < 4; i++) mean.bleu[i] += got.bleu[i] / (double)s->image_count;
    }
    if (m != MEAN_BLEU) bleu_of(sums, sums + 4, sums[8], sums[9], mean.bleu);
    return good && agree(&mean, &s->corpus);
}

/* ------------------------------------------------------------------------------------------------------------- properties */
static void permuted(const set *s) {
    static vp_caption_image images[IMAGES_MAX];
    vp_caption_scores each[IMAGES_MAX], again[IMAGES_MAX], corpus, other;
    size_t i, n = s->image_count;
    check_case("%s: the order of the images does not matter", s->name);
    for (i = 0; i < n; i++) images[i] = s->tokenised[(i * 7 + 3) % n]; /* 7 does not divide any set's number of images */
    CHECK(n % 7 != 0);
    CHECK_INT(vp_caption_corpus(s->tokenised, n, VP_CAPTION_TOKENISED, each, &corpus, NULL), VP_OK);
    CHECK_INT(vp_caption_corpus(images, n, VP_CAPTION_TOKENISED, again, &other, NULL), VP_OK);
    for (i = 0; i < n; i++) CHECK(memcmp(&again[i], &each[(i * 7 + 3) % n], sizeof *each) == 0);
    check_scores(&other, &corpus);
}
static void equal_to_a_reference(const set *s) {
    static vp_caption_image images[IMAGES_MAX];
    vp_caption_scores each[IMAGES_MAX], corpus;
    check_case("%s: a candidate equal to a reference has BLEU 1 and ROUGE 1", s->name);
    for (size_t i = 0; i < s->image_count; i++) {
        images[i] = s->tokenised[i];
        images[i].candidate = images[i].references[images[i].reference_count - 1];
    }
    CHECK_INT(vp_caption_corpus(images, s->image_count, VP_CAPTION_TOKENISED, each, &corpus, NULL), VP_OK);
    for (size_t i = 0; i < s->image_count; i++) {
        int words = 1;
        for (size_t k = 0; k < images[i].candidate.bytes; k++) words += images[i].candidate.text[k] == ' ';
        for (int n = 0; n < 4 && n < words; n++) CHECK_NEAR(each[i].bleu[n], 1.0, 1e-8); /* off by the 1e-9 that is added to the counts */
        CHECK_NEAR(each[i].rouge_l, 1.0, 1e-15);
        CHECK(each[i].cider_d >= 0.0 && each[i].cider_d <= 10.0 + 1e-12);
    }
}

static void check_sets(void) {
    static set sets[8];
    static vp_caption_scores each[IMAGES_MAX + 1];
    size_t bytes = 0, needed, i, k, count;
    char *file = check_read(check_golden("scores/captions.json"), &bytes);
    vp_caption_scores corpus;
    if (!file) { check_skip("captions.json", "golden file not found"); return; }
    check_case("captions.json can be parsed");
    if (!CHECK_INT(vp_json_parse(file, bytes, nodes, NODES_MAX, &json, &needed, NULL), VP_OK)) { free(file); return; }
    count = json.nodes[vp_json_get(&json, 0, "sets")].count;
    if (!CHECK(count >= 6 && count <= 8)) { free(file); return; }
    for (k = 0; k < count; k++) set_read(vp_json_at(&json, vp_json_get(&json, 0, "sets"), (uint32_t)k), &sets[k]);
    for (k = 0; k < count; k++) {
        const set *s = &sets[k];
        for (int raw = 0; raw < 2; raw++) {
            const vp_caption_image *images = raw ? s->images : s->tokenised;
            check_case("%s, %s: scores of every image and of the corpus", s->name, raw ? "built-in tokenizer" : "as it is");
            memset(each, 0x55, sizeof each);
            memset(&corpus, 0xff, sizeof corpus);
            CHECK_INT(vp_caption_corpus(images, s->image_count, raw ? VP_CAPTION_RAW : VP_CAPTION_TOKENISED, each, &corpus, NULL), VP_OK);
            for (i = 0; i < s->image_count; i++) check_scores(&each[i], &s->wanted[i]);
            CHECK_INT(*(unsigned char *)&each[s->image_count], 0x55);
            check_scores(&corpus, &s->corpus);
        }
        permuted(s);
        equal_to_a_reference(s);
    }
    for (int m = NONE; m < MISTAKES; m++) {
        int good = 1;
        check_case("golden captions and the rules with %s", mistake_names[m]);
        for (k = 0; k < count; k++)
            good = good && plain_agrees(&sets[k], (mistake)m);
        CHECK_INT(good, m == NONE);
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
    vp_caption_image images[2];
    vp_caption_scores each[2], corpus;
    char nul[] = "a\0b a\0c", other[] = "a\0b a\0d";
    check_case("words are separated by any white space, ROUGE's by single spaces, as in the reference");
    texts[0] = text_of("a dog runs");
    images[0] = image_of("a  dog\t\xE2\x80\x83runs\n", texts, 1); /* the long gap is U+2003 */
    CHECK_INT(vp_caption_corpus(images, 1, VP_CAPTION_TOKENISED, each, NULL, NULL), VP_OK);
    CHECK_NEAR(each[0].bleu[2], 1.0, 1e-8);
    /* a, an empty word and the rest: 1 of 3 words on both sides */
    CHECK_NEAR(each[0].rouge_l, 1.0 / 3.0, 1e-15);
    check_case("an empty candidate");
    images[0] = image_of("", texts, 1);
    texts[1] = text_of("");
    images[1] = image_of("", texts, 2);
    CHECK_INT(vp_caption_corpus(images, 2, VP_CAPTION_TOKENISED, each, &corpus, NULL), VP_OK);
    CHECK(each[0].rouge_l == 0.0 && each[0].cider_d == 0.0 && each[0].bleu[0] == 0.0);
    CHECK_NEAR(each[1].rouge_l, 1.0, 1e-15); /* an empty word compared with an empty word */
    CHECK(corpus.bleu[3] >= 0.0 && corpus.bleu[3] < 1e-6);
    check_case("NUL is a character, and a NULL text of zero bytes is empty");
    zero.text = NULL;
    zero.bytes = 0;
    texts[0].text = other;
    texts[0].bytes = sizeof other - 1;
    texts[1] = zero;
    images[0] = image_of("", texts, 2);
    images[0].candidate.text = nul;
    images[0].candidate.bytes = sizeof nul - 1;
    CHECK_INT(vp_caption_corpus(images, 1, VP_CAPTION_TOKENISED, each, NULL, NULL), VP_OK);
    CHECK_NEAR(each[0].bleu[0], 0.5, 1e-8);
    images[0].candidate = zero;
    CHECK_INT(vp_caption_corpus(images, 1, VP_CAPTION_RAW, each, NULL, NULL), VP_OK);
    CHECK_NEAR(each[0].rouge_l, 1.0, 1e-15);
}

static void check_errors(void) {
    vp_caption_text texts[2];
    vp_caption_image images[2];
    vp_caption_scores each[2], corpus, poison;
    vp_error error;
    char out[16];
    size_t needed = 77;
    memset(&poison, 0x55, sizeof poison);
    texts[0] = text_of("a dog");
    images[0] = images[1] = image_of("a cat", texts, 1);
    each[0] = each[1] = corpus = poison;
    check_case("what vp_caption_corpus rejects");
    CHECK_INT(vp_caption_corpus(NULL, 1, VP_CAPTION_RAW, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_INT(vp_caption_corpus(images, 0, VP_CAPTION_RAW, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "no images to score");
    CHECK_INT(vp_caption_corpus(images, (size_t)1 << 29, VP_CAPTION_RAW, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_INT(vp_caption_corpus(images, 2, (vp_caption_input)7, each, &corpus, &error), VP_ERR_RANGE);
    images[1].reference_count = 0;
    CHECK_INT(vp_caption_corpus(images, 2, VP_CAPTION_RAW, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "image 1");
    CHECK(strstr(error.text, "no reference"));
    images[1].reference_count = 1;
    images[1].references = NULL;
    CHECK_INT(vp_caption_corpus(images, 2, VP_CAPTION_RAW, each, &corpus, NULL), VP_ERR_RANGE);
    images[1] = images[0];
    images[1].candidate.text = NULL;
    CHECK_INT(vp_caption_corpus(images, 2, VP_CAPTION_RAW, each, &corpus, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "image 1");
    CHECK_INT(vp_caption_corpus(images, 2, VP_CAPTION_TOKENISED, each, &corpus, &error), VP_ERR_RANGE);
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
    static const struct { const char *text, *wanted; } cases[] = {
        {"dog'sled 'nice' 'n' 'element' 'tis", "dog sled nice 'n' element 't is"},
        {"I'd've y'all d'you ma'am O'Neill ol' more'n", "i 'd 've y' all d'you ma'am o'neill ol' more 'n"},
        {"it\xE2\x80\x99s don\xE2\x80\x99t \xE2\x80\x9Chi\xE2\x80\x9D", "it 's do n't hi"},
        {"'90s '05 '05, 1990's", "'90s '05 05 1990 's"},
        {"no. 5 no. of figs., plan B. The end", "no. 5 no of figs. plan b the end"},
        {"Ill. ill. Mon. mon. Sun. etc.", "ill. ill mon. mon. sun etc."},
        {"12/25/2014 2 1/2 5-5.5 7:00am 3.5m", "12/25/2014 2\xC2\xA0" "1/2 5-5 .5 7:00 am 3.5 m"},
        {"U.S.-China 3-year-old's a.b-c.d", "u.s.-china 3-year-old 's a.b-c d"},
        {"him/her/them/us a-b/c b/w", "him/her/them / us a-b/c b/w"},
        {"AT&T b&w A+B C++ c#", "at&t b & w a+b c++ c#"},
        {"US$5 $.50 \xC2\xA3" "5 5\xC2\xA2", "us$ 5 $ .50 # 5 5 cents"},
        {"(650) 555-1234", "-lrb-650-rrb-\xC2\xA0" "555-1234"},
        {"www.a.com x.com/ab x.com/a foo.txt. 1.jpg a@b.c.", "www.a.com x.com/ab x.com / a foo.txt 1.jpg a@b.c"},
        {"<br> <a href=\"x\"> < 5 > <b", "<br> <a\xC2\xA0href=\"x\"> < 5 > < b"},
        {":) a:(b) ^_^ <3 :P", ":-rrb- a -lrb- b -rrb- ^_^ < 3 :p"},
        {"a--b a-----b -5 ?! ... a...", "a b a ----- b -5 ?! a."},
        {"#tag #5 @user @5 __ **", "#tag # 5 @user @ 5 __ **"},
        {"\xF0\x9F\x98\x80 a\xF0\x9F\x98\x80" "b \xC2\xB0", "a b \xC2\xB0"},
        {"a\x01\xFF\xC3(b \xE2\x80", "a -lrb- b"},
        {"\xC3\x89" "COLE na\xC3\xAFve \xE6\xBC\xA2\xE5\xAD\x97", "\xC3\xA9" "cole na\xC3\xAFve \xE6\xBC\xA2\xE5\xAD\x97"},
        {"", ""},
        {" \t\n", ""},
        {"'", ""},
        {".", ""}};
    char out[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("tokens of: %s", cases[i].text);
        CHECK_INT(vp_caption_tokenise(cases[i].text, strlen(cases[i].text), out, sizeof out, NULL), VP_OK);
        CHECK_TEXT(out, cases[i].wanted);
    }
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
    vp_caption_scores *each = (vp_caption_scores *)malloc(COUNT * sizeof *each), corpus;
    check_case("%d images, each with its own word", (int)COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(lines[i], sizeof lines[i], "a dog and word%d here", (int)i);
        texts[2 * i] = text_of(lines[i]);
        texts[2 * i + 1] = text_of("a dog");
        images[i] = image_of(lines[i], texts + 2 * i, 2);
    }
    CHECK_INT(vp_caption_corpus(images, COUNT, VP_CAPTION_TOKENISED, each, &corpus, NULL), VP_OK);
    /* only n-grams with the image's own word count, and the other reference has none: half of 10 * (1 + 1 + 1 + 1) / 4 */
    for (size_t i = 0; i < COUNT; i += 777) CHECK_NEAR(each[i].cider_d, 5.0, 1e-12);
    CHECK_NEAR(corpus.cider_d, 5.0, 1e-10);
    CHECK_NEAR(corpus.bleu[3], 1.0, 1e-8);
    FREE_ALL(images, texts, lines, each);
}

/* subsequences of texts longer than 64 words, in which a carry passes from one machine word to the next */
static void check_long_texts(void) {
    static char a[4096], b[4096];
    vp_caption_text reference;
    vp_caption_image image;
    vp_caption_scores got;
    uint32_t state = 20261121;
    check_case("ROUGE-L of 300 words, seed %u", (unsigned)state);
    for (int turn = 0; turn < 20; turn++) {
        static int row[2][301];
        int i, j, words[2][300];
        size_t bytes[2] = {0, 0};
        for (i = 0; i < 600; i++) {
            char *text = i < 300 ? a : b;
            state = state * 1664525u + 1013904223u;
            words[i / 300][i % 300] = (int)(state >> 24) % (2 + turn);
            bytes[i / 300] += (size_t)snprintf(text + bytes[i / 300], 8, "%s%d", i % 300 ? " " : "", words[i / 300][i % 300]);
        }
        memset(row, 0, sizeof row);
        for (i = 0; i < 300; i++)
            for (j = 0; j < 300; j++) {
                int *now = row[(i + 1) & 1], *before = row[i & 1];
                now[j + 1] = words[0][i] == words[1][j] ? before[j] + 1 : before[j + 1] > now[j] ? before[j + 1] : now[j];
            }
        double common = row[0][300] / 300.0; /* precision and recall are equal */
        reference = text_of(b);
        image = image_of(a, &reference, 1);
        CHECK_INT(vp_caption_corpus(&image, 1, VP_CAPTION_TOKENISED, &got, NULL, NULL), VP_OK);
        CHECK_NEAR(got.rouge_l, common, 1e-14);
    }
}

int main(void) {
    check_sets();
    check_odd_texts();
    check_long_texts();
    check_many();
    check_errors();
    check_tokens();
    check_token_rules();
    check_far_looks();
    return check_done("test_caption");
}
