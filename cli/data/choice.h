/* choice.h: which samples and which points of a grid a sweep visits, and the share of one of its processes. All
 * functions are pure. */
#ifndef VLMPROF_CLI_CHOICE_H
#define VLMPROF_CLI_CHOICE_H
#include "vlmprof.h"

/* The choice of vp_sampler_dataset, but every stratum (value of a field) keeps its proportion.
 * in:      stratum  uint32 [population]  stratum of each record, 0..strata - 1
 * out:     scratch  int64 [population + 2 * strata]; the first *kept entries are the result, ascending
 * returns: VP_OK; VP_ERR_RANGE: a stratum >= strata, or a population over 2^31 - 1
 * rule:    quota = count * members / population, truncated. The remaining records go to the largest remainders, the
 *          lower stratum first. If count >= population, all are kept. One generator, RandomState(seed), shuffles the
 *          strata in order as numpy does; the first `quota` members of each are kept
 * numeric: integers only: the same records everywhere
 * memory:  2.5 KB of stack */
vp_result choose_stratified(uint32_t seed, const uint32_t *stratum, size_t population, uint32_t strata, size_t count,
                            int64_t *scratch, size_t *kept);

/* Which points of a grid of knobs a sweep visits. n is the length of a knob's list, and its entries are 0..n-1. The
 * reference's grids are first knob (tiers, crops) x top_k x blocks; here its rules apply to any number of knobs. */
#define GRID_STRATEGIES(X) \
    X(GRID_FULL, 0, "full", "every combination") \
    X(GRID_BALANCED, 1, "balanced", "entries 0, n/2, n-1 of each list") \
    X(GRID_STRATIFIED, 2, "stratified", "the same entries; the reference code repeats them in lists of fewer than 3") \
    X(GRID_BOUNDARY, 3, "boundary", "the same entries, for the second list (top_k) 0, n/4, n/2, 3n/4, n-1") \
    X(GRID_CUSTOM_SPARSE, 4, "custom_sparse", "every second entry, starting at 0: may miss the last") \
    X(GRID_LHS, 5, "lhs", "a Latin hypercube: each value of a knob equally often, to within one") \
    X(GRID_SEED_LHS, 6, "seed_lhs", "the reference code's lhs: min(50, combinations / 4) independent draws")

enum grid_strategy {
#define GRID_ENUM(name, value, text, meaning) name = value,
    GRID_STRATEGIES(GRID_ENUM)
#undef GRID_ENUM
        GRID_STRATEGY_LAST_ = 6
};

#define GRID_LHS_POINTS_MAX 4096
#define GRID_KNOBS_MAX 8

/* The name of a strategy; NULL outside the list, so counting up from 0 until NULL lists all. */
const char *strategy_name(int32_t strategy);
/* returns: VP_OK; VP_ERR_NOT_FOUND: no strategy has this name */
vp_result find_strategy(const char *name, enum grid_strategy *strategy);
/* The default number of points for lhs: the reference's min(50, combinations / 4), but at least the length of the
 * longest list, so that all values occur.
 * in:      counts  int32 [knobs]  lengths of the lists
 * returns: 1..GRID_LHS_POINTS_MAX; 0 if a count is < 1 or knobs is outside 1..GRID_KNOBS_MAX */
size_t default_lhs_points(const int32_t *counts, int32_t knobs);
/* The points that a strategy visits, as indices into the lists. No point occurs twice.
 * in:      counts      int32 [knobs]  lengths of the lists, each >= 1; knobs is 1..GRID_KNOBS_MAX
 *          seed        lhs and seed_lhs only; the reference uses 42
 *          points      lhs only: 1..min(combinations, GRID_LHS_POINTS_MAX)
 *          capacity    points that fit
 * out:     index       int32 [capacity, knobs]  the first *needed rows; NULL only counts
 *          needed      number of points, may be NULL; on VP_OK and VP_ERR_CAPACITY
 *          duplicates  number of the reference's repeated points, omitted here; may be NULL; set when `needed` is
 * returns: VP_OK; VP_ERR_CAPACITY: fewer than *needed; VP_ERR_RANGE: an unknown strategy, knobs or points outside
 *          their range, a count < 1, or a size that overflows size_t
 * rule:    the first knob varies slowest, the last one fastest; lhs and seed_lhs are in drawing order. lhs: a balanced
 *          design without repeats. Its rows follow the diagonals of the grid. Values are permuted at random or, in a
 *          list longer than points, taken at equal steps. Random swaps within a knob follow, except those that would
 *          repeat a point
 * source:  ChulanZhang/molmo_hf, combined experiments (the current one accepts any name and runs the full grid); lhs:
 *          McKay et al. 1979
 * numeric: integers only: the same points everywhere
 * memory:  4.2 KB of stack; the time of lhs grows with the square of points */
vp_result choose_points(enum grid_strategy strategy, const int32_t *counts, int32_t knobs, uint32_t seed, size_t points,
                        int32_t *index, size_t capacity, size_t *needed, size_t *duplicates);

/* Rank r of n works on indices r, r + n, r + 2n, ... below count: every index belongs to exactly one rank; none is
 * padded or repeated.
 * out:     first, stride, shard_count  index i of the shard, 0 <= i < *shard_count, is *first + i * *stride
 * returns: VP_OK, also for an empty shard; VP_ERR_RANGE: ranks < 1 or rank outside 0..ranks-1 */
vp_result shard_of(size_t count, int32_t rank, int32_t ranks, size_t *first, size_t *stride, size_t *shard_count);

#endif
