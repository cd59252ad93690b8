/* numbers.h: files of golden numbers, approximate comparison, random numbers, and the coverage of intervals. A test includes it after vlmprof.h and check.h. */
#ifndef NUMBERS_H
#define NUMBERS_H
#include "json_file.h"
#include "vlmprof_json.h"
typedef json_file document;
/* a number; NaN for null and for what is not there */
static inline double number(const document *d, uint32_t object, const char *key) {
    double value = (double)NAN;
    vp_json_to_double(&d->json, vp_json_get(&d->json, object, key), &value);
    return value;
}
/* all numbers under a member, nested or not; malloc'ed */
static inline double *numbers(const document *d, uint32_t object, const char *key, size_t *count) {
    const uint32_t at = vp_json_get(&d->json, object, key);
    const uint32_t end = at == VP_JSON_NONE ? 0 : d->nodes[at].end;
    double *out = (double *)malloc(((size_t)end + 1) * sizeof *out);
    size_t n = 0;
    for (uint32_t i = at; i < end; i++) if (vp_json_to_double(&d->json, i, &out[n]) == VP_OK) n++;
    *count = n;
    return out;
}
static inline int flag(const document *d, uint32_t object, const char *key) {
    const uint32_t at = vp_json_get(&d->json, object, key);
    return at != VP_JSON_NONE && d->nodes[at].type == VP_JSON_TRUE;
}
#define ROWS(d, list, i) for (i = (list) + 1; (list) != VP_JSON_NONE && i < (d)->nodes[list].end; i = (d)->nodes[i].end)

/* equal within `relative` of the expected value, or within `absolute`; NaN equals only NaN */
static inline int near(double got, double want, double relative, double absolute) {
    if (want != want) return got != got;
    return fabs(got - want) <= relative * fabs(want) || fabs(got - want) <= absolute;
}
#define NEAR(got, want, relative, absolute) \
    check_note(near(got, want, relative, absolute), __FILE__, __LINE__, "row %d: %s is %.17g, expected %.17g", row, #got, (double)(got), (double)(want))

static inline void *memory(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p || bytes == SIZE_MAX) { printf("no memory\n"); exit(1); }
    memset(p, 0xA5, bytes);
    return p;
}
static inline double *doubles(size_t count) { return (double *)memory(count * sizeof(double)); }

static inline double normal_draw(vp_random *random) {
    double p;
    do p = vp_random_double(random); while (!(p > 0.0));
    return vp_normal_quantile(p);
}

/* The coverage of a 95 % interval. 1,000 repetitions must give 93 to 97 %; with fewer (make test) 3 standard errors more are allowed. */
static int repeats = 200;

static inline void check_coverage(const char *what, double held, double trials) {
    const double slack = repeats >= 1000 ? 0.0 : 3 * sqrt(0.95 * 0.05 / repeats);
    const double share = held / trials;
    if (repeats >= 1000) printf("coverage of %-52s %.1f %%\n", what, 100 * share);
    check_note(share >= 0.93 - slack && share <= 0.97 + slack, __FILE__, __LINE__, "%s: %.4f of %d", what, share, repeats);
}
static inline void repeats_asked(void) {
    const char *asked = getenv("VLMPROF_REPEATS");
    if (asked && atoi(asked) > 0) repeats = atoi(asked);
}
#endif
