/* route.h - routes many rows to experts in one launch; included by vlmprof_kernels.cu, GPU only
 *
 * One block computes norm, logits, softmax and choice of VK_ROUTE_ROWS rows. Separate launches would write and read the
 * normed rows and the logits again, and a product of 64 columns in f32 leaves most of a GPU idle. The normed rows stay
 * in shared memory. The router's weights are read once: a warp multiplies every eighth vector of all its rows, 4 rows
 * by 8 experts per lane, and requests the next vectors before it multiplies. The warps' sums are added in order, so the
 * same input gives the same bits. Everything is f32, because rounding could change the choice of experts. */
enum {
    VK_ROUTE_ROWS = 16, VK_ROUTE_THREADS = 256,
    VK_ROUTE_EXPERTS = 64 /* at a time */
};
/* stride in floats of a normed row: 16 bytes more than a multiple of 128, to avoid bank conflicts */
#define VK_ROUTE_PITCH(vectors) ((vectors)*4 + 4)

/* fetches vector `at` of each of this lane's experts */
FN void vk_route_fetch(float4 out[8], const float4 *weights, const int from[8], int at) {
    VK_UNROLLED for (int j = 0; j < 8; j++) out[j] = weights[from[j] + at];
}
/* sums += vector `at` of this lane's four rows times the weights */
FN void vk_route_multiply(float sums[4][8], const float *rows, const float4 weights[8], int at, int pitch) {
    VK_UNROLLED for (int i = 0; i < 4; i++) {
        const float4 x = *(const float4 *)(const void *)(rows + 4 * i * pitch + 4 * at);
        VK_UNROLLED for (int j = 0; j < 8; j++) {
            float sum = sums[i][j]; /* four fused operations; sums of pairs take six */
            sum += x.x * weights[j].x;
            sum += x.y * weights[j].y;
            sum += x.z * weights[j].z;
            sums[i][j] = sum + x.w * weights[j].w;
        }
    }
}
/* This warp's share of the logits of 64 experts, starting at `first`: sums[i][j] of row lane / 8 + 4 i and expert
 * first + lane % 8 + 8 j. After the last expert, it multiplies the last one again; the result is not read. */
FN void vk_route_sums(float sums[4][8], const float *rows, const float4 *weights, int first, int experts, int vectors) {
    enum { STEP = VK_ROUTE_THREADS / 32 };
    int lane = TID & 31, pitch = VK_ROUTE_PITCH(vectors), last = vectors - 1, at = TID >> 5, from[8];
    float4 one[8], two[8];
    VK_UNROLLED for (int j = 0; j < 8; j++) {
        int expert = first + (lane & 7) + 8 * j;
        from[j] = (expert < experts ? expert : experts - 1) * vectors;
    }
    VK_UNROLLED for (int i = 0; i < 32; i++) sums[i >> 3][i & 7] = 0.0f;
    rows += (lane >> 3) * pitch;
    vk_route_fetch(one, weights, from, at < vectors ? at : last);
    for (; at < vectors; at += 2 * STEP) {
        vk_route_fetch(two, weights, from, at + STEP < vectors ? at + STEP : last);
        vk_route_multiply(sums, rows, one, at, pitch);
        if (at + STEP >= vectors) break;
        vk_route_fetch(one, weights, from, at + 2 * STEP < vectors ? at + 2 * STEP : last);
        vk_route_multiply(sums, rows, two, at + STEP, pitch);
    }
}
/* a warp stores norm(x) in shared memory, with zeros after the last weight, and in `normed` as the compute type */
FN void vk_route_norm(float *to, void *normed, size_t normed_at, const float *x, const float *norm, int width,
                      int vectors, float eps, int wide) {
    int lane = TID & 31;
    float sum = 0.0f, scale;
    for (int i = 4 * lane; i < 4 * vectors; i += 128) {
        float4 v = vk_columns(x, i, width);
        *(float4 *)(void *)(to + i) = v;
        sum += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
    }
    scale = 1.0f / sqrtf(warp_sum(sum) / (float)width + eps);
    for (int i = 4 * lane; i < width; i += 128) {
        float4 v = *(float4 *)(void *)(to + i), w = *(const float4 *)(const void *)(norm + i);
        v = make_float4(w.x * (v.x * scale), w.y * (v.y * scale), w.z * (v.z * scale), w.w * (v.w * scale));
        *(float4 *)(void *)(to + i) = v;
        if (wide) *(float4 *)(void *)((float *)normed + normed_at + i) = v;
        else
            *(uint2 *)(void *)((uint16_t *)normed + normed_at + i) = make_uint2(vk_pack2(v.x, v.y), vk_pack2(v.z, v.w));
    }
}
/* a warp finds the top_k of a row's logits, with ranks as in k_router */
FN void vk_route_choose(int32_t *index, float *weight, const float *logits, int experts, int top_k, int norm_topk) {
    int lane = TID & 31;
    float most = -INFINITY, sum = 0.0f, chosen = 0.0f;
    for (int i = lane; i < experts; i += 32) most = fmaxf(most, logits[i]);
    most = warp_max(most);
    for (int i = lane; i < experts; i += 32) sum += vk_exp(logits[i] - most);
    sum = warp_sum(sum);
    for (int j = lane; j < top_k; j += 32) { index[j] = 0; weight[j] = 0.0f; } /* NaN logits */
    __syncwarp();
    for (int i = lane; i < experts; i += 32) {
        float mine = logits[i], share = vk_exp(mine - most) / sum;
        int place = 0;
        VK_UNROLLED_BY_8 for (int j = 0; j < experts; j++) place +=
            (logits[j] > mine) | ((logits[j] == mine) & (j < i));
        if (place >= top_k || mine != mine) continue;
        index[place] = i;
        weight[place] = share;
        chosen += share;
    }
    if (!norm_topk) return;
    chosen = warp_sum(chosen);
    __syncwarp();
    for (int j = lane; j < top_k; j += 32) weight[j] /= chosen;
}
/* the outputs of the choice, and the numbers of experts */
typedef struct vk_route_shape {
    int rows, width, ld, experts, vectors, top_k, norm_topk, wide;
    float eps;
} vk_route_shape;
KERNEL_OF(VK_ROUTE_THREADS, 1, k_route, void *normed, int32_t *index, float *weight, const float *x, const float *norm,
          const float4 *weights, const vk_route_shape shape) {
    CUDA_DYNAMIC_SHARED(float, shared);
    int warp = TID >> 5, lane = TID & 31, pitch = VK_ROUTE_PITCH(shape.vectors), experts = shape.experts;
    float *logits = shared + VK_ROUTE_ROWS * pitch, sums[4][8];
    for (int i = warp; i < VK_ROUTE_ROWS; i += VK_ROUTE_THREADS / 32) {
        size_t row = BLK * VK_ROUTE_ROWS + (size_t)i;
        if (row < (size_t)shape.rows)
            vk_route_norm(shared + i * pitch, normed, row * (size_t)shape.ld, x + row * (size_t)shape.width, norm,
                          shape.width, shape.vectors, shape.eps, shape.wide);
        else for (int j = lane; j < 4 * shape.vectors; j += 32) shared[i * pitch + j] = 0.0f;
    }
    SYNC();
    for (int first = 0; first < experts; first += VK_ROUTE_EXPERTS) {
        vk_route_sums(sums, shared, weights, first, experts, shape.vectors);
        for (int turn = 0; turn < VK_ROUTE_THREADS / 32; turn++) {
            VK_UNROLLED for (int i = 0; i < 32; i++) {
                int expert = first + (lane & 7) + 8 * (i & 7);
                float *to = logits + ((lane >> 3) + 4 * (i >> 3)) * experts + expert;
                if (warp == turn && expert < experts) *to = turn ? *to + sums[i >> 3][i & 7] : sums[i >> 3][i & 7];
            }
            SYNC();
        }
    }
    for (int i = warp; i < VK_ROUTE_ROWS; i += VK_ROUTE_THREADS / 32) {
        size_t row = BLK * VK_ROUTE_ROWS + (size_t)i;
        if (row < (size_t)shape.rows)
            vk_route_choose(index + row * (size_t)shape.top_k, weight + row * (size_t)shape.top_k, logits + i * experts,
                            experts, shape.top_k, shape.norm_topk);
    }
}

static void vk_route_use(vk_queue *queue) {
    VK_TRY(cudaFuncSetAttribute(k_route, cudaFuncAttributeMaxDynamicSharedMemorySize, vk_cuda_of(queue)->shared_most));
}
static int vk_cuda_route(vk_queue *queue, const vk_route_job *job) {
    const vk_cuda *cuda = vk_cuda_of(queue);
    const vk_linear *linear = job->router;
    int64_t rows = job->rows, d = linear->k, experts = linear->n,
            flops = rows * (4 * d + 2 * experts * d + experts * (4 + experts) + (job->norm_topk ? 2 * job->top_k : 0)),
            bytes = rows * (d * (4 + vk_element(job->wide)) + 8 * job->top_k) + 4 * d + 4 * experts * d,
            shared = VK_ROUTE_ROWS * (VK_ROUTE_PITCH((int64_t)linear->k_padded / 4) + experts) * 4;
    vk_route_shape shape = {job->rows,  linear->k,      job->ld,   linear->n, linear->k_padded / 4,
                            job->top_k, job->norm_topk, job->wide, job->eps};
    if (linear->bits || linear->bias || linear->k % 4 || shared > cuda->shared_most) return 0;
    vk_shape(queue, job->rows, linear->n, linear->k, 0);
    LAUNCH_SHARED(k_route, (rows + VK_ROUTE_ROWS - 1) / VK_ROUTE_ROWS, VK_ROUTE_THREADS, shared, flops, bytes,
                  job->normed, job->index, job->weight, job->x, job->norm, (const float4 *)linear->weights, shape);
    return 1;
}
