/* lt_products.h - products by cublasLt, which can add a bias and has several algorithms per shape; included
 * by vlmprof_kernels.cu */

/* Plans a product in one launch, with or without a bias. `found`: algorithms, in order of expected speed.
 * Types are those of cublasLtMatmul's table: a bias has the type of the result (cublasLt.h,
 * CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), so bf16 results need it in bf16. The workspace is shared with cuBLAS, which is
 * safe because one stream runs one product at a time. Partial sums stay fp32: only algorithms that reduce in compute
 * type are used if products are split along k. */
static cublasStatus_t vk_lt_make(vk_cuda *cuda, vk_lt_plan *plan, cublasLtMatmulHeuristicResult_t *found, int *count,
                                 const char **what) {
    const vk_lt *lt = &cuda->lt;
    const vk_lt_shape *shape = &plan->shape;
    /* only the alignment matters to the search; products set their own bias */
    const void *bias = (const void *)(size_t)shape->alignment;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = shape->biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    const uint64_t workspace = VK_WORKSPACE_BYTES;
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment = (uint32_t)shape->alignment;
    cudaDataType in = (cudaDataType)shape->in, out = (cudaDataType)shape->out;
    cublasLtMatmulPreference_t wish = NULL;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
#define VK_LT_TRY(field, ...) \
    if (status == CUBLAS_STATUS_SUCCESS && (status = lt->field(__VA_ARGS__)) != CUBLAS_STATUS_SUCCESS) *what = #field
    *count = 0;
    VK_LT_TRY(product_create, &plan->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    VK_LT_TRY(product_set, plan->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    VK_LT_TRY(product_set, plan->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (shape->biased) VK_LT_TRY(product_set, plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    VK_LT_TRY(layout_create, &plan->w, in, (uint64_t)shape->k, (uint64_t)shape->n, shape->k);
    VK_LT_TRY(layout_create, &plan->x, in, (uint64_t)shape->k, (uint64_t)shape->m, shape->ldx);
    VK_LT_TRY(layout_create, &plan->y, out, (uint64_t)shape->n, (uint64_t)shape->m, shape->ldy);
    VK_LT_TRY(preference_create, &wish);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, sizeof alignment);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment, sizeof alignment);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment, sizeof alignment);
    VK_LT_TRY(preference_set, wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment, sizeof alignment);
    VK_LT_TRY(find, (cublasLtHandle_t)cuda->blas.handle, plan->product, plan->w, plan->x, plan->y, plan->y, wish,
              cuda->tuned ? VK_LT_ALGORITHMS : 1, found, count);
#undef VK_LT_TRY
    if (wish) lt->preference_destroy(wish);
    if (status == CUBLAS_STATUS_SUCCESS) status = *count > 0 ? found->state : CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS) plan->algorithm = found->algo;
    return status;
}
/* operands of a product; `beta` times the old y is added */
typedef struct vk_lt_job {
    void *y;
    const void *x, *weights, *bias;
    float beta;
} vk_lt_job;
static cublasStatus_t vk_lt_run(vk_cuda *cuda, const vk_lt_plan *plan, const vk_lt_job *job,
                                const cublasLtMatmulAlgo_t *algorithm) {
    const float one = 1.0f;
    return cuda->lt.multiply((cublasLtHandle_t)cuda->blas.handle, plan->product, &one, job->weights, plan->w, job->x,
                             plan->x, &job->beta, job->y, plan->y, job->y, plan->y, algorithm, cuda->workspace,
                             VK_WORKSPACE_BYTES, cuda->stream);
}
/* Times each algorithm: the shortest of several rounds after a warm-up round, negative if it cannot run. */
static void vk_lt_rounds(vk_queue *queue, vk_lt_plan *plan, const vk_lt_job *job,
                         const cublasLtMatmulHeuristicResult_t *found, int count, float *least) {
    vk_cuda *cuda = vk_cuda_of(queue);
    cudaEvent_t event[2] = {NULL, NULL};
    VK_TRY(cudaEventCreate(&event[0]));
    if (!queue->error) VK_TRY(cudaEventCreate(&event[1]));
    for (int i = 0; i < count; i++) least[i] = found[i].state == CUBLAS_STATUS_SUCCESS ? INFINITY : -1.0f;
    for (int round = 0; round <= VK_LT_ROUNDS; round++)
        for (int i = 0; i < count && !queue->error; i++) {
            float ms = 0.0f;
            if (least[i] < 0.0f) continue;
            VK_TRY(cudaEventRecord(event[0], cuda->stream));
            if (vk_lt_run(cuda, plan, job, &found[i].algo) != CUBLAS_STATUS_SUCCESS) { least[i] = -1.0f; continue; }
            VK_TRY(cudaEventRecord(event[1], cuda->stream));
            VK_TRY(cudaEventSynchronize(event[1]));
            if (!queue->error) VK_TRY(cudaEventElapsedTime(&ms, event[0], event[1]));
            if (round && ms < least[i]) least[i] = ms;
        }
    for (int i = 0; i < 2; i++)
        if (event[i]) cudaEventDestroy(event[i]);
}
/* Finds the fastest algorithm for these operands. Restores y afterwards, because the rounds may add to y. */
static void vk_lt_tune(vk_queue *queue, vk_lt_plan *plan, const vk_lt_job *job,
                       const cublasLtMatmulHeuristicResult_t *found, int count) {
    vk_cuda *cuda = vk_cuda_of(queue);
    const vk_lt_shape *shape = &plan->shape;
    const size_t bytes =
        ((size_t)(shape->m - 1) * (size_t)shape->ldy + (size_t)shape->n) * (shape->out == CUDA_R_32F ? 4 : 2);
    float least[VK_LT_ALGORITHMS];
    void *before = NULL;
    int best = 0;
    if (count < 2 || queue->error) return;
    if (shape->biased
        && cuda->lt.product_set(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &job->bias, sizeof job->bias)
               != CUBLAS_STATUS_SUCCESS)
        return;
    if (cudaMalloc(&before, bytes) != cudaSuccess) {
        cudaGetLastError(); /* clears the error, as in vk_cuda_check */
        vk_note(queue, "a product's algorithms were not timed: no memory for a copy of its output");
        return;
    }
    VK_TRY(cudaMemcpyAsync(before, job->y, bytes, cudaMemcpyDeviceToDevice, cuda->stream));
    if (!queue->error) vk_lt_rounds(queue, plan, job, found, count, least);
    if (!queue->error) VK_TRY(cudaMemcpyAsync(job->y, before, bytes, cudaMemcpyDeviceToDevice, cuda->stream));
    if (!queue->error) VK_TRY(cudaStreamSynchronize(cuda->stream));
    cudaFree(before);
    if (queue->error) return;
    for (int i = 1; i < count; i++)
        if (least[i] >= 0.0f && (least[best] < 0.0f || least[i] < least[best])) best = i;
    if (least[best] >= 0.0f) plan->algorithm = found[best].algo;
}
/* The plan for this shape, made on first use, which takes host time in warm-up requests. NULL means two launches, which
 * a note reports. */
static vk_lt_plan *vk_lt_find(vk_queue *queue, const vk_lt_shape *shape, const vk_lt_job *job) {
    vk_cuda *cuda = vk_cuda_of(queue);
    vk_lt_plan *plan = NULL;
    const int tunes = cuda->tuned && !queue->dry && !queue->step; /* steps are recorded, so they must not wait */
    cublasLtMatmulHeuristicResult_t found[VK_LT_ALGORITHMS];
    int count;
    const char *what = "find";
    char text[160];
    if (!cuda->lt.present) return NULL;
    if (shape->biased && !job->bias) {
        vk_note(queue, "a product and its bias take two launches: the bias has no bf16 form");
        return NULL;
    }
    for (int i = 0; i < VK_PLANS && cuda->plans[i].shape.m && !plan; i++)
        if (!memcmp(&cuda->plans[i].shape, shape, sizeof *shape)) plan = &cuda->plans[i];
    if (plan && (plan->tuned || !tunes)) return plan->usable ? plan : NULL;
    if (!plan) {
        plan = &cuda->plans[cuda->next_plan];
        cuda->next_plan = (cuda->next_plan + 1) % VK_PLANS;
    }
    vk_lt_forget(&cuda->lt, plan);
    plan->shape = *shape;
    cublasStatus_t status = vk_lt_make(cuda, plan, found, &count, &what);
    plan->usable = status == CUBLAS_STATUS_SUCCESS;
    plan->tuned = tunes;
    if (plan->usable) {
        if (tunes) vk_lt_tune(queue, plan, job, found, count);
        return plan;
    }
    snprintf(text, sizeof text, "a product of %d x %d x %d %s: cublasLt's %s, status %d", shape->m, shape->n, shape->k,
             shape->biased ? "and its bias take two launches" : "is not tuned", what, (int)status);
    vk_note(queue, text);
    return NULL;
}
/* calls vk_end for the caller's vk_begin */
static void vk_lt_product(vk_queue *queue, const vk_lt_plan *plan, const vk_lt_job *job) {
    vk_cuda *cuda = vk_cuda_of(queue);
    if (plan->shape.biased)
        vk_cublas_check(
            queue, cuda->lt.product_set(plan->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &job->bias, sizeof job->bias),
            "cublasLtMatmulDescSetAttribute", VK_HERE);
    if (queue->error) return;
    vk_cublas_check(queue, vk_lt_run(cuda, plan, job, &plan->algorithm), "cublasLtMatmul", VK_HERE);
    vk_end(queue);
}
