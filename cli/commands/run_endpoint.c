/* run_endpoint.c: `run` with --endpoint: a server answers the question, seen from its client.
 * Options become a struct served_run (served_prepare); the request is sent and timed (served_measure); the answer, what
 * it cost and what is doubtful about it are printed as text or JSON. */
#include "commands/run_endpoint.h"

#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/noise.h"
#include "request/provenance.h"
#include "server/ask.h"
#include "server/picture.h"
#include "server/twin_pairs.h"
#include "tile/family.h"
#include "tile/image.h"
#include "tile/tile_options.h"
#include "vlmprof.h"
#include "vlmprof_families.h"
#include "vlmprof_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct served_run {
    struct endpoint endpoint;
    char *words; /* what the server says that it is; NULL: nothing */
    struct request_knobs knobs;
    vp_chat_knob *setting; size_t text_knobs; /* [knobs.count]; those before the image's own */
    const char *image_path;
    vp_image image;         /* the pixels that are sent; none where the file is sent as it is */
    struct picture picture; /* what is sent, but for --unique_image */
    int32_t file_width_px, file_height_px;
    int64_t tokens_by_rule; const char *family; /* NULL: no --family */
    struct pass_result *runs; int32_t run_count, run_capacity;
    struct twins twins; struct twin_result twin_result; /* of --twins; no pairs: nobody asked */
    vp_noise_summary noise;
    struct text_list warnings;
};

/* ---- the request */
/* Resizes the image, which then has the pixels that are sent. Returns 0 or an exit code with a reason. */
static int served_resize(struct served_run *state, int32_t width_px, int32_t height_px, char *reason, size_t capacity) {
    vp_image resized;
    int code = picture_resized(&state->image, width_px, height_px, &resized, &state->picture, reason, capacity);
    if (code) return code;
    vp_image_free(&state->image);
    state->image = resized;
    return 0;
}
/* Reads the image, and makes of it what is sent. Returns 0 or an exit code. */
static int served_load_image(const struct options *options, struct served_run *state) {
    const char *size = text_of(options, "resize");
    char reason[LINE_BYTES];
    int64_t width = 0, height = 0;
    int code = 0;
    if (!state->image_path)
        return size || is_given(options, "unique_image") || is_given(options, "family") || is_given(options, "twins")
                   ? complain(EXIT_USAGE, "--resize, --unique_image, --twins and --family need an image")
                   : 0;
    if (size && (!can_parse_size(size, SIZE_SEPARATORS, &width, &height) || width < 1 || height < 1
                 || width > INT32_MAX || height > INT32_MAX))
        return complain(EXIT_USAGE, "--resize: \"%.60s\": want WIDTHxHEIGHT in pixels, like 640x480", size);
    if (size || is_given(options, "unique_image") || is_given(options, "twins")) {
        code = load_image(state->image_path, &state->image, reason, sizeof reason);
        state->file_width_px = state->image.width_px;
        state->file_height_px = state->image.height_px;
        if (!code && size) code = served_resize(state, (int32_t)width, (int32_t)height, reason, sizeof reason);
        else if (!code)
            picture_of_pixels(state->image.rgb, state->image.width_px, state->image.height_px, &state->picture);
    } else {
        code = picture_of_file(state->image_path, &state->picture, reason, sizeof reason);
        state->file_width_px = state->picture.width_px;
        state->file_height_px = state->picture.height_px;
    }
    return code ? complain(code, "%s", reason) : 0;
}
/* --family: what the image that is sent costs by its rule. Returns 0 or an exit code. */
static int served_count(const struct options *options, struct served_run *state) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count count;
    vp_family *family;
    vp_result result;
    int code;
    if (!is_given(options, "family")) return 0;
    family = resize(NULL, 1, sizeof *family);
    code = family_by_name(text_of(options, "family"), family);
    if (!code) code = family_set_keys(options, family, 1);
    if (!code) {
        result = vp_family_count(family, state->picture.width_px, state->picture.height_px, &count, &error);
        if (result != VP_OK) code = complain_result(EXIT_INPUT, family->preset->name, result, &error);
        state->family = family->preset->name;
        state->tokens_by_rule = result == VP_OK ? count.total_tokens : -1;
    }
    free(family);
    return code;
}
/* The request's body; with --unique_image and --no_cache another one each time. Returns 0 or an exit code. */
static int served_body(const struct options *options, const struct served_run *state, vp_exchange *exchange) {
    static uint64_t turn;
    const uint64_t once = hash_number(hash_number(hash_number(HASH_START, vp_clock_ns()), (int64_t)getpid()),
                                      (int64_t)turn++);
    struct picture marked;
    struct question question;
    vp_error error = {VP_OK, -1, "", ""};
    char salt[32];
    vp_result result;
    memset(&marked, 0, sizeof marked);
    memset(&question, 0, sizeof question);
    snprintf(salt, sizeof salt, "vlmprof-%016llx", (unsigned long long)once);
    if (state->image_path) question.picture = &state->picture;
    if (is_given(options, "unique_image")) {
        picture_marked(&state->image, once, &marked);
        question.picture = &marked;
    }
    question.text = text_of(options, "prompt");
    question.max_tokens = (int32_t)number_of(options, "max_new_tokens");
    question.ignore_eos = is_given(options, "ignore_eos");
    question.no_cache = is_given(options, "no_cache");
    question.cache_salt = question.no_cache ? salt : NULL;
    question.knobs = state->setting;
    question.knob_count = state->knobs.count;
    result = ask_begin(&state->endpoint, &question, exchange, &error);
    picture_free(&marked);
    return result == VP_OK ? 0 : complain_result(EXIT_USAGE, "--request_knob", result, &error);
}
/* Makes everything ready that can be wrong before the server is asked. Returns 0 or an exit code. */
static int served_prepare(const struct options *options, struct served_run *state) {
    vp_exchange exchange;
    int code;
    if (!text_of(options, "prompt"))
        return complain(EXIT_USAGE, "%s needs a question: -p TEXT", options->command->name);
    if (options->operand_count) state->image_path = options->operands[0];
    if ((code = knobs_of_options(options, &state->knobs)) != 0) return code;
    if (knobs_combinations(&state->knobs) > 1)
        return complain(EXIT_USAGE, "--request_knob: run takes one value of each; sweep measures several");
    state->setting = resize(NULL, state->knobs.count + 1, sizeof *state->setting);
    knobs_combination(&state->knobs, 0, state->setting);
    state->text_knobs = knobs_image_last(state->setting, state->knobs.count);
    if ((code = served_load_image(options, state)) != 0 || (code = served_count(options, state)) != 0
        || (code = endpoint_open(options, text_of(options, "endpoint"), text_of(options, "endpoint_model"),
                                 &state->endpoint)) != 0
        || (code = endpoint_needs_model(&state->endpoint)) != 0
        || (code = served_body(options, state, &exchange)) != 0)
        return code;
    ask_free(&exchange);
    return 0;
}
/* Sends the request once. Returns 0 or an exit code. */
static int served_once(const struct options *options, struct served_run *state, struct pass_result *run) {
    vp_exchange exchange;
    int code = served_body(options, state, &exchange);
    if (code) return code;
    code = endpoint_ask(&state->endpoint, &exchange);
    if (!code) ask_result(&exchange, run);
    ask_free(&exchange);
    return code;
}
/* Sends it untimed (not with --cold), then --num_runs times. After Ctrl-C the whole runs stay. Returns 0 or an exit
 * code. */
static int served_measure(const struct options *options, struct served_run *state) {
    vp_noise_reading reading;
    int code = 0;
    state->run_capacity = is_given(options, "num_runs") ? (int32_t)number_of(options, "num_runs") : 1;
    state->runs = runs_make(state->run_capacity, 0);
    end_in_order();
    if (!is_given(options, "cold")) {
        struct pass_result *warm_up = runs_make(1, 0);
        show_progress("warm-up");
        code = served_once(options, state, warm_up);
        runs_free(warm_up, 1);
    }
    noise_begin(&state->noise, &reading);
    while (!code && state->run_count < state->run_capacity && !interrupted) {
        show_progress("run %d of %d", state->run_count + 1, state->run_capacity);
        code = served_once(options, state, &state->runs[state->run_count]);
        if (!code) state->run_count++;
    }
    noise_end(&state->noise, &reading);
    close_progress();
    /* not before the runs: it would connect for them */
    if (!code && !interrupted) state->words = endpoint_words(&state->endpoint);
    return code == EXIT_INTERRUPTED || interrupted ? 0 : code;
}

/* ---- twins */
/* The pairs of --twins. After Ctrl-C the whole pairs stay. Returns 0 or an exit code. */
static int served_twins(const struct options *options, struct served_run *state) {
    struct twin_memory memory = {NULL, 0, 0, 0};
    char reason[LINE_BYTES] = "";
    struct twin_plan plan;
    int code;
    memset(&plan, 0, sizeof plan);
    plan.endpoint = &state->endpoint;
    plan.image = &state->image;
    plan.text = text_of(options, "prompt");
    plan.knobs = state->setting;
    plan.knob_count = state->knobs.count;
    plan.text_knob_count = state->text_knobs;
    plan.no_cache = is_given(options, "no_cache");
    plan.method = twin_method_of(options);
    plan.pairs = (int32_t)number_of(options, "twins");
    plan.seed = (uint64_t)number_of(options, "seed");
    plan.name = "twins";
    plan.memory = &memory;
    code = twins_measure(&plan, &state->twins, reason, sizeof reason);
    twin_forget(&memory);
    state->twin_result = twins_result(state->twins.pairs, state->twins.count, plan.method);
    return code && code != EXIT_INTERRUPTED ? complain(code, "--twins: %s", reason) : 0;
}

/* ---- what is doubtful */
/* A prompt counts as cached from the half on: the first tokens of a chat template are always the same. */
static int is_cached(const struct pass_result *run) {
    const vp_chat_usage *usage = &run->served->usage;
    return usage->cached_tokens > 0 && usage->cached_tokens * 2 >= usage->prompt_tokens;
}
static void warn_of_cache(const struct options *options, struct served_run *state) {
    const char *advice = is_given(options, "no_cache")                              ? "--no_cache has no effect here"
                         : state->image_path && !is_given(options, "unique_image") ? "--unique_image avoids that"
                                                                                    : "--no_cache may avoid that";
    int32_t count = 0, first = 0;
    for (int32_t i = 0; i < state->run_count; i++)
        if (is_cached(&state->runs[i]) && !count++) first = i;
    if (count)
        text_list_add(&state->warnings,
                      "%d of %d runs read the prompt from the server's cache (run %d: %lld of %lld tokens): their TTFT "
                      "is that of a cached prompt; %s", count, state->run_count, first + 1,
                      (long long)state->runs[first].served->usage.cached_tokens,
                      (long long)state->runs[first].served->usage.prompt_tokens, advice);
}
/* Where a piece holds many tokens, the first one does, too. */
static void warn_of_pieces(struct served_run *state) {
    const struct served *served = state->runs[0].served;
    const int64_t tokens = served->usage.completion_tokens, pieces = (int64_t)served->piece_count;
    if (served->is_streamed && pieces && tokens >= 2 * pieces)
        text_list_add(&state->warnings,
                      "%lld tokens came in %lld piece%s: the first piece may hold several tokens, so TTFT may be too "
                      "long and TPOT too short; where the server gives its own times, they are better",
                      (long long)tokens, (long long)pieces, pieces == 1 ? "" : "s");
}
static void served_warn(const struct options *options, struct served_run *state) {
    vp_noise_summary noise = state->noise;
    int32_t new_count = 0;
    const int64_t wanted = number_of(options, "max_new_tokens");
    for (size_t i = 0; i < state->endpoint.warnings.count; i++)
        text_list_copy(&state->warnings, state->endpoint.warnings.items[i]);
    warn_of_cache(options, state);
    warn_of_pieces(state);
    twins_warn(&state->warnings, &state->twin_result);
    for (int32_t i = 0; i < state->run_count; i++) {
        const struct served *served = state->runs[i].served;
        if (served->attempts > 1)
            text_list_add(&state->warnings, "run %d took %d attempts: its times are those of the last one", i + 1,
                          served->attempts);
        new_count += served->is_new_connection;
        if (is_given(options, "ignore_eos") && served->usage.completion_tokens >= 0
            && served->usage.completion_tokens != wanted)
            text_list_add(&state->warnings, "run %d: --ignore_eos had no effect: %lld tokens of %lld", i + 1,
                          (long long)served->usage.completion_tokens, (long long)wanted);
    }
    if (new_count)
        text_list_add(&state->warnings, "%d of %d runs opened a new connection%s: connecting is in their times",
                      new_count, state->run_count, new_count > 1 ? ", as the server had closed the last one" : "");
    if (state->family && state->runs[0].served->usage.image_tokens >= 0
        && state->runs[0].served->usage.image_tokens != state->tokens_by_rule)
        text_list_add(&state->warnings, "the server counts %lld image tokens, the rule of %s %lld",
                      (long long)state->runs[0].served->usage.image_tokens, state->family,
                      (long long)state->tokens_by_rule);
    /* a server on this machine is one of the other processes */
    if (endpoint_is_local(&state->endpoint)) noise.busy_samples = 0;
    noise_warn(&state->warnings, &noise, NULL, 1, NOISE_ADVICE_RUN);
    for (size_t i = 0; i < state->warnings.count; i++) complain(0, "%s", state->warnings.items[i]);
}
static int answers_are_equal(const struct served_run *state) {
    int same = 1;
    for (int32_t i = 1; i < state->run_count; i++)
        same &= state->runs[i].answer_bytes == state->runs[0].answer_bytes
                && !memcmp(state->runs[i].answer, state->runs[0].answer, state->runs[0].answer_bytes);
    return same;
}

/* ---- as text */
static const char *count_text(int64_t count, char out[32]) {
    if (count < 0) return "?";
    snprintf(out, 32, "%lld", (long long)count);
    return out;
}
static void print_head(const struct served_run *state) {
    const struct pass_result *run = &state->runs[0];
    const struct served *served = run->served;
    struct text_buffer knobs = {NULL, 0, 0};
    print_plain("answer   ");
    print_visible(run->answer, run->answer_bytes);
    if (!run->answer_bytes && served->reasoning) print_plain("(nothing but reasoning: raise --max_new_tokens)");
    print_plain("%s\n", answers_are_equal(state) ? "" : "   (run 1; other runs gave other answers)");
    print_plain("model    %s", state->endpoint.model);
    if (served->model && strcmp(served->model, state->endpoint.model))
        print_plain(" (the server says %s)", served->model);
    knobs_words(&state->knobs, 0, &knobs);
    print_plain("%s%s\n", knobs.bytes ? ", " : "", knobs.bytes ? knobs.data : "");
    free(knobs.data);
    print_plain("server   %s%s%s, %s\n", state->endpoint.url, state->words ? ", " : "",
                state->words ? state->words : "", vp_chat_api_path(state->endpoint.api));
    if (!state->image_path) return;
    print_plain("image    %dx%d", state->picture.width_px, state->picture.height_px);
    if (state->file_width_px != state->picture.width_px || state->file_height_px != state->picture.height_px)
        print_plain(", resized from %dx%d", state->file_width_px, state->file_height_px);
    print_plain("; sent as %s, %zu bytes\n", state->picture.media_type, state->picture.byte_count);
}
static void print_tokens(const struct served_run *state) {
    const struct served *served = state->runs[0].served;
    const vp_chat_usage *usage = &served->usage;
    char text[3][32];
    print_plain("prompt   %s tokens", count_text(usage->prompt_tokens, text[0]));
    if (usage->image_tokens >= 0)
        print_plain(" = %s image + %s text", count_text(usage->image_tokens, text[1]),
                    count_text(text_tokens_of(usage), text[2]));
    else if (state->image_path) print_plain(", text and image; the server does not say how many are the image's");
    if (state->family)
        print_plain("; by the rule of %s the image has %lld", state->family, (long long)state->tokens_by_rule);
    if (usage->cached_tokens >= 0)
        print_plain("\ncache    %s of the prompt's tokens came from the server's cache\n",
                    count_text(usage->cached_tokens, text[1]));
    else print_plain("\ncache    the server does not say whether the prompt came from one\n");
    print_plain("output   %s token%s", count_text(usage->completion_tokens, text[0]),
                usage->completion_tokens == 1 ? "" : "s");
    if (usage->reasoning_tokens > 0) print_plain(", %lld of them reasoning,", (long long)usage->reasoning_tokens);
    if (served->is_streamed) print_plain(" in %zu piece%s", served->piece_count, served->piece_count == 1 ? "" : "s");
    else print_plain(" in one body");
    if (served->finish_reason) print_plain("; finish_reason %s", served->finish_reason);
    putchar('\n');
}
static void print_term(const struct served_run *state, const char *key, const char *number, const char *meaning,
                       const char *why) {
    print_plain("%-19s %-*s %s%s%s\n", key, state->run_count < 3 ? 18 : 29, number, meaning, why ? "; " : "",
                why ? why : "");
}
/* From piece to piece in all runs: the middle one and the longest. */
static void print_gaps(const struct served_run *state) {
    struct text_buffer number = {NULL, 0, 0};
    double *gaps = NULL;
    size_t count = 0;
    for (int32_t i = 0; i < state->run_count; i++) {
        gaps = resize(gaps, count + state->runs[i].served->piece_count + 1, sizeof *gaps);
        count += served_gaps(state->runs[i].served, gaps + count);
    }
    if (count) {
        text_add_string(&number, number_measured(median_range_of(gaps, count).median, (double)NAN, (double)NAN).text);
        text_add_string(&number, "..");
        text_add_string(&number, number_measured(gaps[count - 1], (double)NAN, (double)NAN).text);
        text_add_string(&number, " ms");
        print_term(state, "itl", number.data, served_meaning(TERM_STEP), "median..longest");
    }
    free(gaps);
    free(number.data);
}
static double first_output_of(const struct pass_result *run, int which) {
    (void)which;
    return run->served->first_output_ns < 0 ? (double)NAN : (double)run->served->first_output_ns / 1e6;
}
/* Milliseconds between the first byte sent and the headers. */
static double waiting_of(const struct pass_result *run, int which) {
    (void)which;
    return run->served->sent_ns < 0 || run->served->headers_ns < 0
               ? (double)NAN
               : (double)(run->served->headers_ns - run->served->sent_ns) / 1e6;
}
/* A row of milliseconds that is no term. */
static void print_ms(const struct served_run *state, const char *key, double (*number)(const struct pass_result *, int),
                     const char *meaning) {
    const struct median_range range = range_of_runs(state->runs, state->run_count, number, 0);
    char text[80];
    snprintf(text, sizeof text, "%s%s", number_measured(range.median, range.low, range.high).text,
             isfinite(range.median) ? " ms" : "");
    print_term(state, key, text, meaning, NULL);
}
static void print_times(const struct options *options, const struct served_run *state) {
    static const int shown[] = {METRIC_TOTAL, METRIC_TTFT, METRIC_PER_TOKEN, TERM_DECODE_RATE, TERM_OUTPUT_RATE};
    char words[RANGE_WORDS], number[80];
    struct median_range range = range_of_runs(state->runs, state->run_count, metric_of, METRIC_TOTAL);
    print_plain("\n%d run%s %s", state->run_count, state->run_count == 1 ? "" : "s",
                !is_given(options, "cold") ? "after a warm-up" : "without a warm-up (--cold)");
    if (state->run_count == 1) print_plain("; --num_runs 3 or more shows the spread\n");
    else print_plain("; medians%s%s\n", isfinite(range.level) ? "; " : "",
                     range_words((size_t)state->run_count, "runs", range.level, words));
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct term *term = &TERMS[shown[i]];
        const char *why = shown[i] < METRIC_STAGE ? served_lacks(&state->runs[0], shown[i]) : NULL;
        range = range_of_runs(state->runs, state->run_count, term_of, shown[i]);
        snprintf(number, sizeof number, "%s%s", number_measured(range.median, range.low, range.high).text,
                 isfinite(range.median) && !strcmp(term->unit, "ms") ? " ms" : "");
        print_term(state, term->key, number, served_meaning(shown[i]), isfinite(range.median) ? NULL : why);
        if (shown[i] == METRIC_TTFT && state->runs[0].served->reasoning)
            print_ms(state, "first_output", first_output_of, "to the first piece of the answer that is no reasoning");
        if (shown[i] == METRIC_PER_TOKEN) print_gaps(state);
    }
    print_ms(state, "sent to headers", waiting_of, "upload, and what the server does before it answers");
}
/* What the server measured itself, a line for each member. */
static void print_server_timings(const struct served *served) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    if (served->timings && parse_json(&parsed, served->timings, strlen(served->timings), NULL) == VP_OK
        && node_is(&parsed.json, 0, VP_JSON_OBJECT) && parsed.json.nodes[0].count) {
        print_plain("\nthe server's own numbers of run 1, as it names them\n");
        for (uint32_t i = 1, member = 0; member < parsed.json.nodes[0].count;
             member++, i = parsed.json.nodes[i + 1].end) {
            struct text_buffer value = {NULL, 0, 0};
            char *key = node_text(&parsed.json, i);
            vp_json_writer writer;
            vp_json_writer_init_sink(&writer, text_sink, &value, 0);
            json_node(&writer, &parsed.json, i + 1);
            vp_json_finish(&writer);
            print_plain("  %-24s %s\n", key ? key : "?", value.data ? value.data : "");
            free(key);
            free(value.data);
        }
    }
    free(parsed.nodes);
}
static const char *ms_text(double ms, char out[80]) {
    snprintf(out, 80, "%s ms", number_measured(ms, (double)NAN, (double)NAN).text);
    return out;
}
/* What the image costs, by its twins. */
static void print_twins(const struct served_run *state) {
    const struct twin_result *result = &state->twin_result;
    char words[RANGE_WORDS], text[3][80];
    if (!state->twins.count) return;
    print_plain("\nimage from outside: TTFT of the image's request less that of a text with as many prompt tokens, "
                "%lld\n",
                (long long)state->twins.prompt_tokens);
    print_plain("%-19s %s ms   preprocessing, upload and vision encoder of %lld image tokens%s\n", "T_image_outside",
                number_measured(result->difference.median, result->difference.low, result->difference.high).text,
                (long long)state->twins.image_tokens, result->adjusted ? "; adjusted" : "");
    print_plain("%-19s %s with the image, %s with the text, %s for a few tokens (the floor)\n", "TTFT",
                ms_text(result->image_ms, text[0]), ms_text(result->text_ms, text[1]),
                ms_text(result->floor_ms, text[2]));
    if (isfinite(result->upload_ms))
        print_plain("%-19s %s from the first byte of the image's request to the last\n", "upload",
                    ms_text(result->upload_ms, text[0]));
    if (isfinite(result->prompt_difference_ms))
        print_plain("%-19s %s with the image, %s with the text, difference %s\n", "server's prompt",
                    ms_text(result->image_prompt_ms, text[0]), ms_text(result->text_prompt_ms, text[1]),
                    ms_text(result->prompt_difference_ms, text[2]));
    range_words((size_t)result->pairs, "pairs", result->difference.level, words);
    print_plain("%d pair%s in turns after a warm-up%s%s\n", result->pairs, result->pairs == 1 ? "" : "s",
                words[0] ? "; " : "", words);
}
static void print_served(const struct options *options, const struct served_run *state) {
    print_head(state);
    print_tokens(state);
    print_times(options, state);
    print_twins(state);
    print_server_timings(state->runs[0].served);
}

/* ---- as JSON */
static void put_served_medians(vp_json_writer *writer, const struct served_run *state) {
    static const int shown[] = {METRIC_TOTAL,     METRIC_TTFT,     METRIC_DECODE, METRIC_PER_TOKEN,
                                TERM_DECODE_RATE, TERM_OUTPUT_RATE};
    vp_json_key(writer, "medians");
    vp_json_begin_object(writer);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct median_range range = range_of_runs(state->runs, state->run_count, term_of, shown[i]);
        vp_json_key(writer, TERMS[shown[i]].key);
        vp_json_begin_object(writer);
        put_double(writer, "median", range.median);
        put_double(writer, "low", range.low);
        put_double(writer, "high", range.high);
        put_double(writer, "level", range.level);
        vp_json_end_object(writer);
    }
    vp_json_end_object(writer);
}
static void put_served_request(vp_json_writer *writer, const struct served_run *state) {
    const struct served *served = state->runs[0].served;
    put_text(writer, "schema", "vlmprof-served-run-1");
    put_text(writer, "endpoint", state->endpoint.url);
    put_text(writer, "endpoint_model", state->endpoint.model);
    put_text(writer, "api", vp_chat_api_name(state->endpoint.api));
    put_text(writer, "server", state->words);
    put_text(writer, "model", served->model);
    put_knobs(writer, state->setting, state->knobs.count);
    put_text(writer, "image", state->image_path);
    if (state->image_path) {
        put_pair(writer, "image_size", state->file_height_px, state->file_width_px);
        put_pair(writer, "sent_size", state->picture.height_px, state->picture.width_px);
        put_int(writer, "sent_bytes", (int64_t)state->picture.byte_count);
    } else {
        put_null(writer, "image_size");
        put_null(writer, "sent_size");
        put_null(writer, "sent_bytes");
    }
    put_text(writer, "media_type", state->picture.media_type);
}
static void put_served_answer(vp_json_writer *writer, const struct served_run *state) {
    const struct pass_result *run = &state->runs[0];
    vp_json_key(writer, "answer");
    vp_json_string_bytes(writer, run->answer, run->answer_bytes);
    put_text(writer, "reasoning", run->served->reasoning);
    put_text(writer, "finish_reason", run->served->finish_reason);
    put_bool(writer, "answers_equal_over_runs", answers_are_equal(state));
    put_usage(writer, &run->served->usage);
    put_text(writer, "family", state->family);
    if (state->family) put_int(writer, "image_tokens_by_rule", state->tokens_by_rule);
    else put_null(writer, "image_tokens_by_rule");
    put_int(writer, "pieces", (int64_t)run->served->piece_count);
    put_int(writer, "attempts", run->served->attempts);
}
static void print_served_json(const struct options *options, const struct served_run *state) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    vp_json_begin_object(&writer);
    put_served_request(&writer, state);
    put_served_answer(&writer, state);
    put_bool(&writer, "warm", !is_given(options, "cold"));
    put_int(&writer, "num_runs", state->run_count);
    for (int metric = 0; metric < METRIC_STAGE; metric++)
        if (metric != METRIC_ENERGY && metric != METRIC_TOKEN_ENERGY)
            put_double(&writer, METRIC_KEYS[metric], metric_mean(state->runs, state->run_count, metric));
    put_double(&writer, TERMS[TERM_DECODE_RATE].key,
               1e3 / metric_mean(state->runs, state->run_count, METRIC_PER_TOKEN));
    put_double(&writer, TERMS[TERM_OUTPUT_RATE].key, output_rate_of(&state->runs[0]) * (double)state->runs[0].total_ns
                   / 1e6 / metric_mean(state->runs, state->run_count, METRIC_TOTAL));
    put_null_reasons(&writer, state->runs, state->run_count);
    put_gaps(&writer, state->runs, state->run_count);
    put_server_timings(&writer, state->runs[0].served);
    if (state->twins.count)
        twins_put(&writer, &state->twin_result, state->twins.prompt_tokens, state->twins.image_tokens);
    else put_null(&writer, "T_image_outside");
    put_served_medians(&writer, state);
    put_served_runs(&writer, state->runs, state->run_count);
    put_noise(&writer, &state->noise);
    put_list(&writer, "warnings", &state->warnings);
    vp_json_key(&writer, "provenance");
    vp_json_begin_object(&writer);
    put_provenance(&writer, options, NULL);
    put_text(&writer, "client", vp_server_library(state->endpoint.server));
    vp_json_end_object(&writer);
    put_config(&writer, options);
    vp_json_end_object(&writer);
    vp_json_finish(&writer);
    putchar('\n');
}

int run_endpoint(const struct options *options) {
    struct served_run state;
    int code;
    memset(&state, 0, sizeof state);
    code = served_prepare(options, &state);
    if (!code) code = served_measure(options, &state);
    if (!code && state.run_count && !interrupted && is_given(options, "twins")) code = served_twins(options, &state);
    if (!code && state.run_count) {
        served_warn(options, &state);
        (is_given(options, "json") ? print_served_json : print_served)(options, &state);
    }
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    runs_free(state.runs, state.run_capacity);
    text_list_free(&state.warnings);
    twins_free(&state.twins);
    picture_free(&state.picture);
    if (state.image.rgb) vp_image_free(&state.image);
    knobs_free(&state.knobs);
    free(state.setting);
    free(state.words);
    endpoint_close(&state.endpoint);
    return code;
}
