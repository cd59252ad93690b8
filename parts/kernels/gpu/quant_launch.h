/* quant_launch.h - launches the kernels of quant_tiles.h, included by vlmprof_kernels.cu */

static void vk_cuda_linear(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *linear,
                           vk_epilogue epilogue);
/* For each panel: widens as many rows of weights as fit, then computes their columns of y as for a bf16 linear.
 * A panel is a whole number of column tiles for any kernel. */
static void vk_quant_linear(vk_queue *queue, void *y, int ldy, const void *x, int ldx, int m, const vk_linear *linear,
                            vk_epilogue epilogue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    size_t k = (size_t)linear->k_padded, element = epilogue == VK_STORE_F32 || epilogue == VK_ADD_F32 ? 4 : 2;
    int most = (int)(cuda->widened_bytes / 2 / k), blocks = (int)(k / VK_QUANT_BLOCK), now;
    if (most > 256) most = most / 256 * 256;
    for (int first = 0; first < linear->n; first += now) {
        vk_linear panel = *linear;
        now = linear->n - first < most ? linear->n - first : most;
        int vectors = now * (int)k / 8;
        const char *weights = (const char *)linear->weights + (size_t)first * k * (size_t)linear->bits / 8;
        panel.weights = cuda->widened;
        panel.n = now;
        panel.bits = 0;
        if (panel.bias) panel.bias += first;
        if (panel.bias_bf16) panel.bias_bf16 = (uint16_t *)panel.bias_bf16 + first;
        vk_shape(queue, now, linear->k, 0, 0);
        LAUNCH(k_quant_widen, (vectors + VK_BLOCK_MAX - 1) / VK_BLOCK_MAX, VK_BLOCK_MAX, 8 * (int64_t)vectors,
               (int64_t)vectors * (2 * linear->bits + 33) / 2, (uint4 *)cuda->widened,
               (const uint32_t *)(const void *)weights, linear->scales + (size_t)first * (size_t)blocks, vectors,
               linear->bits);
        vk_cuda_linear(queue, (char *)y + (size_t)first * element, ldy, x, ldx, m, &panel, epilogue);
    }
}
/* sends both products of the experts, with the FLOPs that vk_cuda_experts counts */
static void vk_quant_experts_send(vk_queue *queue, const vk_experts_job *job, int64_t tiles, const int64_t flops[2],
                                  const int64_t bytes[2]) {
    const vk_linear *up = job->gate_up, *down = job->down;
    int expert_dim = up->n / 2, columns = (expert_dim + VK_GROUP_COLUMNS / 2 - 1) / (VK_GROUP_COLUMNS / 2),
        columns_down = (down->n + VK_GROUP_COLUMNS - 1) / VK_GROUP_COLUMNS;
    int64_t hit = job->pairs < job->experts ? job->pairs : job->experts;
    vk_shape(queue, job->pairs, up->n, up->k, hit);
    LAUNCH_SHARED(k_quant_experts_gate_up, tiles * columns, VK_GROUP_THREADS, VK_QUANT_BYTES, flops[0], bytes[0],
                  (uint16_t *)job->hidden, (const uint16_t *)job->x, (const char *)up->weights,
                  (const char *)up->scales, job->gate_up_stride, job->tiles, job->start, job->list, columns, expert_dim,
                  up->k_padded, job->ldx, down->k_padded, job->top_k, up->bits);
    vk_shape(queue, job->pairs, down->n, down->k, hit);
    LAUNCH_SHARED(k_quant_experts_down, tiles * columns_down, VK_GROUP_THREADS, VK_QUANT_BYTES, flops[1], bytes[1],
                  (uint16_t *)job->y, (const uint16_t *)job->hidden, (const char *)down->weights,
                  (const char *)down->scales, job->down_stride, job->tiles, job->start, job->list, job->weight,
                  columns_down, down->n, down->k_padded, down->k_padded, job->ldy, down->bits);
}
