/* attend_tiles.h - attention of many rows on tensor cores, on a GPU; included by vlmprof_kernels.cu */

/* Attention in bf16 for heads of WIDTH values; scores never leave the chip. A block is VK_ATTEND_ROWS queries of one
 * head of one sequence, 32 per warp. Keys and values pass through shared memory in tiles; the next tile is fetched
 * while one is used. The softmax is updated for each tile: sums and results are scaled to the maximum so far. Rows and
 * keys after the last token are copies of the last one: their scores are masked and their results dropped. Tiles that
 * causal attention masks completely are not read. `scale` is for exp2. */
enum { VK_ATTEND_THREADS = 128, VK_ATTEND_ROWS = 128 };
typedef struct vk_attend { /* operands of a block's head */
    uint16_t *y;
    const uint16_t *q, *k, *v;
    int tokens, ldy, ldq, ldk, causal;
    float scale;
    const int32_t *reach, *gone; /* if MASKED: as in vk_attention_job */
    int window;
} vk_attend;
/* keys per tile: as many as there are registers for scores */
#define VK_ATTEND_KEYS(width) ((width) > 64 ? 32 : 64)
/* Size of shared memory in bytes: queries | two stages of keys and values. Rows are padded by 16 bytes, so no two rows
 * of an ldmatrix share a bank. */
#define VK_ATTEND_BYTES(width) ((VK_ATTEND_ROWS + 4 * VK_ATTEND_KEYS(width)) * ((width) + 8) * 2)
template <int WIDTH>
FN void vk_attend_fetch(uint16_t *to, const uint16_t *from, int first, int rows, int tokens, int ld) {
    VK_ROLLED for (int i = TID; i < rows * (WIDTH / 8); i += VK_ATTEND_THREADS) {
        int row = i / (WIDTH / 8), column = i % (WIDTH / 8) * 8, at = first + row < tokens ? first + row : tokens - 1;
        vk_copy_async(to + row * (WIDTH + 8) + column, from + (size_t)at * (size_t)ld + (size_t)column);
    }
}
/* Masks a warp's tile of scores, for keys starting at `from`: the score of a key that its row does not see becomes
 * -infinity. This lane has s[r / 2][n][r % 2 * 2] and the next, for keys n * 8 + lane % 4 * 2 and the next. */
template <int WIDTH, int MASKED>
FN void vk_attend_mask(const vk_attend *at, float (*s)[VK_ATTEND_KEYS(WIDTH) / 8][4], int warp_first, int from) {
    int key = from + (TID & 3) * 2;
    VK_UNROLL for (int r = 0; r < 4; r++) {
        int row = warp_first + (r >> 1) * 16 + (r & 1) * 8 + ((TID & 31) >> 2),
            end = at->causal && row < at->tokens ? row + 1 : at->tokens,
            begin = MASKED && at->window && row < at->tokens ? VK_GONE(at->gone, at->window, row) : 0;
        if (MASKED && at->reach && row < at->tokens) end = at->reach[row];
        VK_UNROLL for (int n = 0; n < VK_ATTEND_KEYS(WIDTH) / 8; n++)
            VK_UNROLL for (int j = 0; j < 2; j++) if (key + n * 8 + j >= end || (MASKED && key + n * 8 + j < begin))
                s[r >> 1][n][(r & 1) * 2 + j] = -INFINITY;
    }
}
/* Returns 1 if all rows of a warp see all keys of a tile. Most tiles are such, and need no masking. All lanes
 * return the same value. */
template <int WIDTH, int MASKED> FN int vk_attend_sees_all(const vk_attend *at, int warp_first, int from) {
    int last = warp_first + 31 < at->tokens ? warp_first + 31 : at->tokens - 1;
    if (MASKED && at->window && VK_GONE(at->gone, at->window, last) > from) return 0;
    return from + VK_ATTEND_KEYS(WIDTH) <= (at->causal ? warp_first + 1 : at->tokens);
}
/* Updates the maximum, the sum and the results so far for one row of a warp's tile, and turns its scores into weights.
 * If MASKED, the row may not have seen any key yet. */
template <int WIDTH, int MASKED>
FN void vk_attend_row(float (*s)[4], float (*o)[4], float *most, float *sum, int half, float scale) {
    enum { KEYS = VK_ATTEND_KEYS(WIDTH) };
    float m = *most, f, shift;
    VK_UNROLL for (int n = 0; n < KEYS / 8; n++) VK_UNROLL for (int j = 0; j < 2; j++) m = fmaxf(m, s[n][half + j]);
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
    shift = MASKED && m == -INFINITY ? 0.0f : m * scale;
    f = vk_exp2(*most * scale - shift);
    *most = m;
    *sum *= f;
    VK_UNROLL for (int n = 0; n < KEYS / 8; n++)
        VK_UNROLL for (int j = 0; j < 2; j++) {
            s[n][half + j] = vk_exp2(s[n][half + j] * scale - shift);
            *sum += s[n][half + j];
        }
    VK_UNROLL for (int n = 0; n < WIDTH / 8; n++) { o[n][half] *= f; o[n][half + 1] *= f; }
}
template <int WIDTH>
FN void vk_attend_scores(float (*s)[VK_ATTEND_KEYS(WIDTH) / 8][4], const uint16_t *queries, const uint16_t *keys) {
    enum { LD = WIDTH + 8, KEYS = VK_ATTEND_KEYS(WIDTH) };
    int lane = TID & 31;
    VK_UNROLL for (int i = 0; i < 2; i++) VK_UNROLL for (int n = 0; n < KEYS / 8; n++) s[i][n][0] = s[i][n][1] =
        s[i][n][2] = s[i][n][3] = 0.0f;
    VK_UNROLL for (int c = 0; c < WIDTH; c += 16) {
        uint32_t a[4], b[KEYS / 4];
        vk_ldmatrix(b, keys + ((lane >> 4) * 8 + (lane & 7)) * LD + c + (lane >> 3 & 1) * 8, 16 * LD * 2, KEYS / 16, 0);
        VK_UNROLL for (int i = 0; i < 2; i++) {
            vk_ldmatrix(a, queries + (i * 16 + (lane & 15)) * LD + c + (lane >> 4) * 8, 0, 1, 0);
            vk_mma(s[i], a, b, KEYS / 8);
        }
    }
}
/* The weights have the layout of C fragments, and can be used directly as A fragments. */
template <int WIDTH>
FN void vk_attend_values(float (*o)[WIDTH / 8][4], float (*s)[VK_ATTEND_KEYS(WIDTH) / 8][4], const uint16_t *values) {
    enum { LD = WIDTH + 8, KEYS = VK_ATTEND_KEYS(WIDTH) };
    int lane = TID & 31;
    VK_UNROLL for (int c = 0; c < KEYS / 16; c++) {
        uint32_t a[2][4], b[16];
        VK_UNROLL for (int i = 0; i < 2; i++) VK_UNROLL for (int j = 0; j < 4; j++) a[i][j] =
            vk_pack2(s[i][2 * c + (j >> 1)][(j & 1) * 2], s[i][2 * c + (j >> 1)][(j & 1) * 2 + 1]);
        VK_UNROLL for (int n = 0; n < WIDTH / 8; n += 8) {
            vk_ldmatrix(b, values + (c * 16 + (lane & 15)) * LD + n * 8 + (lane >> 4) * 8, 32, 4, 1);
            vk_mma(o[0] + n, a[0], b, 8);
            vk_mma(o[1] + n, a[1], b, 8);
        }
    }
}
template <int WIDTH> FN void vk_attend_store(const vk_attend *at, float (*o)[4], float sum, int row, int half) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    float inverse = 1.0f / sum;
    if (row >= at->tokens) return;
    VK_UNROLL for (int n = 0; n < WIDTH / 8; n++) {
        uint16_t *to = at->y + (size_t)row * (size_t)at->ldy + (size_t)(n * 8 + (TID & 3) * 2);
        *(uint32_t *)(void *)to = vk_pack2(o[n][half] * inverse, o[n][half + 1] * inverse);
    }
}
template <int WIDTH, int MASKED> FN void vk_attend_block(const vk_attend *at, int first) {
    enum { LD = WIDTH + 8, KEYS = VK_ATTEND_KEYS(WIDTH), TILE = KEYS * LD };
    CUDA_DYNAMIC_SHARED(uint16_t, queries);
    uint16_t *stages = queries + VK_ATTEND_ROWS * LD;
    int warp_first = first + (TID >> 5) * 32, lane = TID & 31,
        most_keys = at->causal && !(MASKED && at->reach) ? first + VK_ATTEND_ROWS : at->tokens;
    int tiles = ((most_keys < at->tokens ? most_keys : at->tokens) + KEYS - 1) / KEYS;
    float o[2][WIDTH / 8][4], most[2][2], sum[2][2];
    VK_UNROLL for (int i = 0; i < 2; i++) {
        most[i][0] = most[i][1] = -INFINITY;
        sum[i][0] = sum[i][1] = 0.0f;
        VK_UNROLL for (int n = 0; n < WIDTH / 8; n++) o[i][n][0] = o[i][n][1] = o[i][n][2] = o[i][n][3] = 0.0f;
    }
    vk_attend_fetch<WIDTH>(queries, at->q, first, VK_ATTEND_ROWS, at->tokens, at->ldq);
    vk_attend_fetch<WIDTH>(stages, at->k, 0, KEYS, at->tokens, at->ldk);
    vk_attend_fetch<WIDTH>(stages + TILE, at->v, 0, KEYS, at->tokens, at->ldk);
    vk_copy_commit();
    for (int t = 0; t < tiles; t++) {
        uint16_t *keys = stages + (t & 1) * 2 * TILE, *next = stages + (~t & 1) * 2 * TILE;
        int from = t * KEYS;
        float s[2][KEYS / 8][4];
        vk_copy_wait(0);
        SYNC(); /* all threads have this tile, and none still reads the previous tile */
        if (t + 1 < tiles) {
            vk_attend_fetch<WIDTH>(next, at->k, from + KEYS, KEYS, at->tokens, at->ldk);
            vk_attend_fetch<WIDTH>(next + TILE, at->v, from + KEYS, KEYS, at->tokens, at->ldk);
        }
        vk_copy_commit();
        if (warp_first >= at->tokens || (at->causal && !(MASKED && at->reach) && from > warp_first))
            continue; /* both are multiples of 32: none of these queries sees any of these keys */
        vk_attend_scores<WIDTH>(s, queries + (warp_first - first) * LD, keys);
        if (!vk_attend_sees_all<WIDTH, MASKED>(at, warp_first, from))
            vk_attend_mask<WIDTH, MASKED>(at, s, warp_first, from);
        VK_UNROLL for (int r = 0; r < 4; r++) vk_attend_row<WIDTH, MASKED>(s[r >> 1], o[r >> 1], &most[r >> 1][r & 1],
                                                                           &sum[r >> 1][r & 1], (r & 1) * 2, at->scale);
        vk_attend_values<WIDTH>(o, s, keys + TILE);
    }
    VK_UNROLL for (int r = 0; r < 4; r++) vk_attend_store<WIDTH>(
        at, o[r >> 1], sum[r >> 1][r & 1], warp_first + (r >> 1) * 16 + (r & 1) * 8 + (lane >> 2), (r & 1) * 2);
}
/* The head and the queries of a block. Blocks of one head are consecutive and share its keys. With a causal mask, the
 * last queries of all heads come first because they see the most keys. */
template <int WIDTH, int MASKED> FN void vk_attend_any(vk_attend at, int row_blocks, int heads, int group) {
    size_t pairs = (size_t)gridDim.x / (size_t)row_blocks, pair = at.causal ? BLK % pairs : BLK / (size_t)row_blocks;
    int block = at.causal ? row_blocks - 1 - (int)(BLK / pairs) : (int)(BLK % (size_t)row_blocks);
    size_t row = pair / (size_t)heads * (size_t)at.tokens, head = pair % (size_t)heads, column = head * WIDTH,
           kv_column = head / (size_t)group * WIDTH;
    at.y += row * (size_t)at.ldy + column;
    at.q += row * (size_t)at.ldq + column;
    at.k += row * (size_t)at.ldk + kv_column;
    at.v += row * (size_t)at.ldk + kv_column;
    vk_attend_block<WIDTH, MASKED>(&at, block * VK_ATTEND_ROWS);
}
#define VK_ATTEND_PARAMETERS \
    uint16_t *y, const uint16_t *q, const uint16_t *k, const uint16_t *v, int row_blocks, int heads, int group, \
    int tokens, int ldy, int ldq, int ldk, int causal, float scale
/* launched if the rows of q, k and v begin at multiples of 16 bytes, as in all in-type buffers, and those of y at
 * multiples of 4. masked: for bidirectional attention or a window of keys */
#define VK_ATTEND_KERNELS(plain, masked, width) \
    KERNEL_OF(VK_ATTEND_THREADS, 2, plain, VK_ATTEND_PARAMETERS) { \
        vk_attend at = {y, q, k, v, tokens, ldy, ldq, ldk, causal, scale, NULL, NULL, 0}; \
        vk_attend_any<width, 0>(at, row_blocks, heads, group); \
    } \
    KERNEL_OF(VK_ATTEND_THREADS, 2, masked, VK_ATTEND_PARAMETERS, const int32_t *reach, const int32_t *gone, \
              int window) { \
        vk_attend at = {y, q, k, v, tokens, ldy, ldq, ldk, causal, scale, reach, gone, window}; \
        vk_attend_any<width, 1>(at, row_blocks, heads, group); \
    }
VK_ATTEND_KERNELS(k_attention_head64, k_attention_masked64, 64)
VK_ATTEND_KERNELS(k_attention_head128, k_attention_masked128, 128)
