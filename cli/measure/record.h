/* record.h: a sample, a measured point, and both as JSON.
 * put_... writes members of the open object. */
#ifndef VLMPROF_CLI_RECORD_H
#define VLMPROF_CLI_RECORD_H
#include "base/json.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "results/metrics.h"
#include "model/cuts.h"
#include "score/scoring.h"
#include "vlmprof.h"
#include "vlmprof_prompt.h"
#include "vlmprof_score.h"

/* A question about images: what a line of a data set, or the operands of `run`, become. It owns its texts. */
struct sample {
    int64_t id;       /* 0-based line number */
    char *record;     /* the line itself, JSON; NULL for `run` */
    char *question, *style, *prompt;
    struct text_list images;      /* their paths */
    struct image_px *sizes;       /* [images.count]; NULL: not known yet */
    size_t *places;               /* [images.count]: bytes of a server's prompt before which they are; NULL: in front */
    struct text_list own_images;  /* files that were made for this sample, and go with it */
    int32_t *text_ids; int32_t text_count;
    int no_image, no_bos;             /* truths: the prompts of its data set have no image, no BOS */
    const vp_prompt_dataset *dataset; /* gives its prompt and answer length; NULL: none of the nine known ones */
    char *reason;                     /* why an image cannot be used; NULL: they can */
};

/* The path of its only or first image; NULL: it has none. */
static inline const char *first_image(const struct sample *sample) {
    return sample->images.count ? sample->images.items[0] : NULL;
}
/* Returns 1 if a file of its images is not there. */
int has_vanished_image(const struct sample *sample);

void sample_free(struct sample *sample);

/* A point of the grid: measured, failed, or not measured yet. It owns nothing. */
struct point {
    const struct sample *sample;
    const struct cuts *cuts;   /* of its images; NULL: text only, or not known */
    const struct knob_values *knobs;
    int32_t target_tokens, target_crops; /* 0: none */
    const struct pass_result *runs; int32_t run_count; /* 0 when it failed */
    const char *reason; /* why it failed; NULL: it did not */
    vp_score_metric metric;
    int ignore_eos;
    /* image tokens after the last cut, and their mean over blocks; 0: all went on */
    int32_t kept_tokens; double mean_image_tokens;
    int64_t cache_bytes, full_cache_bytes; /* of the KV cache, then; 0: not pruned */
    int is_served; /* 1 if a server ran it; only the answer as it arrived is known */
};

/* "image" and "image_size", null without one; of several images these are null, and "images" has both of each. */
void put_images(vp_json_writer *writer, const struct sample *sample);

/* The setting, the tiling in theory and in fact, the lengths of the sequence. */
void put_point_layout(vp_json_writer *writer, const struct point *point);

/* The same members of a point that a server ran, from what the journal says was sent. */
void put_served_layout(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent);

/* The members that only points of servers have: what was sent, what the server counted, each run's answer. */
void put_served_point(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent);

/* The lengths of the answer of the first run. */
void put_point_tokens(vp_json_writer *writer, const struct point *point);

/* Means over the runs: totals, stages, details of the stages; then each decode step, and each run by itself. */
void put_point_times(vp_json_writer *writer, const struct point *point);

/* Returns 1 if an answer ended because no more tokens were allowed; -1: a server does not say. */
int is_truncated(const struct pass_result *run);

/* The text of a run; run NULL: null. */
void put_answer(vp_json_writer *writer, const char *key, const struct pass_result *run);

/* Scores the answer of the first timed run against the record; a NUL ends what is scored. The outcome's texts live in
 * *scoring, which the caller frees with scoring_free. */
void score_point(const struct point *point, struct scoring *scoring, vp_score_outcome *outcome);

/* The answer of the first run, its score, and what is out of the ordinary about it. */
void put_point_answer(vp_json_writer *writer, const struct point *point, const vp_score_outcome *scored);

/* "metadata": the members of the record, with question, answers, image_id and id always there. scratch is
 * overwritten. */
void put_metadata(vp_json_writer *writer, struct parsed *scratch, const struct sample *sample);

#endif
