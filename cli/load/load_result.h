/* load_result.h: writes a trial as a JSON file, and reads the parts that reports need. A level, its records and their
 * summary come in; a file goes out, and is read back as a struct load_level. */
#ifndef VLMPROF_CLI_LOAD_RESULT_H
#define VLMPROF_CLI_LOAD_RESULT_H
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "load/load_answer.h"
#include "load/load_metrics.h"
#include "load/load_run.h"
#include "load/load_stats.h"
#include "results/fields.h"

#define LOAD_SCHEMA "vlmprof-load-1"
#define LOAD_CPU_BUSY 80.0 /* % of the CPUs, including those of a server on this machine */

/* One trial: a number of requests per second, or a number of requests at once. */
struct load_level {
    double rate;         /* requests/s; 0 if set by concurrency */
    int32_t concurrency; /* 0 if set by rate */
    int32_t places;      /* with a rate: most requests at once; 0: no limit */
    double duration_s;   /* time during which requests were sent; NaN: not known */
    int is_complete;     /* 1 if no signal ended it */
    struct load_summary summary;
    /* texts of the file; NULL if the file lacks them */
    const char *schema, *plan, *task, *metric, *endpoint, *model, *api, *server, *status, *arrivals, *slo,
        *images, *ended_early;
    int no_cache;
    double ramp_s, cool_down_s;
    int64_t new_tokens, sample_count, arrival_seed, begin_unix_s;
    double client_cpu, client_delay; /* load/load_client.h */
    int client_busy;
    double slo_share;    /* share of good requests that --find_rate requires, or NaN */
    const char *metrics_url;
    struct load_sample *metrics; size_t metric_count; /* NULL if there are none */
    char *path, *date;   /* path and date of the file that was read */
    char *tag;           /* name that distinguishes trials at the same load, or NULL */
    char *failures, *silence; /* load/load_stats.h; computed from the requests */
    double other_cpu;    /* % of this machine's CPUs that other processes used; NaN if it is not known */
};
void load_level_free(struct load_level *level);

/* load_level_text: "rate 4", "concurrency 8", "rate 4, at most 8". load_level_name: the same for file names: "rate4",
 * "concurrency8", "rate4_concurrency8". Both return out. */
const char *load_level_text(const struct load_level *level, char out[48]);
const char *load_level_name(const struct load_level *level, char out[48]);

/* Write members of the open object: server and data; the size of the load; the way of sending; metrics; "summary";
 * "requests", with the sample_ids of their bodies. */
void put_load_server(vp_json_writer *writer, const struct load_level *level);
void put_load_level(vp_json_writer *writer, const struct load_level *level);
void put_load_way(vp_json_writer *writer, const struct load_level *level);
void put_load_metrics(vp_json_writer *writer, const struct load_level *level);
void put_load_summary(vp_json_writer *writer, const struct load_summary *summary);
void put_load_requests(vp_json_writer *writer, const struct load_records *records, const struct load_body *bodies,
                       const int64_t *sample_ids);

/* A request of a file, with its latencies and tokens. */
extern const struct fields LOAD_LEVEL, LOAD_SUMMARY, LOAD_SERIES, LOAD_REQUEST;
struct load_request {
    int64_t sample_id;
    struct field_pair image_size; /* [height, width]; 0 if there is none */
    struct load_record record;
    double latency[LOAD_LATENCY_COUNT];
};
/* On success load_requests_free frees them. Returns 0 or an exit code after a message. */
int load_level_requests(const struct load_level *level, struct load_request **requests, size_t *count);
void load_requests_free(struct load_request *requests, size_t count);

/* The mean, minimum and maximum of a metric within the window; NaN if the server does not report it. */
vp_estimate load_metric_of(const struct load_level *level, int metric);

/* Fills `failures` and `silence` from the requests within the summary's window. */
void load_level_note(struct load_level *level, const struct load_records *records);

/* Returns 1 if clearly fewer requests ended than were due, so the queue grew throughout the trial. */
int load_level_saturates(const struct load_level *level);

/* A trial as evidence on an objective; slo NULL: that of the file. */
struct load_point load_level_point(const struct load_level *level, const vp_slo *slo);

/* The answer on an objective from all trials of one kind (by rate or by concurrency), and the verdict on one of them.
 * slo NULL: the objective of the files. */
void load_levels_answer(const struct load_level *levels, size_t count, const vp_slo *slo, double share,
                        struct load_answer *answer);
vp_trial load_level_trial(const struct load_level *level, const struct load_answer *answer);

/* Judges the requests of a file by another objective, and sets good_share and goodput of the summary. Returns 0 or an
 * exit code after a message. */
int load_level_judge(struct load_level *level, const vp_slo *slo);

/* Reads a file. Returns 0; NO_TRIAL if it is another JSON file; or an exit code after a message. */
enum { NO_TRIAL = -1 };
int load_level_read(const char *path, struct load_level *level);

/* The share of a trial's prompt tokens that the server read from its caches; NaN if it is not reported. */
double load_cached_share(const struct load_summary *summary);

/* Reads all trials in the files and folders, in ascending order of rate, then of concurrency. Returns 0 or an exit code
 * after a message; *levels is zeroed first, and load_levels_free frees it. */
struct load_levels { struct load_level *items; size_t count; };
int load_levels_read(struct load_levels *levels, const char *const *operands, size_t count);
void load_levels_free(struct load_levels *levels);
void load_levels_sort(struct load_levels *levels); /* into that order */

/* The first setting in which two trials differ, with both values; "--slo" comes last. Returns 1 if there is one. */
int load_levels_difference(const struct load_level *one, const struct load_level *other, const char **what,
                           char values[2][80]);

/* Checks that trials shown together have the same server, data set, answer length, arrivals and use of caches. Returns
 * 0, or EXIT_USAGE after a message that names two files and both values. */
int load_levels_check(const struct load_levels *levels, const char *command);

/* Adds the findings from the trials, one sentence each: the highest load that meets the objective, the load at which
 * the queue starts to grow, and other important facts. */
void load_findings(const struct load_levels *levels, struct text_list *texts);

#endif
