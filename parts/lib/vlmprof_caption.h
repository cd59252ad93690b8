/* vlmprof_caption.h - v0.2.0 - CIDEr-D of captions - MIT licence
 *
 * Corpus scores of captions, equal to pycocoevalcap 1.2's, with a built-in tokenizer instead of its Java program.
 * vp_caption_corpus allocates memory and releases it before it returns; vp_caption_tokenise allocates nothing. */
#ifndef VLMPROF_CAPTION_H
#define VLMPROF_CAPTION_H
#include "vlmprof.h"
#include "vlmprof_unicode.h"

VP_EXTERN_C_BEGIN

/* any bytes, not NUL-terminated; {NULL, 0} is the empty text */
typedef struct vp_caption_text { const char *text; size_t bytes; } vp_caption_text;
typedef struct vp_caption_image {
    vp_caption_text candidate;
    const vp_caption_text *references; /* [reference_count], at least 1 */
    size_t reference_count;
} vp_caption_image;

/* Splits a caption into words: lower case, Penn Treebank rules, no punctuation, one space between words. It follows the
 * rules below, but not every rule of the program that it replaces, so printed numbers that depend on it are marked
 * "built-in tokenizer".
 * in:      text      [bytes]; invalid UTF-8 bytes are dropped; any white space separates words
 * out:     out       [capacity] with NUL; on success only; must not overlap text
 *          needed    bytes without the NUL, at most 6 times the size of the text; also on VP_ERR_CAPACITY; may be NULL
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE: text is NULL but bytes > 0
 * rule:    at each position, the longest possible token wins. don't, dog's, they'll, cannot, gonna ... are split in
 *          two; ( ) [ ] { } become -lrb- -rrb- -lsb- -rsb- -lcb- -rcb-. Quotes and . ? ! , : ; - -- ... are dropped,
 *          but runs of ? and ! are kept. A blank inside a token ("2 1/2", a telephone number, a tag) becomes U+00A0
 * source:  behaviour of Stanford CoreNLP 3.4.1's PTBTokenizer -preserveLines -lowerCase and of pycocoevalcap 1.2,
 *          tokenizer/ptbtokenizer.py
 * numeric: time is linear in the number of bytes for any input
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed);

/* CIDEr-D of each image and of the corpus, 0..10; always 0 in a corpus of one image.
 * in:      images       [image_count], at least 1; document frequencies come from this corpus, so a score depends on
 *                       all images. Words are what white space separates: vp_caption_tokenise splits captions
 * out:     each         [image_count] on success only; may be NULL
 *          corpus       on success only; may be NULL
 *          error        may be NULL; names the image
 * returns: VP_OK; VP_ERR_RANGE: no image, a NULL text, an image without references (omit it), over 2^29 words in total;
 *          VP_ERR_MEMORY
 * rule:    weight of an n-gram = count * (log images - log max(1, images whose references contain it)); cosine with the
 *          candidate's weight clipped to the reference's, times exp(-d^2 / 72), d = difference in bigram counts; mean
 *          over n = 1..4 and the references, times 10. Corpus: the mean over the images
 * source:  pycocoevalcap 1.2: cider/cider_scorer.py
 * numeric: double; within 1e-10 of the reference. n-grams with equal hashes are compared, so two are never confused
 * memory:  at most 32 bytes per word, 64 per text and 100 per distinct word or n-gram of 2 to 4 words, released at the
 *          end. Time is linear in the words
 * threads: reentrant */
VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, double *each, double *corpus,
                                   vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_CAPTION_H */
