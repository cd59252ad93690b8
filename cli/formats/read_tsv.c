/* read_tsv.c: rows of VLMEvalKit's tables, as its image_mcq.py, image_vqa.py, image_yorn.py read them. */
#include "formats/table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Splits the prompt at "<image N>", like VLMEvalKit for MMMU. Without a marker, the prompt is after the pictures. */
static void cut_at_markers(struct example *example) {
    static const char mark[] = "<image ";
    const char *at = example->prompt, *found;
    if (!strstr(at, mark)) return;
    while ((found = strstr(at, mark)) != NULL) {
        const char *digit = found + strlen(mark);
        size_t number = isdigit((unsigned char)*digit) ? (size_t)(*digit - '0') : 0;
        if (!number || digit[1] != '>' || number > example->picture_count) {
            example_fail(example, "its text has \"%.12s\", but it has %zu picture%s", found, example->picture_count,
                         plural_s((int64_t)example->picture_count));
            return;
        }
        example_add_text(example, at, (size_t)(found - at));
        example_add_place(example, number - 1);
        at = digit + 2;
    }
    example_add_text(example, at, strlen(at));
}
static int is_circular(const char *stem) {
    return names_part(stem, "mmbench") || names_part(stem, "ccbench") || names_part(stem, "circular") ||
           names_part(stem, "mmcr");
}
static void more_text(const vp_json *json, const char *key, struct example *example) {
    char *text = member_text(json, 0, key);
    if (text) example_more_text(example, key, text);
    free(text);
}
/* Reads the references; a Python list becomes several. */
static void read_answers(struct example *example) {
    example->has_answers = 1;
    if (!example->answer) {
        example->metric = NULL;
        return;
    }
    if (!python_texts(example->answer, &example->answers))
        example_fail(example, "its answer begins like a list but is not a Python list of texts");
    free(example->answer);
    example->answer = NULL;
}
static int has_list_of_answers(const char *metric) {
    static const char *const names[] = {"anls_", "vqa_", "vqav2_", "textvqa_", "relaxed_", "ocrbench_", "captions",
                                        "realworldqa_"};
    for (size_t i = 0; metric && i < sizeof names / sizeof *names; i++)
        if (!strncmp(metric, names[i], strlen(names[i]))) return 1;
    return 0;
}
static void read_mathvista(const vp_json *json, struct example *example) {
    struct text_list choices = {NULL, 0};
    char *text = member_text(json, 0, "choices");
    int is_list = text && python_list(text, &choices);
    example->hides_options = 1;
    for (size_t i = 0; i < choices.count && i < OPTIONS_MAX; i++)
        example->options[i] = copy_text(choices.items[i], strlen(choices.items[i]));
    if (is_list && choices.count) example_more_list(example, "choices", &choices);
    else example_more_text(example, "choices", NULL);
    text_list_free(&choices);
    free(text);
    example->question_type = member_text(json, 0, "question_type");
    example->answer_type = member_text(json, 0, "answer_type");
    more_text(json, "question_type", example);
    more_text(json, "answer_type", example);
    more_text(json, "answer_option", example);
}
static void read_pictures(const vp_json *json, struct example *example) {
    struct text_list paths = {NULL, 0};
    if (vp_json_get(json, 0, "image") != VP_JSON_NONE) add_blobs(example, json, vp_json_get(json, 0, "image"));
    else if (vp_json_get(json, 0, "image_path") != VP_JSON_NONE) {
        read_texts(json, vp_json_get(json, 0, "image_path"), &paths);
        example_more_list(example, "image_paths", &paths);
        for (size_t i = 0; i < paths.count; i++) add_path(example, copy_text(paths.items[i], strlen(paths.items[i])));
        example->hides_pictures = 1;
        text_list_free(&paths);
    }
}
void read_tsv_row(const struct table *table, const struct row *row, size_t index, struct example *example) {
    const vp_json *json = &row->parsed.json;
    const char *task = table->task ? table->task->name : "";
    const int has_letters = vp_json_get(json, 0, "A") != VP_JSON_NONE && vp_json_get(json, 0, "B") != VP_JSON_NONE;
    set_id(example, json, "index", index);
    example->question = member_text(json, 0, "question");
    example->hint = member_text(json, 0, "hint");
    example->answer = member_text(json, 0, "answer");
    example->group = member_text(json, 0, "g_index");
    read_pictures(json, example);
    for (int i = 0; i < OPTIONS_MAX; i++) {
        char letter[2] = {(char)('A' + i), 0};
        example->options[i] = member_text(json, 0, letter);
    }
    set_default_metric(table, example, ORIGIN_VLMEVALKIT);
    if (!table->task && has_letters) example->metric = "mcq_vlmevalkit";
    if (example->metric && !strncmp(example->metric, "mcq_", 4) && is_circular(table->stem) &&
        table->origin != ORIGIN_LMMS)
        example->metric = "mcq_circular_vlmevalkit";
    if (!strcmp(task, "mmmu_pro") && names_part(table->variant, "cot")) example->metric = "mmmu_pro_cot_vlmevalkit";
    if (!strcmp(task, "math_vista")) read_mathvista(json, example);
    if (has_list_of_answers(example->metric)) read_answers(example);
    if (!example->answer && !example->has_answers) example->metric = NULL;
    more_text(json, "category", example);
    more_text(json, "l2-category", example);
    more_text(json, "split", example);
    if (!example->question && !asks_itself(table)) {
        example_fail(example, "it has no question");
        return;
    }
    if (!table->task && has_letters && table->origin == ORIGIN_VLMEVALKIT) example_ask(example, FORM_CHOICE);
    else example_ask(example, table_form(table));
    if (!strncmp(task, "mmmu", 4) && table->origin == ORIGIN_VLMEVALKIT) cut_at_markers(example);
}
