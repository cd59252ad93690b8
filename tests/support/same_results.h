/* same_results.h: compares the result files of an unbroken sweep with those of another one of the same plan. A test includes it after check.h, folder.h and a `document`
 * with load and unload. */
#ifndef SAME_RESULTS_H
#define SAME_RESULTS_H
#include "vlmprof_json.h"

/* Values that differ between runs: times, and where and when they were taken. Everything else must be equal, including keys and their order. */
static inline int is_time(const char *key) {
    static const char *const whole[] = {"stages", "stage_detail", "T_decode_per_step", "runs", "run_flags", "aggregate_stats", "latency_stats", "statistics",
        "provenance", "session_list", "sessions", "tool_cost", "config", "measured_from", "measured_to", "unaccounted", "closure", "TTFT", "decode_tokens_per_s",
        "output_tokens_per_s",
        "itl", "served_runs", "slow_first_run", "num_outlier_runs", "num_throttled_runs", "data", "kernel_pass", "num_retries", "stop", "stops", "noise", "null_reasons"};
    if (!strncmp(key, "T_", 2) || !strncmp(key, "energy_", 7)) return 1;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) if (!strcmp(key, whole[i])) return 1;
    return 0;
}
static inline void key_text(const document *d, uint32_t node, char *out, size_t capacity) {
    snprintf(out, capacity, "%.*s", (int)d->nodes[node].bytes, d->text + d->nodes[node].start);
}
static inline int same_value(const document *a, uint32_t x, const document *b, uint32_t y, char *where, size_t capacity) {
    const vp_json_node *m = &a->nodes[x], *n = &b->nodes[y];
    int is_object = m->type == VP_JSON_OBJECT;
    uint32_t i = x + 1, k = y + 1;
    if (m->type != n->type || m->count != n->count) return 0;
    if (!is_object && m->type != VP_JSON_ARRAY) return m->bytes == n->bytes && !memcmp(a->text + m->start, b->text + n->start, (size_t)m->bytes);
    for (uint32_t item = 0; item < m->count; item++) {
        char key[128] = "", other[128] = "";
        if (is_object) {
            key_text(a, i++, key, sizeof key);
            key_text(b, k++, other, sizeof other);
            snprintf(where, capacity, "%s (%s)", key, other);
            if (strcmp(key, other)) return 0;
        }
        if (!is_time(key) && !same_value(a, i, b, k, where, capacity)) return 0;
        i = a->nodes[i].end;
        k = b->nodes[k].end;
    }
    return 1;
}
/* Every result file of one folder is also in the other one, and they are equal except for times. */
static inline int same_results(const char *one, const char *two) {
    DIR *d = opendir(one);
    struct dirent *e;
    int count = 0, good = 1;
    while (d && (e = readdir(d)) != NULL) {
        char path[1024], other[1024], where[300] = "";
        document a, b;
        if (!strstr(e->d_name, "_imgsize")) continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", one, e->d_name);
        snprintf(other, sizeof other, "%s/%s", two, e->d_name);
        good &= check_note(load(&a, path), __FILE__, __LINE__, "%s is no JSON", path);
        good &= check_note(load(&b, other), __FILE__, __LINE__, "%s is no JSON", other);
        if (a.nodes && b.nodes) good &= check_note(same_value(&a, 0, &b, 0, where, sizeof where), __FILE__, __LINE__, "%s differs near %s", other, where);
        unload(&a);
        unload(&b);
    }
    if (d) closedir(d);
    return good & check_note(count > 0, __FILE__, __LINE__, "no result files in %s", one);
}
#endif
