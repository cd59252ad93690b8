/* butterflies_on_cpu.h, part of cuda_on_cpu.h: butterflies of shuffles (a warp's sum or maximum) in one meeting of the lanes instead of one for each shuffle, with the
 * same operations in the same order. 7 of 8 launches use this, because changing lanes is most of what the emulation costs; the others shuffle. */
namespace cuda_on_cpu {
template <bool is_max> CUDA_ON_CPU_FAST inline void finish_butterfly(Warp &w, uint32_t group) {
    float v[32], other[32];
    unsigned first = w.source[__builtin_ctz(group)];
    for (unsigned l = 0; l < 32; l++) {
        if ((group >> l & 1) && w.source[l] != first) fail("a butterfly: the lanes begin at different distances");
        v[l] = bf16_float(0xffff);
        if (group >> l & 1) memcpy(&v[l], &w.in[l], 4);
    }
    for (unsigned o = first; o; o >>= 1) {
        for (unsigned l = 0; l < 32; l++) other[l] = v[l ^ o];
        for (unsigned l = 0; l < 32; l++) v[l] = is_max ? fmaxf(v[l], other[l]) : v[l] + other[l];
        for (uint32_t gone = ~group; gone; gone &= gone - 1) v[__builtin_ctz(gone)] = bf16_float(0xffff);
    }
    for (unsigned l = 0; l < 32; l++) if (group >> l & 1) memcpy(&w.out[l], &v[l], 4);
}
/* each lane's values += those of the lane `bits` apart */
CUDA_ON_CPU_FAST inline void finish_add_other(Warp &w, uint32_t group) {
    unsigned bits = w.source[__builtin_ctz(group)];
    int count = w.matrix[__builtin_ctz(group)].count;
    for (unsigned l = 0; l < 32; l++)
        if ((group >> l & 1) && (w.source[l] != bits || w.matrix[l].count != count)) fail("sums of pairs: the lanes want different ones");
    for (unsigned l = 0; l < 32; l++) {
        if (l & bits) continue;
        for (int i = 0; i < count; i++) {
            float nan = bf16_float(0xffff), a = group >> l & 1 ? w.matrix[l].c[i] : nan, b = group >> (l | bits) & 1 ? w.matrix[l | bits].c[i] : nan;
            if (group >> l & 1) w.matrix[l].c[i] = a + b;
            if (group >> (l | bits) & 1) w.matrix[l | bits].c[i] = a + b;
        }
    }
}
inline const Meeting meet_sum = { "a warp's sum", finish_butterfly<false> }, meet_max = { "a warp's maximum", finish_butterfly<true> },
    meet_pairs = { "sums of pairs", finish_add_other };
} // namespace cuda_on_cpu

/* What these loops give, in one meeting: `for (o = from; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o)`, the same with fmaxf, and `v[i] *= factor; v[i] +=
 * __shfl_xor_sync(~0u, v[i], bits)` for `count` values. */
#define CUDA_ON_CPU_AT_ONCE cuda_on_cpu::at_once
inline float cuda_on_cpu_sum(float v, int from) { return cuda_on_cpu::shuffle(&cuda_on_cpu::meet_sum, ~0u, v, (unsigned)from); }
inline float cuda_on_cpu_max(float v, int from) { return cuda_on_cpu::shuffle(&cuda_on_cpu::meet_max, ~0u, v, (unsigned)from); }
inline void cuda_on_cpu_add_other(float *v, int count, float factor, int bits) {
    using namespace cuda_on_cpu;
    for (int i = 0; i < count; i++) v[i] *= factor;
    running.warp->source[running.number] = (unsigned)bits;
    running.warp->matrix[running.number].c = v;
    running.warp->matrix[running.number].count = count;
    meet(&meet_pairs, ~0u);
}
