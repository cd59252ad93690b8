/* load_bodies.h: makes request bodies from the samples of a data set, and scores their answers. A loaded data set comes
 * in; bodies that can be sent come out. */
#ifndef VLMPROF_CLI_LOAD_BODIES_H
#define VLMPROF_CLI_LOAD_BODIES_H
#include "data/dataset.h"
#include "load/load_run.h"
#include "server/knobs.h"

struct load_bodies {
    struct load_body *items; size_t count; /* one per sample with a usable image */
    int is_random;                         /* 1 if synthetic: answers are not scored */
    struct sample *samples; int64_t *ids;  /* [count] */
    size_t unusable; size_t bytes;         /* skipped samples; total size of all bodies */
    size_t imaged;                         /* bodies with an image */
    size_t same;                           /* bodies that do not change between requests */
    uint64_t hash;                         /* hash of all bodies */
};

/* Builds all bodies. Each request has its own image, or with --same_image the file. *bodies is zeroed first. Returns 0
 * or an exit code after a message; in both cases the caller must call load_bodies_free. */
int load_bodies_make(const struct options *options, const struct dataset *dataset, const struct endpoint *endpoint,
                     const struct request_knobs *knobs, struct load_bodies *bodies);
/* Synthetic requests: the size of the picture, 0 for none; the words per prompt; the number of requests. */
struct random_request { int32_t width_px, height_px; int64_t words, new_tokens; size_t count; uint32_t seed; };
/* Builds synthetic bodies, all different. Otherwise like load_bodies_make. */
int load_bodies_random(const struct options *options, const struct random_request *request,
                       const struct endpoint *endpoint, const struct request_knobs *knobs,
                       struct load_bodies *bodies);
void load_bodies_free(struct load_bodies *bodies);

/* Scores each answer that has no score yet against its sample; a record that failed gets none. */
void load_score(const struct load_bodies *bodies, vp_score_metric metric, struct load_records *records);

#endif
