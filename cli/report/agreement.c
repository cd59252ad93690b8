/* agreement.c: how near each configuration is to its baseline (sweep --baseline): a table and its words. */
#include "report/agreement.h"

#include "report/report.h"
#include "results/metrics.h"

static void cell_file(const void *row, const void *context, struct json_member *cell, char own[CELL_BYTES]) {
    cell_set_text(cell, report_full_name((const struct results *)context, (const struct result_file *)row, own));
}
#define AGAINST(member) CELL(struct result_file, fidelity.member)
#define AGAINST_RANGE(member, interval) \
    CELL_RANGE(struct result_file, fidelity.member, fidelity.interval.low, fidelity.interval.high)
enum { OF_SERVER = 1 };
static const struct table_column AGREEMENTS[] = {
    {CELL_MADE(cell_file), NULL, "configuration"},
    {AGAINST_RANGE(kl_divergence_mean, kl_divergence_mean_interval), NULL, "KL divergence, nats"},
    {AGAINST(kl_divergence_mean_at_most), NULL, "at most", .in = OF_SERVER},
    {AGAINST(kl_divergence_median), NULL, "median"}, {AGAINST(kl_divergence_p99), NULL, "P99"},
    {AGAINST(kl_divergence_max), NULL, "max"},
    {AGAINST_RANGE(top1_agreement, top1_agreement_interval), NULL, "top1_agreement"},
    {AGAINST_RANGE(answer_agreement, answer_agreement_interval), NULL, "answer_agreement"},
    {AGAINST(first_difference_index), NULL, "first difference"},
    {AGAINST(first_difference_baseline_margin), NULL, "margin, nats"},
    {AGAINST(first_difference_margin), NULL, "own margin"}, {AGAINST(num_ties), NULL, "ties"},
    {AGAINST(fidelity_count), NULL, "samples"}};

static const struct result_file *first_of(const struct results *results, size_t group) {
    return &results->files[results->groups[group].first];
}
struct table agreement_table(const struct results *results, size_t group) {
    const struct result_file *first = first_of(results, group);
    return (struct table)TABLE(AGREEMENTS, first, results->groups[group].count, results,
                                first->is_served ? OF_SERVER : 0);
}
void agreement_notes(struct text_list *notes, const struct results *results, size_t group) {
    text_list_add(notes, "%s; first difference: its token, from 0, median; ties: answers that part at a margin below %g",
                  FIDELITY_TEXT, TIE_NATS);
    if (first_of(results, group)->is_served)
        text_list_add(notes, "a server shows its likeliest tokens alone: KL divergences are lower bounds, up to the "
                             "first token that differs");
}
