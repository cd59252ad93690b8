/* vlmprof_caption.h - v0.2.0 - CIDEr-D, BLEU and ROUGE-L of captions - MIT licence
 *
 * Corpus scores of captions as pycocoevalcap 1.2 gives them, and a built-in tokenizer in place of its Java program. vp_caption_corpus takes
 * memory from malloc and gives it back before it returns; vp_caption_tokenise allocates nothing.
 *
 * Needs vlmprof.h and vlmprof_unicode.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_CAPTION_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_CAPTION_H
#define VLMPROF_CAPTION_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
#ifndef VLMPROF_UNICODE_H
#include "vlmprof_unicode.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* any bytes, no NUL needed; {NULL, 0} is the empty text */
typedef struct vp_caption_text { const char *text; size_t bytes; } vp_caption_text;
typedef struct vp_caption_image {
    vp_caption_text candidate;
    const vp_caption_text *references; /* [reference_count], at least 1 */
    size_t reference_count;
} vp_caption_image;
/* the texts as they are (words between white space), or through vp_caption_tokenise first */
typedef enum vp_caption_input { VP_CAPTION_TOKENISED, VP_CAPTION_RAW } vp_caption_input;
typedef struct vp_caption_scores {
    double bleu[4];  /* BLEU-1 .. BLEU-4, 0..1 */
    double cider_d;  /* 0..10; 0 for each image of a corpus of one */
    double rouge_l;  /* 0..1 */
} vp_caption_scores;

/* A caption as words: lower case, split as the Penn treebank does, without punctuation, one space between two words. Wherever a number that
 * depends on it is printed it is named "built-in tokenizer": it follows the rules below, not every rule of the program it stands for.
 * in:      text      [bytes] any bytes; what is no UTF-8 vanishes, white space of any kind is a gap
 * out:     out       [capacity] with NUL; on success only, and not inside text
 *          needed    bytes without the NUL, at most 6 times those of the text; also written with VP_ERR_CAPACITY; may be NULL
 * returns: VP_OK; VP_ERR_CAPACITY; VP_ERR_RANGE a NULL text with bytes
 * rule:    of the tokens that could begin at a place the longest; don't, dog's, they'll, cannot, gonna ... are cut in two; ( ) [ ] { } become
 *          -lrb- -rrb- -lsb- -rsb- -lcb- -rcb- and stay; the quotes and . ? ! , : ; - -- ... vanish, several of ? ! together stay; a blank inside
 *          a token ("2 1/2", a telephone number, a tag) becomes U+00A0
 * source:  behaviour of Stanford CoreNLP 3.4.1's PTBTokenizer -preserveLines -lowerCase and of pycocoevalcap 1.2, tokenizer/ptbtokenizer.py
 * numeric: time grows with the bytes, whatever they are
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed);

/* CIDEr-D, BLEU-1..4 and ROUGE-L of each image and of the corpus.
 * in:      images       [image_count], at least 1; document frequencies are those of this corpus, so a score depends on all images
 *          input        what the texts are
 * out:     each         [image_count] on success only; may be NULL
 *          corpus       on success only; may be NULL
 *          error        may be NULL; names the image
 * returns: VP_OK; VP_ERR_RANGE no image, a NULL text, an image without references (leave it out), over 2^29 words in all; VP_ERR_MEMORY
 * rule:    BLEU: counts clipped by the largest in any one reference; reference length: the closest, the shorter of two; product of (correct +
 *          1e-15) / (words + 1e-9), k-th root, times exp(1 - 1 / ratio) when ratio = (length + 1e-15) / (reference length + 1e-9) < 1; corpus:
 *          the same over summed counts.
 *          CIDEr-D: weight of an n-gram = count * (log images - log max(1, images whose references have it)); cosine with the candidate's
 *          weight clipped at the reference's, times exp(-d^2 / 72), d = difference of the numbers of bigrams; mean over n = 1..4 and the
 *          references, times 10. ROUGE-L: largest precision and largest recall over the references, beta 1.2, words between single spaces.
 *          Corpus: means over the images.
 * source:  pycocoevalcap 1.2: bleu/bleu_scorer.py, cider/cider_scorer.py, rouge/rouge.py
 * numeric: double; as the reference within 1e-10. n-grams are compared, not only hashed: none is taken for another
 * memory:  at most 32 bytes a word, 64 a text and 100 a different word or n-gram of 2 to 4 words, released at the end. Time grows with the
 *          words, for ROUGE-L also with words of candidate * words of reference / 64
 * threads: reentrant */
VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, vp_caption_input input, vp_caption_scores *each,
                                   vp_caption_scores *corpus, vp_error *error);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_CAPTION_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_CAPTION_IMPLEMENTATION)) && !defined(VLMPROF_CAPTION_IMPLEMENTATION_DONE)
#define VLMPROF_CAPTION_IMPLEMENTATION_DONE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------- built-in tokenizer
 * Every place of a text is offered to all rules. A rule says where its token stops and how far it reaches, what it only looked ahead at
 * included; the furthest reach wins, the first offer when two reach equally far. So does the reference's lexer; each rule was held against what
 * that program prints (tests/test_caption.c has a text or more for each). */
typedef enum vp_impl_caption_kind {
    VP_IMPL_CAPTION_DROP,  /* punctuation that is no token */
    VP_IMPL_CAPTION_TEXT,  /* a token as it stands */
    VP_IMPL_CAPTION_SAID,  /* a token that is said otherwise */
    VP_IMPL_CAPTION_QUOTES /* a token whose typographic quotes are said in ASCII */
} vp_impl_caption_kind;
typedef struct vp_impl_caption_lexer {
    const char *p, *end, *stop, *reach, *said; /* the best offer at p */
    vp_impl_caption_kind kind;
    /* what is searched in vain is not searched again before these places: > of a tag, @, a hyphen, the end of a file's name */
    const char *no_close, *no_at, *no_hyphen, *no_file;
} vp_impl_caption_lexer;

static void vp_impl_caption_offer(vp_impl_caption_lexer *l, const char *stop, const char *reach, vp_impl_caption_kind kind, const char *said) {
    if (stop <= l->p || reach <= l->reach) return;
    l->stop = stop;
    l->reach = reach;
    l->kind = kind;
    l->said = said;
}
static void vp_impl_caption_token(vp_impl_caption_lexer *l, const char *stop) { vp_impl_caption_offer(l, stop, stop, VP_IMPL_CAPTION_TEXT, NULL); }

static int vp_impl_caption_upper(int c) { return c >= 'A' && c <= 'Z'; }
static int vp_impl_caption_ascii_letter(int c) { return (c >= 'a' && c <= 'z') || vp_impl_caption_upper(c); }
static int vp_impl_caption_ascii_digit(int c) { return c >= '0' && c <= '9'; }
static int vp_impl_caption_ascii_alnum(int c) { return vp_impl_caption_ascii_letter(c) || vp_impl_caption_ascii_digit(c); }
/* c is one of the characters of a list; NUL never is */
static int vp_impl_caption_in(int c, const char *list) { return c && strchr(list, c) != NULL; }
/* the byte at p; 0 behind the end and for all that is not ASCII */
static int vp_impl_caption_at(const vp_impl_caption_lexer *l, const char *p) { return p < l->end && (unsigned char)*p < 0x80 ? *p : 0; }

/* the byte `count` places behind p <= end, as above */
static int vp_impl_caption_ahead(const vp_impl_caption_lexer *l, const char *p, size_t count) {
    return (size_t)(l->end - p) > count ? vp_impl_caption_at(l, p + count) : 0;
}

/* Where a lower-case ASCII text ends that stands at p in either case, or NULL. */
static const char *vp_impl_caption_says(const vp_impl_caption_lexer *l, const char *p, const char *text) {
    for (; *text; text++, p++) {
        int c = vp_impl_caption_at(l, p);
        if ((vp_impl_caption_upper(c) ? c + 32 : c) != *text) return NULL;
    }
    return p;
}

/* letters behind ASCII, with the marks that go with them, as the reference has them */
static int vp_impl_caption_unicode_letter(uint32_t c) {
    if (c > 0xFFFF) return 0; /* Java has two halves there, which the reference takes for nothing */
    if (c == 0xAD || c == 0x670 || (c >= 0x2C2 && c <= 0x36F) || (c >= 0x483 && c <= 0x487) || (c >= 0x64B && c <= 0x65E)) return 1;
    if (c >= 0x591 && c <= 0x5C7) return c != 0x5BE && c != 0x5C0 && c != 0x5C3 && c != 0x5C6;
    if (c >= 0xE31 && c <= 0xE4E) return c != 0xE3F;
    if (c >= 0x900 && c < 0xE00) return c != 0x964 && c != 0x965 && !vp_unicode_is_digit(c);
    if ((c >= 0x3041 && c <= 0x3094) || (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7A3)) return 1; /* quickly */
    return vp_unicode_class(c) == VP_UNICODE_LETTER;
}

/* bytes of the letter at p, or 0; the same for a letter or digit */
static size_t vp_impl_caption_letter(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 0;
    if (p >= l->end) return 0;
    if ((unsigned char)*p < 0x80) return (size_t)vp_impl_caption_ascii_letter(*p);
    return vp_impl_caption_unicode_letter(vp_unicode_get(p, l->end, &bytes)) ? bytes : 0;
}
static size_t vp_impl_caption_alnum(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 0;
    if (p >= l->end) return 0;
    if ((unsigned char)*p < 0x80) return (size_t)vp_impl_caption_ascii_alnum(*p);
    return vp_unicode_is_digit(vp_unicode_get(p, l->end, &bytes)) ? bytes : vp_impl_caption_letter(l, p);
}
static const char *vp_impl_caption_letters(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes;
    while ((bytes = vp_impl_caption_letter(l, p)) > 0) p += bytes;
    return p;
}
static const char *vp_impl_caption_alnums(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes;
    while ((bytes = vp_impl_caption_alnum(l, p)) > 0) p += bytes;
    return p;
}
static const char *vp_impl_caption_ascii_alnums(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p))) p++;
    return p;
}
static const char *vp_impl_caption_digits(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_ascii_digit(vp_impl_caption_at(l, p))) p++;
    return p;
}
/* behind an apostrophe at p (' or U+2019), or NULL */
static const char *vp_impl_caption_apostrophe(const vp_impl_caption_lexer *l, const char *p) {
    if (vp_impl_caption_at(l, p) == '\'') return p + 1;
    return l->end - p >= 3 && memcmp(p, "\xE2\x80\x99", 3) == 0 ? p + 3 : NULL;
}

/* Letters, digits behind the first, and . ! ? between a letter and what stands before: "a.b.c", "hello.world". */
static const char *vp_impl_caption_word(const vp_impl_caption_lexer *l, const char *p) {
    if (!vp_impl_caption_letter(l, p)) return p;
    for (;;) {
        p = vp_impl_caption_alnums(l, p);
        if (!vp_impl_caption_in(vp_impl_caption_at(l, p), ".!?") || !vp_impl_caption_letter(l, p + 1)) return p;
        p++;
    }
}

/* behind 's 'm 'd 're 've 'll at p, or NULL */
static const char *vp_impl_caption_clitic(const vp_impl_caption_lexer *l, const char *p) {
    const char *q = vp_impl_caption_apostrophe(l, p), *found;
    if (!q) return NULL;
    if ((found = vp_impl_caption_says(l, q, "re")) || (found = vp_impl_caption_says(l, q, "ve"))) return found;
    if ((found = vp_impl_caption_says(l, q, "ll"))) return found;
    return vp_impl_caption_in(vp_impl_caption_at(l, q), "msdMSD") ? q + 1 : NULL;
}

/* Longest match of a short pattern of items {class, least, most}: 9 digit, s blank or hyphen, ~ slash or hyphen, b blank, others
 * themselves. NULL: none. The items are few and short, so the depth and the tries are too. */
static const char *vp_impl_caption_pattern(const vp_impl_caption_lexer *l, const char *p, const char *items) {
    const char *best = NULL, *q = p, *found;
    int count, least, most;
    if (!*items) return p;
    least = items[1] - '0';
    most = items[2] - '0';
    for (count = 0; count <= most; count++) {
        int c;
        if (count >= least && (found = vp_impl_caption_pattern(l, q, items + 3)) && (!best || found > best)) best = found;
        c = vp_impl_caption_at(l, q);
        if (!(*items == '9' ? vp_impl_caption_ascii_digit(c) : *items == 's' ? vp_impl_caption_in(c, " -") : *items == 'b' ? c == ' '
              : *items == '~' ? vp_impl_caption_in(c, "-/") : c == *items)) break;
        q++;
    }
    return best;
}

/* ---- words with an apostrophe, and words that are cut in two */
static void vp_impl_caption_rule_contractions(vp_impl_caption_lexer *l, const char *word) {
    static const char *const cut[] = {"cannot", "gonna", "gotta", "lemme", "gimme", "wanna"};
    static const char *const whole[] = {"c'mon", "s'mores", "ev'ry", "li'l", "nat'l", "e'er", "o'o", "c'est", "cap'n", "ol'", "somethin'", "dunkin'",
                                        "cont'd", "nor'easter"};
    const char *p = l->p, *q, *after, *found;
    size_t i;
    int c = vp_impl_caption_at(l, p);
    for (i = 0; i < sizeof cut / sizeof *cut; i++)
        if ((found = vp_impl_caption_says(l, p, cut[i]))) vp_impl_caption_offer(l, p + 3, found, VP_IMPL_CAPTION_TEXT, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, p, whole[i]))) vp_impl_caption_token(l, found);
    if ((found = vp_impl_caption_clitic(l, word))) vp_impl_caption_offer(l, word, found, VP_IMPL_CAPTION_TEXT, NULL);
    after = vp_impl_caption_apostrophe(l, word);
    if (l->end - word > 3 && memcmp(word, "\xE2\x80\x98", 3) == 0 && vp_impl_caption_in(vp_impl_caption_at(l, word + 3), "tT")) after = word + 3;
    if (!after) return;
    q = vp_impl_caption_letters(l, p);
    if (q != word) return; /* only words of letters */
    if (vp_impl_caption_in(vp_impl_caption_at(l, word - 1), "nN") && vp_impl_caption_in(vp_impl_caption_at(l, after), "tT")) {
        if (word - 1 > p) vp_impl_caption_offer(l, word - 1, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
        else {
            const char *stop = vp_impl_caption_letters(l, after); /* n't */
            vp_impl_caption_offer(l, stop, stop, VP_IMPL_CAPTION_QUOTES, NULL);
        }
    }
    if (word == p + 1 && vp_impl_caption_in(c, "yY") && vp_impl_caption_letter(l, after))
        vp_impl_caption_offer(l, after, after + 1, VP_IMPL_CAPTION_TEXT, NULL);
    if (word == p + 1 && vp_impl_caption_in(c, "lLdDjJ")) vp_impl_caption_token(l, after);
    c = vp_impl_caption_at(l, after);
    if (word > p + 1 && vp_impl_caption_in(vp_impl_caption_at(l, word - 1), "aeiouyAEIOUY")
        && (vp_impl_caption_in(c, "aeiou") || vp_impl_caption_upper(c)))
        vp_impl_caption_token(l, vp_impl_caption_letters(l, after));
}

/* At an apostrophe: 's alone, 'em, 'n', 'til, '90s, '05. */
static void vp_impl_caption_rule_apostrophe(vp_impl_caption_lexer *l) {
    static const char *const whole[] = {"em", "til", "till", "cause", "n"};
    const char *after = vp_impl_caption_apostrophe(l, l->p), *found;
    size_t i;
    if (!after) return;
    found = vp_impl_caption_clitic(l, l->p);
    if (found && *l->p != '\'') vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_QUOTES, NULL);
    else if (found && !vp_impl_caption_ascii_letter(vp_impl_caption_at(l, found)))
        vp_impl_caption_offer(l, found, found + (found < l->end), VP_IMPL_CAPTION_QUOTES, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, after, whole[i]))) {
            if (whole[i][0] == 'n' && vp_impl_caption_apostrophe(l, found)) found = vp_impl_caption_apostrophe(l, found);
            vp_impl_caption_token(l, found);
        }
    if ((found = vp_impl_caption_pattern(l, after, "922"))) {
        if (*after > '1' && after[1] == '0' && vp_impl_caption_at(l, found) == 's') vp_impl_caption_token(l, found + 1);
        if (found == l->end || vp_impl_caption_at(l, found) == ' ') vp_impl_caption_token(l, found);
    }
    if (after == l->p + 1 && (vp_impl_caption_says(l, after, "tis") || vp_impl_caption_says(l, after, "twas")))
        vp_impl_caption_offer(l, after + 1, after + 3, VP_IMPL_CAPTION_TEXT, NULL);
}

/* " text " in lower case, to look up in lists; key has bytes + 3 */
static void vp_impl_caption_key(char *key, const char *text, size_t bytes) {
    size_t i;
    key[0] = key[bytes + 1] = ' ';
    key[bytes + 2] = 0;
    for (i = 0; i < bytes; i++) key[i + 1] = (char)(vp_impl_caption_upper(text[i]) ? text[i] + 32 : text[i]);
}

/* ---- abbreviations that keep their period: always, or only before a number; "u.s.", and a letter alone unless a sentence begins behind it */
static void vp_impl_caption_rule_abbreviations(vp_impl_caption_lexer *l) {
    static const char always[] =
        " adj adm adv al ala alex apr ariz assn assoc asst atty attys aug ave bancorp bhd bldg blvd brig bros calif capt cf cie cmdr co col "
        "colo comdr conn corp cos cpl ct dak dec dept det dr drs elec ens esq est etc ext feb fla fri ft ga gen gov govs hon inc ind insp "
        "intl invt jan jos jr jul jun kan kans ky lieut lt ltd maj mar md messrs mfg mich minn mlle mme mo mon mont mr mrs ms msgr mt mtg "
        "natl neb nev nov oct okla penn pfc ph.d ed.d ph plc ppte pptes ppty pptys pres prof profs pte ptes pty ptys pvt rd rep reps rev rt "
        "sen sens sep sept seq sfc sgt spc sq sr st ste supt supts sys tel tenn thu thurs treas tue tues univ va vs vt wed wis wisc wm wyo "
        "cont'd ";
    static const char capital[] = " ark az del ill la mass miss ore pa tex wash ";
    static const char before_number[] = " art ca fig figs no nos op pp prop ";
    static const char starters[] =
        " a about according additionally after an as at but earlier he here however if in it last many more now once one other our she since "
        "so some such that the their then there these they this we what when while yet you ";
    const char *p = l->p, *q = p, *after;
    char key[12];
    size_t bytes;
    int c;
    while (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)) && vp_impl_caption_ahead(l, q, 1) == '.'
           && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 2))) q += 2;
    if (q > p && vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)) && vp_impl_caption_ahead(l, q, 1) == '.') vp_impl_caption_token(l, q + 2);
    for (bytes = 0, q = p; bytes < 9; bytes++, q++) { /* the letters before the last period */
        c = vp_impl_caption_at(l, q);
        if (c == '.' && !vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 1))) break;
        if (!vp_impl_caption_ascii_letter(c) && c != '.' && c != '\'') return;
    }
    if (!bytes || vp_impl_caption_at(l, q) != '.') return;
    vp_impl_caption_key(key, p, bytes);
    q++;
    for (after = q; vp_impl_caption_at(l, after) == ' '; after++) {}
    if (bytes == 1) {
        char next[12];
        size_t length = (size_t)(vp_impl_caption_ascii_alnums(l, after) - after);
        c = vp_impl_caption_at(l, after + length);
        if (after > q && vp_impl_caption_upper(vp_impl_caption_at(l, after)) && length < sizeof next - 2) {
            vp_impl_caption_key(next, after, length);
            if ((c == ' ' || after + length == l->end) && strstr(starters, next)) return;
            if (c == '.' && strstr(" mr ms ", next)) return;
        }
        vp_impl_caption_token(l, q);
    }
    if (strstr(always, key) || (vp_impl_caption_upper(*p) && strstr(capital, key))) vp_impl_caption_token(l, q);
    if (vp_impl_caption_at(l, q) == ' ') q++;
    if (strstr(before_number, key) && vp_impl_caption_ascii_digit(vp_impl_caption_at(l, q)))
        vp_impl_caption_offer(l, l->p + bytes + 1, q + 1, VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- numbers, dates, fractions, telephone numbers, words with hyphens and slashes */
static void vp_impl_caption_rule_numbers(vp_impl_caption_lexer *l) {
    static const char *const patterns[] = {"912~11912~11924", "914s11914/11914", "914/11914", "(11923)11b01934s01935", "+02924s11924s11934s01935",
                                           "+02924s11934s01935", "+02924.11924.11934.11935", "924.11934.11935"};
    const char *p = l->p, *q, *found;
    size_t i;
    int c = vp_impl_caption_at(l, p);
    if (!vp_impl_caption_in(c, "+-.,:(") && !vp_impl_caption_ascii_digit(c)) return;
    for (i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if ((found = vp_impl_caption_pattern(l, p, patterns[i]))) vp_impl_caption_token(l, found);
    p += vp_impl_caption_in(c, "+-");
    q = vp_impl_caption_digits(l, p);
    while (vp_impl_caption_in(vp_impl_caption_at(l, q), ".,:") && vp_impl_caption_ascii_digit(vp_impl_caption_ahead(l, q, 1)))
        q = vp_impl_caption_digits(l, q + 1);
    if (q > p) vp_impl_caption_token(l, q);
}

static void vp_impl_caption_rule_hyphens(vp_impl_caption_lexer *l) {
    const char *p = l->p, *q, *r;
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || p < l->no_hyphen) return;
    q = p;
    while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, q)) || vp_impl_caption_in(vp_impl_caption_at(l, q), ".,")) q++;
    if (vp_impl_caption_at(l, q) != '-' || !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, q, 1))) {
        l->no_hyphen = q;
        return;
    }
    while (vp_impl_caption_at(l, q) == '-' && vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, q, 1))) {
        r = q + 1;
        q = vp_impl_caption_ascii_alnums(l, r);
        while (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, r)) && vp_impl_caption_ahead(l, r, 1) == '.'
               && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, r, 2))) r += 2;
        if (r + 2 > q && vp_impl_caption_ascii_letter(vp_impl_caption_at(l, r)) && vp_impl_caption_ahead(l, r, 1) == '.' && r[-1] == '.') q = r + 2;
    }
    vp_impl_caption_token(l, q);
}

/* one part of a/b/c: letters and digits, then up to two hyphens with letters; NULL when there is none */
static const char *vp_impl_caption_slash_part(const vp_impl_caption_lexer *l, const char *p) {
    const char *q = vp_impl_caption_ascii_alnums(l, p);
    int i;
    if (q == p) return NULL;
    for (i = 0; i < 2 && vp_impl_caption_at(l, q) == '-' && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, q, 1)); i++)
        for (q++; vp_impl_caption_ascii_letter(vp_impl_caption_at(l, q)); q++) {}
    return q;
}

static void vp_impl_caption_rule_compounds(vp_impl_caption_lexer *l) {
    const char *p = l->p, *q = vp_impl_caption_slash_part(l, p), *r;
    size_t bytes;
    int i, c;
    for (i = 0; q && i < 2; i++) { /* up to two slashes */
        r = q + (vp_impl_caption_at(l, q) == '\\');
        if (vp_impl_caption_ascii_digit(q[-1]) && l->end - r > 3 && memcmp(r, "\xE2\x81\x84", 3) == 0 && vp_impl_caption_ascii_digit(r[3])) r += 2;
        else if (vp_impl_caption_at(l, r) != '/') break;
        if (!(q = vp_impl_caption_slash_part(l, r + 1))) break;
        vp_impl_caption_token(l, q);
    }
    for (q = p; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
    while (q > p) { /* AT&T, A+B */
        r = vp_impl_caption_says(l, q, "&amp;");
        if (!r && vp_impl_caption_in(vp_impl_caption_at(l, q), "&+")) r = q + 1;
        if (!r || !vp_impl_caption_upper(vp_impl_caption_at(l, r))) break;
        for (q = r; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
        vp_impl_caption_token(l, q);
    }
    q = p;
    c = vp_impl_caption_at(l, p);
    if (vp_impl_caption_in(c, "dlno") || (vp_impl_caption_upper(c) && c != 'I' && c != 'Y')) { /* o'clock, d'you, O'Neill */
        int digits = vp_impl_caption_in(c, "dloDLO");
        r = vp_impl_caption_apostrophe(l, p + 1);
        bytes = !r ? 0 : digits ? vp_impl_caption_alnum(l, r) : vp_impl_caption_letter(l, r);
        if (bytes && (digits ? vp_impl_caption_alnum(l, r + bytes) : vp_impl_caption_letter(l, r + bytes))) q = r;
    }
    q = vp_impl_caption_alnums(l, q);
    while (q > p) { /* a_b, and hyphens with letters of any kind */
        bytes = vp_impl_caption_in(vp_impl_caption_at(l, q), "-_") ? 1 : 0;
        if (l->end - q >= 3 && (memcmp(q, "\xE2\x80\x90", 3) == 0 || memcmp(q, "\xE2\x80\x91", 3) == 0)) bytes = 3;
        if (!bytes || !vp_impl_caption_alnum(l, q + bytes)) break;
        q = vp_impl_caption_alnums(l, q + bytes);
    }
    vp_impl_caption_token(l, q);
    if (q > p && vp_impl_caption_at(l, q) == '.' && vp_impl_caption_in(vp_impl_caption_ahead(l, q, 1), ",;:"))
        vp_impl_caption_offer(l, q + 1, q + 2, VP_IMPL_CAPTION_TEXT, NULL); /* a period before a comma ends no sentence */
}

/* ---- addresses, file names, @names, #tags, tags in < > */
static int vp_impl_caption_address(int c) { return c > ' ' && !vp_impl_caption_in(c, "\"<>|()"); }

/* behind the ASCII or other characters of an address that begins at p */
static const char *vp_impl_caption_address_run(const vp_impl_caption_lexer *l, const char *p) {
    size_t bytes = 1;
    for (; p < l->end; p += bytes) {
        uint32_t c = vp_unicode_get(p, l->end, &bytes);
        if (c < 0x80 ? !vp_impl_caption_address((int)c) : vp_unicode_is_space(c)) break;
    }
    return p;
}

/* www.a.com/b, a.com/b: from behind the ending; the path has at least two characters */
static const char *vp_impl_caption_path(const vp_impl_caption_lexer *l, const char *p) {
    const char *q;
    if (vp_impl_caption_at(l, p) != '/') return p;
    q = vp_impl_caption_address_run(l, p + 1);
    while (q > p + 1 && vp_impl_caption_in(q[-1], ".!?(){},-")) q--;
    return q > p + 2 ? q : p;
}

static void vp_impl_caption_rule_addresses(vp_impl_caption_lexer *l) {
    static const char *const endings[] = {"com", "net", "org", "edu"};
    const char *p = l->p + (*l->p == '<'), *q, *r, *at = NULL, *found; /* <me@x.org> too */
    size_t i;
    if ((q = vp_impl_caption_says(l, p, "http://")) || (q = vp_impl_caption_says(l, p, "https://"))) {
        for (r = vp_impl_caption_address_run(l, q); r > q && vp_impl_caption_in(r[-1], ".!?(){},-");) r--;
        if (r > q + 1 && p == l->p) vp_impl_caption_token(l, r);
    }
    q = vp_impl_caption_letters(l, p);
    for (r = q; p == l->p && vp_impl_caption_at(l, r) == '.' && vp_impl_caption_letter(l, r + 1);) {
        r = vp_impl_caption_letters(l, r + 1);
        for (i = 0; i < sizeof endings / sizeof *endings; i++)
            if (r - p > 4 && r[-4] == '.' && (found = vp_impl_caption_says(l, r - 3, endings[i])) && found == r)
                vp_impl_caption_token(l, vp_impl_caption_path(l, r));
    }
    if (!vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || p < l->no_at) return;
    q = vp_impl_caption_address_run(l, p);
    for (r = p; r < q && *r != '{' && *r != '}';) r++;
    q = r;
    for (r = p; r + 1 < q; r++)
        if (*r == '@' && r[1] != '.') at = r;
    if (!at) {
        l->no_at = q;
        return;
    }
    for (r = at + 1; r < q && !(*r == '.' && (r + 1 == q || r[1] == '.')); r++) {}
    if (p == l->p) vp_impl_caption_token(l, r);
    else if (vp_impl_caption_at(l, r) == '>') vp_impl_caption_token(l, r + 1);
}

/* letters and digits with periods between, the last of them a known ending; behind it the text ends or . ? ! , or white space follows */
static void vp_impl_caption_rule_files(vp_impl_caption_lexer *l) {
    static const char endings[] =
        " bat bmp c class cgi cpp dll doc docx exe gif gz h htm html jar java jpeg jpg mov mp3 mp4 pdf php pl png ppt ps py sql tar txt wav "
        "x xml zip wma wmv avi flv 3gp mpg ";
    const char *q = vp_impl_caption_alnums(l, l->p), *start, *best = NULL;
    char key[8];
    size_t bytes;
    if (q == l->p || l->p < l->no_file) return;
    while (vp_impl_caption_at(l, q) == '.' && vp_impl_caption_alnum(l, q + 1)) {
        int c;
        start = q + 1;
        q = vp_impl_caption_alnums(l, start);
        bytes = (size_t)(q - start);
        if (bytes > 5) continue;
        vp_impl_caption_key(key, start, bytes);
        c = vp_impl_caption_at(l, q);
        if (strstr(endings, key) && (q >= l->end || vp_impl_caption_in(c, " \t\n\r.?!,"))) best = q;
    }
    if (best) vp_impl_caption_offer(l, best, best + (best < l->end), VP_IMPL_CAPTION_TEXT, NULL);
    else l->no_file = q;
}

static const char *vp_impl_caption_blanks(const vp_impl_caption_lexer *l, const char *p) {
    while (vp_impl_caption_at(l, p) == ' ') p++;
    return p;
}
static const char *vp_impl_caption_tag_name(const vp_impl_caption_lexer *l, const char *p) {
    if (vp_impl_caption_ascii_letter(vp_impl_caption_at(l, p)))
        while (vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, p)) || vp_impl_caption_in(vp_impl_caption_at(l, p), ":.-_")) p++;
    return p;
}

static void vp_impl_caption_rule_tags(vp_impl_caption_lexer *l) {
    const char *p = l->p + 1, *q;
    int c = vp_impl_caption_at(l, p), quote;
    if (vp_impl_caption_in(c, "!?")) {
        c = vp_impl_caption_ahead(l, p, 1);
        if ((!vp_impl_caption_ascii_letter(c) && c != '-') || p < l->no_close) return;
        for (q = p; q < l->end && *q != '>' && *q != '\n' && *q != '\r'; q++) {}
        if (vp_impl_caption_at(l, q) == '>') vp_impl_caption_token(l, q + 1);
        else l->no_close = q;
        return;
    }
    p += c == '/';
    q = vp_impl_caption_tag_name(l, p);
    if (q == p) return;
    for (;;) { /* names, some with ='value' or ="value" */
        p = vp_impl_caption_blanks(l, q);
        if (p == q || !vp_impl_caption_ascii_letter(vp_impl_caption_at(l, p))) break;
        q = vp_impl_caption_tag_name(l, p);
        p = vp_impl_caption_blanks(l, q);
        if (vp_impl_caption_at(l, p) != '=') continue;
        p = vp_impl_caption_blanks(l, p + 1);
        quote = vp_impl_caption_at(l, p);
        if (!vp_impl_caption_in(quote, "'\"")) return;
        for (p++; p < l->end && *p != quote && *p != '\n' && *p != '\r'; p++) {}
        if (vp_impl_caption_at(l, p) != quote) return;
        q = p + 1;
    }
    p += vp_impl_caption_at(l, p) == '/';
    p = vp_impl_caption_blanks(l, p);
    if (vp_impl_caption_at(l, p) == '>') vp_impl_caption_token(l, p + 1);
}

/* ---- smileys: :) ;-P <:( and ^_^ */
static void vp_impl_caption_rule_smileys(vp_impl_caption_lexer *l) {
    const char *p = l->p;
    int paren = vp_impl_caption_at(l, p) == '(', c;
    const char *q = p + paren;
    if (vp_impl_caption_in(vp_impl_caption_at(l, q), "-^x=~<>'")) {
        q++;
        if (vp_impl_caption_at(l, q) == '_' || (paren && vp_impl_caption_at(l, q) == '.')) q++;
        else if (!paren) q = l->end;
        if (vp_impl_caption_in(vp_impl_caption_at(l, q), "-^x=~<>'") && (!paren || vp_impl_caption_ahead(l, q, 1) == ')'))
            vp_impl_caption_token(l, q + 1 + paren);
    }
    p += vp_impl_caption_in(vp_impl_caption_at(l, p), "<>");
    if (!vp_impl_caption_in(vp_impl_caption_at(l, p), ":;=")) return;
    p += vp_impl_caption_in(vp_impl_caption_ahead(l, p, 1), "-o*'") && vp_impl_caption_in(vp_impl_caption_ahead(l, p, 2), "()DPdpO\\{@|[]") ? 2 : 1;
    c = vp_impl_caption_at(l, p);
    if (vp_impl_caption_in(c, "()DPdpO\\{@|[]") && !vp_impl_caption_ascii_alnum(vp_impl_caption_ahead(l, p, 1)))
        vp_impl_caption_offer(l, p + 1, p + 1 + (p + 1 < l->end), VP_IMPL_CAPTION_TEXT, NULL);
}

/* ---- everything of one character, and runs of one */
static void vp_impl_caption_rule_ascii(vp_impl_caption_lexer *l, int c) {
    static const struct { const char *from, *to; } said[] = {
        {"(", "-lrb-"}, {")", "-rrb-"}, {"[", "-lsb-"}, {"]", "-rsb-"}, {"{", "-lcb-"}, {"}", "-rcb-"}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};
    static const char *const dropped[] = {"&quot;", "&apos;", "&nbsp;", "&mdash;", "&ndash;"};
    static const char *const whole[] = {"c++", "c#", "pro-", "anti-", "c.d.s", "s&p-500", "s&ls"};
    const char *p = l->p, *q = p, *found;
    size_t i, count, dots;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if ((found = vp_impl_caption_says(l, p, said[i].from))) vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_SAID, said[i].to);
    for (i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if ((found = vp_impl_caption_says(l, p, dropped[i]))) vp_impl_caption_offer(l, found, found, VP_IMPL_CAPTION_DROP, NULL);
    for (i = 0; i < sizeof whole / sizeof *whole; i++)
        if ((found = vp_impl_caption_says(l, p, whole[i]))) vp_impl_caption_token(l, found);
    if ((c == '<' || c == '>') && vp_impl_caption_ahead(l, p, 1) == c) vp_impl_caption_token(l, p + 2);
    if (c == 'F' && vp_impl_caption_ahead(l, p, 1) == '#') vp_impl_caption_token(l, p + 2);
    if (c == '&' && vp_impl_caption_ahead(l, p, 1) == '#') {
        q = vp_impl_caption_digits(l, p + 2);
        if (q > p + 2 && vp_impl_caption_at(l, q) == ';') vp_impl_caption_token(l, q + 1);
    }
    for (q = p; vp_impl_caption_upper(vp_impl_caption_at(l, q)); q++) {}
    if (vp_impl_caption_at(l, q) == '$') vp_impl_caption_token(l, q + 1); /* US$ */
    if (c == '@' && (vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, p, 1)) || vp_impl_caption_ahead(l, p, 1) == '_')) {
        for (q = p + 1; vp_impl_caption_ascii_alnum(vp_impl_caption_at(l, q)) || vp_impl_caption_at(l, q) == '_'; q++) {}
        vp_impl_caption_token(l, q);
    }
    if (c == '#') vp_impl_caption_token(l, vp_impl_caption_letters(l, p + 1));
    for (count = 0; count < 3 && vp_impl_caption_ahead(l, p, 2 * count) == '\\' && vp_impl_caption_ahead(l, p, 2 * count + 1) == '*';) count++;
    vp_impl_caption_token(l, p + 2 * count);
    for (count = 1; vp_impl_caption_in(c, "-@#_*") && vp_impl_caption_at(l, p + count) == c;) count++;
    if (c == '-') vp_impl_caption_offer(l, p + count, p + count, count < 5 ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_TEXT, NULL);
    for (dots = 0; dots < 5 && vp_impl_caption_ahead(l, p, dots) == '.';) dots++;
    if (dots >= 3) vp_impl_caption_offer(l, p + dots, p + dots, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(c, "@#_*")) vp_impl_caption_token(l, p + count);
    for (count = 0; vp_impl_caption_in(vp_impl_caption_at(l, p + count), "?!");) count++;
    if (count > 1) vp_impl_caption_token(l, p + count);
    if (c == '\'' && vp_impl_caption_ahead(l, p, 1) == c) vp_impl_caption_offer(l, p + 2, p + 2, VP_IMPL_CAPTION_DROP, NULL);
    if (vp_impl_caption_in(c, "'`\".?!,:;")) vp_impl_caption_offer(l, p + 1, p + 1, VP_IMPL_CAPTION_DROP, NULL);
    else if (c > ' ' && c != 127) vp_impl_caption_token(l, p + 1);
}

/* what a typographic quote is said as, or NULL */
static const char *vp_impl_caption_quote(uint32_t c) {
    switch (c) {
        case '`': case 0x91: case 0x2018: case 0x201B: case 0x2039: return "`";
        case 0x92: case 0x2019: case 0x203A: return "'";
        case 0x93: case 0x201C: case 0xAB: return "``";
        case 0x94: case 0x201D: case 0xBB: return "''";
        case 0x201A: return "\xE2\x80\x9A";
        case 0x201E: return "\xE2\x80\x9E";
        case 0x201F: return "\xE2\x80\x9F";
        default: return NULL;
    }
}

static void vp_impl_caption_rule_quotes(vp_impl_caption_lexer *l, uint32_t c, size_t bytes) {
    const char *p = l->p + bytes, *one = vp_impl_caption_quote(c), *two;
    size_t more = 1;
    if (!one) return;
    vp_impl_caption_offer(l, p, p, *one == '`' || *one == '\'' ? VP_IMPL_CAPTION_DROP : VP_IMPL_CAPTION_SAID, one);
    two = p < l->end ? vp_impl_caption_quote(vp_unicode_get(p, l->end, &more)) : NULL;
    if (!two) return;
    if (one[1] == 0 && strcmp(one, two) == 0) vp_impl_caption_offer(l, p + more, p + more, VP_IMPL_CAPTION_DROP, NULL); /* `` and '' */
    else vp_impl_caption_offer(l, p + more, p + more, VP_IMPL_CAPTION_QUOTES, NULL);
}

/* the other characters behind ASCII that are no letters: some are said otherwise, symbols are tokens, the rest is nothing */
static void vp_impl_caption_rule_symbols(vp_impl_caption_lexer *l, uint32_t c, size_t bytes) {
    static const struct { uint32_t code; const char *to; } said[] = {
        {0x80, "$"}, {0xA2, "cents"}, {0xA3, "#"}, {0xA4, "$"}, {0xBC, "1/4"}, {0xBD, "1/2"}, {0xBE, "3/4"}, {0x20A0, "$"}, {0x20AC, "$"},
        {0x2153, "1/3"}, {0x2154, "2/3"}};
    static const uint16_t symbols[][2] = {
        {0xA1, 0xA1}, {0xA5, 0xA9}, {0xAC, 0xAC}, {0xAE, 0xB4}, {0xB6, 0xB9}, {0xBF, 0xBF}, {0xD7, 0xD7}, {0xF7, 0xF7}, {0x37E, 0x37E},
        {0x387, 0x387}, {0x589, 0x589}, {0x5BE, 0x5BE}, {0x5C0, 0x5C0}, {0x5C3, 0x5C3}, {0x5C6, 0x5C6}, {0x5F3, 0x5F4}, {0x600, 0x60C},
        {0x614, 0x614}, {0x61B, 0x61B}, {0x61E, 0x61F}, {0x66A, 0x66A}, {0x66D, 0x66D}, {0x6D4, 0x6D4}, {0x700, 0x70D}, {0x7F6, 0x7F8},
        {0x964, 0x965}, {0xE3F, 0xE3F}, {0xE4F, 0xE4F}, {0x1FBD, 0x1FBD}, {0x2016, 0x2017}, {0x2020, 0x2023}, {0x2030, 0x2038}, {0x203B, 0x203B},
        {0x203E, 0x2042}, {0x2044, 0x2044}, {0x2070, 0x2070}, {0x2074, 0x207E}, {0x2080, 0x208E}, {0x20A4, 0x20A4}, {0x2100, 0x214F},
        {0x2155, 0x215E}, {0x2190, 0x2BFF}, {0x3001, 0x3002}, {0x3012, 0x3012}, {0x30FB, 0x30FB}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},
        {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFE1}, {0xFFE5, 0xFFE6}};
    const char *next = l->p + bytes;
    size_t i;
    for (i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].code == c) vp_impl_caption_offer(l, next, next, VP_IMPL_CAPTION_SAID, said[i].to);
    for (i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (c >= symbols[i][0] && c <= symbols[i][1]) vp_impl_caption_token(l, next);
    vp_impl_caption_offer(l, next, next, VP_IMPL_CAPTION_DROP, NULL);
}

/* the token at p, which is not white space */
static void vp_impl_caption_match(vp_impl_caption_lexer *l) {
    const char *word = vp_impl_caption_word(l, l->p);
    size_t bytes = 1;
    uint32_t code = vp_unicode_get(l->p, l->end, &bytes);
    l->stop = l->reach = l->p;
    if (code == '<') {
        vp_impl_caption_rule_tags(l);
        vp_impl_caption_rule_addresses(l);
    }
    if (word > l->p) {
        vp_impl_caption_rule_contractions(l, word);
        vp_impl_caption_token(l, word);
        vp_impl_caption_rule_abbreviations(l);
    }
    vp_impl_caption_rule_apostrophe(l);
    if (vp_impl_caption_alnum(l, l->p)) {
        vp_impl_caption_rule_addresses(l);
        vp_impl_caption_rule_files(l);
        vp_impl_caption_rule_hyphens(l);
        vp_impl_caption_rule_compounds(l);
    }
    if (code < 0x80) {
        vp_impl_caption_rule_numbers(l);
        vp_impl_caption_rule_smileys(l);
        vp_impl_caption_rule_ascii(l, (int)code);
    }
    if (code == '\'' && vp_impl_caption_ascii_letter(vp_impl_caption_ahead(l, l->p, 1)) && l->end - l->p > 2 && l->p[2] != ' ')
        vp_impl_caption_offer(l, l->p + 1, l->p + 3, VP_IMPL_CAPTION_DROP, NULL); /* a quote that opens */
    vp_impl_caption_rule_quotes(l, code, bytes);
    if (code >= 0x80) vp_impl_caption_rule_symbols(l, code, bytes);
    else vp_impl_caption_offer(l, l->p + 1, l->p + 1, VP_IMPL_CAPTION_DROP, NULL);
}

/* ---- tokens to text */
/* Texts are produced twice, first only counted, so that a too small buffer stays untouched. */
typedef struct vp_impl_caption_text { char *out; size_t bytes; } vp_impl_caption_text; /* out NULL: count */

static void vp_impl_caption_add(vp_impl_caption_text *o, const char *text, size_t bytes) {
    if (o->out && bytes) memcpy(o->out + o->bytes, text, bytes);
    o->bytes += bytes;
}

static void vp_impl_caption_add_code(vp_impl_caption_text *o, uint32_t code) {
    char buffer[4];
    vp_impl_caption_add(o, buffer, vp_unicode_put(buffer, code));
}

static void vp_impl_caption_say(vp_impl_caption_text *o, const char *text) { vp_impl_caption_add(o, text, strlen(text)); }

static void vp_impl_caption_emit(const vp_impl_caption_lexer *l, vp_impl_caption_text *o) {
    const char *p = l->p;
    const size_t before = o->bytes;
    size_t bytes;
    int tag;
    if (l->kind == VP_IMPL_CAPTION_DROP) return;
    tag = *p == '<' && l->stop[-1] == '>';
    if (o->bytes) vp_impl_caption_add(o, " ", 1);
    if (l->kind == VP_IMPL_CAPTION_SAID) {
        vp_impl_caption_say(o, l->said);
        return;
    }
    for (; p < l->stop; p += bytes) {
        uint32_t c = vp_unicode_get(p, l->stop, &bytes);
        const char *quote = l->kind == VP_IMPL_CAPTION_QUOTES ? vp_impl_caption_quote(c) : NULL;
        if (quote) vp_impl_caption_say(o, quote);
        else if (c == '&' && l->stop - p >= 5 && memcmp(p, "&amp;", 5) == 0) {
            vp_impl_caption_say(o, "&");
            bytes = 5;
        }
        else if (c == '(' && !tag) vp_impl_caption_say(o, "-lrb-");
        else if (c == ')' && !tag) vp_impl_caption_say(o, "-rrb-");
        else if (vp_unicode_is_space(c)) vp_impl_caption_say(o, "\xC2\xA0"); /* a blank inside a token does not part it */
        else if (c == 0x130) vp_impl_caption_say(o, "i\xCC\x87");
        else if (c == 0x3A3) vp_impl_caption_add_code(o, vp_unicode_lower_sigma(l->p, p, l->stop, NULL, NULL));
        else if (c > 32 && c != 127 && c != 0xAD && c < 0x110000) /* no soft hyphens, no stray bytes */
            vp_impl_caption_add_code(o, vp_unicode_lower(c));
    }
    if (o->bytes == before + (before > 0)) o->bytes = before; /* nothing but soft hyphens and stray bytes is no word */
}

static void vp_impl_caption_tokens(const char *text, size_t bytes, vp_impl_caption_text *o) {
    vp_impl_caption_lexer l;
    size_t length = 1;
    memset(&l, 0, sizeof l);
    l.end = text + bytes;
    l.no_close = l.no_at = l.no_hyphen = l.no_file = text;
    for (l.p = text; l.p < l.end; l.p = l.stop) {
        if (vp_unicode_is_space(vp_unicode_get(l.p, l.end, &length))) {
            l.stop = l.p + length;
            continue;
        }
        vp_impl_caption_match(&l);
        vp_impl_caption_emit(&l, o);
    }
}

VP_API vp_result vp_caption_tokenise(const char *text, size_t bytes, char *out, size_t capacity, size_t *needed) {
    vp_impl_caption_text o;
    if ((!text && bytes) || (!out && capacity)) return VP_ERR_RANGE;
    if (!text) text = "";
    o.out = NULL;
    o.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &o);
    if (needed) *needed = o.bytes;
    if (o.bytes >= capacity) return VP_ERR_CAPACITY;
    o.out = out;
    o.bytes = 0;
    vp_impl_caption_tokens(text, bytes, &o);
    out[o.bytes] = 0;
    return VP_OK;
}

/* ------------------------------------------------------------------------------------------------- corpus scores
 * Words get numbers 0, 1, 2 ... in the order in which they are met; an n-gram of 2 to 4 words gets the next free number, found by the number of
 * the n-gram without its last word and the number of that word. So two n-grams have the same number only when they are the same words. */
enum { VP_IMPL_CAPTION_N = 4 };
#define VP_IMPL_CAPTION_WORDS_MAX ((size_t)1 << 29)

typedef struct vp_impl_caption_list { void *data; size_t count, capacity; } vp_impl_caption_list;
typedef struct vp_impl_caption_entry { size_t start, bytes; uint64_t hash; } vp_impl_caption_entry; /* start: in the pool of letters */
typedef struct vp_impl_caption_gram { uint32_t prefix, word, id; } vp_impl_caption_gram; /* id 0: free; no n-gram has it */
/* a text's words: as str.split() cuts them, and as split(" ") does for ROUGE-L (mostly the same) */
typedef struct vp_impl_caption_line { size_t first, count, rouge_first, rouge_count; } vp_impl_caption_line;
typedef struct vp_impl_caption_book {
    vp_impl_caption_list letters, words, numbers, lines, scratch;
    uint32_t *word_table;  /* number + 1, or 0 */
    size_t word_table_size;
    vp_impl_caption_gram *gram_table;
    size_t gram_table_size, gram_count;
    uint32_t *grams[VP_IMPL_CAPTION_N]; /* [n - 1][place]: the n-gram that begins at a place of `numbers`; [0] are the numbers themselves */
    uint32_t *document_count, *in_candidate, *in_reference, *in_both; /* [numbers of words and n-grams] */
    uint32_t *candidate_list, *reference_list;                        /* [4 * words of the longest text] different n-grams */
    double *log_of;                                                   /* [images + 1] log of a count */
    uint64_t *places;                                                 /* [words] where a word stands in 64 words of the candidate */
    unsigned char *carry;                                             /* [words of the longest text] */
    size_t line_words_max;
} vp_impl_caption_book;

/* room for `more` elements behind the last; 0 without memory, the list is then as it was */
static int vp_impl_caption_reserve(vp_impl_caption_list *list, size_t more, size_t element_bytes) {
    size_t needed, bytes, capacity = list->capacity < 64 ? 64 : list->capacity;
    void *data;
    if (!vp_size_add(list->count, more, &needed)) return 0;
    if (list->data && needed <= list->capacity) return 1;
    while (capacity < needed) capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    if (!vp_size_multiply(capacity, element_bytes, &bytes) || !(data = realloc(list->data, bytes))) return 0;
    list->data = data;
    list->capacity = capacity;
    return 1;
}

static uint64_t vp_impl_caption_mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * UINT64_C(0x9E3779B97F4A7C15);
    a = (a ^ a >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return a ^ a >> 29;
}

static uint64_t vp_impl_caption_hash(const char *text, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; text += 8, bytes -= 8) {
        memcpy(&part, text, 8);
        hash = vp_impl_caption_mix(hash, part);
    }
    part = 0;
    if (bytes) memcpy(&part, text, bytes);
    return vp_impl_caption_mix(hash, part);
}

/* twice the size; a table is a power of two and at most half full */
static int vp_impl_caption_grow_words(vp_impl_caption_book *b) {
    const vp_impl_caption_entry *words = (const vp_impl_caption_entry *)b->words.data;
    size_t size = b->word_table_size ? b->word_table_size * 2 : 1024, i, at;
    uint32_t *table;
    if (size < b->word_table_size || !(table = (uint32_t *)calloc(size, sizeof *table))) return 0;
    for (i = 0; i < b->words.count; i++) {
        for (at = (size_t)words[i].hash & (size - 1); table[at]; at = (at + 1) & (size - 1)) {}
        table[at] = (uint32_t)i + 1;
    }
    free(b->word_table);
    b->word_table = table;
    b->word_table_size = size;
    return 1;
}

/* Puts the number of a word behind the others; 0 without memory. */
static int vp_impl_caption_add_word(vp_impl_caption_book *b, const char *text, size_t bytes) {
    uint64_t hash = vp_impl_caption_hash(text, bytes);
    vp_impl_caption_entry *word;
    size_t at;
    if (b->words.count * 2 >= b->word_table_size && !vp_impl_caption_grow_words(b)) return 0;
    if (!vp_impl_caption_reserve(&b->numbers, 1, sizeof(uint32_t))) return 0;
    for (at = (size_t)hash & (b->word_table_size - 1); b->word_table[at]; at = (at + 1) & (b->word_table_size - 1)) {
        word = (vp_impl_caption_entry *)b->words.data + (b->word_table[at] - 1);
        if (word->hash == hash && word->bytes == bytes && (!bytes || memcmp((char *)b->letters.data + word->start, text, bytes) == 0)) break;
    }
    if (!b->word_table[at]) {
        if (!vp_impl_caption_reserve(&b->words, 1, sizeof *word) || !vp_impl_caption_reserve(&b->letters, bytes, 1)) return 0;
        word = (vp_impl_caption_entry *)b->words.data + b->words.count++;
        word->start = b->letters.count;
        word->bytes = bytes;
        word->hash = hash;
        if (bytes) memcpy((char *)b->letters.data + word->start, text, bytes);
        b->letters.count += bytes;
        b->word_table[at] = (uint32_t)b->words.count;
    }
    ((uint32_t *)b->numbers.data)[b->numbers.count++] = b->word_table[at] - 1;
    return 1;
}

static vp_result vp_impl_caption_full(const vp_impl_caption_book *b) {
    return b->numbers.count >= VP_IMPL_CAPTION_WORDS_MAX ? VP_ERR_RANGE : VP_OK;
}

/* Splits a tokenised text twice; the second time only when single spaces would cut it otherwise. */
static vp_result vp_impl_caption_split(vp_impl_caption_book *b, const char *text, size_t bytes) {
    const char *p = text, *end = text + bytes, *start = text;
    vp_impl_caption_line line;
    size_t length = 1;
    int plain = 1;
    memset(&line, 0, sizeof line);
    line.first = line.rouge_first = b->numbers.count;
    for (;; p += length) {
        uint32_t c = p < end ? vp_unicode_get(p, end, &length) : ' ';
        if (!vp_unicode_is_space(c)) continue;
        if (vp_impl_caption_full(b) != VP_OK) return VP_ERR_RANGE;
        if (p > start && !vp_impl_caption_add_word(b, start, (size_t)(p - start))) return VP_ERR_MEMORY;
        if (p == start || c != ' ') plain = 0;
        if (p >= end) break;
        start = p + length;
    }
    line.count = line.rouge_count = b->numbers.count - line.first;
    if (!plain) {
        line.rouge_first = b->numbers.count;
        for (p = start = text;; p++) {
            if (p < end && *p != ' ') continue;
            if (vp_impl_caption_full(b) != VP_OK) return VP_ERR_RANGE;
            if (!vp_impl_caption_add_word(b, start, (size_t)(p - start))) return VP_ERR_MEMORY;
            if (p >= end) break;
            start = p + 1;
        }
        line.rouge_count = b->numbers.count - line.rouge_first;
    }
    if (line.count > b->line_words_max) b->line_words_max = line.count;
    if (line.rouge_count > b->line_words_max) b->line_words_max = line.rouge_count;
    if (!vp_impl_caption_reserve(&b->lines, 1, sizeof line)) return VP_ERR_MEMORY;
    ((vp_impl_caption_line *)b->lines.data)[b->lines.count++] = line;
    return VP_OK;
}

static vp_result vp_impl_caption_read(vp_impl_caption_book *b, const vp_caption_text *t, vp_caption_input input) {
    size_t needed = 0;
    vp_result result;
    if (!t->text && t->bytes) return VP_ERR_RANGE;
    if (input == VP_CAPTION_TOKENISED) return vp_impl_caption_split(b, t->text ? t->text : "", t->bytes);
    for (;;) {
        result = vp_caption_tokenise(t->text, t->bytes, (char *)b->scratch.data, b->scratch.capacity, &needed);
        if (result != VP_ERR_CAPACITY) break;
        if (needed == SIZE_MAX || !vp_impl_caption_reserve(&b->scratch, needed + 1, 1)) return VP_ERR_MEMORY;
    }
    return result == VP_OK ? vp_impl_caption_split(b, (const char *)b->scratch.data, needed) : result;
}

static int vp_impl_caption_grow_grams(vp_impl_caption_book *b) {
    size_t size = b->gram_table_size ? b->gram_table_size * 2 : 1024, i, at;
    vp_impl_caption_gram *table;
    if (size < b->gram_table_size || !(table = (vp_impl_caption_gram *)calloc(size, sizeof *table))) return 0;
    for (i = 0; i < b->gram_table_size; i++) {
        const vp_impl_caption_gram *g = &b->gram_table[i];
        if (!g->id) continue;
        at = (size_t)vp_impl_caption_mix(g->prefix, g->word) & (size - 1);
        while (table[at].id) at = (at + 1) & (size - 1);
        table[at] = *g;
    }
    free(b->gram_table);
    b->gram_table = table;
    b->gram_table_size = size;
    return 1;
}

/* the number of an n-gram; 0 without memory */
static uint32_t vp_impl_caption_gram_number(vp_impl_caption_book *b, uint32_t prefix, uint32_t word) {
    vp_impl_caption_gram *g;
    size_t at;
    if (b->gram_count * 2 >= b->gram_table_size && !vp_impl_caption_grow_grams(b)) return 0;
    at = (size_t)vp_impl_caption_mix(prefix, word) & (b->gram_table_size - 1);
    for (;; at = (at + 1) & (b->gram_table_size - 1)) {
        g = &b->gram_table[at];
        if (!g->id) break;
        if (g->prefix == prefix && g->word == word) return g->id;
    }
    g->prefix = prefix;
    g->word = word;
    g->id = (uint32_t)(b->words.count + b->gram_count++);
    return g->id;
}

static vp_result vp_impl_caption_number_grams(vp_impl_caption_book *b) {
    const vp_impl_caption_line *lines = (const vp_impl_caption_line *)b->lines.data;
    size_t line, i, n;
    b->grams[0] = (uint32_t *)b->numbers.data;
    for (n = 1; n < VP_IMPL_CAPTION_N; n++)
        if (!(b->grams[n] = (uint32_t *)malloc((b->numbers.count + 1) * sizeof(uint32_t)))) return VP_ERR_MEMORY;
    for (line = 0; line < b->lines.count; line++)
        for (n = 1; n < VP_IMPL_CAPTION_N; n++)
            for (i = 0; i + n < lines[line].count; i++) {
                size_t at = lines[line].first + i;
                b->grams[n][at] = vp_impl_caption_gram_number(b, b->grams[n - 1][at], b->grams[0][at + n]);
                if (!b->grams[n][at]) return VP_ERR_MEMORY;
            }
    return VP_OK;
}

/* Everything that the scoring needs; nothing can fail behind it. */
static vp_result vp_impl_caption_prepare(vp_impl_caption_book *b, size_t image_count) {
    size_t numbers = b->words.count + b->gram_count + 1, longest = b->line_words_max + 1, i, bytes;
    if (!vp_size_multiply(image_count, sizeof(double), &bytes) || !vp_size_add(bytes, sizeof(double), &bytes)) return VP_ERR_MEMORY;
    b->document_count = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_candidate = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_reference = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->in_both = (uint32_t *)calloc(numbers, sizeof(uint32_t));
    b->candidate_list = (uint32_t *)calloc(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    b->reference_list = (uint32_t *)calloc(longest, VP_IMPL_CAPTION_N * sizeof(uint32_t));
    b->places = (uint64_t *)calloc(b->words.count + 1, sizeof(uint64_t));
    b->carry = (unsigned char *)calloc(longest, 1);
    b->log_of = (double *)malloc(bytes);
    if (!b->document_count || !b->in_candidate || !b->in_reference || !b->in_both || !b->candidate_list || !b->reference_list || !b->places
        || !b->carry || !b->log_of) return VP_ERR_MEMORY;
    for (i = 0; i <= image_count; i++) b->log_of[i] = i ? log((double)i) : 0.0; /* an n-gram of no reference counts as one of a single image */
    return VP_OK;
}

static void vp_impl_caption_release(vp_impl_caption_book *b) {
    size_t n;
    free(b->letters.data);
    free(b->words.data);
    free(b->numbers.data);
    free(b->lines.data);
    free(b->scratch.data);
    free(b->word_table);
    free(b->gram_table);
    for (n = 1; n < VP_IMPL_CAPTION_N; n++) free(b->grams[n]);
    free(b->document_count);
    free(b->in_candidate);
    free(b->in_reference);
    free(b->in_both);
    free(b->candidate_list);
    free(b->reference_list);
    free(b->log_of);
    free(b->places);
    free(b->carry);
}

/* images whose references have an n-gram; in_candidate holds the last such image meanwhile */
static void vp_impl_caption_count_documents(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)b->lines.data;
    size_t image, reference, n, i;
    for (image = 0; image < image_count; image++) {
        line++; /* the candidate */
        for (reference = 0; reference < images[image].reference_count; reference++, line++)
            for (n = 0; n < VP_IMPL_CAPTION_N; n++)
                for (i = 0; i + n < line->count; i++) {
                    uint32_t number = b->grams[n][line->first + i];
                    if (b->in_candidate[number] == image + 1) continue;
                    b->in_candidate[number] = (uint32_t)(image + 1);
                    b->document_count[number]++;
                }
    }
    memset(b->in_candidate, 0, (b->words.count + b->gram_count + 1) * sizeof(uint32_t));
}

/* Counts a text's n-grams: list has the different ones in the order of the text, first[n] .. first[n + 1] those of n + 1 words. */
static void vp_impl_caption_count(const vp_impl_caption_book *b, const vp_impl_caption_line *line, uint32_t *counts, uint32_t *list,
                                  size_t first[VP_IMPL_CAPTION_N + 1]) {
    size_t n, i, found = 0;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        first[n] = found;
        for (i = 0; i + n < line->count; i++) {
            uint32_t number = b->grams[n][line->first + i];
            if (!counts[number]++) list[found++] = number;
        }
    }
    first[n] = found;
}

/* length of the longest common subsequence: 64 words of the candidate at a time, a bit for each (Hyyro 2004, "Bit-parallel LCS-length") */
static size_t vp_impl_caption_common(const vp_impl_caption_book *b, const vp_impl_caption_line *candidate, const vp_impl_caption_line *reference) {
    const uint32_t *c = b->grams[0] + candidate->rouge_first, *r = b->grams[0] + reference->rouge_first;
    size_t start, i, common = 0;
    memset(b->carry, 0, reference->rouge_count);
    for (start = 0; start < candidate->rouge_count; start += 64) {
        size_t width = candidate->rouge_count - start < 64 ? candidate->rouge_count - start : 64;
        uint64_t open = ~(uint64_t)0;
        for (i = 0; i < width; i++) b->places[c[start + i]] |= (uint64_t)1 << i;
        for (i = 0; i < reference->rouge_count; i++) {
            uint64_t here = open & b->places[r[i]], sum = open + here, more = sum + b->carry[i];
            b->carry[i] = (unsigned char)(sum < open || more < sum);
            open = more | (open ^ here);
        }
        for (i = 0; i < width; i++) {
            common += (size_t)(~open >> i & 1);
            b->places[c[start + i]] = 0;
        }
    }
    return common;
}

/* what BLEU counts, of one image or of all */
typedef struct vp_impl_caption_bleu { uint64_t correct[VP_IMPL_CAPTION_N], guesses[VP_IMPL_CAPTION_N], words, reference_words; } vp_impl_caption_bleu;

static void vp_impl_caption_bleu_score(const vp_impl_caption_bleu *counts, double bleu[VP_IMPL_CAPTION_N]) {
    double product = 1.0, ratio = ((double)counts->words + 1e-15) / ((double)counts->reference_words + 1e-9);
    size_t n;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        product *= ((double)counts->correct[n] + 1e-15) / ((double)counts->guesses[n] + 1e-9);
        bleu[n] = pow(product, 1.0 / (double)(n + 1));
        if (ratio < 1.0) bleu[n] *= exp(1.0 - 1.0 / ratio);
    }
}

/* CIDEr-D of one reference, summed over n. What the reference shares with the candidate goes into in_both, for BLEU. */
static double vp_impl_caption_similarity(vp_impl_caption_book *b, const vp_impl_caption_line *candidate, const vp_impl_caption_line *reference,
                                         const double norms[VP_IMPL_CAPTION_N], double log_images) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i;
    const double bigrams = (double)(candidate->count ? candidate->count - 1 : 0), other = (double)(reference->count ? reference->count - 1 : 0);
    const double penalty = exp(-((bigrams - other) * (bigrams - other)) / 72.0);
    double sum = 0.0;
    vp_impl_caption_count(b, reference, b->in_reference, b->reference_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        double product = 0.0, norm = 0.0;
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = b->reference_list[i], r = b->in_reference[number], c = b->in_candidate[number];
            const double weight = log_images - b->log_of[b->document_count[number]], mine = c * weight, theirs = r * weight;
            product += (mine < theirs ? mine : theirs) * theirs;
            norm += theirs * theirs;
            if ((c < r ? c : r) > b->in_both[number]) b->in_both[number] = c < r ? c : r;
            b->in_reference[number] = 0;
        }
        norm = sqrt(norm);
        if (norms[n] != 0.0 && norm != 0.0) product /= norms[n] * norm;
        sum += product * penalty;
    }
    return sum;
}

/* One image: `candidate` is its line, the references' lines follow. */
static void vp_impl_caption_image(vp_impl_caption_book *b, const vp_impl_caption_line *candidate, size_t reference_count, double log_images,
                                  vp_impl_caption_bleu *counts, vp_caption_scores *scores) {
    size_t first[VP_IMPL_CAPTION_N + 1], n, i, reference, closest = 0, distance = SIZE_MAX;
    double norms[VP_IMPL_CAPTION_N] = {0.0, 0.0, 0.0, 0.0}, similarity = 0.0, precision = 0.0, recall = 0.0;
    vp_impl_caption_count(b, candidate, b->in_candidate, b->candidate_list, first);
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        for (i = first[n]; i < first[n + 1]; i++) {
            const uint32_t number = b->candidate_list[i];
            const double weight = b->in_candidate[number] * (log_images - b->log_of[b->document_count[number]]);
            norms[n] += weight * weight;
        }
        norms[n] = sqrt(norms[n]);
    }
    for (reference = 1; reference <= reference_count; reference++) {
        const vp_impl_caption_line *line = candidate + reference;
        const size_t apart = line->count < candidate->count ? candidate->count - line->count : line->count - candidate->count;
        const double common = (double)vp_impl_caption_common(b, candidate, line);
        similarity += vp_impl_caption_similarity(b, candidate, line, norms, log_images);
        if (apart < distance || (apart == distance && line->count < closest)) {
            distance = apart;
            closest = line->count;
        }
        if (common / (double)candidate->rouge_count > precision) precision = common / (double)candidate->rouge_count;
        if (common / (double)line->rouge_count > recall) recall = common / (double)line->rouge_count;
    }
    memset(counts, 0, sizeof *counts);
    counts->words = candidate->count;
    counts->reference_words = closest;
    for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
        counts->guesses[n] = candidate->count > n ? candidate->count - n : 0;
        for (i = first[n]; i < first[n + 1]; i++) {
            counts->correct[n] += b->in_both[b->candidate_list[i]];
            b->in_both[b->candidate_list[i]] = b->in_candidate[b->candidate_list[i]] = 0;
        }
    }
    vp_impl_caption_bleu_score(counts, scores->bleu);
    scores->cider_d = similarity / VP_IMPL_CAPTION_N / (double)reference_count * 10.0;
    scores->rouge_l = precision != 0.0 && recall != 0.0 ? (1.0 + 1.2 * 1.2) * precision * recall / (recall + 1.2 * 1.2 * precision) : 0.0;
}

static void vp_impl_caption_score(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count, vp_caption_scores *each,
                                  vp_caption_scores *corpus) {
    const vp_impl_caption_line *line = (const vp_impl_caption_line *)b->lines.data;
    vp_impl_caption_bleu sums, counts;
    vp_caption_scores mean, scores;
    size_t image, n;
    memset(&sums, 0, sizeof sums);
    memset(&mean, 0, sizeof mean);
    vp_impl_caption_count_documents(b, images, image_count);
    for (image = 0; image < image_count; image++) {
        vp_impl_caption_image(b, line, images[image].reference_count, b->log_of[image_count], &counts, &scores);
        line += images[image].reference_count + 1;
        if (each) each[image] = scores;
        for (n = 0; n < VP_IMPL_CAPTION_N; n++) {
            sums.correct[n] += counts.correct[n];
            sums.guesses[n] += counts.guesses[n];
        }
        sums.words += counts.words;
        sums.reference_words += counts.reference_words;
        mean.cider_d += scores.cider_d;
        mean.rouge_l += scores.rouge_l;
    }
    vp_impl_caption_bleu_score(&sums, mean.bleu);
    mean.cider_d /= (double)image_count;
    mean.rouge_l /= (double)image_count;
    if (corpus) *corpus = mean;
}

static vp_result vp_impl_caption_read_all(vp_impl_caption_book *b, const vp_caption_image *images, size_t image_count, vp_caption_input input,
                                          size_t *image) {
    vp_result result;
    size_t i;
    for (*image = 0; *image < image_count; ++*image) {
        const vp_caption_image *one = &images[*image];
        if (!one->references || !one->reference_count) return VP_ERR_RANGE;
        result = vp_impl_caption_read(b, &one->candidate, input);
        for (i = 0; i < one->reference_count && result == VP_OK; i++) result = vp_impl_caption_read(b, &one->references[i], input);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}

VP_API vp_result vp_caption_corpus(const vp_caption_image *images, size_t image_count, vp_caption_input input, vp_caption_scores *each,
                                   vp_caption_scores *corpus, vp_error *error) {
    vp_impl_caption_book book;
    vp_message where = {{0}, 0};
    vp_result result;
    size_t image = 0;
    if (!images || !image_count) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "no images to score");
    if (image_count >= VP_IMPL_CAPTION_WORDS_MAX) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "over 2^29 images; score them in parts");
    if (input != VP_CAPTION_TOKENISED && input != VP_CAPTION_RAW) return vp_fail(error, VP_ERR_RANGE, -1, "captions", "unknown kind of input");
    memset(&book, 0, sizeof book);
    result = vp_impl_caption_read_all(&book, images, image_count, input, &image);
    vp_message_text(&where, "image ");
    vp_message_int(&where, (int64_t)image);
    if (result == VP_ERR_RANGE) {
        if (!images[image].references || !images[image].reference_count)
            vp_fail(error, result, -1, where.text, "there is no reference caption; leave the image out");
        else if (vp_impl_caption_full(&book) != VP_OK) vp_fail(error, result, -1, where.text, "over 2^29 words in all; score the corpus in parts");
        else vp_fail(error, result, -1, where.text, "a text is NULL");
    } else {
        if (result == VP_OK) result = vp_impl_caption_number_grams(&book);
        if (result == VP_OK) result = vp_impl_caption_prepare(&book, image_count);
        if (result == VP_OK) vp_impl_caption_score(&book, images, image_count, each, corpus);
        else vp_fail(error, result, -1, "captions", "not enough memory; score the corpus in parts");
    }
    vp_impl_caption_release(&book);
    return result;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
