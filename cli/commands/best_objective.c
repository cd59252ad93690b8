/* best_objective.c: `best --slo`: the best choice that meets a latency objective. The input is result files or load
 * trials. The output, as text or JSON, is the most accurate configuration with enough good samples, or the highest load
 * with enough good requests. */
#include "commands/best_objective.h"

#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- sweeps */
struct candidate { size_t config; struct objective_share good; };
static const struct result_file *file_of(const struct results *results, const struct tradeoff *tradeoff,
                                         size_t config) {
    return &results->files[tradeoff->group->paired[config]];
}
/* The most accurate configuration that meets the objective, other than `except`; of two equals, the faster one. Returns
 * the number of configurations if there is none. */
static size_t most_accurate(const struct tradeoff *tradeoff, const struct objective_share *shares,
                            const struct objective *objective, double min_accuracy, size_t except) {
    size_t best = tradeoff->config_count;
    for (size_t i = 0; i < tradeoff->config_count; i++) {
        const double *accuracy = tradeoff->at_accuracy, *latency = tradeoff->at_latency;
        if (i == except || !(shares[i].share >= objective->share) || !(accuracy[i] >= min_accuracy)) continue;
        if (best == tradeoff->config_count || accuracy[i] > accuracy[best]
            || (accuracy[i] >= accuracy[best] && latency[i] < latency[best]))
            best = i;
    }
    return best;
}
static void print_candidate(const struct tradeoff *tradeoff, const struct objective *objective,
                            const struct candidate *candidate) {
    const vp_bootstrap_point *point = &tradeoff->points[candidate->config];
    const struct objective_share *good = &candidate->good;
    print_plain("  accuracy    %s\n",
                number_estimate(1, point->accuracy, point->accuracy_low, point->accuracy_high).text);
    print_plain("  good        %s %% of %zu sample%s [%s, %s]%s\n", number_percent(good->share).text, good->count,
                plural_s((int64_t)good->count), number_percent(good->low).text, number_percent(good->high).text,
                good->low < objective->share ? "; too few samples to be sure" : "");
}
static void put_candidate(vp_json_writer *writer, const struct results *results, const struct tradeoff *tradeoff,
                          const struct candidate *candidate, const char *words) {
    const vp_bootstrap_point *point = &tradeoff->points[candidate->config];
    vp_json_begin_object(writer);
    put_setting_of(writer, file_of(results, tradeoff, candidate->config));
    PUT(writer, KEY("accuracy", point->accuracy),
        KEY_RANGE("accuracy_interval", point->accuracy_low, point->accuracy_high),
        KEY("good_share", candidate->good.share),
        KEY_RANGE("good_share_interval", candidate->good.low, candidate->good.high),
        KEY("good_samples", candidate->good.good), KEY("options", words), END_OBJECT);
}
static void begin_json(vp_json_writer *writer, const char *schema, const struct objective *objective) {
    vp_json_writer_init_sink(writer, file_sink, stdout, 1);
    PUT(writer, KEY_OBJECT(NULL), KEY("schema", schema), KEY("slo", objective->text),
        KEY("slo_share", objective->share));
}
static int print_best(const struct options *options, const struct objective *objective, const struct results *results,
                      const struct tradeoff *tradeoff, const struct candidate pick[2],
                      char *(*options_text)(const struct result_file *file)) {
    const int has_second = pick[1].config < tradeoff->config_count;
    char *words = options_text(file_of(results, tradeoff, pick[0].config)), name[80];
    int code = 0;
    if (is_given(options, "json")) {
        vp_json_writer writer;
        begin_json(&writer, "vlmprof-report-best-slo-1", objective);
        put_int(&writer, "num_samples", (int64_t)tradeoff->sample_count);
        vp_json_key(&writer, "best");
        put_candidate(&writer, results, tradeoff, &pick[0], words);
        vp_json_key(&writer, "runner_up");
        if (has_second) {
            char *others = options_text(file_of(results, tradeoff, pick[1].config));
            put_candidate(&writer, results, tradeoff, &pick[1], others);
            free(others);
        } else vp_json_null(&writer);
        vp_json_end_object(&writer);
        code = json_end(&writer);
    } else {
        print_plain("%s: the best of %s that meets %s (ms) in %g %% of the samples\n",
                    setting_text(file_of(results, tradeoff, pick[0].config), name),
                    results->files[tradeoff->group->first].dataset_name, objective->text, 100 * objective->share);
        print_candidate(tradeoff, objective, &pick[0]);
        if (has_second) {
            print_plain("runner-up: %s\n", setting_text(file_of(results, tradeoff, pick[1].config), name));
            print_candidate(tradeoff, objective, &pick[1]);
        } else print_plain("runner-up: none, no other configuration meets the objective\n");
        if (!file_of(results, tradeoff, pick[0].config)->is_foreign)
            print_plain("run it: vlmprof run IMAGE -p TEXT %s\n", words);
    }
    free(words);
    return code;
}
static int complain_of_objective(const struct results *results, const struct tradeoff *tradeoff,
                                 const struct objective_share *shares, const struct objective *objective,
                                 double min_accuracy) {
    size_t nearest = 0;
    char name[80], more[64] = "";
    for (size_t i = 1; i < tradeoff->config_count; i++) if (shares[i].share > shares[nearest].share) nearest = i;
    if (isfinite(min_accuracy)) snprintf(more, sizeof more, " with an accuracy of %.4g", min_accuracy);
    return complain(EXIT_WORK,
                    "best: none of %zu configurations meets %s in %g %% of the samples%s; the nearest is %s: "
                    "%.1f %%, accuracy %.4g",
                    tradeoff->config_count, objective->text, 100 * objective->share, more,
                    setting_text(file_of(results, tradeoff, nearest), name), 100 * shares[nearest].share,
                    tradeoff->at_accuracy[nearest]);
}
int best_of_sweep(const struct options *options, const struct objective *objective, const struct results *results,
                  const struct tradeoff *tradeoff, double min_accuracy,
                  char *(*options_text)(const struct result_file *file)) {
    struct objective_share *shares = zeroed(tradeoff->config_count + 1, sizeof *shares);
    struct candidate pick[2];
    int code = 0;
    for (size_t i = 0; i < tradeoff->config_count && !code; i++) {
        const struct result_file *file = file_of(results, tradeoff, i);
        const char *lacks = objective_lacks(file, &objective->slo);
        if (lacks) code = complain(EXIT_INPUT, "%s: no sample has a %s, which --slo limits", file->path, lacks);
        else shares[i] = objective_share_of(file, tradeoff->ids, tradeoff->sample_count, &objective->slo);
    }
    if (!code) {
        pick[0].config = most_accurate(tradeoff, shares, objective, min_accuracy, tradeoff->config_count);
        pick[1].config = most_accurate(tradeoff, shares, objective, min_accuracy, pick[0].config);
        for (int i = 0; i < 2; i++) pick[i].good = shares[pick[i].config];
        code = pick[0].config < tradeoff->config_count
                   ? print_best(options, objective, results, tradeoff, pick, options_text)
                   : complain_of_objective(results, tradeoff, shares, objective, min_accuracy);
    }
    free(shares);
    return code;
}

/* ---- trials of load */
/* Trials of one kind (by rate or by concurrency), their joint answer, and the highest load that meets the objective, if
 * any. */
struct kind {
    const char *name;
    const struct load_level *levels, *best; size_t count;
    struct load_answer answer;
};
static struct kind kind_of(const char *name, const struct load_level *levels, size_t count,
                           const struct objective *objective) {
    struct kind kind = {name, levels, NULL, count, {0, HUGE_VAL, 0, HUGE_VAL, (double)NAN, (double)NAN, 0, 0}};
    load_levels_answer(levels, count, &objective->slo, objective->share, &kind.answer);
    for (size_t i = 0; i < count; i++)
        if (load_level_trial(&levels[i], &kind.answer) == VP_TRIAL_HOLDS) kind.best = &levels[i];
    return kind;
}
static void put_level(vp_json_writer *writer, const struct load_level *level, const struct load_answer *answer) {
    const struct load_summary *summary;
    if (!level) { vp_json_null(writer); return; }
    summary = &level->summary;
    vp_json_begin_object(writer);
    put_load_level(writer, level);
    PUT(writer, KEY("trial", LOAD_VERDICTS[load_level_trial(level, answer)]), KEY("requests_due", summary->due),
        KEY("independent_requests", load_level_point(level, NULL).independent),
        KEY_ESTIMATE("good_share", "good_share_interval", summary->good_share), KEY("goodput_per_s", summary->goodput),
        KEY_RANGE("goodput_interval", summary->goodput_low, summary->goodput_high), KEY("images", level->images),
        KEY("cached_share", load_cached_share(summary)), END_OBJECT);
}
static void put_kind(vp_json_writer *writer, const struct kind *kind) {
    char key[40];
    snprintf(key, sizeof key, "best_%s", kind->name);
    vp_json_key(writer, key);
    put_level(writer, kind->best, &kind->answer);
    snprintf(key, sizeof key, "%s_interval", kind->name);
    PUT(writer, KEY_RANGE(key, kind->answer.low > 0 ? kind->answer.low : (double)NAN, kind->answer.high));
}
static void add_levels(struct text_list *cells, const struct kind *kind) {
    for (size_t i = 0; i < kind->count; i++) {
        const struct load_summary *summary = &kind->levels[i].summary;
        char text[48];
        CELLS(cells, load_level_text(&kind->levels[i], text), number_whole(summary->due).text,
            number_measured(100 * summary->good_share.value, 100 * summary->good_share.low,
                            100 * summary->good_share.high).text,
            number_whole((int64_t)load_level_point(&kind->levels[i], NULL).independent).text,
            number_measured(summary->goodput, summary->goodput_low, summary->goodput_high).text,
            number_percent(load_cached_share(summary)).text,
            LOAD_VERDICTS[load_level_trial(&kind->levels[i], &kind->answer)]);
    }
}
static void add_answer(struct document *document, const struct kind *kind, const struct objective *objective) {
    const struct load_answer *answer = &kind->answer;
    char text[48];
    if (kind->best)
        document_text(document, BLOCK_HEADING, "%s: the highest load that reliably meets %s (ms) for %g %% of the "
                                               "requests",
                      load_level_text(kind->best, text), objective->text, 100 * objective->share);
    else
        document_text(document, BLOCK_HEADING, "no tested %s reliably meets %s (ms) for %g %% of the requests",
                      kind->name, objective->text, 100 * objective->share);
    if (answer->low > 0 && answer->high < HUGE_VAL)
        document_text(document, BLOCK_LINE, "the highest %s that meets the objective is within [%.4g, %.4g] (95 %%, "
                                            "all trials together)", kind->name, answer->low, answer->high);
}
int best_of_load(const struct options *options, const struct objective *objective, struct load_levels *levels) {
    size_t rates = 0;
    struct kind kinds[2];
    int code = load_levels_check(levels, "best");
    for (size_t i = 0; i < levels->count && !code; i++) code = load_level_judge(&levels->items[i], &objective->slo);
    if (code) return code;
    while (rates < levels->count && !levels->items[rates].concurrency) rates++; /* rates are sorted first */
    kinds[0] = kind_of("rate", levels->items, rates, objective);
    kinds[1] = kind_of("concurrency", levels->items + rates, levels->count - rates, objective);
    if (is_given(options, "json")) {
        vp_json_writer writer;
        begin_json(&writer, "vlmprof-report-best-load-1", objective);
        put_kind(&writer, &kinds[0]);
        put_kind(&writer, &kinds[1]);
        PUT(&writer, KEY_ARRAY("levels"));
        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; i < kinds[k].count; i++) put_level(&writer, &kinds[k].levels[i], &kinds[k].answer);
        PUT(&writer, END_ARRAY, END_OBJECT);
        code = json_end(&writer);
    } else {
        struct document document = {NULL, 0, NULL};
        struct text_list *cells;
        for (size_t k = 0; k < 2; k++) if (kinds[k].count) add_answer(&document, &kinds[k], objective);
        cells = document_table(&document, "load|requests|good, %|independent|goodput per second|cached, %|objective");
        for (size_t k = 0; k < 2; k++) add_levels(cells, &kinds[k]);
        document_text(&document, BLOCK_LINE,
                      "objective: met if the load that was actually due is at or below the interval of the highest "
                      "load, missed if at or above it. independent: the number of independent requests that a trial is "
                      "worth, because latencies of a busy server depend on one another. A single trial decides only if "
                      "its share of that many requests is reliably above or below %g %%",
                      100 * objective->share);
        code = print_document(&document);
    }
    return code ? code : kinds[0].best || kinds[1].best ? 0 : EXIT_WORK;
}
