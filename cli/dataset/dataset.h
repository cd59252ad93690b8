/* dataset.h: data sets: JSONL, VQA v2, folders of images. */
#ifndef VLMPROF_CLI_DATASET_H
#define VLMPROF_CLI_DATASET_H
#include "base/json_stream.h"
#include "base/memory.h"
#include "base/options.h"
#include "request/model.h"
#include "request/record.h"
#include "vlmprof_image.h"
#include "vlmprof_prompt.h"
#include "vlmprof_score.h"

enum { REASONS_MAX = 255 };
typedef enum data_kind { DATA_LINES, DATA_VQA, DATA_FOLDER } data_kind;

typedef struct entry {
    int64_t id, start, note_start;          /* places of the record and of VQA v2's annotation, -1: it has none */
    uint64_t hash;                          /* of these bytes: what is measured is what was planned */
    uint32_t bytes, note_bytes;
    int32_t width_px, height_px;            /* 0: there is no image that can be used */
    int32_t text_count;                     /* tokens of the prompt */
    unsigned char has_image, no_bos, reason; /* reason: why the image cannot be used, from 1 in dataset.reasons */
} entry;

typedef struct dataset {
    const options *o;
    const char *path;
    char *task;
    data_kind kind;
    source s, notes; char *notes_path;      /* open as long as the data set: samples are read when their turn comes */
    text_list names;                        /* DATA_FOLDER: of the images */
    char *subtype;                          /* DATA_VQA: "val2014" */
    const vp_prompt_dataset *defaults;      /* prompts and max_new_tokens; NULL: none of the nine */
    int32_t new_tokens;
    vp_score_metric metric;
    entry *samples; size_t count;           /* ascending by id */
    char *reasons[REASONS_MAX]; int32_t reason_count;
    uint64_t hash;                          /* of all records, prompts and image sizes */
} dataset;

void dataset_free(dataset *d);

/* Loads a sample that was planned, for sample_free: its record, prompt, tokens and image path, and the size that its image had.
 * 0; or EXIT_INPUT after a message, *a empty: the file cannot be read, or says something else now. */
int dataset_sample(const dataset *d, const model *m, size_t index, sample *a);

/* A planned sample's image; EXIT_INPUT and a reason where it vanished, broke or has another size now. */
int sample_image(const sample *a, vp_image *image, char *reason, size_t capacity);

/* File or folder -> the sampled records, in file order. d->path is set; dataset_free, also after a failure. */
int dataset_load(const options *o, const model *m, dataset *d);

#endif
