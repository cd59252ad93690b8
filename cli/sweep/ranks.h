/* ranks.h: finds and merges the journals of a sweep's processes.
 * Folders and their journals come in; an index of all of them and the result files go out. Functions that can fail
 * print an error on stderr and return 0 or an exit code, unless stated otherwise. */
#ifndef VLMPROF_CLI_RANKS_H
#define VLMPROF_CLI_RANKS_H
#include "sweep/journal.h"
#include "sweep/result_write.h"

/* Returns 1 and sets the numbers if the name is "journal.jsonl" (rank 0 of 1) or like "journal_rank1of2.jsonl". */
int can_parse_journal_name(const char *name, int64_t *rank, int64_t *world_size);

/* Reads all journals of a folder into the index. `own` is this process's journal, which is read through its open file,
 * or NULL. */
int ranks_read_folder(struct journal_index *index, const char *folder, const struct journal *own);

/* The number of unfinished ranks; `text` names the first four. */
int64_t ranks_missing(const struct journal_index *index, char *text, size_t capacity);

/* Checks that the journals of the index are parts of one sweep, and writes its result files into the folder. Missing
 * ranks or points are an error unless `partial`. *results gets a summary of each file. */
int ranks_merge(struct journal_index *index, const char *folder, int partial, struct summaries *results);

/* Writes an identification of a merge's input to `text`. If the text is unchanged, there is nothing to merge. */
void ranks_state(const struct journal_index *index, char *text, size_t capacity);

/* Waits for the folder's merge lock and takes it. Returns the open file with the lock, which the caller closes, or -1
 * after a message or a signal. */
int ranks_lock(const char *folder);

#endif
