/* epilogues.h - bias, activation and softmax as separate GPU kernels, for products that do not include them; included
 * by vlmprof_kernels.cu (>>cuda). The CPU does not need them: its GEMM and attention tiles include these steps. */

/* y in-type [rows, ldy], the first n columns: QuickGELU in place. `vectors` vectors of 8 bf16 are computed at
 * once, the rest one by one. One block per row. */
FN uint32_t vk_quickgelu_pair(uint32_t two) {
    return vk_f2b(vk_quickgelu(vk_b2f((uint16_t)two)))
           | (uint32_t)vk_f2b(vk_quickgelu(vk_b2f((uint16_t)(two >> 16)))) << 16;
}
KERNEL(k_quickgelu, void *y, int n, int ldy, int vectors, int wide) {
    size_t row = BLK * (size_t)ldy;
    uint4 *eight = (uint4 *)(void *)((uint16_t *)y + row);
    EACH(i, vectors) {
        uint4 v = eight[i];
        v.x = vk_quickgelu_pair(v.x);
        v.y = vk_quickgelu_pair(v.y);
        v.z = vk_quickgelu_pair(v.z);
        v.w = vk_quickgelu_pair(v.w);
        eight[i] = v;
    }
    for (int i = 8 * vectors + TID; i < n; i += NTID)
        vk_put(y, row + (size_t)i, vk_quickgelu(vk_get(y, row + (size_t)i, wide)), wide);
}
/* GELU in place, y as above */
KERNEL(k_gelu, void *y, int n, int ldy, int tanh_kind, int wide) {
    size_t row = BLK * (size_t)ldy;
    EACH(i, n) {
        float value = vk_get(y, row + (size_t)i, wide);
        vk_put(y, row + (size_t)i, tanh_kind ? vk_gelu_tanh(value) : vk_gelu(value), wide);
    }
}
/* writes the bias f32 [n] into each row of y [rows, ldy], in-type, or adds it if `add`. A product that adds to y
 * follows. */
KERNEL(k_bias_rows, void *y, const float *bias, int n, int ldy, int add, int wide) {
    size_t row = BLK * (size_t)ldy;
    EACH(i, n) vk_put(y, row + (size_t)i, add ? vk_get(y, row + (size_t)i, wide) + bias[i] : bias[i], wide);
}
/* Attention weights in-type [count, ld] = softmax of scores f32 [count, ld] * scale over the first `live` keys; 0
 * for the other keys. causal: row r of each head's `rows` sees live + r keys, or reach[live - 1 + r] keys if reach
 * is given. With a window it sees no key before live + r - window, or left[live - 1 + r]. One warp per row. */
KERNEL(k_softmax_rows, void *weights, const float *scores, int count, int rows, int live, int keys, int ld, int causal,
       const int32_t *reach, const int32_t *left, int window, float scale, int wide) {
    size_t row = BLK * (size_t)(NTID >> 5) + (size_t)(TID >> 5), o = row * (size_t)ld;
    if (row < (size_t)count) {
        int own = causal ? live + (int)(row % (size_t)rows) : live, seen = reach ? reach[own - 1] : own,
            gone = VK_GONE(left, window, own - 1);
        float m = -INFINITY, sum = 0.0f;
        for (int i = gone + (TID & 31); i < seen; i += 32) m = scores[o + (size_t)i] > m ? scores[o + (size_t)i] : m;
        m = warp_max(m);
        for (int i = gone + (TID & 31); i < seen; i += 32) sum += vk_exp((scores[o + (size_t)i] - m) * scale);
        sum = warp_sum(sum);
        for (int i = TID & 31; i < keys; i += 32)
            vk_put(weights, o + (size_t)i,
                   i >= gone && i < seen ? vk_exp((scores[o + (size_t)i] - m) * scale) / sum : 0.0f, wide);
    }
}
