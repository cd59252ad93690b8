/* vlmprof_latency.c: implements what vlmprof_latency.h declares */
#include "vlmprof_latency.h"
#include "vlmprof_statistics.h"
#include <math.h>
#include <string.h>

/* ---- regression
 * All fits use a triangle: the R of the QR factorisation of the rows [sqrt(weight) x, sqrt(weight) y]. It is computed
 * block by block, so memory does not grow with the rows. Triangles of groups of rows combine in the same way, which
 * makes leaving out one group cheap. */
enum {
    VP_IMPL_LINEAR_WIDTH = VP_LINEAR_COLUMNS_LIMIT + 1,
    VP_IMPL_LINEAR_BLOCK = 32,
    VP_IMPL_LINEAR_STRIDE = VP_IMPL_LINEAR_WIDTH + VP_IMPL_LINEAR_BLOCK
};
typedef struct vp_impl_gather {
    size_t width, pending; /* columns and y; rows below the triangle */
    uint64_t rows;
    double cells[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_STRIDE]; /* column-major: the triangle's rows first */
} vp_impl_gather;

static void vp_impl_gather_open(vp_impl_gather *gather, size_t columns) {
    gather->width = columns + 1;
    gather->pending = 0;
    gather->rows = 0;
    memset(gather->cells, 0, sizeof gather->cells);
}

static void vp_impl_gather_close(vp_impl_gather *gather) {
    const size_t rows = gather->width + gather->pending;
    for (size_t j = 0; gather->pending && j < gather->width; j++) {
        double *v = gather->cells + j * VP_IMPL_LINEAR_STRIDE;
        const double factor = vp_reflection_make(v, rows, j);
        for (size_t i = j + 1; i < gather->width; i++)
            vp_reflection_apply(v, factor, rows, j, gather->cells + i * VP_IMPL_LINEAR_STRIDE);
        for (size_t i = j + 1; i < rows; i++) v[i] = 0.0;
    }
    gather->pending = 0;
}

static void vp_impl_gather_row(vp_impl_gather *gather, const double *x, double y, double weight) {
    const double root = sqrt(weight);
    const size_t row = gather->width + gather->pending;
    size_t j;
    for (j = 0; j + 1 < gather->width; j++) gather->cells[j * VP_IMPL_LINEAR_STRIDE + row] = root * x[j];
    gather->cells[j * VP_IMPL_LINEAR_STRIDE + row] = root * y;
    gather->rows++;
    if (++gather->pending == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(gather);
}

/* adds the rows of a triangle [width, width], column-major */
static void vp_impl_gather_triangle(vp_impl_gather *gather, const double *triangle) {
    for (size_t i = 0; i < gather->width; i++) {
        for (size_t j = 0; j < gather->width; j++)
            gather->cells[j * VP_IMPL_LINEAR_STRIDE + gather->width + gather->pending] =
                triangle[j * gather->width + i];
        if (++gather->pending == VP_IMPL_LINEAR_BLOCK) vp_impl_gather_close(gather);
    }
}

static void vp_impl_gather_copy(vp_impl_gather *gather, double *triangle) {
    vp_impl_gather_close(gather);
    for (size_t j = 0; j < gather->width; j++)
        for (size_t i = 0; i < gather->width; i++)
            triangle[j * gather->width + i] = gather->cells[j * VP_IMPL_LINEAR_STRIDE + i];
}

static double vp_impl_length(const double *values, size_t count) {
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; i++) if (fabs(values[i]) > largest) largest = fabs(values[i]);
    for (size_t i = 0; largest > 0.0 && i < count; i++) sum += (values[i] / largest) * (values[i] / largest);
    return largest * sqrt(sum);
}

/* a least-squares problem over some columns of a triangle, each scaled to length 1 */
typedef struct vp_impl_subset {
    size_t count, column[VP_LINEAR_COLUMNS_LIMIT]; /* ascending */
    /* column-major, stride VP_IMPL_LINEAR_WIDTH; y after the last column */
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    double factor[VP_IMPL_LINEAR_WIDTH];
    double solution[VP_LINEAR_COLUMNS_LIMIT]; /* for the scaled columns */
    double rest;                              /* length of the residual */
} vp_impl_subset;

/* if less than this part of a column is outside the span of earlier columns, it is rounding error */
#define VP_IMPL_LINEAR_DEPENDENT 1e-11

/* Solves for the columns with use[j]. A column that depends on earlier ones is removed from `use` (drop), or else stops
 * the solution. Returns the dependent column if it stopped, otherwise width. */
static size_t vp_impl_subset_solve(const double *triangle, size_t width, const double *length, unsigned char *use,
                                   int drop, vp_impl_subset *subset) {
    size_t i, j, used = 0;
    for (j = 0; j < width; j++) {
        double *column = subset->triangle + used * VP_IMPL_LINEAR_WIDTH;
        const double scale = j + 1 < width && length[j] > 0.0 ? length[j] : 1.0;
        if (j + 1 < width && !use[j]) continue;
        for (i = 0; i < width; i++) column[i] = triangle[j * width + i] / scale;
        for (i = 0; i < used; i++)
            vp_reflection_apply(subset->triangle + i * VP_IMPL_LINEAR_WIDTH, subset->factor[i], width, i, column);
        if (j + 1 == width) break;
        if (!(vp_impl_length(column + used, width - used) > VP_IMPL_LINEAR_DEPENDENT)) {
            if (!drop) return j;
            use[j] = 0;
            continue;
        }
        subset->factor[used] = vp_reflection_make(column, width, used);
        subset->column[used++] = j;
    }
    subset->count = used;
    subset->rest = vp_impl_length(subset->triangle + used * VP_IMPL_LINEAR_WIDTH + used, width - used);
    for (i = used; i-- > 0;) {
        subset->solution[i] = subset->triangle[used * VP_IMPL_LINEAR_WIDTH + i];
        for (j = i + 1; j < used; j++)
            subset->solution[i] -= subset->triangle[j * VP_IMPL_LINEAR_WIDTH + i] * subset->solution[j];
        subset->solution[i] /= subset->triangle[i * VP_IMPL_LINEAR_WIDTH + i];
    }
    return width;
}

/* the rate at which the residual of the solution x (all columns, scaled) decreases as the column grows: column'(y - A
 * x) */
static double vp_impl_gradient(const double *triangle, size_t width, const double *length, const double *x,
                               size_t column) {
    double sum = 0.0;
    for (size_t i = 0; i < width; i++) {
        double rest = triangle[(width - 1) * width + i];
        for (size_t j = 0; j + 1 < width; j++)
            if (x[j] < 0.0 || x[j] > 0.0) rest -= triangle[j * width + i] / length[j] * x[j];
        sum += triangle[column * width + i] / length[column] * rest;
    }
    return sum;
}

/* Moves from x towards the solution in subset until a signed coefficient would become negative; coefficients that reach
 * 0 leave `use`. Returns 1 if it reached the solution. */
static int vp_impl_signed_step(const vp_impl_subset *subset, const unsigned char *nonnegative, unsigned char *use,
                               double *x) {
    double part = 1.0;
    size_t i, first = subset->count;
    for (i = 0; i < subset->count; i++) {
        const double from = x[subset->column[i]];
        if (!nonnegative[subset->column[i]] || subset->solution[i] > 0.0) continue;
        if (first == subset->count || from / (from - subset->solution[i]) < part) {
            part = from > 0.0 ? from / (from - subset->solution[i]) : 0.0;
            first = i;
        }
    }
    for (i = 0; i < subset->count; i++) {
        const size_t j = subset->column[i];
        x[j] = first == subset->count ? subset->solution[i] : x[j] + part * (subset->solution[i] - x[j]);
        if (first < subset->count && nonnegative[j] && (i == first || !(x[j] > 0.0))) {
            x[j] = 0.0;
            use[j] = 0;
        }
    }
    return first == subset->count;
}

/* Lawson and Hanson's active set. `use`: on entry, the columns that may be used; on return, the used ones. Returns 0 if
 * it did not converge. */
static int vp_impl_signed_solve(const double *triangle, size_t width, const double *length,
                                const unsigned char *nonnegative, unsigned char *use, vp_impl_subset *subset) {
    unsigned char may[VP_LINEAR_COLUMNS_LIMIT], barred[VP_LINEAR_COLUMNS_LIMIT];
    double x[VP_LINEAR_COLUMNS_LIMIT] = {0}, least;
    size_t j, best, round;
    memcpy(may, use, sizeof may);
    memset(barred, 0, sizeof barred);
    least = 1e-13 * vp_impl_length(triangle + (width - 1) * width, width); /* a smaller gradient is rounding error */
    for (j = 0; j + 1 < width; j++) use[j] = (unsigned char)(may[j] && !nonnegative[j]);
    for (round = 0; round < 64 * width; round++) {
        double most = least;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, subset) != width) return 0;
        while (!vp_impl_signed_step(subset, nonnegative, use, x)) {
            if (vp_impl_subset_solve(triangle, width, length, use, 0, subset) != width) return 0;
        }
        for (j = 0, best = width; j + 1 < width; j++) {
            const double gradient =
                may[j] && !use[j] && !barred[j] ? vp_impl_gradient(triangle, width, length, x, j) : 0.0;
            if (gradient > most) {
                most = gradient;
                best = j;
            }
        }
        if (best == width) return 1;
        use[best] = 1;
        if (vp_impl_subset_solve(triangle, width, length, use, 0, subset) != width) return 0;
        for (j = 0; subset->column[j] != best; j++) {}
        if (subset->solution[j] > 0.0) memset(barred, 0, sizeof barred);
        else { /* its gradient was only rounding error; otherwise it would be added and removed forever */
            use[best] = 0;
            barred[best] = 1;
        }
    }
    return 0;
}

/* ratio of the largest to the smallest singular value of the subset's R, by one-sided Jacobi rotations of its
 * columns */
static double vp_impl_condition(const vp_impl_subset *subset) {
    double a[VP_LINEAR_COLUMNS_LIMIT * VP_LINEAR_COLUMNS_LIMIT], largest = 0.0, smallest = HUGE_VAL;
    const size_t n = subset->count;
    size_t i, j, k, sweep, turned = 1;
    for (j = 0; j < n; j++)
        for (i = 0; i < n; i++) a[j * n + i] = i <= j ? subset->triangle[j * VP_IMPL_LINEAR_WIDTH + i] : 0.0;
    for (sweep = 0; turned && sweep < 60; sweep++) {
        turned = 0;
        for (i = 0; i + 1 < n; i++) {
            for (j = i + 1; j < n; j++) {
                double ii = 0.0, jj = 0.0, ij = 0.0, turn, c, held;
                for (k = 0; k < n; k++) {
                    ii += a[i * n + k] * a[i * n + k];
                    jj += a[j * n + k] * a[j * n + k];
                    ij += a[i * n + k] * a[j * n + k];
                }
                if (!(fabs(ij) > 1e-15 * sqrt(ii * jj))) continue;
                turned = 1;
                turn = (jj - ii) / (2.0 * ij);
                turn = (turn < 0.0 ? -1.0 : 1.0) / (fabs(turn) + sqrt(1.0 + turn * turn));
                c = 1.0 / sqrt(1.0 + turn * turn);
                for (k = 0; k < n; k++) {
                    held = a[i * n + k];
                    a[i * n + k] = c * (held - turn * a[j * n + k]);
                    a[j * n + k] = c * (a[j * n + k] + turn * held);
                }
            }
        }
    }
    for (j = 0; j < n; j++) {
        const double length = vp_impl_length(a + j * n, n);
        if (length > largest) largest = length;
        if (length < smallest) smallest = length;
    }
    return n ? largest / smallest : 1.0;
}

/* fills the fit of a solved subset, in the units of the columns */
static void vp_impl_linear_fill(const vp_impl_subset *subset, const double *length, const unsigned char *state,
                                size_t columns, uint64_t rows, vp_linear *fit) {
    size_t i, j, k;
    memset(fit, 0, sizeof *fit);
    fit->rows = rows;
    fit->columns = (int32_t)columns;
    fit->used_columns = (int32_t)subset->count;
    fit->condition = vp_impl_condition(subset);
    fit->degrees = (double)rows - (double)subset->count;
    fit->sigma = fit->degrees > 0.0 ? subset->rest / sqrt(fit->degrees) : (double)NAN;
    memcpy(fit->state, state, columns);
    for (k = 0; k < subset->count; k++) { /* column k of R^-1 by back substitution; scaled, its rows are those of
                                           * root */
        double inverse[VP_LINEAR_COLUMNS_LIMIT];
        for (i = k + 1; i-- > 0;) {
            inverse[i] = i == k ? 1.0 : 0.0;
            for (j = i + 1; j <= k; j++) inverse[i] -= subset->triangle[j * VP_IMPL_LINEAR_WIDTH + i] * inverse[j];
            inverse[i] /= subset->triangle[i * VP_IMPL_LINEAR_WIDTH + i];
            fit->root[subset->column[i] * columns + k] = inverse[i] / length[subset->column[i]];
        }
    }
    for (k = 0; k < subset->count; k++) {
        fit->coefficient[subset->column[k]] = subset->solution[k] / length[subset->column[k]];
        fit->error[subset->column[k]] = fit->sigma * vp_impl_length(fit->root + subset->column[k] * columns, columns);
    }
}

/* Solves a triangle and fills the fit. */
static vp_result vp_impl_linear_solve(const double *triangle, size_t width, uint64_t rows,
                                      const unsigned char *nonnegative, int drop, vp_linear *fit, vp_error *error) {
    unsigned char use[VP_LINEAR_COLUMNS_LIMIT], state[VP_LINEAR_COLUMNS_LIMIT], sign[VP_LINEAR_COLUMNS_LIMIT];
    double length[VP_IMPL_LINEAR_WIDTH] = {0};
    vp_impl_message m = {{0}, 0};
    vp_impl_subset subset;
    int signs = 0;
    memset(use, 0, sizeof use);
    memset(sign, 0, sizeof sign);
    for (size_t j = 0; j < width; j++) {
        length[j] = vp_impl_length(triangle + j * width, width);
        if (!vp_statistics_all_finite(&length[j], 1) || length[j] > 1e300)
            return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "the sum of the values is too large");
        if (j + 1 == width) break;
        use[j] = 1;
        sign[j] = (unsigned char)(nonnegative && nonnegative[j]);
        signs |= sign[j];
    }
    size_t dependent = vp_impl_subset_solve(triangle, width, length, use, drop, &subset);
    if (dependent != width) {
        vp_impl_message_text(&m, "column ");
        vp_impl_message_int(&m, (int64_t)dependent);
        vp_impl_message_text(
            &m, rows < width - 1
                    ? ": there are fewer rows than columns"
                    : " is zero or depends on earlier columns in these rows; omit it, or measure more varied requests");
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "fit", m.text);
    }
    for (size_t j = 0; j + 1 < width; j++) state[j] = (unsigned char)(use[j] ? VP_LINEAR_USED : VP_LINEAR_DROPPED);
    if (signs && !vp_impl_signed_solve(triangle, width, length, sign, use, &subset))
        return vp_error_set(error, VP_ERR_MISMATCH, -1, "fit",
                            "the columns are too close to linearly dependent to find their signs");
    for (size_t j = 0; j + 1 < width; j++)
        if (state[j] == VP_LINEAR_USED && !use[j]) state[j] = VP_LINEAR_AT_ZERO;
    vp_impl_linear_fill(&subset, length, state, width - 1, rows, fit);
    return VP_OK;
}

VP_API vp_linear_options vp_linear_options_default(void) {
    vp_linear_options options;
    options.weights = NULL;
    options.nonnegative = NULL;
    options.drop_dependent = 0;
    return options;
}

static vp_result vp_impl_linear_check(const double *x, const double *y, size_t rows, size_t columns,
                                      const vp_linear_options *options, vp_error *error) {
    size_t i, points;
    if (!x || !y || !options || !rows || columns < 1 || columns > VP_LINEAR_COLUMNS_LIMIT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "needs at least one row, and 1 to 24 columns");
    if (!vp_size_multiply(rows, columns, &points) || points > SIZE_MAX / sizeof(double)
        || !vp_statistics_all_finite(x, points) || !vp_statistics_all_finite(y, rows))
        return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "a value is not finite");
    for (i = 0; options->weights && i < rows; i++) {
        if (!(options->weights[i] > 0.0 && options->weights[i] < HUGE_VAL))
            return vp_error_set(error, VP_ERR_RANGE, (int64_t)i, "fit", "a weight is not above 0");
    }
    return VP_OK;
}

VP_API vp_result vp_linear_compute(const double *x, const double *y, size_t rows, size_t columns,
                                   const vp_linear_options *options, vp_linear *fit, vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather gather;
    if (!fit) return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "the output pointer is NULL");
    if (vp_impl_linear_check(x, y, rows, columns, options, error) != VP_OK) return VP_ERR_RANGE;
    vp_impl_gather_open(&gather, columns);
    for (size_t i = 0; i < rows; i++)
        vp_impl_gather_row(&gather, x + i * columns, y[i], options->weights ? options->weights[i] : 1.0);
    vp_impl_gather_copy(&gather, triangle);
    return vp_impl_linear_solve(triangle, columns + 1, (uint64_t)rows, options->nonnegative, options->drop_dependent,
                                fit, error);
}

static int vp_impl_linear_good(const vp_linear *fit) {
    return fit && fit->columns >= 1 && fit->columns <= VP_LINEAR_COLUMNS_LIMIT;
}

VP_API double vp_linear_value(const vp_linear *fit, const double *x) {
    double sum = 0.0;
    if (!vp_impl_linear_good(fit) || !x) return (double)NAN;
    for (int32_t j = 0; j < fit->columns; j++) sum += fit->coefficient[j] * x[j];
    return sum;
}

VP_API vp_result vp_linear_interval(const vp_linear *fit, const double *x, double weight, double level,
                                    vp_linear_range *range) {
    double spread = 0.0, t;
    if (!vp_impl_linear_good(fit) || !x || !(weight > 0.0 && weight < HUGE_VAL) || !(level > 0.0 && level < 1.0)
        || !range)
        return VP_ERR_RANGE;
    if (!vp_statistics_all_finite(x, (size_t)fit->columns)) return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    for (int32_t j = 0; j < fit->columns; j++) { /* x' B B' x */
        double sum = 0.0;
        for (int32_t i = 0; i < fit->columns; i++) sum += x[i] * fit->root[i * fit->columns + j];
        spread += sum * sum;
    }
    t = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->sigma;
    range->value = vp_linear_value(fit, x);
    range->mean_low = range->value - t * sqrt(spread);
    range->mean_high = range->value + t * sqrt(spread);
    range->low = range->value - t * sqrt(spread + 1.0 / weight);
    range->high = range->value + t * sqrt(spread + 1.0 / weight);
    return VP_OK;
}

VP_API vp_result vp_linear_coefficient(const vp_linear *fit, int32_t column, double level, double *low, double *high) {
    if (!vp_impl_linear_good(fit) || column < 0 || column >= fit->columns || !(level > 0.0 && level < 1.0) || !low
        || !high)
        return VP_ERR_RANGE;
    if (!(fit->degrees >= 1.0)) return VP_ERR_MISMATCH;
    double reach = vp_statistics_student(0.5 + 0.5 * level, fit->degrees) * fit->error[column];
    *low = fit->coefficient[column] - reach;
    *high = fit->coefficient[column] + reach;
    return VP_OK;
}

VP_API vp_result vp_linear_errors_compute(const double *measured, const double *predicted, size_t count,
                                          double *scratch, vp_linear_errors *errors) {
    double mean, squares = 0.0, spread = 0.0, n = (double)count;
    vp_linear_errors made = {0};
    if (!measured || !predicted || !count || !scratch || !errors) return VP_ERR_RANGE;
    if (!vp_statistics_all_finite(measured, count) || !vp_statistics_all_finite(predicted, count)) return VP_ERR_RANGE;
    mean = vp_statistics_mean(measured, count);
    for (size_t i = 0; i < count; i++) {
        const double rest = predicted[i] - measured[i];
        made.mae += fabs(rest);
        made.bias += rest;
        made.mape += fabs(rest) / fabs(measured[i]); /* infinite or NaN if measured is 0 */
        squares += rest * rest;
        spread += (measured[i] - mean) * (measured[i] - mean);
        scratch[i] = fabs(rest);
    }
    vp_sort_double(scratch, count);
    made.count = count;
    made.r2 = scratch[0] >= 0.0 && spread > 0.0 ? 1.0 - squares / spread : (double)NAN;
    made.mae /= n;
    made.bias /= n;
    made.mape = vp_statistics_all_finite(&made.mape, 1) ? made.mape / n : (double)NAN;
    made.rmse = sqrt(squares / n);
    made.p95_absolute = vp_statistics_percentile(scratch, count, 95.0);
    made.max_absolute = scratch[count - 1];
    if (!vp_statistics_all_finite(&made.rmse, 1)) return VP_ERR_RANGE;
    *errors = made;
    return VP_OK;
}

/* working memory of leave-one-out: for each group a triangle, a triangle of all later groups, coefficients and a row
 * count */
typedef struct vp_impl_leave_out {
    double *own, *behind, *coefficient; /* [groups, width, width] twice, [groups, columns] */
    uint64_t *rows;                     /* [groups] */
    size_t width, groups;
} vp_impl_leave_out;

static vp_result vp_impl_leave_out_take(vp_impl_leave_out *folds, size_t columns, const uint32_t *of_row, size_t rows,
                                        size_t groups, void *scratch, size_t scratch_bytes, vp_error *error) {
    vp_arena arena = vp_arena_over(scratch, scratch_bytes);
    const size_t square = (columns + 1) * (columns + 1) * sizeof(double);
    for (size_t i = 0; i < rows; i++)
        if (of_row[i] >= groups)
            return vp_error_set(error, VP_ERR_RANGE, (int64_t)i, "fit", "a group index is not below group_count");
    folds->width = columns + 1;
    folds->groups = groups;
    folds->own = (double *)vp_arena_take(&arena, groups, square);
    folds->behind = (double *)vp_arena_take(&arena, groups, square);
    folds->coefficient = (double *)vp_arena_take(&arena, groups, columns * sizeof(double));
    folds->rows = (uint64_t *)vp_arena_take(&arena, groups, sizeof(uint64_t));
    if (!folds->own || !folds->behind || !folds->coefficient || !folds->rows)
        return vp_error_set(error, VP_ERR_CAPACITY, -1, "fit", "scratch is too small");
    memset(folds->own, 0, groups * square);
    memset(folds->rows, 0, groups * sizeof(uint64_t));
    return VP_OK;
}

/* adds a row to a group by rotating it into the group's triangle, element by element, so that rows may be in any order
 * of groups */
static void vp_impl_leave_out_row(vp_impl_leave_out *folds, size_t group, const double *x, double y, double weight) {
    double *triangle = folds->own + group * folds->width * folds->width, row[VP_IMPL_LINEAR_WIDTH];
    const double root = sqrt(weight);
    size_t i, j;
    for (j = 0; j + 1 < folds->width; j++) row[j] = root * x[j];
    row[j] = root * y;
    folds->rows[group]++;
    for (i = 0; i < folds->width; i++) {
        if (!(row[i] < 0.0 || row[i] > 0.0)) continue;
        double length = hypot(triangle[i * folds->width + i], row[i]);
        double c = triangle[i * folds->width + i] / length;
        double s = row[i] / length;
        for (j = i; j < folds->width; j++) {
            const double above = triangle[j * folds->width + i];
            triangle[j * folds->width + i] = c * above + s * row[j];
            row[j] = c * row[j] - s * above;
        }
    }
}

/* Fits all other groups for each group with rows. Earlier groups are combined as it proceeds; later groups were
 * combined beforehand. */
static vp_result vp_impl_leave_out_solve(vp_impl_leave_out *folds, const unsigned char *nonnegative, int drop,
                                         vp_error *error) {
    const size_t square = folds->width * folds->width, columns = folds->width - 1;
    double before[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], others[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH];
    vp_impl_gather gather;
    vp_linear fit;
    uint64_t all = 0;
    for (size_t k = folds->groups; k-- > 0;) {
        all += folds->rows[k];
        if (k + 1 == folds->groups) {
            memset(folds->behind + k * square, 0, square * sizeof(double));
            continue;
        }
        vp_impl_gather_open(&gather, columns);
        vp_impl_gather_triangle(&gather, folds->behind + (k + 1) * square);
        vp_impl_gather_triangle(&gather, folds->own + (k + 1) * square);
        vp_impl_gather_copy(&gather, folds->behind + k * square);
    }
    memset(before, 0, sizeof before);
    for (size_t k = 0; k < folds->groups; k++) {
        vp_result result;
        if (!folds->rows[k]) continue;
        vp_impl_gather_open(&gather, columns);
        vp_impl_gather_triangle(&gather, before);
        vp_impl_gather_triangle(&gather, folds->behind + k * square);
        vp_impl_gather_copy(&gather, others);
        result = vp_impl_linear_solve(others, folds->width, all - folds->rows[k], nonnegative, drop, &fit, error);
        if (result != VP_OK) return result;
        memcpy(folds->coefficient + k * columns, fit.coefficient, columns * sizeof(double));
        vp_impl_gather_open(&gather, columns);
        vp_impl_gather_triangle(&gather, before);
        vp_impl_gather_triangle(&gather, folds->own + k * square);
        vp_impl_gather_copy(&gather, before);
    }
    return VP_OK;
}

static double vp_impl_leave_out_value(const vp_impl_leave_out *folds, size_t group, const double *x) {
    const double *coefficient = folds->coefficient + group * (folds->width - 1);
    double sum = 0.0;
    for (size_t j = 0; j + 1 < folds->width; j++) sum += coefficient[j] * x[j];
    return sum;
}

/* ---- the cost of a request */
VP_API const char *vp_latency_stage_name(vp_latency_stage stage) {
    switch ((int)stage) {
#define VP_IMPL_LATENCY_CASE(name, text) case VP_LATENCY_##name: return text;
    VP_LATENCY_STAGES(VP_IMPL_LATENCY_CASE)
#undef VP_IMPL_LATENCY_CASE
    default: return NULL;
    }
}

VP_API const char *vp_latency_column_name(vp_latency_features features, vp_latency_stage stage, int32_t column) {
    static const char *const physical[VP_LATENCY_STAGE_COUNT][VP_LATENCY_COLUMNS_LIMIT] = {
        {"1", "views", "vision_tokens"},
        {"1", "sequence", "blocks", "blocks*sequence", "blocks*sequence*top_k", "blocks*sequence^2",
         "blocks*experts_read", "blocks*bytes", "blocks*experts_read*bytes", "blocks*widened",
         "blocks*experts_read*widened"},
        {"steps", "steps*blocks", "steps*blocks*top_k", "blocks*positions_read", "steps*blocks*bytes",
         "steps*blocks*top_k*bytes", "steps*blocks*widened", "steps*blocks*top_k*widened"},
        {"1", "views", "sequence"},
    };
    /* columns for the weights follow the physical ones */
    static const int32_t plain[VP_LATENCY_STAGE_COUNT] = {3, 7, 4, 3};
    static const char *const seed[VP_LATENCY_COLUMNS_LIMIT] = {
        "1", "vision_tokens", "text_tokens", "tier_index", "top_k", "num_active_blocks", "output_tokens"};
    if ((int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || column < 0 || column >= VP_LATENCY_COLUMNS_LIMIT)
        return NULL;
    if (features == VP_LATENCY_WEIGHTS) return physical[stage][column];
    if (features == VP_LATENCY_PHYSICAL) return column < plain[stage] ? physical[stage][column] : NULL;
    if (features == VP_LATENCY_SEED) return seed[column];
    return features == VP_LATENCY_MEAN && column == 0 ? "1" : NULL;
}

static int vp_impl_latency_good(const vp_latency_request *request) {
    return request->views >= 0 && request->vision_tokens >= 0 && request->text_tokens >= 0 && request->sequence >= 1
           && request->output_tokens >= 1 && request->tier_index >= 0 && request->active_blocks >= 1
           && request->top_k >= (request->expert_count > 0) && request->top_k <= request->expert_count
           && request->dropped_tokens >= 0 && request->dropped_tokens <= request->vision_tokens
           && request->dropped_tokens < request->sequence
           && (!request->dropped_tokens
               || (request->full_blocks >= 0 && request->full_blocks <= (double)request->active_blocks))
           && request->own_count >= 0 && request->own_count <= VP_LATENCY_OWN
           && vp_statistics_all_finite(request->own, (size_t)request->own_count);
}

static int vp_impl_latency_fits(vp_latency_features features, const vp_latency_request *request) {
    const int32_t bits = request->weight_bits;
    return vp_impl_latency_good(request)
           && (features != VP_LATENCY_WEIGHTS || bits == 4 || bits == 8 || bits == 16 || bits == 32);
}

static int vp_impl_latency_is_physical(vp_latency_features features) {
    return features == VP_LATENCY_PHYSICAL || features == VP_LATENCY_WEIGHTS;
}

static int vp_impl_latency_runs(vp_latency_stage stage, const vp_latency_request *request) {
    return stage == VP_LATENCY_VISION ? request->views > 0 : stage != VP_LATENCY_DECODE || request->output_tokens > 1;
}

/* adds the contribution of `blocks` blocks with n rows each to the block-dependent columns of prefill or decode */
static void vp_impl_latency_blocks(vp_latency_stage stage, const vp_latency_request *request, double blocks, double n,
                                   double *x) {
    const double k = (double)request->top_k, steps = (double)request->output_tokens - 1.0;
    if (stage == VP_LATENCY_DECODE) {
        x[3] += blocks * (steps * n + 0.5 * steps * (steps - 1.0));
        return;
    }
    x[3] += blocks * n;
    x[4] += blocks * n * k;
    x[5] += blocks * n * n;
    /* E (1 - (1 - k / E)^n), accurate also for many experts and few tokens */
    x[6] += blocks * (double)request->expert_count
            * (request->top_k < request->expert_count ? -expm1(n * log1p(-k / (double)request->expert_count)) : 1.0);
}
static int32_t vp_impl_latency_physical(vp_latency_stage stage, const vp_latency_request *request, double *x) {
    const double n = (double)request->sequence, blocks = (double)request->active_blocks,
                 steps = (double)request->output_tokens - 1.0, dropped = (double)request->dropped_tokens,
                 full = request->dropped_tokens ? request->full_blocks : blocks, first = full > 0 ? n : n - dropped;
    int32_t i, count = stage == VP_LATENCY_PREFILL ? 7 : 4;
    if (stage == VP_LATENCY_VISION || stage == VP_LATENCY_OTHER) {
        x[0] = 1.0;
        x[1] = (double)request->views;
        x[2] = stage == VP_LATENCY_VISION ? (double)request->vision_tokens : first;
        return 3;
    }
    x[0] = stage == VP_LATENCY_PREFILL ? 1.0 : steps;
    x[1] = stage == VP_LATENCY_PREFILL ? first : steps * blocks;
    x[2] = stage == VP_LATENCY_PREFILL ? blocks : steps * blocks * (double)request->top_k;
    for (i = 3; i < count; i++) x[i] = 0.0;
    vp_impl_latency_blocks(stage, request, full, n, x);
    if (blocks > full) vp_impl_latency_blocks(stage, request, blocks - full, n - dropped, x);
    return count;
}

/* adds the columns for reading and widening weights, after the physical columns */
static int32_t vp_impl_latency_weights(vp_latency_stage stage, const vp_latency_request *request, double *x,
                                       int32_t count) {
    const double widened = request->weight_bits < 16 ? 1.0 : 0.0,
                 bytes = (double)request->weight_bits / 8.0 + 0.0625 * widened;
    const int32_t dense = stage == VP_LATENCY_PREFILL ? 2 : 1, experts = stage == VP_LATENCY_PREFILL ? 6 : 2;
    if (stage != VP_LATENCY_PREFILL && stage != VP_LATENCY_DECODE) return count;
    x[count] = x[dense] * bytes;
    x[count + 1] = x[experts] * bytes;
    x[count + 2] = x[dense] * widened;
    x[count + 3] = x[experts] * widened;
    return count + 4;
}

/* the model inputs of a request that was already checked */
static int32_t vp_impl_latency_row(vp_latency_features features, vp_latency_stage stage,
                                   const vp_latency_request *request, double *x) {
    const int runs = vp_impl_latency_runs(stage, request);
    int32_t count = 1, i;
    x[0] = 1.0;
    if (vp_impl_latency_is_physical(features)) {
        count = vp_impl_latency_physical(stage, request, x);
        if (features == VP_LATENCY_WEIGHTS) count = vp_impl_latency_weights(stage, request, x, count);
    } else if (features == VP_LATENCY_SEED) {
        x[1] = (double)(request->vision_tokens - request->dropped_tokens);
        x[2] = (double)request->text_tokens;
        x[3] = (double)request->tier_index;
        x[4] = (double)request->top_k;
        x[5] = (double)request->active_blocks;
        x[6] = (double)request->output_tokens;
        count = 7;
    }
    for (i = 0; i < request->own_count && features != VP_LATENCY_MEAN; i++)
        x[count++] = request->own[i] * (vp_impl_latency_is_physical(features) ? x[0] : 1.0);
    for (i = 0; !runs && i < count; i++) x[i] = 0.0;
    return count;
}

/* The number of a stage's columns, with those of the caller in the first request; *any: a request with that number. */
static size_t vp_impl_latency_columns(vp_latency_features features, vp_latency_stage stage,
                                      const vp_latency_request *requests, vp_latency_request *any) {
    const int32_t own = requests->own_count;
    double x[VP_LATENCY_COLUMNS_LIMIT];
    memset(any, 0, sizeof *any);
    any->own_count = own < 0 || own > VP_LATENCY_OWN ? 0 : own; /* vp_impl_latency_use rejects such requests */
    return (size_t)vp_impl_latency_row(features, stage, any, x);
}
static int vp_impl_latency_kind(vp_latency_features features) {
    return vp_impl_latency_is_physical(features) || features == VP_LATENCY_SEED || features == VP_LATENCY_MEAN;
}

VP_API vp_result vp_latency_row(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request,
                                double *x, int32_t *columns) {
    if (!request || !x || !columns || !vp_impl_latency_kind(features) || (int)stage < 0
        || (int)stage >= VP_LATENCY_STAGE_COUNT)
        return VP_ERR_RANGE;
    if (!vp_impl_latency_fits(features, request)) return VP_ERR_RANGE;
    *columns = vp_impl_latency_row(features, stage, request, x);
    return VP_OK;
}

/* Returns 1 if the fit can use row i of a stage, 0 if not, -1 if the row is invalid (the error gives the reason).
 * request: that row, in an array of all */
static int vp_impl_latency_use(vp_latency_features features, vp_latency_stage stage, const vp_latency_request *request,
                               double measured, size_t row, vp_error *error) {
    if (!vp_impl_latency_fits(features, request) || (request - row)->own_count != request->own_count) {
        vp_error_set(error, VP_ERR_RANGE, (int64_t)row, "request", "a count is out of range");
        return -1;
    }
    if (measured != measured || !vp_impl_latency_runs(stage, request)) return 0;
    if (!vp_statistics_all_finite(&measured, 1)
        || (vp_impl_latency_is_physical(features) && !(measured > 1e-100 && measured < 1e100))) {
        vp_error_set(error, VP_ERR_RANGE, (int64_t)row, vp_latency_stage_name(stage),
                     "a measured latency is not above 0");
        return -1;
    }
    return 1;
}

/* signs [VP_LATENCY_COLUMNS_LIMIT]: 1 for the physical columns; `columns` with the caller's own */
static const unsigned char *vp_impl_latency_signs(vp_latency_features features, size_t columns, int32_t own,
                                                  unsigned char *signs) {
    for (size_t j = 0; j < columns; j++) signs[j] = j + (size_t)own < columns;
    return vp_impl_latency_is_physical(features) ? signs : NULL;
}

/* weights of the rows: equal at first, then from the predictions of the previous fit */
typedef struct vp_impl_latency_weigh {
    int by_prediction;
    vp_linear before;
    double least; /* lower bound of a prediction, so that none near 0 outweighs all others */
} vp_impl_latency_weigh;
enum { VP_IMPL_LATENCY_ROUNDS = 30 };
#define VP_IMPL_LATENCY_LEAST 0.01   /* lower limit of a weight's time, as a share of the mean measured time */
#define VP_IMPL_LATENCY_SETTLED 1e-9 /* relative change of a coefficient that ends the iteration */

static double vp_impl_latency_weight(const vp_impl_latency_weigh *weigh, const double *x) {
    double value = weigh->by_prediction ? vp_linear_value(&weigh->before, x) : 1.0;
    if (weigh->by_prediction && value < weigh->least) value = weigh->least;
    return 1.0 / (value * value);
}

/* fits a stage's rows once; `stride` is the distance in doubles between the measured values of two rows */
static vp_result vp_impl_latency_fit_once(vp_latency_features features, vp_latency_stage stage,
                                          const vp_latency_request *requests, const double *measured, size_t stride,
                                          size_t rows, vp_impl_latency_weigh *weigh, vp_linear *fit, vp_error *error) {
    double triangle[VP_IMPL_LINEAR_WIDTH * VP_IMPL_LINEAR_WIDTH], x[VP_LATENCY_COLUMNS_LIMIT], sum = 0.0;
    vp_impl_gather gather;
    vp_latency_request any;
    unsigned char signs[VP_LATENCY_COLUMNS_LIMIT];
    memset(fit, 0, sizeof *fit);
    vp_impl_gather_open(&gather, vp_impl_latency_columns(features, stage, requests, &any));
    for (size_t i = 0; i < rows; i++) {
        const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i * stride], i, error);
        if (use < 0) return VP_ERR_RANGE;
        if (!use) continue;
        vp_impl_latency_row(features, stage, &requests[i], x);
        vp_impl_gather_row(&gather, x, measured[i * stride], vp_impl_latency_weight(weigh, x));
        sum += measured[i * stride];
    }
    if (!gather.rows) return VP_OK;
    weigh->least = VP_IMPL_LATENCY_LEAST * sum / (double)gather.rows;
    vp_impl_gather_copy(&gather, triangle);
    return vp_impl_linear_solve(triangle, gather.width, gather.rows,
                                vp_impl_latency_signs(features, gather.width - 1, any.own_count, signs), 1, fit, error);
}

static int vp_impl_latency_settled(const vp_linear *before, const vp_linear *now) {
    for (int32_t j = 0; j < now->columns; j++) {
        const double size = fabs(now->coefficient[j]);
        if (!(fabs(now->coefficient[j] - before->coefficient[j]) <= VP_IMPL_LATENCY_SETTLED * size)) return 0;
    }
    return 1;
}

/* Fits one stage. fit->rows is 0 if no row can be used. *weigh must be cleared; it returns the weighting of the last
 * pass. */
static vp_result vp_impl_latency_fit_stage(vp_latency_features features, vp_latency_stage stage,
                                           const vp_latency_request *requests, const double *measured, size_t stride,
                                           size_t rows, vp_impl_latency_weigh *weigh, vp_linear *fit, vp_error *error) {
    vp_result result = vp_impl_latency_fit_once(features, stage, requests, measured, stride, rows, weigh, fit, error);
    int round, settled = !vp_impl_latency_is_physical(features);
    for (round = 0; result == VP_OK && fit->rows && !settled && round < VP_IMPL_LATENCY_ROUNDS; round++) {
        weigh->before = *fit;
        weigh->by_prediction = 1;
        result = vp_impl_latency_fit_once(features, stage, requests, measured, stride, rows, weigh, fit, error);
        settled = result == VP_OK && vp_impl_latency_settled(&weigh->before, fit);
    }
    return result;
}

VP_API vp_result vp_latency_fit(vp_latency_features features, const vp_latency_request *requests,
                                const double *measured, size_t rows, vp_latency_model *model, vp_error *error) {
    vp_latency_model made = {0};
    vp_impl_latency_weigh weigh;
    int32_t s, any = 0;
    if (!requests || !measured || !rows || !model || !vp_impl_latency_kind(features)
        || rows > SIZE_MAX / sizeof *requests)
        return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "needs at least one row and valid features");
    made.features = features;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        memset(&weigh, 0, sizeof weigh);
        vp_result result = vp_impl_latency_fit_stage(features, (vp_latency_stage)s, requests, measured + s,
                                                     VP_LATENCY_STAGE_COUNT, rows, &weigh, &made.fit[s], error);
        if (result != VP_OK) return result;
        made.fitted[s] = made.fit[s].rows > 0;
        made.affine[s].slope = 1.0;
        made.affine[s].condition = 1.0;
        any |= made.fitted[s];
    }
    if (!any) return vp_error_set(error, VP_ERR_MISMATCH, -1, "fit", "no stage has a measured row");
    *model = made;
    return VP_OK;
}

static int vp_impl_latency_model_good(const vp_latency_model *model) {
    if (!model || !vp_impl_latency_kind(model->features)) return 0;
    for (int32_t s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (model->fitted[s] && (model->fit[s].columns < 1 || model->fit[s].columns > VP_LATENCY_COLUMNS_LIMIT))
            return 0;
    }
    return 1;
}

VP_API vp_result vp_latency_predict(const vp_latency_model *model, const vp_latency_request *request,
                                    vp_latency_prediction *prediction) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, sum;
    int32_t s, j, columns;
    if (!vp_impl_latency_model_good(model) || !request || !prediction
        || !vp_impl_latency_fits(model->features, request))
        return VP_ERR_RANGE;
    prediction->total = 0.0;
    for (s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (!model->fitted[s]) {
            prediction->stage[s] = (double)NAN;
            continue;
        }
        prediction->stage[s] = 0.0;
        if (!vp_impl_latency_runs((vp_latency_stage)s, request)) continue;
        columns = vp_impl_latency_row(model->features, (vp_latency_stage)s, request, x);
        if (columns > model->fit[s].columns) columns = model->fit[s].columns;
        for (sum = 0.0, j = 0; j < columns; j++) sum += model->fit[s].coefficient[j] * x[j];
        prediction->stage[s] = model->affine[s].slope * sum + model->affine[s].offset;
        prediction->total += prediction->stage[s];
    }
    return VP_OK;
}

VP_API vp_result vp_latency_interval(const vp_latency_model *model, vp_latency_stage stage,
                                     const vp_latency_request *request, double level, vp_linear_range *range) {
    double x[VP_LATENCY_COLUMNS_LIMIT] = {0.0}, value, held, weight;
    vp_linear_range made;
    if (!vp_impl_latency_model_good(model) || (int)stage < 0 || (int)stage >= VP_LATENCY_STAGE_COUNT || !request
        || !range)
        return VP_ERR_RANGE;
    if (!vp_impl_latency_fits(model->features, request) || !vp_impl_latency_runs(stage, request)) return VP_ERR_RANGE;
    if (!model->fitted[stage]) return VP_ERR_MISMATCH;
    vp_impl_latency_row(model->features, stage, request, x);
    value = vp_linear_value(&model->fit[stage], x);
    /* new rows are weighted by their prediction */
    weight = vp_impl_latency_is_physical(model->features) ? 1.0 / (value * value) : 1.0;
    vp_result result = vp_linear_interval(&model->fit[stage], x, weight, level, &made);
    if (result != VP_OK) return result;
    const vp_affine *line = &model->affine[stage];
    made.value = line->slope * made.value + line->offset;
    made.mean_low = line->slope * made.mean_low + line->offset;
    made.mean_high = line->slope * made.mean_high + line->offset;
    made.low = line->slope * made.low + line->offset;
    made.high = line->slope * made.high + line->offset;
    if (line->slope < 0.0) { /* a falling line swaps the ends */
        held = made.low;
        made.low = made.high;
        made.high = held;
        held = made.mean_low;
        made.mean_low = made.mean_high;
        made.mean_high = held;
    }
    if (made.low < 0.0 && made.value >= 0.0) made.low = 0.0; /* times are never negative */
    if (made.mean_low < 0.0 && made.value >= 0.0) made.mean_low = 0.0;
    *range = made;
    return VP_OK;
}

VP_API vp_result vp_latency_limits_compute(const double *measured, const double *predicted, size_t count, double level,
                                           double *scratch, vp_latency_limits *limits) {
    vp_latency_limits made;
    if (!measured || !predicted || !count || !scratch || !limits || !(level > 0.0 && level < 1.0)) return VP_ERR_RANGE;
    if (!vp_statistics_all_finite(measured, count) || !vp_statistics_all_finite(predicted, count)) return VP_ERR_RANGE;
    for (size_t i = 0; i < count; i++) {
        if (!(predicted[i] > 0.0) || !(measured[i] >= 0.0)) return VP_ERR_RANGE;
        scratch[i] = measured[i] / predicted[i];
    }
    if (!vp_statistics_all_finite(scratch, count)) return VP_ERR_RANGE;
    /* 40 * 0.025 is 1 - 1e-15 in doubles */
    double place = floor(((double)count + 1.0) * (1.0 - level) / 2.0 + 1e-9);
    if (!(place >= 1.0)) return VP_ERR_MISMATCH;
    vp_sort_double(scratch, count);
    made.count = count;
    made.level = level;
    made.low = scratch[(size_t)place - 1];
    made.high = scratch[count - (size_t)place];
    *limits = made;
    return VP_OK;
}

VP_API double vp_linear_stretch(const vp_linear_range *range) {
    const double all = range->high - range->value, line = range->mean_high - range->value;
    return all > line && line > 0.0 ? all / sqrt((all - line) * (all + line)) : 1.0;
}

VP_API void vp_latency_limits_apply(const vp_latency_limits *limits, double value, double stretch, double *low,
                                    double *high) {
    const double below = limits->low < 1.0 ? 1.0 - stretch * (1.0 - limits->low) : limits->low;
    const double above = limits->high > 1.0 ? 1.0 + stretch * (limits->high - 1.0) : limits->high;
    *low = below > 0.0 ? value * below : 0.0;
    *high = value * above;
}

VP_API size_t vp_latency_leave_out_scratch_bytes(size_t group_count) {
    const size_t columns = VP_LATENCY_COLUMNS_LIMIT;
    size_t bytes = 64;
    vp_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_arena_need(&bytes, group_count, (columns + 1) * (columns + 1) * sizeof(double));
    vp_arena_need(&bytes, group_count, columns * sizeof(double));
    vp_arena_need(&bytes, group_count, sizeof(uint64_t));
    return bytes;
}

VP_API vp_result vp_latency_leave_out(vp_latency_features features, vp_latency_stage stage,
                                      const vp_latency_request *requests, const double *measured,
                                      const uint32_t *groups, size_t rows, size_t group_count, void *scratch,
                                      size_t scratch_bytes, double *predicted, vp_error *error) {
    double x[VP_LATENCY_COLUMNS_LIMIT];
    unsigned char signs[VP_LATENCY_COLUMNS_LIMIT];
    vp_latency_request any;
    vp_impl_leave_out folds = {0};
    vp_linear fit;
    vp_impl_latency_weigh weigh = {0};
    vp_result result;
    if (!requests || !measured || !groups || !rows || !predicted || !vp_impl_latency_kind(features) || (int)stage < 0
        || (int)stage >= VP_LATENCY_STAGE_COUNT)
        return vp_error_set(error, VP_ERR_RANGE, -1, "fit", "needs rows, groups, a valid stage and valid features");
    size_t columns = vp_impl_latency_columns(features, stage, requests, &any);
    result = vp_impl_leave_out_take(&folds, columns, groups, rows, group_count, scratch, scratch_bytes, error);
    if (result != VP_OK) return result;
    if (vp_impl_latency_is_physical(features)) { /* all folds use the weights from the fit of all rows */
        result = vp_impl_latency_fit_stage(features, stage, requests, measured, 1, rows, &weigh, &fit, error);
        if (result != VP_OK) return result;
    }
    for (int pass = 0; pass < 2; pass++) { /* 0: learn, 1: predict */
        for (size_t i = 0; i < rows; i++) {
            const int use = vp_impl_latency_use(features, stage, &requests[i], measured[i], i, error);
            if (use < 0) return VP_ERR_RANGE;
            if (use) vp_impl_latency_row(features, stage, &requests[i], x);
            if (pass) predicted[i] = use ? vp_impl_leave_out_value(&folds, groups[i], x) : (double)NAN;
            else if (use) vp_impl_leave_out_row(&folds, groups[i], x, measured[i], vp_impl_latency_weight(&weigh, x));
        }
        if (pass) break;
        vp_impl_latency_signs(features, columns, any.own_count, signs);
        result = vp_impl_leave_out_solve(&folds, vp_impl_latency_is_physical(features) ? signs : NULL, 1, error);
        if (result != VP_OK) return result;
    }
    return VP_OK;
}
