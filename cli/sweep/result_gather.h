/* result_gather.h: reads the points of a configuration back from their journals and gathers their numbers into lists.
 * A journal's index comes in; points and lists of numbers go out. The data set, the model and the engine are not
 * needed. */
#ifndef VLMPROF_CLI_RESULT_GATHER_H
#define VLMPROF_CLI_RESULT_GATHER_H
#include "measure/record.h"
#include "results/fields.h"
#include "results/metrics.h"
#include "score/scoring.h"
#include "server/checks/twins.h"
#include "sweep/journal.h"
#include "vlmprof_statistics.h"

/* The data in a run's line other than its times. */
struct run_mark {
    int is_throttled; /* 1 if the device was throttled */
    int64_t session;  /* byte offset of the session's line in the same journal; -1: not known */
    int64_t unix_s;   /* end of the run */
    char *telemetry;  /* JSON, or NULL */
    int64_t at;       /* byte offset of the run's line */
    vp_noise noise;   /* noise of its block; NaN if not known */
};

/* The prompts of a server's answers. If image sizes and texts are equal, so are the numbers of tokens. A text
 * has at most one token per byte, and at least half as many as words. */
struct prompt_count {
    uint64_t sizes, same;        /* equal for equal sizes; and for equal texts */
    int64_t tokens, text, least; /* tokens; most of the text; least by the rule and the words */
};
struct prompts { struct prompt_count *items; size_t count; };
/* sizes: a hash of the server and the sizes of the images; by_rule: the tokens of the images, or -1 */
struct prompt_count prompt_count_of(uint64_t sizes, const char *text, int64_t by_rule, int64_t tokens);
/* Adds a prompt. One of each kind is kept: that which needs the most tokens. */
void prompts_add(struct prompts *prompts, const struct prompt_count *prompt);
/* The fewest tokens that this prompt can have with its images, by the rule and by the other prompts. */
int64_t prompts_least(const struct prompts *prompts, const struct prompt_count *prompt);

/* A closed point, from its journal. */
struct measured {
    struct sample sample; /* id, prompt; record: the sample's metadata */
    struct point point;   /* in the form of measure/record.h; it refers to the members here */
    struct sizes sizes; struct served_sizes served_sizes; /* sizes of the point's layout, or of the sent data */
    struct pass_result *runs;
    struct run_mark *marks;
    int32_t count;           /* in the order in which they ran */
    int64_t stamps, retries; /* clock reads of one request; repeated attempts of all runs */
    char *failed, *stop; /* why it failed, or what ended its runs; the other one is NULL */
    struct bare_pair bare; /* a pair of runs with and without stage times; all 0 if there is none */
    int has_sizes, has_twins; /* 1 or 0; twins: they were requested from a server */
    struct twins_object twins;
    int has_fidelity; struct fidelity fidelity; /* 1 with --baseline */
};

/* Returns 1 if the point has its last line: it was measured or has failed. */
int is_closed_point(const struct index_entry *entry, const struct index_configuration *configuration);

/* Reads a closed point with all its lines into *measured, whose old point is freed. Zero *measured before the first
 * use, and call measured_free in the end. Returns 0 or an exit code. */
int measured_read(struct journal_index *index, const struct index_configuration *configuration,
                  const struct index_entry *entry, struct measured *measured);
void measured_free(struct measured *measured);

#define OUTLIER_THRESHOLD 3.5 /* Iglewicz and Hoaglin's; hyperfine's is 10 */
/* The threshold above flags 10 % of 3 normally distributed values, 5 % of 5, 1.7 % of 10 and 0.1 % of 100. */
#define OUTLIER_COUNT_MIN 5
struct outliers {
    size_t count;       /* flagged values */
    double median, mad; /* mad: median absolute deviation from the median */
    double first_score; /* modified z score of the first value */
    int slow_first;     /* 1 if first_score > threshold: caches were cold, or warm-up was too short */
};
/* Flags outliers without removing them.
 * in:      values     double [count], in the order of measurement
 *          threshold  > 0: OUTLIER_THRESHOLD
 * out:     scratch    double [count]; not `values`
 *          flags      uint8 [count], 0 or 1; may be NULL
 * returns: VP_OK; VP_ERR_RANGE: a value or a deviation is not finite, or the threshold is not above 0;
 *          VP_ERR_UNSUPPORTED: fewer than OUTLIER_COUNT_MIN values
 * rule:    |z| > threshold, z = 0.6745 (x - median) / mad. If mad is 0 (half of the values are equal): z = (x - median)
 *          / (1.253314 times the mean absolute deviation). If that is 0 too, all values are equal and none is flagged
 * source:  Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993); slow first value: sharkdp/hyperfine */
vp_result find_outliers(const double *values, size_t count, double threshold, double *scratch, uint8_t *flags,
                        struct outliers *outliers);
/* Returns 1 if the point has enough runs to find outliers of T_total, and sets *outliers. flags: uint8 [count], 1 for
 * an outlier; all are 0 if there are too few runs. */
int can_find_outliers(const struct measured *measured, uint8_t *flags, struct outliers *outliers);

/* The rates of a point's runs: 1000 / mean of T_decode_per_token; output tokens / mean of T_total. NaN if there is no
 * such mean. */
double measured_decode_rate(const struct measured *measured);
double measured_output_rate(const struct measured *measured);

/* The metrics of a pass: its totals, then the ms of each stage. */
enum { METRIC_ALL = METRIC_STAGE + VP_STAGE_COUNT };

/* The lists of numbers. Each has its own count, because points can lack a number. */
enum {
    LIST_METRICS = 0,       /* per metric: the points' means over their runs */
    LIST_RUNS = METRIC_ALL, /* per metric: single runs */
    /* per point: vision tokens (target, actual, target minus actual), crops, accuracy */
    LIST_TARGET = 2 * METRIC_ALL, LIST_ACTUAL, LIST_DIFF, LIST_CROPS, LIST_ACCURACY,
    /* per layout: rows * 65536 + columns, the canvas in px, theoretical vision tokens */
    LIST_TILING, LIST_HEIGHT, LIST_WIDTH, LIST_TOKENS,
    /* per point: tokens in the answer, the two rates in tokens/s, clock reads of a request */
    LIST_OUTPUT, LIST_DECODE_RATE, LIST_OUTPUT_RATE, LIST_STAMPS,
    LIST_BARE, LIST_STAGED,   /* ms of the runs without and with stage times */
    LIST_STEP, LIST_STEP_AT,  /* ms of each decode step, and its position, from 1 */
    LIST_REPEATS, LIST_NEIGHBOURS, /* log ratios: of two runs of one point; of two points, corrected for work */
    /* with --baseline, per token: divergence, and its upper bound for a server; per row: sum of the divergences,
     * tokens, tokens with the same most likely token and their share, 1 or 0 for equal answers; per row that differs:
     * index of the first difference and the margins there */
    LIST_DIVERGENCE, LIST_AT_MOST, LIST_ROW_DIVERGENCE, LIST_ROW_TOKENS, LIST_ROW_EQUAL, LIST_ROW_TOP1,
    LIST_ANSWER_AGREEMENT, LIST_FIRST_DIFFERENCE, LIST_MARGIN, LIST_BASELINE_MARGIN,
    LIST_COUNT
};

struct number_list {
    double *values;
    size_t count;
};
struct used_session { int32_t file; int64_t at; }; /* the journal, and the session's byte offset in it */

/* A point's first run, for comparison with later runs of similar work: the ms and the work of each stage. */
enum { NEIGHBOURS = 8 };
struct neighbour { int32_t file; int64_t session; double ms[VP_STAGE_COUNT], work[VP_STAGE_COUNT]; };

struct gathered {
    struct number_list lists[LIST_COUNT];
    int64_t ok_count, failed_count, missing_count;        /* points */
    int64_t unparsed_count, truncated_count, empty_count; /* answers of the points' first runs */
    int64_t run_count, outlier_count, throttled_count, retry_count;
    int64_t cached_count;             /* runs of a server whose prompt came from a cache: is_prompt_cached */
    struct prompts prompts, counts; int64_t dropped_count; /* the longest; all; runs with image_dropped */
    const char *lacks[METRIC_STAGE];  /* why a run of a server lacks a metric; NULL if none does */
    int64_t stops[STOP_LAST_ + 1]; /* number of points by the rule that ended their runs */
    struct used_session *sessions; size_t session_count; /* in the order of their first points */
    int64_t first_s, last_s; /* end of the first and of the last run; 0 if there are none */
    struct tally tally;      /* counts of the accuracies */
    struct gathered_twins {
        int are_there; /* 1 if they were requested */
        char *reason;  /* why pairs are missing; NULL if none is */
        struct twin_pair *pairs; int32_t count;
    } twins;                 /* the pairs of all points */
    char *baseline, *fidelity_reason; /* NULL without --baseline; NULL if everything was compared */
    int64_t tie_count;       /* rows that differ with a margin below TIE_NATS */
    vp_noise_summary noise;  /* noise of the blocks that contain its runs */
    uint8_t *has_block;      /* [blocks of all journals]: 1 if the block is in `noise` */
    struct neighbour neighbours[NEIGHBOURS]; int32_t neighbour_count; /* the newest first */
};

/* Sets image_dropped of a server's runs, by the prompts of all points. */
void mark_dropped(const struct gathered *gathered, struct measured *measured);

/* Zeroes *gathered and gathers all closed points of a configuration into it. Returns 0 or an exit code. In both cases
 * the caller must call gathered_free. */
int gather_configuration(struct journal_index *index, const struct index_configuration *configuration,
                         struct gathered *gathered);
void gathered_free(struct gathered *gathered);

/* The index of a session among the used ones; session_count if it is not one of them. */
size_t gathered_session(const struct gathered *gathered, int32_t file, int64_t at);

#endif
