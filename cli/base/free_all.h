/* free_all.h: FREE_ALL(one, other) frees several pointers. */
#ifndef VLMPROF_CLI_FREE_ALL_H
#define VLMPROF_CLI_FREE_ALL_H
#include <stdlib.h>
#define FREE_ALL(...) \
    do { \
        void *const freed_[] = {__VA_ARGS__}; \
        for (size_t freed_at = 0; freed_at < sizeof freed_ / sizeof *freed_; freed_at++) free(freed_[freed_at]); \
    } while (0)
#endif
