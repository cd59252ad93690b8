/* counting_clock.h: a clock that advances by slightly more at each reading, so that a program measures the same times in each run. Include it before vlmprof.h where the
 * implementation is compiled for $B/tests/vlmprof-clock. One thread reads it at a time. */
#ifndef COUNTING_CLOCK_H
#define COUNTING_CLOCK_H
#include <stdint.h>
static inline int64_t counting_clock_ns(void) {
    static int64_t now_ns, step_ns = 1000000;
    step_ns = step_ns % 7000000 + 123457; /* no two stages take the same time */
    return now_ns += step_ns;
}
#define VLMPROF_CLOCK_NS counting_clock_ns()
#endif
