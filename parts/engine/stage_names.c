/* stage_names.c - names of stages, of parts of the model, of reasons to run slower */
#include "vlmprof_stages.h"

VP_API const char *vp_stage_name(vp_stage stage) {
    static const char *const names[] = {
#define VK_STAGE_NAME(name, text) text,
        VP_STAGES(VK_STAGE_NAME)
#undef VK_STAGE_NAME
    };
    return (int)stage >= 0 && stage < VP_STAGE_COUNT ? names[stage] : "unknown";
}

VP_API const char *vp_part_name(vp_part part) {
    static const char *const names[] = {
#define VK_PART_NAME(name, text) text,
        VP_PARTS(VK_PART_NAME)
#undef VK_PART_NAME
    };
    return (int)part >= 0 && part < VP_PART_COUNT ? names[part] : "unknown";
}

VP_API const char *vp_telemetry_throttle_name(int32_t bit) {
    switch (bit) {
#define VK_THROTTLE_CASE(number, text) \
    case number: return text;
        VP_THROTTLE_REASONS(VK_THROTTLE_CASE)
#undef VK_THROTTLE_CASE
    default: return NULL;
    }
}
