/* dependent_on_cpu.h - programmatic dependent launches of the emulated GPU; included by cuda_on_cpu.h
 *
 * A kernel that is launched so may begin while the one before it runs. Here it does, as far as it can go: until no thread of its block can go on
 * without griddepcontrol.wait, what the kernel before wrote is NaN, and device memory cannot be written, which the kernel before may still read. If that one let its
 * successor begin before it waited itself, the same goes for what the one before it wrote, and so on. A block that ends without waiting is
 * reported: the next kernel's wait says nothing of the kernels before it. */
namespace cuda_on_cpu {
struct Dependent {
    bool next = false;    /* the next launch is one */
    bool used = false;    /* there was one: what kernels write is found by comparing the pages that they write, from then on */
    bool now = false;     /* the kernel that runs is one; .. */
    bool waited = false;  /* .. a thread of its block has waited; .. */
    bool early = false;   /* .. it let the next one begin before it waited */
    bool hides = false;
    std::vector<Range> hidden; /* what the kernel that runs must not see before it waits */
    std::vector<Range> next_hidden;
    std::vector<unsigned char> kept; /* the bytes of `hidden` while they are NaN */
    std::map<unsigned char *, std::vector<unsigned char>> before; /* the pages that were written since the kernel began, as they were */
};
inline Dependent dependent;

/* the allocation of a page that was written; NULL when it was freed */
inline const std::pair<unsigned char *const, Memory> *memory_of(unsigned char *page) {
    auto at = find_memory(page + PAGE - 1);
    return at != state().memory.end() && at->second.live && page < at->second.end ? &*at : nullptr;
}
/* memcpy, but over the redzones that g++ -fsanitize-sections=cuda_shared puts between the arrays, and those between what is in one page */
inline void move_shared(unsigned char *to, const unsigned char *from, size_t bytes) {
#if defined(CUDA_ON_CPU_ASAN) && defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    if (bytes) memcpy(to, from, bytes);
#endif
}
inline void protect_page(unsigned char *page, bool writable) {
    if (mprotect(page, PAGE, writable ? PROT_READ | PROT_WRITE : PROT_READ)) fail("mprotect failed");
}
/* a write into device memory that the processor stopped: the kernel's first one to the page */
inline bool begin_watched_write(unsigned char *p) {
    if (!dependent.used) return false;
    unsigned char *page = p - (uintptr_t)p % PAGE;
    std::vector<unsigned char> &was = dependent.before[page];
    if (was.empty()) {
        was.resize(PAGE);
        move_shared(was.data(), page, PAGE);
    }
    protect_page(page, true);
    return true;
}
inline void forbid_writes() {
    for (auto &b : dependent.before) if (memory_of(b.first)) protect_page(b.first, false);
    if (all_watched) return;
    for (auto &m : state().memory)
        if (m.second.live && m.second.device && mprotect(m.second.pages, (size_t)(m.second.end - m.second.pages), PROT_READ)) fail("mprotect failed");
    all_watched = true;
}
inline void hide() {
    dependent.waited = false;
    if (!dependent.now) return;
    dependent.kept.clear();
    for (Range &r : dependent.hidden) {
        dependent.kept.insert(dependent.kept.end(), r.from, r.from + r.bytes);
        memset(r.from, FRESH, r.bytes);
    }
    forbid_writes();
    dependent.hides = kernel_hides = true;
}
inline void show() {
    size_t at = 0;
    if (!dependent.hides) return;
    dependent.hides = kernel_hides = false;
    for (Range &r : dependent.hidden) {
        memcpy(r.from, dependent.kept.data() + at, r.bytes);
        at += r.bytes;
    }
}
/* all threads of the block that are left wait for something, and some for the kernel before: it has ended now */
inline bool end_grid_wait() {
    bool any = false;
    for (unsigned i = 0; i < block.warps; i++) {
        Warp &w = warps[i];
        if (!w.at_grid) continue;
        any = true;
        w.ready |= w.at_grid;
        w.at_grid = 0;
        block.ready_warps |= (uint32_t)1 << i;
    }
    if (any) { show(); dependent.waited = true; }
    return any;
}
inline void end_dependent_block() {
    if (!dependent.now || dependent.waited) return;
    show();
    fail("%s was launched as a dependent, and a block of it ends without griddepcontrol.wait", current_kernel);
}
/* around each kernel; what else a stream does is waited for by the next kernel in any case */
inline void begin_kernel(bool is_dependent) {
    dependent.now = is_dependent;
    dependent.early = false;
    dependent.hidden.clear();
    if (is_dependent) dependent.hidden.swap(dependent.next_hidden);
    dependent.next_hidden.clear();
    if (!dependent.used) return;
    forbid_writes();
    dependent.before.clear();
}
inline void end_kernel() {
    if (dependent.used)
        for (auto &b : dependent.before) {
            unsigned char *now = b.first, *was = b.second.data();
            auto *m = memory_of(now);
            size_t from = m->first > now ? (size_t)(m->first - now) : 0, to = (size_t)(m->first + m->second.bytes - now);
            for (size_t at = from; at < to && at < PAGE; at += 4) {
                size_t width = to - at < 4 ? to - at : 4;
                if (!memcmp(now + at, was + at, width)) continue;
                if (!dependent.next_hidden.empty() && dependent.next_hidden.back().from + dependent.next_hidden.back().bytes == now + at)
                    dependent.next_hidden.back().bytes += width;
                else dependent.next_hidden.push_back(Range{ now + at, width });
            }
        }
    if (dependent.now && dependent.early) /* each place once */
        for (Range &r : dependent.hidden) {
            bool twice = false;
            for (Range &n : dependent.next_hidden) twice = twice || (r.from < n.from + n.bytes && n.from < r.from + r.bytes);
            if (!twice) dependent.next_hidden.push_back(r);
        }
    dependent.now = false;
}
inline void forget_dependents() { dependent.next_hidden.clear(); }
} // namespace cuda_on_cpu
