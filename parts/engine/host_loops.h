/* host_loops.h - loops of the host: OpenMP where it is there, SIMD code for the processor that runs it */
#ifndef VK_HOST_LOOPS_H
#define VK_HOST_LOOPS_H

#include <stdint.h>
#include <string.h>

#define VK_TEXT(x) #x
#ifdef _OPENMP
#define VK_PRAGMA(x) _Pragma(VK_TEXT(x))
#else
#define VK_PRAGMA(x)
#endif
#define VK_SIMD VK_PRAGMA(omp simd)
#ifdef __clang__
/* a sanitizer keeps it from vectorising, and it says so of every loop */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* the first versions that know AMX; older compilers get the plain kernels */
#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : defined(__GNUC__) && __GNUC__ >= 11)
#define VK_X86 1
#endif
/* run-time dispatch instead of -march: GCC compiles a kernel three times and picks by processor. Sanitizers run before
 * the resolver may, and clang 14 does not know the attribute: both get the baseline. */
#if defined(VK_X86) && !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) \
    && !defined(__SANITIZE_THREAD__)
#define VK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VK_CLONES
#endif

/* round to nearest even, without the NaN test of vp_f32_to_bf16: the value is finite, and a NaN may turn into another
 * NaN, inf or zero */
static inline uint16_t vk_f2b(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
#endif
