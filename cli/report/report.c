/* report.c: computes where the time of a request goes (E1), and the accuracy it buys (E2). Everything is computed once
 * into a `report`; the code for text, CSV, JSON and HTML only prints it. E1 is in decomposition.h, E2 in
 * tradeoff.h; this file has the roofs, the warnings and the findings. Intervals are at 95 %. */
#include "report/report.h"

#include "base/json.h"
#include "measure/noise.h"
#include "vlmprof_statistics.h"

#include <math.h>

/* ---- roofs */
/* The roofs: as given, otherwise the best rates of any stage that takes at least 1 % of a request. */
static void find_peaks(struct report *report) {
    const double *given_tflops = &report->settings.peak_tflops, *given_gbs = &report->settings.peak_gbs;
    for (size_t i = 0; i < report->results->count; i++) {
        for (int stage = 0; stage < VP_STAGE_COUNT; stage++) {
            const struct stage_cost *cost = &report->items[i].stages[stage];
            if (!(cost->share >= 0.01)) continue;
            if (cost->tflops > report->peak_tflops) report->peak_tflops = cost->tflops;
            if (cost->gbs > report->peak_gbs) report->peak_gbs = cost->gbs;
        }
    }
    if (isfinite(*given_tflops)) report->peak_tflops = *given_tflops;
    if (isfinite(*given_gbs)) report->peak_gbs = *given_gbs;
    report->peaks_are_given = isfinite(*given_tflops) && isfinite(*given_gbs);
}
/* A stage that reaches a third of a roof is limited by it. Otherwise, the time goes into launch overhead, waiting and
 * small shapes. */
static bound bound_of(const struct report *report, const struct stage_cost *cost) {
    double compute = cost->tflops / report->peak_tflops, memory = cost->gbs / report->peak_gbs;
    if (!(cost->mean > 0) || !(cost->flops > 0 || cost->bytes > 0) || !(report->peak_tflops > 0)
        || !(report->peak_gbs > 0))
        return BOUND_NONE;
    if (cost->idle_share > 0.5) return BOUND_LAUNCH;
    if (!(compute >= 1.0 / 3 || memory >= 1.0 / 3)) return BOUND_LAUNCH;
    return compute >= memory ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* ---- warnings */
/* The number of files whose text at an offset of struct result_file differs from the first file's. */
static size_t differing_files(const struct results *results, size_t offset) {
    size_t count = 0;
    for (size_t i = 1; i < results->count; i++) {
        const char *first = *(char *const *)(const void *)((const char *)&results->files[0] + offset);
        const char *other = *(char *const *)(const void *)((const char *)&results->files[i] + offset);
        count += strcmp(first ? first : "", other ? other : "") != 0;
    }
    return count;
}
void results_warn_of_noise(const struct results *results, struct text_list *warnings) {
    double runs = HUGE_VAL;
    vp_noise_summary *items = resize(NULL, results->count, sizeof *items);
    const char **names = (const char **)resize(NULL, 2 * results->count, sizeof *names),
               **paths = names + results->count;
    char(*texts)[160] = resize(NULL, results->count, sizeof *texts);
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        const int64_t pairs = file->run_at ? (int64_t)(file->run_at[file->count] - file->count) : 0; /* pairs of runs */
        items[i] = file->noise;
        if (!isfinite(items[i].spread) && pairs >= VP_NOISE_PAIRS_MIN && !knobs_are_loaded(&file->knobs)) {
            items[i].spread = run_spread_of(file);
            items[i].pair_count = pairs;
        }
        runs = fmin(runs, (double)results->files[i].num_runs_per_sample);
        names[i] = report_full_name(results, &results->files[i], texts[i]);
        paths[i] = results->files[i].path;
    }
    noise_warn(warnings, items, paths, names, results->count, noise_advice_sweep(runs));
    FREE_ALL(texts, (void *)names, items);
}
static size_t count_foreign(const struct results *results) {
    size_t count = 0;
    for (size_t i = 0; i < results->count; i++) count += (size_t)results->files[i].is_foreign;
    return count;
}
static void warn_of_files(struct report *report) {
    static const struct {
        const char *name;
        size_t offset;
    } same[] = {{"device", offsetof(struct result_file, device)},
                {"model", offsetof(struct result_file, model)},
                {"timing", offsetof(struct result_file, timing)},
                {"version", offsetof(struct result_file, version)}};
    const struct results *results = report->results;
    int64_t failed = 0, missing = 0, throttled = 0, outliers = 0, runs = 0, synthetic = 0, foreign = 0, coarse = 0,
            served = 0, cached = 0, dropped = 0, divided = 0;
    const char *reason = NULL, *caches, *own = NULL;
    char differ[64] = "";
    for (size_t i = 0; i < results->count; i++) {
        const struct result_file *file = &results->files[i];
        if (!knobs_are_loaded(&file->knobs)) { /* (otherwise a finding) */
            failed += file->failed_count;
            if (!reason) reason = file->failed_reason;
        }
        missing += file->num_missing > 0 ? file->num_missing : 0;
        throttled += file->num_throttled_runs > 0 ? file->num_throttled_runs : 0;
        outliers += file->num_outlier_runs > 0 ? file->num_outlier_runs : 0;
        runs += file->run_at ? (int64_t)file->run_at[file->count] : 0;
        synthetic += file->synthetic;
        divided += file->divides_anew;
        served += file->is_served;
        cached += file->cached_runs > 0 ? file->cached_runs : 0;
        dropped += file->dropped_runs > 0 ? file->dropped_runs : 0;
        if (*file->own_stages) own = file->own_stages;
        if (!file->is_served && !file->columns[stage_column(VP_STAGE_PREFILL, 0)] && !*file->own_stages)
            *(file->is_foreign ? &foreign : &coarse) += 1;
    }
    if (synthetic)
        text_list_add(&report->warnings, "synthetic weights in %lld of %zu files: latency is real, accuracy is not",
                      (long long)synthetic, results->count);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const size_t used = strlen(differ);
        /* for servers, the model is a knob */
        if (differing_files(results, same[i].offset) && !(served && !strcmp(same[i].name, "model")))
            snprintf(differ + used, sizeof differ - used, "%s%s", used ? ", " : "", same[i].name);
    }
    if (differ[0])
        text_list_add(&report->warnings, "the files differ in %s: the knobs do not explain all their differences",
                      differ);
    if (results_differ_in_caches(results, &caches))
        text_list_add(&report->warnings, "the files differ in %s: a cached image or prompt costs less", caches);
    warn_of_served_runs(&report->warnings, cached, dropped, runs);
    if (dropped)
        text_list_add(&report->findings,
                      "the server dropped an image in %lld of %lld runs, or does not count it: their times and answers "
                      "do not reflect the images", (long long)dropped, (long long)runs);
    if (failed || missing)
        text_list_add(&report->warnings,
                      "%lld point%s failed and %lld %s not measured yet; the numbers exclude them%s%.400s",
                      (long long)failed, plural_s((int64_t)failed), (long long)missing, missing == 1 ? "is" : "are",
                      reason ? "; the first: " : "", reason ? reason : "");
    if (throttled)
        text_list_add(&report->warnings,
                      "%lld of %lld runs were measured while the device throttled its clocks; they are included",
                      (long long)throttled, (long long)runs);
    if (outliers)
        text_list_add(&report->warnings,
                      "%lld of %lld runs have outlying totals (modified z-score above 3.5); they are included",
                      (long long)outliers, (long long)runs);
    if (own)
        text_list_add(&report->warnings,
                      "your own stages count as unaccounted: %s; vlmprof help library lists those with a column", own);
    if (foreign)
        text_list_add(&report->warnings, "%lld file%s %s no \"schema\" and no \"stages\": their stages are unknown",
                      (long long)foreign, plural_s((int64_t)foreign), foreign == 1 ? "has" : "have");
    if (divided)
        text_list_add(&report->warnings, "TPOT in %lld file%s is recomputed as T_LLM_decode / (output_tokens - 1)",
                      (long long)divided, plural_s((int64_t)divided));
    if (coarse)
        text_list_add(&report->warnings, "%lld file%s %s no stage times (--timing off)", (long long)coarse,
                      plural_s((int64_t)coarse), coarse == 1 ? "has" : "have");
}
static double main_share(const struct decomposition *decomposition, int metric) {
    double share = 0;
    int first = metric == METRIC_VISION ? VP_STAGE_VIT : metric == METRIC_PREFILL ? VP_STAGE_EMBED : VP_STAGE_DECODE;
    int last = metric == METRIC_VISION    ? VP_STAGE_CONNECTOR
               : metric == METRIC_PREFILL ? VP_STAGE_SAMPLE
                                          : VP_STAGE_DECODE;
    for (int stage = first; stage <= last; stage++)
        if (isfinite(decomposition->stages[stage].share)) share += decomposition->stages[stage].share;
    /* the reference's files contain only the sums */
    return share > 0 ? share : share_of_total(decomposition, metric);
}
/* Parts that take longer than the whole: usually T_total in another unit. */
static void warn_of_units(struct report *report) {
    double most = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < report->results->count; i++) {
        double sum = 0;
        for (int metric = METRIC_VISION; metric <= METRIC_DECODE; metric++)
            sum += fmax(0, main_share(&report->items[i], metric));
        wrong += sum > 1.1;
        most = fmax(most, sum);
    }
    for (size_t i = 0, known = 0; i < report->results->count && !known; i++) {
        const struct result_file *file = &report->results->files[i];
        known = file->accuracy > 1 && file->accuracy_metric && strcmp(file->accuracy_metric, "cider");
        if (known) text_list_add(&report->warnings, "%.300s: accuracies above 1; expected 0 to 1", file->path);
    }
    for (size_t i = 0, known = 0; i < report->results->count && report->settings.percentile <= 50 && !known; i++)
        if ((known = (size_t)report->results->files[i].is_policy) != 0)
            text_list_add(&report->warnings, "a policy's P50 hides its slow requests; compare means instead (--csv)");
    if (wrong)
        text_list_add(&report->warnings, "vision, prefill and decode add up to %.3g times T_total in %zu of %zu "
                                         "configurations: check that all times are in ms",
                      most, wrong, report->results->count);
}
static void warn_of_samples(struct report *report) {
    size_t least = SIZE_MAX, p95 = 0, p99 = 0, open = 0, unequal = 0, several = 0, samples = 0, scored = 0;
    double worst = 1, most_images = 0;
    const char *counted = knobs_are_loaded(&report->results->files[0].knobs) ? "requests" : "samples";
    for (size_t i = 0; i < report->results->count; i++) {
        const struct decomposition *decomposition = &report->items[i];
        if (decomposition->file->count < least) least = decomposition->file->count;
        p95 += !vp_statistics_percentile_supported(decomposition->counts[METRIC_TOTAL], 95);
        p99 += !vp_statistics_percentile_supported(decomposition->counts[METRIC_TOTAL], 99);
        open += decomposition->closure < 0.99;
        if (decomposition->counts[METRIC_TTFT] && !knobs_are_loaded(&decomposition->file->knobs))
            unequal += decomposition->file->count - decomposition->counts[METRIC_TOTAL];
        if (decomposition->closure < worst) worst = decomposition->closure;
        samples += decomposition->file->count;
        for (size_t k = 0; k < decomposition->file->count; k++) {
            const double images = result_at(decomposition->file, COLUMN_IMAGES, k);
            several += images > 1;
            scored += !isnan(result_at(decomposition->file, COLUMN_ACCURACY, k));
            if (images > most_images) most_images = images;
        }
    }
    if (least < 500)
        text_list_add(&report->warnings, "only %zu sample%s in the smallest file: a reliable front needs at least 500",
                      least, plural_s((int64_t)least));
    if (p95 || p99) {
        char more[64] = "";
        if (p95) snprintf(more, sizeof more, ", P95 in %zu (below 60)", p95);
        text_list_add(&report->warnings, "few %s: P99 is close to the largest value in %zu of %zu configurations "
                                         "(below 300 %s)%s", counted, p99, report->results->count, counted, more);
    }
    if (scored && scored < samples)
        text_list_add(&report->warnings, "%zu of %zu samples have no score (accuracy_reason in the files says why): "
                                         "accuracies, fronts and effects leave them out", samples - scored, samples);
    if (several)
        text_list_add(&report->warnings, "%zu of %zu measured samples have several images, up to %.0f: their vision "
                                         "tokens are the sum; the result files have those of each image", several,
                      samples, most_images);
    if (unequal)
        text_list_add(&report->warnings, "%zu sample%s %s no TTFT: latencies of their configurations do not include "
                                         "them", unequal, plural_s((int64_t)unequal), unequal == 1 ? "has" : "have");
    if (open)
        text_list_add(&report->warnings,
                      "the stages add up to less than 99 %% of T_total in %zu of %zu configurations (lowest: %.2f %%)",
                      open, report->results->count, 100 * worst);
}

/* ---- findings in words */
/* "2.1 to 3.4 ms"; one number if both print the same. */
static const char *range_text(const char *format, double low, double high, const char *unit, char out[64]) {
    const struct number_text first = number_formatted(format, low), last = number_formatted(format, high);
    if (strcmp(first.text, last.text)) snprintf(out, 64, "%.20s to %.20s %s", first.text, last.text, unit);
    else snprintf(out, 64, "%.20s %s", last.text, unit);
    return out;
}
/* "12.5 %", "12.5 to 20.1 %"; ratios above 1 are factors: "0.83 to 1.23 times". Returns out. */
static const char *shares_text(double low, double high, char out[64]) {
    return high > 1 ? range_text("%.2f", low, high, "times", out) : range_text("%.1f", 100 * low, 100 * high, "%", out);
}
/* Text about how many configurations have this part as the largest; empty if none has. */
static void wins_text(size_t wins, size_t count, char out[96]) {
    if (!wins) out[0] = 0;
    else if (wins == count) snprintf(out, 96, ", the largest part%s", count > 1 ? " in all configurations" : "");
    else snprintf(out, 96, ", the largest part in %zu of %zu configurations", wins, count);
}
static void find_dominant(struct report *report) {
    static const char *const ours[] = {"vision (vit + connector)", "prefill (embed to sample)", "decode"};
    static const char *const plain[] = {"vision", "prefill", "decode"}; /* other engines have other stages */
    const char *const *names = count_foreign(report->results) == report->results->count ? plain : ours;
    size_t wins[4] = {0, 0, 0, 0};
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (int metric = METRIC_VISION; metric <= METRIC_DECODE; metric++) {
        for (size_t i = 0; i < report->results->count; i++) {
            double share = main_share(&report->items[i], metric), rest = 1, largest = 0;
            int wins_all = share > 0;
            for (int k = METRIC_VISION; k <= METRIC_DECODE; k++) {
                const double other = main_share(&report->items[i], k);
                wins_all &= k == metric || !(other >= share);
                if (other > 0) rest -= other;
                largest = fmax(largest, other);
            }
            /* preprocessing and what no stage covers compete as well; together, since they need not be one part */
            wins[metric] += (size_t)(wins_all && share > rest);
            if (metric != METRIC_VISION || !(share > 0)) continue;
            wins[3] += rest >= largest;
            least = fmin(least, rest);
            most = fmax(most, rest);
        }
    }
    for (int metric = METRIC_VISION; metric <= METRIC_DECODE; metric++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        char text[96], shares[64];
        for (size_t i = 0; i < report->results->count; i++) {
            const double share = main_share(&report->items[i], metric);
            if (share < low) low = share;
            if (share > high) high = share;
        }
        if (!(high > 0)) continue;
        wins_text(wins[metric], report->results->count, text);
        text_list_add(&report->findings, "%s takes %s of a request%s", names[metric],
                      range_text("%.1f", 100 * low, 100 * high, "%", shares), text);
    }
    char text[96], shares[64];
    wins_text(wins[3], report->results->count, text);
    if (*text) text_list_add(&report->findings, "the rest, such as preprocessing, takes %s of a request%s",
                             range_text("%.1f", 100 * least, 100 * most, "%", shares), text);
}
/* " (of 3 of 4 configurations)" if a finding ranks only some of them; otherwise empty. Returns out. */
static const char *set_text(size_t ranked, size_t count, char out[80]) {
    out[0] = 0;
    if (ranked < count) snprintf(out, 80, " (of %zu of %zu configurations)", ranked, count);
    return out;
}
/* Names the two most interesting configurations: the fastest and the most accurate of the front. */
static void find_best(struct report *report, const struct tradeoff *tradeoff) {
    const char *task =
        report->results->group_count > 1 ? report->results->files[tradeoff->group->first].dataset_name : "";
    for (size_t i = 0; i<tradeoff->front_count; i += tradeoff->front_count> 1 ? tradeoff->front_count - 1 : 1) {
        const size_t config = tradeoff->front[i];
        const vp_bootstrap_point *point = &tradeoff->points[config];
        vp_estimate latency = point_latency(point), accuracy = point_accuracy(point);
        char name[80], set[80];
        text_list_add(&report->findings, "%.240s%s%s%s: %s, accuracy %s, %s of %s %s %s", task, *task ? ": " : "",
                      accuracies_are_equal(tradeoff) ? "all accuracies are equal; fastest"
                      : tradeoff->front_count == 1   ? "fastest and most accurate"
                      : i                            ? "most accurate"
                                                     : "fastest on the front",
                      set_text(tradeoff->config_count, tradeoff->group->count, set),
                      setting_text(&report->results->files[tradeoff->group->paired[config]], name),
                      number_estimate(1, accuracy.value, accuracy.low, accuracy.high).text,
                      percentile_text(report->settings.percentile), METRIC_KEYS[report->settings.axis],
                      number_estimate(1, latency.value, latency.low, latency.high).text,
                      TERMS[report->settings.axis].unit);
    }
}
/* Returns the configuration at the knob's highest level whose other knobs equal those of `config`, which has a lower
 * level; config_count if it was not measured. */
static size_t other_end(const struct tradeoff *tradeoff, size_t config, int32_t knob) {
    size_t width = (size_t)tradeoff->knobs.knob_count, i = 0;
    for (; i < tradeoff->config_count; i++) {
        int same = tradeoff->levels[i * width + (size_t)knob] == tradeoff->knobs.level_counts[knob] - 1;
        for (size_t k = 0; k < width; k++)
            same &= k == (size_t)knob || tradeoff->levels[i * width + k] == tradeoff->levels[config * width + k];
        if (same) break;
    }
    return i;
}
/* Sums values [config_count, sample_count] for each sample: low over the configurations at a level of a knob, high over
 * their partners at its highest level. Returns the number of pairs. */
static size_t sum_ends(const struct tradeoff *tradeoff, int32_t knob, int32_t level, const double *values, double *low,
                       double *high) {
    size_t pairs = 0;
    memset(low, 0, tradeoff->sample_count * sizeof *low);
    memset(high, 0, tradeoff->sample_count * sizeof *high);
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        size_t end = tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)knob] != level
                         ? tradeoff->config_count
                         : other_end(tradeoff, i, knob);
        if (end == tradeoff->config_count) continue;
        pairs++;
        for (size_t sample = 0; sample < tradeoff->sample_count; sample++) {
            low[sample] += values[i * tradeoff->sample_count + sample];
            high[sample] += values[end * tradeoff->sample_count + sample];
        }
    }
    return pairs;
}
/* The effect of a knob on accuracy, as the end of a sentence. low and high are the samples' sums at the lowest and the
 * highest level, over `pairs` configurations each. Returns 1 if the interval excludes 0. */
static int accuracy_text(const struct tradeoff *tradeoff, size_t pairs, const double *low, const double *high,
                         char out[200]) {
    const double points = 100.0 / (double)pairs;
    struct score_range range = tradeoff->range;
    vp_bounded_interval gain;
    int is_decided;
    range.low *= (double)pairs;
    range.high *= (double)pairs;
    gain = accuracy_interval(range, low, high, tradeoff->sample_count);
    is_decided = isfinite(gain.low) && isfinite(gain.high) && (gain.low > 0 || gain.high < 0);
    if (!isfinite(gain.low) || !isfinite(gain.high))
        snprintf(out, 200, "; its effect on accuracy has no interval: %+.2f points in every sample, and the metric's "
                           "range is unknown", points * gain.mean);
    else if (is_decided)
        snprintf(out, 200, " and scores %s points %s",
                 number_estimate(points, fabs(gain.mean), fmin(fabs(gain.low), fabs(gain.high)),
                                 fmax(fabs(gain.low), fabs(gain.high))).text, gain.mean > 0 ? "higher" : "lower");
    else if (points * gain.low > -1 && points * gain.high < 1)
        snprintf(out, 200, " and scores the same within 1 point: %s points",
                 number_change(points, gain.mean, gain.low, gain.high).text);
    else
        snprintf(out, 200, "; no significant effect on accuracy: %s points",
                 number_change(points, gain.mean, gain.low, gain.high).text);
    return is_decided;
}
/* By this logarithm the means of equal servers can differ, because a machine was not quiet; 0 if all were. */
static double noise_of_servers(const struct tradeoff *tradeoff, const struct results *results) {
    double noise = 0;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const struct result_file *file = &results->files[tradeoff->group->paired[i]];
        if (file->is_served && vp_noise_reasons(&file->noise)) noise = fmax(fmax(noise, 0.25), 2 * file->noise.spread);
    }
    return noise;
}
/* Returns 1 if the level of a knob was swept into another folder than its highest, before or after it. */
static int is_apart(const struct tradeoff *tradeoff, const struct results *results, int32_t knob, int32_t level) {
    int apart = 1;
    for (size_t i = 0, end; i < tradeoff->config_count && apart; i++) {
        if (tradeoff->levels[i * (size_t)tradeoff->knobs.knob_count + (size_t)knob] != level
            || (end = other_end(tradeoff, i, knob)) == tradeoff->config_count)
            continue;
        const struct result_file *one = &results->files[tradeoff->group->paired[i]],
                                 *other = &results->files[tradeoff->group->paired[end]];
        const size_t folder = (size_t)(name_in_path(one->path) - one->path);
        apart = strncmp(one->path, other->path, folder) && one->measured_from && one->measured_to
                && other->measured_from && other->measured_to
                && (strcmp(one->measured_to, other->measured_from) <= 0
                    || strcmp(other->measured_to, one->measured_from) <= 0);
    }
    return apart;
}
/* "high resolution costs 5.6 times [5.3, 5.9] the mean T_total of low", "slots 4 cuts mean T_total by 20.1 % [..]
 * compared with 1": a ratio of at least 2 is a factor, a smaller one a change in percent. */
static void cost_text(const struct report *report, const struct tradeoff *tradeoff, int32_t knob, int32_t level,
                      const vp_mean_interval *ratio, char out[520]) {
    const int kind = tradeoff->knob_of[knob], is_factor = ratio->mean >= 2;
    const char *axis = METRIC_KEYS[report->settings.axis];
    char first[KNOB_TEXT_BYTES], last[KNOB_TEXT_BYTES], name[KNOB_TEXT_BYTES + 60];
    report_level_text(tradeoff, report->results, kind, level, first);
    report_level_text(tradeoff, report->results, kind, tradeoff->knobs.level_counts[knob] - 1, last);
    if (kind == KNOB_SIZE && !strpbrk(last, "0123456789")) snprintf(name, sizeof name, "%s resolution", last);
    else if (kind == KNOB_BLOCKS) snprintf(name, sizeof name, "running %s blocks", last);
    else snprintf(name, sizeof name, "%s %s", KNOBS[kind].axis, last);
    const int is_open = ratio->low <= 1 && ratio->high >= 1;
    const char *flat = ratio->low > 0.97 && ratio->high < 1.03 ? "flat: it saves no time" : "";
    const struct number_text change = is_factor
                                          ? number_estimate(1, ratio->mean, ratio->low, ratio->high)
                                          : number_change(100, ratio->mean - 1, ratio->low - 1, ratio->high - 1);
    if (tradeoff->is_loaded)
        snprintf(out, 520, "%s: mean %s %s %% of that with %s (no interval: under load, requests wait for each other)",
                 name, axis, number_short(100 * ratio->mean).text, first);
    else if (is_open)
        snprintf(out, 520, "%s has no significant effect on mean %s compared with %s (%s %s%s%s)", name, axis, first,
                 change.text, is_factor ? "times" : "%", *flat ? ", " : "", flat);
    else if (fabs(log(ratio->mean)) < noise_of_servers(tradeoff, report->results))
        snprintf(out, 520, "%s changes mean %s by %s %% compared with %s, but other programs ran: their effect could "
                           "be as large", name, axis, change.text, first);
    else if (is_factor) snprintf(out, 520, "%s costs %s times the mean %s of %s", name, change.text, axis, first);
    else
        snprintf(out, 520, "%s %s mean %s by %s %% compared with %s%s%s%s", name, ratio->mean >= 1 ? "raises" : "cuts",
                 axis,
                 (ratio->mean >= 1 ? number_estimate(100, ratio->mean - 1, ratio->low - 1, ratio->high - 1)
                                   : number_estimate(-100, ratio->mean - 1, ratio->high - 1, ratio->low - 1)).text,
                 first, *flat ? " (" : "", flat, *flat ? ")" : "");
}
/* The ratio of the means of paired values and its interval, which is never negative: Student's interval of the
 * logarithm, whose error each pair contributes high / mean high - low / mean low to. Scales both. Returns 0 if the
 * values give none. */
static int ratio_of_means(double *low, double *high, size_t count, vp_mean_interval *ratio) {
    const double before = vp_statistics_mean(low, count), after = vp_statistics_mean(high, count);
    if (!(before > 0) || !(after > 0)) return 0;
    for (size_t i = 0; i < count; i++) {
        low[i] /= before;
        high[i] /= after;
    }
    if (vp_paired_t(low, high, count, 0.95, ratio) != VP_OK) return 0;
    ratio->low = after / before * exp(ratio->low);
    ratio->high = after / before * exp(ratio->high);
    ratio->mean = after / before;
    return 1;
}
/* Adds the cost of raising a knob from a level to its highest and the gain, with all others equal, paired over the
 * samples. low, high: double [sample_count]. */
static void find_change(struct report *report, const struct tradeoff *tradeoff, int32_t knob, int32_t level,
                        double *low, double *high, struct text_list lists[2]) {
    const char *task =
        report->results->group_count > 1 ? report->results->files[tradeoff->group->first].dataset_name : "";
    char cost[520], accuracy[200] = "";
    vp_mean_interval ratio;
    size_t pairs = sum_ends(tradeoff, knob, level, tradeoff->latency, low, high);
    int is_decided = level > 0 && lists[1].count; /* next to the whole range of its knob */
    if (!pairs || !ratio_of_means(low, high, tradeoff->sample_count, &ratio)) return;
    cost_text(report, tradeoff, knob, level, &ratio, cost);
    if (is_apart(tradeoff, report->results, knob, level))
        snprintf(cost + strlen(cost), sizeof cost - strlen(cost), " (including drift of the machine between the two)");
    if (tradeoff->accuracy) {
        sum_ends(tradeoff, knob, level, tradeoff->accuracy, low, high);
        is_decided |= accuracy_text(tradeoff, pairs, low, high, accuracy);
    }
    text_list_add(&lists[is_decided], "%.240s%s%s%s", task, *task ? ": " : "", cost, accuracy);
}
/* Adds each knob's cost from its lowest to its highest level, and the image size's also from the level below the
 * highest, which may be as accurate. Knobs with a known effect on accuracy come first. */
static void find_changes(struct report *report, const struct tradeoff *tradeoff) {
    double *low = resize(NULL, tradeoff->sample_count, 2 * sizeof *low), *high = low + tradeoff->sample_count;
    struct text_list lists[2] = {{NULL, 0}, {NULL, 0}};
    for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++) {
        const int32_t levels = tradeoff->knobs.level_counts[k];
        find_change(report, tradeoff, k, 0, low, high, lists);
        if (tradeoff->knob_of[k] == KNOB_SIZE && levels > 2)
            find_change(report, tradeoff, k, levels - 2, low, high, lists);
    }
    for (int decided = 1; decided >= 0; decided--) {
        for (size_t i = 0; i < lists[decided].count; i++)
            text_list_add(&report->findings, "%s", lists[decided].items[i]);
        text_list_free(&lists[decided]);
    }
    if (tradeoff->knobs.knob_count > 1 && tradeoff->accuracy)
        text_list_add(&report->findings, "these are averages over the other knobs; the front can differ");
    free(low);
}
static void find_pruning(struct report *report, const struct tradeoff *tradeoff, const struct pruned_rows *rows) {
    for (size_t i = 0; i < rows->count; i++) {
        char name[160], text[400];
        pruned_finding(&rows->items[i], tradeoff, text, sizeof text);
        text_list_add(&report->findings, "%s: %s",
                      report_full_name(report->results,
                                       &report->results->files[tradeoff->group->paired[rows->items[i].config]], name),
                      text);
    }
}
/* Returns 1 if the file is the baseline, which is named by its path or the path's last part. */
static int is_baseline(const struct result_file *file) {
    const char *name = file->fidelity.baseline;
    return !strcmp(file->path, name) || !strcmp(name_in_path(file->path), name);
}
/* The distance of a configuration from the baseline: its KL divergence or, if that is unknown, its token and answer
 * agreement. NaN if unknown. */
static double distance_of(const struct result_fidelity *fidelity, int by_divergence) {
    if (by_divergence) return fidelity->kl_divergence_mean;
    return isfinite(fidelity->top1_agreement) ? 1 - fidelity->top1_agreement : 1 - fidelity->answer_agreement;
}
static void add_number(struct text_buffer *out, const char *name, double value, const struct field_range *range,
                       const char *unit) {
    if (!isfinite(value)) return;
    text_add_string(out, ", ");
    text_add_string(out, name);
    text_add_string(out, number_measured(value, range->low, range->high).text);
    text_add_string(out, unit);
}
static void say_distance(struct text_buffer *out, const struct results *results, const struct result_file *file) {
    const struct result_fidelity *fidelity = &file->fidelity;
    char name[160];
    text_add_string(out, report_full_name(results, file, name));
    add_number(out, file->is_served ? "KL divergence at least " : "KL divergence ", fidelity->kl_divergence_mean,
               &fidelity->kl_divergence_mean_interval, " nats");
    add_number(out, "top1_agreement ", fidelity->top1_agreement, &fidelity->top1_agreement_interval, "");
    add_number(out, "answer_agreement ", fidelity->answer_agreement, &fidelity->answer_agreement_interval, "");
}
/* Names the configurations that are closest to the baseline and farthest from it. */
static void find_agreement(struct report *report, size_t group) {
    const struct results *results = report->results;
    const struct result_file *near = NULL, *far = NULL, *files = &results->files[results->groups[group].first];
    const char *baseline = report_baseline(results, group);
    struct text_buffer text = {NULL, 0, 0};
    size_t ranked = 0, baselines = 0;
    char set[80];
    int by_divergence = 1;
    if (!baseline) return;
    for (size_t i = 0; i < results->groups[group].count; i++)
        by_divergence &= !files[i].fidelity.baseline || isfinite(files[i].fidelity.kl_divergence_mean);
    for (size_t i = 0; i < results->groups[group].count; i++) {
        const struct result_file *file = &files[i];
        const double distance = distance_of(&file->fidelity, by_divergence);
        if (file->fidelity.baseline && is_baseline(file)) baselines++;
        if (!file->fidelity.baseline || is_baseline(file) || !isfinite(distance)) continue;
        ranked++;
        if (!near || distance < distance_of(&near->fidelity, by_divergence)) near = file;
        if (!far || distance > distance_of(&far->fidelity, by_divergence)) far = file;
    }
    if (!near) return;
    text_add_string(&text, near == far ? "agreement with " : "closest to ");
    text_add_string(&text, baseline);
    text_add_string(&text, set_text(ranked, results->groups[group].count - baselines, set));
    text_add_string(&text, ": ");
    say_distance(&text, results, near);
    if (near != far) {
        text_add_string(&text, "; farthest: ");
        say_distance(&text, results, far);
    }
    text_list_add(&report->findings, "%s", text.data);
    free(text.data);
}
int report_has_stages(const struct report *report) {
    int is_known = !are_all_served(report->results);
    for (size_t i = 0; i < report->results->count; i++)
        is_known |= report->items[i].mean[METRIC_VISION] > 0 || report->items[i].mean[METRIC_PREFILL] > 0;
    return is_known;
}
const char *stages_unknown_text(const struct report *report) {
    if (report_has_stages(report)) return NULL;
    for (size_t i = 0; i < report->results->count; i++)
        if (report->results->files[i].outside.pairs && isfinite(report->results->files[i].outside.ms))
            return "a client cannot measure a server's stages, except for the cost of an image";
    return "a client cannot measure a server's stages";
}
/* The cost of an image, which twins measure from outside a server. */
static void find_image_cost(struct report *report) {
    const struct outside *only = NULL;
    vp_estimate cost = {0, HUGE_VAL, -HUGE_VAL}, share = cost;
    size_t known = 0;
    int64_t pairs = 0, left_out = 0;
    char range[64], shares[64], set[80];
    for (size_t i = 0; i < report->results->count; i++) {
        const struct outside *outside = &report->results->files[i].outside;
        if (!report->results->files[i].is_served || !outside->pairs) continue;
        pairs += outside->pairs;
        left_out += outside->left_out;
        if (!isfinite(outside->ms)) continue;
        only = known++ ? NULL : outside;
        cost.low = fmin(cost.low, outside->ms);
        cost.high = fmax(cost.high, outside->ms);
        share.low = fmin(share.low, outside->ms / outside->image_ms);
        share.high = fmax(share.high, outside->ms / outside->image_ms);
    }
    if (pairs && !known)
        text_list_add(&report->findings, "the cost of an image is unknown: %lld image/text pairs, %lld dropped",
                      (long long)pairs, (long long)left_out);
    if (!known) return;
    if (only) snprintf(range, sizeof range, "%.50s ms", number_measured(only->ms, only->low, only->high).text);
    else range_text("%.3g", cost.low, cost.high, "ms", range);
    text_list_add(&report->findings,
                  "an image takes %s, %s of the time to the first token (T_image_outside, from pairs)%s", range,
                  isfinite(share.high) ? shares_text(share.low, share.high, shares) : "an unknown share",
                  set_text(known, report->results->count, set));
}
/* From outside a server, only the first token divides the time of a request. */
static void find_first_token(struct report *report) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    char shares[64];
    for (size_t i = 0; i < report->results->count; i++) {
        double share = report->items[i].mean[METRIC_TTFT] / report->items[i].mean[METRIC_TOTAL];
        if (share < low) low = share;
        if (share > high) high = share;
    }
    if (stages_unknown_text(report)) text_list_add(&report->findings, "%s", stages_unknown_text(report));
    find_image_cost(report);
    if (high > 0)
        text_list_add(&report->findings, "the time to the first token is %s of a request",
                      shares_text(low, high, shares));
}
/* The mean time of a decode step, and where a few slow steps make it larger than the median, that too. The time of its
 * bytes is a share of it only where the roof is given: the best stage of these files includes decode itself. */
static void find_decode(struct report *report) {
    vp_estimate mean = {0, HUGE_VAL, -HUGE_VAL}, median = mean, share = mean;
    int has_slow_steps = 0;
    char shares[64], steps[64];
    struct text_buffer text = {NULL, 0, 0};
    for (size_t i = 0; i < report->results->count; i++) {
        const struct stage_cost *cost = &report->items[i].stages[VP_STAGE_DECODE];
        const double step = report->items[i].mean[METRIC_PER_TOKEN], p50 = report->items[i].p50[METRIC_PER_TOKEN].value,
                     floor_ms = cost->bytes / cost->mean * step / report->settings.peak_gbs / 1e6;
        if (!(step > 0)) continue;
        mean.low = fmin(mean.low, step);
        mean.high = fmax(mean.high, step);
        median.low = fmin(median.low, p50);
        median.high = fmax(median.high, p50);
        has_slow_steps |= step > 1.5 * p50;
        share.low = fmin(share.low, floor_ms / step);
        share.high = fmax(share.high, floor_ms / step);
    }
    if (!(mean.high > 0)) return;
    text_add_format(&text, "a decode step takes %s on average", range_text("%.3g", mean.low, mean.high, "ms", steps));
    if (has_slow_steps)
        text_add_format(&text, " (P50 %s: some steps are much slower)",
                        range_text("%.3g", median.low, median.high, "ms", steps));
    if (share.high > 0)
        text_add_format(&text, "; reading its bytes at %s GB/s takes %s%s",
                        number_short(report->settings.peak_gbs).text, shares_text(share.low, share.high, shares),
                        share.high > 1 ? " as long" : " of that");
    text_list_add(&report->findings, "%s", text.data);
    free(text.data);
}
/* The idle time of GPUs. A CPU that waits does so for itself. */
static void find_idle(struct report *report) {
    double least = HUGE_VAL, most = -HUGE_VAL, host = 0;
    size_t known = 0, bound_count = 0, sent = 0, gpus = 0;
    char shares[64], set[80], host_bound[80];
    for (size_t i = 0; i < report->results->count; i++) {
        const struct decomposition *decomposition = &report->items[i];
        if (!decomposition->file->device || strncmp(decomposition->file->device, "cuda", 4)) continue;
        gpus += !decomposition->file->is_foreign;
        if (decomposition->stages[VP_STAGE_DECODE].host_share > 0) {
            sent++;
            if (decomposition->stages[VP_STAGE_DECODE].host_share > host)
                host = decomposition->stages[VP_STAGE_DECODE].host_share;
        }
        if (!isfinite(decomposition->idle_share)) continue;
        known++;
        bound_count += decomposition->idle_share > 0.3;
        if (decomposition->idle_share < least) least = decomposition->idle_share;
        if (decomposition->idle_share > most) most = decomposition->idle_share;
    }
    if (known)
        text_list_add(&report->findings, "the device is idle for %s of its stage time%s: %s%s",
                      shares_text(least, most, shares), set_text(known, report->results->count, set),
                      bound_count ? "host-bound, so faster kernels would help little"
                                  : "not host-bound",
                      set_text(bound_count ? bound_count : known, known, host_bound));
    else if (gpus)
        text_list_add(&report->findings, "the idle time of the device is unknown: sweep --kernel_pass measures it");
    if (sent && host > 0.9)
        text_list_add(&report->findings,
                      "submitting decode work takes the host up to %s of the decode time%s: host-bound",
                      number_share(host).text, set_text(sent, report->results->count, set));
}

/* ---- the report */
static int varies_only_load(const struct tradeoff *tradeoff) {
    int only = tradeoff->knobs.knob_count > 0 && !tradeoff->reason[0];
    for (int32_t k = 0; k < tradeoff->knobs.knob_count; k++)
        only &= tradeoff->knob_of[k] == KNOB_RATE || tradeoff->knob_of[k] == KNOB_CONCURRENCY;
    return only;
}
void report_make(struct report *report, const struct results *results, const struct report_settings *settings) {
    *report = (struct report){.results = results, .settings = *settings,
                              .items = zeroed(results->count, sizeof *report->items),
                              .tradeoffs = zeroed(results->group_count, sizeof *report->tradeoffs),
                              .pruned = zeroed(results->group_count, sizeof *report->pruned)};
    for (size_t i = 0; i < results->count; i++) decompose(&report->items[i], &results->files[i]);
    find_peaks(report);
    for (size_t i = 0; i < results->count; i++)
        for (int k = 0; k < VP_STAGE_COUNT; k++)
            report->items[i].stages[k].limit = bound_of(report, &report->items[i].stages[k]);
    results_warn_of_noise(report->results, &report->warnings);
    warn_of_files(report);
    warn_of_samples(report);
    warn_of_units(report);
    for (size_t i = 0; i < results->notes.count; i++) text_list_add(&report->warnings, "%s", results->notes.items[i]);
    for (size_t i = 0; i < results->group_count; i++) {
        tradeoff_make(&report->tradeoffs[i], results, &results->groups[i], settings);
        if (!varies_only_load(&report->tradeoffs[i])) curves_add(&report->curves, results, i);
        else
            snprintf(report->tradeoffs[i].reason, sizeof report->tradeoffs[i].reason,
                     "only the load varies: see \"Under load\"");
        report->pruned[i] = pruned_rows_make(&report->tradeoffs[i], results);
        const struct tradeoff *tradeoff = &report->tradeoffs[i];
        if (tradeoff->shown_for != tradeoff->not_shown && tradeoff->not_shown != KNOB_ENDPOINT)
            text_list_add(&report->warnings, "%s and %s change together: the effect shown for %s is that of both",
                          KNOBS[tradeoff->not_shown].axis, KNOBS[tradeoff->shown_for].axis,
                          KNOBS[tradeoff->shown_for].axis);
        find_changes(report, tradeoff);
        find_best(report, tradeoff);
        find_pruning(report, tradeoff, &report->pruned[i]);
        find_agreement(report, i);
    }
    report->loads = load_rows_make(results, report_full_name);
    load_find(&report->loads, &report->findings);
    if (report_has_stages(report)) find_dominant(report);
    report->stage_findings = report->findings.count;
    if (are_all_served(results)) {
        find_first_token(report);
        return;
    }
    find_decode(report);
    find_idle(report);
}
int report_add_categories(struct report *report, const char *field) {
    report->by = field;
    return field ? categories_read(report->results, field, report_full_name, &report->categories, &report->warnings)
                 : 0;
}
void report_free(struct report *report) {
    for (size_t i = 0; report->tradeoffs && i < report->results->group_count; i++) {
        tradeoff_free(&report->tradeoffs[i]);
        free(report->pruned[i].items);
    }
    text_list_free(&report->warnings);
    text_list_free(&report->findings);
    curves_free(&report->curves);
    FREE_ALL(report->items, report->tradeoffs, report->pruned, report->loads.items);
    category_rows_free(&report->categories);
}
const char *report_baseline(const struct results *results, size_t group) {
    const struct result_file *files = &results->files[results->groups[group].first];
    for (size_t i = 0; i < results->groups[group].count; i++)
        if (files[i].fidelity.baseline) return files[i].fidelity.baseline;
    return NULL;
}
const char *report_full_name(const struct results *results, const struct result_file *file, char out[160]) {
    char name[80];
    setting_text(file, name);
    if (results->group_count > 1) snprintf(out, 160, "%.70s %s", file->dataset_name, name);
    else snprintf(out, 160, "%s", name);
    return out;
}
int stage_is_known(const struct report *report, int stage) {
    for (size_t i = 0; i < report->results->count; i++) if (isfinite(report->items[i].stages[stage].mean)) return 1;
    return 0;
}
int is_on_front(const struct report *report, size_t file) {
    for (size_t group = 0; group < report->results->group_count; group++) {
        const struct tradeoff *tradeoff = &report->tradeoffs[group];
        for (size_t i = 0; i < tradeoff->front_count; i++)
            if (tradeoff->group->paired[tradeoff->front[i]] == file) return 1;
    }
    return 0;
}
void put_setting_of(vp_json_writer *writer, const struct result_file *file) {
    put_text(writer, "dataset_name", file->dataset_name);
    for (int knob = 0; knob < KNOB_OWN; knob++) {
        const int is_unknown = file->is_served && KNOBS[knob].of == KNOB_OF_ENGINE;
        if (KNOBS[knob].of == KNOB_OF_SWEEP || KNOBS[knob].in_knobs) continue;
        if ((is_unknown || !knob_is_set(&file->knobs, knob)) && !(KNOBS[knob].always & KNOB_IN_REPORTS)) continue;
        if (is_unknown) {
            put_null(writer, KNOBS[knob].key);
            continue;
        }
        knob_put(writer, knob, &file->knobs);
        if (KNOBS[knob].number_key) knob_put_more(writer, knob, &file->knobs);
    }
    knob_put_own(writer, &file->knobs);
}
