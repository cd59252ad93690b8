/* baseline.h: sweep --baseline: the baseline that each configuration of a data set is compared with. A configuration of
 * the grid, or the answers of earlier results, comes in; a struct fidelity per point goes out. The logits of a
 * configuration are only kept in memory, for one sample. Functions return 0 or an exit code after a message. */
#ifndef VLMPROF_CLI_BASELINE_H
#define VLMPROF_CLI_BASELINE_H
#include "data/plan.h"
#include "measure/fidelity.h"
#include "model/model.h"
#include "results/fields.h"

/* An answer of earlier results. */
struct old_answer { int64_t id; int32_t *tokens; int32_t count; char *text; size_t bytes; };

/* The baseline of a data set's points. */
struct baseline_of {
    const struct configuration *configuration; /* NULL for earlier results */
    char *path;                                /* path of the earlier results */
    struct old_answer *answers; size_t count;  /* ascending by id */
};
struct baseline {
    struct baseline_of *of; /* [sets of the plan]; NULL without --baseline */
    size_t set_count;
    /* the baseline's answer to the current sample */
    int is_made;
    char *reason;    /* why there is no answer; NULL if there is one */
    struct buffer tokens, logits, row; int32_t token_count, logit_rows; /* none for a server */
    struct served_answer said; /* its text, and a server's lists */
    size_t width;    /* width of a row of logits */
};

/* Finds the baseline of each data set by the name of --baseline (NULL: none), and makes the choice part of the plan's
 * fingerprint. model NULL: servers. */
int baseline_open(struct baseline *baseline, const char *name, const struct model *model, struct plan *plan);
void baseline_close(struct baseline *baseline);

/* Its name in results. */
const char *baseline_name(const struct baseline *baseline, size_t set);

/* Call before the first point of a sample: discards the previous sample. */
void baseline_forget(struct baseline *baseline);
/* Takes an answer of earlier results. */
void baseline_take_old(struct baseline *baseline, size_t set, int64_t sample_id);
/* Records that there is no answer because of `reason`, which is copied. */
void baseline_lacks(struct baseline *baseline, const char *reason);

/* Prepares the pass that gives the baseline's answer and logits or, for another point, the pass that follows its
 * answer. The input refers to *dump. Call baseline_keep after a pass of baseline_answer. */
void baseline_answer(struct baseline *baseline, struct pass_input *input, vp_dump *dump);
void baseline_keep(struct baseline *baseline, const struct pass_result *run);
void baseline_follow(struct baseline *baseline, struct pass_input *input, vp_dump *dump, struct fidelity_pass *pass,
                     struct fidelity *fidelity);

#endif
