/* test_sampler.c: random draws are numpy's, number for number (golden/sampler), and the choice of blocks is the experiments'. */
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"
#include "scan.h"

static char *golden_text(const char *relative) {
    char *text = check_read(check_golden(relative), NULL);
    check_note(text != NULL, __FILE__, __LINE__, "%s is missing", relative);
    return text;
}

static void test_choice(void) {
    char *text;
    const char *p;
    int entries = 0;
    check_case("choice.json: choice without replacement in drawing order");
    text = golden_text("sampler/choice.json");
    for (p = text; p && (p = strchr(p, '{')) != NULL; entries++) {
        const char *indices = scan_key(p, "indices", NULL);
        const size_t population = (size_t)scan_number(p, "n", NULL), count = (size_t)scan_number(p, "k", NULL);
        const uint32_t seed = (uint32_t)scan_number(p, "seed", NULL);
        size_t got, i;
        double *want = scan_numbers(indices, &got);
        int64_t *scratch = (int64_t *)malloc((population + 1) * sizeof *scratch);
        scratch[population] = -77; /* a fence */
        CHECK_INT(got, count);
        CHECK_INT(vp_sampler_choice(seed, population, count, scratch), VP_OK);
        for (i = 0; i < count; i++) CHECK_INT(scratch[i], want[i]);
        CHECK_INT(scratch[population], -77);
        free(want);
        free(scratch);
        p = scan_close(p);
    }
    CHECK_INT(entries, 30);
    free(text);
}

static void test_dataset(void) {
    char *text;
    const char *p;
    int entries = 0;
    check_case("sampled_dataset.json: the experiments' samples");
    text = golden_text("sampler/sampled_dataset.json");
    for (p = text; p && (p = strchr(p, '{')) != NULL; entries++) {
        const size_t population = (size_t)scan_number(p, "n", NULL);
        const char *samples = scan_key(p, "num_samples", NULL), *list = scan_key(p, "kept", NULL);
        const size_t count = *samples == 'n' ? SIZE_MAX : (size_t)strtod(samples, NULL);
        int64_t *scratch = (int64_t *)malloc(population * sizeof *scratch);
        size_t kept = 12345, i, wanted = population;
        double *want = *list == '[' ? scan_numbers(list, &wanted) : NULL;
        CHECK_INT(vp_sampler_dataset((uint32_t)scan_number(p, "seed", NULL), population, count, scratch, &kept), VP_OK);
        CHECK_INT(kept, wanted);
        for (i = 0; i < kept && i < wanted; i++) CHECK_INT(scratch[i], want ? want[i] : (double)i);
        free(want);
        free(scratch);
        p = scan_close(p);
    }
    CHECK_INT(entries, 6);
    free(text);
}

/* every object of one list of draws.json: calls the given draw once per value and compares */
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
        free(want);
        free(got);
        p = scan_close(p);
    }
    CHECK_INT(entries, expected);
}

/* several kinds of draws in turn on one generator: none may use up a number more or less than numpy */
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
    char *text;
    const char *p;
    check_case("draws.json: words, doubles, bounded draws");
    text = golden_text("sampler/draws.json");
    if (!text) return;
    CHECK_INT(draws_of(text, "raw_uint32", draw_u32), 2);
    CHECK_INT(draws_of(text, "random_sample", draw_double), 3);
    CHECK_INT(draws_of(text, "randint_0_n", draw_below), 8);
    check_case("draws.json: permutations and shuffles");
    permutations_of(text, "permutation", 6);
    permutations_of(text, "shuffle_of_list", 3);
    check_case("draws.json: calls in turn on one generator");
    p = scan_key(text, "mixed_sequence", NULL);
    for (p = scan_key(p, "calls", NULL); p; p = scan_key(p, "calls", NULL)) mixed_calls(p);
    check_case("edges of the bounded draw");
    {
        vp_random random, before;
        vp_random_seed(&random, 5);
        before = random;
        CHECK(vp_random_below(&random, 0) == 0);
        CHECK(memcmp(&random, &before, sizeof random) == 0); /* 0 draws nothing */
        CHECK(vp_random_below(&random, UINT64_MAX) > 0xffffffffu);
        CHECK_INT(random.position, 2);
        CHECK(vp_random_below(&random, 0xffffffffu) <= 0xffffffffu);
        CHECK_INT(random.position, 3);
        random.position = -5; /* a damaged generator refills, it does not read elsewhere */
        vp_random_u32(&random);
        CHECK_INT(random.position, 1);
        random.position = 700;
        vp_random_u32(&random);
        CHECK_INT(random.position, 1);
    }
    free(text);
}

/* scores of one entry of blocks.json; 0 when there are none */
static int blocks_scores(const char *entry, int32_t total, double *scores, int32_t *order) {
    const char *list = scan_key(entry, "scores", NULL);
    size_t count, i;
    double *pairs;
    for (i = 0; i < (size_t)total; i++) {
        scores[i] = (double)NAN;
        order[i] = total;
    }
    if (*list != '[') return 0;
    pairs = scan_numbers(list, &count);
    for (i = 0; i + 1 < count; i += 2) {
        scores[(int)pairs[i]] = pairs[i + 1];
        order[(int)pairs[i]] = (int32_t)(i / 2);
    }
    free(pairs);
    return 1;
}

static void test_blocks(void) {
    enum { TOTAL = 16 };
    char *text;
    const char *p, *end;
    int entries = 0, equal = 0, refused = 0;
    check_case("blocks.json: importance");
    text = golden_text("sampler/blocks.json");
    p = text ? scan_key(text, "importance", NULL) : NULL;
    end = p ? scan_close(p) : NULL;
    for (; p && (p = strchr(p, '{')) != NULL && p < end; p = scan_close(p), entries++) {
        const int32_t active = (int32_t)scan_number(p, "num_active", NULL);
        const char *list = scan_key(p, "blocks", NULL);
        double scores[TOTAL];
        int32_t order[TOTAL], blocks[TOTAL + 1], poison = -77;
        const int scored = blocks_scores(p, TOTAL, scores, order);
        vp_result result;
        size_t count = 0, i;
        double *want;
        CHECK_INT(scan_number(p, "total", NULL), TOTAL);
        if (*list != '[') { /* the reference dies on a log message here (active <= 2 on rank 0); rank 1's answer is the next entry */
            CHECK(active <= 2);
            continue;
        }
        want = scan_numbers(list, &count);
        for (i = 0; i <= TOTAL; i++) blocks[i] = poison;
        result = vp_sampler_blocks(TOTAL, active, scored ? scores : NULL, scored ? order : NULL, blocks);
        if (active > TOTAL) { /* known difference: the reference cuts in silence */
            CHECK_INT(result, VP_ERR_RANGE);
            refused++;
        } else if ((int32_t)count < active) { /* known difference: too few scores, the reference gives fewer blocks than asked */
            CHECK_INT(result, VP_ERR_MISMATCH);
            CHECK_INT(blocks[0], poison);
            refused++;
        } else {
            CHECK_INT(result, VP_OK);
            for (i = 0; i < (size_t)active; i++) CHECK_INT(blocks[i], want[i]); /* active 1: the reference gives [0, 15], we [0] */
            CHECK_INT(blocks[active], poison);
            equal++;
        }
        free(want);
    }
    CHECK_INT(entries, 204);
    CHECK_INT(refused, 6 * 2 + 12 * 2);
    CHECK_INT(equal, 204 - 36 - 8); /* 8: died */
    free(text);
}

static void test_errors(void) {
    int64_t scratch[4] = {9, 9, 9, 9};
    int32_t blocks[4] = {7, 7, 7, 7};
    const int32_t order[4] = {0, 2, 1, 3};
    double scores[4] = {(double)NAN, 1, (double)NAN, (double)NAN};
    size_t kept = 5;
    check_case("sampler refuses what cannot be");
    CHECK_INT(vp_sampler_choice(1, 3, 4, scratch), VP_ERR_RANGE);
    CHECK_INT(scratch[0], 9);
    CHECK_INT(vp_sampler_choice(1, 0, 0, scratch), VP_OK);
    CHECK_INT(vp_sampler_dataset(1, 0, 5, scratch, &kept), VP_OK);
    CHECK_INT(kept, 0);
    CHECK_INT(scratch[0], 9);
    CHECK_INT(vp_sampler_blocks(4, 0, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(vp_sampler_blocks(4, 5, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(vp_sampler_blocks(0, 0, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(vp_sampler_blocks(INT32_MIN, INT32_MIN, NULL, NULL, blocks), VP_ERR_RANGE);
    CHECK_INT(vp_sampler_blocks(4, 4, scores, NULL, blocks), VP_ERR_MISMATCH);
    CHECK(blocks[0] == 7 && blocks[3] == 7);
    CHECK_INT(vp_sampler_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1 && blocks[2] == 3 && blocks[3] == 7);
    CHECK_INT(vp_sampler_blocks(1, 1, scores + 1, NULL, blocks), VP_OK);
    CHECK_INT(blocks[0], 0);
    CHECK_INT(vp_sampler_blocks(2, 2, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1);
    scores[1] = scores[2] = 1; /* a tie: the file's order, or the index */
    CHECK_INT(vp_sampler_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK_INT(blocks[1], 1);
    CHECK_INT(vp_sampler_blocks(4, 3, scores, order, blocks), VP_OK);
    CHECK_INT(blocks[1], 2);
    scores[0] = scores[1] = scores[2] = scores[3] = (double)NAN; /* nothing but NaN is no file */
    CHECK_INT(vp_sampler_blocks(4, 2, scores, NULL, blocks), VP_OK);
    CHECK(blocks[0] == 0 && blocks[1] == 1);
    scores[1] = -(double)INFINITY; /* the worst score is still a score */
    scores[2] = (double)INFINITY;
    CHECK_INT(vp_sampler_blocks(4, 4, scores, NULL, blocks), VP_OK);
    CHECK(blocks[1] == 1 && blocks[2] == 2);
    CHECK_INT(vp_sampler_blocks(4, 3, scores, NULL, blocks), VP_OK);
    CHECK_INT(blocks[1], 2);
}

/* Random sizes: a choice is a permutation's beginning, a data set sample is ascending without repeats, no unchosen block beats a chosen one. */
static void test_property(void) {
    enum { MOST = 300 };
    const uint32_t seed = 20261121;
    vp_random random;
    int round;
    check_case("property: random sizes (seed %u)", (unsigned)seed);
    vp_random_seed(&random, seed);
    for (round = 0; round < 500; round++) {
        const size_t population = 1 + (size_t)vp_random_below(&random, MOST - 1), count = (size_t)vp_random_below(&random, population);
        const int32_t block_count = 3 + (int32_t)vp_random_below(&random, 40);
        const int32_t active = 2 + (int32_t)vp_random_below(&random, (uint64_t)block_count - 2);
        unsigned char seen[MOST] = {0};
        int64_t scratch[MOST];
        double scores[64];
        int32_t blocks[64], a, b;
        size_t kept, i;
        CHECK_INT(vp_sampler_choice(vp_random_u32(&random), population, count, scratch), VP_OK);
        for (i = 0; i < population; i++) {
            CHECK(scratch[i] >= 0 && scratch[i] < (int64_t)population && !seen[scratch[i]]);
            seen[scratch[i]] = 1;
        }
        CHECK_INT(vp_sampler_dataset(vp_random_u32(&random), population, count, scratch, &kept), VP_OK);
        CHECK_INT(kept, count);
        for (i = 1; i < kept; i++) CHECK(scratch[i] > scratch[i - 1]);
        for (a = 0; a < block_count; a++) scores[a] = (double)vp_random_below(&random, 9);
        memset(seen, 0, sizeof seen);
        CHECK_INT(vp_sampler_blocks(block_count, active, scores, NULL, blocks), VP_OK);
        for (a = 0; a < active; a++) {
            CHECK(blocks[a] >= 0 && blocks[a] < block_count && (a == 0 || blocks[a] > blocks[a - 1]));
            seen[blocks[a]] = 1;
        }
        CHECK(seen[0] && seen[block_count - 1]);
        for (a = 1; a + 1 < block_count; a++) {
            for (b = 1; b + 1 < block_count; b++) {
                if (seen[a] && !seen[b]) CHECK(scores[a] > scores[b] || (scores[a] == scores[b] && a < b));
            }
        }
    }
}

int main(void) {
    test_choice();
    test_dataset();
    test_draws();
    test_blocks();
    test_errors();
    test_property();
    return check_done("test_sampler");
}
