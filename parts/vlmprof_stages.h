/* vlmprof_stages.h - v0.2.0 - stages and parts of a request, and their records - MIT licence
 *
 * Do this:
 *     for (int i = 0; i < VP_STAGE_COUNT; i++) printf("%s ", vp_stage_name((vp_stage)i));
 * It prints preprocess h2d vit, and so on: the stages of a request, in order.
 *
 * The data of a measured request: names of its stages and parts, their times, the launches, and what a device reports
 * about itself. Reading results and traces needs nothing more; vlmprof_engine.h makes such records.
 * memory:  none
 * threads: reentrant
 *
 * Needs vlmprof.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_STAGES_IMPLEMENTATION for this one alone. The manual is in vlmprof.h. */
#ifndef VLMPROF_STAGES_H
#define VLMPROF_STAGES_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

/* CUDA devices, as vp_device_describe fills it in */
typedef struct vp_device_info {
    char name[128];
    int32_t compute_major, compute_minor, multiprocessor_count;
    int32_t driver_version, runtime_version; /* CUDA's: 13010 is 13.1 */
    uint64_t memory_bytes;
    uint64_t free_bytes; /* as NVML counts them; UINT64_MAX: unknown */
} vp_device_info;

/* The clocks and the health of a device at one moment. A number that the device or its driver does not report is
 * NaN. */
#define VP_THROTTLE_REASONS(X) \
    X(0, "gpu_idle") X(1, "applications_clocks_setting") X(2, "sw_power_cap") X(3, "hw_slowdown") X(4, "sync_boost") \
    X(5, "sw_thermal_slowdown") X(6, "hw_thermal_slowdown") X(7, "hw_power_brake_slowdown") \
    X(8, "display_clock_setting")
#define VP_THROTTLE_SLOWED 0xecu /* the reasons that distort a measurement: power cap, heat, power brake */
typedef struct vp_telemetry {
    double sm_clock_mhz, sm_clock_max_mhz;         /* CPU: mean over the cores */
    double memory_clock_mhz, memory_clock_max_mhz; /* GPU */
    double power_w, power_limit_w;                 /* GPU */
    double temperature_c;
    double utilisation_percent; /* GPU: share of the last fraction of a second in which a kernel ran */
    uint64_t throttle_reasons;  /* GPU: bits of VP_THROTTLE_REASONS, as NVML numbers them */
    int has_throttle_reasons;
    double throttle_count;      /* CPU: how often its cores were slowed since boot; only differences are meaningful */
} vp_telemetry;
VP_API const char *vp_telemetry_throttle_name(int32_t bit); /* NULL: an unknown bit */

/* Stages of a request, in order; decode steps come separately.
 * A new stage needs its name here, in the place where it runs, and a vk_end_stage after its work in the models that
 * have it (parts/engine/model_*.c). H2D and the decode steps end in parts/engine/request.c, PREPROCESS and DETOK in
 * the caller, on the host. Sums include stages by their place: VIT to CONNECTOR is the vision time, EMBED to SAMPLE the
 * prefill (cli/results/metrics.c, which also names the host's stages). PRUNE is in neither. It is the cost of choosing
 * and merging image tokens, wherever a method does that: between other stages or inside VIT and PREFILL, which are then
 * the sum of their pieces. */
#define VP_STAGES(X) \
    X(PREPROCESS, "preprocess") X(H2D, "h2d") X(VIT, "vit") X(CONNECTOR, "connector") X(PRUNE, "prune") \
    X(EMBED, "embed") X(PREFILL, "prefill") X(HEAD, "head") X(SAMPLE, "sample") X(DECODE, "decode") X(DETOK, "detok")
typedef enum vp_stage {
#define VP_STAGE_ENUM(name, text) VP_STAGE_##name,
    VP_STAGES(VP_STAGE_ENUM)
#undef VP_STAGE_ENUM
    VP_STAGE_COUNT
} vp_stage;
VP_API const char *vp_stage_name(vp_stage stage);

/* the part of the model that an operation serves: finer than a stage, and the same in prefill and decode */
#define VP_PARTS(X) \
    X(INPUT, "input") X(VIT_EMBED, "vit_embed") X(VIT_DENSE, "vit_dense") X(VIT_ATTENTION, "vit_attention") \
    X(POOLING, "pooling") X(PROJECTOR, "projector") X(PRUNE, "prune") X(EMBED, "embed") X(DENSE, "dense") \
    X(ATTENTION, "attention") X(ROUTER, "router") X(EXPERTS, "experts") X(HEAD, "head") X(SAMPLE, "sample")
typedef enum vp_part {
#define VP_PART_ENUM(name, text) VP_PART_##name,
    VP_PARTS(VP_PART_ENUM)
#undef VP_PART_ENUM
    VP_PART_COUNT
} vp_part;
VP_API const char *vp_part_name(vp_part part);

/* Records taken at the boundaries of the stages; 0 if a stage did not run (see `ran`). wall_ns is from the host's
 * clock: on a GPU it is the time taken to send the stage's work. device_ns is the time between the boundaries on
 * the device (CUDA events on the compute stream); on the CPU the two are equal. launches, flops and bytes count the
 * kernels, products and copies of a stage by their shapes: the FLOPs that the arithmetic needs, and each operand of
 * each launch read or written once. */
typedef struct vp_stage_times {
    int64_t wall_ns[VP_STAGE_COUNT], device_ns[VP_STAGE_COUNT];
    int64_t launches[VP_STAGE_COUNT], flops[VP_STAGE_COUNT], bytes[VP_STAGE_COUNT];
    unsigned char ran[VP_STAGE_COUNT];
    /* time stamps that the engine took in the request; on a GPU one is an event and a clock read */
    int64_t stamps;
    /* of device_ns, from the start of the request: a stage begins where the last one ended */
    int64_t begin_ns[VP_STAGE_COUNT];
    /* VP_TIMING_KERNEL: sum over the stage's launches. The rest of the device's time is idle, or on a GPU the copy of
     * each token to the host, which is not a launch */
    int64_t kernel_ns[VP_STAGE_COUNT];
    int64_t part_ns[VP_STAGE_COUNT][VP_PART_COUNT]; /* the same by part of the model */
    unsigned char has_kernels;                      /* 0: kernel_ns and part_ns are not valid */
} vp_stage_times;

/* STAGE: a stamp at each boundary and each token. OFF: no stamp and no timing event; all times are 0 (`ran`,
 * launches, flops and bytes are still filled in). KERNEL: each launch, product and copy is between two of its
 * own stamps. That costs time: compare totals of this mode only with its own kernel_ns. On a GPU CUPTI's records
 * replace the stamps, if available (vp_engine_launch_timer): decode steps are then sent as usual, and times are those
 * of the device. Without CUPTI the stamps are events before and after each kernel: they include launch latency, decode
 * steps are sent kernel by kernel, and kernels that take less time than the host needs to send one appear too
 * long. Tokens and logits have the same bits in all modes. */
typedef enum vp_timing { VP_TIMING_STAGE, VP_TIMING_OFF, VP_TIMING_KERNEL } vp_timing;
typedef enum vp_launch_kind { VP_LAUNCH_KERNEL, VP_LAUNCH_COPY, VP_LAUNCH_COPY_TO_DEVICE,
                              VP_LAUNCH_COPY_TO_HOST } vp_launch_kind;
/* On a GPU both clocks start when the device starts the request; the host's clock is read just after that, so no
 * launch appears after its kernel. The device's times count from the last boundary of a stage or decode step, so their
 * resolution does not degrade, and they are within the stage's times. */
typedef struct vp_launch {
    /* of the kernel, or "gemm", "attention..", "copy..", perhaps "gemm: " and cuBLAS's kernel; static */
    const char *name;
    int32_t stage, step;                             /* vp_stage; decode step from 1 on, 0 before */
    /* vp_part; block of the ViT or the language model, -1 outside blocks */
    int32_t part, block;
    int32_t kind, line;                              /* vp_launch_kind; its line in .. */
    const char *file;                                /* .. vlmprof_kernels.cu or one of parts/kernels; static */
    /* gemm [m, n, k]; grouped gemm [rows of all, n, k, experts that have any]; attention [batch, queries, keys, width];
     * gather [rows, bytes]; other kernels [rows, width]; copies none */
    int32_t shape[4], dimensions;
    const char *kernel;                              /* cuBLAS's kernel, as named by CUPTI; NULL: unknown, or our own */
    int32_t node;                                    /* index in a graph sent whole, from 1; 0: sent alone */
    /* kernels: blocks, threads per block; GPU: registers per thread; 0: unknown */
    uint32_t grid, threads, registers, shared_bytes;
    int64_t begin_ns, ns;                            /* from the start of the request, on the device */
    /* the host's clock from the start of the request: sending it; CPU: running it */
    int64_t host_begin_ns, host_ns;
    uint64_t flops, bytes;
} vp_launch;
/* CPU: the work of one thread in a launch's loop shared by several threads, without waiting for the others; attention
 * has two loops. Threads are numbered from 0; thread 0 sends. launch: index of the launch; begin_ns as there */
typedef struct vp_span { int64_t launch; int32_t thread; int64_t begin_ns, ns; } vp_span;

VP_EXTERN_C_END
#endif /* VLMPROF_STAGES_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_STAGES_IMPLEMENTATION)) \
    && !defined(VLMPROF_STAGES_IMPLEMENTATION_DONE)
#define VLMPROF_STAGES_IMPLEMENTATION_DONE
VP_EXTERN_C_BEGIN

#define VP_IMPL_STAGES_TEXT(name, text) text,
VP_API const char *vp_stage_name(vp_stage stage) {
    static const char *const names[] = {VP_STAGES(VP_IMPL_STAGES_TEXT)};
    return (int)stage >= 0 && stage < VP_STAGE_COUNT ? names[stage] : "unknown";
}

VP_API const char *vp_part_name(vp_part part) {
    static const char *const names[] = {VP_PARTS(VP_IMPL_STAGES_TEXT)};
    return (int)part >= 0 && part < VP_PART_COUNT ? names[part] : "unknown";
}

VP_API const char *vp_telemetry_throttle_name(int32_t bit) {
    switch (bit) {
#define VP_IMPL_THROTTLE_CASE(number, text) case number: return text;
        VP_THROTTLE_REASONS(VP_IMPL_THROTTLE_CASE)
#undef VP_IMPL_THROTTLE_CASE
    default: return NULL;
    }
}

VP_EXTERN_C_END
#endif /* implementation */
