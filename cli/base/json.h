/* json.h: small helpers for the library's JSON writer and reader. PUT and put_... write keys and their values into the
 * open object. node_... reads a node of parsed JSON. */
#ifndef VLMPROF_CLI_JSON_H
#define VLMPROF_CLI_JSON_H
#include "base/memory.h"
#include "vlmprof_json.h"

/* The destination of a writer's bytes: user is a struct text_buffer, or a FILE. */
vp_result text_sink(void *user, const char *text, size_t bytes);
vp_result file_sink(void *user, const char *text, size_t bytes);

/* Ends the JSON of a writer whose sink is stdout, with a newline. Returns 0 or an exit code. */
int json_end(vp_json_writer *writer);

/* Writes any bytes as a string: bytes that are not UTF-8 (in file names and arguments) become '?'. */
void json_lossy(vp_json_writer *writer, const char *text);
void put_text(vp_json_writer *writer, const char *key, const char *text); /* NULL: null */
void put_int(vp_json_writer *writer, const char *key, int64_t value);
void put_bool(vp_json_writer *writer, const char *key, int value);
void json_double_or_null(vp_json_writer *writer, double value);
void put_double(vp_json_writer *writer, const char *key, double value); /* not finite: null */
void put_pair(vp_json_writer *writer, const char *key, int64_t first, int64_t second);
void put_null(vp_json_writer *writer, const char *key);
void put_ints(vp_json_writer *writer, const char *key, const int32_t *values, int32_t count);

/* Parsed text and its array of nodes, which the next parse_json reuses. The caller frees `nodes`. */
struct parsed { vp_json json; vp_json_node *nodes; size_t capacity; };

/* A file of a model's folder and its object; text is NULL if there is no such file. Free text and parsed.nodes. */
struct json_file { char *text; size_t bytes; struct parsed parsed; };
/* Reads FOLDER/NAME as Python does: NaN and Infinity are accepted (as empty texts), and a byte order mark. A file that
 * is absent is an error only if it is `required`. Returns 0, or an exit code after a message. */
int json_file_read(const char *folder, const char *name, int required, struct json_file *file, uint64_t *identity);
/* The files that describe a model and its images, in the order of vp_family_from_config. */
enum { PREPROCESSOR_CONFIG, PROCESSOR_CONFIG, MODEL_CONFIG, CONFIG_COUNT };
struct model_files { struct json_file file[CONFIG_COUNT]; const vp_json *json[CONFIG_COUNT]; };
int model_files_read(const char *folder, int needs_config, struct model_files *files, uint64_t *identity);
void model_files_free(struct model_files *files);

/* Parses a text, which must outlive the result. */
vp_result parse_json(struct parsed *parsed, const char *text, size_t bytes, vp_error *error);
int node_is(const vp_json *json, uint32_t node, vp_json_type type);
/* A malloc'ed copy of a string without escapes; NULL if the node is not a string or contains \u0000. */
char *node_text(const vp_json *json, uint32_t node);
double node_number(const vp_json *json, uint32_t node); /* NaN if it is not a number */
/* Sets the error `"KEY" must be WANT`. Returns VP_ERR_FORMAT. */
vp_result bad_member(vp_error *error, const char *key, const char *want);
int has_value(const vp_json *json, uint32_t object, const char *key); /* 1 if the key exists and is not null */
/* Adds the names of an object's members to a message: "id, answer". */
void add_fields(const vp_json *json, uint32_t object, struct text_buffer *out);
/* Writes the node's original text, on one line. */
void json_node(vp_json_writer *writer, const vp_json *json, uint32_t node);
char *json_text(const vp_json *json, uint32_t node); /* the same, malloc'ed; NULL for VP_JSON_NONE */

/* Reads the options of a multiple-choice record: "options" or "choices", a list of texts or numbers (null: empty), an
 * object {label: text}, {"label": [..], "text": [..]}, or a text that contains one of these as JSON. labels: one
 * for each, or none. Returns NULL, or what is wrong. */
const char *json_options(const vp_json *json, uint32_t object, struct text_list *options, struct text_list *labels);
char *node_value(const vp_json *json, uint32_t node); /* a string, or a number as written; NULL for anything else */

/* An object received from a server, malloc'ed and on one line. NULL if the text is NULL, is not an object, or is nested
 * deeper than FOREIGN_DEPTH_MAX. Journals and results add levels around it, and the limit of a text is 64. */
enum { FOREIGN_DEPTH_MAX = 48 };
char *json_foreign(const char *text, size_t bytes);

/* The integer under a key, or `otherwise`. */
int64_t node_int(const vp_json *json, uint32_t object, const char *key, int64_t otherwise);
/* Write [low, high]; null if an end is not finite, or if `known` is 0. */
void put_range(vp_json_writer *writer, const char *key, double low, double high);
void put_interval(vp_json_writer *writer, const char *key, int known, double low, double high);

/* Writes several members of an object, in order:
 *     PUT(writer, KEY("name", text), KEY("count", 3), KEY_OBJECT("times"), KEY("mean_ms", mean), END_OBJECT);
 * KEY takes a string (NULL: null), an integer, or a double (not finite: null). With a NULL key, OBJECT, ARRAY and
 * values are elements of an array. All values are computed before the first is written. */
#define PUT(writer, ...) \
    json_put_all(writer, (const struct json_member[]){__VA_ARGS__}, \
                 sizeof(const struct json_member[]){__VA_ARGS__} / sizeof(struct json_member))
#define KEY(key, value) \
    _Generic((value), char *: json_member_text, const char *: json_member_text, double: json_member_real, \
             float: json_member_real, default: json_member_int)(key, value)
#define KEY_BOOL(key, value) {key, MEMBER_BOOL, .whole = (value)}
#define KEY_NULL(key) {key, MEMBER_NULL, .whole = 0}
#define KEY_RANGE(key, low_end, high_end) {key, MEMBER_RANGE, .low = (low_end), .high = (high_end)} /* see put_range */
#define KEY_ESTIMATE(key, range_key, estimate) \
    KEY(key, (estimate).value), KEY_RANGE(range_key, (estimate).low, (estimate).high)
#define KEY_TEXTS(key, texts) {key, MEMBER_LIST, .list = (texts)}
#define KEY_OBJECT(key) {key, MEMBER_OBJECT, .whole = 0}
#define END_OBJECT {NULL, MEMBER_END_OBJECT, .whole = 0}
#define KEY_ARRAY(key) {key, MEMBER_ARRAY, .whole = 0}
#define END_ARRAY {NULL, MEMBER_END_ARRAY, .whole = 0}
/* An integer, null unless it is known. */
#define KEY_KNOWN(key, known, value) json_member_known(key, (known) != 0, value)

/* A key with its value; as a cell of a table (base/table.h), a value without its key. */
enum member_type { MEMBER_TEXT, MEMBER_INT, MEMBER_REAL, MEMBER_BOOL, MEMBER_NULL, MEMBER_RANGE,
                   MEMBER_LIST, MEMBER_OBJECT, MEMBER_END_OBJECT, MEMBER_ARRAY, MEMBER_END_ARRAY };
struct json_member {
    const char *key;
    enum member_type type;
    const char *text;
    int64_t whole;
    double real, low, high; /* the ends of a range, or of the interval of a real */
    const struct text_list *list;
};
struct json_member json_member_text(const char *key, const char *text);
struct json_member json_member_int(const char *key, int64_t value);
struct json_member json_member_real(const char *key, double value);
struct json_member json_member_known(const char *key, int known, int64_t value);
void json_put_all(vp_json_writer *writer, const struct json_member *members, size_t count);

#endif
