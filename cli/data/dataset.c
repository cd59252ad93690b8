/* dataset.c: data sets: JSONL, VQA v2, folders of images. The file of a data set is read once to find its records. The
 * sample is drawn from their number, and only the sampled records are read. */
#include "data/dataset.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "data/choice.h"
#include "measure/input.h"
#include "model/prompt.h"
#include "model/image.h"
#include "score/scoring.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

void dataset_free(struct dataset *dataset) {
    source_close(&dataset->source);
    source_close(&dataset->notes);
    text_list_free(&dataset->names);
    for (int32_t i = 0; i < dataset->reason_count; i++) free(dataset->reasons[i]);
    FREE_ALL(dataset->notes_path, dataset->subtype);
    for (size_t i = 0; dataset->samples && i < dataset->count; i++) free(dataset->samples[i].sizes);
    FREE_ALL(dataset->samples, dataset->task);
}

/* ---- records: their positions and strata */
struct place { int64_t start; uint32_t bytes, number; }; /* number: line, question or image, from 0 */
struct question_at { int64_t id; size_t index; };        /* index: of a position, later of a sample */

/* The text of a record and of its annotation (note), each also in parsed form. */
struct record_reader { struct parsed scratch, note; struct text_buffer text, note_text; };

/* The state while a data set is loaded. */
struct loader {
    const struct model *model;
    struct dataset *dataset;
    struct place *places;
    size_t population;     /* all records */
    const char *field;     /* --stratify_by; NULL without strata */
    uint64_t *strata;      /* [population], with a field: see read_stratum */
    size_t with_field;     /* records that have the field */
    int64_t *question_ids; /* [population], KIND_VQA */
    struct question_at *questions; size_t question_count; /* sorted by id: see sort_questions */
    struct record_reader reader;
    size_t with_images, without; /* usable samples: with an image; without one, where one could be */
    size_t few_answers;          /* samples with 1 or 2 reference answers */
    int32_t new_tokens;          /* answer length of lines whose prompts are a tool's; 0 if they give none */
};
static void reader_free(struct record_reader *reader) {
    FREE_ALL(reader->scratch.nodes, reader->note.nodes, reader->text.data, reader->note_text.data);
}

/* Adds a record of the data set. */
static vp_result add_place(struct loader *loader, int64_t start, int64_t bytes, int64_t number, vp_error *error) {
    if (bytes > INT32_MAX || number > UINT32_MAX || loader->population == UINT32_MAX)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, start, loader->dataset->path,
                            "a record over 2 GiB, or more than 4294967295 records");
    loader->places = grown(loader->places, loader->population, sizeof *loader->places);
    if (loader->field) loader->strata = grown(loader->strata, loader->population, sizeof *loader->strata);
    if (loader->dataset->kind == KIND_VQA)
        loader->question_ids = grown(loader->question_ids, loader->population, sizeof *loader->question_ids);
    struct place *place = &loader->places[loader->population];
    place->start = start;
    place->bytes = (uint32_t)bytes;
    place->number = (uint32_t)number;
    if (loader->field) loader->strata[loader->population] = 0;
    loader->population++;
    return VP_OK;
}
/* Sets the stratum of a record, unless it has one: a hash of the field's value as written. Records without the field
 * keep 0, their own stratum. */
static void read_stratum(struct loader *loader, const vp_json *json, size_t index) {
    uint32_t node = loader->field ? vp_json_get(json, 0, loader->field) : VP_JSON_NONE;
    if (node == VP_JSON_NONE || loader->strata[index]) return;
    loader->with_field++;
    loader->strata[index] = hash_bytes(HASH_START + json->nodes[node].type, json->text + json->nodes[node].start,
                                       (size_t)json->nodes[node].bytes)
                            | 1;
}

/* Finds the lines that are not blank. The end of the file also ends a line. */
static vp_result find_lines(struct loader *loader, vp_error *error) {
    const struct source *source = &loader->dataset->source;
    char *piece = resize(NULL, WINDOW_BYTES, 1);
    int64_t start = 0, offset = 0, number = 0;
    char text[160];
    int blank = 1;
    ssize_t got = 0;
    vp_result result = VP_OK;
    while (result == VP_OK && (got = source_read(source, offset, piece, WINDOW_BYTES)) >= 0) {
        for (ssize_t i = 0; result == VP_OK && (i < got || (!got && !i)); i++) {
            if (got && piece[i] != '\n') {
                blank &= piece[i] == ' ' || piece[i] == '\t' || piece[i] == '\r';
                continue;
            }
            if (!blank && offset + i - start > LINE_BYTES_MOST)
                result = vp_error_set(error, VP_ERR_RANGE, start, source->path,
                                      line_limit_text(text, sizeof text, number + 1, (uint64_t)(offset + i - start)));
            else if (!blank) result = add_place(loader, start, offset + i - start, number, error);
            start = offset + i + 1;
            blank = 1;
            number++;
        }
        if (!got) break;
        offset += got;
    }
    free(piece);
    if (got < 0) return vp_error_set(error, VP_ERR_READ, offset, source->path, strerror(errno));
    return result;
}
static vp_result find_line_strata(struct loader *loader, vp_error *error) {
    const struct source *source = &loader->dataset->source;
    struct record_reader *reader = &loader->reader;
    for (size_t i = 0; i < loader->population; i++) {
        const struct place *place = &loader->places[i];
        vp_error inner = {VP_OK, -1, "", ""};
        vp_result result = source_text(source, place->start, place->bytes, &reader->text, error);
        if (result == VP_OK) result = parse_json(&reader->scratch, reader->text.data, reader->text.bytes, &inner);
        if (result != VP_OK && inner.code)
            return vp_error_set(error, result, place->start + (inner.offset < 0 ? 0 : inner.offset), source->path,
                                inner.text);
        if (result != VP_OK) return result;
        read_stratum(loader, &reader->scratch.json, i);
    }
    return VP_OK;
}

/* Looks only at the first element of a list: VQA v2 has "questions": [{...}], a line of tally_qa "questions":
 * ["..."]. */
static vp_result see_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    (void)at;
    (void)bytes;
    *(int *)user = node_is(value, 0, VP_JSON_OBJECT);
    return vp_error_set(error, VP_ERR_INTERRUPTED, -1, "", "seen");
}
static int has_objects(const struct source *source, const char *key) {
    int seen = 0;
    struct stream_visitor visitor = {key, see_question, NULL, &seen, 0};
    stream_walk(source, &visitor, NULL);
    return seen;
}
/* Rejects a file that is not JSONL: it begins with something else, or is one large JSON value. */
static vp_result check_lines(const struct source *source, vp_error *error) {
    static const char expected[] =
        "expected JSONL ({\"question\": .., \"image\": ..} on each line), VQA v2's questions file or a folder of images"
        "; python -m vlmprof.data FILE -o data.jsonl converts other formats";
    char start[4096];
    const char *at = start;
    ssize_t got = source_read(source, 0, start, sizeof start);
    if (got < 0) return vp_error_set(error, VP_ERR_READ, 0, source->path, strerror(errno));
    if (!got) return vp_error_set(error, VP_ERR_FORMAT, 0, source->path, "the file is empty");
    while (at < start + got && *at && strchr(" \t\r\n", *at)) at++;
    /* a byte order mark has its own message */
    if (at < start + got && *at != '{' && *at != '\xEF')
        return vp_error_set(error, VP_ERR_FORMAT, at - start, source->path, expected);
    if (has_objects(source, "annotations"))
        return vp_error_set(
            error, VP_ERR_FORMAT, 0, source->path,
            "these are VQA v2's annotations, which contain no questions: give the questions file as data, "
            "and this one with --annotations");
    return has_objects(source, "data") ? vp_error_set(error, VP_ERR_FORMAT, 0, source->path, expected) : VP_OK;
}
static vp_result take_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    struct loader *loader = (struct loader *)user;
    int64_t id = 0, image = 0;
    vp_result result;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), &id) != VP_OK
        || vp_json_to_int(value, vp_json_get(value, 0, "image_id"), &image) != VP_OK || image < 0
        || !node_is(value, vp_json_get(value, 0, "question"), VP_JSON_STRING))
        return vp_error_set(error, VP_ERR_FORMAT, at, loader->dataset->path,
                            "a question needs \"question\" and integers \"question_id\" and \"image_id\"");
    if ((result = add_place(loader, at, (int64_t)bytes, (int64_t)loader->population, error)) != VP_OK) return result;
    loader->question_ids[loader->population - 1] = id;
    read_stratum(loader, value, loader->population - 1);
    return VP_OK;
}
/* Keeps "data_subtype". */
static vp_result take_member(void *user, const char *key, const vp_json *value) {
    struct dataset *dataset = ((struct loader *)user)->dataset;
    if (strcmp(key, "data_subtype")) return VP_OK;
    free(dataset->subtype);
    dataset->subtype = node_text(value, 0);
    return VP_OK;
}
/* Determines the subtype from the file's contents, otherwise from its name ("val2014"). The images of test-dev are
 * those of test. The subtype becomes part of file names, so it consists of letters and digits. */
static vp_result check_subtype(struct dataset *dataset, vp_error *error) {
    const char *at = strstr(dataset->path, "mscoco_"), *end = at ? strstr(at, "_questions") : NULL;
    if (!dataset->subtype && end) dataset->subtype = copy_text(at + 7, (size_t)(end - at - 7));
    if (dataset->subtype && !strcmp(dataset->subtype, "test-dev2015")) memcpy(dataset->subtype, "test2015", 9);
    for (at = dataset->subtype; at && isalnum((unsigned char)*at); at++) {}
    if (at && at > dataset->subtype && !*at) return VP_OK;
    return vp_error_set(error, VP_ERR_FORMAT, -1, dataset->path,
                        "\"data_subtype\" must be a word like val2014: images are named after it");
}
static vp_result find_images(struct loader *loader, vp_error *error) {
    struct dataset *dataset = loader->dataset;
    DIR *folder = opendir(dataset->path);
    struct left_out left_out = {0};
    vp_result result = VP_OK;
    if (!folder) return vp_error_set(error, VP_ERR_READ, -1, dataset->path, strerror(errno));
    while (result == VP_OK) {
        const struct dirent *entry;
        errno = 0; /* readdir returns NULL at the end, and also for an error */
        if ((entry = readdir(folder)) == NULL) {
            if (errno) result = vp_error_set(error, VP_ERR_READ, -1, dataset->path, strerror(errno));
            break;
        }
        char *path = join_path(dataset->path, entry->d_name);
        if (!is_image_name(entry->d_name)) {
            if (!is_folder(path)) leave_out(&left_out, entry->d_name);
        } else if (!is_folder(path)
                   && (result = add_place(loader, 0, 0, (int64_t)dataset->names.count, error)) == VP_OK)
            text_list_copy(&dataset->names, entry->d_name);
        free(path);
    }
    closedir(folder);
    say_left_out(dataset->path, &left_out);
    if (result == VP_OK && !dataset->names.count)
        return vp_error_set(error, VP_ERR_NOT_FOUND, -1, dataset->path, "there is no image in this folder");
    text_list_sort(&dataset->names, 0);
    return result;
}

/* ---- annotations of VQA v2 */
/* v2_OpenEnded_mscoco_val2014_questions.json -> v2_mscoco_val2014_annotations.json, which the caller frees; NULL if the
 * name is not an official one, or the file is missing. */
static char *find_annotations(const char *path) {
    static const char word[] = "OpenEnded_", tail[] = "_questions.json";
    const char *name = name_in_path(path), *open_ended = strstr(name, word),
               *end = strstr(name, tail);
    struct text_buffer text = {NULL, 0, 0};
    if (!open_ended || !end || end < open_ended + strlen(word) || end[strlen(tail)]) return NULL;
    text_add(&text, path, (size_t)(open_ended - path));
    text_add(&text, open_ended + strlen(word), (size_t)(end - open_ended) - strlen(word));
    text_add_string(&text, "_annotations.json");
    if (access(text.data, F_OK) == 0) return text.data;
    free(text.data);
    return NULL;
}
COMPARE_BY(compare_questions, struct question_at, id)
/* Sets *first to the index of the first question that an annotation belongs to, or its insertion index, and *id to its
 * question id. An id can occur more than once. */
static vp_result find_question(const struct loader *loader, const vp_json *value, int64_t at, size_t *first,
                               int64_t *id, vp_error *error) {
    size_t low = 0, high = loader->question_count;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), id) != VP_OK)
        return vp_error_set(error, VP_ERR_FORMAT, at, "", "an annotation needs an integer \"question_id\"");
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (loader->questions[middle].id < *id) low = middle + 1; else high = middle;
    }
    *first = low;
    return VP_OK;
}
static vp_result take_stratum(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    struct loader *loader = (struct loader *)user;
    int64_t id = 0;
    size_t question = 0;
    vp_result result = find_question(loader, value, at, &question, &id, error);
    (void)bytes;
    for (; result == VP_OK && question < loader->question_count && loader->questions[question].id == id; question++)
        read_stratum(loader, value, loader->questions[question].index);
    return result;
}
static vp_result take_annotation(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    struct loader *loader = (struct loader *)user;
    int64_t id = 0;
    size_t question = 0;
    vp_result result = find_question(loader, value, at, &question, &id, error);
    /* If a question has several annotations, the last one counts. */
    for (; result == VP_OK && question < loader->question_count && loader->questions[question].id == id; question++) {
        loader->dataset->samples[loader->questions[question].index].note_start = at;
        /* at most VALUE_BYTES_MAX */
        loader->dataset->samples[loader->questions[question].index].note_bytes = (uint32_t)bytes;
    }
    return result;
}
/* Calls `element` for each annotation, if there are any. The first call opens the file. */
static vp_result walk_annotations(struct loader *loader,
                                  vp_result (*element)(void *, const vp_json *, int64_t, size_t, vp_error *),
                                  vp_error *error) {
    struct dataset *dataset = loader->dataset;
    const char *named = dataset->settings->annotations;
    struct stream_visitor visitor = {"annotations", element, NULL, loader, 0};
    vp_result result;
    if (!dataset->notes_path) {
        dataset->notes_path = named ? copy_text(named, strlen(named)) : find_annotations(dataset->path);
        if (!dataset->notes_path) return VP_OK;
        if ((result = source_open(&dataset->notes, dataset->notes_path, error)) != VP_OK) return result;
    }
    result = stream_walk(&dataset->notes, &visitor, error);
    return result == VP_OK && !visitor.found
               ? vp_error_set(error, VP_ERR_FORMAT, -1, dataset->notes_path, "has no \"annotations\"")
               : result;
}
/* Sorts questions by id: the chosen ones, or all if `chosen` is NULL. */
static void sort_questions(struct loader *loader, const int64_t *chosen, size_t count) {
    loader->questions = resize(loader->questions, count, sizeof *loader->questions);
    loader->question_count = count;
    for (size_t i = 0; i < count; i++) {
        loader->questions[i].id = loader->question_ids[chosen ? (size_t)chosen[i] : i];
        loader->questions[i].index = i;
    }
    if (count) qsort(loader->questions, count, sizeof *loader->questions, compare_questions);
}
/* Reads the strata from the annotations, unless the questions have the field. */
static vp_result find_strata(struct loader *loader, vp_error *error) {
    if (loader->with_field) return VP_OK;
    sort_questions(loader, NULL, loader->population);
    return walk_annotations(loader, take_stratum, error);
}
static vp_result find_notes(struct loader *loader, const int64_t *chosen, vp_error *error) {
    struct dataset *dataset = loader->dataset;
    size_t found = 0;
    sort_questions(loader, chosen, dataset->count);
    vp_result result = walk_annotations(loader, take_annotation, error);
    for (size_t i = 0; i < dataset->count; i++) found += dataset->samples[i].note_start >= 0;
    if (result == VP_OK && dataset->notes_path && !found)
        result = vp_error_set(error, VP_ERR_MISMATCH, -1, dataset->notes_path,
                              "contains no annotations for these questions; it belongs to other questions");
    return result;
}

/* ---- one record -> sample */
static int bad_record(const char *path, int64_t line, const char *text) {
    return complain(EXIT_INPUT, "%s: line %lld: %s", path, (long long)line + 1, text);
}

/* Checks that the answers and options can be read as scoring reads them. */
static int check_references(const char *path, const vp_json *json, const struct sample *sample) {
    struct scoring scoring = {0};
    scoring_clear(&scoring);
    const char *bad = scoring_read(&scoring, VP_SCORE_VQA_SEED, json, 0);
    const int code = bad ? bad_record(path, sample->id, bad) : 0;
    scoring_free(&scoring);
    return code;
}

/* Inserts a question into the model's conversation and counts the tokens. Returns 0 or an exit code. */
static int make_conversation(const struct dataset *dataset, const struct model *model, int32_t image_count,
                             struct sample *sample) {
    char *question = sample->prompt;
    if (image_count && model_is_blind(model))
        return bad_record(dataset->path, sample->id, "has an image, but the model accepts only text");
    sample->prompt = model->rules->prompt(model, NULL, question, sample->places, image_count);
    free(question);
    return count_sample(model, image_count, sample)
               ? bad_record(dataset->path, sample->id, "cannot be answered by this model")
               : 0;
}

/* A tool's prompt is not changed, not even its last line end. */
static void keep_prompt(const struct prompt_fields *fields, const char *hint, struct sample *sample) {
    struct text_buffer text = {NULL, 0, 0};
    if (!fields->questions.count || (hint && !fields->places)) return;
    text_add_string(&text, fields->questions.items[0]);
    if (hint) text_add_string(&text, "\n");
    if (hint) text_add_string(&text, hint);
    free(sample->prompt);
    sample->prompt = text.data;
}
/* Builds the prompt of a parsed record, and tokenizes it for a model. Returns 0 or an exit code. */
static int read_prompt(const struct dataset *dataset, const struct model *model, const vp_json *json,
                       struct sample *sample) {
    struct prompt_fields fields = {0};
    vp_prompt_info info;
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    const int is_message = !model || !model->rules->has_styles;
    int code = 0;
    vp_result result = read_prompt_fields(json, &fields, &error);
    const vp_prompt_dataset *defaults = fields.is_asked ? NULL : dataset->defaults;
    if (result == VP_OK && !fields.questions.count && !defaults && !prompt_dataset_of(&fields, NULL))
        result = vp_error_set(&error, VP_ERR_FORMAT, -1, "", "it needs \"question\", a string; see vlmprof help data");
    if (result == VP_OK && is_message)
        result = build_message(&fields, defaults, dataset->settings->seed, sample->id, dataset->settings->answer_hint,
                               &sample->prompt, &info, &error);
    if (result == VP_OK && is_message && (fields.places || fields.is_asked))
        keep_prompt(&fields, dataset->settings->answer_hint, sample);
    if (result == VP_OK && !is_message)
        result = build_prompt(&fields, defaults, dataset->settings->style, dataset->settings->seed, sample->id,
                              &sample->prompt, &info, &error);
    if (result == VP_OK) {
        sample->dataset = prompt_dataset_of(&fields, defaults);
        sample->no_image = !info.has_image;
        sample->tokens.no_bos = !info.bos_prepended;
        const char *last_question = fields.questions.count ? fields.questions.items[fields.questions.count - 1] : "";
        sample->question = copy_text(last_question, strlen(last_question));
        sample->style = info.style ? copy_text(info.style, strlen(info.style)) : NULL;
        sample->places = fields.places;
        fields.places = NULL;
        int32_t image_count = sample->no_image ? 0 : dataset->kind == KIND_VQA ? 1 : (int32_t)image_count_of(json);
        /* too_many_images gives the reason why such a sample fails */
        if (model && image_count > 1 && model->rules->one_image(model)) image_count = 1;
        if (model && is_message) code = make_conversation(dataset, model, image_count, sample);
        else if (model) code = count_sample(model, !sample->no_image, sample);
    } else {
        error_line(reason, sizeof reason, result, &error);
        code = bad_record(dataset->path, sample->id, reason);
    }
    prompt_fields_free(&fields);
    return code;
}
/* Relative names start at --image_dir, otherwise in the data set's folder. */
static char *image_path_of(const struct dataset *dataset, const char *name) {
    const char *path = dataset->path, *slash = strrchr(path, '/');
    if (name[0] != '/' && dataset->settings->image_dir) return join_path(dataset->settings->image_dir, name);
    if (name[0] != '/' && dataset->kind == KIND_FOLDER) return join_path(path, name);
    if (name[0] == '/' || !slash) return copy_text(name, strlen(name));
    char *folder = copy_text(path, (size_t)(slash - path) + 1);
    char *joined = join_path(folder, name);
    free(folder);
    return joined;
}
/* The path of COCO_val2014_000000262148.jpg: in the folder or, if it is only there, in the subfolder val2014. */
static char *official_image(const struct dataset *dataset, int64_t image_id) {
    size_t capacity = strlen(dataset->subtype) + 48;
    char *name = resize(NULL, capacity, 1), *inside, *first, *second;
    snprintf(name, capacity, "COCO_%s_%012lld.jpg", dataset->subtype, (long long)image_id);
    first = image_path_of(dataset, name);
    inside = join_path(dataset->subtype, name);
    second = image_path_of(dataset, inside);
    FREE_ALL(name, inside);
    if (access(first, F_OK) && access(second, F_OK) == 0) {
        free(first);
        return second;
    }
    free(second);
    return first;
}

/* Returns 1 for a misspelled "image" or "images", such as "Image" or "imgae". */
static int is_near_image(const char *key) {
    char lower[16] = "";
    for (size_t i = 0; key[i] && i + 1 < sizeof lower; i++) lower[i] = (char)tolower((unsigned char)key[i]);
    return edit_distance(lower, "image") <= 1 || edit_distance(lower, "images") <= 1;
}
/* A record that has no "image" but names an image under another key is not a question without an image. Returns 0 or an
 * exit code after a message. */
static int check_image_key(const char *path, const vp_json *json, const struct sample *sample) {
    static const char *const others = "picture img image_path image_url image_file img_path photo pictures imgs "
                                      "image_paths image_urls";
    char text[160] = "";
    for (uint32_t key = 1; key < json->nodes[0].end && !text[0]; key = json->nodes[key + 1].end) {
        char *name = node_text(json, key);
        if (name && strcmp(name, "image") != 0 && strcmp(name, "images") != 0 && has_value(json, 0, name)
            && (has_word(others, name) || is_near_image(name)))
            snprintf(text, sizeof text, "it has no \"image\", but has \"%.40s\": rename that key to \"image\"", name);
        free(name);
    }
    return text[0] ? bad_record(path, sample->id, text) : 0;
}
/* Returns 1 if a relative name leaves its folder. */
static int is_outside(const char *name) {
    int depth = 0;
    for (size_t bytes; *name != '/' && *name && depth >= 0; name += bytes + strspn(name + bytes, "/")) {
        bytes = strcspn(name, "/");
        if (bytes == 2 && name[0] == '.' && name[1] == '.') depth--;
        else depth += !(bytes == 1 && name[0] == '.');
    }
    return depth < 0;
}
/* The reason why an image's name cannot be used; otherwise NULL. */
static const char *bad_image_name(const struct dataset *dataset, const char *name) {
    if (!strncmp(name, "data:", 5)) return "its \"image\" is a data URI: save the picture to a file and give its path";
    if (strstr(name, "://"))
        return "its \"image\" is a URL, and nothing is downloaded: save the picture and give its path";
    return is_outside(name) && !dataset->settings->allow_outside
               ? "its \"image\" leaves the image folder via ..: --allow_outside permits it"
               : NULL;
}
/* Reads "image", a name, or "images", a list of names. Returns 0 or an exit code. */
static int read_image_names(const struct dataset *dataset, const vp_json *json, struct sample *sample) {
    const int is_list = has_value(json, 0, "images");
    const uint32_t node = vp_json_get(json, 0, is_list ? "images" : "image");
    uint32_t item = is_list ? node + 1 : node;
    if (!is_list && !has_value(json, 0, "image")) return 0;
    if (is_list && has_value(json, 0, "image"))
        return bad_record(dataset->path, sample->id, "it has both \"image\" and \"images\": put all into \"images\"");
    if (is_list && !node_is(json, node, VP_JSON_ARRAY))
        return bad_record(dataset->path, sample->id, "\"images\" must be an array of strings");
    for (; item < json->nodes[node].end; item = json->nodes[item].end) {
        char *name = node_text(json, item);
        if (!name)
            return bad_record(dataset->path, sample->id,
                              is_list ? "\"images\" must be an array of strings" : "\"image\" must be a string");
        const char *bad = bad_image_name(dataset, name);
        if (bad) {
            free(name);
            return bad_record(dataset->path, sample->id, bad);
        }
        text_list_take(&sample->images, image_path_of(dataset, name));
        free(name);
    }
    return 0;
}
/* Reads sample->record: prompt and image paths. The references are only checked, because scoring reads them from the
 * record. Returns 0 or an exit code. */
static int read_record(const struct dataset *dataset, const struct model *model, struct parsed *scratch,
                       struct sample *sample) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *json = &scratch->json;
    char reason[LINE_BYTES];
    int64_t image_id = 0;
    int code;
    vp_result result = parse_json(scratch, sample->record, strlen(sample->record), &error);
    if (result != VP_OK || !node_is(json, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "%s (byte %lld)", result == VP_OK ? "expected one JSON object" : error.text,
                 (long long)(error.offset < 0 ? 0 : error.offset));
        return bad_record(dataset->path, sample->id, reason);
    }
    if ((code = read_prompt(dataset, model, json, sample)) != 0
        || (code = check_references(dataset->path, json, sample)) != 0)
        return code;
    if (dataset->kind == KIND_VQA) {
        vp_json_to_int(json, vp_json_get(json, 0, "image_id"), &image_id); /* was checked when it was found */
        text_list_take(&sample->images, official_image(dataset, image_id));
        return 0;
    }
    if (!has_value(json, 0, "image") && !has_value(json, 0, "images")
        && (code = check_image_key(dataset->path, json, sample)) != 0)
        return code;
    return sample->no_image ? 0 : read_image_names(dataset, json, sample);
}

/* Reads "answers" of an annotation: only the texts, under `key` or "answer". */
static vp_result put_answers(vp_json_writer *writer, const vp_json *note, const char *key, vp_error *error) {
    uint32_t answers = vp_json_get(note, 0, "answers");
    if (!node_is(note, answers, VP_JSON_ARRAY))
        return vp_error_set(error, VP_ERR_FORMAT, -1, "annotations", "\"answers\" must be an array");
    PUT(writer, KEY_ARRAY("answers"));
    for (uint32_t i = answers + 1; i < note->nodes[answers].end; i = note->nodes[i].end) {
        uint32_t text = node_is(note, i, VP_JSON_OBJECT) ? vp_json_get(note, i, key) : VP_JSON_NONE;
        if (text == VP_JSON_NONE && node_is(note, i, VP_JSON_OBJECT)) text = vp_json_get(note, i, "answer");
        if (!node_is(note, text, VP_JSON_STRING))
            return vp_error_set(error, VP_ERR_FORMAT, -1, "annotations", "each element of \"answers\" needs a string");
        json_node(writer, note, text);
    }
    vp_json_end_array(writer);
    return VP_OK;
}
/* Copies the members of a record's part except "id", and answers unless `with_answers`. A member that is in `before`
 * already is left out. */
static void copy_members(vp_json_writer *writer, const vp_json *json, int with_answers, const vp_json *before) {
    for (uint32_t i = 1; i < json->node_count; i = json->nodes[i + 1].end) {
        char *key = node_text(json, i);
        if (key && strcmp(key, "id") && (with_answers || strcmp(key, "answers"))
            && (!before || vp_json_get(before, 0, key) == VP_JSON_NONE)) {
            vp_json_key(writer, key);
            json_node(writer, json, i + 1);
        }
        free(key);
    }
}
/* Joins question and annotation into one record, in the format of a line of JSONL: "id" first, answers as strings. */
static vp_result merge_note(const struct dataset *dataset, struct record_reader *reader, int has_note,
                            struct text_buffer *out, vp_error *error) {
    /* the reference scores OK-VQA by raw_answer */
    const char *answer = dataset->defaults && !strcmp(dataset->defaults->name, "okvqa") ? "raw_answer" : "answer";
    const vp_json *json = &reader->scratch.json, *note = &reader->note.json;
    vp_json_writer writer;
    vp_result result = parse_json(&reader->scratch, reader->text.data, reader->text.bytes, error);
    if (result == VP_OK && has_note)
        result = parse_json(&reader->note, reader->note_text.data, reader->note_text.bytes, error);
    if (result != VP_OK) return result;
    vp_json_writer_init_sink(&writer, text_sink, out, 0);
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "id");
    json_node(&writer, json, vp_json_get(json, 0, "question_id"));
    copy_members(&writer, json, !has_note, NULL);
    if (has_note && (result = put_answers(&writer, note, answer, error)) != VP_OK) return result;
    if (has_note) copy_members(&writer, note, 0, json);
    vp_json_end_object(&writer);
    return vp_json_finish(&writer);
}
/* Makes the record of an image in a folder: the image and --prompt. */
static void make_folder_record(const struct dataset *dataset, const char *name, struct text_buffer *out) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, out, 0);
    PUT(&writer, KEY_OBJECT(NULL), KEY("id", name), KEY("image", name));
    if (dataset->settings->prompt) put_text(&writer, "question", dataset->settings->prompt);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
}
/* Reads the texts of an entry into reader->text and reader->note_text. *hash becomes the hash of both. */
static vp_result fetch_texts(const struct dataset *dataset, struct record_reader *reader, const struct entry *entry,
                             uint64_t *hash, vp_error *error) {
    vp_result result = VP_OK;
    reader->text.bytes = reader->note_text.bytes = 0;
    if (dataset->kind == KIND_FOLDER) make_folder_record(dataset, dataset->names.items[entry->id], &reader->text);
    else result = source_text(&dataset->source, entry->start, entry->bytes, &reader->text, error);
    if (result == VP_OK && entry->note_start >= 0)
        result = source_text(&dataset->notes, entry->note_start, entry->note_bytes, &reader->note_text, error);
    *hash = hash_bytes(hash_bytes(HASH_START, reader->text.data, reader->text.bytes), reader->note_text.data,
                       reader->note_text.bytes);
    return result;
}
/* Makes the sample from the texts of fetch_texts: record, prompt, ids, image path. Returns 0 or an exit code. */
static int read_sample(const struct dataset *dataset, const struct model *model, struct record_reader *reader,
                       const struct entry *entry, struct sample *sample) {
    vp_error error = {VP_OK, -1, "", ""};
    struct text_buffer merged = {NULL, 0, 0};
    vp_result result = VP_OK;
    sample->id = entry->id;
    if (dataset->kind == KIND_VQA) result = merge_note(dataset, reader, entry->note_start >= 0, &merged, &error);
    else if (memchr(reader->text.data, 0, reader->text.bytes))
        result = vp_error_set(&error, VP_ERR_FORMAT, entry->start + (int64_t)strlen(reader->text.data), dataset->path,
                              "the line contains a NUL byte");
    if (result == VP_OK)
        sample->record = dataset->kind == KIND_VQA ? copy_text(merged.data, merged.bytes)
                                                   : copy_text(reader->text.data, reader->text.bytes);
    int code = result == VP_OK ? read_record(dataset, model, &reader->scratch, sample)
                               : complain_result(exit_code_of(result), dataset->path, result, &error);
    free(merged.data);
    return code;
}

/* The image that an entry's reason is about: the first one without a size. NULL: the reason is about the record. */
static const char *unusable_image(const struct entry *entry, const struct sample *sample) {
    int32_t i = 0;
    if (!entry->image_count) return NULL;
    while (i + 1 < entry->image_count && entry->sizes[i].width_px) i++;
    return sample->images.items[i];
}
int dataset_sample(const struct dataset *dataset, const struct model *model, size_t index, struct sample *sample) {
    const struct entry *entry = &dataset->samples[index];
    vp_error error = {VP_OK, -1, "", ""};
    struct record_reader reader = {0};
    uint64_t hash = 0;
    int code;
    memset(sample, 0, sizeof *sample);
    vp_result result = fetch_texts(dataset, &reader, entry, &hash, &error);
    if (result != VP_OK) code = complain_result(exit_code_of(result), dataset->path, result, &error);
    else if (hash != entry->hash)
        code = bad_record(
            dataset->path, entry->id,
            "the record has changed since the sweep was planned: restore the file, or sweep it into another folder");
    else code = read_sample(dataset, model, &reader, entry, sample);
    reader_free(&reader);
    sample->sizes = zeroed((size_t)entry->image_count, sizeof *sample->sizes);
    if (entry->image_count) memcpy(sample->sizes, entry->sizes, (size_t)entry->image_count * sizeof *sample->sizes);
    if (!code && entry->reason) {
        const char *image = unusable_image(entry, sample);
        char reason[LINE_BYTES];
        if (dataset->kind == KIND_LINES)
            snprintf(reason, sizeof reason, "line %lld: %.320s%s%.440s", (long long)entry->id + 1, image ? image : "",
                     image ? ": " : "", dataset->reasons[entry->reason - 1]);
        else
            snprintf(reason, sizeof reason, "%.320s: %.480s", image ? image : dataset->path,
                     dataset->reasons[entry->reason - 1]);
        sample->reason = copy_text(reason, strlen(reason));
    }
    if (!code) return 0;
    sample_free(sample);
    memset(sample, 0, sizeof *sample);
    return code;
}
void images_free(vp_image *images, size_t count) {
    for (size_t i = 0; images && i < count; i++) if (images[i].rgb) vp_image_free(&images[i]);
    free(images);
}
int sample_images(const struct sample *sample, vp_image **images, char *reason, size_t capacity) {
    int code = 0;
    if (*images) return 0;
    *images = zeroed(sample->images.count, sizeof **images);
    for (size_t i = 0; i < sample->images.count && !code; i++) {
        const char *path = sample->images.items[i];
        const struct image_px *size = &sample->sizes[i];
        vp_image *image = &(*images)[i];
        code = load_image(path, image, reason, capacity);
        if (code || (image->width_px == size->width_px && image->height_px == size->height_px)) continue;
        snprintf(reason, capacity, "%.320s: the image has %d x %d pixels, but had %d x %d when the sweep was planned",
                 path, image->width_px, image->height_px, size->width_px, size->height_px);
        code = EXIT_INPUT;
    }
    if (!code) return 0;
    images_free(*images, sample->images.count);
    *images = NULL;
    return code;
}

/* The number of a reason, from 1; equal texts share a number. The last number represents all beyond the limit. */
static int32_t add_reason(struct dataset *dataset, const char *text) {
    int32_t index = 0;
    while (index < dataset->reason_count && strcmp(dataset->reasons[index], text)) index++;
    if (index < dataset->reason_count) return index + 1;
    if (index == REASONS_MAX) return REASONS_MAX;
    if (index == REASONS_MAX - 1) text = "the image cannot be used (the list of reasons is full: look at the file)";
    dataset->reasons[dataset->reason_count++] = copy_text(text, strlen(text));
    return dataset->reason_count;
}
/* Reads the size from the image file's header, after upright rotation. An unusable file gives its entry a reason but
 * does not end the sweep: --retry_failed tries it again. Returns 0, or an exit code if memory is exhausted. */
static int read_image_size(struct dataset *dataset, const char *path, struct entry *entry, struct image_px *size) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, reason[LINE_BYTES];
    size_t bytes = 0;
    vp_result result = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (result == VP_OK)
        result = any_image_size((const uint8_t *)file, bytes, &size->width_px, &size->height_px, &error);
    free(file);
    if (result == VP_OK) return 0;
    if (result == VP_ERR_MEMORY) return complain_result(exit_code_of(result), path, result, &error);
    error_line(reason, sizeof reason, result, &error);
    entry->reason =
        (unsigned char)add_reason(dataset, !strcmp(error.where, path) && error.text[0] ? error.text : reason);
    return 0;
}

/* ---- a whole data set */
/* Finds the kind of the data set, its records and, if there is a field, their strata. */
static vp_result find_records(struct loader *loader, vp_error *error) {
    struct stream_visitor visitor = {"questions", take_question, take_member, loader, 0};
    struct dataset *dataset = loader->dataset;
    vp_result result;
    if (is_folder(dataset->path)) {
        dataset->kind = KIND_FOLDER;
        return find_images(loader, error);
    }
    if ((result = source_open(&dataset->source, dataset->path, error)) != VP_OK) return result;
    dataset->kind = has_objects(&dataset->source, "questions") ? KIND_VQA : KIND_LINES;
    if (dataset->kind == KIND_LINES) {
        if ((result = check_lines(&dataset->source, error)) == VP_OK) result = find_lines(loader, error);
        return result == VP_OK && loader->field ? find_line_strata(loader, error) : result;
    }
    if (!dataset->defaults) dataset->defaults = vp_prompt_dataset_find("coco_2014_vqa");
    result = stream_walk(&dataset->source, &visitor, error);
    if (result == VP_OK) result = check_subtype(dataset, error);
    return result == VP_OK && loader->field ? find_strata(loader, error) : result;
}
/* --prompt, --annotations and --image_dir apply only to some kinds of data: an option without effect is a mistake. */
static int check_data_options(const struct loader *loader) {
    const struct dataset *dataset = loader->dataset;
    const struct data_settings *settings = dataset->settings;
    int caption = dataset->defaults && dataset->defaults->kind == VP_PROMPT_CAPTION;
    if (dataset->kind == KIND_FOLDER && !settings->prompt && !caption)
        return complain(EXIT_USAGE, "--data %s is a folder of images: give the question with -p TEXT", dataset->path);
    if (dataset->kind != KIND_FOLDER && settings->prompt)
        return complain(EXIT_USAGE, "-p needs a folder of images; %s has its own questions", dataset->path);
    if (dataset->kind != KIND_VQA && settings->annotations)
        return complain(EXIT_USAGE, "--annotations needs VQA v2's question file; %s is not one", dataset->path);
    if (dataset->kind == KIND_FOLDER && settings->image_dir)
        return complain(EXIT_USAGE, "--image_dir needs files; --data %s is a folder", dataset->path);
    if (dataset->kind == KIND_FOLDER && loader->field)
        return complain(EXIT_USAGE, "--stratify_by: images from a folder have no field \"%s\"", loader->field);
    if (loader->population && loader->field && !loader->with_field)
        return complain(EXIT_USAGE, "--stratify_by: no record of %s has \"%s\"", dataset->path, loader->field);
    return 0;
}

/* Draws the samples: *chosen becomes int64 [dataset->count], ascending, malloc'ed in both cases. Strata are ordered by
 * their hashes, independent of the order of the records. Returns 0 or an exit code. */
static int choose_records(struct loader *loader, int64_t **chosen) {
    const uint32_t seed = loader->dataset->settings->seed;
    const size_t count = loader->dataset->settings->num_samples;
    uint32_t *stratum, strata = 0;
    uint64_t *values;
    vp_result result;
    if (!loader->field || loader->population > INT32_MAX) {
        *chosen = resize(NULL, loader->population, sizeof **chosen);
        vp_sampler_dataset(seed, loader->population, count, *chosen, &loader->dataset->count);
        return 0;
    }
    values = resize(NULL, loader->population, sizeof *values);
    stratum = resize(NULL, loader->population, sizeof *stratum);
    memcpy(values, loader->strata, loader->population * sizeof *values);
    qsort(values, loader->population, sizeof *values, compare_numbers);
    for (size_t i = 0; i < loader->population; i++)
        if (!i || values[i] != values[strata - 1]) values[strata++] = values[i];
    for (size_t i = 0; i < loader->population; i++) {
        const uint64_t *found = bsearch(&loader->strata[i], values, strata, sizeof *values, compare_numbers);
        stratum[i] = (uint32_t)(found - values);
    }
    *chosen = resize(NULL, loader->population + 2 * (size_t)strata, sizeof **chosen);
    result = choose_stratified(seed, stratum, loader->population, strata, count, *chosen, &loader->dataset->count);
    FREE_ALL(values, stratum);
    return result == VP_OK ? 0 : complain(EXIT_USAGE, "--stratify_by: %s", vp_result_text(result));
}

/* Keeps the positions of the chosen records as dataset->samples and frees all others. */
static int keep_places(struct loader *loader, const int64_t *chosen) {
    struct dataset *dataset = loader->dataset;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    dataset->samples = zeroed(dataset->count, sizeof *dataset->samples);
    for (size_t i = 0; i < dataset->count; i++) {
        const struct place *place = &loader->places[chosen[i]];
        dataset->samples[i].id = place->number;
        dataset->samples[i].start = place->start;
        dataset->samples[i].bytes = place->bytes;
        dataset->samples[i].note_start = -1;
    }
    if (dataset->kind == KIND_VQA) result = find_notes(loader, chosen, &error);
    free(loader->places);
    loader->places = NULL;
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), dataset->path, result, &error);
}
/* The reason if the model cannot take that many images; otherwise NULL. */
static const char *too_many_images(const struct model *model, const struct sample *sample) {
    return model && sample->images.count > 1 ? model->rules->one_image(model) : NULL;
}
/* Reads the sizes of a sample's images. Questions about the same images are next to each other, so their sizes are read
 * once. Stops at an unusable image. Returns 0 or an exit code. */
static int settle_image_sizes(struct dataset *dataset, const struct model *model, const struct sample *sample,
                              const struct sample *before, struct entry *entry) {
    char reason[LINE_BYTES];
    int code = 0;
    entry->image_count = (int32_t)sample->images.count;
    entry->sizes = entry->image_count ? zeroed(sample->images.count, sizeof *entry->sizes) : NULL;
    if (too_many_images(model, sample)) {
        snprintf(reason, sizeof reason, "%zu images, but only one is allowed: %s", sample->images.count,
                 too_many_images(model, sample));
        entry->reason = (unsigned char)add_reason(dataset, reason);
        return 0;
    }
    for (size_t i = 0; i < sample->images.count && !code && !entry->reason; i++) {
        const char *path = sample->images.items[i];
        const int is_same = i < before->images.count && !strcmp(before->images.items[i], path)
                            && (entry[-1].sizes[i].width_px || before->images.count == 1);
        if (!is_same) code = read_image_size(dataset, path, entry, &entry->sizes[i]);
        else if (entry[-1].sizes[i].width_px) entry->sizes[i] = entry[-1].sizes[i];
        else entry->reason = entry[-1].reason;
    }
    return code;
}
/* Adds a sample to the hash of its data set: its record, but nothing of its image file. An unreadable image may be
 * readable when the sweep continues, and the plan is then still the same. */
static uint64_t hash_sample(uint64_t hash, const struct dataset *dataset, const struct sample *sample) {
    /* the location of a VQA v2 image depends on the existing files; its record names it */
    const char *image = dataset->kind == KIND_VQA ? dataset->settings->image_dir : first_image(sample);
    hash = hash_text(hash_text(hash_text(hash, sample->record), sample->prompt), image);
    for (size_t i = 1; dataset->kind == KIND_LINES && i < sample->images.count; i++)
        hash = hash_text(hash, sample->images.items[i]);
    return hash_number(hash, sample->id);
}
/* Counts the unusable samples; *reason is set to the first one's. */
static size_t count_bad(const struct dataset *dataset, const char **reason) {
    size_t count = 0;
    for (size_t i = 0; i < dataset->count; i++) {
        if (!dataset->samples[i].reason) continue;
        if (!count++) *reason = dataset->reasons[dataset->samples[i].reason - 1];
    }
    return count;
}
/* Reports unusable sampled rows: each is a failed sample; the others are measured. */
static void tell_bad_rows(const struct dataset *dataset) {
    const char *reason = NULL;
    const size_t count = count_bad(dataset, &reason);
    if (count)
        complain(0, "%s: %zu of %zu sample%s cannot be used and will fail; the first: %.400s", dataset->path, count,
                 dataset->count, plural_s((int64_t)dataset->count), reason);
}
int dataset_check_usable(const struct dataset *dataset, const struct model *model) {
    const char *reason = NULL;
    struct sample first;
    int code;
    if (!dataset->count || count_bad(dataset, &reason) < dataset->count) return 0;
    if ((code = dataset_sample(dataset, model, 0, &first)) != 0) return code;
    code = complain(EXIT_INPUT, "%s: no sample can be used, so there is nothing to measure; the first: %.400s",
                    dataset->path, first.reason);
    sample_free(&first);
    return code;
}
static void count_answers(struct loader *loader, struct scoring *scoring, const vp_json *json,
                          const struct entry *entry) {
    struct dataset *dataset = loader->dataset;
    const vp_score_sample *sample = &scoring->sample;
    scoring_clear(scoring);
    if (scoring_read(scoring, VP_SCORE_VQA_SEED, json, 0)) return;
    if (sample->reference_count) {
        if (!dataset->most_answers || sample->reference_count < dataset->least_answers)
            dataset->least_answers = sample->reference_count;
        if (sample->reference_count > dataset->most_answers) dataset->most_answers = sample->reference_count;
    }
    dataset->answered += sample->reference_count || (sample->option_count && sample->answer_index >= 0);
    scoring->sample.is_plain_reference = 0;
    loader->few_answers += !entry->reason && has_few_answers(scoring, VP_SCORE_VQA_SEED);
}
/* Lines whose prompts are complete ("prompt_origin"): the file's name says nothing about them, and the first line has
 * the answer length. */
static void take_tokens(struct loader *loader) {
    const vp_json *json = &loader->reader.scratch.json;
    char *origin = loader->dataset->kind == KIND_LINES ? node_text(json, vp_json_get(json, 0, "prompt_origin")) : NULL;
    if (origin && strcmp(origin, "none")) {
        const int64_t tokens = node_int(json, 0, "max_new_tokens", 0);
        loader->new_tokens = tokens > 0 && tokens <= INT32_MAX ? (int32_t)tokens : 0;
        loader->dataset->defaults = NULL;
    }
    free(origin);
}
/* A sample without an image is measured all the same: its times belong to a shorter request. */
static void warn_of_text_samples(const struct loader *loader) {
    if (loader->without && loader->with_images)
        complain(0, "%s: %zu of %zu samples have no image: their requests are text only, and all statistics include "
                    "their times; put them into a separate file to measure them separately",
                 loader->dataset->path, loader->without, loader->with_images + loader->without);
}
/* Samples without an answer are measured, but have no score. */
static void warn_of_unanswered(const struct dataset *dataset) {
    const size_t without = dataset->count - dataset->answered;
    if (without && dataset->answered)
        complain(0, "%s: %zu of %zu samples have no answer to compare with: they are measured but not scored",
                 dataset->path, without, dataset->count);
}
/* Reads every sample once, so that its mistakes are reported before anything is measured, and keeps what a plan needs.
 * Returns 0 or an exit code. */
static int check_samples(struct loader *loader) {
    struct dataset *dataset = loader->dataset;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_prompt_dataset *same = NULL; /* the defaults that all records agree on */
    struct sample sample, before = {0};
    struct scoring scoring = {0};
    const vp_json *json = &loader->reader.scratch.json;
    uint64_t *ids;
    size_t id_count = 0, repeated;
    const vp_json_node *id;
    int code = 0, tells = 0;
    dataset->hash = HASH_START;
    ids = resize(NULL, dataset->count + 1, sizeof *ids);
    for (size_t i = 0; i < dataset->count && !code; i++) {
        struct entry *entry = &dataset->samples[i];
        vp_result result = fetch_texts(dataset, &loader->reader, entry, &entry->hash, &error);
        memset(&sample, 0, sizeof sample);
        code = result == VP_OK ? read_sample(dataset, loader->model, &loader->reader, entry, &sample)
                               : complain_result(exit_code_of(result), dataset->path, result, &error);
        if (!code && interrupted)
            code = complain(EXIT_INTERRUPTED, "interrupted while reading %s; nothing was measured or written",
                            dataset->path);
        if (!code) {
            if (!i) take_tokens(loader);
            same = !i || same == sample.dataset ? sample.dataset : NULL;
            entry->text_count = sample.tokens.count;
            entry->no_bos = sample.tokens.no_bos != 0;
            if (has_value(json, 0, "id") && (id = &json->nodes[vp_json_get(json, 0, "id")]) != NULL)
                ids[id_count++] = hash_bytes(HASH_START, json->text + id->start, (size_t)id->bytes);
            code = settle_image_sizes(dataset, loader->model, &sample, &before, entry);
            count_answers(loader, &scoring, json, entry);
            tells |= too_many_images(loader->model, &sample) != NULL;
            entry->is_text = sample.no_image;
            if (!entry->reason && entry->image_count) loader->with_images++;
            else if (!entry->reason && !entry->is_text) loader->without++;
            dataset->hash = hash_sample(dataset->hash, dataset, &sample);
            show_progress("%s: %zu of %zu samples", dataset->path, i + 1, dataset->count);
        }
        sample_free(&before);
        before = sample;
    }
    sample_free(&before);
    scoring_free(&scoring);
    close_progress();
    if (!code) warn_of_text_samples(loader);
    if (!code) warn_of_unanswered(dataset);
    repeated = count_repeated(ids, id_count);
    free(ids);
    if (!code && repeated)
        complain(0, "%s: %zu id%s more than once: only sample_id distinguishes such records", dataset->path, repeated,
                 repeated == 1 ? " occurs" : "s occur");
    if (!code && tells) tell_bad_rows(dataset);
    /* for a file with an uninformative name */
    if (!dataset->defaults) dataset->defaults = same;
    return code;
}

/* The data set's name in its result files, malloc'ed: `name`, or the last part of the path without its extension. */
static char *task_name(const char *name, const char *path) {
    const char *start, *end = path + strlen(path), *dot;
    if (name) return copy_text(name, strlen(name));
    while (end > path + 1 && end[-1] == '/') end--;
    start = end;
    while (start > path && start[-1] != '/') start--;
    dot = is_folder(path) ? NULL : strrchr(start, '.');
    return copy_text(start, (size_t)((dot && dot > start ? dot : end) - start));
}
/* Rejects names of files that a report would not find or that cannot be written. Returns 0 or EXIT_USAGE. */
static int check_task_name(const char *name) {
    enum { TASK_BYTES_MOST = 150 };
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) <= TASK_BYTES_MOST
               ? 0
               : complain(EXIT_USAGE,
                          "the data set's name, \"%.200s\", becomes part of file names: it must have 1 to %d bytes and "
                          "no slash, and must not begin with a period, since report skips hidden files; choose another "
                          "with --dataset_name", name, TASK_BYTES_MOST);
}
static void set_metric(struct dataset *dataset, vp_score_metric metric, const char *from, const char *detail) {
    dataset->metric = metric;
    snprintf(dataset->metric_from, sizeof dataset->metric_from, "%s%.60s", from, detail);
}
/* The metric of the first line, if the data set's name says none. */
static void settle_line_metric(struct dataset *dataset, const vp_json *json) {
    char *set = node_text(json, vp_json_get(json, 0, "dataset"));
    char *name = node_text(json, vp_json_get(json, 0, "metric"));
    vp_score_metric unknown, metric = dataset->metric;
    struct scoring scoring = {0};
    vp_score_metric_for_dataset("", &unknown);
    if (set && metric == unknown) vp_score_metric_for_dataset(set, &metric);
    if (metric != dataset->metric) set_metric(dataset, metric, "of the first record's \"dataset\" ", set);
    if (metric == unknown && !dataset->defaults && (metric = scoring_default_metric(&scoring, json)) != unknown)
        set_metric(dataset, metric, "the first record's answer is one of its options", "");
    if (name && find_row_metric(name, &metric)) set_metric(dataset, metric, "of the first record's \"metric\"", "");
    else if (name)
        complain(0, "%s: \"metric\" %.60s is not one of vlmprof's rules: answers are scored by %s; vlmprof score "
                    "--scores puts other scores into the results", dataset->path, name,
                 vp_score_metric_of(dataset->metric)->name);
    scoring_free(&scoring);
    FREE_ALL(set, name);
}
/* Determines the metric: --metric, else the "metric" of the first record, else that of the data set's name, else that
 * of the record's "dataset", else mc if the record's answer is one of its options. Returns 0 or an exit code. */
static int settle_metric(const struct model *model, struct dataset *dataset) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_score_metric metric, unknown;
    struct sample sample;
    int code;
    /* command_sweep has checked the word */
    if (dataset->settings->metric && vp_score_metric_find(dataset->settings->metric, &metric) == VP_OK) {
        set_metric(dataset, metric, "of --metric", "");
        return 0;
    }
    const char *name = dataset->defaults ? dataset->defaults->name : dataset->task;
    vp_score_metric_for_dataset("", &unknown);
    vp_score_metric_for_dataset(name, &metric);
    if (metric == unknown && !dataset->defaults) set_metric(dataset, metric, "the default", "");
    else set_metric(dataset, metric, "of the data set ", name);
    if (!dataset->count) return 0;
    if ((code = dataset_sample(dataset, model, 0, &sample)) != 0) return code;
    if (parse_json(&parsed, sample.record, strlen(sample.record), NULL) == VP_OK)
        settle_line_metric(dataset, &parsed.json);
    sample_free(&sample);
    free(parsed.nodes);
    return 0;
}

static void warn_without_images(const struct model *model, const struct dataset *dataset) {
    for (size_t i = 0; i < dataset->count; i++) if (dataset->samples[i].image_count) return;
    if (dataset->count && !(model && model_is_blind(model)))
        complain(0, "%s: no record has an image (the key is \"image\" or \"images\"): all requests are text only",
                 dataset->path);
}
int dataset_load(const struct data_settings *settings, const struct model *model, struct dataset *dataset) {
    vp_error error = {VP_OK, -1, "", ""};
    int64_t *chosen = NULL;
    char line[200];
    struct loader loader = {.model = model, .dataset = dataset, .field = settings->stratify_by};
    dataset->settings = settings;
    dataset->source.fd = dataset->notes.fd = -1;
    dataset->task = task_name(settings->dataset_name, dataset->path);
    if (check_task_name(dataset->task)) return EXIT_USAGE;
    dataset->defaults = vp_prompt_dataset_find(dataset->task);
    for (char *byte = dataset->task; *byte; byte++) if (*byte == '_') *byte = '-';
    vp_result result = find_records(&loader, &error);
    int code =
        result == VP_OK ? check_data_options(&loader) : complain_result(EXIT_INPUT, dataset->path, result, &error);
    if (!code && !loader.population)
        code = complain(EXIT_INPUT, "%s: the file contains no %ss", dataset->path,
                        dataset->kind == KIND_VQA ? "question" : "line");
    dataset->record_count = loader.population;
    if (!code) code = choose_records(&loader, &chosen);
    if (!code) code = keep_places(&loader, chosen);
    FREE_ALL(chosen, loader.places, loader.strata, loader.question_ids, loader.questions);
    if (!code) code = check_samples(&loader);
    reader_free(&loader.reader);
    dataset->new_tokens = settings->new_tokens ? settings->new_tokens
                          : loader.new_tokens  ? loader.new_tokens
                          : dataset->defaults  ? dataset->defaults->max_new_tokens
                                               : 16;
    if (!code) warn_without_images(model, dataset);
    if (!code) code = settle_metric(model, dataset);
    if (!code && loader.few_answers
        && (dataset->metric == VP_SCORE_VQA_SEED || dataset->metric == VP_SCORE_VQA_OFFICIAL))
        complain(0, "%s: %s", dataset->path, few_answers_text(dataset->metric, loader.few_answers, line, sizeof line));
    return code;
}
