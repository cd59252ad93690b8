/* score_pairs.c: compares the scores of two answer files, paired by the ids of their rows. */
#include "score/score_pairs.h"

#include "base/console.h"

#include <math.h>
#include <stdlib.h>

void pairs_add(struct pairs *pairs, const vp_json *json, double score) {
    uint32_t id = vp_json_get(json, 0, "id");
    if (id == VP_JSON_NONE || !isfinite(score)) return;
    if (pairs->count == pairs->capacity) {
        pairs->capacity = pairs->capacity * 2 + 1024;
        pairs->rows = resize(pairs->rows, pairs->capacity, sizeof *pairs->rows);
    }
    pairs->rows[pairs->count].id =
        hash_bytes(HASH_START, json->text + json->nodes[id].start, (size_t)json->nodes[id].bytes);
    pairs->rows[pairs->count].row = pairs->count;
    pairs->rows[pairs->count++].score = score;
}
static int by_id(const void *left_item, const void *right_item) {
    const struct scored *left = (const struct scored *)left_item, *right = (const struct scored *)right_item;
    if (left->id != right->id) return left->id > right->id ? 1 : -1;
    return (left->row > right->row) - (left->row < right->row); /* equal ids are paired in their order */
}
static size_t repeated_ids(const struct pairs *pairs) {
    uint64_t *ids = resize(NULL, pairs->count + 1, sizeof *ids);
    size_t count;
    for (size_t i = 0; i < pairs->count; i++) ids[i] = pairs->rows[i].id;
    count = count_repeated(ids, pairs->count);
    free(ids);
    return count;
}
int pairs_join(struct pairs *pairs, struct pairs *baseline, const char *name, const char *baseline_name) {
    if (pairs->count) qsort(pairs->rows, pairs->count, sizeof *pairs->rows, by_id);
    if (baseline->count) qsort(baseline->rows, baseline->count, sizeof *baseline->rows, by_id);
    pairs->first = resize(NULL, pairs->count + 1, sizeof *pairs->first);
    pairs->second = resize(NULL, pairs->count + 1, sizeof *pairs->second);
    for (size_t i = 0, k = 0; i < pairs->count && k < baseline->count;) {
        if (pairs->rows[i].id < baseline->rows[k].id) i++;
        else if (pairs->rows[i].id > baseline->rows[k].id) k++;
        else {
            pairs->first[pairs->joined] = baseline->rows[k++].score;
            pairs->second[pairs->joined++] = pairs->rows[i++].score;
        }
    }
    pairs->alone = pairs->count - pairs->joined;
    pairs->baseline_alone = baseline->count - pairs->joined;
    pairs->repeated = repeated_ids(pairs) + repeated_ids(baseline);
    return pairs->joined
               ? 0
               : complain(EXIT_INPUT, "--baseline %s: no row has the id of a scored row of %s", baseline_name, name);
}
static int estimate(const struct pairs *pairs, vp_paired *paired) {
    double *scratch = resize(NULL, pairs->joined + 1, sizeof *scratch);
    int good = vp_statistics_paired(pairs->first, pairs->second, pairs->joined, scratch, paired) == VP_OK;
    free(scratch);
    return good;
}
void pairs_put(vp_json_writer *writer, const struct pairs *pairs) {
    vp_paired paired;
    if (!estimate(pairs, &paired)) return;
    PUT(writer, KEY("pairs", (int64_t)pairs->joined), KEY("difference", paired.mean.value));
    put_interval(writer, "difference_interval", paired.mean.low < paired.mean.high, paired.mean.low, paired.mean.high);
    PUT(writer, KEY("unpaired", pairs->alone), KEY("unpaired_baseline", pairs->baseline_alone),
        KEY("repeated_ids", pairs->repeated));
}
void pairs_print(const struct pairs *pairs) {
    vp_paired paired;
    size_t better = 0, worse = 0;
    if (!estimate(pairs, &paired)) return;
    for (size_t i = 0; i < pairs->joined; i++) {
        better += pairs->second[i] > pairs->first[i];
        worse += pairs->second[i] < pairs->first[i];
    }
    print_note("vlmprof: against the baseline over %zu pair%s: mean difference %+.6f, ", pairs->joined,
               plural_s((int64_t)pairs->joined), paired.mean.value);
    if (paired.mean.low < paired.mean.high)
        print_note("95 %% interval %+.6f to %+.6f (paired)", paired.mean.low, paired.mean.high);
    else print_note("too few different pairs for an interval");
    print_note("; %zu rows better, %zu worse\n", better, worse);
    if (pairs->alone || pairs->baseline_alone)
        print_note("vlmprof: left out: %zu scored row%s of the file and %zu of the baseline, without a partner\n",
                   pairs->alone, plural_s((int64_t)pairs->alone), pairs->baseline_alone);
    if (pairs->repeated)
        print_note("vlmprof: %zu id%s more than once in a file; such rows are paired in their order\n", pairs->repeated,
                   pairs->repeated == 1 ? " is" : "s are");
}
void pairs_free(struct pairs *pairs) {
    FREE_ALL(pairs->rows, pairs->first, pairs->second);
}
