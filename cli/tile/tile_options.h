/* tile_options.h: the options that choose a tiling, and image sizes as text.
 * Options, words and lists of sizes come in; vp_tile_options and widths and heights in pixels come out. */
#ifndef VLMPROF_CLI_TILE_OPTIONS_H
#define VLMPROF_CLI_TILE_OPTIONS_H
#include "base/options.h"
#include "vlmprof.h"

/* The tiling that --preprocess, --tier, --max_crops, --crops and --vision_tokens ask for. Returns 0, or an exit code
 * when they contradict each other. */
int tile_options_of(const struct options *options, vp_tile_options *tiles);

/* Returns 1 if the text is a size, two integers with some of the separators between them, and *width and *height
 * are set. They may be out of any range. */
int can_parse_size(const char *text, const char *separators, int64_t *width, int64_t *height);

/* A size like 640x480 of the command line; `what` begins the complaint: "--resize: ". Returns 0 or EXIT_USAGE. */
int read_size(const char *what, const char *text, int32_t *width_px, int32_t *height_px);

/* Between the numbers of a size: on the command line, and in a list. */
#define SIZE_SEPARATORS "x"
#define SIZE_LIST_SEPARATORS "x \t,"

/* Reads the list of --sizes from a file, or from stdin when the path is "-". Calls `add` for each line that is neither
 * empty nor a comment, without the white space around it. Returns 0, or an exit code when the file cannot be read. */
int size_list_read(const char *path, void (*add)(void *user, const char *line), void *user);

#endif
