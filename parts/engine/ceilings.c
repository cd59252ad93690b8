/* ceilings.c - measures the device's limits: bytes and operations per second */
#include "engine_internal.h"

#include <stdio.h>
#include <string.h>

enum {
    VK_CEILING_BYTES = 256 << 20,   /* size of borrowed memory */
    VK_CEILING_READ_MAX = 1 << 30,  /* largest size that is read */
    VK_CEILING_PIECE = 1 << 16,     /* floats that a block reads */
    VK_CEILING_PRODUCT_MIN = 256,   /* rows and columns of the smallest product */
    VK_CEILING_PRODUCT_MAX = 4096,  /* those of the largest */
    VK_CEILING_FILL = 8 << 20,      /* size that is filled, then copied over the rest */
    VK_CEILING_ROUNDS = 16,         /* largest number of rounds */
    VK_CEILING_ROW = 8,             /* consecutive products */
    VK_CEILING_NS = 100000000,      /* time for one measurement */
    VK_CEILING_MOST_NS = 2000000000 /* time for all products */
};

/* Fills the borrowed memory with hashed values of both signs from 2^-3 to 1: products of equal numbers draw less power
 * than those of a model, and run faster. A word is two bf16 values, or one f32. */
static void vk_fill_ceiling(vp_engine *engine, char *memory) {
    const vk_backend *backend = engine->backend;
    size_t piece = backend->stage_bytes < (size_t)VK_CEILING_FILL ? backend->stage_bytes : (size_t)VK_CEILING_FILL;
    uint32_t *words = (uint32_t *)backend->stage(engine->queue, memory, piece);
    for (size_t i = 0; i < piece / sizeof *words; i++) {
        uint32_t hash = (uint32_t)i * 2654435761u;
        hash ^= hash >> 15;
        hash *= 2246822519u;
        hash ^= hash >> 13;
        words[i] = 0x3e003e00u + (hash & 0x817f817fu);
    }
    backend->commit(engine->queue, memory, piece);
    for (size_t at = piece; at < VK_CEILING_BYTES; at += piece)
        backend->copy(engine->queue, memory + at, memory, piece);
}
/* ns on the device for the work submitted since mark 0 */
static int64_t vk_ceiling_end(vp_engine *engine) {
    engine->backend->mark(engine->queue, 1, NULL);
    if (engine->backend->wait(engine->queue, 1, NULL) != VP_OK) return 0;
    return engine->backend->between(engine->queue, 0, 1);
}

/* Returns 1 if the measurement that began at `start` needs another round: at least two, until time or rounds run
 * out. */
static int vk_ceiling_goes_on(const vp_engine *engine, int round, int64_t start) {
    return !engine->queue->error && (round < 2 || (round < VK_CEILING_ROUNDS && vp_clock_ns() - start < VK_CEILING_NS));
}
/* Ends a round that moved this many bytes; keeps the best rate. */
static void vk_ceiling_rate(vp_engine *engine, double bytes, double *most) {
    const int64_t ns = vk_ceiling_end(engine);
    if (ns > 0 && bytes * 1e9 / (double)ns > *most) *most = bytes * 1e9 / (double)ns;
}

/* Measures reads: of the weights if they are larger than the borrowed memory, because a decode step reads them. Rounds
 * alternate between reading a block as four streams and as one. The best round counts, because the first one includes
 * loading the kernel, and an idle GPU needs some ms to raise its clocks. */
static void vk_measure_read(vp_engine *engine, char *memory, vp_ceilings *out) {
    int from_weights = engine->weights_bytes > VK_CEILING_BYTES;
    const float *x = from_weights ? (const float *)engine->weights : (const float *)(void *)memory;
    size_t piece = sizeof(float) * VK_CEILING_PIECE,
           most = from_weights ? engine->weights_bytes : VK_CEILING_BYTES - ((size_t)1 << 20);
    int blocks = (int)((most < (size_t)VK_CEILING_READ_MAX ? most : (size_t)VK_CEILING_READ_MAX) / piece);
    float *sums = (float *)(void *)(memory + VK_CEILING_BYTES - ((size_t)1 << 20)); /* after the memory that is read */
    int64_t start = vp_clock_ns();
    out->read_bytes = (uint64_t)blocks * piece;
    for (int round = 0; vk_ceiling_goes_on(engine, round, start); round++) {
        engine->backend->mark(engine->queue, 0, NULL);
        engine->backend->kernels.read(engine->queue, sums, x, blocks, VK_CEILING_PIECE, round % 2 ? 1 : 4);
        vk_ceiling_rate(engine, (double)out->read_bytes, &out->bytes_per_s);
    }
}

/* Measures copying one half of the borrowed memory to the other. */
static void vk_measure_copy(vp_engine *engine, char *memory, vp_ceilings *out) {
    size_t bytes = VK_CEILING_BYTES / 2;
    int64_t start = vp_clock_ns();
    for (int round = 0; vk_ceiling_goes_on(engine, round, start); round++) {
        engine->backend->mark(engine->queue, 0, NULL);
        engine->backend->copy(engine->queue, memory + bytes, memory, bytes);
        vk_ceiling_rate(engine, 2.0 * (double)bytes, &out->copy_bytes_per_s);
    }
}

/* ns on the device for `count` consecutive products of n x n matrices */
static int64_t vk_time_products(vp_engine *engine, char *memory, int size, int count) {
    size_t bytes = (size_t)size * (size_t)size * (engine->wide ? 4 : 2);
    vk_linear weights = {0};
    weights.weights = memory;
    weights.n = weights.k = weights.k_padded = size;
    weights.wide = engine->wide;
    weights.bits = 0;
    engine->backend->mark(engine->queue, 0, NULL);
    for (int i = 0; i < count; i++)
        engine->backend->linear(engine->queue, memory + 2 * bytes, size, memory + bytes, size, size, &weights,
                                VK_STORE);
    return vk_ceiling_end(engine);
}

/* Keeps the best rate of products of n x n matrices. n doubles at least once, then until the next size would take too
 * long. The first product of a size is not counted, because a GPU's library then spends tens of ms loading its kernel.
 * A GPU gets short products in batches, so that the next one is submitted while one runs. */
static void vk_measure_product(vp_engine *engine, char *memory, vp_ceilings *out) {
    int64_t took = 0, begin = vp_clock_ns(); /* took: time of one product by the host's clock */
    for (int size = VK_CEILING_PRODUCT_MIN; size <= VK_CEILING_PRODUCT_MAX && !engine->queue->error; size *= 2) {
        int count = 1;
        if (size > 2 * VK_CEILING_PRODUCT_MIN && 12 * took > VK_CEILING_NS) return;
        if (vp_clock_ns() - begin > VK_CEILING_MOST_NS) return; /* the machine is overloaded */
        vk_time_products(engine, memory, size, 1);
        int64_t start = vp_clock_ns();
        for (int round = 0; round < VK_CEILING_ROUNDS && (round < 2 || vp_clock_ns() - start < VK_CEILING_NS / 4);
             round++) {
            double flops = 2.0 * size * size * size * count;
            int64_t since = vp_clock_ns(), ns = vk_time_products(engine, memory, size, count),
                    host_ns = (vp_clock_ns() - since) / count;
            if (!round || host_ns < took) took = host_ns;
            if (ns > 0 && flops * 1e9 / (double)ns > out->flops_per_s) {
                out->flops_per_s = flops * 1e9 / (double)ns;
                out->product_size = size;
            }
            if (!engine->backend->host_memory && took < VK_CEILING_NS / 100) count = VK_CEILING_ROW;
        }
    }
}

VP_API vp_result vp_engine_ceilings(vp_engine *engine, vp_ceilings *out, vp_error *error) {
    if (!(engine->ceilings.bytes_per_s > 0.0)) return vp_engine_ceilings_again(engine, out, error);
    *out = engine->ceilings;
    return VP_OK;
}

VP_API vp_result vp_engine_ceilings_again(vp_engine *engine, vp_ceilings *out, vp_error *error) {
    vp_ceilings measured = {0};
    char *memory, text[120];
    vp_result result = VP_OK;
    engine->backend->enter(engine->queue);
    engine->queue->timing = VP_TIMING_STAGE;
    memory = (char *)engine->backend->borrow(engine->queue, VK_CEILING_BYTES);
    if (!memory && !engine->queue->error) {
        snprintf(text, sizeof text, "measuring the device's limits needs %d MiB temporarily", VK_CEILING_BYTES >> 20);
        return vp_error_set(error, VP_ERR_MEMORY, -1, "ceilings", text);
    }
    if (memory && !engine->queue->error) vk_fill_ceiling(engine, memory);
    if (memory && !engine->queue->error) vk_measure_read(engine, memory, &measured);
    if (memory && !engine->queue->error) vk_measure_copy(engine, memory, &measured);
    if (memory && !engine->queue->error) vk_measure_product(engine, memory, &measured);
    engine->backend->give_back(engine->queue, memory, VK_CEILING_BYTES);
    if (engine->queue->error) result = engine->backend->wait(engine->queue, 0, error);
    vk_recover(engine);
    if (result == VP_OK
        && !(measured.bytes_per_s > 0.0 && measured.copy_bytes_per_s > 0.0 && measured.flops_per_s > 0.0))
        result = vp_error_set(error, VP_ERR_DEVICE, -1, "ceilings", "the device's clock reported no time");
    if (result != VP_OK) return result;
    if (engine->ceilings.bytes_per_s > measured.bytes_per_s) measured.bytes_per_s = engine->ceilings.bytes_per_s;
    if (engine->ceilings.copy_bytes_per_s > measured.copy_bytes_per_s)
        measured.copy_bytes_per_s = engine->ceilings.copy_bytes_per_s;
    if (engine->ceilings.flops_per_s > measured.flops_per_s) {
        measured.flops_per_s = engine->ceilings.flops_per_s;
        measured.product_size = engine->ceilings.product_size;
    }
    *out = engine->ceilings = measured;
    return VP_OK;
}
