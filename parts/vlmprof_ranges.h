/* vlmprof_ranges.h: stands for its subject until that leaves vlmprof.h */
#include "vlmprof.h"
