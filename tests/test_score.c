/* The scoring rules: every golden row of prediction cleaning, VQA normalisation and vqa_seed, and every error code. */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"

enum { TEXT_CAPACITY = 8192, REFERENCES_MAX = 64 };

/* one row of a .jsonl file at a time; a line ends only at \n */
typedef struct rows { char *file; const char *next; vp_json_node nodes[512]; vp_json json; } rows;

static int rows_open(rows *r, const char *name) {
    r->file = check_read(check_golden(name), NULL);
    r->next = r->file;
    return r->file != NULL;
}
static int rows_next(rows *r) {
    const char *line = r->next, *end;
    size_t needed;
    vp_result result;
    if (!line || !*line) return 0;
    end = strchr(line, '\n');
    if (!end) end = line + strlen(line);
    r->next = *end ? end + 1 : end;
    if (end == line) return rows_next(r);
    result = vp_json_parse(line, (size_t)(end - line), r->nodes, 512, &r->json, &needed, NULL);
    if (result != VP_OK) {
        check_case("rows of the golden file can be parsed");
        CHECK_INT(result, VP_OK);
    }
    return result == VP_OK;
}
static char *row_text(rows *r, uint32_t node, char *out) {
    if (vp_json_text(&r->json, node, out, TEXT_CAPACITY, NULL) != VP_OK) snprintf(out, TEXT_CAPACITY, "(no text)");
    return out;
}
static int row_ascii(rows *r) { return r->json.nodes[vp_json_get(&r->json, 0, "ascii")].type == VP_JSON_TRUE; }
static int64_t row_id(rows *r) {
    int64_t id = -1;
    vp_json_to_int(&r->json, vp_json_get(&r->json, 0, "id"), &id);
    return id;
}

/* a function text -> text against a golden file */
static void check_texts(const char *name, const char *wanted_key, vp_result (*rule)(const char *, char *, size_t, size_t *), int rows_least) {
    static rows r;
    static char text[TEXT_CAPACITY], wanted[TEXT_CAPACITY], got[TEXT_CAPACITY];
    int count[2] = {0, 0}, equal[2] = {0, 0};
    if (!rows_open(&r, name)) { check_skip(name, "golden file not found"); return; }
    while (rows_next(&r)) {
        int ascii = row_ascii(&r);
        size_t needed = 9999;
        check_case("%s row %lld", name, (long long)row_id(&r));
        row_text(&r, vp_json_get(&r.json, 0, "text"), text);
        row_text(&r, vp_json_get(&r.json, 0, wanted_key), wanted);
        memset(got, 0x55, sizeof got);
        CHECK_INT(rule(text, got, sizeof got, &needed), VP_OK);
        CHECK_TEXT(got, wanted);
        CHECK_INT(needed, strlen(wanted));
        CHECK_INT(got[strlen(wanted) + 1], 0x55);
        count[ascii]++;
        equal[ascii] += strcmp(got, wanted) == 0;
    }
    check_case("%s has its rows", name);
    CHECK(count[0] + count[1] >= rows_least);
    printf("%s: ASCII %d of %d equal, other %d of %d\n", name, equal[1], count[1], equal[0], count[0]);
    free(r.file);
}

static void check_vqa_seed(void) {
    static rows r;
    static char prediction[TEXT_CAPACITY], texts[REFERENCES_MAX][TEXT_CAPACITY];
    static char processed[TEXT_CAPACITY], wanted_text[TEXT_CAPACITY], scratch[4 * TEXT_CAPACITY];
    int count[2] = {0, 0}, equal[2] = {0, 0}, plain = 0;
    if (!rows_open(&r, "scores/vqa_seed.jsonl")) { check_skip("vqa_seed", "golden file not found"); return; }
    while (rows_next(&r)) {
        const char *references[REFERENCES_MAX];
        uint32_t list = vp_json_get(&r.json, 0, "references"), i, reference_count = r.json.nodes[list].count;
        double wanted = -1, score = -2;
        int ascii = row_ascii(&r);
        size_t longest;
        check_case("scores/vqa_seed.jsonl row %lld", (long long)row_id(&r));
        row_text(&r, vp_json_get(&r.json, 0, "prediction"), prediction);
        CHECK_INT(vp_json_to_double(&r.json, vp_json_get(&r.json, 0, "score"), &wanted), VP_OK);
        CHECK_INT(vp_score_vqa_normalise(prediction, processed, sizeof processed, NULL), VP_OK);
        CHECK_TEXT(processed, row_text(&r, vp_json_get(&r.json, 0, "prediction_processed"), wanted_text));
        if (r.json.nodes[list].type == VP_JSON_STRING) { /* the reference compares with the unprocessed text then */
            score = strcmp(processed, row_text(&r, list, texts[0])) == 0;
            plain++;
        } else {
            if (!CHECK(reference_count <= REFERENCES_MAX)) continue;
            longest = strlen(prediction);
            for (i = 0; i < reference_count; i++) {
                references[i] = row_text(&r, vp_json_at(&r.json, list, i), texts[i]);
                if (strlen(texts[i]) > longest) longest = strlen(texts[i]);
            }
            /* the documented scratch is enough */
            CHECK_INT(vp_score_vqa_seed(prediction, references, reference_count, scratch, 4 * longest + 64, &score), VP_OK);
        }
        CHECK_NEAR(score, wanted, 1e-12);
        count[ascii]++;
        equal[ascii] += fabs(score - wanted) <= 1e-12;
    }
    check_case("scores/vqa_seed.jsonl has its rows");
    CHECK(count[0] + count[1] >= 245);
    printf("scores/vqa_seed.jsonl: ASCII %d of %d equal, other %d of %d (%d with one plain string)\n", equal[1], count[1], equal[0], count[0], plain);
    free(r.file);
}

/* text -> normalised, read off the rules */
static void check_rules(void) {
    static const struct { const char *text, *wanted; } cases[] = {
        {"................................", ""}, {".................................", "."}, /* at most 32 periods are dropped */
        {"............................... ..", "."},
        {"x. 5", "x 5"}, {"x.-5", "x 5"}, {"5. .5 5.5 .x", "5 .5 5.5 x"},
        {"a- .-5", ".5"}, {"(5) .)5", "5 .5"},                         /* the look ahead sees the text after the punctuation is gone */
        {"1,2 a-b", "12 ab"},                                          /* digit comma digit deletes all punctuation */
        {"Im Ive", "im ive"}, {"let's", "let's"}, {"somebody'd", "somebodyd"}, {"twas the an a none", "'twas 0"},
        {"shouldn'tve'", "shouldn'tve'"}, {"abcdefghijklmnopqrstuvwxyz the abcdefghijklmno", "abcdefghijklmnopqrstuvwxyz abcdefghijklmno"},
        {"\x1c\x1d" "the\x1e" "a\x1f" "dog\x0b" "cat\x0c" "\r", "dog cat"},
        {"\xCE\x91\xCE\xA3 \xCE\xA3 \xCE\xA3\xCE\x91", "\xCE\xB1\xCF\x82 \xCF\x83 \xCF\x83\xCE\xB1"}, /* final sigma */
        {"\xC4\xB0", "i\xCC\x87"}, {"\xE2\x84\xAA" "dont", "kdont"}, {"\xE1\xBA\x9E", "\xC3\x9F"},
        {"A\xFF\xC3", "a\xFF\xC3"},                                    /* stray bytes pass through */
    };
    size_t i;
    char got[256];
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case("normalise \"%s\"", cases[i].text);
        CHECK_INT(vp_score_vqa_normalise(cases[i].text, got, sizeof got, NULL), VP_OK);
        CHECK_TEXT(got, cases[i].wanted);
    }
}

static void check_errors(void) {
    const char *references[3] = {"yes", "no", NULL};
    char buffer[32], scratch[8];
    double score = 7;
    size_t needed = 0;
    memset(buffer, 0x55, sizeof buffer);
    check_case("a buffer without room for the NUL is VP_ERR_CAPACITY and stays untouched");
    CHECK_INT(vp_score_clean("  four ", buffer, 4, &needed), VP_ERR_CAPACITY);
    CHECK_INT(needed, 4);
    CHECK_INT(buffer[0], 0x55);
    CHECK_INT(vp_score_clean("  four ", buffer, 5, &needed), VP_OK);
    CHECK_TEXT(buffer, "four");
    CHECK_INT(vp_score_vqa_normalise("nine", NULL, 0, &needed), VP_ERR_CAPACITY);
    CHECK_INT(needed, 1);
    check_case("NULL arguments are VP_ERR_RANGE");
    CHECK_INT(vp_score_clean(NULL, buffer, sizeof buffer, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_score_vqa_normalise("x", NULL, 4, &needed), VP_ERR_RANGE);
    CHECK_INT(vp_score_vqa_seed(NULL, references, 1, buffer, sizeof buffer, &score), VP_ERR_RANGE);
    CHECK_INT(vp_score_vqa_seed("yes", references, 3, buffer, sizeof buffer, &score), VP_ERR_RANGE);
    CHECK_INT(vp_score_vqa_seed("yes", NULL, 1, buffer, sizeof buffer, &score), VP_ERR_RANGE);
    CHECK_NEAR(score, 7, 0);
    check_case("a too small scratch is VP_ERR_CAPACITY, never a wrong score");
    CHECK_INT(vp_score_vqa_seed("elephants", references, 2, scratch, sizeof scratch, &score), VP_ERR_CAPACITY);
    references[0] = "cloud";
    CHECK_INT(vp_score_vqa_seed("cloud", references, 1, scratch, sizeof scratch, &score), VP_ERR_CAPACITY);
    CHECK_NEAR(score, 7, 0);
    references[0] = "a much longer text than the scratch holds";
    CHECK_INT(vp_score_vqa_seed("cat", references, 1, scratch, sizeof scratch, &score), VP_OK);
    CHECK_NEAR(score, 0, 0);
    check_case("no references score 0");
    CHECK_INT(vp_score_vqa_seed("cat", NULL, 0, scratch, sizeof scratch, &score), VP_OK);
    CHECK_NEAR(score, 0, 0);
}

int main(void) {
    check_texts("scores/prediction_cleaning.jsonl", "cleaned", vp_score_clean, 178);
    check_texts("scores/vqa_normalise.jsonl", "processed", vp_score_vqa_normalise, 244);
    check_vqa_seed();
    check_rules();
    check_errors();
    return check_done("test_score");
}
