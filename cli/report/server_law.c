/* server_law.c: models the cost of requests to a server: fits the model, tests it on unseen requests, writes and reads
 * it. */
#include "report/server_law.h"

#include "base/console.h"
#include "report/measurements.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const LAW_NAMES[LAW_PARTS] = {"TTFT", "TPOT", "E2E"};
static const char *const LAW_KEYS[LAW_PARTS] = {"TTFT", "T_decode_per_token", "T_total"};
static const char *const KIND_KEYS[LAW_KINDS] = {"law", "mean"};
static const char *const LAW_SPLIT_KEYS[LAW_SPLITS] = {"in_sample", "leave_one_configuration_out",
                                                       "leave_prompt_lengths_out"};
static const char *const LAW_SPLIT_NAMES[LAW_SPLITS] = {"in sample", "configuration left out",
                                                        "prompt lengths left out"};
static const char *const SOURCE_KEYS[LAW_SOURCES] = {"usage", "rule", "prompt"};
static const char *const SOURCE_NAMES[LAW_SOURCES] = {"as the server counts them", "by the rule of --family",
                                                      "unknown"};
#define REQUEST(member) {#member, offsetof(struct law_request, member)}
static const struct column LAW_REQUEST[LAW_NUMBERS] = {REQUEST(image_tokens), REQUEST(text_tokens),
                                                       REQUEST(prompt_tokens), REQUEST(image_bytes),
                                                       REQUEST(output_tokens)};
static const char *law_key(int part) { return LAW_KEYS[part]; }
static const char *law_name(int part) { return LAW_NAMES[part]; }
const struct model_form LAW_FORM = {
    "law", "part", "model", " of E2E", LAW_PARTS, law_key, law_name, LAW_KINDS, LAW_SPLITS,
    KIND_KEYS, LAW_SPLIT_KEYS, LAW_SPLIT_NAMES, LAW_REQUEST, 0, sizeof(struct law_request)};

/* ---- rows */
enum { PROMPT_BINS = 5 };
struct law_rows {
    struct law_request *requests;
    double *measured;                     /* ms [LAW_PARTS, count]; NaN if unknown */
    uint32_t *configs, *bins;             /* [count] fifths by prompt tokens */
    size_t count, config_count, incomplete, cached;
    double noise; size_t noise_count;
};
static void law_rows_free(struct law_rows *rows) {
    FREE_ALL(rows->requests, rows->measured, rows->configs, rows->bins);
}
static int is_of_law(const struct result_file *file, const struct result_file *first) {
    return !knob_compare(KNOB_ENDPOINT, &file->knobs, &first->knobs)
           && !knob_compare(KNOB_ENDPOINT_MODEL, &file->knobs, &first->knobs);
}
/* Returns 1 if every request of the latency model's server has this number. */
static int is_known(const struct results *results, const struct result_file *first, int column) {
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        for (size_t row = 0; is_of_law(file, first) && row < file->count; row++)
            if (!isfinite(result_at(file, column, row)) && !(result_at(file, COLUMN_IMAGE_BYTES, row) <= 0)) return 0;
    }
    return 1;
}
static int source_of(const struct results *results, const struct result_file *first) {
    return is_known(results, first, COLUMN_VISION_TOKENS)    ? LAW_OF_USAGE
           : is_known(results, first, COLUMN_TOKENS_BY_RULE) ? LAW_OF_RULE
                                                             : LAW_OF_PROMPT;
}
/* Returns 1 if the row has all inputs of the latency model. */
static int can_request(const struct result_file *file, size_t row, int source, struct law_request *request) {
    const double bytes = result_at(file, COLUMN_IMAGE_BYTES, row);
    const int column = source == LAW_OF_RULE ? COLUMN_TOKENS_BY_RULE : COLUMN_VISION_TOKENS;
    request->prompt_tokens = result_at(file, COLUMN_SEQUENCE, row);
    request->output_tokens = result_at(file, COLUMN_OUTPUT_TOKENS, row);
    request->image_bytes = bytes;
    request->image_tokens = source == LAW_OF_PROMPT ? (double)NAN : bytes <= 0 ? 0 : result_at(file, column, row);
    request->text_tokens = request->prompt_tokens - request->image_tokens;
    return request->prompt_tokens > 0 && (source == LAW_OF_PROMPT || request->text_tokens >= 0)
           && result_at(file, METRIC_TTFT, row) > 0;
}
int law_is_of(const struct server_law *law, const struct result_file *file) {
    return file->is_served && !strcmp(knob_text(&file->knobs, KNOB_ENDPOINT), law->endpoint)
           && !strcmp(knob_text(&file->knobs, KNOB_ENDPOINT_MODEL), law->model);
}
int law_request_of(const struct server_law *law, const struct result_file *file, size_t row,
                   struct law_request *request) {
    return can_request(file, row, law->source, request);
}
static void add_row(struct law_rows *rows, size_t capacity, const struct result_file *file, size_t row, int source) {
    const double noise = run_noise(file, row);
    struct law_request *request = &rows->requests[rows->count];
    if (!can_request(file, row, source, request)) { rows->incomplete++; return; }
    rows->measured[LAW_TTFT * capacity + rows->count] = result_at(file, METRIC_TTFT, row);
    rows->measured[LAW_PER_TOKEN * capacity + rows->count] = result_at(file, METRIC_PER_TOKEN, row) > 0
                                                                 ? result_at(file, METRIC_PER_TOKEN, row)
                                                                 : (double)NAN;
    rows->measured[LAW_TOTAL * capacity + rows->count] =
        request->output_tokens >= 1 ? result_at(file, METRIC_TOTAL, row) : (double)NAN;
    if (isfinite(noise)) { rows->noise += noise; rows->noise_count++; }
    rows->count++;
}
/* Divides the rows into fifths by prompt tokens; equal lengths stay together. */
static void find_bins(struct law_rows *rows) {
    double *sorted = resize(NULL, rows->count, sizeof *sorted);
    for (size_t i = 0; i < rows->count; i++) sorted[i] = rows->requests[i].prompt_tokens;
    vp_sort_double(sorted, rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        rows->bins[i] = 0;
        for (size_t bin = 1; bin < PROMPT_BINS; bin++)
            rows->bins[i] += rows->requests[i].prompt_tokens >= sorted[bin * rows->count / PROMPT_BINS];
    }
    free(sorted);
}
static int is_same_config(const struct result_file *left, const struct result_file *right) {
    return is_same_size(left, right) && !knob_compare(KNOB_REQUEST, &left->knobs, &right->knobs);
}
static void read_law_rows(struct law_rows *rows, const struct results *results, const struct result_file *first,
                          int source) {
    size_t capacity = 0;
    memset(rows, 0, sizeof *rows);
    for (size_t i = 0; i < results->count; i++) capacity += results->files[i].count;
    rows->requests = zeroed(capacity + 1, sizeof *rows->requests);
    rows->measured = resize(NULL, capacity + 1, LAW_PARTS * sizeof *rows->measured);
    rows->configs = zeroed(capacity + 1, sizeof *rows->configs);
    rows->bins = zeroed(capacity + 1, sizeof *rows->bins);
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        size_t other = 0, begin = rows->count;
        if (!is_of_law(file, first)) continue;
        while (other < i && !(is_of_law(&results->files[other], first) && is_same_config(&results->files[other], file)))
            other++;
        rows->config_count += other == i;
        rows->cached += file->cached_runs > 0 ? (size_t)file->cached_runs : 0;
        for (size_t row = 0; row < file->count; row++) add_row(rows, capacity, file, row, source);
        for (size_t row = begin; row < rows->count; row++) rows->configs[row] = (uint32_t)other;
    }
    for (int part = 1; part < LAW_PARTS; part++) /* close the gaps left by rows without a request */
        memmove(rows->measured + (size_t)part * rows->count, rows->measured + (size_t)part * capacity,
                rows->count * sizeof *rows->measured);
    find_bins(rows);
}

/* ---- lines */
enum { IMAGES_MIN = 5 }; /* number of samples with twins needed for a line */
static const char IMAGE_KEY[] = "T_image_outside";
static const char *const IMAGE_NAMES[] = {"1", "image tokens"};
static const char *const TTFT_NAMES[LAW_COLUMNS] = {"1", "image tokens", "text tokens", "image bytes"};
static const char *const PROMPT_NAMES[LAW_COLUMNS] = {"1", "prompt tokens", "image bytes", NULL};

/* Gets the names of a line's columns. Returns their number. */
static int line_names(const struct server_law *law, int line, const char *const **names) {
    *names = line == LAW_TTFT && law->source != LAW_OF_PROMPT ? TTFT_NAMES : PROMPT_NAMES;
    if (line == LAW_PER_TOKEN) return 2;
    return (law->source == LAW_OF_PROMPT ? 2 : 3) + law->has_bytes;
}
/* Gets the columns of a request. Returns their number. */
static int line_columns(const struct server_law *law, int line, const struct law_request *request,
                        double x[LAW_COLUMNS]) {
    int count = 0;
    x[count++] = 1;
    if (line == LAW_TTFT && law->source != LAW_OF_PROMPT) {
        x[count++] = request->image_tokens;
        x[count++] = request->text_tokens;
    } else x[count++] = request->prompt_tokens;
    if (line == LAW_TTFT && law->has_bytes) x[count++] = request->image_bytes;
    return count;
}
/* The rows of a regression for a line: those with a known value. */
struct line_data { double *x, *y, *weights; uint32_t *groups; size_t *rows; size_t count, columns; };
static void line_data_free(struct line_data *data) {
    FREE_ALL(data->x, data->y, data->weights, data->groups, data->rows);
}
static struct line_data line_data_of(const struct server_law *law, const struct law_rows *rows, int part, int kind) {
    struct line_data data = {resize(NULL, rows->count, LAW_COLUMNS * sizeof(double)),
                             resize(NULL, rows->count, sizeof(double)),
                             resize(NULL, rows->count, sizeof(double)),
                             resize(NULL, rows->count, sizeof(uint32_t)),
                             resize(NULL, rows->count, sizeof(size_t)),
                             0,
                             1};
    for (size_t i = 0; i < rows->count; i++) {
        const double value = rows->measured[(size_t)part * rows->count + i];
        double x[LAW_COLUMNS] = {1};
        if (!isfinite(value)) continue;
        if (kind == LAW_KIND) data.columns = (size_t)line_columns(law, part, &rows->requests[i], x);
        memcpy(data.x + data.count * data.columns, x, data.columns * sizeof *x);
        data.weights[data.count] = 1;
        data.rows[data.count] = i;
        data.y[data.count++] = value;
    }
    return data;
}
static vp_linear_options options_of(const struct line_data *data) {
    static const unsigned char nonnegative[LAW_COLUMNS] = {1, 1, 1, 1};
    vp_linear_options options = vp_linear_options_default();
    options.weights = data->weights;
    options.nonnegative = nonnegative;
    options.drop_dependent = 1;
    return options;
}
/* Least squares with weights 1 / predicted^2, as in the engine's model: noise is proportional to the time, and the line
 * goes through the means. The weights are left in data->weights. */
static vp_result fit_line(struct line_data *data, vp_linear *fit, vp_error *error) {
    const vp_linear_options options = options_of(data);
    const double least = 0.01 * vp_statistics_mean(data->y, data->count);
    vp_result result = vp_linear_compute(data->x, data->y, data->count, data->columns, &options, fit, error);
    int is_settled = 0;
    for (int round = 0; result == VP_OK && !is_settled && round < 30; round++) {
        const vp_linear before = *fit;
        for (size_t i = 0; i < data->count; i++) {
            const double value = fmax(vp_linear_value(fit, data->x + i * data->columns), least);
            data->weights[i] = 1 / (value * value);
        }
        result = vp_linear_compute(data->x, data->y, data->count, data->columns, &options, fit, error);
        is_settled = 1;
        for (size_t k = 0; k < data->columns; k++)
            is_settled &= fabs(fit->coefficient[k] - before.coefficient[k]) <= 1e-9 * fabs(fit->coefficient[k]);
    }
    return result;
}
static size_t count_groups(const struct line_data *data, size_t group_count) {
    unsigned char *is_used = zeroed(group_count, 1);
    size_t count = 0;
    for (size_t i = 0; i < data->count; i++) {
        count += !is_used[data->groups[i]];
        is_used[data->groups[i]] = 1;
    }
    free(is_used);
    return count;
}
/* Predicts the line's rows with lines that never saw the row's group. Returns false if there are none. */
static int can_leave_out(struct line_data *data, const uint32_t *groups, size_t group_count, double *predicted) {
    const vp_linear_options options = options_of(data);
    const size_t bytes = vp_linear_leave_out_scratch_bytes(data->columns, group_count);
    for (size_t i = 0; i < data->count; i++) data->groups[i] = groups[data->rows[i]];
    if (count_groups(data, group_count) < 2) return 0;
    void *scratch = resize(NULL, bytes, 1);
    int is_made = vp_linear_leave_out(data->x, data->y, data->groups, data->count, data->columns, group_count, &options,
                                      scratch, bytes, predicted, NULL) == VP_OK;
    free(scratch);
    return is_made;
}
/* Predicts a part of all rows, in sample or with lines that never saw the row's group. */
static void predict_part(const struct server_law *law, const struct law_rows *rows, size_t group_count, int kind,
                         int split, int part, double *out) {
    struct line_data data = line_data_of(law, rows, part, kind);
    double *predicted = resize(NULL, data.count, sizeof *predicted);
    vp_linear fit;
    int is_made = data.count > data.columns && fit_line(&data, &fit, NULL) == VP_OK;
    for (size_t i = 0; i < rows->count; i++) out[i] = (double)NAN;
    if (is_made && split != LAW_IN_SAMPLE)
        is_made = can_leave_out(&data, split == LAW_CONFIG_OUT ? rows->configs : rows->bins, group_count, predicted);
    else
        for (size_t i = 0; is_made && i < data.count; i++)
            predicted[i] = vp_linear_value(&fit, data.x + i * data.columns);
    for (size_t i = 0; is_made && i < data.count; i++) out[data.rows[i]] = predicted[i];
    free(predicted);
    line_data_free(&data);
}
static double total_of(double ttft, double per_token, double output_tokens) {
    return output_tokens > 1 ? ttft + (output_tokens - 1) * per_token : ttft;
}
static void predict_rows(const struct server_law *law, const struct law_rows *rows, size_t group_count, int kind,
                         int split, double *predicted) {
    for (int part = 0; part < LAW_PARTS; part++) {
        double *out = predicted + (size_t)part * rows->count;
        if (part < LAW_TOTAL || kind == LAW_MEAN) predict_part(law, rows, group_count, kind, split, part, out);
        else
            for (size_t i = 0; i < rows->count; i++)
                out[i] = total_of(predicted[i], predicted[rows->count + i], rows->requests[i].output_tokens);
    }
}
static void evaluate(struct server_law *law, const struct law_rows *rows, size_t group_count) {
    double *predicted = resize(NULL, rows->count, LAW_PARTS * sizeof *predicted);
    for (int kind = 0; kind < LAW_KINDS; kind++)
        for (int split = 0; split < LAW_SPLITS; split++) {
            const size_t groups = split == LAW_PROMPT_OUT ? PROMPT_BINS : group_count;
            predict_rows(law, rows, groups, kind, split, predicted);
            for (int part = 0; part < LAW_PARTS; part++)
                part_errors_of(rows->measured + (size_t)part * rows->count, predicted + (size_t)part * rows->count,
                               rows->count, split == LAW_PROMPT_OUT ? rows->bins : rows->configs, groups,
                               &law->errors[kind][split][part]);
            for (int part = 0; part < LAW_PARTS && kind == LAW_KIND && split == law->limits_split; part++)
                part_limits_of(rows->measured + (size_t)part * rows->count, predicted + (size_t)part * rows->count,
                               rows->count, 0, &law->limits[part]);
        }
    law->noise = rows->noise_count ? rows->noise / (double)rows->noise_count : (double)NAN;
    free(predicted);
}

/* ---- one latency model */
#define BYTES_EXPLAINED 0.99 /* if tokens explain more than this share of the variance of bytes, bytes get no cost */

/* Returns 1 if the sizes of images in bytes are known and are not determined by the tokens. */
static int are_bytes_apart(struct server_law *law, const struct law_rows *rows) {
    struct line_data data = line_data_of(law, rows, LAW_TTFT, LAW_KIND);
    double *predicted = resize(NULL, data.count, 2 * sizeof *predicted);
    vp_linear_options options = vp_linear_options_default();
    vp_linear_errors errors = {0};
    vp_linear fit;
    int is_known_all = 1, is_apart = 0;
    for (size_t i = 0; i < data.count; i++) {
        data.y[i] = rows->requests[data.rows[i]].image_bytes;
        is_known_all &= isfinite(data.y[i]) != 0;
    }
    options.drop_dependent = 1;
    if (is_known_all && data.count > data.columns + 1
        && vp_linear_compute(data.x, data.y, data.count, data.columns, &options, &fit, NULL) == VP_OK) {
        for (size_t i = 0; i < data.count; i++) predicted[i] = vp_linear_value(&fit, data.x + i * data.columns);
        is_apart = vp_linear_errors_compute(data.y, predicted, data.count, predicted + data.count, &errors) == VP_OK
                   && errors.r2 < BYTES_EXPLAINED;
        if (errors.r2 >= BYTES_EXPLAINED)
            text_list_add(&law->warnings, "in these data, the bytes of an image follow from its tokens, so the cost of "
                                          "a token includes the upload");
    }
    free(predicted);
    line_data_free(&data);
    return is_apart;
}
static void warn_of_line(struct server_law *law, int line) {
    const char *const *names;
    const int columns = line_names(law, line, &names);
    for (int k = 0; law->fitted[line] && k < columns; k++)
        if (law->line[line].state[k] == VP_LINEAR_DROPPED)
            text_list_add(&law->warnings,
                          "%s: %s dropped as collinear with earlier features; other terms absorb its cost",
                          LAW_NAMES[line], names[k]);
    if (!law->fitted[line])
        text_list_add(&law->warnings, "%s: reported by too few requests, so it is not in the latency model",
                      LAW_NAMES[line]);
}
static void warn_of_law(struct server_law *law, const struct law_rows *rows) {
    if (law->source == LAW_OF_PROMPT)
        text_list_add(&law->warnings,
                      "the server does not report how many tokens an image has, so image and text tokens have the same "
                      "cost (sweep --family NAME counts them by a rule)");
    if (rows->count < 30)
        text_list_add(&law->warnings, "only %zu measurement%s: errors and intervals are unreliable", rows->count,
                      plural_s((int64_t)rows->count));
    if (rows->config_count < 2)
        text_list_add(&law->warnings,
                      "a single configuration: the error on unseen configurations is unknown");
    if (rows->incomplete)
        text_list_add(&law->warnings,
                      "%zu sample%s left out: the server does not report prompt tokens, or there is no TTFT",
                      rows->incomplete, plural_s((int64_t)rows->incomplete));
    if (rows->cached)
        text_list_add(&law->warnings,
                      "%zu runs read their prompt from a cache, so their TTFT is shorter (use sweep --no_cache, "
                      "without --same_image)",
                      rows->cached);
    for (int line = 0; line < LAW_LINES; line++) warn_of_line(law, line);
    for (int part = 0; part < LAW_PARTS; part++) {
        const struct part_errors *own = &law->errors[LAW_KIND][LAW_CONFIG_OUT][part],
                                 *mean = &law->errors[LAW_MEAN][LAW_CONFIG_OUT][part];
        if (own->of.count && mean->of.count && mean->of.rmse < 0.95 * own->of.rmse)
            text_list_add(&law->warnings,
                          "%s on held-out configurations: the mean of the rows is closer (RMSE %.3g ms, the latency "
                          "model's %.3g ms): measure more sizes and runs, on a quiet machine",
                          LAW_NAMES[part], mean->of.rmse, own->of.rmse);
    }
}
/* Fits the cost of images from outside, measured by the samples' twins: a line in the tokens that an image adds to the
 * prompt, or a constant if all images add the same number. */
static void fit_image(const struct results *results, const struct result_file *first, struct server_law *law) {
    struct line_data data = {NULL, NULL, NULL, NULL, NULL, 0, 2};
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        for (size_t row = 0; is_of_law(file, first) && row < file->count; row++) {
            const double ms = result_at(file, COLUMN_IMAGE_OUTSIDE, row),
                         tokens = result_at(file, COLUMN_IMAGE_TOKENS, row);
            if (!isfinite(ms) || !isfinite(tokens)) continue;
            data.x = resize(data.x, 2 * data.count + 2, sizeof *data.x);
            data.y = resize(data.y, data.count + 1, sizeof *data.y);
            data.x[2 * data.count] = 1;
            data.x[2 * data.count + 1] = tokens;
            data.y[data.count++] = ms;
        }
    }
    vp_linear_options options = options_of(&data);
    options.weights = NULL;
    law->has_image = data.count >= IMAGES_MIN
                     && vp_linear_compute(data.x, data.y, data.count, 2, &options, &law->image, NULL) == VP_OK;
    line_data_free(&data);
}
/* Fits the latency model for the server and model of `first`. Returns 0 or an exit code. */
static int fit_law(const struct results *results, const struct result_file *first, struct server_law *law) {
    vp_error error = {VP_OK, -1, "", ""};
    struct law_rows rows;
    const char *endpoint = knob_text(&first->knobs, KNOB_ENDPOINT);
    const char *model = knob_text(&first->knobs, KNOB_ENDPOINT_MODEL);
    int code = 0;
    memset(law, 0, sizeof *law);
    law->endpoint = copy_text(endpoint, strlen(endpoint));
    law->model = copy_text(model, strlen(model));
    law->source = source_of(results, first);
    read_law_rows(&rows, results, first, law->source);
    if (!rows.count)
        code = complain(EXIT_INPUT, "%s: no sample has both a TTFT and a count of prompt tokens (usage.prompt_tokens)",
                        first->path);
    if (!code) law->has_bytes = are_bytes_apart(law, &rows);
    for (int line = 0; line < LAW_LINES && !code; line++) {
        struct line_data data = line_data_of(law, &rows, line, LAW_KIND);
        vp_result result = VP_OK;
        law->fitted[line] = data.count > data.columns;
        if (law->fitted[line]) result = fit_line(&data, &law->line[line], &error);
        if (result != VP_OK) code = complain_result(exit_code_of(result), "fit", result, &error);
        line_data_free(&data);
    }
    if (!code) {
        law->rows = (int64_t)rows.count;
        law->configs = (int64_t)rows.config_count;
        /* with two configurations, one predicts the other poorly */
        law->limits_split = rows.config_count > 2 ? LAW_CONFIG_OUT : LAW_PROMPT_OUT;
        ranges_find(&LAW_FORM, LAW_NUMBERS, rows.requests, rows.count, law->ranges);
        evaluate(law, &rows, results->count);
        fit_image(results, first, law);
        warn_of_law(law, &rows);
    }
    law_rows_free(&rows);
    return code;
}
int server_laws_fit(const struct results *results, struct server_laws *laws) {
    int code = 0;
    memset(laws, 0, sizeof *laws);
    laws->items = zeroed(results->count, sizeof *laws->items);
    for (size_t i = 0; i < results->count && !code; i++) {
        size_t other = 0;
        while (other < i && !is_of_law(&results->files[other], &results->files[i])) other++;
        if (other == i) code = fit_law(results, &results->files[i], &laws->items[laws->count++]);
    }
    return code;
}
void server_laws_free(struct server_laws *laws) {
    for (size_t i = 0; i < laws->count; i++) {
        FREE_ALL(laws->items[i].endpoint, laws->items[i].model);
        text_list_free(&laws->items[i].warnings);
    }
    free(laws->items);
    memset(laws, 0, sizeof *laws);
}

/* ---- predictions */
void law_predict(const struct server_law *law, const struct law_request *request, struct prediction *prediction) {
    double stretch = 1, steps = request->output_tokens - 1;
    double *value = prediction->value, *low = prediction->low, *high = prediction->high;
    memset(prediction, 0, sizeof *prediction);
    for (int line = 0; line < LAW_LINES; line++) {
        double x[LAW_COLUMNS];
        vp_linear_range range;
        value[line] = low[line] = high[line] = (double)NAN;
        if (!law->fitted[line]) continue;
        line_columns(law, line, request, x);
        value[line] = vp_linear_value(&law->line[line], x);
        if (!(value[line] > 0)
            || vp_linear_interval(&law->line[line], x, 1 / (value[line] * value[line]), MODEL_LEVEL, &range) != VP_OK)
            continue;
        low[line] = fmax(0, range.low);
        high[line] = range.high;
        if (line == LAW_TTFT || steps > 0) stretch = fmax(stretch, vp_linear_stretch(&range));
        if (!law->limits[line].count) continue;
        vp_latency_limits_apply(&law->limits[line], value[line], vp_linear_stretch(&range), &low[line], &high[line]);
        prediction->is_limited[line] = 1;
    }
    value[LAW_TOTAL] = total_of(value[LAW_TTFT], value[LAW_PER_TOKEN], request->output_tokens);
    low[LAW_TOTAL] = total_of(low[LAW_TTFT], low[LAW_PER_TOKEN], request->output_tokens);
    high[LAW_TOTAL] = total_of(high[LAW_TTFT], high[LAW_PER_TOKEN], request->output_tokens);
    if (!law->limits[LAW_TOTAL].count || !isfinite(low[LAW_TOTAL])) return; /* otherwise from both bounds */
    vp_latency_limits_apply(&law->limits[LAW_TOTAL], value[LAW_TOTAL], stretch, &low[LAW_TOTAL], &high[LAW_TOTAL]);
    prediction->is_limited[LAW_TOTAL] = 1;
}
static vp_estimate mean_at(const vp_linear *line, const double *x) {
    vp_estimate mean = {vp_linear_value(line, x), (double)NAN, (double)NAN};
    vp_linear_range range;
    if (vp_linear_interval(line, x, 1, MODEL_LEVEL, &range) != VP_OK) return mean;
    mean.low = fmax(0, range.mean_low);
    mean.high = range.mean_high;
    return mean;
}
/* Difference of two independent means. */
static vp_estimate difference(vp_estimate one, vp_estimate other) {
    const double down = hypot(one.value - one.low, other.high - other.value),
                 up = hypot(one.high - one.value, other.value - other.low), value = one.value - other.value;
    return value >= 0 ? (vp_estimate){value, fmax(0, value - down), value + up} : estimate_none();
}
struct law_stages law_stages_of(const struct server_law *law, const struct law_request *request, vp_estimate image_ms) {
    const double prompt = request->prompt_tokens, image = request->image_tokens, steps[LAW_COLUMNS] = {1, prompt},
                 of_image[LAW_COLUMNS] = {1, image}, as_text[LAW_COLUMNS] = {1, 0, prompt, 0},
                 more[LAW_COLUMNS] = {0, image, -image, request->image_bytes};
    struct law_stages stages = {estimate_none(), estimate_none(), estimate_none()};
    double x[LAW_COLUMNS];
    vp_estimate ttft = estimate_none();
    line_columns(law, LAW_TTFT, request, x);
    if (law->fitted[LAW_TTFT]) ttft = mean_at(&law->line[LAW_TTFT], x);
    if (law->fitted[LAW_PER_TOKEN]) stages.step = mean_at(&law->line[LAW_PER_TOKEN], steps);
    if (image <= 0) stages.image = (vp_estimate){0, 0, 0};
    else if (isfinite(image_ms.value)) stages.image = image_ms;
    else if (law->has_image) stages.image = mean_at(&law->image, of_image);
    else if (law->fitted[LAW_TTFT] && law->source != LAW_OF_PROMPT) {
        stages.image = mean_at(&law->line[LAW_TTFT], more);
        stages.prefill = mean_at(&law->line[LAW_TTFT], as_text); /* the same line: correlated errors */
        if (!(stages.image.value >= 0)) stages.image = estimate_none(); /* image tokens are cheaper than text tokens */
        return stages;
    }
    stages.prefill = difference(ttft, stages.image);
    return stages;
}
void law_warn(const struct server_law *law, const struct law_request *requests, size_t count,
              struct text_list *warnings) {
    for (int which = 0; which < LAW_NUMBERS; which++) {
        if (which == LAW_IMAGE_BYTES && !law->has_bytes) continue;
        if ((which == LAW_IMAGE_TOKENS || which == LAW_TEXT_TOKENS) && law->source == LAW_OF_PROMPT) continue;
        range_warn(&LAW_FORM, which, &law->ranges[which], requests, count, warnings);
    }
    for (int line = 0; line < LAW_LINES; line++)
        if (!law->fitted[line])
            text_list_add(warnings, "%s is not in the latency model, because the files do not contain "
                                    "it", LAW_NAMES[line]);
}

/* ---- as JSON */
static void put_law(vp_json_writer *writer, const struct server_law *law) {
    PUT(writer, KEY_OBJECT(NULL), KEY("endpoint", law->endpoint), KEY("endpoint_model", law->model),
        KEY_TEXTS("warnings", &law->warnings), KEY("rows", law->rows), KEY("configurations", law->configs),
        KEY("image_tokens_of", SOURCE_KEYS[law->source]), KEY_BOOL("has_image_bytes", law->has_bytes));
    ranges_put(writer, &LAW_FORM, LAW_NUMBERS, law->ranges);
    PUT(writer, KEY_OBJECT("lines"));
    for (int line = 0; line < LAW_LINES; line++) {
        const char *const *names;
        line_names(law, line, &names);
        if (!law->fitted[line]) { PUT(writer, KEY_NULL(LAW_KEYS[line])); continue; }
        PUT(writer, KEY_OBJECT(LAW_KEYS[line]));
        model_put_linear(writer, &law->line[line], names);
        PUT(writer, END_OBJECT);
    }
    PUT(writer, END_OBJECT);
    if (law->has_image) {
        PUT(writer, KEY_OBJECT(IMAGE_KEY));
        model_put_linear(writer, &law->image, IMAGE_NAMES);
        PUT(writer, END_OBJECT);
    }
    PUT(writer, KEY("held_out", LAW_SPLIT_KEYS[law->limits_split]));
    limits_put(writer, &LAW_FORM, law->limits);
    PUT(writer, KEY_OBJECT("evaluation"));
    errors_put(writer, &LAW_FORM, law->errors[0][0]);
    PUT(writer, KEY("run_noise_mape_percent", 100 * law->noise), END_OBJECT, END_OBJECT);
}
void server_laws_put(vp_json_writer *writer, const struct server_laws *laws) {
    PUT(writer, KEY("schema", SERVER_LAWS_SCHEMA), KEY("version", VLMPROF_VERSION), KEY("level", (double)MODEL_LEVEL),
        KEY("location", ESTIMATE_LOCATION), KEY_ARRAY("laws"));
    for (size_t i = 0; i < laws->count; i++) put_law(writer, &laws->items[i]);
    PUT(writer, END_ARRAY);
}
static void read_lines(struct model_reader *reader, uint32_t lines, struct server_law *law) {
    for (int line = 0; line < LAW_LINES && !reader->code; line++) {
        const char *const *names;
        const int count = line_names(law, line, &names);
        char where[64];
        snprintf(reader->where, sizeof reader->where, "lines");
        if (node_is(&reader->parsed.json, vp_json_get(&reader->parsed.json, lines, LAW_KEYS[line]), VP_JSON_NULL))
            continue;
        uint32_t object = model_member(reader, lines, LAW_KEYS[line], VP_JSON_OBJECT);
        if (reader->code) return;
        snprintf(where, sizeof where, "lines.%s", LAW_KEYS[line]);
        law->fitted[line] = 1;
        model_read_linear(reader, object, where, names, count, 1, &law->line[line]);
    }
}
static void read_law(struct model_reader *reader, uint32_t object, struct server_law *law) {
    const vp_json *json = &reader->parsed.json;
    reader->where[0] = 0;
    if (!node_is(json, object, VP_JSON_OBJECT)) {
        model_fail(reader, object, "laws", "contains a value that is not an object");
        return;
    }
    law->endpoint = model_text(reader, object, "endpoint");
    law->model = model_text(reader, object, "endpoint_model");
    law->rows = model_count(reader, object, "rows", 1, INT64_C(1) << 40);
    law->configs = model_count(reader, object, "configurations", 1, INT64_C(1) << 40);
    law->source = model_word(reader, object, "image_tokens_of", SOURCE_KEYS, LAW_SOURCES);
    law->limits_split = model_word(reader, object, "held_out", LAW_SPLIT_KEYS, LAW_SPLITS);
    uint32_t bytes = vp_json_get(json, object, "has_image_bytes");
    law->has_bytes = node_is(json, bytes, VP_JSON_TRUE);
    if (!law->has_bytes && !node_is(json, bytes, VP_JSON_FALSE))
        model_fail(reader, object, "has_image_bytes", "is neither true nor false");
    uint32_t ranges = model_member(reader, object, "ranges", VP_JSON_OBJECT);
    uint32_t lines = model_member(reader, object, "lines", VP_JSON_OBJECT);
    uint32_t ratios = model_member(reader, object, "held_out_ratios", VP_JSON_OBJECT);
    ranges_read(reader, ranges, &LAW_FORM, LAW_NUMBERS, law->ranges);
    if (!reader->code) read_lines(reader, lines, law);
    law->has_image = has_value(json, object, IMAGE_KEY);
    if (!reader->code && law->has_image)
        model_read_linear(reader, model_member(reader, object, IMAGE_KEY, VP_JSON_OBJECT), IMAGE_KEY, IMAGE_NAMES, 2, 1,
                          &law->image);
    limits_read(reader, ratios, &LAW_FORM, law->limits);
}
int server_laws_read(struct model_reader *reader, struct server_laws *laws) {
    memset(laws, 0, sizeof *laws);
    model_check_duplicates(reader);
    uint32_t list = model_member(reader, 0, "laws", VP_JSON_ARRAY);
    if (reader->code) return reader->code;
    if (!reader->parsed.json.nodes[list].count) model_fail(reader, list, "laws", "is empty");
    laws->items = zeroed((size_t)reader->parsed.json.nodes[list].count + 1, sizeof *laws->items);
    uint32_t item = list + 1;
    for (uint32_t i = 0; i < reader->parsed.json.nodes[list].count && !reader->code;
         i++, item = reader->parsed.json.nodes[item].end)
        read_law(reader, item, &laws->items[laws->count++]);
    return reader->code;
}

/* ---- as text */
static void describe_law(struct document *document, const struct server_law *law) {
    document_text(document, BLOCK_HEADING, "Latency in ms of %s; MAPE on configurations not seen by the fit [95 %% "
                                           "interval]", law->model);
    for (int line = 0; line < LAW_LINES; line++) {
        const char *const *names;
        line_names(law, line, &names);
        if (!law->fitted[line]) continue;
        struct text_buffer formula = formula_text(LAW_NAMES[line], &law->line[line], names);
        formula_add(document, formula.data, &law->errors[LAW_KIND][LAW_CONFIG_OUT][line]);
        free(formula.data);
    }
    if (law->has_image) {
        struct text_buffer formula = formula_text("image from outside, by twins", &law->image, IMAGE_NAMES);
        document_text(document, BLOCK_LINE, "%s", formula.data);
        free(formula.data);
    }
    formula_add(document, "E2E = TTFT + (output tokens - 1) TPOT", &law->errors[LAW_KIND][LAW_CONFIG_OUT][LAW_TOTAL]);
    document_list(document, "Warnings", &law->warnings);
    document_text(document, BLOCK_HEADING, "vlmprof fit: %lld measurement%s of %lld configuration%s of %s at %s",
                  (long long)law->rows, plural_s((int64_t)law->rows), (long long)law->configs,
                  plural_s((int64_t)law->configs), law->model, law->endpoint);
    document_text(document, BLOCK_LINE, "E2E = TTFT + (output tokens - 1) TPOT; tokens of images: %s",
                  SOURCE_NAMES[law->source]);
    document_text(document, BLOCK_LINE,
                  "predicted: the " ESTIMATE_LOCATION " time of requests with these inputs, one at a time; measured: "
                  "each sample's " ESTIMATE_LOCATION " over its runs; baseline: the " ESTIMATE_LOCATION
                  " of the fitted rows");
    if (isfinite(law->noise))
        document_text(document, BLOCK_LINE,
                      "noise floor: the runs of a sample vary, so the mean of its T_total is off by %.2f %% on "
                      "average; no MAPE of E2E can be lower",
                      100 * law->noise);
    errors_describe(document, &LAW_FORM, law->errors[0][0]);
    struct text_list *table = coefficients_table(document, &LAW_FORM, "");
    for (int line = 0; line < LAW_LINES; line++) {
        const char *const *names;
        line_names(law, line, &names);
        if (law->fitted[line]) coefficients_add(table, LAW_NAMES[line], &law->line[line], names);
    }
}
void server_laws_describe(struct document *document, const struct server_laws *laws) {
    for (size_t i = 0; i < laws->count; i++) describe_law(document, &laws->items[i]);
}
