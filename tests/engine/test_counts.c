/* test_counts.c - the FLOPs and bytes that the engine reports for each operation, against counts by hand, which follow the model's equations and are written here from
 * the shapes alone. Every launch must be on the list with its part, shape and counts, and every entry of the list must have run.
 *
 * There are two ways: requests that really run on the golden checkpoints, and requests of the real size, whose launches are only recorded. The weights and buffers of the
 * latter are addresses that must not be touched. At the real size the sums are also compared with numbers computed on paper. */
#include "vlmprof_checkpoint.h"
#include "vlmprof_stages.h"
#include "vlmprof_engine.h"

#include "engine/engine_internal.h"

#include "support/check.h"

/* ---------------------------------------------------------------------------------------------------------------- the list */
enum { ENTRIES_MAX = 64, ROOM = 16384 };
typedef struct entry { int part; const char *name; int64_t shape[4], calls, flops, bytes, seen; } entry;
static entry list[ENTRIES_MAX];
static int entries;
static vp_launch launches[ROOM];

/* the model's numbers under the names of its config */
typedef struct dims {
    int64_t d, heads, head_dim, blocks, experts, expert_dim, vocabulary, in; /* in: size of an in-type value in bytes */
    int64_t w, vit_heads, vit_mlp, vit_blocks, features, projector;          /* features: vit_layer_count * w */
    int64_t q, kv, norms, mlp, tokens, patches, values, windows, pool, gelu; /* norms: weights of the norms of q and k; gelu: FLOPs per value */
    int64_t pre_norm, post_norm, layer_scale, patch_bias, vit_bias, qkv_bias, after, replaces, norm_topk;
    vp_connector connector;
    int wide;
} dims;
static dims dims_of(const vp_model_config *c, int wide) {
    dims m;
    m.d = c->d_model; m.heads = c->head_count; m.head_dim = c->head_dim; m.blocks = c->block_count; m.experts = c->expert_count;
    m.expert_dim = c->expert_dim; m.vocabulary = c->embedding_size; m.in = wide ? 4 : 2;
    m.w = c->vit_width; m.vit_heads = c->vit_head_count; m.vit_mlp = c->vit_mlp_dim; m.vit_blocks = c->vit_blocks_needed;
    m.features = (int64_t)c->vit_layer_count * c->vit_width; m.projector = c->projector_dim;
    m.q = m.heads * m.head_dim; m.kv = c->kv_head_count * m.head_dim; m.mlp = c->mlp_dim;
    m.norms = c->qk_norm == VP_QK_NORM_NONE ? 0 : c->qk_norm == VP_QK_NORM_HEAD ? 2 * m.head_dim : m.q + m.kv;
    m.tokens = c->vit_positions; m.patches = m.tokens - c->vit_class_token; m.pool = c->geometry.pool;
    m.values = 3 * (int64_t)c->geometry.patch_px * c->geometry.patch_px; m.windows = vp_geometry_tokens_per_crop(&c->geometry);
    m.gelu = c->vit_gelu == VP_GELU_QUICK ? 4 : c->vit_gelu == VP_GELU_ERF ? 5 : 8;
    m.layer_scale = c->architecture == VP_ARCHITECTURE_INTERNVL || c->architecture == VP_ARCHITECTURE_INTERNVL_CHAT;
    m.pre_norm = c->vit_class_token && !m.layer_scale;
    m.post_norm = c->connector == VP_CONNECTOR_LINEAR;
    m.patch_bias = m.layer_scale || m.post_norm;
    m.vit_bias = c->vit_qkv_bias; m.qkv_bias = c->qkv_bias; m.after = c->norm_after; m.replaces = c->image_replaces; m.norm_topk = c->norm_topk;
    m.connector = c->connector;
    m.wide = wide;
    return m;
}
/* adds an entry, or the calls of an entry with the same part, name and shape */
static void add(int part, const char *name, int64_t a, int64_t b, int64_t c, int64_t d, int64_t calls, int64_t flops, int64_t bytes) {
    entry *e = list;
    int64_t shape[4];
    shape[0] = a; shape[1] = b; shape[2] = c; shape[3] = d;
    if (!calls) return;
    while (e < list + entries && (e->part != part || strcmp(e->name, name) || memcmp(e->shape, shape, sizeof shape) || e->flops != flops || e->bytes != bytes)) e++;
    if (e == list + entries) {
        if (!CHECK(entries < ENTRIES_MAX)) return;
        memset(e, 0, sizeof *e);
        e->part = part; e->name = name; e->flops = flops; e->bytes = bytes;
        memcpy(e->shape, shape, sizeof shape);
        entries++;
    }
    e->calls += calls;
}
/* x [m, k] W^T [n, k]: a product and a sum each; weights, inputs and results. A bias adds one operation per result and its floats, then `more` operations per result. */
enum { PLAIN, BIAS };
static void add_product(int part, int64_t m, int64_t n, int64_t k, int64_t calls, int bias, int64_t flops_a_result, int64_t bytes_a_result, int64_t in) {
    add(part, "gemm", m, n, k, 0, calls, m * n * (2 * k + bias + flops_a_result), n * k * in + m * k * in + m * n * bytes_a_result + bias * 4 * n);
}
/* gate and up [2 h, k], of some experts or 0, and SiLU of the gate times up [m, h], 4 operations each: together where h fills whole panels */
static void add_gated(int part, int64_t m, int64_t h, int64_t k, int64_t experts, int64_t calls, int64_t in) {
    const int fused = h % 32 == 0;
    add(part, experts ? "gemm_grouped" : "gemm", m, 2 * h, k, experts, calls, m * h * (4 * k + 4 * fused),
        ((experts ? experts : 1) * 2 * h + m) * k * in + m * h * (fused ? in : 8));
    if (!fused) add(part, "k_gate_mul", m, h, 0, 0, calls, 4 * m * h, m * h * (8 + in));
}
/* one ViT pass per view, `views` times */
static void list_vit(const dims *m, int64_t views) {
    const int64_t patches = m->patches, tokens = m->tokens, values = m->values, w = m->w, layers = m->features / m->w, blocks = m->vit_blocks * views;
    const int64_t scores = m->vit_heads * tokens * tokens, head_dim = w / m->vit_heads, scaled = m->layer_scale;
    add(VP_PART_VIT_EMBED, "k_convert", patches, values, 0, 0, views, 0, patches * values * (4 + m->in));
    add_product(VP_PART_VIT_EMBED, patches, w, values, views, (int)m->patch_bias, 0, 4, m->in);
    add(VP_PART_VIT_EMBED, "k_vit_embed", tokens, w, 0, 0, views, tokens * w, 4 * (patches * w + (tokens - patches) * w + tokens * w + tokens * w));
    /* f32 in and out */
    add(VP_PART_VIT_EMBED, "k_layernorm", tokens, w, 0, 0, m->pre_norm * views, 8 * tokens * w, tokens * w * 8 + 8 * w);
    add(VP_PART_VIT_DENSE, "k_layernorm", tokens, w, 0, 0, 2 * blocks, 8 * tokens * w, tokens * w * (4 + m->in) + 8 * w);
    add_product(VP_PART_VIT_DENSE, tokens, 3 * w, w, blocks, (int)m->vit_bias, 0, m->in, m->in);
    add_product(VP_PART_VIT_DENSE, tokens, m->vit_mlp, w, blocks, BIAS, m->gelu, m->in, m->in);
    for (int second = 0; second < 2; second++) /* added to the residual (read and written), or scaled before that */
        add_product(VP_PART_VIT_DENSE, tokens, w, second ? m->vit_mlp : w, blocks, BIAS, !scaled, scaled ? 4 : 8, m->in);
    add(VP_PART_VIT_DENSE, "k_add_scaled", tokens, w, 0, 0, scaled * 2 * blocks, 2 * tokens * w, 12 * tokens * w + 4 * w);
    /* two products and five softmax operations per score; q, k, v in, y out */
    add(VP_PART_VIT_ATTENTION, "attention", 1, tokens, tokens, w, blocks, scores * (4 * head_dim + 5), 4 * tokens * w * m->in);
    if (m->post_norm) add(VP_PART_VIT_DENSE, "k_layernorm", tokens, w, 0, 0, layers * views, 8 * tokens * w, tokens * w * 8 + 8 * w);
    else add(VP_PART_VIT_DENSE, "copy", 0, 0, 0, 0, layers * views, 0, 2 * tokens * w * 4); /* the outputs that the connector reads */
}
/* the patches of a window, concatenated, through one matrix or two */
static void list_windows(const dims *m, int64_t views) {
    const int64_t windows = m->windows, width = m->pool * m->pool * m->w, p = m->projector, normed = m->connector == VP_CONNECTOR_NORM_MLP;
    add(VP_PART_POOLING, "k_patch_windows", windows, width, 0, 0, views, 0, windows * width * (4 + (normed ? 4 : m->in)));
    add(VP_PART_PROJECTOR, "k_layernorm", windows, width, 0, 0, normed * views, 8 * windows * width, windows * width * (4 + m->in) + 8 * width);
    if (p) add_product(VP_PART_PROJECTOR, windows, p, width, views, BIAS, 5, m->in, m->in);
    add_product(VP_PART_PROJECTOR, windows, m->d, p ? p : width, views, p > 0, 0, 4, m->in);
}
/* 144 windows of 2 x 2 patches per view */
static void list_connector(const dims *m, int64_t views) {
    const int64_t windows = 144, n = 4, f = m->features, w = m->w, p = m->projector;
    if (m->connector != VP_CONNECTOR_POOLING) { list_windows(m, views); return; }
    /* FLOPs: per value, two sums for pad_embed and one for the mean; per value of a query, the mean's division */
    add(VP_PART_POOLING, "k_pool_windows", windows, f, 0, 0, views, 3 * windows * n * f + windows * f,
        4 * (windows * n * f + 576 + 1 + 2 * f) + (windows * n * f + windows * f) * m->in);
    add_product(VP_PART_POOLING, windows, w, f, views, BIAS, 0, 4, m->in);
    add_product(VP_PART_POOLING, windows * n, 2 * w, f, views, BIAS, 0, 4, m->in);
    add(VP_PART_POOLING, "k_pool_attention", windows, 1, n, w, views, windows * w * 4 * n + windows * m->vit_heads * n * 5, windows * w * (4 + 2 * 4 * n + m->in));
    add_product(VP_PART_POOLING, windows, w, w, views, BIAS, 0, m->in, m->in);
    add_gated(VP_PART_PROJECTOR, windows, p, w, 0, views, m->in);
    add_product(VP_PART_PROJECTOR, windows, m->d, p, views, PLAIN, 0, 4, m->in);
}
static void list_embed(const dims *m, int64_t rows, int64_t views) {
    const int64_t features = views * m->windows;
    add(VP_PART_EMBED, "k_embed", rows, m->d, 0, 0, 1, 0, rows * (m->d * (m->in + 4) + 4));
    if (views && m->replaces) add(VP_PART_EMBED, "k_place_rows", features, m->d, 0, 0, 1, 0, features * (m->d * 8 + 4));
    else if (views) add(VP_PART_EMBED, "k_scatter_add", features, m->d, 0, 0, 1, features * m->d, features * (m->d * 12 + 4));
}
/* the norms before attention and MLP, and the sums into the residual; norms may be before or after */
static void list_norms(const dims *m, int64_t rows, int64_t inner) {
    const int64_t d = m->d, b = m->blocks;
    add_product(VP_PART_DENSE, rows, d, inner, b, PLAIN, !m->after, m->after ? 4 : 8, m->in);
    if (m->after) add(VP_PART_DENSE, "k_convert", rows, d, 0, 0, b, 0, rows * d * (4 + m->in));
    else add(VP_PART_DENSE, "k_rmsnorm", rows, d, 0, 0, b, 4 * rows * d, rows * d * (4 + m->in) + 4 * d);
    if (m->after) add(VP_PART_DENSE, "k_add_rmsnorm", rows, d, 0, 0, b, 5 * rows * d, rows * d * 12 + 4 * d);
}
/* a dense MLP */
static void list_mlp(const dims *m, int64_t rows) {
    list_norms(m, rows, m->mlp);
    add_gated(VP_PART_DENSE, rows, m->mlp, m->d, 0, m->blocks, m->in);
}
/* `rows` tokens through all blocks; keys: number of keys of a single token, including itself; used[i]: number of experts of the i-th sparse block that got a token */
static void list_blocks(const dims *m, int64_t rows, int64_t keys, int64_t k, const int64_t *used) {
    const int64_t d = m->d, h = m->expert_dim, pairs = rows * k, b = m->blocks, q = m->q, kv = m->kv;
    const int64_t scores = m->heads * (rows > 1 ? rows * (rows + 1) / 2 : keys);
    list_norms(m, rows, q);
    add_product(VP_PART_DENSE, rows, q + 2 * kv, d, b, (int)m->qkv_bias, 0, 4, m->in);
    /* q and k: 4 for the norm, 3 for the rotation; q, k, v are read as f32 and written; two norms, the table of angles, a position */
    add(VP_PART_ATTENTION, "k_qk_norm_rope", rows, q, 0, 0, b, (m->norms ? 7 : 3) * rows * (q + kv),
        rows * (q + 2 * kv) * (4 + m->in) + 4 * (m->norms + rows * m->head_dim + 1));
    if (rows > 1) add(VP_PART_ATTENTION, "attention", 1, rows, rows, q, b, scores * (4 * m->head_dim + 5), 2 * rows * (q + kv) * m->in);
    else add(VP_PART_ATTENTION, "k_attention_decode", 1, 1, keys, q, b, scores * (4 * m->head_dim + 5), (2 * keys * kv + 2 * q) * m->in + 4);
    if (!m->experts) { list_mlp(m, rows); return; }
    add(VP_PART_DENSE, "k_rmsnorm", rows, d, 0, 0, b, 4 * rows * d, rows * d * (4 + m->in) + 4 * d);
    if (!m->wide) add(VP_PART_ROUTER, "k_rmsnorm", rows, d, 0, 0, b, 4 * rows * d, rows * d * 8 + 4 * d); /* the router's input is f32 */
    add_product(VP_PART_ROUTER, rows, m->experts, d, b, PLAIN, 0, 4, 4);
    add(VP_PART_ROUTER, "k_router", rows, m->experts, 0, 0, b, rows * m->experts * (4 + m->experts) + (m->norm_topk ? 2 * pairs : 0),
        rows * m->experts * 4 + pairs * 8);
    /* each expert compares each pair three times; reads pairs, writes counts, starts and two lists */
    add(VP_PART_EXPERTS, "k_moe_lists", pairs, m->experts, 0, 0, b, 3 * m->experts * pairs, pairs * 4 + (2 * m->experts + 1) * 4 + pairs * 8);
    add(VP_PART_EXPERTS, "k_gather", pairs, d * m->in, 0, 0, b, 0, (rows + pairs) * d * m->in + pairs * 4);
    for (int64_t i = 0; i < b; i++) {
        add_gated(VP_PART_EXPERTS, pairs, h, d, used[i], 1, m->in);
        add(VP_PART_EXPERTS, "gemm_grouped", pairs, d, h, used[i], 1, pairs * d * 2 * h, used[i] * d * h * m->in + pairs * (h * m->in + d * 4));
    }
    add(VP_PART_EXPERTS, "k_combine", rows, d, 0, 0, b, 2 * pairs * d, rows * d * 8 + pairs * (d * 4 + 8));
}
static void list_head(const dims *m) {
    add(VP_PART_HEAD, "k_rmsnorm", 1, m->d, 0, 0, 1, 4 * m->d, m->d * (4 + m->in) + 4 * m->d);
    add_product(VP_PART_HEAD, 1, m->vocabulary, m->d, 1, PLAIN, 0, 4, m->in);
    add(VP_PART_SAMPLE, "k_argmax", 1, m->vocabulary, 0, 0, 1, 2 * m->vocabulary, m->vocabulary * 4 + 4);
    add(VP_PART_SAMPLE, "k_advance", 1, 1, 0, 0, 1, 1, 8);
}
/* Each record uses up one call of its entry. `damage` is added to the expected FLOPs, and the check must then fail. */
static int compare(const vp_launch *l, int64_t count, int64_t damage, int tell) {
    for (int i = 0; i < entries; i++) list[i].seen = 0;
    for (int64_t i = 0; i < count; i++, l++) {
        entry *e = list;
        for (; e < list + entries; e++) {
            int same = e->part == l->part && !strcmp(e->name, l->name) && e->seen < e->calls && e->flops + damage == (int64_t)l->flops &&
                e->bytes == (int64_t)l->bytes;
            for (int k = 0; k < 4; k++) same = same && e->shape[k] == l->shape[k];
            if (same) break;
        }
        if (e == list + entries)
            return !tell ? 0 : check_note(0, __FILE__, __LINE__, "%s of %s [%d %d %d %d]: %llu FLOPs, %llu bytes: not on the list", l->name,
                                          vp_part_name((vp_part)l->part), (int)l->shape[0], (int)l->shape[1], (int)l->shape[2], (int)l->shape[3],
                                          (unsigned long long)l->flops, (unsigned long long)l->bytes);
        e->seen++;
    }
    for (int i = 0; i < entries; i++)
        if (list[i].seen != list[i].calls)
            return !tell ? 0 : check_note(0, __FILE__, __LINE__, "%s of %s: %lld calls, expected %lld", list[i].name, vp_part_name((vp_part)list[i].part),
                                          (long long)list[i].seen, (long long)list[i].calls);
    return 1;
}
static void verdict(const vp_launch *l, int64_t count) {
    compare(l, count, 0, 1);
    CHECK(!compare(l, count, 1, 0)); /* the comparison is able to fail */
}

/* ---------------------------------------------------------------------------------------- real requests on the golden checkpoints */
static int64_t used_experts[64];
/* The router chooses the experts of a sparse block. They are read from the records, and must be possible and equal in both products. */
static void read_used(const vp_launch *l, int64_t count, const dims *m, int64_t pairs) {
    int64_t products = 0;
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(l[i].name, "gemm_grouped") || !CHECK(products < 2 * m->blocks)) continue;
        if (products % 2 == 0) used_experts[products / 2] = l[i].shape[3];
        CHECK(l[i].shape[3] == used_experts[products / 2] && l[i].shape[3] >= 1 && l[i].shape[3] <= m->experts && l[i].shape[3] <= pairs);
        products++;
    }
    CHECK_INT(products, 2 * m->blocks);
}
static void test_golden(const char *name, int wide, int top_k) {
    enum { PROMPT = 150, NEW = 3 };
    static int32_t ids[PROMPT], index[144], blocks[64], tokens[NEW];
    static int64_t step_ns[NEW];
    static float pixels[576 * 588], masks[576];
    const int views = strcmp(name, "othermodels/olmoe/checkpoint") != 0;
    char path[128];
    size_t bytes = 0;
    vp_model_config config;
    vp_checkpoint *checkpoint = NULL;
    vp_engine_options options = vp_engine_options_default();
    vp_engine *engine = NULL;
    vp_request r = {0};
    vp_reply reply = {0};
    vp_error error = {0};
    int64_t at = 0, end;
    check_case("%s, %s, top_k %d: every operation of a request", name, wide ? "fp32" : "bf16", top_k);
    snprintf(path, sizeof path, "tests/golden/%s/config.json", name);
    char *text = check_read(path, &bytes);
    snprintf(path, sizeof path, "tests/golden/%s", name);
    if (!CHECK(text) || !CHECK_INT(vp_model_config_parse(text, bytes, NULL, 0, &config, &error), VP_OK) ||
        !CHECK_INT(vp_checkpoint_open(path, &config, &checkpoint, &error), VP_OK)) return;
    options.config = &config; options.checkpoint = checkpoint; options.device = "cpu"; options.threads = 2;
    options.weights = wide ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16; options.max_sequence = PROMPT + NEW; options.max_views = 1;
    if (!CHECK_INT(vp_engine_open(&options, &engine, &error), VP_OK)) return;
    dims m = dims_of(&config, wide);
    for (int i = 0; i < PROMPT; i++) ids[i] = 5 + i * 7 % (config.vocab_size - 10);
    for (int i = 0; i < 144; i++) index[i] = i + 1;
    for (int i = 0; i < 576 * 588; i++) pixels[i] = 0.5f * sinf((float)i);
    for (int i = 0; i < 576; i++) masks[i] = 1.0f;
    for (int i = 0; i < config.block_count; i++) blocks[i] = i;
    r.input_ids = ids; r.input_count = PROMPT; r.pixels = pixels; r.image_masks = masks; r.image_input_idx = index; r.views = views; r.top_k = top_k;
    r.active_blocks = blocks; r.active_block_count = config.block_count; r.max_new_tokens = NEW; r.ignore_eos = 1; r.eos_id = -1;
    r.timing = VP_TIMING_KERNEL; r.launches = launches; r.launch_capacity = ROOM;
    reply.tokens = tokens; reply.step_ns = step_ns;
    if (CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK) && CHECK(reply.launch_count <= ROOM)) {
        for (int step = 0; step < NEW; step++, at = end) { /* first the prefill and everything before it, then each decode step */
            for (end = at; end < reply.launch_count && launches[end].step == step; end++) {}
            entries = 0;
            if (m.experts) read_used(launches + at, end - at, &m, step ? top_k : (int64_t)PROMPT * top_k);
            if (step == 0 && views) { list_vit(&m, 1); list_connector(&m, 1); }
            list_embed(&m, step ? 1 : PROMPT, step == 0 && views);
            list_blocks(&m, step ? 1 : PROMPT, PROMPT + step, top_k, used_experts);
            list_head(&m);
            verdict(launches + at, end - at);
        }
        CHECK_INT(at, reply.launch_count);
    }
    vp_engine_close(engine);
    vp_checkpoint_close(checkpoint);
    free(text);
}

/* ----------------------------------------------------------------------------------------------- requests of real size, only recorded */
/* an engine without memory: its addresses fault when touched, which proves that recording does nothing else */
static vp_engine *open_paper(const vp_model_config *config, int wide, int max_sequence, int max_views) {
    vp_engine_options options = vp_engine_options_default();
    vp_engine *e = NULL;
    vp_error error;
    options.config = config; options.device = "cpu"; options.gemm = "plain"; options.threads = 1; options.counts_only = 1;
    options.weights = wide ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16; options.max_sequence = max_sequence; options.max_views = max_views;
    if (!CHECK_INT(vp_engine_open(&options, &e, &error), VP_OK)) return NULL;
    e->pixels = e->masks = (const float *)e->weights;
    e->queue->dry = 1;
    e->queue->log = launches;
    e->queue->log_capacity = ROOM;
    return e;
}
/* TFLOPs and GB computed on paper for MolmoE-1B in bf16 at k = 8: products are 2 m n k, attention is the lower triangle, every weight counts once */
typedef struct paper { int tokens; double dense, experts, attention, vit, decode_gb; } paper;
static const paper papers[] = {
    { 482, 0.2588, 0.7763, 0.01526, 1.0504, 2.4252 },
    { 1058, 0.5680, 1.7040, 0.07343, 1.0504, 2.5007 },
    { 1922, 1.0319, 3.0956, 0.24222, 1.0504, 2.6140 },
};
static double sum_of(int64_t count, int first_part, int last_part, int bytes) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (launches[i].part >= first_part && launches[i].part <= last_part) sum += (double)(bytes ? launches[i].bytes : launches[i].flops);
    return sum;
}
static void test_paper(const char *name, const vp_model_config *config, int wide, const paper *on, int top_k) {
    vp_request r = {0};
    vp_reply reply = {0};
    static int32_t blocks[64];
    const int views = 3;
    dims m = dims_of(config, wide);
    int64_t pairs = (int64_t)on->tokens * top_k;
    check_case("%s, %s: %d tokens and %d views at top_k %d, recorded", name, wide ? "fp32" : "bf16", on->tokens, views, top_k);
    vp_engine *e = open_paper(config, wide, on->tokens + 8, views);
    if (!e) return;
    for (int i = 0; i < config->block_count; i++) { blocks[i] = i; used_experts[i] = pairs < m.experts ? pairs : m.experts; }
    r.input_count = on->tokens; r.views = views; r.top_k = top_k; r.active_blocks = blocks; r.active_block_count = config->block_count;
    e->image_tokens = vk_image_tokens(config, views, 1, views);
    vk_begin_pruning(e, &r);
    vk_prefill(e, &r, &reply);
    entries = 0;
    list_vit(&m, views);
    list_connector(&m, views);
    list_embed(&m, on->tokens, views);
    list_blocks(&m, on->tokens, on->tokens, top_k, used_experts);
    list_head(&m);
    if (CHECK(e->queue->log_count <= ROOM)) verdict(launches, e->queue->log_count);
    if (on->dense > 0.0 && !wide) {
        CHECK_NEAR(sum_of(e->queue->log_count, VP_PART_DENSE, VP_PART_DENSE, 0) * 1e-12, on->dense, 0.003 * on->dense); /* norms add less than 0.3 % */
        CHECK_NEAR(sum_of(e->queue->log_count, VP_PART_EXPERTS, VP_PART_EXPERTS, 0) * 1e-12, on->experts, 0.003 * on->experts);
        CHECK_NEAR(sum_of(e->queue->log_count, VP_PART_ATTENTION, VP_PART_ATTENTION, 0) * 1e-12, on->attention, 0.03 * on->attention); /* softmax and RoPE add to this */
        CHECK_NEAR(sum_of(e->queue->log_count, VP_PART_VIT_EMBED, VP_PART_VIT_ATTENTION, 0) * 1e-12, on->vit, 0.005 * on->vit);
    }
    e->queue->log_count = 0;
    vk_step(e, &r, on->tokens);
    for (int i = 0; i < config->block_count; i++) used_experts[i] = top_k;
    entries = 0;
    list_embed(&m, 1, 0);
    list_blocks(&m, 1, on->tokens + 1, top_k, used_experts);
    list_head(&m);
    verdict(launches, e->queue->log_count);
    if (on->decode_gb > 0.0 && !wide)
        CHECK_NEAR(sum_of(e->queue->log_count, VP_PART_EMBED, VP_PART_SAMPLE, 1) * 1e-9, on->decode_gb, 0.005 * on->decode_gb);
    vp_engine_close(e);
}

int main(void) {
    static const paper tiny = { 482, 0, 0, 0, 0, 0 };
    vp_model_config real, small;
    for (int wide = 0; wide < 2; wide++) {
        test_golden("models/tiny-a", wide, 2);
        test_golden("models/tiny-a", wide, 8);
        test_golden("models/tiny-b", wide, 8);
        test_golden("models/tiny-b", wide, 1);
        test_golden("othermodels/olmoe/checkpoint", wide, 2);
        test_golden("othermodels/molmo_7b_o/checkpoint", wide, 0); /* norms after the sublayers */
        test_golden("othermodels/molmo_7b_d/checkpoint", wide, 0); /* shared heads and a bias */
        test_golden("othermodels/llava/checkpoint", wide, 0);
        test_golden("othermodels/smolvlm/checkpoint", wide, 0);
        test_golden("othermodels/internvl/checkpoint", wide, 0);
    }
    check_case("presets");
    CHECK_INT(vp_model_config_preset("molmoe-1b", &real), VP_OK);
    CHECK_INT(vp_model_config_preset("tiny", &small), VP_OK);
    for (size_t i = 0; i < sizeof papers / sizeof papers[0]; i++) {
        test_paper("MolmoE-1B", &real, 0, &papers[i], 8);
        test_paper("MolmoE-1B", &real, 1, &papers[i], 8);
    }
    test_paper("MolmoE-1B", &real, 0, &tiny, 1);
    test_paper("tiny", &small, 0, &tiny, 2);
    return check_done("test_counts");
}
