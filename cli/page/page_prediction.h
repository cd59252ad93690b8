/* page_prediction.h: the page's section of predicted against measured latency (E3). */
#ifndef VLMPROF_CLI_PAGE_PREDICTION_H
#define VLMPROF_CLI_PAGE_PREDICTION_H
#include "base/memory.h"
#include "report/report.h"

/* The plots: the total and each stage, predicted by models that never saw the configuration. */
void page_predictions(struct text_buffer *out, const struct report *report);

#endif
