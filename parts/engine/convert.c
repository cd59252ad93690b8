/* convert.c - writes the weights of a model to files. The loader's functions produce them, in the same order, but the
 * result goes to disk instead of memory. */
#if !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1 /* mmap's flags and fsync under -std=c11 */
#endif
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "host_loops.h"

static vp_result vk_output_open(vp_output *out, const char *directory, const char *name, vp_error *error) {
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
        return vp_fail(error, VP_ERR_RANGE, -1, directory, "the path is too long");
    return vp_output_open(path, out, error);
}

/* result: that of the writes so far */
static vp_result vk_output_close(vp_output *out, vp_result result, vp_error *error) {
    if (result == VP_OK) return vp_output_commit(out, error);
    vp_output_discard(out);
    return result;
}

static vp_result vk_check_room(const char *directory, uint64_t bytes, vp_error *error) {
    struct statvfs info;
    char text[160];
    if (statvfs(directory, &info)) {
        snprintf(text, sizeof text, "the folder cannot be used: %.100s", strerror(errno));
        return vp_fail(error, VP_ERR_WRITE, -1, directory, text);
    }
    if ((double)info.f_bavail * (double)info.f_frsize >= (double)bytes) return VP_OK;
    snprintf(text, sizeof text, "the weights need %.3g GB, but the disk has %.3g GB free", (double)bytes / 1e9,
             (double)info.f_bavail * (double)info.f_frsize / 1e9);
    return vp_fail(error, VP_ERR_WRITE, -1, directory, text);
}

/* ---- packed: address space is reserved for all weights, and completed parts are written to the file */
enum { VK_PIECE_BYTES = 64 << 20 };

typedef struct vk_packer {
    vp_output out;
    char *base;
    size_t written;
} vk_packer;

#if defined(__linux__)
static void *vk_reserve_addresses(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void vk_discard(char *from, char *to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)from / page * page,
              last = (uintptr_t)to / page * page;
    if (last > first) madvise((void *)first, last - first, MADV_DONTNEED);
}
#else
static void *vk_reserve_addresses(size_t bytes) { return calloc(1, bytes); }

static void vk_discard(char *from, char *to) {
    (void)from;
    (void)to;
}
#endif

static void vk_pack_until(vk_loader *loader, size_t end) {
    vk_packer *packer = (vk_packer *)loader->reached_user;
    if (loader->result != VP_OK) return;
    loader->result = vp_output_write(&packer->out, packer->base + packer->written, end - packer->written,
                                     loader->error);
    /* except the page with `end`, which is still incomplete */
    vk_discard(packer->base + packer->written, packer->base + end);
    packer->written = end;
}

static void vk_pack_reached(vk_loader *loader, const void *at) {
    vk_packer *packer = (vk_packer *)loader->reached_user;
    size_t complete = (size_t)((const char *)at - packer->base);
    if (complete - packer->written >= VK_PIECE_BYTES) vk_pack_until(loader, complete);
}

/* everything except the model and the length */
static void vk_describe_packed(const vk_precision *bits, vp_packed *packed) {
    memset(packed, 0, sizeof *packed);
    packed->version = VP_PACKED_VERSION;
    packed->panel_columns = VK_PAD;
    packed->block_bits = vk_stored_bits(bits->blocks);
    packed->head_bits = vk_stored_bits(bits->head);
    packed->vision_bits = vk_stored_bits(bits->vision);
    packed->quant_values = VK_QUANT_BLOCK;
    packed->quant_order = VK_QUANT_ORDER;
}

static vp_result vk_convert_packed(vk_loader *loader, const vp_convert_options *options) {
    const vk_precision bits = vk_precision_of(options->weights, options->head_weights, options->vision_weights);
    unsigned char header[VP_PACKED_HEADER_BYTES];
    vk_arena arena = { NULL, 0 };
    vk_packer packer = {0};
    vk_model model = {0};
    vp_packed packed;
    size_t bytes;
    vp_result result;
    result = vk_model_new(&model, options->config, loader->error);
    if (result == VP_OK) vk_layout_model(&arena, &model, options->config, 0, &bits);
    bytes = arena.used;
    if (result == VP_OK) result = vk_check_room(options->directory, (uint64_t)bytes + sizeof header, loader->error);
    if (result == VP_OK && !(packer.base = (char *)vk_reserve_addresses(bytes)))
        result = vp_fail(loader->error, VP_ERR_MEMORY, -1, "convert",
                         "not enough address space for the packed weights");
    if (result == VP_OK) result = vk_output_open(&packer.out, options->directory, VP_PACKED_FILE, loader->error);
    if (result == VP_OK) {
        vk_describe_packed(&bits, &packed);
        packed.model_hash = vp_model_hash(options->config);
        packed.weights_bytes = bytes;
        vp_packed_header(&packed, header);
        loader->result = vp_output_write(&packer.out, header, sizeof header, loader->error);
        arena.base = packer.base;
        arena.used = 0;
        vk_layout_model(&arena, &model, options->config, 0, &bits);
        loader->backend = vk_cpu_code(); /* its `stage` returns the destination and uses no queue */
        loader->total = (int64_t)bytes;
        loader->reached = vk_pack_reached;
        loader->reached_user = &packer;
        vk_load_model(loader, &model, options->config);
        vk_pack_until(loader, bytes);
        result = vk_output_close(&packer.out, loader->result, loader->error);
    }
#if defined(__linux__)
    if (packer.base) munmap(packer.base, bytes);
#else
    free(packer.base);
#endif
    vk_model_free(&model);
    return result;
}

/* ---- hf: every tensor under its own name */
typedef struct vk_entry {
    vp_tensor_spec spec;
    int64_t rows, columns;
    int wide, shard;
    uint64_t bytes;
} vk_entry;

typedef struct vk_folder {
    vk_entry *entries;
    int64_t count;
    int shard_count;
    uint64_t bytes;
    char *rows;
    size_t rows_bytes;
} vk_folder;

static vk_source vk_open_entry(vk_loader *loader, const vk_entry *entry) {
    return vk_open_source(loader, entry->spec.name, entry->rows, entry->columns);
}

/* Tensors that the engine keeps in fp32 stay fp32 if bf16 would change a value: a flipped expert is worse than 0.1 %
 * more bytes. */
static int vk_needs_fp32(vk_loader *loader, const vk_entry *entry, float *row) {
    const char *name = entry->spec.name;
    vk_source source;
    int changed = 0, stays = entry->spec.dimensions <= 1;
    for (const char *const *end = loader->description->fp32; *end; end++) stays |= vk_ends_with(name, *end);
    if (!stays) return 0;
    source = vk_open_entry(loader, entry);
    if (loader->result != VP_OK || (!source.synthetic && source.tensor.dtype == VP_DTYPE_BF16)) return 0;
    for (int64_t r = 0; r < entry->rows && !changed; r++) {
        vk_source_row(&source, r, row, (int)entry->columns, (int)entry->columns, 1);
        for (int64_t i = 0; i < entry->columns; i++) {
            float back = vp_bf16_to_f32(vp_f32_to_bf16(row[i]));
            changed |= memcmp(&back, &row[i], 4) != 0;
        }
    }
    return changed;
}

/* types, sizes and shards of all tensors */
static vp_result vk_folder_plan(vk_loader *loader, const vp_convert_options *options, vk_folder *folder) {
    int64_t widest = 1;
    uint64_t in_shard = 0;
    float *row;
    folder->count = vp_model_tensor_count(options->config);
    folder->entries = calloc((size_t)folder->count, sizeof *folder->entries);
    if (!folder->entries)
        return vp_fail(loader->error, VP_ERR_MEMORY, -1, "convert", "not enough memory for the list of tensors");
    for (int64_t i = 0; i < folder->count; i++) {
        vk_entry *entry = &folder->entries[i];
        if (vp_model_tensor(options->config, i, &entry->spec) != VP_OK)
            return vp_fail(loader->error, VP_ERR_RANGE, -1, "config", "the config is not valid");
        entry->rows = entry->spec.dimensions > 1 ? entry->spec.shape[0] : 1;
        entry->columns = entry->spec.dimensions > 1 ? 1 : entry->spec.shape[0];
        for (int k = 1; k < entry->spec.dimensions; k++) entry->columns *= entry->spec.shape[k];
        if (entry->spec.dimensions == 3) { /* as in the loader, where each synthetic row has a key */
            entry->rows *= entry->spec.shape[1];
            entry->columns = entry->spec.shape[2];
        }
        if (entry->columns > widest) widest = entry->columns;
    }
    row = malloc((size_t)widest * sizeof *row);
    if (!row) return vp_fail(loader->error, VP_ERR_MEMORY, -1, "convert", "not enough memory for a row");
    for (int64_t i = 0; i < folder->count && loader->result == VP_OK; i++) {
        vk_entry *entry = &folder->entries[i];
        entry->wide = vk_needs_fp32(loader, entry, row);
        entry->bytes = (uint64_t)entry->rows * (uint64_t)entry->columns * (entry->wide ? 4u : 2u);
        if (in_shard && (in_shard > options->shard_bytes || entry->bytes > options->shard_bytes - in_shard)) {
            folder->shard_count++;
            in_shard = 0;
        }
        entry->shard = folder->shard_count;
        in_shard += entry->bytes;
        folder->bytes += entry->bytes;
    }
    folder->shard_count++;
    free(row);
    folder->rows_bytes = vk_max((size_t)widest * sizeof *row, 8 << 20);
    folder->rows = malloc(folder->rows_bytes);
    if (loader->result == VP_OK && !folder->rows)
        return vp_fail(loader->error, VP_ERR_MEMORY, -1, "convert", "not enough memory for the output rows");
    return loader->result;
}

static void vk_shard_name(const vk_folder *folder, int shard, char *name, size_t capacity) {
    if (folder->shard_count == 1) snprintf(name, capacity, "model.safetensors");
    else snprintf(name, capacity, "model-%05d-of-%05d.safetensors", shard + 1, folder->shard_count);
}

/* Makes the length and header of a shard, in one malloc'ed piece. Data begin at a multiple of 8, with fp32 tensors
 * first, so that all are aligned for their types. The names need no escapes. */
static char *vk_shard_header(const vk_folder *folder, int shard, size_t *bytes) {
    size_t used = 8, capacity = 128;
    uint64_t offset = 0, length;
    char *text;
    for (int64_t i = 0; i < folder->count; i++)
        capacity += folder->entries[i].shard == shard ? sizeof folder->entries[i].spec.name + 160 : 0;
    text = malloc(capacity);
    if (!text) return NULL;
    used += (size_t)snprintf(text + used, capacity - used, "{\"%s%s%s\":{\"format\":\"pt\"}", "__", "metadata", "__");
    for (int wide = 1; wide >= 0; wide--)
        for (int64_t i = 0; i < folder->count; i++) {
            const vk_entry *entry = &folder->entries[i];
            if (entry->shard != shard || entry->wide != wide) continue;
            used += (size_t)snprintf(text + used, capacity - used, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld",
                                     entry->spec.name, wide ? "F32" : "BF16", (long long)entry->spec.shape[0]);
            for (int k = 1; k < entry->spec.dimensions; k++)
                used += (size_t)snprintf(text + used, capacity - used, ",%lld", (long long)entry->spec.shape[k]);
            used += (size_t)snprintf(text + used, capacity - used, "],\"data_offsets\":[%llu,%llu]}",
                                     (unsigned long long)offset, (unsigned long long)(offset + entry->bytes));
            offset += entry->bytes;
        }
    text[used++] = '}';
    while (used % 8) text[used++] = ' ';
    length = used - 8;
    for (int i = 0; i < 8; i++) text[i] = (char)(unsigned char)(length >> (8 * i) & 255);
    *bytes = used;
    return text;
}

static void vk_write_entry(vk_loader *loader, vk_folder *folder, vp_output *out, const vk_entry *entry) {
    size_t row_bytes = (size_t)entry->columns * (entry->wide ? 4 : 2);
    int64_t most = (int64_t)(folder->rows_bytes / row_bytes);
    vk_source source = vk_open_entry(loader, entry);
    for (int64_t first = 0; first < entry->rows && loader->result == VP_OK; first += most) {
        int64_t now = entry->rows - first < most ? entry->rows - first : most;
        VK_PRAGMA(omp parallel for schedule(static) num_threads(loader->threads) if (now > 1))
        for (int64_t r = 0; r < now; r++)
            vk_source_row(&source, first + r, folder->rows + (size_t)r * row_bytes, (int)entry->columns,
                          (int)entry->columns, entry->wide);
        loader->result = vp_output_write(out, folder->rows, (size_t)now * row_bytes, loader->error);
    }
    if (loader->result == VP_OK) vk_loaded(loader, &source, entry->spec.name, (int64_t)entry->bytes);
}

static vp_result vk_write_shard(vk_loader *loader, const vp_convert_options *options, vk_folder *folder, int shard) {
    char name[64];
    size_t bytes = 0;
    vp_output out;
    char *header = vk_shard_header(folder, shard, &bytes);
    vp_result result = header ? VP_OK : vp_fail(loader->error, VP_ERR_MEMORY, -1, "convert",
                                                "not enough memory for a header");
    vk_shard_name(folder, shard, name, sizeof name);
    if (result == VP_OK) result = vk_output_open(&out, options->directory, name, loader->error);
    if (result == VP_OK) {
        loader->result = vp_output_write(&out, header, bytes, loader->error);
        for (int wide = 1; wide >= 0; wide--)
            for (int64_t i = 0; i < folder->count && loader->result == VP_OK; i++)
                if (folder->entries[i].shard == shard && folder->entries[i].wide == wide)
                    vk_write_entry(loader, folder, &out, &folder->entries[i]);
        result = vk_output_close(&out, loader->result, loader->error);
    }
    free(header);
    return result;
}

static vp_result vk_index_sink(void *out, const char *text, size_t bytes) {
    return vp_output_write((vp_output *)out, text, bytes, NULL);
}
static vp_result vk_write_index(const vk_folder *folder, const vp_convert_options *options, vp_error *error) {
    char name[64];
    vp_output out;
    vp_json_writer writer;
    vp_result result = vk_output_open(&out, options->directory, "model.safetensors.index.json", error);
    if (result != VP_OK) return result;
    vp_json_writer_init_sink(&writer, vk_index_sink, &out, 2);
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "metadata");
    vp_json_begin_object(&writer);
    vp_json_key(&writer, "total_size");
    vp_json_int(&writer, (int64_t)folder->bytes);
    vp_json_end_object(&writer);
    vp_json_key(&writer, "weight_map");
    vp_json_begin_object(&writer);
    for (int64_t i = 0; i < folder->count; i++) {
        vk_shard_name(folder, folder->entries[i].shard, name, sizeof name);
        vp_json_key(&writer, folder->entries[i].spec.name);
        vp_json_string(&writer, name);
    }
    vp_json_end_object(&writer);
    vp_json_end_object(&writer);
    result = vp_json_finish(&writer);
    if (result == VP_OK) result = vp_output_write(&out, "\n", 1, error);
    else result = vp_fail(error, VP_ERR_WRITE, -1, out.path, "it cannot be written");
    return vk_output_close(&out, result, error);
}

static vp_result vk_convert_hf(vk_loader *loader, const vp_convert_options *options) {
    vk_folder folder = {0};
    vp_result result;
    result = vk_folder_plan(loader, options, &folder);
    if (result == VP_OK) result = vk_check_room(options->directory, folder.bytes, loader->error);
    loader->total = (int64_t)folder.bytes;
    for (int shard = 0; shard < folder.shard_count && result == VP_OK; shard++)
        result = vk_write_shard(loader, options, &folder, shard);
    if (result == VP_OK && folder.shard_count > 1) result = vk_write_index(&folder, options, loader->error);
    free(folder.rows);
    free(folder.entries);
    return result;
}

VP_API vp_convert_options vp_convert_options_default(void) {
    vp_convert_options options = {0};
    options.seed = 42;
    options.shard_bytes = UINT64_C(5000000000);
    return options;
}

VP_API vp_result vp_engine_convert(const vp_convert_options *options, vp_error *error) {
    vp_packed packed;
    vk_loader loader = {0};
    if (!options->config || !options->directory)
        return vp_fail(error, VP_ERR_RANGE, -1, "convert", "needs a model config and a folder");
    if (options->threads < 0 || options->threads > VK_THREADS_MAX || !options->shard_bytes
        || (options->layout != VP_CONVERT_HF && options->layout != VP_CONVERT_PACKED))
        return vp_fail(error, VP_ERR_RANGE, -1, "convert options",
                       "threads must be 0..4096, shard_bytes at least 1, layout HF or PACKED");
    if ((unsigned)options->weights > VP_WEIGHTS_INT4 || options->weights == VP_WEIGHTS_FP32
        || (unsigned)options->head_weights > VP_WEIGHTS_INT4 || options->head_weights == VP_WEIGHTS_FP32
        || (unsigned)options->vision_weights > VP_WEIGHTS_INT4 || options->vision_weights == VP_WEIGHTS_FP32)
        return vp_fail(error, VP_ERR_RANGE, -1, "convert options", "weights are written as bf16, int8 or int4");
    if (options->layout == VP_CONVERT_HF && (options->weights || options->head_weights || options->vision_weights))
        return vp_fail(error, VP_ERR_RANGE, -1, "convert options", "integers need layout PACKED");
    if (options->checkpoint && vp_checkpoint_packed(options->checkpoint, &packed) == VP_OK)
        return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "packed weights",
                       "they cannot be converted; give the folder that they were made from");
    loader.description = vk_description_of(options->config);
    loader.checkpoint = options->checkpoint;
    loader.seed = options->seed;
    loader.threads = vk_host_threads(options->threads);
    loader.progress = options->progress;
    loader.progress_user = options->progress_user;
    loader.error = error;
    return options->layout == VP_CONVERT_HF ? vk_convert_hf(&loader, options) : vk_convert_packed(&loader, options);
}
