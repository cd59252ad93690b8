/* vlmprof_tokenizer.h - v0.2.0 - BPE from tokenizer.json - MIT licence
 *
 * Byte-level BPE as in GPT-2, GPT-NeoX, OLMo, Qwen2 and SmolLM2, and BPE of characters with byte fallback as in Llama,
 * read from a Hugging Face tokenizer.json. Uses malloc. A tokenizer does not change after loading, so any number of
 * threads may encode and decode with it. */
#ifndef VLMPROF_TOKENIZER_H
#define VLMPROF_TOKENIZER_H
#include "vlmprof.h"
#include "vlmprof_unicode.h"

VP_EXTERN_C_BEGIN

typedef struct vp_tokenizer vp_tokenizer;

/* Reads a tokenizer.json with a BPE model. Byte level: NFC or no normaliser; the pre-tokeniser ByteLevel with GPT-2's
 * pattern, by itself or after Digits (single digits), or after a Split with the pattern of cl100k (up to three digits
 * in a word) or of Qwen2 (one digit); decoder ByteLevel. Llama: spaces become U+2581 and one is prepended, no
 * pre-tokeniser, byte fallback. Gemma: the same, with nothing prepended. Metaspace instead of these normalisers: spaces
 * become U+2581, and one is prepended to every piece without one, only to the text, or never; each may begin a word. A
 * template may prepend one token to a text (vp_tokenizer_bos).
 * in:      json       [bytes]  the text of the file; read only during the call
 * out:     tokenizer  release with vp_tokenizer_free
 *          error      may be NULL; names the option, token or merge, with its byte offset if known
 * returns: VP_OK; VP_ERR_FORMAT: invalid JSON, a missing part, a duplicate token, a merge of unknown tokens;
 *          VP_ERR_UNSUPPORTED: a component or option that is not implemented (named), ids of 2^22 or more, added tokens
 *          over 1024 bytes; VP_ERR_MISMATCH: the id of an added token differs from the reference's; VP_ERR_MEMORY;
 *          VP_ERR_RANGE JSON nested deeper than 64 levels, json or tokenizer NULL
 * rule:    an unknown member anywhere is rejected, so a tokenizer is never applied only in part
 * source:  huggingface/tokenizers 0.20.3 and 0.23.3 (models/bpe, normalizers/prepend.rs, pre_tokenizers/{byte_level,
 *          digits,split}.rs, decoders/byte_fallback.rs, tokenizer/added_vocabulary.rs)
 * memory:  about 1.2 MB of Unicode tables + 60 bytes per token and merge; during the call about 12 times the file */
VP_API vp_result vp_tokenizer_load(const char *json, size_t bytes, vp_tokenizer **tokenizer, vp_error *error);

/* The built-in byte tokenizer of the synthetic presets: byte b is id 2 + b; the special ids have their usual contents.
 * in:      ids  0 .. 2^22 - 1 each, not 2..257, all different except that bos may equal eos
 * returns: VP_OK, VP_ERR_RANGE (an id outside its range, NULL), VP_ERR_MISMATCH (two meanings for one id),
 *          VP_ERR_MEMORY
 * rule:    "<|endoftext|>" (eos), "<|padding|>", "<im_start>", "<im_end>", "<im_patch>", "<im_col>" and "<|image|>" in
 *          a text become their ids, and back; there is no normalisation; other ids give no text when decoded */
VP_API vp_result vp_tokenizer_bytes(const vp_special_ids *ids, vp_tokenizer **tokenizer);
/* NULL is allowed. */
VP_API void vp_tokenizer_free(vp_tokenizer *tokenizer);

/* Finds the special ids by content (added tokens and vocabulary); "<|endoftext|>" is both bos and eos.
 * returns: VP_OK; VP_ERR_NOT_FOUND: a content is missing (named); VP_ERR_RANGE: NULL */
VP_API vp_result vp_tokenizer_special_ids(const vp_tokenizer *tokenizer, vp_special_ids *ids, vp_error *error);

/* The token that the file's template prepends to a text; -1 if there is none or the tokenizer is NULL. */
VP_API int32_t vp_tokenizer_bos(const vp_tokenizer *tokenizer);
/* The id of an added token by content; -1 if it is not found or an argument is NULL. */
VP_API int32_t vp_tokenizer_added_id(const vp_tokenizer *tokenizer, const char *content);

/* Encodes a text. It adds no BOS; the prompt builder does.
 * in:      text      UTF-8 [bytes], at most 2^29 bytes; NUL is a character like any other
 *          capacity  size of ids; 0 with ids NULL only counts
 * out:     ids       int32 [count], written only on VP_OK
 *          count     number of ids; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY, VP_ERR_FORMAT (not UTF-8), VP_ERR_RANGE (too long, NULL), VP_ERR_MEMORY
 * rule:    added tokens with normalized = false are cut out, leftmost and longest; each piece is normalised (NFC of
 *          Unicode 9.0, or Llama's spaces); added tokens with normalized = true are cut out; each piece is split into
 *          words by the file's pattern (GPT-2: 's 't 're 've 'm 'll 'd, or letters | numbers | others with one space in
 *          front, or white space; Unicode 14.0; Llama: the piece is one word); BPE merges by rank, leftmost first, in
 *          each word. A byte that is not in the vocabulary produces no id, as in the reference
 * memory:  about twice the text. Merging a word of n > 64 bytes takes 44 n bytes and O(n log n) time
 * threads: reentrant */
VP_API vp_result vp_tokenizer_encode(const vp_tokenizer *tokenizer, const char *text, size_t bytes, int32_t *ids,
                                     size_t capacity, size_t *count);

enum { VP_DECODE_SKIP_SPECIAL = 1, VP_DECODE_CLEAN_UP = 2 };
/* Decodes ids.
 * in:      ids int32 [count], any values; ids outside the vocabulary produce no text
 *          flags     VP_DECODE_SKIP_SPECIAL: special tokens produce no text. VP_DECODE_CLEAN_UP: spaces before . ? ! ,
 *                    and in English contractions are removed, as with transformers' clean_up_tokenization_spaces
 * out:     out       UTF-8 with NUL, written only on VP_OK (it may contain NUL characters: see needed)
 *          needed    bytes without the last NUL; written on VP_OK and VP_ERR_CAPACITY
 * returns: VP_OK, VP_ERR_CAPACITY (out has no room for needed + 1), VP_ERR_RANGE (unknown flags, NULL, over 2^40
 *          bytes), VP_ERR_MEMORY
 * rule:    a token's characters are bytes of the GPT-2 alphabet. A token with any other character decodes to its own
 *          UTF-8 text. If the joined bytes are not valid UTF-8, each maximal invalid part becomes one U+FFFD (Rust's
 *          from_utf8_lossy). Llama: U+2581 is a space, one leading space is dropped, and each byte of a run of byte
 *          tokens becomes U+FFFD if the run is not valid UTF-8
 * threads: reentrant */
VP_API vp_result vp_tokenizer_decode(const vp_tokenizer *tokenizer, const int32_t *ids, size_t count, int flags,
                                     char *out, size_t capacity, size_t *needed);

VP_EXTERN_C_END
#endif /* VLMPROF_TOKENIZER_H */
