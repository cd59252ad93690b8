/* command_load.c: measures a server under load, with many requests at once or at given times, and the time from due to
 * done of each. The options become request bodies and a list of levels (rates, or numbers of concurrent requests). Each
 * level is one trial with one result file, written at its end. A level whose file exists is not measured again. */
#include "base/console.h"
#include "base/document.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "data/dataset.h"
#include "load/load_accuracy.h"
#include "load/load_bodies.h"
#include "load/load_client.h"
#include "load/load_export.h"
#include "load/load_result.h"
#include "load/load_run.h"
#include "load/load_search.h"
#include "load/load_stats.h"
#include "load/load_tables.h"
#include "measure/noise.h"
#include "measure/provenance.h"
#include "server/endpoint.h"
#include "server/knobs.h"
#include "tile/tile_options.h"
#include "vlmprof_file.h"
#include "vlmprof_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double DURATION_S = 60; /* duration of a trial */
enum { TRIALS_LEAST = 4 };           /* minimum number of trials in a search */
static const struct option_spec LOAD_OPTIONS[] = {
    OPTION_GROUP("input"),
    OPTION_ENDPOINT(1),
    OPTION_ENDPOINT_MODEL,
    OPTIONS_OF_CLIENT,
    {"data", TEXT, "FILE", NULL, 0, 0, NULL,
     "JSONL (id, image or images, question, answers, options, dataset a line), VQA v2's question file, or a folder of "
     "images with -p",
     .is_required = 1, .unless = "random_image random_prompt",
     .because = "images and questions; or --random_image WxH for made-up ones"},
    {"random_image", TEXT, "WxH", NULL, 0, 0, NULL,
     "instead of --data: generated pictures of this size, all different", .excludes = "data"},
    {"random_prompt", COUNT, "N", NULL, 1, 1000000, NULL,
     "instead of --data: generated prompts of N common words, about one token each (default with --random_image: 16); "
     "the server's usage reports their token count", .excludes = "data"},
    OPTIONS_OF_DATA,
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, "task in the file names (default: the data file's stem)"},
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question for each image of a folder (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, "prompt style of records without one (default: the data set's)"},
    {"metric", TEXT, "M", NULL, 0, 0, NULL,
     "scoring rule of the accuracy (default: the data set's; for an unknown one mc with options, else vqa_seed)"},
    {"answer_hint", TEXT, "TEXT", NULL, 0, 0, NULL, "text after each question (default: the data set's)"},
    {"num_samples", COUNT, "N", "1000", 1, INT32_MAX, NULL,
     "number of samples drawn from the data, or generated (then by default 200); requests use them in turn"},
    {"stratify_by", TEXT, "FIELD", NULL, 0, 0, NULL, "keep the shares of this field's values when drawing samples"},
    OPTION_LINE_MAX,
    OPTION_GROUP("load"),
    {"concurrency", COUNTS, "N...", NULL, 1, 65536, NULL,
     "always N requests at once: the next is sent when one has ended; several values: one trial each. With "
     "--request_rate: at most N at once; further requests wait in the client, and the wait counts"},
    {"request_rate", TEXTS, "R...", NULL, 0, 0, NULL,
     "R requests per second, whether the server keeps up or not; several values: one trial each"},
    {"arrivals", TEXT, "HOW", "poisson", 0, 0, NULL,
     "gaps between requests: constant, poisson, gamma:SHAPE (below 1: bursts), or trace=FILE: a time in s on each "
     "line, instead of --request_rate"},
    {"duration_s", REAL, "S", NULL, 0, 86400, NULL,
     "requests are sent for S seconds, then the last answers are awaited (default: 60; with --find_rate: 1/15 of "
     "--budget_s if that is less)"},
    {"ramp_s", REAL, "S", NULL, 0, 86400, NULL,
     "requests that are due in the first S seconds are not counted (default: a tenth of the duration)"},
    {"cool_down_s", REAL, "S", NULL, 0, 86400, NULL,
     "requests that are due in the last S seconds are not counted either (default: a tenth of the duration)"},
    {"slo", TEXT, "ttft:MS,..", NULL, 0, 0, NULL,
     "limits of a good request: one or more of ttft:MS,tpot:MS,e2e:MS, all of which must be met; accuracy:SHARE: "
     "accuracy that the answers of a trial must reach"},
    {"unloaded", FLAG, NULL, NULL, 0, 0, NULL,
     "start with a trial of one request at a time, to measure how much accuracy the load costs (--find_rate does so "
     "itself if --slo has an accuracy)", .needs = "request_rate find_rate arrivals"},
    {"find_rate", FLAG, NULL, NULL, 0, 0, NULL,
     "find the highest rate at which --slo_share of the requests are good; starts at --request_rate or 1; the first "
     "trials last --duration_s, trials near the answer last longer",
     .needs = "slo"},
    {"budget_s", REAL, "S", "3600", 1, 1e7, NULL, "with --find_rate: the whole search ends after S seconds",
     .needs = "find_rate"},
    {"slo_share", REAL, "PERCENT", "95", 1, 99, NULL, "with --find_rate: share of requests that must be good",
     .needs = "find_rate"},
    {"rate_precision", REAL, "PERCENT", "10", 1, 100, NULL,
     "with --find_rate: end when the 95 % interval of the rate is at most this wide",
     .needs = "find_rate"},
    {"metrics_url", TEXT, "URL", NULL, 0, 0, NULL,
     "the server's Prometheus metrics, read every second during a trial: queue, KV cache and cache hits of vLLM, "
     "SGLang and llama.cpp (default: /metrics of --endpoint)"},
    OPTION_GROUP("requests"),
    OPTION_REQUEST_KNOB,
    {"max_new_tokens", COUNT, "N", NULL, 1, 1000000, NULL,
     "maximum tokens per answer (default: the data set's, else 16)"},
    OPTION_IGNORE_EOS,
    {"output_tokens", COUNT, "N", NULL, 1, 1000000, NULL,
     "answers of exactly N tokens: --max_new_tokens N --ignore_eos; warns if answers have another length",
     .excludes = "max_new_tokens ignore_eos"},
    {"max_retries", COUNT, "N", "0", 0, 100, NULL,
     "retries of a rejected request; 0: a rejected request fails"},
    OPTIONS_OF_UNIQUE,
    {"repeat_image", REAL, "SHARE", NULL, 0, 1, NULL,
     "share of images that are sent again as in the sample's previous request, to measure what an encoder cache saves",
     .excludes = "same_image"},
    {"no_cache", FLAG, NULL, NULL, 0, 0, NULL, "ask the server not to use its prompt cache (cache_prompt)"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "seed of the samples, their order and the arrivals"},
    OPTION_GROUP("output"),
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, "folder for the result files, one per trial", .is_required = 1},
    {"export", WHOLES, "FORMAT FILE", NULL, 0, 0, NULL,
     "write the trials in another tool's format: aiperf (profile_export_aiperf.json) or vllm (vllm bench serve), one "
     "file per trial; openmetrics, one file for all trials; may be repeated"},
    {"requests_csv", TEXT, "FILE", NULL, 0, 0, NULL,
     "write all requests of the trials, one per line; counted: 0 in the ramp and the cool-down; id: of the sample's "
     "record"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

enum { WARNED_LATE, WARNED_CLIENT, WARNED_PLACES, WARNED_QUEUE, WARNED_SHARED, WARNED_RATE, WARNED_FAILED,
       WARNED_SILENCE, WARNED_EMPTY, WARNED_LENGTH, WARNED_GOODPUT, WARNED_COUNT };
struct load {
    const struct options *options;
    struct endpoint endpoint;
    char *words; /* the server's description of itself; NULL if it has none */
    struct request_knobs knobs;
    struct dataset dataset;
    struct load_bodies bodies;
    struct load_metrics metrics;
    uint32_t *order; size_t order_count;
    vp_slo slo; int has_slo;
    double duration_s, ramp_s, cool_down_s;
    double *trace_s; size_t trace_count; /* from --arrivals trace=FILE */
    char plan[24];                       /* hash of all settings that make trials comparable */
    struct load_level *levels; size_t level_count;
    struct load_search search;
    int64_t search_ns, counted_ns;       /* start of the search; time up to which it is counted */
    struct load_records *records; /* records of the running trial */
    struct text_list warnings;
    int warned[WARNED_COUNT]; char *warning_of[WARNED_COUNT]; /* number of trials it applies to; text for the first */
    int lock; /* lock on --output_dir; -1 if none */
};

/* ---- options */
static int is_trace(const struct options *options) { return !strncmp(text_of(options, "arrivals"), "trace=", 6); }
/* The share of --repeat_image; 0 if not given. */
static double repeat_share(const struct options *options) {
    return is_given(options, "repeat_image") ? opt(options, "repeat_image")->real : 0;
}
/* A description of the requests' images, for the trial's file; malloc'ed. */
static char *images_words(const struct options *options) {
    struct text_buffer words = {NULL, 0, 0};
    if (is_given(options, "same_image")) text_add_string(&words, "same");
    else if (repeat_share(options) > 0) text_add_format(&words, "repeat %g", repeat_share(options));
    else text_add_string(&words, "unique");
    return words.data;
}
/* Parses a rate; 0 if it is not a valid one. */
static double rate_of(const char *text) {
    char *end = NULL;
    const double rate = strtod(text, &end);
    return end != text && !*end && rate >= 1e-6 && rate <= 1e6 ? rate : 0;
}
static int check_levels(const struct options *options) {
    const struct option_value *rates = opt(options, "request_rate");
    const int is_open = rates->given || is_given(options, "find_rate") || is_trace(options);
    const struct option_value *many = opt(options, "concurrency");
    if (!is_open && !many->given)
        return complain(EXIT_USAGE, "load needs --concurrency N, --request_rate R, --find_rate, or --arrivals "
                                    "trace=FILE");
    if (!is_open && is_given(options, "arrivals"))
        return complain(EXIT_USAGE, "--arrivals needs --request_rate: with only --concurrency, a request is due when "
                                    "another has ended");
    if (is_open && many->count > 1)
        return complain(EXIT_USAGE, "with a rate, --concurrency is the maximum of concurrent requests: give only one "
                                    "number");
    if (is_trace(options) && (rates->given || is_given(options, "find_rate")))
        return complain(EXIT_USAGE, "--arrivals trace=FILE sets when requests are due: remove --request_rate and "
                                    "--find_rate");
    if (is_given(options, "find_rate") && rates->count > 1)
        return complain(EXIT_USAGE, "--find_rate starts at one rate: give only one --request_rate");
    for (size_t i = 0; i < rates->count; i++)
        if (rate_of(rates->items[i]) <= 0)
            return complain(EXIT_USAGE, "--request_rate %s: expected a number of requests per second, 1e-6 to 1e6",
                            rates->items[i]);
    return 0;
}
static int check_load_options(struct load *load) {
    const struct options *options = load->options;
    vp_arrivals arrivals;
    int32_t width_px, height_px;
    int code;
    if ((code = check_levels(options)) != 0
        || (code = load_export_check(opt(options, "export")->items, opt(options, "export")->count)) != 0)
        return code;
    if (!is_trace(options)
        && vp_arrivals_parse(text_of(options, "arrivals"), 1, 0, &arrivals) != VP_OK)
        return complain(EXIT_USAGE, "--arrivals %s: expected constant, poisson, gamma:SHAPE (0.01 to 1e6) or "
                                    "trace=FILE",
                        text_of(options, "arrivals"));
    load->has_slo = is_given(options, "slo");
    if (load->has_slo && (code = load_slo_read(text_of(options, "slo"), &load->slo)) != 0) return code;
    load->duration_s = is_given(options, "duration_s") ? opt(options, "duration_s")->real
                       : is_given(options, "find_rate")
                           ? load_search_first_duration(opt(options, "budget_s")->real) : DURATION_S;
    load->ramp_s = is_given(options, "ramp_s") ? opt(options, "ramp_s")->real : load->duration_s / 10;
    load->cool_down_s = is_given(options, "cool_down_s") ? opt(options, "cool_down_s")->real : load->duration_s / 10;
    if (load->has_slo && isfinite(load->slo.accuracy) && !text_of(options, "data"))
        return complain(EXIT_USAGE, "an accuracy in --slo needs --data with answers: generated requests have none");
    if (is_given(options, "random_image")
        && (code = read_size("--random_image: ", text_of(options, "random_image"), &width_px, &height_px)) != 0)
        return code;
    if (load->ramp_s + load->cool_down_s >= load->duration_s)
        return complain(EXIT_USAGE, "--ramp_s and --cool_down_s leave no time of --duration_s %g", load->duration_s);
    if (is_given(options, "find_rate") && opt(options, "budget_s")->real < TRIALS_LEAST * load->duration_s)
        return complain(EXIT_USAGE, "--budget_s %g is too short for %d trials of --duration_s %g, the minimum for a "
                                    "search: omit --duration_s, or use a larger --budget_s",
                        opt(options, "budget_s")->real, TRIALS_LEAST, load->duration_s);
    return 0;
}
/* Reads the times of a trace: one number per line, in ascending order. */
static int read_trace(struct load *load, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL, *line, *end;
    size_t bytes = 0, number = 0;
    int code = 0;
    vp_result result = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (result != VP_OK) return complain_result(exit_code_of(result), path, result, &error);
    for (line = text; *line && !code; line = *end ? end + 1 : end) {
        const double due_s = strtod(line, &end);
        number++;
        if (end == line || (*end && *end != '\n' && strcspn(end, "\n") != strspn(end, " \t\r")) || !(due_s >= 0))
            code = complain(EXIT_INPUT, "%s: line %zu does not contain a time in seconds", path, number);
        else if (load->trace_count && due_s < load->trace_s[load->trace_count - 1])
            code = complain(EXIT_INPUT, "%s: line %zu has an earlier time than the line before", path, number);
        else {
            end += strcspn(end, "\n");
            if (due_s >= load->duration_s) continue;
            load->trace_s = resize(load->trace_s, load->trace_count + 1, sizeof *load->trace_s);
            load->trace_s[load->trace_count++] = due_s;
        }
    }
    free(text);
    if (!code && !load->trace_count)
        code = complain(EXIT_INPUT, "%s: no request is due within --duration_s %g", path, load->duration_s);
    return code;
}
/* Raises the limit of open files to one socket per concurrent request. */
static int raise_file_limit(const struct options *options) {
    const struct option_value *many = opt(options, "concurrency");
    struct rlimit limit;
    int64_t most = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit)) getrlimit(RLIMIT_NOFILE, &limit);
    }
    for (size_t i = 0; i < many->count; i++) if (many->numbers[i] > most) most = many->numbers[i];
    if (limit.rlim_cur != RLIM_INFINITY && (rlim_t)most + 64 > limit.rlim_cur)
        return complain(EXIT_USAGE, "--concurrency %lld needs as many open files, but this process may have only %llu: "
                                    "raise the limit (ulimit -n)", (long long)most, (unsigned long long)limit.rlim_cur);
    return 0;
}

/* ---- preparing */
static void plan_fingerprint(struct load *load) {
    static const char *const texts[] = {"arrivals", "slo", "endpoint_api", "metric"};
    uint64_t hash = hash_text(hash_text(HASH_START, load->endpoint.url), load->endpoint.model);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = text_of(load->options, texts[i]);
        hash = hash_text(hash, text ? text : "");
    }
    hash = hash_number(hash, number_of(load->options, "seed"));
    if (!is_given(load->options, "find_rate")) { /* its trials last as long as needed */
        hash = hash_number(hash, (int64_t)(load->duration_s * 1e6));
        hash = hash_number(hash, (int64_t)(load->ramp_s * 1e6));
        hash = hash_number(hash, (int64_t)(load->cool_down_s * 1e6));
    }
    hash = hash_number(hash, (int64_t)load->bodies.hash);
    hash = hash_number(hash, !is_given(load->options, "same_image"));
    if (is_given(load->options, "repeat_image")) hash = hash_number(hash, (int64_t)(1e9 * repeat_share(load->options)));
    hash = hash_bytes(hash, load->trace_s, load->trace_count * sizeof *load->trace_s);
    snprintf(load->plan, sizeof load->plan, "%016llx", (unsigned long long)hash);
}
static void make_order(struct load *load) {
    int64_t *places = zeroed(load->bodies.count, sizeof *places);
    vp_random random;
    vp_random_seed(&random, (uint32_t)number_of(load->options, "seed"));
    vp_random_permutation(&random, places, load->bodies.count);
    load->order_count = load->bodies.count;
    load->order = zeroed(load->order_count, sizeof *load->order);
    for (size_t i = 0; i < load->order_count; i++) load->order[i] = (uint32_t)places[i];
    free(places);
}
/* One request before the trials: it triggers the server's one-time work and shows whether times can be measured. */
static int warm_up(struct load *load) {
    vp_exchange exchange = {.body = load->bodies.items[load->order[0]].json,
                            .body_bytes = load->bodies.items[load->order[0]].bytes};
    show_progress("warm-up");
    int code = endpoint_ask(&load->endpoint, &exchange);
    close_progress();
    if (!code && !exchange.reply.is_streamed)
        text_list_add(&load->warnings, "the server answers in one body, so TTFT and TPOT cannot be measured");
    else if (!code && exchange.reply.usage.completion_tokens < 0)
        text_list_add(&load->warnings, "the server does not report how many tokens it generated, so there is no TPOT");
    if (!code && load->bodies.is_random && exchange.reply.usage.prompt_tokens > 0)
        print_note("vlmprof: the server counts %lld prompt tokens for the first generated request (%zu kB)\n",
                   (long long)exchange.reply.usage.prompt_tokens, (exchange.body_bytes + 500) / 1000);
    vp_exchange_free(&exchange);
    return code;
}
/* The number of requests in the longest trial at given rates, at most `most`: bodies are only generated if they are
 * sent. */
static size_t requests_most(const struct load *load, size_t most) {
    const struct option_value *rates = opt(load->options, "request_rate");
    size_t count = 1;
    if (load->trace_s) return load->trace_count < most ? load->trace_count : most;
    if (!rates->count || is_given(load->options, "find_rate")) return most;
    for (size_t i = 0; i < rates->count; i++) {
        size_t due = 0;
        vp_arrivals arrivals;
        vp_arrivals_parse(text_of(load->options, "arrivals"), rate_of(rates->items[i]),
                          (uint32_t)number_of(load->options, "seed"), &arrivals);
        while (due < most && vp_arrivals_next(&arrivals) < load->duration_s) due++;
        if (due > count) count = due;
    }
    return count;
}
/* Makes the request bodies of a data set, or synthetic ones. Returns 0 or an exit code. */
static int make_bodies(struct load *load) {
    const struct options *options = load->options;
    struct random_request request = {0, 0, 16, 16, 200, (uint32_t)number_of(options, "seed")};
    const char *size = text_of(options, "random_image");
    char task[80];
    int code;
    load->dataset.path = text_of(options, "data");
    if (load->dataset.path) {
        code = dataset_load(options, NULL, &load->dataset);
        if (!code) code = dataset_check_usable(&load->dataset, NULL);
        if (!code && is_given(options, "output_tokens"))
            load->dataset.new_tokens = (int32_t)number_of(options, "output_tokens");
        return code ? code
                    : load_bodies_make(options, &load->dataset, &load->endpoint, &load->knobs, &load->bodies);
    }
    if (size && (code = read_size("--random_image: ", size, &request.width_px, &request.height_px)) != 0) return code;
    if (is_given(options, "random_prompt")) request.words = number_of(options, "random_prompt");
    if (is_given(options, "num_samples")) request.count = (size_t)number_of(options, "num_samples");
    else request.count = requests_most(load, request.count);
    if (is_given(options, "max_new_tokens")) request.new_tokens = number_of(options, "max_new_tokens");
    if (is_given(options, "output_tokens")) request.new_tokens = number_of(options, "output_tokens");
    if (size)
        snprintf(task, sizeof task, "random_%dx%d_%lld", request.width_px, request.height_px, (long long)request.words);
    else snprintf(task, sizeof task, "random_%lld", (long long)request.words);
    load->dataset.task = copy_text(task, strlen(task));
    load->dataset.new_tokens = (int32_t)request.new_tokens;
    if ((code = endpoint_reach(&load->endpoint)) != 0) return code; /* before pictures are made */
    return load_bodies_random(options, &request, &load->endpoint, &load->knobs, &load->bodies);
}
static int load_prepare(struct load *load) {
    const struct options *options = load->options;
    int code;
    if ((code = check_load_options(load)) != 0 || (code = knobs_of_options(options, &load->knobs)) != 0) return code;
    if (knobs_combinations(&load->knobs) > 1)
        return complain(EXIT_USAGE, "--request_knob takes one value for each path here; sweep takes several");
    if (is_trace(options) && (code = read_trace(load, text_of(options, "arrivals") + 6)) != 0) return code;
    if ((code = raise_file_limit(options)) != 0
        || (code = endpoint_open(options, text_of(options, "endpoint"), text_of(options, "endpoint_model"),
                                 &load->endpoint))
               != 0)
        return code;
    for (size_t i = 0; i < load->endpoint.warnings.count; i++) complain(0, "%s", load->endpoint.warnings.items[i]);
    if ((code = endpoint_choose_model(&load->endpoint)) != 0) return code;
    if ((code = make_bodies(load)) != 0) return code;
    make_order(load);
    plan_fingerprint(load);
    code = make_folder(text_of(options, "output_dir"));
    return code ? code : lock_folder(text_of(options, "output_dir"), "load", &load->lock);
}

/* ---- a trial */
static uint32_t seed_of(const struct load *load, const struct load_level *level) {
    const uint32_t seed = (uint32_t)number_of(load->options, "seed");
    return is_given(load->options, "find_rate") ? load_search_seed(seed, level->rate) : seed;
}
/* The due times of a level's requests, malloc'ed; NULL if by concurrency. */
static double *due_times(const struct load *load, const struct load_level *level, size_t *count) {
    double *due_s = NULL, now_s;
    vp_arrivals arrivals;
    *count = 0;
    if (level->concurrency) return NULL;
    if (load->trace_s) {
        *count = load->trace_count;
        due_s = resize(NULL, *count, sizeof *due_s);
        memcpy(due_s, load->trace_s, *count * sizeof *due_s);
        return due_s;
    }
    vp_arrivals_parse(text_of(load->options, "arrivals"), level->rate, seed_of(load, level), &arrivals);
    while ((now_s = vp_arrivals_next(&arrivals)) < level->duration_s) {
        if (!(*count & (*count + 1))) due_s = resize(due_s, 2 * *count + 1, sizeof *due_s);
        due_s[(*count)++] = now_s;
    }
    return due_s ? due_s : zeroed(1, sizeof *due_s);
}
static char *level_path(const struct load *load, const struct load_level *level) {
    char text[48], name[600];
    snprintf(name, sizeof name, "%s_load_%s.json", load->dataset.task, load_level_name(level, text));
    return join_path(text_of(load->options, "output_dir"), name);
}
/* A trial as its file records it. */
static struct load_level line_of(const struct load *load, const struct load_level *level) {
    struct load_level line = *level;
    line.schema = LOAD_SCHEMA;
    line.plan = load->plan;
    line.task = load->dataset.task;
    line.metric = load->bodies.is_random ? NULL : vp_score_metric_of(load->dataset.metric)->name;
    line.endpoint = load->endpoint.url;
    line.model = load->endpoint.model;
    line.api = text_of(load->options, "endpoint_api");
    line.server = load->words;
    line.arrivals = level->concurrency ? NULL : text_of(load->options, "arrivals");
    line.ramp_s = load->ramp_s;
    line.cool_down_s = load->cool_down_s;
    line.new_tokens = load->dataset.new_tokens;
    line.sample_count = (int64_t)load->bodies.count;
    line.no_cache = is_given(load->options, "no_cache");
    line.arrival_seed = seed_of(load, level);
    line.slo = text_of(load->options, "slo");
    line.slo_share = is_given(load->options, "find_rate") ? opt(load->options, "slo_share")->real / 100 : (double)NAN;
    return line;
}
static int write_level(const struct load *load, const struct load_level *level, const struct load_records *records,
                       const vp_noise_summary *noise) {
    struct text_buffer out = {NULL, 0, 0};
    vp_chat_knob *knobs = zeroed(load->knobs.count, sizeof *knobs);
    const struct load_level line = line_of(load, level);
    vp_json_writer writer;
    int code;
    vp_json_writer_init_sink(&writer, text_sink, &out, 1);
    vp_json_begin_object(&writer);
    put_load_server(&writer, &line);
    knobs_combination(&load->knobs, 0, knobs);
    put_knobs(&writer, knobs, load->knobs.count);
    put_load_level(&writer, level);
    put_load_way(&writer, &line);
    put_load_summary(&writer, &level->summary);
    put_load_metrics(&writer, level);
    put_load_requests(&writer, records, load->bodies.items, load->bodies.ids);
    put_noise(&writer, noise);
    PUT(&writer, KEY_OBJECT("provenance"));
    put_provenance(&writer, load->options, NULL);
    vp_json_end_object(&writer);
    put_config(&writer, load->options);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    text_add(&out, "\n", 1);
    code = file_write_text(level->path, &out);
    FREE_ALL(out.data, knobs);
    return code;
}
/* Records a warning about a trial. Each is printed once, for the first trial it applies to, with the number of
 * others. */
static void warn_once(struct load *load, int which, const char *text) {
    if (!load->warned[which]++) load->warning_of[which] = copy_text(text, strlen(text));
}
static void warn_of_failures(struct load *load, const struct load_level *level) {
    char name[48], text[LINE_BYTES];
    if (!level->failures) return;
    snprintf(text, sizeof text, "%s: %s", load_level_text(level, name), level->failures);
    warn_once(load, WARNED_FAILED, text);
}
static void warn_of_trial(struct load *load, const struct load_level *level, const struct load_records *records) {
    const struct load_summary *summary = &level->summary;
    const double tpot_ms = summary->latency[LOAD_TPOT][LOAD_P50].value;
    char name[48], text[LINE_BYTES];
    load_level_text(level, name);
    if (load_is_late(summary)) {
        snprintf(text, sizeof text, "%s: %lld of %lld requests were sent more than %g ms late, the latest %.1f ms: "
                                    "this machine was busy; times since due include that delay", name,
                 (long long)summary->late, (long long)summary->due, LOAD_LATE_MS, summary->latest_ms);
        warn_once(load, WARNED_LATE, text);
    }
    if (level->client_busy) {
        snprintf(text, sizeof text, "%s: this client used %.0f %% of a CPU and waited for one during %.0f %% of the "
                                    "trial: the latencies include that wait; use a quieter machine or a lower "
                                    "load", name,
                 100 * level->client_cpu, 100 * level->client_delay);
        warn_once(load, WARNED_CLIENT, text);
    }
    if (summary->most[LOAD_QUEUED] > 0) {
        snprintf(text, sizeof text, "%s: requests waited in this client for one of %d slots, %.4g ms on average, %.4g "
                                    "ms at most: TTFT and E2E since due include that wait, times since sent do "
                                    "not", name,
                 level->places, summary->mean[LOAD_QUEUED], summary->most[LOAD_QUEUED]);
        warn_once(load, WARNED_PLACES, text);
    }
    if (load_level_saturates(level)) {
        snprintf(text, sizeof text, "%s: %.3g requests per second were due and %.3g ended: the queue grew, so "
                 "latencies depend on --duration_s", name, summary->offered, summary->ended);
        warn_once(load, WARNED_QUEUE, text);
    }
    if (summary->goodput > 1.05 * summary->ended && load_level_saturates(level)) {
        snprintf(text, sizeof text, "%s: the goodput, %.3g per second, is above the rate of ended requests, %.3g: it "
                                    "counts good requests by due time, and some of them ended after the window; a "
                                    "longer --duration_s reduces the "
                                    "difference", name, summary->goodput, summary->ended);
        warn_once(load, WARNED_GOODPUT, text);
    }
    if (records->count > load->bodies.count && load->bodies.same) {
        snprintf(text, sizeof text, "%s: %zu requests share %zu samples, of which %zu have the same bytes each time, "
                                    "so the server's caches may contain some; "
                                    "%s", name, records->count, load->bodies.count, load->bodies.same,
                 summary->cached_known ? "see cached_tokens" : "it does not report how many tokens came from them");
        warn_once(load, WARNED_SHARED, text);
    }
    if (tpot_ms > 0 && 1000 / tpot_ms > CREDIBLE_TOKENS_PER_S) {
        snprintf(text, sizeof text, "%s: a TPOT of %.3g ms is not credible, because no server decodes that fast: the "
                                    "answers were buffered and came all at once", name, tpot_ms);
        warn_once(load, WARNED_RATE, text);
    }
    if (level->silence) {
        snprintf(text, sizeof text, "%s: %s", name, level->silence);
        warn_once(load, WARNED_SILENCE, text);
    }
    if (summary->empty) {
        snprintf(text, sizeof text, "%s: %lld of %lld answers are empty: they count neither as failed nor as good, and "
                                    "are left out of all "
                                    "shares", name, (long long)summary->empty, (long long)summary->due);
        warn_once(load, WARNED_EMPTY, text);
    }
}
/* Warns if answers do not have the length --output_tokens. */
static void warn_of_length(struct load *load, const struct load_level *level, const struct load_records *records) {
    const int64_t wanted = is_given(load->options, "output_tokens") ? number_of(load->options, "output_tokens") : 0;
    size_t known = 0, others = 0;
    double tokens = 0;
    char name[48], text[LINE_BYTES];
    for (size_t i = 0; i < records->count && wanted; i++) {
        const int64_t got = records->items[i].usage.completion_tokens;
        if (records->items[i].reason || got < 0) continue;
        known++;
        others += got != wanted;
        tokens += (double)got;
    }
    if (!others) return;
    snprintf(text, sizeof text, "%s: %zu of %zu answers do not have --output_tokens %lld (their mean is %.4g): the "
                                "server ignores ignore_eos, or its context is too "
                                "short", load_level_text(level, name), others, known,
             (long long)wanted, tokens / (double)known);
    warn_once(load, WARNED_LENGTH, text);
}
static void add_trial_warnings(struct load *load) {
    for (int which = 0; which < WARNED_COUNT; which++) {
        const int more = load->warned[which] - 1;
        if (more > 0)
            text_list_add(&load->warnings, "%s (also true of %d other trial%s)", load->warning_of[which], more,
                          plural_s((int64_t)more));
        else if (!more) text_list_copy(&load->warnings, load->warning_of[which]);
        free(load->warning_of[which]);
        load->warning_of[which] = NULL;
    }
}
static int extend_trial(struct load_plan *plan, const struct load_records *records, double before_s);
/* The end of the window, in s: the start of the cool-down. In an interrupted trial, the window ends with the last
 * answer at the latest, unless that came within the ramp. A trial that ended early because its queue grew needs no
 * cool-down. */
static double window_end(const struct load *load, const struct load_level *level, const struct load_records *records,
                         const struct load_plan *plan, int is_interrupted) {
    const double planned_s = fmin(plan->cut_s, level->duration_s - (plan->is_hopeless ? 0 : load->cool_down_s));
    double last_s = 0;
    for (size_t i = 0; i < records->count; i++) last_s = fmax(last_s, (double)records->items[i].end_ns / 1e9);
    return is_interrupted && last_s > load->ramp_s ? fmin(planned_s, last_s) : planned_s;
}
static void keep_metrics(const struct load *load, struct load_level *level) {
    const char *path = load->metrics.url;
    struct text_buffer url = {NULL, 0, 0};
    if (*path == '/') text_add_string(&url, load->endpoint.url);
    text_add_string(&url, path);
    level->metrics_url = url.data;
    level->metric_count = load->metrics.count;
    if (!level->metric_count) return;
    level->metrics = zeroed(level->metric_count, sizeof *level->metrics);
    memcpy(level->metrics, load->metrics.items, level->metric_count * sizeof *level->metrics);
}
/* Returns 1 if the file of a level exists. */
static int is_measured(const struct load *load, const struct load_level *level) {
    char *path = level_path(load, level);
    const int is_there = vp_path_kind(path) != VP_PATH_NONE;
    free(path);
    return is_there;
}
/* Complains that the file of a level was made with other settings. Returns EXIT_USAGE. */
static int complain_of_plan(const struct load *load, const struct load_level *level, const struct load_level *known) {
    struct load_level line = line_of(load, level);
    char *images = load->bodies.imaged ? images_words(load->options) : NULL, values[2][80];
    const char *what;
    line.images = images;
    int is_named = load_levels_difference(known, &line, &what, values);
    free(images);
    if (!is_named)
        return complain(EXIT_USAGE, "%s exists but was made with other data or options (duration, seed, ..): use "
                                    "another --output_dir, or delete it", level->path);
    return complain(EXIT_USAGE, "%s exists but was made with another %s (%s, now %s): use another --output_dir, or "
                                "delete it%s", level->path, what, values[0], values[1],
                    !strcmp(what, "--slo") ? "; best DIR --slo evaluates other limits without measuring" : "");
}
/* Fills *level from its file if that is there and complete. Returns 0 or an exit code. */
static int take_known(struct load *load, struct load_level *level) {
    struct load_level known;
    char name[48];
    if (vp_path_kind(level->path) == VP_PATH_NONE) return 0;
    int code = load_level_read(level->path, &known);
    if (code == NO_TRIAL) return complain(EXIT_USAGE, "%s exists but is not a trial", level->path);
    if (code) return code;
    if (!known.plan || strcmp(known.plan, load->plan) != 0) code = complain_of_plan(load, level, &known);
    if (code || !known.is_complete) {
        load_level_free(&known);
        return code;
    }
    load_level_free(level);
    *level = known;
    print_note("vlmprof: %s: already measured (%.40s); delete %s to measure it again\n", load_level_text(level, name),
               level->date ? level->date : "no date", level->path);
    warn_of_failures(load, level);
    return 0;
}
/* Measures a level, unless its file exists. Fills *level. Returns 0 or an exit code. */
static int measure_level(struct load *load, struct load_level *level) {
    struct load_records records;
    vp_noise_summary noise;
    vp_noise_reading reading;
    struct client_reading began, ended;
    char name[48];
    int code;
    level->path = level_path(load, level);
    if ((code = take_known(load, level)) != 0 || level->is_complete) return code;
    struct load_plan plan = {.bodies = load->bodies.items, .body_count = load->bodies.count, .order = load->order,
                             .order_count = load->order_count};
    plan.due_s = due_times(load, level, &plan.due_count);
    if (load->search_ns) plan.deadline_ns = load->search_ns + (int64_t)(load->search.budget_s * 1e9);
    if (load->search_ns && !level->concurrency) {
        plan.more = extend_trial;
        plan.slo = &load->slo;
        plan.is_good = load_is_good;
    }
    load->records = &records;
    plan.user = load;
    plan.concurrency = level->concurrency ? level->concurrency : level->places;
    plan.duration_s = level->duration_s;
    plan.ramp_s = load->ramp_s;
    plan.repeat_share = repeat_share(load->options);
    plan.seed = (uint32_t)number_of(load->options, "seed");
    plan.metrics = &load->metrics;
    print_note("vlmprof: %s for %.4g s\n", load_level_text(level, name), level->duration_s);
    noise_begin(&noise, &reading);
    client_read(noise_root(), &began);
    code = load_run(&load->endpoint, &plan, &records);
    client_read(noise_root(), &ended);
    noise_end(&noise, &reading);
    client_take(&began, &ended, level);
    level->client_busy = client_was_busy(level);
    level->begin_unix_s = records.begin_unix_s;
    level->duration_s = plan.duration_s;
    if (plan.is_hopeless || plan.cut_s < HUGE_VAL)
        level->ended_early = copy_text(plan.is_hopeless ? "hopeless" : "budget", plan.is_hopeless ? 8 : 6);
    if (load->bodies.imaged)
        level->images = images_words(load->options);
    free((void *)plan.due_s);
    if (load->metrics.url) keep_metrics(load, level);
    if (!code || code == EXIT_INTERRUPTED) {
        const double to_s = window_end(load, level, &records, &plan, code != 0);
        int written = 0;
        load_score(&load->bodies, load->dataset.metric, &records);
        level->is_complete = !code;
        if (to_s > load->ramp_s) { /* otherwise the budget ended before anything was counted */
            level->summary = load_summarize(&records, load->ramp_s, to_s, load->has_slo ? &load->slo : NULL);
            load_level_note(level, &records);
            level->other_cpu = noise.other_cpu_percent;
            if (text_of(load->options, "slo"))
                level->slo = copy_text(text_of(load->options, "slo"), strlen(text_of(load->options, "slo")));
            written = records.count ? write_level(load, level, &records, &noise) : 0;
            if (!code) warn_of_failures(load, level);
            if (!code) warn_of_trial(load, level, &records);
            if (!code) warn_of_length(load, level, &records);
            if (!code && load->search_ns && !level->concurrency)
                load_search_check(&load->search, &records, load->ramp_s, to_s);
        }
        if (written) code = written;
    }
    load_records_free(&records);
    return code;
}
static struct load_level *add_level(struct load *load, double rate, int32_t concurrency) {
    load->levels = resize(load->levels, load->level_count + 1, sizeof *load->levels);
    struct load_level *level = &load->levels[load->level_count++];
    memset(level, 0, sizeof *level);
    level->rate = rate;
    level->concurrency = concurrency;
    if (!concurrency && opt(load->options, "concurrency")->count)
        level->places = (int32_t)opt(load->options, "concurrency")->numbers[0];
    level->duration_s = load->duration_s;
    return level;
}

/* ---- the search for a rate */
/* Extends the trial while it is undecided whether its rate is too high. */
static int extend_trial(struct load_plan *plan, const struct load_records *records, double before_s) {
    struct load *load = plan->user;
    struct load_level *level = &load->levels[load->level_count - 1];
    if (!(before_s > load->ramp_s)) return 0;
    load_score(&load->bodies, load->dataset.metric, load->records);
    struct load_summary summary = load_summarize(records, load->ramp_s, before_s, &load->slo);
    double longer_s = load_search_longer(&load->search, &summary, level->duration_s);
    if (!(longer_s > level->duration_s)) return 0;
    level->duration_s = plan->duration_s = longer_s;
    free((void *)plan->due_s);
    plan->due_s = due_times(load, level, &plan->due_count);
    return 1;
}
/* Judges the requests in an existing trial's file again. Returns 0 or an exit code. */
static int check_again(struct load *load, const struct load_level *level) {
    struct load_request *requests;
    struct load_records records = {0};
    size_t count;
    const int code = load_level_requests(level, &requests, &count);
    if (code) return code;
    records.items = zeroed(count + 1, sizeof *records.items);
    for (; records.count < count; records.count++) records.items[records.count] = requests[records.count].record;
    load_search_check(&load->search, &records, level->summary.from_s, level->summary.to_s);
    free(records.items);
    load_requests_free(requests, count);
    return 0;
}
static int write_search(const struct load *load) {
    struct text_buffer out = {NULL, 0, 0}, words = {NULL, 0, 0};
    char name[600], *path;
    vp_json_writer writer;
    snprintf(name, sizeof name, "%s_find_rate.json", load->dataset.task);
    path = join_path(text_of(load->options, "output_dir"), name);
    load_search_words(&load->search, &words);
    vp_json_writer_init_sink(&writer, text_sink, &out, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", LOAD_SEARCH_SCHEMA), KEY("plan", load->plan),
        KEY("dataset_name", load->dataset.task), KEY("endpoint", load->endpoint.url),
        KEY("endpoint_model", load->endpoint.model), KEY("server", load->words),
        KEY("slo", text_of(load->options, "slo")), KEY("result", words.data));
    load_search_put(&writer, &load->search);
    PUT(&writer, KEY_OBJECT("provenance"));
    put_provenance(&writer, load->options, NULL);
    PUT(&writer, END_OBJECT, END_OBJECT);
    vp_json_finish(&writer);
    text_add(&out, "\n", 1);
    int code = file_write_text(path, &out);
    FREE_ALL(out.data, words.data, path);
    return code;
}
static void begin_search(struct load *load) {
    const struct option_value *rates = opt(load->options, "request_rate");
    struct load_search *search = &load->search;
    search->share = opt(load->options, "slo_share")->real / 100;
    search->duration_s = load->duration_s;
    search->ramp_s = load->ramp_s;
    search->cool_down_s = load->cool_down_s;
    search->budget_s = opt(load->options, "budget_s")->real;
    search->slo = load->slo;
    load_search_begin(search, rates->count ? rate_of(rates->items[0]) : 1,
                      opt(load->options, "rate_precision")->real / 100);
    load->search_ns = load->counted_ns = vp_clock_ns();
    print_note("vlmprof: the search ends when the rate is known to %g %%, or after %g s; first trials of %.4g s find a "
               "lower and an upper bound\n", 100 * search->precision, search->budget_s,
               search->duration_s);
}
static double elapsed_s(struct load *load) {
    const int64_t before_ns = load->counted_ns;
    load->counted_ns = vp_clock_ns();
    return (double)(load->counted_ns - before_ns) / 1e9;
}
/* Prints a trial's result, and the joint result of all trials so far. */
static void print_trial(const struct load *load, const struct load_level *level) {
    const struct load_search *search = &load->search;
    const struct load_trial *trial = &search->trials[search->trial_count - 1];
    const struct load_answer *answer = &search->answer;
    const double more_s = load_search_forecast(search);
    char texts[2][32];
    print_note("vlmprof: rate %.6g (%.4g were due): %.1f %% good [%.1f, %.1f] in %.4g s%s\n", level->rate,
               trial->realised, 100 * trial->good.value, 100 * trial->good.low, 100 * trial->good.high,
               trial->duration_s, !level->ended_early ? ""
                                  : trial->is_hopeless ? ", ended early: the queue grew and no more requests were good"
                                                       : ", ended by --budget_s");
    if (isfinite(load->slo.accuracy))
        print_note("vlmprof: rate %.6g: accuracy %s\n", level->rate,
                   number_measured(trial->accuracy.value, trial->accuracy.low, trial->accuracy.high).text);
    if (search->end == LOAD_SEARCHES && more_s > 0)
        print_note("vlmprof: the highest rate is within [%.4g, %.4g]; a precision of %g %% needs about %s more, %s "
                   "of the budget are left\n", answer->low, answer->high, 100 * search->precision,
                   load_search_time(more_s, texts[0]),
                   load_search_time(fmax(0, search->budget_s - search->spent_s), texts[1]));
}
/* Runs trials at the rates that the search proposes. */
static int find_rate(struct load *load) {
    struct load_search *search = &load->search;
    int code = 0, written;
    search->spent_s = elapsed_s(load);
    if (isfinite(load->slo.accuracy)) load_search_check_unloaded(search, &load->levels[0].summary);
    while (!isnan(search->next) && !code) {
        struct load_level *level = add_level(load, search->next, 0);
        level->duration_s = search->next_s;
        int is_known = is_measured(load, level);
        if ((code = measure_level(load, level)) != 0) break;
        if (!level->is_complete || !(level->summary.to_s > level->summary.from_s)) {
            load_level_free(&load->levels[--load->level_count]);
            search->spent_s += elapsed_s(load);
            search->end = LOAD_BUDGET;
            break;
        }
        if (is_known && (code = check_again(load, level)) != 0) break;
        load_search_take(search, &level->summary, level->rate, level->duration_s,
                         level->ended_early && !strcmp(level->ended_early, "hopeless"), elapsed_s(load));
        print_trial(load, level);
    }
    written = search->trial_count || search->end != LOAD_SEARCHES ? write_search(load) : 0;
    return code ? code : written;
}
static int measure_levels(struct load *load) {
    const struct options *options = load->options;
    const struct option_value *rates = opt(options, "request_rate"), *many = opt(options, "concurrency");
    int code = warm_up(load);
    load->words = code ? NULL : endpoint_words(&load->endpoint);
    if (!code) load_metrics_open(&load->metrics, &load->endpoint, text_of(options, "metrics_url"));
    if (!code && is_given(options, "find_rate")) begin_search(load);
    if (!code && (is_given(options, "unloaded") || (is_given(options, "find_rate") && isfinite(load->slo.accuracy))))
        code = measure_level(load, add_level(load, 0, 1));
    if (!code && is_given(options, "find_rate")) return find_rate(load);
    if (!code && load->trace_s)
        return measure_level(load, add_level(load, (double)load->trace_count / load->duration_s, 0));
    for (size_t i = 0; i < rates->count && !code; i++)
        code = measure_level(load, add_level(load, rate_of(rates->items[i]), 0));
    for (size_t i = 0; i < many->count && !rates->count && !code; i++)
        code = measure_level(load, add_level(load, 0, (int32_t)many->numbers[i]));
    return code;
}

/* ---- output */
/* Sets "accuracy_change", relative to the trial without load, if there is one. Returns 0 or an exit code. */
static int put_change(vp_json_writer *writer, const struct load *load, const struct load_level *level) {
    const struct load_level *unloaded = load_unloaded_of(level, load->levels, load->level_count);
    vp_bounded_interval change;
    const int code = unloaded ? load_accuracy_change(unloaded, level, &change) : 0;
    if (!code && unloaded && change.count)
        PUT(writer, KEY_OBJECT("accuracy_change"), KEY("value", change.mean),
            KEY_RANGE("interval", change.low, change.high), KEY("samples", (int64_t)change.count), END_OBJECT);
    return code;
}
static int print_json(const struct load *load) {
    vp_json_writer writer;
    int code = 0;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("output_dir", text_of(load->options, "output_dir")), KEY_ARRAY("levels"));
    for (size_t i = 0; i < load->level_count; i++) {
        PUT(&writer, KEY_OBJECT(NULL), KEY("file", load->levels[i].path));
        put_load_level(&writer, &load->levels[i]);
        put_load_summary(&writer, &load->levels[i].summary);
        if (!code) code = put_change(&writer, load, &load->levels[i]);
        vp_json_end_object(&writer);
    }
    vp_json_end_array(&writer);
    if (load->search.trial_count || load->search.end != LOAD_SEARCHES) {
        PUT(&writer, KEY_OBJECT("find_rate"));
        load_search_put(&writer, &load->search);
        PUT(&writer, END_OBJECT);
    } else put_null(&writer, "find_rate");
    PUT(&writer, KEY_TEXTS("warnings", &load->warnings), END_OBJECT);
    const int ended = json_end(&writer);
    return code ? code : ended;
}
/* The trials that counted something in the order of their loads, as in their files. Borrowed texts; the caller frees
 * the items. */
static struct load_levels sorted_levels(const struct load *load) {
    struct load_levels levels = {zeroed(load->level_count + 1, sizeof *levels.items), 0};
    for (size_t i = 0; i < load->level_count; i++)
        if (load->levels[i].summary.to_s > load->levels[i].summary.from_s)
            levels.items[levels.count++] = line_of(load, &load->levels[i]);
    load_levels_sort(&levels);
    return levels;
}
/* Findings, or the answer of a search, then the tables. Returns 0 or an exit code. */
static int print_text(const struct load *load) {
    struct document document = {NULL, 0, NULL};
    struct load_levels levels = sorted_levels(load);
    struct text_list findings = {NULL, 0};
    struct text_buffer found = {NULL, 0, 0};
    int code = 0;
    if (load->search.trial_count || load->search.end != LOAD_SEARCHES) {
        load_search_words(&load->search, &found);
        print_plain("%s\n\n", found.data);
    } else if (levels.count) load_findings(&levels, &findings);
    document_list(&document, "Findings", &findings);
    if (levels.count) code = load_levels_add(&document, levels.items, levels.count);
    if (!code && levels.count) code = print_document(&document);
    text_list_free(&findings);
    document_free(&document);
    FREE_ALL(levels.items, found.data);
    return code;
}
static int load_report(struct load *load) {
    add_trial_warnings(load);
    int code = is_given(load->options, "json") ? print_json(load) : print_text(load);
    for (size_t i = 0; i < load->warnings.count; i++) complain(0, "%s", load->warnings.items[i]);
    return code;
}
static void load_free(struct load *load) {
    endpoint_close(&load->endpoint);
    load_metrics_free(&load->metrics); /* its question was in use until now */
    load_bodies_free(&load->bodies);
    if (load->dataset.options) dataset_free(&load->dataset); else free(load->dataset.task);
    for (size_t i = 0; i < load->level_count; i++) load_level_free(&load->levels[i]);
    free(load->levels);
    knobs_free(&load->knobs);
    text_list_free(&load->warnings);
    for (int which = 0; which < WARNED_COUNT; which++) free(load->warning_of[which]);
    load_search_free(&load->search);
    FREE_ALL(load->order, load->trace_s, load->words);
    if (load->lock >= 0) close(load->lock);
}
/* Writes the files of --export and --requests_csv. Returns 0 or an exit code. */
static int load_exports(const struct load *load) {
    const struct option_value *exports = opt(load->options, "export");
    const char *requests = text_of(load->options, "requests_csv");
    struct load_levels levels = sorted_levels(load);
    int code = 0;
    for (size_t i = 0; i < exports->count && !code; i += 2)
        code = load_export(exports->items[i], exports->items[i + 1], levels.items, levels.count);
    if (!code && requests) code = load_export_requests(requests, levels.items, levels.count, &load->bodies);
    free(levels.items);
    return code;
}
/* Returns EXIT_WORK if counted requests have failed or, with --find_rate, no rate was found. */
static int exit_of(const struct load *load) {
    int64_t failed = 0;
    if (is_given(load->options, "find_rate")) return load->search.answer.low > 0 ? 0 : EXIT_WORK;
    for (size_t i = 0; i < load->level_count; i++) failed += load->levels[i].summary.failed;
    return failed ? EXIT_WORK : 0;
}
/* After Ctrl-C: prints what is kept, and how to continue. */
static void print_interrupted(const struct load *load) {
    size_t complete = 0, partial = 0;
    for (size_t i = 0; i < load->level_count; i++) {
        complete += (size_t)load->levels[i].is_complete;
        partial += !load->levels[i].is_complete && vp_path_kind(load->levels[i].path) != VP_PATH_NONE;
    }
    print_note("vlmprof: interrupted: %zu complete trial%s in %s%s; run the same command again to continue\n", complete,
               complete == 1 ? " is" : "s are", text_of(load->options, "output_dir"),
               partial ? ", and the running one is kept as partial, to be measured again" : "");
}
static int run_command(const struct options *options) {
    int code, reported;
    struct load load = {.options = options, .lock = -1};
    end_in_order();
    code = load_prepare(&load);
    if (!code) {
        code = measure_levels(&load);
        reported = !code || (code == EXIT_INTERRUPTED && load.level_count) ? load_report(&load) : 0;
        if (!code && !reported) reported = load_exports(&load);
        if (!code) code = reported ? reported : exit_of(&load);
    }
    if (code == EXIT_INTERRUPTED) print_interrupted(&load);
    load_free(&load);
    return code;
}

const struct command command_load = {
    "load",
    "--endpoint URL (--data FILE | --random_image WxH) --output_dir DIR (--concurrency N... | --request_rate R... "
    "[--concurrency N])",
    "measure a server under load: latency since requests were due, goodput, accuracy",
    "vlmprof load --endpoint http://127.0.0.1:8000 --endpoint_model NAME --data samples/questions.jsonl "
    "--output_dir load --request_rate 1 2 4 --duration_s 60\n"
    "  vlmprof load --endpoint http://127.0.0.1:8000 --endpoint_model NAME --data samples/questions.jsonl "
    "--output_dir load \\\n"
    "    --find_rate --slo ttft:500,tpot:50,e2e:5000",
    0,
    COMMAND_OPTIONS(LOAD_OPTIONS),
    NULL,
    run_command};
