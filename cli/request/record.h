/* record.h: a measured point as JSON. */
#ifndef VLMPROF_CLI_RECORD_H
#define VLMPROF_CLI_RECORD_H
#include "base/json.h"
#include "base/metrics.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_prompt.h"
#include "vlmprof_score.h"

/* a question about an image; what a data set's line or `run`'s operands become */
typedef struct sample {
    int64_t id;       /* 0-based line number */
    char *record;     /* the line itself, JSON; NULL for `run` */
    char *question, *style, *prompt, *image_path;
    int32_t width_px, height_px;
    int32_t *text_ids; int32_t text_count;
    int no_image, no_bos;               /* its data set's prompt goes without */
    const vp_prompt_dataset *dataset;   /* NULL: none of the nine; names its prompt and answer length */
    char *reason; /* why the image cannot be used; NULL: it can */
} sample;

void sample_free(sample *a);

/* a measured, failed or yet unmeasured point of the grid */
typedef struct point {
    const sample *a;
    const vp_layout *layout;   /* NULL: text only, or not known */
    const char *tier;          /* NULL: not by tier */
    int32_t target_tokens, target_crops; /* 0: none */
    int32_t top_k; const int32_t *blocks; int32_t block_count;
    const timing *runs; int32_t run_count; /* 0 when it failed */
    const char *reason;                    /* NULL: measured */
    vp_score_metric metric;
    int ignore_eos;
} point;

void put_point_layout(vp_json_writer *w, const point *p);
void put_point_tokens(vp_json_writer *w, const point *p);

void put_point_times(vp_json_writer *w, const point *p);

void put_answer(vp_json_writer *w, const char *key, const timing *t);

/* What the record says to the answer of the first timed run (C strings: a NUL ends what is scored). The texts of *o live in *s: scoring_free. */
void score_point(const point *p, scoring *s, vp_score_outcome *o);
void put_point_answer(vp_json_writer *w, const point *p, const vp_score_outcome *scored);

/* the record's members, with question, answers, image_id and id always there */
void put_metadata(vp_json_writer *w, parsed *scratch, const sample *a);

#endif
