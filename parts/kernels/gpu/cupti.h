/* cupti.h - the GPU's own times of launches, from CUPTI's activity records; included by vlmprof_kernels.cu
 *
 * libcupti is opened at run time. With it, a profiled request (VP_TIMING_KERNEL) needs no events around its launches:
 * kernels overlap as in any other request, decode steps stay graphs, and cuBLAS's kernels have their names. Each launch
 * is sent with its number as an external correlation id. A graph has the number of its first launch, because its nodes
 * run in the order of the launches. If a record is lost or does not fit its launch, all times of the request are
 * discarded and the engine repeats it with events.
 *
 * A process has one CUPTI. It serves the first engine that profiles until that engine closes; others use events.
 * source: CUDA Toolkit 13.0, CUPTI, "Activity API" */
#include <pthread.h>

#include "kernels/gpu/cupti_records.h"

/* work on the device for one call; name is NULL for a copy */
typedef struct vk_activity {
    uint64_t begin_ns, end_ns;
    uint32_t correlation, grid, threads, registers, shared_bytes;
    const char *name;
} vk_activity;
typedef struct vk_call { uint32_t correlation; int32_t launch; } vk_call; /* a call of a launch */
#define VK_CUPTI_FIELD(field, name, parameters) int (*field) parameters;
static struct vk_cupti {
    VK_CUPTI_FUNCTIONS(VK_CUPTI_FIELD)
    int state;             /* 1: found, -1: not found; searched again while there is no owner */
    char text[200];        /* CUPTI's version, or the reason why it is not used */
    const vk_queue *owner; /* the engine that uses it */
    uint32_t request;      /* the upper half of ids */
    vk_activity *activities;
    vk_call *calls;
    size_t activity_count, activity_room, call_count, call_room;
    uint64_t lost;
    char **names; /* names of kernels and launches, kept until the program ends */
    size_t name_count, name_room;
} vk_cupti;
#undef VK_CUPTI_FIELD
static const int vk_cupti_kinds[] = {VK_CUPTI_KERNEL,  VK_CUPTI_MEMCPY, VK_CUPTI_MEMSET,
                                     VK_CUPTI_RUNTIME, VK_CUPTI_DRIVER, VK_CUPTI_CORRELATION};
enum { VK_CUPTI_KINDS = sizeof vk_cupti_kinds / sizeof vk_cupti_kinds[0], VK_CUPTI_SLACK_NS = 20000 };
static pthread_mutex_t vk_cupti_lock = PTHREAD_MUTEX_INITIALIZER; /* CUPTI has a thread of its own */

/* makes room for one more; returns 0 if out of memory, which loses a record */
static int vk_cupti_room(void *array, size_t count, size_t *room, size_t element) {
    void *was, *grown;
    size_t wanted = *room ? 2 * *room : 1024;
    if (count < *room) return 1;
    memcpy(&was, array, sizeof was);
    grown = realloc(was, wanted * element);
    if (!grown) { vk_cupti.lost++; return 0; }
    memcpy(array, &grown, sizeof grown);
    *room = wanted;
    return 1;
}
/* a copy of `name`, prefixed by "before: " unless that is NULL; the same pointer each time */
static const char *vk_cupti_name(const char *before, const char *name) {
    char text[600];
    snprintf(text, sizeof text, "%s%s%s", before ? before : "", before ? ": " : "", name);
    for (size_t i = 0; i < vk_cupti.name_count; i++)
        if (!strcmp(vk_cupti.names[i], text)) return vk_cupti.names[i];
    if (!vk_cupti_room(&vk_cupti.names, vk_cupti.name_count, &vk_cupti.name_room, sizeof *vk_cupti.names)) return NULL;
    vk_cupti.names[vk_cupti.name_count] = strdup(text);
    if (!vk_cupti.names[vk_cupti.name_count]) { vk_cupti.lost++; return NULL; }
    return vk_cupti.names[vk_cupti.name_count++];
}
static void vk_cupti_take(const void *record) {
    vk_activity activity;
    uint32_t kind;
    memset(&activity, 0, sizeof activity);
    memcpy(&kind, record, sizeof kind);
    if (kind == VK_CUPTI_CORRELATION) {
        vk_cupti_link link;
        memcpy(&link, record, sizeof link);
        if (link.whose != VK_CUPTI_OURS || (uint32_t)(link.id >> 32) != vk_cupti.request
            || !vk_cupti_room(&vk_cupti.calls, vk_cupti.call_count, &vk_cupti.call_room, sizeof *vk_cupti.calls))
            return;
        vk_cupti.calls[vk_cupti.call_count].correlation = link.correlation;
        vk_cupti.calls[vk_cupti.call_count++].launch = (int32_t)(uint32_t)link.id;
        return;
    }
    if (kind == VK_CUPTI_KERNEL) {
        vk_cupti_kernel kernel;
        memcpy(&kernel, record, sizeof kernel);
        activity.begin_ns = kernel.begin_ns;
        activity.end_ns = kernel.end_ns;
        activity.correlation = kernel.correlation;
        activity.grid = (uint32_t)(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]);
        activity.threads = (uint32_t)(kernel.block[0] * kernel.block[1] * kernel.block[2]);
        activity.registers = kernel.registers;
        activity.shared_bytes = (uint32_t)(kernel.static_bytes + kernel.dynamic_bytes);
        activity.name = vk_cupti_name(NULL, kernel.name ? kernel.name : "kernel without a name");
    } else if (kind == VK_CUPTI_MEMCPY || kind == VK_CUPTI_MEMSET) {
        vk_cupti_copy copy;
        memcpy(&copy, record, sizeof copy);
        activity.begin_ns = copy.begin_ns;
        activity.end_ns = copy.end_ns;
        activity.correlation = copy.correlation;
    } else return; /* call records are not needed: the links before them are */
    if (vk_cupti_room(&vk_cupti.activities, vk_cupti.activity_count, &vk_cupti.activity_room, sizeof activity))
        vk_cupti.activities[vk_cupti.activity_count++] = activity;
}
/* without memory CUPTI drops records and counts the drops */
static void vk_cupti_lend(uint8_t **buffer, size_t *bytes, size_t *most_records) {
    *buffer = (uint8_t *)malloc(VK_CUPTI_BUFFER_BYTES);
    *bytes = *buffer ? (size_t)VK_CUPTI_BUFFER_BYTES : 0;
    *most_records = 0; /* 0: as many as fit */
}
static void vk_cupti_read(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes) {
    void *record = NULL;
    size_t dropped = 0;
    int status = VK_CUPTI_END;
    (void)bytes;
    pthread_mutex_lock(&vk_cupti_lock);
    while (valid_bytes && (status = vk_cupti.next(buffer, valid_bytes, &record)) == 0) vk_cupti_take(record);
    vk_cupti.lost += status != VK_CUPTI_END;
    if (vk_cupti.dropped(context, stream, &dropped) == 0) vk_cupti.lost += dropped;
    pthread_mutex_unlock(&vk_cupti_lock);
    free(buffer);
}

/* ---- opening */
static int vk_cupti_refuse(const char *what, int status) {
    const char *text = NULL;
    if (!vk_cupti.describe || vk_cupti.describe(status, &text) || !text) text = "unknown";
    snprintf(vk_cupti.text, sizeof vk_cupti.text, "%s: %.100s (status %d)", what, text, status);
    vk_cupti.state = -1;
    return 0;
}
static int vk_cupti_find(void) {
    char name[40];
    uint32_t version = 0;
    int status;
    snprintf(name, sizeof name, "libcupti.so.%d", CUDART_VERSION / 1000);
    vk_cupti.state = -1;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(vk_cupti.text, sizeof vk_cupti.text, "no %s; it comes with the CUDA Toolkit", name);
        return 0;
    }
#define VK_CUPTI_FIND(field, function, parameters) \
    { \
        void *found = dlsym(library, #function); \
        memcpy(&vk_cupti.field, &found, sizeof found); \
        if (!found) { \
            snprintf(vk_cupti.text, sizeof vk_cupti.text, "%s has no " #function, name); \
            return 0; \
        } \
    }
    VK_CUPTI_FUNCTIONS(VK_CUPTI_FIND)
#undef VK_CUPTI_FIND
    if ((status = vk_cupti.version(&version)) != 0) return vk_cupti_refuse("cuptiGetVersion", status);
    if (version < VK_CUPTI_OLDEST || version >= VK_CUPTI_TOO_NEW) {
        snprintf(vk_cupti.text, sizeof vk_cupti.text, "%s has version %u, which vlmprof does not support", name,
                 version);
        return 0;
    }
    if ((status = vk_cupti.callbacks(vk_cupti_lend, vk_cupti_read)) != 0)
        return vk_cupti_refuse("cuptiActivityRegisterCallbacks", status);
    snprintf(vk_cupti.text, sizeof vk_cupti.text, "activity records of CUPTI, version %u", version);
    vk_cupti.state = 1;
    return 1;
}
/* Returns how launches are timed, or why a queue cannot use CUPTI; for any engine if queue is NULL. */
static const char *vk_cuda_launch_timer(vk_queue *queue) {
    static char text[240];
    pthread_mutex_lock(&vk_cupti_lock);
    int there = vk_cupti.owner ? vk_cupti.state > 0 : vk_cupti_find();
    if (queue && vk_cuda_of(queue)->events_only)
        snprintf(text, sizeof text, "CUDA events: %.200s", vk_cuda_of(queue)->events_only);
    else if (!there) snprintf(text, sizeof text, "CUDA events: %.200s", vk_cupti.text);
    else if (queue && vk_cupti.owner && vk_cupti.owner != queue)
        snprintf(text, sizeof text, "CUDA events: another engine of this process uses CUPTI");
    else snprintf(text, sizeof text, "%.200s", vk_cupti.text);
    pthread_mutex_unlock(&vk_cupti_lock);
    return text;
}

/* ---- a request */
static void vk_cupti_stop(vk_queue *queue) {
    for (int i = 0; i < VK_CUPTI_KINDS && queue->traced; i++) vk_cupti.disable(vk_cupti_kinds[i]);
    queue->traced = 0;
}
/* called before a request; sets queue->traced if its launches will have records */
static void vk_cupti_start(vk_queue *queue) {
    uint64_t id;
    vk_cupti_stop(queue);
    if (vk_cuda_of(queue)->events_only) return;
    pthread_mutex_lock(&vk_cupti_lock);
    if (!vk_cupti.owner && vk_cupti_find()) vk_cupti.owner = queue;
    int ours = vk_cupti.owner == queue && vk_cupti.state > 0;
    if (ours) {
        vk_cupti.activity_count = vk_cupti.call_count = 0;
        vk_cupti.lost = 0;
        vk_cupti.request++;
    }
    pthread_mutex_unlock(&vk_cupti_lock);
    if (!ours) return;
    while (vk_cupti.pop(VK_CUPTI_OURS, &id) == 0) {} /* left over from a failed request */
    queue->traced = 1;
    for (int i = 0; i < VK_CUPTI_KINDS; i++) {
        int status = vk_cupti.enable(vk_cupti_kinds[i]);
        if (status == 0) continue;
        vk_cupti_stop(queue);
        pthread_mutex_lock(&vk_cupti_lock);
        vk_cupti_refuse("cuptiActivityEnable", status);
        pthread_mutex_unlock(&vk_cupti_lock);
        return;
    }
}
static void vk_cupti_close(vk_queue *queue) {
    vk_cupti_stop(queue);
    pthread_mutex_lock(&vk_cupti_lock);
    if (vk_cupti.owner == queue) vk_cupti.owner = NULL;
    pthread_mutex_unlock(&vk_cupti_lock);
}
static void vk_cupti_enter(int64_t launch) {
    vk_cupti.push(VK_CUPTI_OURS, (uint64_t)vk_cupti.request << 32 | (uint32_t)launch);
}
static void vk_cupti_leave(void) {
    uint64_t id;
    vk_cupti.pop(VK_CUPTI_OURS, &id);
}
static int vk_activity_order(const void *left, const void *right) {
    const vk_activity *a = (const vk_activity *)left, *b = (const vk_activity *)right;
    if (a->correlation != b->correlation) return a->correlation < b->correlation ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}
static int vk_call_order(const void *left, const void *right) {
    const vk_call *a = (const vk_call *)left, *b = (const vk_call *)right;
    if (a->correlation != b->correlation) return a->correlation < b->correlation ? -1 : 1;
    return a->launch < b->launch ? -1 : a->launch > b->launch;
}
/* Adds a record to a launch. Until all records are in, begin_ns and ns are CUPTI's first and last time. The longest
 * kernel provides the name. Returns 0 if the record does not belong to this launch. */
static int vk_cupti_add(vp_launch *launch, vk_timer *timer, const vk_activity *activity) {
    int64_t begin = (int64_t)activity->begin_ns, end = (int64_t)activity->end_ns;
    int first = timer->records++ == 0;
    if (end < begin || (activity->name && launch->kind != VP_LAUNCH_KERNEL)) return 0;
    if (timer->kernel && (!first || !activity->name || !strstr(activity->name, launch->name))) return 0;
    if (first || begin < launch->begin_ns) launch->begin_ns = begin;
    if (first || end > launch->ns) launch->ns = end;
    if (timer->kernel || !activity->name || end - begin < timer->longest_ns) return 1;
    timer->longest_ns = end - begin;
    launch->kernel = activity->name;
    launch->grid = activity->grid;
    launch->threads = activity->threads;
    launch->registers = activity->registers;
    launch->shared_bytes = activity->shared_bytes;
    return 1;
}
/* Adds the records of one call (a launch, or a graph) to its entries in the log. Returns 0 if they do not fit. */
static int vk_cupti_fit(vk_queue *queue, int64_t launch, const vk_activity *activities, size_t count) {
    vk_timer *timer = vk_cuda_of(queue)->timer;
    int64_t begin, each, nodes = 0;
    while (launch + nodes < queue->log_count && queue->log[launch + nodes].node == nodes + 1) nodes++;
    if (!nodes) {
        for (size_t i = 0; i < count; i++)
            if (!vk_cupti_add(&queue->log[launch], &timer[launch], &activities[i])) return 0;
        return 1;
    }
    if ((size_t)nodes != count) return 0;
    begin = queue->log[launch].host_begin_ns;
    each = queue->log[launch].host_ns / nodes;
    for (int64_t i = 0; i < nodes; i++) {
        vp_launch *node = &queue->log[launch + i];
        node->host_begin_ns = begin + i * each;
        node->host_ns = each;
        if (!vk_cupti_add(node, &timer[launch + i], &activities[i])) return 0;
    }
    return 1;
}
/* Returns 1 if each launch of the request has CUPTI's times: begin_ns, and the time of its end in ns. */
static int vk_cupti_match(vk_queue *queue) {
    vk_timer *timer = vk_cuda_of(queue)->timer;
    size_t at = 0;
    for (int64_t i = 0; i < queue->log_count; i++) timer[i].records = 0;
    qsort(vk_cupti.activities, vk_cupti.activity_count, sizeof *vk_cupti.activities, vk_activity_order);
    qsort(vk_cupti.calls, vk_cupti.call_count, sizeof *vk_cupti.calls, vk_call_order);
    for (size_t i = 0; i < vk_cupti.call_count; i++) {
        const vk_call *call = &vk_cupti.calls[i];
        size_t count = 0;
        if (i && call[-1].correlation == call->correlation) continue; /* a runtime call with the driver's call inside */
        while (at < vk_cupti.activity_count && vk_cupti.activities[at].correlation < call->correlation) at++;
        while (at + count < vk_cupti.activity_count && vk_cupti.activities[at + count].correlation == call->correlation)
            count++;
        /* a step that was sent in advance and not needed has no launch */
        if (call->launch < queue->log_count && count
            && !vk_cupti_fit(queue, call->launch, vk_cupti.activities + at, count))
            return 0;
    }
    for (int64_t i = 0; i < queue->log_count; i++)
        if (!timer[i].records) return 0;
    return 1;
}
/* Events at the marks are a second clock for the same launches. Returns 1 if no stage is longer by CUPTI than by the
 * events. CUPTI has been reported to time the kernels of graphs wrongly (pytorch/kineto, issue 1165). Launches after
 * the last mark cannot be compared. */
static int vk_cupti_fits(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int64_t first = 0;
    for (int64_t i = 1; i < queue->log_count; i++) {
        int64_t by_events;
        if (cuda->timer[i].mark == cuda->timer[first].mark) continue;
        by_events = vk_cuda_elapsed(queue, cuda->mark[cuda->timer[first].mark], cuda->mark[cuda->timer[i].mark]);
        if (queue->log[i - 1].ns - queue->log[first].begin_ns > by_events + by_events / 32 + VK_CUPTI_SLACK_NS)
            return 0;
        first = i;
    }
    return 1;
}
/* CUPTI's clock does not start at mark 0, and the host read both clocks a little after the device passed the mark. The
 * correction is the offset that keeps launches between the marks around them. */
static void vk_cupti_align(vk_queue *queue) {
    vk_cuda *cuda = vk_cuda_of(queue);
    int64_t zero = cuda->cupti_zero_ns, least = INT64_MIN, most = INT64_MAX, at_mark = 0;
    int mark = 0;
    for (int64_t i = 0; i < queue->log_count; i++) {
        vp_launch *launch = &queue->log[i];
        int next = cuda->timer[i].mark;
        if (next != mark) {
            at_mark += vk_cuda_elapsed(queue, cuda->mark[mark], cuda->mark[next]);
            mark = next;
            if (i && launch[-1].ns - at_mark > least) least = launch[-1].ns - at_mark;
        }
        if (launch->begin_ns - at_mark < most) most = launch->begin_ns - at_mark;
    }
    if (zero < least) zero = least;
    if (zero > most) zero = most;
    for (int64_t i = 0; i < queue->log_count; i++) {
        queue->log[i].ns -= queue->log[i].begin_ns;
        queue->log[i].begin_ns -= zero;
    }
}
/* Fills in the times of a request from records. Returns 0 if records are missing or do not fit. */
static int vk_cupti_finish(vk_queue *queue) {
    char text[100];
    VK_TRY(cudaStreamSynchronize(vk_cuda_of(queue)->stream)); /* includes a step that was sent in advance */
    vk_cupti.flush(0);
    pthread_mutex_lock(&vk_cupti_lock);
    int matched = vk_cupti_match(queue);
    uint64_t lost = vk_cupti.lost;
    if (!matched && !lost) { /* also flushes incomplete buffers */
        pthread_mutex_unlock(&vk_cupti_lock);
        vk_cupti.flush(VK_CUPTI_FLUSH_FORCED);
        pthread_mutex_lock(&vk_cupti_lock);
        matched = vk_cupti_match(queue);
        lost = vk_cupti.lost;
    }
    vk_cupti_stop(queue);
    for (int64_t i = 0; i < queue->log_count && matched; i++)
        if (queue->log[i].kernel) {
            const char *name = vk_cupti_name(queue->log[i].name, queue->log[i].kernel);
            if (name) queue->log[i].name = name;
        }
    pthread_mutex_unlock(&vk_cupti_lock);
    if (queue->error) return 1; /* set by the caller */
    if (matched && !lost && vk_cupti_fits(queue)) {
        vk_cupti_align(queue);
        return 1;
    }
    vk_cuda_of(queue)->events_only = lost       ? "CUPTI lost records"
                                     : !matched ? "CUPTI's records did not match the launches"
                                                : "a stage takes longer by CUPTI's clock than by events";
    snprintf(text, sizeof text, "launches are timed by events: %s", vk_cuda_of(queue)->events_only);
    vk_note(queue, text);
    return 0;
}
