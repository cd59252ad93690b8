/* wgmma_launch.h - launches the kernels of wgmma.h, included by vlmprof_kernels.cu */

/* the driver's function that describes a matrix to TMA, on the host; NULL if the driver lacks it */
typedef CUresult (*vk_encode_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                    const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                                    CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                    CUtensorMapFloatOOBfill);
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
    cuuint64_t size[3] = { (cuuint64_t)k_padded, (cuuint64_t)rows, (cuuint64_t)layers },
               bytes[2] = { (cuuint64_t)stride * 2, layers > 1 ? layer_bytes : (cuuint64_t)(rows * stride) * 2 };
    cuuint32_t box[3] = { VK_WIDE_DEPTH, (cuuint32_t)box_rows, 1 }, step[3] = { 1, 1, 1 };
    return cuda->encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)(size_t)from, size, bytes, box, step,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
           == CUDA_SUCCESS;
}
/* Returns 1 if TMA can read the matrix: address and rows are aligned to 16 bytes. */
static int vk_wide_fits(const void *from, int64_t stride) { return !((size_t)from & 15) && !(stride & 7); }
/* Returns 1 if pairs should take no more time than single blocks. Both wait longer for their slices of A and B, at
 * about 31 bytes per cycle, than for the tensor cores; each block of a pair loads half of B. The last round of blocks
 * counts as a whole round. */
static int vk_wide_prefers_pairs(const vk_cuda *cuda, int rows, int n) {
    int64_t columns = (n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS, bytes[2] = { 0, INT64_MAX };
    for (int pair = 0; pair < (cuda->pairs ? 2 : 1); pair++) {
        int64_t tiles = (rows + (VK_WIDE_ROWS << pair) - 1) / (VK_WIDE_ROWS << pair) * columns,
                at_once = pair ? cuda->pairs : cuda->multiprocessors;
        bytes[pair] = (tiles + at_once - 1) / at_once * (VK_WIDE_STAGE_BYTES - pair * VK_WIDE_B_BYTES / 2);
    }
    return bytes[1] <= bytes[0];
}
/* Returns 1 if pairs should take less time than cuBLAS. The estimates are 580 TFLOP/s for cuBLAS, and 755 for whole
 * rounds of tiles of pairs, so at least 78 % of the rounds must be useful work. With cuBLAS, an activation is another
 * launch, which takes a third more time. */
static int vk_wide_pays(const vk_cuda *cuda, int rows, int n, vk_epilogue epilogue) {
    int64_t tiles = (int64_t)((rows + 255) / 256) * ((n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS),
            rounds = cuda->pairs ? (tiles + cuda->pairs - 1) / cuda->pairs : 0;
    return rounds && (int64_t)rows * n * 100 >= rounds * cuda->pairs * 256 * VK_WIDE_COLUMNS
                                                    * (vk_gelu_flops(epilogue) ? 60 : 78);
}
static int vk_wide_grid(const vk_cuda *cuda, const vk_wide_tiles *all, int pair) {
    int64_t tiles = (int64_t)all->row_tiles * all->column_tiles, most = pair ? cuda->pairs : cuda->multiprocessors;
    return (int)(tiles < most ? tiles : most) * (1 + pair);
}
/* Returns 1 if both products of the experts can use wgmma. */
static int vk_wide_takes_experts(const vk_cuda *cuda, const vk_experts_job *job) {
    const vk_linear *up = job->gate_up, *down = job->down;
    return cuda->encode && !up->bits && vk_wide_fits(job->x, job->ldx) && vk_wide_fits(job->hidden, down->k_padded)
           && vk_wide_fits(up->weights, up->k_padded) && vk_wide_fits(down->weights, down->k_padded)
           && (job->experts < 2 || !((job->gate_up_stride | job->down_stride) & 15));
}
/* Pairs use two tiles per expert even if one is enough. They take less time if a third of the experts have more rows
 * than one tile, which is so from about 124 rows per expert. */
static int vk_wide_takes_pairs(const vk_cuda *cuda, const vk_experts_job *job) {
    return cuda->pairs && job->pairs >= 124 * (int64_t)job->experts && vk_wide_takes_experts(cuda, job);
}
/* y = epilogue(x W^T + bias) in one launch; returns 0 if not supported here. Used only on request: without pairs,
 * cuBLAS should take less time (tests/bench/results/gpu-predictions.md). */
static int vk_wide_linear_send(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m,
                               const vk_linear *linear, vk_epilogue epilogue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int wide = epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32, pair, grid;
    int64_t results = (int64_t)m * linear->n, element = wide ? 4 : 2,
            flops = 2 * results * linear->k
                    + ((linear->bias != NULL) + (epilogue == VK_ADD_F32) + vk_gelu_flops(epilogue)) * results,
            bytes = 2 * ((int64_t)linear->n + m) * linear->k + results * (epilogue == VK_ADD_F32 ? 8 : element)
                    + (linear->bias ? 4 * linear->n : 0);
    vk_wide_linear to = { y, linear->bias, ldy, linear->n, (int)epilogue };
    vk_wide_tiles all = { NULL, NULL, 0, 0, m, VK_WIDE_COLUMNS, 0 };
    CUtensorMap a, b;
    if (!cuda->encode || !(cuda->wgmma_linears || vk_wide_pays(cuda, m, linear->n, epilogue)) || cuda->wide
        || linear->wide || m < 2 || !vk_wide_fits(x, ldx)
        || !vk_wide_fits(linear->weights, linear->k_padded) || ((size_t)y & 7))
        return 0;
    pair = !cuda->wgmma_linears || vk_wide_prefers_pairs(cuda, m, linear->n);
    all.row_tiles = (m + (VK_WIDE_ROWS << pair) - 1) / (VK_WIDE_ROWS << pair);
    all.column_tiles = (linear->n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS;
    all.steps = (linear->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH;
    if (!vk_wide_map(cuda, &a, x, linear->k_padded, m, ldx, 1, 0, 64)
        || !vk_wide_map(cuda, &b, linear->weights, linear->k_padded, linear->n, linear->k_padded, 1, 0, 128))
        return 0;
    grid = vk_wide_grid(cuda, &all, pair);
    vk_shape(queue, m, linear->n, linear->k, 0);
    if (pair)
        LAUNCH_PAIRS(k_linear_wgmma_pair, grid, VK_WIDE_THREADS, VK_WIDE_BYTES, flops, bytes, all, a, b, to);
    else LAUNCH_SHARED(k_linear_wgmma128, grid, VK_WIDE_THREADS, VK_WIDE_BYTES, flops, bytes, all, a, b, to);
    return 1;
}
/* Sends both products of the experts, with the FLOPs that vk_cuda_experts counts; returns 0 if not supported here. The
 * tiles are from k_moe_lists. */
static int vk_wide_experts_send(vk_queue *queue, const vk_experts_job *job, const int64_t flops[2],
                                const int64_t bytes[2]) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const vk_linear *up = job->gate_up, *down = job->down;
    int expert_dim = up->n / 2, row_tiles = job->pairs / job->tile_rows + job->experts,
        pair = job->tile_rows == 2 * VK_GROUP_ROWS;
    vk_wide_tiles all = { job->tiles, job->start, row_tiles, (expert_dim + 127) / 128, job->pairs, 128,
                          (up->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH };
    vk_chosen chosen = { (const uint16_t *)job->x, job->list, job->ldx, job->top_k, up->k_padded };
    vk_wide_linear to = { job->hidden, NULL, down->k_padded, expert_dim, VK_STORE };
    CUtensorMap rows, gate_up, columns;
    if (!vk_wide_takes_experts(cuda, job)) return 0;
    if (!vk_wide_map(cuda, &gate_up, up->weights, up->k_padded, up->n, up->k_padded, job->experts,
                        job->gate_up_stride, 128)
        || !vk_wide_map(cuda, &columns, down->weights, down->k_padded, down->n, down->k_padded, job->experts,
                        job->down_stride, 128)
        || !vk_wide_map(cuda, &rows, job->hidden, down->k_padded, job->pairs, down->k_padded, 1, 0, 64)) {
        /* the other kernels cannot use the tiles of pairs */
        if (pair) vk_cuda_check(queue, cudaErrorInvalidValue, "cuTensorMapEncodeTiled", VK_HERE);
        return pair;
    }
    vk_shape(queue, job->pairs, up->n, up->k, job->pairs < job->experts ? job->pairs : job->experts);
    if (pair)
        LAUNCH_PAIRS(k_gate_up_wgmma_pair, vk_wide_grid(cuda, &all, 1), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[0],
                     bytes[0], all, chosen, gate_up, to);
    else
        LAUNCH_SHARED(k_gate_up_wgmma128, vk_wide_grid(cuda, &all, 0), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[0],
                      bytes[0], all, chosen, gate_up, to);
    all.column_tiles = (down->n + VK_WIDE_COLUMNS - 1) / VK_WIDE_COLUMNS;
    all.columns = VK_WIDE_COLUMNS;
    all.steps = (down->k_padded + VK_WIDE_DEPTH - 1) / VK_WIDE_DEPTH;
    to.y = job->y;
    to.ldy = job->ldy;
    to.n = down->n;
    vk_shape(queue, job->pairs, down->n, down->k, job->pairs < job->experts ? job->pairs : job->experts);
    if (pair)
        LAUNCH_PAIRS(k_down_wgmma_pair, vk_wide_grid(cuda, &all, 1), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[1],
                     bytes[1], all, rows, columns, to, job->list, job->weight);
    else
        LAUNCH_SHARED(k_down_wgmma128, vk_wide_grid(cuda, &all, 0), VK_WIDE_THREADS, VK_WIDE_BYTES, flops[1],
                      bytes[1], all, rows, columns, to, job->list, job->weight);
    return 1;
}
#ifdef CUDA_ON_CPU
#define vk_max_pairs cuda_on_cpu_max_pairs
#else
template <class... P>
static cudaError_t vk_max_pairs(int *count, void (*kernel)(P...), int threads, size_t shared_bytes) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = dim3(2);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaOccupancyMaxActiveClusters(count, kernel, &config);
}
#endif
/* The number of pairs that the device can run at once: half the number of multiprocessors, or fewer if a group of these
 * (no pair spans two groups) has an odd number. More pairs would wait until the first ones end. */
static int vk_wide_pairs(void) {
    int count = 0;
    if (cudaFuncSetAttribute(k_gate_up_wgmma_pair, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES)
            == cudaSuccess
        && vk_max_pairs(&count, k_gate_up_wgmma_pair, VK_WIDE_THREADS, VK_WIDE_BYTES) == cudaSuccess)
        return count;
    cudaGetLastError(); /* clears the error, as in vk_cuda_check */
    return 0;
}
/* enables wgmma on Hopper if this build has code for it; gpu: vp_gpu_switch */
static void vk_wide_open(vk_queue *queue, const vp_device_info *info, uint32_t gpu) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const int clusters = (gpu & VP_GPU_CLUSTERS) != 0;
    cuda->multiprocessors = info->multiprocessor_count;
#ifdef VLMPROF_SM_90A
    if (info->compute_major == 9 && info->compute_minor == 0 && !(gpu & VP_GPU_MMA)) {
        cuda->encode = vk_wide_encoder();
        if (!cuda->encode) vk_note(queue, "products do not use wgmma: the driver has no cuTensorMapEncodeTiled");
        if (cuda->encode && clusters) cuda->pairs = vk_wide_pairs();
    }
#endif
    if (!clusters || cuda->pairs) return;
    vk_note(queue, cuda->encode ? "products do not use clusters: the device cannot run two blocks that share memory"
                                : "products do not use clusters: they need compute capability 9.0");
}
static void vk_wide_use(vk_queue *queue) {
    if (!vk_cuda_of(queue)->encode) return;
    VK_TRY(cudaFuncSetAttribute(k_linear_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_gate_up_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_down_wgmma128, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
    if (!vk_cuda_of(queue)->pairs) return; /* the kernel of gate_up: vk_wide_pairs */
    VK_TRY(cudaFuncSetAttribute(k_linear_wgmma_pair, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
    VK_TRY(cudaFuncSetAttribute(k_down_wgmma_pair, cudaFuncAttributeMaxDynamicSharedMemorySize, VK_WIDE_BYTES));
}
