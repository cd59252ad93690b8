/* vlmprof_kernels.cu - the kernels and the model stages of vlmprof - MIT
 *
 * One source, several targets:
 *   CPU backend   cc -x c -std=c11 -O3 -fopenmp -c vlmprof_kernels.cu        (also compiles as C++17)
 *   GPU kernels   nvcc -arch=sm_90 -c vlmprof_kernels.cu                     (CUDA C++)
 *
 * Shared kernels are written once. The rule that makes it work: A KERNEL BODY IS RIGHT FOR ANY NUMBER OF THREADS IN A BLOCK, 1
 * INCLUDED. The CPU build is the case of 1 thread; a block is one iteration of an OpenMP loop. What cannot be shared (GEMM and
 * attention over many queries) has one body per target; the CPU's are below. This version has no GPU backend yet: nvcc compiles the
 * shared kernels and their launchers only.
 *
 * Rooms: >>targets >>kernels >>launchers >>gemm >>attention >>weights >>memory >>stages >>engine
 *
 * Numerics. bf16 mode: weights and the inputs of every linear are bf16 (round to nearest even), products are summed in fp32, residual
 * streams, norms, softmax and logits are fp32. fp32 mode: everything is fp32. "in-type" below means bf16 or f32 by that mode.
 * Rows of in-type buffers are padded with zeros to a multiple of VK_PAD elements, so that GEMM kernels need no tail in k. */
#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1 /* mmap's flags and syscall under -std=c11 */
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vlmprof.h"

enum {
    VK_PAD = 32,             /* columns of a packed weight panel, and what rows are padded to */
    VK_EXPERTS_MAX = 1024,   /* the router keeps one row of probabilities in shared memory */
    VK_POOL_MAX = 1024,      /* heads * keys of a pooling window */
    VK_ROWS_MAX = 32,        /* rows of one GEMM tile */
    VK_THREADS_MAX = 4096,
    VK_PARALLEL_BYTES = 131072, VK_PARALLEL_PRODUCTS = 1 << 21 /* below these a second thread costs more than it brings */
};

/* ================================================================================================ targets >>targets
 * name                 GPU                                   CPU
 * KERNEL / LAUNCH      __global__ / <<<blocks, threads>>>     static function / OpenMP loop over blocks; `bytes`, what the kernel
 *                                                            reads and writes, tells the CPU whether waking threads is worth it
 * BLK TID NTID         blockIdx.x threadIdx.x blockDim.x      the block's number, 0, 1
 * EACH(i, n)           block-stride loop                     SIMD loop
 * EACH_OUTER           the same, for bodies with a loop        plain loop
 * EACH_SUM, EACH_MAX   the same loop, one value a thread      SIMD reduction
 * EACH_WARP            warps over rows                       plain loop
 * EACH_LANE_SUM        lanes along memory                    SIMD reduction
 * block_sum block_max block_scan warp_sum                    identity (scan: 0, total = v)
 * SHARED SYNC          __shared__ __syncthreads()            automatic array, nothing */
#define VK_TEXT(x) #x
#ifdef _OPENMP
#define VK_PRAGMA(x) _Pragma(VK_TEXT(x))
#else
#define VK_PRAGMA(x)
#endif

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
typedef struct vk_queue { cudaStream_t stream; } vk_queue;
#define KERNEL(name, ...) __global__ void name(__VA_ARGS__)
#define LAUNCH(name, blocks, threads, bytes, ...) (void)(bytes), name<<<(unsigned)(blocks), (threads), 0, queue->stream>>>(__VA_ARGS__)
#define FN static __device__ __forceinline__
#define BLK ((size_t)blockIdx.x)
#define TID ((int)threadIdx.x)
#define NTID ((int)blockDim.x)
#define EACH(i, n) for (int i = TID; i < (n); i += NTID)
#define EACH_OUTER(i, n) EACH(i, n)
#define EACH_SUM(i, n, s) EACH(i, n)
#define EACH_MAX(i, n, s) EACH(i, n)
#define EACH_WARP(i, n) for (int i = TID >> 5; i < (n); i += NTID >> 5)
#define EACH_LANE_SUM(i, n, s) for (int i = TID & 31; i < (n); i += 32)
#define LANE0 ((TID & 31) == 0)
#define SHARED __shared__
#define SYNC() __syncthreads()
FN float warp_sum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); return v; }
FN float warp_max(float v) { for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o)); return v; }
FN float block_reduce(float v, int is_max) {
    __shared__ float part[33];
    int warp = TID >> 5, warps = (NTID + 31) >> 5;
    v = is_max ? warp_max(v) : warp_sum(v);
    SYNC();
    if (LANE0) part[warp] = v;
    SYNC();
    if (warp == 0) {
        float u = TID < warps ? part[TID] : (is_max ? -INFINITY : 0.0f);
        u = is_max ? warp_max(u) : warp_sum(u);
        if (TID == 0) part[32] = u;
    }
    SYNC();
    return part[32];
}
FN float block_sum(float v) { return block_reduce(v, 0); }
FN float block_max(float v) { return block_reduce(v, 1); }
/* exclusive scan of v over the block's threads; *total gets the block's sum */
FN int block_scan(int v, int *total) {
    __shared__ int s[1024];
    SYNC();
    s[TID] = v;
    SYNC();
    for (int o = 1; o < NTID; o <<= 1) {
        int a = TID >= o ? s[TID - o] : 0;
        SYNC();
        s[TID] += a;
        SYNC();
    }
    *total = s[NTID - 1];
    return s[TID] - v;
}
FN float vk_exp(float x) { return expf(x); }
FN float vk_b2f(uint16_t b) { return __uint_as_float((unsigned)b << 16); }
FN uint16_t vk_f2b(float f) { return __bfloat16_as_ushort(__float2bfloat16_rn(f)); }
#else
#include <stdio.h>
#include <stdlib.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
/* the first versions that know AMX; older compilers get the plain kernels */
#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : defined(__GNUC__) && __GNUC__ >= 11)
#include <immintrin.h>
#define VK_X86 1
#if !defined(__clang__) && defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* g++ 12 says so of its own avx512fintrin.h */
#endif
#endif
/* run-time dispatch instead of -march: GCC compiles a kernel three times and picks by processor. Sanitizers run before the
 * resolver may, and clang 14 does not know the attribute: both get the baseline. */
#if defined(VK_X86) && !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VK_CLONES
#endif
typedef struct vk_queue { int threads; } vk_queue;
#define KERNEL(name, ...) static VK_CLONES void name(size_t vk_block, __VA_ARGS__)
#define LAUNCH(name, blocks, threads_a_block, bytes, ...) \
    do { \
        int64_t vk_blocks = (int64_t)(blocks), vk_bytes = (int64_t)(bytes); \
        VK_PRAGMA(omp parallel for schedule(static) num_threads(queue->threads) if (vk_blocks > 1 && vk_bytes > VK_PARALLEL_BYTES)) \
        for (int64_t vk_b = 0; vk_b < vk_blocks; vk_b++) name((size_t)vk_b, __VA_ARGS__); \
        (void)queue; \
        (void)vk_bytes; \
    } while (0)
#define FN static inline
#define BLK vk_block
#define TID 0
#define NTID 1
#define EACH(i, n) VK_PRAGMA(omp simd) for (int i = 0; i < (n); i++)
#define EACH_SUM(i, n, s) VK_PRAGMA(omp simd reduction(+ : s)) for (int i = 0; i < (n); i++)
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a sanitizer keeps it from vectorising, and it says so of every loop */
/* vectorises no float maximum without fast-math */
#define EACH_MAX(i, n, s) for (int i = 0; i < (n); i++)
#else
#define EACH_MAX(i, n, s) VK_PRAGMA(omp simd reduction(max : s)) for (int i = 0; i < (n); i++)
#endif
#define EACH_OUTER(i, n) for (int i = 0; i < (n); i++)
#define EACH_WARP(i, n) for (int i = 0; i < (n); i++)
#define EACH_LANE_SUM EACH_SUM
#define LANE0 1
#define SHARED
#define SYNC() ((void)0)
FN float warp_sum(float v) { return v; }
FN float block_sum(float v) { return v; }
FN float block_max(float v) { return v; }
FN int block_scan(int v, int *total) { *total = v; return 0; }
FN float vk_b2f(uint16_t b) { uint32_t u = (uint32_t)b << 16; float f; memcpy(&f, &u, 4); return f; }
/* round to nearest even, without the NaN test of vp_f32_to_bf16: activations are finite, and a NaN may turn into another NaN, inf or zero */
FN uint16_t vk_f2b(float f) { uint32_t u; memcpy(&u, &f, 4); return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16); }
/* e^x within 2 ulp. No branch and no fminf (GCC keeps its NaN rules as a call), so that loops calling it become SIMD code without
 * libmvec or -ffast-math. Adding 1.5 * 2^23 rounds t to an integer and leaves it in the low bits. Polynomial: Cephes expf. */
FN float vk_exp(float x) {
    float t, r, p, scale;
    uint32_t u;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    t = x * 1.44269504f + 12582912.0f;
    memcpy(&u, &t, 4);
    t -= 12582912.0f;
    r = x - t * 0.693359375f;
    r = r + t * 2.12194440e-4f;
    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    u = (u - 0x4b400000u + 127u) << 23;
    memcpy(&scale, &u, 4);
    return p * scale;
}
#endif

/* element i of an in-type array; `wide` is the same for a whole loop, so compilers take the branch out of it */
FN float vk_get(const void *p, size_t i, int wide) { return wide ? ((const float *)p)[i] : vk_b2f(((const uint16_t *)p)[i]); }
FN void vk_put(void *p, size_t i, float v, int wide) {
    if (wide) ((float *)p)[i] = v;
    else ((uint16_t *)p)[i] = vk_f2b(v);
}
FN float vk_silu(float v) { return v / (1.0f + vk_exp(-v)); }

/* ================================================================================================ kernels >>kernels
 * d: width; ld: padded row length of an in-type buffer. One block a row unless stated. */

/* y in-type [rows, ldy] = w * x / rms(x); x f32 [rows, d] */
KERNEL(k_rmsnorm, void *y, const float *x, const float *w, int d, int ldy, float eps, int wide) {
    const float *xr = x + BLK * (size_t)d;
    size_t o = BLK * (size_t)ldy;
    float s = 0.0f, r;
    EACH_SUM(i, d, s) s += xr[i] * xr[i];
    r = 1.0f / sqrtf(block_sum(s) / (float)d + eps);
    EACH(i, d) vk_put(y, o + (size_t)i, w[i] * (xr[i] * r), wide);
}

/* y in-type [rows, ldy] = layer norm of x f32 [rows, d] with weight and bias */
KERNEL(k_layernorm, void *y, const float *x, const float *w, const float *b, int d, int ldy, float eps, int wide) {
    const float *xr = x + BLK * (size_t)d;
    size_t o = BLK * (size_t)ldy;
    float s = 0.0f, q = 0.0f, m, r;
    EACH_SUM(i, d, s) s += xr[i];
    m = block_sum(s) / (float)d;
    EACH_SUM(i, d, q) q += (xr[i] - m) * (xr[i] - m);
    r = 1.0f / sqrtf(block_sum(q) / (float)d + eps);
    EACH(i, d) vk_put(y, o + (size_t)i, (xr[i] - m) * r * w[i] + b[i], wide);
}

/* f32 [rows, d] -> in-type [rows, ldy] */
KERNEL(k_convert, void *y, const float *x, int d, int ldy, int wide) {
    EACH(i, d) vk_put(y, BLK * (size_t)ldy + (size_t)i, x[BLK * (size_t)d + (size_t)i], wide);
}

/* one row of ViT input: class embedding or patch row, plus its position. patches f32 [positions - 1, d] -> x f32 [positions, d] */
KERNEL(k_vit_embed, float *x, const float *patches, const float *class_embedding, const float *positions, int d) {
    const float *s = BLK ? patches + (BLK - 1) * (size_t)d : class_embedding;
    const float *p = positions + BLK * (size_t)d;
    float *o = x + BLK * (size_t)d;
    EACH(i, d) o[i] = s[i] + p[i];
}

/* One pooling window of pool x pool patches, from `layers` saved hidden states f32 [layers, patches + 1, w] (row 0 is the class token),
 * side by side. Adds pad_embed f32 [2, layers * w]: [0] where the patch is all padding (mask 0), [1] where it is partly so or the mask is -1.
 * keys in-type [windows * pool * pool, ld]; query in-type [windows, ld] = their mean. dead: the view holds no picture, features are 0. */
KERNEL(k_pool_windows, void *keys, void *query, const float *hidden, const float *mask, const float *pad_embed, int layers, int w, int side, int pool,
       int ld, int dead, int wide) {
    int windows = side / pool, wy = (int)BLK / windows * pool, wx = (int)BLK % windows * pool, n = pool * pool;
    size_t layer_floats = (size_t)(side * side + 1) * (size_t)w;
    for (int l = 0; l < layers; l++) {
        EACH_OUTER(i, w) {
            float sum = 0.0f;
            for (int j = 0; j < n; j++) {
                int patch = (wy + j / pool) * side + wx + j % pool, c = l * w + i;
                float v = dead ? 0.0f : hidden[(size_t)l * layer_floats + (size_t)(patch + 1) * (size_t)w + (size_t)i], m = mask[patch];
                v += m == 0.0f ? pad_embed[c] : 0.0f;
                v += (m > 0.0f) & (m < 1.0f) || m == -1.0f ? pad_embed[layers * w + c] : 0.0f;
                sum += v;
                vk_put(keys, (BLK * (size_t)n + (size_t)j) * (size_t)ld + (size_t)c, v, wide);
            }
            vk_put(query, BLK * (size_t)ld + (size_t)(l * w + i), sum / (float)n, wide);
        }
    }
}

/* attention of one query over its window's n keys: q f32 [windows, w], kv f32 [windows * n, 2 * w] (keys then values) -> y in-type [windows, ldy] */
KERNEL(k_pool_attention, void *y, const float *q, const float *kv, int n, int heads, int head_dim, int ldy, float scale, int wide) {
    SHARED float p[VK_POOL_MAX];
    int w = heads * head_dim;
    const float *qr = q + BLK * (size_t)w, *kr = kv + BLK * (size_t)n * 2 * (size_t)w;
    EACH_WARP(hj, heads * n) {
        const float *a = qr + hj / n * head_dim, *b = kr + (size_t)(hj % n) * 2 * (size_t)w + hj / n * head_dim;
        float s = 0.0f;
        EACH_LANE_SUM(i, head_dim, s) s += a[i] * b[i];
        s = warp_sum(s);
        if (LANE0) p[hj] = s * scale;
    }
    SYNC();
    for (int h = TID; h < heads; h += NTID) {
        float m = -INFINITY, s = 0.0f;
        for (int j = 0; j < n; j++) m = p[h * n + j] > m ? p[h * n + j] : m;
        for (int j = 0; j < n; j++) { p[h * n + j] = vk_exp(p[h * n + j] - m); s += p[h * n + j]; }
        for (int j = 0; j < n; j++) p[h * n + j] /= s;
    }
    SYNC();
    for (int h = 0; h < heads; h++) {
        EACH_OUTER(i, head_dim) {
            float s = 0.0f;
            for (int j = 0; j < n; j++) s += p[h * n + j] * kr[(size_t)j * 2 * (size_t)w + (size_t)(w + h * head_dim + i)];
            vk_put(y, BLK * (size_t)ldy + (size_t)(h * head_dim + i), s, wide);
        }
    }
}

/* y in-type [rows, ldy] = silu(gate) * up; gate and up side by side in f32 [rows, 2 * h] */
KERNEL(k_silu_mul, void *y, const float *gate_up, int h, int ldy, int wide) {
    const float *g = gate_up + BLK * 2 * (size_t)h, *u = g + h;
    EACH(i, h) vk_put(y, BLK * (size_t)ldy + (size_t)i, vk_silu(g[i]) * u[i], wide);
}

/* x f32 [tokens, d] = embedding rows; table in-type [ids, d] */
KERNEL(k_embed, float *x, const void *table, const int32_t *ids, int d, int wide) {
    size_t from = (size_t)ids[BLK] * (size_t)d, to = BLK * (size_t)d;
    EACH(i, d) x[to + (size_t)i] = vk_get(table, from + (size_t)i, wide);
}

/* image features are ADDED to the embedding of their <im_patch>; index < 0: the overlap of neighbouring crops, dropped */
KERNEL(k_scatter_add, float *x, const float *features, const int32_t *index, int d) {
    int at = index[BLK];
    if (at >= 0) EACH(i, d) x[(size_t)at * (size_t)d + (size_t)i] += features[BLK * (size_t)d + (size_t)i];
}

/* QK-norm over the whole width, then RoPE (half-split pairs) of one token's q and k; v as it is. qkv f32 [tokens, 3 * d];
 * q in-type [tokens, ldq]; key and value in-type [positions, d], written at position + BLK; cs f32 [positions, head_dim]: cos then sin */
KERNEL(k_qk_norm_rope, void *q, void *key, void *value, const float *qkv, const float *q_weight, const float *k_weight, const float *cs, int d,
       int head_dim, int ldq, int position, float eps, int wide) {
    const float *x = qkv + BLK * 3 * (size_t)d, *v = x + 2 * (size_t)d, *c = cs + ((size_t)position + BLK) * (size_t)head_dim;
    const float *s = c + head_dim / 2;
    size_t row = ((size_t)position + BLK) * (size_t)d;
    for (int which = 0; which < 2; which++) {
        const float *a = x + (size_t)which * (size_t)d, *w = which ? k_weight : q_weight;
        void *o = which ? key : q;
        size_t at = which ? row : BLK * (size_t)ldq;
        float sum = 0.0f, r;
        int half = head_dim / 2;
        EACH_SUM(i, d, sum) sum += a[i] * a[i];
        r = 1.0f / sqrtf(block_sum(sum) / (float)d + eps);
        for (int h = 0; h < d; h += head_dim) {
            EACH(i, half) {
                float e = w[h + i] * (a[h + i] * r), f = w[h + half + i] * (a[h + half + i] * r);
                vk_put(o, at + (size_t)(h + i), e * c[i] - f * s[i], wide);
                vk_put(o, at + (size_t)(h + half + i), f * c[i] + e * s[i], wide);
            }
        }
    }
    EACH(i, d) vk_put(value, row + (size_t)i, v[i], wide);
}

/* one query against `keys` cached keys, one block a head; scores f32 [heads, lds] is scratch. y, q in-type [d]; key, value in-type [positions, d] */
KERNEL(k_attention_decode, void *y, const void *q, const void *key, const void *value, float *scores, int keys, int lds, int d, int head_dim,
       float scale, int wide) {
    size_t h = BLK * (size_t)head_dim;
    float *p = scores + BLK * (size_t)lds, m = -INFINITY, s = 0.0f;
    EACH_WARP(j, keys) {
        size_t k = (size_t)j * (size_t)d + h;
        float a = 0.0f;
        EACH_LANE_SUM(i, head_dim, a) a += vk_get(q, h + (size_t)i, wide) * vk_get(key, k + (size_t)i, wide);
        a = warp_sum(a);
        if (LANE0) p[j] = a * scale;
    }
    SYNC();
    EACH_MAX(j, keys, m) m = p[j] > m ? p[j] : m;
    m = block_max(m);
    EACH_SUM(j, keys, s) { p[j] = vk_exp(p[j] - m); s += p[j]; }
    s = block_sum(s);
    SYNC();
    {
        /* sums over keys in registers, a strip of the head at a time: the GPU gives each thread its own column */
        enum { STRIP = 32 };
        for (int i0 = 0; i0 < head_dim; i0 += STRIP) {
            float acc[STRIP];
            int n = head_dim - i0 < STRIP ? head_dim - i0 : STRIP;
            EACH(i, n) acc[i] = 0.0f;
            for (int j = 0; j < keys; j++) {
                size_t v = (size_t)j * (size_t)d + h + (size_t)i0;
                float w = p[j];
                EACH(i, n) acc[i] += w * vk_get(value, v + (size_t)i, wide);
            }
            EACH(i, n) vk_put(y, h + (size_t)(i0 + i), acc[i] / s, wide);
        }
    }
}

/* router: softmax over all experts in fp32, then the k largest, not renormalised. An expert's place is the number of experts that
 * beat it, so there is no reduction and no order of arrival, and ties go to the lower index. index, weight [tokens, k] */
KERNEL(k_router, int32_t *index, float *weight, const float *logits, int experts, int k) {
    SHARED float p[VK_EXPERTS_MAX];
    const float *l = logits + BLK * (size_t)experts;
    float m = -INFINITY, s = 0.0f;
    EACH_MAX(i, experts, m) m = l[i] > m ? l[i] : m;
    m = block_max(m);
    EACH_SUM(i, experts, s) { p[i] = vk_exp(l[i] - m); s += p[i]; }
    s = block_sum(s);
    SYNC();
    for (int i = TID; i < experts; i += NTID) {
        int place = 0;
        for (int j = 0; j < experts; j++) place += (l[j] > l[i]) | ((l[j] == l[i]) & (j < i));
        if (place < k) { index[BLK * (size_t)k + (size_t)place] = i; weight[BLK * (size_t)k + (size_t)place] = p[i] / s; }
    }
}

/* block e counts, then lists, the (token, slot) pairs routed to expert e, in token order. start [experts + 1]: rows before expert e */
KERNEL(k_moe_count, int32_t *count, const int32_t *index, int pairs) {
    float c = 0.0f; /* exact below 2^24 pairs */
    EACH_SUM(i, pairs, c) c += index[i] == (int)BLK ? 1.0f : 0.0f;
    c = block_sum(c);
    if (TID == 0) count[BLK] = (int32_t)(c + 0.5f);
}
KERNEL(k_moe_fill, int32_t *start, int32_t *list, int32_t *slot_row, const int32_t *count, const int32_t *index, int pairs) {
    float before = 0.0f;
    int base, e = (int)BLK;
    EACH_SUM(i, e, before) before += (float)count[i];
    base = (int)(block_sum(before) + 0.5f);
    if (TID == 0) { start[e] = base; start[e + 1] = base + count[e]; }
    for (int i0 = 0; i0 < pairs; i0 += NTID) {
        int i = i0 + TID, hit = i < pairs && index[i] == e, all, offset = block_scan(hit, &all);
        if (hit) { list[base + offset] = i; slot_row[i] = base + offset; }
        base += all;
    }
}

/* y row b = x row of the token that list[b] = token * k + slot names; in-type rows of ld elements, copied as bytes */
KERNEL(k_gather, void *y, const void *x, const int32_t *list, int k, int row_bytes) {
    const uint32_t *s = (const uint32_t *)((const char *)x + (size_t)(list[BLK] / k) * (size_t)row_bytes);
    uint32_t *o = (uint32_t *)((char *)y + BLK * (size_t)row_bytes);
    int words = row_bytes / 4;
    EACH(i, words) o[i] = s[i];
}

/* x row t += sum over its k slots of weight * expert row: every token reads its own rows, so no atomics and one fixed order */
KERNEL(k_combine, float *x, const float *expert_rows, const int32_t *slot_row, const float *weight, int k, int d) {
    float *o = x + BLK * (size_t)d;
    for (int j = 0; j < k; j++) {
        const float *r = expert_rows + (size_t)slot_row[BLK * (size_t)k + (size_t)j] * (size_t)d;
        float w = weight[BLK * (size_t)k + (size_t)j];
        EACH(i, d) o[i] += w * r[i];
    }
}

/* index of the largest value of a row of n, the lowest one on ties; NaN never wins, a row of nothing else gives 0. Indices below 2^24 are
 * exact in a float. */
KERNEL(k_argmax, int32_t *out, const float *x, int n) {
    const float *xr = x + BLK * (size_t)n;
    float m = -INFINITY, best = -INFINITY;
    EACH_MAX(i, n, m) m = xr[i] > m ? xr[i] : m;
    m = block_max(m);
    EACH_MAX(i, n, best) { float c = xr[i] == m ? -(float)i : -INFINITY; best = c > best ? c : best; }
    best = block_max(best);
    if (TID == 0) out[BLK] = best > -INFINITY ? (int32_t)-best : 0;
}

/* ============================================================================================== launchers >>launchers
 * The shared kernels behind one table, the same for every target. Pointers are the target's. */
typedef struct vk_kernels {
    void (*rmsnorm)(vk_queue *queue, void *y, const float *x, const float *w, int rows, int d, int ldy, float eps, int wide);
    void (*layernorm)(vk_queue *queue, void *y, const float *x, const float *w, const float *b, int rows, int d, int ldy, float eps, int wide);
    void (*convert)(vk_queue *queue, void *y, const float *x, int rows, int d, int ldy, int wide);
    void (*vit_embed)(vk_queue *queue, float *x, const float *patches, const float *class_embedding, const float *positions, int rows, int d);
    void (*pool_windows)(vk_queue *queue, void *keys, void *query, const float *hidden, const float *mask, const float *pad_embed, int layers, int w,
                         int side, int pool, int ld, int dead, int wide);
    void (*pool_attention)(vk_queue *queue, void *y, const float *q, const float *kv, int windows, int n, int heads, int head_dim, int ldy, int wide);
    void (*silu_mul)(vk_queue *queue, void *y, const float *gate_up, int rows, int h, int ldy, int wide);
    void (*embed)(vk_queue *queue, float *x, const void *table, const int32_t *ids, int rows, int d, int wide);
    void (*scatter_add)(vk_queue *queue, float *x, const float *features, const int32_t *index, int rows, int d);
    void (*qk_norm_rope)(vk_queue *queue, void *q, void *key, void *value, const float *qkv, const float *q_weight, const float *k_weight,
                         const float *cs, int rows, int d, int head_dim, int ldq, int position, float eps, int wide);
    void (*attention_decode)(vk_queue *queue, void *y, const void *q, const void *key, const void *value, float *scores, int keys, int lds, int d,
                             int head_dim, int wide);
    void (*router)(vk_queue *queue, int32_t *index, float *weight, const float *logits, int rows, int experts, int k);
    void (*moe_lists)(vk_queue *queue, int32_t *count, int32_t *start, int32_t *list, int32_t *slot_row, const int32_t *index, int experts,
                      int pairs);
    void (*gather)(vk_queue *queue, void *y, const void *x, const int32_t *list, int rows, int k, int row_bytes);
    void (*combine)(vk_queue *queue, float *x, const float *expert_rows, const int32_t *slot_row, const float *weight, int rows, int k, int d);
    void (*argmax)(vk_queue *queue, int32_t *out, const float *x, int rows, int n);
} vk_kernels;

static void l_rmsnorm(vk_queue *queue, void *y, const float *x, const float *w, int rows, int d, int ldy, float eps, int wide) {
    LAUNCH(k_rmsnorm, rows, 256, (int64_t)rows * d * 8, y, x, w, d, ldy, eps, wide);
}
static void l_layernorm(vk_queue *queue, void *y, const float *x, const float *w, const float *b, int rows, int d, int ldy, float eps, int wide) {
    LAUNCH(k_layernorm, rows, 256, (int64_t)rows * d * 8, y, x, w, b, d, ldy, eps, wide);
}
static void l_convert(vk_queue *queue, void *y, const float *x, int rows, int d, int ldy, int wide) {
    LAUNCH(k_convert, rows, 256, (int64_t)rows * d * 8, y, x, d, ldy, wide);
}
static void l_vit_embed(vk_queue *queue, float *x, const float *patches, const float *class_embedding, const float *positions, int rows, int d) {
    LAUNCH(k_vit_embed, rows, 256, (int64_t)rows * d * 12, x, patches, class_embedding, positions, d);
}
static void l_pool_windows(vk_queue *queue, void *keys, void *query, const float *hidden, const float *mask, const float *pad_embed, int layers,
                           int w, int side, int pool, int ld, int dead, int wide) {
    LAUNCH(k_pool_windows, (side / pool) * (side / pool), 256, (int64_t)side * side * layers * w * 8, keys, query, hidden, mask, pad_embed, layers, w,
           side, pool, ld, dead, wide);
}
static void l_pool_attention(vk_queue *queue, void *y, const float *q, const float *kv, int windows, int n, int heads, int head_dim, int ldy,
                             int wide) {
    LAUNCH(k_pool_attention, windows, 256, (int64_t)windows * n * heads * head_dim * 8, y, q, kv, n, heads, head_dim, ldy,
           1.0f / sqrtf((float)head_dim), wide);
}
static void l_silu_mul(vk_queue *queue, void *y, const float *gate_up, int rows, int h, int ldy, int wide) {
    LAUNCH(k_silu_mul, rows, 256, (int64_t)rows * h * 12, y, gate_up, h, ldy, wide);
}
static void l_embed(vk_queue *queue, float *x, const void *table, const int32_t *ids, int rows, int d, int wide) {
    LAUNCH(k_embed, rows, 256, (int64_t)rows * d * 8, x, table, ids, d, wide);
}
static void l_scatter_add(vk_queue *queue, float *x, const float *features, const int32_t *index, int rows, int d) {
    LAUNCH(k_scatter_add, rows, 256, (int64_t)rows * d * 12, x, features, index, d);
}
static void l_qk_norm_rope(vk_queue *queue, void *q, void *key, void *value, const float *qkv, const float *q_weight, const float *k_weight,
                           const float *cs, int rows, int d, int head_dim, int ldq, int position, float eps, int wide) {
    LAUNCH(k_qk_norm_rope, rows, 256, (int64_t)rows * d * 24, q, key, value, qkv, q_weight, k_weight, cs, d, head_dim, ldq, position, eps, wide);
}
static void l_attention_decode(vk_queue *queue, void *y, const void *q, const void *key, const void *value, float *scores, int keys, int lds, int d,
                               int head_dim, int wide) {
    LAUNCH(k_attention_decode, d / head_dim, 256, (int64_t)keys * d * (wide ? 8 : 4), y, q, key, value, scores, keys, lds, d, head_dim,
           1.0f / sqrtf((float)head_dim), wide);
}
static void l_router(vk_queue *queue, int32_t *index, float *weight, const float *logits, int rows, int experts, int k) {
    LAUNCH(k_router, rows, 64, (int64_t)rows * experts * (4 + experts / 8), index, weight, logits, experts, k);
}
static void l_moe_lists(vk_queue *queue, int32_t *count, int32_t *start, int32_t *list, int32_t *slot_row, const int32_t *index, int experts,
                        int pairs) {
    LAUNCH(k_moe_count, experts, 256, (int64_t)experts * pairs * 4, count, index, pairs);
    LAUNCH(k_moe_fill, experts, 256, (int64_t)experts * pairs * 4, start, list, slot_row, count, index, pairs);
}
static void l_gather(vk_queue *queue, void *y, const void *x, const int32_t *list, int rows, int k, int row_bytes) {
    LAUNCH(k_gather, rows, 256, (int64_t)rows * row_bytes * 2, y, x, list, k, row_bytes);
}
static void l_combine(vk_queue *queue, float *x, const float *expert_rows, const int32_t *slot_row, const float *weight, int rows, int k, int d) {
    LAUNCH(k_combine, rows, 256, (int64_t)rows * k * d * 12, x, expert_rows, slot_row, weight, k, d);
}
static void l_argmax(vk_queue *queue, int32_t *out, const float *x, int rows, int n) {
    LAUNCH(k_argmax, rows, 1024, (int64_t)rows * n * 8, out, x, n);
}

#define VK_KERNEL_TABLE { l_rmsnorm, l_layernorm, l_convert, l_vit_embed, l_pool_windows, l_pool_attention, l_silu_mul, l_embed, l_scatter_add, \
    l_qk_norm_rope, l_attention_decode, l_router, l_moe_lists, l_gather, l_combine, l_argmax }

#ifdef __CUDACC__
extern "C" { extern const vk_kernels vk_cuda_kernels; const vk_kernels vk_cuda_kernels = VK_KERNEL_TABLE; }
#else
static const vk_kernels vk_cpu_kernels = VK_KERNEL_TABLE;

#ifdef __cplusplus
extern "C" {
#endif

/* =================================================================================================== gemm >>gemm
 * y[m, n] = x[m, k] W[n, k]^T on the CPU. Weights are packed once at load into panels of 32 rows of W:
 *   bf16  [n / 32][k / 2][32][2]   pairs along k, as AMX and AVX-512 BF16 read them; AVX2 and plain C split a pair by shift and mask
 *   f32   [n / 32][k][32]
 * with n and k padded by zeros to multiples of 32. One tile function does y f32 [rows <= 32, 32] = x [rows, k] * panel; the driver
 * walks panels and rows and applies the epilogue while the tile lies in the first-level cache. */
typedef void (*vk_tile)(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows);

/* plain C, for any processor */
static VK_CLONES void vk_tile_plain(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    for (int r = 0; r < rows; r++) {
        const uint16_t *xr = (const uint16_t *)x + (size_t)r * ldx;
        const uint32_t *p = (const uint32_t *)panel;
        float acc[VK_PAD] = { 0.0f };
        for (size_t i = 0; i < k; i += 2, p += VK_PAD) {
            float a = vk_b2f(xr[i]), b = vk_b2f(xr[i + 1]);
            EACH(c, VK_PAD) {
                uint32_t lo = p[c] << 16, hi = p[c] & 0xffff0000u;
                float l, h;
                memcpy(&l, &lo, 4);
                memcpy(&h, &hi, 4);
                acc[c] += a * l + b * h;
            }
        }
        memcpy(y + r * VK_PAD, acc, sizeof acc);
    }
}
static VK_CLONES void vk_tile_plain_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    for (int r = 0; r < rows; r++) {
        const float *xr = (const float *)x + (size_t)r * ldx, *p = (const float *)panel;
        float acc[VK_PAD] = { 0.0f };
        for (size_t i = 0; i < k; i++, p += VK_PAD) EACH(c, VK_PAD) acc[c] += xr[i] * p[c];
        memcpy(y + r * VK_PAD, acc, sizeof acc);
    }
}

#ifdef VK_X86
#define VK_INLINE static inline __attribute__((always_inline))
#define VK_T512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define VK_T512BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define VK_TAVX2 __attribute__((target("avx2,fma")))
#define VK_TAMX __attribute__((target("amx-tile,amx-bf16,avx512f")))
#define VK_UNROLL _Pragma("GCC unroll 16")

/* calls F(R) with the constant R nearest below `rows` until no row is left; at most 12 rows fill 24 of 32 vector registers */
#define VK_ROWS_12(F, row) \
    for (int left = rows; left > 0;) { \
        int now = left >= 24 || left <= 12 ? (left < 12 ? left : 12) : (left + 1) / 2; \
        switch (now) { \
        case 1: F(1); break; case 2: F(2); break; case 3: F(3); break; case 4: F(4); break; case 5: F(5); break; case 6: F(6); break; \
        case 7: F(7); break; case 8: F(8); break; case 9: F(9); break; case 10: F(10); break; case 11: F(11); break; default: F(12); break; \
        } \
        left -= now; \
        xr += (size_t)now * (row); \
        y += now * VK_PAD; \
    }
#define VK_ROWS_4(F, row) \
    for (int left = rows; left > 0;) { \
        int now = left < 4 ? left : 4; \
        switch (now) { case 1: F(1); break; case 2: F(2); break; case 3: F(3); break; default: F(4); break; } \
        left -= now; \
        xr += (size_t)now * (row); \
        y += now * VK_PAD; \
    }

VK_T512BF16 VK_INLINE void vk_rows_avx512bf16(const int R, float *y, const uint16_t *x, size_t ldx, const uint16_t *p, size_t k) {
    __m512 c[12][2];
    VK_UNROLL for (int i = 0; i < R; i++) c[i][0] = c[i][1] = _mm512_setzero_ps();
    for (size_t j = 0; j < k; j += 2, p += 2 * VK_PAD) {
        __m512bh b0 = (__m512bh)_mm512_loadu_si512(p), b1 = (__m512bh)_mm512_loadu_si512(p + VK_PAD);
        VK_UNROLL for (int i = 0; i < R; i++) {
            int32_t pair;
            memcpy(&pair, x + (size_t)i * ldx + j, 4);
            c[i][0] = _mm512_dpbf16_ps(c[i][0], (__m512bh)_mm512_set1_epi32(pair), b0);
            c[i][1] = _mm512_dpbf16_ps(c[i][1], (__m512bh)_mm512_set1_epi32(pair), b1);
        }
    }
    VK_UNROLL for (int i = 0; i < R; i++) { _mm512_storeu_ps(y + i * VK_PAD, c[i][0]); _mm512_storeu_ps(y + i * VK_PAD + 16, c[i][1]); }
}
VK_T512BF16 static void vk_tile_avx512bf16(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x;
#define VK_DO(R) vk_rows_avx512bf16(R, y, xr, ldx, (const uint16_t *)panel, k)
    VK_ROWS_12(VK_DO, ldx)
#undef VK_DO
}

/* fp32 FMA on bf16 pairs: inputs are widened first, a strip of k at a time that stays in the first-level cache, because a broadcast from
 * memory is free and a broadcast from a register is not. Sums go on from y after the first strip. */
enum { VK_STRIP = 256 };
typedef void (*vk_strip)(float *y, const float *x, const uint16_t *p, int k, int rows, int go_on);
static VK_CLONES void vk_tile_strips(vk_strip strip, float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    float wide[VK_ROWS_MAX * VK_STRIP];
    for (size_t from = 0; from < k; from += VK_STRIP) {
        int length = k - from < VK_STRIP ? (int)(k - from) : VK_STRIP;
        for (int r = 0; r < rows; r++) {
            const uint16_t *xr = (const uint16_t *)x + (size_t)r * ldx + from;
            EACH(j, length) wide[r * VK_STRIP + j] = vk_b2f(xr[j]);
        }
        strip(y, wide, (const uint16_t *)panel + from * VK_PAD, length, rows, from > 0);
    }
}
VK_T512 VK_INLINE void vk_rows_avx512(const int R, float *y, const float *x, const uint16_t *p, int k, int go_on) {
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    __m512 c[12][2];
    VK_UNROLL for (int i = 0; i < R; i++) {
        c[i][0] = go_on ? _mm512_loadu_ps(y + i * VK_PAD) : _mm512_setzero_ps();
        c[i][1] = go_on ? _mm512_loadu_ps(y + i * VK_PAD + 16) : _mm512_setzero_ps();
    }
    for (int j = 0; j < k; j += 2, p += 2 * VK_PAD) {
        __m512i u0 = _mm512_loadu_si512(p), u1 = _mm512_loadu_si512(p + VK_PAD);
        __m512 l0 = _mm512_castsi512_ps(_mm512_slli_epi32(u0, 16)), h0 = _mm512_castsi512_ps(_mm512_and_si512(u0, high));
        __m512 l1 = _mm512_castsi512_ps(_mm512_slli_epi32(u1, 16)), h1 = _mm512_castsi512_ps(_mm512_and_si512(u1, high));
        VK_UNROLL for (int i = 0; i < R; i++) {
            __m512 a = _mm512_set1_ps(x[i * VK_STRIP + j]), b = _mm512_set1_ps(x[i * VK_STRIP + j + 1]);
            c[i][0] = _mm512_fmadd_ps(b, h0, _mm512_fmadd_ps(a, l0, c[i][0]));
            c[i][1] = _mm512_fmadd_ps(b, h1, _mm512_fmadd_ps(a, l1, c[i][1]));
        }
    }
    VK_UNROLL for (int i = 0; i < R; i++) {
        _mm512_storeu_ps(y + i * VK_PAD, c[i][0]);
        _mm512_storeu_ps(y + i * VK_PAD + 16, c[i][1]);
    }
}
VK_T512 static void vk_strip_avx512(float *y, const float *x, const uint16_t *p, int k, int rows, int go_on) {
    const float *xr = x;
#define VK_DO(R) vk_rows_avx512(R, y, xr, p, k, go_on)
    VK_ROWS_12(VK_DO, VK_STRIP)
#undef VK_DO
}
static void vk_tile_avx512(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    vk_tile_strips(vk_strip_avx512, y, x, ldx, panel, k, rows);
}
VK_T512 VK_INLINE void vk_rows_avx512_wide(const int R, float *y, const float *x, size_t ldx, const float *p, size_t k) {
    __m512 c[12][2];
    VK_UNROLL for (int i = 0; i < R; i++) c[i][0] = c[i][1] = _mm512_setzero_ps();
    for (size_t j = 0; j < k; j++, p += VK_PAD) {
        __m512 b0 = _mm512_loadu_ps(p), b1 = _mm512_loadu_ps(p + 16);
        VK_UNROLL for (int i = 0; i < R; i++) {
            __m512 a = _mm512_set1_ps(x[(size_t)i * ldx + j]);
            c[i][0] = _mm512_fmadd_ps(a, b0, c[i][0]);
            c[i][1] = _mm512_fmadd_ps(a, b1, c[i][1]);
        }
    }
    VK_UNROLL for (int i = 0; i < R; i++) { _mm512_storeu_ps(y + i * VK_PAD, c[i][0]); _mm512_storeu_ps(y + i * VK_PAD + 16, c[i][1]); }
}
VK_T512 static void vk_tile_avx512_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const float *xr = (const float *)x;
#define VK_DO(R) vk_rows_avx512_wide(R, y, xr, ldx, (const float *)panel, k)
    VK_ROWS_12(VK_DO, ldx)
#undef VK_DO
}

/* AVX2: 16 columns a time, 4 rows: 8 sums, 4 weights, 2 inputs of 16 registers */
VK_TAVX2 VK_INLINE void vk_rows_avx2(const int R, float *y, const float *x, const uint16_t *panel, int k, int go_on) {
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    for (int half = 0; half < VK_PAD; half += 16) {
        const uint16_t *p = panel + 2 * half;
        float *o = y + half;
        __m256 c[4][2];
        VK_UNROLL for (int i = 0; i < R; i++) {
            c[i][0] = go_on ? _mm256_loadu_ps(o + i * VK_PAD) : _mm256_setzero_ps();
            c[i][1] = go_on ? _mm256_loadu_ps(o + i * VK_PAD + 8) : _mm256_setzero_ps();
        }
        for (int j = 0; j < k; j += 2, p += 2 * VK_PAD) {
            __m256i u0 = _mm256_loadu_si256((const __m256i *)(const void *)p), u1 = _mm256_loadu_si256((const __m256i *)(const void *)(p + 16));
            __m256 l0 = _mm256_castsi256_ps(_mm256_slli_epi32(u0, 16)), h0 = _mm256_castsi256_ps(_mm256_and_si256(u0, high));
            __m256 l1 = _mm256_castsi256_ps(_mm256_slli_epi32(u1, 16)), h1 = _mm256_castsi256_ps(_mm256_and_si256(u1, high));
            VK_UNROLL for (int i = 0; i < R; i++) {
                __m256 a = _mm256_set1_ps(x[i * VK_STRIP + j]), b = _mm256_set1_ps(x[i * VK_STRIP + j + 1]);
                c[i][0] = _mm256_fmadd_ps(b, h0, _mm256_fmadd_ps(a, l0, c[i][0]));
                c[i][1] = _mm256_fmadd_ps(b, h1, _mm256_fmadd_ps(a, l1, c[i][1]));
            }
        }
        VK_UNROLL for (int i = 0; i < R; i++) {
            _mm256_storeu_ps(o + i * VK_PAD, c[i][0]);
            _mm256_storeu_ps(o + i * VK_PAD + 8, c[i][1]);
        }
    }
}
VK_TAVX2 static void vk_strip_avx2(float *y, const float *x, const uint16_t *p, int k, int rows, int go_on) {
    const float *xr = x;
#define VK_DO(R) vk_rows_avx2(R, y, xr, p, k, go_on)
    VK_ROWS_4(VK_DO, VK_STRIP)
#undef VK_DO
}
static void vk_tile_avx2(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    vk_tile_strips(vk_strip_avx2, y, x, ldx, panel, k, rows);
}
VK_TAVX2 VK_INLINE void vk_rows_avx2_wide(const int R, float *y, const float *x, size_t ldx, const float *panel, size_t k) {
    for (int half = 0; half < VK_PAD; half += 16) {
        const float *p = panel + half;
        __m256 c[4][2];
        VK_UNROLL for (int i = 0; i < R; i++) c[i][0] = c[i][1] = _mm256_setzero_ps();
        for (size_t j = 0; j < k; j++, p += VK_PAD) {
            __m256 b0 = _mm256_loadu_ps(p), b1 = _mm256_loadu_ps(p + 8);
            VK_UNROLL for (int i = 0; i < R; i++) {
                __m256 a = _mm256_set1_ps(x[(size_t)i * ldx + j]);
                c[i][0] = _mm256_fmadd_ps(a, b0, c[i][0]);
                c[i][1] = _mm256_fmadd_ps(a, b1, c[i][1]);
            }
        }
        VK_UNROLL for (int i = 0; i < R; i++) {
            _mm256_storeu_ps(y + i * VK_PAD + half, c[i][0]);
            _mm256_storeu_ps(y + i * VK_PAD + half + 8, c[i][1]);
        }
    }
}
VK_TAVX2 static void vk_tile_avx2_wide(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const float *xr = (const float *)x;
#define VK_DO(R) vk_rows_avx2_wide(R, y, xr, ldx, (const float *)panel, k)
    VK_ROWS_4(VK_DO, ldx)
#undef VK_DO
}

#if defined(__linux__)
#define VK_AMX 1
/* 2 x 2 tiles of 16 x 16 sums a step of k = 32. Rows beyond `rows` are read and thrown away: GEMM inputs have VK_ROWS_MAX spare rows. */
VK_TAMX static void vk_tile_amx(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    const uint16_t *xr = (const uint16_t *)x, *p = (const uint16_t *)panel;
    int two = rows > 16;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t j = 0; j < k; j += 32, p += 32 * VK_PAD) {
        _tile_loadd(4, xr + j, (long)ldx * 2);
        _tile_loadd(6, p, 4 * VK_PAD);
        _tile_loadd(7, p + VK_PAD, 4 * VK_PAD);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
            _tile_loadd(5, xr + 16 * ldx + j, (long)ldx * 2);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, y, 4 * VK_PAD);
    _tile_stored(1, y + 16, 4 * VK_PAD);
    if (two) {
        _tile_stored(2, y + 16 * VK_PAD, 4 * VK_PAD);
        _tile_stored(3, y + 16 * VK_PAD + 16, 4 * VK_PAD);
    }
}
VK_TAMX static void vk_amx_begin(void) {
    /* static: GCC 12's intrinsic does not say that it reads the whole struct, and stores to a local one are dropped */
    static const struct { uint8_t palette, start_row, reserved[14]; uint16_t row_bytes[16]; uint8_t rows[16]; } config = {
        1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16, 16, 16 } };
    _tile_loadconfig(&config);
}
VK_TAMX static void vk_amx_end(void) { _tile_release(); }
/* CPUID says that the processor has AMX; the kernel must also grant the tile state to this process */
static int vk_has_amx(void) {
    unsigned a = 7, b, c = 0, d;
    const long arch_req_xcomp_perm = 0x1023, xtiledata = 18;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (!(d >> 22 & 1) || !(d >> 24 & 1)) return 0; /* AMX-BF16, AMX-TILE */
    return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xtiledata) == 0;
}
#endif
static int vk_has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
static int vk_has_avx512bf16(void) { return vk_has_avx512() && __builtin_cpu_supports("avx512bf16"); }
static int vk_has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif /* VK_X86 */
static int vk_has_c(void) { return 1; }

/* a GEMM kernel: its tile for bf16 and for f32 weights (NULL: cannot), and what a thread does before and after using it */
typedef struct vk_gemm_kernel {
    const char *name;
    int (*present)(void);
    vk_tile tile, tile_wide;
    void (*begin)(void), (*end)(void);
} vk_gemm_kernel;
static const vk_gemm_kernel vk_gemm_kernels[] = {
#ifdef VK_AMX
    { "amx", vk_has_amx, vk_tile_amx, NULL, vk_amx_begin, vk_amx_end },
#endif
#ifdef VK_X86
    { "avx512bf16", vk_has_avx512bf16, vk_tile_avx512bf16, NULL, NULL, NULL },
    { "avx512", vk_has_avx512, vk_tile_avx512, vk_tile_avx512_wide, NULL, NULL },
    { "avx2", vk_has_avx2, vk_tile_avx2, vk_tile_avx2_wide, NULL, NULL },
#endif
    { "plain", vk_has_c, vk_tile_plain, vk_tile_plain_wide, NULL, NULL },
};
enum { VK_GEMM_KERNELS = (int)(sizeof vk_gemm_kernels / sizeof vk_gemm_kernels[0]) };

/* which kernel serves how many rows: one row (decode), few (experts), many (ViT, prefill) */
enum { VK_SHAPES = 3 };
static int vk_shape_of(int rows) { return rows == 1 ? 0 : rows < 16 ? 1 : 2; }
static const int vk_shape_rows[VK_SHAPES] = { 1, 8, 32 };

/* a packed linear layer */
typedef struct vk_linear {
    void *panels;      /* see above */
    const float *bias; /* f32 [n] or NULL */
    int n, k, k_padded;
    int wide;          /* f32 panels and inputs; the router's are so in bf16 mode too, because a flipped expert costs more than rounding */
} vk_linear;

typedef enum vk_epilogue { VK_STORE, VK_STORE_F32, VK_QUICKGELU, VK_ADD_F32 } vk_epilogue;
/* y (in-type [m, ldy], or f32 [m, ldy] for the _F32 ones) = epilogue(x W^T + bias); ADD: y += */
typedef struct vk_gemm_job { void *y; const void *x; const vk_linear *w; int m, ldy, ldx; } vk_gemm_job;

typedef struct vk_cpu {
    vk_queue queue;
    int wide;
    const vk_gemm_kernel *gemm[2][VK_SHAPES]; /* [wide][shape class] */
    void (*begin)(void), (*end)(void); /* of the chosen kernels: every thread of a parallel region calls them */
} vk_cpu;

static VK_CLONES void vk_finish_tile(const float *t, void *y, size_t ldy, const float *bias, int rows, int cols, vk_epilogue epilogue, int wide) {
    for (int r = 0; r < rows; r++) {
        const float *tr = t + r * VK_PAD;
        float v[VK_PAD];
        size_t o = (size_t)r * ldy;
        if (bias) EACH(c, cols) v[c] = tr[c] + bias[c];
        else EACH(c, cols) v[c] = tr[c];
        if (epilogue == VK_QUICKGELU) EACH(c, cols) v[c] = v[c] / (1.0f + vk_exp(-1.702f * v[c]));
        if (epilogue == VK_ADD_F32) EACH(c, cols) ((float *)y)[o + (size_t)c] += v[c];
        else if (epilogue == VK_STORE_F32) EACH(c, cols) ((float *)y)[o + (size_t)c] = v[c];
        else EACH(c, cols) vk_put(y, o + (size_t)c, v[c], wide);
    }
}

/* tasks of 4 panels x 128 rows: at k = 2048 both sides are 512 kB, half of a second-level cache; consecutive tasks share panels */
enum { VK_TASK_PANELS = 4, VK_TASK_ROWS = 128 };
static void vk_gemm_task(const vk_cpu *cpu, const vk_gemm_job *job, int64_t task, vk_epilogue epilogue) {
    const vk_linear *w = job->w;
    const vk_gemm_kernel *kernel = cpu->gemm[w->wide][vk_shape_of(job->m)];
    vk_tile tile = w->wide ? kernel->tile_wide : kernel->tile;
    size_t element = w->wide ? 4 : 2, panel_bytes = (size_t)w->k_padded * VK_PAD * element,
           out = epilogue == VK_ADD_F32 || epilogue == VK_STORE_F32 ? 4 : element;
    int row_tasks = (job->m + VK_TASK_ROWS - 1) / VK_TASK_ROWS, r0 = (int)(task % row_tasks) * VK_TASK_ROWS, r1 = r0 + VK_TASK_ROWS;
    int c0 = (int)(task / row_tasks) * VK_TASK_PANELS * VK_PAD, c1 = c0 + VK_TASK_PANELS * VK_PAD;
    float t[VK_ROWS_MAX * VK_PAD];
    if (r1 > job->m) r1 = job->m;
    if (c1 > w->n) c1 = w->n;
    for (int r = r0; r < r1; r += VK_ROWS_MAX) {
        int rows = r1 - r < VK_ROWS_MAX ? r1 - r : VK_ROWS_MAX;
        for (int c = c0; c < c1; c += VK_PAD) {
            int cols = c1 - c < VK_PAD ? c1 - c : VK_PAD;
            tile(t, (const char *)job->x + (size_t)r * (size_t)job->ldx * element, (size_t)job->ldx,
                 (const char *)w->panels + (size_t)(c / VK_PAD) * panel_bytes, (size_t)w->k_padded, rows);
            vk_finish_tile(t, (char *)job->y + ((size_t)r * (size_t)job->ldy + (size_t)c) * out, (size_t)job->ldy, w->bias ? w->bias + c : NULL, rows,
                           cols, epilogue, cpu->wide);
        }
    }
}
static int64_t vk_gemm_tasks(const vk_gemm_job *job) {
    int64_t columns = (job->w->n + VK_TASK_PANELS * VK_PAD - 1) / (VK_TASK_PANELS * VK_PAD);
    return job->m > 0 ? columns * ((job->m + VK_TASK_ROWS - 1) / VK_TASK_ROWS) : 0;
}
/* all jobs as one list of tasks; first_task int64 [count + 1] */
static void vk_gemm_run(const vk_cpu *cpu, const vk_gemm_job *jobs, int count, int64_t *first_task, vk_epilogue epilogue) {
    int64_t total = 0, products = 0;
    for (int j = 0; j < count; j++) {
        first_task[j] = total;
        total += vk_gemm_tasks(&jobs[j]);
        products += (int64_t)jobs[j].m * jobs[j].w->n * jobs[j].w->k;
    }
    first_task[count] = total;
    (void)products; /* without OpenMP there is nobody to wake */
    VK_PRAGMA(omp parallel num_threads(cpu->queue.threads) if (total > 1 && products > VK_PARALLEL_PRODUCTS))
    {
        int j = 0;
        if (cpu->begin) cpu->begin();
        VK_PRAGMA(omp for schedule(dynamic))
        for (int64_t task = 0; task < total; task++) {
            while (task < first_task[j]) j--;
            while (task >= first_task[j + 1]) j++;
            vk_gemm_task(cpu, &jobs[j], task - first_task[j], epilogue);
        }
        if (cpu->end) cpu->end();
    }
}
static void vk_linear_run(const vk_cpu *cpu, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *w, vk_epilogue epilogue) {
    vk_gemm_job job;
    int64_t first_task[2];
    job.y = y; job.x = x; job.w = w; job.m = m; job.ldy = ldy; job.ldx = ldx;
    vk_gemm_run(cpu, &job, 1, first_task, epilogue);
}

/* ============================================================================================= attention >>attention
 * Softmax(q k^T * scale) v over many queries on the CPU, with the tiles of the GEMM: K of a head is packed like weights [keys, head_dim],
 * V like weights [head_dim, keys]; a task is 32 queries of one head. q, k, v in-type rows; heads lie side by side in a row. */
typedef struct vk_attention_job {
    void *y;
    const void *q, *k, *v;
    int tokens, heads, head_dim, ldy, ldq, ldk, causal;
    void *k_panels, *v_panels; /* scratch: vk_attention_panel_elements each */
    float *scores;             /* scratch f32 [threads, 32, padded tokens] */
    void *weights;             /* scratch in-type, the same shape */
} vk_attention_job;
static size_t vk_round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
static size_t vk_attention_panel_elements(int tokens, int heads, int head_dim) {
    return (size_t)heads * vk_round_up((size_t)tokens, VK_PAD) * vk_round_up((size_t)head_dim, VK_PAD);
}

/* W rows (n of them, k long, `at(row, column)` of a strided in-type matrix) -> one panel of 32 rows */
static VK_CLONES void vk_pack_panel(void *panel, const void *w, size_t row_stride, size_t column_stride, int n, int k, int k_padded, int wide) {
    for (int j = 0; j < k_padded; j++)
        for (int c = 0; c < VK_PAD; c++) {
            int inside = c < n && j < k;
            size_t from = (size_t)c * row_stride + (size_t)j * column_stride;
            if (wide) ((float *)panel)[j * VK_PAD + c] = inside ? ((const float *)w)[from] : 0.0f;
            else ((uint16_t *)panel)[(j / 2 * VK_PAD + c) * 2 + (j & 1)] = inside ? ((const uint16_t *)w)[from] : (uint16_t)0;
        }
}
static void vk_attention_pack(const vk_cpu *cpu, const vk_attention_job *job, int head) {
    size_t element = cpu->wide ? 4 : 2, keys = vk_round_up((size_t)job->tokens, VK_PAD), width = vk_round_up((size_t)job->head_dim, VK_PAD);
    const char *k = (const char *)job->k + (size_t)head * (size_t)job->head_dim * element,
               *v = (const char *)job->v + (size_t)head * (size_t)job->head_dim * element;
    char *kp = (char *)job->k_panels + (size_t)head * keys * width * element, *vp = (char *)job->v_panels + (size_t)head * keys * width * element;
    for (int j = 0; j < job->tokens; j += VK_PAD)
        vk_pack_panel(kp + (size_t)j * width * element, k + (size_t)j * (size_t)job->ldk * element, (size_t)job->ldk, 1,
                      job->tokens - j < VK_PAD ? job->tokens - j : VK_PAD, job->head_dim, (int)width, cpu->wide);
    for (int c = 0; c < job->head_dim; c += VK_PAD)
        vk_pack_panel(vp + (size_t)c * keys * element, v + (size_t)c * element, 1, (size_t)job->ldk,
                      job->head_dim - c < VK_PAD ? job->head_dim - c : VK_PAD, job->tokens, (int)keys, cpu->wide);
}
/* scores f32 [keys] of one query -> unnormalised in-type weights, zero from `live` on; returns their sum */
static VK_CLONES float vk_softmax_row(void *weights, float *scores, int live, int keys, float scale, int wide) {
    float m = -INFINITY, s = 0.0f;
    int dead = keys - live;
    EACH_MAX(i, live, m) m = scores[i] > m ? scores[i] : m;
    EACH_SUM(i, live, s) { scores[i] = vk_exp((scores[i] - m) * scale); s += scores[i]; }
    EACH(i, dead) scores[live + i] = 0.0f;
    EACH(i, keys) vk_put(weights, (size_t)i, scores[i], wide);
    return s;
}
static void vk_attention_task(const vk_cpu *cpu, const vk_attention_job *job, int head, int row, int thread) {
    vk_tile tile = cpu->wide ? cpu->gemm[1][VK_SHAPES - 1]->tile_wide : cpu->gemm[0][VK_SHAPES - 1]->tile;
    size_t element = cpu->wide ? 4 : 2, keys = vk_round_up((size_t)job->tokens, VK_PAD), width = vk_round_up((size_t)job->head_dim, VK_PAD);
    const char *kp = (const char *)job->k_panels + (size_t)head * keys * width * element,
               *vp = (const char *)job->v_panels + (size_t)head * keys * width * element;
    float *scores = job->scores + (size_t)thread * VK_ROWS_MAX * keys, t[VK_ROWS_MAX * VK_PAD], inverse[VK_ROWS_MAX],
          scale = 1.0f / sqrtf((float)job->head_dim);
    char *weights = (char *)job->weights + (size_t)thread * VK_ROWS_MAX * keys * element;
    int rows = job->tokens - row < VK_ROWS_MAX ? job->tokens - row : VK_ROWS_MAX, seen = job->causal ? row + rows : job->tokens;
    int seen_padded = (int)vk_round_up((size_t)seen, VK_PAD);
    for (int j = 0; j < seen; j += VK_PAD) {
        tile(t, (const char *)job->q + ((size_t)row * (size_t)job->ldq + (size_t)head * (size_t)job->head_dim) * element, (size_t)job->ldq,
             kp + (size_t)j * width * element, width, rows);
        for (int r = 0; r < rows; r++) memcpy(scores + (size_t)r * keys + j, t + r * VK_PAD, sizeof(float) * VK_PAD);
    }
    for (int r = 0; r < rows; r++)
        inverse[r] = 1.0f / vk_softmax_row(weights + (size_t)r * keys * element, scores + (size_t)r * keys, job->causal ? row + r + 1 : seen,
                                           seen_padded, scale, cpu->wide);
    for (int c = 0; c < job->head_dim; c += VK_PAD) {
        int cols = job->head_dim - c < VK_PAD ? job->head_dim - c : VK_PAD;
        tile(t, weights, keys, vp + (size_t)c * keys * element, (size_t)seen_padded, rows);
        for (int r = 0; r < rows; r++) {
            size_t o = (size_t)(row + r) * (size_t)job->ldy + (size_t)(head * job->head_dim + c);
            EACH(i, cols) vk_put(job->y, o + (size_t)i, t[r * VK_PAD + i] * inverse[r], cpu->wide);
        }
    }
}
static void vk_attention_run(const vk_cpu *cpu, const vk_attention_job *job) {
    int blocks = (job->tokens + VK_ROWS_MAX - 1) / VK_ROWS_MAX, tasks = blocks * job->heads;
    VK_PRAGMA(omp parallel num_threads(cpu->queue.threads))
    {
        int thread = 0;
#ifdef _OPENMP
        thread = omp_get_thread_num();
#endif
        if (cpu->begin) cpu->begin();
        VK_PRAGMA(omp for schedule(static))
        for (int head = 0; head < job->heads; head++) vk_attention_pack(cpu, job, head);
        VK_PRAGMA(omp for schedule(dynamic))
        for (int task = 0; task < tasks; task++) vk_attention_task(cpu, job, task / blocks, task % blocks * VK_ROWS_MAX, thread);
        if (cpu->end) cpu->end();
    }
}

/* the kernel that is fastest here, measured per shape class on a panel that fits the cache; flags alone mislead: one processor's
 * AVX-512 BF16 unit is its fastest, another's is slower than its fp32 FMA */
static int64_t vk_time_kernel(const vk_gemm_kernel *kernel, int wide, int rows, const void *x, const void *panel, int k) {
    float t[VK_ROWS_MAX * VK_PAD];
    int64_t best = INT64_MAX;
    vk_tile tile = wide ? kernel->tile_wide : kernel->tile;
    if (kernel->begin) kernel->begin();
    for (int repeat = 0; repeat < 5; repeat++) {
        int64_t start = vp_clock_ns(), took;
        for (int i = 0; i < 4; i++) tile(t, x, (size_t)k, panel, (size_t)k, rows);
        took = vp_clock_ns() - start;
        if (took < best) best = took;
    }
    if (kernel->end) kernel->end();
    return best;
}
static int vk_gemm_usable(const vk_gemm_kernel *kernel, int wide) { return (wide ? kernel->tile_wide : kernel->tile) != NULL && kernel->present(); }
static const vk_gemm_kernel *vk_gemm_fastest(const char *name, int wide, int rows, const void *x, const void *panel, int k) {
    const vk_gemm_kernel *fastest = NULL;
    int64_t best = INT64_MAX;
    for (int i = 0; i < VK_GEMM_KERNELS; i++) {
        const vk_gemm_kernel *kernel = &vk_gemm_kernels[i];
        int64_t took;
        if ((name && strcmp(kernel->name, name)) || !vk_gemm_usable(kernel, wide)) continue;
        took = vk_time_kernel(kernel, wide, rows, x, panel, k);
        if (took < best) { best = took; fastest = kernel; }
    }
    return fastest;
}
/* `name` forces the kernel of the mode's arithmetic; f32 layers of bf16 mode are always chosen by measurement */
static vp_result vk_gemm_choose(vk_cpu *cpu, const char *name, vp_error *error) {
    enum { K = 1024 };
    size_t rows_bytes = sizeof(float) * K * (VK_ROWS_MAX + VK_ROWS_MAX), panel_bytes = sizeof(float) * K * VK_PAD;
    char *x = (char *)calloc(1, rows_bytes + panel_bytes);
    if (!x) return vp_fail(error, VP_ERR_MEMORY, -1, "gemm choice", "no memory for the measurement");
    for (int wide = cpu->wide; wide < 2; wide++)
        for (int s = 0; s < VK_SHAPES; s++) {
            const vk_gemm_kernel *kernel = vk_gemm_fastest(wide == cpu->wide ? name : NULL, wide, vk_shape_rows[s], x, x + rows_bytes, K);
            cpu->gemm[wide][s] = kernel;
            if (kernel && kernel->begin) { cpu->begin = kernel->begin; cpu->end = kernel->end; }
        }
    free(x);
    if (!cpu->gemm[cpu->wide][0])
        return vp_fail(error, VP_ERR_RANGE, -1, name, "this processor has no GEMM kernel of that name for this arithmetic");
    return VP_OK;
}

/* =============================================================================================== weights >>weights
 * One layout function runs twice over a model: once with a NULL base to add up the bytes, once to hand out the addresses. */
typedef struct vk_arena { char *base; size_t used; } vk_arena;
static void *vk_take(vk_arena *arena, size_t count, size_t element) {
    void *p = arena->base ? arena->base + arena->used : NULL;
    arena->used = vk_round_up(arena->used + count * element, 64);
    return p;
}

typedef struct vk_norm { float *weight, *bias; } vk_norm;
typedef struct vk_vit_block { vk_norm attention_norm, ffn_norm; vk_linear qkv, wo, w1, w2; } vk_vit_block;
typedef struct vk_block {
    vk_norm attn_norm, ff_norm, q_norm, k_norm;
    vk_linear att_proj, attn_out, router;
    vk_linear *gate_up, *down; /* [experts] each; gate rows over up rows */
} vk_block;
typedef struct vk_model {
    float *class_embedding, *positions, *pad_embed;
    vk_norm pre_ln, ln_f;
    vk_linear patch, pool_query, pool_key_value, pool_out, projector_gate_up, projector_down, head;
    void *embedding; /* in-type [embedding_size + additional_vocab_size, d_model] */
    vk_vit_block *vit;
    vk_block *blocks;
} vk_model;

static void vk_layout_linear(vk_arena *arena, vk_linear *linear, int n, int k, int has_bias, int wide) {
    linear->n = n;
    linear->k = k;
    linear->k_padded = (int)vk_round_up((size_t)k, VK_PAD);
    linear->wide = wide;
    linear->panels = vk_take(arena, vk_round_up((size_t)n, VK_PAD) * (size_t)linear->k_padded, wide ? 4 : 2);
    linear->bias = has_bias ? (float *)vk_take(arena, (size_t)n, 4) : NULL;
}
static void vk_layout_norm(vk_arena *arena, vk_norm *norm, int n, int has_bias) {
    norm->weight = (float *)vk_take(arena, (size_t)n, 4);
    norm->bias = has_bias ? (float *)vk_take(arena, (size_t)n, 4) : NULL;
}
static void vk_layout_vision(vk_arena *arena, vk_model *m, const vp_model_config *c, int wide) {
    int w = c->vit_width, features = w * c->vit_layer_count, patch_values = c->geometry.patch_px * c->geometry.patch_px * 3;
    m->class_embedding = (float *)vk_take(arena, (size_t)w, 4);
    m->positions = (float *)vk_take(arena, (size_t)c->vit_positions * (size_t)w, 4);
    m->pad_embed = (float *)vk_take(arena, 2 * (size_t)features, 4);
    vk_layout_norm(arena, &m->pre_ln, w, 1);
    vk_layout_linear(arena, &m->patch, w, patch_values, 0, wide);
    for (int b = 0; b < c->vit_blocks_needed; b++) {
        vk_vit_block *v = &m->vit[b];
        vk_layout_norm(arena, &v->attention_norm, w, 1);
        vk_layout_norm(arena, &v->ffn_norm, w, 1);
        vk_layout_linear(arena, &v->qkv, 3 * w, w, 1, wide);
        vk_layout_linear(arena, &v->wo, w, w, 1, wide);
        vk_layout_linear(arena, &v->w1, c->vit_mlp_dim, w, 1, wide);
        vk_layout_linear(arena, &v->w2, w, c->vit_mlp_dim, 1, wide);
    }
    vk_layout_linear(arena, &m->pool_query, w, features, 1, wide);
    vk_layout_linear(arena, &m->pool_key_value, 2 * w, features, 1, wide);
    vk_layout_linear(arena, &m->pool_out, w, w, 1, wide);
    vk_layout_linear(arena, &m->projector_gate_up, 2 * c->projector_dim, w, 0, wide);
    vk_layout_linear(arena, &m->projector_down, c->d_model, c->projector_dim, 0, wide);
}
static void vk_layout_model(vk_arena *arena, vk_model *m, const vp_model_config *c, int wide) {
    int d = c->d_model;
    vk_layout_vision(arena, m, c, wide);
    m->embedding = vk_take(arena, (size_t)(c->embedding_size + c->additional_vocab_size) * (size_t)d, wide ? 4 : 2);
    vk_layout_norm(arena, &m->ln_f, d, 0);
    vk_layout_linear(arena, &m->head, c->embedding_size, d, 0, wide);
    for (int b = 0; b < c->block_count; b++) {
        vk_block *k = &m->blocks[b];
        vk_layout_norm(arena, &k->attn_norm, d, 0);
        vk_layout_norm(arena, &k->ff_norm, d, 0);
        vk_layout_norm(arena, &k->q_norm, d, 0);
        vk_layout_norm(arena, &k->k_norm, d, 0);
        vk_layout_linear(arena, &k->att_proj, 3 * d, d, 0, wide);
        vk_layout_linear(arena, &k->attn_out, d, d, 0, wide);
        vk_layout_linear(arena, &k->router, c->expert_count, d, 0, 1);
        for (int e = 0; e < c->expert_count; e++) {
            vk_layout_linear(arena, &k->gate_up[e], 2 * c->expert_dim, d, 0, wide);
            vk_layout_linear(arena, &k->down[e], d, c->expert_dim, 0, wide);
        }
    }
}
/* the structs that hold the pointers; the weights themselves lie in the arena */
static vp_result vk_model_new(vk_model *m, const vp_model_config *c, vp_error *error) {
    size_t experts = (size_t)c->block_count * (size_t)c->expert_count;
    vk_linear *linears = (vk_linear *)calloc(2 * experts, sizeof *linears);
    m->vit = (vk_vit_block *)calloc((size_t)c->vit_blocks_needed, sizeof *m->vit);
    m->blocks = (vk_block *)calloc((size_t)c->block_count, sizeof *m->blocks);
    if (!linears || !m->vit || !m->blocks) {
        free(linears);
        return vp_fail(error, VP_ERR_MEMORY, -1, "model", "no memory for the table of layers");
    }
    for (int b = 0; b < c->block_count; b++) {
        m->blocks[b].gate_up = linears + (size_t)b * 2 * (size_t)c->expert_count;
        m->blocks[b].down = m->blocks[b].gate_up + c->expert_count;
    }
    return VP_OK;
}
static void vk_model_free(vk_model *m) {
    if (m->blocks) free(m->blocks[0].gate_up);
    free(m->blocks);
    free(m->vit);
}

/* where rows of weights come from: a tensor of the checkpoint, or numbers drawn from its name */
typedef struct vk_loader {
    const vp_checkpoint *checkpoint;
    uint64_t seed;
    int wide, threads;
    vp_progress progress;
    void *progress_user;
    int64_t done, total; /* bytes of packed weights */
    vp_result result;    /* sticks: once it is not VP_OK nothing more is loaded */
    vp_error *error;
} vk_loader;
typedef struct vk_source {
    vp_tensor tensor;
    uint64_t key;         /* synthetic: the name's hash */
    float scale, offset;  /* synthetic: offset + scale * uniform(-1, 1) */
    int synthetic;
} vk_source;

static uint64_t vk_mix(uint64_t x) { /* splitmix64's finalizer */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
static int vk_ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && memcmp(text + n - m, end, m) == 0;
}
static vk_source vk_open_source(vk_loader *loader, const char *name, int64_t rows, int64_t columns) {
    vk_source source;
    memset(&source, 0, sizeof source);
    if (loader->result != VP_OK) return source;
    if (loader->checkpoint) {
        vp_result found = vp_checkpoint_find(loader->checkpoint, name, &source.tensor);
        int64_t elements = 1;
        for (int i = 0; i < source.tensor.dimensions; i++) elements *= source.tensor.shape[i];
        if (found != VP_OK) loader->result = vp_fail(loader->error, found, -1, name, "the checkpoint has no such tensor");
        else if (elements != rows * columns)
            loader->result = vp_fail(loader->error, VP_ERR_MISMATCH, -1, name, "the tensor has another shape than the config says");
        return source;
    }
    source.synthetic = 1;
    source.key = vk_mix(loader->seed + 0x9e3779b97f4a7c15ull);
    for (const char *p = name; *p; p++) source.key = vk_mix(source.key ^ (unsigned char)*p);
    /* fan-in scaling keeps every activation near unit size; a uniform draw on (-1, 1) has a standard deviation of 1 / sqrt(3) */
    source.scale = sqrtf(3.0f / (float)columns);
    if (vk_ends_with(name, "norm.weight") || vk_ends_with(name, "ln_f.weight") || vk_ends_with(name, "pre_ln.weight")) {
        source.offset = 1.0f;
        source.scale = 0.1f;
    } else if (vk_ends_with(name, ".bias")) source.scale = 0.05f;
    else if (vk_ends_with(name, "embedding"))
        source.scale = vk_ends_with(name, "wte.embedding") || vk_ends_with(name, "new_embedding") ? 1.7320508f : 0.5f;
    else if (vk_ends_with(name, "pad_embed")) source.scale = 0.3f;
    return source;
}
/* one row of k elements as in-type, zeros up to k_padded */
static VK_CLONES void vk_source_row(const vk_source *source, int64_t row, void *out, int k, int k_padded, int wide) {
    const unsigned char *data = source->tensor.data;
    size_t first = (size_t)row * (size_t)k;
    int rest = k_padded - k;
    if (source->synthetic) {
        uint32_t key = (uint32_t)vk_mix(source->key ^ (uint64_t)row);
        float scale = source->scale, offset = source->offset;
        EACH(i, k) {
            uint32_t h = (uint32_t)i * 0x9e3779b1u + key; /* murmur3's finalizer on a counter */
            h = (h ^ (h >> 16)) * 0x85ebca6bu;
            h = (h ^ (h >> 13)) * 0xc2b2ae35u;
            vk_put(out, (size_t)i, offset + scale * ((float)(int32_t)(h ^ (h >> 16)) * 4.656612873e-10f), wide);
        }
    } else if (source->tensor.dtype == VP_DTYPE_F32) {
        for (int i = 0; i < k; i++) {
            float v;
            memcpy(&v, data + (first + (size_t)i) * 4, 4);
            if (wide) ((float *)out)[i] = v;
            else ((uint16_t *)out)[i] = vp_f32_to_bf16(v);
        }
    } else if (source->tensor.dtype == VP_DTYPE_BF16 && !wide) {
        memcpy(out, data + first * 2, (size_t)k * 2);
    } else {
        int half = source->tensor.dtype == VP_DTYPE_F16;
        for (int i = 0; i < k; i++) {
            uint16_t u;
            float v;
            memcpy(&u, data + (first + (size_t)i) * 2, 2);
            v = half ? vp_f16_to_f32(u) : vp_bf16_to_f32(u);
            if (wide) ((float *)out)[i] = v;
            else ((uint16_t *)out)[i] = vp_f32_to_bf16(v);
        }
    }
    EACH(i, rest) vk_put(out, (size_t)(k + i), 0.0f, wide);
}
static void vk_loaded(vk_loader *loader, const char *name, int64_t bytes) {
    loader->done += bytes;
    if (loader->result == VP_OK && loader->progress && loader->progress(loader->progress_user, name, loader->done, loader->total) != VP_OK)
        loader->result = vp_fail(loader->error, VP_ERR_INTERRUPTED, -1, name, "loading was stopped");
}
/* f32 vector or in-type table, rows as they are */
static void vk_load_rows(vk_loader *loader, const char *name, void *out, int64_t rows, int k, int wide) {
    vk_source source = vk_open_source(loader, name, rows, k);
    if (loader->result != VP_OK) return;
    VK_PRAGMA(omp parallel for schedule(static) num_threads(loader->threads))
    for (int64_t r = 0; r < rows; r++) vk_source_row(&source, r, (char *)out + (size_t)r * (size_t)k * (wide ? 4 : 2), k, k, wide);
    vk_loaded(loader, name, rows * k * (wide ? 4 : 2));
}
static void vk_load_norm(vk_loader *loader, const char *prefix, const vk_norm *norm, int n) {
    char name[192];
    snprintf(name, sizeof name, "%s.weight", prefix);
    vk_load_rows(loader, name, norm->weight, 1, n, 1);
    if (!norm->bias) return;
    snprintf(name, sizeof name, "%s.bias", prefix);
    vk_load_rows(loader, name, norm->bias, 1, n, 1);
}
/* 32 rows of words (two bf16 along k, or one f32) -> columns first..first+rows of a panel, whose line j holds word j of all 32 */
static VK_CLONES void vk_interleave(uint32_t *panel, const uint32_t *rows, int first, int count, int words) {
    for (int j = 0; j < words; j++)
        for (int c = 0; c < count; c++) panel[(size_t)j * VK_PAD + (size_t)(first + c)] = rows[(size_t)c * (size_t)words + (size_t)j];
}
/* tensor [rows, k] -> rows first_row.. of a packed linear */
static void vk_load_linear_rows(vk_loader *loader, const char *name, const vk_linear *linear, int first_row, int rows) {
    size_t row_bytes = (size_t)linear->k_padded * (linear->wide ? 4 : 2);
    vk_source source = vk_open_source(loader, name, rows, linear->k);
    int first_panel = first_row / VK_PAD, last_panel = (first_row + rows - 1) / VK_PAD, failed = 0;
    if (loader->result != VP_OK) return;
    VK_PRAGMA(omp parallel num_threads(loader->threads) reduction(| : failed))
    {
        char *buffer = (char *)malloc(row_bytes * VK_PAD);
        failed = buffer == NULL;
        VK_PRAGMA(omp for schedule(dynamic))
        for (int p = first_panel; p <= last_panel; p++) {
            int from = p * VK_PAD > first_row ? p * VK_PAD : first_row,
                to = (p + 1) * VK_PAD < first_row + rows ? (p + 1) * VK_PAD : first_row + rows;
            if (!buffer) continue;
            for (int r = from; r < to; r++)
                vk_source_row(&source, r - first_row, buffer + (size_t)(r - from) * row_bytes, linear->k, linear->k_padded, linear->wide);
            vk_interleave((uint32_t *)(void *)((char *)linear->panels + (size_t)p * VK_PAD * row_bytes), (const uint32_t *)(const void *)buffer,
                          from - p * VK_PAD, to - from, (int)(row_bytes / 4));
        }
        free(buffer);
    }
    if (failed) loader->result = vp_fail(loader->error, VP_ERR_MEMORY, -1, name, "no memory for the packing buffer");
    vk_loaded(loader, name, (int64_t)rows * (int64_t)row_bytes);
}
static void vk_load_linear(vk_loader *loader, const char *prefix, const vk_linear *linear, int first_row, int rows) {
    char name[192];
    snprintf(name, sizeof name, "%s.weight", prefix);
    vk_load_linear_rows(loader, name, linear, first_row, rows);
    if (!linear->bias) return;
    snprintf(name, sizeof name, "%s.bias", prefix);
    vk_load_rows(loader, name, (float *)(uintptr_t)(linear->bias + first_row), 1, rows, 1);
}
static void vk_load_vision(vk_loader *loader, vk_model *m, const vp_model_config *c) {
    static const char *const qkv[3] = { "wq", "wk", "wv" };
    char prefix[160];
    int w = c->vit_width;
#define VK_V "model.vision_backbone."
    vk_load_rows(loader, VK_V "image_vit.class_embedding", m->class_embedding, 1, w, 1);
    vk_load_rows(loader, VK_V "image_vit.positional_embedding", m->positions, c->vit_positions, w, 1);
    vk_load_rows(loader, VK_V "pad_embed", m->pad_embed, 2, w * c->vit_layer_count, 1);
    vk_load_norm(loader, VK_V "image_vit.pre_ln", &m->pre_ln, w);
    vk_load_linear(loader, VK_V "image_vit.patch_embedding", &m->patch, 0, w);
    for (int b = 0; b < c->vit_blocks_needed; b++) {
        vk_vit_block *v = &m->vit[b];
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, VK_V "image_vit.transformer.resblocks.%d." text, b), prefix)
        vk_load_norm(loader, VK_NAME("attention_norm"), &v->attention_norm, w);
        vk_load_norm(loader, VK_NAME("ffn_norm"), &v->ffn_norm, w);
        for (int i = 0; i < 3; i++) {
            snprintf(prefix, sizeof prefix, VK_V "image_vit.transformer.resblocks.%d.attention.%s", b, qkv[i]);
            vk_load_linear(loader, prefix, &v->qkv, i * w, w);
        }
        vk_load_linear(loader, VK_NAME("attention.wo"), &v->wo, 0, w);
        vk_load_linear(loader, VK_NAME("feed_forward.w1"), &v->w1, 0, c->vit_mlp_dim);
        vk_load_linear(loader, VK_NAME("feed_forward.w2"), &v->w2, 0, w);
#undef VK_NAME
    }
    vk_load_linear(loader, VK_V "image_pooling_2d.wq", &m->pool_query, 0, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wk", &m->pool_key_value, 0, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wv", &m->pool_key_value, w, w);
    vk_load_linear(loader, VK_V "image_pooling_2d.wo", &m->pool_out, 0, w);
    vk_load_linear(loader, VK_V "image_projector.w1", &m->projector_gate_up, 0, c->projector_dim);
    vk_load_linear(loader, VK_V "image_projector.w3", &m->projector_gate_up, c->projector_dim, c->projector_dim);
    vk_load_linear(loader, VK_V "image_projector.w2", &m->projector_down, 0, c->d_model);
#undef VK_V
}
static vp_result vk_load_model(vk_loader *loader, vk_model *m, const vp_model_config *c) {
    char prefix[160];
    int d = c->d_model;
    size_t table_row = (size_t)d * (loader->wide ? 4 : 2);
    vk_load_rows(loader, "model.transformer.wte.embedding", m->embedding, c->embedding_size, d, loader->wide);
    if (c->additional_vocab_size)
        vk_load_rows(loader, "model.transformer.wte.new_embedding", (char *)m->embedding + (size_t)c->embedding_size * table_row,
                     c->additional_vocab_size, d, loader->wide);
    vk_load_norm(loader, "model.transformer.ln_f", &m->ln_f, d);
    for (int b = 0; b < c->block_count; b++) {
        vk_block *k = &m->blocks[b];
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, "model.transformer.blocks.%d." text, b), prefix)
        vk_load_norm(loader, VK_NAME("attn.attn_norm"), &k->attn_norm, d);
        vk_load_norm(loader, VK_NAME("mlp.ff_norm"), &k->ff_norm, d);
        vk_load_norm(loader, VK_NAME("attn.q_norm"), &k->q_norm, d);
        vk_load_norm(loader, VK_NAME("attn.k_norm"), &k->k_norm, d);
        vk_load_linear(loader, VK_NAME("attn.att_proj"), &k->att_proj, 0, 3 * d);
        vk_load_linear(loader, VK_NAME("attn.attn_out"), &k->attn_out, 0, d);
        vk_load_linear(loader, VK_NAME("mlp.gate"), &k->router, 0, c->expert_count);
#undef VK_NAME
        for (int e = 0; e < c->expert_count; e++) {
#define VK_NAME(text) (snprintf(prefix, sizeof prefix, "model.transformer.blocks.%d.mlp.experts.%d." text, b, e), prefix)
            vk_load_linear(loader, VK_NAME("gate_proj"), &k->gate_up[e], 0, c->expert_dim);
            vk_load_linear(loader, VK_NAME("up_proj"), &k->gate_up[e], c->expert_dim, c->expert_dim);
            vk_load_linear(loader, VK_NAME("down_proj"), &k->down[e], 0, d);
#undef VK_NAME
        }
    }
    vk_load_vision(loader, m, c);
    vk_load_linear(loader, "lm_head", &m->head, 0, c->embedding_size);
    return loader->result;
}

/* ================================================================================================= memory >>memory
 * Everything a request touches, sized once for the longest request. In-type buffers have VK_ROWS_MAX spare rows and rows padded to VK_PAD. */
typedef struct vk_buffers {
    /* vision, one view at a time */
    void *patches, *vit_normed, *vit_qkv, *vit_attended, *vit_hidden; /* in-type */
    float *patch_rows, *vit_x;                                        /* f32 [positions, vit_width] */
    float *hidden;                                                    /* f32 [max_views, layers, positions, vit_width]: the block outputs used */
    void *pool_keys, *pool_query_in, *pool_attended, *pool_out, *projector_hidden;
    float *pool_query, *pool_key_value, *projector_gate_up;
    float *image_features;                                            /* f32 [max_views, tokens_per_crop, d_model] */
    /* language */
    int32_t *ids, *image_index;
    float *x, *qkv, *logits, *cs, *decode_scores;
    void *normed, *normed_wide, *q, *attended; /* normed_wide: f32, the router's input */
    void *key, *value;                                                /* in-type [blocks, max_sequence, d_model] */
    int32_t *expert_index, *expert_count, *expert_start, *expert_list, *slot_row, *token;
    float *router_logits, *expert_weight, *gate_up, *expert_out;
    void *gathered, *expert_hidden;
    vk_gemm_job *jobs;
    int64_t *first_task;
    /* attention over many queries */
    void *k_panels, *v_panels, *weights;
    float *scores;
} vk_buffers;

struct vp_engine {
    vp_model_config config;
    vk_cpu cpu;
    vk_kernels kernels;
    vk_model model;
    vk_buffers buffers;
    int wide, max_sequence, max_views, vit_layer_at[VP_VIT_LAYERS_MAX];
    int moe_rows; /* rows of the expert buffers: (token, slot) pairs handled at once */
    char *memory;
    size_t weights_bytes, memory_bytes;
    char device[160];
};

/* zeroed pages; large ones where the system has them, because a decode step walks gigabytes of weights */
#if defined(__linux__)
static uint64_t vk_free_bytes(void) {
    char line[128];
    unsigned long long kilobytes = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) break;
    if (f) fclose(f);
    return kilobytes * 1024u;
}
static void *vk_reserve(size_t bytes) {
    uint64_t available = vk_free_bytes();
    void *p;
    if (available && bytes > available) return NULL; /* the kernel would promise it and then kill the process */
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}
static void vk_release(void *p, size_t bytes) { if (p) munmap(p, bytes); }
#else
static uint64_t vk_free_bytes(void) { return 0; }
static void *vk_reserve(size_t bytes) { return calloc(1, bytes); }
static void vk_release(void *p, size_t bytes) { (void)bytes; free(p); }
#endif

static int vk_padded(int n) { return (int)vk_round_up((size_t)n, VK_PAD); }
static void *vk_take_rows(vk_arena *arena, int rows, int width, int wide) {
    return vk_take(arena, ((size_t)rows + VK_ROWS_MAX) * (size_t)vk_padded(width), wide ? 4 : 2);
}
static size_t vk_max(size_t a, size_t b) { return a > b ? a : b; }

static void vk_layout_vision_buffers(vk_arena *arena, vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int w = c->vit_width, positions = c->vit_positions, features = w * c->vit_layer_count, windows = vp_geometry_tokens_per_crop(&c->geometry),
        wide = e->wide;
    int views = e->max_views;
    b->patches = vk_take_rows(arena, positions, c->geometry.patch_px * c->geometry.patch_px * 3, wide);
    b->patch_rows = (float *)vk_take(arena, (size_t)positions * (size_t)w, 4);
    b->vit_x = (float *)vk_take(arena, (size_t)positions * (size_t)w, 4);
    b->vit_normed = vk_take_rows(arena, positions, w, wide);
    b->vit_qkv = vk_take_rows(arena, positions, 3 * w, wide);
    b->vit_attended = vk_take_rows(arena, positions, w, wide);
    b->vit_hidden = vk_take_rows(arena, positions, c->vit_mlp_dim, wide);
    b->hidden = (float *)vk_take(arena, (size_t)views * (size_t)positions * (size_t)features, 4);
    b->pool_keys = vk_take_rows(arena, positions, features, wide);
    b->pool_query_in = vk_take_rows(arena, windows, features, wide);
    b->pool_query = (float *)vk_take(arena, (size_t)windows * (size_t)w, 4);
    b->pool_key_value = (float *)vk_take(arena, (size_t)positions * 2 * (size_t)w, 4);
    b->pool_attended = vk_take_rows(arena, windows, w, wide);
    b->pool_out = vk_take_rows(arena, windows, w, wide);
    b->projector_gate_up = (float *)vk_take(arena, (size_t)windows * 2 * (size_t)c->projector_dim, 4);
    b->projector_hidden = vk_take_rows(arena, windows, c->projector_dim, wide);
    b->image_features = (float *)vk_take(arena, (size_t)views * (size_t)windows * (size_t)c->d_model, 4);
    b->image_index = (int32_t *)vk_take(arena, (size_t)views * (size_t)windows, 4);
}
static void vk_layout_language_buffers(vk_arena *arena, vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int d = c->d_model, rows = e->max_sequence, wide = e->wide, pairs = e->moe_rows;
    size_t cache = (size_t)c->block_count * (size_t)rows * (size_t)d + (size_t)VK_ROWS_MAX * (size_t)d;
    b->ids = (int32_t *)vk_take(arena, (size_t)rows, 4);
    b->token = (int32_t *)vk_take(arena, 1, 4);
    b->x = (float *)vk_take(arena, (size_t)rows * (size_t)d, 4);
    b->normed = vk_take_rows(arena, rows, d, wide);
    b->normed_wide = wide ? b->normed : vk_take_rows(arena, rows, d, 1);
    b->qkv = (float *)vk_take(arena, (size_t)rows * 3 * (size_t)d, 4);
    b->q = vk_take_rows(arena, rows, d, wide);
    b->attended = vk_take_rows(arena, rows, d, wide);
    b->key = vk_take(arena, cache, wide ? 4 : 2);
    b->value = vk_take(arena, cache, wide ? 4 : 2);
    b->cs = (float *)vk_take(arena, (size_t)rows * (size_t)c->head_dim, 4);
    b->decode_scores = (float *)vk_take(arena, (size_t)c->head_count * (size_t)rows, 4);
    b->logits = (float *)vk_take(arena, (size_t)c->embedding_size, 4);
    b->router_logits = (float *)vk_take(arena, (size_t)rows * (size_t)c->expert_count, 4);
    b->expert_index = (int32_t *)vk_take(arena, (size_t)pairs, 4);
    b->expert_weight = (float *)vk_take(arena, (size_t)pairs, 4);
    b->expert_count = (int32_t *)vk_take(arena, (size_t)c->expert_count, 4);
    b->expert_start = (int32_t *)vk_take(arena, (size_t)c->expert_count + 1, 4);
    b->expert_list = (int32_t *)vk_take(arena, (size_t)pairs, 4);
    b->slot_row = (int32_t *)vk_take(arena, (size_t)pairs, 4);
    b->gathered = vk_take_rows(arena, pairs, d, wide);
    b->gate_up = (float *)vk_take(arena, (size_t)pairs * 2 * (size_t)c->expert_dim, 4);
    b->expert_hidden = vk_take_rows(arena, pairs, c->expert_dim, wide);
    b->expert_out = (float *)vk_take(arena, (size_t)pairs * (size_t)d, 4);
    b->jobs = (vk_gemm_job *)vk_take(arena, (size_t)c->expert_count, sizeof *b->jobs);
    b->first_task = (int64_t *)vk_take(arena, (size_t)c->expert_count + 1, sizeof *b->first_task);
}
static void vk_layout_buffers(vk_arena *arena, vp_engine *e) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    size_t element = e->wide ? 4 : 2, keys = vk_round_up((size_t)(e->max_sequence > c->vit_positions ? e->max_sequence : c->vit_positions), VK_PAD);
    size_t panels = vk_max(vk_attention_panel_elements(c->vit_positions, c->vit_head_count, c->vit_head_dim),
                           vk_attention_panel_elements(e->max_sequence, c->head_count, c->head_dim));
    vk_layout_vision_buffers(arena, e);
    vk_layout_language_buffers(arena, e);
    b->k_panels = vk_take(arena, panels, element);
    b->v_panels = vk_take(arena, panels, element);
    b->scores = (float *)vk_take(arena, (size_t)e->cpu.queue.threads * VK_ROWS_MAX * keys, 4);
    b->weights = vk_take(arena, (size_t)e->cpu.queue.threads * VK_ROWS_MAX * keys, element);
}

/* cos and sin of every position; the reference computes frequencies and angles in fp32 */
static void vk_fill_rope(float *cs, int positions, int head_dim, double theta) {
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        float frequency = 1.0f / (float)pow(theta, (double)((float)(2 * i) / (float)head_dim));
        for (int p = 0; p < positions; p++) {
            float angle = (float)p * frequency;
            cs[(size_t)p * (size_t)head_dim + (size_t)i] = (float)cos((double)angle);
            cs[(size_t)p * (size_t)head_dim + (size_t)(half + i)] = (float)sin((double)angle);
        }
    }
}

/* ================================================================================================= stages >>stages */

/* pixels of one view -> the block outputs that are used, kept in buffers.hidden */
static void vk_vit_view(vp_engine *e, const float *pixels, int view) {
    const vp_model_config *c = &e->config;
    const vk_model *m = &e->model;
    vk_buffers *b = &e->buffers;
    vk_cpu *cpu = &e->cpu;
    vk_queue *queue = &cpu->queue;
    int w = c->vit_width, ld = vk_padded(w), ld3 = vk_padded(3 * w), ldh = vk_padded(c->vit_mlp_dim), rows = c->vit_positions, wide = e->wide;
    int patch_values = c->geometry.patch_px * c->geometry.patch_px * 3, ldp = vk_padded(patch_values);
    size_t element = wide ? 4 : 2, hidden_floats = (size_t)rows * (size_t)w;
    vk_attention_job job;
    e->kernels.convert(queue, b->patches, pixels, rows - 1, patch_values, ldp, wide);
    vk_linear_run(cpu, b->patch_rows, w, b->patches, ldp, rows - 1, &m->patch, VK_STORE_F32);
    e->kernels.vit_embed(queue, b->vit_x, b->patch_rows, m->class_embedding, m->positions, rows, w);
    e->kernels.layernorm(queue, b->vit_x, b->vit_x, m->pre_ln.weight, m->pre_ln.bias, rows, w, w, c->vit_norm_eps, 1);
    memset(&job, 0, sizeof job);
    job.y = b->vit_attended; job.ldy = ld;
    job.q = b->vit_qkv; job.k = (char *)b->vit_qkv + (size_t)w * element; job.v = (char *)b->vit_qkv + 2 * (size_t)w * element;
    job.ldq = job.ldk = ld3;
    job.tokens = rows; job.heads = c->vit_head_count; job.head_dim = c->vit_head_dim;
    job.k_panels = b->k_panels; job.v_panels = b->v_panels; job.scores = b->scores; job.weights = b->weights;
    for (int i = 0; i < c->vit_blocks_needed; i++) {
        const vk_vit_block *v = &m->vit[i];
        e->kernels.layernorm(queue, b->vit_normed, b->vit_x, v->attention_norm.weight, v->attention_norm.bias, rows, w, ld, c->vit_norm_eps, wide);
        vk_linear_run(cpu, b->vit_qkv, ld3, b->vit_normed, ld, rows, &v->qkv, VK_STORE);
        vk_attention_run(cpu, &job);
        vk_linear_run(cpu, b->vit_x, w, b->vit_attended, ld, rows, &v->wo, VK_ADD_F32);
        e->kernels.layernorm(queue, b->vit_normed, b->vit_x, v->ffn_norm.weight, v->ffn_norm.bias, rows, w, ld, c->vit_norm_eps, wide);
        vk_linear_run(cpu, b->vit_hidden, ldh, b->vit_normed, ld, rows, &v->w1, VK_QUICKGELU);
        vk_linear_run(cpu, b->vit_x, w, b->vit_hidden, ldh, rows, &v->w2, VK_ADD_F32);
        for (int l = 0; l < c->vit_layer_count; l++)
            if (e->vit_layer_at[l] == i)
                memcpy(b->hidden + ((size_t)view * (size_t)c->vit_layer_count + (size_t)l) * hidden_floats, b->vit_x, hidden_floats * sizeof(float));
    }
}

/* a view whose pixels hold exactly -1 anywhere is a padding view to the reference: its features are zeroed */
static int vk_is_dead_view(const float *pixels, size_t count) {
    int dead = 0;
    for (size_t i = 0; i < count; i++) dead |= pixels[i] == -1.0f;
    return dead;
}
/* attention pooling over 2 x 2 windows, then the projector: buffers.hidden -> buffers.image_features of one view */
static void vk_connector_view(vp_engine *e, const float *pixels, const float *mask, int view) {
    const vp_model_config *c = &e->config;
    const vk_model *m = &e->model;
    vk_buffers *b = &e->buffers;
    vk_cpu *cpu = &e->cpu;
    vk_queue *queue = &cpu->queue;
    int w = c->vit_width, layers = c->vit_layer_count, ldf = vk_padded(w * layers), ld = vk_padded(w), ldh = vk_padded(c->projector_dim),
        wide = e->wide;
    int side = vp_geometry_patches_per_side(&c->geometry), pool = c->geometry.pool, windows = vp_geometry_tokens_per_crop(&c->geometry),
        n = pool * pool;
    const float *hidden = b->hidden + (size_t)view * (size_t)layers * (size_t)c->vit_positions * (size_t)w;
    float *features = b->image_features + (size_t)view * (size_t)windows * (size_t)c->d_model;
    int dead = vk_is_dead_view(pixels, (size_t)(side * side) * (size_t)(c->geometry.patch_px * c->geometry.patch_px * 3));
    e->kernels.pool_windows(queue, b->pool_keys, b->pool_query_in, hidden, mask, m->pad_embed, layers, w, side, pool, ldf, dead, wide);
    vk_linear_run(cpu, b->pool_query, w, b->pool_query_in, ldf, windows, &m->pool_query, VK_STORE_F32);
    vk_linear_run(cpu, b->pool_key_value, 2 * w, b->pool_keys, ldf, windows * n, &m->pool_key_value, VK_STORE_F32);
    e->kernels.pool_attention(queue, b->pool_attended, b->pool_query, b->pool_key_value, windows, n, c->vit_head_count, c->vit_head_dim, ld, wide);
    vk_linear_run(cpu, b->pool_out, ld, b->pool_attended, ld, windows, &m->pool_out, VK_STORE);
    vk_linear_run(cpu, b->projector_gate_up, 2 * c->projector_dim, b->pool_out, ld, windows, &m->projector_gate_up, VK_STORE_F32);
    e->kernels.silu_mul(queue, b->projector_hidden, b->projector_gate_up, windows, c->projector_dim, ldh, wide);
    vk_linear_run(cpu, features, c->d_model, b->projector_hidden, ldh, windows, &m->projector_down, VK_STORE_F32);
}

/* experts of `rows` tokens from x's row `first` on: x += sum of weight * expert(normed) */
static void vk_moe(vp_engine *e, const vk_block *k, int first, int rows, int top_k) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    vk_cpu *cpu = &e->cpu;
    vk_queue *queue = &cpu->queue;
    int d = c->d_model, ld = vk_padded(d), h = c->expert_dim, ldh = vk_padded(h), pairs = rows * top_k, wide = e->wide;
    size_t element = wide ? 4 : 2;
    const char *normed = (const char *)b->normed + (size_t)first * (size_t)ld * element;
    e->kernels.router(queue, b->expert_index, b->expert_weight, b->router_logits + (size_t)first * (size_t)c->expert_count, rows, c->expert_count,
                      top_k);
    e->kernels.moe_lists(queue, b->expert_count, b->expert_start, b->expert_list, b->slot_row, b->expert_index, c->expert_count, pairs);
    e->kernels.gather(queue, b->gathered, normed, b->expert_list, pairs, top_k, (int)((size_t)ld * element));
    for (int i = 0; i < c->expert_count; i++) {
        vk_gemm_job *job = &b->jobs[i];
        size_t start = (size_t)b->expert_start[i];
        job->y = b->gate_up + start * 2 * (size_t)h; job->ldy = 2 * h;
        job->x = (char *)b->gathered + start * (size_t)ld * element; job->ldx = ld;
        job->w = &k->gate_up[i]; job->m = b->expert_count[i];
    }
    vk_gemm_run(cpu, b->jobs, c->expert_count, b->first_task, VK_STORE_F32);
    e->kernels.silu_mul(queue, b->expert_hidden, b->gate_up, pairs, h, ldh, wide);
    for (int i = 0; i < c->expert_count; i++) {
        vk_gemm_job *job = &b->jobs[i];
        size_t start = (size_t)b->expert_start[i];
        job->y = b->expert_out + start * (size_t)d; job->ldy = d;
        job->x = (char *)b->expert_hidden + start * (size_t)ldh * element; job->ldx = ldh;
        job->w = &k->down[i];
    }
    vk_gemm_run(cpu, b->jobs, c->expert_count, b->first_task, VK_STORE_F32);
    e->kernels.combine(queue, b->x + (size_t)first * (size_t)d, b->expert_out, b->slot_row, b->expert_weight, rows, top_k, d);
}

/* one transformer block over `rows` new tokens that start at `position`; x is the residual stream */
static void vk_block_forward(vp_engine *e, int block, int rows, int position, int top_k) {
    const vp_model_config *c = &e->config;
    const vk_block *k = &e->model.blocks[block];
    vk_buffers *b = &e->buffers;
    vk_cpu *cpu = &e->cpu;
    vk_queue *queue = &cpu->queue;
    int d = c->d_model, ld = vk_padded(d), wide = e->wide, chunk = e->moe_rows / top_k;
    size_t element = wide ? 4 : 2, cache = (size_t)block * (size_t)e->max_sequence * (size_t)d * element;
    char *key = (char *)b->key + cache, *value = (char *)b->value + cache;
    e->kernels.rmsnorm(queue, b->normed, b->x, k->attn_norm.weight, rows, d, ld, c->norm_eps, wide);
    vk_linear_run(cpu, b->qkv, 3 * d, b->normed, ld, rows, &k->att_proj, VK_STORE_F32);
    e->kernels.qk_norm_rope(queue, b->q, key, value, b->qkv, k->q_norm.weight, k->k_norm.weight, b->cs, rows, d, c->head_dim, ld, position,
                            c->norm_eps, wide);
    if (rows == 1) {
        e->kernels.attention_decode(queue, b->attended, b->q, key, value, b->decode_scores, position + 1, e->max_sequence, d, c->head_dim, wide);
    } else {
        vk_attention_job job;
        memset(&job, 0, sizeof job);
        job.y = b->attended; job.ldy = ld; job.q = b->q; job.ldq = ld; job.k = key; job.v = value; job.ldk = d;
        job.tokens = rows; job.heads = c->head_count; job.head_dim = c->head_dim; job.causal = 1;
        job.k_panels = b->k_panels; job.v_panels = b->v_panels; job.scores = b->scores; job.weights = b->weights;
        vk_attention_run(cpu, &job);
    }
    vk_linear_run(cpu, b->x, d, b->attended, ld, rows, &k->attn_out, VK_ADD_F32);
    e->kernels.rmsnorm(queue, b->normed, b->x, k->ff_norm.weight, rows, d, ld, c->norm_eps, wide);
    if (!wide) e->kernels.rmsnorm(queue, b->normed_wide, b->x, k->ff_norm.weight, rows, d, ld, c->norm_eps, 1);
    vk_linear_run(cpu, b->router_logits, c->expert_count, b->normed_wide, ld, rows, &k->router, VK_STORE_F32);
    for (int first = 0; first < rows; first += chunk) vk_moe(e, k, first, rows - first < chunk ? rows - first : chunk, top_k);
}
/* logits of the residual row `row` */
static void vk_head(vp_engine *e, int row) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int d = c->d_model, ld = vk_padded(d);
    e->kernels.rmsnorm(&e->cpu.queue, b->normed, b->x + (size_t)row * (size_t)d, e->model.ln_f.weight, 1, d, ld, c->norm_eps, e->wide);
    vk_linear_run(&e->cpu, b->logits, c->embedding_size, b->normed, ld, 1, &e->model.head, VK_STORE_F32);
}

/* ================================================================================================= engine >>engine */

static int vk_threads(int wanted) {
#ifdef _OPENMP
    return wanted > 0 ? wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}
static void vk_name_device(vp_engine *e) {
    char model[96] = "unknown processor", line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        snprintf(model, sizeof model, "%.90s", colon + 2);
        model[strcspn(model, "\n")] = 0;
        break;
    }
    if (f) fclose(f);
    snprintf(e->device, sizeof e->device, "cpu: %s, %d thread%s", model, e->cpu.queue.threads, e->cpu.queue.threads == 1 ? "" : "s");
}

VP_API const char *vp_stage_name(vp_stage stage) {
    static const char *const names[] = {
#define VK_STAGE_NAME(name, text) text,
        VP_STAGES(VK_STAGE_NAME)
#undef VK_STAGE_NAME
    };
    return (int)stage >= 0 && stage < VP_STAGE_COUNT ? names[stage] : "unknown";
}
VP_API vp_engine_options vp_engine_options_default(void) {
    vp_engine_options options;
    memset(&options, 0, sizeof options);
    options.seed = 42;
    options.device = "auto";
    return options;
}
VP_API const char *vp_engine_gemm_name(int32_t index) {
    for (int i = 0; i < VK_GEMM_KERNELS; i++)
        if (vk_gemm_kernels[i].present() && index-- == 0) return vk_gemm_kernels[i].name;
    return NULL;
}
VP_API const char *vp_engine_gemm(const vp_engine *engine, int32_t rows) { return engine->cpu.gemm[engine->wide][vk_shape_of(rows)]->name; }
VP_API const char *vp_engine_device(const vp_engine *engine) { return engine->device; }
VP_API uint64_t vp_engine_bytes(const vp_engine *engine) { return engine->memory_bytes; }

static vp_result vk_check_options(const vp_engine_options *o, vp_error *error) {
    const vp_model_config *c = o->config;
    const char *device = o->device ? o->device : "auto";
    if (strncmp(device, "cuda", 4) == 0)
        return vp_fail(error, VP_ERR_DEVICE, -1, device, "this version has no CUDA backend yet; use --device cpu");
    if (strcmp(device, "auto") && strcmp(device, "cpu")) return vp_fail(error, VP_ERR_RANGE, -1, device, "not a device; use auto or cpu");
    if (!c) return vp_fail(error, VP_ERR_RANGE, -1, "config", "an engine needs a model config");
    if (o->max_sequence < 1 || o->max_views < 0 || o->threads < 0 || o->threads > VK_THREADS_MAX)
        return vp_fail(error, VP_ERR_RANGE, -1, "engine options", "max_sequence must be positive, max_views not negative, threads 0..4096");
    if (c->expert_count > VK_EXPERTS_MAX) return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "moe_num_experts", "at most 1024 experts");
    if ((int64_t)c->vit_head_count * c->geometry.pool * c->geometry.pool > VK_POOL_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "image_num_heads", "too many heads for the pooling kernel (heads * 4 <= 1024)");
    if (c->vit_layer_count < 1 || c->vit_layer_count > VP_VIT_LAYERS_MAX) return vp_fail(error, VP_ERR_RANGE, -1, "vit_layers", "1 to 4 layers");
    return VP_OK;
}
static vp_result vk_allocate(vp_engine *e, vp_error *error) {
    vk_arena arena;
    char text[200];
    memset(&arena, 0, sizeof arena);
    vk_layout_model(&arena, &e->model, &e->config, e->wide);
    e->weights_bytes = arena.used;
    vk_layout_buffers(&arena, e);
    e->memory = (char *)vk_reserve(arena.used);
    if (!e->memory) {
        snprintf(text, sizeof text,
                 "weights need %.2f GB and buffers %.2f GB, %.2f GB are free; %ssmaller: fewer crops, a shorter prompt, fewer new tokens",
                 (double)e->weights_bytes / 1e9, (double)(arena.used - e->weights_bytes) / 1e9, (double)vk_free_bytes() / 1e9,
                 e->wide ? "--weights bf16 halves it; " : "");
        return vp_fail(error, VP_ERR_MEMORY, -1, "engine memory", text);
    }
    e->memory_bytes = arena.used;
    arena.base = e->memory;
    arena.used = 0;
    vk_layout_model(&arena, &e->model, &e->config, e->wide);
    vk_layout_buffers(&arena, e);
    return VP_OK;
}
VP_API vp_result vp_engine_open(const vp_engine_options *options, vp_engine **engine, vp_error *error) {
    vp_result result = vk_check_options(options, error);
    const vp_model_config *c = options->config;
    vp_engine *e;
    vk_loader loader;
    if (result != VP_OK) return result;
    e = (vp_engine *)calloc(1, sizeof *e);
    if (!e) return vp_fail(error, VP_ERR_MEMORY, -1, "engine", "no memory");
    e->config = *c;
    e->wide = options->weights == VP_WEIGHTS_FP32;
    e->cpu.wide = e->wide;
    e->cpu.queue.threads = vk_threads(options->threads);
    e->kernels = vk_cpu_kernels;
    e->max_sequence = options->max_sequence;
    e->max_views = options->max_views;
    e->moe_rows = (int)vk_max(16384, (size_t)c->expert_count);
    if ((int64_t)e->max_sequence * c->expert_count < e->moe_rows) e->moe_rows = e->max_sequence * c->expert_count;
    for (int l = 0; l < c->vit_layer_count; l++) e->vit_layer_at[l] = c->vit_layers[l] < 0 ? c->vit_block_count + c->vit_layers[l] : c->vit_layers[l];
    vk_name_device(e);
    memset(&loader, 0, sizeof loader);
    loader.checkpoint = options->checkpoint; loader.seed = options->seed; loader.wide = e->wide; loader.threads = e->cpu.queue.threads;
    loader.progress = options->progress; loader.progress_user = options->progress_user; loader.error = error;
    result = vk_gemm_choose(&e->cpu, options->gemm && strcmp(options->gemm, "auto") ? options->gemm : NULL, error);
    if (result == VP_OK) result = vk_model_new(&e->model, c, error);
    if (result == VP_OK) result = vk_allocate(e, error);
    if (result == VP_OK) {
        loader.total = (int64_t)e->weights_bytes;
        vk_fill_rope(e->buffers.cs, e->max_sequence, c->head_dim, c->rope_theta);
        result = vk_load_model(&loader, &e->model, c);
    }
    if (result != VP_OK) { vp_engine_close(e); return result; }
    *engine = e;
    return VP_OK;
}
VP_API void vp_engine_close(vp_engine *engine) {
    if (!engine) return;
    vk_model_free(&engine->model);
    vk_release(engine->memory, engine->memory_bytes);
    free(engine);
}

static vp_result vk_check_request(const vp_engine *e, const vp_request *r, vp_error *error) {
    const vp_model_config *c = &e->config;
    int64_t index_count = (int64_t)r->views * vp_geometry_tokens_per_crop(&c->geometry);
    char text[160];
    if (r->input_count < 1 || r->max_new_tokens < 1)
        return vp_fail(error, VP_ERR_RANGE, -1, "request", "needs at least one input token and one new token");
    if ((int64_t)r->input_count + r->max_new_tokens - 1 > e->max_sequence) {
        snprintf(text, sizeof text, "%d input tokens and %d new ones do not fit the %d positions this engine was opened for", r->input_count,
                 r->max_new_tokens, e->max_sequence);
        return vp_fail(error, VP_ERR_RANGE, -1, "request", text);
    }
    if (r->views < 0 || r->views > e->max_views)
        return vp_fail(error, VP_ERR_RANGE, -1, "request views", "more views than this engine was opened for");
    if (r->views && (!r->pixels || !r->image_masks || !r->image_input_idx))
        return vp_fail(error, VP_ERR_RANGE, -1, "request", "an image needs pixels, image_masks and image_input_idx");
    if (r->top_k < 1 || r->top_k > c->expert_count) {
        snprintf(text, sizeof text, "is %d; this model has %d experts", r->top_k, c->expert_count);
        return vp_fail(error, VP_ERR_RANGE, -1, "top_k", text);
    }
    if (r->active_block_count < 1) return vp_fail(error, VP_ERR_RANGE, -1, "active_blocks", "at least one block must be active");
    for (int i = 0; i < r->active_block_count; i++)
        if (r->active_blocks[i] < 0 || r->active_blocks[i] >= c->block_count || (i && r->active_blocks[i] <= r->active_blocks[i - 1]))
            return vp_fail(error, VP_ERR_RANGE, i, "active_blocks", "must be ascending block numbers of this model");
    for (int i = 0; i < r->input_count; i++)
        if (r->input_ids[i] < 0 || r->input_ids[i] >= c->embedding_size + c->additional_vocab_size)
            return vp_fail(error, VP_ERR_RANGE, i, "input_ids", "a token id without an embedding");
    for (int64_t i = 0; i < index_count; i++)
        if (r->image_input_idx[i] >= r->input_count)
            return vp_fail(error, VP_ERR_RANGE, i, "image_input_idx", "a position behind the end of the sequence");
    return VP_OK;
}
static void vk_dump_vision(const vp_engine *e, const vp_request *r) {
    const vp_model_config *c = &e->config;
    size_t w = (size_t)c->vit_width, layers = (size_t)c->vit_layer_count, patches = (size_t)c->vit_positions - 1,
           windows = (size_t)vp_geometry_tokens_per_crop(&c->geometry);
    if (r->dump->image_features)
        memcpy(r->dump->image_features, e->buffers.image_features, (size_t)r->views * windows * (size_t)c->d_model * sizeof(float));
    if (!r->dump->vit_features) return;
    for (size_t v = 0; v < (size_t)r->views; v++)
        for (size_t l = 0; l < layers; l++)
            for (size_t p = 0; p < patches; p++)
                memcpy(r->dump->vit_features + ((v * patches + p) * layers + l) * w,
                       e->buffers.hidden + ((v * layers + l) * (patches + 1) + p + 1) * w, w * sizeof(float));
}
static void vk_dump_block(const vp_engine *e, const vp_request *r, int slot) {
    int d = e->config.d_model, rows = r->input_count;
    const float *last = e->buffers.x + (size_t)(rows - 1) * (size_t)d;
    if (r->dump->block_last) memcpy(r->dump->block_last + (size_t)slot * (size_t)d, last, (size_t)d * sizeof(float));
    for (int i = 0; r->dump->block_mean && i < d; i++) {
        double sum = 0.0;
        for (int row = 0; row < rows; row++) sum += (double)e->buffers.x[(size_t)row * (size_t)d + (size_t)i];
        r->dump->block_mean[(size_t)slot * (size_t)d + (size_t)i] = (float)(sum / rows);
    }
}
/* ends a stage: its wall time runs from *since to now */
static void vk_end_stage(vp_reply *reply, vp_stage stage, int64_t *since) {
    int64_t now = vp_clock_ns();
    reply->times.wall_ns[stage] = now - *since;
    reply->times.ran[stage] = 1;
    *since = now;
}
/* the next token, or -1 when there is none to choose: a logit that is NaN comes from damaged weights or inputs */
static int32_t vk_sample(vp_engine *e) {
    int32_t token;
    e->kernels.argmax(&e->cpu.queue, e->buffers.token, e->buffers.logits, 1, e->config.embedding_size);
    token = e->buffers.token[0];
    return isnan(e->buffers.logits[token]) ? -1 : token;
}
static vp_result vk_not_numbers(vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, -1, "logits", "are not numbers: the weights or the pixels hold NaN or infinity, or overflow on the way");
}
static void vk_keep_logits(const vp_engine *e, const vp_request *r, int step) {
    size_t n = (size_t)e->config.embedding_size;
    if (r->dump && r->dump->logits) memcpy(r->dump->logits + (size_t)step * n, e->buffers.logits, n * sizeof(float));
}
static void vk_prefill(vp_engine *e, const vp_request *r, vp_reply *reply, int64_t *since) {
    const vp_model_config *c = &e->config;
    vk_buffers *b = &e->buffers;
    int windows = vp_geometry_tokens_per_crop(&c->geometry);
    size_t view_floats = (size_t)(c->vit_positions - 1) * (size_t)(c->geometry.patch_px * c->geometry.patch_px * 3);
    if (r->views) {
        for (int v = 0; v < r->views; v++) vk_vit_view(e, r->pixels + (size_t)v * view_floats, v);
        vk_end_stage(reply, VP_STAGE_VIT, since);
        for (int v = 0; v < r->views; v++)
            vk_connector_view(e, r->pixels + (size_t)v * view_floats, r->image_masks + (size_t)v * (size_t)(c->vit_positions - 1), v);
        vk_end_stage(reply, VP_STAGE_CONNECTOR, since);
        if (r->dump) vk_dump_vision(e, r);
    }
    e->kernels.embed(&e->cpu.queue, b->x, e->model.embedding, b->ids, r->input_count, c->d_model, e->wide);
    if (r->views) e->kernels.scatter_add(&e->cpu.queue, b->x, b->image_features, b->image_index, r->views * windows, c->d_model);
    vk_end_stage(reply, VP_STAGE_EMBED, since);
    for (int i = 0; i < r->active_block_count; i++) {
        vk_block_forward(e, r->active_blocks[i], r->input_count, 0, r->top_k);
        if (r->dump) vk_dump_block(e, r, i);
    }
    vk_end_stage(reply, VP_STAGE_PREFILL, since);
    vk_head(e, r->input_count - 1);
    vk_end_stage(reply, VP_STAGE_HEAD, since);
}
VP_API vp_result vp_engine_run(vp_engine *engine, const vp_request *request, vp_reply *reply, vp_error *error) {
    vp_engine *e = engine;
    const vp_request *r = request;
    vk_buffers *b = &e->buffers;
    int64_t since = vp_clock_ns();
    vp_result result = vk_check_request(e, r, error);
    if (result != VP_OK) return result;
    memset(&reply->times, 0, sizeof reply->times);
    memcpy(b->ids, r->input_ids, (size_t)r->input_count * sizeof(int32_t));
    if (r->views)
        memcpy(b->image_index, r->image_input_idx, (size_t)r->views * (size_t)vp_geometry_tokens_per_crop(&e->config.geometry) * sizeof(int32_t));
    vk_end_stage(reply, VP_STAGE_H2D, &since);
    vk_prefill(e, r, reply, &since);
    reply->tokens[0] = vk_sample(e);
    reply->token_count = 1;
    vk_keep_logits(e, r, 0);
    if (reply->tokens[0] < 0) return vk_not_numbers(error);
    vk_end_stage(reply, VP_STAGE_SAMPLE, &since);
    while (reply->token_count < r->max_new_tokens && (r->ignore_eos || reply->tokens[reply->token_count - 1] != r->eos_id)) {
        int step = reply->token_count;
        int64_t start = vp_clock_ns();
        b->ids[0] = reply->tokens[step - 1];
        e->kernels.embed(&e->cpu.queue, b->x, e->model.embedding, b->ids, 1, e->config.d_model, e->wide);
        for (int i = 0; i < r->active_block_count; i++) vk_block_forward(e, r->active_blocks[i], 1, r->input_count + step - 1, r->top_k);
        vk_head(e, 0);
        reply->tokens[step] = vk_sample(e);
        vk_keep_logits(e, r, step);
        if (reply->tokens[step] < 0) return vk_not_numbers(error);
        reply->token_count = step + 1;
        reply->step_ns[step - 1] = vp_clock_ns() - start;
    }
    if (reply->token_count > 1) vk_end_stage(reply, VP_STAGE_DECODE, &since);
    reply->ended_by_eos = !r->ignore_eos && reply->tokens[reply->token_count - 1] == r->eos_id;
    return VP_OK;
}

#ifdef __cplusplus
}
#endif
#endif /* !__CUDACC__ */
