/* sizes.h: reads image sizes as text into pixels. */
#ifndef VLMPROF_CLI_SIZES_H
#define VLMPROF_CLI_SIZES_H
#include <stdint.h>

/* Returns 1 and sets *width and *height if the text is a size: two integers with some of the separators between them.
 * They may be out of any range. */
int can_parse_size(const char *text, const char *separators, int64_t *width, int64_t *height);

/* Parses a size like 640x480 from the command line. `what` begins the complaint, as in "--resize: ". Returns 0 or
 * EXIT_USAGE. */
int read_size(const char *what, const char *text, int32_t *width_px, int32_t *height_px);

/* The separators of a size: on the command line, and in a list. */
#define SIZE_SEPARATORS "x"
#define SIZE_LIST_SEPARATORS "x \t,"

/* Reads the list of --sizes from a file, or from stdin if the path is "-". Calls `add` for each line that is not empty
 * and not a comment, without surrounding white space. Returns 0, or an exit code if the file cannot be read. */
int size_list_read(const char *path, void (*add)(void *user, const char *line), void *user);

#endif
