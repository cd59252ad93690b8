/* test_prompt.c: records of the nine data sets against the reference's texts and ids (golden prompts), each rule and each rejection by hand. */
#include "vlmprof_tokenizer.h"
#include "vlmprof_prompt.h"
#include "support/check.h"

enum { TEXTS = 32, IDS = 4096 };

/* a golden row: the record and the expected prompt */
typedef struct row { vp_json json; vp_json_node nodes[20000]; char room[1 << 16]; size_t used; } row;
static row r;

static const char *text_at(uint32_t node) {
    size_t bytes = 0;
    char *out = r.room + r.used;
    if (vp_json_text(&r.json, node, out, sizeof r.room - r.used, &bytes) != VP_OK) return NULL;
    r.used += bytes + 1;
    return out;
}
static const char *member(const char *key) { return text_at(vp_json_get(&r.json, 0, key)); }
static int64_t whole(const char *key) {
    int64_t value = -1;
    return vp_json_to_int(&r.json, vp_json_get(&r.json, 0, key), &value) == VP_OK ? value : -1;
}
static int is_true(const char *key) { return r.nodes[vp_json_get(&r.json, 0, key)].type == VP_JSON_TRUE; }
static size_t list(const char *key, const char **texts) {
    uint32_t array = vp_json_get(&r.json, 0, key), i;
    if (array == VP_JSON_NONE) return 0;
    for (i = 0; i < r.nodes[array].count && i < TEXTS; i++) texts[i] = text_at(vp_json_at(&r.json, array, i));
    return i;
}

static void check_ids(const vp_tokenizer *t, const char *text) {
    static int32_t ids[IDS];
    uint32_t array = vp_json_get(&r.json, 0, "ids"), i;
    size_t count = 0;
    CHECK_INT(vp_tokenizer_encode(t, text, strlen(text), ids, IDS, &count), VP_OK);
    CHECK_INT(count, r.nodes[array].count);
    CHECK_INT(count, whole("text_tokens"));
    for (i = 0; i < count && i < r.nodes[array].count; i++) {
        int64_t want = -1;
        CHECK_INT(vp_json_to_int(&r.json, vp_json_at(&r.json, array, i), &want), VP_OK);
        CHECK_INT(ids[i], want);
    }
}

static void check_row(const vp_tokenizer *t) {
    const char *questions[TEXTS], *options[TEXTS], *messages[TEXTS], *want;
    char got[8192];
    vp_prompt_info info;
    vp_error error;
    size_t needed = 0, message_count;
    r.used = 0;
    vp_prompt p = {.dataset = vp_prompt_dataset_find(member("dataset"))};
    if (!CHECK(p.dataset != NULL)) return;
    p.questions = questions;
    p.question_count = list("questions", questions);
    if (!p.question_count && (questions[0] = member("question")) != NULL) p.question_count = 1;
    p.option_count = list("options", options);
    p.options = vp_json_get(&r.json, 0, "options") == VP_JSON_NONE ? NULL : options;
    p.hint = member("hint");
    p.question_type = member("question_type");
    if (whole("seed") >= 0) p.rng_seed = (uint32_t)(whole("seed") + whole("index"));
    if (!CHECK_INT(vp_prompt_build(&p, got, sizeof got, &needed, &info, &error), VP_OK)) return;
    want = member("prompt_text");
    CHECK_TEXT(got, want);
    CHECK_INT(needed, strlen(want));
    CHECK_TEXT(info.style, member("style"));
    CHECK_INT(info.has_image, is_true("has_image"));
    CHECK_INT(info.bos_prepended, is_true("bos_prepended"));
    CHECK_INT(info.has_subsegments, is_true("has_subsegments"));
    CHECK_INT(info.template_index, whole("template_index"));
    message_count = list("messages", messages);
    CHECK_INT(info.has_subsegments, message_count > 1);
    if (t) check_ids(t, got);
    /* the style is enough if only one data set has it */
    if (!vp_prompt_dataset_of_style(info.style)) return;
    p.style = info.style;
    p.dataset = vp_prompt_dataset_of_style(info.style);
    CHECK_INT(vp_prompt_build(&p, got, sizeof got, NULL, NULL, NULL), VP_OK);
    CHECK_TEXT(got, want);
}

static vp_tokenizer *real_tokenizer(void) {
    vp_tokenizer *t = NULL;
    size_t bytes = 0;
    char *json = check_golden("tokenizer/tokenizer.json") ? check_read(check_golden("tokenizer/tokenizer.json"), &bytes) : NULL;
    if (!json) {
        check_skip("ids of the golden prompts", "no ../shared/goldens/tokenizer/tokenizer.json");
        return NULL;
    }
    check_case("the real tokenizer loads");
    CHECK_INT(vp_tokenizer_load(json, bytes, &t, NULL), VP_OK);
    free(json);
    return t;
}
static void test_goldens(void) {
    vp_tokenizer *t = real_tokenizer();
    char *text = check_read(check_golden("prompts/prompts.jsonl"), NULL), *line = text, *end;
    int rows = 0;
    check_case("golden prompts: texts, ids, flags");
    if (!CHECK(text != NULL)) return;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1, rows++) {
        CHECK_INT(vp_json_parse(line, (size_t)(end - line), r.nodes, 20000, &r.json, NULL, NULL), VP_OK);
        check_row(t);
    }
    CHECK_INT(rows, 60);
    free(text);
    vp_tokenizer_free(t);
}

/* ------------------------------------------------------------------------------------------------------------ by hand */
static char out[1024];
static vp_prompt_info info;
static vp_error error;

static vp_result build(const char *dataset, const char *style, const char *question, const char *const *options, size_t option_count, const char *type) {
    vp_prompt p = {0};
    memset(&info, 0, sizeof info);
    memset(&error, 0, sizeof error);
    p.dataset = vp_prompt_dataset_find(dataset);
    p.style = style;
    p.questions = &question;
    p.question_count = question != NULL;
    p.options = options;
    p.option_count = option_count;
    p.question_type = type;
    return vp_prompt_build(&p, out, sizeof out, NULL, &info, &error);
}
#define BUILDS(want, ...) (CHECK_INT(build(__VA_ARGS__), VP_OK), CHECK_TEXT(out, want))

static void test_rules(void) {
    static const char *const two[2] = {"x", "y"};
    static const char *const links[3] = {"<img='a'> and more", "before <img='b'>", "<img=''>"};
    static const char *const broken[3] = {"<img='a\n'>", "<img=\"a\">", "<img='a' >"};
    static const char *many[27];
    for (int i = 0; i < 27; i++) many[i] = "o";
    check_case("no data set");
    BUILDS(" User: Q? Assistant:", NULL, NULL, "Q?", NULL, 0, NULL);
    CHECK(!info.style && info.has_image && info.template_index == -1);
    BUILDS(" User: own: Q? Assistant:", NULL, "own", "Q?", NULL, 0, NULL);
    BUILDS(" User: own: Assistant:", NULL, "own", "", NULL, 0, NULL);
    BUILDS(" User: Q\nA: x\nB: y\n Assistant:", NULL, NULL, "Q", two, 2, NULL);
    BUILDS(" User: own: \nA: x\nB: y\n Assistant:", NULL, "own", "", two, 2, NULL);
    BUILDS(" User: own: Q\n\n Assistant:", NULL, "own", "Q", two, 0, NULL);
    CHECK_INT(build(NULL, NULL, "Q", many, 26, NULL), VP_OK);
    CHECK(strstr(out, "\nZ: o\n Assistant:") && !info.options_dropped);
    CHECK_INT(build(NULL, "own", "Q", many, 26, NULL), VP_OK);
    CHECK(strstr(out, "\nG: o\n Assistant:") && info.options_dropped == 19);
    check_case("data sets and options");
    CHECK_INT(build("coco_2014_vqa", NULL, "Q", two, 2, NULL), VP_OK); /* its prompt class does not read options */
    CHECK_TEXT(out, " User: vqa2: Q Assistant:");
    BUILDS(" User: vqa2: Q Assistant:", "mmmu", NULL, "Q", two, 2, "open");
    BUILDS(" User: a_okvqa_mc: Q\nA: x\nB: y\n Assistant:", "mmmu", NULL, "Q", two, 2, NULL);
    BUILDS(" User: vqa2: Q Assistant:", "mmmu", "vqa2", "Q", two, 2, NULL);
    BUILDS(" User: vqa2: Q Assistant:", "mmmu", NULL, "Q", NULL, 0, NULL);
    BUILDS(" User: own: Q\nA: x\n Assistant:", "science_qa_img", "own", "Q", two, 1, NULL);
    check_case("mmmu: two image links, so no image");
    CHECK_INT(build("mmmu", NULL, "Q", links, 3, NULL), VP_OK);
    CHECK(!info.has_image && !info.bos_prepended);
    CHECK_INT(build("mmmu", NULL, "Q", links, 2, NULL), VP_OK);
    CHECK(info.has_image && info.bos_prepended);
    CHECK_INT(build("mmmu", NULL, "Q", broken, 3, NULL), VP_OK);
    CHECK(info.has_image && info.bos_prepended);
    CHECK_INT(build("mmmu", NULL, "Q", links, 3, "open"), VP_OK);
    CHECK(info.has_image);
}

static void test_refusals(void) {
    static const char *const two[2] = {"x", NULL};
    static const char *many[27];
    const char *questions[2] = {"a", "b"};
    size_t needed = 77;
    for (int i = 0; i < 27; i++) many[i] = "o";
    check_case("records with missing members");
    CHECK_INT(build("coco_2014_vqa", NULL, NULL, NULL, 0, NULL), VP_ERR_MISMATCH);
    CHECK_TEXT(error.where, "question");
    CHECK_INT(build("tally_qa", NULL, NULL, NULL, 0, NULL), VP_ERR_MISMATCH);
    CHECK_INT(build(NULL, "vqa2", NULL, NULL, 0, NULL), VP_ERR_MISMATCH);
    CHECK_INT(build("coco_caption", NULL, NULL, NULL, 0, NULL), VP_OK);
    CHECK_INT(build("science_qa_img", NULL, "Q", NULL, 0, NULL), VP_ERR_MISMATCH);
    CHECK_TEXT(error.where, "options");
    CHECK_INT(build("mmmu", NULL, "Q", NULL, 0, "multiple-choice"), VP_ERR_MISMATCH);
    CHECK_INT(build(NULL, NULL, "Q", many, 27, NULL), VP_ERR_RANGE);
    CHECK_INT(build(NULL, NULL, "Q", two, 2, NULL), VP_ERR_RANGE);
    vp_prompt p = {.questions = questions, .question_count = 2, .dataset = vp_prompt_dataset_find("text_vqa")};
    CHECK_INT(vp_prompt_build(&p, out, sizeof out, NULL, NULL, &error), VP_ERR_MISMATCH);
    CHECK_TEXT(error.where, "questions");
    p.dataset = vp_prompt_dataset_find("coco_2014_vqa_multi");
    CHECK_INT(vp_prompt_build(&p, out, sizeof out, NULL, &info, NULL), VP_OK);
    CHECK_TEXT(out, " User: vqa2: a Assistant: User: vqa2: b Assistant:");
    CHECK(info.has_subsegments);
    CHECK_INT(vp_prompt_build(NULL, out, sizeof out, NULL, NULL, NULL), VP_ERR_RANGE);
    check_case("buffer capacity");
    memset(out, 'z', sizeof out);
    CHECK_INT(vp_prompt_build(&p, NULL, 0, &needed, NULL, NULL), VP_ERR_CAPACITY);
    CHECK_INT(needed, 50);
    CHECK_INT(vp_prompt_build(&p, out, 50, &needed, NULL, NULL), VP_ERR_CAPACITY);
    CHECK_INT(out[0], 'z');
    CHECK_INT(vp_prompt_build(&p, out, 51, &needed, NULL, NULL), VP_OK);
    CHECK(out[50] == 0 && out[51] == 'z');
}

static void test_datasets(void) {
    const vp_prompt_dataset *d;
    int32_t count = 0;
    check_case("the table of data sets");
    for (; (d = vp_prompt_dataset_at(count)) != NULL; count++) {
        CHECK(vp_prompt_dataset_find(d->name) == d);
        CHECK(d->style && d->max_new_tokens >= 16 && d->max_new_tokens <= 64);
    }
    CHECK_INT(count, 11);
    CHECK(!vp_prompt_dataset_at(-1) && !vp_prompt_dataset_find("vqa") && !vp_prompt_dataset_find(NULL));
    CHECK(!vp_prompt_dataset_of_style("vqa2") && !vp_prompt_dataset_of_style("a_okvqa_mc") && !vp_prompt_dataset_of_style(NULL));
    CHECK_TEXT(vp_prompt_dataset_of_style("science_qa")->name, "science_qa_img");
    CHECK_TEXT(vp_prompt_dataset_of_style("coco_captioning")->name, "coco_caption");
    CHECK_INT(vp_prompt_dataset_find("doc_qa")->max_new_tokens, 64);
    CHECK_INT(vp_prompt_dataset_find("mmmu")->max_new_tokens, 32);
}

int main(void) {
    RUN_TESTS(test_goldens, test_rules, test_refusals, test_datasets);
    return check_done("test_prompt");
}
