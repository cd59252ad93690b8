/* command_best.c: the best configuration within a budget. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "report/report.h"
#include "report/report_text.h"
#include "report/result_read.h"
#include "vlmprof.h"
#include "vlmprof_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec BEST_OPTIONS[] = {
    OPTION_LATENCY,
    {"percentile", CHOICE, "P", "95", 0, 0, "50 95 99 mean", "percentile over samples that must hold the budget"},
    OPTION_RESAMPLES,
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL, "most ms that the latency may take"},
    {"min_accuracy", REAL, "A", NULL, 0, 1000, NULL, "least accuracy, 0.6 for example"},
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, "which data set, where the files are of several"},
    OPTION_SEED_OF_BOOTSTRAP,
    OPTION_JSON,
    OPTION_HELP,
};

static const result_group *group_of(const results *r, const char *task, int *code) {
    *code = 0;
    for (size_t i = 0; i < r->group_count; i++) if (task && !strcmp(r->files[r->groups[i].first].task, task)) return &r->groups[i];
    if (!task && r->group_count == 1) return &r->groups[0];
    *code = complain(EXIT_USAGE, task ? "--dataset_name: no result file is of \"%.100s\"; the first is of \"%.100s\""
                                      : "the files are of several data sets: --dataset_name names one, such as %.0s\"%.100s\"",
                     task ? task : "", r->files[0].task);
    return NULL;
}
typedef struct pick { size_t config, runner_up; int has_runner_up; double within, within_low, within_high; size_t within_of; } pick;
/* Wilson's interval of a share at 95 %. */
static void share_interval(size_t hits, size_t count, double *low, double *high) {
    double z = vp_normal_quantile(0.975), n = (double)count, p = (double)hits / n, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    *low = hits ? middle - half : 0;
    *high = hits < count ? middle + half : 1;
}
/* Requests within the budget: each run of T_total, else each sample. */
static void share_within(const results *r, const tradeoff *t, const report_settings *s, pick *k) {
    const result_file *f = &r->files[t->group->paired[k->config]];
    const double *values = t->latency + k->config * t->sample_count;
    size_t hits = 0;
    k->within_of = t->sample_count;
    if (s->axis == METRIC_TOTAL && f->run_at[f->count]) {
        values = f->run_total;
        k->within_of = f->run_at[f->count];
    }
    for (size_t i = 0; i < k->within_of; i++) hits += values[i] <= s->budget;
    k->within = (double)hits / (double)k->within_of;
    share_interval(hits, k->within_of, &k->within_low, &k->within_high);
}
static int pick_best(const results *r, const tradeoff *t, const report_settings *s, pick *k) {
    double *accuracy = resize(NULL, t->config_count, 2 * sizeof *accuracy), *latency = accuracy + t->config_count;
    size_t *places = resize(NULL, t->config_count, sizeof *places), count = 0;
    uint32_t best;
    int found = vp_pareto_best(t->at_latency, t->at_accuracy, t->config_count, s->budget, s->min_accuracy, &best) == VP_OK;
    memset(k, 0, sizeof *k);
    if (found) {
        k->config = best;
        for (size_t i = 0; i < t->config_count; i++) {
            if (i == best) continue;
            places[count] = i;
            latency[count] = t->at_latency[i];
            accuracy[count++] = t->at_accuracy[i];
        }
        k->has_runner_up = vp_pareto_best(latency, accuracy, count, s->budget, s->min_accuracy, &best) == VP_OK;
        if (k->has_runner_up) k->runner_up = places[best];
        share_within(r, t, s, k);
    }
    free(accuracy);
    free(places);
    return found;
}
static void shell_word(text_buffer *out, const char *word) {
    int plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@+=")];
    if (!plain) text_add_string(out, "'");
    for (const char *c = word; *c; c++) if (*c == '\'') text_add_string(out, "'\\''"); else text_add(out, c, 1);
    if (!plain) text_add_string(out, "'");
}
/* Options of `run` that set a configuration; malloc'ed. */
static char *options_text(const result_file *f) {
    text_buffer out = {NULL, 0, 0};
    char piece[96];
    int is_first_n = 1;
    text_add_string(&out, f->is_synthetic ? "--synthetic " : "--model ");
    shell_word(&out, f->model ? f->model : "DIR");
    if (f->tier) {
        text_add_string(&out, " --tier ");
        shell_word(&out, f->tier);
    } else if (f->target_tokens > 0) {
        snprintf(piece, sizeof piece, " --vision_tokens %lld", (long long)f->target_tokens);
        text_add_string(&out, piece);
    }
    snprintf(piece, sizeof piece, " --top_k %lld", (long long)f->top_k);
    text_add_string(&out, piece);
    for (size_t i = 0; i < f->listed_blocks; i++) is_first_n &= f->blocks[i] == (int32_t)i;
    if (is_first_n) snprintf(piece, sizeof piece, " --num_active_blocks %lld", (long long)f->block_count);
    else snprintf(piece, sizeof piece, " --active_blocks ");
    text_add_string(&out, piece);
    for (size_t i = 0; !is_first_n && i < f->listed_blocks; i++) {
        snprintf(piece, sizeof piece, "%s%d", i ? "," : "", (int)f->blocks[i]);
        text_add_string(&out, piece);
    }
    if (f->weights && strcmp(f->weights, "bf16")) {
        text_add_string(&out, " --weights ");
        shell_word(&out, f->weights);
    }
    if (f->max_new_tokens > 0) {
        snprintf(piece, sizeof piece, " --max_new_tokens %lld", (long long)f->max_new_tokens);
        text_add_string(&out, piece);
    }
    if (f->ignore_eos > 0) text_add_string(&out, " --ignore_eos");
    return out.data;
}
static void print_pick(const results *r, const tradeoff *t, const report_settings *s, const pick *k) {
    const vp_bootstrap_point *p = &t->points[k->config], *second = &t->points[k->runner_up];
    const char *of = percentile_text(s->percentile), *axis = METRIC_KEYS[s->axis];
    char name[80], *words = options_text(&r->files[t->group->paired[k->config]]);
    printf("%s: the best within %s ms (%s of %s) of %s\n", setting_text(&r->files[t->group->paired[k->config]], name), figure_x(s->budget).text, of,
           axis,
           r->files[t->group->first].task);
    printf("  accuracy    %s\n", figure_estimate(1, p->accuracy, p->accuracy_low, p->accuracy_high).text);
    printf("  %-4s        %s ms\n", of, figure_estimate(1, p->latency, p->latency_low, p->latency_high).text);
    printf("  budget      %s %% of %zu %s within it [%s, %s]", figure_percent(k->within).text, k->within_of,
           k->within_of == t->sample_count ? "requests" : "timed requests", figure_percent(k->within_low).text, figure_percent(k->within_high).text);
    if (t->is_corpus) printf("\n");
    else printf("; held by the %s in %s %% of %zu draws; the best in %s %%\n", of, figure_percent(p->within_budget).text, s->resamples,
                figure_percent(p->best).text);
    if (k->has_runner_up)
        printf("  runner-up   %s: accuracy %s, %s %s ms\n", setting_text(&r->files[t->group->paired[k->runner_up]], name),
               figure_estimate(1, second->accuracy, second->accuracy_low, second->accuracy_high).text, of,
               figure_estimate(1, second->latency, second->latency_low, second->latency_high).text);
    else printf("  runner-up   none: no other configuration holds it\n");
    printf("  run it      vlmprof run IMAGE -p TEXT %s\n", words);
    free(words);
}
static void put_picked(vp_json_writer *w, const results *r, const tradeoff *t, size_t config) {
    const vp_bootstrap_point *b = &t->points[config];
    char *words = options_text(&r->files[t->group->paired[config]]);
    vp_json_begin_object(w);
    put_setting_of(w, &r->files[t->group->paired[config]]);
    put_double(w, "accuracy", b->accuracy);
    put_range(w, "accuracy_interval", b->accuracy_low, b->accuracy_high);
    put_double(w, "latency_ms", b->latency);
    put_range(w, "latency_interval", b->latency_low, b->latency_high);
    put_double(w, "probability_within_budget", b->within_budget);
    put_double(w, "probability_best", b->best);
    put_text(w, "options", words);
    vp_json_end_object(w);
    free(words);
}
static int put_pick(const results *r, const tradeoff *t, const report_settings *s, const pick *k) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-report-best-1");
    put_text(&w, "latency", METRIC_KEYS[s->axis]);
    put_text(&w, "percentile", percentile_text(s->percentile));
    put_double(&w, "budget_ms", s->budget);
    put_double(&w, "min_accuracy", s->min_accuracy);
    put_int(&w, "num_samples", (int64_t)t->sample_count);
    vp_json_key(&w, "best");
    put_picked(&w, r, t, k->config);
    put_double(&w, "requests_within_budget", k->within);
    put_range(&w, "requests_within_budget_interval", k->within_low, k->within_high);
    put_int(&w, "requests", (int64_t)k->within_of);
    vp_json_key(&w, "runner_up");
    if (k->has_runner_up) put_picked(&w, r, t, k->runner_up); else vp_json_null(&w);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return 0;
}
static int none_holds(const results *r, const tradeoff *t, const report_settings *s) {
    size_t fastest = 0;
    char name[80], more[64] = "";
    for (size_t i = 1; i < t->config_count; i++) if (t->at_latency[i] < t->at_latency[fastest]) fastest = i;
    if (isfinite(s->min_accuracy)) snprintf(more, sizeof more, " with an accuracy of %.4g", s->min_accuracy);
    return complain(EXIT_WORK, "best: none of %zu configurations holds %s ms at the %s of %s%s; the fastest is %s: %s ms, accuracy %.4g",
                    t->config_count,
                    figure_x(s->budget).text, percentile_text(s->percentile), METRIC_KEYS[s->axis], more,
                    setting_text(&r->files[t->group->paired[fastest]], name), figure_number(t->at_latency[fastest]).text, t->at_accuracy[fastest]);
}
static int run_command(const options *o) {
    report_settings s = report_settings_of(o);
    const result_group *g;
    results r;
    tradeoff t;
    pick k;
    int code;
    if (!o->operand_count) return complain(EXIT_USAGE, "best: give a folder of result files; see vlmprof best --help");
    if (!given(o, "budget_ms")) return complain(EXIT_USAGE, "best: --budget_ms MS is needed");
    s.budget = opt(o, "budget_ms")->real;
    if (given(o, "min_accuracy")) s.min_accuracy = opt(o, "min_accuracy")->real;
    if ((code = results_read(&r, o->operands, o->operand_count)) != 0) return code;
    memset(&t, 0, sizeof t);
    g = group_of(&r, text_of(o, "dataset_name"), &code);
    if (!code) {
        tradeoff_make(&t, &r, g, &s);
        if (t.reason[0]) code = complain(EXIT_INPUT, "best: %s", t.reason);
        else if (!pick_best(&r, &t, &s, &k)) code = none_holds(&r, &t, &s);
        else {
            for (size_t i = 0; i < r.notes.count; i++) fprintf(stderr, "vlmprof: %s\n", r.notes.items[i]);
            if (r.files[g->first].is_synthetic) fprintf(stderr, "vlmprof: synthetic weights: latency is real, accuracy is not\n");
            if (given(o, "json")) code = put_pick(&r, &t, &s, &k); else print_pick(&r, &t, &s, &k);
        }
    }
    tradeoff_free(&t);
    results_free(&r);
    return code;
}

const command command_best = {
    "best", "DIR... --budget_ms MS",
    "the most accurate configuration within a latency budget, and how surely it holds it",
    "vlmprof best results --budget_ms 250\n  vlmprof best results --budget_ms 30 --latency prefill --percentile 99 --min_accuracy 0.6 --json",
    SIZE_MAX, BEST_OPTIONS, sizeof BEST_OPTIONS / sizeof *BEST_OPTIONS, NULL, run_command};
