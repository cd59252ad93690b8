/* vlmprof_policy.c: implements what vlmprof_policy.h declares */
#include "vlmprof_policy.h"
#include "vlmprof_analysis.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VP_IMPL_NODES = 200000, VP_IMPL_RESAMPLE_NODES = 2000 }; /* limits of the search */

/* Stable merge sort of indices by key[index], ascending; NaN last. */
static int vp_impl_key_above(double left, double right) { return left > right || (left != left && right == right); }
static void vp_impl_order(const double *key, uint32_t *index, uint32_t *spare, size_t count) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            const size_t middle = start + width < count ? start + width : count;
            const size_t end = middle + width < count ? middle + width : count;
            size_t left = start, right = middle, at = start;
            while (left < middle && right < end)
                spare[at++] = vp_impl_key_above(key[index[left]], key[index[right]]) ? index[right++] : index[left++];
            while (left < middle) spare[at++] = index[left++];
            while (right < end) spare[at++] = index[right++];
        }
        memcpy(index, spare, count * sizeof *index);
    }
}

/* ---- the solver: a multiple-choice knapsack. Groups are rows of matrices [.., options]; the value -infinity is not an
 * option. The upper hull of a group is its lightest option, and steps to heavier ones, each with a lower rate (value per
 * weight) than the one before. */
typedef struct vp_impl_knapsack {
    size_t group_count, options;
    const uint32_t *rows; /* [groups] */
    const double *value, *weight;
    double capacity;
    /* scratch */
    double *rate, *step_value, *step_weight; /* [groups * options], as the next three */
    uint32_t *group, *option, *order, *spare;
    double *loss_sum, *weight_sum, *light, *heavy; /* [groups + 1] */
    uint32_t *first, *at;
    /* results */
    uint32_t *pick; /* [groups] */
    size_t step_count;
    double base_value, base_weight; /* of the lightest options */
    double total, bound;            /* bound: the total cannot be higher */
    double price; /* value per weight where the capacity ends; infinite: even the lightest options exceed it */
    int feasible;
    uint32_t mix[2]; /* of the first step that did not fit: before and after it */
    double mix_share;
} vp_impl_knapsack;

/* the option with the highest value - price * weight; of equals the lighter. Price infinity: the lightest option */
static uint32_t vp_impl_priced(const vp_impl_knapsack *k, size_t row, double price) {
    const double *value = k->value + row * k->options, *weight = k->weight + row * k->options;
    size_t best = k->options;
    for (size_t i = 0; i < k->options; i++) {
        if (!(value[i] > -HUGE_VAL)) continue;
        if (best == k->options) { best = i; continue; }
        if (price < HUGE_VAL) {
            const double more = value[i] - value[best] - price * (weight[i] - weight[best]);
            if (more > 0.0 || (!(more < 0.0) && weight[i] < weight[best])) best = i;
        } else if (weight[i] < weight[best] || (!(weight[i] > weight[best]) && value[i] > value[best])) {
            best = i;
        }
    }
    return (uint32_t)best;
}

static void vp_impl_hull(vp_impl_knapsack *k, size_t group) {
    const double *value = k->value + k->rows[group] * k->options, *weight = k->weight + k->rows[group] * k->options;
    size_t at = vp_impl_priced(k, k->rows[group], HUGE_VAL);
    double limit = HUGE_VAL;
    k->pick[group] = (uint32_t)at;
    for (;;) {
        size_t best = k->options;
        double most = 0.0;
        for (size_t i = 0; i < k->options; i++) {
            if (!(value[i] > value[at] && weight[i] > weight[at])) continue;
            const double rate = (value[i] - value[at]) / (weight[i] - weight[at]);
            if (rate > most || (best < k->options && !(rate < most) && weight[i] < weight[best])) {
                most = rate;
                best = i;
            }
        }
        if (best == k->options) return;
        if (most < limit) limit = most; /* rounding must not order a group's steps otherwise */
        k->rate[k->step_count] = -limit;
        k->step_value[k->step_count] = value[best] - value[at];
        k->step_weight[k->step_count] = weight[best] - weight[at];
        k->group[k->step_count] = (uint32_t)group;
        k->option[k->step_count] = (uint32_t)best;
        k->order[k->step_count] = (uint32_t)k->step_count;
        k->step_count++;
        at = best;
    }
}

/* Depth-first search. The loss of an option is what its value - price * weight lacks to the best of its group. A
 * solution's value is the bound minus all losses minus price * (capacity left), so only options that lose less than the
 * solution in hand can be part of a better one. */
static void vp_impl_branch(vp_impl_knapsack *k, int64_t node_limit) {
    const size_t groups = k->group_count;
    const double slight = 1e-13 * (1.0 + fabs(k->bound)); /* more than rounding */
    uint32_t *candidates = k->option; /* steps are no longer needed, except by number */
    double *loss = k->rate, *weight = k->step_value;
    double room = k->bound - k->total;
    size_t count = 0, depth = 0;
    int64_t nodes = 0;
    if (!(room > slight)) return;
    for (size_t g = 0; g < groups; g++) {
        const size_t row = k->rows[g] * k->options, best = row + vp_impl_priced(k, k->rows[g], k->price);
        k->first[g] = (uint32_t)count;
        for (size_t i = row; i < row + k->options; i++) {
            if (!(k->value[i] > -HUGE_VAL)) continue;
            const double lost = k->value[best] - k->value[i] - k->price * (k->weight[best] - k->weight[i]);
            if (!(lost < room)) continue;
            candidates[count] = (uint32_t)(i - row);
            loss[count] = lost > 0.0 ? lost : 0.0;
            weight[count++] = k->weight[i];
        }
    }
    k->first[groups] = (uint32_t)count;
    k->light[groups] = k->heavy[groups] = k->loss_sum[0] = k->weight_sum[0] = 0.0;
    for (size_t g = groups; g-- > 0;) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (size_t i = k->first[g]; i < k->first[g + 1]; i++) {
            if (weight[i] < least) least = weight[i];
            if (weight[i] > most) most = weight[i];
        }
        k->light[g] = k->light[g + 1] + least;
        k->heavy[g] = k->heavy[g + 1] + most;
    }
    k->at[0] = 0;
    for (;;) {
        if (k->at[depth] == k->first[depth + 1]) {
            if (depth == 0) break;
            depth--;
            continue;
        }
        if (++nodes > node_limit) return;
        const size_t i = k->at[depth]++;
        const double sum = k->weight_sum[depth] + weight[i], left = k->capacity - sum - k->heavy[depth + 1];
        const double lost = k->loss_sum[depth] + loss[i];
        if (sum + k->light[depth + 1] > k->capacity || !(lost + k->price * (left > 0.0 ? left : 0.0) < room - slight))
            continue;
        k->weight_sum[depth + 1] = sum;
        k->loss_sum[depth + 1] = lost;
        if (++depth < groups) {
            k->at[depth] = k->first[depth];
            continue;
        }
        room = lost + k->price * left;
        k->total = k->bound - room;
        for (size_t g = 0; g < groups; g++) k->pick[g] = candidates[k->at[g] - 1];
        depth--;
    }
    k->bound = k->total; /* proved: nothing is better */
}

/* The relaxation's solution: steps by rate while they fit; then lighter ones of other groups. */
static void vp_impl_solve(vp_impl_knapsack *k) {
    k->step_count = 0;
    k->base_value = k->base_weight = 0.0;
    for (size_t g = 0; g < k->group_count; g++) {
        vp_impl_hull(k, g);
        k->base_value += k->value[k->rows[g] * k->options + k->pick[g]];
        k->base_weight += k->weight[k->rows[g] * k->options + k->pick[g]];
    }
    vp_impl_order(k->rate, k->order, k->spare, k->step_count);
    k->total = k->bound = k->base_value;
    k->price = HUGE_VAL;
    k->mix[0] = k->mix[1] = k->group_count ? k->pick[0] : 0;
    k->mix_share = 0.0;
    k->feasible = k->base_weight <= k->capacity;
    if (!k->feasible) return;
    double used = k->base_weight;
    int full = 0;
    for (size_t g = 0; g < k->group_count; g++) k->at[g] = 0; /* 1: a step of the group did not fit */
    for (size_t i = 0; i < k->step_count; i++) {
        const uint32_t step = k->order[i], g = k->group[step];
        if (k->at[g]) continue;
        if (used + k->step_weight[step] <= k->capacity) {
            used += k->step_weight[step];
            k->total += k->step_value[step];
            k->pick[g] = k->option[step];
            continue;
        }
        k->at[g] = 1;
        if (full) continue;
        full = 1;
        k->mix_share = (k->capacity - used) / k->step_weight[step];
        k->bound = k->total + k->mix_share * k->step_value[step];
        k->price = -k->rate[step];
        k->mix[0] = k->pick[0];
        k->mix[1] = k->option[step];
    }
    if (full) return;
    k->price = 0.0;
    k->bound = k->total;
    if (k->group_count) k->mix[0] = k->mix[1] = k->pick[0];
}

/* ---- the work of a call: all arrays are in one block. X(array, elements), with n samples, c choices, m = n c, f fields,
 * k folds and `nodes` cells at most */
#define VP_IMPL_DOUBLES(X) \
    /* [n, c] accuracy, minus a trifle for each millisecond; weights with overhead and without */ \
    X(value, m) X(weight, m) X(fixed_weight, m) \
    X(trial, m) X(worth, m) /* [n, c] trial: value, -infinity where a choice failed */ \
    X(usual_ms, c) X(many, n) /* a choice's mean latency; how often a sample is in the resample */ \
    X(codes, f * n) X(cuts, f * VP_POLICY_BINS_LIMIT) \
    X(cell_value, nodes * c) X(cell_weight, nodes * c) \
    X(cell_many, nodes) X(cell_own, nodes) /* samples in the cell; those whose choice is made here */ \
    X(fold_value, (k + 2) * c) X(fold_weight, (k + 2) * c) X(fold_many, k + 2) /* then all, then training */ \
    X(mix_share, k + 1) X(keys, 2 * n) X(pairs, 2 * n) X(shuffled, n) \
    X(oracle_value, m) X(oracle_weight, m) /* its steps by rate */ \
    X(solver.rate, m) X(solver.step_value, m) X(solver.step_weight, m) X(solver.loss_sum, n + 1) \
    X(solver.weight_sum, n + 1) X(solver.light, n + 1) X(solver.heavy, n + 1)
#define VP_IMPL_WORDS(X) \
    X(fold, n) X(rows, n) X(cell_use, nodes) X(cell_choice, nodes) X(best, k + 1) X(mix, 2 * (k + 1)) \
    X(lookup, n) X(oracle, n) X(lightest, n) X(oracle_group, m) X(index, 2 * n) X(spare, 2 * n) \
    X(strata, m) X(begin, m) /* [c, n] samples by stratum; first place of each one's stratum */ \
    X(solver.group, m) X(solver.option, m) X(solver.order, m) X(solver.spare, m) X(solver.first, n + 1) \
    X(solver.at, n + 1) X(solver.pick, n)
typedef struct vp_impl_tree { /* cells, numbered by level, so that parents come first */
    size_t node_count;
    uint32_t *leaf;                         /* [n] the sample's last cell */
    uint32_t *member;                       /* [n] sorted, so that each cell is a range */
    uint32_t *parent, *level, *start, *end; /* [nodes] the range in `member` */
} vp_impl_tree;
typedef struct vp_impl_policy {
    const vp_policy_outcomes *outcomes;
    const vp_policy_field *fields;
    const vp_policy_options *options;
    const int32_t *const *given;
    size_t field_count, choices, samples, folds, step_count;
    double *value, *weight, *fixed_weight, *trial, *worth, *usual_ms, *many, *codes, *cuts, *cell_value, *cell_weight,
        *cell_many, *cell_own, *fold_value, *fold_weight, *fold_many, *mix_share, *keys, *pairs, *shuffled, *oracle_value,
        *oracle_weight;
    uint32_t *fold, *rows, *cell_use, *cell_choice, *best, *mix, *lookup, *oracle, *lightest, *oracle_group, *index,
        *spare, *strata, *begin;
    vp_impl_knapsack solver;
    vp_impl_tree trees[VP_POLICY_FOLDS_LIMIT + 1]; /* one for each fold's training samples, one for all samples */
    double tie;                                    /* the trifle: 1e-6 for all slowest choices together */
    int feasible[VP_POLICY_GIVEN];
    double gap[VP_POLICY_GIVEN];
} vp_impl_policy;

/* Adds an array to *bytes, and takes it unless the arena is empty. */
static void *vp_impl_take(vp_arena *arena, size_t *bytes, size_t count, size_t each) {
    vp_arena_need(bytes, count, each);
    return arena->base ? vp_arena_take(arena, count, each) : NULL;
}
static size_t vp_impl_layout(vp_impl_policy *work, vp_arena arena) {
    const size_t n = work->samples, c = work->choices, m = n * c, f = work->field_count, k = work->folds;
    const size_t nodes = vp_policy_cells_limit(n, f);
    size_t bytes = 0;
#define VP_IMPL_TAKE(array, count) work->array = (double *)vp_impl_take(&arena, &bytes, count, sizeof(double));
    VP_IMPL_DOUBLES(VP_IMPL_TAKE)
#undef VP_IMPL_TAKE
#define VP_IMPL_TAKE(array, count) work->array = (uint32_t *)vp_impl_take(&arena, &bytes, count, sizeof(uint32_t));
    VP_IMPL_WORDS(VP_IMPL_TAKE)
    for (size_t t = 0; t <= k; t++) {
        VP_IMPL_TAKE(trees[t].leaf, n) VP_IMPL_TAKE(trees[t].member, n) VP_IMPL_TAKE(trees[t].parent, nodes)
        VP_IMPL_TAKE(trees[t].level, nodes) VP_IMPL_TAKE(trees[t].start, nodes) VP_IMPL_TAKE(trees[t].end, nodes)
    }
#undef VP_IMPL_TAKE
    return bytes;
}

static int vp_impl_failed(const vp_impl_policy *work, size_t sample, size_t choice) {
    const double value = work->outcomes->accuracy[choice * work->samples + sample];
    return value != value;
}
static double vp_impl_accuracy(const vp_impl_policy *work, size_t sample, size_t choice) {
    return vp_impl_failed(work, sample, choice) ? 0.0 : work->outcomes->accuracy[choice * work->samples + sample];
}
static double vp_impl_latency(const vp_impl_policy *work, size_t sample, size_t choice) {
    return vp_impl_failed(work, sample, choice) ? work->usual_ms[choice]
                                                : work->outcomes->latency_ms[choice * work->samples + sample];
}
/* the total weight that `count` samples may have */
static double vp_impl_capacity(const vp_impl_policy *work, double count, double overhead_ms) {
    const double budget = work->options->budget_ms - overhead_ms;
    if (!(work->options->budget_ms < HUGE_VAL)) return HUGE_VAL;
    if (work->options->budget == VP_POLICY_MEAN) return budget * count + 1e-12 * fabs(budget * count); /* rounding */
    if (work->options->budget == VP_POLICY_EACH || !(count > 0.0)) return 0.0;
    return count - 1.0 - ceil(95.0 * (count - 1.0) / 100.0 - 1e-9);
}

/* ---- the table */
static int vp_impl_trains(const vp_impl_policy *work, size_t tree, size_t sample) {
    return work->folds == 1 || work->fold[sample] != tree;
}
/* Makes the tree of a fold from its training samples; cells with fewer than `least` of them are not made. */
static void vp_impl_grow(vp_impl_policy *work, size_t which, size_t least) {
    const size_t n = work->samples, bins = work->options->bins;
    vp_impl_tree *tree = &work->trees[which];
    for (size_t i = 0; i < n; i++) tree->member[i] = (uint32_t)i;
    for (size_t f = work->field_count; f-- > 0;) {
        const double *values = work->fields[f].values;
        double *codes = work->codes + f * n, *cuts = work->cuts + f * bins;
        size_t known = 0;
        for (size_t i = 0; i < n; i++)
            if (values[i] - values[i] == 0.0 && vp_impl_trains(work, which, i)) work->keys[known++] = values[i];
        vp_sort_double(work->keys, known);
        for (size_t b = 1; b < bins; b++)
            cuts[b - 1] = vp_statistics_percentile(work->keys, known, 100.0 * (double)b / (double)bins);
        for (size_t i = 0; i < n; i++) {
            codes[i] = values[i];
            if (!work->fields[f].is_number || values[i] != values[i]) continue;
            codes[i] = 0.0;
            for (size_t b = 1; b < bins; b++) codes[i] += cuts[b - 1] <= values[i];
        }
        vp_impl_order(codes, tree->member, work->spare, n);
    }
    tree->parent[0] = tree->level[0] = tree->start[0] = 0;
    tree->end[0] = (uint32_t)n;
    tree->node_count = 1;
    for (size_t node = 0; node < tree->node_count; node++) {
        const size_t level = tree->level[node];
        const double *codes = work->codes + level * n;
        for (size_t i = tree->start[node]; i < tree->end[node]; i++) tree->leaf[tree->member[i]] = (uint32_t)node;
        for (size_t i = tree->start[node], next; level < work->field_count && i < tree->end[node]; i = next) {
            size_t training = 0;
            for (next = i; next < tree->end[node]; next++) {
                if (vp_impl_key_above(codes[tree->member[next]], codes[tree->member[i]])) break;
                training += vp_impl_trains(work, which, tree->member[next]) != 0;
            }
            if (training < least) continue;
            tree->parent[tree->node_count] = (uint32_t)node;
            tree->level[tree->node_count] = (uint32_t)level + 1;
            tree->start[tree->node_count] = (uint32_t)i;
            tree->end[tree->node_count++] = (uint32_t)next;
        }
    }
}

static void vp_impl_add(double *sum, const double *row, size_t count, double times) {
    for (size_t i = 0; i < count; i++) sum[i] += times * row[i];
}
/* Fits the table of a fold (or of all samples) to its training samples, into cell_choice. */
static void vp_impl_fit_table(vp_impl_policy *work, size_t which, int64_t node_limit) {
    const size_t C = work->choices;
    const vp_impl_tree *tree = &work->trees[which];
    vp_impl_knapsack *k = &work->solver;
    double total = 0.0;
    memset(work->cell_value, 0, tree->node_count * C * sizeof(double));
    memset(work->cell_weight, 0, tree->node_count * C * sizeof(double));
    for (size_t node = 0; node < tree->node_count; node++) work->cell_many[node] = 0.0;
    for (size_t i = 0; i < work->samples; i++) {
        const size_t leaf = tree->leaf[i];
        if (!(work->many[i] > 0.0) || !vp_impl_trains(work, which, i)) continue;
        vp_impl_add(work->cell_value + leaf * C, work->value + i * C, C, work->many[i]);
        vp_impl_add(work->cell_weight + leaf * C, work->weight + i * C, C, work->many[i]);
        work->cell_many[leaf] += work->many[i];
        total += work->many[i];
    }
    memcpy(work->cell_own, work->cell_many, tree->node_count * sizeof(double));
    for (size_t node = tree->node_count; node-- > 1;) {
        const size_t parent = tree->parent[node];
        vp_impl_add(work->cell_value + parent * C, work->cell_value + node * C, C, 1.0);
        vp_impl_add(work->cell_weight + parent * C, work->cell_weight + node * C, C, 1.0);
        work->cell_many[parent] += work->cell_many[node];
    }
    for (size_t node = 0; node < tree->node_count; node++) {
        const int large = node == 0 || work->cell_many[node] >= (double)work->options->cell_least;
        work->cell_use[node] = large ? (uint32_t)node : work->cell_use[tree->parent[node]];
        if (large) continue;
        work->cell_own[work->cell_use[node]] += work->cell_own[node];
        work->cell_own[node] = 0.0;
    }
    k->group_count = 0;
    for (size_t node = 0; node < tree->node_count; node++) {
        const double share = work->cell_own[node] / work->cell_many[node];
        if (!(work->cell_own[node] > 0.0)) continue;
        k->rows = work->rows;
        work->rows[k->group_count++] = (uint32_t)node;
        for (size_t i = node * C; share < 1.0 && i < (node + 1) * C; i++) {
            work->cell_value[i] *= share;
            work->cell_weight[i] *= share;
        }
    }
    k->value = work->cell_value;
    k->weight = work->cell_weight;
    k->capacity = vp_impl_capacity(work, total, work->options->overhead_ms);
    vp_impl_solve(k);
    vp_impl_branch(k, node_limit);
    for (size_t g = 0; g < k->group_count; g++) work->cell_choice[work->rows[g]] = k->pick[g];
    for (size_t node = 0; node < tree->node_count; node++) {
        if (work->cell_use[node] != node) work->cell_choice[node] = work->cell_choice[work->cell_use[node]];
        else if (!(work->cell_own[node] > 0.0))
            work->cell_choice[node] = vp_impl_priced(k, node, k->capacity > 0.0 ? k->price : HUGE_VAL);
    }
}

/* The most accuracy per sample that the last solution may lack. */
static double vp_impl_gap(const vp_impl_policy *work, double samples) {
    const vp_impl_knapsack *k = &work->solver;
    double most = (k->bound - k->total) + 2e-6;
    return most > 4e-6 && samples > 0.0 ? most / samples : 0.0;
}

/* Fits static, mixture and table of the folds from..to - 1 to `many` of each sample; `folds` stands for all samples. */
static void vp_impl_fit(vp_impl_policy *work, size_t from, size_t to, int64_t node_limit) {
    const size_t C = work->choices, folds = work->folds, sum = folds * C, train = sum + C;
    vp_impl_knapsack *k = &work->solver;
    memset(work->fold_value, 0, (folds + 2) * C * sizeof(double));
    memset(work->fold_weight, 0, (folds + 2) * C * sizeof(double));
    memset(work->fold_many, 0, (folds + 2) * sizeof(double));
    for (size_t i = 0; i < work->samples; i++) {
        if (!(work->many[i] > 0.0)) continue;
        vp_impl_add(work->fold_value + work->fold[i] * C, work->value + i * C, C, work->many[i]);
        vp_impl_add(work->fold_weight + work->fold[i] * C, work->fixed_weight + i * C, C, work->many[i]);
        work->fold_many[work->fold[i]] += work->many[i];
    }
    for (size_t t = 0; t < folds; t++) {
        vp_impl_add(work->fold_value + sum, work->fold_value + t * C, C, 1.0);
        vp_impl_add(work->fold_weight + sum, work->fold_weight + t * C, C, 1.0);
        work->fold_many[folds] += work->fold_many[t];
    }
    for (size_t t = from; t < to; t++) {
        const int all = folds == 1 || t == folds;
        for (size_t i = 0; i < C; i++) {
            work->fold_value[train + i] = work->fold_value[sum + i] - (all ? 0.0 : work->fold_value[t * C + i]);
            work->fold_weight[train + i] = work->fold_weight[sum + i] - (all ? 0.0 : work->fold_weight[t * C + i]);
        }
        const double count = work->fold_many[folds] - (all ? 0.0 : work->fold_many[t]);
        k->group_count = 1;
        k->rows = work->rows;
        work->rows[0] = 0;
        k->value = work->fold_value + train;
        k->weight = work->fold_weight + train;
        k->capacity = vp_impl_capacity(work, count, 0.0);
        vp_impl_solve(k);
        memcpy(work->mix + 2 * t, k->mix, sizeof k->mix);
        work->mix_share[t] = k->mix_share;
        vp_impl_branch(k, node_limit);
        work->best[t] = k->pick[0];
        const double gap = vp_impl_gap(work, count);
        if (gap > work->gap[VP_POLICY_STATIC]) work->gap[VP_POLICY_STATIC] = gap;
        if (!k->feasible) work->feasible[VP_POLICY_STATIC] = work->feasible[VP_POLICY_MIXTURE] = 0;
        vp_impl_fit_table(work, t, node_limit);
        const double lack = vp_impl_gap(work, count);
        if (lack > work->gap[VP_POLICY_LOOKUP]) work->gap[VP_POLICY_LOOKUP] = lack;
        if (!k->feasible) work->feasible[VP_POLICY_LOOKUP] = 0;
        for (size_t i = 0; i < work->samples; i++)
            if (work->fold[i] == t || t == folds) work->lookup[i] = work->cell_choice[work->trees[t].leaf[i]];
    }
}

/* ---- luck and oracle */
static void vp_impl_solve_samples(vp_impl_policy *work, size_t count) { /* of work->rows, by `trial` */
    vp_impl_knapsack *k = &work->solver;
    k->group_count = count;
    k->rows = work->rows;
    k->value = work->trial;
    k->weight = work->weight;
    k->capacity = vp_impl_capacity(work, (double)count, work->options->overhead_ms);
    vp_impl_solve(k);
}

/* Sorts the samples of a choice into strata; returns how many measured it. Needs cell_use of the table of all samples. */
static size_t vp_impl_stratify(vp_impl_policy *work, size_t choice) {
    const size_t n = work->samples;
    const vp_impl_tree *tree = &work->trees[work->folds];
    uint32_t *strata = work->strata + choice * n, *begin = work->begin + choice * n;
    double *difficulty = work->keys, *cell = work->keys + n;
    size_t count = 0, bin = 0;
    for (size_t i = 0; i < n; i++) {
        cell[i] = (double)work->cell_use[tree->leaf[i]];
        if (vp_impl_failed(work, i, choice)) continue;
        strata[count++] = (uint32_t)i;
        const double others = work->pairs[2 * i + 1] - 1.0;
        difficulty[i] = others > 0.0 ? (work->pairs[2 * i] - vp_impl_accuracy(work, i, choice)) / others : 0.0;
        difficulty[i] = floor(difficulty[i] * 1e9 + 0.5); /* equal in spite of rounding */
    }
    vp_impl_order(difficulty, strata, work->spare, count);
    vp_impl_order(cell, strata, work->spare, count);
    for (size_t start = 0, end; start < count; start = end) {
        for (end = start; end < count && !(cell[strata[end]] > cell[strata[start]]);) end++;
        const size_t bins = (end - start) / 50 > 1 ? (end - start) / 50 : 1;
        bin = 0;
        begin[start] = (uint32_t)start;
        for (size_t i = start + 1; i < end; i++) {
            const size_t own = (i - start) * bins / (end - start);
            const int fresh = own > bin && difficulty[strata[i]] > difficulty[strata[i - 1]];
            if (fresh) bin = own;
            begin[i] = fresh ? (uint32_t)i : begin[i - 1];
        }
    }
    return count;
}

static double vp_impl_luck(vp_impl_policy *work, vp_random *random) {
    const size_t n = work->samples, C = work->choices, parts = work->folds > 1 ? work->folds : 2;
    double noisy = 0.0, known = 0.0, sum[VP_POLICY_FOLDS_LIMIT + 1], many[VP_POLICY_FOLDS_LIMIT + 1];
    for (size_t i = 0; i < n; i++) { /* sum and count of the sample's accuracies */
        work->pairs[2 * i] = work->pairs[2 * i + 1] = 0.0;
        for (size_t c = 0; c < C; c++) {
            work->pairs[2 * i] += vp_impl_accuracy(work, i, c);
            work->pairs[2 * i + 1] += !vp_impl_failed(work, i, c);
        }
    }
    for (size_t c = 0; c < C; c++) {
        const size_t count = vp_impl_stratify(work, c);
        for (size_t i = count; i < n; i++) work->begin[c * n + i] = (uint32_t)n; /* nothing */
    }
    for (size_t round = 0; round < work->options->shuffles; round++) {
        for (size_t i = 0; i < n; i++) work->rows[i] = (uint32_t)i;
        for (size_t c = 0; c < C; c++) {
            const uint32_t *strata = work->strata + c * n, *begin = work->begin + c * n;
            for (size_t i = 0; i < n && begin[i] < n; i++) {
                const size_t j = begin[i] + (size_t)vp_random_below(random, (uint64_t)(i - begin[i]));
                work->shuffled[i] = work->shuffled[j];
                work->shuffled[j] = vp_impl_accuracy(work, strata[i], c);
            }
            for (size_t i = 0; i < n && begin[i] < n; i++)
                work->trial[strata[i] * C + c] =
                    work->shuffled[i] - work->tie * vp_impl_latency(work, strata[i], c);
        }
        vp_impl_solve_samples(work, n);
        noisy += work->solver.total / (double)n / (double)work->options->shuffles;
    }
    memset(work->worth, 0, n * C * sizeof(double));
    for (size_t c = 0; c < C; c++) {
        const uint32_t *strata = work->strata + c * n, *begin = work->begin + c * n;
        for (size_t start = 0, end; start < n && begin[start] < n; start = end) {
            memset(sum, 0, sizeof sum);
            memset(many, 0, sizeof many);
            for (end = start; end < n && begin[end] == start; end++) {
                const size_t part = work->folds > 1 ? work->fold[strata[end]] : strata[end] % 2;
                sum[part] += vp_impl_accuracy(work, strata[end], c);
                many[part] += 1.0;
                sum[parts] += vp_impl_accuracy(work, strata[end], c);
                many[parts] += 1.0;
            }
            for (size_t i = start; i < end; i++) {
                const size_t at = strata[i] * C + c, part = work->folds > 1 ? work->fold[strata[i]] : strata[i] % 2;
                const double rest = many[parts] - many[part];
                work->trial[at] = (rest > 0.0 ? (sum[parts] - sum[part]) / rest : 0.0)
                                  - work->tie * vp_impl_latency(work, strata[i], c);
                work->worth[at] = sum[part] / many[part];
            }
        }
    }
    for (size_t part = 0; part < parts; part++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if ((work->folds > 1 ? work->fold[i] : i % 2) == part) work->rows[count++] = (uint32_t)i;
        vp_impl_solve_samples(work, count);
        for (size_t g = 0; g < count; g++)
            known += work->worth[work->rows[g] * C + work->solver.pick[g]] / (double)n;
    }
    return noisy - known;
}

static void vp_impl_find_oracle(vp_impl_policy *work) {
    const size_t n = work->samples, C = work->choices;
    vp_impl_knapsack *k = &work->solver;
    for (size_t i = 0; i < n; i++) {
        size_t open = 0;
        for (size_t c = 0; c < C; c++) open += !vp_impl_failed(work, i, c);
        for (size_t c = 0; c < C; c++)
            work->trial[i * C + c] = open && vp_impl_failed(work, i, c) ? -HUGE_VAL : work->value[i * C + c];
        work->rows[i] = (uint32_t)i;
    }
    vp_impl_solve_samples(work, n);
    for (size_t i = 0; i < k->step_count; i++) {
        work->oracle_value[i] = k->step_value[k->order[i]];
        work->oracle_weight[i] = k->step_weight[k->order[i]];
        work->oracle_group[i] = k->group[k->order[i]];
    }
    work->step_count = k->step_count;
    for (size_t i = 0; i < n; i++) work->lightest[i] = vp_impl_priced(k, i, HUGE_VAL);
    vp_impl_branch(k, VP_IMPL_NODES);
    memcpy(work->oracle, k->pick, n * sizeof *work->oracle);
    work->gap[VP_POLICY_ORACLE] = vp_impl_gap(work, (double)n);
    work->feasible[VP_POLICY_ORACLE] = k->feasible;
}

/* ---- judging */
/* the policy's choice; choice_count: none */
static size_t vp_impl_choice(const vp_impl_policy *work, size_t policy, size_t sample) {
    const size_t fold = work->fold[sample];
    switch (policy) {
    case VP_POLICY_STATIC: return work->best[fold];
    case VP_POLICY_MIXTURE: return work->mix[2 * fold];
    case VP_POLICY_LOOKUP: return work->lookup[sample];
    case VP_POLICY_ORACLE: return work->oracle[sample];
    default: break;
    }
    const int32_t choice = work->given[policy - VP_POLICY_GIVEN][sample];
    return choice < 0 || vp_impl_failed(work, sample, (size_t)choice) ? work->choices : (size_t)choice;
}

static void vp_impl_judge(vp_impl_policy *work, size_t policy, vp_policy_row *row) {
    const double overhead = policy >= VP_POLICY_LOOKUP ? work->options->overhead_ms : 0.0;
    double *latency = work->keys, *share = work->pairs, within = 0.0, fixed = 0.0, sum = 0.0;
    size_t count = 0;
    memset(row, 0, sizeof *row);
    for (size_t i = 0; i < work->samples; i++) {
        const size_t choice = vp_impl_choice(work, policy, i);
        const double second = policy == VP_POLICY_MIXTURE ? work->mix_share[work->fold[i]] : 0.0;
        row->missing += choice == work->choices;
        if (choice == work->choices) continue;
        row->samples++;
        fixed += vp_impl_accuracy(work, i, work->best[work->fold[i]]);
        for (int part = 0; part < 2; part++) {
            const size_t used = part ? work->mix[2 * work->fold[i] + 1] : choice;
            if (part && !(second > 0.0)) break;
            share[count] = part ? second : 1.0 - second;
            latency[count] = vp_impl_latency(work, i, used) + overhead;
            row->accuracy += share[count] * vp_impl_accuracy(work, i, used);
            row->mean_ms += share[count] * latency[count];
            within += latency[count] <= work->options->budget_ms ? share[count] : 0.0;
            work->index[count] = (uint32_t)count;
            count++;
        }
    }
    const double n = (double)row->samples;
    row->accuracy /= n;
    row->gain = row->accuracy - fixed / n;
    row->mean_ms /= n;
    row->share_within = within / n;
    vp_impl_order(latency, work->index, work->spare, count);
    row->p50_ms = row->p95_ms = (double)NAN;
    if (policy == VP_POLICY_MIXTURE) {
        for (size_t i = 0; i < count; i++) {
            const double before = sum;
            sum += share[work->index[i]];
            if (before < 0.5 * n - 1e-9 && sum >= 0.5 * n - 1e-9) row->p50_ms = latency[work->index[i]];
            if (before < 0.95 * n - 1e-9 && sum >= 0.95 * n - 1e-9) row->p95_ms = latency[work->index[i]];
        }
    } else {
        vp_sort_double(latency, count);
        row->p50_ms = vp_statistics_percentile(latency, count, 50.0);
        row->p95_ms = vp_statistics_percentile(latency, count, 95.0);
    }
    if (policy < VP_POLICY_GIVEN) {
        row->gap = work->gap[policy];
        row->feasible = work->feasible[policy];
    } else {
        const double used = work->options->budget == VP_POLICY_MEAN ? row->mean_ms * n : n - within;
        row->feasible = used <= vp_impl_capacity(work, n, 0.0);
    }
}

/* Accuracy and gain in the resample; the selection has been repeated. */
static void vp_impl_rejudge(const vp_impl_policy *work, size_t policy, double *accuracy, double *gain) {
    const size_t C = work->choices;
    double sum = 0.0, fixed = 0.0, count = 0.0;
    for (size_t i = 0; i < work->samples; i++) {
        const double *value = work->value + i * C;
        const size_t fold = work->fold[i], choice = vp_impl_choice(work, policy, i);
        if (!(work->many[i] > 0.0) || choice == C) continue;
        count += work->many[i];
        fixed += work->many[i] * value[work->best[fold]];
        sum += work->many[i] * value[policy == VP_POLICY_ORACLE ? work->lightest[i] : choice];
        if (policy == VP_POLICY_MIXTURE)
            sum += work->many[i] * work->mix_share[fold] * (value[work->mix[2 * fold + 1]] - value[choice]);
    }
    if (policy == VP_POLICY_ORACLE) {
        double left = vp_impl_capacity(work, count, work->options->overhead_ms);
        for (size_t i = 0; i < work->samples; i++)
            left -= work->many[i] > 0.0 ? work->many[i] * work->weight[i * C + work->lightest[i]] : 0.0;
        for (size_t i = 0; i < work->step_count && left >= 0.0; i++) {
            const double times = work->many[work->oracle_group[i]], need = times * work->oracle_weight[i];
            if (!(times > 0.0)) continue;
            sum += need > left ? left / work->oracle_weight[i] * work->oracle_value[i] : times * work->oracle_value[i];
            if (need > left) break;
            left -= need;
        }
    }
    *accuracy = sum / count;
    *gain = (sum - fixed) / count;
}

/* ---- the call */
VP_API vp_policy_options vp_policy_options_default(void) {
    const vp_policy_options options = {HUGE_VAL, VP_POLICY_MEAN, 0.0, 5, 3, 10, 400, 20, 0.95, 42};
    return options;
}
VP_API size_t vp_policy_cells_limit(size_t sample_count, size_t field_count) {
    size_t limit;
    return vp_size_multiply(sample_count, field_count, &limit) && vp_size_add(limit, 1, &limit) ? limit : SIZE_MAX;
}
static vp_result vp_impl_policy_check(const vp_policy_outcomes *outcomes, const vp_policy_field *fields,
                                      size_t field_count, const int32_t *const *given, size_t given_count,
                                      const vp_policy_options *options, vp_error *error) {
    size_t all, n = outcomes->sample_count;
    if (!n || !outcomes->choice_count || !vp_size_multiply(n, outcomes->choice_count, &all) || all > UINT32_MAX / 2
        || field_count > VP_POLICY_FIELDS_LIMIT || n > INT32_MAX / (VP_POLICY_FIELDS_LIMIT + 1))
        return vp_error_set(error, VP_ERR_RANGE, -1, "policy", "no samples, no choices, or too many of them or fields");
    if (!(options->budget_ms > 0.0) || !(options->overhead_ms >= 0.0 && options->overhead_ms < HUGE_VAL)
        || (unsigned)options->budget > VP_POLICY_P95 || !options->folds || options->folds > VP_POLICY_FOLDS_LIMIT
        || !options->bins || options->bins > VP_POLICY_BINS_LIMIT || !options->cell_least || options->resamples == 1
        || options->resamples > 1000000 || options->shuffles > 10000
        || !(options->confidence > 0.0 && options->confidence < 1.0))
        return vp_error_set(error, VP_ERR_RANGE, -1, "options", "an option is out of range");
    for (size_t c = 0; c < outcomes->choice_count; c++) {
        size_t measured = 0;
        for (size_t i = c * n; i < (c + 1) * n; i++) {
            const double accuracy = outcomes->accuracy[i], latency = outcomes->latency_ms[i];
            if (accuracy != accuracy && latency != latency) continue;
            measured++;
            if (!(accuracy >= 0.0 && accuracy <= 1.0 && latency > 0.0 && latency < HUGE_VAL))
                return vp_error_set(error, VP_ERR_RANGE, (int64_t)c, "outcomes",
                                    "accuracies are 0..1, latencies above 0; or both are NaN");
        }
        if (!measured) return vp_error_set(error, VP_ERR_RANGE, (int64_t)c, "outcomes", "a choice failed on all samples");
    }
    for (size_t f = 0; f < field_count; f++)
        for (size_t i = 0; i < n; i++)
            if (fabs(fields[f].values[i]) == HUGE_VAL)
                return vp_error_set(error, VP_ERR_RANGE, (int64_t)f, "fields", "a value is infinite");
    for (size_t g = 0; g < given_count; g++)
        for (size_t i = 0; i < n; i++)
            if (given[g][i] >= 0 && (size_t)given[g][i] >= outcomes->choice_count)
                return vp_error_set(error, VP_ERR_RANGE, (int64_t)g, "given", "a choice does not exist");
    return VP_OK;
}

/* Fills the matrices and assigns the folds. */
static void vp_impl_prepare(vp_impl_policy *work, vp_random *random, int64_t *permutation) {
    const size_t n = work->samples, C = work->choices;
    const vp_policy_options *options = work->options;
    double slowest = 0.0;
    for (size_t c = 0; c < C; c++) {
        double sum = 0.0, count = 0.0;
        for (size_t i = 0; i < n; i++) {
            if (vp_impl_failed(work, i, c)) continue;
            sum += work->outcomes->latency_ms[c * n + i];
            count += 1.0;
        }
        work->usual_ms[c] = sum / count;
    }
    for (size_t i = 0; i < n; i++) {
        double most = 0.0;
        for (size_t c = 0; c < C; c++) most = fmax(most, vp_impl_latency(work, i, c));
        slowest += most;
    }
    work->tie = 1e-6 / slowest;
    for (size_t i = 0; i < n; i++) {
        work->many[i] = 1.0;
        for (size_t c = 0; c < C; c++) {
            const double latency = vp_impl_latency(work, i, c);
            work->value[i * C + c] = vp_impl_accuracy(work, i, c) - work->tie * latency;
            work->fixed_weight[i * C + c] = work->weight[i * C + c] = latency;
            if (options->budget == VP_POLICY_MEAN) continue;
            work->fixed_weight[i * C + c] = latency > options->budget_ms;
            work->weight[i * C + c] = latency + options->overhead_ms > options->budget_ms;
        }
    }
    vp_random_permutation(random, permutation, n);
    for (size_t i = 0; i < n; i++) work->fold[permutation[i]] = (uint32_t)(i % work->folds);
}

static void vp_impl_fill_table(const vp_impl_policy *work, vp_policy_table *table) {
    const vp_impl_tree *tree = &work->trees[work->folds];
    const size_t n = work->samples, bins = work->options->bins;
    table->cell_count = tree->node_count;
    table->best = work->best[work->folds];
    memcpy(table->mix, work->mix + 2 * work->folds, sizeof table->mix);
    table->mix_share = work->mix_share[work->folds];
    if (table->lookup) memcpy(table->lookup, work->lookup, n * sizeof *table->lookup);
    if (table->oracle) memcpy(table->oracle, work->oracle, n * sizeof *table->oracle);
    for (size_t node = 0; node < tree->node_count; node++) {
        vp_policy_cell *cell = &table->cells[node];
        memset(cell, 0, sizeof *cell);
        cell->level = tree->level[node];
        cell->count = tree->end[node] - tree->start[node];
        cell->parent = tree->parent[node];
        cell->choice = work->cell_choice[node];
        cell->fell_back = work->cell_use[node] != node;
        for (size_t f = 0; f < cell->level; f++) {
            const double code = work->codes[f * n + tree->member[tree->start[node]]];
            const double *cuts = work->cuts + f * bins;
            cell->low[f] = cell->high[f] = code;
            if (!work->fields[f].is_number || code != code) continue;
            cell->low[f] = code > 0.0 ? cuts[(size_t)code - 1] : -HUGE_VAL;
            cell->high[f] = (size_t)code + 1 < bins ? cuts[(size_t)code] : HUGE_VAL;
        }
    }
}

static void vp_impl_intervals(vp_impl_policy *work, size_t row_count, vp_policy_row *rows, vp_random *random) {
    const size_t n = work->samples, resamples = work->options->resamples;
    const double z = vp_normal_quantile(0.5 + 0.5 * work->options->confidence);
    for (size_t r = 0; r < row_count; r++)
        rows[r].accuracy_low = rows[r].accuracy_high = rows[r].gain_low = rows[r].gain_high = 0.0;
    for (size_t round = 0; round < resamples; round++) {
        for (size_t i = 0; i < n; i++) work->many[i] = 0.0;
        for (size_t i = 0; i < n; i++) work->many[vp_random_below(random, (uint64_t)n - 1)] += 1.0;
        vp_impl_fit(work, 0, work->folds, VP_IMPL_RESAMPLE_NODES);
        for (size_t r = 0; r < row_count; r++) { /* sums and squares of the differences from the estimate */
            double accuracy, gain;
            if (r == VP_POLICY_LUCK) continue;
            vp_impl_rejudge(work, r, &accuracy, &gain);
            if (accuracy != accuracy) continue; /* a given policy has none of these samples */
            rows[r].accuracy_low += accuracy - rows[r].accuracy;
            rows[r].accuracy_high += (accuracy - rows[r].accuracy) * (accuracy - rows[r].accuracy);
            rows[r].gain_low += gain - rows[r].gain;
            rows[r].gain_high += (gain - rows[r].gain) * (gain - rows[r].gain);
        }
    }
    for (size_t r = 0; r < row_count; r++) {
        const double count = (double)resamples;
        double *ends[2][2] = {{&rows[r].accuracy_low, &rows[r].accuracy_high}, {&rows[r].gain_low, &rows[r].gain_high}};
        for (int of = 0; of < 2; of++) {
            const double estimate = of ? rows[r].gain : rows[r].accuracy, least = of ? -1.0 : 0.0;
            const double variance = (*ends[of][1] - *ends[of][0] * *ends[of][0] / count) / (count - 1.0);
            const double reach = r == VP_POLICY_LUCK ? (double)NAN : z * sqrt(variance > 0.0 ? variance : 0.0);
            *ends[of][0] = estimate - reach < least ? least : estimate - reach;
            *ends[of][1] = estimate + reach > 1.0 ? 1.0 : estimate + reach;
        }
    }
}

VP_API vp_result vp_policy_compute(const vp_policy_outcomes *outcomes, const vp_policy_field *fields,
                                   size_t field_count, const int32_t *const *given, size_t given_count,
                                   const vp_policy_options *options, vp_policy_row *rows, vp_policy_table *table,
                                   vp_error *error) {
    const vp_result checked =
        vp_impl_policy_check(outcomes, fields, field_count, given, given_count, options, error);
    const size_t n = outcomes->sample_count, row_count = VP_POLICY_GIVEN + given_count;
    vp_random random;
    if (checked != VP_OK) return checked;
    vp_impl_policy *work = (vp_impl_policy *)VP_CALLOC(1, sizeof *work);
    if (!work) return vp_error_set(error, VP_ERR_MEMORY, -1, "policy", "not enough memory");
    work->outcomes = outcomes;
    work->fields = fields;
    work->field_count = field_count;
    work->given = given;
    work->options = options;
    work->choices = work->solver.options = outcomes->choice_count;
    work->samples = n;
    work->folds = options->folds < n ? options->folds : n;
    const size_t bytes = vp_impl_layout(work, vp_arena_over(NULL, 0));
    void *memory = bytes < SIZE_MAX ? VP_MALLOC(bytes) : NULL;
    if (!memory) {
        VP_FREE(work);
        return vp_error_set(error, VP_ERR_MEMORY, -1, "policy", "not enough memory");
    }
    vp_impl_layout(work, vp_arena_over(memory, bytes));
    vp_random_seed(&random, options->seed);
    vp_impl_prepare(work, &random, (int64_t *)(void *)work->keys);
    vp_impl_find_oracle(work);
    for (size_t t = 0; t <= work->folds; t++) vp_impl_grow(work, t, t < work->folds ? options->cell_least : 0);
    vp_impl_fit(work, work->folds, work->folds + 1, VP_IMPL_NODES);
    if (table) vp_impl_fill_table(work, table);
    const double luck = options->shuffles ? vp_impl_luck(work, &random) : (double)NAN;
    for (size_t r = VP_POLICY_STATIC; r <= VP_POLICY_LOOKUP; r++) {
        work->feasible[r] = 1;
        work->gap[r] = 0.0;
    }
    vp_impl_fit(work, 0, work->folds, VP_IMPL_NODES);
    for (size_t r = 0; r < row_count; r++) vp_impl_judge(work, r == VP_POLICY_LUCK ? VP_POLICY_ORACLE : r, rows + r);
    vp_policy_row *row = rows + VP_POLICY_LUCK;
    row->mean_ms = row->p50_ms = row->p95_ms = row->share_within = (double)NAN;
    if (!(luck <= row->gain)) row->gain = luck != luck ? luck : row->gain > 0.0 ? row->gain : 0.0;
    else row->gain = luck > 0.0 ? luck : 0.0;
    row->accuracy = rows[VP_POLICY_STATIC].accuracy + row->gain;
    if (options->resamples) vp_impl_intervals(work, row_count, rows, &random);
    else
        for (size_t r = 0; r < row_count; r++)
            rows[r].accuracy_low = rows[r].accuracy_high = rows[r].gain_low = rows[r].gain_high = (double)NAN;
    VP_FREE(memory);
    VP_FREE(work);
    return VP_OK;
}
