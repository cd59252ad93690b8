/* command_compare.c: did a change make it slower, or worse? */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "report/report.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec COMPARE_OPTIONS[] = {
    {"margin", REAL, "PERCENT", "2", 0, 100, NULL, "a latency that differs by less is the same"},
    {"accuracy_margin", REAL, "POINTS", "1", 0, 100, NULL, "an accuracy that differs by less is the same (1 is 0.01)"},
    {"force", TEXTS, "WHAT...", NULL, 0, 0, NULL,
     "compare although this differs: device, clocks, model, weights, data, seed, runs, timing, metric ..., all"},
    {"plan", FLAG, NULL, NULL, 0, 0, NULL, "also tell how many samples would find a change of --effect"},
    {"effect", REAL, "PERCENT", "3", 0, 100, NULL,
     "with --plan: the smallest change of a latency that must be found; more than --margin"},
    OPTION_JSON,
    OPTION_HELP,
};

enum { COMPARED = 7 }; /* the last is accuracy */
static const int COMPARED_COLUMNS[COMPARED] = {METRIC_TOTAL, METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN,
                                               COLUMN_ACCURACY};

static const char *compared_name(int which) { return which + 1 < COMPARED ? METRIC_KEYS[COMPARED_COLUMNS[which]] : "accuracy"; }
typedef struct result_pair { const result_file *a, *b; } result_pair;
typedef struct compared_row { /* one comparison */
    const result_pair *pair;  /* NULL: over all configurations of a task */
    const char *task;
    int which;
    double mean_a, mean_b, deviation; /* of the differences on the scale */
    int is_mcnemar;
    size_t needed;            /* samples; 0: not known */
} compared_row;
typedef struct comparison_job {
    const options *o;
    results a, b;
    result_pair *pairs; size_t pair_count;
    compared_row *rows; vp_comparison *verdicts; size_t count;
    text_list warnings;
    double margin, accuracy_margin, effect;
} comparison_job;
#define COMPARE_ALPHA 0.05

/* What must be alike; the words are those of --force. */
static const char *const ALIKE[] = {"configuration", "device", "clocks", "model", "weights", "data", "seed", "runs", "timing", "metric",
                                    "max_new_tokens",
                                    "blocks"};

enum { ALIKE_COUNT = sizeof ALIKE / sizeof ALIKE[0] };

static int texts_differ(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") != 0; }
static double throttled_share(const result_file *f) {
    return f->throttled_runs > 0 && f->run_at[f->count] ? (double)f->throttled_runs / (double)f->run_at[f->count] : 0;
}
static int differs(const result_file *a, const result_file *b, int what, char out[2][80]) {
    const char *texts[2] = {NULL, NULL};
    int64_t numbers[2] = {-1, -1};
    out[0][0] = out[1][0] = 0;
    switch (what) {
    case 0: setting_text(a, out[0]); setting_text(b, out[1]); return texts_differ(out[0], out[1]);
    case 1: texts[0] = a->device; texts[1] = b->device; break;
    case 2:
        snprintf(out[0], 80, "%.0f %% throttled", 100 * throttled_share(a));
        snprintf(out[1], 80, "%.0f %% throttled", 100 * throttled_share(b));
        return fabs(throttled_share(a) - throttled_share(b)) > 0.05;
    case 3: texts[0] = a->model; texts[1] = b->model; break;
    case 4: texts[0] = a->weights; texts[1] = b->weights; break;
    case 5: texts[0] = a->data_hash ? a->data_hash : a->data; texts[1] = b->data_hash ? b->data_hash : b->data; break;
    case 6: numbers[0] = a->seed; numbers[1] = b->seed; break;
    case 7: numbers[0] = a->runs_per_sample; numbers[1] = b->runs_per_sample; break;
    case 8: texts[0] = a->timing; texts[1] = b->timing; break;
    case 9: texts[0] = a->metric; texts[1] = b->metric; break;
    case 10: numbers[0] = a->max_new_tokens; numbers[1] = b->max_new_tokens; break;
    default:
        snprintf(out[0], 80, "%zu blocks", a->listed_blocks);
        snprintf(out[1], 80, "%zu others", b->listed_blocks);
        return a->listed_blocks && b->listed_blocks
            && (a->listed_blocks != b->listed_blocks || memcmp(a->blocks, b->blocks, a->listed_blocks * sizeof *a->blocks));
    }
    for (int i = 0; i < 2; i++) {
        if (texts[i] || numbers[i] < 0) snprintf(out[i], 80, "%.60s", texts[i] ? texts[i] : "not said");
        else snprintf(out[i], 80, "%lld", (long long)numbers[i]);
    }
    return texts_differ(texts[0], texts[1]) || numbers[0] != numbers[1];
}
static int is_forced(const options *o, const char *what) {
    const option_value *v = opt(o, "force");
    for (size_t i = 0; i < v->count; i++) if (!strcmp(v->items[i], what) || !strcmp(v->items[i], "all")) return 1;
    return 0;
}
static int check_alike(comparison_job *j) {
    text_buffer refused = {NULL, 0, 0}, words = {NULL, 0, 0};
    int code = 0;
    for (int what = 0; what < ALIKE_COUNT; what++) {
        char values[2][80], line[240];
        size_t i = 0;
        while (i < j->pair_count && !differs(j->pairs[i].a, j->pairs[i].b, what, values)) i++;
        if (i == j->pair_count) continue;
        snprintf(line, sizeof line, "%s (%s / %s)", ALIKE[what], values[0], values[1]);
        if (is_forced(j->o, ALIKE[what])) text_list_add(&j->warnings, "they differ in %s: compared all the same", line);
        else {
            text_add_string(&refused, refused.bytes ? ", " : "");
            text_add_string(&refused, line);
            text_add_string(&words, " ");
            text_add_string(&words, ALIKE[what]);
        }
    }
    if (refused.bytes)
        code = complain(EXIT_USAGE, "compare: not comparable: %.600s; --force%.200s compares them all the same", refused.data, words.data);
    free(refused.data);
    free(words.data);
    return code;
}
/* A's configurations with B's; 0 or an exit code. */
static int pair_files(comparison_job *j) {
    size_t only_a = 0;
    j->pairs = zeroed(j->a.count, sizeof *j->pairs);
    for (size_t i = 0; i < j->a.count; i++) {
        const result_file *a = &j->a.files[i];
        size_t k = 0;
        while (k < j->b.count && compare_settings(a, &j->b.files[k])) k++;
        if (k == j->b.count && (j->a.count > 1 || j->b.count > 1)) { only_a++; continue; }
        j->pairs[j->pair_count].a = a;
        j->pairs[j->pair_count++].b = &j->b.files[k < j->b.count ? k : 0]; /* a file against a file: whatever they are */
    }
    if (!j->pair_count) return complain(EXIT_USAGE, "compare: %s and %s have no configuration in common", j->o->operands[0], j->o->operands[1]);
    if (only_a) text_list_add(&j->warnings, "%zu configurations are only in %s", only_a, j->o->operands[0]);
    if (j->b.count > j->pair_count) text_list_add(&j->warnings, "%zu configurations are only in %s", j->b.count - j->pair_count, j->o->operands[1]);
    return 0;
}

/* Values of one column of a pair, sample by sample; latencies of 0 are of stages that did not run. */
static size_t pair_values(const result_pair *p, int which, double *x, double *y, int64_t *ids) {
    int is_latency = which + 1 < COMPARED, c = COMPARED_COLUMNS[which];
    size_t count = 0;
    for (size_t i = 0, k = 0; i < p->a->count && k < p->b->count;) {
        if (p->a->ids[i] != p->b->ids[k]) { if (p->a->ids[i] < p->b->ids[k]) i++; else k++; continue; }
        x[count] = result_at(p->a, c, i);
        y[count] = result_at(p->b, c, k);
        if (ids) ids[count] = p->a->ids[i];
        count += isfinite(x[count]) && isfinite(y[count]) && (!is_latency || (x[count] > 0 && y[count] > 0));
        i++;
        k++;
    }
    return count;
}
static void add_comparison(comparison_job *j, const compared_row *row, const double *x, const double *y, size_t count) {
    int is_latency = row->which + 1 < COMPARED, is_binary = 1;
    double margin = is_latency ? j->margin : j->accuracy_margin, *d;
    vp_comparison c;
    compared_row r = *row;
    uint64_t only_x = 0, only_y = 0;
    if (vp_compare_paired(x, y, count, is_latency ? VP_SCALE_LOG : VP_SCALE_ABSOLUTE, margin, COMPARE_ALPHA, &c) != VP_OK) return; /* too few */
    d = resize(NULL, count, sizeof *d);
    for (size_t i = 0; i < count; i++) {
        d[i] = is_latency ? log(y[i] / x[i]) : y[i] - x[i];
        is_binary &= (!(x[i] > 0) || !(x[i] < 1)) && (!(y[i] > 0) || !(y[i] < 1)) && x[i] >= 0 && x[i] <= 1 && y[i] >= 0 && y[i] <= 1;
        only_x += x[i] > y[i];
        only_y += y[i] > x[i];
    }
    r.deviation = vp_statistics_std(d, count) * sqrt((double)count / ((double)count - 1));
    r.mean_a = vp_statistics_mean(x, count);
    r.mean_b = vp_statistics_mean(y, count);
    if (!is_latency && is_binary) {
        r.is_mcnemar = 1;
        c.p_difference = vp_mcnemar(only_x, only_y);
    }
    free(d);
    j->rows = resize(j->rows, j->count + 1, sizeof *j->rows);
    j->verdicts = resize(j->verdicts, j->count + 1, sizeof *j->verdicts);
    j->rows[j->count] = r;
    j->verdicts[j->count++] = c;
}
/* All configurations of a task together: a sample counts once, with the mean of its logarithms of B / A, or of its differences. */
static void compare_overall(comparison_job *j, size_t first, size_t last, int which) {
    int is_latency = which + 1 < COMPARED;
    size_t most = 0, filled = 0, count = 0;
    double *x, *y, *sum_x, *sum_y;
    int64_t *ids;
    row_order *order;
    compared_row row;
    for (size_t p = first; p < last; p++) most += j->pairs[p].a->count;
    x = resize(NULL, most, 4 * sizeof *x);
    y = x + most; sum_x = y + most; sum_y = sum_x + most;
    ids = resize(NULL, most, sizeof *ids);
    order = resize(NULL, most, sizeof *order);
    for (size_t p = first; p < last; p++) filled += pair_values(&j->pairs[p], which, x + filled, y + filled, ids + filled);
    for (size_t i = 0; i < filled; i++) { order[i].id = ids[i]; order[i].at = i; }
    qsort(order, filled, sizeof *order, by_row_id);
    for (size_t i = 0, n; i < filled; i += n) {
        double a = 0, b = 0;
        for (n = 0; i + n < filled && order[i + n].id == order[i].id; n++) {
            a += is_latency ? log(x[order[i + n].at]) : x[order[i + n].at];
            b += is_latency ? log(y[order[i + n].at]) : y[order[i + n].at];
        }
        sum_x[count] = is_latency ? exp(a / (double)n) : a / (double)n;
        sum_y[count++] = is_latency ? exp(b / (double)n) : b / (double)n;
    }
    memset(&row, 0, sizeof row);
    row.task = j->pairs[first].a->task;
    row.which = which;
    add_comparison(j, &row, sum_x, sum_y, count);
    free(x);
    free(ids);
    free(order);
}
static void compare_pair(comparison_job *j, const result_pair *p) {
    size_t most = p->a->count < p->b->count ? p->a->count : p->b->count;
    double *x = resize(NULL, most + 1, 2 * sizeof *x), *y = x + most + 1;
    for (int which = 0; which < COMPARED; which++) {
        compared_row row;
        memset(&row, 0, sizeof row);
        row.pair = p;
        row.task = p->a->task;
        row.which = which;
        add_comparison(j, &row, x, y, pair_values(p, which, x, y, NULL));
    }
    free(x);
}
static void warn_of_pairs(comparison_job *j) {
    size_t missing = 0, pairs = 0, lengths = 0, synthetic = 0;
    for (size_t p = 0; p < j->pair_count; p++) {
        const result_file *a = j->pairs[p].a, *b = j->pairs[p].b;
        size_t both = 0;
        for (size_t i = 0; i < a->count; i++) {
            size_t k = result_row(b, a->ids[i]);
            double x = result_at(a, COLUMN_OUTPUT_TOKENS, i), y;
            if (k == b->count) continue;
            y = result_at(b, COLUMN_OUTPUT_TOKENS, k);
            both++;
            lengths += x < y || x > y;
        }
        pairs += both;
        missing += a->count + b->count - 2 * both;
        synthetic += a->is_synthetic || b->is_synthetic;
    }
    if (synthetic) text_list_add(&j->warnings, "synthetic weights: latency is real, accuracy is not");
    if (missing) text_list_add(&j->warnings, "%zu samples are measured on one side only: left out; %zu pairs are compared", missing, pairs);
    if (lengths) text_list_add(&j->warnings,
                               "answers differ in length in %zu of %zu pairs: T_LLM_decode and T_total compare different work, see "
                               "T_decode_per_token",
                               lengths, pairs);
}
static int compare_all(comparison_job *j) {
    uint32_t *order;
    double *values;
    for (size_t first = 0, last; first < j->pair_count; first = last) {
        for (last = first + 1; last < j->pair_count && !strcmp(j->pairs[last].a->task, j->pairs[first].a->task);) last++;
        for (int which = 0; which < COMPARED && last - first > 1; which++) compare_overall(j, first, last, which);
        for (size_t p = first; p < last; p++) compare_pair(j, &j->pairs[p]);
    }
    if (!j->count) return complain(EXIT_USAGE, "compare: the two sides have fewer than 2 samples in common");
    order = resize(NULL, j->count, sizeof *order);
    values = resize(NULL, j->count, sizeof *values);
    if (vp_compare_adjust(j->verdicts, j->count, VP_ADJUST_HOLM, COMPARE_ALPHA, order, values) != VP_OK) abort(); /* made by vp_compare_paired */
    for (size_t i = 0; i < j->count; i++) {
        compared_row *r = &j->rows[i];
        double margin = r->which + 1 < COMPARED ? j->margin : j->accuracy_margin, effect = r->which + 1 < COMPARED ? j->effect : 2 * margin;
        if (vp_compare_plan(r->deviation, margin, effect, COMPARE_ALPHA / (double)j->count, 0.95, &r->needed) != VP_OK) r->needed = 0;
    }
    free(order);
    free(values);
    return 0;
}
/* FASTER is "the second is lower": of an accuracy that is worse. */
static const char *verdict_text(const compared_row *r, const vp_comparison *c) {
    if (r->which + 1 < COMPARED || c->verdict == VP_VERDICT_SAME || c->verdict == VP_VERDICT_UNSURE) return vp_verdict_name(c->verdict);
    return c->verdict == VP_VERDICT_FASTER ? "LOWER" : "HIGHER";
}
static int is_worse(const compared_row *r, const vp_comparison *c) {
    return c->verdict == (r->which + 1 < COMPARED ? VP_VERDICT_SLOWER : VP_VERDICT_FASTER);
}
static void write_comparison(document *d, const comparison_job *j) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "B %s against A %s: %zu configurations", j->o->operands[1], j->o->operands[0], j->pair_count);
    for (size_t i = 0; i < j->warnings.count; i++) document_text(d, BLOCK_LINE, "warning: %s", j->warnings.items[i]);
    document_text(d, BLOCK_LINE,
                  "differences paired by sample, B less A, each with its 95 %% interval; SAME: within +-%.3g %%, of accuracy +-%.3g points",
                  100 * j->margin,
                  100 * j->accuracy_margin);
    document_text(d, BLOCK_LINE, "verdicts hold for all %zu comparisons together (Holm, 5 %%); accuracy of 0/1 scores by McNemar's test", j->count);
    t = document_table(d, "configuration|of|A|B|difference|unit|pairs|verdict");
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        const vp_comparison *c = &j->verdicts[i];
        char name[80], full[160];
        if (r->pair) setting_text(r->pair->a, name); else snprintf(name, sizeof name, "all");
        if (j->a.group_count > 1) snprintf(full, sizeof full, "%.70s %s", r->task, name); else snprintf(full, sizeof full, "%s", name);
        text_list_add(t, "%s", full);
        text_list_add(t, "%s", compared_name(r->which));
        text_list_add(t, "%s", figure_number(r->mean_a).text);
        text_list_add(t, "%s", figure_number(r->mean_b).text);
        text_list_add(t, "%+.2f [%+.2f, %+.2f]", 100 * c->estimate, 100 * c->low, 100 * c->high);
        text_list_add(t, "%s", r->which + 1 < COMPARED ? "%" : "points");
        text_list_add(t, "%zu", c->count);
        text_list_add(t, "%s", verdict_text(r, c));
    }
}
static void write_plan(document *d, const comparison_job *j) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "samples that would do");
    document_text(d, BLOCK_LINE,
                  "so that, 95 times of 100, SAME is said when nothing changed and a change of %.3g %% (accuracy: %.3g points) is "
                  "found,", 100 * j->effect,
                  200 * j->accuracy_margin);
    document_text(d, BLOCK_LINE, "by the spread of these differences, with as many comparisons");
    t = document_table(d, "configuration|of|spread|needed|there are");
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        char name[80];
        text_list_add(t, "%s", r->pair ? setting_text(r->pair->a, name) : "all");
        text_list_add(t, "%s", compared_name(r->which));
        text_list_add(t, "%.3f %s", 100 * r->deviation, r->which + 1 < COMPARED ? "%" : "points");
        if (r->needed) text_list_add(t, "%zu", r->needed); else text_list_add(t, "-");
        text_list_add(t, "%zu", j->verdicts[i].count);
    }
}
static void put_comparisons(vp_json_writer *w, const comparison_job *j, int worse) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-compare-1");
    put_text(w, "a", j->o->operands[0]);
    put_text(w, "b", j->o->operands[1]);
    put_list(w, "warnings", &j->warnings);
    put_double(w, "margin", j->margin);
    put_double(w, "accuracy_margin", j->accuracy_margin);
    put_double(w, "alpha", COMPARE_ALPHA);
    put_text(w, "adjustment", "holm");
    put_bool(w, "worse", worse);
    vp_json_key(w, "comparisons");
    vp_json_begin_array(w);
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        const vp_comparison *c = &j->verdicts[i];
        int is_latency = r->which + 1 < COMPARED;
        vp_json_begin_object(w);
        put_text(w, "dataset_name", r->task);
        put_text(w, "of", compared_name(r->which));
        vp_json_key(w, "configuration"); /* null: all together */
        if (r->pair) {
            vp_json_begin_object(w);
            put_setting_of(w, r->pair->a);
            vp_json_end_object(w);
        } else vp_json_null(w);
        put_text(w, "scale", is_latency ? "log" : "absolute");
        put_text(w, "test", r->is_mcnemar ? "mcnemar" : "paired t");
        put_double(w, "a", r->mean_a);
        put_double(w, "b", r->mean_b);
        put_int(w, "pairs", (int64_t)c->count);
        put_double(w, "difference", c->estimate);
        put_range(w, "difference_interval", c->low, c->high);
        put_double(w, "p_difference", c->p_difference);
        put_double(w, "p_equivalence", c->p_equivalence);
        put_text(w, "verdict", verdict_text(r, c));
        vp_json_key(w, "samples_needed");
        if (r->needed) vp_json_int(w, (int64_t)r->needed); else vp_json_null(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static int tell_comparison(const comparison_job *j) {
    text_buffer out = {NULL, 0, 0};
    size_t worse = 0, unsure = 0;
    int code;
    for (size_t i = 0; i < j->count; i++) {
        worse += (size_t)is_worse(&j->rows[i], &j->verdicts[i]);
        unsure += j->verdicts[i].verdict == VP_VERDICT_UNSURE;
    }
    if (given(j->o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, text_sink, &out, 1);
        put_comparisons(&w, j, worse > 0);
        if (vp_json_finish(&w) != VP_OK) abort();
        text_add_string(&out, "\n");
    } else {
        document d = {NULL, 0};
        write_comparison(&d, j);
        if (given(j->o, "plan")) write_plan(&d, j);
        document_text(&d, BLOCK_HEADING, "%s: %zu of %zu comparisons are worse, %zu are unsure", worse ? "WORSE" : "not worse", worse, j->count,
                      unsure);
        document_print(&d, 0, &out);
        document_free(&d);
    }
    code = print_whole(&out);
    free(out.data);
    return code ? code : worse ? EXIT_WORK : 0;
}
static int check_force(const options *o) {
    const option_value *v = opt(o, "force");
    for (size_t i = 0; i < v->count; i++) {
        int known = !strcmp(v->items[i], "all");
        for (int k = 0; k < ALIKE_COUNT; k++) known |= !strcmp(v->items[i], ALIKE[k]);
        if (known) continue;
        return complain(EXIT_USAGE, "--force: \"%.60s\" is none of: all configuration device clocks model weights data seed runs timing metric "
                        "max_new_tokens blocks", v->items[i]);
    }
    return 0;
}
static int run_command(const options *o) {
    comparison_job j;
    int code;
    if (o->operand_count != 2) return complain(EXIT_USAGE,
                                               "compare: give two folders or files of results, before and after; see vlmprof compare --help");
    if ((code = check_force(o)) != 0) return code;
    memset(&j, 0, sizeof j);
    j.o = o;
    j.margin = opt(o, "margin")->real / 100;
    j.accuracy_margin = opt(o, "accuracy_margin")->real / 100;
    j.effect = opt(o, "effect")->real / 100;
    if (!(j.margin > 0) || !(j.accuracy_margin > 0)) return complain(EXIT_USAGE, "compare: a margin of 0 would make nothing the same: give more");
    if (!(j.effect > j.margin)) {
        if (given(o, "effect") || given(o, "plan")) return complain(EXIT_USAGE, "compare: --effect must be more than --margin");
        j.effect = 1.5 * j.margin; /* of the JSON's samples_needed */
    }
    code = results_read(&j.a, o->operands, 1);
    if (!code) code = results_read(&j.b, o->operands + 1, 1);
    for (int side = 0; side < 2 && !code; side++) {
        const results *r = side ? &j.b : &j.a;
        for (size_t i = 0; i < r->notes.count; i++) text_list_add(&j.warnings, "%s", r->notes.items[i]);
    }
    if (!code) code = pair_files(&j);
    if (!code) code = check_alike(&j);
    if (!code) {
        warn_of_pairs(&j);
        code = compare_all(&j);
    }
    if (!code) code = tell_comparison(&j);
    results_free(&j.a);
    results_free(&j.b);
    text_list_free(&j.warnings);
    free(j.pairs);
    free(j.rows);
    free(j.verdicts);
    return code;
}

const command command_compare = {
    "compare", "A B",
    "did it become slower, or worse? B against A, paired by sample and configuration; exit 1 when it did",
    "vlmprof compare before after --margin 2\n  vlmprof compare results-h100 results-h200 --force device --json",
    SIZE_MAX, COMPARE_OPTIONS, sizeof COMPARE_OPTIONS / sizeof *COMPARE_OPTIONS, NULL, run_command};
