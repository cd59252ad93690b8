/* page_prediction.h: the page's section about predicted and measured latency (E3). */
#ifndef VLMPROF_CLI_PAGE_PREDICTION_H
#define VLMPROF_CLI_PAGE_PREDICTION_H
#include "base/memory.h"
#include "report/report.h"

/* Adds the plots of the total and each stage, predicted by models that never saw the configuration. */
void page_predictions(struct text_buffer *out, const struct report *report);

#endif
