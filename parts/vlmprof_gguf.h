/* vlmprof_gguf.h - v0.2.0 - models in llama.cpp's files - MIT licence
 *
 * A GGUF file -> its keys and tensors, their values in float32; such a file, alone or with the mmproj file of a vision
 * tower -> the texts that a model's folder would hold, and a checkpoint whose tensors have transformers' names. Uses
 * malloc and mmap.
 *
 * Needs vlmprof.h, vlmprof_file.h and vlmprof_checkpoint.h, and includes what is missing.
 * Define VLMPROF_IMPLEMENTATION in one file, for all headers of vlmprof that it includes, or
 * VLMPROF_GGUF_IMPLEMENTATION for this one alone. The manual stands in vlmprof.h. */
#ifndef VLMPROF_GGUF_H
#define VLMPROF_GGUF_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif
#ifndef VLMPROF_FILE_H
#include "vlmprof_file.h"
#endif
#ifndef VLMPROF_CHECKPOINT_H
#include "vlmprof_checkpoint.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a file */
typedef struct vp_gguf vp_gguf;
typedef enum vp_gguf_kind { /* the numbers of the format */
    VP_GGUF_U8, VP_GGUF_I8, VP_GGUF_U16, VP_GGUF_I16, VP_GGUF_U32, VP_GGUF_I32, VP_GGUF_F32, VP_GGUF_BOOL,
    VP_GGUF_STRING, VP_GGUF_ARRAY, VP_GGUF_U64, VP_GGUF_I64, VP_GGUF_F64, VP_GGUF_KIND_COUNT
} vp_gguf_kind;
/* A text of the file: UTF-8 by the format, any bytes in a hostile file, without a NUL behind. */
typedef struct vp_gguf_text { const char *text; size_t bytes; } vp_gguf_text;
typedef struct vp_gguf_value {
    vp_gguf_text name;
    vp_gguf_kind kind, item;   /* item: of an array, else as kind */
    uint64_t count;            /* items of an array, else 1 */
    const unsigned char *data; /* count items one behind the other, little-endian; a string: u64 bytes, then the text */
    uint64_t bytes;            /* of data */
} vp_gguf_value;
typedef struct vp_gguf_tensor {
    vp_gguf_text name;
    uint32_t type;             /* ggml's number */
    int32_t dimensions;
    int64_t shape[4];          /* outermost first */
    const unsigned char *data;
    uint64_t bytes;            /* of data */
} vp_gguf_tensor;

/* Maps a file and checks all of it but the values of its tensors.
 * in:      path     of the file
 *          data     [bytes] a whole file in memory, which must outlive the result; where: its name in errors, too
 * out:     gguf     on success only; release with vp_gguf_close
 * returns: VP_OK; VP_ERR_NOT_FOUND, VP_ERR_READ; VP_ERR_FORMAT a malformed file (where: the file, offset: the byte);
 *          VP_ERR_UNSUPPORTED version 1, big-endian, arrays of arrays, a part of a split model; VP_ERR_MEMORY
 * rule:    version 2 or 3; no key and no tensor stands twice; shapes have 1 to 4 positive dimensions; each tensor begins
 *          where the one before it ends, rounded up to general.alignment (32 unless given; a power of two, 8 to 2^20),
 *          and all lie in the file. Tensors of unknown types have 0 bytes, and must be the last ones.
 * source:  github.com/ggml-org/ggml docs/gguf.md; llama.cpp ggml/src/gguf.cpp
 * memory:  at most 80 bytes per key and per tensor; each takes at least 13 bytes of the file
 * threads: reentrant; many threads may read one file */
VP_API vp_result vp_gguf_open(const char *path, vp_gguf **gguf, vp_error *error);
VP_API vp_result vp_gguf_read(const void *data, size_t bytes, const char *where, vp_gguf **gguf, vp_error *error);
VP_API void vp_gguf_close(vp_gguf *gguf); /* NULL is allowed */
VP_API const char *vp_gguf_path(const vp_gguf *gguf);
VP_API uint32_t vp_gguf_version(const vp_gguf *gguf);

/* Keys and tensors in the order of the file. returns: VP_OK; VP_ERR_RANGE an index past the end, NULL; _find:
 * VP_ERR_NOT_FOUND. memory: none. threads: reentrant */
VP_API uint64_t vp_gguf_value_count(const vp_gguf *gguf);
VP_API vp_result vp_gguf_value_at(const vp_gguf *gguf, uint64_t index, vp_gguf_value *value);
VP_API vp_result vp_gguf_value_find(const vp_gguf *gguf, const char *name, vp_gguf_value *value);
VP_API uint64_t vp_gguf_tensor_count(const vp_gguf *gguf);
VP_API vp_result vp_gguf_tensor_at(const vp_gguf *gguf, uint64_t index, vp_gguf_tensor *tensor);
VP_API vp_result vp_gguf_tensor_find(const vp_gguf *gguf, const char *name, vp_gguf_tensor *tensor);
/* The next item of a value. in: offset [byte] of value->data, 0 at first; out: it is moved to the item behind.
 * _text: of strings; _number: of all other kinds (BOOL: 0 or 1; whole numbers over 2^53 are rounded).
 * returns: 1; 0: there is none, or it is of another kind */
VP_API int vp_gguf_next_text(const vp_gguf_value *value, uint64_t *offset, vp_gguf_text *text);
VP_API int vp_gguf_next_number(const vp_gguf_value *value, uint64_t *offset, double *number);

/* "F32", "Q4_K" and so on; NULL: vlmprof does not know the type. */
VP_API const char *vp_gguf_type_name(uint32_t type);
/* The type whose values vlmprof reads. returns: 1; 0: it reads none of this type (*dtype untouched) */
VP_API int vp_gguf_type_dtype(uint32_t type, vp_dtype *dtype);

/* Values of a tensor as float32: exact for F32, F16 and BF16; of blocks as ggml computes them, product by product.
 * in:      dtype   of data
 *          data    whole blocks: 32 values in 34 bytes (Q8_0), 22 (Q5_0), 18 (Q4_0); 256 in 144 (Q4_K), 210 (Q6_K)
 *          count   of values, a multiple of vp_dtype_block(dtype)
 * out:     values  float32 [count]
 * source:  llama.cpp ggml/src/ggml-quants.c, dequantize_row_*; gguf-py/gguf/quants.py
 * memory:  none
 * threads: reentrant */
VP_API void vp_dtype_to_f32(vp_dtype dtype, const unsigned char *data, size_t count, float *values);
/* values of a block, 1 for plain types; and its bytes */
VP_API int32_t vp_dtype_block(vp_dtype dtype);
VP_API int32_t vp_dtype_block_bytes(vp_dtype dtype);

/* ---- a model */
/* The text of a file that a model's folder of transformers would have, made from the metadata: config.json,
 * preprocessor_config.json, tokenizer.json, tokenizer_config.json, generation_config.json, chat_template.jinja.
 * in:      model      a language model: olmoe, llama, qwen2, qwen3
 *          projector  mmproj file of its vision tower: mlp (LLaVA-1.5), idefics3 (SmolVLM), internvl; NULL: text only
 * out:     text       malloc'ed, with NUL; the caller frees it
 * returns: VP_OK; VP_ERR_NOT_FOUND such a model has no file of that name; VP_ERR_FORMAT a key is missing or of another
 *          kind; VP_ERR_UNSUPPORTED an architecture, tower, tokenizer or option that vlmprof lacks, by name;
 *          VP_ERR_MISMATCH the files do not belong together; VP_ERR_MEMORY
 * rule:    the texts are read by vp_model_config_parse and vp_tokenizer_load, which check them. A SentencePiece
 *          vocabulary (tokenizer.ggml.model "llama") becomes merges ordered by the scores of what they make
 * source:  llama.cpp src/llama-vocab.cpp, tools/mtmd/clip.cpp, convert_hf_to_gguf.py; transformers 5.23.0,
 *          tokenization_utils_sentencepiece.py
 * memory:  about 4 times the text */
VP_API vp_result vp_gguf_file_text(const vp_gguf *model, const vp_gguf *projector, const char *name, char **text,
                                   size_t *bytes, vp_error *error);
/* A checkpoint of the tensors of a config, under their names.
 * in:      config      of vp_gguf_file_text's config.json
 * out:     checkpoint  on success only; it reads the files' mappings, so close it before them
 * returns: VP_OK; VP_ERR_MISMATCH tensors are missing or have another shape; VP_ERR_UNSUPPORTED a type other than F32,
 *          F16, BF16, Q8_0, Q5_0, Q4_0, Q4_K, Q6_K; frequencies of RoPE in a tensor; VP_ERR_MEMORY
 * rule:    of architecture llama the rows of q and k stand in pairs in the file; they are read in transformers' order.
 *          Experts of a layer are slices of one tensor.
 * source:  llama.cpp gguf-py/gguf/tensor_mapping.py, convert_hf_to_gguf.py LlamaModel.permute
 * memory:  as vp_checkpoint_open
 * threads: as vp_checkpoint_open */
VP_API vp_result vp_gguf_checkpoint(const vp_gguf *model, const vp_gguf *projector, const vp_model_config *config,
                                    vp_checkpoint **checkpoint, vp_error *error);

#ifdef __cplusplus
}
#endif
#endif /* VLMPROF_GGUF_H */

/* ================================================================================================= implementation */
#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_GGUF_IMPLEMENTATION)) \
    && !defined(VLMPROF_GGUF_IMPLEMENTATION_DONE)
#define VLMPROF_GGUF_IMPLEMENTATION_DONE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------------------------- reading */
typedef struct vp_impl_gguf_name { vp_gguf_text name; uint64_t index; } vp_impl_gguf_name;
struct vp_gguf {
    char *path;
    const unsigned char *map;
    size_t bytes;
    int mapped; /* truth: by vp_gguf_open */
    uint32_t version;
    uint64_t value_count, tensor_count;
    vp_gguf_value *values;
    vp_gguf_tensor *tensors;
    vp_impl_gguf_name *value_names, *tensor_names; /* sorted */
};
/* Where the reader stands. Nothing is read but through vp_impl_gguf_take. */
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
/* bytes of an item; 0: it is a string */
static int vp_impl_gguf_kind_bytes(vp_gguf_kind kind) {
    static const unsigned char bytes[VP_GGUF_KIND_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return bytes[kind];
}

static vp_result vp_impl_gguf_value(vp_impl_gguf_at *at, vp_gguf_value *value) {
    size_t start = at->offset, begin;
    uint64_t kind = 0, item, i;
    int bytes;
    if (!vp_impl_gguf_string(at, &value->name) || !vp_impl_gguf_number(at, 4, &kind))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, vp_impl_gguf_unnamed, "a key ends behind the file");
    if (kind >= VP_GGUF_KIND_COUNT)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the kind of its value is none of the format's");
    value->count = 1;
    item = kind;
    if (kind == VP_GGUF_ARRAY) {
        if (!vp_impl_gguf_number(at, 4, &item) || !vp_impl_gguf_number(at, 8, &value->count))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the value ends behind the file");
        if (item == VP_GGUF_ARRAY)
            return vp_impl_gguf_wrong(at, VP_ERR_UNSUPPORTED, start, value->name, "an array of arrays");
        if (item >= VP_GGUF_KIND_COUNT)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the kind of its items is none of the format's");
    }
    value->kind = (vp_gguf_kind)kind;
    value->item = (vp_gguf_kind)item;
    begin = at->offset;
    value->data = at->gguf->map + begin;
    bytes = vp_impl_gguf_kind_bytes(value->item);
    /* each string takes 8 bytes, so the file's end bounds the loop */
    for (i = 0; !bytes && i < value->count; i++) {
        vp_gguf_text text;
        if (!vp_impl_gguf_string(at, &text))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "a text ends behind the file");
    }
    if (bytes && (value->count > at->gguf->bytes || !vp_impl_gguf_take(at, value->count * (uint64_t)bytes)))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, value->name, "the value ends behind the file");
    value->bytes = at->offset - begin;
    if (value->item == VP_GGUF_BOOL)
        for (i = 0; i < value->count; i++)
            if (value->data[i] > 1)
                return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, begin + (size_t)i, value->name, "a truth is neither 0 nor 1");
    return VP_OK;
}

/* Types by ggml's number; those that vlmprof reads have a vp_dtype. */
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

/* the entry of a tensor; its data come later */
static vp_result vp_impl_gguf_tensor(vp_impl_gguf_at *at, vp_gguf_tensor *tensor, uint64_t *offset) {
    size_t start = at->offset;
    uint64_t dimensions = 0, type = 0, length = 0, elements = 1, i;
    const vp_impl_gguf_type *kind;
    if (!vp_impl_gguf_string(at, &tensor->name) || !vp_impl_gguf_number(at, 4, &dimensions))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, vp_impl_gguf_unnamed, "a tensor's entry ends behind the file");
    if (dimensions < 1 || dimensions > 4)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "a tensor has 1 to 4 dimensions");
    tensor->dimensions = (int32_t)dimensions;
    for (i = 0; i < dimensions; i++) {
        if (!vp_impl_gguf_number(at, 8, &length))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its entry ends behind the file");
        if (length < 1 || length > (uint64_t)INT64_MAX / 8 / elements)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its shape has 0 or too many elements");
        elements *= length;
        tensor->shape[dimensions - 1 - i] = (int64_t)length; /* the file begins with the innermost */
    }
    if (!vp_impl_gguf_number(at, 4, &type) || !vp_impl_gguf_number(at, 8, offset))
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, start, tensor->name, "its entry ends behind the file");
    tensor->type = (uint32_t)type;
    if (!vp_gguf_type_name(tensor->type)) return VP_OK;
    kind = &vp_impl_gguf_types[type];
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
    uint64_t i;
    if (count) qsort(names, (size_t)count, sizeof *names, vp_impl_gguf_name_order);
    for (i = 1; i < count; i++)
        if (!vp_impl_gguf_text_order(names[i - 1].name, names[i].name))
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, (size_t)(names[i].name.text - (const char *)at->gguf->map),
                                      names[i].name, "this name stands twice");
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

/* memory for a table; `least`: bytes that each entry takes of the file */
static void *vp_impl_gguf_table(const vp_impl_gguf_at *at, uint64_t count, uint64_t least, size_t entry) {
    if (count > (at->gguf->bytes - at->offset) / least) return NULL;
    return calloc((size_t)count + 1, entry);
}
static vp_result vp_impl_gguf_values(vp_impl_gguf_at *at, vp_gguf *gguf, uint64_t count) {
    uint64_t i;
    if (count > (gguf->bytes - at->offset) / 13)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, 16, vp_impl_gguf_unnamed, "more keys than the file has room for");
    gguf->values = (vp_gguf_value *)vp_impl_gguf_table(at, count, 13, sizeof *gguf->values);
    gguf->value_names = (vp_impl_gguf_name *)vp_impl_gguf_table(at, count, 13, sizeof *gguf->value_names);
    if (!gguf->values || !gguf->value_names)
        return vp_impl_gguf_wrong(at, VP_ERR_MEMORY, 16, vp_impl_gguf_unnamed, "not enough memory for the keys");
    for (i = 0; i < count; i++) {
        vp_result result = vp_impl_gguf_value(at, &gguf->values[i]);
        if (result != VP_OK) return result;
        gguf->value_names[i].name = gguf->values[i].name;
        gguf->value_names[i].index = i;
        gguf->value_count++;
    }
    return vp_impl_gguf_sort(at, gguf->value_names, count);
}
/* offsets: each tensor's, as the file has them */
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
                                  "is no power of two, 8 to 1048576");
    start = ((uint64_t)at->offset + alignment - 1) & ~(alignment - 1);
    for (i = 0; i < gguf->tensor_count; i++) {
        vp_gguf_tensor *tensor = &gguf->tensors[i];
        size_t entry = (size_t)(tensor->name.text - (const char *)gguf->map);
        if (i && !vp_gguf_type_name(tensor[-1].type))
            return vp_impl_gguf_wrong(at, VP_ERR_UNSUPPORTED, entry, tensor[-1].name,
                                      "its type is unknown to vlmprof, and so is where the next tensor begins");
        if (offsets[i] != at_byte)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, entry, tensor->name,
                                      "does not begin where the tensor before it ends");
        if (start > gguf->bytes || at_byte > gguf->bytes - start || tensor->bytes > gguf->bytes - start - at_byte)
            return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, entry, tensor->name, "its data end behind the file");
        tensor->data = gguf->map + start + at_byte;
        at_byte = (at_byte + tensor->bytes + alignment - 1) & ~(alignment - 1);
    }
    return VP_OK;
}
static vp_result vp_impl_gguf_tensors(vp_impl_gguf_at *at, vp_gguf *gguf, uint64_t count) {
    uint64_t i, *offsets;
    vp_result result = VP_OK;
    if (count > (gguf->bytes - at->offset) / 32)
        return vp_impl_gguf_wrong(at, VP_ERR_FORMAT, 8, vp_impl_gguf_unnamed, "more tensors than the file has room for");
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
    free(offsets);
    return result;
}
static vp_result vp_impl_gguf_parse(vp_gguf *gguf, vp_error *error) {
    vp_impl_gguf_at at = {NULL, 0, NULL};
    const unsigned char *magic;
    uint64_t version = 0, tensors = 0, values = 0;
    vp_gguf_value split;
    vp_result result;
    at.gguf = gguf;
    at.error = error;
    magic = vp_impl_gguf_take(&at, 4);
    if (!magic || memcmp(magic, "GGUF", 4))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 0, vp_impl_gguf_unnamed, "this is no GGUF file: it does not begin with GGUF");
    if (!vp_impl_gguf_number(&at, 4, &version))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 4, vp_impl_gguf_unnamed, "the header ends behind the file");
    if (version != 2 && version != 3)
        return vp_impl_gguf_wrong(&at, VP_ERR_UNSUPPORTED, 4, vp_impl_gguf_unnamed,
                                  version && !(version & 0xffff) ? "a big-endian file" : "vlmprof reads versions 2 and 3");
    gguf->version = (uint32_t)version;
    if (!vp_impl_gguf_number(&at, 8, &tensors) || !vp_impl_gguf_number(&at, 8, &values))
        return vp_impl_gguf_wrong(&at, VP_ERR_FORMAT, 8, vp_impl_gguf_unnamed, "the header ends behind the file");
    result = vp_impl_gguf_values(&at, gguf, values);
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
    vp_gguf *made = (vp_gguf *)calloc(1, sizeof *made);
    size_t length = strlen(where) + 1;
    char *path = made ? (char *)malloc(length) : NULL;
    vp_result result;
    if (!path) {
        free(made);
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
    vp_result result;
    if (!path || !gguf) return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_open", "a required pointer is NULL");
    result = vp_file_map(path, &map, &bytes, error);
    return result == VP_OK ? vp_impl_gguf_begin(map, bytes, path, 1, gguf, error) : result;
}
VP_API vp_result vp_gguf_read(const void *data, size_t bytes, const char *where, vp_gguf **gguf, vp_error *error) {
    if (!data || !where || !gguf) return vp_fail(error, VP_ERR_RANGE, -1, "vp_gguf_read", "a required pointer is NULL");
    return vp_impl_gguf_begin((const unsigned char *)data, bytes, where, 0, gguf, error);
}
VP_API void vp_gguf_close(vp_gguf *gguf) {
    if (!gguf) return;
    if (gguf->mapped) vp_file_unmap(gguf->map, gguf->bytes);
    free(gguf->values);
    free(gguf->value_names);
    free(gguf->tensors);
    free(gguf->tensor_names);
    free(gguf->path);
    free(gguf);
}
VP_API const char *vp_gguf_path(const vp_gguf *gguf) { return gguf ? gguf->path : ""; }
VP_API uint32_t vp_gguf_version(const vp_gguf *gguf) { return gguf ? gguf->version : 0; }
VP_API uint64_t vp_gguf_value_count(const vp_gguf *gguf) { return gguf ? gguf->value_count : 0; }
VP_API uint64_t vp_gguf_tensor_count(const vp_gguf *gguf) { return gguf ? gguf->tensor_count : 0; }
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
    const vp_impl_gguf_name *found;
    if (!gguf || !name || !value) return VP_ERR_RANGE;
    found = vp_impl_gguf_search(gguf->value_names, gguf->value_count, name);
    return found ? vp_gguf_value_at(gguf, found->index, value) : VP_ERR_NOT_FOUND;
}
VP_API vp_result vp_gguf_tensor_find(const vp_gguf *gguf, const char *name, vp_gguf_tensor *tensor) {
    const vp_impl_gguf_name *found;
    if (!gguf || !name || !tensor) return VP_ERR_RANGE;
    found = vp_impl_gguf_search(gguf->tensor_names, gguf->tensor_count, name);
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
    uint64_t bits;
    uint32_t low;
    float f32;
    int bytes;
    if (!value || !offset || !number || value->item == VP_GGUF_STRING || *offset >= value->bytes) return 0;
    bytes = vp_impl_gguf_kind_bytes(value->item);
    bits = vp_impl_gguf_little(value->data + *offset, bytes);
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

/* ------------------------------------------------------------------------------------------------------------ blocks */
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
    int i;
    for (i = 0; i < 32; i++) values[i] = scale * (float)(int8_t)block[2 + i];
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
/* 8 groups of 32, each with a scale and a minimum of 6 bits; of the last 4 groups the upper 2 bits stand elsewhere */
static void vp_impl_gguf_q4_k(const unsigned char *block, float *values) {
    float scale = vp_impl_gguf_half(block), least = vp_impl_gguf_half(block + 2);
    const unsigned char *packed = block + 4, *nibbles = block + 16;
    int group, i;
    for (group = 0; group < 8; group++) {
        const unsigned char *at = packed + (group & 3);
        int first = group < 4 ? at[0] & 63 : (at[8] & 15) | (at[0] >> 6) << 4;
        int second = group < 4 ? at[4] & 63 : at[8] >> 4 | (at[4] >> 6) << 4;
        float group_scale = scale * (float)first, group_least = least * (float)second;
        for (i = 0; i < 32; i++) {
            int value = nibbles[group / 2 * 32 + i] >> (group & 1) * 4 & 15;
            values[group * 32 + i] = group_scale * (float)value - group_least; /* both products are exact */
        }
    }
}
/* 16 groups of 16, each with a scale of 8 bits; lower 4 and upper 2 bits of the values stand apart */
static void vp_impl_gguf_q6_k(const unsigned char *block, float *values) {
    float scale = vp_impl_gguf_half(block + 208);
    int i;
    for (i = 0; i < 256; i++) {
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

#ifdef __cplusplus
}
#endif
#endif /* implementation */
