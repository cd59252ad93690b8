/* ranks.h: the journals of a sweep's processes, wherever they are, and their merging.
 * Folders and their journals come in; an index of all of them and the result files go out. Functions that can fail
 * complain on stderr themselves and return 0 or an exit code, unless they say otherwise. */
#ifndef VLMPROF_CLI_RANKS_H
#define VLMPROF_CLI_RANKS_H
#include "results/result_write.h"
#include "sweep/journal.h"

/* Returns 1 if the name is "journal.jsonl" (rank 0 of 1) or like "journal_rank1of2.jsonl", and its numbers are set. */
int can_parse_journal_name(const char *name, int64_t *rank, int64_t *world_size);

/* Reads all journals of a folder into the index. `own` is this process's journal, which is read through its open file;
 * NULL: it has none. */
int ranks_read_folder(struct journal_index *index, const char *folder, const struct journal *own);

/* How many ranks have not finished; the first four are named in `text`. */
int64_t ranks_missing(const struct journal_index *index, char *text, size_t capacity);

/* Checks that the journals of the index are parts of one sweep and writes its result files into the folder. Ranks or
 * points that are missing are an error unless `partial`. *results gets a summary of each file. */
int ranks_merge(struct journal_index *index, const char *folder, int partial, struct summaries *results);

/* Writes to `text` what a merge of the index is made from. The same text again means that there is nothing to merge. */
void ranks_state(const struct journal_index *index, char *text, size_t capacity);

/* Takes the folder's merge lock and waits for it. Returns the open file with the lock, which the caller closes; -1
 * after a message, or when a signal ended the wait. */
int ranks_lock(const char *folder);

#endif
