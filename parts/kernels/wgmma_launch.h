/* wgmma_launch.h - how the GPU backend sends the kernels of wgmma.h, included by vlmprof_kernels.cu */

/* TMA's description of a matrix is made by the driver, on the host; NULL: this driver has no such function */
typedef CUresult (*vk_encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                                    CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                    CUtensorMapFloatOOBfill);
static vk_encode_tiled vk_wide_encoder(void) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult answer;
    vk_encode_tiled encode = NULL;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &answer)
            != cudaSuccess
        || answer != cudaDriverEntryPointSuccess) {
        cudaGetLastError(); /* as in vk_cuda_check */
        return NULL;
    }
    memcpy(&encode, &found, sizeof encode);
    return encode;
}
/* `rows` rows of k_padded bf16, `stride` values apart, `layers` times, layer_bytes apart; slices of box_rows rows */
static int vk_wide_map(const vk_cuda *cuda, CUtensorMap *map, const void *from, int k_padded, int64_t rows,
                       int64_t stride, int layers, size_t layer_bytes, int box_rows) {
    cuuint64_t size[3] = { (cuuint64_t)k_padded, (cuuint64_t)rows, (cuuint64_t)layers },
               bytes[2] = { (cuuint64_t)stride * 2, layers > 1 ? layer_bytes : (cuuint64_t)(rows * stride) * 2 };
    cuuint32_t box[3] = { VK_WIDE_DEPTH, (cuuint32_t)box_rows, 1 }, step[3] = { 1, 1, 1 };
    return cuda->encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)(size_t)from, size, bytes, box, step,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
           == CUDA_SUCCESS;
}
/* what TMA can read: 16-byte places and rows */
static int vk_wide_fits(const void *from, int64_t stride) { return !((size_t)from & 15) && !(stride & 7); }
/* Which tiles take less time. A slice of 64 rows takes 512 cycles of the tensor cores, one of B and A arrives at 48
 * bytes a cycle; the last round of blocks counts as a whole one. */
static int vk_wide_groups(const vk_cuda *cuda, int rows, int n) {
    int64_t columns = (n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS, cost[2];
    for (int groups = 1; groups <= 2; groups++) {
        int64_t tiles = (rows + 64 * groups - 1) / (64 * groups) * columns, bytes = VK_WIDE_STAGE_BYTES(groups) / 48;
        cost[groups - 1] = (tiles + cuda->multiprocessors - 1) / cuda->multiprocessors * bytes;
    }
    return cost[0] < cost[1] ? 1 : 2;
}
static int vk_wide_grid(const vk_cuda *cuda, const vk_wide_tiles *all) {
    int64_t tiles = (int64_t)all->row_tiles * all->column_tiles;
    return (int)(tiles < cuda->multiprocessors ? tiles : cuda->multiprocessors);
}
/* y = epilogue(x W^T + bias) in one launch; 0: not here. Only where asked for: by counts cuBLAS takes less
 * (tests/bench/results/gpu-predictions.md) */
static int vk_wide_linear_send(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m,
                               const vk_linear *linear, vk_epilogue epilogue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int wide = epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, groups, grid;
    int64_t results = (int64_t)m * linear->n, element = wide ? 4 : 2,
            flops = 2 * results * linear->k
                    + ((linear->bias != NULL) + (epilogue == VK_ADD_F32) + vk_gelu_flops(epilogue)) * results,
            bytes = 2 * ((int64_t)linear->n + m) * linear->k + results * (epilogue == VK_ADD_F32 ? 8 : element)
                    + (linear->bias ? 4 * linear->n : 0);
    vk_wide_linear to = { y, linear->bias, ldy, linear->n, (int)epilogue };
    vk_wide_tiles all = { NULL, NULL, 0, 0, m, VK_WIDE_COLUMNS, 0 };
    CUtensorMap a, b;
    if (!cuda->encode || !cuda->wgmma_linears || cuda->wide || linear->wide || m < 2 || !vk_wide_fits(x, ldx)
        || !vk_wide_fits(linear->weights, linear->k_padded) || ((size_t)y & 7))
        return 0;
    groups = vk_wide_groups(cuda, m, linear->n);
    all.row_tiles = (m + 64 * groups - 1) / (64 * groups);
    all.column_tiles = (linear->n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS;
    all.steps = (linear->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH;
    if (!vk_wide_map(cuda, &a, x, linear->k_padded, m, ldx, 1, 0, 64)
        || !vk_wide_map(cuda, &b, linear->weights, linear->k_padded, linear->n, linear->k_padded, 1, 0, 128))
        return 0;
    grid = vk_wide_grid(cuda, &all);
    vk_shape(queue, m, linear->n, linear->k, 0);
    if (groups == 1)
        LAUNCH_SHARED(k_linear_wgmma64, grid, 2 * VK_WIDE_GROUP, VK_WIDE_BYTES(1), flops, bytes, all, a, b, to);
    else LAUNCH_SHARED(k_linear_wgmma128, grid, 3 * VK_WIDE_GROUP, VK_WIDE_BYTES(2), flops, bytes, all, a, b, to);
    return 1;
}
/* Both products of the experts, as vk_cuda_experts counts them; 0: not here. Tiles are k_moe_lists's. */
static int vk_wide_experts_send(vk_queue *queue, const vk_experts_job *job, const int64_t flops[2],
                                const int64_t bytes[2]) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const vk_linear *up = job->gate_up, *down = job->down;
    int expert_dim = up->n / 2, row_tiles = job->pairs / VK_GROUP_ROWS + job->experts;
    vk_wide_tiles all = { job->tiles, job->start, row_tiles, (expert_dim + 127) / 128, job->pairs, 128,
                          (up->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH };
    vk_chosen chosen = { (const uint16_t *)job->x, job->list, job->ldx, job->top_k, up->k_padded };
    vk_wide_linear to = { job->hidden, NULL, down->k_padded, expert_dim, VK_STORE };
    CUtensorMap rows, gate_up, columns;
    if (!cuda->encode || !vk_wide_fits(job->x, job->ldx) || !vk_wide_fits(job->hidden, down->k_padded)
        || !vk_wide_fits(up->weights, up->k_padded) || !vk_wide_fits(down->weights, down->k_padded)
        || (job->experts > 1 && ((job->gate_up_stride | job->down_stride) & 15))
        || !vk_wide_map(cuda, &gate_up, up->weights, up->k_padded, up->n, up->k_padded, job->experts,
                        job->gate_up_stride, 128)
        || !vk_wide_map(cuda, &columns, down->weights, down->k_padded, down->n, down->k_padded, job->experts,
                        job->down_stride, 128)
        || !vk_wide_map(cuda, &rows, job->hidden, down->k_padded, job->pairs, down->k_padded, 1, 0, 64))
        return 0;
    vk_shape(queue, job->pairs, up->n, up->k, job->pairs < job->experts ? job->pairs : job->experts);
    LAUNCH_SHARED(k_gate_up_wgmma128, vk_wide_grid(cuda, &all), 3 * VK_WIDE_GROUP, VK_WIDE_BYTES(2), flops[0],
                  bytes[0], all, chosen, gate_up, to);
    all.column_tiles = (down->n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS;
    all.columns = VK_WIDE_COLUMNS;
    all.steps = (down->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH;
    to.y = job->y;
    to.ldy = job->ldy;
    to.n = down->n;
    vk_shape(queue, job->pairs, down->n, down->k, job->pairs < job->experts ? job->pairs : job->experts);
    LAUNCH_SHARED(k_down_wgmma128, vk_wide_grid(cuda, &all), 3 * VK_WIDE_GROUP, VK_WIDE_BYTES(2), flops[1], bytes[1],
                  all, rows, columns, to, job->list, job->weight);
    return 1;
}
/* on Hopper, where this build has its code */
static void vk_wide_open(vk_queue *queue, const vp_device_info *info) {
    vk_cuda *cuda = vk_cuda_of(queue);
    cuda->multiprocessors = info->multiprocessor_count;
#ifdef VLMPROF_SM_90A
    if (info->compute_major != 9 || info->compute_minor != 0) return;
    cuda->encode = vk_wide_encoder();
    if (!cuda->encode) vk_note(queue, "products go without wgmma: the driver has no cuTensorMapEncodeTiled");
#endif
}
static void vk_wide_use(vk_queue *queue) {
    if (!vk_cuda_of(queue)->encode) return;
    VK_TRY(cudaFuncSetAttribute(k_linear_wgmma64, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES(1)));
    VK_TRY(cudaFuncSetAttribute(k_linear_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES(2)));
    VK_TRY(cudaFuncSetAttribute(k_gate_up_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES(2)));
    VK_TRY(cudaFuncSetAttribute(k_down_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES(2)));
}
