/* command_selftest.c: the same requests on every backend and arithmetic, compared. */
#include "base/console.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "commands/commands.h"
#include "request/dump.h"
#include "request/input.h"
#include "request/model.h"
#include "request/prompt.h"
#include "request/provenance.h"
#include "request/record.h"
#include "request/request.h"
#include "vlmprof.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec SELFTEST_OPTIONS[] = {
    OPTION_MODEL,
    {"synthetic", TEXT, "NAME", "tiny", 0, 0, NULL, "seeded random weights in a real shape (tiny, molmoe-1b)"},
    OPTION_SEED,
    {"device", TEXT, "D", "auto", 0, 0, NULL, "what is tested: auto (all there is), cpu, cuda or cuda:N"},
    OPTION_THREADS,
    OPTION_JSON,
    OPTION_HELP,
};

/* Relative errors: ||a - b|| / ||b - mean(b)||, b in fp32 on the CPU with the plain kernel and one thread.
 * fp32: another order of summation moves logits by at most 2e-5 and image features by at most 5e-6: five times what fp32 and fp64 runs of the same
 * models differ by (tests/golden/models/README.md). All tokens must be the reference's.
 * bf16: right kernels round the same values to 8 bits and differ in the order of fp32 sums; all have about the same distance from fp32, so none may
 * be farther than SPREAD times the plain kernel (measured over 32 small models: 1.12). That holds where no choice hangs on a rounding: with all
 * experts in use. The plain kernel itself must stay below ROUNDINGS * u * sqrt(8 * blocks), u = 2^-9, 8 roundings a block. Where top_k experts are
 * chosen, a rounding can flip a choice, which moved the logits of those models by up to 0.19: there FLIPPED is the limit (unrelated logits: 1.4). */
enum { TRIALS = 3, TRIAL_TOKENS = 8, VERDICTS_MAX = 64, ERRORS = 3 };

enum { ERROR_FEATURES, ERROR_LOGITS, ERROR_ROUTED }; /* image features; logits with all experts in use; logits where experts are chosen */
static const char *const ERROR_KEYS[ERRORS] = {"image_features", "logits", "routed_logits"};

static const double FP32_LIMITS[ERRORS] = {5e-6, 2e-5, 2e-5}, SPREAD = 1.5, ROUNDINGS = 3, FLIPPED = 0.5;

/* a request of the test */
typedef struct trial { const char *name; sample a; vp_image image; vp_layout layout; int32_t *blocks; work k; } trial;
typedef struct outcome { timing *runs; vp_dump dumps[TRIALS]; } outcome; /* of all trials on one engine */
/* a backend with an arithmetic and a GEMM kernel, tried */
typedef struct verdict {
    const char *backend, *gemm;
    vp_weights weights;
    char device[200], reason[LINE_BYTES];
    double errors[ERRORS], limits[ERRORS]; /* the worst over trials and steps; limits 0: did not run to its end */
    double ms;                             /* mean of the trials */
    int32_t tokens_equal;
    int ok;
} verdict;
typedef struct selftest {
    const options *o;
    model m;
    trial trials[TRIALS];
    int32_t max_sequence, max_views;
    outcome reference, tested;
    double plain[ERRORS]; /* of the plain kernel in bf16 */
    verdict verdicts[VERDICTS_MAX];
    int verdict_count;
    char skipped[LINE_BYTES]; /* why nothing ran on a GPU; empty: it did */
} selftest;

static size_t feature_count(const selftest *x, const vp_layout *l) {
    return (size_t)l->views * (size_t)vp_geometry_tokens_per_crop(&x->m.config.geometry) * (size_t)x->m.config.d_model;
}

static int trial_make(selftest *x, int index, const char *name, const char *question, int32_t width_px, int32_t height_px, int32_t skipped_block) {
    trial *t = &x->trials[index];
    const vp_model_config *c = &x->m.config;
    vp_tile_options tiles = vp_tile_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code;
    t->name = name;
    t->a.prompt = make_prompt(NULL, question);
    if ((code = tokenize_prompt(&x->m, &t->a)) != 0) return code;
    if (width_px) {
        t->image.width_px = width_px;
        t->image.height_px = height_px;
        t->image.rgb = resize(NULL, (size_t)width_px * (size_t)height_px, 3);
        for (int32_t y = 0, i = 0; y < height_px; y++) for (int32_t px = 0; px < width_px; px++) { /* two gradients and a texture */
            t->image.rgb[i++] = (uint8_t)(px * 255 / width_px);
            t->image.rgb[i++] = (uint8_t)(y * 255 / height_px);
            t->image.rgb[i++] = (uint8_t)(px ^ y);
        }
        tiles.max_crops = c->geometry.max_crops;
        r = vp_layout_compute(&c->geometry, &tiles, width_px, height_px, &t->layout, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, x->m.name, r, &error);
        t->k.image = &t->image;
        t->k.layout = &t->layout;
        if (t->layout.views > x->max_views) x->max_views = t->layout.views;
    }
    t->blocks = resize(NULL, (size_t)c->block_count, sizeof *t->blocks);
    for (int32_t b = 0; b < c->block_count; b++) if (b != skipped_block || c->block_count == 1) t->blocks[t->k.block_count++] = b;
    t->k.blocks = t->blocks;
    t->k.top_k = skipped_block < 0 ? c->top_k : c->expert_count;
    t->k.text_ids = t->a.text_ids;
    t->k.text_count = t->a.text_count;
    t->k.new_tokens = TRIAL_TOKENS;
    t->k.ignore_eos = 1;
    if (positions_of(&t->k) > x->max_sequence) x->max_sequence = (int32_t)positions_of(&t->k) + 1;
    return check_sequence(&x->m, &t->k);
}

/* Runs all trials on one engine. The buffers for what it gives are full of NaN before. */
static vp_result run_trials(selftest *x, const vp_engine_options *e, verdict *v, outcome *out, vp_error *error) {
    session s;
    vp_result r;
    memset(&s, 0, sizeof s);
    s.m = &x->m;
    r = vp_engine_open(e, &s.engine, error);
    if (r == VP_OK) snprintf(v->device, sizeof v->device, "%s", vp_engine_device(s.engine));
    for (int i = 0; i < TRIALS && r == VP_OK; i++) {
        work k = x->trials[i].k;
        vp_dump *d = &out->dumps[i];
        if (!d->logits) dump_reserve(d, &x->m, &k);
        memset(d->logits, 0xff, TRIAL_TOKENS * (size_t)x->m.config.embedding_size * sizeof(float));
        if (k.layout) memset(d->image_features, 0xff, feature_count(x, k.layout) * sizeof(float));
        k.dump = d;
        show_progress("%s, %s: request %d of %d", v->backend, v->gemm, i + 1, TRIALS);
        r = request_run(&s, &k, &out->runs[i], error);
        v->ms += metric_of(&out->runs[i], METRIC_TOTAL) / TRIALS;
    }
    close_progress();
    session_free(&s);
    return r;
}

static double relative_error(const float *a, const float *b, size_t count) {
    double mean = 0, difference = 0, spread = 0;
    for (size_t i = 0; i < count; i++) mean += (double)b[i] / (double)count;
    for (size_t i = 0; i < count; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        spread += ((double)b[i] - mean) * ((double)b[i] - mean);
    }
    return sqrt(difference / spread);
}
static double worse_of(double worst, double error) { return isnan(worst) || error <= worst ? worst : error; } /* NaN is the worst and stays */

/* Errors against the reference; logits of a trial's steps up to the first token that differs: behind it the inputs are others. */
static void compare_trials(selftest *x, verdict *v) {
    size_t row = (size_t)x->m.config.embedding_size;
    for (int i = 0; i < TRIALS; i++) {
        const vp_dump *a = &x->tested.dumps[i], *b = &x->reference.dumps[i];
        const vp_layout *l = x->trials[i].k.layout;
        const int32_t *ours = x->tested.runs[i].tokens, *theirs = x->reference.runs[i].tokens;
        int same = 1;
        double *logits = &v->errors[x->trials[i].k.top_k == x->m.config.expert_count ? ERROR_LOGITS : ERROR_ROUTED];
        double *features = &v->errors[ERROR_FEATURES];
        if (l) *features = worse_of(*features, relative_error(a->image_features, b->image_features, feature_count(x, l)));
        for (size_t s = 0; s < TRIAL_TOKENS && same; s++) {
            *logits = worse_of(*logits, relative_error(a->logits + s * row, b->logits + s * row, row));
            same = ours[s] == theirs[s];
            v->tokens_equal += same;
        }
    }
}

/* Tries a backend. Not a kernel of this arithmetic: no verdict. */
static void judge(selftest *x, const char *device, vp_weights weights, const char *gemm) {
    vp_engine_options e = engine_options_of(x->o, &x->m, x->max_sequence, x->max_views);
    verdict *v = &x->verdicts[x->verdict_count];
    vp_error error = {VP_OK, -1, "", ""};
    int fp32 = weights == VP_WEIGHTS_FP32, plain = !fp32 && !strcmp(gemm, "plain"), vit = x->m.config.vit_blocks_needed;
    vp_result r;
    if (x->verdict_count == VERDICTS_MAX) return;
    memset(v, 0, sizeof *v);
    v->backend = device;
    v->gemm = gemm;
    v->weights = weights;
    e.device = device;
    e.weights = weights;
    e.gemm = strcmp(gemm, "cublas") ? gemm : "auto";
    r = run_trials(x, &e, v, &x->tested, &error);
    if (r == VP_ERR_RANGE && !strcmp(device, "cpu") && !v->device[0]) return;
    x->verdict_count++;
    if (r != VP_OK) { error_line(v->reason, sizeof v->reason, r, &error); return; }
    compare_trials(x, v);
    v->ok = !fp32 || v->tokens_equal == TRIALS * TRIAL_TOKENS;
    for (int i = 0; i < ERRORS; i++) {
        if (plain) x->plain[i] = v->errors[i];
        v->limits[i] = fp32 ? FP32_LIMITS[i] : i == ERROR_ROUTED ? FLIPPED : !plain ? SPREAD * x->plain[i]
            : ldexp(ROUNDINGS, -9) * sqrt(8.0 * (vit + (i == ERROR_LOGITS ? x->m.config.block_count : 0)));
        v->ok &= v->errors[i] <= v->limits[i];
    }
    if (!v->ok) snprintf(v->reason, sizeof v->reason, "differs from the reference");
}

static int selftest_prepare(selftest *x) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_engine_options e;
    verdict scratch;
    vp_result r;
    int code;
    if ((code = check_device(x->o)) != 0 || (code = model_load(x->o, &x->m)) != 0 || (code = checkpoint_open(&x->m)) != 0) return code;
    if (is_packed(&x->m))
        return complain(EXIT_INPUT, "%s: packed weights are bf16, and selftest compares with fp32: give the folder they were made of", x->m.name);
    if ((code = trial_make(x, 0, "text", "Is there a clock next to the bridge?", 0, 0, -1)) != 0
        || (code = trial_make(x, 1, "wide image", "What is this?", 451, 300, -1)) != 0
        || (code = trial_make(x, 2, "small image, all experts, a block skipped", "How many are there?", 240, 120, x->m.config.block_count / 2)) != 0)
        return code;
    x->reference.runs = timings_make(TRIALS, TRIAL_TOKENS);
    x->tested.runs = timings_make(TRIALS, TRIAL_TOKENS);
    memset(&scratch, 0, sizeof scratch);
    scratch.backend = "reference";
    scratch.gemm = "plain";
    e = engine_options_of(x->o, &x->m, x->max_sequence, x->max_views);
    e.device = "cpu";
    e.weights = VP_WEIGHTS_FP32;
    e.gemm = "plain";
    e.threads = 1;
    r = run_trials(x, &e, &scratch, &x->reference, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), x->m.name, r, &error);
}

static void print_selftest(const selftest *x, int failed) {
    printf("%s%s: %d requests of %d tokens against the CPU in fp32, plain kernel, 1 thread; the worst relative errors\n\n", x->m.name,
           x->m.synthetic ? " (synthetic weights)" : "", TRIALS, TRIAL_TOKENS);
    printf("%-20s %8s %8s %9s %8s %9s %8s %9s %11s\n", "backend", "features", "limit", "logits", "limit", "routed", "limit", "tokens", "ms/request");
    for (int i = 0; i < x->verdict_count; i++) {
        const verdict *v = &x->verdicts[i];
        printf("%-4s %s %-10s", v->backend, v->weights == VP_WEIGHTS_FP32 ? "fp32" : "bf16", v->gemm);
        for (int k = 0; k < ERRORS && v->limits[0] > 0; k++) printf(" %9.1e %8.1e", v->errors[k], v->limits[k]);
        if (v->limits[0] > 0) printf(" %3d of %2d %11.2f  %s\n", v->tokens_equal, TRIALS * TRIAL_TOKENS, v->ms, v->ok ? "OK" : "FAILED");
        else printf(" FAILED: %s\n", v->reason);
    }
    if (x->skipped[0]) printf("cuda: skipped: %s\n", x->skipped);
    printf("selftest: %d passed, %d failed, %d skipped\n", x->verdict_count - failed, failed, x->skipped[0] != 0);
}

static void print_selftest_json(const selftest *x, int failed) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-selftest-1");
    put_text(&w, "version", VLMPROF_VERSION);
    put_text(&w, "build", build_text());
    put_text(&w, "model", x->m.name);
    put_bool(&w, "synthetic", x->m.synthetic);
    put_text(&w, "reference", "cpu fp32 plain, 1 thread");
    vp_json_key(&w, "requests");
    vp_json_begin_array(&w);
    for (int i = 0; i < TRIALS; i++) {
        const work *k = &x->trials[i].k;
        vp_json_begin_object(&w);
        put_text(&w, "name", x->trials[i].name);
        put_int(&w, "views", k->layout ? k->layout->views : 0);
        put_int(&w, "total_sequence_length", sequence_of(k));
        put_int(&w, "output_tokens", k->new_tokens);
        put_int(&w, "top_k", k->top_k);
        put_ints(&w, "active_block_indices", k->blocks, k->block_count);
        vp_json_end_object(&w);
    }
    vp_json_end_array(&w);
    vp_json_key(&w, "checks");
    vp_json_begin_array(&w);
    for (int i = 0; i < x->verdict_count; i++) {
        const verdict *v = &x->verdicts[i];
        int compared = v->limits[0] > 0;
        vp_json_begin_object(&w);
        put_text(&w, "backend", v->backend);
        put_text(&w, "weights", v->weights == VP_WEIGHTS_FP32 ? "fp32" : "bf16");
        put_text(&w, "gemm", v->gemm);
        put_text(&w, "device", v->device[0] ? v->device : NULL);
        put_bool(&w, "ok", v->ok);
        put_text(&w, "reason", v->reason[0] ? v->reason : NULL);
        for (int k = 0; k < ERRORS; k++) {
            char key[40];
            snprintf(key, sizeof key, "%s_error", ERROR_KEYS[k]);
            put_double(&w, key, compared ? v->errors[k] : (double)NAN);
            snprintf(key, sizeof key, "%s_limit", ERROR_KEYS[k]);
            put_double(&w, key, compared ? v->limits[k] : (double)NAN);
        }
        put_int(&w, "tokens_equal", v->tokens_equal);
        put_int(&w, "tokens", TRIALS * TRIAL_TOKENS);
        put_double(&w, "ms_per_request", compared ? v->ms : (double)NAN);
        vp_json_end_object(&w);
    }
    vp_json_end_array(&w);
    put_text(&w, "cuda_skipped", x->skipped[0] ? x->skipped : NULL);
    put_int(&w, "passed", x->verdict_count - failed);
    put_int(&w, "failed", failed);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

static void selftest_free(selftest *x) {
    for (int i = 0; i < TRIALS; i++) {
        vp_dump *dumps[2] = {&x->reference.dumps[i], &x->tested.dumps[i]};
        for (int k = 0; k < 2; k++) {
            free(dumps[k]->image_features);
            free(dumps[k]->block_last);
            free(dumps[k]->logits);
        }
        sample_free(&x->trials[i].a);
        free(x->trials[i].image.rgb);
        free(x->trials[i].blocks);
    }
    timings_free(x->reference.runs, TRIALS);
    timings_free(x->tested.runs, TRIALS);
    model_free(&x->m);
}

static int run_command(const options *o) {
    static selftest x;
    const char *device = text_of(o, "device");
    int failed = 0, cuda = !strncmp(device, "cuda", 4), code;
    vp_error error = {VP_OK, -1, "", ""};
    int32_t count;
    x.o = o;
    code = selftest_prepare(&x);
    if (!code) {
        judge(&x, "cpu", VP_WEIGHTS_BF16, "plain"); /* first, and always: the others are measured by it */
        for (int32_t i = 0; vp_engine_gemm_name(i) && !cuda; i++)
            if (strcmp(vp_engine_gemm_name(i), "plain")) judge(&x, "cpu", VP_WEIGHTS_BF16, vp_engine_gemm_name(i));
        for (int32_t i = 0; vp_engine_gemm_name(i) && !cuda; i++) judge(&x, "cpu", VP_WEIGHTS_FP32, vp_engine_gemm_name(i));
        if (!strcmp(device, "cpu")) snprintf(x.skipped, sizeof x.skipped, "not asked for");
        else if (vp_device_count(&count, &error) != VP_OK) snprintf(x.skipped, sizeof x.skipped, "%s", error.text);
        else for (int fp32 = 0; fp32 < 2; fp32++) judge(&x, cuda ? device : "cuda", fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16, "cublas");
        for (int i = 0; i < x.verdict_count; i++) failed += !x.verdicts[i].ok;
        (given(o, "json") ? print_selftest_json : print_selftest)(&x, failed);
        if (failed) code = EXIT_WORK;
    }
    selftest_free(&x);
    return code;
}

const command command_selftest = {
    "selftest", "[--model DIR | --synthetic NAME]",
    "the same requests on every backend and arithmetic that this machine has, compared",
    "vlmprof selftest\n  vlmprof selftest --model checkpoint --device cuda",
    0, SELFTEST_OPTIONS, sizeof SELFTEST_OPTIONS / sizeof *SELFTEST_OPTIONS, NULL, run_command};
