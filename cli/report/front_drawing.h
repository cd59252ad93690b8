/* front_drawing.h: a data set's accuracies against latencies, drawn in characters. */
#ifndef VLMPROF_CLI_FRONT_DRAWING_H
#define VLMPROF_CLI_FRONT_DRAWING_H
#include "base/document.h"
#include "report/tradeoff.h"

/* Adds a drawing of at most 80 columns. Configurations on the front are 1 to 9, then a to z, in the order of the front;
 * others are dots. Adds nothing if all have the same latency, or none has both values. */
void front_drawing_add(struct document *document, const struct tradeoff *tradeoff, const char *latency_name);

#endif
