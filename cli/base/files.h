/* files.h: folders, paths, reading and writing of whole files. Functions that can fail print an error on stderr
 * and return 0 or an exit code, unless stated otherwise. */
#ifndef VLMPROF_CLI_FILES_H
#define VLMPROF_CLI_FILES_H
#include "base/memory.h"

int is_folder(const char *path);
/* Why a path is not a folder that can be read; NULL if it is one. The text lasts until the next call. */
const char *no_folder_reason(const char *path);

/* Complains if a file of this name cannot be written: its folder must exist, and it must not be a folder itself. */
int folder_check(const char *path);

/* Makes a folder and its parents. */
int make_folder(const char *path);

enum { LINE_BYTES_MOST = 64000000 }; /* longer lines of data are an error */

/* Reads a line with its newline. Returns its length in bytes; *text receives at most `most` of them and a NUL. Returns
 * 0 if the file has ended or cannot be read. */
size_t line_read(FILE *file, char **text, size_t *capacity, size_t most);

/* The error for line `number`, counted from 1, which is longer than the limit. Returns out. */
const char *line_limit_text(char *out, size_t capacity, int64_t number, uint64_t bytes);

/* FOLDER/NAME, malloc'ed. */
char *join_path(const char *folder, const char *name);

enum { JSON_FILE_BYTES_MAX = 256 << 20, IMAGE_FILE_BYTES_MAX = 1 << 30 };

/* Reads FOLDER/NAME into a malloc'ed text, and adds its bytes to the hash *identity unless that is NULL. */
int file_read_in(const char *folder, const char *name, char **text, size_t *bytes, uint64_t *identity);
/* Returns 1 if there is a file of this name in the folder. */
int file_is_in(const char *folder, const char *name);

/* Returns 1 if the name has the extension of an image file that can be decoded and is not hidden. */
int is_image_name(const char *name);
/* Counts files of a folder that are left out because of their names, and says so; hidden files do not count. */
struct left_out { size_t count; char first[64]; };
void leave_out(struct left_out *left_out, const char *name);
void say_left_out(const char *folder, const struct left_out *left_out);

/* Appends a folder's names to the list and sorts it. Returns 0, or an exit code if the list lacks names. */
int names_of_folder(const char *folder, struct text_list *names);

/* Writes a file by vp_output's rules (vlmprof_file.h): a reader sees the old file or the whole new one. */
int file_write(const char *path, const char *data, size_t bytes);
int file_write_whole(const char *folder, const char *name, const char *data, size_t bytes);
int file_write_text(const char *path, const struct text_buffer *out);

/* ---- SHA-256 of bytes (FIPS 180-4) */
/* Writes 64 digits and a NUL. */
void sha256_text(const void *data, size_t bytes, char text[65]);
#endif
