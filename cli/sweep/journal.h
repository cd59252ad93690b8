/* journal.h: the journal of a sweep, one line per run, from which a stopped sweep continues. Measurements come in as
 * JSON lines that are appended and never changed. Reading one or more journals gives an index: the measured points with
 * the offsets of their last lines. Functions that can fail print an error on stderr and return 0 or an exit code,
 * unless stated otherwise. */
#ifndef VLMPROF_CLI_JOURNAL_H
#define VLMPROF_CLI_JOURNAL_H
#include "base/json.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "vlmprof_noise.h"

#define JOURNAL_SCHEMA "vlmprof-journal-2"
enum { JOURNAL_SYNC_LINES = 64 };

/* ---- the journal that this process writes; its index is below */
struct journal {
    char *path;
    int fd;            /* the only one of this file in the process: closing another would release the lock */
    int64_t end;       /* offset after the last complete line */
    int64_t synced_ns; /* time of the last sync to disk */
    int unsynced;      /* number of appends since then */
    struct text_buffer line;
    vp_json_writer writer;
};

/* Syncs appended lines to disk. */
int journal_sync(struct journal *journal);

/* Appends complete lines in one write; if they do not fit, all are removed. Syncs from time to time. */
int journal_append(struct journal *journal, const char *text, size_t bytes);

/* Writing a line: begin opens its JSON object, the caller writes the members, and end closes it in journal->line;
 * append also writes it to the file. */
vp_json_writer *journal_line_begin(struct journal *journal);
int journal_line_end(struct journal *journal);
int journal_line_append(struct journal *journal);
void journal_close(struct journal *journal);

/* ---- the index: the result of reading one or more journals. Offsets are in bytes from the start of a journal. */
struct index_entry {
    int64_t id, line_at; /* id of the sample; offset of its line */
    int64_t *last;       /* [last_count], by index of the configuration in its set: see index_point */
    int32_t file, last_count;
};

/* A data set. */
struct index_set {
    struct data_line data;
    struct index_entry **entries;
    size_t count;
    size_t first; /* first entry of the current journal */
    int32_t configuration_count;
};

struct index_configuration {
    char *file_name;
    int32_t set, place; /* the index of its set, and its index in that set */
    struct knob_values knobs;
    int32_t head_file; int64_t head_at; /* the first head line that names it */
    int is_wanted;                    /* 1 if part of the newest grid */
    int64_t closed, failed;           /* points with their last line; failed points */
};

/* A shape whose kernels were timed, with the offset of its line. */
struct index_shape { int32_t file, configuration; int64_t at, views, sequence; };

/* A block of requests under load, with the offset of its line. */
struct index_load { int32_t file, configuration; int64_t at; };

/* The machine's load during the runs whose lines are at offsets from `from` up to `at`, excluding `at`. */
struct index_block { int64_t from, at; vp_noise noise; };

/* A journal that was read. */
struct index_file {
    char *path;
    int fd, is_own;                       /* is_own: index_free closes fd */
    int64_t end, rank, world_size, lines; /* end: offset after its last complete line */
    uint64_t grid;                        /* a hash of the configurations in its newest head */
    int is_finished, knows_device, on_gpu;
    int has_sums;     /* 1 if a line has a checksum, so all lines after it must have one */
    char *device;     /* device of its last session; NULL if not known */
    int64_t *sessions; size_t session_count; /* offsets of its session lines */
    struct index_block *blocks;
    size_t block_count; /* ascending by `at` */
};

struct journal_index {
    char plan[24]; /* the plan's fingerprint; "": use that of the first head */
    struct head_line head;     /* the first head; architecture: from the first head that has it */
    char *model_shape;         /* a JSON object; NULL if no head has it */
    char *server;              /* a JSON object; NULL if the engine was measured */
    char *options;             /* a JSON object: the options of this sweep or, if it is NULL, of the first head */
    struct index_file *files; int32_t file_count;
    struct index_set *sets; int32_t set_count;
    struct index_configuration *configurations; int32_t configuration_count;
    struct index_shape *shapes; size_t shape_count;
    struct index_load *loads; size_t load_count;
    int32_t configuration_hint; /* the likely configuration of the next line */
    int64_t damaged;            /* damaged lines of the current journal */
    int is_read_again;          /* 1 if its damaged lines were already reported */
    struct parsed scratch; struct text_buffer line; /* for index_read_line */
};

void index_free(struct journal_index *index);

/* Adds the options in which the plan of a journal or result file differs from this one, with both values: " --seed 42
 * instead of 7". `options` is the member of `json`; `ours` is as in the index. */
void add_plan_difference(struct text_buffer *out, const vp_json *json, uint32_t options, const char *ours);

/* The configuration with this file name; -1 if there is none. */
int32_t index_configuration_named(const struct journal_index *index, const char *file_name);

/* The entry of a sample among those starting at `first`; NULL if there is none. */
struct index_entry *index_find(const struct index_set *set, size_t first, int64_t id);

enum { POINT_OPEN = 0, POINT_DONE = 1, POINT_FAILED = 2 };

/* A point's last line: its offset, whether it closes the point, and the point's number of runs. at -1 (open): nothing
 * is measured. */
struct point_line { int64_t at; int state; int32_t runs; };
struct point_line index_point(const struct index_entry *entry, const struct index_configuration *configuration);

/* Reads a journal into the index. The caller keeps the file open unless is_own. `end` of the new index->files entry is
 * after the last complete line. Damaged lines and lines out of place are reported and skipped. */
int index_read(struct journal_index *index, const char *path, int fd, int is_own);

/* Returns 1 if a session's line of this journal is at this offset. */
int index_has_session(const struct journal_index *index, int32_t file, int64_t at);

/* The index in index->files[file].blocks of the block of a run's line; block_count if not known. */
size_t index_block_of(const struct journal_index *index, int32_t file, int64_t at);

/* Sorts the entries of all journals by id. It is an error if two journals contain the same sample. */
int index_sort(struct journal_index *index);

/* Reads a line again: its text into index->line, parsed into index->scratch. */
int index_read_line(struct journal_index *index, int32_t file_index, int64_t at);

/* The path of a process's journal, malloc'ed. */
char *journal_name(const char *folder, int64_t rank, int64_t world_size);

/* Opens or creates a file to read and to append to. Only a regular file is opened. Returns its descriptor, or -1 after
 * a message. */
int journal_open_file(const char *path);

/* Locks a journal for this process; with `wait` it waits for the lock. Returns 0, or 1 if another process has the lock;
 * also 0 on a file system without locks. */
int journal_lock(int fd, int wait);

/* Returns 1 if another process has the lock. */
int journal_is_locked(int fd);

/* Opens or creates the journal at journal->path, locks it, reads it into the index, whose `plan` must be set, and
 * removes an incomplete last line. */
int journal_open(struct journal *journal, struct journal_index *index);

/* ---- the end of the runs of a point, which its last line names */
#define STOPS(X) \
    X(STOP_NOT, 0, "not", "continue") \
    X(STOP_RUNS, 1, "runs", "all runs are done, and no half-width is set") \
    X(STOP_INTERVAL, 2, "interval", "the interval is narrow enough") \
    X(STOP_BOX, 3, "box", "the time is up") \
    X(STOP_MAX, 4, "max", "no more runs are allowed")
enum stop_reason {
#define STOP_ENUM(name, value, text, meaning) name = value,
    STOPS(STOP_ENUM)
#undef STOP_ENUM
        STOP_LAST_ = 4
};
const char *stop_name(int32_t stop); /* NULL outside the list */
struct stop_rule {
    int64_t min_runs, max_runs; /* 1 <= min_runs <= max_runs; max_runs only matters with a half-width */
    double half_width;          /* target for the interval of P50, as a share of P50: 0.01 is +-1 %; 0: exactly min_runs
                                 * runs */
    double confidence;          /* confidence of that interval: 0.95 */
    int64_t box_ns;             /* time limit for all runs of a point; 0: no limit */
};
/* Decides whether another run is needed. Call it after each run.
 * in:      values      double [count]  values of the runs so far
 *          elapsed_ns  time since the start of the first run
 * out:     scratch     double [count]
 *          stop        STOP_NOT or the reason to stop
 * returns: VP_OK; VP_ERR_RANGE: a field of the rule is outside its range, elapsed_ns < 0, or a value is not finite
 * rule:    with fewer than min_runs runs: continue, regardless of the time. Then "runs" or, with a half-width, the
 *          first of "interval", "max" and "box" that applies. The half-width is half the length of
 *          vp_statistics_percentile_interval, which needs vp_statistics_percentile_needs values. Checking after every
 *          run makes the stated confidence slightly optimistic */
vp_result decide_stop(const struct stop_rule *rule, const double *values, size_t count, int64_t elapsed_ns,
                      double *scratch, enum stop_reason *stop);

#endif
