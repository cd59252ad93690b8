/* cupti_on_cpu.h - the emulated GPU's libcupti: activity records of what ran, on the virtual clock; included by cuda_on_cpu.h
 *
 * CUDA_ON_CPU_CUPTI, words with commas between; without it dlopen finds no libcupti:
 *   VERSION     cuptiGetVersion's number, the first word (130001)
 *   NAME        libcupti lacks that function; NAME=STATUS: it returns that
 *   drop=N      every N-th record of the device's work is dropped, and counted as dropped
 *   lose=N      the same, without being counted
 *   empty       the first buffer that comes back has no record
 *   late        the last records come when a flush is forced
 *   stretch     each kernel ends 1 ms later than it did
 *   swap        the records of a graph's nodes 1 and 2 are exchanged
 *   small       buffers are filled with a single record each
 * Records are laid out as cupti_activity.h's; where that is found, sizes and places are checked against it. Products of cuBLAS are a kernel
 * "emulated_gemm_MxNxK"; those of few rows are split along k, with a second kernel that adds up. */
#if defined(__has_include)
#if __has_include(<cupti_activity.h>) && defined(CUDA_ON_CPU_CHECK_CUPTI)
#define CUDA_ON_CPU_HAS_CUPTI_H 1
#endif
#endif
namespace cuda_on_cpu {
enum : uint64_t { CUPTI_ZERO_NS = 7000000000000ull }; /* its clock, when the device's was at 0 */
enum : size_t { CUPTI_ROOM = 160 };
struct CuptiRecord { unsigned char bytes[CUPTI_ROOM]; size_t size; };
struct Cupti {
    void (*lend)(uint8_t **, size_t *, size_t *) = nullptr;
    void (*take)(void *, uint32_t, uint8_t *, size_t, size_t) = nullptr;
    std::set<int> kinds;
    std::vector<uint64_t> ids;
    std::vector<CuptiRecord> records;
    std::set<std::string> names;
    long device_records = 0;
    size_t dropped = 0;
    uint32_t correlation = 0;
    bool began = false;
};
inline Cupti cupti;
inline uint32_t cupti_call; /* correlation of the call that queues; 0: none is traced */

inline std::string cupti_word(const char *name, bool *found) { /* what is after its '=' */
    std::string s = state().settings.cupti + ",";
    size_t length = strlen(name);
    *found = false;
    for (size_t at = 0, end; at < s.size(); at = end + 1) {
        end = s.find(',', at);
        if (s.compare(at, length, name) || (s[at + length] != '=' && s[at + length] != ',')) continue;
        *found = true;
        return s[at + length] == '=' ? s.substr(at + length + 1, end - at - length - 1) : "";
    }
    return "";
}
inline bool cupti_lacks(const char *name) {
    bool found;
    return cupti_word(name, &found).empty() && found;
}
inline int cupti_status(const char *name) {
    bool found;
    std::string s = cupti_word(name, &found);
    return found ? atoi(s.c_str()) : 0;
}
inline bool cupti_on() { return cupti.kinds.count(10) && cupti.kinds.count(1); }
template <class T> inline void cupti_at(CuptiRecord *r, size_t at, T value) {
    memcpy(r->bytes + at, &value, sizeof value);
    if (at + sizeof value > r->size) r->size = at + sizeof value;
}
inline void cupti_store(CuptiRecord r, bool of_device) {
    if (of_device) {
        long n = ++cupti.device_records, drop = cupti_status("drop"), lose = cupti_status("lose");
        if (drop && n % drop == 0) { cupti.dropped++; return; }
        if (lose && n % lose == 0) return;
    }
    r.size = round_up(r.size, 8);
    cupti.records.push_back(r);
}
/* a call of the runtime: its links to the ids around it come first */
inline void cupti_enter_call() {
    cupti_call = cupti_on() ? ++cupti.correlation : 0;
    if (!cupti_call || cupti.ids.empty() || !cupti.kinds.count(39) || !cupti.kinds.count(5)) return;
    CuptiRecord r = {};
    cupti_at(&r, 0, (uint32_t)39);
    cupti_at(&r, 4, (uint32_t)3);
    cupti_at(&r, 8, cupti.ids.back());
    cupti_at(&r, 16, cupti_call);
    cupti_at(&r, 20, (uint32_t)0);
    cupti_store(r, false);
    if (cupti.kinds.count(4)) cupti_store(r, false); /* the driver's call within */
}
inline void cupti_kernel(const std::string &name, dim3 grid, dim3 dim, size_t shared, uint64_t begin, uint64_t end, uint32_t correlation) {
    CuptiRecord r = {};
    cupti_at(&r, 0, (uint32_t)10);
    cupti_at(&r, 6, (uint16_t)77);
    cupti_at(&r, 16, CUPTI_ZERO_NS + begin);
    cupti_at(&r, 24, CUPTI_ZERO_NS + end);
    cupti_at(&r, 52, (int32_t)grid.x); cupti_at(&r, 56, (int32_t)grid.y); cupti_at(&r, 60, (int32_t)grid.z);
    cupti_at(&r, 64, (int32_t)dim.x); cupti_at(&r, 68, (int32_t)dim.y); cupti_at(&r, 72, (int32_t)dim.z);
    cupti_at(&r, 80, (int32_t)shared);
    cupti_at(&r, 92, correlation);
    cupti_at(&r, 104, cupti.names.insert(name).first->c_str());
    cupti_at(&r, 152, (uint64_t)0);
    cupti_store(r, true);
}
inline void cupti_copy(int kind, size_t bytes, uint64_t begin, uint64_t end, uint32_t correlation) {
    CuptiRecord r = {};
    cupti_at(&r, 0, (uint32_t)kind);
    cupti_at(&r, 8, (uint64_t)bytes);
    cupti_at(&r, 16, CUPTI_ZERO_NS + begin);
    cupti_at(&r, 24, CUPTI_ZERO_NS + end);
    cupti_at(&r, 44, correlation);
    cupti_at(&r, 80, (uint64_t)0);
    cupti_store(r, true);
}

inline int cupti_version(uint32_t *version) {
    if (int status = cupti_status("cuptiGetVersion")) return status;
    *version = (uint32_t)atoi(state().settings.cupti.c_str());
    return 0;
}
inline int cupti_timestamp(uint64_t *now) { *now = CUPTI_ZERO_NS + state().host_ns; return cupti_status("cuptiGetTimestamp"); }
inline int cupti_text(int status, const char **text) {
    *text = status == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : status == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_UNKNOWN";
    return cupti_status("cuptiGetResultString");
}
inline int cupti_callbacks(void (*lend)(uint8_t **, size_t *, size_t *), void (*take)(void *, uint32_t, uint8_t *, size_t, size_t)) {
    if (int status = cupti_status("cuptiActivityRegisterCallbacks")) return status;
    cupti.lend = lend;
    cupti.take = take;
    return 0;
}
inline int cupti_enable(int kind) {
    if (int status = cupti_status("cuptiActivityEnable")) return status;
    if (!cupti.lend) return 7;
    cupti.kinds.insert(kind);
    return 0;
}
inline int cupti_disable(int kind) { cupti.kinds.erase(kind); return 0; }
/* brings `count` records in a buffer of the program's */
inline void cupti_bring(size_t first, size_t count) {
    uint8_t *buffer = nullptr;
    size_t bytes = 0, most = 0, used = 0;
    cupti.lend(&buffer, &bytes, &most);
    if (!buffer) { cupti.dropped += count; return; }
    for (size_t i = first; i < first + count; i++) {
        if (used + cupti.records[i].size > bytes) fail("libcupti: a buffer of %zu bytes is too small for the emulation", bytes);
        memcpy(buffer + used, cupti.records[i].bytes, cupti.records[i].size);
        used += cupti.records[i].size;
    }
    cupti.take(nullptr, 0, buffer, bytes, used);
}
inline int cupti_flush(uint32_t flags) {
    bool small, empty, swap, late, stretch;
    std::vector<CuptiRecord> kept;
    if (int status = cupti_status("cuptiActivityFlushAll")) return status;
    cupti_word("small", &small);
    cupti_word("empty", &empty);
    cupti_word("swap", &swap);
    cupti_word("late", &late);
    cupti_word("stretch", &stretch);
    if (late && !flags && cupti.records.size() > 7) { /* the last ones come when they are forced to */
        kept.assign(cupti.records.end() - 7, cupti.records.end());
        cupti.records.resize(cupti.records.size() - 7);
    }
    for (CuptiRecord &r : cupti.records) {
        uint64_t end;
        memcpy(&end, r.bytes + 24, sizeof end);
        if (stretch && r.bytes[0] == 10) cupti_at(&r, 24, end + 1000000);
    }
    if (swap) { /* begin and end of the second and third record that follow each other with one correlation */
        std::vector<CuptiRecord> &r = cupti.records;
        for (size_t i = 2; i < r.size(); i++) {
            if (r[i].bytes[0] != 10 || memcmp(r[i].bytes + 92, r[i - 1].bytes + 92, 4) || memcmp(r[i].bytes + 92, r[i - 2].bytes + 92, 4)) continue;
            std::swap_ranges(r[i].bytes + 16, r[i].bytes + 32, r[i - 1].bytes + 16);
            break;
        }
    }
    if (empty && !cupti.began) cupti_bring(0, 0);
    cupti.began = true;
    for (size_t at = 0, step; at < cupti.records.size(); at += step) {
        step = small ? 1 : cupti.records.size() - at < 4096 ? cupti.records.size() - at : 4096;
        cupti_bring(at, step);
    }
    cupti.records = kept;
    return 0;
}
inline int cupti_next(uint8_t *buffer, size_t valid, void **record) {
    static const uint8_t *in;
    uint8_t *at = (uint8_t *)*record;
    uint32_t kind;
    if (!at || in != buffer) { in = buffer; at = buffer; }
    else {
        memcpy(&kind, at, sizeof kind);
        at += kind == 39 ? 24 : kind == 10 ? 160 : 88;
    }
    if (at >= buffer + valid) { in = nullptr; return 12; }
    *record = at;
    return 0;
}
inline int cupti_dropped(void *, uint32_t, size_t *dropped) {
    *dropped = cupti.dropped;
    cupti.dropped = 0;
    return 0;
}
inline int cupti_push(int kind, uint64_t id) {
    if (kind != 3) return 1;
    cupti.ids.push_back(id);
    return 0;
}
inline int cupti_pop(int kind, uint64_t *last) {
    if (kind != 3) return 1;
    if (cupti.ids.empty()) return 18;
    *last = cupti.ids.back();
    cupti.ids.pop_back();
    return 0;
}
inline void *cupti_symbol(const char *name) {
    static const struct { const char *name; void *address; } symbols[] = {
        { "cuptiGetVersion", (void *)cupti_version }, { "cuptiGetTimestamp", (void *)cupti_timestamp }, { "cuptiGetResultString", (void *)cupti_text },
        { "cuptiActivityRegisterCallbacks", (void *)cupti_callbacks }, { "cuptiActivityEnable", (void *)cupti_enable },
        { "cuptiActivityDisable", (void *)cupti_disable }, { "cuptiActivityFlushAll", (void *)cupti_flush },
        { "cuptiActivityGetNextRecord", (void *)cupti_next }, { "cuptiActivityGetNumDroppedRecords", (void *)cupti_dropped },
        { "cuptiActivityPushExternalCorrelationId", (void *)cupti_push }, { "cuptiActivityPopExternalCorrelationId", (void *)cupti_pop } };
    for (auto &y : symbols) if (!strcmp(y.name, name) && !cupti_lacks(name)) return y.address;
    return nullptr;
}
} // namespace cuda_on_cpu
