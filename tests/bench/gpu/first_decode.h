/* first_decode.h - the kernels of a decode step at the real model's sizes, each judged from what it read; included by first_gpu.cu */
/* ---- a block of a decode step over 1,922 keys, and the head: each kernel's results, from what it read, by plain kernels and on the host */
static struct { vk_decode_job job; vk_decode_end_job end; vk_linear qkv, out, router, up, down, head; float *x0, *x1; int32_t *list; int keys; } de;
/* bf16 and f32 values on the host, in f32; never freed */
static float *fetched(const void *at, size_t count, int wide) {
    float *values = (float *)malloc(count * 4);
    uint16_t *narrow = (uint16_t *)(void *)values + (wide ? 0 : count);
    move(narrow, at, count * (wide ? 4 : 2), cudaMemcpyDeviceToHost);
    for (size_t i = 0; !wide && i < count; i++) {
        uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
    return values;
}
/* rounded to bf16, on the device */
static uint16_t *uploaded(const float *values, int count) {
    uint16_t *narrow = (uint16_t *)malloc((size_t)count * 2), *to = (uint16_t *)room((size_t)count * 2);
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        narrow[i] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
    }
    move(to, narrow, (size_t)count * 2, cudaMemcpyHostToDevice);
    free(narrow);
    return to;
}
/* norm x / rms(x) */
static float *normed(const float *x, const float *norm, int d) {
    double squares = 0.0;
    float *out = (float *)malloc((size_t)d * 4);
    for (int i = 0; i < d; i++) squares += (double)x[i] * (double)x[i];
    for (int i = 0; i < d; i++) out[i] = (float)((double)norm[i] * (double)x[i] / sqrt(squares / d + (double)de.job.eps));
    return out;
}
/* the norm of a row of q or k, and its rotation */
static float *turned(const float *row, const float *norm, const float *cs, int d, int head_dim) {
    const int half = head_dim / 2;
    float *x = normed(row, fetched(norm, (size_t)d, 1), d), *out = (float *)malloc((size_t)d * 4);
    for (int i = 0; i < d; i++) {
        int j = i % half, first = i % head_dim < half;
        out[i] = x[i] * cs[j] + (first ? -x[i + half] : x[i - half]) * cs[half + j];
    }
    return out;
}
/* the splits of attention as one row */
static float *merged(int d, int heads) {
    float *partial = fetched(de.job.scratch, VK_SPLITS * (size_t)(d + 2 * heads), 1), *tops = partial + VK_SPLITS * d, *out = (float *)malloc((size_t)d * 4);
    for (int i = 0; i < d; i++) {
        double sum = 0.0, weights = 0.0, most = -INFINITY;
        const float *top = tops + 2 * (i / (d / heads));
        for (int s = 0; s < VK_SPLITS; s++) most = fmax(most, (double)top[2 * heads * s]);
        for (int s = 0; s < VK_SPLITS; s++) {
            sum += exp((double)top[2 * heads * s] - most) * (double)partial[s * d + i];
            weights += exp((double)top[2 * heads * s] - most) * (double)top[2 * heads * s + 1];
        }
        out[i] = (float)(sum / weights);
    }
    return out;
}
static double more(double worst, double got, double want, double tolerance) {
    double wrong = fabs(got - want) / tolerance;
    return wrong <= worst ? worst : wrong <= 1e9 ? wrong : INFINITY; /* as NaN is */
}
/* of what is rounded to bf16 */
static double apart(double worst, const float *got, const float *want, int count) {
    for (int i = 0; i < count; i++) worst = more(worst, (double)got[i], (double)want[i], 0.02 * fabs((double)want[i]) + 0.002);
    return worst;
}
static void send_half(int second) {
    const vk_decode_kernels *to = f.backend->decode;
    if (!second) { to->qkv(f.queue, &de.job); to->attention(f.queue, &de.job); to->attn_out(f.queue, &de.job); }
    else { to->router(f.queue, &de.job); to->gate_up(f.queue, &de.job); to->down(f.queue, &de.job); }
}
static void send_block(int i) { (void)i; send_half(0); send_half(1); }
static void send_head(int i) { (void)i; f.backend->decode->head(f.queue, &de.end); f.backend->decode->pick(f.queue, &de.end); }
static void reset_block(int i) {
    const size_t d = (size_t)de.job.d;
    (void)i;
    poison(de.job.qkv, 3 * d * 4);
    poison(de.job.scratch, VK_SPLITS * (d + 2 * (size_t)de.job.heads.heads) * 4);
    poison(de.job.hidden, (size_t)(TOP_K * de.job.expert_dim) * 2);
    f.backend->copy(f.queue, de.job.x, de.x0, d * 4);
}
static first_linear row_of(const void *y, const uint16_t *x, const vk_linear *w, const float *added) {
    first_linear job = { y, x, (const uint16_t *)w->weights, NULL, w->n, w->k, w->n, w->k, w->k, added ? VK_ADD_F32 : VK_STORE_F32, 1, 0.0f, added };
    return job;
}
/* logits = W x; each[4]: the experts of the largest logits with a softmax's weights */
static double judge_router(const float *x, const int32_t *index, double *chosen) {
    const int d = de.job.d;
    const float *w = fetched(de.router.weights, (size_t)(EXPERTS * d), 1), *logits = fetched(de.job.logits, EXPERTS, 1), *weight = fetched(de.job.weight, TOP_K, 1);
    double worst = 0.0, all = 0.0;
    for (int e = 0; e < EXPERTS; e++) {
        double sum = 0.0, scale = 0.0;
        for (int i = 0; i < d; i++) { sum += (double)x[i] * (double)w[e * d + i]; scale += fabs((double)x[i] * (double)w[e * d + i]); }
        worst = more(worst, (double)logits[e], sum, scale * d * 1.2e-7);
        all += exp((double)logits[e]);
    }
    *chosen = 0.0;
    for (int j = 0; j < TOP_K; j++) {
        int larger = 0;
        for (int e = 0; e < EXPERTS; e++) larger += logits[e] > logits[index[j]];
        *chosen = larger == j ? more(*chosen, (double)weight[j], exp((double)logits[index[j]]) / all, 1e-4) : INFINITY;
    }
    return worst;
}
/* x1 + the sum of weight W hidden, over the chosen experts */
static double judge_down(const int32_t *index) {
    const int d = de.job.d, dim = de.job.expert_dim;
    const float *weight = fetched(de.job.weight, TOP_K, 1), *hidden = fetched(de.job.hidden, (size_t)(TOP_K * dim), 0), *got = fetched(de.job.x, (size_t)d, 1);
    double *sum = (double *)calloc(2 * (size_t)d, sizeof *sum), worst = 0.0;
    for (int slot = 0; slot < TOP_K; slot++) {
        float *w = fetched((const char *)de.down.weights + (size_t)index[slot] * de.job.down_stride, (size_t)d * (size_t)dim, 0);
        for (int i = 0; i < d * dim; i++) {
            double product = (double)weight[slot] * (double)hidden[slot * dim + i % dim] * (double)w[i];
            sum[i / dim] += product;
            sum[d + i / dim] += fabs(product);
        }
        free(w);
    }
    const float *x1 = fetched(de.x1, (size_t)d, 1);
    for (int i = 0; i < d; i++) worst = more(worst, (double)got[i], (double)x1[i] + sum[i], (sum[d + i] + fabs((double)x1[i])) * (dim / 16 + 4) * 1.2e-7);
    return worst;
}
static double judge_block(float *judged) {
    const vk_decode_job *job = &de.job;
    const int d = job->d, heads = job->heads.heads, head_dim = job->heads.head_dim, last = de.keys - 1;
    const size_t width = (size_t)d;
    int32_t index[TOP_K];
    double each[6];
    reset_block(0);
    send_half(0);
    f.backend->copy(f.queue, de.x1, job->x, width * 4);
    settle();
    float *qkv = fetched(job->qkv, 3 * width, 1), *cs = fetched(job->heads.cs + last * head_dim, (size_t)head_dim, 1), *norm = fetched(job->attn_norm, width, 1),
          *k = turned(qkv + d, job->heads.k_norm, cs, d, head_dim);
    uint16_t *attended = uploaded(merged(d, heads), d);
    first_attention attention = { attended, uploaded(turned(qkv, job->heads.q_norm, cs, d, head_dim), d), (const uint16_t *)job->key, (const uint16_t *)job->value,
                                  de.keys, heads, head_dim, d, d, 0 };
    each[0] = JUDGE(k_first_linear, 1, row_of(job->qkv, uploaded(normed(fetched(de.x0, width, 1), norm, d), d), &de.qkv, NULL));
    each[1] = JUDGE(k_first_attention, heads, attention);
    each[1] = apart(each[1], fetched((uint16_t *)job->key + last * d, width, 0), k, d); /* what it appended */
    each[1] = apart(each[1], fetched((uint16_t *)job->value + last * d, width, 0), qkv + 2 * d, d);
    each[2] = JUDGE(k_first_linear, 1, row_of(de.x1, attended, &de.out, de.x0));
    send_half(1);
    settle();
    move(index, job->index, sizeof index, cudaMemcpyDeviceToHost);
    float *x = normed(fetched(de.x1, width, 1), norm, d);
    first_experts experts = { uploaded(x, d), (const uint16_t *)de.up.weights, NULL, (const uint16_t *)job->hidden, NULL, NULL, de.list, job->index,
                              job->gate_up_stride, 0, d, job->expert_dim, 0, d, job->expert_dim, d, job->expert_dim, TOP_K };
    for (int i = 0; i < TOP_K; i++) if (index[i] < 0 || index[i] >= EXPERTS) index[i] = 0; /* judge_router finds it out */
    each[3] = apart(judge_router(x, index, &each[4]), fetched(job->normed, width, 0), x, d);
    each[4] = fmax(each[4], JUDGE(k_first_hidden, TOP_K, experts));
    each[5] = judge_down(index);
    return worst_of(each, 6);
}
static double judge_head(float *judged) {
    const int d = de.job.d, rows = de.head.n;
    const float *x = normed(fetched(de.x0, (size_t)d, 1), fetched(de.end.norm, (size_t)d, 1), d), *logits = fetched(de.end.logits, (size_t)rows, 1);
    int32_t token;
    double each[2] = { JUDGE(k_first_linear, 1, row_of(de.end.logits, uploaded(x, d), &de.head, NULL)), 0.0 };
    move(&token, de.end.token, sizeof token, cudaMemcpyDeviceToHost);
    for (int i = 0; i < rows; i++) if (token < 0 || token >= rows || !(logits[i] <= logits[token])) each[1] = INFINITY;
    return worst_of(each, 2);
}
static void case_decode(void) {
    const int heads = f.tiny ? 2 : 16, d = 128 * heads, dim = f.tiny ? 160 : 1024, keys = de.keys = f.tiny ? 300 : 1922, last = keys - 1;
    int32_t slots[TOP_K];
    op o[2];
    memset(o, 0, sizeof o);
    open_queue(way_of("default"), 64, heads, 128);
    de.qkv = drawn_linear(1, 3 * d, d, 0);
    de.out = drawn_linear(1, d, d, 0);
    de.router = drawn_linear(1, EXPERTS, d, 1);
    de.up = drawn_linear(EXPERTS, 2 * dim, d, 0);
    de.down = drawn_linear(EXPERTS, d, dim, 0);
    de.head = drawn_linear(1, f.tiny ? 640 : 50304, d, 0);
    const float *norm = (const float *)drawn(1, d, d, 1.0f, 1);
    vk_heads shape = { heads, heads, 128, VK_NORM_WHOLE, 1e-5f, INFINITY, norm, norm, (const float *)drawn(keys, 128, 128, 1.0f, 1), 0, NULL, NULL };
    vk_decode_job job = { &de.qkv, &de.out, &de.router, &de.up, &de.down, (size_t)d * (size_t)dim * 4, (size_t)d * (size_t)dim * 2, norm, norm, NULL, NULL, 0, shape,
                          1e-5f, d, dim, TOP_K, 0, keys, keys, (int32_t *)room(4), (float *)room((size_t)d * 4), (float *)room((size_t)d * 12),
                          (float *)room((size_t)(VK_SPLITS * (d + 2 * heads)) * 4), (float *)room(EXPERTS * 4), (float *)room(TOP_K * 4), NULL,
                          drawn(keys, d, d, 1.0f, 0), drawn(keys, d, d, 1.0f, 0), NULL, NULL, room((size_t)d * 2), room((size_t)(TOP_K * dim) * 2),
                          (int32_t *)room(TOP_K * 4) };
    de.job = job;
    de.x0 = (float *)drawn(1, d, d, 1.0f, 1);
    de.x1 = (float *)room((size_t)d * 4);
    de.list = (int32_t *)room(sizeof slots);
    for (int i = 0; i < TOP_K; i++) slots[i] = i;
    move(de.list, slots, sizeof slots, cudaMemcpyHostToDevice);
    move((void *)(size_t)job.position, &last, sizeof last, cudaMemcpyHostToDevice);
    de.end.x = de.x0;
    de.end.norm = norm;
    de.end.eps = job.eps;
    de.end.head = &de.head;
    de.end.logits = (float *)room((size_t)de.head.n * 4);
    de.end.scratch = (float *)room(2 * VK_DECODE_BLOCKS * 4);
    de.end.token = (int32_t *)room(4);
    de.end.position = (int32_t *)room(4);
    move(de.end.position, &last, sizeof last, cudaMemcpyHostToDevice);
    for (int i = 0; i < 2; i++) {
        o[i].stage = "decode";
        o[i].way = "default";
        snprintf(o[i].shape, sizeof o[i].shape, i ? "1x%dx%d" : "%d keys", i ? de.head.n : keys, d);
        o[i].send = i ? send_head : send_block;
        o[i].reset = i ? NULL : reset_block;
        o[i].judge = i ? judge_head : judge_block;
        o[i].judged = heads + TOP_K;
        o[i].sets = 1; /* a block's weights and its cache are more than the second-level cache, and so is the head */
        o[i].out[0].at = i ? (void *)de.end.logits : (void *)job.x;
        o[i].out[0].bytes = (size_t)(i ? de.head.n : d) * 4;
        run_op(&o[i]);
    }
}
