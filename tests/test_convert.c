/* slow: checkpoints written, read and packed in every form, 7 s */
/* test_convert.c - the weights of a model in other forms: the same request gives the same bits from a checkpoint, from its bf16 folder, whole or in shards, and from
 * packed weights, which the engine uses in place if they are mapped. Also every error of vp_engine_convert, and the uses of packed weights that an engine rejects.
 * Headers are tested in test_checkpoint.c, the command in test_command_convert.c. */
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"

#include "engine/engine_internal.h"

#include "support/check.h"
#include "support/folder.h"

#include <signal.h>
#include <sys/resource.h>

enum { PROMPT = 24, IMAGE_AT = 2, NEW = 4, PATCHES = 576, VALUES = 588, WINDOWS = 144, LOGITS_MAX = 1024, BLOCKS_MAX = 8 };

static int there(const char *name) { return access(in_folder(name), F_OK) == 0; }

/* ------------------------------------------------------------------------------------------------------------ requests */
static float *pixels, *masks;
typedef struct answer { int32_t tokens[NEW]; float logits[NEW * LOGITS_MAX]; } answer;

static void request_once(vp_engine *engine, const vp_model_config *c, answer *a) {
    int32_t ids[PROMPT], index[WINDOWS], blocks[BLOCKS_MAX];
    int64_t step_ns[NEW];
    vp_request r = {0};
    vp_reply reply = {0};
    vp_error error;
    memset(a, 0xff, sizeof *a);
    CHECK(c->embedding_size <= LOGITS_MAX && c->block_count <= BLOCKS_MAX);
    for (int i = 0; i < PROMPT; i++) ids[i] = 5 + i * 7;
    for (int i = 0; i < WINDOWS; i++) index[i] = i < 12 ? IMAGE_AT + i : -100;
    for (int i = 0; i < BLOCKS_MAX; i++) blocks[i] = i;
    vp_dump dump = {.logits = a->logits};
    r.input_ids = ids; r.input_count = PROMPT;
    r.pixels = pixels; r.image_masks = masks; r.image_input_idx = index; r.views = 1;
    r.top_k = c->top_k; r.active_blocks = blocks; r.active_block_count = c->block_count;
    r.max_new_tokens = NEW; r.ignore_eos = 1; r.dump = &dump;
    reply.tokens = a->tokens; reply.step_ns = step_ns;
    if (!CHECK_INT(vp_engine_run(engine, &r, &reply, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
}
static vp_engine_options options_of(const vp_model_config *c, const vp_checkpoint *cp) {
    vp_engine_options o = vp_engine_options_default();
    o.config = c;
    o.checkpoint = cp;
    o.device = "cpu";
    o.gemm = "plain"; /* a choice by measurement could differ between two engines */
    o.max_sequence = PROMPT + NEW;
    o.max_views = 1;
    return o;
}
/* the answer of a checkpoint (NULL for synthetic weights), or of the model in the folder */
static void answer_of(const vp_model_config *c, const vp_checkpoint *cp, answer *a) {
    vp_engine_options o = options_of(c, cp);
    vp_engine *engine = NULL;
    vp_error error;
    if (!CHECK_INT(vp_engine_open(&o, &engine, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); return; }
    request_once(engine, c, a);
    vp_engine_close(engine);
}
static void answer_of_folder(const vp_model_config *c, answer *a) {
    vp_checkpoint *cp = NULL;
    vp_error error;
    memset(a, 0x55, sizeof *a);
    if (!CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); return; }
    answer_of(c, cp, a);
    vp_checkpoint_close(cp);
}
static int same(const answer *a, const answer *b, const vp_model_config *c) {
    return !memcmp(a->tokens, b->tokens, sizeof a->tokens) && !memcmp(a->logits, b->logits, (size_t)NEW * (size_t)c->embedding_size * sizeof(float));
}
static vp_convert_options convert_of(const vp_model_config *c, const vp_checkpoint *cp, vp_convert_layout layout) {
    vp_convert_options o = vp_convert_options_default();
    o.config = c;
    o.checkpoint = cp;
    o.directory = folder;
    o.layout = layout;
    return o;
}
static void convert(const vp_convert_options *o) {
    vp_error error;
    make_empty(folder);
    if (!CHECK_INT(vp_engine_convert(o, &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
}
static int open_golden(const char *name, vp_model_config *c, vp_checkpoint **cp) {
    char relative[64], directory[512], *text;
    size_t bytes = 0;
    vp_error error;
    snprintf(relative, sizeof relative, "models/%s/config.json", name);
    const char *path = check_golden(relative);
    text = check_read(path, &bytes);
    if (!text) { check_skip(name, "golden models not found"); return 0; }
    snprintf(directory, sizeof directory, "%.*s", (int)(strlen(path) - strlen("/config.json")), path);
    CHECK_INT(vp_model_config_parse(text, bytes, NULL, 0, c, &error), VP_OK);
    CHECK_INT(vp_checkpoint_open(directory, c, cp, &error), VP_OK);
    free(text);
    return *cp != NULL;
}

/* --------------------------------------------------------------------------------------------------------- equal bits */
/* every tensor of the folder has the original values, rounded to bf16 */
static void check_values(const vp_model_config *c, const vp_checkpoint *original, int64_t fp32_wanted) {
    vp_checkpoint *cp = NULL;
    vp_tensor_spec spec;
    vp_tensor a, b;
    vp_error error;
    int64_t wrong = 0, fp32 = 0, unaligned = 0;
    if (!CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK)) return;
    for (int64_t i = 0; vp_model_tensor(c, i, &spec) == VP_OK; i++) {
        if (vp_checkpoint_find(cp, spec.name, &a) != VP_OK) { wrong++; continue; }
        fp32 += a.dtype == VP_DTYPE_F32;
        wrong += a.dtype == VP_DTYPE_F16;
        unaligned += ((uintptr_t)a.data & (a.dtype == VP_DTYPE_F32 ? 3u : 1u)) != 0;
        if (!original || vp_checkpoint_find(original, spec.name, &b) != VP_OK) continue;
        for (uint64_t k = 0; k < a.bytes / (a.dtype == VP_DTYPE_F32 ? 4 : 2); k++) {
            uint16_t x = 0, y = 0;
            float f;
            if (a.dtype == VP_DTYPE_F32) { memcpy(&f, a.data + 4 * k, 4); x = vp_f32_to_bf16(f); } else memcpy(&x, a.data + 2 * k, 2);
            if (b.dtype == VP_DTYPE_F32) { memcpy(&f, b.data + 4 * k, 4); y = vp_f32_to_bf16(f); } else memcpy(&y, b.data + 2 * k, 2);
            wrong += x != y;
        }
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(unaligned, 0);
    CHECK_INT(fp32, fp32_wanted);
    vp_checkpoint_close(cp);
}
static void test_forms(const char *name, const vp_model_config *c, const vp_checkpoint *cp, int64_t fp32_tensors) {
    static answer original, other;
    vp_convert_options o = convert_of(c, cp, VP_CONVERT_HF);
    check_case("%s: the bf16 folder gives bit-identical results", name);
    memset(&original, 0xff, sizeof original);
    answer_of(c, cp, &original);
    convert(&o);
    CHECK(there("model.safetensors") && !there("model.safetensors.index.json"));
    check_values(c, cp, fp32_tensors);
    answer_of_folder(c, &other);
    CHECK(same(&original, &other, c));
    check_case("%s: bit-identical in shards", name);
    o.shard_bytes = 700000;
    convert(&o);
    CHECK(!there("model.safetensors") && there("model.safetensors.index.json"));
    check_values(c, cp, fp32_tensors);
    answer_of_folder(c, &other);
    CHECK(same(&original, &other, c));
    check_case("%s: bit-identical when packed, with any number of threads", name);
    o = convert_of(c, cp, VP_CONVERT_PACKED);
    for (o.threads = 0; o.threads < 4; o.threads += 3) {
        convert(&o);
        CHECK(there(VP_PACKED_FILE));
        answer_of_folder(c, &other);
        CHECK(same(&original, &other, c));
    }
    other.logits[0] += 1.0f;
    CHECK(!same(&original, &other, c));
}
static int is_shard_right(const char *name, int64_t most) {
    struct stat info;
    return stat(in_folder(name), &info) == 0 && info.st_size <= most;
}
static void test_shards(const vp_model_config *c, const vp_checkpoint *cp) {
    vp_convert_options o = convert_of(c, cp, VP_CONVERT_HF);
    size_t bytes = 0;
    check_case("shards: names, sizes, the index and its total");
    o.shard_bytes = 1000000;
    convert(&o);
    CHECK(is_shard_right("model-00001-of-00004.safetensors", 1000000 + 20000) && is_shard_right("model-00004-of-00004.safetensors", 1000000 + 20000));
    CHECK(!there("model-00005-of-00004.safetensors"));
    char *text = check_read(in_folder("model.safetensors.index.json"), &bytes);
    CHECK(text && strstr(text, "\"total_size\": 3214720\n") && strstr(text, "\"lm_head.weight\": \"model-00004-of-00004.safetensors\""));
    free(text);
    text = check_read(in_folder("model-00001-of-00004.safetensors"), &bytes);
    CHECK(text && !memcmp(text + 8, "{\"__" "metadata" "__\":{\"format\":\"pt\"},", 32));
    CHECK(text && ((unsigned char)text[0] | (unsigned char)text[1] << 8) % 8 == 0);
    free(text);
    check_case("shards: a tensor larger than a shard gets its own shard");
    o.shard_bytes = 1;
    convert(&o);
    CHECK(there("model-00001-of-00225.safetensors") && there("model-00225-of-00225.safetensors"));
    check_values(c, cp, 0);
}
/* The exact bytes of a packed file are fixed for each version. */
static void check_pinned(const vp_convert_options *o, int64_t want_bytes, uint64_t want) {
    size_t bytes = 0;
    uint64_t hash = UINT64_C(14695981039346656037);
    convert(o);
    char *file = check_read(in_folder(VP_PACKED_FILE), &bytes);
    for (size_t i = VP_PACKED_HEADER_BYTES; file && i < bytes; i++) hash = (hash ^ (unsigned char)file[i]) * UINT64_C(1099511628211);
    CHECK_INT((int64_t)bytes, want_bytes);
    if (!CHECK(hash == want)) printf("  (%016llx)\n", (unsigned long long)hash);
    free(file);
}
static void test_packed_pinned(const vp_model_config *c, const vp_checkpoint *cp) {
    vp_convert_options o = convert_of(c, cp, VP_CONVERT_PACKED);
    check_case("packed: the exact bytes; after an intended change, increase VP_PACKED_VERSION");
    check_pinned(&o, 3265024, UINT64_C(0xbf4162fcaaf9ce9f));
    CHECK_INT(VP_PACKED_VERSION, 2);
    check_case("packed integers: the exact bytes; after an intended change, also increase VK_QUANT_ORDER");
    o.weights = VP_WEIGHTS_INT8;
    check_pinned(&o, 2281984, UINT64_C(0x8fcb1e5f7f37833e));
    o.weights = VP_WEIGHTS_INT4;
    check_pinned(&o, 1757696, UINT64_C(0x10e689efa9810a7e));
    CHECK_INT(VK_QUANT_ORDER, 1);
}
/* The exact weights of a seed are fixed. */
static void test_synthetic_pinned(const vp_model_config *c) {
    vp_convert_options o = convert_of(c, NULL, VP_CONVERT_PACKED);
    check_case("synthetic weights: the exact bytes; after an intended change, increase VP_SYNTHETIC_VERSION");
    CHECK_INT(VP_SYNTHETIC_VERSION, 1);
    check_pinned(&o, 3068416, UINT64_C(0x8f44cdb4c2acf50d));
}

/* the engine does not open, for this reason */
static void packed_refused(const char *what, const vp_engine_options *o, vp_result code, const char *text) {
    vp_engine *engine = NULL;
    vp_error error = {0};
    check_case("packed weights: %s", what);
    CHECK_INT(vp_engine_open(o, &engine, &error), code);
    CHECK(!engine && error.code == code);
    if (!CHECK(strstr(error.text, text) != NULL)) printf("  (%s)\n", error.text);
}

/* ------------------------------------------------------------------------------------------------------ packed integers */
typedef struct precision { vp_weights blocks, head, vision; } precision;
/* an engine of a checkpoint (NULL for synthetic weights) whose linears have these weights; answer: receives the answer to the test's request, or NULL */
static vp_engine *engine_of(const vp_model_config *c, const vp_checkpoint *cp, const precision *weights, answer *a) {
    vp_engine_options o = options_of(c, cp);
    vp_engine *engine = NULL;
    vp_error error;
    o.weights = weights->blocks; o.head_weights = weights->head; o.vision_weights = weights->vision;
    if (!CHECK_INT(vp_engine_open(&o, &engine, &error), VP_OK)) { printf("%s: %s\n", error.where, error.text); return NULL; }
    if (a) request_once(engine, c, a);
    return engine;
}
static void write_header(const vp_packed *packed) {
    unsigned char header[VP_PACKED_HEADER_BYTES];
    FILE *f = fopen(in_folder(VP_PACKED_FILE), "r+b");
    vp_packed_header(packed, header);
    CHECK(f && fwrite(header, 1, sizeof header, f) == sizeof header);
    if (f) fclose(f);
}
/* The bytes of a packed file, and the `answers`, equal those of an engine that opens the original in the same precision. */
static void test_integers(const char *name, const vp_model_config *c, const vp_checkpoint *original, const precision *weights, int answers) {
    static answer quantised, mapped;
    vp_convert_options o = convert_of(c, original, VP_CONVERT_PACKED);
    vp_checkpoint *cp = NULL;
    vp_packed packed;
    vp_error error;
    check_case("%s: packed integers, precisions %d %d %d", name, weights->blocks, weights->head, weights->vision);
    o.weights = weights->blocks; o.head_weights = weights->head; o.vision_weights = weights->vision;
    o.threads = 3;
    convert(&o);
    if (!CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK) || !CHECK_INT(vp_checkpoint_packed(cp, &packed), VP_OK)) return;
    vp_engine *one = engine_of(c, original, weights, answers ? &quantised : NULL);
    vp_engine *other = engine_of(c, cp, weights, answers ? &mapped : NULL);
    if (one && other) {
        const unsigned char *first = (const unsigned char *)one->model.embedding;
        CHECK(other->model.embedding == (const void *)packed.weights && other->weights_bytes == packed.weights_bytes);
        CHECK(one->weights_bytes == packed.weights_bytes && !memcmp(first, packed.weights, packed.weights_bytes));
        if (answers) CHECK(same(&quantised, &mapped, c));
    }
    vp_engine_close(one);
    vp_engine_close(other);
    vp_checkpoint_close(cp);
}
/* complete headers that contradict the bytes of an int4 file */
static void test_integers_refused(const vp_model_config *c, const vp_checkpoint *original) {
    static const precision int4 = {VP_WEIGHTS_INT4, VP_WEIGHTS_BF16, VP_WEIGHTS_BF16};
    vp_convert_options o = convert_of(c, original, VP_CONVERT_PACKED);
    vp_checkpoint *cp = NULL;
    vp_packed packed, other;
    vp_error error;
    o.weights = int4.blocks;
    convert(&o);
    if (!CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK) || !CHECK_INT(vp_checkpoint_packed(cp, &packed), VP_OK)) return;
    vp_checkpoint_close(cp);
    for (int i = 0; i < 6; i++) {
        vp_engine_options e = options_of(c, NULL);
        other = packed;
        e.weights = int4.blocks;
        if (i == 0) other.quant_values = 64;
        if (i == 1) other.quant_order = 2;
        if (i == 2) { other.block_bits = 8; e.weights = VP_WEIGHTS_INT8; }
        if (i == 3) { other.vision_bits = 4; e.vision_weights = VP_WEIGHTS_INT4; }
        if (i == 4) { other.version = 1; e.weights = VP_WEIGHTS_BF16; }
        write_header(&other);
        cp = NULL;
        CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK);
        e.checkpoint = cp;
        if (i == 5) e.weights = VP_WEIGHTS_BF16;
        if (i < 5) packed_refused("integers that their header tells wrong", &e, VP_ERR_MISMATCH, "convert the original folder again");
        else packed_refused("int4 is not bf16", &e, VP_ERR_UNSUPPORTED, "they are int4; another precision needs the folder that they were made from");
        vp_checkpoint_close(cp);
    }
}
static void test_integers_of_models(const vp_model_config *tiny_a, const vp_checkpoint *cp) {
    static const char *const names[] = {"tiny", "tiny-dense", "tiny-qwen3-vl-moe", "tiny-gemma3"}; /* a tied head is stored separately */
    static const precision mixed[] = {{VP_WEIGHTS_INT8, VP_WEIGHTS_BF16, VP_WEIGHTS_BF16}, {VP_WEIGHTS_INT4, VP_WEIGHTS_INT8, VP_WEIGHTS_INT4},
                                      {VP_WEIGHTS_BF16, VP_WEIGHTS_INT4, VP_WEIGHTS_BF16}, {VP_WEIGHTS_INT4, VP_WEIGHTS_BF16, VP_WEIGHTS_INT8}};
    vp_model_config c;
    test_integers_refused(tiny_a, cp);
    for (int i = 0; i < 4; i++) {
        test_integers("tiny-a", tiny_a, cp, &mixed[i], 1);
        if (!CHECK_INT(vp_model_config_preset(names[i], &c), VP_OK)) continue;
        test_integers(names[i], &c, NULL, &mixed[1], i == 0);
    }
}

/* -------------------------------------------------------------------------------------------------- packed in the engine */
static vp_result count_call(void *user, const char *what, int64_t done, int64_t total) {
    (void)what; (void)done; (void)total;
    ++*(int *)user;
    return VP_OK;
}
static void test_packed_engine(const vp_model_config *c, const vp_checkpoint *original) {
    vp_convert_options o = convert_of(c, original, VP_CONVERT_PACKED);
    vp_checkpoint *cp = NULL;
    vp_packed packed, other;
    vp_engine *engine = NULL;
    vp_error error;
    static answer packed_now, packed_once;
    int calls = 0;
    convert(&o);
    check_case("mapped packed weights are used in place");
    if (!CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK) || !CHECK_INT(vp_checkpoint_packed(cp, &packed), VP_OK)) return;
    vp_engine_options e = options_of(c, cp);
    e.progress = count_call;
    e.progress_user = &calls;
    CHECK_INT(vp_engine_open(&e, &engine, &error), VP_OK);
    if (engine) {
        const unsigned char *first = (const unsigned char *)engine->model.embedding, *last = (const unsigned char *)engine->model.head.weights;
        const unsigned char *buffer = (const unsigned char *)engine->buffers.x, *end = packed.weights + packed.weights_bytes;
        CHECK(first == packed.weights && last > first && last < end);
        CHECK(buffer < packed.weights || buffer >= end);
        CHECK_INT(engine->weights_bytes, packed.weights_bytes);
        CHECK(vp_engine_bytes(engine) > packed.weights_bytes);
    }
    CHECK_INT(calls, 0); /* nothing was loaded */
    vp_engine_close(engine);
    e.progress = NULL;
    e.weights = VP_WEIGHTS_FP32;
    packed_refused("not in fp32", &e, VP_ERR_UNSUPPORTED, "they are bf16; another precision needs the folder");
    e.weights = VP_WEIGHTS_INT8;
    packed_refused("not as integers", &e, VP_ERR_UNSUPPORTED, "they are bf16; another precision needs the folder");
    e.weights = VP_WEIGHTS_BF16;
    e.max_sequence = INT32_MAX;
    packed_refused("buffers that fit no memory", &e, VP_ERR_MEMORY, "weights need");
    e.max_sequence = PROMPT;
    check_case("packed weights cannot be converted again");
    o.checkpoint = cp;
    CHECK_INT(vp_engine_convert(&o, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "the folder that they were made from"));
    vp_checkpoint_close(cp);
    check_case("packed weights of version 1");
    answer_of_folder(c, &packed_now);
    other = packed;
    other.version = 1;
    write_header(&other);
    answer_of_folder(c, &packed_once);
    CHECK(same(&packed_now, &packed_once, c));
    for (int i = 0; i < 2; i++) { /* complete headers as another program might write them */
        other = packed;
        if (i) other.weights_bytes -= 64; else other.panel_columns = 16;
        write_header(&other);
        if (i) CHECK_INT(truncate(in_folder(VP_PACKED_FILE), (off_t)(VP_PACKED_HEADER_BYTES + other.weights_bytes)), 0);
        cp = NULL;
        CHECK_INT(vp_checkpoint_open(folder, c, &cp, &error), VP_OK);
        e.checkpoint = cp;
        packed_refused(i ? "too few" : "panels of another width", &e, VP_ERR_MISMATCH, "convert the original folder again");
        vp_checkpoint_close(cp);
    }
}

/* -------------------------------------------------------------------------------------------------------------- errors */
static void refused(const char *what, const vp_convert_options *o, vp_result code, const char *where) {
    vp_error error = {0};
    check_case("convert rejects %s", what);
    CHECK_INT(vp_engine_convert(o, &error), code);
    CHECK(error.code == code && error.text[0] && !strchr(error.text, '\n'));
    if (!CHECK(strstr(error.where, where) != NULL)) printf("  (%s: %s)\n", error.where, error.text);
    CHECK_INT(vp_engine_convert(o, NULL), code);
}
static vp_result stop_third(void *user, const char *what, int64_t done, int64_t total) {
    int *calls = (int *)user;
    CHECK(what[0] && done > 0 && done <= total);
    return ++*calls % 3 ? VP_OK : VP_ERR_INTERRUPTED;
}
static void test_errors(const vp_model_config *c, const vp_checkpoint *cp) {
    vp_convert_options good = convert_of(c, cp, VP_CONVERT_HF), o;
    vp_model_config other = *c;
    struct rlimit limit, old;
    int calls = 0;
    make_empty(folder);
    o = good; o.config = NULL; refused("no config", &o, VP_ERR_RANGE, "convert");
    o = good; o.directory = NULL; refused("no folder", &o, VP_ERR_RANGE, "convert");
    o = good; o.threads = -1; refused("threads -1", &o, VP_ERR_RANGE, "convert options");
    o = good; o.threads = VK_THREADS_MAX + 1; refused("too many threads", &o, VP_ERR_RANGE, "convert options");
    o = good; o.shard_bytes = 0; refused("empty shards", &o, VP_ERR_RANGE, "convert options");
    o = good; o.weights = VP_WEIGHTS_INT4; refused("integers in safetensors", &o, VP_ERR_RANGE, "convert options");
    o = good; o.vision_weights = VP_WEIGHTS_INT8; refused("integers of the tower in safetensors", &o, VP_ERR_RANGE, "convert options");
    o = good; o.layout = VP_CONVERT_PACKED; o.weights = VP_WEIGHTS_FP32; refused("packed fp32", &o, VP_ERR_RANGE, "convert options");
    o = good; o.layout = VP_CONVERT_PACKED; o.head_weights = (vp_weights)9; refused("an unknown precision", &o, VP_ERR_RANGE, "convert options");
    o = good; o.layout = (vp_convert_layout)7; refused("an unknown layout", &o, VP_ERR_RANGE, "convert options");
    for (int packed = 0; packed < 2; packed++) {
        o = good;
        o.layout = packed ? VP_CONVERT_PACKED : VP_CONVERT_HF;
        o.directory = in_folder("none"); refused("a folder that is not there", &o, VP_ERR_WRITE, "none");
        o.directory = folder;
        other.block_count = c->block_count + 1;
        o.config = &other; refused("a block without tensors", &o, VP_ERR_NOT_FOUND, "model.transformer.blocks.4");
        other.block_count = c->block_count;
        other.additional_vocab_size++; refused("a table of another size", &o, VP_ERR_MISMATCH, "new_embedding");
        other.additional_vocab_size--;
        o.config = c;
        o.progress = stop_third; o.progress_user = &calls; refused("when it is stopped", &o, VP_ERR_INTERRUPTED, "model.");
        o.progress = NULL;
        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &old);
        limit = old;
        for (limit.rlim_cur = 1000; limit.rlim_cur < 3000000; limit.rlim_cur *= 40) {
            setrlimit(RLIMIT_FSIZE, &limit);
            refused("a disk without room", &o, VP_ERR_WRITE, folder);
            setrlimit(RLIMIT_FSIZE, &old);
        }
        signal(SIGXFSZ, SIG_DFL);
    }
    o = good;
    o.checkpoint = NULL;
    o.config = &other;
    other.block_count = 1024; other.expert_count = 16; other.d_model = 65536; other.expert_dim = 1 << 19; /* 3.4 PB in a few tensors */
    refused("more than any disk holds", &o, VP_ERR_WRITE, folder);
}

/* what the process has in memory, and the most that it had since the kernel's mark was reset; in MB, NAN if not known */
static double status_mb(const char *key) {
    char line[128];
    double kilobytes = NAN;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) if (!strncmp(line, key, strlen(key))) kilobytes = strtod(line + strlen(key), NULL);
    if (file) fclose(file);
    return kilobytes * 1024 / 1e6;
}
static void test_peak(void) {
    static const char text[] = "{\"model_type\":\"llama\",\"hidden_size\":512,\"intermediate_size\":512,\"num_hidden_layers\":1,\"num_attention_heads\":8,"
        "\"vocab_size\":40000,\"rms_norm_eps\":1e-5,\"max_position_embeddings\":64}";
    static vp_model_config c;
    vp_convert_options to = convert_of(&c, NULL, VP_CONVERT_HF);
    vp_checkpoint *cp = NULL;
    vp_engine *engine = NULL, *drawn = NULL;
    vp_engine_options o;
    vp_error error;
    FILE *mark;
    check_case("opening reads a table of 41 MB in pieces, right, and does not hold it twice");
    if (!CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_OK)) return;
    convert(&to);
    if (!CHECK_INT(vp_checkpoint_open(folder, &c, &cp, &error), VP_OK)) return;
    mark = fopen("/proc/self/clear_refs", "w");
    o = options_of(&c, cp);
    if (!mark || fputs("5", mark) < 0 || fclose(mark)) { check_skip("peak", "this system does not reset VmHWM"); mark = NULL; }
    CHECK_INT(vp_engine_open(&o, &engine, &error), VP_OK);
    if (mark) {
        CHECK(status_mb("VmRSS:") > 80.0); /* both tables */
        CHECK(status_mb("VmHWM:") - status_mb("VmRSS:") < 20.0);
    }
    o.checkpoint = NULL;
    CHECK_INT(vp_engine_open(&o, &drawn, &error), VP_OK);
    CHECK(engine && drawn && !memcmp(engine->weights, drawn->weights, engine->weights_bytes));
    vp_engine_close(drawn);
    vp_engine_close(engine);
    vp_checkpoint_close(cp);
}

int main(void) {
    vp_model_config a, b, tiny;
    vp_checkpoint *cp_a = NULL, *cp_b = NULL;
    if (!folder_make("convert")) return 1;
    pixels = (float *)malloc(PATCHES * VALUES * sizeof(float));
    masks = (float *)malloc(PATCHES * sizeof(float));
    if (!pixels || !masks) return 1;
    for (int i = 0; i < PATCHES * VALUES; i++) pixels[i] = (float)(i * 37 % 1001) / 500.0f - 0.99f;
    for (int i = 0; i < PATCHES; i++) masks[i] = i < 500 ? 1.0f : 0.5f;
    vp_model_config_preset("tiny", &tiny);
    test_forms("synthetic tiny", &tiny, NULL, 4 * 5 + 1 + 9 + 5 * 10); /* norms, biases, routers, pad_embed, positions, class_embedding */
    test_synthetic_pinned(&tiny);
    if (open_golden("tiny-a", &a, &cp_a)) {
        test_forms("tiny-a", &a, cp_a, 0);
        test_shards(&a, cp_a);
        test_packed_pinned(&a, cp_a);
        test_integers_of_models(&a, cp_a);
        test_packed_engine(&a, cp_a);
        test_errors(&a, cp_a);
    }
    test_peak();
    if (open_golden("tiny-b", &b, &cp_b)) test_forms("tiny-b, F32 and BF16 in two files", &b, cp_b, 0);
    vp_checkpoint_close(cp_a);
    vp_checkpoint_close(cp_b);
    remove_folder(folder);
    FREE_ALL(pixels, masks);
    return check_done("test_convert");
}
