/* provenance.h: build, machine, device and options, as JSON. */
#ifndef VLMPROF_CLI_PROVENANCE_H
#define VLMPROF_CLI_PROVENANCE_H
#include "base/options.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_stages.h"

void put_options(vp_json_writer *w, const options *o);
void put_config(vp_json_writer *w, const options *o);

const char *version_text(int32_t cuda, char out[24]); /* CUDA's numbers: 13010 is 13.1 */
const char *build_text(void);
void put_gpu(vp_json_writer *w, int32_t index, const vp_device_info *gpu);

/* The number of the GPU that an engine runs on, "cuda:N: <name>"; -1: the CPU. */
int32_t gpu_of(const vp_engine *engine);

void put_telemetry(vp_json_writer *w, const vp_telemetry *t);

/* where, when and by what this was measured; members of an open object */
void put_provenance(vp_json_writer *w, const options *o, const vp_engine *engine);

#endif
