/* vlmprof_noise.h - v0.2.0 - other activity of a machine during a measurement - MIT licence
 *
 * A program runs slower when other programs also use the processor. This header reads Linux's counters of that
 * activity. Read them before and after a block of measurements, outside the timed section, and take the difference.
 * Several blocks make a summary, and a rule decides whether the machine was quiet.
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

/* One reading. Unknown numbers are -1 for counters and NaN for the others. */
typedef struct vp_noise_reading {
    int64_t cpu_count;
    int64_t total_ticks, busy_ticks, steal_ticks; /* totals of all CPUs since boot; busy excludes steal */
    int64_t own_ticks;                            /* CPU time of this process, its threads and its terminated
                                                   * children */
    double load;                                  /* mean number of runnable tasks over the last minute */
    double mhz_low, mhz_high;                     /* the slowest and the fastest of the first VP_NOISE_CPUS_MAX CPUs */
} vp_noise_reading;
#define VP_NOISE_CPUS_MAX 16
/* Reads ROOT/proc/stat, ROOT/proc/self/stat, ROOT/proc/loadavg and the frequencies below ROOT/sys/devices/system/cpu,
 * or if there are none, those of ROOT/proc/cpuinfo.
 * in:      root  "" for this machine; tests pass a folder with their own files; at most 300 bytes are used
 * rule:    if a file is missing, truncated or malformed, its numbers are unknown
 * numeric: a tick is 10 ms on Linux. The kernel counts a CPU's time in ticks and a process's time in nanoseconds
 * memory:  none
 * threads: reentrant */
VP_API void vp_noise_read(const char *root, vp_noise_reading *reading);

/* The activity between two readings. NaN: not known. */
typedef struct vp_noise {
    double load;              /* load of the later reading */
    double steal_percent;     /* share of all CPU time that the host of a virtual machine took */
    double other_cpu_percent; /* share of all CPU time that other processes and the kernel used. It can be slightly
                               * below 0, because ticks are coarse */
    double mhz_low, mhz_high; /* over both readings */
} vp_noise;
/* returns: 1; 0 if nothing is known; *noise is then all NaN
 * rule:    the shares are known if each CPU counted at least VP_NOISE_TICKS_MIN ticks, and no counter ran backwards or
 *          exceeds the total */
VP_API int vp_noise_between(const vp_noise_reading *before, const vp_noise_reading *after, vp_noise *noise);
/* Returns 1 if the time between two readings is long enough for shares, or is not known. */
VP_API int vp_noise_is_long_enough(const vp_noise_reading *before, const vp_noise_reading *after);

/* ---- the rule. The machine was not quiet if one of these is true:
 * - other processes used at least VP_NOISE_OTHER_PERCENT of the CPUs' time during at least VP_NOISE_BLOCKS_SHARE of
 *   the blocks,
 * - its host took at least VP_NOISE_STEAL_PERCENT of the CPUs' time during at least VP_NOISE_BLOCKS_SHARE of them,
 * - equal work took times that spread by more than VP_NOISE_SPREAD.
 * The load average is not used, because it counts the program's own threads and lags by a minute. Frequencies are not
 * used, because an idle CPU lowers its own. */
#define VP_NOISE_TICKS_MIN 20
/* Shares of 20 ticks have steps of 5 %, and two steps exceed one misattributed tick. Measured on 2 CPUs with 2 threads:
 * with 36 to 48 % used by other processes, a stage took 2.3 times as long as with 1 %. With 70 and 80 %, whole runs
 * took 2.2 and 3.0 times as long as with 40 %. The spread stayed below 5 %, so it does not detect a constant load. */
#define VP_NOISE_OTHER_PERCENT 10.0
/* A stolen tick always stops a runnable thread, so one of 20 ticks is already too much. */
#define VP_NOISE_STEAL_PERCENT 5.0
/* A percentile p moves when about 1 - p of the values are slow: a tenth of slow values moves P90 and above. */
#define VP_NOISE_BLOCKS_SHARE 0.1
/* Few samples cannot distinguish knobs that differ by less than this. */
#define VP_NOISE_SPREAD 0.05
/* With fewer pairs, the error of the spread exceeds a quarter of its value. */
#define VP_NOISE_PAIRS_MIN 10

/* The summary of several blocks. Means are over the blocks with a known number; NaN if none has one. */
typedef struct vp_noise_summary {
    int64_t samples;                                    /* blocks with any known number */
    int64_t load_samples, steal_samples, other_samples; /* blocks in which this number is known */
    int64_t busy_samples, stolen_samples; /* blocks in which other processes, or the host, took too much time */
    double load, steal_percent, other_cpu_percent;
    double busy_percent, stolen_percent; /* means over samples with other processes and with steal time */
    double mhz_low, mhz_high;
    double spread;      int64_t pair_count;      /* spread of neighbouring runs, see vp_noise_spread */
    double bare_spread; int64_t bare_pair_count; /* spread of pairs of runs without and with stage times */
} vp_noise_summary;
VP_API vp_noise_summary vp_noise_summary_none(void);
VP_API void vp_noise_add(vp_noise_summary *summary, const vp_noise *noise);

/* The spread of a time, from pairs of times that should be equal: the standard deviation of the logarithm.
 * in:      log_ratios  double [count]  log(second / first) of each pair; the call sorts them
 * returns: the spread; NaN for fewer than VP_NOISE_PAIRS_MIN pairs
 * rule:    1.4826 * median |x - median x| / sqrt 2: neither a difference common to all pairs nor a few slow times
 *          matter */
VP_API double vp_noise_spread(double *log_ratios, size_t count);

#define VP_NOISE_IS_BUSY 1   /* other processes */
#define VP_NOISE_IS_STOLEN 2 /* the host of a virtual machine */
#define VP_NOISE_IS_SPREAD 4 /* times of equal work differ */
/* Returns 0, or the sum of the reasons why the machine was not quiet. Unknown numbers are not a reason. */
VP_API int vp_noise_reasons(const vp_noise_summary *summary);

VP_EXTERN_C_END
#endif /* VLMPROF_NOISE_H */
