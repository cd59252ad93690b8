/* server_law.h: models the cost of requests to a server (E3 from outside): fits the model, tests it on unseen requests,
 * writes and reads it. TTFT is linear in the tokens of the image, the tokens of the text and the bytes of the image.
 * The time per token (TPOT) is linear in the tokens of the prompt. E2E is TTFT + (output tokens - 1) TPOT. Each server
 * and model has its own latency model. Image sizes and members of the request matter only through the tokens. */
#ifndef VLMPROF_CLI_SERVER_LAW_H
#define VLMPROF_CLI_SERVER_LAW_H
#include "report/latency_model.h"

#define SERVER_LAWS_SCHEMA "vlmprof-estimator-server-1"

/* The first two have their own lines; E2E is made from them. */
enum { LAW_TTFT, LAW_PER_TOKEN, LAW_LINES, LAW_TOTAL = LAW_LINES, LAW_PARTS };

enum { LAW_COLUMNS = 4 };
enum { LAW_KIND, LAW_MEAN, LAW_KINDS };        /* the latency model, and the baseline: the mean of the rows */
enum { LAW_IN_SAMPLE, LAW_CONFIG_OUT, LAW_PROMPT_OUT, LAW_SPLITS };

/* The source of an image's token count. LAW_OF_PROMPT: no source, so text and image tokens cost the same. */
enum { LAW_OF_USAGE, LAW_OF_RULE, LAW_OF_PROMPT, LAW_SOURCES };

struct law_request {
    double image_tokens, text_tokens, prompt_tokens, image_bytes, output_tokens;
}; /* NaN if unknown */
enum { LAW_IMAGE_TOKENS, LAW_TEXT_TOKENS, LAW_PROMPT_TOKENS, LAW_IMAGE_BYTES, LAW_OUTPUT_TOKENS, LAW_NUMBERS };
extern const struct model_form LAW_FORM;

struct server_law {
    char *endpoint, *model;
    int source;                               /* LAW_OF_* */
    int has_bytes;                            /* 1 if TTFT has a cost per byte */
    int64_t rows, configs;
    int fitted[LAW_LINES];
    vp_linear line[LAW_LINES];
    int has_image;                            /* 1 if twins of the images were measured: */
    vp_linear image;                          /* the cost of an image from outside, linear in its tokens */
    vp_latency_limits limits[LAW_PARTS];      /* limits from held-out ratios; count is 0 with too few rows */
    int limits_split;                         /* LAW_CONFIG_OUT or LAW_PROMPT_OUT: what was held out */
    struct number_range ranges[LAW_NUMBERS];
    struct part_errors errors[LAW_KINDS][LAW_SPLITS][LAW_PARTS]; /* only after law_fit */
    double noise;                             /* the noise of struct evaluation */
    struct text_list warnings;
};
struct server_laws { struct server_law *items; size_t count; };

/* Fits a latency model to each server and model in the files, which must all be from servers. Returns 0 or an exit code
 * after a message; call server_laws_free in both cases. */
int server_laws_fit(const struct results *results, struct server_laws *laws);
void server_laws_free(struct server_laws *laws);

/* Returns 1 and sets *request if the file is from the latency model's server and model, and the row has everything that
 * the latency model needs. */
int law_is_of(const struct server_law *law, const struct result_file *file);
int law_request_of(const struct server_law *law, const struct result_file *file, size_t row,
                   struct law_request *request);

/* Writes members of the open object, and the document with errors and coefficients. */
void server_laws_put(vp_json_writer *writer, const struct server_laws *laws);
void server_laws_describe(struct document *document, const struct server_laws *laws);

/* Reads the output of server_laws_put. Returns 0 or an exit code after a message; frees nothing in either case. */
int server_laws_read(struct model_reader *reader, struct server_laws *laws);

/* NaN if the latency model does not have the part, or if there is no interval. */
void law_predict(const struct server_law *law, const struct law_request *request, struct prediction *prediction);

/* Computes the mean cost of a request, in ms: the image before the language model, by twins or by the extra cost of its
 * tokens over text tokens; the rest of TTFT; and a decode step. image_ms is the cost of an image; if NaN, it comes from
 * the latency model. A result is NaN if the latency model does not have the part, or if it would be below 0. */
struct law_stages { vp_estimate image, prefill, step; };
struct law_stages law_stages_of(const struct server_law *law, const struct law_request *request, vp_estimate image_ms);

/* Warns about requests outside the data of the latency model. */
void law_warn(const struct server_law *law, const struct law_request *requests, size_t count,
              struct text_list *warnings);

#endif
