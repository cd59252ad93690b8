/* dataset.h: data sets: JSONL, VQA v2, folders of images. Loading finds and draws the
 * positions of the sampled records; samples are then read one after another. Functions return 0, or an exit code after
 * a message on stderr, unless noted otherwise. If model is NULL, the samples are for chat servers: a prompt is the
 * question as a message (build_message), and nothing is tokenized. */
#ifndef VLMPROF_CLI_DATASET_H
#define VLMPROF_CLI_DATASET_H
#include "base/json_stream.h"
#include "model/model.h"
#include "measure/record.h"
#include "vlmprof_image.h"
#include "vlmprof_prompt.h"
#include "vlmprof_score.h"

enum { REASONS_MAX = 255 };
typedef enum data_kind { KIND_LINES, KIND_VQA, KIND_FOLDER } data_kind;

/* A sampled record: what a plan needs of it, and the position of its text. Positions are byte offsets in the file. */
struct entry {
    int64_t id;         /* 0-based number of the line, the question or the image */
    int64_t start;      /* position of the record */
    int64_t note_start; /* position of VQA v2's annotation; -1 if it has none */
    uint32_t bytes, note_bytes;
    uint64_t hash;          /* hash of these bytes: the measured record must be the planned one */
    struct image_px *sizes; int32_t image_count; /* sizes of its images; 0 if unknown or unusable */
    int32_t text_count;     /* number of tokens of the prompt */
    unsigned char no_bos;
    unsigned char is_text; /* 1: prompts of its data set have no image */
    unsigned char reason;  /* reason why an image cannot be used: index + 1 in dataset.reasons; 0 if it can */
};

/* How to read data, and which samples to draw. A text is NULL if its option is not given. */
struct data_settings {
    const char *annotations, *image_dir, *dataset_name, *prompt, *style, *answer_hint;
    const char *metric;      /* a checked name */
    const char *stratify_by; /* the field whose shares are kept */
    size_t num_samples;
    uint32_t seed;
    int allow_outside;  /* 1: image names may leave their folder with .. */
    int32_t new_tokens; /* longest answer; 0: the data set's */
};

struct dataset {
    const struct data_settings *settings;
    const char *path;
    char *task; /* the name in the result files */
    data_kind kind;
    struct source source; /* open as long as the data set, because samples are read when they are needed */
    struct source notes; char *notes_path; /* KIND_VQA: annotations; NULL if none */
    struct text_list names;                /* KIND_FOLDER: names of the images */
    char *subtype;                         /* KIND_VQA: "val2014" */
    const vp_prompt_dataset *defaults;     /* prompts and answer length; NULL if not one of the nine known data sets */
    int32_t new_tokens;
    vp_score_metric metric;
    char metric_from[120];                                      /* why this metric */
    size_t record_count, answered, least_answers, most_answers; /* samples with answers; least and most per sample */
    struct entry *samples; size_t count;   /* ascending by id */
    char *reasons[REASONS_MAX]; int32_t reason_count;
    uint64_t hash; /* hash of all sampled records, prompts and image paths */
};

/* Reads a file or folder and draws its samples. dataset->path is set and the rest zeroed first. The caller calls
 * dataset_free, also after a failure. */
int dataset_load(const struct data_settings *settings, const struct model *model, struct dataset *dataset);
/* Returns 0, or an exit code after a message if no sample can be used. */
int dataset_check_usable(const struct dataset *dataset, const struct model *model);
void dataset_free(struct dataset *dataset);

/* Reads a planned sample: its record, prompt, tokens and image paths, and the sizes of its images when planned. `index`
 * is an index into dataset->samples. Returns 0, and the caller calls sample_free. If the file cannot be read or its
 * contents have changed, returns an exit code and zeroes *sample. */
int dataset_sample(const struct dataset *dataset, const struct model *model, size_t index, struct sample *sample);

/* Decodes a planned sample's images, unless *images has them: [images.count], malloc'ed; images_free frees them. If an
 * image is missing, damaged or has another size now, returns an exit code, with a reason in `reason` and *images NULL.
 * Prints nothing. */
int sample_images(const struct sample *sample, vp_image **images, char *reason, size_t capacity);
void images_free(vp_image *images, size_t count); /* may be NULL */

/* ---- describe.c: what a data set contains, for sweep --plan */
/* Prints format, samples, images, answers, metric and a prompt, in a few lines on stdout. Returns 0, or an exit code if
 * a sample cannot be read. */
int dataset_print(const struct dataset *dataset, const struct model *model);

/* The same as an element of the open array. */
int dataset_put(vp_json_writer *writer, const struct dataset *dataset, const struct model *model);

#endif
