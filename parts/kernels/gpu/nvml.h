/* nvml.h - clocks, power, temperature and energy of a GPU, through NVML; included by vlmprof_kernels.cu */

/* ---- telemetry. The library stays loaded and NVML counts its users, so nothing is stored here and any thread may
 * call these functions. */
typedef struct vk_nvml_shares { unsigned gpu, memory; } vk_nvml_shares;
typedef struct vk_nvml_violation { unsigned long long reference_us, ns; } vk_nvml_violation;
typedef struct vk_nvml_memory { unsigned long long total, free, used; } vk_nvml_memory;
/* member, its function, its arguments; a member is NULL if the library lacks the function */
#define VK_NVML_FUNCTIONS(X) \
    X(start, "nvmlInit_v2", (void)) X(find, "nvmlDeviceGetHandleByPciBusId_v2", (const char *address, void **device)) \
    X(clock, "nvmlDeviceGetClockInfo", (void *device, int kind, unsigned *mhz)) \
    X(clock_max, "nvmlDeviceGetMaxClockInfo", (void *device, int kind, unsigned *mhz)) \
    X(power, "nvmlDeviceGetPowerUsage", (void *device, unsigned *milliwatts)) \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (void *device, unsigned *milliwatts)) \
    X(temperature, "nvmlDeviceGetTemperature", (void *device, int sensor, unsigned *celsius)) \
    X(shares, "nvmlDeviceGetUtilizationRates", (void *device, vk_nvml_shares *percent)) \
    X(reasons, "nvmlDeviceGetCurrentClocksEventReasons", (void *device, unsigned long long *bits)) \
    X(violation, "nvmlDeviceGetViolationStatus", (void *device, int policy, vk_nvml_violation *since_driver_start)) \
    X(memory, "nvmlDeviceGetMemoryInfo", (void *device, vk_nvml_memory *bytes)) \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", (void *device, unsigned long long *millijoules))
#define VK_NVML_MEMBER(member, name, arguments) int (*member) arguments;
typedef struct vk_nvml {
    const char *(*text)(int status);
    VK_NVML_FUNCTIONS(VK_NVML_MEMBER)
} vk_nvml;
enum { VK_NVML_CLOCK_SM = 1, VK_NVML_CLOCK_MEMORY = 2, VK_NVML_SENSOR_GPU = 0, VK_NVML_POWER = 0, VK_NVML_THERMAL = 1 };
/* function: address of a function pointer, which becomes NULL if the library lacks `name` */
static void vk_nvml_symbol(void *library, void *function, const char *name) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}
static vp_result vk_nvml_open(vk_nvml *nvml, vp_error *error) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    char text[200];
    memset(nvml, 0, sizeof *nvml);
    if (!library) {
        const char *reason = dlerror();
        snprintf(text, sizeof text, "%.150s; it comes with the NVIDIA driver",
                 reason ? reason : "libnvidia-ml.so.1 is missing");
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML", text);
    }
#define VK_NVML_SYMBOL(member, name, arguments) vk_nvml_symbol(library, &nvml->member, name);
    VK_NVML_FUNCTIONS(VK_NVML_SYMBOL)
    vk_nvml_symbol(library, &nvml->text, "nvmlErrorString");
    if (!nvml->reasons) /* its name before driver 535 */
        vk_nvml_symbol(library, &nvml->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!nvml->start || !nvml->find)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML",
                            "libnvidia-ml.so.1 lacks a function that vlmprof calls");
    int status = nvml->start();
    if (status == 0) return VP_OK;
    snprintf(text, sizeof text, "cannot start: %.150s (status %d)", nvml->text ? nvml->text(status) : "nvmlInit_v2",
             status);
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML", text);
}
/* opens NVML and finds CUDA device `index` in it by its PCI address */
static vp_result vk_nvml_find(vk_nvml *nvml, int32_t index, void **device, vp_error *error) {
    char address[32], text[200];
    cudaError_t cuda_status = cudaDeviceGetPCIBusId(address, (int)sizeof address, index);
    if (cuda_status != cudaSuccess) return vk_cuda_fail(error, cuda_status, "cudaDeviceGetPCIBusId");
    vp_result result = vk_nvml_open(nvml, error);
    if (result != VP_OK) return result;
    int status = nvml->find(address, device);
    if (status == 0) return VP_OK;
    snprintf(text, sizeof text, "does not know the device at %.30s: %.100s (status %d)", address,
             nvml->text ? nvml->text(status) : "", status);
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML", text);
}
/* UINT64_MAX if unknown */
static uint64_t vk_nvml_free_bytes(int32_t index) {
    vk_nvml nvml;
    vk_nvml_memory memory;
    void *device = NULL;
    if (vk_nvml_find(&nvml, index, &device, NULL) != VP_OK || !nvml.memory || nvml.memory(device, &memory) != 0)
        return UINT64_MAX;
    return memory.free;
}
static vp_result vk_cuda_telemetry(int32_t index, vp_telemetry *out, vp_error *error) {
    vk_nvml nvml;
    vk_nvml_shares shares;
    vk_nvml_violation power, thermal;
    vp_telemetry telemetry;
    void *device = NULL;
    unsigned value;
    unsigned long long bits;
    vp_result result = vk_cuda_find(index, error);
    if (result == VP_OK) result = vk_nvml_find(&nvml, index, &device, error);
    if (result != VP_OK) return result;
    vk_no_telemetry(&telemetry);
    if (nvml.clock && nvml.clock(device, VK_NVML_CLOCK_SM, &value) == 0) telemetry.sm_clock_mhz = value;
    if (nvml.clock && nvml.clock(device, VK_NVML_CLOCK_MEMORY, &value) == 0) telemetry.memory_clock_mhz = value;
    if (nvml.clock_max && nvml.clock_max(device, VK_NVML_CLOCK_SM, &value) == 0) telemetry.sm_clock_max_mhz = value;
    if (nvml.clock_max && nvml.clock_max(device, VK_NVML_CLOCK_MEMORY, &value) == 0)
        telemetry.memory_clock_max_mhz = value;
    if (nvml.power && nvml.power(device, &value) == 0) telemetry.power_w = value * 1e-3;
    if (nvml.power_limit && nvml.power_limit(device, &value) == 0) telemetry.power_limit_w = value * 1e-3;
    if (nvml.temperature && nvml.temperature(device, VK_NVML_SENSOR_GPU, &value) == 0) telemetry.temperature_c = value;
    if (nvml.shares && nvml.shares(device, &shares) == 0) telemetry.utilisation_percent = shares.gpu;
    if (nvml.reasons && nvml.reasons(device, &bits) == 0) {
        telemetry.throttle_reasons = bits;
        telemetry.has_throttle_reasons = 1;
    }
    if (nvml.violation && nvml.violation(device, VK_NVML_POWER, &power) == 0
        && nvml.violation(device, VK_NVML_THERMAL, &thermal) == 0)
        telemetry.throttle_count = (double)power.ns + (double)thermal.ns;
    *out = telemetry;
    return VP_OK;
}
static vp_result vk_cuda_energy(int32_t index, double *joules, vp_error *error) {
    vk_nvml nvml;
    void *device = NULL;
    unsigned long long millijoules = 0;
    char text[200];
    vp_result result = vk_cuda_find(index, error);
    if (result == VP_OK) result = vk_nvml_find(&nvml, index, &device, error);
    if (result != VP_OK) return result;
    if (!nvml.energy)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML", "has no nvmlDeviceGetTotalEnergyConsumption");
    int status = nvml.energy(device, &millijoules);
    if (status == 0) {
        *joules = (double)millijoules * 1e-3;
        return VP_OK;
    }
    snprintf(text, sizeof text, "does not count energy on this device: %.100s (status %d)",
             nvml.text ? nvml.text(status) : "", status);
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "NVML", text);
}
