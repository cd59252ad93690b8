/* test_dataset.c: data sets of a sweep: VQA v2, folders of images, defaults of known ones, shares that are kept.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"
#include "support/scan.h"

/* ----------------------------------------------------------------------------------------------------------- data sets */
#define DATA "sweep --synthetic tiny --output_dir %F/out --tier_list low --top_k_list 1 --num_runs_per_sample 1 "
static const char QUESTIONS[] =
    "{\"info\": {\"version\": \"2.0\"}, \"data_subtype\": \"val2014\", \"questions\": [\n"
    "{\"image_id\": 42, \"question\": \"What is it?\", \"question_id\": 42001}, {\"image_id\": 42, \"question\": \"\\u00dfo?\", \"question_id\": 42000},\n"
    "{\"image_id\": 7, \"question\": \"Where?\", \"question_id\": 7000}], \"license\": []}\n";
static const char ANNOTATIONS[] =
    "{\"annotations\": [{\"question_id\": 7000, \"answer_type\": \"other\", \"image_id\": 7, \"answers\": [{\"answer\": \"there\", \"answer_id\": 1}]},"
    "{\"question_id\": 42000, \"answer_type\": \"yes/no\", \"answers\": []}, {\"question_id\": 1, \"answers\": 3}, {\"question_id\": 42001, \"answer_type\": "
    "\"yes/no\", \"answers\": [{\"answer\": \"a \\\"bus\\\"\", \"raw_answer\": \"raw\"}, {\"answer\": \"bus\", \"raw_answer\": \"raw\"}]}]}";
#define VQA_FILE "vqa/v2_OpenEnded_mscoco_val2014_questions.json"
#define NOTES_FILE "vqa/v2_mscoco_val2014_annotations.json"

static void make_vqa(void) {
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-200x150.png"), &bytes);
    mkdir(in_folder("vqa"), 0777);
    mkdir(in_folder("vqa/val2014"), 0777);
    write_text(in_folder(VQA_FILE), QUESTIONS);
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    if (CHECK(image != NULL)) write_file(in_folder("vqa/val2014/COCO_val2014_000000000042.jpg"), image, bytes);
    free(image);
}
static int load_out(document *d, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "%s/out/%s", folder, name);
    d->nodes = NULL;
    d->text = NULL;
    return CHECK(load(d, path));
}
static uint32_t row_at(const document *d, uint32_t index) { return vp_json_at(&d->json, vp_json_get(&d->json, 0, "per_sample_results"), index); }
static void check_row(const document *d, uint32_t index, int64_t sample_id, const char *status, const char *prompt) {
    CHECK_INT(number(d, row_at(d, index), "sample_id"), sample_id);
    CHECK(is_text(d, row_at(d, index), "status", status));
    CHECK(is_text(d, row_at(d, index), "prompt", prompt));
}
static void check_metadata(const document *d, uint32_t index, const char *key, const char *json) {
    uint32_t node = member(d, member(d, row_at(d, index), "metadata"), key);
    int quotes = node != VP_JSON_NONE && d->nodes[node].type == VP_JSON_STRING;
    if (!CHECK(node != VP_JSON_NONE)) return;
    check_note(d->nodes[node].bytes == strlen(json) && !memcmp(d->json.text + d->nodes[node].start, json, strlen(json)), __FILE__, __LINE__,
               "metadata.%s is %.*s, expected %s", key, (int)d->nodes[node].bytes + quotes, d->json.text + d->nodes[node].start, json);
}

static void test_vqa(void) {
    document d;
    check_case("VQA v2: official names, answers, a missing image is a row");
    make_vqa();
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --max_new_tokens 2"), 1);
    if (load_out(&d, "v2-OpenEnded-mscoco-val2014-questions_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK_INT(number(&d, 0, "num_samples"), 3);
        CHECK_INT(number(&d, 0, "max_new_tokens"), 2);
        check_row(&d, 0, 0, "ok", " User: vqa2: What is it? Assistant:");
        check_row(&d, 1, 1, "ok", " User: vqa2: \xc3\x9fo? Assistant:");
        check_row(&d, 2, 2, "failed", " User: vqa2: Where? Assistant:");
        check_metadata(&d, 0, "answers", "[\"a \\\"bus\\\"\", \"bus\"]");
        check_metadata(&d, 0, "id", "42001");
        check_metadata(&d, 0, "image_id", "42");
        check_metadata(&d, 1, "answer_type", "yes/no");
        check_metadata(&d, 2, "answers", "[\"there\"]");
        CHECK(isfinite(number(&d, row_at(&d, 0), "accuracy")) && is_null(&d, row_at(&d, 1), "accuracy"));
        CHECK(!is_null(&d, row_at(&d, 2), "reason"));
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("VQA v2: OK-VQA's files have the same form; --annotations, --image_dir");
    rename(in_folder(NOTES_FILE), in_folder("vqa/notes.json"));
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --dataset_name okvqa --annotations %F/vqa/notes.json --image_dir %F/vqa/val2014 --ignore_eos"), 1);
    if (load_out(&d, "okvqa_imgsizetier-low_crops1_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: okvqa: What is it? Assistant:");
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 32);
        check_metadata(&d, 0, "answers", "[\"raw\", \"raw\"]");
        check_metadata(&d, 2, "answers", "[\"there\"]");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("VQA v2: no annotations, no accuracy");
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --dataset_name test --max_new_tokens 2"), 1);
    if (load_out(&d, "test_imgsizetier-low_crops1_topk1_blocks4.json")) CHECK(is_null(&d, row_at(&d, 0), "accuracy"));
    unload(&d);
    remove_folder(in_folder("out"));
}

/* the edited copy of a text must be refused as the questions' or the annotations' file */
static void refused_edit(int line, const char *file, const char *text, const char *from, const char *to, const char *words) {
    char edited[2000];
    const char *at = strstr(text, from);
    if (!CHECK(at != NULL)) return;
    snprintf(edited, sizeof edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(in_folder(file), edited);
    refused_at(__FILE__, line, DATA "--data %F/" VQA_FILE, NULL, 3, words);
    write_text(in_folder(file), text);
}
static void test_vqa_refusals(void) {
#define BAD_QUESTIONS(from, to, words) refused_edit(__LINE__, VQA_FILE, QUESTIONS, from, to, words)
#define BAD_NOTES(from, to, words) refused_edit(__LINE__, NOTES_FILE, ANNOTATIONS, from, to, words)
    check_case("VQA v2: refusals");
    make_vqa();
    for (size_t cut = sizeof QUESTIONS - 3; cut > 100; cut -= 5) { /* from inside the second question on */
        write_file(in_folder(VQA_FILE), QUESTIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json")) break;
    }
    for (size_t cut = sizeof ANNOTATIONS - 2; cut > 11; cut -= 11) {
        write_text(in_folder(VQA_FILE), QUESTIONS);
        write_file(in_folder(NOTES_FILE), ANNOTATIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "annotations.json")) break;
    }
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    BAD_QUESTIONS("\"question_id\": 42000", "\"question_id\": \"42000\"", "whole \"question_id\"");
    BAD_QUESTIONS("\"image_id\": 7,", "\"image_id\": -7,", "whole \"image_id\"");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": 1", "a question needs");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": \"\\u0000\"", "\"question\" must be");
    BAD_QUESTIONS("\"val2014\"", "\"../x\"", "data_subtype");
    BAD_QUESTIONS("}], \"lic", "} \"lic", "a comma or the end of the array is missing");
    BAD_QUESTIONS("[]}", "[]} x", "behind the object");
    BAD_QUESTIONS("\"license\": []", "\"license\": [1,]", "questions.json");
    BAD_QUESTIONS("\"license\":", "\"license\"", "a colon is missing");
    BAD_QUESTIONS("\"license\":", "7:", "want a key");
    BAD_NOTES("\"question_id\": 1", "\"question_id\": 1.5", "whole \"question_id\"");
    BAD_NOTES("\"answers\": []", "\"answers\": 5", "\"answers\" must be an array");
    BAD_NOTES("{\"answer\": \"bus\"", "{\"answer\": 1", "needs a text");
    BAD_NOTES("\"annotations\":", "\"notes\":", "has no \"annotations\"");
    write_text(in_folder(NOTES_FILE), "{\"annotations\": [{\"question_id\": 3, \"answers\": []}]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "belongs to other ones");
    write_text(in_folder(VQA_FILE), "{\"data_subtype\": \"val2014\", \"questions\": [ ]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json");
    write_text(in_folder(VQA_FILE), QUESTIONS);
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    REFUSED(DATA "--data %F/" VQA_FILE " --annotations %F/none.json", 3, "none.json");
    REFUSED(DATA "--data %F/" VQA_FILE " -p a", 2, "folder of images");
    REFUSED(DATA "--data %F/" VQA_FILE " --stratify_by colour", 2, "no record of");
    REFUSED(DATA "--data %F/" VQA_FILE " samples/questions.jsonl --annotations %F/x", 2, "one --data file");
    REFUSED(DATA "--data samples/questions.jsonl --annotations %F/" NOTES_FILE, 2, "--annotations");
    CHECK(access(in_folder("out"), F_OK) != 0);
}

static void test_folder_data(void) {
    char path[600];
    document d;
    check_case("a folder of images with one question, beside a file");
    make_vqa();
    snprintf(path, sizeof path, "%s/vqa/val2014/b.PNG", folder);
    write_text(path, "no image");
    snprintf(path, sizeof path, "%s/vqa/val2014/notes.txt", folder);
    write_text(path, "no image");
    CHECK_INT(cli(DATA "--data %F/vqa/val2014/ -p 'What?' --style own --max_new_tokens 2"), 1);
    if (load_out(&d, "val2014_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK_INT(number(&d, 0, "num_samples"), 2);
        check_row(&d, 0, 0, "ok", " User: own: What? Assistant:");
        check_row(&d, 1, 1, "failed", " User: own: What? Assistant:");
        check_metadata(&d, 1, "id", "b.PNG");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    CHECK_INT(cli(DATA "--data %F/vqa/val2014 --dataset_name coco_caption --max_new_tokens 2 --seed 66"), 1);
    if (load_out(&d, "coco-caption_imgsizetier-low_crops1_topk1_blocks4.json")) { /* templates of goldens/prompts: seed 66, indices 0 and 1 */
        check_row(&d, 0, 0, "ok", " User: coco_captioning: Write a brief caption describing the image Assistant:");
        check_row(&d, 1, 1, "failed", " User: coco_captioning: Look and this image, and then summarize it in a sentence or two. Assistant:");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    REFUSED(DATA "--data %F/vqa/val2014", 2, "-p TEXT");
    REFUSED(DATA "--data %F/vqa -p a", 3, "no image");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --image_dir %F", 2, "--image_dir");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --stratify_by id", 2, "--stratify_by");
    REFUSED(DATA "--data %F/vqa/val2014 -p a --annotations %F/x", 2, "--annotations");
    REFUSED(DATA "--data samples/questions.jsonl -p a", 2, "-p");
}

static void test_data_defaults(void) {
    document d;
    check_case("several files: each has its name, prompts and answer length");
    write_text(in_folder("text_vqa.jsonl"), "{\"question\": \"a\"}\n\n{\"question\": \"b\", \"style\": \"own\"}\n");
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"mmmu\", \"question\": \"c\", \"options\": [\"<img='1'>\", \"<img='2'>\"], \"image\": \"gone.png\"}\n"
                                         "{\"questions\": [\"d\", \"e\"], \"style\": \"tally_qa\"}\n{\"dataset\": \"unknown\", \"question\": \"f\"}\n");
    CHECK_INT(cli(DATA "--data %F/text_vqa.jsonl %F/mixed.jsonl --ignore_eos"), 0);
    if (load_out(&d, "text-vqa_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: text_vqa: a Assistant:");
        check_row(&d, 1, 2, "ok", " User: own: b Assistant:");
        CHECK_INT(number(&d, 0, "max_new_tokens"), 64);
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 64);
        CHECK_INT(number(&d, row_at(&d, 0), "total_sequence_length"), number(&d, row_at(&d, 0), "input_text_tokens") + 1);
    }
    unload(&d);
    if (load_out(&d, "mixed_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: a_okvqa_mc: c\nA: <img='1'>\nB: <img='2'>\n Assistant:");
        CHECK_INT(number(&d, row_at(&d, 0), "total_sequence_length"), number(&d, row_at(&d, 0), "input_text_tokens")); /* neither image nor BOS */
        check_row(&d, 1, 1, "ok", " User: tally_qa: d Assistant: User: tally_qa: e Assistant:");
        check_row(&d, 2, 2, "ok", " User: f Assistant:");
        CHECK_INT(number(&d, 0, "max_new_tokens"), 16);
        CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 16);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("records that agree set the answer length; --image_dir for JSONL");
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"doc_qa\", \"question\": \"c\", \"image\": \"val2014/COCO_val2014_000000000042.jpg\"}\n");
    CHECK_INT(cli(DATA "--data %F/mixed.jsonl --image_dir %F/vqa --ignore_eos"), 0);
    if (load_out(&d, "mixed_imgsizetier-low_crops1_topk1_blocks4.json")) CHECK_INT(number(&d, row_at(&d, 0), "output_tokens"), 64);
    unload(&d);
    remove_folder(in_folder("out"));
    write_text(in_folder("mixed.jsonl"), "{\"question\": \"c\"}\n{\"question\": \"c\", \"hint\": \"h\", \"options\": [\"o\"]}\n");
    CHECK_INT(cli(DATA "--data %F/mixed.jsonl --dataset_name science_qa_img --max_new_tokens 1"), 0);
    if (load_out(&d, "science-qa-img_imgsizetier-low_crops0_topk1_blocks4.json")) {
        check_row(&d, 0, 0, "ok", " User: science_qa: c Assistant:");
        check_row(&d, 1, 1, "ok", " User: science_qa: h\nh\nA: o\n Assistant:");
    }
    unload(&d);
    remove_folder(in_folder("out"));
    write_text(in_folder("mixed.jsonl"), "{\"dataset\": \"science_qa_img\", \"question\": \"c\"}\n");
    REFUSED(DATA "--data %F/mixed.jsonl", 3, "no options");
}

static void test_stratify(void) {
    char text[4000] = "";
    document d;
    int count = 0;
    check_case("--stratify_by: shares of a field, in JSONL and in annotations");
    for (int i = 0; i < 40; i++) { /* 30 x "a", 9 x 1, 1 without */
        char line[96];
        snprintf(line, sizeof line, "{\"question\": \"q\"%s}\n", i == 17 ? "" : i % 4 ? ", \"kind\": \"a\"" : ", \"kind\": 1");
        strcat(text, line);
    }
    write_text(in_folder("kinds.jsonl"), text);
    CHECK_INT(cli(DATA "--data %F/kinds.jsonl --num_samples 8 --stratify_by kind --max_new_tokens 1"), 0);
    if (load_out(&d, "kinds_imgsizetier-low_crops0_topk1_blocks4.json")) {
        for (uint32_t i = 0; i < 8; i++) count += is_text(&d, member(&d, row_at(&d, i), "metadata"), "kind", "a");
        CHECK_INT(number(&d, 0, "num_samples"), 8);
        CHECK_INT(count, 6); /* of 8: 5.8, 2.0 and 0.2 */
    }
    unload(&d);
    remove_folder(in_folder("out"));
    make_vqa();
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --num_samples 2 --stratify_by answer_type --max_new_tokens 1 --dataset_name s"), 1);
    if (load_out(&d, "s_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK(number(&d, row_at(&d, 0), "sample_id") <= 1); /* one yes/no, one other */
        CHECK_INT(number(&d, row_at(&d, 1), "sample_id"), 2);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by none", 2, "\"none\"");
    write_text(in_folder("kinds.jsonl"), "{\"question\": \"a\", \"kind\": 1}\n{\"question\" \"a\"}\n");
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by kind --num_samples 1", 3, "kinds.jsonl");
}

int main(void) {
    if (!command_begin("dataset")) return 1;
    test_vqa();
    test_vqa_refusals();
    test_folder_data();
    test_data_defaults();
    test_stratify();
    return command_end("test_dataset");
}
