/* test_tokenizer.c: the tokenizer against the reference's encodings, decodings, prompts and character classes, and its rules one by one. Rows for the real tokenizer.json
 * (2 MB, not in this repository) are read from the optional ../shared/goldens. */
#include "support/allocations.h"
#include "vlmprof_tokenizer.c"
#undef calloc
#undef malloc
#undef realloc
#undef free
#include "support/check.h"
#include "support/golden_rows.h"

enum { IDS_MAX = 1 << 20 };
static int32_t got_ids[IDS_MAX], want_ids[IDS_MAX];
static char got_text[1 << 22], want_text[1 << 20];

/* ------------------------------------------------------------------------------------------------------------ helpers */

static vp_tokenizer *load_file(const char *relative) {
    size_t bytes = 0;
    char *text = check_read(check_golden(relative), &bytes);
    vp_tokenizer *t = NULL;
    vp_error error;
    if (!text) return NULL;
    CHECK_INT(vp_tokenizer_load(text, bytes, &t, &error), VP_OK);
    free(text);
    return t;
}

static const char mini[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
    "{\"id\":0,\"content\":\"<|endoftext|>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true},"
    "{\"id\":9,\"content\":\"<em>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false}],"
    "\"normalizer\":{\"type\":\"NFC\"},"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{}},"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":\"\","
    "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,"
    "\"vocab\":{\"<|endoftext|>\":0,\"a\":1,\"b\":2,\"ab\":3,\"abb\":4,\"\\u0120\":5,\"\\u0120a\":6,\"ba\":7,\"<\":8},"
    "\"merges\":[\"a b\",[\"ab\",\"b\"],\"b a\",\"\\u0120 a\"]}}";

/* the mini tokenizer with `from` replaced by `to` */
static char *mini_edited(const char *from, const char *to) {
    const char *at = strstr(mini, from);
    size_t bytes = sizeof mini + strlen(to);
    char *text = (char *)malloc(bytes);
    if (!text || !at) abort();
    snprintf(text, bytes, "%.*s%s%s", (int)(at - mini), mini, to, at + strlen(from));
    return text;
}

static vp_tokenizer *load_text(const char *text) {
    vp_tokenizer *t = NULL;
    vp_error error;
    if (vp_tokenizer_load(text, strlen(text), &t, &error) != VP_OK) printf("load: %s: %s\n", error.where, error.text);
    CHECK(t != NULL);
    return t;
}

/* encodes and compares; the guard value after the ids must not change */
static void encode_is(const vp_tokenizer *t, const char *text, size_t bytes, const int32_t *want, size_t want_count) {
    size_t count = 0, i;
    vp_result result = vp_tokenizer_encode(t, text, bytes, got_ids, IDS_MAX, &count);
    if (!CHECK_INT(result, VP_OK)) return;
    if (!CHECK_INT(count, want_count)) return;
    for (i = 0; i < count; i++) {
        if (!check_note(got_ids[i] == want[i], __FILE__, __LINE__, "\"%.60s\": id %zu is %d, expected %d", text, i, got_ids[i], want[i])) return;
    }
}

static void decode_is(const vp_tokenizer *t, const int32_t *ids, size_t count, int flags, const char *want, size_t want_bytes) {
    size_t bytes = 0;
    memset(got_text, 'Z', want_bytes + 2);
    if (!CHECK_INT(vp_tokenizer_decode(t, ids, count, flags, got_text, want_bytes + 1, &bytes), VP_OK)) return;
    CHECK_INT(bytes, want_bytes);
    check_note(bytes == want_bytes && !memcmp(got_text, want, bytes), __FILE__, __LINE__, "\"%.*s\", expected \"%.*s\"", (int)bytes, got_text, (int)want_bytes, want);
    CHECK_INT(got_text[want_bytes], 0);
    CHECK_INT(got_text[want_bytes + 1], 'Z');
}

/* one line of a .jsonl file */
typedef struct row { vp_json json; vp_json_node nodes[20000]; } row;
static row *row_of(const char *line, size_t bytes) {
    static row r;
    vp_error error;
    if (vp_json_parse(line, bytes, r.nodes, 20000, &r.json, NULL, &error) == VP_OK) return &r;
    printf("row: %s\n", error.text);
    abort();
}
static size_t row_text(const row *r, const char *key, char *out, size_t capacity) {
    size_t bytes = 0;
    if (vp_json_text(&r->json, vp_json_get(&r->json, 0, key), out, capacity, &bytes) != VP_OK) abort();
    return bytes;
}
static size_t row_numbers(const row *r, const char *key, int32_t *ids) {
    uint32_t array = vp_json_get(&r->json, 0, key), i, node = array + 1;
    for (i = 0; i < r->nodes[array].count; i++, node++) {
        int64_t value = -1;
        if (vp_json_to_int(&r->json, node, &value) != VP_OK) abort();
        ids[i] = (int32_t)value;
    }
    return r->nodes[array].count;
}
static size_t row_ids(const row *r, int32_t *ids) { return row_numbers(r, "ids", ids); }

/* ------------------------------------------------------------------------------------------------------------ goldens */

static void check_encoding(const vp_tokenizer *t, const row *r) {
    size_t bytes = row_text(r, "text", want_text, sizeof want_text);
    encode_is(t, want_text, bytes, want_ids, row_ids(r, want_ids));
}

static void check_decoding(const vp_tokenizer *t, const row *r) {
    static const char *const keys[3] = { "text", "text_skip_special", "text_skip_special_cleaned" };
    static const int flags[3] = { 0, VP_DECODE_SKIP_SPECIAL, VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP };
    size_t count = row_ids(r, want_ids);
    for (int i = 0; i < 3; i++) {
        size_t bytes = row_text(r, keys[i], want_text, sizeof want_text);
        decode_is(t, want_ids, count, flags[i], want_text, bytes);
    }
}

/* rows contain each message; the joined text must give the same ids (no message ends inside a word) */
static void check_prompt(const vp_tokenizer *t, const row *r) {
    uint32_t messages = vp_json_get(&r->json, 0, "messages"), i, node = messages + 1;
    size_t used = 0, count, bytes, want_count = row_ids(r, want_ids);
    for (i = 0; i < r->nodes[messages].count; i++, node = r->nodes[node].end) {
        CHECK_INT(vp_json_text(&r->json, node, want_text, sizeof want_text, &bytes), VP_OK);
        CHECK_INT(vp_tokenizer_encode(t, want_text, bytes, got_ids + used, IDS_MAX - used, &count), VP_OK);
        used += count;
    }
    CHECK_INT(used, want_count);
    for (i = 0; i < used && i < want_count; i++) CHECK_INT(got_ids[i], want_ids[i]);
    bytes = row_text(r, "prompt_text", want_text, sizeof want_text);
    encode_is(t, want_text, bytes, want_ids, want_count);
}

/* every row of a file whose "tokenizer" is `name` (if NULL, every row) */
static void check_rows(const char *file, const vp_tokenizer *t, const char *name, int want_rows, void (*check)(const vp_tokenizer *, const row *)) {
    size_t bytes = 0;
    char *text = check_read(check_golden(file), &bytes), *line, *end;
    int rows = 0;
    check_case("%s, %s tokenizer", file, name ? name : "real");
    if (!CHECK(text != NULL && t != NULL)) return;
    for (line = text; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) end = line + strlen(line) - 1;
        row *r = row_of(line, (size_t)(end - line));
        if (name && !vp_json_equals(&r->json, vp_json_get(&r->json, 0, "tokenizer"), name)) continue;
        check(t, r);
        rows++;
    }
    CHECK_INT(rows, want_rows);
    free(text);
}

/* a text, its ids with the template's initial token, the decoded ids, and decoded random ids */
static void check_other_text(const vp_tokenizer *t, const row *r) {
    size_t bytes = row_text(r, "text", want_text, sizeof want_text), count = row_ids(r, want_ids), front = vp_tokenizer_bos(t) >= 0;
    if (front) CHECK_INT(want_ids[0], vp_tokenizer_bos(t));
    encode_is(t, want_text, bytes, want_ids + front, count - front);
    bytes = row_text(r, "back", want_text, sizeof want_text);
    decode_is(t, want_ids, count, 0, want_text, bytes);
    count = row_numbers(r, "random", want_ids);
    bytes = row_text(r, "decoded", want_text, sizeof want_text);
    decode_is(t, want_ids, count, VP_DECODE_SKIP_SPECIAL, want_text, bytes);
}
/* tokenizers of other models: tests/golden/othermodels/README.md */
static void test_other_models(void) {
    static const char *const models[][4] = {
        { "olmoe", "text1", "text2", "text3" }, { "llava", "text", "image-a", "image-b" }, { "smolvlm", "text", "image-a", "image-b" },
        { "internvl", "text", "image-a", "image-b" }, { "molmo_7b_d", "text", "image-a", "image-b" }, { "molmo_7b_o", "text", "image-a", "image-b" },
        { "qwen2_5_vl", "text", "image-a", "image-b" }, { "qwen3_vl", "text", "image-a", "image-b" },
        { "gemma3", "text", "image-a", "image-b" } };
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char path[128];
        snprintf(path, sizeof path, "othermodels/%s/checkpoint/tokenizer.json", models[m][0]);
        check_case("%s", path);
        vp_tokenizer *t = load_file(path);
        snprintf(path, sizeof path, "othermodels/%s/texts.jsonl", models[m][0]);
        if (strcmp(models[m][0], "molmo_7b_d") != 0) /* this model has internvl's pattern */
            check_rows(path, t, NULL, !strncmp(models[m][0], "qwen", 4) ? 43 : !strcmp(models[m][0], "gemma3") ? 44 : 39, check_other_text);
        for (int i = 1; i < 4; i++) {
            size_t bytes = 0, count, front, text_bytes;
            snprintf(path, sizeof path, "othermodels/%s/%s/case.json", models[m][0], models[m][i]);
            check_case("%s", path);
            if (!check_golden(path)) { check_skip(path, "no ../shared/goldens/othermodels"); continue; }
            char *file = check_read(check_golden(path), &bytes);
            row *r = row_of(file, bytes);
            count = row_numbers(r, "input_ids", want_ids);
            front = vp_tokenizer_bos(t) >= 0;
            /* Molmo-7B's case has no expanded text: the ids end with those of the text */
            if (vp_json_get(&r->json, 0, "expanded_text") == VP_JSON_NONE) {
                text_bytes = row_text(r, "text", want_text, sizeof want_text);
                if (CHECK_INT(vp_tokenizer_encode(t, want_text, text_bytes, got_ids, IDS_MAX, &front), VP_OK)) front = count - front;
            } else text_bytes = row_text(r, "expanded_text", want_text, sizeof want_text);
            encode_is(t, want_text, text_bytes, want_ids + front, count - front);
            free(file);
        }
        vp_tokenizer_free(t);
    }
}

/* in a text of `capacity` bytes, the part from `from` to `end` becomes `to` */
static void swap_part(char *text, size_t capacity, const char *from, const char *end, const char *to) {
    char *at = strstr(text, from), *rest = at ? strstr(at, end) : NULL;
    size_t bytes = strlen(to);
    if (!CHECK(rest) || !CHECK(strlen(text) + bytes < capacity)) return;
    rest += strlen(end);
    memmove(at + bytes, rest, strlen(rest) + 1);
    memcpy(at, to, bytes);
}
/* LLaVA's file with Metaspace instead of its normalizers: every scheme, with and without words that begin at spaces; "never" is not stripped */
static void test_metaspace(void) {
#define OF(rest) "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\"" rest "}"
    static const struct { const char *name, *part, *refusal; } rows[] = {
        { "always true", OF(",\"prepend_scheme\":\"always\",\"split\":true"), NULL }, { "always true", OF(",\"add_prefix_space\":true"), NULL },
        { "always false", OF(",\"prepend_scheme\":\"always\",\"split\":false"), NULL }, { "first true", OF(",\"prepend_scheme\":\"first\",\"split\":true"), NULL },
        { "first false", OF(",\"prepend_scheme\":\"first\",\"split\":false"), NULL }, { "never true", OF(",\"prepend_scheme\":\"never\",\"split\":true"), NULL },
        { "never false", OF(",\"prepend_scheme\":\"never\",\"add_prefix_space\":false,\"split\":false"), NULL },
        { "", "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "replacement '_'" }, { "", OF(",\"prepend_scheme\":\"last\""), "prepend_scheme 'last'" },
        { "", OF(",\"split\":1"), "split '1'" }, { "", OF(",\"add_prefix_space\":false"), "add_prefix_space 'false'" }, { "", OF(",\"x\":1"), "option 'x'" },
    };
#undef OF
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *edited = (char *)malloc(1 << 20), *file;
        size_t bytes = 0;
        vp_tokenizer *t = NULL;
        vp_error error;
        if (!edited) abort();
        check_case("%s", rows[i].part);
        file = check_read(check_golden("othermodels/llava/checkpoint/tokenizer.json"), &bytes);
        if (!CHECK(file && bytes < (1 << 19))) { free(file); free(edited); return; }
        memcpy(edited, file, bytes);
        edited[bytes] = 0;
        swap_part(edited, 1 << 20, "\"normalizer\": {", "\"pre_tokenizer\": null", "\"normalizer\": null, \"pre_tokenizer\": PRE");
        swap_part(edited, 1 << 20, "PRE", "PRE", rows[i].part);
        if (!strncmp(rows[i].name, "never", 5)) swap_part(edited, 1 << 20, ",\n      {\n        \"type\": \"Strip\"", "}", "");
        if (rows[i].refusal) {
            CHECK(vp_tokenizer_load(edited, strlen(edited), &t, &error) != VP_OK);
            check_note(strstr(error.text, rows[i].refusal) != NULL, __FILE__, __LINE__, "\"%s\" lacks \"%s\"", error.text, rows[i].refusal);
        } else if (CHECK_INT(vp_tokenizer_load(edited, strlen(edited), &t, &error), VP_OK)) {
            check_rows("othermodels/llava/metaspace.jsonl", t, rows[i].name, 24, check_other_text);
        } else printf("%s: %s\n", error.where, error.text);
        vp_tokenizer_free(t);
        FREE_ALL(edited, file);
    }
}

/* one change of the smallest tokenizer.json or of a model's, and the error */
static void check_edited(const golden_rows *rows, const char *whole) {
    char *from = golden_text(rows, "from"), *to = golden_text(rows, "to"), *where = golden_text(rows, "where"), *words = golden_text(rows, "text");
    const char *at = strstr(whole, from);
    const vp_result code = golden_code(rows);
    vp_tokenizer *t = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    check_case("load error %s -> %s", from, to);
    if (CHECK(at && code != VP_OK)) {
        const size_t bytes = strlen(whole) + strlen(to) + 1;
        char *text = (char *)malloc(bytes);
        snprintf(text, bytes, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
        CHECK_INT(vp_tokenizer_load(text, strlen(text), &t, &error), code);
        CHECK_INT(error.code, code);
        CHECK_TEXT(error.where, where);
        check_note(strstr(error.text, words) != NULL, __FILE__, __LINE__, "\"%s\" does not say \"%s\"", error.text, words);
        CHECK_INT(vp_tokenizer_load(text, strlen(text), &t, NULL), code); /* the error is optional */
        CHECK(t == NULL);
        free(text);
    }
    FREE_ALL(from, to, where, words);
}
/* a model's file with `from` replaced by `to` is rejected with an error that names the unsupported feature */
static void test_other_refusals(void) {
    golden_rows rows;
    if (!golden_open(&rows, "tokenizer/other_refusals.jsonl")) return;
    while (golden_next(&rows)) {
        char path[128], *model = golden_text(&rows, "model");
        snprintf(path, sizeof path, "othermodels/%s/checkpoint/tokenizer.json", model ? model : "");
        char *file = check_read(check_golden(path), NULL);
        if (CHECK(file != NULL)) check_edited(&rows, file);
        FREE_ALL(model, file);
    }
    CHECK_INT(rows.count, 17);
}

/* texts, their ids and the decoded ids, with the tokenizer of a golden model */
static void test_tiny(void) {
    size_t bytes = 0, needed = 0;
    char *text = check_read(check_golden("components/tokenizer-tiny-a.json"), &bytes);
    vp_tokenizer *t = load_file("models/tiny-a/tokenizer.json");
    static vp_json_node nodes[2000];
    vp_json json;
    uint32_t rows = 0;
    check_case("texts of the model tiny-a");
    if (!CHECK(text && t) || !CHECK_INT(vp_json_parse(text, bytes, nodes, 2000, &json, &needed, NULL), VP_OK)) return;
    for (uint32_t item = 1; item < nodes[0].end; item = nodes[item].end, rows++) {
        row *r = row_of(text + nodes[item].start, (size_t)nodes[item].bytes);
        size_t text_bytes = row_text(r, "text", want_text, sizeof want_text), count = row_ids(r, want_ids);
        encode_is(t, want_text, text_bytes, want_ids, count);
        text_bytes = row_text(r, "decoded", want_text, sizeof want_text);
        decode_is(t, want_ids, count, 0, want_text, text_bytes);
    }
    CHECK_INT(rows, 24);
    vp_tokenizer_free(t);
    free(text);
}
static void test_goldens(void) {
    vp_tokenizer *small = load_file("tokenizer/small-tokenizer.json"), *real;
    check_rows("tokenizer/encodings.jsonl", small, "small", 100, check_encoding);
    check_rows("tokenizer/decodings.jsonl", small, "small", 126, check_decoding);
    vp_tokenizer_free(small);
    if (!check_golden("tokenizer/tokenizer.json")) {
        check_skip("encodings and decodings of the real tokenizer, prompts", "no ../shared/goldens/tokenizer/tokenizer.json");
        return;
    }
    check_case("the real tokenizer loads");
    real = load_file("tokenizer/tokenizer.json");
    check_rows("tokenizer/encodings.jsonl", real, "real", 200, check_encoding);
    check_rows("tokenizer/decodings.jsonl", real, "real", 256, check_decoding);
    if (check_golden("prompts/prompts.jsonl")) check_rows("prompts/prompts.jsonl", real, NULL, 60, check_prompt);
    else check_skip("prompts", "no ../shared/goldens/prompts/prompts.jsonl");
    vp_tokenizer_free(real);
}

/* every code point's class equals the reference's, obtained by testing the reference */
static void test_classes(void) {
    static uint8_t want[VP_UNICODE_CODE_POINTS];
    static vp_unicode_forms u;
    static const char *const keys[3] = { "L", "N", "S" };
    size_t bytes = 0;
    char *text = check_read(check_golden("tokenizer/unicode_classes.json"), &bytes);
    check_case("character classes of all code points");
    if (!CHECK(text != NULL)) return;
    const row *r = row_of(text, bytes);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t array = vp_json_get(&r->json, 0, keys[k]), node;
        for (node = array + 1; node < r->nodes[array].end; node = r->nodes[node].end) {
            int64_t first = -1, last = -2;
            CHECK(vp_json_to_int(&r->json, node + 1, &first) == VP_OK && vp_json_to_int(&r->json, node + 2, &last) == VP_OK);
            if (CHECK(first >= 0 && last < VP_UNICODE_CODE_POINTS)) memset(want + first, (int)k + 1, (size_t)(last - first + 1));
        }
    }
    vp_unicode_forms_init(&u);
    for (uint32_t c = 0; c < VP_UNICODE_CODE_POINTS; c++) {
        check_note((u.properties[c] & VP_UNICODE_CLASS) == want[c], __FILE__, __LINE__, "class of U+%04X is %d, expected %d", (unsigned)c,
                   u.properties[c] & VP_UNICODE_CLASS, want[c]);
    }
    free(text);
}

/* -------------------------------------------------------------------------------------------------------- rules by hand */

static void test_pipeline(void) {
    static const struct { const char *text; int32_t ids[8]; int count; } rows[] = {
        { "", { 0 }, 0 },
        { "ab", { 3 }, 1 },
        { "aba", { 3, 1 }, 2 },                          /* a+b has a lower rank than b+a */
        { "bab", { 2, 3 }, 2 },
        { "abba", { 4, 1 }, 2 },
        { "ababab", { 3, 3, 3 }, 3 },                    /* equal ranks: the leftmost first */
        { " a  a", { 6, 5, 6 }, 3 },                     /* the last of several spaces belongs to the word */
        { "a ", { 1, 5 }, 2 },
        { "a  ", { 1, 5, 5 }, 3 },
        { "a<|endoftext|>b", { 1, 0, 2 }, 3 },
        { "a<em>b", { 1, 9, 2 }, 3 },
        { "<e", { 8 }, 1 },                              /* e is not in the vocabulary, so it is dropped */
        { "azb", { 3 }, 1 },                             /* z too, before merging */
        { "<|endoftext|><|endoftext|>", { 0, 0 }, 2 },
        { "a  <|endoftext|>", { 1, 5, 5, 0 }, 4 },       /* the piece ends here, so its white space is not split */
    };
    check_case("the pipeline on a tokenizer of ten tokens");
    vp_tokenizer *t = load_text(mini);
    for (size_t i = 0; t && i < sizeof rows / sizeof *rows; i++) encode_is(t, rows[i].text, strlen(rows[i].text), rows[i].ids, (size_t)rows[i].count);
    if (t) { /* text after the end is not read: "<em" is not an added token although '>' follows in memory */
        static const int32_t cut[2] = { 1, 8 };
        encode_is(t, "a<em>", 4, cut, 2);
        encode_is(t, "a<|endoftext|>", 13, cut, 2);
    }
    vp_tokenizer_free(t);
}

/* word boundaries, from the private splitter */
static void test_words(void) {
    static const struct { const char *text, *words; } rows[] = {
        { "I'll say:", "I|'ll| say|:" }, { "we've they're he'd I'm don't it's", "we|'ve| they|'re| he|'d| I|'m| don|'t| it|'s" }, { "'S'LL", "'|S|'|LL" },
        { "'should", "'s|hould" }, { " 's", " '|s" }, { "''s", "''|s" }, { "'l", "'|l" }, { "'lab", "'|lab" }, { "'re", "'re" }, { "'", "'" },
        { "a1b22 3..", "a|1|b|22| 3|.." }, { " x   y", " x|  | y" }, { "\t\tx", "\t|\t|x" }, { "\nx", "\n|x" }, { " \n x", " \n| x" }, { "x   ", "x|   " },
        { "\xC2\xA0x", "\xC2\xA0|x" },                                           /* a no-break space is white space, but is not joined to a word */
        { "x\xE3\x80\x80 y", "x|\xE3\x80\x80| y" },                              /* U+3000 */
        { "\xC3\xA9t\xC3\xA9 \xD9\xA3\xC2\xBD!? \xE2\x82\xAC", "\xC3\xA9t\xC3\xA9| \xD9\xA3\xC2\xBD|!?| \xE2\x82\xAC" },
        { "e\xCC\x81" "e", "e|\xCC\x81|e" },                                     /* a mark is not a letter */
        { "\xE2\x80\x8B" "a", "\xE2\x80\x8B|a" },                                /* U+200B is not white space */
    };
    static vp_unicode_forms u;
    check_case("words of the pre-tokeniser");
    vp_unicode_forms_init(&u);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint8_t *p = (const uint8_t *)rows[i].text;
        size_t at = 0, used = 0, bytes = strlen(rows[i].text), length;
        while (at < bytes) {
            length = vp_impl_word_bytes(u.properties, p + at, bytes - at);
            if (at) got_text[used++] = '|';
            memcpy(got_text + used, p + at, length);
            used += length;
            at += length;
        }
        got_text[used] = 0;
        CHECK_TEXT(got_text, rows[i].words);
    }
}

static void test_nfc(void) {
    golden_rows rows;
    check_case("NFC by hand");
    vp_tokenizer *t = load_text(mini);
    if (!golden_open(&rows, "tokenizer/nfc.jsonl")) return;
    while (golden_next(&rows)) {
        char *text = golden_text(&rows, "text"), *nfc = golden_text(&rows, "nfc");
        const char *out = NULL;
        size_t bytes = 0;
        vp_impl_work work = {.tokenizer = t};
        vp_impl_nfc(&work, text, strlen(text), &out, &bytes);
        check_note(bytes == strlen(nfc) && !memcmp(out, nfc, bytes), __FILE__, __LINE__, "row %d is \"%.*s\", expected \"%s\"", rows.count, (int)bytes, out, nfc);
        vp_impl_work_free(&work);
        FREE_ALL(text, nfc);
    }
    CHECK_INT(rows.count, 31);
    vp_tokenizer_free(t);
    check_case("a long run of marks is sorted stably");
    t = load_text(mini);
    if (t) { /* 1000 times (above, below): first all below, each kind in its own order; classes 230 and 220 */
        const char *out = NULL;
        size_t bytes = 0, used = 0, k;
        vp_impl_work work = {.tokenizer = t};
        for (k = 0; k < 1000; k++)
            used += (size_t)sprintf(want_text + used, "%s%s", k % 2 ? "\xCC\x8D" : "\xCC\x8E", k % 3 ? "\xCC\x96" : "\xCC\x97");
        vp_impl_nfc(&work, want_text, used, &out, &bytes);
        CHECK_INT(bytes, used);
        for (k = 0; k < 1000 && bytes == used; k++) {
            CHECK(!memcmp(out + k * 2, k % 3 ? "\xCC\x96" : "\xCC\x97", 2));
            CHECK(!memcmp(out + 2000 + k * 2, k % 2 ? "\xCC\x8D" : "\xCC\x8E", 2));
        }
        vp_impl_work_free(&work);
    }
    vp_tokenizer_free(t);
}

/* NFC applies to pieces between special tokens; an added token with normalized = true is matched afterwards */
static void test_added_and_nfc(void) {
    char *text = mini_edited("<em>", "<e\\u0301>"); /* matched in its composed form */
    static const int32_t one[1] = { 9 };
    check_case("added tokens and NFC");
    vp_tokenizer *t = load_text(text);
    if (t) {
        encode_is(t, "<\xC3\xA9>", 4, one, 1);
        encode_is(t, "<e\xCC\x81>", 5, one, 1);
        decode_is(t, one, 1, 0, "<e\xCC\x81>", 5); /* decoded as written */
    }
    vp_tokenizer_free(t);
    free(text);
    text = mini_edited("{\"type\":\"NFC\"}", "null");
    t = load_text(text);
    CHECK(t && !t->nfc);
    vp_tokenizer_free(t);
    free(text);
}

/* Both merge methods agree: words from the small tokenizer's letters, up to the length that both support, and one long word. */
static void test_merges(void) {
    uint64_t state = 20240601;
    size_t k, count = 0, bytes;
    check_case("short and long words merge the same way (seed 20240601)");
    vp_tokenizer *t = load_file("tokenizer/small-tokenizer.json");
    for (int i = 0; t && i < 20000; i++) {
        vp_impl_work a = {0}, b = {0};
        uint8_t word[VP_IMPL_SHORT_WORD];
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes = 1 + (size_t)(state >> 33) % VP_IMPL_SHORT_WORD;
        for (k = 0; k < bytes; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            word[k] = i % 4 ? (uint8_t)"etaoinsh the r "[state >> 33 & 15] : (uint8_t)(state >> 33);
        }
        a.tokenizer = b.tokenizer = t;
        vp_impl_merge_short(&a, word, bytes);
        vp_impl_merge_long(&b, word, bytes);
        CHECK_INT(a.id_count, b.id_count);
        CHECK(a.id_count == b.id_count && (!a.id_count || !memcmp(a.ids, b.ids, a.id_count * sizeof *a.ids)));
        vp_impl_work_free(&a);
        vp_impl_work_free(&b);
    }
    check_case("a single word of one megabyte (hangs if merging is quadratic)");
    for (k = 0; t && k < 1000000; k++) want_text[k] = "theandingthatwithfor"[k * 7 % 20];
    if (t) {
        CHECK_INT(vp_tokenizer_encode(t, want_text, 1000000, got_ids, IDS_MAX, &count), VP_OK);
        CHECK(count > 1000 && count < 1000000);
        CHECK_INT(vp_tokenizer_decode(t, got_ids, count, 0, got_text, sizeof got_text, &bytes), VP_OK);
        CHECK(bytes == 1000000 && !memcmp(got_text, want_text, bytes));
    }
    vp_tokenizer_free(t);
}

static void test_decode(void) {
    static const struct { const char *bytes, *text; } rows[] = { /* the vectors of Rust's String::from_utf8_lossy tests, and truncated texts */
        { "hello", "hello" }, { "\xE0\xB8\xA8", "\xE0\xB8\xA8" }, { "Hello\xC2 There\xFF Goodbye", "Hello\xEF\xBF\xBD There\xEF\xBF\xBD Goodbye" },
        { "Hello\xC0\x80 There", "Hello\xEF\xBF\xBD\xEF\xBF\xBD There" },
        { "\xF5" "foo\xF5\x80" "bar", "\xEF\xBF\xBD" "foo\xEF\xBF\xBD\xEF\xBF\xBD" "bar" },
        { "\xF1" "foo\xF1\x80" "bar\xF1\x80\x80" "baz", "\xEF\xBF\xBD" "foo\xEF\xBF\xBD" "bar\xEF\xBF\xBD" "baz" },
        { "\xF4" "foo\xF4\x80" "bar\xF4\xBF" "baz", "\xEF\xBF\xBD" "foo\xEF\xBF\xBD" "bar\xEF\xBF\xBD\xEF\xBF\xBD" "baz" },
        { "\xF0\x80\x80\x80" "foo\xF0\x90\x80\x80" "bar", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "foo\xF0\x90\x80\x80" "bar" },
        { "\xED\xA0\x80" "foo\xED\xBF\xBF" "bar", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "foo\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" "bar" },
        { "\xE0\x9F\xBF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xE2\x82", "\xEF\xBF\xBD" }, { "\xF0\x9F\x98", "\xEF\xBF\xBD" }, { "\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD" },
        { "\xE2\x82\xE2\x82\xAC", "\xEF\xBF\xBD\xE2\x82\xAC" },
        { "\xFF\xFF\xFF\xFF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" }, { "", "" },
    };
    static const struct { const char *text, *cleaned; } cleaned[] = {
        { "a . b ? c ! d , e", "a. b? c! d, e" }, { "do n't I 'm it 's we 've they 're", "don't I'm it's we've they're" }, { "a ' b", "a'b" }, { " ' s", "'s" },
        { "  .", " ." }, { " . .", ".." }, { "he 'll", "he 'll" }, { " N'T", " N'T" }, { " ,,", ",," }, { " ' ' ", "'' " }, { "x '", "x '" },
        { " 's've 've", "'s've've" }, { " .'s", ".'s" }, { "a 'm' b", "a'm' b" },
    };
    vp_special_ids ids = { 0, 0, 1, 300, 301, 302, 303, 304 };
    vp_tokenizer *t = NULL;
    int32_t codes[64];
    size_t i, k;
    check_case("invalid UTF-8 decodes as in Rust");
    CHECK_INT(vp_tokenizer_bytes(&ids, &t), VP_OK);
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (k = 0; rows[i].bytes[k]; k++) codes[k] = 2 + (int32_t)(uint8_t)rows[i].bytes[k];
        decode_is(t, codes, k, 0, rows[i].text, strlen(rows[i].text));
    }
    check_case("clean-up");
    for (i = 0; i < sizeof cleaned / sizeof *cleaned; i++) {
        for (k = 0; cleaned[i].text[k]; k++) codes[k] = 2 + (int32_t)(uint8_t)cleaned[i].text[k];
        decode_is(t, codes, k, VP_DECODE_CLEAN_UP, cleaned[i].cleaned, strlen(cleaned[i].cleaned));
        decode_is(t, codes, k, VP_DECODE_SKIP_SPECIAL, cleaned[i].text, strlen(cleaned[i].text));
    }
    vp_tokenizer_free(t);
}

/* A token with a character outside the alphabet is its own text. One of only alphabet characters is bytes, added or not. */
static void test_decode_tokens(void) {
    static const int32_t ids[] = { 10, 11, 12, 0, 9, -1, 13, INT32_MAX, INT32_MIN, 5 };
    char *text = mini_edited("\"<\":8", "\"<\":8,\"<em>\":9,\"\\u4f60\":10,\"\\u00e9\":11,\"a b\":12"), *more;
    check_case("the text of decoded tokens");
    vp_tokenizer *t = load_text(text);
    if (t) {
        decode_is(t, ids, 10, 0, "\xE4\xBD\xA0\xEF\xBF\xBD" "a b<|endoftext|><em> ", 27);
        decode_is(t, ids, 10, VP_DECODE_SKIP_SPECIAL, "\xE4\xBD\xA0\xEF\xBF\xBD" "a b<em> ", 14);
    }
    vp_tokenizer_free(t);
    free(text);
    more = mini_edited("\"<em>\"", "\"\\u0120\\u0120\""); /* an added token of alphabet characters: two spaces, as in the reference */
    t = load_text(more);
    if (t) decode_is(t, ids + 4, 1, 0, "  ", 2);
    vp_tokenizer_free(t);
    free(more);
}

static void test_byte_tokenizer(void) {
    static const int32_t want[] = { 0, 300, 301, 302, 303, 304, 1, 2 + 0xC3, 2 + 0xA9, 2, 2 + ' ', 2 + ' ' };
    static const char text[] = "<|endoftext|><im_start><im_end><im_patch><im_col><|image|><|padding|>\xC3\xA9\0  ";
    static const int32_t odd[] = { 299, -5, 305, 2 + 'x', 258 };
    vp_special_ids ids = { 0, 0, 1, 300, 301, 302, 303, 304 }, back, bad;
    vp_tokenizer *t = NULL;
    vp_error error;
    check_case("byte tokenizer");
    CHECK_INT(vp_tokenizer_bytes(&ids, &t), VP_OK);
    encode_is(t, text, sizeof text - 1, want, 12);
    decode_is(t, want, 12, 0, text, sizeof text - 1);
    decode_is(t, want, 12, VP_DECODE_SKIP_SPECIAL, "\xC3\xA9\0  ", 5);
    decode_is(t, odd, 5, 0, "x", 1);
    encode_is(t, "e\xCC\x81<im_", 7, (const int32_t[]){ 2 + 'e', 2 + 0xCC, 2 + 0x81, 2 + '<', 2 + 'i', 2 + 'm', 2 + '_' }, 7);
    memset(&back, 0x55, sizeof back);
    CHECK_INT(vp_tokenizer_special_ids(t, &back, &error), VP_OK);
    CHECK(!memcmp(&back, &ids, sizeof ids));
    vp_tokenizer_free(t);
    vp_tokenizer_free(NULL);

    check_case("byte tokenizer rejects bad ids");
    t = NULL;
    for (int32_t i = 0; i < 3; i++) {
        static const int32_t out_of_range[3] = { 2, -1, 1 << 22 };
        bad = ids;
        bad.im_col = out_of_range[i];
        CHECK_INT(vp_tokenizer_bytes(&bad, &t), VP_ERR_RANGE);
    }
    bad = ids;
    bad.im_end = bad.im_start;
    CHECK_INT(vp_tokenizer_bytes(&bad, &t), VP_ERR_MISMATCH);
    bad = ids;
    bad.bos = 305;
    CHECK_INT(vp_tokenizer_bytes(&bad, &t), VP_ERR_MISMATCH);
    CHECK_INT(vp_tokenizer_bytes(NULL, &t), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_bytes(&ids, NULL), VP_ERR_RANGE);
    CHECK(t == NULL);
}

static void test_special_ids(void) {
    vp_special_ids ids, untouched;
    vp_error error;
    check_case("special ids by content");
    vp_tokenizer *t = load_file("tokenizer/small-tokenizer.json");
    memset(&ids, 0x55, sizeof ids);
    memset(&untouched, 0x55, sizeof untouched);
    CHECK_INT(vp_tokenizer_special_ids(t, &ids, &error), VP_OK);
    CHECK(ids.bos == 782 && ids.eos == 782 && ids.pad == 1 && ids.im_start == 783);
    CHECK(ids.im_end == 784 && ids.im_patch == 785 && ids.im_col == 786 && ids.image == 787);
    vp_tokenizer_free(t);
    check_case("a missing special token is named in the error");
    t = load_text(mini);
    memset(&ids, 0x55, sizeof ids);
    CHECK_INT(vp_tokenizer_special_ids(t, &ids, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(error.code, VP_ERR_NOT_FOUND);
    CHECK(strstr(error.text, "<im_start>") != NULL);
    CHECK(!memcmp(&ids, &untouched, sizeof ids));
    CHECK_INT(vp_tokenizer_special_ids(t, &ids, NULL), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_tokenizer_special_ids(NULL, &ids, &error), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_special_ids(t, NULL, &error), VP_ERR_RANGE);
    vp_tokenizer_free(t);
}

/* ------------------------------------------------------------------------------------------------------------- errors */

static void test_load_errors(void) {
    static const char deep[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    golden_rows rows;
    vp_tokenizer *t = NULL;
    vp_error error;
    if (golden_open(&rows, "tokenizer/load_errors.jsonl")) while (golden_next(&rows)) check_edited(&rows, mini);
    CHECK_INT(rows.count, 64);
    check_case("two added tokens that are equal after NFC");
    char *text = mini_edited("{\"id\":9,",
                             "{\"id\":9,\"content\":\"\\u00e9\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,"
                             "\"special\":false},{\"id\":10,\"content\":\"e\\u0301\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
                             "\"normalized\":true,\"special\":false},{\"id\":11,");
    CHECK_INT(vp_tokenizer_load(text, strlen(text), &t, &error), VP_ERR_FORMAT);
    CHECK(strstr(error.text, "normalisation") != NULL);
    free(text);
    check_case("an added token of 1025 bytes");
    memset(want_text, 'q', 1025);
    want_text[1025] = 0;
    text = mini_edited("<em>", want_text);
    CHECK_INT(vp_tokenizer_load(text, strlen(text), &t, &error), VP_ERR_UNSUPPORTED);
    CHECK_TEXT(error.where, "added_tokens");
    free(text);
    check_case("other load errors");
    CHECK_INT(vp_tokenizer_load("", 0, &t, &error), VP_ERR_FORMAT);
    CHECK_INT(vp_tokenizer_load("7", 1, &t, &error), VP_ERR_FORMAT);
    CHECK_INT(vp_tokenizer_load(deep, sizeof deep - 1, &t, &error), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_load(NULL, 0, &t, &error), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_load(mini, sizeof mini - 1, NULL, &error), VP_ERR_RANGE);
    CHECK(t == NULL);
}

/* members that other writers omit, or write in an older form, are not errors */
static void test_load_variants(void) {
    static const struct { const char *from, *to; } rows[] = {
        { "\"truncation\":null,\"padding\":null,", "" }, { "\"type\":\"BPE\",", "" }, { ",\"ignore_merges\":false", "" }, { "\"dropout\":null", "\"dropout\":0.0" },
        { "\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"\"" }, { "[\"a b\"", "[\"#version: 0.2\",\"a b\"" },
        { "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{}}", "null" },
        { "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"special_tokens\":{}}",
          "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false}" },
        { "\"a b\"", "[\"a\",\"b\"]" }, { "[\"ab\",\"b\"]", "\"ab b\"" }, { "\"BPE\"", "\"\\u0042PE\"" },
    };
    static const int32_t want[2] = { 4, 1 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = mini_edited(rows[i].from, rows[i].to);
        check_case("variant %s -> %s", rows[i].from, rows[i].to);
        vp_tokenizer *t = load_text(text);
        if (t) encode_is(t, "abba", 4, want, 2);
        vp_tokenizer_free(t);
        free(text);
    }
    {
        char *text = mini_edited("\"\\u0120 a\"", "\"\\u0120 a\",\"a b\""); /* a pair listed twice has its last rank, so now b+a is first */
        static const int32_t last[2] = { 1, 7 };
        check_case("a token spelled with a real space is not the merge of a space");
        char *literal = mini_edited("\"a\":1", "\" \":10,\"<em>\":9,\"a\":1");
        static const int32_t space[2] = { 1, 5 };
        vp_tokenizer *t = load_text(literal);
        if (t) encode_is(t, "a ", 2, space, 2);
        vp_tokenizer_free(t);
        free(literal);
        check_case("a merge listed twice has its last rank");
        t = load_text(text);
        if (t) encode_is(t, "aba", 3, last, 2);
        vp_tokenizer_free(t);
        free(text);
    }
}

static void test_call_errors(void) {
    static const char *const bad[] = { "\xFF", "a\xC0\x80", "\xED\xA0\x80", "\xE2\x82", "\xF4\x90\x80\x80" };
    size_t count = 77, i;
    int32_t ids[4] = { -7, -7, -7, -7 };
    char text[4] = "ZZZ";
    static const int32_t three[3] = { 1, 2, 3 };
    check_case("encode: capacity, bad UTF-8, bad arguments");
    vp_tokenizer *t = load_text(mini);
    CHECK_INT(vp_tokenizer_encode(t, "aba ", 4, ids, 2, &count), VP_ERR_CAPACITY);
    CHECK_INT(count, 3);
    CHECK(ids[0] == -7 && ids[1] == -7);
    count = 77;
    CHECK_INT(vp_tokenizer_encode(t, "aba ", 4, NULL, 0, &count), VP_ERR_CAPACITY);
    CHECK_INT(count, 3);
    CHECK_INT(vp_tokenizer_encode(t, "aba ", 4, ids, 3, &count), VP_OK);
    CHECK(ids[0] == 3 && ids[1] == 1 && ids[2] == 5 && ids[3] == -7);
    CHECK_INT(vp_tokenizer_encode(t, NULL, 0, NULL, 0, &count), VP_OK);
    CHECK_INT(count, 0);
    count = 77;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_INT(vp_tokenizer_encode(t, bad[i], strlen(bad[i]), ids, 4, &count), VP_ERR_FORMAT);
    CHECK_INT(vp_tokenizer_encode(NULL, "a", 1, ids, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_encode(t, NULL, 1, ids, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_encode(t, "a", 1, NULL, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_encode(t, "a", 1, ids, 4, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_encode(t, "a", ((size_t)1 << 29) + 1, ids, 4, &count), VP_ERR_RANGE);
    CHECK_INT(count, 77);
    check_case("decode: capacity, bad arguments");
    CHECK_INT(vp_tokenizer_decode(t, three, 3, 0, text, 4, &count), VP_ERR_CAPACITY); /* "abab" and a NUL need 5 */
    CHECK_INT(count, 4);
    CHECK_TEXT(text, "ZZZ");
    CHECK_INT(vp_tokenizer_decode(t, three, 2, 0, text, 3, &count), VP_OK);
    CHECK_TEXT(text, "ab");
    CHECK_INT(vp_tokenizer_decode(t, NULL, 0, 0, text, 1, &count), VP_OK);
    CHECK(count == 0 && text[0] == 0);
    CHECK_INT(vp_tokenizer_decode(t, NULL, 0, 0, NULL, 0, &count), VP_ERR_CAPACITY); /* even an empty text needs its NUL */
    CHECK_INT(vp_tokenizer_decode(t, three, 3, 4, text, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_decode(NULL, three, 3, 0, text, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_decode(t, NULL, 3, 0, text, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_decode(t, three, 3, 0, NULL, 4, &count), VP_ERR_RANGE);
    CHECK_INT(vp_tokenizer_decode(t, three, 3, 0, text, 4, NULL), VP_ERR_RANGE);
    vp_tokenizer_free(t);
}

/* Each allocation of each call fails once: the call returns VP_ERR_MEMORY, leaves its outputs unchanged and frees everything. */
static void test_memory(void) {
    vp_special_ids special = { 0, 0, 1, 300, 301, 302, 303, 304 };
    vp_tokenizer *t = NULL, *kept;
    vp_result result = VP_ERR_MEMORY;
    vp_error error;
    size_t count, k;
    long live, limit;
    check_case("load without memory");
    live = allocations_live;
    for (limit = 0; limit < 100 && result == VP_ERR_MEMORY; limit++) {
        allocations_left = limit;
        result = vp_tokenizer_load(mini, sizeof mini - 1, &t, &error);
        allocations_left = -1;
        if (result == VP_ERR_MEMORY) CHECK(t == NULL && error.code == VP_ERR_MEMORY && allocations_live == live);
    }
    CHECK_INT(result, VP_OK);
    CHECK(limit > 15);
    kept = t;
    check_case("bytes without memory");
    live = allocations_live;
    for (t = NULL, limit = 0, result = VP_ERR_MEMORY; limit < 100 && result == VP_ERR_MEMORY; limit++) {
        allocations_left = limit;
        result = vp_tokenizer_bytes(&special, &t);
        allocations_left = -1;
        if (result == VP_ERR_MEMORY) CHECK(t == NULL && allocations_live == live);
    }
    CHECK_INT(result, VP_OK);
    CHECK(limit > 4);
    vp_tokenizer_free(t);
    check_case("encode and decode without memory"); /* a long word, marks and many ids, so that every buffer grows */
    for (k = 0; k < 30000; k++) want_text[k] = k < 10000 ? "ab"[k % 2] : k < 20000 ? " a"[k % 2] : "e\xCC\x81 "[k % 4];
    live = allocations_live;
    for (limit = 0, result = VP_ERR_MEMORY; limit < 200 && result == VP_ERR_MEMORY; limit++) {
        allocations_left = limit;
        count = 77;
        got_ids[0] = -7;
        result = vp_tokenizer_encode(kept, want_text, 30000, got_ids, IDS_MAX, &count);
        allocations_left = -1;
        CHECK_INT(allocations_live, live);
        if (result == VP_ERR_MEMORY) CHECK(count == 77 && got_ids[0] == -7);
    }
    CHECK_INT(result, VP_OK);
    CHECK(limit > 8);
    allocations_left = 0;
    got_text[0] = 'Z';
    CHECK_INT(vp_tokenizer_decode(kept, got_ids, 100, 0, got_text, sizeof got_text, &count), VP_ERR_MEMORY);
    CHECK_INT(got_text[0], 'Z');
    allocations_left = -1;
    vp_tokenizer_free(kept);
}

int main(void) {
    RUN_TESTS(test_tiny, test_goldens, test_other_models, test_metaspace, test_other_refusals, test_classes,
              test_pipeline, test_words, test_nfc, test_added_and_nfc, test_merges, test_decode, test_decode_tokens,
              test_byte_tokenizer, test_special_ids, test_load_errors, test_load_variants, test_call_errors,
              test_memory);
    check_case("every allocation was freed");
    CHECK_INT(allocations_live, 0);
    return check_done("test_tokenizer");
}
