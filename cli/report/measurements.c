/* measurements.c: turns result files into the requests and times that a latency model is fitted to. E3 predicts the
 * cost of a request. `fit` makes a model for each stage, with its errors on configurations that it never saw. `predict`
 * uses the model to predict milliseconds with intervals, and shows its errors on other result files. The mathematics is
 * vp_latency_*, in vlmprof_latency.h. */
#include "report/measurements.h"

#include "base/console.h"
#include "report/report.h"
#include "results/metrics.h"

#include <math.h>

const char *const ESTIMATE_KIND_KEYS[ESTIMATE_KEYS] = {"physical", "seed", "mean", "physical_and_weights"};

const char *const SPLIT_KEYS[SPLIT_COUNT] = {"in_sample", "leave_one_configuration_out", "leave_one_image_size_out"};

const char *const SPLIT_NAMES[SPLIT_COUNT] = {"in sample", "configuration left out", "image size left out"};

/* shares of the reference latency, as in the reference implementation */

#define REQUEST(member) offsetof(vp_latency_request, member)
const struct column ESTIMATE_KNOBS[ESTIMATE_KNOB_COUNT] = {{"views", REQUEST(views)},
                                                           {"vision_tokens", REQUEST(vision_tokens)},
                                                           {"text_tokens", REQUEST(text_tokens)},
                                                           {"sequence", REQUEST(sequence)},
                                                           {"output_tokens", REQUEST(output_tokens)},
                                                           {"tier_index", REQUEST(tier_index)},
                                                           {"top_k", REQUEST(top_k)},
                                                           {"num_active_blocks", REQUEST(active_blocks)},
                                                           {"weight_bits", REQUEST(weight_bits)}};

int knob_count_of(vp_latency_features features) {
    return features == VP_LATENCY_WEIGHTS ? ESTIMATE_KNOB_COUNT : FEATURE_WEIGHT_BITS;
}
vp_latency_features features_of(const struct measurements *measurements, int kind) {
    return kind == VP_LATENCY_PHYSICAL && measurements->weights_vary ? VP_LATENCY_WEIGHTS : (vp_latency_features)kind;
}

int32_t knob_at(const vp_latency_request *request, int knob) {
    int32_t count;
    memcpy(&count, (const char *)request + ESTIMATE_KNOBS[knob].offset, sizeof count);
    return count;
}
const char *part_name(int part) {
    return part == ESTIMATE_TOTAL ? "total" : vp_latency_stage_name((vp_latency_stage)part);
}
int stage_is_run(int stage, const vp_latency_request *request) {
    return stage == VP_LATENCY_VISION ? request->views > 0 : stage != VP_LATENCY_DECODE || request->output_tokens > 1;
}
void measurements_free(struct measurements *measurements) {
    FREE_ALL(measurements->requests, measurements->measured, measurements->total, measurements->configs,
             measurements->sizes);
}
/* ---- the files' own knobs */
static int by_number(const void *left, const void *right) {
    return *(const double *)left < *(const double *)right ? -1 : *(const double *)left > *(const double *)right;
}
void own_knobs_free(struct own_knobs *own) {
    for (size_t i = 0; i < own->count; i++) {
        free(own->items[i].name);
        text_list_free(&own->items[i].values);
    }
    own->count = 0;
}
int own_knobs_find(const struct results *results, struct own_knobs *own) {
    double *numbers = resize(NULL, results->count + 1, sizeof *numbers);
    size_t columns = 0;
    own->count = 0;
    for (int k = 0; k < KNOB_COUNT && columns <= VP_LATENCY_OWN; k++) {
        char text[KNOB_TEXT_BYTES];
        struct own_knob knob = {NULL, {NULL, 0}, {0, 0, 0}};
        size_t count = 0;
        int varies = 0;
        for (size_t i = 0; i < results->count; i++) {
            const char *value = knob_is_own(k) ? knob_own_json(&results->files[i].knobs, k, text) : NULL;
            varies |= knob_is_own(k) && compare_axis(&results->files[i], &results->files[0], k);
            if (value && !text_list_has(&knob.values, value)) text_list_copy(&knob.values, value);
            count += value && vp_number_parse(value, strlen(value), &numbers[count]) == VP_OK;
        }
        const int is_number = count == results->count;
        columns += !varies ? 0 : is_number ? 1 : knob.values.count - 1;
        if (varies && columns <= VP_LATENCY_OWN) {
            knob.name = copy_text(KNOBS[k].key, strlen(KNOBS[k].key));
            qsort(numbers, count, sizeof *numbers, by_number);
            if (is_number) {
                text_list_free(&knob.values);
                knob.range = (struct number_range){numbers[0], numbers[count / 2], numbers[count - 1]};
            }
            own->items[own->count++] = knob;
        } else text_list_free(&knob.values);
    }
    free(numbers);
    return columns <= VP_LATENCY_OWN;
}
int own_knob_add(const struct own_knob *knob, const char *value, vp_latency_request *request) {
    double number = 0;
    if (!knob->values.count) {
        if (!value || vp_number_parse(value, strlen(value), &number) != VP_OK) return 0;
        request->own[request->own_count++] = number;
        return 1;
    }
    if (!value || !text_list_has(&knob->values, value)) return 0;
    for (size_t i = 1; i < knob->values.count; i++)
        request->own[request->own_count++] = strcmp(knob->values.items[i], value) == 0;
    return 1;
}
const char *own_value_text(const struct own_knob *knob, const char *value, const char *between,
                           char out[KNOB_TEXT_BYTES]) {
    const int quoted = *value == '"';
    snprintf(out, KNOB_TEXT_BYTES, "%.60s%s%.*s", knob->name, between,
             quoted ? (int)fmin((double)strlen(value) - 2, 60) : 60, value + quoted);
    return out;
}
const char *own_column_name(const struct own_knobs *own, int column, char out[KNOB_TEXT_BYTES]) {
    for (size_t i = 0; i < own->count; i++) {
        const struct own_knob *knob = &own->items[i];
        const int columns = knob->values.count ? (int)knob->values.count - 1 : 1;
        if (column >= columns) { column -= columns; continue; }
        if (!knob->values.count) snprintf(out, KNOB_TEXT_BYTES, "%s", knob->name);
        else own_value_text(knob, knob->values.items[column + 1], "=", out);
        return out;
    }
    return NULL;
}
static int add_own_knobs(const struct own_knobs *own, const struct result_file *file, vp_latency_request *request) {
    request->own_count = 0;
    for (size_t i = 0; own && i < own->count; i++) {
        const int knob = knob_own(own->items[i].name, NULL);
        char text[KNOB_TEXT_BYTES];
        if (knob < 0 || !own_knob_add(&own->items[i], knob_own_json(&file->knobs, knob, text), request)) return 0;
    }
    return 1;
}

/* Finds the number of rows that pruning drops and the number of blocks that still see them, from the rows of the mean
 * block. This is exact for one cut. Several cuts become one that drops the same number of rows. Returns 0 or
 * EXIT_INPUT. */
static int read_pruning(const struct result_file *file, size_t row, vp_latency_request *request) {
    const double kept = result_at(file, COLUMN_KEPT_TOKENS, row), mean = result_at(file, COLUMN_SEQUENCE, row),
                 dropped = request->vision_tokens - kept,
                 share = (mean - (request->sequence - dropped)) / dropped; /* mean over the blocks */
    request->dropped_tokens = 0;
    request->full_blocks = 0;
    if (!(kept >= 1) || dropped <= 0) return dropped < 0 ? EXIT_INPUT : 0;
    if (!(share > -0.01 && share < 1.01)) return EXIT_INPUT;
    request->dropped_tokens = (int32_t)dropped;
    request->full_blocks = request->active_blocks * fmin(fmax(share, 0), 1);
    return 0;
}
/* Makes the request of a sample. Returns 0, or EXIT_INPUT if the file lacks information about it. */
static int request_of_row(const struct result_file *file, size_t row, int32_t expert_count,
                          vp_latency_request *request) {
    static const int columns[] = {COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_PROMPT,
                                  COLUMN_OUTPUT_TOKENS};
    int32_t counts[5];
    for (int i = 0; i < 5; i++) {
        double value = result_at(file, columns[i], row);
        if (!(value >= (i < 3 ? 0 : 1) && value <= 1e9)) return EXIT_INPUT;
        counts[i] = (int32_t)value;
    }
    request->views = counts[0];
    request->vision_tokens = counts[1];
    request->text_tokens = counts[2];
    request->sequence = counts[3];
    request->output_tokens = counts[4];
    request->tier_index = knob_tier(&file->knobs) ? (int32_t)knob_size_rank(&file->knobs) : 0;
    request->top_k = (int32_t)knob_number(&file->knobs, KNOB_TOP_K);
    request->expert_count = expert_count;
    request->active_blocks = (int32_t)knob_number(&file->knobs, KNOB_BLOCKS);
    request->weight_bits = (int32_t)weight_bits(knob_text(&file->knobs, KNOB_WEIGHTS));
    return read_pruning(file, row, request);
}
/* The mean |error| of a normal distribution, as a share of the mean of a sample's runs. NaN with fewer than two. */
static double run_noise(const struct result_file *file, size_t row) {
    size_t first = file->run_at ? file->run_at[row] : 0, count = file->run_at ? file->run_at[row + 1] - first : 0;
    if (count < 2) return (double)NAN;
    const double *runs = file->run_ms[METRIC_TOTAL] + first, mean = vp_statistics_mean(runs, count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (runs[i] - mean) * (runs[i] - mean);
    return mean > 0 ? sqrt(2 / 3.14159265358979324 * sum / (double)(count - 1) / (double)count) / mean : (double)NAN;
}
static void measure_noise(struct measurements *measurements, const struct result_file *file, size_t row) {
    const double noise = run_noise(file, row);
    if (!isfinite(noise)) return;
    measurements->noise += noise;
    measurements->noise_count++;
}
static void measure_row(struct measurements *measurements, const struct result_file *file, size_t row,
                        int32_t expert_count, const struct own_knobs *own) {
    static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE};
    double *stages = measurements->measured + measurements->count * VP_LATENCY_STAGE_COUNT;
    vp_latency_request *request = &measurements->requests[measurements->count];
    if (request_of_row(file, row, expert_count, request) || !add_own_knobs(own, file, request)
        || !(result_at(file, METRIC_PREFILL, row) > 0)) {
        measurements->incomplete++;
        return;
    }
    measurements->total[measurements->count] = stages[VP_LATENCY_OTHER] = result_at(file, METRIC_TOTAL, row);
    for (int stage = 0; stage < VP_LATENCY_OTHER; stage++) {
        stages[stage] = (double)NAN;
        if (!stage_is_run(stage, request)) continue;
        stages[stage] = result_at(file, columns[stage], row);
        if (stage == VP_LATENCY_VISION && measurements->no_vision) measurements->other_has_vision = 1;
        else stages[VP_LATENCY_OTHER] -= stages[stage];
    }
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        if (!stage_is_run(stage, request) || stages[stage] > 0) continue;
        measurements->not_positive += stages[stage] <= 0;
        stages[stage] = (double)NAN;
    }
    measure_noise(measurements, file, row);
    measurements->pruned += request->dropped_tokens > 0;
    measurements->count++;
}
/* Returns 1 if a sample of any file has the number. */
static int any_has(const struct results *results, int column) {
    for (size_t i = 0; i < results->count; i++) if (results->files[i].columns[column]) return 1;
    return 0;
}
/* Finds how many experts the model has: num_experts or, if it is 0, the files' number or *experts. Returns 0 or an exit
 * code. */
static int number_experts(int64_t num_experts, const struct results *results, int64_t *experts) {
    int64_t said = -1;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (knobs_are_dense(&file->knobs) != knobs_are_dense(&results->files[0].knobs))
            return complain(EXIT_USAGE, "%s comes from a model without experts, but other files do not: fit them "
                                        "separately",
                            results->files[knobs_are_dense(&file->knobs) ? i : 0].path);
        if (file->expert_count > 0 && said > 0 && file->expert_count != said)
            return complain(EXIT_USAGE, "%s comes from a model with %lld experts, but other files come from one with "
                                        "%lld: fit them separately",
                            file->path, (long long)file->expert_count, (long long)said);
        if (file->expert_count > 0) said = file->expert_count;
    }
    if (results->count && knobs_are_dense(&results->files[0].knobs)) {
        if (num_experts)
            return complain(EXIT_USAGE, "--num_experts: %s comes from a model without experts", results->files[0].path);
        *experts = 0;
        return 0;
    }
    if (num_experts) said = num_experts;
    else if (said < 0 && *experts > 0) said = *experts;
    else if (said < 0)
        return complain(EXIT_INPUT,
                        "%s does not contain the model's number of experts (model_shape.num_experts): set "
                        "--num_experts N (MolmoE-1B has 64)%s",
                        results->files[0].path,
                        results->files[0].is_foreign ? ", or leave top_k out for a model without experts" : "");
    for (size_t i = 0; i < results->count; i++)
        if (knob_number(&results->files[i].knobs, KNOB_TOP_K) > said)
            return complain(EXIT_INPUT, "%s: top_k %lld is more than the model's %lld experts", results->files[i].path,
                            (long long)knob_number(&results->files[i].knobs, KNOB_TOP_K), (long long)said);
    *experts = said;
    return 0;
}
/* Device, model and every knob without a feature must be the same in all files, because a model of two devices would
 * fit neither. Weights may differ if all are known. */
static int check_same(const struct results *results) {
    const struct result_file *const one = results->files, *file = one, *end = one + results->count;
    const char *name = NULL, *values[2] = {NULL, NULL};
    char texts[2][KNOB_TEXT_BYTES];
    while (!name && ++file < end) {
        const struct { const char *name, *values[2]; } same[] = {{"device", {one->device, file->device}},
                                                                 {"model", {one->model, file->model}}};
        for (int i = 0; i < 2 && !name; i++) {
            for (int k = 0; k < 2; k++) values[k] = same[i].values[k] ? same[i].values[k] : "not said";
            if (strcmp(values[0], values[1])) name = same[i].name;
        }
        for (int knob = KNOB_TOP_K; knob < KNOB_OWN && !name; knob++) {
            const int is_known = knob == KNOB_WEIGHTS ? weight_bits(knob_text(&one->knobs, knob)) > 1
                                                            && weight_bits(knob_text(&file->knobs, knob)) > 1
                                                      : KNOBS[knob].in_model || knob_is_own(knob);
            if (is_known || !knob_compare(knob, &one->knobs, &file->knobs)) continue;
            for (int k = 0; k < 2; k++) values[k] = knob_value_text(k ? &file->knobs : &one->knobs, knob, texts[k]);
            name = KNOBS[knob].key;
        }
    }
    if (!name && results->unlike.count) { /* name, values and paths: see result_read.h */
        char *const *unlike = results->unlike.items + results->unlike.count - 2;
        return complain(EXIT_USAGE, "%.300s and %.300s differ in %.60s (%.100s, %.100s): fit them separately",
                        unlike[0], unlike[1], results->unlike.items[0], results->unlike.items[1],
                        results->unlike.items[2]);
    }
    return name ? complain(EXIT_USAGE, "%.300s and %.300s differ in %s (%.100s, %.100s): fit them separately",
                           one->path, file->path, name, values[0], values[1])
                : 0;
}
/* Names what a latency model needs and no file has. Returns 0 or an exit code. */
static int check_columns(const struct results *results) {
    static const struct { int column; const char *key; } needs[] = {
        {METRIC_PREFILL, "T_LLM_prefill"},          {COLUMN_OUTPUT_TOKENS, "output_tokens"},
        {COLUMN_VISION_TOKENS, "actual_vision_tokens"}, {COLUMN_VIEWS, "actual_num_crops"},
        {COLUMN_TEXT_TOKENS, "input_text_tokens"},  {COLUMN_PROMPT, "total_sequence_length"}};
    struct text_buffer missing = {NULL, 0, 0};
    int code = 0;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (any_has(results, needs[i].column)) continue;
        text_add_string(&missing, missing.bytes ? ", " : "");
        text_add_string(&missing, needs[i].key);
    }
    if (missing.bytes)
        code = complain(EXIT_INPUT, "%s: a latency model needs T_LLM_prefill, output_tokens, actual_vision_tokens, "
                                    "actual_num_crops, input_text_tokens and total_sequence_length for each sample; "
                                    "missing: %s%s",
                        results->files[0].path, missing.data,
                        results->files[0].is_foreign ? "" : " (was it measured with --timing off?)");
    free(missing.data);
    return code;
}
static void warn_of_measurements(const struct measurements *measurements, const struct results *results,
                                 struct text_list *warnings) {
    int64_t failed = 0, missing = 0, throttled = 0, synthetic = 0;
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        synthetic += file->synthetic;
        failed += file->failed_count;
        missing += file->num_missing > 0 ? file->num_missing : 0;
        throttled += file->num_throttled_runs > 0 ? file->num_throttled_runs : 0;
    }
    if (synthetic)
        text_list_add(
            warnings,
            knobs_are_dense(&results->files[0].knobs)
                ? "synthetic weights: latency is real, accuracy is not"
                : "synthetic weights: latency is real, but random experts are chosen more evenly than trained ones");
    if (measurements->count < 30)
        text_list_add(warnings, "only %zu measurement%s: errors and intervals are unreliable", measurements->count,
                      plural_s((int64_t)measurements->count));
    if (failed || missing)
        text_list_add(warnings, "%lld point%s failed, %lld %s missing", (long long)failed, plural_s((int64_t)failed),
                      (long long)missing, missing == 1 ? "is" : "are");
    if (throttled)
        text_list_add(warnings, "%lld run%s %s throttled: the clock was below its rated speed", (long long)throttled,
                      plural_s((int64_t)throttled), throttled == 1 ? "was" : "were");
    if (measurements->incomplete)
        text_list_add(warnings, "%zu sample%s skipped, because the file lacks a token count, a prefill time or a knob "
                                "of the model",
                      measurements->incomplete, plural_s((int64_t)measurements->incomplete));
    if (measurements->other_has_vision)
        text_list_add(warnings, "no file has T_vision_total: \"other\" includes the vision time");
    if (measurements->not_positive)
        text_list_add(warnings, "%zu stage times of 0 ms or less left out", measurements->not_positive);
    results_warn_of_noise(results, warnings);
    for (size_t i = 0; i < results->notes.count; i++)
        if (results->notes.items[i] != results->unnamed) text_list_add(warnings, "%s", results->notes.items[i]);
}
void measurements_read(struct measurements *measurements, const struct results *results, int64_t experts,
                       const struct own_knobs *own) {
    size_t rows = 0;
    memset(measurements, 0, sizeof *measurements);
    for (size_t i = 0; i < results->count; i++) rows += results->files[i].count;
    measurements->no_vision = !any_has(results, METRIC_VISION);
    measurements->requests = zeroed(rows, sizeof *measurements->requests);
    measurements->measured = resize(NULL, rows, VP_LATENCY_STAGE_COUNT * sizeof *measurements->measured);
    measurements->total = resize(NULL, rows, sizeof *measurements->total);
    measurements->configs = resize(NULL, rows, sizeof *measurements->configs);
    measurements->sizes = resize(NULL, rows, sizeof *measurements->sizes);
    measurements->config_count = results->count;
    measurements->device = results->files[0].device ? results->files[0].device : "not said";
    measurements->weights = knob_text(&results->files[0].knobs, KNOB_WEIGHTS);
    measurements->model = results->files[0].model ? results->files[0].model : "not said";
    for (size_t i = 0; i < results->count; i++) {
        size_t first = measurements->count, other = 0;
        measurements->weights_vary |= compare_axis(&results->files[0], &results->files[i], KNOB_WEIGHTS) != 0;
        while (other < i && !is_same_size(&results->files[other], &results->files[i])) other++;
        if (other == i) measurements->size_count++;
        for (size_t k = 0; k < results->files[i].count; k++)
            measure_row(measurements, &results->files[i], k, (int32_t)experts, own);
        for (size_t k = first; k < measurements->count; k++) {
            measurements->configs[k] = (uint32_t)i;
            measurements->sizes[k] = (uint32_t)other;
        }
    }
}
int measurements_make(int64_t num_experts, const struct results *results, int64_t *experts,
                      const struct own_knobs *own, struct measurements *measurements, struct text_list *warnings) {
    int code;
    memset(measurements, 0, sizeof *measurements);
    for (size_t i = 0; i < results->count; i++)
        if (results->files[i].is_policy)
            return complain(EXIT_INPUT, "%s is from a policy, whose samples have different knobs: fit a grid's files",
                            results->files[i].path);
        else if (results->files[i].is_served)
            return complain(EXIT_INPUT, "%s comes from a server: its stages cannot be measured by a client, so no "
                                        "latency model can be fitted to them; report, best and compare read such files",
                            results->files[i].path);
    if ((code = check_same(results)) != 0 || (code = check_columns(results)) != 0
        || (code = number_experts(num_experts, results, experts)) != 0)
        return code;
    measurements_read(measurements, results, *experts, own);
    if (!measurements->count)
        return complain(EXIT_INPUT,
                        "%s: no sample has both stage times and token counts (was it measured with --timing off?)",
                        results->files[0].path);
    warn_of_measurements(measurements, results, warnings);
    return 0;
}
