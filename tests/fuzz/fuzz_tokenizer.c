/* fuzz_tokenizer.c: hostile tokenizer files, texts and ids. An input that begins with an odd byte (as '{' is) is a tokenizer.json; any other
 * is a text and ids for the small golden tokenizer and the byte tokenizer. libFuzzer entry.
 * Run it from the repository's root: it reads tests/golden/tokenizer/small-tokenizer.json. */
#include "fuzz.h"
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_unicode.h"

/* The table of Unicode's forms, 2 MB that are the same in each tokenizer, is made once: filling it would take more than half of the time. */
static vp_unicode_forms *kept_forms;
static void *malloc_but_forms(size_t bytes) {
    if (bytes != sizeof *kept_forms) return malloc(bytes);
    if (!kept_forms) {
        kept_forms = (vp_unicode_forms *)malloc(bytes);
        if (kept_forms) vp_unicode_forms_init(kept_forms);
    }
    return kept_forms;
}
static void free_but_forms(void *memory) {
    if (memory != kept_forms) free(memory);
}
#define malloc malloc_but_forms
#define free free_but_forms
#define vp_unicode_forms_init(made) MUST((made) == kept_forms)
#include "vlmprof_tokenizer.c"
#undef malloc
#undef free

/* Decodes in the exact room and in one byte less; returns malloc'ed text. */
static char *decode(const vp_tokenizer *t, const int32_t *ids, size_t count, int flags, size_t *bytes) {
    size_t needed = 0, again = 0;
    MUST(vp_tokenizer_decode(t, ids, count, flags, NULL, 0, &needed) == VP_ERR_CAPACITY);
    char *text = (char *)malloc(needed + 1);
    MUST(text != NULL);
    MUST(vp_tokenizer_decode(t, ids, count, flags, text, needed, &again) == VP_ERR_CAPACITY && again == needed);
    MUST(vp_tokenizer_decode(t, ids, count, flags, text, needed + 1, &again) == VP_OK && again == needed && text[needed] == 0);
    MUST(vp_utf8_valid_bytes(text, needed) == needed);
    *bytes = needed;
    return text;
}

static int32_t *encode(const vp_tokenizer *t, const char *text, size_t bytes, size_t *count) {
    size_t again = 0;
    int32_t *ids;
    vp_result result = vp_tokenizer_encode(t, text, bytes, NULL, 0, count);
    if (vp_utf8_valid_bytes(text, bytes) != bytes) {
        MUST(result == VP_ERR_FORMAT);
        return NULL;
    }
    MUST(result == (*count ? VP_ERR_CAPACITY : VP_OK) && *count <= bytes * 3);
    ids = (int32_t *)malloc((*count + 1) * sizeof *ids);
    MUST(ids != NULL);
    MUST(vp_tokenizer_encode(t, text, bytes, ids, *count, &again) == VP_OK && again == *count);
    return ids;
}

/* What ids decode to encodes to the same ids where the tokenizer knows every byte. */
static void round_trip(const vp_tokenizer *t, const char *text, size_t bytes, int every_byte) {
    size_t count = 0, again = 0, back_bytes = 0;
    int32_t *ids = encode(t, text, bytes, &count), *same;
    if (!ids) return;
    char *back = decode(t, ids, count, 0, &back_bytes);
    if (every_byte) {
        same = encode(t, back, back_bytes, &again);
        MUST(same && again == count && !memcmp(same, ids, count * sizeof *ids));
        free(same);
    }
    free(back);
    free(ids);
}

static void any_ids(const vp_tokenizer *t, const uint8_t *data, size_t bytes) {
    int32_t ids[256];
    size_t count, out;
    for (count = 0; count < 256 && count * 2 + 1 < bytes; count++) {
        ids[count] = (int32_t)(data[count * 2] | data[count * 2 + 1] << 8) - 8;
        if (ids[count] > 1000) ids[count] %= 256;
    }
    free(decode(t, ids, count, (int)(bytes & 3), &out)); /* each choice of flags has its lengths */
}

static void tokenizer_file(const char *text, size_t bytes) {
    static const char sample[] = "Hello  world's 123 \xC3\xA9" "e\xCC\x81 <|endoftext|>abababbaba\n\n x";
    vp_tokenizer *t = NULL;
    vp_error error;
    vp_special_ids ids;
    error.code = VP_OK;
    vp_result result = vp_tokenizer_load(text, bytes, &t, &error);
    if (result != VP_OK) {
        MUST(t == NULL && error.code == result && memchr(error.text, 0, sizeof error.text) && error.text[0]);
        MUST(vp_utf8_valid_bytes(error.text, strlen(error.text)) == strlen(error.text));
        MUST(error.offset >= -1 && error.offset <= (int64_t)bytes);
        return;
    }
    vp_tokenizer_special_ids(t, &ids, &error);
    round_trip(t, sample, sizeof sample - 1, 0);
    round_trip(t, text, bytes, 0);
    any_ids(t, (const uint8_t *)text, bytes);
    vp_tokenizer_free(t);
}

static vp_tokenizer *small_tokenizer(void) {
    static const char path[] = "tests/golden/tokenizer/small-tokenizer.json";
    static char text[1 << 16];
    vp_tokenizer *t = NULL;
    FILE *f = fopen(path, "rb");
    size_t bytes = f ? fread(text, 1, sizeof text, f) : 0;
    if (!f) fprintf(stderr, "fuzz_tokenizer: cannot read %s\n", path);
    MUST(vp_tokenizer_load(text, bytes, &t, NULL) == VP_OK);
    fclose(f);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const vp_special_ids special = { 0, 0, 1, 300, 301, 302, 303, 304 };
    static vp_tokenizer *small, *plain;
    if (!small) {
        small = small_tokenizer();
        MUST(vp_tokenizer_bytes(&special, &plain) == VP_OK);
    }
    if (!bytes) return 0;
    if (data[0] & 1) {
        tokenizer_file((const char *)data, bytes);
        return 0;
    }
    round_trip(small, (const char *)data + 1, bytes - 1, 1);
    round_trip(plain, (const char *)data + 1, bytes - 1, 1);
    any_ids(small, data + 1, bytes - 1);
    any_ids(plain, data + 1, bytes - 1);
    return 0;
}
