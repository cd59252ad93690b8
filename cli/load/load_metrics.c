/* load_metrics.c: a server's Prometheus metrics during a trial. Names: vLLM, vllm/v1/metrics/loggers.py and
 * spec_decode/metrics.py (commit 009e6d4; gpu_*: before 0.10); SGLang, srt/metrics/collector.py; llama.cpp,
 * tools/server, as of 2026-10 (kv_cache_usage_ratio: before 2025-06). */
#include "load/load_metrics.h"

#include "base/console.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t PROM_NS = INT64_C(1000000000), PROM_WAIT_NS = INT64_C(5000000000);

const struct metric_row PROM_ROWS[] = {
    {PROM_WAITING, PROM_SUM, "vllm:num_requests_waiting", NULL},
    {PROM_WAITING, PROM_SUM, "sglang:num_queue_reqs", NULL},
    {PROM_WAITING, PROM_SUM, "llamacpp:requests_deferred", NULL},
    {PROM_RUNNING, PROM_SUM, "vllm:num_requests_running", NULL},
    {PROM_RUNNING, PROM_SUM, "sglang:num_running_reqs", NULL},
    {PROM_RUNNING, PROM_SUM, "llamacpp:requests_processing", NULL},
    {PROM_KV, PROM_MEAN, "vllm:kv_cache_usage_perc", NULL},
    {PROM_KV, PROM_MEAN, "vllm:gpu_cache_usage_perc", NULL},
    {PROM_KV, PROM_MEAN, "sglang:token_usage", NULL},
    {PROM_KV, PROM_MEAN, "llamacpp:kv_cache_usage_ratio", NULL},
    {PROM_PREFIX, PROM_SHARE, "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"},
    {PROM_PREFIX, PROM_SHARE, "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"},
    {PROM_PREFIX, PROM_MEAN, "sglang:cache_hit_rate", NULL},
    {PROM_PREFIX, PROM_PART, "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"},
    {PROM_ENCODER, PROM_SHARE, "vllm:mm_cache_hits_total", "vllm:mm_cache_queries_total"},
    {PROM_SPECULATIVE, PROM_SHARE, "vllm:spec_decode_num_accepted_tokens_total",
     "vllm:spec_decode_num_draft_tokens_total"},
    {PROM_SPECULATIVE, PROM_MEAN, "sglang:spec_accept_rate", NULL},
    {PROM_SPECULATIVE, PROM_SHARE, "llamacpp:spec_decode_num_accepted_tokens_total",
     "llamacpp:spec_decode_num_draft_tokens_total"},
    {PROM_PREEMPTED, PROM_INCREASE, "vllm:num_preemptions_total", NULL},
    {PROM_PREEMPTED, PROM_INCREASE, "sglang:num_retracted_requests_total", NULL}};
const size_t PROM_ROW_COUNT = sizeof PROM_ROWS / sizeof *PROM_ROWS;
_Static_assert(sizeof PROM_ROWS / sizeof *PROM_ROWS <= PROM_ROWS_MAX, "PROM_ROWS_MAX is too small");

FIELD_TABLE(LOAD_SAMPLE, struct load_sample, LOAD_SAMPLE_ROWS(FIELD_AT, struct load_sample))
#define PROM_KEY(S, AT, key, index, words) [index] = key,
const char *const PROM_KEYS[PROM_COUNT] = {LOAD_PROM_ROWS(PROM_KEY, 0, 0)};

/* ---- reading one text */
/* The value after a name and its labels; NULL if the line has none. Quoted labels may contain a brace. */
static const char *value_at(const char *at, const char *end) {
    int is_quoted = 0;
    if (at < end && *at == '{') {
        for (at++; at < end && (is_quoted || *at != '}'); at++) {
            if (*at == '\\' && at + 1 < end) at++;
            else if (*at == '"') is_quoted = !is_quoted;
        }
        if (at == end) return NULL;
        at++;
    }
    return at < end && (*at == ' ' || *at == '\t') ? at : NULL;
}
struct series { double sum; size_t count; };
/* Sums each row's two series over their labels. */
static void read_series(const char *text, struct series found[][2]) {
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        const size_t bytes = strcspn(line, "{ \t\n");
        end = line + strcspn(line, "\n");
        const char *at = *line == '#' ? NULL : value_at(line + bytes, end);
        for (size_t row = 0; at && row < PROM_ROW_COUNT; row++) {
            const char *const names[] = {PROM_ROWS[row].name, PROM_ROWS[row].per};
            for (int i = 0; i < 2; i++) {
                const double value = strtod(at, NULL);
                if (!names[i] || strlen(names[i]) != bytes || strncmp(names[i], line, bytes) != 0 || !isfinite(value))
                    continue;
                found[row][i].sum += value;
                found[row][i].count++;
            }
        }
    }
}
static double metric_value(const struct metric_row *row, const struct series found[2], const double before[2]) {
    const double grew = found[0].sum - before[0], per = found[1].sum - before[1];
    switch (row->kind) {
    case PROM_SUM: return found[0].sum;
    case PROM_MEAN: return found[0].sum / (double)found[0].count;
    case PROM_INCREASE: return grew;
    case PROM_PART: return grew + per > 0 ? grew / (grew + per) : (double)NAN;
    default: return per > 0 ? grew / per : (double)NAN;
    }
}
size_t load_metrics_take(struct load_metrics *metrics, const char *text, int64_t at_ns) {
    struct series found[PROM_ROWS_MAX][2] = {{{0, 0}, {0, 0}}};
    struct load_sample sample = {at_ns, {0}};
    int is_there[PROM_COUNT] = {0};
    size_t known = 0;
    for (int i = 0; i < PROM_COUNT; i++) sample.values[i] = (double)NAN;
    read_series(text, found);
    for (size_t i = 0; i < PROM_ROW_COUNT; i++) {
        const struct metric_row *row = &PROM_ROWS[i];
        if (!found[i][0].count || (row->per && !found[i][1].count) || is_there[row->metric]) continue;
        is_there[row->metric] = 1;
        sample.values[row->metric] = metric_value(row, found[i], metrics->before[i]);
        for (int k = 0; k < 2; k++) metrics->before[i][k] = found[i][k].sum;
        known++;
    }
    if (!known) return 0;
    metrics->items = resize(metrics->items, metrics->count + 1, sizeof *metrics->items);
    metrics->items[metrics->count++] = sample;
    return known;
}

/* ---- polling */
static int can_ask(struct load_metrics *metrics, struct endpoint *endpoint, const char *url) {
    vp_exchange_free(&metrics->exchange);
    memset(&metrics->exchange, 0, sizeof metrics->exchange);
    metrics->is_pending = vp_server_start_get(endpoint->server, url, &metrics->exchange, NULL) == VP_OK;
    return metrics->is_pending;
}
void load_metrics_open(struct load_metrics *metrics, struct endpoint *endpoint, const char *url) {
    const char *asked = url ? url : "/metrics";
    const int64_t end_ns = vp_clock_ns() + PROM_WAIT_NS;
    vp_exchange *finished = NULL;
    load_metrics_begin(metrics, 0);
    if (can_ask(metrics, endpoint, asked))
        while (!finished && vp_clock_ns() < end_ns && !interrupted)
            if (vp_server_step(endpoint->server, end_ns, &finished, NULL) != VP_OK) break;
    if (finished) metrics->is_pending = 0;
    if (finished && finished->state == VP_EXCHANGE_DONE && finished->http_status == 200 && finished->reply.text
        && load_metrics_take(metrics, finished->reply.text, 0))
        metrics->url = asked;
    else
        print_note("vlmprof: no metrics at %s%s%s: the server's queue and caches are not shown\n",
                   url ? "" : endpoint->url, asked, finished && finished->http_status == 200 ? " that are known" : "");
}
void load_metrics_free(struct load_metrics *metrics) {
    vp_exchange_free(&metrics->exchange);
    free(metrics->items);
}
void load_metrics_begin(struct load_metrics *metrics, int64_t begin_ns) {
    metrics->begin_ns = metrics->next_ns = begin_ns;
    metrics->count = 0;
    for (size_t i = 0; i < PROM_ROWS_MAX; i++) metrics->before[i][0] = metrics->before[i][1] = (double)NAN;
}
void load_metrics_poll(struct load_metrics *metrics, struct endpoint *endpoint, int64_t now_ns, int64_t *until_ns) {
    if (!metrics->url || metrics->is_pending) return;
    if (now_ns >= metrics->next_ns) {
        metrics->next_ns = now_ns + PROM_NS;
        if (!can_ask(metrics, endpoint, metrics->url)) return;
    }
    if (!*until_ns || metrics->next_ns < *until_ns) *until_ns = metrics->next_ns;
}
int load_metrics_ended(struct load_metrics *metrics, const vp_exchange *exchange) {
    const int64_t at_ns = exchange->start_ns - metrics->begin_ns;
    if (exchange != &metrics->exchange) return 0;
    metrics->is_pending = 0;
    if (exchange->state == VP_EXCHANGE_DONE && exchange->http_status == 200 && exchange->reply.text && at_ns >= 0)
        load_metrics_take(metrics, exchange->reply.text, at_ns);
    return 1;
}
