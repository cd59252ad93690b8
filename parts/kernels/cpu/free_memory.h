/* free_memory.h: the bytes of memory that this process may still take: what the machine has (MemAvailable), and the
 * limits of its cgroups (versions 1 and 2) and of setrlimit. */
#include <sys/resource.h>
#include <unistd.h>

/* The number after `key` in a file; `key` "" is the file's first word. UINT64_MAX: not there, or "max". */
static uint64_t vk_number_in(const char *path, const char *key) {
    char line[256];
    unsigned long long value = 0;
    int found = 0;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = !strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), "%llu", &value) == 1;
    if (file) fclose(file);
    return found ? value : UINT64_MAX;
}
/* Lowers *least to what a cgroup's folder leaves. Pages of files that are not in use can be taken back, so are free. */
static void vk_cgroup_leaves(const char *folder, int version, uint64_t *least) {
    static const char *const names[2][4] = {
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file "},
        {"memory.max", "memory.current", "memory.stat", "inactive_file "}};
    const char *const *name = names[version == 2];
    uint64_t values[3];
    char path[700];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        values[i] = vk_number_in(path, i == 2 ? name[3] : "");
    }
    if (values[0] == UINT64_MAX || values[1] == UINT64_MAX) return;
    if (values[2] != UINT64_MAX) values[1] -= values[2] < values[1] ? values[2] : values[1];
    const uint64_t left = values[0] > values[1] ? values[0] - values[1] : 0;
    if (left < *least) *least = left;
}
/* The process's cgroup and those around it. In a container, the path may be that of the host; its root is then here. */
static void vk_cgroups_leave(uint64_t *least) {
    char line[512], folder[600];
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        const int version = !strncmp(line, "0::", 3) ? 2 : 1;
        const char *root = version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        if (!path || (version == 1 && !strstr(controllers, "memory"))) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(folder, sizeof folder, "%s%s", root, path + 1);
        for (char *end = folder + strlen(folder); end >= folder + strlen(root); end = strrchr(folder, '/')) {
            *end = 0;
            vk_cgroup_leaves(folder, version, least);
        }
    }
    if (file) fclose(file);
}
static uint64_t vk_free_bytes(void) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), kilobytes = vk_number_in("/proc/meminfo", "MemAvailable:");
    uint64_t least = kilobytes == UINT64_MAX ? UINT64_MAX : kilobytes * 1024, used[2] = {0, 0};
    unsigned long long whole = 0, data = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r"); /* pages: all, resident, shared, code, 0, data and stack */
    if (file && fscanf(file, "%llu %*u %*u %*u %*u %llu", &whole, &data) == 2) {
        used[0] = whole * page;
        used[1] = data * page;
    }
    if (file) fclose(file);
    vk_cgroups_leave(&least);
    for (int i = 0; i < 2; i++) {
        if (getrlimit(i ? RLIMIT_DATA : RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) continue;
        const uint64_t left = limit.rlim_cur > used[i] ? limit.rlim_cur - used[i] : 0;
        if (left < least) least = left;
    }
    return least == UINT64_MAX ? 0 : least ? least : 1; /* 0: unknown */
}
