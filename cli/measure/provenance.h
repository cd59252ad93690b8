/* provenance.h: build, machine, device and options, as JSON.
 * put_... writes into the open object, unless it says otherwise. */
#ifndef VLMPROF_CLI_PROVENANCE_H
#define VLMPROF_CLI_PROVENANCE_H
#include "base/options.h"
#include "vlmprof.h"
#include "vlmprof_engine.h"
#include "vlmprof_stages.h"

/* The options as an object, which is a value: its key was written before. */
void put_options(vp_json_writer *writer, const struct options *options);
/* The key "config" and the options. */
void put_config(vp_json_writer *writer, const struct options *options);

/* CUDA's version numbers as text: 13010 is "13.1". Returns out. */
const char *version_text(int32_t cuda, char out[24]);

/* The compiler and the CUDA toolkit; valid until the next call. */
const char *build_text(void);

/* A GPU as an object, a value. */
void put_gpu(vp_json_writer *writer, int32_t index, const vp_device_info *gpu);

/* The number of the GPU that an engine runs on; -1: the CPU. */
int32_t gpu_of(const vp_engine *engine);

/* Clocks, power and temperature as an object, a value. */
void put_telemetry(vp_json_writer *writer, const vp_telemetry *telemetry);

/* The time now as 2026-11-22T20:00:00Z, the name of this machine; "unknown" where the system does not say. Return
 * out. */
enum { DATE_BYTES = 40, HOST_BYTES = 256 };
const char *date_text(char out[DATE_BYTES]);
const char *host_text(char out[HOST_BYTES]);

/* Where, when and by what this was measured. engine NULL: a server ran the model, and what only the device knows is
 * null. */
void put_provenance(vp_json_writer *writer, const struct options *options, const vp_engine *engine);

#endif
