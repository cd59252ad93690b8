/* The scoring rules: every golden row of every rule (captions are elsewhere), metrics by name, and every error code. */
#include "vlmprof_score.h"
#include "support/check.h"

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
    if (!line || !*line) return 0;
    end = strchr(line, '\n');
    if (!end) end = line + strlen(line);
    r->next = *end ? end + 1 : end;
    if (end == line) return rows_next(r);
    vp_result result = vp_json_parse(line, (size_t)(end - line), r->nodes, 512, &r->json, &needed, NULL);
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
static int64_t row_id(rows *r) {
    int64_t id = -1;
    vp_json_to_int(&r->json, vp_json_get(&r->json, 0, "id"), &id);
    return id;
}

typedef struct golden { rows r; const char *references[REFERENCES_MAX], *options[REFERENCES_MAX], *names[REFERENCES_MAX]; vp_score_sample s; size_t room; } golden;
static golden g;

/* One check for each file: the row that fails first is named. */
static struct { int count, failed; char text[400]; } seen;
static int row_check(rows *r, int good, const char *what) {
    if (!good && !seen.failed++) snprintf(seen.text, sizeof seen.text, "row %lld: %.300s", (long long)row_id(r), what);
    return good;
}
#define ROW(good) row_check(&g.r, (good), #good)
static void check_file(const char *name, int least) {
    check_case("%s: every row", name);
    check_note(!seen.failed && seen.count >= least, __FILE__, __LINE__, "%d rows, expected %d or more; %d checks fail, first %s", seen.count, least,
               seen.failed, seen.text);
    memset(&seen, 0, sizeof seen);
    free(g.r.file);
}

/* a function from text to text, against a golden file */
static void check_texts(const char *name, const char *wanted_key, vp_result (*rule)(const char *, char *, size_t, size_t *), int least) {
    static char text[TEXT_CAPACITY], wanted[TEXT_CAPACITY], got[TEXT_CAPACITY];
    if (!rows_open(&g.r, name)) { check_skip(name, "golden file not found"); return; }
    for (; rows_next(&g.r); seen.count++) {
        size_t needed = 9999;
        row_text(&g.r, vp_json_get(&g.r.json, 0, "text"), text);
        row_text(&g.r, vp_json_get(&g.r.json, 0, wanted_key), wanted);
        memset(got, 0x55, sizeof got);
        ROW(rule(text, got, sizeof got, &needed) == VP_OK);
        ROW(!strcmp(got, wanted) && needed == strlen(wanted) && got[strlen(wanted) + 1] == 0x55);
    }
    check_file(name, least);
}

static void check_vqa_seed(void) {
    static char prediction[TEXT_CAPACITY], texts[REFERENCES_MAX][TEXT_CAPACITY];
    static char processed[TEXT_CAPACITY], wanted_text[TEXT_CAPACITY], scratch[4 * TEXT_CAPACITY];
    if (!rows_open(&g.r, "scores/vqa_seed.jsonl")) { check_skip("vqa_seed", "golden file not found"); return; }
    for (; rows_next(&g.r); seen.count++) {
        const char *references[REFERENCES_MAX];
        uint32_t list = vp_json_get(&g.r.json, 0, "references"), i, reference_count = g.r.json.nodes[list].count;
        double wanted = -1, score = -2;
        row_text(&g.r, vp_json_get(&g.r.json, 0, "prediction"), prediction);
        ROW(vp_json_to_double(&g.r.json, vp_json_get(&g.r.json, 0, "score"), &wanted) == VP_OK);
        ROW(vp_score_vqa_normalise(prediction, processed, sizeof processed, NULL) == VP_OK);
        ROW(!strcmp(processed, row_text(&g.r, vp_json_get(&g.r.json, 0, "prediction_processed"), wanted_text)));
        if (g.r.json.nodes[list].type == VP_JSON_STRING) /* the reference then compares with the unprocessed text */
            score = strcmp(processed, row_text(&g.r, list, texts[0])) == 0;
        else {
            if (!ROW(reference_count <= REFERENCES_MAX)) continue;
            size_t longest = strlen(prediction);
            for (i = 0; i < reference_count; i++) {
                references[i] = row_text(&g.r, vp_json_at(&g.r.json, list, i), texts[i]);
                if (strlen(texts[i]) > longest) longest = strlen(texts[i]);
            }
            /* the documented scratch size is enough */
            ROW(vp_score_vqa_seed(prediction, references, reference_count, scratch, 4 * longest + 64, &score) == VP_OK);
        }
        ROW(fabs(score - wanted) <= 1e-12);
    }
    check_file("scores/vqa_seed.jsonl", 245);
}

/* text -> normalised text, derived from the rules */
static void check_rules(void) {
    static const struct { const char *text, *wanted; } cases[] = {
        {"................................", ""}, {".................................", "."}, /* at most 32 periods are dropped */
        {"............................... ..", "."}, {"x. 5", "x 5"}, {"x.-5", "x 5"}, {"5. .5 5.5 .x", "5 .5 5.5 x"},
        {"a- .-5", ".5"}, {"(5) .)5", "5 .5"},                         /* the look-ahead sees the text after punctuation was removed */
        {"1,2 a-b", "12 ab"},                                          /* digit comma digit removes all punctuation */
        {"Im Ive", "im ive"}, {"let's", "let's"}, {"somebody'd", "somebodyd"}, {"twas the an a none", "'twas 0"},
        {"shouldn'tve'", "shouldn'tve'"}, {"abcdefghijklmnopqrstuvwxyz the abcdefghijklmno", "abcdefghijklmnopqrstuvwxyz abcdefghijklmno"},
        {"\x1c\x1d" "the\x1e" "a\x1f" "dog\x0b" "cat\x0c" "\r", "dog cat"},
        {"\xCE\x91\xCE\xA3 \xCE\xA3 \xCE\xA3\xCE\x91", "\xCE\xB1\xCF\x82 \xCF\x83 \xCF\x83\xCE\xB1"}, /* final sigma */
        {"\xC4\xB0", "i\xCC\x87"}, {"\xE2\x84\xAA" "dont", "kdont"}, {"\xE1\xBA\x9E", "\xC3\x9F"},
        {"A\xFF\xC3", "a\xFF\xC3"},                                    /* stray bytes pass through */
    };
    char got[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
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
    check_case("a buffer without room for the NUL is VP_ERR_CAPACITY and is not modified");
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
    check_case("a scratch that is too small is VP_ERR_CAPACITY, never a wrong score");
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

/* ---- rows of any rule, in the form of vp_score_compute */
static struct { char text[4 * TEXT_CAPACITY], scratch[1 << 21]; size_t used; } hold;
static const char *hold_text(rows *r, uint32_t node) { /* NULL if it is not a string */
    char *p = hold.text + hold.used;
    size_t needed = 0;
    if (node == VP_JSON_NONE || vp_json_text(&r->json, node, p, sizeof hold.text - hold.used, &needed) != VP_OK) return NULL;
    hold.used += needed + 1;
    return p;
}
static size_t hold_list(rows *r, const char *key, const char *texts[REFERENCES_MAX]) { /* a single string counts as a list of one */
    uint32_t node = vp_json_get(&r->json, 0, key), i;
    if (node == VP_JSON_NONE || r->json.nodes[node].type == VP_JSON_NULL) return 0;
    if (r->json.nodes[node].type == VP_JSON_STRING) return (texts[0] = hold_text(r, node)) != NULL;
    for (i = 0; i < r->json.nodes[node].count && i < REFERENCES_MAX; i++) texts[i] = hold_text(r, vp_json_at(&r->json, node, i));
    return i;
}
static double row_number(rows *r, const char *key) { /* booleans count as 0 and 1, other non-numbers as NaN */
    uint32_t node = vp_json_get(&r->json, 0, key);
    double value = 0;
    if (node == VP_JSON_NONE) return (double)NAN;
    if (r->json.nodes[node].type == VP_JSON_TRUE || r->json.nodes[node].type == VP_JSON_FALSE) return r->json.nodes[node].type == VP_JSON_TRUE;
    return vp_json_to_double(&r->json, node, &value) == VP_OK ? value : (double)NAN;
}

static void read_sample(void) {
    static const char *const lists[] = {"references", "reference", "answer"};
    vp_score_sample s = vp_score_sample_default();
    double number;
    hold.used = 0;
    s.prediction = hold_text(&g.r, vp_json_get(&g.r.json, 0, "prediction"));
    s.references = g.references;
    s.options = g.options;
    s.option_names = g.names;
    for (int i = 0; i < 3 && !s.reference_count; i++) s.reference_count = hold_list(&g.r, lists[i], g.references);
    s.option_count = hold_list(&g.r, "options", g.options) + hold_list(&g.r, "choices", g.options);
    s.option_name_count = hold_list(&g.r, "option_names", g.names);
    s.question_type = hold_text(&g.r, vp_json_get(&g.r.json, 0, "question_type"));
    if ((number = row_number(&g.r, "answer_index")) >= 0) s.answer_index = (int64_t)number;
    g.s = s;
    g.room = vp_score_scratch_bytes(hold.used, s.reference_count + s.option_count + s.option_name_count + 1);
    ROW(g.room <= sizeof hold.scratch);
}
static int same_score(double got, double wanted) { return (isnan(got) && isnan(wanted)) || fabs(got - wanted) <= 1e-12; }

/* Checks of members in a file's rows other than the score. */
typedef void (*more_checks)(const vp_score_outcome *o);
static void check_rows(const char *file, const char *metric_name, vp_score_cleaning cleaning, const char *score_key, more_checks more, int least) {
    char name[96];
    vp_score_metric metric = VP_SCORE_METRIC_COUNT, named;
    snprintf(name, sizeof name, "scores/%s.jsonl", file);
    if (!rows_open(&g.r, name)) { check_skip(name, "golden file not found"); return; }
    check_case("%s: metric %s is known", name, metric_name);
    CHECK_INT(vp_score_metric_find(metric_name, &metric), VP_OK);
    for (; rows_next(&g.r); seen.count++) {
        vp_score_outcome o;
        double wanted = row_number(&g.r, score_key);
        char dataset[64];
        memset(&o, 0x55, sizeof o);
        read_sample();
        if (vp_json_get(&g.r.json, 0, "dataset") != VP_JSON_NONE) {
            row_text(&g.r, vp_json_get(&g.r.json, 0, "dataset"), dataset);
            ROW(vp_score_metric_for_dataset(dataset, &metric) == VP_OK);
            row_text(&g.r, vp_json_get(&g.r.json, 0, "metric"), dataset); /* by its name in the experiments */
            ROW(vp_score_metric_find(dataset, &named) == VP_OK && named == metric);
        }
        ROW(vp_score_compute(metric, cleaning, &g.s, hold.scratch, g.room, &o) == VP_OK);
        if (vp_json_get(&g.r.json, 0, "error") != VP_JSON_NONE) { ROW(o.reason != NULL); continue; }
        ROW(same_score(o.score, wanted));
        ROW(isnan(o.score) == (o.reason != NULL));
        if (more) more(&o);
    }
    check_file(name, least);
}

static void check_cleaned(const vp_score_outcome *o) {
    static char wanted[TEXT_CAPACITY];
    uint32_t node = vp_json_get(&g.r.json, 0, "cleaned");
    if (node == VP_JSON_NONE) node = vp_json_get(&g.r.json, 0, "cleaned_vqa_eval");
    ROW(!strcmp(o->cleaned, row_text(&g.r, node, wanted)));
}
static void check_index(const vp_score_outcome *o) {
    check_cleaned(o);
    ROW((o->option_index) == ((int64_t)row_number(&g.r, "predicted_index")));
}
static void check_em_other(const vp_score_outcome *o) {
    static char cleaned[TEXT_CAPACITY];
    double score = -1;
    check_cleaned(o);
    ROW((vp_score_clean_frequent(g.s.prediction, hold.scratch, g.room, cleaned, sizeof cleaned, NULL)) == VP_OK);
    ROW((vp_score_em_unstripped(cleaned, g.s.references, g.s.reference_count, hold.scratch, g.room, &score)) == VP_OK);
    ROW(score == row_number(&g.r, "score_vqa_eval"));
}
/* each reference alone */
static void check_each_by(vp_score_rule *rule) {
    uint32_t each = vp_json_get(&g.r.json, 0, "each");
    for (size_t i = 0; i < g.s.reference_count; i++) {
        double score = -1, wanted = -2;
        ROW((vp_json_to_double(&g.r.json, vp_json_at(&g.r.json, each, (uint32_t)i), &wanted)) == VP_OK);
        ROW((rule(g.s.prediction, g.s.references + i, 1, hold.scratch, g.room, &score)) == VP_OK);
        ROW(score == wanted);
    }
}
static void check_each(const vp_score_outcome *o) { (void)o; check_each_by(vp_score_relaxed); }
static void check_each_anls(const vp_score_outcome *o) { (void)o; check_each_by(vp_score_anls); }
static void check_choice(const vp_score_outcome *o) { /* mmmu */
    char letter[2] = {0, 0};
    static char wanted[TEXT_CAPACITY];
    uint32_t node = vp_json_get(&g.r.json, 0, "parsed");
    ROW((o->is_unparsed) == (row_number(&g.r, "unparsed")));
    ROW((o->option_index < 0) == (o->is_unparsed));
    if (o->is_unparsed) return;
    letter[0] = (char)('A' + o->option_index);
    ROW(!strcmp(letter, row_text(&g.r, node, wanted)));
}
static void check_real_world(const vp_score_outcome *o) {
    double index = row_number(&g.r, "predicted_index");
    ROW((o->option_index) == (isnan(index) ? -1 : (int64_t)index));
}
static void check_parsed(const vp_score_outcome *o) { /* mmmu, open */
    uint32_t strings = vp_json_get(&g.r.json, 0, "parsed_strings"), numbers = vp_json_get(&g.r.json, 0, "parsed_numbers"), i, node;
    static char wanted[TEXT_CAPACITY];
    vp_score_mmmu_answer a;
    (void)o;
    if (!ROW((vp_score_mmmu_parse(g.s.prediction, hold.scratch, g.room, &a)) == VP_OK)) return;
    ROW((a.strings.count) == (g.r.json.nodes[strings].count));
    for (i = 0; i < a.strings.count && i < g.r.json.nodes[strings].count; i++)
        ROW(!strcmp(a.strings.texts[i], row_text(&g.r, vp_json_at(&g.r.json, strings, i), wanted)));
    ROW((a.number_count) == (g.r.json.nodes[numbers].count));
    for (i = 0; i < a.number_count && i < g.r.json.nodes[numbers].count; i++) {
        double number = 0;
        node = vp_json_at(&g.r.json, numbers, i);
        if (vp_json_equals(&g.r.json, node, "nan")) ROW(isnan(a.numbers[i]));
        else if (vp_json_equals(&g.r.json, node, "inf")) ROW(isinf(a.numbers[i]) && a.numbers[i] > 0);
        else if (vp_json_equals(&g.r.json, node, "-inf")) ROW(isinf(a.numbers[i]) && a.numbers[i] < 0);
        else ROW(vp_json_to_double(&g.r.json, node, &number) == VP_OK && a.numbers[i] == number);
    }
}
static void check_official(const vp_score_outcome *o) { ROW(o->option_index == -1 && !o->is_unparsed); }

/* rules without a score: text in, index or list out */
static void check_select(void) {
    if (!rows_open(&g.r, "scores/select_option.jsonl")) { check_skip("select_option", "golden file not found"); return; }
    while (rows_next(&g.r)) {
        uint32_t distances = vp_json_get(&g.r.json, 0, "distances");
        int32_t index = -1;
        read_sample();
        ROW((vp_score_select_option(g.s.prediction, g.s.options, g.s.option_count, hold.scratch, g.room, &index)) == VP_OK);
        ROW((index) == ((int64_t)row_number(&g.r, "selected_index")));
        ROW((g.r.json.nodes[distances].count) == (g.s.option_count));
        for (size_t i = 0; i < g.s.option_count; i++) {
            size_t distance = 0;
            double wanted = -1;
            ROW((vp_json_to_double(&g.r.json, vp_json_at(&g.r.json, distances, (uint32_t)i), &wanted)) == VP_OK);
            ROW((vp_score_option_distance(g.s.prediction, g.s.options[i], hold.scratch, g.room, &distance)) == VP_OK);
            ROW((double)distance == wanted);
        }
        seen.count++;
    }
    check_file("scores/select_option.jsonl", 150);
}
static vp_result clean_frequent(const char *text, char *out, size_t capacity, size_t *needed) {
    return vp_score_clean_frequent(text, hold.scratch, vp_score_scratch_bytes(strlen(text), 1), out, capacity, needed);
}

static void check_metrics(void) {
    vp_score_metric metric = VP_SCORE_METRIC_COUNT;
    check_case("every metric is found by its own name and its other names");
    for (int i = 0; i < VP_SCORE_METRIC_COUNT; i++) {
        const vp_score_metric_info *info = vp_score_metric_of((vp_score_metric)i);
        if (!CHECK(info != NULL)) continue;
        CHECK_INT(vp_score_metric_find(info->name, &metric), VP_OK);
        CHECK_INT(metric, i);
    }
    CHECK_INT(vp_score_metric_find("ansl_em", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_ANLS);
    CHECK_INT(vp_score_metric_find("vqa_score", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_VQA_SEED);
    check_case("an invalid name is not found");
    CHECK_INT(vp_score_metric_find("", &metric), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_score_metric_find("ansl ansl_em", &metric), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_score_metric_find("score", &metric), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_score_metric_find(" ", &metric), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_score_metric_find(NULL, &metric), VP_ERR_RANGE);
    CHECK(vp_score_metric_of(VP_SCORE_METRIC_COUNT) == NULL);
    check_case("the metric of a data set");
    CHECK_INT(vp_score_metric_for_dataset("science-qa-img", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_MC);
    CHECK_INT(vp_score_metric_for_dataset("coco_caption", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_CAPTION_JACCARD);
    CHECK_INT(vp_score_metric_for_dataset("mmmu", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_MMMU);
    CHECK_INT(vp_score_metric_for_dataset("mmmu2", &metric), VP_OK);
    CHECK_INT(metric, VP_SCORE_VQA_SEED);
    CHECK_INT(vp_score_metric_for_dataset(NULL, &metric), VP_ERR_RANGE);
}

/* cases without golden rows */
static void check_edges(void) {
    static const char *const two[] = {"Cat", " cat "}, *const none[] = {""}, *const sigma[] = {"\xCE\xB1\xCF\x82"},
        *const late[] = {"\xCE\xB1\xCF\x83\xCE\xB1", "\xCE\xB1\xCF\x83\xCE\xB1", "x"};
    static char small[32], lines[40000];
    vp_score_sample s = vp_score_sample_default();
    vp_score_outcome o;
    int32_t index = 7;
    size_t distance = 7;
    double score = 7;
    check_case("the VQA v2 evaluator lower-cases last: a capital sigma after a deleted hyphen is not final");
    CHECK_INT(vp_score_vqa_normalise("\xCE\xB1\xCE\xA3-\xCE\xB1 -", small, sizeof small, NULL), VP_OK);
    CHECK_TEXT(small, "\xCE\xB1\xCF\x82\xCE\xB1");
    CHECK_INT(vp_score_vqa_normalise_official("\xCE\xB1\xCE\xA3-\xCE\xB1 -", small, sizeof small, NULL), VP_OK);
    CHECK_TEXT(small, "\xCE\xB1\xCF\x83\xCE\xB1");
    CHECK_INT(vp_score_vqa_official("\xCE\xB1\xCE\xA3-\xCE\xB1 -", late, 3, hold.scratch, sizeof hold.scratch, &score), VP_OK);
    CHECK_NEAR(score, (1.0 / 3 + 1.0 / 3 + 2.0 / 3) / 3, 1e-12);
    score = 7;
    check_case("a missing score has a reason; it is not an error and not a number");
    s.prediction = "x";
    CHECK_INT(vp_score_compute(VP_SCORE_EM, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(isnan(o.score) && o.reason);
    s.references = two; /* an empty list is known: nothing matches, if the rule defines it */
    CHECK_INT(vp_score_compute(VP_SCORE_EM, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(o.score == 0 && !o.reason);
    CHECK_INT(vp_score_compute(VP_SCORE_RELAXED, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(isnan(o.score) && o.reason);
    s.options = two;
    s.option_count = 2;
    s.answer_index = 0;
    CHECK_INT(vp_score_compute(VP_SCORE_MC, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(isnan(o.score) && o.reason && o.option_index == -1);
    s.prediction = "B";
    CHECK_INT(vp_score_compute(VP_SCORE_MC, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(o.score == 0 && o.option_index == 1);
    s.answer_index = -1;
    CHECK_INT(vp_score_compute(VP_SCORE_MC, VP_SCORE_CLEAN_LAST, &s, hold.scratch, sizeof hold.scratch, &o), VP_OK);
    CHECK(isnan(o.score) && o.reason && o.option_index == 1);
    check_case("lists that are NULL but have a count");
    {
        vp_score_sample lost = s;
        const vp_score_outcome before = o;
        lost.references = lost.options = lost.option_names = NULL;
        lost.reference_count = lost.option_count = lost.option_name_count = 0;
        for (int i = 0; i < 3; i++) {
            *(i == 0 ? &lost.reference_count : i == 1 ? &lost.option_count : &lost.option_name_count) = 1;
            CHECK_INT(vp_score_compute(VP_SCORE_EM, VP_SCORE_CLEAN_LAST, &lost, hold.scratch, sizeof hold.scratch, &o), VP_ERR_RANGE);
            lost.reference_count = lost.option_count = lost.option_name_count = 0;
        }
        CHECK(!memcmp(&before, &o, sizeof o));
    }
    check_case("errors of the choice rules do not modify the index");
    CHECK_INT(vp_score_select_option("dog", two, 2, hold.scratch, sizeof hold.scratch, &index), VP_ERR_MISMATCH);
    CHECK_INT(vp_score_select_option("dog", two, 0, hold.scratch, sizeof hold.scratch, &index), VP_ERR_MISMATCH);
    CHECK_INT(vp_score_mmmu_choice("dog", two, 2, hold.scratch, sizeof hold.scratch, &index), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_score_select_option(NULL, two, 2, hold.scratch, sizeof hold.scratch, &index), VP_ERR_RANGE);
    CHECK_INT(index, 7);
    check_case("inputs without a score in the reference return VP_ERR_MISMATCH");
    CHECK_INT(vp_score_anls("", none, 1, hold.scratch, sizeof hold.scratch, &score), VP_ERR_MISMATCH);
    CHECK_INT(vp_score_vqa_official("x", none, 0, hold.scratch, sizeof hold.scratch, &score), VP_ERR_MISMATCH);
    CHECK_INT(vp_score_relaxed("x", none, 0, hold.scratch, sizeof hold.scratch, &score), VP_ERR_MISMATCH);
    CHECK_NEAR(score, 7, 0);
    check_case("a scratch that is too small is VP_ERR_CAPACITY");
    CHECK_INT(vp_score_anls("elephant in a room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_vqa_official("elephant in a room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_em("elephant in a very large room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_relaxed("elephant in a room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_a_okvqa("elephant in a very large room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_caption_jaccard("elephant in a room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_mmmu_open("elephant in a room", two, 2, small, sizeof small, &score), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_option_distance("elephant", "room", small, sizeof small, &distance), VP_ERR_CAPACITY);
    CHECK_INT(vp_score_select_option("elephant", sigma, 1, small, sizeof small, &index), VP_ERR_CAPACITY);
    CHECK_NEAR(score, 7, 0);
    CHECK_INT(distance, 7);
    check_case("sizes that do not fit in memory are SIZE_MAX, not small numbers");
    CHECK(vp_score_scratch_bytes(SIZE_MAX / 8, 1) == SIZE_MAX && vp_score_scratch_bytes(1, SIZE_MAX / 8) == SIZE_MAX);
    check_case("many lines are fast: the most frequent of 20000, and the first of several equally frequent ones");
    for (int i = 0; i < 20000; i++) { lines[2 * i] = (char)('a' + i % 26); lines[2 * i + 1] = '\n'; }
    lines[39999] = 0;
    CHECK_INT(clean_frequent(lines, small, sizeof small, NULL), VP_OK);
    CHECK_TEXT(small, "a");
    check_case("numbers are rounded by the exact value of the double");
    vp_score_mmmu_answer a;
    CHECK_INT(vp_score_mmmu_parse("is 2.675 0.125 1e22 -0.005 5e-324 1.7976931348623157e308", hold.scratch, sizeof hold.scratch, &a), VP_OK);
    CHECK(a.number_count >= 5 && a.numbers[a.number_count - 1] == 1.7976931348623157e308 && a.numbers[a.number_count - 2] == 1e22);
}

int main(void) {
    check_texts("scores/prediction_cleaning.jsonl", "cleaned", vp_score_clean, 178);
    check_texts("scores/vqa_normalise.jsonl", "processed", vp_score_vqa_normalise, 244);
    check_texts("scores/prediction_cleaning.jsonl", "cleaned_vqa_eval", clean_frequent, 178);
    check_vqa_seed();
    check_rows("vqa_official", "vqa_official", VP_SCORE_CLEAN_NONE, "score", check_official, 230);
    check_rows("em", "em", VP_SCORE_CLEAN_LAST, "score", check_em_other, 197);
    check_rows("anls", "anls", VP_SCORE_CLEAN_NONE, "score", check_each_anls, 199);
    check_rows("relaxed_correctness", "relaxed_correctness", VP_SCORE_CLEAN_NONE, "score", check_each, 219);
    check_rows("a_okvqa_score", "a_okvqa_score", VP_SCORE_CLEAN_NONE, "score", NULL, 160);
    check_rows("caption_jaccard", "caption_jaccard", VP_SCORE_CLEAN_NONE, "score", NULL, 117);
    check_rows("caption_jaccard", "caption_jaccard", VP_SCORE_CLEAN_LAST, "score_compute_accuracy", NULL, 117);
    check_rows("mc", "mc", VP_SCORE_CLEAN_LAST, "score", check_index, 227);
    check_rows("mc_ai2d", "mc_ai2d", VP_SCORE_CLEAN_FREQUENT, "score_mc", check_index, 167);
    check_rows("seed_bench", "seed_bench", VP_SCORE_CLEAN_FREQUENT, "score", check_index, 185);
    check_rows("real_world_qa", "real_world_qa", VP_SCORE_CLEAN_NONE, "score", check_real_world, 203);
    check_rows("mmmu_multiple_choice", "mmmu_multiple_choice", VP_SCORE_CLEAN_NONE, "score", check_choice, 230);
    check_rows("mmmu_multiple_choice", "mmmu", VP_SCORE_CLEAN_NONE, "score", check_choice, 230);
    check_rows("mmmu_open", "mmmu_open", VP_SCORE_CLEAN_NONE, "score", check_parsed, 227);
    check_rows("mmmu_open", "mmmu", VP_SCORE_CLEAN_NONE, "score", check_parsed, 227);
    check_rows("end_to_end", "vqa_seed", VP_SCORE_CLEAN_LAST, "score", check_cleaned, 160);
    RUN_TESTS(check_select, check_metrics, check_edges, check_rules, check_errors);
    return check_done("test_score");
}
