/* persistent.h - a decode step as one kernel (VP_GPU_PERSISTENT), included by vlmprof_kernels.cu
 *
 * One block per multiprocessor runs all phases of a step: the embedding, six phases per transformer block, the head,
 * and the choice of the token. All blocks synchronise between phases (vk_turns): 6 times per transformer block and
 * twice more. This saves the launches of a graph's kernels and their partly filled last waves, at the cost of one
 * barrier per phase. The functions of k_decode_* do the work. Rows are summed in the same order, and squares by the
 * same number of threads, so results are bit-identical.
 *
 * Weights do not depend on the previous phase, so a warp requests its first ones before it waits (vk_row), and
 * attention its first keys. The experts are known only after the wait. Meanwhile the next att_proj is prefetched into
 * the second-level cache; so are attn_out during attention, and the router during attn_out.
 *
 * A phase may read data written by earlier phases, and may not write data that the same phase reads. Only one warp
 * reads and writes a given x[row]. Only loads of weights may be marked read-only for the whole kernel (const
 * __restrict__, __ldg): such loads may return data older than another block's write. */
enum {
    VK_STEP_THREADS = 512,
    VK_STEP_BLOCKS = 64,              /* maximum number of transformer blocks */
    VK_STEP_AHEAD_BYTES = 8 << 20     /* prefetched from the next att_proj, while the experts are chosen */
};
/* the data for the phases of a transformer block; `job` points to these linears */
typedef struct vk_step_block {
    vk_decode_job job;
    vk_linear att_proj, attn_out, router, gate_up, down;
} vk_step_block;
typedef struct vk_step_plan {
    vk_decode_end_job end;
    vk_linear head;
    int32_t *tokens; /* in host memory: vk_take_token */
    int places;
    int count; /* number of blocks */
    vk_step_block blocks[VK_STEP_BLOCKS];
} vk_step_plan;

FN int vk_linear_vectors(const vk_linear *linear) { return linear->k_padded * (linear->wide ? 4 : 2) / 16; }
FN vk_input vk_turns_input(vk_input in, vk_turns *turns, int summing) {
    in.turns = turns;
    in.summing = summing;
    return in;
}
FN void vk_step_qkv(uint4 *shared, const vk_step_block *block, vk_turns *turns) {
    const vk_decode_job *job = &block->job;
    const vk_linear *linear = &block->att_proj;
    vk_input in = vk_turns_input(vk_input_norm(job->x, job->attn_norm, job->d, job->eps, linear->wide), turns,
                                 VK_DECODE_THREADS);
    vk_rows(VK_FLIGHT, shared, &in, job->qkv, (const uint4 *)linear->weights, linear->bias, linear->n,
            vk_linear_vectors(linear), 0);
}
FN void vk_step_attention(uint4 *shared, const vk_step_block *block, vk_turns *turns) {
    const vk_decode_job *job = &block->job;
    int wide = block->att_proj.wide, row_bytes = job->heads.head_dim * (wide ? 4 : 2), group = 1;
    while (group * 16 < row_bytes) group *= 2;
    vk_bring_ahead((const uint4 *)block->attn_out.weights,
                   (int64_t)block->attn_out.n * vk_linear_vectors(&block->attn_out) * 16);
    for (int item = (int)BLK; item < job->heads.heads * VK_SPLITS; item += (int)gridDim.x) {
        if (item != (int)BLK) SYNC(); /* the sums of the last item have been read */
        vk_decode_attend(shared, job->scratch, job->key, job->value, job->qkv, &job->heads, job->position, group,
                         1.0f / sqrtf((float)job->heads.head_dim), item, turns, wide);
    }
}
FN void vk_step_out(uint4 *shared, const vk_step_block *block, vk_turns *turns) {
    const vk_linear *linear = &block->attn_out;
    int vectors = vk_linear_vectors(&block->router);
    vk_input in = vk_turns_input(vk_input_merged(block->job.scratch, linear->k, block->job.heads.head_dim,
                                                 linear->wide), turns, 0);
    vk_bring_ahead((const uint4 *)block->router.weights, (int64_t)block->router.n * vectors * 16);
    vk_rows(VK_FLIGHT, shared, &in, block->job.x, (const uint4 *)linear->weights, NULL, linear->n,
            vk_linear_vectors(linear), 1);
}
/* Few rows: one per block, if there are enough blocks. They are already in the second-level cache, so fewer vectors in
 * flight than in k_decode_router are enough, which saves registers. */
FN void vk_step_router(uint4 *shared, const vk_step_block *block, vk_turns *turns) {
    const vk_decode_job *job = &block->job;
    const vk_linear *linear = &block->router;
    vk_input in = vk_turns_input(vk_input_norm(job->x, job->ff_norm, job->d, job->eps, 1), turns, VK_ROUTER_THREADS);
    int vectors = vk_linear_vectors(linear), grid = (int)gridDim.x;
    for (int first = (int)BLK; first < linear->n; first += grid * (NTID >> 5)) {
        int row = first + grid * (TID >> 5), live = row < linear->n;
        float sum = vk_row(VK_FLIGHT, shared, &in,
                           (const uint4 *)linear->weights + (size_t)(live ? row : 0) * (size_t)vectors, vectors, live);
        if (LANE0 && live) job->logits[row] = sum;
    }
    if (BLK == 0)
        EACH(i, job->d) vk_put(job->normed, (size_t)i, job->ff_norm[i] * (job->x[i] * in.scale), block->gate_up.wide);
}
FN void vk_step_gate_up(uint4 *shared, const vk_step_block *block, const vk_step_block *next, vk_turns *turns) {
    const vk_decode_job *job = &block->job;
    const vk_linear *linear = &block->gate_up;
    int64_t ahead = next ? (int64_t)next->att_proj.n * vk_linear_vectors(&next->att_proj) * 16 : 0;
    if (next)
        vk_bring_ahead((const uint4 *)next->att_proj.weights,
                       ahead < VK_STEP_AHEAD_BYTES ? ahead : (int64_t)VK_STEP_AHEAD_BYTES);
    vk_decode_chosen((int32_t *)(void *)shared, job->hidden, job->index, job->weight, job->logits,
                     (const uint4 *)job->normed, (const char *)linear->weights, job->gate_up_stride, block->router.n,
                     job->top_k, job->norm_topk, job->expert_dim, vk_linear_vectors(linear), block->down.k_padded,
                     turns, linear->wide);
}
FN void vk_step_down(const vk_step_block *block, vk_turns *turns) {
    const vk_decode_job *job = &block->job;
    const vk_linear *linear = &block->down;
    int warps = NTID >> 5;
    vk_turns_wait(turns);
    for (int row = (int)BLK * warps + (TID >> 5); row < linear->n; row += (int)gridDim.x * warps)
        vk_decode_back(job->x, (const uint4 *)job->hidden, job->index, job->weight, (const char *)linear->weights,
                       job->down_stride, job->top_k, row, vk_linear_vectors(linear), linear->wide);
}
FN void vk_step_head(uint4 *shared, const vk_step_plan *plan, vk_turns *turns) {
    const vk_decode_end_job *end = &plan->end;
    vk_input in = vk_turns_input(vk_input_norm(end->x, end->norm, plan->head.k, end->eps, plan->head.wide), turns,
                                 VK_DECODE_THREADS);
    vk_decode_best(shared, &in, end->logits, (vk_candidate *)(void *)end->scratch,
                   (const uint4 *)plan->head.weights, plan->head.n, vk_linear_vectors(&plan->head));
}
/* Launched cooperatively. `arrived` is 0 before and after, because the last block to continue resets it. */
KERNEL_OF(VK_STEP_THREADS, 1, k_decode_step, const vk_step_plan *plan, unsigned *arrived) {
    CUDA_DYNAMIC_SHARED(uint4, shared);
    const vk_decode_end_job *end = &plan->end;
    vk_turns turns = { arrived, 0u, 1 };
    if (BLK == 0) vk_embed_row(end->x, &end->table, *end->token, plan->head.k, plan->head.wide);
    vk_turns_end(&turns);
    for (int b = 0; b < plan->count; b++) {
        const vk_step_block *block = &plan->blocks[b];
        vk_step_qkv(shared, block, &turns);
        vk_turns_end(&turns);
        vk_step_attention(shared, block, &turns);
        vk_turns_end(&turns);
        vk_step_out(shared, block, &turns);
        vk_turns_end(&turns);
        vk_step_router(shared, block, &turns);
        vk_turns_end(&turns);
        vk_step_gate_up(shared, block, b + 1 < plan->count ? block + 1 : NULL, &turns);
        vk_turns_end(&turns);
        vk_step_down(block, &turns);
        vk_turns_end(&turns);
    }
    vk_step_head(shared, plan, &turns);
    vk_turns_end(&turns);
    if (BLK != 0) return;
    vk_turns_wait(&turns);
    {
        vk_candidate best = vk_best_of_all((const vk_candidate *)(const void *)end->scratch, (int)gridDim.x);
        if (TID == 0) {
            vk_take_token(end->token, end->position, plan->tokens, plan->places, best.index);
            atomicExch(arrived, 0u);
        }
    }
}
