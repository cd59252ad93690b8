/* clusters_on_cpu.h - clusters of two blocks of the emulated GPU (__cluster_dims__(2)); included by cuda_on_cpu.h
 *
 * Both blocks of a cluster are there at once, each with shared memory of its own, and take turns of a drawn length. What one does in the other's
 * shared memory goes by these:
 *   cuda_on_cpu_bulk_3d_multicast(to, map, x, y, z, barrier, mask)   a bulk copy to the same place of each block of the mask, counted by each one's
 *                                                                    mbarrier; NaN until it arrives, in the other block too
 *   cuda_on_cpu_mbarrier_arrive_at(barrier, rank)   an arrival at another block's mbarrier, some time later
 *   cuda_on_cpu_cluster_rank(), cuda_on_cpu_cluster_sync()
 * Reported: an mbarrier of the other block before its init; reaching into a block that has ended; a block that ends with copies under way.
 * Not seen: distributed shared memory by plain loads and stores (there is no mapa), the order of global memory between the blocks. */
namespace cuda_on_cpu {
enum { CLUSTER = 2 };
struct Member { /* a block of the cluster while the other one runs */
    std::vector<Lane> lanes;
    std::vector<Warp> warps;
    Block block;
    std::vector<unsigned char> fixed;
    std::vector<Bulk> bulk;
    std::vector<uint16_t> unfenced;
    std::vector<uint64_t *> arrivals; /* from the other block, under way */
};
struct Cluster {
    bool next = false; /* the next launch is of clusters */
    bool now = false;  /* the kernel that runs is one */
    unsigned me = 0;
    Member members[CLUSTER];
    unsigned char *pages[CLUSTER];
};
inline Cluster cluster;

inline void exchange_member(unsigned rank) {
    Member &m = cluster.members[rank];
    for (unsigned i = 0; i < block.threads; i++) std::swap(lanes[i], m.lanes[i]);
    for (unsigned i = 0; i < block.warps; i++) std::swap(warps[i], m.warps[i]);
    std::swap(block, m.block);
    bulk.swap(m.bulk);
    any_unfenced = true;
    for (size_t i = 0; i < m.unfenced.size(); i++) std::swap(unfenced_by[i], m.unfenced[i]);
}
inline void enter_member(unsigned rank) {
    Member &m = cluster.members[rank];
    cluster.me = rank;
    exchange_member(rank);
    move_shared((unsigned char *)cuda_shared_begin, m.fixed.data(), m.fixed.size());
}
inline void leave_member() {
    Member &m = cluster.members[cluster.me];
    move_shared(m.fixed.data(), (unsigned char *)cuda_shared_begin, m.fixed.size());
    exchange_member(cluster.me);
}
/* the place in the other block's shared memory */
template <class T> inline T *in_other(T *p) {
    const Block &other = cluster.members[1 - cluster.me].block;
    if (!other.alive) fail("reaches into the shared memory of a block of the cluster that has ended");
    return (T *)(void *)((unsigned char *)p - block.shared + other.shared);
}
inline void begin_member(unsigned rank, size_t index, void (*place)(size_t)) {
    Member &m = cluster.members[rank];
    block.shared_pages = cluster.pages[rank];
    prepare_shared(block.shared_bytes);
    place(index);
    begin_block();
    m.lanes.assign(lanes, lanes + block.threads);
    m.warps.assign(warps, warps + block.warps);
    m.block = block;
    m.fixed.resize(block.static_bytes);
    move_shared(m.fixed.data(), (unsigned char *)cuda_shared_begin, block.static_bytes);
    m.bulk.clear();
    m.unfenced.assign(sizeof unfenced_by / sizeof *unfenced_by, 0);
    m.arrivals.clear();
}
/* all threads of both blocks that are left have come */
inline bool end_cluster_sync() {
    unsigned arrived = 0, alive = 0;
    for (Member &m : cluster.members) { arrived += m.block.cluster_arrived; alive += m.block.alive; }
    if (!arrived || arrived < alive) return false;
    for (Member &m : cluster.members) {
        for (unsigned i = 0; i < m.block.warps; i++) {
            Warp &w = m.warps[i];
            if (!w.at_cluster) continue;
            w.ready |= w.at_cluster;
            w.at_cluster = 0;
            m.block.ready_warps |= (uint32_t)1 << i;
        }
        m.block.cluster_arrived = 0;
    }
    return true;
}
inline bool take_arrival() {
    std::vector<uint64_t *> &all = cluster.members[cluster.me].arrivals;
    if (all.empty() || (block.ready_warps && random_below(4))) return false;
    size_t i = random_below((unsigned)all.size());
    uint64_t *barrier = all[i];
    all.erase(all.begin() + (long)i);
    change_mbarrier(barrier, 1, 0);
    return true;
}
/* false: it only waits */
inline bool take_member_turn(unsigned rank) {
    bool went = false;
    enter_member(rank);
    for (size_t turns = 1 + random_below(64); turns-- && block.alive; went = true) {
        if (take_arrival()) continue;
        if (!bulk.empty() && (!block.ready_warps || !random_below(4))) { deliver(random_below((unsigned)bulk.size())); continue; }
        if (!run_warp()) break;
    }
    if (!block.alive && !bulk.empty()) fail("a block of a cluster ends with bulk copies under way");
    leave_member();
    return went;
}
inline void run_cluster(size_t first, void (*place)(size_t)) {
    Cluster &c = cluster;
    unsigned idle = 0;
    c.pages[0] = block.shared_pages;
    if (!c.pages[1]) {
        block.shared_pages = nullptr;
        prepare_shared(block.shared_bytes);
        c.pages[1] = block.shared_pages;
    }
    c.now = true;
    for (unsigned rank = 0; rank < CLUSTER; rank++) begin_member(rank, first + rank, place);
    while (c.members[0].block.alive || c.members[1].block.alive) {
        unsigned rank = random_below(CLUSTER);
        bool went = c.members[rank].block.alive && take_member_turn(rank);
        went = end_cluster_sync() || went;
        idle = went ? 0 : idle + 1;
        if (idle < 64) continue;
        for (rank = 0; !c.members[rank].block.alive; rank++) {}
        enter_member(rank);
        deadlock();
    }
    c.now = false;
    block.shared_pages = c.pages[0];
}
} // namespace cuda_on_cpu

inline void cuda_on_cpu_bulk_3d(void *shared_to, const CUtensorMap *map, int x, int y, int z, uint64_t *barrier);
inline unsigned cuda_on_cpu_cluster_rank() { return cuda_on_cpu::cluster.me; }
inline void cuda_on_cpu_cluster_sync() {
    using namespace cuda_on_cpu;
    if (!cluster.now) fail("a cluster's barrier in a launch without clusters");
    running.warp->at_cluster |= (uint32_t)1 << running.number;
    block.cluster_arrived++;
    leave();
}
inline void cuda_on_cpu_mbarrier_arrive_at(uint64_t *barrier, unsigned rank) {
    using namespace cuda_on_cpu;
    if (!cluster.now || rank >= CLUSTER) fail("an arrival at block %u of no cluster", rank);
    check_mbarrier(barrier);
    if (rank == cluster.me) { change_mbarrier(barrier, 1, 0); return; }
    uint64_t *there = in_other(barrier);
    if (*there == ~(uint64_t)0) fail("another block's mbarrier is used before its init");
    cluster.members[rank].arrivals.push_back(there);
}
inline void cuda_on_cpu_bulk_3d_multicast(void *shared_to, const CUtensorMap *map, int x, int y, int z, uint64_t *barrier, unsigned mask) {
    using namespace cuda_on_cpu;
    if (!cluster.now || !mask || mask >> CLUSTER) fail("a multicast to blocks %x of no cluster", mask);
    if (mask >> cluster.me & 1) cuda_on_cpu_bulk_3d(shared_to, map, x, y, z, barrier);
    if (!(mask >> (1 - cluster.me) & 1)) return;
    Bulk b = new_bulk(shared_to, map, x, y, z, barrier);
    b.to = in_other(b.to);
    b.barrier = in_other(barrier);
    if (*b.barrier == ~(uint64_t)0) fail("another block's mbarrier is used before its init");
    memset(b.to, FRESH, bytes_of(b));
    cluster.members[1 - cluster.me].bulk.push_back(b);
}
