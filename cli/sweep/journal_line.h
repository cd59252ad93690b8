/* journal_line.h: what one line of a journal must contain.
 * A parsed line comes in; its kind goes out. A line that lacks a member, has one too many, or holds a value that no
 * sweep writes is damaged as a whole. */
#ifndef VLMPROF_CLI_JOURNAL_LINE_H
#define VLMPROF_CLI_JOURNAL_LINE_H
#include "results/fields.h"

typedef enum line_kind {
    LINE_DAMAGED, LINE_HEAD, LINE_SESSION, LINE_SAMPLE, LINE_RUN, LINE_BARE, LINE_DONE, LINE_FAILED, LINE_KERNELS,
    LINE_NOISE, LINE_TWINS, LINE_FINISHED
} line_kind;

#define JOURNAL_SCHEMA "vlmprof-journal-2"
enum { LINE_PLAN_BYTES_MAX = 23 };     /* of a plan's fingerprint */

line_kind journal_line_kind(const vp_json *json);

#endif
