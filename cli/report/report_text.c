/* report_text.c: the report as text and Markdown. */
#include "report/report_text.h"

#include "base/memory.h"
#include "base/metrics.h"
#include "report/result_read.h"
#include "vlmprof_analysis.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

figure figure_x(double x) { return x > -1e15 && x < 1e15 && !(fabs(x - floor(x)) > 0) ? figure_of("%.0f", x) : figure_number(x); }
figure figure_of_estimate(vp_estimate e) { return figure_estimate(1, e.value, e.low, e.high); }
static void write_summary(document *d, const report *p) {
    const results *r = p->r;
    const result_file *f = &r->files[0];
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->files[i].count < least) least = r->files[i].count;
        if (r->files[i].count > most) most = r->files[i].count;
    }
    document_text(d, BLOCK_HEADING, "vlmprof report: %zu configuration%s", r->count, r->count == 1 ? "" : "s");
    for (size_t i = 0; i < r->group_count; i++) {
        const result_file *first = &r->files[r->groups[i].first];
        document_text(d, BLOCK_LINE, "data set %s: %zu configuration%s, accuracy by %s", first->task, r->groups[i].count,
                      r->groups[i].count == 1 ? "" : "s",
                      first->metric ? first->metric : "a metric that is not said");
    }
    document_text(d, BLOCK_LINE, "model %s%s%s%s, %s", f->model ? f->model : "not said", f->is_synthetic ? " (synthetic weights)" : "",
                  f->weights ? ", " : "",
                  f->weights ? f->weights : "", f->device ? f->device : "device not said");
    if (least == most) document_text(d, BLOCK_LINE, "%zu samples a configuration", most);
    else document_text(d, BLOCK_LINE, "%zu to %zu samples a configuration", least, most);
    if (f->runs_per_sample > 0)
        document_text(d, BLOCK_LINE, "%lld run%s a sample or more; a sample's value is the mean of its runs", (long long)f->runs_per_sample,
                                              f->runs_per_sample == 1 ? "" : "s");
    if (f->measured_from && f->measured_to) document_text(d, BLOCK_LINE, "first file measured %s to %s by vlmprof %s on %s", f->measured_from,
                                                          f->measured_to,
                                                          f->version ? f->version : "?", f->host ? f->host : "?");
    if (p->warnings.count) document_text(d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < p->warnings.count; i++) document_text(d, BLOCK_LINE, "%s", p->warnings.items[i]);
    if (p->findings.count) document_text(d, BLOCK_HEADING, "Findings");
    for (size_t i = 0; i < p->findings.count; i++) document_text(d, BLOCK_LINE, "%s", p->findings.items[i]);
}
static void write_latencies(document *d, const report *p) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "E1: latency, ms; P50 over samples [95 %% interval]");
    t = document_table(d, "configuration|T_total|P95|TTFT|vision|prefill|decode|ms/token|run spread %|closure %|idle %");
    for (size_t i = 0; i < p->r->count; i++) {
        static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
        const decomposition *c = &p->items[i];
        char name[160];
        text_list_add(t, "%s", report_full_name(p->r, c->file, name));
        text_list_add(t, "%s", figure_of_estimate(c->p50[METRIC_TOTAL]).text);
        text_list_add(t, "%s", figure_number(c->p95[METRIC_TOTAL]).text);
        for (int m = 0; m < 5; m++) text_list_add(t, "%s", figure_of_estimate(c->p50[metrics[m]]).text);
        text_list_add(t, "%s", figure_percent(c->run_spread).text);
        text_list_add(t, "%s", figure_of("%.2f", 100 * c->closure).text);
        text_list_add(t, "%s", figure_percent(c->idle_share).text);
    }
}
static void write_shares(document *d, const report *p) {
    text_buffer heads = {NULL, 0, 0};
    text_list *t;
    text_add_string(&heads, "configuration");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!stage_is_known(p, s)) continue;
        text_add_string(&heads, "|");
        text_add_string(&heads, vp_stage_name((vp_stage)s));
    }
    if (heads.bytes > 13) {
        text_add_string(&heads, "|unaccounted|sum");
        document_text(d, BLOCK_HEADING, "E1: where the time goes, %% of T_total (means)");
        t = document_table(d, heads.data);
        for (size_t i = 0; i < p->r->count; i++) {
            const decomposition *c = &p->items[i];
            double sum = c->unaccounted_share;
            char name[160];
            text_list_add(t, "%s", report_full_name(p->r, c->file, name));
            for (int s = 0; s < VP_STAGE_COUNT; s++) {
                if (isfinite(c->stages[s].share)) sum += c->stages[s].share;
                if (stage_is_known(p, s)) text_list_add(t, "%s", figure_of("%.2f", 100 * c->stages[s].share).text);
            }
            text_list_add(t, "%s", figure_of("%.4f", 100 * c->unaccounted_share).text);
            text_list_add(t, "%s", figure_of("%.2f", 100 * sum).text);
        }
    }
    free(heads.data);
}
static int part_is_known(const report *p, int part) {
    for (size_t i = 0; i < p->r->count; i++)
        for (int s = 0; s < 2; s++) if (isfinite(p->items[i].stages[PART_STAGES[s]].parts[part])) return 1;
    return 0;
}
static void write_parts(document *d, const report *p) {
    text_buffer heads = {NULL, 0, 0};
    text_list *t = NULL;
    text_add_string(&heads, "configuration|stage");
    for (int part = 0; part < VP_PART_COUNT; part++) {
        if (!part_is_known(p, part)) continue;
        text_add_string(&heads, "|");
        text_add_string(&heads, vp_part_name((vp_part)part));
    }
    text_add_string(&heads, "|idle");
    for (size_t i = 0; i < p->r->count; i++)
        for (int s = 0; s < 2; s++) {
            const stage_cost *c = &p->items[i].stages[PART_STAGES[s]];
            char name[160];
            if (!stage_has_parts(c)) continue;
            if (!t) {
                document_text(d, BLOCK_HEADING, "E1: what prefill and decode are made of, %% of their time on the device (--kernel_pass)");
                t = document_table(d, heads.data);
            }
            text_list_add(t, "%s", report_full_name(p->r, p->items[i].file, name));
            text_list_add(t, "%s", vp_stage_name((vp_stage)PART_STAGES[s]));
            for (int part = 0; part < VP_PART_COUNT; part++)
                if (part_is_known(p, part)) text_list_add(t, "%s", figure_of("%.1f", 100 * c->parts[part]).text);
            text_list_add(t, "%s", figure_of("%.1f", 100 * c->idle_share).text);
        }
    free(heads.data);
}
static const char *limits_text(const report *p, int stage, char out[96]) { /* "memory 10, launch 2" */
    size_t used = 0;
    out[0] = 0;
    for (int b = BOUND_COMPUTE; b <= BOUND_LAUNCH; b++) {
        size_t count = 0;
        for (size_t i = 0; i < p->r->count; i++) count += p->items[i].stages[stage].limit == (bound)b;
        if (count == p->r->count) snprintf(out, 96, "%s", BOUND_NAMES[b]);
        else if (count) used += (size_t)snprintf(out + used, 96 - used, "%s%s %zu", used ? ", " : "", BOUND_NAMES[b], count);
    }
    return out;
}
static void write_roofline(document *d, const report *p) {
    text_list *t;
    if (!(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return;
    document_text(d, BLOCK_HEADING, "E1: work against time, means over all configurations");
    document_text(d, BLOCK_LINE, "roofs %s TFLOP/s and %s GB/s: %s; launch: neither roof is reached to a third", figure_number(p->peak_tflops).text,
                  figure_number(p->peak_gbs).text, p->peaks_are_given ? "as given" : "the best of stages that take 1 % of a request or more "
                                                                                     "(--peak_tflops, --peak_gbs)");
    t = document_table(d, "stage|GFLOP|MB|launches|ms|TFLOP/s|% of roof|GB/s|% of roof|idle %|bound");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        double flops = 0, bytes = 0, launches = 0, ms = 0, idle = 0, count = 0, idle_count = 0;
        char limits[96];
        for (size_t i = 0; i < p->r->count; i++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!(c->flops > 0 || c->bytes > 0)) continue;
            flops += c->flops;
            bytes += c->bytes;
            launches += c->launches;
            ms += c->mean;
            count++;
            if (isfinite(c->idle_share)) { idle += c->idle_share; idle_count++; }
        }
        if (!(count > 0) || !(ms > 0)) continue;
        text_list_add(t, "%s", vp_stage_name((vp_stage)s));
        text_list_add(t, "%s", figure_number(flops / count / 1e9).text);
        text_list_add(t, "%s", figure_number(bytes / count / 1e6).text);
        text_list_add(t, "%s", figure_number(launches / count).text);
        text_list_add(t, "%s", figure_number(ms / count).text);
        text_list_add(t, "%s", figure_number(flops / ms / 1e9).text);
        text_list_add(t, "%s", figure_percent(flops / ms / 1e9 / p->peak_tflops).text);
        text_list_add(t, "%s", figure_number(bytes / ms / 1e6).text);
        text_list_add(t, "%s", figure_percent(bytes / ms / 1e6 / p->peak_gbs).text);
        text_list_add(t, "%s", figure_percent(idle / idle_count).text);
        text_list_add(t, "%s", limits_text(p, s, limits));
    }
}
static void write_curves(document *d, const report *p, size_t group) {
    text_list *t = NULL;
    for (size_t i = 0; i < p->curve_count; i++) {
        const curve *c = &p->curves[i];
        if (p->curve_group[i] != group) continue;
        if (!t) {
            document_text(d, BLOCK_HEADING, "E1: scaling of %s: ms against what it should grow with, straight lines [95 %% interval]",
                          p->r->files[p->r->groups[group].first].task);
            t = document_table(d, "latency|against|of|slope|unit|at 0, ms|R2|points");
        }
        text_list_add(t, "%s", c->y_name);
        text_list_add(t, "%s", c->x_name);
        text_list_add(t, "%s", c->label);
        text_list_add(t, "%s", figure_of_estimate(c->slope).text);
        text_list_add(t, "%s", c->unit);
        text_list_add(t, "%s", figure_number(c->intercept).text);
        text_list_add(t, "%s", figure_of("%.3f", c->r2).text);
        text_list_add(t, "%zu", c->count);
    }
    for (size_t i = 0; i < p->curve_count; i++) { /* medians: of vision, and of the largest language model */
        const curve *c = &p->curves[i];
        int is_last = i + 1 == p->curve_count || p->curve_group[i + 1] != group || strcmp(p->curves[i + 1].name, c->name);
        if (p->curve_group[i] != group || !is_last) continue;
        document_text(d, BLOCK_LINE, "medians of %s over %s (%s)", c->y_name, c->x_name, c->label);
        t = document_table(d, "at|ms|points");
        for (size_t b = 0; b < c->bin_count; b++) {
            text_list_add(t, "%s", figure_x(c->bins[b].x).text);
            text_list_add(t, "%s", figure_of_estimate(c->bins[b].y).text);
            text_list_add(t, "%zu", c->bins[b].count);
        }
    }
}
static void write_front(document *d, const report *p, const tradeoff *t) {
    const char *axis = METRIC_KEYS[p->settings.axis], *percentile = percentile_text(p->settings.percentile);
    text_list *table;
    size_t near_count = 0;
    document_text(d, BLOCK_HEADING, "E2: front of accuracy against %s of %s, %s, %zu samples in common", percentile, axis,
                  p->r->files[t->group->first].task, t->sample_count);
    if (t->is_corpus)
        document_text(d, BLOCK_LINE,
                      "the metric %s is one of the whole corpus: no sample has a score of its own, so there are no intervals of accuracy, no "
                      "memberships, no effects on it", p->r->files[t->group->first].metric ? p->r->files[t->group->first].metric : "of these files");
    else document_text(d, BLOCK_LINE,
                       "member: share of %zu draws of the samples in which it is on the front; * steps of at least %s ms and %.3g points",
                       p->settings.resamples, figure_number(t->epsilon_latency).text, 100 * p->settings.epsilon_accuracy);
    if (!(t->area > 0))
        document_text(d, BLOCK_LINE, "no configuration is more accurate than the fastest one: the front is a single point");
    table = document_table(d, "configuration|ms|accuracy|member %|equal points|");
    for (size_t i = 0; i < t->front_count; i++) {
        const vp_bootstrap_point *b = &t->points[t->front[i]];
        char name[80];
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[t->front[i]]], name));
        text_list_add(table, "%s", figure_estimate(1, b->latency, b->latency_low, b->latency_high).text);
        text_list_add(table, "%s", figure_estimate(1, b->accuracy, b->accuracy_low, b->accuracy_high).text);
        text_list_add(table, "%s", figure_percent(b->membership).text);
        text_list_add(table, "%zu", equal_points(t, t->front[i]));
        text_list_add(table, "%s", is_listed(t->kept, t->kept_count, t->front[i]) ? "*" : "");
    }
    for (size_t i = 0; i < t->config_count; i++) {
        char name[80];
        if (!(t->points[i].membership >= 0.05) || is_listed(t->front, t->front_count, i)) continue;
        if (!near_count++) {
            document_text(d, BLOCK_LINE, "not on it, but perhaps members");
            table = document_table(d, "configuration|ms|accuracy|member %");
        }
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[i]], name));
        text_list_add(table, "%s", figure_estimate(1, t->points[i].latency, t->points[i].latency_low, t->points[i].latency_high).text);
        text_list_add(table, "%s", figure_estimate(1, t->points[i].accuracy, t->points[i].accuracy_low, t->points[i].accuracy_high).text);
        text_list_add(table, "%s", figure_percent(t->points[i].membership).text);
    }
}
static void write_share_row(text_list *table, const tradeoff *t, const char *name, int32_t term) {
    text_list_add(table, "%s", name);
    for (int v = 0; v < 2; v++) text_list_add(table, "%s", t->shares[v] ? figure_percent(t->shares[v][term]).text : "-");
}
static void write_effect_shares(document *d, const tradeoff *t) {
    int32_t knobs = t->knobs.knob_count, term = knobs;
    text_list *table;
    document_text(d, BLOCK_LINE, "shares of the variance between the configurations' means, %%");
    table = document_table(d, "term|latency|accuracy");
    for (int32_t a = 0; a < knobs; a++) write_share_row(table, t, KNOB_NAMES[t->knob_of[a]], a);
    for (int32_t a = 0; a < knobs && t->order == 2; a++) {
        for (int32_t b = a + 1; b < knobs; b++) {
            char name[64];
            snprintf(name, sizeof name, "%s x %s", KNOB_NAMES[t->knob_of[a]], KNOB_NAMES[t->knob_of[b]]);
            write_share_row(table, t, name, term++);
        }
    }
    write_share_row(table, t, "what is left", term);
}
static void write_effect(text_list *table, const vp_effect *e, double scale) {
    text_list_add(table, "%s", e ? figure_estimate(scale, e->estimate, e->low, e->high).text : "-");
}
static void write_effects(document *d, const report *p, const tradeoff *t) {
    text_list *table;
    char name[160];
    if (!t->order) {
        document_text(d, BLOCK_LINE, "effects of knobs: %s", t->knobs.knob_count ? "this grid cannot tell them apart" : "no knob varies");
        return;
    }
    document_text(d, BLOCK_HEADING, "E2: effects of the knobs on mean %s and accuracy [95 %% interval]", METRIC_KEYS[p->settings.axis]);
    write_effect_shares(d, t);
    document_text(d, BLOCK_LINE, "main effects: a level's mean less the mean of all; latency mean %s ms%s%s",
                  figure_number(t->effects[0][0].estimate).text,
                  t->effects[1] ? ", accuracy mean " : "", t->effects[1] ? figure_number(t->effects[1][0].estimate).text : "");
    table = document_table(d, "level|latency, ms|accuracy, points");
    for (size_t i = 0; i < t->effect_count; i++) {
        if (t->effects[0][i].kind != VP_EFFECT_MAIN) continue;
        effect_name(t, p->r, &t->effects[0][i], name);
        text_list_add(table, "%s", name);
        write_effect(table, &t->effects[0][i], 1);
        write_effect(table, t->effects[1] ? &t->effects[1][i] : NULL, 100);
    }
}
/* Pairs of levels whose effect together is not that of both: those that stand a test adjusted for their number, the largest first. */
typedef struct found_pair { size_t at; double size; } found_pair;
static int by_size(const void *a, const void *b) {
    const found_pair *x = (const found_pair *)a, *y = (const found_pair *)b;
    return x->size > y->size ? -1 : x->size < y->size ? 1 : x->at < y->at ? -1 : x->at > y->at;
}
static size_t find_pairs(const vp_effect *effects, size_t effect_count, found_pair *found) {
    double *p = resize(NULL, effect_count, 2 * sizeof *p), *adjusted = p + effect_count;
    size_t *at = resize(NULL, effect_count, sizeof *at), count = 0, kept = 0;
    uint32_t *order = resize(NULL, effect_count, sizeof *order);
    for (size_t i = 0; i < effect_count; i++) {
        if (effects[i].kind != VP_EFFECT_PAIR || !(effects[i].p >= 0 && effects[i].p <= 1)) continue;
        at[count] = i;
        p[count++] = effects[i].p;
    }
    if (count && vp_adjust(p, count, VP_ADJUST_BENJAMINI_HOCHBERG, order, adjusted) == VP_OK) {
        for (size_t i = 0; i < count; i++) {
            if (!(adjusted[i] <= 0.05)) continue;
            found[kept].at = at[i];
            found[kept++].size = fabs(effects[at[i]].estimate);
        }
    }
    qsort(found, kept, sizeof *found, by_size);
    free(p);
    free(at);
    free(order);
    return kept;
}
static void write_pairs(document *d, const report *p, const tradeoff *t) {
    enum { SHOWN = 8 };
    found_pair *found = resize(NULL, t->effect_count, sizeof *found);
    for (int v = 0; v < 2 && t->order == 2; v++) {
        size_t count = t->effects[v] ? find_pairs(t->effects[v], t->effect_count, found) : 0;
        text_list *table;
        if (!t->effects[v]) continue;
        document_text(d, BLOCK_LINE, "interactions in %s: %zu that stand (Benjamini-Hochberg, 5 %%)%s", v ? "accuracy" : "latency", count,
                      count > SHOWN ? ", the largest 8" : "");
        if (!count) continue;
        table = document_table(d, v ? "levels together|points more than both alone" : "levels together|ms more than both alone");
        for (size_t i = 0; i < count && i < SHOWN; i++) {
            char name[160];
            effect_name(t, p->r, &t->effects[v][found[i].at], name);
            text_list_add(table, "%s", name);
            write_effect(table, &t->effects[v][found[i].at], v ? 100 : 1);
        }
    }
    free(found);
}
static void write_knob_fronts(document *d, const report *p, const tradeoff *t) {
    text_list *table;
    if (!t->knob_front_count) return;
    document_text(d, BLOCK_HEADING, "E2: fronts with one knob held");
    document_text(d, BLOCK_LINE, "area: what the front dominates up to the slowest and the least accurate configuration, %% of the whole front's");
    table = document_table(d, "held|points|area %|fastest|most accurate");
    for (size_t i = 0; i < t->knob_front_count; i++) {
        const knob_front *f = &t->fronts[i];
        char level[48], fast[80], best[80];
        text_list_add(table, "%s %s", KNOB_NAMES[f->knob], report_level_text(t, p->r, f->knob, f->level, level));
        text_list_add(table, "%zu", f->count);
        text_list_add(table, "%s", figure_percent(f->area / t->area).text);
        text_list_add(table, "%s", f->count ? setting_text(&p->r->files[t->group->paired[f->front[0]]], fast) : "-");
        text_list_add(table, "%s", f->count ? setting_text(&p->r->files[t->group->paired[f->front[f->count - 1]]], best) : "-");
    }
}
static void write_gains(document *d, const report *p, const tradeoff *t) {
    text_list *table = NULL;
    for (size_t i = 0; i < t->gain_count; i++) {
        const knob_gain *g = &t->gains[i];
        char from[80], level[48];
        if (!is_listed(t->front, t->front_count, g->from)) continue;
        if (!table) {
            document_text(d, BLOCK_HEADING, "E2: what the next level of a knob buys, from the front's points; means over samples");
            table = document_table(d, "from|to|ms more|points more|points per ms");
        }
        for (int32_t k = 0, level_index = 0; k < t->knobs.knob_count; k++) {
            if (t->knob_of[k] != g->knob) continue;
            level_index = t->levels[g->to * (size_t)t->knobs.knob_count + (size_t)k];
            report_level_text(t, p->r, g->knob, level_index, level);
        }
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[g->from]], from));
        text_list_add(table, "%s %s", KNOB_NAMES[g->knob], level);
        text_list_add(table, "%s", figure_estimate(1, g->gain.latency.mean, g->gain.latency.low, g->gain.latency.high).text);
        text_list_add(table, "%s", figure_estimate(100, g->gain.accuracy.mean, g->gain.accuracy.low, g->gain.accuracy.high).text);
        if (isfinite(g->gain.low) && isfinite(g->gain.high))
            text_list_add(table, "%s", figure_estimate(100, g->gain.gain, g->gain.low, g->gain.high).text);
        else text_list_add(table, "unbounded"); /* the ms more may be none */
    }
}
void report_text_write(document *d, const report *p) {
    write_summary(d, p);
    write_latencies(d, p);
    write_shares(d, p);
    write_parts(d, p);
    write_roofline(d, p);
    for (size_t i = 0; i < p->r->group_count; i++) write_curves(d, p, i);
    for (size_t i = 0; i < p->r->group_count; i++) {
        const tradeoff *t = &p->tradeoffs[i];
        if (t->reason[0]) {
            document_text(d, BLOCK_HEADING, "E2: %s", p->r->files[t->group->first].task);
            document_text(d, BLOCK_LINE, "no front: %s", t->reason);
            continue;
        }
        write_front(d, p, t);
        write_effects(d, p, t);
        write_pairs(d, p, t);
        write_knob_fronts(d, p, t);
        write_gains(d, p, t);
    }
}
