/* test_sampler.c: random draws equal numpy's, number for number (golden/sampler), the choice of blocks is the experiments', grids visit their stated points, shards cover
 * everything exactly once, ranks come from the environment with its traps. */
#include "support/check.h"
#include "support/scan.h"
#include "data/choice.h"
#include "model/model.h"

static char *golden_text(const char *relative) {
    char *text = check_read(check_golden(relative), NULL);
    check_note(text != NULL, __FILE__, __LINE__, "%s is missing", relative);
    return text;
}
static void test_choice(void) {
    int entries = 0;
    check_case("choice.json: choice without replacement in drawing order");
    char *text = golden_text("sampler/choice.json");
    for (const char *p = text; p && (p = strchr(p, '{')) != NULL; entries++) {
        const char *indices = scan_key(p, "indices", NULL);
        const size_t population = (size_t)scan_number(p, "n", NULL), count = (size_t)scan_number(p, "k", NULL);
        const uint32_t seed = (uint32_t)scan_number(p, "seed", NULL);
        size_t got, i;
        double *want = scan_numbers(indices, &got);
        int64_t *scratch = (int64_t *)malloc((population + 1) * sizeof *scratch);
        scratch[population] = -77; /* a guard value */
        CHECK_INT(got, count);
        CHECK_INT(vp_sampler_choice(seed, population, count, scratch), VP_OK);
        for (i = 0; i < count; i++) CHECK_INT(scratch[i], want[i]);
        CHECK_INT(scratch[population], -77);
        FREE_ALL(want, scratch);
        p = scan_close(p);
    }
    CHECK_INT(entries, 30);
    free(text);
}
static void test_dataset(void) {
    int entries = 0;
    check_case("sampled_dataset.json: samples of the experiments");
    char *text = golden_text("sampler/sampled_dataset.json");
    for (const char *p = text; p && (p = strchr(p, '{')) != NULL; entries++) {
        const size_t population = (size_t)scan_number(p, "n", NULL);
        const char *samples = scan_key(p, "num_samples", NULL), *list = scan_key(p, "kept", NULL);
        const size_t count = *samples == 'n' ? SIZE_MAX : (size_t)strtod(samples, NULL);
        int64_t *scratch = (int64_t *)malloc(population * sizeof *scratch);
        size_t kept = 12345, i, wanted = population;
        double *want = *list == '[' ? scan_numbers(list, &wanted) : NULL;
        CHECK_INT(vp_sampler_dataset((uint32_t)scan_number(p, "seed", NULL), population, count, scratch, &kept), VP_OK);
        CHECK_INT(kept, wanted);
        for (i = 0; i < kept && i < wanted; i++) CHECK_INT(scratch[i], want ? want[i] : (double)i);
        FREE_ALL(want, scratch);
        p = scan_close(p);
    }
    CHECK_INT(entries, 6);
    free(text);
}
/* every object in one list of draws.json: calls the given draw once per value and compares */
static int draws_of(const char *text, const char *key, double (*draw)(vp_random *random, double n)) {
    const char *p = scan_key(text, key, NULL), *end = p ? scan_close(p) : NULL;
    int entries = 0;
    for (; p && (p = strchr(p, '{')) != NULL && p < end; entries++) {
        size_t count, i;
        double *want = scan_numbers(scan_key(p, "values", NULL), &count);
        vp_random random;
        vp_random_seed(&random, (uint32_t)scan_number(p, "seed", NULL));
        for (i = 0; i < count; i++) {
            const double got = draw(&random, scan_number(p, "n", NULL));
            check_note(got == want[i], __FILE__, __LINE__, "%s %d, value %d: %.17g, expected %.17g", key, entries, (int)i, got, want[i]);
        }
        CHECK(count > 0);
        free(want);
        p = scan_close(p);
    }
    return entries;
}
static double draw_u32(vp_random *random, double n) { (void)n; return vp_random_u32(random); }
static double draw_double(vp_random *random, double n) { (void)n; return vp_random_double(random); }
static double draw_below(vp_random *random, double n) { return (double)vp_random_below(random, (uint64_t)n - 1); }

static void permutations_of(const char *text, const char *key, int expected) {
    const char *p = scan_key(text, key, NULL), *end = p ? scan_close(p) : NULL;
    int entries = 0;
    for (; p && (p = strchr(p, '{')) != NULL && p < end; entries++) {
        size_t count, i;
        double *want = scan_numbers(scan_key(p, "values", NULL), &count);
        int64_t *got = (int64_t *)malloc(count * sizeof *got);
        vp_random random;
        vp_random_seed(&random, (uint32_t)scan_number(p, "seed", NULL));
        vp_random_permutation(&random, got, count);
        for (i = 0; i < count; i++) CHECK_INT(got[i], want[i]);
        FREE_ALL(want, got);
        p = scan_close(p);
    }
    CHECK_INT(entries, expected);
}
/* several kinds of draws alternate on one generator: each must consume as many numbers as numpy */
static void mixed_calls(const char *calls) {
    const char *p = calls + 1, *end = scan_close(calls);
    const uint32_t seed = (uint32_t)scan_number(calls - 40, "seed", calls); /* {"seed": N, "calls": [ */
    vp_random random;
    int count = 0;
    vp_random_seed(&random, seed);
    for (; (p = strchr(p, '[')) != NULL && p < end; p = scan_close(p), count++) {
        size_t numbers, i;
        double *want = scan_numbers(p, &numbers);
        if (strncmp(p, "[\"randint\"", 10) == 0 || strncmp(p, "[\"choice_replace\"", 17) == 0) {
            CHECK_INT(vp_random_below(&random, (uint64_t)want[0] - 1), want[1]);
        } else if (strncmp(p, "[\"random_sample\"", 16) == 0) {
            CHECK(vp_random_double(&random) == want[0]);
        } else { /* choice n k [...] and permutation n [...] */
            const size_t skip = strncmp(p, "[\"choice\"", 9) == 0 ? 2 : 1;
            int64_t got[100];
            CHECK(want[0] <= 100);
            vp_random_permutation(&random, got, (size_t)want[0]);
            for (i = skip; i < numbers; i++) CHECK_INT(got[i - skip], want[i]);
        }
        free(want);
    }
    CHECK(count > 20);
}
static void test_draws(void) {
    check_case("draws.json: words, doubles, bounded draws");
    char *text = golden_text("sampler/draws.json");
    if (!text) return;
    CHECK_INT(draws_of(text, "raw_uint32", draw_u32), 2);
    CHECK_INT(draws_of(text, "random_sample", draw_double), 3);
    CHECK_INT(draws_of(text, "randint_0_n", draw_below), 8);
    check_case("draws.json: permutations and shuffles");
    permutations_of(text, "permutation", 6);
    permutations_of(text, "shuffle_of_list", 3);
    check_case("draws.json: alternating calls on one generator");
    const char *p = scan_key(text, "mixed_sequence", NULL);
    for (p = scan_key(p, "calls", NULL); p; p = scan_key(p, "calls", NULL)) mixed_calls(p);
    check_case("edges of the bounded draw");
    vp_random random, before;
    vp_random_seed(&random, 5);
    before = random;
    CHECK(vp_random_below(&random, 0) == 0);
    CHECK(memcmp(&random, &before, sizeof random) == 0); /* 0 draws nothing */
    CHECK(vp_random_below(&random, UINT64_MAX) > 0xffffffffu);
    CHECK_INT(random.position, 2);
    CHECK(vp_random_below(&random, 0xffffffffu) <= 0xffffffffu);
    CHECK_INT(random.position, 3);
    random.position = -5; /* a damaged generator refills; it does not read out of bounds */
    vp_random_u32(&random);
    CHECK_INT(random.position, 1);
    random.position = 700;
    vp_random_u32(&random);
    CHECK_INT(random.position, 1);
    free(text);
}
/* scores of one entry of blocks.json; 0 if there are none */
static int blocks_scores(const char *entry, int32_t total, double *scores, int32_t *order) {
    const char *list = scan_key(entry, "scores", NULL);
    size_t count, i;
    for (i = 0; i < (size_t)total; i++) {
        scores[i] = (double)NAN;
        order[i] = total;
    }
    if (*list != '[') return 0;
    double *pairs = scan_numbers(list, &count);
    for (i = 0; i + 1 < count; i += 2) {
        scores[(int)pairs[i]] = pairs[i + 1];
        order[(int)pairs[i]] = (int32_t)(i / 2);
    }
    free(pairs);
    return 1;
}
static void test_blocks(void) {
    enum { TOTAL = 16 };
    int entries = 0, equal = 0, refused = 0;
    check_case("blocks.json: importance");
    char *text = golden_text("sampler/blocks.json");
    const char *p = text ? scan_key(text, "importance", NULL) : NULL;
    const char *end = p ? scan_close(p) : NULL;
    for (; p && (p = strchr(p, '{')) != NULL && p < end; p = scan_close(p), entries++) {
        const int32_t active = (int32_t)scan_number(p, "num_active", NULL);
        const char *list = scan_key(p, "blocks", NULL);
        double scores[TOTAL];
        int32_t order[TOTAL], blocks[TOTAL + 1], poison = -77;
        const int scored = blocks_scores(p, TOTAL, scores, order);
        size_t count = 0, i;
        CHECK_INT(scan_number(p, "total", NULL), TOTAL);
        if (*list != '[') { /* the reference crashes in a log message here (active <= 2 on rank 0); rank 1's answer is the next entry */
            CHECK(active <= 2);
            continue;
        }
        double *want = scan_numbers(list, &count);
        for (i = 0; i <= TOTAL; i++) blocks[i] = poison;
        vp_result result = choose_active_blocks(TOTAL, active, scored ? scores : NULL, scored ? order : NULL, blocks);
        if (active > TOTAL) { /* known difference: the reference silently truncates */
            CHECK_INT(result, VP_ERR_RANGE);
            refused++;
        } else if ((int32_t)count < active) { /* known difference: with too few scores, the reference returns fewer blocks than requested */
            CHECK_INT(result, VP_ERR_MISMATCH);
            CHECK_INT(blocks[0], poison);
            refused++;
        } else {
            CHECK_INT(result, VP_OK);
            for (i = 0; i < (size_t)active; i++) CHECK_INT(blocks[i], want[i]); /* active 1: the reference returns [0, 15], vlmprof [0] */
            CHECK_INT(blocks[active], poison);
            equal++;
        }
        free(want);
    }
    CHECK_INT(entries, 204);
    CHECK_INT(refused, 6 * 2 + 12 * 2);
    CHECK_INT(equal, 204 - 36 - 8); /* 8 crashed */
    free(text);
}
/* the scores of a file {"block": score} and the blocks' order in it; with `reversed` as if the file were reversed */
static int importance_file(const char *name, int reversed, double *scores, int32_t *order) {
    char *text = golden_text(name);
    const char *p = text;
    int found = 0, i;
    for (i = 0; i < 16; i++) {
        scores[i] = (double)NAN;
        order[i] = INT32_MAX;
    }
    while (p && (p = strchr(p, '"')) != NULL) {
        const int block = atoi(p + 1);
        p = strchr(p, ':');
        if (!p || block < 0 || block > 15) break;
        scores[block] = strtod(p + 1, NULL);
        order[block] = reversed ? -found : found;
        found++;
        p++;
    }
    free(text);
    return found;
}
/* Two files of the experiments: the blocks between the first and last enter by falling score; worked out by hand. */
static void test_importance_files(void) {
    static const struct { const char *name; int reversed, scored; int32_t by_score[14]; } table[] = {
        {"sampler/importance-scores.json", 0, 14, {5, 1, 9, 10, 11, 13, 2, 8, 14, 6, 12, 7, 4, 3}},
        {"sampler/importance-scores.json", 1, 14, {5, 1, 9, 10, 11, 13, 2, 8, 14, 6, 12, 7, 4, 3}}, /* without ties, the order does not matter */
        {"sampler/importance-scores-recommended.json", 0, 16, {1, 5, 8, 9, 12, 14, 7, 6, 11, 3, 2, 10, 13, 4}},
        {"sampler/importance-scores-recommended.json", 1, 16, {5, 1, 8, 14, 12, 9, 7, 11, 6, 3, 2, 10, 13, 4}}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double scores[16];
        int32_t order[16], blocks[16], active, k;
        check_case("importance file %s%s", table[i].name, table[i].reversed ? ", upside down" : "");
        CHECK_INT(importance_file(table[i].name, table[i].reversed, scores, order), table[i].scored);
        for (active = 1; active <= 16; active++) {
            unsigned want = 1u, got = 0;
            if (active > 1) want |= 1u << 15; /* one block is the first; two are the first and the last */
            for (k = 0; k < active - 2; k++) want |= 1u << table[i].by_score[k];
            CHECK_INT(choose_active_blocks(16, active, scores, order, blocks), VP_OK);
            for (k = 0; k < active; k++) {
                got |= 1u << blocks[k];
                CHECK(k == 0 || blocks[k] > blocks[k - 1]);
            }
            check_note(got == want, __FILE__, __LINE__, "%d blocks: %x, expected %x", (int)active, got, want);
        }
    }
}
static void test_errors(void) {
    int64_t scratch[4] = {9, 9, 9, 9};
    int32_t blocks[4] = {7, 7, 7, 7};
    const int32_t order[4] = {0, 2, 1, 3};
    double scores[4] = {(double)NAN, 1, (double)NAN, (double)NAN};
    size_t kept = 5;
    check_case("the sampler rejects impossible arguments");
    CHECK_INT(vp_sampler_choice(1, 3, 4, scratch), VP_ERR_RANGE);
    CHECK_INT(scratch[0], 9);
    CHECK_INT(vp_sampler_choice(1, 0, 0, scratch), VP_OK);
    CHECK_INT(vp_sampler_dataset(1, 0, 5, scratch, &kept), VP_OK);
    CHECK_INT(kept, 0);
    CHECK_INT(scratch[0], 9);
    CHECK_INT(choose_active_blocks(4, 0, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(choose_active_blocks(4, 5, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(choose_active_blocks(0, 0, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(choose_active_blocks(INT32_MIN, INT32_MIN, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(choose_active_blocks(4, 4, scores, NULL, blocks), VP_ERR_MISMATCH);
    CHECK(blocks[0] == 7 && blocks[3] == 7);
    CHECK_INT(choose_active_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1 && blocks[2] == 3 && blocks[3] == 7);
    CHECK_INT(choose_active_blocks(1, 1, scores + 1, NULL, blocks), VP_OK);
    CHECK_INT(blocks[0], 0);
    CHECK_INT(choose_active_blocks(2, 2, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1);
    scores[1] = scores[2] = 1; /* a tie: by the file's order, or by index */
    CHECK_INT(choose_active_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK_INT(blocks[1], 1);
    CHECK_INT(choose_active_blocks(4, 3, scores, order, blocks), VP_OK);
    CHECK_INT(blocks[1], 2);
    scores[0] = scores[1] = scores[2] = scores[3] = (double)NAN; /* a file with only NaN is invalid */
    CHECK_INT(choose_active_blocks(4, 2, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1);
    scores[1] = -(double)INFINITY; /* the lowest score is still a score */
    scores[2] = (double)INFINITY;
    CHECK_INT(choose_active_blocks(4, 4, scores, NULL, blocks), VP_OK);
    CHECK(blocks[1] == 1 && blocks[2] == 2);
    CHECK_INT(choose_active_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK_INT(blocks[1], 2);
}
/* ---- knob grids: golden rows are compared as text, so that tiers and numbers are treated alike */
typedef struct word { const char *at; size_t bytes; } word;

static int same_words(const word *a, const word *b, size_t count) {
    for (size_t i = 0; i < count; i++) if (a[i].bytes != b[i].bytes || memcmp(a[i].at, b[i].at, a[i].bytes) != 0) return 0;
    return 1;
}
/* all words inside the bracket at `text`, at any nesting; malloc'ed */
static word *words_of(const char *text, size_t *count) {
    const char *end = scan_close(text);
    word *out = (word *)malloc((size_t)(end - text + 1) * sizeof *out);
    *count = 0;
    while (text < end) {
        const size_t bytes = strcspn(text, "[], \n");
        if (bytes > 0) {
            out[*count].at = text;
            out[(*count)++].bytes = bytes;
        }
        text += bytes + 1;
    }
    return out;
}
/* the number of rows of three that remain without duplicates */
static size_t without_repeats(word *rows, size_t count) {
    size_t kept = 0, i, k;
    for (i = 0; i < count; i++) {
        for (k = 0; k < kept && !same_words(rows + 3 * k, rows + 3 * i, 3); k++) {}
        if (k == kept) memmove(rows + 3 * kept++, rows + 3 * i, 3 * sizeof *rows);
    }
    return kept;
}
static void grid_golden(const char *entry, const char *first_knob, int is_core) {
    enum { MOST = 512 };
    const char *names[3] = {first_knob, "top_k", "blocks"}, *name = scan_key(entry, "strategy", NULL) + 1;
    static int32_t index[MOST + 1][3];
    char text[32] = "";
    word *lists[3], *rows, *found;
    int32_t counts[3];
    size_t i, k, count, configurations, kept, needed = 0, duplicates = 99;
    enum grid_strategy strategy = GRID_FULL;
    memcpy(text, name, strcspn(name, "\""));
    CHECK_INT(find_strategy(text, &strategy), VP_OK);
    if (is_core) strategy = GRID_FULL; /* known difference: the core experiment accepts any name and runs the full grid */
    if (strategy == GRID_LHS) strategy = GRID_SEED_LHS; /* known difference: the reference's lhs is not a Latin hypercube */
    for (k = 0; k < 3; k++) {
        lists[k] = words_of(scan_key(entry, names[k], NULL), &count);
        counts[k] = (int32_t)count;
    }
    found = words_of(scan_key(entry, "configurations", NULL), &configurations);
    configurations = without_repeats(found, configurations / 3);
    rows = words_of(scan_key(entry, strategy == GRID_SEED_LHS ? "draws_before_duplicates_removed" : "configurations", NULL), &count);
    count /= 3;
    kept = without_repeats(rows, count);
    for (i = 0; i <= MOST; i++) index[i][0] = index[i][1] = index[i][2] = -77;
    CHECK_INT(choose_points(strategy, counts, 3, 42, 0, index[0], kept, &needed, &duplicates), VP_OK);
    CHECK_INT(needed, kept);
    CHECK_INT(kept, configurations);
    CHECK_INT(duplicates, count - kept);
    CHECK_INT(index[kept][0], -77);
    for (i = 0; i < kept && i < needed; i++) {
        word got[3];
        for (k = 0; k < 3; k++) {
            const int32_t place = index[i][k];
            CHECK(place >= 0 && place < counts[k]);
            got[k] = lists[k][place >= 0 && place < counts[k] ? place : 0];
        }
        CHECK(same_words(got, rows + 3 * i, 3)); /* draws are also in order */
        for (k = 0; k < configurations && !same_words(got, found + 3 * k, 3); k++) {}
        CHECK(k < configurations);
    }
    for (k = 0; k < 3; k++) free(lists[k]);
    FREE_ALL(found, rows);
}
static void test_strategies(void) {
    const char *part, *end, *p;
    int entries = 0, round;
    char *text = golden_text("sampler/strategies.json");
    for (round = 0; text && round < 2; round++) {
        check_case("strategies.json: %s", round ? "the older experiments' grids without repeats" : "the core experiment's full grid");
        part = scan_key(text, round ? "sparse" : "core", NULL);
        end = scan_close(part);
        for (p = part; (p = strchr(p, '{')) != NULL && p < end; p = scan_close(p), entries++) grid_golden(p, round ? "max_crops" : "tiers", !round);
        CHECK_INT(entries, round ? 25 + 42 : 25);
    }
    free(text);
}
static size_t row_bytes;
static int compare_rows(const void *a, const void *b) { return memcmp(a, b, row_bytes); }

/* The properties of a Latin hypercube: each value of each knob occurs floor(points / n) times or once more, no point occurs twice, and none is outside the grid. */
static void latin_design_of(const int32_t *counts, int knobs, size_t points, uint32_t seed) {
    static int32_t index[(GRID_LHS_POINTS_MAX + 1) * GRID_KNOBS_MAX];
    const size_t width = (size_t)knobs;
    size_t needed = 0, duplicates = 99, i;
    memset(index, 0xb3, sizeof index);
    CHECK_INT(choose_points(GRID_LHS, counts, knobs, seed, points, index, points, &needed, &duplicates), VP_OK);
    CHECK_INT(needed, points);
    CHECK_INT(duplicates, 0);
    CHECK_INT((uint32_t)index[width * points], 0xb3b3b3b3u);
    for (int knob = 0; knob < knobs; knob++) {
        const size_t n = (size_t)counts[knob], least = points / n, most = (points + n - 1) / n;
        unsigned short *times = (unsigned short *)calloc(n, sizeof *times);
        int64_t last;
        for (i = 0; i < points; i++) {
            const int32_t place = index[width * i + (size_t)knob];
            const int inside = place >= 0 && place < counts[knob];
            CHECK(inside);
            if (inside) times[place]++;
        }
        for (i = 0; i < n; i++) {
            check_note(times[i] >= least && times[i] <= most, __FILE__, __LINE__, "%d knobs, %d x %d .., %d points, seed %u: value %d of knob %d comes %d times",
                       knobs, (int)counts[0], (int)counts[knobs > 1], (int)points, (unsigned)seed, (int)i, knob, (int)times[i]);
        }
        for (i = 0, last = -1; n > points && i < n; i++) { /* a list longer than points is sampled at equal steps */
            if (!times[i]) continue;
            CHECK(last < 0 || (i - (size_t)last >= n / points && i - (size_t)last <= n / points + 1));
            last = (int64_t)i;
        }
        free(times);
    }
    row_bytes = width * sizeof *index;
    qsort(index, points, row_bytes, compare_rows);
    for (i = 1; i < points; i++) CHECK(memcmp(index + width * (i - 1), index + width * i, row_bytes) != 0);
}
static void latin_design(const int32_t *counts, size_t points, uint32_t seed) { latin_design_of(counts, 3, points, seed); }

/* A grid of any number of knobs is the product of the choices from each list. */
static void test_more_knobs(void) {
    static const int32_t lists[GRID_KNOBS_MAX] = {4, 6, 1, 5, 2, 1, 3, 1};
    static int32_t index[4 * 6 * 5 * 2 * 3 * GRID_KNOBS_MAX];
    check_case("grids of one to eight knobs are products of their lists; the second list has boundary's five indices");
    for (int strategy = GRID_FULL; strategy <= GRID_CUSTOM_SPARSE; strategy++)
        for (int32_t knobs = 1; knobs <= GRID_KNOBS_MAX; knobs++) {
            size_t needed = 0, total = 1, repeats = 0, all = 1, places[GRID_KNOBS_MAX];
            int32_t alone[GRID_KNOBS_MAX][6];
            for (int32_t k = 0; k < knobs; k++) {
                const int32_t two[2] = {1, lists[k]}; /* as a first or as a second list */
                int32_t pairs[6 * 2];
                CHECK_INT(choose_points((enum grid_strategy)strategy, k == 1 ? two : two + 1, k == 1 ? 2 : 1, 0, 0, pairs, 6, &places[k], NULL), VP_OK);
                for (size_t i = 0; i < places[k] && i < 6; i++) alone[k][i] = k == 1 ? pairs[2 * i + 1] : pairs[i];
                total *= places[k];
                all *= strategy == GRID_BOUNDARY && k == 1 ? 5 : 3;
            }
            CHECK_INT(choose_points((enum grid_strategy)strategy, lists, knobs, 0, 0, index, 720, &needed, &repeats), VP_OK);
            CHECK_INT(needed, total);
            CHECK_INT(repeats, strategy == GRID_STRATIFIED || strategy == GRID_BOUNDARY ? all - total : 0);
            for (size_t row = 0; row < needed && row < total; row++) {
                size_t rest = row;
                for (int32_t k = knobs; k-- > 0; rest /= places[k]) CHECK_INT(index[row * (size_t)knobs + (size_t)k], alone[k][rest % places[k]]);
            }
        }
    check_case("lhs: one, two, four and eight knobs, every number of points: balanced and without duplicates");
    for (int code = 0; code < 81; code++) {
        const int32_t counts[GRID_KNOBS_MAX] = {1 + code % 3, 1 + code / 3 % 3, 1 + code / 9 % 3, 1 + code / 27, 2, 1, 1, 2};
        const size_t pair = (size_t)(counts[0] * counts[1]), four = pair * (size_t)(counts[2] * counts[3]);
        for (size_t points = 1; points <= 4 * four; points++) {
            if (points <= (size_t)counts[0]) latin_design_of(counts, 1, points, (uint32_t)code);
            if (points <= pair) latin_design_of(counts, 2, points, (uint32_t)code);
            if (points <= four) latin_design_of(counts, 4, points, (uint32_t)code);
            if (points % 7 == 0) latin_design_of(counts, 8, points, (uint32_t)code);
        }
        if (code == 80) CHECK_INT(default_lhs_points(counts, 8), 50);
        if (code == 80) CHECK_INT(default_lhs_points(counts, 4), 20);
    }
    check_case("grids have one to eight knobs");
    for (int strategy = 0; strategy <= GRID_STRATEGY_LAST_; strategy++) {
        size_t needed = 77;
        CHECK_INT(choose_points((enum grid_strategy)strategy, lists, 0, 1, 1, index, 9, &needed, NULL), VP_ERR_RANGE);
        CHECK_INT(choose_points((enum grid_strategy)strategy, lists, GRID_KNOBS_MAX + 1, 1, 1, index, 9, &needed, NULL), VP_ERR_RANGE);
        CHECK_INT(needed, 77);
    }
    CHECK(!default_lhs_points(lists, 0) && !default_lhs_points(lists, -1) && !default_lhs_points(lists, GRID_KNOBS_MAX + 1));
}
static void test_latin(void) {
    const uint32_t seed = 20261122;
    const int32_t most[3] = {1, INT32_MAX, 4096}, cube[3] = {3, 3, 3}, line[3] = {8, 8, 8};
    const int32_t pinned[4][3] = {{5, 6, 3}, {3, 2, 7}, {7, 4, 5}, {1, 0, 1}}; /* vlmprof's own result, which may never change */
    int32_t counts[3], other[4][3];
    int round, places[8][8] = {{0}}, taken[8] = {0}, diagonal = 0, i, k;
    vp_random random;
    check_case("lhs: every number of points of every grid up to 4 x 4 x 4: balanced and without duplicates");
    for (counts[0] = 1; counts[0] <= 4; counts[0]++) for (counts[1] = 1; counts[1] <= 4; counts[1]++) for (counts[2] = 1; counts[2] <= 4; counts[2]++) {
        for (size_t points = 1; points <= (size_t)(counts[0] * counts[1] * counts[2]); points++) latin_design(counts, points, (uint32_t)points);
    }
    check_case("lhs: random grids are balanced and without duplicates (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (round = 0; round < 300; round++) {
        uint64_t total = 1;
        for (k = 0; k < 3; k++) total *= (uint64_t)(counts[k] = 1 + (int32_t)vp_random_below(&random, round % 3 ? 11 : 70));
        latin_design(counts, 1 + (size_t)vp_random_below(&random, (total < 300 ? total : 300) - 1), vp_random_u32(&random));
        if (total <= 300) latin_design(counts, (size_t)total, vp_random_u32(&random));
        latin_design(counts, default_lhs_points(counts, 3), vp_random_u32(&random));
    }
    counts[0] = 17, counts[1] = 4097, counts[2] = 100000;
    latin_design(counts, GRID_LHS_POINTS_MAX, 1);
    CHECK_INT(choose_points(GRID_LHS, most, 3, 1, 4, other[0], 4, NULL, NULL), VP_OK);
    for (k = 0; k < 4; k++) CHECK(other[k][0] == 0 && other[k][1] >= 0 && other[k][2] >= 0 && other[k][2] < 4096);
    check_case("lhs: a seed gives the same design everywhere");
    CHECK_INT(choose_points(GRID_LHS, line, 3, 42, 4, other[0], 4, NULL, NULL), VP_OK);
    CHECK(memcmp(pinned, other, sizeof pinned) == 0);
    CHECK_INT(choose_points(GRID_LHS, line, 3, 43, 4, other[0], 4, NULL, NULL), VP_OK);
    CHECK(memcmp(pinned, other, sizeof pinned) != 0);
    check_case("lhs: every value has its probability, and knobs are independent (seeds 0 to 3199)");
    for (round = 0; round < 3200; round++) { /* 8 points in 8 x 8 x 8: a value of one knob meets each value of another with probability 1 in 8 */
        int32_t index[9][3];
        CHECK_INT(choose_points(GRID_LHS, line, 3, (uint32_t)round, 8, index[0], 8, NULL, NULL), VP_OK);
        for (k = 0; k < 8; k++) places[index[k][0]][index[k][round & 1 ? 1 : 2]]++;
        CHECK_INT(choose_points(GRID_LHS, line, 3, (uint32_t)round, 4, other[0], 4, NULL, NULL), VP_OK);
        for (k = 0; k < 4; k++) taken[other[k][round % 3]]++;
        CHECK_INT(choose_points(GRID_LHS, cube, 3, (uint32_t)round, 9, index[0], 9, NULL, NULL), VP_OK);
        for (k = 0, i = 0; k < 9; k++) i += index[k][0] == index[k][2];
        diagonal += i;
    }
    for (i = 0; i < 8; i++) CHECK_NEAR(taken[i], 1600, 6 * sqrt(3200 * 0.5 * 0.5));
    for (i = 0; i < 8; i++) for (k = 0; k < 8; k++) CHECK_NEAR(places[i][k], 400, 6 * sqrt(3200 * (1.0 / 8) * (7.0 / 8))); /* 6 sigma of a binomial */
    CHECK_NEAR(diagonal, 3200 * 3, 6 * sqrt(3200 * 9.0)); /* 3 of 9 on average; a variance of 9 per design is generous */
}
static void test_grid_errors(void) {
    const int32_t none[3] = {3, 0, 5}, negative[3] = {3, 2, INT32_MIN}, small[3] = {2, 3, 4}, one[3] = {1, 1, 1}, huge[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t index[24][3] = {{-5}};
    size_t needed = 77, duplicates = 77;
    enum grid_strategy strategy = GRID_LHS;
    int i;
    check_case("grid strategies: names");
    for (i = 0; i <= GRID_STRATEGY_LAST_; i++) {
        CHECK_INT(find_strategy(strategy_name(i), &strategy), VP_OK);
        CHECK_INT(strategy, i);
    }
    CHECK(!strategy_name(i) && !strategy_name(-1) && !strategy_name(INT32_MIN));
    CHECK_TEXT(strategy_name(GRID_SEED_LHS), "seed_lhs");
    strategy = GRID_LHS;
    CHECK_INT(find_strategy("Full", &strategy), VP_ERR_NOT_FOUND);
    CHECK_INT(find_strategy("", &strategy), VP_ERR_NOT_FOUND);
    CHECK_INT(find_strategy(NULL, &strategy), VP_ERR_NOT_FOUND);
    CHECK_INT(strategy, GRID_LHS);
    check_case("grids reject impossible arguments");
    for (i = 0; i <= GRID_STRATEGY_LAST_; i++) {
        CHECK_INT(choose_points((enum grid_strategy)i, none, 3, 1, 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
        CHECK_INT(choose_points((enum grid_strategy)i, negative, 3, 1, 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    }
    CHECK_INT(choose_points((enum grid_strategy)7, small, 3, 1, 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    CHECK_INT(choose_points(GRID_LHS, small, 3, 1, 0, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    CHECK_INT(choose_points(GRID_LHS, small, 3, 1, 25, index[0], 99, &needed, &duplicates), VP_ERR_RANGE);
    CHECK_INT(choose_points(GRID_LHS, huge, 3, 1, GRID_LHS_POINTS_MAX + 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    CHECK_INT(choose_points(GRID_FULL, huge, 3, 1, 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    CHECK_INT(choose_points(GRID_CUSTOM_SPARSE, huge, 3, 1, 1, index[0], 24, &needed, &duplicates), VP_ERR_RANGE);
    CHECK(needed == 77 && duplicates == 77 && index[0][0] == -5);
    check_case("grids: a buffer that is too small returns the needed count and no points");
    CHECK_INT(choose_points(GRID_FULL, small, 3, 1, 0, index[0], 23, &needed, &duplicates), VP_ERR_CAPACITY);
    CHECK(needed == 24 && duplicates == 0);
    CHECK_INT(choose_points(GRID_BOUNDARY, small, 3, 1, 0, NULL, 24, &needed, &duplicates), VP_ERR_CAPACITY);
    CHECK(needed == 18 && duplicates == 27);
    CHECK_INT(choose_points(GRID_LHS, small, 3, 1, 5, index[0], 4, &needed, &duplicates), VP_ERR_CAPACITY);
    CHECK(needed == 5 && duplicates == 0);
    CHECK_INT(choose_points(GRID_SEED_LHS, small, 3, 1, 0, index[0], 0, &needed, &duplicates), VP_ERR_CAPACITY);
    CHECK(needed + duplicates == 6 && needed > 0);
    CHECK(index[0][0] == -5);
    CHECK_INT(choose_points(GRID_SEED_LHS, one, 3, 1, 0, NULL, 0, &needed, &duplicates), VP_OK); /* as in the reference: a small grid has no points */
    CHECK(needed == 0 && duplicates == 0);
    CHECK_INT(choose_points(GRID_SEED_LHS, huge, 3, 1, 0, NULL, 0, &needed, &duplicates), VP_ERR_CAPACITY);
    CHECK_INT(needed, 50);
    CHECK_INT(default_lhs_points(none, 3), 0);
    CHECK_INT(default_lhs_points(one, 3), 1);
    CHECK_INT(default_lhs_points(small, 3), 6);
    CHECK_INT(default_lhs_points(huge, 3), GRID_LHS_POINTS_MAX);
}
/* Every index below count is in exactly one shard, and shard sizes differ by at most one. */
static void test_shard(void) {
    size_t count, first = 77, stride = 77, share = 77;
    check_case("shards: each index once, for any count and number of ranks");
    for (count = 0; count <= 40; count++) for (int32_t ranks = 1; ranks <= 45; ranks++) {
        unsigned char seen[41] = {0};
        size_t i, all = 0;
        for (int32_t rank = 0; rank < ranks; rank++) {
            CHECK_INT(shard_of(count, rank, ranks, &first, &stride, &share), VP_OK);
            CHECK(share == count / (size_t)ranks || share == count / (size_t)ranks + 1);
            for (i = 0; i < share; i++) {
                const size_t at = first + i * stride;
                CHECK(at < count && at % (size_t)ranks == (size_t)rank && !seen[at < count ? at : 40]);
                seen[at < count ? at : 40] = 1;
            }
            all += share;
        }
        CHECK_INT(all, count);
    }
    CHECK_INT(shard_of(SIZE_MAX, INT32_MAX - 1, INT32_MAX, &first, &stride, &share), VP_OK);
    CHECK(first + (share - 1) * stride >= SIZE_MAX - stride && first + (share - 1) * stride < SIZE_MAX);
    check_case("shards reject impossible arguments");
    first = stride = share = 77;
    CHECK_INT(shard_of(5, 0, 0, &first, &stride, &share), VP_ERR_RANGE);
    CHECK_INT(shard_of(5, -1, 2, &first, &stride, &share), VP_ERR_RANGE);
    CHECK_INT(shard_of(5, 2, 2, &first, &stride, &share), VP_ERR_RANGE);
    CHECK_INT(shard_of(5, INT32_MIN, INT32_MIN, &first, &stride, &share), VP_ERR_RANGE);
    CHECK(first == 77 && stride == 77 && share == 77);
}
/* Strata: quotas are proportional to within one, and larger remainders come first; the draws match numpy's permutation, stratum by stratum. */
static void test_stratified(void) {
    enum { STRATA = 5, POPULATION = 60 };
    const uint32_t one_stratum[6] = {0};
    uint32_t stratum[POPULATION];
    int64_t scratch[POPULATION + 2 * STRATA], plain[POPULATION], shuffled[POPULATION];
    vp_random random, same;
    size_t kept = 0, i;
    check_case("stratified: one stratum is the plain choice");
    CHECK_INT(choose_stratified(66, one_stratum, 6, 1, 4, scratch, &kept), VP_OK);
    CHECK_INT(kept, 4);
    CHECK_INT(vp_sampler_dataset(66, 6, 4, plain, &kept), VP_OK);
    for (i = 0; i < 4; i++) CHECK_INT(scratch[i], plain[i]);
    check_case("stratified: 10 x a, 6 x b, 4 x c; 7 of 20 are 3.5, 2.1, 1.4: 4, 2, 1");
    for (i = 0; i < 20; i++) stratum[i] = i < 10 ? 0 : i < 16 ? 1 : 2;
    CHECK_INT(choose_stratified(3, stratum, 20, 3, 7, scratch, &kept), VP_OK);
    CHECK_INT(kept, 7);
    vp_random_seed(&same, 3);
    vp_random_permutation(&same, shuffled, 10);
    for (i = 0; i < 4; i++) plain[i] = shuffled[i];
    vp_random_permutation(&same, shuffled, 6);
    for (i = 0; i < 2; i++) plain[4 + i] = 10 + shuffled[i];
    vp_random_permutation(&same, shuffled, 4);
    plain[6] = 16 + shuffled[0];
    for (i = 0; i < 7; i++) {
        size_t k, below = 0;
        for (k = 0; k < 7; k++) below += plain[k] < plain[i];
        CHECK_INT(scratch[below], plain[i]);
    }
    check_case("stratified: equal remainders go to the lower stratum");
    for (i = 0; i < 4; i++) stratum[i] = (uint32_t)i;
    CHECK_INT(choose_stratified(9, stratum, 4, 4, 2, scratch, &kept), VP_OK);
    CHECK(scratch[0] == 0 && scratch[1] == 1);
    check_case("stratified: everything, nothing, rejections");
    CHECK_INT(choose_stratified(9, stratum, 4, 4, 5, scratch, &kept), VP_OK);
    CHECK(kept == 4 && scratch[3] == 3);
    CHECK_INT(choose_stratified(9, stratum, 4, 4, 0, scratch, &kept), VP_OK);
    CHECK_INT(kept, 0);
    kept = 77;
    CHECK_INT(choose_stratified(9, stratum, 4, 3, 2, scratch, &kept), VP_ERR_RANGE);
    CHECK_INT(kept, 77);
    vp_random_seed(&random, 2026);
    for (int round = 0; round < 300; round++) {
        const size_t population = 2 + (size_t)vp_random_below(&random, POPULATION - 2), count = (size_t)vp_random_below(&random, population - 1);
        size_t size[STRATA] = {0}, drawn[STRATA] = {0}, s;
        check_case("stratified, round %d of seed 2026", round);
        for (i = 0; i < population; i++) size[stratum[i] = (uint32_t)vp_random_below(&random, vp_random_below(&random, STRATA - 1))]++;
        CHECK_INT(choose_stratified(vp_random_u32(&random), stratum, population, STRATA, count, scratch, &kept), VP_OK);
        CHECK_INT(kept, count);
        for (i = 0; i < kept; i++) {
            if (!CHECK(scratch[i] >= 0 && scratch[i] < (int64_t)population && (!i || scratch[i] > scratch[i - 1]))) return;
            drawn[stratum[scratch[i]]]++;
        }
        for (s = 0; s < STRATA; s++) CHECK(drawn[s] * population + population > count * size[s] && drawn[s] * population < count * size[s] + population);
    }
}
int main(void) {
    RUN_TESTS(test_choice, test_dataset, test_stratified, test_draws, test_blocks, test_importance_files, test_errors,
              test_strategies, test_latin, test_more_knobs, test_grid_errors, test_shard);
    return check_done("test_sampler");
}
