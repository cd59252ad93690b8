/* choice.c: which samples and which points of a grid a sweep visits, and the share of one of its processes. */
#include "data/choice.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right) {
    const int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
    return (one > other) - (one < other);
}
/* The sorted choice from members grouped by stratum. group [strata]: member count of each stratum, marked if it gets
 * one more record; end [strata]: end index of each stratum. */
static const int64_t one_more = (int64_t)1 << 62;
static void draw_strata(uint32_t seed, size_t population, uint32_t strata, size_t count, const int64_t *group,
                        const int64_t *end, int64_t *members) {
    vp_random random;
    size_t kept = 0, i;
    vp_random_seed(&random, seed);
    for (uint32_t s = 0; s < strata; s++) {
        const size_t size = (size_t)(group[s] & ~one_more), first = (size_t)end[s] - size;
        const size_t quota = (size_t)((uint64_t)count * size / population) + (group[s] >= one_more);
        for (i = size; i > 1; i--) {
            const size_t other = first + (size_t)vp_random_below(&random, i - 1);
            const int64_t held = members[first + i - 1];
            members[first + i - 1] = members[other];
            members[other] = held;
        }
        /* no quota exceeds its group, so kept never exceeds first */
        for (i = 0; i < quota; i++) members[kept++] = members[first + i];
    }
    qsort(members, count, sizeof *members, by_value);
}

vp_result choose_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata, size_t count,
                            int64_t *scratch, size_t *kept) {
    int64_t *group = scratch + population, *end = group + strata, begin = 0;
    size_t missing = count, i;
    if (population > INT32_MAX) return VP_ERR_RANGE; /* the keys below pack a remainder and a stratum */
    for (i = 0; i < population; i++)
        if (stratum[i] >= strata) return VP_ERR_RANGE;
    if (count >= population) return vp_sampler_dataset(seed, population, count, scratch, kept);
    for (uint32_t s = 0; s < strata; s++) group[s] = 0;
    for (i = 0; i < population; i++) group[stratum[i]]++;
    for (uint32_t s = 0; s < strata; s++) { /* ascending keys: largest remainder first, then the lower stratum */
        const uint64_t share = (uint64_t)count * (uint64_t)group[s];
        missing -= (size_t)(share / population);
        end[s] = (int64_t)(((uint64_t)population - share % population) << 32 | s);
    }
    qsort(end, strata, sizeof *end, by_value);
    for (i = 0; i < missing; i++) group[end[i] & (int64_t)UINT32_MAX] |= one_more;
    for (uint32_t s = 0; s < strata; s++) {
        end[s] = begin;
        begin += group[s] & ~one_more;
    }
    for (i = 0; i < population; i++) scratch[end[stratum[i]]++] = (int64_t)i;
    draw_strata(seed, population, strata, count, group, end, scratch);
    *kept = count;
    return VP_OK;
}

const char *strategy_name(int32_t strategy) {
    switch (strategy) {
#define GRID_NAME(name, value, text, meaning) \
    case value: return text;
        GRID_STRATEGIES(GRID_NAME)
#undef GRID_NAME
    default: return NULL;
    }
}

vp_result find_strategy(const char *name, enum grid_strategy *strategy) {
    for (int32_t i = 0; strategy_name(i); i++) {
        if (!name || strcmp(strategy_name(i), name) != 0) continue;
        *strategy = (enum grid_strategy)i;
        return VP_OK;
    }
    return VP_ERR_NOT_FOUND;
}

/* the product of the first numbers; UINT64_MAX if it overflows */
static uint64_t grid_product(const uint64_t *counts, int32_t knobs) {
    uint64_t product = 1;
    for (int32_t knob = 0; knob < knobs; knob++) {
        if (counts[knob] > UINT64_MAX / product) return UINT64_MAX;
        product *= counts[knob];
    }
    return product;
}

static uint64_t grid_draws(uint64_t combinations) { return combinations / 4 < 50 ? combinations / 4 : 50; }

size_t default_lhs_points(const int32_t *counts, int32_t knobs) {
    uint64_t sizes[GRID_KNOBS_MAX], points;
    if (knobs < 1 || knobs > GRID_KNOBS_MAX) return 0;
    for (int32_t knob = 0; knob < knobs; knob++) {
        if (counts[knob] < 1) return 0;
        sizes[knob] = (uint64_t)counts[knob];
    }
    points = grid_draws(grid_product(sizes, knobs));
    for (int32_t knob = 0; knob < knobs; knob++) points = sizes[knob] > points ? sizes[knob] : points;
    return points < GRID_LHS_POINTS_MAX ? (size_t)points : GRID_LHS_POINTS_MAX;
}

/* the number of entries that a strategy visits in a list, if fixed; otherwise 0 */
static uint64_t grid_looks(enum grid_strategy strategy, int32_t knob) {
    if (strategy == GRID_BOUNDARY && knob == 1) return 5;
    return strategy == GRID_BALANCED || strategy == GRID_STRATIFIED || strategy == GRID_BOUNDARY ? 3 : 0;
}

/* The j-th distinct entry that is visited in a list of n. The entries j*n/(looks-1), the last one n-1, are the whole
 * list if n <= looks. */
static uint64_t grid_place(enum grid_strategy strategy, int32_t knob, uint64_t n, uint64_t j) {
    const uint64_t looks = grid_looks(strategy, knob);
    if (strategy == GRID_CUSTOM_SPARSE) return 2 * j;
    if (looks == 0 || n <= looks) return j;
    return j == looks - 1 ? n - 1 : j * n / (looks - 1);
}

static void grid_regular(enum grid_strategy strategy, const uint64_t *sizes, const uint64_t *places, int32_t knobs,
                         size_t total, int32_t *index) {
    for (size_t row = 0; row < total; row++, index += knobs) {
        uint64_t rest = row;
        for (int32_t knob = knobs; knob-- > 0; rest /= places[knob])
            index[knob] = (int32_t)grid_place(strategy, knob, sizes[knob], rest % places[knob]);
    }
}

/* writes the reference's draws into index [draws, knobs], without repeats; returns their number */
static size_t grid_drawn(const uint64_t *sizes, int32_t knobs, uint32_t seed, size_t draws, int32_t *index) {
    const size_t width = (size_t)knobs;
    vp_random random;
    size_t kept = 0, draw, row;
    vp_random_seed(&random, seed);
    for (draw = 0; draw < draws; draw++) {
        int32_t *next = index + width * kept;
        for (int32_t knob = 0; knob < knobs; knob++) next[knob] = (int32_t)vp_random_below(&random, sizes[knob] - 1);
        for (row = 0; row < kept && memcmp(index + width * row, next, width * sizeof *index) != 0; row++) {}
        kept += row == kept;
    }
    return kept;
}

/* floor(t / least common multiple of a and b); the multiple itself may exceed 64 bits */
static uint64_t grid_laps(uint64_t t, uint64_t a, uint64_t b) {
    uint64_t divisor = a, remainder = b;
    while (remainder != 0) {
        const uint64_t rest = divisor % remainder;
        divisor = remainder;
        remainder = rest;
    }
    return t / (a / divisor) / b;
}

static void grid_swap(int32_t *left, int32_t *right) {
    const int32_t held = *left;
    *left = *right;
    *right = held;
}

/* Returns 1 if the row at `mine` equals another row; the row at `skip` is ignored. */
static int grid_repeats(const int32_t *index, int32_t knobs, size_t points, size_t mine, size_t skip) {
    const size_t width = (size_t)knobs;
    const int32_t *own = index + width * mine;
    for (size_t row = 0; row < points; row++) {
        const int32_t *other = index + width * row;
        if (other[0] == own[0] && row != mine && row != skip && memcmp(other, own, width * sizeof *own) == 0) return 1;
    }
    return 0;
}

/* One column of the starting design. Row t contains the value t mod n, plus one for each lap through all combinations
 * that the earlier columns can form with this one. So the first rows, however many, are balanced in every knob, and
 * every combination occurs once before any repeats. In the first n rows the value is t itself; they store the permuted
 * values, and later rows copy them. */
static void grid_column(vp_random *random, const uint64_t *sizes, int32_t knobs, int32_t knob, size_t points,
                        int32_t *index) {
    const uint64_t n = sizes[knob], shift = n > points ? vp_random_below(random, n - 1) : 0;
    const uint64_t earlier = grid_product(sizes, knob), all = grid_product(sizes, knob + 1);
    const size_t width = (size_t)knobs;
    int32_t *column = index + knob;
    for (uint64_t t = 0; t < points; t++) {
        if (n > points) column[width * t] = (int32_t)((t * n + shift) / points);
        else if (t >= n) column[width * t] = column[width * ((t % all + grid_laps(t % all, earlier, n)) % n)];
        else { /* inside-out shuffle: each new value is swapped with a random one */ column[width * t] = (int32_t)t;
            grid_swap(column + width * t, column + width * vp_random_below(random, t));
        }
    }
}

/* Shuffles each column, but rejects any swap that would repeat a point: the design stays balanced and free of repeats
 * at every step. If most combinations are unused, the first round is already a full shuffle; the other rounds are for
 * crowded grids. */
static void grid_latin(const uint64_t *sizes, int32_t knobs, uint32_t seed, size_t points, int32_t *index) {
    vp_random random;
    vp_random_seed(&random, seed);
    for (int32_t knob = 0; knob < knobs; knob++) grid_column(&random, sizes, knobs, knob, points, index);
    for (int32_t round = 0; round < 4; round++) {
        for (int32_t knob = 0; knob < knobs; knob++) {
            for (size_t row = points; row-- > 1;) {
                const size_t other = (size_t)vp_random_below(&random, row), width = (size_t)knobs;
                int32_t *left = index + width * row + knob, *right = index + width * other + knob;
                if (*left == *right) continue;
                grid_swap(left, right);
                if (grid_repeats(index, knobs, points, row, other) || grid_repeats(index, knobs, points, other, row))
                    grid_swap(left, right);
            }
        }
    }
}

vp_result choose_points(enum grid_strategy strategy, const int32_t *counts, int32_t knobs, uint32_t seed, size_t points,
                        int32_t *index, size_t capacity, size_t *needed, size_t *duplicates) {
    const int has_repeats = strategy == GRID_STRATIFIED || strategy == GRID_BOUNDARY;
    uint64_t sizes[GRID_KNOBS_MAX], places[GRID_KNOBS_MAX], combinations, total, again = 1;
    int32_t drawn[50 * GRID_KNOBS_MAX], knob;
    if (!strategy_name((int32_t)strategy) || knobs < 1 || knobs > GRID_KNOBS_MAX) return VP_ERR_RANGE;
    for (knob = 0; knob < knobs; knob++) {
        const uint64_t looks = grid_looks(strategy, knob);
        if (counts[knob] < 1) return VP_ERR_RANGE;
        sizes[knob] = places[knob] = (uint64_t)counts[knob];
        if (looks != 0 && places[knob] > looks) places[knob] = looks;
        if (strategy == GRID_CUSTOM_SPARSE) places[knob] = (places[knob] + 1) / 2;
        again *= looks;
    }
    combinations = grid_product(sizes, knobs);
    total = grid_product(places, knobs);
    again = has_repeats ? again - total : 0;
    if (strategy == GRID_LHS) {
        if (points < 1 || points > combinations || points > GRID_LHS_POINTS_MAX) return VP_ERR_RANGE;
        total = points;
    } else if (strategy == GRID_SEED_LHS) {
        total = grid_drawn(sizes, knobs, seed, (size_t)grid_draws(combinations), drawn);
        again = grid_draws(combinations) - total;
    } else if (total > SIZE_MAX / ((size_t)knobs * sizeof *index)) {
        return VP_ERR_RANGE;
    }
    if (needed) *needed = (size_t)total;
    if (duplicates) *duplicates = (size_t)again;
    if (total > (index ? capacity : 0)) return VP_ERR_CAPACITY;
    if (strategy == GRID_LHS) grid_latin(sizes, knobs, seed, points, index);
    else if (strategy != GRID_SEED_LHS) grid_regular(strategy, sizes, places, knobs, (size_t)total, index);
    else if (total > 0) memcpy(index, drawn, (size_t)total * (size_t)knobs * sizeof *index);
    return VP_OK;
}

vp_result shard_of(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride, size_t *shard_count) {
    if (ranks < 1 || rank < 0 || rank >= ranks) return VP_ERR_RANGE;
    *first = (size_t)rank;
    *stride = (size_t)ranks;
    *shard_count = (size_t)rank < count ? (count - (size_t)rank - 1) / (size_t)ranks + 1 : 0;
    return VP_OK;
}
