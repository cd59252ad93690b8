/* policy_check.c: whether a policy that was run kept its promise: its accuracy and time against the best single
 * configuration, both as measured, and against what the sweep had promised. */
#include "base/console.h"
#include "report/policy.h"
#include "report/report.h"
#include "report/report_text.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <string.h>

#define SLOWER 0.02 /* share of static's mean time that counts as equal, as in compare */
#define POWER 2.04  /* ((1.96 + 0.84) / 1.96)^2: times the samples for which 80 % of the intervals exclude 0 */
enum { STATIC, AS_RUN, SIDES };

/* Finds a policy and the best single configuration in what was measured. Returns 0 or an exit code. */
static int find_sides(const struct policy_report *report, const struct policy_data *made, size_t found[SIDES]) {
    const struct policy_data *data = report->data;
    const struct result_file *best = &data->results->files[data->configs[report->parts->table.best]];
    int count[SIDES] = {0};
    char name[160];
    for (size_t c = 0; c < made->config_count; c++) {
        const struct result_file *file = &made->results->files[made->configs[c]];
        int knob = 0;
        while (knob < KNOB_COUNT && !(knob_is_axis(knob) && knob_compare(knob, &file->knobs, &best->knobs))) knob++;
        if (!file->is_policy && knob < KNOB_COUNT) continue;
        found[file->is_policy ? AS_RUN : STATIC] = c;
        count[file->is_policy ? AS_RUN : STATIC]++;
    }
    if (count[STATIC] && count[AS_RUN] == 1) return 0;
    return complain(EXIT_USAGE, "--check: expected results of one policy, found %d, and of %s, the best single "
                                "configuration, found %d: vlmprof sweep --choices measures both, if the file is from "
                                "policy --output_dir", count[AS_RUN], report_full_name(data->results, best, name),
                    count[STATIC]);
}
static double half(vp_estimate estimate) { return (estimate.high - estimate.low) / 2; }
/* Kept: more accurate than static, and neither this gain nor the time is significantly worse than promised. */
static int judge(struct policy_check *check, const struct policy_data *made, const size_t found[SIDES],
                 vp_estimate promised, double static_ms) {
    const size_t n = made->sample_count, bytes = vp_bounded_scratch_bytes(n);
    void *scratch = resize(NULL, bytes, 1);
    double *of[2 * SIDES], *values = resize(NULL, 2 * SIDES * n, sizeof *values); /* scores, times */
    size_t timed = 0;
    vp_comparison gain, more = {.estimate = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    for (size_t k = 0; k < 2 * SIDES; k++) of[k] = values + k * n;
    for (size_t i = 0; i < n; i++) {
        for (int side = 0; side < SIDES; side++) {
            const double score = made->accuracy[found[side] * n + i];
            of[side][i] = isfinite(score) ? score : 0; /* failed */
            of[SIDES + side][timed] = made->latency[found[side] * n + i];
        }
        timed += isfinite(of[SIDES][timed] + of[SIDES + AS_RUN][timed]) != 0;
    }
    const vp_result result =
        vp_compare_accuracy(of[STATIC], of[AS_RUN], n, 0, 1, 0.01, 0.05, scratch, bytes, &gain);
    vp_compare_ordered(of[SIDES], of[SIDES + AS_RUN], timed, VP_SCALE_ABSOLUTE, 1, 0.05, NULL, &more);
    if (isnan(more.low)) more.low = more.high = more.estimate; /* all differences are equal */
    for (int side = 0; side < SIDES; side++) {
        check->accuracy[side] = vp_statistics_mean(of[side], n);
        check->mean_ms[side] = vp_statistics_mean(of[SIDES + side], timed);
    }
    FREE_ALL(scratch, values);
    if (result != VP_OK)
        return complain(EXIT_INPUT, "--check: %s: accuracies must be 0..1",
                        made->results->files[made->configs[0]].path);
    check->samples = (int64_t)n;
    check->gain = (vp_estimate){100 * gain.estimate, 100 * gain.low, 100 * gain.high};
    check->more_ms = (vp_estimate){more.estimate, more.low, more.high};
    check->most_ms *= check->mean_ms[STATIC] / static_ms; /* the machine may be faster or slower than in the sweep */
    const double most_ms = check->most_ms + SLOWER * check->mean_ms[STATIC];
    const double lacks = promised.value - check->gain.value, effect = fmax(check->gain.value, promised.value);
    if (!(check->gain.high > 0) || lacks > hypot(half(check->gain), half(promised)))
        check->verdict = "not kept, because it gains less";
    else if (!(more.low <= most_ms)) check->verdict = "not kept, because it takes longer";
    else check->verdict = check->gain.low > 0 && more.estimate <= most_ms ? "kept" : "undecided";
    if (*check->verdict == 'u' && !(check->gain.low > 0) && effect > 0)
        check->needed = ceil(POWER * (double)n * pow(half(check->gain) / effect, 2));
    return 0;
}
static void add_words(struct policy_report *report, const struct policy_data *made, const size_t found[SIDES],
                      const struct policy_row *promise) {
    const struct policy_check *check = &report->check;
    const struct result_file *best = &report->data->results->files[report->data->configs[report->parts->table.best]],
                             *fixed = &made->results->files[made->configs[found[STATIC]]],
                             *run = &made->results->files[made->configs[found[AS_RUN]]];
    const size_t folder = (size_t)(name_in_path(fixed->path) - fixed->path);
    char needed[60] = "", name[160], *first;
    if (check->needed > 0) snprintf(needed, sizeof needed, " (%.0f samples would probably decide)", check->needed);
    text_list_add(&report->verdict,
                  "The promise is %s%s: over %lld measured samples, the policy gains %s points over the best single "
                  "configuration, %s (promised: %s; %.4f instead of %.4f), and takes %s ms more on average (promised, "
                  "at this speed of static: at most %s; %s instead of %s).",
                  check->verdict, needed, (long long)check->samples, number_of_estimate(check->gain).text,
                  report_full_name(report->data->results, best, name), number_of_estimate(promise->beats_static).text,
                  check->accuracy[AS_RUN], check->accuracy[STATIC], number_of_estimate(check->more_ms).text,
                  number_short(check->most_ms).text, number_short(check->mean_ms[AS_RUN]).text,
                  number_short(check->mean_ms[STATIC]).text);
    first = report->verdict.items[report->verdict.count - 1]; /* the answer to --check comes first */
    report->verdict.items[report->verdict.count - 1] = report->verdict.items[0];
    report->verdict.items[0] = first;
    if (best->data_hash && run->data_hash && !strcmp(best->data_hash, run->data_hash))
        text_list_add(&report->notes, "--check has the samples of the promise: %s",
                      report->data->given_count
                          ? "if the choices were fitted to their answers, the gain is too high; check on others"
                          : "choices.jsonl has the choices of tables that were fitted without the sample");
    if (made->failed)
        text_list_add(&report->notes, "--check: %zu of the points failed and are scored as wrong", made->failed);
    if (strncmp(fixed->path, run->path, folder) || strchr(run->path + folder, '/'))
        text_list_add(&report->notes, "--check: static and policy were measured in two sweeps, so drift of the machine "
                                      "between them counts as a difference");
}
int policy_check_make(struct policy_report *report, const struct results *measured) {
    const struct policy_part *part = report->parts;
    const struct policy_row *promise = part->rows + VP_POLICY_LOOKUP;
    const struct policy_settings settings = {.axis = report->settings->axis, .keeps_policies = 1};
    struct policy_data made = {0};
    size_t found[SIDES] = {0};
    if (report->data->given_count > 1 || !(report->data->given_count || report->data->field_count))
        return complain(EXIT_USAGE, "--check needs the policy that was run: --by, or one file of --choices");
    if (report->data->given_count) promise = part->rows + part->row_count - 1;
    /* within the budget of a mean; from static's time on, which drifts alike */
    report->check.most_ms = promise->row.mean_ms - part->rows->row.mean_ms;
    if (report->settings->options.budget == VP_POLICY_MEAN)
        report->check.most_ms = fmax(report->check.most_ms, part->budget_ms - part->rows->row.mean_ms);
    int code = policy_data_read(measured, measured->groups, &settings, &made);
    if (!code) code = find_sides(report, &made, found);
    if (!code) code = judge(&report->check, &made, found, promise->beats_static, part->rows->row.mean_ms);
    if (!code) add_words(report, &made, found, promise);
    policy_data_free(&made);
    return code;
}
void policy_check_put(vp_json_writer *writer, const struct policy_check *check) {
    PUT(writer, KEY_OBJECT("check"), KEY("verdict", check->verdict), KEY("samples", check->samples),
        KEY_KNOWN("samples_needed", check->needed > 0, check->needed), KEY("accuracy", check->accuracy[AS_RUN]),
        KEY("static_accuracy", check->accuracy[STATIC]), KEY("gain_points", check->gain.value),
        KEY_RANGE("gain_interval", check->gain.low, check->gain.high), KEY("mean_ms", check->mean_ms[AS_RUN]),
        KEY("static_mean_ms", check->mean_ms[STATIC]), KEY("more_ms", check->more_ms.value),
        KEY_RANGE("more_ms_interval", check->more_ms.low, check->more_ms.high), END_OBJECT);
}
