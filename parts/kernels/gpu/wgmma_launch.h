/* wgmma_launch.h - launches the kernels of wgmma.h, included by vlmprof_kernels.cu */

/* the driver's function that describes a matrix to TMA, on the host; NULL if the driver lacks it */
typedef CUresult (*vk_encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static vk_encode_tiled vk_wide_encoder(void) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult answer;
    vk_encode_tiled encode = NULL;
#if CUDART_VERSION >= 12050
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &answer)
            != cudaSuccess
#else
    if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &answer) != cudaSuccess
#endif
        || answer != cudaDriverEntryPointSuccess) {
        cudaGetLastError(); /* clears the error, as in vk_cuda_check */
        return NULL;
    }
    memcpy(&encode, &found, sizeof encode);
    return encode;
}
/* describes `layers` matrices, layer_bytes apart, of `rows` rows of k_padded bf16, `stride` values apart, in slices of
 * box_rows rows */
static int vk_wide_map(const vk_cuda *cuda, CUtensorMap *map, const void *from, int k_padded, int64_t rows,
                       int64_t stride, int layers, size_t layer_bytes, int box_rows) {
    cuuint64_t size[3] = {(cuuint64_t)k_padded, (cuuint64_t)rows, (cuuint64_t)layers},
               bytes[2] = {(cuuint64_t)stride * 2, layers > 1 ? layer_bytes : (cuuint64_t)(rows * stride) * 2};
    cuuint32_t box[3] = {VK_WIDE_DEPTH, (cuuint32_t)box_rows, 1}, step[3] = {1, 1, 1};
    return cuda->encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)(size_t)from, size, bytes, box, step,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
           == CUDA_SUCCESS;
}
/* Returns 1 if TMA can read the matrix: address and rows are aligned to 16 bytes. */
static int vk_wide_fits(const void *from, int64_t stride) { return !((size_t)from & 15) && !(stride & 7); }
static int vk_wide_grid(const vk_cuda *cuda, const vk_wide_tiles *all) {
    int64_t tiles = (int64_t)all->row_tiles * all->column_tiles;
    return (int)(tiles < cuda->multiprocessors ? tiles : cuda->multiprocessors);
}
/* Returns 1 if both products of the experts can use wgmma. */
static int vk_wide_takes_experts(const vk_cuda *cuda, const vk_experts_job *job) {
    const vk_linear *up = job->gate_up, *down = job->down;
    return cuda->encode && !up->bits && vk_wide_fits(job->x, job->ldx) && vk_wide_fits(job->hidden, down->k_padded)
           && vk_wide_fits(up->weights, up->k_padded) && vk_wide_fits(down->weights, down->k_padded)
           && (job->experts < 2 || !((job->gate_up_stride | job->down_stride) & 15));
}
/* Sends both products of the experts, with the FLOPs that vk_cuda_experts counts; returns 0 if not supported here. The
 * tiles are from k_moe_lists. */
static int vk_wide_experts_send(vk_queue *queue, const vk_experts_job *job, const int64_t flops[2],
                                const int64_t bytes[2]) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const vk_linear *up = job->gate_up, *down = job->down;
    int expert_dim = up->n / 2, experts = job->pairs < job->experts ? job->pairs : job->experts;
    vk_wide_tiles all = { job->tiles, job->start, job->pairs / VK_TILE_ROWS + job->experts, (expert_dim + 127) / 128,
                          128, (up->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH };
    vk_chosen chosen = { (const uint16_t *)job->x, job->list, job->ldx, job->top_k, up->k_padded };
    vk_wide_output to = { (uint16_t *)job->hidden, down->k_padded, expert_dim };
    CUtensorMap rows, gate_up, columns;
    if (!vk_wide_takes_experts(cuda, job)
        || !vk_wide_map(cuda, &gate_up, up->weights, up->k_padded, up->n, up->k_padded, job->experts,
                        job->gate_up_stride, 128)
        || !vk_wide_map(cuda, &columns, down->weights, down->k_padded, down->n, down->k_padded, job->experts,
                        job->down_stride, 128)
        || !vk_wide_map(cuda, &rows, job->hidden, down->k_padded, job->pairs, down->k_padded, 1, 0, 64))
        return 0;
    vk_shape(queue, job->pairs, up->n, up->k, experts);
    LAUNCH_SHARED(k_gate_up_wgmma128, vk_wide_grid(cuda, &all), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[0], bytes[0], all,
                  chosen, gate_up, to);
    all.column_tiles = (down->n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS;
    all.columns = VK_WIDE_COLUMNS;
    all.steps = (down->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH;
    to.y = (uint16_t *)job->y;
    to.ldy = job->ldy;
    to.n = down->n;
    vk_shape(queue, job->pairs, down->n, down->k, experts);
    LAUNCH_SHARED(k_down_wgmma128, vk_wide_grid(cuda, &all), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[1], bytes[1], all,
                  rows, columns, to, job->list, job->weight);
    return 1;
}
/* with VP_GPU_WGMMA: enables wgmma on Hopper if this build has code for it */
static void vk_wide_open(vk_queue *queue, const vp_device_info *info) {
    vk_cuda *cuda = vk_cuda_of(queue);
#ifdef VLMPROF_SM_90A
    if (info->compute_major == 9 && info->compute_minor == 0) {
        cuda->encode = vk_wide_encoder();
        if (!cuda->encode) vk_note(queue, "experts do not use wgmma: the driver has no cuTensorMapEncodeTiled");
        return;
    }
#endif
    vk_note(queue, "experts do not use wgmma: it needs exactly compute capability 9.0");
}
static void vk_wide_use(vk_queue *queue) {
    if (!vk_cuda_of(queue)->encode) return;
    VK_TRY(cudaFuncSetAttribute(k_gate_up_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_down_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
}
