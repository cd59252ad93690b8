/* vlmprof_ranges.hpp - v0.2.0 - a scope guard in C++ for the ranges of vlmprof_ranges.h - MIT licence
 *
 *     vp::range range(&ranges, "decode"); // ends with the scope, also when an exception leaves it
 *
 * Optional: the C functions serve in C++ as well. Needs vlmprof_ranges.h, and includes it; C++11 or later.
 * errors:  what vp_range_begin returned is in status(). Only VP_ERR_RANGE (no name) begins nothing
 * threads: one vp_ranges per thread
 * example: samples/05_ranges.cpp */
#ifndef VLMPROF_RANGES_HPP
#define VLMPROF_RANGES_HPP
#include "vlmprof_ranges.h"

namespace vp {

/* A range from here to the end of the scope. */
class range {
  public:
    /* in: ranges, name  as vp_range_begin; the name must live as long as `ranges`
     *     file, line    the caller's place, filled in by the compiler (gcc, clang, MSVC) */
    range(vp_ranges *ranges, const char *name, const char *file = __builtin_FILE(), int32_t line = __builtin_LINE())
        : ranges_(ranges), status_(vp_range_begin(ranges, name, file, line)) {}
    ~range() { end(); }
    range(const range &) = delete;
    range &operator=(const range &) = delete;

    /* Says what it works on, as vp_range_set; only while it is the innermost open range. */
    vp_result set(const vp_range_payload &payload) { return vp_range_set(ranges_, &payload); }
    /* Ends it before the scope does. Later calls and the destructor then do nothing. */
    void end() {
        if (ranges_ && status_ != VP_ERR_RANGE) vp_range_end(ranges_);
        ranges_ = nullptr;
    }
    /* Of vp_range_begin: VP_OK, or VP_ERR_CAPACITY where the range has no record and is counted as dropped. */
    vp_result status() const { return status_; }

  private:
    vp_ranges *ranges_;
    vp_result status_;
};

} // namespace vp

#endif
