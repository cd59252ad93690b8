/* model_file.h: files of fitted models: writing and reading their common members. When reading, any byte may be
 * wrong. */
#ifndef VLMPROF_CLI_MODEL_FILE_H
#define VLMPROF_CLI_MODEL_FILE_H
#include "base/json.h"
#include "vlmprof_latency.h"

#define MODEL_LEVEL 0.95
enum { MODEL_BYTES_MOST = 1 << 24, LINEAR_STATES = 3 };
extern const char *const LINEAR_STATE_KEYS[LINEAR_STATES];

/* ---- writing: members of the open object */
/* The unit of a coefficient: "ms" for the constant, otherwise "ms / (views)". Returns out. */
const char *unit_text(const char *name, char out[64]);
void model_put_linear(vp_json_writer *writer, const vp_linear *fit, const char *const *names);

/* ---- reading. `where` is the object being read, for messages. code: 0, or the exit code of the first complaint; later
 * complaints are not printed. */
struct model_reader { const char *path; char *text; struct parsed parsed; int code; char where[128]; };

/* Reads a file with this schema. Returns 0 or an exit code. model_close frees the reader in both cases. */
int model_open(struct model_reader *reader, const char *path, const char *schema);
void model_close(struct model_reader *reader);
void model_check_duplicates(struct model_reader *reader); /* complains about a duplicate key in an object */

/* Complains at `where`.key. Returns VP_JSON_NONE. */
uint32_t model_fail(struct model_reader *reader, uint32_t node, const char *key, const char *what);
uint32_t model_member(struct model_reader *reader, uint32_t object, const char *key, vp_json_type type);
double model_node(struct model_reader *reader, uint32_t node, const char *key, double least, double most);
double model_number(struct model_reader *reader, uint32_t object, const char *key, double least, double most);
/* A number, or NaN for null, which means unknown. */
double model_optional(struct model_reader *reader, uint32_t object, const char *key, double least, double most);
int64_t model_count(struct model_reader *reader, uint32_t object, const char *key, int64_t least, int64_t most);
char *model_text(struct model_reader *reader, uint32_t object, const char *key); /* malloc'ed, also after a complaint */
/* The index of a member's text in a list of words. */
int model_word(struct model_reader *reader, uint32_t object, const char *key, const char *const *words, int count);
/* Reads the output of model_put_linear into a zeroed struct. The first `nonnegative` coefficients are not below 0. */
void model_read_linear(struct model_reader *reader, uint32_t object, const char *where, const char *const *names,
                       int count, int nonnegative, vp_linear *fit);

#endif
