/* quant_tiles.h - kernels for many tokens and linears with integer weights of 8 or 4 bits, on a GPU; included by
 * vlmprof_kernels.cu. quant_decode.h describes the layout of the weights.
 *
 * Both methods widen weights to bf16 and use the existing bf16 products. A dense linear is widened panel by panel into
 * memory that fits the second-level cache, for cuBLAS or wgmma. Experts are widened while they are loaded into shared
 * memory, for the tiles of mma.sync on every chip. Only the device knows which experts have rows, and all experts of a
 * block would take 0.8 GB. A thread loads 32 values of one row of weights and their scale into registers while the
 * previous slice is multiplied. */

/* 16 + nibble n of a word */
FN float vk_nibble(uint32_t word, int n) {
    uint32_t high = n < 5 ? word << (19 - 4 * n) : word >> (4 * n - 19);
    return __uint_as_float((high & 0x780000u) | 0x41800000u);
}
/* byte n of a word of signed bytes, whose top bits were flipped */
FN float vk_byte(uint32_t word, int n) {
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7540u + (unsigned)n)) - 8388736.0f;
}
/* a word of 4 bits, or two of 8: eight values as bf16; each is rounded once */
template <int BITS> FN uint4 vk_quant_widen(uint32_t word, uint32_t next, float scale) {
    uint32_t two[4];
    if (BITS == 8) { word ^= 0x80808080u; next ^= 0x80808080u; }
    VK_UNROLL for (int i = 0; i < 4; i++) {
        uint32_t bytes = i < 2 ? word : next;
        float low = BITS == 8 ? vk_byte(bytes, 2 * (i & 1)) : vk_nibble(word, i) - 24.0f,
              high = BITS == 8 ? vk_byte(bytes, 2 * (i & 1) + 1) : vk_nibble(word, i + 4) - 24.0f;
        two[i] = vk_pack2(scale * low, scale * high);
    }
    return make_uint4(two[0], two[1], two[2], two[3]);
}
/* out bf16: `count` times eight values from consecutive integers */
KERNEL(k_quant_widen, uint4 *__restrict__ out, const uint32_t *__restrict__ weights,
       const uint16_t *__restrict__ scales, int count, int bits) {
    int i = (int)BLK * NTID + TID;
    if (i >= count) return;
    float scale = vk_b2f(scales[i / (VK_QUANT_BLOCK / 8)]);
    out[i] = bits == 8 ? vk_quant_widen<8>(weights[2 * (size_t)i], weights[2 * (size_t)i + 1], scale)
                       : vk_quant_widen<4>(weights[i], 0, scale);
}

/* ---- experts: like k_experts_gate_up and k_experts_down */
enum { VK_QUANT_X = VK_GROUP_ROWS * VK_GROUP_DEPTH, VK_QUANT_W = VK_GROUP_COLUMNS * VK_GROUP_DEPTH,
       VK_QUANT_BYTES = (VK_GROUP_STAGES * VK_QUANT_X + 2 * VK_QUANT_W) * 2 };
typedef struct vk_quant_piece { /* a thread's next 32 values: column TID / 2 of the tile, starting at `k` */
    const uint4 *weights;
    const uint16_t *scales;
    uint4 packed[2]; /* 4 bits use only the first */
    float scale;
    int k;
} vk_quant_piece;
template <int BITS> FN vk_quant_piece vk_quant_begin(const vk_group *group, const char *scales) {
    int column = TID >> 1, is_up = group->gated && column >= VK_GROUP_COLUMNS / 2,
        c = group->column + column - (is_up ? VK_GROUP_COLUMNS / 2 : 0), k = (TID & 1) * VK_QUANT_BLOCK,
        row = c < group->n ? is_up ? group->n + c : c : 0; /* columns after the last only affect dropped results */
    size_t block = ((size_t)row * (size_t)group->k_padded + (size_t)k) / VK_QUANT_BLOCK;
    vk_quant_piece piece = { (const uint4 *)(const void *)group->weights + block * (BITS / 4),
                             (const uint16_t *)(const void *)scales + block,
                             { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } }, 0.0f, k };
    return piece;
}
template <int BITS> FN void vk_quant_bring(vk_quant_piece *piece, int k_padded) {
    if (piece->k < k_padded) {
        piece->packed[0] = piece->weights[0];
        if (BITS == 8) piece->packed[1] = piece->weights[1];
        piece->scale = vk_b2f(piece->scales[0]);
    }
    piece->weights += VK_GROUP_DEPTH * BITS / 128;
    piece->scales += VK_GROUP_DEPTH / VK_QUANT_BLOCK;
    piece->k += VK_GROUP_DEPTH;
}
/* values after the last k remain from the previous piece, and are not multiplied */
template <int BITS> FN void vk_quant_put(uint16_t *slice, const vk_quant_piece *piece) {
    const uint32_t word[8] = {piece->packed[0].x, piece->packed[0].y, piece->packed[0].z, piece->packed[0].w,
                              piece->packed[1].x, piece->packed[1].y, piece->packed[1].z, piece->packed[1].w};
    VK_UNROLL for (int j = 0; j < 4; j++) * (uint4 *)(void *)vk_group_at(slice, TID >> 1, (TID & 1) * 4 + j) =
        BITS == 8 ? vk_quant_widen<8>(word[2 * j], word[2 * j + 1], piece->scale)
                  : vk_quant_widen<4>(word[j], 0, piece->scale);
}
/* Slices of x are as in vk_group_sums. There are two slices of weights: one is multiplied while the other is filled. */
template <int BITS> FN void vk_quant_group_sums(const vk_group *group, const char *scales, float (*acc)[4][4]) {
    CUDA_DYNAMIC_SHARED(uint16_t, slices);
    uint16_t *widened = slices + VK_GROUP_STAGES * VK_QUANT_X;
    int steps = (group->k_padded + VK_GROUP_DEPTH - 1) / VK_GROUP_DEPTH, source[4],
        live = __shfl_sync(~0u, group->rows - (TID >> 5 & 1) * 64, 0); /* as in vk_group_sums */
    vk_quant_piece piece = vk_quant_begin<BITS>(group, scales);
    vk_group_begin(group, source, acc);
    for (int s = 0; s < VK_GROUP_STAGES - 1; s++) {
        vk_group_fetch_x(group, slices + s * VK_QUANT_X, source, s * VK_GROUP_DEPTH);
        vk_copy_commit();
    }
    vk_quant_bring<BITS>(&piece, group->k_padded);
    vk_quant_put<BITS>(widened, &piece);
    vk_quant_bring<BITS>(&piece, group->k_padded);
    VK_ROLLED for (int s = 0; s < steps; s++) {
        int ahead = s + VK_GROUP_STAGES - 1;
        vk_copy_wait(VK_GROUP_STAGES - 2);
        SYNC(); /* all threads have written these slices and read the previous ones */
        vk_group_fetch_x(group, slices + ahead % VK_GROUP_STAGES * VK_QUANT_X, source, ahead * VK_GROUP_DEPTH);
        vk_copy_commit();
        vk_quant_put<BITS>(widened + (~s & 1) * VK_QUANT_W, &piece);
        vk_quant_bring<BITS>(&piece, group->k_padded);
        vk_group_multiply(group, acc, slices + s % VK_GROUP_STAGES * VK_QUANT_X, widened + (s & 1) * VK_QUANT_W,
                          s * VK_GROUP_DEPTH, live);
    }
}
FN void vk_quant_tile(const vk_group *group, float (*acc)[4][4], const char *scales, const int32_t *tiles,
                      size_t stride_bytes, int column_tiles, int bits) {
    scales += (size_t)tiles[2 * (BLK / (size_t)column_tiles)] * stride_bytes;
    if (bits == 8) vk_quant_group_sums<8>(group, scales, acc);
    else vk_quant_group_sums<4>(group, scales, acc);
}
KERNEL_OF(VK_GROUP_THREADS, 2, k_quant_experts_gate_up, uint16_t *hidden, const uint16_t *x, const char *weights,
          const char *scales, size_t stride_bytes, const int32_t *tiles, const int32_t *start, const int32_t *list,
          int column_tiles, int n, int k_padded, int ldx, int ldy, int top_k, int bits) {
    vk_group group;
    float acc[4][4][4];
    int first;
    if (!vk_group_tile(&group, &first, tiles, start, list, x, weights, stride_bytes, column_tiles, n, k_padded, ldx,
                       top_k))
        return;
    group.gated = 1; /* a constant for the compiler */
    vk_quant_tile(&group, acc, scales, tiles, stride_bytes, column_tiles, bits);
    vk_group_store_gated(&group, acc, hidden, first, ldy);
}
KERNEL_OF(VK_GROUP_THREADS, 2, k_quant_experts_down, uint16_t *y, const uint16_t *hidden, const char *weights,
          const char *scales, size_t stride_bytes, const int32_t *tiles, const int32_t *start, const int32_t *list,
          const float *share, int column_tiles, int n, int k_padded, int ldx, int ldy, int bits) {
    vk_group group;
    float acc[4][4][4];
    int first;
    if (!vk_group_tile(&group, &first, tiles, start, NULL, hidden, weights, stride_bytes, column_tiles, n, k_padded,
                       ldx, 1))
        return;
    group.gated = 0;
    group.list = NULL;
    vk_quant_tile(&group, acc, scales, tiles, stride_bytes, column_tiles, bits);
    vk_group_store_shares(&group, acc, y, list, share, first, ldy);
}
