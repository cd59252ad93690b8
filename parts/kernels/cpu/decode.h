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
VK_INLINE void vk_blend(float *sums, float weight, const char *value, size_t from, int head_dim, const int wide) {
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
        keys = one->keys - first < one->piece_keys ? one->keys - first : one->piece_keys;
    size_t ld = (size_t)one->heads->kv_heads * (size_t)head_dim, from = (size_t)first * ld;
    float *most = one->cpu->pieces + (size_t)piece * vk_piece_floats(heads, head_dim), *sum = most + heads,
          *sums = sum + heads, *scores = one->scores + first, scale = 1.0f / sqrtf((float)head_dim);
    for (int j = 0; j < keys; j++)
        for (int h = 0; h < heads; h++)
            scores[(size_t)h * (size_t)one->lds + (size_t)j] =
                scale * vk_dot(one->q, (size_t)h * (size_t)head_dim, one->key,
                               from + (size_t)j * ld + (size_t)(h / sharing) * (size_t)head_dim, head_dim, wide);
    for (int h = 0; h < heads; h++) sum[h] = vk_softmax_row(scores + (size_t)h * (size_t)one->lds, keys, &most[h]);
    memset(sums, 0, (size_t)heads * (size_t)head_dim * sizeof *sums);
    for (int j = 0; j < keys; j++)
        for (int h = 0; h < heads; h++)
            vk_blend(sums + (size_t)h * (size_t)head_dim, scores[(size_t)h * (size_t)one->lds + (size_t)j],
                         one->value, from + (size_t)j * ld + (size_t)(h / sharing) * (size_t)head_dim, head_dim, wide);
}
#ifdef VK_X86
/* The same with AVX-512, for heads of a multiple of 32 elements. Even and odd elements are separate vectors, because a
 * bf16 becomes f32 by a shift. Up to four heads share a key and value in registers. */
VK_T512DQ VK_INLINE __m512 vk_even_512(const void *two) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(two), 16));
}
VK_T512DQ VK_INLINE __m512 vk_odd_512(const void *two) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(two), _mm512_set1_epi32((int)0xffff0000u)));
}
/* scores of `count` heads and 4 keys; q: f32, 16 even and 16 odd elements in turns; the first `live` keys are stored */
VK_T512DQ VK_INLINE void vk_dots_512(const int count, float *scores, size_t lds, const float *q, size_t ldq,
                                     const uint16_t *const key[4], int head_dim, int live) {
    __m512 sum[4][4];
    VK_UNROLL for (int h = 0; h < count; h++) VK_UNROLL for (int k = 0; k < 4; k++) sum[h][k] = _mm512_setzero_ps();
    for (int i = 0; i < head_dim; i += 32)
        VK_UNROLL for (int k = 0; k < 4; k++) {
            const __m512 even = vk_even_512(key[k] + i), odd = vk_odd_512(key[k] + i);
            VK_UNROLL for (int h = 0; h < count; h++) {
                sum[h][k] = _mm512_fmadd_ps(even, _mm512_loadu_ps(q + (size_t)h * ldq + i), sum[h][k]);
                sum[h][k] = _mm512_fmadd_ps(odd, _mm512_loadu_ps(q + (size_t)h * ldq + i + 16), sum[h][k]);
            }
        }
    VK_UNROLL for (int h = 0; h < count; h++)
        _mm_mask_storeu_ps(scores + (size_t)h * lds, (__mmask8)((1 << live) - 1), vk_sum_of_four(sum[h]));
}
/* 32 elements of `count` heads' results */
VK_T512DQ VK_INLINE void vk_blend_512(const int count, float *to, size_t ldt, const float *weights, size_t lds,
                                      const uint16_t *value, size_t ld, int keys) {
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),
                  high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    __m512 even[4], odd[4];
    VK_UNROLL for (int h = 0; h < count; h++) even[h] = odd[h] = _mm512_setzero_ps();
    for (int j = 0; j < keys; j++, value += ld) {
        const __m512 first = vk_even_512(value), second = vk_odd_512(value);
        VK_UNROLL for (int h = 0; h < count; h++) {
            const __m512 weight = _mm512_set1_ps(weights[(size_t)h * lds + (size_t)j]);
            even[h] = _mm512_fmadd_ps(weight, first, even[h]);
            odd[h] = _mm512_fmadd_ps(weight, second, odd[h]);
        }
    }
    VK_UNROLL for (int h = 0; h < count; h++) {
        _mm512_storeu_ps(to + (size_t)h * ldt, _mm512_permutex2var_ps(even[h], low, odd[h]));
        _mm512_storeu_ps(to + (size_t)h * ldt + 16, _mm512_permutex2var_ps(even[h], high, odd[h]));
    }
}
#define VK_UP_TO_FOUR(count, of, ...) \
    switch (count) { \
    case 1: of(1, __VA_ARGS__); break; \
    case 2: of(2, __VA_ARGS__); break; \
    case 3: of(3, __VA_ARGS__); break; \
    default: of(4, __VA_ARGS__); \
    }
VK_T512DQ static void vk_piece_avx512(const vk_one_query *one, int piece) {
    const int heads = one->heads->heads, head_dim = one->heads->head_dim, sharing = heads / one->heads->kv_heads,
              first = piece * one->piece_keys,
              keys = one->keys - first < one->piece_keys ? one->keys - first : one->piece_keys;
    const size_t ld = (size_t)one->heads->kv_heads * (size_t)head_dim, lds = (size_t)one->lds, dim = (size_t)head_dim;
    const uint16_t *key = (const uint16_t *)(const void *)one->key + (size_t)first * ld,
                   *value = (const uint16_t *)(const void *)one->value + (size_t)first * ld;
    float *most = one->cpu->pieces + (size_t)piece * vk_piece_floats(heads, head_dim), *sum = most + heads,
          *sums = sum + heads, *scores = one->scores + first, scale = 1.0f / sqrtf((float)head_dim);
    for (size_t i = 0; i < (size_t)heads * dim; i += 32) { /* until the scores are done, the results' place has q */
        const char *q = one->q + 2 * i;
        _mm512_storeu_ps(sums + i, _mm512_mul_ps(vk_even_512(q), _mm512_set1_ps(scale)));
        _mm512_storeu_ps(sums + i + 16, _mm512_mul_ps(vk_odd_512(q), _mm512_set1_ps(scale)));
    }
    for (int j = 0; j < keys; j += 4) {
        const int live = keys - j < 4 ? keys - j : 4;
        for (size_t i = 0; i < (size_t)live * ld; i += 32) { /* values come soon, keys next */
            _mm_prefetch((const char *)(value + (size_t)j * ld + i), _MM_HINT_T1);
            _mm_prefetch((const char *)(key + (size_t)j * ld + i) + 4096, _MM_HINT_T1);
        }
        for (int h = 0, count; h < heads; h += count) {
            const uint16_t *row[4];
            const int left = sharing - h % sharing;
            count = left < 4 ? left : 4;
            for (int k = 0; k < 4; k++)
                row[k] = key + (size_t)(k < live ? j + k : j) * ld + (size_t)(h / sharing) * dim;
            VK_UP_TO_FOUR(count, vk_dots_512, scores + (size_t)h * lds + (size_t)j, lds, sums + (size_t)h * dim, dim,
                          row, head_dim, live)
        }
    }
    for (int h = 0; h < heads; h++) sum[h] = vk_softmax_row(scores + (size_t)h * lds, keys, &most[h]);
    for (int h = 0, count; h < heads; h += count) {
        const int left = sharing - h % sharing;
        count = left < 4 ? left : 4;
        for (size_t i = 0; i < dim; i += 32)
            VK_UP_TO_FOUR(count, vk_blend_512, sums + (size_t)h * dim + i, dim, scores + (size_t)h * lds, lds,
                          value + (size_t)(h / sharing) * dim + i, ld, keys)
    }
}
#undef VK_UP_TO_FOUR
#endif
static VK_CLONES void vk_piece_bf16(const vk_one_query *one, int piece) { vk_one_query_piece(one, piece, 0); }
static VK_CLONES void vk_piece_f32(const vk_one_query *one, int piece) { vk_one_query_piece(one, piece, 1); }
static void vk_piece_share(const void *context, int64_t piece, int thread) {
    const vk_one_query *one = (const vk_one_query *)context;
    (void)thread;
    if (one->cpu->wide) vk_piece_f32(one, (int)piece);
#ifdef VK_X86
    else if (one->cpu->gemm[0][0]->soften != vk_soften_bf16 && one->heads->head_dim % 32 == 0)
        vk_piece_avx512(one, (int)piece); /* the kernels with AVX-512 have a softmax of their own */
#endif
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
