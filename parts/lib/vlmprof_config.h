/* vlmprof_config.h - v0.2.0 - config.json, built-in shapes, a model's tensors - MIT licence
 *
 * Reads the shape of a model from config.json and preprocessor_config.json, and lists the tensors of that shape. Uses
 * malloc. */
#ifndef VLMPROF_CONFIG_H
#define VLMPROF_CONFIG_H
#include "vlmprof_json.h"

/* lets the compiler check the arguments of a function like printf */
#ifdef __GNUC__
#define VP_IMPL_FORMAT(name, first) __attribute__((format(printf, name, first)))
#else
#define VP_IMPL_FORMAT(name, first)
#endif
VP_EXTERN_C_BEGIN

/* Parses a text into malloc'ed nodes; release them with free((void *)json->nodes).
 * in:      where  name of the text in errors
 * returns: as vp_json_parse; VP_ERR_MEMORY
 * threads: reentrant */
VP_API vp_result vp_json_load(const char *text, size_t bytes, const char *where, vp_json *json, vp_error *error);

/* The views of an image: its crops and a global view; the same, but a single crop is the whole image; only its crops */
typedef enum vp_views { VP_VIEWS_GLOBAL, VP_VIEWS_SPLIT, VP_VIEWS_CROPS } vp_views;
/* The supported models, with the values of `architectures` and `model_type` in config.json, and the views of an image.
 * MolmoE and Molmo-7B share the model_type "molmo"; Molmo-7B's config has a hidden_size. */
#define VP_ARCHITECTURES(X) \
    X(MOLMOE, "MolmoE", "OLMoForCausalLM", "molmo", GLOBAL) \
    X(MOLMO, "Molmo", "MolmoForCausalLM", "molmo", GLOBAL) \
    X(OLMOE, "OLMoE", "OlmoeForCausalLM", "olmoe", GLOBAL) \
    X(LLAVA, "LLaVA", "LlavaForConditionalGeneration", "llava", CROPS) \
    X(IDEFICS3, "Idefics3", "Idefics3ForConditionalGeneration", "idefics3", SPLIT) \
    X(SMOLVLM, "SmolVLM", "SmolVLMForConditionalGeneration", "smolvlm", SPLIT) \
    X(INTERNVL, "InternVL", "InternVLForConditionalGeneration", "internvl", SPLIT) \
    X(INTERNVL_CHAT, "InternVL (original)", "InternVLChatModel", "internvl_chat", SPLIT) \
    X(QWEN2_5_VL, "Qwen2.5-VL", "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", CROPS) \
    X(QWEN3_VL, "Qwen3-VL", "Qwen3VLForConditionalGeneration", "qwen3_vl", CROPS) \
    X(QWEN3_VL_MOE, "Qwen3-VL-MoE", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", CROPS) \
    X(GEMMA3, "Gemma 3", "Gemma3ForConditionalGeneration", "gemma3", SPLIT) \
    X(MOLMO2, "Molmo2", "Molmo2ForConditionalGeneration", "molmo2", GLOBAL) \
    X(LLAMA, "Llama", "LlamaForCausalLM", "llama", GLOBAL) \
    X(QWEN2, "Qwen2", "Qwen2ForCausalLM", "qwen2", GLOBAL) \
    X(QWEN3, "Qwen3", "Qwen3ForCausalLM", "qwen3", GLOBAL) \
    X(GEMMA3_TEXT, "Gemma 3 without a tower", "Gemma3ForCausalLM", "gemma3_text", GLOBAL) \
    X(QWEN3_MOE, "Qwen3-MoE", "Qwen3MoeForCausalLM", "qwen3_moe", GLOBAL)
typedef enum vp_architecture {
#define VP_ARCHITECTURE_ENUM(name, text, architecture, model_type, views) VP_ARCHITECTURE_##name,
    VP_ARCHITECTURES(VP_ARCHITECTURE_ENUM)
#undef VP_ARCHITECTURE_ENUM
        VP_ARCHITECTURE_COUNT
} vp_architecture;
VP_API const char *vp_architecture_name(vp_architecture architecture); /* for display; "unknown" outside the list */
/* The views by a name for display, as result files have it; GLOBAL for NULL and for an unknown name. */
VP_API vp_views vp_architecture_views(const char *name);

/* RMS norms of q and k: none, over the whole projected width, or over each head */
typedef enum vp_qk_norm { VP_QK_NORM_NONE, VP_QK_NORM_WHOLE, VP_QK_NORM_HEAD } vp_qk_norm;
/* x * sigmoid(1.702 x); x * Phi(x); the tanh approximation of x * Phi(x) */
typedef enum vp_gelu { VP_GELU_QUICK, VP_GELU_ERF, VP_GELU_TANH } vp_gelu;
/* The connector between tower and language model. NONE: text only. POOLING: attention over windows, then SwiGLU.
 * LINEAR, MLP, NORM_MLP and MERGER concatenate the patches of a window. LINEAR: one matrix. MLP: two matrices with GELU
 * between. NORM_MLP: MLP after a layer norm. MERGER: MLP with each patch normed first. MEAN: the mean of a window's
 * patches with an RMS norm, and one matrix. STITCHED: as POOLING, but with windows over the joined patches of all
 * crops, and over the first view */
typedef enum vp_connector {
    VP_CONNECTOR_NONE, VP_CONNECTOR_POOLING, VP_CONNECTOR_LINEAR, VP_CONNECTOR_MLP, VP_CONNECTOR_NORM_MLP,
    VP_CONNECTOR_MERGER, VP_CONNECTOR_MEAN, VP_CONNECTOR_STITCHED
} vp_connector;
/* Scaling of RoPE's frequencies. LINEAR divides all by factor. LLAMA3 divides those with a wavelength above
 * original_positions / low_frequency, with a smooth transition to unscaled ones below original_positions /
 * high_frequency. YARN divides those of pairs that turn less than low_frequency times in original_positions, with a
 * transition in steps of whole pairs to unscaled pairs that turn more than high_frequency times; it also multiplies
 * sines and cosines by magnitude */
typedef enum vp_rope_scaling { VP_ROPE_PLAIN, VP_ROPE_LINEAR, VP_ROPE_LLAMA3, VP_ROPE_YARN } vp_rope_scaling;
typedef struct vp_rope {
    vp_rope_scaling scaling;
    double factor, low_frequency, high_frequency, original_positions, magnitude; /* 0 if the scaling has none */
    /* M-RoPE: number of pairs in a head that are rotated by time, row and column of an image; 0, 0, 0: all by the
     * position in the sequence. The sections are blocks of pairs, or interleaved: pair i uses i % 3 until a section is
     * used up, and the rest use time */
    int32_t sections[3], interleaved;
} vp_rope;

enum { VP_VIT_LAYERS_MAX = 4 };
/* The shape of a model, from config.json (MolmoE's field names are in brackets). Counts and widths are positive, except
 * in parts that the model lacks: experts (expert_count 0), a dense MLP (mlp_dim 0), a tower (vit_block_count 0).
 * additional_vocab_size may be 0 too. */
typedef struct vp_model_config {
    vp_architecture architecture;
    int32_t d_model, head_count, head_dim, block_count; /* [d_model, n_heads, d_model / n_heads, n_layers] */
    int32_t kv_head_count;                              /* k and v heads; divides head_count */
    /* [moe_num_experts, mlp_hidden_size or mlp_ratio * d_model, halved; moe_top_k] */
    int32_t expert_count, expert_dim, top_k;
    int32_t mlp_dim;   /* hidden width of a dense MLP */
    int32_t norm_topk; /* 1: the chosen experts' weights sum to 1 */
    /* text tokens; rows of wte.embedding and lm_head; rows of wte.new_embedding */
    int32_t vocab_size, embedding_size, additional_vocab_size;
    int32_t tied_head;           /* 1: the head is the embedding */
    int32_t max_sequence_length; /* sequence length in training */
    /* most positions of a request [max_position_embeddings, else max_sequence_length] */
    int32_t max_positions;
    double rope_theta;
    vp_rope rope;
    float norm_eps; /* [layer_norm_eps] */
    vp_qk_norm qk_norm;
    int32_t qkv_bias, norm_after; /* norm_after 1: norms follow attention and MLP, and none
                                                                * precedes them */
    /* norm_around 1: norms before and after attention and MLP; norm_plus_one 1: RMS norm weights are stored minus 1 */
    int32_t norm_around, norm_plus_one;
    float embedding_scale; /* factor of text embeddings; 0: no factor */
    float query_scale;     /* factor of q in addition to 1 / sqrt(head_dim); 0: no factor */
    int32_t gated_gelu;    /* 1: the MLP's gate is tanh GELU instead of SiLU */
    /* 1: attention among the tokens of an image (vp_request.span_ends) is bidirectional */
    int32_t image_bidirectional;
    int32_t sliding_window;  /* tokens that a token attends to, including itself; 0: all earlier ones */
    uint64_t full_blocks;    /* bit b: block b has no window, and uses rope_theta and rope */
    double rope_local_theta; /* the theta of blocks with a window, unscaled */
    float clip_qkv;          /* q, k, v are clipped to -clip..clip; 0: not clipped */
    /* [vision_backbone.image_*]; vit_positions includes the class token */
    int32_t vit_width, vit_head_count, vit_head_dim, vit_mlp_dim, vit_block_count, vit_positions;
    int32_t vit_class_token; /* rows before the patches: 1 or 0 */
    int32_t vit_qkv_bias;    /* 1: q, k and v have a bias */
    vp_gelu vit_gelu;
    float vit_norm_eps;
    /* blocks whose outputs are used, as in the config (negative: from the end) */
    int32_t vit_layers[VP_VIT_LAYERS_MAX], vit_layer_count;
    /* blocks that must run for vit_layers: 1 + the largest index */
    int32_t vit_blocks_needed;
    /* 1: images of any size. A view is then one window of pool x pool patches (vit_positions), and all views of an
     * image, row by row, attend to each other */
    int32_t vit_native;
    double vit_rope_theta;      /* heads are rotated by row and column; 0: no rotation */
    int32_t vit_table_side;     /* side of the square of learned positions that is stretched over a native image; 0:
                                * no table */
    int32_t vit_rms, vit_gated; /* vit_rms 1: RMS norms without bias; vit_gated 1: a
                                                               * SwiGLU MLP */
    int32_t vit_qk_norm;        /* 1: q and k have RMS norms over all heads */
    int32_t vit_window;         /* side of the attention windows in merged patches; 0: no windows */
    uint64_t vit_full_blocks;   /* bit b: block b has no windows */
    /* number of features (vit_layers[1..]) that are added to image tokens after the first blocks of the language
     * model */
    int32_t deepstack_count;
    vp_connector connector;
    int32_t window_pool;    /* STITCHED: side of a window in patches; geometry.pool is 1. Otherwise 0 */
    int32_t projector_dim;  /* hidden width of the image projector; 0: one matrix */
    int32_t image_replaces; /* 1: image features replace the embeddings of image tokens; 0: they are added */
    vp_geometry geometry;   /* preprocessor_config.json, else config.json */
} vp_model_config;

/* Reads the shape of a model. Features that the engine does not implement are rejected with an error that names them.
 * in:      config_json        bytes [config_bytes]        text of config.json
 *          preprocessor_json  bytes [preprocessor_bytes]  text of preprocessor_config.json; NULL: geometry from
 *                             config.json and CLIP's mean and std
 * out:     config             on success only
 * returns: VP_OK; VP_ERR_FORMAT: invalid JSON or a value of the wrong type; VP_ERR_NOT_FOUND: a field is missing;
 *          VP_ERR_RANGE: a value is out of range; VP_ERR_UNSUPPORTED: a feature that the engine lacks; VP_ERR_MISMATCH:
 *          two fields contradict each other; VP_ERR_MEMORY. error->where is the field.
 * rule:    an absent field gets the default of the reference's ModelConfig. If that default is not implemented, the
 *          absent field is rejected too
 * source:  github.com/ChulanZhang/molmo_hf 09bce1f, molmo/models/config_molmoe.py and modeling_molmoe.py; the files
 *          next to the published Molmo-7B-D-0924; transformers 5.23.0, models/{olmoe,llava,idefics3,smolvlm,internvl,
 *          llama,qwen2,qwen3,qwen3_moe,clip,qwen2_5_vl,qwen3_vl,qwen3_vl_moe,gemma3,siglip,molmo2}/configuration_*.py;
 *          OpenGVLab/InternVL, internvl_chat/internvl/model/internvl_chat/configuration_*.py
 * memory:  temporary: about 40 bytes per JSON value
 * threads: reentrant */
VP_API vp_result vp_model_config_parse(const char *config_json, size_t config_bytes, const char *preprocessor_json,
                                       size_t preprocessor_bytes, vp_model_config *config, vp_error *error);
/* Built-in shapes. "tiny" (MolmoE's architecture), "tiny-dense" (Molmo-7B-D's), "tiny-qwen3-vl-moe" and
 * "tiny-gemma3" run in milliseconds. The others are shapes of real models; "qwen3-vl-30b-a3b-12-blocks" has the first
 * 12 of 48 blocks. They use a byte tokenizer. The special ids follow its ids; the last id of the vocabulary ends an
 * answer. The ids of image tokens are Molmo's.
 * returns: VP_OK; VP_ERR_NOT_FOUND: unknown name (outputs untouched); VP_ERR_MEMORY
 * memory:  temporary, as vp_model_config_parse
 * threads: reentrant */
VP_API vp_result vp_model_config_preset(const char *name, vp_model_config *config);
VP_API vp_result vp_model_preset_ids(const char *name, vp_special_ids *ids);
VP_API const char *vp_model_preset_name(int32_t index); /* NULL past the end */
/* A preset's preprocessor_config.json; NULL: not needed, or an unknown preset. */
VP_API const char *vp_model_preset_preprocessor(const char *name);

/* A tensor of a model: its name, and its shape with the outermost dimension first. */
enum { VP_TENSOR_DIMENSIONS_MAX = 5 };
typedef struct vp_tensor_spec {
    char name[112];
    int32_t dimensions;
    int64_t shape[VP_TENSOR_DIMENSIONS_MAX];
} vp_tensor_spec;
/* The number of tensors (3,573 for MolmoE-1B), and tensor `index` in a fixed order: embeddings, final norm, blocks,
 * connector, ViT, head.
 * in:      config  filled by vp_model_config_parse or from a preset
 *          index   0..count-1, else VP_ERR_RANGE
 * out:     spec    on success only
 * memory:  none
 * threads: reentrant */
VP_API int64_t vp_model_tensor_count(const vp_model_config *config);
VP_API vp_result vp_model_tensor(const vp_model_config *config, int64_t index, vp_tensor_spec *spec);

VP_EXTERN_C_END
#endif /* VLMPROF_CONFIG_H */
