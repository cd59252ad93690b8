/* provenance.c: build, machine, device and options, as JSON. */
#include "measure/provenance.h"

#include "measure/engine.h"
#include "measure/record.h"
#include "base/json.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void put_options(vp_json_writer *writer, const char *key, const struct options *options) {
    PUT(writer, KEY_OBJECT(key));
    for (size_t i = 0; i < options->command->option_count; i++) {
        const struct option_spec *spec = &options->command->options[i];
        const struct option_value *value = &options->values[i];
        if (spec->kind == GROUP || !strcmp(spec->name, "help")) continue;
        vp_json_key(writer, spec->name);
        if (spec->kind == FLAG) vp_json_bool(writer, value->given);
        else if (!value->text) vp_json_null(writer);
        else if (spec->kind == COUNT) vp_json_int(writer, value->number);
        else if (spec->kind == REAL) vp_json_double(writer, value->real);
        else if (spec->kind == TEXT || spec->kind == MAYBE || spec->kind == CHOICE) json_lossy(writer, value->text);
        else {
            vp_json_begin_array(writer);
            for (size_t k = 0; k < value->count; k++)
                if (spec->kind == COUNTS) vp_json_int(writer, value->numbers[k]);
                else json_lossy(writer, value->items[k]);
            vp_json_end_array(writer);
        }
    }
    vp_json_end_object(writer);
}
char *options_json(const struct options *options) {
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    put_options(&writer, NULL, options);
    return text.data;
}

const char *version_text(int32_t cuda, char out[24]) {
    snprintf(out, 24, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    return out;
}
const char *build_text(void) {
    static char text[300];
    char toolkit[24];
    if (vp_device_toolkit())
        snprintf(text, sizeof text, "compiler %.200s, CUDA %s", __VERSION__,
                 version_text(vp_device_toolkit(), toolkit));
    else snprintf(text, sizeof text, "compiler %.200s, no GPU code", __VERSION__);
    return text;
}
void put_gpu(vp_json_writer *writer, int32_t index, const vp_device_info *gpu) {
    char capability[24], driver[24], runtime[24];
    snprintf(capability, sizeof capability, "%d.%d", gpu->compute_major, gpu->compute_minor);
    PUT(writer, KEY_OBJECT(NULL), KEY("index", index), KEY("name", gpu->name), KEY("compute_capability", capability),
        KEY("multiprocessors", gpu->multiprocessor_count), KEY("memory_bytes", gpu->memory_bytes),
        KEY_KNOWN("free_bytes", gpu->free_bytes != UINT64_MAX, gpu->free_bytes),
        KEY("driver", version_text(gpu->driver_version, driver)),
        KEY("runtime", version_text(gpu->runtime_version, runtime)), END_OBJECT);
}
const char *date_text(char out[DATE_BYTES]) {
    time_t now = time(NULL);
    struct tm utc;
    strcpy(out, "unknown");
    if (gmtime_r(&now, &utc)) strftime(out, DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return out;
}
const char *host_text(char out[HOST_BYTES]) {
    memset(out, 0, HOST_BYTES);
    if (gethostname(out, HOST_BYTES - 1)) strcpy(out, "unknown");
    return out;
}
/* Writes the engine's device, its kernels, threads and clocks; null for a server. */
static void put_device(vp_json_writer *writer, const vp_engine *engine, const vp_engine_options *settings) {
    static const char *const not_known[] = {"device",         "device_note", "gpu",  "gemm_rows_1",
                                            "gemm_rows_1024", "threads",     "seed", "clocks"};
    vp_device_info gpu;
    vp_telemetry telemetry;
    if (!engine) {
        for (size_t i = 0; i < sizeof not_known / sizeof *not_known; i++) put_null(writer, not_known[i]);
        return;
    }
    put_text(writer, "device", vp_engine_device(engine));
    put_text(writer, "device_note", vp_engine_device_note(engine)[0] ? vp_engine_device_note(engine) : NULL);
    vp_json_key(writer, "gpu");
    if (gpu_of(engine) >= 0 && vp_device_describe(gpu_of(engine), &gpu, NULL) == VP_OK)
        put_gpu(writer, gpu_of(engine), &gpu);
    else vp_json_null(writer);
    PUT(writer, KEY("gemm_rows_1", vp_engine_gemm(engine, 1)), KEY("gemm_rows_1024", vp_engine_gemm(engine, 1024)),
        KEY("threads", settings->threads), KEY("seed", settings->seed));
    vp_json_key(writer, "clocks"); /* null if neither NVML nor the system reports them */
    if (vp_device_telemetry(gpu_of(engine), &telemetry, NULL) == VP_OK) put_telemetry(writer, &telemetry);
    else vp_json_null(writer);
}
void put_provenance(vp_json_writer *writer, const struct options *options, const vp_engine *engine,
                    const vp_engine_options *settings) {
    char host[HOST_BYTES], date[DATE_BYTES];
    struct utsname system;
    PUT(writer, KEY("version", VLMPROF_VERSION), KEY("build", build_text()), KEY("host", host_text(host)),
        KEY("kernel", uname(&system) ? NULL : system.release), KEY("date", date_text(date)));
    put_device(writer, engine, settings);
    PUT(writer, KEY_ARRAY("argv"));
    for (int i = 0; i < options->argc; i++) json_lossy(writer, options->argv[i]);
    vp_json_end_array(writer);
}
