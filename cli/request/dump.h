/* dump.h: what a request held on the way, as NumPy files. */
#ifndef VLMPROF_CLI_DUMP_H
#define VLMPROF_CLI_DUMP_H
#include "base/metrics.h"
#include "request/model.h"
#include "request/request.h"
#include "vlmprof_engine.h"

/* room for what the engine copies out */
void dump_reserve(vp_dump *d, const model *m, const work *k);

/* The files of --dump; without an image the four image arrays have no crops, so that nothing of an earlier dump stays. */
int dump_write(const char *folder, const session *s, const work *k, const timing *t, const vp_dump *d);

#endif
