/* provenance.c: build, machine, device and options, as JSON. */
#include "request/provenance.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void put_options(vp_json_writer *w, const options *o) {
    vp_json_begin_object(w);
    for (size_t i = 0; i < o->command->option_count; i++) {
        const option_spec *s = &o->command->options[i];
        const option_value *v = &o->values[i];
        if (!strcmp(s->name, "help")) continue;
        vp_json_key(w, s->name);
        if (s->kind == FLAG) vp_json_bool(w, v->given);
        else if (!v->text) vp_json_null(w);
        else if (s->kind == COUNT) vp_json_int(w, v->number);
        else if (s->kind == REAL) vp_json_double(w, v->real);
        else if (s->kind == TEXT || s->kind == MAYBE || s->kind == CHOICE) json_lossy(w, v->text);
        else {
            vp_json_begin_array(w);
            for (size_t k = 0; k < v->count; k++) if (s->kind == COUNTS) vp_json_int(w, v->numbers[k]); else json_lossy(w, v->items[k]);
            vp_json_end_array(w);
        }
    }
    vp_json_end_object(w);
}
void put_config(vp_json_writer *w, const options *o) {
    vp_json_key(w, "config");
    put_options(w, o);
}

const char *version_text(int32_t cuda, char out[24]) {
    snprintf(out, 24, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    return out;
}
const char *build_text(void) {
    static char text[300];
    char toolkit[24];
    if (vp_device_toolkit()) snprintf(text, sizeof text, "compiler %.200s, CUDA %s", __VERSION__, version_text(vp_device_toolkit(), toolkit));
    else snprintf(text, sizeof text, "compiler %.200s, no GPU code", __VERSION__);
    return text;
}
void put_gpu(vp_json_writer *w, int32_t index, const vp_device_info *gpu) {
    char text[24];
    vp_json_begin_object(w);
    put_int(w, "index", index);
    put_text(w, "name", gpu->name);
    snprintf(text, sizeof text, "%d.%d", gpu->compute_major, gpu->compute_minor);
    put_text(w, "compute_capability", text);
    put_int(w, "multiprocessors", gpu->multiprocessor_count);
    put_int(w, "memory_bytes", (int64_t)gpu->memory_bytes);
    put_int(w, "free_bytes", (int64_t)gpu->free_bytes);
    put_text(w, "driver", version_text(gpu->driver_version, text));
    put_text(w, "runtime", version_text(gpu->runtime_version, text));
    vp_json_end_object(w);
}
int32_t gpu_of(const vp_engine *engine) {
    const char *device = vp_engine_device(engine);
    return strncmp(device, "cuda:", 5) ? -1 : (int32_t)strtol(device + 5, NULL, 10);
}

void put_telemetry(vp_json_writer *w, const vp_telemetry *t) {
    vp_json_begin_object(w);
    put_double(w, "sm_clock_mhz", t->sm_clock_mhz);
    put_double(w, "memory_clock_mhz", t->memory_clock_mhz);
    put_double(w, "power_w", t->power_w);
    put_double(w, "temperature_c", t->temperature_c);
    vp_json_key(w, "throttle_reasons");
    if (t->has_throttle_reasons) {
        vp_json_begin_array(w);
        for (int32_t bit = 0; bit < 64; bit++)
            if ((t->throttle_reasons >> bit & 1) && vp_telemetry_throttle_name(bit)) vp_json_string(w, vp_telemetry_throttle_name(bit));
        vp_json_end_array(w);
    } else vp_json_null(w);
    put_double(w, "throttle_count", t->throttle_count);
    vp_json_end_object(w);
}
void put_provenance(vp_json_writer *w, const options *o, const vp_engine *engine) {
    char host[256] = "unknown", date[40] = "unknown";
    time_t now = time(NULL);
    struct tm utc;
    struct utsname system;
    vp_device_info gpu;
    vp_telemetry telemetry;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    put_text(w, "version", VLMPROF_VERSION);
    put_text(w, "build", build_text());
    put_text(w, "host", host);
    put_text(w, "kernel", uname(&system) ? NULL : system.release);
    put_text(w, "date", date);
    put_text(w, "device", vp_engine_device(engine));
    put_text(w, "device_note", vp_engine_device_note(engine)[0] ? vp_engine_device_note(engine) : NULL);
    vp_json_key(w, "gpu");
    if (gpu_of(engine) >= 0 && vp_device_describe(gpu_of(engine), &gpu, NULL) == VP_OK) put_gpu(w, gpu_of(engine), &gpu); else vp_json_null(w);
    put_text(w, "gemm_rows_1", vp_engine_gemm(engine, 1));
    put_text(w, "gemm_rows_1024", vp_engine_gemm(engine, 1024));
    put_int(w, "threads", number_of(o, "threads"));
    put_int(w, "seed", number_of(o, "seed"));
    vp_json_key(w, "clocks"); /* null where neither NVML nor the system tells them */
    if (vp_device_telemetry(gpu_of(engine), &telemetry, NULL) == VP_OK) put_telemetry(w, &telemetry); else vp_json_null(w);
    vp_json_key(w, "argv");
    vp_json_begin_array(w);
    for (int i = 0; i < o->argc; i++) json_lossy(w, o->argv[i]);
    vp_json_end_array(w);
}
