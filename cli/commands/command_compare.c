/* command_compare.c: reports whether a change made a model slower or worse. The input is two sets of result files, A
 * before and B after. Configurations are paired, then samples. A verdict for each configuration and column is printed
 * as text or JSON, and the exit code shows whether anything became worse. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "measure/noise.h"
#include "report/report.h"
#include "report/tradeoff.h"
#include "results/metrics.h"
#include "results/result_read.h"
#include "vlmprof_analysis.h"

#include <math.h>

static const struct option_spec COMPARE_OPTIONS[] = {
    OPTION_GROUP("margins"),
    {"margin", REAL, "PERCENT", "2", 0, 100, NULL, "latencies that differ by less than this count as equal"},
    {"accuracy_margin", REAL, "POINTS", "1", 0, 100, NULL,
     "accuracies that differ by less than this many percentage points count as equal"},
    {"force", TEXTS, "WHAT...", NULL, 0, 0, NULL,
     "compare even if these differ: device, clocks, model, weights, data, seed, runs, timing, images, ...; noise: even "
     "if the machine was not quiet; all: any of these"},
    OPTION_GROUP("output"),
    {"all", FLAG, NULL, NULL, 0, 0, NULL, "also print INCONCLUSIVE comparisons"},
    {"fail_on_unsure", FLAG, NULL, NULL, 0, 0, NULL, "also exit with 1 if the verdict is INCONCLUSIVE"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* The compared columns: latencies, accuracy, and the columns of a baseline, of which the last is a distance. */
enum { COMPARED_ACCURACY = 6, COMPARED_DIVERGENCE = 9, COMPARED };
static const int COMPARED_COLUMNS[COMPARED] = {
    METRIC_TOTAL,     METRIC_TTFT,     METRIC_VISION, METRIC_PREFILL,          METRIC_DECODE,
    METRIC_PER_TOKEN, COLUMN_ACCURACY, COLUMN_TOP1,   COLUMN_ANSWER_AGREEMENT, COLUMN_DIVERGENCE};

static int is_latency(int which) { return which < COMPARED_ACCURACY; }
static const char *compared_name(int which) {
    static const char *const names[] = {"accuracy", "top1_agreement", "answer_agreement", "kl_divergence_mean"};
    return is_latency(which) ? METRIC_KEYS[COMPARED_COLUMNS[which]] : names[which - COMPARED_ACCURACY];
}
static const char *unit_of(int which) {
    return is_latency(which) ? "%" : which == COMPARED_DIVERGENCE ? "nats" : "points";
}
static double scale_of(int which) { return which == COMPARED_DIVERGENCE ? 1 : 100; }
struct result_pair { const struct result_file *before, *after; };
/* The test of a difference. Latencies, and scores of unknown range, get the paired t test. */
enum { TEST_T, TEST_RATES, TEST_BOUNDED };
static const char *const TEST_NAMES[] = {"paired t", "mcnemar", "bounded mean"};
static const char *const INTERVAL_NAMES[] = {"student", "tango", "gaffke"};
struct compared_row {               /* one comparison */
    double *differences, *before, *after; /* of the pairs, in the order of measurement; one allocation */
    const struct result_pair *pair; /* NULL if over all configurations of a task */
    const char *task;
    int which;                   /* index of the column */
    double mean_a, mean_b;       /* means of A's and B's samples */
    double typical_a, typical_b; /* for a latency the geometric means, otherwise the means */
    double deviation;            /* standard deviation of independent differences; for latencies, of logarithms */
    double correlation_time;     /* pairs that carry as much information as one independent pair; 0 if unknown */
    int test;                    /* TEST_* */
    double level;                /* of the interval */
    struct score_range range;    /* range of a score */
    const char *reason;          /* reason if there is no interval; otherwise NULL */
    int is_noisy;                /* 1 for a latency if the machine was not quiet for A or B: a wider interval */
    int is_drifting;             /* 1 for a latency whose difference changed from `began` to `ended` */
    double began, ended;
    int is_equal;                /* 1 for an accuracy if no pair differs */
    size_t like;                 /* index of an earlier row with the same ratios, plus 1; 0 if none */
    size_t needed;               /* samples needed to find a change; 0 if unknown */
    size_t to_decide;            /* samples needed to find or confirm a change, the smaller; 0 if unknown */
};
struct comparison_job {
    const struct options *options;
    struct results before, after;
    struct result_pair *pairs; size_t pair_count;
    struct compared_row *rows; vp_comparison *verdicts; size_t count;
    size_t family;         /* rows that the correction counts: those that differ from all others */
    struct text_list warnings;
    double margin, accuracy_margin;
    int has_unknown_range; /* 1 if an accuracy has scores of unknown range */
    int is_identical;      /* 1 if every compared value of every sample is equal on both sides */
};
#define COMPARE_ALPHA 0.05
#define DRIFT_ALPHA 0.025

/* The settings that must be equal in both files, named as in --force. */
enum { ALIKE_CONFIGURATION, ALIKE_DEVICE, ALIKE_CLOCKS, ALIKE_MODEL, ALIKE_WEIGHTS, ALIKE_DATA, ALIKE_SEED, ALIKE_RUNS,
       ALIKE_TIMING, ALIKE_METRIC, ALIKE_NEW_TOKENS, ALIKE_IMAGES, ALIKE_CACHE, ALIKE_BLOCKS, ALIKE_BASELINE,
       ALIKE_COUNT };
static const char *const ALIKE[ALIKE_COUNT] = {"configuration", "device", "clocks", "model",  "weights",        "data",
                                    "seed",          "runs",   "timing", "metric", "max_new_tokens", "images",
                                    "no_cache",      "blocks", "baseline"};

static int are_texts_different(const char *one, const char *other) {
    return strcmp(one ? one : "", other ? other : "") != 0;
}
/* The share of a file's runs in which the clocks were throttled. */
static double throttled_share(const struct result_file *file) {
    return file->num_throttled_runs > 0 && file->run_at[file->count]
               ? (double)file->num_throttled_runs / (double)file->run_at[file->count]
               : 0;
}
/* Returns 1 if both files sent a server the same requests, or are of one configuration of an engine. */
static int is_same_request(const struct result_file *before, const struct result_file *after) {
    struct text_list differ = {NULL, 0};
    const int is_different = results_differ(before, after, 0, &differ);
    text_list_free(&differ);
    if (!before->is_served || !after->is_served) return !is_different && !compare_settings(before, after);
    return !strcmp(before->dataset_name, after->dataset_name) && is_same_size(before, after) && !is_different
           && !knob_compare(KNOB_ENDPOINT_MODEL, &before->knobs, &after->knobs);
}
/* Returns 1 if the files differ in this setting. `out` gets the value of each. */
static int is_different(const struct result_file *before, const struct result_file *after, int what, char out[2][80]) {
    const char *texts[2] = {NULL, NULL};
    int64_t numbers[2] = {-1, -1};
    const struct knob_value *one = &before->knobs.of[KNOB_BLOCKS], *other = &after->knobs.of[KNOB_BLOCKS];
    struct result_file plain[2] = {*before, *after};
    struct text_list differ = {NULL, 0};
    plain[0].varied = plain[1].varied = 0;
    out[0][0] = out[1][0] = 0;
    switch (what) {
    case ALIKE_CONFIGURATION: /* weights are distinguished below */
        for (int i = 0; i < 2; i++) setting_text(&plain[i], out[i]);
        if (results_differ(before, after, 0, &differ) && !before->is_served)
            for (int i = 0; i < 2; i++) snprintf(out[i], 80, "%.30s=%.40s", differ.items[0], differ.items[1 + i]);
        text_list_free(&differ);
        return !is_same_request(before, after) && are_texts_different(out[0], out[1]);
    case ALIKE_DEVICE: texts[0] = before->device; texts[1] = after->device; break;
    case ALIKE_CLOCKS:
        snprintf(out[0], 80, "%.0f %% throttled", 100 * throttled_share(before));
        snprintf(out[1], 80, "%.0f %% throttled", 100 * throttled_share(after));
        return fabs(throttled_share(before) - throttled_share(after)) > 0.05;
    case ALIKE_MODEL: texts[0] = before->model; texts[1] = after->model; break;
    case ALIKE_WEIGHTS:
        texts[0] = knob_text(&before->knobs, KNOB_WEIGHTS);
        texts[1] = knob_text(&after->knobs, KNOB_WEIGHTS);
        break;
    case ALIKE_DATA:
        texts[0] = before->data_hash ? before->data_hash : before->data;
        texts[1] = after->data_hash ? after->data_hash : after->data;
        break;
    case ALIKE_SEED: numbers[0] = before->seed; numbers[1] = after->seed; break;
    case ALIKE_RUNS: numbers[0] = before->num_runs_per_sample; numbers[1] = after->num_runs_per_sample; break;
    case ALIKE_TIMING: texts[0] = before->timing; texts[1] = after->timing; break;
    case ALIKE_METRIC: texts[0] = before->accuracy_metric; texts[1] = after->accuracy_metric; break;
    case ALIKE_BASELINE: /* not compared if only one side has it */
        texts[0] = after->fidelity.baseline ? before->fidelity.baseline : NULL;
        texts[1] = before->fidelity.baseline ? after->fidelity.baseline : NULL;
        break;
    case ALIKE_IMAGES: texts[0] = before->images; texts[1] = after->images; break;
    case ALIKE_CACHE:
        texts[0] = before->is_served && before->no_cache ? "given" : "not given";
        texts[1] = after->is_served && after->no_cache ? "given" : "not given";
        break;
    case ALIKE_NEW_TOKENS: numbers[0] = before->max_new_tokens; numbers[1] = after->max_new_tokens; break;
    default:
        snprintf(out[0], 80, "%d blocks", one->list_count);
        snprintf(out[1], 80, "%d others", other->list_count);
        return one->list_count && other->list_count
               && (one->list_count != other->list_count
                   || memcmp(one->list, other->list, (size_t)one->list_count * sizeof *one->list));
    }
    for (int i = 0; i < 2; i++) {
        if (texts[i] || numbers[i] < 0) snprintf(out[i], 80, "%.60s", texts[i] ? texts[i] : "not recorded");
        else snprintf(out[i], 80, "%lld", (long long)numbers[i]);
    }
    return are_texts_different(texts[0], texts[1]) || numbers[0] != numbers[1];
}
static int is_forced(const struct options *options, const char *what) {
    const struct option_value *value = opt(options, "force");
    for (size_t i = 0; i < value->count; i++)
        if (!strcmp(value->items[i], what) || !strcmp(value->items[i], "all")) return 1;
    return 0;
}
static size_t common_samples(const struct result_pair *pair) {
    size_t count = 0;
    for (size_t i = 0; i < pair->before->count; i++)
        count += result_row(pair->after, pair->before->ids[i]) < pair->after->count;
    return count;
}
/* Complains about differences that --force does not name, and warns about the others. Returns 0 or an exit code. */
static int check_alike(struct comparison_job *job) {
    struct text_buffer refused = {NULL, 0, 0}, words = {NULL, 0, 0};
    int code = 0;
    for (int what = 0; what < ALIKE_COUNT; what++) {
        char values[2][80], line[240];
        size_t pair = 0;
        while (pair < job->pair_count && !is_different(job->pairs[pair].before, job->pairs[pair].after, what, values))
            pair++;
        if (pair == job->pair_count) continue;
        snprintf(line, sizeof line, "%s (%s / %s)", ALIKE[what], values[0], values[1]);
        if (what == ALIKE_DATA)
            snprintf(line, sizeof line, "%s (%s / %s: %zu / %zu samples, %zu of them with the same ids)", ALIKE[what],
                     values[0], values[1], job->pairs[pair].before->count, job->pairs[pair].after->count,
                     common_samples(&job->pairs[pair]));
        if (is_forced(job->options, ALIKE[what]))
            text_list_add(&job->warnings, "A and B differ in %s; compared anyway", line);
        else {
            text_add_format(&refused, "%s%s", refused.bytes ? ", " : "", line);
            text_add_format(&words, " %s", ALIKE[what]);
        }
    }
    if (refused.bytes)
        code = complain(EXIT_USAGE, "compare: A and B are not comparable: %.600s; --force%.200s compares them anyway",
                        refused.data, words.data);
    FREE_ALL(refused.data, words.data);
    return code;
}
/* Returns the index in B of the file whose configuration is equal except for the weights, if neither side varies them.
 * Returns B's count if there is none. */
static size_t same_but_weights(const struct comparison_job *job, const struct result_file *file) {
    struct result_file alike = *file;
    size_t other = 0;
    for (; other < job->after.count; other++) {
        if ((file->varied | job->after.files[other].varied) >> KNOB_WEIGHTS & 1) continue;
        alike.knobs.of[KNOB_WEIGHTS] = job->after.files[other].knobs.of[KNOB_WEIGHTS];
        if (!compare_settings(&alike, &job->after.files[other])) break;
    }
    return other;
}
/* Returns the index in B of the file with the same requests; B's count if there is none, or more than one. */
static size_t same_request(const struct comparison_job *job, const struct result_file *file) {
    size_t found = job->after.count, count = 0;
    for (size_t i = 0; i < job->before.count; i++) count += (size_t)is_same_request(file, &job->before.files[i]);
    for (size_t k = 0; k < job->after.count && count == 1; k++) {
        if (!is_same_request(file, &job->after.files[k])) continue;
        if (found < job->after.count) return job->after.count;
        found = k;
    }
    return found;
}
/* Pairs A's configurations with B's. Returns 0 or an exit code. */
static int pair_files(struct comparison_job *job) {
    size_t only_a = 0;
    job->pairs = zeroed(job->before.count, sizeof *job->pairs);
    for (size_t i = 0; i < job->before.count; i++) {
        const struct result_file *file = &job->before.files[i];
        size_t other = 0;
        while (other < job->after.count && compare_settings(file, &job->after.files[other])) other++;
        if (other == job->after.count) other = same_but_weights(job, file);
        if (other == job->after.count) other = same_request(job, file);
        if (other == job->after.count && (job->before.count > 1 || job->after.count > 1)) {
            only_a++;
            continue;
        }
        /* two single files are a pair even if their configurations differ */
        job->pairs[job->pair_count].before = file;
        job->pairs[job->pair_count++].after = &job->after.files[other < job->after.count ? other : 0];
    }
    if (!job->pair_count)
        return complain(EXIT_USAGE, "compare: %s and %s have no configuration in common; to compare different "
                                    "settings, give one result file per side, and --force configuration",
                        job->options->operands[0], job->options->operands[1]);
    for (int i = 0; i < 2; i++) {
        const size_t only = i ? job->after.count - job->pair_count : only_a;
        if (only) text_list_add(&job->warnings, "%zu configuration%s only in %s", only, only == 1 ? " is" : "s are",
                                job->options->operands[i]);
    }
    return 0;
}

/* Collects the values of one column for the samples in both files, and the ids unless `ids` is NULL. Returns the count.
 * Skips a latency of 0, because that stage did not run. */
static size_t pair_values(const struct result_pair *pair, int which, double *before, double *after, int64_t *ids) {
    int column = COMPARED_COLUMNS[which];
    size_t count = 0;
    if (which == COMPARED_ACCURACY && pair->before->is_agreement) return 0; /* the same for top1_agreement */
    for (size_t i = 0; i < pair->before->count; i++) {
        const size_t k = result_row(pair->after, pair->before->ids[i]);
        if (k == pair->after->count) continue;
        before[count] = result_at(pair->before, column, i);
        after[count] = result_at(pair->after, column, k);
        if (ids) ids[count] = pair->before->ids[i];
        count += isfinite(before[count]) && isfinite(after[count])
                 && (!is_latency(which) || (before[count] > 0 && after[count] > 0));
    }
    return count;
}
static double margin_of(const struct comparison_job *job, const struct compared_row *row) {
    return is_latency(row->which) ? job->margin : job->accuracy_margin;
}
/* Chooses the test of an accuracy by its scores: right or wrong, within a known range, or neither. */
static int accuracy_test(struct score_range range, const double *before, const double *after, size_t count) {
    if (!range.is_known) return TEST_T;
    for (size_t i = 0; i < count; i++)
        if ((before[i] > range.low && before[i] < range.high) || (after[i] > range.low && after[i] < range.high))
            return TEST_BOUNDED;
    return TEST_RATES;
}
static double geometric_mean(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += log(values[i]);
    return exp(sum / (double)count);
}
/* Requests in one queue are correlated beyond what their series shows: the interval becomes that of the means of
 * batches, at a stricter level, if that is wider. In simulations of a queue at 30 to 80 % utilisation with 200 requests
 * a side, equal servers then differ in 1 to 3 % of trials, and 10 % are found in 90 to 100 %. */
enum { BATCHES = 6 };
static void widen_by_batches(const struct comparison_job *job, const struct compared_row *row, size_t count,
                             double alpha, vp_comparison *comparison) {
    double before[BATCHES], after[BATCHES];
    vp_comparison batches;
    for (size_t i = 0; i < BATCHES && count >= 2 * BATCHES; i++) {
        const size_t from = count * i / BATCHES, to = count * (i + 1) / BATCHES;
        before[i] = geometric_mean(row->before + from, to - from);
        after[i] = geometric_mean(row->after + from, to - from);
    }
    if (count < 2 * BATCHES
        || vp_compare_paired(before, after, BATCHES, VP_SCALE_LOG, margin_of(job, row), alpha / 2, &batches) != VP_OK
        || !(batches.high - batches.low > comparison->high - comparison->low))
        return;
    const double shift = (1 + comparison->estimate) / (1 + batches.estimate); /* batches differ in size by a request */
    comparison->low = (1 + batches.low) * shift - 1;
    comparison->high = (1 + batches.high) * shift - 1;
    comparison->p_difference = fmin(1, 2 * batches.p_difference);
    comparison->p_equivalence = fmin(1, 2 * batches.p_equivalence);
    comparison->verdict = batches.verdict;
}
/* Returns 1 if the values can be compared; *comparison, with an interval at 1 - alpha, and row->reason are set. */
static int can_compare(const struct comparison_job *job, struct compared_row *row, size_t count, double alpha,
                       vp_comparison *comparison) {
    const int by_ratio = is_latency(row->which);
    const double *before = row->before, *after = row->after;
    if (!count) return 0;
    row->test = by_ratio ? TEST_T : accuracy_test(row->range, before, after, count);
    if (row->test != TEST_T) {
        size_t bytes = vp_bounded_scratch_bytes(count);
        void *scratch = resize(NULL, bytes, 1);
        vp_result result = vp_compare_accuracy(before, after, count, row->range.low, row->range.high,
                                               job->accuracy_margin, alpha, scratch, bytes, comparison);
        free(scratch);
        return result == VP_OK;
    }
    if (count == 1) {
        *comparison = (vp_comparison){.count = 1, .low = (double)NAN, .high = (double)NAN,
                                      .estimate = by_ratio ? after[0] / before[0] - 1 : after[0] - before[0],
                                      .p_difference = 1, .p_equivalence = 1, .verdict = VP_VERDICT_INCONCLUSIVE};
        row->reason = "only 1 pair: no spread, no interval";
        return 1;
    }
    /* samples are in the order of measurement, and other load on the machine usually affects several consecutive
     * ones */
    if (vp_compare_ordered(before, after, count, by_ratio ? VP_SCALE_LOG : VP_SCALE_ABSOLUTE,
                           margin_of(job, row), alpha, &row->correlation_time, comparison)
        != VP_OK)
        return 0;
    const struct result_pair *pair = row->pair ? row->pair : job->pairs;
    if (by_ratio && (knobs_are_loaded(&pair->before->knobs) || knobs_are_loaded(&pair->after->knobs)))
        widen_by_batches(job, row, count, alpha, comparison);
    if (!isfinite(comparison->low))
        row->reason = by_ratio ? "all ratios are equal: no interval, only a sign test"
                               : "all differences are equal and the metric's range is unknown: only a sign test";
    return 1;
}
/* Returns 1 if other programs or a virtual machine's host used CPU time while a pair of the row was measured, on either
 * side. Such load comes and goes between two sweeps, and more samples cannot distinguish it from a code change. Spread
 * between runs of equal work is not a reason, because it already widens the interval. */
enum { NOISE_FACTOR = 4 }; /* above what such load did to a time: see VP_NOISE_OTHER_PERCENT */
static int is_noisy(const struct comparison_job *job, const struct compared_row *row) {
    int reasons = 0;
    for (size_t i = 0; i < job->pair_count; i++) {
        const struct result_pair *pair = &job->pairs[i];
        if (row->pair ? row->pair != pair : strcmp(row->task, pair->before->dataset_name) != 0) continue;
        reasons |= vp_noise_reasons(&pair->before->noise) | vp_noise_reasons(&pair->after->noise);
    }
    return (reasons & (VP_NOISE_IS_BUSY | VP_NOISE_IS_STOLEN)) && !is_forced(job->options, "noise");
}
/* Compares paired samples and adds the row, unless there are none. `row` describes the pairs. */
static void add_comparison(struct comparison_job *job, struct compared_row row, const double *before,
                           const double *after, size_t count) {
    const int by_ratio = is_latency(row.which);
    double *differences = resize(NULL, count, 3 * sizeof *differences);
    vp_comparison comparison;
    row.before = differences + count;
    row.after = row.before + count;
    memcpy(row.before, before, count * sizeof *before);
    memcpy(row.after, after, count * sizeof *after);
    if (!can_compare(job, &row, count, COMPARE_ALPHA, &comparison)) { free(differences); return; }
    row.is_equal = !by_ratio;
    for (size_t i = 0; i < count; i++) {
        differences[i] = by_ratio ? log(after[i] / before[i]) : after[i] - before[i];
        row.is_equal &= differences[i] <= 0 && differences[i] >= 0;
    }
    row.deviation =
        count > 1 ? vp_statistics_std(differences, count) * sqrt((double)count / ((double)count - 1)) : (double)NAN;
    if (row.correlation_time > 1) row.deviation *= sqrt(row.correlation_time);
    job->has_unknown_range |= row.which == COMPARED_ACCURACY && row.test == TEST_T;
    row.mean_a = vp_statistics_mean(before, count);
    row.mean_b = vp_statistics_mean(after, count);
    row.typical_a = by_ratio ? geometric_mean(before, count) : row.mean_a;
    row.typical_b = by_ratio ? geometric_mean(after, count) : row.mean_b;
    row.is_noisy = by_ratio && is_noisy(job, &row);
    row.differences = differences;
    job->rows = resize(job->rows, job->count + 1, sizeof *job->rows);
    job->verdicts = resize(job->verdicts, job->count + 1, sizeof *job->verdicts);
    job->rows[job->count] = row;
    job->verdicts[job->count++] = comparison;
}
static struct score_range pair_range(const struct result_pair *pair, int which) {
    if (which > COMPARED_ACCURACY) return (struct score_range){0, 1, which != COMPARED_DIVERGENCE};
    return score_range_common(score_range_of(pair->before), score_range_of(pair->after));
}
/* Compares all configurations of a task together (pairs first to last - 1). Each sample counts once, with its mean over
 * the configurations: of the logarithms for a latency, otherwise of the values. */
static void compare_overall(struct comparison_job *job, size_t first, size_t last, int which) {
    const int by_ratio = is_latency(which);
    size_t most = 0, filled = 0, count = 0;
    double *before, *after, *before_means, *after_means;
    int64_t *ids;
    struct row_order *order;
    for (size_t pair = first; pair < last; pair++) most += job->pairs[pair].before->count;
    before = resize(NULL, most, 4 * sizeof *before);
    after = before + most;
    before_means = after + most;
    after_means = before_means + most;
    ids = resize(NULL, most, sizeof *ids);
    order = resize(NULL, most, sizeof *order);
    for (size_t pair = first; pair < last; pair++)
        filled += pair_values(&job->pairs[pair], which, before + filled, after + filled, ids + filled);
    for (size_t i = 0; i < filled; i++) { order[i].id = ids[i]; order[i].at = i; }
    qsort(order, filled, sizeof *order, by_row_id);
    for (size_t i = 0, alike; i < filled; i += alike) {
        double before_sum = 0, after_sum = 0;
        for (alike = 0; i + alike < filled && order[i + alike].id == order[i].id; alike++) {
            size_t at = order[i + alike].at;
            before_sum += by_ratio ? log(before[at]) : before[at];
            after_sum += by_ratio ? log(after[at]) : after[at];
        }
        before_means[count] = by_ratio ? exp(before_sum / (double)alike) : before_sum / (double)alike;
        after_means[count++] = by_ratio ? exp(after_sum / (double)alike) : after_sum / (double)alike;
    }
    struct compared_row row = {
        .task = job->pairs[first].before->dataset_name, .which = which, .range = pair_range(&job->pairs[first], which)};
    for (size_t pair = first + 1; pair < last; pair++)
        row.range = score_range_common(row.range, pair_range(&job->pairs[pair], which));
    add_comparison(job, row, before_means, after_means, count);
    FREE_ALL(before, ids, order);
}
static void compare_pair(struct comparison_job *job, const struct result_pair *pair) {
    size_t most = pair->before->count < pair->after->count ? pair->before->count : pair->after->count;
    double *before = resize(NULL, most + 1, 2 * sizeof *before), *after = before + most + 1;
    for (int which = 0; which < COMPARED; which++) {
        struct compared_row row = {
            .pair = pair, .task = pair->before->dataset_name, .which = which, .range = pair_range(pair, which)};
        add_comparison(job, row, before, after, pair_values(pair, which, before, after, NULL));
    }
    free(before);
}
/* Warns if caches were hit more on one side. */
static void warn_of_caches(struct comparison_job *job) {
    double cached[2] = {0, 0}, of[2] = {0, 0};
    for (size_t i = 0; i < 2 * job->pair_count; i++) {
        const struct result_file *file = i % 2 ? job->pairs[i / 2].after : job->pairs[i / 2].before;
        cached[i % 2] += file->cached_tokens;
        of[i % 2] += file->cached_of;
    }
    if (of[0] > 0 && of[1] > 0 && fabs(cached[0] / of[0] - cached[1] / of[1]) > 0.05)
        text_list_add(&job->warnings, "the servers read %s %% of A's prompt tokens from their caches, but %s %% of B's",
                      number_percent(cached[0] / of[0]).text, number_percent(cached[1] / of[1]).text);
}
/* Warns about samples on only one side, answers of different lengths, and synthetic weights. */
static void warn_of_pairs(struct comparison_job *job) {
    size_t missing = 0, pairs = 0, lengths = 0, synthetic = 0, asked = 0;
    struct text_list others = {NULL, 0};
    for (size_t place = 0; place < job->pair_count; place++) {
        const struct result_file *before = job->pairs[place].before, *after = job->pairs[place].after;
        size_t both = 0;
        if (before->is_served && after->is_served && knob_compare(KNOB_REQUEST, &before->knobs, &after->knobs)
            && !asked++)
            text_list_add(&job->warnings, "the request knobs of A and B differ (%.80s / %.80s)",
                          knob_text(&before->knobs, KNOB_REQUEST), knob_text(&after->knobs, KNOB_REQUEST));
        if (!before->is_served && !others.count) results_differ(before, after, 1, &others);
        for (size_t i = 0; i < before->count; i++) {
            size_t row = result_row(after, before->ids[i]);
            double before_tokens = result_at(before, COLUMN_OUTPUT_TOKENS, i), after_tokens;
            if (row == after->count) continue;
            after_tokens = result_at(after, COLUMN_OUTPUT_TOKENS, row);
            both++;
            lengths += before_tokens < after_tokens || before_tokens > after_tokens;
        }
        pairs += both;
        missing += before->count + after->count - 2 * both;
        synthetic += before->synthetic || after->synthetic;
    }
    for (size_t i = 0; i < others.count; i += 3) /* check_alike knows the model and max_new_tokens */
        if (strcmp(others.items[i], ALIKE[ALIKE_MODEL]) && strcmp(others.items[i], ALIKE[ALIKE_NEW_TOKENS]))
            text_list_add(&job->warnings, "A and B differ in %.60s (%.60s / %.60s)", others.items[i],
                          others.items[i + 1], others.items[i + 2]);
    text_list_free(&others);
    warn_of_caches(job);
    if (synthetic) text_list_add(&job->warnings, "synthetic weights: latency is real, accuracy is not");
    if (missing)
        text_list_add(&job->warnings, "%zu sample%s %s measured on only one side and left out; %zu pair%s %s compared",
                      missing, plural_s((int64_t)missing), missing == 1 ? "was" : "were", pairs,
                      plural_s((int64_t)pairs), pairs == 1 ? "is" : "are");
    if (lengths)
        text_list_add(
            &job->warnings,
            "answers differ in length in %zu of %zu pairs, so T_LLM_decode and T_total compare different work; use "
            "T_decode_per_token",
            lengths, pairs);
}
/* Warns if the machine was not quiet for A or B, and describes the consequences. */
static void warn_of_noise(struct comparison_job *job) {
    const size_t count = 2 * job->pair_count;
    int is_any_noisy = 0;
    double runs = HUGE_VAL;
    vp_noise_summary *items = resize(NULL, count, sizeof *items);
    const char **paths = (const char **)resize(NULL, 2 * count, sizeof *paths), **names = paths + count;
    for (size_t i = 0; i < count; i++) {
        const struct result_pair *pair = &job->pairs[i / 2];
        items[i] = i % 2 ? pair->after->noise : pair->before->noise;
        paths[i] = i % 2 ? pair->after->path : pair->before->path;
        names[i] = name_in_path(paths[i]);
        runs = fmin(runs, (double)(i % 2 ? pair->after : pair->before)->num_runs_per_sample);
    }
    for (size_t i = 0; i < job->count; i++) is_any_noisy |= job->rows[i].is_noisy;
    noise_warn(&job->warnings, items, paths, names, count,
               is_any_noisy ? NOISE_ADVICE_COMPARE : noise_advice_sweep(runs));
    FREE_ALL((void *)paths, items);
}
/* Times in files are rounded, so ratios may differ in the seventh digit. */
static int are_near(double one, double other) { return isnan(one) ? isnan(other) : fabs(one - other) <= 1e-7; }
/* Returns 1 if the ratios of two latencies of a configuration agree, such as those of T_LLM_decode and
 * T_decode_per_token if all answers are equally long. They answer the same question, so they count once. */
static int are_proportional(const struct comparison_job *job, size_t one, size_t other) {
    const struct compared_row *left = &job->rows[one], *right = &job->rows[other];
    const vp_comparison *first = &job->verdicts[one], *second = &job->verdicts[other];
    return left->pair == right->pair && !strcmp(left->task, right->task) && is_latency(left->which)
           && is_latency(right->which) && first->count == second->count && are_near(first->estimate, second->estimate)
           && are_near(first->low, second->low) && are_near(first->high, second->high);
}
static vp_verdict verdict_of_interval(const vp_comparison *comparison, double margin) {
    return comparison->low > -margin && comparison->high < margin ? VP_VERDICT_SAME
           : comparison->low > 0                                ? VP_VERDICT_SLOWER
           : comparison->high < 0 ? VP_VERDICT_FASTER : VP_VERDICT_INCONCLUSIVE;
}
/* Widens an interval by what more samples do not show: other programs, or a difference that changed meanwhile. The
 * verdict is the interval's. */
static void widen(const struct comparison_job *job, struct compared_row *row, vp_comparison *comparison) {
    const double margin = margin_of(job, row);
    if (is_latency(row->which))
        row->is_drifting = vp_compare_drift(row->before, row->after, comparison->count, VP_SCALE_LOG, &row->began,
                                            &row->ended) <= DRIFT_ALPHA / (double)job->family
                           && fabs(row->ended - row->began) > margin;
    if (!row->is_noisy && !row->is_drifting) return;
    if (row->is_drifting) {
        comparison->low = fmin(comparison->low, fmin(row->began, row->ended));
        comparison->high = fmax(comparison->high, fmax(row->began, row->ended));
    }
    if (row->is_noisy) {
        comparison->low = (1 + comparison->low) / NOISE_FACTOR - 1;
        comparison->high = (1 + comparison->high) * NOISE_FACTOR - 1;
    }
    comparison->verdict = verdict_of_interval(comparison, margin);
}
/* Corrects all p and verdicts for their number (Holm). An interval at 95 % that says more is replaced by one that is
 * corrected for all comparisons. */
static void adjust_family(struct comparison_job *job) {
    double *values[2] = {resize(NULL, job->count, sizeof **values), resize(NULL, job->count, sizeof **values)};
    size_t *places = resize(NULL, job->count, sizeof *places);
    uint32_t *order = resize(NULL, job->count, sizeof *order);
    for (size_t i = 0; i < job->count; i++) {
        size_t other = 0;
        while (other < i && !are_proportional(job, other, i)) other++;
        job->rows[i].like = other == i ? 0 : other + 1;
        places[i] = other == i ? job->family++ : places[other];
        values[0][places[i]] = job->verdicts[i].p_difference;
        values[1][places[i]] = job->verdicts[i].p_equivalence;
    }
    for (int k = 0; k < 2; k++) vp_adjust(values[k], job->family, VP_ADJUST_HOLM, order, values[k]);
    for (size_t i = 0; i < job->count; i++) {
        struct compared_row *row = &job->rows[i];
        vp_comparison *comparison = &job->verdicts[i];
        const double margin = margin_of(job, row);
        comparison->p_difference = values[0][places[i]];
        comparison->p_equivalence = values[1][places[i]];
        comparison->verdict = comparison->p_equivalence <= COMPARE_ALPHA      ? VP_VERDICT_SAME
                              : !(comparison->p_difference <= COMPARE_ALPHA) ? VP_VERDICT_INCONCLUSIVE
                              : comparison->estimate < 0 ? VP_VERDICT_FASTER : VP_VERDICT_SLOWER;
        row->level = 1 - COMPARE_ALPHA;
        if (isfinite(comparison->low) && verdict_of_interval(comparison, margin) != comparison->verdict) {
            vp_comparison corrected;
            row->level = 1 - COMPARE_ALPHA / (double)job->family;
            can_compare(job, row, comparison->count, 1 - row->level, &corrected);
            comparison->low = corrected.low;
            comparison->high = corrected.high;
            comparison->verdict = corrected.verdict;
        }
        widen(job, row, comparison);
    }
    FREE_ALL(values[0], values[1], places, order);
}
static void warn_of_drift(struct comparison_job *job) {
    size_t i = 0;
    while (i < job->count && !job->rows[i].is_drifting) i++;
    if (i == job->count) return;
    const struct compared_row *row = &job->rows[i];
    text_list_add(&job->warnings,
                  "the difference drifts over the samples: in %s, B began %s %% %s than A and ended %s %% %s. If the "
                  "machine changed, measure A and B alternately; if samples are sorted by size, shuffle their ids",
                  compared_name(row->which), number_percent(fabs(row->began)).text,
                  row->began < 0 ? "faster" : "slower", number_percent(fabs(row->ended)).text,
                  row->ended < 0 ? "faster" : "slower");
}
/* Corrects all verdicts, and plans how many samples each comparison needs. */
static void adjust_verdicts(struct comparison_job *job) {
    adjust_family(job);
    for (size_t i = 0; i < job->count; i++) {
        struct compared_row *row = &job->rows[i];
        double margin = margin_of(job, row), effect = is_latency(row->which) ? 1.5 * margin : 2 * margin;
        double alpha = COMPARE_ALPHA / (double)job->family;
        const size_t signs = (size_t)ceil(1 - log2(alpha)); /* pairs that a sign test needs if all agree */
        size_t confirming;
        /* no number of samples decides between the ends of a drift; without a measured spread, a sign test may */
        vp_result planned = row->reason || row->is_drifting ? VP_ERR_RANGE
                            : row->test == TEST_T
                                ? vp_compare_plan(row->deviation, margin, effect, alpha, 0.95, &row->needed)
                                : vp_compare_accuracy_plan(isfinite(row->deviation) ? row->deviation : 0,
                                                           row->range.high - row->range.low, row->test == TEST_RATES,
                                                           margin, effect, alpha, 0.95, &row->needed);
        if (planned != VP_OK) row->needed = row->reason && fabs(job->verdicts[i].estimate) > 0 ? signs : 0;
        /* an accuracy's change beyond the margin needs fewer samples to be found than a verdict of SAME */
        row->to_decide = row->needed;
        effect = fabs(job->verdicts[i].estimate);
        if (planned == VP_OK && !is_latency(row->which) && effect > margin
            && vp_compare_plan(row->deviation, 0.999 * effect, effect, alpha, 0.95, &confirming) == VP_OK
            && confirming < row->needed && (confirming > job->verdicts[i].count || signs > job->verdicts[i].count))
            row->to_decide = confirming > signs ? confirming : signs;
    }
}
/* Returns 1 if both sides have the same configurations and samples, with equal values or none. */
static int are_identical(const struct comparison_job *job) {
    if (job->pair_count != job->before.count || job->pair_count != job->after.count) return 0;
    for (size_t pair = 0; pair < job->pair_count; pair++) {
        const struct result_file *before = job->pairs[pair].before, *after = job->pairs[pair].after;
        if (before->count != after->count) return 0;
        for (size_t i = 0; i < before->count; i++) {
            if (before->ids[i] != after->ids[i]) return 0;
            for (int which = 0; which < COMPARED; which++) {
                const double one = result_at(before, COMPARED_COLUMNS[which], i),
                             other = result_at(after, COMPARED_COLUMNS[which], i);
                if (isfinite(one) != isfinite(other) || one < other || one > other) return 0;
            }
        }
    }
    return 1;
}
/* Makes all comparisons. Returns 0, or an exit code if there are none. */
static int compare_all(struct comparison_job *job) {
    job->is_identical = are_identical(job);
    for (size_t first = 0, last; first < job->pair_count; first = last) {
        for (last = first + 1;
             last < job->pair_count
             && !strcmp(job->pairs[last].before->dataset_name, job->pairs[first].before->dataset_name);)
            last++;
        for (int which = 0; which < COMPARED && last - first > 1; which++) compare_overall(job, first, last, which);
        for (size_t pair = first; pair < last; pair++) compare_pair(job, &job->pairs[pair]);
    }
    if (!job->count) return complain(EXIT_USAGE, "compare: the two sides have no measured sample in common");
    adjust_verdicts(job);
    return 0;
}
/* The possible verdicts, the most serious first. The overall verdict is the first one that any comparison has. */
enum { SAYS_SLOWER, SAYS_WORSE, SAYS_INCONCLUSIVE, SAYS_FASTER, SAYS_BETTER, SAYS_SAME, SAYS_IDENTICAL, SAYS_COUNT };
static const char *const SAYS[SAYS_COUNT] = {"SLOWER", "WORSE", "INCONCLUSIVE", "FASTER",
                                             "BETTER", "SAME",  "IDENTICAL"};
#define VERDICT "verdict: " /* starts the first line */

/* Worse is red, better is green, inconclusive is yellow; an unchanged result has no colour. */
static enum console_color color_of_verdict(const char *text) {
    static const enum console_color colors[SAYS_COUNT] = {COLOR_RED,   COLOR_RED, COLOR_YELLOW, COLOR_GREEN,
                                                          COLOR_GREEN, COLOR_END, COLOR_END};
    if (!strncmp(text, VERDICT, strlen(VERDICT))) text += strlen(VERDICT);
    for (int says = 0; says < SAYS_COUNT; says++) {
        const size_t bytes = strlen(SAYS[says]);
        if (strncmp(text, SAYS[says], bytes)) continue;
        if (!text[bytes] || text[bytes] == ':' || !strncmp(text + bytes, " (", 2)) return colors[says];
    }
    return COLOR_END;
}

/* The library's FASTER means that B is lower, which is worse for an accuracy and better for a distance. */
static int verdict_of(const struct comparison_job *job, size_t index) {
    const struct compared_row *row = &job->rows[index];
    const vp_comparison *comparison = &job->verdicts[index];
    const int is_distance = row->which == COMPARED_DIVERGENCE;
    if (job->is_identical) return SAYS_IDENTICAL;
    switch (comparison->verdict) {
    case VP_VERDICT_SLOWER: return is_latency(row->which) ? SAYS_SLOWER : is_distance ? SAYS_WORSE : SAYS_BETTER;
    case VP_VERDICT_FASTER: return is_latency(row->which) ? SAYS_FASTER : is_distance ? SAYS_BETTER : SAYS_WORSE;
    case VP_VERDICT_SAME: return SAYS_SAME;
    default: return SAYS_INCONCLUSIVE;
    }
}
/* The reason if no interval decides; otherwise NULL. */
static const char *why_open(const struct comparison_job *job, const struct compared_row *row) {
    return job->is_identical   ? NULL
           : row->reason       ? row->reason
           : row->is_noisy     ? "not quiet"
           : row->is_drifting  ? "drifts" : NULL;
}
/* All comparisons together. */
struct verdict {
    int worst;                /* a SAYS_* value */
    size_t count[SAYS_COUNT]; /* comparisons with each verdict */
    size_t more;              /* additional samples for the inconclusive ones; 0 if unknown or none */
};
static struct verdict overall_verdict(const struct comparison_job *job) {
    struct verdict verdict = {job->is_identical ? SAYS_IDENTICAL : SAYS_SAME, {0}, 0};
    int is_known = 1;
    for (size_t i = 0; i < job->count; i++) {
        const int says = verdict_of(job, i);
        size_t needed = job->rows[i].to_decide, there = job->verdicts[i].count;
        verdict.count[says]++;
        /* unchanged answers decide nothing */
        if (says < verdict.worst && !(says == SAYS_INCONCLUSIVE && job->rows[i].is_equal)) verdict.worst = says;
        /* more samples do not help against noise and drift */
        if (says != SAYS_INCONCLUSIVE || job->rows[i].is_noisy || job->rows[i].is_drifting) continue;
        if (needed <= there) is_known &= job->rows[i].reason != NULL; /* the plan considered these enough */
        else if (needed - there > verdict.more) verdict.more = needed - there;
    }
    if (!is_known) verdict.more = 0;
    return verdict;
}
/* A difference in percent, or in points of accuracy, with its interval if there is one. */
static struct number_text difference_text(const struct compared_row *row, const vp_comparison *comparison) {
    const double scale = scale_of(row->which);
    return row->reason ? number_formatted("%+.2f", scale * comparison->estimate)
                       : number_change(scale, comparison->estimate, comparison->low, comparison->high);
}
enum { PAIR_BYTES = 170 };
/* The configuration of a pair, "A -> B" if they differ; of all pairs "all". */
static void pair_text(const struct result_pair *pair, char out[PAIR_BYTES]) {
    char before[80] = "all", after[80] = "all";
    if (pair) {
        setting_text(pair->before, before);
        setting_text(pair->after, after);
    }
    if (!strcmp(before, after) || (pair && is_same_request(pair->before, pair->after)))
        snprintf(out, PAIR_BYTES, "%s", before);
    else snprintf(out, PAIR_BYTES, "%s -> %s", before, after);
}
static void write_rows(struct document *document, const struct comparison_job *job) {
    const int is_all = is_given(job->options, "all");
    struct text_list *list = NULL;
    for (int says = 0; says < SAYS_COUNT; says++) /* the most serious first */
        for (size_t i = 0; i < job->count; i++) {
            const struct compared_row *row = &job->rows[i];
            char name[PAIR_BYTES], full[PAIR_BYTES + 80];
            if (verdict_of(job, i) != says || (says == SAYS_INCONCLUSIVE && !is_all)) continue;
            if (!list) list = document_table(document, "configuration|of|mean A|mean B|difference|unit|pairs|verdict");
            pair_text(row->pair, name);
            if (job->before.group_count > 1) snprintf(full, sizeof full, "%.70s %s", row->task, name);
            else snprintf(full, sizeof full, "%s", name);
            CELLS(list, full, compared_name(row->which), number_short(row->typical_a).text,
                  number_short(row->typical_b).text, difference_text(row, &job->verdicts[i]).text, unit_of(row->which),
                  number_whole(job->verdicts[i].count).text);
            if (why_open(job, row)) text_list_add(list, "%s: %s", SAYS[says], why_open(job, row));
            else text_list_add(list, "%s", SAYS[says]);
        }
}
/* Writes how to read the numbers. */
static void write_method(struct document *document, const struct comparison_job *job) {
    char repeats[120] = "";
    document_text(document, BLOCK_HEADING, "How to read this");
    if (job->family < job->count)
        snprintf(repeats, sizeof repeats, job->count - job->family == 1
                 ? "; the other one is a latency with the same ratios as one of these"
                 : "; the other %zu are latencies with the same ratios as one of these", job->count - job->family);
    document_text(
        document, BLOCK_LINE,
        "differences (B minus A) are paired by sample and have 95 %% intervals; SAME: within +-%.3g %% for latencies, "
        "+-%.3g points for accuracy; changed: the interval excludes 0",
        100 * job->margin, 100 * job->accuracy_margin);
    document_text(document, BLOCK_LINE,
                  "verdicts are corrected for %s%zu comparison%s (Holm, 5 %%)%s; where the 95 %% interval alone would "
                  "support a stronger verdict, the corrected one is printed", *repeats || job->family == 1
                  ? "" : "all ", job->family, plural_s((int64_t)job->family), repeats);
    document_text(document, BLOCK_LINE, "an accuracy that is equal in all pairs does not affect the overall verdict");
    document_text(document, BLOCK_LINE,
                  "accuracy if answers are right or wrong: Tango's interval, extended to 0 unless McNemar's test "
                  "agrees; if scores have a known range: Gaffke's interval for a bounded mean%s",
                  job->has_unknown_range ? "; if they have an unknown range: Student's t" : "");
    document_text(
        document, BLOCK_LINE,
        "a latency's means are geometric, and its difference is the geometric mean of the ratios B/A of all samples, "
        "minus 1, which gives every sample the same weight; consecutive samples are correlated, so fewer count as "
        "independent; the interval covers both ends of a drift, and is widened by a factor of %d on each side if other "
        "programs ran", NOISE_FACTOR);
}
enum { WORTH_SAMPLES = 10000 }; /* if more are needed, measuring is not worth it */
static void put_comparison(vp_json_writer *writer, const struct comparison_job *job, size_t index) {
    const struct compared_row *row = &job->rows[index];
    const vp_comparison *comparison = &job->verdicts[index];
    PUT(writer, KEY_OBJECT(NULL), KEY("dataset_name", row->task), KEY("of", compared_name(row->which)));
    vp_json_key(writer, "configuration"); /* null: all configurations together */
    if (row->pair) {
        vp_json_begin_object(writer);
        put_setting_of(writer, row->pair->before);
        vp_json_end_object(writer);
    } else vp_json_null(writer);
    PUT(writer, KEY("scale", is_latency(row->which) ? "log" : "absolute"), KEY("test", TEST_NAMES[row->test]),
        KEY("interval_method", INTERVAL_NAMES[row->test]), KEY("a", row->mean_a), KEY("b", row->mean_b),
        KEY("pairs", comparison->count),
        KEY("independent_pairs", (double)comparison->count / (row->correlation_time > 1 ? row->correlation_time : 1)),
        KEY("difference", comparison->estimate), KEY_RANGE("difference_interval", comparison->low, comparison->high),
        KEY("level", row->level), /* of the first and the last third of the pairs */
        KEY_RANGE("drift", row->is_drifting ? row->began : (double)NAN, row->is_drifting ? row->ended : (double)NAN),
        KEY("p_difference", comparison->p_difference), KEY("p_equivalence", comparison->p_equivalence),
        KEY("verdict", SAYS[verdict_of(job, index)]), KEY("reason", why_open(job, row)), /* null: decided by interval */
        KEY_KNOWN("samples_needed", row->needed, row->needed),
        KEY("proportional_to", row->like ? compared_name(job->rows[row->like - 1].which) : NULL), END_OBJECT);
}
static void put_comparisons(vp_json_writer *writer, const struct comparison_job *job, const struct verdict *verdict) {
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-report-compare-1"), KEY("a", job->options->operands[0]),
        KEY("b", job->options->operands[1]), KEY_TEXTS("warnings", &job->warnings), KEY("margin", job->margin),
        KEY("accuracy_margin", job->accuracy_margin), KEY("alpha", COMPARE_ALPHA), KEY("adjustment", "holm"),
        KEY("adjusted_for", job->family), KEY("verdict", SAYS[verdict->worst]),
        KEY_BOOL("worse", verdict->worst <= SAYS_WORSE),
        /* null: unknown, or none is inconclusive */ KEY_KNOWN("more_samples_needed", verdict->more, verdict->more),
        KEY_ARRAY("comparisons"));
    for (size_t i = 0; i < job->count; i++) put_comparison(writer, job, i);
    PUT(writer, END_ARRAY, END_OBJECT);
}
/* Writes the change of T_total and accuracy, over all configurations or for the only one. */
static void write_answer(struct document *document, const struct comparison_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        const struct compared_row *row = &job->rows[i];
        char where[100] = "";
        if (row->pair && job->pair_count > job->before.group_count) continue;
        if (row->which && is_latency(row->which)) continue;
        if (job->before.group_count > 1) snprintf(where, sizeof where, "%.90s: ", row->task);
        document_text(document, BLOCK_LINE, "%s%s %s %s", where, compared_name(row->which),
                      difference_text(row, &job->verdicts[i]).text, unit_of(row->which));
    }
}
/* Writes the number of inconclusive comparisons, and what would decide them. */
static void write_open(struct document *document, const struct comparison_job *job, const struct verdict *verdict) {
    const size_t open = verdict->count[SAYS_INCONCLUSIVE];
    static const char *const whys[] = {
        "need a quieter machine; more samples would not decide them",
        "drift; more samples would not decide them: measure A and B alternately",
        "have no spread, so no interval; more such samples would not decide them"};
    size_t counts[3] = {0, 0, 0}, known = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct compared_row *row = &job->rows[i];
        const int is_rigid = row->reason && job->verdicts[i].count > 1 && !row->needed; /* all pairs are equal */
        if (verdict_of(job, i) != SAYS_INCONCLUSIVE || !(row->is_noisy || row->is_drifting || is_rigid)) continue;
        counts[row->is_noisy ? 0 : row->is_drifting ? 1 : 2]++;
        known++;
    }
    if (!open) return;
    if (!is_given(job->options, "all"))
        document_text(document, BLOCK_LINE, "%zu INCONCLUSIVE comparison%s not shown; use --all to show them", open,
                      open == 1 ? " is" : "s are");
    for (size_t i = 0; i < 3; i++)
        if (counts[i])
            document_text(document, BLOCK_LINE, "%zu of the INCONCLUSIVE comparisons %s", counts[i], whys[i]);
    if (known == open) return;
    if (verdict->more > WORTH_SAMPLES)
        document_text(document, BLOCK_LINE, "more than 10,000 additional samples would be needed to decide %s",
                      known ? "the others" : "them all");
    else if (verdict->more)
        document_text(document, BLOCK_LINE,
                      "about %zu more sample%s should decide %s if the spread and the difference stay the same",
                      verdict->more, plural_s((int64_t)verdict->more),
                      known ? "the others" : "the inconclusive cases");
    else
        document_text(document, BLOCK_LINE,
                      "it is unknown how many more samples would decide %s: a difference is near the margin",
                      known ? "the others" : "them");
}
/* Writes the verdict, the rows that decided it, and the inconclusive ones; then warnings and method. */
static void write_comparison(struct document *document, const struct comparison_job *job,
                             const struct verdict *verdict) {
    struct text_buffer counts = {NULL, 0, 0};
    const int is_change = verdict->worst != SAYS_INCONCLUSIVE && verdict->worst < SAYS_SAME;
    size_t first = 0;
    while (is_change && verdict_of(job, first) != verdict->worst) first++;
    document_text(document, BLOCK_HEADING, is_change ? VERDICT "%s (%s)" : VERDICT "%s", SAYS[verdict->worst],
                  compared_name(job->rows[first].which));
    if (job->is_identical) {
        document_text(document, BLOCK_LINE, "%s and %s have the same numbers in all samples of %zu configuration%s",
                      job->options->operands[0], job->options->operands[1], job->pair_count,
                      plural_s((int64_t)job->pair_count));
        document_list(document, "Warnings", &job->warnings);
        return;
    }
    write_answer(document, job);
    for (int says = 0; says < SAYS_COUNT; says++)
        if (verdict->count[says])
            text_add_format(&counts, "%s%zu %s", counts.bytes ? ", " : "", verdict->count[says], SAYS[says]);
    document_text(document, BLOCK_LINE, "B %s compared with A %s: %zu configuration%s, %zu comparison%s: %s",
                  job->options->operands[1], job->options->operands[0], job->pair_count,
                  plural_s((int64_t)job->pair_count), job->count, plural_s((int64_t)job->count), counts.data);
    free(counts.data);
    write_rows(document, job);
    write_open(document, job, verdict);
    document_list(document, "Warnings", &job->warnings);
    write_method(document, job);
}
/* Prints the comparison. Returns the exit code of the command. */
static int print_comparison(const struct comparison_job *job) {
    const struct verdict verdict = overall_verdict(job);
    int fails = verdict.worst <= SAYS_WORSE
                || (verdict.worst == SAYS_INCONCLUSIVE && is_given(job->options, "fail_on_unsure")), code;
    if (is_given(job->options, "json")) {
        vp_json_writer writer;
        vp_json_writer_init_sink(&writer, file_sink, stdout, 1);
        put_comparisons(&writer, job, &verdict);
        code = json_end(&writer);
    } else {
        struct document document = {NULL, 0, color_of_verdict};
        write_comparison(&document, job, &verdict);
        code = print_document(&document);
    }
    return code ? code : fails ? EXIT_WORK : 0;
}
/* Checks the words of --force. Returns 0 or an exit code. */
static int check_force(const struct options *options) {
    const struct option_value *value = opt(options, "force");
    for (size_t i = 0; i < value->count; i++) {
        int known = !strcmp(value->items[i], "all") || !strcmp(value->items[i], "noise");
        for (int k = 0; k < ALIKE_COUNT; k++) known |= !strcmp(value->items[i], ALIKE[k]);
        if (known) continue;
        return complain_word("force", "value", value->items[i],
                             "all configuration device clocks model weights data seed runs timing metric "
                             "max_new_tokens images no_cache blocks baseline noise");
    }
    return 0;
}
static int run_command(const struct options *options) {
    int code;
    if (!(opt(options, "margin")->real > 0) || !(opt(options, "accuracy_margin")->real > 0))
        return complain(EXIT_USAGE, "compare: with a margin of 0, nothing would count as the same; use a larger one");
    if (options->operand_count != 2)
        return complain(EXIT_USAGE,
                        "compare needs two folders or files of results, before and after; see vlmprof compare --help");
    if ((code = check_force(options)) != 0) return code;
    struct comparison_job job = {.options = options, .margin = opt(options, "margin")->real / 100,
                                 .accuracy_margin = opt(options, "accuracy_margin")->real / 100};
    code = results_read(&job.before, options->operands, 1);
    if (!code) code = results_read(&job.after, options->operands + 1, 1);
    for (int side = 0; side < 2 && !code; side++) {
        const struct results *results = side ? &job.after : &job.before;
        for (size_t i = 0; i < results->notes.count; i++)
            if (!text_list_has(&job.warnings, results->notes.items[i])) /* A and B can be one folder */
                text_list_add(&job.warnings, "%s", results->notes.items[i]);
    }
    if (!code) code = pair_files(&job);
    if (!code) code = check_alike(&job);
    if (!code) {
        warn_of_pairs(&job);
        code = compare_all(&job);
        if (!job.is_identical) {
            warn_of_noise(&job);
            warn_of_drift(&job);
        }
    }
    if (!code) code = print_comparison(&job);
    results_free(&job.before);
    results_free(&job.after);
    text_list_free(&job.warnings);
    for (size_t i = 0; i < job.count; i++) free(job.rows[i].differences);
    FREE_ALL(job.pairs, job.rows, job.verdicts);
    return code;
}

const struct command command_compare = {
    "compare", "A B",
    "check whether B is slower or less accurate than A, paired by sample and configuration; exit 1 if so",
    "vlmprof compare before after --margin 2\n  vlmprof compare results-h100 results-h200 --force device --json",
    SIZE_MAX, COMMAND_OPTIONS(COMPARE_OPTIONS), NULL, run_command};
