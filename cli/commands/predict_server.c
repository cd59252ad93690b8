/* predict_server.c: predicts the latency of requests to a server with the latency models of `vlmprof fit`. Requests are
 * given as sizes with --family, or as counts. TTFT, TPOT and E2E are printed with intervals, as text or JSON. */
#include "commands/predict_server.h"
#include "commands/predict_workers.h"

#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "results/result_read.h"
#include "tile/family.h"
#include "tile/tile_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SERVER_ONLY[] = "family image_bytes rate workers encoder_ms busy_percent decode_batch";
static const char ENGINE_ONLY[] =
    "views preprocess tier crops top_k num_active_blocks weights prune recalibrate measurements seed output";
int predict_server_check(const struct options *options, int is_server) {
    for (size_t i = 0; i < options->command->option_count; i++) {
        const char *name = options->command->options[i].name;
        if (!options->values[i].given) continue;
        if (is_server && has_word(ENGINE_ONLY, name))
            return complain(EXIT_USAGE, "predict: --%s is only for models of vlmprof's engine; %s describes a "
                                        "server", name,
                            options->operands[0]);
        if (!is_server && has_word(SERVER_ONLY, name))
            return complain(EXIT_USAGE, "predict: --%s is only for models of servers; %s describes vlmprof's "
                                        "engine", name,
                            options->operands[0]);
    }
    return is_server && is_given(options, "max_crops") && !is_given(options, "family")
               ? complain(EXIT_USAGE, "predict: a model fitted to a server needs --family NAME with --max_crops")
               : 0;
}
/* A count from the command line; NaN if it was not given. */
static double count_of(const struct options *options, const char *name) {
    return is_given(options, name) ? (double)number_of(options, name) : (double)NAN;
}
/* Counts the tokens of an image of this size by the family's rule. Returns 0 or an exit code. */
static int count_size(const struct options *options, const char *text, double *tokens) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_family *family = resize(NULL, 1, sizeof *family);
    int32_t width = 0, height = 0;
    vp_vision_count count;
    int code = read_size("", text, &width, &height);
    if (!code && !is_given(options, "family"))
        code = complain(EXIT_USAGE,
                        "predict: %s: to count its tokens, --family NAME is needed; alternatively, give "
                        "--vision_tokens N", text);
    if (!code) code = family_by_name("family", text_of(options, "family"), family);
    if (!code) code = family_set_keys(options, family, 1);
    if (!code) {
        const vp_result result = vp_family_count(family, width, height, &count, &error);
        if (result != VP_OK) code = complain_result(EXIT_USAGE, text, result, &error);
        else *tokens = (double)count.total_tokens;
    }
    free(family);
    return code;
}
/* Completes a request from the latency model's data. Returns 0 or an exit code. */
static int complete_request(const struct server_law *law, struct law_request *request) {
    if (isnan(request->output_tokens)) request->output_tokens = law->ranges[LAW_OUTPUT_TOKENS].median;
    if (isnan(request->output_tokens)) /* the count is unknown */
        return complain(EXIT_USAGE,
                        "predict: the latency model does not contain answer lengths: give --output_tokens");
    if (isnan(request->image_bytes))
        request->image_bytes = request->image_tokens <= 0 ? 0 : law->ranges[LAW_IMAGE_BYTES].median;
    if (law->source != LAW_OF_PROMPT) {
        if (isnan(request->image_tokens))
            return complain(EXIT_USAGE, "predict needs a request: sizes like 640x480 with --family NAME, or "
                                        "--vision_tokens N (0: text only)");
        if (isnan(request->text_tokens)) request->text_tokens = request->prompt_tokens - request->image_tokens;
        if (isnan(request->text_tokens)) request->text_tokens = law->ranges[LAW_TEXT_TOKENS].median;
    }
    if (isnan(request->prompt_tokens)) request->prompt_tokens = request->image_tokens + request->text_tokens;
    if (isnan(request->prompt_tokens))
        return complain(EXIT_USAGE, "predict: image and text tokens have the same cost in this latency model: give "
                                    "--sequence N (all prompt tokens), or both --vision_tokens and --text_tokens");
    if (request->text_tokens < 0
        || (isfinite(request->text_tokens) && isfinite(request->image_tokens)
            && !(fabs(request->image_tokens + request->text_tokens - request->prompt_tokens) <= 0)))
        return complain(EXIT_USAGE, "predict: --sequence is not the sum of image and text tokens");
    return 0;
}

/* "1024", or "?" if the count is unknown. */
static const char *count_text(double count, char out[24]) {
    if (isfinite(count)) snprintf(out, 24, "%.0f", count); else snprintf(out, 24, "?");
    return out;
}
static void write_request(struct document *document, const char *size, const struct law_request *request,
                          const struct prediction *prediction, double budget) {
    char image[24], text[24], prompt[24], output[24];
    document_text(document, BLOCK_HEADING,
                  "%s: %s ms; %s%s%s image tokens, %s text tokens, %s prompt tokens, %s output tokens",
                  LAW_FORM.part_name(LAW_TOTAL),
                  number_measured(prediction->value[LAW_TOTAL], prediction->low[LAW_TOTAL],
                                  prediction->high[LAW_TOTAL]).text,
                  size ? size : "", size ? ": " : "", count_text(request->image_tokens, image),
                  count_text(request->text_tokens, text), count_text(request->prompt_tokens, prompt),
                  count_text(request->output_tokens, output));
    prediction_describe(document, &LAW_FORM, prediction, budget);
}
/* Writes the time of a request under load: the latency model plus the additional wait. The interval is the wait's. */
static void write_load(struct document *document, const struct prediction *prediction,
                       const struct load_wait *wait) {
    struct text_list *table;
    document_text(document, BLOCK_LINE,
                  "at %g requests per second: the latency model's prediction plus the additional wait, interpolated "
                  "between the measured rates; the interval is for the wait",
                  wait->rate);
    table = document_table(document, "time since due|ms|95 % interval");
    for (int part = 0; part < WAIT_PARTS; part++)
        for (int p = 0; p < WAIT_PERCENTILES; p++) {
            const double law = prediction->value[part == WAIT_TTFT ? LAW_TTFT : LAW_TOTAL];
            const struct wait_value *value = &wait->of[part][p];
            text_list_add(table, "%s", WAIT_NAMES[part][p]);
            estimate_cells(table, (vp_estimate){law + value->value, law + value->low, law + value->high});
        }
}
static void put_load(vp_json_writer *writer, const struct prediction *prediction, const struct load_wait *wait) {
    static const char *const keys[WAIT_PARTS][WAIT_PERCENTILES] = {{"TTFT_p50", "TTFT_p95"},
                                                                   {"T_total_p50", "T_total_p95"}};
    PUT(writer, KEY_OBJECT("under_load"), KEY("request_rate", wait->rate));
    for (int part = 0; part < WAIT_PARTS; part++)
        for (int p = 0; p < WAIT_PERCENTILES; p++) {
            const double law = prediction->value[part == WAIT_TTFT ? LAW_TTFT : LAW_TOTAL];
            const struct wait_value *value = &wait->of[part][p];
            PUT(writer, KEY_OBJECT(keys[part][p]), KEY("ms", law + value->value),
                KEY_RANGE("interval_ms", law + value->low, law + value->high), END_OBJECT);
        }
    PUT(writer, END_OBJECT);
}
static void put_request(vp_json_writer *writer, const char *size, const struct law_request *request,
                        const struct prediction *prediction, double budget, const struct load_wait *wait) {
    PUT(writer, KEY_OBJECT(NULL), KEY("size", size));
    for (int which = 0; which < LAW_NUMBERS; which++)
        PUT(writer, KEY(LAW_FORM.numbers[which].name, form_number(&LAW_FORM, request, which)));
    prediction_put(writer, &LAW_FORM, prediction, budget);
    if (wait) put_load(writer, prediction, wait); else PUT(writer, KEY_NULL("under_load"));
    PUT(writer, END_OBJECT);
}
/* The requests of the command line: sizes, or one request given by counts. rate is NaN for one request at a time. */
struct asked {
    struct law_request *requests; size_t count;
    double budget, rate;
    int has_workers; struct worker_options workers;
};
/* Adds the predictions of one latency model to the document or the JSON. Returns 0 or an exit code. */
static int predict_law(const struct options *options, const struct server_law *law, const struct asked *asked,
                       const struct load_wait *wait, struct document *document, vp_json_writer *writer) {
    struct law_request *requests = resize(NULL, asked->count, sizeof *requests);
    struct text_list warnings = {NULL, 0};
    int code = 0;
    memcpy(requests, asked->requests, asked->count * sizeof *requests);
    for (size_t i = 0; i < asked->count && !code; i++) code = complete_request(law, &requests[i]);
    if (!code) law_warn(law, requests, asked->count, &warnings);
    if (!code && writer) {
        PUT(writer, KEY_OBJECT(NULL), KEY("endpoint", law->endpoint), KEY("endpoint_model", law->model),
            KEY_TEXTS("warnings", &warnings), KEY_ARRAY("predictions"));
    } else if (!code) document_text(document, BLOCK_HEADING, "%s at %s", law->model, law->endpoint);
    for (size_t i = 0; i < asked->count && !code; i++) {
        const char *size = options->operand_count > 1 ? options->operands[i + 1] : NULL;
        struct prediction prediction;
        law_predict(law, &requests[i], &prediction);
        if (writer) put_request(writer, size, &requests[i], &prediction, asked->budget, wait);
        else write_request(document, size, &requests[i], &prediction, asked->budget);
        if (!writer && wait) write_load(document, &prediction, wait);
    }
    if (!code && writer) PUT(writer, END_ARRAY);
    if (!code && asked->has_workers)
        code = predict_workers(&asked->workers, law, requests, asked->count, document, writer);
    if (!code && !writer) document_list(document, "Warnings", &warnings);
    if (!code && writer) PUT(writer, END_OBJECT);
    text_list_free(&warnings);
    free(requests);
    return code;
}
/* Prints a document, or the JSON in `out`. */
static int print_asked(const struct options *options, const struct server_laws *laws, const struct load_laws *loads,
                       const struct asked *asked) {
    struct document document = {NULL, 0, NULL};
    struct text_buffer out = {NULL, 0, 0};
    const int is_json = is_given(options, "json");
    vp_json_writer writer;
    int code = 0;
    vp_json_writer_init_sink(&writer, text_sink, &out, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-prediction-server-1"), KEY("location", ESTIMATE_LOCATION),
        KEY_ARRAY("laws"));
    for (size_t i = 0; i < laws->count && !code; i++) {
        const int is_loaded = isfinite(asked->rate) && !asked->has_workers;
        struct load_wait wait;
        if (is_loaded) code = load_wait_at(loads, laws, i, asked->rate, &wait);
        if (!code)
            code = predict_law(options, &laws->items[i], asked, is_loaded ? &wait : NULL, &document,
                               is_json ? &writer : NULL);
    }
    PUT(&writer, END_ARRAY, END_OBJECT);
    if (vp_json_finish(&writer) != VP_OK) abort(); /* running out of memory ends the program before */
    text_add_string(&out, "\n");
    if (!code) code = is_json ? print_whole(&out) : print_document(&document);
    document_free(&document);
    free(out.data);
    return code;
}
int predict_server(const struct options *options, const struct server_laws *laws, const struct load_laws *loads) {
    const size_t count = options->operand_count > 1 ? options->operand_count - 1 : 1;
    struct asked asked = {zeroed(count, sizeof *asked.requests), count,
                          is_given(options, "budget_ms") ? opt(options, "budget_ms")->real : (double)NAN,
                          is_given(options, "rate") ? opt(options, "rate")->real : (double)NAN,
                          is_given(options, "workers"), {0, 0, 0, {0, 0, 0}}};
    int code = asked.has_workers ? worker_options_of(options, &asked.workers) : 0;
    if (!code && options->operand_count > 1 && is_given(options, "vision_tokens"))
        code = complain(EXIT_USAGE, "predict: --vision_tokens is only for a request without a size");
    if (!code && options->operand_count == 1 && is_given(options, "family"))
        code = complain(EXIT_USAGE, "predict: --family is only for sizes like 640x480");
    for (size_t i = 0; i < count && !code; i++) {
        struct law_request *request = &asked.requests[i];
        request->image_tokens = count_of(options, "vision_tokens");
        request->text_tokens = count_of(options, "text_tokens");
        request->prompt_tokens = count_of(options, "sequence");
        request->output_tokens = count_of(options, "output_tokens");
        request->image_bytes = count_of(options, "image_bytes");
        if (options->operand_count > 1) code = count_size(options, options->operands[i + 1], &request->image_tokens);
    }
    if (!code) code = print_asked(options, laws, loads, &asked);
    free(asked.requests);
    return code;
}

/* ---- --data */
/* The quality of a latency model's predictions. */
struct held_out {
    struct part_errors errors[LAW_PARTS];
    double width[LAW_PARTS];    /* median of (high - low) / value; NaN if no interval */
    double coverage[LAW_PARTS]; /* share of the rows within their interval */
    size_t rows, left_out;      /* left_out: rows without the inputs that the model needs */
};
/* The measured value, prediction and interval of a part, row by row. */
struct held_out_rows { double *values[4]; size_t count, capacity; };
enum { HELD_MEASURED, HELD_PREDICTED, HELD_LOW, HELD_HIGH, HELD_COUNT };
static void held_out_add(struct held_out_rows *rows, double measured, const struct prediction *prediction, int part) {
    const double values[HELD_COUNT] = {measured, prediction->value[part], prediction->low[part],
                                       prediction->high[part]};
    for (int i = 0; i < HELD_COUNT; i++) rows->values[i][rows->count] = values[i];
    rows->count++;
}
static void held_out_sum(const struct held_out_rows *rows, struct held_out *held, int part) {
    double *widths = resize(NULL, rows->count + 1, sizeof *widths);
    size_t known = 0, inside = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const double measured = rows->values[HELD_MEASURED][i], value = rows->values[HELD_PREDICTED][i],
                     low = rows->values[HELD_LOW][i], high = rows->values[HELD_HIGH][i];
        if (!isfinite(measured) || !isfinite(high - low) || !(value > 0)) continue;
        widths[known++] = (high - low) / value;
        inside += measured >= low && measured <= high;
    }
    part_errors_of(rows->values[HELD_MEASURED], rows->values[HELD_PREDICTED], rows->count, NULL, 0,
                   &held->errors[part]);
    held->coverage[part] = known ? (double)inside / (double)known : (double)NAN;
    held->width[part] = median_range_of(widths, known).median;
    free(widths);
}
static void hold_out(const struct server_law *law, const struct results *results, struct held_out *held) {
    static const int columns[LAW_PARTS] = {METRIC_TTFT, METRIC_PER_TOKEN, METRIC_TOTAL};
    struct held_out_rows rows[LAW_PARTS];
    size_t most = 1;
    memset(held, 0, sizeof *held);
    for (size_t i = 0; i < results->count; i++) most += results->files[i].count;
    for (int part = 0; part < LAW_PARTS; part++) {
        rows[part].count = 0;
        for (int i = 0; i < HELD_COUNT; i++) rows[part].values[i] = resize(NULL, most, sizeof(double));
    }
    for (size_t i = 0; i < results->count; i++)
        for (size_t row = 0; law_is_of(law, &results->files[i]) && row < results->files[i].count; row++) {
            struct law_request request;
            struct prediction prediction;
            if (!law_request_of(law, &results->files[i], row, &request)) { held->left_out++; continue; }
            law_predict(law, &request, &prediction);
            for (int part = 0; part < LAW_PARTS; part++) {
                const double measured = result_at(&results->files[i], columns[part], row);
                held_out_add(&rows[part], measured > 0 ? measured : (double)NAN, &prediction, part);
            }
            held->rows++;
        }
    for (int part = 0; part < LAW_PARTS; part++) {
        held_out_sum(&rows[part], held, part);
        for (int i = 0; i < HELD_COUNT; i++) free(rows[part].values[i]);
    }
}
static void write_held_out(struct document *document, const struct server_law *law, const struct held_out *held) {
    document_text(document, BLOCK_HEADING, "%s at %s: predictions compared with %zu "
                                           "measurements", law->model, law->endpoint,
                  held->rows);
    struct text_list *errors = document_table(document, "part|" ERROR_COLUMNS);
    for (int part = 0; part < LAW_PARTS; part++)
        error_row(errors, LAW_FORM.part_name(part), NULL, &held->errors[part]);
    struct text_list *intervals = document_table(document, "part|interval width, %|measurements inside, %");
    for (int part = 0; part < LAW_PARTS; part++)
        CELLS(intervals, LAW_FORM.part_name(part), number_percent(held->width[part]).text,
              number_percent(held->coverage[part]).text);
    document_text(document, BLOCK_LINE, "interval width: median of (high - low) / predicted, at %g %%",
                  100 * (double)MODEL_LEVEL);
    if (held->left_out)
        document_text(document, BLOCK_LINE, "%zu measurements without token counts are left out",
                      held->left_out);
}
static void put_held_out(vp_json_writer *writer, const struct server_law *law, const struct held_out *held) {
    PUT(writer, KEY_OBJECT(NULL), KEY("endpoint", law->endpoint), KEY("endpoint_model", law->model),
        KEY("rows", (int64_t)held->rows), KEY("rows_left_out", (int64_t)held->left_out));
    vp_json_key(writer, "errors");
    parts_put(writer, &LAW_FORM, held->errors);
    PUT(writer, KEY_OBJECT("intervals"));
    for (int part = 0; part < LAW_PARTS; part++)
        PUT(writer, KEY_OBJECT(LAW_FORM.part_key(part)), KEY("median_width_share", held->width[part]),
            KEY("coverage", held->coverage[part]), END_OBJECT);
    PUT(writer, END_OBJECT, END_OBJECT);
}
int predict_server_files(const struct options *options, const struct server_laws *laws) {
    const char *folder = text_of(options, "data");
    struct document document = {NULL, 0, NULL};
    struct results results;
    struct text_buffer out = {NULL, 0, 0};
    vp_json_writer writer;
    const int is_json = is_given(options, "json");
    size_t used = 0;
    int code = results_read(&results, &folder, 1);
    if (code) return code;
    vp_json_writer_init_sink(&writer, text_sink, &out, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-prediction-server-data-1"), KEY_ARRAY("laws"));
    for (size_t i = 0; i < laws->count; i++) {
        struct held_out held;
        hold_out(&laws->items[i], &results, &held);
        used += held.rows;
        if (!held.rows) continue;
        put_held_out(&writer, &laws->items[i], &held);
        write_held_out(&document, &laws->items[i], &held);
    }
    results_free(&results);
    PUT(&writer, END_ARRAY, END_OBJECT);
    if (vp_json_finish(&writer) != VP_OK) abort(); /* running out of memory ends the program before */
    text_add_string(&out, "\n");
    if (!used)
        code = complain(EXIT_INPUT, "predict: %s has no measurement with token counts of a server and model of %s",
                        folder, options->operands[0]);
    else code = is_json ? print_whole(&out) : print_document(&document);
    document_free(&document);
    free(out.data);
    return code;
}
