/* command_ask.c: asks a server one question and times the answer from outside. The options become a struct served_run
 * (served_prepare). The request is sent and timed (runs_measure). The answer, its cost and any doubts about them are
 * printed as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "measure/measure.h"
#include "model/image.h"
#include "results/fields.h"
#include "results/metrics.h"
#include "server/ask.h"
#include "server/checks/twins.h"
#include "server/endpoint.h"
#include "server/picture.h"
#include "server/request_knobs.h"
#include "tile/family.h"
#include "vlmprof_families.h"
#include "vlmprof_image.h"

#include <math.h>

static const struct option_spec ASK_OPTIONS[] = {
    OPTION_GROUP("the server"),
    OPTION_ENDPOINT,
    OPTION_ENDPOINT_MODEL,
    OPTIONS_OF_CLIENT,
    OPTION_REQUEST_KNOB,
    OPTION_TWINS,
    {"resize", TEXT, "WxH", NULL, 0, 0, NULL, "resize the image before sending it"},
    OPTION_SAME_IMAGE,
    {"no_cache", FLAG, NULL, NULL, 0, 0, NULL,
     "ask the server not to use its prompt cache (via cache_prompt or cache_salt, which hosted servers may reject)"},
    {"family", TEXT, "NAME", NULL, 0, 0, NULL,
     "also count the image's tokens by this model family's rule; pass the server's own limits as options (--max_pixels "
     "N), as for vlmprof tile"},
    OPTION_GROUP("the question"),
    OPTION_PROMPT,
    OPTION_MAX_NEW_TOKENS,
    OPTION_IGNORE_EOS,
    OPTION_GROUP("measuring"),
    {"num_runs", COUNT, "R", NULL, 1, 10000, NULL, "timed runs, after one untimed warm-up (default: 1)"},
    OPTION_COLD,
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

enum { TWIN_SEED = 42 };            /* of the order within pairs */

struct served_run {
    struct endpoint endpoint;
    char *words; /* the server's description of itself; NULL if it has none */
    struct request_knobs knobs;
    vp_chat_knob *setting; size_t text_knobs; /* [knobs.count]; text_knobs of them come before the image */
    const char *const *paths; size_t image_count;
    struct unique *images;    /* [image_count] the images sent, changed for each request unless --same_image is given */
    struct picture *pictures; /* [image_count] pictures of `images` */
    struct image_px *file_sizes;
    int64_t *tokens_by_rule; const char *family; /* NULL without --family */
    struct question question;
    struct timed_runs timed;
    struct twins twins; struct twin_result twin_result; /* for --twins; without it, there are no pairs */
};

/* The token count of all images by the rule. */
static int64_t rule_sum(const struct served_run *state) {
    int64_t sum = 0;
    for (size_t i = 0; state->tokens_by_rule && i < state->image_count; i++) sum += state->tokens_by_rule[i];
    return sum;
}
/* ---- the request */
/* Makes an image of another size to send. Returns 0 or an exit code with a reason. */
static int served_resize(struct served_run *state, size_t index, int is_same, const struct image_px *size, char *reason,
                         size_t capacity) {
    struct unique *unique = &state->images[index];
    vp_image image = {0, 0, NULL}, resized = {0, 0, NULL};
    int code = load_image(state->paths[index], &image, reason, capacity);
    state->file_sizes[index] = (struct image_px){image.width_px, image.height_px};
    if (!code)
        code = picture_resized(&image, size->width_px, size->height_px, &resized, &unique->picture, reason, capacity);
    if (!code && !is_same) {
        picture_free(&unique->picture);
        unique_of_pixels(resized.rgb, size->width_px, size->height_px, unique);
    }
    if (image.rgb) vp_image_free(&image);
    if (resized.rgb) vp_image_free(&resized);
    return code;
}
/* Reads an image and makes the one to send. If size is NULL, the image keeps its size. Returns 0 or an exit code with a
 * reason. */
static int served_load_image(struct served_run *state, size_t index, int is_same, const struct image_px *size,
                             char *reason, size_t capacity) {
    struct unique *unique = &state->images[index];
    const char *path = state->paths[index];
    int code;
    if (size) code = served_resize(state, index, is_same, size, reason, capacity);
    else {
        code = is_same ? picture_of_file(path, &unique->picture, reason, capacity)
                       : unique_of_file(path, unique, reason, capacity);
        state->file_sizes[index] = (struct image_px){unique->picture.width_px, unique->picture.height_px};
    }
    state->pictures[index] = unique->picture;
    return code;
}
/* Reads the images and makes the ones to send. Returns 0 or an exit code. */
static int served_load_images(const struct options *options, struct served_run *state) {
    const char *size = text_of(options, "resize");
    const int is_same = is_given(options, "same_image");
    struct image_px wanted = {0, 0};
    char reason[LINE_BYTES];
    int code = 0;
    if (!state->image_count)
        return size || is_same || is_given(options, "family") || is_given(options, "twins")
                   ? complain(EXIT_USAGE, "--resize, --same_image, --twins and --family need an image")
                   : 0;
    if (size && read_size("--resize ", size, &wanted.width_px, &wanted.height_px)) return EXIT_USAGE;
    state->images = zeroed(state->image_count, sizeof *state->images);
    state->pictures = zeroed(state->image_count, sizeof *state->pictures);
    state->file_sizes = zeroed(state->image_count, sizeof *state->file_sizes);
    for (size_t i = 0; i < state->image_count && !code; i++)
        code = served_load_image(state, i, is_same, size ? &wanted : NULL, reason, sizeof reason);
    return code ? complain(code, "%s", reason) : 0;
}
/* Counts the tokens of the images to send by the rule of --family. Returns 0 or an exit code. */
static int served_count(const struct options *options, struct served_run *state) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_family *family;
    vp_result result;
    if (!is_given(options, "family")) return 0;
    family = resize(NULL, 1, sizeof *family);
    int code = family_by_name("family", text_of(options, "family"), family);
    if (!code) code = family_set_keys(family_keys_of(options), family, 1);
    state->tokens_by_rule = zeroed(state->image_count, sizeof *state->tokens_by_rule);
    for (size_t i = 0; i < state->image_count && !code; i++) {
        vp_vision_count count;
        result = vp_family_count(family, state->pictures[i].width_px, state->pictures[i].height_px, &count, &error);
        if (result != VP_OK) code = complain_result(EXIT_INPUT, family->preset->name, result, &error);
        state->family = family->preset->name;
        state->tokens_by_rule[i] = result == VP_OK ? count.total_tokens : -1;
    }
    free(family);
    return code;
}
/* Prepares and checks everything before anything is sent to the server. Returns 0 or an exit code. */
static int served_prepare(const struct options *options, struct served_run *state) {
    struct question *question = &state->question;
    int code;
    if (!text_of(options, "prompt")) return complain(EXIT_USAGE, "ask needs a question: -p TEXT");
    state->paths = options->operands;
    state->image_count = options->operand_count;
    if (is_given(options, "twins") && number_of(options, "twins") < TWIN_PAIRS_LEAST)
        return complain(EXIT_USAGE, "--twins %lld: an estimate needs at least %d pairs",
                        (long long)number_of(options, "twins"), TWIN_PAIRS_LEAST);
    if ((code = knobs_add_all(opt(options, "request_knob"), &state->knobs)) != 0) return code;
    if (knobs_combinations(&state->knobs) > 1)
        return complain(EXIT_USAGE, "--request_knob: ask takes only one value per knob; sweep takes several");
    state->setting = resize(NULL, state->knobs.count + 1, sizeof *state->setting);
    knobs_combination(&state->knobs, 0, state->setting);
    state->text_knobs = knobs_image_last(state->setting, state->knobs.count);
    if ((code = served_load_images(options, state)) != 0 || (code = served_count(options, state)) != 0
        || (code = endpoint_open(endpoint_settings_of(options), text_of(options, "endpoint"),
                                 text_of(options, "endpoint_model"), &state->endpoint)) != 0
        || (code = endpoint_choose_model(&state->endpoint)) != 0)
        return code;
    question->pictures = state->pictures;
    question->picture_count = (int32_t)state->image_count;
    if (!is_given(options, "same_image")) question->unique = state->images;
    question->request.text = text_of(options, "prompt");
    question->request.max_tokens = (int32_t)number_of(options, "max_new_tokens");
    question->request.ignore_eos = is_given(options, "ignore_eos");
    question->request.no_cache = is_given(options, "no_cache");
    question->request.knobs = state->setting;
    question->request.knob_count = state->knobs.count;
    return ask_check(&state->endpoint, question);
}
static int ask_pass(void *with, struct pass_result *run) {
    struct served_run *state = with;
    struct sent_request sent;
    char reason[LINE_BYTES];
    const int code = ask_once(&state->endpoint, &state->question, run, &sent, reason, sizeof reason);
    if (code && code != EXIT_INTERRUPTED) complain(code, "%s", reason);
    return code && interrupted ? EXIT_INTERRUPTED : code;
}

/* ---- twins */
/* Measures the pairs of --twins. After Ctrl-C or a failure the complete pairs are kept. Returns 0 or an exit code. */
static int served_twins(const struct options *options, struct served_run *state) {
    struct twin_memory memory = {0};
    char reason[LINE_BYTES] = "";
    struct twin_plan plan = {0};
    plan.endpoint = &state->endpoint;
    plan.question = state->question;
    plan.text_knob_count = state->text_knobs;
    plan.pairs = (int32_t)number_of(options, "twins");
    plan.seed = TWIN_SEED;
    plan.name = "twins";
    plan.memory = &memory;
    int code = twins_measure(&plan, &state->twins, reason, sizeof reason);
    state->twin_result = twins_result(state->twins.pairs, state->twins.count);
    twin_forget(&memory);
    if (!code || code == EXIT_INTERRUPTED) return 0;
    return complain(code, "--twins: %s; %d of %d pairs are complete", reason, state->twins.count, plan.pairs);
}

/* ---- doubts about the results */
static void warn_of_cache(const struct options *options, struct served_run *state) {
    const char *advice = is_given(options, "no_cache")                           ? "--no_cache did not prevent it"
                         : state->image_count && is_given(options, "same_image") ? "this would not happen without "
                                                                                   "--same_image"
                                                                                 : "--no_cache may prevent this";
    int32_t count = 0, first = 0;
    for (int32_t i = 0; i < state->timed.count; i++)
        if (is_prompt_cached(&state->timed.runs[i]) && !count++) first = i;
    if (count)
        text_list_add(&state->timed.warnings,
                      "%d of %d runs read the prompt from the server's cache (run %d: %lld of %lld tokens), so their "
                      "TTFT is for a cached prompt; %s", count, state->timed.count, first + 1,
                      (long long)state->timed.runs[first].served->usage.cached_tokens,
                      (long long)state->timed.runs[first].served->usage.prompt_tokens, advice);
}
/* If pieces contain many tokens, the first one may as well. */
static void warn_of_pieces(struct served_run *state) {
    const struct served *served = state->timed.runs[0].served;
    const int64_t tokens = served->usage.completion_tokens, pieces = (int64_t)served->piece_count;
    if (served->is_streamed && pieces && tokens >= 2 * pieces)
        text_list_add(&state->timed.warnings,
                      "%lld tokens came in %lld piece%s: the first piece may contain several tokens, so TTFT may be "
                      "too long and TPOT too short; prefer the server's own times if it reports them",
                      (long long)tokens, (long long)pieces, plural_s((int64_t)pieces));
}
/* An image costs at least its own tokens, and the same request always has the same number. */
static void warn_of_dropped_image(struct served_run *state) {
    int64_t prompt = -1, most = -1;
    for (int32_t i = 0; i < state->timed.count; i++) {
        const int64_t tokens = state->timed.runs[i].served->usage.prompt_tokens;
        if (tokens >= 0 && (prompt < 0 || tokens < prompt)) prompt = tokens;
        if (tokens > most) most = tokens;
    }
    if (state->image_count && prompt < most)
        text_list_add(&state->timed.warnings, "identical requests have prompts of %lld to %lld tokens: the server "
                      "dropped an image in some; run vlmprof audit --repeat 10", (long long)prompt, (long long)most);
    char why[120] = "too few for an image";
    if (state->family && prompt >= 0 && prompt < rule_sum(state))
        snprintf(why, sizeof why, "but by %.60s's rule images need %lld", state->family, (long long)rule_sum(state));
    else if (!is_image_missing(&state->question, prompt)) return;
    text_list_add(&state->timed.warnings, "the whole prompt has %lld tokens, %s: the server dropped an image or does "
                  "not count it; run vlmprof audit", (long long)prompt, why);
}
/* A buffered answer that arrives all at once shows the speed of the network, not the model's decode rate. */
static void warn_of_rate(struct served_run *state) {
    const double rate = range_of_runs(state->timed.runs, state->timed.count, term_of, TERM_DECODE_RATE).median;
    if (rate > CREDIBLE_TOKENS_PER_S)
        text_list_add(&state->timed.warnings, "%.0f tokens/s is not credible, because no server decodes that fast: the "
                                              "answer was buffered (by a proxy, or by a server that does not stream) "
                                              "and arrived all at once, so TTFT is the time of the whole answer, and "
                                              "TPOT is meaningless", rate);
}
static void served_warn(const struct options *options, struct served_run *state) {
    vp_noise_summary noise = state->timed.noise;
    int32_t new_count = 0;
    const int64_t wanted = number_of(options, "max_new_tokens");
    for (size_t i = 0; i < state->endpoint.warnings.count; i++)
        text_list_copy(&state->timed.warnings, state->endpoint.warnings.items[i]);
    warn_of_cache(options, state);
    warn_of_pieces(state);
    warn_of_dropped_image(state);
    warn_of_rate(state);
    twins_warn(&state->timed.warnings, &state->twin_result);
    for (int32_t i = 0; i < state->timed.count; i++) {
        const struct served *served = state->timed.runs[i].served;
        if (served->attempts > 1)
            text_list_add(&state->timed.warnings, "run %d took %d attempts: its times are those of the last one", i + 1,
                          served->attempts);
        new_count += served->is_new_connection;
        if (is_given(options, "ignore_eos") && served->usage.completion_tokens >= 0
            && served->usage.completion_tokens != wanted)
            text_list_add(&state->timed.warnings, "run %d: --ignore_eos had no effect: the answer has %lld of %lld "
                                                  "tokens", i + 1,
                          (long long)served->usage.completion_tokens, (long long)wanted);
    }
    if (new_count)
        text_list_add(&state->timed.warnings,
                      "%d of %d run%s opened a new connection%s; T_client_delay includes the time to connect",
                      new_count, state->timed.count, plural_s(state->timed.count),
                      new_count > 1 ? " because the server had closed the previous one" : "");
    if (state->family && state->timed.runs[0].served->usage.image_tokens >= 0
        && state->timed.runs[0].served->usage.image_tokens != rule_sum(state))
        text_list_add(&state->timed.warnings, "the server counts %lld image tokens, but %s's rule counts %lld",
                      (long long)state->timed.runs[0].served->usage.image_tokens, state->family,
                      (long long)rule_sum(state));
    /* a server on this machine counts as one of the other processes */
    if (endpoint_is_local(&state->endpoint)) noise.busy_samples = 0;
    runs_warn(&state->timed, &noise);
}

/* ---- as text */
static const char *count_text(int64_t count, char out[32]) {
    if (count < 0) return "?";
    snprintf(out, 32, "%lld", (long long)count);
    return out;
}
static void print_head(const struct served_run *state) {
    const struct pass_result *run = &state->timed.runs[0];
    const struct served *served = run->served;
    struct text_buffer knobs = {NULL, 0, 0};
    print_plain("answer   ");
    print_answer(run->answer, run->answer_bytes);
    if (!run->answer_bytes && served->reasoning) print_plain("(only reasoning: raise --max_new_tokens)");
    print_plain("%s\n", answers_are_equal(state->timed.runs, state->timed.count)
                            ? ""
                            : "   (run 1; other runs gave different answers)");
    print_plain("model    %s", state->endpoint.model);
    if (served->model && strcmp(served->model, state->endpoint.model))
        print_plain(" (the server reports %s)", served->model);
    knobs_words(&state->knobs, 0, &knobs);
    print_plain("%s%s\n", knobs.bytes ? ", " : "", knobs.bytes ? knobs.data : "");
    free(knobs.data);
    print_plain("server   %s%s%s, %s\n", state->endpoint.url, state->words ? ", " : "",
                state->words ? state->words : "", vp_chat_api_path(state->endpoint.api));
    for (size_t i = 0; i < state->image_count; i++) {
        const struct picture *picture = &state->pictures[i];
        const struct image_px *file = &state->file_sizes[i];
        print_plain("image    %dx%d", picture->width_px, picture->height_px);
        if (file->width_px != picture->width_px || file->height_px != picture->height_px)
            print_plain(", resized from %dx%d", file->width_px, file->height_px);
        print_plain("; sent as %s, %zu bytes", picture->media_type, picture->byte_count);
        if (state->family && state->image_count > 1)
            print_plain("; %lld tokens by %s's rule", (long long)state->tokens_by_rule[i], state->family);
        print_plain("\n");
    }
}
static void print_tokens(const struct served_run *state) {
    const struct served *served = state->timed.runs[0].served;
    const vp_chat_usage *usage = &served->usage;
    char text[3][32];
    print_plain("prompt   %s tokens", count_text(usage->prompt_tokens, text[0]));
    if (usage->image_tokens >= 0)
        print_plain(" = %s image + %s text", count_text(usage->image_tokens, text[1]),
                    count_text(text_tokens_of(usage), text[2]));
    else if (state->image_count)
        print_plain(state->image_count == 1 ? ", text and image; the server does not report the image's share"
                                            : ", text and images; the server does not report the images' share");
    if (state->family)
        print_plain("; by %s's rule, the image%s %lld", state->family, state->image_count == 1 ? " has" : "s have",
                    (long long)rule_sum(state));
    if (usage->cached_tokens >= 0)
        print_plain("\ncache    %s prompt tokens came from the server's cache\n",
                    count_text(usage->cached_tokens, text[1]));
    else print_plain("\ncache    the server does not report whether it used one\n");
    print_plain("output   %s token%s", count_text(usage->completion_tokens, text[0]),
                plural_s((int64_t)usage->completion_tokens));
    if (usage->reasoning_tokens > 0) print_plain(", %lld of them reasoning,", (long long)usage->reasoning_tokens);
    if (served->is_streamed)
        print_plain(" in %zu piece%s", served->piece_count, plural_s((int64_t)served->piece_count));
    else print_plain(" in one body");
    if (served->finish_reason) print_plain("; finish_reason %s", served->finish_reason);
    putchar('\n');
}
/* The server's own measurements, as it sent them. */
static void print_server_timings(const struct served *served) {
    if (!served->timings || !strcmp(served->timings, "{}")) return;
    print_plain("\nthe server's own measurements of run 1: ");
    print_visible(served->timings, strlen(served->timings));
    putchar('\n');
}
static const char *ms_text(double ms, char out[80]) {
    snprintf(out, 80, "%s ms", number_measured(ms, (double)NAN, (double)NAN).text);
    return out;
}
/* The cost of the image, measured by twins. */
static const char *const BASES[TWINS_BASES] = {"TTFT", "time to the first chunk of the stream",
                                               "the server's own prompt time"};
static void print_twins(const struct served_run *state) {
    const struct twin_result *result = &state->twin_result;
    char words[RANGE_WORDS], text[3][80];
    if (!state->twins.count) return;
    print_plain("\nimage cost: %s of the image request minus that of a text request with the same number of "
                "prompt tokens, %lld\n", BASES[result->basis], (long long)state->twins.prompt_tokens);
    print_plain("%-19s %s ms   preprocessing, upload and vision encoder; the image adds %lld tokens to the "
                "prompt%s\n", "T_image_outside",
                number_measured(result->difference.median, result->difference.low, result->difference.high).text,
                (long long)state->twins.image_tokens, result->adjusted ? "; adjusted" : "");
    if (result->difference.low <= 0 && result->difference.high >= 0)
        print_plain("%-19s the interval contains 0, so the image may cost nothing: raise --twins\n", "");
    print_plain("%-19s %s with the image, %s with the text, %s for a few tokens (the floor); these are medians, so "
                "their difference need not be the median of the differences\n",
                "TTFT", ms_text(result->image_ms, text[0]), ms_text(result->text_ms, text[1]),
                ms_text(result->floor_ms, text[2]));
    range_words((size_t)result->pairs, "pairs", result->difference.level, words);
    print_plain("%d alternating pair%s after a warm-up%s%s\n", result->pairs, plural_s((int64_t)result->pairs),
                words[0] ? "; " : "", words);
}
static void print_served(const struct served_run *state) {
    print_head(state);
    print_tokens(state);
    runs_print(&state->timed);
    runs_print_terms(&state->timed);
    print_twins(state);
    print_server_timings(state->timed.runs[0].served);
}

/* ---- as JSON */
/* Writes the size of an image in the file and of the image sent; nulls if picture is NULL. */
static void put_sent_image(vp_json_writer *writer, const struct served_run *state, size_t index,
                           const struct picture *picture) {
    if (picture) {
        put_pair(writer, "image_size", state->file_sizes[index].height_px, state->file_sizes[index].width_px);
        put_pair(writer, "sent_size", picture->height_px, picture->width_px);
    } else PUT(writer, KEY_NULL("image_size"), KEY_NULL("sent_size"));
    PUT(writer, KEY_KNOWN("sent_bytes", picture, (int64_t)(picture ? picture->byte_count : 0)),
        KEY("media_type", picture ? picture->media_type : NULL));
}
static void put_served_request(vp_json_writer *writer, const struct served_run *state) {
    const struct picture *picture = state->image_count == 1 ? state->pictures : NULL;
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-served-run-1"), KEY("endpoint", state->endpoint.url),
        KEY("endpoint_model", state->endpoint.model), KEY("api", vp_chat_api_name(state->endpoint.api)),
        KEY("server", state->words), KEY("model", state->timed.runs[0].served->model));
    put_knobs(writer, state->setting, state->knobs.count);
    PUT(writer, KEY("image", picture ? state->paths[0] : NULL));
    put_sent_image(writer, state, 0, picture);
    if (state->image_count < 2) return;
    PUT(writer, KEY_ARRAY("images"));
    for (size_t i = 0; i < state->image_count; i++) {
        PUT(writer, KEY_OBJECT(NULL), KEY("image", state->paths[i]));
        put_sent_image(writer, state, i, &state->pictures[i]);
        PUT(writer, KEY_KNOWN("image_tokens_by_rule", state->family, state->tokens_by_rule[i]), END_OBJECT);
    }
    PUT(writer, END_ARRAY);
}
static void put_served_answer(vp_json_writer *writer, const struct served_run *state) {
    const struct pass_result *run = &state->timed.runs[0];
    vp_json_key(writer, "answer");
    vp_json_string_bytes(writer, run->answer, run->answer_bytes);
    PUT(writer, KEY("reasoning", run->served->reasoning), KEY("finish_reason", run->served->finish_reason),
        KEY_BOOL("answers_equal_over_runs", answers_are_equal(state->timed.runs, state->timed.count)));
    put_usage(writer, &run->served->usage);
    PUT(writer, KEY("family", state->family), KEY_KNOWN("image_tokens_by_rule", state->family, rule_sum(state)),
        KEY("pieces", (int64_t)run->served->piece_count), KEY("attempts", run->served->attempts));
}
static void print_served_json(const struct options *options, const struct served_run *state) {
    const struct timed_runs *timed = &state->timed;
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    put_served_request(&writer, state);
    put_served_answer(&writer, state);
    runs_put_count(&writer, timed);
    for (int metric = 0; metric < METRIC_STAGE; metric++) {
        const double mean = metric_mean(timed->runs, timed->count, metric);
        if (!is_left_out(metric, mean)) PUT(&writer, KEY(METRIC_KEYS[metric], mean));
    }
    runs_put_rates(&writer, timed);
    put_null_reasons(&writer, timed->runs, timed->count);
    PUT(&writer, KEY_ARRAY("itl")); /* gaps of all runs, in order */
    for (int32_t i = 0; i < timed->count; i++) put_run_gaps(&writer, timed->runs[i].served);
    PUT(&writer, END_ARRAY);
    put_server_timings(&writer, timed->runs[0].served);
    if (state->twins.count)
        twins_put(&writer, &state->twin_result, state->twins.prompt_tokens, state->twins.image_tokens);
    else PUT(&writer, KEY_NULL("T_image_outside"));
    if (state->twins.count) {
        PUT(&writer, KEY_OBJECT("twins"), KEY_ARRAY("pairs"));
        for (int32_t i = 0; i < state->twins.count; i++) {
            PUT(&writer, KEY_OBJECT(NULL));
            fields_put(&writer, &TWIN_PAIR, &state->twins.pairs[i]);
            PUT(&writer, END_OBJECT);
        }
        PUT(&writer, END_ARRAY, END_OBJECT);
    } else PUT(&writer, KEY_NULL("twins"));
    runs_put_medians(&writer, timed);
    put_served_runs(&writer, timed->runs, timed->count);
    runs_put_end(&writer, options, timed, NULL, NULL, vp_server_library(state->endpoint.server));
}

static int run_command(const struct options *options) {
    struct served_run state;
    const struct pass_backend server = {&state, ask_pass, NULL};
    char reason[LINE_BYTES];
    int code, failed = 0;
    memset(&state, 0, sizeof state);
    code = served_prepare(options, &state);
    state.timed.is_cold = is_given(options, "cold");
    if (!code) code = runs_measure(&server, (int32_t)number_of(options, "num_runs"), 0, &state.timed);
    if (code && state.timed.count) { /* the runs before it are still printed */
        failed = code;
        code = complain(0, "run %d of %d failed: the results cover the %d before it", state.timed.count + 1,
                        state.timed.capacity, state.timed.count);
    }
    /* not before the runs, because it would already connect */
    if (!code && !failed && !interrupted) state.words = endpoint_words(&state.endpoint);
    if (!code && !failed && state.timed.count && !interrupted && is_given(options, "twins"))
        failed = served_twins(options, &state); /* the runs and the complete pairs are still printed */
    if (!code && state.timed.count) {
        served_warn(options, &state);
        if (is_given(options, "json")) print_served_json(options, &state);
        else print_served(&state);
        if (twins_are_wrong(&state.twin_result, reason, sizeof reason)) code = complain(EXIT_WORK, "%s", reason);
    }
    if ((!code || code == EXIT_WORK) && interrupted) {
        runs_print_interrupted(&state.timed);
        code = EXIT_INTERRUPTED;
    }
    runs_close(&state.timed);
    twins_free(&state.twins);
    for (size_t i = 0; state.images && i < state.image_count; i++) unique_free(&state.images[i]);
    FREE_ALL(state.images, state.pictures, state.file_sizes, state.tokens_by_rule);
    knobs_free(&state.knobs);
    FREE_ALL(state.setting, state.words);
    endpoint_close(&state.endpoint);
    return code ? code : failed;
}
const struct command command_ask = {
    "ask", "[IMAGE...] -p TEXT --endpoint URL", "ask a server one question and time the answer on the client side",
    "vlmprof ask cat.jpg -p \"What is this?\" --endpoint http://127.0.0.1:8000 --endpoint_model NAME --num_runs 5\n"
    "  vlmprof ask cat.jpg -p \"What is this?\" --endpoint http://127.0.0.1:8000 --endpoint_model NAME --twins 20",
    IMAGES_MOST, COMMAND_OPTIONS(ASK_OPTIONS), "family", run_command};
