/* score_circles.c: MMBench's circular rows (VLMEvalKit e8e78f05, dataset/utils/multiple_choice.py).
 * The interval of the mean is by bootstrap over questions. */
#include "score/score_circles.h"

#include "base/console.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CIRCLE_DRAWS = 1000, CIRCLE_SEED = 42 };

const char *score_circular(struct scoring *scoring, const vp_json *json, uint32_t rows, double *score, int *undecided) {
    int wrong = 0, missing = 0, right = 0;
    *score = (double)NAN;
    for (uint32_t i = rows + 1; i < json->nodes[rows].end; i = json->nodes[i].end) {
        vp_score_outcome outcome;
        const char *trouble;
        char *prediction;
        if (!node_is(json, i, VP_JSON_OBJECT)) return "a row of \"rows\" must be an object";
        scoring_clear(scoring);
        if ((prediction = node_text(json, vp_json_get(json, i, "prediction"))) == NULL)
            return "a row has no prediction";
        scoring->sample.prediction = scoring_own(scoring, prediction);
        if ((trouble = scoring_read(scoring, VP_SCORE_MCQ_CIRCULAR_VK, json, i)) != NULL) return trouble;
        if (scoring_run(scoring, VP_SCORE_MCQ_CIRCULAR_VK, VP_SCORE_CLEAN_NONE, &outcome) != VP_OK)
            return "a row cannot be scored";
        if (outcome.score == 1) right++;
        else if (outcome.is_unread == 1) missing++;
        else wrong++;
    }
    if (!right && !wrong && !missing) return "\"rows\" is empty";
    *score = !wrong && !missing;
    *undecided = !wrong && missing;
    return NULL;
}
/* Reads an integer, stored as a number or as a text. */
static int whole_member(const vp_json *json, uint32_t node, const char *key, int64_t *value) {
    uint32_t member = vp_json_get(json, node, key);
    char *text, *end = NULL;
    if (vp_json_to_int(json, member, value) == VP_OK) return 1;
    if ((text = node_text(json, member)) != NULL) *value = strtoll(text, &end, 10);
    member = end && end > text && (!*end || !strcmp(end, ".0")); /* a column of numbers with a gap has 7.0 */
    free(text);
    return (int)member;
}
void circles_add(struct circles *circles, const vp_json *json, uint32_t node, double score) {
    static const char *const keys[] = {"g_index", "index", "id"};
    int64_t key = (int64_t)circles->count;
    size_t i = 0;
    while (i < 3 && !whole_member(json, node, keys[i], &key)) i++;
    if (i == 1 || i == 2) key %= 1000000;
    if (circles->count == circles->capacity) {
        circles->capacity = circles->capacity * 2 + 256;
        circles->items = resize(circles->items, circles->capacity, sizeof *circles->items);
    }
    circles->items[circles->count].key = key;
    circles->items[circles->count++].is_right = score == 1;
}
COMPARE_BY(by_key, struct circle, key)
double circles_mean(struct circles *circles, double *low, double *high) {
    double *draws = resize(NULL, CIRCLE_DRAWS, sizeof *draws), sum = 0;
    size_t kept = 0;
    vp_random random;
    qsort(circles->items, circles->count, sizeof *circles->items, by_key);
    for (size_t i = 0; i < circles->count; i++) {
        if (kept && circles->items[kept - 1].key == circles->items[i].key)
            circles->items[kept - 1].is_right &= circles->items[i].is_right;
        else circles->items[kept++] = circles->items[i];
    }
    circles->count = kept;
    for (size_t i = 0; i < kept; i++) sum += circles->items[i].is_right;
    vp_random_seed(&random, CIRCLE_SEED);
    for (size_t draw = 0; draw < CIRCLE_DRAWS; draw++) {
        draws[draw] = 0;
        for (size_t i = 0; i < kept; i++)
            draws[draw] += circles->items[(size_t)(vp_random_double(&random) * (double)kept)].is_right;
        draws[draw] /= (double)kept;
    }
    vp_sort_double(draws, CIRCLE_DRAWS);
    *low = vp_statistics_percentile(draws, CIRCLE_DRAWS, 2.5);
    *high = vp_statistics_percentile(draws, CIRCLE_DRAWS, 97.5);
    free(draws);
    return sum / (double)kept;
}
void circles_put(vp_json_writer *writer, struct circles *circles) {
    double low, high, mean;
    if (!circles->count) return;
    mean = circles_mean(circles, &low, &high);
    PUT(writer, KEY("groups", (int64_t)circles->count), KEY("group_mean", mean));
    put_interval(writer, "group_interval", 1, low, high);
}
void circles_print(struct circles *circles) {
    double low, high, mean;
    if (!circles->count) return;
    mean = circles_mean(circles, &low, &high);
    print_note(
        "vlmprof: %zu questions, right if all circular rows are right: mean %.6f, 95 %% interval %.6f to %.6f "
        "(bootstrap over questions)\n",
        circles->count, mean, low, high);
}
void circles_free(struct circles *circles) { free(circles->items); }
