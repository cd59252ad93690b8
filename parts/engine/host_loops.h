/* host_loops.h - loops on the host: OpenMP if available, and SIMD code for the processor in use */
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
/* with a sanitizer, clang cannot vectorise and warns about every loop */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* the first compilers with AMX; older ones use the plain kernels */
#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : defined(__GNUC__) && __GNUC__ >= 11)
#define VK_X86 1
#elif defined(__aarch64__) && defined(__GNUC__)
#define VK_NEON 1
/* BFDOT and BFMMLA in single functions need compiler support, and a system that reports whether the processor has
 * them */
#if defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 10)
#define VK_NEON_BF16 1
#endif
#endif
/* Run-time dispatch instead of -march: GCC compiles a kernel three times and picks one for the processor. Under
 * sanitizers, whose resolver would run too early, and in clang, whose version 14 lacks the attribute, the baseline is
 * used. */
#if defined(VK_X86) && !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) \
    && !defined(__SANITIZE_THREAD__)
#define VK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VK_CLONES
#endif

/* Rounds to nearest even, without the NaN test of vp_f32_to_bf16: values must be finite; a NaN may become another NaN,
 * inf or zero. */
static inline uint16_t vk_f2b(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    return (uint16_t)((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}
#endif
