/* The header in a foreign program: no model, no GPU, no weights. It times a piece of its own code and prints the
 * statistics as JSON.
 * cc -I. samples/02_time_and_report.c -lm && ./a.out */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include <stdio.h>

enum { RUNS = 200, WARMUP = 20, SIDE = 64 };

/* the code to be measured: one product of two small matrices */
static void multiply(const float *a, const float *b, float *c) {
    int i, j, k;
    for (i = 0; i < SIDE; i++)
        for (j = 0; j < SIDE; j++) {
            float sum = 0;
            for (k = 0; k < SIDE; k++) sum += a[i * SIDE + k] * b[k * SIDE + j];
            c[i * SIDE + j] = sum;
        }
}

int main(void) {
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    double latency_us[RUNS], scratch[RUNS];
    vp_statistics statistics;
    vp_json_writer writer;
    char text[1024];
    int i;

    for (i = 0; i < SIDE * SIDE; i++) { a[i] = (float)(i % 7); b[i] = (float)(i % 5); }
    for (i = -WARMUP; i < RUNS; i++) { /* the cold runs are not mixed with the warm ones */
        int64_t start_ns = vp_clock_ns();
        multiply(a, b, c);
        if (i >= 0) latency_us[i] = (double)(vp_clock_ns() - start_ns) * 1e-3;
    }
    if (vp_statistics_compute(latency_us, RUNS, scratch, &statistics) != VP_OK) return 1;

    vp_json_writer_init(&writer, text, sizeof text, 2);
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "what");     vp_json_string(&writer, "product of two 64 x 64 matrices");
    vp_json_key(&writer, "count");    vp_json_int(&writer, (int64_t)statistics.count);
    /* keeps the product from being optimised away */
    vp_json_key(&writer, "checksum"); vp_json_double(&writer, (double)c[SIDE + 1]);
    vp_json_key(&writer, "unit");     vp_json_string(&writer, "us");
    vp_json_key(&writer, "mean");     vp_json_double(&writer, statistics.mean);
    vp_json_key(&writer, "std");      vp_json_double(&writer, statistics.std);
    vp_json_key(&writer, "min");      vp_json_double(&writer, statistics.min);
    vp_json_key(&writer, "p50");      vp_json_double(&writer, statistics.p50);
    vp_json_key(&writer, "p95");      vp_json_double(&writer, statistics.p95);
    vp_json_key(&writer, "p99");      vp_json_double(&writer, statistics.p99);
    vp_json_key(&writer, "max");      vp_json_double(&writer, statistics.max);
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) != VP_OK) return 1;
    puts(text);
    return 0;
}
