/* front_drawing.c: a data set's accuracies against latencies, drawn in characters. */
#include "report/report_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 64, ROWS = 11 };

/* The lowest and highest value of an axis. */
struct ends { double low, high; int is_log; };

static struct ends ends_of(const double *values, const double *others, size_t count) {
    struct ends ends = {HUGE_VAL, -HUGE_VAL, 0};
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || !isfinite(others[i])) continue;
        if (values[i] < ends.low) ends.low = values[i];
        if (values[i] > ends.high) ends.high = values[i];
    }
    return ends;
}
/* The cell of a value among `cells`; the middle one if all values are equal. */
static int cell_of(const struct ends *ends, double value, int cells) {
    double share = ends->is_log ? log(value / ends->low) / log(ends->high / ends->low)
                                : (value - ends->low) / (ends->high - ends->low);
    return ends->high > ends->low ? (int)(share * (cells - 1) + 0.5) : cells / 2;
}
void front_drawing_add(struct document *document, const struct tradeoff *tradeoff, const char *latency_name) {
    static const char signs[] = "123456789abcdefghijklmnopqrstuvwxyz";
    const double *x = tradeoff->at_latency, *y = tradeoff->at_accuracy;
    struct ends across = ends_of(x, y, tradeoff->config_count), up = ends_of(y, x, tradeoff->config_count);
    char cells[ROWS][COLUMNS + 1], low[64];
    if (!(across.high > across.low)) return;
    across.is_log = across.low > 0 && across.high / across.low > 30;
    memset(cells, ' ', sizeof cells);
    for (size_t i = 0; i < tradeoff->config_count; i++)
        if (isfinite(x[i]) && isfinite(y[i]))
            cells[ROWS - 1 - cell_of(&up, y[i], ROWS)][cell_of(&across, x[i], COLUMNS)] = '.';
    for (size_t i = tradeoff->front_count; i-- > 0;) /* the fastest last: it is shown if several share a cell */
        cells[ROWS - 1 - cell_of(&up, y[tradeoff->front[i]], ROWS)][cell_of(&across, x[tradeoff->front[i]], COLUMNS)] =
            signs[i < sizeof signs - 2 ? i : sizeof signs - 2];
    for (int row = 0; row < ROWS; row++) {
        int width = COLUMNS;
        char number[64] = "";
        if (row == (up.high > up.low ? 0 : ROWS / 2)) snprintf(number, sizeof number, "%s", number_short(up.high).text);
        if (row == ROWS - 1 && up.high > up.low) snprintf(number, sizeof number, "%s", number_short(up.low).text);
        while (width && cells[row][width - 1] == ' ') width--;
        document_text(document, BLOCK_DRAWING, "%7.7s |%.*s", number, width, cells[row]);
    }
    document_text(document, BLOCK_DRAWING, "%7s +%.*s", "", (int)COLUMNS,
                  "----------------------------------------------------------------");
    snprintf(low, sizeof low, "%s", number_short(across.low).text);
    document_text(document, BLOCK_DRAWING, "%9s%s%*s", "", low, (int)(COLUMNS - strlen(low)),
                  number_short(across.high).text);
    document_text(document, BLOCK_DRAWING, "%9saccuracy against %s%s", "", latency_name,
                  across.is_log ? " (logarithmic)" : "");
    document_text(document, BLOCK_DRAWING, "%9s1, 2, ...: the front, in the order of the table; . others", "");
}
