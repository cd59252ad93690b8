/* journal.h: the journal of a sweep, one line for each run; it makes a sweep that was stopped go on. */
#ifndef VLMPROF_CLI_JOURNAL_H
#define VLMPROF_CLI_JOURNAL_H
#include "base/json.h"
#include "base/memory.h"
#include "vlmprof.h"

enum { JOURNAL_SYNC_LINES = 64, POINT_OPEN = 0, POINT_DONE = 1, POINT_FAILED = 2 };

typedef struct journal {
    char *path;
    int fd;          /* the only one of this file in the process: closing any other would give the lock back */
    int64_t end;     /* behind the last whole line */
    int64_t synced_ns;
    int unsynced;
    text_buffer line;
    vp_json_writer w;
} journal;

int journal_sync(journal *j);

/* Appends whole lines in one write; what does not fit as a whole is taken back. */
int journal_append(journal *j, const char *text, size_t bytes);
vp_json_writer *journal_line_begin(journal *j);
int journal_line_end(journal *j);
int journal_line_append(journal *j);
void journal_close(journal *j);

typedef struct book_entry { int64_t id, line_at; int64_t *last; int32_t file, last_count; } book_entry; /* last: of each configuration of its set */

typedef struct book_set {
    char *task, *path, *metric, *hash;
    int64_t new_tokens, sample_count;
    book_entry **entries; size_t count, capacity, first; /* from `first` on: of the journal that is being read */
    int32_t cell_count;
} book_set;

typedef struct book_cell {
    char *file_name, *tier;
    int32_t set, place;               /* which of its set's configurations */
    int64_t vision_tokens, max_crops; /* 0: none */
    int32_t top_k, block_count; int32_t *blocks;
    int32_t head_file; int64_t head_at;
    int is_wanted;                    /* part of the newest grid */
    int64_t closed, failed;
} book_cell;
typedef struct book_shape { int32_t file, cell; int64_t at, views, sequence; } book_shape;

typedef struct book_file {
    char *path;
    int fd, is_own;
    int64_t end, rank, world_size, lines;
    uint64_t grid;                    /* of its newest head */
    int is_finished, knows_device, on_gpu;
    char *device;                     /* of the last session */
} book_file;

typedef struct book {
    char plan[24];
    char *model;
    int64_t run_count, total_blocks, bare_every;
    int synthetic, ignore_eos;
    char *timing;
    book_file *files; int32_t file_count;
    book_set *sets; int32_t set_count;
    book_cell *cells; int32_t cell_count;
    book_shape *shapes; size_t shape_count;
    int32_t cell_hint; int64_t damaged;
    parsed scratch; text_buffer line;
} book;

void book_free(book *b);
int32_t book_cell_named(const book *b, const char *file_name);
book_entry *book_find(const book_set *s, size_t first, int64_t id);

/* A point's last line, place * 4 + state; -1: nothing measured. */
int64_t book_entry_state(const book_entry *e, const book_cell *c);

/* Reads a journal into the book. fd stays the caller's unless is_own; *files[..].end is behind its last whole line. */
int book_read(book *b, const char *path, int fd, int is_own);

/* Entries of all journals in the order of their ids; two journals must not hold the same sample. */
int book_sort(book *b);

/* Reads a line back into b->line and parses it into b->scratch. */
int book_line(book *b, int32_t file, int64_t at);

char *journal_name(const char *folder, int64_t rank, int64_t world_size);
int journal_lock(int fd, int wait); /* 1: held by another process */
int journal_is_locked(int fd);

/* Opens or makes the journal, locks it, reads it into the book (whose plan is set) and drops a torn last line. */
int journal_open(journal *j, book *b);

#endif
