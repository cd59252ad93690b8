/* load_accuracy.c: does a server answer worse under load? Requests of one sample are not independent, so each sample
 * counts once, with the mean of its scores. */
#include "load/load_accuracy.h"

#include "base/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The mean score of each sample, in ascending order of id. */
struct scores { int64_t *ids; double *means; size_t count; };
static void scores_free(struct scores *scores) {
    FREE_ALL(scores->ids, scores->means);
}
COMPARE_BY(by_sample, struct load_request, sample_id)
static int scores_read(struct scores *scores, const struct load_level *level) {
    struct load_request *requests;
    size_t count, kept = 0;
    double *sums;
    const int code = load_level_requests(level, &requests, &count);
    memset(scores, 0, sizeof *scores);
    if (code) return code;
    if (count) qsort(requests, count, sizeof *requests, by_sample);
    scores->ids = zeroed(count + 1, sizeof *scores->ids);
    scores->means = zeroed(count + 1, sizeof *scores->means);
    sums = zeroed(count + 1, sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        const struct load_record *record = &requests[i].record;
        const double due_s = (double)record->due_ns / 1e9;
        if (!isfinite(record->accuracy) || due_s < level->summary.from_s || due_s >= level->summary.to_s) continue;
        if (!kept || scores->ids[kept - 1] != requests[i].sample_id) scores->ids[kept++] = requests[i].sample_id;
        scores->means[kept - 1] += record->accuracy;
        sums[kept - 1]++;
    }
    for (size_t i = 0; i < kept; i++) scores->means[i] /= sums[i];
    scores->count = kept;
    free(sums);
    load_requests_free(requests, count);
    return 0;
}
const struct load_level *load_unloaded_of(const struct load_level *level, const struct load_level *levels,
                                          size_t count) {
    for (size_t i = 0; i < count; i++)
        if (levels[i].concurrency == 1 && &levels[i] != level
            && (!levels[i].plan || !level->plan || !strcmp(levels[i].plan, level->plan)))
            return &levels[i];
    return NULL;
}
int load_accuracy_change(const struct load_level *unloaded, const struct load_level *level,
                         vp_bounded_interval *change) {
    struct scores before, after;
    size_t pairs = 0, bytes;
    void *scratch;
    int code;
    *change = (vp_bounded_interval){0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if ((code = scores_read(&before, unloaded)) != 0) return code;
    if ((code = scores_read(&after, level)) != 0) {
        scores_free(&before);
        return code;
    }
    for (size_t i = 0, k = 0; i < before.count && k < after.count;) {
        if (before.ids[i] != after.ids[k]) {
            if (before.ids[i] < after.ids[k]) i++; else k++;
            continue;
        }
        before.means[pairs] = before.means[i++];
        after.means[pairs++] = after.means[k++];
    }
    bytes = vp_bounded_scratch_bytes(pairs);
    scratch = resize(NULL, bytes + 1, 1);
    if (pairs && vp_accuracy_interval(before.means, after.means, pairs, 0, 1, 0.95, scratch, bytes, change) != VP_OK)
        change->count = 0;
    free(scratch);
    scores_free(&before);
    scores_free(&after);
    return 0;
}

struct accuracy_row {
    char trial[48];
    int64_t answers;
    vp_estimate accuracy, change, correct;
    int64_t samples;
};
#define ROW(member) CELL(struct accuracy_row, member)
static const struct table_column COLUMNS[] = {
    {ROW(trial), NULL, "trial"}, {ROW(answers), NULL, "answers scored"},
    {CELL_ESTIMATE(struct accuracy_row, accuracy), NULL, "accuracy", .is_measured = 1},
    {CELL_ESTIMATE(struct accuracy_row, change), NULL, "change by load", .is_measured = 1},
    {ROW(samples), NULL, "over samples", .rules = COLUMN_FROM_0},
    {CELL_ESTIMATE(struct accuracy_row, correct), NULL, "good and right, per second", .is_measured = 1}};

int load_accuracy_add(struct document *document, const struct load_level *levels, size_t count) {
    struct accuracy_row *rows = zeroed(count, sizeof *rows);
    struct table table = TABLE(COLUMNS, rows, 0, NULL, 0);
    int code = 0, has_unloaded = 0;
    for (size_t i = 0; i < count && !code; i++) {
        const struct load_level *level = &levels[i], *unloaded = load_unloaded_of(level, levels, count);
        const struct load_summary *summary = &level->summary;
        struct accuracy_row *row = &rows[table.row_count];
        vp_bounded_interval change = {0, 0, 0, 0, 0};
        if (!summary->accuracy_count) continue;
        table.row_count++;
        has_unloaded |= unloaded != NULL;
        if (unloaded) code = load_accuracy_change(unloaded, level, &change);
        load_level_text(level, row->trial);
        row->answers = summary->accuracy_count;
        row->accuracy = summary->accuracy;
        row->change = change.count ? (vp_estimate){change.mean, change.low, change.high} : estimate_none();
        row->samples = change.count ? (int64_t)change.count : -1;
        row->correct = (vp_estimate){summary->correct, summary->correct_low, summary->correct_high};
    }
    if (!code && table.row_count) {
        document_add_table(document, &table);
        document_text(document, BLOCK_LINE,
                      "right: a score of at least %g; accuracy: over these samples, its interval allows for other "
                      "answers to them; change: from concurrency 1, each sample counts once%s",
                      LOAD_RIGHT_SCORE, has_unloaded ? "" : " (--unloaded measures it)");
    }
    free(rows);
    return code;
}
