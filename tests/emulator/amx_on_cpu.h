/* amx_on_cpu.h - AMX tiles in software: the code for AMX, compiled unchanged, runs on a processor that lacks them
 *
 * Include this before vlmprof_kernels.cu, or compile with -include. Each thread has eight tiles of 16 rows of 64 bytes.
 * An operation on tiles that this thread did not configure ends the program, as the processor would. Products are summed
 * in fp32; the order within a pair is the processor's. The rest of the code needs AVX-512 BF16, as on real AMX. */
#ifndef AMX_ON_CPU
#define AMX_ON_CPU 1
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* the kernels' own */
#endif
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct amx_tile { unsigned char row[16][64]; } amx_tile;
static __thread amx_tile amx_tiles[8];
static __thread int amx_configured;
static inline amx_tile *amx_tile_of(int index) {
    if (!amx_configured || index < 0 || index > 7) {
        fprintf(stderr, "amx_on_cpu: tile %d of a thread that did not configure it\n", index);
        abort();
    }
    return &amx_tiles[index];
}
/* only what the kernels ask for: eight full tiles */
static inline void vk_amx_configure(const void *config) {
    const unsigned char *bytes = (const unsigned char *)config;
    int wrong = bytes[0] != 1 || bytes[1] != 0;
    for (int i = 0; i < 8; i++) wrong |= bytes[16 + 2 * i] != 64 || bytes[17 + 2 * i] != 0 || bytes[48 + i] != 16;
    if (wrong) { fprintf(stderr, "amx_on_cpu: not a configuration of eight full tiles\n"); abort(); }
    amx_configured = 1;
    memset(amx_tiles, 0xff, sizeof amx_tiles); /* NaN: no one may count on what is in them */
}
static inline void vk_amx_release(void) { amx_configured = 0; }
static inline void vk_amx_zero(int to) { memset(amx_tile_of(to), 0, sizeof(amx_tile)); }
static inline void vk_amx_load(int to, const void *from, long stride) {
    amx_tile *tile = amx_tile_of(to);
    for (int r = 0; r < 16; r++) memcpy(tile->row[r], (const char *)from + r * stride, 64);
}
static inline void vk_amx_store(int from, void *to, long stride) {
    const amx_tile *tile = amx_tile_of(from);
    for (int r = 0; r < 16; r++) memcpy((char *)to + r * stride, tile->row[r], 64);
}
static inline float amx_value(const unsigned char *bf16) {
    uint16_t bits;
    float value;
    memcpy(&bits, bf16, 2);
    uint32_t word = (uint32_t)bits << 16;
    memcpy(&value, &word, 4);
    return value;
}
/* C[r][c] += A[r][2 k] * B[k][2 c] + A[r][2 k + 1] * B[k][2 c + 1] */
static inline void vk_amx_products(int to, int left, int right) {
    amx_tile *c = amx_tile_of(to);
    const amx_tile *a = amx_tile_of(left), *b = amx_tile_of(right);
    float pairs[16][32];
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 32; i++) pairs[k][i] = amx_value(&b->row[k][2 * i]);
    for (int r = 0; r < 16; r++) {
        float sums[16];
        memcpy(sums, c->row[r], 64);
        for (int k = 0; k < 16; k++) {
            float first = amx_value(&a->row[r][4 * k]), second = amx_value(&a->row[r][4 * k + 2]);
            for (int i = 0; i < 16; i++) sums[i] += first * pairs[k][2 * i] + second * pairs[k][2 * i + 1];
        }
        memcpy(c->row[r], sums, 64);
    }
}
/* C[r][c] += the sum of A[r][4 k + i] * B[k][4 c + i], bytes with a sign */
static inline void vk_amx_bytes(int to, int left, int right) {
    amx_tile *c = amx_tile_of(to);
    const amx_tile *a = amx_tile_of(left), *b = amx_tile_of(right);
    for (int r = 0; r < 16; r++) {
        int32_t sums[16];
        memcpy(sums, c->row[r], 64);
        for (int k = 0; k < 64; k++)
            for (int i = 0; i < 16; i++) sums[i] += (int8_t)a->row[r][k] * (int8_t)b->row[k / 4][4 * i + k % 4];
        memcpy(c->row[r], sums, 64);
    }
}
#define vk_amx_stream(to, from, stride) vk_amx_load(to, from, stride)
#endif
