/* example.c: a sample as understood by an evaluation tool: pictures, members, JSON. */
#include "formats/example.h"

#include "base/files.h"
#include "base/options.h"
#include "formats/picture_header.h"
#include "base/sha256.h"
#include "vlmprof_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void example_clear(struct example *example) {
    struct text_buffer id = example->id;
    struct member *members = example->members;
    struct picture *pictures = example->pictures;
    struct part *parts = example->parts;
    char **texts[] = {&example->question, &example->prompt,      &example->hint,  &example->unit,
                      &example->question_type, &example->answer_type, &example->answer, &example->group};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(*texts[i]);
    for (size_t i = 0; i < OPTIONS_MAX; i++) free(example->options[i]);
    for (size_t i = 0; i < example->picture_count; i++) {
        FREE_ALL(pictures[i].path, pictures[i].file);
    }
    for (size_t i = 0; i < example->part_count; i++) free(parts[i].text);
    for (size_t i = 0; i < example->member_count; i++) free(members[i].json.data);
    text_list_free(&example->answers);
    memset(example, 0, sizeof *example);
    example->id = id;
    example->id.bytes = 0;
    example->members = members;
    example->pictures = pictures;
    example->parts = parts;
    example->precision = INT64_MIN;
}
void example_free(struct example *example) {
    example_clear(example);
    FREE_ALL(example->id.data, example->members, example->pictures, example->parts);
    memset(example, 0, sizeof *example);
}
void example_fail(struct example *example, const char *format, ...) {
    va_list arguments;
    if (example->reason[0]) return;
    va_start(arguments, format);
    vsnprintf(example->reason, sizeof example->reason, format, arguments);
    va_end(arguments);
}
struct picture *example_add_picture(struct example *example) {
    example->pictures = resize(example->pictures, example->picture_count + 1, sizeof *example->pictures);
    struct picture *picture = &example->pictures[example->picture_count++];
    memset(picture, 0, sizeof *picture);
    return picture;
}
static struct part *add_part(struct example *example) {
    example->parts = resize(example->parts, example->part_count + 1, sizeof *example->parts);
    memset(&example->parts[example->part_count], 0, sizeof *example->parts);
    return &example->parts[example->part_count++];
}
void example_add_text(struct example *example, const char *text, size_t bytes) {
    if (bytes) add_part(example)->text = copy_text(text, bytes);
}
void example_add_place(struct example *example, size_t picture) { add_part(example)->picture = picture; }

/* ---- further members */
/* A writer of a new member's value, valid until the next one is added. */
static vp_json_writer add_member(struct example *example, const char *key) {
    vp_json_writer writer;
    example->members = resize(example->members, example->member_count + 1, sizeof *example->members);
    example->members[example->member_count] = (struct member){key, {NULL, 0, 0}};
    vp_json_writer_init_sink(&writer, text_sink, &example->members[example->member_count++].json, 0);
    return writer;
}
void example_more_text(struct example *example, const char *key, const char *text) {
    vp_json_writer writer = add_member(example, key);
    if (text) json_lossy(&writer, text);
    else vp_json_null(&writer);
}
void example_more_node(struct example *example, const char *key, const vp_json *json, uint32_t node) {
    vp_json_writer writer = add_member(example, key);
    if (node == VP_JSON_NONE) vp_json_null(&writer);
    else json_compact(&writer, json, node, NULL, NULL);
}
void example_more_int(struct example *example, const char *key, int64_t value) {
    vp_json_writer writer = add_member(example, key);
    vp_json_int(&writer, value);
}
void example_more_list(struct example *example, const char *key, const struct text_list *list) {
    vp_json_writer writer = add_member(example, key);
    json_texts(&writer, list);
}

/* ---- pictures */
static char *found_at(const char *folder, const char *name) {
    char *path = name[0] == '/' ? copy_text(name, strlen(name)) : join_path(folder, name);
    if (vp_path_kind(path) == VP_PATH_FILE) return path;
    free(path);
    return NULL;
}
/* Looks for the file of a picture: by its whole name, then by only its last part. */
static char *find_picture(const char *name, const char *folder, const char *image_dir) {
    const char *last = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    char *path = NULL;
    if (image_dir && (path = found_at(image_dir, name)) == NULL) path = found_at(image_dir, last);
    if (!path) path = found_at(folder, name);
    if (!path && last != name) path = found_at(folder, last);
    return path;
}
void example_see_pictures(struct example *example, const struct row *row, const char *folder, const char *image_dir,
                          int wants_hash) {
    for (size_t i = 0; i < example->picture_count; i++) {
        struct picture *picture = &example->pictures[i];
        vp_error error = {VP_OK, -1, "", ""};
        const unsigned char *data;
        char *file = NULL;
        if (picture->path) {
            if ((picture->file = find_picture(picture->path, folder, image_dir)) == NULL) {
                example_fail(example, "picture \"%.120s%s\" was not found in %.150s%s%.150s%s", picture->path,
                             strlen(picture->path) > 120 ? ".." : "",
                             image_dir ? image_dir : folder, image_dir ? " and in " : "", image_dir ? folder : "",
                             image_dir ? "" : "; use --image_dir DIR for another folder");
                continue;
            }
            if (vp_file_read(picture->file, IMAGE_FILE_BYTES_MAX, &file, &picture->bytes, &error) != VP_OK) {
                example_fail(example, "picture \"%.200s\": %.300s", picture->file, error.text);
                continue;
            }
            data = (const unsigned char *)file;
        } else {
            data = row->blobs[picture->blob].data;
            picture->bytes = row->blobs[picture->blob].bytes;
        }
        picture->format = picture_format(data, picture->bytes);
        if (!picture->format)
            example_fail(example, "picture %zu%s%.200s is not a PNG, JPEG, WebP, GIF, BMP or TIFF file", i + 1,
                         picture->path ? " " : "", picture->path ? picture->path : "");
        else if (!picture_size(data, picture->bytes, &picture->width_px, &picture->height_px))
            example_fail(example, "picture %zu%s%.200s has a truncated or damaged header", i + 1,
                         picture->path ? " " : "", picture->path ? picture->path : "");
        if (wants_hash) sha256_text(data, picture->bytes, picture->sha256);
        free(file);
    }
}

/* ---- JSON */
static void put_picture(vp_json_writer *writer, const struct picture *picture) {
    vp_json_begin_object(writer);
    if (picture->path && !picture->hides_path) put_text(writer, "path", picture->path);
    PUT(writer, KEY("sha256", picture->sha256), KEY("bytes", (int64_t)picture->bytes), KEY("width", picture->width_px),
        KEY("height", picture->height_px), KEY("format", picture->format), END_OBJECT);
}
static void put_parts(vp_json_writer *writer, const struct example *example) {
    PUT(writer, KEY_ARRAY("content"));
    for (size_t i = 0; i < example->part_count; i++) {
        vp_json_begin_object(writer);
        if (example->parts[i].text) put_text(writer, "text", example->parts[i].text);
        else put_int(writer, "image", (int64_t)example->parts[i].picture);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}
static void put_options(vp_json_writer *writer, const struct example *example) {
    int count = 0;
    for (int i = 0; i < OPTIONS_MAX; i++) count += example->options[i] != NULL;
    if (example->hides_options || (!count && !example->shows_options)) return;
    vp_json_key(writer, "options");
    if (!count) {
        vp_json_null(writer);
        return;
    }
    vp_json_begin_object(writer);
    for (int i = 0; i < OPTIONS_MAX; i++) {
        char letter[2] = {(char)('A' + i), 0};
        if (example->options[i]) put_text(writer, letter, example->options[i]);
    }
    vp_json_end_object(writer);
}
void example_put_id(vp_json_writer *writer, const struct example *example) {
    if (example->id.bytes) {
        vp_json_key(writer, "id");
        vp_json_raw(writer, example->id.data, example->id.bytes);
    }
}
void example_put_answer(vp_json_writer *writer, const struct example *example) {
    if (example->answer) put_text(writer, "answer", example->answer);
    if (example->has_answers) put_list(writer, "answers", &example->answers);
}
void example_put_members(vp_json_writer *writer, const struct example *example, const char *without) {
    for (size_t i = 0; i < example->member_count; i++) {
        if (has_word(without, example->members[i].key)) continue;
        vp_json_key(writer, example->members[i].key);
        vp_json_raw(writer, example->members[i].json.data, example->members[i].json.bytes);
    }
}
void example_put_options(vp_json_writer *writer, const struct example *example, const char *key) {
    int last = OPTIONS_MAX;
    while (last && !example->options[last - 1]) last--;
    if (!last) return;
    PUT(writer, KEY_ARRAY(key));
    for (int i = 0; i < last; i++) json_lossy(writer, example->options[i] ? example->options[i] : "");
    vp_json_end_array(writer);
}
void example_prompt(const struct example *example, struct text_buffer *text) {
    text_add_string(text, example->prompt ? example->prompt : "");
    for (size_t i = 0; !example->prompt && i < example->part_count; i++)
        if (example->parts[i].text) text_add_string(text, example->parts[i].text);
}
void example_put_places(vp_json_writer *writer, const struct example *example) {
    size_t bytes = 0, places = 0, texts = 0, is_between = 0;
    for (size_t i = 0; i < example->part_count; i++) {
        places += !example->parts[i].text;
        texts += example->parts[i].text != NULL;
        is_between |= texts && !example->parts[i].text;
    }
    if (example->prompt || !is_between || places < 2 || places != example->picture_count) return;
    PUT(writer, KEY_ARRAY("image_places"));
    for (size_t i = 0; i < example->part_count; i++)
        if (example->parts[i].text) bytes += strlen(example->parts[i].text);
        else vp_json_int(writer, (int64_t)bytes);
    vp_json_end_array(writer);
}
void example_put(vp_json_writer *writer, const struct example *example) {
    example_put_id(writer, example);
    if (!example->hides_pictures) {
        vp_json_key(writer, "images");
        if (example->reason[0]) vp_json_null(writer);
        else {
            vp_json_begin_array(writer);
            for (size_t i = 0; i < example->picture_count; i++) put_picture(writer, &example->pictures[i]);
            vp_json_end_array(writer);
        }
    }
    if (example->part_count) put_parts(writer, example);
    if (example->shows_raw) put_text(writer, "question_raw", example->question);
    if (example->shows_prompt || (example->prompt && !example->part_count))
        put_text(writer, "question", example->prompt);
    put_options(writer, example);
    example_put_answer(writer, example);
    put_text(writer, "metric", example->metric);
    example_put_members(writer, example, "");
    if (example->reason[0]) {
        vp_json_key(writer, "error");
        json_lossy(writer, example->reason);
    }
}
