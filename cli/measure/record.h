/* record.h: a sample, a measured point, and both as JSON.
 * put_... writes members of the open object. */
#ifndef VLMPROF_CLI_RECORD_H
#define VLMPROF_CLI_RECORD_H
#include "base/json.h"
#include "results/fields.h"
#include "results/knobs.h"
#include "results/metrics.h"
#include "model/image.h"
#include "score/scoring.h"
#include "vlmprof_prompt.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

/* A question about images, from a line of a data set or from the operands of `run`. It owns its texts. */
struct sample {
    int64_t id;   /* 0-based line number */
    char *record; /* the line itself, JSON; NULL for `run` */
    char *question, *style, *prompt;
    struct text_list images; /* paths of the images */
    struct image_px *sizes;  /* [images.count]; NULL if not known yet */
    size_t *places;          /* [images.count]: byte offsets in a server's prompt; NULL: all at the start */
    struct prompt_tokens tokens;
    int no_image;                     /* 1 if the prompts of its data set have no image */
    const vp_prompt_dataset *dataset; /* sets its prompt and answer length; NULL: not a known data set */
    char *reason;                     /* why an image cannot be used; NULL if all can */
};

/* The path of its only or first image, or NULL. */
static inline const char *first_image(const struct sample *sample) {
    return sample->images.count ? sample->images.items[0] : NULL;
}
/* Returns 1 if one of its image files no longer exists. */
int has_vanished_image(const struct sample *sample);

void sample_free(struct sample *sample);

/* A point of the grid: measured, failed, or not measured yet. It owns nothing. */
struct point {
    const struct sample *sample;
    const struct cuts *cuts; /* cuts of its images; NULL: text only, or not known */
    const struct knob_values *knobs;
    int32_t target_tokens, target_crops; /* 0: no target */
    const struct pass_result *runs; int32_t run_count; /* 0 if it failed */
    const char *reason; /* why it failed; NULL if it did not */
    const char *chosen; double overhead_ms; /* of a policy: the name of the configuration; NULL: no policy */
    const char *activations; /* name of vp_engine_activations; NULL: none */
    vp_score_metric metric;
    int ignore_eos;
    const vp_pruned *pruned; /* NULL: all image tokens were kept */
    int is_served;           /* 1 if a server ran it: only the arrival of the answer is known */
};

/* "image" and "image_size", null without an image. For several, these are null, and "images" has both per image. */
void put_images(vp_json_writer *writer, const struct sample *sample);

/* The setting, the theoretical and the actual tiling, the lengths of the sequence. */
void put_point_layout(vp_json_writer *writer, const struct point *point);

/* The same members for a point that a server ran, from the journal's record of what was sent. */
void put_served_layout(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent);

/* The members that only points of servers have: the data sent, the server's counts, the answer of each run. */
void put_served_point(vp_json_writer *writer, const struct point *point, const struct served_sizes *sent);

/* The lengths of the answer of the first run. */
void put_point_tokens(vp_json_writer *writer, const struct point *point);

/* Means over the runs: totals, stages, details of the stages; then each decode step, and each single run. */
void put_point_times(vp_json_writer *writer, const struct point *point);

/* Returns 1 if an answer ended because no more tokens were allowed; -1 if a server does not report it. */
int is_truncated(const struct pass_result *run);

/* The text of a run; null if run is NULL. */
void put_answer(vp_json_writer *writer, const char *key, const struct pass_result *run);

/* Scores the answer of the first timed run against the record; a NUL ends the scored text. Under load the score is the
 * mean over the answers of all runs, and 0 for a point that failed. *scoring owns the
 * outcome's texts; the caller frees it with scoring_free. */
void score_point(const struct point *point, struct scoring *scoring, vp_score_outcome *outcome);

/* The answer of the first run, its score, and its flags. */
void put_point_answer(vp_json_writer *writer, const struct point *point, const vp_score_outcome *scored);

/* Writes clocks, power and temperature as an object, a value. */
void put_telemetry(vp_json_writer *writer, const vp_telemetry *telemetry);

/* "metadata": the members of the record; question, answers, image_id and id are always present. scratch is
 * overwritten. */
void put_metadata(vp_json_writer *writer, struct parsed *scratch, const struct sample *sample);

#endif
