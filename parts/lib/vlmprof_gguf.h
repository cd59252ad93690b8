/* vlmprof_gguf.h - v0.2.0 - llama.cpp's model files - MIT licence
 *
 * Reads the keys and tensors of a GGUF file, with values in float32. From such a file, with or without the mmproj file
 * of a vision tower, it makes the text files of a model folder and a checkpoint with transformers' tensor names. Uses
 * malloc and mmap. */
#ifndef VLMPROF_GGUF_H
#define VLMPROF_GGUF_H
#include "vlmprof.h"
#include "vlmprof_file.h"
#include "vlmprof_checkpoint.h"

VP_EXTERN_C_BEGIN

/* ---- a file */
typedef struct vp_gguf vp_gguf;
typedef enum vp_gguf_kind { /* numbered as in the format */
    VP_GGUF_U8, VP_GGUF_I8, VP_GGUF_U16, VP_GGUF_I16, VP_GGUF_U32, VP_GGUF_I32, VP_GGUF_F32, VP_GGUF_BOOL,
    VP_GGUF_STRING, VP_GGUF_ARRAY, VP_GGUF_U64, VP_GGUF_I64, VP_GGUF_F64, VP_GGUF_KIND_COUNT
} vp_gguf_kind;
/* A text in the file, not NUL-terminated. The format requires UTF-8, but a hostile file may contain any bytes. */
typedef struct vp_gguf_text { const char *text; size_t bytes; } vp_gguf_text;
typedef struct vp_gguf_value {
    vp_gguf_text name;
    vp_gguf_kind kind, item;   /* item: kind of an array's items, else as kind */
    uint64_t count;            /* items of an array, else 1 */
    const unsigned char *data; /* `count` consecutive items, little-endian; a string is its u64 size, then the text */
    uint64_t bytes;            /* size of data */
} vp_gguf_value;
typedef struct vp_gguf_tensor {
    vp_gguf_text name;
    uint32_t type;             /* ggml's number */
    int32_t dimensions;
    int64_t shape[4];          /* outermost first */
    const unsigned char *data;
    uint64_t bytes;            /* size of data */
} vp_gguf_tensor;

/* Maps a file and checks everything except the values of its tensors.
 * in:      path     path of the file
 *          data     [bytes] a whole file in memory, which must outlive the result; where: its name, also in errors
 * out:     gguf     on success only; release with vp_gguf_close
 * returns: VP_OK; VP_ERR_NOT_FOUND, VP_ERR_READ; VP_ERR_FORMAT: a malformed file (error: where is the file, offset the
 *          byte offset); VP_ERR_UNSUPPORTED: version 1, big-endian, arrays of arrays, a part of a split model;
 *          VP_ERR_MEMORY
 * rule:    version 2 or 3; no duplicate key or tensor; shapes have 1 to 4 positive dimensions; each tensor
 *          begins where the previous one ends, rounded up to general.alignment (32 unless given; a power of two,
 *          8 to 2^20), and all are in the file. Tensors of unknown types have 0 bytes and must come last
 * source:  github.com/ggml-org/ggml docs/gguf.md; llama.cpp ggml/src/gguf.cpp
 * memory:  at most 80 bytes per key and per tensor; each takes at least 13 bytes of the file
 * threads: reentrant; many threads may read one file */
VP_API vp_result vp_gguf_open(const char *path, vp_gguf **gguf, vp_error *error);
VP_API vp_result vp_gguf_read(const void *data, size_t bytes, const char *where, vp_gguf **gguf, vp_error *error);
VP_API void vp_gguf_close(vp_gguf *gguf); /* NULL is allowed */

/* Keys and tensors in the order of the file. returns: VP_OK; VP_ERR_RANGE: an index past the end, or NULL; _find:
 * VP_ERR_NOT_FOUND. memory: none. threads: reentrant */
VP_API vp_result vp_gguf_value_at(const vp_gguf *gguf, uint64_t index, vp_gguf_value *value);
VP_API vp_result vp_gguf_value_find(const vp_gguf *gguf, const char *name, vp_gguf_value *value);
VP_API vp_result vp_gguf_tensor_at(const vp_gguf *gguf, uint64_t index, vp_gguf_tensor *tensor);
VP_API vp_result vp_gguf_tensor_find(const vp_gguf *gguf, const char *name, vp_gguf_tensor *tensor);
/* Reads the next item of a value. in: byte offset into value->data, 0 at first; out: offset of the following item.
 * _text reads strings; _number reads all other kinds (BOOL: 0 or 1; integers over 2^53 are rounded). Returns 1; 0 if
 * there is no item or it has the wrong kind. */
VP_API int vp_gguf_next_text(const vp_gguf_value *value, uint64_t *offset, vp_gguf_text *text);
VP_API int vp_gguf_next_number(const vp_gguf_value *value, uint64_t *offset, double *number);

/* "F32", "Q4_K" and so on; NULL for an unknown type. */
VP_API const char *vp_gguf_type_name(uint32_t type);
/* Finds the dtype of a type. Returns 1; 0 if vlmprof does not read this type (*dtype is untouched). */
VP_API int vp_gguf_type_dtype(uint32_t type, vp_dtype *dtype);

/* Converts a tensor's values to float32: exact for F32, F16 and BF16; for blocks, with ggml's operations.
 * in:      dtype   type of data
 *          data    whole blocks: 32 values in 34 bytes (Q8_0), 22 (Q5_0), 18 (Q4_0); 256 in 144 (Q4_K), 210 (Q6_K)
 *          count   number of values, a multiple of vp_dtype_block(dtype)
 * out:     values  float32 [count]
 * source:  llama.cpp ggml/src/ggml-quants.c, dequantize_row_*; gguf-py/gguf/quants.py
 * memory:  none
 * threads: reentrant */
VP_API void vp_dtype_to_f32(vp_dtype dtype, const unsigned char *data, size_t count, float *values);
/* number of values in a block, 1 for plain types; and its size in bytes */
VP_API int32_t vp_dtype_block(vp_dtype dtype);
VP_API int32_t vp_dtype_block_bytes(vp_dtype dtype);

/* ---- a model */
/* Makes the text of a file in a transformers model folder from the metadata: config.json, preprocessor_config.json,
 * tokenizer.json or chat_template.jinja.
 * in:      model      a language model: llama, qwen2, qwen3, olmoe, qwen3moe, gemma3, qwen2vl, qwen3vl
 *          projector  mmproj file of its vision tower; NULL: text only. projector_type mlp (LLaVA-1.5), idefics3
 *                     (SmolVLM) and internvl go with llama, qwen2 and qwen3; qwen2.5vl_merger with qwen2vl,
 *                     qwen3vl_merger with qwen3vl, gemma3 with gemma3
 * out:     text       malloc'ed, with NUL; the caller frees it
 * returns: VP_OK; VP_ERR_NOT_FOUND: such a model has no file with that name; VP_ERR_FORMAT: a key is missing or has the
 *          wrong kind; VP_ERR_UNSUPPORTED: an architecture, tower, tokenizer or option that vlmprof lacks (named);
 *          VP_ERR_MISMATCH: the files do not belong together; VP_ERR_MEMORY
 * rule:    the texts are read by vp_model_config_parse and vp_tokenizer_load, which check them. A SentencePiece
 *          vocabulary (tokenizer.ggml.model "llama") becomes merges ordered by the scores of their results. If a
 *          vocabulary has no image token, the padding or unknown token replaces it. Values missing from files are
 *          llama.cpp's: Qwen's images have 8 to 4096 tokens, InternVL's 1 to 12 tiles. In Gemma 3, every sixth block
 *          attends to everything; with 62 blocks, q is scaled by the head width that embedding_length implies.
 *          rope_freqs.weight of llama must follow Llama 3.1's rule for 8192 positions
 * source:  llama.cpp src/llama-vocab.cpp, tools/mtmd/clip.cpp, convert_hf_to_gguf.py; transformers 5.23.0,
 *          tokenization_utils_sentencepiece.py
 * memory:  about 8 times the text */
VP_API vp_result vp_gguf_file_text(const vp_gguf *model, const vp_gguf *projector, const char *name, char **text,
                                   size_t *bytes, vp_error *error);
/* Makes a checkpoint with the tensors of a config, by name.
 * in:      config      parsed from vp_gguf_file_text's config.json
 * out:     checkpoint  on success only; it uses the file mappings, so close it before the files
 * returns: VP_OK; VP_ERR_MISMATCH: a tensor is missing, has the wrong shape, or does not belong to the model;
 *          VP_ERR_UNSUPPORTED: a type other than F32, F16, BF16, Q8_0, Q5_0, Q4_0, Q4_K, Q6_K, or a block type for
 *          Qwen's patches or Gemma 3's projection, which must have one of the first three; VP_ERR_MEMORY
 * rule:    llama files store rows of q and k in pairs; they are read in transformers' order. The experts of a layer are
 *          slices of one tensor. Norm weights of gemma3 include 1 in the file. Qwen2.5-VL's q, k and v, and both frames
 *          of Qwen's patches, are joined. If an old file swaps up and down of a tower's MLP, they are swapped back.
 *          Parts of a tower that the engine does not run may be absent
 * source:  llama.cpp gguf-py/gguf/tensor_mapping.py, convert_hf_to_gguf.py LlamaModel.permute
 * memory:  about 230 bytes per tensor and expert, plus the joined tensors
 * threads: as vp_checkpoint_open */
VP_API vp_result vp_gguf_checkpoint(const vp_gguf *model, const vp_gguf *projector, const vp_model_config *config,
                                    vp_checkpoint **checkpoint, vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_GGUF_H */
