/* result_write.c: journals to one result file for each configuration.
 * Neither the data set, the model nor the engine is needed. */
#include "sweep/result_write.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "request/record.h"
#include "score/scoring.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a point as its journal has it */
typedef struct run_mark { int is_throttled; int64_t session, unix_s; char *telemetry; } run_mark; /* session: place of its line */
typedef struct measured {
    sample a;                     /* record: the sample's metadata */
    parsed sizes; char *sizes_text; /* what follows from its layout */
    timing *runs; run_mark *marks; int32_t count, capacity;
    int64_t stamps, retries;
    char *failed, *stop;
    int64_t bare_ns, staged_ns;   /* 0: no pair */
} measured;

static void measured_clear(measured *m) {
    parsed kept = m->sizes;
    for (int32_t i = 0; i < m->count; i++) free(m->marks[i].telemetry);
    timings_free(m->runs, m->count);
    sample_free(&m->a);
    free(m->sizes_text);
    free(m->marks);
    free(m->failed);
    free(m->stop);
    memset(m, 0, sizeof *m);
    m->sizes = kept;
}
static char *raw_text(const vp_json *j, uint32_t node) {
    return node == VP_JSON_NONE ? NULL : copy_text(j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes);
}

/* {"vit": [wall ns, device ns, launches, flops, bytes], ...}: the stages that ran */
static void read_stages(const vp_json *j, uint32_t object, vp_stage_times *t) {
    if (!node_is(j, object, VP_JSON_OBJECT)) return;
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        int64_t *to[5];
        uint32_t list = vp_json_get(j, object, vp_stage_name((vp_stage)i)), item = list + 1;
        if (!node_is(j, list, VP_JSON_ARRAY) || j->nodes[list].count != 5) continue;
        to[0] = &t->wall_ns[i];
        to[1] = &t->device_ns[i];
        to[2] = &t->launches[i];
        to[3] = &t->flops[i];
        to[4] = &t->bytes[i];
        t->ran[i] = 1;
        for (int k = 0; k < 5; k++, item = j->nodes[item].end) if (vp_json_to_int(j, item, to[k]) != VP_OK) t->ran[i] = 0;
    }
}
/* Reads a run's line; 0 when it is not one. */
static int read_run(const vp_json *j, timing *t) {
    uint32_t tokens = vp_json_get(j, 0, "tokens"), steps = vp_json_get(j, 0, "step_ns"), answer = vp_json_get(j, 0, "answer"), item;
    int64_t value = 0;
    memset(t, 0, sizeof *t);
    if (!node_is(j, tokens, VP_JSON_ARRAY) || !node_is(j, steps, VP_JSON_ARRAY) || !node_is(j, answer, VP_JSON_STRING)) return 0;
    t->total_ns = node_int(j, 0, "total_ns", 0);
    t->token_count = (int32_t)j->nodes[tokens].count;
    t->ended_by_eos = node_is(j, vp_json_get(j, 0, "ended_by_eos"), VP_JSON_TRUE);
    t->tokens = zeroed((size_t)t->token_count + 1, sizeof *t->tokens);
    t->step_ns = zeroed((size_t)t->token_count + 1, sizeof *t->step_ns);
    item = tokens + 1;
    for (int32_t i = 0; i < t->token_count; i++, item = j->nodes[item].end)
        if (vp_json_to_int(j, item, &value) == VP_OK) t->tokens[i] = (int32_t)value;
    item = steps + 1;
    for (int32_t i = 0; i < t->token_count && (uint32_t)i < j->nodes[steps].count; i++, item = j->nodes[item].end)
        if (vp_json_to_int(j, item, &value) == VP_OK) t->step_ns[i] = value;
    t->answer = zeroed((size_t)j->nodes[answer].bytes + 1, 1); /* unescaping never lengthens */
    if (vp_json_text(j, answer, t->answer, (size_t)j->nodes[answer].bytes + 1, &t->answer_bytes) != VP_OK) t->answer_bytes = 0;
    read_stages(j, vp_json_get(j, 0, "stages"), &t->times);
    return t->total_ns > 0;
}
static int add_run(measured *m, const vp_json *j) {
    if (m->count == m->capacity) {
        m->capacity = m->capacity * 2 + 8;
        m->runs = resize(m->runs, (size_t)m->capacity, sizeof *m->runs);
        m->marks = resize(m->marks, (size_t)m->capacity, sizeof *m->marks);
    }
    m->marks[m->count].is_throttled = node_is(j, vp_json_get(j, 0, "throttled"), VP_JSON_TRUE);
    m->marks[m->count].session = node_int(j, 0, "session", -1);
    m->marks[m->count].unix_s = node_int(j, 0, "unix_s", 0);
    m->marks[m->count].telemetry = raw_text(j, vp_json_get(j, 0, "telemetry"));
    m->stamps = node_int(j, 0, "stamps", 0);
    return read_run(j, &m->runs[m->count++]);
}
static void reverse_runs(measured *m) { /* the journal leads from the last to the first */
    for (int32_t i = 0, k = m->count - 1; i < k; i++, k--) {
        timing t = m->runs[i];
        run_mark mark = m->marks[i];
        m->runs[i] = m->runs[k];
        m->marks[i] = m->marks[k];
        m->runs[k] = t;
        m->marks[k] = mark;
    }
}
/* A closed point with all its lines; 0 or an exit code. */
static int read_point(book *b, const book_cell *c, const book_entry *e, measured *m) {
    const vp_json *j = &b->scratch.json;
    int64_t at = book_entry_state(e, c) >> 2;
    uint32_t node;
    int code;
    measured_clear(m);
    while (at >= 0) {
        int64_t prev;
        if ((code = book_line(b, e->file, at)) != 0) return code;
        prev = node_int(j, 0, "prev", -1);
        if (vp_json_get(j, 0, "run") != VP_JSON_NONE) {
            if (!add_run(m, j)) return complain(EXIT_OUTPUT, "%s: the run at byte %lld cannot be read", b->files[e->file].path, (long long)at);
        } else if ((node = vp_json_get(j, 0, "bare")) != VP_JSON_NONE) {
            m->bare_ns = node_int(j, node, "bare_total_ns", 0);
            m->staged_ns = node_int(j, node, "staged_total_ns", 0);
        } else {
            m->failed = node_text(j, vp_json_get(j, 0, "failed"));
            m->stop = node_text(j, vp_json_get(j, 0, "stop"));
            m->retries = node_int(j, 0, "retries", 0);
            m->sizes_text = raw_text(j, vp_json_get(j, 0, "sizes"));
        }
        if (prev >= at) return complain(EXIT_OUTPUT, "%s: the line at byte %lld names no line before it", b->files[e->file].path, (long long)at);
        at = prev;
    }
    reverse_runs(m);
    if (!m->sizes_text || parse_json(&m->sizes, m->sizes_text, strlen(m->sizes_text), NULL) != VP_OK || !node_is(&m->sizes.json, 0, VP_JSON_OBJECT))
        return complain(EXIT_OUTPUT, "%s: a point of sample %lld lacks its sizes", b->files[e->file].path, (long long)e->id);
    if ((code = book_line(b, e->file, e->line_at)) != 0) return code;
    m->a.id = e->id;
    m->a.prompt = node_text(j, vp_json_get(j, 0, "prompt"));
    m->a.record = raw_text(j, vp_json_get(j, 0, "metadata"));
    return 0;
}

/* ---- what the points of a configuration are gathered into; each list has its own count because points can lack a number */
enum { METRIC_ALL = METRIC_STAGE + VP_STAGE_COUNT };

enum {
    LIST_METRICS = 0, LIST_RUNS = METRIC_ALL, /* a point's mean over its runs; each run by itself */
    LIST_TARGET = 2 * METRIC_ALL, LIST_ACTUAL, LIST_DIFF, LIST_CROPS, LIST_ACCURACY,
    LIST_TILING, LIST_HEIGHT, LIST_WIDTH, LIST_TOKENS, /* of each layout: tiling, canvas, theoretical tokens */
    LIST_OUTPUT, LIST_RATE, LIST_STAMPS, LIST_BARE, LIST_STAGED,
    LIST_STEP, LIST_STEP_AT, /* decode step times, and the position of each */
    LIST_COUNT
};

typedef struct list { double *values; size_t count, capacity; } list;
typedef struct used_session { int32_t file; int64_t at; } used_session;
typedef struct gathered {
    list lists[LIST_COUNT];
    int64_t ok_count, failed_count, missing_count, unparsed_count, truncated_count, empty_count;
    int64_t outlier_count, throttled_count, retry_count, run_count, stops[VP_STOP_LAST_ + 1];
    used_session *sessions; size_t session_count; /* in the order of their first points */
    int64_t first_s, last_s;                      /* when the runs were */
    tally t;
} gathered;

static void gathered_free(gathered *g) {
    for (int i = 0; i < LIST_COUNT; i++) free(g->lists[i].values);
    free(g->sessions);
}
static const char *metric_name(int metric) { return metric < METRIC_STAGE ? METRIC_KEYS[metric] : vp_stage_name((vp_stage)(metric - METRIC_STAGE)); }
static void list_add(list *l, double value) {
    if (!isfinite(value)) return;
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 64;
        l->values = resize(l->values, l->capacity, sizeof *l->values);
    }
    l->values[l->count++] = value;
}
static size_t session_index(const gathered *g, int32_t file, int64_t at) {
    size_t i = 0;
    while (i < g->session_count && (g->sessions[i].file != file || g->sessions[i].at != at)) i++;
    return i;
}
static point point_of(const book *b, const book_cell *c, const measured *m) {
    point p;
    memset(&p, 0, sizeof p);
    p.a = &m->a;
    p.tier = c->tier;
    p.top_k = c->top_k;
    p.blocks = c->blocks;
    p.block_count = c->block_count;
    p.runs = m->runs;
    p.run_count = m->failed ? 0 : m->count;
    p.reason = m->failed;
    p.ignore_eos = b->ignore_eos;
    if (vp_score_metric_find(b->sets[c->set].metric, &p.metric) != VP_OK) p.metric = VP_SCORE_VQA_SEED;
    return p;
}
/* Flags of the runs whose total stands out: uint8 [count]; too few runs flag none. Returns their number. */
static int find_outliers(const measured *m, uint8_t *flags, vp_outliers *o) {
    double *values = resize(NULL, (size_t)m->count * 2, sizeof *values);
    int known;
    for (int32_t i = 0; i < m->count; i++) values[i] = metric_of(&m->runs[i], METRIC_TOTAL);
    memset(flags, 0, (size_t)m->count);
    memset(o, 0, sizeof *o);
    known = vp_statistics_outliers(values, (size_t)m->count, VP_OUTLIER_THRESHOLD, values + m->count, flags, o) == VP_OK;
    free(values);
    return known;
}

static void gather_layout(gathered *g, const vp_json *j) {
    double target = node_number(j, vp_json_get(j, 0, "target_vision_tokens")), actual = node_number(j, vp_json_get(j, 0, "actual_vision_tokens"));
    uint32_t tiling = vp_json_get(j, 0, "actual_tiling"), size = vp_json_get(j, 0, "theoretical_image_size");
    list_add(&g->lists[LIST_TARGET], target);
    list_add(&g->lists[LIST_ACTUAL], actual);
    list_add(&g->lists[LIST_DIFF], target - actual);
    list_add(&g->lists[LIST_CROPS], node_number(j, vp_json_get(j, 0, "actual_num_crops")));
    if (!node_is(j, tiling, VP_JSON_ARRAY) || !node_is(j, size, VP_JSON_ARRAY)) return;
    list_add(&g->lists[LIST_TILING], node_number(j, vp_json_at(j, tiling, 0)) * 65536 + node_number(j, vp_json_at(j, tiling, 1)));
    list_add(&g->lists[LIST_HEIGHT], node_number(j, vp_json_at(j, size, 0)));
    list_add(&g->lists[LIST_WIDTH], node_number(j, vp_json_at(j, size, 1)));
    list_add(&g->lists[LIST_TOKENS], node_number(j, vp_json_get(j, 0, "theoretical_vision_tokens")));
}
static void gather_runs(gathered *g, const measured *m, int32_t file) {
    uint8_t *flags = zeroed((size_t)m->count, 1);
    vp_outliers o;
    double total = metric_mean(m->runs, m->count, METRIC_TOTAL);
    if (find_outliers(m, flags, &o)) g->outlier_count += (int64_t)o.count;
    free(flags);
    for (int k = 0; k < METRIC_ALL; k++) {
        list_add(&g->lists[LIST_METRICS + k], metric_mean(m->runs, m->count, k));
        for (int32_t i = 0; i < m->count; i++) list_add(&g->lists[LIST_RUNS + k], metric_of(&m->runs[i], k));
    }
    for (int32_t i = 0; i < m->count; i++) {
        g->throttled_count += m->marks[i].is_throttled;
        if (!g->first_s || m->marks[i].unix_s < g->first_s) g->first_s = m->marks[i].unix_s;
        if (m->marks[i].unix_s > g->last_s) g->last_s = m->marks[i].unix_s;
        for (int32_t s = 0; s + 1 < m->runs[i].token_count && m->runs[i].times.ran[VP_STAGE_DECODE]; s++) {
            list_add(&g->lists[LIST_STEP], (double)m->runs[i].step_ns[s] / 1e6);
            list_add(&g->lists[LIST_STEP_AT], s + 1);
        }
        if (session_index(g, file, m->marks[i].session) < g->session_count) continue;
        g->sessions = resize(g->sessions, g->session_count + 1, sizeof *g->sessions);
        g->sessions[g->session_count].file = file;
        g->sessions[g->session_count++].at = m->marks[i].session;
    }
    g->run_count += m->count;
    list_add(&g->lists[LIST_OUTPUT], m->runs[0].token_count);
    list_add(&g->lists[LIST_RATE], m->runs[0].token_count / total * 1e3);
    list_add(&g->lists[LIST_STAMPS], (double)m->stamps);
    if (m->bare_ns <= 0 || m->staged_ns <= 0) return;
    list_add(&g->lists[LIST_BARE], (double)m->bare_ns / 1e6);
    list_add(&g->lists[LIST_STAGED], (double)m->staged_ns / 1e6);
}
static void gather_point(gathered *g, const point *p, const measured *m, int32_t file) {
    vp_score_outcome o;
    scoring s;
    double accuracy;
    gather_layout(g, &m->sizes.json);
    if (m->failed) g->failed_count++; else g->ok_count++;
    g->retry_count += m->retries;
    for (int i = 0; m->stop && i <= VP_STOP_LAST_; i++) g->stops[i] += !strcmp(m->stop, vp_stop_name(i));
    if (p->run_count) gather_runs(g, m, file);
    score_point(p, &s, &o);
    accuracy = o.is_unparsed ? 0 : o.score;
    list_add(&g->lists[LIST_ACCURACY], accuracy);
    tally_add(&g->t, accuracy, 0, 0);
    g->unparsed_count += p->run_count && o.is_unparsed;
    g->truncated_count += p->run_count && !p->ignore_eos && !p->runs[0].ended_by_eos;
    g->empty_count += p->run_count && o.cleaned && !o.cleaned[0];
    scoring_free(&s);
}

/* ---- numbers into the file */
/* Statistics of a list; 0 when it is empty. The sorted values go to *sorted (malloc'ed, may be NULL). */
static int list_statistics(const list *l, vp_statistics *s, double **sorted) {
    double *scratch = resize(NULL, l->count, sizeof *scratch);
    int good = l->count && vp_statistics_compute(l->values, l->count, scratch, s) == VP_OK;
    if (sorted) *sorted = scratch; else free(scratch);
    return good;
}
/* NAME_mean ... NAME_p99, null where there is no value; without a name: mean ... p99 */
static void put_statistics(vp_json_writer *w, const char *name, const list *l) {
    static const char *const suffixes[] = {"mean", "std", "p50", "p95", "p99"};
    vp_statistics s;
    int good = list_statistics(l, &s, NULL);
    double values[5] = {0, 0, 0, 0, 0};
    if (good) { values[0] = s.mean; values[1] = s.std; values[2] = s.p50; values[3] = s.p95; values[4] = s.p99; }
    for (int i = 0; i < 5; i++) {
        char key[96];
        snprintf(key, sizeof key, "%s%s%s", name, name[0] ? "_" : "", suffixes[i]);
        put_double(w, key, good ? values[i] : (double)NAN);
    }
}
static double list_mean(const list *l) { return l->count ? vp_statistics_mean(l->values, l->count) : (double)NAN; }
static double list_std(const list *l) { return l->count ? vp_statistics_std(l->values, l->count) : (double)NAN; }
static double list_p50(const list *l) {
    vp_statistics s;
    return list_statistics(l, &s, NULL) ? s.p50 : (double)NAN;
}
/* {"count", "mean" ... "p99", "p50_interval", "unsupported": percentiles that so few values do not tell} */
static void put_distribution(vp_json_writer *w, const char *key, const list *l) {
    static const double percentiles[] = {50, 95, 99};
    static const char *const names[] = {"p50", "p95", "p99"};
    double *sorted = NULL, low = 0, high = 0;
    vp_statistics s;
    int known = list_statistics(l, &s, &sorted) && vp_statistics_percentile_interval(sorted, l->count, 50, 0.95, &low, &high) == VP_OK;
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_int(w, "count", (int64_t)l->count);
    put_statistics(w, "", l);
    put_interval(w, "p50_interval", known, low, high);
    vp_json_key(w, "unsupported");
    vp_json_begin_array(w);
    for (int i = 0; i < 3; i++) if (!vp_statistics_percentile_supported(l->count, percentiles[i])) vp_json_string(w, names[i]);
    vp_json_end_array(w);
    vp_json_end_object(w);
    free(sorted);
}
static void put_distributions(vp_json_writer *w, const gathered *g) {
    static const char *const keys[] = {"over_samples", "over_runs"}; /* each sample's mean over its runs; every run by itself */
    vp_json_key(w, "statistics");
    vp_json_begin_object(w);
    for (int which = 0; which < 2; which++) {
        vp_json_key(w, keys[which]);
        vp_json_begin_object(w);
        for (int k = 0; k < METRIC_ALL; k++) put_distribution(w, metric_name(k), &g->lists[(which ? LIST_RUNS : LIST_METRICS) + k]);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

/* {"pos_1": {...}, ...}: decode steps by position, over samples and runs; position 1 is the first decode step */
static void put_step_statistics(vp_json_writer *w, const gathered *g) {
    const list *values = &g->lists[LIST_STEP], *at = &g->lists[LIST_STEP_AT];
    size_t positions = 0, *starts, *fill;
    double *grouped = resize(NULL, values->count, sizeof *grouped);
    for (size_t i = 0; i < at->count; i++) if ((size_t)at->values[i] > positions) positions = (size_t)at->values[i];
    starts = zeroed(positions + 2, sizeof *starts);
    fill = zeroed(positions + 2, sizeof *fill);
    for (size_t i = 0; i < at->count; i++) starts[(size_t)at->values[i] + 1]++;
    for (size_t p = 1; p < positions + 2; p++) starts[p] += starts[p - 1];
    for (size_t i = 0; i < at->count; i++) grouped[starts[(size_t)at->values[i]] + fill[(size_t)at->values[i]]++] = values->values[i];
    vp_json_key(w, "T_decode_per_step_stats");
    vp_json_begin_object(w);
    for (size_t p = 1; p <= positions; p++) {
        list one = {grouped + starts[p], fill[p], fill[p]};
        char key[32];
        snprintf(key, sizeof key, "pos_%zu", p);
        vp_json_key(w, key);
        vp_json_begin_object(w);
        put_statistics(w, "", &one);
        put_int(w, "count", (int64_t)one.count);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    free(grouped);
    free(starts);
    free(fill);
}

/* Over samples (each the mean over its runs); T_total_runs over all single runs; milliseconds, population std, linear percentiles. */
static void put_aggregate(vp_json_writer *w, const char *key, const gathered *g) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE; m++) put_statistics(w, METRIC_KEYS[m], &g->lists[LIST_METRICS + m]);
    put_statistics(w, "T_total_runs", &g->lists[LIST_RUNS + METRIC_TOTAL]);
    put_double(w, "vision_tokens_mean", list_mean(&g->lists[LIST_ACTUAL]));
    put_double(w, "vision_tokens_std", list_std(&g->lists[LIST_ACTUAL]));
    put_double(w, "vision_tokens_diff_mean", list_mean(&g->lists[LIST_DIFF]));
    put_step_statistics(w, g);
    vp_json_end_object(w);
}

/* the most frequent of sorted values, the smallest of equals */
static double most_frequent(const double *sorted, size_t count) {
    size_t best = 0, best_count = 0, start = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && !(sorted[i] > sorted[start])) continue;
        if (i - start > best_count) { best = start; best_count = i - start; }
        start = i;
    }
    return sorted[best];
}

/* selected_crops_*, *_vision_tokens_*, theoretical_* */
static void put_vision(vp_json_writer *w, const book_cell *c, const gathered *g) {
    double *sorted = NULL;
    vp_statistics s;
    put_double(w, "selected_crops_mean", list_mean(&g->lists[LIST_CROPS]));
    put_double(w, "selected_crops_std", list_std(&g->lists[LIST_CROPS]));
    vp_json_key(w, "selected_crops_distribution");
    vp_json_begin_object(w);
    if (list_statistics(&g->lists[LIST_CROPS], &s, &sorted)) {
        size_t start = 0;
        for (size_t i = 1; i <= s.count; i++) {
            char key[32];
            if (i < s.count && !(sorted[i] > sorted[start])) continue;
            snprintf(key, sizeof key, "%d", (int)sorted[start]);
            put_int(w, key, (int64_t)(i - start));
            start = i;
        }
    }
    vp_json_end_object(w);
    free(sorted);
    put_double(w, "target_vision_tokens_mean", list_mean(&g->lists[LIST_TARGET]));
    put_double(w, "target_vision_tokens_std", list_std(&g->lists[LIST_TARGET]));
    put_double(w, "actual_vision_tokens_mean", list_mean(&g->lists[LIST_ACTUAL]));
    put_double(w, "actual_vision_tokens_std", list_std(&g->lists[LIST_ACTUAL]));
    vp_json_key(w, "max_crops");
    if (c->max_crops) vp_json_int(w, c->max_crops); else vp_json_null(w);
    if (list_statistics(&g->lists[LIST_TILING], &s, &sorted)) {
        int32_t code = (int32_t)most_frequent(sorted, s.count), rows = code / 65536, cols = code % 65536;
        size_t i = 0;
        while ((int32_t)g->lists[LIST_TILING].values[i] != code) i++;
        put_int(w, "theoretical_num_crops", (int64_t)rows * cols);
        put_pair(w, "theoretical_tiling", rows, cols);
        put_pair(w, "theoretical_image_size", (int64_t)g->lists[LIST_HEIGHT].values[i], (int64_t)g->lists[LIST_WIDTH].values[i]);
        put_int(w, "theoretical_vision_tokens", (int64_t)g->lists[LIST_TOKENS].values[i]);
    } else {
        put_null(w, "theoretical_num_crops");
        put_null(w, "theoretical_tiling");
        put_null(w, "theoretical_image_size");
        put_null(w, "theoretical_vision_tokens");
    }
    free(sorted);
}

/* standard error of the mean; of 0/1 metrics Wilson's interval too; answers that a reader should know of */
static void put_accuracy_spread(vp_json_writer *w, vp_score_metric metric, const gathered *g) {
    tally t = g->t;
    double low = 0, high = 0;
    int known;
    t.is_binary = vp_score_metric_of(metric)->is_binary;
    known = tally_interval(&t, &low, &high);
    put_double(w, "accuracy_standard_error", tally_error(&t));
    put_interval(w, "accuracy_interval", known, low, high); /* 95 % */
    put_int(w, "num_unparsed", g->unparsed_count);
    put_int(w, "num_truncated", g->truncated_count);
    put_int(w, "num_empty", g->empty_count);
}

/* ---- a row */
static void put_run_marks(vp_json_writer *w, const measured *m, const gathered *g, int32_t file) {
    uint8_t *flags = zeroed((size_t)m->count, 1);
    double *sorted = resize(NULL, (size_t)m->count * 2, sizeof *sorted), low = 0, high = 0;
    vp_outliers o;
    vp_statistics s;
    int known, ran = m->count > 0 && !m->failed;
    for (int32_t i = 0; i < m->count; i++) sorted[m->count + i] = metric_of(&m->runs[i], METRIC_TOTAL);
    known = ran && vp_statistics_compute(sorted + m->count, (size_t)m->count, sorted, &s) == VP_OK;
    put_text(w, "stop", m->stop);
    put_int(w, "num_runs", ran ? m->count : 0);
    put_double(w, "T_total_p50", known ? s.p50 : (double)NAN);
    known = known && vp_statistics_percentile_interval(sorted, (size_t)m->count, 50, 0.95, &low, &high) == VP_OK;
    put_interval(w, "T_total_p50_interval", known, low, high);
    put_double(w, "tokens_per_s", ran ? m->runs[0].token_count / metric_mean(m->runs, m->count, METRIC_TOTAL) * 1e3 : (double)NAN);
    known = find_outliers(m, flags, &o);
    if (known) put_bool(w, "slow_first_run", o.slow_first);
    else put_null(w, "slow_first_run");
    vp_json_key(w, "run_flags"); /* of each run */
    vp_json_begin_object(w);
    for (int which = 0; which < 4; which++) {
        static const char *const keys[] = {"outlier", "throttled", "session", "telemetry"};
        vp_json_key(w, keys[which]);
        vp_json_begin_array(w);
        for (int32_t i = 0; ran && i < m->count; i++) {
            if (which == 0 && !known) vp_json_null(w);
            else if (which == 0) vp_json_bool(w, flags[i]);
            else if (which == 1) vp_json_bool(w, m->marks[i].is_throttled);
            else if (which == 2) vp_json_int(w, (int64_t)session_index(g, file, m->marks[i].session)); /* in session_list */
            else if (m->marks[i].telemetry) vp_json_raw(w, m->marks[i].telemetry, strlen(m->marks[i].telemetry));
            else vp_json_null(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
    put_int(w, "stamps", m->stamps);
    put_double(w, "T_total_bare", m->bare_ns > 0 ? (double)m->bare_ns / 1e6 : (double)NAN);
    put_double(w, "T_total_staged", m->staged_ns > 0 ? (double)m->staged_ns / 1e6 : (double)NAN);
    put_int(w, "num_retries", m->retries);
    free(flags);
    free(sorted);
}
static void put_row(vp_json_writer *w, const point *p, const measured *m, const gathered *g, int32_t file) {
    const vp_json *j = &m->sizes.json;
    vp_score_outcome o;
    scoring s;
    score_point(p, &s, &o);
    vp_json_begin_object(w);
    put_int(w, "sample_id", p->a->id);
    put_text(w, "status", p->reason ? "failed" : "ok");
    put_text(w, "reason", p->reason);
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        if (key) vp_json_key(w, key);
        if (key) json_node(w, j, i + 1);
        free(key);
    }
    put_point_tokens(w, p);
    put_point_answer(w, p, &o);
    vp_json_key(w, "metadata");
    vp_json_raw(w, p->a->record, strlen(p->a->record));
    put_point_times(w, p);
    put_run_marks(w, m, g, file);
    vp_json_end_object(w);
    scoring_free(&s);
}

/* ---- the head of a file */
static void put_date(vp_json_writer *w, const char *key, int64_t unix_s) {
    char text[40];
    time_t t = (time_t)unix_s;
    struct tm utc;
    put_text(w, key, unix_s && gmtime_r(&t, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) ? text : NULL);
}
static void put_sessions(vp_json_writer *w, book *b, const gathered *g) {
    put_date(w, "measured_from", g->first_s);
    put_date(w, "measured_to", g->last_s);
    put_int(w, "sessions", (int64_t)g->session_count);
    for (int all = 0; all < 2; all++) { /* the latest one, with its cold first request; all */
        size_t i = all || !g->session_count ? 0 : g->session_count - 1;
        vp_json_key(w, all ? "session_list" : "provenance");
        if (all) vp_json_begin_array(w);
        else if (!g->session_count) vp_json_null(w);
        for (; i < g->session_count; i++) {
            uint32_t node = g->sessions[i].at >= 0 && !book_line(b, g->sessions[i].file, g->sessions[i].at)
                          ? vp_json_get(&b->scratch.json, 0, "session") : VP_JSON_NONE;
            if (node_is(&b->scratch.json, node, VP_JSON_OBJECT)) json_node(w, &b->scratch.json, node); else vp_json_null(w);
        }
        if (all) vp_json_end_array(w);
    }
}
/* The tool's own cost: stamps times the cost of one, and pairs of runs without and with them in random order. */
static void put_tool_cost(vp_json_writer *w, book *b, const gathered *g) {
    const list *bare = &g->lists[LIST_BARE], *staged = &g->lists[LIST_STAGED];
    double *scratch = resize(NULL, bare->count, sizeof *scratch), stamp_ns = (double)NAN, stamps = list_mean(&g->lists[LIST_STAMPS]);
    vp_paired p;
    int paired = bare->count == staged->count && bare->count && vp_statistics_paired(bare->values, staged->values, bare->count, scratch, &p) == VP_OK;
    if (g->session_count && g->sessions[g->session_count - 1].at >= 0
        && !book_line(b, g->sessions[g->session_count - 1].file, g->sessions[g->session_count - 1].at))
        stamp_ns = node_number(&b->scratch.json, vp_json_get(&b->scratch.json, vp_json_get(&b->scratch.json, 0, "session"), "stamp_cost_ns"));
    vp_json_key(w, "tool_cost");
    vp_json_begin_object(w);
    put_double(w, "stamps_per_request", stamps);
    put_double(w, "stamp_cost_ns", stamp_ns);
    put_double(w, "stamps_share", stamps * stamp_ns / (list_mean(&g->lists[LIST_METRICS + METRIC_TOTAL]) * 1e6));
    put_int(w, "bare_pairs", paired ? (int64_t)p.count : 0);
    put_double(w, "bare_difference_ms", paired ? p.mean.value : (double)NAN); /* staged - bare */
    put_interval(w, "bare_difference_ms_interval", paired, p.mean.low, p.mean.high);
    put_double(w, "bare_difference_share", paired ? p.relative_mean.value : (double)NAN);
    put_interval(w, "bare_difference_share_interval", paired, p.relative_mean.low, p.relative_mean.high);
    put_double(w, "bare_difference_share_median", paired ? p.relative_median.value : (double)NAN);
    put_interval(w, "bare_difference_share_median_interval", paired, p.relative_median.low, p.relative_median.high);
    vp_json_end_object(w);
    free(scratch);
}
static void put_kernel_pass(vp_json_writer *w, book *b, const book_cell *c) {
    vp_json_key(w, "kernel_pass"); /* of shapes whose kernels were timed one by one; device less kernels is idle */
    vp_json_begin_array(w);
    for (size_t i = 0; i < b->shape_count; i++) {
        if (&b->cells[b->shapes[i].cell] != c || book_line(b, b->shapes[i].file, b->shapes[i].at)) continue;
        json_node(w, &b->scratch.json, vp_json_get(&b->scratch.json, 0, "kernels"));
    }
    vp_json_end_array(w);
}
static void put_run_counts(vp_json_writer *w, const gathered *g) {
    put_int(w, "num_runs", g->run_count);
    put_int(w, "num_outlier_runs", g->outlier_count);
    put_int(w, "num_throttled_runs", g->throttled_count);
    put_int(w, "num_retries", g->retry_count);
    vp_json_key(w, "stops"); /* what ended the runs of how many points */
    vp_json_begin_object(w);
    for (int i = 1; i <= VP_STOP_LAST_; i++) put_int(w, vp_stop_name(i), g->stops[i]);
    vp_json_end_object(w);
}
static void put_setting(vp_json_writer *w, const book *b, const book_cell *c) {
    const vp_tier *tier = c->tier ? vp_tier_find(c->tier) : NULL;
    put_text(w, "tier", c->tier);
    vp_json_key(w, "tier_range");
    if (tier) {
        vp_json_begin_object(w);
        put_int(w, "min_crops", tier->min_crops);
        put_int(w, "max_crops", tier->max_crops);
        vp_json_end_object(w);
    } else vp_json_null(w);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_int(w, "num_total_blocks", b->total_blocks);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
}
/* "plan", "status" and "num_failed" stand first: the next sweep reads only the head of the file to know it. */
static void put_result_head(vp_json_writer *w, book *b, const book_cell *c, const gathered *g, vp_score_metric metric) {
    const book_set *s = &b->sets[c->set];
    put_text(w, "schema", "vlmprof-sweep-2");
    put_text(w, "plan", b->plan);
    put_text(w, "status", g->missing_count ? "partial" : g->failed_count ? "complete with failures" : "complete");
    put_int(w, "num_failed", g->failed_count);
    put_int(w, "num_ok", g->ok_count);
    put_int(w, "num_missing", g->missing_count);
    put_int(w, "num_samples", s->sample_count);
    put_int(w, "num_runs_per_sample", b->run_count);
    put_text(w, "timing", b->timing);
    put_bool(w, "synthetic", b->synthetic);
    put_text(w, "model", b->model);
    put_text(w, "dataset_name", s->task);
    put_text(w, "data", s->path);
    put_text(w, "data_hash", s->hash);
    put_int(w, "max_new_tokens", s->new_tokens);
    put_setting(w, b, c);
    put_double(w, "accuracy", list_mean(&g->lists[LIST_ACCURACY]));
    put_double(w, "accuracy_std", list_std(&g->lists[LIST_ACCURACY]));
    put_text(w, "accuracy_metric", s->metric);
    put_int(w, "accuracy_count", (int64_t)g->lists[LIST_ACCURACY].count);
    put_text(w, "accuracy_reason", g->lists[LIST_ACCURACY].count ? NULL : "no record has answers to compare with");
    put_accuracy_spread(w, metric, g);
    put_vision(w, c, g);
    put_run_counts(w, g);
    put_sessions(w, b, g);
    put_tool_cost(w, b, g);
    put_kernel_pass(w, b, c);
    vp_json_key(w, "config");
    if (!book_line(b, c->head_file, c->head_at) && node_is(&b->scratch.json, vp_json_get(&b->scratch.json, 0, "options"), VP_JSON_OBJECT))
        json_node(w, &b->scratch.json, vp_json_get(&b->scratch.json, 0, "options"));
    else vp_json_null(w);
    put_aggregate(w, "aggregate_stats", g);
    put_aggregate(w, "latency_stats", g);
    put_distributions(w, g);
}

/* ---- a file */
typedef struct out_file { int fd, error; size_t used; char data[65536]; } out_file;
static void out_flush(out_file *f) {
    size_t done = 0;
    while (!f->error && done < f->used) {
        ssize_t n = write(f->fd, f->data + done, f->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) f->error = n ? errno : ENOSPC; else done += (size_t)n;
    }
    f->used = 0;
}
static vp_result out_sink(void *user, const char *p, size_t bytes) {
    out_file *f = (out_file *)user;
    while (bytes && !f->error) {
        size_t piece = bytes < sizeof f->data - f->used ? bytes : sizeof f->data - f->used;
        memcpy(f->data + f->used, p, piece);
        f->used += piece;
        p += piece;
        bytes -= piece;
        if (f->used == sizeof f->data) out_flush(f);
    }
    return f->error ? VP_ERR_WRITE : VP_OK;
}
void summaries_free(summaries *s) {
    for (size_t i = 0; i < s->count; i++) free(s->items[i].path);
    free(s->items);
}
static void summarize(summaries *all, char *path, const gathered *g) {
    summary *s;
    all->items = resize(all->items, all->count + 1, sizeof *all->items);
    s = &all->items[all->count++];
    s->path = path;
    s->ok = g->ok_count;
    s->failed = g->failed_count;
    s->missing = g->missing_count;
    s->accuracy = list_mean(&g->lists[LIST_ACCURACY]);
    s->accuracy_count = (int64_t)g->lists[LIST_ACCURACY].count;
    s->rate = list_p50(&g->lists[LIST_RATE]);
    s->closure = list_p50(&g->lists[LIST_METRICS + METRIC_CLOSURE]);
    for (int k = 0; k < METRIC_STAGE; k++) s->p50[k] = list_p50(&g->lists[LIST_METRICS + k]);
}

static int gather_cell(book *b, const book_cell *c, gathered *g, measured *m) {
    const book_set *s = &b->sets[c->set];
    int code;
    for (size_t i = 0; i < s->count; i++) {
        point p;
        if ((book_entry_state(s->entries[i], c) & 3) == POINT_OPEN || book_entry_state(s->entries[i], c) < 0) continue;
        if ((code = read_point(b, c, s->entries[i], m)) != 0) return code;
        p = point_of(b, c, m);
        gather_point(g, &p, m, s->entries[i]->file);
    }
    g->missing_count = s->sample_count - g->ok_count - g->failed_count;
    return 0;
}
static int put_result(vp_json_writer *w, book *b, const book_cell *c, const gathered *g, measured *m) {
    const book_set *s = &b->sets[c->set];
    text_buffer row = {NULL, 0, 0};
    vp_json_writer one; /* a row stands on one line */
    vp_score_metric metric = point_of(b, c, m).metric;
    int code = 0;
    vp_json_begin_object(w);
    put_result_head(w, b, c, g, metric);
    vp_json_key(w, "per_sample_results");
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->count && !code; i++) {
        point p;
        if ((book_entry_state(s->entries[i], c) & 3) == POINT_OPEN || book_entry_state(s->entries[i], c) < 0) continue;
        if ((code = read_point(b, c, s->entries[i], m)) != 0) break;
        p = point_of(b, c, m);
        row.bytes = 0;
        vp_json_writer_init_sink(&one, text_sink, &row, 0);
        put_row(&one, &p, m, g, s->entries[i]->file);
        if (vp_json_finish(&one) != VP_OK) w->result = one.result; else vp_json_raw(w, row.data, row.bytes);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
    free(row.data);
    return code;
}
/* One configuration -> FOLDER/NAME.json, by way of a temporary file. */
static int write_result(book *b, const book_cell *c, const char *folder, summaries *all) {
    char *temporary = join_path(folder, ".vlmprof-writing"), *path = join_path(folder, c->file_name);
    out_file *f = zeroed(1, sizeof *f);
    gathered *g = zeroed(1, sizeof *g);
    measured m;
    vp_json_writer w;
    int code;
    memset(&m, 0, sizeof m);
    code = gather_cell(b, c, g, &m);
    f->fd = code ? -1 : open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (!code && f->fd < 0) f->error = errno;
    if (f->fd >= 0) {
        vp_json_writer_init_sink(&w, out_sink, f, 1);
        code = put_result(&w, b, c, g, &m);
        if (!code && vp_json_finish(&w) != VP_OK && !f->error) code = complain(EXIT_WORK, "%s: %s", path, vp_result_text(w.result));
        out_sink(f, "\n", 1);
        out_flush(f);
        if (!f->error && fsync(f->fd)) f->error = errno;
        if (close(f->fd) && !f->error) f->error = errno;
    }
    if (!code && !f->error && rename(temporary, path)) f->error = errno;
    if (!code && !f->error) f->error = sync_folder(folder);
    if (f->error)
        code = complain(EXIT_OUTPUT, "%s cannot be written: %s; its points are in the journal: make room and run the same command again", path,
                        strerror(f->error));
    if (code) unlink(temporary);
    if (!code) {
        summarize(all, path, g);
        path = NULL;
    }
    measured_clear(&m);
    free(m.sizes.nodes);
    gathered_free(g);
    free(g);
    free(f);
    free(temporary);
    free(path);
    return code;
}

int result_check(const char *folder, const char *file_name, const char *fingerprint, char **status) {
    char head[512], wanted[48], *path = join_path(folder, file_name), *at;
    FILE *f = fopen(path, "rb");
    int code = 0;
    *status = NULL;
    if (f) {
        head[fread(head, 1, sizeof head - 1, f)] = 0;
        fclose(f);
        snprintf(wanted, sizeof wanted, "\"plan\": \"%s\"", fingerprint);
        if (!strstr(head, wanted) || (at = strstr(head, "\"status\": \"")) == NULL)
            code = complain(EXIT_USAGE, "%s is there already and belongs to another plan: use another --output_dir, or delete it", path);
        else *status = copy_text(at + 11, strcspn(at + 11, "\""));
    }
    free(path);
    return code;
}
int results_write(book *b, const char *folder, summaries *all) {
    char *status;
    int code = 0;
    for (int32_t i = 0; i < b->cell_count && !code; i++) {
        if (!b->cells[i].is_wanted) continue;
        if ((code = result_check(folder, b->cells[i].file_name, b->plan, &status)) == 0) code = write_result(b, &b->cells[i], folder, all);
        free(status);
    }
    return code;
}

/* ---- what is told at the end */
void summaries_print(const summaries *all) {
    int width = 20;
    for (size_t i = 0; i < all->count; i++) {
        const char *name = strrchr(all->items[i].path, '/');
        int bytes = (int)strlen(name ? name + 1 : all->items[i].path) - 5;
        if (bytes > width) width = bytes;
    }
    fprintf(stderr, "%-*s %9s %9s %9s %9s %9s %9s %9s %9s\n", width, "P50 over samples, ms", "vision", "prefill", "decode", "total", "TTFT", "TPOT",
            "tokens/s", "accuracy");
    for (size_t i = 0; i < all->count; i++) {
        static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TOTAL, METRIC_TTFT, METRIC_PER_TOKEN};
        const summary *s = &all->items[i];
        const char *name = strrchr(s->path, '/') ? strrchr(s->path, '/') + 1 : s->path;
        fprintf(stderr, "%-*.*s", width, (int)strlen(name) - 5, name);
        for (int k = 0; k < 6; k++) {
            if (isfinite(s->p50[columns[k]])) fprintf(stderr, " %9.3f", s->p50[columns[k]]); else fprintf(stderr, " %9s", "-");
        }
        if (isfinite(s->rate)) fprintf(stderr, " %9.2f", s->rate); else fprintf(stderr, " %9s", "-");
        if (isfinite(s->accuracy)) fprintf(stderr, " %9.4f\n", s->accuracy); else fprintf(stderr, " %9s\n", "-");
    }
}
void summaries_put(vp_json_writer *w, const summaries *all) {
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < all->count; i++) {
        const summary *s = &all->items[i];
        vp_json_begin_object(w);
        put_text(w, "file", s->path);
        put_int(w, "num_ok", s->ok);
        put_int(w, "num_failed", s->failed);
        put_int(w, "num_missing", s->missing);
        for (int k = 0; k < METRIC_STAGE; k++) {
            char key[64];
            snprintf(key, sizeof key, "%s_p50", METRIC_KEYS[k]);
            put_double(w, key, s->p50[k]);
        }
        put_double(w, "tokens_per_s_p50", s->rate);
        put_double(w, "accuracy", s->accuracy);
        put_int(w, "accuracy_count", s->accuracy_count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
