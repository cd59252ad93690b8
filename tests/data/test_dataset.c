/* test_dataset.c: data sets of a sweep: VQA v2, folders of images, defaults of known ones, stratified shares; records read one by one, files that change between
 * plan and measurement, the table of reasons, memory per sample. Includes the source for its static functions, and runs $PROGRAM (default ./vlmprof) from the
 * repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1
#include "cli/data/dataset.c"
#include "base/files.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "support/command.h"
#include "support/scan.h"

static struct model tiny;
/* ---------------------------------------------------------------------- a data set in this process; its messages go to a file */
static int kept_stderr = -1;
static void hush(int on) {
    fflush(stderr);
    if (on) {
        kept_stderr = dup(2);
        if (!freopen(in_folder("stderr"), "w", stderr)) abort();
    } else {
        dup2(kept_stderr, 2);
        close(kept_stderr);
    }
}
static int load_set(const char *words, struct options *o, struct dataset *d) {
    static char room[8][4096];
    static struct data_settings kept[8];
    static int turn;
    static char *argv[ARGUMENTS];
    char line[2048];
    snprintf(line, sizeof line, "vlmprof sweep --synthetic tiny %s", words);
    int argc = split(line, room[turn++ & 7], sizeof room[0], argv);
    memset(o, 0, sizeof *o);
    memset(d, 0, sizeof *d);
    o->command = &command_sweep;
    hush(1);
    int code = options_parse(o, argc, argv);
    d->path = code ? "" : opt(o, "data")->items[0];
    if (!code) kept[turn & 7] = data_settings_of(o);
    if (!code) code = dataset_load(&kept[turn & 7], &tiny, d);
    hush(0);
    return code;
}
static void unload_set(struct options *o, struct dataset *d) {
    dataset_free(d);
    options_free(o);
}
static int take(const struct dataset *d, size_t index, struct sample *a) {
    hush(1);
    int code = dataset_sample(d, &tiny, index, a);
    hush(0);
    return code;
}

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
    check_case("VQA v2: official names and answers; a missing image is a row");
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
    check_case("VQA v2: without annotations, no accuracy");
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --dataset_name test --max_new_tokens 2"), 1);
    if (load_out(&d, "test_imgsizetier-low_crops1_topk1_blocks4.json")) CHECK(is_null(&d, row_at(&d, 0), "accuracy"));
    unload(&d);
    remove_folder(in_folder("out"));
}

/* the edited copy of a text must be rejected as the questions or annotations file */
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
    check_case("VQA v2: rejections");
    make_vqa();
    for (size_t cut = sizeof QUESTIONS - 3; cut > 100; cut -= 5) { /* truncated anywhere from the second question */
        write_file(in_folder(VQA_FILE), QUESTIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json")) break;
    }
    for (size_t cut = sizeof ANNOTATIONS - 2; cut > 11; cut -= 11) {
        write_text(in_folder(VQA_FILE), QUESTIONS);
        write_file(in_folder(NOTES_FILE), ANNOTATIONS, cut);
        if (!REFUSED(DATA "--data %F/" VQA_FILE, 3, "annotations.json")) break;
    }
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    BAD_QUESTIONS("\"question_id\": 42000", "\"question_id\": \"42000\"", "integer");
    BAD_QUESTIONS("\"image_id\": 7,", "\"image_id\": -7,", "integers \"question_id\" and \"image_id\"");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": 1", "a question needs");
    BAD_QUESTIONS("\"question\": \"Where?\"", "\"question\": \"\\u0000\"", "\"question\" must be");
    BAD_QUESTIONS("\"val2014\"", "\"../x\"", "data_subtype");
    BAD_QUESTIONS("}], \"lic", "} \"lic", "a comma or the end of the array is missing");
    BAD_QUESTIONS("[]}", "[]} x", "after the object");
    BAD_QUESTIONS("\"license\": []", "\"license\": [1,]", "questions.json");
    BAD_QUESTIONS("\"license\":", "\"license\"", "a colon is missing");
    BAD_QUESTIONS("\"license\":", "7:", "expected a key");
    BAD_NOTES("\"question_id\": 1", "\"question_id\": 1.5", "integer");
    BAD_NOTES("\"answers\": []", "\"answers\": 5", "\"answers\" must be an array");
    BAD_NOTES("{\"answer\": \"bus\"", "{\"answer\": 1", "needs a string");
    BAD_NOTES("\"annotations\":", "\"notes\":", "has no \"annotations\"");
    write_text(in_folder(NOTES_FILE), "{\"annotations\": [{\"question_id\": 3, \"answers\": []}]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "belongs to other questions");
    write_text(in_folder(VQA_FILE), "{\"data_subtype\": \"val2014\", \"questions\": [ ]}");
    REFUSED(DATA "--data %F/" VQA_FILE, 3, "questions.json");
    write_text(in_folder(VQA_FILE), QUESTIONS);
    write_text(in_folder(NOTES_FILE), ANNOTATIONS);
    REFUSED(DATA "--data %F/" VQA_FILE " --annotations %F/none.json", 3, "none.json");
    REFUSED(DATA "--data %F/" VQA_FILE " -p a", 2, "folder of images");
    REFUSED(DATA "--data %F/" VQA_FILE " --stratify_by colour", 2, "no record of");
    REFUSED(DATA "--data %F/" VQA_FILE " samples/questions.jsonl --annotations %F/x", 2, "a single --data file");
    REFUSED(DATA "--data samples/questions.jsonl --annotations %F/" NOTES_FILE, 2, "--annotations");
    CHECK(access(in_folder("out"), F_OK) != 0);
}

static void test_folder_data(void) {
    char path[600];
    document d;
    check_case("a folder of images with one question, next to a file");
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
    if (load_out(&d, "coco-caption_imgsizetier-low_crops1_topk1_blocks4.json")) { /* templates of goldens/prompts for seed 66, indices 0 and 1 */
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
    check_case("several files: each has its own name, prompts and answer length");
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
    check_case("consistent records set the answer length; --image_dir for JSONL");
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
    check_case("--stratify_by: proportions of a field, in JSONL and in annotations");
    for (int i = 0; i < 40; i++) { /* 30 x "a", 9 x 1, 1 without the field */
        char line[96];
        snprintf(line, sizeof line, "{\"question\": \"q\"%s}\n", i == 17 ? "" : i % 4 ? ", \"kind\": \"a\"" : ", \"kind\": 1");
        strcat(text, line);
    }
    write_text(in_folder("kinds.jsonl"), text);
    CHECK_INT(cli(DATA "--data %F/kinds.jsonl --num_samples 8 --stratify_by kind --max_new_tokens 1"), 0);
    if (load_out(&d, "kinds_imgsizetier-low_crops0_topk1_blocks4.json")) {
        for (uint32_t i = 0; i < 8; i++) count += is_text(&d, member(&d, row_at(&d, i), "metadata"), "kind", "a");
        CHECK_INT(number(&d, 0, "num_samples"), 8);
        CHECK_INT(count, 6); /* shares of 8: 5.8, 2.0 and 0.2 */
    }
    unload(&d);
    remove_folder(in_folder("out"));
    make_vqa();
    CHECK_INT(cli(DATA "--data %F/" VQA_FILE " --num_samples 2 --stratify_by answer_type --max_new_tokens 1 --dataset_name s"), 1);
    if (load_out(&d, "s_imgsizetier-low_crops1_topk1_blocks4.json")) {
        CHECK(number(&d, row_at(&d, 0), "sample_id") <= 1); /* one yes/no question and one other */
        CHECK_INT(number(&d, row_at(&d, 1), "sample_id"), 2);
    }
    unload(&d);
    remove_folder(in_folder("out"));
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by none", 2, "\"none\"");
    check_case("--stratify_by: a field of VQA v2's questions");
    char *questions = malloc(16000);
    size_t used = (size_t)sprintf(questions, "{\"data_subtype\": \"val2014\", \"questions\": [");
    int of_kind[10] = {0};
    struct options o;
    struct dataset set;
    for (int i = 0; i < 60; i++)
        used += (size_t)sprintf(questions + used, "%s{\"image_id\": 1, \"question\": \"A?\", \"question_id\": %d, \"kind\": %d}", i ? ", " : "", i, i * 7 % 10);
    sprintf(questions + used, "]}");
    write_text(in_folder("q60.json"), questions);
    free(questions);
    CHECK_INT(load_set("--data %F/q60.json --num_samples 30 --stratify_by kind", &o, &set), 0);
    CHECK_INT(set.count, 30);
    for (size_t i = 0; i < set.count; i++) of_kind[set.samples[i].id * 7 % 10]++;
    for (int i = 0; i < 10; i++) CHECK_INT(of_kind[i], 3);
    unload_set(&o, &set);
    write_text(in_folder("kinds.jsonl"), "{\"question\": \"a\", \"kind\": 1}\n{\"question\" \"a\"}\n");
    REFUSED(DATA "--data %F/kinds.jsonl --stratify_by kind --num_samples 1", 3, "kinds.jsonl");
}

static int says(const char *file, const char *words) {
    char *text = check_read(in_folder(file), NULL);
    int found = text && strstr(text, words);
    free(text);
    return found;
}

#define ROWS "{\"id\": \"a\", \"question\": \"What is it?\", \"answers\": [\"cat\"]}\n\n{\"id\": \"b\", \"question\": \"And this?\"}\n"
static void test_changed(void) {
    struct options o;
    struct dataset d;
    struct sample a;
    check_case("a record is read when needed, and rejected if it has changed");
    CHECK(sizeof(struct entry) <= 64);
    write_text(in_folder("rows.jsonl"), ROWS);
    CHECK_INT(load_set("--data %F/rows.jsonl", &o, &d), 0);
    CHECK_INT(d.count, 2);
    CHECK_INT(take(&d, 1, &a), 0);
    CHECK_TEXT(a.prompt, " User: And this? Assistant:");
    CHECK_INT(a.id, 2);
    CHECK_INT(a.tokens.count, d.samples[1].text_count);
    sample_free(&a);
    write_text(in_folder("rows.jsonl"), "{\"id\": \"a\", \"question\": \"What is it?\", \"answers\": [\"cat\"]}\n\n{\"id\": \"b\", \"question\": \"And that?\"}\n");
    CHECK_INT(take(&d, 0, &a), 0);
    sample_free(&a);
    CHECK_INT(take(&d, 1, &a), EXIT_INPUT);
    CHECK(!a.record && !a.prompt && !a.tokens.ids);
    CHECK(says("stderr", "rows.jsonl: line 3: the record has changed since the sweep was planned"));
    write_text(in_folder("rows.jsonl"), "{\"id\": \"a\"");
    CHECK_INT(take(&d, 0, &a), EXIT_INPUT);
    CHECK(says("stderr", "rows.jsonl: the file changed while it was being read"));
    unload_set(&o, &d);
}
static void test_changed_notes(void) {
    struct options o;
    struct dataset d;
    struct sample a;
    check_case("VQA v2: a changed annotation is also rejected");
    write_text(in_folder("q.json"), "{\"data_subtype\": \"val2014\", \"questions\": [{\"image_id\": 1, \"question\": \"A?\", \"question_id\": 10}]}");
    write_text(in_folder("a.json"), "{\"annotations\": [{\"question_id\": 10, \"answers\": [{\"answer\": \"yes\"}]}]}");
    CHECK_INT(load_set("--data %F/q.json --annotations %F/a.json", &o, &d), 0);
    CHECK_INT(take(&d, 0, &a), 0);
    CHECK(a.record && strstr(a.record, "\"answers\": [\"yes\"]"));
    CHECK(a.reason && strstr(a.reason, "COCO_val2014_000000000001.jpg: "));
    sample_free(&a);
    write_text(in_folder("a.json"), "{\"annotations\": [{\"question_id\": 10, \"answers\": [{\"answer\": \"nay\"}]}]}");
    CHECK_INT(take(&d, 0, &a), EXIT_INPUT);
    CHECK(says("stderr", "changed since the sweep was planned"));
    unload_set(&o, &d);
}
static void test_reasons(void) {
    char text[64];
    struct dataset d = {0};
    check_case("each reason is stored once, up to a limit");
    d.source.fd = d.notes.fd = -1;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "reason %d", i);
        CHECK_INT(add_reason(&d, text), i < REASONS_MAX - 1 ? i + 1 : REASONS_MAX);
    }
    CHECK_INT(add_reason(&d, "reason 7"), 8);
    CHECK_INT(d.reason_count, REASONS_MAX);
    CHECK(strstr(d.reasons[REASONS_MAX - 1], "look at the file"));
    dataset_free(&d);
}

static void copy_file(const char *from, const char *to) {
    size_t bytes = 0;
    char *data = check_read(from, &bytes);
    if (CHECK(data != NULL)) write_file(to, data, bytes);
    free(data);
}
static void test_vanished(void) {
    static const char *const images[] = {"images/a.jpg", "images/b.jpg", "images/c.jpg"};
    int status = 0;
    document d;
    check_case("an image that disappears or grows while a sweep runs gives a failed row");
    mkdir(in_folder("images"), 0777);
    for (int i = 0; i < 3; i++) copy_file("samples/cat.jpg", in_folder(images[i]));
    write_text(in_folder("rows.jsonl"), "{\"question\": \"A?\", \"image\": \"images/a.jpg\"}\n{\"question\": \"B?\", \"image\": \"images/b.jpg\"}\n"
                             "{\"question\": \"C?\", \"image\": \"images/c.jpg\"}\n");
    pid_t child = start("sweep --synthetic tiny --data %F/rows.jsonl --output_dir %F/out --tier_list low --max_new_tokens 1 --num_runs_per_sample 30", NULL,
                        in_folder("stdout"), 0);
    while (access(in_folder("out/journal.jsonl"), F_OK) && waitpid(child, &status, WNOHANG) == 0) usleep(1000); /* wait until planned; sample 0 takes a while */
    CHECK_INT(unlink(in_folder("images/b.jpg")), 0);
    copy_file("samples/chart.png", in_folder("images/c.jpg"));
    CHECK_INT(finish(child, in_folder("stdout")), EXIT_WORK);
    if (load_out(&d, "rows_imgsizetier-low_crops2_topk2_blocks4.json")) {
        CHECK_INT(number(&d, 0, "num_failed"), 2);
        CHECK_INT(number(&d, 0, "num_ok"), 1);
        CHECK(strstr(d.text, "/images/b.jpg: ") && strstr(d.text, "/images/c.jpg: the image has "));
    }
    unload(&d);
    remove_folder(in_folder("out"));
}
/* ---- what a plan says of data, and what plan and sweep reject alike */
#define PLAN "sweep --plan --synthetic tiny --output_dir %F/o --data "
static void test_plan(void) {
    check_case("--plan: format, samples, images, answers, metric and its reason, a prompt as sent");
    write_text(in_folder("p.jsonl"), "{\"id\": 1, \"question\": \"a\\nb?\", \"options\": [\"red\", \"blue\"], \"answer\": \"B\"}\n"
               "{\"question\": \"c?\", \"image\": \"no.png\"}\n");
    CHECK_INT(cli(PLAN "%F/p.jsonl"), 0);
    CHECK(last.out && strstr(last.out, "data        p: 2 samples of ") && strstr(last.out, "p.jsonl (JSONL), 1 image, at most 16 new tokens\n"));
    CHECK(last.out && strstr(last.out, "            1 sample cannot be used; the first: line 2: ") && strstr(last.out, "/no.png: there is no such file\n"));
    CHECK(last.out && strstr(last.out, "            answers of 1 of 2 samples, 1 each; metric mc (the first record's answer is one of its options)\n"));
    CHECK(last.out && strstr(last.out, "            a prompt (sample 0, 0 images): \" User: a\\nb?\\nA: red\\nB: blue\\n Assistant:\"\n"));
    CHECK_INT(cli(PLAN "%F/p.jsonl --metric em --json"), 0);
    CHECK(last.out && strstr(last.out, "\"format\": \"JSONL\"") && strstr(last.out, "\"num_unusable_images\": 1") && strstr(last.out, "\"num_answered\": 1"));
    CHECK(last.out && strstr(last.out, "\"accuracy_metric\": \"em\"") && strstr(last.out, "\"accuracy_metric_from\": \"of --metric\"") && strstr(last.out, "line 2: "));
    CHECK_INT(cli("sweep --plan --endpoint http://127.0.0.1:1 --endpoint_model m --answer_hint Short. --data samples/questions.jsonl --num_samples 1"), 0);
    CHECK(last.out && strstr(last.out, "1 sample of 13 of samples/questions.jsonl") && strstr(last.out, "1 image): \"<image>What ")
          && strstr(last.out, "?\\nShort.\"\n"));
    int lines = 0;
    for (const char *line = last.out; line && *line; line = next_line(line)) lines++;
    CHECK(lines <= 25);
    write_text(in_folder("p.jsonl"), "{\"question\": \"Pick:\\nA. red\\nB. blue\\n\", \"options\": [\"red\", \"blue\"], "
               "\"hint\": \"h\", \"answer\": \"B\", \"prompt_origin\": \"x\", "
               "\"max_new_tokens\": 5}\n");
    CHECK_INT(cli(PLAN "%F/p.jsonl"), 0); /* a complete prompt: nothing is added */
    CHECK(last.out && strstr(last.out, "\" User: Pick:\\nA. red\\nB. blue\\n Assistant:\"\n") && strstr(last.out, "metric mc (")
          && strstr(last.out, "at most 5 new tokens"));
    EXITS(cli("sweep --plan --endpoint http://127.0.0.1:1 --endpoint_model m --data %F/p.jsonl"), 0, out, "0 images): \"Pick:\\nA. red\\nB. blue\\n\"\n");
    write_text(in_folder("p.jsonl"), "{\"question\": \"a?\", \"answer\": \"b\", \"metric\": \"anls\"}\n");
    EXITS(cli(PLAN "%F/p.jsonl"), 0, out, "metric anls (of the first record's \"metric\")");
    write_text(in_folder("p.jsonl"), "{\"question\": \"a?\", \"metric\": \"mcq_lmms\"}\n");
    EXITS(cli(PLAN "%F/p.jsonl"), 0, err, "\"metric\" mcq_lmms is not one of vlmprof's rules: answers are scored by vqa_seed");
    CHECK(last.out && strstr(last.out, "no answers, so nothing is scored"));
}
static void test_same_rejections(void) {
    static const struct { const char *text, *words; } bad[] = {
        {"[{\"question\": \"a?\"}]", "expected JSONL ({\"question\": .., \"image\": ..} on each line), VQA v2's questions file or a folder of images; "
                                       "python -m vlmprof.data FILE"},
        {"index\tquestion\n1\ta?\n", "expected JSONL"}, {"PAR1....", "expected JSONL"}, {"{\"data\": [{\"question\": \"a?\"}]}", "expected JSONL"},
        {"", "the file is empty"},
        {"\xef\xbb\xbf{\"question\": \"a?\"}\n", "a byte order mark is not allowed"},
        {"{\"annotations\": [{\"question_id\": 1, \"answers\": []}]}", "give the questions file as data, and this one with --annotations"},
        {"\n{\"question\": \"a?\", \"usage\": 1}\n\n{\"question\": \"a?\", \"Imgae\": \"no.jpg\"}\n", "line 4: it has no \"image\", but has \"Imgae\""},
        {"{\"question\": \"a?\", \"img\": \"no.jpg\"}\n", "line 1: it has no \"image\", but has \"img\""},
        {"{\"question\": \"a?\", \"image\": \"data:image/png;base64,iVBO\"}\n", "line 1: its \"image\" is a data URI"},
        {"{\"image\": \"a.png\", \"images\": [\"b.png\"], \"question\": \"q\"}", "it has both \"image\" and \"images\": put all into \"images\""},
        {"{\"quesiton\": \"q\"}", "line 1: it needs \"question\", a string"},
        {"{\"images\": \"b.png\", \"question\": \"q\"}", "\"images\" must be an array of strings"},
        {"{\"images\": [\"b.png\", 3], \"question\": \"q\"}", "\"images\" must be an array of strings"},
        {"{\"images\": [\"b.png\"], \"question\": \"q\", \"content\": [{\"image\": 0}]}", "no \"question\" in the record"},
        {"{\"images\": [\"b.png\", \"c.png\"], \"content\": [{\"text\": \"q\"}, {\"image\": 0}]}", "each image once"},
        {"{\"images\": [\"b.png\", \"c.png\"], \"content\": [{\"image\": 1}, {\"image\": 0}]}", "N from 0 in order"},
        {"{\"question\": \"a?\", \"image\": \"http://x/a.png\"}\n", "line 1: its \"image\" is a URL"},
        {"{\"question\": \"a?\", \"images\": [\"b/../../a.png\"]}\n", "--allow_outside permits it"},
        {"{\"question\": \"a?\", \"answers\": [true]}\n", "line 1: \"answers\" must be a string, a number or a list of these"},
        {"{\"question\": \"a?\", \"answer\": true}\n", "line 1: \"answer\" must be a string"},
        {"{\"question\": \"a?\", \"answers\": [\"yes\", null]}\n", "\"answers\" must be a string"},
        {"{\"question\": \"a?\", \"options\": [\"x\", \"y\"], \"answer\": 7}\n", "line 1: \"answer\" (or \"answer_index\") is not one of the options"},
        {"{\"question\": \"a?\", \"options\": [\"x\", \"y\"], \"answer\": \"(C)\"}\n", "is not one of the options"},
        {"{\"question\": \"a?\", \"options\": \"x or y\", \"answer\": \"x\"}\n", "line 1: \"options\" (or \"choices\") must be a list of strings"},
        {"{\"question\": \"a?\", \"choices\": {\"label\": [\"A\"], \"text\": [\"x\", \"y\"]}, \"answer\": \"A\"}\n", "must be a list of strings"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_case("plan and sweep reject the same: %s", bad[i].words);
        write_text(in_folder("k.jsonl"), bad[i].text);
        REFUSED(PLAN "%F/k.jsonl", 3, bad[i].words);
        REFUSED("sweep --synthetic tiny --output_dir %F/o --data %F/k.jsonl", 3, bad[i].words);
    }
    check_case("options and answers in any form: the second option is right");
    static const char *const answers[] = {
        "\"options\": {\"A\": \"x\", \"B\": \"y\"}, \"answer\": \"B\"",
        "\"choices\": {\"label\": [\"1\", \"2\"], \"text\": [\"x\", \"y\"]}, \"answer\": \"2\"",
        "\"options\": \"[\\\"x\\\", \\\"y\\\"]\", \"answer\": \"B.\"",
        "\"options\": [\"(A) x\", \"(B) y\"], \"answer\": \"(B)\"",
        "\"options\": [1, 2], \"answer\": \"2\"",
        "\"choices\": [\"x\", \"y\"], \"answer\": 1.0",
        "\"options\": [\"x\", \"y\"], \"answer_idx\": \"B\""};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct parsed parsed = {0};
        struct scoring scoring = {0};
        char line[200];
        snprintf(line, sizeof line, "{\"question\": \"a?\", %s}", answers[i]);
        scoring_clear(&scoring);
        CHECK(parse_json(&parsed, line, strlen(line), NULL) == VP_OK && scoring_default_metric(&scoring, &parsed.json) == VP_SCORE_MC);
        check_note(scoring.sample.answer_index == 1, __FILE__, __LINE__, "%s: %d", line, (int)scoring.sample.answer_index);
        scoring_free(&scoring);
        free(parsed.nodes);
        write_text(in_folder("k.jsonl"), line);
        EXITS(cli(PLAN "%F/k.jsonl"), 0, out, "metric mc (");
    }
    check_case("pictures are where their names say: not in the folder itself, and outside only if permitted");
    make_empty(in_folder("pictures"));
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"image\": \"sub/a.png\"}\n{\"question\": \"b?\", \"image\": \"sub/../a.png\"}\n");
    copy_file("tests/golden/images/img-90x90.png", in_folder("pictures/a.png"));
    REFUSED(PLAN "%F/k.jsonl --image_dir %F/pictures", 3, "no sample can be used");
    mkdir(in_folder("pictures/sub"), 0777);
    EXITS(cli(PLAN "%F/k.jsonl --image_dir %F/pictures"), 0, out, "1 sample cannot be used");
    write_text(in_folder("k.jsonl"), "{\"question\": \"b?\", \"image\": \"../a.png\"}\n");
    CHECK_INT(cli(PLAN "%F/k.jsonl --image_dir %F/pictures/sub --allow_outside"), 0);
    CHECK_INT(last.err_lines, 0);
    check_case("samples without an answer among others are counted");
    write_text(in_folder("k.jsonl"), "{\"question\": \"a?\", \"answer\": \"b\"}\n{\"question\": \"b?\", \"answer\": null}\n");
    EXITS(cli(PLAN "%F/k.jsonl"), 0, err, "1 of 2 samples have no answer to compare with");
    check_case("names that report would not find, and those that no file can have");
    write_text(in_folder(".k.jsonl"), "{\"question\": \"a?\"}\n");
    REFUSED(PLAN "%F/.k.jsonl", 2, "\".k\", becomes part of file names");
    REFUSED(PLAN "%F/k.jsonl --dataset_name .", 2, "not begin with a period, since report skips hidden files");
    CHECK_INT(cli(PLAN "%F/.k.jsonl --dataset_name k"), 0);
    char many[300] = PLAN "%F/k.jsonl --dataset_name ";
    memset(many + strlen(many), 'n', 151);
    REFUSED(many, 2, "1 to 150 bytes");
    check_case("notes on data: few reference answers, repeated ids");
    write_text(in_folder("k.jsonl"), "{\"id\": 4, \"question\": \"a?\", \"answers\": [\"b\"]}\n{\"id\": 4, \"question\": \"\", \"answers\": [\"b\", \"b\", \"c\"]}\n");
    CHECK_INT(cli(PLAN "%F/k.jsonl"), 0);
    CHECK(last.err && strstr(last.err, "1 sample has fewer than 3 reference answers") && strstr(last.err, "1 id occurs more than once: "));
    CHECK(last.out && strstr(last.out, "answers of 2 of 2 samples, 1 to 3 each; metric vqa_seed (the default)"));
    CHECK_INT(cli(PLAN "%F/k.jsonl --metric em"), 0);
    CHECK(last.err && !strstr(last.err, "reference answers"));
}
static void test_pictures(void) {
    static const struct { const char *name; int32_t width, height; } pictures[] = {{"g1.gif", 33, 21}, {"w0.webp", 7, 5}};
    char digits[65];
    check_case("SHA-256");
    sha256_text("abc", 3, digits);
    CHECK_TEXT(digits, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (size_t i = 0; i < 2; i++) {
        char path[200];
        size_t bytes = 0, wanted_bytes = 0;
        int32_t width = 0, height = 0;
        vp_error error = {VP_OK, -1, "", ""};
        vp_image image = {0, 0, NULL};
        check_case("any_image_decode: %s as Pillow reads it", pictures[i].name);
        snprintf(path, sizeof path, "tests/golden/datasets/pictures/%s", pictures[i].name);
        char *file = check_read(path, &bytes);
        strcat(path, ".rgb");
        char *wanted = check_read(path, &wanted_bytes);
        if (!CHECK(file && wanted)) return;
        vp_result result = any_image_decode((const uint8_t *)file, bytes, &image, &error);
        if (result == VP_ERR_UNSUPPORTED && strstr(error.text, "libwebp is not installed")) check_skip(pictures[i].name, "libwebp is not installed");
        else if (CHECK(result == VP_OK && image.width_px == pictures[i].width && image.height_px == pictures[i].height)) {
            CHECK(wanted_bytes == (size_t)image.width_px * (size_t)image.height_px * 3 && !memcmp(image.rgb, wanted, wanted_bytes));
            CHECK(any_image_size((const uint8_t *)file, bytes, &width, &height, NULL) == VP_OK && width == image.width_px && height == image.height_px);
            vp_image_free(&image);
            CHECK(any_image_decode((const uint8_t *)file, bytes * 2 / 3, &image, &error) == VP_ERR_FORMAT);
        }
        FREE_ALL(file, wanted);
    }
    check_case("a sample with a TIFF picture fails, with a hint");
    write_text(in_folder("tiff.jsonl"), "{\"question\": \"a?\", \"image\": \"t0.tif\"}\n{\"question\": \"b?\"}\n");
    CHECK_INT(cli(PLAN "%F/tiff.jsonl --image_dir tests/golden/datasets/pictures"), 0);
    CHECK(last.out && strstr(last.out, "the first: line 1: tests/golden/datasets/pictures/t0.tif: ") && strstr(last.out, "TIFF"));
}
/* the row of a sample in a result file, whatever its configuration's name is */
static uint32_t several_row(const document *d, int64_t sample) {
    const uint32_t rows = member(d, 0, "per_sample_results");
    for (uint32_t i = rows + 1; i < d->nodes[rows].end; i = d->nodes[i].end) {
        int64_t id = -1;
        vp_json_to_int(&d->json, member(d, i, "sample_id"), &id);
        if (id == sample) return i;
    }
    return VP_JSON_NONE;
}
static void test_several_images(void) {
    document d;
    check_case("sweep: several images per record, before and within the text, next to records with one and with none");
    write_text(in_folder("several.jsonl"),
             "{\"images\": [\"mix-200x150.png\", \"waves-90x60.png\"], \"question\": \"What differs?\", \"answers\": [\"x\"]}\n"
             "{\"image\": \"mix-200x150.png\", \"question\": \"What?\", \"answers\": [\"x\"]}\n"
             "{\"images\": [\"waves-90x60.png\", \"rings-61x130.png\", \"mix-200x150.png\"], \"content\": [{\"text\": \"First \"}, {\"image\": 0}, "
             "{\"text\": \"then \"}, {\"image\": 1}, {\"text\": \"and \"}, {\"image\": 2}, {\"text\": \"what comes next?\"}], \"answers\": [\"x\"]}\n"
             "{\"question\": \"What?\", \"answers\": [\"x\"]}\n{\"images\": [\"mix-200x150.png\", \"gone.png\"], \"question\": \"What?\"}\n");
    cli("sweep --model tests/golden/othermodels/smolvlm/checkpoint --max_new_tokens 2 --num_samples 9 --num_runs_per_sample 1 --threads 1 --quiet "
        "--image_dir tests/golden/othermodels/images --output_dir %F/several --data %F/several.jsonl");
    if (!CHECK(load(&d, in_folder("several/several_imgsizeasis_topk0_blocks4.json")))) return;
    uint32_t row = several_row(&d, 0);
    CHECK(is_text(&d, row, "prompt", "<|im_start|>User:<image><image>What differs?<end_of_utterance>\nAssistant:"));
    CHECK_INT(d.nodes[member(&d, row, "vision_tokens_of_images")].count, 2);
    row = several_row(&d, 1);
    CHECK(member(&d, row, "vision_tokens_of_images") == VP_JSON_NONE && member(&d, row, "num_images") == VP_JSON_NONE);
    row = several_row(&d, 2);
    CHECK(is_text(&d, row, "prompt", "<|im_start|>User: First <image>then <image>and <image>what comes next?<end_of_utterance>\nAssistant:"));
    CHECK_INT(d.nodes[member(&d, row, "vision_tokens_of_images")].count, 3);
    CHECK(is_text(&d, several_row(&d, 4), "status", "failed"));
    CHECK(is_text(&d, several_row(&d, 3), "status", "ok")); /* a record without an image is measured as text */
    unload(&d);
    EXITS(cli("report %F/several"), 0, out, "2 of 4 measured samples have several images, up to 3");
    check_case("a model that takes one image fails samples with several, with the reason");
    cli("sweep --synthetic tiny --tier_list low --max_new_tokens 1 --num_samples 9 --num_runs_per_sample 1 --threads 1 --image_dir "
        "tests/golden/othermodels/images --output_dir %F/several --data %F/several.jsonl");
    CHECK(last.err && strstr(last.err, "2 images, but only one is allowed: Molmo's published preprocessing accepts only one image per prompt"));
    check_case("report --by: the accuracy of each value of a field");
    CHECK_INT(cli("report --by question %F/several"), 0);
    CHECK(last.out && strstr(last.out, "Accuracy by question") && strstr(last.out, "What differs?"));
    EXITS(cli("report --by nothing %F/several"), 2, err, "no scored sample has this field in its record; the fields are ");
}
/* exit code of a command, and its peak memory */
static int most_kb(const char *command, long *most) {
    pid_t child = start(command, NULL, in_folder("stdout"), 0);
    struct rusage use;
    int status = 0;
    free(last.out);
    while (wait4(child, &status, 0, &use) < 0) { }
    last.out = check_read(in_folder("stdout"), NULL);
    *most = use.ru_maxrss;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static void test_flat(void) {
    long few = 0, many = 0;
    check_case("a planned sample takes less than 100 bytes, whatever the size of its record");
    if (CHECK_SANITIZED) { /* the program is sanitized too */
        check_skip("memory of a planned sample", "a sanitizer keeps freed memory");
        return;
    }
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(in_folder("many.jsonl"), "wb");
        int n = i ? 200000 : 1000;
        for (int k = 0; f && k < n; k++) fprintf(f, "{\"question\": \"Number %d?\", \"context\": \"%0*d\"}\n", k, 100 + k % 100, k);
        CHECK(f && fclose(f) == 0);
        CHECK_INT(most_kb("sweep --synthetic tiny --data %F/many.jsonl --num_samples 200000 --tier_list low --top_k_list 1 --plan", i ? &many : &few), 0);
        CHECK(strstr(last.out, i ? "200000 samples" : "1000 samples"));
    }
    if (!CHECK((many - few) * 1024 < 199000 * 100)) printf("%ld KiB for 1000 samples, %ld for 200000\n", few, many);
}

int main(void) {
    if (!command_begin("dataset")) return 1;
    tiny.name = "tiny";
    CHECK_INT(model_load_preset(&tiny), 0);
    RUN_TESTS(test_vqa, test_vqa_refusals, test_folder_data, test_data_defaults, test_stratify, test_changed,
              test_changed_notes, test_reasons, test_vanished, test_plan, test_same_rejections, test_pictures,
              test_several_images, test_flat);
    model_free(&tiny);
    return command_end("test_dataset");
}
