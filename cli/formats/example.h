/* example.h: a sample as understood by an evaluation tool: the input, the correct answer, and the rule. A row of any
 * format becomes an example. Prompts are built from it, and it is written as JSON. */
#ifndef VLMPROF_CLI_EXAMPLE_H
#define VLMPROF_CLI_EXAMPLE_H
#include "base/memory.h"
#include "formats/row.h"
#include "formats/tasks.h"

/* A picture of an example: bytes inside the row, or a file. */
struct picture {
    char *path;       /* name in the data, relative to them; NULL if inside */
    char *file;       /* path of the file found; NULL if inside */
    int hides_path;   /* 1 if the data have a URL instead of a path */
    size_t blob;      /* index in row.blobs, without a path */
    char sha256[65];
    size_t bytes;
    int32_t width_px, height_px;
    const char *format; /* "PNG" .. */
};
/* A part of the message: a text, or the picture at an index. */
struct part { char *text; size_t picture; };

/* An additional member, as JSON. */
struct member { const char *key; struct text_buffer json; };

enum { OPTIONS_MAX = 26, REASON_BYTES = 640 };
struct example {
    struct text_buffer id;             /* JSON */
    char *question;                    /* unchanged from the data */
    char *prompt;                      /* sent after the pictures; NULL if the parts contain it */
    char *hint, *unit, *question_type, *answer_type, *answer;
    char *group;                       /* group of circular rows (g_index); NULL if the index gives it */
    char *options[OPTIONS_MAX];        /* options by letter; NULL if there is no such option */
    struct text_list answers;
    int has_answers;                   /* 1 if answers is a list, perhaps an empty one */
    int64_t precision;                 /* for MathVista; INT64_MIN if none */
    struct picture *pictures; size_t picture_count;
    struct part *parts; size_t part_count; /* only if texts and pictures alternate */
    const char *metric;                /* NULL if there is nothing to score by */
    int shows_raw, shows_options, shows_prompt; /* 1 if the member is always written, as null without a value */
    int hides_pictures, hides_options;          /* 1 if other members contain them */
    struct member *members; size_t member_count; /* further members */
    char reason[REASON_BYTES];         /* reason if it cannot be used; otherwise "" */
};

void example_clear(struct example *example);
void example_free(struct example *example);

/* Sets the reason, unless there is one. */
void example_fail(struct example *example, const char *format, ...);
struct picture *example_add_picture(struct example *example); /* zeroed; valid until another is added */
void example_add_text(struct example *example, const char *text, size_t bytes); /* a part; an empty text adds nothing */
void example_add_place(struct example *example, size_t picture);

/* Adds a member: a text or null, a node of JSON, a number, a list. The key is static. */
void example_more_text(struct example *example, const char *key, const char *text);
void example_more_node(struct example *example, const char *key, const vp_json *json, uint32_t node);
void example_more_int(struct example *example, const char *key, int64_t value);
void example_more_list(struct example *example, const char *key, const struct text_list *list);

/* Sets example->prompt. */
void example_ask(struct example *example, enum prompt_form form);

/* Finds size, format and hash of every picture. A path is searched in `folder` and, if not NULL, in image_dir. Failures
 * become the example's reason. */
void example_see_pictures(struct example *example, const struct row *row, const char *folder, const char *image_dir,
                          int wants_hash);

/* Writes the members of an example into the open object. */
void example_put(vp_json_writer *writer, const struct example *example);
/* Parts of that: the id; answer and answers, if there are any; the other members, except those with some names. */
void example_put_id(vp_json_writer *writer, const struct example *example);
void example_put_answer(vp_json_writer *writer, const struct example *example);
void example_put_members(vp_json_writer *writer, const struct example *example, const char *without);
/* Writes the options in the order of their letters, with an empty text for a gap; nothing without options. */
void example_put_options(vp_json_writer *writer, const struct example *example, const char *key);
/* Appends the prompt, or the texts of the parts. */
void example_prompt(const struct example *example, struct text_buffer *text);
/* Writes "image_places": the offsets of pictures in that text, if they are between texts. */
void example_put_places(vp_json_writer *writer, const struct example *example);

#endif
