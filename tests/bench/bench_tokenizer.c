/* bench_tokenizer.c: MB/s of vp_tokenizer_encode and _decode on one core. Prints one row per text: the median and the spread of nine rounds. The
 * tokenizer is the real one (50,285 ids) where ../shared/goldens has it, else the small golden one. Build: cc -O2 -I. tests/bench/bench_tokenizer.c -lm */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_tokenizer.h"
#include <stdio.h>

enum { ROUNDS = 9 };

static void print_rates(const char *name, const double *rate, size_t bytes, size_t count) {
    double sorted[ROUNDS];
    vp_statistics s;
    if (vp_statistics_compute(rate, ROUNDS, sorted, &s) != VP_OK) return;
    printf("%-34s %7.2f MB/s (min %.2f, max %.2f, %d rounds; %.2f MB, %zu tokens)\n", name, s.p50, s.min, s.max, ROUNDS, (double)bytes / 1e6, count);
}

/* the whole text in one call, or line by line as the command does */
static void bench(const vp_tokenizer *t, const char *name, const char *text, size_t bytes, int by_line) {
    double encoding[ROUNDS], decoding[ROUNDS];
    int32_t *ids = (int32_t *)malloc((2 * bytes + 1) * sizeof *ids);
    char *back = (char *)malloc(2 * bytes + 1), label[64];
    size_t count = 0, needed = 0;
    if (!ids || !back) exit(1);
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up */
        const char *line = text, *end = text + bytes;
        int64_t start = vp_clock_ns();
        for (count = 0; line < end;) {
            const char *stop = by_line ? (const char *)memchr(line, '\n', (size_t)(end - line)) : NULL;
            size_t got = 0;
            stop = stop ? stop + 1 : end;
            if (vp_tokenizer_encode(t, line, (size_t)(stop - line), ids + count, 2 * bytes + 1 - count, &got) != VP_OK) exit(1);
            count += got;
            line = stop;
        }
        double seconds = (double)(vp_clock_ns() - start) * 1e-9;
        if (round >= 0) encoding[round] = (double)bytes / seconds / 1e6;
        start = vp_clock_ns();
        if (vp_tokenizer_decode(t, ids, count, 0, back, 2 * bytes + 1, &needed) != VP_OK) exit(1);
        seconds = (double)(vp_clock_ns() - start) * 1e-9;
        if (round >= 0) decoding[round] = (double)needed / seconds / 1e6;
    }
    snprintf(label, sizeof label, "encode %s%s", name, by_line ? ", by line" : "");
    print_rates(label, encoding, bytes, count);
    if (!by_line) {
        snprintf(label, sizeof label, "decode %s", name);
        print_rates(label, decoding, needed, count);
    }
    free(ids);
    free(back);
}

/* "text" of every golden encoding: many scripts, long runs, odd code points */
static size_t golden_texts(char *out, size_t capacity) {
    static vp_json_node nodes[20000];
    char *file = NULL, *line, *end;
    size_t bytes = 0, used = 0;
    if (vp_file_read("tests/golden/tokenizer/encodings.jsonl", SIZE_MAX / 4, &file, &bytes, NULL) != VP_OK) return 0;
    for (line = file; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        vp_json j;
        if (vp_json_parse(line, (size_t)(end - line), nodes, 20000, &j, NULL, NULL) != VP_OK) continue;
        if (vp_json_text(&j, vp_json_get(&j, 0, "text"), out + used, capacity - used, &bytes) == VP_OK) used += bytes;
    }
    free(file);
    return used;
}

int main(void) {
    static char unicode[1 << 22];
    vp_tokenizer *t = NULL;
    const char *name = "../shared/goldens/tokenizer/tokenizer.json";
    char *json = NULL, *text = NULL;
    size_t json_bytes = 0, bytes = 0;
    if (vp_file_read(name, SIZE_MAX / 4, &json, &json_bytes, NULL) != VP_OK) {
        name = "tests/golden/tokenizer/small-tokenizer.json";
        if (vp_file_read(name, SIZE_MAX / 4, &json, &json_bytes, NULL) != VP_OK) return 1;
    }
    int64_t start = vp_clock_ns();
    if (vp_tokenizer_load(json, json_bytes, &t, NULL) != VP_OK) return 1;
    printf("%s, loaded in %.0f ms\n", name, (double)(vp_clock_ns() - start) / 1e6);
    if (vp_file_read("vlmprof.h", SIZE_MAX / 4, &text, &bytes, NULL) != VP_OK) return 1;
    bench(t, "vlmprof.h", text, bytes, 0);
    bench(t, "vlmprof.h", text, bytes, 1);
    bench(t, "golden texts", unicode, golden_texts(unicode, sizeof unicode), 0);
    vp_tokenizer_free(t);
    free(json);
    free(text);
    return 0;
}
