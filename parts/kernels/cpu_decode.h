/* cpu_decode.h - attention of a single query over the cache on the CPU, a part of vlmprof_kernels.cu
 *
 * A task is a head. Its keys and values are short runs, a row of the cache apart, which the processor does not foresee:
 * each is fetched some rows ahead. */
#ifndef VK_CPU_DECODE_H
#define VK_CPU_DECODE_H

enum { VK_ROWS_AHEAD = 12, VK_LANES = 16 };
VK_INLINE void vk_fetch_row(const char *row, int bytes) {
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch(row + i);
}

/* scores[j] = q . key j of one head; `ld` elements from row to row */
VK_INLINE void vk_dots(float *scores, const char *q, const char *key, size_t ld, int head_dim, int keys, float scale,
                       const int wide) {
    size_t element = wide ? 4 : 2;
    for (int j = 0; j < keys; j++, key += ld * element) {
        float lanes[VK_LANES] = { 0.0f }, sum = 0.0f;
        int i = 0;
        vk_fetch_row(key + VK_ROWS_AHEAD * ld * element, head_dim * (int)element);
        for (; i + VK_LANES <= head_dim; i += VK_LANES)
            EACH(l, VK_LANES) lanes[l] += vk_get(q, (size_t)(i + l), wide) * vk_get(key, (size_t)(i + l), wide);
        for (; i < head_dim; i++) sum += vk_get(q, (size_t)i, wide) * vk_get(key, (size_t)i, wide);
        for (int l = 0; l < VK_LANES; l++) sum += lanes[l];
        scores[j] = sum * scale;
    }
}
/* sums[i] = sum over the keys of weights[j] * value j [i], for a strip of at most VK_STRIP_COLUMNS of the head's
 * columns: they stay in registers. The first strip fetches the whole head's rows. */
enum { VK_STRIP_COLUMNS = 4 * VK_LANES };
VK_INLINE void vk_blend(float *sums, const float *weights, const char *value, size_t ld, int columns, int fetched,
                      int keys, const int wide) {
    size_t element = wide ? 4 : 2;
    float strip[VK_STRIP_COLUMNS] = { 0.0f };
    for (int j = 0; j < keys; j++, value += ld * element) {
        float weight = weights[j];
        if (fetched) vk_fetch_row(value + VK_ROWS_AHEAD * ld * element, fetched);
        if (columns == VK_STRIP_COLUMNS)
            EACH(i, VK_STRIP_COLUMNS) strip[i] += weight * vk_get(value, (size_t)i, wide);
        else EACH(i, columns) strip[i] += weight * vk_get(value, (size_t)i, wide);
    }
    memcpy(sums, strip, sizeof strip);
}
/* scores become weights; returns their sum */
static VK_CLONES float vk_softmax_row(float *scores, int keys) {
    float most = -INFINITY, sum = 0.0f;
    EACH_MAX(j, keys, most) most = scores[j] > most ? scores[j] : most;
    EACH_SUM(j, keys, sum) { scores[j] = vk_exp(scores[j] - most); sum += scores[j]; }
    return sum;
}
static VK_CLONES void vk_dots_bf16(float *scores, const char *q, const char *key, size_t ld, int head_dim, int keys,
                                   float scale) {
    vk_dots(scores, q, key, ld, head_dim, keys, scale, 0);
}
static VK_CLONES void vk_dots_f32(float *scores, const char *q, const char *key, size_t ld, int head_dim, int keys,
                                  float scale) {
    vk_dots(scores, q, key, ld, head_dim, keys, scale, 1);
}
static VK_CLONES void vk_blend_bf16(float *sums, const float *weights, const char *value, size_t ld, int columns,
                                  int fetched, int keys) {
    vk_blend(sums, weights, value, ld, columns, fetched, keys, 0);
}
static VK_CLONES void vk_blend_f32(float *sums, const float *weights, const char *value, size_t ld, int columns,
                                 int fetched, int keys) {
    vk_blend(sums, weights, value, ld, columns, fetched, keys, 1);
}

typedef struct vk_one_query {
    const vk_cpu *cpu;
    void *out;
    const char *q, *key, *value;
    float *scores; /* f32 [heads, lds] */
    const vk_heads *heads;
    int keys, lds;
} vk_one_query;
static void vk_one_query_head(const void *context, int64_t head, int thread) {
    const vk_one_query *one = (const vk_one_query *)context;
    int head_dim = one->heads->head_dim, wide = one->cpu->wide;
    size_t element = wide ? 4 : 2, ld = (size_t)one->heads->kv_heads * (size_t)head_dim,
           column = (size_t)head * (size_t)head_dim,
           from = (size_t)(head / (one->heads->heads / one->heads->kv_heads)) * (size_t)head_dim * element;
    float *scores = one->scores + (size_t)head * (size_t)one->lds, sums[VK_STRIP_COLUMNS], sum;
    (void)thread;
    (wide ? vk_dots_f32 : vk_dots_bf16)(scores, one->q + column * element, one->key + from, ld, head_dim, one->keys,
                                        1.0f / sqrtf((float)head_dim));
    sum = vk_softmax_row(scores, one->keys);
    for (int c = 0; c < head_dim; c += VK_STRIP_COLUMNS) {
        int columns = head_dim - c < VK_STRIP_COLUMNS ? head_dim - c : VK_STRIP_COLUMNS;
        (wide ? vk_blend_f32 : vk_blend_bf16)(sums, scores, one->value + from + (size_t)c * element, ld, columns,
                                          c ? 0 : head_dim * (int)element, one->keys);
        for (int i = 0; i < columns; i++) vk_put(one->out, column + (size_t)(c + i), sums[i] / sum, wide);
    }
}
#endif
