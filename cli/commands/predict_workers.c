/* predict_workers.c: `predict --workers`: estimates how many encoder and language-model workers a rate needs. The
 * latency model's stages become busy time. The worker counts are then tested in a simulated two-stage queue. */
#include "commands/predict_workers.h"

#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/table.h"
#include "load/load_sizing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STAGE_IMAGE, STAGE_MODEL, STAGES };
enum { WORKERS_MOST = 100000 };
static const char *const NAMES[STAGES] = {"vision encoder", "language model"};
static const char *const KEYS[STAGES] = {"vision_encoder", "language_model"};

struct stage_row {
    const char *key, *name;
    vp_estimate ms, busy;        /* mean time per request; number of busy workers */
    int64_t workers, least, most; /* for the mean, and for the bounds of its interval */
    double wait_p50, wait_p95;
};
#define ROW(member) CELL(struct stage_row, member)
static const struct table_column COLUMNS[] = {
    {ROW(key), "stage", NULL}, {ROW(name), NULL, "stage"},
    {CELL_ESTIMATE(struct stage_row, ms), "ms", "ms per request", .range_key = "interval_ms", .is_measured = 1},
    {CELL_ESTIMATE(struct stage_row, busy), "busy_workers", "busy workers", .range_key = "busy_workers_interval",
     .is_measured = 1},
    {ROW(workers), "workers", "workers"}, {ROW(least), "workers_low", "at least"},
    {ROW(most), "workers_high", "at most"},
    {ROW(wait_p50), "wait_p50_ms", "wait P50, ms", .is_measured = 1},
    {ROW(wait_p95), "wait_p95_ms", "wait P95, ms", .is_measured = 1}};

int worker_options_of(const struct options *options, struct worker_options *asked) {
    const struct option_value *own = opt(options, "encoder_ms");
    double values[3] = {(double)NAN, (double)NAN, (double)NAN};
    asked->rate = opt(options, "rate")->real;
    asked->busy = opt(options, "busy_percent")->real / 100;
    asked->batch = (double)number_of(options, "decode_batch");
    for (size_t i = 0; i < own->count && i < 3; i++) {
        char *end = NULL;
        values[i] = strtod(own->items[i], &end);
        if (*end || !(values[i] > 0 && values[i] < 1e9)) values[i] = (double)NAN;
    }
    asked->encoder_ms = (vp_estimate){values[0], values[1], values[2]};
    if (own->count && (!isfinite(values[0]) || (own->count != 1 && own->count != 3)
                       || (own->count == 3 && !(values[1] <= values[0] && values[0] <= values[2]))))
        return complain(EXIT_USAGE, "--encoder_ms takes the ms per image, optionally with the bounds of its interval: "
                                    "60 or 60 55 66");
    return asked->rate > 0 ? 0 : complain(EXIT_USAGE, "--workers needs a --rate above 0");
}
static void add_share(vp_estimate *sum, double factor, const vp_estimate *part, size_t count) {
    sum->value += factor * part->value / (double)count;
    sum->low += factor * part->low / (double)count;
    sum->high += factor * part->high / (double)count;
}
/* Finds the mean times of the stages over the requests, and the times of each request. Returns 0 or an exit code. */
static int read_stages(const struct worker_options *asked, const struct server_law *law,
                       const struct law_request *requests, size_t count, vp_estimate ms[STAGES],
                       struct stage_times *times) {
    memset(ms, 0, STAGES * sizeof *ms);
    for (size_t i = 0; i < count; i++) {
        struct law_stages stages = law_stages_of(law, &requests[i], asked->encoder_ms);
        const double steps = fmax(0, requests[i].output_tokens - 1);
        if (!isfinite(stages.image.value))
            return complain(EXIT_USAGE, "predict: the latency model of %s has no vision encoder time: fit it to a "
                                        "sweep with --twins, or give --encoder_ms MS", law->model);
        if (!isfinite(stages.prefill.value) || !(isfinite(stages.step.value) || steps <= 0))
            return complain(EXIT_USAGE, "predict: --workers needs TPOT and a TTFT longer than the %.4g ms of the "
                                        "image, but the latency model of %s lacks one of "
                                        "them", stages.image.value, law->model);
        if (steps <= 0) stages.step = (vp_estimate){0, 0, 0};
        add_share(&ms[STAGE_IMAGE], 1, &stages.image, count);
        add_share(&ms[STAGE_MODEL], 1, &stages.prefill, count);
        add_share(&ms[STAGE_MODEL], steps / asked->batch, &stages.step, count);
        times[i] = (struct stage_times){stages.image.value, stages.prefill.value, steps * stages.step.value};
    }
    return 0;
}
static int make_rows(const struct worker_options *asked, const vp_estimate ms[STAGES], struct stage_row rows[STAGES]) {
    for (int stage = 0; stage < STAGES; stage++) {
        const double scale = asked->rate / 1e3;
        struct stage_row *row = &rows[stage];
        memset(row, 0, sizeof *row);
        row->key = KEYS[stage];
        row->name = NAMES[stage];
        row->ms = ms[stage];
        row->busy = (vp_estimate){scale * ms[stage].value, scale * ms[stage].low, scale * ms[stage].high};
        if (!(row->busy.value / asked->busy < WORKERS_MOST))
            return complain(EXIT_USAGE, "predict: --rate %g needs more than %d workers", asked->rate, WORKERS_MOST);
        row->workers = row->least = row->most = sizing_workers(scale, ms[stage].value, asked->busy);
        if (isfinite(ms[stage].low)) row->least = sizing_workers(scale, ms[stage].low, asked->busy);
        if (isfinite(ms[stage].high)) row->most = sizing_workers(scale, ms[stage].high, asked->busy);
    }
    return 0;
}
static void simulate(const struct worker_options *asked, const struct stage_times *times, size_t count,
                     struct stage_row rows[STAGES], struct sizing_waits *waits) {
    const struct sizing sizing = {asked->rate, asked->batch, rows[STAGE_IMAGE].workers, rows[STAGE_MODEL].workers};
    sizing_simulate(&sizing, times, count, 42, waits);
    rows[STAGE_IMAGE].wait_p50 = waits->image_p50;
    rows[STAGE_IMAGE].wait_p95 = waits->image_p95;
    rows[STAGE_MODEL].wait_p50 = waits->model_p50;
    rows[STAGE_MODEL].wait_p95 = waits->model_p95;
}
int predict_workers(const struct worker_options *asked, const struct server_law *law,
                    const struct law_request *requests, size_t count, struct document *document,
                    vp_json_writer *writer) {
    struct stage_times *times = zeroed(count, sizeof *times);
    struct stage_row rows[STAGES];
    struct sizing_waits waits;
    vp_estimate ms[STAGES];
    const struct table table = TABLE(COLUMNS, rows, STAGES, NULL, 0);
    int code = read_stages(asked, law, requests, count, ms, times);
    if (!code) code = make_rows(asked, ms, rows);
    if (!code) simulate(asked, times, count, rows, &waits);
    if (!code && writer) {
        PUT(writer, KEY_OBJECT("workers"), KEY("request_rate", asked->rate), KEY("busy_share", asked->busy),
            KEY("decode_batch", asked->batch), KEY("TTFT_p50_ms", waits.ttft_p50), KEY("TTFT_p95_ms", waits.ttft_p95));
        table_put(writer, "stages", &table);
        PUT(writer, END_OBJECT);
    } else if (!code) {
        document_text(document, BLOCK_HEADING,
                      "%g requests per second need %lld encoder and %lld language-model workers, each busy at most %g "
                      "%% of the time", asked->rate, (long long)rows[STAGE_IMAGE].workers,
                      (long long)rows[STAGE_MODEL].workers, 100 * asked->busy);
        document_add_table(document, &table);
        document_text(document, BLOCK_LINE,
                      "in a simulated queue of these workers with Poisson arrivals: TTFT P50 %s ms, P95 %s ms; at "
                      "least, at most: for the bounds of the 95 %% interval of the "
                      "time", number_short(waits.ttft_p50).text,
                      number_short(waits.ttft_p95).text);
        document_text(document, BLOCK_LINE,
                      "a language-model worker decodes %g request%s at once (--decode_batch), at the TPOT of the "
                      "latency model; the encoder's time: %s", asked->batch, asked->batch > 1 ? "s" : "",
                      isfinite(asked->encoder_ms.value) ? "--encoder_ms"
                      : law->has_image ? "from twins, including upload and preprocessing"
                                       : "the extra cost of image tokens over text tokens");
    }
    free(times);
    return code;
}
