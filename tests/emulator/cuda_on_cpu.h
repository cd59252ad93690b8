/* cuda_on_cpu.h - compiles and runs CUDA host and device code on a CPU, to test it where there is no GPU - MIT
 *
 * Include it first in one C++17 source (g++ or clang++, or -include); it stands for cuda_runtime.h, cuda_bf16.h, cublas_v2.h and
 * cublasLt.h, defines CUDA_ON_CPU and needs no CUDA Toolkit. Launches go through CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...), dynamic
 * shared memory through CUDA_DYNAMIC_SHARED(type, name). Functions that contain a __shared__ array must be static and, for g++
 * before 14, no templates (it ignores sections there: no NaN).
 *
 * It is less forgiving than the hardware:
 *   threads   Each thread is a fiber. Warps run in an order drawn from the seed, each as far as it gets, so a missing barrier shows as a wrong
 *             result for some seed. Barriers compare the source line of the threads that meet; one that some never reach is reported.
 *   products  Tensor cores (mma.sync, GEMMs of bf16) add 16 products at a time to the sum so far and cut what does not fit a float, as they do: errors
 *             of long sums point towards 0 and add up.
 *   warps     Shuffles, ldmatrix and mma.sync meet the lanes that the mask names. Values of lanes that have exited are NaN. Sums and maxima
 *             of a warp: butterflies_on_cpu.h.
 *   shared    Static and dynamic shared memory is NaN at the start of each block. cp.async delivers at the wait, its target is NaN until then.
 *   streams   Nothing runs when it is queued, but at a synchronisation that needs it or at random calls. Streams interleave at random. A copy
 *             from pinned memory reads it when it runs; the target of a copy to pinned memory is NaN until then. Mapped pinned memory keeps what
 *             it contains until the kernel that writes there runs.
 *   memory    Fresh device memory is NaN. The host cannot touch device memory; accesses outside an allocation or after cudaFree are reported
 *             (guard pages on both sides; below 256 bytes by AddressSanitizer or, for writes, at the next synchronisation).
 *   arguments Pointers given to kernels, copies and GEMMs must be in live device memory, whole ranges where they are known.
 * Misuse prints one line that starts with "cuda_on_cpu:" and aborts. What CUDA reports as an error code is returned as that code.
 * Not emulated: time (a virtual clock gives each operation a fixed cost), races between blocks (they run one after the other), atomics, streams that
 * wait for each other, events in captured graphs, pointers inside structs passed to kernels, __launch_bounds__; overruns
 * of static shared arrays show only with g++ -fsanitize=address -fsanitize-sections=cuda_shared.
 *
 * The virtual clock. Kernel 3 us + 2 ns a block; GEMM 3 us + its FLOPs at 100 TFLOP/s; copies between host and device 2 us + bytes at 25 GB/s;
 * device copies and memsets 2 us + bytes at 1 TB/s; events nothing. A stream's operations follow each other; an operation starts no earlier
 * than what the host had waited for when it queued it. So an interval between two events is the same for every seed. The host's own work takes
 * no time, but reading VK_HOST_CLOCK takes 400 ns.
 *
 * Programmatic dependent launches (CUDA_LAUNCH_DEPENDENT, capability 9.0): dependent_on_cpu.h.
 *
 * Environment, read at first use and by cuda_on_cpu_reset:
 *   CUDA_ON_CPU_SEED=N          schedule of threads and streams (default 1)
 *   CUDA_ON_CPU_FAIL=KIND:N,... the N-th call of that kind, from 1, does nothing and returns an error:
 *             alloc   cudaMalloc: cudaErrorMemoryAllocation        host    pinned memory: cudaErrorMemoryAllocation
 *             launch  cudaErrorLaunchOutOfResources                copy    copies and memsets: cudaErrorUnknown
 *             event   create, record, elapsed: 400                 stream  create: cudaErrorOperatingSystem
 *             sync    synchronise: 719, sticky                     graph   begin, end, instantiate, upload, launch: 901
 *             cublas  cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED   gemm    products, cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED
 *             plan    what cublasLtMatmul needs: create: CUBLAS_STATUS_ALLOC_FAILED, heuristic: CUBLAS_STATUS_NOT_SUPPORTED
 *             illegal the N-th launch, when it runs: cudaErrorIllegalAddress, sticky
 *   CUDA_ON_CPU_DEVICES=N       number of devices (default 1; 0: cudaErrorNoDevice)
 *   CUDA_ON_CPU_DRIVER=VERSION  driver version, 13000 by default; 0: no driver. Older than the runtime: cudaErrorInsufficientDriver
 *   CUDA_ON_CPU_CAPABILITY=8.0  9.0 has wgmma, TMA and mbarriers; below 8.0 launches give cudaErrorNoKernelImageForDevice
 *   CUDA_ON_CPU_MULTIPROCESSORS=8
 *   CUDA_ON_CPU_PLANT=wgmma     a mistake: products by wgmma forget the sum so far
 *   CUDA_ON_CPU_MEMORY=BYTES    device memory (default 16 GiB)
 *   CUDA_ON_CPU_LOAD=NS         what the first launch of a kernel, the first GEMM of a shape and the first launch of an executable graph that was not
 *                               uploaded cost the host more, in its own time too (default 0): CUDA loads what is used first
 *   CUDA_ON_CPU_HOST_FAST=PPM   how much faster than the device's clock the host's runs (default 0)
 *   CUDA_ON_CPU_CUBLAS=0        dlopen finds no cuBLAS; a function's name: cuBLAS lacks that function (cublasLt's come with it)
 *   CUDA_ON_CPU_NVML=0          dlopen finds no NVML; a function's name: NVML lacks it; NAME=STATUS: it returns that. Several with commas between
 *   CUDA_ON_CPU_CUPTI=WORDS     what libcupti does: cupti_on_cpu.h; default: dlopen finds none
 *   CUDA_ON_CPU_THROTTLE=BITS   the throttle reasons that NVML shows (default 0)
 *   CUDA_LAUNCH_BLOCKING=1      each launch outside of a capture is waited for, so its own call returns its error
 *   CUDA_ON_CPU_REPORT=FILE     at exit appends `calls: alloc N host N launch N copy N event N gemm N stream N sync N graph N cublas N plan N; live: N`
 *
 * For C tests linked next to it:
 *   void cuda_on_cpu_reset(uint64_t seed);                     drops queued work, errors and counts; environment read again, then the seed
 *   int  cuda_on_cpu_set(const char *name, const char *value); one of the settings above, name without CUDA_ON_CPU_; 0 when unknown
 *   void cuda_on_cpu_fail(const char *what, int n);            arms a fault, counting from now; what NULL disarms all
 *   long cuda_on_cpu_calls(const char *what);                  calls of that kind since the last reset; -1 when unknown
 *   unsigned cuda_on_cpu_contexts(void);                       devices that have a context, a bit each; cudaDeviceReset takes it away
 *   int  cuda_on_cpu_live(void);                               allocations, pinned buffers, streams, events, graphs, executable graphs, cuBLAS handles,
 *                                                              cublasLt's descriptors
 *   void cuda_on_cpu_share(void *p, size_t bytes);             host memory that kernels may touch; until cuda_on_cpu_unshare(p) */
#ifndef CUDA_ON_CPU
#define CUDA_ON_CPU 1
#ifndef __cplusplus
#error "cuda_on_cpu.h is C++: compile with g++ or clang++ -x c++ -std=c++17"
#endif
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif
#endif
#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__) && !defined(CUDA_ON_CPU_UCONTEXT)
#define CUDA_ON_CPU_UCONTEXT 1
#endif
#ifdef CUDA_ON_CPU_UCONTEXT
#include <ucontext.h>
#endif

/* ============================================================================================ CUDA's words and types */
#define __global__ __attribute__((unused))
#define __device__ __attribute__((unused))
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* One block runs at a time. The section's bounds let each block start with NaN; `used`: what never writes it may not take it for 0. */
#define __shared__ static __attribute__((used, section("cuda_shared")))
#define CUDA_DYNAMIC_SHARED(type, name) type *name = (type *)cuda_on_cpu::dynamic_shared()
#define CUDA_LAUNCH(kernel, ...) cuda_on_cpu::launch(#kernel, kernel, __VA_ARGS__)
/* the same as a dependent of the kernel before it (programmatic stream serialization) */
#define CUDA_LAUNCH_DEPENDENT(kernel, ...) (cuda_on_cpu::dependent.next = true, cuda_on_cpu::launch(#kernel, kernel, __VA_ARGS__))
#define VK_HOST_CLOCK() cuda_on_cpu_host_clock()
#define CUDART_VERSION 13000

struct uint3 { unsigned x, y, z; };
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_count = 1, unsigned y_count = 1, unsigned z_count = 1) : x(x_count), y(y_count), z(z_count) {}
};
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline float2 make_float2(float x, float y) { return float2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

/* name, number, cudaGetErrorString */
#define CUDA_ON_CPU_ERRORS(X) \
    X(cudaSuccess, 0, "no error") X(cudaErrorInvalidValue, 1, "invalid argument") X(cudaErrorMemoryAllocation, 2, "out of memory") \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument") \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected") X(cudaErrorInvalidDevice, 101, "invalid device ordinal") \
    X(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device") \
    X(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS") \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle") \
    X(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") X(cudaErrorNotReady, 600, "device not ready") \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered") \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch") X(cudaErrorLaunchFailure, 719, "unspecified launch failure") \
    X(cudaErrorNotSupported, 801, "operation not supported") \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing") \
    X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture") \
    X(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream") \
    X(cudaErrorUnknown, 999, "unknown error")
#define CUDA_ON_CPU_ENUM(name, number, text) name = number,
typedef enum cudaError { CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_ENUM) } cudaError_t;
#undef CUDA_ON_CPU_ENUM
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
#define cudaHostAllocMapped 2u
#define cudaStreamNonBlocking 1u
#define cudaEventDisableTiming 2u
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount, l2CacheSize;
};
struct cudaFuncAttributes { size_t sharedSizeBytes; int numRegs; };
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

typedef enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16BF = 14 } cudaDataType;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef enum { CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 } cublasMath_t;
typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t; /* a cublasHandle_t may stand for it */
typedef struct cublasLtDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtPreference *cublasLtMatmulPreference_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct { cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4]; } cublasLtMatmulHeuristicResult_t;
typedef enum { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 } cublasLtEpilogue_t;
typedef enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
} cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
} cublasLtMatmulPreferenceAttributes_t;
enum { CUBLASLT_REDUCTION_SCHEME_NONE = 0, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2, CUBLASLT_REDUCTION_SCHEME_MASK = 7 };

/* ==================================================================================================== state and settings */
namespace cuda_on_cpu {

enum Call { ALLOC, HOST, LAUNCH, COPY, EVENT, GEMM, STREAM, SYNC, GRAPH, CUBLAS, PLAN, ILLEGAL, CALLS };
inline const char *const call_names[CALLS] = { "alloc", "host", "launch", "copy", "event", "gemm", "stream", "sync", "graph", "cublas", "plan", "illegal" };

struct Memory { size_t bytes; unsigned char *pages, *end; bool live, device, mapped; }; /* pages..end: what is mapped, page by page, the bytes at its end */
struct Range { unsigned char *from; size_t bytes; };
struct Settings { bool blocking;
                  uint64_t seed, memory, host_fast, load_ns; int devices, driver, major, minor, multiprocessors; unsigned long long throttle;
                  std::string no_cublas, nvml, cupti, report, planted; };

struct Work { /* what an operation does when it runs */
    uint64_t cost_ns = 0;
    const unsigned char *reads_host = nullptr; /* pinned source, read when it runs */
    size_t reads_bytes = 0;
    virtual ~Work() {}
    virtual void run() = 0;
    virtual bool is_kernel() const { return false; }
    virtual void trace(uint64_t, uint64_t, uint32_t) {} /* into CUPTI's records: its beginning, its end, the call's correlation */
};
struct Operation {
    std::shared_ptr<Work> work; /* or, without work, a record of an event */
    std::shared_ptr<CUevent_st> event;
    uint64_t record = 0; /* the event's n-th record */
    uint64_t earliest_ns = 0;
    uint32_t correlation = 0;
};
struct Capture {
    std::vector<Operation> operations;
    bool invalid = false;
};
} // namespace cuda_on_cpu

struct CUevent_st {
    bool timing = true;
    uint64_t recorded = 0, completed = 0, time_ns = 0;
};
struct CUstream_st {
    std::deque<cuda_on_cpu::Operation> operations;
    uint64_t time_ns = 0;
    std::shared_ptr<cuda_on_cpu::Capture> capture;
};
struct CUgraph_st { std::vector<cuda_on_cpu::Operation> operations; };
struct CUgraphExec_st { std::vector<cuda_on_cpu::Operation> operations; bool uploaded = false; };
struct cublasContext { cudaStream_t stream; void *workspace; size_t workspace_bytes; };
struct cublasLtDesc {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t transposed[2] = { CUBLAS_OP_N, CUBLAS_OP_N };
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    int32_t bias_type = -1;
};
struct cublasLtLayout { cudaDataType type; uint64_t rows, columns; int64_t ld; };
struct cublasLtPreference { uint64_t workspace = 0; uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK, alignment[4] = { 256, 256, 256, 256 }; };

namespace cuda_on_cpu {
struct State {
    std::recursive_mutex lock;
    Settings settings;
    uint64_t random = 1;
    unsigned appetite = 0; /* how often calls run queued work: 0 never, 1 of 8, 1 of 2, always */
    long calls[CALLS] = {}, fail_at[CALLS] = {};
    cudaError_t last = cudaSuccess, sticky = cudaSuccess;
    int device = 0;
    unsigned contexts = 0; /* a bit for each device that has one */
    unsigned char *space = nullptr, *space_next = nullptr, *space_end = nullptr;
    std::map<unsigned char *, Memory> memory; /* by address; freed ones stay, their addresses are never used again */
    uint64_t device_bytes = 0;
    int live_memory = 0;
    std::vector<Range> shared;
    bool open = false, touched = false; /* device memory: accessible; used since its slack was checked */
    CUstream_st legacy;
    std::set<CUstream_st *> streams, retired; /* retired: destroyed with work left */
    std::map<CUevent_st *, std::shared_ptr<CUevent_st>> events;
    std::set<CUgraph_st *> graphs;
    std::set<CUgraphExec_st *> executables;
    std::set<cublasContext *> handles;
    std::set<const void *> descriptors; /* cublasLt's */
    std::set<std::shared_ptr<Capture>> captures;
    std::map<const void *, int> dynamic_shared_limit;
    std::set<std::string> loaded; /* kernels and shapes that were used */
    uint64_t host_ns = 0;
    size_t pending = 0;
    std::string dl_error;
    bool dl_error_set = false;
    struct sigaction old_segv = {}, old_bus = {};
};
inline State *state_pointer = nullptr; /* never freed: work may be pending when the program ends */
inline const char *current_kernel = nullptr;
void start();
inline State &state() {
    if (!state_pointer) start();
    return *state_pointer;
}
inline uint64_t random_state = 1;
inline unsigned random_below(unsigned n) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(((random_state >> 32) * (uint64_t)n) >> 32);
}
void where(char *text, size_t bytes);
[[noreturn]] inline void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
[[noreturn]] inline void fail(const char *format, ...) {
    char text[400], place[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    where(place, sizeof place);
    fflush(stdout);
    fprintf(stderr, "cuda_on_cpu: %s%s\n", text, place);
    fflush(stderr);
    abort();
}
inline int call_index(const char *what) {
    for (int i = 0; i < CALLS; i++) if (strcmp(what, call_names[i]) == 0) return i;
    return -1;
}
inline bool arm(const char *what, size_t length, long n) {
    int i = call_index(std::string(what, length).c_str());
    if (i < 0) return false;
    state_pointer->fail_at[i] = n ? state_pointer->calls[i] + n : 0;
    return true;
}
inline bool set(const char *name, const char *value) {
    Settings &s = state_pointer->settings;
    std::string n = name;
    if (n == "SEED") s.seed = value ? strtoull(value, nullptr, 10) : 1;
    else if (n == "DEVICES") s.devices = value ? atoi(value) : 1;
    else if (n == "DRIVER") s.driver = value ? atoi(value) : CUDART_VERSION;
    else if (n == "LOAD") s.load_ns = value ? strtoull(value, nullptr, 10) : 0;
    else if (n == "HOST_FAST") s.host_fast = value ? strtoull(value, nullptr, 10) : 0;
    else if (n == "MEMORY") s.memory = value ? strtoull(value, nullptr, 10) : (uint64_t)16 << 30;
    else if (n == "CUBLAS") s.no_cublas = value ? value : "";
    else if (n == "NVML") s.nvml = value ? value : "";
    else if (n == "CUPTI") s.cupti = value ? value : "";
    else if (n == "THROTTLE") s.throttle = value ? strtoull(value, nullptr, 0) : 0;
    else if (n == "REPORT") s.report = value ? value : "";
    else if (n == "CAPABILITY") {
        s.major = 8, s.minor = 0;
        if (value && sscanf(value, "%d.%d", &s.major, &s.minor) != 2) return false;
    } else if (n == "PLANT") {
        s.planted = value ? value : "";
        return !value || s.planted == "wgmma";
    } else if (n == "MULTIPROCESSORS") {
        s.multiprocessors = value ? atoi(value) : 8;
        return s.multiprocessors > 0;
    } else if (n == "FAIL") {
        memset(state_pointer->fail_at, 0, sizeof state_pointer->fail_at);
        for (const char *p = value ? value : ""; *p;) {
            const char *colon = strchr(p, ':');
            if (!colon || !arm(p, (size_t)(colon - p), atol(colon + 1))) return false;
            p = strchr(p, ',') ? strchr(p, ',') + 1 : "";
        }
    } else return false;
    if (n == "SEED") {
        random_state = s.seed * 0x9e3779b97f4a7c15ull + 1;
        for (int i = 0; i < 4; i++) random_below(2);
        state_pointer->appetite = random_below(4);
    }
    return true;
}
inline void read_environment() {
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    state_pointer->settings.blocking = blocking && !strcmp(blocking, "1");
    for (const char *name : { "SEED", "DEVICES", "DRIVER", "MEMORY", "LOAD", "HOST_FAST", "CUBLAS", "NVML", "CUPTI",
                              "THROTTLE", "REPORT", "CAPABILITY", "MULTIPROCESSORS", "PLANT", "FAIL" }) {
        const char *value = getenv((std::string("CUDA_ON_CPU_") + name).c_str());
        if (!set(name, value && *value ? value : nullptr)) fail("CUDA_ON_CPU_%s=%s makes no sense", name, value);
    }
}
inline int live() {
    State &s = state();
    return s.live_memory + (int)(s.streams.size() + s.events.size() + s.graphs.size() + s.executables.size() + s.handles.size() +
                                s.descriptors.size());
}
inline void report() {
    State &s = state();
    FILE *f = s.settings.report.empty() ? nullptr : fopen(s.settings.report.c_str(), "a");
    if (!f) return;
    fprintf(f, "calls:");
    for (int i = 0; i < ILLEGAL; i++) fprintf(f, " %s %ld", call_names[i], s.calls[i]);
    fprintf(f, "; live: %d\n", live());
    fclose(f);
}

/* ====================================================================================================== memory
 * All of it, pinned host memory too, is in one reserved stretch of addresses that are used once: [gap][pages, the bytes at their end][gap].
 * Device memory is accessible only while operations run. The bytes before an allocation on its first page and after it up to the next multiple
 * of 256 are slack: poisoned under AddressSanitizer, else filled with a pattern that synchronisations check. */
enum : size_t { PAGE = 4096, BIG_PAGE = (size_t)2 << 20, GAP = (size_t)2 << 20, ALIGN = 256 };
enum : unsigned char { SLACK = 0x5a, FRESH = 0xff };
inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

inline void poison(const void *p, size_t bytes) {
#ifdef CUDA_ON_CPU_ASAN
    ASAN_POISON_MEMORY_REGION(p, bytes);
#else
    (void)p;
    (void)bytes;
#endif
}
inline void unpoison(const void *p, size_t bytes) {
#ifdef CUDA_ON_CPU_ASAN
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
#else
    (void)p;
    (void)bytes;
#endif
}
inline void reserve_space() {
    State &s = *state_pointer;
    for (size_t bytes = (size_t)4 << 40; bytes >= (size_t)1 << 30; bytes /= 2) {
        void *p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) continue;
        s.space = (unsigned char *)p;
        s.space_next = (unsigned char *)round_up((size_t)p + GAP, BIG_PAGE);
        s.space_end = s.space + bytes;
        madvise(p, bytes, MADV_DONTDUMP);
        return;
    }
    fail("no address space for device memory");
}
inline void protect(const Memory &m, bool accessible) {
    if (mprotect(m.pages, (size_t)(m.end - m.pages), accessible ? PROT_READ | PROT_WRITE : PROT_NONE)) fail("mprotect failed");
}
/* Where the processor has protection keys, device memory is opened and closed by a register of this thread; else by its pages, which takes as long as they are many. */
#ifndef PKEY_DISABLE_ACCESS
enum { PKEY_DISABLE_ACCESS = 1 };
inline int pkey_alloc(unsigned, unsigned) { return -1; }
inline int pkey_set(int, unsigned) { return -1; }
inline int pkey_mprotect(void *, size_t, int, int) { return -1; }
#endif
#ifndef SEGV_PKUERR
#define SEGV_PKUERR 4
#endif
inline bool all_watched; /* dependent_on_cpu.h: device memory is read-only, but for pages that were written since */
inline int device_key = pkey_alloc(0, PKEY_DISABLE_ACCESS); /* -1: there is none */
inline void open_device() {
    State &s = state();
    if (s.open) return;
    s.open = true;
    if (device_key >= 0) { pkey_set(device_key, 0); return; }
    all_watched = false;
    for (auto &m : s.memory) if (m.second.live && m.second.device) protect(m.second, true);
}
inline void close_device() {
    State &s = state();
    if (!s.open) return;
    s.open = false;
    if (device_key >= 0) { pkey_set(device_key, PKEY_DISABLE_ACCESS); return; }
    for (auto &m : s.memory) if (m.second.live && m.second.device) protect(m.second, false);
}
inline void *allocate(size_t bytes, bool device) {
    State &s = state();
    size_t used = round_up(bytes, ALIGN), span = round_up(used, used >= BIG_PAGE ? BIG_PAGE : PAGE);
    unsigned char *end = (unsigned char *)round_up((size_t)s.space_next + span, used >= BIG_PAGE ? BIG_PAGE : PAGE), *p = end - used;
    if (end + GAP > s.space_end || used < bytes) return nullptr;
    Memory m = { bytes, (unsigned char *)((size_t)p / PAGE * PAGE), end, true, device, false };
    if (mprotect(m.pages, (size_t)(m.end - m.pages), PROT_READ | PROT_WRITE)) return nullptr;
    if (used >= BIG_PAGE) madvise(m.pages, (size_t)(m.end - m.pages), MADV_HUGEPAGE);
    memset(m.pages, SLACK, (size_t)(p - m.pages));
    memset(p, FRESH, bytes);
    memset(p + bytes, SLACK, used - bytes);
    poison(m.pages, (size_t)(p - m.pages));
    poison(p + bytes, used - bytes);
    if (device && device_key >= 0 && pkey_mprotect(m.pages, (size_t)(m.end - m.pages), PROT_READ | PROT_WRITE, device_key)) fail("pkey_mprotect failed");
    if (device && device_key < 0 && !s.open) protect(m, false);
    all_watched = false;
    s.space_next = end + GAP;
    s.memory[p] = m;
    s.live_memory++;
    if (device) s.device_bytes += bytes;
    return p;
}
/* the first byte of slack that was written to, or NULL; AddressSanitizer has stopped such writes before */
inline const unsigned char *find_written(const unsigned char *p, size_t bytes) {
#ifndef CUDA_ON_CPU_ASAN
    if (bytes && (p[0] != SLACK || memcmp(p, p + 1, bytes - 1))) {
        while (*p == SLACK) p++;
        return p;
    }
#else
    (void)p;
    (void)bytes;
#endif
    return nullptr;
}
inline void check_slack(const unsigned char *p, const Memory &m) { /* needs open device memory */
    const unsigned char *before = find_written(m.pages, (size_t)(p - m.pages)), *behind = find_written(p + m.bytes, (size_t)(m.end - p) - m.bytes);
    if (before) fail("written to %td bytes before an allocation of %zu bytes", p - before, m.bytes);
    if (behind) fail("written to byte %td of an allocation of %zu bytes", behind - p, m.bytes);
}
inline void check_all_slack() {
    State &s = state();
    if (!s.touched) return;
    s.touched = false;
    open_device();
    for (auto &m : s.memory) if (m.second.live) check_slack(m.first, m.second);
}
inline bool release(void *pointer, bool device) {
    State &s = state();
    auto at = s.memory.find((unsigned char *)pointer);
    if (at == s.memory.end() || !at->second.live || at->second.device != device) return false;
    Memory &m = at->second;
    if (device) open_device();
    check_slack(at->first, m);
    unpoison(m.pages, (size_t)(m.end - m.pages));
    if (madvise(m.pages, (size_t)(m.end - m.pages), MADV_DONTNEED)) fail("madvise failed");
    protect(m, false);
    m.live = false;
    s.live_memory--;
    if (device) s.device_bytes -= m.bytes;
    return true;
}
/* the allocation, freed or not, that contains or is nearest below the address */
inline std::map<unsigned char *, Memory>::iterator find_memory(const void *p) {
    State &s = state();
    auto at = s.memory.upper_bound((unsigned char *)p);
    return at == s.memory.begin() ? s.memory.end() : --at;
}
enum Kind { PAGEABLE, PINNED, DEVICE, SHARED, INVALID }; /* of a range; INVALID: in freed memory, or partly outside an allocation */
inline Kind kind_of(const void *pointer, size_t bytes) {
    State &s = state();
    const unsigned char *p = (const unsigned char *)pointer;
    if (p >= s.space && p < s.space_end) {
        auto at = find_memory(p);
        if (at == s.memory.end() || !at->second.live || (size_t)(p - at->first) > at->second.bytes || at->second.bytes - (size_t)(p - at->first) < bytes)
            return INVALID;
        return at->second.device ? DEVICE : PINNED;
    }
    for (const Range &r : s.shared)
        if (p >= r.from && p < r.from + r.bytes) return (size_t)(r.from + r.bytes - p) >= bytes ? SHARED : INVALID;
    return PAGEABLE;
}
inline bool on_device(const void *p, size_t bytes) { Kind k = kind_of(p, bytes); return k == DEVICE || k == SHARED; }

/* the host's memory that kernels may use */
inline bool is_mapped(const void *p) { return kind_of(p, 1) == PINNED && find_memory(p)->second.mapped; }

inline bool kernel_hides; /* dependent_on_cpu.h */
bool begin_watched_write(unsigned char *p); /* dependent_on_cpu.h */
/* says what a wild access hit, for accesses that the processor stopped */
void on_thread_guard(const unsigned char *address);
inline void on_fault(int signal_number, siginfo_t *info, void *) {
    State &s = *state_pointer;
    unsigned char *p = (unsigned char *)info->si_addr;
    if (info->si_code == SEGV_PKUERR) fail("host code touched device memory");
    if (device_key >= 0 && s.open) pkey_set(device_key, 0); /* a handler begins with all keys closed */
    if (p >= s.space && p < s.space_end) {
        auto at = find_memory(p), next = s.memory.upper_bound(p);
        if (kernel_hides && at != s.memory.end() && at->second.live && at->second.device && p < at->second.end)
            fail("a dependent launch writes before griddepcontrol.wait, while the kernel before it may still read");
        if (s.open && at != s.memory.end() && at->second.live && at->second.device && p < at->second.end && begin_watched_write(p)) return;
        if (!s.open && at != s.memory.end() && at->second.live && at->second.device && p < at->second.end) fail("host code touched device memory");
        if (at != s.memory.end() && !at->second.live && p < at->second.end) fail("access to freed memory, byte %td of %zu", p - at->first, at->second.bytes);
        if (next != s.memory.end() && (at == s.memory.end() || next->first - p < p - at->second.end))
            fail("access %td bytes before an allocation of %zu bytes", next->first - p, next->second.bytes);
        if (at != s.memory.end()) fail("access at byte %td of an allocation of %zu bytes", p - at->first, at->second.bytes);
        fail("access to no allocation");
    }
    on_thread_guard(p);
    sigaction(signal_number, signal_number == SIGBUS ? &s.old_bus : &s.old_segv, nullptr); /* not ours: it faults again, for the old handler */
}
inline void catch_faults() {
    State &s = *state_pointer;
    struct sigaction action = {};
    stack_t stack = {}, old = {};
    size_t bytes = (size_t)256 << 10; /* a fault on an overrun stack has no stack left */
    if (sigaltstack(nullptr, &old) == 0 && (old.ss_flags & SS_DISABLE)) {
        stack.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stack.ss_size = bytes;
        if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
    }
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &s.old_segv);
    sigaction(SIGBUS, &action, &s.old_bus);
}
inline void start() {
    state_pointer = new State;
    reserve_space();
    catch_faults();
    read_environment();
    atexit(report);
}
/* ====================================================================================================== threads
 * A lane is a thread of the block that runs; a stack is where a lane that has begun lives. A lane that ends hands its stack to the next lane of
 * its warp that has not begun, so threads that never wait cost one call each. A lane that waits goes straight to another lane of its warp, and
 * to the scheduler only when none can run. */
struct Context { /* where switch_context goes on */
#ifdef CUDA_ON_CPU_UCONTEXT
    ucontext_t *machine;
#else
    void *sp, *bp, *ip;
#endif
#ifdef CUDA_ON_CPU_ASAN
    void *fake;
    const void *bottom;
    size_t bytes;
#endif
};
struct Stack {
    Context context;
    unsigned char *bottom;
    Stack *next_free;
};
struct Late { unsigned char *to; const unsigned char *from; unsigned char bytes[16]; int group; bool taken; }; /* a cp.async under way */
struct Lane {
    Context context;
    uint3 index;
    int group;
    Stack *stack;
    std::vector<Late> late;
    std::vector<uint32_t> unfenced; /* of 16 bytes of shared memory each, that cp.async wrote and no fence.proxy.async followed */
    const uint64_t *barrier;        /* the mbarrier it waits for, .. */
    unsigned parity;                /* .. and the phase that must be over */
};
struct Warp;
struct Meeting { const char *name; void (*finish)(Warp &, uint32_t group); }; /* a warp operation */
struct Product { uint64_t a, b; int group; bool onto; }; /* a wgmma under way */
struct Warp {
    uint32_t alive, ready, fresh, waiting, at_barrier; /* lanes: not ended; able to go on; not begun; in a warp operation; at the barrier */
    uint32_t at_mbarrier, at_grid; /* at_grid: at griddepcontrol.wait */
    std::vector<Product> products; /* wgmma: in order; sums: of all lanes while some are under way */
    std::vector<float> sums;
    float *sums_of[32];
    int product_group;
    bool fenced; /* wgmma.fence came after the last access to the sums */
    Lane *lanes;
    uint32_t mask[32], source[32];
    const Meeting *meeting[32];
    uint64_t in[32], out[32];
    struct { const uint32_t *a, *b; float *c; uint32_t *to; const unsigned char *row; size_t step; int count; } matrix[32]; /* ldmatrix, mma.sync */
};
struct Block {
    uint3 index;
    dim3 dim, grid;
    unsigned threads, warps, alive, arrived;
    uint32_t ready_warps;
    unsigned step; /* to the next lane: 1, or 31 for backwards */
    const char *site_file;
    int site_line;
    unsigned char *shared, *shared_pages;
    size_t shared_bytes, static_bytes;
    void (*call)(const void *);
    const void *arguments;
};
/* The thread that runs: its lane, its warp and its number there. Kept at fixed addresses, and read again after every switch, so that finding the
 * next lane does not wait for the loads that restore a stack. */
struct Running { Lane *lane; Warp *warp; unsigned number; };
inline Lane lanes[1024];
inline Warp warps[32];
inline Block block;
inline Running running;
inline Context scheduler;
inline Stack *free_stacks = nullptr;
inline std::vector<Stack *> stacks;

inline void where(char *text, size_t bytes) {
    text[0] = 0;
    if (running.lane)
        snprintf(text, bytes, " (%s, block %u,%u,%u, thread %u,%u,%u)", current_kernel, block.index.x, block.index.y, block.index.z,
                 running.lane->index.x, running.lane->index.y, running.lane->index.z);
    else if (current_kernel) snprintf(text, bytes, " (%s)", current_kernel);
}
#ifdef CUDA_ON_CPU_ASAN
enum : size_t { STACK_BYTES = (size_t)256 << 10 };
#else
enum : size_t { STACK_BYTES = (size_t)64 << 10 };
#endif
enum : size_t { SHARED_MAX = (size_t)228 << 10, STACK_GUARD = (size_t)1 << 20 };
inline void on_thread_guard(const unsigned char *address) {
    if (block.shared_pages && address >= block.shared_pages && address < block.shared_pages + SHARED_MAX + PAGE)
        fail("access at byte %td of %zu bytes of dynamic shared memory", address - block.shared, block.shared_bytes);
    for (const Stack *s : stacks)
        if (address >= s->bottom - STACK_GUARD && address < s->bottom) fail("a thread needs more than %zu bytes of stack", (size_t)STACK_BYTES);
}

#ifdef CUDA_ON_CPU_UCONTEXT
inline void change_stack(Context *from, Context *to) { swapcontext(from->machine, to->machine); }
#else
#ifdef __AVX512F__
#define CUDA_ON_CPU_MORE_REGISTERS \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", \
    "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CUDA_ON_CPU_MORE_REGISTERS
#endif
/* The compiler keeps what it needs on the stack, because every register counts as changed; a jump, not a return, because processors predict
 * returns by the order of calls. */
inline __attribute__((always_inline)) void change_stack(Context *from, Context *to) {
    asm volatile("lea 1f(%%rip), %%rcx\n\tmov %%rsp, 0(%%rax)\n\tmov %%rbp, 8(%%rax)\n\tmov %%rcx, 16(%%rax)\n\t"
                 "mov 0(%%rdx), %%rsp\n\tmov 8(%%rdx), %%rbp\n\tjmp *16(%%rdx)\n1:"
                 : "+a"(from), "+d"(to)
                 :
                 : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                   "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
                   "st(5)", "st(6)", "st(7)", "memory", "cc" CUDA_ON_CPU_MORE_REGISTERS);
}
#endif
inline __attribute__((always_inline)) void switch_context(Context *from, Context *to) {
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->bytes);
#endif
    change_stack(from, to);
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(running.lane ? running.lane->context.fake : scheduler.fake, nullptr, nullptr);
#endif
}

void thread_loop();
inline void enter_thread() {
#ifdef CUDA_ON_CPU_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    thread_loop();
}
inline Stack *new_stack() {
    unsigned char *p = (unsigned char *)mmap(nullptr, STACK_GUARD + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    Stack *s = new Stack();
    Context &c = s->context;
    if (p == MAP_FAILED || mprotect(p + STACK_GUARD, STACK_BYTES, PROT_READ | PROT_WRITE)) fail("no memory for a thread's stack");
    s->bottom = p + STACK_GUARD;
#ifdef CUDA_ON_CPU_ASAN
    c.bottom = s->bottom;
    c.bytes = STACK_BYTES;
#endif
#ifdef CUDA_ON_CPU_UCONTEXT
    c.machine = new ucontext_t;
    getcontext(c.machine);
    c.machine->uc_stack.ss_sp = s->bottom;
    c.machine->uc_stack.ss_size = STACK_BYTES;
    makecontext(c.machine, enter_thread, 0);
#else
    /* as a function finds it that nothing called; at different distances from a page, or all stacks compete for the same few cache lines */
    c.sp = s->bottom + STACK_BYTES - stacks.size() * 832 % 8192 / 64 * 64 - 8;
    memset(c.sp, 0, 8);
    c.ip = (void *)enter_thread;
#endif
    stacks.push_back(s);
    return s;
}
inline void land(Late &l);
/* makes the lane of the warp that comes after the running one, or the scheduler, what goes on */
inline __attribute__((noinline)) Context *find_next() {
    Warp *w = running.warp;
    uint32_t any = w->ready | w->fresh, bit;
    unsigned n = running.number;
    if (!any) { running.lane = nullptr; return &scheduler; }
    do { n = (n + block.step) & 31; bit = (uint32_t)1 << n; } while (!(any & bit));
    Lane *lane = &w->lanes[n];
    if (w->fresh & bit) {
        Stack *s = free_stacks;
        if (s) free_stacks = s->next_free;
        else s = new_stack();
        lane->stack = s;
        lane->context = s->context;
    }
    w->ready &= ~bit;
    w->fresh &= ~bit;
    running.lane = lane;
    running.number = n;
    return &lane->context;
}
/* the running lane waits: others run until it is ready again */
inline __attribute__((always_inline)) void leave() {
    Warp *w = running.warp;
    Lane *me = running.lane;
    unsigned next = (running.number + block.step) & 31;
    uint32_t ready = w->ready, bit = (uint32_t)1 << next;
    Context *to;
    if (__builtin_expect((ready & bit) != 0, 1)) {
        w->ready = ready ^ bit;
        running.lane = &w->lanes[next];
        running.number = next;
        to = &running.lane->context;
    } else to = find_next();
    switch_context(&me->context, to);
}
inline __attribute__((noinline)) void release_barrier() {
    for (unsigned i = 0; i < block.warps; i++) {
        Warp &w = warps[i];
        if (!w.at_barrier) continue;
        w.ready |= w.at_barrier;
        w.at_barrier = 0;
        block.ready_warps |= (uint32_t)1 << i;
    }
    block.arrived = 0;
}
inline __attribute__((noinline)) void check_site(const char *file, int line) {
    if (!block.arrived) { block.site_file = file; block.site_line = line; }
    else if (line != block.site_line || strcmp(file, block.site_file))
        fail("threads of a block meet at different barriers: %s:%d and %s:%d", block.site_file, block.site_line, file, line);
}
inline __attribute__((always_inline)) void barrier(const char *file, int line) {
    if (__builtin_expect(!block.arrived || line != block.site_line || file != block.site_file, 0)) check_site(file, line);
    if (++block.arrived == block.alive) { release_barrier(); return; }
    running.warp->at_barrier |= (uint32_t)1 << running.number;
    leave();
}
/* all lanes of the group have come */
inline __attribute__((noinline)) void finish_meeting(Warp &w, uint32_t group) {
    unsigned first = (unsigned)__builtin_ctz(group);
    const Meeting *m = w.meeting[first];
    for (uint32_t left = group; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (w.meeting[l] != m || w.mask[l] != w.mask[first])
            fail("lanes of one warp meet in different operations: %s mask %08x and %s mask %08x", m->name, w.mask[first], w.meeting[l]->name, w.mask[l]);
    }
    m->finish(w, group);
    w.waiting &= ~group;
    w.ready |= group;
}
/* The lanes of `mask` meet. Each has put down its values; the last to come finishes for all and goes on. */
inline __attribute__((always_inline)) void meet(const Meeting *meeting, uint32_t mask) {
    Warp *w = running.warp;
    unsigned n = running.number;
    uint32_t bit = (uint32_t)1 << n, group = mask & w->alive, waiting = w->waiting | bit;
    if (__builtin_expect(!(mask & bit), 0)) fail("%s: the mask %08x does not name the calling lane", meeting->name, mask);
    w->waiting = waiting;
    w->meeting[n] = meeting;
    w->mask[n] = mask;
    if (__builtin_expect((waiting & group) == group, 0)) {
        finish_meeting(*w, group);
        w->ready &= ~bit;
        return;
    }
    leave();
}
/* a lane has ended: what waited for the others only can go on */
inline void end_lane() {
    Warp *w = running.warp;
    Lane *me = running.lane;
    for (Late &l : me->late) land(l);
    me->late.clear();
    if (!w->products.empty()) fail("a warp ends with wgmma under way");
    w->alive &= ~((uint32_t)1 << running.number);
    block.alive--;
    for (uint32_t left = w->waiting; left;) {
        unsigned o = (unsigned)__builtin_ctz(left);
        uint32_t group = w->mask[o] & w->alive;
        left &= ~w->mask[o];
        if ((w->waiting & group) == group) finish_meeting(*w, group);
    }
    if (block.arrived && block.arrived == block.alive) release_barrier();
}
/* a cp.async's bytes arrive; wgmma, which reads past the caches of the threads, needs a fence after them */
inline uint16_t unfenced_by[((size_t)228 << 10) / 16]; /* the thread from 1, 0: none */
inline bool any_unfenced;
inline void land(Late &l) {
    size_t at = (size_t)(l.to - block.shared_pages);
    memcpy(l.to, l.taken ? l.bytes : l.from, 16);
    if (at >= SHARED_MAX) return;
    any_unfenced = true;
    unfenced_by[at / 16] = (uint16_t)(running.lane - lanes + 1);
    running.lane->unfenced.push_back((uint32_t)(at / 16));
}
inline void thread_loop() {
    for (;;) {
        Stack *mine = running.lane->stack;
        Warp *w = running.warp;
        running.lane->group = 0;
        block.call(block.arguments);
        end_lane();
        unsigned next = (running.number + block.step) & 31;
        if (w->fresh >> next & 1) {
            w->fresh ^= (uint32_t)1 << next;
            running.lane = &w->lanes[next];
            running.number = next;
            running.lane->stack = mine;
            running.lane->context = mine->context;
            continue;
        }
        mine->next_free = free_stacks;
        free_stacks = mine;
        switch_context(&mine->context, find_next());
    }
}
[[noreturn]] inline void deadlock() {
    for (unsigned i = 0; i < block.threads; i++) {
        Warp &w = warps[i / 32];
        unsigned n = i % 32;
        if (w.at_mbarrier >> n & 1) {
            running.lane = &lanes[i];
            fail("deadlock: waits for phase %u of the mbarrier at byte %td of shared memory", lanes[i].parity,
                 (const unsigned char *)lanes[i].barrier - block.shared);
        }
        if (!(w.waiting >> n & 1)) continue;
        running.lane = &lanes[i];
        fail("deadlock: %s waits for lanes %08x%s", w.meeting[n]->name, w.mask[n] & w.alive & ~w.waiting, w.at_barrier ? " that wait at a barrier" : "");
    }
    fail("deadlock: %u of %u threads wait at the barrier %s:%d", block.arrived, block.alive, block.site_file, block.site_line);
}
extern "C" char cuda_shared_begin[] __asm__("__start_cuda_shared") __attribute__((weak));
extern "C" char cuda_shared_end[] __asm__("__stop_cuda_shared") __attribute__((weak));
/* memset, but over the redzones that g++ -fsanitize-sections=cuda_shared puts between the arrays */
inline void spoil(char *p, size_t bytes) {
#if defined(CUDA_ON_CPU_ASAN) && defined(__x86_64__)
    asm volatile("rep stosb" : "+D"(p), "+c"(bytes) : "a"(FRESH) : "memory");
#else
    if (bytes) memset(p, FRESH, bytes);
#endif
}
inline void *dynamic_shared() { return block.shared; }
inline bool at_once; /* butterflies_on_cpu.h */

/* ---------------------------------------------------------------- mbarriers and bulk copies (TMA)
 * An mbarrier's word: bits 0-19 arrivals that are missing, 20-39 their number, 40-62 bytes that are missing, 63 the phase's parity. A bulk copy
 * arrives at a random time after its start; its target is NaN until then. */
struct TensorMap { const unsigned char *base; uint64_t size[3], stride[2]; uint32_t box[3]; uint32_t swizzle; };
struct Bulk { TensorMap map; int at[3]; unsigned char *to; uint64_t *barrier; };
inline std::vector<Bulk> bulk;
inline void begin_bulk() {
    bulk.clear();
    if (any_unfenced) memset(unfenced_by, 0, sizeof unfenced_by);
    any_unfenced = false;
    for (unsigned i = 0; i < block.threads; i++) lanes[i].unfenced.clear();
}
inline void check_mbarrier(const uint64_t *b) {
    if ((uintptr_t)b % 8 || (const unsigned char *)b < block.shared || (const unsigned char *)b >= block.shared + block.shared_bytes)
        fail("an mbarrier must lie in shared memory, at a multiple of 8");
    if (*b == ~(uint64_t)0) fail("an mbarrier is used before its init");
}
inline void wake() {
    for (unsigned i = 0; i < block.warps; i++)
        for (uint32_t left = warps[i].at_mbarrier; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            const Lane &lane = warps[i].lanes[l];
            if ((unsigned)(*lane.barrier >> 63) == lane.parity) continue;
            warps[i].at_mbarrier &= ~((uint32_t)1 << l);
            warps[i].ready |= (uint32_t)1 << l;
            block.ready_warps |= (uint32_t)1 << i;
        }
}
/* `arrivals` fewer are missing, `bytes` more or fewer */
inline void change_mbarrier(uint64_t *b, unsigned arrivals, int64_t bytes) {
    uint64_t pending, expected, tx, phase;
    check_mbarrier(b);
    pending = *b & 0xfffff, expected = *b >> 20 & 0xfffff, tx = *b >> 40 & 0x7fffff, phase = *b >> 63;
    if (arrivals > pending) fail("more threads arrive at an mbarrier than its count");
    pending -= arrivals;
    tx = (tx + (uint64_t)bytes) & 0x7fffff;
    if (!pending && !tx) { pending = expected; phase ^= 1; }
    *b = pending | expected << 20 | tx << 40 | phase << 63;
    wake();
}
/* where byte `offset` of a tile whose rows have 128 bytes is: bits 4-6 of the address exchanged by its bits 7-9 */
inline size_t swizzled(size_t address) { return address ^ ((address >> 7 & 7) << 4); }
inline size_t bytes_of(const Bulk &b) { return (size_t)2 * b.map.box[0] * b.map.box[1] * b.map.box[2]; }
inline void deliver(size_t index) {
    Bulk b = bulk[index];
    const TensorMap &m = b.map;
    size_t to = (size_t)(b.to - block.shared_pages), row_bytes = (size_t)m.box[0] * 2;
    bulk.erase(bulk.begin() + (long)index);
    for (uint32_t z = 0; z < m.box[2]; z++)
        for (uint32_t y = 0; y < m.box[1]; y++, to += row_bytes)
            for (uint32_t x = 0; x < m.box[0]; x += 8) {
                unsigned char *out = block.shared_pages + (m.swizzle ? swizzled(to + 2 * x) : to + 2 * x);
                for (uint32_t i = 0; i < 8; i++) {
                    int64_t at[3] = { b.at[0] + (int64_t)(x + i), b.at[1] + (int64_t)y, b.at[2] + (int64_t)z };
                    bool inside = true;
                    for (int d = 0; d < 3; d++) inside = inside && at[d] >= 0 && at[d] < (int64_t)m.size[d];
                    memset(out + 2 * i, 0, 2);
                    if (inside) memcpy(out + 2 * i, m.base + 2 * at[0] + (int64_t)m.stride[0] * at[1] + (int64_t)m.stride[1] * at[2], 2);
                }
            }
    change_mbarrier(b.barrier, 0, -(int64_t)(row_bytes * m.box[1] * m.box[2]));
}

} // namespace cuda_on_cpu
struct alignas(64) CUtensorMap { uint64_t opaque[16]; };
#define __grid_constant__
namespace cuda_on_cpu {
inline Bulk new_bulk(void *shared_to, const CUtensorMap *map, int x, int y, int z, const uint64_t *barrier) {
    Bulk b = { {}, { x, y, z }, (unsigned char *)shared_to, (uint64_t *)(uintptr_t)barrier };
    memcpy(&b.map, map, sizeof b.map);
    if ((uintptr_t)shared_to % (b.map.swizzle ? 1024 : 128)) fail("a bulk copy's target is not aligned");
    if (b.to < block.shared || b.to + bytes_of(b) > block.shared + block.shared_bytes) fail("a bulk copy's target leaves shared memory");
    if (!on_device(b.map.base, 1)) fail("a bulk copy's tensor lies in no live device memory");
    check_mbarrier(barrier);
    return b;
}
} // namespace cuda_on_cpu
#include "dependent_on_cpu.h"
namespace cuda_on_cpu {
inline void begin_block() {
    spoil(cuda_shared_begin, block.static_bytes);
    if (block.shared_bytes) memset(block.shared, FRESH, block.shared_bytes);
    block.alive = block.threads;
    block.arrived = 0;
    block.step = random_below(2) ? 1 : 31;
    block.ready_warps = block.warps == 32 ? ~(uint32_t)0 : ((uint32_t)1 << block.warps) - 1;
    for (unsigned i = 0; i < block.warps; i++) {
        unsigned n = block.threads - i * 32;
        Warp &w = warps[i];
        w.alive = w.fresh = n >= 32 ? ~(uint32_t)0 : ((uint32_t)1 << n) - 1;
        w.ready = w.waiting = w.at_barrier = w.at_mbarrier = w.at_grid = 0;
        w.products.clear();
        w.product_group = 0;
        w.fenced = false;
    }
    begin_bulk();
}
/* a drawn one of the warps that can go on, as far as it gets; false: none can */
inline bool run_warp() {
    uint32_t ready = block.ready_warps, part;
    if (!ready) return false;
    part = ready & ~(((uint32_t)1 << random_below(block.warps)) - 1);
    unsigned n = (unsigned)__builtin_ctz(part ? part : ready);
    block.ready_warps &= ~((uint32_t)1 << n);
    if (!(warps[n].ready | warps[n].fresh)) return true;
    running.warp = &warps[n];
    running.number = random_below(32);
    switch_context(&scheduler, find_next());
    return true;
}
inline void run_block() {
    hide();
    begin_block();
    while (block.alive) {
        if (!bulk.empty() && (!block.ready_warps || !random_below(4))) { deliver(random_below((unsigned)bulk.size())); continue; }
        if (run_warp() || end_grid_wait()) continue;
        deadlock();
    }
    end_dependent_block();
}
/* AddressSanitizer wants to know the stack of the thread that calls CUDA */
inline void prepare_scheduler() {
#ifdef CUDA_ON_CPU_ASAN
    static thread_local void *bottom = nullptr;
    static thread_local size_t bytes = 0;
    pthread_attr_t attributes;
    if (!bytes && !pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &bottom, &bytes);
        pthread_attr_destroy(&attributes);
    }
    scheduler.bottom = bottom;
    scheduler.bytes = bytes;
#endif
#ifdef CUDA_ON_CPU_UCONTEXT
    if (!scheduler.machine) scheduler.machine = new ucontext_t;
#endif
}
inline void prepare_shared(size_t bytes) {
    if (!block.shared_pages) {
        void *p = mmap(nullptr, SHARED_MAX + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect((char *)p + SHARED_MAX, PAGE, PROT_NONE)) fail("no memory for shared memory");
        block.shared_pages = (unsigned char *)p;
    }
    unpoison(block.shared_pages, SHARED_MAX);
    block.shared = block.shared_pages + SHARED_MAX - round_up(bytes, 128);
    block.shared_bytes = bytes;
    block.static_bytes = (size_t)((uintptr_t)cuda_shared_end - (uintptr_t)cuda_shared_begin);
    poison(block.shared_pages, SHARED_MAX - round_up(bytes, 128));
    poison(block.shared + bytes, round_up(bytes, 128) - bytes);
}
inline void place_block(size_t b) {
    const dim3 &grid = block.grid;
    block.index = uint3{(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
}
inline void run_grid(const char *name, dim3 grid, dim3 dim, size_t shared_bytes, void (*call)(const void *), const void *arguments) {
    uint64_t count = (uint64_t)grid.x * grid.y * grid.z, first = random_below((unsigned)(count > 0xffffffffu ? 0xffffffffu : count));
    bool down = random_below(2);
    at_once = random_below(8) != 0;
    current_kernel = name;
    prepare_scheduler();
    prepare_shared(shared_bytes);
    block.call = call;
    block.arguments = arguments;
    block.threads = dim.x * dim.y * dim.z;
    block.warps = (block.threads + 31) / 32;
    block.dim = dim;
    block.grid = grid;
    for (unsigned t = 0; t < block.threads; t++) {
        Lane &l = lanes[t];
        warps[t / 32].lanes = &lanes[t / 32 * 32];
        l.index = uint3{t % dim.x, t / dim.x % dim.y, t / (dim.x * dim.y)};
    }
    for (uint64_t i = 0; i < count; i++) { /* in a drawn order: no block may rely on another */
        place_block((size_t)((first + (down ? count - i : i)) % count));
        run_block();
    }
    current_kernel = nullptr;
}

/* ----------------------------------------------------------------- what a finished meeting does */
inline void finish_nothing(Warp &, uint32_t) {}
inline void finish_gather(Warp &w, uint32_t group) { /* a lane that has exited, or is not in the mask, has no value to give */
    if (group == ~(uint32_t)0) { for (unsigned l = 0; l < 32; l++) w.out[l] = w.in[w.source[l]]; return; }
    for (unsigned l = 0; l < 32; l++) if (group >> l & 1) w.out[l] = group >> w.source[l] & 1 ? w.in[w.source[l]] : ~(uint64_t)0;
}
#if defined(__clang__)
#define CUDA_ON_CPU_UNROLL _Pragma("clang loop unroll(full)")
#define CUDA_ON_CPU_FAST __attribute__((no_sanitize("address", "undefined")))
#else
#define CUDA_ON_CPU_UNROLL _Pragma("GCC unroll 16")
#define CUDA_ON_CPU_FAST __attribute__((optimize("O3"), no_sanitize("address"), no_sanitize("undefined")))
#endif
typedef float V4 __attribute__((vector_size(16)));
typedef float V8 __attribute__((vector_size(32)));
typedef float V16 __attribute__((vector_size(64)));
inline float bf16_float(uint32_t b) { uint32_t u = b << 16; float f; memcpy(&f, &u, 4); return f; }
inline void check_counts(const Warp &w, uint32_t group, const char *name) {
    if (group != ~(uint32_t)0) fail("%s: lanes of the warp have exited", name);
    for (unsigned l = 1; l < 32; l++) if (w.matrix[l].count != w.matrix[0].count) fail("%s: the lanes want different numbers of them", name);
}
/* matrix m's rows are given by lanes 8 m to 8 m + 7; lane l gets row l / 4, columns l % 4 * 2 and + 1 */
CUDA_ON_CPU_FAST inline void finish_ldmatrix(Warp &w, uint32_t group) {
    check_counts(w, group, "ldmatrix");
    for (int x = 0; x < w.matrix[0].count; x++) {
        for (unsigned l = 0; l < 32; l++) {
            for (unsigned m = 0; m < 4; m++) {
                unsigned i = l / 4, j = l % 4 * 2, first = m * 8 + (w.in[l] ? j : i);
                const unsigned char *row = w.matrix[first].row + (size_t)x * w.matrix[first].step;
                uint16_t e[2];
                if (w.in[l]) {
                    memcpy(&e[0], row + 2 * i, 2);
                    memcpy(&e[1], w.matrix[first + 1].row + (size_t)x * w.matrix[first + 1].step + 2 * i, 2);
                } else memcpy(e, row + 2 * j, 4);
                w.matrix[l].to[4 * x + (int)m] = e[0] | (uint32_t)e[1] << 16;
            }
        }
    }
}
/* *a += *b, rounded towards 0 */
template <class V> CUDA_ON_CPU_FAST inline __attribute__((always_inline)) void add_towards_zero(V *a, const V *b) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
    V s = *a + *b, t = s - *a, rest = (*a - (s - t)) + (*b - t), zero = V{};
    auto away = ((s > zero) & (rest < zero)) | ((s < zero) & (rest > zero)), bits = away; /* -1 where the nearest float is further from 0 */
    memcpy(&bits, &s, sizeof s);
    bits += away;
    memcpy(a, &bits, sizeof s);
}
enum { MMA_MOST = 8 /* products of one meeting */, MMA_DEPTH = 16 };
/* c [16][8 count] += a [16][16] b [16][8 count] */
template <class V> CUDA_ON_CPU_FAST inline __attribute__((always_inline)) void multiply(float (*c)[8 * MMA_MOST], float (*a)[16], float (*b)[8 * MMA_MOST], int count) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
    enum { LANES = sizeof(V) / 4, VECTORS = 8 / LANES };
    for (int m = 0; m < 16; m++) {
        for (int n = 0; n < count * VECTORS; n++) {
            V sum, x, products = V{};
            memcpy(&sum, &c[m][n * LANES], sizeof sum);
            CUDA_ON_CPU_UNROLL
            for (int k = 0; k < MMA_DEPTH; k++) {
                memcpy(&x, &b[k][n * LANES], sizeof x);
                V product = x * a[m][k];
                products += product;
            }
            add_towards_zero(&sum, &products);
            memcpy(&c[m][n * LANES], &sum, sizeof sum);
        }
    }
}
CUDA_ON_CPU_FAST inline void multiply_128(float (*c)[8 * MMA_MOST], float (*a)[16], float (*b)[8 * MMA_MOST], int count) { multiply<V4>(c, a, b, count); }
#if defined(__x86_64__)
CUDA_ON_CPU_FAST __attribute__((target("avx2"))) inline void multiply_256(float (*c)[8 * MMA_MOST], float (*a)[16], float (*b)[8 * MMA_MOST], int count) {
    multiply<V8>(c, a, b, count);
}
#endif
/* fragments as the PTX manual lays them out for m16n8k16 with 16-bit operands */
CUDA_ON_CPU_FAST inline void finish_mma(Warp &w, uint32_t group) {
    float a[16][16], b[16][8 * MMA_MOST], c[16][8 * MMA_MOST];
    int count = w.matrix[0].count;
    check_counts(w, group, "mma.sync");
    for (unsigned l = 0; l < 32; l++) {
        const uint32_t *from_a = w.matrix[l].a, *from_b = w.matrix[l].b;
        const float *from_c = w.matrix[l].c;
        for (unsigned i = 0; i < 4; i++)
            for (unsigned j = 0; j < 2; j++) a[l / 4 + (i & 1) * 8][l % 4 * 2 + j + (i >> 1) * 8] = bf16_float(from_a[i] >> 16 * j & 0xffff);
        for (unsigned x = 0; x < (unsigned)count; x++) {
            for (unsigned i = 0; i < 2; i++)
                for (unsigned j = 0; j < 2; j++) b[l % 4 * 2 + j + i * 8][x * 8 + l / 4] = bf16_float(from_b[2 * x + i] >> 16 * j & 0xffff);
            for (unsigned i = 0; i < 4; i++) c[l / 4 + (i >> 1) * 8][x * 8 + l % 4 * 2 + (i & 1)] = from_c[4 * x + i];
        }
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) multiply_256(c, a, b, count);
    else
#endif
        multiply_128(c, a, b, count);
    for (unsigned l = 0; l < 32; l++)
        for (unsigned x = 0; x < (unsigned)count; x++)
            for (unsigned i = 0; i < 4; i++) w.matrix[l].c[4 * x + i] = c[l / 4 + (i >> 1) * 8][x * 8 + l % 4 * 2 + (i & 1)];
}
/* ----------------------------------------------------------------- wgmma m64n256k16, a warp's 16 rows of it
 * Operands are read at a random time between the instruction and the wait for its group; the sums are NaN from the first of them to the wait for
 * the last. */
enum { WGMMA_COLUMNS = 256 };
/* 8 values of row `row`, from column 8 * half of 16 on, through a descriptor: K-major, 128-byte swizzle or none */
inline void wgmma_read(uint64_t descriptor, unsigned row, unsigned half, float *out, size_t step) {
    size_t at = (size_t)(descriptor & 0x3fff) << 4, rows_8 = (size_t)(descriptor >> 32 & 0x3fff) << 4;
    unsigned mode = (unsigned)(descriptor >> 62);
    uint16_t e[8];
    at += row / 8 * rows_8 + row % 8 * 128 + 16 * half;
    if (mode == 1) at = swizzled(at);
    else if (mode) fail("wgmma: a descriptor with swizzle mode %u", mode);
    if (at + 16 > SHARED_MAX) fail("wgmma: a descriptor leads out of shared memory");
    if (unfenced_by[at / 16]) fail("wgmma reads what thread %u wrote without fence.proxy.async", unfenced_by[at / 16] - 1u);
    memcpy(e, block.shared_pages + at, 16);
    for (unsigned i = 0; i < 8; i++) out[i * step] = bf16_float(e[i]);
}
CUDA_ON_CPU_FAST inline void wgmma_execute(Warp &w, const Product &p) {
    enum { AT_ONCE = 8 * MMA_MOST };
    float a[16][16], b[16][AT_ONCE], c[16][AT_ONCE];
    unsigned first = (unsigned)(&w - warps) % 4 * 16;
    for (unsigned r = 0; r < 16; r++) for (unsigned h = 0; h < 2; h++) wgmma_read(p.a, first + r, h, &a[r][8 * h], 1);
    for (unsigned n = 0; n < WGMMA_COLUMNS; n += AT_ONCE) {
        for (unsigned r = 0; r < AT_ONCE; r++) for (unsigned h = 0; h < 2; h++) wgmma_read(p.b, n + r, h, &b[8 * h][r], AT_ONCE);
        for (unsigned l = 0; l < 32; l++)
            for (unsigned x = 0; x < AT_ONCE / 8; x++)
                for (unsigned i = 0; i < 4; i++)
                    c[l / 4 + (i >> 1) * 8][x * 8 + l % 4 * 2 + (i & 1)] = p.onto ? w.sums[l * 128 + (n / 8 + x) * 4 + i] : 0.0f;
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2")) multiply_256(c, a, b, MMA_MOST);
        else
#endif
            multiply_128(c, a, b, MMA_MOST);
        for (unsigned l = 0; l < 32; l++)
            for (unsigned x = 0; x < AT_ONCE / 8; x++)
                for (unsigned i = 0; i < 4; i++) w.sums[l * 128 + (n / 8 + x) * 4 + i] = c[l / 4 + (i >> 1) * 8][x * 8 + l % 4 * 2 + (i & 1)];
    }
}
/* the first `count` products under way */
inline void wgmma_finish(Warp &w, size_t count) {
    for (size_t i = 0; i < count; i++) wgmma_execute(w, w.products[i]);
    w.products.erase(w.products.begin(), w.products.begin() + (long)count);
}
inline void finish_wgmma(Warp &w, uint32_t group) {
    Product p = { w.in[0], w.out[0], w.product_group, w.matrix[0].count != 0 };
    check_counts(w, group, "wgmma");
    for (unsigned l = 0; l < 32; l++) if (w.in[l] != w.in[0] || w.out[l] != w.out[0]) fail("wgmma: the lanes have different descriptors");
    if (w.sums.empty()) {
        if (!w.fenced) fail("wgmma: no wgmma.fence since the sums were touched");
        w.sums.resize(32 * 128);
        for (unsigned l = 0; l < 32; l++) {
            w.sums_of[l] = w.matrix[l].c;
            memcpy(&w.sums[l * 128], w.matrix[l].c, 128 * sizeof(float));
            memset(w.matrix[l].c, FRESH, 128 * sizeof(float));
        }
    }
    w.products.push_back(p);
    if (!random_below(4)) wgmma_finish(w, 1 + random_below((unsigned)w.products.size()));
}
inline void finish_wgmma_wait(Warp &w, uint32_t group) {
    size_t over = 0;
    check_counts(w, group, "wgmma.wait_group");
    while (over < w.products.size() && w.products[over].group < w.product_group - w.matrix[0].count) over++;
    wgmma_finish(w, over);
    if (!w.products.empty() || w.sums.empty()) return;
    for (unsigned l = 0; l < 32; l++) memcpy(w.sums_of[l], &w.sums[l * 128], 128 * sizeof(float));
    w.sums.clear();
    w.fenced = false;
}
inline void finish_wgmma_fence(Warp &w, uint32_t) { w.fenced = true; }
inline void finish_wgmma_commit(Warp &w, uint32_t) { w.product_group++; }
inline const Meeting meet_wgmma = { "wgmma.mma_async", finish_wgmma }, meet_wgmma_wait = { "wgmma.wait_group", finish_wgmma_wait },
    meet_wgmma_fence = { "wgmma.fence", finish_wgmma_fence }, meet_wgmma_commit = { "wgmma.commit_group", finish_wgmma_commit };
inline const Meeting meet_warp = { "__syncwarp", finish_nothing }, meet_index = { "__shfl_sync", finish_gather },
    meet_xor = { "__shfl_xor_sync", finish_gather },
    meet_ldmatrix = { "ldmatrix", finish_ldmatrix }, meet_mma = { "mma.sync", finish_mma };
template <class T> inline __attribute__((always_inline)) T shuffle(const Meeting *meeting, uint32_t mask, T value, unsigned source) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "shuffles take values of up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    running.warp->in[running.number] = bits;
    running.warp->source[running.number] = source;
    meet(meeting, mask);
    memcpy(&value, &running.warp->out[running.number], sizeof value);
    return value;
}
} // namespace cuda_on_cpu

/* ============================================================================================ device code's functions */
#define threadIdx (cuda_on_cpu::running.lane->index)
#define blockIdx (cuda_on_cpu::block.index)
#define blockDim (cuda_on_cpu::block.dim)
#define gridDim (cuda_on_cpu::block.grid)
inline __attribute__((always_inline)) void __syncthreads(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { cuda_on_cpu::barrier(file, line); }
inline __attribute__((always_inline)) void __syncwarp(unsigned mask = ~0u) { cuda_on_cpu::meet(&cuda_on_cpu::meet_warp, mask); }
template <class T> inline __attribute__((always_inline)) T __shfl_sync(unsigned mask, T v, int from) {
    return cuda_on_cpu::shuffle(&cuda_on_cpu::meet_index, mask, v, (unsigned)from & 31);
}
template <class T> inline __attribute__((always_inline)) T __shfl_xor_sync(unsigned mask, T v, int bits) {
    return cuda_on_cpu::shuffle(&cuda_on_cpu::meet_xor, mask, v, (cuda_on_cpu::running.number ^ (unsigned)bits) & 31);
}
#include "butterflies_on_cpu.h"
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned by) {
    const uint64_t both = (uint64_t)y << 32 | x;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; i++) out |= (unsigned)(both >> (8 * (by >> (4 * i) & 7)) & 255) << (8 * i);
    return out;
}
inline float __fdividef(float x, float y) { return x / y; }
template <class T> inline T __ldcs(const T *p) { return *p; }
template <class T> inline T __ldcg(const T *p) { return *p; }
struct __nv_bfloat16 { unsigned short bits; };
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    unsigned u = __float_as_uint(f);
    return __nv_bfloat16{(unsigned short)(f == f ? (u + 0x7fffu + (u >> 16 & 1u)) >> 16 : 0x7fffu)};
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }

/* `count` ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16: row is this lane's 16-byte row of the first, the others' follow step_bytes apart */
inline void cuda_on_cpu_ldmatrix_x4_each(uint32_t *r, const void *row, size_t step_bytes, int count, bool transposed) {
    using namespace cuda_on_cpu;
    auto &mine = running.warp->matrix[running.number];
    if ((uintptr_t)row % 16 || step_bytes % 16) fail("ldmatrix: an address is not a multiple of 16");
    running.warp->in[running.number] = transposed;
    mine.to = r, mine.row = (const unsigned char *)row, mine.step = step_bytes, mine.count = count;
    meet(&meet_ldmatrix, ~0u);
}
inline void cuda_on_cpu_ldmatrix_x4(uint32_t r[4], const void *row, bool transposed) { cuda_on_cpu_ldmatrix_x4_each(r, row, 0, 1, transposed); }
/* `count` mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 with the same a: c[i] += a b[2 i, 2 i + 1] */
inline void cuda_on_cpu_mma_bf16_each(float (*c)[4], const uint32_t a[4], const uint32_t *b, int count) {
    using namespace cuda_on_cpu;
    auto &mine = running.warp->matrix[running.number];
    if (count < 1 || count > MMA_MOST) fail("mma.sync: %d of them", count);
    mine.a = a, mine.b = b, mine.c = &c[0][0], mine.count = count;
    meet(&meet_mma, ~0u);
}
inline void cuda_on_cpu_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]) { cuda_on_cpu_mma_bf16_each((float (*)[4])c, a, b, 1); }
/* cp.async.cg.shared.global of 16 bytes, cp.async.commit_group, cp.async.wait_group; the bytes are read now or at the wait */
inline void cuda_on_cpu_cp_async16(void *shared_to, const void *from) {
    using namespace cuda_on_cpu;
    Late l;
    if ((uintptr_t)shared_to % 16 || (uintptr_t)from % 16) fail("cp.async: an address is not a multiple of 16");
    l.to = (unsigned char *)shared_to;
    l.from = (const unsigned char *)from;
    l.group = running.lane->group;
    l.taken = random_below(2);
    if (l.taken) memcpy(l.bytes, from, 16);
    memset(shared_to, FRESH, 16);
    running.lane->late.push_back(l);
}
inline void cuda_on_cpu_cp_async_commit() { cuda_on_cpu::running.lane->group++; }
inline void cuda_on_cpu_cp_async_wait(int groups_left) {
    using namespace cuda_on_cpu;
    std::vector<Late> &late = running.lane->late;
    size_t kept = 0;
    for (Late &l : late) {
        if (l.group < running.lane->group - groups_left) land(l);
        else late[kept++] = l;
    }
    late.resize(kept);
}

/* mbarrier.init, .arrive, .arrive.expect_tx, .try_wait.parity in a loop; fence.proxy.async */
inline void cuda_on_cpu_mbarrier_init(uint64_t *barrier, unsigned count) {
    using namespace cuda_on_cpu;
    *barrier = 0;
    check_mbarrier(barrier);
    *barrier = count | (uint64_t)count << 20;
}
inline void cuda_on_cpu_mbarrier_arrive(uint64_t *barrier) { cuda_on_cpu::change_mbarrier(barrier, 1, 0); }
inline void cuda_on_cpu_mbarrier_expect(uint64_t *barrier, unsigned bytes) {
    cuda_on_cpu::check_mbarrier(barrier);
    *barrier = (*barrier & ~((uint64_t)0x7fffff << 40)) | (((*barrier >> 40) + bytes) & 0x7fffff) << 40;
    cuda_on_cpu::change_mbarrier(barrier, 1, 0);
}
inline void cuda_on_cpu_mbarrier_wait(const uint64_t *barrier, unsigned parity) {
    using namespace cuda_on_cpu;
    check_mbarrier(barrier);
    if ((unsigned)(*barrier >> 63) != parity) return;
    running.lane->barrier = barrier;
    running.lane->parity = parity;
    running.warp->at_mbarrier |= (uint32_t)1 << running.number;
    leave();
}
inline void cuda_on_cpu_grid_wait() {
    using namespace cuda_on_cpu;
    if (!dependent.now || dependent.waited) return;
    running.warp->at_grid |= (uint32_t)1 << running.number;
    leave();
}
inline void cuda_on_cpu_grid_launch_dependents() {
    using namespace cuda_on_cpu;
    dependent.early = dependent.early || (dependent.now && !dependent.waited);
}
/* a hint: of an address that must be there */
inline void cuda_on_cpu_prefetch(const void *p) {
    using namespace cuda_on_cpu;
    if (!on_device(p, 1)) fail("a prefetch reads no live device memory");
}
inline void cuda_on_cpu_fence_proxy_async() {
    using namespace cuda_on_cpu;
    for (uint32_t at : running.lane->unfenced) if (unfenced_by[at] == running.lane - lanes + 1) unfenced_by[at] = 0;
    running.lane->unfenced.clear();
}
/* cp.async.bulk.tensor.3d.shared.global.tile.mbarrier::complete_tx::bytes */
inline void cuda_on_cpu_bulk_3d(void *shared_to, const CUtensorMap *map, int x, int y, int z, uint64_t *barrier) {
    using namespace cuda_on_cpu;
    Bulk b = new_bulk(shared_to, map, x, y, z, barrier);
    memset(b.to, FRESH, bytes_of(b));
    bulk.push_back(b);
}
/* wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16, both operands in shared memory */
inline uint64_t cuda_on_cpu_wgmma_address(const void *p) {
    using namespace cuda_on_cpu;
    return (uint64_t)((const unsigned char *)p - block.shared_pages);
}
inline void cuda_on_cpu_wgmma(float *sums, uint64_t a, uint64_t b, bool onto) {
    using namespace cuda_on_cpu;
    Warp *w = running.warp;
    w->in[running.number] = a;
    w->out[running.number] = b;
    w->matrix[running.number].c = sums;
    w->matrix[running.number].count = onto && state().settings.planted != "wgmma";
    meet(&meet_wgmma, ~0u);
}
inline void cuda_on_cpu_wgmma_fence() { cuda_on_cpu::meet(&cuda_on_cpu::meet_wgmma_fence, ~0u); }
inline void cuda_on_cpu_wgmma_commit() { cuda_on_cpu::meet(&cuda_on_cpu::meet_wgmma_commit, ~0u); }
inline void cuda_on_cpu_wgmma_wait(int groups_left) {
    using namespace cuda_on_cpu;
    running.warp->matrix[running.number].count = groups_left;
    meet(&meet_wgmma_wait, ~0u);
}

/* ============================================================================================== streams and operations */
namespace cuda_on_cpu {
/* taken during every call; the host gets control back with device memory closed */
struct Lock {
    std::lock_guard<std::recursive_mutex> guard;
    explicit Lock(std::recursive_mutex &m) : guard(m) {}
    ~Lock() { close_device(); }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
};

inline cudaError_t result(cudaError_t e) {
    if (e != cudaSuccess) state().last = e;
    return e;
}
inline bool eligible(CUstream_st *t) { return !t->operations.empty(); }
inline void drop_work() {
    State &s = state();
    s.legacy.operations.clear();
    for (auto *set : { &s.streams, &s.retired }) for (CUstream_st *t : *set) t->operations.clear();
    s.pending = 0;
}
inline void step(CUstream_st *t) {
    State &s = state();
    Operation op = std::move(t->operations.front());
    uint64_t begin = t->time_ns > op.earliest_ns ? t->time_ns : op.earliest_ns;
    t->operations.pop_front();
    s.pending--;
    if (op.work) {
        open_device();
        s.touched = true;
        op.work->run();
        if (!op.work->is_kernel()) forget_dependents();
        if (op.correlation) op.work->trace(begin, begin + op.work->cost_ns, op.correlation);
        begin += op.work->cost_ns;
    } else {
        op.event->completed = op.record;
        op.event->time_ns = begin;
    }
    t->time_ns = begin;
    if (s.retired.count(t) && t->operations.empty()) { s.retired.erase(t); delete t; }
    if (s.sticky) drop_work();
}
/* runs one operation: of `wanted` more often than not, else of any stream that can go on; false when there is none */
inline bool step_any(CUstream_st *wanted) {
    State &s = state();
    std::vector<CUstream_st *> able;
    if (wanted && eligible(wanted) && random_below(4)) { step(wanted); return true; }
    if (eligible(&s.legacy)) able.push_back(&s.legacy);
    for (auto *set : { &s.streams, &s.retired }) for (CUstream_st *t : *set) if (eligible(t)) able.push_back(t);
    if (able.empty()) return false;
    step(able[random_below((unsigned)able.size())]);
    return true;
}
inline void drain_some() {
    State &s = state();
    if (!s.pending || !(s.appetite == 3 || (s.appetite && !random_below(s.appetite == 1 ? 8 : 2)))) return;
    for (unsigned n = s.appetite == 3 ? (unsigned)s.pending : 1 + random_below((unsigned)s.pending); n && s.pending; n--) if (!step_any(nullptr)) break;
}
inline void reached(uint64_t ns) { if (ns > state().host_ns) state().host_ns = ns; }
inline cudaError_t finish_stream(CUstream_st *t) {
    State &s = state();
    while (!t->operations.empty()) if (!step_any(t)) fail("a stream waits for what never comes");
    check_all_slack();
    reached(t->time_ns);
    return s.sticky;
}
inline cudaError_t finish_all() {
    State &s = state();
    while (s.pending) if (!step_any(nullptr)) fail("a stream waits for what never comes");
    check_all_slack();
    reached(s.legacy.time_ns);
    for (CUstream_st *t : s.streams) reached(t->time_ns);
    return s.sticky;
}

/* what every call does first: the error it would return without looking at its arguments */
inline cudaError_t enter(bool needs_device = true) {
    State &s = state();
    if (s.settings.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
    if (s.settings.devices <= 0) return cudaErrorNoDevice;
    if (!needs_device) return cudaSuccess;
    s.contexts |= 1u << s.device;
    if (s.sticky) return s.sticky;
    drain_some();
    return s.sticky;
}
inline void wait_for_loading() {
    State &s = state();
    if (!s.settings.load_ns) return;
    usleep((useconds_t)(s.settings.load_ns / 1000));
    s.host_ns += s.settings.load_ns;
}
/* code that is used for the first time */
inline void load(const std::string &code) {
    if (state().loaded.insert(code).second) wait_for_loading();
}
inline void upload(cudaGraphExec_t graph) {
    if (!graph->uploaded) wait_for_loading();
    graph->uploaded = true;
}
/* counts a call; true when this one is to fail */
inline bool counted(Call c) { State &s = state(); return ++s.calls[c] == s.fail_at[c]; }
inline CUstream_st *stream_of(cudaStream_t stream) { /* NULL: not a stream */
    State &s = state();
    if (!stream) return &s.legacy;
    return s.streams.count(stream) ? stream : nullptr;
}
/* calls that no capture allows */
inline bool capture_forbids() {
    for (auto &c : state().captures) c->invalid = true;
    return !state().captures.empty();
}
} // namespace cuda_on_cpu
#include "cupti_on_cpu.h"
namespace cuda_on_cpu {
inline cudaError_t queue(CUstream_st *t, Operation op) {
    State &s = state();
    if (t->capture) {
        if (t->capture->invalid) return cudaErrorStreamCaptureInvalidated;
        t->capture->operations.push_back(op);
        return cudaSuccess;
    }
    op.earliest_ns = s.host_ns;
    op.correlation = cupti_call;
    t->operations.push_back(op);
    s.pending++;
    return cudaSuccess;
}
inline cudaError_t queue_work(CUstream_st *t, std::shared_ptr<Work> work) {
    Operation op;
    op.work = work;
    if (!t->capture) cupti_enter_call();
    return queue(t, op);
}

/* ----------------------------------------------------------------- launches */
template <class... P> struct LaunchWork : Work {
    const char *name;
    void (*kernel)(P...);
    dim3 grid, dim;
    size_t shared_bytes;
    std::tuple<P...> arguments;
    bool illegal, is_dependent;
    LaunchWork(const char *n, void (*k)(P...), dim3 g, dim3 d, size_t s, bool bad, bool depends, P... a)
        : name(n), kernel(k), grid(g), dim(d), shared_bytes(s), arguments(a...), illegal(bad), is_dependent(depends) {
        cost_ns = 3000 + 2 * (uint64_t)g.x * g.y * g.z;
        check();
    }
    template <class T> void check_one(unsigned n, T p) {
        if constexpr (std::is_pointer<T>::value && !std::is_function<typename std::remove_pointer<T>::type>::value) {
            if (p && !on_device((const void *)p, 1) && !is_mapped((const void *)p)) fail("kernel %s: argument %u is not a device pointer", name, n);
        } else { (void)n; (void)p; }
    }
    template <size_t... I> void check_each(std::index_sequence<I...>) { (check_one<P>((unsigned)I + 1, std::get<I>(arguments)), ...); }
    void check() { check_each(std::index_sequence_for<P...>()); }
    bool is_kernel() const override { return true; }
    static void call(const void *work) {
        const LaunchWork *w = (const LaunchWork *)work;
        std::apply(w->kernel, w->arguments);
    }
    void trace(uint64_t begin, uint64_t end, uint32_t correlation) override {
        cupti_kernel("_Z" + std::to_string(strlen(name)) + name + "v", grid, dim, shared_bytes, begin, end, correlation);
    }
    void run() override {
        if (illegal) { state().sticky = cudaErrorIllegalAddress; return; }
        check(); /* again: a graph may be launched long after its capture */
        begin_kernel(is_dependent);
        run_grid(name, grid, dim, shared_bytes, call, this);
        end_kernel();
    }
};
inline cudaError_t check_launch(const void *kernel, dim3 grid, dim3 dim, size_t shared_bytes) {
    State &s = state();
    uint64_t threads = (uint64_t)dim.x * dim.y * dim.z;
    auto limit = s.dynamic_shared_limit.find(kernel);
    if (!threads || threads > 1024 || dim.x > 1024 || dim.y > 1024 || dim.z > 64) return cudaErrorInvalidConfiguration;
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidConfiguration;
    if (shared_bytes > (size_t)(limit == s.dynamic_shared_limit.end() ? 49152 : limit->second)) return cudaErrorInvalidValue;
    return s.settings.major < 8 ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
template <class T> struct Given { typedef T type; }; /* arguments are converted to the kernel's types, as in a call */
template <class... P>
inline void launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 dim, size_t shared_bytes, cudaStream_t stream,
                   typename Given<P>::type... arguments) {
    Lock lock(state().lock);
    bool depends = dependent.next;
    dependent.next = false;
    cudaError_t e = enter();
    if (e) { result(e); return; }
    if (depends && state().settings.major < 9) { result(cudaErrorNotSupported); return; }
    dependent.used = dependent.used || depends;
    if (counted(LAUNCH)) { result(cudaErrorLaunchOutOfResources); return; }
    e = check_launch((const void *)kernel, grid, dim, shared_bytes);
    if (e) { result(e); return; }
    CUstream_st *t = stream_of(stream);
    if (!t) { result(cudaErrorInvalidResourceHandle); return; }
    load(name);
    result(queue_work(t, std::make_shared<LaunchWork<P...>>(name, kernel, grid, dim, shared_bytes, counted(ILLEGAL), depends, arguments...)));
    if (state().settings.blocking && !t->capture) result(finish_stream(t));
}

/* ----------------------------------------------------------------- copies */
struct CopyWork : Work {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    std::vector<unsigned char> taken; /* a pageable source, taken when queued */
    void run() override { memcpy(to, from ? from : taken.data(), bytes); }
    void trace(uint64_t begin, uint64_t end, uint32_t correlation) override { cupti_copy(1, bytes, begin, end, correlation); }
};
struct SetWork : Work {
    unsigned char *to;
    int value;
    size_t bytes;
    void run() override { memset(to, value, bytes); }
    void trace(uint64_t begin, uint64_t end, uint32_t correlation) override { cupti_copy(2, bytes, begin, end, correlation); }
};
inline bool read_by_pending(const unsigned char *p, size_t bytes) {
    State &s = state();
    std::vector<CUstream_st *> all(s.streams.begin(), s.streams.end());
    all.insert(all.end(), s.retired.begin(), s.retired.end());
    all.push_back(&s.legacy);
    for (CUstream_st *t : all)
        for (const Operation &op : t->operations)
            if (op.work && op.work->reads_host && op.work->reads_host < p + bytes && p < op.work->reads_host + op.work->reads_bytes) return true;
    return false;
}
inline void check_copy(const char *call, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    Kind t = kind_of(to, bytes), f = kind_of(from, bytes);
    bool to_device, from_device;
    if (t == INVALID || f == INVALID) fail("%s: %zu bytes at the %s do not lie in one live allocation", call, bytes, t == INVALID ? "target" : "source");
    to_device = t == DEVICE || (t == SHARED && (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice));
    from_device = f == DEVICE || (f == SHARED && (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
    if (to_device != (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice))
        fail("%s: the target is %s memory, the copy's kind says otherwise", call, to_device ? "device" : "host");
    if (from_device != (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice))
        fail("%s: the source is %s memory, the copy's kind says otherwise", call, from_device ? "device" : "host");
    if ((const char *)to < (const char *)from + bytes && (const char *)from < (const char *)to + bytes) fail("%s: source and target overlap", call);
}
inline cudaError_t copy(const char *call, void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    CUstream_st *t = stream_of(stream);
    std::shared_ptr<CopyWork> work = std::make_shared<CopyWork>();
    bool wait = false;
    if (!t) return cudaErrorInvalidResourceHandle;
    if (!bytes) return cudaSuccess;
    if (!to || !from || (int)kind < 1 || (int)kind > 3) return cudaErrorInvalidValue;
    check_copy(call, to, from, bytes, kind);
    work->to = (unsigned char *)to;
    work->from = (const unsigned char *)from;
    work->bytes = bytes;
    work->cost_ns = 2000 + (kind == cudaMemcpyDeviceToDevice ? bytes / 1000 : bytes / 25);
    if (kind == cudaMemcpyHostToDevice) {
        if (kind_of(from, bytes) == PAGEABLE) {
            if (t->capture) { t->capture->invalid = true; return cudaErrorStreamCaptureUnsupported; }
            work->from = nullptr;
            work->taken.assign((const unsigned char *)from, (const unsigned char *)from + bytes);
        } else { work->reads_host = (const unsigned char *)from; work->reads_bytes = bytes; }
    }
    if (kind == cudaMemcpyDeviceToHost) {
        if (kind_of(to, bytes) != PINNED) {
            if (t->capture) { t->capture->invalid = true; return cudaErrorStreamCaptureUnsupported; }
            wait = true;
        } else if (!t->capture && !read_by_pending((unsigned char *)to, bytes)) memset(to, FRESH, bytes);
    }
    cudaError_t e = queue_work(t, work);
    return e || !wait ? e : finish_stream(t);
}
inline cudaError_t fill(void *to, int value, size_t bytes, cudaStream_t stream) {
    CUstream_st *t = stream_of(stream);
    std::shared_ptr<SetWork> work = std::make_shared<SetWork>();
    if (!t) return cudaErrorInvalidResourceHandle;
    if (!bytes) return cudaSuccess;
    if (!on_device(to, bytes)) fail("cudaMemset: %zu bytes do not lie in one live device allocation", bytes);
    work->to = (unsigned char *)to;
    work->value = value;
    work->bytes = bytes;
    work->cost_ns = 2000 + bytes / 1000;
    return queue_work(t, work);
}
inline cudaError_t check_event(cudaEvent_t event, std::shared_ptr<CUevent_st> *out) {
    State &s = state();
    auto at = s.events.find(event);
    if (at == s.events.end()) return cudaErrorInvalidResourceHandle;
    *out = at->second;
    return cudaSuccess;
}
inline cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
    CUstream_st *t = stream_of(stream);
    Operation op;
    cudaError_t e = check_event(event, &op.event);
    if (e) return e;
    if (!t) return cudaErrorInvalidResourceHandle;
    if (t->capture) fail("an event recorded in a capture is not emulated");
    op.record = ++op.event->recorded;
    return queue(t, op);
}
inline cudaError_t wait_for_event(cudaEvent_t event) {
    std::shared_ptr<CUevent_st> ev;
    cudaError_t e = check_event(event, &ev);
    if (e) return e;
    if (capture_forbids()) return cudaErrorStreamCaptureUnsupported;
    uint64_t target = ev->recorded;
    while (ev->completed < target && !state().sticky) if (!step_any(nullptr)) fail("an event waits for what never comes");
    check_all_slack();
    reached(ev->time_ns);
    return state().sticky;
}
inline cudaError_t end_capture(CUstream_st *t, cudaGraph_t *graph) {
    State &s = state();
    std::shared_ptr<Capture> c = t->capture;
    cudaError_t e = cudaSuccess;
    *graph = nullptr;
    if (!c) return cudaErrorIllegalState;
    t->capture.reset();
    s.captures.erase(c);
    if (c->invalid) e = cudaErrorStreamCaptureInvalidated;
    if (e) return e;
    *graph = new CUgraph_st;
    (*graph)->operations = c->operations;
    s.graphs.insert(*graph);
    return cudaSuccess;
}
inline cudaError_t launch_graph(cudaGraphExec_t graph, CUstream_st *t) {
    if (t->capture) { t->capture->invalid = true; return cudaErrorStreamCaptureUnsupported; }
    cupti_enter_call();
    for (Operation op : graph->operations) {
        CopyWork *c = dynamic_cast<CopyWork *>(op.work.get());
        if (c && kind_of(c->to, c->bytes) == PINNED && !read_by_pending(c->to, c->bytes)) memset(c->to, FRESH, c->bytes);
        cudaError_t e = queue(t, op);
        if (e) return e;
    }
    return cudaSuccess;
}
} // namespace cuda_on_cpu

/* ====================================================================================================== runtime API */
extern "C" {
__attribute__((used)) inline void cuda_on_cpu_reset(uint64_t seed) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cuda_on_cpu::drop_work();
    memset(s.calls, 0, sizeof s.calls);
    s.last = s.sticky = cudaSuccess;
    s.host_ns = s.legacy.time_ns = 0;
    for (CUstream_st *t : s.streams) { t->time_ns = 0; t->capture.reset(); }
    for (CUstream_st *t : s.retired) delete t;
    s.retired.clear();
    s.captures.clear();
    s.loaded.clear();
    cuda_on_cpu::cupti = cuda_on_cpu::Cupti();
    cuda_on_cpu::dependent = cuda_on_cpu::Dependent();
    cuda_on_cpu::read_environment();
    cuda_on_cpu::set("SEED", std::to_string(seed).c_str());
}
__attribute__((used)) inline int cuda_on_cpu_set(const char *name, const char *value) {
    cuda_on_cpu::Lock lock(cuda_on_cpu::state().lock);
    return cuda_on_cpu::set(name, value);
}
__attribute__((used)) inline void cuda_on_cpu_fail(const char *what, int n) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    if (!what) memset(s.fail_at, 0, sizeof s.fail_at);
    else if (!cuda_on_cpu::arm(what, strlen(what), n)) cuda_on_cpu::fail("there is no kind of call named %s", what);
}
__attribute__((used)) inline long cuda_on_cpu_calls(const char *what) {
    int i = cuda_on_cpu::call_index(what);
    return i < 0 ? -1 : cuda_on_cpu::state().calls[i];
}
/* The host waits when it waits for the device, and each reading of this clock takes it 400 ns: a launch between two readings is sent faster than
 * the device runs it, as on hardware that the host keeps busy. */
__attribute__((used)) inline int64_t cuda_on_cpu_host_clock(void) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    s.host_ns += 400;
    return (int64_t)(s.host_ns + s.host_ns * s.settings.host_fast / 1000000);
}
__attribute__((used)) inline unsigned cuda_on_cpu_contexts(void) { return cuda_on_cpu::state().contexts; }
__attribute__((used)) inline int cuda_on_cpu_live(void) { return cuda_on_cpu::live(); }
__attribute__((used)) inline void cuda_on_cpu_share(void *p, size_t bytes) {
    cuda_on_cpu::Lock lock(cuda_on_cpu::state().lock);
    cuda_on_cpu::state().shared.push_back(cuda_on_cpu::Range{(unsigned char *)p, bytes});
}
__attribute__((used)) inline void cuda_on_cpu_unshare(void *p) {
    std::vector<cuda_on_cpu::Range> &list = cuda_on_cpu::state().shared;
    cuda_on_cpu::Lock lock(cuda_on_cpu::state().lock);
    for (size_t i = list.size(); i-- > 0;) if (list[i].from == p) { list.erase(list.begin() + (long)i); return; }
    cuda_on_cpu::fail("cuda_on_cpu_unshare: the memory is not shared");
}
}

inline const char *cudaGetErrorName(cudaError_t e) {
#define CUDA_ON_CPU_NAME(name, number, text) if (e == number) return #name;
    CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_NAME)
#undef CUDA_ON_CPU_NAME
    return "unrecognized error code";
}
inline const char *cudaGetErrorString(cudaError_t e) {
#define CUDA_ON_CPU_TEXT(name, number, text) if (e == number) return text;
    CUDA_ON_CPU_ERRORS(CUDA_ON_CPU_TEXT)
#undef CUDA_ON_CPU_TEXT
    return "unrecognized error code";
}
inline cudaError_t cudaGetLastError() {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cudaError_t e = s.sticky ? s.sticky : s.last;
    s.last = cudaSuccess;
    return e;
}

/* every call below: takes the lock, returns what is in its way, and keeps its own error for cudaGetLastError */
#define CUDA_ON_CPU_ENTER(needs_device) \
    cuda_on_cpu::State &s = cuda_on_cpu::state(); \
    cuda_on_cpu::Lock lock(s.lock); \
    cudaError_t e = cuda_on_cpu::enter(needs_device); \
    if (e) return cuda_on_cpu::result(e)
#define CUDA_ON_CPU_COUNT(kind, error) \
    if (cuda_on_cpu::counted(cuda_on_cpu::kind)) return cuda_on_cpu::result(error)

/* ----------------------------------------------------------------- devices */
inline cudaError_t cudaDriverGetVersion(int *version) { *version = cuda_on_cpu::state().settings.driver; return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int *count) {
    *count = 0;
    CUDA_ON_CPU_ENTER(false);
    *count = s.settings.devices;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
    CUDA_ON_CPU_ENTER(false);
    if (device < 0 || device >= s.settings.devices) return cuda_on_cpu::result(cudaErrorInvalidDevice);
    s.device = device;
    s.contexts |= 1u << device; /* as since CUDA 12 */
    return cuda_on_cpu::result(s.sticky); /* a broken one is chosen as well */
}
inline cudaError_t cudaGetDevice(int *device) {
    CUDA_ON_CPU_ENTER(false);
    *device = s.device;
    return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
    CUDA_ON_CPU_ENTER(false);
    if (device < 0 || device >= s.settings.devices) return cuda_on_cpu::result(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "CUDA on CPU (emulated)");
    prop->totalGlobalMem = s.settings.memory;
    prop->major = s.settings.major;
    prop->minor = s.settings.minor;
    prop->multiProcessorCount = s.settings.multiprocessors;
    prop->l2CacheSize = 50 << 20;
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char *address, int capacity, int device) {
    CUDA_ON_CPU_ENTER(false);
    if (!address || device < 0 || device >= s.settings.devices) return cuda_on_cpu::result(device < 0 || device >= s.settings.devices ? cudaErrorInvalidDevice
                                                                                                                                      : cudaErrorInvalidValue);
    if (snprintf(address, (size_t)(capacity > 0 ? capacity : 0), "0000:%02X:00.0", 0x10 + device) >= capacity) return cuda_on_cpu::result(cudaErrorInvalidValue);
    return cudaSuccess;
}
/* what broke the device is over; what is still allocated stays with its owner, as a leak to be counted */
inline cudaError_t cudaDeviceReset() {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cuda_on_cpu::enter(false);
    cuda_on_cpu::drop_work();
    s.captures.clear();
    s.sticky = s.last = cudaSuccess;
    s.contexts &= ~(1u << s.device);
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int device) {
    CUDA_ON_CPU_ENTER(false);
    if (device < 0 || device >= s.settings.devices) return cuda_on_cpu::result(cudaErrorInvalidDevice);
    *value = 232448;
    return cudaSuccess;
}
/* ----------------------------------------------------------------- the driver's function that describes a tensor for TMA */
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 } CUresult;
typedef enum { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9 } CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 } CUtensorMapInterleave;
typedef enum { CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_128B = 3 } CUtensorMapSwizzle;
typedef enum { CU_TENSOR_MAP_L2_PROMOTION_NONE = 0, CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 } CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 } CUtensorMapFloatOOBfill;
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0, cudaDriverEntryPointSymbolNotFound = 1 };
#define cudaEnableDefault 0ull
inline CUresult cuda_on_cpu_encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *size,
                                         const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave,
                                         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    cuda_on_cpu::TensorMap m = {};
    if (type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 || rank != 3 || (uintptr_t)base % 16) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++) {
        if (!size[i] || !box[i] || box[i] > 256 || step[i] != 1 || (i < 2 && stride[i] % 16)) return CUDA_ERROR_INVALID_VALUE;
        m.size[i] = size[i], m.box[i] = box[i];
        if (i < 2) m.stride[i] = stride[i];
    }
    if (box[0] * 2 % 16 || (swizzle == CU_TENSOR_MAP_SWIZZLE_128B && box[0] * 2 > 128)) return CUDA_ERROR_INVALID_VALUE;
    m.base = (const unsigned char *)base;
    m.swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    static_assert(sizeof m <= sizeof *map, "a map is 128 bytes");
    memset(map, 0, sizeof *map);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}
inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult *answer) {
    bool known = strcmp(name, "cuTensorMapEncodeTiled") == 0;
    *function = known ? (void *)cuda_on_cpu_encode_tiled : nullptr;
    *answer = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
    CUDA_ON_CPU_ENTER(true);
    if (!kernel || attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > 232448) return cuda_on_cpu::result(cudaErrorInvalidValue);
    s.dynamic_shared_limit[kernel] = value;
    return cudaSuccess;
}
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel) {
    CUDA_ON_CPU_ENTER(true);
    (void)s, (void)kernel;
    *attributes = { 0, 32 };
    return cudaSuccess;
}
/* as of kernels with 85 registers */
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int threads, size_t) {
    CUDA_ON_CPU_ENTER(true);
    *blocks = threads <= 768 ? 768 / threads : 1;
    return cudaSuccess;
}
template <class... P> inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
template <class... P> inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(P...)) {
    return cudaFuncGetAttributes(attributes, (const void *)kernel);
}

/* ----------------------------------------------------------------- memory */
inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    CUDA_ON_CPU_ENTER(true);
    *total_bytes = s.settings.memory;
    *free_bytes = s.settings.memory > s.device_bytes ? s.settings.memory - s.device_bytes : 0;
    return cudaSuccess;
}
inline cudaError_t cuda_on_cpu_malloc(void **pointer, size_t bytes) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(ALLOC, cudaErrorMemoryAllocation);
    if (cuda_on_cpu::capture_forbids()) return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported);
    if (s.device_bytes > s.settings.memory || bytes > s.settings.memory - s.device_bytes) return cuda_on_cpu::result(cudaErrorMemoryAllocation);
    void *made = bytes ? cuda_on_cpu::allocate(bytes, true) : nullptr;
    if (bytes && !made) return cuda_on_cpu::result(cudaErrorMemoryAllocation);
    *pointer = made;
    return cudaSuccess;
}
inline cudaError_t cuda_on_cpu_host_alloc(void **pointer, size_t bytes, unsigned flags) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(HOST, cudaErrorMemoryAllocation);
    if (cuda_on_cpu::capture_forbids()) return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported);
    void *made = bytes ? cuda_on_cpu::allocate(bytes, false) : nullptr;
    if (bytes && !made) return cuda_on_cpu::result(cudaErrorMemoryAllocation);
    if (made) s.memory[(unsigned char *)made].mapped = (flags & cudaHostAllocMapped) != 0;
    *pointer = made;
    return cudaSuccess;
}
/* the pointer is written as its own type, and only on success */
template <class T> inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    void *made = nullptr;
    cudaError_t e = pointer ? cuda_on_cpu_malloc(&made, bytes) : cuda_on_cpu::result(cudaErrorInvalidValue);
    if (!e) *pointer = (T *)made;
    asm volatile("" : : "r"(pointer) : "memory"); /* to the compiler, a call that may always have written */
    return e;
}
template <class T> inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned flags) {
    void *made = nullptr;
    cudaError_t e = pointer ? cuda_on_cpu_host_alloc(&made, bytes, flags) : cuda_on_cpu::result(cudaErrorInvalidValue);
    if (!e) *pointer = (T *)made;
    asm volatile("" : : "r"(pointer) : "memory"); /* to the compiler, a call that may always have written */
    return e;
}
template <class T> inline cudaError_t cudaMallocHost(T **pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
/* only of what was asked to be mapped; the address is the same, as with unified addresses */
inline cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(HOST, cudaErrorMemoryAllocation);
    (void)s;
    if (!device || flags || !cuda_on_cpu::is_mapped(host)) return cuda_on_cpu::result(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}
/* frees even after a sticky error, so that leaks can be counted */
inline cudaError_t cuda_on_cpu_free(const char *call, void *pointer, bool device) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cudaError_t e = cuda_on_cpu::enter();
    if (e == cudaErrorInsufficientDriver || e == cudaErrorNoDevice || !pointer) return cuda_on_cpu::result(e);
    if (!e && cuda_on_cpu::capture_forbids()) return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported);
    if (!e) e = cuda_on_cpu::finish_all();
    if (!cuda_on_cpu::release(pointer, device)) cuda_on_cpu::fail("%s: the pointer is not a live allocation of that kind", call);
    return cuda_on_cpu::result(e);
}
inline cudaError_t cudaFree(void *pointer) { return cuda_on_cpu_free("cudaFree", pointer, true); }
inline cudaError_t cudaFreeHost(void *pointer) { return cuda_on_cpu_free("cudaFreeHost", pointer, false); }

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(COPY, cudaErrorUnknown);
    (void)s;
    return cuda_on_cpu::result(cuda_on_cpu::copy("cudaMemcpyAsync", to, from, bytes, kind, stream));
}
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(COPY, cudaErrorUnknown);
    (void)s;
    return cuda_on_cpu::result(cuda_on_cpu::fill(to, value, bytes, stream));
}

/* ----------------------------------------------------------------- streams */
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(STREAM, cudaErrorOperatingSystem);
    if (!stream || flags > 1) return cuda_on_cpu::result(cudaErrorInvalidValue);
    if (flags != cudaStreamNonBlocking) cuda_on_cpu::fail("cudaStreamCreate: streams that wait for the legacy stream are not emulated");
    *stream = new CUstream_st;
    s.streams.insert(*stream);
    return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cudaError_t e = cuda_on_cpu::enter();
    if (!s.streams.erase(stream)) return cuda_on_cpu::result(e ? e : cudaErrorInvalidResourceHandle);
    if (stream->capture) { stream->capture->invalid = true; s.captures.erase(stream->capture); }
    if (stream->operations.empty()) delete stream;
    else s.retired.insert(stream);
    return cuda_on_cpu::result(e);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(SYNC, s.sticky = cudaErrorLaunchFailure);
    CUstream_st *t = cuda_on_cpu::stream_of(stream);
    if (!t) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (t->capture) { t->capture->invalid = true; return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported); }
    return cuda_on_cpu::result(cuda_on_cpu::finish_stream(t));
}
inline cudaError_t cudaDeviceSynchronize() {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(SYNC, s.sticky = cudaErrorLaunchFailure);
    if (cuda_on_cpu::capture_forbids()) return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported);
    return cuda_on_cpu::result(cuda_on_cpu::finish_all());
}

/* ----------------------------------------------------------------- events */
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(EVENT, cudaErrorInvalidResourceHandle);
    if (!event || flags > 3) return cuda_on_cpu::result(cudaErrorInvalidValue);
    std::shared_ptr<CUevent_st> made = std::make_shared<CUevent_st>();
    made->timing = !(flags & cudaEventDisableTiming);
    s.events[made.get()] = made;
    *event = made.get();
    return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cudaError_t e = cuda_on_cpu::enter();
    return cuda_on_cpu::result(s.events.erase(event) || e ? e : cudaErrorInvalidResourceHandle);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(EVENT, cudaErrorInvalidResourceHandle);
    (void)s;
    return cuda_on_cpu::result(cuda_on_cpu::record(event, stream));
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(SYNC, s.sticky = cudaErrorLaunchFailure);
    return cuda_on_cpu::result(cuda_on_cpu::wait_for_event(event));
}
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(EVENT, cudaErrorInvalidResourceHandle);
    (void)s;
    std::shared_ptr<CUevent_st> a, b;
    if (cuda_on_cpu::check_event(from, &a) || cuda_on_cpu::check_event(to, &b)) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (!a->timing || !b->timing || !a->recorded || !b->recorded) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (a->completed < a->recorded || b->completed < b->recorded) return cuda_on_cpu::result(cudaErrorNotReady);
    *ms = (float)(((double)b->time_ns - (double)a->time_ns) * 1e-6);
    return cudaSuccess;
}

/* ----------------------------------------------------------------- graphs */
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(GRAPH, cudaErrorStreamCaptureInvalidated);
    CUstream_st *t = cuda_on_cpu::stream_of(stream);
    if (!t) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (t == &s.legacy) return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported);
    if (t->capture) return cuda_on_cpu::result(cudaErrorIllegalState);
    t->capture = std::make_shared<cuda_on_cpu::Capture>();
    s.captures.insert(t->capture);
    return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    CUDA_ON_CPU_ENTER(true);
    CUstream_st *t = cuda_on_cpu::stream_of(stream);
    bool refused = cuda_on_cpu::counted(cuda_on_cpu::GRAPH);
    if (!t) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (refused && t->capture) t->capture->invalid = true;
    (void)s;
    return cuda_on_cpu::result(cuda_on_cpu::end_capture(t, graph));
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags = 0) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(GRAPH, cudaErrorStreamCaptureInvalidated);
    if (!s.graphs.count(graph)) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (flags) return cuda_on_cpu::result(cudaErrorInvalidValue);
    *executable = new CUgraphExec_st;
    (*executable)->operations = graph->operations;
    s.executables.insert(*executable);
    return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(GRAPH, cudaErrorStreamCaptureInvalidated);
    CUstream_st *t = cuda_on_cpu::stream_of(stream);
    if (!t || !s.executables.count(executable)) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    cuda_on_cpu::upload(executable);
    return cuda_on_cpu::result(cuda_on_cpu::launch_graph(executable, t));
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    CUDA_ON_CPU_ENTER(true);
    CUDA_ON_CPU_COUNT(GRAPH, cudaErrorStreamCaptureInvalidated);
    CUstream_st *t = cuda_on_cpu::stream_of(stream);
    if (!t || !s.executables.count(executable)) return cuda_on_cpu::result(cudaErrorInvalidResourceHandle);
    if (t->capture) { t->capture->invalid = true; return cuda_on_cpu::result(cudaErrorStreamCaptureUnsupported); }
    cuda_on_cpu::upload(executable);
    return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cudaError_t e = cuda_on_cpu::enter();
    if (!s.executables.erase(executable)) return cuda_on_cpu::result(e ? e : cudaErrorInvalidResourceHandle);
    delete executable;
    return cuda_on_cpu::result(e);
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    cudaError_t e = cuda_on_cpu::enter();
    if (!s.graphs.erase(graph)) return cuda_on_cpu::result(e ? e : cudaErrorInvalidResourceHandle);
    delete graph;
    return cuda_on_cpu::result(e);
}

/* ============================================================================================================ cuBLAS
 * Sums run over k in order, of bf16 as on tensor cores, else one multiplication and one addition at a time, so the results are the same bits on every
 * machine. */
namespace cuda_on_cpu {
struct Matrix { const void *data; cudaDataType type; long long ld, stride; bool transposed; };
struct GemmWork : Work {
    Matrix a, b;
    void *c;
    cudaDataType c_type;
    int m, n, k, batch;
    long long ldc, stride_c;
    float alpha, beta;
    const void *bias = nullptr; /* of C's type [m] */
    void *workspace;
    size_t workspace_bytes;
    std::vector<float> panels_a, panel_b;
    void trace(uint64_t begin, uint64_t end, uint32_t correlation) override {
        uint64_t split = n < 16 ? (end - begin) / 4 : 0;
        std::string name = "emulated_gemm_" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
        cupti_kernel(name, dim3((unsigned)(m + 127) / 128, (unsigned)(n + 127) / 128, (unsigned)batch), dim3(384), 200000, begin, end - split, correlation);
        if (split) cupti_kernel("emulated_splitKreduce", dim3(32), dim3(128), 0, end - split, end, correlation);
    }
    void run() override;
};
/* out [columns][rows] = the product of a panel of rows of A and a panel of columns of B, both k-major; `depth` products are one addition */
template <class V, int ROWS, int COLUMNS> CUDA_ON_CPU_FAST inline __attribute__((always_inline)) void gemm_tile(const float *a, const float *b, int k, int depth,
                                                                                                               float *out) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
    enum { LANES = sizeof(V) / 4, VECTORS = ROWS / LANES };
    V sum[COLUMNS][VECTORS];
    for (int from = 0; !from || from < k; from += depth) {
        int to = k - from < depth ? k : from + depth;
        CUDA_ON_CPU_UNROLL
        for (int j = 0; j < COLUMNS; j++) {
            CUDA_ON_CPU_UNROLL
            for (int i = 0; i < VECTORS; i++) sum[j][i] = V{};
        }
        for (int p = from; p < to; p++) {
            V x[VECTORS];
            CUDA_ON_CPU_UNROLL
            for (int i = 0; i < VECTORS; i++) memcpy(&x[i], a + (size_t)p * ROWS + i * LANES, sizeof(V));
            CUDA_ON_CPU_UNROLL
            for (int j = 0; j < COLUMNS; j++) {
                float y = b[(size_t)p * COLUMNS + j];
                CUDA_ON_CPU_UNROLL
                for (int i = 0; i < VECTORS; i++) { V product = x[i] * y; sum[j][i] += product; }
            }
        }
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0; i < VECTORS; i++) {
                V all;
                memcpy(&all, out + j * ROWS + i * LANES, sizeof(V));
                if (from) add_towards_zero(&all, &sum[j][i]);
                else all = sum[j][i];
                memcpy(out + j * ROWS + i * LANES, &all, sizeof(V));
            }
    }
}
struct Tile { int rows, columns; void (*run)(const float *a, const float *b, int k, int depth, float *out); };
CUDA_ON_CPU_FAST inline void tile_128(const float *a, const float *b, int k, int depth, float *out) { gemm_tile<V4, 8, 4>(a, b, k, depth, out); }
#if defined(__x86_64__)
CUDA_ON_CPU_FAST __attribute__((target("avx2"))) inline void tile_256(const float *a, const float *b, int k, int depth, float *out) {
    gemm_tile<V8, 16, 6>(a, b, k, depth, out);
}
CUDA_ON_CPU_FAST __attribute__((target("avx512f"))) inline void tile_512(const float *a, const float *b, int k, int depth, float *out) {
    gemm_tile<V16, 32, 12>(a, b, k, depth, out);
}
#endif
enum { TILE_ROWS_MAX = 32, TILE_COLUMNS_MAX = 12 };
inline const Tile &best_tile() {
    static const Tile tile = [] {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512f")) return Tile{32, 12, tile_512};
        if (__builtin_cpu_supports("avx2")) return Tile{16, 6, tile_256};
#endif
        return Tile{8, 4, tile_128};
    }();
    return tile;
}
/* panel [k][width]: `width` rows from `first` of an operand whose element (row, p) is at row * row_step + p * k_step; rows past `count` are 0 */
template <class T, class Widen> CUDA_ON_CPU_FAST inline void pack(float *panel, const T *data, int first, int count, int width, int k, long long row_step,
                                                                  long long k_step, Widen widen) {
    for (int p0 = 0; p0 < k; p0 += 64) {
        int p1 = p0 + 64 < k ? p0 + 64 : k;
        if (row_step == 1 && first + width <= count) {
            for (int p = p0; p < p1; p++)
                for (int i = 0; i < width; i++) panel[(size_t)p * (size_t)width + (size_t)i] = widen(data[first + i + p * k_step]);
            continue;
        }
        for (int i = 0; i < width; i++)
            for (int p = p0; p < p1; p++)
                panel[(size_t)p * (size_t)width + (size_t)i] = first + i < count ? widen(data[(first + i) * row_step + p * k_step]) : 0.0f;
    }
}
inline void pack_any(float *panel, const void *data, cudaDataType type, int first, int count, int width, int k, long long row_step, long long k_step) {
    if (type == CUDA_R_32F) pack(panel, (const float *)data, first, count, width, k, row_step, k_step, [](float f) { return f; });
    else pack(panel, (const uint16_t *)data, first, count, width, k, row_step, k_step, [](uint16_t b) { return bf16_float(b); });
}
inline void GemmWork::run() {
    const Tile &tile = best_tile();
    size_t panel_a = (size_t)tile.rows * (size_t)k;
    float out[TILE_ROWS_MAX * TILE_COLUMNS_MAX] = {};
    int depth = a.type == CUDA_R_32F ? k + 1 : (int)MMA_DEPTH;
    int panels = (m + tile.rows - 1) / tile.rows, size_a = a.type == CUDA_R_32F ? 4 : 2, size_b = b.type == CUDA_R_32F ? 4 : 2;
    if (workspace) memset(workspace, FRESH, workspace_bytes < 4096 ? workspace_bytes : 4096); /* it is cuBLAS's to write to */
    panels_a.resize(panel_a * (size_t)panels);
    panel_b.resize((size_t)tile.columns * (size_t)k);
    for (int batch_index = 0; batch_index < batch; batch_index++) {
        const char *from_a = (const char *)a.data + batch_index * a.stride * size_a, *from_b = (const char *)b.data + batch_index * b.stride * size_b;
        for (int i = 0; i < panels; i++)
            pack_any(&panels_a[panel_a * (size_t)i], from_a, a.type, i * tile.rows, m, tile.rows, k, a.transposed ? a.ld : 1, a.transposed ? 1 : a.ld);
        for (int j = 0; j < n; j += tile.columns) {
            pack_any(panel_b.data(), from_b, b.type, j, n, tile.columns, k, b.transposed ? 1 : b.ld, b.transposed ? b.ld : 1);
            for (int i = 0; i < m; i += tile.rows) {
                tile.run(&panels_a[panel_a * (size_t)(i / tile.rows)], panel_b.data(), k, depth, out);
                for (int y = 0; y < tile.columns && j + y < n; y++) {
                    size_t at = (size_t)(batch_index * stride_c + (j + y) * ldc + i);
                    for (int x = 0; x < tile.rows && i + x < m; x++, at++) {
                        float v = alpha * out[y * tile.rows + x];
                        if (bias) v += c_type == CUDA_R_32F ? ((const float *)bias)[i + x] : bf16_float(((const uint16_t *)bias)[i + x]);
                        if (c_type == CUDA_R_32F) {
                            float *to = (float *)c + at;
                            *to = beta == 0.0f ? v : v + beta * *to; /* what was in C does not matter then, NaN neither */
                        } else {
                            uint16_t *to = (uint16_t *)c + at;
                            *to = __bfloat16_as_ushort(__float2bfloat16_rn(beta == 0.0f ? v : v + beta * bf16_float(*to)));
                        }
                    }
                }
            }
        }
    }
    panels_a = std::vector<float>();
    panel_b = std::vector<float>();
}
inline bool known_transpose(cublasOperation_t o) { return o == CUBLAS_OP_N || o == CUBLAS_OP_T; }
/* an operand of `rows` x `columns` as stored, column-major */
inline void check_operand(char name, const void *p, cudaDataType type, long long rows, long long columns, long long ld, long long stride, int batch) {
    size_t element = type == CUDA_R_32F ? 4 : 2;
    long long low = batch > 1 && stride < 0 ? (batch - 1) * stride : 0, high = batch > 1 && stride > 0 ? (batch - 1) * stride : 0;
    if (!rows || !columns) return;
    high += (columns - 1) * ld + rows;
    if ((uintptr_t)p % element) fail("cuBLAS: operand %c is not aligned to its elements", name);
    if (!on_device((const char *)p + low * (long long)element, (size_t)(high - low) * element))
        fail("cuBLAS: operand %c (%lld x %lld, ld %lld, %d of stride %lld) does not lie in live device memory", name, rows, columns, ld, batch, stride);
}
/* what cuBLAS and cublasLt compute */
inline bool known_types(cudaDataType a, cudaDataType b, cudaDataType c) {
    return a == b && ((a == CUDA_R_32F && c == CUDA_R_32F) || (a == CUDA_R_16BF && (c == CUDA_R_16BF || c == CUDA_R_32F)));
}
inline cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, Matrix a, Matrix b,
                           const void *beta, void *c, cudaDataType c_type, int ldc, long long stride_c, int batch, cublasComputeType_t compute) {
    Lock lock(state().lock);
    State &s = state();
    cudaError_t e = enter();
    std::shared_ptr<GemmWork> w = std::make_shared<GemmWork>();
    bool types = known_types(a.type, b.type, c_type), computes = compute == CUBLAS_COMPUTE_32F;
    if (!s.handles.count(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (e || counted(GEMM)) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!known_transpose(ta) || !known_transpose(tb) || m < 0 || n < 0 || k < 0 || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (a.ld < (ta == CUBLAS_OP_N ? m : k) || b.ld < (tb == CUBLAS_OP_N ? k : n) || ldc < m || a.ld < 1 || b.ld < 1 || ldc < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (!types || !computes || s.settings.major < 8) return types && computes ? CUBLAS_STATUS_ARCH_MISMATCH : CUBLAS_STATUS_NOT_SUPPORTED;
    if (!m || !n || !batch) return CUBLAS_STATUS_SUCCESS;
    check_operand('A', a.data, a.type, ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, a.ld, a.stride, batch);
    check_operand('B', b.data, b.type, tb == CUBLAS_OP_N ? k : n, tb == CUBLAS_OP_N ? n : k, b.ld, b.stride, batch);
    check_operand('C', c, c_type, m, n, ldc, stride_c, batch);
    if (batch > 1 && stride_c == 0) fail("cuBLAS: the products of a batch overwrite each other");
    CUstream_st *t = stream_of(handle->stream);
    if (!t) return CUBLAS_STATUS_EXECUTION_FAILED;
    w->a = a, w->b = b, w->c = c, w->c_type = c_type;
    w->a.transposed = ta != CUBLAS_OP_N, w->b.transposed = tb != CUBLAS_OP_N;
    w->m = m, w->n = n, w->k = k, w->batch = batch, w->ldc = ldc, w->stride_c = stride_c;
    memcpy(&w->alpha, alpha, 4);
    memcpy(&w->beta, beta, 4);
    w->workspace = handle->workspace, w->workspace_bytes = handle->workspace_bytes;
    load("gemm " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + " " + std::to_string((int)a.type) + std::to_string((int)c_type));
    w->cost_ns = 3000 + (uint64_t)(2.0 * m * n * k * batch / 1e5);
    return queue_work(t, w) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/* cublasLt: one matrix a layout, column-major, C and D the same. An algorithm remembers what it was chosen for, and is rejected for anything else. */
struct LtChoice { uint32_t magic, sum, alignment[4], bias_alignment, workspace, percent; };
static_assert(sizeof(LtChoice) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm holds a choice");
enum : uint32_t { LT_MAGIC = 0x17a190u, LT_WORKSPACE = 1024 };
template <class T> inline cublasStatus_t lt_create(T **out, T *made) {
    Lock lock(state().lock);
    if (counted(PLAN)) { delete made; return CUBLAS_STATUS_ALLOC_FAILED; }
    if (!out) { delete made; return CUBLAS_STATUS_INVALID_VALUE; }
    state().descriptors.insert(made);
    *out = made;
    return CUBLAS_STATUS_SUCCESS;
}
template <class T> inline cublasStatus_t lt_destroy(T *p) {
    Lock lock(state().lock);
    if (!p) return CUBLAS_STATUS_SUCCESS;
    if (!state().descriptors.erase(p)) fail("cublasLt: a descriptor that is none is destroyed");
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}
inline void lt_alive(const void *p) { if (!state().descriptors.count(p)) fail("cublasLt: a descriptor that is none is used"); }
template <class T> inline cublasStatus_t lt_set(T *to, const void *value, size_t bytes) {
    if (!value || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
inline uint32_t alignment_of(const void *p) { uint32_t a = 256; while ((uintptr_t)p % a) a /= 2; return a; }
inline uint32_t lt_sum(const cublasLtDesc *w, const cublasLtLayout *const *layouts) {
    uint64_t sum = (uint64_t)w->compute * 31 + (uint64_t)w->transposed[0] * 5 + (uint64_t)w->transposed[1] * 3 + w->epilogue;
    for (int i = 0; i < 4; i++)
        for (uint64_t v : { (uint64_t)layouts[i]->type, layouts[i]->rows, layouts[i]->columns, (uint64_t)layouts[i]->ld })
            sum = (sum ^ v) * 0x9e3779b97f4a7c15ull, sum ^= sum >> 29;
    return (uint32_t)sum;
}
/* may these be multiplied? *m, *n, *k: the product's sizes */
inline cublasStatus_t lt_check(cublasLtHandle_t handle, const cublasLtDesc *w, const cublasLtLayout *const *layouts, int *m, int *n, int *k) {
    const cublasLtLayout *a = layouts[0], *b = layouts[1], *c = layouts[2], *d = layouts[3];
    bool ta, tb;
    if (!state().handles.count((cublasContext *)handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    lt_alive(w);
    for (int i = 0; i < 4; i++) lt_alive(layouts[i]);
    ta = w->transposed[0] != CUBLAS_OP_N, tb = w->transposed[1] != CUBLAS_OP_N;
    *m = (int)d->rows, *n = (int)d->columns, *k = (int)(ta ? a->rows : a->columns);
    if ((ta ? a->columns : a->rows) != d->rows || (tb ? b->rows : b->columns) != d->columns || (tb ? b->columns : b->rows) != (uint64_t)*k ||
        c->rows != d->rows || c->columns != d->columns) return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < 4; i++) if (layouts[i]->ld < (int64_t)layouts[i]->rows || !layouts[i]->rows || !layouts[i]->columns) return CUBLAS_STATUS_INVALID_VALUE;
    if (state().settings.major < 8) return CUBLAS_STATUS_ARCH_MISMATCH;
    if (!known_types(a->type, b->type, d->type) || c->type != d->type || w->scale != CUDA_R_32F || w->compute != CUBLAS_COMPUTE_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (w->epilogue == CUBLASLT_EPILOGUE_BIAS) return w->bias_type < 0 || w->bias_type == (int32_t)d->type ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    return w->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
} // namespace cuda_on_cpu

inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType scale) {
    cublasLtDesc *made = new cublasLtDesc();
    made->compute = compute, made->scale = scale;
    return cuda_on_cpu::lt_create(desc, made);
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return cuda_on_cpu::lt_destroy(desc); }
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes) {
    cuda_on_cpu::Lock lock(cuda_on_cpu::state().lock);
    cuda_on_cpu::lt_alive(desc);
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return cuda_on_cpu::lt_set(&desc->transposed[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return cuda_on_cpu::lt_set(&desc->transposed[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return cuda_on_cpu::lt_set(&desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return cuda_on_cpu::lt_set(&desc->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return cuda_on_cpu::lt_set(&desc->bias_type, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
    return cuda_on_cpu::lt_create(layout, new cublasLtLayout{ type, rows, columns, ld });
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return cuda_on_cpu::lt_destroy(layout); }
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) { return cuda_on_cpu::lt_create(preference, new cublasLtPreference()); }
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return cuda_on_cpu::lt_destroy(preference); }
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, const void *value,
                                                           size_t bytes) {
    cuda_on_cpu::Lock lock(cuda_on_cpu::state().lock);
    cuda_on_cpu::lt_alive(preference);
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return cuda_on_cpu::lt_set(&preference->workspace, value, bytes);
    if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return cuda_on_cpu::lt_set(&preference->reductions, value, bytes);
    if (what < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES || what > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) return CUBLAS_STATUS_INVALID_VALUE;
    return cuda_on_cpu::lt_set(&preference->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
}
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t *results, int *found) {
    using namespace cuda_on_cpu;
    Lock lock(state().lock);
    const cublasLtLayout *layouts[4] = { a, b, c, d };
    LtChoice choice = {};
    int m, n, k;
    if (wanted < 1 || !results || !found) return CUBLAS_STATUS_INVALID_VALUE;
    *found = 0;
    if (counted(PLAN)) return CUBLAS_STATUS_NOT_SUPPORTED;
    lt_alive(preference);
    cublasStatus_t status = lt_check(handle, desc, layouts, &m, &n, &k);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS && !desc->bias) fail("cublasLtMatmulAlgoGetHeuristic: the bias pointer, whose alignment counts, is not set");
    choice.magic = LT_MAGIC, choice.sum = lt_sum(desc, layouts);
    memcpy(choice.alignment, preference->alignment, sizeof choice.alignment);
    choice.bias_alignment = alignment_of(desc->bias);
    choice.workspace = preference->workspace < LT_WORKSPACE ? 0u : (uint32_t)LT_WORKSPACE; /* a way without one is always there */
    /* what takes how long: the first is not the fastest, the third one is, the last cannot run */
    static const uint32_t percents[] = { 100, 130, 70, 160, 10 };
    for (; *found < wanted && *found < 5; ++*found) {
        cublasLtMatmulHeuristicResult_t *result = results + *found;
        choice.percent = percents[*found];
        memset(result, 0, sizeof *result);
        memcpy(&result->algo, &choice, sizeof choice);
        result->workspaceSize = choice.workspace;
        result->state = choice.percent == 10 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                                     const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
                                     cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    using namespace cuda_on_cpu;
    Lock lock(state().lock);
    const cublasLtLayout *layouts[4] = { a, b, c, d };
    const void *operands[4] = { A, B, C, D };
    std::shared_ptr<GemmWork> w = std::make_shared<GemmWork>();
    LtChoice choice;
    int m, n, k;
    if (enter() || counted(GEMM)) return CUBLAS_STATUS_EXECUTION_FAILED;
    cublasStatus_t status = lt_check(handle, desc, layouts, &m, &n, &k);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!alpha || !beta || !A || !B || !C || !D) return CUBLAS_STATUS_INVALID_VALUE;
    if (C != D || c->ld != d->ld) fail("cublasLtMatmul: C and D apart are not emulated");
    if (!algo) fail("cublasLtMatmul: a search for the algorithm in each call");
    memcpy(&choice, algo, sizeof choice);
    if (choice.percent == 10) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (choice.magic != LT_MAGIC || choice.sum != lt_sum(desc, layouts)) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes < choice.workspace) return CUBLAS_STATUS_INVALID_VALUE;
    if ((uintptr_t)workspace % 16) fail("cublasLtMatmul: the workspace is not aligned");
    if (workspace_bytes && !on_device(workspace, workspace_bytes)) fail("cublasLtMatmul: the workspace does not lie in live device memory");
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)operands[i] % choice.alignment[i]) fail("cublasLtMatmul: operand %c is less aligned than the algorithm was told", "ABCD"[i]);
    for (int i = 0; i < 4; i++)
        check_operand("ABCD"[i], operands[i], layouts[i]->type, (long long)layouts[i]->rows, (long long)layouts[i]->columns, layouts[i]->ld, 0, 1);
    if (desc->epilogue == CUBLASLT_EPILOGUE_BIAS) {
        if (alignment_of(desc->bias) < choice.bias_alignment) fail("cublasLtMatmul: the bias is less aligned than the algorithm was told");
        check_operand('b', desc->bias, d->type, m, 1, m, 0, 1);
        w->bias = desc->bias;
    }
    load("lt " + std::to_string(choice.sum));
    CUstream_st *t = stream_of(stream);
    if (!t) return CUBLAS_STATUS_EXECUTION_FAILED;
    w->a = Matrix{ A, a->type, a->ld, 0, desc->transposed[0] != CUBLAS_OP_N };
    w->b = Matrix{ B, b->type, b->ld, 0, desc->transposed[1] != CUBLAS_OP_N };
    w->c = D, w->c_type = d->type;
    w->m = m, w->n = n, w->k = k, w->batch = 1, w->ldc = d->ld, w->stride_c = 0;
    memcpy(&w->alpha, alpha, 4);
    memcpy(&w->beta, beta, 4);
    w->workspace = workspace, w->workspace_bytes = workspace_bytes;
    w->cost_ns = (3000 + (uint64_t)(2.0 * m * n * k / 1e5)) * choice.percent / 100;
    return queue_work(t, w) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    if (cuda_on_cpu::enter() || cuda_on_cpu::counted(cuda_on_cpu::CUBLAS)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    *handle = new cublasContext();
    s.handles.insert(*handle);
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    cuda_on_cpu::State &s = cuda_on_cpu::state();
    cuda_on_cpu::Lock lock(s.lock);
    if (!cuda_on_cpu::enter()) cuda_on_cpu::finish_all();
    if (!s.handles.erase(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    if (!cuda_on_cpu::state().handles.count(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = nullptr; /* as cuBLAS does: back to its own */
    handle->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
    if (!cuda_on_cpu::state().handles.count(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % 256) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace && !cuda_on_cpu::on_device(workspace, bytes)) cuda_on_cpu::fail("cublasSetWorkspace: not in one live device allocation");
    handle->workspace = workspace;
    handle->workspace_bytes = workspace ? bytes : 0;
    return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t) {
    return cuda_on_cpu::state().handles.count(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
inline cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                                                 const void *alpha, const void *A, cudaDataType Atype, int lda, long long int strideA, const void *B,
                                                 cudaDataType Btype, int ldb, long long int strideB, const void *beta, void *C, cudaDataType Ctype,
                                                 int ldc, long long int strideC, int batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t) {
    cuda_on_cpu::Matrix a = {A, Atype, lda, strideA, false}, b = {B, Btype, ldb, strideB, false};
    return cuda_on_cpu::gemm(handle, transa, transb, m, n, k, alpha, a, b, beta, C, Ctype, ldc, strideC, batchCount, computeType);
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const void *alpha,
                                   const void *A, cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb, const void *beta, void *C,
                                   cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t) {
    cuda_on_cpu::Matrix a = {A, Atype, lda, 0, false}, b = {B, Btype, ldb, 0, false};
    return cuda_on_cpu::gemm(handle, transa, transb, m, n, k, alpha, a, b, beta, C, Ctype, ldc, 0, 1, computeType);
}

/* ----------------------------------------------------------------- NVML
 * As much as telemetry asks. NVML's devices are in another order than CUDA's: its device n is CUDA's last but n. Numbers distinguish devices. */
namespace cuda_on_cpu {
struct NvmlShares { unsigned gpu, memory; };
/* the status that the setting gives to a function, else 0; *lacks: the setting takes it away */
inline int nvml_status(const char *function, bool *lacks) {
    const std::string &s = state().settings.nvml;
    size_t length = strlen(function);
    for (size_t at = 0; at < s.size(); at = s.find(',', at) == std::string::npos ? s.size() : s.find(',', at) + 1) {
        if (s.compare(at, length, function)) continue;
        char next = at + length < s.size() ? s[at + length] : ',';
        if (next == '=') return atoi(s.c_str() + at + length + 1);
        if (next == ',' && lacks) *lacks = true;
    }
    return 0;
}
inline int nvml_index(void *device) { return (int)((size_t)device - 1); } /* CUDA's */
#define CUDA_ON_CPU_NVML_ENTER(name) if (int status = cuda_on_cpu::nvml_status(name, nullptr)) return status
inline int nvml_init() { CUDA_ON_CPU_NVML_ENTER("nvmlInit_v2"); return 0; }
inline const char *nvml_error_string(int status) { return status == 3 ? "Not Supported" : status == 15 ? "GPU is lost" : "Unknown Error"; }
inline int nvml_by_index(unsigned index, void **device) {
    unsigned devices = (unsigned)state().settings.devices;
    if (index >= devices) return 2;
    *device = (void *)(size_t)(devices - index);
    return 0;
}
inline int nvml_by_address(const char *address, void **device) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetHandleByPciBusId_v2");
    unsigned domain, bus, slot, function;
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4 || domain || slot || function) return 2;
    if (bus < 0x10 || bus >= 0x10 + (unsigned)state().settings.devices) return 6;
    *device = (void *)(size_t)(bus - 0x10 + 1);
    return 0;
}
inline int nvml_clock(void *device, int kind, unsigned *mhz) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetClockInfo");
    *mhz = (kind == 1 ? 1500u : kind == 2 ? 2600u : 9999u) + (unsigned)nvml_index(device);
    return 0;
}
inline int nvml_clock_max(void *device, int kind, unsigned *mhz) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetMaxClockInfo");
    *mhz = (kind == 1 ? 1980u : kind == 2 ? 2619u : 9999u) + (unsigned)nvml_index(device);
    return 0;
}
inline int nvml_power(void *device, unsigned *milliwatts) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetPowerUsage");
    *milliwatts = 350500u + 1000u * (unsigned)nvml_index(device);
    return 0;
}
inline int nvml_power_limit(void *device, unsigned *milliwatts) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetEnforcedPowerLimit");
    *milliwatts = 700000u + 1000u * (unsigned)nvml_index(device);
    return 0;
}
inline int nvml_temperature(void *device, int sensor, unsigned *celsius) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetTemperature");
    *celsius = (sensor ? 99u : 41u) + (unsigned)nvml_index(device);
    return 0;
}
inline int nvml_shares(void *device, void *percent) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetUtilizationRates");
    static_cast<NvmlShares *>(percent)->gpu = 73u + (unsigned)nvml_index(device);
    static_cast<NvmlShares *>(percent)->memory = 12;
    return 0;
}
struct NvmlMemory { unsigned long long total, free, used; };
inline int nvml_memory(void *device, void *bytes) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetMemoryInfo");
    NvmlMemory *m = static_cast<NvmlMemory *>(bytes);
    m->total = state().settings.memory;
    m->used = state().device_bytes + 1000u * (unsigned)nvml_index(device);
    m->free = m->total > m->used ? m->total - m->used : 0;
    return 0;
}
/* 300 W by the host's clock, counted every 5 ms */
inline int nvml_energy(void *device, unsigned long long *millijoules) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetTotalEnergyConsumption");
    *millijoules = (unsigned long long)std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count()
                   / 5 * 5 * (300u + (unsigned)nvml_index(device));
    return 0;
}
inline int nvml_reasons(void *, unsigned long long *bits) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetCurrentClocksEventReasons");
    *bits = state().settings.throttle;
    return 0;
}
inline int nvml_reasons_old(void *, unsigned long long *bits) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetCurrentClocksThrottleReasons");
    *bits = state().settings.throttle;
    return 0;
}
struct NvmlViolation { unsigned long long reference_us, ns; };
/* policy 0: power, 1: heat; it grows with the host's clock while the throttle reasons say so */
inline int nvml_violation(void *, int policy, void *time) {
    CUDA_ON_CPU_NVML_ENTER("nvmlDeviceGetViolationStatus");
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    *static_cast<NvmlViolation *>(time) = { 0, state().settings.throttle & (policy ? 0x60u : 0x84u) ? (unsigned long long)now.count() : 0u };
    return 0;
}
#undef CUDA_ON_CPU_NVML_ENTER
} // namespace cuda_on_cpu

/* ----------------------------------------------------------------- the dynamic linker: cuBLAS and NVML are ours, the rest is real */
namespace cuda_on_cpu {
struct Symbol { const char *name; void *address; };
inline char library, nvml_library, cupti_library; /* their addresses are the handles */
inline void *open_library(const char *name, int flags) {
    State &s = state();
    s.dl_error_set = false;
    if (name && !strcmp(name, "libnvidia-ml.so.1") && s.settings.nvml != "0") return &nvml_library;
    if (name && !strcmp(name, "libcupti.so.13") && !s.settings.cupti.empty()) return &cupti_library;
    if (!name || !(strstr(name, "libcupti") || strstr(name, "libcublas") || strstr(name, "libnvidia-ml"))) return ::dlopen(name, flags);
    if (!strstr(name, "libcupti") && s.settings.no_cublas != "0" && (!strcmp(name, "libcublas.so.13") || !strcmp(name, "libcublas.so"))) return &library;
    s.dl_error = std::string(name) + ": cannot open shared object file: No such file or directory";
    s.dl_error_set = true;
    return nullptr;
}
inline void *find_symbol(void *handle, const char *name) {
#define CUDA_ON_CPU_SYMBOL(function) Symbol{#function, (void *)function}
    static const Symbol symbols[] = { CUDA_ON_CPU_SYMBOL(cublasCreate_v2), CUDA_ON_CPU_SYMBOL(cublasDestroy_v2), CUDA_ON_CPU_SYMBOL(cublasSetStream_v2),
        CUDA_ON_CPU_SYMBOL(cublasSetWorkspace_v2), CUDA_ON_CPU_SYMBOL(cublasSetMathMode),
        CUDA_ON_CPU_SYMBOL(cublasGemmEx), CUDA_ON_CPU_SYMBOL(cublasGemmStridedBatchedEx),
        CUDA_ON_CPU_SYMBOL(cublasLtMatmulDescCreate), CUDA_ON_CPU_SYMBOL(cublasLtMatmulDescDestroy),
        CUDA_ON_CPU_SYMBOL(cublasLtMatmulDescSetAttribute), CUDA_ON_CPU_SYMBOL(cublasLtMatrixLayoutCreate), CUDA_ON_CPU_SYMBOL(cublasLtMatrixLayoutDestroy),
        CUDA_ON_CPU_SYMBOL(cublasLtMatmulPreferenceCreate), CUDA_ON_CPU_SYMBOL(cublasLtMatmulPreferenceDestroy),
        CUDA_ON_CPU_SYMBOL(cublasLtMatmulPreferenceSetAttribute), CUDA_ON_CPU_SYMBOL(cublasLtMatmulAlgoGetHeuristic), CUDA_ON_CPU_SYMBOL(cublasLtMatmul) };
#undef CUDA_ON_CPU_SYMBOL
    static const Symbol nvml_symbols[] = { { "nvmlInit_v2", (void *)nvml_init }, { "nvmlErrorString", (void *)nvml_error_string },
        { "nvmlDeviceGetHandleByIndex_v2", (void *)nvml_by_index }, { "nvmlDeviceGetHandleByPciBusId_v2", (void *)nvml_by_address },
        { "nvmlDeviceGetClockInfo", (void *)nvml_clock }, { "nvmlDeviceGetMaxClockInfo", (void *)nvml_clock_max },
        { "nvmlDeviceGetPowerUsage", (void *)nvml_power }, { "nvmlDeviceGetEnforcedPowerLimit", (void *)nvml_power_limit },
        { "nvmlDeviceGetMemoryInfo", (void *)nvml_memory }, { "nvmlDeviceGetTotalEnergyConsumption", (void *)nvml_energy },
        { "nvmlDeviceGetTemperature", (void *)nvml_temperature }, { "nvmlDeviceGetUtilizationRates", (void *)nvml_shares },
        { "nvmlDeviceGetViolationStatus", (void *)nvml_violation },
        { "nvmlDeviceGetCurrentClocksEventReasons", (void *)nvml_reasons }, { "nvmlDeviceGetCurrentClocksThrottleReasons", (void *)nvml_reasons_old } };
    State &s = state();
    bool lacks = false;
    s.dl_error_set = false;
    if (handle == &nvml_library) {
        nvml_status(name, &lacks);
        for (const Symbol &y : nvml_symbols) if (!strcmp(y.name, name) && !lacks) return y.address;
        s.dl_error = std::string("libnvidia-ml.so.1: undefined symbol: ") + name;
        s.dl_error_set = true;
        return nullptr;
    }
    if (handle == &cupti_library) {
        void *found = cupti_symbol(name);
        if (!found) s.dl_error = std::string("libcupti.so.13: undefined symbol: ") + name;
        s.dl_error_set = !found;
        return found;
    }
    if (handle != &library) return ::dlsym(handle, name);
    for (const Symbol &y : symbols) if (!strcmp(y.name, name) && s.settings.no_cublas != name) return y.address;
    s.dl_error = std::string("libcublas.so.13: undefined symbol: ") + name;
    s.dl_error_set = true;
    return nullptr;
}
inline int close_library(void *handle) { return handle == &library || handle == &nvml_library || handle == &cupti_library ? 0 : ::dlclose(handle); }
inline char *library_error() {
    State &s = state();
    if (!s.dl_error_set) return ::dlerror();
    s.dl_error_set = false;
    return &s.dl_error[0];
}
} // namespace cuda_on_cpu
#define dlopen(name, flags) cuda_on_cpu::open_library((name), (flags))
#define dlsym(handle, name) cuda_on_cpu::find_symbol((handle), (name))
#define dlclose(handle) cuda_on_cpu::close_library(handle)
#define dlerror() cuda_on_cpu::library_error()
#endif /* CUDA_ON_CPU */
