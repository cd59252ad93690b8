/* measurements.c: result files to the requests and times that a latency model is made of.
 * E3: what a request will cost. fit: result files -> a model for each stage, with its errors on configurations that
 * it never saw. predict: that model -> milliseconds with intervals; its errors on other result files; its
 * recalibration to another device. Mathematics: vp_latency_*. */
#include "report/measurements.h"

#include "base/console.h"
#include "base/metrics.h"
#include "vlmprof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const ESTIMATE_KIND_KEYS[ESTIMATE_KINDS] = {"physical", "seed", "mean"};

const char *const SPLIT_KEYS[SPLIT_COUNT] = {"in_sample", "leave_one_configuration_out", "leave_one_image_size_out"};

const char *const SPLIT_NAMES[SPLIT_COUNT] = {"in sample", "configuration left out", "image size left out"};

const char *const LINEAR_STATE_KEYS[] = {"used", "at zero", "dropped"};

const double BUDGET_SHARES[BUDGET_COUNT] = {0.5, 0.7, 0.85, 1.0}; /* of the reference latency, as the experiments have them */
const size_t CURVE_POINTS[CURVE_COUNT] = {10, 25, 50, 100};

#define REQUEST(member) offsetof(vp_latency_request, member)
const column ESTIMATE_KNOBS[ESTIMATE_KNOB_COUNT] = {
    {"views", REQUEST(views)}, {"vision_tokens", REQUEST(vision_tokens)}, {"text_tokens", REQUEST(text_tokens)}, {"sequence", REQUEST(sequence)},
    {"output_tokens", REQUEST(output_tokens)}, {"tier_index", REQUEST(tier_index)}, {"top_k", REQUEST(top_k)},
    {"num_active_blocks", REQUEST(active_blocks)}};

int32_t knob_at(const vp_latency_request *q, int knob) {
    int32_t value;
    memcpy(&value, (const char *)q + ESTIMATE_KNOBS[knob].offset, sizeof value);
    return value;
}
const char *part_name(int part) { return part == ESTIMATE_TOTAL ? "total" : vp_latency_stage_name((vp_latency_stage)part); }
int stage_runs(int stage, const vp_latency_request *q) {
    return stage == VP_LATENCY_VISION ? q->views > 0 : stage != VP_LATENCY_DECODE || q->output_tokens > 1;
}
void measurements_free(measurements *m) {
    free(m->requests);
    free(m->measured);
    free(m->total);
    free(m->configs);
    free(m->sizes);
}
static int32_t tier_index_of(const result_file *f) {
    for (int32_t i = 0; f->tier && vp_tier_at(i); i++) if (!strcmp(f->tier, vp_tier_at(i)->name)) return i;
    return 0;
}
/* The request of a sample; 0: something about it is not known. */
static int request_of(const result_file *f, size_t row, int32_t expert_count, vp_latency_request *q) {
    static const int columns[] = {COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS};
    int32_t counts[5];
    for (int i = 0; i < 5; i++) {
        double value = result_at(f, columns[i], row);
        if (!(value >= (i < 3 ? 0 : 1) && value <= 1e9)) return 0;
        counts[i] = (int32_t)value;
    }
    q->views = counts[0];
    q->vision_tokens = counts[1];
    q->text_tokens = counts[2];
    q->sequence = counts[3];
    q->output_tokens = counts[4];
    q->tier_index = tier_index_of(f);
    q->top_k = (int32_t)f->top_k;
    q->expert_count = expert_count;
    q->active_blocks = (int32_t)f->block_count;
    return 1;
}
/* The mean of few runs is off itself: by its standard error, times what |error| is of that on average. */
static void measure_noise(measurements *m, const result_file *f, size_t row) {
    size_t first = f->run_at ? f->run_at[row] : 0, count = f->run_at ? f->run_at[row + 1] - first : 0;
    double mean, sum = 0;
    if (count < 2) return;
    mean = vp_statistics_mean(f->run_total + first, count);
    for (size_t i = 0; i < count; i++) sum += (f->run_total[first + i] - mean) * (f->run_total[first + i] - mean);
    if (!(mean > 0)) return;
    m->noise += 0.79788456080286536 * sqrt(sum / (double)(count - 1) / (double)count) / mean; /* sqrt(2 / pi) */
    m->noise_count++;
}
static void measure_row(measurements *m, const result_file *f, size_t row, int32_t expert_count) {
    static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE};
    double *stages = m->measured + m->count * VP_LATENCY_STAGE_COUNT;
    vp_latency_request *q = &m->requests[m->count];
    if (!request_of(f, row, expert_count, q) || !(result_at(f, METRIC_PREFILL, row) > 0)) { m->incomplete++; return; }
    m->total[m->count] = stages[VP_LATENCY_OTHER] = result_at(f, METRIC_TOTAL, row);
    for (int s = 0; s < VP_LATENCY_OTHER; s++) {
        stages[s] = (double)NAN;
        if (!stage_runs(s, q)) continue;
        stages[s] = result_at(f, columns[s], row);
        stages[VP_LATENCY_OTHER] -= stages[s];
    }
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (!stage_runs(s, q) || stages[s] > 0) continue;
        m->not_positive += stages[s] <= 0;
        stages[s] = (double)NAN;
    }
    measure_noise(m, f, row);
    m->count++;
}
static int number_experts(const options *o, const results *r, int64_t *experts, text_list *warnings) {
    int64_t said = -1;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        if (f->expert_count > 0 && said > 0 && f->expert_count != said)
            return complain(EXIT_USAGE, "%s is of a model with %lld experts, others of one with %lld: fit them apart", f->path,
                            (long long)f->expert_count, (long long)said);
        if (f->expert_count > 0) said = f->expert_count;
    }
    if (has_option(o, "num_experts") && given(o, "num_experts")) said = number_of(o, "num_experts");
    else if (said < 0 && *experts > 0) said = *experts;
    else if (said < 0) {
        said = 64;
        text_list_add(warnings, "the files do not say how many experts the model has: 64 assumed, as MolmoE-1B has; --num_experts N says it");
    }
    for (size_t i = 0; i < r->count; i++)
        if (r->files[i].top_k > said)
            return complain(EXIT_INPUT, "%s: top_k %lld is more than the model's %lld experts", r->files[i].path, (long long)r->files[i].top_k,
                            (long long)said);
    *experts = said;
    return 0;
}
/* What must be one and the same in all files: a model of two devices would be one of neither. */
static int check_same(const results *r) {
    static const struct { const char *name; size_t offset; } texts[] = {{"device", offsetof(result_file, device)},
        {"model", offsetof(result_file, model)}, {"weights", offsetof(result_file, weights)}};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        for (size_t i = 1; i < r->count; i++) {
            const char *first = *(char *const *)(const void *)((const char *)&r->files[0] + texts[t].offset);
            const char *other = *(char *const *)(const void *)((const char *)&r->files[i] + texts[t].offset);
            if (strcmp(first ? first : "not said", other ? other : "not said"))
                return complain(EXIT_USAGE, "%.300s and %.300s differ in their %s (%.100s, %.100s): fit them apart", r->files[0].path,
                                r->files[i].path, texts[t].name, first ? first : "not said", other ? other : "not said");
        }
    return 0;
}
static void warn_of_measurements(const measurements *m, const results *r, text_list *warnings) {
    int64_t failed = 0, missing = 0, throttled = 0, synthetic = 0;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        synthetic += f->is_synthetic;
        failed += f->failed_count;
        missing += f->missing_count > 0 ? f->missing_count : 0;
        throttled += f->throttled_runs > 0 ? f->throttled_runs : 0;
    }
    if (synthetic) text_list_add(warnings, "synthetic weights: latency is real, but random experts are chosen more evenly than trained ones");
    if (m->count < 30) text_list_add(warnings, "%zu measurements are few: errors and intervals say little", m->count);
    if (failed || missing) text_list_add(warnings, "%lld points failed, %lld are missing", (long long)failed, (long long)missing);
    if (throttled) text_list_add(warnings, "%lld runs were throttled: the clocks were below their own", (long long)throttled);
    if (m->incomplete)
        text_list_add(warnings, "%zu samples left out: a token count or the time of their prefill is not in the file", m->incomplete);
    if (m->not_positive) text_list_add(warnings, "%zu stage times of 0 ms or less left out", m->not_positive);
    for (size_t i = 0; i < r->notes.count; i++) text_list_add(warnings, "%s", r->notes.items[i]);
}
void measurements_read(measurements *m, const results *r, int64_t experts) {
    size_t rows = 0;
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < r->count; i++) rows += r->files[i].count;
    m->requests = zeroed(rows, sizeof *m->requests);
    m->measured = resize(NULL, rows, VP_LATENCY_STAGE_COUNT * sizeof *m->measured);
    m->total = resize(NULL, rows, sizeof *m->total);
    m->configs = resize(NULL, rows, sizeof *m->configs);
    m->sizes = resize(NULL, rows, sizeof *m->sizes);
    m->config_count = r->count;
    m->device = r->files[0].device ? r->files[0].device : "not said";
    m->model = r->files[0].model ? r->files[0].model : "not said";
    for (size_t i = 0; i < r->count; i++) {
        size_t first = m->count, other = 0;
        while (other < i && !same_size(&r->files[other], &r->files[i])) other++;
        if (other == i) m->size_count++;
        for (size_t k = 0; k < r->files[i].count; k++) measure_row(m, &r->files[i], k, (int32_t)experts);
        for (size_t k = first; k < m->count; k++) { m->configs[k] = (uint32_t)i; m->sizes[k] = (uint32_t)other; }
    }
}
int measurements_make(const options *o, const results *r, int64_t *experts, measurements *m, text_list *warnings) {
    int code;
    memset(m, 0, sizeof *m);
    if ((code = check_same(r)) != 0 || (code = number_experts(o, r, experts, warnings)) != 0) return code;
    measurements_read(m, r, *experts);
    if (!m->count)
        return complain(EXIT_INPUT, "%s: no sample has the times of its stages and its token counts (was it measured with --timing off?)",
                        r->files[0].path);
    warn_of_measurements(m, r, warnings);
    return 0;
}
