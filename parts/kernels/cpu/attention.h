/* attention.h - attention over many queries on the CPU, part of section >>attention in vlmprof_kernels.cu
 *
 * softmax(q k^T * scale) v in one pass over the keys, with the tiles of the GEMM. K of a head is packed like weights
 * [keys, head_dim], V like weights [head_dim, keys]. A task is a strip of queries of one head. It processes the keys in
 * blocks whose scores stay in the caches. When a block has a larger score than the maximum so far, the running sum and
 * results are rescaled (online softmax). */
#ifndef VK_CPU_ATTENTION_H
#define VK_CPU_ATTENTION_H

/* ---- packing */
static size_t vk_attention_panel_elements(int tokens, int heads, int head_dim) {
    return (size_t)heads * vk_round_up((size_t)tokens, VK_PAD) * vk_round_up((size_t)head_dim, VK_PAD);
}
/* packs a panel of K: 32 interleaved keys, as words of two bf16 or one f32. Keys after the first `live`, and words
 * after the head's bytes, are 0. */
static VK_CLONES void vk_pack_keys(uint32_t *panel, const char *keys, size_t key_bytes, int live, int bytes,
                                   int words) {
    for (int j = 0; j < words; j++, panel += VK_PAD) {
        size_t left = 4 * j < bytes ? (size_t)(bytes - 4 * j) : 0;
        if (left < 4 || live < VK_PAD) memset(panel, 0, VK_PAD * sizeof *panel);
        if (left >= 4) EACH(c, live) memcpy(&panel[c], keys + (size_t)c * key_bytes + 4 * (size_t)j, 4);
        else for (int c = 0; left && c < live; c++)
            memcpy(&panel[c], keys + (size_t)c * key_bytes + 4 * (size_t)j, left);
    }
}
/* packs 32 keys of a panel of V, 32 columns wide; in bf16, pairs of keys are interleaved */
static VK_CLONES void vk_pack_values(void *panel, const char *values, size_t key_bytes, int live, int columns,
                                     int wide) {
    const size_t bytes = (size_t)columns * (wide ? 4 : 2);
    for (int j = 0; wide && j < VK_PAD; j++) {
        float *row = (float *)panel + (size_t)j * VK_PAD;
        memset(row, 0, VK_PAD * sizeof *row);
        if (j < live) memcpy(row, values + (size_t)j * key_bytes, bytes);
    }
    for (int j = 0; !wide && j < VK_PAD; j += 2) {
        uint32_t *pairs = (uint32_t *)panel + (size_t)j / 2 * VK_PAD;
        uint16_t even[VK_PAD] = {0}, odd[VK_PAD] = {0};
        if (j < live) memcpy(even, values + (size_t)j * key_bytes, bytes);
        if (j + 1 < live) memcpy(odd, values + (size_t)(j + 1) * key_bytes, bytes);
        EACH(c, VK_PAD) pairs[c] = (uint32_t)even[c] | (uint32_t)odd[c] << 16;
    }
}
/* packs 32 keys of one head, starting at key `first` */
static void vk_attention_pack(const vk_cpu *cpu, const vk_attention_job *job, int head, int first) {
    size_t element = cpu->wide ? 4 : 2, keys = vk_round_up((size_t)job->tokens, VK_PAD),
           width = vk_round_up((size_t)job->head_dim, VK_PAD), row_bytes = (size_t)job->ldk * element,
           at = (size_t)first * row_bytes + (size_t)head * (size_t)job->head_dim * element;
    char *k_panel = (char *)cpu->k_panels + ((size_t)head * keys + (size_t)first) * width * element,
         *v_panels = (char *)cpu->v_panels + (size_t)head * keys * width * element;
    int live = job->tokens - first < VK_PAD ? job->tokens - first : VK_PAD;
    vk_pack_keys((uint32_t *)(void *)k_panel, (const char *)job->k + at, row_bytes, live, job->head_dim * (int)element,
                 (int)(width * element / 4));
    for (int c = 0; c < job->head_dim; c += VK_PAD)
        vk_pack_values(v_panels + ((size_t)c * keys + (size_t)first * VK_PAD) * element,
                       (const char *)job->v + at + (size_t)c * element, row_bytes, live,
                       job->head_dim - c < VK_PAD ? job->head_dim - c : VK_PAD, cpu->wide);
}

/* ---- a strip. A thread's scratch: scores of this block and the next, weights of this one, and the results so far, in
 * tiles of 32 x 32. */
typedef struct vk_attend_room { float *scores[2], *sums; char *weights, *queries; } vk_attend_room;
static size_t vk_attend_bytes(size_t head_dim, int wide) {
    const size_t element = wide ? 4 : 2;
    return VK_ROWS_MAX * (VK_ATTEND_KEYS * (8 + element) + (4 + element) * vk_round_up(head_dim, VK_PAD));
}
static vk_attend_room vk_attend_room_of(const vk_cpu *cpu, size_t width, int thread) {
    vk_attend_room room;
    char *at = (char *)cpu->attend + (size_t)thread * cpu->attend_bytes;
    room.scores[0] = (float *)(void *)at;
    room.scores[1] = room.scores[0] + VK_ROWS_MAX * VK_ATTEND_KEYS;
    room.weights = at + VK_ROWS_MAX * VK_ATTEND_KEYS * 8;
    room.sums = (float *)(void *)(room.weights + VK_ROWS_MAX * VK_ATTEND_KEYS * (cpu->wide ? 4 : 2));
    room.queries = (char *)(room.sums + VK_ROWS_MAX * width);
    return room;
}
/* packs a strip of queries as [32, width], because rows several kB apart would compete for too few cache lines */
static void vk_attend_queries(char *to, const char *q, size_t row_bytes, size_t head_bytes, size_t width_bytes,
                              int rows) {
    if (head_bytes < width_bytes || rows < VK_ROWS_MAX) memset(to, 0, VK_ROWS_MAX * width_bytes);
    for (int r = 0; r < rows; r++) memcpy(to + (size_t)r * width_bytes, q + (size_t)r * row_bytes, head_bytes);
}
static VK_CLONES void vk_attend_add(float *sums, const float *add, const float *before, int rows, int first) {
    for (int r = 0; r < rows; r++) {
        float scale = before[r];
        if (first) EACH(i, VK_PAD) sums[r * VK_PAD + i] = add[r * VK_PAD + i];
        else EACH(i, VK_PAD) sums[r * VK_PAD + i] = sums[r * VK_PAD + i] * scale + add[r * VK_PAD + i];
    }
}
static VK_CLONES void vk_attend_store(void *y, size_t at, int ld, const float *sums, const vk_met *met, int rows,
                                      int columns, int wide) {
    for (int r = 0; r < rows; r++, at += (size_t)ld) {
        float inverse = 1.0f / met->sum[r];
        EACH(i, columns) vk_put(y, at + (size_t)i, sums[r * VK_PAD + i] * inverse, wide);
    }
}
/* the end of the keys that query `row` sees */
static int vk_attend_end(const vk_attention_job *job, int row) {
    return job->reach ? job->reach[row] : job->causal ? row + 1 : job->tokens;
}
/* how many keys of a block each query sees; those before its window get a score that counts for nothing */
static void vk_attend_live(const vk_attention_job *job, vk_met *met, float *scores, int row, int rows, int first,
                           int count) {
    for (int r = 0; r < rows; r++) {
        int end = vk_attend_end(job, row + r) - first, live = end < count ? end : count,
            hidden = VK_GONE(job->gone, job->window, row + r) - first; /* keys that have left the window */
        if (hidden >= live) live = 0;
        for (int j = 0; live > 0 && j < hidden; j++)
            scores[j / VK_PAD * VK_ROWS_MAX * VK_PAD + r * VK_PAD + j % VK_PAD] = -3e38f;
        met->live[r] = live < 0 ? 0 : live;
    }
}
/* scores of the strip's queries and `count` keys; the kernel may do the softmax of the block before meanwhile */
static void vk_attend_scores(const vk_gemm_kernel *kernel, int wide, float *scores, const void *queries, size_t width,
                             const char *k_panels, int rows, int count, vk_softening *softening) {
    const size_t panel_bytes = VK_PAD * width * (wide ? 4 : 2);
    if (!wide && kernel->scores) kernel->scores(scores, queries, width, k_panels, count, softening);
    else for (int j = 0; j < count; j += VK_PAD, k_panels += panel_bytes)
        (wide ? kernel->tile_wide : kernel->tile)(scores + j * VK_ROWS_MAX, queries, width, k_panels, width, rows);
}
static void vk_attention_task(const vk_cpu *cpu, const vk_attention_job *job, int head, int row, int rows, int thread) {
    const vk_gemm_kernel *kernel = cpu->gemm[cpu->wide][VK_SHAPES - 1];
    const size_t element = cpu->wide ? 4 : 2, column = (size_t)head * (size_t)job->head_dim,
                 keys = vk_round_up((size_t)job->tokens, VK_PAD), width = vk_round_up((size_t)job->head_dim, VK_PAD),
                 panels = (size_t)(head / (job->heads / job->kv_heads)) * keys * width * element;
    const char *k_panels = (const char *)cpu->k_panels + panels, *v_panels = (const char *)cpu->v_panels + panels;
    const vk_attend_room room = vk_attend_room_of(cpu, width, thread);
    vk_met met;
    vk_softening softening = {cpu->wide ? vk_soften_f32 : kernel->soften, &met, room.weights, NULL, 0, 0, 0,
                              1.44269504f / sqrtf((float)job->head_dim)};
    float add[VK_ROWS_MAX * VK_PAD];
    int seen = 0;
    for (int r = 0; r < VK_ROWS_MAX; r++) { met.most[r] = -3e38f; met.sum[r] = 0.0f; met.live[r] = 0; }
    for (int r = 0; r < rows; r++) if (vk_attend_end(job, row + r) > seen) seen = vk_attend_end(job, row + r);
    vk_attend_queries(room.queries, (const char *)job->q + ((size_t)row * (size_t)job->ldq + column) * element,
                      (size_t)job->ldq * element, (size_t)job->head_dim * element, width * element, rows);
    /* a turn: scores of the next block, softmax and values of this one; in the first there is no block yet */
    for (int first = -VK_ATTEND_KEYS, count = 0, turn = 1; first < seen; first += VK_ATTEND_KEYS, turn ^= 1) {
        const int next = first + VK_ATTEND_KEYS, left = seen - next;
        if (left > 0)
            vk_attend_scores(kernel, cpu->wide, room.scores[!turn], room.queries, width,
                             k_panels + (size_t)next * width * element, rows,
                             left < VK_ATTEND_KEYS ? left : VK_ATTEND_KEYS, &softening);
        while (softening.row < softening.rows) vk_soften_next(&softening);
        for (int c = 0; first >= 0 && c < job->head_dim; c += VK_PAD) {
            (cpu->wide ? kernel->tile_wide : kernel->tile)(
                add, room.weights, VK_ATTEND_KEYS, v_panels + ((size_t)c * keys + (size_t)first * VK_PAD) * element,
                (size_t)softening.keys, rows);
            vk_attend_add(room.sums + c * VK_ROWS_MAX, add, met.before, rows, first == 0);
        }
        if (left <= 0) break;
        count = left < VK_ATTEND_KEYS ? left : VK_ATTEND_KEYS;
        vk_attend_live(job, &met, room.scores[!turn], row, rows, next, count);
        softening.scores = room.scores[!turn];
        softening.row = 0;
        softening.rows = rows;
        softening.keys = (int)vk_round_up((size_t)count, VK_PAD);
    }
    for (int c = 0; c < job->head_dim; c += VK_PAD)
        vk_attend_store(job->y, (size_t)row * (size_t)job->ldy + column + (size_t)c, job->ldy,
                        room.sums + c * VK_ROWS_MAX, &met, rows,
                        job->head_dim - c < VK_PAD ? job->head_dim - c : VK_PAD, cpu->wide);
}
/* One sequence. The last strip also takes the remaining rows if they are too few for another strip. */
typedef struct vk_attention_list {
    const vk_cpu *cpu;
    const vk_attention_job *job;
    int rows, strips, chunks; /* queries per strip; strips, and chunks of 32 keys, per head */
} vk_attention_list;
static void vk_attention_pack_share(const void *context, int64_t task, int thread) {
    const vk_attention_list *list = (const vk_attention_list *)context;
    (void)thread;
    vk_attention_pack(list->cpu, list->job, (int)(task / list->chunks), (int)(task % list->chunks) * VK_PAD);
}
static void vk_attention_share(const void *context, int64_t task, int thread) {
    const vk_attention_list *list = (const vk_attention_list *)context;
    int strip = (int)(task % list->strips), row = strip * list->rows;
    vk_attention_task(list->cpu, list->job, (int)(task / list->strips), row,
                      strip + 1 < list->strips ? list->rows : list->job->tokens - row, thread);
}
static void vk_attention_run(const vk_cpu *cpu, const vk_attention_job *job) {
    vk_attention_list list;
    list.cpu = cpu; list.job = job;
    list.rows = cpu->gemm[cpu->wide][VK_SHAPES - 1]->strip;
    int rest = job->tokens % list.rows;
    list.strips =
        vk_divide_up(job->tokens, list.rows) - (rest && list.rows + rest <= VK_ROWS_MAX && job->tokens > rest);
    list.chunks = vk_divide_up(job->tokens, VK_PAD);
    vk_share(cpu, (int64_t)list.chunks * job->kv_heads, 1, vk_attention_pack_share, &list);
    vk_share(cpu, (int64_t)list.strips * job->heads, 1, vk_attention_share, &list);
}
#endif
