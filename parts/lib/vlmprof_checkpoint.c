/* vlmprof_checkpoint.c: implements what vlmprof_checkpoint.h declares */
#include "vlmprof_checkpoint.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* snprintf that always terminates its output */
static void vp_impl_format(char *out, size_t capacity, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(out, capacity, format, list);
    va_end(list);
}

/* ------------------------------------------------------------------------------------------------------ conversions */
VP_API float vp_bf16_to_f32(uint16_t value) {
    uint32_t bits = (uint32_t)value << 16;
    float out;
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x00400000u;
    memcpy(&out, &bits, 4);
    return out;
}

VP_API uint16_t vp_f32_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    /* the payload could round to infinity */
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

VP_API float vp_f16_to_f32(uint16_t value) {
    uint32_t sign = (uint32_t)(value & 0x8000u) << 16, exponent = value >> 10 & 31u, fraction = value & 0x3ffu, bits;
    float out;
    if (exponent == 31) bits = sign | 0x7f800000u | fraction << 13 | (fraction ? 0x00400000u : 0u);
    else if (exponent) bits = sign | (exponent + 112) << 23 | fraction << 13;
    else if (!fraction) bits = sign;
    else { /* subnormal: shift the leading one into the hidden bit */ exponent = 113;
        while (!(fraction & 0x400u)) {
            fraction <<= 1;
            exponent--;
        }
        bits = sign | exponent << 23 | (fraction & 0x3ffu) << 13;
    }
    memcpy(&out, &bits, 4);
    return out;
}

/* ------------------------------------------------------------------------------------------------------ safetensors */
#define VP_IMPL_HEADER_BYTES_MAX 100000000u /* the format's limit */

typedef struct vp_impl_shard {
    char *path;
    const char *file; /* file name in path */
    const unsigned char *map;
    size_t map_bytes;
    char *names; /* names of its tensors, each with a NUL */
} vp_impl_shard;

typedef struct vp_impl_entry {
    const char *name;
    uint64_t begin, end; /* offsets into the map */
    int64_t shape[VP_TENSOR_DIMENSIONS_MAX];
    uint32_t dimensions; /* shape has at most the first VP_TENSOR_DIMENSIONS_MAX */
    uint16_t type;       /* index into vp_impl_file_types */
    uint8_t used;
    int32_t shard;
} vp_impl_entry;

struct vp_checkpoint {
    vp_impl_shard *shards;
    int32_t shard_count;
    vp_impl_entry *entries; /* sorted by name once all shards are read */
    size_t entry_count, entry_capacity;
};

typedef struct vp_impl_file_type { const char *name; uint32_t bits; } vp_impl_file_type;
static const vp_impl_file_type vp_impl_file_types[] = {
    {"F32", 32},    {"BF16", 16},   {"F16", 16}, /* in the order of vp_dtype */
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16}, {"I32", 32},
    {"U32", 32},    {"C64", 64},    {"F64", 64},        {"I64", 64},        {"U64", 64}};
enum { VP_IMPL_FILE_TYPE_COUNT = sizeof vp_impl_file_types / sizeof vp_impl_file_types[0] };

/* shared state of the checks of a header */
typedef struct vp_impl_header {
    const vp_json *json;
    const char *where;
    uint64_t data_start; /* file offset of the data buffer */
    vp_error *error;
} vp_impl_header;

static vp_result vp_impl_header_fail(const vp_impl_header *header, const char *name, const char *text) {
    return vp_failf(header->error, VP_ERR_FORMAT, -1, header->where, "%.100s: %s", name, text);
}

/* digits only: safetensors has no fractions, exponents or signs */
static int vp_impl_json_u64(const vp_json *json, uint32_t node, uint64_t *out) {
    const vp_json_node *found = &json->nodes[node];
    uint64_t value = 0, i;
    if (found->type != VP_JSON_NUMBER || found->bytes < 1 || found->bytes > 20) return 0;
    for (i = 0; i < found->bytes; i++) {
        unsigned digit = (unsigned)(unsigned char)json->text[found->start + i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) return 0;
        value = value * 10 + digit;
    }
    *out = value;
    return 1;
}

static vp_result vp_impl_header_shape(const vp_impl_header *header, uint32_t node, vp_impl_entry *entry,
                                      uint64_t *elements) {
    uint32_t i, item = node + 1, count = header->json->nodes[node].count;
    uint64_t side = 0;
    if (header->json->nodes[node].type != VP_JSON_ARRAY)
        return vp_impl_header_fail(header, entry->name, "shape is not a list");
    *elements = 1;
    for (i = 0; i < count; i++, item++) { /* numbers have no children, so the next element is the next node */
        if (!vp_impl_json_u64(header->json, item, &side) || side > (uint64_t)INT64_MAX)
            return vp_impl_header_fail(header, entry->name, "shape must contain non-negative integers");
        if (i < VP_TENSOR_DIMENSIONS_MAX) entry->shape[i] = (int64_t)side;
        if (side && *elements > UINT64_MAX / side)
            return vp_impl_header_fail(header, entry->name, "the number of elements overflows");
        *elements *= side;
    }
    entry->dimensions = count;
    return VP_OK;
}

static vp_result vp_impl_header_offsets(const vp_impl_header *header, uint32_t node, vp_impl_entry *entry) {
    if (header->json->nodes[node].type != VP_JSON_ARRAY || header->json->nodes[node].count != 2
        || !vp_impl_json_u64(header->json, node + 1, &entry->begin)
        || !vp_impl_json_u64(header->json, node + 2, &entry->end))
        return vp_impl_header_fail(header, entry->name, "data_offsets must be two non-negative integers");
    if (entry->begin > entry->end)
        return vp_impl_header_fail(header, entry->name, "data_offsets end before they begin");
    return VP_OK;
}

static vp_result vp_impl_header_type(const vp_impl_header *header, uint32_t node, vp_impl_entry *entry) {
    for (uint32_t i = 0; i < VP_IMPL_FILE_TYPE_COUNT; i++) {
        if (vp_json_equals(header->json, node, vp_impl_file_types[i].name)) {
            entry->type = (uint16_t)i;
            return VP_OK;
        }
    }
    return vp_impl_header_fail(header, entry->name, "unknown dtype");
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}; other members are ignored, as in the reference */
static vp_result vp_impl_header_tensor(const vp_impl_header *header, uint32_t object, vp_impl_entry *entry) {
    static const char *const fields[3] = {"dtype", "shape", "data_offsets"};
    uint32_t nodes[3] = {VP_JSON_NONE, VP_JSON_NONE, VP_JSON_NONE}, i, k, key = object + 1,
             count = header->json->nodes[object].count, bits;
    uint64_t elements = 0, bytes;
    if (header->json->nodes[object].type != VP_JSON_OBJECT)
        return vp_impl_header_fail(header, entry->name, "the entry is not an object");
    for (i = 0; i < count; i++, key = header->json->nodes[key + 1].end) {
        for (k = 0; k < 3; k++) {
            if (!vp_json_equals(header->json, key, fields[k])) continue;
            if (nodes[k] != VP_JSON_NONE)
                return vp_impl_header_fail(header, entry->name, "dtype, shape or data_offsets appears twice");
            nodes[k] = key + 1;
        }
    }
    for (k = 0; k < 3; k++)
        if (nodes[k] == VP_JSON_NONE)
            return vp_impl_header_fail(header, entry->name, "dtype, shape or data_offsets is missing");
    vp_result result = vp_impl_header_type(header, nodes[0], entry);
    if (result == VP_OK) result = vp_impl_header_shape(header, nodes[1], entry, &elements);
    if (result == VP_OK) result = vp_impl_header_offsets(header, nodes[2], entry);
    if (result != VP_OK) return result;
    bits = vp_impl_file_types[entry->type].bits;
    if (elements > UINT64_MAX / bits) return vp_impl_header_fail(header, entry->name, "the size overflows");
    if (elements * bits % 8) return vp_impl_header_fail(header, entry->name, "the elements do not fill whole bytes");
    bytes = elements * bits / 8;
    if (bytes != entry->end - entry->begin)
        return vp_impl_header_fail(header, entry->name, "the span of data_offsets does not match dtype and shape");
    return VP_OK;
}

static int vp_impl_text_order(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int vp_impl_entry_order(const void *left, const void *right) {
    const vp_impl_entry *one = (const vp_impl_entry *)left, *other = (const vp_impl_entry *)right;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->shard > other->shard) - (one->shard < other->shard);
}

static int vp_impl_offset_order(const void *left, const void *right) {
    const vp_impl_entry *one = (const vp_impl_entry *)left, *other = (const vp_impl_entry *)right;
    if (one->begin != other->begin) return one->begin < other->begin ? -1 : 1;
    return (one->end > other->end) - (one->end < other->end);
}

/* Makes an unescaped copy of a string node at *end of a block that is large enough (unescaping never makes a text
 * longer). Returns NULL if it contains a NUL. */
static const char *vp_impl_json_keep(const vp_json *json, uint32_t node, char **end) {
    char *text = *end;
    size_t bytes = 0;
    if (vp_json_text(json, node, text, (size_t)json->nodes[node].bytes + 1, &bytes) != VP_OK || strlen(text) != bytes)
        return NULL;
    *end = text + bytes + 1;
    return text;
}

/* size that vp_impl_json_keep needs for all keys of an object and, with `values`, also for its string values */
static size_t vp_impl_json_keep_bytes(const vp_json *json, uint32_t object, int values) {
    uint32_t i, key = object + 1;
    size_t bytes = 1;
    for (i = 0; i < json->nodes[object].count; i++, key = json->nodes[key + 1].end)
        bytes += (size_t)json->nodes[key].bytes + 1 + (values ? (size_t)json->nodes[key + 1].bytes + 1 : 0);
    return bytes;
}

/* the only key of the header that is not a tensor; split, because such names are reserved for the compiler */
#define VP_IMPL_METADATA "__" "metadata" "__"

/* checks the metadata: strings to strings, unique keys */
static vp_result vp_impl_header_metadata(const vp_impl_header *header, uint32_t object) {
    uint32_t i, key = object + 1, count;
    const char **keys;
    char *names, *end;
    vp_result result = VP_OK;
    if (header->json->nodes[object].type != VP_JSON_OBJECT)
        return vp_impl_header_fail(header, VP_IMPL_METADATA, "this is not an object");
    count = header->json->nodes[object].count;
    names = end = (char *)VP_MALLOC(vp_impl_json_keep_bytes(header->json, object, 0));
    keys = (const char **)VP_MALLOC(((size_t)count + 1) * sizeof *keys);
    if (!names || !keys)
        result = vp_error_set(header->error, VP_ERR_MEMORY, -1, header->where, "not enough memory for the header");
    for (i = 0; i < count && result == VP_OK; i++, key = header->json->nodes[key + 1].end) {
        if (header->json->nodes[key + 1].type != VP_JSON_STRING)
            result = vp_impl_header_fail(header, VP_IMPL_METADATA, "only strings are allowed as values");
        else if (!(keys[i] = vp_impl_json_keep(header->json, key, &end)))
            result = vp_impl_header_fail(header, VP_IMPL_METADATA, "a key contains a NUL character");
    }
    if (result == VP_OK && count > 1) {
        qsort(keys, count, sizeof *keys, vp_impl_text_order);
        for (i = 1; i < count && result == VP_OK; i++)
            if (!strcmp(keys[i - 1], keys[i]))
                result = vp_impl_header_fail(header, VP_IMPL_METADATA, "a key appears twice");
    }
    VP_FREE(names);
    VP_FREE((void *)keys);
    return result;
}

/* Checks the entries of one file: names are unique, and the data fill the whole buffer without gaps. */
static vp_result vp_impl_header_check(const vp_impl_header *header, vp_impl_entry *entries, size_t count,
                                      uint64_t buffer_bytes) {
    uint64_t end = 0;
    if (count) qsort(entries, count, sizeof *entries, vp_impl_entry_order);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(entries[i - 1].name, entries[i].name))
            return vp_impl_header_fail(header, entries[i].name, "this key appears twice");
    if (count) qsort(entries, count, sizeof *entries, vp_impl_offset_order);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].begin < end)
            return vp_impl_header_fail(header, entries[i].name, "its data overlap those of another tensor");
        if (entries[i].begin > end)
            return vp_impl_header_fail(header, entries[i].name, "there is a gap before its data");
        end = entries[i].end;
    }
    if (end > buffer_bytes)
        return vp_failf(header->error, VP_ERR_FORMAT, -1, header->where,
                        "the file is truncated: tensors need %llu bytes of data, not %llu", (unsigned long long)end,
                        (unsigned long long)buffer_bytes);
    if (end < buffer_bytes)
        return vp_failf(header->error, VP_ERR_FORMAT, -1, header->where, "%llu bytes follow the last tensor",
                        (unsigned long long)(buffer_bytes - end));
    for (size_t i = 0; i < count; i++) {
        entries[i].begin += header->data_start;
        entries[i].end += header->data_start;
    }
    return VP_OK;
}

static vp_result vp_impl_header_read(const vp_impl_header *header, vp_checkpoint *cp, int32_t shard,
                                     uint64_t buffer_bytes) {
    uint32_t i, key = 1, count = header->json->nodes[0].count;
    size_t first = cp->entry_count, needed = first + count + 1, bytes; /* one more, so that it is not NULL without
                                                                        * tensors */
    int metadata_seen = 0;
    char *end;
    if (header->json->nodes[0].type != VP_JSON_OBJECT)
        return vp_error_set(header->error, VP_ERR_FORMAT, 8, header->where, "the header is not a JSON object");
    end = cp->shards[shard].names = (char *)VP_MALLOC(vp_impl_json_keep_bytes(header->json, 0, 0));
    if (needed > cp->entry_capacity) {
        vp_impl_entry *grown =
            vp_size_multiply(needed, sizeof *grown, &bytes) ? (vp_impl_entry *)VP_REALLOC(cp->entries, bytes) : NULL;
        if (!grown)
            return vp_error_set(header->error, VP_ERR_MEMORY, -1, header->where, "not enough memory for the header");
        cp->entries = grown;
        cp->entry_capacity = needed;
    }
    if (!end) return vp_error_set(header->error, VP_ERR_MEMORY, -1, header->where, "not enough memory for the header");
    for (i = 0; i < count; i++, key = header->json->nodes[key + 1].end) {
        vp_impl_entry *entry = &cp->entries[cp->entry_count];
        vp_result result;
        memset(entry, 0, sizeof *entry);
        entry->shard = shard;
        entry->name = vp_impl_json_keep(header->json, key, &end);
        if (!entry->name) return vp_impl_header_fail(header, "a tensor name", "contains a NUL character");
        if (!strcmp(entry->name, VP_IMPL_METADATA)) {
            result = metadata_seen ? vp_impl_header_fail(header, entry->name, "this key appears twice")
                                   : vp_impl_header_metadata(header, key + 1);
            metadata_seen = 1;
        } else {
            result = vp_impl_header_tensor(header, key + 1, entry);
            cp->entry_count++;
        }
        if (result != VP_OK) return result;
    }
    return vp_impl_header_check(header, cp->entries + first, cp->entry_count - first, buffer_bytes);
}

static vp_result vp_impl_shard_map(vp_impl_shard *shard, vp_error *error) {
    vp_result result = vp_file_map(shard->path, &shard->map, &shard->map_bytes, error);
    if (result != VP_OK) return result;
    return shard->map_bytes >= 8
               ? VP_OK
               : vp_error_set(error, VP_ERR_FORMAT, 0, shard->path, "the file is too short to contain weights");
}

static vp_result vp_impl_shard_read(vp_checkpoint *cp, int32_t index, vp_error *error) {
    vp_impl_shard *shard = &cp->shards[index];
    vp_impl_header header;
    vp_json json = {0};
    uint64_t header_bytes = 0;
    vp_result result = vp_impl_shard_map(shard, error);
    if (result != VP_OK) return result;
    for (int i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | shard->map[i];
    if (header_bytes > VP_IMPL_HEADER_BYTES_MAX)
        return vp_error_set(error, VP_ERR_FORMAT, 0, shard->path,
                            "the header is longer than 100000000 bytes; this is not a safetensors file");
    if (header_bytes > shard->map_bytes - 8)
        return vp_error_set(error, VP_ERR_FORMAT, 0, shard->path,
                            "the header ends beyond the file: it is truncated or not a safetensors file");
    if (header_bytes < 2 || shard->map[8] != '{')
        return vp_error_set(error, VP_ERR_FORMAT, 8, shard->path, "the header does not begin with {");
    result = vp_json_load((const char *)shard->map + 8, (size_t)header_bytes, shard->path, &json, error);
    if (result != VP_OK) return result;
    header.json = &json;
    header.where = shard->path;
    header.data_start = 8 + header_bytes;
    header.error = error;
    result = vp_impl_header_read(&header, cp, index, shard->map_bytes - header.data_start);
    VP_FREE((void *)json.nodes);
    return result;
}

/* ---------------------------------------------------------------------------------------------------- whole folders */
static char *vp_impl_path_join(const char *directory, const char *file) {
    size_t directory_bytes = strlen(directory), file_bytes = strlen(file);
    char *path = (char *)VP_MALLOC(directory_bytes + file_bytes + 2);
    if (!path) return NULL;
    memcpy(path, directory, directory_bytes);
    if (directory_bytes && directory[directory_bytes - 1] != '/') path[directory_bytes++] = '/';
    memcpy(path + directory_bytes, file, file_bytes + 1);
    return path;
}

/* 1: exists, or cannot be examined (opening it reports why); 0: does not exist; -1: out of memory */
static int vp_impl_path_exists(const char *directory, const char *file) {
    char *path = vp_impl_path_join(directory, file);
    int there = path ? vp_path_kind(path) != VP_PATH_NONE : -1;
    VP_FREE(path);
    return there;
}

static vp_result vp_impl_checkpoint_add(vp_checkpoint *cp, const char *directory, const char *file, vp_error *error) {
    vp_impl_shard *grown, *shard;
    if (cp->shard_count == INT32_MAX) return vp_error_set(error, VP_ERR_RANGE, -1, directory, "too many shards");
    grown = (vp_impl_shard *)VP_REALLOC(cp->shards, ((size_t)cp->shard_count + 1) * sizeof *grown);
    if (!grown) return vp_error_set(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    cp->shards = grown;
    shard = &grown[cp->shard_count];
    memset(shard, 0, sizeof *shard);
    shard->path = vp_impl_path_join(directory, file);
    if (!shard->path) return vp_error_set(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    shard->file = shard->path + strlen(shard->path) - strlen(file);
    cp->shard_count++;
    return vp_impl_shard_read(cp, cp->shard_count - 1, error);
}

/* A short list of faults: a count and the first names per kind. */
enum {
    VP_IMPL_FAULT_MISSING,
    VP_IMPL_FAULT_EXTRA,
    VP_IMPL_FAULT_SHAPE,
    VP_IMPL_FAULT_TYPE,
    VP_IMPL_FAULT_SHARD,
    VP_IMPL_FAULT_TWICE,
    VP_IMPL_FAULT_KINDS
};
typedef struct vp_impl_faults {
    int64_t count[VP_IMPL_FAULT_KINDS];
    char first[VP_IMPL_FAULT_KINDS][600];
} vp_impl_faults;

static void vp_impl_faults_add(vp_impl_faults *faults, int kind, const char *name, const char *detail) {
    char *first = faults->first[kind];
    size_t used = strlen(first);
    faults->count[kind]++;
    if (faults->count[kind] <= 3)
        vp_impl_format(first + used, sizeof faults->first[kind] - used, "%s%s%s", used ? ", " : "", name, detail);
}

static vp_result vp_impl_faults_report(const vp_impl_faults *faults, const char *where, vp_error *error) {
    static const char *const words[VP_IMPL_FAULT_KINDS] = {
        "missing",     "extra", "misshapen", "of an unusable type", "in a different file than in the index",
        "in two files"};
    char text[sizeof error->text];
    size_t used = 0;
    int kind, kinds = 0, shown;
    vp_result code = VP_ERR_MISMATCH;
    for (kind = 0; kind < VP_IMPL_FAULT_KINDS; kind++) kinds += faults->count[kind] != 0;
    if (!kinds) return VP_OK;
    if (kinds == 1 && faults->count[VP_IMPL_FAULT_TYPE]) code = VP_ERR_UNSUPPORTED;
    text[0] = 0;
    shown = (int)(sizeof text - 1) / kinds - 45; /* reserves room for every kind's count and label */
    for (kind = 0; kind < VP_IMPL_FAULT_KINDS && used < sizeof text - 1; kind++) {
        if (!faults->count[kind]) continue;
        vp_impl_format(text + used, sizeof text - used, "%s%lld %s: %.*s%s", used ? "; " : "",
                       (long long)faults->count[kind], words[kind], shown, faults->first[kind],
                       faults->count[kind] > 3 || (int)strlen(faults->first[kind]) > shown ? " ..." : "");
        used += strlen(text + used);
    }
    return vp_error_set(error, code, -1, where, text);
}

/* a row of model.safetensors.index.json, for one tensor */
typedef struct vp_impl_place { const char *name, *file; } vp_impl_place;

static int vp_impl_place_order(const void *left, const void *right) {
    return strcmp(((const vp_impl_place *)left)->name, ((const vp_impl_place *)right)->name);
}

static int vp_impl_place_file_order(const void *left, const void *right) {
    return strcmp(((const vp_impl_place *)left)->file, ((const vp_impl_place *)right)->file);
}

static int vp_impl_ends_with(const char *text, const char *end) {
    size_t text_bytes = strlen(text), end_bytes = strlen(end);
    return text_bytes >= end_bytes && !strcmp(text + text_bytes - end_bytes, end);
}

/* texts: large enough for all names; places: one per member */
static vp_result vp_impl_index_parse(const vp_json *json, uint32_t map, const char *where, char *texts,
                                     vp_impl_place *places, vp_error *error) {
    uint32_t i, key = map + 1, count = json->nodes[map].count;
    for (i = 0; i < count; i++, key = json->nodes[key + 1].end) {
        const char *name = vp_impl_json_keep(json, key, &texts), *file;
        if (!name) return vp_error_set(error, VP_ERR_FORMAT, -1, where, "a tensor name contains a NUL character");
        if (json->nodes[key + 1].type != VP_JSON_STRING)
            return vp_failf(error, VP_ERR_FORMAT, -1, where, "%.100s: the file is not a string", name);
        file = vp_impl_json_keep(json, key + 1, &texts);
        /* a name outside the folder is an attack */
        if (!file || !*file || strchr(file, '/') || strchr(file, '\\') || strstr(file, ".."))
            return vp_failf(error, VP_ERR_FORMAT, -1, where,
                            "%.100s: the file name must be a plain name in this folder", name);
        if (vp_impl_ends_with(file, ".bin") || vp_impl_ends_with(file, ".pt") || vp_impl_ends_with(file, ".pth"))
            return vp_failf(error, VP_ERR_UNSUPPORTED, -1, where,
                            "%.80s: pickle files can execute code; convert them to safetensors", file);
        places[i].name = name;
        places[i].file = file;
    }
    if (count) qsort(places, count, sizeof *places, vp_impl_place_order);
    for (i = 1; i < count; i++)
        if (!strcmp(places[i - 1].name, places[i].name))
            return vp_failf(error, VP_ERR_FORMAT, -1, where, "%.100s appears twice", places[i].name);
    return VP_OK;
}

/* both lists are sorted by name */
static vp_result vp_impl_index_compare(const vp_checkpoint *cp, const vp_impl_place *places, size_t count,
                                       const char *where, vp_error *error) {
    vp_impl_faults faults = {0};
    char detail[120];
    size_t i = 0, place = 0;
    while (i < cp->entry_count || place < count) {
        const vp_impl_entry *entry = &cp->entries[i];
        int order = i >= cp->entry_count ? 1
                    : place >= count     ? -1
                                         : strcmp(entry->name, places[place].name),
            right = 0, copies = 0;
        if (order < 0) {
            vp_impl_format(detail, sizeof detail, " (in %.80s, not in the index)", cp->shards[entry->shard].file);
            vp_impl_faults_add(&faults, VP_IMPL_FAULT_EXTRA, entry->name, detail);
            i++;
        } else if (order > 0) {
            vp_impl_format(detail, sizeof detail, " (not in %.80s)", places[place].file);
            vp_impl_faults_add(&faults, VP_IMPL_FAULT_MISSING, places[place++].name, detail);
        } else {
            for (; i < cp->entry_count && !strcmp(cp->entries[i].name, entry->name); i++, copies++)
                right |= !strcmp(cp->shards[cp->entries[i].shard].file, places[place].file);
            if (!right) vp_impl_faults_add(&faults, VP_IMPL_FAULT_SHARD, entry->name, "");
            if (copies > 1) vp_impl_faults_add(&faults, VP_IMPL_FAULT_TWICE, entry->name, "");
            place++;
        }
    }
    return vp_impl_faults_report(&faults, where, error);
}

/* opens the shards in order of their names, then compares */
static vp_result vp_impl_index_open(vp_checkpoint *cp, const char *directory, const char *where, vp_impl_place *places,
                                    size_t count, vp_error *error) {
    vp_result result = VP_OK;
    if (count) qsort(places, count, sizeof *places, vp_impl_place_file_order);
    for (size_t i = 0; i < count && result == VP_OK; i++) {
        if (i && !strcmp(places[i - 1].file, places[i].file)) continue;
        result = vp_impl_checkpoint_add(cp, directory, places[i].file, error);
        if (result == VP_ERR_NOT_FOUND)
            result = vp_failf(error, VP_ERR_NOT_FOUND, -1, where, "the shard %.100s is missing", places[i].file);
    }
    if (result != VP_OK) return result;
    if (count) qsort(places, count, sizeof *places, vp_impl_place_order);
    if (cp->entry_count) qsort(cp->entries, cp->entry_count, sizeof *cp->entries, vp_impl_entry_order);
    return vp_impl_index_compare(cp, places, count, where, error);
}

static vp_result vp_impl_checkpoint_index(vp_checkpoint *cp, const char *directory, const char *where,
                                          vp_error *error) {
    char *text = NULL, *texts = NULL;
    size_t bytes = 0, place_bytes = 0;
    vp_impl_place *places = NULL;
    vp_json json = {0};
    uint32_t map = VP_JSON_NONE;
    vp_result result = vp_file_read(where, (size_t)1 << 28, &text, &bytes, error);
    if (result == VP_OK) result = vp_json_load(text, bytes, where, &json, error);
    if (result == VP_OK) {
        map = json.nodes[0].type == VP_JSON_OBJECT ? vp_json_get(&json, 0, "weight_map") : VP_JSON_NONE;
        if (map == VP_JSON_NONE || json.nodes[map].type != VP_JSON_OBJECT)
            result = vp_error_set(error, VP_ERR_FORMAT, -1, where, "there is no weight_map");
    }
    if (result == VP_OK) {
        texts = (char *)VP_MALLOC(vp_impl_json_keep_bytes(&json, map, 1));
        if (vp_size_multiply((size_t)json.nodes[map].count + 1, sizeof *places, &place_bytes))
            places = (vp_impl_place *)VP_MALLOC(place_bytes);
        if (!texts || !places)
            result = vp_error_set(error, VP_ERR_MEMORY, -1, where, "not enough memory for the index");
    }
    if (result == VP_OK) result = vp_impl_index_parse(&json, map, where, texts, places, error);
    if (result == VP_OK) result = vp_impl_index_open(cp, directory, where, places, json.nodes[map].count, error);
    VP_FREE(places);
    VP_FREE(texts);
    VP_FREE((void *)json.nodes);
    VP_FREE(text);
    return result;
}

static vp_impl_entry *vp_impl_checkpoint_exact(const vp_checkpoint *cp, const char *name) {
    size_t low = 0, high = cp->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, cp->entries[middle].name);
        if (order == 0) return &cp->entries[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

/* The tensor of a name of vp_model_tensor, or of the name that other versions of transformers give it. */
static vp_impl_entry *vp_impl_checkpoint_entry(const vp_checkpoint *cp, const char *name) {
    static const char *const prefixes[][2] = {
        {"language_model.model.", "model.language_model."}, {"language_model.lm_head.", "lm_head."},
        {"vision_tower.", "model.vision_tower."}, {"vision_tower.vision_model.", "model.vision_tower."},
        {"multi_modal_projector.", "model.multi_modal_projector."}, {"visual.", "model.visual."},
        {"model.", "model.language_model."}};
    vp_impl_entry *entry = vp_impl_checkpoint_exact(cp, name);
    char other[160];
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !entry; i++) {
        const size_t bytes = strlen(prefixes[i][0]);
        if (strncmp(name, prefixes[i][0], bytes)) continue;
        vp_impl_format(other, sizeof other, "%s%s", prefixes[i][1], name + bytes);
        entry = vp_impl_checkpoint_exact(cp, other);
    }
    return entry;
}

static void vp_impl_shape_text(char *out, size_t capacity, const int64_t *shape, uint32_t dimensions) {
    size_t used;
    vp_impl_format(out, capacity, "[");
    for (uint32_t i = 0; i < dimensions && i < VP_TENSOR_DIMENSIONS_MAX; i++) {
        used = strlen(out);
        vp_impl_format(out + used, capacity - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    }
    used = strlen(out);
    vp_impl_format(out + used, capacity - used, dimensions > VP_TENSOR_DIMENSIONS_MAX ? ", ...]" : "]");
}

/* compares a tensor of the config with the file's, and marks the entry as used */
static void vp_impl_checkpoint_compare_one(vp_impl_entry *entry, const vp_tensor_spec *spec, vp_impl_faults *faults) {
    char detail[256], got[96], wanted[96];
    int32_t i, same = entry && entry->dimensions == (uint32_t)spec->dimensions;
    vp_impl_shape_text(wanted, sizeof wanted, spec->shape, (uint32_t)spec->dimensions);
    if (!entry) {
        vp_impl_format(detail, sizeof detail, " %s", wanted);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_MISSING, spec->name, detail);
        return;
    }
    entry->used = 1;
    for (i = 0; i < spec->dimensions; i++) same = same && entry->shape[i] == spec->shape[i];
    if (!same) {
        vp_impl_shape_text(got, sizeof got, entry->shape, entry->dimensions);
        vp_impl_format(detail, sizeof detail, " is %s, expected %s", got, wanted);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_SHAPE, spec->name, detail);
    }
    if (entry->type > VP_DTYPE_F16) {
        vp_impl_format(detail, sizeof detail, " is %s, not F32, BF16 or F16", vp_impl_file_types[entry->type].name);
        vp_impl_faults_add(faults, VP_IMPL_FAULT_TYPE, spec->name, detail);
    }
}

/* detects names of OLMo's own training code, whose names and layout differ, so that no tensor can be used unchanged */
static int vp_impl_is_olmo(const vp_checkpoint *cp) {
    for (size_t i = 0; i < cp->entry_count; i++) {
        const char *name = cp->entries[i].name;
        if (!strncmp(name, "transformer.", 12) || strstr(name, ".ffn.experts.mlp.")
            || strstr(name, "transformer.ff_out.weight"))
            return 1;
    }
    return 0;
}
static vp_result vp_impl_fail_olmo(const char *directory, vp_error *error) {
    return vp_error_set(
        error, VP_ERR_UNSUPPORTED, -1, directory,
        "the weights are in OLMo's original training format: other tensor names, all experts of a block in one tensor, "
        "w2 transposed; convert them to the Hugging Face format (config.json, model.safetensors) with the model's own "
        "script first");
}

static vp_result vp_impl_checkpoint_compare(vp_checkpoint *cp, const vp_model_config *config, const char *where,
                                            vp_error *error) {
    vp_impl_faults faults = {0};
    vp_tensor_spec spec;
    char shape[96], detail[128];
    int64_t count = vp_model_tensor_count(config), i;
    for (i = 0; i < count; i++) {
        if (vp_model_tensor(config, i, &spec) != VP_OK)
            return vp_error_set(error, VP_ERR_RANGE, -1, "config", "the config is not valid");
        vp_impl_checkpoint_compare_one(vp_impl_checkpoint_entry(cp, spec.name), &spec, &faults);
    }
    for (size_t k = 0; k < cp->entry_count; k++) {
        const vp_impl_entry *entry = &cp->entries[k];
        /* buffers that older versions saved and transformers computes, and what cannot be a weight */
        if (entry->used || vp_impl_ends_with(entry->name, "position_ids") || vp_impl_ends_with(entry->name, "inv_freq")
            || entry->type > VP_DTYPE_F16 || !entry->dimensions || entry->begin == entry->end)
            continue;
        vp_impl_shape_text(shape, sizeof shape, entry->shape, entry->dimensions);
        vp_impl_format(detail, sizeof detail, " %s", shape);
        vp_impl_faults_add(&faults, VP_IMPL_FAULT_EXTRA, entry->name, detail);
    }
    if (faults.count[VP_IMPL_FAULT_MISSING] && vp_impl_is_olmo(cp)) return vp_impl_fail_olmo(where, error);
    return vp_impl_faults_report(&faults, where, error);
}

/* reports why there are no readable weights */
static vp_result vp_impl_checkpoint_none(const char *directory, vp_error *error) {
    if (vp_impl_path_exists(directory, "pytorch_model.bin") > 0
        || vp_impl_path_exists(directory, "pytorch_model.bin.index.json") > 0)
        return vp_error_set(
            error, VP_ERR_UNSUPPORTED, -1, directory,
            "the weights are PyTorch pickles (pytorch_model.bin), which can execute code when they are loaded; convert "
            "them to safetensors: in Python, load the model with from_pretrained and write it with "
            "save_pretrained(folder, safe_serialization=True)");
    if (vp_impl_path_exists(directory, "config.yaml") > 0 || vp_impl_path_exists(directory, "model.pt") > 0)
        return vp_impl_fail_olmo(directory, error);
    return vp_error_set(error, VP_ERR_NOT_FOUND, -1, directory,
                        "this folder has no model.safetensors or model.safetensors.index.json");
}

/* -------------------------------------------------------------------------------------------------------- the whole */
/* the files that exist decide how a folder is read */
static vp_result vp_impl_checkpoint_read(vp_checkpoint *cp, const char *directory, const vp_model_config *config,
                                         vp_error *error) {
    static const char single[] = "model.safetensors", index[] = "model.safetensors.index.json";
    int there = vp_impl_path_exists(directory, single), indexed = vp_impl_path_exists(directory, index);
    vp_result result;
    if (there < 0 || indexed < 0) return vp_error_set(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    if (there) {
        result = vp_impl_checkpoint_add(cp, directory, single, error);
        if (result == VP_OK && cp->entry_count)
            qsort(cp->entries, cp->entry_count, sizeof *cp->entries, vp_impl_entry_order);
    } else if (indexed) {
        char *path = vp_impl_path_join(directory, index);
        result = path ? vp_impl_checkpoint_index(cp, directory, path, error)
                      : vp_error_set(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
        VP_FREE(path);
    } else {
        result = vp_impl_checkpoint_none(directory, error);
    }
    return result == VP_OK && config ? vp_impl_checkpoint_compare(cp, config, directory, error) : result;
}

VP_API vp_result vp_checkpoint_open(const char *directory, const vp_model_config *config, vp_checkpoint **checkpoint,
                                    vp_error *error) {
    vp_checkpoint *cp;
    if (!directory || !checkpoint)
        return vp_error_set(error, VP_ERR_RANGE, -1, "vp_checkpoint_open", "a required pointer is NULL");
    vp_path kind = vp_path_kind(directory);
    if (kind == VP_PATH_UNKNOWN)
        return vp_error_set(error, VP_ERR_READ, -1, directory, "the folder cannot be read: permission denied");
    if (kind == VP_PATH_NONE) return vp_error_set(error, VP_ERR_NOT_FOUND, -1, directory, "there is no such folder");
    if (kind != VP_PATH_FOLDER)
        return vp_error_set(error, VP_ERR_READ, -1, directory,
                            "this is a file; give the folder with config.json and the weights");
    cp = (vp_checkpoint *)VP_CALLOC(1, sizeof *cp);
    if (!cp) return vp_error_set(error, VP_ERR_MEMORY, -1, directory, "not enough memory");
    vp_result result = vp_impl_checkpoint_read(cp, directory, config, error);
    if (result != VP_OK) {
        vp_checkpoint_close(cp);
        return result;
    }
    *checkpoint = cp;
    return VP_OK;
}

static vp_result vp_impl_checkpoint_tensor(const vp_checkpoint *checkpoint, const vp_impl_entry *entry,
                                           vp_tensor *tensor) {
    if (entry->type > VP_DTYPE_F16 || entry->dimensions > VP_TENSOR_DIMENSIONS_MAX) return VP_ERR_UNSUPPORTED;
    memset(tensor, 0, sizeof *tensor);
    tensor->dtype = (vp_dtype)entry->type;
    tensor->dimensions = (int32_t)entry->dimensions;
    for (uint32_t i = 0; i < entry->dimensions; i++) tensor->shape[i] = entry->shape[i];
    tensor->data = checkpoint->shards[entry->shard].map + entry->begin;
    tensor->bytes = entry->end - entry->begin;
    tensor->shard = entry->shard;
    return VP_OK;
}
VP_API vp_result vp_checkpoint_find(const vp_checkpoint *checkpoint, const char *name, vp_tensor *tensor) {
    if (!checkpoint || !name || !tensor) return VP_ERR_RANGE;
    const vp_impl_entry *entry = vp_impl_checkpoint_entry(checkpoint, name);
    return entry ? vp_impl_checkpoint_tensor(checkpoint, entry, tensor) : VP_ERR_NOT_FOUND;
}

VP_API int vp_checkpoint_has_head(const char *directory) {
    vp_checkpoint *cp = NULL;
    if (vp_checkpoint_open(directory, NULL, &cp, NULL) != VP_OK) return 0;
    const int has_head = vp_impl_checkpoint_entry(cp, "language_model.lm_head.weight") != NULL;
    vp_checkpoint_close(cp);
    return has_head;
}

VP_API void vp_checkpoint_advise(const vp_checkpoint *checkpoint, const vp_tensor *tensor, int needed) {
    /* a page fault also maps neighbouring pages, so the range to release is wider than the tensor */
    enum { AROUND = 65536 };
    if (!checkpoint || !tensor || tensor->shard >= checkpoint->shard_count || !tensor->bytes) return;
    const vp_impl_shard *shard = &checkpoint->shards[tensor->shard];
    size_t begin = (size_t)(tensor->data - shard->map);
    size_t end = begin + (size_t)tensor->bytes;
    if (!needed) {
        begin = begin > AROUND ? begin - AROUND : 0;
        end = shard->map_bytes - end > AROUND ? end + AROUND : shard->map_bytes;
    }
    vp_file_advise(shard->map, begin, end, needed);
}

VP_API void vp_checkpoint_close(vp_checkpoint *checkpoint) {
    if (!checkpoint) return;
    for (int32_t i = 0; i < checkpoint->shard_count; i++) {
        vp_impl_shard *shard = &checkpoint->shards[i];
        vp_file_unmap(shard->map, shard->map_bytes);
        VP_FREE(shard->names);
        VP_FREE(shard->path);
    }
    VP_FREE(checkpoint->shards);
    VP_FREE(checkpoint->entries);
    VP_FREE(checkpoint);
}
