/* A program that profiles itself: no model, no GPU. It does six steps of work, of which a schedule records three. It
 * prints the table of its ranges in the words of torch.profiler and of cProfile, saves it as JSON, reads it again and
 * sorts it by another key. Another thread would have a vp_ranges of its own.
 * cc -I. -Iparts samples/04_profile_yourself.c -lm && ./a.out profile.json */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_ranges.h"
#include <stdio.h>
#include <string.h>

enum { STEPS = 6, NUMBERS = 20000, RANGES = 8192, ROWS = 64, TEXT_BYTES = 65536, NODES = 4096 };
static int32_t numbers[NUMBERS];

static vp_result print(void *user, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, (FILE *)user) == bytes ? VP_OK : VP_ERR_WRITE;
}

static void draw(vp_ranges *ranges, uint32_t seed) {
    vp_range_payload payload = { 0, 0, 0, { NUMBERS, 0, 0, 0 }, 1 };
    int i;
    payload.bytes = (int64_t)sizeof numbers;
    VP_RANGE(ranges, "draw");
    vp_range_set(ranges, &payload); /* what it works on: the table then knows GB/s */
    for (i = 0; i < NUMBERS; i++) numbers[i] = (int32_t)(seed = seed * 1664525u + 1013904223u);
    vp_range_end(ranges);
}

/* merge sort; long pieces are ranges of their own, within each other */
static void sort(vp_ranges *ranges, int32_t *values, int count) {
    static int32_t merged[NUMBERS];
    const int half = count / 2, long_piece = count >= 1000;
    int i = 0, j = half, k = 0;
    if (count < 2) return;
    if (long_piece) VP_RANGE(ranges, "sort");
    sort(ranges, values, half);
    sort(ranges, values + half, count - half);
    if (long_piece) VP_RANGE(ranges, "merge");
    while (k < count) {
        const int left = j == count || (i < half && values[i] <= values[j]);
        merged[k++] = left ? values[i++] : values[j++];
    }
    memcpy(values, merged, (size_t)count * sizeof *values);
    if (long_piece) vp_range_end(ranges);
    if (long_piece) vp_range_end(ranges);
}

/* the table as JSON, into memory or also into a file */
static int save(const vp_ops *ops, char *text, const char *path) {
    vp_json_writer writer;
    FILE *file;
    int written;
    vp_json_writer_init(&writer, text, TEXT_BYTES, 1);
    vp_ops_write_json(&writer, ops);
    if (vp_json_finish(&writer) != VP_OK) return 0;
    if (!path) return 1;
    file = fopen(path, "w");
    if (!file) return 0;
    written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

int main(int argc, char **argv) {
    static vp_range_record records[RANGES];
    static vp_op rows[ROWS], saved_rows[ROWS];
    static char text[TEXT_BYTES], names[TEXT_BYTES];
    static vp_json_node nodes[NODES];
    const vp_schedule schedule = vp_schedule_default(); /* wait 1, warm up 1, record 3, once */
    vp_ops_print_options options = vp_ops_print_options_default();
    vp_ranges ranges;
    vp_schedule_step state;
    vp_ops ops, saved;
    vp_json json;
    int64_t step;

    vp_ranges_init(&ranges, records, RANGES, 0, "main", NULL);
    vp_ops_init(&ops, rows, ROWS, 0, 0);
    for (step = 0; step < STEPS; step++) {
        if (vp_schedule_at(&schedule, step, &state) != VP_OK) return 1;
        VP_RANGE(&ranges, "step");
        draw(&ranges, (uint32_t)step);
        sort(&ranges, numbers, NUMBERS);
        vp_range_end(&ranges);
        if (state.state >= VP_SCHEDULE_RECORD && vp_ops_add_ranges(&ops, &ranges) != VP_OK) return 1;
        vp_ranges_clear(&ranges); /* the buffer is used again */
    }

    options.with_rates = 1;
    if (vp_ops_sort(&ops, "self_cpu_time_total") != VP_OK
        || vp_ops_print_torch(&ops, &options, print, stdout) != VP_OK)
        return 1;
    puts("");
    if (!save(&ops, text, argc > 1 ? argv[1] : NULL)) return 1;
    if (vp_json_parse(text, strlen(text), nodes, NODES, &json, NULL, NULL) != VP_OK) return 1;
    vp_ops_init(&saved, saved_rows, ROWS, 0, 0);
    if (vp_ops_read_json(&saved, &json, 0, names, TEXT_BYTES, NULL) != VP_OK) return 1;
    if (vp_ops_sort(&saved, "cumulative") != VP_OK
        || vp_ops_print_cprofile(&saved, &options, print, stdout) != VP_OK)
        return 1;
    return 0;
}
