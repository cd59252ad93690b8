/* decode.h - attention of a single query over the cache on the CPU, part of vlmprof_kernels.cu
 *
 * In the cache, all heads of a position are next to each other. A task is a range of positions with all heads, so it
 * reads memory without gaps. One head per task would read 256 bytes of every 4 kB, which is half as fast. Each range
 * has its own largest score, sum and results; they are then combined in the order of the ranges. */
#ifndef VK_CPU_DECODE_H
#define VK_CPU_DECODE_H

enum { VK_LANES = 16, VK_PIECES = 16, VK_PIECE_KEYS = 64 };

/* scores[j] = q . key j of one head, for rows of `ld` elements */
VK_INLINE float vk_dot(const char *q, size_t from_q, const char *key, size_t from, int head_dim, const int wide) {
    float lanes[VK_LANES] = {0.0f}, sum = 0.0f;
    int i = 0;
    for (; i + VK_LANES <= head_dim; i += VK_LANES) EACH(l, VK_LANES)
    lanes[l] += vk_get(q, from_q + (size_t)(i + l), wide) * vk_get(key, from + (size_t)(i + l), wide);
    for (; i < head_dim; i++) sum += vk_get(q, from_q + (size_t)i, wide) * vk_get(key, from + (size_t)i, wide);
    EACH(l, 8) lanes[l] += lanes[l + 8];
    EACH(l, 4) lanes[l] += lanes[l + 4];
    return sum + (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}
/* turns scores into weights; returns their sum */
VK_INLINE float vk_softmax_row(float *scores, int keys, float *most) {
    float sum = 0.0f, top = -INFINITY;
    EACH_MAX(j, keys, top) top = scores[j] > top ? scores[j] : top;
    EACH_SUM(j, keys, sum) { scores[j] = vk_exp(scores[j] - top); sum += scores[j]; }
    *most = top;
    return sum;
}
/* sums += weight * value of each of 4 keys */
VK_INLINE void vk_blend(float *sums, const float *weights, const char *value, size_t from, size_t ld, int head_dim,
                        const int wide) {
    float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    EACH(i, head_dim) {
        size_t at = from + (size_t)i;
        sums[i] += a * vk_get(value, at, wide) + b * vk_get(value, at + ld, wide) + c * vk_get(value, at + 2 * ld, wide)
                   + d * vk_get(value, at + 3 * ld, wide);
    }
}
VK_INLINE void vk_blend_one(float *sums, float weight, const char *value, size_t from, int head_dim, const int wide) {
    EACH(i, head_dim) sums[i] += weight * vk_get(value, from + (size_t)i, wide);
}

typedef struct vk_one_query {
    const vk_cpu *cpu;
    void *out;
    const char *q, *key, *value;
    float *scores; /* f32 [heads, lds] */
    const vk_heads *heads;
    int keys, lds, piece_keys;
} vk_one_query;
/* the results of a range: f32 [heads] largest scores | [heads] sums | [heads, head_dim] results */
static size_t vk_piece_floats(int heads, int head_dim) { return (size_t)heads * (size_t)(head_dim + 2); }

VK_INLINE void vk_one_query_piece(const vk_one_query *one, int piece, const int wide) {
    int heads = one->heads->heads, head_dim = one->heads->head_dim, sharing = heads / one->heads->kv_heads,
        first = piece * one->piece_keys,
        keys = one->keys - first < one->piece_keys ? one->keys - first : one->piece_keys, j = 0;
    size_t ld = (size_t)one->heads->kv_heads * (size_t)head_dim, from = (size_t)first * ld;
    float *most = one->cpu->pieces + (size_t)piece * vk_piece_floats(heads, head_dim), *sum = most + heads,
          *sums = sum + heads, *scores = one->scores + first, scale = 1.0f / sqrtf((float)head_dim);
    for (; j < keys; j++)
        for (int h = 0; h < heads; h++)
            scores[(size_t)h * (size_t)one->lds + (size_t)j] =
                scale * vk_dot(one->q, (size_t)h * (size_t)head_dim, one->key,
                               from + (size_t)j * ld + (size_t)(h / sharing) * (size_t)head_dim, head_dim, wide);
    for (int h = 0; h < heads; h++) sum[h] = vk_softmax_row(scores + (size_t)h * (size_t)one->lds, keys, &most[h]);
    memset(sums, 0, (size_t)heads * (size_t)head_dim * sizeof *sums);
    for (j = 0; j + 4 <= keys; j += 4)
        for (int h = 0; h < heads; h++)
            vk_blend(sums + (size_t)h * (size_t)head_dim, scores + (size_t)h * (size_t)one->lds + (size_t)j, one->value,
                     from + (size_t)j * ld + (size_t)(h / sharing) * (size_t)head_dim, ld, head_dim, wide);
    for (; j < keys; j++)
        for (int h = 0; h < heads; h++)
            vk_blend_one(sums + (size_t)h * (size_t)head_dim, scores[(size_t)h * (size_t)one->lds + (size_t)j],
                         one->value, from + (size_t)j * ld + (size_t)(h / sharing) * (size_t)head_dim, head_dim, wide);
}
static VK_CLONES void vk_piece_bf16(const vk_one_query *one, int piece) { vk_one_query_piece(one, piece, 0); }
static VK_CLONES void vk_piece_f32(const vk_one_query *one, int piece) { vk_one_query_piece(one, piece, 1); }
static void vk_piece_share(const void *context, int64_t piece, int thread) {
    const vk_one_query *one = (const vk_one_query *)context;
    (void)thread;
    if (one->cpu->wide) vk_piece_f32(one, (int)piece);
    else vk_piece_bf16(one, (int)piece);
}
static VK_CLONES void vk_pieces_add(const vk_one_query *one, int pieces) {
    int heads = one->heads->heads, head_dim = one->heads->head_dim;
    size_t floats = vk_piece_floats(heads, head_dim);
    for (int h = 0; h < heads; h++) {
        float most = -INFINITY, sum = 0.0f, *into = one->cpu->pieces + 2 * heads + (size_t)h * (size_t)head_dim;
        for (int p = 0; p < pieces; p++) most = fmaxf(most, one->cpu->pieces[(size_t)p * floats + (size_t)h]);
        for (int p = 0; p < pieces; p++) {
            const float *piece = one->cpu->pieces + (size_t)p * floats, *add = into + (size_t)p * floats;
            float scale = vk_exp(piece[h] - most);
            sum += scale * piece[heads + h];
            if (p) EACH(i, head_dim) into[i] += scale * add[i];
            else EACH(i, head_dim) into[i] *= scale;
        }
        EACH(i, head_dim) vk_put(one->out, (size_t)h * (size_t)head_dim + (size_t)i, into[i] / sum, one->cpu->wide);
    }
}
/* ranges depend only on the number of keys, so a request gives the same bits with any number of threads */
static void vk_one_query_run(vk_one_query *one, int worth) {
    one->piece_keys = vk_divide_up(one->keys, VK_PIECES);
    if (one->piece_keys < VK_PIECE_KEYS) one->piece_keys = VK_PIECE_KEYS;
    int pieces = vk_divide_up(one->keys, one->piece_keys);
    vk_share(one->cpu, pieces, worth, vk_piece_share, one);
    vk_pieces_add(one, pieces);
}
#endif
