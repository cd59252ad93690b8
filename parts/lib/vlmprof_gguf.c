/* vlmprof_gguf.c: implements what vlmprof_gguf.h declares */
#include "vlmprof_gguf.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- reading */
typedef struct vp_impl_gguf_name { vp_gguf_text name; uint64_t index; } vp_impl_gguf_name;
struct vp_gguf {
    char *path;
    const unsigned char *map;
    size_t bytes;
    int mapped; /* 1 if mapped by vp_gguf_open */
    uint64_t value_count, tensor_count;
    vp_gguf_value *values;
    vp_gguf_tensor *tensors;
    vp_impl_gguf_name *value_names, *tensor_names; /* sorted */
};
/* The read position. All reads go through vp_impl_gguf_take. */
typedef struct vp_impl_gguf_at { const vp_gguf *gguf; size_t offset; vp_error *error; } vp_impl_gguf_at;

static vp_result vp_impl_gguf_wrong(const vp_impl_gguf_at *at, vp_result code, size_t offset, vp_gguf_text name,
                                    const char *text) {
    int bytes = name.bytes > 80 ? 80 : (int)name.bytes;
    return vp_failf(at->error, code, (int64_t)offset, at->gguf->path, "%.*s%s%s", bytes, bytes ? name.text : "",
                    bytes ? ": " : "", text);
}
static const vp_gguf_text vp_impl_gguf_unnamed = {NULL, 0};

static const unsigned char *vp_impl_gguf_take(vp_impl_gguf_at *at, uint64_t bytes) {
    if (!at->gguf->bytes || bytes > at->gguf->bytes - at->offset) return NULL;
    at->offset += (size_t)bytes;
    return at->gguf->map + at->offset - (size_t)bytes;
}
static uint64_t vp_impl_gguf_little(const unsigned char *data, int bytes) {
    uint64_t value = 0;
    while (bytes > 0) value = value << 8 | data[--bytes];
    return value;
}
static int vp_impl_gguf_number(vp_impl_gguf_at *at, int bytes, uint64_t *value) {
    const unsigned char *data = vp_impl_gguf_take(at, (uint64_t)bytes);
    if (data) *value = vp_impl_gguf_little(data, bytes);
    return data != NULL;
}
static int vp_impl_gguf_string(vp_impl_gguf_at *at, vp_gguf_text *text) {
    uint64_t bytes = 0;
    const unsigned char *data = vp_impl_gguf_number(at, 8, &bytes) ? vp_impl_gguf_take(at, bytes) : NULL;
    text->text = (const char *)data;
    text->bytes = (size_t)bytes;
    return data != NULL;
}
/* size of an item in bytes; 0 for a string */
static int vp_impl_gguf_kind_bytes(vp_gguf_kind kind) {
    static const unsigned char bytes[VP_GGUF_KIND_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return bytes[kind];
}

static vp_result vp_impl_gguf_value(vp_impl_gguf_at *at, vp_gguf_value *value) {
    size_t start = at->offset, begin;
    uint64_t kind = 0, item, i;
    if (!vp_impl_gguf_string(at, &value->name) || !vp_impl_gguf_number(at, 4, &kind))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, vp_impl_gguf_unnamed, "a key ends beyond the file");
    if (kind >= VP_GGUF_KIND_COUNT)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "its kind is not one of the format's");
    value->count = 1;
    item = kind;
    if (kind == VP_GGUF_ARRAY) {
        if (!vp_impl_gguf_number(at, 4, &item) || !vp_impl_gguf_number(at, 8, &value->count))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the value ends beyond the file");
        if (item == VP_GGUF_ARRAY)
            return vp_impl_gguf_wrong(at, VP_ERR_UNSUPPORTED, start, value->name, "an array of arrays");
        if (item >= VP_GGUF_KIND_COUNT)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name,
                                      "the kind of its items is not one of the format's");
    }
    value->kind = (vp_gguf_kind)kind;
    value->item = (vp_gguf_kind)item;
    begin = at->offset;
    value->data = at->gguf->map + begin;
    int bytes = vp_impl_gguf_kind_bytes(value->item);
    /* each string takes at least 8 bytes, so the file size bounds the loop */
    for (i = 0; !bytes && i < value->count; i++) {
        vp_gguf_text text;
        if (!vp_impl_gguf_string(at, &text))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "a text ends beyond the file");
    }
    if (bytes && (value->count > at->gguf->bytes || !vp_impl_gguf_take(at, value->count * (uint64_t)bytes)))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the value ends beyond the file");
    value->bytes = at->offset - begin;
    if (value->item == VP_GGUF_BOOL)
        for (i = 0; i < value->count; i++)
            if (value->data[i] > 1)
                return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, begin + (size_t)i, value->name,
                                          "a boolean is not 0 or 1");
    return VP_OK;
}

/* Types by ggml's number; types that vlmprof reads have a vp_dtype. */
typedef struct vp_impl_gguf_type { const char *name; uint32_t values, bytes; int32_t dtype; } vp_impl_gguf_type;
static const vp_impl_gguf_type vp_impl_gguf_types[] = {
    {"F32", 1, 4, VP_DTYPE_F32},     {"F16", 1, 2, VP_DTYPE_F16},     {"Q4_0", 32, 18, VP_DTYPE_Q4_0},
    {"Q4_1", 32, 20, -1},            {NULL, 0, 0, -1},                {NULL, 0, 0, -1},
    {"Q5_0", 32, 22, VP_DTYPE_Q5_0}, {"Q5_1", 32, 24, -1},            {"Q8_0", 32, 34, VP_DTYPE_Q8_0},
    {"Q8_1", 32, 36, -1},            {"Q2_K", 256, 84, -1},           {"Q3_K", 256, 110, -1},
    {"Q4_K", 256, 144, VP_DTYPE_Q4_K}, {"Q5_K", 256, 176, -1},        {"Q6_K", 256, 210, VP_DTYPE_Q6_K},
    {"Q8_K", 256, 292, -1},          {"IQ2_XXS", 256, 66, -1},        {"IQ2_XS", 256, 74, -1},
    {"IQ3_XXS", 256, 98, -1},        {"IQ1_S", 256, 50, -1},          {"IQ4_NL", 32, 18, -1},
    {"IQ3_S", 256, 110, -1},         {"IQ2_S", 256, 82, -1},          {"IQ4_XS", 256, 136, -1},
    {"I8", 1, 1, -1},                {"I16", 1, 2, -1},               {"I32", 1, 4, -1},
    {"I64", 1, 8, -1},               {"F64", 1, 8, -1},               {"IQ1_M", 256, 56, -1},
    {"BF16", 1, 2, VP_DTYPE_BF16}};
enum { VP_IMPL_GGUF_TYPE_COUNT = sizeof vp_impl_gguf_types / sizeof vp_impl_gguf_types[0] };
VP_API const char *vp_gguf_type_name(uint32_t type) {
    return type < VP_IMPL_GGUF_TYPE_COUNT ? vp_impl_gguf_types[type].name : NULL;
}
VP_API int vp_gguf_type_dtype(uint32_t type, vp_dtype *dtype) {
    if (type >= VP_IMPL_GGUF_TYPE_COUNT || vp_impl_gguf_types[type].dtype < 0) return 0;
    *dtype = (vp_dtype)vp_impl_gguf_types[type].dtype;
    return 1;
}

/* reads the entry of a tensor; its data come later */
static vp_result vp_impl_gguf_tensor(vp_impl_gguf_at *at, vp_gguf_tensor *tensor, uint64_t *offset) {
    size_t start = at->offset;
    uint64_t dimensions = 0, type = 0, length = 0, elements = 1, i;
    if (!vp_impl_gguf_string(at, &tensor->name) || !vp_impl_gguf_number(at, 4, &dimensions))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, vp_impl_gguf_unnamed,
                                  "a tensor's entry ends beyond the file");
    if (dimensions < 1 || dimensions > 4)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "a tensor must have 1 to 4 dimensions");
    tensor->dimensions = (int32_t)dimensions;
    for (i = 0; i < dimensions; i++) {
        if (!vp_impl_gguf_number(at, 8, &length))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its entry ends beyond the file");
        if (length < 1 || length > (uint64_t)INT64_MAX / 8 / elements)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its shape has 0 or too many elements");
        elements *= length;
        tensor->shape[dimensions - 1 - i] = (int64_t)length; /* the file lists the innermost first */
    }
    if (!vp_impl_gguf_number(at, 4, &type) || !vp_impl_gguf_number(at, 8, offset))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its entry ends beyond the file");
    tensor->type = (uint32_t)type;
    if (!vp_gguf_type_name(tensor->type)) return VP_OK;
    const vp_impl_gguf_type *kind = &vp_impl_gguf_types[type];
    if (tensor->shape[dimensions - 1] % kind->values)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name,
                                  "its rows are not a whole number of its type's blocks");
    tensor->bytes = elements / kind->values * kind->bytes;
    return VP_OK;
}

static int vp_impl_gguf_text_order(vp_gguf_text left, vp_gguf_text right) {
    size_t bytes = left.bytes < right.bytes ? left.bytes : right.bytes;
    int order = bytes ? memcmp(left.text, right.text, bytes) : 0;
    return order ? order : (left.bytes > right.bytes) - (left.bytes < right.bytes);
}
static int vp_impl_gguf_name_order(const void *left, const void *right) {
    return vp_impl_gguf_text_order(((const vp_impl_gguf_name *)left)->name, ((const vp_impl_gguf_name *)right)->name);
}
static vp_result vp_impl_gguf_sort(const vp_impl_gguf_at *at, vp_impl_gguf_name *names, uint64_t count) {
    if (count) qsort(names, (size_t)count, sizeof *names, vp_impl_gguf_name_order);
    for (uint64_t i = 1; i < count; i++)
        if (!vp_impl_gguf_text_order(names[i - 1].name, names[i].name))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, (size_t)(names[i].name.text - (const char *)at->gguf->map),
                                      names[i].name, "this name appears twice");
    return VP_OK;
}
static const vp_impl_gguf_name *vp_impl_gguf_search(const vp_impl_gguf_name *names, uint64_t count, const char *name) {
    vp_impl_gguf_name wanted;
    wanted.name.text = name;
    wanted.name.bytes = strlen(name);
    wanted.index = 0;
    return count ? (const vp_impl_gguf_name *)bsearch(&wanted, names, (size_t)count, sizeof *names,
                                                      vp_impl_gguf_name_order)
                 : NULL;
}

/* allocates a table; `least`: minimum size of an entry in the file */
static void *vp_impl_gguf_table(const vp_impl_gguf_at *at, uint64_t count, uint64_t least, size_t entry) {
    if (count > (at->gguf->bytes - at->offset) / least) return NULL;
    return VP_CALLOC((size_t)count + 1, entry);
}
static vp_result vp_impl_gguf_values(vp_impl_gguf_at *at, vp_gguf *gguf, uint64_t count) {
    if (count > (gguf->bytes - at->offset) / 13)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, 16, vp_impl_gguf_unnamed, "more keys than fit in the file");
    gguf->values = (vp_gguf_value *)vp_impl_gguf_table(at, count, 13, sizeof *gguf->values);
    gguf->value_names = (vp_impl_gguf_name *)vp_impl_gguf_table(at, count, 13, sizeof *gguf->value_names);
    if (!gguf->values || !gguf->value_names)
        return vp_impl_gguf_wrong(at, VP_ERR_MEMORY, 16, vp_impl_gguf_unnamed, "not enough memory for the keys");
    for (uint64_t i = 0; i < count; i++) {
        vp_result result = vp_impl_gguf_value(at, &gguf->values[i]);
        if (result != VP_OK) return result;
        gguf->value_names[i].name = gguf->values[i].name;
        gguf->value_names[i].index = i;
        gguf->value_count++;
    }
    return vp_impl_gguf_sort(at, gguf->value_names, count);
}
/* offsets: of each tensor, as stored in the file */
static vp_result vp_impl_gguf_place(const vp_impl_gguf_at *at, vp_gguf *gguf, const uint64_t *offsets) {
    vp_gguf_value value;
    double number = 32;
    uint64_t alignment, at_byte = 0, start, i, cursor = 0;
    if (vp_gguf_value_find(gguf, "general.alignment", &value) == VP_OK
        && (value.kind != VP_GGUF_U32 || !vp_gguf_next_number(&value, &cursor, &number)))
        number = 0;
    alignment = (uint64_t)number;
    if (alignment < 8 || alignment > 1u << 20 || (alignment & (alignment - 1)))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, (size_t)(value.data - gguf->map), value.name,
                                  "is not a power of two from 8 to 1048576");
    start = ((uint64_t)at->offset + alignment - 1) & ~(alignment - 1);
    for (i = 0; i < gguf->tensor_count; i++) {
        vp_gguf_tensor *tensor = &gguf->tensors[i];
        size_t entry = (size_t)(tensor->name.text - (const char *)gguf->map);
        if (i && !vp_gguf_type_name(tensor[-1].type))
            return vp_impl_gguf_wrong(at, VP_ERR_UNSUPPORTED, entry, tensor[-1].name,
                                      "its type is unknown to vlmprof, so the next tensor's offset is too");
        if (offsets[i] != at_byte)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, entry, tensor->name,
                                      "does not begin where the previous tensor ends");
        if (start > gguf->bytes || at_byte > gguf->bytes - start || tensor->bytes > gguf->bytes - start - at_byte)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, entry, tensor->name, "its data end beyond the file");
        tensor->data = gguf->map + start + at_byte;
        at_byte = (at_byte + tensor->bytes + alignment - 1) & ~(alignment - 1);
    }
    return VP_OK;
}
static vp_result vp_impl_gguf_tensors(vp_impl_gguf_at *at, vp_gguf *gguf, uint64_t count) {
    uint64_t i, *offsets;
    vp_result result = VP_OK;
    if (count > (gguf->bytes - at->offset) / 32)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, 8, vp_impl_gguf_unnamed,
                                  "more tensors than fit in the file");
    gguf->tensors = (vp_gguf_tensor *)vp_impl_gguf_table(at, count, 32, sizeof *gguf->tensors);
    gguf->tensor_names = (vp_impl_gguf_name *)vp_impl_gguf_table(at, count, 32, sizeof *gguf->tensor_names);
    offsets = (uint64_t *)vp_impl_gguf_table(at, count, 32, sizeof *offsets);
    if (!gguf->tensors || !gguf->tensor_names || !offsets)
        result = vp_impl_gguf_wrong(at, VP_ERR_MEMORY, 8, vp_impl_gguf_unnamed, "not enough memory for the tensors");
    for (i = 0; i < count && result == VP_OK; i++) {
        result = vp_impl_gguf_tensor(at, &gguf->tensors[i], &offsets[i]);
        gguf->tensor_names[i].name = gguf->tensors[i].name;
        gguf->tensor_names[i].index = i;
        gguf->tensor_count++;
    }
    if (result == VP_OK) result = vp_impl_gguf_sort(at, gguf->tensor_names, count);
    if (result == VP_OK) result = vp_impl_gguf_place(at, gguf, offsets);
    VP_FREE(offsets);
    return result;
}
static vp_result vp_impl_gguf_parse(vp_gguf *gguf, vp_error *error) {
    vp_impl_gguf_at at = {NULL, 0, NULL};
    uint64_t version = 0, tensors = 0, values = 0;
    vp_gguf_value split;
    at.gguf = gguf;
    at.error = error;
    const unsigned char *magic = vp_impl_gguf_take(&at, 4);
    if (!magic || memcmp(magic, "GGUF", 4))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 0, vp_impl_gguf_unnamed,
                                  "this is not a GGUF file: it does not begin with GGUF");
    if (!vp_impl_gguf_number(&at, 4, &version))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 4, vp_impl_gguf_unnamed, "the header ends beyond the file");
    if (version != 2 && version != 3)
        return vp_impl_gguf_wrong(&at, VP_ERR_UNSUPPORTED, 4, vp_impl_gguf_unnamed,
                                  version && !(version & 0xffff) ? "a big-endian file"
                                                                  : "vlmprof reads versions 2 and 3");
    if (!vp_impl_gguf_number(&at, 8, &tensors) || !vp_impl_gguf_number(&at, 8, &values))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 8, vp_impl_gguf_unnamed, "the header ends beyond the file");
    vp_result result = vp_impl_gguf_values(&at, gguf, values);
    if (result == VP_OK) result = vp_impl_gguf_tensors(&at, gguf, tensors);
    if (result == VP_OK && vp_gguf_value_find(gguf, "split.count", &split) == VP_OK) {
        uint64_t cursor = 0;
        double count = 0;
        if (vp_gguf_next_number(&split, &cursor, &count) && count > 1)
            result = vp_impl_gguf_wrong(&at, VP_ERR_UNSUPPORTED, (size_t)(split.data - gguf->map), split.name,
                                        "is above 1: join the parts first with llama.cpp's gguf-split --merge");
    }
    return result;
}

static vp_result vp_impl_gguf_begin(const unsigned char *map, size_t bytes, const char *where, int mapped,
                                    vp_gguf **gguf, vp_error *error) {
    vp_gguf *made = (vp_gguf *)VP_CALLOC(1, sizeof *made);
    size_t length = strlen(where) + 1;
    char *path = made ? (char *)VP_MALLOC(length) : NULL;
    vp_result result;
    if (!path) {
        VP_FREE(made);
        if (mapped) vp_file_unmap(map, bytes);
        return vp_fail(error, VP_ERR_MEMORY, -1, where, "not enough memory");
    }
    memcpy(path, where, length);
    made->path = path;
    made->map = map;
    made->bytes = bytes;
    made->mapped = mapped;
    result = vp_impl_gguf_parse(made, error);
    if (result == VP_OK) *gguf = made;
    else vp_gguf_close(made);
    return result;
}
VP_API vp_result vp_gguf_open(const char *path, vp_gguf **gguf, vp_error *error) {
    const unsigned char *map = NULL;
    size_t bytes = 0;
    if (!path || !gguf) return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_open", "a required pointer is NULL");
    vp_result result = vp_file_map(path, &map, &bytes, error);
    return result == VP_OK ? vp_impl_gguf_begin(map, bytes, path, 1, gguf, error) : result;
}
VP_API vp_result vp_gguf_read(const void *data, size_t bytes, const char *where, vp_gguf **gguf, vp_error *error) {
    if (!data || !where || !gguf) return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_read", "a required pointer is NULL");
    return vp_impl_gguf_begin((const unsigned char *)data, bytes, where, 0, gguf, error);
}
VP_API void vp_gguf_close(vp_gguf *gguf) {
    if (!gguf) return;
    if (gguf->mapped) vp_file_unmap(gguf->map, gguf->bytes);
    VP_FREE(gguf->values);
    VP_FREE(gguf->value_names);
    VP_FREE(gguf->tensors);
    VP_FREE(gguf->tensor_names);
    VP_FREE(gguf->path);
    VP_FREE(gguf);
}
VP_API vp_result vp_gguf_value_at(const vp_gguf *gguf, uint64_t index, vp_gguf_value *value) {
    if (!gguf || !value || index >= gguf->value_count) return VP_ERR_RANGE;
    *value = gguf->values[index];
    return VP_OK;
}
VP_API vp_result vp_gguf_tensor_at(const vp_gguf *gguf, uint64_t index, vp_gguf_tensor *tensor) {
    if (!gguf || !tensor || index >= gguf->tensor_count) return VP_ERR_RANGE;
    *tensor = gguf->tensors[index];
    return VP_OK;
}
VP_API vp_result vp_gguf_value_find(const vp_gguf *gguf, const char *name, vp_gguf_value *value) {
    if (!gguf || !name || !value) return VP_ERR_RANGE;
    const vp_impl_gguf_name *found = vp_impl_gguf_search(gguf->value_names, gguf->value_count, name);
    return found ? vp_gguf_value_at(gguf, found->index, value) : VP_ERR_NOT_FOUND;
}
VP_API vp_result vp_gguf_tensor_find(const vp_gguf *gguf, const char *name, vp_gguf_tensor *tensor) {
    if (!gguf || !name || !tensor) return VP_ERR_RANGE;
    const vp_impl_gguf_name *found = vp_impl_gguf_search(gguf->tensor_names, gguf->tensor_count, name);
    return found ? vp_gguf_tensor_at(gguf, found->index, tensor) : VP_ERR_NOT_FOUND;
}

VP_API int vp_gguf_next_text(const vp_gguf_value *value, uint64_t *offset, vp_gguf_text *text) {
    if (!value || !offset || !text || value->item != VP_GGUF_STRING || *offset >= value->bytes) return 0;
    text->bytes = (size_t)vp_impl_gguf_little(value->data + *offset, 8); /* checked by vp_impl_gguf_value */
    text->text = (const char *)value->data + *offset + 8;
    *offset += 8 + (uint64_t)text->bytes;
    return 1;
}
VP_API int vp_gguf_next_number(const vp_gguf_value *value, uint64_t *offset, double *number) {
    uint32_t low;
    float f32;
    int bytes;
    if (!value || !offset || !number || value->item == VP_GGUF_STRING || *offset >= value->bytes) return 0;
    bytes = vp_impl_gguf_kind_bytes(value->item);
    uint64_t bits = vp_impl_gguf_little(value->data + *offset, bytes);
    *offset += (uint64_t)bytes;
    switch (value->item) {
        case VP_GGUF_I8: *number = (double)(int8_t)(uint8_t)bits; break;
        case VP_GGUF_I16: *number = (double)(int16_t)(uint16_t)bits; break;
        case VP_GGUF_I32: *number = (double)(int32_t)(uint32_t)bits; break;
        case VP_GGUF_I64: *number = (double)(int64_t)bits; break;
        case VP_GGUF_F64: memcpy(number, &bits, 8); break;
        case VP_GGUF_F32:
            low = (uint32_t)bits;
            memcpy(&f32, &low, 4);
            *number = (double)f32;
            break;
        default: *number = (double)bits; break;
    }
    return 1;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */
VP_API int32_t vp_dtype_block(vp_dtype dtype) {
    return dtype <= VP_DTYPE_F16 ? 1 : dtype >= VP_DTYPE_Q4_K ? 256 : 32;
}
VP_API int32_t vp_dtype_block_bytes(vp_dtype dtype) {
    static const int32_t bytes[] = {4, 2, 2, 34, 22, 18, 144, 210};
    return bytes[dtype];
}
static float vp_impl_gguf_half(const unsigned char *data) { return vp_f16_to_f32((uint16_t)(data[0] | data[1] << 8)); }

static void vp_impl_gguf_q8_0(const unsigned char *block, float *values) {
    float scale = vp_impl_gguf_half(block);
    for (int i = 0; i < 32; i++) values[i] = scale * (float)(int8_t)block[2 + i];
}
/* Q4_0, and Q5_0 with a fifth bit of each value */
static void vp_impl_gguf_q45_0(const unsigned char *block, int five, float *values) {
    const unsigned char *low = block + (five ? 6 : 2);
    uint32_t high = five ? (uint32_t)vp_impl_gguf_little(block + 2, 4) : 0;
    float scale = vp_impl_gguf_half(block);
    int i, middle = five ? 16 : 8;
    for (i = 0; i < 16; i++) {
        values[i] = scale * (float)((int)((low[i] & 15u) | (high >> i & 1u) << 4) - middle);
        values[i + 16] = scale * (float)((int)((low[i] >> 4) | (high >> (i + 16) & 1u) << 4) - middle);
    }
}
/* 8 groups of 32, each with a scale and a minimum of 6 bits; the upper 2 bits of the last 4 groups are elsewhere */
static void vp_impl_gguf_q4_k(const unsigned char *block, float *values) {
    float scale = vp_impl_gguf_half(block), least = vp_impl_gguf_half(block + 2);
    const unsigned char *packed = block + 4, *nibbles = block + 16;
    for (int group = 0; group < 8; group++) {
        const unsigned char *at = packed + (group & 3);
        int first = group < 4 ? at[0] & 63 : (at[8] & 15) | (at[0] >> 6) << 4;
        int second = group < 4 ? at[4] & 63 : at[8] >> 4 | (at[4] >> 6) << 4;
        float group_scale = scale * (float)first, group_least = least * (float)second;
        for (int i = 0; i < 32; i++) {
            int value = nibbles[group / 2 * 32 + i] >> (group & 1) * 4 & 15;
            values[group * 32 + i] = group_scale * (float)value - group_least; /* both products are exact */
        }
    }
}
/* 16 groups of 16, each with a scale of 8 bits; lower 4 and upper 2 bits of the values are stored separately */
static void vp_impl_gguf_q6_k(const unsigned char *block, float *values) {
    float scale = vp_impl_gguf_half(block + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i / 32 % 4, lane = i % 32;
        int low = block[half * 64 + quarter % 2 * 32 + lane] >> quarter / 2 * 4 & 15;
        int high = block[128 + half * 32 + lane] >> quarter * 2 & 3;
        float group_scale = scale * (float)(int8_t)block[192 + i / 16];
        values[i] = group_scale * (float)((low | high << 4) - 32);
    }
}
VP_API void vp_dtype_to_f32(vp_dtype dtype, const unsigned char *data, size_t count, float *values) {
    size_t step = (size_t)vp_dtype_block(dtype), bytes = (size_t)vp_dtype_block_bytes(dtype), i;
    for (i = 0; i < count; i += step, data += bytes) {
        uint32_t bits;
        switch (dtype) {
            case VP_DTYPE_Q8_0: vp_impl_gguf_q8_0(data, values + i); break;
            case VP_DTYPE_Q5_0: vp_impl_gguf_q45_0(data, 1, values + i); break;
            case VP_DTYPE_Q4_0: vp_impl_gguf_q45_0(data, 0, values + i); break;
            case VP_DTYPE_Q4_K: vp_impl_gguf_q4_k(data, values + i); break;
            case VP_DTYPE_Q6_K: vp_impl_gguf_q6_k(data, values + i); break;
            case VP_DTYPE_F16: values[i] = vp_impl_gguf_half(data); break;
            case VP_DTYPE_BF16: values[i] = vp_bf16_to_f32((uint16_t)(data[0] | data[1] << 8)); break;
            default:
                bits = (uint32_t)vp_impl_gguf_little(data, 4);
                memcpy(&values[i], &bits, 4);
                break;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ texts */
/* The writer: a growing JSON text made from two files. The first error is kept. */
typedef struct vp_impl_gguf_text {
    const vp_gguf *model, *projector, *from; /* from: file of the next keys */
    const char *prefix;                      /* prefix of those keys */
    vp_json_writer writer;
    char *text;
    size_t bytes, capacity;
    vp_result result;
    vp_error *error;
} vp_impl_gguf_text;

static vp_result vp_impl_gguf_sink(void *user, const char *text, size_t bytes) {
    vp_impl_gguf_text *out = (vp_impl_gguf_text *)user;
    if (bytes >= out->capacity - out->bytes) {
        size_t capacity = (out->capacity + bytes) * 2;
        char *grown = (char *)VP_REALLOC(out->text, capacity);
        if (!grown) return VP_ERR_MEMORY;
        out->text = grown;
        out->capacity = capacity;
    }
    memcpy(out->text + out->bytes, text, bytes);
    out->bytes += bytes;
    return VP_OK;
}
static void vp_impl_gguf_fail(vp_impl_gguf_text *out, vp_result code, const char *key, const char *text) {
    if (out->result == VP_OK)
        out->result = vp_failf(out->error, code, -1, out->from->path, "%s%s: %s", out->prefix, key, text);
}

/* Finds a key with the current prefix. Returns 0 if it is absent; the wrong kind is an error. */
static int vp_impl_gguf_key(vp_impl_gguf_text *out, const char *key, int is_array, int is_text, vp_gguf_value *value) {
    char name[160];
    size_t prefix = strlen(out->prefix), length = strlen(key);
    if (out->result != VP_OK || prefix + length >= sizeof name) return 0;
    memcpy(name, out->prefix, prefix);
    memcpy(name + prefix, key, length + 1);
    if (vp_gguf_value_find(out->from, name, value) != VP_OK) return 0;
    if ((value->kind == VP_GGUF_ARRAY) == is_array && (value->item == VP_GGUF_STRING) == is_text) return 1;
    vp_impl_gguf_fail(out, VP_ERR_FORMAT, key, "its value has the wrong kind");
    return 0;
}
/* Reads a number; with absent = NaN the key is required. */
static double vp_impl_gguf_double(vp_impl_gguf_text *out, const char *key, double absent) {
    vp_gguf_value value;
    uint64_t offset = 0;
    double number = absent;
    if (vp_impl_gguf_key(out, key, 0, 0, &value)) vp_gguf_next_number(&value, &offset, &number);
    else if (!(absent == absent)) vp_impl_gguf_fail(out, VP_ERR_FORMAT, key, "this key is missing");
    if (out->result == VP_OK && !(number >= -1e300 && number <= 1e300)) /* nor NaN: JSON has neither */
        vp_impl_gguf_fail(out, VP_ERR_FORMAT, key, "is not a finite number");
    return out->result == VP_OK ? number : 0;
}
#define VP_IMPL_GGUF_REQUIRED ((double)NAN)
static int64_t vp_impl_gguf_int(vp_impl_gguf_text *out, const char *key, double absent) {
    double number = vp_impl_gguf_double(out, key, absent);
    if (number >= -2147483648.0 && number <= 2147483647.0 && number == (double)(int64_t)number) return (int64_t)number;
    vp_impl_gguf_fail(out, VP_ERR_FORMAT, key, "is not a 32-bit whole number");
    return 0;
}
/* Returns 1 if the text of a key is this one. An absent key is the empty text. */
static int vp_impl_gguf_is(vp_impl_gguf_text *out, const char *key, const char *text) {
    vp_gguf_value value;
    vp_gguf_text found = {"", 0};
    uint64_t offset = 0;
    if (vp_impl_gguf_key(out, key, 0, 1, &value)) vp_gguf_next_text(&value, &offset, &found);
    return found.bytes == strlen(text) && !memcmp(found.text, text, found.bytes);
}
/* fails because the text of a key is not a known one */
static void vp_impl_gguf_unknown(vp_impl_gguf_text *out, const char *key, const char *known) {
    vp_gguf_value value;
    vp_gguf_text found = {"", 0};
    uint64_t offset = 0;
    char text[400];
    size_t used, i;
    if (vp_impl_gguf_key(out, key, 0, 1, &value)) vp_gguf_next_text(&value, &offset, &found);
    snprintf(text, sizeof text, "\"%.*s\" is not supported here; %s", found.bytes > 60 ? 60 : (int)found.bytes,
             found.text, known);
    used = strlen(text);
    for (i = 0; i < used; i++)
        if ((unsigned char)text[i] < 32 || (unsigned char)text[i] > 126) text[i] = '?';
    vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, key, text);
}

static void vp_impl_gguf_put_int(vp_impl_gguf_text *out, const char *name, int64_t value) {
    vp_json_key(&out->writer, name);
    vp_json_int(&out->writer, value);
}
static void vp_impl_gguf_put_double(vp_impl_gguf_text *out, const char *name, double value) {
    vp_json_key(&out->writer, name);
    vp_json_double(&out->writer, value);
}
static void vp_impl_gguf_put_text(vp_impl_gguf_text *out, const char *name, const char *value) {
    vp_json_key(&out->writer, name);
    vp_json_string(&out->writer, value);
}
static void vp_impl_gguf_put_bool(vp_impl_gguf_text *out, const char *name, int value) {
    vp_json_key(&out->writer, name);
    vp_json_bool(&out->writer, value);
}
static void vp_impl_gguf_put_raw(vp_impl_gguf_text *out, const char *name, const char *json) {
    vp_json_key(&out->writer, name);
    vp_json_raw(&out->writer, json, strlen(json));
}

/* ---- supported models */
/* Language models; class_name and model_type: the class without a tower, as in a folder's config.json */
typedef struct vp_impl_gguf_language {
    const char *architecture, *prefix;
    const char *class_name, *model_type;       /* without a tower */
    const char *part_type;                     /* model_type inside a model with a tower */
} vp_impl_gguf_language;
enum {
    VP_IMPL_GGUF_LLAMA, VP_IMPL_GGUF_QWEN2, VP_IMPL_GGUF_QWEN3, VP_IMPL_GGUF_OLMOE, VP_IMPL_GGUF_GEMMA3,
    VP_IMPL_GGUF_QWEN2VL, VP_IMPL_GGUF_QWEN3VL, VP_IMPL_GGUF_QWEN3MOE, VP_IMPL_GGUF_LANGUAGES
};
static const vp_impl_gguf_language vp_impl_gguf_languages[VP_IMPL_GGUF_LANGUAGES] = {
    {"llama", "llama.", "LlamaForCausalLM", "llama", "llama"},
    {"qwen2", "qwen2.", "Qwen2ForCausalLM", "qwen2", "qwen2"},
    {"qwen3", "qwen3.", "Qwen3ForCausalLM", "qwen3", "qwen3"},
    {"olmoe", "olmoe.", "OlmoeForCausalLM", "olmoe", "olmoe"},
    {"gemma3", "gemma3.", "Gemma3ForCausalLM", "gemma3_text", "gemma3_text"},
    /* without images, M-RoPE equals RoPE */
    {"qwen2vl", "qwen2vl.", "Qwen2ForCausalLM", "qwen2", "qwen2_5_vl_text"},
    {"qwen3vl", "qwen3vl.", "Qwen3ForCausalLM", "qwen3", "qwen3_vl_text"},
    {"qwen3moe", "qwen3moe.", "Qwen3MoeForCausalLM", "qwen3_moe", "qwen3_moe"}};
/* Towers, by the kind of their connector */
typedef struct vp_impl_gguf_joint {
    const char *projector_type, *class_name, *model_type, *image_token;
    int language; /* the only language model for it; -1: llama, qwen2 or qwen3 */
} vp_impl_gguf_joint;
enum {
    VP_IMPL_GGUF_MLP, VP_IMPL_GGUF_IDEFICS3, VP_IMPL_GGUF_INTERNVL, VP_IMPL_GGUF_MERGER2, VP_IMPL_GGUF_MERGER3,
    VP_IMPL_GGUF_MEAN, VP_IMPL_GGUF_JOINTS
};
static const vp_impl_gguf_joint vp_impl_gguf_joints[VP_IMPL_GGUF_JOINTS] = {
    {"mlp", "LlavaForConditionalGeneration", "llava", "<image>", -1},
    {"idefics3", "Idefics3ForConditionalGeneration", "idefics3", "<image>", -1},
    {"internvl", "InternVLForConditionalGeneration", "internvl", "<IMG_CONTEXT>", -1},
    {"qwen2.5vl_merger", "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", "<|image_pad|>", VP_IMPL_GGUF_QWEN2VL},
    {"qwen3vl_merger", "Qwen3VLForConditionalGeneration", "qwen3_vl", "<|image_pad|>", VP_IMPL_GGUF_QWEN3VL},
    {"gemma3", "Gemma3ForConditionalGeneration", "gemma3", "<image_soft_token>", VP_IMPL_GGUF_GEMMA3}};

static int vp_impl_gguf_language_of(vp_impl_gguf_text *out) {
    char known[200] = "expected one of";
    out->from = out->model;
    out->prefix = "";
    for (int i = 0; i < VP_IMPL_GGUF_LANGUAGES; i++) {
        size_t used = strlen(known);
        if (vp_impl_gguf_is(out, "general.architecture", vp_impl_gguf_languages[i].architecture)) return i;
        snprintf(known + used, sizeof known - used, " %s", vp_impl_gguf_languages[i].architecture);
    }
    vp_impl_gguf_unknown(out, "general.architecture", known);
    return 0;
}
/* finds the connector of the mmproj file, and checks that it goes with the language model */
static int vp_impl_gguf_joint_of(vp_impl_gguf_text *out, int language) {
    char text[240] = "expected one of";
    const char *key = "projector_type";
    vp_gguf_value value;
    int i, joint = VP_IMPL_GGUF_JOINTS;
    out->from = out->projector;
    out->prefix = "";
    if (!vp_impl_gguf_is(out, "general.architecture", "clip"))
        vp_impl_gguf_unknown(out, "general.architecture", "expected clip, for a vision tower");
    out->prefix = "clip.";
    if (!vp_impl_gguf_key(out, key, 0, 1, &value)) key = "vision.projector_type"; /* in files that also have audio */
    for (i = 0; i < VP_IMPL_GGUF_JOINTS; i++) {
        size_t used = strlen(text);
        if (vp_impl_gguf_is(out, key, vp_impl_gguf_joints[i].projector_type)) joint = i;
        snprintf(text + used, sizeof text - used, " %s", vp_impl_gguf_joints[i].projector_type);
    }
    if (joint == VP_IMPL_GGUF_JOINTS) {
        vp_impl_gguf_unknown(out, key, text);
        return 0;
    }
    i = vp_impl_gguf_joints[joint].language;
    if (i >= 0 ? i == language : language <= VP_IMPL_GGUF_QWEN3) return joint;
    snprintf(text, sizeof text, "%s goes with a language model of architecture %s, not %s",
             vp_impl_gguf_joints[joint].projector_type,
             i >= 0 ? vp_impl_gguf_languages[i].architecture : "llama, qwen2 or qwen3",
             vp_impl_gguf_languages[language].architecture);
    vp_impl_gguf_fail(out, VP_ERR_MISMATCH, key, text);
    return 0;
}

/* ---- config.json */
/* number of embedding rows, which can exceed the file's list of tokens */
static int64_t vp_impl_gguf_rows(vp_impl_gguf_text *out) {
    vp_gguf_tensor table;
    if (vp_gguf_tensor_find(out->model, "token_embd.weight", &table) == VP_OK && table.dimensions == 2)
        return table.shape[0];
    vp_impl_gguf_fail(out, VP_ERR_MISMATCH, "token_embd.weight", "the file has no such matrix");
    return 0;
}
static void vp_impl_gguf_put_rope_type(vp_impl_gguf_text *out) {
    double factor = vp_impl_gguf_double(out, "rope.scaling.factor", 1.0);
    vp_impl_gguf_put_double(out, "rope_theta", vp_impl_gguf_double(out, "rope.freq_base", 10000.0));
    if (vp_impl_gguf_is(out, "rope.scaling.type", "linear")) {
        vp_impl_gguf_put_text(out, "rope_type", "linear");
        vp_impl_gguf_put_double(out, "factor", factor);
    } else if (!vp_impl_gguf_is(out, "rope.scaling.type", "") && !vp_impl_gguf_is(out, "rope.scaling.type", "none"))
        vp_impl_gguf_unknown(out, "rope.scaling.type", "expected none or linear");
}
/* Llama 3.1's files contain the divisor of each pair's frequency, not the rule. The rule has published numbers, and the
 * factor is the slowest pair's divisor. */
static void vp_impl_gguf_put_factors(vp_impl_gguf_text *out, const vp_gguf_tensor *factors, int64_t head_dim) {
    const double turn = 6.283185307179586, low = 1.0, high = 4.0, positions = 8192.0;
    double theta = vp_impl_gguf_double(out, "rope.freq_base", 10000.0), factor = 1.0;
    int64_t pairs = head_dim / 2, i;
    int known = factors->type == 0 && factors->dimensions == 1 && factors->shape[0] == pairs && theta > 1;
    float value = 1.0f;
    if (known) vp_dtype_to_f32(VP_DTYPE_F32, factors->data + (pairs - 1) * 4, 1, &value);
    factor = (double)value;
    for (i = 0; known && i < pairs; i++) {
        double waves = positions * pow(theta, -2.0 * (double)i / (double)head_dim) / turn; /* over all positions */
        double smooth = (waves - low) / (high - low), wanted = 1.0;
        vp_dtype_to_f32(VP_DTYPE_F32, factors->data + i * 4, 1, &value);
        if (waves < low) wanted = factor;
        else if (waves <= high) wanted = 1.0 / ((1.0 - smooth) / factor + smooth);
        known = fabs((double)value - wanted) <= 1e-4 * fabs(wanted);
    }
    if (!known || !(factor >= 1.0))
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "rope_freqs.weight",
                          "these are not the factors of Llama 3.1's rule");
    vp_impl_gguf_put_double(out, "rope_theta", theta);
    vp_impl_gguf_put_text(out, "rope_type", "llama3");
    vp_impl_gguf_put_double(out, "factor", factor);
    vp_impl_gguf_put_double(out, "low_freq_factor", low);
    vp_impl_gguf_put_double(out, "high_freq_factor", high);
    vp_impl_gguf_put_double(out, "original_max_position_embeddings", positions);
}
/* pairs that rotate by time, row and column; the fourth count must be 0 */
static void vp_impl_gguf_put_sections(vp_impl_gguf_text *out) {
    vp_gguf_value value;
    uint64_t offset = 0;
    double number;
    if (!vp_impl_gguf_key(out, "rope.dimension_sections", 1, 0, &value) || value.count < 3 || value.count > 4) {
        vp_impl_gguf_fail(out, VP_ERR_FORMAT, "rope.dimension_sections", "expected an array of 3 or 4 numbers");
        return;
    }
    vp_json_key(&out->writer, "mrope_section");
    vp_json_begin_array(&out->writer);
    for (int i = 0; vp_gguf_next_number(&value, &offset, &number); i++) {
        if (!(number >= 0 && number <= 65536) || (i == 3 && number != 0))
            vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "rope.dimension_sections", "expected 3 counts of pairs, then 0");
        else if (i < 3) vp_json_int(&out->writer, (int64_t)number);
    }
    vp_json_end_array(&out->writer);
}
static void vp_impl_gguf_put_rope(vp_impl_gguf_text *out, int language, int64_t head_dim) {
    vp_gguf_tensor factors;
    if (vp_impl_gguf_int(out, "rope.dimension_count", (double)head_dim) != head_dim)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "rope.dimension_count",
                          "only rotation of whole heads is implemented");
    vp_json_key(&out->writer, "rope_parameters");
    vp_json_begin_object(&out->writer);
    if (vp_gguf_tensor_find(out->model, "rope_freqs.weight", &factors) == VP_OK) {
        if (language != VP_IMPL_GGUF_LLAMA)
            vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "rope_freqs.weight", "only supported for llama");
        else if (out->result == VP_OK) vp_impl_gguf_put_factors(out, &factors, head_dim);
    } else if (language == VP_IMPL_GGUF_GEMMA3) {
        vp_json_key(&out->writer, "full_attention");
        vp_json_begin_object(&out->writer);
        vp_impl_gguf_put_rope_type(out);
        vp_json_end_object(&out->writer);
        vp_json_key(&out->writer, "sliding_attention");
        vp_json_begin_object(&out->writer);
        vp_impl_gguf_put_double(out, "rope_theta", vp_impl_gguf_double(out, "rope.freq_base_swa", 10000.0));
        vp_json_end_object(&out->writer);
    } else vp_impl_gguf_put_rope_type(out);
    if (out->projector && (language == VP_IMPL_GGUF_QWEN2VL || language == VP_IMPL_GGUF_QWEN3VL))
        vp_impl_gguf_put_sections(out);
    vp_json_end_object(&out->writer);
}
/* two kinds of blocks; files of the 27B model have no key for the scale of q */
static void vp_impl_gguf_put_gemma3(vp_impl_gguf_text *out, int64_t width, int64_t heads, int64_t head_dim) {
    int64_t window = vp_impl_gguf_int(out, "attention.sliding_window", 0), blocks;
    blocks = vp_impl_gguf_int(out, "block_count", VP_IMPL_GGUF_REQUIRED);
    if (window) vp_impl_gguf_put_int(out, "sliding_window", window);
    vp_impl_gguf_put_int(out, "sliding_window_pattern",
                         window ? vp_impl_gguf_int(out, "attention.sliding_window_pattern", 6) : 1);
    vp_impl_gguf_put_int(out, "query_pre_attn_scalar", blocks == 62 && heads > 0 ? width / heads : head_dim);
    if (vp_impl_gguf_double(out, "final_logit_softcapping", 0.0) != 0.0)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "final_logit_softcapping", "is not implemented");
}
static void vp_impl_gguf_put_experts(vp_impl_gguf_text *out, int language) {
    if (language == VP_IMPL_GGUF_QWEN3MOE) {
        vp_impl_gguf_put_int(out, "moe_intermediate_size",
                             vp_impl_gguf_int(out, "expert_feed_forward_length", VP_IMPL_GGUF_REQUIRED));
        vp_impl_gguf_put_bool(out, "norm_topk_prob", 1); /* in llama.cpp, weights of this architecture always sum to
                                                          * 1 */
    }
    if (language == VP_IMPL_GGUF_OLMOE || language == VP_IMPL_GGUF_QWEN3MOE) {
        vp_impl_gguf_put_int(out, "num_experts", vp_impl_gguf_int(out, "expert_count", VP_IMPL_GGUF_REQUIRED));
        vp_impl_gguf_put_int(out, "num_experts_per_tok",
                             vp_impl_gguf_int(out, "expert_used_count", VP_IMPL_GGUF_REQUIRED));
        if (vp_impl_gguf_double(out, "attention.clamp_kqv", 0.0) != 0.0)
            vp_impl_gguf_put_double(out, "clip_qkv", vp_impl_gguf_double(out, "attention.clamp_kqv", 0.0));
    } else if (vp_impl_gguf_int(out, "expert_count", 0) != 0)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "expert_count", "experts of this architecture are not implemented");
}
/* the keys of a language model, and those of its class that the file lacks */
static void vp_impl_gguf_put_language(vp_impl_gguf_text *out, int language) {
    const vp_impl_gguf_language *kind = &vp_impl_gguf_languages[language];
    vp_gguf_tensor head;
    out->from = out->model;
    out->prefix = "tokenizer.ggml.";
    if (vp_impl_gguf_double(out, "eos_token_id", -1) >= 0)
        vp_impl_gguf_put_int(out, "eos_token_id", vp_impl_gguf_int(out, "eos_token_id", VP_IMPL_GGUF_REQUIRED));
    out->prefix = kind->prefix;
    int64_t width = vp_impl_gguf_int(out, "embedding_length", VP_IMPL_GGUF_REQUIRED);
    int64_t heads = vp_impl_gguf_int(out, "attention.head_count", VP_IMPL_GGUF_REQUIRED);
    if (heads < 1) vp_impl_gguf_fail(out, VP_ERR_FORMAT, "attention.head_count", "is not positive");
    int64_t head_dim = vp_impl_gguf_int(out, "attention.key_length", heads > 0 ? (double)(width / heads) : 0.0);
    if (vp_impl_gguf_int(out, "attention.value_length", (double)head_dim) != head_dim)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "attention.value_length", "differs from attention.key_length");
    if (language == VP_IMPL_GGUF_GEMMA3) vp_impl_gguf_put_gemma3(out, width, heads, head_dim);
    else if (vp_impl_gguf_int(out, "attention.sliding_window", 0) != 0)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "attention.sliding_window", "sliding windows are not implemented");
    vp_impl_gguf_put_text(out, "model_type", out->projector ? kind->part_type : kind->model_type);
    vp_impl_gguf_put_int(out, "hidden_size", width);
    vp_impl_gguf_put_int(out, "num_attention_heads", heads);
    vp_impl_gguf_put_int(out, "num_key_value_heads", vp_impl_gguf_int(out, "attention.head_count_kv", (double)heads));
    vp_impl_gguf_put_int(out, "head_dim", head_dim);
    vp_impl_gguf_put_int(out, "num_hidden_layers", vp_impl_gguf_int(out, "block_count", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "intermediate_size",
                         vp_impl_gguf_int(out, "feed_forward_length", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "max_position_embeddings",
                         vp_impl_gguf_int(out, "context_length", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_double(out, "rms_norm_eps",
                            vp_impl_gguf_double(out, "attention.layer_norm_rms_epsilon", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "vocab_size", vp_impl_gguf_rows(out));
    vp_impl_gguf_put_bool(out, "tie_word_embeddings",
                          vp_gguf_tensor_find(out->model, "output.weight", &head) != VP_OK);
    vp_impl_gguf_put_experts(out, language);
    vp_impl_gguf_put_rope(out, language, head_dim);
}

/* the side, in patches, of the squares that the connector merges */
static int64_t vp_impl_gguf_scale(vp_impl_gguf_text *out, double absent) {
    int64_t scale = vp_impl_gguf_int(out, "projector.scale_factor", absent);
    if (scale >= 1 && scale <= 64) return scale;
    vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "projector.scale_factor", "is not 1 to 64");
    return 1;
}
/* Qwen2.5-VL: one block in every n_wa_pattern attends to the whole image */
static void vp_impl_gguf_put_windows(vp_impl_gguf_text *out, int64_t blocks) {
    int64_t pattern = vp_impl_gguf_int(out, "n_wa_pattern", VP_IMPL_GGUF_REQUIRED), block;
    vp_impl_gguf_put_int(out, "window_size", vp_impl_gguf_int(out, "window_size", 112));
    if (pattern < 1) vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "n_wa_pattern", "is not positive");
    vp_json_key(&out->writer, "fullatt_block_indexes");
    vp_json_begin_array(&out->writer);
    for (block = pattern - 1; pattern >= 1 && block < blocks && block < 64; block += pattern)
        vp_json_int(&out->writer, block);
    vp_json_end_array(&out->writer);
}
/* Qwen3-VL: positions of a square, and the blocks whose outputs go to the language model's first blocks */
static void vp_impl_gguf_put_deepstack(vp_impl_gguf_text *out) {
    vp_gguf_tensor table;
    vp_gguf_value value;
    uint64_t offset = 0;
    double number;
    if (vp_gguf_tensor_find(out->projector, "v.position_embd.weight", &table) == VP_OK && table.dimensions == 2)
        vp_impl_gguf_put_int(out, "num_position_embeddings", table.shape[0]);
    else vp_impl_gguf_fail(out, VP_ERR_MISMATCH, "v.position_embd.weight", "the file has no such matrix");
    vp_json_key(&out->writer, "deepstack_visual_indexes");
    vp_json_begin_array(&out->writer);
    if (vp_impl_gguf_key(out, "is_deepstack_layers", 1, 0, &value))
        for (int64_t block = 0; vp_gguf_next_number(&value, &offset, &number); block++)
            if (number != 0) vp_json_int(&out->writer, block);
    vp_json_end_array(&out->writer);
}
static void vp_impl_gguf_put_qwen_tower(vp_impl_gguf_text *out, int joint, int64_t text_width) {
    int64_t blocks = vp_impl_gguf_int(out, "block_count", VP_IMPL_GGUF_REQUIRED);
    vp_impl_gguf_put_int(out, "depth", blocks);
    vp_impl_gguf_put_int(out, "num_heads", vp_impl_gguf_int(out, "attention.head_count", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "out_hidden_size", text_width);
    vp_impl_gguf_put_int(out, "spatial_merge_size", vp_impl_gguf_int(out, "spatial_merge_size", 2));
    if ((float)vp_impl_gguf_double(out, "attention.layer_norm_epsilon", VP_IMPL_GGUF_REQUIRED) != 1e-6f)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "attention.layer_norm_epsilon", "is not 1e-6, this tower's value");
    if (joint == VP_IMPL_GGUF_MERGER2) vp_impl_gguf_put_windows(out, blocks);
    else vp_impl_gguf_put_deepstack(out);
}
/* the activation's name in the tower's class; the file does not distinguish GELU's two formulas */
static const char *vp_impl_gguf_act(vp_impl_gguf_text *out, int joint) {
    out->prefix = "clip.";
    if (vp_impl_gguf_int(out, "use_silu", 0)) return "silu";
    if (!vp_impl_gguf_int(out, "use_gelu", 0)) return "quick_gelu";
    return joint == VP_IMPL_GGUF_MLP || joint == VP_IMPL_GGUF_INTERNVL ? "gelu" : "gelu_pytorch_tanh";
}
static void vp_impl_gguf_put_tower(vp_impl_gguf_text *out, int joint, int64_t text_width) {
    vp_gguf_tensor bias;
    out->from = out->projector;
    vp_json_key(&out->writer, "vision_config");
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_text(out, "hidden_act", vp_impl_gguf_act(out, joint));
    out->prefix = "clip.vision.";
    vp_impl_gguf_put_int(out, "hidden_size", vp_impl_gguf_int(out, "embedding_length", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "intermediate_size",
                         vp_impl_gguf_int(out, "feed_forward_length", VP_IMPL_GGUF_REQUIRED));
    vp_impl_gguf_put_int(out, "patch_size", vp_impl_gguf_int(out, "patch_size", VP_IMPL_GGUF_REQUIRED));
    if (joint == VP_IMPL_GGUF_MERGER2 || joint == VP_IMPL_GGUF_MERGER3)
        vp_impl_gguf_put_qwen_tower(out, joint, text_width);
    else {
        vp_impl_gguf_put_int(out, "num_hidden_layers", vp_impl_gguf_int(out, "block_count", VP_IMPL_GGUF_REQUIRED));
        vp_impl_gguf_put_int(out, "num_attention_heads",
                             vp_impl_gguf_int(out, "attention.head_count", VP_IMPL_GGUF_REQUIRED));
        vp_impl_gguf_put_int(out, "image_size", vp_impl_gguf_int(out, "image_size", VP_IMPL_GGUF_REQUIRED));
        vp_impl_gguf_put_double(out, "layer_norm_eps",
                                vp_impl_gguf_double(out, "attention.layer_norm_epsilon", VP_IMPL_GGUF_REQUIRED));
        if (joint == VP_IMPL_GGUF_INTERNVL)
            vp_impl_gguf_put_bool(out, "attention_bias",
                                  vp_gguf_tensor_find(out->projector, "v.blk.0.attn_q.bias", &bias) == VP_OK);
    }
    vp_json_end_object(&out->writer);
}
/* the keys of the model as a whole */
static void vp_impl_gguf_put_joint(vp_impl_gguf_text *out, int joint) {
    out->from = out->projector;
    out->prefix = "clip.vision.";
    if (joint == VP_IMPL_GGUF_MLP) /* the last block does not run: clip_graph_llava */
        vp_impl_gguf_put_int(out, "vision_feature_layer", -2);
    else if (joint == VP_IMPL_GGUF_IDEFICS3) vp_impl_gguf_put_int(out, "scale_factor", vp_impl_gguf_scale(out, 2));
    else if (joint == VP_IMPL_GGUF_INTERNVL) {
        vp_impl_gguf_put_int(out, "vision_feature_layer", -1);
        vp_impl_gguf_put_double(out, "downsample_ratio", 1.0 / (double)vp_impl_gguf_scale(out, 2));
    } else if (joint == VP_IMPL_GGUF_MEAN) {
        int64_t patch = vp_impl_gguf_int(out, "patch_size", VP_IMPL_GGUF_REQUIRED), side;
        side = vp_impl_gguf_int(out, "image_size", VP_IMPL_GGUF_REQUIRED);
        side = patch > 0 && side > 0 && side <= 65536 ? side / patch / vp_impl_gguf_scale(out, 4) : 0;
        vp_impl_gguf_put_int(out, "mm_tokens_per_image", side * side);
    }
}
static void vp_impl_gguf_config(vp_impl_gguf_text *out) {
    int language = vp_impl_gguf_language_of(out), joint = out->projector ? vp_impl_gguf_joint_of(out, language) : 0;
    const char *class_name = out->projector ? vp_impl_gguf_joints[joint].class_name
                                            : vp_impl_gguf_languages[language].class_name;
    int64_t width;
    vp_json_begin_object(&out->writer);
    vp_json_key(&out->writer, "architectures");
    vp_json_begin_array(&out->writer);
    vp_json_string(&out->writer, class_name);
    vp_json_end_array(&out->writer);
    if (!out->projector) vp_impl_gguf_put_language(out, language);
    else {
        vp_gguf_tensor head;
        vp_impl_gguf_put_text(out, "model_type", vp_impl_gguf_joints[joint].model_type);
        vp_impl_gguf_put_bool(out, "tie_word_embeddings",
                              vp_gguf_tensor_find(out->model, "output.weight", &head) != VP_OK);
        vp_json_key(&out->writer, "text_config");
        vp_json_begin_object(&out->writer);
        vp_impl_gguf_put_language(out, language);
        width = vp_impl_gguf_int(out, "embedding_length", VP_IMPL_GGUF_REQUIRED);
        vp_json_end_object(&out->writer);
        vp_impl_gguf_put_tower(out, joint, width);
        vp_impl_gguf_put_joint(out, joint);
    }
    vp_json_end_object(&out->writer);
}

/* ---- preprocessor_config.json */
static void vp_impl_gguf_put_rgb(vp_impl_gguf_text *out, const char *name, const char *key) {
    vp_gguf_value value;
    uint64_t offset = 0;
    double number;
    if (!vp_impl_gguf_key(out, key, 1, 0, &value) || value.count != 3) {
        vp_impl_gguf_fail(out, VP_ERR_FORMAT, key, "expected an array of 3 numbers");
        return;
    }
    vp_json_key(&out->writer, name);
    vp_json_begin_array(&out->writer);
    for (int i = 0; i < 3 && vp_gguf_next_number(&value, &offset, &number); i++) vp_json_double(&out->writer, number);
    vp_json_end_array(&out->writer);
}
static void vp_impl_gguf_put_edge(vp_impl_gguf_text *out, const char *name, const char *which, int64_t edge_px) {
    vp_json_key(&out->writer, name);
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_int(out, which, edge_px);
    vp_json_end_object(&out->writer);
}
static void vp_impl_gguf_put_square(vp_impl_gguf_text *out, const char *name, int64_t side_px) {
    vp_json_key(&out->writer, name);
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_int(out, "height", side_px);
    vp_impl_gguf_put_int(out, "width", side_px);
    vp_json_end_object(&out->writer);
}
/* Qwen: without limits in the file, llama.cpp's apply: 8 to 4096 tokens */
static void vp_impl_gguf_put_limits(vp_impl_gguf_text *out) {
    int64_t merge = vp_impl_gguf_int(out, "spatial_merge_size", 2), token;
    int64_t patch = vp_impl_gguf_int(out, "patch_size", VP_IMPL_GGUF_REQUIRED);
    if (merge < 1 || merge > 16 || patch < 1 || patch > 1024)
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "patch_size", "patch_size or spatial_merge_size is out of range");
    token = out->result == VP_OK ? merge * merge * patch * patch : 1;
    vp_impl_gguf_put_int(out, "patch_size", patch);
    vp_impl_gguf_put_int(out, "temporal_patch_size", 2);
    vp_impl_gguf_put_int(out, "merge_size", merge);
    vp_impl_gguf_put_int(out, "min_pixels", vp_impl_gguf_int(out, "image_min_pixels", 8 * (double)token));
    vp_impl_gguf_put_int(out, "max_pixels", vp_impl_gguf_int(out, "image_max_pixels", 4096 * (double)token));
}
static void vp_impl_gguf_preprocessor(vp_impl_gguf_text *out) {
    int joint = vp_impl_gguf_joint_of(out, vp_impl_gguf_language_of(out));
    int64_t side = 0;
    out->prefix = "clip.vision.";
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_rgb(out, "image_mean", "image_mean");
    vp_impl_gguf_put_rgb(out, "image_std", "image_std");
    if (joint == VP_IMPL_GGUF_MERGER2 || joint == VP_IMPL_GGUF_MERGER3) vp_impl_gguf_put_limits(out);
    else side = vp_impl_gguf_int(out, "image_size", VP_IMPL_GGUF_REQUIRED);
    if (joint == VP_IMPL_GGUF_MLP) {
        vp_impl_gguf_put_edge(out, "size", "shortest_edge", side);
        vp_impl_gguf_put_square(out, "crop_size", side);
    } else if (joint == VP_IMPL_GGUF_IDEFICS3) {
        vp_impl_gguf_put_edge(out, "size", "longest_edge",
                              vp_impl_gguf_int(out, "preproc_image_size", (double)side));
        vp_impl_gguf_put_edge(out, "max_image_size", "longest_edge", side);
    } else if (joint == VP_IMPL_GGUF_INTERNVL || joint == VP_IMPL_GGUF_MEAN)
        vp_impl_gguf_put_square(out, "size", side);
    if (joint == VP_IMPL_GGUF_INTERNVL) { /* llama.cpp's defaults */
        vp_impl_gguf_put_int(out, "min_patches", vp_impl_gguf_int(out, "preproc_min_tiles", 1));
        vp_impl_gguf_put_int(out, "max_patches", vp_impl_gguf_int(out, "preproc_max_tiles", 12));
    }
    vp_json_end_object(&out->writer);
}

/* ---- tokenizer.json */
enum { VP_IMPL_GGUF_NORMAL = 1, VP_IMPL_GGUF_UNKNOWN, VP_IMPL_GGUF_CONTROL, VP_IMPL_GGUF_USER, VP_IMPL_GGUF_UNUSED,
       VP_IMPL_GGUF_BYTE, VP_IMPL_GGUF_TOKEN_BYTES_MAX = 1024, VP_IMPL_GGUF_TOKENS_MAX = 1 << 22 };
typedef struct vp_impl_gguf_token { vp_gguf_text text; float score; int32_t type, id; } vp_impl_gguf_token;
typedef struct vp_impl_gguf_words {
    vp_impl_gguf_token *tokens, *sorted; /* tokens by id; normal tokens sorted by text */
    int32_t count, sorted_count;
} vp_impl_gguf_words;

#define VP_IMPL_GGUF_BAR "\xE2\x96\x81" /* SentencePiece's space */
#define VP_IMPL_GGUF_BYTES "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":"
/* splits words with up to this many digits */
#define VP_IMPL_GGUF_SPLIT(digits) \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":" \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}" digits \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}," \
    "\"behavior\":\"Isolated\",\"invert\":false}," VP_IMPL_GGUF_BYTES "false}]}"
/* llama: Llama 3's, which keeps words that are tokens, and prepends bos unless the file disables it */
static const struct {
    const char *name, *normalizer, *pre_tokenizer;
    int llama;
} vp_impl_gguf_splits[] = {
    {"gpt-2", "null", VP_IMPL_GGUF_BYTES "true}", 0},
    {"olmo", "{\"type\":\"NFC\"}", VP_IMPL_GGUF_BYTES "true}", 0},
    {"smollm", "null",
     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true}," VP_IMPL_GGUF_BYTES
     "true}]}", 0},
    {"qwen2", "{\"type\":\"NFC\"}", VP_IMPL_GGUF_SPLIT(""), 0},
    {"llama-bpe", "null", VP_IMPL_GGUF_SPLIT("{1,3}"), 1}};
enum { VP_IMPL_GGUF_SPLITS = sizeof vp_impl_gguf_splits / sizeof vp_impl_gguf_splits[0] };
static void vp_impl_gguf_unknown_split(vp_impl_gguf_text *out) {
    char known[300] = "expected one of";
    for (int i = 0; i < VP_IMPL_GGUF_SPLITS; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, " %s", vp_impl_gguf_splits[i].name);
    }
    vp_impl_gguf_unknown(out, "pre", known);
}

static int vp_impl_gguf_token_order(const void *left, const void *right) {
    return vp_impl_gguf_text_order(((const vp_impl_gguf_token *)left)->text,
                                   ((const vp_impl_gguf_token *)right)->text);
}
/* llama.cpp needs no image token, and the vocabularies of LLaVA and Gemma 3 often lack one. The padding or unknown
 * token then replaces it; its embedding is never used. */
static void vp_impl_gguf_name_image(vp_impl_gguf_text *out, vp_impl_gguf_words *words, const char *image) {
    size_t bytes = strlen(image);
    for (int32_t id = 0; id < words->count; id++)
        if (words->tokens[id].text.bytes == bytes && !memcmp(words->tokens[id].text.text, image, bytes)) return;
    int64_t stand_in = vp_impl_gguf_int(out, "padding_token_id", -1);
    if (stand_in < 0) stand_in = vp_impl_gguf_int(out, "unknown_token_id", -1);
    if (stand_in < 0 || stand_in >= words->count) return;
    words->tokens[stand_in].text.text = image;
    words->tokens[stand_in].text.bytes = bytes;
    words->tokens[stand_in].type = VP_IMPL_GGUF_CONTROL;
}
/* image: the text of the required image token; NULL: none is required */
static void vp_impl_gguf_read_words(vp_impl_gguf_text *out, vp_impl_gguf_words *words, const char *image) {
    vp_gguf_value texts, types, scores;
    uint64_t text_at = 0, type_at = 0, score_at = 0;
    if (!vp_impl_gguf_key(out, "tokens", 1, 1, &texts) || !vp_impl_gguf_key(out, "token_type", 1, 0, &types)
        || types.count != texts.count || texts.count < 1 || texts.count > VP_IMPL_GGUF_TOKENS_MAX) {
        vp_impl_gguf_fail(out, VP_ERR_FORMAT, "tokens", "expected texts, at most 4194304, with a token_type for each");
        return;
    }
    int scored = vp_impl_gguf_key(out, "scores", 1, 0, &scores) && scores.count == texts.count;
    words->tokens = (vp_impl_gguf_token *)VP_CALLOC((size_t)texts.count, 2 * sizeof *words->tokens);
    if (!words->tokens) {
        vp_impl_gguf_fail(out, VP_ERR_MEMORY, "tokens", "not enough memory");
        return;
    }
    words->count = (int32_t)texts.count;
    words->sorted = words->tokens + words->count;
    for (int32_t id = 0; id < words->count; id++) {
        vp_impl_gguf_token *token = &words->tokens[id];
        double number = 0;
        vp_gguf_next_text(&texts, &text_at, &token->text);
        vp_gguf_next_number(&types, &type_at, &number);
        token->type = number >= 1 && number <= 6 ? (int32_t)number : 0;
        token->id = id;
        if (scored && vp_gguf_next_number(&scores, &score_at, &number)) {
            if (!(number >= -1e30 && number <= 1e30)) { /* NaN cannot be ordered */
                vp_impl_gguf_fail(out, VP_ERR_FORMAT, "scores", "is not a finite number");
                return;
            }
            token->score = (float)number;
        }
        if (!token->type || !token->text.bytes || token->text.bytes > VP_IMPL_GGUF_TOKEN_BYTES_MAX
            || memchr(token->text.text, 0, token->text.bytes)) {
            vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "tokens",
                              "a token is empty, over 1024 bytes, contains a NUL or has an unknown type");
            return;
        }
    }
    if (image) vp_impl_gguf_name_image(out, words, image);
    for (int32_t id = 0; id < words->count; id++)
        if (words->tokens[id].type == VP_IMPL_GGUF_NORMAL) words->sorted[words->sorted_count++] = words->tokens[id];
    if (words->sorted_count)
        qsort(words->sorted, (size_t)words->sorted_count, sizeof *words->sorted, vp_impl_gguf_token_order);
}

/* Two tokens that merge into another. SentencePiece first merges the pair whose result has the best score; transformers
 * prefers the longest left part. */
typedef struct vp_impl_gguf_merge {
    vp_gguf_text left, right;
    float score;
    int32_t left_id, right_id;
} vp_impl_gguf_merge;
static int32_t vp_impl_gguf_characters(vp_gguf_text text) {
    int32_t count = 0;
    for (size_t i = 0; i < text.bytes; i++) count += ((unsigned char)text.text[i] & 0xC0) != 0x80;
    return count;
}
static int vp_impl_gguf_merge_order(const void *left, const void *right) {
    const vp_impl_gguf_merge *one = (const vp_impl_gguf_merge *)left, *other = (const vp_impl_gguf_merge *)right;
    int32_t lengths = vp_impl_gguf_characters(other->left) - vp_impl_gguf_characters(one->left);
    if (one->score != other->score) return one->score < other->score ? 1 : -1;
    if (!lengths) lengths = vp_impl_gguf_characters(other->right) - vp_impl_gguf_characters(one->right);
    if (lengths) return lengths;
    if (one->left_id != other->left_id) return one->left_id < other->left_id ? -1 : 1;
    return (one->right_id > other->right_id) - (one->right_id < other->right_id);
}
static const vp_impl_gguf_token *vp_impl_gguf_word(const vp_impl_gguf_words *words, const char *text, size_t bytes) {
    vp_impl_gguf_token wanted = {0};
    wanted.text.text = text;
    wanted.text.bytes = bytes;
    return words->sorted_count
               ? (const vp_impl_gguf_token *)bsearch(&wanted, words->sorted, (size_t)words->sorted_count, sizeof wanted,
                                                     vp_impl_gguf_token_order)
               : NULL;
}
/* fills merges; NULL only counts */
static size_t vp_impl_gguf_find_merges(const vp_impl_gguf_words *words, vp_impl_gguf_merge *merges) {
    size_t count = 0, cut;
    for (int32_t id = 0; id < words->count; id++) {
        const vp_impl_gguf_token *token = &words->tokens[id];
        if (token->type != VP_IMPL_GGUF_NORMAL) continue;
        for (cut = 1; cut < token->text.bytes; cut++) {
            const vp_impl_gguf_token *left, *right;
            if (((unsigned char)token->text.text[cut] & 0xC0) == 0x80) continue;
            left = vp_impl_gguf_word(words, token->text.text, cut);
            right = left ? vp_impl_gguf_word(words, token->text.text + cut, token->text.bytes - cut) : NULL;
            if (!right) continue;
            if (merges) {
                merges[count].left = left->text;
                merges[count].right = right->text;
                merges[count].score = token->score;
                merges[count].left_id = left->id;
                merges[count].right_id = right->id;
            }
            count++;
        }
    }
    return count;
}
static void vp_impl_gguf_put_merges(vp_impl_gguf_text *out, const vp_impl_gguf_words *words) {
    size_t count = vp_impl_gguf_find_merges(words, NULL), i;
    vp_impl_gguf_merge *merges = (vp_impl_gguf_merge *)VP_CALLOC(count + 1, sizeof *merges);
    if (!merges) {
        vp_impl_gguf_fail(out, VP_ERR_MEMORY, "scores", "not enough memory");
        return;
    }
    vp_impl_gguf_find_merges(words, merges);
    if (count) qsort(merges, count, sizeof *merges, vp_impl_gguf_merge_order);
    for (i = 0; i < count; i++) {
        vp_json_begin_array(&out->writer);
        vp_json_string_bytes(&out->writer, merges[i].left.text, merges[i].left.bytes);
        vp_json_string_bytes(&out->writer, merges[i].right.text, merges[i].right.bytes);
        vp_json_end_array(&out->writer);
    }
    VP_FREE(merges);
}

static void vp_impl_gguf_put_one_added(vp_impl_gguf_text *out, int64_t id, vp_gguf_text text, int special) {
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_int(out, "id", id);
    vp_json_key(&out->writer, "content");
    vp_json_string_bytes(&out->writer, text.text, text.bytes);
    vp_impl_gguf_put_bool(out, "single_word", 0);
    vp_impl_gguf_put_bool(out, "lstrip", 0);
    vp_impl_gguf_put_bool(out, "rstrip", 0);
    vp_impl_gguf_put_bool(out, "normalized", 0);
    vp_impl_gguf_put_bool(out, "special", special);
    vp_json_end_object(&out->writer);
}
static void vp_impl_gguf_put_added(vp_impl_gguf_text *out, const vp_impl_gguf_words *words) {
    vp_json_key(&out->writer, "added_tokens");
    vp_json_begin_array(&out->writer);
    for (int32_t id = 0; id < words->count; id++) {
        const vp_impl_gguf_token *token = &words->tokens[id];
        if (token->type >= VP_IMPL_GGUF_UNKNOWN && token->type <= VP_IMPL_GGUF_USER)
            vp_impl_gguf_put_one_added(out, id, token->text, token->type != VP_IMPL_GGUF_USER);
    }
    vp_json_end_array(&out->writer);
}
/* the token that is prepended to every text, if any */
static void vp_impl_gguf_put_template(vp_impl_gguf_text *out, const vp_impl_gguf_words *words, int absent) {
    char text[VP_IMPL_GGUF_TOKEN_BYTES_MAX + 1];
    vp_json_key(&out->writer, "post_processor");
    if (vp_impl_gguf_int(out, "add_eos_token", 0))
        vp_impl_gguf_fail(out, VP_ERR_UNSUPPORTED, "add_eos_token",
                          "appending a token to every text is not implemented");
    if (!vp_impl_gguf_int(out, "add_bos_token", absent)) {
        vp_json_null(&out->writer);
        return;
    }
    int64_t id = vp_impl_gguf_int(out, "bos_token_id", VP_IMPL_GGUF_REQUIRED);
    if (id < 0 || id >= words->count) {
        vp_impl_gguf_fail(out, VP_ERR_FORMAT, "bos_token_id", "is not a token");
        return;
    }
    memcpy(text, words->tokens[id].text.text, words->tokens[id].text.bytes);
    text[words->tokens[id].text.bytes] = 0;
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_text(out, "type", "TemplateProcessing");
    vp_json_key(&out->writer, "single");
    vp_json_begin_array(&out->writer);
    vp_json_begin_object(&out->writer);
    vp_json_key(&out->writer, "SpecialToken");
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_text(out, "id", text);
    vp_json_end_object(&out->writer);
    vp_json_end_object(&out->writer);
    vp_json_raw(&out->writer, "{\"Sequence\":{\"id\":\"A\"}}", strlen("{\"Sequence\":{\"id\":\"A\"}}"));
    vp_json_end_array(&out->writer);
    vp_json_key(&out->writer, "special_tokens");
    vp_json_begin_object(&out->writer);
    vp_json_key(&out->writer, text);
    vp_json_begin_object(&out->writer);
    vp_json_key(&out->writer, "ids");
    vp_json_begin_array(&out->writer);
    vp_json_int(&out->writer, id);
    vp_json_end_array(&out->writer);
    vp_json_end_object(&out->writer);
    vp_json_end_object(&out->writer);
    vp_json_end_object(&out->writer);
}
static void vp_impl_gguf_put_bpe(vp_impl_gguf_text *out, const vp_impl_gguf_words *words, int pieces, int whole) {
    char text[VP_IMPL_GGUF_TOKEN_BYTES_MAX + 1];
    vp_gguf_value merges;
    vp_gguf_text merge;
    uint64_t offset = 0;
    vp_json_key(&out->writer, "model");
    vp_json_begin_object(&out->writer);
    vp_impl_gguf_put_text(out, "type", "BPE");
    vp_impl_gguf_put_raw(out, "unk_token", "null");
    vp_impl_gguf_put_bool(out, "fuse_unk", pieces);
    vp_impl_gguf_put_bool(out, "byte_fallback", pieces);
    vp_impl_gguf_put_bool(out, "ignore_merges", whole);
    vp_json_key(&out->writer, "vocab");
    vp_json_begin_object(&out->writer);
    for (int32_t id = 0; id < words->count; id++) {
        const vp_impl_gguf_token *token = &words->tokens[id];
        if (token->type == VP_IMPL_GGUF_UNUSED) continue;
        memcpy(text, token->text.text, token->text.bytes);
        text[token->text.bytes] = 0;
        vp_impl_gguf_put_int(out, text, id);
    }
    vp_json_end_object(&out->writer);
    vp_json_key(&out->writer, "merges");
    vp_json_begin_array(&out->writer);
    if (pieces) vp_impl_gguf_put_merges(out, words);
    else if (vp_impl_gguf_key(out, "merges", 1, 1, &merges))
        while (vp_gguf_next_text(&merges, &offset, &merge))
            vp_json_string_bytes(&out->writer, merge.text, merge.bytes);
    else vp_impl_gguf_fail(out, VP_ERR_FORMAT, "merges", "this key is missing");
    vp_json_end_array(&out->writer);
    vp_json_end_object(&out->writer);
}
/* normaliser, pre-tokeniser and decoder of SentencePiece vocabularies, whose spaces are bars; with or without a space
 * before a text */
static void vp_impl_gguf_put_bars(vp_impl_gguf_text *out, int space) {
    static const char *const replace =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" VP_IMPL_GGUF_BAR "\"}";
    static const char *const front =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" VP_IMPL_GGUF_BAR "\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" VP_IMPL_GGUF_BAR "\"}]}";
    static const char *const back =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" VP_IMPL_GGUF_BAR
        "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}";
    static const char *const strip =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" VP_IMPL_GGUF_BAR
        "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
        "\"start\":1,\"stop\":0}]}";
    vp_impl_gguf_put_raw(out, "normalizer", space ? front : replace);
    vp_impl_gguf_put_raw(out, "pre_tokenizer", "null");
    vp_impl_gguf_put_raw(out, "decoder", space ? strip : back);
}
static void vp_impl_gguf_tokenizer(vp_impl_gguf_text *out) {
    vp_impl_gguf_words words = {NULL, NULL, 0, 0};
    const char *image = NULL;
    int pieces, space, llama, split = 0;
    if (out->projector)
        image = vp_impl_gguf_joints[vp_impl_gguf_joint_of(out, vp_impl_gguf_language_of(out))].image_token;
    out->from = out->model;
    out->prefix = "tokenizer.ggml.";
    pieces = vp_impl_gguf_is(out, "model", "llama");
    if (!pieces && !vp_impl_gguf_is(out, "model", "gpt2"))
        vp_impl_gguf_unknown(out, "model", "expected gpt2 (byte-level BPE) or llama (SentencePiece)");
    while (!pieces && split < VP_IMPL_GGUF_SPLITS && !vp_impl_gguf_is(out, "pre", vp_impl_gguf_splits[split].name))
        split++;
    if (split == VP_IMPL_GGUF_SPLITS) vp_impl_gguf_unknown_split(out);
    llama = !pieces && split < VP_IMPL_GGUF_SPLITS && vp_impl_gguf_splits[split].llama;
    space = vp_impl_gguf_int(out, "add_space_prefix", 1) != 0;
    if (out->result == VP_OK) vp_impl_gguf_read_words(out, &words, image);
    if (out->result == VP_OK) {
        vp_json_begin_object(&out->writer);
        vp_impl_gguf_put_text(out, "version", "1.0");
        vp_impl_gguf_put_added(out, &words);
        vp_impl_gguf_put_template(out, &words, pieces || llama);
        if (pieces) vp_impl_gguf_put_bars(out, space);
        else {
            vp_impl_gguf_put_raw(out, "normalizer", vp_impl_gguf_splits[split].normalizer);
            vp_impl_gguf_put_raw(out, "pre_tokenizer", vp_impl_gguf_splits[split].pre_tokenizer);
            vp_impl_gguf_put_raw(out, "decoder", "{\"type\":\"ByteLevel\"}");
        }
        if (out->result == VP_OK) vp_impl_gguf_put_bpe(out, &words, pieces, llama);
        vp_json_end_object(&out->writer);
    }
    VP_FREE(words.tokens);
}

VP_API vp_result vp_gguf_file_text(const vp_gguf *model, const vp_gguf *projector, const char *name, char **text,
                                   size_t *bytes, vp_error *error) {
    vp_impl_gguf_text out = {0};
    vp_gguf_value value;
    vp_gguf_text template_text;
    uint64_t offset = 0;
    if (!model || !name || !text || !bytes)
        return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_file_text", "a required pointer is NULL");
    out.model = out.from = model;
    out.projector = projector;
    out.prefix = "";
    out.error = error;
    out.capacity = 4096;
    out.text = (char *)VP_MALLOC(out.capacity);
    if (!out.text) return vp_fail(error, VP_ERR_MEMORY, -1, name, "not enough memory");
    vp_json_writer_init_sink(&out.writer, vp_impl_gguf_sink, &out, 0);
    if (!strcmp(name, "config.json")) vp_impl_gguf_config(&out);
    else if (!strcmp(name, "tokenizer.json")) vp_impl_gguf_tokenizer(&out);
    else if (!strcmp(name, "preprocessor_config.json") && projector) vp_impl_gguf_preprocessor(&out);
    else if (!strcmp(name, "chat_template.jinja") && vp_impl_gguf_key(&out, "tokenizer.chat_template", 0, 1, &value)
             && vp_gguf_next_text(&value, &offset, &template_text)) {
        out.result = vp_impl_gguf_sink(&out, template_text.text, template_text.bytes);
        if (out.result != VP_OK) vp_fail(error, out.result, -1, name, "not enough memory");
    } else if (out.result == VP_OK)
        out.result = vp_fail(error, VP_ERR_NOT_FOUND, -1, name, "this model has no such file");
    if (out.result == VP_OK && strcmp(name, "chat_template.jinja") && vp_json_finish(&out.writer) != VP_OK)
        out.result = vp_fail(error, out.writer.result, -1, model->path,
                             out.writer.result == VP_ERR_MEMORY ? "not enough memory"
                                                                : "a text of the tokenizer is not UTF-8");
    if (out.result == VP_OK) out.result = vp_impl_gguf_sink(&out, "", 1);
    if (out.result != VP_OK) {
        VP_FREE(out.text);
        return out.result;
    }
    *text = out.text;
    *bytes = out.bytes - 1;
    return VP_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */
typedef struct vp_impl_gguf_rename { const char *name, *gguf; } vp_impl_gguf_rename;
/* names inside a layer, then of the whole model; each is followed by .weight or .bias, or is the whole name */
static const vp_impl_gguf_rename vp_impl_gguf_layer_names[] = {
    {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"}, {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"}, {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"}, {"mlp.gate", "ffn_gate_inp"}, {NULL, NULL}};
/* names in models with norms around attention and MLP */
static const vp_impl_gguf_rename vp_impl_gguf_around_names[] = {
    {"post_attention_layernorm", "post_attention_norm"}, {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"}, {NULL, NULL}};
static const vp_impl_gguf_rename vp_impl_gguf_language_names[] = {
    {"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {NULL, NULL}};
/* CLIP's and SigLIP's, InternViT's, Qwen's */
static const vp_impl_gguf_rename vp_impl_gguf_tower_layer_names[] = {
    {"layer_norm1", "ln1"}, {"layer_norm2", "ln2"}, {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"}, {"self_attn.out_proj", "attn_out"}, {"mlp.fc1", "ffn_up"}, {"mlp.fc2", "ffn_down"},
    {"layernorm_before", "ln1"}, {"layernorm_after", "ln2"}, {"attention.q_proj", "attn_q"},
    {"attention.k_proj", "attn_k"}, {"attention.v_proj", "attn_v"}, {"attention.projection_layer", "attn_out"},
    {"lambda_1", "ls1.weight"}, {"lambda_2", "ls2.weight"},
    {"norm1", "ln1"}, {"norm2", "ln2"}, {"attn.qkv", "attn_qkv"}, {"attn.proj", "attn_out"},
    {"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"},
    {"mlp.linear_fc1", "ffn_up"}, {"mlp.linear_fc2", "ffn_down"}, {NULL, NULL}};
static const vp_impl_gguf_rename vp_impl_gguf_tower_names[] = {
    {"embeddings.class_embedding", "v.class_embd"}, {"embeddings.position_embedding", "v.position_embd"},
    {"embeddings.patch_embedding", "v.patch_embd"}, {"pre_layrnorm", "v.pre_ln"}, {"post_layernorm", "v.post_ln"},
    {"embeddings.cls_token", "v.class_embd"}, {"embeddings.position_embeddings", "v.position_embd.weight"},
    {"embeddings.patch_embeddings.projection", "v.patch_embd"},
    {"patch_embed.proj", "v.patch_embd"}, {"pos_embed", "v.position_embd"}, {"merger.ln_q", "v.post_ln"},
    {"merger.mlp.0", "mm.0"}, {"merger.mlp.2", "mm.2"}, {"merger.norm", "v.post_ln"}, {"merger.linear_fc1", "mm.0"},
    {"merger.linear_fc2", "mm.2"}, {NULL, NULL}};
static const vp_impl_gguf_rename vp_impl_gguf_deepstack_names[] = {
    {"norm", "norm"}, {"linear_fc1", "fc1"}, {"linear_fc2", "fc2"}, {NULL, NULL}};
static const vp_impl_gguf_rename vp_impl_gguf_connector_names[] = {
    {"lm_head", "output"}, {"language_model.lm_head", "output"},
    {"multi_modal_projector.linear_1", "mm.0"}, {"multi_modal_projector.linear_2", "mm.2"},
    {"model.connector.modality_projection.proj", "mm.model.fc"},
    {"multi_modal_projector.mm_soft_emb_norm", "mm.soft_emb_norm"},
    {"multi_modal_projector.mm_input_projection_weight", "mm.input_projection.weight"}, {NULL, NULL}};
static const vp_impl_gguf_rename vp_impl_gguf_internvl_names[] = {
    {"multi_modal_projector.layer_norm", "mm.model.mlp.0"}, {"multi_modal_projector.linear_1", "mm.model.mlp.1"},
    {"multi_modal_projector.linear_2", "mm.model.mlp.3"}, {NULL, NULL}};

/* A transformers tensor name, parsed. */
typedef struct vp_impl_gguf_name_parts {
    char gguf[128];
    int is_tower, is_language; /* 1: in the tower or its connector; 1: in a layer of the language model */
    int32_t layer, expert;     /* -1: in no layer, not an expert */
} vp_impl_gguf_name_parts;

/* appends the new name of `rest` to parts->gguf; returns 0 if the table lacks it */
static int vp_impl_gguf_rename_rest(const vp_impl_gguf_rename *table, const char *rest,
                                    vp_impl_gguf_name_parts *parts) {
    size_t used = strlen(parts->gguf);
    for (; table->name; table++) {
        size_t length = strlen(table->name);
        if (strncmp(rest, table->name, length) || (rest[length] && strcmp(rest + length, ".weight")
                                                   && strcmp(rest + length, ".bias")))
            continue;
        snprintf(parts->gguf + used, sizeof parts->gguf - used, "%s%s", table->gguf, rest + length);
        return 1;
    }
    return 0;
}
/* the rest of a text after a prefix; NULL if the text does not begin with it */
static const char *vp_impl_gguf_behind(const char *text, const char *begin) {
    size_t length = strlen(begin);
    return strncmp(text, begin, length) ? NULL : text + length;
}
static const char *vp_impl_gguf_index(const char *text, int32_t *index) {
    char *end = NULL;
    *index = (int32_t)strtol(text, &end, 10);
    return *end == '.' ? end + 1 : end;
}
/* parses the name of a tower's tensor, after the tower's prefix */
static int vp_impl_gguf_tower_name(const vp_model_config *config, const char *rest, vp_impl_gguf_name_parts *parts) {
    static const char *const layers[] = {"encoder.layers.", "encoder.layer.", "blocks."};
    const char *layer = NULL;
    size_t i;
    int32_t level;
    parts->is_tower = 1;
    for (i = 0; !layer && i < sizeof layers / sizeof layers[0]; i++) layer = vp_impl_gguf_behind(rest, layers[i]);
    if (layer) {
        layer = vp_impl_gguf_index(layer, &parts->layer);
        snprintf(parts->gguf, sizeof parts->gguf, "v.blk.%d.", (int)parts->layer);
        return vp_impl_gguf_rename_rest(vp_impl_gguf_tower_layer_names, layer, parts);
    }
    layer = vp_impl_gguf_behind(rest, "deepstack_merger_list.");
    if (!layer) return vp_impl_gguf_rename_rest(vp_impl_gguf_tower_names, rest, parts);
    layer = vp_impl_gguf_index(layer, &level);
    snprintf(parts->gguf, sizeof parts->gguf, "v.deepstack.%d.", (int)config->vit_layers[1 + level]);
    return vp_impl_gguf_rename_rest(vp_impl_gguf_deepstack_names, layer, parts);
}
static int vp_impl_gguf_expert_name(const char *rest, vp_impl_gguf_name_parts *parts) {
    static const char *const experts[3][2] = {
        {"gate_proj.weight", "ffn_gate_exps.weight"}, {"up_proj.weight", "ffn_up_exps.weight"},
        {"down_proj.weight", "ffn_down_exps.weight"}};
    size_t used = strlen(parts->gguf);
    rest = vp_impl_gguf_index(rest, &parts->expert);
    for (int i = 0; i < 3; i++) {
        if (strcmp(rest, experts[i][0])) continue;
        snprintf(parts->gguf + used, sizeof parts->gguf - used, "%s", experts[i][1]);
        return 1;
    }
    return 0;
}
static int vp_impl_gguf_name_of(const vp_model_config *config, const char *name, vp_impl_gguf_name_parts *parts) {
    /* longer prefixes first */
    static const char *const towers[] = {"vision_tower.vision_model.", "model.vision_model.", "vision_tower.",
                                         "model.visual.", "visual."};
    static const char *const languages[] = {"language_model.model.", "model.language_model.", "model.text_model.",
                                            "model."};
    const char *rest = NULL, *layer;
    memset(parts, 0, sizeof *parts);
    parts->layer = parts->expert = -1;
    for (size_t i = 0; !rest && i < sizeof towers / sizeof towers[0]; i++) rest = vp_impl_gguf_behind(name, towers[i]);
    if (rest) return vp_impl_gguf_tower_name(config, rest, parts);
    if ((config->architecture == VP_ARCHITECTURE_INTERNVL
         && vp_impl_gguf_rename_rest(vp_impl_gguf_internvl_names, name, parts))
        || vp_impl_gguf_rename_rest(vp_impl_gguf_connector_names, name, parts)) {
        parts->is_tower = !strncmp(parts->gguf, "mm.", 3);
        return 1;
    }
    for (size_t i = 0; !rest && i < sizeof languages / sizeof languages[0]; i++)
        rest = vp_impl_gguf_behind(name, languages[i]);
    if (!rest) return 0;
    layer = vp_impl_gguf_behind(rest, "layers.");
    if (!layer) return vp_impl_gguf_rename_rest(vp_impl_gguf_language_names, rest, parts);
    layer = vp_impl_gguf_index(layer, &parts->layer);
    parts->is_language = 1;
    snprintf(parts->gguf, sizeof parts->gguf, "blk.%d.", (int)parts->layer);
    if ((rest = vp_impl_gguf_behind(layer, "mlp.experts.")) != NULL) return vp_impl_gguf_expert_name(rest, parts);
    return (config->norm_around && vp_impl_gguf_rename_rest(vp_impl_gguf_around_names, layer, parts))
           || vp_impl_gguf_rename_rest(vp_impl_gguf_layer_names, layer, parts);
}

/* The tensors gathered for a checkpoint, by name, and marks for those already taken from the files. */
typedef struct vp_impl_gguf_gather {
    const vp_gguf *files[2]; /* model, projector */
    const vp_model_config *config;
    int paired;              /* 1 if rows of q and k are stored in pairs */
    vp_named_tensor *tensors;
    size_t count;
    unsigned char *used[2];
    vp_error *error;
} vp_impl_gguf_gather;

/* leading dimensions of 1 are ignored; an expert is a slice of the outermost dimension */
static int vp_impl_gguf_same_shape(const vp_gguf_tensor *found, const vp_tensor_spec *spec, int skip) {
    int32_t left = skip, right = 0;
    while (left < found->dimensions - 1 && found->shape[left] == 1) left++;
    while (right < spec->dimensions - 1 && spec->shape[right] == 1) right++;
    if (found->dimensions - left != spec->dimensions - right) return 0;
    for (; left < found->dimensions; left++, right++)
        if (found->shape[left] != spec->shape[right]) return 0;
    return 1;
}
/* Returns 1 if the engine never needs this tensor. */
static int vp_impl_gguf_is_idle(const vp_model_config *config, const vp_impl_gguf_name_parts *parts) {
    return parts->is_tower
           && (parts->layer >= config->vit_blocks_needed
               || (config->architecture == VP_ARCHITECTURE_LLAVA && !strncmp(parts->gguf, "v.post_ln.", 10)));
}
/* Finds a tensor of the file and marks it as taken; NULL if there is none. */
static const vp_gguf_tensor *vp_impl_gguf_take_tensor(vp_impl_gguf_gather *gather, int is_tower, const char *name) {
    const vp_gguf *file = gather->files[is_tower];
    const vp_impl_gguf_name *entry =
        file ? vp_impl_gguf_search(file->tensor_names, file->tensor_count, name) : NULL;
    if (!entry) return NULL;
    gather->used[is_tower][entry->index] = 1;
    return &file->tensors[entry->index];
}
static vp_result vp_impl_gguf_missing(const vp_impl_gguf_gather *gather, int is_tower, const char *name) {
    return vp_failf(gather->error, VP_ERR_MISMATCH, -1,
                    gather->files[is_tower] ? gather->files[is_tower]->path : "projector", "there is no tensor %s",
                    name);
}
static vp_result vp_impl_gguf_misshapen(const vp_impl_gguf_gather *gather, int is_tower, const char *name) {
    return vp_failf(gather->error, VP_ERR_MISMATCH, -1, gather->files[is_tower]->path,
                    "the shape of %s does not match the keys", name);
}
static vp_result vp_impl_gguf_read_type(const vp_impl_gguf_gather *gather, int is_tower, const char *name,
                                        const vp_gguf_tensor *found, vp_dtype *dtype) {
    if (vp_gguf_type_dtype(found->type, dtype)) return VP_OK;
    return vp_failf(gather->error, VP_ERR_UNSUPPORTED, -1, gather->files[is_tower]->path,
                    "%s has the type %s, which vlmprof does not read; it reads F32, F16, BF16, Q8_0, Q5_0, Q4_0, Q4_K, "
                    "Q6_K", name,
                    vp_gguf_type_name(found->type) ? vp_gguf_type_name(found->type) : "unknown");
}
/* Joins tensors of the tower into one: `step` bytes of each in turn; 0: each as a whole. */
static vp_result vp_impl_gguf_join(vp_impl_gguf_gather *gather, const vp_gguf_tensor *const *pieces, int count,
                                   uint64_t step, vp_tensor *tensor, unsigned char **owned) {
    uint64_t at, bytes = pieces[0]->bytes;
    if (!step) step = bytes;
    if (bytes > SIZE_MAX / 4 || !(*owned = (unsigned char *)VP_MALLOC((size_t)bytes * (size_t)count)))
        return vp_fail(gather->error, VP_ERR_MEMORY, -1, gather->files[1]->path, "not enough memory");
    for (at = 0; at < bytes; at += step)
        for (int i = 0; i < count; i++)
            memcpy(*owned + (size_t)at * (size_t)count + (size_t)step * (size_t)i, pieces[i]->data + at, (size_t)step);
    tensor->data = *owned;
    tensor->bytes = bytes * (uint64_t)count;
    tensor->shard = -1;
    return VP_OK;
}
/* Joins the pieces with these names; each has `spec`'s shape, except for its part of dimension `cut`. */
static vp_result vp_impl_gguf_gather_pieces(vp_impl_gguf_gather *gather, const vp_tensor_spec *spec,
                                            char (*names)[128], int count, int32_t cut,
                                            vp_named_tensor *made) {
    const vp_gguf_tensor *pieces[3] = {NULL, NULL, NULL};
    vp_tensor_spec share = *spec;
    vp_result result = VP_OK;
    uint64_t step = 0;
    int i, k;
    share.shape[cut] /= count;
    for (i = 0; i < count; i++) {
        pieces[i] = vp_impl_gguf_take_tensor(gather, 1, names[i]);
        if (!pieces[i]) return vp_impl_gguf_missing(gather, 1, names[i]);
        if (share.shape[cut] * count != spec->shape[cut] || pieces[i]->type != pieces[0]->type)
            return vp_impl_gguf_misshapen(gather, 1, names[i]);
    }
    if (cut) { /* the piece lacks a dimension of 1 */
        for (i = cut; i + 1 < share.dimensions; i++) share.shape[i] = share.shape[i + 1];
        share.dimensions--;
    }
    for (i = 0; i < count; i++)
        if (!vp_impl_gguf_same_shape(pieces[i], &share, 0)) return vp_impl_gguf_misshapen(gather, 1, names[i]);
    result = vp_impl_gguf_read_type(gather, 1, names[0], pieces[0], &made->tensor.dtype);
    if (result != VP_OK) return result;
    if (cut) {
        if (made->tensor.dtype > VP_DTYPE_F16)
            return vp_failf(gather->error, VP_ERR_UNSUPPORTED, -1, gather->files[1]->path,
                            "%s has a block type; expected F32, F16 or BF16", names[0]);
        for (step = made->tensor.dtype == VP_DTYPE_F32 ? 4 : 2, k = cut; k < share.dimensions; k++)
            step *= (uint64_t)share.shape[k];
    }
    return vp_impl_gguf_join(gather, pieces, count, step, &made->tensor, &made->owned);
}
/* Old files swap the names of a block's two MLP matrices. */
static void vp_impl_gguf_mend_name(const vp_impl_gguf_gather *gather, vp_impl_gguf_name_parts *parts) {
    const vp_model_config *config = gather->config;
    char *up = strstr(parts->gguf, ".ffn_up."), *down = strstr(parts->gguf, ".ffn_down."), first[32], kind[16];
    vp_gguf_tensor found;
    if (!parts->is_tower || config->vit_gated || (!up && !down)) return;
    snprintf(first, sizeof first, "v.blk.%d.ffn_down.weight", (int)parts->layer);
    if (vp_gguf_tensor_find(gather->files[1], first, &found) != VP_OK || found.dimensions != 2
        || found.shape[1] != config->vit_width || found.shape[0] != config->vit_mlp_dim
        || config->vit_width == config->vit_mlp_dim)
        return;
    snprintf(kind, sizeof kind, "%s", strrchr(parts->gguf, '.') + 1);
    snprintf(parts->gguf, sizeof parts->gguf, "v.blk.%d.%s.%s", (int)parts->layer, up ? "ffn_down" : "ffn_up", kind);
}
static vp_result vp_impl_gguf_gather_plain(vp_impl_gguf_gather *gather, const vp_tensor_spec *spec,
                                           const vp_impl_gguf_name_parts *parts, const vp_gguf_tensor *found,
                                           vp_named_tensor *made) {
    const vp_model_config *config = gather->config;
    vp_result result;
    if (!vp_impl_gguf_same_shape(found, spec, parts->expert >= 0)
        || (parts->expert >= 0 && found->shape[0] != config->expert_count))
        return vp_impl_gguf_misshapen(gather, parts->is_tower, parts->gguf);
    result = vp_impl_gguf_read_type(gather, parts->is_tower, parts->gguf, found, &made->tensor.dtype);
    if (result != VP_OK) return result;
    if (made->tensor.dtype > VP_DTYPE_F16 && !strcmp(parts->gguf, "mm.input_projection.weight"))
        return vp_failf(gather->error, VP_ERR_UNSUPPORTED, -1, gather->files[1]->path,
                        "%s has a block type; expected F32, F16 or BF16", parts->gguf);
    made->tensor.bytes = parts->expert >= 0 ? found->bytes / (uint64_t)config->expert_count : found->bytes;
    made->tensor.data = found->data + (parts->expert > 0 ? made->tensor.bytes * (uint64_t)parts->expert : 0);
    made->tensor.shard = parts->is_tower;
    if (gather->paired && parts->is_language && strstr(parts->gguf, ".attn_q."))
        made->tensor.paired_heads = config->head_count;
    if (gather->paired && parts->is_language && strstr(parts->gguf, ".attn_k."))
        made->tensor.paired_heads = config->kv_head_count;
    return VP_OK;
}
static vp_result vp_impl_gguf_gather_one(vp_impl_gguf_gather *gather, const vp_tensor_spec *spec) {
    const vp_model_config *config = gather->config;
    vp_impl_gguf_name_parts parts;
    vp_named_tensor *made = &gather->tensors[gather->count];
    char names[3][128];
    vp_result result;
    if (!vp_impl_gguf_name_of(config, spec->name, &parts))
        return vp_fail(gather->error, VP_ERR_UNSUPPORTED, -1, spec->name, "GGUF has no name for this tensor");
    vp_impl_gguf_mend_name(gather, &parts);
    const vp_gguf_tensor *found = vp_impl_gguf_take_tensor(gather, parts.is_tower, parts.gguf);
    const char *fused = strstr(parts.gguf, ".attn_qkv.");
    if (!found && vp_impl_gguf_is_idle(config, &parts)) return VP_OK;
    if (parts.is_tower && spec->dimensions == 5) { /* one kernel for each of two frames */
        snprintf(names[0], sizeof names[0], "%s", parts.gguf);
        snprintf(names[1], sizeof names[1], "%.120s.1", parts.gguf);
        result = vp_impl_gguf_gather_pieces(gather, spec, names, 2, 2, made);
    } else if (!found && fused) {
        for (int32_t i = 0; i < 3; i++)
            snprintf(names[i], sizeof names[i], "%.*s.attn_%c.%.16s", (int)(fused - parts.gguf), parts.gguf,
                     "qkv"[i], fused + strlen(".attn_qkv."));
        result = vp_impl_gguf_gather_pieces(gather, spec, names, 3, 0, made);
    } else if (!found) result = vp_impl_gguf_missing(gather, parts.is_tower, parts.gguf);
    else result = vp_impl_gguf_gather_plain(gather, spec, &parts, found, made);
    if (result != VP_OK) return result;
    snprintf(made->name, sizeof made->name, "%s", spec->name);
    made->tensor.dimensions = spec->dimensions;
    made->tensor.with_one = config->norm_plus_one;
    for (int32_t i = 0; i < spec->dimensions; i++) made->tensor.shape[i] = spec->shape[i];
    gather->count++;
    return VP_OK;
}
/* unused tensors would change the model's output */
static vp_result vp_impl_gguf_gather_rest(vp_impl_gguf_gather *gather) {
    if (gather->config->rope.scaling == VP_ROPE_LLAMA3) vp_impl_gguf_take_tensor(gather, 0, "rope_freqs.weight");
    for (int f = 0; f < 2 && gather->files[f]; f++)
        for (uint64_t i = 0; i < gather->files[f]->tensor_count; i++) {
            const vp_gguf_tensor *tensor = &gather->files[f]->tensors[i];
            if (gather->used[f][i]) continue;
            return vp_failf(gather->error, VP_ERR_MISMATCH, -1, gather->files[f]->path,
                            "vlmprof's model has no tensor %.*s",
                            tensor->name.bytes > 80 ? 80 : (int)tensor->name.bytes, tensor->name.text);
        }
    return VP_OK;
}
VP_API vp_result vp_gguf_checkpoint(const vp_gguf *model, const vp_gguf *projector, const vp_model_config *config,
                                    vp_checkpoint **checkpoint, vp_error *error) {
    vp_impl_gguf_gather gather = {0};
    vp_tensor_spec spec;
    vp_gguf_value value;
    vp_gguf_text architecture = {"", 0};
    const unsigned char *maps[2];
    size_t map_bytes[2];
    uint64_t offset = 0;
    int64_t count, i;
    vp_result result = VP_OK;
    if (!model || !config || !checkpoint)
        return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_checkpoint", "a required pointer is NULL");
    count = vp_model_tensor_count(config);
    gather.files[0] = model;
    gather.files[1] = projector;
    gather.config = config;
    gather.error = error;
    if (vp_gguf_value_find(model, "general.architecture", &value) == VP_OK)
        vp_gguf_next_text(&value, &offset, &architecture);
    gather.paired = architecture.bytes == 5 && !memcmp(architecture.text, "llama", 5);
    gather.tensors = (vp_named_tensor *)VP_CALLOC((size_t)count + 1, sizeof *gather.tensors);
    gather.used[0] = (unsigned char *)VP_CALLOC((size_t)model->tensor_count + 1, 1);
    gather.used[1] = (unsigned char *)VP_CALLOC((projector ? (size_t)projector->tensor_count : 0) + 1, 1);
    if (!gather.tensors || !gather.used[0] || !gather.used[1])
        result = vp_fail(error, VP_ERR_MEMORY, -1, model->path, "not enough memory");
    for (i = 0; i < count && result == VP_OK; i++) {
        result = vp_model_tensor(config, i, &spec);
        if (result == VP_OK) result = vp_impl_gguf_gather_one(&gather, &spec);
    }
    if (result == VP_OK) result = vp_impl_gguf_gather_rest(&gather);
    maps[0] = model->map;
    map_bytes[0] = model->bytes;
    maps[1] = projector ? projector->map : NULL;
    map_bytes[1] = projector ? projector->bytes : 0;
    if (result == VP_OK)
        result = vp_checkpoint_of(gather.tensors, gather.count, maps, map_bytes, projector ? 2 : 1, checkpoint, error);
    for (i = 0; result != VP_OK && gather.tensors && i < count; i++) VP_FREE(gather.tensors[i].owned);
    if (result != VP_OK) VP_FREE(gather.tensors);
    VP_FREE(gather.used[0]);
    VP_FREE(gather.used[1]);
    return result;
}
