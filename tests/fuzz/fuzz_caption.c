/* fuzz_caption.c: any bytes to the caption tokenizer and the corpus scores. The first byte picks raw or tokenised texts; the rest is cut at 0xFF
 * into texts and at 0xFE into images, the first text of an image is its candidate. Seeds: corpus/caption. libFuzzer entry. */
#include "vlmprof.h"
#include "vlmprof_caption.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "fuzz_caption: line %d: %s\n", __LINE__, #condition); abort(); } } while (0)
enum { IMAGES_MAX = 64, TEXTS_MAX = 256 };

/* memory of its exact length shows a byte too far; what comes out is UTF-8, words with single spaces, and as long as was said */
static void tokenise(const uint8_t *data, size_t bytes) {
    char *text = (char *)malloc(bytes ? bytes : 1), *out;
    size_t needed = 0, again = 0, i;
    MUST(text != NULL);
    if (bytes) memcpy(text, data, bytes);
    MUST(vp_caption_tokenise(text, bytes, NULL, 0, &needed) == VP_ERR_CAPACITY && needed <= 6 * bytes);
    out = (char *)malloc(needed + 1);
    MUST(out != NULL);
    if (needed) MUST(vp_caption_tokenise(text, bytes, out, needed, &again) == VP_ERR_CAPACITY && again == needed);
    MUST(vp_caption_tokenise(text, bytes, out, needed + 1, &again) == VP_OK && again == needed && strlen(out) == needed);
    MUST(vp_utf8_valid_bytes(out, needed) == needed);
    for (i = 0; i < needed; i++) MUST(out[i] != ' ' || (i > 0 && i + 1 < needed && out[i - 1] != ' '));
    free(out);
    free(text);
}

static size_t cut(const uint8_t *data, size_t bytes, vp_caption_text *texts, vp_caption_image *images) {
    size_t image_count = 0, text_count = 0, start = 0, i;
    for (i = 0; i <= bytes && text_count < TEXTS_MAX && image_count < IMAGES_MAX; i++) {
        if (i < bytes && data[i] < 0xFE) continue;
        texts[text_count].text = (const char *)data + start;
        texts[text_count].bytes = i - start;
        if (image_count == 0 || (start > 0 && data[start - 1] == 0xFE)) {
            images[image_count].candidate = texts[text_count];
            images[image_count].references = texts + text_count + 1;
            images[image_count++].reference_count = 0;
        } else images[image_count - 1].reference_count++;
        text_count++;
        start = i + 1;
    }
    return image_count;
}

static void check_score(double score) { MUST(score >= 0.0 && score <= 10.0 + 1e-9); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static vp_caption_text texts[TEXTS_MAX];
    static vp_caption_image images[IMAGES_MAX];
    double each[IMAGES_MAX], corpus, alone;
    vp_error error;
    size_t count, i, without = 0;
    if (!bytes) return 0;
    vp_caption_input input = data[0] & 1 ? VP_CAPTION_RAW : VP_CAPTION_TOKENISED;
    if (input == VP_CAPTION_RAW) tokenise(data + 1, bytes - 1);
    count = cut(data + 1, bytes - 1, texts, images);
    for (i = 0; i < count; i++) without += images[i].reference_count == 0;
    error.text[0] = 0;
    if (vp_caption_corpus(images, count, input, each, &corpus, &error) != VP_OK) {
        MUST(without > 0 && error.code == VP_ERR_RANGE && error.text[0]);
        return 0;
    }
    MUST(without == 0);
    check_score(corpus);
    for (i = 0; i < count; i++) check_score(each[i]);
    MUST(vp_caption_corpus(images, 1, input, NULL, &alone, NULL) == VP_OK && alone == 0.0);
    return 0;
}
