/* files.h: folders, paths, whole files read and written. */
#ifndef VLMPROF_CLI_FILES_H
#define VLMPROF_CLI_FILES_H
#include "base/memory.h"
#include <stddef.h>
#include <stdint.h>

int is_folder(const char *path);

/* Makes a folder and its parents; 0 or an exit code. */
int make_folder(const char *path);
char *join_path(const char *folder, const char *name);

/* A file's name lasts once its folder is on the disk too; file systems that cannot sync a folder say EINVAL. */
int sync_folder(const char *folder);

enum { JSON_FILE_BYTES_MAX = 256 << 20, IMAGE_FILE_BYTES_MAX = 1 << 30 };

int file_read_in(const char *folder, const char *name, char **text, size_t *bytes, uint64_t *identity);

int is_image_name(const char *name);

/* the entries of a folder, in the order of their names */
void names_of_folder(const char *folder, text_list *names);

/* FOLDER/NAME, by way of a temporary file; 0 or an exit code. */
int file_write_whole(const char *folder, const char *name, const char *data, size_t bytes);
int file_write_text(const char *path, const text_buffer *out);

#endif
