/* vlmprof_latency.h - v0.2.0 - regression, the latency model - MIT licence
 *
 * Predicts the latency of a request with one linear model per stage, fitted to measured requests. It also computes
 * errors on held-out requests.
 * Latency may be in any unit. Rows and groups are numbered from 0; a count above 2^32 - 1 is VP_ERR_RANGE. Values must
 * be finite. Intervals are two-sided at `level` (0.95). `scratch` needs vp_..._scratch_bytes(...) bytes (SIZE_MAX if
 * that overflows), otherwise VP_ERR_CAPACITY.
 * numeric: double, additions in a fixed order: the same input gives the same bits
 * memory:  only the caller's, and under 4 KB of stack unless a function's comment states more
 * threads: reentrant */
#ifndef VLMPROF_LATENCY_H
#define VLMPROF_LATENCY_H
#include "vlmprof.h"
#include "vlmprof_analysis.h"

VP_EXTERN_C_BEGIN

/* ---- regression */
enum { VP_LINEAR_COLUMNS_LIMIT = 24 };
/* AT_ZERO: held at 0 by its sign constraint; DROPPED: see the options */
typedef enum vp_linear_state { VP_LINEAR_USED, VP_LINEAR_AT_ZERO, VP_LINEAR_DROPPED } vp_linear_state;
typedef struct vp_linear_options {
    const double *weights;            /* [rows], > 0; NULL: all 1. The variance of a row is sigma^2 / weight */
    const unsigned char *nonnegative; /* [columns], 1: the coefficient must be >= 0; NULL: all are free */
    /* 1: drop a column that earlier columns explain; 0: such a column is an error */
    int drop_dependent;
} vp_linear_options;
VP_API vp_linear_options vp_linear_options_default(void); /* no weights, no sign constraints, dependent columns are an
                                                           * error */
/* A linear model and the data for its intervals. It contains no pointers and can be stored. */
typedef struct vp_linear {
    uint64_t rows;
    int32_t columns, used_columns;
    /* 2-norm condition number of the used columns, each scaled to length 1 */
    double condition;
    /* residual deviation at weight 1: sqrt(sum w r^2 / degrees); NaN for degrees 0 */
    double sigma;
    double degrees;                              /* rows - used columns */
    double coefficient[VP_LINEAR_COLUMNS_LIMIT]; /* exactly 0 if the state is not USED */
    /* standard errors; 0 if the state is not USED, NaN for degrees 0 */
    double error[VP_LINEAR_COLUMNS_LIMIT];
    /* [columns, columns]: B with covariance = sigma^2 B B' */
    double root[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT];
    unsigned char state[VP_LINEAR_COLUMNS_LIMIT]; /* vp_linear_state */
} vp_linear;
/* Weighted least squares, with sign constraints if requested.
 * in:      x     double [rows, columns], columns 1..VP_LINEAR_COLUMNS_LIMIT; an intercept is a column of ones
 *          y     double [rows]
 * out:     fit   on success only;  error  may be NULL; names the column
 * returns: VP_OK; VP_ERR_RANGE: a count or value is out of range, or an overflow; VP_ERR_MISMATCH: fewer rows than
 * columns, or dependent columns
 * rule:    Householder QR over blocks of rows, columns scaled to length 1. A column is dependent if less than 1e-11 of
 *          it is outside the span of earlier columns. Signs: Lawson and Hanson's active set on the triangle;
 *          coefficients held at 0 are exactly 0
 * source:  Golub and Van Loan, Matrix Computations, 5.2 and 5.3; Lawson and Hanson, Solving Least Squares Problems,
 * ch. 23
 * numeric: errors and intervals of a fit with signs treat the active set as known
 * memory:  40 KB of stack for any number of rows */
VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns,
                                   const vp_linear_options *options, vp_linear *fit, vp_error *error);
VP_API double vp_linear_value(const vp_linear *fit, const double *x); /* returns x'coefficient; columns in order */
/* mean_low, mean_high: interval of the mean; low, high: interval of a new value */
typedef struct vp_linear_range { double value, mean_low, mean_high, low, high; } vp_linear_range;
/* Intervals of the mean and of a new measurement at x.
 * in:      weight of the new measurement, > 0
 * returns: VP_OK; VP_ERR_MISMATCH: degrees 0; VP_ERR_RANGE */
VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level,
                                    vp_linear_range *range);
/* Student's interval of a coefficient; [0, 0] for an unused column. returns: as above */
VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high);
typedef struct vp_linear_errors {
    size_t count;
    double r2;              /* 1 - sum r^2 / sum (y - mean)^2; NaN if all y are equal */
    double mae, rmse, bias; /* bias: mean of predicted - measured */
    double mape;            /* mean of |r| / |y|, a fraction; NaN if a y is 0 */
    double p95_absolute, max_absolute;
} vp_linear_errors;
/* Computes the errors of predictions against measurements.
 * in:      scratch  double [count]
 * returns: VP_OK; VP_ERR_RANGE: count 0 or a value that is not finite */
VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count,
                                          double *scratch, vp_linear_errors *errors);

/* ---- the latency of a request: one linear model per stage */
#define VP_LATENCY_STAGES(X) X(VISION, "vision") X(PREFILL, "prefill") X(DECODE, "decode") X(OTHER, "other")
typedef enum vp_latency_stage {
#define VP_LATENCY_ENUM(name, text) VP_LATENCY_##name,
    VP_LATENCY_STAGES(VP_LATENCY_ENUM)
#undef VP_LATENCY_ENUM
        VP_LATENCY_STAGE_COUNT
} vp_latency_stage; /* T_vision_total, T_LLM_prefill, T_LLM_decode, and T_total minus these */
typedef enum vp_latency_features {
    /* inputs as in vp_latency_column_name, with non-negative coefficients. Rows weigh 1 / predicted^2, found by
     * iteration: noise is assumed proportional to the time, and the line goes through the means. (1 / measured^2 makes
     * the same assumption, but trusts low measurements more than high ones, so the line would be too low.) */
    VP_LATENCY_PHYSICAL,
    VP_LATENCY_SEED,   /* the experiments' inputs: 1, vision_tokens, text_tokens, tier_index, top_k,
                      * num_active_blocks, output_tokens */
    VP_LATENCY_MEAN,   /* the mean of the measurements */
    VP_LATENCY_WEIGHTS /* PHYSICAL, plus the cost of weights by precision; for measurements at several precisions */
} vp_latency_features;
enum { VP_LATENCY_OWN = 8, VP_LATENCY_COLUMNS_LIMIT = 11 + VP_LATENCY_OWN };
typedef struct vp_latency_request {
    int32_t views;         /* passes of the vision transformer: crops + global view; 0 for text only */
    int32_t vision_tokens; /* vision tokens that the language model gets */
    int32_t text_tokens;
    int32_t sequence;      /* prompt positions: BOS, image and text */
    int32_t output_tokens; /* decode steps are one fewer */
    int32_t tier_index, top_k, expert_count, active_blocks;
    int32_t weight_bits; /* bits of the language model's linears: 4, 8, 16 or 32; read only by WEIGHTS */
    /* vision tokens dropped by pruning, 0 without it; and the number of active blocks that still get them */
    int32_t dropped_tokens;
    double full_blocks;
    /* the caller's own inputs, the same number in all requests of a model, 0..VP_LATENCY_OWN: the last columns of each
     * stage but of MEAN, with coefficients of any sign; physical ones of decode are multiplied by the steps */
    int32_t own_count;
    double own[VP_LATENCY_OWN];
} vp_latency_request;
/* Computes the inputs of a stage's model.
 * out:     x double [VP_LATENCY_COLUMNS_LIMIT], the first *columns
 * returns: VP_OK; VP_ERR_RANGE: a negative count; sequence, output_tokens or active_blocks < 1; top_k outside
 * 1..expert_count (both are 0 without experts); WEIGHTS: an unknown weight_bits
 * rule:    vision: 1, views, vision tokens
 *          prefill: 1, n, B, B n, B n k (expert FLOPs), B n^2 (attention), B E (1 - (1 - k / E)^n) (average number of
 *          experts that are read) decode: S, S B, S B k (bytes of experts), B (S n + S (S - 1) / 2) (positions read
 *          from the cache) other: 1, views, n WEIGHTS: prefill also B w, R w, B q, R q, where R is prefill's last
 *          column above; decode also S B w, S B k w, S B q, S B k q. w: bytes per weight, bits / 8, plus 1/16 for
 *          integers, for the scale of 32 values; q: 1 for integers, which are widened before multiplication, else 0 n
 *          sequence, B active blocks, k top_k, E experts, S steps; a stage that does not run has only zeros. With
 *          dropped tokens, a product with B is a sum over blocks: full_blocks with n, the others with n -
 *          dropped_tokens. n without B is the first block's sequence. SEED uses the kept vision tokens */
VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request,
                                double *x, int32_t *columns);
/* The name of a column that is not the caller's own; NULL past the last. */
VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column);
VP_API const char *vp_latency_stage_name(vp_latency_stage stage);
typedef struct vp_affine { /* measured = slope * predicted + offset */
    double slope, offset;
    double condition; /* condition number of the columns 1 and predicted, scaled to length 1 */
    size_t count;     /* number of points used; 0: the identity */
} vp_affine;
/* contains no pointers and can be stored */
typedef struct vp_latency_model {
    vp_latency_features features;
    unsigned char fitted[VP_LATENCY_STAGE_COUNT]; /* 0: no measurements of this stage */
    vp_linear fit[VP_LATENCY_STAGE_COUNT];
    vp_affine affine[VP_LATENCY_STAGE_COUNT];
} vp_latency_model;
/* Fits the stages.
 * in:      requests  [rows]
 * measured  double [rows, VP_LATENCY_STAGE_COUNT]; NaN: not measured; rows whose stage did not run are omitted
 *          error     may be NULL
 * returns: VP_OK; VP_ERR_RANGE: an invalid request, or a value that is infinite (or <= 0 for PHYSICAL);
 * VP_ERR_MISMATCH: no stage could be fitted
 * rule:    columns that these rows cannot distinguish from earlier ones are dropped (a sweep with one top_k contains no
 *          information about top_k). PHYSICAL: least squares with equal weights, then with 1 / predicted^2 of the last
 *          fit, until no coefficient changes by more than 1e-9 of its value, at most 30 times; predictions below 1 % of
 *          the mean time weigh as 1 % of it. The model predicts the mean of such requests, not the median
 * source:  McCullagh and Nelder, Generalized Linear Models, ch. 8 and 9 (variance proportional to the mean squared) */
VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests,
                                const double *measured, size_t rows, vp_latency_model *model, vp_error *error);
/* NaN for a stage that is not fitted */
typedef struct vp_latency_prediction { double stage[VP_LATENCY_STAGE_COUNT], total; } vp_latency_prediction;
/* Predicts the latency of a request; takes under a microsecond.
 * out:     prediction  total: the sum of the fitted stages
 * returns: VP_OK; VP_ERR_RANGE as vp_latency_row */
VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request,
                                    vp_latency_prediction *prediction);
/* Interval of a new measurement of a stage. It includes the line of `affine`, but not its uncertainty. It does not go
 * below 0 if the value does not. returns: as vp_linear_interval */
VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage,
                                     const vp_latency_request *request, double level, vp_linear_range *range);
/* Distribution-free limits of a new measurement; valid for bimodal, heavy-tailed and skewed times. */
typedef struct vp_latency_limits {
    size_t count;            /* number of ratios used; 0: too few for limits */
    double level, low, high; /* low, high: limits of measured / predicted */
} vp_latency_limits;
/* Computes the limits of measured / predicted.
 * in:      measured   double [count]
 *          predicted  double [count], > 0, from models that were not fitted to the row (vp_latency_leave_out)
 *          scratch    double [count]
 * returns: VP_OK; VP_ERR_MISMATCH: too few rows for the level (0.95 needs 39); VP_ERR_RANGE
 * rule:    k = floor((count + 1) (1 - level) / 2); low is the k-th smallest ratio, high the k-th largest
 * source:  Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, ch. 2; Barber, Candes, Ramdas and
 * Tibshirani, Predictive inference with the jackknife+ */
VP_API vp_result vp_latency_limits_compute(const double *measured, const double *predicted, size_t count, double level,
                                           double *scratch, vp_latency_limits *limits);
/* The width of a new value's interval relative to that of its noise: sqrt(1 + leverage). It is near 1 inside the data
 * and grows outside. */
VP_API double vp_linear_stretch(const vp_linear_range *range);
/* The interval of a new measurement whose prediction is `value` >= 0; never below 0. */
VP_API void vp_latency_limits_apply(const vp_latency_limits *limits, double value, double stretch, double *low,
                                    double *high);
VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count);
/* Predicts each row of a stage with a model that was not fitted to the row's group.
 * in:      groups     uint32 [rows], 0..group_count - 1
 *          measured   double [rows], times of this stage
 * out:     predicted  double [rows]; NaN where measured is NaN or the stage did not run
 * rule:    PHYSICAL: rows weigh as in vp_latency_fit of all rows
 * returns: as vp_latency_fit; VP_ERR_MISMATCH if the rows outside a group cannot be fitted; VP_ERR_CAPACITY */
VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage,
                                      const vp_latency_request *requests, const double *measured,
                                      const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_LATENCY_H */
