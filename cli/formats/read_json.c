/* read_json.c: records of the official JSON files (DocVQA, InfographicVQA, TextVQA, ChartQA, VQA v2, OK-VQA, POPE,
 * OCRBench, MathVista, TallyQA) and of our own lines. */
#include "formats/table.h"

#include "base/files.h"
#include "base/options.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has(const vp_json *json, const char *key) { return vp_json_get(json, 0, key) != VP_JSON_NONE; }
static int is_list(const vp_json *json, const char *key) {
    return node_is(json, vp_json_get(json, 0, key), VP_JSON_ARRAY);
}

static void set_question(const struct table *table, const vp_json *json, const char *key, struct example *example) {
    example->question = member_text(json, 0, key);
    example->shows_raw = 1;
    if (!example->question) example_fail(example, "\"%s\" must be a string", key);
    else example_ask(example, table_form(table));
}
static void set_answers(const vp_json *json, const char *key, struct example *example) {
    uint32_t node = vp_json_get(json, 0, key);
    example->has_answers = 1;
    read_texts(json, node, &example->answers);
    if (!has_value(json, 0, key)) example->metric = NULL;
}
/* Sets FOLDER/NAME as the path of a picture; without a name the record fails. */
static void set_path(const vp_json *json, const char *folder, const char *key, const char *ending,
                     struct example *example) {
    struct text_buffer path = {NULL, 0, 0};
    char *name = member_text(json, 0, key);
    if (!name) {
        example_fail(example, "\"%s\" must be a string", key);
        return;
    }
    text_add_string(&path, folder);
    text_add_string(&path, name);
    text_add_string(&path, ending);
    free(name);
    add_path(example, path.data);
}
static int is_there(const struct table *table, const char *name) {
    char *path = name[0] == '/' ? copy_text(name, strlen(name))
                                : join_path(table->image_dir ? table->image_dir : table->folder, name);
    int found = vp_path_kind(path) == VP_PATH_FILE;
    free(path);
    return found;
}
/* Finds a COCO picture by its name or, if it is not there, in the folder of its split: val2014/COCO_val2014_..jpg. */
static void add_coco(const struct table *table, const char *name, struct example *example) {
    const char *part = strstr(name, "COCO_"), *end = part ? strchr(part + 5, '_') : NULL;
    struct text_buffer path = {NULL, 0, 0};
    if (end && !is_there(table, name)) {
        text_add(&path, part + 5, (size_t)(end - part - 5));
        text_add_string(&path, "/");
    }
    text_add_string(&path, name);
    add_path(example, path.data);
}
static void read_textvqa(struct table *table, const vp_json *json, struct example *example) {
    char *set_name = member_text(json, 0, "set_name");
    (void)table;
    set_path(json, set_name && !strcmp(set_name, "test") ? "test_images/" : "train_images/", "image_id", ".jpg",
             example);
    free(set_name);
}
static void read_chartqa(struct table *table, const vp_json *json, struct example *example) {
    (void)json;
    example_more_text(example, "category", table->stem);
}
static void read_tallyqa(struct table *table, const vp_json *json, struct example *example) {
    (void)table;
    example->answer = member_text(json, 0, "answer");
}
static void read_pope(struct table *table, const vp_json *json, struct example *example) {
    static const char mark[] = "coco_pope_";
    const char *category = strstr(table->stem, mark);
    char *image = member_text(json, 0, "image");
    example->answer = member_text(json, 0, "label");
    if (!example->answer) example->metric = NULL;
    if (image) add_coco(table, image, example);
    else example_fail(example, "\"image\" must be a string");
    if (category) example_more_text(example, "category", category + strlen(mark));
    free(image);
}
static void read_ocrbench(struct table *table, const vp_json *json, struct example *example) {
    char *dataset = member_text(json, 0, "dataset_name"), *type = member_text(json, 0, "type");
    (void)table;
    example_more_text(example, "dataset", dataset);
    example_more_text(example, "category", type);
    FREE_ALL(dataset, type);
}
static void read_mathvista(struct table *table, const vp_json *json, struct example *example) {
    struct text_list choices = {NULL, 0};
    uint32_t node = vp_json_get(json, 0, "choices");
    example->question_type = member_text(json, 0, "question_type");
    example->answer_type = member_text(json, 0, "answer_type");
    example->unit = member_text(json, 0, "unit");
    example->answer = member_text(json, 0, "answer");
    example->precision = node_int(json, 0, "precision", INT64_MIN);
    read_texts(json, node, &choices);
    for (size_t i = 0; i < choices.count && i < OPTIONS_MAX; i++)
        example->options[i] = copy_text(choices.items[i], strlen(choices.items[i]));
    text_list_free(&choices);
    example->hides_options = 1;
    set_question(table, json, "question", example);
    if (example->question && !table->is_origin_given) example_ask(example, FORM_MATHVISTA_OFFICIAL);
    if (!example->answer) example->metric = NULL;
    set_path(json, "", "image", "", example);
    example_more_node(example, "choices", json, node);
    example_more_node(example, "precision", json, vp_json_get(json, 0, "precision"));
    example_more_text(example, "question_type", example->question_type);
    example_more_text(example, "answer_type", example->answer_type);
}

/* ---- VQA v2 and OK-VQA */
static const struct note_key *find_note(const struct table *table, int64_t id) {
    size_t low = 0, high = table->note_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->note_keys[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low < table->note_count && table->note_keys[low].id == id ? &table->note_keys[low] : NULL;
}
/* Reads the texts of an annotation under `key`. Returns 0 if none has it. */
static int read_note(const vp_json *json, const char *key, struct text_list *list) {
    uint32_t answers = vp_json_get(json, 0, "answers");
    for (uint32_t i = answers + 1; node_is(json, answers, VP_JSON_ARRAY) && i < json->nodes[answers].end;
         i = json->nodes[i].end) {
        char *text = node_is(json, i, VP_JSON_OBJECT) ? member_text(json, i, key) : NULL;
        if (text) text_list_take(list, text);
    }
    return list->count > 0;
}
static void read_vqa(struct table *table, const vp_json *json, struct example *example) {
    struct text_list raw = {NULL, 0};
    int64_t id = node_int(json, 0, "question_id", -1), image = node_int(json, 0, "image_id", -1);
    const struct note_key *key = find_note(table, id);
    char name[64], subtype[24] = "";
    example->has_answers = 1;
    if (key) {
        vp_error error = {VP_OK, -1, "", ""};
        row_clear(&table->note);
        if (json_rows_read(&table->notes, key->record, &table->note, &error) != VP_OK
            || row_parse(&table->note, &error) != VP_OK)
            example_fail(example, "its annotation cannot be read: %.200s", error.text);
        else {
            read_note(&table->note.parsed.json, "answer", &example->answers);
            if (read_note(&table->note.parsed.json, "raw_answer", &raw))
                example_more_list(example, "raw_answers", &raw);
        }
    } else example->metric = NULL;
    text_list_free(&raw);
    if (table->json.subtype.bytes >= 2)
        snprintf(subtype, sizeof subtype, "%.*s", (int)table->json.subtype.bytes - 2, table->json.subtype.data + 1);
    else {
        const char *at = strstr(table->stem, "mscoco_"), *end = at ? strstr(at, "_questions") : NULL;
        if (end) snprintf(subtype, sizeof subtype, "%.*s", (int)(end - at - 7), at + 7);
    }
    if (!strcmp(subtype, "test-dev2015")) snprintf(subtype, sizeof subtype, "test2015");
    if (image < 0 || !subtype[0]) {
        example_fail(example, "its picture has no name: \"image_id\" or \"data_subtype\" is missing");
        return;
    }
    snprintf(name, sizeof name, "COCO_%s_%012lld.jpg", subtype, (long long)image);
    add_coco(table, name, example);
}

/* ---- our own lines */
/* Returns 1 for a misspelled "image" or "images", such as "Image" or "imgae". */
static int is_near_image(const char *key) {
    char lower[16] = "";
    for (size_t i = 0; key[i] && i + 1 < sizeof lower; i++) lower[i] = (char)tolower((unsigned char)key[i]);
    return edit_distance(lower, "image") <= 1 || edit_distance(lower, "images") <= 1;
}
int has_other_image_key(const vp_json *json, char *text, size_t capacity) {
    static const char *const others = "picture img image_path image_url image_file img_path photo pictures imgs "
                                      "image_paths image_urls";
    int found = 0;
    for (uint32_t key = 1; key < json->nodes[0].end && !found; key = json->nodes[key + 1].end) {
        char *name = node_text(json, key);
        found = name && strcmp(name, "image") != 0 && strcmp(name, "images") != 0 && has_value(json, 0, name)
                && (has_word(others, name) || is_near_image(name));
        if (found)
            snprintf(text, capacity, "it has no \"image\", but has \"%.40s\": rename that key to \"image\"", name);
        free(name);
    }
    return found;
}
/* Reads "content": texts and positions of images, as model/prompt.c does in a sweep. */
static void read_content(const vp_json *json, struct example *example) {
    const uint32_t list = vp_json_get(json, 0, "content");
    size_t found = 0;
    for (uint32_t i = list + 1; node_is(json, list, VP_JSON_ARRAY) && i < json->nodes[list].end;
         i = json->nodes[i].end) {
        char *text = node_is(json, i, VP_JSON_OBJECT) ? member_text(json, i, "text") : NULL;
        if (text) example_add_text(example, text, strlen(text));
        else example_add_place(example, found++);
        free(text);
    }
    if (found != example->picture_count)
        example_fail(example, "its \"content\" has positions for %zu images, but it has %zu", found,
                     example->picture_count);
}
static void read_own(struct table *table, const vp_json *json, struct example *example) {
    uint32_t options = vp_json_get(json, 0, "options");
    char *image = member_text(json, 0, "image");
    struct text_list list = {NULL, 0};
    char reason[160];
    example->question = member_text(json, 0, "question");
    if (!example->question && !has_value(json, 0, "content"))
        example_fail(example, "\"question\" must be a string; accepted keys: question, image, images, content, "
                              "answers, options, id, dataset, style, hint");
    example->hint = member_text(json, 0, "hint");
    if (options == VP_JSON_NONE) options = vp_json_get(json, 0, "choices");
    if (node_is(json, options, VP_JSON_ARRAY)) read_texts(json, options, &list);
    for (size_t i = 0; i < list.count && i < OPTIONS_MAX; i++)
        example->options[i] = copy_text(list.items[i], strlen(list.items[i]));
    text_list_free(&list);
    if (has_value(json, 0, "image") && (!image || has_value(json, 0, "images")))
        example_fail(example, image ? "it has \"image\" and \"images\": put all into \"images\""
                                    : "\"image\" must be a string");
    if (image && !strncmp(image, "data:", 5)) example_fail(example, "%s", IMAGE_IS_INLINE);
    if (image) add_path(example, image);
    else if (is_list(json, "images")) {
        read_texts(json, vp_json_get(json, 0, "images"), &list);
        for (size_t i = 0; i < list.count; i++) add_path(example, copy_text(list.items[i], strlen(list.items[i])));
        text_list_free(&list);
    } else if (!has_value(json, 0, "images") && has_other_image_key(json, reason, sizeof reason))
        example_fail(example, "%s", reason);
    set_answers(json, has_value(json, 0, "answers") ? "answers" : "answer", example);
    if (!has_value(json, 0, "answers")) settle_choice(json, example);
    if (has_value(json, 0, "content")) read_content(json, example);
    else if (example->question) example_ask(example, table_form(table));
}

/* ---- all formats */
/* A record with all of `keys` has this format; the first matching row counts. The members with its id, question,
 * answers and picture, below a folder. NULL if there is none, or if `read` reads it, which is called last. */
static const struct record_form {
    enum data_format format;
    const char *keys, *id, *question, *answers, *folder, *picture;
    void (*read)(struct table *table, const vp_json *json, struct example *example);
} FORMS[] = {
    {DATA_CHARTQA, "imgname query", "", "query", "label", "png/", "imgname", read_chartqa},
    {DATA_POPE, "question_id text label", "question_id", "text", NULL, "", NULL, read_pope},
    {DATA_LLAVA_QUESTIONS, "question_id text", NULL, NULL, NULL, NULL, NULL, NULL}, /* read_message.c reads it */
    {DATA_MATHVISTA, "pid question question_type", "pid", NULL, NULL, "", NULL, read_mathvista},
    {DATA_TALLYQA, "issimple question", "question_id", "question", NULL, "", "image", read_tallyqa},
    {DATA_OCRBENCH, "image_path dataset_name question", "id", "question", "answers", "OCRBench_Images/", "image_path",
     read_ocrbench},
    {DATA_INFOVQA, "image_local_name question", "questionId", "question", "answers", "", "image_local_name", NULL},
    {DATA_DOCVQA, "questionId question image", "questionId", "question", "answers", "", "image", NULL},
    {DATA_TEXTVQA, "image_id question set_name", "question_id", "question", "answers", "", NULL, read_textvqa},
    {DATA_TEXTVQA, "image_id question question_tokens", NULL, NULL, NULL, NULL, NULL, NULL},
    {DATA_VLMPROF, "question", NULL, NULL, NULL, NULL, NULL, read_own},
    {DATA_VLMPROF, "content", NULL, NULL, NULL, NULL, NULL, NULL},
    {DATA_VLMPROF, "questions", NULL, NULL, NULL, NULL, NULL, NULL},
    {DATA_VLMPROF, "id", NULL, NULL, NULL, NULL, NULL, NULL},
    {DATA_VQA, NULL, "question_id", "question", NULL, "", NULL, read_vqa}, /* recognized by the file's shape */
};
enum { FORM_COUNT = sizeof FORMS / sizeof *FORMS };
static int has_all(const vp_json *json, const char *keys) {
    char key[32];
    for (; *keys; keys += strcspn(keys, " "), keys += *keys == ' ') {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(keys, " "), keys);
        if (!has(json, key)) return 0;
    }
    return 1;
}
enum data_format json_format(const vp_json *json, enum json_shape shape, const char *key) {
    if (shape == SHAPE_MEMBER && !strcmp(key, "questions")) return DATA_VQA;
    if (is_list(json, "messages") || node_is(json, vp_json_get(json, 0, "body"), VP_JSON_OBJECT)) return DATA_OPENAI;
    if (is_list(json, "conversations")) return DATA_LLAVA;
    if (is_list(json, "turns")) return DATA_AIPERF;
    for (size_t i = 0; i < FORM_COUNT; i++)
        if (FORMS[i].keys && has_all(json, FORMS[i].keys)) return FORMS[i].format;
    if (has(json, "prompt") && !has(json, "dataset")) return DATA_VLLM;
    if (has(json, "text") || has(json, "texts") || has(json, "image") || has(json, "images")) return DATA_AIPERF;
    return DATA_VLMPROF;
}
void read_json_row(struct table *table, struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    const struct record_form *form = FORMS;
    while (form->format != table->format) form++;
    set_default_metric(table, example, ORIGIN_NONE);
    set_id(example, json, form->id ? form->id : has_value(json, 0, "id") ? "id" : "question_id", index);
    if (form->question) set_question(table, json, form->question, example);
    if (form->answers) set_answers(json, form->answers, example);
    if (form->picture) set_path(json, form->folder, form->picture, "", example);
    if (form->read) form->read(table, json, example);
}
