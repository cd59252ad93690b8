/* cooperative_on_cpu.h - cooperative launches of the emulated GPU; included by cuda_on_cpu.h
 *
 * All blocks are there at once and take turns of a drawn length. A block sees what another one wrote only if that one released it and this one
 * acquired it after that (PTX's causality order): each block has a vector clock, each place the block and the time of its last write. Until it
 * is ordered so, the place is NaN in the reader's turns (-1 as an integer). Two blocks that write one place without an order between them are
 * reported. Places are 2 bytes. Atomic operations always meet the true value; they order nothing but where they say so:
 *   cuda_on_cpu_add(p, v, release)   atomicAdd, with red.release.gpu's order or without
 *   cuda_on_cpu_load(p, acquire)     ld.acquire.gpu or ld.relaxed.gpu; others run before it, so it may be called in a loop
 * Not seen: a write of what was there, host memory that was shared, __threadfence (it orders nothing here), cp.async and TMA (refused). */
namespace cuda_on_cpu {
typedef std::vector<uint32_t> Clock; /* by block */
inline void join(Clock &to, const Clock &from) {
    for (size_t i = 0; i < to.size(); i++) to[i] = from[i] > to[i] ? from[i] : to[i];
}
enum : uint16_t { NO_WRITER = 0, ATOMIC = 0xffff };
enum { PLACES = PAGE / 2 };
struct Written { uint16_t real[PLACES], writer[PLACES]; uint32_t time[PLACES]; }; /* a page of device memory; writer: block + 1 */
struct Resident { /* a block while others run */
    std::vector<Lane> lanes;
    std::vector<Warp> warps;
    Block block;
    std::vector<unsigned char> fixed, dynamic;
    Clock clock;
    unsigned releases;
};
struct Cooperative {
    bool next = false; /* the next launch is one */
    bool now = false;  /* the kernel that runs is one */
    size_t me = 0, polls = 0;
    std::vector<Resident> blocks;
    std::map<unsigned char *, std::unique_ptr<Written>> pages;
    std::map<unsigned char *, std::vector<unsigned char>> touched; /* pages that this turn wrote, before it */
    std::map<const void *, Clock> released;                        /* by atomics */
};
inline Cooperative cooperative;

/* memcpy, but over the redzones that g++ -fsanitize-sections=cuda_shared puts between the arrays, and those between what is in one page */
inline void move_shared(unsigned char *to, const unsigned char *from, size_t bytes) {
#if defined(CUDA_ON_CPU_ASAN) && defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    if (bytes) memcpy(to, from, bytes);
#endif
}
/* what takes pages as a whole */
#define CUDA_ON_CPU_PAGES __attribute__((no_sanitize("address")))
inline void protect_page(unsigned char *page, bool writable) {
    if (mprotect(page, PAGE, writable ? PROT_READ | PROT_WRITE : PROT_READ)) fail("mprotect failed");
}
bool begin_watched_write(unsigned char *page); /* dependent_on_cpu.h */
/* a write into device memory that the processor stopped: the first one of this turn to the page, or the first one of the kernel */
inline bool begin_write(unsigned char *p) {
    unsigned char *page = p - (uintptr_t)p % PAGE;
    const bool is_watched = begin_watched_write(page);
    if (!cooperative.now) return is_watched;
    if (cooperative.touched.count(page)) return false;
    std::vector<unsigned char> &was = cooperative.touched[page];
    was.resize(PAGE);
    move_shared(was.data(), page, PAGE);
    protect_page(page, true);
    return true;
}
/* what this turn has written gets its writer and its time */
CUDA_ON_CPU_PAGES inline void collect() {
    Cooperative &c = cooperative;
    Clock &mine = c.blocks[c.me].clock;
    for (auto &t : c.touched) {
        std::unique_ptr<Written> &w = c.pages[t.first];
        const uint16_t *was = (const uint16_t *)(const void *)t.second.data(), *now = (const uint16_t *)(const void *)t.first;
        if (!w) { w.reset(new Written()); memcpy(w->real, was, PAGE); }
        for (size_t i = 0; i < PLACES; i++) {
            uint16_t by = w->writer[i];
            if (was[i] == now[i]) continue;
            w->real[i] = now[i];
            if (by == ATOMIC) continue;
            if (by && by != c.me + 1 && mine[by - 1u] < w->time[i])
                fail("blocks %u and %u write the same place, and nothing orders them", (unsigned)by - 1, (unsigned)c.me);
            w->writer[i] = (uint16_t)(c.me + 1);
            w->time[i] = mine[c.me];
        }
        protect_page(t.first, false);
    }
    c.touched.clear();
}
/* memory as the block sees it, or unchanged */
CUDA_ON_CPU_PAGES inline void look(const Clock *clock, size_t block_index) {
    for (auto &p : cooperative.pages) {
        uint16_t *now = (uint16_t *)(void *)p.first;
        const Written &w = *p.second;
        protect_page(p.first, true);
        for (size_t i = 0; i < PLACES; i++) {
            uint16_t by = w.writer[i];
            if (by == NO_WRITER) continue;
            now[i] = !clock || by == ATOMIC || by == block_index + 1 || (*clock)[by - 1u] >= w.time[i] ? w.real[i] : (uint16_t)0xffff;
        }
        protect_page(p.first, false);
    }
}
/* the place belongs to atomics from now on */
inline void make_atomic(void *p, size_t bytes) {
    if (!cooperative.now) return;
    unsigned char *at = (unsigned char *)p, *page = at - (uintptr_t)at % PAGE;
    collect();
    std::unique_ptr<Written> &w = cooperative.pages[page];
    if (!w) { w.reset(new Written()); move_shared((unsigned char *)w->real, page, PAGE); }
    for (size_t i = (size_t)(at - page) / 2; i < ((size_t)(at - page) + bytes) / 2; i++) {
        if (w->writer[i] == ATOMIC) continue;
        if (w->writer[i]) fail("an atomic operation where a block wrote without one");
        w->writer[i] = ATOMIC;
    }
}
inline bool planted(const char *fault) {
    const Settings &s = state().settings;
    return cooperative.now && s.planted_at && cooperative.blocks[cooperative.me].releases == s.planted_at && s.planted == fault;
}
inline void release_to(const void *p) {
    Cooperative &c = cooperative;
    if (!c.now) return;
    c.blocks[c.me].releases++;
    if (planted("release")) return;
    Clock &mine = c.blocks[c.me].clock, &of_place = c.released[p];
    collect();
    of_place.resize(mine.size());
    join(of_place, mine);
    mine[c.me]++;
}
inline void acquire_from(const void *p) {
    Cooperative &c = cooperative;
    auto of_place = c.released.find(p);
    if (!c.now || of_place == c.released.end()) return;
    collect();
    join(c.blocks[c.me].clock, of_place->second);
    look(&c.blocks[c.me].clock, c.me);
}
/* the running lane goes on in another turn of its block */
inline void poll() {
    cooperative.polls++;
    running.warp->at_poll |= (uint32_t)1 << running.number;
    leave();
}
inline bool end_polls() {
    bool any = false;
    for (unsigned i = 0; i < block.warps; i++) {
        Warp &w = warps[i];
        if (!w.at_poll) continue;
        any = true;
        w.ready |= w.at_poll;
        w.at_poll = 0;
        block.ready_warps |= (uint32_t)1 << i;
    }
    return any;
}
inline void exchange_block(Resident &r) {
    for (unsigned i = 0; i < block.threads; i++) std::swap(lanes[i], r.lanes[i]);
    for (unsigned i = 0; i < block.warps; i++) std::swap(warps[i], r.warps[i]);
    std::swap(block, r.block);
}
inline void enter_turn(size_t index) {
    Resident &r = cooperative.blocks[index];
    cooperative.me = index;
    exchange_block(r);
    move_shared((unsigned char *)cuda_shared_begin, r.fixed.data(), r.fixed.size());
    if (!r.dynamic.empty()) memcpy(block.shared, r.dynamic.data(), r.dynamic.size());
    look(&r.clock, index);
}
inline void leave_turn() {
    Resident &r = cooperative.blocks[cooperative.me];
    collect();
    move_shared(r.fixed.data(), (unsigned char *)cuda_shared_begin, r.fixed.size());
    if (!r.dynamic.empty()) memcpy(r.dynamic.data(), block.shared, r.dynamic.size());
    exchange_block(r);
}
inline void begin_block();
inline bool run_warp();
/* a drawn number of the block's warps in turn, as far as they get; false: it only waits for other blocks */
inline bool take_turn(size_t index) {
    bool polled, went;
    size_t ran = 0, turns = 1 + random_below(4) * random_below(64);
    enter_turn(index);
    polled = end_polls();
    cooperative.polls = 0;
    while (turns-- && block.alive && run_warp()) ran++;
    if (!ran && !polled && block.alive) deadlock();
    went = ran > cooperative.polls;
    leave_turn();
    return went;
}
inline void watch_writes(bool watched) {
    all_watched = false;
    for (auto &m : state().memory)
        if (m.second.live && m.second.device)
            mprotect(m.second.pages, (size_t)(m.second.end - m.second.pages), watched ? PROT_READ : PROT_READ | PROT_WRITE);
}
inline void run_together(size_t count, void (*place)(size_t)) {
    Cooperative &c = cooperative;
    size_t left = count, idle = 0;
    c.now = true;
    c.blocks.resize(count);
    for (size_t i = 0; i < count; i++) {
        Resident &r = c.blocks[i];
        place(i);
        begin_block();
        r.lanes.assign(lanes, lanes + block.threads);
        r.warps.assign(warps, warps + block.warps);
        for (unsigned w = 0; w < block.warps; w++) r.warps[w].lanes = warps[w].lanes;
        r.block = block;
        r.fixed.resize(block.static_bytes);
        move_shared(r.fixed.data(), (unsigned char *)cuda_shared_begin, block.static_bytes);
        r.dynamic.assign(block.shared, block.shared + block.shared_bytes);
        r.clock.assign(count, 0);
        r.clock[i] = 1;
        r.releases = 0;
    }
    watch_writes(true);
    while (left) {
        size_t next = random_below((unsigned)count);
        while (!c.blocks[next].block.alive) next = (next + 1) % count;
        idle = take_turn(next) ? 0 : idle + 1;
        left -= !c.blocks[next].block.alive;
        if (idle > 64 * count) fail("deadlock: the blocks that are left wait for each other");
    }
    look(nullptr, 0);
    c.now = false;
    watch_writes(false);
    c.pages.clear();
    c.released.clear();
    c.blocks.clear();
}
} // namespace cuda_on_cpu
