/* vlmprof_caption.h: stands for its subject until that leaves vlmprof.h */
#include "vlmprof.h"
