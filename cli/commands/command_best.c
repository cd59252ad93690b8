/* command_best.c: the most accurate configuration within a latency budget. The input is result files of one data set.
 * The best configuration, the next one and how reliably the best meets the budget are printed as text or JSON. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "report/report.h"
#include "report/report_text.h"
#include "report/series.h"
#include "results/metrics.h"
#include "results/result_read.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <strings.h>

static const struct option_spec BEST_OPTIONS[] = {
    OPTION_GROUP("what to compare"),
    OPTION_LATENCY,
    {"percentile", CHOICE, "P", "95", 0, 0, "50 95 99 mean", "latency percentile that must meet the budget"},
    OPTION_RESAMPLES,
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, "data set to use, if the files come from several"},
    OPTION_AT,
    OPTION_GROUP("limits"),
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL, "latency budget in ms"},
    {"min_accuracy", REAL, "A", NULL, 0, 1000, NULL, "minimum accuracy, such as 0.6"},
    {"most", TEXT, "KNOB", NULL, 0, 0, NULL,
     "instead of a budget: find the configuration with the largest value of a numeric knob, such as request_rate, that "
     "meets every --limit", .needs = "limit", .excludes = "budget_ms min_accuracy"},
    {"limit", TEXTS, "WHAT:VALUE...", NULL, 0, 0, NULL,
     "with --most: ttft:MS and e2e:MS, both at --percentile, and accuracy:SHARE",
     .excludes = "budget_ms min_accuracy"},
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* ---- limits, and whether a configuration reliably meets them */
enum { LIMIT_TTFT, LIMIT_E2E, LIMIT_ACCURACY, LIMIT_COUNT };
enum verdict { KEPT, BROKEN, OPEN };
static const char *const LIMIT_NAMES[] = {"ttft", "e2e", "accuracy"};
static const char *const VERDICTS[] = {"yes", "no", "undecided"};
struct most_row {
    char configuration[160];
    double value;
    vp_estimate values[LIMIT_COUNT];
    const char *verdict;
    enum verdict keeps;
    const struct result_file *file;
    int64_t requests, enough; /* enough: to decide it, about; -1: not known, or decided */
    int is_growing, looks_broken;
};
/* Adds the verdict on one limit. One broken limit decides, so the requests needed are those of the undecided limit that
 * is first shown to be broken or, if none looks broken, of the last one. */
static void add_verdict(struct most_row *row, enum verdict one, int looks_broken, size_t enough) {
    const int64_t needed = enough ? (int64_t)enough : INT64_MAX;
    const int is_first = row->keeps == KEPT || looks_broken > row->looks_broken,
              is_more = looks_broken ? needed < row->enough : needed > row->enough;
    if (one == OPEN && (is_first || (looks_broken == row->looks_broken && is_more))) row->enough = needed;
    row->looks_broken |= one == OPEN && looks_broken;
    if (one == BROKEN || row->keeps == KEPT) row->keeps = one;
}
/* Judges a time over requests under load, otherwise over samples. */
static void judge_time(struct most_row *row, int metric, vp_estimate *value, double percentile, double limit) {
    double *values;
    size_t count = requests_of(row->file, metric, &values), enough = 0;
    if (!values) values = resize(NULL, row->file->count + 1, sizeof *values);
    for (size_t i = 0; i < row->file->count && !knobs_are_loaded(&row->file->knobs); i++)
        if (isfinite(result_at(row->file, metric, i))) values[count++] = result_at(row->file, metric, i);
    *value = count ? series_percentile(values, count, percentile) : estimate_none();
    int meets = value->high <= limit ? 1 : value->low > limit ? -1 : 0;
    if (percentile > 0 && isfinite(limit)) meets = series_meets(values, count, percentile, limit, &enough);
    free(values);
    if (!meets) row->requests = (int64_t)count;
    if (isfinite(limit)) add_verdict(row, meets > 0 ? KEPT : meets ? BROKEN : OPEN, value->value > limit, enough);
}
static void judge_accuracy(struct most_row *row, double limit) {
    const vp_estimate value = row->values[LIMIT_ACCURACY] = file_accuracy(row->file);
    if (isfinite(limit))
        add_verdict(row, value.low >= limit ? KEPT : value.high < limit ? BROKEN : OPEN, value.value < limit, 0);
}
/* Without a steady state, no limit is met reliably. */
static void judge_steadiness(struct most_row *row) {
    for (size_t i = 0; i < row->file->load_count; i++) row->is_growing |= row->file->loads[i].is_growing > 0;
    if (row->is_growing && row->keeps == KEPT) row->keeps = OPEN;
    if (row->keeps != OPEN || row->enough == INT64_MAX || !row->enough) row->enough = -1;
    row->verdict = VERDICTS[row->keeps];
}
/* Judges a configuration under load by --budget_ms and --min_accuracy, by the rule of --most. */
static void judge_budget(struct most_row *row, const struct result_file *file,
                         const struct report_settings *settings) {
    *row = (struct most_row){.file = file};
    if (knobs_are_loaded(&file->knobs)) {
        judge_time(row, settings->axis, &row->values[LIMIT_E2E], settings->percentile, settings->budget);
        judge_accuracy(row, settings->min_accuracy);
    }
    judge_steadiness(row);
}
static void undecided_text(const struct most_row *row, char out[LINE_BYTES]) {
    const int is_loaded = knobs_are_loaded(&row->file->knobs);
    const double runs = (double)row->file->num_runs_per_sample * (double)row->enough / (double)row->requests;
    if (row->is_growing || row->enough < 0)
        snprintf(out, LINE_BYTES, "undecided: %s",
                 row->is_growing ? "the queue grew until the end" : "a limit is too close to what was measured");
    else
        snprintf(out, LINE_BYTES, "undecided: needs about %lld %s; you have %lld (--num_%s %.0f)",
                 (long long)row->enough, is_loaded ? "requests" : "samples", (long long)row->requests,
                 is_loaded ? "runs_per_sample" : "samples", is_loaded ? ceil(runs) : (double)row->enough);
}

/* The best configuration and the second best, and the share of the best one's requests that meet the budget. */
struct pick {
    size_t config, runner_up;
    int has_runner_up, is_tied;             /* with the runner-up: see is_tie */
    size_t undecided;                       /* configurations */
    vp_bounded_interval within;             /* the share and its 95 % interval */
    size_t within_of, within_samples;       /* requests, and the samples that they are of */
};
/* The share of requests within the budget: over samples, the mean of each one's share. For T_total, and under load,
 * each timed run is a request; otherwise each sample is one. Runs of a sample are alike, so only samples count for the
 * interval. */
static void share_within(const struct results *results, const struct tradeoff *tradeoff,
                         const struct report_settings *settings, struct pick *pick) {
    const struct result_file *file = &results->files[tradeoff->group->paired[pick->config]];
    const double *runs = settings->axis < METRIC_STAGE ? file->run_ms[settings->axis] : NULL;
    const int by_run = runs && file->run_at[file->count];
    const double *values = tradeoff->latency + pick->config * tradeoff->sample_count;
    double *shares = resize(NULL, file->count + tradeoff->sample_count, sizeof *shares);
    size_t samples = 0;
    for (size_t i = 0; i < (by_run ? file->count : tradeoff->sample_count); i++) {
        const size_t first = by_run ? file->run_at[i] : i, after = by_run ? file->run_at[i + 1] : i + 1;
        double hits = 0;
        for (size_t k = first; k < after; k++) hits += (by_run ? runs : values)[k] <= settings->budget;
        if (after > first) shares[samples++] = hits / (double)(after - first);
        pick->within_of += after - first;
    }
    pick->within = accuracy_interval((struct score_range){0, 1, 1}, NULL, shares, samples);
    pick->within_samples = samples;
    free(shares);
}
/* Returns 1 if two configurations have the same accuracy, and the samples do not show which of them is faster. */
static int is_tie(const struct tradeoff *tradeoff, size_t one, size_t other) {
    const size_t count = tradeoff->sample_count;
    vp_mean_interval change;
    return !(tradeoff->at_accuracy[one] < tradeoff->at_accuracy[other])
           && !(tradeoff->at_accuracy[one] > tradeoff->at_accuracy[other])
           && vp_paired_t(tradeoff->latency + one * count, tradeoff->latency + other * count, count, 0.95, &change)
                  == VP_OK
           && change.low <= 0 && change.high >= 0;
}
/* Of the configurations that tie with the best one and meet the budget: the one with the fewest experts. */
static size_t least_experts(const struct results *results, const struct tradeoff *tradeoff, double budget,
                            size_t best) {
    const size_t fastest = best;
    for (size_t i = 0; i < tradeoff->config_count; i++)
        if (tradeoff->at_latency[i] <= budget && is_tie(tradeoff, fastest, i)
            && knob_number(&results->files[tradeoff->group->paired[i]].knobs, KNOB_TOP_K)
                   < knob_number(&results->files[tradeoff->group->paired[best]].knobs, KNOB_TOP_K))
            best = i;
    return best;
}
/* Returns 1 and fills *pick if a configuration meets the budget and the accuracy. */
static int can_pick_best(const struct results *results, const struct tradeoff *tradeoff,
                         const struct report_settings *settings, struct pick *pick) {
    double *accuracy = resize(NULL, tradeoff->config_count, 2 * sizeof *accuracy),
           *latency = accuracy + tradeoff->config_count;
    size_t *places = resize(NULL, tradeoff->config_count, sizeof *places), count = 0;
    struct most_row row;
    uint32_t best;
    memset(pick, 0, sizeof *pick);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        judge_budget(&row, &results->files[tradeoff->group->paired[i]], settings);
        pick->undecided += row.keeps == OPEN;
        if (row.keeps != KEPT) continue;
        places[count] = i;
        latency[count] = tradeoff->at_latency[i];
        accuracy[count++] = tradeoff->at_accuracy[i];
    }
    int found = vp_pareto_best(latency, accuracy, count, settings->budget, settings->min_accuracy, &best) == VP_OK;
    if (found) {
        pick->config = least_experts(results, tradeoff, settings->budget, places[best]);
        for (size_t i = 0; i < count; i++) if (places[i] == pick->config) latency[i] = 1 + 2 * settings->budget;
        pick->has_runner_up =
            vp_pareto_best(latency, accuracy, count, settings->budget, settings->min_accuracy, &best) == VP_OK;
        if (pick->has_runner_up) pick->runner_up = places[best];
        pick->is_tied = pick->has_runner_up && is_tie(tradeoff, pick->config, pick->runner_up);
        share_within(results, tradeoff, settings, pick);
    }
    FREE_ALL(accuracy, places);
    return found;
}
/* Adds the option of `vlmprof run` that sets a knob, unless the value is the default. */
static void add_knob_option(struct text_buffer *out, const struct knob_values *knobs, int knob) {
    const struct knob_value *value = &knobs->of[knob];
    const char *option = KNOBS[knob].option;
    int is_first_n = 1;
    if (!option || !value->is_set || (knob == KNOB_TOP_K && knobs_are_dense(knobs))) return;
    if (KNOBS[knob].usual && !strcmp(value->text, KNOBS[knob].usual)) return;
    for (int32_t i = 0; i < value->list_count; i++) is_first_n &= value->list[i] == i;
    if (knob == KNOB_IMAGE) { /* run has a separate option for Molmo */
        const int is_crops = !strcmp(value->text, "max_crops");
        text_add_string(out, is_crops ? " --" : " --image_knob ");
        shell_word(out, value->text);
        text_add_format(out, is_crops ? " %lld" : "=%lld", (long long)value->number);
    } else if (!is_first_n) {
        for (int32_t i = 0; i < value->list_count; i++)
            text_add_format(out, "%s%d", i ? "," : " --active_blocks ", (int)value->list[i]);
    } else if (KNOBS[knob].type == KNOB_IS_NUMBER) {
        text_add_format(out, " --%s %lld", option, (long long)value->number);
    } else {
        text_add_format(out, " --%s ", option);
        shell_word(out, value->text);
    }
}
/* The options of `vlmprof run` that set this configuration, malloc'ed; NULL for a server. */
static char *options_text(const struct result_file *file) {
    struct text_buffer out = {NULL, 0, 0};
    if (file->is_served) return NULL;
    text_add_string(&out, file->synthetic ? "--synthetic " : "--model ");
    shell_word(&out, file->model ? file->model : "DIR");
    for (int knob = 0, has_size = 0; knob < KNOB_COUNT; knob++) {
        const int is_size = KNOBS[knob].of == KNOB_OF_IMAGES && knob_is_set(&file->knobs, knob);
        if (!is_size || !has_size) add_knob_option(&out, &file->knobs, knob);
        has_size |= is_size;
    }
    if (file->max_new_tokens > 0) text_add_format(&out, " --max_new_tokens %lld", (long long)file->max_new_tokens);
    if (file->ignore_eos > 0) text_add_string(&out, " --ignore_eos");
    return out.data;
}
static void print_cached(const struct result_file *file) {
    if (!file->is_served) return;
    const double share = result_cached_share(file);
    print_plain("  cached      %s%s; images: %s\n", isfinite(share) ? number_percent(share).text : "not reported",
                isfinite(share) ? " % of the prompt tokens" : " by the server",
                file->images ? file->images : "not reported");
}
static void print_pick(const struct results *results, const struct tradeoff *tradeoff,
                       const struct report_settings *settings, const struct pick *pick) {
    const vp_bootstrap_point *point = &tradeoff->points[pick->config], *second = &tradeoff->points[pick->runner_up];
    const char *of = percentile_text(settings->percentile), *axis = METRIC_KEYS[settings->axis];
    const struct result_file *file = &results->files[tradeoff->group->paired[pick->config]];
    char name[80], few[NO_INTERVAL_BYTES], *words = options_text(file);
    print_plain("%s: the best within %s ms (%s of %s) of %s\n", setting_text(file, name),
                number_plain(settings->budget).text, of, axis, results->files[tradeoff->group->first].dataset_name);
    print_plain("  accuracy    %s\n",
                number_estimate(1, point->accuracy, point->accuracy_low, point->accuracy_high).text);
    print_plain("  %-4s        %s ms%s%s\n", of,
                number_estimate(1, point->latency, point->latency_low, point->latency_high).text,
                no_interval_text(tradeoff, settings->percentile, few)[0] ? "; " : "", few);
    print_plain("  budget      %s %% of %zu %s (%zu samples) within it [%s, %s]",
                number_percent(pick->within.mean).text, pick->within_of,
                pick->within_of == pick->within_samples ? "requests" : "timed requests",
                pick->within_samples, number_percent(pick->within.low).text, number_percent(pick->within.high).text);
    if (knobs_are_loaded(&file->knobs))
        print_plain("; met reliably, by the rule of --most\n");
    else if (!isfinite(point->within_budget)) print_plain("\n");
    else
        print_plain("; the %s meets it in %s %% of %zu resamples; this is the best configuration in %s %%\n", of,
                    number_percent(point->within_budget).text, settings->resamples, number_percent(point->best).text);
    print_cached(file);
    if (pick->has_runner_up)
        print_plain("  runner-up   %s: accuracy %s, %s %s ms%s\n",
                    setting_text(&results->files[tradeoff->group->paired[pick->runner_up]], name),
                    number_estimate(1, second->accuracy, second->accuracy_low, second->accuracy_high).text, of,
                    number_estimate(1, second->latency, second->latency_low, second->latency_high).text,
                    pick->is_tied ? "; tied: it is unclear which of the two is faster" : "");
    else
        print_plain("  runner-up   none: no other configuration %smeets the budget%s%s\n",
                    pick->undecided ? "reliably " : "", isfinite(settings->min_accuracy) ? " and the accuracy" : "",
                    pick->undecided ? number_formatted("; %.0f undecided", (double)pick->undecided).text : "");
    if (file->is_policy)
        print_plain("  run it      a configuration for each request: vlmprof sweep --choices\n");
    else if (!file->is_foreign && words)
        print_plain("  run it      vlmprof run IMAGE -p TEXT %s\n", words);
    print_plain("  file        %s\n", file->path);
    free(words);
}
static void put_picked(vp_json_writer *writer, const struct results *results, const struct tradeoff *tradeoff,
                       size_t config) {
    const vp_bootstrap_point *point = &tradeoff->points[config];
    char *words = options_text(&results->files[tradeoff->group->paired[config]]);
    vp_json_begin_object(writer);
    put_setting_of(writer, &results->files[tradeoff->group->paired[config]]);
    PUT(writer, KEY("accuracy", point->accuracy),
        KEY_RANGE("accuracy_interval", point->accuracy_low, point->accuracy_high), KEY("latency_ms", point->latency),
        KEY_RANGE("latency_interval", point->latency_low, point->latency_high),
        KEY("probability_within_budget", point->within_budget), KEY("probability_best", point->best),
        KEY("options", words));
    if (results->files[tradeoff->group->paired[config]].is_served)
        PUT(writer, KEY("images", results->files[tradeoff->group->paired[config]].images),
            KEY("cached_share", result_cached_share(&results->files[tradeoff->group->paired[config]])));
    PUT(writer, END_OBJECT);
    free(words);
}
/* Prints the answer as JSON; `pick` is NULL if no configuration meets the budget. Returns 0 or an exit code. */
static int put_pick(const struct results *results, const struct tradeoff *tradeoff,
                    const struct report_settings *settings, const struct pick *pick, const struct text_list *warnings) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-best-1"), KEY("latency", METRIC_KEYS[settings->axis]),
        KEY("percentile", percentile_text(settings->percentile)), KEY("budget_ms", settings->budget),
        KEY("min_accuracy", settings->min_accuracy), KEY("num_samples", tradeoff->sample_count),
        KEY_TEXTS("warnings", warnings));
    if (!pick) {
        PUT(&writer, KEY_NULL("best"), KEY_NULL("runner_up"), END_OBJECT);
        return json_end(&writer);
    }
    vp_json_key(&writer, "best");
    put_picked(&writer, results, tradeoff, pick->config);
    PUT(&writer, KEY("requests_within_budget", pick->within.mean),
        KEY_RANGE("requests_within_budget_interval", pick->within.low, pick->within.high),
        KEY("requests", (int64_t)pick->within_of));
    vp_json_key(&writer, "runner_up");
    if (pick->has_runner_up) put_picked(&writer, results, tradeoff, pick->runner_up); else vp_json_null(&writer);
    vp_json_end_object(&writer);
    return json_end(&writer);
}
/* If no configuration meets the budget, prints the closest one. Returns the exit code. */
static int complain_of_budget(const struct results *results, const struct tradeoff *tradeoff,
                              const struct report_settings *settings) {
    size_t fastest = 0;
    char name[80], more[64] = "", why[LINE_BYTES] = "", none[64] = "the only configuration does not ";
    const int is_only = tradeoff->config_count == 1;
    struct most_row row;
    for (size_t i = 1; i < tradeoff->config_count; i++)
        if (tradeoff->at_latency[i] < tradeoff->at_latency[fastest]) fastest = i;
    if (!is_only) snprintf(none, sizeof none, "none of %zu configurations ", tradeoff->config_count);
    if (isfinite(settings->min_accuracy))
        snprintf(more, sizeof more, " with an accuracy of %.4g", settings->min_accuracy);
    const struct result_file *file = &results->files[tradeoff->group->paired[fastest]];
    judge_budget(&row, file, settings);
    if (row.keeps == OPEN) undecided_text(&row, why);
    return complain(
        EXIT_WORK, "best: %s%smeet%s %s ms at the %s of %s%s; %s %s: %s ms, accuracy %.4g%s%s",
        none, knobs_are_loaded(&file->knobs) ? "reliably " : "", is_only ? "" : "s",
        number_plain(settings->budget).text, percentile_text(settings->percentile), METRIC_KEYS[settings->axis], more,
        is_only ? "it is" : "the fastest is", setting_text(file, name),
        number_short(tradeoff->at_latency[fastest]).text, tradeoff->at_accuracy[fastest], why[0] ? "; " : "", why);
}
/* Picks a configuration of a data set. Returns the exit code. */
static int best_of_group(const struct options *options, const struct results *results, struct tradeoff *tradeoff,
                         const struct report_settings *settings, struct text_list *warnings) {
    const int is_json = is_given(options, "json");
    const size_t printed = warnings->count;
    struct pick pick;
    int code;
    if (results->files[tradeoff->group->first].synthetic)
        text_list_add(warnings, "synthetic weights: latency is real, accuracy is not");
    if (!tradeoff->reason[0] && accuracies_are_equal(tradeoff))
        text_list_add(warnings, "all accuracies are equal: the fastest was chosen");
    for (size_t i = printed; i < warnings->count; i++) print_note("vlmprof: %s\n", warnings->items[i]);
    if (tradeoff->reason[0]) return complain(EXIT_INPUT, "best: %s", tradeoff->reason);
    if (!can_pick_best(results, tradeoff, settings, &pick)) {
        code = is_json ? put_pick(results, tradeoff, settings, NULL, warnings) : 0;
        return code ? code : complain_of_budget(results, tradeoff, settings);
    }
    if (is_json) return put_pick(results, tradeoff, settings, &pick, warnings);
    print_pick(results, tradeoff, settings, &pick);
    return 0;
}
/* ---- --most: the largest value of a knob that meets all limits, as measured */
static int read_limits(const struct option_value *list, double limits[LIMIT_COUNT]) {
    for (int i = 0; i < LIMIT_COUNT; i++) limits[i] = (double)NAN;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i], *number = text + strcspn(text, ":=");
        int which = 0;
        char *end;
        while (which < LIMIT_COUNT && (strlen(LIMIT_NAMES[which]) != (size_t)(number - text)
                                       || strncasecmp(LIMIT_NAMES[which], text, (size_t)(number - text)) != 0))
            which++;
        double value = strtod(*number ? number + 1 : text, &end);
        const int is_time = which != LIMIT_ACCURACY,
                  has_unit = is_time ? !strcmp(end, "s") || !strcmp(end, "ms") : !strcmp(end, "%"),
                  is_known = (which < LIMIT_COUNT || !*number) && value > 0 && isfinite(value) && (has_unit || !*end);
        if (has_unit) value *= !is_time ? 0.01 : *end == 's' ? 1000 : 1;
        if (!is_known || which == LIMIT_COUNT || *number != ':' || *end)
            return complain(EXIT_USAGE, "--limit %.60s: expected ttft:MS, e2e:MS or accuracy:SHARE above 0%s%s%s%s",
                            text, is_known ? "; did you mean " : "", is_known ? LIMIT_NAMES[which % LIMIT_COUNT] : "",
                            is_known ? ":" : "", is_known ? number_formatted("%g?", value).text : "");
        if (isfinite(limits[which])) return complain(EXIT_USAGE, "--limit %s is given twice", LIMIT_NAMES[which]);
        limits[which] = value;
    }
    return 0;
}
static int by_value(const void *left, const void *right) {
    const struct most_row *a = left, *b = right;
    return a->value < b->value ? -1 : a->value > b->value ? 1 : strcmp(a->configuration, b->configuration);
}
/* If each value has one row, and the row above the best one is broken: what to measure between them. */
static void add_next_step(struct document *document, const struct most_row *rows, size_t count,
                          const struct most_row *best, const char *knob) {
    for (size_t i = 1; i < count; i++) if (!(rows[i].value > rows[i - 1].value)) return;
    if (!best || best + 1 == rows + count || best[1].keeps != BROKEN) return;
    const double low = best->value, high = best[1].value;
    if (high - low >= 2)
        document_text(document, BLOCK_LINE, "next step: measure %s %s, between %s (yes) and %s (no)", knob,
                      number_plain(floor((low + high) / 2)).text, number_plain(low).text, number_plain(high).text);
}
static int print_most(const struct options *options, const struct most_row *rows, size_t count,
                      const struct most_row *best, const char *knob, const double limits[LIMIT_COUNT],
                      const struct text_list *warnings) {
    const struct table_column columns[] = {
        {CELL(struct most_row, configuration), "configuration", "configuration"},
        {CELL(struct most_row, value), "value", knob},
        {CELL_ESTIMATE(struct most_row, values[LIMIT_TTFT]), "TTFT", "TTFT, ms", .range_key = "TTFT_interval",
         .is_measured = 1},
        {CELL_ESTIMATE(struct most_row, values[LIMIT_E2E]), "T_total", "T_total, ms",
         .range_key = "T_total_interval", .is_measured = 1},
        {CELL_ESTIMATE(struct most_row, values[LIMIT_ACCURACY]), "accuracy", "accuracy",
         .range_key = "accuracy_interval"},
        {CELL(struct most_row, verdict), "keeps_limits", "meets the limits"},
        {CELL(struct most_row, enough), "requests_needed", NULL, .rules = COLUMN_FROM_0}};
    const struct table table = TABLE(columns, rows, count, NULL, 0);
    const double at = report_settings_of(options).percentile;
    const char *percentile = percentile_text(at);
    struct document document = {NULL, 0, NULL};
    vp_json_writer writer;
    if (!is_given(options, "json")) {
        struct text_buffer words = {NULL, 0, 0};
        char text[LINE_BYTES] = "";
        for (size_t i = 0; i < opt(options, "limit")->count; i++)
            text_add_format(&words, " %s", opt(options, "limit")->items[i]);
        if (isfinite(limits[LIMIT_TTFT]) || isfinite(limits[LIMIT_E2E]))
            text_add_format(&words, " (%s of the times)", percentile);
        if (best)
            document_text(&document, BLOCK_LINE, "%s: the largest %s that reliably meets%s", best->configuration, knob,
                          words.data);
        document_add_table(&document, &table);
        for (size_t i = 0; i < count; i++)
            if (isfinite(rows[i].values[LIMIT_E2E].value) && !isfinite(rows[i].values[LIMIT_E2E].low))
                snprintf(text, sizeof text, ", which need at least %zu independent %s",
                         at < 0 ? 2 : vp_statistics_percentile_needs(at, 0.95),
                         knobs_are_loaded(&rows[i].file->knobs) ? "requests" : "samples");
        document_text(&document, BLOCK_LINE, "times are %s values, with 95 %% intervals%s", percentile, text);
        add_next_step(&document, rows, count, best, knob);
        for (size_t i = 0; i < count; i++) {
            if (rows[i].keeps != OPEN) continue;
            undecided_text(&rows[i], text);
            document_text(&document, BLOCK_LINE, "%s: %s", rows[i].configuration, text);
        }
        free(words.data);
        return print_document(&document);
    }
    vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-most-1"), KEY("most", knob),
        KEY("percentile", percentile), KEY_TEXTS("warnings", warnings));
    table_put(&writer, "configurations", &table);
    PUT(&writer, END_OBJECT);
    return json_end(&writer);
}
/* Returns 1 and the number if a knob has one in the file. */
static int numeric_knob(const struct result_file *file, int knob, double *value) {
    char text[KNOB_TEXT_BYTES] = "";
    if (knob < KNOB_COUNT && knob_is_set(&file->knobs, knob)) knob_value_text(&file->knobs, knob, text);
    return vp_number_parse(text, strlen(text), value) == VP_OK;
}
static int most_of_group(const struct options *options, const struct results *results,
                         const struct result_group *group, const struct report_settings *settings,
                         const struct text_list *warnings) {
    const char *name = text_of(options, "most");
    struct most_row *rows = zeroed(group->count, sizeof *rows), *best = NULL;
    double limits[LIMIT_COUNT];
    int knob = 0, code = read_limits(opt(options, "limit"), limits);
    while (knob < KNOB_COUNT && !(KNOBS[knob].key && !strcmp(KNOBS[knob].key, name))) knob++;
    for (size_t i = 0; i < group->count && !code; i++) {
        const struct result_file *file = &results->files[group->first + i];
        struct most_row *row = &rows[i];
        row->file = file;
        if (!numeric_knob(file, knob, &row->value))
            code = results_complain_of_value(results, "--most", name, strlen(name), knob);
        report_full_name(results, file, row->configuration);
        judge_time(row, METRIC_TTFT, &row->values[LIMIT_TTFT], settings->percentile, limits[LIMIT_TTFT]);
        judge_time(row, METRIC_TOTAL, &row->values[LIMIT_E2E], settings->percentile, limits[LIMIT_E2E]);
        judge_accuracy(row, limits[LIMIT_ACCURACY]);
        judge_steadiness(row);
    }
    if (!code) {
        qsort(rows, group->count, sizeof *rows, by_value);
        for (size_t i = 0; i < group->count; i++) if (rows[i].keeps == KEPT) best = &rows[i];
        code = print_most(options, rows, group->count, best, name, limits, warnings);
    }
    if (!code && !best)
        code = complain(EXIT_WORK, "best: no configuration reliably meets the limits");
    free(rows);
    return code;
}
/* Picks a configuration from sweeps. Returns the exit code. */
static int best_of_results(const struct options *options, struct report_settings *settings) {
    const struct result_group *group;
    struct results results;
    struct tradeoff tradeoff = {0};
    struct text_list warnings = {NULL, 0};
    int code;
    if ((code = results_read_at(&results, options->operands, options->operand_count, opt(options, "at"))) != 0)
        return code;
    results_warn_of_noise(&results, &warnings);
    for (size_t i = 0; i < results.notes.count; i++)
        if (results.notes.items[i] != results.repeats && results.notes.items[i] != results.unnamed)
            text_list_copy(&warnings, results.notes.items[i]);
    for (size_t i = 0; i < warnings.count; i++) print_note("vlmprof: %s\n", warnings.items[i]);
    group = group_of_options(&results, options, &code);
    if (!code) {
        if (is_given(options, "most")) code = most_of_group(options, &results, group, settings, &warnings);
        else {
            tradeoff_make(&tradeoff, &results, group, settings);
            code = best_of_group(options, &results, &tradeoff, settings, &warnings);
        }
    }
    text_list_free(&warnings);
    tradeoff_free(&tradeoff);
    results_free(&results);
    return code;
}
static int run_command(const struct options *options) {
    struct report_settings settings = report_settings_of(options);
    if (!options->operand_count)
        return complain(EXIT_USAGE, "best needs a folder of result files; see vlmprof best --help");
    if (!is_given(options, "budget_ms") && !is_given(options, "most"))
        return complain(EXIT_USAGE, "best needs --budget_ms MS, or --most KNOB with --limit (ttft:MS, e2e:MS or "
                                    "accuracy:SHARE)");
    if (is_given(options, "budget_ms")) settings.budget = opt(options, "budget_ms")->real;
    if (is_given(options, "min_accuracy")) settings.min_accuracy = opt(options, "min_accuracy")->real;
    return best_of_results(options, &settings);
}

const struct command command_best = {
    "best",
    "DIR... (--budget_ms MS | --most KNOB --limit WHAT:VALUE...)",
    "find the most accurate configuration within a latency budget, and the probability that it meets the budget",
    "vlmprof best results --budget_ms 250\n"
    "  vlmprof best results --most request_rate --limit ttft:500 e2e:3000 accuracy:0.8",
    SIZE_MAX,
    COMMAND_OPTIONS(BEST_OPTIONS),
    NULL,
    run_command};
