/* command_predict.c: predicts the cost of requests that were not measured, with a model of `vlmprof fit`. For sizes or
 * counts, the output is predictions of requests; with --data, the model's errors on result files. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "measure/noise.h"
#include "measure/engine.h"
#include "report/estimator.h"
#include "report/measurements.h"
#include "report/tradeoff.h"
#include "results/result_read.h"
#include "tile/family.h"
#include "vlmprof_analysis.h"
#include "vlmprof_latency.h"

#include <math.h>

/* What excludes the options that describe a request. */
#define OF_REQUEST .excludes = "data", .because = "the result files contain it"
static const struct option_spec PREDICT_OPTIONS[] = {
    RULED_GROUP("input", OF_REQUEST),
    {"text_tokens", COUNT, "N", NULL, 0, 1000000000, NULL, "text tokens in the prompt (default: the data's median)"},
    {"output_tokens", COUNT, "N", NULL, 1, 1000000000, NULL, "tokens in the answer (default: the data's median)"},
    {"views", COUNT, "N", NULL, 0, 100000, NULL,
     "vision encoder passes (crops and global view), to describe a request by counts; 0: text only"},
    {"sequence", COUNT, "N", NULL, 1, 1000000000, NULL, "prompt length in tokens: BOS, image and text"},
    RULED_GROUP("knobs", OF_REQUEST),
    OPTION_PREPROCESS,
    OPTION_TIER,
    OPTION_MAX_CROPS,
    OPTION_CROPS,
    {"vision_tokens", COUNT, "N", NULL, 0, 1000000, NULL,
     "for a size: the target number of image tokens; with --views: the image tokens that the language model sees"},
    {"top_k", COUNT, "K", NULL, 1, 1000000, NULL, "experts per token (default: the fitted data's median)"},
    {"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, "active blocks (default: the fitted data's median)"},
    {"weights", CHOICE, "TYPE", NULL, 0, 0, WEIGHTS_NAMES,
     "weight type, for a model that was fitted to several (default: the middle one in the fitted data)"},
    {"prune", TEXT, "VALUE", NULL, 0, 0, NULL,
     "drop image tokens: METHOD[:KEY=VALUE,..], as in run; assumes that the active blocks are the first ones"},
    {"knob", TEXTS, "NAME=VALUE...", NULL, 0, 0, NULL,
     "values of knobs that the fitted files define (default: the median, or the first value)"},
    OPTION_GROUP("checks"),
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL,
     "also report the probability that a request takes at most this many ms", .excludes = "data"},
    {"data", TEXT, "DIR", NULL, 0, 0, NULL, "compare predictions with the result files in a folder"},
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* ---- predictions of requests */
/* ms of each part; NaN if the part is not in the model or its interval is unknown. */
struct prediction {
    double value[ESTIMATE_PARTS], low[ESTIMATE_PARTS], high[ESTIMATE_PARTS];
    size_t held_out[ESTIMATE_PARTS]; /* number of held-out ratios that give the interval; 0: it is Student's */
    int is_idle[ESTIMATE_PARTS];     /* 1 if the request does not have the part */
};
static const char *verdict_of(const struct prediction *prediction, double budget) {
    const int total = ESTIMATE_TOTAL;
    return prediction->high[total] <= budget ? "holds" : prediction->low[total] > budget ? "exceeds" : "unsure";
}
/* The share of requests like this one within a budget. Each side of the prediction is treated as half of a normal
 * distribution, with the width of that side of the interval. */
static double share_within(const struct prediction *prediction, double budget) {
    const int total = ESTIMATE_TOTAL;
    const double value = prediction->value[total],
                 side = budget < value ? value - prediction->low[total] : prediction->high[total] - value;
    const double share = 1 - vp_normal_tail((budget - value) / (side / vp_normal_quantile(0.5 + ESTIMATE_LEVEL / 2)));
    return prediction->held_out[total] ? share_shown(share, prediction->held_out[total]) : share;
}
static void estimate_cells(struct text_list *table, vp_estimate estimate) {
    const struct number_text text = number_measured(estimate.value, estimate.low, estimate.high);
    const char *range = strchr(text.text, '[');
    CELLS(table, number_value(estimate.value, estimate.low, estimate.high).text, range ? range : "-");
}
static void prediction_describe(struct document *document, const struct prediction *prediction, double budget) {
    struct text_list *table = document_table(document, "stage|" ESTIMATE_LOCATION " ms|95 % interval|of");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const int runs = !prediction->is_idle[part], is_known = runs && isfinite(prediction->low[part]);
        text_list_add(table, "%s", part_name(part));
        if (runs)
            estimate_cells(table,
                           (vp_estimate){prediction->value[part], prediction->low[part], prediction->high[part]});
        else CELLS(table, "does not run", "-");
        text_list_add(table, "%s", !is_known ? "-" : prediction->held_out[part] ? "held-out ratios" : "Student");
    }
    if (isfinite(budget))
        document_text(document, BLOCK_LINE, "budget %.3f ms: %s, with probability %s", budget,
                      verdict_of(prediction, budget), number_formatted("%.3f", share_within(prediction, budget)).text);
}
static void prediction_put(vp_json_writer *writer, const struct prediction *prediction, double budget) {
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        const char *key = part_name(part);
        const double low = prediction->low[part];
        if (prediction->is_idle[part] || !isfinite(prediction->value[part])) PUT(writer, KEY_NULL(key));
        else
            PUT(writer, KEY_OBJECT(key), KEY("ms", prediction->value[part]),
                KEY_RANGE("interval_ms", low, prediction->high[part]),
                KEY("interval_of", !isfinite(low) ? NULL
                                   : prediction->held_out[part] ? "held_out_ratios" : "student"),
                END_OBJECT);
    }
    if (isfinite(budget))
        PUT(writer, KEY("budget_ms", budget), KEY("verdict", verdict_of(prediction, budget)),
            KEY("probability_within_budget", share_within(prediction, budget)));
}
/* The requests of the command line. sizes: "640x480", or empty if counts were given. */
enum { SIZE_BYTES = 48 };
struct asked {
    size_t count;
    vp_latency_request *requests;
    char (*sizes)[SIZE_BYTES];
    struct prediction *predictions;
    double budget;              /* NaN if none */
    struct text_buffer medians; /* the counts that were not given */
};
/* Student's interval of the total: the half-widths of the stages, added by the correlation of their residuals. */
static void predict_total_interval(const struct estimator *estimator, struct prediction *prediction) {
    double half[VP_LATENCY_STAGE_COUNT], sum = 0, widest = 0, value = prediction->value[ESTIMATE_TOTAL];
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        half[stage] = !prediction->is_idle[stage] && estimator->model.fitted[stage]
                          ? prediction->high[stage] - prediction->value[stage]
                          : 0;
        widest = half[stage] <= widest ? widest : half[stage]; /* once NaN, it stays NaN */
    }
    for (int first = 0; first < VP_LATENCY_STAGE_COUNT; first++)
        for (int second = 0; second < VP_LATENCY_STAGE_COUNT; second++)
            sum += estimator->correlation[first][second] * half[first] * half[second];
    /* errors that cancel out in the fitted rows may not cancel out in a new one */
    sum = sum >= widest * widest ? sqrt(sum) : widest;
    prediction->low[ESTIMATE_TOTAL] = value - sum < 0 && value >= 0 ? 0 : value - sum; /* a time cannot be negative */
    prediction->high[ESTIMATE_TOTAL] = value + sum;
}
/* Replaces Student's interval of a part with the limits from held-out ratios, if there are any. */
static void limit_part(const struct estimator *estimator, int part, double stretch, struct prediction *prediction) {
    if (!estimator->limits[part].count || !(prediction->value[part] >= 0)) return;
    vp_latency_limits_apply(&estimator->limits[part], prediction->value[part], stretch, &prediction->low[part],
                            &prediction->high[part]);
    prediction->held_out[part] = estimator->limits[part].count;
}
/* Returns 1 and fills the prediction if the counts of the request are in range. */
static int can_predict_request(const struct estimator *estimator, const vp_latency_request *request,
                               struct prediction *prediction) {
    double stretch = 1;
    int is_whole = 1; /* every stage that runs has an interval */
    vp_linear_range ranges[VP_LATENCY_STAGE_COUNT];
    vp_latency_prediction made;
    memset(prediction, 0, sizeof *prediction);
    if (vp_latency_predict(&estimator->model, request, &made) != VP_OK) return 0;
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        vp_linear_range *range = &ranges[stage];
        prediction->value[stage] = prediction->low[stage] = prediction->high[stage] = made.stage[stage];
        prediction->is_idle[stage] = !stage_is_run(stage, request);
        if (prediction->is_idle[stage]) continue;
        is_whole &= estimator->model.fitted[stage];
        if (!estimator->model.fitted[stage]) continue;
        prediction->low[stage] = prediction->high[stage] = (double)NAN;
        if (vp_latency_interval(&estimator->model, (vp_latency_stage)stage, request, ESTIMATE_LEVEL, range) != VP_OK) {
            is_whole = 0;
            continue;
        }
        prediction->low[stage] = range->low;
        prediction->high[stage] = range->high;
        stretch = fmax(stretch, vp_linear_stretch(range));
    }
    prediction->value[ESTIMATE_TOTAL] = made.total;
    predict_total_interval(estimator, prediction);
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++)
        if (isfinite(prediction->low[stage]) && !prediction->is_idle[stage])
            limit_part(estimator, stage, vp_linear_stretch(&ranges[stage]), prediction);
    if (is_whole) limit_part(estimator, ESTIMATE_TOTAL, stretch, prediction);
    return 1;
}
static void range_warn(int which, const struct number_range *range, const vp_latency_request *requests, size_t count,
                struct text_list *warnings) {
    size_t outside = 0;
    double value = 0;
    for (size_t i = 0; i < count; i++) {
        const double at = knob_at(&requests[i], which);
        if ((at < range->least || at > range->most) && !outside++) value = at;
    }
    if (outside)
        text_list_add(warnings,
                      "extrapolation: %s %.0f is outside %.0f..%.0f, the range of the fitted data (%zu of %zu "
                      "requests)",
                      ESTIMATE_KNOBS[which].name, value, range->least, range->most, outside, count);
}
/* Warns about requests outside the model's data (once for each knob), stages that the model lacks, pruning that is not
 * in the data, and predictions below 0 ms. */
static void warn_of_ranges(const struct estimator *estimator, const vp_latency_request *requests,
                           const struct prediction *predictions, size_t count, struct text_list *warnings) {
    for (int k = 0; k < knob_count_of(estimator->model.features); k++) {
        /* only the features of VP_LATENCY_SEED use these knobs */
        if ((k == FEATURE_TEXT || k == FEATURE_TIER) && estimator->model.features != VP_LATENCY_SEED) continue;
        range_warn(k, &estimator->ranges[k], requests, count, warnings);
    }
    for (size_t i = 0; i < count && !estimator->knows_pruning; i++) {
        if (!requests[i].dropped_tokens) continue;
        text_list_add(warnings, "the fitted data contain no pruned rows: prefill and decode are predicted for the "
                                "shorter sequence, without the cost of choosing the tokens");
        break;
    }
    for (int stage = 0; stage < VP_LATENCY_STAGE_COUNT; stage++) {
        size_t negative = 0;
        for (size_t i = 0; i < count && predictions; i++) negative += predictions[i].value[stage] < 0;
        if (!estimator->model.fitted[stage])
            text_list_add(warnings, "%s is not in the model, so the total does not include it", part_name(stage));
        if (negative)
            text_list_add(warnings, "%s: below 0 ms in %zu of %zu requests: a model of this kind can predict "
                                    "impossible times", part_name(stage), negative, count);
    }
}
static void write_prediction(struct document *document, const vp_latency_request *request, const char *size,
                             const struct prediction *prediction, double budget) {
    char experts[48] = "", weights[32] = "", pruned[80] = "";
    if (request->weight_bits) snprintf(weights, sizeof weights, ", weights of %d bits", request->weight_bits);
    if (request->dropped_tokens)
        snprintf(pruned, sizeof pruned, ", of which %d are kept (%.4g blocks process all of them)",
                 request->vision_tokens - request->dropped_tokens, request->full_blocks);
    if (request->expert_count)
        snprintf(experts, sizeof experts, "top_k %d of %d, ", request->top_k, request->expert_count);
    document_text(document, BLOCK_HEADING,
                  "%s: %s ms; %s%s%d views, %d vision tokens%s, %d text tokens, sequence %d, %s%d blocks, "
                  "%d output tokens%s",
                  part_name(ESTIMATE_TOTAL),
                  number_measured(prediction->value[ESTIMATE_TOTAL], prediction->low[ESTIMATE_TOTAL],
                                  prediction->high[ESTIMATE_TOTAL]).text,
                  size, size[0] ? ": " : "", request->views, request->vision_tokens, pruned, request->text_tokens,
                  request->sequence, experts, request->active_blocks, request->output_tokens, weights);
    prediction_describe(document, prediction, budget);
}
static void put_prediction(vp_json_writer *writer, const vp_latency_request *request,
                           const char (*own_names)[KNOB_TEXT_BYTES], const char *size,
                           const struct prediction *prediction, double budget) {
    PUT(writer, KEY_OBJECT(NULL), KEY("size", size[0] ? size : NULL));
    for (int k = 0; k < (request->weight_bits ? ESTIMATE_KNOB_COUNT : FEATURE_WEIGHT_BITS); k++)
        PUT(writer, KEY(ESTIMATE_KNOBS[k].name, knob_at(request, k)));
    for (int i = 0; i < request->own_count; i++) PUT(writer, KEY(own_names[i], request->own[i]));
    if (request->dropped_tokens)
        PUT(writer, KEY("kept_vision_tokens", request->vision_tokens - request->dropped_tokens),
            KEY("num_full_blocks", request->full_blocks));
    prediction_put(writer, prediction, budget);
    PUT(writer, END_OBJECT);
}
static int print_predictions_json(const struct estimator *estimator, const struct asked *asked,
                                  const struct text_list *warnings) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-prediction-1"),
        KEY("location", ESTIMATE_LOCATION), KEY("model", estimator->model_name),
        KEY("device", estimator->device), KEY_TEXTS("warnings", warnings), KEY_ARRAY("predictions"));
    for (size_t i = 0; i < asked->count; i++)
        put_prediction(&writer, &asked->requests[i], estimator->own_names, asked->sizes[i], &asked->predictions[i],
                       asked->budget);
    PUT(&writer, END_ARRAY, END_OBJECT);
    return json_end(&writer);
}
/* The counts are before full_blocks without gaps; padding follows them. */
static int is_same_request(const vp_latency_request *a, const vp_latency_request *b) {
    int is_same = !memcmp(&a->views, &b->views, offsetof(vp_latency_request, dropped_tokens) + sizeof a->dropped_tokens)
                  && a->full_blocks == b->full_blocks;
    for (int i = 0; i < VP_LATENCY_OWN; i++) is_same &= a->own[i] == b->own[i];
    return is_same;
}
static int print_predictions(const struct asked *asked, const struct text_list *warnings) {
    struct document document = {NULL, 0, NULL};
    for (size_t i = 0; i < asked->count; i++) {
        size_t same = 0;
        while (!is_same_request(&asked->requests[same], &asked->requests[i])) same++;
        if (same == i)
            write_prediction(&document, &asked->requests[i], asked->sizes[i], &asked->predictions[i], asked->budget);
        else
            document_text(&document, BLOCK_LINE, "%s: the same request as %s, so the same prediction", asked->sizes[i],
                          asked->sizes[same]);
    }
    if (asked->medians.bytes)
        document_text(&document, BLOCK_LINE, "not given; the fitted data's medians are used: %s", asked->medians.data);
    document_list(&document, "Warnings", warnings);
    return print_document(&document);
}
/* A count from the command line or, by default, the median of the model's data. */
static int32_t knob_of(const struct options *options, const struct estimator *estimator, int knob) {
    return is_given(options, ESTIMATE_KNOBS[knob].name) ? (int32_t)number_of(options, ESTIMATE_KNOBS[knob].name)
                                                        : (int32_t)estimator->ranges[knob].median;
}
/* Sets *bits to the bits of --weights, or to the median of the model's data; 0 if the model has only one kind of
 * weights. Returns 0 or an exit code. */
static int weight_bits_of(const struct options *options, const struct estimator *estimator, int32_t *bits) {
    const char *name = text_of(options, "weights");
    *bits = 0;
    if (estimator->model.features == VP_LATENCY_WEIGHTS) {
        *bits = (int32_t)(name ? (double)weight_bits(name) : estimator->ranges[FEATURE_WEIGHT_BITS].median);
        return 0;
    }
    if (!name || (estimator->weights && !strcmp(estimator->weights, name))) return 0;
    return complain(EXIT_USAGE, "--weights %s: the model was fitted to only %s weights; fit it to a sweep with "
                                "--weights_list", name, estimator->weights ? estimator->weights : "one kind of");
}
/* Sets the inputs of the files' own knobs; *said gets those that are not given. Returns 0 or an exit code. */
static int own_inputs(const struct options *options, const struct estimator *estimator, vp_latency_request *request,
                      struct text_buffer *said, struct text_list *warnings) {
    const struct option_value *given = opt(options, "knob");
    for (size_t k = 0; k < given->count; k++) {
        size_t i = 0, bytes = strcspn(given->items[k], "=");
        while (i < estimator->own.count && (strncmp(estimator->own.items[i].name, given->items[k], bytes) != 0
                                            || estimator->own.items[i].name[bytes] || !given->items[k][bytes]))
            i++;
        if (i == estimator->own.count)
            return complain(EXIT_USAGE, "--knob %.100s: the model has no such knob; expected NAME=VALUE with a knob "
                            "from the files it was fitted to", given->items[k]);
    }
    for (size_t i = 0; i < estimator->own.count; i++) {
        const struct own_knob *knob = &estimator->own.items[i];
        const size_t bytes = strlen(knob->name);
        char text[200], name[KNOB_TEXT_BYTES];
        const char *value = NULL;
        for (size_t k = 0; k < given->count; k++)
            if (!strncmp(given->items[k], knob->name, bytes) && given->items[k][bytes] == '=')
                value = given->items[k] + bytes + 1;
        if (value) {
            snprintf(text, sizeof text, "\"%.190s\"", value);
            if (own_knob_add(knob, value, request) || own_knob_add(knob, text, request)) {
                const double number = request->own[request->own_count - 1];
                if (!knob->values.count && (number < knob->range.least || number > knob->range.most)
                    && warnings)
                    text_list_add(warnings, "extrapolation: %s %s is outside %.15g..%.15g, the range of the fitted "
                                            "data", knob->name, value, knob->range.least, knob->range.most);
                continue;
            }
            return complain(EXIT_USAGE, "--knob %.60s=%.100s: %s", knob->name, value,
                            knob->values.count ? "no file that the model was fitted to has this value"
                                               : "not a number");
        }
        snprintf(text, sizeof text, "%.15g", knob->range.median);
        own_knob_add(knob, knob->values.count ? knob->values.items[0] : text, request);
        text_add_string(said, said->bytes ? ", " : "");
        text_add_string(said, own_value_text(knob, knob->values.count ? knob->values.items[0] : text, " ", name));
    }
    return 0;
}
/* Sets the request of an image size. Returns 0 or an exit code. */
static int predict_size(const struct options *options, const vp_tile_options *tiles, const char *text,
                        vp_latency_request *request, char size[SIZE_BYTES]) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_geometry geometry = vp_geometry_default();
    int32_t width = 0, height = 0;
    vp_layout layout;
    vp_result result;
    if (read_size("", text, &width, &height)) return EXIT_USAGE;
    if ((result = vp_layout_compute(&geometry, tiles, width, height, &layout, &error)) != VP_OK)
        return complain_result(EXIT_USAGE, text, result, &error);
    snprintf(size, SIZE_BYTES, "%dx%d%s%s", width, height, tiles->rule == VP_TILE_TIER ? " " : "",
             tiles->rule == VP_TILE_TIER ? tiles->tier->name : "");
    for (int32_t i = 0; text_of(options, "tier") && vp_tier_at(i); i++)
        if (!strcmp(vp_tier_at(i)->name, text_of(options, "tier"))) request->tier_index = i;
    request->views = layout.views;
    request->vision_tokens = layout.feature_tokens;
    request->sequence = 1 + layout.image_tokens + request->text_tokens;
    return 0;
}
/* Sets the request from --views, --vision_tokens and --sequence. Returns 0 or an exit code. */
static int predict_counts(const struct options *options, vp_latency_request *request) {
    request->views = (int32_t)number_of(options, "views");
    request->vision_tokens = is_given(options, "vision_tokens") ? (int32_t)number_of(options, "vision_tokens") : 0;
    if (!is_given(options, "views"))
        return complain(EXIT_USAGE, "predict needs a request: sizes like 640x480, or --views N (0: text only)");
    if (is_given(options, "tier") || is_given(options, "crops") || is_given(options, "max_crops")
        || is_given(options, "preprocess"))
        return complain(EXIT_USAGE,
                        "predict: --tier, --crops, --max_crops and --preprocess are only for sizes like 640x480");
    if (request->views && !(is_given(options, "vision_tokens") && is_given(options, "sequence")))
        return complain(EXIT_USAGE, "predict: --views %d needs --%s", request->views,
                        is_given(options, "vision_tokens") ? "sequence" : "vision_tokens");
    if (!request->views && request->vision_tokens)
        return complain(EXIT_USAGE, "predict: --vision_tokens %d needs --views", request->vision_tokens);
    request->sequence =
        is_given(options, "sequence") ? (int32_t)number_of(options, "sequence") : 1 + request->text_tokens;
    if (request->vision_tokens >= request->sequence)
        return complain(EXIT_USAGE, "predict: %d vision tokens do not fit in a sequence of %d",
                        request->vision_tokens, request->sequence);
    return 0;
}
/* Sets the tokens that --prune drops. Returns 0 or an exit code. */
static int predict_pruned(const char *value, vp_latency_request *request) {
    const struct prune_counts counts = {request->views, request->vision_tokens, request->sequence,
                                        request->active_blocks};
    struct prune_setting setting;
    vp_pruned pruned;
    char reason[LINE_BYTES];
    if (!prune_read(value, &setting, reason, sizeof reason)
        || !prune_forecast(&setting, &counts, &pruned, reason, sizeof reason))
        return complain(EXIT_USAGE, "--prune: %s", reason);
    request->dropped_tokens = pruned.image_tokens - pruned.kept_tokens;
    if (request->dropped_tokens)
        request->full_blocks =
            request->active_blocks * (pruned.mean_image_tokens - pruned.kept_tokens) / request->dropped_tokens;
    return 0;
}
/* Predicts all requests of the command line and prints them. Returns 0 or an exit code. */
static int predict_requests(const struct options *options, const struct estimator *estimator) {
    const int has_sizes = options->operand_count > 1;
    const size_t count = has_sizes ? options->operand_count - 1 : 1;
    struct asked asked = {count, zeroed(count, sizeof *asked.requests), zeroed(count, sizeof *asked.sizes),
                          zeroed(count, sizeof *asked.predictions),
                          is_given(options, "budget_ms") ? opt(options, "budget_ms")->real : (double)NAN,
                          {NULL, 0, 0}};
    static const int counts[] = {FEATURE_TEXT, FEATURE_EXPERTS, FEATURE_ACTIVE, FEATURE_OUTPUT};
    struct text_list warnings = {NULL, 0};
    struct text_buffer ignored = {NULL, 0, 0};
    vp_tile_options tiles;
    int code = 0;
    if (has_sizes && (is_given(options, "views") || is_given(options, "sequence")))
        code = complain(EXIT_USAGE, "predict: --views and --sequence are only for requests without a size");
    const char *kind = estimator->architecture ? estimator->architecture : estimator->model_name;
    if (!code && has_sizes && kind && !strstr(kind, "olmo") && (estimator->architecture || vp_family_find(kind)))
        code = complain(EXIT_USAGE, "predict: sizes are tiled by Molmo's rule, but this model is %s: give --views, "
                        "--vision_tokens and --sequence, as counted by vlmprof tile --family", kind);
    if (!code && has_sizes) code = tile_options_of(options, &tiles);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!is_given(options, ESTIMATE_KNOBS[counts[i]].name)
            && (counts[i] != FEATURE_EXPERTS || estimator->expert_count))
            text_add_format(&asked.medians, "%s%s %d", asked.medians.bytes ? ", " : "", ESTIMATE_KNOBS[counts[i]].name,
                            knob_of(options, estimator, counts[i]));
    for (size_t i = 0; i < count && !code; i++) {
        vp_latency_request *request = &asked.requests[i];
        request->text_tokens = knob_of(options, estimator, FEATURE_TEXT);
        request->output_tokens = knob_of(options, estimator, FEATURE_OUTPUT);
        request->top_k = knob_of(options, estimator, FEATURE_EXPERTS);
        request->active_blocks = knob_of(options, estimator, FEATURE_ACTIVE);
        request->expert_count = (int32_t)estimator->expert_count;
        code = weight_bits_of(options, estimator, &request->weight_bits);
        if (!code) code = own_inputs(options, estimator, request, i ? &ignored : &asked.medians, i ? NULL : &warnings);
        if (!code && request->top_k > request->expert_count)
            code = complain(EXIT_USAGE, "--top_k: %d is more than the model's %d experts", request->top_k,
                            request->expert_count);
        if (!code)
            code = has_sizes ? predict_size(options, &tiles, options->operands[i + 1], request, asked.sizes[i])
                             : predict_counts(options, request);
        if (!code && is_given(options, "prune")) code = predict_pruned(text_of(options, "prune"), request);
        if (!code && !can_predict_request(estimator, request, &asked.predictions[i]))
            code = complain(EXIT_USAGE, "predict: a count in the request is out of range");
    }
    if (!code) {
        for (size_t i = 0; i < estimator->warnings.count; i++) /* those that concern every prediction */
            if (strstr(estimator->warnings.items[i], NOISE_WARNING)
                || strstr(estimator->warnings.items[i], ERRORS_FAR_OFF))
                text_list_add(&warnings, "the model's fit: %s", estimator->warnings.items[i]);
        warn_of_ranges(estimator, asked.requests, asked.predictions, count, &warnings);
        code = is_given(options, "json") ? print_predictions_json(estimator, &asked, &warnings)
                                         : print_predictions(&asked, &warnings);
    }
    text_list_free(&warnings);
    FREE_ALL(ignored.data, asked.medians.data, asked.requests, asked.sizes, asked.predictions);
    return code;
}

/* ---- --data: the model's errors on measurements */
/* The errors of each stage and of the total, and the share of measurements inside the predicted intervals. */
struct trial_errors { struct part_errors errors[ESTIMATE_PARTS]; double inside[ESTIMATE_PARTS]; };
/* Predicts all measurements and compares. */
static void try_model(const struct estimator *estimator, const struct measurements *measurements,
                      struct trial_errors *errors) {
    double *predicted = resize(NULL, measurements->count, ESTIMATE_PARTS * sizeof *predicted);
    size_t inside[ESTIMATE_PARTS] = {0};
    estimator_predict_rows(&estimator->model, measurements, predicted);
    add_totals(measurements, predicted);
    errors_of(measurements, predicted, errors->errors);
    for (size_t i = 0; i < measurements->count; i++) {
        struct prediction prediction;
        if (!can_predict_request(estimator, &measurements->requests[i], &prediction)) continue;
        for (int part = 0; part < ESTIMATE_PARTS; part++) {
            double measurement = measured_part(measurements, part, i);
            inside[part] += isfinite(predicted[(size_t)part * measurements->count + i])
                            && measurement >= prediction.low[part] && measurement <= prediction.high[part];
        }
    }
    for (int part = 0; part < ESTIMATE_PARTS; part++)
        errors->inside[part] =
            errors->errors[part].of.count ? (double)inside[part] / (double)errors->errors[part].of.count : (double)NAN;
    free(predicted);
}
static void write_trial(struct document *document, const char *heading, const struct trial_errors *errors) {
    document_text(document, BLOCK_HEADING, "%s", heading);
    struct text_list *table = document_table(document, "stage|" ERROR_COLUMNS "|within 95 % interval %");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        error_row(table, part_name(part), NULL, &errors->errors[part]);
        text_list_add(table, "%s", number_percent(errors->inside[part]).text);
    }
}
static void put_trial(vp_json_writer *writer, const char *key, const struct trial_errors *errors) {
    PUT(writer, KEY_OBJECT(key));
    vp_json_key(writer, "errors");
    parts_put(writer, errors->errors);
    PUT(writer, KEY_OBJECT("share_within_intervals"));
    for (int part = 0; part < ESTIMATE_PARTS; part++) PUT(writer, KEY(part_name(part), errors->inside[part]));
    PUT(writer, END_OBJECT, END_OBJECT);
}
/* Warns if the measurements are of another device or model, or outside the model's data. */
static void warn_of_target(const struct estimator *estimator, const struct measurements *measurements,
                           struct text_list *warnings) {
    if (strcmp(estimator->device, measurements->device))
        text_list_add(warnings, "the model is for %s; the files are from %s", estimator->device, measurements->device);
    if (strcmp(estimator->model_name, measurements->model))
        text_list_add(warnings, "the model is for %s; the files are from %s, which has different weights and shapes",
                      estimator->model_name, measurements->model);
    if (estimator->weights && measurements->weights
        && (measurements->weights_vary || strcmp(estimator->weights, measurements->weights)))
        text_list_add(warnings, "the model is for %s weights, but these files have %s", estimator->weights,
                      measurements->weights_vary ? "several" : measurements->weights);
    warn_of_ranges(estimator, measurements->requests, NULL, measurements->count, warnings);
}
/* --data: prints the model's errors on measurements. Returns 0 or an exit code. */
static int predict_files(const struct options *options, const struct estimator *estimator,
                         const struct measurements *measurements, const struct text_list *warnings) {
    struct trial_errors errors;
    struct document document = {NULL, 0, NULL};
    try_model(estimator, measurements, &errors);
    if (is_given(options, "json")) {
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
        PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-prediction-1"),
            KEY("location", ESTIMATE_LOCATION), KEY("model", estimator->model_name),
            KEY("device", estimator->device), KEY("measured_on", measurements->device),
            KEY_TEXTS("warnings", warnings));
        put_trial(&writer, "measured", &errors);
        PUT(&writer, END_OBJECT);
        return json_end(&writer);
    }
    write_trial(&document, "Predictions against measurements", &errors);
    document_list(&document, "Warnings", warnings);
    return print_document(&document);
}

static int check_predict_options(const struct options *options) {
    if (!options->operand_count)
        return complain(EXIT_USAGE, "predict needs a model from vlmprof fit; see vlmprof predict --help");
    if (is_given(options, "data") && options->operand_count > 1)
        return complain(EXIT_USAGE, "predict: sizes cannot be used together with --data");
    return 0;
}
static int read_model(const char *path, struct estimator **estimator) {
    struct model_reader reader;
    int code = model_open(&reader, path, ESTIMATOR_SCHEMA);
    if (!code) code = estimator_read(&reader, estimator);
    model_close(&reader);
    return code;
}
static int run_command(const struct options *options) {
    struct estimator *estimator = NULL;
    struct measurements measurements;
    struct results results;
    struct text_list warnings = {NULL, 0};
    const char *folder = text_of(options, "data");
    int code;
    if ((code = check_predict_options(options)) != 0) return code;
    if ((code = read_model(options->operands[0], &estimator)) != 0) return code;
    if (!folder) code = predict_requests(options, estimator);
    else if ((code = results_read(&results, &folder, 1)) == 0) {
        int64_t experts = estimator->expert_count;
        if ((code = measurements_make(0, &results, &experts, &estimator->own, &measurements, &warnings)) == 0) {
            warn_of_target(estimator, &measurements, &warnings);
            code = predict_files(options, estimator, &measurements, &warnings);
        }
        measurements_free(&measurements);
        results_free(&results);
    }
    text_list_free(&warnings);
    estimator_free(estimator);
    return code;
}

const struct command command_predict = {
    "predict", "MODEL.json (WxH... | --views N | --data DIR)",
    "predict mean latencies, with intervals, for requests that were not measured; check the model on other files",
    "vlmprof predict model.json 640x480 1280x720 --tier medium --top_k 4 --output_tokens 16 --budget_ms 250\n"
    "  vlmprof predict model.json --data other-results",
    SIZE_MAX, COMMAND_OPTIONS(PREDICT_OPTIONS), NULL, run_command};
