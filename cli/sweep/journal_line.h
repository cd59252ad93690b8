/* journal_line.h: what one line of a journal must contain. A parsed line comes in; its kind goes out. A line is damaged
 * as a whole if it lacks a member, has an extra one, or contains a value that sweeps do not write. */
#ifndef VLMPROF_CLI_JOURNAL_LINE_H
#define VLMPROF_CLI_JOURNAL_LINE_H
#include "base/memory.h"
#include "results/fields.h"

typedef enum line_kind {
    LINE_DAMAGED, LINE_HEAD, LINE_SESSION, LINE_SAMPLE, LINE_RUN, LINE_BARE, LINE_DONE, LINE_FAILED, LINE_KERNELS,
    LINE_NOISE, LINE_TWINS, LINE_FIDELITY, LINE_FINISHED
} line_kind;

#define JOURNAL_SCHEMA "vlmprof-journal-2"
enum { LINE_PLAN_BYTES_MAX = 23 };     /* longest fingerprint of a plan */

line_kind journal_line_kind(const vp_json *json);

/* A line's checksum is its last member, "sum": FNV-1a of the bytes before it. journal_seal adds it to a complete
 * object. journal_unseal removes it, so that the text is an object again; *bytes becomes its length. Lines of older
 * journals have no checksum. */
typedef enum line_seal { SEAL_NONE, SEAL_GOOD, SEAL_BROKEN } line_seal;
void journal_seal(struct text_buffer *line);
line_seal journal_unseal(char *line, size_t *bytes);

#endif
