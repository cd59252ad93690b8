/* measure.c: measures one request pass by pass, in the same way for the engine and for a server. */
#include "measure/measure.h"

#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "measure/noise.h"
#include "measure/provenance.h"
#include "results/fields.h"
#include "vlmprof_stages.h"

#include <math.h>

void runs_open(struct timed_runs *timed, int32_t capacity, int32_t new_tokens) {
    timed->runs = runs_make(capacity, new_tokens);
    timed->capacity = capacity;
}
void runs_close(struct timed_runs *timed) {
    runs_free(timed->runs, timed->capacity);
    text_list_free(&timed->warnings);
    memset(timed, 0, sizeof *timed);
}
int runs_measure(const struct pass_backend *backend, int32_t num_runs, int32_t new_tokens, struct timed_runs *timed) {
    vp_noise_reading reading;
    int code = 0;
    runs_open(timed, num_runs ? num_runs : 1, new_tokens);
    end_in_order(); /* after Ctrl-C, the complete runs are printed */
    if (!timed->is_cold) {
        struct pass_result *warm_up = runs_make(1, new_tokens);
        show_progress("warm-up");
        code = backend->pass(backend->with, warm_up);
        runs_free(warm_up, 1);
    }
    if (!code && backend->warm) backend->warm(backend->with);
    noise_begin(&timed->noise, &reading);
    while (!code && timed->count < timed->capacity && !interrupted) {
        show_progress("run %d of %d", timed->count + 1, timed->capacity);
        code = backend->pass(backend->with, &timed->runs[timed->count]);
        if (!code) timed->count++;
    }
    noise_end(&timed->noise, &reading);
    close_progress();
    return code == EXIT_INTERRUPTED ? 0 : code;
}
void runs_print_interrupted(const struct timed_runs *timed) {
    if (timed->count)
        print_note("vlmprof: interrupted: the numbers cover %d of %d runs, and nothing else is kept; run the "
                   "same command again to measure all of them\n",
                   timed->count, timed->capacity);
    else print_note("vlmprof: interrupted before a run was complete: nothing is kept; run the same command again\n");
}
void runs_warn(struct timed_runs *timed, const vp_noise_summary *noise) {
    noise_warn(&timed->warnings, noise, NULL, NULL, 1, NOISE_ADVICE_RUN);
    for (size_t i = 0; i < timed->warnings.count; i++) complain(0, "%s", timed->warnings.items[i]);
}
void runs_warn_of_noise(struct timed_runs *timed) {
    size_t count = timed->count > 1 ? (size_t)timed->count - 1 : 0;
    double *ratios = resize(NULL, count + 1, sizeof *ratios);
    for (size_t i = 0; i < count; i++)
        ratios[i] = log((double)timed->runs[i + 1].total_ns / (double)timed->runs[i].total_ns);
    timed->noise.pair_count = (int64_t)count;
    timed->noise.spread = vp_noise_spread(ratios, count);
    free(ratios);
    runs_warn(timed, &timed->noise);
}

/* ---- as text */
void runs_print(const struct timed_runs *timed) {
    char words[RANGE_WORDS];
    const double level = range_of_runs(timed->runs, timed->count, metric_of, METRIC_TOTAL).level;
    print_plain("\n%d run%s %s", timed->count, plural_s((int64_t)timed->count),
                !timed->is_cold     ? "after a warm-up"
                : timed->count == 1 ? "without a warm-up (--cold)"
                                    : "without a warm-up (--cold): the first is cold");
    if (timed->count == 1) print_plain("; --num_runs 3 or more shows the spread\n");
    else print_plain("; medians%s%s\n", isfinite(level) ? "; " : "",
                     range_words((size_t)timed->count, "runs", level, words));
}
/* Prints a line: a number, its meaning and, after a semicolon, a remark if there is one. */
static void print_term(const struct timed_runs *timed, const char *key, const char *number, const char *meaning,
                       const char *remark) {
    print_plain("%-19s %-*s %s%s%s\n", key, timed->count < 3 ? 18 : 29, number, meaning, remark ? "; " : "",
                remark ? remark : "");
}
/* The times between tokens, or between pieces of a server's answer, in ms. Returns their number. */
static size_t steps_of(const struct pass_result *run, double *out) {
    if (run->served) return served_gaps(run->served, out);
    for (int32_t i = 0; i + 1 < run->reply.token_count; i++) out[i] = (double)run->reply.step_ns[i] / 1e6;
    return run->reply.token_count > 1 ? (size_t)run->reply.token_count - 1 : 0;
}
/* Prints the median and the maximum of these times over all runs. */
static void print_steps(const struct timed_runs *timed) {
    const int is_served = timed->runs[0].served != NULL;
    double *steps = NULL;
    size_t count = 0;
    for (int32_t i = 0; i < timed->count; i++) {
        const struct pass_result *run = &timed->runs[i];
        const size_t most = run->served ? run->served->piece_count : (size_t)run->reply.token_count;
        steps = resize(steps, count + most + 1, sizeof *steps);
        count += steps_of(run, steps + count);
    }
    if (count > (size_t)!is_served) {
        char number[80], longest[120];
        const double median = median_range_of(steps, count).median;
        snprintf(number, sizeof number, "%s ms", number_measured(median, (double)NAN, (double)NAN).text);
        snprintf(longest, sizeof longest, "the median; the longest took %s ms",
                 number_measured(steps[count - 1], (double)NAN, (double)NAN).text);
        print_term(timed, is_served ? "itl" : TERMS[TERM_STEP].key, number,
                   is_served ? served_meaning(TERM_STEP) : TERMS[TERM_STEP].meaning, longest);
    }
    free(steps);
}
static double first_output_of(const struct pass_result *run, int which) {
    (void)which;
    return served_ms(run->served->first_output_ns);
}
static double visible_of(const struct pass_result *run, int which) {
    (void)which;
    return served_ms(served_visible_ns(run));
}
/* Milliseconds between the first byte sent and the headers. */
static double waiting_of(const struct pass_result *run, int which) {
    (void)which;
    return run->served->sent_ns < 0 || run->served->headers_ns < 0
               ? (double)NAN
               : (double)(run->served->headers_ns - run->served->sent_ns) / 1e6;
}
/* The median and the range of a number, with its unit. Returns out. */
static const char *range_text(const struct median_range *range, const char *unit, char out[80]) {
    const int has_unit = unit[0] && isfinite(range->median) && (!strcmp(unit, "ms") || !strcmp(unit, "J"));
    snprintf(out, 80, "%s%s%s", number_measured(range->median, range->low, range->high).text, has_unit ? " " : "",
             has_unit ? unit : "");
    return out;
}
/* A row of milliseconds that is not a term. */
static void print_ms(const struct timed_runs *timed, const char *key, double (*number)(const struct pass_result *, int),
                     const char *meaning) {
    const struct median_range range = range_of_runs(timed->runs, timed->count, number, 0);
    char text[80];
    print_term(timed, key, range_text(&range, "ms", text), meaning, NULL);
}
/* Returns 1 if a server's answer has too few tokens for a time per token. */
static int has_few_tokens(const struct pass_result *run, int which) {
    return run->served && (which == METRIC_PER_TOKEN || which == TERM_DECODE_RATE) && run->reply.token_count > 0
           && run->reply.token_count < TPOT_TOKENS_LEAST;
}
/* Why a term has no number, or how exact it is; NULL for no remark. */
static const char *remark_of(const struct pass_result *run, int which, double median, char out[80]) {
    if (which == METRIC_ENERGY) {
        snprintf(out, 80, "the counter's resolution is %.3g J", run->energy_resolution_j);
        return out;
    }
    if (has_few_tokens(run, which)) {
        snprintf(out, 80, "needs %d tokens or more, but the answer has %d", TPOT_TOKENS_LEAST, run->reply.token_count);
        return out;
    }
    if (isfinite(median)) return NULL;
    if (!run->served) return "a single token has no decode steps";
    return which < METRIC_STAGE ? served_lacks(run, which) : NULL;
}
void runs_print_terms(const struct timed_runs *timed) {
    static const int shown[] = {METRIC_TOTAL,     METRIC_TTFT,    METRIC_PER_TOKEN, TERM_DECODE_RATE,
                                TERM_OUTPUT_RATE, METRIC_CLOSURE, METRIC_ENERGY,    METRIC_TOKEN_ENERGY};
    const struct served *served = timed->runs[0].served;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct term *term = &TERMS[shown[i]];
        const struct median_range range = range_of_runs(timed->runs, timed->count, term_of, shown[i]);
        const int is_few = has_few_tokens(&timed->runs[0], shown[i]);
        char number[80], remark[80];
        if (is_left_out(shown[i], range.median) || (served && shown[i] == METRIC_CLOSURE)) continue;
        print_term(timed, term->key, is_few ? "-" : range_text(&range, term->unit, number),
                   served ? served_meaning(shown[i]) : term->meaning,
                   remark_of(&timed->runs[0], shown[i], range.median, remark));
        if (shown[i] == METRIC_TTFT && served && served->reasoning)
            print_ms(timed, "first_output", first_output_of, "to the first piece that is not reasoning");
        if (shown[i] == METRIC_TTFT && served && served->first_ns >= 0
            && served_visible_ns(&timed->runs[0]) > served->first_ns)
            print_ms(timed, "first_visible", visible_of, "to the first piece with text other than whitespace");
        if (shown[i] == METRIC_PER_TOKEN) print_steps(timed);
    }
    if (served) print_ms(timed, "sent to headers", waiting_of, "upload, and the server's work before its response");
}

/* ---- as JSON */
void runs_put_count(vp_json_writer *writer, const struct timed_runs *timed) {
    PUT(writer, KEY_BOOL("warm", !timed->is_cold), KEY("num_runs", timed->count));
}
void runs_put_rates(vp_json_writer *writer, const struct timed_runs *timed) {
    const struct pass_result *run = &timed->runs[0];
    const int is_known = !run->served || run->served->usage.completion_tokens >= 0;
    const double tokens = is_known ? (double)run->reply.token_count : (double)NAN;
    PUT(writer, KEY(TERMS[TERM_DECODE_RATE].key, 1e3 / metric_mean(timed->runs, timed->count, METRIC_PER_TOKEN)),
        KEY(TERMS[TERM_OUTPUT_RATE].key, tokens * 1e3 / metric_mean(timed->runs, timed->count, METRIC_TOTAL)));
}
static void put_median(vp_json_writer *writer, const char *key, struct median_range range) {
    PUT(writer, KEY_OBJECT(key), KEY("median", range.median), KEY("low", range.low), KEY("high", range.high),
        KEY("level", range.level), END_OBJECT);
}
void runs_put_medians(vp_json_writer *writer, const struct timed_runs *timed) {
    static const int of_server[] = {METRIC_TOTAL, METRIC_TTFT, METRIC_DECODE, METRIC_PER_TOKEN};
    const int is_served = timed->runs[0].served != NULL,
              count = is_served ? (int)(sizeof of_server / sizeof *of_server) : METRIC_STAGE + VP_STAGE_COUNT;
    PUT(writer, KEY_OBJECT("medians"));
    for (int i = 0; i < count; i++) {
        const int metric = is_served ? of_server[i] : i;
        const struct median_range range = range_of_runs(timed->runs, timed->count, metric_of, metric);
        if (!is_left_out(metric, range.median))
            put_median(writer,
                       metric < METRIC_STAGE ? METRIC_KEYS[metric] : vp_stage_name((vp_stage)(metric - METRIC_STAGE)),
                       range);
    }
    for (int rate = TERM_DECODE_RATE; rate <= TERM_OUTPUT_RATE; rate++)
        put_median(writer, TERMS[rate].key, range_of_runs(timed->runs, timed->count, term_of, rate));
    PUT(writer, END_OBJECT);
}
void runs_put_end(vp_json_writer *writer, const struct options *options, const struct timed_runs *timed,
                  const vp_engine *engine, const vp_engine_options *settings, const char *client) {
    put_noise(writer, &timed->noise);
    PUT(writer, KEY_TEXTS("warnings", &timed->warnings), KEY_OBJECT("provenance"));
    put_provenance(writer, options, engine, settings);
    if (!engine) PUT(writer, KEY("client", client));
    PUT(writer, END_OBJECT);
    put_options(writer, "config", options);
    PUT(writer, END_OBJECT);
    json_end(writer); /* main checks stdout */
}
