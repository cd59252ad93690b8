/* result_gather.h: the points of a configuration read back from their journals, their numbers gathered into lists.
 * A journal's index comes in; points and lists of numbers go out. Neither the data set, the model nor the engine is
 * needed. */
#ifndef VLMPROF_CLI_RESULT_GATHER_H
#define VLMPROF_CLI_RESULT_GATHER_H
#include "base/json.h"
#include "measure/record.h"
#include "results/fields.h"
#include "results/metrics.h"
#include "score/scoring.h"
#include "server/checks/twins.h"
#include "sweep/journal.h"
#include "vlmprof.h"
#include "vlmprof_stages.h"

/* What a run's line says next to its times. */
struct run_mark {
    int is_throttled; /* 1 if the device ran slower than it could */
    int64_t session;  /* place of the session's line in the same journal; -1: not known */
    int64_t unix_s;   /* when the run ended */
    char *telemetry;  /* JSON; NULL: none */
    int64_t at;       /* place of the run's line */
    vp_noise noise;   /* of its block; NaN: not known */
};

/* A closed point as its journal has it. */
struct measured {
    struct sample sample; /* id, prompt; record: the sample's metadata */
    struct sizes sizes; struct served_sizes served_sizes; /* of the point's layout, or of what a server got */
    struct pass_result *runs; struct run_mark *marks; int32_t count, capacity; /* in the order they ran */
    int64_t stamps, retries; /* clock reads of one request; attempts beyond the first one of each run */
    char *failed, *stop; /* why it failed; what ended its runs; one of both, the other NULL */
    struct bare_pair bare; /* a pair of runs without and with stage times; all 0: there is none */
    int has_sizes, has_twins; /* truths; twins: a server was asked for them */
    struct twins_object twins;
    int has_fidelity; struct fidelity fidelity; /* 1 with --baseline */
};

/* Returns 1 if the point has its last line, as measured or as failed. */
int is_closed_point(const struct index_entry *entry, const struct index_configuration *configuration);

enum twin_method method_of_twins(const struct twins_object *twins);

/* Reads a closed point with all its lines into *measured, which was zeroed before its first use and whose old point is
 * lost. Returns 0 or an exit code. The caller calls measured_free in the end. */
int measured_read(struct journal_index *index, const struct index_configuration *configuration,
                  const struct index_entry *entry, struct measured *measured);
void measured_free(struct measured *measured);

/* The same point as measure/record.h describes it; it refers to `measured`. */
struct point measured_point(const struct journal_index *index, const struct index_configuration *configuration,
                            const struct measured *measured);

/* Returns 1 if the point has enough runs to find outliers of its total, and sets *outliers. flags: uint8 [count], 1 for
 * those runs; all are 0 when there are too few. */
int can_find_outliers(const struct measured *measured, uint8_t *flags, vp_outliers *outliers);

/* The rates of a point's runs: 1000 / the mean of T_decode_per_token; output tokens / the mean of T_total. NaN where
 * there is no such mean. */
double measured_decode_rate(const struct measured *measured);
double measured_output_rate(const struct measured *measured);

/* The metrics of a pass: its totals, then the ms of each stage. */
enum { METRIC_ALL = METRIC_STAGE + VP_STAGE_COUNT };

/* What is gathered. Each list has its own count, because points can lack a number. */
enum {
    LIST_METRICS = 0,         /* of each metric: a point's mean over its runs */
    LIST_RUNS = METRIC_ALL,   /* of each metric: each run by itself */
    /* of each point: vision tokens (target, actual, target less actual), crops, accuracy */
    LIST_TARGET = 2 * METRIC_ALL, LIST_ACTUAL, LIST_DIFF, LIST_CROPS, LIST_ACCURACY,
    /* of each layout: rows * 65536 + columns, the canvas in px, theoretical vision tokens */
    LIST_TILING, LIST_HEIGHT, LIST_WIDTH, LIST_TOKENS,
    /* of each point: tokens of the answer, the two rates in tokens/s, clock reads of a request */
    LIST_OUTPUT, LIST_DECODE_RATE, LIST_OUTPUT_RATE, LIST_STAMPS,
    LIST_BARE, LIST_STAGED,   /* ms of the pairs without and with stage times */
    LIST_STEP, LIST_STEP_AT,  /* ms of each decode step, and its position from 1 on */
    LIST_REPEATS, LIST_NEIGHBOURS, /* log ratios: of two runs of one point; of two points, their work allowed for */
    /* with --baseline, of each token its divergence, and as much of a server's upper bound; of each row the sum of the
     * first, tokens, those whose likeliest token is equal, and the same as a share; 1 or 0 for equal answers; of each
     * that differs the place and the margins there */
    LIST_DIVERGENCE, LIST_AT_MOST, LIST_ROW_DIVERGENCE, LIST_ROW_TOKENS, LIST_ROW_EQUAL, LIST_ROW_TOP1,
    LIST_ANSWER_AGREEMENT, LIST_FIRST_DIFFERENCE, LIST_MARGIN, LIST_BASELINE_MARGIN,
    LIST_COUNT
};

struct number_list { double *values; size_t count, capacity; };
struct used_session { int32_t file; int64_t at; }; /* the journal, and the place of the session's line in it */

/* A point's first run, for the next one that does about as much: the ms and the work of each stage. */
enum { NEIGHBOURS = 8 };
struct neighbour { int32_t file; int64_t session; double ms[VP_STAGE_COUNT], work[VP_STAGE_COUNT]; };

struct gathered {
    struct number_list lists[LIST_COUNT];
    int64_t ok_count, failed_count, missing_count;        /* points */
    int64_t unparsed_count, truncated_count, empty_count; /* answers of the points' first runs */
    int64_t run_count, outlier_count, throttled_count, retry_count;
    int64_t cached_count;    /* runs of a server whose prompt came from a cache: is_prompt_cached */
    const char *lacks[METRIC_STAGE]; /* why a run of a server lacks a metric; NULL: none does */
    int64_t stops[VP_STOP_LAST_ + 1]; /* points whose runs each rule ended */
    struct used_session *sessions; size_t session_count; /* in the order of their first points */
    int64_t first_s, last_s; /* when the first and the last run ended; 0: none ran */
    struct tally tally;      /* of the accuracies */
    struct gathered_twins {
        int are_there;          /* 1 if they were asked for */
        char *reason;           /* why there are no pairs, or fewer; NULL: there are all */
        enum twin_method method;
        struct twin_pair *pairs; int32_t count;
    } twins;                 /* those of all points */
    char *baseline, *fidelity_reason; /* NULL: without --baseline; everything was compared */
    int64_t tie_count;       /* rows that differ where the margin is below TIE_NATS */
    vp_noise_summary noise;  /* of the blocks that its runs belong to */
    uint8_t *has_block;      /* [blocks of all journals]: 1 for those that are in `noise` */
    struct neighbour neighbours[NEIGHBOURS]; int32_t neighbour_count; /* the newest first */
};

/* Gathers all closed points of a configuration into *gathered, which is zeroed before. Returns 0 or an exit code; the
 * caller calls gathered_free in both cases. */
int gather_configuration(struct journal_index *index, const struct index_configuration *configuration,
                         struct gathered *gathered);
void gathered_free(struct gathered *gathered);

/* The index of a session among those that were used; session_count when it is none of them. */
size_t gathered_session(const struct gathered *gathered, int32_t file, int64_t at);

#endif
