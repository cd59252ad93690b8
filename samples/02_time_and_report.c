/* The header in a foreign program: no model, no GPU, no weights. It marks the stages of its own requests and prints
 * their statistics and a row for each request as JSON. That is a result file: `vlmprof report`, `best` and `compare`
 * read it (vlmprof help library has the keys).
 * cc -I. samples/02_time_and_report.c -lm && ./a.out > results.json && vlmprof report results.json */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include <stdio.h>

enum { REQUESTS = 200, WARMUP = 20, SIDE = 64, STAGES = 3 };
static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];

/* two stages to be measured: new inputs, and the product of two small matrices */
static void fill(int request) {
    int i;
    for (i = 0; i < SIDE * SIDE; i++) { a[i] = (float)((i + request) % 7); b[i] = (float)(i % 5); }
}
static void multiply(void) {
    int i, j, k;
    for (i = 0; i < SIDE; i++)
        for (j = 0; j < SIDE; j++) {
            float sum = 0;
            for (k = 0; k < SIDE; k++) sum += a[i * SIDE + k] * b[k * SIDE + j];
            c[i * SIDE + j] = sum;
        }
}

/* A time is an integer of nanoseconds, and is printed as one; for ms divide: ns / 1e6 prints no false digits,
 * ns * 1e-6 does. */
static void put(vp_json_writer *writer, const char *key, double value_ns) {
    vp_json_key(writer, key);
    vp_json_int(writer, (int64_t)(value_ns + 0.5));
}

/* a row for each request, in ms; here "multiply" plays the part of the prefill */
static void put_rows(vp_json_writer *writer, const vp_stage_clock *clock) {
    int i;
    vp_json_key(writer, "per_sample_results");
    vp_json_begin_array(writer);
    for (i = 0; i < REQUESTS; i++) {
        const vp_stage_mark *request = &clock->marks[i * STAGES], *prefill = request + 2;
        vp_json_begin_object(writer);
        vp_json_key(writer, "sample_id");
        vp_json_int(writer, i);
        vp_json_key(writer, "T_total");
        vp_json_double(writer, (double)(request->end_ns - request->begin_ns) / 1e6);
        vp_json_key(writer, "T_LLM_prefill");
        vp_json_double(writer, (double)(prefill->end_ns - prefill->begin_ns) / 1e6);
        vp_json_end_object(writer);
    }
    vp_json_end_array(writer);
}

int main(void) {
    static char text[64000];
    static const char *const names[STAGES] = {"request", "fill", "multiply"};
    vp_stage_mark marks[REQUESTS * STAGES];
    vp_stage_clock clock = vp_stage_clock_over(marks, REQUESTS * STAGES);
    double scratch[REQUESTS * STAGES], unaccounted_ns = 0;
    vp_json_writer writer;
    int i;

    for (i = 0; i < WARMUP; i++) { fill(i); multiply(); } /* the cold requests are not mixed with the warm ones */
    for (i = 0; i < REQUESTS; i++) {
        vp_stage_begin(&clock, "request");
        vp_stage_begin(&clock, "fill");
        fill(i);
        vp_stage_end(&clock);
        vp_stage_begin(&clock, "multiply");
        multiply();
        vp_stage_end(&clock);
        vp_stage_end(&clock);
        unaccounted_ns += (double)vp_stage_unaccounted_ns(&clock, (size_t)i * STAGES);
    }

    vp_json_writer_init(&writer, text, sizeof text, 2);
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "model"); vp_json_string(&writer, "sample 02");
    vp_json_key(&writer, "unit");  vp_json_string(&writer, "ns");
    vp_json_key(&writer, "count"); vp_json_int(&writer, REQUESTS);
    /* keeps the product from being optimised away */
    vp_json_key(&writer, "checksum"); vp_json_double(&writer, (double)c[SIDE + 1]);
    for (i = 0; i < STAGES; i++) {
        vp_statistics statistics;
        if (vp_stage_statistics(&clock, names[i], scratch, &statistics) != VP_OK) return 1;
        vp_json_key(&writer, names[i]);
        vp_json_begin_object(&writer);
        put(&writer, "mean", statistics.mean);
        put(&writer, "std", statistics.std);
        put(&writer, "min", statistics.min);
        put(&writer, "p50", statistics.p50);
        put(&writer, "p95", statistics.p95);
        put(&writer, "p99", statistics.p99);
        put(&writer, "max", statistics.max);
        vp_json_end_object(&writer);
    }
    put(&writer, "unaccounted_mean", unaccounted_ns / REQUESTS);
    put_rows(&writer, &clock);
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) != VP_OK) return 1;
    puts(text);
    return 0;
}
