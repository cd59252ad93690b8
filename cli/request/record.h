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
struct sample {
    int64_t id;       /* 0-based line number */
    char *record;     /* the line itself, JSON; NULL for `run` */
    char *question, *style, *prompt, *image_path;
    int32_t width_px, height_px;
    int32_t *text_ids; int32_t text_count;
    int no_image, no_bos;               /* its data set's prompt goes without */
    const vp_prompt_dataset *dataset;   /* NULL: none of the nine; names its prompt and answer length */
    char *reason; /* why the image cannot be used; NULL: it can */
};

void sample_free(struct sample *sample);

/* a measured, failed or yet unmeasured point of the grid */
struct point {
    const struct sample *sample;
    const vp_layout *layout;   /* NULL: text only, or not known */
    const char *tier;          /* NULL: not by tier */
    int32_t target_tokens, target_crops; /* 0: none */
    int32_t top_k; const int32_t *blocks; int32_t block_count;
    const struct pass_result *runs; int32_t run_count; /* 0 when it failed */
    const char *reason;                    /* NULL: measured */
    vp_score_metric metric;
    int ignore_eos;
};

void put_point_layout(vp_json_writer *writer, const struct point *point);
void put_point_tokens(vp_json_writer *writer, const struct point *point);

void put_point_times(vp_json_writer *writer, const struct point *point);

void put_answer(vp_json_writer *writer, const char *key, const struct pass_result *run);

/* What the record says to the answer of the first timed run (C strings: a NUL ends what is scored). The outcome's
 * texts live in *scoring: scoring_free. */
void score_point(const struct point *point, struct scoring *scoring, vp_score_outcome *outcome);
void put_point_answer(vp_json_writer *writer, const struct point *point, const vp_score_outcome *scored);

/* the record's members, with question, answers, image_id and id always there */
void put_metadata(vp_json_writer *writer, struct parsed *scratch, const struct sample *sample);

#endif
