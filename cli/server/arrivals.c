/* arrivals.c: sends the requests of a block under load. One thread waits for all of them; a request is handed to
 * libcurl before it is due, and its body is built before the block starts. */
#include "server/arrivals.h"

#include "base/console.h"
#include "base/memory.h"
#include "server/ask.h"
#include "vlmprof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t AHEAD_NS = INT64_C(40000000), LATE_NS = INT64_C(5000000), PROGRESS_NS = INT64_C(200000000);
enum { WAITING_LEAST = 8 };

/* ---- a block */
struct flight { vp_exchange exchange; size_t record; struct flight *next_free; };
struct block {
    struct endpoint *endpoint;
    const struct load *load;
    const struct load_work *work;
    struct load_record *records; size_t count;
    vp_exchange *counted;    /* [work->count] */
    struct flight **flights; /* all of them, of counted and other requests */
    struct flight *free_flights;
    size_t flight_count, in_flight, begun, ended; /* begun, ended: counted requests */
    vp_random random, counted_random; /* of the ramps, of the counted requests */
    double gap_s;                     /* the mean gap of counted requests before chance */
    int64_t begin_ns, due_ns, last_due_ns, shown_ns; /* due: of the next request; last: of the last counted one */
};
/* The requests before the first counted one are the last ones of the data, and those after the last are the first. */
static size_t request_of_ramp(const struct block *block, size_t number) {
    const size_t count = block->work->count;
    return block->begun ? number % count : count - 1 - number % count;
}
static struct flight *flight_take(struct block *block) {
    struct flight *flight = block->free_flights;
    if (flight) {
        block->free_flights = flight->next_free;
        return flight;
    }
    block->flights =
        (struct flight **)resize((void *)block->flights, block->flight_count + 1, sizeof *block->flights);
    return block->flights[block->flight_count++] = zeroed(1, sizeof *flight);
}
/* Hands over a request that is due due_ns after the start. Returns 0 or an exit code. */
static int request_begin(struct block *block, int64_t due_ns) {
    const int is_ramp = due_ns < (int64_t)(block->load->ramp_s * 1e9) || block->begun == block->work->count;
    const size_t request = is_ramp ? request_of_ramp(block, block->count) : block->begun;
    struct flight *flight = flight_take(block);
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    memset(&flight->exchange, 0, sizeof flight->exchange);
    if (is_ramp) code = block->work->body(block->work->user, request, &flight->exchange);
    else {
        flight->exchange.body = block->counted[request].body;
        flight->exchange.body_bytes = block->counted[request].body_bytes;
        block->counted[request].body = NULL;
        block->begun++;
        block->last_due_ns = due_ns;
    }
    if (code) return code;
    block->records = grown(block->records, block->count, sizeof *block->records);
    block->records[block->count] = (struct load_record){
        .request = request, .is_ramp = is_ramp, .due_ns = due_ns, .start_ns = -1, .first_ns = -1, .end_ns = -1};
    flight->record = block->count++;
    flight->exchange.user = flight;
    flight->exchange.scheduled_ns = block->begin_ns + due_ns;
    block->in_flight++;
    vp_result result = vp_server_start(block->endpoint->server, &flight->exchange, &error);
    return result == VP_OK ? 0 : complain_result(EXIT_DEVICE, block->endpoint->url, result, &error);
}
static int64_t since(int64_t stamp_ns, int64_t begin_ns) { return stamp_ns ? stamp_ns - begin_ns : -1; }
static int request_end(struct block *block, vp_exchange *exchange) {
    struct flight *flight = exchange->user;
    struct load_record *record = &block->records[flight->record];
    int code = 0;
    record->start_ns = since(exchange->start_ns, block->begin_ns);
    record->first_ns = since(exchange->reply.first_ns, block->begin_ns);
    record->end_ns = since(exchange->end_ns, block->begin_ns);
    if (record->end_ns < 0) record->end_ns = vp_clock_ns() - block->begin_ns;
    record->has_failed = exchange->state != VP_EXCHANGE_DONE;
    block->in_flight--;
    if (!record->is_ramp) {
        block->ended++;
        code = block->work->ended(block->work->user, record->request, exchange);
    }
    ask_free(exchange);
    flight->next_free = block->free_flights;
    block->free_flights = flight;
    return code;
}
/* Returns 1 if another request is to be sent: the counted ones, then others until those have ended or the ramp has. */
static int wants_more(const struct block *block, int64_t due_ns) {
    return block->begun < block->work->count
           || (block->ended < block->work->count
               && due_ns < block->last_due_ns + (int64_t)(block->load->ramp_s * 1e9));
}
static double draw_gap(vp_random *random) { return -log1p(-vp_random_double(random)); }
/* Draws the next due time of an open loop. The counted requests of Poisson arrivals have the rate exactly: few of them
 * would otherwise differ from it by tens of percent. Given their total, gaps are as likely as without this. */
static void next_due(struct block *block) {
    const int is_counted = block->begun > 0 && block->begun < block->work->count;
    block->due_ns += (int64_t)(1e9
                               * (block->load->is_uniform ? 1 / block->load->rate
                                  : is_counted ? block->gap_s * draw_gap(&block->counted_random)
                                               : draw_gap(&block->random) / block->load->rate));
}
static void begin_gaps(struct block *block) {
    vp_random random;
    double sum = 0;
    vp_random_seed(&block->random, block->load->seed);
    vp_random_seed(&block->counted_random, block->load->seed + 1);
    random = block->counted_random;
    for (size_t i = 1; i < block->work->count; i++) sum += draw_gap(&random);
    block->gap_s = (double)(block->work->count - 1) / sum / block->load->rate;
    if (!block->load->concurrency) next_due(block);
}
/* Hands over the requests that are due soon. *until_ns becomes the time of the next call; 0: there is none. */
static int begin_due(struct block *block, int64_t now_ns, int64_t *until_ns) {
    int code = 0;
    *until_ns = 0;
    while (!block->load->concurrency && wants_more(block, block->due_ns) && !code) {
        if (block->begin_ns + block->due_ns > now_ns + AHEAD_NS) {
            *until_ns = block->begin_ns + block->due_ns - AHEAD_NS / 2;
            break;
        }
        code = request_begin(block, block->due_ns);
        next_due(block);
    }
    return code;
}
/* The first requests of a closed loop are spread over the ramp, so that they do not all start at once. */
static int begin_streams(struct block *block) {
    const int32_t count = block->load->concurrency;
    int code = 0;
    for (int32_t i = 0; i < count && !code && wants_more(block, 0); i++)
        code = request_begin(block, (int64_t)(block->load->ramp_s * 1e9 * i / count));
    return code;
}
static int block_loop(struct block *block) {
    int code = begin_streams(block);
    while (!code && !interrupted) {
        int64_t now_ns = vp_clock_ns(), until_ns;
        vp_error error = {VP_OK, -1, "", ""};
        vp_exchange *finished = NULL;
        if ((code = begin_due(block, now_ns, &until_ns)) != 0 || (!block->in_flight && !until_ns)) break;
        if (!until_ns || until_ns > now_ns + PROGRESS_NS) until_ns = now_ns + PROGRESS_NS;
        const vp_result result = vp_server_step(block->endpoint->server, until_ns, &finished, &error);
        if (result == VP_ERR_INTERRUPTED) continue;
        if (result != VP_OK) return complain_result(EXIT_DEVICE, block->endpoint->url, result, &error);
        if (finished) {
            code = request_end(block, finished);
            now_ns = vp_clock_ns();
            if (!code && block->load->concurrency && wants_more(block, now_ns - block->begin_ns))
                code = request_begin(block, now_ns - block->begin_ns);
        }
        if (now_ns - block->shown_ns < PROGRESS_NS) continue;
        block->shown_ns = now_ns;
        show_progress("%s: %zu of %zu requests finished, %zu in flight", block->work->words, block->ended,
                      block->work->count, block->in_flight);
    }
    return code ? code : interrupted ? EXIT_INTERRUPTED : 0;
}
int load_run(struct endpoint *endpoint, const struct load *load, const struct load_work *work,
             struct load_record **records, size_t *record_count) {
    struct block block = {.endpoint = endpoint, .load = load, .work = work,
                          .counted = zeroed(work->count, sizeof *block.counted)};
    int code = 0;
    for (size_t i = 0; i < work->count && !code && !interrupted; i++)
        code = work->body(work->user, i, &block.counted[i]);
    begin_gaps(&block);
    block.begin_ns = vp_clock_ns() + AHEAD_NS / 2; /* the first requests are handed over before they are due, too */
    if (!code && work->count) code = block_loop(&block);
    if (block.in_flight) { /* the client releases them before their memory is freed */
        vp_server_close(endpoint->server);
        endpoint->server = NULL;
    }
    for (size_t i = 0; i < block.flight_count; i++) {
        ask_free(&block.flights[i]->exchange);
        free(block.flights[i]);
    }
    for (size_t i = 0; i < work->count; i++) ask_free(&block.counted[i]);
    FREE_ALL((void *)block.flights, block.counted);
    *records = block.records;
    *record_count = block.count;
    return code;
}

/* ---- summary of a block */
static int is_waiting(const struct load_record *record, int64_t at_ns) {
    return record->due_ns <= at_ns && record->end_ns > at_ns && (record->first_ns < 0 || record->first_ns > at_ns);
}
void load_summarize(const struct load_record *records, size_t count, struct load_line *line) {
    double sums[4] = {0}, numbers[4] = {0}, in_flight_ns = 0, completed = 0;
    int64_t from_ns = -1, to_ns = -1, failed_late = 0, waited = 0; /* waited: at the window's begin */
    size_t counted = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        if (records[i].is_ramp) continue;
        if (!counted++) from_ns = records[i].due_ns;
        to_ns = records[i].due_ns;
    }
    line->requests = (int64_t)counted;
    line->failed = line->late = line->waiting = 0;
    for (size_t i = 0; i < count; i++) {
        const struct load_record *record = &records[i];
        const int64_t begin = record->due_ns > from_ns ? record->due_ns : from_ns,
                      end = record->end_ns < to_ns ? record->end_ns : to_ns;
        in_flight_ns += end > begin ? (double)(end - begin) : 0;
        completed += !record->has_failed && record->end_ns >= from_ns && record->end_ns < to_ns;
        line->waiting += is_waiting(record, to_ns);
        waited += is_waiting(record, from_ns);
        if (record->is_ramp) continue;
        const size_t quarter = at++ * 4 / counted;
        line->failed += record->has_failed;
        failed_late += record->has_failed && quarter == 3;
        line->late += record->start_ns > record->due_ns + LATE_NS;
        if (record->has_failed) continue;
        sums[quarter] += (double)(record->end_ns - record->due_ns);
        numbers[quarter]++;
    }
    const double window_ns = (double)(to_ns - from_ns);
    line->window_s = window_ns / 1e9;
    line->offered_per_s = window_ns > 0 ? ((double)counted - 1) / line->window_s : (double)NAN;
    line->completed_per_s = window_ns > 0 ? completed / line->window_s : (double)NAN;
    line->mean_in_flight = window_ns > 0 ? in_flight_ns / window_ns : (double)NAN;
    line->is_growing = line->waiting - waited >= WAITING_LEAST && 20 * (line->waiting - waited) >= line->requests
                       && (failed_late || sums[3] * numbers[1] > 1.2 * sums[1] * numbers[3]
                           || line->completed_per_s < 0.8 * line->offered_per_s);
}
struct client_time client_time_now(void) {
    struct client_time now = {vp_clock_ns(), -1, -1};
    long long cpu_ns, wait_ns;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (!file) return now;
    if (fscanf(file, "%lld %lld", &cpu_ns, &wait_ns) == 2) {
        now.cpu_ns = cpu_ns;
        now.wait_ns = wait_ns;
    }
    fclose(file);
    return now;
}

/* ---- requests of others. Names: vLLM, vllm/v1/metrics/loggers.py (commit 009e6d4); SGLang, srt/metrics/collector.py;
 * llama.cpp, tools/server, as of 2026-10 */
static const struct { const char *name; int is_finished; } COUNTERS[] = {
    {"vllm:request_success_total", 1},  {"vllm:num_requests_running", 0}, {"vllm:num_requests_waiting", 0},
    {"sglang:num_requests_total", 1},   {"sglang:num_running_reqs", 0},   {"sglang:num_queue_reqs", 0},
    {"llamacpp:requests_processing", 0}, {"llamacpp:requests_deferred", 0}};
struct server_counts server_counts_of(const char *metrics) {
    struct server_counts counts = {-1, -1};
    for (const char *line = metrics, *end; *line; line = *end ? end + 1 : end) {
        const size_t bytes = strcspn(line, "{ \t\n");
        end = line + strcspn(line, "\n");
        const char *at = end; /* the value is the last word: a label may contain spaces */
        while (at > line && at[-1] != ' ' && at[-1] != '\t') at--;
        for (size_t i = 0; *line != '#' && i < sizeof COUNTERS / sizeof *COUNTERS; i++) {
            int64_t *sum = COUNTERS[i].is_finished ? &counts.finished : &counts.held;
            const double value = strtod(at, NULL);
            if (strlen(COUNTERS[i].name) != bytes || strncmp(COUNTERS[i].name, line, bytes) != 0
                || !(value >= 0 && value < 1e15))
                continue;
            *sum = (*sum < 0 ? 0 : *sum) + (int64_t)value;
        }
    }
    return counts;
}
struct server_counts server_counts_ask(struct endpoint *endpoint) {
    struct server_counts counts = {-1, -1};
    char *text = NULL;
    size_t bytes = 0;
    int status = 0;
    if (endpoint->server && vp_server_get(endpoint->server, "/metrics", &status, &text, &bytes, NULL) == VP_OK && text)
        counts = server_counts_of(text);
    free(text);
    return counts;
}
