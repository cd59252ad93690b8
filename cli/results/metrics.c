/* metrics.c: the numbers of a timed pass: their keys in result files, and their computation from time stamps.
 * Everything is computed from one struct pass_result on request; nothing is stored. */
#include "results/metrics.h"

#include "base/document.h"
#include "base/json.h"
#include "vlmprof_analysis.h"
#include "vlmprof_statistics.h"

#include <math.h>

void runs_set_unknown(struct pass_result *run) {
    for (int i = 0; i < KEPT_COUNT; i++) run->kept[i] = (double)NAN;
    run->energy_resolution_j = (double)NAN;
}
struct pass_result *runs_make(int32_t run_count, int32_t new_tokens) {
    struct pass_result *runs = zeroed((size_t)run_count, sizeof *runs);
    for (int32_t i = 0; i < run_count; i++) {
        runs[i].reply.tokens = zeroed((size_t)new_tokens, sizeof *runs[i].reply.tokens);
        runs[i].reply.step_ns = zeroed((size_t)new_tokens, sizeof *runs[i].reply.step_ns);
        runs_set_unknown(&runs[i]);
    }
    return runs;
}
void runs_free(struct pass_result *runs, int32_t run_count) {
    for (int32_t i = 0; runs && i < run_count; i++) {
        struct served *served = runs[i].served;
        FREE_ALL(runs[i].reply.tokens, runs[i].reply.step_ns, runs[i].answer);
        if (served)
            FREE_ALL(served->pieces, served->model, served->finish_reason, served->reasoning, served->timings, served);
    }
    free(runs);
}
#define TERM_ENTRY(id, key, unit, meaning) {key, unit, meaning},
#define TERM_KEY(id, key, unit, meaning) key,
const struct term TERMS[TERM_COUNT] = {METRIC_ROWS(TERM_ENTRY) TERM_ROWS(TERM_ENTRY)};
const char *const METRIC_KEYS[METRIC_STAGE] = {METRIC_ROWS(TERM_KEY)};

const int LATENCY_TERMS[LATENCY_TERM_COUNT] = {METRIC_TOTAL,  METRIC_TTFT,      METRIC_VISION, METRIC_PREFILL,
                                               METRIC_DECODE, METRIC_PER_TOKEN, METRIC_CLOSURE};

const char *served_meaning(int which) {
#define SERVED_CASE(term, meaning) case term: return meaning;
    switch (which) {
        SERVED_ROWS(SERVED_CASE)
    default: return TERMS[which].meaning;
    }
}
void terms_add(struct document *document, int is_served, const int *which, size_t count) {
    for (size_t i = 0; i < count; i++)
        document_text(document, BLOCK_LINE, "%s: %s", TERMS[which[i]].key,
                      is_served ? served_meaning(which[i]) : TERMS[which[i]].meaning);
}

const char *const DETAIL_KEYS[DETAIL_COUNT] = {"ms", "wall_ms", "device_ms", "launches", "flops", "bytes"};

int stage_metric(int stage, int detail) { return METRIC_STAGE + detail * VP_STAGE_COUNT + stage; }

int is_host_stage(int stage) { return stage == VP_STAGE_PREPROCESS || stage == VP_STAGE_DETOK; }
int is_copy_stage(int stage) { return stage == VP_STAGE_H2D; }
static int64_t stage_ns(const struct pass_result *run, int stage) {
    return is_host_stage(stage) ? run->reply.times.wall_ns[stage] : run->reply.times.device_ns[stage];
}

static int64_t stages_ns(const struct pass_result *run, int first, int last) {
    int64_t sum = 0;
    for (int i = first; i <= last; i++) if (run->reply.times.ran[i]) sum += stage_ns(run, i);
    return sum;
}

double stage_value(const struct pass_result *run, int stage, int detail) {
    const vp_stage_times *times = &run->reply.times;
    if (!times->ran[stage] || (detail > DETAIL_WALL && is_host_stage(stage))) return (double)NAN;
    switch (detail) {
    case DETAIL_WALL: return (double)times->wall_ns[stage] / 1e6;
    case DETAIL_DEVICE: return (double)times->device_ns[stage] / 1e6;
    case DETAIL_LAUNCHES: return (double)times->launches[stage];
    case DETAIL_FLOPS: return (double)times->flops[stage];
    case DETAIL_BYTES: return (double)times->bytes[stage];
    default: return (double)stage_ns(run, stage) / 1e6;
    }
}
int is_prompt_cached(const struct pass_result *run) {
    const vp_chat_usage *usage = run->served ? &run->served->usage : NULL;
    return usage && usage->prompt_tokens > 0 && usage->cached_tokens * 2 >= usage->prompt_tokens;
}
void warn_of_served_runs(struct text_list *warnings, int64_t cached_count, int64_t dropped_count, int64_t run_count) {
    if (dropped_count)
        text_list_add(warnings,
                      "image dropped: in %lld of %lld runs the prompt has too few tokens for its images, so the server "
                      "dropped one or does not count it; those rows have image_dropped; run vlmprof audit --repeat 10",
                      (long long)dropped_count, (long long)run_count);
    if (cached_count)
        text_list_add(warnings,
                      "the server read at least half of the prompt from a cache in %lld of %lld runs: their TTFT is "
                      "not that of a new request; sweep with --no_cache and without --same_image",
                      (long long)cached_count, (long long)run_count);
}
/* Returns 1 if all pieces arrived together, within a thousandth of the wait for them: a proxy collected them. */
static int is_buffered(const struct served *served) {
    const int64_t first = served->pieces[0].at_ns, span = served->pieces[served->piece_count - 1].at_ns - first;
    return span < 1000000 && span < first / 1000;
}
void served_read_timings(struct served *served) {
    static const struct { int which; const char *name; } names[] = {
        {SERVER_QUEUE, "queue"}, {SERVER_QUEUE, "queued"}, {SERVER_PREPROCESS, "preprocess"},
        {SERVER_PREPROCESS, "processor"}, {SERVER_ENCODER, "encoder"}, {SERVER_ENCODER, "mm_encoder"},
        {SERVER_ENCODER, "vision_encode"}, {SERVER_ENCODER, "vision_encoder"}, {SERVER_PREFILL, "prefill"}};
    static const struct { const char *end; double ms; } units[] = {
        {"_time_ms", 1}, {"_ms", 1}, {"_time", 1e3}, {"_time_s", 1e3}, {"_s", 1e3}};
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    if (!served->timings || parse_json(&parsed, served->timings, strlen(served->timings), NULL) != VP_OK) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
            char key[40];
            snprintf(key, sizeof key, "%s%s", names[i].name, units[k].end);
            const double ms = node_number(&parsed.json, vp_json_get(&parsed.json, 0, key)) * units[k].ms;
            if (!(ms >= 0 && ms <= 1e12)) continue;
            served->server_ms[names[i].which] = ms;
            served->reported |= 1 << names[i].which;
        }
    free(parsed.nodes);
}
/* The time that a server reports for a metric, or the client's delay; NaN if none. */
static double server_ms_of(const struct served *served, int metric) {
    const int which = metric == METRIC_QUEUE                                                   ? SERVER_QUEUE
                      : metric == METRIC_STAGE + VP_STAGE_PREPROCESS                           ? SERVER_PREPROCESS
                      : metric == METRIC_VISION || metric == METRIC_STAGE + VP_STAGE_VIT       ? SERVER_ENCODER
                      : metric == METRIC_PREFILL || metric == METRIC_STAGE + VP_STAGE_PREFILL ? SERVER_PREFILL
                                                                                               : SERVER_TIMES;
    if (metric == METRIC_DELAY && served->delay_ns > 0) return served_ms(served->delay_ns);
    return served->reported >> which & 1 ? served->server_ms[which] : (double)NAN;
}
const char *served_lacks(const struct pass_result *run, int metric) {
    const struct served *served = run->served;
    if (metric == METRIC_TOTAL || isfinite(server_ms_of(served, metric))) return NULL;
    if (metric != METRIC_TTFT && metric != METRIC_DECODE && metric != METRIC_PER_TOKEN)
        return "only the device that runs the model knows";
    if (!served->is_streamed) return "the answer came in a single response body, so its first token cannot be timed";
    if (served->first_ns < 0) return "the answer is empty";
    if (metric == METRIC_TTFT) return NULL;
    if (metric == METRIC_PER_TOKEN && served->usage.completion_tokens < 0)
        return "the server does not report how many tokens it generated";
    if (metric == METRIC_PER_TOKEN && served->usage.completion_tokens < 2) return "a single token has no decode steps";
    if (served->piece_count < 2) return "the answer came in one piece";
    return is_buffered(served) ? "all pieces arrived at once: the answer was buffered on the way" : NULL;
}
static double served_metric(const struct pass_result *run, int metric) {
    const struct served *served = run->served;
    const double decode_ms = (double)(run->total_ns - run->overhead_ns - served->first_ns) / 1e6;
    if (served_lacks(run, metric)) return (double)NAN;
    if (isfinite(server_ms_of(served, metric))) return server_ms_of(served, metric);
    return metric == METRIC_TOTAL    ? (double)run->total_ns / 1e6
           : metric == METRIC_TTFT   ? (double)(served->first_ns + run->overhead_ns) / 1e6
           : metric == METRIC_DECODE ? decode_ms
                                     : decode_ms / (double)(served->usage.completion_tokens - 1);
}
double served_ms(int64_t ns) { return ns < 0 ? (double)NAN : (double)ns / 1e6; }
int64_t served_visible_ns(const struct pass_result *run) {
    const struct served *served = run->served;
    const char *texts[] = {served->reasoning, run->answer}; /* in this order */
    const size_t bytes[] = {served->reasoning ? strlen(served->reasoning) : 0, run->answer_bytes};
    size_t blank = 0, at = 0;
    for (int i = 0; i < 2; i++) {
        size_t here = 0;
        while (here < bytes[i] && strchr(" \t\r\n", texts[i][here])) here++;
        blank += here;
        if (here < bytes[i]) break;
    }
    for (size_t k = 0; k < served->piece_count; k++)
        if ((at += (size_t)served->pieces[k].text_bytes) > blank) return served->pieces[k].at_ns;
    return -1;
}
size_t served_gaps(const struct served *served, double *out) {
    size_t count = served->is_streamed && served->piece_count > 1 && !is_buffered(served) ? served->piece_count - 1 : 0;
    for (size_t i = 0; i < count; i++) out[i] = (double)(served->pieces[i + 1].at_ns - served->pieces[i].at_ns) / 1e6;
    return count;
}
int answers_are_equal(const struct pass_result *runs, int32_t run_count) {
    int same = 1;
    for (const struct pass_result *run = runs + 1; run < runs + run_count; run++)
        same &= runs->served
                    ? run->answer_bytes == runs->answer_bytes && !memcmp(run->answer, runs->answer, run->answer_bytes)
                    : run->reply.token_count == runs->reply.token_count
                          && !memcmp(run->reply.tokens, runs->reply.tokens,
                                     (size_t)run->reply.token_count * sizeof(int32_t));
    return same;
}
int is_left_out(int metric, double value) {
    return ((metric > METRIC_CLOSURE && metric < METRIC_STAGE) || metric == METRIC_STAGE + VP_STAGE_PRUNE)
           && !isfinite(value);
}
double metric_of(const struct pass_result *run, int metric) {
    const vp_reply *reply = &run->reply;
    int64_t steps = 0, sum = stages_ns(run, 0, VP_STAGE_COUNT - 1) + run->overhead_ns;
    if (run->served) return served_metric(run, metric);
    if (metric == METRIC_TOKEN_ENERGY)
        return reply->token_count > 0 ? metric_of(run, METRIC_ENERGY) / reply->token_count : (double)NAN;
    if (metric == METRIC_DELAY || metric == METRIC_QUEUE) return (double)NAN;
    if (metric > METRIC_CLOSURE && metric < METRIC_STAGE) return run->kept[metric - METRIC_CLOSURE - 1];
    if (metric != METRIC_TOTAL && !reply->times.ran[VP_STAGE_PREFILL]) return (double)NAN; /* (no stage was timed) */
    if (metric >= METRIC_STAGE)
        return stage_value(run, (metric - METRIC_STAGE) % VP_STAGE_COUNT, (metric - METRIC_STAGE) / VP_STAGE_COUNT);
    for (int32_t i = 0; i + 1 < reply->token_count; i++) steps += reply->step_ns[i];
    switch (metric) {
    case METRIC_VISION:
        return reply->times.ran[VP_STAGE_VIT] ? (double)stages_ns(run, VP_STAGE_VIT, VP_STAGE_CONNECTOR) / 1e6
                                              : (double)NAN;
    case METRIC_PREFILL: return (double)stages_ns(run, VP_STAGE_EMBED, VP_STAGE_SAMPLE) / 1e6;
    case METRIC_DECODE: return (double)steps / 1e6;
    case METRIC_TOTAL: return (double)run->total_ns / 1e6;
    case METRIC_PER_TOKEN: return reply->token_count > 1 ? (double)steps / (reply->token_count - 1) / 1e6 : (double)NAN;
    case METRIC_TTFT: return (double)(stages_ns(run, 0, VP_STAGE_DECODE - 1) + run->overhead_ns) / 1e6;
    case METRIC_UNACCOUNTED: return (double)(run->total_ns - sum) / 1e6;
    default: return (double)sum / (double)run->total_ns;
    }
}
double decode_rate_of(const struct pass_result *run) { return 1e3 / metric_of(run, METRIC_PER_TOKEN); }
double output_rate_of(const struct pass_result *run) {
    if (run->served && run->served->usage.completion_tokens < 0) return (double)NAN;
    return run->reply.token_count * 1e9 / (double)run->total_ns;
}
double metric_mean(const struct pass_result *runs, int32_t run_count, int metric) {
    double *values = resize(NULL, (size_t)run_count, sizeof *values), mean;
    for (int32_t i = 0; i < run_count; i++) values[i] = metric_of(&runs[i], metric);
    mean = vp_statistics_mean(values, (size_t)run_count);
    free(values);
    return mean;
}

const char FIDELITY_TEXT[] =
    "KL divergence of the next-token distributions from the baseline's, along its answers: mean over tokens; "
    "top1_agreement: share of tokens with the same most likely token; answer_agreement: share of equal answers; "
    "margin: how much the baseline prefers its token where answers diverge, nats, median (0.02: a tie, 4: an error)";
const char TWINS_TEXT[] =
    "T_image_outside: TTFT of the image request minus that of a text request with the same number of prompt tokens, in "
    "pairs; it includes preprocessing, upload and vision encoder";
const char OPS_COLUMNS_TEXT[] =
    "times are sums over the calls; self: without nested operations, total: with them, avg: total / calls; Self %: "
    "share of all self times\n";
vp_estimate estimate_none(void) {
    vp_estimate estimate = {(double)NAN, (double)NAN, (double)NAN};
    return estimate;
}
vp_estimate mean_score(const double *scores, size_t count) {
    size_t bytes = vp_bounded_scratch_bytes(count);
    void *scratch = resize(NULL, bytes, 1);
    vp_estimate mean = estimate_none();
    vp_bounded_interval interval;
    mean.value = count ? vp_statistics_mean(scores, count) : (double)NAN;
    if (vp_accuracy_interval(NULL, scores, count, 0, 1, 0.95, scratch, bytes, &interval) == VP_OK) {
        mean.low = interval.low;
        mean.high = interval.high;
    }
    free(scratch);
    return mean;
}
vp_estimate median_of(double *values, size_t count) {
    vp_estimate estimate = estimate_none();
    vp_statistics statistics;
    if (!count || vp_statistics_compute(values, count, values, &statistics) != VP_OK) return estimate;
    estimate.value = statistics.p50;
    if (vp_statistics_percentile_interval(values, count, 50, 0.95, &estimate.low, &estimate.high) != VP_OK)
        estimate.low = estimate.high = (double)NAN;
    return estimate;
}
struct median_range median_range_of(double *values, size_t count) {
    struct median_range range = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    uint64_t low = 1, high = count;
    vp_statistics statistics;
    if (!count || vp_statistics_compute(values, count, values, &statistics) != VP_OK) return range;
    range.median = statistics.p50;
    if (count < 3) return range;
    if (vp_median_interval(count, 0.95, &low, &high, &range.level) != VP_OK)
        range.level = 1 - ldexp(1, 1 - (int)count); /* smallest to largest value, the widest range */
    range.low = values[low - 1];
    range.high = values[high - 1];
    return range;
}
double term_of(const struct pass_result *run, int term) {
    return term == TERM_DECODE_RATE   ? decode_rate_of(run)
           : term == TERM_OUTPUT_RATE ? output_rate_of(run)
                                      : metric_of(run, term);
}
struct median_range range_of_runs(const struct pass_result *runs, int32_t run_count,
                                  double (*number)(const struct pass_result *, int), int which) {
    double *values = resize(NULL, (size_t)run_count, sizeof *values);
    struct median_range range;
    for (int32_t i = 0; i < run_count; i++) values[i] = number(&runs[i], which);
    range = median_range_of(values, (size_t)run_count);
    free(values);
    return range;
}
const char *range_words(size_t count, const char *what, double level, char out[RANGE_WORDS]) {
    const char *range = count < vp_statistics_percentile_needs(50, 0.95) ? "[min, max]" : "[low, high]";
    if (isfinite(level))
        snprintf(out, RANGE_WORDS, "%s of %zu %s contains the median with %.3g %% confidence", range, count, what,
                 100 * level + 1e-9);
    else out[0] = 0;
    return out;
}
