/* test_provenance.c: options of each kind as JSON, versions, a synthetic GPU and its clocks, compared as whole texts. */
#define _POSIX_C_SOURCE 200809L
#include "base/json.h"
#include "measure/provenance.h"
#include "measure/record.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"

static struct text_buffer out;
static vp_json_writer writer;
static vp_json_writer *begin(void) {
    out.bytes = 0;
    vp_json_writer_init_sink(&writer, text_sink, &out, 0);
    return &writer;
}
static const char *end(void) {
    CHECK_INT(vp_json_finish(&writer), VP_OK);
    return out.data;
}
static const struct option_spec rows[] = {
    {"flag", FLAG, NULL, NULL, 0, 0, NULL, "h"},
    {"count", COUNT, "N", "5", 0, 100, NULL, "h"},
    {"real", REAL, "X", NULL, 0, 100, NULL, "h"},
    {"text", TEXT, "T", NULL, 0, 0, NULL, "h"},
    {"choice", CHOICE, "C", "a", 0, 0, "a b", "h"},
    {"maybe", MAYBE, "M", NULL, 0, 0, NULL, "h"},
    {"texts", TEXTS, "T...", NULL, 0, 0, NULL, "h"},
    {"counts", COUNTS, "N...", NULL, 0, 100, NULL, "h"},
    {"help", FLAG, NULL, NULL, 0, 0, NULL, "h"}};
static struct command made_up;
static void options_are(const char *words, const char *want) {
    struct options options;
    CHECK_INT(HEARD(options_of_words(&options, &made_up, words)), 0);
    vp_json_begin_object(begin());
    put_options(&writer, "config", &options);
    vp_json_end_object(&writer);
    CHECK_TEXT(end(), want);
    options_free(&options);
}
static void test_options(void) {
    made_up.name = "made";
    made_up.options = rows;
    made_up.option_count = sizeof rows / sizeof *rows;
    check_case("options of each kind, given and by default");
    options_are("", "{\"config\": {\"flag\": false, \"count\": 5, \"real\": null, \"text\": null, \"choice\": \"a\", "
                    "\"maybe\": null, \"texts\": null, \"counts\": null}}");
    options_are("--flag --count 7 --real 2.5 --text t --choice b --maybe=m --texts x y --counts 3 4",
                "{\"config\": {\"flag\": true, \"count\": 7, \"real\": 2.5, \"text\": \"t\", \"choice\": \"b\", "
                "\"maybe\": \"m\", \"texts\": [\"x\", \"y\"], \"counts\": [3, 4]}}");
}
static void test_gpu(void) {
    vp_device_info gpu = {0};
    char text[24];
    int bit = -1;
    check_case("versions in CUDA's numbering; a GPU");
    CHECK_TEXT(version_text(13010, text), "13.1");
    CHECK_TEXT(version_text(12080, text), "12.8");
    CHECK_TEXT(version_text(9000, text), "9.0");
    CHECK(strstr(build_text(), "compiler ") == build_text() && strstr(build_text(), ", no GPU code"));
    snprintf(gpu.name, sizeof gpu.name, "NVIDIA Made");
    gpu.compute_major = 9;
    gpu.compute_minor = 1;
    gpu.multiprocessor_count = 132;
    gpu.memory_bytes = 80;
    gpu.free_bytes = 79;
    gpu.driver_version = 13010;
    gpu.runtime_version = 12080;
    put_gpu(begin(), 3, &gpu);
    CHECK_TEXT(end(), "{\"index\": 3, \"name\": \"NVIDIA Made\", \"compute_capability\": \"9.1\", \"multiprocessors\": 132, \"memory_bytes\": 80, \"free_bytes\": 79, "
                      "\"driver\": \"13.1\", \"runtime\": \"12.8\"}");
    check_case("clocks, and each named throttle reason");
    vp_telemetry telemetry = {.sm_clock_mhz = 1500, .memory_clock_mhz = 2600, .power_w = (double)NAN, .temperature_c = 40.5, .throttle_count = 2};
    put_telemetry(begin(), &telemetry);
    CHECK_TEXT(end(), "{\"sm_clock_mhz\": 1500.0, \"memory_clock_mhz\": 2600.0, \"power_w\": null, \"temperature_c\": 40.5, "
                      "\"throttle_reasons\": null, \"throttle_count\": 2.0}");
    telemetry.has_throttle_reasons = 1;
    put_telemetry(begin(), &telemetry);
    CHECK(strstr(end(), "\"throttle_reasons\": [], ") != NULL);
    for (int i = 0; i < 64; i++) if (vp_telemetry_throttle_name(i)) bit = i;
    if (CHECK(bit >= 0)) {
        char want[200];
        telemetry.throttle_reasons = UINT64_C(1) << bit | UINT64_C(1) << 63;
        put_telemetry(begin(), &telemetry);
        snprintf(want, sizeof want, "\"throttle_reasons\": [\"%s\"%s", vp_telemetry_throttle_name(bit), bit == 63 ? "]" : "], ");
        CHECK(strstr(end(), want) != NULL);
        telemetry.throttle_reasons = 1;
        put_telemetry(begin(), &telemetry);
        if (vp_telemetry_throttle_name(0)) CHECK(strstr(end(), vp_telemetry_throttle_name(0)) != NULL);
        else CHECK(strstr(end(), "[]") != NULL);
    }
}

int main(void) {
    if (!folder_make("provenance")) return 1;
    test_options();
    test_gpu();
    free(out.data);
    return room_end("test_provenance");
}
