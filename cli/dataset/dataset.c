/* dataset.c: data sets: JSONL, VQA v2, folders of images.
 * A data set's file is gone through once to find its records; which ones are sampled is drawn from their number, and
 * only those are read. */
#include "dataset/dataset.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "request/input.h"
#include "request/prompt.h"
#include "tile/image.h"
#include "vlmprof.h"
#include "vlmprof_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dataset_free(dataset *d) {
    source_close(&d->s);
    source_close(&d->notes);
    text_list_free(&d->names);
    for (int32_t i = 0; i < d->reason_count; i++) free(d->reasons[i]);
    free(d->notes_path);
    free(d->subtype);
    free(d->samples);
    free(d->task);
}

/* ---- records: where they stand, and which stratum they belong to */
typedef struct place { int64_t start; uint32_t bytes, number; } place;
typedef struct question_at { int64_t id; size_t index; } question_at; /* index: of a place, later of a sample */
typedef struct reader { parsed scratch, note; text_buffer text, note_text; } reader;
/* what is there while a data set is loaded */
typedef struct loader {
    const model *m;
    dataset *d;
    place *places; size_t population, capacity;
    const char *field;         /* --stratify_by */
    uint64_t *strata;          /* with it, by place */
    size_t with_field;         /* records that have it */
    int64_t *question_ids;     /* DATA_VQA, by place */
    question_at *questions; size_t question_count; /* sorted by id */
    reader r;
} loader;
static void reader_free(reader *r) {
    free(r->scratch.nodes);
    free(r->note.nodes);
    free(r->text.data);
    free(r->note_text.data);
}

static vp_result add_place(loader *l, int64_t start, int64_t bytes, int64_t number, vp_error *error) {
    place *p;
    if (bytes > INT32_MAX || number > UINT32_MAX || l->population == UINT32_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, start, l->d->path, "a record over 2 GiB, or more than 4294967295 records");
    if (l->population == l->capacity) {
        l->capacity = l->capacity * 2 + 1024;
        l->places = resize(l->places, l->capacity, sizeof *l->places);
        if (l->field) l->strata = resize(l->strata, l->capacity, sizeof *l->strata);
        if (l->d->kind == DATA_VQA) l->question_ids = resize(l->question_ids, l->capacity, sizeof *l->question_ids);
    }
    p = &l->places[l->population];
    p->start = start;
    p->bytes = (uint32_t)bytes;
    p->number = (uint32_t)number;
    if (l->field) l->strata[l->population] = 0;
    l->population++;
    return VP_OK;
}
/* a value's stratum: equal texts are equal values; records without the field are a stratum of their own */
static void read_stratum(loader *l, const vp_json *j, size_t index) {
    uint32_t node = l->field ? vp_json_get(j, 0, l->field) : VP_JSON_NONE;
    if (node == VP_JSON_NONE || l->strata[index]) return;
    l->with_field++;
    l->strata[index] = hash_bytes(HASH_START + j->nodes[node].type, j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes) | 1;
}

static vp_result find_lines(loader *l, vp_error *error) {
    const source *s = &l->d->s;
    char *piece = resize(NULL, WINDOW_BYTES, 1);
    int64_t start = 0, offset = 0, number = 0;
    int blank = 1;
    ssize_t n = 0;
    vp_result r = VP_OK;
    while (r == VP_OK && (n = source_read(s, offset, piece, WINDOW_BYTES)) >= 0) {
        for (ssize_t i = 0; r == VP_OK && (i < n || (!n && !i)); i++) {
            if (n && piece[i] != '\n') {
                blank &= piece[i] == ' ' || piece[i] == '\t' || piece[i] == '\r';
                continue;
            }
            if (!blank) r = add_place(l, start, offset + i - start, number, error);
            start = offset + i + 1;
            blank = 1;
            number++;
        }
        if (!n) break;
        offset += n;
    }
    free(piece);
    if (n < 0) return vp_fail(error, VP_ERR_READ, offset, s->path, strerror(errno));
    for (size_t i = 0; r == VP_OK && l->field && i < l->population; i++) {
        vp_error inner = {VP_OK, -1, "", ""};
        r = source_text(s, l->places[i].start, l->places[i].bytes, &l->r.text, error);
        if (r == VP_OK) r = parse_json(&l->r.scratch, l->r.text.data, l->r.text.bytes, &inner);
        if (r != VP_OK && inner.code) return vp_fail(error, r, l->places[i].start + (inner.offset < 0 ? 0 : inner.offset), s->path, inner.text);
        if (r == VP_OK) read_stratum(l, &l->r.scratch.json, i);
    }
    return r;
}

/* VQA v2 has "questions": [{...}]; a line of tally_qa has "questions": ["..."] */
static vp_result see_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    (void)at;
    (void)bytes;
    *(int *)user = node_is(value, 0, VP_JSON_OBJECT);
    return vp_fail(error, VP_ERR_INTERRUPTED, -1, "", "seen");
}
static int is_vqa(const source *s) {
    int seen = 0;
    stream_visitor v = {"questions", see_question, NULL, &seen, 0};
    stream_walk(s, &v, NULL);
    return seen;
}
static vp_result take_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0, image = 0;
    vp_result r;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), &id) != VP_OK
        || vp_json_to_int(value, vp_json_get(value, 0, "image_id"), &image) != VP_OK || image < 0
        || !node_is(value, vp_json_get(value, 0, "question"), VP_JSON_STRING))
        return vp_fail(error, VP_ERR_FORMAT, at, l->d->path, "a question needs \"question\", a whole \"question_id\" and a whole \"image_id\"");
    if ((r = add_place(l, at, (int64_t)bytes, (int64_t)l->population, error)) != VP_OK) return r;
    l->question_ids[l->population - 1] = id;
    read_stratum(l, value, l->population - 1);
    return VP_OK;
}
static vp_result take_member(void *user, const char *key, const vp_json *value) {
    dataset *d = ((loader *)user)->d;
    if (strcmp(key, "data_subtype")) return VP_OK;
    free(d->subtype);
    d->subtype = node_text(value, 0);
    return VP_OK;
}
/* "val2014" from the file, else from its name; test-dev's images are test's. It becomes part of file names: letters and digits only. */
static vp_result check_subtype(dataset *d, vp_error *error) {
    const char *at = strstr(d->path, "mscoco_"), *end = at ? strstr(at, "_questions") : NULL;
    if (!d->subtype && end) d->subtype = copy_text(at + 7, (size_t)(end - at - 7));
    if (d->subtype && !strcmp(d->subtype, "test-dev2015")) memcpy(d->subtype, "test2015", 9);
    for (at = d->subtype; at && isalnum((unsigned char)*at); at++) { }
    if (at && at > d->subtype && !*at) return VP_OK;
    return vp_fail(error, VP_ERR_FORMAT, -1, d->path, "\"data_subtype\" must be a word like val2014: images are named after it");
}
static vp_result find_images(loader *l, vp_error *error) {
    dataset *d = l->d;
    DIR *folder = opendir(d->path);
    vp_result r = VP_OK;
    if (!folder) return vp_fail(error, VP_ERR_READ, -1, d->path, strerror(errno));
    for (struct dirent *e; r == VP_OK && (e = readdir(folder)) != NULL;) {
        char *path = join_path(d->path, e->d_name);
        if (is_image_name(e->d_name) && !is_folder(path) && (r = add_place(l, 0, 0, (int64_t)d->names.count, error)) == VP_OK)
            text_list_copy(&d->names, e->d_name);
        free(path);
    }
    closedir(folder);
    if (r == VP_OK && !d->names.count) return vp_fail(error, VP_ERR_NOT_FOUND, -1, d->path, "there is no image in the folder");
    text_list_sort(&d->names, 0);
    return r;
}

/* ---- annotations of VQA v2 */
/* v2_OpenEnded_mscoco_val2014_questions.json -> v2_mscoco_val2014_annotations.json; NULL: the name is no official one, or nothing is there */
static char *find_annotations(const char *path) {
    static const char word[] = "OpenEnded_", tail[] = "_questions.json";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *open_ended = strstr(name, word), *end = strstr(name, tail);
    text_buffer t = {NULL, 0, 0};
    if (!open_ended || !end || end < open_ended + strlen(word) || end[strlen(tail)]) return NULL;
    text_add(&t, path, (size_t)(open_ended - path));
    text_add(&t, open_ended + strlen(word), (size_t)(end - open_ended) - strlen(word));
    text_add_string(&t, "_annotations.json");
    if (access(t.data, F_OK) == 0) return t.data;
    free(t.data);
    return NULL;
}
static int compare_questions(const void *a, const void *b) {
    const question_at *x = (const question_at *)a, *y = (const question_at *)b;
    return (x->id > y->id) - (x->id < y->id);
}
/* The first of the questions that an annotation belongs to, or the end; an id can stand there more than once. */
static vp_result find_question(const loader *l, const vp_json *value, int64_t at, size_t *first, int64_t *id, vp_error *error) {
    size_t low = 0, high = l->question_count;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), id) != VP_OK)
        return vp_fail(error, VP_ERR_FORMAT, at, "", "an annotation needs a whole \"question_id\"");
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->questions[middle].id < *id) low = middle + 1; else high = middle;
    }
    *first = low;
    return VP_OK;
}
static vp_result take_stratum(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0;
    size_t i = 0;
    vp_result r = find_question(l, value, at, &i, &id, error);
    (void)bytes;
    for (; r == VP_OK && i < l->question_count && l->questions[i].id == id; i++) read_stratum(l, value, l->questions[i].index);
    return r;
}
static vp_result take_annotation(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0;
    size_t i = 0;
    vp_result r = find_question(l, value, at, &i, &id, error);
    for (; r == VP_OK && i < l->question_count && l->questions[i].id == id; i++) { /* of two annotations the last counts */
        l->d->samples[l->questions[i].index].note_start = at;
        l->d->samples[l->questions[i].index].note_bytes = (uint32_t)bytes; /* at most VALUE_BYTES_MAX */
    }
    return r;
}
/* Goes through the annotations, if there are any, with `element`; the file is opened by the first call. */
static vp_result walk_annotations(loader *l, vp_result (*element)(void *, const vp_json *, int64_t, size_t, vp_error *), vp_error *error) {
    dataset *d = l->d;
    const char *named = text_of(d->o, "annotations");
    stream_visitor v = {"annotations", element, NULL, l, 0};
    vp_result r;
    if (!d->notes_path) {
        d->notes_path = named ? copy_text(named, strlen(named)) : find_annotations(d->path);
        if (!d->notes_path) return VP_OK;
        if ((r = source_open(&d->notes, d->notes_path, error)) != VP_OK) return r;
    }
    r = stream_walk(&d->notes, &v, error);
    return r == VP_OK && !v.found ? vp_fail(error, VP_ERR_FORMAT, -1, d->notes_path, "has no \"annotations\"") : r;
}
/* The questions by id: of the places that the samples were drawn as, or (chosen NULL) of all places. */
static void sort_questions(loader *l, const int64_t *chosen, size_t count) {
    l->questions = resize(l->questions, count, sizeof *l->questions);
    l->question_count = count;
    for (size_t i = 0; i < count; i++) {
        l->questions[i].id = l->question_ids[chosen ? (size_t)chosen[i] : i];
        l->questions[i].index = i;
    }
    if (count) qsort(l->questions, count, sizeof *l->questions, compare_questions);
}
static vp_result find_strata(loader *l, vp_error *error) {
    if (l->with_field) return VP_OK; /* the questions have the field */
    sort_questions(l, NULL, l->population);
    return walk_annotations(l, take_stratum, error);
}
static vp_result find_notes(loader *l, const int64_t *chosen, vp_error *error) {
    dataset *d = l->d;
    size_t found = 0;
    vp_result r;
    sort_questions(l, chosen, d->count);
    r = walk_annotations(l, take_annotation, error);
    for (size_t i = 0; i < d->count; i++) found += d->samples[i].note_start >= 0;
    if (r == VP_OK && d->notes_path && !found)
        r = vp_fail(error, VP_ERR_MISMATCH, -1, d->notes_path, "holds no annotation of these questions: it belongs to other ones");
    return r;
}

/* ---- one record -> sample */
static int bad_record(const char *path, int64_t line, const char *text) {
    return complain(EXIT_INPUT, "%s: line %lld: %s", path, (long long)line + 1, text);
}

/* answers: an array of strings, or one string; scoring reads them from the record */
static int check_references(const char *path, const vp_json *j, const sample *a) {
    uint32_t node = vp_json_get(j, 0, "answers");
    int good = !has_value(j, 0, "answers") || node_is(j, node, VP_JSON_STRING) || node_is(j, node, VP_JSON_ARRAY);
    if (good && node_is(j, node, VP_JSON_ARRAY))
        for (uint32_t i = node + 1; i < j->nodes[node].end; i = j->nodes[i].end) good &= node_is(j, i, VP_JSON_STRING);
    return good ? 0 : bad_record(path, a->id, "\"answers\" must be an array of strings");
}

/* Prompt, ids and data set of a parsed record. */
static int read_prompt(const dataset *d, const model *m, const vp_json *j, sample *a) {
    prompt_fields f;
    vp_prompt_info info;
    vp_error error = {VP_OK, -1, "", ""};
    const char *last_question;
    char reason[LINE_BYTES];
    int code = 0;
    vp_result r;
    memset(&f, 0, sizeof f);
    r = read_prompt_fields(j, &f, &error);
    if (r == VP_OK && !f.questions.count && !d->defaults && !prompt_dataset_of(&f, NULL))
        r = vp_fail(&error, VP_ERR_FORMAT, -1, "", "\"question\" must be a string");
    if (r == VP_OK)
        r = build_prompt(&f, d->defaults, text_of(d->o, "style"), number_of(d->o, "seed"), a->id, &a->prompt, &info, &error);
    if (r == VP_OK) {
        a->dataset = prompt_dataset_of(&f, d->defaults);
        a->no_image = !info.has_image;
        a->no_bos = !info.bos_prepended;
        last_question = f.questions.count ? f.questions.items[f.questions.count - 1] : "";
        a->question = copy_text(last_question, strlen(last_question));
        a->style = info.style ? copy_text(info.style, strlen(info.style)) : NULL;
        code = tokenize_prompt(m, a);
    } else {
        error_line(reason, sizeof reason, r, &error);
        code = bad_record(d->path, a->id, reason);
    }
    prompt_fields_free(&f);
    return code;
}
/* Relative names start at --image_dir, else at the data set's own folder. */
static char *image_path_of(const dataset *d, const char *name) {
    const char *path = d->path, *slash = strrchr(path, '/');
    char *folder, *joined;
    if (name[0] == '/') return copy_text(name, strlen(name));
    if (text_of(d->o, "image_dir")) return join_path(text_of(d->o, "image_dir"), name);
    if (d->kind == DATA_FOLDER) return join_path(path, name);
    if (!slash) return copy_text(name, strlen(name));
    folder = copy_text(path, (size_t)(slash - path) + 1);
    joined = join_path(folder, name);
    free(folder);
    return joined;
}
/* COCO_val2014_000000262148.jpg, in the folder or in its val2014 */
static char *official_image(const dataset *d, int64_t image_id) {
    size_t capacity = strlen(d->subtype) + 48;
    char *name = resize(NULL, capacity, 1), *inside, *first, *second;
    snprintf(name, capacity, "COCO_%s_%012lld.jpg", d->subtype, (long long)image_id);
    first = image_path_of(d, name);
    inside = join_path(d->subtype, name);
    second = image_path_of(d, inside);
    free(name);
    free(inside);
    if (access(first, F_OK) && access(second, F_OK) == 0) {
        free(first);
        return second;
    }
    free(second);
    return first;
}

/* The sample's text, which stays for the metadata -> prompt, references, image. */
static int read_record(const dataset *d, const model *m, parsed *scratch, sample *a) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &scratch->json;
    char *name, reason[LINE_BYTES];
    int64_t image_id = 0;
    uint32_t node;
    int code;
    vp_result r = parse_json(scratch, a->record, strlen(a->record), &error);
    if (r != VP_OK || !node_is(j, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "%s (byte %lld)", r == VP_OK ? "want one JSON object" : error.text,
                 (long long)(error.offset < 0 ? 0 : error.offset));
        return bad_record(d->path, a->id, reason);
    }
    if ((code = read_prompt(d, m, j, a)) != 0 || (code = check_references(d->path, j, a)) != 0) return code;
    if (d->kind == DATA_VQA) {
        vp_json_to_int(j, vp_json_get(j, 0, "image_id"), &image_id); /* checked when it was found */
        a->image_path = official_image(d, image_id);
        return 0;
    }
    node = vp_json_get(j, 0, "image");
    if (a->no_image || node == VP_JSON_NONE || node_is(j, node, VP_JSON_NULL)) return 0;
    if ((name = node_text(j, node)) == NULL) return bad_record(d->path, a->id, "\"image\" must be a string");
    a->image_path = image_path_of(d, name);
    free(name);
    return 0;
}

/* "answers": of an annotation, the texts alone */
static vp_result put_answers(vp_json_writer *w, const vp_json *note, const char *key, vp_error *error) {
    uint32_t answers = vp_json_get(note, 0, "answers");
    if (!node_is(note, answers, VP_JSON_ARRAY)) return vp_fail(error, VP_ERR_FORMAT, -1, "annotations", "\"answers\" must be an array");
    vp_json_key(w, "answers");
    vp_json_begin_array(w);
    for (uint32_t i = answers + 1; i < note->nodes[answers].end; i = note->nodes[i].end) {
        uint32_t text = node_is(note, i, VP_JSON_OBJECT) ? vp_json_get(note, i, key) : VP_JSON_NONE;
        if (text == VP_JSON_NONE && node_is(note, i, VP_JSON_OBJECT)) text = vp_json_get(note, i, "answer");
        if (!node_is(note, text, VP_JSON_STRING)) return vp_fail(error, VP_ERR_FORMAT, -1, "annotations", "each of \"answers\" needs a text");
        json_node(w, note, text);
    }
    vp_json_end_array(w);
    return VP_OK;
}
/* Question and annotation as one record, as a line of JSONL would have it: "id" first, answers as strings. */
static vp_result merge_note(const dataset *d, reader *x, int has_note, text_buffer *out, vp_error *error) {
    const char *answer = d->defaults && !strcmp(d->defaults->name, "okvqa") ? "raw_answer" : "answer"; /* as the reference scores OK-VQA */
    const vp_json *j = &x->scratch.json, *n = &x->note.json;
    vp_json_writer w;
    vp_result r = parse_json(&x->scratch, x->text.data, x->text.bytes, error);
    if (r == VP_OK && has_note) r = parse_json(&x->note, x->note_text.data, x->note_text.bytes, error);
    if (r != VP_OK) return r;
    vp_json_writer_init_sink(&w, text_sink, out, 0);
    vp_json_begin_object(&w);
    vp_json_key(&w, "id");
    json_node(&w, j, vp_json_get(j, 0, "question_id"));
    for (uint32_t i = 1; i < j->node_count; i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        if (key && strcmp(key, "id") && (strcmp(key, "answers") || !has_note)) {
            vp_json_key(&w, key);
            json_node(&w, j, i + 1);
        }
        free(key);
    }
    if (has_note && (r = put_answers(&w, n, answer, error)) != VP_OK) return r;
    for (uint32_t i = 1; has_note && i < n->node_count; i = n->nodes[i + 1].end) {
        char *key = node_text(n, i);
        if (key && strcmp(key, "id") && strcmp(key, "answers") && vp_json_get(j, 0, key) == VP_JSON_NONE) {
            vp_json_key(&w, key);
            json_node(&w, n, i + 1);
        }
        free(key);
    }
    vp_json_end_object(&w);
    return vp_json_finish(&w);
}
/* an image of a folder and the one question */
static void make_folder_record(const dataset *d, const char *name, text_buffer *out) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, out, 0);
    vp_json_begin_object(&w);
    put_text(&w, "id", name);
    put_text(&w, "image", name);
    if (text_of(d->o, "prompt")) put_text(&w, "question", text_of(d->o, "prompt"));
    vp_json_end_object(&w);
    vp_json_finish(&w);
}
/* What stands at an entry's places -> x->text and x->note_text, and the hash of both. */
static vp_result fetch_texts(const dataset *d, reader *x, const entry *e, uint64_t *hash, vp_error *error) {
    vp_result r = VP_OK;
    x->text.bytes = x->note_text.bytes = 0;
    if (d->kind == DATA_FOLDER) make_folder_record(d, d->names.items[e->id], &x->text);
    else r = source_text(&d->s, e->start, e->bytes, &x->text, error);
    if (r == VP_OK && e->note_start >= 0) r = source_text(&d->notes, e->note_start, e->note_bytes, &x->note_text, error);
    *hash = hash_bytes(hash_bytes(HASH_START, x->text.data, x->text.bytes), x->note_text.data, x->note_text.bytes);
    return r;
}
/* The fetched texts -> the sample: record, prompt, ids, image path. 0 or an exit code, after a message. */
static int read_sample(const dataset *d, const model *m, reader *x, const entry *e, sample *a) {
    vp_error error = {VP_OK, -1, "", ""};
    text_buffer merged = {NULL, 0, 0};
    vp_result r = VP_OK;
    int code;
    a->id = e->id;
    if (d->kind == DATA_VQA) r = merge_note(d, x, e->note_start >= 0, &merged, &error);
    else if (memchr(x->text.data, 0, x->text.bytes))
        r = vp_fail(&error, VP_ERR_FORMAT, e->start + (int64_t)strlen(x->text.data), d->path, "a NUL byte stands in it");
    if (r == VP_OK) a->record = d->kind == DATA_VQA ? copy_text(merged.data, merged.bytes) : copy_text(x->text.data, x->text.bytes);
    code = r == VP_OK ? read_record(d, m, &x->scratch, a) : complain_result(exit_code_of(r), d->path, r, &error);
    free(merged.data);
    return code;
}

int dataset_sample(const dataset *d, const model *m, size_t index, sample *a) {
    const entry *e = &d->samples[index];
    vp_error error = {VP_OK, -1, "", ""};
    reader x;
    uint64_t hash = 0;
    vp_result r;
    int code;
    memset(a, 0, sizeof *a);
    memset(&x, 0, sizeof x);
    r = fetch_texts(d, &x, e, &hash, &error);
    if (r != VP_OK) code = complain_result(exit_code_of(r), d->path, r, &error);
    else if (hash != e->hash)
        code = bad_record(d->path, e->id, "the record changed since the sweep was planned: put the file back, or sweep it into another folder");
    else code = read_sample(d, m, &x, e, a);
    reader_free(&x);
    a->width_px = e->width_px;
    a->height_px = e->height_px;
    if (!code && e->reason) {
        char reason[LINE_BYTES];
        snprintf(reason, sizeof reason, "%.320s: %.480s", a->image_path, d->reasons[e->reason - 1]);
        a->reason = copy_text(reason, strlen(reason));
    }
    if (!code) return 0;
    sample_free(a);
    memset(a, 0, sizeof *a);
    return code;
}
int sample_image(const sample *a, vp_image *image, char *reason, size_t capacity) {
    int code = load_image(a->image_path, image, reason, capacity);
    if (code || (image->width_px == a->width_px && image->height_px == a->height_px)) return code;
    snprintf(reason, capacity, "%.320s: the image has %d x %d pixels, and had %d x %d when the sweep was planned", a->image_path, image->width_px,
             image->height_px, a->width_px, a->height_px);
    vp_image_free(image);
    return EXIT_INPUT;
}

/* The number of a reason, equal texts once; the last place stands for all that find no room. */
static int32_t add_reason(dataset *d, const char *text) {
    int32_t i = 0;
    while (i < d->reason_count && strcmp(d->reasons[i], text)) i++;
    if (i < d->reason_count) return i + 1;
    if (i == REASONS_MAX) return REASONS_MAX;
    if (i == REASONS_MAX - 1) text = "the image cannot be used (the list of reasons is full: look at the file)";
    d->reasons[d->reason_count++] = copy_text(text, strlen(text));
    return d->reason_count;
}
/* The upright size from the file's header; a file that cannot be used gives its sample a reason, and does not end the sweep. */
static void read_image_size(dataset *d, const char *path, entry *e) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, reason[LINE_BYTES];
    size_t bytes = 0;
    vp_result r = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &e->width_px, &e->height_px, &error);
    free(file);
    if (r == VP_OK) return;
    error_line(reason, sizeof reason, r, &error);
    e->reason = (unsigned char)add_reason(d, !strcmp(error.where, path) && error.text[0] ? error.text : reason);
}

/* ---- a whole data set */
static vp_result find_records(loader *l, vp_error *error) {
    stream_visitor v = {"questions", take_question, take_member, l, 0};
    dataset *d = l->d;
    vp_result r;
    if (is_folder(d->path)) {
        d->kind = DATA_FOLDER;
        return find_images(l, error);
    }
    if ((r = source_open(&d->s, d->path, error)) != VP_OK) return r;
    d->kind = is_vqa(&d->s) ? DATA_VQA : DATA_LINES;
    if (d->kind == DATA_LINES) return find_lines(l, error);
    if (!d->defaults) d->defaults = vp_prompt_dataset_find("coco_2014_vqa");
    r = stream_walk(&d->s, &v, error);
    if (r == VP_OK) r = check_subtype(d, error);
    return r == VP_OK && l->field ? find_strata(l, error) : r;
}
/* --prompt, --annotations, --image_dir go with some kinds of data only: a word that has no effect is a mistake. */
static int check_data_options(const loader *l) {
    const dataset *d = l->d;
    const options *o = d->o;
    int caption = d->defaults && d->defaults->kind == VP_PROMPT_CAPTION;
    if (d->kind == DATA_FOLDER && !given(o, "prompt") && !caption)
        return complain(EXIT_USAGE, "--data %s is a folder of images: what is asked of each? -p TEXT", d->path);
    if (d->kind != DATA_FOLDER && given(o, "prompt"))
        return complain(EXIT_USAGE, "-p goes with a folder of images; %s has its own questions", d->path);
    if (d->kind != DATA_VQA && given(o, "annotations"))
        return complain(EXIT_USAGE, "--annotations goes with VQA v2's question file; %s is none", d->path);
    if (d->kind == DATA_FOLDER && given(o, "image_dir"))
        return complain(EXIT_USAGE, "--image_dir goes with files; --data %s is a folder", d->path);
    if (d->kind == DATA_FOLDER && l->field) return complain(EXIT_USAGE, "--stratify_by: images of a folder have no field \"%s\"", l->field);
    if (l->population && l->field && !l->with_field)
        return complain(EXIT_USAGE, "--stratify_by: no record of %s has \"%s\"", d->path, l->field);
    return 0;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
/* Draws the samples: *chosen int64 [d->count], ascending, malloc'ed. Strata are numbered by their hashes, which no order of records moves. */
static int choose_records(loader *l, int64_t **chosen) {
    const options *o = l->d->o;
    uint32_t seed = (uint32_t)number_of(o, "seed"), *stratum, strata = 0;
    size_t count = (size_t)number_of(o, "num_samples");
    uint64_t *values;
    vp_result r;
    if (!l->field || l->population > INT32_MAX) {
        *chosen = resize(NULL, l->population, sizeof **chosen);
        vp_sampler_dataset(seed, l->population, count, *chosen, &l->d->count);
        return 0;
    }
    values = resize(NULL, l->population, sizeof *values);
    stratum = resize(NULL, l->population, sizeof *stratum);
    memcpy(values, l->strata, l->population * sizeof *values);
    qsort(values, l->population, sizeof *values, compare_numbers);
    for (size_t i = 0; i < l->population; i++) if (!i || values[i] != values[strata - 1]) values[strata++] = values[i];
    for (size_t i = 0; i < l->population; i++) {
        const uint64_t *found = bsearch(&l->strata[i], values, strata, sizeof *values, compare_numbers);
        stratum[i] = (uint32_t)(found - values);
    }
    *chosen = resize(NULL, l->population + 2 * (size_t)strata, sizeof **chosen);
    r = vp_sampler_stratified(seed, stratum, l->population, strata, count, *chosen, &l->d->count);
    free(values);
    free(stratum);
    return r == VP_OK ? 0 : complain(EXIT_USAGE, "--stratify_by: %s", vp_result_text(r));
}

/* Places of the drawn records; those of all others are forgotten. */
static int keep_places(loader *l, const int64_t *chosen) {
    dataset *d = l->d;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    d->samples = zeroed(d->count, sizeof *d->samples);
    for (size_t i = 0; i < d->count; i++) {
        const place *p = &l->places[chosen[i]];
        d->samples[i].id = p->number;
        d->samples[i].start = p->start;
        d->samples[i].bytes = p->bytes;
        d->samples[i].note_start = -1;
    }
    if (d->kind == DATA_VQA) r = find_notes(l, chosen, &error);
    free(l->places);
    l->places = NULL;
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), d->path, r, &error);
}
/* Every sample is read once, so that what is wrong with it is told before anything is measured; what a plan needs stays. */
static int check_samples(loader *l) {
    dataset *d = l->d;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_prompt_dataset *same = NULL;
    sample a, before; /* questions about an image stand together: its size is read once */
    int code = 0;
    d->hash = HASH_START;
    memset(&before, 0, sizeof before);
    for (size_t i = 0; i < d->count && !code; i++) {
        entry *e = &d->samples[i];
        vp_result r = fetch_texts(d, &l->r, e, &e->hash, &error);
        memset(&a, 0, sizeof a);
        code = r == VP_OK ? read_sample(d, l->m, &l->r, e, &a) : complain_result(exit_code_of(r), d->path, r, &error);
        if (!code && interrupted) code = complain(EXIT_INTERRUPTED, "interrupted while %s was read; nothing was measured or written", d->path);
        if (!code) {
            same = !i || same == a.dataset ? a.dataset : NULL;
            e->text_count = a.text_count;
            e->no_bos = a.no_bos != 0;
            e->has_image = a.image_path != NULL;
            if (a.image_path && before.image_path && !strcmp(before.image_path, a.image_path)) {
                e->width_px = e[-1].width_px;
                e->height_px = e[-1].height_px;
                e->reason = e[-1].reason;
            } else if (a.image_path) read_image_size(d, a.image_path, e);
            d->hash = hash_text(hash_text(hash_text(d->hash, a.record), a.prompt), a.image_path);
            d->hash = hash_number(hash_number(hash_number(d->hash, a.id), e->width_px), e->height_px);
            show_progress("%s: %zu of %zu samples", d->path, i + 1, d->count);
        }
        sample_free(&before);
        before = a;
    }
    sample_free(&before);
    close_progress();
    if (!d->defaults) d->defaults = same; /* defaults that the records agree on count for a file whose name says nothing */
    return code;
}

/* The data set's name for its result files: --dataset_name, or the last part of the path without its ending. */
static char *task_name(const options *o, const char *path) {
    const char *name = text_of(o, "dataset_name");
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    if (!name) {
        const char *dot, *start = path + bytes;
        while (start > path && start[-1] != '/') start--;
        dot = is_folder(path) ? NULL : strrchr(start, '.');
        return copy_text(start, dot && dot > start ? (size_t)(dot - start) : (size_t)(path + bytes - start));
    }
    return copy_text(name, strlen(name));
}
/* --metric, else the metric of the data set's name, else of the name that its first record has. 0 or an exit code. */
static int settle_metric(const model *m, dataset *d) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    vp_score_metric unknown;
    char *name = NULL;
    sample a;
    int code = 0;
    if (text_of(d->o, "metric") && vp_score_metric_find(text_of(d->o, "metric"), &d->metric) == VP_OK) return 0; /* checked before */
    vp_score_metric_for_dataset("", &unknown);
    vp_score_metric_for_dataset(d->defaults ? d->defaults->name : d->task, &d->metric);
    if (d->metric != unknown || !d->count) return 0;
    if ((code = dataset_sample(d, m, 0, &a)) != 0) return code;
    if (parse_json(&p, a.record, strlen(a.record), NULL) == VP_OK && (name = node_text(&p.json, vp_json_get(&p.json, 0, "dataset"))) != NULL)
        vp_score_metric_for_dataset(name, &d->metric);
    sample_free(&a);
    free(name);
    free(p.nodes);
    return 0;
}

int dataset_load(const options *o, const model *m, dataset *d) {
    vp_error error = {VP_OK, -1, "", ""};
    loader l;
    int64_t *chosen = NULL;
    vp_result r;
    int code;
    memset(&l, 0, sizeof l);
    l.m = m;
    l.d = d;
    l.field = text_of(o, "stratify_by");
    d->o = o;
    d->s.fd = d->notes.fd = -1;
    d->task = task_name(o, d->path);
    d->defaults = vp_prompt_dataset_find(d->task);
    for (char *c = d->task; *c; c++) if (*c == '_') *c = '-';
    r = find_records(&l, &error);
    code = r == VP_OK ? check_data_options(&l) : complain_result(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, d->path, r, &error);
    if (!code && !l.population) code = complain(EXIT_INPUT, "%s: there is no %s in it", d->path, d->kind == DATA_VQA ? "question" : "line");
    if (!code) code = choose_records(&l, &chosen);
    if (!code) code = keep_places(&l, chosen);
    free(chosen);
    free(l.places);
    free(l.strata);
    free(l.question_ids);
    free(l.questions);
    if (!code) code = check_samples(&l);
    reader_free(&l.r);
    d->new_tokens = given(o, "max_new_tokens") ? (int32_t)number_of(o, "max_new_tokens") : d->defaults ? d->defaults->max_new_tokens : 16;
    return code ? code : settle_metric(m, d);
}
