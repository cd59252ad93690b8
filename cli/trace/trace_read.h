/* trace_read.h: reads a Chrome trace of vlmprof or torch.profiler into arrays of events. */
#ifndef VLMPROF_CLI_TRACE_READ_H
#define VLMPROF_CLI_TRACE_READ_H
#include "base/memory.h"

/* ---- a table of distinct texts, found by number */
#define NO_INDEX UINT32_MAX /* index of nothing */

/* A table of all zeros is empty. */
struct text_table {
    struct text_buffer text; /* the texts, each with its closing 0 */
    size_t *starts;          /* [count] offset of each text */
    uint32_t count;
    uint32_t *slots;   /* numbers by hash, or NO_INDEX */
    size_t slot_count; /* a power of two */
};

/* The number of a text; a new text gets the next number. */
uint32_t text_table_add(struct text_table *table, const char *text);

/* The text with this number. The pointer is valid until a text is added. */
const char *text_table_at(const struct text_table *table, uint32_t index);
void text_table_free(struct text_table *table);

enum { TRACE_VALUE_BYTES_MAX = 4 << 20, TRACE_ROWS_MAX = 1 << 18 };

/* A result besides exit codes, which are not negative; only within trace_read.c. */
enum { ENDS_EARLY = -1 };

/* The category of a slice. Those of the host come first. TRACE_OVERHEAD is the profiler's own work, which is within
 * nothing and encloses nothing. TRACE_SPAN is a worker's part of an operation. TRACE_NOTHING is left out. */
typedef enum trace_category {
    TRACE_OP, TRACE_USER, TRACE_RUNTIME, TRACE_PYTHON, TRACE_OVERHEAD, TRACE_SPAN,
    TRACE_KERNEL, TRACE_COPY, TRACE_SET, TRACE_DEVICE_USER,
    TRACE_NOTHING
} trace_category;

int is_host_category(int category);
int is_device_work(int category); /* a kernel, a copy or a fill */
int is_annotation(int category);  /* annotations of the user, on the host or on the device */

/* A slice. */
struct trace_event {
    int64_t begin_ns, ns, bytes;
    int64_t external, correlation; /* "External id" and "correlation"; 0 if none */
    uint32_t name, shapes, track;  /* indices into names, names and tracks; shapes may be NO_INDEX */
    uint32_t process;              /* index into processes */
    uint32_t order;                /* position in the file */
    uint8_t category;
};
struct trace_memory {
    int64_t ns, bytes;           /* bytes allocated; negative if freed */
    int64_t allocated, reserved; /* totals after it; -1 if unknown */
    int32_t type, device;        /* torch's number of the type, 0 for the CPU, with device -1; 0 to 255 */
};

struct trace {
    const char *path;
    struct text_table names, tracks, processes;    /* a track's text is "pid tid", a process's "pid" */
    uint32_t *process_labels; uint32_t process_label_count; /* for each process: a name, or NO_INDEX */
    struct text_table unknown;                     /* categories that are not known, counted as operations */
    uint32_t *labels; uint32_t label_count;        /* for each track: a name, or NO_INDEX */
    struct trace_event *events;
    size_t count;
    struct trace_memory *memory;
    size_t memory_count;
    int64_t seen, flows, counters, instants, marks; /* all events of the file, and those that are not slices */
    int64_t no_name, no_time, no_duration, other;   /* left out: events that lack the value; other phases */
    int64_t malformed, no_values;                   /* left out: events that are not JSON; kept: with NaN or inf */
    int64_t pairs;                                  /* events that begin or end a slice, which are not read */
    int64_t misplaced;                              /* malformed events whose end had to be guessed */
    char malformed_at[120];                         /* the first of these: where and why */
    int64_t schema, world_size, rank, device_count; /* -1 if unknown */
    uint32_t devices, kind, trace_name, host_name;  /* names, or NO_INDEX; kind: of the first device */
    int is_own, is_emulated;                        /* flags: written by vlmprof; on an emulated device */
    int is_partial, is_cut;                         /* flags: a truncated file is accepted; the file is truncated */
    int64_t bytes, all_ns;                          /* size of the file; sum of all durations */
};

/* Reads a file, or stdin for "-". is_partial: a truncated file is not an error. Returns 0 or an exit code; the
 * trace must be freed in both cases. */
int trace_read(struct trace *trace, const char *path, int is_partial);
void trace_free(struct trace *trace);
#endif
