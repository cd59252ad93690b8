/* npy.h: reads NumPy's files and checks their values. */
#ifndef VLMPROF_CLI_CONFORM_NPY_H
#define VLMPROF_CLI_CONFORM_NPY_H
#include "vlmprof.h"

enum { NPY_DIMENSIONS_MAX = 8 };
/* An array: integers or reals, [count]. One of the two is malloc'ed, the other NULL. */
struct npy { int dimensions; int64_t shape[NPY_DIMENSIONS_MAX]; size_t count; int32_t *whole; float *real; };

/* Reads a file of version 1, 2 or 3, little-endian and in C order: integers of 1 to 8 bytes within int32, or finite
 * float16, float32 and float64.
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_READ; VP_ERR_MEMORY; VP_ERR_FORMAT: anything else, with the reason. After a
 * failure *npy is empty. */
vp_result npy_read(const char *path, struct npy *npy, vp_error *error);
void npy_free(struct npy *npy);

#endif
