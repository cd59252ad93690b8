/* prune_kernels.h: tests of the kernels in parts/kernels/shared/prune_rows.h one by one, a part of test_kernels.c, which includes it. */
#ifndef PRUNE_KERNELS_H
#define PRUNE_KERNELS_H

/* scores of queries against keys of grouped heads; damaged: without the scale */
static double score_of(const vk_scores_job *job, int query, int head, int key, double scale, int wide) {
    double sum = 0.0;
    for (int i = 0; i < job->head_dim; i++)
        sum += get(job->q, (size_t)(query * job->ldq + head * job->head_dim + i), wide)
               * get(job->k, (size_t)(key * job->ldk + head / (job->heads / job->kv_heads) * job->head_dim + i), wide);
    return sum * scale;
}
static void test_attention_scores(int queries, int keys, int heads, int group, int head_dim, int wide) {
    vk_scores_job job = {0};
    int pairs = queries * heads;
    check_case("attention_tops, _received queries %d keys %d heads %d/%d of %d wide %d", queries, keys, heads, group, head_dim, wide);
    job.queries = queries; job.keys = keys; job.heads = heads; job.kv_heads = heads / group; job.head_dim = head_dim;
    job.ldq = (int)padded((size_t)(heads * head_dim));
    job.ldk = heads / group * head_dim + 3;
    job.scale = 1.0f / sqrtf((float)head_dim);
    job.q = inputs((size_t)queries, (size_t)(heads * head_dim), (size_t)job.ldq, wide);
    job.k = matrix((size_t)keys, 0, (size_t)(job.kv_heads * head_dim), (size_t)job.ldk, NAN, wide);
    job.tops = (float *)take((size_t)(2 * pairs) * sizeof(float));
    job.received = (float *)take((size_t)keys * sizeof(float));
    expected tops = expect_new((size_t)pairs, 2);
    expected received = expect_new((size_t)keys, 1);
    for (int key = 0; key < keys; key++) expect(&received, (size_t)key, 0, 0, 0, 1, 1);
    for (int pair = 0; pair < pairs; pair++)
        for (int damaged = 0; damaged < 2; damaged++) {
            double top = -INFINITY, sum = 0.0;
            for (int key = 0; key < keys; key++) top = fmax(top, score_of(&job, pair / heads, pair % heads, key, damaged ? 1.0 : job.scale, wide));
            for (int key = 0; key < keys; key++)
                sum += exp(score_of(&job, pair / heads, pair % heads, key, damaged ? 1.0 : job.scale, wide) - top);
            for (int key = 0; key < keys; key++) {
                double share = exp(score_of(&job, pair / heads, pair % heads, key, damaged ? 1.0 : job.scale, wide) - top) / sum / heads;
                (damaged ? received.bad : received.want)[key] += share;
                if (!damaged) received.tolerance[key] += SAFETY * unit * share * sqrt((double)head_dim + pairs + 60);
            }
            if (damaged) tops.bad[2 * pair] = top, tops.bad[2 * pair + 1] = sum;
            else {
                expect(&tops, (size_t)(2 * pair), top, 0, 1, (double)head_dim, 1);
                expect(&tops, (size_t)(2 * pair + 1), sum, 0, sum, (double)(head_dim + keys + 60), 1);
            }
        }
    if (keys == 1) for (int pair = 0; pair < pairs; pair++) tops.bad[2 * pair + 1] = received.bad[0] = 0; /* one key gets everything, by any scale */
    int64_t bytes = ((int64_t)pairs + (int64_t)keys * job.kv_heads) * head_dim * size_of(wide) + 8 * (int64_t)pairs;
    SEND(1, (int64_t)pairs * keys * (2 * head_dim + 5), bytes, kernels->attention_tops(queue, &job, wide));
    verdict(job.tops, 2, 1, &tops);
    SEND(1, (int64_t)pairs * keys * (2 * head_dim + 5) + keys, bytes + 4 * (int64_t)keys, kernels->attention_received(queue, &job, wide));
    verdict(job.received, 1, 1, &received);
    release_all();
}
/* L1 sizes and means over heads of the same rows; damaged: with their signs; the first head alone */
static void test_row_sizes(int rows, int heads, int head_dim, int wide) {
    int width = heads * head_dim, ld = width + 5;
    float *size, *mean;
    check_case("row_size, mean_heads rows %d heads %d of %d wide %d", rows, heads, head_dim, wide);
    expected sizes = expect_new((size_t)rows, 1);
    expected means = expect_new((size_t)rows, (size_t)head_dim);
    void *x = matrix((size_t)rows, 0, (size_t)width, (size_t)ld, NAN, wide);
    size = (float *)take((size_t)rows * sizeof *size);
    mean = (float *)take((size_t)(rows * head_dim) * sizeof *mean);
    for (int r = 0; r < rows; r++) {
        double sum = 0.0, plain = 0.0;
        for (int i = 0; i < width; i++) { sum += fabs(get(x, (size_t)(r * ld + i), wide)); plain += get(x, (size_t)(r * ld + i), wide); }
        expect(&sizes, (size_t)r, sum, plain, sum, (double)width, 1);
        for (int i = 0; i < head_dim; i++) {
            double of_head = 0.0;
            for (int h = 0; h < heads; h++) of_head += get(x, (size_t)(r * ld + h * head_dim + i), wide);
            expect(&means, (size_t)(r * head_dim + i), of_head / heads, heads > 1 ? get(x, (size_t)(r * ld + i), wide) : 2, 1, (double)heads + 1, 1);
        }
    }
    SEND(1, (int64_t)rows * width, (int64_t)rows * width * size_of(wide) + 4 * (int64_t)rows, kernels->row_size(queue, size, x, rows, width, ld, wide));
    verdict(size, 1, 1, &sizes);
    SEND(1, (int64_t)rows * head_dim * (heads + 1), (int64_t)rows * head_dim * (heads * size_of(wide) + 4),
         kernels->mean_heads(queue, mean, x, rows, heads, head_dim, ld, wide));
    verdict(mean, (size_t)head_dim, 1, &means);
    release_all();
}
/* rows of length 1, and their products with others; damaged: divided by the square; the last product missing */
static void test_unit_rows(int rows, int count, int width, int indexed) {
    int ld = width + 2;
    float *x, *y, *left, *out;
    int32_t *index;
    check_case("unit_rows, row_products rows %d count %d width %d index %d", rows, count, width, indexed);
    expected units = expect_new((size_t)rows, (size_t)width);
    expected products = expect_new((size_t)count, (size_t)rows);
    x = floats((size_t)((rows + 1) * ld), 2.0f);
    index = (int32_t *)take((size_t)rows * sizeof *index);
    y = (float *)take((size_t)(rows * width) * sizeof *y);
    left = floats((size_t)(count * width), 1.0f);
    out = (float *)take((size_t)(count * rows) * sizeof *out);
    for (int r = 0; r < rows; r++) {
        double square = 0.0;
        index[r] = (r * 5 + 1) % rows;
        for (int i = 0; i < width; i++) square += (double)x[(indexed ? index[r] : r) * ld + i] * x[(indexed ? index[r] : r) * ld + i];
        for (int i = 0; i < width; i++) {
            double v = x[(indexed ? index[r] : r) * ld + i];
            expect(&units, (size_t)(r * width + i), v / sqrt(square), v / square + 0.5, 1, (double)width + 2, 1);
        }
    }
    SEND(1, 3 * (int64_t)rows * width, 8 * (int64_t)rows * width + (indexed ? 4 * (int64_t)rows : 0),
         kernels->unit_rows(queue, y, x, indexed ? index : NULL, rows, width, ld));
    verdict(y, (size_t)width, 1, &units);
    for (int c = 0; c < count; c++)
        for (int r = 0; r < rows; r++) {
            double sum = 0.0, last = 0.0, squares = 0.0;
            for (int i = 0; i < width; i++) {
                last = (double)left[c * width + i] * y[r * width + i];
                sum += last;
                squares += last * last;
            }
            expect(&products, (size_t)(c * rows + r), sum, sum - last - 0.01, 1 + sqrt(squares), (double)width, 1);
        }
    SEND(1, 2 * (int64_t)count * rows * width, 4 * (((int64_t)count + rows) * width + (int64_t)count * rows),
         kernels->row_products(queue, out, left, y, count, rows, width));
    verdict(out, (size_t)rows, 1, &products);
    release_all();
}
/* the target with the largest product, the first of equal ones (every row is there twice); damaged: the last of them */
static void test_nearest_target(int members, int targets, int width) {
    int32_t *member, *target, *got, *want, *bad;
    check_case("nearest_target members %d targets %d width %d", members, targets, width);
    float *rows = floats((size_t)((members + targets) * width), 1.0f);
    member = (int32_t *)take((size_t)members * sizeof *member);
    target = (int32_t *)take((size_t)targets * sizeof *target);
    got = (int32_t *)take((size_t)members * sizeof *got);
    want = (int32_t *)hold((size_t)members * sizeof *want);
    bad = (int32_t *)hold((size_t)members * sizeof *bad);
    for (int t = 0; t < targets; t++) target[t] = members + t / 2; /* in pairs */
    for (int m = 0; m < members; m++) {
        double best = -INFINITY;
        member[m] = members - 1 - m;
        for (int t = 0; t < targets; t++) {
            double sum = 0.0;
            for (int i = 0; i < width; i++) sum += (double)rows[member[m] * width + i] * rows[target[t] * width + i];
            if (sum > best) { best = sum; want[m] = t; }
        }
        bad[m] = want[m] + 1;
    }
    SEND(1, (int64_t)members * targets * (2 * width + 1), 4 * (((int64_t)members + targets) * (width + 1) + members),
         kernels->nearest_target(queue, got, rows, member, members, target, targets, width));
    verdict_ints(got, want, bad, (size_t)members);
    release_all();
}
/* the second smallest distance, and distances to the picked rows; damaged: the smallest, which is a row's own; the distance before */
static void test_spread(int rows, int width) {
    float *x, *out, *distance, *seen;
    int32_t *picked;
    check_case("second_nearest, spread rows %d width %d", rows, width);
    x = floats((size_t)(rows * width), 1.0f);
    out = (float *)take((size_t)rows * sizeof *out);
    distance = (float *)take((size_t)rows * sizeof *distance);
    seen = (float *)hold((size_t)rows * sizeof *seen);
    picked = (int32_t *)take(2 * sizeof *picked);
    picked[0] = rows - 1;
    picked[1] = 0;
    for (int r = 0; r < rows; r++) {
        double square = 0.0;
        for (int i = 0; i < width; i++) square += (double)x[r * width + i] * x[r * width + i];
        for (int i = 0; i < width; i++) x[r * width + i] = (float)(x[r * width + i] / sqrt(square));
    }
    expected second = expect_new((size_t)rows, 1);
    expected spread = expect_new((size_t)rows, 1);
    expected again = expect_new((size_t)rows, 1);
    for (int r = 0; r < rows; r++) {
        double least = INFINITY, next = INFINITY, to[2] = { 0.0, 0.0 };
        for (int j = 0; j < rows; j++) {
            double d = 1.0;
            for (int i = 0; i < width; i++) d -= (double)x[r * width + i] * x[j * width + i];
            for (int k = 0; k < 2; k++) if (j == picked[k]) to[k] = d;
            if (d < least) { next = least; least = d; }
            else if (d < next) next = d;
        }
        expect(&second, (size_t)r, next, least - 0.01, 2, (double)width, 1);
        expect(&spread, (size_t)r, r == picked[0] ? -1e30 : to[0], to[0] + 0.1, 2, (double)width, 1);
        expect(&again, (size_t)r, r == picked[0] || r == picked[1] ? -1e30 : fmin(to[0], to[1]), to[0] + 0.1, 2, (double)width, 1);
    }
    SEND(1, (int64_t)rows * rows * (2 * width + 3), 4 * ((int64_t)rows * width + rows), kernels->second_nearest(queue, out, x, rows, width));
    verdict(out, 1, 1, &second);
    for (int step = 0; step < 2; step++) {
        SEND(1, (int64_t)rows * (2 * width + 2), 4 * (int64_t)rows * (width + 1 + step) + 4,
             kernels->spread(queue, distance, x, picked + step, rows, width, step == 0));
        memcpy(seen, distance, (size_t)rows * sizeof *seen);
        for (int r = 0; r < rows; r++) if (isinf(seen[r]) && seen[r] < 0) seen[r] = -1e30f;
        for (int r = 0; r < rows; r++) if (seen[r] == -1e30f) (step ? again : spread).tolerance[r] = 1e24;
        verdict(seen, 1, 1, step ? &again : &spread);
    }
    release_all();
}
/* a row plus the mean of its members, if it has any; damaged: their sum */
static void test_mean_rows(int rows, int width, int based) {
    int members = 0;
    float *x, *y;
    int32_t *base, *list, *start;
    check_case("mean_rows %d width %d base %d", rows, width, based);
    x = floats((size_t)(rows * 3 * width), 1.0f);
    y = (float *)take((size_t)(rows * width) * sizeof *y);
    base = (int32_t *)take((size_t)rows * sizeof *base);
    list = (int32_t *)take((size_t)(rows * 3) * sizeof *list);
    start = (int32_t *)take((size_t)(rows + 1) * sizeof *start);
    expected e = expect_new((size_t)rows, (size_t)width);
    for (int r = 0; r < rows; r++) {
        const int count = (r + 2) % 4;
        base[r] = (r * 7 + 1) % (rows * 3);
        start[r] = members;
        for (int m = 0; m < count && members < rows * 3; m++) { list[members] = (members * 5 + 2) % (rows * 3); members++; }
        for (int i = 0; i < width; i++) {
            double first = based ? x[base[r] * width + i] : 0.0, sum = 0.0;
            for (int m = start[r]; m < members; m++) sum += x[list[m] * width + i];
            expect(&e, (size_t)(r * width + i), first + (members > start[r] ? sum / (members - start[r]) : 0), first + sum + 0.01, 1, 8, 1);
        }
    }
    start[rows] = members;
    SEND(1, ((int64_t)members + rows + (based ? rows : 0)) * width,
         4 * (((int64_t)members + rows + (based ? rows : 0)) * width + members + rows + 1 + (based ? rows : 0)),
         kernels->mean_rows(queue, y, x, based ? base : NULL, list, start, rows, members, width));
    verdict(y, (size_t)width, 1, &e);
    release_all();
}
static void test_pruning_kernels(void) {
    for (int wide = 0; wide < 2; wide++) {
        use_mode(wide);
        test_attention_scores(1, 1, 2, 1, 8, wide);
        test_attention_scores(1, 77, 6, 3, 20, wide);
        test_attention_scores(9, 40, 3, 1, 64, wide);
        test_attention_scores(2, 300, 4, 2, 128, wide);
        test_row_sizes(3, 1, 10, wide);
        test_row_sizes(some, 5, 40, wide);
    }
    for (int indexed = 0; indexed < 2; indexed++) {
        test_unit_rows(7, 3, 33, indexed);
        test_unit_rows(some, 8, 130, indexed);
        test_mean_rows(1, 5, indexed);
        test_mean_rows(some, 130, indexed);
    }
    test_nearest_target(5, 2, 16);
    test_nearest_target(some, 20, 72);
    test_spread(2, 5);
    test_spread(41, 130);
}
#endif
