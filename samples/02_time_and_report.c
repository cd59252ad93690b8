/* The header in a foreign program: no model, no GPU, no weights. It marks the stages of its own requests and prints a
 * result file with a row for each request, for `vlmprof report`, `best`, `policy`, `compare`, `fit` (see help library).
 * cc -I. -Iparts samples/02_time_and_report.c -lm && ./a.out > results.json && vlmprof report results.json */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_results.h"
#include <stdio.h>

enum { REQUESTS = 600, WARMUP = 20, SIDE = 64, STAGES = 3 };
static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
static vp_stage_mark marks[REQUESTS * STAGES];
static char text[150000];

/* one request of two stages: new inputs, and the product of two small matrices, which plays the part of the prefill */
static void answer(vp_stage_clock *clock, int request) {
    vp_stage_begin(clock, "request");
    vp_stage_begin(clock, "preprocess");
    for (int i = 0; i < SIDE * SIDE; i++) { a[i] = (float)((i + request) % 7); b[i] = (float)(i % 5); }
    vp_stage_end(clock);
    vp_stage_begin(clock, "prefill");
    for (int i = 0; i < SIDE * SIDE; i++) c[i] = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        for (int k = 0; k < SIDE; k++) c[i] += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
    vp_stage_end(clock);
    vp_stage_end(clock);
}
int main(void) {
    vp_stage_clock cold = vp_stage_clock_over(NULL, 0), clock = vp_stage_clock_over(marks, REQUESTS * STAGES);
    const vp_results_knob side = {"side", VP_KNOB_NUMBER, SIDE, NULL, "rows"};
    vp_results_head head = vp_results_head_default();
    vp_json_writer writer;

    for (int i = 0; i < WARMUP; i++) answer(&cold, i); /* cold requests are not mixed with warm ones */
    for (int i = 0; i < REQUESTS; i++) answer(&clock, i);
    vp_json_writer_init(&writer, text, sizeof text, 2);
    head.dataset_name = "products", head.model = "sample 02"; /* only files of one data set are compared */
    head.knobs = &side, head.knob_count = 1;
    vp_results_begin(&writer, &head);
    for (int i = 0; i < REQUESTS; i++) {
        vp_results_stage stages[STAGES];
        vp_results_row row = vp_results_row_default();
        row.sample_number = i;
        row.total_ns = marks[i * STAGES].end_ns - marks[i * STAGES].begin_ns;
        row.stages = stages;
        row.stage_count = vp_results_stages(&clock, (size_t)i * STAGES, stages, STAGES);
        row.accuracy = c[SIDE + 1] > 0; /* (also keeps the product from being optimised away) */
        vp_results_add(&writer, &row);
    }
    return vp_results_end(&writer) == VP_OK && puts(text) >= 0 ? 0 : 1;
}
