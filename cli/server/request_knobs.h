/* request_knobs.h: members of the request body that the user sets: --request_knob PATH=V1,V2,...
 * Texts come in; paths, their values as JSON, and all combinations of them come out. */
#ifndef VLMPROF_CLI_REQUEST_KNOBS_H
#define VLMPROF_CLI_REQUEST_KNOBS_H
#include "base/memory.h"
#include "base/options.h"
#include "vlmprof_chat.h"

#define OPTION_REQUEST_KNOB \
    {"request_knob", WHOLE_TEXTS, "PATH=VALUE...", NULL, 0, 0, NULL, \
     "set a field of the request: mm_processor_kwargs.max_pixels=501760, image_url.detail=low (a JSON value or text)"}

struct request_knob {
    char *path;
    struct text_list values; /* JSON */
    struct text_list words;  /* the values as typed */
};
struct request_knobs {
    struct request_knob *items; size_t count;
    const char *option; /* its name for messages; NULL: request_knob */
};

/* Adds PATH=V1,V2,... Commas inside brackets, braces and double quotes do not separate. A value that is JSON is used as
 * JSON, any other as a string. Returns 0 or an exit code. */
int knobs_add(struct request_knobs *knobs, const char *text);

/* Adds all values of a list. Returns 0 or an exit code. */
int knobs_add_all(const struct option_value *list, struct request_knobs *knobs);
void knobs_free(struct request_knobs *knobs);

/* The number of combinations of values; 1 without knobs. */
size_t knobs_combinations(const struct request_knobs *knobs);

/* Combination `index`; the last knob's values change first. out: [knobs->count]; it points into the knobs. */
void knobs_combination(const struct request_knobs *knobs, size_t index, vp_chat_knob *out);

/* Moves the knobs of image parts after all others and keeps their order. Returns the number of the others, which a
 * request without an image can use. */
size_t knobs_image_last(vp_chat_knob *knobs, size_t count);

/* Appends the combination as text: "max_pixels=1024 detail=low". A knob is named by the end of its path if that is
 * unique, otherwise by the whole path. Appends nothing without knobs. */
void knobs_words(const struct request_knobs *knobs, size_t index, struct text_buffer *out);

/* "request_knobs": the path and value of each knob. */
void put_knobs(vp_json_writer *writer, const vp_chat_knob *knobs, size_t count);

#endif
