/* load_client.c: checks whether this client itself delayed the requests. */
#include "load/load_client.h"

#include "vlmprof.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>

static const double BUSY_SHARE = 0.7, DELAY_SHARE = 0.05;

void client_read(const char *root, struct client_reading *reading) {
    char path[600];
    struct dirent *entry;
    DIR *folder;
    *reading = (struct client_reading){vp_clock_ns(), -1, -1};
    snprintf(path, sizeof path, "%.300s/proc/self/task", root);
    if (!(folder = opendir(path))) return;
    while ((entry = readdir(folder)) != NULL) {
        long long cpu_ns, delay_ns;
        FILE *file;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%.300s/proc/self/task/%.30s/schedstat", root, entry->d_name);
        if (!(file = fopen(path, "r"))) continue;
        if (fscanf(file, "%lld %lld", &cpu_ns, &delay_ns) == 2 && cpu_ns >= 0 && delay_ns >= 0) {
            reading->cpu_ns = (reading->cpu_ns < 0 ? 0 : reading->cpu_ns) + cpu_ns;
            reading->delay_ns = (reading->delay_ns < 0 ? 0 : reading->delay_ns) + delay_ns;
        }
        fclose(file);
    }
    closedir(folder);
}
void client_take(const struct client_reading *begin, const struct client_reading *end, struct load_level *level) {
    const double wall_ns = (double)(end->at_ns - begin->at_ns);
    level->client_cpu = level->client_delay = (double)NAN;
    if (begin->cpu_ns < 0 || end->cpu_ns < begin->cpu_ns || end->delay_ns < begin->delay_ns || !(wall_ns > 0)) return;
    level->client_cpu = (double)(end->cpu_ns - begin->cpu_ns) / wall_ns;
    level->client_delay = (double)(end->delay_ns - begin->delay_ns) / wall_ns;
}
int client_was_busy(const struct load_level *level) {
    return level->client_cpu > BUSY_SHARE || level->client_delay > DELAY_SHARE;
}
