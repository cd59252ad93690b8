/* command_selftest.c: compares the same requests on every backend and arithmetic. A few requests are made (trial_make)
 * and run by the plain fp32 kernel on the CPU, which is the reference. Then every backend runs them and gets a verdict
 * (judge). The verdicts are printed as text or JSON. A GPU is also compared with its own --gpu library, which works at
 * shapes that are too large for the CPU. */
#include "base/console.h"
#include "base/json.h"
#include "results/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "measure/input.h"
#include "model/model.h"
#include "measure/provenance.h"
#include "measure/record.h"
#include "measure/engine.h"
#include "vlmprof_config.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

#include <math.h>

static const struct option_spec SELFTEST_OPTIONS[] = {
    OPTION_GROUP("what to test"),
    OPTION_MODEL,
    {"synthetic", TEXT, "NAME", "tiny", 0, 0, NULL, "seeded random weights in a real model's shape (molmoe-1b, ...)"},
    OPTION_SEED,
    {"device", TEXT, "D", "auto", 0, 0, NULL, "device to test: auto (all available), cpu, cuda or cuda:N"},
    OPTION_THREADS,
    {"gpu", TEXTS, "WORD...", NULL, 0, 0, NULL,
     "switches of run --gpu to test on a GPU, one at a time (default: all that change results or times)", OF_ENGINE},
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

/* Limits of the relative error ||a - b|| / ||b - mean(b)||. The reference b is fp32 on the CPU with the plain kernel
 * and one thread. In fp32, another order of summation may change logits by 2e-5 and image features by 5e-6, which is
 * five times the difference between fp32 and fp64 runs of the same models (tests/golden/models/README.md). All tokens
 * must be equal to the reference's. In bf16, correct kernels round the same values to 8 bits and differ only in the
 * order of their fp32 sums. The same rule applies to every kernel, including the plain one. A rounding changes a value
 * by at most u = 2^-9 of it, and n independent ones by sqrt(n) u. Norms and softmax magnify that, by up to 2.7 over all
 * models of tests/golden. So the limit is MAGNIFIED * u * sqrt(n), with n as in rounding_of. All kernels have about the
 * same distance from fp32, so none may be farther away than SPREAD times the plain kernel; over 32 small models the
 * largest ratio was 1.24. These limits apply if all experts are in use, so that no choice depends on a rounding. If
 * top_k experts are chosen, a rounding can flip a choice. That changed the logits of those models by up to 0.19, so the
 * limit is then FLIPPED; unrelated logits have an error of 1.4. */
enum { TRIALS = 3, TRIAL_TOKENS = 8, VERDICTS_MAX = 64, ERRORS = 3 };

/* Limits of image features, of logits with all experts in use, and of logits if experts are chosen. */
enum { ERROR_FEATURES, ERROR_LOGITS, ERROR_ROUTED };
static const char *const ERROR_KEYS[ERRORS] = {"image_features", "logits", "routed_logits"};

static const double FP32_LIMITS[ERRORS] = {5e-6, 2e-5, 2e-5}, SPREAD = 1.5, MAGNIFIED = 3, FLIPPED = 0.5;

/* One request of the test. */
struct trial {
    struct sample sample;
    vp_image image;
    struct cuts cuts;
    int32_t *blocks;
    struct pass_input input;
};
/* The results of all trials on one engine. */
struct outcome { struct pass_result *runs; vp_dump dumps[TRIALS]; };
/* The result of one backend with one arithmetic and one GEMM kernel. */
struct verdict {
    const char *backend, *gemm, *gpu; /* the --gpu switch; NULL if none */
    const struct selftest *of;
    int has_other_bits;               /* compared with the GPU without a switch */
    vp_weights weights;
    char device[200], reason[LINE_BYTES];
    double errors[ERRORS]; /* the worst over trials and steps */
    double limits[ERRORS];
    int has[ERRORS]; /* flags: the trials have such outputs, and the backend completed */
    double ms;       /* mean of the trials */
    int32_t tokens_equal;
    int ok;
};
struct selftest {
    vp_engine_options settings; /* of the options */
    struct model model;
    struct trial trials[TRIALS];
    int32_t max_sequence, max_views;
    struct outcome reference, tested, unswitched; /* the last one: the GPU in bf16 without a switch */
    double plain[ERRORS];                         /* errors of the plain kernel in bf16 */
    int by_library;                               /* 1: the reference is the GPU in bf16 with --gpu library */
    struct verdict verdicts[VERDICTS_MAX];
    int verdict_count;
    char skipped[LINE_BYTES]; /* reason if nothing ran on a GPU; otherwise empty */
};

static size_t feature_count(const struct selftest *selftest, const vp_layout *layout) {
    const vp_model_config *config = &selftest->model.config;
    const int32_t tokens = config->connector == VP_CONNECTOR_STITCHED
                               ? layout->feature_tokens
                               : layout->views * vp_geometry_tokens_per_crop(&config->geometry);
    return (size_t)tokens * (size_t)config->d_model;
}

/* Paints two gradients and a texture. */
static void paint_trial(vp_image *image, int32_t width_px, int32_t height_px) {
    int32_t i = 0;
    image->width_px = width_px;
    image->height_px = height_px;
    image->rgb = resize(NULL, (size_t)width_px * (size_t)height_px, 3);
    for (int32_t row = 0; row < height_px; row++)
        for (int32_t column = 0; column < width_px; column++) {
            image->rgb[i++] = (uint8_t)(column * 255 / width_px);
            image->rgb[i++] = (uint8_t)(row * 255 / height_px);
            image->rgb[i++] = (uint8_t)(column ^ row);
        }
}
/* Adds the image of a request, cut as by the model's own processor. Returns 0 or an exit code. */
static int trial_image(struct selftest *selftest, struct trial *trial, int32_t width_px, int32_t height_px) {
    const struct model *model = &selftest->model;
    const struct image_size size = {NULL, 0, NULL, 0, NULL};
    const struct image_px px = {width_px, height_px};
    vp_error error = {VP_OK, -1, "", ""};
    paint_trial(&trial->image, width_px, height_px);
    vp_result result = model_cut(model, &size, &px, 1, &trial->cuts, &error);
    if (result != VP_OK) return complain_result(EXIT_INPUT, model->name, result, &error);
    trial->input.images = &trial->image;
    trial->input.cuts = &trial->cuts;
    if (trial->cuts.whole.views > selftest->max_views) selftest->max_views = trial->cuts.whole.views;
    return 0;
}
/* Makes a request: a question, an image unless its width is 0 or the model is text-only, and all blocks except
 * skipped_block. If skipped_block is -1, no block is skipped, and top_k experts are chosen; otherwise all experts are
 * in use. Returns 0 or an exit code. */
static int trial_make(struct selftest *selftest, int index, const char *question, int32_t width_px, int32_t height_px,
                      int32_t skipped_block) {
    struct trial *trial = &selftest->trials[index];
    const struct model *model = &selftest->model;
    const vp_model_config *config = &model->config;
    const int has_image = width_px && !model_is_blind(model);
    int code = has_image ? trial_image(selftest, trial, width_px, height_px) : 0;
    trial->sample.prompt = model->rules->prompt(model, NULL, question, NULL, has_image);
    if (!code) code = tokenize_sample(model, trial->input.cuts, &trial->sample);
    if (code) return code;
    trial->blocks = resize(NULL, (size_t)config->block_count, sizeof *trial->blocks);
    for (int32_t block = 0; block < config->block_count; block++)
        if (block != skipped_block || config->block_count == 1)
            trial->blocks[trial->input.engine.active_block_count++] = block;
    trial->input.engine.active_blocks = trial->blocks;
    trial->input.engine.top_k = skipped_block < 0 ? config->top_k : config->expert_count;
    trial->input.tokens = trial->sample.tokens;
    trial->input.engine.max_new_tokens = TRIAL_TOKENS;
    trial->input.engine.ignore_eos = 1;
    if (positions_of(&trial->input) > selftest->max_sequence)
        selftest->max_sequence = (int32_t)positions_of(&trial->input) + 1;
    return check_sequence(&selftest->model, &trial->input);
}

/* Runs all trials on one engine. Its output buffers are first filled with NaN, so that an unwritten value is
 * noticed. */
static vp_result run_trials(struct selftest *selftest, const vp_engine_options *settings, struct verdict *verdict,
                            struct outcome *out, vp_error *error) {
    vp_result result;
    struct session session = {.model = &selftest->model};
    result = engine_begin(settings, &session.engine, error);
    if (result == VP_OK) snprintf(verdict->device, sizeof verdict->device, "%s", vp_engine_device(session.engine));
    for (int i = 0; i < TRIALS && result == VP_OK; i++) {
        struct pass_input input = selftest->trials[i].input;
        vp_dump *dump = &out->dumps[i];
        if (!dump->logits) dump_reserve(dump, &selftest->model, &input);
        memset(dump->logits, 0xff, TRIAL_TOKENS * (size_t)selftest->model.config.embedding_size * sizeof(float));
        if (input.cuts) memset(dump->image_features, 0xff, feature_count(selftest, &input.cuts->whole) * sizeof(float));
        input.engine.dump = dump;
        show_progress("%s, %s: request %d of %d", verdict->backend, verdict->gemm, i + 1, TRIALS);
        result = request_run(&session, &input, &out->runs[i], error);
        verdict->ms += metric_of(&out->runs[i], METRIC_TOTAL) / TRIALS;
    }
    if (result == VP_OK && verdict->gpu)
        snprintf(verdict->reason, sizeof verdict->reason, "%s", vp_engine_device_note(session.engine));
    close_progress();
    session_free(&session);
    return result;
}

/* The larger error; NaN is larger than any. */
static double worse_of(double worst, double error) { return isnan(worst) || error <= worst ? worst : error; }

/* Computes the errors against the reference. A trial's logits are compared up to the first different token, because
 * later inputs differ. */
static void compare_trials(struct selftest *selftest, struct verdict *verdict) {
    size_t row = (size_t)selftest->model.config.embedding_size;
    for (int i = 0; i < TRIALS; i++) {
        const vp_dump *tested = &selftest->tested.dumps[i], *reference = &selftest->reference.dumps[i];
        const vp_layout *layout = layout_of(&selftest->trials[i].input);
        const int32_t *ours = selftest->tested.runs[i].reply.tokens, *theirs = selftest->reference.runs[i].reply.tokens;
        const int has_all_experts = selftest->trials[i].input.engine.top_k == selftest->model.config.expert_count;
        int same = 1;
        double *logits = &verdict->errors[has_all_experts ? ERROR_LOGITS : ERROR_ROUTED];
        double *features = &verdict->errors[ERROR_FEATURES];
        verdict->has_other_bits |=
            selftest->unswitched.dumps[i].logits
            && memcmp(tested->logits, selftest->unswitched.dumps[i].logits, TRIAL_TOKENS * row * sizeof(float)) != 0;
        verdict->has[ERROR_FEATURES] |= layout != NULL;
        verdict->has[has_all_experts ? ERROR_LOGITS : ERROR_ROUTED] = 1;
        if (layout)
            *features = worse_of(*features, relative_error(tested->image_features, reference->image_features,
                                                           feature_count(selftest, layout)));
        for (size_t step = 0; step < TRIAL_TOKENS && same; step++) {
            *logits =
                worse_of(*logits, relative_error(tested->logits + step * row, reference->logits + step * row, row));
            same = ours[step] == theirs[step];
            verdict->tokens_equal += same;
        }
    }
}

/* The limit of one error of a backend. */
static double limit_of(const struct selftest *selftest, int error, int is_fp32, int is_plain) {
    const double limit = MAGNIFIED * rounding_of(&selftest->model.config, error == ERROR_LOGITS);
    if (is_fp32) return FP32_LIMITS[error];
    if (error == ERROR_ROUTED) return FLIPPED;
    return is_plain || selftest->by_library ? limit : fmin(limit, SPREAD * selftest->plain[error]);
}

/* Tries a backend and adds its verdict; adds none if the CPU has no such kernel for this arithmetic. */
static void judge(struct selftest *selftest, const char *device, vp_weights weights, const char *gemm,
                  const vp_gpu_word *gpu) {
    vp_engine_options settings =
        engine_options_for(&selftest->settings, &selftest->model, selftest->max_sequence, selftest->max_views);
    struct verdict *verdict = &selftest->verdicts[selftest->verdict_count];
    vp_error error = {VP_OK, -1, "", ""};
    const int is_fp32 = weights == VP_WEIGHTS_FP32, is_plain = !is_fp32 && !strcmp(gemm, "plain");
    vp_result result;
    if (selftest->verdict_count == VERDICTS_MAX) return;
    *verdict = (struct verdict){.of = selftest, .backend = device, .gemm = gemm, .weights = weights,
                                .gpu = gpu ? gpu->word : NULL};
    settings.gpu = gpu ? gpu->bit : 0;
    settings.device = device;
    settings.weights = weights;
    settings.gemm = strcmp(gemm, "cublas") ? gemm : "auto";
    result = run_trials(selftest, &settings, verdict, &selftest->tested, &error);
    if (result == VP_ERR_RANGE && !strcmp(device, "cpu") && !verdict->device[0]) return;
    selftest->verdict_count++;
    if (result != VP_OK) {
        error_line(verdict->reason, sizeof verdict->reason, result, &error);
        return;
    }
    compare_trials(selftest, verdict);
    verdict->ok = !is_fp32 || verdict->tokens_equal == TRIALS * TRIAL_TOKENS;
    for (int i = 0; i < ERRORS; i++) {
        if (is_plain) selftest->plain[i] = verdict->errors[i];
        verdict->limits[i] = limit_of(selftest, i, is_fp32, is_plain);
        verdict->ok &= !verdict->has[i] || verdict->errors[i] <= verdict->limits[i];
    }
    if (!verdict->ok) snprintf(verdict->reason, sizeof verdict->reason, "differs from the reference");
    if (!verdict->ok || !gpu || !gpu->same_bits || !verdict->has_other_bits) return;
    verdict->ok = 0;
    snprintf(verdict->reason, sizeof verdict->reason, "results are not bit-identical to those without the switch");
}

/* Loads MolmoE's shape with one block in tower and language model: real sizes that take seconds on a GPU. */
static int molmoe_load(struct model *model) {
    model->name = "molmoe-1b";
    model->synthetic = 1;
    int code = model_load_preset(model);
    model->config.block_count = model->config.vit_block_count = model->config.vit_blocks_needed = 1;
    memset(model->config.vit_layers, 0, sizeof model->config.vit_layers);
    return code;
}
/* Returns 1 if no model was chosen and the GPU is fast enough for MolmoE's shape: it has 16 multiprocessors or more. */
static int is_for_molmoe(const struct options *options, const char *device) {
    vp_device_info gpu;
    const int index = device[4] ? atoi(device + 5) : 0;
    return !is_given(options, "model") && !is_given(options, "synthetic")
           && vp_device_describe(index, &gpu, NULL) == VP_OK && gpu.multiprocessor_count >= 16;
}
/* Loads the model, makes the trials and runs the reference on `device`: with --gpu library, a large GPU and no chosen
 * model, in MolmoE's shape with 13 views and 1,900 tokens. Returns 0 or an exit code. */
static int selftest_prepare(struct selftest *selftest, const struct options *options, const char *device) {
    const int is_real = selftest->by_library && is_for_molmoe(options, device);
    vp_error error = {VP_OK, -1, "", ""};
    vp_engine_options settings;
    char text[700] = "";
    int code;
    for (int i = 0; i < 699; i++) text[i] = (char)('a' + i * i % 26);
    if ((code = check_engine_options(options)) != 0
        || (code = is_real ? molmoe_load(&selftest->model) : model_load(options, &selftest->model)) != 0
        || (code = checkpoint_open(&selftest->model)) != 0)
        return code;
    selftest->settings = engine_options_of(options);
    if ((code = trial_make(selftest, 0, "Is there a clock next to the bridge?", 0, 0, -1)) != 0
        || (code = trial_make(selftest, 1, is_real ? text : "What is this?", is_real ? 1344 : 451, is_real ? 1008 : 300,
                              -1)) != 0
        || (code = trial_make(selftest, 2, is_real ? text : "How many are there?", is_real ? 1344 : 240,
                              is_real ? 1008 : 120, selftest->model.config.block_count / 2)) != 0)
        return code;
    selftest->reference.runs = runs_make(TRIALS, TRIAL_TOKENS);
    selftest->tested.runs = runs_make(TRIALS, TRIAL_TOKENS);
    selftest->unswitched.runs = runs_make(TRIALS, TRIAL_TOKENS);
    struct verdict scratch = {.backend = "reference", .gemm = selftest->by_library ? "library" : "plain"};
    settings = engine_options_for(&selftest->settings, &selftest->model, selftest->max_sequence, selftest->max_views);
    settings.device = device;
    settings.weights = selftest->by_library ? VP_WEIGHTS_BF16 : VP_WEIGHTS_FP32;
    settings.gemm = selftest->by_library ? "auto" : "plain";
    settings.gpu = selftest->by_library ? VP_GPU_LIBRARY : 0;
    settings.threads = selftest->by_library ? settings.threads : 1;
    vp_result result = run_trials(selftest, &settings, &scratch, &selftest->reference, &error);
    return result == VP_OK ? 0 : complain_result(exit_code_of(result), selftest->model.name, result, &error);
}

static void print_heading(const struct selftest *selftest) {
    print_plain("%s%s%s: %d requests of %d tokens, compared with %s; largest relative errors\n\n",
                selftest->by_library ? "\n" : "", selftest->model.name,
                selftest->model.synthetic ? " (synthetic weights)" : "", TRIALS, TRIAL_TOKENS,
                selftest->by_library ? "--gpu library" : "the CPU in fp32 (plain kernel, 1 thread)");
    print_plain("%-20s %8s %8s %9s %8s %9s %8s %9s %11s\n", "backend", "features", "limit", "logits", "limit", "routed",
                "limit", "tokens", "ms/request");
}
static void print_selftest(const struct selftest *selftest, int failed) {
    for (int i = 0; i < selftest->verdict_count; i++) {
        const struct verdict *verdict = &selftest->verdicts[i];
        if (!i || verdict->of != verdict[-1].of) print_heading(verdict->of);
        print_plain("%-4s %s %-10s", verdict->backend, verdict->weights == VP_WEIGHTS_FP32 ? "fp32" : "bf16",
                    verdict->gpu ? verdict->gpu : verdict->gemm);
        for (int k = 0; k < ERRORS && verdict->has[ERROR_LOGITS]; k++)
            if (verdict->has[k]) print_plain(" %9.1e %8.1e", verdict->errors[k], verdict->limits[k]);
            else print_plain(" %9s %8s", "-", "-");
        if (verdict->has[ERROR_LOGITS])
            print_plain(" %3d of %2d %11.2f  %s%s%s\n", verdict->tokens_equal, TRIALS * TRIAL_TOKENS, verdict->ms,
                        verdict->ok ? "OK" : "FAILED", verdict->reason[0] ? ": " : "", verdict->reason);
        else print_plain(" FAILED: %s\n", verdict->reason);
    }
    if (selftest->skipped[0]) print_plain("cuda: skipped: %s\n", selftest->skipped);
    print_plain("selftest: %d passed, %d failed, %d skipped\n", selftest->verdict_count - failed, failed,
                selftest->skipped[0] != 0);
}

static void print_selftest_json(const struct selftest *selftest, int failed) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-selftest-1"), KEY("version", VLMPROF_VERSION),
        KEY("build", build_text()), KEY("model", selftest->model.name),
        KEY("architecture", vp_architecture_name(selftest->model.config.architecture)),
        KEY_BOOL("synthetic", selftest->model.synthetic), KEY("reference", "cpu fp32 plain, 1 thread"),
        KEY_ARRAY("checks"));
    for (int i = 0; i < selftest->verdict_count; i++) {
        const struct verdict *verdict = &selftest->verdicts[i];
        int compared = verdict->has[ERROR_LOGITS];
        PUT(&writer, KEY_OBJECT(NULL), KEY("model", verdict->of->model.name),
            KEY("reference", verdict->of->by_library ? "cuda bf16, --gpu library" : "cpu fp32 plain, 1 thread"),
            KEY("backend", verdict->backend),
            KEY("weights", verdict->weights == VP_WEIGHTS_FP32 ? "fp32" : "bf16"), KEY("gemm", verdict->gemm),
            KEY("gpu", verdict->gpu), KEY("device", verdict->device[0] ? verdict->device : NULL),
            KEY_BOOL("ok", verdict->ok), KEY("reason", verdict->reason[0] ? verdict->reason : NULL));
        for (int k = 0; k < ERRORS; k++) {
            char key[40];
            snprintf(key, sizeof key, "%s_error", ERROR_KEYS[k]);
            put_double(&writer, key, verdict->has[k] ? verdict->errors[k] : (double)NAN);
            snprintf(key, sizeof key, "%s_limit", ERROR_KEYS[k]);
            put_double(&writer, key, verdict->has[k] ? verdict->limits[k] : (double)NAN);
        }
        PUT(&writer, KEY("tokens_equal", verdict->tokens_equal), KEY("tokens", TRIALS * TRIAL_TOKENS),
            KEY("ms_per_request", compared ? verdict->ms : (double)NAN), END_OBJECT);
    }
    PUT(&writer, END_ARRAY, KEY("cuda_skipped", selftest->skipped[0] ? selftest->skipped : NULL),
        KEY("passed", selftest->verdict_count - failed), KEY("failed", failed), END_OBJECT);
    json_end(&writer); /* main checks stdout */
}

static void selftest_free(struct selftest *selftest) {
    for (int i = 0; i < TRIALS; i++) {
        dump_free(&selftest->reference.dumps[i]);
        dump_free(&selftest->tested.dumps[i]);
        dump_free(&selftest->unswitched.dumps[i]);
        sample_free(&selftest->trials[i].sample);
        FREE_ALL(selftest->trials[i].image.rgb, selftest->trials[i].blocks);
    }
    runs_free(selftest->reference.runs, TRIALS);
    runs_free(selftest->tested.runs, TRIALS);
    runs_free(selftest->unswitched.runs, TRIALS);
    model_free(&selftest->model);
}

/* Tries a GPU in bf16, with one switch at a time, and in fp32. The switch `events` affects only profiles. */
static void judge_gpu(struct selftest *selftest, const char *device) {
    const uint32_t wanted = selftest->settings.gpu;
    judge(selftest, device, VP_WEIGHTS_BF16, "cublas", NULL);
    if (selftest->verdicts[selftest->verdict_count - 1].ok) { /* a failed run has no bits to compare */
        struct outcome first = selftest->tested;
        selftest->tested = selftest->unswitched;
        selftest->unswitched = first;
    }
    for (int32_t i = 0; vp_gpu_word_at(i); i++)
        if ((wanted ? wanted & vp_gpu_word_at(i)->bit : vp_gpu_word_at(i)->bit != VP_GPU_EVENTS)
            && !(selftest->by_library && vp_gpu_word_at(i)->bit == VP_GPU_LIBRARY))
            judge(selftest, device, VP_WEIGHTS_BF16, "cublas", vp_gpu_word_at(i));
    if (!selftest->by_library) judge(selftest, device, VP_WEIGHTS_FP32, "cublas", NULL);
}
/* Tries every backend that the option selects and this machine has. */
static void judge_all(struct selftest *selftest, const char *device) {
    const int wants_cpu_only = !strcmp(device, "cpu"), wants_cuda_only = !strncmp(device, "cuda", 4);
    vp_error error = {VP_OK, -1, "", ""};
    int32_t count;
    /* always, and first: the limits of the others follow from it */
    judge(selftest, "cpu", VP_WEIGHTS_BF16, "plain", NULL);
    for (int32_t i = 0; vp_engine_gemm_name(i) && !wants_cuda_only; i++)
        if (strcmp(vp_engine_gemm_name(i), "plain"))
            judge(selftest, "cpu", VP_WEIGHTS_BF16, vp_engine_gemm_name(i), NULL);
    for (int32_t i = 0; vp_engine_gemm_name(i) && !wants_cuda_only; i++)
        judge(selftest, "cpu", VP_WEIGHTS_FP32, vp_engine_gemm_name(i), NULL);
    if (wants_cpu_only) snprintf(selftest->skipped, sizeof selftest->skipped, "not requested");
    else if (vp_device_count(&count, &error) != VP_OK)
        snprintf(selftest->skipped, sizeof selftest->skipped, "%s", error.text);
    else judge_gpu(selftest, wants_cuda_only ? device : "cuda");
}

/* Compares a GPU with its own library; adds the verdicts to those of `selftest`. */
static void judge_by_library(struct selftest *library, struct selftest *selftest, const struct options *options) {
    const char *device = strcmp(text_of(options, "device"), "auto") ? text_of(options, "device") : "cuda";
    library->by_library = 1;
    if (selftest_prepare(library, options, device) == 0) judge_gpu(library, device);
    else
        library->verdicts[library->verdict_count++] =
            (struct verdict){.of = library, .backend = device, .gemm = "library", .reason = "it failed here"};
    for (int i = 0; i < library->verdict_count && selftest->verdict_count < VERDICTS_MAX; i++)
        selftest->verdicts[selftest->verdict_count++] = library->verdicts[i];
}

static int run_command(const struct options *options) {
    static struct selftest selftest, library;
    int failed = 0, code;
    code = selftest_prepare(&selftest, options, "cpu");
    if (!code) {
        judge_all(&selftest, text_of(options, "device"));
        if (!selftest.skipped[0]) judge_by_library(&library, &selftest, options);
        for (int i = 0; i < selftest.verdict_count; i++) failed += !selftest.verdicts[i].ok;
        (is_given(options, "json") ? print_selftest_json : print_selftest)(&selftest, failed);
        if (failed) code = EXIT_WORK;
    }
    selftest_free(&selftest);
    selftest_free(&library);
    return code;
}

const struct command command_selftest = {
    "selftest", "[--model DIR | --synthetic NAME]",
    "run the same requests on every backend and in every precision that this machine supports, and compare the results",
    "vlmprof selftest\n  vlmprof selftest --model checkpoint --device cuda",
    0, COMMAND_OPTIONS(SELFTEST_OPTIONS), NULL, run_command};
