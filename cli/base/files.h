/* files.h: folders, paths, whole files read and written.
 * Functions that can fail complain on stderr themselves and return 0 or an exit code, unless they say otherwise. */
#ifndef VLMPROF_CLI_FILES_H
#define VLMPROF_CLI_FILES_H
#include "base/memory.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int is_folder(const char *path);

/* Complains unless a file of this name could be written: its folder must be there, and it must be no folder itself. */
int folder_check(const char *path);

/* Makes a folder and its parents. */
int make_folder(const char *path);

/* Keeps others with the same lock out of a folder until *lock is closed. *lock is -1 where the folder cannot be locked.
 * Returns EXIT_USAGE, and says who writes there, when another process has it. */
int lock_folder(const char *path, const char *who, int *lock);

/* Reads a line and its end. Returns its bytes, of which at most `most` and a NUL are kept in *text; 0: the file has
 * ended or cannot be read. */
size_t line_read(FILE *file, char **text, size_t *capacity, size_t most);
/* What is wrong with line `number`, from 1 on, that is longer than --line_max_mb allows. Returns out. */
const char *line_limit_text(char *out, size_t capacity, int64_t number, uint64_t bytes, int64_t most_mb);

/* FOLDER/NAME, malloc'ed. */
char *join_path(const char *folder, const char *name);

enum { JSON_FILE_BYTES_MAX = 256 << 20, IMAGE_FILE_BYTES_MAX = 1 << 30 };

/* Reads FOLDER/NAME into a malloc'ed text; `identity`, if not NULL, takes its bytes into a hash. */
int file_read_in(const char *folder, const char *name, char **text, size_t *bytes, uint64_t *identity);

/* Returns 1 if the name ends like an image file and is not hidden. */
int is_image_name(const char *name);

/* Appends the names in a folder to the list and sorts them. Returns 0 or an exit code: the list then lacks names. */
int names_of_folder(const char *folder, struct text_list *names);

/* Write a file by vp_output's rules (vlmprof_file.h): a reader sees the old file or the whole new one. */
int file_write(const char *path, const char *data, size_t bytes);
int file_write_whole(const char *folder, const char *name, const char *data, size_t bytes);
int file_write_text(const char *path, const struct text_buffer *out);

#endif
