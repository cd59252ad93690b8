/* vlmprof_checkpoint.h - v0.2.0 - safetensors - MIT licence
 *
 * Reads the tensors of a model from safetensors files, and checks them against its config. Uses
 * malloc, mmap and stdio. */
#ifndef VLMPROF_CHECKPOINT_H
#define VLMPROF_CHECKPOINT_H
#include "vlmprof.h"
#include "vlmprof_config.h"
#include "vlmprof_file.h"

VP_EXTERN_C_BEGIN

typedef enum vp_dtype { VP_DTYPE_F32, VP_DTYPE_BF16, VP_DTYPE_F16, VP_DTYPE_COUNT } vp_dtype;
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
    int32_t shard; /* index of its file; shards are ordered by name */
} vp_tensor;
typedef struct vp_checkpoint vp_checkpoint; /* one mapped safetensors file or a folder of shards */

/* Opens a model folder: model.safetensors; otherwise model.safetensors.index.json and the shards it names.
 * Every header is checked strictly before any data is read. With a config, names and shapes are compared,
 * and one error lists missing, extra and misshapen tensors.
 * in:      directory   path of the folder
 *          config      NULL: any set of tensors is accepted
 * out:     checkpoint  on success only; close it with vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND: no folder, no weights or a missing shard; VP_ERR_READ; VP_ERR_FORMAT: a malformed
 *          file; VP_ERR_MISMATCH: names or shapes differ from the index or the config; VP_ERR_UNSUPPORTED:
 *          pytorch_model.bin, OLMo's original format, or a needed tensor that is not F32, BF16 or F16; VP_ERR_MEMORY
 * rule:    header <= 100,000,000 bytes of JSON that begins with "{"; offsets tile the whole buffer without holes or
 *          overlaps; keys are unique. The index has plain file names: a slash, a backslash or ".." is VP_ERR_FORMAT, so
 *          that it cannot point outside the folder. Symbolic links are followed, because Hugging Face's cache consists
 *          of them
 * source:  github.com/huggingface/safetensors, safetensors/src/tensor.rs
 * memory:  about 120 bytes per tensor; files are mapped read-only and must not shrink while open
 * threads: one thread opens; many threads may then read one checkpoint */
VP_API vp_result vp_checkpoint_open(const char *directory, const vp_model_config *config, vp_checkpoint **checkpoint,
                                    vp_error *error);
/* Returns 1 if the folder has a matrix for the head, which transformers uses even if config.json ties the head to the
 * embeddings; 0 if it has none or cannot be read. */
VP_API int vp_checkpoint_has_head(const char *directory);
/* Finds a tensor by its name in vp_model_tensor; names of other versions of transformers count as the same, and buffers
 * that it computes (position_ids, inv_freq) are not extra.
 * out:     tensor  on success only; tensor->data is valid until vp_checkpoint_close
 * returns: VP_OK; VP_ERR_NOT_FOUND; VP_ERR_UNSUPPORTED: a type other than F32, BF16, F16,
 *          or over 5 dimensions
 * memory:  none
 * threads: reentrant */
VP_API vp_result vp_checkpoint_find(const vp_checkpoint *checkpoint, const char *name, vp_tensor *tensor);
/* Call this before reading a tensor (needed = 1: the system prefetches it) and afterwards (needed = 0: its pages leave
 * this process's memory, and another access reads the file again). So a checkpoint larger than memory can be read one
 * tensor at a time. This is only advice; the data never change.
 * memory:  none
 * threads: reentrant */
VP_API void vp_checkpoint_advise(const vp_checkpoint *checkpoint, const vp_tensor *tensor, int needed);

VP_API void vp_checkpoint_close(vp_checkpoint *checkpoint); /* NULL is allowed */

VP_EXTERN_C_END
#endif /* VLMPROF_CHECKPOINT_H */
