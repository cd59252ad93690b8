/* team.h - the CPU's threads and how they share work, part of vlmprof_kernels.cu
 *
 * A parallel loop over tasks opens its own OpenMP region. Within vk_team_together, which a decode step uses, the region
 * is already open and its threads wait for loops: first spinning, then asleep. The calling thread never waits for a
 * thread that has not begun: on a busy machine it does the work itself. */
#ifndef VK_CPU_TEAM_H
#define VK_CPU_TEAM_H

typedef void (*vk_task)(const void *context, int64_t task, int thread);

/* Threads wait on `state`: the number of the loop, whether it is open, and how many threads work on it */
enum {
    VK_TEAM_LOOP = 1 << 16,
    VK_TEAM_OPEN = 1 << 15,
    VK_TEAM_COUNT = VK_TEAM_OPEN - 1,
    VK_TEAM_SPINS = 4000,
    VK_TEAM_RANGES = 32
};
/* Each thread has a range of tasks and takes them in order, so it reads memory without gaps. This is 10-15 % faster
 * than scattered tasks. A thread that finishes continues with the next thread's range. */
typedef struct vk_team_range { int64_t next, end; char apart[48]; } vk_team_range;
typedef struct vk_team {
    const vk_queue *queue; /* its spans are recorded */
    vk_task work;
    const void *context;
    int closed, ranges;
    char apart[64]; /* keeps the following on separate cache lines */
    uint32_t state, sleepers;
    char far_apart[64];
    vk_team_range range[VK_TEAM_RANGES];
} vk_team;

#ifdef _OPENMP
static int vk_team_thread(void) { return omp_get_thread_num(); }
/* Returns 1 outside parallel regions. */
static int vk_alone(void) { return !omp_in_parallel(); }
/* Returns 1 if several threads work on this loop. */
static int vk_team_shared(void) { return omp_in_parallel() && omp_get_level() == 1; }
static void vk_team_sleep(vk_team *team, uint32_t seen) {
    __atomic_add_fetch(&team->sleepers, 1u, __ATOMIC_SEQ_CST);
#if defined(__linux__)
    syscall(SYS_futex, &team->state, 128, seen, NULL, NULL, 0); /* 128: FUTEX_WAIT within this process */
#else
    (void)seen;
    usleep(50);
#endif
    __atomic_sub_fetch(&team->sleepers, 1u, __ATOMIC_SEQ_CST);
}
static void vk_team_wake(vk_team *team) {
#if defined(__linux__)
    if (__atomic_load_n(&team->sleepers, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &team->state, 129, INT32_MAX, NULL, NULL, 0); /* FUTEX_WAKE */
#else
    (void)team;
#endif
}
/* one round of waiting for a state other than `seen` */
static void vk_team_wait(vk_team *team, uint32_t seen, int *spins) {
    if (++*spins > VK_TEAM_SPINS) {
        vk_team_sleep(team, seen);
        return;
    }
#ifdef VK_X86
    __builtin_ia32_pause();
#endif
}
static void vk_team_split(vk_team_range *range, int ranges, int64_t tasks) {
    for (int i = 0; i < ranges; i++) {
        range[i].next = tasks * i / ranges;
        range[i].end = tasks * (i + 1) / ranges;
    }
}
/* the next task of a range, or -1 */
static int64_t vk_team_take(vk_team_range *range) {
    int64_t task = __atomic_load_n(&range->next, __ATOMIC_RELAXED);
    if (task < range->end) task = __atomic_fetch_add(&range->next, 1, __ATOMIC_RELAXED);
    return task < range->end ? task : -1;
}
/* runs tasks of this thread's range, then of the others'; returns whether there were any */
static int vk_team_work(vk_team_range *ranges, int count, vk_task work, const void *context, int thread) {
    int worked = 0;
    for (int i = 0; i < count; i++) {
        vk_team_range *range = &ranges[(thread + i) % count];
        for (int64_t task = vk_team_take(range); task >= 0; task = vk_team_take(range), worked = 1)
            work(context, task, thread);
    }
    return worked;
}
static void vk_team_tasks(vk_team *team, int thread) {
    int64_t since = vk_span_begin(team->queue);
    if (vk_team_work(team->range, team->ranges, team->work, team->context, thread)) vk_span_end(team->queue, since);
}
/* the loop of all threads except the calling thread, until the region ends */
static void vk_team_serve(vk_team *team, int thread) {
    uint32_t last = 0;
    int spins = 0;
    for (;;) {
        uint32_t seen = __atomic_load_n(&team->state, __ATOMIC_SEQ_CST);
        if (seen / VK_TEAM_LOOP == last) {
            vk_team_wait(team, seen, &spins);
            continue;
        }
        if (seen & VK_TEAM_OPEN) {
            if (!__atomic_compare_exchange_n(&team->state, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                continue;
            if (team->closed) return;
            vk_team_tasks(team, thread);
            if (!(__atomic_sub_fetch(&team->state, 1u, __ATOMIC_SEQ_CST) & (VK_TEAM_OPEN | VK_TEAM_COUNT)))
                vk_team_wake(team);
        }
        last = seen / VK_TEAM_LOOP;
        spins = 0;
    }
}
static void vk_team_open(vk_team *team) {
    uint32_t loop = __atomic_load_n(&team->state, __ATOMIC_SEQ_CST) / VK_TEAM_LOOP + 1;
    if (!(loop & (UINT32_MAX / VK_TEAM_LOOP))) loop = 1; /* 0 means not seen yet */
    __atomic_store_n(&team->state, loop * VK_TEAM_LOOP | VK_TEAM_OPEN, __ATOMIC_SEQ_CST);
    vk_team_wake(team);
}
static void vk_team_loop(vk_team *team, int threads, int64_t tasks, vk_task work, const void *context) {
    int spins = 0;
    if (threads < 2 || tasks < 2) {
        for (int64_t task = 0; task < tasks; task++) work(context, task, 0);
        return;
    }
    team->work = work;
    team->context = context;
    team->ranges = threads < VK_TEAM_RANGES ? threads : VK_TEAM_RANGES;
    vk_team_split(team->range, team->ranges, tasks);
    vk_team_open(team);
    vk_team_tasks(team, 0);
    uint32_t seen = __atomic_and_fetch(&team->state, ~(uint32_t)VK_TEAM_OPEN, __ATOMIC_SEQ_CST);
    while (seen & VK_TEAM_COUNT) {
        vk_team_wait(team, seen, &spins);
        seen = __atomic_load_n(&team->state, __ATOMIC_SEQ_CST);
    }
}
/* The calling thread runs `work`, and the others join its loops. Each thread calls `begin` first and `end` last (either
 * may be NULL). */
static void vk_team_together(vk_team **slot, const vk_queue *queue, void (*begin)(void), void (*end)(void),
                             void (*work)(void *), void *context) {
    vk_team team;
    memset(&team, 0, sizeof team);
    team.queue = queue;
    *slot = &team;
    VK_PRAGMA(omp parallel num_threads(queue->threads)) {
        if (begin) begin();
        if (omp_get_thread_num() == 0) {
            work(context);
            team.closed = 1;
            vk_team_open(&team);
        } else vk_team_serve(&team, omp_get_thread_num());
        if (end) end();
    }
    *slot = NULL;
}
#else
static int vk_team_thread(void) { return 0; }
#endif
#endif
