/* vlmprof_ranges.hpp - v0.2.0 - scope guards in C++ for stages and ranges - MIT licence
 *
 *     vlmprof::stage stage(&clock, "decode");   // vp_stage_begin; ends with the scope, even on an exception
 *     vlmprof::range range(&ranges, "decode");  // the same for the ranges of vlmprof_ranges.h
 *
 * Optional: the C functions also work in C++. Includes vlmprof_ranges.h; needs C++11 or later. With VLMPROF_OFF, the
 * guards compile to nothing. A guard needs a name: without one, it ends at once (compilers warn from C++17 on).
 * errors:  status() returns the result of vp_range_begin. Only VP_ERR_RANGE (no name) begins no range
 * threads: one vp_stage_clock and one vp_ranges per thread
 * example: samples/05_ranges.cpp */
#ifndef VLMPROF_RANGES_HPP
#define VLMPROF_RANGES_HPP
#include "vlmprof_ranges.h"

#if __cplusplus >= 202002L
#define VP_NAMED [[nodiscard("a guard without a name ends at once: vlmprof::stage stage(&clock, \"decode\");")]]
#elif __cplusplus >= 201703L && (__GNUC__ >= 10 || (defined(__clang__) && __clang_major__ >= 10))
#define VP_NAMED [[nodiscard]]
#else
#define VP_NAMED
#endif
namespace vlmprof {
#ifdef VLMPROF_OFF
inline namespace off { /* files without VLMPROF_OFF have other classes */
#endif

/* A stage from here to the end of the scope.
 * in: clock, name  as vp_stage_begin; the name must outlive `clock`. A null `clock` switches the stage off */
class stage {
  public:
    VP_NAMED stage(vp_stage_clock *clock, const char *name) noexcept : clock_(clock) {
        if (clock) vp_stage_begin(clock, name);
    }
    ~stage() { end(); }
    stage(const stage &) = delete;
    stage &operator=(const stage &) = delete;

    /* Ends the stage before the scope ends. Later calls and the destructor then do nothing. */
    void end() noexcept {
        if (clock_) (void)vp_stage_end(clock_);
        clock_ = nullptr;
    }

  private:
    vp_stage_clock *clock_;
};

/* A range from here to the end of the scope. */
class range {
  public:
    /* in: ranges, name  as vp_range_begin; the name must outlive `ranges`. A null `ranges` switches the range off
     *     file, line    the caller's position, filled in by the compiler (gcc, clang, MSVC) */
    VP_NAMED range(vp_ranges *ranges, const char *name, const char *file = __builtin_FILE(),
                   int32_t line = __builtin_LINE()) noexcept
        : ranges_(ranges), status_(ranges ? vp_range_begin(ranges, name, file, line) : VP_OK) {}
    ~range() { end(); }
    range(const range &) = delete;
    range &operator=(const range &) = delete;

    /* Sets the range's work, as vp_range_set; only while it is the innermost open range. */
    vp_result set(const vp_range_payload &payload) noexcept {
        return ranges_ ? vp_range_set(ranges_, &payload) : VP_OK;
    }
    /* Ends the range before the scope ends. Later calls and the destructor then do nothing. */
    void end() noexcept {
        if (ranges_ && status_ != VP_ERR_RANGE) vp_range_end(ranges_);
        ranges_ = nullptr;
    }
    /* The result of vp_range_begin: VP_OK, or VP_ERR_CAPACITY if the range has no record and counts as dropped. VP_OK
     * for a range that is off. */
    vp_result status() const { return status_; }

  private:
    vp_ranges *ranges_;
    vp_result status_;
};

#ifdef VLMPROF_OFF
}
#endif
} // namespace vlmprof

#endif
