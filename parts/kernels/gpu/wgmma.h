/* wgmma.h - products of the experts of routed tokens on Hopper (sm_90a), with VP_GPU_WGMMA: wgmma, TMA, mbarriers;
 * included by vlmprof_kernels.cu
 *
 * These do what other chips do by mma.sync (>>tiles). A block stays on its multiprocessor and walks tiles of 128 rows
 * by 256 columns. One warpgroup loads slices of both operands, 64 deep, into a ring of stages in shared memory. Two
 * others multiply 64 rows each, and store. The two sides synchronise by mbarriers: `full` (the slice is complete) and
 * `empty` (nothing reads it any more). Slices are as wgmma reads them: rows of 128 bytes, whose 16-byte vectors are at
 * index ^ (row & 7), in stages at multiples of 1024 bytes.
 *
 * One thread requests whole slices from TMA. TMA of this chip cannot fetch rows that are chosen by a list (the tokens
 * of an expert). The producers copy those by cp.async, with fence.proxy.async between the copies and wgmma.
 *
 * A row's sum does not depend on its tile, and there are no atomic additions: the same input gives the same bits. */
enum {
    VK_WIDE_COLUMNS = 256, VK_WIDE_DEPTH = 64, VK_WIDE_GROUP = 128, /* threads of a warpgroup */
    VK_WIDE_ROWS = 128, VK_WIDE_THREADS = 3 * VK_WIDE_GROUP, VK_WIDE_STAGES = 4,
    VK_WIDE_B_BYTES = VK_WIDE_COLUMNS * VK_WIDE_DEPTH * 2, VK_WIDE_A_BYTES = VK_WIDE_ROWS * VK_WIDE_DEPTH * 2,
    VK_WIDE_STAGE_BYTES = VK_WIDE_A_BYTES + VK_WIDE_B_BYTES,
    /* stages, their barriers, the list of copied rows, and padding to align the first stage */
    VK_WIDE_BYTES = VK_WIDE_STAGES * VK_WIDE_STAGE_BYTES + 128 + VK_WIDE_ROWS * 4 + 1024
};
#define VK_WIDE_LAG 2 /* slices of copied rows in flight */

/* ---- the instructions */
#ifdef CUDA_ON_CPU
#define VK_HAS_WGMMA 1
#define vk_barrier_init cuda_on_cpu_mbarrier_init
#define vk_barrier_arrive cuda_on_cpu_mbarrier_arrive
#define vk_barrier_expect cuda_on_cpu_mbarrier_expect
#define vk_barrier_wait cuda_on_cpu_mbarrier_wait
#define vk_barriers_ready() ((void)0)
#define vk_fence_async cuda_on_cpu_fence_proxy_async
#define vk_bulk cuda_on_cpu_bulk_3d
#define vk_shared_address cuda_on_cpu_wgmma_address
#define vk_wgmma(sums, a, b, onto) cuda_on_cpu_wgmma(&sums[0][0], a, b, onto)
#define vk_wgmma_fence cuda_on_cpu_wgmma_fence
#define vk_wgmma_commit cuda_on_cpu_wgmma_commit
#define vk_wgmma_wait cuda_on_cpu_wgmma_wait
#define VK_WGMMA_TIE(sums) ((void)0)
#define VK_MORE_REGISTERS(count) ((void)0)
#define VK_FEWER_REGISTERS(count) ((void)0)
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define VK_HAS_WGMMA 1
FN uint64_t vk_shared_address(const void *p) { return (uint64_t)__cvta_generic_to_shared(p); }
FN void vk_barrier_init(uint64_t *barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((unsigned)vk_shared_address(barrier)), "r"(count));
}
/* makes the initialised barriers visible to TMA */
FN void vk_barriers_ready(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
FN void vk_barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"((unsigned)vk_shared_address(barrier)) : "memory");
}
/* arrives, and makes the phase also wait for `bytes` of bulk copies */
FN void vk_barrier_expect(uint64_t *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"((unsigned)vk_shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}
/* Returns 1 if the phase of this parity is over; waits for it, but not long. */
FN unsigned vk_barrier_try(const uint64_t *barrier, unsigned parity) {
    unsigned is_over;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(is_over) : "r"((unsigned)vk_shared_address(barrier)), "r"(parity) : "memory");
    return is_over;
}
/* waits until it is over, at most VK_SPIN_LIMIT seconds; reads the clock only if it has to wait */
FN void vk_barrier_wait(const uint64_t *barrier, unsigned parity) {
    if (vk_barrier_try(barrier, parity)) return;
    const unsigned long long since = vk_spin_begin();
    while (!vk_barrier_try(barrier, parity)) vk_spin(since, parity, vk_shared_address(barrier));
}
FN void vk_fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
FN void vk_bulk(void *shared_to, const CUtensorMap *map, int x, int y, int z, uint64_t *barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"((unsigned)vk_shared_address(shared_to)),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"((unsigned)vk_shared_address(barrier))
                 : "memory");
}
FN void vk_wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FN void vk_wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define vk_wgmma_wait(groups) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory")
#define VK_MORE_REGISTERS(count) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count))
#define VK_FEWER_REGISTERS(count) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count))
#define VK_F4(i) "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
#define VK_F16(i) VK_F4(i), VK_F4(i + 1), VK_F4(i + 2), VK_F4(i + 3)
/* ties the sums to the wait before it, so that the compiler cannot move an access to them ahead of the wait */
#define VK_WGMMA_TIE(sums) \
    VK_UNROLL for (int i = 0; i < VK_WIDE_COLUMNS / 8; i++) asm volatile("" : VK_F4(i)::"memory")
/* sums [64][256] of a warpgroup = (onto: +=) a b; a, b: descriptors of 16 columns of A (64 rows) and B (256 rows) */
FN void vk_wgmma(float (*sums)[4], uint64_t a, uint64_t b, int onto) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,"
        "%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,"
        "%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,"
        "%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"
        "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},"
        "%128,%129,p,1,1,0,0;\n}"
        : VK_F16(0), VK_F16(4), VK_F16(8), VK_F16(12), VK_F16(16), VK_F16(20), VK_F16(24), VK_F16(28)
        : "l"(a), "l"(b), "r"(onto));
}
#endif

/* ---- arguments of launches, on all chips */
/* the tiles of a launch, with the lists of k_moe_lists: tiles, and each expert's first row */
typedef struct vk_wide_tiles {
    const int32_t *tiles, *start;
    int row_tiles, column_tiles, columns, steps;
} vk_wide_tiles;
/* rows of A chosen by a list */
typedef struct vk_chosen {
    const uint16_t *x;
    const int32_t *list;
    int ldx, top_k, k_padded;
} vk_chosen;

/* the destination of bf16 results: n columns */
typedef struct vk_wide_output {
    uint16_t *y;
    int ldy, n;
} vk_wide_output;

#ifdef VK_HAS_WGMMA
/* describes swizzled K-major rows of 128 bytes; 8 of them are 1024 bytes */
FN uint64_t vk_wide_descriptor(const void *rows) {
    return ((vk_shared_address(rows) & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32
           | (uint64_t)1 << 62;
}
/* one side's view of the ring */
typedef struct vk_ring {
    unsigned char *slices;
    uint64_t *full, *empty;
    int32_t *rows; /* indices in x of a tile's copied rows */
    int stage;
    unsigned phase;
} vk_ring;
FN unsigned char *vk_ring_slice(const vk_ring *ring) {
    return ring->slices + (size_t)ring->stage * VK_WIDE_STAGE_BYTES;
}
FN void vk_ring_next(vk_ring *ring) {
    if (++ring->stage < VK_WIDE_STAGES) return;
    ring->stage = 0;
    ring->phase ^= 1;
}
/* copied: the 128 producers also arrive at `full`, each for its rows */
FN vk_ring vk_ring_new(unsigned char *shared, int copied) {
    vk_ring ring;
    ring.slices = (unsigned char *)(((size_t)shared + 1023) & ~(size_t)1023);
    ring.full = (uint64_t *)(void *)(ring.slices + VK_WIDE_STAGES * VK_WIDE_STAGE_BYTES);
    ring.empty = ring.full + VK_WIDE_STAGES;
    ring.rows = (int32_t *)(void *)(ring.slices + VK_WIDE_STAGES * VK_WIDE_STAGE_BYTES + 128);
    ring.stage = 0;
    ring.phase = 0;
    if (TID == 0) {
        for (int i = 0; i < VK_WIDE_STAGES; i++) {
            vk_barrier_init(&ring.full[i], copied ? 1 + VK_WIDE_GROUP : 1);
            vk_barrier_init(&ring.empty[i], VK_WIDE_ROWS / 16); /* one arrival per warp */
        }
        vk_barriers_ready();
    }
    SYNC();
    return ring;
}
/* called when a warp has read the stage */
FN void vk_ring_free(const vk_ring *ring, int stage) {
    if (LANE0) vk_barrier_arrive(&ring->empty[stage]);
}
/* a block's tile: rows first .. first + rows - 1 of A (none if rows < 1) and 256 rows of B (of `expert`), starting at
 * `column` */
typedef struct vk_wide_tile { int first, rows, column, expert; } vk_wide_tile;
FN int vk_wide_count(const vk_wide_tiles *all) { return all->row_tiles * all->column_tiles; }
/* Sets tile `index`; returns 0 if it has no rows. */
FN int vk_wide_tile_at(const vk_wide_tiles *all, int index, vk_wide_tile *tile) {
    const int32_t *at = all->tiles + 2 * (index / all->column_tiles);
    tile->expert = at[0];
    tile->first = at[1];
    tile->rows = all->start[at[0] + 1] - at[1];
    tile->column = index % all->column_tiles * all->columns;
    if (tile->rows > VK_WIDE_ROWS) tile->rows = VK_WIDE_ROWS;
    return tile->rows > 0;
}
/* Loads one slice of B by TMA. gated: 128 gates, and the ups of the same columns, `gated` rows later. */
FN void vk_wide_bring_b(unsigned char *to, const CUtensorMap *b, const vk_wide_tile *tile, int from, int gated,
                        uint64_t *full) {
    vk_bulk(to, b, from, tile->column, tile->expert, full);
    vk_bulk(to + VK_WIDE_B_BYTES / 2, b, from, tile->column + (gated ? gated : 128), tile->expert, full);
}
/* the producer if A's rows are consecutive: one thread */
FN void vk_wide_bring(vk_ring ring, const vk_wide_tiles *all, const CUtensorMap *a, const CUtensorMap *b) {
    vk_wide_tile tile;
    for (int t = (int)BLK; t < vk_wide_count(all); t += (int)gridDim.x) {
        if (!vk_wide_tile_at(all, t, &tile)) continue;
        int groups = (tile.rows + 63) / 64;
        for (int s = 0; s < all->steps; s++) {
            unsigned char *slice = vk_ring_slice(&ring);
            vk_barrier_wait(&ring.empty[ring.stage], ring.phase ^ 1);
            vk_barrier_expect(&ring.full[ring.stage], (unsigned)(groups * VK_WIDE_A_BYTES / 2 + VK_WIDE_B_BYTES));
            for (int g = 0; g < groups; g++)
                vk_bulk(slice + g * VK_WIDE_A_BYTES / 2, a, s * VK_WIDE_DEPTH, tile.first + 64 * g, 0,
                        &ring.full[ring.stage]);
            vk_wide_bring_b(slice + VK_WIDE_A_BYTES, b, &tile, s * VK_WIDE_DEPTH, 0, &ring.full[ring.stage]);
            vk_ring_next(&ring);
        }
    }
}
/* this thread's rows of a slice: row TID / 8 + 16 j, vector TID % 8; zeros after k */
FN void vk_wide_copy(const vk_ring *ring, const vk_chosen *chosen, int rows, int from) {
    unsigned char *slice = vk_ring_slice(ring);
    int vector = TID & 7;
    VK_UNROLL for (int j = 0; j < VK_WIDE_ROWS / 16; j++) {
        int row = (TID >> 3) + 16 * j;
        unsigned char *to = slice + row * 128 + ((vector ^ (row & 7)) << 4);
        if (row >= rows) break;
        if (from + vector * 8 < chosen->k_padded)
            vk_copy_async(to, chosen->x + (size_t)ring->rows[row] * (size_t)chosen->ldx + (size_t)(from + vector * 8));
        else *(uint4 *)(void *)to = make_uint4(0, 0, 0, 0);
    }
    vk_copy_commit();
}
/* the producers if a list chooses A's rows: 128 threads. A slice is announced once VK_WIDE_LAG later ones are in
 * flight. */
FN void vk_wide_bring_chosen(vk_ring ring, const vk_wide_tiles *all, const vk_chosen *chosen, const CUtensorMap *b,
                             int gated) {
    vk_wide_tile tile;
    for (int t = (int)BLK; t < vk_wide_count(all); t += (int)gridDim.x) {
        vk_ring late = ring;
        if (!vk_wide_tile_at(all, t, &tile)) continue;
        __syncwarp(); /* this warp no longer needs the previous rows; each warp reads only rows that it wrote */
        for (int i = TID & 31; i < VK_WIDE_ROWS / 4; i += 32) {
            int row = (TID >> 5) * 4 + (i & 3) + 16 * (i >> 2);
            if (row < tile.rows) ring.rows[row] = chosen->list[tile.first + row] / chosen->top_k;
        }
        __syncwarp();
        for (int s = 0; s < all->steps + VK_WIDE_LAG; s++) {
            if (s < all->steps) {
                vk_barrier_wait(&ring.empty[ring.stage], ring.phase ^ 1);
                if (TID == 0) {
                    vk_barrier_expect(&ring.full[ring.stage], VK_WIDE_B_BYTES);
                    vk_wide_bring_b(vk_ring_slice(&ring) + VK_WIDE_A_BYTES, b, &tile, s * VK_WIDE_DEPTH, gated,
                                    &ring.full[ring.stage]);
                }
                vk_wide_copy(&ring, chosen, tile.rows, s * VK_WIDE_DEPTH);
                vk_ring_next(&ring);
            } else vk_copy_commit();
            if (s < VK_WIDE_LAG) continue;
            vk_copy_wait(VK_WIDE_LAG);
            vk_fence_async(); /* makes the copies visible to wgmma */
            vk_barrier_arrive(&late.full[late.stage]);
            vk_ring_next(&late);
        }
    }
}
/* a group without rows only releases the stages */
FN void vk_wide_pass(vk_ring *ring, int steps) {
    for (int s = 0; s < steps; s++) {
        vk_barrier_wait(&ring->full[ring->stage], ring->phase);
        vk_ring_free(ring, ring->stage);
        vk_ring_next(ring);
    }
}
/* A tile's sums of warpgroup `group`. In the loop, only wgmma uses the sums. */
FN void vk_wide_sums(vk_ring *ring, int steps, int group, float (*sums)[4]) {
    int before = -1;
    VK_UNROLL for (int i = 0; i < VK_WIDE_COLUMNS / 8; i++) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0.0f;
    for (int s = 0; s < steps; s++) {
        const unsigned char *slice = vk_ring_slice(ring);
        uint64_t a = vk_wide_descriptor(slice + group * VK_WIDE_A_BYTES / 2),
                 b = vk_wide_descriptor(slice + VK_WIDE_A_BYTES);
        vk_barrier_wait(&ring->full[ring->stage], ring->phase);
        vk_wgmma_fence();
        VK_UNROLL for (int k = 0; k < VK_WIDE_DEPTH / 16; k++) vk_wgmma(sums, a + 2 * k, b + 2 * k, 1);
        vk_wgmma_commit();
        vk_wgmma_wait(1); /* the previous slice has been read */
        VK_WGMMA_TIE(sums);
        if (before >= 0) vk_ring_free(ring, before);
        before = ring->stage;
        vk_ring_next(ring);
    }
    vk_wgmma_wait(0);
    VK_WGMMA_TIE(sums);
    vk_ring_free(ring, before);
}
/* Stores two neighbouring values of a row. CHECKED 0: both columns exist, in one aligned vector. */
template <int CHECKED>
FN void vk_wide_store(const vk_wide_output *to, size_t row, int column, float left, float right) {
    size_t at = row * (size_t)to->ldy + (size_t)column;
    if (!CHECKED || (column + 1 < to->n && !(at & 1))) *(uint32_t *)(void *)(to->y + at) = vk_pack2(left, right);
    else {
        if (column < to->n) to->y[at] = vk_f2b(left);
        if (column + 1 < to->n) to->y[at + 1] = vk_f2b(right);
    }
}
/* Returns 1 if all `columns` columns from `first` exist, and each pair of them is in one aligned vector. */
FN int vk_wide_is_whole(const vk_wide_output *to, int first, int columns) {
    return first + columns <= to->n && !(to->ldy & 1);
}
/* the loop of a multiplying warpgroup over the tiles; `store` stores a tile's sums */
#define VK_WIDE_MULTIPLY(store) \
    do { \
        for (int t = (int)BLK; t < vk_wide_count(all); t += (int)gridDim.x) { \
            float sums[VK_WIDE_COLUMNS / 8][4]; \
            if (!vk_wide_tile_at(all, t, &tile)) continue; \
            if (tile.rows <= group * 64) { vk_wide_pass(&ring, all->steps); continue; } \
            vk_wide_sums(&ring, all->steps, group, sums); \
            store; \
        } \
    } while (0)
/* hidden bf16 [pairs, ldy] = silu(gate) * up */
template <int CHECKED>
FN void vk_wide_gate_up_store(const vk_wide_output *to, const vk_wide_tile *tile, int group, float (*sums)[4]) {
    int lane = TID & 31, row = group * 64 + (TID >> 5 & 3) * 16 + (lane >> 2);
    VK_UNROLL for (int half = 0; half < 2; half++, row += 8) {
        if (row >= tile->rows) continue;
        VK_UNROLL for (int i = 0; i < VK_WIDE_COLUMNS / 16; i++) {
            const float *gate = sums[i] + 2 * half, *up = sums[i + VK_WIDE_COLUMNS / 16] + 2 * half;
            vk_wide_store<CHECKED>(to, (size_t)(tile->first + row), tile->column + i * 8 + (lane & 3) * 2,
                                   vk_silu(gate[0]) * up[0], vk_silu(gate[1]) * up[1]);
        }
    }
}
/* y bf16 [pairs, ldy] = share[list[row]] * sums */
template <int CHECKED>
FN void vk_wide_down_store(const vk_wide_output *to, const vk_wide_tile *tile, const int32_t *list, const float *share,
                           int group, float (*sums)[4]) {
    int lane = TID & 31, row = group * 64 + (TID >> 5 & 3) * 16 + (lane >> 2);
    VK_UNROLL for (int half = 0; half < 2; half++, row += 8) {
        if (row >= tile->rows) continue;
        float weight = share[list[tile->first + row]];
        VK_UNROLL for (int i = 0; i < VK_WIDE_COLUMNS / 8; i++)
            vk_wide_store<CHECKED>(to, (size_t)(tile->first + row), tile->column + i * 8 + (lane & 3) * 2,
                                   weight * sums[i][2 * half], weight * sums[i][2 * half + 1]);
    }
}
FN void vk_wide_gate_up_block(const vk_wide_tiles *all, const vk_chosen *chosen, const CUtensorMap *b,
                              const vk_wide_output *to) {
    CUDA_DYNAMIC_SHARED(unsigned char, shared);
    vk_ring ring = vk_ring_new(shared, 1);
    int group = __shfl_sync(~0u, TID / VK_WIDE_GROUP, 0) - 1;
    vk_wide_tile tile;
    if (group < 0) {
        VK_FEWER_REGISTERS(40);
        vk_wide_bring_chosen(ring, all, chosen, b, to->n);
    } else {
        VK_MORE_REGISTERS(232);
        VK_WIDE_MULTIPLY(if (vk_wide_is_whole(to, tile.column, VK_WIDE_COLUMNS / 2))
                             vk_wide_gate_up_store<0>(to, &tile, group, sums);
                         else vk_wide_gate_up_store<1>(to, &tile, group, sums));
    }
}
FN void vk_wide_down_block(const vk_wide_tiles *all, const CUtensorMap *a, const CUtensorMap *b,
                           const vk_wide_output *to, const int32_t *list, const float *share) {
    CUDA_DYNAMIC_SHARED(unsigned char, shared);
    vk_ring ring = vk_ring_new(shared, 0);
    int group = __shfl_sync(~0u, TID / VK_WIDE_GROUP, 0) - 1;
    vk_wide_tile tile;
    if (group < 0) {
        VK_FEWER_REGISTERS(32);
        if (TID == 0) vk_wide_bring(ring, all, a, b);
    } else {
        VK_MORE_REGISTERS(232);
        VK_WIDE_MULTIPLY(if (vk_wide_is_whole(to, tile.column, VK_WIDE_COLUMNS))
                             vk_wide_down_store<0>(to, &tile, list, share, group, sums);
                         else vk_wide_down_store<1>(to, &tile, list, share, group, sums));
    }
}
#define VK_WIDE_BODY(call) call
#else
#define VK_WIDE_BODY(call) __trap()
#endif
/* Tiles of 192 rows would need 512 threads with 128 sums each: more registers than a thread of such a kernel can
 * have. Chips other than sm_90a never launch these, so there they have no body. */
KERNEL_OF(VK_WIDE_THREADS, 1, k_gate_up_wgmma128, const vk_wide_tiles all, const vk_chosen chosen,
          const __grid_constant__ CUtensorMap b, const vk_wide_output to) {
    (void)all; (void)chosen; (void)b; (void)to;
    VK_WIDE_BODY(vk_wide_gate_up_block(&all, &chosen, &b, &to));
}
KERNEL_OF(VK_WIDE_THREADS, 1, k_down_wgmma128, const vk_wide_tiles all, const __grid_constant__ CUtensorMap a,
          const __grid_constant__ CUtensorMap b, const vk_wide_output to, const int32_t *list, const float *share) {
    (void)all; (void)a; (void)b; (void)to; (void)list; (void)share;
    VK_WIDE_BODY(vk_wide_down_block(&all, &a, &b, &to, list, share));
}
