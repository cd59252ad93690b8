/* rows.h - GPU bodies of the row kernels that every layer uses, included by vlmprof_kernels.cu. One block per row.
 *
 * A row is read once, 16 bytes per load, and stays in registers between the sums and the result. bf16 results are
 * stored 8 bytes at a time. Longer rows, and rows whose length or address does not fit vectors, use single values. */
enum { VK_HELD = 4 }; /* vectors per thread: rows of up to 4096 values with 256 threads */
/* addresses: the bitwise OR of the addresses of all rows and weights */
FN int vk_row_fits(size_t addresses, int width, int ld_out) {
    return !((width | ld_out) & 3) && width <= 4 * VK_HELD * NTID && !(addresses & 15);
}
FN void vk_hold(float4 *held, const float *__restrict__ row, int width) {
    VK_UNROLL for (int j = 0; j < VK_HELD; j++) {
        int i = 4 * (TID + j * NTID);
        held[j] = i < width ? *(const float4 *)(const void *)(row + i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}
FN float4 vk_four(const float *__restrict__ from, int i) { return *(const float4 *)(const void *)(from + i); }
FN void vk_put_four(void *__restrict__ to, size_t at, float x, float y, float z, float w, int wide) {
    if (wide) *(float4 *)(void *)((float *)to + at) = make_float4(x, y, z, w);
    else *(uint2 *)(void *)((uint16_t *)to + at) = make_uint2(vk_pack2(x, y), vk_pack2(z, w));
}

KERNEL(k_rmsnorm, void *out, const float *in, const float *__restrict__ weight, int width, int ld_out, float eps,
       int wide) {
    const float *row = in + BLK * (size_t)width;
    size_t to = BLK * (size_t)ld_out;
    float s = 0.0f, scale;
    if (vk_row_fits((size_t)in | (size_t)out | (size_t)weight, width, ld_out)) {
        float4 x[VK_HELD];
        vk_hold(x, row, width);
        VK_UNROLL for (int j = 0; j < VK_HELD; j++) s +=
            (x[j].x * x[j].x + x[j].y * x[j].y) + (x[j].z * x[j].z + x[j].w * x[j].w);
        scale = 1.0f / sqrtf(block_sum(s) / (float)width + eps);
        VK_UNROLL for (int j = 0; j < VK_HELD; j++) {
            int i = 4 * (TID + j * NTID);
            if (i >= width) break;
            float4 w = vk_four(weight, i);
            vk_put_four(out, to + (size_t)i, w.x * (x[j].x * scale), w.y * (x[j].y * scale), w.z * (x[j].z * scale),
                        w.w * (x[j].w * scale), wide);
        }
        return;
    }
    EACH(i, width) s += row[i] * row[i];
    scale = 1.0f / sqrtf(block_sum(s) / (float)width + eps);
    EACH(i, width) vk_put(out, to + (size_t)i, weight[i] * (row[i] * scale), wide);
}

/* in and out may be the same */
KERNEL(k_layernorm, void *out, const float *in, const float *__restrict__ weight, const float *__restrict__ bias,
       int width, int ld_out, float eps, int wide) {
    const float *row = in + BLK * (size_t)width;
    size_t to = BLK * (size_t)ld_out;
    float s = 0.0f, q = 0.0f, mean, scale;
    if (vk_row_fits((size_t)in | (size_t)out | (size_t)weight | (size_t)bias, width, ld_out)) {
        float4 x[VK_HELD];
        vk_hold(x, row, width);
        VK_UNROLL for (int j = 0; j < VK_HELD; j++) s += (x[j].x + x[j].y) + (x[j].z + x[j].w);
        mean = block_sum(s) / (float)width;
        VK_UNROLL for (int j = 0; j < VK_HELD; j++) {
            if (4 * (TID + j * NTID) >= width) break;
            x[j] = make_float4(x[j].x - mean, x[j].y - mean, x[j].z - mean, x[j].w - mean);
            q += (x[j].x * x[j].x + x[j].y * x[j].y) + (x[j].z * x[j].z + x[j].w * x[j].w);
        }
        scale = 1.0f / sqrtf(block_sum(q) / (float)width + eps);
        VK_UNROLL for (int j = 0; j < VK_HELD; j++) {
            int i = 4 * (TID + j * NTID);
            if (i >= width) break;
            float4 w = vk_four(weight, i), b = vk_four(bias, i);
            vk_put_four(out, to + (size_t)i, x[j].x * scale * w.x + b.x, x[j].y * scale * w.y + b.y,
                        x[j].z * scale * w.z + b.z, x[j].w * scale * w.w + b.w, wide);
        }
        return;
    }
    EACH(i, width) s += row[i];
    mean = block_sum(s) / (float)width;
    EACH(i, width) q += (row[i] - mean) * (row[i] - mean);
    scale = 1.0f / sqrtf(block_sum(q) / (float)width + eps);
    EACH(i, width) vk_put(out, to + (size_t)i, (row[i] - mean) * scale * weight[i] + bias[i], wide);
}

/* One head's values i and half + i: norm, clip, rotation */
typedef struct vk_turn {
    const float *c, *s;
    float clip;
    int half, normed, wide;
} vk_turn;
FN void vk_turn_pair(const vk_turn *turn, void *to, size_t at, const float *from, const float *weight, float scale,
                     int i) {
    float e = from[i], f = from[turn->half + i];
    if (turn->normed) { e = weight[i] * (e * scale); f = weight[turn->half + i] * (f * scale); }
    e = vk_cut(e, turn->clip);
    f = vk_cut(f, turn->clip);
    vk_put(to, at + (size_t)i, e * turn->c[i] - f * turn->s[i], turn->wide);
    vk_put(to, at + (size_t)(turn->half + i), f * turn->c[i] + e * turn->s[i], turn->wide);
}
/* All threads work on all heads at once; heads normed separately have a warp each. Without heads of q: only k and v. */
KERNEL(k_qk_norm_rope, void *q, void *key, void *value, const float *qkv, vk_heads heads, const int32_t *position,
       int ldq, int wide) {
    int head_dim = heads.head_dim, half = head_dim / 2, q_width = heads.heads * head_dim,
        kv_width = heads.kv_heads * head_dim;
    size_t at_position = (size_t)*position + BLK, row = at_position * (size_t)kv_width;
    const float *x = qkv + BLK * (size_t)(q_width + 2 * kv_width), *v = x + q_width + kv_width,
                *c = heads.cs + at_position * (size_t)head_dim;
    vk_turn turn = {c, c + half, heads.clip, half, heads.norm != VK_NORM_NONE, wide};
    for (int which = q_width ? 0 : 1; which < 2; which++) {
        const float *from = which ? x + q_width : x, *weight = which ? heads.k_norm : heads.q_norm;
        void *to = which ? key : q;
        size_t at = which ? row : BLK * (size_t)ldq;
        int width = which ? kv_width : q_width, count = width / head_dim;
        float sum = 0.0f, scale = 1.0f;
        if (heads.norm == VK_NORM_HEAD) {
            EACH_WARP(h, count) {
                const float *head = from + h * head_dim;
                float s = 0.0f;
                EACH_LANE_SUM(i, head_dim, s) s += head[i] * head[i];
                scale = 1.0f / sqrtf(warp_sum(s) / (float)head_dim + heads.eps);
                EACH_LANE_SUM(i, half, s) vk_turn_pair(&turn, to, at + (size_t)(h * head_dim), head, weight, scale, i);
            }
            continue;
        }
        if (heads.norm == VK_NORM_WHOLE) {
            EACH(i, width) sum += from[i] * from[i];
            scale = 1.0f / sqrtf(block_sum(sum) / (float)width + heads.eps);
        }
        EACH(e, count * half) {
            int h = e / half * head_dim;
            vk_turn_pair(&turn, to, at + (size_t)h, from + h, turn.normed ? weight + h : weight, scale, e % half);
        }
    }
    EACH(i, kv_width) vk_put(value, row + (size_t)i, vk_cut(v[i], heads.clip), wide);
}

/* Sums each block's `count` floats, only to read them: 16 bytes per load. It always reads four streams, because
 * `streams` makes no difference with the loads of all threads in flight. */
KERNEL(k_read, float *__restrict__ sums, const float *__restrict__ from, int count, int streams) {
    const float4 *block = (const float4 *)(const void *)(from + BLK * (size_t)count);
    int quarter = count / 16;
    float s = 0.0f;
    (void)streams;
    for (int i = TID; i < quarter; i += NTID) {
        float4 v[4];
        VK_UNROLL for (int j = 0; j < 4; j++) v[j] = __ldcs(block + i + j * quarter);
        VK_UNROLL for (int j = 0; j < 4; j++) s += (v[j].x + v[j].y) + (v[j].z + v[j].w);
    }
    for (int i = 16 * quarter + TID; i < count; i += NTID) s += from[BLK * (size_t)count + (size_t)i];
    s = block_sum(s);
    if (TID == 0) sums[BLK] = s;
}
