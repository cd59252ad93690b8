/* vlmprof_tokenizer.c: implements what vlmprof_tokenizer.h declares */
#include "vlmprof_tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum {
    VP_IMPL_TOKEN_LIMIT = 1 << 22, /* ids; bounds the memory that a hostile file can make us allocate */
    VP_IMPL_ADDED_BYTES = 1024,    /* longest added token; bounds the time to match one */
    VP_IMPL_TEXT_BYTES = 1 << 29,
    VP_IMPL_SHORT_WORD = 64
};

typedef struct vp_impl_added { const char *text; uint32_t bytes; int32_t id; } vp_impl_added;
/* added tokens, sorted by bytes; first[b] .. first[b + 1] begin with byte b */
typedef struct vp_impl_added_set { vp_impl_added *tokens; uint32_t count; uint32_t first[257]; } vp_impl_added_set;

typedef struct vp_impl_merge { uint32_t left, right, rank, product; } vp_impl_merge; /* rank UINT32_MAX: free */
typedef struct vp_impl_word { uint32_t hash; int32_t id; } vp_impl_word;              /* id -1: free */

/* a character of the vocabulary and its token; id -1: free */
typedef struct vp_impl_character { uint32_t code; int32_t id; } vp_impl_character;

enum { VP_IMPL_TOKEN_PRESENT = 1, VP_IMPL_TOKEN_SPECIAL = 2, VP_IMPL_TOKEN_BYTE = 4 /* a byte for the fallback */ };

/* the split of a piece into words */
typedef enum vp_impl_split {
    VP_IMPL_SPLIT_GPT2,
    VP_IMPL_SPLIT_DIGITS, /* single digits; otherwise as GPT-2 */
    VP_IMPL_SPLIT_QWEN2,  /* CL100K's pattern, but single digits */
    VP_IMPL_SPLIT_CL100K, /* up to three digits in a word */
    VP_IMPL_SPLIT_NONE,   /* a piece is one word of characters: Llama */
    VP_IMPL_SPLIT_SPACES  /* words of characters, each starting at a space */
} vp_impl_split;
/* pieces that get a U+2581 prepended; with the last two, unless they begin with one */
typedef enum vp_impl_prefix {
    VP_IMPL_PREFIX_NONE, VP_IMPL_PREFIX_ALL, VP_IMPL_PREFIX_MISSING, VP_IMPL_PREFIX_FIRST
} vp_impl_prefix;
/* 1 if the vocabulary consists of characters, not bytes */
static inline int vp_impl_split_is_of_characters(vp_impl_split split) { return split >= VP_IMPL_SPLIT_NONE; }

struct vp_tokenizer {
    vp_unicode_forms *unicode; /* NULL: no words, no normaliser (byte tokenizer) */
    int nfc;
    vp_impl_prefix prefix; /* prepended to a piece; none: Gemma */
    int metaspace, strips; /* metaspace: spaces become U+2581 after added tokens; strips: decoding drops a leading
                             * one */
    vp_impl_split split;
    int32_t bos; /* the template's token; -1: no BOS */
    vp_impl_added_set raw, normalized;
    char *added_text;
    size_t added_used;
    uint32_t token_count; /* largest id + 1 */
    uint8_t *token_flags;
    int whole_words;       /* 1 if a word that is a token becomes that token without merging (ignore_merges) */
    uint64_t *token_start; /* [token_count + 1] offsets into token_bytes, the decoded tokens */
    char *token_bytes;
    int32_t byte_id[256];          /* -1: the vocabulary lacks it */
    vp_impl_character *characters; /* Llama's */
    uint32_t character_mask;
    vp_impl_merge *merges;
    uint32_t merge_mask;
    vp_impl_word *words; /* tokens that their own bytes merge to; most words need no merging */
    uint32_t word_mask, word_longest;
    int32_t special[7]; /* in the order of vp_impl_special_contents; -1: missing */
};

static const char *const vp_impl_special_contents[7] = {"<|endoftext|>", "<|padding|>", "<im_start>", "<im_end>",
                                                        "<im_patch>",    "<im_col>",    "<|image|>"};

/* ------------------------------------------------------------------------------------------------------------- work */

/* Working memory of a call of encode or decode. Buffers grow; vp_impl_work_free frees them. */
typedef struct vp_impl_work {
    const vp_tokenizer *tokenizer;
    int32_t *ids;
    size_t id_count, id_capacity;
    char *text; /* the normalised piece */
    size_t text_used, text_capacity;
    /* characters in normalisation: class << 24 | code point; the second half of the buffer is used for sorting */
    uint32_t *segment;
    size_t segment_count, segment_capacity;
    char *word; /* scratch of a long word */
    size_t word_capacity;
    int out_of_memory;
} vp_impl_work;

static void vp_impl_work_free(vp_impl_work *work) {
    VP_FREE(work->ids);
    VP_FREE(work->text);
    VP_FREE(work->segment);
    VP_FREE(work->word);
}

/* Makes room for `need` elements and keeps the content. Returns 0 (and sets out_of_memory) if there is no memory. */
static int vp_impl_work_room(vp_impl_work *work, void **buffer, size_t *capacity, size_t need, size_t element_bytes) {
    size_t capacity_new = *capacity < 64 ? 64 : *capacity;
    if (need <= *capacity) return 1;
    while (capacity_new < need && capacity_new <= SIZE_MAX / 2) capacity_new *= 2;
    if (capacity_new < need) capacity_new = need;
    void *grown = capacity_new <= SIZE_MAX / element_bytes ? VP_REALLOC(*buffer, capacity_new * element_bytes) : NULL;
    if (!grown) {
        work->out_of_memory = 1;
        return 0;
    }
    *buffer = grown;
    *capacity = capacity_new;
    return 1;
}

static inline void vp_impl_push_id(vp_impl_work *work, int32_t id) {
    if (work->id_count == work->id_capacity) {
        void *ids = work->ids;
        if (!vp_impl_work_room(work, &ids, &work->id_capacity, work->id_count + 1, sizeof(int32_t))) return;
        work->ids = (int32_t *)ids;
    }
    work->ids[work->id_count++] = id;
}

static void vp_impl_push_text(vp_impl_work *work, const char *text, size_t bytes) {
    void *buffer = work->text;
    if (!vp_impl_work_room(work, &buffer, &work->text_capacity, work->text_used + bytes, 1)) return;
    work->text = (char *)buffer;
    if (bytes) memcpy(work->text + work->text_used, text, bytes);
    work->text_used += bytes;
}

/* -------------------------------------------------------------------------------------------------------------- NFC */

/* Canonical ordering of a run of marks. It is stable, and linear for long runs, so that a megabyte of marks is fast. */
static void vp_impl_order_marks(uint32_t *marks, size_t count, uint32_t *scratch) {
    size_t i, j, start[257] = {0};
    if (count <= 24) {
        for (i = 1; i < count; i++) {
            uint32_t mark = marks[i];
            for (j = i; j > 0 && marks[j - 1] >> 24 > mark >> 24; j--) marks[j] = marks[j - 1];
            marks[j] = mark;
        }
        return;
    }
    for (i = 0; i < count; i++) start[(marks[i] >> 24) + 1]++;
    for (i = 1; i < 257; i++) start[i] += start[i - 1];
    for (i = 0; i < count; i++) scratch[start[marks[i] >> 24]++] = marks[i];
    memcpy(marks, scratch, count * sizeof *marks);
}

/* Orders and composes work->segment in place, then appends it to work->text. A mark is blocked by a mark of the same
 * or a higher class that is between it and the starter (Unicode Standard, D115-D117). */
static void vp_impl_compose_segment(vp_impl_work *work) {
    const vp_unicode_forms *forms = work->tokenizer->unicode;
    uint32_t *segment = work->segment, last_class = 0;
    size_t i, j, out = 0, starter = SIZE_MAX, bytes = 0;
    char *out_text;
    for (i = 0; i < work->segment_count; i = j) {
        for (j = i; j < work->segment_count && segment[j] >> 24; j++) {}
        vp_impl_order_marks(segment + i, j - i, segment + work->segment_capacity / 2);
        if (j == i) j++;
    }
    for (i = 0; i < work->segment_count; i++) {
        uint32_t code = segment[i] & 0xFFFFFF, mark_class = segment[i] >> 24, composed = 0;
        if (starter != SIZE_MAX && (starter + 1 == out || last_class < mark_class))
            composed = vp_unicode_compose(forms, segment[starter], code);
        if (composed) {
            segment[starter] = composed;
            continue;
        }
        if (!mark_class) starter = out;
        last_class = mark_class;
        segment[out++] = segment[i];
    }
    void *text = work->text;
    if (!vp_impl_work_room(work, &text, &work->text_capacity, work->text_used + out * 4, 1)) return;
    work->text = out_text = (char *)text;
    out_text += work->text_used;
    for (i = 0; i < out; i++) bytes += vp_utf8_put(out_text + bytes, segment[i] & 0xFFFFFF);
    work->text_used += bytes;
}

/* Normalises one segment: a stable character (or none, at the start of the piece) and the unstable characters after
 * it. */
static void vp_impl_normalise_segment(vp_impl_work *work, const uint8_t *text, size_t bytes) {
    const vp_unicode_forms *forms = work->tokenizer->unicode;
    uint32_t parts[4];
    void *segment = work->segment;
    size_t at = 0, length, count, i;
    /* one byte stays one character; more bytes become at most 4 characters; the buffer has two halves, see segment */
    if (!vp_impl_work_room(work, &segment, &work->segment_capacity, bytes * 4, sizeof(uint32_t))) return;
    work->segment = (uint32_t *)segment;
    work->segment_count = 0;
    while (at < bytes) {
        count = vp_unicode_decompose(forms, vp_unicode_next_valid(text + at, &length), parts);
        at += length;
        for (i = 0; i < count; i++)
            work->segment[work->segment_count++] = parts[i] | vp_unicode_combining_class(forms, parts[i]) << 24;
    }
    vp_impl_compose_segment(work);
}

/* NFC of a piece of valid UTF-8. *out points to the piece itself if nothing changes, otherwise into work->text. */
static void vp_impl_nfc(vp_impl_work *work, const char *piece, size_t bytes, const char **out, size_t *out_bytes) {
    const uint8_t *raw = (const uint8_t *)piece;
    const uint8_t *properties = work->tokenizer->unicode->properties;
    size_t i = 0, length, last_stable = 0, copied = 0;
    *out = piece;
    *out_bytes = bytes;
    work->text_used = 0;
    while (i < bytes) {
        if (raw[i] < 0xCC) { /* below U+0300: stable */
            last_stable = i++;
            if (raw[last_stable] >= 0x80) i++;
            continue;
        }
        if (!(properties[vp_unicode_next_valid(raw + i, &length)] & VP_UNICODE_UNSTABLE)) {
            last_stable = i;
            i += length;
            continue;
        }
        vp_impl_push_text(work, piece + copied, last_stable - copied);
        while (i < bytes && (properties[vp_unicode_next_valid(raw + i, &length)] & VP_UNICODE_UNSTABLE)) i += length;
        vp_impl_normalise_segment(work, raw + last_stable, i - last_stable);
        last_stable = copied = i;
    }
    if (!copied) return;
    vp_impl_push_text(work, piece + copied, bytes - copied);
    *out = work->text;
    *out_bytes = work->text_used;
}

/* Llama's spaces: U+2581 and the space count as one character, stored here as a space. One is prepended, but not for
 * Gemma. is_first: the text begins with the piece. */
static void vp_impl_spaces(vp_impl_work *work, const char *piece, size_t bytes, int is_first, const char **out,
                           size_t *out_bytes) {
    const vp_impl_prefix prefix = work->tokenizer->prefix;
    const int is_there = bytes && (piece[0] == ' ' || (bytes >= 3 && !memcmp(piece, "\xE2\x96\x81", 3)));
    size_t i, from = 0;
    work->text_used = 0;
    if (bytes && (prefix == VP_IMPL_PREFIX_ALL
                  || (!is_there && (prefix == VP_IMPL_PREFIX_MISSING || (prefix == VP_IMPL_PREFIX_FIRST && is_first)))))
        vp_impl_push_text(work, " ", 1);
    for (i = 0; i + 3 <= bytes; i++) {
        if (memcmp(piece + i, "\xE2\x96\x81", 3) != 0) continue;
        vp_impl_push_text(work, piece + from, i - from);
        vp_impl_push_text(work, " ", 1);
        from = i + 3;
        i += 2;
    }
    vp_impl_push_text(work, piece + from, bytes - from);
    *out = work->text;
    *out_bytes = work->text_used;
}

/* Normalises a piece before it is split into words. */
static void vp_impl_normalise(vp_impl_work *work, const char **piece, size_t *bytes) {
    if (work->tokenizer->nfc) vp_impl_nfc(work, *piece, *bytes, piece, bytes);
    else if (vp_impl_split_is_of_characters(work->tokenizer->split) && !work->tokenizer->metaspace)
        vp_impl_spaces(work, *piece, *bytes, 0, piece, bytes);
}

/* -------------------------------------------------------------------------------------------------------------- BPE */

/* The initial ids of a word: those of the byte or character at `at`. Returns its size in bytes. ids must have room for
 * 4. */
static inline size_t vp_impl_first_ids(const vp_tokenizer *tokenizer, const uint8_t *word, size_t at, int32_t *ids,
                                       size_t *count) {
    size_t length = 1, i;
    if (vp_impl_split_is_of_characters(tokenizer->split)) {
        const uint32_t code = vp_unicode_next_valid(word + at, &length);
        uint32_t slot = (uint32_t)vp_unicode_mix(code) & tokenizer->character_mask;
        for (; tokenizer->characters[slot].id >= 0; slot = (slot + 1) & tokenizer->character_mask) {
            if (tokenizer->characters[slot].code != code) continue;
            ids[0] = tokenizer->characters[slot].id;
            *count = 1;
            return length;
        }
    }
    for (i = *count = 0; i < length; i++)
        if (tokenizer->byte_id[word[at + i]] >= 0) ids[(*count)++] = tokenizer->byte_id[word[at + i]];
    return length;
}

static inline uint32_t vp_impl_word_hash(const uint8_t *word, size_t bytes) {
    uint64_t hash = bytes, part;
    for (; bytes >= 8; word += 8, bytes -= 8) {
        memcpy(&part, word, 8);
        hash = vp_unicode_mix(hash ^ part);
    }
    for (part = 0; bytes > 0; bytes--) part = part << 8 | *word++;
    return (uint32_t)vp_unicode_mix(hash ^ part);
}

static inline const vp_impl_merge *vp_impl_merge_find(const vp_tokenizer *tokenizer, uint32_t left, uint32_t right) {
    uint32_t slot = (uint32_t)vp_unicode_mix((uint64_t)left << 32 | right) & tokenizer->merge_mask;
    for (; tokenizer->merges[slot].rank != UINT32_MAX; slot = (slot + 1) & tokenizer->merge_mask) {
        if (tokenizer->merges[slot].left == left && tokenizer->merges[slot].right == right)
            return &tokenizer->merges[slot];
    }
    return NULL;
}

/* Merges a word of at most VP_IMPL_SHORT_WORD bytes: repeatedly searches the lowest rank, leftmost first. */
static void vp_impl_merge_short(vp_impl_work *work, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *tokenizer = work->tokenizer;
    const vp_impl_merge *found;
    int32_t id[VP_IMPL_SHORT_WORD];
    /* rank and product of the pair that begins at each index; the last index begins none */
    uint32_t rank[VP_IMPL_SHORT_WORD], product[VP_IMPL_SHORT_WORD];
    size_t i, best, count = 0, first_count;
    int32_t first[4];
    for (i = 0; i < bytes;) {
        i += vp_impl_first_ids(tokenizer, word, i, first, &first_count);
        for (best = 0; best < first_count; best++) id[count++] = first[best];
    }
    for (i = 0; i < count; i++) {
        found = i + 1 < count ? vp_impl_merge_find(tokenizer, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
        rank[i] = found ? found->rank : UINT32_MAX;
        product[i] = found ? found->product : 0;
    }
    while (count > 1) {
        for (best = 0, i = 1; i + 1 < count; i++) {
            if (rank[i] < rank[best]) best = i;
        }
        if (rank[best] == UINT32_MAX) break;
        id[best] = (int32_t)product[best];
        count--;
        for (i = best + 1; i < count; i++) {
            id[i] = id[i + 1];
            rank[i] = rank[i + 1];
            product[i] = product[i + 1];
        }
        for (i = best ? best - 1 : 0; i <= best; i++) {
            found = i + 1 < count ? vp_impl_merge_find(tokenizer, (uint32_t)id[i], (uint32_t)id[i + 1]) : NULL;
            rank[i] = found ? found->rank : UINT32_MAX;
            product[i] = found ? found->product : 0;
        }
    }
    for (i = 0; i < count; i++) vp_impl_push_id(work, id[i]);
}

/* a long word: a doubly linked list of symbols and a heap of rank << 32 | position */
typedef struct vp_impl_list {
    /* rank[i]: rank of the pair that begins at i; UINT32_MAX: none, or i was merged */
    uint32_t *next, *previous, *rank, *product;
    int32_t *id;
    uint64_t *heap;
    size_t heap_count;
} vp_impl_list;

static void vp_impl_heap_push(vp_impl_list *list, uint64_t entry) {
    size_t i = list->heap_count++;
    while (i > 0 && list->heap[(i - 1) / 2] > entry) {
        list->heap[i] = list->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    list->heap[i] = entry;
}

static uint64_t vp_impl_heap_pop(vp_impl_list *list) {
    uint64_t top = list->heap[0], moved = list->heap[--list->heap_count];
    size_t i = 0, child;
    while ((child = i * 2 + 1) < list->heap_count) {
        if (child + 1 < list->heap_count && list->heap[child + 1] < list->heap[child]) child++;
        if (list->heap[child] >= moved) break;
        list->heap[i] = list->heap[child];
        i = child;
    }
    list->heap[i] = moved;
    return top;
}

/* Records the pair that begins at `at`; `count` is the end of the list. */
static void vp_impl_list_pair(const vp_tokenizer *tokenizer, vp_impl_list *list, uint32_t at, uint32_t count) {
    const vp_impl_merge *found = list->next[at] < count ? vp_impl_merge_find(tokenizer, (uint32_t)list->id[at],
                                                                             (uint32_t)list->id[list->next[at]])
                                                        : NULL;
    list->rank[at] = found ? found->rank : UINT32_MAX;
    if (!found) return;
    list->product[at] = found->product;
    vp_impl_heap_push(list, (uint64_t)found->rank << 32 | at);
}

/* Merges a word of any length in O(n log n). A heap entry is stale if the rank of the pair at its position has changed.
 * Each merge pushes at most two entries, so 3 entries per byte are enough. */
static void vp_impl_merge_long(vp_impl_work *work, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *tokenizer = work->tokenizer;
    vp_impl_list list;
    void *buffer = work->word;
    uint32_t i, count = 0;
    size_t at, k, first_count;
    int32_t first[4];
    if (!vp_impl_work_room(work, &buffer, &work->word_capacity, bytes, 3 * sizeof(uint64_t) + 5 * sizeof(uint32_t)))
        return;
    work->word = (char *)buffer;
    list.heap = (uint64_t *)buffer;
    list.heap_count = 0;
    list.id = (int32_t *)(void *)(list.heap + 3 * bytes);
    list.next = (uint32_t *)(void *)(list.id + bytes);
    list.previous = list.next + bytes;
    list.rank = list.previous + bytes;
    list.product = list.rank + bytes;
    for (at = 0; at < bytes;) {
        at += vp_impl_first_ids(tokenizer, word, at, first, &first_count);
        for (k = 0; k < first_count; k++, count++) {
            list.id[count] = first[k];
            list.next[count] = count + 1;
            list.previous[count] = count - 1; /* for 0: UINT32_MAX, which means none */
        }
    }
    for (i = 0; i < count; i++) vp_impl_list_pair(tokenizer, &list, i, count);
    while (list.heap_count) {
        uint64_t entry = vp_impl_heap_pop(&list);
        uint32_t here = (uint32_t)entry, right;
        if (list.rank[here] != (uint32_t)(entry >> 32)) continue;
        right = list.next[here];
        list.id[here] = (int32_t)list.product[here];
        list.rank[right] = UINT32_MAX;
        list.next[here] = list.next[right];
        if (list.next[here] < count) list.previous[list.next[here]] = here;
        vp_impl_list_pair(tokenizer, &list, here, count);
        if (list.previous[here] != UINT32_MAX) vp_impl_list_pair(tokenizer, &list, list.previous[here], count);
    }
    for (i = 0; i < count; i = list.next[i]) vp_impl_push_id(work, list.id[i]);
}

static void vp_impl_merge_word(vp_impl_work *work, const uint8_t *word, size_t bytes) {
    if (bytes <= VP_IMPL_SHORT_WORD) vp_impl_merge_short(work, word, bytes);
    else vp_impl_merge_long(work, word, bytes);
}

static inline void vp_impl_encode_word(vp_impl_work *work, const uint8_t *word, size_t bytes) {
    const vp_tokenizer *tokenizer = work->tokenizer;
    if (bytes <= tokenizer->word_longest) {
        uint32_t hash = vp_impl_word_hash(word, bytes), slot;
        for (slot = hash & tokenizer->word_mask; tokenizer->words[slot].id >= 0;
             slot = (slot + 1) & tokenizer->word_mask) {
            const uint64_t *start = tokenizer->token_start + tokenizer->words[slot].id;
            if (tokenizer->words[slot].hash == hash && start[1] - start[0] == bytes
                && !memcmp(tokenizer->token_bytes + start[0], word, bytes)) {
                vp_impl_push_id(work, tokenizer->words[slot].id);
                return;
            }
        }
    }
    vp_impl_merge_word(work, word, bytes);
}

/* ------------------------------------------------------------------------------------------------- words and pieces */

/* Size of the contraction at the start of `text` (its first byte is '), or 0. */
static size_t vp_impl_contraction(const uint8_t *text, size_t bytes) {
    if (bytes > 1 && (text[1] == 's' || text[1] == 't' || text[1] == 'm' || text[1] == 'd')) return 2;
    if (bytes > 2
        && ((text[1] == 'r' && text[2] == 'e') || (text[1] == 'v' && text[2] == 'e')
            || (text[1] == 'l' && text[2] == 'l')))
        return 3;
    return 0;
}

/* Size of the first word of a piece (bytes > 0). */
static size_t vp_impl_word_bytes(const uint8_t *properties, const uint8_t *text, size_t bytes) {
    size_t at = 0, length, before;
    if (text[0] == '\'' && (length = vp_impl_contraction(text, bytes)) > 0) return length;
    uint32_t kind = properties[vp_unicode_next_valid(text, &length)] & VP_UNICODE_CLASS;
    if (text[0] == ' ' && bytes > 1) {
        uint32_t next = properties[vp_unicode_next_valid(text + 1, &length)] & VP_UNICODE_CLASS;
        if (next != VP_UNICODE_SPACE) {
            at = 1;
            kind = next;
        } else {
            length = 1;
        }
    }
    at += length;
    before = 0;
    while (at < bytes && (properties[vp_unicode_next_valid(text + at, &length)] & VP_UNICODE_CLASS) == kind) {
        before = at;
        at += length;
    }
    /* the last white space character before a word belongs to that word */
    return kind == VP_UNICODE_SPACE && at < bytes && before > 0 ? before : at;
}

/* Size of the contraction at the start of `text` (its first byte is '), ignoring case, or 0. U+017F counts as s. */
static size_t vp_impl_contraction_caseless(const uint8_t *text, size_t bytes) {
    const uint8_t lower[3] = {'\'', (uint8_t)(bytes > 1 ? text[1] | 32 : 0), (uint8_t)(bytes > 2 ? text[2] | 32 : 0)};
    if (bytes > 2 && text[1] == 0xC5 && text[2] == 0xBF) return 3;
    return vp_impl_contraction(lower, bytes < 3 ? bytes : 3);
}

/* The end of a run of characters of one class that starts at `at`, at most `most` of them. */
static size_t vp_impl_run_end(const uint8_t *properties, const uint8_t *text, size_t at, size_t bytes, uint32_t kind,
                              size_t most) {
    size_t length;
    for (; most && at < bytes && (properties[vp_unicode_next_valid(text + at, &length)] & VP_UNICODE_CLASS) == kind;
         most--)
        at += length;
    return at;
}

/* Size of the white space at the start of `text` that is a word: up to its last line end, or without the character that
 * belongs to the next word. */
static size_t vp_impl_space_bytes(const uint8_t *properties, const uint8_t *text, size_t bytes) {
    const size_t end = vp_impl_run_end(properties, text, 0, bytes, VP_UNICODE_SPACE, SIZE_MAX);
    size_t at, length = 0;
    for (at = end; at > 0; at--)
        if (text[at - 1] == '\r' || text[at - 1] == '\n') return at;
    if (end == bytes) return end;
    while (at + length < end) {
        at += length;
        vp_unicode_next_valid(text + at, &length);
    }
    return at ? at : end;
}

/* Size of the first word of a piece (bytes > 0) by cl100k's pattern, with at most `digits` digits in a word. */
static size_t vp_impl_word_bytes_cl100k(const uint8_t *properties, const uint8_t *text, size_t bytes, size_t digits) {
    size_t at, length;
    const uint32_t kind = properties[vp_unicode_next_valid(text, &length)] & VP_UNICODE_CLASS;
    const int is_line_end = text[0] == '\r' || text[0] == '\n';
    if (text[0] == '\'' && (at = vp_impl_contraction_caseless(text, bytes)) > 0) return at;
    if (kind == VP_UNICODE_LETTER) return vp_impl_run_end(properties, text, 0, bytes, VP_UNICODE_LETTER, SIZE_MAX);
    if (kind == VP_UNICODE_NUMBER) return vp_impl_run_end(properties, text, 0, bytes, VP_UNICODE_NUMBER, digits);
    at = vp_impl_run_end(properties, text, length, bytes, VP_UNICODE_LETTER, SIZE_MAX);
    if (!is_line_end && at > length) return at;
    length = text[0] == ' ';
    at = vp_impl_run_end(properties, text, length, bytes, 0, SIZE_MAX);
    if (at == length) return vp_impl_space_bytes(properties, text, bytes);
    while (at < bytes && (text[at] == '\r' || text[at] == '\n')) at++;
    return at;
}

/* Size of the first word of a piece (bytes > 0): a digit is one word; all else follows GPT-2's pattern. */
static size_t vp_impl_word_bytes_digits(const uint8_t *properties, const uint8_t *text, size_t bytes) {
    size_t end = 0, length = 0;
    while (end < bytes
           && (properties[vp_unicode_next_valid(text + end, &length)] & VP_UNICODE_CLASS) != VP_UNICODE_NUMBER)
        end += length;
    return end ? vp_impl_word_bytes(properties, text, end) : length;
}

static void vp_impl_encode_words(vp_impl_work *work, const char *piece, size_t bytes, int is_first) {
    const vp_impl_split split = work->tokenizer->split;
    size_t i, length;
    if (work->tokenizer->metaspace) vp_impl_spaces(work, piece, bytes, is_first, &piece, &bytes);
    const uint8_t *raw = (const uint8_t *)piece;
    if (!work->tokenizer->unicode) {
        for (i = 0; i < bytes; i++) vp_impl_push_id(work, work->tokenizer->byte_id[raw[i]]);
        return;
    }
    for (i = 0; i < bytes && !work->out_of_memory; i += length) {
        const uint8_t *properties = work->tokenizer->unicode->properties;
        if (split == VP_IMPL_SPLIT_NONE) length = bytes;
        else if (split == VP_IMPL_SPLIT_SPACES) {
            const uint8_t *next = (const uint8_t *)memchr(raw + i + 1, ' ', bytes - i - 1);
            length = next ? (size_t)(next - raw) - i : bytes - i;
        } else if (split == VP_IMPL_SPLIT_GPT2) length = vp_impl_word_bytes(properties, raw + i, bytes - i);
        else if (split == VP_IMPL_SPLIT_DIGITS) length = vp_impl_word_bytes_digits(properties, raw + i, bytes - i);
        else length = vp_impl_word_bytes_cl100k(properties, raw + i, bytes - i, split == VP_IMPL_SPLIT_QWEN2 ? 1 : 3);
        vp_impl_encode_word(work, raw + i, length);
    }
}

/* The longest added token at the start of `text`, or NULL. tokens[low..high) share the first `depth` bytes with the
 * text; a token of exactly this length sorts first. */
static const vp_impl_added *vp_impl_added_at(const vp_impl_added_set *set, const char *text, size_t bytes) {
    uint32_t low = set->first[(uint8_t)*text], high = set->first[(uint8_t)*text + 1], end, middle, depth = 1;
    const vp_impl_added *best = NULL;
    while (low < high) {
        if (set->tokens[low].bytes == depth) {
            best = &set->tokens[low];
            if (++low == high) break;
        }
        if (depth == bytes) break;
        uint8_t byte = (uint8_t)text[depth];
        if (byte < (uint8_t)set->tokens[low].text[depth] || byte > (uint8_t)set->tokens[high - 1].text[depth]) break;
        for (end = high; low < end;) { /* the first token not below byte */
            middle = low + (end - low) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] < byte) low = middle + 1; else end = middle;
        }
        for (end = low; end < high;) { /* the first token above byte */
            middle = end + (high - end) / 2;
            if ((uint8_t)set->tokens[middle].text[depth] <= byte) end = middle + 1; else high = middle;
        }
        depth++;
    }
    return best;
}

/* The position of the next added token in text[from..bytes); `bytes`, with *found NULL, if there is none. */
static size_t vp_impl_added_next(const vp_impl_added_set *set, const char *text, size_t from, size_t bytes,
                                 const vp_impl_added **found) {
    *found = NULL;
    if (!set->count) return bytes;
    for (; from < bytes; from++) {
        uint8_t byte = (uint8_t)text[from];
        if (set->first[byte] == set->first[byte + 1]) continue;
        *found = vp_impl_added_at(set, text + from, bytes - from);
        if (*found) return from;
    }
    return bytes;
}

/* Encodes a piece without raw added tokens; is_first: the text begins with it. */
static void vp_impl_encode_piece(vp_impl_work *work, const char *piece, size_t bytes, int is_first) {
    const vp_impl_added *found;
    size_t from = 0, at;
    vp_impl_normalise(work, &piece, &bytes);
    while (from < bytes && !work->out_of_memory) {
        at = vp_impl_added_next(&work->tokenizer->normalized, piece, from, bytes, &found);
        vp_impl_encode_words(work, piece + from, at - from, is_first && !from);
        if (!found) break;
        vp_impl_push_id(work, found->id);
        from = at + found->bytes;
    }
}

VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids,
                                     size_t capacity, size_t *count) {
    const vp_impl_added *found;
    vp_impl_work work = {0};
    vp_result result = VP_OK;
    size_t from = 0, at;
    if (!tokenizer || !count || (bytes && !text) || (capacity && !ids) || bytes > VP_IMPL_TEXT_BYTES)
        return VP_ERR_RANGE;
    if (vp_utf8_valid_bytes(text, bytes) != bytes) return VP_ERR_FORMAT;
    work.tokenizer = tokenizer;
    while (from < bytes && !work.out_of_memory) {
        at = vp_impl_added_next(&tokenizer->raw, text, from, bytes, &found);
        vp_impl_encode_piece(&work, text + from, at - from, !from);
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

/* ----------------------------------------------------------------------------------------------------------- decode */

/* Copies text and replaces every maximal invalid part by U+FFFD; out must have room for three times the size. */
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
    static const char *const pairs[10][2] = {{" .", "."},     {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                             {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"},
                                             {" 've", "'ve"}, {" 're", "'re"}};
    for (int i = 0; i < 10; i++) bytes = vp_impl_replace(text, bytes, pairs[i][0], pairs[i][1]);
    return bytes;
}

/* Llama's decoder: concatenates the tokens' texts. A run of byte tokens must be valid UTF-8, or each of them becomes
 * U+FFFD. out needs room for three bytes per token. Returns the size. */
static size_t vp_impl_decode_fallback(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int skip,
                                      char *out) {
    size_t used = 0, run = 0, i, k; /* run: number of byte tokens at the end of out */
    for (i = 0; i <= count; i++) {
        const uint32_t id = i < count ? (uint32_t)ids[i] : UINT32_MAX;
        const uint8_t flags = id < tokenizer->token_count ? tokenizer->token_flags[id] : 0;
        if (i < count && (!(flags & VP_IMPL_TOKEN_PRESENT) || (skip && (flags & VP_IMPL_TOKEN_SPECIAL)))) continue;
        if (run && !(flags & VP_IMPL_TOKEN_BYTE)) {
            if (vp_utf8_valid_bytes(out + used - run, run) != run)
                for (used -= run, k = 0; k < run; k++) used += vp_utf8_put(out + used, 0xFFFD);
            run = 0;
        }
        if (i == count) break;
        size_t length = (size_t)(tokenizer->token_start[id + 1] - tokenizer->token_start[id]);
        if (length) memcpy(out + used, tokenizer->token_bytes + tokenizer->token_start[id], length);
        used += length;
        if (flags & VP_IMPL_TOKEN_BYTE) run++;
    }
    if (!tokenizer->strips || !used || out[0] != ' ') return used;
    memmove(out, out + 1, used - 1); /* removes the prepended space */
    return used - 1;
}

VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags,
                                     char *out, size_t capacity, size_t *needed) {
    int pass, skip = (flags & VP_DECODE_SKIP_SPECIAL) != 0;
    uint64_t bytes = 0;
    size_t used = 0, i;
    char *buffer = NULL;
    vp_result result = VP_OK;
    if (!tokenizer || !needed || (count && !ids) || (capacity && !out)) return VP_ERR_RANGE;
    if (flags & ~(VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP)) return VP_ERR_RANGE;
    /* first computes the length, then writes the bytes at the upper end of the buffer and makes them valid in place */
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < count; i++) {
            uint32_t id = (uint32_t)ids[i];
            if (ids[i] < 0 || id >= tokenizer->token_count || !(tokenizer->token_flags[id] & VP_IMPL_TOKEN_PRESENT))
                continue;
            if (skip && (tokenizer->token_flags[id] & VP_IMPL_TOKEN_SPECIAL)) continue;
            uint64_t start = tokenizer->token_start[id];
            uint64_t length = tokenizer->token_start[id + 1] - start;
            if (pass) {
                memcpy(buffer + 2 * bytes + used, tokenizer->token_bytes + start, (size_t)length);
                used += (size_t)length;
            } else if ((bytes += length) > (uint64_t)1 << 40) {
                return VP_ERR_RANGE;
            }
        }
        if (!pass && (bytes > SIZE_MAX / 3 - 1 || !(buffer = (char *)VP_MALLOC((size_t)bytes * 3 + 1))))
            return VP_ERR_MEMORY;
    }
    if (vp_impl_split_is_of_characters(tokenizer->split))
        used = vp_impl_decode_fallback(tokenizer, ids, count, skip, buffer);
    else used = vp_impl_lossy(buffer + 2 * bytes, used, buffer);
    if (flags & VP_DECODE_CLEAN_UP) used = vp_impl_clean_up(buffer, used);
    *needed = used;
    if (used >= capacity) {
        result = VP_ERR_CAPACITY;
    } else {
        memcpy(out, buffer, used);
        out[used] = 0;
    }
    VP_FREE(buffer);
    return result;
}

/* ------------------------------------------------------------------------------------------------------------- load */

/* The tokens by name while a file is read: first the vocabulary, then the added tokens that it does not contain. */
typedef struct vp_impl_names {
    char *text;
    uint64_t *start; /* [count + 1] */
    int32_t *id;
    uint8_t *added; /* flags of added_tokens; VP_IMPL_TOKEN_SPECIAL if special */
    uint32_t count, vocabulary_count;
    uint32_t *slots, mask; /* index + 1; 0: free */
} vp_impl_names;

typedef struct vp_impl_loader {
    vp_json json;
    vp_json_node *nodes;
    size_t json_bytes;
    vp_error *error;
    vp_tokenizer *tokenizer;
    vp_impl_names names;
    uint32_t added_node, vocabulary_node, merges_node;
    uint32_t alphabet[256]; /* the character that represents a byte */
    int32_t byte_of[512];   /* the inverse; -1: no byte */
    char *scratch;          /* [json_bytes + 1], enough for any text in the file */
    vp_impl_work work;
} vp_impl_loader;

/* Reports `before 'the node's text' after`. */
static vp_result vp_impl_load_wrong(const vp_impl_loader *loader, vp_result code, uint32_t node, const char *where,
                                    const char *before, const char *after) {
    vp_impl_message message = {{0}, 0};
    char quoted[84], cut[80];
    vp_impl_message_text(&message, before);
    if (node != VP_JSON_NONE) {
        const vp_json_node *found = &loader->nodes[node];
        size_t bytes = found->bytes < sizeof quoted - 1 ? (size_t)found->bytes : sizeof quoted - 1;
        memcpy(quoted, loader->json.text + found->start, bytes);
        quoted[bytes] = 0;
        vp_text_copy(cut, sizeof cut, quoted);
        vp_impl_message_text(&message, *before ? " '" : "'");
        vp_impl_message_text(&message, cut);
        vp_impl_message_text(&message, "' ");
    }
    vp_impl_message_text(&message, after);
    return vp_error_set(loader->error, code, node == VP_JSON_NONE ? -1 : (int64_t)loader->nodes[node].start, where,
                        message.text);
}

static vp_result vp_impl_load_no_memory(const vp_impl_loader *loader) {
    return vp_error_set(loader->error, VP_ERR_MEMORY, -1, "tokenizer", "not enough memory to load the tokenizer");
}

/* Options of a component. Alternatives are separated by |; =text is a string; * is anything. */
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

/* Checks an object against its options; values[i] receives the node of options[i] or VP_JSON_NONE. */
static vp_result vp_impl_load_options(const vp_impl_loader *loader, uint32_t object, const char *where,
                                      const vp_impl_option *options, size_t count, uint32_t *values) {
    const vp_json_node *nodes = loader->nodes;
    size_t i;
    if (nodes[object].type != VP_JSON_OBJECT)
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, object, where, "", "is not an object");
    for (i = 0; i < count; i++) values[i] = VP_JSON_NONE;
    for (uint32_t key = object + 1; key < nodes[object].end; key = nodes[key + 1].end) {
        for (i = 0; i < count && !vp_json_equals(&loader->json, key, options[i].key); i++) {}
        if (i == count) return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, key, where, "option", "is not supported");
        if (values[i] != VP_JSON_NONE)
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, key, where, "option", "occurs twice");
        values[i] = key + 1;
    }
    for (i = 0; i < count; i++) {
        vp_impl_message message = {{0}, 0};
        if (values[i] == VP_JSON_NONE && !options[i].required) continue;
        vp_impl_message_text(&message, options[i].key);
        if (values[i] == VP_JSON_NONE) {
            vp_impl_message_text(&message, " is missing");
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, VP_JSON_NONE, where, message.text, "");
        }
        if (vp_impl_option_allows(&loader->json, values[i], options[i].allowed)) continue;
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[i], where, message.text, "is not implemented");
    }
    return VP_OK;
}

static int vp_impl_load_is_null(const vp_impl_loader *loader, uint32_t node) {
    return node == VP_JSON_NONE || loader->nodes[node].type == VP_JSON_NULL;
}

/* The id of the special token at the start of a template; -1 if it starts with anything else, or with several ids. */
static int32_t vp_impl_load_template_bos(const vp_impl_loader *loader, uint32_t item, uint32_t special_tokens) {
    uint32_t token = vp_json_get(&loader->json, item, "SpecialToken"), key, ids;
    int64_t id = -1;
    if (token != VP_JSON_NONE) token = vp_json_get(&loader->json, token, "id");
    if (token == VP_JSON_NONE || special_tokens == VP_JSON_NONE || loader->nodes[special_tokens].type != VP_JSON_OBJECT)
        return -1;
    for (key = special_tokens + 1; key < loader->nodes[special_tokens].end; key = loader->nodes[key + 1].end) {
        if (loader->nodes[key].bytes != loader->nodes[token].bytes
            || memcmp(loader->json.text + loader->nodes[key].start, loader->json.text + loader->nodes[token].start,
                      loader->nodes[key].bytes) != 0)
            continue;
        ids = vp_json_get(&loader->json, key + 1, "ids");
        if (ids == VP_JSON_NONE || loader->nodes[ids].type != VP_JSON_ARRAY || loader->nodes[ids].count != 1
            || vp_json_to_int(&loader->json, ids + 1, &id) != VP_OK || id < 0 || id >= VP_IMPL_TOKEN_LIMIT)
            return -1;
    }
    return (int32_t)id;
}

/* Only one token may be prepended to a text: the template of a single sequence is that sequence, with or without a
 * special token before it. */
static vp_result vp_impl_load_post_processor(const vp_impl_loader *loader, uint32_t node) {
    static const vp_impl_option byte_level[4] = {{"type", "=ByteLevel|=TemplateProcessing", 1},
                                                 {"add_prefix_space", "*", 0},
                                                 {"trim_offsets", "*", 0},
                                                 {"use_regex", "*", 0}};
    static const vp_impl_option template_options[4] = {
        {"type", "*", 1}, {"single", "*", 1}, {"pair", "*", 0}, {"special_tokens", "*", 0}};
    uint32_t values[4], item, sequence, length;
    if (vp_impl_load_is_null(loader, node)) return VP_OK;
    item = vp_json_get(&loader->json, node, "type");
    if (item == VP_JSON_NONE || !vp_json_equals(&loader->json, item, "TemplateProcessing")) {
        return vp_impl_load_options(loader, node, "post_processor", byte_level, 4, values);
    }
    vp_result result = vp_impl_load_options(loader, node, "post_processor", template_options, 4, values);
    if (result != VP_OK) return result;
    item = vp_json_at(&loader->json, values[1], 0);
    length = item == VP_JSON_NONE ? 0 : loader->nodes[values[1]].count;
    if (length == 2) {
        loader->tokenizer->bos = vp_impl_load_template_bos(loader, item, values[3]);
        if (loader->tokenizer->bos >= 0) item = vp_json_at(&loader->json, values[1], 1);
    }
    sequence =
        length != (loader->tokenizer->bos >= 0 ? 2u : 1u) ? VP_JSON_NONE : vp_json_get(&loader->json, item, "Sequence");
    sequence = sequence == VP_JSON_NONE || loader->nodes[item].count != 1 ? VP_JSON_NONE
                                                                          : vp_json_get(&loader->json, sequence, "id");
    if (sequence == VP_JSON_NONE || !vp_json_equals(&loader->json, sequence, "A")) {
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[1], "post_processor.single", "template",
                                  "adds tokens, which is not implemented");
    }
    return VP_OK;
}

/* The members of a Sequence under `key`. Returns 0 if their count differs. */
static int vp_impl_load_members(const vp_impl_loader *loader, uint32_t object, const char *key, uint32_t count,
                                uint32_t *members) {
    const uint32_t list = vp_json_get(&loader->json, object, key);
    if (list == VP_JSON_NONE || loader->nodes[list].type != VP_JSON_ARRAY || loader->nodes[list].count != count)
        return 0;
    for (uint32_t i = 0; i < count; i++) members[i] = vp_json_at(&loader->json, list, i);
    return 1;
}
static int vp_impl_load_is_type(const vp_impl_loader *loader, uint32_t object, const char *type) {
    const uint32_t found =
        loader->nodes[object].type == VP_JSON_OBJECT ? vp_json_get(&loader->json, object, "type") : VP_JSON_NONE;
    return found != VP_JSON_NONE && vp_json_equals(&loader->json, found, type);
}

/* NFC; or Llama's: U+2581 is prepended and replaces every space; or Gemma's: U+2581 only replaces spaces. */
static vp_result vp_impl_load_normalizer(vp_impl_loader *loader, uint32_t node) {
    static const vp_impl_option nfc[1] = {{"type", "=NFC", 1}};
    static const vp_impl_option sequence[2] = {{"type", "=Sequence", 1}, {"normalizers", "*", 1}};
    static const vp_impl_option prepend[2] = {{"type", "=Prepend", 1}, {"prepend", "=\xE2\x96\x81", 1}};
    static const vp_impl_option replace[3] = {
        {"type", "=Replace", 1}, {"pattern", "*", 1}, {"content", "=\xE2\x96\x81", 1}};
    static const vp_impl_option pattern[1] = {{"String", "= ", 1}};
    uint32_t values[3], members[2];
    vp_result result;
    if (vp_impl_load_is_null(loader, node)) return VP_OK;
    if (vp_impl_load_is_type(loader, node, "Replace")) {
        loader->tokenizer->split = VP_IMPL_SPLIT_NONE;
        result = vp_impl_load_options(loader, node, "normalizer", replace, 3, values);
        return result == VP_OK ? vp_impl_load_options(loader, values[1], "normalizer", pattern, 1, values) : result;
    }
    if (!vp_impl_load_is_type(loader, node, "Sequence")) {
        loader->tokenizer->nfc = 1;
        return vp_impl_load_options(loader, node, "normalizer", nfc, 1, values);
    }
    loader->tokenizer->split = VP_IMPL_SPLIT_NONE;
    loader->tokenizer->prefix = VP_IMPL_PREFIX_ALL;
    result = vp_impl_load_options(loader, node, "normalizer", sequence, 2, values);
    if (result != VP_OK) return result;
    if (!vp_impl_load_members(loader, node, "normalizers", 2, members))
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[1], "normalizer", "normalizers",
                                  "is not implemented");
    result = vp_impl_load_options(loader, members[0], "normalizer", prepend, 2, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, members[1], "normalizer", replace, 3, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, values[1], "normalizer", pattern, 1, values);
    return result;
}

/* Recognises the pattern of a Split by its text. */
static vp_result vp_impl_load_split(vp_impl_loader *loader, uint32_t node) {
#define VP_IMPL_CL100K(numbers) \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    static const vp_impl_option split[4] = {
        {"type", "=Split", 1}, {"pattern", "*", 1}, {"behavior", "=Isolated", 1}, {"invert", "false", 1}};
    static const vp_impl_option pattern[1] = {{"Regex", "*", 1}};
    uint32_t values[4];
    vp_result result = vp_impl_load_options(loader, node, "pre_tokenizer", split, 4, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, values[1], "pre_tokenizer", pattern, 1, values);
    if (result != VP_OK) return result;
    if (vp_json_equals(&loader->json, values[0], VP_IMPL_CL100K("\\p{N}"))) {
        loader->tokenizer->split = VP_IMPL_SPLIT_QWEN2;
    } else if (vp_json_equals(&loader->json, values[0], VP_IMPL_CL100K("\\p{N}{1,3}"))) {
        loader->tokenizer->split = VP_IMPL_SPLIT_CL100K;
    } else {
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[0], "pre_tokenizer", "pattern",
                                  "is not implemented");
    }
    return VP_OK;
#undef VP_IMPL_CL100K
}

/* Spaces become U+2581 in the text between added tokens. */
static vp_result vp_impl_load_metaspace(vp_impl_loader *loader, uint32_t node) {
    static const vp_impl_option metaspace[6] = {
        {"type", "=Metaspace", 1},       {"replacement", "=\xE2\x96\x81", 1},
        {"str_rep", "=\xE2\x96\x81", 0}, {"prepend_scheme", "=always|=first|=never", 0},
        {"split", "true|false|null", 0}, {"add_prefix_space", "true|false|null", 0}};
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t values[6];
    vp_result result = vp_impl_load_options(loader, node, "pre_tokenizer", metaspace, 6, values);
    if (result != VP_OK) return result;
    if (tokenizer->nfc)
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[0], "pre_tokenizer", "",
                                  "is not implemented after the normalizer NFC");
    int adds = vp_impl_load_is_null(loader, values[5]) || vp_impl_option_allows(&loader->json, values[5], "true");
    int splits = vp_impl_load_is_null(loader, values[4]) || vp_impl_option_allows(&loader->json, values[4], "true");
    tokenizer->metaspace = 1;
    tokenizer->split = splits ? VP_IMPL_SPLIT_SPACES : VP_IMPL_SPLIT_NONE;
    tokenizer->prefix = VP_IMPL_PREFIX_MISSING;
    if (values[3] != VP_JSON_NONE && vp_json_equals(&loader->json, values[3], "first"))
        tokenizer->prefix = VP_IMPL_PREFIX_FIRST;
    if (values[3] != VP_JSON_NONE && vp_json_equals(&loader->json, values[3], "never"))
        tokenizer->prefix = VP_IMPL_PREFIX_NONE;
    if (!adds && tokenizer->prefix != VP_IMPL_PREFIX_NONE)
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, values[5], "pre_tokenizer", "add_prefix_space",
                                  "contradicts prepend_scheme");
    return VP_OK;
}

static vp_result vp_impl_load_pre_tokenizer(vp_impl_loader *loader, uint32_t node) {
    static const vp_impl_option byte_level[4] = {{"type", "=ByteLevel", 1},
                                                 {"add_prefix_space", "false", 1},
                                                 {"trim_offsets", "true|false", 0},
                                                 {"use_regex", "true", 0}};
    static const vp_impl_option bytes_only[4] = {/* after a Split */
                                                 {"type", "=ByteLevel", 1},
                                                 {"add_prefix_space", "false", 1},
                                                 {"trim_offsets", "true|false", 0},
                                                 {"use_regex", "false", 1}};
    static const vp_impl_option spaces[4] = {/* after Replace there is no space to split at */
                                             {"type", "=Split", 1},
                                             {"pattern", "*", 1},
                                             {"behavior", "=MergedWithPrevious", 1},
                                             {"invert", "false", 1}};
    static const vp_impl_option space[1] = {{"String", "= ", 1}};
    static const vp_impl_option sequence[2] = {{"type", "=Sequence", 1}, {"pretokenizers", "*", 1}};
    static const vp_impl_option digits[2] = {{"type", "=Digits", 1}, {"individual_digits", "true", 1}};
    uint32_t values[4], members[2];
    vp_result result;
    if (loader->tokenizer->split == VP_IMPL_SPLIT_NONE) {
        if (vp_impl_load_is_null(loader, node)) return VP_OK;
        if (loader->tokenizer->prefix != VP_IMPL_PREFIX_NONE)
            return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, node, "pre_tokenizer", "",
                                      "is not implemented after the normalizer Prepend");
        result = vp_impl_load_options(loader, node, "pre_tokenizer", spaces, 4, values);
        return result == VP_OK ? vp_impl_load_options(loader, values[1], "pre_tokenizer", space, 1, values) : result;
    }
    if (vp_impl_load_is_type(loader, node, "Metaspace")) return vp_impl_load_metaspace(loader, node);
    if (!vp_impl_load_is_type(loader, node, "Sequence"))
        return vp_impl_load_options(loader, node, "pre_tokenizer", byte_level, 4, values);
    result = vp_impl_load_options(loader, node, "pre_tokenizer", sequence, 2, values);
    if (result != VP_OK) return result;
    if (!vp_impl_load_members(loader, node, "pretokenizers", 2, members))
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[1], "pre_tokenizer", "pretokenizers",
                                  "is not implemented");
    if (vp_impl_load_is_type(loader, members[0], "Split")) {
        result = vp_impl_load_split(loader, members[0]);
        return result == VP_OK ? vp_impl_load_options(loader, members[1], "pre_tokenizer", bytes_only, 4, values)
                               : result;
    }
    loader->tokenizer->split = VP_IMPL_SPLIT_DIGITS;
    result = vp_impl_load_options(loader, members[0], "pre_tokenizer", digits, 2, values);
    return result == VP_OK ? vp_impl_load_options(loader, members[1], "pre_tokenizer", byte_level, 4, values) : result;
}

static vp_result vp_impl_load_decoder(vp_impl_loader *loader, uint32_t node) {
    static const vp_impl_option byte_level[4] = {/* none of these changes the decoded text */
                                                 {"type", "=ByteLevel", 1},
                                                 {"add_prefix_space", "true|false", 0},
                                                 {"trim_offsets", "true|false", 0},
                                                 {"use_regex", "true|false", 0}};
    static const vp_impl_option sequence[2] = {{"type", "=Sequence", 1}, {"decoders", "*", 1}};
    static const vp_impl_option replace[3] = {{"type", "=Replace", 1}, {"pattern", "*", 1}, {"content", "= ", 1}};
    static const vp_impl_option pattern[1] = {{"String", "=\xE2\x96\x81", 1}};
    static const vp_impl_option fallback[1] = {{"type", "=ByteFallback", 1}};
    static const vp_impl_option fuse[1] = {{"type", "=Fuse", 1}};
    static const vp_impl_option strip[4] = {
        {"type", "=Strip", 1}, {"content", "= ", 1}, {"start", "1", 1}, {"stop", "0", 1}};
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t values[4], members[4];
    if (!vp_impl_split_is_of_characters(tokenizer->split))
        return vp_impl_load_options(loader, node, "decoder", byte_level, 4, values);
    vp_result result = vp_impl_load_options(loader, node, "decoder", sequence, 2, values);
    if (result != VP_OK) return result;
    /* Metaspace goes with both */
    tokenizer->strips =
        tokenizer->metaspace ? loader->nodes[values[1]].count != 3 : tokenizer->prefix != VP_IMPL_PREFIX_NONE;
    if (!vp_impl_load_members(loader, node, "decoders", tokenizer->strips ? 4 : 3, members))
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[1], "decoder", "decoders", "is not implemented");
    result = vp_impl_load_options(loader, members[0], "decoder", replace, 3, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, values[1], "decoder", pattern, 1, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, members[1], "decoder", fallback, 1, values);
    if (result == VP_OK) result = vp_impl_load_options(loader, members[2], "decoder", fuse, 1, values);
    if (result == VP_OK && tokenizer->strips)
        result = vp_impl_load_options(loader, members[3], "decoder", strip, 4, values);
    return result;
}

/* values: the nodes of the model's options; vocab is the ninth, merges the tenth */
static vp_result vp_impl_load_model(const vp_impl_loader *loader, uint32_t node, uint32_t values[10]) {
    const int falls_back = vp_impl_split_is_of_characters(loader->tokenizer->split);
    const vp_impl_option model[10] = {
        {"type", "=BPE", 0},
        {"dropout", "null|0|0.0", 0},
        {"unk_token", falls_back ? "*" : "null", 0}, /* if every byte is a token, no text is unknown */
        {"continuing_subword_prefix", "null|=", 0},
        {"end_of_word_suffix", "null|=", 0},
        {"fuse_unk", falls_back ? "true|false" : "false", 0},
        {"byte_fallback", falls_back ? "true" : "false", falls_back},
        {"ignore_merges", falls_back ? "false" : "true|false", 0},
        {"vocab", "*", 1},
        {"merges", "*", 1}};
    return vp_impl_load_options(loader, node, "model", model, 10, values);
}

/* Checks every component by name and every option by value. */
static vp_result vp_impl_load_structure(vp_impl_loader *loader) {
    static const vp_impl_option top[9] = {
        {"version", "=1.0", 1},     {"truncation", "null", 0}, {"padding", "null", 0},
        {"added_tokens", "*", 0},   {"normalizer", "*", 0},    {"pre_tokenizer", "*", 1},
        {"post_processor", "*", 0}, {"decoder", "*", 1},       {"model", "*", 1}};
    uint32_t values[10], parts[9];
    vp_result result = vp_impl_load_options(loader, 0, "tokenizer", top, 9, parts);
    if (result == VP_OK) result = vp_impl_load_normalizer(loader, parts[4]);
    if (result == VP_OK) result = vp_impl_load_pre_tokenizer(loader, parts[5]);
    if (result == VP_OK) result = vp_impl_load_post_processor(loader, parts[6]);
    if (result == VP_OK) result = vp_impl_load_decoder(loader, parts[7]);
    if (result == VP_OK) result = vp_impl_load_model(loader, parts[8], values);
    if (result != VP_OK) return result;
    loader->added_node = parts[3];
    loader->tokenizer->whole_words = values[7] != VP_JSON_NONE && loader->nodes[values[7]].type == VP_JSON_TRUE;
    loader->vocabulary_node = values[8];
    loader->merges_node = values[9];
    if (loader->nodes[values[8]].type != VP_JSON_OBJECT)
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, values[8], "model.vocab", "", "is not an object");
    if (loader->nodes[values[9]].type != VP_JSON_ARRAY)
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, values[9], "model.merges", "", "is not an array");
    if (!vp_impl_load_is_null(loader, parts[3]) && loader->nodes[parts[3]].type != VP_JSON_ARRAY) {
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, parts[3], "added_tokens", "", "is not an array");
    }
    return VP_OK;
}

/* The alphabet of GPT-2's bytes_to_unicode: printable Latin-1 characters represent themselves; the other 68 bytes
 * are U+0100 and up. */
static void vp_impl_load_alphabet(vp_impl_loader *loader) {
    uint32_t byte, other = 256;
    memset(loader->byte_of, 0xFF, sizeof loader->byte_of);
    for (byte = 0; byte < 256; byte++) {
        int printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        loader->alphabet[byte] = printable ? byte : other++;
        loader->byte_of[loader->alphabet[byte]] = (int32_t)byte;
    }
}

/* The byte of one of Llama's byte tokens, such as <0x0A>; -1 if it is not a byte token. */
static int vp_impl_load_fallback_byte(const char *name, size_t bytes) {
    static const char digits[] = "0123456789ABCDEF";
    if (bytes != 6 || memcmp(name, "<0x", 3) != 0 || name[5] != '>') return -1;
    const char *high = (const char *)memchr(digits, name[3], 16);
    const char *low = (const char *)memchr(digits, name[4], 16);
    return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

/* The decoded text if tokens are characters: U+2581 is a space. */
static size_t vp_impl_load_character_bytes(const char *name, size_t bytes, char *out) {
    const int byte = vp_impl_load_fallback_byte(name, bytes);
    size_t at, used = 0;
    if (byte >= 0) {
        out[0] = (char)byte;
        return 1;
    }
    for (at = 0; at < bytes;) {
        if (bytes - at >= 3 && !memcmp(name + at, "\xE2\x96\x81", 3)) {
            out[used++] = ' ';
            at += 3;
        } else {
            out[used++] = name[at++];
        }
    }
    return used;
}

/* Decodes a token; returns the size, at most that of its name. */
static size_t vp_impl_load_token_bytes(const vp_impl_loader *loader, const char *name, size_t bytes, char *out) {
    size_t at = 0, used = 0, length;
    if (vp_impl_split_is_of_characters(loader->tokenizer->split)) return vp_impl_load_character_bytes(name, bytes, out);
    while (at < bytes) {
        uint32_t code = vp_unicode_next_valid((const uint8_t *)name + at, &length);
        if (code >= 512 || loader->byte_of[code] < 0) { /* not in the alphabet: the token is its own text */
            if (bytes) memcpy(out, name, bytes);
            return bytes;
        }
        out[used++] = (char)loader->byte_of[code];
        at += length;
    }
    return used;
}

/* A power of two of at least twice `count`. */
static uint32_t vp_impl_load_slots(uint32_t count) {
    uint32_t slots = 4;
    while (slots / 2 <= count && slots < (uint32_t)1 << 31) slots *= 2;
    return slots;
}

/* Index of a name, or UINT32_MAX; *slot: its slot, or the slot for it */
static uint32_t vp_impl_names_find(const vp_impl_names *names, const char *text, size_t bytes, uint32_t *slot) {
    uint32_t at = vp_impl_word_hash((const uint8_t *)text, bytes) & names->mask;
    for (; names->slots[at]; at = (at + 1) & names->mask) {
        uint32_t index = names->slots[at] - 1;
        if (names->start[index + 1] - names->start[index] == bytes
            && !memcmp(names->text + names->start[index], text, bytes))
            break;
    }
    *slot = at;
    return names->slots[at] - 1;
}

/* Adds the name that the caller has already written at text + start[count]. */
static void vp_impl_names_add(vp_impl_names *names, size_t bytes, int32_t id, uint32_t slot) {
    names->start[names->count + 1] = names->start[names->count] + bytes;
    names->id[names->count] = id;
    names->slots[slot] = ++names->count;
}

/* Reads a token's id, an integer that fits the tables. */
static vp_result vp_impl_load_id(const vp_impl_loader *loader, uint32_t node, const char *where, int32_t *id) {
    int64_t value;
    if (loader->nodes[node].type != VP_JSON_NUMBER || vp_json_to_int(&loader->json, node, &value) != VP_OK
        || value < 0) {
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, node, where, "id", "is not a non-negative whole number");
    }
    if (value >= VP_IMPL_TOKEN_LIMIT)
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, node, where, "id", "is over 4194303");
    *id = (int32_t)value;
    return VP_OK;
}

static vp_result vp_impl_load_vocabulary(vp_impl_loader *loader) {
    const vp_json_node *nodes = loader->nodes, *object = &nodes[loader->vocabulary_node];
    uint32_t added = vp_impl_load_is_null(loader, loader->added_node) ? 0 : nodes[loader->added_node].count, key, slot,
             all;
    vp_impl_names *names = &loader->names;
    size_t bytes;
    int32_t id = 0;
    if (object->count > VP_IMPL_TOKEN_LIMIT || added > VP_IMPL_TOKEN_LIMIT) {
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, VP_JSON_NONE, "tokenizer", "more than 4194304 tokens",
                                  "");
    }
    all = object->count + added;
    names->mask = vp_impl_load_slots(all) - 1;
    /* unescaping never makes a text longer */
    names->text = (char *)VP_MALLOC(loader->json_bytes + 1);
    names->start = (uint64_t *)VP_CALLOC((size_t)all + 1, sizeof *names->start);
    names->id = (int32_t *)VP_CALLOC((size_t)all + 1, sizeof *names->id);
    names->added = (uint8_t *)VP_CALLOC((size_t)all + 1, 1);
    names->slots = (uint32_t *)VP_CALLOC((size_t)names->mask + 1, sizeof *names->slots);
    if (!names->text || !names->start || !names->id || !names->added || !names->slots)
        return vp_impl_load_no_memory(loader);
    for (key = loader->vocabulary_node + 1; key < object->end; key = nodes[key + 1].end) {
        char *text = names->text + names->start[names->count];
        if (vp_json_text(&loader->json, key, text, loader->json_bytes + 1 - (size_t)names->start[names->count], &bytes)
            != VP_OK) {
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, key, "model.vocab", "token", "cannot be read");
        }
        vp_result result = vp_impl_load_id(loader, key + 1, "model.vocab", &id);
        if (result != VP_OK) return result;
        if (vp_impl_names_find(names, text, bytes, &slot) != UINT32_MAX) {
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, key, "model.vocab", "token", "occurs twice");
        }
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->vocabulary_count = names->count;
    return VP_OK;
}

static int vp_impl_added_compare(const void *left, const void *right) {
    const vp_impl_added *one = (const vp_impl_added *)left, *other = (const vp_impl_added *)right;
    int order = memcmp(one->text, other->text, one->bytes < other->bytes ? one->bytes : other->bytes);
    return order ? order : (one->bytes > other->bytes) - (one->bytes < other->bytes);
}

/* Sorts and indexes a set. Returns 0 if two tokens have the same text. */
static int vp_impl_added_sort(vp_impl_added_set *set) {
    uint32_t i, byte;
    if (set->count) qsort(set->tokens, set->count, sizeof *set->tokens, vp_impl_added_compare);
    for (i = byte = 0; byte < 256; byte++) {
        set->first[byte] = i;
        while (i < set->count && (uint8_t)set->tokens[i].text[0] == byte) i++;
    }
    set->first[256] = i;
    for (i = 1; i < set->count; i++) {
        if (!vp_impl_added_compare(&set->tokens[i - 1], &set->tokens[i])) return 0;
    }
    return 1;
}

/* Stores the text of an added token (normalised if it is to be matched in normalised text). */
static int vp_impl_load_added_text(vp_impl_loader *loader, const char *name, size_t bytes, int32_t id, int normalized) {
    vp_impl_added_set *set = normalized ? &loader->tokenizer->normalized : &loader->tokenizer->raw;
    vp_impl_added *token = &set->tokens[set->count++];
    char *text = loader->tokenizer->added_text + loader->tokenizer->added_used;
    if (normalized) vp_impl_normalise(&loader->work, &name, &bytes);
    if (loader->work.out_of_memory) return 0;
    memcpy(text, name, bytes);
    loader->tokenizer->added_used += bytes;
    token->text = text;
    token->bytes = (uint32_t)bytes;
    token->id = id;
    return 1;
}

/* Reads an added token. Its id must be the one that the reference assigns: the vocabulary's id, or else the next one
 * after the vocabulary and all earlier added tokens (the reference ignores the id in the file). */
static vp_result vp_impl_load_added_token(vp_impl_loader *loader, uint32_t node, int64_t *highest) {
    static const vp_impl_option options[7] = {{"id", "*", 1},
                                              {"content", "*", 1},
                                              {"single_word", "false", 1},
                                              {"lstrip", "false", 1},
                                              {"rstrip", "false", 1},
                                              {"normalized", "true|false", 1},
                                              {"special", "true|false", 1}};
    vp_impl_names *names = &loader->names;
    char *text = names->text + names->start[names->count];
    uint32_t values[7], slot, index;
    int32_t id = 0;
    size_t bytes;
    vp_result result = vp_impl_load_options(loader, node, "added_tokens", options, 7, values);
    if (result == VP_OK) result = vp_impl_load_id(loader, values[0], "added_tokens", &id);
    if (result != VP_OK) return result;
    if (vp_json_text(&loader->json, values[1], text, loader->json_bytes + 1 - (size_t)names->start[names->count],
                     &bytes)
            != VP_OK
        || !bytes) {
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, values[1], "added_tokens", "content",
                                  "is not a string of at least one character");
    }
    if (bytes > VP_IMPL_ADDED_BYTES)
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, values[1], "added_tokens", "content",
                                  "is longer than 1024 bytes");
    index = vp_impl_names_find(names, text, bytes, &slot);
    int64_t expected = *highest >= (int64_t)names->vocabulary_count || !names->vocabulary_count
                           ? *highest + 1
                           : (int64_t)names->vocabulary_count;
    if (index != UINT32_MAX) {
        if (names->added[index])
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, values[1], "added_tokens", "token", "occurs twice");
        expected = names->id[index];
    }
    if (id != expected) {
        return vp_impl_load_wrong(loader, VP_ERR_MISMATCH, values[1], "added_tokens", "token",
                                  "its id is not the one in the vocabulary or the next free one");
    }
    if (index == UINT32_MAX) {
        index = names->count;
        vp_impl_names_add(names, bytes, id, slot);
    }
    names->added[index] =
        (uint8_t)(VP_IMPL_TOKEN_PRESENT | (loader->nodes[values[6]].type == VP_JSON_TRUE ? VP_IMPL_TOKEN_SPECIAL : 0));
    if (id > *highest) *highest = id;
    text = names->text + names->start[index];
    return vp_impl_load_added_text(loader, text, bytes, id, loader->nodes[values[5]].type == VP_JSON_TRUE)
               ? VP_OK
               : vp_impl_load_no_memory(loader);
}

static vp_result vp_impl_load_added(vp_impl_loader *loader) {
    const vp_json_node *array = &loader->nodes[loader->added_node];
    int64_t highest = -1;
    if (vp_impl_load_is_null(loader, loader->added_node)) return VP_OK;
    size_t text_bytes = (size_t)array->bytes; /* NFC makes a text at most three times as long */
    if (text_bytes > SIZE_MAX / 3 - 1) return vp_impl_load_no_memory(loader);
    loader->tokenizer->added_text = (char *)VP_MALLOC(text_bytes * 3 + 1);
    loader->tokenizer->raw.tokens = (vp_impl_added *)VP_CALLOC((size_t)array->count + 1, sizeof(vp_impl_added));
    loader->tokenizer->normalized.tokens = (vp_impl_added *)VP_CALLOC((size_t)array->count + 1, sizeof(vp_impl_added));
    if (!loader->tokenizer->added_text || !loader->tokenizer->raw.tokens || !loader->tokenizer->normalized.tokens)
        return vp_impl_load_no_memory(loader);
    for (uint32_t node = loader->added_node + 1; node < array->end; node = loader->nodes[node].end) {
        vp_result result = vp_impl_load_added_token(loader, node, &highest);
        if (result != VP_OK) return result;
    }
    if (!vp_impl_added_sort(&loader->tokenizer->raw) || !vp_impl_added_sort(&loader->tokenizer->normalized)) {
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, VP_JSON_NONE, "added_tokens",
                                  "two tokens have the same text after normalisation", "");
    }
    return VP_OK;
}

/* Fills the tables from characters, and from the bytes of all others, to the initial ids of words. */
static vp_result vp_impl_load_characters(vp_impl_loader *loader) {
    vp_impl_names *names = &loader->names;
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t i, slot;
    size_t length;
    tokenizer->character_mask = vp_impl_load_slots(names->vocabulary_count) - 1;
    tokenizer->characters =
        (vp_impl_character *)VP_MALLOC(((size_t)tokenizer->character_mask + 1) * sizeof *tokenizer->characters);
    if (!tokenizer->characters) return vp_impl_load_no_memory(loader);
    for (i = 0; i <= tokenizer->character_mask; i++) tokenizer->characters[i].id = -1;
    memset(tokenizer->byte_id, 0xFF, sizeof tokenizer->byte_id);
    for (i = 0; i < names->vocabulary_count; i++) {
        const char *name = names->text + names->start[i];
        const size_t bytes = (size_t)(names->start[i + 1] - names->start[i]);
        const int byte = vp_impl_load_fallback_byte(name, bytes);
        if (byte >= 0) {
            tokenizer->byte_id[byte] = names->id[i];
            tokenizer->token_flags[names->id[i]] |= VP_IMPL_TOKEN_BYTE;
        }
        if (!bytes) continue;
        uint32_t code = vp_unicode_next_valid((const uint8_t *)name, &length);
        if (length != bytes || code == ' ') continue; /* texts have no spaces: all are U+2581 */
        if (code == 0x2581) code = ' ';
        for (slot = (uint32_t)vp_unicode_mix(code) & tokenizer->character_mask; tokenizer->characters[slot].id >= 0;)
            slot = (slot + 1) & tokenizer->character_mask;
        tokenizer->characters[slot].code = code;
        tokenizer->characters[slot].id = names->id[i];
    }
    for (i = 0; i < 256; i++) {
        if (tokenizer->byte_id[i] >= 0) continue;
        return vp_impl_load_wrong(loader, VP_ERR_UNSUPPORTED, VP_JSON_NONE, "model.vocab",
                                  "byte_fallback without a token for every byte is not implemented", "");
    }
    return VP_OK;
}

/* Fills the table from ids to bytes, and the table from bytes to the initial ids of words. */
static vp_result vp_impl_load_tokens(vp_impl_loader *loader) {
    vp_impl_names *names = &loader->names;
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t i, slot;
    uint64_t total = 0;
    size_t bytes;
    for (i = 0; i < names->count; i++) {
        if ((uint32_t)names->id[i] >= tokenizer->token_count) tokenizer->token_count = (uint32_t)names->id[i] + 1;
        total = names->start[i + 1];
    }
    tokenizer->token_flags = (uint8_t *)VP_CALLOC((size_t)tokenizer->token_count + 1, 1);
    tokenizer->token_start = (uint64_t *)VP_CALLOC((size_t)tokenizer->token_count + 1, sizeof *tokenizer->token_start);
    tokenizer->token_bytes = (char *)VP_MALLOC((size_t)total + 1);
    if (!tokenizer->token_flags || !tokenizer->token_start || !tokenizer->token_bytes)
        return vp_impl_load_no_memory(loader);
    for (i = 0; i < names->count; i++) { /* lengths first, because ids may be in any order */
        uint32_t id = (uint32_t)names->id[i];
        if (tokenizer->token_flags[id]) {
            vp_impl_message message = {{0}, 0};
            vp_impl_message_text(&message, "two tokens have the id ");
            vp_impl_message_int(&message, (int64_t)id);
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, VP_JSON_NONE, "model.vocab", message.text, "");
        }
        tokenizer->token_flags[id] = (uint8_t)(VP_IMPL_TOKEN_PRESENT | (names->added[i] & VP_IMPL_TOKEN_SPECIAL));
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        tokenizer->token_start[id + 1] =
            vp_impl_load_token_bytes(loader, names->text + names->start[i], bytes, loader->scratch);
    }
    for (i = 0; i < tokenizer->token_count; i++) tokenizer->token_start[i + 1] += tokenizer->token_start[i];
    for (i = 0; i < names->count; i++) {
        bytes = (size_t)(names->start[i + 1] - names->start[i]);
        bytes = vp_impl_load_token_bytes(loader, names->text + names->start[i], bytes, loader->scratch);
        memcpy(tokenizer->token_bytes + tokenizer->token_start[names->id[i]], loader->scratch, bytes);
    }
    if (vp_impl_split_is_of_characters(tokenizer->split)) return vp_impl_load_characters(loader);
    for (i = 0; i < 256; i++) {
        char text[4];
        uint32_t index = vp_impl_names_find(names, text, vp_utf8_put(text, loader->alphabet[i]), &slot);
        tokenizer->byte_id[i] = index < names->vocabulary_count ? names->id[index] : -1;
    }
    return VP_OK;
}

/* Reads the two parts of a merge, "a b" or ["a", "b"], one after the other into scratch. Returns 0 for anything
 * else. */
static int vp_impl_load_merge_parts(vp_impl_loader *loader, uint32_t node, size_t *left, size_t *right) {
    const vp_json_node *found = &loader->nodes[node];
    size_t room = loader->json_bytes + 1;
    if (found->type == VP_JSON_ARRAY) {
        return found->count == 2 && vp_json_text(&loader->json, node + 1, loader->scratch, room, left) == VP_OK
               && vp_json_text(&loader->json, node + 2, loader->scratch + *left, room - *left, right) == VP_OK;
    }
    if (found->type != VP_JSON_STRING || vp_json_text(&loader->json, node, loader->scratch, room, right) != VP_OK)
        return 0;
    char *space = (char *)memchr(loader->scratch, ' ', *right);
    if (!space) return 0;
    *left = (size_t)(space - loader->scratch);
    *right -= *left + 1;
    if (memchr(space + 1, ' ', *right)) return 0;
    memmove(space, space + 1, *right);
    return 1;
}

static vp_result vp_impl_load_merges(vp_impl_loader *loader) {
    const vp_json_node *array = &loader->nodes[loader->merges_node], *nodes = loader->nodes;
    vp_impl_names *names = &loader->names;
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t node, rank = 0, i, slot;
    tokenizer->merge_mask = vp_impl_load_slots(array->count) - 1;
    tokenizer->merges = (vp_impl_merge *)VP_MALLOC(((size_t)tokenizer->merge_mask + 1) * sizeof *tokenizer->merges);
    if (!tokenizer->merges) return vp_impl_load_no_memory(loader);
    for (i = 0; i <= tokenizer->merge_mask; i++) tokenizer->merges[i].rank = UINT32_MAX;
    for (node = loader->merges_node + 1; node < array->end; node = nodes[node].end) {
        size_t left, right;
        if (nodes[node].type == VP_JSON_STRING && nodes[node].bytes >= 8
            && !memcmp(loader->json.text + nodes[node].start, "#version", 8))
            continue;
        if (!vp_impl_load_merge_parts(loader, node, &left, &right)) {
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, node, "model.merges", "merge", "is not a pair of tokens");
        }
        uint32_t left_id = vp_impl_names_find(names, loader->scratch, left, &slot);
        uint32_t right_id = vp_impl_names_find(names, loader->scratch + left, right, &slot);
        uint32_t product = vp_impl_names_find(names, loader->scratch, left + right, &slot);
        if (left_id >= names->vocabulary_count || right_id >= names->vocabulary_count
            || product >= names->vocabulary_count) {
            return vp_impl_load_wrong(loader, VP_ERR_FORMAT, node, "model.merges", "merge",
                                      "has a part or a product that the vocabulary lacks");
        }
        left_id = (uint32_t)names->id[left_id];
        right_id = (uint32_t)names->id[right_id];
        i = (uint32_t)vp_unicode_mix((uint64_t)left_id << 32 | right_id) & tokenizer->merge_mask;
        while (tokenizer->merges[i].rank != UINT32_MAX
               && (tokenizer->merges[i].left != left_id || tokenizer->merges[i].right != right_id))
            i = (i + 1) & tokenizer->merge_mask;
        vp_impl_merge *merge = &tokenizer->merges[i];
        merge->left = left_id;
        merge->right = right_id;
        merge->rank = rank++; /* a duplicate pair has its last rank, as in the reference */
        merge->product = (uint32_t)names->id[product];
    }
    return VP_OK;
}

/* Finds the tokens whose own bytes encode to them: a word equal to one of them needs no merging. */
static vp_result vp_impl_load_words(vp_impl_loader *loader) {
    vp_tokenizer *tokenizer = loader->tokenizer;
    uint32_t i, slot;
    tokenizer->word_mask = vp_impl_load_slots(loader->names.vocabulary_count) - 1;
    tokenizer->words = (vp_impl_word *)VP_MALLOC(((size_t)tokenizer->word_mask + 1) * sizeof *tokenizer->words);
    if (!tokenizer->words) return vp_impl_load_no_memory(loader);
    for (i = 0; i <= tokenizer->word_mask; i++) tokenizer->words[i].id = -1;
    for (i = 0; i < loader->names.vocabulary_count; i++) {
        int32_t id = loader->names.id[i];
        const uint8_t *bytes = (const uint8_t *)tokenizer->token_bytes + tokenizer->token_start[id];
        uint64_t count = tokenizer->token_start[id + 1] - tokenizer->token_start[id];
        loader->work.id_count = 0;
        if (count > VP_IMPL_TEXT_BYTES) continue;
        vp_impl_merge_word(&loader->work, bytes, (size_t)count);
        if (loader->work.out_of_memory) return vp_impl_load_no_memory(loader);
        if ((loader->work.id_count != 1 || loader->work.ids[0] != id)
            && (!tokenizer->whole_words || (tokenizer->token_flags[id] & VP_IMPL_TOKEN_SPECIAL)))
            continue;
        uint32_t hash = vp_impl_word_hash(bytes, (size_t)count);
        for (slot = hash & tokenizer->word_mask; tokenizer->words[slot].id >= 0;)
            slot = (slot + 1) & tokenizer->word_mask;
        tokenizer->words[slot].hash = hash;
        tokenizer->words[slot].id = id;
        if (count > tokenizer->word_longest) tokenizer->word_longest = (uint32_t)count;
    }
    return VP_OK;
}

/* Molmo-7B-O and MolmoE pad with different tokens; 7B-D pads with the end of text. */
static void vp_impl_load_pad(vp_impl_loader *loader) {
    uint32_t slot, index;
    int32_t *special = loader->tokenizer->special;
    if (special[1] >= 0) return;
    index = vp_impl_names_find(&loader->names, "<|pad|>", 7, &slot);
    special[1] = index == UINT32_MAX ? special[0] : loader->names.id[index];
}

static vp_result vp_impl_load_all(vp_impl_loader *loader, const char *json) {
    size_t needed = loader->json_bytes / 4 + 16; /* enough for real files; otherwise the parser reports the needed
                                                  * size */
    uint32_t i, slot, index;
    vp_result result = VP_ERR_CAPACITY;
    vp_error parse_error; /* not the caller's, because a second try may succeed */
    while (result == VP_ERR_CAPACITY) {
        VP_FREE(loader->nodes);
        loader->nodes = needed <= SIZE_MAX / sizeof *loader->nodes
                            ? (vp_json_node *)VP_MALLOC(needed * sizeof *loader->nodes)
                            : NULL;
        if (!loader->nodes) return vp_impl_load_no_memory(loader);
        result = vp_json_parse(json, loader->json_bytes, loader->nodes, needed, &loader->json, &needed, &parse_error);
    }
    if (result != VP_OK)
        return vp_error_set(loader->error, parse_error.code, parse_error.offset, parse_error.where, parse_error.text);
    loader->scratch = (char *)VP_MALLOC(loader->json_bytes + 1);
    loader->tokenizer->unicode = (vp_unicode_forms *)VP_MALLOC(sizeof *loader->tokenizer->unicode);
    if (!loader->scratch || !loader->tokenizer->unicode) return vp_impl_load_no_memory(loader);
    vp_unicode_forms_init(loader->tokenizer->unicode);
    vp_impl_load_alphabet(loader);
    result = vp_impl_load_structure(loader);
    if (result == VP_OK) result = vp_impl_load_vocabulary(loader);
    if (result == VP_OK) result = vp_impl_load_added(loader);
    if (result == VP_OK) result = vp_impl_load_tokens(loader);
    if (result == VP_OK) result = vp_impl_load_merges(loader);
    if (result == VP_OK) result = vp_impl_load_words(loader);
    if (result != VP_OK) return result;
    for (i = 0; i < 7; i++) {
        index =
            vp_impl_names_find(&loader->names, vp_impl_special_contents[i], strlen(vp_impl_special_contents[i]), &slot);
        loader->tokenizer->special[i] = index == UINT32_MAX ? -1 : loader->names.id[index];
    }
    vp_impl_load_pad(loader);
    i = (uint32_t)loader->tokenizer->bos;
    if (loader->tokenizer->bos >= 0 && (i >= loader->tokenizer->token_count || !loader->tokenizer->token_flags[i]))
        return vp_impl_load_wrong(loader, VP_ERR_FORMAT, VP_JSON_NONE, "post_processor.single",
                                  "the template's token is not in the vocabulary", "");
    return VP_OK;
}

VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error) {
    vp_impl_loader loader = {0};
    if (!json || !tokenizer) return vp_error_set(error, VP_ERR_RANGE, -1, "tokenizer", "json or tokenizer is NULL");
    if (bytes > SIZE_MAX - 1) return vp_error_set(error, VP_ERR_RANGE, -1, "tokenizer", "the text is too long");
    loader.json_bytes = bytes;
    loader.error = error;
    loader.work.tokenizer = loader.tokenizer = (vp_tokenizer *)VP_CALLOC(1, sizeof *loader.tokenizer);
    if (loader.tokenizer) loader.tokenizer->bos = -1;
    vp_result result = loader.tokenizer ? vp_impl_load_all(&loader, json) : vp_impl_load_no_memory(&loader);
    if (result == VP_OK) *tokenizer = loader.tokenizer; else vp_tokenizer_free(loader.tokenizer);
    vp_impl_work_free(&loader.work);
    VP_FREE(loader.nodes);
    VP_FREE(loader.scratch);
    VP_FREE(loader.names.text);
    VP_FREE(loader.names.start);
    VP_FREE(loader.names.id);
    VP_FREE(loader.names.added);
    VP_FREE(loader.names.slots);
    return result;
}

/* Fills the tables of the byte tokenizer; the special ids are in the order of vp_impl_special_contents. */
static vp_result vp_impl_bytes_fill(vp_tokenizer *tokenizer) {
    size_t used = 0;
    tokenizer->token_flags = (uint8_t *)VP_CALLOC((size_t)tokenizer->token_count + 1, 1);
    tokenizer->token_start = (uint64_t *)VP_CALLOC((size_t)tokenizer->token_count + 1, sizeof *tokenizer->token_start);
    tokenizer->token_bytes = (char *)VP_MALLOC(256 + 7 * 16);
    tokenizer->raw.tokens = (vp_impl_added *)VP_CALLOC(7, sizeof *tokenizer->raw.tokens);
    if (!tokenizer->token_flags || !tokenizer->token_start || !tokenizer->token_bytes || !tokenizer->raw.tokens)
        return VP_ERR_MEMORY;
    for (uint32_t i = 0; i < 256; i++) {
        tokenizer->byte_id[i] = (int32_t)i + 2;
        tokenizer->token_flags[i + 2] = VP_IMPL_TOKEN_PRESENT;
    }
    for (uint32_t k = 0; k < 7; k++) {
        if (tokenizer->token_flags[tokenizer->special[k]]) return VP_ERR_MISMATCH;
        tokenizer->token_flags[tokenizer->special[k]] = VP_IMPL_TOKEN_PRESENT | VP_IMPL_TOKEN_SPECIAL;
        tokenizer->raw.tokens[k].text = vp_impl_special_contents[k];
        tokenizer->raw.tokens[k].bytes = (uint32_t)strlen(vp_impl_special_contents[k]);
        tokenizer->raw.tokens[k].id = tokenizer->special[k];
    }
    tokenizer->raw.count = 7;
    vp_impl_added_sort(&tokenizer->raw);
    for (uint32_t id = 0; id < tokenizer->token_count; id++) {
        if (id >= 2 && id < 258) tokenizer->token_bytes[used++] = (char)(id - 2);
        for (uint32_t k = 0; k < 7; k++) {
            if (tokenizer->special[k] != (int32_t)id) continue;
            memcpy(tokenizer->token_bytes + used, vp_impl_special_contents[k], strlen(vp_impl_special_contents[k]));
            used += strlen(vp_impl_special_contents[k]);
        }
        tokenizer->token_start[id + 1] = used;
    }
    return VP_OK;
}

VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer) {
    vp_tokenizer *made;
    if (!ids || !tokenizer) return VP_ERR_RANGE;
    const int32_t special[7] = {ids->eos, ids->pad, ids->im_start, ids->im_end, ids->im_patch, ids->im_col, ids->image};
    for (int32_t i = 0; i < 7; i++) {
        if (special[i] < 0 || special[i] >= VP_IMPL_TOKEN_LIMIT || (special[i] >= 2 && special[i] < 258))
            return VP_ERR_RANGE;
    }
    if (ids->bos != ids->eos) return VP_ERR_MISMATCH;
    made = (vp_tokenizer *)VP_CALLOC(1, sizeof *made);
    if (!made) return VP_ERR_MEMORY;
    memcpy(made->special, special, sizeof special);
    made->bos = -1;
    made->token_count = 258;
    for (int32_t i = 0; i < 7; i++) {
        if ((uint32_t)special[i] >= made->token_count) made->token_count = (uint32_t)special[i] + 1;
    }
    vp_result result = vp_impl_bytes_fill(made);
    if (result == VP_OK) *tokenizer = made; else vp_tokenizer_free(made);
    return result;
}

VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer) {
    if (!tokenizer) return;
    VP_FREE(tokenizer->unicode);
    VP_FREE(tokenizer->raw.tokens);
    VP_FREE(tokenizer->normalized.tokens);
    VP_FREE(tokenizer->added_text);
    VP_FREE(tokenizer->token_flags);
    VP_FREE(tokenizer->token_start);
    VP_FREE(tokenizer->token_bytes);
    VP_FREE(tokenizer->merges);
    VP_FREE(tokenizer->words);
    VP_FREE(tokenizer->characters);
    VP_FREE(tokenizer);
}

VP_API int32_t vp_tokenizer_bos(const vp_tokenizer *tokenizer) { return tokenizer ? tokenizer->bos : -1; }

VP_API int32_t vp_tokenizer_added_id(const vp_tokenizer *tokenizer, const char *content) {
    const size_t bytes = content ? strlen(content) : 0;
    if (!tokenizer || !bytes) return -1;
    for (int set = 0; set < 2; set++) {
        const vp_impl_added_set *tokens = set ? &tokenizer->normalized : &tokenizer->raw;
        const vp_impl_added *found = tokens->count ? vp_impl_added_at(tokens, content, bytes) : NULL;
        if (found && found->bytes == bytes) return found->id;
    }
    return -1;
}

VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error) {
    if (!tokenizer || !ids) return vp_error_set(error, VP_ERR_RANGE, -1, "tokenizer", "tokenizer or ids is NULL");
    for (int i = 0; i < 7; i++) {
        vp_impl_message message = {{0}, 0};
        if (tokenizer->special[i] >= 0) continue;
        vp_impl_message_text(&message, "the tokenizer has no token ");
        vp_impl_message_text(&message, vp_impl_special_contents[i]);
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, vp_impl_special_contents[i], message.text);
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
