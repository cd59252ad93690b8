/* spin.h - waits with a limit, included by vlmprof_kernels.cu
 *
 * A kernel that waits for an arrival that never comes would hang the device without a message. Waiting for an mbarrier
 * traps after VK_SPIN_LIMIT seconds; no other code of a kernel waits in a loop. The first thread to trap records where
 * it waited in host memory, which survives the context. The emulator reports a deadlock instead. */
#ifndef VK_SPIN_LIMIT
#define VK_SPIN_LIMIT 10
#endif
#ifndef CUDA_ON_CPU
typedef struct vk_stuck { unsigned count, block, thread, phase; unsigned long long place; } vk_stuck;
static __device__ vk_stuck *vk_stuck_there;
static vk_stuck *vk_stuck_here; /* one per process, in mapped host memory */
FN unsigned long long vk_spin_begin(void) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/* place: the barrier's address in shared memory, which reveals its stage */
FN void vk_spin(unsigned long long since, unsigned phase, unsigned long long place) {
    if (vk_spin_begin() - since < VK_SPIN_LIMIT * 1000000000ull) return;
    if (vk_stuck_there && atomicAdd_system(&vk_stuck_there->count, 1u) == 0) {
        vk_stuck_there->block = blockIdx.x;
        vk_stuck_there->thread = threadIdx.x;
        vk_stuck_there->phase = phase;
        vk_stuck_there->place = place;
        __threadfence_system();
    }
    __trap();
}
static cudaError_t vk_spin_open(void) {
    void *there = NULL;
    cudaError_t status = cudaSuccess;
    if (!vk_stuck_here) status = cudaHostAlloc((void **)&vk_stuck_here, sizeof *vk_stuck_here, cudaHostAllocMapped);
    if (status == cudaSuccess) {
        memset(vk_stuck_here, 0, sizeof *vk_stuck_here);
        status = cudaHostGetDevicePointer(&there, vk_stuck_here, 0);
    }
    if (status == cudaSuccess) status = cudaMemcpyToSymbol(vk_stuck_there, &there, sizeof there);
    return status;
}
/* appends the place of a wait that exceeded the limit, if any */
static void vk_spin_tell(char *text, size_t capacity) {
    size_t used = strlen(text);
    if (vk_stuck_here && vk_stuck_here->count)
        snprintf(text + used, capacity - used,
                 "; a kernel of --gpu wgmma waited %d s: block %u thread %u phase %u at 0x%llx", VK_SPIN_LIMIT,
                 vk_stuck_here->block, vk_stuck_here->thread, vk_stuck_here->phase, vk_stuck_here->place);
}
static void vk_spin_forget(void) { vk_stuck_here = NULL; } /* a reset of the device freed it */
#else
static cudaError_t vk_spin_open(void) { return cudaSuccess; }
static void vk_spin_forget(void) {}
static void vk_spin_tell(char *text, size_t capacity) { (void)text; (void)capacity; }
#endif
