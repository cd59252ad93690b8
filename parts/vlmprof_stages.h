/* vlmprof_stages.h - v0.2.0 - stages and parts of a request, and their records - MIT licence
 *
 * Do this:
 *     for (int i = 0; i < VP_STAGE_COUNT; i++) printf("%s ", vp_stage_name((vp_stage)i));
 * It prints preprocess h2d vit, and so on: the stages of a request, in order.
 *
 * The data of a measured request: names of its stages and parts, their times, the launches, and the state of the
 * device. Programs that only read results and traces need nothing more; vlmprof_engine.h makes such records.
 * memory:  none
 * threads: reentrant
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_STAGES_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_STAGES_H
#define VLMPROF_STAGES_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

/* a CUDA device; filled in by vp_device_describe */
typedef struct vp_device_info {
    char name[128];
    int32_t compute_major, compute_minor, multiprocessor_count;
    int32_t driver_version, runtime_version; /* CUDA version numbers: 13010 is 13.1 */
    uint64_t memory_bytes;
    uint64_t free_bytes; /* according to NVML; UINT64_MAX: unknown */
} vp_device_info;

/* Clocks and health of a device at one moment. A value that the device or its driver does not report is NaN. */
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
    double throttle_count;      /* CPU: number of times that its cores were throttled since boot. GPU: ns that power and
                                 * heat slowed it since the driver was loaded. Only differences are meaningful */
} vp_telemetry;
VP_API const char *vp_telemetry_throttle_name(int32_t bit); /* NULL for an unknown bit */

/* Stages of a request, in order; decode steps come separately.
 * A new stage needs its name here, in order of execution, and a vk_end_stage after its work in the models that have it
 * (parts/engine/model_*.c). H2D and the decode steps end in parts/engine/request.c. PREPROCESS and DETOK end in the
 * caller, on the host. Sums include stages by position: VIT to CONNECTOR is the vision time, EMBED to SAMPLE the
 * prefill (see cli/results/metrics.c, which also names the host's stages). PRUNE is in neither. It is the time to
 * choose and merge image tokens. A method may do that between other stages or inside VIT and PREFILL, which are then
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

/* Measurements at the stage boundaries; 0 if a stage did not run (see `ran`). wall_ns uses the host's clock; on a GPU
 * it is the time to submit the stage's work. device_ns is the time between the boundaries on the device (CUDA events on
 * the compute stream). On the CPU the two are equal. launches, flops and bytes are computed from the shapes of a
 * stage's kernels, matrix products and copies. flops are those that the arithmetic needs; bytes count each operand of
 * each launch once. */
typedef struct vp_stage_times {
    int64_t wall_ns[VP_STAGE_COUNT], device_ns[VP_STAGE_COUNT];
    int64_t launches[VP_STAGE_COUNT], flops[VP_STAGE_COUNT], bytes[VP_STAGE_COUNT];
    unsigned char ran[VP_STAGE_COUNT];
    /* number of time stamps in the request; on a GPU, a stamp is an event and a clock read */
    int64_t stamps;
    /* start of each stage on the device's clock, from the start of the request; a stage begins when the previous one
     * ends */
    int64_t begin_ns[VP_STAGE_COUNT];
    /* VP_TIMING_KERNEL: sum over the stage's launches. The rest of device_ns is idle time or, on a GPU, the copy of
     * each token to the host, which is not a launch */
    int64_t kernel_ns[VP_STAGE_COUNT];
    int64_t part_ns[VP_STAGE_COUNT][VP_PART_COUNT]; /* the same, by part of the model */
    unsigned char has_kernels;                      /* 0: kernel_ns and part_ns are not valid */
} vp_stage_times;

/* STAGE: a stamp at each boundary and each token. OFF: no stamps and no timing events; all times are 0, but `ran`,
 * launches, flops and bytes are still filled in. KERNEL: a stamp before and after each launch, product and copy. Stamps
 * take time, so compare totals of this mode only with its own kernel_ns. On a GPU, CUPTI's records replace the stamps
 * if available (vp_engine_launch_timer); decode steps are then submitted as usual, and times come from the device.
 * Without CUPTI the stamps are events, whose intervals include launch latency. Decode steps are then submitted kernel
 * by kernel, and kernels that run for less time than the host needs to submit one appear too long. Tokens and logits
 * are bit-identical in all modes. */
typedef enum vp_timing { VP_TIMING_STAGE, VP_TIMING_OFF, VP_TIMING_KERNEL } vp_timing;
typedef enum vp_launch_kind { VP_LAUNCH_KERNEL, VP_LAUNCH_COPY, VP_LAUNCH_COPY_TO_DEVICE,
                              VP_LAUNCH_COPY_TO_HOST } vp_launch_kind;
/* On a GPU both clocks start when the device starts the request. The host's clock is read just after that, so that no
 * launch appears later than its kernel. Device times are measured from the last boundary of a stage or decode step, so
 * their resolution does not degrade, and they are within the stage's times. */
typedef struct vp_launch {
    /* name of the kernel, or "gemm", "attention..", "copy..", possibly "gemm: " and cuBLAS's kernel; static */
    const char *name;
    int32_t stage, step;                             /* vp_stage; decode step from 1, 0 before decoding */
    /* vp_part; block of the ViT or the language model, -1 outside blocks */
    int32_t part, block;
    int32_t kind, line;                              /* vp_launch_kind; source line in .. */
    const char *file;                                /* .. vlmprof_kernels.cu or one of parts/kernels; static */
    /* gemm [m, n, k]; grouped gemm [rows of all experts, n, k, experts with rows]; attention [batch, queries, keys,
     * width]; gather [rows, bytes]; other kernels [rows, width]; copies have none */
    int32_t shape[4], dimensions;
    const char *kernel;                              /* cuBLAS's kernel, as CUPTI names it; NULL: unknown, or not
                                                      * cuBLAS */
    int32_t node;                                    /* index in a graph launch, from 1; 0: launched alone */
    /* kernels: blocks, threads per block; GPU: registers per thread; 0: unknown */
    uint32_t grid, threads, registers, shared_bytes;
    int64_t begin_ns, ns;                            /* device time, from the start of the request */
    /* host clock, from the start of the request: the submission; on the CPU, the execution */
    int64_t host_begin_ns, host_ns;
    uint64_t flops, bytes;
} vp_launch;
/* CPU: one thread's work in a launch's parallel loop, without waiting for the others; attention has two loops. Threads
 * are numbered from 0; thread 0 launches. launch: index of the launch; begin_ns as in vp_launch */
typedef struct vp_span { int64_t launch; int32_t thread; int64_t begin_ns, ns; } vp_span;

/* The outcome of a request */
typedef struct vp_reply {
    /* the caller's, [max_new_tokens] each; step_ns[i]: device time of decode step i < token_count - 1 */
    int32_t *tokens; int64_t *step_ns;
    int32_t token_count; int ended_by_eos;           /* token_count includes the EOS */
    vp_stage_times times;                            /* H2D .. DECODE; the caller times the others */
    /* VP_TIMING_KERNEL: number of all launches, even if request.launches has no room for them; otherwise 0 */
    int64_t launch_count;
    int64_t span_count;                              /* the same for spans, if requested; a GPU has none */
    /* with pruning and a dump: the counts of dump.kept and of the remaining rows; skips_features 1: dump.image_features
     * was not written, because the connector reads only merged tokens */
    int32_t kept_count, kept_tokens, skips_features;
} vp_reply;
/* The effect of pruning on a request */
enum { VP_PRUNE_CUTS_MAX = 8 };
typedef struct vp_pruned {
    int32_t image_tokens, kept_tokens; /* image tokens before and after pruning; for pdrop after the last cut */
    int32_t region_count;              /* regions of blocks: rows[i] prefill rows, starting at first_block[i] */
    int32_t first_block[VP_PRUNE_CUTS_MAX + 1], rows[VP_PRUNE_CUTS_MAX + 1];
    int32_t keeps_positions;
    double mean_image_tokens;  /* over the active blocks */
    /* KV cache with max_new_tokens: size that the request uses, and that it would use without pruning */
    uint64_t cache_bytes, full_cache_bytes;
} vp_pruned;

VP_EXTERN_C_END
#endif /* VLMPROF_STAGES_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_STAGES_IMPLEMENTATION)) \
    && !defined(VLMPROF_STAGES_IMPLEMENTATION_DONE)
#define VLMPROF_STAGES_IMPLEMENTATION_DONE
VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

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

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
