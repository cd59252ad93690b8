/* journal.h: the journal of a sweep, one line for each run; it makes a sweep that was stopped go on. */
#ifndef VLMPROF_CLI_JOURNAL_H
#define VLMPROF_CLI_JOURNAL_H
#include "base/json.h"
#include "base/memory.h"
#include "vlmprof.h"

enum { JOURNAL_SYNC_LINES = 64, POINT_OPEN = 0, POINT_DONE = 1, POINT_FAILED = 2 };

struct journal {
    char *path;
    int fd;          /* the only one of this file in the process: closing any other would give the lock back */
    int64_t end;     /* behind the last whole line */
    int64_t synced_ns;
    int unsynced;
    struct text_buffer line;
    vp_json_writer writer;
};

int journal_sync(struct journal *journal);

/* Appends whole lines in one write; what does not fit as a whole is taken back. */
int journal_append(struct journal *journal, const char *text, size_t bytes);
vp_json_writer *journal_line_begin(struct journal *journal);
int journal_line_end(struct journal *journal);
int journal_line_append(struct journal *journal);
void journal_close(struct journal *journal);

/* last: of each configuration of its set */
struct index_entry { int64_t id, line_at; int64_t *last; int32_t file, last_count; };

struct index_set {
    char *task, *path, *metric, *hash;
    int64_t new_tokens, sample_count;
    /* from `first` on: of the journal that is being read */
    struct index_entry **entries; size_t count, capacity, first;
    int32_t configuration_count;
};

struct index_configuration {
    char *file_name, *tier;
    int32_t set, place;               /* which of its set's configurations */
    int64_t vision_tokens, max_crops; /* 0: none */
    int32_t top_k, block_count; int32_t *blocks;
    int32_t head_file; int64_t head_at;
    int is_wanted;                    /* part of the newest grid */
    int64_t closed, failed;
};
struct index_shape { int32_t file, configuration; int64_t at, views, sequence; };

struct index_file {
    char *path;
    int fd, is_own;
    int64_t end, rank, world_size, lines;
    uint64_t grid;                    /* of its newest head */
    int is_finished, knows_device, on_gpu;
    char *device;                     /* of the last session */
};

struct journal_index {
    char plan[24];
    char *model;
    int64_t run_count, total_blocks, bare_every;
    int synthetic, ignore_eos;
    char *timing;
    struct index_file *files; int32_t file_count;
    struct index_set *sets; int32_t set_count;
    struct index_configuration *configurations; int32_t configuration_count;
    struct index_shape *shapes; size_t shape_count;
    int32_t configuration_hint; int64_t damaged;
    struct parsed scratch; struct text_buffer line;
};

void index_free(struct journal_index *index);
int32_t index_configuration_named(const struct journal_index *index, const char *file_name);
struct index_entry *index_find(const struct index_set *set, size_t first, int64_t id);

/* A point's last line, place * 4 + state; -1: nothing measured. */
int64_t index_entry_state(const struct index_entry *entry, const struct index_configuration *configuration);

/* Reads a journal into the book. fd stays the caller's unless is_own; *files[..].end is behind its last whole line. */
int index_read(struct journal_index *index, const char *path, int fd, int is_own);

/* Entries of all journals in the order of their ids; two journals must not hold the same sample. */
int index_sort(struct journal_index *index);

/* Reads a line back into index->line and parses it into index->scratch. */
int index_read_line(struct journal_index *index, int32_t file_index, int64_t at);

char *journal_name(const char *folder, int64_t rank, int64_t world_size);
int journal_lock(int fd, int wait); /* 1: held by another process */
int journal_is_locked(int fd);

/* Opens or makes the journal, locks it, reads it into the book (whose plan is set) and drops a torn last line. */
int journal_open(struct journal *journal, struct journal_index *index);

#endif
