/* cupti_records.h - the parts of libcupti that vlmprof uses, so a build needs no headers; included by cupti.h
 *
 * source: CUDA Toolkit 13.0, cupti_activity.h: CUpti_ActivityKernel8 to 10, ..Memcpy5, ..Memcpy6, ..Memset4,
 *         ..ExternalCorrelation, whose first fields have been the same since 11.8; tests/trace/test_cupti.sh compares
 *         them */
#ifndef VK_CUPTI_RECORDS_H
#define VK_CUPTI_RECORDS_H
#include <stddef.h>
#include <stdint.h>

enum {
    VK_CUPTI_MEMCPY = 1, VK_CUPTI_MEMSET = 2, VK_CUPTI_DRIVER = 4, VK_CUPTI_RUNTIME = 5, VK_CUPTI_KERNEL = 10,
    VK_CUPTI_CORRELATION = 39,     /* kinds of records */
    VK_CUPTI_OURS = 3,             /* CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 */
    VK_CUPTI_FLUSH_FORCED = 1,     /* CUPTI_ACTIVITY_FLAG_FLUSH_FORCED */
    VK_CUPTI_END = 12,             /* CUPTI_ERROR_MAX_LIMIT_REACHED: no record follows */
    VK_CUPTI_OLDEST = 18,          /* CUPTI's version number in CUDA 11.8 */
    VK_CUPTI_TOO_NEW = 140000,     /* the number of CUDA 14.0, whose records are unknown */
    VK_CUPTI_BUFFER_BYTES = 2 << 20
};
/* the first fields of records */
typedef struct vk_cupti_kernel {
    uint32_t kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    uint32_t partitioned[2];
    uint64_t begin_ns, end_ns, completed_ns;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_bytes, dynamic_bytes;
    uint32_t local_thread, local_total, correlation;
    int64_t grid_id;
    const char *name;
} vk_cupti_kernel;
typedef struct vk_cupti_copy { /* also of a memset */
    uint32_t kind, how;
    uint64_t bytes, begin_ns, end_ns;
    uint32_t device, context, stream, correlation;
} vk_cupti_copy;
typedef struct vk_cupti_link {
    uint32_t kind, whose;
    uint64_t id;
    uint32_t correlation, reserved;
} vk_cupti_link;
typedef void (*vk_cupti_wants)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*vk_cupti_gives)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
#define VK_CUPTI_FUNCTIONS(X) \
    X(version, cuptiGetVersion, (uint32_t *)) X(timestamp, cuptiGetTimestamp, (uint64_t *)) \
    X(describe, cuptiGetResultString, (int, const char **)) \
    X(callbacks, cuptiActivityRegisterCallbacks, (vk_cupti_wants, vk_cupti_gives)) \
    X(enable, cuptiActivityEnable, (int)) X(disable, cuptiActivityDisable, (int)) \
    X(flush, cuptiActivityFlushAll, (uint32_t)) X(next, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **)) \
    X(dropped, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) \
    X(push, cuptiActivityPushExternalCorrelationId, (int, uint64_t)) \
    X(pop, cuptiActivityPopExternalCorrelationId, (int, uint64_t *))
#endif
