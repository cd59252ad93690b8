/* ranks.h: the journals of a sweep's processes, wherever they lie, and their merging. */
#ifndef VLMPROF_CLI_RANKS_H
#define VLMPROF_CLI_RANKS_H
#include "sweep/journal.h"
#include "sweep/result_write.h"

/* "journal.jsonl" or "journal_rank1of2.jsonl": its numbers; 0 for other names. */
int parse_journal_name(const char *name, int64_t *rank, int64_t *world_size);

/* All journals of a folder into the book; `own` (may be NULL) is read through its open file. Returns 0 or an exit code. */
int ranks_read_folder(book *b, const char *folder, const journal *own);

/* How many ranks have not finished; the first ones are named in `text`. */
int64_t ranks_missing(const book *b, char *text, size_t capacity);

/* Journals of the book -> files. */
int ranks_merge(book *b, const char *folder, int partial, summaries *results);

/* What the merge was made from: the same text again means that there is nothing to do. */
void ranks_state(const book *b, char *text, size_t capacity);

/* Holds the folder's merge lock while its file is open; -1 after a message. */
int ranks_lock(const char *folder);

#endif
