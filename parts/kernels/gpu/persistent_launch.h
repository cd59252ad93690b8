/* persistent_launch.h - sends k_decode_step, included by vlmprof_kernels.cu
 *
 * A step is described once per choice of top_k and blocks. The engine sends it dry. Each block's first linear and the
 * head store their jobs here (vk_plan_block, vk_plan_end), and vk_plan_keep checks that nothing else was sent. */
#ifndef CUDA_ON_CPU
template <class... P, class... A>
static void vk_launch_cooperative(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes,
                                  cudaStream_t stream, A... arguments) {
    void *pointers[] = { (void *)&arguments... };
    (void)cudaLaunchCooperativeKernel((const void *)kernel, dim3(blocks), dim3(threads), pointers, shared_bytes,
                                      stream); /* the caller checks the last error */
}
#define CUDA_LAUNCH_COOPERATIVE(name, blocks, threads, shared_bytes, stream, ...) \
    vk_launch_cooperative(name, blocks, threads, shared_bytes, stream, __VA_ARGS__)
#endif
enum { VK_STEP_KERNELS = 6 }; /* per transformer block */

static void vk_plan_refuse(vk_queue *queue, const char *why) {
    char text[160];
    snprintf(text, sizeof text, "no persistent decode kernel: %.100s; steps run as one graph", why);
    vk_cuda_of(queue)->persistent = 0;
    vk_note(queue, text);
}
/* before the first step: checks the device's features, and allocates a plan with the counter after it */
static void vk_plan_open(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int able = 0;
    cudaError_t status = cudaDeviceGetAttribute(&able, cudaDevAttrCooperativeLaunch, cuda->device);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&cuda->step_blocks, cudaDevAttrMultiProcessorCount, cuda->device);
    if (cuda->step_blocks > VK_DECODE_BLOCKS) cuda->step_blocks = VK_DECODE_BLOCKS;
    if (status != cudaSuccess || !able) { vk_plan_refuse(queue, "the device has no cooperative launch"); return; }
    status = cudaMalloc((void **)&cuda->step_memory, sizeof(vk_step_plan) + 256);
    if (status == cudaSuccess)
        status = cudaMemsetAsync(cuda->step_memory, 0, sizeof(vk_step_plan) + 256, cuda->stream);
    if (status != cudaSuccess) { cudaGetLastError(); vk_plan_refuse(queue, "no memory for it"); }
}
static void vk_plan_block(vk_queue *queue, const vk_decode_job *job) {
    vk_cuda *cuda = vk_cuda_of(queue);
    vk_step_plan *plan = cuda->plan;
    vk_step_block *block;
    if (!plan) return;
    if (!job->router->n || job->att_proj->bits || job->attn_out->bits || job->gate_up->bits || job->down->bits
        || job->attn_after || job->ff_after || !vk_heads_fit(job) || plan->count == VK_STEP_BLOCKS) {
        cuda->plan_fault = job->att_proj->bits || job->gate_up->bits ? "integer weights" : "another architecture";
        return;
    }
    block = &plan->blocks[plan->count++];
    block->job = *job;
    block->job.keys = 0; /* the position on the device is used instead */
    block->att_proj = *job->att_proj;
    block->attn_out = *job->attn_out;
    block->router = *job->router;
    block->gate_up = *job->gate_up;
    block->down = *job->down;
}
static void vk_plan_end(vk_queue *queue, const vk_decode_end_job *job) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (!cuda->plan) return;
    if (job->head->bits) cuda->plan_fault = "integer weights";
    cuda->plan->end = *job;
    cuda->plan->tokens = cuda->tokens_there;
    cuda->plan->places = (int)cuda->marks;
    cuda->plan->head = *job->head;
}
/* Returns 1 if work sent until vk_plan_keep is only counted and described. */
static int vk_plan_begin(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    cuda->plan = (vk_step_plan *)calloc(1, sizeof *cuda->plan);
    if (!cuda->plan) { vk_plan_refuse(queue, "no memory for it"); return 0; }
    cuda->plan_fault = NULL;
    cuda->plan_launches = queue->work.launches;
    queue->dry = 1;
    return 1;
}
static void vk_plan_keep(vk_queue *queue, uint64_t key) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int64_t sent = queue->work.launches - cuda->plan_launches;
    queue->dry = 0;
    /* the embedding, the blocks, the head and the choice */
    if (!cuda->plan_fault && sent != 3 + (int64_t)VK_STEP_KERNELS * cuda->plan->count)
        cuda->plan_fault = "another architecture";
    if (cuda->plan_fault) {
        free(cuda->plan);
        vk_plan_refuse(queue, cuda->plan_fault);
    } else {
        vk_recording_of(cuda, key)->plan = cuda->plan;
        cuda->plan_sent = NULL; /* its address may be that of an old plan */
    }
    cuda->plan = NULL;
}
static size_t vk_plan_shared(const vk_step_plan *plan) {
    size_t most = vk_strip_bytes(&plan->head);
    for (int b = 0; b < plan->count; b++) {
        const vk_step_block *block = &plan->blocks[b];
        size_t head_dim = (size_t)block->job.heads.head_dim, warps = VK_STEP_THREADS / 32;
        most = vk_max(most, ((3 + warps) * head_dim + 2 * warps) * sizeof(float));
        most = vk_max(most, vk_max(vk_strip_bytes(&block->att_proj), vk_strip_bytes(&block->attn_out)));
        most = vk_max(most, vk_max(vk_strip_bytes(&block->router), (size_t)block->job.top_k * sizeof(int32_t)));
    }
    return most;
}
static void vk_plan_send(vk_queue *queue, const vk_step_plan *plan) {
    vk_cuda *cuda = vk_cuda_of(queue);
    unsigned *arrived = (unsigned *)(void *)(cuda->step_memory + sizeof *plan);
    if (plan != cuda->plan_sent && !VK_TRY(cudaMemcpyAsync(cuda->step_memory, plan, sizeof *plan,
                                                           cudaMemcpyHostToDevice, cuda->stream)))
        return;
    cuda->plan_sent = plan;
    CUDA_LAUNCH_COOPERATIVE(k_decode_step, (unsigned)cuda->step_blocks, (unsigned)VK_STEP_THREADS,
                            vk_plan_shared(plan), cuda->stream,
                            (const vk_step_plan *)(const void *)cuda->step_memory, arrived);
    cudaError_t status = cudaGetLastError();
    /* the engine counts the kernels that this one replaces */
    queue->work.launches -= 2 + (int64_t)VK_STEP_KERNELS * plan->count;
    /* this request fails; the next one uses a graph per step */
    if (status != cudaSuccess) vk_plan_refuse(queue, cudaGetErrorString(status));
    vk_cuda_check(queue, status, "k_decode_step", VK_HERE);
}
