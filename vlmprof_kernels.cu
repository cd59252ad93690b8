/* vlmprof_kernels.cu - the kernels of vlmprof and the two devices that run them - MIT
 *
 * One source, three targets, all with -I. -Iparts:
 *   CPU backend              cc -x c -std=c11 -O3 -fopenmp -c vlmprof_kernels.cu        (also compiles as C++17)
 *   GPU backend              nvcc -std=c++17 -O3 -arch=sm_90 -c vlmprof_kernels.cu -o vlmprof_cuda.o
 *   the same, without a GPU  g++ -x c++ -std=c++17 -include tests/emulator/cuda_on_cpu.h -c vlmprof_kernels.cu
 * The engine (parts/engine) calls a backend through one table of functions (parts/engine/backend.h), which
 * vk_cpu_code() or vk_gpu_code() returns. vk_gpu_code is a weak symbol, found if vlmprof_cuda.o is linked.
 *
 * Shared kernels are written once. One rule makes this work: A KERNEL BODY IS CORRECT FOR ANY NUMBER OF THREADS IN A
 * BLOCK, INCLUDING 1. The CPU build is the case of 1 thread, where a block is one iteration of an OpenMP loop. Kernels
 * that cannot be shared (GEMM, attention over many queries, single rows of experts) have one body per target.
 *
 * Sections: >>targets >>kernels >>launchers >>backend | GPU: >>tiles >>cuda >>decode | CPU: >>gemm >>attention >>cpu
 *
 * Numerics. bf16 mode: weights and the inputs of every linear are bf16 (round to nearest even); products are summed
 * in fp32; residual streams, norms, softmax and logits are fp32. fp32 mode: everything is fp32. Linears with weights
 * of 8 or 4 bits also round their inputs to integers (kernels/cpu/quant_rows.h, quant_bytes.h). The compute type
 * is bf16 or f32, depending on the mode; arrays of it are called "in-type". Their rows are padded with zeros to a
 * multiple of VK_PAD elements, so GEMM kernels need no special case for the end of k. */
#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1 /* mmap's flags and syscall under -std=c11 */
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/backend.h"
#include "vlmprof_engine.h"

enum {
    VK_BLOCK_MAX = 256, /* threads per block of most kernels */
    /* loops with less work than this run on one thread */
    VK_PARALLEL_BYTES = 131072, VK_PARALLEL_PRODUCTS = 1 << 21,
    VK_TEAM_PRODUCTS = 1 << 14 /* the same, if threads already wait for work: kernels/cpu/team.h */
};

#if defined(__CUDACC__) || defined(CUDA_ON_CPU)
#define VK_CUDA 1
#endif

/* ================================================================================================ targets >>targets
 * name                 GPU                                  CPU
 * KERNEL / LAUNCH      __global__ / <<<blocks, threads>>>   static function / OpenMP loop over blocks. `flops` and
 *                                                           `bytes` are the counts that the arithmetic needs; the
 *                                                           CPU also decides by them whether to wake threads
 * BLK TID NTID         blockIdx.x threadIdx.x blockDim.x    the block's index, 0, 1
 * EACH(i, n)           block-stride loop                    SIMD loop
 * EACH_OUTER           the same, for bodies with a loop     plain loop
 * EACH_SUM, EACH_MAX   the same, one value per thread       SIMD reduction
 * EACH_WARP            warps over rows                      plain loop
 * EACH_LANE_SUM        a warp's lanes over elements         SIMD reduction
 * block_sum block_max block_scan warp_sum                   identity (scan: 0, total = v)
 * SHARED SYNC          __shared__ __syncthreads()           automatic array, nothing */
/* the shape of the next operation, as in vp_launch, outermost dimension first; 0 for unused dimensions */
static void vk_shape(vk_queue *queue, int64_t size0, int64_t size1, int64_t size2, int64_t size3) {
    int64_t shape[4] = {size0, size1, size2, size3};
    for (int i = 0; i < 4; i++) queue->next.shape[i] = (int32_t)(shape[i] < INT32_MAX ? shape[i] : INT32_MAX);
}
static void vk_grid(vk_queue *queue, const void *kernel, int64_t blocks, int threads, int64_t shared_bytes) {
    queue->next.kernel = kernel;
    queue->next.grid = (uint32_t)blocks;
    queue->next.threads = (uint32_t)threads;
    queue->next.shared_bytes = (uint32_t)shared_bytes;
}
/* Takes the time before (end 0) or after (end 1) launch `index` of the log. A GPU records an event instead, which
 * vk_backend.read_log reads later. */
#ifdef VK_CUDA
static void vk_stamp_launch(vk_queue *queue, int64_t index, int end); /* >>cuda */
static void vk_stamp_node(vk_queue *queue, int64_t index); /* launch `index` is a node of the graph just sent */
#else
static void vk_stamp_launch(vk_queue *queue, int64_t index, int end) {
    int64_t now = vp_clock_ns();
    vp_launch *launch = &queue->log[index];
    queue->stamps++;
    if (end) launch->ns = now - launch->begin_ns;
    else launch->begin_ns = now;
}
#endif
/* a source location: this file, or one of kernels/ that it includes */
#define VK_HERE __FILE__, __LINE__
static const char *vk_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
static void vk_log_begin(vk_queue *queue, const char *name, int64_t flops, int64_t bytes, const char *file, int line) {
    const vk_next *next = &queue->next;
    int64_t index = queue->log_count++;
    if (index >= queue->log_capacity) return;
    vp_launch *launch = &queue->log[index];
    memset(launch, 0, sizeof *launch);
    launch->name = name;
    launch->stage = VP_STAGE_DECODE; /* changed if another stage ends */
    launch->step = queue->step;
    launch->part = queue->part;
    launch->block = queue->block;
    launch->kind = next->kind;
    launch->file = vk_file_name(file);
    launch->line = line;
    for (int i = 0; i < 4 && next->shape[i]; i++) launch->shape[launch->dimensions++] = next->shape[i];
    launch->grid = next->grid;
    launch->threads = next->threads;
    launch->shared_bytes = next->shared_bytes;
    launch->flops = (uint64_t)flops;
    launch->bytes = (uint64_t)bytes;
    if (!queue->dry) vk_stamp_launch(queue, index, 0);
#ifdef VK_CUDA
    else if (queue->traced) vk_stamp_node(queue, index);
#endif
}
/* Called before each operation. Counts it and returns 1 if it is to be sent. */
#define vk_begin(queue, name, flops, bytes) vk_begin_at(queue, name, flops, bytes, VK_HERE)
static int vk_begin_at(vk_queue *queue, const char *name, int64_t flops, int64_t bytes, const char *file, int line) {
    if (!queue->error) {
        queue->work.launches++;
        queue->work.flops += flops;
        queue->work.bytes += bytes;
        queue->last_sent = name;
        if (queue->first_sent) *queue->first_sent = name;
        queue->first_sent = NULL;
        if (queue->log) vk_log_begin(queue, name, flops, bytes, file, line);
    }
    memset(&queue->next, 0, sizeof queue->next);
    return !queue->error && !queue->dry;
}
/* Called after the operation was sent. */
static void vk_end(vk_queue *queue) {
    if (queue->log && queue->log_count <= queue->log_capacity) vk_stamp_launch(queue, queue->log_count - 1, 1);
}
/* threads per block for loops over `count` elements */
static int vk_threads_for(int count) {
    return count >= VK_BLOCK_MAX ? VK_BLOCK_MAX : count <= 32 ? 32 : (count + 31) / 32 * 32;
}

#ifdef VK_CUDA
#ifndef CUDA_ON_CPU /* tests/emulator/cuda_on_cpu.h defines all of these names itself */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#define CUDA_LAUNCH(name, blocks, threads, shared_bytes, stream, ...) \
    name<<<blocks, threads, shared_bytes, stream>>>(__VA_ARGS__)
/* the clock of launch records; an emulated device replaces it with its own */
#define VK_HOST_CLOCK() vp_clock_ns()
#define CUDA_LAUNCH_DEPENDENT(name, blocks, threads, shared_bytes, stream, ...) \
    vk_launch_dependent(name, blocks, threads, shared_bytes, stream, __VA_ARGS__)
#define CUDA_DYNAMIC_SHARED(type, name) \
    extern __shared__ __align__(128) unsigned char vk_shared[]; \
    type *name = (type *)vk_shared
#endif
#include <stdio.h>
#include <stdlib.h>
#define KERNEL(name, ...) static __global__ void name(__VA_ARGS__)
/* a kernel for exactly this many threads; its registers are limited so that `resident` blocks fit a multiprocessor */
#define KERNEL_OF(threads, resident, name, ...) \
    static __global__ void __launch_bounds__(threads, resident) name(__VA_ARGS__)
#define LAUNCH(name, blocks, threads, flops, bytes, ...) \
    LAUNCH_SHARED(name, blocks, threads, 0, flops, bytes, __VA_ARGS__)
/* a launch with dynamic shared memory; GPU only */
#define LAUNCH_SHARED(name, blocks, threads, shared, flops, bytes, ...) \
    do { \
        vk_grid(queue, (const void *)name, (int64_t)(blocks), (int)(threads), (int64_t)(shared)); \
        if (vk_begin(queue, #name, (int64_t)(flops), (int64_t)(bytes))) { \
            CUDA_LAUNCH(name, (unsigned)(blocks), (unsigned)(threads), (size_t)(shared), (cudaStream_t)queue->stream, \
                        __VA_ARGS__); \
            vk_cuda_check(queue, cudaGetLastError(), #name, VK_HERE); \
            vk_end(queue); \
        } \
    } while (0)
/* keeps the first failure */
static int vk_cuda_check(vk_queue *queue, cudaError_t status, const char *what, const char *file, int line) {
    if (status != cudaSuccess) cudaGetLastError(); /* the queue reports it; the next engine starts without an error */
    if (status != cudaSuccess && !queue->error) {
        queue->error = (int)status;
        queue->error_at = what;
        queue->file = vk_file_name(file);
        queue->line = line;
    }
    return status == cudaSuccess;
}
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
#ifdef CUDA_ON_CPU /* most launches then exchange the same values in fewer meetings of a warp */
#define VK_AT_ONCE(call) if (CUDA_ON_CPU_AT_ONCE) return call
#else
#define VK_AT_ONCE(call)
#endif
FN float warp_sum(float value) {
    VK_AT_ONCE(cuda_on_cpu_sum(value, 16));
    for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
    return value;
}
FN float warp_max(float value) {
    VK_AT_ONCE(cuda_on_cpu_max(value, 16));
    for (int o = 16; o; o >>= 1) value = fmaxf(value, __shfl_xor_sync(~0u, value, o));
    return value;
}
FN float block_reduce(float value, int is_max) {
    __shared__ float part[33];
    int warp = TID >> 5, warps = (NTID + 31) >> 5;
    value = is_max ? warp_max(value) : warp_sum(value);
    SYNC();
    if (LANE0) part[warp] = value;
    SYNC();
    if (warp == 0) {
        float whole = TID < warps ? part[TID] : (is_max ? -INFINITY : 0.0f);
        whole = is_max ? warp_max(whole) : warp_sum(whole);
        if (TID == 0) part[32] = whole;
    }
    SYNC();
    return part[32];
}
FN float block_sum(float value) { return block_reduce(value, 0); }
FN float block_max(float value) { return block_reduce(value, 1); }
/* exclusive scan of `value` over the block's threads; *total gets the block's sum */
FN int block_scan(int value, int *total) {
    __shared__ int sums[1024];
    SYNC();
    sums[TID] = value;
    SYNC();
    for (int o = 1; o < NTID; o <<= 1) {
        int before = TID >= o ? sums[TID - o] : 0;
        SYNC();
        sums[TID] += before;
        SYNC();
    }
    *total = sums[NTID - 1];
    return sums[TID] - value;
}
FN float vk_exp(float x) { return expf(x); }
/* within 2 ulp, without the branches of an IEEE division; 0 for divisors of 2^126 and above */
FN float vk_divide(float x, float y) { return __fdividef(x, y); }
FN float vk_b2f(uint16_t bits) { return __uint_as_float((unsigned)bits << 16); }
FN uint16_t vk_f2b(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
/* Tensor cores, for kernels whose blocks have a fixed number of threads. Fragments are those of mma.sync.m16n8k16: 4
 * words of A, 2 of B and 4 floats of C per lane. An ldmatrix x4 reads four 8 x 8 matrices of bf16; row l % 8 of
 * matrix l / 8 is at lane l's address. */
#ifdef CUDA_ON_CPU
#define VK_UNROLL
#define VK_ROLLED
#define vk_ldmatrix cuda_on_cpu_ldmatrix_x4_each
#define vk_mma cuda_on_cpu_mma_bf16_each
#define vk_copy_async cuda_on_cpu_cp_async16
#define vk_copy_commit cuda_on_cpu_cp_async_commit
#define vk_copy_wait cuda_on_cpu_cp_async_wait
FN float vk_exp2(float x) { return exp2f(x); }
FN uint32_t vk_pack2(float low, float high) { return vk_f2b(low) | (uint32_t)vk_f2b(high) << 16; }
#else
#define VK_UNROLL _Pragma("unroll")
#define VK_ROLLED _Pragma("unroll 1")
/* `count` times ldmatrix x4; their rows are step_bytes apart */
FN void vk_ldmatrix(uint32_t *r, const void *row, int step_bytes, int count, int transposed) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    VK_UNROLL for (int i = 0; i < count; i++, r += 4, at += (unsigned)step_bytes) {
        if (transposed)
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
        else
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    }
}
/* c[i] += a b[2 i, 2 i + 1] */
FN void vk_mma(float (*c)[4], const uint32_t *a, const uint32_t *b, int count) {
    VK_UNROLL for (int i = 0; i < count; i++) asm(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" :
        "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
        "r"(b[2 * i]), "r"(b[2 * i + 1]));
}
/* starts to copy 16 bytes from device to shared memory; a thread's copies up to a commit form a group */
FN void vk_copy_async(void *shared_to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"((unsigned)__cvta_generic_to_shared(shared_to)),
                 "l"(from)
                 : "memory");
}
FN void vk_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* waits until at most `groups` (a constant) of this thread's groups are in flight */
#define vk_copy_wait(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
/* within 2 ulp; results below 2^-126 are 0 */
FN float vk_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN uint32_t vk_pack2(float low, float high) {
    uint32_t u;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
    return u;
}
#endif
#else
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#endif
#include "engine/host_loops.h"
#ifdef VK_X86
#include <immintrin.h>
#if !defined(__clang__) && defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wuninitialized" /* g++ 12 warns about its own avx512fintrin.h */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#elif defined(VK_NEON)
#include <arm_neon.h>
#ifdef VK_NEON_BF16
#include <sys/auxv.h>
#endif
#if defined(VK_NEON_BF16) || defined(__ARM_FEATURE_DOTPROD)
#define VK_NEON_DOT 1
#endif
#endif
static int64_t vk_span_begin(const vk_queue *queue);
static void vk_span_end(const vk_queue *queue, int64_t since);
#include "kernels/cpu/team.h"
#define KERNEL(name, ...) static VK_CLONES void name(size_t vk_block_now, __VA_ARGS__)
#define LAUNCH(name, blocks, threads_a_block, flops, bytes, ...) \
    do { \
        int64_t vk_blocks = (int64_t)(blocks), vk_effort = (int64_t)(flops) + (int64_t)(bytes); \
        (void)(threads_a_block); \
        (void)vk_effort; \
        vk_grid(queue, NULL, vk_blocks, 1, 0); \
        if (!vk_begin(queue, #name, (int64_t)(flops), (int64_t)(bytes))) break; \
        VK_PRAGMA(omp parallel num_threads(queue->threads) if (vk_alone() && vk_blocks > 1 \
                                                               && vk_effort > VK_PARALLEL_BYTES)) { \
            int64_t vk_since = vk_span_begin(queue); \
            VK_PRAGMA(omp for schedule(static) nowait) \
            for (int64_t vk_b = 0; vk_b < vk_blocks; vk_b++) name((size_t)vk_b, __VA_ARGS__); \
            vk_span_end(queue, vk_since); \
        } \
        vk_end(queue); \
    } while (0)
/* vk_span_begin and vk_span_end enclose each thread's work in a parallel loop. If spans are requested, they record a
 * span of the open launch. A loop run by one thread has no span, because its launch has the same times. */
static int64_t vk_span_begin(const vk_queue *queue) { return queue->spans ? vp_clock_ns() : 0; }
static void vk_span_end(const vk_queue *queue, int64_t since) {
#ifdef _OPENMP
    vk_spans *spans = queue->spans;
    int64_t index;
    if (!spans || !vk_team_shared()) return;
    VK_PRAGMA(omp atomic capture)
    index = spans->count++;
    if (index >= spans->capacity) return;
    vp_span *span = &spans->span[index];
    span->launch = queue->log_count - 1;
    span->thread = omp_get_thread_num();
    span->begin_ns = since;
    span->ns = vp_clock_ns() - since;
#else
    (void)queue;
    (void)since;
#endif
}
#define FN static inline
#define BLK vk_block_now
#define TID 0
#define NTID 1
#define EACH(i, n) VK_SIMD for (int i = 0; i < (n); i++)
#define EACH_SUM(i, n, s) VK_PRAGMA(omp simd reduction(+ : s)) for (int i = 0; i < (n); i++)
#ifdef __clang__
/* clang does not vectorise a float maximum without fast-math */
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
FN float warp_sum(float value) { return value; }
FN float block_sum(float value) { return value; }
FN float block_max(float value) { return value; }
FN int block_scan(int value, int *total) { *total = value; return 0; }
FN float vk_divide(float x, float y) { return x / y; }
FN float vk_b2f(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, 4);
    return value;
}
/* e^x within 2 ulp. There is no branch and no fminf (GCC keeps its NaN rules as a call), so loops that call it
 * become SIMD code without libmvec or -ffast-math. Adding 1.5 * 2^23 rounds t to an integer, which is then in the
 * low bits. Polynomial: Cephes expf. */
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

/* element `index` of an in-type array. `wide` is constant during a loop, so compilers move the branch out of it */
FN float vk_get(const void *array, size_t index, int wide) {
    return wide ? ((const float *)array)[index] : vk_b2f(((const uint16_t *)array)[index]);
}
FN void vk_put(void *array, size_t index, float value, int wide) {
    if (wide) ((float *)array)[index] = value;
    else ((uint16_t *)array)[index] = vk_f2b(value);
}
FN float vk_silu(float value) { return vk_divide(value, 1.0f + vk_exp(-value)); }
FN float vk_quickgelu(float value) { return vk_divide(value, 1.0f + vk_exp(-1.702f * value)); }
/* x times the normal distribution function of x, within 1.5e-7 (Abramowitz and Stegun, 7.1.26) */
FN float vk_gelu(float value) {
    float z = (value < 0.0f ? -value : value) * 0.707106781f, t = vk_divide(1.0f, 1.0f + 0.3275911f * z), share;
    share = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
    share *= 0.5f * vk_exp(-z * z);
    return value * (value < 0.0f ? share : 1.0f - share);
}
/* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), with tanh(u) = 2 / (1 + exp(-2 u)) - 1 */
FN float vk_gelu_tanh(float value) {
    return vk_divide(value, 1.0f + vk_exp(-1.59576912f * value * (1.0f + 0.044715f * value * value)));
}

/* ================================================================================================ kernels >>kernels
 * d, width: width of a row; ld: padded row length of an in-type buffer. One block per row unless stated.
 * Launchers follow their kernels in kernels/shared/; those of the kernels here are in >>launchers. Each has a row in
 * VK_KERNELS (parts/engine/backend.h). A kernel for only one target is in that target's folder and is reached through a
 * function of vk_backend or vk_decode_kernels. */

#ifndef VK_CUDA /* the GPU's body: kernels/gpu/rows.h */
/* out in-type [rows, ld_out] = weight * in / rms(in); in f32 [rows, width] */
KERNEL(k_rmsnorm, void *out, const float *in, const float *weight, int width, int ld_out, float eps, int wide) {
    const float *row = in + BLK * (size_t)width;
    size_t to = BLK * (size_t)ld_out;
    float s = 0.0f, scale;
    EACH_SUM(i, width, s) s += row[i] * row[i];
    scale = 1.0f / sqrtf(block_sum(s) / (float)width + eps);
    EACH(i, width) vk_put(out, to + (size_t)i, weight[i] * (row[i] * scale), wide);
}

/* out (input type) [rows, ld_out] = layer norm of `in` (f32) [rows, width] with weight and bias */
KERNEL(k_layernorm, void *out, const float *in, const float *weight, const float *bias, int width, int ld_out,
       float eps, int wide) {
    const float *row = in + BLK * (size_t)width;
    size_t to = BLK * (size_t)ld_out;
    float s = 0.0f, q = 0.0f, mean, scale;
    EACH_SUM(i, width, s) s += row[i];
    mean = block_sum(s) / (float)width;
    EACH_SUM(i, width, q) q += (row[i] - mean) * (row[i] - mean);
    scale = 1.0f / sqrtf(block_sum(q) / (float)width + eps);
    EACH(i, width) vk_put(out, to + (size_t)i, (row[i] - mean) * scale * weight[i] + bias[i], wide);
}
#endif

/* in f32 [rows, width] -> out in-type [rows, ld_out] */
KERNEL(k_convert, void *out, const float *in, int width, int ld_out, int wide) {
    EACH(i, width) vk_put(out, BLK * (size_t)ld_out + (size_t)i, in[BLK * (size_t)width + (size_t)i], wide);
}

/* One row of ViT input: class embedding (if not NULL) or patch row, plus its position embedding. patches f32 [views,
 * count - 1, width], or [views, count, width] without a class -> out f32 [views, count, width] */
KERNEL(k_vit_embed, float *out, const float *patches, const float *class_embedding, const float *positions, int count,
       int width) {
    size_t view = BLK / (size_t)count, at = BLK % (size_t)count, before = class_embedding != NULL;
    const float *patch =
        at >= before ? patches + (view * ((size_t)count - before) + at - before) * (size_t)width : class_embedding;
    const float *position = positions + at * (size_t)width;
    float *row = out + BLK * (size_t)width;
    EACH(i, width) row[i] = patch[i] + position[i];
}

/* One pooling window of pool x pool patches, from `layers` saved hidden states, `layer_floats` apart, each f32
 * [views, patches + 1, width] (row 0 is the class token), side by side. Adds pad_embed f32 [2, layers * width]: [0]
 * if the patch is all padding (mask 0), [1] if it is partly padding or the mask is -1; mask f32 [views, patches].
 * keys in-type [views * windows * pool * pool, ld]; query in-type [views * windows, ld] = their mean. dead int32
 * [views]: not 0 if the view has no picture; its features are then 0. */
KERNEL(k_pool_windows, void *keys, void *query, const float *hidden, const float *mask, const int32_t *dead,
       const float *pad_embed, size_t layer_floats, int layers, int width, int side, int pool, int ld, int wide) {
    int across = side / pool, patches = pool * pool, view = (int)BLK / (across * across),
        window = (int)BLK % (across * across), wy = window / across * pool, wx = window % across * pool,
        gone = dead[view];
    const float *states = hidden + (size_t)view * (size_t)(side * side + 1) * (size_t)width,
                *masks = mask + (size_t)view * (size_t)(side * side);
    for (int l = 0; l < layers; l++) {
        const float *all = pad_embed + l * width, *partly = pad_embed + (layers + l) * width;
#ifdef VK_CUDA
        EACH_OUTER(i, width) {
            float sum = 0.0f;
            for (int j = 0; j < patches; j++) {
                int patch = (wy + j / pool) * side + wx + j % pool;
                float value = gone ? 0.0f
                                   : states[(size_t)l * layer_floats + (size_t)(patch + 1) * (size_t)width + (size_t)i],
                      covered = masks[patch];
                value += covered == 0.0f ? all[i] : 0.0f;
                value += (covered > 0.0f) & (covered < 1.0f) || covered == -1.0f ? partly[i] : 0.0f;
                sum += value;
                vk_put(keys, (BLK * (size_t)patches + (size_t)j) * (size_t)ld + (size_t)(l * width + i), value, wide);
            }
            vk_put(query, BLK * (size_t)ld + (size_t)(l * width + i), sum / (float)patches, wide);
        }
#else
        enum { STRIP = 256 }; /* columns whose sums stay in the cache while the patches pass row by row */
        for (int from = 0; from < width; from += STRIP) {
            float sums[STRIP] = {0.0f};
            int count = width - from < STRIP ? width - from : STRIP;
            for (int j = 0; j < patches; j++) {
                int patch = (wy + j / pool) * side + wx + j % pool;
                const float *state = states + (size_t)l * layer_floats + (size_t)(patch + 1) * (size_t)width;
                float covered = masks[patch], there = gone ? 0.0f : 1.0f, none = covered == 0.0f ? 1.0f : 0.0f,
                      some = (covered > 0.0f && covered < 1.0f) || covered == -1.0f ? 1.0f : 0.0f;
                size_t to = (BLK * (size_t)patches + (size_t)j) * (size_t)ld + (size_t)(l * width + from);
                EACH(i, count) {
                    float value = there > 0.0f ? state[from + i] : 0.0f;
                    value += none > 0.0f ? all[from + i] : 0.0f;
                    value += some > 0.0f ? partly[from + i] : 0.0f;
                    sums[i] += value;
                    vk_put(keys, to + (size_t)i, value, wide);
                }
            }
            EACH(i, count)
            vk_put(query, BLK * (size_t)ld + (size_t)(l * width + from + i), sums[i] / (float)patches, wide);
        }
#endif
    }
}

/* Attention of one query over the keys of its window: q f32 [windows, width], kv f32 [windows * keys, 2 * width]
 * (keys, then values) -> out in-type [windows, ld_out]. places: NULL, or int32 [windows, keys], negative for no key */
KERNEL(k_pool_attention, void *out, const float *q, const float *kv, const int32_t *places, int keys, int heads,
       int head_dim, int ld_out, float scale, int wide) {
    SHARED float weights[VK_POOL_MAX];
    int width = heads * head_dim;
    const float *queries = q + BLK * (size_t)width, *key_rows = kv + BLK * (size_t)keys * 2 * (size_t)width;
    EACH_WARP(hj, heads * keys) {
        const float *query = queries + hj / keys * head_dim,
                    *key = key_rows + (size_t)(hj % keys) * 2 * (size_t)width + hj / keys * head_dim;
        float s = 0.0f;
        EACH_LANE_SUM(i, head_dim, s) s += query[i] * key[i];
        s = warp_sum(s);
        if (LANE0) weights[hj] = places && places[BLK * (size_t)keys + (size_t)(hj % keys)] < 0 ? -3e38f : s * scale;
    }
    SYNC();
    for (int h = TID; h < heads; h += NTID) {
        float most = -INFINITY, s = 0.0f;
        for (int j = 0; j < keys; j++) most = weights[h * keys + j] > most ? weights[h * keys + j] : most;
        for (int j = 0; j < keys; j++) {
            weights[h * keys + j] = vk_exp(weights[h * keys + j] - most);
            s += weights[h * keys + j];
        }
        for (int j = 0; j < keys; j++) weights[h * keys + j] /= s;
    }
    SYNC();
    for (int h = 0; h < heads; h++) {
        EACH_OUTER(i, head_dim) {
            float s = 0.0f;
            for (int j = 0; j < keys; j++)
                s += weights[h * keys + j]
                     * key_rows[(size_t)j * 2 * (size_t)width + (size_t)(width + h * head_dim + i)];
            vk_put(out, BLK * (size_t)ld_out + (size_t)(h * head_dim + i), s, wide);
        }
    }
}

/* out in-type [rows, ld_out] = silu or tanh GELU of gate, times up; gate and up: f32 [rows, 2 * width] */
KERNEL(k_gate_mul, void *out, const float *gate_up, int width, int ld_out, int gelu, int wide) {
    const float *gate = gate_up + BLK * 2 * (size_t)width, *up = gate + width;
    EACH(i, width)
    vk_put(out, BLK * (size_t)ld_out + (size_t)i, (gelu ? vk_gelu_tanh(gate[i]) : vk_silu(gate[i])) * up[i], wide);
}

/* out f32 [tokens, width] = embedding rows. k_argmax returns a negative id for NaN logits; its row is 0. The step after
 * such a token may already be running before the host knows of it. */
FN void vk_embed_row(float *to, const vk_table *from_table, int id, int width, int wide) {
    const vk_table table = *from_table;
    int row = id < 0 ? 0 : id, in_panel = row % VK_PAD, word = wide ? 1 : 2; /* elements per word */
    size_t from = (size_t)(table.panels ? row - in_panel : row) * (size_t)table.ld;
    if (table.panels) EACH(i, width)
    to[i] = vk_get(table.rows, from + (size_t)(i / word * VK_PAD * word + in_panel * word + i % word), wide);
    else EACH(i, width) to[i] = vk_get(table.rows, from + (size_t)i, wide);
    if (table.scale != 0.0f) EACH(i, width) to[i] = wide ? table.scale * to[i] : vk_b2f(vk_f2b(table.scale * to[i]));
    if (id < 0) EACH(i, width) to[i] = 0.0f;
}
KERNEL(k_embed, float *out, vk_table table, const int32_t *ids, int width, int wide) {
    vk_embed_row(out + BLK * (size_t)width, &table, ids[BLK], width, wide);
}

/* image features are ADDED to the embedding of their <im_patch>. Features with index < 0 (the overlap of neighbouring
 * crops) are dropped. */
KERNEL(k_scatter_add, float *stream, const float *features, const int32_t *index, int width) {
    int at = index[BLK];
    if (at >= 0)
        EACH(i, width) stream[(size_t)at * (size_t)width + (size_t)i] += features[BLK * (size_t)width + (size_t)i];
}

/* q and k of one token: norm, clip, RoPE (half-split pairs); v: clip. qkv f32 [tokens, q | k | v]; q in-type [tokens,
 * ldq]; key and value in-type [positions, kv_heads * head_dim], written at *position + BLK */
FN float vk_cut(float value, float clip) {
    value = value > clip ? clip : value;
    return value < -clip ? -clip : value;
}
#ifndef VK_CUDA /* the GPU's body: kernels/gpu/rows.h */
KERNEL(k_qk_norm_rope, void *q, void *key, void *value, const float *qkv, vk_heads heads, const int32_t *position,
       int ldq, int wide) {
    int head_dim = heads.head_dim, half = head_dim / 2, q_width = heads.heads * head_dim,
        kv_width = heads.kv_heads * head_dim;
    size_t at_position = (size_t)*position + BLK, row = at_position * (size_t)kv_width;
    const float *x = qkv + BLK * (size_t)(q_width + 2 * kv_width), *v = x + q_width + kv_width,
                *c = heads.cs + at_position * (size_t)head_dim, *s = c + half;
    float clip = heads.clip;
    for (int which = 0; which < 2; which++) {
        const float *from = which ? x + q_width : x, *norm_weight = which ? heads.k_norm : heads.q_norm;
        void *to = which ? key : q;
        size_t at = which ? row : BLK * (size_t)ldq;
        int width = which ? kv_width : q_width;
        float sum = 0.0f, scale = 1.0f;
        if (heads.norm == VK_NORM_WHOLE) {
            EACH_SUM(i, width, sum) sum += from[i] * from[i];
            scale = 1.0f / sqrtf(block_sum(sum) / (float)width + heads.eps);
        }
        for (int h = 0; h < width; h += head_dim) {
            if (heads.norm == VK_NORM_NONE) {
                EACH(i, half) {
                    float e = vk_cut(from[h + i], clip), f = vk_cut(from[h + half + i], clip);
                    vk_put(to, at + (size_t)(h + i), e * c[i] - f * s[i], wide);
                    vk_put(to, at + (size_t)(h + half + i), f * c[i] + e * s[i], wide);
                }
                continue;
            }
            if (heads.norm == VK_NORM_HEAD) {
                sum = 0.0f;
                EACH_SUM(i, head_dim, sum) sum += from[h + i] * from[h + i];
                scale = 1.0f / sqrtf(block_sum(sum) / (float)head_dim + heads.eps);
            }
            {
                const float *w = heads.norm == VK_NORM_HEAD ? norm_weight : norm_weight + h;
                EACH(i, half) {
                    float e = vk_cut(w[i] * (from[h + i] * scale), clip),
                          f = vk_cut(w[half + i] * (from[h + half + i] * scale), clip);
                    vk_put(to, at + (size_t)(h + i), e * c[i] - f * s[i], wide);
                    vk_put(to, at + (size_t)(h + half + i), f * c[i] + e * s[i], wide);
                }
            }
        }
    }
    EACH(i, kv_width) vk_put(value, row + (size_t)i, vk_cut(v[i], clip), wide);
}
#endif

#ifdef VK_CUDA
/* One query against the *position + 1 cached keys, or the last `window` of them, one block per head; scores f32
 * [heads, lds] is scratch. out, q in-type, heads side by side; key, value in-type [positions, d]. Each head of key and
 * value serves `sharing` heads of q. */
KERNEL(k_attention_decode, void *out, const void *q, const void *key, const void *value, float *scores,
       const int32_t *position, int lds, int d, int head_dim, int sharing, const int32_t *left, int window, float scale,
       int wide) {
    int gone = VK_GONE(left, window, *position), keys = *position + 1 - gone;
    size_t h = BLK * (size_t)head_dim, kv = BLK / (size_t)sharing * (size_t)head_dim;
    float *p = scores + BLK * (size_t)lds, m = -INFINITY, s = 0.0f;
    EACH_WARP(j, keys) {
        size_t k = (size_t)(gone + j) * (size_t)d + kv;
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
    /* Threads form groups; each thread of a group has one column of the head. Each group takes every groups-th key;
     * the groups' sums are added in shared memory. */
    for (int i0 = 0; i0 < head_dim; i0 += NTID) {
        __shared__ float part[1024];
        int width = head_dim - i0 < NTID ? head_dim - i0 : NTID, groups = NTID / width, column = TID % width,
            group = TID / width;
        float a = 0.0f;
        if (group < groups) {
#ifdef __CUDACC__
#pragma unroll 8
#endif
            for (int j = group; j < keys; j += groups)
                a += p[j] * vk_get(value, (size_t)(gone + j) * (size_t)d + kv + (size_t)(i0 + column), wide);
        }
        SYNC();
        part[TID] = a;
        SYNC();
        if (TID < width) {
            for (int g = 1; g < groups; g++) a += part[g * width + column];
            vk_put(out, h + (size_t)(i0 + column), a / s, wide);
        }
    }
}
#endif

/* Router: softmax over all experts in fp32, then the top_k largest; with norm_topk their weights sum to 1. An expert's
 * rank is the number of experts that beat it, so no reduction is needed and the order of threads does not matter. Ties
 * go to the lower index. index, weight [tokens, top_k] */
KERNEL(k_router, int32_t *index, float *weight, const float *logits, int experts, int top_k, int norm_topk) {
    SHARED float shares[VK_EXPERTS_MAX];
    const float *row = logits + BLK * (size_t)experts;
    float most = -INFINITY, s = 0.0f;
    EACH_MAX(i, experts, most) most = row[i] > most ? row[i] : most;
    most = block_max(most);
    EACH_SUM(i, experts, s) { shares[i] = vk_exp(row[i] - most); s += shares[i]; }
    s = block_sum(s);
    SYNC();
    for (int i = TID; i < experts; i += NTID) {
        int place = 0;
        for (int j = 0; j < experts; j++) place += (row[j] > row[i]) | ((row[j] == row[i]) & (j < i));
        if (place < top_k) {
            index[BLK * (size_t)top_k + (size_t)place] = i;
            weight[BLK * (size_t)top_k + (size_t)place] = shares[i] / s;
        }
    }
    if (norm_topk) {
        float *mine = weight + BLK * (size_t)top_k, sum = 0.0f;
        SYNC();
        for (int j = 0; j < top_k; j++) sum += mine[j];
        SYNC(); /* no one reads them any more */
        for (int j = TID; j < top_k; j += NTID) mine[j] /= sum;
    }
}

/* Block e lists the (token, slot) pairs that are routed to expert e, in token order. count [experts]; start [experts
 * + 1]: rows before expert e; list [pairs]: the pairs in the order of those rows; slot_row [pairs]: the row of each
 * pair. tiles (or NULL): the rows of the experts in tiles of at most tile_rows, int32 [pairs / tile_rows + experts,
 * 2], expert and first row. Expert e's tiles begin at start[e] / tile_rows + e, which leaves room for all of them. An
 * expert may get one unneeded tile, whose first row is after its rows. Each thread examines consecutive pairs. */
KERNEL(k_moe_lists, int32_t *count, int32_t *start, int32_t *list, int32_t *slot_row, int32_t *tiles,
       const int32_t *index, int pairs, int tile_rows) {
    int expert = (int)BLK, each = (pairs + NTID - 1) / NTID, from = TID * each,
        to = pairs - from < each ? pairs : from + each;
    int below = 0, mine = 0, base, all, at;
    for (int i = from; i < to; i++) { below += index[i] < expert; mine += index[i] == expert; }
    block_scan(below, &base);
    at = base + block_scan(mine, &all);
    for (int i = from; i < to; i++)
        if (index[i] == expert) { slot_row[i] = at; list[at++] = i; }
    if (TID == 0) { count[expert] = all; start[expert] = base; start[expert + 1] = base + all; }
    if (tiles) {
        int first = base / tile_rows + expert, last = (base + all) / tile_rows + expert;
        for (int i = first + TID; i <= last; i += NTID) {
            tiles[2 * i] = expert;
            tiles[2 * i + 1] = base + (i - first) * tile_rows;
        }
    }
}

/* out row b = in row of the token in list[b] = token * top_k + slot; in-type rows of row_bytes, copied as bytes */
KERNEL(k_gather, void *out, const void *in, const int32_t *list, int top_k, int row_bytes) {
    const uint32_t *from = (const uint32_t *)((const char *)in + (size_t)(list[BLK] / top_k) * (size_t)row_bytes);
    uint32_t *to = (uint32_t *)((char *)out + BLK * (size_t)row_bytes);
    int words = row_bytes / 4;
    EACH(i, words) to[i] = from[i];
}

/* stream row t += sum over its top_k slots of weight * expert row. Every token reads its own rows, so it needs no
 * atomics and the order is fixed. */
KERNEL(k_combine, float *stream, const float *expert_rows, const int32_t *slot_row, const float *weight, int top_k,
       int width) {
    float *row = stream + BLK * (size_t)width;
#ifdef VK_CUDA
    slot_row += BLK * (size_t)top_k;
    weight += BLK * (size_t)top_k;
    EACH(i, width) {
        float s = row[i];
        for (int j = 0; j < top_k; j++) s += weight[j] * expert_rows[(size_t)slot_row[j] * (size_t)width + (size_t)i];
        row[i] = s;
    }
#else
    for (int j = 0; j < top_k; j++) {
        const float *expert_row = expert_rows + (size_t)slot_row[BLK * (size_t)top_k + (size_t)j] * (size_t)width;
        float share = weight[BLK * (size_t)top_k + (size_t)j];
        EACH(i, width) row[i] += share * expert_row[i];
    }
#endif
}

/* Index of the largest value in a row of `count`, the lowest one on ties. NaN never wins; a row of only NaN returns
 * -1. Indices below 2^24 are exact in a float. */
KERNEL(k_argmax, int32_t *out, const float *values, int count) {
    const float *row = values + BLK * (size_t)count;
    float most = -INFINITY, best = -INFINITY;
    EACH_MAX(i, count, most) most = row[i] > most ? row[i] : most;
    most = block_max(most);
    EACH_MAX(i, count, best) {
        float candidate = row[i] == most ? -(float)i : -INFINITY;
        best = candidate > best ? candidate : best;
    }
    best = block_max(best);
    if (TID == 0) out[BLK] = best > -INFINITY ? (int32_t)-best : -1;
}

/* After the sequence grows: *position += by. One block. The position is on the device, so one recorded decode step
 * serves all steps. */
KERNEL(k_advance, int32_t *position, int by) {
    if (BLK == 0 && TID == 0) *position += by;
}

#ifndef VK_CUDA /* the GPU's body: kernels/gpu/rows.h */
/* Sums each block's `count` floats, only to read them: as one stream, or as four at once. The faster way depends on
 * the machine. */
KERNEL(k_read, float *sums, const float *from, int count, int streams) {
    const float *block = from + BLK * (size_t)count;
    int quarter = count / 4;
    float s = 0.0f;
    if (streams == 1) EACH_SUM(i, count, s) s += block[i];
    else EACH_SUM(i, quarter, s)
    s += (block[i] + block[i + quarter]) + (block[i + 2 * quarter] + block[i + 3 * quarter]);
    s = block_sum(s);
    if (TID == 0) sums[BLK] = s;
}
#endif

/* ============================================================================================== launchers >>launchers
 * The launchers of the shared kernels in one table, the same for every target: vk_kernels. */
static int64_t vk_element(int wide) { return wide ? 4 : 2; }
static int64_t vk_weight_bytes(const vk_linear *linear) {
    int64_t weights = (int64_t)linear->n * linear->k;
    if (linear->bits) return weights * linear->bits / 8 + weights / VK_QUANT_BLOCK * 2;
    return weights * vk_element(linear->wide);
}
/* FLOPs of the activation per value */
static int64_t vk_gelu_flops(vk_epilogue epilogue) {
    if (epilogue == VK_GELU_TANH || epilogue == VK_GELU_MUL) return epilogue == VK_GELU_MUL ? 9 : 8;
    return epilogue == VK_QUICKGELU || epilogue == VK_SILU_MUL ? 4 : epilogue == VK_GELU ? 5 : 0;
}

/* kernels with their launchers */
#include "kernels/shared/stream_rows.h"
#include "kernels/shared/native.h"
#include "kernels/shared/prune_rows.h"
#ifdef VK_CUDA
#include "kernels/gpu/rows.h"
#endif
static void l_rmsnorm(vk_queue *queue, void *out, const float *in, const float *weight, int rows, int width, int ld_out,
                      float eps, int wide) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_rmsnorm, rows, vk_threads_for(width), 4 * count, count * (4 + vk_element(wide)) + 4 * width, out, in,
           weight, width, ld_out, eps, wide);
}
static void l_layernorm(vk_queue *queue, void *out, const float *in, const float *weight, const float *bias, int rows,
                        int width, int ld_out, float eps, int wide) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_layernorm, rows, vk_threads_for(width), 8 * count, count * (4 + vk_element(wide)) + 8 * width, out, in,
           weight, bias, width, ld_out, eps, wide);
}
static void l_convert(vk_queue *queue, void *out, const float *in, int rows, int width, int ld_out, int wide) {
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_convert, rows, vk_threads_for(width), 0, (int64_t)rows * width * (4 + vk_element(wide)), out, in, width,
           ld_out, wide);
}
static void l_vit_embed(vk_queue *queue, float *out, const float *patches, const float *class_embedding,
                        const float *positions, int views, int count, int width) {
    int before = class_embedding != NULL;
    int64_t floats = (int64_t)views * count * width, patch_floats = (int64_t)views * (count - before) * width;
    vk_shape(queue, (int64_t)views * count, width, 0, 0);
    LAUNCH(k_vit_embed, views * count, vk_threads_for(width), floats,
           4 * (patch_floats + before * width + (int64_t)count * width + floats), out, patches, class_embedding,
           positions, count, width);
}
static void l_pool_windows(vk_queue *queue, void *keys, void *query, const float *hidden, const float *mask,
                           const int32_t *dead, const float *pad_embed, size_t layer_floats, int views, int layers,
                           int width, int side, int pool, int ld, int wide) {
    int windows = views * (side / pool) * (side / pool);
    int64_t values = (int64_t)windows * pool * pool * layers * width, queries = (int64_t)windows * layers * width,
            small = (int64_t)views * (side * side + 1) + 2 * layers * width; /* masks, dead, pad_embed */
    vk_shape(queue, windows, (int64_t)layers * width, 0, 0);
    LAUNCH(k_pool_windows, windows, vk_threads_for(width), 3 * values + queries,
           4 * (values + small) + (values + queries) * vk_element(wide), keys, query, hidden, mask, dead, pad_embed,
           layer_floats, layers, width, side, pool, ld, wide);
}
static void l_pool_attention(vk_queue *queue, void *out, const float *q, const float *kv, const int32_t *places,
                             int windows, int keys, int heads, int head_dim, int ld_out, int wide) {
    int64_t queries = (int64_t)windows * heads * head_dim;
    vk_shape(queue, windows, 1, keys, (int64_t)heads * head_dim);
    LAUNCH(k_pool_attention, windows, vk_threads_for(heads * head_dim),
           queries * 4 * keys + (int64_t)windows * heads * keys * 5,
           queries * (4 + 8 * keys + vk_element(wide)) + (places ? 4 * (int64_t)windows * keys : 0), out, q, kv, places,
           keys, heads, head_dim, ld_out, 1.0f / sqrtf((float)head_dim), wide);
}
static void l_gate_mul(vk_queue *queue, void *out, const float *gate_up, int rows, int width, int ld_out, int gelu,
                       int wide) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_gate_mul, rows, vk_threads_for(width), (gelu ? 9 : 4) * count, count * (8 + vk_element(wide)), out,
           gate_up, width, ld_out, gelu, wide);
}
static void l_embed(vk_queue *queue, float *out, const vk_table *table, const int32_t *ids, int rows, int width,
                    int wide) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_embed, rows, vk_threads_for(width), table->scale != 0.0f ? count : 0,
           count * (4 + vk_element(wide)) + 4 * (int64_t)rows, out, *table, ids, width, wide);
}
static void l_scatter_add(vk_queue *queue, float *stream, const float *features, const int32_t *index, int rows,
                          int width) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_scatter_add, rows, vk_threads_for(width), count, count * 12 + 4 * rows, stream, features, index, width);
}
/* FLOPs per value of q or k: 4 for the norm, 3 for the rotation */
static int64_t vk_turn_flops(const vk_heads *heads) {
    return (int64_t)(heads->heads + heads->kv_heads) * heads->head_dim * (heads->norm == VK_NORM_NONE ? 3 : 7);
}
/* number of weights in the norms */
static int64_t vk_turn_floats(const vk_heads *heads) {
    return heads->norm == VK_NORM_NONE   ? 0
           : heads->norm == VK_NORM_HEAD ? 2 * heads->head_dim
                                         : (int64_t)(heads->heads + heads->kv_heads) * heads->head_dim;
}
static void l_qk_norm_rope(vk_queue *queue, void *q, void *key, void *value, const float *qkv, const vk_heads *heads,
                           const int32_t *position, int rows, int ldq, int wide) {
    int64_t q_width = (int64_t)heads->heads * heads->head_dim, kv_width = (int64_t)heads->kv_heads * heads->head_dim,
            count = rows * (q_width + 2 * kv_width), width = q_width ? q_width : kv_width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_qk_norm_rope, rows, vk_threads_for((int)width), rows * vk_turn_flops(heads),
           count * (4 + vk_element(wide)) + 4 * (vk_turn_floats(heads) + (int64_t)rows * heads->head_dim + 1), q, key,
           value, qkv, *heads, position, ldq, wide);
}
/* number of keys that are counted */
static int vk_seen_keys(int keys, const vk_heads *heads) {
    return keys - VK_GONE(heads->gone_counted, heads->window, keys - 1);
}
static int64_t vk_attention_decode_flops(int keys, const vk_heads *heads) {
    return (int64_t)vk_seen_keys(keys, heads) * heads->heads * (4 * (int64_t)heads->head_dim + 5);
}
static int64_t vk_attention_decode_bytes(int keys, const vk_heads *heads, int wide) {
    int64_t head_dim = heads->head_dim;
    return (vk_seen_keys(keys, heads) * heads->kv_heads + heads->heads) * head_dim * 2 * vk_element(wide) + 4;
}
/* scores that a job over many tokens needs in all heads; the full squares that are computed are more */
static int64_t vk_attention_scores(const vk_attention_job *job) {
    int64_t tokens = job->tokens,
            scores =
                job->scores ? job->scores : job->batch * (job->causal ? tokens * (tokens + 1) / 2 : tokens * tokens);
    return scores * job->heads;
}
#ifdef VK_CUDA
static void l_attention_decode(vk_queue *queue, void *out, const void *q, const void *key, const void *value,
                               float *scores, const int32_t *position, int keys, int lds, const vk_heads *heads,
                               int wide) {
    int head_dim = heads->head_dim;
    vk_shape(queue, 1, 1, keys, (int64_t)heads->heads * head_dim);
    LAUNCH(k_attention_decode, heads->heads, 1024, vk_attention_decode_flops(keys, heads),
           vk_attention_decode_bytes(keys, heads, wide), out, q, key, value, scores, position, lds,
           heads->kv_heads * head_dim, head_dim, heads->heads / heads->kv_heads, heads->gone, heads->window,
           1.0f / sqrtf((float)head_dim), wide);
}
#else
/* >>attention */
static void l_attention_decode(vk_queue *queue, void *out, const void *q, const void *key, const void *value,
                               float *scores, const int32_t *position, int keys, int lds, const vk_heads *heads,
                               int wide);
#endif
/* the comparisons of the ranking count as FLOPs */
static void l_router(vk_queue *queue, int32_t *index, float *weight, const float *logits, int rows, int experts,
                     int top_k, int norm_topk) {
    int64_t count = (int64_t)rows * experts;
    vk_shape(queue, rows, experts, 0, 0);
    LAUNCH(k_router, rows, vk_threads_for(experts), count * (4 + experts) + (norm_topk ? 2 * (int64_t)rows * top_k : 0),
           count * 4 + (int64_t)rows * top_k * 8, index, weight, logits, experts, top_k, norm_topk);
}
/* three comparisons per pair and expert; the maximum number of tiles is counted */
static void l_moe_lists(vk_queue *queue, int32_t *count, int32_t *start, int32_t *list, int32_t *slot_row,
                        int32_t *tiles, const int32_t *index, int experts, int pairs, int tile_rows) {
    int64_t tile_count = tiles ? pairs / tile_rows + experts : 0;
    vk_shape(queue, pairs, experts, 0, 0);
    LAUNCH(k_moe_lists, experts, pairs < 4096 ? vk_threads_for(pairs) : 1024, 3 * (int64_t)experts * pairs,
           (int64_t)pairs * 12 + experts * 8 + 4 + tile_count * 8, count, start, list, slot_row, tiles, index, pairs,
           tile_rows);
}
static void l_gather(vk_queue *queue, void *out, const void *in, const int32_t *list, int rows, int top_k,
                     int row_bytes) {
    vk_shape(queue, rows, row_bytes, 0, 0);
    LAUNCH(k_gather, rows, vk_threads_for(row_bytes / 4), 0,
           ((int64_t)rows / top_k + rows) * row_bytes + (int64_t)rows * 4, out, in, list, top_k, row_bytes);
}
static void l_combine(vk_queue *queue, float *stream, const float *expert_rows, const int32_t *slot_row,
                      const float *weight, int rows, int top_k, int width) {
    int64_t count = (int64_t)rows * width;
    vk_shape(queue, rows, width, 0, 0);
    LAUNCH(k_combine, rows, vk_threads_for(width), count * top_k * 2,
           count * (8 + 4 * top_k) + (int64_t)rows * top_k * 8, stream, expert_rows, slot_row, weight, top_k, width);
}
static void l_argmax(vk_queue *queue, int32_t *out, const float *values, int rows, int count) {
    vk_shape(queue, rows, count, 0, 0);
    LAUNCH(k_argmax, rows, count > VK_BLOCK_MAX ? 1024 : vk_threads_for(count), 2 * (int64_t)rows * count,
           ((int64_t)count + 1) * rows * 4, out, values, count);
}
static void l_advance(vk_queue *queue, int32_t *position, int by) {
    vk_shape(queue, 1, 1, 0, 0);
    LAUNCH(k_advance, 1, 32, 1, 8, position, by);
}
static void l_read(vk_queue *queue, float *sums, const float *from, int blocks, int count, int streams) {
    vk_shape(queue, blocks, count, 0, 0);
    LAUNCH(k_read, blocks, 1024, (int64_t)blocks * count, 4 * ((int64_t)blocks * count + blocks), sums, from, count,
           streams);
}

#define VK_KERNEL_LAUNCHER(name, ...) l_##name,
#define VK_KERNEL_TABLE { VK_KERNELS(VK_KERNEL_LAUNCHER) }

/* ================================================================================================ backend >>backend
 * Shared by both backends: the order of their tables (engine/backend.h), ranges, telemetry without
 * values. */
/* the functions that every backend has, in the order of the table */
#define VK_BACKEND_FUNCTIONS(own) \
    own##_open, own##_close, own##_describe, own##_gemm, own##_free_bytes, own##_scratch_bytes, own##_allocate, \
        own##_use, own##_enter, own##_stage, own##_commit, own##_fetch, own##_copy, own##_linear, own##_grouped, \
        own##_attention, own##_mark, own##_wait, own##_between, own##_token, own##_reserve_log, own##_read_log, \
        own##_recover, own##_pinned_bytes, own##_borrow, own##_give_back, own##_launch_timer, vk_range_hooks

#include "kernels/shared/nvtx.h"

static void vk_no_telemetry(vp_telemetry *telemetry) {
    telemetry->sm_clock_mhz = telemetry->sm_clock_max_mhz = telemetry->memory_clock_mhz =
        telemetry->memory_clock_max_mhz = (double)NAN;
    telemetry->power_w = telemetry->power_limit_w = telemetry->temperature_c = telemetry->utilisation_percent =
        telemetry->throttle_count = (double)NAN;
    telemetry->throttle_reasons = 0;
    telemetry->has_throttle_reasons = 0;
}

#ifdef VK_CUDA
/* ==================================================================================================== tiles >>tiles
 * Kernels for many rows in bf16 on a GPU's tensor cores (mma.sync), in addition to cuBLAS: attention, and the experts
 * of routed tokens. Blocks have a fixed number of threads. The order of a sum does not depend on scheduling, and there
 * are no atomic additions: the same input gives the same bits. */

#include "kernels/gpu/attend_tiles.h"

/* ---- experts. A block is a tile: at most VK_GROUP_ROWS rows of one expert by VK_GROUP_COLUMNS columns of its
 * weights, 64 x 32 per warp. Slices of both, VK_GROUP_DEPTH deep, pass through shared memory in VK_GROUP_STAGES
 * stages. Within a row of 128 bytes, vectors of 16 bytes are at index ^ (row & 7), so no two of an ldmatrix share
 * a bank. Data after the last row, column or k are not fetched: they would only affect dropped results, or no
 * product at all. Fragments whose rows are all after the last row are skipped, so a few rows cost
 * little. */
enum { VK_GROUP_ROWS = 128, VK_GROUP_COLUMNS = 128, VK_GROUP_DEPTH = 64, VK_GROUP_STAGES = 3, VK_GROUP_THREADS = 256,
       VK_GROUP_BYTES = VK_GROUP_STAGES * (VK_GROUP_ROWS + VK_GROUP_COLUMNS) * VK_GROUP_DEPTH * 2 };
/* a block's tile */
typedef struct vk_group {
    const uint16_t *x, *weights;
    const int32_t *list; /* entries of the tile's rows; NULL if the rows are consecutive in x */
    int rows, column, n, k_padded, ldx, top_k, gated;
} vk_group;
/* row `row` of 64 values, vector `vector`, in shared memory */
FN uint16_t *vk_group_at(uint16_t *slice, int row, int vector) {
    return slice + row * VK_GROUP_DEPTH + (vector ^ (row & 7)) * 8;
}
FN void vk_group_fetch_x(const vk_group *group, uint16_t *slice, const int source[4], int from) {
    int vector = TID & 7, row = TID >> 3;
    if (from + vector * 8 >= group->k_padded) return;
    VK_UNROLL for (int j = 0; j < 4; j++) if (row + 32 * j < group->rows)
        vk_copy_async(vk_group_at(slice, row + 32 * j, vector),
                      group->x + (size_t)source[j] * (size_t)group->ldx + (size_t)(from + vector * 8));
}
/* gated: the first half of a tile's columns are gates; the second half are the ups of the same columns, n rows of
 * weights later */
FN void vk_group_fetch(const vk_group *group, uint16_t *slice, const int source[4], int from) {
    int vector = TID & 7, row = TID >> 3;
    uint16_t *weights = slice + VK_GROUP_ROWS * VK_GROUP_DEPTH;
    vk_group_fetch_x(group, slice, source, from);
    if (from + vector * 8 >= group->k_padded) return;
    VK_UNROLL for (int j = 0; j < 4; j++) {
        int r = row + 32 * j, c = group->gated && j > 1 ? group->column + r - VK_GROUP_COLUMNS / 2 : group->column + r;
        if (c < group->n)
            vk_copy_async(vk_group_at(weights, r, vector),
                          group->weights + (size_t)(group->gated && j > 1 ? group->n + c : c) * (size_t)group->k_padded
                              + (size_t)(from + vector * 8));
    }
}
/* acc += a slice's products; `live`: number of existing rows of this warp, equal in all lanes */
FN void vk_group_multiply(const vk_group *group, float (*acc)[4][4], uint16_t *slice, uint16_t *weights, int from,
                          int live) {
    int lane = TID & 31, warp = TID >> 5,
        column = (warp >> 1) * (group->gated ? 16 : 32) + (lane >> 4) * 8 + (lane & 7);
    if (live <= 0) return;
    VK_UNROLL for (int c = 0; c < VK_GROUP_DEPTH / 16; c++) {
        uint32_t a[4], b[8];
        if (from + c * 16 >= group->k_padded) break;
        vk_ldmatrix(b, vk_group_at(weights, column, c * 2 + (lane >> 3 & 1)),
                    (group->gated ? VK_GROUP_COLUMNS / 2 : 16) * VK_GROUP_DEPTH * 2, 2, 0);
        VK_UNROLL for (int i = 0; i < 4; i++) {
            if (i * 16 >= live) break;
            vk_ldmatrix(a, vk_group_at(slice, (warp & 1) * 64 + i * 16 + (lane & 15), c * 2 + (lane >> 4)), 0, 1, 0);
            vk_mma(acc[i], a, b, 4);
        }
    }
}
/* finds the rows that a thread fetches, and sets the sums to 0 */
FN void vk_group_begin(const vk_group *group, int source[4], float (*acc)[4][4]) {
    VK_UNROLL for (int j = 0; j < 4; j++) {
        int r = (TID >> 3) + 32 * j;
        source[j] = r >= group->rows ? 0 : group->list ? group->list[r] / group->top_k : r;
    }
    VK_UNROLL for (int i = 0; i < 4; i++) VK_UNROLL for (int n = 0; n < 4; n++) acc[i][n][0] = acc[i][n][1] =
        acc[i][n][2] = acc[i][n][3] = 0.0f;
}
FN void vk_group_sums(const vk_group *group, float (*acc)[4][4]) {
    CUDA_DYNAMIC_SHARED(uint16_t, slices);
    enum { SLICE = (VK_GROUP_ROWS + VK_GROUP_COLUMNS) * VK_GROUP_DEPTH };
    int steps = (group->k_padded + VK_GROUP_DEPTH - 1) / VK_GROUP_DEPTH, source[4],
        /* read from a register of lane 0, so the compiler knows that warps do not diverge on it */
        live = __shfl_sync(~0u, group->rows - (TID >> 5 & 1) * 64, 0);
    vk_group_begin(group, source, acc);
    for (int s = 0; s < VK_GROUP_STAGES - 1; s++) {
        vk_group_fetch(group, slices + s * SLICE, source, s * VK_GROUP_DEPTH);
        vk_copy_commit();
    }
    VK_ROLLED for (int s = 0; s < steps; s++) {
        int ahead = s + VK_GROUP_STAGES - 1;
        vk_copy_wait(VK_GROUP_STAGES - 2);
        SYNC(); /* all threads have written this slice and read the previous one */
        vk_group_fetch(group, slices + ahead % VK_GROUP_STAGES * SLICE, source, ahead * VK_GROUP_DEPTH);
        vk_copy_commit();
        uint16_t *slice = slices + s % VK_GROUP_STAGES * SLICE;
        vk_group_multiply(group, acc, slice, slice + VK_GROUP_ROWS * VK_GROUP_DEPTH, s * VK_GROUP_DEPTH, live);
    }
}
/* Sets the block's tile; returns 0 if there is none. x is the input of the whole product. */
FN int vk_group_tile(vk_group *group, int *first, const int32_t *tiles, const int32_t *start, const int32_t *list,
                     const uint16_t *x, const char *weights, size_t stride_bytes, int column_tiles, int n, int k_padded,
                     int ldx, int top_k) {
    const int32_t *tile = tiles + 2 * (BLK / (size_t)column_tiles);
    int expert = tile[0], rows = start[expert + 1] - tile[1];
    *first = tile[1];
    group->rows = rows < VK_GROUP_ROWS ? rows : VK_GROUP_ROWS;
    group->x = list ? x : x + (size_t)tile[1] * (size_t)ldx;
    group->weights = (const uint16_t *)(const void *)(weights + (size_t)expert * stride_bytes);
    group->list = list ? list + tile[1] : NULL;
    group->n = n; group->k_padded = k_padded; group->ldx = ldx; group->top_k = top_k;
    group->gated = list != NULL;
    group->column = (int)(BLK % (size_t)column_tiles) * (group->gated ? VK_GROUP_COLUMNS / 2 : VK_GROUP_COLUMNS);
    return rows > 0;
}
/* stores bf16 results: hidden = silu(gate) * up */
FN void vk_group_store_gated(const vk_group *group, float (*acc)[4][4], uint16_t *hidden, int first, int ldy) {
    int lane = TID & 31, warp = TID >> 5;
    VK_UNROLL for (int i = 0; i < 8; i++) {
        int row = (warp & 1) * 64 + i / 2 * 16 + i % 2 * 8 + (lane >> 2);
        if (row >= group->rows) continue;
        VK_UNROLL for (int c = 0; c < 2; c++) {
            int column = group->column + (warp >> 1) * 16 + c * 8 + (lane & 3) * 2;
            const float *gate = acc[i / 2][c] + i % 2 * 2, *up = acc[i / 2][c + 2] + i % 2 * 2;
            uint16_t *to = hidden + (size_t)(first + row) * (size_t)ldy + (size_t)column; /* ldy is even */
            uint32_t two = vk_pack2(vk_silu(gate[0]) * up[0], vk_silu(gate[1]) * up[1]);
            if (column + 1 < group->n) *(uint32_t *)(void *)to = two;
            else if (column < group->n) *to = (uint16_t)two;
        }
    }
}
/* stores bf16 results: y = share[list[row]] * sum */
FN void vk_group_store_shares(const vk_group *group, float (*acc)[4][4], uint16_t *y, const int32_t *list,
                              const float *share, int first, int ldy) {
    int lane = TID & 31, warp = TID >> 5;
    VK_UNROLL for (int i = 0; i < 8; i++) {
        int row = (warp & 1) * 64 + i / 2 * 16 + i % 2 * 8 + (lane >> 2);
        if (row >= group->rows) continue;
        float weight = share[list[first + row]];
        VK_UNROLL for (int c = 0; c < 4; c++) {
            int column = group->column + (warp >> 1) * 32 + c * 8 + (lane & 3) * 2;
            const float *sum = acc[i / 2][c] + i % 2 * 2;
            uint16_t *to = y + (size_t)(first + row) * (size_t)ldy + (size_t)column; /* ldy is even */
            uint32_t two = vk_pack2(weight * sum[0], weight * sum[1]);
            if (column + 1 < group->n) *(uint32_t *)(void *)to = two;
            else if (column < group->n) *to = (uint16_t)two;
        }
    }
}
/* hidden bf16 [pairs, ldy] = silu(gate) * up of the token in list[row] = token * top_k + slot; weights: n rows of
 * gates, then n rows of ups */
KERNEL_OF(VK_GROUP_THREADS, 2, k_experts_gate_up, uint16_t *hidden, const uint16_t *x, const char *weights,
          size_t stride_bytes, const int32_t *tiles, const int32_t *start, const int32_t *list, int column_tiles, int n,
          int k_padded, int ldx, int ldy, int top_k) {
    vk_group group;
    float acc[4][4][4];
    int first;
    if (!vk_group_tile(&group, &first, tiles, start, list, x, weights, stride_bytes, column_tiles, n, k_padded, ldx,
                       top_k))
        return;
    group.gated = 1; /* a constant for the compiler */
    vk_group_sums(&group, acc);
    vk_group_store_gated(&group, acc, hidden, first, ldy);
}
/* y bf16 [pairs, ldy] = share[list[row]] * (hidden times an expert's weights [n, k_padded]) */
KERNEL_OF(VK_GROUP_THREADS, 2, k_experts_down, uint16_t *y, const uint16_t *hidden, const char *weights,
          size_t stride_bytes, const int32_t *tiles, const int32_t *start, const int32_t *list, const float *share,
          int column_tiles, int n, int k_padded, int ldx, int ldy) {
    vk_group group;
    float acc[4][4][4];
    int first;
    if (!vk_group_tile(&group, &first, tiles, start, NULL, hidden, weights, stride_bytes, column_tiles, n, k_padded,
                       ldx, 1))
        return;
    group.gated = 0;
    group.list = NULL;
    vk_group_sums(&group, acc);
    vk_group_store_shares(&group, acc, y, list, share, first, ldy);
}
/* stream row t f32 [width] += the sum of its top_k slots' rows of y bf16, 8 columns per thread. Every token reads its
 * own rows in the order of the slots, so no atomics are needed and the order is fixed. */
KERNEL(k_experts_sum, float *__restrict__ stream, const uint16_t *__restrict__ y, const int32_t *__restrict__ slot_row,
       int top_k, int width, int ldy) {
    float *row = stream + BLK * (size_t)width;
    slot_row += BLK * (size_t)top_k;
    for (int i = 8 * TID; i < width; i += 8 * NTID) {
        float sum[8];
        VK_UNROLL for (int c = 0; c < 8; c++) sum[c] = 0.0f;
        for (int j = 0; j < top_k; j++) {
            const uint4 four = *(const uint4 *)(const void *)(y + (size_t)slot_row[j] * (size_t)ldy + (size_t)i);
            const uint32_t two[4] = {four.x, four.y, four.z, four.w};
            VK_UNROLL for (int c = 0; c < 4; c++) {
                sum[2 * c] += vk_b2f((uint16_t)two[c]);
                sum[2 * c + 1] += vk_b2f((uint16_t)(two[c] >> 16));
            }
        }
        if (i + 8 <= width && !(width & 3)) {
            VK_UNROLL for (int c = 0; c < 8; c += 4) {
                float4 *to = (float4 *)(void *)(row + i + c), was = *to;
                *to = make_float4(was.x + sum[c], was.y + sum[c + 1], was.z + sum[c + 2], was.w + sum[c + 3]);
            }
        } else {
            VK_UNROLL for (int c = 0; c < 8; c++) if (i + c < width) row[i + c] += sum[c];
        }
    }
}

#include "kernels/gpu/spin.h"
#include "kernels/gpu/wgmma.h"
#include "kernels/gpu/quant_tiles.h"

/* ====================================================================================================== cuda >>cuda
 * The GPU backend: one stream, one arena, cuBLAS opened at run time. Only these wait: `wait`, `fetch`, and `stage`
 * if its buffer is still in flight. */
enum {
    VK_STAGE_BYTES = 16 << 20,     /* one of two pinned halves for copying weights and inputs */
    VK_WORKSPACE_BYTES = 32 << 20, /* needed by cuBLAS on Hopper; provided so that it never allocates */
    VK_WIDENED_BYTES = 32 << 20,   /* limit of integers as bf16: fits the second-level cache of Ampere and later */
    VK_INBOX_BYTES = 64 << 10,     /* pinned; small results land here */
    VK_ATTENTION_ROWS = 640,       /* queries whose scores are kept at once: all of a ViT view */
    VK_RECORDINGS = 512,           /* decode steps kept as graphs; the oldest is replaced. A sweep cycles
                                     * through its configurations. */
    VK_PLANS = 1024,               /* product shapes whose algorithms are kept; the oldest is replaced: 7 shapes per
                                     * number of views and, if tuned, 5 per prompt length */
    VK_LT_ALGORITHMS = 8,
    VK_LT_ROUNDS = 3,
    VK_FACTS = 64, /* kernels whose register counts are cached */
    VK_CAPABILITY_MIN = 80,
    VK_CUBLAS_ERROR = 100000 /* added to a cuBLAS status in a queue's error */
};
#define VK_TRY(call) vk_cuda_check(queue, call, #call, VK_HERE)

typedef struct vk_cublas {
    void *library;
    cublasHandle_t handle;
    cublasStatus_t (*create)(cublasHandle_t *);
    cublasStatus_t (*destroy)(cublasHandle_t);
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
    cublasStatus_t (*set_workspace)(cublasHandle_t, void *, size_t);
    cublasStatus_t (*set_math_mode)(cublasHandle_t, cublasMath_t);
    cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                           const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
                           cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
    cublasStatus_t (*gemm_strided)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                                   const void *, cudaDataType, int, long long int, const void *, cudaDataType, int,
                                   long long int, const void *, void *, cudaDataType, int, long long int, int,
                                   cublasComputeType_t, cublasGemmAlgo_t);
} vk_cublas;
/* cublasLt's functions, which add a bias to a product. They are found through libcublas, which needs that library
 * itself, and called with its handle; the manual allows this instead of a handle of their own ("cublasLtHandle_t"). */
#define VK_LT_FUNCTIONS(X) \
    X(product_create, cublasLtMatmulDescCreate) X(product_set, cublasLtMatmulDescSetAttribute) \
    X(product_destroy, cublasLtMatmulDescDestroy) \
    X(layout_create, cublasLtMatrixLayoutCreate) X(layout_destroy, cublasLtMatrixLayoutDestroy) \
    X(preference_create, cublasLtMatmulPreferenceCreate) X(preference_set, cublasLtMatmulPreferenceSetAttribute) \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy) X(find, cublasLtMatmulAlgoGetHeuristic) \
    X(multiply, cublasLtMatmul)
#define VK_LT_FIELD(field, name) decltype(&name) field;
typedef struct vk_lt { VK_LT_FUNCTIONS(VK_LT_FIELD) int present; } vk_lt;
#undef VK_LT_FIELD
/* the shape that an algorithm depends on: y [m, n] = x W^T + bias. All operands and the bias begin at multiples of
 * `alignment` bytes. */
typedef struct vk_lt_shape { int m, n, k, ldx, ldy, in, out, alignment, biased; } vk_lt_shape;
typedef struct vk_lt_plan {
    vk_lt_shape shape;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
    int usable, tuned; /* usable 0: this shape takes two launches */
} vk_lt_plan;
/* A launch that is timed on its own: the events before and after it, its kernel (NULL for copies and cuBLAS), and the
 * mark before it. Also CUPTI's records of it, and the longest kernel among them. */
typedef struct vk_timer {
    cudaEvent_t event[2];
    const void *kernel;
    int mark, records;
    int64_t longest_ns;
} vk_timer;
typedef struct vk_kernel_facts { const void *kernel; uint32_t registers, shared_bytes; } vk_kernel_facts;
typedef struct vk_residence { const void *kernel; size_t shared_bytes; int blocks; } vk_residence;
typedef struct vk_recording { uint64_t key; cudaGraphExec_t steps; } vk_recording;
typedef struct vk_cuda {
    vk_queue queue; /* first: a vk_queue of this backend is a vk_cuda */
    int device, wide, multiprocessors, shared_most;
    int dependent, tuned, library; /* vp_gpu_switch */
    CUresult (*encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                       const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                       CUtensorMapL2promotion, CUtensorMapFloatOOBfill); /* NULL: experts by mma.sync */
    cudaStream_t stream;
    vk_cublas blas;
    vk_lt lt;
    vk_lt_plan plans[VK_PLANS];
    int next_plan;
    int vision_tiles, prefill_tiles; /* 1 if attention runs on tensor cores here */
    char ways[80];
    char *memory, *staging, *inbox;
    int half;
    cudaEvent_t sent[2]; /* event after the copy out of each staging half */
    int in_flight[2];
    int64_t marks, timers, timers_with_events;
    cudaEvent_t *mark;
    cudaEvent_t *arrived;    /* [marks] events without times, to wait for tokens when timing is off */
    const char **after;      /* [marks] the first operation after each mark; .. */
    int reached;             /* .. the last mark that was waited for */
    vk_timer *timer;         /* [timers], the first timers_with_events of which have events */
    const char *events_only; /* reason not to time launches by CUPTI (kernels/gpu/cupti.h); NULL if it may be used */
    int64_t cupti_zero_ns;   /* CUPTI's clock when mark 0 was reached */
    int64_t graph_launch, graph_begin_ns, graph_ns; /* the last graph's first launch, and the host's times */
    int last_mark;                                  /* slot of the newest mark */
    int64_t host_zero_ns; /* the host's clock when mark 0 was reached; the host's launch times are relative to it */
    vk_kernel_facts facts[VK_FACTS]; /* facts of the kernels queried so far */
    vk_residence residences[VK_FACTS];
    int32_t *tokens;       /* [marks] in mapped host memory, by position: k_decode_pick writes them there, ..
                            * With VP_GPU_LIBRARY by mark, and copied. */
    int32_t *tokens_there; /* .. at this address */
    void *workspace, *weights, *widened;
    size_t widened_bytes;
    float *scores;
    vk_recording recordings[VK_RECORDINGS];
    int next_recording, no_recordings;
} vk_cuda;
static vk_cuda *vk_cuda_of(vk_queue *queue) { return (vk_cuda *)queue; }
/* Not used in prefill: its last block also uses kernels of a step, but position and cache have just been written. */
static int vk_is_dependent(const vk_queue *queue) { return ((const vk_cuda *)queue)->dependent && queue->step > 0; }

#include "kernels/gpu/epilogues.h"

/* ---- devices */
static vp_result vk_cuda_fail(vp_error *error, cudaError_t status, const char *what) {
    char text[160];
    cudaGetLastError(); /* clears the error, as in vk_cuda_check */
    snprintf(text, sizeof text, "%s (%s)", cudaGetErrorString(status), cudaGetErrorName(status));
    return vp_error_set(error, status == cudaErrorMemoryAllocation ? VP_ERR_MEMORY : VP_ERR_DEVICE, -1, what, text);
}
static vp_result vk_cuda_count(int32_t *count, vp_error *error) {
    int found = 0, driver = 0;
    char text[160];
    cudaError_t status = cudaGetDeviceCount(&found);
    if (status == cudaSuccess && found > 0) { *count = found; return VP_OK; }
    cudaGetLastError(); /* reported here; the next call starts without an error */
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (status == cudaErrorInsufficientDriver && driver == 0)
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuda", "no NVIDIA driver on this machine");
    if (status == cudaErrorInsufficientDriver) {
        snprintf(text, sizeof text,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, but this program was built with CUDA %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuda", text);
    }
    if (status == cudaSuccess || status == cudaErrorNoDevice)
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuda", "no NVIDIA GPU that CUDA can use");
    return vk_cuda_fail(error, status, "cudaGetDeviceCount");
}
/* Returns VP_OK if the device exists. */
static vp_result vk_cuda_find(int32_t index, vp_error *error) {
    int32_t count;
    char text[80];
    vp_result result = vk_cuda_count(&count, error);
    if (result != VP_OK) return result;
    if (index < 0 || index >= count) {
        snprintf(text, sizeof text, "there is no device %d; this process sees %d device(s), counted from 0", (int)index,
                 (int)count);
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuda", text);
    }
    return VP_OK;
}
static uint64_t vk_nvml_free_bytes(int32_t index);
/* creates no context: one takes about 300 MB of device memory and 300 ms, too much just to list devices */
static vp_result vk_cuda_describe_device(int32_t index, vp_device_info *info, vp_error *error) {
    struct cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    cudaError_t status;
    vp_result result = vk_cuda_find(index, error);
    if (result != VP_OK) return result;
    if ((status = cudaGetDeviceProperties(&properties, index)) != cudaSuccess)
        return vk_cuda_fail(error, status, "cudaGetDeviceProperties");
    if ((status = cudaDriverGetVersion(&driver)) != cudaSuccess)
        return vk_cuda_fail(error, status, "cudaDriverGetVersion");
    if ((status = cudaRuntimeGetVersion(&runtime)) != cudaSuccess)
        return vk_cuda_fail(error, status, "cudaRuntimeGetVersion");
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%.120s", properties.name);
    info->compute_major = properties.major;
    info->compute_minor = properties.minor;
    info->multiprocessor_count = properties.multiProcessorCount;
    info->driver_version = driver;
    info->runtime_version = runtime;
    info->memory_bytes = properties.totalGlobalMem;
    info->free_bytes = vk_nvml_free_bytes(index);
    return VP_OK;
}

#include "kernels/gpu/nvml.h"

/* ---- opening and closing */
static void vk_cublas_check(vk_queue *queue, cublasStatus_t status, const char *what, const char *file, int line) {
    if (status == CUBLAS_STATUS_SUCCESS || queue->error) return;
    queue->error = VK_CUBLAS_ERROR + (int)status;
    queue->error_at = what;
    queue->file = vk_file_name(file);
    queue->line = line;
}
/* each text is noted once; notes are appended */
static void vk_note(vk_queue *queue, const char *text) {
    size_t used = strlen(queue->note);
    if (!strstr(queue->note, text))
        snprintf(queue->note + used, sizeof queue->note - used, "%s%s", used ? "; " : "", text);
}
/* function: address of a function pointer */
static int vk_cublas_symbol(vk_cublas *blas, void *function, const char *name) {
    void *found = dlsym(blas->library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}
/* Returns 1 if started, 0 if there is no such library, -1 if neither it nor another version can start. */
static int vk_cublas_start(vk_cuda *cuda, const char *name, char *why, size_t capacity) {
    vk_cublas *blas = &cuda->blas;
    blas->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!blas->library) {
        const char *reason = dlerror();
        snprintf(why, capacity, "%.150s", reason ? reason : name);
        return 0;
    }
    if (!vk_cublas_symbol(blas, &blas->create, "cublasCreate_v2")
        || !vk_cublas_symbol(blas, &blas->destroy, "cublasDestroy_v2")
        || !vk_cublas_symbol(blas, &blas->set_stream, "cublasSetStream_v2")
        || !vk_cublas_symbol(blas, &blas->set_workspace, "cublasSetWorkspace_v2")
        || !vk_cublas_symbol(blas, &blas->set_math_mode, "cublasSetMathMode")
        || !vk_cublas_symbol(blas, &blas->gemm, "cublasGemmEx")
        || !vk_cublas_symbol(blas, &blas->gemm_strided, "cublasGemmStridedBatchedEx")) {
        snprintf(why, capacity, "%s lacks a function that vlmprof calls", name);
        return 0;
    }
    cublasStatus_t status = blas->create(&blas->handle);
    if (status == CUBLAS_STATUS_SUCCESS) return 1;
    blas->handle = NULL;
    snprintf(why, capacity, "%s cannot start on this GPU (cuBLAS status %d)", name, (int)status);
    return -1;
}
static void vk_lt_open(vk_cuda *cuda) {
    const char *lacks = NULL;
    char text[120];
#define VK_LT_FIND(field, name) if (!vk_cublas_symbol(&cuda->blas, &cuda->lt.field, #name)) lacks = #name;
    VK_LT_FUNCTIONS(VK_LT_FIND)
#undef VK_LT_FIND
    cuda->lt.present = lacks == NULL;
    if (!lacks) return;
    snprintf(text, sizeof text, "products with a bias take two launches: cuBLAS lacks %s", lacks);
    vk_note(&cuda->queue, text);
}
/* Tries the library of the toolkit that compiled this, then neighbouring versions. A library that does not start stays
 * open; vk_cuda_close gives the reason. */
static vp_result vk_cublas_open(vk_cuda *cuda, vp_error *error) {
    static const char *const others[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                         "/usr/local/cuda/lib64/libcublas.so"};
    char name[40], why[200], text[280];
    snprintf(name, sizeof name, "libcublas.so.%d", CUDART_VERSION / 1000);
    int started = vk_cublas_start(cuda, name, why, sizeof why);
    for (size_t i = 0; i < sizeof others / sizeof others[0] && started == 0; i++) {
        char other[sizeof why];
        started = vk_cublas_start(cuda, others[i], other, sizeof other);
        if (started < 0) memcpy(why, other, sizeof why);
    }
    if (started <= 0) {
        snprintf(text, sizeof text, "%s%s", why,
                 started ? "" : "; install the CUDA Toolkit's cuBLAS, or name its folder in LD_LIBRARY_PATH");
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuBLAS", text);
    }
    vk_cublas_check(&cuda->queue, cuda->blas.set_stream(cuda->blas.handle, cuda->stream), "cublasSetStream", VK_HERE);
    /* sums in fp32 even if a product is split along k; TF32 is off by default */
    vk_cublas_check(&cuda->queue,
                    cuda->blas.set_math_mode(cuda->blas.handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                    "cublasSetMathMode", VK_HERE);
    if (!cuda->library) vk_lt_open(cuda);
    return VP_OK;
}
static void vk_lt_forget(const vk_lt *lt, vk_lt_plan *plan) {
    if (plan->product) lt->product_destroy(plan->product);
    if (plan->w) lt->layout_destroy(plan->w);
    if (plan->x) lt->layout_destroy(plan->x);
    if (plan->y) lt->layout_destroy(plan->y);
    memset(plan, 0, sizeof *plan);
}
static void vk_cupti_close(vk_queue *queue); /* kernels/gpu/cupti.h */
static int vk_cuda_engines;                  /* engines open in this process, on any device */
static void vk_cuda_close(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    vk_cupti_close(queue);
    cudaSetDevice(cuda->device); /* the caller may have switched devices, and cuBLAS depends on it */
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
    for (int i = 0; i < VK_RECORDINGS; i++)
        if (cuda->recordings[i].steps) cudaGraphExecDestroy(cuda->recordings[i].steps);
    for (int i = 0; i < VK_PLANS; i++) vk_lt_forget(&cuda->lt, &cuda->plans[i]);
    if (cuda->blas.handle) cuda->blas.destroy(cuda->blas.handle);
    for (int64_t i = 0; cuda->mark && i < cuda->marks; i++)
        if (cuda->mark[i]) cudaEventDestroy(cuda->mark[i]);
    for (int64_t i = 0; cuda->arrived && i < cuda->marks; i++)
        if (cuda->arrived[i]) cudaEventDestroy(cuda->arrived[i]);
    for (int64_t i = 0; i < 2 * cuda->timers_with_events; i++) cudaEventDestroy(cuda->timer[i / 2].event[i % 2]);
    for (int i = 0; i < 2; i++)
        if (cuda->sent[i]) cudaEventDestroy(cuda->sent[i]);
    if (cuda->staging) cudaFreeHost(cuda->staging);
    if (cuda->inbox) cudaFreeHost(cuda->inbox);
    if (cuda->tokens) cudaFreeHost(cuda->tokens);
    if (cuda->memory) cudaFree(cuda->memory);
    if (cuda->stream) cudaStreamDestroy(cuda->stream);
    /* A broken context stays, because the program around this engine may use it. That program may call
     * vp_device_reset. */
    __atomic_sub_fetch(&vk_cuda_engines, 1, __ATOMIC_SEQ_CST);
    cudaGetLastError();
    /* the library stays open: cuBLAS registers code with the CUDA runtime, which would remain after unloading */
    free(cuda->mark);
    free(cuda->arrived);
    free(cuda->after);
    free(cuda->timer);
    free(cuda);
}
static vp_result vk_cuda_reset(int32_t index, vp_error *error) {
    int current = 0;
    vp_result result = vk_cuda_find(index, error);
    if (result != VP_OK) return result;
    if (__atomic_load_n(&vk_cuda_engines, __ATOMIC_SEQ_CST) > 0)
        return vp_error_set(error, VP_ERR_STATE, -1, "cuda",
                            "an engine is still open: close all of them before the reset");
    cudaGetDevice(&current);
    if (current != index) cudaSetDevice(index); /* a broken context returns its error, but is selected */
    cudaError_t status = cudaDeviceReset();
    vk_spin_forget();
    if (current != index) cudaSetDevice(current);
    cudaGetLastError();
    return status == cudaSuccess ? VP_OK : vk_cuda_fail(error, status, "cudaDeviceReset");
}
#include "kernels/gpu/wgmma_launch.h"
#include "kernels/gpu/quant_launch.h"

/* Returns VP_OK if the switch would change something on this device. Only an engine asks the driver for
 * cuTensorMapEncodeTiled; without it, wgmma changes nothing. */
static vp_result vk_cuda_switch(int32_t index, uint32_t bit, vp_error *error) {
    vp_device_info info;
    const char *lacks = NULL;
    vp_result result = vk_cuda_describe_device(index, &info, error);
    if (result != VP_OK) return result;
    if (bit & VP_GPU_DEPENDENT && info.compute_major < 9) lacks = "needs compute capability 9.0";
    if (bit & VP_GPU_WGMMA) {
#ifndef VLMPROF_SM_90A
        lacks = "this build has no code for sm_90a";
#endif
        if (info.compute_major != 9 || info.compute_minor != 0) lacks = "needs exactly compute capability 9.0";
    }
    return lacks ? vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "--gpu", lacks) : VP_OK;
}
static vp_result vk_cuda_open(const vk_setup *setup, vk_queue **queue, vp_error *error) {
    vp_device_info info;
    vk_cuda *cuda;
    char text[160];
    const char *what = "cudaSetDevice";
    vp_result result = vk_cuda_describe_device(setup->device, &info, error);
    if (result != VP_OK) return result;
    if (setup->gemm)
        return vp_error_set(error, VP_ERR_RANGE, -1, setup->gemm, "--gemm selects a CPU kernel; a GPU uses cuBLAS");
    if (setup->gpu & VP_GPU_LIBRARY && setup->gpu & (VP_GPU_DEPENDENT | VP_GPU_WGMMA | VP_GPU_TUNED))
        return vp_error_set(error, VP_ERR_RANGE, -1, "--gpu",
                            "library does not use the kernels that dependent, wgmma and tuned change: remove these "
                            "words");
    if (info.compute_major * 10 + info.compute_minor < VK_CAPABILITY_MIN) {
        snprintf(text, sizeof text, "%.80s has compute capability %d.%d; vlmprof needs 8.0 (bf16)", info.name,
                 (int)info.compute_major, (int)info.compute_minor);
        return vp_error_set(error, VP_ERR_DEVICE, -1, "cuda", text);
    }
    cuda = (vk_cuda *)calloc(1, sizeof *cuda);
    if (!cuda) return vp_error_set(error, VP_ERR_MEMORY, -1, "engine", "no memory");
    __atomic_add_fetch(&vk_cuda_engines, 1, __ATOMIC_SEQ_CST);
    cuda->device = setup->device;
    cuda->wide = setup->wide;
    if (setup->gpu & VP_GPU_EVENTS) cuda->events_only = "as asked";
    cuda->multiprocessors = info.multiprocessor_count;
    cuda->tuned = (setup->gpu & VP_GPU_TUNED) != 0;
    cuda->library = (setup->gpu & VP_GPU_LIBRARY) != 0;
    cuda->dependent = setup->gpu & VP_GPU_DEPENDENT && info.compute_major >= 9;
    if (setup->gpu & VP_GPU_DEPENDENT && !cuda->dependent)
        vk_note(&cuda->queue, "no dependent launches: they need compute capability 9.0");
    cudaError_t status = cudaSetDevice(setup->device);
    if (status == cudaSuccess) status = vk_spin_open();
    if (status == cudaSuccess) {
        what = "cudaDeviceGetAttribute";
        status = cudaDeviceGetAttribute(&cuda->shared_most, cudaDevAttrMaxSharedMemoryPerBlockOptin, setup->device);
    }
    if (status == cudaSuccess) {
        what = "cudaStreamCreate";
        status = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
    }
    for (int i = 0; i < 2 && status == cudaSuccess; i++) {
        what = "cudaEventCreate";
        status = cudaEventCreateWithFlags(&cuda->sent[i], cudaEventDisableTiming);
    }
    if (status == cudaSuccess) {
        what = "cudaMallocHost";
        status = cudaMallocHost((void **)&cuda->staging, 2 * (size_t)VK_STAGE_BYTES);
    }
    if (status == cudaSuccess) status = cudaMallocHost((void **)&cuda->inbox, VK_INBOX_BYTES);
    result = status == cudaSuccess ? vk_cublas_open(cuda, error) : vk_cuda_fail(error, status, what);
    if (result != VP_OK) { vk_cuda_close(&cuda->queue); return result; }
    cuda->queue.stream = cuda->stream;
    if (setup->gpu & VP_GPU_WGMMA) vk_wide_open(&cuda->queue, &info);
    *queue = &cuda->queue;
    return VP_OK;
}
static void vk_cuda_describe(vk_queue *queue, char *text, size_t capacity) {
    struct cudaDeviceProp properties;
    if (!VK_TRY(cudaGetDeviceProperties(&properties, vk_cuda_of(queue)->device))) return;
    snprintf(text, capacity, "cuda:%d: %.90s, %.1f GB, compute capability %d.%d", vk_cuda_of(queue)->device,
             properties.name, (double)properties.totalGlobalMem / 1e9, properties.major, properties.minor);
}
/* the kernels that this engine uses: for single rows, and for all others */
static const char *vk_cuda_gemm(vk_queue *queue, int wide, int rows) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const char *vision = cuda->vision_tiles ? " vision" : "", *prefill = cuda->prefill_tiles ? " prefill" : "",
               *experts = wide || cuda->library ? "" : " experts";
    if (rows == 1 && !cuda->library) return cuda->no_recordings ? "gemv, kernel by kernel" : "gemv, one graph a step";
    snprintf(cuda->ways, sizeof cuda->ways, "cublas (biases: %s; tiles:%s%s%s%s)",
             cuda->lt.present ? "cublasLt" : "apart", vision, prefill, experts,
             *vision || *prefill || *experts ? "" : " none");
    return cuda->ways;
}
static uint64_t vk_cuda_free_bytes(vk_queue *queue) {
    size_t free_now = 0, total = 0;
    (void)queue;
    return cudaMemGetInfo(&free_now, &total) == cudaSuccess ? free_now : 0;
}
static void *vk_cuda_allocate(vk_queue *queue, size_t bytes) {
    vk_cuda *cuda = vk_cuda_of(queue);
    cudaError_t status = cudaMalloc((void **)&cuda->memory, bytes);
    if (status != cudaSuccess) {
        cuda->memory = NULL;
        if (status == cudaErrorMemoryAllocation) cudaGetLastError(); /* the caller reports it, with sizes */
        else vk_cuda_check(queue, status, "cudaMalloc", VK_HERE);
        return NULL;
    }
    VK_TRY(cudaMemsetAsync(cuda->memory, 0, bytes, cuda->stream));
    return cuda->memory;
}
/* Returns 1 if attention runs on tensor cores (k_attention_head..), 0 if by cuBLAS with a softmax between products. */
static int vk_cuda_has_tiles(const vk_cuda *cuda, const vk_attention_job *job) {
    return !cuda->wide && !cuda->library && (job->head_dim == 64 || job->head_dim == 128);
}
static size_t vk_cuda_score_count(const vk_cuda *cuda, const vk_attention_job *job) {
    size_t rows = job->tokens < VK_ATTENTION_ROWS ? (size_t)job->tokens : (size_t)VK_ATTENTION_ROWS;
    return vk_cuda_has_tiles(cuda, job) ? 0 : (size_t)job->heads * rows * vk_round_up((size_t)job->tokens, VK_PAD);
}
static size_t vk_widened_bytes(const vk_extent *extent) {
    size_t all = 2 * (size_t)extent->quant_values;
    return vk_round_up(all < (size_t)VK_WIDENED_BYTES ? all : (size_t)VK_WIDENED_BYTES, 256);
}
/* scratch: workspace of cuBLAS | attention scores f32 | attention weights in-type | integers as bf16 */
static size_t vk_cuda_scratch(const vk_cuda *cuda, const vk_extent *extent, size_t at[4]) {
    size_t scores = vk_max(vk_cuda_score_count(cuda, &extent->vit), vk_cuda_score_count(cuda, &extent->llm));
    at[0] = VK_WORKSPACE_BYTES;
    at[1] = at[0] + vk_round_up(scores * 4, 256);
    at[2] = at[1] + vk_round_up(scores * (extent->wide ? 4 : 2), 256);
    at[3] = at[2] + vk_widened_bytes(extent);
    return at[3];
}
static size_t vk_cuda_scratch_bytes(vk_queue *queue, const vk_extent *extent) {
    size_t at[4];
    vk_cuda_of(queue)->widened_bytes = vk_widened_bytes(extent); /* here, because counted requests allocate nothing */
    return vk_cuda_scratch(vk_cuda_of(queue), extent, at) + 256;
}
static void vk_check_experts(vk_queue *queue); /* kernels/gpu/check_experts.h */
static int vk_cuda_use(vk_queue *queue, const vk_extent *extent, void *scratch) {
    vk_cuda *cuda = vk_cuda_of(queue);
    size_t at[4];
    char *base = (char *)vk_round_up((size_t)scratch, 256);
    vk_cuda_scratch(cuda, extent, at);
#define VK_ATTEND_ROOM(kernel, width) \
    VK_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_ATTEND_BYTES(width)))
    VK_ATTEND_ROOM(k_attention_head64, 64);
    VK_ATTEND_ROOM(k_attention_head128, 128);
    VK_ATTEND_ROOM(k_attention_masked64, 64);
    VK_ATTEND_ROOM(k_attention_masked128, 128);
#undef VK_ATTEND_ROOM
    VK_TRY(cudaFuncSetAttribute(k_experts_gate_up, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_GROUP_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_experts_down, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_GROUP_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_quant_experts_gate_up, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_QUANT_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_quant_experts_down, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_QUANT_BYTES));
    if (!extent->experts || cuda->wide) cuda->encode = NULL;
    vk_wide_use(queue);
    cuda->scores = (float *)(void *)(base + at[0]);
    cuda->weights = base + at[1];
    cuda->widened = base + at[2];
    cuda->workspace = base;
    cuda->vision_tiles = vk_cuda_has_tiles(cuda, &extent->vit);
    cuda->prefill_tiles = vk_cuda_has_tiles(cuda, &extent->llm);
    vk_cublas_check(queue, cuda->blas.set_workspace(cuda->blas.handle, base, VK_WORKSPACE_BYTES), "cublasSetWorkspace",
                    VK_HERE);
    cuda->mark = (cudaEvent_t *)calloc((size_t)extent->marks, sizeof *cuda->mark);
    cuda->arrived = (cudaEvent_t *)calloc((size_t)extent->marks, sizeof *cuda->arrived);
    cuda->after = (const char **)calloc((size_t)extent->marks, sizeof *cuda->after);
    if (!cuda->mark || !cuda->arrived || !cuda->after) return 0;
    cuda->marks = extent->marks;
    for (int64_t i = 0; i < cuda->marks && VK_TRY(cudaEventCreate(&cuda->mark[i])) &&
         VK_TRY(cudaEventCreateWithFlags(&cuda->arrived[i], cudaEventDisableTiming)); i++) {}
    if (VK_TRY(cudaHostAlloc((void **)&cuda->tokens, (size_t)cuda->marks * sizeof *cuda->tokens, cudaHostAllocMapped)))
        VK_TRY(cudaHostGetDevicePointer((void **)&cuda->tokens_there, cuda->tokens, 0));
    queue->first_sent = cuda->after; /* an error before the first mark names what was sent */
    if (cuda->encode) vk_check_experts(queue);
    return !queue->error;
}

/* ---- copies */
static void vk_cuda_enter(vk_queue *queue) { VK_TRY(cudaSetDevice(vk_cuda_of(queue)->device)); }
static void *vk_cuda_stage(vk_queue *queue, void *to, size_t bytes) {
    vk_cuda *cuda = vk_cuda_of(queue);
    (void)to;
    (void)bytes;
    cuda->half ^= 1;
    if (cuda->in_flight[cuda->half] && !queue->error) VK_TRY(cudaEventSynchronize(cuda->sent[cuda->half]));
    cuda->in_flight[cuda->half] = 0;
    return cuda->staging + (size_t)cuda->half * VK_STAGE_BYTES;
}
static void vk_cuda_commit(vk_queue *queue, void *to, size_t bytes) {
    vk_cuda *cuda = vk_cuda_of(queue);
    queue->next.kind = VP_LAUNCH_COPY_TO_DEVICE;
    if (!vk_begin(queue, "copy_to_device", 0, (int64_t)bytes)) return;
    if (!VK_TRY(cudaMemcpyAsync(to, cuda->staging + (size_t)cuda->half * VK_STAGE_BYTES, bytes, cudaMemcpyHostToDevice,
                                cuda->stream)))
        return;
    vk_end(queue);
    cuda->in_flight[cuda->half] = VK_TRY(cudaEventRecord(cuda->sent[cuda->half], cuda->stream));
}
static void vk_cuda_fetch(vk_queue *queue, void *host, const void *from, size_t bytes) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int small = bytes <= VK_INBOX_BYTES;
    queue->next.kind = VP_LAUNCH_COPY_TO_HOST;
    if (!vk_begin(queue, "copy_to_host", 0, (int64_t)bytes)) return;
    if (!VK_TRY(cudaMemcpyAsync(small ? (void *)cuda->inbox : host, from, bytes, cudaMemcpyDeviceToHost, cuda->stream)))
        return;
    vk_end(queue);
    if (VK_TRY(cudaStreamSynchronize(cuda->stream)) && small) memcpy(host, cuda->inbox, bytes);
}
static void vk_cuda_copy(vk_queue *queue, void *to, const void *from, size_t bytes) {
    queue->next.kind = VP_LAUNCH_COPY;
    if (!vk_begin(queue, "copy", 0, 2 * (int64_t)bytes)) return;
    VK_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, vk_cuda_of(queue)->stream));
    vk_end(queue);
}

/* ---- products. cuBLAS is column-major: a row-major [m, n] is its [n, m]. */
/* calls vk_end for the caller's vk_begin */
static void vk_cuda_product(vk_queue *queue, void *y, int ldy, cudaDataType type, const void *x, int ldx, int m,
                            const vk_linear *linear, float beta) {
    const float one = 1.0f;
    cudaDataType in = linear->wide ? CUDA_R_32F : CUDA_R_16BF;
    vk_cublas *blas = &vk_cuda_of(queue)->blas;
    vk_cublas_check(queue,
                    blas->gemm(blas->handle, CUBLAS_OP_T, CUBLAS_OP_N, linear->n, m, linear->k_padded, &one,
                               linear->weights, in, linear->k_padded, x, in, ldx, &beta, y, type, ldy,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                    "cublasGemmEx", VK_HERE);
    vk_end(queue);
}
#include "kernels/gpu/lt_products.h"
/* One launch if cublasLt adds the bias, otherwise two: first the bias, then a product that adds to it. Both methods
 * add the bias to fp32 sums, which are rounded to bf16 for bf16 results. QuickGELU is not in any library and takes
 * another launch. */
static void vk_cuda_linear(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *linear,
                           vk_epilogue epilogue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int out_wide = cuda->wide || epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, add = epilogue == VK_ADD_F32;
    cudaDataType in = linear->wide ? CUDA_R_32F : CUDA_R_16BF, out = out_wide ? CUDA_R_32F : CUDA_R_16BF;
    const void *bias = !linear->bias || out_wide ? (const void *)linear->bias : linear->bias_bf16;
    int64_t results = (int64_t)m * linear->n, products = 2 * results * linear->k,
            operands = ((int64_t)linear->n + m) * linear->k * (linear->wide ? 4 : 2), element = out_wide ? 4 : 2,
            touched = results * element * (add ? 2 : 1);
    size_t starts = (size_t)y | (size_t)x | (size_t)linear->weights | (size_t)bias | 64; /* the arena's */
    vk_lt_shape shape = { m, linear->n, linear->k_padded, ldx, ldy, (int)in, (int)out, (int)(starts & (~starts + 1)),
                          linear->bias != NULL };
    vk_lt_job job = {y, x, linear->weights, bias, add ? 1.0f : 0.0f};
    if (linear->bits) { vk_quant_linear(queue, y, ldy, x, ldx, m, linear, epilogue); return; }
    vk_lt_plan *plan = (linear->bias || cuda->tuned) && !queue->error ? vk_lt_find(queue, &shape, &job) : NULL;
    if (plan) {
        vk_shape(queue, m, linear->n, linear->k, 0);
        if (vk_begin(queue, linear->bias ? "gemm_bias" : "gemm", products + results * (add + (linear->bias != NULL)),
                     operands + touched + (linear->bias ? element * linear->n : 0)))
            vk_lt_product(queue, plan, &job);
    } else {
        int onto = add || linear->bias; /* the product adds to what y contains */
        vk_shape(queue, m, linear->n, 0, 0);
        if (linear->bias)
            LAUNCH(k_bias_rows, m, vk_threads_for(linear->n), add ? results : 0, touched + 4 * linear->n, y,
                   linear->bias, linear->n, ldy, add, out_wide);
        vk_shape(queue, m, linear->n, linear->k, 0);
        if (vk_begin(queue, "gemm", products + (onto ? results : 0), operands + results * element * (onto ? 2 : 1)))
            vk_cuda_product(queue, y, ldy, out, x, ldx, m, linear, onto ? 1.0f : 0.0f);
    }
    if (epilogue == VK_GELU || epilogue == VK_GELU_TANH) {
        vk_shape(queue, m, linear->n, 0, 0);
        LAUNCH(k_gelu, m, vk_threads_for(linear->n), vk_gelu_flops(epilogue) * results, 2 * results * element, y,
               linear->n, ldy, epilogue == VK_GELU_TANH, out_wide);
    } else if (epilogue == VK_QUICKGELU) {
        int vectors = !out_wide && (size_t)y % 16 == 0 && ldy % 8 == 0 ? linear->n / 8 : 0;
        vk_shape(queue, m, linear->n, 0, 0);
        LAUNCH(k_quickgelu, m, vk_threads_for(vectors ? vectors : linear->n), vk_gelu_flops(epilogue) * results,
               2 * results * element, y, linear->n, ldy, vectors, out_wide);
    }
}
static void vk_cuda_grouped(vk_queue *queue, const vk_gemm_job *jobs, int count, vk_epilogue epilogue) {
    for (int i = 0; i < count; i++)
        if (jobs[i].m > 0)
            vk_cuda_linear(queue, jobs[i].y, jobs[i].ldy, jobs[i].x, jobs[i].ldx, jobs[i].m, jobs[i].w, epilogue);
}
static void vk_experts_add(vk_queue *queue, const vk_experts_job *job) {
    int64_t pairs = job->pairs, rows = pairs / job->top_k, n = job->down->n;
    vk_shape(queue, rows, n, 0, 0);
    LAUNCH(k_experts_sum, rows, vk_threads_for((int)(n + 7) / 8), pairs * n, 2 * pairs * n + 8 * rows * n + 4 * pairs,
           job->stream, (const uint16_t *)job->y, job->slot_row, job->top_k, (int)n, job->ldy);
}
/* sends both products by mma.sync, with the FLOPs that vk_cuda_experts counts */
static void vk_tiles_experts_send(vk_queue *queue, const vk_experts_job *job, const int64_t flops[2],
                                  const int64_t bytes[2]) {
    const vk_linear *up = job->gate_up, *down = job->down;
    int64_t pairs = job->pairs, hit = pairs < job->experts ? pairs : job->experts,
            tiles = pairs / VK_GROUP_ROWS + job->experts, expert_dim = up->n / 2;
    int columns = (int)((expert_dim + VK_GROUP_COLUMNS / 2 - 1) / (VK_GROUP_COLUMNS / 2)),
        columns_down = (down->n + VK_GROUP_COLUMNS - 1) / VK_GROUP_COLUMNS;
    vk_shape(queue, pairs, up->n, up->k, hit);
    LAUNCH_SHARED(k_experts_gate_up, tiles * columns, VK_GROUP_THREADS, VK_GROUP_BYTES, flops[0], bytes[0],
                  (uint16_t *)job->hidden, (const uint16_t *)job->x, (const char *)up->weights, job->gate_up_stride,
                  job->tiles, job->start, job->list, columns, (int)expert_dim, up->k_padded, job->ldx, down->k_padded,
                  job->top_k);
    vk_shape(queue, pairs, down->n, down->k, hit);
    LAUNCH_SHARED(k_experts_down, tiles * columns_down, VK_GROUP_THREADS, VK_GROUP_BYTES, flops[1], bytes[1],
                  (uint16_t *)job->y, (const uint16_t *)job->hidden, (const char *)down->weights, job->down_stride,
                  job->tiles, job->start, job->list, job->weight, columns_down, down->n, down->k_padded, down->k_padded,
                  job->ldy);
}
/* FLOPs are those of all pairs. Only the device knows which experts they use: weights are counted as if all experts
 * were used, or one per pair if that is fewer. */
static void vk_cuda_experts(vk_queue *queue, const vk_experts_job *job) {
    const vk_linear *up = job->gate_up, *down = job->down;
    int64_t pairs = job->pairs, hit = pairs < job->experts ? pairs : job->experts, expert_dim = up->n / 2;
    const int64_t flops[2] = {pairs * (2 * (int64_t)up->n * up->k + 4 * expert_dim),
                              pairs * (2 * (int64_t)down->n * down->k + down->n)},
                  bytes[2] = {hit * vk_weight_bytes(up) + 2 * (pairs / job->top_k * up->k + pairs * expert_dim)
                                  + 4 * pairs,
                              hit * vk_weight_bytes(down) + 2 * (pairs * down->k + pairs * down->n) + 8 * pairs};
    if (up->bits) {
        vk_quant_experts_send(queue, job, pairs / VK_GROUP_ROWS + job->experts, flops, bytes);
        vk_experts_add(queue, job);
        return;
    }
    if (!vk_wide_experts_send(queue, job, flops, bytes)) vk_tiles_experts_send(queue, job, flops, bytes);
    vk_experts_add(queue, job);
}
#include "kernels/gpu/check_experts.h"
/* One of the two products of attention over `rows` queries: y = a b for all heads. Heads that read different keys are
 * one call. Heads of b are hd apart, those of a a_head, those of y y_head; several heads of a and y share one of b. */
typedef struct vk_attend_product {
    cublasOperation_t b_as;
    int columns, rows, depth, lda, ldb, ldy, hd;
    long long a_head, y_head;
    cudaDataType in, out;
} vk_attend_product;
static void vk_cuda_attend_product(vk_queue *queue, const vk_attention_job *job, const vk_attend_product *product,
                                   void *y, const void *a, const void *b, const char *what) {
    vk_cublas *blas = &vk_cuda_of(queue)->blas;
    const float one = 1.0f, zero = 0.0f;
    int group = job->heads / job->kv_heads;
    size_t in = product->in == CUDA_R_32F ? 4 : 2, out = product->out == CUDA_R_32F ? 4 : 2;
    for (int i = 0; i < group; i++)
        vk_cublas_check(queue,
                        blas->gemm_strided(blas->handle, product->b_as, CUBLAS_OP_N, product->columns, product->rows,
                                           product->depth, &one, b, product->in, product->ldb, product->hd,
                                           (const char *)a + (size_t)i * (size_t)product->a_head * in, product->in,
                                           product->lda, product->a_head * group, &zero,
                                           (char *)y + (size_t)i * (size_t)product->y_head * out, product->out,
                                           product->ldy, product->y_head * group, job->kv_heads, CUBLAS_COMPUTE_32F,
                                           CUBLAS_GEMM_DEFAULT),
                        what, VK_HERE);
}
/* queries in chunks: scores = q k^T, softmax, y = weights v */
static void vk_cuda_attend(vk_queue *queue, const vk_attention_job *job, int sequence, int first, int rows) {
    vk_cuda *cuda = vk_cuda_of(queue);
    size_t element = cuda->wide ? 4 : 2, from = (size_t)sequence * (size_t)job->tokens;
    cudaDataType type = cuda->wide ? CUDA_R_32F : CUDA_R_16BF;
    int keys = job->causal && !job->reach ? first + rows : job->tokens,
        ld = (int)vk_round_up((size_t)job->tokens, VK_PAD), hd = job->head_dim;
    const char *q = (const char *)job->q + (from + (size_t)first) * (size_t)job->ldq * element;
    const char *k = (const char *)job->k + from * (size_t)job->ldk * element,
               *v = (const char *)job->v + from * (size_t)job->ldk * element;
    char *y = (char *)job->y + (from + (size_t)first) * (size_t)job->ldy * element;
    /* counts the scores that causal attention needs, not the full squares that are computed */
    int64_t seen = job->scores   ? job->scores * rows / job->tokens
                   : job->causal ? (int64_t)rows * first + (int64_t)rows * (rows + 1) / 2
                                 : (int64_t)rows * keys,
            scores = job->heads * seen, products = 2 * scores * hd,
            in_and_out = ((int64_t)rows * job->heads + (int64_t)keys * job->kv_heads) * hd * (int64_t)element;
    vk_attend_product product = {CUBLAS_OP_T,          keys, rows,      hd, job->ldq, job->ldk, ld, hd, hd,
                                 (long long)rows * ld, type, CUDA_R_32F};
    vk_shape(queue, 1, rows, keys, (int64_t)job->heads * hd);
    if (vk_begin(queue, "attention_scores", products, in_and_out + scores * 4)) {
        vk_cuda_attend_product(queue, job, &product, cuda->scores, q, k, "cublasGemmStridedBatchedEx (q k)");
        vk_end(queue);
    }
    vk_shape(queue, (int64_t)job->heads * rows, keys, 0, 0);
    LAUNCH(k_softmax_rows, (job->heads * rows + VK_BLOCK_MAX / 32 - 1) / (VK_BLOCK_MAX / 32), VK_BLOCK_MAX, 5 * scores,
           scores * (4 + (int64_t)element), cuda->weights, (const float *)cuda->scores, job->heads * rows, rows,
           job->causal ? first + 1 : keys, keys, ld, job->causal, job->reach, job->gone, job->window,
           1.0f / sqrtf((float)hd), cuda->wide);
    product.b_as = CUBLAS_OP_N;
    product.columns = hd;
    product.depth = keys;
    product.lda = ld;
    product.ldy = job->ldy;
    product.a_head = (long long)rows * ld;
    product.y_head = hd;
    product.out = type;
    vk_shape(queue, 1, rows, keys, (int64_t)job->heads * hd);
    if (vk_begin(queue, "attention_values", products, in_and_out + scores * (int64_t)element)) {
        vk_cuda_attend_product(queue, job, &product, y, cuda->weights, v, "cublasGemmStridedBatchedEx (weights v)");
        vk_end(queue);
    }
}
/* all sequences in one launch */
static void vk_cuda_attend_tiles(vk_queue *queue, const vk_attention_job *job) {
    int64_t tokens = job->tokens, scores = vk_attention_scores(job), flops = scores * (4 * (int64_t)job->head_dim + 5),
            bytes = (int64_t)job->batch * tokens * (job->heads + job->kv_heads) * job->head_dim * 2 * 2;
    int row_blocks = (job->tokens + VK_ATTEND_ROWS - 1) / VK_ATTEND_ROWS, group = job->heads / job->kv_heads;
    int64_t blocks = (int64_t)job->batch * job->heads * row_blocks;
    float scale = 1.44269504f / sqrtf((float)job->head_dim);
    vk_shape(queue, job->batch, tokens, tokens, (int64_t)job->heads * job->head_dim);
#define VK_ATTEND_LAUNCH(kernel, width, ...) \
    LAUNCH_SHARED(kernel, blocks, VK_ATTEND_THREADS, VK_ATTEND_BYTES(width), flops, bytes, (uint16_t *)job->y, \
                  (const uint16_t *)job->q, (const uint16_t *)job->k, (const uint16_t *)job->v, row_blocks, \
                  job->heads, group, job->tokens, job->ldy, job->ldq, job->ldk, job->causal, scale __VA_ARGS__)
    if (job->reach || job->window) {
        if (job->head_dim == 64) VK_ATTEND_LAUNCH(k_attention_masked64, 64, , job->reach, job->gone, job->window);
        else VK_ATTEND_LAUNCH(k_attention_masked128, 128, , job->reach, job->gone, job->window);
    } else if (job->head_dim == 64) VK_ATTEND_LAUNCH(k_attention_head64, 64, );
    else VK_ATTEND_LAUNCH(k_attention_head128, 128, );
#undef VK_ATTEND_LAUNCH
}
static void vk_cuda_attention(vk_queue *queue, const vk_attention_job *job) {
    if (vk_cuda_has_tiles(vk_cuda_of(queue), job)) { vk_cuda_attend_tiles(queue, job); return; }
    for (int s = 0; s < job->batch; s++)
        for (int first = 0; first < job->tokens; first += VK_ATTENTION_ROWS)
            vk_cuda_attend(queue, job, s, first,
                           job->tokens - first < VK_ATTENTION_ROWS ? job->tokens - first : VK_ATTENTION_ROWS);
}

/* ---- time */
static int64_t vk_cuda_elapsed(vk_queue *queue, cudaEvent_t from, cudaEvent_t to) {
    float ms = 0.0f;
    VK_TRY(cudaEventElapsedTime(&ms, from, to));
    return (int64_t)((double)ms * 1e6 + 0.5);
}
#include "kernels/gpu/cupti.h"

static int64_t vk_cuda_mark(vk_queue *queue, int slot, const int32_t *token) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int timed = queue->timing != VP_TIMING_OFF;
    if (queue->error) return 0;
    if (slot == 0 && !queue->log) vk_cupti_stop(queue); /* the previous profiled request failed */
    if (token && cuda->library)
        VK_TRY(cudaMemcpyAsync(&cuda->tokens[slot], token, sizeof *token, cudaMemcpyDeviceToHost, cuda->stream));
    if (timed) VK_TRY(cudaEventRecord(cuda->mark[slot], cuda->stream));
    else if (token) VK_TRY(cudaEventRecord(cuda->arrived[slot], cuda->stream));
    if (queue->error) return 0;
    queue->stamps += timed;
    cuda->last_mark = slot;
    cuda->after[slot] = NULL;
    queue->first_sent = &cuda->after[slot];
    if (slot == 0 && queue->log) { /* read clocks after the device passed mark 0: no launch is later than its kernel */
        VK_TRY(cudaEventSynchronize(cuda->mark[0]));
        cuda->host_zero_ns = VK_HOST_CLOCK();
        if (queue->traced) {
            uint64_t now = 0;
            vk_cupti.timestamp(&now);
            cuda->cupti_zero_ns = (int64_t)now;
        }
    }
    return timed ? vp_clock_ns() : 0;
}
/* Returns 1 if an earlier kernel may be the cause: a call that waits failed, or the error is one of a running kernel */
static int vk_is_late(const vk_queue *queue) {
    return !getenv("CUDA_LAUNCH_BLOCKING")
           && (strstr(queue->error_at, "Synchronize")
               || (queue->error >= cudaErrorIllegalAddress && queue->error <= cudaErrorLaunchFailure)
               || queue->error == VK_CUBLAS_ERROR + CUBLAS_STATUS_EXECUTION_FAILED);
}
/* appends what may work: a run without the switches, or with nothing but the library's products */
static void vk_way_out(const vk_cuda *cuda, char *text, size_t capacity) {
    const int has_words = cuda->encode || cuda->dependent || cuda->tuned;
    size_t used = strlen(text);
    if (!cuda->library)
        snprintf(text + used, capacity - used, has_words ? "; leave out --gpu%s%s%s" : "; try --gpu library%s%s%s",
                 cuda->encode ? " wgmma" : "", cuda->dependent ? " dependent" : "", cuda->tuned ? " tuned" : "");
}
static vp_result vk_cuda_wait(vk_queue *queue, int slot, vp_error *error) {
    vk_cuda *cuda = vk_cuda_of(queue);
    char text[500], where[64];
    const char *first = cuda->after ? cuda->after[cuda->reached] : NULL;
    if (!queue->error)
        VK_TRY(cudaEventSynchronize(queue->timing == VP_TIMING_OFF ? cuda->arrived[slot] : cuda->mark[slot]));
    if (!queue->error) {
        cuda->reached = slot;
        return VP_OK;
    }
    snprintf(where, sizeof where, "%.*s", (int)strcspn(queue->error_at, "( "), queue->error_at);
    if (queue->error >= VK_CUBLAS_ERROR)
        snprintf(text, sizeof text, "cuBLAS status %d (%s:%d)", queue->error - VK_CUBLAS_ERROR, queue->file,
                 queue->line);
    else
        snprintf(text, sizeof text, "%s (%s, %s:%d)", cudaGetErrorString((cudaError_t)queue->error),
                 cudaGetErrorName((cudaError_t)queue->error), queue->file, queue->line);
    size_t used = strlen(text);
    int is_memory = queue->error == cudaErrorMemoryAllocation
                    || queue->error == VK_CUBLAS_ERROR + CUBLAS_STATUS_ALLOC_FAILED;
    if (vk_is_late(queue) && first && queue->last_sent)
        snprintf(text + used, sizeof text - used, "; sent since the device was last known to work: %s .. %s; "
                 "CUDA_LAUNCH_BLOCKING=1 names the kernel", first, queue->last_sent);
    vk_spin_tell(text, sizeof text);
    if (!is_memory) vk_way_out(cuda, text, sizeof text);
    return vp_error_set(error, is_memory ? VP_ERR_MEMORY : VP_ERR_DEVICE, -1, where, text);
}
static int64_t vk_cuda_between(vk_queue *queue, int from, int to) {
    return vk_cuda_elapsed(queue, vk_cuda_of(queue)->mark[from], vk_cuda_of(queue)->mark[to]);
}
static int32_t vk_cuda_token(vk_queue *queue, int slot, int position) {
    const vk_cuda *cuda = vk_cuda_of(queue);
    return cuda->tokens[cuda->library ? slot : position % cuda->marks];
}
static void vk_stamp_launch(vk_queue *queue, int64_t index, int end) {
    vk_timer *timer = &vk_cuda_of(queue)->timer[index];
    vp_launch *launch = &queue->log[index];
    if (queue->error) return;
    if (end) launch->host_ns = VK_HOST_CLOCK() - launch->host_begin_ns;
    if (end && queue->traced) vk_cupti_leave();
    if (!end) {
        if (queue->traced) vk_cupti_enter(index);
        launch->host_begin_ns = VK_HOST_CLOCK();
        timer->kernel = queue->next.kernel;
        timer->mark = vk_cuda_of(queue)->last_mark;
        timer->longest_ns = 0;
    }
    if (queue->traced) return;
    VK_TRY(cudaEventRecord(timer->event[end], vk_cuda_of(queue)->stream));
    queue->stamps++;
}
static void vk_stamp_node(vk_queue *queue, int64_t index) {
    vk_cuda *cuda = vk_cuda_of(queue);
    vp_launch *launch = &queue->log[index];
    launch->node = (int32_t)(index - cuda->graph_launch) + 1;
    launch->host_begin_ns = cuda->graph_begin_ns;
    launch->host_ns = cuda->graph_ns; /* divided among the nodes once all are known */
    cuda->timer[index].kernel = queue->next.kernel;
    cuda->timer[index].mark = cuda->last_mark;
    cuda->timer[index].longest_ns = 0;
}
static int vk_cuda_reserve_log(vk_queue *queue, int64_t count) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (count > cuda->timers) {
        vk_timer *grown = (vk_timer *)realloc(cuda->timer, (size_t)count * sizeof *grown);
        if (!grown) return 0;
        memset(grown + cuda->timers, 0, (size_t)(count - cuda->timers) * sizeof *grown);
        cuda->timer = grown;
        cuda->timers = count;
    }
    vk_cupti_start(queue);
    if (queue->traced) return 1;
    for (; cuda->timers_with_events < count; cuda->timers_with_events++) {
        vk_timer *timer = &cuda->timer[cuda->timers_with_events];
        if (VK_TRY(cudaEventCreate(&timer->event[0])) && VK_TRY(cudaEventCreate(&timer->event[1]))) continue;
        if (timer->event[0]) cudaEventDestroy(timer->event[0]);
        timer->event[0] = NULL;
        return 0;
    }
    return 1;
}
/* registers and shared memory of a kernel; 0 if the driver does not report them */
static vk_kernel_facts vk_cuda_facts(vk_cuda *cuda, const void *kernel) {
    struct cudaFuncAttributes attributes;
    vk_kernel_facts facts = {kernel, 0, 0};
    int at = 0;
    while (at < VK_FACTS && cuda->facts[at].kernel && cuda->facts[at].kernel != kernel) at++;
    if (at < VK_FACTS && cuda->facts[at].kernel) return cuda->facts[at];
    if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess) {
        facts.registers = (uint32_t)attributes.numRegs;
        facts.shared_bytes = (uint32_t)attributes.sharedSizeBytes;
    } else cudaGetLastError(); /* clears the error, as in vk_cuda_check */
    if (at < VK_FACTS) cuda->facts[at] = facts;
    return facts;
}
/* The host's and the device's clocks drift apart by a few us per second. If launches appear after their kernels, they
 * and all later ones are moved back by the smallest drift that explains it. Launches between two marks move
 * together. */
static void vk_cuda_align_host(vk_queue *queue) {
    const vk_timer *timer = vk_cuda_of(queue)->timer;
    int64_t drift = 0;
    for (int64_t first = 0, end; first < queue->log_count; first = end) {
        for (end = first; end < queue->log_count && timer[end].mark == timer[first].mark; end++) {
            int64_t late = queue->log[end].host_begin_ns - queue->log[end].begin_ns;
            if (late > drift) drift = late;
        }
        for (int64_t i = first; i < end; i++) queue->log[i].host_begin_ns -= drift;
    }
}
/* Events report float milliseconds. The time of a launch is measured from the mark before it (of its stage or decode
 * step), so resolution does not degrade during a long request and rounding never moves a launch out of its
 * stage. */
static void vk_cuda_read_events(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int64_t at_mark = 0;
    int mark = 0;
    for (int64_t i = 0; i < queue->log_count && !queue->error; i++) {
        vp_launch *launch = &queue->log[i];
        const vk_timer *timer = &cuda->timer[i];
        if (timer->mark != mark) at_mark += vk_cuda_elapsed(queue, cuda->mark[mark], cuda->mark[timer->mark]);
        mark = timer->mark;
        launch->begin_ns = at_mark + vk_cuda_elapsed(queue, cuda->mark[mark], timer->event[0]);
        launch->ns = at_mark + vk_cuda_elapsed(queue, cuda->mark[mark], timer->event[1]) - launch->begin_ns;
    }
}
static int vk_cuda_read_log(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (!queue->traced) vk_cuda_read_events(queue);
    else if (!vk_cupti_finish(queue)) return 0;
    for (int64_t i = 0; i < queue->log_count; i++) {
        vp_launch *launch = &queue->log[i];
        launch->host_begin_ns -= cuda->host_zero_ns;
        if (!cuda->timer[i].kernel) continue;
        launch->registers = vk_cuda_facts(cuda, cuda->timer[i].kernel).registers;
        launch->shared_bytes += vk_cuda_facts(cuda, cuda->timer[i].kernel).shared_bytes;
    }
    vk_cuda_align_host(queue);
    return 1;
}
/* Waits for the work that a failed call left behind. Every call, including this one, returns an error if the device
 * cannot recover. */
static void vk_cuda_recover(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (cudaSetDevice(cuda->device) != cudaSuccess || cudaStreamSynchronize(cuda->stream) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    queue->error = 0;
    cuda->in_flight[0] = cuda->in_flight[1] = 0;
}

/* ---- memory outside the arena */
static uint64_t vk_cuda_pinned_bytes(vk_queue *queue) {
    return 2 * (uint64_t)VK_STAGE_BYTES + VK_INBOX_BYTES + (uint64_t)vk_cuda_of(queue)->marks * sizeof(int32_t);
}
static void *vk_cuda_borrow(vk_queue *queue, size_t bytes) {
    void *memory = NULL;
    cudaError_t status = cudaMalloc(&memory, bytes);
    if (status == cudaErrorMemoryAllocation) { cudaGetLastError(); return NULL; } /* the caller reports it */
    if (!vk_cuda_check(queue, status, "cudaMalloc", VK_HERE)) return NULL;
    VK_TRY(cudaMemsetAsync(memory, 0x3c, bytes, vk_cuda_of(queue)->stream));
    return memory;
}
static void vk_cuda_give_back(vk_queue *queue, void *memory, size_t bytes) {
    (void)bytes;
    if (!memory) return;
    cudaStreamSynchronize(vk_cuda_of(queue)->stream);
    VK_TRY(cudaFree(memory));
}

/* ---- recorded steps. Recording helps but is not necessary: if it fails, steps are sent kernel by kernel from then
 * on. */
static void vk_cuda_give_up_recording(vk_queue *queue, cudaError_t status, const char *what) {
    char text[160];
    vk_cuda_of(queue)->no_recordings = 1;
    cudaGetLastError(); /* clears the error, as in vk_cuda_check */
    snprintf(text, sizeof text, "decode steps are not replayed as a graph: %s: %.90s", what,
             cudaGetErrorString(status));
    vk_note(queue, text);
}
static int vk_cuda_replay(vk_queue *queue, uint64_t key) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (queue->error) return 1;
    for (int i = 0; i < VK_RECORDINGS && !cuda->no_recordings; i++)
        if (cuda->recordings[i].steps && cuda->recordings[i].key == key) {
            if (queue->traced) vk_cupti_enter(queue->log_count);
            cuda->graph_launch = queue->log_count;
            if (queue->traced) cuda->graph_begin_ns = VK_HOST_CLOCK();
            cudaError_t status = cudaGraphLaunch(cuda->recordings[i].steps, cuda->stream);
            if (queue->traced) cuda->graph_ns = VK_HOST_CLOCK() - cuda->graph_begin_ns;
            if (queue->traced) vk_cupti_leave();
            /* an unknown part of the graph was sent: this request fails, and the next one does not use the graph */
            if (status != cudaSuccess) vk_cuda_give_up_recording(queue, status, "cudaGraphLaunch");
            vk_cuda_check(queue, status, "cudaGraphLaunch", VK_HERE);
            return 1;
        }
    return 0;
}
static int vk_cuda_record(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (queue->error) return 0;
    if (cuda->no_recordings) return 0;
    cudaError_t status = cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal);
    if (status != cudaSuccess) vk_cuda_give_up_recording(queue, status, "cudaStreamBeginCapture");
    return status == cudaSuccess;
}
static void vk_cuda_keep(vk_queue *queue, uint64_t key) {
    vk_cuda *cuda = vk_cuda_of(queue);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t steps = NULL;
    vk_recording *oldest = &cuda->recordings[cuda->next_recording];
    const char *what = queue->error_at;
    /* called even after a failure: the stream must not keep capturing */
    cudaError_t status = cudaStreamEndCapture(cuda->stream, &graph), ended = status;
    if (queue->error) {
        /* nothing that was recorded has run, so only the recording failed; if the device is lost, the next call
         * reports it */
        status = queue->error < VK_CUBLAS_ERROR ? (cudaError_t)queue->error : cudaErrorStreamCaptureInvalidated;
        queue->error = 0;
    } else if (ended != cudaSuccess) what = "cudaStreamEndCapture";
    else { what = "cudaGraphInstantiate"; status = cudaGraphInstantiate(&steps, graph, 0); }
    /* uploaded here, because a warm-up of two tokens does not reach the first replay */
    if (steps && status == cudaSuccess) { what = "cudaGraphUpload"; status = cudaGraphUpload(steps, cuda->stream); }
    if (steps && status != cudaSuccess) cudaGraphExecDestroy(steps);
    if (graph) cudaGraphDestroy(graph);
    if (status != cudaSuccess) { vk_cuda_give_up_recording(queue, status, what); return; }
    if (oldest->steps) cudaGraphExecDestroy(oldest->steps);
    oldest->key = key;
    oldest->steps = steps;
    cuda->next_recording = (cuda->next_recording + 1) % VK_RECORDINGS;
}

/* ================================================================================================== decode >>decode
 * One token through the language model: 6 kernels per block and 3 around them, recorded as one graph. They depend only
 * on data on the device.
 *
 * A step reads 2.4 GB of weights and cache once and computes very little, so the goal is to keep memory
 * busy. Little's law for an H200: 4.3 TB/s times about 0.8 us of latency is 3.4 MB in flight, 26 kB on each of its
 * 132 multiprocessors. Hence:
 *  - A warp sums a row of weights. Each lane requests VK_FLIGHT vectors of 16 bytes before it uses the first: 4 kB per
 *    warp, 32 kB per block of 8 warps. With at most 128 registers per thread, two such blocks fit on a multiprocessor:
 *    twice the number needed, so one of them may compute or finish.
 *  - The first weights are requested before the block reads x, so that norms, merging and barriers overlap with their
 *    arrival.
 *  - Small work (norms, the merge of attention, the choice of experts, silu) is repeated by every block that needs it,
 *    while loading shared memory: reading 16 kB from the second-level cache costs less than a separate kernel, which
 *    takes about 1.5 us between neighbours in a graph.
 * A grid has as many blocks as the GPU can run at once (vk_resident), if there are enough rows; blocks walk the rows
 * in strides of the grid. One warp sums a row in an order that does not depend on the grid, and there are no atomic
 * additions: the same input gives the same bits.
 *
 * bf16 and fp32 use the same kernels; fp32 reads twice the bytes. If the rows of a head are not whole vectors of 16
 * bytes, or have more vectors than a warp has lanes, the shared kernels k_qk_norm_rope and k_attention_decode are
 * used instead. */
enum {
    VK_FLIGHT = 8,
    VK_FLIGHT_MOST = 16, /* for the router, whose rows are f32 and whose few blocks have no other work */
    VK_STRIP = 1024,     /* vectors of x in shared memory at a time: 16 kB, all of x in current models */
    VK_DECODE_THREADS = 256,
    VK_ATTENTION_THREADS = 512, /* one or two blocks per multiprocessor */
    VK_ATTENTION_FLIGHT = 3,    /* 48 kB each of keys and values in flight per block, in 64 registers per thread */
    VK_ROUTER_THREADS = 128     /* few rows: small blocks reach more multiprocessors */
};
#ifdef __CUDACC__
#define VK_UNROLLED _Pragma("unroll")
#define VK_UNROLLED_BY_2 _Pragma("unroll 2")
#define VK_UNROLLED_BY_8 _Pragma("unroll 8")
/* a hint: this will be read soon */
#define VK_AHEAD_OF(p) asm volatile("prefetch.global.L1 [%0];" ::"l"(p))
#define VK_AHEAD_IN_L2(p) asm volatile("prefetch.global.L2 [%0];" ::"l"(p))
#else
#define VK_AHEAD_OF(p) ((void)(p))
#define VK_AHEAD_IN_L2(p) cuda_on_cpu_prefetch(p)
#define VK_UNROLLED
#define VK_UNROLLED_BY_2
#define VK_UNROLLED_BY_8
#endif

#include "kernels/gpu/dependent.h"

/* Fetches vectors first + lane, first + lane + 32, .. of a row of `count`. Weights are read once; data that all blocks
 * read stay in the caches. */
FN void vk_fetch(const int flight, uint4 *out, const uint4 *row, int first, int count) {
    VK_UNROLLED for (int j = 0; j < flight; j++) {
        int i = first + (TID & 31) + 32 * j;
        out[j] = i < count ? __ldcs(row + i) : make_uint4(0, 0, 0, 0);
    }
}
FN void vk_fetch_again(const int flight, uint4 *out, const uint4 *row, int first, int count) {
    VK_UNROLLED for (int j = 0; j < flight; j++) {
        int i = first + (TID & 31) + 32 * j;
        out[j] = i < count ? row[i] : make_uint4(0, 0, 0, 0);
    }
}
FN float vk_low(unsigned pair) { return __uint_as_float(pair << 16); }
FN float vk_high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
FN void vk_unpack(float out[8], uint4 packed, int wide) {
    out[0] = wide ? __uint_as_float(packed.x) : vk_low(packed.x);
    out[1] = wide ? __uint_as_float(packed.y) : vk_high(packed.x);
    out[2] = wide ? __uint_as_float(packed.z) : vk_low(packed.y);
    out[3] = wide ? __uint_as_float(packed.w) : vk_high(packed.y);
    out[4] = wide ? 0.0f : vk_low(packed.z);
    out[5] = wide ? 0.0f : vk_high(packed.z);
    out[6] = wide ? 0.0f : vk_low(packed.w);
    out[7] = wide ? 0.0f : vk_high(packed.w);
}
FN float vk_dot_narrow(float sum, uint4 left, uint4 right) {
    float low = vk_low(left.x) * vk_low(right.x) + vk_low(left.y) * vk_low(right.y) + vk_low(left.z) * vk_low(right.z)
                + vk_low(left.w) * vk_low(right.w);
    float high = vk_high(left.x) * vk_high(right.x) + vk_high(left.y) * vk_high(right.y)
                 + vk_high(left.z) * vk_high(right.z) + vk_high(left.w) * vk_high(right.w);
    return sum + (low + high);
}
FN float vk_dot_wide(float sum, uint4 left, uint4 right) {
    return sum
           + ((__uint_as_float(left.x) * __uint_as_float(right.x) + __uint_as_float(left.y) * __uint_as_float(right.y))
              + (__uint_as_float(left.z) * __uint_as_float(right.z)
                 + __uint_as_float(left.w) * __uint_as_float(right.w)));
}
/* sum + the products of the vectors from vk_fetch with the same vectors of the input */
FN float vk_products(const int flight, float sum, const uint4 *fetched, const uint4 *input, int first, int count,
                     int wide) {
    if (wide) {
        VK_UNROLLED for (int j = 0; j < flight; j++) {
            int i = first + (TID & 31) + 32 * j;
            if (i < count) sum = vk_dot_wide(sum, fetched[j], input[i]);
        }
    } else {
        VK_UNROLLED for (int j = 0; j < flight; j++) {
            int i = first + (TID & 31) + 32 * j;
            if (i < count) sum = vk_dot_narrow(sum, fetched[j], input[i]);
        }
    }
    return sum;
}

/* the source of a linear's x (known when the kernel is compiled), and the part of x that is in shared memory */
typedef enum vk_origin { VK_NORM_OF_X, VK_MERGED, VK_PLAIN } vk_origin;
typedef struct vk_input {
    vk_origin origin;
    const float *x, *norm;       /* f32 [d]: norm * x / rms(x), or only x if norm is NULL */
    const float *partial;        /* or the merged results of vk_decode_attend */
    const uint4 *plain;          /* or this, unchanged */
    float eps, scale;            /* scale: 1 / rms(x), 0 before it is known */
    int d, head_dim, wide, held; /* held: first vector of the loaded strip, -1 if none */
    int waited;                  /* 1 after waiting for the kernel that makes x */
} vk_input;
FN vk_input vk_input_norm(const float *x, const float *norm, int width, float eps, int wide) {
    vk_input in = {VK_NORM_OF_X, x, norm, NULL, NULL, eps, norm ? 0.0f : 1.0f, width, 0, wide, -1, 0};
    return in;
}
/* 4 columns of the merged splits: sum of weight * value over sum of weights, with each split relative to its own
 * largest score */
FN void vk_merge_columns(float out[4], const float *partial, int column, int width, int head_dim) {
    int heads = width / head_dim, head = column / head_dim;
    const float2 *tops = (const float2 *)(const void *)(partial + (size_t)VK_SPLITS * (size_t)width) + head;
    float2 top[VK_SPLITS];
    float4 sum[VK_SPLITS];
    float most = -INFINITY, weights = 0.0f;
    VK_UNROLLED for (int s = 0; s < VK_SPLITS; s++) {
        top[s] = tops[s * heads];
        sum[s] = *(const float4 *)(const void *)(partial + (size_t)s * (size_t)width + (size_t)column);
    }
    VK_UNROLLED for (int s = 0; s < VK_SPLITS; s++) most = top[s].x > most ? top[s].x : most;
    out[0] = out[1] = out[2] = out[3] = 0.0f;
    VK_UNROLLED for (int s = 0; s < VK_SPLITS; s++) {
        /* 0 for a split that found nothing; the last one always found something */
        float weight = vk_exp(top[s].x - most);
        weights += weight * top[s].y;
        out[0] += weight * sum[s].x;
        out[1] += weight * sum[s].y;
        out[2] += weight * sum[s].z;
        out[3] += weight * sum[s].w;
    }
    for (int c = 0; c < 4; c++) out[c] /= weights;
}
/* 4 columns of a row of `width`, zeros after it. 16 bytes are read even if fewer belong to the row: no allocation of
 * the arena ends there. */
FN float4 vk_columns(const float *row, int column, int width) {
    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (column < width) four = *(const float4 *)(const void *)(row + column);
    if (column + 1 >= width) four.y = 0.0f;
    if (column + 2 >= width) four.z = 0.0f;
    if (column + 3 >= width) four.w = 0.0f;
    return four;
}
/* a thread's part of a row's sum of squares */
FN float vk_squares(const float *row, int width) {
    float sum = 0.0f;
    VK_UNROLLED_BY_2 for (int i = 4 * TID; i < width; i += 4 * NTID) {
        float4 four = vk_columns(row, i, width);
        sum += four.x * four.x + four.y * four.y + (four.z * four.z + four.w * four.w);
    }
    return sum;
}
/* computes the scale that a norm needs before its first column; all threads of the block call this together */
FN void vk_input_ready(vk_input *in) {
    if (in->origin != VK_NORM_OF_X || in->scale != 0.0f) return;
    for (int i = 32 * TID; i < in->d; i += 32 * NTID) VK_AHEAD_OF(in->norm + i); /* arrives while x is summed */
    in->scale = 1.0f / sqrtf(block_sum(vk_squares(in->x, in->d)) / (float)in->d + in->eps);
}
/* columns column .. column + 3 of x, zeros after the last one */
FN void vk_input_four(float v[4], const vk_input *in, int column) {
    if (in->origin == VK_NORM_OF_X) {
        float4 x = vk_columns(in->x, column, in->d),
               w = in->norm ? vk_columns(in->norm, column, in->d) : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        v[0] = w.x * (x.x * in->scale);
        v[1] = w.y * (x.y * in->scale);
        v[2] = w.z * (x.z * in->scale);
        v[3] = w.w * (x.w * in->scale);
    } else if (in->origin == VK_PLAIN) {
        uint2 four = *((const uint2 *)(const void *)in->plain + column / 4); /* bf16 */
        v[0] = vk_low(four.x);
        v[1] = vk_high(four.x);
        v[2] = vk_low(four.y);
        v[3] = vk_high(four.y);
    } else if (column < in->d) vk_merge_columns(v, in->partial, column, in->d, in->head_dim);
}
/* loads vectors first .. first + count of x into shared memory, in-type; all threads of the block call this together */
FN void vk_stage(uint4 *strip, vk_input *in, int first, int count) {
    int a_vector = in->wide ? 4 : 8, from = first * a_vector, columns = count * a_vector;
    vk_input_ready(in);
    for (int i = 4 * TID; i < columns; i += 4 * NTID) {
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        vk_input_four(v, in, from + i);
        for (int c = 0; c < 4; c++) vk_put(strip, (size_t)(i + c), v[c], in->wide);
    }
}
/* The sum of a warp's row with x, `flight` vectors per lane at a time. All warps of the block call this together,
 * even those without a row (live 0). */
FN float vk_row(const int flight, uint4 *strip, vk_input *in, const uint4 *row, int vectors, int live) {
    float sum = 0.0f;
    for (int first = 0; first < vectors; first += VK_STRIP) {
        int count = vectors - first < VK_STRIP ? vectors - first : VK_STRIP, mine = live ? count : 0;
        const uint4 *x = in->origin == VK_PLAIN ? in->plain + first : strip;
        uint4 fetched[VK_FLIGHT_MOST];
        vk_fetch(flight, fetched, row + first, 0, mine);
        if (!in->waited) vk_wait_for_last();
        in->waited = 1;
        if (in->origin != VK_PLAIN && in->held != first) {
            SYNC(); /* the previous strip has been read */
            vk_stage(strip, in, first, count);
            SYNC();
            in->held = first;
        }
        sum = vk_products(flight, sum, fetched, x, 0, mine, in->wide);
        for (int i = 32 * flight; i < mine; i += 32 * flight) {
            vk_fetch(flight, fetched, row + first, i, mine);
            sum = vk_products(flight, sum, fetched, x, i, mine, in->wide);
        }
    }
    return warp_sum(sum);
}
/* The rows of a linear, one per warp: y f32 [n] = x W^T (+ bias f32 [n] or NULL), or += with `add`. A block computes
 * NTID / 32 rows at a time. */
FN void vk_rows(const int flight, uint4 *strip, vk_input *in, float *y, const uint4 *weights, const float *bias, int n,
                int vectors, int add) {
    for (size_t first = BLK * (size_t)(NTID >> 5); first < (size_t)n;
         first += (size_t)gridDim.x * (size_t)(NTID >> 5)) {
        size_t row = first + (size_t)(TID >> 5);
        int live = row < (size_t)n;
        float sum = vk_row(flight, strip, in, weights + (live ? row : 0) * (size_t)vectors, vectors, live);
        if (bias && live) sum += bias[row];
        if (LANE0 && live) y[row] = add ? y[row] + sum : sum;
    }
}
/* qkv f32 [n] = W (norm(x)) + bias; norm and bias may be NULL */
KERNEL(k_decode_qkv, float *qkv, const float *x, const float *norm, const uint4 *weights, const float *bias, int n,
       int vectors, int width, float eps, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, wide);
    vk_let_next_begin();
    vk_rows(VK_FLIGHT, strip, &in, qkv, weights, bias, n, vectors, 0);
}

FN float vk_rounded(float value, int wide) { return wide ? value : vk_b2f(vk_f2b(value)); }
/* sum over the `group` lanes that share a key */
FN float vk_group_sum(float value, int group) {
    VK_AT_ONCE(cuda_on_cpu_sum(value, group >> 1));
    for (int o = group >> 1; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
    return value;
}
/* 1 / rms of the values that are normed together with head `head`: the head's own, or all `width` values of the row */
FN float vk_decode_scale(const vk_heads *heads, const float *row, int width, int head) {
    int whole = heads->norm == VK_NORM_WHOLE, count = whole ? width : heads->head_dim;
    if (heads->norm == VK_NORM_NONE) return 1.0f;
    return 1.0f / sqrtf(block_sum(vk_squares(whole ? row : row + head * heads->head_dim, count)) / (float)count
                        + heads->eps);
}
/* Norm, clip and RoPE of a head's q. The last split also does those of its k and, if it `writes`, stores k and v in the
 * cache. f32 [head_dim] each, rounded as the cache rounds. */
FN void vk_decode_rotate(float *q, float *k, float *v, void *key, void *value, const float *qkv, const vk_heads *heads,
                         int position, int head, int last, int wide) {
    int head_dim = heads->head_dim, half = head_dim / 2, group = heads->heads / heads->kv_heads, kv_head = head / group,
        q_width = heads->heads * head_dim, kv_width = heads->kv_heads * head_dim, writes = head % group == 0;
    size_t row = (size_t)position * (size_t)kv_width + (size_t)(kv_head * head_dim);
    const float *c = heads->cs + (size_t)position * (size_t)head_dim, *s = c + half;
    float q_scale = vk_decode_scale(heads, qkv, q_width, head),
          k_scale = last ? vk_decode_scale(heads, qkv + q_width, kv_width, kv_head) : 1.0f;
    for (int which = 0; which < 1 + last; which++) {
        int at = (which ? kv_head : head) * head_dim, from = heads->norm == VK_NORM_WHOLE ? at : 0;
        const float *a = qkv + (which ? q_width : 0) + at, *w = which ? heads->k_norm : heads->q_norm;
        float *o = which ? k : q, r = which ? k_scale : q_scale;
        EACH(i, half) {
            float e = a[i], f = a[half + i];
            if (heads->norm != VK_NORM_NONE) { e = w[from + i] * (e * r); f = w[from + half + i] * (f * r); }
            e = vk_cut(e, heads->clip);
            f = vk_cut(f, heads->clip);
            o[i] = vk_rounded(e * c[i] - f * s[i], wide);
            o[half + i] = vk_rounded(f * c[i] + e * s[i], wide);
            for (int j = i; which && writes && j < head_dim; j += half) vk_put(key, row + (size_t)j, o[j], wide);
        }
    }
    if (last) EACH(i, head_dim) {
            v[i] = vk_rounded(vk_cut(qkv[q_width + kv_width + kv_head * head_dim + i], heads->clip), wide);
            if (writes) vk_put(value, row + (size_t)i, v[i], wide);
        }
}
/* the partial result of some keys: the sum of exp(score - top), and the same sum weighted by the values */
typedef struct vk_found { float top, weights, sum[8]; } vk_found;
/* the value subtracted from scores; if nothing was found, exp(top - base) must be 0 */
FN float vk_base(float top) { return top == -INFINITY ? 0.0f : top; }
/* merges the results of two lanes, `bits` apart, that have the same columns */
FN void vk_found_meet(vk_found *found, int bits) {
    float other = __shfl_xor_sync(~0u, found->top, bits), most = other > found->top ? other : found->top;
    float scale = vk_exp(found->top - vk_base(most)); /* nothing found adds nothing; NaN stays in the sums */
    found->top = most;
    VK_AT_ONCE(cuda_on_cpu_add_other(&found->weights, 9, scale, bits));
    found->weights *= scale;
    found->weights += __shfl_xor_sync(~0u, found->weights, bits);
    VK_UNROLLED for (int c = 0; c < 8; c++) {
        found->sum[c] *= scale;
        found->sum[c] += __shfl_xor_sync(~0u, found->sum[c], bits);
    }
}
/* Combines the results of a split: first the teams of a warp, then the warps; partial as in k_decode_attention */
FN void vk_found_leave(vk_found *found, float *sums, float *tops, float *partial, const vk_heads *shape, int group,
                       int item, int column, int columns) {
    int heads = shape->heads, head_dim = shape->head_dim, d = heads * head_dim, head = item % heads,
        split = item / heads, warp = TID >> 5, live = column < head_dim;
    float most = -INFINITY, weights = 0.0f;
    for (int bits = group; bits < 32; bits <<= 1) vk_found_meet(found, bits);
    if ((TID & 31) < group && live) {
        for (int c = 0; c < 8; c++)
            if (c < columns) sums[warp * head_dim + column + c] = found->sum[c];
        if (LANE0) { tops[2 * warp] = found->top; tops[2 * warp + 1] = found->weights; }
    }
    SYNC();
    for (int w = 0; w < NTID >> 5; w++) most = tops[2 * w] > most ? tops[2 * w] : most;
    EACH(c, head_dim) {
        float sum = 0.0f;
        for (int w = 0; w < NTID >> 5; w++) sum += vk_exp(tops[2 * w] - vk_base(most)) * sums[w * head_dim + c];
        partial[(size_t)split * (size_t)d + (size_t)(head * head_dim + c)] = sum;
    }
    if (TID == 0) {
        float *out = partial + (size_t)VK_SPLITS * (size_t)d + 2 * (size_t)(split * heads + head);
        for (int w = 0; w < NTID >> 5; w++) weights += vk_exp(tops[2 * w] - vk_base(most)) * tops[2 * w + 1];
        out[0] = most;
        out[1] = weights;
    }
}
/* 128 blocks for 16 heads. On chips with 108 or 114 multiprocessors, some of these run two blocks, so all blocks run at
 * once; chips of compute capability 10.0 have 148. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define VK_ATTENTION_RESIDENT 1
#else
#define VK_ATTENTION_RESIDENT 2
#endif
/* One query against the cache. Each head of q has VK_SPLITS blocks, which divide the keys; block b has head b % heads.
 * Lanes form groups, each as large as a head's row needs. A group fetches VK_ATTENTION_FLIGHT keys at a time.
 * partial f32: [VK_SPLITS, d] sums of exp(score - top) * value, then [VK_SPLITS, heads] of top and sum of exp. The
 * first keys are requested before q is ready. group: a power of two, at least the number of vectors of a head. */
KERNEL_OF(VK_ATTENTION_THREADS, VK_ATTENTION_RESIDENT, k_decode_attention, float *partial, void *key, void *value,
          const float *qkv, vk_heads shape, const int32_t *position, int group, float scale, const uint4 *ahead,
          int64_t ahead_bytes, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, shared);
    int item = (int)BLK, heads = shape.heads, head_dim = shape.head_dim, head = item % heads, split = item / heads,
        last = split == VK_SPLITS - 1, kv_head = head / (heads / shape.kv_heads);
    int cached = *position, gone = VK_GONE(shape.gone, shape.window, cached),
        share = (cached - gone + VK_SPLITS - 1) / VK_SPLITS, from = gone + split * share,
        to = from + share < cached ? from + share : cached;
    int lane = TID & (group - 1), team = TID / group, teams = NTID / group, columns = wide ? 4 : 8,
        column = lane * columns;
    size_t row_vectors = (size_t)(shape.kv_heads * head_dim / columns),
           at = (size_t)(kv_head * head_dim / columns + lane);
    float *q = (float *)(void *)shared, *k = q + head_dim, *v = k + head_dim, *sums = v + head_dim,
          *tops = sums + (NTID >> 5) * head_dim;
    uint4 keys[VK_ATTENTION_FLIGHT], values[VK_ATTENTION_FLIGHT];
    float mine[8];
    vk_found found;
    int live = column < head_dim;
    vk_let_next_begin();
    vk_bring_ahead(ahead, ahead_bytes);
#define VK_FETCH_KEYS(tile) \
    VK_UNROLLED for (int u = 0; u < VK_ATTENTION_FLIGHT; u++) { \
        int j = (tile) + u * teams + team, there = j < to && live; \
        keys[u] = there ? *((const uint4 *)key + (size_t)j * row_vectors + at) : make_uint4(0, 0, 0, 0); \
        values[u] = there ? *((const uint4 *)value + (size_t)j * row_vectors + at) : make_uint4(0, 0, 0, 0); \
    }
    VK_FETCH_KEYS(from) /* written by earlier steps, like the position */
    vk_wait_for_last();
    vk_decode_rotate(q, k, v, key, value, qkv, &shape, cached, head, last, wide);
    SYNC();
    found.top = -INFINITY;
    found.weights = 0.0f;
    VK_UNROLLED for (int c = 0; c < 8; c++) {
        mine[c] = live && c < columns ? q[column + c] : 0.0f;
        found.sum[c] = 0.0f;
    }
    if (last) { /* the token's own key */
        float s = 0.0f;
        VK_UNROLLED for (int c = 0; c < 8; c++) s += live && c < columns ? mine[c] * k[column + c] : 0.0f;
        s = vk_group_sum(s, group) * scale;
        if (team == 0) {
            found.top = s;
            found.weights = 1.0f;
            VK_UNROLLED for (int c = 0; c < 8; c++) found.sum[c] = live && c < columns ? v[column + c] : 0.0f;
        }
    }
    for (int tile = from; tile < to; tile += VK_ATTENTION_FLIGHT * teams) {
        float score[VK_ATTENTION_FLIGHT], top = found.top, fade, base;
        VK_UNROLLED for (int u = 0; u < VK_ATTENTION_FLIGHT; u++) {
            float x[8], s = 0.0f;
            vk_unpack(x, keys[u], wide);
            VK_UNROLLED for (int c = 0; c < 8; c++) s += mine[c] * x[c];
            score[u] = vk_group_sum(s, group) * scale;
            if (tile + u * teams + team < to && score[u] > top) top = score[u];
        }
        base = vk_base(top);
        fade = vk_exp(found.top - base);
        found.weights *= fade;
        VK_UNROLLED for (int c = 0; c < 8; c++) found.sum[c] *= fade;
        VK_UNROLLED for (int u = 0; u < VK_ATTENTION_FLIGHT; u++) {
            float x[8], w = tile + u * teams + team < to ? vk_exp(score[u] - base) : 0.0f;
            vk_unpack(x, values[u], wide);
            found.weights += w;
            VK_UNROLLED for (int c = 0; c < 8; c++) found.sum[c] += w * x[c];
        }
        found.top = top;
        VK_FETCH_KEYS(tile + VK_ATTENTION_FLIGHT * teams)
    }
#undef VK_FETCH_KEYS
    vk_found_leave(&found, sums, tops, partial, &shape, group, item, column, columns);
}
FN vk_input vk_input_merged(const float *partial, int width, int head_dim, int wide) {
    vk_input in = {VK_MERGED, NULL, NULL, partial, NULL, 0.0f, 0.0f, width, head_dim, wide, -1, 0};
    return in;
}
/* x f32 [n] += W (attention merged), or = without `add` */
KERNEL_OF(VK_DECODE_THREADS, 2, k_decode_out, float *x, const float *partial, const uint4 *weights, int n, int vectors,
          int width, int head_dim, int add, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_merged(partial, width, head_dim, wide);
    vk_let_next_begin();
    vk_rows(VK_FLIGHT, strip, &in, x, weights, NULL, n, vectors, add);
}
/* x f32 [n] += W attended, in-type, or = without `add`. Used after the shared attention, and in dense MLPs. */
KERNEL(k_decode_out_plain, float *x, const uint4 *attended, const uint4 *weights, int n, int vectors, int add,
       int wide) {
    vk_input in = {VK_PLAIN, NULL, NULL, NULL, attended, 0.0f, 0.0f, 0, 0, wide, -1, 0};
    vk_let_next_begin();
    vk_rows(VK_FLIGHT, NULL, &in, x, weights, NULL, n, vectors, add);
}
/* hidden in-type [rows] = silu(gate norm(x)) * up norm(x) of a dense MLP, or with tanh GELU; norm may be NULL.
 * A warp sums one row of gate and the same row of up. */
KERNEL(k_decode_dense, void *hidden, const float *x, const float *norm, const uint4 *weights, int rows, int vectors,
       int width, float eps, int gelu, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, wide);
    vk_let_next_begin();
    for (size_t first = BLK * (size_t)(NTID >> 5); first < (size_t)rows;
         first += (size_t)gridDim.x * (size_t)(NTID >> 5)) {
        size_t row = first + (size_t)(TID >> 5);
        int live = row < (size_t)rows;
        const uint4 *gate = weights + (live ? row : 0) * (size_t)vectors;
        float gate_sum = vk_row(VK_FLIGHT, strip, &in, gate, vectors, live),
              up_sum = vk_row(VK_FLIGHT, strip, &in, gate + (size_t)rows * (size_t)vectors, vectors, live);
        if (LANE0 && live) vk_put(hidden, row, (gelu ? vk_gelu_tanh(gate_sum) : vk_silu(gate_sum)) * up_sum, wide);
    }
}
/* The router's logits, all in fp32; the first block also stores norm(x) in-type for the experts. */
KERNEL(k_decode_router, float *logits, void *normed, const float *x, const float *norm, const uint4 *weights,
       int experts, int vectors, int width, float eps, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, 1);
    vk_let_next_begin();
    vk_rows(VK_FLIGHT_MOST, strip, &in, logits, weights, NULL, experts, vectors, 0);
    if (BLK == 0) EACH(i, width) vk_put(normed, (size_t)i, norm[i] * (x[i] * in.scale), wide);
}
/* Puts the experts of ranks 0 .. top_k - 1 into shared memory; ranks as in k_router. The first block also writes
 * them to memory, with their weights. */
FN void vk_choose_experts(int32_t *chosen, int32_t *index, float *weight, const float *logits, int experts, int top_k,
                          int norm_topk) {
    float most = -INFINITY, sum = 0.0f;
    if (BLK == 0) {
        EACH_MAX(i, experts, most) most = logits[i] > most ? logits[i] : most;
        most = block_max(most);
        EACH_SUM(i, experts, sum) sum += vk_exp(logits[i] - most);
        sum = block_sum(sum);
    }
    for (int i = TID; i < top_k; i += NTID) chosen[i] = 0; /* NaN logits leave slots empty */
    SYNC();
    for (int i = TID; i < experts; i += NTID) {
        float mine = logits[i];
        int place = 0;
        VK_UNROLLED_BY_8 for (int j = 0; j < experts; j++) place +=
            (logits[j] > mine) | ((logits[j] == mine) & (j < i));
        if (place >= top_k) continue;
        chosen[place] = i;
        if (BLK == 0) { index[place] = i; weight[place] = vk_exp(mine - most) / sum; }
    }
    SYNC();
    if (norm_topk && BLK == 0) {
        float all = 0.0f;
        for (int j = 0; j < top_k; j++) all += weight[j];
        SYNC(); /* no one reads them any more */
        for (int j = TID; j < top_k; j += NTID) weight[j] /= all;
    }
}
/* hidden in-type [top_k, ldh] = silu(gate x) * up x of the chosen experts. A warp sums one row of gate and the same
 * row of up. index and weight [top_k] are the chosen experts. */
KERNEL(k_decode_gate_up, void *hidden, int32_t *index, float *weight, const float *logits, const uint4 *normed,
       const char *weights, size_t stride_bytes, int experts, int top_k, int norm_topk, int expert_dim, int vectors,
       int ldh, int wide) {
    CUDA_DYNAMIC_SHARED(int32_t, chosen);
    int warps = NTID >> 5, blocks = (expert_dim + warps - 1) / warps;
    vk_let_next_begin();
    vk_wait_for_last(); /* only then are the weights to read known */
    vk_choose_experts(chosen, index, weight, logits, experts, top_k, norm_topk);
    for (int item = (int)BLK; item < top_k * blocks; item += (int)gridDim.x) {
        int slot = item / blocks, row = item % blocks * warps + (TID >> 5);
        const uint4 *gate = (const uint4 *)(const void *)(weights + (size_t)chosen[slot] * stride_bytes)
                            + (size_t)row * (size_t)vectors,
                    *up = gate + (size_t)expert_dim * (size_t)vectors;
        float gate_sum = 0.0f, up_sum = 0.0f;
        if (row >= expert_dim) continue;
        for (int i = 0; i < vectors; i += 32 * VK_FLIGHT) {
            uint4 a[VK_FLIGHT], b[VK_FLIGHT];
            vk_fetch(VK_FLIGHT, a, gate, i, vectors);
            vk_fetch(VK_FLIGHT, b, up, i, vectors);
            gate_sum = vk_products(VK_FLIGHT, gate_sum, a, normed, i, vectors, wide);
            up_sum = vk_products(VK_FLIGHT, up_sum, b, normed, i, vectors, wide);
        }
        gate_sum = warp_sum(gate_sum);
        up_sum = warp_sum(up_sum);
        if (LANE0) vk_put(hidden, (size_t)slot * (size_t)ldh + (size_t)row, vk_silu(gate_sum) * up_sum, wide);
    }
}
/* x f32 [n] += sum over the chosen experts of weight * (W hidden row), in the order of the slots. A warp computes
 * one row for all of them, two slots at a time. */
KERNEL(k_decode_down, float *x, const uint4 *hidden, const int32_t *index, const float *weight, const char *weights,
       size_t stride_bytes, int top_k, int n, int vectors, int wide) {
    enum { HALF = VK_FLIGHT / 2 }; /* vectors per slot: the rows are short */
    int row = (int)BLK * (NTID >> 5) + (TID >> 5);
    float sum = 0.0f;
    vk_let_next_begin();
    vk_wait_for_last();
    if (row >= n) return;
    for (int slot = 0; slot < top_k; slot += 2) {
        int two = slot + 1 < top_k;
        const uint4 *w = (const uint4 *)(const void *)(weights + (size_t)index[slot] * stride_bytes)
                         + (size_t)row * (size_t)vectors,
                    *w2 = (const uint4 *)(const void *)(weights + (size_t)index[slot + two] * stride_bytes)
                          + (size_t)row * (size_t)vectors,
                    *v = hidden + (size_t)slot * (size_t)vectors, *v2 = v + vectors;
        float s = 0.0f, s2 = 0.0f;
        for (int i = 0; i < vectors; i += 32 * HALF) {
            uint4 a[HALF], b[HALF], x_a[HALF], x_b[HALF];
            vk_fetch(HALF, a, w, i, vectors);
            vk_fetch(HALF, b, w2, i, two ? vectors : 0);
            vk_fetch_again(HALF, x_a, v, i, vectors);
            vk_fetch_again(HALF, x_b, v2, i, two ? vectors : 0);
            VK_UNROLLED for (int j = 0; j < HALF; j++) {
                s = wide ? vk_dot_wide(s, a[j], x_a[j]) : vk_dot_narrow(s, a[j], x_a[j]);
                s2 = wide ? vk_dot_wide(s2, b[j], x_b[j]) : vk_dot_narrow(s2, b[j], x_b[j]);
            }
        }
        sum += weight[slot] * s;
        if (two) sum += weight[slot + 1] * s2;
    }
    sum = warp_sum(sum);
    if (LANE0) x[row] += sum;
}

/* a row that may have the largest value. NaN never wins; the lower row wins ties; index is -1 if there is no row */
typedef struct vk_candidate { float value; int32_t index; } vk_candidate;
FN vk_candidate vk_better(vk_candidate best, vk_candidate other) {
    return other.index >= 0
                   && (best.index < 0 || other.value > best.value
                       || (other.value == best.value && other.index < best.index))
               ? other
               : best;
}
FN vk_candidate vk_best_of_block(vk_candidate best) {
    __shared__ vk_candidate of_warp[32];
    for (int o = 16; o; o >>= 1) {
        vk_candidate other = {__shfl_xor_sync(~0u, best.value, o), __shfl_xor_sync(~0u, best.index, o)};
        best = vk_better(best, other);
    }
    if (LANE0) of_warp[TID >> 5] = best;
    SYNC();
    for (int w = 0; w < NTID >> 5; w++) best = vk_better(best, of_warp[w]);
    return best;
}
/* logits f32 [n] = W (norm(x)), and the best row of each block */
KERNEL(k_decode_head, float *logits, vk_candidate *candidates, const float *x, const float *norm, const uint4 *weights,
       int n, int vectors, int width, float eps, int wide) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, wide);
    vk_candidate best = {0.0f, -1};
    vk_let_next_begin();
    for (size_t first = BLK * (size_t)(NTID >> 5); first < (size_t)n;
         first += (size_t)gridDim.x * (size_t)(NTID >> 5)) {
        size_t index = first + (size_t)(TID >> 5);
        int live = index < (size_t)n;
        float sum = vk_row(VK_FLIGHT, strip, &in, weights + (live ? index : 0) * (size_t)vectors, vectors, live);
        vk_candidate row = {sum, live && sum == sum ? (int32_t)index : -1};
        if (LANE0 && live) logits[index] = sum;
        best = vk_better(best, row);
    }
    best = vk_best_of_block(best);
    if (TID == 0) candidates[BLK] = best;
}
/* Chooses the best of the blocks' candidates and adds it to the sequence. After waiting, the host reads the token from
 * tokens[position % places] in its own memory; a copy would be a separate operation for 4 bytes. One block. */
KERNEL(k_decode_pick, int32_t *token, int32_t *position, int32_t *tokens, int places, const vk_candidate *candidates,
       int count) {
    vk_candidate best = {0.0f, -1};
    vk_wait_for_last();
    for (int i = TID; i < count; i += NTID) best = vk_better(best, candidates[i]);
    best = vk_best_of_block(best);
    if (TID == 0) {
        int at = *position + 1;
        *token = tokens[at % places] = best.index;
        *position = at;
    }
}

/* ---- launchers. FLOPs and bytes are counted as elsewhere: FLOPs that the arithmetic needs, and every operand once,
 * even if blocks read it repeatedly. */
/* Returns the number of blocks that a multiprocessor runs at once; 1, with a note, if the driver does not report it. */
static int vk_resident(vk_queue *queue, const void *kernel, int threads, size_t shared_bytes) {
    vk_cuda *cuda = vk_cuda_of(queue);
    vk_residence *row = cuda->residences, *end = row + VK_FACTS;
    while (row < end && row->kernel && (row->kernel != kernel || row->shared_bytes != shared_bytes)) row++;
    if (row < end && row->kernel) return row->blocks;
    {
        int blocks = 0;
        if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes) != cudaSuccess)
            cudaGetLastError(); /* clears the error, as in vk_cuda_check */
        if (blocks < 1) vk_note(queue, "decode grids have one block per multiprocessor: occupancy is unknown");
        if (blocks < 1) blocks = 1;
        if (row < end) {
            row->kernel = kernel;
            row->shared_bytes = shared_bytes;
            row->blocks = blocks;
        }
        return blocks;
    }
}
static int vk_decode_grid(vk_queue *queue, const void *kernel, int64_t rows, int threads, size_t shared_bytes) {
    int64_t blocks = (rows + threads / 32 - 1) / (threads / 32),
            most = (int64_t)vk_cuda_of(queue)->multiprocessors * vk_resident(queue, kernel, threads, shared_bytes);
    if (most > VK_DECODE_BLOCKS) most = VK_DECODE_BLOCKS;
    return (int)(blocks < most ? blocks : most);
}
static int vk_vectors(const vk_linear *linear) { return linear->k_padded * (linear->wide ? 4 : 2) / 16; }
static size_t vk_strip_bytes(const vk_linear *linear) {
    return (size_t)(vk_vectors(linear) < VK_STRIP ? vk_vectors(linear) : VK_STRIP) * 16;
}
/* one warp per row, as many blocks as the device runs at once */
#define LAUNCH_ROWS(name, rows, threads, shared, ...) \
    LAUNCH_STEP(name, vk_decode_grid(queue, (const void *)name, rows, threads, shared), threads, shared, __VA_ARGS__)
#include "kernels/gpu/quant_decode.h"
static void vk_cuda_decode_qkv(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->att_proj;
    const float *norm = job->attn_norm;
    int64_t d = job->d, n = linear->n,
            flops = (norm ? 4 * d : 0) + (2 * (int64_t)linear->k + (linear->bias != NULL)) * n,
            bytes = vk_weight_bytes(linear) + (norm ? 8 : 4) * d + (linear->bias ? 8 : 4) * n;
    vk_shape(queue, 1, linear->n, linear->k, 0);
    if (linear->bits) { vk_quant_send_qkv(queue, job, flops, bytes); return; }
    LAUNCH_ROWS(k_decode_qkv, linear->n, VK_DECODE_THREADS, vk_strip_bytes(linear), flops, bytes,
                job->qkv, job->x, norm, (const uint4 *)linear->weights,
                  linear->bias, linear->n, vk_vectors(linear), job->d, job->eps, linear->wide);
}
/* Returns 1 if a head's row is whole vectors, at most as many as a warp has lanes. */
static int vk_heads_fit(const vk_decode_job *job) {
    int bytes = job->heads.head_dim * (int)vk_element(job->att_proj->wide);
    return bytes % 16 == 0 && bytes <= 512;
}
static void vk_cuda_decode_attention(vk_queue *queue, const vk_decode_job *job) {
    const vk_heads *shape = &job->heads;
    const vk_linear *next = vk_is_dependent(queue) ? job->attn_out : NULL; /* prefetched */
    int wide = job->att_proj->wide, hd = shape->head_dim, heads = shape->heads, warps = VK_ATTENTION_THREADS / 32,
        group = 1, kv_width = shape->kv_heads * hd;
    int64_t d = (int64_t)heads * hd, keys = vk_seen_keys(job->keys, shape), el = vk_element(wide);
    if (!vk_heads_fit(job)) {
        l_qk_norm_rope(queue, job->q, job->key, job->value, job->qkv, shape, job->position, 1, (int)d, wide);
        l_attention_decode(queue, job->attended, job->q, job->key, job->value, job->scratch, job->position, job->keys,
                           job->max_sequence, shape, wide);
        return;
    }
    while (group * 16 < hd * (int)el) group *= 2;
    vk_shape(queue, 1, 1, keys, d);
    /* like k_qk_norm_rope and k_attention_decode, except that the results of each split are written instead of q */
    LAUNCH_STEP(k_decode_attention, heads * VK_SPLITS, VK_ATTENTION_THREADS,
                ((3 + warps) * hd + 2 * warps) * (int)sizeof(float), vk_turn_flops(shape) + keys * (4 * d + 5 * heads),
                4 * (d + 2 * kv_width + vk_turn_floats(shape) + hd + 1) + 2 * keys * kv_width * el
                    + 4 * VK_SPLITS * (d + 2 * heads),
                job->scratch, job->key, job->value, job->qkv, *shape, job->position, group, 1.0f / sqrtf((float)hd),
                next ? (const uint4 *)next->weights : NULL, next ? vk_weight_bytes(next) : 0, wide);
}
/* the output of attention and MLP: added to x, or stored if it is normed first */
static float *vk_decode_sum(const vk_decode_job *job, const float *after) { return after ? job->y : job->x; }
static void vk_decode_add(vk_queue *queue, const vk_decode_job *job, const float *norm) {
    if (norm) l_add_rmsnorm(queue, job->x, job->y, norm, 1, job->d, job->eps);
}
/* x += or y = W plain, in-type */
static void vk_cuda_decode_plain(vk_queue *queue, const vk_linear *linear, float *to, const void *plain, int add) {
    int64_t out = linear->n, flops = (2 * (int64_t)linear->k + add) * out,
            bytes = vk_weight_bytes(linear) + linear->k * vk_element(linear->wide) + 4 * (1 + add) * out;
    if (linear->bits) { vk_quant_send_plain(queue, linear, to, plain, add, flops, bytes); return; }
    LAUNCH_ROWS(k_decode_out_plain, out, VK_DECODE_THREADS, 0, flops, bytes, to,
           (const uint4 *)plain, (const uint4 *)linear->weights, linear->n, vk_vectors(linear), add, linear->wide);
}
/* FLOPs of merging: a difference, exponential, product and sum per split and head; a product and a sum per split and
 * column; one division per column */
static void vk_cuda_decode_out(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->attn_out;
    int add = !job->attn_after;
    int64_t d = linear->k, heads = job->heads.heads, found = VK_SPLITS * (d + 2 * heads), out = linear->n,
            flops = (2 * d + add) * out + VK_SPLITS * (4 * heads + 2 * d) + d,
            bytes = vk_weight_bytes(linear) + 4 * found + 4 * (1 + add) * out;
    float *to = vk_decode_sum(job, job->attn_after);
    vk_shape(queue, 1, linear->n, linear->k, 0);
    if (!vk_heads_fit(job)) vk_cuda_decode_plain(queue, linear, to, job->attended, add);
    else if (linear->bits) vk_quant_send_out(queue, job, to, add, flops, bytes);
    else
        LAUNCH_ROWS(k_decode_out, linear->n, VK_DECODE_THREADS, vk_strip_bytes(linear), flops, bytes, to, job->scratch,
                    (const uint4 *)linear->weights, linear->n, vk_vectors(linear), linear->k, job->heads.head_dim, add,
                    linear->wide);
    vk_decode_add(queue, job, job->attn_after);
}
static void vk_cuda_decode_dense_gate_up(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->gate_up;
    const float *norm = job->ff_norm;
    int64_t d = job->d, dim = job->expert_dim,
            flops = (norm ? 4 * d : 0) + 2 * (int64_t)linear->n * linear->k + (job->gelu ? 9 : 4) * dim,
            bytes = vk_weight_bytes(linear) + (norm ? 8 : 4) * d + dim * vk_element(linear->wide);
    vk_shape(queue, 1, linear->n, linear->k, 0);
    if (linear->bits) { vk_quant_send_dense(queue, job, flops, bytes); return; }
    LAUNCH_ROWS(k_decode_dense, dim, VK_DECODE_THREADS, vk_strip_bytes(linear), flops, bytes,
                job->hidden, job->x, norm, (const uint4 *)linear->weights,
                  job->expert_dim, vk_vectors(linear), job->d, job->eps, job->gelu, linear->wide);
}
static void vk_cuda_decode_dense_down(vk_queue *queue, const vk_decode_job *job) {
    vk_shape(queue, 1, job->down->n, job->down->k, 0);
    vk_cuda_decode_plain(queue, job->down, vk_decode_sum(job, job->ff_after), job->hidden, !job->ff_after);
    vk_decode_add(queue, job, job->ff_after);
}
static void vk_cuda_decode_router(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->router;
    int64_t d = job->d;
    vk_shape(queue, 1, linear->n, linear->k, 0);
    LAUNCH_ROWS(k_decode_router, linear->n, VK_ROUTER_THREADS, vk_strip_bytes(linear),
                4 * d + 2 * (int64_t)linear->n * linear->k,
                vk_weight_bytes(linear) + 8 * d + 4 * (int64_t)linear->n + d * vk_element(job->gate_up->wide),
                job->logits, job->normed, job->x, job->ff_norm, (const uint4 *)linear->weights, linear->n,
                vk_vectors(linear), job->d, job->eps, job->gate_up->wide);
}
static void vk_cuda_decode_gate_up(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->gate_up;
    int64_t experts = job->router->n, top_k = job->top_k, expert_dim = job->expert_dim,
            flops = experts * (4 + experts) + top_k * (2 * (int64_t)linear->n * linear->k + 4 * expert_dim)
                    + (job->norm_topk ? 2 * top_k : 0),
            bytes = 4 * experts + top_k * vk_weight_bytes(linear)
                    + (linear->k + top_k * expert_dim) * vk_element(linear->wide) + 8 * top_k;
    vk_shape(queue, top_k, linear->n, linear->k, top_k);
    if (linear->bits) { vk_quant_send_gate_up(queue, job, flops, bytes); return; }
    LAUNCH_ROWS(k_decode_gate_up, top_k * expert_dim, VK_DECODE_THREADS, top_k * (int)sizeof(int32_t), flops, bytes,
                job->hidden, job->index, job->weight, job->logits, (const uint4 *)job->normed,
                (const char *)linear->weights, job->gate_up_stride, (int)experts, job->top_k, job->norm_topk,
                job->expert_dim, vk_vectors(linear), job->down->k_padded, linear->wide);
}
static void vk_cuda_decode_down(vk_queue *queue, const vk_decode_job *job) {
    const vk_linear *linear = job->down;
    int64_t top_k = job->top_k, flops = top_k * linear->n * (2 * (int64_t)linear->k + 2),
            bytes = top_k * (vk_weight_bytes(linear) + linear->k * vk_element(linear->wide)) + 8 * top_k
                    + 8 * (int64_t)linear->n;
    int warps = VK_DECODE_THREADS / 32;
    vk_shape(queue, top_k, linear->n, linear->k, top_k);
    if (linear->bits) { vk_quant_send_down(queue, job, flops, bytes); return; }
    LAUNCH_STEP(k_decode_down, (linear->n + warps - 1) / warps, VK_DECODE_THREADS, 0, flops, bytes, job->x,
                (const uint4 *)job->hidden, job->index, job->weight, (const char *)linear->weights, job->down_stride,
                job->top_k, linear->n, vk_vectors(linear), linear->wide);
}
static int vk_head_grid(vk_queue *queue, const vk_linear *head) {
    return head->bits
               ? vk_quant_grid(queue, (const void *)k_quant_head, head->n, vk_quant_room(head, 1))
               : vk_decode_grid(queue, (const void *)k_decode_head, head->n, VK_DECODE_THREADS, vk_strip_bytes(head));
}
/* comparisons: one per row to find the best of a block, and one per block */
static void vk_cuda_decode_head(vk_queue *queue, const vk_decode_end_job *job) {
    const vk_linear *linear = job->head;
    int grid = vk_head_grid(queue, linear);
    int64_t d = linear->k, flops = 4 * d + (2 * d + 1) * linear->n,
            bytes = vk_weight_bytes(linear) + 8 * d + 4 * (int64_t)linear->n + 8 * grid;
    vk_shape(queue, 1, linear->n, linear->k, 0);
    if (linear->bits) { vk_quant_send_head(queue, job, grid, flops, bytes); return; }
    LAUNCH_STEP(k_decode_head, grid, VK_DECODE_THREADS, vk_strip_bytes(linear), flops, bytes, job->logits,
                (vk_candidate *)(void *)job->scratch, job->x, job->norm, (const uint4 *)linear->weights, linear->n,
                vk_vectors(linear), (int)d, job->eps, linear->wide);
}
static void vk_cuda_decode_pick(vk_queue *queue, const vk_decode_end_job *job) {
    int count = vk_head_grid(queue, job->head);
    vk_shape(queue, 1, count, 0, 0);
    /* bytes on the device; the host's token is not counted */
    LAUNCH_STEP(k_decode_pick, 1, vk_threads_for(count), 0, count + 1, 8 * count + 4 + 8, job->token, job->position,
                vk_cuda_of(queue)->tokens_there, (int)vk_cuda_of(queue)->marks,
                (const vk_candidate *)(const void *)job->scratch, count);
}
static const vk_decode_kernels vk_cuda_decode = {
    vk_cuda_decode_qkv,     vk_cuda_decode_attention, vk_cuda_decode_out,           vk_cuda_decode_router,
    vk_cuda_decode_gate_up, vk_cuda_decode_down,      vk_cuda_decode_dense_gate_up, vk_cuda_decode_dense_down,
    vk_cuda_decode_head,    vk_cuda_decode_pick};

#define VK_CUDA_BACKEND(...) { \
    VK_KERNEL_TABLE, 1, 0, 0, 16, 1, 1, VK_STAGE_BYTES, CUDART_VERSION, VK_BACKEND_FUNCTIONS(vk_cuda), NULL, \
    vk_cuda_count, vk_cuda_describe_device, vk_cuda_telemetry, vk_cuda_energy, vk_cuda_reset, vk_cuda_switch, \
    __VA_ARGS__ }
static const vk_backend vk_library_backend = VK_CUDA_BACKEND(NULL, NULL, NULL, NULL, NULL, NULL, NULL);
static const vk_backend vk_cuda_backend = VK_CUDA_BACKEND(vk_cuda_experts, &vk_cuda_decode, vk_cuda_replay,
                                                          vk_cuda_record, vk_cuda_keep, NULL, &vk_library_backend);
extern "C" const vk_backend *vk_gpu_code(void) { return &vk_cuda_backend; }
#else /* !VK_CUDA */

/* =================================================================================================== gemm >>gemm
 * y[m, n] = x[m, k] W[n, k]^T on the CPU. Weights are packed once, at load, into panels of 32 rows of W:
 *   bf16  [n / 32][k / 2][32][2]   pairs along k, as AMX and AVX-512 BF16 read them; AVX2 and plain C split a pair by
 *                                  shift and mask
 *   f32   [n / 32][k][32]
 * with n and k padded by zeros to multiples of 32. A tile function computes y f32 [rows <= 32, 32] = x [rows, k] *
 * panel. The driver walks panels and rows and applies the epilogue while the tile is in the first-level cache. A
 * kernel may have its own function for a panel and all rows of a task, including the epilogue. */
#ifdef __GNUC__
#define VK_INLINE static inline __attribute__((always_inline))
#else
#define VK_INLINE static inline
#endif
#define VK_UNROLL _Pragma("GCC unroll 16")
typedef void (*vk_tile)(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows);

/* The destination of the sums of one panel: y in-type or f32. `stream`: bypass the caches, because y is larger than
 * they are. */
typedef struct vk_sink {
    char *y;
    const float *bias; /* bias of these columns, or NULL */
    const float *gate; /* SILU_MUL, GELU_MUL: the first half's results [rows, 32], or NULL */
    size_t row_bytes;
    int cols, wide, stream;
    vk_epilogue epilogue;
} vk_sink;
typedef void (*vk_panel)(const vk_sink *sink, float *t, const void *x, size_t ldx, const void *panel, size_t k,
                         int rows);

/* one row of sums -> y; always inlined, so that it is compiled for the caller's processor and for a constant `cols` */
VK_INLINE void vk_finish_cols(const vk_sink *sink, const float *sums, const float *gate, char *y, int cols) {
    float values[VK_PAD];
    if (sink->bias) EACH(c, cols) values[c] = sums[c] + sink->bias[c];
    else EACH(c, cols) values[c] = sums[c];
    if (sink->epilogue == VK_QUICKGELU) EACH(c, cols) values[c] = vk_quickgelu(values[c]);
    if (sink->epilogue == VK_GELU) EACH(c, cols) values[c] = vk_gelu(values[c]);
    if (sink->epilogue == VK_GELU_TANH) EACH(c, cols) values[c] = vk_gelu_tanh(values[c]);
    if (sink->epilogue == VK_SILU_MUL) EACH(c, cols) values[c] *= vk_silu(gate[c]);
    if (sink->epilogue == VK_GELU_MUL) EACH(c, cols) values[c] *= vk_gelu_tanh(gate[c]);
    if (sink->epilogue == VK_ADD_F32) EACH(c, cols)((float *)y)[c] += values[c];
    else if (sink->epilogue == VK_STORE_F32) EACH(c, cols)((float *)y)[c] = values[c];
    else EACH(c, cols) vk_put(y, (size_t)c, values[c], sink->wide);
}
VK_INLINE void vk_finish_row(const vk_sink *sink, const float *sums, int row) {
    char *y = sink->y + (size_t)row * sink->row_bytes;
    const float *gate = sink->gate ? sink->gate + row * VK_PAD : NULL;
    if (sink->cols == VK_PAD) vk_finish_cols(sink, sums, gate, y, VK_PAD);
    else vk_finish_cols(sink, sums, gate, y, sink->cols);
}
static VK_CLONES void vk_finish_rows(const vk_sink *sink, const float *sums, int first, int rows) {
    for (int r = 0; r < rows; r++) vk_finish_row(sink, sums + r * VK_PAD, first + r);
}

/* plain C, for any processor */
static VK_CLONES void vk_tile_plain(float *y, const void *x, size_t ldx, const void *panel, size_t k, int rows) {
    for (int r = 0; r < rows; r++) {
        const uint16_t *xr = (const uint16_t *)x + (size_t)r * ldx;
        const uint32_t *pairs = (const uint32_t *)panel;
        float acc[VK_PAD] = {0.0f};
        for (size_t i = 0; i < k; i += 2, pairs += VK_PAD) {
            float a = vk_b2f(xr[i]), b = vk_b2f(xr[i + 1]);
            EACH(c, VK_PAD) {
                uint32_t lo = pairs[c] << 16, hi = pairs[c] & 0xffff0000u;
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
        const float *xr = (const float *)x + (size_t)r * ldx, *weights = (const float *)panel;
        float acc[VK_PAD] = {0.0f};
        for (size_t i = 0; i < k; i++, weights += VK_PAD) EACH(c, VK_PAD) acc[c] += xr[i] * weights[c];
        memcpy(y + r * VK_PAD, acc, sizeof acc);
    }
}

/* Calls F(R, y, xr, ..) for the next R rows, R a constant of at most 4, until all rows are done. */
#define VK_ROWS_4(F, row, ...) \
    for (int left = rows; left > 0;) { \
        int now = left < 4 ? left : 4; \
        switch (now) { \
        case 1: F(1, y, xr, __VA_ARGS__); break; case 2: F(2, y, xr, __VA_ARGS__); break; \
        case 3: F(3, y, xr, __VA_ARGS__); break; default: F(4, y, xr, __VA_ARGS__); break; \
        } \
        left -= now; \
        xr += (size_t)now * (row); \
        y += now * VK_PAD; \
    }
#include "kernels/cpu/softmax.h"
#ifdef VK_X86
#include "kernels/cpu/gemm_x86.h"
#elif defined(VK_NEON)
#include "kernels/cpu/gemm_neon.h"
#endif
#include "kernels/cpu/quant_rows.h"
#include "kernels/cpu/quant_bytes.h"
static int vk_has_c(void) { return 1; }

/* A GEMM kernel: its tile for bf16 and for f32 weights (NULL: it has none), its own panel function for bf16 (NULL:
 * tile by tile), and what a thread does before and after using it. */
typedef struct vk_gemm_kernel {
    const char *name;
    int (*present)(void);
    vk_tile tile, tile_wide;
    void (*begin)(void), (*end)(void);
    vk_panel panel;
    int strip;              /* queries that attention passes to its tiles: a multiple of the rows per tile call */
    vk_soften soften;       /* turns scores into bf16 weights */
    vk_scores scores;       /* of attention; NULL: by tiles */
    vk_quant_row row[2][2]; /* integers of 8 and 4 bits and one row of inputs; then those that fetch weights ahead */
    /* for many rows, if the processor multiplies bytes. group: k per scale */
    int (*has_bytes)(void);
    vk_quant_many many;
    int group;
    const vk_quant_blocks *blocks; /* for many rows, block by block; without both, panels are widened */
} vk_gemm_kernel;
#ifdef VK_NEON_DOT
#define VK_BLOCKS_SDOT &vk_blocks_sdot
#else
#define VK_BLOCKS_SDOT NULL
#endif
static const vk_gemm_kernel vk_gemm_kernels[] = {
#ifdef VK_AMX
    { "amx", vk_has_amx, vk_tile_amx, NULL, vk_amx_begin, vk_amx_end, vk_panel_amx, 32, vk_soften_avx512bf16,
      vk_scores_amx, { { vk_row8_vnni, vk_row4_vnni }, { vk_row8_vnni_ahead, vk_row4_vnni_ahead } },
      vk_has_amx_bytes, vk_many_amx, VK_AMX_GROUP, NULL },
#endif
#ifdef VK_X86
    { "avx512bf16", vk_has_avx512bf16, vk_tile_avx512bf16, NULL, NULL, NULL, NULL, 24, vk_soften_avx512bf16, NULL,
      { { vk_row8_vnni, vk_row4_vnni }, { vk_row8_vnni_ahead, vk_row4_vnni_ahead } },
      vk_has_vnni, vk_many_vnni, VK_VNNI_GROUP, NULL },
    { "avx512", vk_has_avx512, vk_tile_avx512, vk_tile_avx512_wide, NULL, NULL, NULL, 24, vk_soften_avx512, NULL,
      { { vk_row8_avx512, vk_row4_avx512 }, { vk_row8_avx512_ahead, vk_row4_avx512_ahead } },
      vk_has_vnni, vk_many_vnni, VK_VNNI_GROUP, NULL },
    { "avxvnni", vk_has_avxvnni, vk_tile_avx2, vk_tile_avx2_wide, NULL, NULL, NULL, 24, vk_soften_bf16, NULL,
      { { vk_row8_avxvnni, vk_row4_avxvnni }, { vk_row8_avxvnni, vk_row4_avxvnni } }, NULL, NULL, 0,
      &vk_blocks_avxvnni },
    { "avx2", vk_has_avx2, vk_tile_avx2, vk_tile_avx2_wide, NULL, NULL, NULL, 24, vk_soften_bf16, NULL,
      { { vk_row8_avx2, vk_row4_avx2 }, { vk_row8_avx2, vk_row4_avx2 } }, NULL, NULL, 0, &vk_blocks_avx2 },
#endif
#ifdef VK_NEON_BF16
    { "bfmmla", vk_has_bf16, vk_tile_bfmmla, NULL, NULL, NULL, NULL, 32, vk_soften_bf16, NULL,
      { { vk_row8_plain, vk_row4_plain }, { vk_row8_plain, vk_row4_plain } }, NULL, NULL, 0, NULL },
    { "bfdot", vk_has_bf16, vk_tile_bfdot, NULL, NULL, NULL, NULL, 24, vk_soften_bf16, NULL,
      { { vk_row8_plain, vk_row4_plain }, { vk_row8_plain, vk_row4_plain } }, NULL, NULL, 0, VK_BLOCKS_SDOT },
#endif
#ifdef VK_NEON
    { "neon", vk_has_neon, vk_tile_neon, vk_tile_neon_wide, NULL, NULL, NULL, 24, vk_soften_bf16, NULL,
      { { vk_row8_plain, vk_row4_plain }, { vk_row8_plain, vk_row4_plain } }, NULL, NULL, 0, VK_BLOCKS_SDOT },
#endif
    { "plain", vk_has_c, vk_tile_plain, vk_tile_plain_wide, NULL, NULL, NULL, 24, vk_soften_bf16, NULL,
      { { vk_row8_plain, vk_row4_plain }, { vk_row8_plain, vk_row4_plain } }, NULL, NULL, 0, NULL },
};
enum { VK_GEMM_KERNELS = (int)(sizeof vk_gemm_kernels / sizeof vk_gemm_kernels[0]) };
/* how many rows are multiplied by integers: panels become bf16, both factors become bytes, or block by block */
typedef enum vk_many { VK_WIDENED, VK_BYTES, VK_BLOCKS } vk_many;
static vk_many vk_many_of(const vk_gemm_kernel *kernel) {
    if (kernel->has_bytes && kernel->has_bytes()) return VK_BYTES;
    return kernel->blocks && kernel->blocks->present() ? VK_BLOCKS : VK_WIDENED;
}
/* the vp_activations of many rows */
static int vk_activations_of(const vk_gemm_kernel *kernel) {
    const vk_many many = vk_many_of(kernel);
    if (many == VK_BLOCKS) return (int)kernel->blocks->inputs;
    return many == VK_BYTES ? VP_ACTIVATIONS_INT8 : VP_ACTIVATIONS_BF16;
}

/* which kernel is used for how many rows: one row (decode), few (experts), many (ViT, prefill) */
enum { VK_SHAPES = 3 };
static int vk_shape_of(int rows) { return rows == 1 ? 0 : rows < 16 ? 1 : 2; }
static const int vk_shape_rows[VK_SHAPES] = {1, 8, 32};

typedef struct vk_cpu {
    vk_queue queue; /* first: a vk_queue of this backend is a vk_cpu */
    int wide;
    const vk_gemm_kernel *gemm[2][VK_SHAPES];              /* [wide][shape class] */
    const vk_gemm_kernel *integers_gemm;                   /* for linears with integers: one row */
    const vk_gemm_kernel *many_gemm[VP_ACTIVATIONS_COUNT]; /* the same for many rows; NULL: panels become bf16 */
    int fetches;                                           /* a row's integers ahead */
    void (*begin)(void), (*end)(void); /* of the chosen kernels; called by every thread of a parallel region */
    void *memory;
    size_t memory_bytes;
    /* attention over many queries: scratch of vk_cpu_layout */
    void *k_panels, *v_panels, *attend;
    size_t attend_bytes; /* size for one thread */
    float *pieces;       /* scratch for a single query's attention */
    void *widened;       /* panels of integers as bf16, or as bytes and scales, one a thread */
    size_t widened_bytes;
    void *integers; /* inputs of linears with integers */
    size_t integers_bytes;
    vk_team *team; /* within vk_cpu_together: threads that wait for loops */
    int64_t *first_task;
    int64_t *marks; /* ns */
    int32_t *tokens;
} vk_cpu;

/* Tasks are 4 panels x at most 512 rows; fewer if their x would not stay in a second-level cache of 2 MB, or if there
 * would be too few tasks for the threads. Consecutive tasks share rows, which stay in that cache while each task reads
 * its panels from memory once. */
enum { VK_TASK_PANELS = 4, VK_TASK_ROWS = 640, VK_TASK_ROWS_MIN = 128, VK_TASK_BYTES = 5 << 18, VK_TASKS_A_THREAD = 8 };
/* more sums than these, 1 or 2 MB, bypass the caches: weights would evict them before they are read */
enum { VK_STREAM_SUMS = 1 << 19 };
static int vk_divide_up(int count, int each) { return (count + each - 1) / each; }
static int vk_gates(vk_epilogue epilogue) { return epilogue == VK_SILU_MUL || epilogue == VK_GELU_MUL; }
/* columns of y */
static int vk_columns(const vk_linear *linear, vk_epilogue epilogue) { return linear->n >> vk_gates(epilogue); }
/* a single row waits for weights from memory, so a task is one panel: all threads then end at the same time */
static int vk_task_width(const vk_gemm_job *job) { return job->m == 1 ? VK_PAD : VK_TASK_PANELS * VK_PAD; }
static int vk_task_columns(const vk_gemm_job *job, vk_epilogue epilogue) {
    return vk_divide_up(vk_columns(job->w, epilogue), vk_task_width(job));
}
static int vk_task_rows(const vk_gemm_job *job, vk_epilogue epilogue, int threads) {
    int most = VK_TASK_BYTES / (job->w->k_padded * (job->w->wide ? 4 : job->w->bits ? 1 : 2)), blocks;
    int wanted = vk_divide_up(VK_TASKS_A_THREAD * threads, vk_task_columns(job, epilogue)),
        split = vk_divide_up(job->m, VK_TASK_ROWS_MIN);
    if (most > VK_TASK_ROWS) most = VK_TASK_ROWS;
    if (most < VK_ROWS_MAX) most = VK_ROWS_MAX;
    blocks = vk_divide_up(job->m, most / VK_ROWS_MAX * VK_ROWS_MAX);
    if (blocks < wanted) blocks = blocks > split ? blocks : wanted < split ? wanted : split;
    return vk_divide_up(vk_divide_up(job->m, blocks), VK_ROWS_MAX) * VK_ROWS_MAX;
}
#include "kernels/cpu/quant.h"
static void vk_gemm_task(const vk_cpu *cpu, const vk_gemm_job *job, int64_t task, vk_epilogue epilogue, int stream,
                         char *integers, int thread) {
    const vk_linear *linear = job->w;
    const vk_gemm_kernel *kernel = vk_job_kernel(cpu, job);
    vk_tile tile = linear->wide ? kernel->tile_wide : kernel->tile;
    size_t element = linear->wide ? 4 : 2, x_bytes = (size_t)job->ldx * element,
           out = epilogue == VK_ADD_F32 || epilogue == VK_STORE_F32 ? 4 : element;
    int columns = vk_task_columns(job, epilogue), task_rows = vk_task_rows(job, epilogue, cpu->queue.threads),
        r0 = (int)(task / columns) * task_rows, gates = vk_gates(epilogue), n = vk_columns(linear, epilogue);
    int rows = job->m - r0 < task_rows ? job->m - r0 : task_rows, width = vk_task_width(job),
        c0 = (int)(task % columns) * width, c1 = n - c0 < width ? n : c0 + width;
    const char *x = (const char *)job->x + (size_t)r0 * x_bytes;
    float room[2 * VK_TASK_ROWS * VK_PAD + 16], *sums = room + (64 - (uintptr_t)room % 64) % 64 / sizeof(float),
          *gate = sums + VK_TASK_ROWS * VK_PAD;
    vk_sink sink;
    vk_groups groups;
    groups.bytes = (char *)vk_quant_room(cpu, thread); groups.k = linear->k_padded; groups.bits = linear->bits;
    groups.ready = 0;
    sink.wide = cpu->wide;
    for (int i = 0, c = c0; c < c1; i++, c += i % (1 + gates) ? 0 : VK_PAD) { /* gates: a panel of each half in turn */
        const int second = i % (1 + gates), last = second == gates && c + VK_PAD >= c1,
                  at = c + (second ? n : 0), next = gates && !second ? at + n : c + VK_PAD;
        const char *panel = vk_panel_at(linear, at / VK_PAD);
        sink.row_bytes = (size_t)job->ldy * out; sink.epilogue = epilogue; sink.gate = second ? gate : NULL;
        sink.y = (char *)job->y + (size_t)r0 * sink.row_bytes + (size_t)c * out;
        sink.bias = linear->bias ? linear->bias + at : NULL;
        sink.cols = c1 - c < VK_PAD ? c1 - c : VK_PAD;
        sink.stream = stream && sink.cols == VK_PAD && ((uintptr_t)sink.y | sink.row_bytes) % 64 == 0;
        if (gates && !second) {
            sink.y = (char *)gate; sink.row_bytes = VK_PAD * sizeof *gate; sink.epilogue = VK_STORE_F32;
            sink.stream = 0;
        }
        groups.next = last ? NULL : vk_panel_at(linear, next / VK_PAD);
        if (linear->bits && vk_quant_panel(cpu, kernel, job, &sink, sums, integers, &groups, at / VK_PAD, r0, rows))
            continue;
        if (linear->bits) {
            vk_quant_widen_panel(cpu, linear, panel, thread);
            panel = (const char *)vk_quant_room(cpu, thread);
        }
        if (kernel->panel && !linear->wide && job->m > 1) {
            kernel->panel(&sink, sums, x, (size_t)job->ldx, panel, (size_t)linear->k_padded, rows);
            continue;
        }
        for (int r = 0; r < rows; r += VK_ROWS_MAX) {
            int now = rows - r < VK_ROWS_MAX ? rows - r : VK_ROWS_MAX;
            tile(sums, x + (size_t)r * x_bytes, (size_t)job->ldx, panel, (size_t)linear->k_padded, now);
            vk_finish_rows(&sink, sums, r, now);
        }
    }
}
static int64_t vk_gemm_tasks(const vk_gemm_job *job, vk_epilogue epilogue, int threads) {
    return job->m > 0 ? (int64_t)vk_task_columns(job, epilogue)
                            * vk_divide_up(job->m, vk_task_rows(job, epilogue, threads)) : 0;
}
/* Runs tasks in any order on all threads, or only on this one if waking the others is not worth it. */
static void vk_share(const vk_cpu *cpu, int64_t tasks, int worth, vk_task work, const void *context) {
#ifdef _OPENMP
    vk_team_range range[VK_TEAM_RANGES];
    const int ranges = cpu->queue.threads < VK_TEAM_RANGES ? cpu->queue.threads : VK_TEAM_RANGES;
    if (cpu->team) {
        vk_team_loop(cpu->team, worth ? cpu->queue.threads : 1, tasks, work, context);
        return;
    }
    vk_team_split(range, ranges, tasks);
#endif
    (void)worth;
    VK_PRAGMA(omp parallel num_threads(cpu->queue.threads) if (worth && tasks > 1)) {
        int thread = vk_team_thread();
        int64_t since = vk_span_begin(&cpu->queue);
        if (cpu->begin) cpu->begin();
#ifdef _OPENMP
        vk_team_work(range, ranges, work, context, thread);
#else
        for (int64_t task = 0; task < tasks; task++) work(context, task, thread);
#endif
        if (cpu->end) cpu->end();
        vk_span_end(&cpu->queue, since);
    }
}
/* runs all jobs as one list of tasks; first_task int64 [count + 1] */
typedef struct vk_gemm_list {
    const vk_cpu *cpu;
    const vk_gemm_job *jobs;
    const int64_t *first_task;
    vk_epilogue epilogue;
    int stream;
} vk_gemm_list;
static void vk_gemm_share(const void *context, int64_t task, int thread) {
    const vk_gemm_list *list = (const vk_gemm_list *)context;
    int j = 0;
    while (task >= list->first_task[j + 1]) j++;
    vk_gemm_task(list->cpu, &list->jobs[j], task - list->first_task[j], list->epilogue, list->stream,
                 vk_quant_inputs(list->cpu, list->jobs, j), thread);
}
/* Returns how many jobs, from the first on, have room for their inputs as integers. The first job always
 * fits. */
static int vk_gemm_some(const vk_cpu *cpu, const vk_gemm_job *jobs, int count, int64_t *first_task,
                        vk_epilogue epilogue) {
    int64_t total = 0, products = 0, sums = 0, rows = 0;
    size_t integers = 0;
    vk_gemm_list list;
    vk_quant_list inputs;
    for (int j = 0; j < count; j++) {
        size_t bytes = vk_quant_bytes_of(cpu, jobs, j);
        if (j && integers + bytes > cpu->integers_bytes) { count = j; break; }
        integers += bytes;
        rows += jobs[j].m;
        first_task[j] = total;
        total += vk_gemm_tasks(&jobs[j], epilogue, cpu->queue.threads);
        products += (int64_t)jobs[j].m * jobs[j].w->n * jobs[j].w->k;
        sums += (int64_t)jobs[j].m * vk_columns(jobs[j].w, epilogue);
    }
    first_task[count] = total;
    list.cpu = cpu; list.jobs = jobs; list.first_task = first_task; list.epilogue = epilogue;
    list.stream = !cpu->wide && epilogue != VK_ADD_F32 && sums > VK_STREAM_SUMS;
    inputs.cpu = cpu; inputs.jobs = jobs; inputs.count = count;
    rows = integers ? vk_divide_up((int)rows, VK_QUANT_TASK) : 0;
    if (rows) vk_share(cpu, rows, integers > VK_PARALLEL_BYTES, vk_quant_share, &inputs);
    vk_share(cpu, total, products > (cpu->team ? VK_TEAM_PRODUCTS : VK_PARALLEL_PRODUCTS), vk_gemm_share, &list);
    return count;
}
/* the number of rows of a job's inputs that fit as integers */
static int vk_quant_fitting(const vk_cpu *cpu, const vk_gemm_job *job) {
    int rows = job->m;
    size_t bytes = vk_quant_row_bytes(cpu, job);
    if (bytes && (size_t)rows * bytes > cpu->integers_bytes) rows = (int)(cpu->integers_bytes / bytes);
    return rows;
}
static void vk_gemm_run(const vk_cpu *cpu, const vk_gemm_job *jobs, int count, int64_t *first_task,
                        vk_epilogue epilogue) {
    size_t in = cpu->wide ? 4 : 2, out = epilogue == VK_ADD_F32 || epilogue == VK_STORE_F32 ? 4 : in;
    while (count > 0) {
        vk_gemm_job piece = *jobs;
        int done = 1, rows = vk_quant_fitting(cpu, jobs);
        if (rows == jobs->m) done = vk_gemm_some(cpu, jobs, count, first_task, epilogue);
        else
            for (int r = 0; r < jobs->m; r += rows) {
                piece.m = jobs->m - r < rows ? jobs->m - r : rows;
                piece.x = (const char *)jobs->x + (size_t)r * (size_t)jobs->ldx * in;
                piece.y = (char *)jobs->y + (size_t)r * (size_t)jobs->ldy * out;
                vk_gemm_some(cpu, &piece, 1, first_task, epilogue);
            }
        jobs += done;
        count -= done;
    }
}
static void vk_linear_run(const vk_cpu *cpu, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *linear,
                          vk_epilogue epilogue) {
    vk_gemm_job job;
    int64_t first_task[2];
    job.y = y; job.x = x; job.w = linear; job.m = m; job.ldy = ldy; job.ldx = ldx;
    vk_gemm_run(cpu, &job, 1, first_task, epilogue);
}

/* ============================================================================================ attention >>attention */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/decode.h"
static void l_attention_decode(vk_queue *queue, void *out, const void *q, const void *key, const void *value,
                               float *scores, const int32_t *position, int keys, int lds, const vk_heads *heads,
                               int wide) {
    vk_one_query one;
    int64_t products = (int64_t)vk_seen_keys(keys, heads) * heads->heads * heads->head_dim;
    vk_shape(queue, 1, 1, keys, (int64_t)heads->heads * heads->head_dim);
    vk_grid(queue, NULL, heads->heads, 1, 0);
    if (!vk_begin(queue, "k_attention_decode", vk_attention_decode_flops(keys, heads),
                  vk_attention_decode_bytes(keys, heads, wide)))
        return;
    one.cpu = (const vk_cpu *)(const void *)queue;
    one.keys = vk_seen_keys(*position + 1, heads);
    size_t gone = (size_t)(*position + 1 - one.keys) * (size_t)(heads->kv_heads * heads->head_dim) * (wide ? 4 : 2);
    one.out = out; one.q = (const char *)q; one.key = (const char *)key + gone; one.value = (const char *)value + gone;
    one.scores = scores; one.heads = heads; one.lds = lds;
    vk_one_query_run(&one, products > VK_PARALLEL_BYTES);
    vk_end(queue);
}

#include "kernels/cpu/gemm_choice.h"

/* ======================================================================================================== cpu >>cpu
 * The CPU backend: when a call returns, its work is complete. */
static vk_cpu *vk_cpu_of(vk_queue *queue) { return (vk_cpu *)queue; }

/* zeroed pages; large ones if available, because a decode step reads gigabytes of weights */
#if defined(__linux__)
#include "kernels/cpu/free_memory.h"
static void *vk_reserve(size_t bytes) {
    uint64_t available = vk_free_bytes();
    if (available && bytes > available) return NULL; /* the kernel would overcommit and later kill the process */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}
static void vk_release(void *memory, size_t bytes) { if (memory) munmap(memory, bytes); }
#else
static uint64_t vk_free_bytes(void) { return 0; }
static void *vk_reserve(size_t bytes) { return calloc(1, bytes); }
static void vk_release(void *p, size_t bytes) { (void)bytes; free(p); }
#endif

static void vk_cpu_close(vk_queue *queue) {
    vk_cpu *cpu = vk_cpu_of(queue);
    vk_release(cpu->memory, cpu->memory_bytes);
    free(cpu->marks);
    free(cpu->tokens);
    free(cpu);
}
static vp_result vk_cpu_open(const vk_setup *setup, vk_queue **queue, vp_error *error) {
    vk_cpu *cpu = (vk_cpu *)calloc(1, sizeof *cpu);
    if (!cpu) return vp_error_set(error, VP_ERR_MEMORY, -1, "engine", "no memory");
    cpu->wide = setup->wide;
    cpu->queue.threads = setup->threads;
    vp_result result = vk_gemm_choose(cpu, setup->gemm, error);
    if (result != VP_OK) { vk_cpu_close(&cpu->queue); return result; }
    *queue = &cpu->queue;
    return VP_OK;
}
/* ---- the processor's name. On ARM, /proc/cpuinfo contains implementer and part numbers instead. The names of common
 * cores are from Linux's cputype.h and the vendors' manuals. */
static void vk_cpu_core_name(long implementer, long part, char *text, size_t capacity) {
    static const struct { long implementer, part; const char *name; } cores[] = {
        {0x41, 0xd03, "Cortex-A53"},    {0x41, 0xd04, "Cortex-A35"},    {0x41, 0xd05, "Cortex-A55"},
        {0x41, 0xd07, "Cortex-A57"},    {0x41, 0xd08, "Cortex-A72"},    {0x41, 0xd09, "Cortex-A73"},
        {0x41, 0xd0a, "Cortex-A75"},    {0x41, 0xd0b, "Cortex-A76"},    {0x41, 0xd0c, "Neoverse-N1"},
        {0x41, 0xd0d, "Cortex-A77"},    {0x41, 0xd40, "Neoverse-V1"},   {0x41, 0xd41, "Cortex-A78"},
        {0x41, 0xd42, "Cortex-A78AE"},  {0x41, 0xd44, "Cortex-X1"},     {0x41, 0xd46, "Cortex-A510"},
        {0x41, 0xd47, "Cortex-A710"},   {0x41, 0xd48, "Cortex-X2"},     {0x41, 0xd49, "Neoverse-N2"},
        {0x41, 0xd4d, "Cortex-A715"},   {0x41, 0xd4e, "Cortex-X3"},     {0x41, 0xd4f, "Neoverse-V2"},
        {0x43, 0x0af, "ThunderX2"},     {0x46, 0x001, "A64FX"},         {0x48, 0xd01, "Kunpeng-920"},
        {0x4e, 0x004, "Carmel"},        {0x61, 0x022, "M1 Icestorm"},   {0x61, 0x023, "M1 Firestorm"},
        {0x61, 0x032, "M2 Blizzard"},   {0x61, 0x033, "M2 Avalanche"},  {0xc0, 0xac3, "Ampere-1"},
        {0xc0, 0xac4, "Ampere-1a"},
    };
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (cores[i].implementer == implementer && cores[i].part == part) {
            snprintf(text, capacity, "%s", cores[i].name);
            return;
        }
    snprintf(text, capacity, "ARM implementer 0x%lx part 0x%lx", implementer, part);
}
/* The number after the colon of a line that begins with `key`; -1 for another line or if there is no number. */
static long vk_cpu_number_of(const char *line, const char *key) {
    const char *colon = strchr(line, ':');
    char *end;
    if (strncmp(line, key, strlen(key)) || !colon) return -1;
    long value = strtol(colon + 1, &end, 0);
    return end == colon + 1 || value < 0 ? -1 : value;
}
/* The model's name, or each kind of core once, in order. Files are under `root`, which is "" except in tests. */
static void vk_cpu_name(const char *root, char *text, size_t capacity) {
    char path[400], line[256], core[48];
    long implementer = -1;
    size_t used = 0;
    snprintf(path, sizeof path, "%.300s/proc/cpuinfo", root);
    FILE *file = fopen(path, "r");
    text[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        const long part = vk_cpu_number_of(line, "CPU part");
        if (!strncmp(line, "CPU implementer", 15)) implementer = vk_cpu_number_of(line, "CPU implementer");
        if (!strncmp(line, "model name", 10) && colon && colon[1] == ' ' && colon[2] && colon[2] != '\n') {
            snprintf(text, capacity, "%.90s", colon + 2);
            text[strcspn(text, "\n")] = 0;
            break;
        }
        if (implementer < 0 || part < 0) continue;
        vk_cpu_core_name(implementer, part, core, sizeof core);
        if (!strstr(text, core) && used + strlen(core) + 4 < capacity)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? " + " : "", core);
    }
    if (file) fclose(file);
    if (!text[0]) snprintf(text, capacity, "name not known");
}
static void vk_cpu_describe(vk_queue *queue, char *text, size_t capacity) {
    char name[96];
    vk_cpu_name("", name, sizeof name);
    snprintf(text, capacity, "cpu: %s, %d thread%s", name, queue->threads, queue->threads == 1 ? "" : "s");
}
static const char *vk_cpu_gemm(vk_queue *queue, int wide, int rows) {
    return vk_cpu_of(queue)->gemm[wide][vk_shape_of(rows)]->name;
}
static const char *vk_cpu_gemm_name(int32_t index) {
    for (int i = 0; i < VK_GEMM_KERNELS; i++)
        if (vk_gemm_kernels[i].present() && index-- == 0) return vk_gemm_kernels[i].name;
    return NULL;
}
static uint64_t vk_cpu_free_bytes(vk_queue *queue) { (void)queue; return vk_free_bytes(); }
static void *vk_cpu_allocate(vk_queue *queue, size_t bytes) {
    vk_cpu *cpu = vk_cpu_of(queue);
    cpu->memory = vk_reserve(bytes);
    cpu->memory_bytes = bytes;
    return cpu->memory;
}
/* scratch: panels of K | panels of V | a strip of each thread | pieces of attention | a widened panel of each thread |
 * inputs of linears with integers | tasks before each job of a grouped product */
static void vk_cpu_layout(vk_cpu *cpu, const vk_extent *extent, vk_arena *arena) {
    size_t element = extent->wide ? 4 : 2, threads = (size_t)cpu->queue.threads;
    size_t panels = vk_max(vk_attention_panel_elements(extent->vit.tokens, extent->vit.kv_heads, extent->vit.head_dim),
                           vk_attention_panel_elements(extent->llm.tokens, extent->llm.kv_heads, extent->llm.head_dim));
    cpu->k_panels = vk_take(arena, panels, element);
    cpu->v_panels = vk_take(arena, panels, element);
    int head_dim = extent->vit.head_dim > extent->llm.head_dim ? extent->vit.head_dim : extent->llm.head_dim;
    cpu->attend_bytes = vk_attend_bytes((size_t)head_dim, extent->wide);
    cpu->attend = vk_take(arena, threads, cpu->attend_bytes);
    cpu->pieces = (float *)vk_take(arena, VK_PIECES, 4 * vk_piece_floats(extent->llm.heads, head_dim));
    cpu->widened_bytes = vk_quant_room_bytes(extent->quant_k);
    cpu->widened = vk_take(arena, threads, cpu->widened_bytes);
    /* at least the rows of one job, and all experts of a decode step at once */
    cpu->integers_bytes = (size_t)(extent->llm.tokens > extent->experts ? extent->llm.tokens : extent->experts + 1)
                          * (size_t)(extent->quant_k / VK_QUANT_BLOCK) * sizeof(vk_fine);
    cpu->integers = vk_take(arena, cpu->integers_bytes + (extent->quant_k ? vk_bytes_spare(extent->quant_k) : 0), 1);
    cpu->first_task = (int64_t *)vk_take(arena, (size_t)extent->experts + 1, sizeof *cpu->first_task);
}
static size_t vk_cpu_scratch_bytes(vk_queue *queue, const vk_extent *extent) {
    vk_arena arena = {NULL, 0};
    vk_cpu_layout(vk_cpu_of(queue), extent, &arena);
    return arena.used;
}
static int vk_cpu_use(vk_queue *queue, const vk_extent *extent, void *scratch) {
    vk_cpu *cpu = vk_cpu_of(queue);
    vk_arena arena = {(char *)scratch, 0};
    vk_cpu_layout(cpu, extent, &arena);
    cpu->marks = (int64_t *)calloc((size_t)extent->marks, sizeof *cpu->marks);
    cpu->tokens = (int32_t *)calloc((size_t)extent->marks, sizeof *cpu->tokens);
    return cpu->marks && cpu->tokens;
}
static void vk_cpu_enter(vk_queue *queue) { (void)queue; }
static void *vk_cpu_stage(vk_queue *queue, void *to, size_t bytes) { (void)queue; (void)bytes; return to; }
static void vk_cpu_commit(vk_queue *queue, void *to, size_t bytes) { (void)queue; (void)to; (void)bytes; }
static void vk_cpu_fetch(vk_queue *queue, void *host, const void *from, size_t bytes) {
    if (!queue->dry) memcpy(host, from, bytes);
}
static void vk_cpu_copy(vk_queue *queue, void *to, const void *from, size_t bytes) {
    queue->next.kind = VP_LAUNCH_COPY;
    if (!vk_begin(queue, "copy", 0, 2 * (int64_t)bytes)) return;
    memcpy(to, from, bytes);
    vk_end(queue);
}
static int64_t vk_linear_bytes(const vk_linear *linear, int m, vk_epilogue epilogue, int wide) {
    int64_t in = linear->wide ? 4 : 2, out = epilogue == VK_ADD_F32 ? 8 : epilogue == VK_STORE_F32 || wide ? 4 : 2;
    return vk_weight_bytes(linear) + (int64_t)m * linear->k * in + (int64_t)m * vk_columns(linear, epilogue) * out
           + (linear->bias ? 4 * (int64_t)linear->n : 0);
}
static int64_t vk_linear_flops(const vk_linear *linear, int m, vk_epilogue epilogue) {
    int64_t columns = vk_columns(linear, epilogue), more = epilogue == VK_ADD_F32 ? 1 : vk_gelu_flops(epilogue);
    return m * (linear->n * (2 * (int64_t)linear->k + (linear->bias ? 1 : 0)) + columns * more);
}
static void vk_cpu_linear(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *linear,
                          vk_epilogue epilogue) {
    vk_cpu *cpu = vk_cpu_of(queue);
    vk_shape(queue, m, linear->n, linear->k, 0);
    if (!vk_begin(queue, "gemm", vk_linear_flops(linear, m, epilogue), vk_linear_bytes(linear, m, epilogue, cpu->wide)))
        return;
    vk_linear_run(cpu, y, ldy, x, ldx, m, linear, epilogue);
    vk_end(queue);
}
static void vk_cpu_grouped(vk_queue *queue, const vk_gemm_job *jobs, int count, vk_epilogue epilogue) {
    vk_cpu *cpu = vk_cpu_of(queue);
    int64_t flops = 0, bytes = 0, rows = 0, experts = 0;
    for (int i = 0; i < count; i++) {
        if (jobs[i].m == 0) continue;
        rows += jobs[i].m;
        experts++;
        flops += vk_linear_flops(jobs[i].w, jobs[i].m, epilogue);
        bytes += vk_linear_bytes(jobs[i].w, jobs[i].m, epilogue, cpu->wide);
    }
    vk_shape(queue, rows, count ? jobs[0].w->n : 0, count ? jobs[0].w->k : 0, experts);
    if (!vk_begin(queue, "gemm_grouped", flops, bytes)) return;
    vk_gemm_run(cpu, jobs, count, cpu->first_task, epilogue);
    vk_end(queue);
}
static void vk_cpu_attention(vk_queue *queue, const vk_attention_job *job) {
    vk_cpu *cpu = vk_cpu_of(queue);
    int64_t tokens = job->tokens, scores = vk_attention_scores(job);
    vk_shape(queue, job->batch, tokens, tokens, (int64_t)job->heads * job->head_dim);
    if (!vk_begin(queue, "attention", scores * (4 * (int64_t)job->head_dim + 5),
                  job->batch * tokens * (job->heads + job->kv_heads) * job->head_dim * 2 * vk_element(cpu->wide)))
        return;
    for (int i = 0; i < job->batch; i++) {
        vk_attention_job one = *job;
        size_t rows = (size_t)i * (size_t)tokens * (cpu->wide ? 4 : 2);
        one.batch = 1;
        one.y = (char *)job->y + rows * (size_t)job->ldy;
        one.q = (const char *)job->q + rows * (size_t)job->ldq;
        one.k = (const char *)job->k + rows * (size_t)job->ldk;
        one.v = (const char *)job->v + rows * (size_t)job->ldk;
        vk_attention_run(cpu, &one);
    }
    vk_end(queue);
}
/* `work` sends operations; threads stay ready from the first operation to the last */
static void vk_cpu_together(vk_queue *queue, void (*work)(void *context), void *context) {
#ifdef _OPENMP
    vk_cpu *cpu = vk_cpu_of(queue);
    if (queue->threads > 1 && !queue->dry) {
        vk_team_together(&cpu->team, queue, cpu->begin, cpu->end, work, context);
        return;
    }
#else
    (void)queue;
#endif
    work(context);
}
static int64_t vk_cpu_mark(vk_queue *queue, int slot, const int32_t *token) {
    vk_cpu *cpu = vk_cpu_of(queue);
    if (token) cpu->tokens[slot] = *token;
    if (queue->timing == VP_TIMING_OFF) return 0;
    queue->stamps++;
    return cpu->marks[slot] = vp_clock_ns();
}
static vp_result vk_cpu_wait(vk_queue *queue, int slot, vp_error *error) {
    (void)queue;
    (void)slot;
    (void)error;
    return VP_OK;
}
static int64_t vk_cpu_between(vk_queue *queue, int from, int to) {
    return vk_cpu_of(queue)->marks[to] - vk_cpu_of(queue)->marks[from];
}
static int32_t vk_cpu_token(vk_queue *queue, int slot, int position) {
    (void)position;
    return vk_cpu_of(queue)->tokens[slot];
}
static int vk_cpu_reserve_log(vk_queue *queue, int64_t count) { (void)queue; (void)count; return 1; }
static int vk_cpu_read_log(vk_queue *queue) {
    for (int64_t i = 0; i < queue->log_count; i++) {
        queue->log[i].host_begin_ns = queue->log[i].begin_ns -= vk_cpu_of(queue)->marks[0];
        queue->log[i].host_ns = queue->log[i].ns;
    }
    for (int64_t i = 0; queue->spans && i < queue->spans->count && i < queue->spans->capacity; i++)
        queue->spans->span[i].begin_ns -= vk_cpu_of(queue)->marks[0];
    return 1;
}
static void vk_cpu_recover(vk_queue *queue) { (void)queue; }
static uint64_t vk_cpu_pinned_bytes(vk_queue *queue) { (void)queue; return 0; }
static const char *vk_cpu_launch_timer(vk_queue *queue) { (void)queue; return "the host's clock"; }
static void *vk_cpu_borrow(vk_queue *queue, size_t bytes) {
    char *memory = (char *)vk_reserve(bytes);
    (void)queue;
    if (!memory) return NULL;
    VK_PRAGMA(omp parallel for schedule(static) num_threads(queue->threads))
    for (int64_t piece = 0; piece < (int64_t)(bytes >> 20); piece++)
        memset(memory + ((size_t)piece << 20), 0x3c, (size_t)1 << 20);
    memset(memory + (bytes >> 20 << 20), 0x3c, bytes & 0xfffff);
    return memory;
}
static void vk_cpu_give_back(vk_queue *queue, void *memory, size_t bytes) { (void)queue; vk_release(memory, bytes); }

/* ---- telemetry. Files are under `root`, which is "" except in tests. A number that cannot be read is unknown;
 * cores may be offline. */
static int vk_read_number(const char *path, double *out) {
    char text[64], *end = text;
    FILE *file = fopen(path, "r");
    long long value = 0;
    if (!file) return 0;
    if (fgets(text, sizeof text, file)) value = strtoll(text, &end, 10);
    fclose(file);
    *out = (double)value;
    return end != text && (*end == '\n' || *end == 0);
}
static void vk_cpu_cores(const char *root, vp_telemetry *telemetry) {
    double sum = 0.0, most = 0.0, throttled = 0.0, value;
    int clocks = 0, counters = 0;
    for (int core = 0; core < 8192; core++) {
        char folder[400], path[480];
        snprintf(folder, sizeof folder, "%.300s/sys/devices/system/cpu/cpu%d", root, core);
        if (access(folder, F_OK) != 0) break;
        snprintf(path, sizeof path, "%s/cpufreq/scaling_cur_freq", folder);
        if (vk_read_number(path, &value) && value > 0.0) { sum += value; clocks++; }
        snprintf(path, sizeof path, "%s/cpufreq/cpuinfo_max_freq", folder);
        if (vk_read_number(path, &value) && value > most) most = value;
        snprintf(path, sizeof path, "%s/thermal_throttle/core_throttle_count", folder);
        if (vk_read_number(path, &value) && value >= 0.0) { throttled += value; counters++; }
    }
    if (clocks) telemetry->sm_clock_mhz = sum / clocks * 1e-3; /* files are in kHz */
    if (most > 0.0) telemetry->sm_clock_max_mhz = most * 1e-3;
    if (counters) telemetry->throttle_count = throttled;
}
/* virtual machines have no cpufreq; only the integer part of "cpu MHz : 2100.000" is used */
static void vk_cpu_clock_of_cpuinfo(const char *root, vp_telemetry *telemetry) {
    char path[400], line[512];
    long long sum = 0, mhz;
    int count = 0;
    snprintf(path, sizeof path, "%.300s/proc/cpuinfo", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "cpu MHz", 7) || !colon) continue;
        mhz = strtoll(colon + 1, NULL, 10);
        if (mhz > 0 && mhz < 100000) { sum += mhz; count++; }
    }
    if (file) fclose(file);
    if (count) telemetry->sm_clock_mhz = (double)sum / count;
}
/* the hottest of the processor's thermal zones */
static void vk_cpu_temperature(const char *root, vp_telemetry *telemetry) {
    for (int zone = 0; zone < 256; zone++) {
        char path[400], type[64] = "";
        double value;
        snprintf(path, sizeof path, "%.300s/sys/class/thermal/thermal_zone%d/type", root, zone);
        FILE *file = fopen(path, "r");
        if (!file) break;
        if (!fgets(type, sizeof type, file)) type[0] = 0;
        fclose(file);
        if (strncmp(type, "x86_pkg_temp", 12) && strncmp(type, "cpu", 3) && strncmp(type, "soc", 3)) continue;
        snprintf(path, sizeof path, "%.300s/sys/class/thermal/thermal_zone%d/temp", root, zone);
        if (!vk_read_number(path, &value) || !(value > -100e3 && value < 300e3)) continue; /* thousandths of a degree */
        if (isnan(telemetry->temperature_c) || value * 1e-3 > telemetry->temperature_c)
            telemetry->temperature_c = value * 1e-3;
    }
}
static vp_result vk_cpu_telemetry(const char *root, vp_telemetry *out, vp_error *error) {
    vp_telemetry telemetry;
    vk_no_telemetry(&telemetry);
    vk_cpu_cores(root, &telemetry);
    if (isnan(telemetry.sm_clock_mhz)) vk_cpu_clock_of_cpuinfo(root, &telemetry);
    vk_cpu_temperature(root, &telemetry);
    if (isnan(telemetry.sm_clock_mhz) && isnan(telemetry.sm_clock_max_mhz) && isnan(telemetry.temperature_c)
        && isnan(telemetry.throttle_count))
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "cpu telemetry",
                            "neither /sys nor /proc/cpuinfo reports a clock, a temperature or a throttle count");
    *out = telemetry;
    return VP_OK;
}

static vp_result vk_cpu_telemetry_here(int32_t index, vp_telemetry *out, vp_error *error) {
    (void)index;
    return vk_cpu_telemetry("", out, error);
}
static vp_result vk_cpu_energy(int32_t index, double *joules, vp_error *error) {
    (void)index;
    (void)joules;
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "energy", "is counted only on GPUs, by NVML");
}

static const vk_backend vk_cpu_backend = {
    VK_KERNEL_TABLE, 0, 1, 1, 1, 0, 0, SIZE_MAX, 0, VK_BACKEND_FUNCTIONS(vk_cpu), vk_cpu_gemm_name, NULL, NULL,
    vk_cpu_telemetry_here, vk_cpu_energy, NULL, NULL, NULL, NULL, NULL, NULL, NULL, vk_cpu_together, NULL
};
const vk_backend *vk_cpu_code(void) { return &vk_cpu_backend; }
#endif /* !VK_CUDA */
