/* read_parquet.c: rows of the Parquet files on the Hugging Face Hub, and of Arrow files, as lmms-eval reads them. Sets
 * are recognized by their columns. */
#include "formats/picture_header.h"
#include "base/sha256.h"
#include "formats/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has_column(const struct table *table, const char *name) {
    for (size_t i = 0; i < table_column_count(table); i++)
        if (!strcmp(table_column_name(table, i), name)) return 1;
    return 0;
}
/* Columns that only this set has, separated by spaces. The first row that matches is used. */
static const struct { const char *columns, *task; } SIGNATURES[] = {
    {"question ucsf_document_id answers", "doc_qa"},
    {"question operation/reasoning answers", "info_vqa"},
    {"question flickr_original_url", "text_vqa"},
    {"question question_tokens image_classes", "text_vqa"},
    {"question multiple_choice_answer answers", "coco_2014_vqa"},
    {"question_id question question_type answer_type answers", "okvqa"},
    {"pid question decoded_image", "math_vista"},
    {"question choice_a choice_b data_type", "seed_bench"},
    {"question image_source category answer", "pope"},
    {"question choices hint lecture", "science_qa_img"},
    {"question A B answer L2-category", "mmbench"},
    {"question A B answer category comment", "mmbench"},
    {"question l2_category answer image", "mmstar"},
    {"question question_type dataset answer", "ocrbench"},
    {"question image_1 question_type options", "mmmu"},
    {"question image_1 options", "mmmu_pro"},
    {"question type answer image", "chart_qa"},
    {"coco_url file_name answer", "coco_caption"},
    {"question_id question category answer image", "mme"},
    {"question options answer image", "ai2d"},
    {"options subject answer image", "mmmu_pro"},
};
static const struct task *task_of_name(const char *name) {
    for (size_t i = 0; task_at(i); i++) if (!strcmp(task_at(i)->name, name)) return task_at(i);
    return NULL;
}
const struct task *column_task(const struct table *table) {
    for (size_t i = 0; i < sizeof SIGNATURES / sizeof *SIGNATURES; i++) {
        char words[128], *word, *rest;
        int fits = 1;
        snprintf(words, sizeof words, "%s", SIGNATURES[i].columns);
        for (word = strtok_r(words, " ", &rest); word && fits; word = strtok_r(NULL, " ", &rest))
            fits = has_column(table, word);
        if (fits) return task_of_name(SIGNATURES[i].task);
    }
    /* four common columns are ambiguous: RealWorldQA has no others except a path */
    if (has_column(table, "image") && has_column(table, "question") && has_column(table, "answer")
        && table_column_count(table) == 3u + (unsigned)has_column(table, "image_path"))
        return task_of_name("real_world_qa");
    return NULL;
}

/* Reads options from a list, or from a text with a Python list. */
static void read_options(const vp_json *json, const char *key, struct example *example) {
    struct text_list list = {NULL, 0};
    uint32_t node = vp_json_get(json, 0, key);
    char *text = node_text(json, node);
    if (text) {
        if (!python_list(text, &list)) example_fail(example, "its \"%s\" are not a Python list of texts", key);
    } else read_texts(json, node, &list);
    if (list.count > OPTIONS_MAX) example_fail(example, "it has more than %d options", OPTIONS_MAX);
    for (size_t i = 0; i < list.count && i < OPTIONS_MAX; i++)
        example->options[i] = copy_text(list.items[i], strlen(list.items[i]));
    text_list_free(&list);
    free(text);
}
/* The letter of the option with this index. */
static void set_letter(struct example *example, const char *index) {
    char *end, letter[2] = {0, 0};
    long number = index ? strtol(index, &end, 10) : -1;
    if (!index || *end || end == index || number < 0 || number >= OPTIONS_MAX) {
        example_fail(example, "its answer \"%.40s\" is not the index of an option", index ? index : "null");
        return;
    }
    letter[0] = (char)('A' + number);
    free(example->answer);
    example->answer = copy_text(letter, 1);
}
static void more_text(const vp_json *json, const char *column, const char *key, struct example *example) {
    char *text = member_text(json, 0, column);
    if (text) example_more_text(example, key, text);
    free(text);
}
/* MMBench writes missing texts as "nan". */
static char *unless_nan(char *text) {
    if (!text || (strcmp(text, "nan") && *text)) return text;
    free(text);
    return NULL;
}
static void read_vqa(const vp_json *json, struct example *example, const char *key) {
    uint32_t answers = vp_json_get(json, 0, key);
    read_texts(json, answers, &example->answers);
    example->has_answers = 1;
    if (!node_is(json, answers, VP_JSON_ARRAY) && !node_is(json, answers, VP_JSON_STRING)) example->metric = NULL;
}
static void read_mathvista(const vp_json *json, struct example *example) {
    uint32_t choices = vp_json_get(json, 0, "choices");
    double precision = node_number(json, vp_json_get(json, 0, "precision"));
    example->hides_options = 1;
    read_options(json, "choices", example);
    example_more_node(example, "choices", json,
                      node_is(json, choices, VP_JSON_ARRAY) && json->nodes[choices].count ? choices : VP_JSON_NONE);
    example->question_type = member_text(json, 0, "question_type");
    example->answer_type = member_text(json, 0, "answer_type");
    example->unit = member_text(json, 0, "unit");
    if (precision >= 0 && precision < 100) example->precision = (int64_t)precision;
    example_more_text(example, "question_type", example->question_type);
    example_more_text(example, "answer_type", example->answer_type);
    example_more_node(example, "precision", json, vp_json_get(json, 0, "precision"));
}
static void read_mmmu(const vp_json *json, struct example *example) {
    char *type = member_text(json, 0, "question_type");
    int is_open = type && !strcmp(type, "open");
    read_options(json, "options", example);
    for (int i = 0; is_open && i < OPTIONS_MAX; i++) {
        free(example->options[i]);
        example->options[i] = NULL;
    }
    example->shows_options = 1;
    if (type) example_more_text(example, "question_type", type);
    free(type);
}
static void read_mmmu_pictures(const vp_json *json, struct example *example) {
    for (int i = 1; i <= 7; i++) {
        char key[16];
        snprintf(key, sizeof key, "image_%d", i);
        add_blobs(example, json, vp_json_get(json, 0, key));
    }
}
static void read_letters(const vp_json *json, struct example *example) {
    for (int i = 0; i < OPTIONS_MAX; i++) {
        char key[2] = {(char)('A' + i), 0};
        example->options[i] = unless_nan(member_text(json, 0, key));
    }
}
static void read_seed(const vp_json *json, struct example *example) {
    for (int i = 0; i < 4; i++) {
        char key[16];
        snprintf(key, sizeof key, "choice_%c", 'a' + i);
        example->options[i] = member_text(json, 0, key);
    }
}
/* Reads what is special to each set. */
static void read_set(const vp_json *json, const char *task, struct example *example) {
    if (!strcmp(task, "doc_qa") || !strcmp(task, "info_vqa") || !strcmp(task, "text_vqa") || !strcmp(task, "okvqa")
        || !strcmp(task, "coco_2014_vqa") || !strcmp(task, "st_qa"))
        read_vqa(json, example, "answers");
    else if (!strcmp(task, "ocrbench") || !strcmp(task, "chart_qa") || !strcmp(task, "real_world_qa")
             || !strcmp(task, "coco_caption"))
        read_vqa(json, example, "answer");
    else example->answer = member_text(json, 0, "answer");
    if (!strcmp(task, "chart_qa")) more_text(json, "type", "category", example);
    else if (!strcmp(task, "ocrbench")) {
        more_text(json, "question_type", "category", example);
        more_text(json, "dataset", "dataset", example);
    } else if (!strcmp(task, "ai2d") || !strcmp(task, "science_qa_img")) {
        char *index = example->answer;
        example->answer = NULL;
        read_options(json, !strcmp(task, "ai2d") ? "options" : "choices", example);
        set_letter(example, index);
        free(index);
        if (!strcmp(task, "science_qa_img")) example->hint = unless_nan(member_text(json, 0, "hint"));
    } else if (!strcmp(task, "mmbench")) {
        read_letters(json, example);
        example->hint = unless_nan(member_text(json, 0, "hint"));
        more_text(json, "category", "category", example);
    } else if (!strcmp(task, "mmstar")) {
        more_text(json, "category", "category", example);
        more_text(json, "l2_category", "l2_category", example);
    } else if (!strcmp(task, "mme") || !strcmp(task, "pope")) more_text(json, "category", "category", example);
    else if (!strcmp(task, "seed_bench")) {
        read_seed(json, example);
        more_text(json, "data_type", "category", example);
    } else if (!strcmp(task, "math_vista")) read_mathvista(json, example);
    else if (!strcmp(task, "mmmu") || !strcmp(task, "mmmu_pro")) read_mmmu(json, example);
}
void read_column_row(const struct table *table, const struct row *row, size_t index, struct example *example) {
    static const char *const ids[] = {"questionId", "question_id", "pid", "id", "index"};
    const vp_json *json = &row->parsed.json;
    const char *task = table->task ? table->task->name : "";
    size_t id = 0;
    while (id < 5 && !has_value(json, 0, ids[id])) id++;
    set_id(example, json, id < 5 ? ids[id] : "", index);
    example->question = member_text(json, 0, "question");
    set_default_metric(table, example, ORIGIN_LMMS);
    if (!*task) {
        read_vqa(json, example, has_value(json, 0, "answers") ? "answers" : "answer");
        if (has_value(json, 0, "options")) read_options(json, "options", example);
        else if (has_value(json, 0, "choices")) read_options(json, "choices", example);
        settle_choice(json, example);
    } else read_set(json, task, example);
    if (!strcmp(task, "mmmu") || (!strcmp(task, "mmmu_pro") && vp_json_get(json, 0, "image_1") != VP_JSON_NONE))
        read_mmmu_pictures(json, example);
    else {
        const char *column = !strcmp(task, "math_vista") ? "decoded_image" : "image";
        if (vp_json_get(json, 0, column) == VP_JSON_NONE) column = "images";
        add_blobs(example, json, vp_json_get(json, 0, column));
    }
    if (!example->question && *task && strcmp(task, "mmmu_pro") && strcmp(task, "coco_caption"))
        example_fail(example, "its question is null");
    else if (example->question || table_form(table) != FORM_NONE) example_ask(example, table_form(table));
}

/* ---- tables of unknown sets */
static void put_blob(vp_json_writer *writer, const struct row *row, size_t index, const vp_json *json, uint32_t path) {
    const struct blob *blob = &row->blobs[index];
    const char *format = picture_format(blob->data, blob->bytes);
    int32_t width = 0, height = 0;
    char hash[65];
    sha256_text(blob->data, blob->bytes, hash);
    PUT(writer, KEY_OBJECT(NULL), KEY("sha256", hash), KEY("bytes", (int64_t)blob->bytes));
    if (format && picture_size(blob->data, blob->bytes, &width, &height)) {
        PUT(writer, KEY("width", width), KEY("height", height), KEY("format", format));
    }
    if (path != VP_JSON_NONE) {
        vp_json_key(writer, "path");
        json_node(writer, json, path);
    }
    vp_json_end_object(writer);
}
static int put_blobs(vp_json_writer *writer, const vp_json *json, uint32_t node, const void *context) {
    const struct row *row = context;
    uint32_t bytes = node_is(json, node, VP_JSON_OBJECT) ? vp_json_get(json, node, "bytes") : VP_JSON_NONE;
    int64_t blob = node_is(json, node, VP_JSON_OBJECT)
                       ? node_int(json, node_is(json, bytes, VP_JSON_OBJECT) ? bytes : node, "blob", -1) : -1;
    if (blob < 0 || (size_t)blob >= row->blob_count) return 0;
    put_blob(writer, row, (size_t)blob, json, vp_json_get(json, node, "path"));
    return 1;
}
void put_columns(vp_json_writer *writer, const struct row *row) {
    json_compact_members(writer, &row->parsed.json, 0, put_blobs, row);
}
