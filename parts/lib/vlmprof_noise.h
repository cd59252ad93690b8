/* vlmprof_noise.h - v0.2.0 - what else a machine did while something was measured - MIT licence
 *
 * Times of a program are slow when other programs use the processor too. This header reads what Linux says about that:
 * read the counters before and after a block of measurements, outside what is timed, and take the difference.
 * A few blocks give a summary, and a rule says whether the machine was quiet.
 *
 *     vp_noise_reading before, after;
 *     vp_noise block;
 *     vp_noise_summary all = vp_noise_summary_none();
 *     vp_noise_read("", &before);
 *     ... measure for a quarter of a second or longer ...
 *     vp_noise_read("", &after);
 *     if (vp_noise_between(&before, &after, &block)) vp_noise_add(&all, &block);
 *     if (vp_noise_reasons(&all)) ... the machine was not quiet ... */
#ifndef VLMPROF_NOISE_H
#define VLMPROF_NOISE_H
#include "vlmprof.h"

VP_EXTERN_C_BEGIN

/* One reading. A number that cannot be read is unknown: -1 of the counters, NaN of the others. */
typedef struct vp_noise_reading {
    int64_t cpu_count;
    int64_t total_ticks, busy_ticks, steal_ticks; /* of all CPUs since the system began; busy: without steal */
    int64_t own_ticks;                            /* of this process, its threads and its ended children */
    double load;                                  /* mean number of runnable tasks over the last minute */
    double mhz_low, mhz_high;                     /* the slowest and the fastest of the first VP_NOISE_CPUS_MAX CPUs */
} vp_noise_reading;
#define VP_NOISE_CPUS_MAX 16
/* Reads ROOT/proc/stat, ROOT/proc/self/stat, ROOT/proc/loadavg and the frequencies below ROOT/sys/devices/system/cpu,
 * where there are none those of ROOT/proc/cpuinfo.
 * in:      root  "" for this machine; tests give a folder with files of their own; at most 300 bytes count
 * rule:    a file that is missing, torn or holds other text leaves its numbers unknown
 * numeric: a tick is 10 ms on Linux. The kernel counts a CPU's time by ticks and a process's by nanoseconds
 * memory:  none
 * threads: reentrant */
VP_API void vp_noise_read(const char *root, vp_noise_reading *reading);

/* What happened between two readings. NaN: not known. */
typedef struct vp_noise {
    double load;              /* the later reading's */
    double steal_percent;     /* of the time of all CPUs: taken by the host of a virtual machine */
    double other_cpu_percent; /* of the time of all CPUs: used by other processes and the kernel. It can be a little
                               * below 0, because ticks are coarse */
    double mhz_low, mhz_high; /* of both readings */
} vp_noise;
/* returns: 1; 0 when nothing is known, and then *noise is all NaN
 * rule:    The shares are known when the CPUs counted at least VP_NOISE_TICKS_MIN ticks each, and no counter ran
 *          backwards or exceeds the total. */
VP_API int vp_noise_between(const vp_noise_reading *before, const vp_noise_reading *after, vp_noise *noise);
/* Returns 1 if the time between two readings is long enough for shares, or cannot be known. */
VP_API int vp_noise_is_long_enough(const vp_noise_reading *before, const vp_noise_reading *after);

/* ---- the rule. The machine was not quiet when one of these is true:
 * - other processes used at least VP_NOISE_OTHER_PERCENT of the CPUs' time during at least VP_NOISE_BLOCKS_SHARE of
 *   the blocks,
 * - its host took at least VP_NOISE_STEAL_PERCENT of the CPUs' time during at least VP_NOISE_BLOCKS_SHARE of them,
 * - equal work took times that spread by more than VP_NOISE_SPREAD.
 * The load average decides nothing: it counts the program's own threads, and lags behind by a minute. Frequencies
 * decide nothing: an idle CPU lowers its own. */
#define VP_NOISE_TICKS_MIN 20
/* Shares of 20 ticks have steps of 5 %: two of them are more than one tick that fell to the wrong side. Measured on 2
 * CPUs with 2 threads: next to 36 to 48 % of other processes a stage took 2.3 times as long as next to 1 %; next to 70
 * and 80 % whole runs took 2.2 and 3.0 times as long as next to 40 %. The spread stayed below 5 % then: it does not
 * show company that stays. */
#define VP_NOISE_OTHER_PERCENT 10.0
/* A stolen tick always stops a thread that wanted to run, so a share that counts one of 20 ticks is too much. */
#define VP_NOISE_STEAL_PERCENT 5.0
/* A percentile of p moves when about 1 - p of the values are slow: with a tenth of them slow P90 and above are. */
#define VP_NOISE_BLOCKS_SHARE 0.1
/* Knobs that differ by less than this are distinguished by few samples only. */
#define VP_NOISE_SPREAD 0.05
/* A spread of fewer pairs is off by more than a quarter of itself. */
#define VP_NOISE_PAIRS_MIN 10

/* What is known of several blocks. Means are over the blocks that know the number; NaN where none does. */
typedef struct vp_noise_summary {
    int64_t samples;                  /* blocks of which something is known */
    int64_t load_samples, steal_samples, other_samples; /* those of which this number is known */
    int64_t busy_samples, stolen_samples; /* those with too much time of other processes; of the host */
    double load, steal_percent, other_cpu_percent;
    double busy_percent, stolen_percent; /* means over the busy_samples; over the stolen_samples */
    double mhz_low, mhz_high;
    double spread;      int64_t pair_count;      /* of neighbouring runs, see vp_noise_spread */
    double bare_spread; int64_t bare_pair_count; /* of pairs of runs without and with stage times */
} vp_noise_summary;
VP_API vp_noise_summary vp_noise_summary_none(void);
VP_API void vp_noise_add(vp_noise_summary *summary, const vp_noise *noise);

/* The spread of one time, from pairs of times that should be alike: the standard deviation of a logarithm.
 * in:      log_ratios  double [count]  log(second / first) of each pair; sorted by the call
 * returns: NaN below VP_NOISE_PAIRS_MIN pairs
 * rule:    1.4826 * median |x - median x| / sqrt 2: what all pairs have in common does not count, nor do a few slow
 *          times */
VP_API double vp_noise_spread(double *log_ratios, size_t count);

#define VP_NOISE_IS_BUSY 1   /* other processes */
#define VP_NOISE_IS_STOLEN 2 /* the host of a virtual machine */
#define VP_NOISE_IS_SPREAD 4 /* times of equal work differ */
/* returns: 0, or the sum of the reasons why the machine was not quiet. What is not known is not a reason. */
VP_API int vp_noise_reasons(const vp_noise_summary *summary);

VP_EXTERN_C_END
#endif /* VLMPROF_NOISE_H */
