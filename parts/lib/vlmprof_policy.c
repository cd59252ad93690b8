/* vlmprof_policy.c: implements what vlmprof_policy.h declares */
#include "vlmprof_policy.h"
#include "vlmprof_analysis.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* limits of the search; cross-fitting and strata of the luck; share of reselection's variance that is real */
enum { VP_IMPL_NODES = 1000000, VP_IMPL_RESAMPLE_NODES = 2000, VP_IMPL_PARTS = 5, VP_IMPL_STRATUM = 150 };
#define VP_IMPL_RESELECTED 0.45
#define VP_IMPL_ALIKE 0.7 /* correlation of two choices' accuracies from which their noise is taken as the same */

typedef struct vp_impl_key { double key; uint32_t place, index; } vp_impl_key;
/* a step along the upper hull of a group, from one option to a heavier and better one; by: -value per weight, group */
typedef struct vp_impl_step { vp_impl_key by; double value, weight; uint32_t option; } vp_impl_step;
typedef struct vp_impl_candidate { double loss, weight; uint32_t option; } vp_impl_candidate;
/* cells are numbered by level, so that parents come first; start, end: a range of `member` */
typedef struct vp_impl_cell { uint32_t parent, level, start, end; } vp_impl_cell;
/* All arrays of a call: n samples, c choices, m = n c, f fields, k folds, `nodes` cells, `rows` of the result. */
#define VP_IMPL_ARRAYS(X) \
    X(double, value, m)        /* [n, c] accuracy, minus a trifle for each millisecond */ \
    X(double, weight, m)       /* [n, c] with overhead */ \
    X(double, fixed_weight, m) /* [n, c] without */ \
    X(double, trial, m)        /* [n, c] value or what replaces it; -infinity where a choice failed */ \
    X(double, worth, m)        /* [n, c] of the luck: mean accuracy of the stratum in the sample's part */ \
    X(double, usual_ms, c)     /* mean latency */ \
    X(double, many, n)         /* how often a sample is in the resample */ \
    X(double, sum, n) X(double, measured, n) /* of a sample's accuracies, and how many there are */ \
    X(uint32_t, fold, n) X(uint32_t, part, n) \
    /* trees of the folds, and of all samples: [k + 1] times */ \
    X(vp_impl_cell, cells, (k + 1) * nodes) X(uint32_t, cell_count, k + 1) \
    X(uint32_t, leaf, (k + 1) * n)   /* the sample's last cell */ \
    X(uint32_t, member, (k + 1) * n) /* sorted, so that each cell is a range */ \
    X(double, codes, f * n) X(double, cuts, f * VP_POLICY_BINS_LIMIT) \
    X(double, cell_value, nodes * c) X(double, cell_weight, nodes * c) X(double, root_weight, c) \
    X(double, cell_many, nodes) X(double, cell_own, nodes) /* samples in it; those whose choice is made here */ \
    X(uint32_t, cell_use, nodes) X(uint32_t, cell_choice, nodes) \
    X(uint32_t, best, k + 1) X(uint32_t, mix, 2 * (k + 1)) X(double, mix_share, k + 1) \
    X(uint32_t, lookup, n) X(uint32_t, oracle, n) X(uint32_t, lightest, n) X(vp_impl_step, oracle_steps, m) \
    X(uint32_t, strata, m) X(uint32_t, begin, m) /* [c, n] samples by stratum; the stratum's first place */ \
    X(uint32_t, alike, c)                        /* the first choice that answers almost like this one */ \
    X(double, pairs, 4 * n) X(vp_impl_key, keys, 2 * n) X(uint32_t, index, 2 * n) X(double, moments, 9 * rows) \
    /* of the solver: [groups] */ \
    X(uint32_t, rows, n) X(uint32_t, pick, n) X(uint32_t, at, n + 1) X(uint32_t, first, n + 1) \
    X(double, loss_sum, n + 1) X(double, weight_sum, n + 1) X(double, light, n + 1) X(double, heavy, n + 1) \
    X(vp_impl_step, steps, m) X(vp_impl_candidate, candidates, m)
typedef struct vp_impl_work {
    const vp_policy_outcomes *outcomes;
    const vp_policy_field *fields;
    const vp_policy_options *options;
    const int32_t *const *given;
    size_t f, c, n, k, nodes, rows_count;
#define VP_IMPL_FIELD(type, name, count) type *name;
    VP_IMPL_ARRAYS(VP_IMPL_FIELD)
#undef VP_IMPL_FIELD
    double tie; /* the trifle: 1e-6 for all slowest choices together */
    size_t oracle_step_count;
    int feasible[VP_POLICY_GIVEN];
    double gap[VP_POLICY_GIVEN];
    /* the solver's problem and result */
    const double *from_value, *from_weight;
    size_t group_count, step_count;
    double capacity, total, bound; /* bound: the total cannot be higher */
    double price; /* value per weight where the capacity ends; infinite: even the lightest options exceed it */
    int fits;
    uint32_t mixed[2]; /* the first step that did not fit: before and after it */
    double mixed_share;
} vp_impl_work;

/* Adds up the bytes of the arrays, and takes them if there is memory. */
static size_t vp_impl_layout(vp_impl_work *work, void *memory, size_t capacity) {
    const size_t n = work->n, c = work->c, m = n * c, f = work->f, k = work->k, nodes = work->nodes;
    const size_t rows = work->rows_count;
    vp_arena arena = vp_arena_over(memory, capacity);
    size_t bytes = 0;
#define VP_IMPL_TAKE(type, name, count) \
    vp_arena_need(&bytes, count, sizeof(type)); \
    work->name = (type *)vp_arena_take(&arena, count, sizeof(type));
    VP_IMPL_ARRAYS(VP_IMPL_TAKE)
#undef VP_IMPL_TAKE
    return bytes;
}

static int vp_impl_key_order(const void *left, const void *right) { /* NaN last, equal keys by place */
    const vp_impl_key *l = (const vp_impl_key *)left, *r = (const vp_impl_key *)right;
    if (l->key < r->key || (l->key == l->key && r->key != r->key)) return -1;
    if (l->key > r->key || (l->key != l->key && r->key == r->key)) return 1;
    return l->place < r->place ? -1 : l->place > r->place;
}
static void vp_impl_sort(vp_impl_work *work, const double *key, uint32_t *index, size_t count) { /* stable */
    for (size_t i = 0; i < count; i++) {
        const vp_impl_key made = {key[index[i]], (uint32_t)i, index[i]};
        work->keys[i] = made;
    }
    qsort(work->keys, count, sizeof *work->keys, vp_impl_key_order);
    for (size_t i = 0; i < count; i++) index[i] = work->keys[i].index;
}

/* ---- outcomes */
static int vp_impl_failed(const vp_impl_work *work, size_t sample, size_t choice) {
    const double accuracy = work->outcomes->accuracy[choice * work->n + sample];
    return accuracy != accuracy;
}
static double vp_impl_accuracy(const vp_impl_work *work, size_t sample, size_t choice) {
    return vp_impl_failed(work, sample, choice) ? 0.0 : work->outcomes->accuracy[choice * work->n + sample];
}
static double vp_impl_latency(const vp_impl_work *work, size_t sample, size_t choice) {
    return vp_impl_failed(work, sample, choice) ? work->usual_ms[choice]
                                                : work->outcomes->latency_ms[choice * work->n + sample];
}
/* the total weight that `count` samples may have */
static double vp_impl_capacity(const vp_impl_work *work, double count, double overhead_ms) {
    const double total_ms = (work->options->budget_ms - overhead_ms) * count;
    if (!(work->options->budget_ms < HUGE_VAL)) return HUGE_VAL;
    if (work->options->budget == VP_POLICY_MEAN) return total_ms + 1e-12 * fabs(total_ms); /* rounding of sums */
    if (work->options->budget == VP_POLICY_EACH || !(count > 0.0)) return 0.0;
    return count - 1.0 - ceil(95.0 * (count - 1.0) / 100.0 - 1e-9);
}

/* ---- the solver: a multiple-choice knapsack. Groups are rows of matrices [.., c]; -infinity is not an option */
/* the option with the highest value - price * weight; of equals the lighter. Price infinity: the lightest option */
static uint32_t vp_impl_priced(const vp_impl_work *work, size_t row, double price) {
    const double *value = work->from_value + row * work->c, *weight = work->from_weight + row * work->c;
    size_t best = work->c;
    for (size_t i = 0; i < work->c; i++) {
        if (!(value[i] > -HUGE_VAL)) continue;
        const size_t than = best == work->c ? i : best;
        const double lighter = weight[than] - weight[i];
        const double more = price < HUGE_VAL ? value[i] - value[than] + price * lighter : lighter;
        if (best == work->c || more > 0.0
            || (!(more < 0.0) && (lighter > 0.0 || (!(lighter < 0.0) && value[i] > value[best]))))
            best = i;
    }
    return (uint32_t)best;
}
/* Picks the lightest option, and appends the steps of the hull: each has a lower rate than the one before. */
static void vp_impl_hull(vp_impl_work *work, size_t group) {
    const double *value = work->from_value + work->rows[group] * work->c;
    const double *weight = work->from_weight + work->rows[group] * work->c;
    size_t at = vp_impl_priced(work, work->rows[group], HUGE_VAL), best;
    work->pick[group] = (uint32_t)at;
    for (double limit = HUGE_VAL;; at = best) {
        double most = 0.0;
        best = work->c;
        for (size_t i = 0; i < work->c; i++) {
            if (!(value[i] > value[at] && weight[i] > weight[at])) continue;
            const double rate = (value[i] - value[at]) / (weight[i] - weight[at]);
            if (!(rate > most || (best < work->c && !(rate < most) && weight[i] < weight[best]))) continue;
            most = rate;
            best = i;
        }
        if (best == work->c) return;
        if (most < limit) limit = most; /* rounding must not change the order of a group's steps */
        const vp_impl_key by = {-limit, (uint32_t)work->step_count, (uint32_t)group};
        const vp_impl_step step = {by, value[best] - value[at], weight[best] - weight[at], (uint32_t)best};
        work->steps[work->step_count++] = step;
    }
}
/* Solves the relaxation over the first `groups` of work->rows: steps by rate while they fit. Then takes lighter steps
 * of other groups. */
static void vp_impl_solve(vp_impl_work *work, const double *value, const double *weight, size_t groups,
                          double capacity) {
    double used = 0.0;
    int full = 0;
    work->from_value = value;
    work->from_weight = weight;
    work->group_count = groups;
    work->capacity = capacity;
    work->step_count = 0;
    work->total = 0.0;
    for (size_t g = 0; g < groups; g++) {
        vp_impl_hull(work, g);
        work->total += value[work->rows[g] * work->c + work->pick[g]];
        used += weight[work->rows[g] * work->c + work->pick[g]];
        work->at[g] = 0; /* 1: a step of the group did not fit */
    }
    work->mixed[0] = work->mixed[1] = groups ? work->pick[0] : 0;
    work->mixed_share = 0.0;
    work->bound = work->total;
    work->price = HUGE_VAL;
    work->fits = used <= capacity;
    if (!work->fits) return;
    qsort(work->steps, work->step_count, sizeof *work->steps, vp_impl_key_order);
    work->price = 0.0;
    for (size_t i = 0; i < work->step_count; i++) {
        const vp_impl_step *step = &work->steps[i];
        if (work->at[step->by.index]) continue;
        if (used + step->weight <= capacity) {
            used += step->weight;
            work->total += step->value;
            work->pick[step->by.index] = step->option;
            if (!full) work->mixed[0] = work->mixed[1] = work->pick[0];
            continue;
        }
        work->at[step->by.index] = 1;
        if (full++) continue;
        work->mixed_share = (capacity - used) / step->weight;
        work->mixed[1] = step->option;
        work->bound = work->total + work->mixed_share * step->value;
        work->price = -step->by.key;
    }
    if (!full) work->bound = work->total;
}
/* Improves the solution by depth-first search. The loss of an option is what its value - price * weight lacks to the
 * best of its group. A solution's total is the bound minus its losses minus price * (capacity left), so only options
 * that lose less than the solution in hand can be part of a better one. */
static void vp_impl_branch(vp_impl_work *work, int64_t node_limit) {
    const size_t groups = work->group_count;
    const double slight = 1e-13 * (1.0 + fabs(work->bound)); /* more than rounding */
    double room = work->bound - work->total;
    size_t count = 0, depth = 0;
    if (!(room > slight)) return;
    for (size_t g = 0; g < groups; g++) {
        const double *value = work->from_value + work->rows[g] * work->c;
        const double *weight = work->from_weight + work->rows[g] * work->c;
        const size_t best = vp_impl_priced(work, work->rows[g], work->price);
        work->first[g] = (uint32_t)count;
        for (size_t i = 0; i < work->c; i++) {
            const double lost = value[best] - value[i] - work->price * (weight[best] - weight[i]);
            const vp_impl_candidate candidate = {lost > 0.0 ? lost : 0.0, weight[i], (uint32_t)i};
            if (value[i] > -HUGE_VAL && lost < room) work->candidates[count++] = candidate;
        }
    }
    work->first[groups] = (uint32_t)count;
    work->light[groups] = work->heavy[groups] = work->loss_sum[0] = work->weight_sum[0] = 0.0;
    for (size_t g = groups; g-- > 0;) { /* least and most weight from here on */
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (size_t i = work->first[g]; i < work->first[g + 1]; i++) {
            least = fmin(least, work->candidates[i].weight);
            most = fmax(most, work->candidates[i].weight);
        }
        work->light[g] = least + work->light[g + 1];
        work->heavy[g] = most + work->heavy[g + 1];
    }
    work->at[0] = 0;
    for (int64_t nodes = 0;;) {
        if (work->at[depth] == work->first[depth + 1]) {
            if (depth-- == 0) break;
            continue;
        }
        if (++nodes > node_limit) return;
        const vp_impl_candidate *next = &work->candidates[work->at[depth]++];
        const double used = work->weight_sum[depth] + next->weight;
        const double lost = work->loss_sum[depth] + next->loss;
        const double left = fmax(work->capacity - used - work->heavy[depth + 1], 0.0);
        if (used + work->light[depth + 1] > work->capacity || !(lost + work->price * left < room - slight)) continue;
        work->weight_sum[++depth] = used;
        work->loss_sum[depth] = lost;
        if (depth < groups) {
            work->at[depth] = work->first[depth];
            continue;
        }
        depth--;
        room = lost + work->price * left;
        work->total = work->bound - room;
        for (size_t g = 0; g < groups; g++) work->pick[g] = work->candidates[work->at[g] - 1].option;
    }
    work->bound = work->total; /* proved: nothing is better */
}
static void vp_impl_note(vp_impl_work *work, size_t policy, double samples) { /* the solution's quality */
    const double gap = work->bound - work->total > 2e-6 ? (work->bound - work->total) / samples : 0.0;
    if (gap > work->gap[policy]) work->gap[policy] = gap;
    if (!work->fits) work->feasible[policy] = 0;
}

/* ---- static, mixture and table */
static int vp_impl_trains(const vp_impl_work *work, size_t fold, size_t sample) {
    return work->k == 1 || work->fold[sample] != fold;
}
/* Makes the tree of a fold from its training samples; cells with fewer than `least` of them are not made. */
static void vp_impl_grow(vp_impl_work *work, size_t fold, size_t least) {
    const size_t n = work->n, bins = work->options->bins;
    vp_impl_cell *cells = work->cells + fold * work->nodes;
    uint32_t *member = work->member + fold * n, made = 1;
    for (size_t i = 0; i < n; i++) member[i] = (uint32_t)i;
    for (size_t f = work->f; f-- > 0;) {
        const double *values = work->fields[f].values;
        double *codes = work->codes + f * n, *cuts = work->cuts + f * VP_POLICY_BINS_LIMIT;
        size_t known = 0;
        for (size_t i = 0; i < n; i++)
            if (!(values[i] != values[i]) && vp_impl_trains(work, fold, i)) work->pairs[known++] = values[i];
        vp_sort_double(work->pairs, known);
        for (size_t b = 1; b < bins; b++)
            cuts[b - 1] = vp_statistics_percentile(work->pairs, known, 100.0 * (double)b / (double)bins);
        for (size_t i = 0; i < n; i++) {
            codes[i] = values[i];
            if (!work->fields[f].is_number || values[i] != values[i]) continue;
            codes[i] = 0.0;
            for (size_t b = 1; b < bins; b++) codes[i] += cuts[b - 1] <= values[i];
        }
        vp_impl_sort(work, codes, member, n);
    }
    memset(cells, 0, sizeof *cells);
    cells[0].end = (uint32_t)n;
    for (uint32_t node = 0; node < made; node++) {
        const double *codes = work->codes + cells[node].level * n;
        for (size_t i = cells[node].start; i < cells[node].end; i++) work->leaf[fold * n + member[i]] = node;
        for (uint32_t i = cells[node].start, end; cells[node].level < work->f && i < cells[node].end; i = end) {
            const double code = codes[member[i]];
            size_t training = 0;
            for (end = i; end < cells[node].end; end++) {
                const double other = codes[member[end]];
                if (!(other == code || (other != other && code != code))) break;
                training += vp_impl_trains(work, fold, member[end]) != 0;
            }
            const vp_impl_cell cell = {node, cells[node].level + 1, i, end};
            if (training >= least) cells[made++] = cell;
        }
    }
    work->cell_count[fold] = made;
}
static void vp_impl_add(double *sum, const double *row, size_t count, double times) {
    for (size_t i = 0; i < count; i++) sum[i] += times * row[i];
}
/* Fits static, mixture and table of a fold to its training samples; fold k: of all samples. */
static void vp_impl_fit(vp_impl_work *work, size_t fold, int64_t node_limit) {
    const size_t c = work->c, count = work->cell_count[fold];
    const vp_impl_cell *cells = work->cells + fold * work->nodes;
    const uint32_t *leaf = work->leaf + fold * work->n;
    size_t groups = 0;
    memset(work->cell_value, 0, count * c * sizeof(double));
    memset(work->cell_weight, 0, count * c * sizeof(double));
    memset(work->cell_many, 0, count * sizeof(double));
    memset(work->root_weight, 0, c * sizeof(double));
    for (size_t i = 0; i < work->n; i++) {
        const double many = work->many[i];
        if (!(many > 0.0) || !vp_impl_trains(work, fold, i)) continue;
        vp_impl_add(work->cell_value + leaf[i] * c, work->value + i * c, c, many);
        vp_impl_add(work->cell_weight + leaf[i] * c, work->weight + i * c, c, many);
        if (work->options->overhead_ms > 0.0) vp_impl_add(work->root_weight, work->fixed_weight + i * c, c, many);
        work->cell_many[leaf[i]] += many;
    }
    memcpy(work->cell_own, work->cell_many, count * sizeof(double));
    for (size_t node = count; node-- > 1;) {
        const size_t parent = cells[node].parent;
        vp_impl_add(work->cell_value + parent * c, work->cell_value + node * c, c, 1.0);
        vp_impl_add(work->cell_weight + parent * c, work->cell_weight + node * c, c, 1.0);
        work->cell_many[parent] += work->cell_many[node];
    }
    const double total = work->cell_many[0];
    work->rows[0] = 0;
    vp_impl_solve(work, work->cell_value, work->options->overhead_ms > 0.0 ? work->root_weight : work->cell_weight, 1,
                  vp_impl_capacity(work, total, 0.0));
    memcpy(work->mix + 2 * fold, work->mixed, sizeof work->mixed);
    work->mix_share[fold] = work->mixed_share;
    vp_impl_branch(work, node_limit);
    vp_impl_note(work, VP_POLICY_STATIC, total);
    work->best[fold] = work->options->compared ? (uint32_t)work->options->compared - 1 : work->pick[0];
    for (uint32_t node = 0; node < count; node++) { /* samples of small cells go to the cell that chooses for them */
        const int small = node > 0 && work->cell_many[node] < (double)work->options->cell_least;
        work->cell_use[node] = small ? work->cell_use[cells[node].parent] : node;
        if (!small) continue;
        work->cell_own[work->cell_use[node]] += work->cell_own[node];
        work->cell_own[node] = 0.0;
    }
    for (uint32_t node = 0; node < count; node++) {
        const double share = work->cell_own[node] / work->cell_many[node];
        if (!(work->cell_own[node] > 0.0)) continue;
        work->rows[groups++] = node;
        for (size_t i = node * c; share < 1.0 && i < (node + 1) * c; i++) {
            work->cell_value[i] *= share;
            work->cell_weight[i] *= share;
        }
    }
    vp_impl_solve(work, work->cell_value, work->cell_weight, groups,
                  vp_impl_capacity(work, total, work->options->overhead_ms));
    vp_impl_branch(work, node_limit);
    vp_impl_note(work, VP_POLICY_LOOKUP, total);
    for (uint32_t node = 0; node < count; node++) /* cells without training samples keep this */
        work->cell_choice[node] = vp_impl_priced(work, node, work->capacity > 0.0 ? work->price : HUGE_VAL);
    for (size_t g = 0; g < groups; g++) work->cell_choice[work->rows[g]] = work->pick[g];
    for (size_t i = 0; i < work->n; i++)
        if (fold == work->k || work->fold[i] == fold) work->lookup[i] = work->cell_choice[work->cell_use[leaf[i]]];
}

/* ---- oracle and luck */
static void vp_impl_find_oracle(vp_impl_work *work) {
    const size_t n = work->n, c = work->c;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < c; j++)
            work->trial[i * c + j] =
                work->measured[i] > 0.0 && vp_impl_failed(work, i, j) ? -HUGE_VAL : work->value[i * c + j];
        work->rows[i] = (uint32_t)i;
    }
    vp_impl_solve(work, work->trial, work->weight, n, vp_impl_capacity(work, (double)n, work->options->overhead_ms));
    for (size_t i = 0; i < n; i++) work->lightest[i] = vp_impl_priced(work, i, HUGE_VAL);
    memcpy(work->oracle_steps, work->steps, work->step_count * sizeof *work->steps);
    work->oracle_step_count = work->fits ? work->step_count : 0;
    vp_impl_branch(work, VP_IMPL_NODES);
    vp_impl_note(work, VP_POLICY_ORACLE, (double)n);
    memcpy(work->oracle, work->pick, n * sizeof *work->oracle);
}
/* Sets `alike`, for the luck. Precisions, or numbers of experts, change few answers: their noise is not independent. */
static void vp_impl_find_alike(vp_impl_work *work) {
    for (size_t j = 0; j < work->c; j++) {
        work->alike[j] = (uint32_t)j;
        for (size_t k = 0; k < j && work->alike[j] == j; k++) {
            double n = 0.0, x = 0.0, y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
            for (size_t i = 0; i < work->n; i++, n++) {
                const double one = vp_impl_accuracy(work, i, j), other = vp_impl_accuracy(work, i, k);
                x += one, y += other, xx += one * one, yy += other * other, xy += one * other;
            }
            if (work->alike[k] == k && n * xy - x * y >= VP_IMPL_ALIKE * sqrt((n * xx - x * x) * (n * yy - y * y)))
                work->alike[j] = (uint32_t)k;
        }
    }
}
/* Sorts the samples that measured a choice into strata; the places after them begin at n. */
static void vp_impl_stratify(vp_impl_work *work, size_t choice) {
    const size_t n = work->n;
    uint32_t *strata = work->strata + choice * n, *begin = work->begin + choice * n;
    double *difficulty = work->pairs, *cell = work->pairs + n;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        double rest = work->sum[i], others = work->measured[i];
        for (size_t k = 0; k < work->c; k++) {
            if (work->alike[k] != work->alike[choice]) continue;
            rest -= vp_impl_accuracy(work, i, k);
            others -= !vp_impl_failed(work, i, k);
        }
        begin[i] = (uint32_t)n;
        if (vp_impl_failed(work, i, choice)) continue;
        strata[count++] = (uint32_t)i;
        difficulty[i] = floor(1e9 * rest / fmax(others, 1.0) + 0.5); /* equal in spite of rounding */
        cell[i] = (double)work->cell_use[work->leaf[work->k * n + i]];
    }
    vp_impl_sort(work, difficulty, strata, count);
    vp_impl_sort(work, cell, strata, count);
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start; end < count && !(cell[strata[end]] > cell[strata[start]]);) end++;
        const size_t bins = (end - start + VP_IMPL_STRATUM - 1) / VP_IMPL_STRATUM;
        begin[start] = (uint32_t)start;
        for (size_t i = start + 1, bin = 0; i < end; i++) {
            const size_t own = (i - start) * bins / (end - start);
            const int fresh = own > bin && difficulty[strata[i]] > difficulty[strata[i - 1]];
            if (fresh) bin = own;
            begin[i] = fresh ? (uint32_t)i : begin[i - 1];
        }
    }
}
/* Sets `trial` and `worth` of the samples of a part: by the strata's means in the parts first..last after it, and in
 * itself. Part VP_IMPL_PARTS: of all samples, by all. */
static void vp_impl_predict(vp_impl_work *work, size_t choice, size_t part, size_t first, size_t last) {
    const size_t n = work->n, all = part == VP_IMPL_PARTS;
    const uint32_t *strata = work->strata + choice * n, *begin = work->begin + choice * n;
    for (size_t start = 0, end; start < n && begin[start] < n; start = end) {
        double sum = 0.0, many = 0.0, own = 0.0, own_many = 0.0;
        for (end = start; end < n && begin[end] == start; end++) {
            const size_t after = (work->part[strata[end]] + VP_IMPL_PARTS - part) % VP_IMPL_PARTS;
            const double accuracy = vp_impl_accuracy(work, strata[end], choice);
            const int trains = all || (after >= first && after <= last), judges = all || after == 0;
            sum += trains ? accuracy : 0.0;
            many += trains;
            own += judges ? accuracy : 0.0;
            own_many += judges;
        }
        for (size_t i = start; i < end; i++) {
            const size_t at = strata[i] * work->c + choice;
            if (!all && work->part[strata[i]] != part) continue;
            work->trial[at] = sum / fmax(many, 1.0) - work->tie * vp_impl_latency(work, strata[i], choice);
            work->worth[at] = own / own_many;
        }
    }
}
/* Sets the `trial` of a choice to its accuracies, shuffled within its strata. */
static void vp_impl_shuffle(vp_impl_work *work, size_t choice, vp_random *random) {
    const size_t n = work->n;
    const uint32_t *strata = work->strata + choice * n, *begin = work->begin + choice * n;
    for (size_t i = 0; i < n && begin[i] < n; i++) {
        const size_t other = begin[i] + (size_t)vp_random_below(random, (uint64_t)(i - begin[i]));
        work->pairs[i] = work->pairs[other];
        work->pairs[other] = vp_impl_accuracy(work, strata[i], choice);
    }
    for (size_t i = 0; i < n && begin[i] < n; i++)
        work->trial[strata[i] * work->c + choice] =
            work->pairs[i] - work->tie * vp_impl_latency(work, strata[i], choice);
}
static double vp_impl_luck(vp_impl_work *work, vp_random *random) {
    const size_t n = work->n, c = work->c, rounds = work->options->shuffles;
    const size_t parts = VP_IMPL_PARTS;
    double luck = 0.0, used = 0.0, capacity[VP_IMPL_PARTS] = {0};
    vp_impl_find_alike(work);
    for (size_t j = 0; j < c; j++) vp_impl_stratify(work, j);
    memset(work->worth, 0, n * c * sizeof(double));
    const double whole = vp_impl_capacity(work, (double)n, work->options->overhead_ms);
    for (size_t i = 0; i < n; i++) work->rows[i] = (uint32_t)i;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t leader = 0; leader < c; leader++) {
            const vp_random start = *random; /* choices that are alike are shuffled in the same way */
            for (size_t j = leader; j < c && work->alike[leader] == leader; j++) {
                if (work->alike[j] != leader) continue;
                *random = start;
                vp_impl_shuffle(work, j, random);
            }
        }
        vp_impl_solve(work, work->trial, work->weight, n, whole);
        luck += work->total / (double)n / (double)rounds;
    }
    for (size_t j = 0; j < c; j++) vp_impl_predict(work, j, VP_IMPL_PARTS, 1, 4);
    vp_impl_solve(work, work->trial, work->weight, n, whole);
    for (size_t i = 0; i < n; i++) { /* a part may use as much of the capacity as in the solution for all */
        capacity[work->part[i]] += work->weight[i * c + work->pick[i]];
        used += work->weight[i * c + work->pick[i]];
    }
    for (size_t part = 0; part < parts; part++) {
        for (int set = 0; set < 3; set++) { /* the four other parts, and both halves of them */
            size_t count = 0;
            for (size_t i = 0; i < n; i++) if (work->part[i] == part) work->rows[count++] = (uint32_t)i;
            for (size_t j = 0; j < c; j++) vp_impl_predict(work, j, part, set == 2 ? 3 : 1, set == 1 ? 2 : 4);
            vp_impl_solve(work, work->trial, work->weight, count, capacity[part] + (whole - used) / (double)parts);
            for (size_t g = 0; g < count; g++)
                luck += (set ? 0.5 : -2.0) * work->worth[work->rows[g] * c + work->pick[g]] / (double)n;
        }
    }
    return luck;
}

/* ---- judging */
static size_t vp_impl_choice(const vp_impl_work *work, size_t policy, size_t sample) { /* c: none */
    if (policy == VP_POLICY_STATIC) return work->best[work->fold[sample]];
    if (policy == VP_POLICY_MIXTURE) return work->mix[2 * work->fold[sample]];
    if (policy == VP_POLICY_LOOKUP) return work->lookup[sample];
    if (policy < VP_POLICY_GIVEN) return work->oracle[sample];
    const int32_t choice = work->given[policy - VP_POLICY_GIVEN][sample];
    return choice < 0 || vp_impl_failed(work, sample, (size_t)choice) ? work->c : (size_t)choice;
}
static double vp_impl_expected(const vp_impl_work *work, size_t policy, size_t sample) { /* the accuracy; NaN: none */
    const size_t choice = vp_impl_choice(work, policy, sample), fold = work->fold[sample];
    if (choice == work->c) return (double)NAN;
    const double accuracy = vp_impl_accuracy(work, sample, choice);
    if (policy != VP_POLICY_MIXTURE) return accuracy;
    return accuracy + work->mix_share[fold] * (vp_impl_accuracy(work, sample, work->mix[2 * fold + 1]) - accuracy);
}
static double vp_impl_variance(double sum, double squares, double count) {
    const double variance = (squares - sum * sum / count) / (count - 1.0);
    return variance > 0.0 ? variance : 0.0;
}
/* The latency at a rank from 0, interpolated: each takes as many ranks as its share. */
static double vp_impl_percentile(const vp_impl_work *work, const double *share, size_t count, double rank) {
    size_t i = 0;
    for (; i + 1 < count && rank >= share[work->index[i]] - 1e-9; i++) rank -= share[work->index[i]];
    const double here = count ? work->pairs[work->index[i]] : (double)NAN;
    if (i + 1 >= count || !(rank > 0.0)) return here;
    return here + rank / share[work->index[i]] * (work->pairs[work->index[i + 1]] - here);
}
static void vp_impl_judge(vp_impl_work *work, size_t policy, vp_policy_row *row, double *moments) {
    const double overhead = policy >= VP_POLICY_LOOKUP ? work->options->overhead_ms : 0.0;
    double *latency = work->pairs, *share = work->pairs + 2 * work->n, within = 0.0, squares[4] = {0};
    size_t count = 0;
    memset(row, 0, sizeof *row);
    for (size_t i = 0; i < work->n; i++) {
        const double accuracy = vp_impl_expected(work, policy, i);
        const double gain = accuracy - vp_impl_expected(work, VP_POLICY_STATIC, i);
        const double mix_gain = accuracy - vp_impl_expected(work, VP_POLICY_MIXTURE, i);
        const double second = policy == VP_POLICY_MIXTURE ? work->mix_share[work->fold[i]] : 0.0;
        row->missing += accuracy != accuracy;
        if (accuracy != accuracy) continue;
        row->samples++;
        row->accuracy += accuracy;
        row->gain += gain;
        squares[0] += accuracy * accuracy;
        squares[1] += gain * gain;
        row->mix_gain += mix_gain;
        squares[2] += mix_gain * mix_gain;
        for (int part = 0; part <= (second > 0.0); part++) {
            const size_t choice = part ? work->mix[2 * work->fold[i] + 1] : vp_impl_choice(work, policy, i);
            share[count] = part ? second : 1.0 - second;
            latency[count] = vp_impl_latency(work, i, choice) + overhead;
            row->mean_ms += share[count] * latency[count];
            squares[3] += share[count] * latency[count] * latency[count];
            within += latency[count] <= work->options->budget_ms ? share[count] : 0.0;
            work->index[count] = (uint32_t)count;
            count++;
        }
    }
    const double n = (double)row->samples;
    moments[6] = vp_impl_variance(row->accuracy, squares[0], n) / n;
    moments[7] = vp_impl_variance(row->gain, squares[1], n) / n;
    moments[8] = vp_impl_variance(row->mix_gain, squares[2], n) / n;
    row->accuracy /= n;
    row->gain /= n;
    row->mix_gain /= n;
    const double half_ms = vp_normal_quantile(0.5 + 0.5 * work->options->confidence)
                           * sqrt(vp_impl_variance(row->mean_ms, squares[3], n) / n);
    row->mean_ms /= n;
    row->mean_low_ms = row->mean_ms - half_ms;
    row->mean_high_ms = row->mean_ms + half_ms;
    row->share_within = within / n;
    if (policy < VP_POLICY_GIVEN) {
        row->gap = work->gap[policy];
        row->feasible = work->feasible[policy];
    } else {
        row->feasible = (work->options->budget == VP_POLICY_MEAN ? row->mean_ms * n : n - within)
                        <= vp_impl_capacity(work, n, 0.0);
    }
    vp_impl_sort(work, latency, work->index, count);
    row->p50_ms = vp_impl_percentile(work, share, count, 0.50 * (n - 1.0));
    row->p95_ms = vp_impl_percentile(work, share, count, 0.95 * (n - 1.0));
}
/* Accuracy and gain in a resample whose selections were made. The oracle's are those of the relaxation. */
static void vp_impl_rejudge(const vp_impl_work *work, size_t policy, double *result) {
    double sum = 0.0, fixed = 0.0, mixed = 0.0, count = 0.0, used = 0.0;
    for (size_t i = 0; i < work->n; i++) {
        const double many = work->many[i], own = vp_impl_expected(work, policy, i);
        if (!(many > 0.0) || own != own) continue;
        count += many;
        fixed += many * vp_impl_expected(work, VP_POLICY_STATIC, i);
        mixed += many * vp_impl_expected(work, VP_POLICY_MIXTURE, i);
        sum += many * (policy == VP_POLICY_ORACLE ? work->value[i * work->c + work->lightest[i]] : own);
        used += many * work->weight[i * work->c + work->lightest[i]];
    }
    double left = vp_impl_capacity(work, count, work->options->overhead_ms) - used;
    for (size_t i = 0; i < work->oracle_step_count && policy == VP_POLICY_ORACLE && left > 0.0; i++) {
        const vp_impl_step *step = &work->oracle_steps[i];
        const double need = work->many[step->by.index] * step->weight;
        sum += work->many[step->by.index] * step->value * (need > left ? left / need : 1.0);
        left -= need;
    }
    result[0] = sum / count;
    result[1] = (sum - fixed) / count;
    result[2] = (sum - mixed) / count;
}
static void vp_impl_intervals(vp_impl_work *work, vp_policy_row *rows, vp_random *random) {
    const double z = vp_normal_quantile(0.5 + 0.5 * work->options->confidence);
    const size_t resamples = work->options->resamples;
    for (size_t round = 0; round < resamples; round++) {
        memset(work->many, 0, work->n * sizeof(double));
        for (size_t i = 0; i < work->n; i++) work->many[vp_random_below(random, (uint64_t)work->n - 1)] += 1.0;
        for (size_t fold = 0; fold < work->k; fold++) vp_impl_fit(work, fold, VP_IMPL_RESAMPLE_NODES);
        for (size_t r = 0; r < work->rows_count; r++) { /* sums and squares of the differences from the estimate */
            const double estimate[3] = {rows[r].accuracy, rows[r].gain, rows[r].mix_gain};
            double result[3];
            vp_impl_rejudge(work, r, result);
            for (int i = 0; i < 3 && !(result[0] != result[0]); i++) { /* NaN: none of a given policy's samples */
                const double more = result[i] - estimate[i];
                work->moments[9 * r + (size_t)(2 * i)] += more;
                work->moments[9 * r + (size_t)(2 * i + 1)] += more * more;
            }
        }
    }
    for (size_t r = 0; r < work->rows_count; r++) {
        const double *moments = work->moments + 9 * r, count = (double)resamples;
        double reach[3];
        for (int i = 0; i < 3; i++) {
            const double again = vp_impl_variance(moments[2 * i], moments[2 * i + 1], count), fixed = moments[6 + i];
            reach[i] = z * sqrt(fixed + VP_IMPL_RESELECTED * (again > fixed ? again - fixed : 0.0));
            if (!resamples || r == VP_POLICY_LUCK) reach[i] = (double)NAN;
        }
        rows[r].accuracy_low = reach[0] > rows[r].accuracy ? 0.0 : rows[r].accuracy - reach[0];
        rows[r].accuracy_high = reach[0] > 1.0 - rows[r].accuracy ? 1.0 : rows[r].accuracy + reach[0];
        rows[r].gain_low = reach[1] > 1.0 + rows[r].gain ? -1.0 : rows[r].gain - reach[1];
        rows[r].gain_high = reach[1] > 1.0 - rows[r].gain ? 1.0 : rows[r].gain + reach[1];
        rows[r].mix_gain_low = reach[2] > 1.0 + rows[r].mix_gain ? -1.0 : rows[r].mix_gain - reach[2];
        rows[r].mix_gain_high = reach[2] > 1.0 - rows[r].mix_gain ? 1.0 : rows[r].mix_gain + reach[2];
    }
}

/* ---- the call */
VP_API vp_policy_options vp_policy_options_default(void) {
    const vp_policy_options options = {HUGE_VAL, VP_POLICY_MEAN, 0.0, 5, 3, 10, 400, 20, 0.95, 42, 0};
    return options;
}
VP_API size_t vp_policy_cells_limit(size_t sample_count, size_t field_count) {
    size_t limit;
    return vp_size_multiply(sample_count, field_count, &limit) && vp_size_add(limit, 1, &limit) ? limit : SIZE_MAX;
}
static vp_result vp_impl_policy_check(const vp_impl_work *work, size_t given_count, vp_error *error) {
    const vp_policy_options *o = work->options;
    const size_t n = work->n, c = work->c;
    if (!n || !c || work->f > VP_POLICY_FIELDS_LIMIT || n > INT32_MAX / c / (work->f + 1))
        return vp_error_set(error, VP_ERR_RANGE, -1, "policy", "count of samples, choices or fields is out of range");
    if (!(o->budget_ms > 0.0 && o->overhead_ms >= 0.0 && o->overhead_ms < HUGE_VAL)
        || (unsigned)o->budget > VP_POLICY_P95 || o->folds - 1 >= VP_POLICY_FOLDS_LIMIT
        || o->bins - 1 >= VP_POLICY_BINS_LIMIT || !o->cell_least || o->resamples == 1 || o->resamples > 1000000
        || o->compared > c || o->shuffles > 10000 || !(o->confidence > 0.0 && o->confidence < 1.0))
        return vp_error_set(error, VP_ERR_RANGE, -1, "options", "an option is out of range");
    for (size_t j = 0; j < c; j++) {
        size_t measured = 0;
        for (size_t i = j * n; i < (j + 1) * n; i++) {
            const double accuracy = work->outcomes->accuracy[i], latency = work->outcomes->latency_ms[i];
            const int good = accuracy >= 0.0 && accuracy <= 1.0 && latency > 0.0 && latency < HUGE_VAL;
            measured += good ? 1 : accuracy != accuracy && latency != latency ? 0 : n + 1;
        }
        if (!measured || measured > n)
            return vp_error_set(error, VP_ERR_RANGE, (int64_t)j, "outcomes",
                                measured ? "accuracies must be 0..1 and latencies above 0, or both NaN"
                                         : "a choice failed on all samples");
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t f = 0; f < work->f; f++)
            if (fabs(work->fields[f].values[i]) == HUGE_VAL)
                return vp_error_set(error, VP_ERR_RANGE, (int64_t)f, "fields", "a value is infinite");
        for (size_t g = 0; g < given_count; g++)
            if (work->given[g][i] >= 0 && (size_t)work->given[g][i] >= c)
                return vp_error_set(error, VP_ERR_RANGE, (int64_t)g, "given", "a choice does not exist");
    }
    return VP_OK;
}
/* Fills the matrices, and assigns folds and parts. */
static void vp_impl_prepare(vp_impl_work *work, vp_random *random) {
    const size_t n = work->n, c = work->c;
    const vp_policy_options *o = work->options;
    int64_t *permutation = (int64_t *)(void *)work->pairs;
    double slowest = 0.0;
    for (size_t j = 0; j < c; j++) {
        double sum = 0.0, count = 0.0;
        for (size_t i = 0; i < n; i++) {
            sum += vp_impl_failed(work, i, j) ? 0.0 : work->outcomes->latency_ms[j * n + i];
            count += !vp_impl_failed(work, i, j);
        }
        work->usual_ms[j] = sum / count;
    }
    for (size_t i = 0; i < n; i++) {
        double most = 0.0;
        work->sum[i] = work->measured[i] = 0.0;
        for (size_t j = 0; j < c; j++) {
            most = fmax(most, vp_impl_latency(work, i, j));
            work->sum[i] += vp_impl_accuracy(work, i, j);
            work->measured[i] += !vp_impl_failed(work, i, j);
        }
        slowest += most;
        work->many[i] = 1.0;
    }
    work->tie = 1e-6 / slowest;
    for (size_t at = 0; at < n * c; at++) {
        const double latency = vp_impl_latency(work, at / c, at % c);
        work->value[at] = vp_impl_accuracy(work, at / c, at % c) - work->tie * latency;
        work->weight[at] = o->budget == VP_POLICY_MEAN ? latency : latency + o->overhead_ms > o->budget_ms;
        work->fixed_weight[at] = o->budget == VP_POLICY_MEAN ? latency : latency > o->budget_ms;
    }
    vp_random_permutation(random, permutation, n);
    for (size_t i = 0; i < n; i++) {
        work->fold[permutation[i]] = (uint32_t)(i % work->k);
        work->part[permutation[i]] = (uint32_t)(i % VP_IMPL_PARTS);
    }
    for (int r = 0; r < VP_POLICY_GIVEN; r++) work->feasible[r] = 1;
}
static void vp_impl_fill_table(const vp_impl_work *work, vp_policy_table *table) {
    const size_t n = work->n, k = work->k;
    table->cell_count = work->cell_count[k];
    table->best = work->best[k];
    memcpy(table->mix, work->mix + 2 * k, sizeof table->mix);
    table->mix_share = work->mix_share[k];
    if (table->lookup) memcpy(table->lookup, work->lookup, n * sizeof *table->lookup);
    if (table->oracle) memcpy(table->oracle, work->oracle, n * sizeof *table->oracle);
    for (size_t node = 0; node < table->cell_count; node++) {
        const vp_impl_cell *from = work->cells + k * work->nodes + node;
        vp_policy_cell *cell = &table->cells[node];
        memset(cell, 0, sizeof *cell);
        cell->level = from->level;
        cell->count = from->end - from->start;
        cell->parent = from->parent;
        cell->choice = work->cell_choice[work->cell_use[node]];
        cell->fell_back = work->cell_use[node] != node;
        for (size_t f = 0; f < cell->level; f++) {
            const double code = work->codes[f * n + work->member[k * n + from->start]];
            const double *cuts = work->cuts + f * VP_POLICY_BINS_LIMIT;
            cell->low[f] = cell->high[f] = code;
            if (!work->fields[f].is_number || code != code) continue;
            cell->low[f] = code > 0.0 ? cuts[(size_t)code - 1] : -HUGE_VAL;
            cell->high[f] = (size_t)code + 1 < work->options->bins ? cuts[(size_t)code] : HUGE_VAL;
        }
    }
}

VP_API vp_result vp_policy_compute(const vp_policy_outcomes *outcomes, const vp_policy_field *fields,
                                   size_t field_count, const int32_t *const *given, size_t given_count,
                                   const vp_policy_options *options, vp_policy_row *rows, vp_policy_table *table,
                                   vp_error *error) {
    vp_impl_work work;
    vp_random random;
    memset(&work, 0, sizeof work);
    work.outcomes = outcomes;
    work.fields = fields;
    work.options = options;
    work.given = given;
    work.f = field_count;
    work.c = outcomes->choice_count;
    work.n = outcomes->sample_count;
    if (vp_impl_policy_check(&work, given_count, error) != VP_OK) return VP_ERR_RANGE;
    work.k = options->folds < work.n ? options->folds : work.n;
    work.nodes = vp_policy_cells_limit(work.n, work.f);
    work.rows_count = VP_POLICY_GIVEN + given_count;
    const size_t bytes = vp_impl_layout(&work, NULL, 0);
    void *memory = bytes < SIZE_MAX ? VP_MALLOC(bytes) : NULL;
    if (!memory) return vp_error_set(error, VP_ERR_MEMORY, -1, "policy", "not enough memory");
    vp_impl_layout(&work, memory, bytes);
    vp_random_seed(&random, options->seed);
    vp_impl_prepare(&work, &random);
    vp_impl_find_oracle(&work);
    for (size_t fold = 0; fold <= work.k; fold++) vp_impl_grow(&work, fold, fold < work.k ? options->cell_least : 0);
    vp_impl_fit(&work, work.k, VP_IMPL_NODES);
    if (table) vp_impl_fill_table(&work, table);
    const double luck = options->shuffles ? vp_impl_luck(&work, &random) : (double)NAN;
    for (int r = VP_POLICY_STATIC; r <= VP_POLICY_LOOKUP; r++) {
        work.feasible[r] = 1;
        work.gap[r] = 0.0;
    }
    for (size_t fold = 0; fold < work.k; fold++) vp_impl_fit(&work, fold, VP_IMPL_NODES);
    if (table && table->held_out) memcpy(table->held_out, work.lookup, work.n * sizeof *work.lookup);
    work.feasible[VP_POLICY_MIXTURE] = work.feasible[VP_POLICY_STATIC];
    memset(work.moments, 0, 9 * work.rows_count * sizeof(double));
    for (size_t r = 0; r < work.rows_count; r++) vp_impl_judge(&work, r, rows + r, work.moments + 9 * r);
    vp_policy_row *row = rows + VP_POLICY_LUCK;
    row->mean_ms = row->mean_low_ms = row->mean_high_ms = row->p50_ms = row->p95_ms = row->share_within = (double)NAN;
    row->gain = luck;
    row->accuracy = rows[VP_POLICY_STATIC].accuracy + luck;
    row->feasible = work.feasible[VP_POLICY_ORACLE];
    vp_impl_intervals(&work, rows, &random);
    VP_FREE(memory);
    return VP_OK;
}
