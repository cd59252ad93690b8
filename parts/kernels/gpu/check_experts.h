/* check_experts.h - compares the experts' products by wgmma and by mma.sync on a few rows, when an engine opens
 * with VP_GPU_WGMMA and a model with experts; included by vlmprof_kernels.cu
 *
 * If a row differs by more than rounding, the engine uses mma.sync instead, and one note reports it. The
 * rows cover a short tile, no tile, and a tile with two warpgroups. There are more slices than stages in the ring,
 * columns end inside a tile, and a block computes several tiles, so that its ring wraps from one to the next. */
enum { VK_TRIAL_EXPERTS = 3, VK_TRIAL_ROWS = 71, VK_TRIAL_FEW = 5, VK_TRIAL_K = 320, VK_TRIAL_DIM = 136,
       VK_TRIAL_DIM_PADDED = 160, VK_TRIAL_BLOCKS = 2 };
typedef struct vk_trial {
    uint16_t x[VK_TRIAL_ROWS][VK_TRIAL_K], up[VK_TRIAL_EXPERTS][2 * VK_TRIAL_DIM][VK_TRIAL_K],
        down[VK_TRIAL_EXPERTS][VK_TRIAL_K][VK_TRIAL_DIM_PADDED], hidden[VK_TRIAL_ROWS][VK_TRIAL_DIM_PADDED],
        y[VK_TRIAL_ROWS][VK_TRIAL_K];
    float share[VK_TRIAL_ROWS];
    int32_t index[VK_TRIAL_ROWS], count[VK_TRIAL_EXPERTS + 1], start[VK_TRIAL_EXPERTS + 1], list[VK_TRIAL_ROWS],
        slot_row[VK_TRIAL_ROWS], tiles[8];
} vk_trial;

static double vk_trial_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}
/* fills in values between -1 and 1, the same each time */
static void vk_trial_fill(uint16_t *values, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) {
        uint32_t hash = ((uint32_t)i + seed) * 2654435761u;
        hash ^= hash >> 15;
        hash *= 2246822519u;
        values[i] = (uint16_t)(0x3e00u + ((hash >> 16) & 0x80ffu) + ((hash >> 8) & 0x7fu)); /* 2^-3 .. 2^-1 */
    }
}
static vk_trial *vk_trial_new(void) {
    vk_trial *trial = (vk_trial *)calloc(1, sizeof *trial);
    if (!trial) return NULL;
    vk_trial_fill(&trial->x[0][0], sizeof trial->x / 2, 1);
    vk_trial_fill(&trial->up[0][0][0], sizeof trial->up / 2, 1 << 20);
    for (int e = 0; e < VK_TRIAL_EXPERTS; e++)
        for (int row = 0; row < VK_TRIAL_K; row++)
            vk_trial_fill(trial->down[e][row], VK_TRIAL_DIM, (uint32_t)((e * VK_TRIAL_K + row) << 8));
    for (int row = 0; row < VK_TRIAL_ROWS; row++) {
        trial->share[row] = 0.25f + (float)(row % 4) / 4.0f;
        trial->index[row] = row < VK_TRIAL_FEW ? 0 : VK_TRIAL_EXPERTS - 1;
    }
    return trial;
}
/* computes y of `trial` by wgmma or by mma.sync */
static void vk_trial_run(vk_queue *queue, vk_trial *there, vk_trial *trial, int by_wgmma) {
    static const int64_t none[2] = {0, 0};
    cudaStream_t stream = vk_cuda_of(queue)->stream;
    vk_linear up = {there->up, NULL, NULL, 2 * VK_TRIAL_DIM, VK_TRIAL_K, VK_TRIAL_K, 0, 0, NULL},
              down = {there->down, NULL, NULL, VK_TRIAL_K, VK_TRIAL_DIM, VK_TRIAL_DIM_PADDED, 0, 0, NULL};
    vk_experts_job job;
    memset(&job, 0, sizeof job);
    job.y = there->y;
    job.hidden = there->hidden;
    job.x = there->x;
    job.gate_up = &up;
    job.down = &down;
    job.gate_up_stride = sizeof there->up[0];
    job.down_stride = sizeof there->down[0];
    job.start = there->start;
    job.list = there->list;
    job.slot_row = there->slot_row;
    job.tiles = there->tiles;
    job.weight = there->share;
    job.ldx = job.ldy = VK_TRIAL_K;
    job.pairs = VK_TRIAL_ROWS;
    job.top_k = 1;
    job.experts = VK_TRIAL_EXPERTS;
    memset(trial->y, 0xff, sizeof trial->y); /* NaN, to detect rows that are not written */
    if (!VK_TRY(cudaMemcpyAsync(there, trial, sizeof *trial, cudaMemcpyHostToDevice, stream))) return;
    l_moe_lists(queue, there->count, there->start, there->list, there->slot_row, there->tiles, there->index,
                VK_TRIAL_EXPERTS, VK_TRIAL_ROWS, VK_TILE_ROWS);
    if (by_wgmma) {
        if (!vk_wide_experts_send(queue, &job, none, none) && !queue->error) return; /* y stays NaN */
    } else vk_tiles_experts_send(queue, &job, none, none);
    if (!queue->error) VK_TRY(cudaMemcpyAsync(trial->y, there->y, sizeof trial->y, cudaMemcpyDeviceToHost, stream));
    if (!queue->error) VK_TRY(cudaStreamSynchronize(stream));
}
/* Each method rounds `hidden` and the result to 8 bits, with an error of half a unit (2^-9) each. So rows differ by at
 * most 2^-7 of their norm. NaN counts as different. */
static int vk_trial_agrees(const vk_trial *one, const vk_trial *other) {
    for (int row = 0; row < VK_TRIAL_ROWS; row++) {
        double length = 0.0, distance = 0.0;
        for (int c = 0; c < VK_TRIAL_K; c++) {
            double a = vk_trial_value(one->y[row][c]), b = vk_trial_value(other->y[row][c]);
            length += b * b;
            distance += (a - b) * (a - b);
        }
        if (!(distance * 128 * 128 <= length)) return 0;
    }
    return 1;
}
static void vk_check_experts(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const vk_work before = queue->work;
    const int multiprocessors = cuda->multiprocessors;
    vk_trial *by_tiles = vk_trial_new(), *by_wgmma = vk_trial_new(), *there = NULL;
    cuda->multiprocessors = VK_TRIAL_BLOCKS;
    if (!by_tiles || !by_wgmma) vk_cuda_check(queue, cudaErrorMemoryAllocation, "vk_check_experts", VK_HERE);
    else if (!queue->error && VK_TRY(cudaMalloc((void **)&there, sizeof *there))) {
        vk_trial_run(queue, there, by_tiles, 0);
        if (!queue->error) vk_trial_run(queue, there, by_wgmma, 1);
        if (!queue->error && !vk_trial_agrees(by_wgmma, by_tiles)) {
            vk_note(queue, "experts do not use wgmma: its results differ from those of mma.sync here");
            cuda->encode = NULL;
        }
    }
    if (there) cudaFree(there);
    free(by_tiles);
    free(by_wgmma);
    queue->work = before;
    cuda->multiprocessors = multiprocessors;
}
