/* quant_decode.h - decode kernels for linears with integer weights of 8 or 4 bits, on a GPU; included by
 * vlmprof_kernels.cu, whose section >>decode has the same kernels for bf16 and fp32
 *
 * A decode step waits for memory, and reads 8.5 or 4.5 bits per weight instead of 16. Rows of integers are consecutive,
 * k_padded * bits / 8 bytes each, followed by scales bf16 [n, k_padded / 32] (vk_linear.scales). With 4 bits a word
 * contains 8 values: value 2 i is nibble i, value 2 i + 1 is nibble i + 4; weight = scale * (nibble - 8). A warp sums
 * two rows, so it uses each unpacked value of x (bf16 in shared memory) twice: an H200 loads 33 4-bit weights per cycle
 * and multiprocessor, which issues 128 operations in that time. A weight becomes f32 by bit operations. For 4 bits,
 * 16 + nibble is 0x41800000 | nibble << 19; the excess of 24 is subtracted as 24 * sum of x, once per 32 values. For
 * bytes, 2^23 + 128 + byte is 0x4b000000 | byte ^ 128. Products and sums are f32; only x is rounded. */

/* the values in a vector of 16 bytes, and the vectors of x that they multiply */
#define VK_QUANT_VALUES(bits) (128 / (bits))
#define VK_QUANT_MEETS(bits) (VK_QUANT_VALUES(bits) / 8)
/* vectors that a lane requests before it uses the first: 4 of one row, or 2 of each of two rows (48 kB on a
 * multiprocessor that runs three blocks) */
enum { VK_QUANT_FLIGHT = 4 };

/* Rows of integers. With `index`, row r is the concatenation of row r of all experts in `index`, each times its share;
 * experts are `stride` bytes apart in memory. */
typedef struct vk_quant {
    const char *weights, *scales;
    const int32_t *index;
    const float *share;
    size_t stride;
    int vectors; /* per row of one matrix */
} vk_quant;

/* The slot of a vector of x in shared memory. Lanes read vectors 2 or 4 apart; these slots keep 8 of them in different
 * banks. The length of a strip is a multiple of 8 vectors. */
FN int vk_quant_place(int vector) { return vector ^ (vector >> 3 & 7); }
static __host__ __device__ inline int vk_quant_strip(int x_vectors) {
    return x_vectors < VK_STRIP ? (x_vectors + 7) / 8 * 8 : VK_STRIP;
}
/* size of a strip and its sums, in bytes */
static __host__ __device__ inline size_t vk_quant_shared(int x_vectors) {
    return (size_t)vk_quant_strip(x_vectors) * 17;
}
/* copies vectors first .. first + count of x to shared memory as bf16, with the sums of 32 values each; all threads of
 * the block call this together */
FN void vk_quant_stage(uint4 *strip, float *sums, vk_input *in, int first, int count) {
    int from = first * 8, columns = count * 8;
    vk_input_ready(in);
    for (int start = 0; start < columns; start += 4 * NTID) { /* whole warps: eight lanes share a sum */
        int i = start + 4 * TID;
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f}, sum;
        if (i < columns) vk_input_four(v, in, from + i);
        uint2 packed = make_uint2(vk_pack2(v[0], v[1]), vk_pack2(v[2], v[3]));
        sum = (vk_low(packed.x) + vk_high(packed.x)) + (vk_low(packed.y) + vk_high(packed.y));
        for (int o = 1; o < 8; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
        if (i >= columns) continue;
        *((uint2 *)(void *)(strip + vk_quant_place(i / 8)) + (i / 4 & 1)) = packed;
        if ((TID & 7) == 0) sums[i / 32] = sum;
    }
}
/* sum + unscaled products of eight integers with their values of x; 4-bit integers are 24 too large */
template <int BITS> FN float vk_quant_dot(float sum, const uint32_t *word, const float *x) {
    if (BITS == 8) {
        VK_UNROLLED for (int i = 0; i < 8; i++) sum += x[i] * vk_byte(word[i / 4] ^ 0x80808080u, i % 4);
    } else {
        VK_UNROLLED for (int i = 0; i < 4; i++) sum +=
            x[2 * i] * vk_nibble(word[0], i) + x[2 * i + 1] * vk_nibble(word[0], i + 4);
    }
    return sum;
}
/* fetches vectors first + lane, first + lane + 32, .. below `end` of rows, and their scales */
template <int BITS, int ROWS, int FLIGHT>
FN void vk_quant_fetch(uint4 (*packed)[FLIGHT], float (*scale)[FLIGHT], const vk_quant *from, const size_t *row,
                       int first, int end) {
    VK_UNROLLED for (int f = 0; f < FLIGHT; f++) {
        int at = first + (TID & 31) + 32 * f, live = at < end, slot = from->index && live ? at / from->vectors : 0;
        size_t expert = from->index ? (size_t)from->index[slot] * from->stride : 0,
               vector = (size_t)(at - slot * from->vectors);
        VK_UNROLLED for (int r = 0; r < ROWS; r++) {
            size_t i = row[r] + vector;
            packed[r][f] =
                live ? __ldcs((const uint4 *)(const void *)(from->weights + expert) + i) : make_uint4(0, 0, 0, 0);
            scale[r][f] = live ? vk_b2f(__ldcs((const uint16_t *)(const void *)(from->scales + expert)
                                               + i / (VK_QUANT_BLOCK / VK_QUANT_VALUES(BITS))))
                               : 0.0f;
            if (from->index && live) scale[r][f] *= from->share[slot];
        }
    }
}
/* sum + scaled products of the vectors from vk_quant_fetch with the strip, which has `count` vectors from `first` */
template <int BITS, int ROWS, int FLIGHT>
FN void vk_quant_products(float *sum, uint4 (*packed)[FLIGHT], float (*scale)[FLIGHT], const uint4 *strip,
                          const float *sums, int first, int count) {
    VK_UNROLLED for (int f = 0; f < FLIGHT; f++) {
        int at = first + (TID & 31) + 32 * f;
        float part[ROWS];
        if (at >= count) break;
        VK_UNROLLED for (int r = 0; r < ROWS; r++) part[r] = BITS == 4 ? -24.0f * sums[at] : 0.0f;
        VK_UNROLLED for (int j = 0; j < VK_QUANT_MEETS(BITS); j++) {
            float x[8];
            vk_unpack(x, strip[vk_quant_place(at * VK_QUANT_MEETS(BITS) + j)], 0);
            VK_UNROLLED for (int r = 0; r < ROWS; r++) {
                const uint32_t word[4] = {packed[r][f].x, packed[r][f].y, packed[r][f].z, packed[r][f].w};
                part[r] = vk_quant_dot<BITS>(part[r], word + j * BITS / 4, x);
            }
        }
        VK_UNROLLED for (int r = 0; r < ROWS; r++) sum[r] += scale[r][f] * part[r];
    }
}
/* The sums of a warp's rows with x: `vectors` vectors of integers, starting at vector row[r]. All warps of the block
 * call this together, even those without a row (live 0). */
template <int BITS, int ROWS, int FLIGHT>
FN void vk_quant_sums(float *sum, uint4 *strip, vk_input *in, const vk_quant *from, const size_t *row, int vectors,
                      int live) {
    enum { MEETS = VK_QUANT_MEETS(BITS), MOST = VK_STRIP / MEETS };
    float *sums = (float *)(void *)(strip + vk_quant_strip(vectors * MEETS));
    VK_UNROLLED for (int r = 0; r < ROWS; r++) sum[r] = 0.0f;
    for (int first = 0; first < vectors; first += MOST) {
        int count = vectors - first < MOST ? vectors - first : MOST, mine = live ? count : 0;
        uint4 packed[ROWS][FLIGHT];
        float scale[ROWS][FLIGHT];
        vk_quant_fetch<BITS, ROWS, FLIGHT>(packed, scale, from, row, first, first + mine);
        if (in->held != first) {
            SYNC(); /* the previous strip has been read */
            vk_quant_stage(strip, sums, in, first * MEETS, count * MEETS);
            SYNC();
            in->held = first;
        }
        vk_quant_products<BITS, ROWS, FLIGHT>(sum, packed, scale, strip, sums, 0, mine);
        for (int i = 32 * FLIGHT; i < mine; i += 32 * FLIGHT) {
            vk_quant_fetch<BITS, ROWS, FLIGHT>(packed, scale, from, row, first + i, first + mine);
            vk_quant_products<BITS, ROWS, FLIGHT>(sum, packed, scale, strip, sums, i, mine);
        }
    }
    VK_UNROLLED for (int r = 0; r < ROWS; r++) sum[r] = warp_sum(sum[r]);
}
FN vk_quant vk_quant_of(const char *weights, const char *scales, int vectors) {
    vk_quant from = {weights, scales, NULL, NULL, 0, vectors};
    return from;
}
/* y f32 [n] = x W^T (+ bias f32 [n] or NULL), or += with `add`; a warp computes two rows */
template <int BITS>
FN void vk_quant_rows(uint4 *strip, vk_input *in, float *y, const vk_quant *from, const float *bias, int n, int add) {
    int warps = NTID >> 5;
    for (int first = 2 * (int)BLK * warps; first < n; first += 2 * (int)gridDim.x * warps) {
        int pair = first + 2 * (TID >> 5);
        size_t width = (size_t)from->vectors, at = (size_t)pair * width, row[2] = {at, pair + 1 < n ? at + width : at};
        float sum[2];
        vk_quant_sums<BITS, 2, VK_QUANT_FLIGHT / 2>(sum, strip, in, from, row, from->vectors, pair < n);
        VK_UNROLLED for (int r = 0; r < 2; r++) {
            if (!LANE0 || pair + r >= n) continue;
            if (bias) sum[r] += bias[pair + r];
            y[pair + r] = add ? y[pair + r] + sum[r] : sum[r];
        }
    }
}
#define VK_QUANT_ROWS(...) \
    do { \
        if (bits == 8) vk_quant_rows<8>(__VA_ARGS__); \
        else vk_quant_rows<4>(__VA_ARGS__); \
    } while (0)
#define VK_QUANT_KERNEL(...) KERNEL_OF(VK_DECODE_THREADS, 3, __VA_ARGS__)
/* like k_decode_qkv */
VK_QUANT_KERNEL(k_quant_qkv, float *qkv, const float *x, const float *norm, const char *weights, const char *scales,
                const float *bias, int n, int vectors, int width, float eps, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, 0);
    vk_quant from = vk_quant_of(weights, scales, vectors);
    VK_QUANT_ROWS(strip, &in, qkv, &from, bias, n, 0);
}
/* like k_decode_out; merging takes more registers */
KERNEL_OF(VK_DECODE_THREADS, 2, k_quant_out, float *x, const float *partial, const char *weights, const char *scales,
          int n, int vectors, int width, int head_dim, int add, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = {VK_MERGED, NULL, NULL, partial, NULL, 0.0f, 0.0f, width, head_dim, 0, -1, 0};
    vk_quant from = vk_quant_of(weights, scales, vectors);
    VK_QUANT_ROWS(strip, &in, x, &from, NULL, n, add);
}
FN vk_input vk_input_plain(const uint4 *plain) {
    vk_input in = {VK_PLAIN, NULL, NULL, NULL, plain, 0.0f, 1.0f, 0, 0, 0, -1, 0};
    return in;
}
/* like k_decode_out_plain */
VK_QUANT_KERNEL(k_quant_plain, float *x, const uint4 *plain, const char *weights, const char *scales, int n,
                int vectors, int add, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_plain(plain);
    vk_quant from = vk_quant_of(weights, scales, vectors);
    VK_QUANT_ROWS(strip, &in, x, &from, NULL, n, add);
}
/* hidden bf16 [rows] = silu(gate x) * up x, or tanh GELU; a warp computes a row of gate and the same row of up */
template <int BITS>
FN void vk_quant_gated(uint16_t *hidden, uint4 *strip, vk_input *in, const vk_quant *from, int rows, int row,
                       int gelu) {
    int live = row < rows;
    size_t gate = (size_t)(live ? row : 0) * (size_t)from->vectors,
           two[2] = {gate, gate + (size_t)rows * (size_t)from->vectors};
    float sum[2];
    vk_quant_sums<BITS, 2, VK_QUANT_FLIGHT / 2>(sum, strip, in, from, two, from->vectors, live);
    if (LANE0 && live) hidden[row] = vk_f2b((gelu ? vk_gelu_tanh(sum[0]) : vk_silu(sum[0])) * sum[1]);
}
/* like k_decode_dense */
VK_QUANT_KERNEL(k_quant_dense, uint16_t *hidden, const float *x, const float *norm, const char *weights,
                const char *scales, int rows, int vectors, int width, float eps, int gelu, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, 0);
    vk_quant from = vk_quant_of(weights, scales, vectors);
    int warps = NTID >> 5;
    for (int first = (int)BLK * warps; first < rows; first += (int)gridDim.x * warps) {
        if (bits == 8) vk_quant_gated<8>(hidden, strip, &in, &from, rows, first + (TID >> 5), gelu);
        else vk_quant_gated<4>(hidden, strip, &in, &from, rows, first + (TID >> 5), gelu);
    }
}
/* like k_decode_gate_up; shared memory: the strip, then top_k experts */
VK_QUANT_KERNEL(k_quant_gate_up, uint16_t *hidden, int32_t *index, float *weight, const float *logits,
                const uint4 *normed, const char *weights, const char *scales, size_t stride_bytes, int experts,
                int top_k, int norm_topk, int expert_dim, int vectors, int ldh, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    int warps = NTID >> 5, blocks = (expert_dim + warps - 1) / warps;
    int32_t *chosen = (int32_t *)(void *)((char *)strip + vk_quant_shared(vectors * 16 / bits));
    vk_input in = vk_input_plain(normed);
    vk_choose_experts(chosen, index, weight, logits, experts, top_k, norm_topk);
    for (int item = (int)BLK; item < top_k * blocks; item += (int)gridDim.x) {
        int slot = item / blocks, row = item % blocks * warps + (TID >> 5);
        size_t expert = (size_t)chosen[slot] * stride_bytes;
        vk_quant from = vk_quant_of(weights + expert, scales + expert, vectors);
        uint16_t *to = hidden + (size_t)slot * (size_t)ldh;
        if (bits == 8) vk_quant_gated<8>(to, strip, &in, &from, expert_dim, row, 0);
        else vk_quant_gated<4>(to, strip, &in, &from, expert_dim, row, 0);
    }
}
/* Like k_decode_down. The rows of all chosen experts form one long row, as do their hidden rows. */
template <int BITS>
FN void vk_quant_down(float *x, uint4 *strip, vk_input *in, const vk_quant *from, int top_k, int n) {
    size_t row = BLK * (size_t)(NTID >> 5) + (size_t)(TID >> 5), first;
    int live = row < (size_t)n;
    float sum;
    first = live ? row * (size_t)from->vectors : 0;
    vk_quant_sums<BITS, 1, VK_QUANT_FLIGHT>(&sum, strip, in, from, &first, top_k * from->vectors, live);
    if (LANE0 && live) x[row] += sum;
}
VK_QUANT_KERNEL(k_quant_down, float *x, const uint4 *hidden, const int32_t *index, const float *weight,
                const char *weights, const char *scales, size_t stride_bytes, int top_k, int n, int vectors, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_plain(hidden);
    vk_quant from = {weights, scales, index, weight, stride_bytes, vectors};
    if (bits == 8) vk_quant_down<8>(x, strip, &in, &from, top_k, n);
    else vk_quant_down<4>(x, strip, &in, &from, top_k, n);
}
template <int BITS>
FN vk_candidate vk_quant_best(float *logits, uint4 *strip, vk_input *in, const vk_quant *from, int n) {
    int warps = NTID >> 5;
    vk_candidate best = {0.0f, -1};
    for (int first = 2 * (int)BLK * warps; first < n; first += 2 * (int)gridDim.x * warps) {
        int pair = first + 2 * (TID >> 5);
        size_t width = (size_t)from->vectors, at = (size_t)pair * width, row[2] = {at, pair + 1 < n ? at + width : at};
        float sum[2];
        vk_quant_sums<BITS, 2, VK_QUANT_FLIGHT / 2>(sum, strip, in, from, row, from->vectors, pair < n);
        VK_UNROLLED for (int r = 0; r < 2; r++) {
            int there = pair + r < n;
            vk_candidate one = {sum[r], there && sum[r] == sum[r] ? pair + r : -1};
            if (LANE0 && there) logits[pair + r] = sum[r];
            best = vk_better(best, one);
        }
    }
    return best;
}
/* like k_decode_head, with the same number of blocks */
VK_QUANT_KERNEL(k_quant_head, float *logits, vk_candidate *candidates, const float *x, const float *norm,
                const char *weights, const char *scales, int n, int vectors, int width, float eps, int bits) {
    CUDA_DYNAMIC_SHARED(uint4, strip);
    vk_input in = vk_input_norm(x, norm, width, eps, 0);
    vk_quant from = vk_quant_of(weights, scales, vectors);
    vk_candidate best =
        bits == 8 ? vk_quant_best<8>(logits, strip, &in, &from, n) : vk_quant_best<4>(logits, strip, &in, &from, n);
    best = vk_best_of_block(best);
    if (TID == 0) candidates[BLK] = best;
}

/* ---- launchers; the launchers of >>decode count FLOPs and bytes */
static size_t vk_quant_room(const vk_linear *linear, int rows) { return vk_quant_shared(rows * linear->k_padded / 8); }
static int vk_quant_vectors(const vk_linear *linear) { return linear->k_padded * linear->bits / 128; }
/* blocks for `pairs` pairs of rows, one pair per warp */
static int vk_quant_grid(vk_queue *queue, const void *kernel, int pairs, size_t shared_bytes) {
    return vk_decode_grid(queue, kernel, pairs, VK_DECODE_THREADS, shared_bytes);
}
#define LAUNCH_QUANT(name, pairs, shared, ...) \
    LAUNCH_SHARED(name, vk_quant_grid(queue, (const void *)name, pairs, shared), VK_DECODE_THREADS, shared, __VA_ARGS__)
#define VK_QUANT_WEIGHTS(linear) (const char *)(linear)->weights, (const char *)(linear)->scales
static void vk_quant_send_qkv(vk_queue *queue, const vk_decode_job *job, int64_t flops, int64_t bytes) {
    const vk_linear *linear = job->att_proj;
    LAUNCH_QUANT(k_quant_qkv, (linear->n + 1) / 2, vk_quant_room(linear, 1), flops, bytes, job->qkv, job->x,
                 job->attn_norm, VK_QUANT_WEIGHTS(linear), linear->bias, linear->n, vk_quant_vectors(linear), job->d,
                 job->eps, linear->bits);
}
static void vk_quant_send_out(vk_queue *queue, const vk_decode_job *job, float *to, int add, int64_t flops,
                              int64_t bytes) {
    const vk_linear *linear = job->attn_out;
    LAUNCH_QUANT(k_quant_out, (linear->n + 1) / 2, vk_quant_room(linear, 1), flops, bytes, to, job->scratch,
                 VK_QUANT_WEIGHTS(linear), linear->n, vk_quant_vectors(linear), linear->k, job->heads.head_dim, add,
                 linear->bits);
}
static void vk_quant_send_plain(vk_queue *queue, const vk_linear *linear, float *to, const void *plain, int add,
                                int64_t flops, int64_t bytes) {
    LAUNCH_QUANT(k_quant_plain, (linear->n + 1) / 2, vk_quant_room(linear, 1), flops, bytes, to, (const uint4 *)plain,
                 VK_QUANT_WEIGHTS(linear), linear->n, vk_quant_vectors(linear), add, linear->bits);
}
static void vk_quant_send_dense(vk_queue *queue, const vk_decode_job *job, int64_t flops, int64_t bytes) {
    const vk_linear *linear = job->gate_up;
    LAUNCH_QUANT(k_quant_dense, job->expert_dim, vk_quant_room(linear, 1), flops, bytes, (uint16_t *)job->hidden,
                 job->x, job->ff_norm, VK_QUANT_WEIGHTS(linear), job->expert_dim, vk_quant_vectors(linear), job->d,
                 job->eps, job->gelu, linear->bits);
}
static void vk_quant_send_gate_up(vk_queue *queue, const vk_decode_job *job, int64_t flops, int64_t bytes) {
    const vk_linear *linear = job->gate_up;
    LAUNCH_QUANT(k_quant_gate_up, job->top_k * job->expert_dim,
                 vk_quant_room(linear, 1) + (size_t)job->top_k * sizeof(int32_t), flops, bytes, (uint16_t *)job->hidden,
                 job->index, job->weight, job->logits, (const uint4 *)job->normed, VK_QUANT_WEIGHTS(linear),
                 job->gate_up_stride, job->router->n, job->top_k, job->norm_topk, job->expert_dim,
                 vk_quant_vectors(linear), job->down->k_padded, linear->bits);
}
static void vk_quant_send_down(vk_queue *queue, const vk_decode_job *job, int64_t flops, int64_t bytes) {
    const vk_linear *linear = job->down;
    int warps = VK_DECODE_THREADS / 32;
    LAUNCH_SHARED(k_quant_down, (linear->n + warps - 1) / warps, VK_DECODE_THREADS, vk_quant_room(linear, job->top_k),
                  flops, bytes, job->x, (const uint4 *)job->hidden, job->index, job->weight, VK_QUANT_WEIGHTS(linear),
                  job->down_stride, job->top_k, linear->n, vk_quant_vectors(linear), linear->bits);
}
/* with the grid of k_decode_head, because k_decode_pick reads a candidate per block */
static void vk_quant_send_head(vk_queue *queue, const vk_decode_end_job *job, int grid, int64_t flops, int64_t bytes) {
    const vk_linear *linear = job->head;
    LAUNCH_SHARED(k_quant_head, grid, VK_DECODE_THREADS, vk_quant_room(linear, 1), flops, bytes, job->logits,
                  (vk_candidate *)(void *)job->scratch, job->x, job->norm, VK_QUANT_WEIGHTS(linear), linear->n,
                  vk_quant_vectors(linear), linear->k, job->eps, linear->bits);
}
