/* emulator.cpp: proves that tests/emulator/cuda_on_cpu.h means what CUDA means, and that it finds the faults it was made to find.
 *   g++ -std=c++17 -O2 -Wall -Wextra -Wpedantic -Wshadow -I. tests/emulator/emulator.cpp -o emulator && ./emulator
 * Faults that abort are planted in child processes. "for some seed" below: right for every seed with the cure, wrong for one of them without. */
#include "tests/emulator/cuda_on_cpu.h"
#include "tests/support/check.h"
#include "tests/support/temporary.h"

#include <sys/wait.h>

enum { SEEDS = 8 };
static const float NAN_BITS = __builtin_nanf("");
static bool ok(cudaError_t e) { return e == cudaSuccess; }
static uint32_t random_bits() {
    static uint64_t s = 12345;
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(s >> 32);
}
static float random_float() { return (float)(random_bits() >> 8) / (float)(1 << 23) - 1.0f; }
static float bf16_to_float(uint16_t b) { return __uint_as_float((uint32_t)b << 16); }
static uint16_t float_to_bf16(float f) { return __bfloat16_as_ushort(__float2bfloat16_rn(f)); }

static cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return e ? e : cudaStreamSynchronize(nullptr);
}
static cudaError_t fill(void *to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }
/* device memory that contains a copy of `host`, freed at the end of its life */
template <class T> struct Device {
    T *p = nullptr;
    size_t count;
    explicit Device(size_t n) : count(n) { cudaMalloc(&p, n * sizeof(T)); }
    explicit Device(const std::vector<T> &host) : count(host.size()) {
        cudaMalloc(&p, count * sizeof(T));
        copy(p, host.data(), count * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~Device() { cudaFree(p); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    std::vector<T> host() const {
        std::vector<T> h(count);
        copy(h.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost);
        return h;
    }
};
static bool same(const std::vector<float> &got, const std::vector<float> &want) { /* NaN equals nothing */
    bool equal = got.size() == want.size();
    for (size_t i = 0; equal && i < got.size(); i++) equal = got[i] == want[i];
    return equal;
}

/* runs f in a child; true when it ends badly and says `text` on stderr */
template <class F> static bool dies(const char *text, F f) {
    int ends[2], status = 0;
    std::string said;
    char part[512];
    ssize_t n;
    fflush(stdout);
    if (pipe(ends)) return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        f();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], part, sizeof part)) > 0) said.append(part, (size_t)n);
    close(ends[0]);
    waitpid(child, &status, 0);
    bool bad = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0), found = said.find(text) != std::string::npos;
#ifdef CUDA_ON_CPU_ASAN
    found = found || said.find("AddressSanitizer") != std::string::npos;
#endif
    if (!bad || !found) printf("child %s, said: %s\n", bad ? "died" : "lived", said.c_str());
    return bad && found;
}
/* the number of seeds for which f is right */
template <class F> static int seeds_right(F f) {
    int right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) { cuda_on_cpu_reset((uint64_t)seed); right += f(); }
    cuda_on_cpu_reset(1);
    return right;
}

/* ======================================================================================================= threads */
static __global__ void k_coordinates(int *out) {
    int thread = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    int number = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    int threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    out[number * threads + thread] = (int)(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z);
}
static void test_coordinates() {
    check_case("every thread of every block runs once and knows where it is");
    Device<int> out(7 * 3 * 2 * 4 * 3 * 2);
    CUDA_LAUNCH(k_coordinates, dim3(4, 3, 2), dim3(7, 3, 2), 0, nullptr, out.p);
    CHECK_INT(cudaGetLastError(), cudaSuccess);
    std::vector<int> h = out.host();
    for (int i = 0; i < (int)h.size(); i++) {
        int t = i % 42, b = i / 42;
        CHECK_INT(h[(size_t)i], t % 7 + 10 * (t / 7 % 3) + 100 * (t / 21) + 1000 * (b % 4) + 10000 * (b / 4 % 3) + 100000 * (b / 12));
    }
}
template <class T> static __global__ void k_shuffles(T *out) {
    int l = (int)threadIdx.x;
    out[l] = __shfl_xor_sync(~0u, (T)(100 + l), 5);
    out[32 + l] = __shfl_sync(~0u, (T)(100 + l), l * 3 + 1);
}
template <class T> static void check_shuffles() {
    Device<T> out(64);
    CUDA_LAUNCH(k_shuffles<T>, 1, 32, 0, nullptr, out.p);
    std::vector<T> h = out.host();
    for (int l = 0; l < 32; l++) {
        CHECK_INT(h[(size_t)l], 100 + (l ^ 5));
        CHECK_INT(h[(size_t)(32 + l)], 100 + (l * 3 + 1) % 32);
    }
}
static void test_shuffles() {
    check_case("shuffles of 4 and 8 bytes, by exclusive or and by index");
    check_shuffles<int>();
    check_shuffles<float>();
    check_shuffles<double>();
}
static __global__ void k_leave(float *out) { /* the threads that leave may do so before the others wait or after */
    if (threadIdx.x >= 32) return;
    __syncthreads();
    out[threadIdx.x] = 1.0f;
}
static __global__ void k_crossed() { cuda_on_cpu_sum(1.0f, threadIdx.x < 16 ? 16 : 8); }
/* the same by shuffles and in one meeting, of values whose sum depends on the order; the last lanes leave first */
static __global__ void k_butterflies(float *out, const float *in, int from, int lanes) {
    int l = (int)threadIdx.x;
    float sum = in[l], most = in[l], pairs[2] = { in[l], in[32 + l] }, both[2] = { in[l], in[32 + l] };
    if (l >= lanes) return;
    for (int o = from; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    for (int o = from; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    for (int i = 0; i < 2; i++) {
        pairs[i] *= 0.3f;
        pairs[i] += __shfl_xor_sync(~0u, pairs[i], from);
    }
    cuda_on_cpu_add_other(both, 2, 0.3f, from);
    const float all[8] = { sum, cuda_on_cpu_sum(in[l], from), most, cuda_on_cpu_max(in[l], from), pairs[0], both[0], pairs[1], both[1] };
    for (int i = 0; i < 8; i++) out[8 * l + i] = all[i];
}
static void test_butterflies() {
    check_case("a butterfly of shuffles in one meeting gives the same bits; both occur");
    std::set<bool> drawn;
    std::vector<float> in(64);
    for (float &f : in) f = random_float();
    Device<float> from_host(in);
    for (int from = 1; from <= 16; from *= 2)
        for (int lanes = 32; lanes >= 24; lanes -= 8) {
            Device<float> out(8 * 32);
            CUDA_LAUNCH(k_butterflies, 1, 32, 0, nullptr, out.p, from_host.p, from, lanes);
            std::vector<float> h = out.host();
            drawn.insert(cuda_on_cpu::at_once);
            for (size_t i = 0; i < (size_t)(8 * lanes); i += 2) CHECK(h[i] == h[i + 1] || (lanes < 32 && h[i] != h[i] && h[i + 1] != h[i + 1]));
            if (lanes == 32) CHECK(h[0] == h[8] && h[0] != in[0] && h[2] >= in[0]);
        }
    for (int i = 0; i < 100; i++) {
        CUDA_LAUNCH(k_leave, 1, 32, 0, nullptr, from_host.p);
        cudaDeviceSynchronize();
        drawn.insert(cuda_on_cpu::at_once);
    }
    CHECK(drawn.size() == 2);
    CHECK(dies("a butterfly: the lanes begin at different distances", [] {
        CUDA_LAUNCH(k_crossed, 1, 32, 0, nullptr);
        cudaDeviceSynchronize();
    }));
}
static __global__ void k_exited(float *out) {
    unsigned l = threadIdx.x;
    if (l % 32 >= 30) return;
    out[l] = __shfl_sync(~0u, (float)l, 31); /* lane 31 has gone: its value is undefined */
    out[64 + l] = __shfl_sync(~0u, (float)l, 3);
    __syncthreads(); /* of those that are left */
    out[128 + l] = __shfl_xor_sync(~0u, 1.0f, 1);
}
static void test_exits() {
    check_case("shuffles after lanes have exited");
    Device<float> gone(192);
    CUDA_LAUNCH(k_exited, 1, 64, 0, nullptr, gone.p);
    std::vector<float> g = gone.host();
    for (unsigned l = 0; l < 64; l++) {
        if (l % 32 >= 30) continue;
        CHECK(g[l] != g[l]);
        CHECK_INT(g[64 + l], l / 32 * 32 + 3);
        CHECK_INT(g[128 + l], 1);
    }
    check_case("a block whose size is no multiple of a warp");
    Device<float> part(192);
    CUDA_LAUNCH(k_exited, 1, 41, 0, nullptr, part.p);
    CHECK_INT(part.host()[128 + 39], 1);
    check_case("a barrier is complete when the last thread that is not at it leaves");
    CHECK_INT(seeds_right([] {
        Device<float> left(32);
        CUDA_LAUNCH(k_leave, 4, 96, 0, nullptr, left.p);
        return left.host()[7] == 1;
    }), SEEDS);
}

static __device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}
static __device__ float block_sum(float v) {
    __shared__ float part[33];
    int warp = (int)threadIdx.x / 32, warps = (int)(blockDim.x + 31) / 32;
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        float u = (int)threadIdx.x < warps ? part[threadIdx.x] : 0.0f;
        u = warp_sum(u);
        if (threadIdx.x == 0) part[32] = u;
    }
    __syncthreads();
    return part[32];
}
static __global__ void k_sums(float *out, const float *x, int n) {
    float s = 0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) s += x[(int)blockIdx.x * n + i];
    s = block_sum(s);
    s += block_sum(1.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = s;
}
static __global__ void k_scan(int *out, const int *x) { /* inclusive, over the block */
    CUDA_DYNAMIC_SHARED(int, s);
    int t = (int)threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int o = 1; o < (int)blockDim.x; o *= 2) {
        int a = t >= o ? s[t - o] : 0;
        __syncthreads();
        s[t] += a;
        __syncthreads();
    }
    out[t] = s[t];
}
static void test_blocks() {
    check_case("sums over blocks by shuffles and static shared memory, for every seed");
    std::vector<float> x(20 * 577), want(20, 256.0f);
    for (size_t i = 0; i < x.size(); i++) { x[i] = (float)(random_bits() % 64); want[i / 577] += x[i]; }
    CHECK_INT(seeds_right([&] {
        Device<float> in(x), out(20);
        CUDA_LAUNCH(k_sums, 20, 256, 0, nullptr, out.p, in.p, 577);
        return same(out.host(), want);
    }), SEEDS);
    check_case("a scan through dynamic shared memory, for every seed");
    CHECK_INT(seeds_right([] {
        std::vector<int> v(1000);
        for (int &e : v) e = (int)(random_bits() % 100);
        Device<int> in(v), out(1000);
        CUDA_LAUNCH(k_scan, 1, 1000, 4000, nullptr, out.p, in.p);
        std::vector<int> h = out.host();
        int sum = 0, right = 1;
        for (size_t i = 0; i < v.size(); i++) right &= h[i] == (sum += v[i]);
        return right;
    }), SEEDS);
}
static __global__ void k_order(int *turn, int *first) {
    if (turn[blockIdx.x]++ == 0) first[blockIdx.x] = (int)threadIdx.x;
    if (threadIdx.x == 0) first[gridDim.x + blockIdx.x] = turn[gridDim.x]++;
}
static void test_order() {
    check_case("the seed draws the order of lanes, warps and blocks, the same one each time");
    std::set<int> lanes, warps, blocks, directions;
    for (int seed = 1; seed <= 2 * SEEDS; seed++) {
        std::vector<int> again;
        for (int twice = 0; twice < 2; twice++) {
            cuda_on_cpu_reset((uint64_t)seed);
            Device<int> turn(std::vector<int>(9, 0)), first(16);
            CUDA_LAUNCH(k_order, 8, 256, 0, nullptr, turn.p, first.p);
            std::vector<int> h = first.host();
            if (twice) CHECK(h == again);
            again = h;
        }
        for (size_t b = 0; b < 8; b++) { lanes.insert(again[b] % 32); warps.insert(again[b] / 32); }
        blocks.insert(again[8]); /* block 0's turn */
        directions.insert((again[9] - again[8] + 8) % 8);
    }
    CHECK(lanes.size() > 16 && warps.size() == 8 && blocks.size() > 3);
    CHECK(directions.size() == 2 && directions.count(1) && directions.count(7));
    cuda_on_cpu_reset(1);
}
static __device__ int count_nan(void) {
    __shared__ float a[5];
    int n = 0;
    for (int i = 0; i < 5; i++) n += a[i] != a[i];
    __syncthreads();
    a[threadIdx.x % 5] = 1.0f;
    return n;
}
static __global__ void k_stale(int *out) {
    CUDA_DYNAMIC_SHARED(float, d);
    __shared__ float s, t[8]; /* never written, which compilers must not take for 0 */
    int n = count_nan() + (s != s);
    for (int i = 0; i < 8; i++) n += t[i] != t[i];
    for (int i = 0; i < 11; i++) n += d[i] != d[i];
    __syncthreads();
    d[threadIdx.x % 11] = 2.0f;
    out[blockIdx.x * blockDim.x + threadIdx.x] = n;
}
static void test_poison() {
    check_case("shared memory, static and dynamic, is NaN at the start of each block");
    Device<int> out(5 * 64);
    CUDA_LAUNCH(k_stale, 5, 64, 44, nullptr, out.p);
    for (int n : out.host()) CHECK_INT(n, 25);
    check_case("fresh device memory is NaN, and the host's pinned memory too");
    Device<float> fresh(1000);
    for (float f : fresh.host()) CHECK(f != f);
    float *pinned = nullptr;
    CHECK(ok(cudaMallocHost(&pinned, 400)));
    CHECK(pinned && pinned[99] != pinned[99]);
    CHECK(ok(cudaFreeHost(pinned)));
}

/* ------------------------------------------------------------------------------------------ tensor cores, cp.async */
static __global__ void k_mma(float *c, const uint16_t *a, const uint16_t *b, int b_is_kn) { /* c [16, 8] = a [16, 16] times b [16, 8] or b [8, 16]^T */
    __shared__ __align__(16) uint16_t as[16 * 16];
    __shared__ __align__(16) uint16_t bs[16 * 16];
    int l = (int)threadIdx.x;
    for (int i = l; i < 256; i += 32) as[i] = a[i];
    for (int i = l; i < 256; i += 32) bs[i] = 0;
    __syncwarp();
    for (int i = l; i < 128; i += 32) {
        if (b_is_kn) bs[i / 8 * 16 + i % 8] = b[i];
        else bs[i] = b[i];
    }
    __syncwarp();
    uint32_t af[4], bf[4];
    float cf[4] = { 1, 1, 1, 1 };
    cuda_on_cpu_ldmatrix_x4(af, as + l % 16 * 16 + l / 16 * 8, false);
    if (b_is_kn) cuda_on_cpu_ldmatrix_x4(bf, bs + l % 16 * 16 + l / 16 * 8, true);
    else cuda_on_cpu_ldmatrix_x4(bf, bs + (l % 8 + l / 16 * 8) * 16 + l / 8 % 2 * 8, false);
    cuda_on_cpu_mma_bf16(cf, af, bf);
    for (int i = 0; i < 4; i++) c[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = cf[i];
}
static void test_mma() {
    for (int b_is_kn = 0; b_is_kn < 2; b_is_kn++) {
        check_case("ldmatrix%s and mma.sync against a plain product", b_is_kn ? ".trans" : "");
        std::vector<uint16_t> a(256), b(128);
        for (uint16_t &e : a) e = float_to_bf16(random_float());
        for (uint16_t &e : b) e = float_to_bf16(random_float());
        Device<uint16_t> ad(a), bd(b);
        Device<float> c(128);
        CUDA_LAUNCH(k_mma, 1, 32, 0, nullptr, c.p, ad.p, bd.p, b_is_kn);
        std::vector<float> h = c.host();
        for (size_t m = 0; m < 16; m++) {
            for (size_t n = 0; n < 8; n++) {
                double want = 1;
                for (size_t k = 0; k < 16; k++) want += (double)bf16_to_float(a[m * 16 + k]) * bf16_to_float(b[b_is_kn ? k * 8 + n : n * 16 + k]);
                CHECK_NEAR(h[m * 8 + n], want, 17 * 17 * 6e-8); /* 17 roundings of sums below 17 */
            }
        }
    }
}
/* to the nearest float, 1 + 1.5 x 2^-24 is 1 + 2^-23, and 1 - 1.25 x 2^-24 is 1 - 2^-24 */
static void test_mma_cuts() {
    check_case("tensor cores cut their sums");
    for (int sign = -1; sign <= 1; sign += 2) {
        Device<uint16_t> a(std::vector<uint16_t>(256, float_to_bf16(sign > 0 ? 0x1.8p-14f : 0x1.4p-14f)));
        Device<uint16_t> b(std::vector<uint16_t>(128, float_to_bf16((float)sign * 0x1p-14f)));
        Device<float> c(128);
        CUDA_LAUNCH(k_mma, 1, 32, 0, nullptr, c.p, a.p, b.p, 0);
        CHECK(c.host()[0] == (sign > 0 ? 1.0f : 1.0f - 0x1p-23f));
    }
}
/* two stages of 16 bytes a thread; each thread reads what its neighbour loaded; `left` groups too many may be under way */
static __global__ void k_stages(float *out, const float *x, int tiles, int left, int barrier) {
    __shared__ __align__(16) float s[2][256];
    int t = (int)threadIdx.x;
    float sum = 0;
    cuda_on_cpu_cp_async16(&s[0][t * 4], x + t * 4);
    cuda_on_cpu_cp_async_commit();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) cuda_on_cpu_cp_async16(&s[(i + 1) % 2][t * 4], x + (i + 1) * 256 + t * 4);
        cuda_on_cpu_cp_async_commit();
        cuda_on_cpu_cp_async_wait(1 + left);
        __syncthreads();
        sum += s[i % 2][(t * 4 + 7) % 256];
        if (barrier) __syncthreads();
    }
    out[t] = sum;
}
static bool stages_right(int left, int barrier) {
    std::vector<float> x(6 * 256), want(64, 0.0f);
    for (float &e : x) e = (float)(random_bits() % 100);
    for (size_t t = 0; t < 64; t++) for (size_t i = 0; i < 6; i++) want[t] += x[i * 256 + (t * 4 + 7) % 256];
    Device<float> in(x), out(64);
    CUDA_LAUNCH(k_stages, 1, 64, 0, nullptr, out.p, in.p, 6, left, barrier);
    return same(out.host(), want);
}
static __global__ void k_late(float *y, float *x) { /* the source changes while its copy is under way */
    __shared__ __align__(16) float s[128];
    int t = (int)threadIdx.x;
    cuda_on_cpu_cp_async16(&s[t * 4], x + t * 4);
    cuda_on_cpu_cp_async_commit();
    x[t * 4] = 9.0f;
    cuda_on_cpu_cp_async_wait(0);
    y[t] = s[t * 4];
}
static void test_cp_async() {
    check_case("cp.async through two stages, for every seed");
    CHECK_INT(seeds_right([] { return stages_right(0, 1); }), SEEDS);
    check_case("planted: a cp.async wait for one group too few is wrong for every seed");
    CHECK_INT(seeds_right([] { return stages_right(1, 1); }), 0);
    check_case("planted: a source that changes before the wait may arrive old or new");
    Device<float> source(std::vector<float>(128, 1.0f)), got(32);
    CUDA_LAUNCH(k_late, 1, 32, 0, nullptr, got.p, source.p);
    std::vector<float> seen = got.host();
    CHECK(std::set<float>(seen.begin(), seen.end()) == std::set<float>({ 1.0f, 9.0f }));
    check_case("planted: no barrier before a stage is used again, wrong for some seed");
    CHECK(seeds_right([] { return stages_right(0, 0); }) < SEEDS);
}
static void test_numbers() {
    check_case("conversions and bit functions");
    CHECK_INT(float_to_bf16(1.0f), 0x3f80);
    CHECK_INT(float_to_bf16(__uint_as_float(0x3f808000u)), 0x3f80); /* ties to even */
    CHECK_INT(float_to_bf16(__uint_as_float(0x3f818000u)), 0x3f82);
    CHECK_INT(float_to_bf16(__uint_as_float(0x3f808001u)), 0x3f81);
    CHECK_INT(float_to_bf16(3.4e38f), 0x7f80);
    CHECK_INT(float_to_bf16(NAN_BITS), 0x7fff);
    CHECK_INT(__float_as_uint(-0.0f), 0x80000000u);
    float4 f = make_float4(1, 2, 3, 4);
    uint4 u = make_uint4(1, 2, 3, 4);
    CHECK(sizeof f == 16 && alignof(uint4) == 16 && alignof(float2) == 8 && f.w == 4 && u.z == 3);
}

/* ================================================================================================ copies and streams */
static __global__ void k_add(float *y, const float *x, float v, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = x[i] + v;
}
static std::vector<float> ramp(size_t n, float from) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++) v[i] = from + (float)i;
    return v;
}
static void test_copies() {
    check_case("copies of every kind and memset");
    CHECK_INT(seeds_right([] {
        std::vector<float> x = ramp(1000, 0), y(1000);
        Device<float> a(1000), b(1000);
        float *pinned = nullptr;
        cudaMallocHost(&pinned, 4000);
        cudaMemcpyAsync(a.p, x.data(), 4000, cudaMemcpyHostToDevice, nullptr);
        std::fill(x.begin(), x.end(), 7.0f); /* a pageable source is taken at once */
        cudaMemcpyAsync(b.p, a.p, 4000, cudaMemcpyDeviceToDevice, nullptr);
        cudaMemsetAsync(b.p + 500, 0, 400, nullptr);
        cudaMemcpyAsync(pinned, b.p, 4000, cudaMemcpyDeviceToHost, nullptr);
        bool poisoned = pinned[0] != pinned[0]; /* unless it ran already */
        bool queued = cudaStreamSynchronize(nullptr) == cudaSuccess && (poisoned || pinned[3] == 3.0f);
        cudaMemcpyAsync(y.data(), b.p, 4000, cudaMemcpyDeviceToHost, nullptr); /* to pageable memory: waits */
        bool right = y[499] == 499.0f && y[500] == 0.0f && y[599] == 0.0f && y[600] == 600.0f && pinned[999] == 999.0f;
        cudaFreeHost(pinned);
        return queued && right;
    }), SEEDS);
    check_case("the target of a copy to pinned memory is NaN until the copy has run");
    CHECK(seeds_right([] {
        Device<float> a(ramp(4, 1));
        float *pinned = nullptr;
        cudaMallocHost(&pinned, 16);
        memset(pinned, 0, 16);
        cudaMemcpyAsync(pinned, a.p, 16, cudaMemcpyDeviceToHost, nullptr);
        bool nan = pinned[0] != pinned[0];
        cudaDeviceSynchronize();
        bool there = pinned[0] == 1.0f;
        cudaFreeHost(pinned);
        return nan && there;
    }) >= SEEDS / 4);
}
/* staging is filled and uploaded twice; without the wait the first upload may carry the second's data */
static bool staging_right(bool wait) {
    Device<float> a(64), b(64);
    float *staging = nullptr;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocHost(&staging, 256);
    for (int i = 0; i < 64; i++) staging[i] = 1;
    cudaMemcpyAsync(a.p, staging, 256, cudaMemcpyHostToDevice, stream);
    if (wait) cudaStreamSynchronize(stream);
    for (int i = 0; i < 64; i++) staging[i] = 2;
    cudaMemcpyAsync(b.p, staging, 256, cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    bool right = a.host()[5] == 1 && b.host()[5] == 2;
    cudaFreeHost(staging);
    cudaStreamDestroy(stream);
    return right;
}
/* a kernel writes to the host's memory, which is read behind an event */
static bool mapped_right(bool wait) {
    Device<float> a(std::vector<float>(64, 3.0f));
    float *host = nullptr;
    void *there = nullptr;
    cudaEvent_t event;
    cudaHostAlloc(&host, 256, cudaHostAllocMapped);
    cudaHostGetDevicePointer(&there, host, 0);
    memset(host, 0, 256);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, (float *)there, a.p, 1.0f, 64);
    cudaEventRecord(event, nullptr);
    if (wait) cudaEventSynchronize(event);
    bool right = host[0] == 4 && host[63] == 4;
    cudaDeviceSynchronize();
    cudaEventDestroy(event);
    cudaFreeHost(host);
    return right;
}
static void test_streams() {
    check_case("planted: staging used again without a wait, for some seed");
    CHECK_INT(seeds_right([] { return staging_right(true); }), SEEDS);
    CHECK(seeds_right([] { return staging_right(false); }) < SEEDS);
    check_case("planted: mapped memory is read before the kernel has run, for some seed");
    CHECK_INT(seeds_right([] { return mapped_right(true); }), SEEDS);
    CHECK(seeds_right([] { return mapped_right(false); }) < SEEDS);
    check_case("only mapped memory has an address for kernels");
    float *pinned = nullptr;
    void *there = nullptr;
    CHECK(ok(cudaMallocHost(&pinned, 256)));
    CHECK_INT(cudaHostGetDevicePointer(&there, pinned, 0), cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && !there);
    CHECK(ok(cudaFreeHost(pinned)));
    check_case("a destroyed stream finishes its work");
    CHECK_INT(seeds_right([] {
        Device<float> a(std::vector<float>(32, 1.0f));
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        CUDA_LAUNCH(k_add, 1, 32, 0, s, a.p, a.p, 1.0f, 32);
        cudaStreamDestroy(s);
        cudaDeviceSynchronize();
        return a.host()[0] == 2 && cudaGetLastError() == cudaSuccess;
    }), SEEDS);
    check_case("planted: a stream that waits for the legacy stream");
    CHECK(dies("not emulated", [] { cudaStream_t s; cudaStreamCreateWithFlags(&s, 0); }));
}

/* ========================================================================================================= events */
/* milliseconds between records around two kernels of 10 blocks, an upload of 250,000 bytes and a memset of 100,000 */
static float interval_ms(bool other_stream) {
    Device<float> a(100000);
    cudaStream_t s, t;
    cudaEvent_t from, to;
    float ms = -1, *pinned = nullptr;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
    cudaEventCreate(&from);
    cudaEventCreate(&to);
    cudaMallocHost(&pinned, 250000);
    memset(pinned, 0, 250000);
    cudaEventRecord(from, s);
    CUDA_LAUNCH(k_add, 10, 32, 0, s, a.p, a.p, 1.0f, 0);
    cudaMemcpyAsync(a.p, pinned, 250000, cudaMemcpyHostToDevice, s);
    if (other_stream) for (int i = 0; i < 5; i++) cudaMemsetAsync(a.p + 80000, 0, 64, t);
    cudaMemsetAsync(a.p, 0, 100000, s);
    CUDA_LAUNCH(k_add, 10, 32, 0, s, a.p, a.p, 1.0f, 0);
    cudaEventRecord(to, s);
    cudaEventSynchronize(to);
    if (cudaEventElapsedTime(&ms, from, to)) ms = -1;
    cudaDeviceSynchronize();
    cudaFreeHost(pinned);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaStreamDestroy(s);
    cudaStreamDestroy(t);
    return ms;
}
static void test_events() {
    check_case("the virtual clock gives the same interval for every seed, whatever other streams do");
    CHECK_INT(seeds_right([] { return fabsf(interval_ms(false) - 0.02014f) < 1e-7f; }), SEEDS); /* 2 (3 + 0.02) + 2 + 10 + 2 + 0.1 us */
    CHECK_INT(seeds_right([] { return fabsf(interval_ms(true) - 0.02014f) < 1e-7f; }), SEEDS);
    check_case("events that cannot be read: not recorded, not timed, not reached, destroyed");
    cudaEvent_t a = nullptr, b = nullptr, untimed = nullptr;
    cudaStream_t s = nullptr;
    float ms = -1;
    Device<float> x(32);
    bool not_ready = false;
    CHECK(ok(cudaEventCreate(&a)) && ok(cudaEventCreate(&b)) && ok(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming)));
    CHECK(ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)));
    CHECK_INT(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaGetLastError(), cudaSuccess);
    for (int seed = 1; seed <= SEEDS; seed++) {
        cuda_on_cpu_reset((uint64_t)seed);
        cudaEventRecord(a, s);
        CUDA_LAUNCH(k_add, 1, 32, 0, s, x.p, x.p, 1.0f, 32);
        cudaEventRecord(b, s);
        not_ready = not_ready || cudaEventElapsedTime(&ms, a, b) == cudaErrorNotReady;
        cudaStreamSynchronize(s);
    }
    CHECK(not_ready);
    CHECK(ok(cudaEventRecord(untimed, s)) && ok(cudaEventSynchronize(untimed)));
    CHECK_INT(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
    CHECK(ok(cudaEventElapsedTime(&ms, a, b)) && ms > 0);
    CHECK(ok(cudaEventDestroy(a)) && ok(cudaEventDestroy(b)) && ok(cudaEventDestroy(untimed)) && ok(cudaStreamDestroy(s)));
    CHECK_INT(cudaEventRecord(a, nullptr), cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    cuda_on_cpu_reset(1);
}

/* ========================================================================================================= graphs */
struct Captured {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    Captured() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
    ~Captured() {
        if (executable) cudaGraphExecDestroy(executable);
        if (graph) cudaGraphDestroy(graph);
        cudaStreamDestroy(stream);
    }
    Captured(const Captured &) = delete;
    Captured &operator=(const Captured &) = delete;
    cudaError_t end() {
        cudaError_t e = cudaStreamEndCapture(stream, &graph);
        return e ? e : cudaGraphInstantiate(&executable, graph, 0);
    }
};
static void test_graphs() {
    check_case("a captured graph runs nothing until it is launched, and twice when launched twice, for every seed");
    CHECK_INT(seeds_right([] {
        Device<float> a(std::vector<float>(64, 0.0f));
        Captured c;
        float *pinned = nullptr, v = 3;
        cudaMallocHost(&pinned, 256);
        cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal);
        CUDA_LAUNCH(k_add, 1, 64, 0, c.stream, a.p, a.p, v, 64);
        v = 100; /* arguments were copied */
        CUDA_LAUNCH(k_add, 1, 64, 0, c.stream, a.p, a.p, 1.0f, 32);
        cudaMemcpyAsync(pinned, a.p, 256, cudaMemcpyDeviceToHost, c.stream);
        bool right = c.end() == cudaSuccess && a.host()[0] == 0;
        cudaGraphLaunch(c.executable, c.stream);
        cudaStreamSynchronize(c.stream);
        right = right && pinned[0] == 4 && pinned[63] == 3;
        cudaGraphLaunch(c.executable, c.stream);
        right = right && pinned[0] != 4; /* poisoned, or there already */
        cudaGraphLaunch(c.executable, nullptr);
        cudaDeviceSynchronize();
        right = right && a.host()[0] == 12 && a.host()[63] == 9;
        cudaFreeHost(pinned);
        return right;
    }), SEEDS);
}
/* what a capture forbids spoils it */
static void test_forbidden() {
    static const char *const names[] = { "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMalloc", "cudaMallocHost", "cudaFree", "cudaEventSynchronize",
        "an upload from pageable memory" };
    for (int i = 0; i < 7; i++) {
        check_case("forbidden during a capture: %s", names[i]);
        Device<float> a(64);
        Captured c;
        cudaEvent_t event = nullptr;
        float host[4] = { 0, 0, 0, 0 }, *p = nullptr;
        cudaError_t e = cudaSuccess;
        CHECK(ok(cudaEventCreate(&event)) && ok(cudaEventRecord(event, nullptr)) && ok(cudaDeviceSynchronize()));
        CHECK(ok(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal)));
        switch (i) {
        case 0: e = cudaStreamSynchronize(c.stream); break;
        case 1: e = cudaDeviceSynchronize(); break;
        case 2: e = cudaMalloc(&p, 64); break;
        case 3: e = cudaMallocHost(&p, 64); break;
        case 4: e = cudaFree(a.p); break;
        case 5: e = cudaEventSynchronize(event); break;
        case 6: e = cudaMemcpyAsync(a.p, host, 16, cudaMemcpyHostToDevice, c.stream); break;
        }
        CHECK_INT(e, cudaErrorStreamCaptureUnsupported);
        CHECK_INT(cudaMemsetAsync(a.p, 0, 64, c.stream), cudaErrorStreamCaptureInvalidated);
        CHECK_INT(c.end(), cudaErrorStreamCaptureInvalidated);
        CHECK(ok(cudaEventDestroy(event)));
    }
    check_case("captures begin and end where they must");
    Captured c;
    cudaGraph_t graph = nullptr;
    CHECK_INT(cudaStreamEndCapture(c.stream, &graph), cudaErrorIllegalState);
    CHECK_INT(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
    CHECK(ok(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal)));
    CHECK_INT(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
    CHECK(ok(c.end()));
    cuda_on_cpu_reset(1);
}

/* ========================================================================================================= cuBLAS */
/* found as a program finds it */
struct Blas {
    cublasHandle_t handle = nullptr;
    decltype(&cublasGemmEx) gemm;
    decltype(&cublasGemmStridedBatchedEx) batched;
    decltype(&cublasDestroy_v2) destroy;
    Blas() {
        void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
        gemm = (decltype(gemm))dlsym(library, "cublasGemmEx");
        batched = (decltype(batched))dlsym(library, "cublasGemmStridedBatchedEx");
        destroy = (decltype(destroy))dlsym(library, "cublasDestroy_v2");
        ((decltype(&cublasCreate_v2))dlsym(library, "cublasCreate_v2"))(&handle);
    }
    ~Blas() { destroy(handle); }
    Blas(const Blas &) = delete;
    Blas &operator=(const Blas &) = delete;
};
static std::vector<uint16_t> halves(const std::vector<float> &v) {
    std::vector<uint16_t> h(v.size());
    for (size_t i = 0; i < v.size(); i++) h[i] = float_to_bf16(v[i]);
    return h;
}
/* numbers of that type, and back */
template <class T> static std::vector<T> halves_or(const std::vector<float> &v);
template <> std::vector<float> halves_or(const std::vector<float> &v) { return v; }
template <> std::vector<uint16_t> halves_or(const std::vector<float> &v) { return halves(v); }
static float float_or(float f) { return f; }
static float float_or(uint16_t h) { return bf16_to_float(h); }
struct Shape { int m, n, k, ta, tb, a_half, c_half; float alpha, beta; };
static void check_gemm(const Blas &blas, const Shape &s) {
    int lda = (s.ta ? s.k : s.m) + 3, ldb = (s.tb ? s.n : s.k) + 1, ldc = s.m + 2;
    std::vector<float> a((size_t)(lda * (s.ta ? s.m : s.k))), b((size_t)(ldb * (s.tb ? s.k : s.n))), c((size_t)(ldc * s.n));
    for (float &e : a) e = s.a_half ? bf16_to_float(float_to_bf16(random_float())) : random_float();
    for (float &e : b) e = s.a_half ? bf16_to_float(float_to_bf16(random_float())) : random_float();
    for (float &e : c) e = s.beta == 0 ? NAN_BITS : bf16_to_float(float_to_bf16(random_float()));
    Device<float> a4(a), b4(b), c4(c);
    Device<uint16_t> a2(halves(a)), b2(halves(b)), c2(halves(c));
    cudaDataType type = s.a_half ? CUDA_R_16BF : CUDA_R_32F, c_type = s.c_half ? CUDA_R_16BF : CUDA_R_32F;
    cublasStatus_t status = blas.gemm(blas.handle, s.ta ? CUBLAS_OP_T : CUBLAS_OP_N, s.tb ? CUBLAS_OP_T : CUBLAS_OP_N, s.m, s.n, s.k, &s.alpha,
                                      s.a_half ? (void *)a2.p : (void *)a4.p, type, lda, s.a_half ? (void *)b2.p : (void *)b4.p, type, ldb, &s.beta,
                                      s.c_half ? (void *)c2.p : (void *)c4.p, c_type, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    CHECK_INT(status, CUBLAS_STATUS_SUCCESS);
    std::vector<float> got = c4.host();
    std::vector<uint16_t> got2 = c2.host();
    for (int j = 0; j < s.n; j++) {
        for (int i = 0; i < ldc; i++) {
            size_t at = (size_t)(j * ldc + i);
            float g = s.c_half ? bf16_to_float(got2[at]) : got[at];
            if (i >= s.m) { CHECK(s.beta == 0 ? g != g : g == c[at]); continue; } /* between columns: untouched */
            double want = 0, size = 0;
            for (int p = 0; p < s.k; p++) {
                double product = (double)a[(size_t)(s.ta ? p + i * lda : i + p * lda)] * b[(size_t)(s.tb ? j + p * ldb : p + j * ldb)];
                want += product;
                size += fabs(product);
            }
            want *= s.alpha;
            if (s.beta != 0) want += (double)s.beta * c[at];
            CHECK_NEAR(g, want, (s.k + 3) * 6e-8 * (fabs(s.alpha) * size + fabs(want) + 1e-30) + (s.c_half ? fabs(want) / 256 : 0));
        }
    }
}
/* One matmul with a bias as a program makes it. The pieces can be spoiled one by one. */
struct Lt {
    enum { M = 24, N = 5, K = 16 };
    Blas &blas;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    uint64_t workspace = 4096;
    float one = 1, beta = 0;
    Lt(Blas &given, cudaDataType in, cudaDataType out) : blas(given) {
        int32_t transposed = CUBLAS_OP_T;
        uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        CHECK_INT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), 0);
        CHECK_INT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), 0);
        CHECK_INT(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue), 0);
        CHECK_INT(cublasLtMatrixLayoutCreate(&a, in, K, M, K), 0);
        CHECK_INT(cublasLtMatrixLayoutCreate(&b, in, K, N, K), 0);
        CHECK_INT(cublasLtMatrixLayoutCreate(&d, out, M, N, M), 0);
        CHECK_INT(cublasLtMatmulPreferenceCreate(&preference), 0);
        CHECK_INT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace), 0);
    }
    ~Lt() {
        cublasLtMatmulDescDestroy(desc);
        cublasLtMatrixLayoutDestroy(a), cublasLtMatrixLayoutDestroy(b), cublasLtMatrixLayoutDestroy(d);
        cublasLtMatmulPreferenceDestroy(preference);
    }
    Lt(const Lt &) = delete;
    Lt &operator=(const Lt &) = delete;
    cublasStatus_t set_bias(const void *bias) { return cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias); }
    cublasStatus_t find() {
        return cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)blas.handle, desc, a, b, d, d, preference, 1, &found, &count);
    }
    cublasStatus_t run(const void *A, const void *B, void *D, void *room) {
        return cublasLtMatmul((cublasLtHandle_t)blas.handle, desc, &one, A, a, B, b, &beta, D, d, D, d, &found.algo, room, workspace, nullptr);
    }
};
template <class In, class Out> static void check_lt(Blas &blas, cudaDataType in, cudaDataType out, float beta) {
    Lt lt(blas, in, out);
    std::vector<float> a(Lt::K * Lt::M), b(Lt::K * Lt::N), d(Lt::M * Lt::N), bias(Lt::M);
    for (std::vector<float> *v : { &a, &b, &d, &bias }) for (float &e : *v) e = bf16_to_float(float_to_bf16(random_float()));
    Device<In> ad(halves_or<In>(a)), bd(halves_or<In>(b));
    Device<Out> dd(halves_or<Out>(d)), vd(halves_or<Out>(bias));
    Device<char> room(4096);
    lt.beta = beta;
    CHECK_INT(lt.set_bias(vd.p), 0);
    CHECK(lt.find() == CUBLAS_STATUS_SUCCESS && lt.count == 1 && lt.found.workspaceSize <= lt.workspace);
    CHECK_INT(lt.run(ad.p, bd.p, dd.p, room.p), 0);
    std::vector<Out> got = dd.host();
    for (int j = 0; j < Lt::N; j++)
        for (int i = 0; i < Lt::M; i++) {
            double want = (double)bias[(size_t)i] + (double)beta * d[(size_t)(j * Lt::M + i)];
            for (int p = 0; p < Lt::K; p++) want += (double)a[(size_t)(i * Lt::K + p)] * b[(size_t)(j * Lt::K + p)];
            CHECK_NEAR(float_or(got[(size_t)(j * Lt::M + i)]), want, 1e-5 + (sizeof(Out) == 2 ? fabs(want) / 256 : 0));
        }
}
static void test_lt() {
    Blas blas;
    int live = cuda_on_cpu_live();
    check_case("cublasLt: a product and its bias, which has the result's type");
    for (int i = 0; i < 2; i++) {
        check_lt<uint16_t, uint16_t>(blas, CUDA_R_16BF, CUDA_R_16BF, (float)i);
        check_lt<uint16_t, float>(blas, CUDA_R_16BF, CUDA_R_32F, (float)i);
        check_lt<float, float>(blas, CUDA_R_32F, CUDA_R_32F, (float)i);
    }
    CHECK_INT(cuda_on_cpu_live(), live);
    check_case("cublasLt refuses what it refuses");
    {
        Device<uint16_t> x(4096);
        Device<char> room(4096);
        Lt lt(blas, CUDA_R_16BF, CUDA_R_16BF), other(blas, CUDA_R_16BF, CUDA_R_32F), wrong(blas, CUDA_R_32F, CUDA_R_16BF);
        int32_t type = CUDA_R_32F, own = -1;
        uint64_t none = 0;
        CHECK(dies("bias pointer", [&] { lt.find(); }));
        for (Lt *l : { &lt, &other, &wrong }) CHECK_INT(l->set_bias(x.p + 3072), 0);
        CHECK_INT(wrong.find(), CUBLAS_STATUS_NOT_SUPPORTED);
        CHECK_INT(cublasLtMatmulDescSetAttribute(lt.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type), 0);
        CHECK_INT(lt.find(), CUBLAS_STATUS_NOT_SUPPORTED); /* an f32 bias of a bf16 result */
        CHECK_INT(lt.count, 0);
        CHECK_INT(cublasLtMatmulDescSetAttribute(lt.desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &own, sizeof own), 0);
        CHECK_INT(cublasLtMatmulDescSetAttribute(lt.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &own, sizeof own), CUBLAS_STATUS_INVALID_VALUE);
        CHECK(!lt.find() && !other.find());
        CHECK_INT(lt.run(x.p, x.p + 512, x.p + 1024, room.p), 0);
        std::swap(lt.found, other.found);
        CHECK_INT(lt.run(x.p, x.p + 512, x.p + 1024, room.p), CUBLAS_STATUS_INVALID_VALUE); /* another product's algorithm */
        std::swap(lt.found, other.found);
        lt.workspace = 100;
        CHECK_INT(lt.run(x.p, x.p + 512, x.p + 1024, room.p), CUBLAS_STATUS_INVALID_VALUE);
        lt.workspace = 4096;
        CHECK(dies("operand A is less aligned", [&] { lt.run(x.p + 8, x.p + 512, x.p + 1024, room.p); }));
        CHECK(dies("workspace", [&] { lt.run(x.p, x.p + 512, x.p + 1024, room.p + 64); }));
        CHECK(dies("operand C", [&] { std::vector<uint16_t> y(4096); lt.run(x.p, x.p + 512, &y[128 - (uintptr_t)&y[0] % 256 / 2], room.p); }));
        CHECK(dies("bias is less aligned", [&] { lt.set_bias(x.p + 3073); lt.run(x.p, x.p + 512, x.p + 1024, room.p); }));
        CHECK(dies("operand b", [&] { lt.set_bias(x.p + 4096); lt.run(x.p, x.p + 512, x.p + 1024, room.p); }));
        CHECK(dies("descriptor", [&] { cublasLtMatrixLayoutDestroy(lt.a); lt.find(); }));
        CHECK_INT(cublasLtMatmulPreferenceSetAttribute(lt.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &none, sizeof none), 0);
        CHECK(!lt.find() && lt.found.workspaceSize == 0);
        CHECK_INT(cudaDeviceSynchronize(), 0);
    }
    check_case("cublasLt: a failing call, and a library that lacks one");
    cublasLtMatrixLayout_t layout = nullptr;
    cuda_on_cpu_fail("plan", 1);
    CHECK_INT(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 1, 1, 1), CUBLAS_STATUS_ALLOC_FAILED);
    CHECK(!layout);
    CHECK_INT(cuda_on_cpu_set("CUBLAS", "cublasLtMatmul"), 1);
    void *library = dlopen("libcublas.so.13", RTLD_NOW);
    CHECK(library && !dlsym(library, "cublasLtMatmul") && dlsym(library, "cublasLtMatmulAlgoGetHeuristic"));
    CHECK_INT(cuda_on_cpu_set("CUBLAS", nullptr), 1);
    CHECK_INT(cuda_on_cpu_live(), live);
}
static void test_gemm() {
    Blas blas;
    check_case("GEMM, all transposes and types, alpha and beta; beta = 0 does not read C");
    for (int i = 0; i < 64; i++) {
        Shape s = { 1 + (int)(random_bits() % 70), 1 + (int)(random_bits() % 40), (int)(random_bits() % 150), i & 1, i >> 1 & 1, i >> 2 & 1,
                    (i >> 2 & 1) & (i >> 3 & 1), i & 16 ? -0.5f : 1.0f, i & 32 ? 0.75f : 0.0f };
        check_gemm(blas, s);
    }
    check_case("GEMM reads bf16 exactly and rounds bf16 results to nearest even");
    std::vector<float> a = { 1.0f, __uint_as_float(0x3b800000u) }, b = { 1.0f, 1.0f }; /* 1 + 2^-8 is a tie: 1 */
    Device<uint16_t> ad(halves(a)), bd(halves(b)), cd(std::vector<uint16_t>(1, 0));
    float one = 1, zero = 0;
    CHECK_INT(blas.gemm(blas.handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 2, &one, ad.p, CUDA_R_16BF, 2, bd.p, CUDA_R_16BF, 2, &zero, cd.p, CUDA_R_16BF, 1,
                        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), 0);
    CHECK_INT(cd.host()[0], 0x3f80);
}
/* attention's two products for all heads at once, straight on rows [tokens, 3 * heads * width] of q, k and v side by side */
static void test_batched() {
    check_case("strided batches on views that interleave");
    enum { T = 37, H = 3, D = 8, W = 3 * H * D };
    Blas blas;
    std::vector<float> qkv(T * W), want(T * H * D);
    for (float &e : qkv) e = bf16_to_float(float_to_bf16(random_float()));
    Device<uint16_t> x(halves(qkv));
    Device<float> scores(H * T * T), y(T * H * D);
    float one = 1, zero = 0;
    CHECK_INT(blas.batched(blas.handle, CUBLAS_OP_T, CUBLAS_OP_N, T, T, D, &one, x.p + H * D, CUDA_R_16BF, W, D, x.p, CUDA_R_16BF, W, D, &zero, scores.p,
                           CUDA_R_32F, T, T * T, H, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), 0);
    std::vector<float> s = scores.host();
    Device<uint16_t> p(halves(s));
    std::vector<uint16_t> ph = p.host();
    CHECK_INT(blas.batched(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, D, T, T, &one, x.p + 2 * H * D, CUDA_R_16BF, W, D, p.p, CUDA_R_16BF, T, T * T, &zero, y.p,
                           CUDA_R_32F, H * D, D, H, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), 0);
    std::vector<float> got = y.host();
    for (size_t h = 0; h < H; h++) {
        for (size_t i = 0; i < T; i++) {
            for (size_t j = 0; j < T; j++) {
                double dot = 0;
                for (size_t d = 0; d < D; d++) dot += (double)qkv[i * W + h * D + d] * qkv[j * W + (H + h) * D + d];
                CHECK_NEAR(s[(h * T + i) * T + j], dot, 1e-5);
            }
            for (size_t d = 0; d < D; d++) {
                double sum = 0;
                for (size_t j = 0; j < T; j++) sum += (double)bf16_to_float(ph[(h * T + i) * T + j]) * qkv[j * W + (2 * H + h) * D + d];
                CHECK_NEAR(got[i * H * D + h * D + d], sum, 1e-4);
            }
        }
    }
}
static void test_gemm_refusals() {
    Blas blas;
    Device<float> x(4096);
    float one = 1, zero = 0;
    auto call = [&](cudaDataType a, cudaDataType b, cudaDataType c, int lda, int ldb, int ldc, int n, cublasComputeType_t compute) {
        return (int)blas.gemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, n, 8, &one, x.p, a, lda, x.p + 1000, b, ldb, &zero, x.p + 2000, c, ldc, compute,
                              CUBLAS_GEMM_DEFAULT);
    };
    check_case("GEMM refuses what cuBLAS refuses");
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 8, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_SUCCESS);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF, 8, 8, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK_INT(call(CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, 8, 8, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK_INT(call(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, 8, 8, 8, 4, CUBLAS_COMPUTE_16F), CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 7, 8, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 7, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 8, 7, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 8, 8, -1, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 8, 8, 0, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_SUCCESS);
    CHECK_INT(cublasSetStream_v2(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK_INT(cublasSetMathMode(blas.handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), CUBLAS_STATUS_SUCCESS);
    CHECK(ok(cudaDeviceSynchronize()));
    check_case("cuBLAS writes to the workspace it is given");
    std::vector<float> h;
    CHECK(ok(fill(x.p, 0, 4096 * 4)));
    CHECK_INT(cublasSetWorkspace_v2(blas.handle, x.p + 3072, 1024), CUBLAS_STATUS_SUCCESS);
    CHECK_INT(cublasSetWorkspace_v2(blas.handle, x.p + 3073, 1024), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(call(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 8, 8, 8, 4, CUBLAS_COMPUTE_32F), CUBLAS_STATUS_SUCCESS);
    h = x.host();
    CHECK(h[3071] == 0 && h[3072] != h[3072] && h[3072 + 256] == 0 && h[2000] == 0);
    check_case("planted: an operand that ends past its allocation, freed memory, a misaligned pointer, a batch that overwrites itself");
    CHECK(dies("operand A", [&] { blas.gemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.p + 4033, CUDA_R_32F, 8, x.p, CUDA_R_32F, 8, &zero,
                                            x.p + 100, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); }));
    CHECK(dies("operand C", [&] { float c[64]; blas.gemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.p, CUDA_R_32F, 8, x.p, CUDA_R_32F, 8,
                                            &zero, c, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); }));
    CHECK(dies("operand B", [&] { float *b; cudaMalloc(&b, 256); cudaFree(b); blas.gemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.p,
                                            CUDA_R_32F, 8, b, CUDA_R_32F, 8, &zero, x.p + 100, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); }));
    CHECK(dies("aligned", [&] { blas.gemm(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, (char *)x.p + 1, CUDA_R_16BF, 8, x.p, CUDA_R_16BF, 8,
                                            &zero, x.p + 100, CUDA_R_16BF, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); }));
    CHECK(dies("overwrite", [&] { blas.batched(blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, x.p, CUDA_R_32F, 8, 0, x.p, CUDA_R_32F, 8, 0, &zero,
                                            x.p + 100, CUDA_R_32F, 8, 0, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT); }));
}
static void test_library() {
    check_case("dlopen gives cuBLAS, or not, or without a function; other libraries are real");
    void *real = dlopen("libm.so.6", RTLD_NOW), *blas = dlopen("libcublas.so.13", RTLD_NOW);
    CHECK(real && dlsym(real, "cosf") && blas && dlsym(blas, "cublasGemmEx"));
    CHECK(blas && !dlsym(blas, "cublasNoSuchFunction"));
    const char *text = dlerror();
    CHECK(text && strstr(text, "cublasNoSuchFunction"));
    CHECK(!dlopen("libcublas.so.11", RTLD_NOW) && dlerror());
    CHECK(!dlopen("libno-such-library.so", RTLD_NOW) && dlerror());
    CHECK_INT(cuda_on_cpu_set("CUBLAS", "cublasGemmEx"), 1);
    CHECK(!dlsym(blas, "cublasGemmEx") && dlsym(blas, "cublasGemmStridedBatchedEx"));
    CHECK_INT(cuda_on_cpu_set("CUBLAS", "0"), 1);
    CHECK(!dlopen("libcublas.so.13", RTLD_NOW));
    text = dlerror();
    CHECK(text && strstr(text, "libcublas.so.13: cannot open"));
    CHECK_INT(cuda_on_cpu_set("CUBLAS", nullptr), 1);
    check_case("dlopen gives NVML, whose devices stand in another order");
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *first = nullptr, *by_address = nullptr;
    CHECK(nvml && dlsym(nvml, "nvmlInit_v2") && !dlsym(nvml, "nvmlNoSuchFunction"));
    auto by_index = (int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    auto find = (int (*)(const char *, void **))dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
    char address[20] = "", cut[20] = "";
    CHECK_INT(cuda_on_cpu_set("DEVICES", "3"), 1);
    CHECK(ok(cudaDeviceGetPCIBusId(address, (int)sizeof address, 2)));
    CHECK_TEXT(address, "0000:12:00.0");
    CHECK(by_index(0, &first) == 0 && find(address, &by_address) == 0 && first == by_address);
    CHECK(by_index(3, &first) != 0 && find("0000:13:00.0", &by_address) != 0 && find("nonsense", &by_address) != 0);
    CHECK_INT(cudaDeviceGetPCIBusId(address, (int)sizeof address, 3), cudaErrorInvalidDevice);
    CHECK_INT(cudaDeviceGetPCIBusId(cut, 12, 0), cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK_INT(cuda_on_cpu_set("DEVICES", nullptr), 1);
    CHECK_INT(cuda_on_cpu_set("NVML", "nvmlInit_v2=9,nvmlDeviceGetHandleByPciBusId_v2"), 1);
    CHECK(!dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2") && dlerror());
    CHECK_INT(((int (*)())dlsym(nvml, "nvmlInit_v2"))(), 9);
    CHECK_INT(cuda_on_cpu_set("NVML", "0"), 1);
    CHECK(!dlopen("libnvidia-ml.so.1", RTLD_NOW) && dlerror());
    CHECK_INT(cuda_on_cpu_set("NVML", nullptr), 1);
    CHECK_INT(dlclose(blas) | dlclose(real) | dlclose(nvml), 0);
}

/* ================================================================================================ devices, launches */
static void test_device() {
    check_case("what a device says of itself");
    cudaDeviceProp p;
    int count = 0, version = 0, value = 0;
    size_t free_bytes = 0, total = 0;
    float *big = nullptr;
    CHECK(ok(cudaGetDeviceCount(&count)) && ok(cudaSetDevice(0)) && ok(cudaGetDeviceProperties(&p, 0)));
    CHECK_INT(count, 1);
    CHECK(strstr(p.name, "emulated") && p.major == 8 && p.minor == 0 && p.multiProcessorCount == 8);
    CHECK_INT(cudaSetDevice(1), cudaErrorInvalidDevice);
    CHECK_INT(cudaGetDeviceProperties(&p, -1), cudaErrorInvalidDevice);
    CHECK(ok(cudaDriverGetVersion(&version)) && version == 13000 && ok(cudaRuntimeGetVersion(&version)) && version == CUDART_VERSION);
    CHECK(ok(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0)) && value == 232448);
    CHECK_TEXT(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    CHECK_TEXT(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
    cudaGetLastError();
    check_case("settings: memory, capability, devices, driver");
    CHECK_INT(cuda_on_cpu_set("MEMORY", "1000000"), 1);
    CHECK(ok(cudaMalloc(&big, 600000)));
    CHECK(ok(cudaMemGetInfo(&free_bytes, &total)) && free_bytes == 400000 && total == 1000000);
    float *more = big;
    CHECK_INT(cudaMalloc(&more, 400001), cudaErrorMemoryAllocation);
    CHECK(more == big); /* left alone */
    CHECK(ok(cudaMalloc(&more, 400000)) && ok(cudaFree(more)) && ok(cudaFree(big)) && ok(cudaFree(nullptr)));
    CHECK_INT(cuda_on_cpu_set("CAPABILITY", "7.5"), 1);
    CHECK(ok(cudaGetDeviceProperties(&p, 0)) && p.major == 7 && p.minor == 5);
    cudaGetLastError();
    CUDA_LAUNCH(k_add, 1, 32, 0, nullptr, (float *)nullptr, (float *)nullptr, 0.0f, 0);
    CHECK_INT(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    CHECK(cuda_on_cpu_set("CAPABILITY", nullptr) && cuda_on_cpu_set("DEVICES", "0"));
    CHECK_INT(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    CHECK_INT(count, 0);
    CHECK_INT(cudaMalloc(&big, 4), cudaErrorNoDevice);
    CHECK(cuda_on_cpu_set("DEVICES", "2") && ok(cudaGetDeviceCount(&count)) && count == 2 && ok(cudaSetDevice(1)) && ok(cudaSetDevice(0)));
    CHECK(cuda_on_cpu_set("DRIVER", "12040") && cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
    CHECK(ok(cudaDriverGetVersion(&version)) && version == 12040);
    CHECK(cuda_on_cpu_set("DRIVER", "0") && cudaSetDevice(0) == cudaErrorInsufficientDriver);
    CHECK_INT(cuda_on_cpu_set("NO_SUCH_SETTING", "1"), 0);
    CHECK_INT(cuda_on_cpu_set("FAIL", "nonsense"), 0);
    cuda_on_cpu_reset(1); /* back to the environment's */
    CHECK(ok(cudaGetDeviceCount(&count)) && count == 1);
}
static __global__ void k_dynamic(float *out, int at) {
    CUDA_DYNAMIC_SHARED(float, s);
    s[at] = 1.0f;
    out[0] = s[at];
}
static void test_launches() {
    struct { dim3 grid, block; size_t shared; int want; } rows[] = {
        { 1, 1024, 0, cudaSuccess }, { 1, 1025, 0, cudaErrorInvalidConfiguration }, { 0, 32, 0, cudaErrorInvalidConfiguration },
        { 1, 0, 0, cudaErrorInvalidConfiguration }, { dim3(1, 65536), 32, 0, cudaErrorInvalidConfiguration }, { 1, dim3(1, 1, 65), 0, cudaErrorInvalidConfiguration },
        { 1, dim3(32, 33), 0, cudaErrorInvalidConfiguration }, { 1, 32, 49152, cudaSuccess }, { 1, 32, 49153, cudaErrorInvalidValue } };
    Device<float> out(1);
    for (const auto &r : rows) {
        check_case("launch of %u,%u blocks of %u,%u,%u threads with %zu bytes gives %d", r.grid.x, r.grid.y, r.block.x, r.block.y, r.block.z, r.shared, r.want);
        CHECK(ok(fill(out.p, 0, 4)));
        CUDA_LAUNCH(k_add, r.grid, r.block, r.shared, nullptr, out.p, out.p, 1.0f, 1);
        CHECK_INT(cudaGetLastError(), r.want);
        CHECK_INT(cudaGetLastError(), cudaSuccess);
        CHECK_NEAR(out.host()[0], r.want == cudaSuccess, 0); /* refused launches do not run */
    }
    check_case("more than 48 KiB of dynamic shared memory, once asked for");
    CHECK_INT(cudaFuncSetAttribute(k_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449), cudaErrorInvalidValue);
    CHECK(ok(cudaFuncSetAttribute(k_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448)));
    cudaGetLastError();
    CUDA_LAUNCH(k_dynamic, 1, 1, 232448, nullptr, out.p, 232448 / 4 - 1);
    CHECK(ok(cudaGetLastError()) && out.host()[0] == 1);
    CUDA_LAUNCH(k_dynamic, 1, 1, 232449, nullptr, out.p, 0);
    CHECK_INT(cudaGetLastError(), cudaErrorInvalidValue);
    check_case("planted: too few blocks leave rows that were never written");
    Device<float> rows_out(256);
    CUDA_LAUNCH(k_add, 3, 64, 0, nullptr, rows_out.p, rows_out.p, 0.0f, 256);
    CHECK(ok(fill(rows_out.p, 0, 64 * 3 * 4)));
    std::vector<float> h = rows_out.host();
    CHECK(h[191] == 0 && h[192] != h[192]);
}

/* ========================================================================================================= faults */
static __global__ void k_turn(float *y, const float *x, int barrier) { /* what another warp wrote */
    __shared__ float s[256];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    if (barrier) __syncthreads();
    y[t] = s[(t + 100) % 256];
}
static __global__ void k_turn_warp(float *y, const float *x, int sync) { /* what another lane wrote */
    __shared__ float s[32];
    unsigned t = threadIdx.x;
    s[t] = x[t];
    if (sync) __syncwarp();
    y[t] = s[(t + 1) % 32];
}
static __global__ void k_last_barrier(float *y, const float *x, int barrier) { /* reads of one round against writes of the next */
    __shared__ float s[256];
    unsigned t = threadIdx.x;
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        s[t] = x[t] * (float)(i + 1);
        __syncthreads();
        sum += s[(t + 100) % 256];
        if (barrier) __syncthreads();
    }
    y[t] = sum;
}
static void test_missing_barriers() {
    std::vector<float> x = ramp(256, 1), turned(256), turned_warp(32), summed(256);
    for (size_t i = 0; i < 256; i++) { turned[i] = x[(i + 100) % 256]; summed[i] = 10 * turned[i]; }
    for (size_t i = 0; i < 32; i++) turned_warp[i] = x[(i + 1) % 32];
    struct { const char *name; void (*kernel)(float *, const float *, int); const std::vector<float> *want; } rows[] = {
        { "__syncthreads after writes", k_turn, &turned }, { "__syncwarp", k_turn_warp, &turned_warp }, { "__syncthreads before writes", k_last_barrier, &summed } };
    for (const auto &r : rows) {
        check_case("planted: no %s", r.name);
        for (int barrier = 0; barrier < 2; barrier++) {
            int right = seeds_right([&] {
                Device<float> in(x), out(r.want->size());
                CUDA_LAUNCH(r.kernel, 1, (unsigned)r.want->size(), 0, nullptr, out.p, in.p, barrier);
                return same(out.host(), *r.want);
            });
            CHECK(barrier ? right == SEEDS : right < SEEDS);
        }
    }
}
/* y = x + w, with one mistake or none; w is what no kernel writes */
enum { GOOD, READS_EARLY, NEVER_WAITS, WRITES_EARLY, WAITS_LATE_IN_SOME };
static __global__ void k_dependent(float *y, const float *x, const float *w, int how) {
    unsigned t = threadIdx.x;
    float v = w[t], early = how == READS_EARLY || (how == WAITS_LATE_IN_SOME && t == 70) ? x[t] : 0.0f;
    cuda_on_cpu_grid_launch_dependents();
    cuda_on_cpu_prefetch(w + t);
    if (how == WRITES_EARLY) y[t] = 0.0f;
    if (how == NEVER_WAITS) return;
    cuda_on_cpu_grid_wait();
    y[t] = v + (how == READS_EARLY || (how == WAITS_LATE_IN_SOME && t == 70) ? early : x[t]);
}
/* reads what the kernel before the kernel before wrote, before it waits */
static __global__ void k_dependent_second(float *y, const float *x, const float *old) {
    unsigned t = threadIdx.x;
    float v = old[t];
    cuda_on_cpu_grid_wait();
    y[t] = v + x[t];
}
static void test_dependents() {
    std::vector<float> x = ramp(128, 1), once(128), twice(128), both(128);
    const char *const names[] = { "as it should be", "reads too early", "never waits", "writes too early", "one thread reads too early" };
    for (size_t i = 0; i < 128; i++) { once[i] = 2 * x[i]; twice[i] = 3 * x[i]; both[i] = 5 * x[i]; }
    setenv("CUDA_ON_CPU_CAPABILITY", "9.0", 1);
    cuda_on_cpu_reset(1);
    for (int how = GOOD; how <= WAITS_LATE_IN_SOME; how++) {
        check_case("dependent launches: %s", names[how]);
        auto run = [&] {
            Device<float> w(x), a(128), b(128);
            cuda_on_cpu::dependent.used = true; /* else what runs before the first such launch is queued is not watched */
            CUDA_LAUNCH(k_dependent, 1, 128, 0, nullptr, a.p, w.p, w.p, GOOD);
            CUDA_LAUNCH_DEPENDENT(k_dependent, 3, 128, 0, nullptr, b.p, a.p, w.p, how);
            return same(a.host(), once) && same(b.host(), twice);
        };
        if (how == NEVER_WAITS) CHECK(dies("k_dependent was launched as a dependent, and a block of it ends without griddepcontrol.wait", run));
        else if (how == WRITES_EARLY) CHECK(dies("writes before griddepcontrol.wait", run));
        else {
            int right = seeds_right(run);
            CHECK(how == GOOD ? right == SEEDS : right == 0);
        }
    }
    for (int early = 0; early < 2; early++) {
        check_case("dependent launches: the kernel before %s", early ? "lets its successor begin before it has waited" : "was launched as any other");
        int right = seeds_right([&] {
            Device<float> w(x), a(128), b(128), c(128);
            cuda_on_cpu::dependent.used = true;
            CUDA_LAUNCH(k_dependent, 1, 128, 0, nullptr, a.p, w.p, w.p, GOOD);
            if (early) CUDA_LAUNCH_DEPENDENT(k_dependent, 1, 128, 0, nullptr, b.p, a.p, w.p, GOOD);
            else CUDA_LAUNCH(k_dependent, 1, 128, 0, nullptr, b.p, a.p, w.p, GOOD);
            CUDA_LAUNCH_DEPENDENT(k_dependent_second, 1, 128, 0, nullptr, c.p, b.p, a.p);
            return same(c.host(), both);
        });
        CHECK(early ? right == 0 : right == SEEDS);
    }
    check_case("dependent launches need capability 9.0");
    unsetenv("CUDA_ON_CPU_CAPABILITY");
    cuda_on_cpu_reset(1);
    {
        Device<float> w(x), a(128);
        CUDA_LAUNCH_DEPENDENT(k_dependent, 1, 128, 0, nullptr, a.p, w.p, w.p, GOOD);
        CHECK_INT(cudaGetLastError(), cudaErrorNotSupported);
    }
}
static __attribute__((noinline)) float deep(float v) {
    volatile float big[100000];
    for (int i = 0; i < 100000; i++) big[i] = v;
    return big[(int)v];
}
static __global__ void k_divergent(float *y, int how) {
    unsigned t = threadIdx.x;
    float v = (float)t;
    if (how == 0) { /* two barriers, half of the threads at each */
        if (t < 32) __syncthreads();
        else
            __syncthreads();
    } else if (how == 1) { /* one lane of a warp shuffles alone, the others are at the barrier */
        if (t == 5) v = __shfl_sync(~0u, v, 0);
        __syncthreads();
    } else if (how == 2) { /* lanes of a warp in different operations */
        if (t % 32 < 16) v = __shfl_xor_sync(~0u, v, 1);
        else v += __shfl_sync(~0u, v, 1);
    } else if (how == 3) { /* the caller is not named */
        v = __shfl_sync(0xffu, v, 0);
    } else if (how == 4) { /* different masks */
        v = __shfl_sync(t % 32 < 16 ? 0xffffffffu : 0xfffffff0u, v, 0);
    } else if (how == 5) { /* too much on the stack */
        v = deep(v);
    }
    y[t] = v;
}
static void test_divergence() {
    static const char *const texts[] = { "different barriers", "deadlock", "different operations", "does not name", "different operations", "stack" };
    for (int how = 0; how < 6; how++) {
        check_case("planted: threads that do not meet, or a full stack (%s)", texts[how]);
        Device<float> out(64);
        CHECK(dies(texts[how], [&] {
            CUDA_LAUNCH(k_divergent, 1, 64, 0, nullptr, out.p, how);
            cudaDeviceSynchronize();
        }));
    }
}
static __global__ void k_touch(float *y, long at, int write) {
    if (write) y[at] = 1.0f;
    else y[0] = y[at];
}
static void test_bounds() {
    static const struct { long at; int write; const char *text; } rows[] = { { 100, 1, "byte 400 of an allocation of 400" }, { 64 + 64, 1, "byte 512" },
        { 64 + 64, 0, "byte 512" }, { 100000, 0, "byte 400000" }, { -1, 1, "before an allocation of 400" }, { -2000, 0, "before an allocation of 400" } };
    for (const auto &r : rows) {
        check_case("planted: a kernel %s element %ld of 100", r.write ? "writes" : "reads", r.at);
        Device<float> a(100);
        CHECK(dies(r.text, [&] {
            CUDA_LAUNCH(k_touch, 1, 1, 0, nullptr, a.p, r.at, r.write);
            cudaDeviceSynchronize();
        }));
    }
    check_case("planted: a kernel writes past its dynamic shared memory");
    Device<float> a(100);
    CHECK(dies("byte 128 of 128 bytes of dynamic shared memory", [&] {
        CUDA_LAUNCH(k_dynamic, 1, 1, 128, nullptr, a.p, 32);
        cudaDeviceSynchronize();
    }));
    check_case("planted: too large copies");
    std::vector<float> h(200);
    CHECK(dies("target", [&] { copy(a.p, h.data(), 404, cudaMemcpyHostToDevice); }));
    CHECK(dies("source", [&] { copy(h.data(), a.p + 1, 400, cudaMemcpyDeviceToHost); }));
    CHECK(dies("overlap", [&] { copy(a.p, a.p + 1, 100, cudaMemcpyDeviceToDevice); }));
}
static void test_wrong_memory() {
    Device<float> a(ramp(64, 0)), b(64);
    std::vector<float> h(64);
    float *pinned = nullptr;
    CHECK(ok(cudaMallocHost(&pinned, 256)));
    check_case("planted: a kernel is given host memory");
    CHECK(dies("kernel k_add: argument 2 is not a device pointer", [&] { CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, b.p, h.data(), 1.0f, 64); }));
    CHECK(dies("argument 1 is not a device pointer", [&] { CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, pinned, a.p, 1.0f, 64); }));
    check_case("planted: a missing copy, the result is NaN");
    CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, b.p, b.p, 1.0f, 64);
    for (float f : b.host()) CHECK(f != f);
    check_case("planted: the host touches device memory");
    CHECK(dies("host code touched device memory", [&] { h[0] = a.p[3]; }));
    CHECK(dies("host code touched device memory", [&] { a.p[3] = 1; }));
    CHECK(dies("host code touched device memory", [&] { float *fresh; cudaMalloc(&fresh, 64); h[0] = fresh[3]; }));
    check_case("planted: the same without protection keys, which few processors have");
    CHECK(dies("host code touched device memory", [&] {
        float *fresh;
        cuda_on_cpu::device_key = -1;
        cudaMalloc(&fresh, 64);
        copy(fresh, h.data(), 64, cudaMemcpyHostToDevice);
        copy(h.data(), fresh, 64, cudaMemcpyDeviceToHost);
        h[0] = fresh[3];
    }));
    check_case("planted: copies whose kind is wrong");
    CHECK(dies("says otherwise", [&] { copy(h.data(), a.p, 16, cudaMemcpyHostToDevice); }));
    CHECK(dies("says otherwise", [&] { copy(a.p, h.data(), 16, cudaMemcpyDeviceToDevice); }));
    CHECK_INT(copy(nullptr, h.data(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    check_case("planted: use after free, in a kernel, a copy, a graph; a second free; a free of something else");
    CHECK(dies("argument 1", [&] { float *p; cudaMalloc(&p, 64); cudaFree(p); CUDA_LAUNCH(k_add, 1, 1, 0, nullptr, p, a.p, 1.0f, 1); }));
    CHECK(dies("source", [&] { float *p; cudaMalloc(&p, 64); cudaFree(p); copy(h.data(), p, 64, cudaMemcpyDeviceToHost); }));
    CHECK(dies("access to freed memory", [&] { float *p; cudaMallocHost(&p, 64); cudaFreeHost(p); h[0] = p[1]; }));
    CHECK(dies("argument 1", [&] {
        float *p;
        Captured c;
        cudaMalloc(&p, 256);
        cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal);
        CUDA_LAUNCH(k_add, 1, 64, 0, c.stream, p, a.p, 1.0f, 64);
        c.end();
        cudaFree(p);
        cudaGraphLaunch(c.executable, c.stream);
        cudaDeviceSynchronize();
    }));
    CHECK(dies("cudaFree", [&] { float *p; cudaMalloc(&p, 64); cudaFree(p); cudaFree(p); }));
    CHECK(dies("cudaFree", [&] { cudaFree(a.p + 1); }));
    CHECK(dies("cudaFree", [&] { cudaFree(pinned); }));
    CHECK(ok(cudaFreeHost(pinned)));
    check_case("host memory that was shared can be given to kernels, within its bounds");
    cuda_on_cpu_share(h.data(), 256);
    CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, h.data(), a.p, 1.0f, 64);
    CHECK_INT(cudaDeviceSynchronize(), 0);
    CHECK(h[0] == 1 && h[63] == 64);
    cuda_on_cpu_unshare(h.data());
    CHECK(dies("argument 1", [&] { CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, h.data(), a.p, 1.0f, 64); }));
    check_case("planted: shared memory addresses that ldmatrix cannot take");
    CHECK(dies("ldmatrix", [&] {
        void (*kernel)(float *) = [](float *) { __shared__ float s[64]; uint32_t r[4]; cuda_on_cpu_ldmatrix_x4(r, s + 1, false); };
        CUDA_LAUNCH(kernel, 1, 32, 0, nullptr, a.p);
        cudaDeviceSynchronize();
    }));
}

/* A program in small: two streams, pinned staging, cuBLAS, a captured graph. Frees all it got, whatever failed. Returns the first error. */
static int workload(float *result) {
    cudaStream_t s = nullptr, copies = nullptr;
    cudaEvent_t uploaded = nullptr, from = nullptr, to = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cublasHandle_t blas = nullptr;
    float *a = nullptr, *b = nullptr, *pinned = nullptr, one = 1, zero = 0, ms = 0;
    int e = 0;
#define TRY(call) if (!e) e = (int)(call)
#define TRY_BLAS(call) if (!e && (call) != CUBLAS_STATUS_SUCCESS) e = 10000
    TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    TRY(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));
    TRY(cudaEventCreate(&from));
    TRY(cudaEventCreate(&to));
    TRY(cudaMalloc(&a, 1024));
    TRY(cudaMalloc(&b, 1024));
    TRY(cudaMallocHost(&pinned, 1024));
    TRY_BLAS(cublasCreate_v2(&blas));
    if (!e) for (int i = 0; i < 256; i++) pinned[i] = i % 17 == 0 ? 2.0f : 0.0f; /* twice the identity, 16 x 16 */
    TRY(cudaMemcpyAsync(a, pinned, 1024, cudaMemcpyHostToDevice, copies));
    TRY(cudaEventRecord(uploaded, copies));
    TRY(cudaEventSynchronize(uploaded));
    TRY(cudaEventRecord(from, s));
    TRY_BLAS(cublasSetStream_v2(blas, s));
    TRY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    const bool captures = !e;
    TRY_BLAS(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, &one, a, CUDA_R_32F, 16, a, CUDA_R_32F, 16, &zero, b, CUDA_R_32F, 16,
                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    if (!e) { CUDA_LAUNCH(k_add, 1, 256, 0, s, a, b, 1.0f, 256); e = cudaGetLastError(); }
    if (captures) {
        int ended = cudaStreamEndCapture(s, &graph);
        if (!e) e = ended;
    }
    TRY(cudaGraphInstantiate(&executable, graph, 0));
    TRY(cudaGraphLaunch(executable, s));
    TRY(cudaMemcpyAsync(pinned, a, 1024, cudaMemcpyDeviceToHost, s));
    TRY(cudaEventRecord(to, s));
    TRY(cudaStreamSynchronize(s));
    TRY(cudaEventElapsedTime(&ms, from, to));
    *result = !e ? pinned[17] + (ms > 0) : 0;
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
    if (blas) cublasDestroy_v2(blas);
    for (cudaEvent_t event : { uploaded, from, to }) if (event) cudaEventDestroy(event);
    if (s) cudaStreamDestroy(s);
    if (copies) cudaStreamDestroy(copies);
    if (pinned) cudaFreeHost(pinned);
    if (a) cudaFree(a);
    if (b) cudaFree(b);
    return e;
}
static void test_fault_switches() {
    static const struct { const char *what; int calls, error; } rows[] = { { "stream", 2, cudaErrorOperatingSystem },
        { "event", 7, cudaErrorInvalidResourceHandle }, { "alloc", 2, cudaErrorMemoryAllocation }, { "host", 1, cudaErrorMemoryAllocation },
        { "copy", 2, cudaErrorUnknown }, { "launch", 1, cudaErrorLaunchOutOfResources }, { "gemm", 1, 10000 }, { "cublas", 1, 10000 },
        { "graph", 4, cudaErrorStreamCaptureInvalidated }, { "sync", 2, cudaErrorLaunchFailure }, { "illegal", 1, cudaErrorIllegalAddress } };
    float result = 0;
    check_case("the workload is right for every seed and frees what it got");
    CHECK_INT(seeds_right([&] { return workload(&result) == 0 && result == 6 && cuda_on_cpu_live() == 0; }), SEEDS);
    for (const auto &r : rows) {
        check_case("fault switch %s: each call fails in its turn, with its error, and nothing is leaked", r.what);
        cuda_on_cpu_reset(1);
        CHECK_INT(workload(&result), 0);
        CHECK_INT(cuda_on_cpu_calls(r.what), r.calls);
        for (int n = 1; n <= r.calls + 1; n++) {
            cuda_on_cpu_reset((uint64_t)n);
            cuda_on_cpu_fail(r.what, n);
            CHECK_INT(workload(&result), n <= r.calls ? r.error : 0);
            CHECK_INT(cuda_on_cpu_live(), 0);
        }
    }
    CHECK_INT(cuda_on_cpu_calls("no such kind"), -1);
    check_case("a sticky error is returned by all later calls");
    Device<float> a(64);
    cuda_on_cpu_reset(1);
    cuda_on_cpu_fail("illegal", 2);
    for (int i = 0; i < 2; i++) CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, a.p, a.p, 1.0f, 64);
    CHECK_INT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_INT(fill(a.p, 0, 4), cudaErrorIllegalAddress);
    CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_INT(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK(ok(cudaDeviceReset()));
    CHECK(ok(fill(a.p, 0, 4)) && ok(cudaDeviceSynchronize()));
    cuda_on_cpu_reset(1);
    CHECK(ok(fill(a.p, 0, 4)));
    check_case("what was queued behind the launch that failed does not run");
    std::vector<float> shared(64, 1.0f);
    cuda_on_cpu_share(shared.data(), 256);
    CHECK_INT(seeds_right([&] {
        cuda_on_cpu_fail("illegal", 1);
        for (int i = 0; i < 2; i++) CUDA_LAUNCH(k_add, 1, 64, 0, nullptr, shared.data(), shared.data(), 1.0f, 64);
        return cudaDeviceSynchronize() == cudaErrorIllegalAddress && shared[0] == 1;
    }), SEEDS);
    cuda_on_cpu_unshare(shared.data());
}
static void test_accounts() {
    char folder[300], path[330];
    check_case("leaks are counted, kind by kind");
    cudaStream_t s = nullptr;
    cudaEvent_t e = nullptr;
    float *p = nullptr, *q = nullptr;
    cublasHandle_t h = nullptr;
    CHECK_INT(cuda_on_cpu_live(), 0);
    CHECK(ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)) && ok(cudaEventCreate(&e)) && ok(cudaMalloc(&p, 4)) && ok(cudaMallocHost(&q, 4)) && !cublasCreate_v2(&h));
    CHECK_INT(cuda_on_cpu_live(), 5);
    CHECK(ok(cudaStreamDestroy(s)) && ok(cudaEventDestroy(e)) && ok(cudaFree(p)) && ok(cudaFreeHost(q)) && !cublasDestroy_v2(h));
    CHECK_INT(cuda_on_cpu_live(), 0);
    check_case("CUDA_ON_CPU_REPORT and CUDA_ON_CPU_FAIL from the environment");
    if (!CHECK(temporary_folder("emulator", folder, sizeof folder))) return;
    snprintf(path, sizeof path, "%s/report", folder);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        float result;
        setenv("CUDA_ON_CPU_REPORT", path, 1);
        setenv("CUDA_ON_CPU_FAIL", "alloc:3,sync:7", 1);
        cuda_on_cpu_reset(1);
        cudaMalloc(&p, 4);
        cudaMalloc(&p, 4);
        if (cudaMalloc(&p, 4) != cudaErrorMemoryAllocation || cudaGetLastError() != cudaErrorMemoryAllocation) _exit(1);
        workload(&result);
        exit(0);
    }
    waitpid(child, nullptr, 0);
    char *text = check_read(path, nullptr);
    CHECK_TEXT(text, "calls: alloc 5 host 1 launch 1 copy 2 event 7 gemm 1 stream 2 sync 2 graph 4 cublas 1 plan 0; live: 2\n");
    free(text);
    unlink(path);
    rmdir(folder);
}

int main() {
    test_coordinates();
    test_shuffles();
    test_butterflies();
    test_exits();
    test_blocks();
    test_order();
    test_poison();
    test_mma();
    test_mma_cuts();
    test_cp_async();
    test_numbers();
    test_copies();
    test_streams();
    test_events();
    test_graphs();
    test_forbidden();
    test_gemm();
    test_lt();
    test_batched();
    test_gemm_refusals();
    test_library();
    test_device();
    test_launches();
    test_missing_barriers();
    test_dependents();
    test_divergence();
    test_bounds();
    test_wrong_memory();
    test_fault_switches();
    test_accounts();
    return check_done("emulator");
}
