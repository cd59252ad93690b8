/* family.h: makes a vp_family from a family's name and keys on the command line. */
#ifndef VLMPROF_CLI_FAMILY_H
#define VLMPROF_CLI_FAMILY_H
#include "vlmprof_families.h"
#include <stddef.h>
#include <stdint.h>

/* Finds the family that --OPTION names. Returns 0, or an exit code after suggesting similar names. */
int family_by_name(const char *option, const char *name, vp_family *family);

/* Keys of families on the command line, which come with an option of `keyed_by`. */
struct family_keys {
    const char *const *items; size_t count; /* names and values alternate */
    const char *max_crops;                  /* --max_crops, which is also a key; NULL if it is not given */
    const char *command;                    /* for messages */
};

/* Sets the keys in all families that have them. Returns 0 or an exit code. */
int family_set_keys(struct family_keys keys, vp_family *families, size_t family_count);

/* Finds the size with an image's shape that costs most tokens by a family's rule, but at most max_tokens. Of several
 * such sizes, it is the one nearest to the image's own. An image that fits keeps its size: both results are then 0.
 * Returns 0, or EXIT_INPUT with a reason if every size costs more. Prints nothing. */
int family_size_for(const vp_family *family, int32_t width_px, int32_t height_px, int64_t max_tokens,
                    int32_t *sent_width_px, int32_t *sent_height_px, char *reason, size_t capacity);

/* ---- image sizes */
/* Returns 1 and sets *width and *height if the text is a size like 640x480. They may be out of any range. */
int can_parse_size(const char *text, int64_t *width, int64_t *height);

/* Parses a size like 640x480 from the command line. `what` begins the complaint, as in "--resize: ". Returns 0 or
 * EXIT_USAGE. */
int read_size(const char *what, const char *text, int32_t *width_px, int32_t *height_px);

struct given_size {
    int64_t width, height; /* pixels, not checked; 0 with an error */
    char *file;            /* NULL if the size was given as text */
    char *error;           /* reason if there is no size; otherwise NULL */
    int code;              /* the exit code if this is the only size and it is rejected */
};
struct size_list { struct given_size *items; size_t count; int has_files; }; /* has_files: 1 if one is of a file */

/* Adds sizes, image files and the images of folders, then the lines of a list unless it is NULL (- is stdin). Something
 * without a size is added with the reason. Returns 0 or an exit code. */
int sizes_read(struct size_list *sizes, const char *const *operands, size_t operand_count, const char *list);
void sizes_free(struct size_list *sizes);

/* Complains about the only size. Returns its exit code. */
int size_complain(const struct given_size *size, const char *reason);

/* ---- the tile command for other model families: --family, --checkpoint, --compare, --list_families */
/* What to print. A text is NULL if its option is not given. */
struct family_settings {
    const char *family, *checkpoint, *compare; /* compare: names between commas */
    struct family_keys keys;
    const char *sizes;                         /* a file of sizes; - is stdin */
    const char *const *operands; size_t operand_count; /* sizes and image files */
    int64_t max_tokens;                        /* 0 if it is not given */
    int64_t percentile;                        /* percentage of images that must be within max_tokens */
    int csv, json, list_families; /* 1 if given */
};

/* Returns an exit code; errors were already printed. */
int tile_families_run(const struct family_settings *settings);
#endif
