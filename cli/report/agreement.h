/* agreement.h: how near each configuration is to its baseline (sweep --baseline): a table and its words. */
#ifndef VLMPROF_CLI_AGREEMENT_H
#define VLMPROF_CLI_AGREEMENT_H
#include "base/table.h"
#include "results/result_read.h"

/* A row for each configuration of a data set. */
struct table agreement_table(const struct results *results, size_t group);

/* Adds what the columns are; of servers also what they cannot show. */
void agreement_notes(struct text_list *notes, const struct results *results, size_t group);

#endif
