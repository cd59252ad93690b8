/* vlmprof_load.h - v0.2.0 - load on a server: due times of requests, and statistics of their latencies - MIT licence
 *
 * Draws the times at which the requests of an open loop are due, and computes percentiles and goodput with intervals
 * from their results. Requests to a busy server wait for each other, so their latencies are not independent. All
 * intervals here are wider to allow for that. This header sends nothing (vlmprof_server.h does) and reads no clock.
 *
 *     vp_arrivals arrivals;
 *     vp_arrivals_begin(VP_ARRIVALS_POISSON, 4.0, 1.0, 42, &arrivals);
 *     double due_s = vp_arrivals_next(&arrivals); */
#ifndef VLMPROF_LOAD_H
#define VLMPROF_LOAD_H
#include "vlmprof.h"
#include "vlmprof_analysis.h"

VP_EXTERN_C_BEGIN

/* ---- arrivals: the times at which requests are due. The gaps are 1 / rate, or drawn from an exponential or gamma
 * distribution with that mean. A gamma distribution with shape 1 is exponential; with a smaller shape, requests come in
 * bursts, and with a larger one more evenly. */
#define VP_ARRIVALS(X) \
    X(VP_ARRIVALS_CONSTANT, "constant") \
    X(VP_ARRIVALS_POISSON, "poisson") \
    X(VP_ARRIVALS_GAMMA, "gamma")
#define VP_ARRIVALS_ENUM(id, name) id,
typedef enum vp_arrivals_kind { VP_ARRIVALS(VP_ARRIVALS_ENUM) VP_ARRIVALS_LAST_ } vp_arrivals_kind;
#undef VP_ARRIVALS_ENUM
VP_API const char *vp_arrivals_name(int32_t kind); /* NULL for an unknown number */

typedef struct vp_arrivals {
    vp_arrivals_kind kind;
    double rate, shape; /* requests/s; shape of gamma */
    double now_s;       /* time of the last drawn request */
    vp_random random;
} vp_arrivals;
/* in:      rate   requests/s, 1e-6..1e6;  shape  0.01..1e6, only for gamma
 * returns: VP_OK; VP_ERR_RANGE */
VP_API vp_result vp_arrivals_begin(vp_arrivals_kind kind, double rate, double shape, uint32_t seed,
                                   vp_arrivals *arrivals);
/* Parses "constant", "poisson" or "gamma:SHAPE", then calls vp_arrivals_begin.
 * returns: VP_OK; VP_ERR_NOT_FOUND: unknown process; VP_ERR_FORMAT: no shape; VP_ERR_RANGE */
VP_API vp_result vp_arrivals_parse(const char *text, double rate, uint32_t seed, vp_arrivals *arrivals);
/* Seconds from the start to the next request, ascending. The first request is due after one gap.
 * source:  gamma: G. Marsaglia and W. W. Tsang, ACM TOMS 26 (2000), with their rule for shapes below 1 */
VP_API double vp_arrivals_next(vp_arrivals *arrivals);

/* ---- objectives: limits of each request's latencies, and the accuracy of all requests. NaN: no limit */
typedef struct vp_slo { double ttft_ms, tpot_ms, e2e_ms, accuracy; } vp_slo;
/* Parses any of "ttft:500,tpot:50,e2e:5000,accuracy:0.8"; latencies are in ms.
 * returns: VP_OK; VP_ERR_FORMAT (error->where is the wrong part); VP_ERR_RANGE: a limit not above 0, or an accuracy
 *          above 1 */
VP_API vp_result vp_slo_parse(const char *text, vp_slo *slo, vp_error *error);
/* Returns 1 if the request met all latency limits. NaN meets no limit. If a value is undefined (TPOT of one token),
 * pass 0. */
VP_API int vp_slo_holds(const vp_slo *slo, double ttft_ms, double tpot_ms, double e2e_ms);

/* ---- series of values in the order in which requests were due */
typedef struct vp_series_value { double value, low, high; double correlation_time; } vp_series_value;
/* The percentile of a series, with an interval that allows for correlated neighbours.
 * in:      values      double [count], finite, in order;  percentile  above 0, below 100; level: confidence
 *          scratch     double [3 * count]
 * out:     low, high   NaN if the series is too short for an interval
 * returns: VP_OK; VP_ERR_RANGE
 * rule:    linear percentile. The correlation time is computed from the series "is at or below the percentile"
 *          (vp_compare_ordered). The interval is that of order statistics, as if there were count / correlation_time
 *          independent values
 * numeric: coverage of 95 % intervals for waiting times of 5,000 requests in a queue at 50 and 80 % load (tests): P50
 *          95 and 88 %, P95 95 and 92 % (as if independent: 86 and 27 %, 49 and 14 %) */
VP_API vp_result vp_series_percentile(const double *values, size_t count, double percentile, double level,
                                      double *scratch, vp_series_value *out);
/* The share of ones in a series of zeros and ones, with Wilson's interval as if for count / correlation_time values.
 * in:      flags    uint8 [count];  scratch  double [2 * count]
 * returns: VP_OK; VP_ERR_RANGE */
VP_API vp_result vp_series_share(const uint8_t *flags, size_t count, double level, double *scratch,
                                 vp_series_value *out);

/* ---- whether a trial meets an objective */
typedef enum vp_trial { VP_TRIAL_HOLDS, VP_TRIAL_FAILS, VP_TRIAL_UNDECIDED } vp_trial;
/* Decides whether a share with an interval reaches `target`; undecided if the interval contains the target. */
VP_API vp_trial vp_trial_of(const vp_series_value *share, double target);

VP_EXTERN_C_END
#endif /* VLMPROF_LOAD_H */
