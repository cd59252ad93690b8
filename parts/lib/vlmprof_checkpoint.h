/* vlmprof_checkpoint.h - v0.2.0 - safetensors, packed weights - MIT licence
 *
 * Reads the tensors of a model from safetensors files and packed weights, and checks them against its config. Uses
 * malloc, mmap and stdio. */
#ifndef VLMPROF_CHECKPOINT_H
#define VLMPROF_CHECKPOINT_H
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_file.h"

VP_EXTERN_C_BEGIN

/* The blocks of GGUF files follow the plain types; vp_dtype_to_f32 (vlmprof_gguf.h) reads them. */
typedef enum vp_dtype {
    VP_DTYPE_F32, VP_DTYPE_BF16, VP_DTYPE_F16,
    VP_DTYPE_Q8_0, VP_DTYPE_Q5_0, VP_DTYPE_Q4_0, VP_DTYPE_Q4_K, VP_DTYPE_Q6_K, VP_DTYPE_COUNT
} vp_dtype;
/* Conversions of one value. Conversion to f32 is exact (NaN becomes quiet). Conversion to bf16 rounds to nearest,
 * ties to even: subnormals are kept, values that are too large become infinity, NaN stays a quiet NaN with the same
 * sign.
 * memory:  none
 * threads: reentrant */
VP_API float vp_bf16_to_f32(uint16_t value);
VP_API uint16_t vp_f32_to_bf16(float value);
VP_API float vp_f16_to_f32(uint16_t value);

/* A tensor in a file: row-major, little-endian. `data` points into the mapping and may be unaligned for its type. */
typedef struct vp_tensor {
    vp_dtype dtype;
    int32_t dimensions;
    int64_t shape[VP_TENSOR_DIMENSIONS_MAX];
    const unsigned char *data;
    uint64_t bytes;
    int32_t shard; /* index of its file; shards are ordered by name; -1: no file */
    /* 0, or the number of heads with paired rows (GGUF files): rows 2i and 2i + 1 of a head in the file are rows i and
     * i + half of the head */
    int32_t paired_heads;
    int32_t with_one; /* 1: these norm weights include the 1 that the model's format omits (GGUF files) */
} vp_tensor;
/* owned: malloc'ed tensor.data, freed with the checkpoint; NULL: the data are in file tensor.shard */
typedef struct vp_named_tensor { char name[112]; vp_tensor tensor; unsigned char *owned; } vp_named_tensor;
typedef struct vp_checkpoint vp_checkpoint; /* one mapped safetensors file or a folder of shards */

/* Opens a model folder: model.safetensors; otherwise model.safetensors.index.json and the shards it names; otherwise
 * model.packed. Every header is checked strictly before any data is read. With a config, names and shapes are compared,
 * and one error lists missing, extra and misshapen tensors.
 * in:      directory   path of the folder
 *          config      NULL: any set of tensors is accepted
 * out:     checkpoint  on success only; close it with vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND: no folder, no weights or a missing shard; VP_ERR_READ; VP_ERR_FORMAT: a malformed
 *          file; VP_ERR_MISMATCH: names or shapes differ from the index or the config, packed weights for another
 *          config, safetensors next to packed weights; VP_ERR_UNSUPPORTED: pytorch_model.bin, OLMo's original format,
 *          packed weights with another version or byte order, or a needed tensor that is not F32, BF16 or F16;
 *          VP_ERR_MEMORY
 * rule:    header <= 100,000,000 bytes of JSON that begins with "{"; offsets tile the whole buffer without holes or
 *          overlaps; keys are unique. The index has plain file names: a slash, a backslash or ".." is VP_ERR_FORMAT, so
 *          that it cannot point outside the folder. Symbolic links are followed, because Hugging Face's cache consists
 *          of them
 * source:  github.com/huggingface/safetensors, safetensors/src/tensor.rs
 * memory:  about 120 bytes per tensor; files are mapped read-only and must not shrink while open
 * threads: one thread opens; many threads may then read one checkpoint */
VP_API vp_result vp_checkpoint_open(const char *directory, const vp_model_config *config, vp_checkpoint **checkpoint,
                                    vp_error *error);
/* Makes a checkpoint from tensors in memory, or in at most 2 files, which must outlive it.
 * in:      tensors  [count] malloc'ed; owned by the checkpoint on success. shard -1: in no file
 *          maps     [map_count] file mappings, indexed by tensor.shard; map_bytes: their sizes
 * returns: VP_OK; VP_ERR_MISMATCH: a duplicate name; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_checkpoint_of(vp_named_tensor *tensors, size_t count, const unsigned char *const *maps,
                                  const size_t *map_bytes, int32_t map_count, vp_checkpoint **checkpoint,
                                  vp_error *error);
/* Finds a tensor by name.
 * out:     tensor  on success only; tensor->data is valid until vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND (always so in packed weights); VP_ERR_UNSUPPORTED: a type other than F32, BF16, F16,
 *          or over 5 dimensions
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_checkpoint_find(const vp_checkpoint *checkpoint, const char *name, vp_tensor *tensor);
/* Finds a tensor by index, from 0; VP_ERR_NOT_FOUND past the last one. */
VP_API vp_result vp_checkpoint_at(const vp_checkpoint *checkpoint, size_t index, vp_tensor *tensor);
VP_API int32_t vp_checkpoint_shard_count(const vp_checkpoint *checkpoint);
/* Call this before reading a tensor (needed = 1: the system prefetches it) and afterwards (needed = 0: its pages leave
 * this process's memory, and another access reads the file again). So a checkpoint larger than memory can be read one
 * tensor at a time. This is only advice; the data never change.
 * memory:  none
 * threads: reentrant */
VP_API void vp_checkpoint_advise(const vp_checkpoint *checkpoint, const vp_tensor *tensor, int needed);

/* A packed file: a header, then the CPU engine's weights, byte for byte as in its memory. vp_engine_convert writes it,
 * and vp_engine_open uses it in place. Version 1 was only bf16 and lacked the fields after weights_bytes; such a file
 * is read as 16 bits everywhere. */
#define VP_PACKED_FILE "model.packed"
enum { VP_PACKED_VERSION = 2, VP_PACKED_HEADER_BYTES = 4096 };
typedef struct vp_packed {
    uint32_t version;             /* VP_PACKED_VERSION, or 1 */
    uint32_t panel_columns;       /* for the kernels that the weights were packed for */
    uint64_t model_hash;          /* vp_model_hash */
    uint64_t weights_bytes;
    /* bits per weight in the linears of the language model's blocks, its head, tower and connector: 16 (bf16), 8, 4 */
    uint32_t block_bits, head_bits, vision_bits;
    uint32_t quant_values;        /* integers per scale */
    uint32_t quant_order;         /* order of integers and bf16 scales in a panel: 1, see kernels/cpu/quant_rows.h */
    const unsigned char *weights; /* in the file mapping; not part of the header */
} vp_packed;
/* A hash of the names and shapes of all tensors and of the number of vision blocks that run. Packed weights fit any
 * config with the same hash. */
VP_API uint64_t vp_model_hash(const vp_model_config *config);
/* The header for packed weights: magic "VLMPACK", byte order, version, header length, the other fields above in order,
 * zeros, and in the last 8 bytes the FNV-1a hash of everything before them. */
VP_API void vp_packed_header(const vp_packed *packed, unsigned char header[VP_PACKED_HEADER_BYTES]);
/* out:     packed  on success only; packed->weights is valid until vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND: the folder contains safetensors */
VP_API vp_result vp_checkpoint_packed(const vp_checkpoint *checkpoint, vp_packed *packed);
/* The name for 16, 8 or 4 bits: "bf16", "int8", "int4". */
VP_API const char *vp_packed_precision(uint32_t bits);
/* The precision of packed weights for display: "int4, head int8, vision int4"; head and vision are omitted if bf16. */
VP_API void vp_packed_text(const vp_packed *packed, char text[40]);
VP_API void vp_checkpoint_close(vp_checkpoint *checkpoint); /* NULL is allowed */

VP_EXTERN_C_END
#endif /* VLMPROF_CHECKPOINT_H */
