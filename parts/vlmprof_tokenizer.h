/* vlmprof_tokenizer.h - v0.2.0 - byte-level BPE from tokenizer.json - MIT licence
 *
 * Byte-level BPE as GPT-2, GPT-NeoX and OLMo use it, read from a Hugging Face tokenizer.json; this section allocates.
 * A tokenizer is constant after loading: any number of threads may encode and decode with one.
 *
 * Needs vlmprof.h and vlmprof_unicode.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_TOKENIZER_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_TOKENIZER_H
#define VLMPROF_TOKENIZER_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
#ifndef VLMPROF_UNICODE_H
#include "vlmprof_unicode.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vp_tokenizer vp_tokenizer;

/* Reads a tokenizer.json: NFC or no normaliser, ByteLevel pre-tokeniser and decoder, BPE model, no template.
 * in:      json       [bytes] the file's text, not kept
 * out:     tokenizer  release with vp_tokenizer_free
 *          error      may be NULL; names the option, token or merge, with its byte offset where there is one
 * returns: VP_OK; VP_ERR_FORMAT broken JSON, a missing part, a token twice, a merge of unknown tokens; VP_ERR_UNSUPPORTED a
 *          component or an option that is not implemented (by name), ids from 2^22 on, added tokens over 1024 bytes;
 *          VP_ERR_MISMATCH an added token whose id is not the one the reference gives it; VP_ERR_MEMORY; VP_ERR_RANGE
 *          JSON nested deeper than 64 levels, json or tokenizer NULL
 * rule:    nothing is ignored: an unknown member anywhere is refused, so that no tokenizer is ever half-obeyed
 * source:  huggingface/tokenizers 0.20.3 (models/bpe, pre_tokenizers/byte_level.rs, tokenizer/added_vocabulary.rs)
 * memory:  about 1.2 MB of Unicode tables + 60 bytes per token and merge; during the call about 12 times the file */
VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error);

/* The built-in byte tokenizer of the synthetic presets: byte b is id 2 + b; the special ids stand for their usual contents.
 * in:      ids  0 .. 2^22 - 1 each, none of 2..257, all different but bos = eos
 * returns: VP_OK, VP_ERR_RANGE (an id outside its range, NULL), VP_ERR_MISMATCH (two meanings for one id), VP_ERR_MEMORY
 * rule:    "<|endoftext|>" (eos), "<|padding|>", "<im_start>", "<im_end>", "<im_patch>", "<im_col>" and "<|image|>" in a text
 *          become their id and back; no normalisation; other ids vanish when decoded */
VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer);
/* NULL is allowed. */
VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer);

/* The special ids, found by content (added tokens and vocabulary); "<|endoftext|>" is both bos and eos.
 * returns: VP_OK; VP_ERR_NOT_FOUND with the missing content's name; VP_ERR_RANGE (NULL) */
VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error);

/* Text to ids. No BOS is put in front: that is the prompt builder's business.
 * in:      text      UTF-8 [bytes], at most 2^29 bytes; NUL is a character like any other
 *          capacity  of ids; 0 with ids NULL only counts
 * out:     ids       int32 [count], written only on VP_OK
 *          count     the number needed; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_FORMAT (not UTF-8), VP_ERR_RANGE (too long, NULL), VP_ERR_MEMORY
 * rule:    added tokens with normalized = false are cut out, leftmost and longest; each piece is normalised to NFC (Unicode 9.0);
 *          added tokens with normalized = true are cut out; each piece is split into words ('s 't 're 've 'm 'll 'd, or letters |
 *          numbers | others with one space in front, or white space; Unicode 14.0); BPE merges by rank, leftmost first, in each word.
 *          A byte that the vocabulary lacks vanishes, as in the reference.
 * memory:  about 2 times the text; a single word of n bytes over 64 takes 44 n for the time of its merges, O(n log n) time
 * threads: reentrant */
VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids, size_t capacity, size_t *count);

enum { VP_DECODE_SKIP_SPECIAL = 1, VP_DECODE_CLEAN_UP = 2 };
/* Ids to text.
 * in:      ids       int32 [count], any values: those outside the vocabulary vanish
 *          flags     VP_DECODE_SKIP_SPECIAL: special tokens vanish; VP_DECODE_CLEAN_UP: spaces before . ? ! , and English
 *                    contractions go, as transformers' clean_up_tokenization_spaces does
 * out:     out       UTF-8 with NUL, written only on VP_OK (a NUL character of the text may stand inside: see needed)
 *          needed    bytes without the last NUL; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY (out has no room for needed + 1), VP_ERR_RANGE (unknown flags, NULL, over 2^40 bytes), VP_ERR_MEMORY
 * rule:    a token's characters are bytes of the GPT-2 alphabet; a token with any other character is its own UTF-8 text; what is
 *          not UTF-8 after joining becomes one U+FFFD per maximal invalid part (Rust's from_utf8_lossy)
 * threads: reentrant */
VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags, char *out, size_t capacity,
                                     size_t *needed);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_TOKENIZER_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_TOKENIZER_IMPLEMENTATION)) && !defined(VLMPROF_TOKENIZER_IMPLEMENTATION_DONE)
#define VLMPROF_TOKENIZER_IMPLEMENTATION_DONE
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

enum {
    VP_IMPL_TOKEN_LIMIT = 1 << 22,     /* ids; bounds what a hostile file can make us allocate */
    VP_IMPL_ADDED_BYTES = 1024,        /* longest added token; bounds the time to match one */
    VP_IMPL_TEXT_BYTES = 1 << 29,
    VP_IMPL_SHORT_WORD = 64
};

typedef struct vp_impl_added { const char *text; uint32_t bytes; int32_t id; } vp_impl_added;
/* added tokens, sorted by bytes; first[b] .. first[b + 1] begin with byte b */
typedef struct vp_impl_added_set { vp_impl_added *tokens; uint32_t count; uint32_t first[257]; } vp_impl_added_set;

typedef struct vp_impl_merge { uint32_t left, right, rank, product; } vp_impl_merge; /* rank UINT32_MAX: free */
typedef struct vp_impl_word { uint32_t hash; int32_t id; } vp_impl_word;              /* id -1: free */

enum { VP_IMPL_TOKEN_PRESENT = 1, VP_IMPL_TOKEN_SPECIAL = 2 };

struct vp_tokenizer {
    vp_unicode_forms *unicode;     /* NULL: no words, no normaliser (byte tokenizer) */
    int nfc;
    vp_impl_added_set raw, normalized;
    char *added_text;
    size_t added_used;
    uint32_t token_count;         /* largest id + 1 */
    uint8_t *token_flags;
    uint64_t *token_start;        /* [token_count + 1] into token_bytes: what a token decodes to */
    char *token_bytes;
    int32_t byte_id[256];         /* -1: the vocabulary lacks it */
    vp_impl_merge *merges;
    uint32_t merge_mask;
    vp_impl_word *words;          /* tokens that their own bytes merge to: most words need no merging */
    uint32_t word_mask, word_longest;
    int32_t special[7];           /* in the order of vp_impl_special_contents; -1: not there */
};

static const char *const vp_impl_special_contents[7] = {
    "<|endoftext|>", "<|padding|>", "<im_start>", "<im_end>", "<im_patch>", "<im_col>", "<|image|>"
};

/* -------------------------------------------------------------------------------------------------------------- work */

/* What one call of encode or decode needs; every buffer grows and is freed by vp_impl_work_free. */
typedef struct vp_impl_work {
    const vp_tokenizer *t;
    int32_t *ids;
    size_t id_count, id_capacity;
    char *text; /* the normalised piece */
    size_t text_used, text_capacity;
    uint32_t *segment; /* characters in normalisation: class << 24 | code point; the second half of the buffer is for sorting */
    size_t segment_count, segment_capacity;
    char *word; /* scratch of a long word */
    size_t word_capacity;
    int out_of_memory;
} vp_impl_work;

static void vp_impl_work_free(vp_impl_work *w) {
    free(w->ids);
    free(w->text);
    free(w->segment);
    free(w->word);
}

/* Room for `need` elements; 0 (and out_of_memory) when there is none. The content is kept. */
static int vp_impl_work_room(vp_impl_work *w, void **buffer, size_t *capacity, size_t need, size_t element_bytes) {
    size_t capacity_new = *capacity < 64 ? 64 : *capacity;
    void *grown;
    if (need <= *capacity) return 1;
    while (capacity_new < need && capacity_new <= SIZE_MAX / 2) capacity_new *= 2;
    if (capacity_new < need) capacity_new = need;
    grown = capacity_new <= SIZE_MAX / element_bytes ? realloc(*buffer, capacity_new * element_bytes) : NULL;
    if (!grown) {
        w->out_of_memory = 1;
        return 0;
    }
    *buffer = grown;
    *capacity = capacity_new;
    return 1;
}

static inline void vp_impl_push_id(vp_impl_work *w, int32_t id) {
    if (w->id_count == w->id_capacity) {
        void *ids = w->ids;
        if (!vp_impl_work_room(w, &ids, &w->id_capacity, w->id_count + 1, sizeof(int32_t))) return;
        w->ids = (int32_t *)ids;
    }
    w->ids[w->id_count++] = id;
}

static void vp_impl_push_text(vp_impl_work *w, const char *text, size_t bytes) {
    void *buffer = w->text;
    if (!vp_impl_work_room(w, &buffer, &w->text_capacity, w->text_used + bytes, 1)) return;
    w->text = (char *)buffer;
    if (bytes) memcpy(w->text + w->text_used, text, bytes);
    w->text_used += bytes;
}

/* --------------------------------------------------------------------------------------------------------------- NFC */

/* Canonical ordering of a run of marks, stable; linear for long runs, so that a megabyte of marks stays cheap. */
static void vp_impl_order_marks(uint32_t *marks, size_t count, uint32_t *scratch) {
    size_t i, j, start[257];
    if (count <= 24) {
        for (i = 1; i < count; i++) {
            uint32_t mark = marks[i];
            for (j = i; j > 0 && marks[j - 1] >> 24 > mark >> 24; j--) marks[j] = marks[j - 1];
            marks[j] = mark;
        }
        return;
    }
    memset(start, 0, sizeof start);
    for (i = 0; i < count; i++) start[(marks[i] >> 24) + 1]++;
    for (i = 1; i < 257; i++) start[i] += start[i - 1];
    for (i = 0; i < count; i++) scratch[start[marks[i] >> 24]++] = marks[i];
    memcpy(marks, scratch, count * sizeof *marks);
}

/* Orders and composes w->segment in place, then appends it to w->text. A mark is blocked by one of its own or a higher class that
 * stands between it and the starter (Unicode Standard, D115-D117). */
static void vp_impl_compose_segment(vp_impl_work *w) {
    const vp_unicode_forms *u = w->t->unicode;
    uint32_t *s = w->segment, last_class = 0;
    size_t i, j, out = 0, starter = SIZE_MAX, bytes = 0;
    char *p;
    void *text;
    for (i = 0; i < w->segment_count; i = j) {
        for (j = i; j < w->segment_count && s[j] >> 24; j++) {}
        vp_impl_order_marks(s + i, j - i, s + w->segment_capacity / 2);
        if (j == i) j++;
    }
    for (i = 0; i < w->segment_count; i++) {
        uint32_t code = s[i] & 0xFFFFFF, mark_class = s[i] >> 24, composed = 0;
        if (starter != SIZE_MAX && (starter + 1 == out || last_class < mark_class)) composed = vp_unicode_compose(u, s[starter], code);
        if (composed) {
            s[starter] = composed;
            continue;
        }
        if (!mark_class) starter = out;
        last_class = mark_class;
        s[out++] = s[i];
    }
    text = w->text;
    if (!vp_impl_work_room(w, &text, &w->text_capacity, w->text_used + out * 4, 1)) return;
    w->text = p = (char *)text;
    p += w->text_used;
    for (i = 0; i < out; i++) bytes += vp_utf8_put(p + bytes, s[i] & 0xFFFFFF);
    w->text_used += bytes;
}

/* One segment: a stable character (or none, at the start of the piece) and the unstable ones behind it. */
static void vp_impl_normalise_segment(vp_impl_work *w, const uint8_t *p, size_t bytes) {
    const vp_unicode_forms *u = w->t->unicode;
    uint32_t parts[4];
    void *segment = w->segment;
    size_t at = 0, length, count, i;
    /* a character of one byte stays alone, others have two or more and become at most 4; twice, see segment */
    if (!vp_impl_work_room(w, &segment, &w->segment_capacity, bytes * 4, sizeof(uint32_t))) return;
    w->segment = (uint32_t *)segment;
    w->segment_count = 0;
    while (at < bytes) {
        count = vp_unicode_decompose(u, vp_unicode_next_valid(p + at, &length), parts);
        at += length;
        for (i = 0; i < count; i++) w->segment[w->segment_count++] = parts[i] | vp_unicode_combining_class(u, parts[i]) << 24;
    }
    vp_impl_compose_segment(w);
}

/* NFC of a piece of valid UTF-8: points *out at the piece itself where nothing can change, else into w->text. */
static void vp_impl_nfc(vp_impl_work *w, const char *piece, size_t bytes, const char **out, size_t *out_bytes) {
    const uint8_t *p = (const uint8_t *)piece;
    const uint8_t *properties = w->t->unicode->properties;
    size_t i = 0, length, last_stable = 0, copied = 0;
    *out = piece;
    *out_bytes = bytes;
    w->text_used = 0;
    while (i < bytes) {
        if (p[i] < 0xCC) { /* below U+0300: stable */
            last_stable = i++;
            if (p[last_stable] >= 0x80) i++;
            continue;
        }
        if (!(properties[vp_unicode_next_valid(p + i, &length)] & VP_UNICODE_UNSTABLE)) {
            last_stable = i;
            i += length;
            continue;
        }
        vp_impl_push_text(w, piece + copied, last_stable - copied);
        while (i < bytes && (properties[vp_unicode_next_valid(p + i, &length)] & VP_UNICODE_UNSTABLE)) i += length;
        vp_impl_normalise_segment(w, p + last_stable, i - last_stable);
        last_stable = copied = i;
    }
    if (!copied) return;
    vp_impl_push_text(w, piece + copied, bytes - copied);
    *out = w->text;
    *out_bytes = w->text_used;
}

/* --------------------------------------------------------------------------------------------------------------- BPE */

static inline uint32_t vp_impl_word_hash(const uint8_t *p, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        memcpy(&part, p, 8);
        hash = vp_unicode_mix(hash ^ part);
    }
    for (part = 0; bytes > 0; bytes--) part = part << 8 | *p++;
    return (uint32_t)vp_unicode_mix(hash ^ part);
}

static inline const vp_impl_merge *vp_impl_merge_find(const vp_tokenizer *t, uint32_t left, uint32_t right) {
    uint32_t slot = (uint32_t)vp_unicode_mix((uint64_t)left << 32 | right) & t->merge_mask;
    for (; t->merges[slot].rank != UINT32_MAX; slot = (slot + 1) & t->merge_mask) {
        if (t->merges[slot].left == left && t->merges[slot].right == right) return &t->merges[slot];
    }
    return NULL;
}

/* Merges a word of at most VP_IMPL_SHORT_WORD bytes: scan for the lowest rank, leftmost first. */
static void vp_impl_merge_short(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    const vp_impl_merge *found;
    int32_t id[VP_IMPL_SHORT_WORD];
    uint32_t rank[VP_IMPL_SHORT_WORD], product[VP_IMPL_SHORT_WORD]; /* of the pair that begins there; the last has none */
    size_t i, best, n = 0;
    for (i = 0; i < bytes; i++) {
        if (t->byte_id[word[i]] >= 0) id[n++] = t->byte_id[word[i]];
    }
    for (i = 0; i < n; i++) {
        found = i + 1 < n ? vp_impl_merge_find(t, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
        rank[i] = found ? found->rank : UINT32_MAX;
        product[i] = found ? found->product : 0;
    }
    while (n > 1) {
        for (best = 0, i = 1; i + 1 < n; i++) {
            if (rank[i] < rank[best]) best = i;
        }
        if (rank[best] == UINT32_MAX) break;
        id[best] = (int32_t)product[best];
        n--;
        for (i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i] = rank[i + 1];
            product[i] = product[i + 1];
        }
        for (i = best ? best - 1 : 0; i <= best; i++) {
            found = i + 1 < n ? vp_impl_merge_find(t, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
            rank[i] = found ? found->rank : UINT32_MAX;
            product[i] = found ? found->product : 0;
        }
    }
    for (i = 0; i < n; i++) vp_impl_push_id(w, id[i]);
}

/* a long word: a doubly linked list of symbols and a heap of rank << 32 | position */
typedef struct vp_impl_list {
    uint32_t *next, *previous, *rank, *product; /* rank[i] is that of the pair that begins at i; UINT32_MAX: none, or i is gone */
    int32_t *id;
    uint64_t *heap;
    size_t heap_count;
} vp_impl_list;

static void vp_impl_heap_push(vp_impl_list *l, uint64_t entry) {
    size_t i = l->heap_count++;
    while (i > 0 && l->heap[(i - 1) / 2] > entry) {
        l->heap[i] = l->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    l->heap[i] = entry;
}

static uint64_t vp_impl_heap_pop(vp_impl_list *l) {
    uint64_t top = l->heap[0], moved = l->heap[--l->heap_count];
    size_t i = 0, child;
    while ((child = i * 2 + 1) < l->heap_count) {
        if (child + 1 < l->heap_count && l->heap[child + 1] < l->heap[child]) child++;
        if (l->heap[child] >= moved) break;
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = moved;
    return top;
}

/* Notes the pair that begins at i; `count` is the end of the list. */
static void vp_impl_list_pair(const vp_tokenizer *t, vp_impl_list *l, uint32_t i, uint32_t count) {
    const vp_impl_merge *found = l->next[i] < count ? vp_impl_merge_find(t, (uint32_t)l->id[i], (uint32_t)l->id[l->next[i]]) : NULL;
    l->rank[i] = found ? found->rank : UINT32_MAX;
    if (!found) return;
    l->product[i] = found->product;
    vp_impl_heap_push(l, (uint64_t)found->rank << 32 | i);
}

/* Merges a word of any length in O(n log n). An entry of the heap is stale when the pair at its place has another rank by now;
 * each merge pushes at most two, so 3 n entries are enough. */
static void vp_impl_merge_long(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    vp_impl_list l;
    void *buffer = w->word;
    uint32_t i, n = 0;
    if (!vp_impl_work_room(w, &buffer, &w->word_capacity, bytes, 3 * sizeof(uint64_t) + 5 * sizeof(uint32_t))) return;
    w->word = (char *)buffer;
    l.heap = (uint64_t *)buffer;
    l.heap_count = 0;
    l.id = (int32_t *)(void *)(l.heap + 3 * bytes);
    l.next = (uint32_t *)(void *)(l.id + bytes);
    l.previous = l.next + bytes;
    l.rank = l.previous + bytes;
    l.product = l.rank + bytes;
    for (i = 0; i < bytes; i++) {
        if (t->byte_id[word[i]] < 0) continue;
        l.id[n] = t->byte_id[word[i]];
        l.next[n] = n + 1;
        l.previous[n] = n - 1; /* of 0: UINT32_MAX, none */
        n++;
    }
    for (i = 0; i < n; i++) vp_impl_list_pair(t, &l, i, n);
    while (l.heap_count) {
        uint64_t entry = vp_impl_heap_pop(&l);
        uint32_t at = (uint32_t)entry, right;
        if (l.rank[at] != (uint32_t)(entry >> 32)) continue;
        right = l.next[at];
        l.id[at] = (int32_t)l.product[at];
        l.rank[right] = UINT32_MAX;
        l.next[at] = l.next[right];
        if (l.next[at] < n) l.previous[l.next[at]] = at;
        vp_impl_list_pair(t, &l, at, n);
        if (l.previous[at] != UINT32_MAX) vp_impl_list_pair(t, &l, l.previous[at], n);
    }
    for (i = 0; i < n; i = l.next[i]) vp_impl_push_id(w, l.id[i]);
}

static void vp_impl_merge_word(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    if (bytes <= VP_IMPL_SHORT_WORD) vp_impl_merge_short(w, word, bytes);
    else vp_impl_merge_long(w, word, bytes);
}

static inline void vp_impl_encode_word(vp_impl_work *w, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *t = w->t;
    if (bytes <= t->word_longest) {
        uint32_t hash = vp_impl_word_hash(word, bytes), slot;
        for (slot = hash & t->word_mask; t->words[slot].id >= 0; slot = (slot + 1) & t->word_mask) {
            const uint64_t *start = t->token_start + t->words[slot].id;
            if (t->words[slot].hash == hash && start[1] - start[0] == bytes && !memcmp(t->token_bytes + start[0], word, bytes)) {
                vp_impl_push_id(w, t->words[slot].id);
                return;
            }
        }
    }
    vp_impl_merge_word(w, word, bytes);
}

/* ---------------------------------------------------------------------------------------------------- words and pieces */

/* Bytes of the contraction at p (which points at '), or 0. */
static size_t vp_impl_contraction(const uint8_t *p, size_t bytes) {
    if (bytes > 1 && (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd')) return 2;
    if (bytes > 2 && ((p[1] == 'r' && p[2] == 'e') || (p[1] == 'v' && p[2] == 'e') || (p[1] == 'l' && p[2] == 'l'))) return 3;
    return 0;
}

/* Bytes of the first word of a piece (bytes > 0). */
static size_t vp_impl_word_bytes(const uint8_t *properties, const uint8_t *p, size_t bytes) {
    size_t at = 0, length, before;
    uint32_t kind;
    if (p[0] == '\'' && (length = vp_impl_contraction(p, bytes)) > 0) return length;
    kind = properties[vp_unicode_next_valid(p, &length)] & VP_UNICODE_CLASS;
    if (p[0] == ' ' && bytes > 1) {
        uint32_t next = properties[vp_unicode_next_valid(p + 1, &length)] & VP_UNICODE_CLASS;
        if (next != VP_UNICODE_SPACE) {
            at = 1;
            kind = next;
        } else {
            length = 1;
        }
    }
    at += length;
    before = 0;
    while (at < bytes && (properties[vp_unicode_next_valid(p + at, &length)] & VP_UNICODE_CLASS) == kind) {
        before = at;
        at += length;
    }
    /* white space before a word gives its last character back */
    return kind == VP_UNICODE_SPACE && at < bytes && before > 0 ? before : at;
}

static void vp_impl_encode_words(vp_impl_work *w, const char *piece, size_t bytes) {
    const uint8_t *p = (const uint8_t *)piece;
    size_t i, length;
    if (!w->t->unicode) {
        for (i = 0; i < bytes; i++) vp_impl_push_id(w, w->t->byte_id[p[i]]);
        return;
    }
    for (i = 0; i < bytes && !w->out_of_memory; i += length) {
        length = vp_impl_word_bytes(w->t->unicode->properties, p + i, bytes - i);
        vp_impl_encode_word(w, p + i, length);
    }
}

/* The longest added token that stands at p, or NULL. tokens[low..high) share the first `depth` bytes with the text; the one that
 * ends there sorts first. */
static const vp_impl_added *vp_impl_added_at(const vp_impl_added_set *set, const char *p, size_t bytes) {
    uint32_t low = set->first[(uint8_t)*p], high = set->first[(uint8_t)*p + 1], end, middle, depth = 1;
    const vp_impl_added *best = NULL;
    while (low < high) {
        uint8_t b;
        if (set->tokens[low].bytes == depth) {
            best = &set->tokens[low];
            if (++low == high) break;
        }
        if (depth == bytes) break;
        b = (uint8_t)p[depth];
        if (b < (uint8_t)set->tokens[low].text[depth] || b > (uint8_t)set->tokens[high - 1].text[depth]) break;
        for (end = high; low < end;) { /* first with at least b */
            middle = low + (end - low) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] < b) low = middle + 1; else end = middle;
        }
        for (end = low; end < high;) { /* first with more than b */
            middle = end + (high - end) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] <= b) end = middle + 1; else high = middle;
        }
        depth++;
    }
    return best;
}

/* The next added token in text[from..bytes): its position, or `bytes` and NULL. */
static size_t vp_impl_added_next(const vp_impl_added_set *set, const char *text, size_t from, size_t bytes, const vp_impl_added **found) {
    *found = NULL;
    if (!set->count) return bytes;
    for (; from < bytes; from++) {
        uint8_t b = (uint8_t)text[from];
        if (set->first[b] == set->first[b + 1]) continue;
        *found = vp_impl_added_at(set, text + from, bytes - from);
        if (*found) return from;
    }
    return bytes;
}

/* A piece without raw added tokens. */
static void vp_impl_encode_piece(vp_impl_work *w, const char *piece, size_t bytes) {
    const vp_impl_added *found;
    size_t from = 0, at;
    if (w->t->nfc) vp_impl_nfc(w, piece, bytes, &piece, &bytes);
    while (from < bytes && !w->out_of_memory) {
        at = vp_impl_added_next(&w->t->normalized, piece, from, bytes, &found);
        vp_impl_encode_words(w, piece + from, at - from);
        if (!found) break;
        vp_impl_push_id(w, found->id);
        from = at + found->bytes;
    }
}

VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids, size_t capacity, size_t *count) {
    const vp_impl_added *found;
    vp_impl_work work;
    vp_result result = VP_OK;
    size_t from = 0, at;
    if (!tokenizer || !count || (bytes && !text) || (capacity && !ids) || bytes > VP_IMPL_TEXT_BYTES) return VP_ERR_RANGE;
    if (vp_utf8_valid_bytes(text, bytes) != bytes) return VP_ERR_FORMAT;
    memset(&work, 0, sizeof work);
    work.t = tokenizer;
    while (from < bytes && !work.out_of_memory) {
        at = vp_impl_added_next(&tokenizer->raw, text, from, bytes, &found);
        vp_impl_encode_piece(&work, text + from, at - from);
        if (!found) break;
        vp_impl_push_id(&work, found->id);
        from = at + found->bytes;
    }
    if (work.out_of_memory) {
        result = VP_ERR_MEMORY;
    } else {
        *count = work.id_count;
        if (work.id_count > capacity) result = VP_ERR_CAPACITY;
        else if (work.id_count) memcpy(ids, work.ids, work.id_count * sizeof *ids);
    }
    vp_impl_work_free(&work);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------ decode */

/* Bytes of text with every maximal invalid part as U+FFFD; out has room for three times as many. */
static size_t vp_impl_lossy(const char *text, size_t bytes, char *out) {
    size_t at = 0, used = 0, length;
    while (at < bytes) {
        if (vp_unicode_next(text + at, bytes - at, &length) < 0) {
            used += vp_utf8_put(out + used, 0xFFFD);
        } else {
            memmove(out + used, text + at, length);
            used += length;
        }
        at += length;
    }
    return used;
}

/* Replaces every `from` by its shorter or equal `to`, in place; returns the new length. */
static size_t vp_impl_replace(char *text, size_t bytes, const char *from, const char *to) {
    size_t from_bytes = strlen(from), to_bytes = strlen(to), at = 0, used = 0;
    while (at < bytes) {
        if (text[at] == from[0] && bytes - at >= from_bytes && !memcmp(text + at, from, from_bytes)) {
            memcpy(text + used, to, to_bytes);
            used += to_bytes;
            at += from_bytes;
        } else {
            text[used++] = text[at++];
        }
    }
    return used;
}

static size_t vp_impl_clean_up(char *text, size_t bytes) {
    static const char *const pairs[10][2] = {
        { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" },
        { " n't", "n't" }, { " 'm", "'m" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" }
    };
    int i;
    for (i = 0; i < 10; i++) bytes = vp_impl_replace(text, bytes, pairs[i][0], pairs[i][1]);
    return bytes;
}

VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags, char *out, size_t capacity,
                                     size_t *needed) {
    int pass, skip = (flags & VP_DECODE_SKIP_SPECIAL) != 0;
    uint64_t bytes = 0;
    size_t used = 0, i;
    char *buffer = NULL;
    vp_result result = VP_OK;
    if (!tokenizer || !needed || (count && !ids) || (capacity && !out)) return VP_ERR_RANGE;
    if (flags & ~(VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP)) return VP_ERR_RANGE;
    for (pass = 0; pass < 2; pass++) { /* first the length, then the bytes, which are made valid from the upper end of the buffer down */
        for (i = 0; i < count; i++) {
            uint32_t id = (uint32_t)ids[i];
            uint64_t start, length;
            if (ids[i] < 0 || id >= tokenizer->token_count || !(tokenizer->token_flags[id] & VP_IMPL_TOKEN_PRESENT)) continue;
            if (skip && (tokenizer->token_flags[id] & VP_IMPL_TOKEN_SPECIAL)) continue;
            start = tokenizer->token_start[id];
            length = tokenizer->token_start[id + 1] - start;
            if (pass) {
                memcpy(buffer + 2 * bytes + used, tokenizer->token_bytes + start, (size_t)length);
                used += (size_t)length;
            } else if ((bytes += length) > (uint64_t)1 << 40) {
                return VP_ERR_RANGE;
            }
        }
        if (!pass && (bytes > SIZE_MAX / 3 - 1 || !(buffer = (char *)malloc((size_t)bytes * 3 + 1)))) return VP_ERR_MEMORY;
    }
    used = vp_impl_lossy(buffer + 2 * bytes, used, buffer);
    if (flags & VP_DECODE_CLEAN_UP) used = vp_impl_clean_up(buffer, used);
    *needed = used;
    if (used >= capacity) {
        result = VP_ERR_CAPACITY;
    } else {
        memcpy(out, buffer, used);
        out[used] = 0;
    }
    free(buffer);
    return result;
}

/* -------------------------------------------------------------------------------------------------------------- load */

/* The tokens by name while a file is read: the vocabulary first, then the added tokens that it lacks. */
typedef struct vp_impl_names {
    char *text;
    uint64_t *start; /* [count + 1] */
    int32_t *id;
    uint8_t *added;  /* stands in added_tokens; VP_IMPL_TOKEN_SPECIAL where special */
    uint32_t count, vocabulary_count;
    uint32_t *slots, mask; /* index + 1; 0: free */
} vp_impl_names;

typedef struct vp_impl_loader {
    vp_json json;
    vp_json_node *nodes;
    size_t json_bytes;
    vp_error *error;
    vp_tokenizer *t;
    vp_impl_names names;
    uint32_t added_node, vocabulary_node, merges_node;
    uint32_t alphabet[256];  /* the character that stands for a byte */
    int32_t byte_of[512];    /* and back; -1: none */
    char *scratch;           /* json_bytes + 1: any one text of the file */
    vp_impl_work work;
} vp_impl_loader;

/* Reports `before 'the node's text' after`. */
static vp_result vp_impl_load_wrong(const vp_impl_loader *l, vp_result code, uint32_t node, const char *where, const char *before,
                                    const char *after) {
    vp_message message = { { 0 }, 0 };
    char quoted[84], cut[80];
    vp_message_text(&message, before);
    if (node != VP_JSON_NONE) {
        const vp_json_node *n = &l->nodes[node];
        size_t bytes = n->bytes < sizeof quoted - 1 ? (size_t)n->bytes : sizeof quoted - 1;
        memcpy(quoted, l->json.text + n->start, bytes);
        quoted[bytes] = 0;
        vp_text_copy(cut, sizeof cut, quoted);
        vp_message_text(&message, *before ? " '" : "'");
        vp_message_text(&message, cut);
        vp_message_text(&message, "' ");
    }
    vp_message_text(&message, after);
    return vp_fail(l->error, code, node == VP_JSON_NONE ? -1 : (int64_t)l->nodes[node].start, where, message.text);
}

static vp_result vp_impl_load_no_memory(const vp_impl_loader *l) {
    return vp_fail(l->error, VP_ERR_MEMORY, -1, "tokenizer", "not enough memory to load the tokenizer");
}

/* Options of a component: alternatives parted by |, a string after =, * for anything. */
typedef struct vp_impl_option { const char *key, *allowed; int required; } vp_impl_option;

static int vp_impl_option_allows(const vp_json *json, uint32_t value, const char *allowed) {
    const vp_json_node *node = &json->nodes[value];
    for (;;) {
        size_t length = strcspn(allowed, "|");
        if (*allowed == '*') return 1;
        if (node->type == VP_JSON_STRING) {
            if (*allowed == '=' && vp_json_equals_bytes(json, value, allowed + 1, length - 1)) return 1;
        } else if (node->bytes == length && !memcmp(json->text + node->start, allowed, length)) {
            return 1;
        }
        if (!allowed[length]) return 0;
        allowed += length + 1;
    }
}

/* Checks an object against its options; values[i] gets the node of options[i] or VP_JSON_NONE. */
static vp_result vp_impl_load_options(const vp_impl_loader *l, uint32_t object, const char *where, const vp_impl_option *options, size_t count,
                                      uint32_t *values) {
    const vp_json_node *nodes = l->nodes;
    uint32_t key;
    size_t i;
    if (nodes[object].type != VP_JSON_OBJECT) return vp_impl_load_wrong(l, VP_ERR_FORMAT, object, where, "", "stands where an object belongs");
    for (i = 0; i < count; i++) values[i] = VP_JSON_NONE;
    for (key = object + 1; key < nodes[object].end; key = nodes[key + 1].end) {
        for (i = 0; i < count && !vp_json_equals(&l->json, key, options[i].key); i++) {}
        if (i == count) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, key, where, "option", "is not known to this reader");
        if (values[i] != VP_JSON_NONE) return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, where, "option", "is given twice");
        values[i] = key + 1;
    }
    for (i = 0; i < count; i++) {
        vp_message message = { { 0 }, 0 };
        if (values[i] == VP_JSON_NONE && !options[i].required) continue;
        vp_message_text(&message, options[i].key);
        if (values[i] == VP_JSON_NONE) {
            vp_message_text(&message, " is missing");
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, where, message.text, "");
        }
        if (vp_impl_option_allows(&l->json, values[i], options[i].allowed)) continue;
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, values[i], where, message.text, "is not implemented");
    }
    return VP_OK;
}

static int vp_impl_load_is_null(const vp_impl_loader *l, uint32_t node) {
    return node == VP_JSON_NONE || l->nodes[node].type == VP_JSON_NULL;
}

/* Nothing may be put around a text: the template of a single sequence is that sequence. */
static vp_result vp_impl_load_post_processor(const vp_impl_loader *l, uint32_t node) {
    static const vp_impl_option byte_level[4] = {
        { "type", "=ByteLevel|=TemplateProcessing", 1 }, { "add_prefix_space", "*", 0 }, { "trim_offsets", "*", 0 }, { "use_regex", "*", 0 }
    };
    static const vp_impl_option template_options[4] = { { "type", "*", 1 }, { "single", "*", 1 }, { "pair", "*", 0 }, { "special_tokens", "*", 0 } };
    uint32_t v[4], item, sequence;
    vp_result result;
    if (vp_impl_load_is_null(l, node)) return VP_OK;
    item = vp_json_get(&l->json, node, "type");
    if (item == VP_JSON_NONE || !vp_json_equals(&l->json, item, "TemplateProcessing")) {
        return vp_impl_load_options(l, node, "post_processor", byte_level, 4, v);
    }
    result = vp_impl_load_options(l, node, "post_processor", template_options, 4, v);
    if (result != VP_OK) return result;
    item = vp_json_at(&l->json, v[1], 0);
    sequence = item == VP_JSON_NONE || l->nodes[v[1]].count != 1 ? VP_JSON_NONE : vp_json_get(&l->json, item, "Sequence");
    sequence = sequence == VP_JSON_NONE || l->nodes[item].count != 1 ? VP_JSON_NONE : vp_json_get(&l->json, sequence, "id");
    if (sequence == VP_JSON_NONE || !vp_json_equals(&l->json, sequence, "A")) {
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, v[1], "post_processor.single", "template", "adds tokens, which is not implemented");
    }
    return VP_OK;
}

/* Every component by name, every option by value. */
static vp_result vp_impl_load_structure(vp_impl_loader *l) {
    static const vp_impl_option top[9] = {
        { "version", "=1.0", 1 }, { "truncation", "null", 0 }, { "padding", "null", 0 }, { "added_tokens", "*", 0 }, { "normalizer", "*", 0 },
        { "pre_tokenizer", "*", 1 }, { "post_processor", "*", 0 }, { "decoder", "*", 1 }, { "model", "*", 1 }
    };
    static const vp_impl_option normalizer[1] = { { "type", "=NFC", 1 } };
    static const vp_impl_option pre_tokenizer[4] = {
        { "type", "=ByteLevel", 1 }, { "add_prefix_space", "false", 1 }, { "trim_offsets", "true|false", 0 }, { "use_regex", "true", 0 }
    };
    static const vp_impl_option decoder[4] = { /* none of these changes what ids decode to */
        { "type", "=ByteLevel", 1 }, { "add_prefix_space", "true|false", 0 }, { "trim_offsets", "true|false", 0 }, { "use_regex", "true|false", 0 }
    };
    static const vp_impl_option model[10] = {
        { "type", "=BPE", 0 }, { "dropout", "null|0|0.0", 0 }, { "unk_token", "null", 0 }, { "continuing_subword_prefix", "null|=", 0 },
        { "end_of_word_suffix", "null|=", 0 }, { "fuse_unk", "false", 0 }, { "byte_fallback", "false", 0 }, { "ignore_merges", "false", 0 },
        { "vocab", "*", 1 }, { "merges", "*", 1 }
    };
    uint32_t v[10], parts[9];
    vp_result result = vp_impl_load_options(l, 0, "tokenizer", top, 9, parts);
    if (result == VP_OK && !vp_impl_load_is_null(l, parts[4])) {
        result = vp_impl_load_options(l, parts[4], "normalizer", normalizer, 1, v);
        l->t->nfc = 1;
    }
    if (result == VP_OK) result = vp_impl_load_options(l, parts[5], "pre_tokenizer", pre_tokenizer, 4, v);
    if (result == VP_OK) result = vp_impl_load_post_processor(l, parts[6]);
    if (result == VP_OK) result = vp_impl_load_options(l, parts[7], "decoder", decoder, 4, v);
    if (result == VP_OK) result = vp_impl_load_options(l, parts[8], "model", model, 10, v);
    if (result != VP_OK) return result;
    l->added_node = parts[3];
    l->vocabulary_node = v[8];
    l->merges_node = v[9];
    if (l->nodes[v[8]].type != VP_JSON_OBJECT) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[8], "model.vocab", "", "stands where an object belongs");
    if (l->nodes[v[9]].type != VP_JSON_ARRAY) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[9], "model.merges", "", "stands where an array belongs");
    if (!vp_impl_load_is_null(l, parts[3]) && l->nodes[parts[3]].type != VP_JSON_ARRAY) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, parts[3], "added_tokens", "", "stands where an array belongs");
    }
    return VP_OK;
}

/* The alphabet of GPT-2's bytes_to_unicode: printable Latin-1 stands for itself, the other 68 bytes are U+0100 and on. */
static void vp_impl_load_alphabet(vp_impl_loader *l) {
    uint32_t b, other = 256;
    memset(l->byte_of, 0xFF, sizeof l->byte_of);
    for (b = 0; b < 256; b++) {
        int printable = (b > 32 && b < 127) || (b > 160 && b != 173);
        l->alphabet[b] = printable ? b : other++;
        l->byte_of[l->alphabet[b]] = (int32_t)b;
    }
}

/* What a token decodes to; returns its bytes, never more than the name has. */
static size_t vp_impl_load_token_bytes(const vp_impl_loader *l, const char *name, size_t bytes, char *out) {
    size_t at = 0, used = 0, length;
    while (at < bytes) {
        uint32_t code = vp_unicode_next_valid((const uint8_t *)name + at, &length);
        if (code >= 512 || l->byte_of[code] < 0) { /* not of the alphabet: the token is its own text */
            if (bytes) memcpy(out, name, bytes);
            return bytes;
        }
        out[used++] = (char)l->byte_of[code];
        at += length;
    }
    return used;
}

/* Power of two with room for twice `count`. */
static uint32_t vp_impl_load_slots(uint32_t count) {
    uint32_t slots = 4;
    while (slots / 2 <= count && slots < (uint32_t)1 << 31) slots *= 2;
    return slots;
}

/* Index of a name, or UINT32_MAX; *slot: where it is or belongs */
static uint32_t vp_impl_names_find(const vp_impl_names *names, const char *text, size_t bytes, uint32_t *slot) {
    uint32_t at = vp_impl_word_hash((const uint8_t *)text, bytes) & names->mask;
    for (; names->slots[at]; at = (at + 1) & names->mask) {
        uint32_t index = names->slots[at] - 1;
        if (names->start[index + 1] - names->start[index] == bytes && !memcmp(names->text + names->start[index], text, bytes)) break;
    }
    *slot = at;
    return names->slots[at] - 1;
}

/* Adds the name that the caller has written at text + start[count]. */
static void vp_impl_names_add(vp_impl_names *names, size_t bytes, int32_t id, uint32_t slot) {
    names->start[names->count + 1] = names->start[names->count] + bytes;
    names->id[names->count] = id;
    names->slots[slot] = ++names->count;
}

/* A token's id: a whole number that fits our tables. */
static vp_result vp_impl_load_id(const vp_impl_loader *l, uint32_t node, const char *where, int32_t *id) {
    int64_t value;
    if (l->nodes[node].type != VP_JSON_NUMBER || vp_json_to_int(&l->json, node, &value) != VP_OK || value < 0) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, where, "id", "is not a whole number from 0 on");
    }
    if (value >= VP_IMPL_TOKEN_LIMIT) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, node, where, "id", "is over 4194303");
    *id = (int32_t)value;
    return VP_OK;
}

static vp_result vp_impl_load_vocabulary(vp_impl_loader *l) {
    const vp_json_node *nodes = l->nodes, *object = &nodes[l->vocabulary_node];
    uint32_t added = vp_impl_load_is_null(l, l->added_node) ? 0 : nodes[l->added_node].count, key, slot, all;
    vp_impl_names *names = &l->names;
    vp_result result;
    size_t bytes;
    int32_t id = 0;
    if (object->count > VP_IMPL_TOKEN_LIMIT || added > VP_IMPL_TOKEN_LIMIT) {
        return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, VP_JSON_NONE, "tokenizer", "more than 4194304 tokens", "");
    }
    all = object->count + added;
    names->mask = vp_impl_load_slots(all) - 1;
    names->text = (char *)malloc(l->json_bytes + 1); /* an unescaped text is never longer than the escaped one */
    names->start = (uint64_t *)calloc((size_t)all + 1, sizeof *names->start);
    names->id = (int32_t *)calloc((size_t)all + 1, sizeof *names->id);
    names->added = (uint8_t *)calloc((size_t)all + 1, 1);
    names->slots = (uint32_t *)calloc((size_t)names->mask + 1, sizeof *names->slots);
    if (!names->text || !names->start || !names->id || !names->added || !names->slots) return vp_impl_load_no_memory(l);
    for (key = l->vocabulary_node + 1; key < object->end; key = nodes[key + 1].end) {
        char *text = names->text + names->start[names->count];
        if (vp_json_text(&l->json, key, text, l->json_bytes + 1 - (size_t)names->start[names->count], &bytes) != VP_OK) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, "model.vocab", "token", "cannot be read");
        }
        result = vp_impl_load_id(l, key + 1, "model.vocab", &id);
        if (result != VP_OK) return result;
        if (vp_impl_names_find(names, text, bytes, &slot) != UINT32_MAX) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, key, "model.vocab", "token", "is there twice");
        }
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->vocabulary_count = names->count;
    return VP_OK;
}

static int vp_impl_added_compare(const void *a, const void *b) {
    const vp_impl_added *x = (const vp_impl_added *)a, *y = (const vp_impl_added *)b;
    int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sorts a set and indexes it; 0 when two tokens are the same text. */
static int vp_impl_added_sort(vp_impl_added_set *set) {
    uint32_t i, b;
    if (set->count) qsort(set->tokens, set->count, sizeof *set->tokens, vp_impl_added_compare);
    for (i = b = 0; b < 256; b++) {
        set->first[b] = i;
        while (i < set->count && (uint8_t)set->tokens[i].text[0] == b) i++;
    }
    set->first[256] = i;
    for (i = 1; i < set->count; i++) {
        if (!vp_impl_added_compare(&set->tokens[i - 1], &set->tokens[i])) return 0;
    }
    return 1;
}

/* Keeps an added token's text (normalised where it is to be matched so). */
static int vp_impl_load_added_text(vp_impl_loader *l, const char *name, size_t bytes, int32_t id, int normalized) {
    vp_impl_added_set *set = normalized ? &l->t->normalized : &l->t->raw;
    vp_impl_added *token = &set->tokens[set->count++];
    char *text = l->t->added_text + l->t->added_used;
    if (normalized && l->t->nfc) vp_impl_nfc(&l->work, name, bytes, &name, &bytes);
    if (l->work.out_of_memory) return 0;
    memcpy(text, name, bytes);
    l->t->added_used += bytes;
    token->text = text;
    token->bytes = (uint32_t)bytes;
    token->id = id;
    return 1;
}

/* One added token. Its id must be the one the reference would give it: the vocabulary's, else the next one after the vocabulary's
 * size and after every added token before (the reference ignores the number in the file). */
static vp_result vp_impl_load_added_token(vp_impl_loader *l, uint32_t node, int64_t *highest) {
    static const vp_impl_option options[7] = {
        { "id", "*", 1 }, { "content", "*", 1 }, { "single_word", "false", 1 }, { "lstrip", "false", 1 }, { "rstrip", "false", 1 },
        { "normalized", "true|false", 1 }, { "special", "true|false", 1 }
    };
    vp_impl_names *names = &l->names;
    char *text = names->text + names->start[names->count];
    uint32_t v[7], slot, index;
    int64_t expected;
    int32_t id = 0;
    size_t bytes;
    vp_result result = vp_impl_load_options(l, node, "added_tokens", options, 7, v);
    if (result == VP_OK) result = vp_impl_load_id(l, v[0], "added_tokens", &id);
    if (result != VP_OK) return result;
    if (vp_json_text(&l->json, v[1], text, l->json_bytes + 1 - (size_t)names->start[names->count], &bytes) != VP_OK || !bytes) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[1], "added_tokens", "content", "is not a text of one character or more");
    }
    if (bytes > VP_IMPL_ADDED_BYTES) return vp_impl_load_wrong(l, VP_ERR_UNSUPPORTED, v[1], "added_tokens", "content", "is longer than 1024 bytes");
    index = vp_impl_names_find(names, text, bytes, &slot);
    expected = *highest >= (int64_t)names->vocabulary_count || !names->vocabulary_count ? *highest + 1 : (int64_t)names->vocabulary_count;
    if (index != UINT32_MAX) {
        if (names->added[index]) return vp_impl_load_wrong(l, VP_ERR_FORMAT, v[1], "added_tokens", "token", "is there twice");
        expected = names->id[index];
    }
    if (id != expected) {
        return vp_impl_load_wrong(l, VP_ERR_MISMATCH, v[1], "added_tokens", "token",
                                  "has another id than its place in the vocabulary, or the next free one, gives it");
    }
    if (index == UINT32_MAX) {
        index = names->count;
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->added[index] = (uint8_t)(VP_IMPL_TOKEN_PRESENT | (l->nodes[v[6]].type == VP_JSON_TRUE ? VP_IMPL_TOKEN_SPECIAL : 0));
    if (id > *highest) *highest = id;
    text = names->text + names->start[index];
    return vp_impl_load_added_text(l, text, bytes, id, l->nodes[v[5]].type == VP_JSON_TRUE) ? VP_OK : vp_impl_load_no_memory(l);
}

static vp_result vp_impl_load_added(vp_impl_loader *l) {
    const vp_json_node *array = &l->nodes[l->added_node];
    int64_t highest = -1;
    uint32_t node;
    size_t text_bytes;
    vp_result result;
    if (vp_impl_load_is_null(l, l->added_node)) return VP_OK;
    text_bytes = (size_t)array->bytes; /* NFC makes a text at most three times as long */
    if (text_bytes > SIZE_MAX / 3 - 1) return vp_impl_load_no_memory(l);
    l->t->added_text = (char *)malloc(text_bytes * 3 + 1);
    l->t->raw.tokens = (vp_impl_added *)calloc((size_t)array->count + 1, sizeof(vp_impl_added));
    l->t->normalized.tokens = (vp_impl_added *)calloc((size_t)array->count + 1, sizeof(vp_impl_added));
    if (!l->t->added_text || !l->t->raw.tokens || !l->t->normalized.tokens) return vp_impl_load_no_memory(l);
    for (node = l->added_node + 1; node < array->end; node = l->nodes[node].end) {
        result = vp_impl_load_added_token(l, node, &highest);
        if (result != VP_OK) return result;
    }
    if (!vp_impl_added_sort(&l->t->raw) || !vp_impl_added_sort(&l->t->normalized)) {
        return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, "added_tokens", "two tokens are the same text after normalisation", "");
    }
    return VP_OK;
}

/* The table from ids to bytes, and from bytes to the ids that words start from. */
static vp_result vp_impl_load_tokens(vp_impl_loader *l) {
    vp_impl_names *names = &l->names;
    vp_tokenizer *t = l->t;
    uint32_t i, slot;
    uint64_t total = 0;
    size_t bytes;
    for (i = 0; i < names->count; i++) {
        if ((uint32_t)names->id[i] >= t->token_count) t->token_count = (uint32_t)names->id[i] + 1;
        total = names->start[i + 1];
    }
    t->token_flags = (uint8_t *)calloc((size_t)t->token_count + 1, 1);
    t->token_start = (uint64_t *)calloc((size_t)t->token_count + 1, sizeof *t->token_start);
    t->token_bytes = (char *)malloc((size_t)total + 1);
    if (!t->token_flags || !t->token_start || !t->token_bytes) return vp_impl_load_no_memory(l);
    for (i = 0; i < names->count; i++) { /* lengths first: ids come in any order */
        uint32_t id = (uint32_t)names->id[i];
        if (t->token_flags[id]) {
            vp_message message = { { 0 }, 0 };
            vp_message_text(&message, "two tokens have the id ");
            vp_message_int(&message, (int64_t)id);
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, VP_JSON_NONE, "model.vocab", message.text, "");
        }
        t->token_flags[id] = (uint8_t)(VP_IMPL_TOKEN_PRESENT | (names->added[i] & VP_IMPL_TOKEN_SPECIAL));
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        t->token_start[id + 1] = vp_impl_load_token_bytes(l, names->text + names->start[i], bytes, l->scratch);
    }
    for (i = 0; i < t->token_count; i++) t->token_start[i + 1] += t->token_start[i];
    for (i = 0; i < names->count; i++) {
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        bytes = vp_impl_load_token_bytes(l, names->text + names->start[i], bytes, l->scratch);
        memcpy(t->token_bytes + t->token_start[names->id[i]], l->scratch, bytes);
    }
    for (i = 0; i < 256; i++) {
        char text[4];
        uint32_t index = vp_impl_names_find(names, text, vp_utf8_put(text, l->alphabet[i]), &slot);
        t->byte_id[i] = index < names->vocabulary_count ? names->id[index] : -1;
    }
    return VP_OK;
}

/* The two parts of a merge, one behind the other in scratch: "a b" or ["a", "b"]. 0: neither. */
static int vp_impl_load_merge_parts(vp_impl_loader *l, uint32_t node, size_t *left, size_t *right) {
    const vp_json_node *n = &l->nodes[node];
    size_t room = l->json_bytes + 1;
    char *space;
    if (n->type == VP_JSON_ARRAY) {
        return n->count == 2 && vp_json_text(&l->json, node + 1, l->scratch, room, left) == VP_OK &&
               vp_json_text(&l->json, node + 2, l->scratch + *left, room - *left, right) == VP_OK;
    }
    if (n->type != VP_JSON_STRING || vp_json_text(&l->json, node, l->scratch, room, right) != VP_OK) return 0;
    space = (char *)memchr(l->scratch, ' ', *right);
    if (!space) return 0;
    *left = (size_t)(space - l->scratch);
    *right -= *left + 1;
    if (memchr(space + 1, ' ', *right)) return 0;
    memmove(space, space + 1, *right);
    return 1;
}

static vp_result vp_impl_load_merges(vp_impl_loader *l) {
    const vp_json_node *array = &l->nodes[l->merges_node], *nodes = l->nodes;
    vp_impl_names *names = &l->names;
    vp_tokenizer *t = l->t;
    uint32_t node, rank = 0, i, slot;
    t->merge_mask = vp_impl_load_slots(array->count) - 1;
    t->merges = (vp_impl_merge *)malloc(((size_t)t->merge_mask + 1) * sizeof *t->merges);
    if (!t->merges) return vp_impl_load_no_memory(l);
    for (i = 0; i <= t->merge_mask; i++) t->merges[i].rank = UINT32_MAX;
    for (node = l->merges_node + 1; node < array->end; node = nodes[node].end) {
        size_t left, right;
        uint32_t a, b, product;
        vp_impl_merge *merge;
        if (nodes[node].type == VP_JSON_STRING && nodes[node].bytes >= 8 && !memcmp(l->json.text + nodes[node].start, "#version", 8)) continue;
        if (!vp_impl_load_merge_parts(l, node, &left, &right)) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, "model.merges", "merge", "is not a pair of tokens");
        }
        a = vp_impl_names_find(names, l->scratch, left, &slot);
        b = vp_impl_names_find(names, l->scratch + left, right, &slot);
        product = vp_impl_names_find(names, l->scratch, left + right, &slot);
        if (a >= names->vocabulary_count || b >= names->vocabulary_count || product >= names->vocabulary_count) {
            return vp_impl_load_wrong(l, VP_ERR_FORMAT, node, "model.merges", "merge", "has a part or a product that the vocabulary lacks");
        }
        a = (uint32_t)names->id[a];
        b = (uint32_t)names->id[b];
        i = (uint32_t)vp_unicode_mix((uint64_t)a << 32 | b) & t->merge_mask;
        while (t->merges[i].rank != UINT32_MAX && (t->merges[i].left != a || t->merges[i].right != b)) i = (i + 1) & t->merge_mask;
        merge = &t->merges[i];
        merge->left = a;
        merge->right = b;
        merge->rank = rank++; /* a pair listed twice has its last rank, as in the reference */
        merge->product = (uint32_t)names->id[product];
    }
    return VP_OK;
}

/* Finds the tokens that encoding their own bytes gives back: a word that is one of them needs no merging. */
static vp_result vp_impl_load_words(vp_impl_loader *l) {
    vp_tokenizer *t = l->t;
    uint32_t i, slot;
    t->word_mask = vp_impl_load_slots(l->names.vocabulary_count) - 1;
    t->words = (vp_impl_word *)malloc(((size_t)t->word_mask + 1) * sizeof *t->words);
    if (!t->words) return vp_impl_load_no_memory(l);
    for (i = 0; i <= t->word_mask; i++) t->words[i].id = -1;
    for (i = 0; i < l->names.vocabulary_count; i++) {
        int32_t id = l->names.id[i];
        const uint8_t *bytes = (const uint8_t *)t->token_bytes + t->token_start[id];
        uint64_t count = t->token_start[id + 1] - t->token_start[id];
        uint32_t hash;
        l->work.id_count = 0;
        if (count > VP_IMPL_TEXT_BYTES) continue;
        vp_impl_merge_word(&l->work, bytes, (size_t)count);
        if (l->work.out_of_memory) return vp_impl_load_no_memory(l);
        if (l->work.id_count != 1 || l->work.ids[0] != id) continue;
        hash = vp_impl_word_hash(bytes, (size_t)count);
        for (slot = hash & t->word_mask; t->words[slot].id >= 0;) slot = (slot + 1) & t->word_mask;
        t->words[slot].hash = hash;
        t->words[slot].id = id;
        if (count > t->word_longest) t->word_longest = (uint32_t)count;
    }
    return VP_OK;
}

static vp_result vp_impl_load_all(vp_impl_loader *l, const char *json) {
    size_t needed = l->json_bytes / 4 + 16; /* enough for every real file; the parser says when it is not */
    uint32_t i, slot, index;
    vp_result result = VP_ERR_CAPACITY;
    vp_error parse_error; /* not the caller's: a second try may succeed */
    while (result == VP_ERR_CAPACITY) {
        free(l->nodes);
        l->nodes = needed <= SIZE_MAX / sizeof *l->nodes ? (vp_json_node *)malloc(needed * sizeof *l->nodes) : NULL;
        if (!l->nodes) return vp_impl_load_no_memory(l);
        result = vp_json_parse(json, l->json_bytes, l->nodes, needed, &l->json, &needed, &parse_error);
    }
    if (result != VP_OK) return vp_fail(l->error, parse_error.code, parse_error.offset, parse_error.where, parse_error.text);
    l->scratch = (char *)malloc(l->json_bytes + 1);
    l->t->unicode = (vp_unicode_forms *)malloc(sizeof *l->t->unicode);
    if (!l->scratch || !l->t->unicode) return vp_impl_load_no_memory(l);
    vp_unicode_forms_init(l->t->unicode);
    vp_impl_load_alphabet(l);
    result = vp_impl_load_structure(l);
    if (result == VP_OK) result = vp_impl_load_vocabulary(l);
    if (result == VP_OK) result = vp_impl_load_added(l);
    if (result == VP_OK) result = vp_impl_load_tokens(l);
    if (result == VP_OK) result = vp_impl_load_merges(l);
    if (result == VP_OK) result = vp_impl_load_words(l);
    if (result != VP_OK) return result;
    for (i = 0; i < 7; i++) {
        index = vp_impl_names_find(&l->names, vp_impl_special_contents[i], strlen(vp_impl_special_contents[i]), &slot);
        l->t->special[i] = index == UINT32_MAX ? -1 : l->names.id[index];
    }
    return VP_OK;
}

VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error) {
    vp_impl_loader loader;
    vp_result result;
    if (!json || !tokenizer) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "no text or no place for the tokenizer");
    if (bytes > SIZE_MAX - 1) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "the text is too long");
    memset(&loader, 0, sizeof loader);
    loader.json_bytes = bytes;
    loader.error = error;
    loader.work.t = loader.t = (vp_tokenizer *)calloc(1, sizeof *loader.t);
    result = loader.t ? vp_impl_load_all(&loader, json) : vp_impl_load_no_memory(&loader);
    if (result == VP_OK) *tokenizer = loader.t; else vp_tokenizer_free(loader.t);
    vp_impl_work_free(&loader.work);
    free(loader.nodes);
    free(loader.scratch);
    free(loader.names.text);
    free(loader.names.start);
    free(loader.names.id);
    free(loader.names.added);
    free(loader.names.slots);
    return result;
}

/* Fills the tables of the byte tokenizer; special ids in the order of vp_impl_special_contents. */
static vp_result vp_impl_bytes_fill(vp_tokenizer *t) {
    size_t used = 0;
    uint32_t i, id, k;
    t->token_flags = (uint8_t *)calloc((size_t)t->token_count + 1, 1);
    t->token_start = (uint64_t *)calloc((size_t)t->token_count + 1, sizeof *t->token_start);
    t->token_bytes = (char *)malloc(256 + 7 * 16);
    t->raw.tokens = (vp_impl_added *)calloc(7, sizeof *t->raw.tokens);
    if (!t->token_flags || !t->token_start || !t->token_bytes || !t->raw.tokens) return VP_ERR_MEMORY;
    for (i = 0; i < 256; i++) {
        t->byte_id[i] = (int32_t)i + 2;
        t->token_flags[i + 2] = VP_IMPL_TOKEN_PRESENT;
    }
    for (k = 0; k < 7; k++) {
        if (t->token_flags[t->special[k]]) return VP_ERR_MISMATCH;
        t->token_flags[t->special[k]] = VP_IMPL_TOKEN_PRESENT | VP_IMPL_TOKEN_SPECIAL;
        t->raw.tokens[k].text = vp_impl_special_contents[k];
        t->raw.tokens[k].bytes = (uint32_t)strlen(vp_impl_special_contents[k]);
        t->raw.tokens[k].id = t->special[k];
    }
    t->raw.count = 7;
    vp_impl_added_sort(&t->raw);
    for (id = 0; id < t->token_count; id++) {
        if (id >= 2 && id < 258) t->token_bytes[used++] = (char)(id - 2);
        for (k = 0; k < 7; k++) {
            if (t->special[k] != (int32_t)id) continue;
            memcpy(t->token_bytes + used, vp_impl_special_contents[k], strlen(vp_impl_special_contents[k]));
            used += strlen(vp_impl_special_contents[k]);
        }
        t->token_start[id + 1] = used;
    }
    return VP_OK;
}

VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer) {
    vp_tokenizer *t;
    vp_result result;
    int32_t special[7], i;
    if (!ids || !tokenizer) return VP_ERR_RANGE;
    special[0] = ids->eos;
    special[1] = ids->pad;
    special[2] = ids->im_start;
    special[3] = ids->im_end;
    special[4] = ids->im_patch;
    special[5] = ids->im_col;
    special[6] = ids->image;
    for (i = 0; i < 7; i++) {
        if (special[i] < 0 || special[i] >= VP_IMPL_TOKEN_LIMIT || (special[i] >= 2 && special[i] < 258)) return VP_ERR_RANGE;
    }
    if (ids->bos != ids->eos) return VP_ERR_MISMATCH;
    t = (vp_tokenizer *)calloc(1, sizeof *t);
    if (!t) return VP_ERR_MEMORY;
    memcpy(t->special, special, sizeof special);
    t->token_count = 258;
    for (i = 0; i < 7; i++) {
        if ((uint32_t)special[i] >= t->token_count) t->token_count = (uint32_t)special[i] + 1;
    }
    result = vp_impl_bytes_fill(t);
    if (result == VP_OK) *tokenizer = t; else vp_tokenizer_free(t);
    return result;
}

VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer) {
    if (!tokenizer) return;
    free(tokenizer->unicode);
    free(tokenizer->raw.tokens);
    free(tokenizer->normalized.tokens);
    free(tokenizer->added_text);
    free(tokenizer->token_flags);
    free(tokenizer->token_start);
    free(tokenizer->token_bytes);
    free(tokenizer->merges);
    free(tokenizer->words);
    free(tokenizer);
}

VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error) {
    int i;
    if (!tokenizer || !ids) return vp_fail(error, VP_ERR_RANGE, -1, "tokenizer", "no tokenizer or no place for the ids");
    for (i = 0; i < 7; i++) {
        vp_message message = { { 0 }, 0 };
        if (tokenizer->special[i] >= 0) continue;
        vp_message_text(&message, "the tokenizer has no token ");
        vp_message_text(&message, vp_impl_special_contents[i]);
        return vp_fail(error, VP_ERR_NOT_FOUND, -1, vp_impl_special_contents[i], message.text);
    }
    ids->bos = ids->eos = tokenizer->special[0];
    ids->pad = tokenizer->special[1];
    ids->im_start = tokenizer->special[2];
    ids->im_end = tokenizer->special[3];
    ids->im_patch = tokenizer->special[4];
    ids->im_col = tokenizer->special[5];
    ids->image = tokenizer->special[6];
    return VP_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* implementation */
