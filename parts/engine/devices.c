/* devices.c - lists the devices, and finds the one that an engine will use */
#include "engine_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const vk_backend *vk_gpu(void) {
#if defined(__GNUC__) && !defined(__APPLE__) /* Mach-O does not link undefined weak references */
    return vk_gpu_code ? vk_gpu_code() : NULL;
#else
    return NULL;
#endif
}

static vp_result vk_no_gpu_code(vp_error *error) {
    return vp_error_set(
        error, VP_ERR_DEVICE, -1, "cuda",
        access("/proc/driver/nvidia/version", F_OK)
            ? "this build has no GPU code; build it with nvcc (CUDA Toolkit 12.8 or later)"
            : "this build has no GPU code, but there is an NVIDIA driver: install the CUDA Toolkit 12.8 or "
              "later with cuBLAS, then run make again");
}

VP_API vp_result vp_device_count(int32_t *count, vp_error *error) {
    return vk_gpu() ? vk_gpu()->device_count(count, error) : vk_no_gpu_code(error);
}

VP_API const vp_gpu_word *vp_gpu_word_at(int32_t index) {
#define VK_GPU_WORD(name, bit, word, same_bits) {word, bit, same_bits},
    static const vp_gpu_word words[] = {VP_GPU_SWITCHES(VK_GPU_WORD)};
    return index >= 0 && index < (int32_t)(sizeof words / sizeof *words) ? &words[index] : NULL;
}
VP_API vp_result vp_device_ways(int32_t index, char *text, size_t capacity, vp_error *error) {
    vp_device_info info;
    const vp_gpu_word *word;
    vp_result result = vp_device_describe(index, &info, error);
    if (result != VP_OK) return result;
    snprintf(text, capacity, "--gpu (all off by default):");
    for (int is_possible = 1; is_possible >= 0; is_possible--)
        for (int32_t i = 0; (word = vp_gpu_word_at(i)) != NULL; i++) {
            vp_error lacks = {VP_OK, -1, "", ""};
            size_t used = strlen(text);
            if ((vk_gpu()->device_switch(index, word->bit, &lacks) == VP_OK) != is_possible) continue;
            snprintf(text + used, capacity - used, "%s %s%s%s", is_possible ? "" : "; not", word->word,
                     is_possible ? "" : ": ", lacks.text);
        }
    return VP_OK;
}
VP_API vp_result vp_device_describe(int32_t index, vp_device_info *info, vp_error *error) {
    return vk_gpu() ? vk_gpu()->device_describe(index, info, error) : vk_no_gpu_code(error);
}

VP_API vp_result vp_device_telemetry(int32_t cuda_device, vp_telemetry *out, vp_error *error) {
    if (cuda_device == -1) return vk_cpu_code()->telemetry(cuda_device, out, error);
    return vk_gpu() ? vk_gpu()->telemetry(cuda_device, out, error) : vk_no_gpu_code(error);
}

VP_API vp_result vp_device_energy(int32_t cuda_device, double *joules, vp_error *error) {
    if (cuda_device == -1) return vk_cpu_code()->energy(cuda_device, joules, error);
    return vk_gpu() ? vk_gpu()->energy(cuda_device, joules, error) : vk_no_gpu_code(error);
}

VP_API vp_result vp_device_reset(int32_t cuda_device, vp_error *error) {
    return vk_gpu() ? vk_gpu()->device_reset(cuda_device, error) : vk_no_gpu_code(error);
}

VP_API int32_t vp_device_toolkit(void) { return vk_gpu() ? vk_gpu()->toolkit : 0; }

vp_result vk_choose_device(vp_engine *engine, const char *device, int *index, vp_error *error) {
    vp_error why = {VP_OK, -1, "", ""};
    int32_t count;
    *index = 0;
    engine->backend = vk_cpu_code();
    if (strcmp(device, "cpu") == 0) return VP_OK;
    if (strcmp(device, "auto") == 0) {
        if (!vk_gpu()) return VP_OK;
        if (vp_device_count(&count, &why) == VP_OK) engine->backend = vk_gpu();
        else snprintf(engine->device_note, sizeof engine->device_note, "%s", why.text);
        return VP_OK;
    }
    if (strncmp(device, "cuda", 4) == 0 && (device[4] == 0 || device[4] == ':')) {
        const char *digits = device + 5;
        size_t length = device[4] ? strlen(digits) : 0;
        if (device[4] && (length < 1 || length > 4 || strspn(digits, "0123456789") != length))
            return vp_error_set(error, VP_ERR_RANGE, -1, device, "not a device; cuda:N counts from 0");
        if (device[4]) *index = atoi(digits);
        if (!vk_gpu()) return vk_no_gpu_code(error);
        engine->backend = vk_gpu();
        return VP_OK;
    }
    return vp_error_set(error, VP_ERR_RANGE, -1, device, "not a device; use auto, cpu, cuda or cuda:N");
}

VP_API const char *vp_engine_gemm_name(int32_t index) { return vk_cpu_code()->gemm_name(index); }

VP_API const char *vp_device_launch_timer(void) { return vk_gpu() ? vk_gpu()->launch_timer(NULL) : NULL; }

VP_API const vp_range_hooks *vp_engine_range_hooks(void) {
    const vp_range_hooks *hooks = vk_gpu() ? vk_gpu()->range_hooks() : NULL;
    return hooks ? hooks : vk_cpu_code()->range_hooks();
}
