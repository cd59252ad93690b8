/* provenance.h: build, machine, device and options, as JSON.
 * put_... writes into the open object, unless stated otherwise. */
#ifndef VLMPROF_CLI_PROVENANCE_H
#define VLMPROF_CLI_PROVENANCE_H
#include "base/options.h"
#include "vlmprof_engine.h"
#include "vlmprof_stages.h"

/* Writes a key and the options as an object. */
void put_options(vp_json_writer *writer, const char *key, const struct options *options);
char *options_json(const struct options *options); /* the same as a JSON text, malloc'ed */

/* CUDA's version numbers as text: 13010 is "13.1". Returns out. */
const char *version_text(int32_t cuda, char out[24]);

/* The compiler and the CUDA toolkit; valid until the next call. */
const char *build_text(void);

/* Writes a GPU as an object, a value. */
void put_gpu(vp_json_writer *writer, int32_t index, const vp_device_info *gpu);

/* The current time as 2026-11-22T20:00:00Z, and the name of this machine; "unknown" if the system does not report it.
 * Both return out. */
enum { DATE_BYTES = 40, HOST_BYTES = 256 };
const char *date_text(char out[DATE_BYTES]);
const char *host_text(char out[HOST_BYTES]);

/* Writes the place, time and program of the measurement, with the settings of the engine. engine NULL: a server ran the
 * model, and values known only to the device are null. */
void put_provenance(vp_json_writer *writer, const struct options *options, const vp_engine *engine,
                    const vp_engine_options *settings);

#endif
