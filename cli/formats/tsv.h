/* tsv.h: VLMEvalKit's table of samples: pictures in base64, in a list, or by reference to another row. */
#ifndef VLMPROF_CLI_TSV_H
#define VLMPROF_CLI_TSV_H
#include "formats/cells.h"
#include "formats/row.h"

enum { REFERENCE_CHARACTERS_MAX = 64, CHAIN_MAX = 1000 };

struct row_key { uint64_t hash; uint32_t row; };
struct tsv {
    struct cells cells;
    size_t index, image, image_path; /* columns; SIZE_MAX if there is none */
    struct row_key *keys;
    size_t key_count, key_capacity;                  /* rows sorted by index; only if there are references */
    size_t reference_count, missing_count;           /* cells of pictures that refer to others, and empty cells */
    struct text_buffer picture;      /* the cell at the end of a reference */
};

/* The caller calls tsv_close, also after a failure. *tsv is zeroed first. */
vp_result tsv_open(struct tsv *tsv, const char *path, char delimiter, vp_error *error);
void tsv_close(struct tsv *tsv);

/* Returns 1 if the row has no picture, so that VLMEvalKit drops it. */
int tsv_is_dropped(struct tsv *tsv, size_t row);

/* Appends {"COLUMN": "cell", ..} to row->json; missing cells are null. "index" is a number if all are integers. "image"
 * is a list of blobs, "image_path" a list of names. */
vp_result tsv_row(struct tsv *tsv, size_t index, struct row *row, vp_error *error);

#endif
