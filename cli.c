/* cli.c: the vlmprof command line. It only stitches: options -> plan -> request -> record -> journal -> files; tiling, tokens, timing
 * statistics, scoring, JSON and the model live in vlmprof.h and vlmprof_kernels.cu.
 *
 * >>say       messages, exit codes, growing memory
 * >>options   the tables of commands and options: parser, help, checks and the JSON's config block come from them
 * >>help      usage texts
 * >>json      small helpers over the library's writer and reader
 * >>model     checkpoint folder or synthetic preset; engine
 * >>prompt    a record's fields -> prompt text
 * >>request   one timed pass from pixels to text, and the numbers derived from its stamps
 * >>scoring   an object with an answer and references -> its score; what many scores come to
 * >>record    a measured point as JSON
 * >>dump      NumPy files
 * >>run       one image, one question
 * >>tile      tilings and token counts, no model
 * >>tokenize  text <-> ids
 * >>score     scores of rows without a model, and of a result file again
 * >>data      data sets: JSONL, VQA v2, folders of images
 * >>plan      grid x samples, file names, fingerprint
 * >>journal   one line a run, for ever; what makes a killed sweep resume
 * >>files     journals -> one result file per configuration
 * >>sweep     the loop, alone or as one of several processes; merge
 * >>convert   a model in another form
 * >>family    token counts of other model families; the knob that keeps under a count; drawings
 * >>results   result files -> arrays: what reports, estimates and comparisons are made of
 * >>report    where the time goes (E1), what it buys (E2)
 * >>estimate  what a request will cost (E3): fit, predict
 * >>html      the report as one page with plots
 * >>compare   the best configuration within a budget; whether a change made it slower or worse
 * >>profile   a request operation by operation: tables, schedules, traces, and what that costs
 * >>trace     a Chrome trace, ours or torch.profiler's, in tables
 * >>info      this build, this machine, a checkpoint
 * >>selftest  the same requests on every backend and arithmetic, compared
 * >>main */
#define _DEFAULT_SOURCE 1 /* madvise */
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_caption.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_engine.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_prompt.h"
#include "vlmprof_ranges.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"
#include "vlmprof_tokenizer.h"
#include "vlmprof_trace.h"
#include "vlmprof_unicode.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ================================================================================================ say >>say */
enum { EXIT_WORK = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_DEVICE = 4, EXIT_OUTPUT = 5, EXIT_INTERRUPTED = 130 };
enum { LINE_BYTES = 832 }; /* of a reason: a vp_error's place and text fit */

static volatile sig_atomic_t interrupted; /* a signal came: a sweep finishes the current point */
static volatile sig_atomic_t sweep_runs;  /* or convert, which tidies up; other commands end at once */
static int progress_is_open;              /* an unfinished progress line stands on the terminal */

/* One line on stderr; control bytes of file names and texts become '?', so that it stays one. Returns the exit code. */
static int complain(int exit_code, const char *format, ...) {
    char line[LINE_BYTES * 2];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    for (char *p = line; *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?';
    fprintf(stderr, "%svlmprof: %s\n", progress_is_open ? "\n" : "", line);
    progress_is_open = 0;
    return exit_code;
}

static int exit_code_of(vp_result result) {
    switch (result) {
    case VP_OK: return 0;
    case VP_ERR_RANGE: return EXIT_USAGE;
    case VP_ERR_MEMORY: case VP_ERR_DEVICE: case VP_ERR_STATE: return EXIT_DEVICE;
    case VP_ERR_WRITE: return EXIT_OUTPUT;
    case VP_ERR_INTERRUPTED: return EXIT_INTERRUPTED;
    default: return EXIT_INPUT;
    }
}

static void error_line(char *out, size_t capacity, vp_result result, const vp_error *error) {
    const char *text = error->text[0] ? error->text : vp_result_text(result);
    if (error->where[0]) snprintf(out, capacity, "%s: %s", error->where, text);
    else snprintf(out, capacity, "%s", text);
}

/* what: the file or step concerned; not repeated where the library's error already names it */
static int complain_result(int exit_code, const char *what, vp_result result, const vp_error *error) {
    char line[LINE_BYTES];
    error_line(line, sizeof line, result, error);
    if (!what || strstr(line, what)) return complain(exit_code, "%s", line);
    return complain(exit_code, "%s: %s", what, line);
}

/* Memory of the command itself; a journal is always on disk already, so ending here loses nothing measured. */
static void *resize(void *memory, size_t count, size_t element_bytes) {
    void *p = NULL;
    if (element_bytes && count <= SIZE_MAX / element_bytes) p = realloc(memory, count ? count * element_bytes : 1);
    if (!p) exit(complain(EXIT_DEVICE, "not enough memory for %zu x %zu bytes: use fewer samples, crops or new tokens", count, element_bytes));
    return p;
}
static void *zeroed(size_t count, size_t element_bytes) {
    void *p = resize(NULL, count, element_bytes);
    memset(p, 0, count * element_bytes);
    return p;
}
static char *copy_text(const char *text, size_t bytes) {
    char *p = (char *)resize(NULL, bytes + 1, 1);
    memcpy(p, text, bytes);
    p[bytes] = 0;
    return p;
}

typedef struct text_buffer { char *data; size_t bytes, capacity; } text_buffer;
static void text_add(text_buffer *t, const char *p, size_t bytes) {
    if (t->bytes + bytes + 1 > t->capacity) {
        t->capacity = (t->bytes + bytes + 1) * 2;
        t->data = (char *)resize(t->data, t->capacity, 1);
    }
    memcpy(t->data + t->bytes, p, bytes);
    t->bytes += bytes;
    t->data[t->bytes] = 0;
}
static void text_add_string(text_buffer *t, const char *p) { text_add(t, p, strlen(p)); }

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes) { /* FNV-1a */
    const unsigned char *p = (const unsigned char *)data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}
static uint64_t hash_text(uint64_t hash, const char *text) { return hash_bytes(hash, text ? text : "\1", text ? strlen(text) + 1 : 2); }
static uint64_t hash_number(uint64_t hash, int64_t value) { return hash_bytes(hash, &value, sizeof value); }
static const uint64_t HASH_START = UINT64_C(14695981039346656037);

static int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}
/* Makes a folder and its parents; 0 or an exit code. */
static int make_folder(const char *path) {
    char *p = copy_text(path, strlen(path));
    for (char *s = p + 1; ; s++) {
        char kept = *s;
        if (kept != '/' && kept) continue;
        *s = 0;
        if (mkdir(p, 0777) && (errno != EEXIST || !is_folder(p))) {
            int code = complain(EXIT_OUTPUT, "%s: the folder cannot be made: %s", p,
                                errno == EEXIST ? "a file of this name stands there" : strerror(errno));
            free(p);
            return code;
        }
        *s = kept;
        if (!kept) break;
    }
    free(p);
    return 0;
}
static char *join_path(const char *folder, const char *name) {
    text_buffer t = {NULL, 0, 0};
    text_add_string(&t, folder);
    if (t.bytes && t.data[t.bytes - 1] != '/') text_add(&t, "/", 1);
    text_add_string(&t, name);
    return t.data;
}
/* A file's name lasts once its folder is on the disk too; file systems that cannot sync a folder say EINVAL. */
static int sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY), error = 0;
    if (fd < 0) return errno;
    if (fsync(fd) && errno != EINVAL && errno != ENOTSUP) error = errno;
    close(fd);
    return error;
}

/* ======================================================================================== options >>options */
enum { RUN = 1, TILE = 2, SWEEP = 4, TOKENIZE = 8, INFO = 16, SELFTEST = 32, CONVERT = 64, SCORE = 128, RESCORE = 256, MERGE = 512, REPORT = 1024,
       BEST = 2048, COMPARE = 4096, FIT = 8192, PREDICT = 16384, TRACE = 32768 };
typedef enum option_kind { FLAG, COUNT, REAL, TEXT, MAYBE, CHOICE, COUNTS, TEXTS } option_kind; /* MAYBE: a text, only as --name=TEXT */
typedef struct option_spec {
    const char *name;
    option_kind kind;
    const char *argument; /* as the help shows it */
    const char *fallback; /* default, in the words of the command line; NULL: none */
    int64_t least, most;  /* COUNT, REAL, COUNTS */
    const char *choices;  /* CHOICE: separated by spaces */
    unsigned commands;
    const char *help;
} option_spec;

static const option_spec OPTIONS[] = {
    {"model", TEXT, "DIR", NULL, 0, 0, NULL, RUN | SWEEP | TOKENIZE | INFO | SELFTEST,
     "checkpoint folder: config.json, tokenizer.json, and *.safetensors or what convert packed"},
    {"synthetic", TEXT, "NAME", NULL, 0, 0, NULL, RUN | SWEEP | TOKENIZE | INFO | CONVERT,
     "seeded random weights in a real shape (tiny, molmoe-1b): latency is real, answers are noise"},
    {"synthetic", TEXT, "NAME", "tiny", 0, 0, NULL, SELFTEST, "seeded random weights in a real shape (tiny, molmoe-1b)"},
    {"layout", CHOICE, "FORM", "hf", 0, 0, "hf packed", CONVERT,
     "hf: bf16 safetensors, for any device and other programs; packed: what the CPU maps as it is, bf16 only"},
    {"max_shard_mb", COUNT, "N", "5000", 1, 1000000, NULL, CONVERT, "hf: most MB of tensors in one file"},
    {"tokenizer", TEXT, "FILE", NULL, 0, 0, NULL, TOKENIZE, "a tokenizer.json"},
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, RUN, "the question (short: -p)"},
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, SWEEP, "the question for each image of a folder (short: -p)"},
    {"style", TEXT, "S", NULL, 0, 0, NULL, RUN, "prompt style: \" User: S: TEXT Assistant:\""},
    {"style", TEXT, "S", NULL, 0, 0, NULL, SWEEP, "prompt style of records without one (default: the data set's)"},
    {"raw_prompt", FLAG, NULL, NULL, 0, 0, NULL, RUN, "tokenize TEXT as it is"},
    {"show_prompt", FLAG, NULL, NULL, 0, 0, NULL, RUN, "print the prompt's text and ids as JSON and end; the model does not run"},
    {"preprocess", CHOICE, "HOW", "adaptive", 0, 0, "adaptive adaptive-fill tier", RUN | TILE | PREDICT,
     "adaptive: fit and pad; adaptive-fill: fill and centre-crop; tier: fill, crops by --tier"},
    {"tier", CHOICE, "T", NULL, 0, 0, "low medium high", RUN | TILE | PREDICT,
     "crops of a tier: low 1-3, medium 4-8, high 9-15; implies --preprocess tier"},
    {"max_crops", COUNT, "N", "12", 1, 1024, NULL, RUN | TILE | PREDICT,
     "most crops of adaptive tiling, without the global view; run: the checkpoint's"},
    {"crops", COUNT, "N", NULL, 1, 1024, NULL, RUN | TILE | PREDICT, "exactly N crops, in the factorisation nearest to the image's shape"},
    {"vision_tokens", COUNT, "N", NULL, 1, 1000000, NULL, RUN | TILE, "target number of vision tokens: N / 144 - 1 crops"},
    {"vision_tokens", COUNT, "N", NULL, 0, 1000000, NULL, PREDICT, "of a size: the target number; with --views: those the language model sees"},
    {"sizes", TEXT, "LIST", NULL, 0, 0, NULL, TILE, "file with one WxH a line (- is stdin)"},
    {"family", TEXT, "NAME", NULL, 0, 0, NULL, TILE, "another model family (qwen2.5-vl, internvl3 ...); its keys become options: --max_pixels N"},
    {"checkpoint", TEXT, "DIR", NULL, 0, 0, NULL, TILE, "family and limits from the config files of a folder (no weights are read)"},
    {"compare", TEXT, "A,B,...", NULL, 0, 0, NULL, TILE, "several families, a row for each"},
    {"list_families", FLAG, NULL, NULL, 0, 0, NULL, TILE, "names, rules, certainty and keys of all families"},
    {"max_tokens", COUNT, "N", NULL, 1, INT64_C(1000000000), NULL, TILE,
     "the other way: the largest limit of the family that keeps the images at N tokens"},
    {"percentile", COUNT, "P", "95", 1, 100, NULL, TILE, "with --max_tokens and several images: this share of them"},
    {"draw", TEXT, "OUT.png", NULL, 0, 0, NULL, TILE, "picture of one image with the family's tiles and global view"},
    {"csv", FLAG, NULL, NULL, 0, 0, NULL, TILE | TRACE, "comma-separated values"},
    {"data", TEXTS, "FILE...", NULL, 0, 0, NULL, SWEEP,
     "JSONL (id, image, question, answers, options, style, dataset a line), VQA v2's question file, or a folder of images with -p"},
    {"annotations", TEXT, "FILE", NULL, 0, 0, NULL, SWEEP, "VQA v2's answers (default: the file of the official name beside the questions)"},
    {"image_dir", TEXT, "DIR", NULL, 0, 0, NULL, SWEEP, "where relative image names start; for VQA v2 it or its val2014 holds COCO_val2014_*.jpg"},
    {"stratify_by", TEXT, "FIELD", NULL, 0, 0, NULL, SWEEP, "draw samples so that this field's values keep their shares"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, SWEEP, "folder for the result files and the journal"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, MERGE, "folder for the result files (default: the first DIR)"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL, MERGE, "write what is there: ranks, points that are missing are counted in the files"},
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, SWEEP,
     "task in the file names (default: the data file's stem); a known one (text_vqa ...) sets style, metric, max_new_tokens"},
    {"metric", TEXT, "M", NULL, 0, 0, NULL, SWEEP, "scoring rule of the accuracy (default: the data set's; vqa_seed for an unknown one)"},
    {"metric", TEXT, "M", NULL, 0, 0, NULL, SCORE, "scoring rule: vqa_seed, vqa_official, em, anls, mmmu, cider, bleu ...; a wrong one lists all"},
    {"metric", TEXT, "M", NULL, 0, 0, NULL, RESCORE, "scoring rule (default: the one that the file names)"},
    {"clean", CHOICE, "HOW", "rule", 0, 0, "rule none last frequent run", SCORE,
     "cleaning of predictions: the rule's own (captions: built-in tokenizer), none, the last line, the most frequent line, or as in a sweep"},
    {"tier_list", TEXTS, "T...", NULL, 0, 0, NULL, SWEEP, "tiers of the grid (default, without --vision_tokens_list: all)"},
    {"vision_tokens_list", COUNTS, "N...", NULL, 1, 1000000, NULL, SWEEP, "target vision tokens of the grid, instead of tiers"},
    {"top_k_list", COUNTS, "K...", NULL, 1, 1000000, NULL, SWEEP, "experts a token uses (default: as trained)"},
    {"num_active_blocks_list", COUNTS, "N...", NULL, 1, 1000000, NULL, SWEEP, "decoder blocks that run (default: all)"},
    {"top_k", COUNT, "K", NULL, 1, 1000000, NULL, RUN, "experts a token uses (default: as trained)"},
    {"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, RUN, "decoder blocks that run: the first N, or by importance (default: all)"},
    {"active_blocks", COUNTS, "I,J,...", NULL, 0, 1000000, NULL, RUN, "decoder blocks that run, by index"},
    {"importance_scores_file", TEXT, "FILE", NULL, 0, 0, NULL, RUN | SWEEP,
     "JSON {\"block\": score}: first and last block stay, the best others fill up"},
    {"num_samples", COUNT, "N", "1000", 1, INT32_MAX, NULL, SWEEP, "samples drawn from each data file, the same for all configurations"},
    {"num_runs_per_sample", COUNT, "R", "3", 1, 10000, NULL, SWEEP, "timed runs of every point; with --stop_half_width the least number"},
    {"stop_half_width", REAL, "PERCENT", "0", 0, 100, NULL, SWEEP,
     "run a point until the 95 % interval of its P50 of T_total is within +-PERCENT; 0: --num_runs_per_sample runs"},
    {"max_runs", COUNT, "N", "100", 1, 10000, NULL, SWEEP, "with --stop_half_width: most runs of a point"},
    {"time_box_s", REAL, "S", "0", 0, 1000000, NULL, SWEEP, "with --stop_half_width: most seconds of runs of a point; 0: no limit"},
    {"timing", CHOICE, "MODE", "stage", 0, 0, "stage off", SWEEP, "stage: times of all stages; off: of the whole request only"},
    {"bare_every", COUNT, "N", "8", 0, 1000000, NULL, SWEEP,
     "every N-th point is run twice more, without and with stage times: what the tool itself costs; 0: never"},
    {"kernel_pass", FLAG, NULL, NULL, 0, 0, NULL, SWEEP, "one more run per shape and configuration with every kernel timed: the device's idle share"},
    {"max_retries", COUNT, "N", "2", 0, 100, NULL, SWEEP, "runs tried again after an error of the device, before the point fails"},
    {"retry_failed", FLAG, NULL, NULL, 0, 0, NULL, SWEEP, "measure points again that failed before"},
    {"num_runs", COUNT, "R", "1", 1, 10000, NULL, RUN, "timed runs; more than one adds an untimed warm-up"},
    {"sampling_strategy", CHOICE, "NAME", "full", 0, 0, "full balanced stratified boundary custom_sparse lhs seed_lhs", SWEEP,
     "points of the grid: full, balanced, stratified, boundary, custom_sparse, lhs (Latin hypercube), seed_lhs"},
    {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, RUN, "most tokens of the answer"},
    {"max_new_tokens", COUNT, "N", NULL, 1, 1000000, NULL, SWEEP, "most tokens of an answer (default: the data set's, else 16)"},
    {"ignore_eos", FLAG, NULL, NULL, 0, 0, NULL, RUN | SWEEP, "always make max_new_tokens tokens"},
    {"weights", CHOICE, "TYPE", "bf16", 0, 0, "bf16 fp32", RUN | SWEEP, "bf16, or fp32: fp32 arithmetic everywhere"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, RUN | SWEEP | SELFTEST | CONVERT,
     "of synthetic weights, of the sampling of data and of caption prompts"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, TOKENIZE, "of caption prompts whose record has none"},
    {"device", TEXT, "D", "auto", 0, 0, NULL, RUN | SWEEP, "auto (the first GPU, else the CPU), cpu, cuda or cuda:N"},
    {"device", TEXT, "D", "auto", 0, 0, NULL, SELFTEST, "what is tested: auto (all there is), cpu, cuda or cuda:N"},
    {"threads", COUNT, "N", "0", 0, 4096, NULL, RUN | SWEEP | SELFTEST | CONVERT, "CPU threads; 0: all this process may use"},
    {"gemm", TEXT, "NAME", "auto", 0, 0, NULL, RUN | SWEEP, "CPU matrix kernel; auto: the fastest, by a short measurement"},
    {"decode", FLAG, NULL, NULL, 0, 0, NULL, TOKENIZE, "the other way: TEXT or lines are token ids, text comes out"},
    {"jsonl", FLAG, NULL, NULL, 0, 0, NULL, TOKENIZE,
     "lines are objects: \"ids\" is added to \"text\", \"text\" to \"ids\", \"prompt_text\" and \"ids\" to a data set's record"},
    {"skip_special", FLAG, NULL, NULL, 0, 0, NULL, TOKENIZE, "with --decode: leave special tokens out"},
    {"clean_up", FLAG, NULL, NULL, 0, 0, NULL, TOKENIZE, "with --decode: no space before punctuation, as scoring does"},
    {"dump", TEXT, "DIR", NULL, 0, 0, NULL, RUN, "write inputs, features, residuals, logits and tokens as .npy (copying is inside the times)"},
    {"latency", CHOICE, "PART", "total", 0, 0, "total vision prefill decode ttft", REPORT | BEST, "the latency that accuracy is held against"},
    {"percentile", CHOICE, "P", "50", 0, 0, "50 95 99 mean", REPORT, "percentile over samples of that latency"},
    {"percentile", CHOICE, "P", "95", 0, 0, "50 95 99 mean", BEST, "percentile over samples that must hold the budget"},
    {"resamples", COUNT, "N", "1000", 10, 1000000, NULL, REPORT | BEST, "draws of the bootstrap over samples"},
    {"epsilon_latency", REAL, "PERCENT", "1", 0, 100, NULL, REPORT, "steps of the front that count: ms, in percent of the median latency"},
    {"epsilon_accuracy", REAL, "POINTS", "1", 0, 100, NULL, REPORT, "... and in points of accuracy (1 is 0.01)"},
    {"peak_tflops", REAL, "T", NULL, 0, 1000000, NULL, REPORT, "the device's TFLOP/s (default: the best that any stage here reaches)"},
    {"peak_gbs", REAL, "G", NULL, 0, 1000000, NULL, REPORT, "the device's GB/s (default: the best that any stage here reaches)"},
    {"features", CHOICE, "KIND", "physical", 0, 0, "physical seed mean", FIT,
     "of the model that is written: what the hardware does, the experiments' inputs, or none"},
    {"num_experts", COUNT, "N", NULL, 1, 1000000, NULL, FIT, "experts of the model, where the files do not say it"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, FIT, "write the model there (short: -o)"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, FIT, "write e3_latency_estimator.json there: the same model and errors"},
    {"views", COUNT, "N", NULL, 0, 100000, NULL, PREDICT,
     "a request by its counts: passes of the vision encoder, crops and global view; 0: text only"},
    {"sequence", COUNT, "N", NULL, 1, 1000000000, NULL, PREDICT, "prompt positions: BOS, image and text"},
    {"text_tokens", COUNT, "N", NULL, 0, 1000000000, NULL, PREDICT, "tokens of the prompt's text (default: the data's median)"},
    {"top_k", COUNT, "K", NULL, 1, 1000000, NULL, PREDICT, "experts a token uses (default: the data's median)"},
    {"num_active_blocks", COUNT, "N", NULL, 1, 1000000, NULL, PREDICT, "decoder blocks that run (default: the data's median)"},
    {"output_tokens", COUNT, "N", NULL, 1, 1000000000, NULL, PREDICT, "tokens of the answer (default: the data's median)"},
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL, PREDICT, "does a request hold this many ms, and how likely"},
    {"data", TEXT, "DIR", NULL, 0, 0, NULL, PREDICT, "compare predictions with the result files of a folder"},
    {"recalibrate", TEXT, "DIR", NULL, 0, 0, NULL, PREDICT, "fit the model to the device of these result files, by a line a stage"},
    {"measurements", COUNT, "N", "25", 2, INT32_MAX, NULL, PREDICT, "with --recalibrate: how many of them it may use (short: -n)"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, PREDICT, "with --recalibrate: the new model (short: -o)"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, PREDICT, "with --recalibrate: of the choice of measurements"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL, FIT | PREDICT, "JSON on stdout instead of text"},
    {"profile", FLAG, NULL, NULL, 0, 0, NULL, RUN,
     "time every operation: torch.profiler's table instead of the stages, of the requests that the schedule records"},
    {"use_profiler", FLAG, NULL, NULL, 0, 0, NULL, SWEEP,
     "the first sample of each configuration once more, operation by operation: profiler_results_config_<i>_sample_<j>.txt"},
    {"use_profiler_on_all_samples", FLAG, NULL, NULL, 0, 0, NULL, SWEEP, "with --use_profiler: every sample"},
    {"sort_by", TEXT, "KEY", NULL, 0, 0, NULL, RUN | SWEEP | TRACE,
     "order of the operations: self_cpu_time_total, cuda_time_total, count, cumulative ... (default: the self time of CPU or GPU)"},
    {"row_limit", COUNT, "N", "100", 0, INT32_MAX, NULL, RUN | SWEEP, "most rows of the table"},
    {"row_limit", COUNT, "N", "20", 0, INT32_MAX, NULL, TRACE, "most rows of a table; --json and --csv have all unless it is given"},
    {"group_by", TEXTS, "WHAT...", "part", 0, 0, NULL, RUN | SWEEP,
     "a row for each operation and: none, or some of shape stage part (of the model) block step (of decoding) place (line)"},
    {"group_by_input_shape", FLAG, NULL, NULL, 0, 0, NULL, RUN | SWEEP, "adds shape to --group_by"},
    {"group_by_input_shape", FLAG, NULL, NULL, 0, 0, NULL, TRACE, "a row for each operation and its input shapes, which stand behind the name"},
    {"group_by_stack_n", COUNT, "N", NULL, 0, 8, NULL, RUN | SWEEP,
     "innermost frames of the stack that tell rows apart (default: 1 with --with_stack)"},
    {"record_shapes", FLAG, NULL, NULL, 0, 0, NULL, RUN | SWEEP, "shapes in traces"},
    {"profile_memory", FLAG, NULL, NULL, 0, 0, NULL, RUN | SWEEP, "memory columns, what the engine holds, and memory in traces"},
    {"with_stack", FLAG, NULL, NULL, 0, 0, NULL, RUN | SWEEP, "source lines and the ranges around each operation, in the table and in traces"},
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile csv json", RUN,
     "key_averages' table, cProfile's (ncalls tottime ...), csv, or json, which vlmprof trace sorts again"},
    {"profile_format", CHOICE, "FORM", "torch", 0, 0, "torch cprofile", TRACE,
     "of the operations: key_averages' table, or cProfile's (ncalls tottime ...)"},
    {"output", TEXT, "FILE", NULL, 0, 0, NULL, RUN, "with --profile: write the table there (short: -o)"},
    {"trace", TEXT, "FILE", NULL, 0, 0, NULL, RUN, "with --profile: a Chrome trace of the first recorded cycle"},
    {"trace", FLAG, NULL, NULL, 0, 0, NULL, SWEEP, "with --use_profiler: a Chrome trace of each in profiler_traces"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, RUN,
     "with --profile: a Chrome trace of each recorded cycle, DIR/profiler_traces/<worker>.<ns>.pt.trace.json"},
    {"chrome_trace", FLAG, NULL, NULL, 0, 0, NULL, RUN, "with --output_dir: the trace of the first cycle as DIR/chrome_trace.json instead"},
    {"trace_max_bytes", COUNT, "N", "250000000", 1, INT64_MAX, NULL, RUN | SWEEP, "recording stops before a trace is larger"},
    {"skip_first", COUNT, "N", "0", 0, 1000000, NULL, RUN, "schedule: requests before the first cycle"},
    {"wait", COUNT, "N", "0", 0, 1000000, NULL, RUN, "schedule: a cycle's requests that run as ever"},
    {"warmup", COUNT, "N", "1", 0, 1000000, NULL, RUN, "schedule: then so many with every operation timed, thrown away"},
    {"active", COUNT, "N", "1", 1, 1000000, NULL, RUN, "schedule: then so many that are recorded"},
    {"repeat", COUNT, "N", "1", 0, 1000000, NULL, RUN, "schedule: cycles; 0: until --num_runs requests are done"},
    {"schedule_every_n_steps", COUNT, "N", "0", 0, 1000000, NULL, RUN, "schedule: cycles begin so many requests apart; 0: one after the other"},
    {"cost", FLAG, NULL, NULL, 0, 0, NULL, RUN, "with --profile: what each mode costs (off, stage, op, trace), by runs in random order"},
    {"cost_rounds", COUNT, "N", "20", 2, 100000, NULL, RUN, "with --cost: rounds of a run in each mode"},
    {"table", CHOICE, "WHICH", "all", 0, 0, "all summary annotations ops kernels launches tracks memory", TRACE,
     "only this one: summary annotations ops kernels launches tracks memory; of --csv ops unless it is given"},
    {"partial", FLAG, NULL, NULL, 0, 0, NULL, TRACE, "a file that is cut off: show what lies before the cut"},
    {"help", FLAG, NULL, NULL, 0, 0, NULL, FIT | PREDICT, "this text"},
    {"budget_ms", REAL, "MS", NULL, 0, 1000000000, NULL, BEST, "most ms that the latency may take"},
    {"min_accuracy", REAL, "A", NULL, 0, 1000, NULL, BEST, "least accuracy, 0.6 for example"},
    {"dataset_name", TEXT, "NAME", NULL, 0, 0, NULL, BEST, "which data set, where the files are of several"},
    {"margin", REAL, "PERCENT", "2", 0, 100, NULL, COMPARE, "a latency that differs by less is the same"},
    {"accuracy_margin", REAL, "POINTS", "1", 0, 100, NULL, COMPARE, "an accuracy that differs by less is the same (1 is 0.01)"},
    {"force", TEXTS, "WHAT...", NULL, 0, 0, NULL, COMPARE,
     "compare although this differs: device, clocks, model, weights, data, seed, runs, timing, metric ..., all"},
    {"plan", FLAG, NULL, NULL, 0, 0, NULL, COMPARE, "also tell how many samples would find a change of --effect"},
    {"effect", REAL, "PERCENT", "3", 0, 100, NULL, COMPARE, "with --plan: the smallest change of a latency that must be found; more than --margin"},
    {"markdown", FLAG, NULL, NULL, 0, 0, NULL, REPORT, "Markdown on stdout instead of text"},
    {"csv", FLAG, NULL, NULL, 0, 0, NULL, REPORT, "one row a configuration on stdout instead of text"},
    {"html", MAYBE, "[=FILE]", NULL, 0, 0, NULL, REPORT, "one page with plots, on stdout or in FILE, instead of text; it needs no network"},
    {"output_dir", TEXT, "DIR", NULL, 0, 0, NULL, REPORT,
     "write report.html, report.md, report.csv, e1_stage_decomposition.json, e2_pareto_coupling.json there"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, REPORT | BEST, "of the bootstrap"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL, REPORT | BEST | COMPARE | FIT | PREDICT | TRACE, "JSON on stdout instead of text"},
    {"help", FLAG, NULL, NULL, 0, 0, NULL, REPORT | BEST | COMPARE | FIT | PREDICT | TRACE, "this text"},
    {"plan", FLAG, NULL, NULL, 0, 0, NULL, SWEEP,
     "print the grid, its memory and expected time, and what the samples can tell apart; nothing is measured or written"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL, RUN | TILE | INFO | SELFTEST, "JSON on stdout instead of text"},
    {"json", FLAG, NULL, NULL, 0, 0, NULL, SWEEP | MERGE, "a JSON object on stdout: files, P50s, accuracies; with --plan the plan"},
    {"quiet", FLAG, NULL, NULL, 0, 0, NULL, SWEEP | MERGE, "no progress and no table on stderr, errors only"},
    {"help", FLAG, NULL, NULL, 0, 0, NULL, RUN | TILE | SWEEP | TOKENIZE | INFO | SELFTEST | CONVERT | SCORE | RESCORE | MERGE, "this text"},
};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };

typedef struct option_value {
    int given;
    int64_t number; double real;
    const char *text;
    const char **items; int64_t *numbers; size_t count;
} option_value;
typedef struct options {
    unsigned command;
    const char *command_name;
    option_value values[OPTION_COUNT];
    const char **operands; size_t operand_count;
    char **argv; int argc;
    char **pieces; size_t piece_count; /* copies made when lists were split at commas */
    const char **keys; size_t key_count; /* pairs of a model family's key and its value (tile) */
} options;

typedef struct command {
    const char *name;
    unsigned bit;
    const char *operands, *summary, *example;
    size_t operands_most;
    int (*run)(const options *o);
} command;
static int command_run(const options *o);
static int command_tile(const options *o);
static int command_sweep(const options *o);
static int command_tokenize(const options *o);
static int command_score(const options *o);
static int command_rescore(const options *o);
static int command_merge(const options *o);
static int command_convert(const options *o);
static int command_report(const options *o);
static int command_fit(const options *o);
static int command_predict(const options *o);
static int command_best(const options *o);
static int command_compare(const options *o);
static int command_trace(const options *o);
static int command_info(const options *o);
static int command_selftest(const options *o);

static const command COMMANDS[] = {
    {"run", RUN, "[IMAGE] -p TEXT (--model DIR | --synthetic NAME)", "answer one question and show where the milliseconds go",
     "vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --max_new_tokens 8\n"
     "  vlmprof run cat.jpg -p \"What is this?\" --model checkpoint --device cuda:0 --num_runs 5 --json\n"
     "  vlmprof run cat.jpg -p \"What is this?\" --synthetic tiny --profile --row_limit 10 --trace trace.json", 1, command_run},
    {"tile", TILE, "WxH... | FILES | --sizes LIST", "tilings, canvas sizes and vision tokens of image sizes; needs no model",
     "vlmprof tile 640x480 1920x1080 --tier medium --csv\n"
     "  vlmprof tile --family qwen2.5-vl --max_pixels 1003520 640x480 photo.jpg\n"
     "  vlmprof tile --compare qwen3-vl,internvl3,smolvlm 1920x1080", SIZE_MAX, command_tile},
    {"sweep", SWEEP, "(--model DIR | --synthetic NAME) --data FILE... --output_dir DIR",
     "measure and score a grid of knobs over a data set; resumes when run again",
     "vlmprof sweep --synthetic tiny --data samples/questions.jsonl --output_dir results --tier_list low medium --top_k_list 1 2 --num_samples 5\n"
     "  vlmprof sweep --model checkpoint --data v2_OpenEnded_mscoco_val2014_questions.json --image_dir coco --dataset_name coco_2014_vqa \\\n"
     "    --stratify_by answer_type --output_dir results\n"
     "  vlmprof sweep --synthetic tiny --data samples/questions.jsonl --top_k_list 1 2 --plan",
     0, command_sweep},
    {"merge", MERGE, "DIR...", "result files from the journals of a sweep's processes, wherever these lie; needs no model",
     "vlmprof merge results\n  vlmprof merge node0/results node1/results --output_dir results --partial", SIZE_MAX, command_merge},
    {"tokenize", TOKENIZE, "(--tokenizer FILE | --model DIR | --synthetic NAME) [TEXT... | < LINES]",
     "text to token ids, one JSON object a line, and back",
     "vlmprof tokenize --model checkpoint \"What is this?\"\n"
     "  vlmprof tokenize --model checkpoint --jsonl < records.jsonl", SIZE_MAX, command_tokenize},
    {"score", SCORE, "--metric M [FILE.jsonl]", "score answers by any of the rules, one JSON object a line, from a file or stdin",
     "vlmprof score --metric anls answers.jsonl   # lines like {\"prediction\": \"a cat\", \"references\": [\"cat\", \"a cat\"]}", 1, command_score},
    {"rescore", RESCORE, "RESULT.json", "score the answers of a sweep's result file again; exit 1 when its accuracies differ",
     "vlmprof rescore results/questions_imgsizetier-low_crops3_topk1_blocks2.json --metric vqa_official", 1, command_rescore},
    {"convert", CONVERT, "(IN | --synthetic NAME) OUT", "write a model as a bf16 folder, or packed for the CPU so that it opens at once",
     "vlmprof convert checkpoint checkpoint-bf16\n  vlmprof convert checkpoint checkpoint-packed --layout packed", 2, command_convert},
    {"report", REPORT, "DIR...", "where the time of a sweep goes, and what accuracy it buys",
     "vlmprof report results\n  vlmprof report results --latency prefill --percentile 95 --output_dir answers\n"
     "  vlmprof report results --html=report.html", SIZE_MAX, command_report},
    {"fit", FIT, "DIR... [-o MODEL.json]", "a model of each stage's latency from result files, and how far it is off on configurations it never saw",
     "vlmprof fit results -o model.json", SIZE_MAX, command_fit},
    {"predict", PREDICT, "MODEL.json (WxH... | --views N | --data DIR | --recalibrate DIR)",
     "milliseconds of requests that were not measured, with intervals; errors on other files; another device",
     "vlmprof predict model.json 640x480 1280x720 --tier medium --top_k 4 --output_tokens 16 --budget_ms 250\n"
     "  vlmprof predict model.json --recalibrate other-device -n 50 -o other.json", SIZE_MAX, command_predict},
    {"best", BEST, "DIR... --budget_ms MS", "the most accurate configuration within a latency budget, and how surely it holds it",
     "vlmprof best results --budget_ms 250\n  vlmprof best results --budget_ms 30 --latency prefill --percentile 99 --min_accuracy 0.6 --json",
     SIZE_MAX, command_best},
    {"compare", COMPARE, "A B", "did it become slower, or worse? B against A, paired by sample and configuration; exit 1 when it did",
     "vlmprof compare before after --margin 2\n  vlmprof compare results-h100 results-h200 --force device --json", SIZE_MAX, command_compare},
    {"trace", TRACE, "FILE", "where the time of a trace goes, ours or torch.profiler's: steps, stages, operations, kernels, launches, idle streams",
     "vlmprof trace chrome_trace.json --row_limit 10\n  gunzip -c worker.1.pt.trace.json.gz | vlmprof trace - --table ops --sort_by cuda_time_total\n"
     "  vlmprof trace run.pt.trace.json --csv --table kernels", 1, command_trace},
    {"info", INFO, "[--model DIR | --synthetic NAME]",
     "this build, its processor, memory, kernels and GPUs; with --model, what a checkpoint holds and needs",
     "vlmprof info --model checkpoint --json", 0, command_info},
    {"selftest", SELFTEST, "[--model DIR | --synthetic NAME]", "the same requests on every backend and arithmetic that this machine has, compared",
     "vlmprof selftest\n  vlmprof selftest --model checkpoint --device cuda", 0, command_selftest},
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

static int option_find(unsigned bit, const char *name, size_t bytes) {
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((OPTIONS[i].commands & bit) && strlen(OPTIONS[i].name) == bytes && !memcmp(OPTIONS[i].name, name, bytes)) return i;
    return -1;
}
/* The value of an option of this command; a name that is not in the table is a mistake in this file. */
static const option_value *opt(const options *o, const char *name) {
    int i = option_find(o->command, name, strlen(name));
    if (i < 0) abort();
    return &o->values[i];
}
static int64_t number_of(const options *o, const char *name) { return opt(o, name)->number; }
static const char *text_of(const options *o, const char *name) { return opt(o, name)->text; }
static int given(const options *o, const char *name) { return opt(o, name)->given; }

static int edit_distance(const char *a, const char *b) {
    int row[65], la = (int)strlen(a), lb = (int)strlen(b);
    if (la > 64 || lb > 64) return 1000;
    for (int j = 0; j <= lb; j++) row[j] = j;
    for (int i = 1; i <= la; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int above = row[j], best = corner + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            corner = above;
            row[j] = best;
        }
    }
    return row[lb];
}

static int parse_number(const char *text, int64_t *value) {
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    if (!digits || digits > 18 || text[digits + (*text == '-')]) return 0;
    *value = strtoll(text, NULL, 10);
    return 1;
}
static int parse_real(const char *text, double *value) { /* digits with at most one point, as people write them */
    size_t digits = strspn(text, "0123456789"), more = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    if (!(digits + more) || digits + more > 18 || text[digits + (text[digits] == '.') + more]) return 0;
    *value = strtod(text, NULL);
    return 1;
}
static int has_word(const char *words, const char *word) {
    size_t bytes = strlen(word);
    for (const char *p = words; (p = strstr(p, word)) != NULL; p += bytes ? bytes : 1)
        if (bytes && (p == words || p[-1] == ' ') && (p[bytes] == ' ' || !p[bytes])) return 1;
    return 0;
}

/* Checks one word against the table and stores it; 0 or an exit code. */
static int option_store(options *o, int index, const char *word) {
    const option_spec *s = &OPTIONS[index];
    option_value *v = &o->values[index];
    int64_t number = 0;
    if (vp_utf8_valid_bytes(word, strlen(word)) != strlen(word)
        && !has_word("model data html output_dir sizes checkpoint draw tokenizer dump importance_scores_file annotations image_dir "
                     "output recalibrate trace", s->name))
        return complain(EXIT_USAGE, "--%s: the text is not valid UTF-8", s->name);
    if (s->kind == COUNT || s->kind == COUNTS) {
        if (!parse_number(word, &number)) return complain(EXIT_USAGE, "--%s: \"%s\" is not a whole number", s->name, word);
        if (!(number >= s->least && number <= s->most))
            return complain(EXIT_USAGE, "--%s: %s is outside %lld..%lld", s->name, word, (long long)s->least, (long long)s->most);
    }
    if (s->kind == REAL && (!parse_real(word, &v->real) || !(v->real >= (double)s->least && v->real <= (double)s->most)))
        return complain(EXIT_USAGE, "--%s: \"%s\" is no number from %lld to %lld", s->name, word, (long long)s->least, (long long)s->most);
    if (s->kind == CHOICE && !has_word(s->choices, word)) return complain(EXIT_USAGE, "--%s: \"%s\" is none of: %s", s->name, word, s->choices);
    v->number = number;
    v->text = word;
    if (s->kind == COUNTS || s->kind == TEXTS) {
        v->items = (const char **)resize((void *)v->items, v->count + 1, sizeof *v->items);
        v->numbers = (int64_t *)resize(v->numbers, v->count + 1, sizeof *v->numbers);
        for (size_t i = 0; i < v->count; i++)
            if (!strcmp(v->items[i], word) || (s->kind == COUNTS && v->numbers[i] == number))
                return complain(EXIT_USAGE, "--%s: %s is listed twice", s->name, word);
        v->items[v->count] = word;
        v->numbers[v->count++] = number;
    }
    return 0;
}

/* A list's argument may hold several values with commas between them (not file names: those stay whole). */
static int option_store_list(options *o, int index, const char *word) {
    if (!strcmp(OPTIONS[index].name, "data")) return option_store(o, index, word);
    for (;;) {
        size_t bytes = strcspn(word, ",");
        char *piece = copy_text(word, bytes);
        int code;
        o->pieces = (char **)resize((void *)o->pieces, o->piece_count + 1, sizeof *o->pieces);
        o->pieces[o->piece_count++] = piece;
        if ((code = option_store(o, index, piece)) != 0) return code;
        if (!word[bytes]) return 0;
        word += bytes + 1;
    }
}

static int unknown_option(const options *o, const char *argument, size_t bytes) {
    const char *best = NULL;
    char name[80];
    int least = 1000;
    snprintf(name, sizeof name, "%.*s", (int)(bytes < 79 ? bytes : 79), argument);
    for (int i = 0; i < OPTION_COUNT; i++) {
        int distance = edit_distance(name, OPTIONS[i].name);
        if (distance < least && (OPTIONS[i].commands & o->command)) { least = distance; best = OPTIONS[i].name; }
        if (!distance && !(OPTIONS[i].commands & o->command) && option_find(o->command, name, strlen(name)) < 0) {
            int owner = 0;
            while (!(OPTIONS[i].commands & COMMANDS[owner].bit)) owner++;
            return complain(EXIT_USAGE, "--%s is not an option of %s (it is one of %s); see vlmprof %s --help", name, o->command_name,
                            COMMANDS[owner].name, o->command_name);
        }
    }
    return complain(EXIT_USAGE, "unknown option --%s; the nearest is --%s; see vlmprof %s --help", name, best ? best : "help", o->command_name);
}

/* tile with a model family: what is no option is a key of the family, checked when the family is known */
static int takes_keys(const options *o) {
    static const char *const names[] = {"--family", "--checkpoint", "--compare"};
    for (int i = 2; i < o->argc && o->command == TILE; i++)
        for (int k = 0; k < 3; k++) {
            size_t bytes = strlen(names[k]);
            if (!strncmp(o->argv[i], names[k], bytes) && (!o->argv[i][bytes] || o->argv[i][bytes] == '=')) return 1;
        }
    return 0;
}
static int key_store(options *o, const char *name, size_t bytes, const char *value) {
    if (!value) return complain(EXIT_USAGE, "--%.*s needs a value", (int)bytes, name);
    o->pieces = (char **)resize((void *)o->pieces, o->piece_count + 1, sizeof *o->pieces);
    o->pieces[o->piece_count++] = copy_text(name, bytes);
    o->keys = (const char **)resize((void *)o->keys, o->key_count + 2, sizeof *o->keys);
    o->keys[o->key_count++] = o->pieces[o->piece_count - 1];
    o->keys[o->key_count++] = value;
    return 0;
}

/* argv[first] is --name, --name=value or -p; *next is moved behind what was used. */
static int option_parse(options *o, int first, int *next) {
    const char *a = o->argv[first], *equal = NULL, *name = a + 2;
    size_t bytes;
    int index, code, i = first + 1;
    if (!strcmp(a, "-p")) name = "prompt";
    else if (!strcmp(a, "-h")) name = "help";
    else if (!strcmp(a, "-o")) name = "output";
    else if (!strcmp(a, "-n")) name = "measurements";
    else if (a[1] != '-') return complain(EXIT_USAGE, "unknown option %s; long options have two hyphens; see vlmprof %s --help", a, o->command_name);
    else equal = strchr(name, '=');
    bytes = equal ? (size_t)(equal - name) : strlen(name);
    index = option_find(o->command, name, bytes);
    if (index < 0 && takes_keys(o)) {
        *next = equal || i >= o->argc ? i : i + 1;
        return key_store(o, name, bytes, equal ? equal + 1 : i < o->argc ? o->argv[i] : NULL);
    }
    if (index < 0) return unknown_option(o, name, bytes);
    if (o->values[index].given++) return complain(EXIT_USAGE, "--%s is given twice", OPTIONS[index].name);
    *next = i;
    if (OPTIONS[index].kind == FLAG) return equal ? complain(EXIT_USAGE, "--%s takes no value", OPTIONS[index].name) : 0;
    if (OPTIONS[index].kind == MAYBE && !equal) return 0;
    if (!equal && i >= o->argc) return complain(EXIT_USAGE, "--%s needs a value: %s", OPTIONS[index].name, OPTIONS[index].argument);
    if (OPTIONS[index].kind != COUNTS && OPTIONS[index].kind != TEXTS) {
        *next = equal ? i : i + 1;
        return option_store(o, index, equal ? equal + 1 : o->argv[i]);
    }
    if (equal) return option_store_list(o, index, equal + 1);
    for (; i < o->argc && strncmp(o->argv[i], "--", 2) && strcmp(o->argv[i], "-p"); i++)
        if ((code = option_store_list(o, index, o->argv[i])) != 0) return code;
    *next = i;
    return o->values[index].count ? 0 : complain(EXIT_USAGE, "--%s needs a value: %s", OPTIONS[index].name, OPTIONS[index].argument);
}

static int options_parse(options *o, int argc, char **argv) {
    int i = 2, code, only_operands = 0;
    o->argc = argc;
    o->argv = argv;
    o->operands = (const char **)resize(NULL, (size_t)argc, sizeof *o->operands);
    while (i < argc) {
        const char *a = argv[i];
        if (!only_operands && a[0] == '-' && a[1]) {
            if (!strcmp(a, "--")) { only_operands = 1; i++; continue; }
            if ((code = option_parse(o, i, &i)) != 0) return code;
        } else {
            o->operands[o->operand_count++] = a;
            i++;
        }
    }
    for (i = 0; i < OPTION_COUNT; i++)
        if ((OPTIONS[i].commands & o->command) && OPTIONS[i].fallback && !o->values[i].given && (code = option_store(o, i, OPTIONS[i].fallback)) != 0)
            return code;
    return 0;
}
static void options_free(options *o) {
    for (int i = 0; i < OPTION_COUNT; i++) { free((void *)o->values[i].items); free(o->values[i].numbers); }
    for (size_t i = 0; i < o->piece_count; i++) free(o->pieces[i]);
    free(o->pieces);
    free((void *)o->keys);
    free((void *)o->operands);
}

/* ============================================================================================== help >>help */
static void print_usage(FILE *out) {
    fprintf(out, "vlmprof %s: where the milliseconds of a vision-language model go, and what accuracy they buy\n\n"
                 "usage: vlmprof COMMAND [OPTIONS]\n\n", VLMPROF_VERSION);
    for (int i = 0; i < COMMAND_COUNT; i++) fprintf(out, "  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    fprintf(out, "\nvlmprof COMMAND --help shows a command's options with an example; vlmprof --version the version.\n"
                 "exit codes: 0 done, 1 some work failed, 2 usage, 3 bad input, 4 memory or device, 5 output not written, 130 interrupted\n");
}
static void print_help(const command *c) {
    printf("usage: vlmprof %s %s [OPTIONS]\n\n%s\n\noptions:\n", c->name, c->operands, c->summary);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option_spec *s = &OPTIONS[i];
        char head[64];
        if (!(s->commands & c->bit)) continue;
        snprintf(head, sizeof head, "--%s%s%s", s->name, s->argument ? " " : "", s->argument ? s->argument : "");
        printf("  %-32s %s", head, s->help);
        if (s->fallback) printf(" (default %s)", s->fallback);
        printf("\n");
    }
    printf("\nexample:\n  %s\n", c->example);
}

/* ============================================================================================== json >>json */
static vp_result text_sink(void *user, const char *p, size_t bytes) {
    text_add((text_buffer *)user, p, bytes);
    return VP_OK;
}
static vp_result file_sink(void *user, const char *p, size_t bytes) { return fwrite(p, 1, bytes, (FILE *)user) == bytes ? VP_OK : VP_ERR_WRITE; }

/* any bytes: what is not UTF-8 (file names, argv) becomes '?' */
static void json_lossy(vp_json_writer *w, const char *text) {
    char *copy = copy_text(text, strlen(text));
    for (char *p = copy; *p;) {
        p += vp_utf8_valid_bytes(p, strlen(p));
        if (*p) *p++ = '?';
    }
    vp_json_string(w, copy);
    free(copy);
}
static void put_text(vp_json_writer *w, const char *key, const char *text) {
    vp_json_key(w, key);
    if (text) json_lossy(w, text); else vp_json_null(w);
}
static void put_int(vp_json_writer *w, const char *key, int64_t value) { vp_json_key(w, key); vp_json_int(w, value); }
static void put_bool(vp_json_writer *w, const char *key, int value) { vp_json_key(w, key); vp_json_bool(w, value); }
static void json_double_or_null(vp_json_writer *w, double value) { if (isfinite(value)) vp_json_double(w, value); else vp_json_null(w); }
static void put_double(vp_json_writer *w, const char *key, double value) { /* NaN: not measured */
    vp_json_key(w, key);
    json_double_or_null(w, value);
}
static void put_pair(vp_json_writer *w, const char *key, int64_t first, int64_t second) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    vp_json_int(w, first);
    vp_json_int(w, second);
    vp_json_end_array(w);
}
static void put_null(vp_json_writer *w, const char *key) { vp_json_key(w, key); vp_json_null(w); }
static void put_ints(vp_json_writer *w, const char *key, const int32_t *values, int32_t count) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (int32_t i = 0; i < count; i++) vp_json_int(w, values[i]);
    vp_json_end_array(w);
}

/* Parsed text with its own node array, reused from line to line. */
typedef struct parsed { vp_json json; vp_json_node *nodes; size_t capacity; } parsed;
static vp_result parse_json(parsed *p, const char *text, size_t bytes, vp_error *error) {
    size_t needed = 0;
    vp_result r = vp_json_parse(text, bytes, p->nodes, p->capacity, &p->json, &needed, error);
    if (r != VP_ERR_CAPACITY) return r;
    p->capacity = needed * 2;
    p->nodes = (vp_json_node *)resize(p->nodes, p->capacity, sizeof *p->nodes);
    return vp_json_parse(text, bytes, p->nodes, p->capacity, &p->json, &needed, error);
}
static int node_is(const vp_json *j, uint32_t node, vp_json_type type) { return node != VP_JSON_NONE && j->nodes[node].type == (uint8_t)type; }
static char *node_text(const vp_json *j, uint32_t node) { /* unescaped copy; NULL when the node is no string or holds \u0000 */
    size_t needed = 0;
    char *out;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    out = (char *)resize(NULL, (size_t)j->nodes[node].bytes + 1, 1); /* unescaping never lengthens */
    if (vp_json_text(j, node, out, (size_t)j->nodes[node].bytes + 1, &needed) != VP_OK || strlen(out) != needed) { free(out); return NULL; }
    return out;
}
static double node_number(const vp_json *j, uint32_t node) { /* NaN for null and whatever is no number */
    double value = 0;
    return node_is(j, node, VP_JSON_NUMBER) && vp_json_to_double(j, node, &value) == VP_OK ? value : (double)NAN;
}
static int has_value(const vp_json *j, uint32_t object, const char *key) { /* null is as good as none */
    uint32_t node = vp_json_get(j, object, key);
    return node != VP_JSON_NONE && !node_is(j, node, VP_JSON_NULL);
}
static void json_node(vp_json_writer *w, const vp_json *j, uint32_t node) { /* a string's node leaves its quotes out */
    const vp_json_node *n = &j->nodes[node];
    int quotes = n->type == VP_JSON_STRING;
    vp_json_raw(w, j->text + n->start - quotes, (size_t)n->bytes + 2 * (size_t)quotes);
}

static void put_options(vp_json_writer *w, const options *o) {
    vp_json_begin_object(w);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const option_spec *s = &OPTIONS[i];
        const option_value *v = &o->values[i];
        if (!(s->commands & o->command) || !strcmp(s->name, "help")) continue;
        vp_json_key(w, s->name);
        if (s->kind == FLAG) vp_json_bool(w, v->given);
        else if (!v->text) vp_json_null(w);
        else if (s->kind == COUNT) vp_json_int(w, v->number);
        else if (s->kind == REAL) vp_json_double(w, v->real);
        else if (s->kind == TEXT || s->kind == MAYBE || s->kind == CHOICE) json_lossy(w, v->text);
        else {
            vp_json_begin_array(w);
            for (size_t k = 0; k < v->count; k++) if (s->kind == COUNTS) vp_json_int(w, v->numbers[k]); else json_lossy(w, v->items[k]);
            vp_json_end_array(w);
        }
    }
    vp_json_end_object(w);
}
static void put_config(vp_json_writer *w, const options *o) {
    vp_json_key(w, "config");
    put_options(w, o);
}

static const char *version_text(int32_t cuda, char out[24]) { /* CUDA's numbers: 13010 is 13.1 */
    snprintf(out, 24, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    return out;
}
static const char *build_text(void) {
    static char text[300];
    char toolkit[24];
    if (vp_device_toolkit()) snprintf(text, sizeof text, "compiler %.200s, CUDA %s", __VERSION__, version_text(vp_device_toolkit(), toolkit));
    else snprintf(text, sizeof text, "compiler %.200s, no GPU code", __VERSION__);
    return text;
}
static void put_gpu(vp_json_writer *w, int32_t index, const vp_device_info *gpu) {
    char text[24];
    vp_json_begin_object(w);
    put_int(w, "index", index);
    put_text(w, "name", gpu->name);
    snprintf(text, sizeof text, "%d.%d", gpu->compute_major, gpu->compute_minor);
    put_text(w, "compute_capability", text);
    put_int(w, "multiprocessors", gpu->multiprocessor_count);
    put_int(w, "memory_bytes", (int64_t)gpu->memory_bytes);
    put_int(w, "free_bytes", (int64_t)gpu->free_bytes);
    put_text(w, "driver", version_text(gpu->driver_version, text));
    put_text(w, "runtime", version_text(gpu->runtime_version, text));
    vp_json_end_object(w);
}
/* The number of the GPU that an engine runs on, "cuda:N: <name>"; -1: the CPU. */
static int32_t gpu_of(const vp_engine *engine) {
    const char *device = vp_engine_device(engine);
    return strncmp(device, "cuda:", 5) ? -1 : (int32_t)strtol(device + 5, NULL, 10);
}

static void put_telemetry(vp_json_writer *w, const vp_telemetry *t) {
    vp_json_begin_object(w);
    put_double(w, "sm_clock_mhz", t->sm_clock_mhz);
    put_double(w, "memory_clock_mhz", t->memory_clock_mhz);
    put_double(w, "power_w", t->power_w);
    put_double(w, "temperature_c", t->temperature_c);
    vp_json_key(w, "throttle_reasons");
    if (t->has_throttle_reasons) {
        vp_json_begin_array(w);
        for (int32_t bit = 0; bit < 64; bit++)
            if ((t->throttle_reasons >> bit & 1) && vp_telemetry_throttle_name(bit)) vp_json_string(w, vp_telemetry_throttle_name(bit));
        vp_json_end_array(w);
    } else vp_json_null(w);
    put_double(w, "throttle_count", t->throttle_count);
    vp_json_end_object(w);
}
/* where, when and by what this was measured; members of an open object */
static void put_provenance(vp_json_writer *w, const options *o, const vp_engine *engine) {
    char host[256] = "unknown", date[40] = "unknown";
    time_t now = time(NULL);
    struct tm utc;
    struct utsname system;
    vp_device_info gpu;
    vp_telemetry telemetry;
    gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    put_text(w, "version", VLMPROF_VERSION);
    put_text(w, "build", build_text());
    put_text(w, "host", host);
    put_text(w, "kernel", uname(&system) ? NULL : system.release);
    put_text(w, "date", date);
    put_text(w, "device", vp_engine_device(engine));
    put_text(w, "device_note", vp_engine_device_note(engine)[0] ? vp_engine_device_note(engine) : NULL);
    vp_json_key(w, "gpu");
    if (gpu_of(engine) >= 0 && vp_device_describe(gpu_of(engine), &gpu, NULL) == VP_OK) put_gpu(w, gpu_of(engine), &gpu); else vp_json_null(w);
    put_text(w, "gemm_rows_1", vp_engine_gemm(engine, 1));
    put_text(w, "gemm_rows_1024", vp_engine_gemm(engine, 1024));
    put_int(w, "threads", number_of(o, "threads"));
    put_int(w, "seed", number_of(o, "seed"));
    vp_json_key(w, "clocks"); /* null where neither NVML nor the system tells them */
    if (vp_device_telemetry(gpu_of(engine), &telemetry, NULL) == VP_OK) put_telemetry(w, &telemetry); else vp_json_null(w);
    vp_json_key(w, "argv");
    vp_json_begin_array(w);
    for (int i = 0; i < o->argc; i++) json_lossy(w, o->argv[i]);
    vp_json_end_array(w);
}

/* ============================================================================================ model >>model */
enum { JSON_FILE_BYTES_MAX = 256 << 20, IMAGE_FILE_BYTES_MAX = 1 << 30 };

typedef struct model {
    const char *name; /* folder or preset */
    int synthetic;
    vp_model_config config;
    vp_special_ids ids;
    vp_tokenizer *tokenizer;
    vp_checkpoint *checkpoint;
    uint64_t identity; /* of config, tokenizer and the weight files' names, sizes and times */
    int64_t file_bytes, file_count; /* of the weight files */
    char architecture[64];
} model;

static int read_file_in(const char *folder, const char *name, char **text, size_t *bytes, uint64_t *identity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *path = join_path(folder, name);
    vp_result r = vp_file_read(path, JSON_FILE_BYTES_MAX, text, bytes, &error);
    int code = r == VP_OK ? 0 : complain_result(exit_code_of(r), path, r, &error);
    if (r == VP_OK && identity) *identity = hash_bytes(*identity, *text, *bytes);
    free(path);
    return code;
}

/* Sums over the weight files, so that their order in the folder does not matter. */
static void weigh_files(model *m) {
    DIR *d = opendir(m->name);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        struct stat info;
        char *path;
        if (strcmp(e->d_name, VP_PACKED_FILE) && (!dot || strcmp(dot, ".safetensors"))) continue;
        path = join_path(m->name, e->d_name);
        if (stat(path, &info) == 0) {
            m->identity += hash_number(hash_number(hash_text(HASH_START, e->d_name), (int64_t)info.st_size), (int64_t)info.st_mtime);
            m->file_bytes += (int64_t)info.st_size;
            m->file_count++;
        }
        free(path);
    }
    if (d) closedir(d);
}

static int load_tokenizer(const char *json, size_t bytes, const char *what, vp_tokenizer **tokenizer) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = vp_tokenizer_load(json, bytes, tokenizer, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), what, r, &error);
}

static int load_preset(model *m) {
    vp_result r = vp_model_config_preset(m->name, &m->config);
    if (r != VP_OK) return complain(EXIT_USAGE, "--synthetic: \"%s\" is no preset; there are: tiny, molmoe-1b", m->name);
    r = vp_model_preset_ids(m->name, &m->ids);
    if (r == VP_OK) r = vp_tokenizer_bytes(&m->ids, &m->tokenizer);
    m->identity = hash_text(HASH_START, m->name);
    snprintf(m->architecture, sizeof m->architecture, "MolmoE preset");
    return r == VP_OK ? 0 : complain(exit_code_of(r), "--synthetic %s: %s", m->name, vp_result_text(r));
}

/* special ids stand at the end of the vocabulary: where they have embedding rows, the text's tokens have */
static int check_ids(const model *m, const char *what) {
    const int32_t ids[] = {m->ids.bos, m->ids.im_start, m->ids.im_end, m->ids.im_patch, m->ids.im_col};
    int32_t rows = m->config.embedding_size + m->config.additional_vocab_size;
    for (int i = 0; i < 5; i++)
        if (ids[i] >= rows) return complain(EXIT_INPUT, "%s: token %d has no embedding: config.json has %d rows", what, ids[i], rows);
    return 0;
}

/* config.json's architectures[0]: only to be shown */
static void read_architecture(model *m, const char *config, size_t bytes) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    uint32_t list = parse_json(&p, config, bytes, NULL) == VP_OK ? vp_json_get(&p.json, 0, "architectures") : VP_JSON_NONE;
    char *name = node_is(&p.json, list, VP_JSON_ARRAY) && p.nodes[list].count ? node_text(&p.json, vp_json_at(&p.json, list, 0)) : NULL;
    snprintf(m->architecture, sizeof m->architecture, "%s", name ? name : "not named in config.json");
    free(name);
    free(p.nodes);
}

static int is_original(const char *folder) { /* as OLMo's training code leaves a checkpoint */
    char *yaml = join_path(folder, "config.yaml"), *json = join_path(folder, "config.json");
    int original = access(yaml, F_OK) == 0 && access(json, F_OK) != 0;
    free(yaml);
    free(json);
    return original;
}
static int load_folder(model *m) {
    char *config = NULL, *preprocessor = NULL, *tokenizer = NULL;
    char *path = join_path(m->name, "preprocessor_config.json"), *what = join_path(m->name, "tokenizer.json");
    size_t config_bytes = 0, preprocessor_bytes = 0, tokenizer_bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code;
    m->identity = HASH_START;
    if (!is_folder(m->name)) code = complain(EXIT_INPUT, "--model %s: no such folder", m->name);
    else if (is_original(m->name))
        code = complain(EXIT_INPUT, "%s: this is OLMo's original training format (config.yaml, no config.json), whose tensors have other names and "
                        "shapes: convert it to the Hugging Face format with the model's own script first", m->name);
    else code = read_file_in(m->name, "config.json", &config, &config_bytes, &m->identity);
    if (!code && access(path, F_OK) == 0) code = read_file_in(m->name, "preprocessor_config.json", &preprocessor, &preprocessor_bytes, &m->identity);
    if (!code && (r = vp_model_config_parse(config, config_bytes, preprocessor, preprocessor_bytes, &m->config, &error)) != VP_OK)
        code = complain_result(EXIT_INPUT, m->name, r, &error);
    if (!code) code = read_file_in(m->name, "tokenizer.json", &tokenizer, &tokenizer_bytes, &m->identity);
    if (!code) code = load_tokenizer(tokenizer, tokenizer_bytes, what, &m->tokenizer);
    if (!code && (r = vp_tokenizer_special_ids(m->tokenizer, &m->ids, &error)) != VP_OK) code = complain_result(EXIT_INPUT, what, r, &error);
    if (!code) code = check_ids(m, what);
    if (!code) read_architecture(m, config, config_bytes);
    weigh_files(m);
    free(config);
    free(preprocessor);
    free(tokenizer);
    free(path);
    free(what);
    return code;
}

/* The word of --device, and that a GPU asked for by it is there: told before anything is loaded or written. */
static int check_device(const options *o) {
    const char *device = text_of(o, "device");
    vp_error error = {VP_OK, -1, "", ""};
    vp_device_info gpu;
    int64_t index = 0;
    vp_result r;
    if (!strcmp(device, "auto") || !strcmp(device, "cpu")) return 0;
    if (strcmp(device, "cuda") && (strncmp(device, "cuda:", 5) || device[5] == '-' || !parse_number(device + 5, &index) || index > INT32_MAX))
        return complain(EXIT_USAGE, "--device: \"%s\" is none of auto, cpu, cuda, cuda:N", device);
    r = vp_device_describe((int32_t)index, &gpu, &error);
    return r == VP_OK ? 0 : complain(exit_code_of(r), "--device %s: %s", device, error.text[0] ? error.text : vp_result_text(r));
}
static int check_gemm(const options *o) {
    const char *gemm = text_of(o, "gemm");
    char names[256] = "auto";
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, " %s", vp_engine_gemm_name(i));
    }
    return has_word(names, gemm) ? 0 : complain(EXIT_USAGE, "--gemm: this processor has no \"%s\"; it has: %s", gemm, names);
}

/* Everything but the weights: shape, tokenizer, ids. */
static int model_load(const options *o, model *m) {
    memset(m, 0, sizeof *m);
    if (given(o, "model") + given(o, "synthetic") > 1 || (!given(o, "model") && !text_of(o, "synthetic")))
        return complain(EXIT_USAGE, "%s needs one of --model DIR and --synthetic NAME", o->command_name);
    m->synthetic = !given(o, "model");
    m->name = text_of(o, m->synthetic ? "synthetic" : "model");
    return m->synthetic ? load_preset(m) : load_folder(m);
}
static void model_free(model *m) {
    if (m->checkpoint) vp_checkpoint_close(m->checkpoint);
    vp_tokenizer_free(m->tokenizer);
}

/* Progress on stderr: one updating line on a terminal, else a plain line every ten seconds. */
static void show_progress(const char *format, ...) {
    static int64_t last_ns, first_ns;
    int64_t now = vp_clock_ns(), every = isatty(STDERR_FILENO) ? 100000000 : INT64_C(10000000000);
    char line[256];
    struct winsize window;
    va_list list;
    if (!first_ns) first_ns = last_ns = now;
    if (now - last_ns < every) return;
    last_ns = now;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    progress_is_open = isatty(STDERR_FILENO);
    if (progress_is_open && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 && window.ws_col < sizeof line)
        line[window.ws_col - 1] = 0; /* a wrapped line could not be overwritten */
    fprintf(stderr, progress_is_open ? "\r\033[K%s" : "%s\n", line);
    fflush(stderr);
}
static void close_progress(void) {
    if (progress_is_open) fprintf(stderr, "\r\033[K");
    progress_is_open = 0;
}
static vp_result engine_progress(void *user, const char *what, int64_t done, int64_t total) {
    (void)user;
    if (interrupted) return VP_ERR_INTERRUPTED;
    show_progress("%s: %lld of %lld", what, (long long)done, (long long)total);
    return VP_OK;
}

static int checkpoint_open(model *m) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = m->synthetic || m->checkpoint ? VP_OK : vp_checkpoint_open(m->name, &m->config, &m->checkpoint, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), m->name, r, &error);
}
static int is_packed(const model *m) {
    vp_packed packed;
    return m->checkpoint && vp_checkpoint_packed(m->checkpoint, &packed) == VP_OK;
}
static vp_engine_options engine_options_of(const options *o, const model *m, int32_t max_sequence, int32_t max_views) {
    vp_engine_options e = vp_engine_options_default();
    e.config = &m->config;
    e.checkpoint = m->checkpoint;
    e.seed = (uint64_t)number_of(o, "seed");
    e.device = text_of(o, "device");
    e.threads = (int32_t)number_of(o, "threads");
    e.max_sequence = max_sequence;
    e.max_views = max_views;
    e.progress = engine_progress;
    return e;
}
static vp_result engine_try(const options *o, model *m, const char *device, int32_t max_sequence, int32_t max_views, vp_engine **engine,
                            vp_error *error) {
    vp_engine_options e;
    vp_result r = m->synthetic || m->checkpoint ? VP_OK : vp_checkpoint_open(m->name, &m->config, &m->checkpoint, error);
    if (r != VP_OK) return r;
    e = engine_options_of(o, m, max_sequence, max_views);
    e.weights = strcmp(text_of(o, "weights"), "fp32") ? VP_WEIGHTS_BF16 : VP_WEIGHTS_FP32;
    e.gemm = text_of(o, "gemm");
    e.device = device;
    r = vp_engine_open(&e, engine, error);
    close_progress();
    return r;
}
static int engine_open(const options *o, model *m, int32_t max_sequence, int32_t max_views, vp_engine **engine) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = engine_try(o, m, text_of(o, "device"), max_sequence, max_views, engine, &error);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), m->name, r, &error);
}

/* {"block": score} -> scores by block (NaN: none) and their order in the file */
static int load_importance(const char *path, int32_t block_count, double *scores, int32_t *order) {
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    size_t bytes = 0;
    int code = 0;
    vp_result r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r != VP_OK) code = complain_result(EXIT_INPUT, path, r, &error);
    else if (!node_is(&p.json, 0, VP_JSON_OBJECT)) code = complain(EXIT_INPUT, "%s: want one object {\"block\": score, ...}", path);
    for (int32_t b = 0; b < block_count; b++) { scores[b] = (double)NAN; order[b] = INT32_MAX; }
    for (uint32_t i = 1, member = 0; !code && member < p.json.nodes[0].count; member++) {
        char *key = node_text(&p.json, i);
        double score = node_number(&p.json, i + 1);
        int64_t block = -1;
        if (!key || !parse_number(key, &block) || block < 0 || block >= block_count)
            code = complain(EXIT_INPUT, "%s: \"%s\" is no block of this model (0..%d)", path, key ? key : "", block_count - 1);
        else if (order[block] != INT32_MAX) code = complain(EXIT_INPUT, "%s: block %lld stands there twice", path, (long long)block);
        else if (!isfinite(score)) code = complain(EXIT_INPUT, "%s: the score of block %lld is not a finite number", path, (long long)block);
        else { scores[block] = score; order[block] = (int32_t)member; }
        free(key);
        i = p.json.nodes[i + 1].end;
    }
    free(p.nodes);
    free(text);
    return code;
}

/* `active` blocks of the model, ascending: the first ones or, with an importance file, the ends and the most important between. */
static int choose_blocks(const options *o, const model *m, int32_t active, int32_t *blocks) {
    const char *path = text_of(o, "importance_scores_file");
    int32_t count = m->config.block_count;
    double *scores = (double *)resize(NULL, (size_t)count, sizeof *scores);
    int32_t *order = (int32_t *)resize(NULL, (size_t)count, sizeof *order);
    int code = 0;
    if (active > count) code = complain(EXIT_USAGE, "num_active_blocks %d: the model has %d blocks", active, count);
    if (!code && path) code = load_importance(path, count, scores, order);
    if (!code) {
        vp_result r = vp_sampler_blocks(count, active, path ? scores : NULL, path ? order : NULL, blocks);
        if (r != VP_OK) code = complain(path ? EXIT_INPUT : EXIT_USAGE, "%s: %d active blocks cannot be chosen (does every block have a score?): %s",
                                        path ? path : "num_active_blocks", active, vp_result_text(r));
    }
    free(scores);
    free(order);
    return code;
}

/* ========================================================================================== prompt >>prompt */
/* what a record says about its prompt; owns its texts */
typedef struct prompt_fields {
    char *dataset, *style, *hint, *question_type;
    char **questions; size_t question_count;
    char **options; size_t option_count; int has_options;
    int64_t seed, index, rng_seed; /* of captions; -1: not said */
} prompt_fields;
static void texts_free(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++) free(texts[i]);
    free(texts);
}
static void prompt_fields_free(prompt_fields *f) {
    free(f->dataset);
    free(f->style);
    free(f->hint);
    free(f->question_type);
    texts_free(f->questions, f->question_count);
    texts_free(f->options, f->option_count);
}

static vp_result bad_member(vp_error *error, const char *key, const char *want) {
    char text[160];
    snprintf(text, sizeof text, "\"%s\" must be %s", key, want);
    return vp_fail(error, VP_ERR_FORMAT, -1, "", text);
}
static vp_result read_member_text(const vp_json *j, const char *key, char **text, vp_error *error) {
    if (!has_value(j, 0, key)) return VP_OK;
    *text = node_text(j, vp_json_get(j, 0, key));
    return *text ? VP_OK : bad_member(error, key, "a string (without \\u0000)");
}
static vp_result read_member_texts(const vp_json *j, const char *key, char ***texts, size_t *count, vp_error *error) {
    uint32_t array = vp_json_get(j, 0, key);
    if (!has_value(j, 0, key)) return VP_OK;
    if (!node_is(j, array, VP_JSON_ARRAY)) return bad_member(error, key, "an array of strings");
    *texts = (char **)zeroed(j->nodes[array].count, sizeof **texts);
    for (uint32_t i = array + 1; i < j->nodes[array].end; i = j->nodes[i].end)
        if (((*texts)[*count] = node_text(j, i)) != NULL) (*count)++;
        else return bad_member(error, key, "an array of strings (without \\u0000)");
    return VP_OK;
}
static vp_result read_member_index(const vp_json *j, const char *key, int64_t *value, vp_error *error) {
    if (!has_value(j, 0, key)) return VP_OK;
    if (vp_json_to_int(j, vp_json_get(j, 0, key), value) == VP_OK && *value >= 0 && *value <= UINT32_MAX) return VP_OK;
    return bad_member(error, key, "a whole number, 0..4294967295");
}

/* Fields to release with prompt_fields_free, also after a failure. */
static vp_result read_prompt_fields(const vp_json *j, prompt_fields *f, vp_error *error) {
    const char *const keys[] = {"dataset", "style", "hint", "question_type"};
    char **const texts[] = {&f->dataset, &f->style, &f->hint, &f->question_type};
    vp_result r = VP_OK;
    f->seed = f->index = f->rng_seed = -1;
    for (int i = 0; i < 4 && r == VP_OK; i++) r = read_member_text(j, keys[i], texts[i], error);
    if (r == VP_OK && has_value(j, 0, "questions")) r = read_member_texts(j, "questions", &f->questions, &f->question_count, error);
    else if (r == VP_OK && has_value(j, 0, "question")) {
        f->questions = (char **)zeroed(1, sizeof *f->questions);
        r = read_member_text(j, "question", &f->questions[0], error);
        f->question_count = r == VP_OK;
    }
    f->has_options = has_value(j, 0, "options");
    if (r == VP_OK) r = read_member_texts(j, "options", &f->options, &f->option_count, error);
    if (r == VP_OK) r = read_member_index(j, "seed", &f->seed, error);
    if (r == VP_OK) r = read_member_index(j, "index", &f->index, error);
    if (r == VP_OK) r = read_member_index(j, "rng_seed", &f->rng_seed, error);
    return r;
}

/* The data set of a record: by name, by style where that says it, else the fallback. */
static const vp_prompt_dataset *prompt_dataset_of(const prompt_fields *f, const vp_prompt_dataset *fallback) {
    const vp_prompt_dataset *d = vp_prompt_dataset_find(f->dataset);
    if (!d) d = fallback ? fallback : vp_prompt_dataset_of_style(f->style);
    return d && d->kind == VP_PROMPT_CAPTION && !f->dataset && f->question_count ? NULL : d; /* its own question wins over the lot */
}
/* Prompt text, malloc'ed. seed and index are those of a record that says nothing. */
static vp_result build_prompt(const prompt_fields *f, const vp_prompt_dataset *fallback, const char *style, int64_t seed, int64_t index, char **text,
                              vp_prompt_info *info, vp_error *error) {
    vp_prompt p;
    size_t needed = 0;
    int64_t lot = f->rng_seed;
    vp_result r;
    if (f->seed >= 0) seed = f->seed;
    if (f->index >= 0) index = f->index;
    if (lot < 0 || f->seed >= 0 || f->index >= 0) lot = seed + index;
    memset(&p, 0, sizeof p);
    p.dataset = prompt_dataset_of(f, fallback);
    if (p.dataset && p.dataset->kind == VP_PROMPT_CAPTION && lot > UINT32_MAX)
        return vp_fail(error, VP_ERR_RANGE, -1, "", "seed + index is over 4294967295, which no RandomState takes");
    p.style = f->style ? f->style : style;
    if (p.dataset && p.dataset->kind == VP_PROMPT_SCIENCE && !f->has_options && !f->dataset) { /* a file of this name can hold other questions */
        if (!p.style) p.style = p.dataset->style;
        p.dataset = NULL;
    }
    p.questions = (const char *const *)f->questions;
    p.question_count = f->question_count;
    p.options = f->has_options ? (const char *const *)f->options : NULL;
    p.option_count = f->option_count;
    p.hint = f->hint;
    p.question_type = f->question_type;
    p.rng_seed = (uint32_t)(lot & UINT32_MAX);
    r = vp_prompt_build(&p, NULL, 0, &needed, info, error);
    if (r != VP_ERR_CAPACITY) return r;
    *text = (char *)resize(NULL, needed + 1, 1);
    return vp_prompt_build(&p, *text, needed + 1, &needed, info, error);
}
/* " User: STYLE: TEXT Assistant:", without STYLE " User: TEXT Assistant:" */
static char *make_prompt(const char *style, const char *question) {
    vp_prompt p;
    size_t needed = 0;
    char *text;
    memset(&p, 0, sizeof p);
    p.style = style;
    p.questions = &question;
    p.question_count = 1;
    if (vp_prompt_build(&p, NULL, 0, &needed, NULL, NULL) != VP_ERR_CAPACITY) abort(); /* one question always makes a prompt */
    text = (char *)resize(NULL, needed + 1, 1);
    vp_prompt_build(&p, text, needed + 1, &needed, NULL, NULL);
    return text;
}

/* ======================================================================================== request >>request */
typedef struct buffer { void *data; size_t bytes; } buffer;
static void *reserve(buffer *b, size_t count, size_t element_bytes) {
    if (!b->data || count * element_bytes > b->bytes) {
        b->data = resize(b->data, count, element_bytes);
        b->bytes = count * element_bytes;
    }
    return b->data;
}

typedef struct session {
    const model *m;
    vp_engine *engine;
    buffer pixels, masks, index, ids, scratch, answer;
} session;
static void session_free(session *s) {
    free(s->pixels.data);
    free(s->masks.data);
    free(s->index.data);
    free(s->ids.data);
    free(s->scratch.data);
    free(s->answer.data);
    if (s->engine) vp_engine_close(s->engine);
}

/* what one pass is asked to do */
typedef struct work {
    const vp_image *image;   /* NULL: text only */
    const vp_layout *layout; /* of the image, else NULL */
    const int32_t *text_ids; int32_t text_count;
    int no_bos;
    int32_t top_k; const int32_t *blocks; int32_t block_count;
    int32_t new_tokens; int ignore_eos;
    const vp_dump *dump;
    vp_timing timing;
    vp_launch *launches; int64_t launch_capacity; /* VP_TIMING_KERNEL: their records; NULL and 0: not wanted */
    vp_span *spans; int64_t span_capacity;        /* the same of the CPU's threads */
    vp_ranges *ranges;                            /* of the host's parts; NULL: not wanted */
} work;
enum { CHAIN_STAMPS = 6 }; /* clock reads of run_chain itself */
static int32_t sequence_of(const work *k) { return !k->no_bos + (k->layout ? k->layout->image_tokens : 0) + k->text_count; }
/* of the longest answer; the last new token is never fed back */
static int64_t positions_of(const work *k) { return (int64_t)sequence_of(k) + k->new_tokens - 1; }

/* what one pass gave; total_ns is read around the whole chain, the stages inside it */
typedef struct timing {
    int64_t total_ns;
    vp_stage_times times;
    int32_t token_count; int ended_by_eos;
    int32_t *tokens;  /* [new_tokens] */
    int64_t *step_ns; /* [new_tokens] */
    char *answer;     /* malloc'ed; a model may write a NUL, so its length counts */
    size_t answer_bytes;
    int64_t engine_begin_ns, launch_count, span_count; /* with launches: the clock when the engine began, and how many there were */
} timing;

/* Buffers for a pass, outside of any timed part. */
static void session_reserve(session *s, const work *k) {
    const vp_geometry *g = &s->m->config.geometry;
    reserve(&s->ids, (size_t)sequence_of(k), sizeof(int32_t));
    reserve(&s->answer, (size_t)k->new_tokens * 64 + 1024, 1);
    if (!k->layout) return;
    size_t patches = (size_t)vp_geometry_patches_per_side(g) * (size_t)vp_geometry_patches_per_side(g);
    reserve(&s->pixels, vp_preprocess_pixel_count(g, k->layout), sizeof(float));
    reserve(&s->masks, (size_t)k->layout->views * patches, sizeof(float));
    reserve(&s->index, (size_t)k->layout->views * (size_t)vp_geometry_tokens_per_crop(g), sizeof(int32_t));
    reserve(&s->scratch, vp_preprocess_scratch_bytes(g, k->layout), 1);
}

/* Pixels, index map and the sequence BOS, image tokens, text. */
static vp_result fill_inputs(session *s, const work *k) {
    const vp_geometry *g = &s->m->config.geometry;
    int32_t *ids = (int32_t *)s->ids.data, image_tokens = k->layout ? k->layout->image_tokens : 0;
    vp_result r = VP_OK;
    if (!k->no_bos) ids[0] = s->m->ids.bos; /* only a prompt without image can lack it */
    memcpy(ids + !k->no_bos + image_tokens, k->text_ids, (size_t)k->text_count * sizeof *ids);
    if (!k->layout) return VP_OK;
    r = vp_preprocess(g, k->layout, k->image->rgb, (float *)s->pixels.data, (float *)s->masks.data, s->scratch.data, s->scratch.bytes);
    if (r == VP_OK) r = vp_tokens_image_ids(g, k->layout, &s->m->ids, ids + 1, (size_t)image_tokens);
    if (r == VP_OK) r = vp_tokens_index_map(g, k->layout, 1, (int32_t *)s->index.data, s->index.bytes / sizeof(int32_t));
    return r;
}

static vp_result decode_answer(session *s, timing *t) {
    int flags = VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP; /* as the reference scores it */
    const vp_tokenizer *tokenizer = s->m->tokenizer;
    size_t count = (size_t)t->token_count;
    vp_result r = vp_tokenizer_decode(tokenizer, t->tokens, count, flags, (char *)s->answer.data, s->answer.bytes, &t->answer_bytes);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&s->answer, t->answer_bytes + 1, 1);
    return vp_tokenizer_decode(tokenizer, t->tokens, count, flags, (char *)s->answer.data, s->answer.bytes, &t->answer_bytes);
}

/* A pause that belongs to no stage, in the tests' build only: it must show as unaccounted. */
static void test_pause(void) {
#ifdef VLMPROF_TEST_HOOKS
    struct timespec pause = {0, 0};
    if (getenv("VLMPROF_TEST_PAUSE_NS")) pause.tv_nsec = strtol(getenv("VLMPROF_TEST_PAUSE_NS"), NULL, 10);
    nanosleep(&pause, NULL);
#endif
}
static void range_begin(const work *k, const char *name, int32_t line) { if (k->ranges) vp_range_begin(k->ranges, name, "cli.c", line); }
static void range_end(const work *k) { if (k->ranges) vp_range_end(k->ranges); }
/* One pass from decoded pixels to text. The image file was decoded and the prompt tokenized before. */
static vp_result run_chain(session *s, const work *k, timing *t, vp_error *error) {
    vp_request q;
    vp_reply reply;
    vp_result r;
    int64_t begin, stamp[4];
    session_reserve(s, k);
    memset(&q, 0, sizeof q);
    memset(&reply, 0, sizeof reply);
    reply.tokens = t->tokens;
    reply.step_ns = t->step_ns;
    vp_engine_settle(s->engine);
    begin = vp_clock_ns();
    range_begin(k, "request", __LINE__);
    stamp[0] = vp_clock_ns();
    range_begin(k, "preprocess", __LINE__);
    r = fill_inputs(s, k);
    range_end(k);
    stamp[1] = vp_clock_ns();
    if (r != VP_OK) return vp_fail(error, r, -1, "preprocess", vp_result_text(r));
    test_pause();
    q.input_ids = (const int32_t *)s->ids.data;
    q.input_count = sequence_of(k);
    if (k->layout) {
        q.pixels = (const float *)s->pixels.data;
        q.image_masks = (const float *)s->masks.data;
        q.image_input_idx = (const int32_t *)s->index.data;
        q.views = k->layout->views;
    }
    q.top_k = k->top_k;
    q.active_blocks = k->blocks;
    q.active_block_count = k->block_count;
    q.max_new_tokens = k->new_tokens;
    q.ignore_eos = k->ignore_eos;
    q.eos_id = s->m->ids.eos;
    q.dump = k->dump;
    q.timing = k->timing;
    q.launches = k->launches;
    q.launch_capacity = k->launch_capacity;
    q.spans = k->spans;
    q.span_capacity = k->span_capacity;
    range_begin(k, "engine", __LINE__);
    t->engine_begin_ns = k->launches ? vp_clock_ns() : 0;
    r = vp_engine_run(s->engine, &q, &reply, error);
    if (r != VP_OK) return r;
    range_end(k);
    stamp[2] = vp_clock_ns();
    t->token_count = reply.token_count;
    t->launch_count = reply.launch_count;
    t->span_count = reply.span_count;
    range_begin(k, "detok", __LINE__);
    r = decode_answer(s, t);
    range_end(k);
    stamp[3] = vp_clock_ns();
    range_end(k);
    t->total_ns = vp_clock_ns() - begin;
    if (r != VP_OK) return vp_fail(error, r, -1, "detok", vp_result_text(r));
    t->ended_by_eos = reply.ended_by_eos;
    memset(&t->times, 0, sizeof t->times);
    free(t->answer);
    t->answer = copy_text((const char *)s->answer.data, t->answer_bytes);
    if (k->timing == VP_TIMING_OFF) return VP_OK; /* the total alone was measured */
    t->times = reply.times;
    t->times.wall_ns[VP_STAGE_PREPROCESS] = stamp[1] - stamp[0];
    t->times.wall_ns[VP_STAGE_DETOK] = stamp[3] - stamp[2];
    t->times.ran[VP_STAGE_PREPROCESS] = t->times.ran[VP_STAGE_DETOK] = 1;
    return VP_OK;
}

static timing *timings_make(int32_t runs, int32_t new_tokens) {
    timing *t = (timing *)zeroed((size_t)runs, sizeof *t);
    for (int32_t i = 0; i < runs; i++) {
        t[i].tokens = (int32_t *)zeroed((size_t)new_tokens, sizeof *t[i].tokens);
        t[i].step_ns = (int64_t *)zeroed((size_t)new_tokens, sizeof *t[i].step_ns);
    }
    return t;
}
static void timings_free(timing *t, int32_t runs) {
    for (int32_t i = 0; t && i < runs; i++) {
        free(t[i].tokens);
        free(t[i].step_ns);
        free(t[i].answer);
    }
    free(t);
}

/* The numbers of a pass, by the keys of the result files, in ms; behind METRIC_STAGE those of the stages: first each one's ms, then by DETAIL. */
enum { METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TOTAL, METRIC_PER_TOKEN, METRIC_TTFT, METRIC_UNACCOUNTED, METRIC_CLOSURE, METRIC_STAGE };
enum { DETAIL_WALL = 1, DETAIL_DEVICE, DETAIL_LAUNCHES, DETAIL_FLOPS, DETAIL_BYTES, DETAIL_COUNT };
static const char *const METRIC_KEYS[METRIC_STAGE] = {"T_vision_total", "T_LLM_prefill", "T_LLM_decode", "T_total", "T_decode_per_token", "TTFT",
                                                      "unaccounted", "closure"};
static const char *const DETAIL_KEYS[DETAIL_COUNT] = {"ms", "wall_ms", "device_ms", "launches", "flops", "bytes"};
static int stage_metric(int stage, int detail) { return METRIC_STAGE + detail * VP_STAGE_COUNT + stage; }

/* A stage takes the time between its boundaries on the device: on a GPU the host's clock shows only how long sending took. */
static int is_host_stage(int stage) { return stage == VP_STAGE_PREPROCESS || stage == VP_STAGE_DETOK; }
static int64_t stage_ns(const timing *t, int stage) { return is_host_stage(stage) ? t->times.wall_ns[stage] : t->times.device_ns[stage]; }

static int64_t stages_ns(const timing *t, int first, int last) {
    int64_t sum = 0;
    for (int i = first; i <= last; i++) if (t->times.ran[i]) sum += stage_ns(t, i);
    return sum;
}

static double stage_value(const timing *t, int stage, int detail) { /* NaN: did not run, or means nothing on the host */
    if (!t->times.ran[stage] || (detail > DETAIL_WALL && is_host_stage(stage))) return (double)NAN;
    switch (detail) {
    case DETAIL_WALL: return (double)t->times.wall_ns[stage] / 1e6;
    case DETAIL_DEVICE: return (double)t->times.device_ns[stage] / 1e6;
    case DETAIL_LAUNCHES: return (double)t->times.launches[stage];
    case DETAIL_FLOPS: return (double)t->times.flops[stage];
    case DETAIL_BYTES: return (double)t->times.bytes[stage];
    default: return (double)stage_ns(t, stage) / 1e6;
    }
}
static double metric_of(const timing *t, int metric) { /* NaN: did not run */
    int64_t steps = 0, sum = stages_ns(t, 0, VP_STAGE_COUNT - 1);
    if (metric != METRIC_TOTAL && !t->times.ran[VP_STAGE_PREFILL]) return (double)NAN; /* without stage times */
    if (metric >= METRIC_STAGE) return stage_value(t, (metric - METRIC_STAGE) % VP_STAGE_COUNT, (metric - METRIC_STAGE) / VP_STAGE_COUNT);
    for (int32_t i = 0; i + 1 < t->token_count; i++) steps += t->step_ns[i];
    switch (metric) {
    case METRIC_VISION: return t->times.ran[VP_STAGE_VIT] ? (double)stages_ns(t, VP_STAGE_VIT, VP_STAGE_CONNECTOR) / 1e6 : (double)NAN;
    case METRIC_PREFILL: return (double)stages_ns(t, VP_STAGE_EMBED, VP_STAGE_SAMPLE) / 1e6;
    case METRIC_DECODE: return (double)steps / 1e6;
    case METRIC_TOTAL: return (double)t->total_ns / 1e6;
    case METRIC_PER_TOKEN: return t->token_count > 1 ? (double)steps / (t->token_count - 1) / 1e6 : (double)NAN;
    case METRIC_TTFT: return (double)stages_ns(t, 0, VP_STAGE_DECODE - 1) / 1e6;
    case METRIC_UNACCOUNTED: return (double)(t->total_ns - sum) / 1e6;
    default: return (double)sum / (double)t->total_ns;
    }
}
/* mean over runs; NaN when one of them lacks the number */
static double metric_mean(const timing *t, int32_t runs, int metric) {
    double *values = (double *)resize(NULL, (size_t)runs, sizeof *values), mean;
    for (int32_t i = 0; i < runs; i++) values[i] = metric_of(&t[i], metric);
    mean = vp_statistics_mean(values, (size_t)runs);
    free(values);
    return mean;
}

/* ======================================================================================== scoring >>scoring
 * A JSON object that holds what a scoring rule asks for (a golden row, a data set's record, a result's metadata) -> its score. */
typedef struct scoring {
    vp_score_sample sample;
    char **owned; size_t owned_count, owned_capacity; /* the texts of the row */
    const char **lists[3]; size_t capacities[3];
    size_t text_bytes;
    buffer scratch, more; /* for the score, and for what is shown beside it */
} scoring;
static void scoring_clear(scoring *s) {
    for (size_t i = 0; i < s->owned_count; i++) free(s->owned[i]);
    s->owned_count = s->text_bytes = 0;
    s->sample = vp_score_sample_default();
}
static void scoring_free(scoring *s) {
    scoring_clear(s);
    free(s->owned);
    for (int i = 0; i < 3; i++) free((void *)s->lists[i]);
    free(s->scratch.data);
    free(s->more.data);
}
static const char *scoring_own(scoring *s, char *text) {
    if (!text) return NULL;
    if (s->owned_count == s->owned_capacity) {
        s->owned_capacity = s->owned_capacity * 2 + 32;
        s->owned = (char **)resize((void *)s->owned, s->owned_capacity, sizeof *s->owned);
    }
    s->text_bytes += strlen(text);
    return s->owned[s->owned_count++] = text;
}
static size_t scoring_room(const scoring *s) { return vp_score_scratch_bytes(s->text_bytes, s->owned_count); }

/* A string, a number as it is written, or the "answer" of an object (VQA v2's annotations); NULL: none of these. */
static char *value_text(const vp_json *j, uint32_t node) {
    if (node_is(j, node, VP_JSON_NUMBER)) return copy_text(j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes);
    return node_text(j, node_is(j, node, VP_JSON_OBJECT) ? vp_json_get(j, node, "answer") : node);
}
/* One text or an array of them; 0 when some are none. */
static int scoring_list(scoring *s, int which, const vp_json *j, uint32_t node, const char *const **list, size_t *count) {
    uint32_t one = !node_is(j, node, VP_JSON_ARRAY), texts = one ? 1 : j->nodes[node].count, i = one ? node : node + 1;
    if (s->capacities[which] <= texts) {
        s->capacities[which] = (size_t)texts + 1;
        s->lists[which] = (const char **)resize((void *)s->lists[which], s->capacities[which], sizeof **s->lists);
    }
    for (uint32_t k = 0; k < texts; k++, i = j->nodes[i].end)
        if ((s->lists[which][k] = scoring_own(s, value_text(j, i))) == NULL) return 0;
    *list = (const char *const *)s->lists[which];
    *count = texts;
    return 1;
}

/* answer_index or answer_idx; else "answer" as an index, a letter or an option's text; -1 without any. */
static int64_t scoring_index(const scoring *s, const vp_json *j, uint32_t object) {
    int64_t index = -1;
    size_t count = s->sample.option_count ? s->sample.option_count : s->sample.option_name_count;
    uint32_t answer = vp_json_get(j, object, "answer");
    char *text;
    if (vp_json_to_int(j, vp_json_get(j, object, "answer_index"), &index) == VP_OK) return index;
    if (vp_json_to_int(j, vp_json_get(j, object, "answer_idx"), &index) == VP_OK) return index;
    if (vp_json_to_int(j, answer, &index) == VP_OK) return index;
    if ((text = node_text(j, answer)) == NULL) return -1;
    if (text[0] >= 'A' && text[0] <= 'Z' && !text[1] && (!count || (size_t)(text[0] - 'A') < count)) index = text[0] - 'A';
    for (size_t i = 0; i < s->sample.option_count && index < 0; i++) if (!strcmp(s->sample.options[i], text)) index = (int64_t)i;
    free(text);
    return index;
}

static int is_mmmu(int metric) { return metric == VP_SCORE_MMMU || metric == VP_SCORE_MMMU_CHOICE || metric == VP_SCORE_MMMU_OPEN; }

/* Reads what a row says; the prediction is the caller's. Returns NULL, or what is wrong with it. */
static const char *scoring_read(scoring *s, int metric, const vp_json *j, uint32_t object) {
    static const char *const keys[] = {"answer", "references", "reference", "answers", "captions", "answer"};
    vp_score_sample *a = &s->sample;
    int by_answer = is_mmmu(metric) || metric == VP_SCORE_MATH_VISTA; /* the first key is theirs alone */
    char letter[2] = {0, 0};
    uint32_t choices = vp_json_get(j, object, has_value(j, object, "options") ? "options" : "choices");
    if (choices != VP_JSON_NONE && !node_is(j, choices, VP_JSON_NULL) && !scoring_list(s, 1, j, choices, &a->options, &a->option_count))
        return "the options must be texts";
    if (has_value(j, object, "option_names")
        && !scoring_list(s, 2, j, vp_json_get(j, object, "option_names"), &a->option_names, &a->option_name_count))
        return "the option names must be texts";
    a->answer_index = scoring_index(s, j, object);
    a->question_type = scoring_own(s, node_text(j, vp_json_get(j, object, "question_type")));
    a->answer_type = scoring_own(s, node_text(j, vp_json_get(j, object, "answer_type")));
    if (vp_json_to_int(j, vp_json_get(j, object, "precision"), &a->precision) != VP_OK) a->precision = INT64_MIN;
    for (size_t i = !by_answer; i < sizeof keys / sizeof *keys && !a->references; i++) {
        uint32_t node = vp_json_get(j, object, keys[i]);
        if (!has_value(j, object, keys[i])) continue;
        if (node_is(j, node, VP_JSON_NUMBER) && a->option_count && !is_mmmu(metric) && !strcmp(keys[i], "answer")) continue; /* an index */
        if (!scoring_list(s, 0, j, node, &a->references, &a->reference_count)) return "the references must be texts";
        a->is_plain_reference = node_is(j, node, VP_JSON_STRING);
        if (!is_mmmu(metric) || !a->option_count || a->answer_index < 0 || a->answer_index > 25) continue;
        if (!node_is(j, node, VP_JSON_NUMBER) && !(a->is_plain_reference && a->references[0][0] && a->references[0][1])) continue;
        letter[0] = (char)('A' + a->answer_index); /* an index or an option's text: the rule wants the letter */
        s->lists[0][0] = scoring_own(s, copy_text(letter, 1));
    }
    return NULL;
}

static vp_result scoring_run(scoring *s, vp_score_metric metric, vp_score_cleaning cleaning, vp_score_outcome *outcome) {
    size_t room = scoring_room(s);
    return room == SIZE_MAX ? VP_ERR_CAPACITY
        : vp_score_compute(metric, cleaning, &s->sample, (char *)reserve(&s->scratch, room, 1), room, outcome);
}

/* As a sweep takes a record: one string is a list of one, and an empty list is no answer to compare with. */
static void scoring_as_run(scoring *s) {
    s->sample.is_plain_reference = 0;
    if (!s->sample.reference_count) s->sample.references = NULL;
}

/* ---- what many scores come to */
typedef struct tally {
    int is_binary;
    int64_t row_count, scored_count, unscored_count, unparsed_count, empty_count;
    double mean, spread; /* spread: sum of squared distances from the mean (Welford) */
} tally;
static void tally_add(tally *t, double score, int is_unparsed, int is_empty) { /* NaN: no score */
    t->row_count++;
    t->unparsed_count += is_unparsed;
    t->empty_count += is_empty;
    if (is_unparsed) score = 0; /* the reference would guess there; a guess earns nothing */
    if (isfinite(score)) {
        double before = score - t->mean;
        t->mean += before / (double)++t->scored_count;
        t->spread += before * (score - t->mean);
    } else t->unscored_count++;
}
static double tally_error(const tally *t) { /* of the mean: sample standard deviation / sqrt(count) */
    double n = (double)t->scored_count;
    return t->scored_count > 1 ? sqrt(t->spread / (n - 1) / n) : (double)NAN;
}
static int tally_interval(const tally *t, double *low, double *high) { /* 95 %, of 0/1 scores */
    double n = (double)t->scored_count, hits = floor(t->mean * n + 0.5);
    return t->is_binary && vp_score_wilson(hits, n, 1.959963984540054, low, high) == VP_OK;
}
static void tally_print(const tally *t, const char *metric) {
    double low, high, error = tally_error(t);
    fprintf(stderr, "vlmprof: %s: %lld rows", metric, (long long)t->row_count);
    if (t->scored_count) fprintf(stderr, ", mean %.6f over %lld", t->mean, (long long)t->scored_count);
    if (isfinite(error)) fprintf(stderr, ", standard error %.6f", error);
    if (tally_interval(t, &low, &high)) fprintf(stderr, ", 95 %% interval %.6f to %.6f (Wilson)", low, high);
    fprintf(stderr, "; %lld without a score, %lld unparsed%s, %lld empty\n", (long long)t->unscored_count, (long long)t->unparsed_count,
            t->unparsed_count ? " (0 in the mean)" : "", (long long)t->empty_count);
}

/* ========================================================================================== record >>record */
/* a question about an image; what a data set's line or `run`'s operands become */
typedef struct sample {
    int64_t id;       /* 0-based line number */
    char *record;     /* the line itself, JSON; NULL for `run` */
    char *question, *style, *prompt, *image_path;
    int32_t width_px, height_px;
    int32_t *text_ids; int32_t text_count;
    int no_image, no_bos;               /* its data set's prompt goes without */
    const vp_prompt_dataset *dataset;   /* NULL: none of the nine; names its prompt and answer length */
    char *reason; /* why the image cannot be used; NULL: it can */
} sample;
static void sample_free(sample *a) {
    free(a->record);
    free(a->question);
    free(a->style);
    free(a->prompt);
    free(a->image_path);
    free(a->text_ids);
    free(a->reason);
}

/* a measured, failed or yet unmeasured point of the grid */
typedef struct point {
    const sample *a;
    const vp_layout *layout;   /* NULL: text only, or not known */
    const char *tier;          /* NULL: not by tier */
    int32_t target_tokens, target_crops; /* 0: none */
    int32_t top_k; const int32_t *blocks; int32_t block_count;
    const timing *runs; int32_t run_count; /* 0 when it failed */
    const char *reason;                    /* NULL: measured */
    vp_score_metric metric;
    int ignore_eos;
} point;

static void put_point_layout(vp_json_writer *w, const point *p) {
    const vp_layout *l = p->layout;
    put_text(w, "tier", p->tier);
    vp_json_key(w, "target_vision_tokens");
    if (l) vp_json_int(w, p->target_tokens); else vp_json_null(w);
    vp_json_key(w, "target_crops");
    if (l) vp_json_int(w, p->target_crops); else vp_json_null(w);
    put_int(w, "top_k", p->top_k);
    put_int(w, "num_active_blocks", p->block_count);
    for (int actual = 0; actual < 2; actual++) {
        static const char *const keys[2][4] = {{"theoretical_num_crops", "theoretical_tiling", "theoretical_image_size", "theoretical_vision_tokens"},
                                               {"actual_num_crops", "actual_tiling", "actual_image_size", "actual_vision_tokens"}};
        if (l) {
            put_int(w, keys[actual][0], l->crops);
            put_pair(w, keys[actual][1], l->tiling.rows, l->tiling.cols);
            put_pair(w, keys[actual][2], l->canvas_height_px, l->canvas_width_px);
            put_int(w, keys[actual][3], actual ? l->feature_tokens : l->theoretical_tokens);
        } else {
            for (int i = 0; i < 4; i++) put_null(w, keys[actual][i]);
        }
    }
    put_int(w, "input_text_tokens", p->a->text_count);
    put_int(w, "actual_text_tokens", p->a->text_count);
    vp_json_key(w, "total_sequence_length");
    if (l || !p->a->image_path) vp_json_int(w, !p->a->no_bos + (l ? l->image_tokens : 0) + p->a->text_count); else vp_json_null(w);
}
static void put_point_tokens(vp_json_writer *w, const point *p) {
    int ran = p->run_count > 0;
    int32_t tokens = ran ? p->runs[0].token_count : 0;
    vp_json_key(w, "output_tokens");
    if (ran) vp_json_int(w, tokens); else vp_json_null(w);
    vp_json_key(w, "content_tokens");
    if (ran) vp_json_int(w, tokens - (p->runs[0].ended_by_eos != 0)); else vp_json_null(w);
    vp_json_key(w, "ends_with_eos");
    if (ran) vp_json_bool(w, p->runs[0].ended_by_eos); else vp_json_null(w);
}

static void put_point_times(vp_json_writer *w, const point *p) {
    int32_t longest = 0;
    for (int m = 0; m < METRIC_STAGE; m++) put_double(w, METRIC_KEYS[m], p->run_count ? metric_mean(p->runs, p->run_count, m) : (double)NAN);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        put_double(w, vp_stage_name((vp_stage)i), p->run_count ? metric_mean(p->runs, p->run_count, METRIC_STAGE + i) : (double)NAN);
    vp_json_end_object(w);
    vp_json_key(w, "stage_detail"); /* means over the runs */
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        for (int d = DETAIL_WALL; d < DETAIL_COUNT; d++)
            put_double(w, DETAIL_KEYS[d], p->run_count ? metric_mean(p->runs, p->run_count, stage_metric(i, d)) : (double)NAN);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    for (int32_t r = 0; r < p->run_count; r++) if (p->runs[r].token_count - 1 > longest) longest = p->runs[r].token_count - 1;
    vp_json_key(w, "T_decode_per_step"); /* [position][run]; position 0 is decode step 1 */
    vp_json_begin_array(w);
    for (int32_t i = 0; i < longest; i++) {
        vp_json_begin_array(w);
        for (int32_t r = 0; r < p->run_count; r++) if (i < p->runs[r].token_count - 1) vp_json_double(w, (double)p->runs[r].step_ns[i] / 1e6);
        vp_json_end_array(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "runs");
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE + VP_STAGE_COUNT; m++) {
        vp_json_key(w, m < METRIC_STAGE ? METRIC_KEYS[m] : vp_stage_name((vp_stage)(m - METRIC_STAGE)));
        vp_json_begin_array(w);
        for (int32_t r = 0; r < p->run_count; r++) json_double_or_null(w, metric_of(&p->runs[r], m));
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}

static void put_answer(vp_json_writer *w, const char *key, const timing *t) {
    vp_json_key(w, key);
    if (t) vp_json_string_bytes(w, t->answer, t->answer_bytes); else vp_json_null(w);
}
/* What the record says to the answer of the first timed run (C strings: a NUL ends what is scored). The texts of *o live in *s: scoring_free. */
static void score_point(const point *p, scoring *s, vp_score_outcome *o) {
    vp_score_outcome none = {(double)NAN, NULL, 0, -1, NULL, NULL};
    parsed record = {{NULL, NULL, 0}, NULL, 0};
    vp_result r;
    memset(s, 0, sizeof *s);
    scoring_clear(s);
    *o = none;
    if (!p->run_count) { o->reason = "no answer"; return; }
    s->sample.prediction = scoring_own(s, copy_text(p->runs[0].answer, strlen(p->runs[0].answer)));
    if (p->a->record && parse_json(&record, p->a->record, strlen(p->a->record), NULL) == VP_OK)
        o->reason = scoring_read(s, (int)p->metric, &record.json, 0);
    scoring_as_run(s);
    if (!o->reason && (r = scoring_run(s, p->metric, vp_score_metric_of(p->metric)->run_cleaning, o)) != VP_OK) o->reason = vp_result_text(r);
    if (o->reason && !s->sample.references && !s->sample.option_count) o->reason = "the record has no answers to compare with";
    free(record.nodes);
}
static void put_point_answer(vp_json_writer *w, const point *p, const vp_score_outcome *scored) {
    vp_score_outcome o = *scored;
    int same = 1, ran = p->run_count > 0;
    for (int32_t r = 1; r < p->run_count; r++)
        same &= p->runs[r].token_count == p->runs[0].token_count
            && !memcmp(p->runs[r].tokens, p->runs[0].tokens, (size_t)p->runs[0].token_count * sizeof(int32_t));
    put_double(w, "accuracy", o.is_unparsed ? 0 : o.score); /* unparsed: the reference guesses there; a guess earns nothing */
    put_text(w, "accuracy_reason", o.is_unparsed ? NULL : o.reason);
    put_answer(w, "pred", ran ? &p->runs[0] : NULL);
    put_text(w, "pred_cleaned", ran ? o.cleaned : NULL);
    vp_json_key(w, "unparsed");
    if (ran) vp_json_bool(w, o.is_unparsed); else vp_json_null(w);
    vp_json_key(w, "truncated"); /* no EOS among the tokens that were allowed */
    if (ran && !p->ignore_eos) vp_json_bool(w, !p->runs[0].ended_by_eos); else vp_json_null(w);
    vp_json_key(w, "empty");
    if (ran && o.cleaned) vp_json_bool(w, !o.cleaned[0]); else vp_json_null(w);
    put_ints(w, "output_token_ids", ran ? p->runs[0].tokens : NULL, ran ? p->runs[0].token_count : 0);
    vp_json_key(w, "answers_equal_over_runs");
    if (ran) vp_json_bool(w, same); else vp_json_null(w);
    put_text(w, "prompt", p->a->prompt);
}

/* the record's members, with question, answers, image_id and id always there */
static void put_metadata(vp_json_writer *w, parsed *scratch, const sample *a) {
    static const char *const always[] = {"question", "answers", "image_id", "id"};
    vp_json *j = &scratch->json;
    if (!a->record || parse_json(scratch, a->record, strlen(a->record), NULL) != VP_OK) return;
    vp_json_key(w, "metadata");
    vp_json_begin_object(w);
    for (int i = 0; i < 4; i++) {
        uint32_t node = vp_json_get(j, 0, always[i]);
        vp_json_key(w, always[i]);
        if (node != VP_JSON_NONE) json_node(w, j, node);
        else if (i == 2 && a->image_path) { /* an image file is named after its id as a rule */
            const char *name = strrchr(a->image_path, '/') ? strrchr(a->image_path, '/') + 1 : a->image_path, *dot = strrchr(name, '.');
            char *stem = copy_text(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
            json_lossy(w, stem);
            free(stem);
        } else vp_json_null(w);
    }
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        int known = !key || !strcmp(key, always[0]) || !strcmp(key, always[1]) || !strcmp(key, always[2]) || !strcmp(key, always[3]);
        if (!known) {
            vp_json_key(w, key);
            json_node(w, j, i + 1);
        }
        free(key);
    }
    vp_json_end_object(w);
}

/* ============================================================================================== dump >>dump */
/* Writes DIR/NAME.npy (version 1.0, little-endian as the machine is, C order); returns 0 or an exit code. */
static int write_npy(const char *folder, const char *name, const char *type, int dimensions, const int64_t *shape, const void *data,
                     size_t element_bytes) {
    char file[64], header[256], *path;
    size_t count = 1, used, padded;
    FILE *f;
    int bad;
    snprintf(file, sizeof file, "%s.npy", name);
    used = (size_t)snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < dimensions; i++) {
        count *= (size_t)shape[i];
        used += (size_t)snprintf(header + used, sizeof header - used, "%lld%s", (long long)shape[i],
                                 dimensions == 1 ? "," : i + 1 < dimensions ? ", " : "");
    }
    used += (size_t)snprintf(header + used, sizeof header - used, "), }");
    padded = (10 + used + 1 + 63) / 64 * 64; /* data start at a multiple of 64; the header ends with a line feed */
    path = join_path(folder, file);
    f = fopen(path, "wb");
    bad = !f;
    if (f) {
        fprintf(f, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, (int)((padded - 10) & 255), (int)((padded - 10) >> 8), header, (int)(padded - 11 - used), "");
        bad = count && fwrite(data, element_bytes, count, f) != count;
        bad |= ferror(f) != 0;
        bad |= fclose(f) != 0;
    }
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
    free(path);
    return bad ? EXIT_OUTPUT : 0;
}
static int64_t *widen(const int32_t *values, size_t count) {
    int64_t *out = (int64_t *)resize(NULL, count, sizeof *out);
    for (size_t i = 0; i < count; i++) out[i] = values[i];
    return out;
}

/* room for what the engine copies out */
static void dump_reserve(vp_dump *d, const model *m, const work *k) {
    size_t rows = k->layout ? (size_t)k->layout->views * (size_t)vp_geometry_tokens_per_crop(&m->config.geometry) : 0;
    memset(d, 0, sizeof *d);
    if (rows) d->image_features = (float *)zeroed(rows * (size_t)m->config.d_model, sizeof(float));
    d->block_last = (float *)zeroed((size_t)k->block_count * (size_t)m->config.d_model, sizeof(float));
    d->logits = (float *)zeroed((size_t)k->new_tokens * (size_t)m->config.embedding_size, sizeof(float));
}

/* The files of --dump; without an image the four image arrays have no crops, so that nothing of an earlier dump stays. */
static int write_dump(const char *folder, const session *s, const work *k, const timing *t, const vp_dump *d) {
    const vp_geometry *g = &s->m->config.geometry;
    int64_t views = k->layout ? k->layout->views : 0, per_crop = vp_geometry_tokens_per_crop(g), side = vp_geometry_patches_per_side(g);
    int64_t sequence[1] = {sequence_of(k)}, steps[1] = {t->token_count}, index[2] = {views, per_crop}, masks[2] = {views, side * side};
    int64_t pixels[3] = {views, side * side, (int64_t)g->patch_px * g->patch_px * 3}, features[3] = {views, per_crop, s->m->config.d_model};
    int64_t last[2] = {k->block_count, s->m->config.d_model}, logits[2] = {t->token_count, s->m->config.embedding_size};
    int64_t *ids = widen((const int32_t *)s->ids.data, (size_t)sequence[0]), *tokens = widen(t->tokens, (size_t)steps[0]);
    int code = write_npy(folder, "input_ids", "<i8", 1, sequence, ids, sizeof *ids);
    if (!code) code = write_npy(folder, "image_input_idx", "<i4", 2, index, s->index.data, sizeof(int32_t));
    if (!code) code = write_npy(folder, "image_masks", "<f4", 2, masks, s->masks.data, sizeof(float));
    if (!code) code = write_npy(folder, "pixels", "<f4", 3, pixels, s->pixels.data, sizeof(float));
    if (!code) code = write_npy(folder, "image_features", "<f4", 3, features, d->image_features, sizeof(float));
    if (!code) code = write_npy(folder, "block_last", "<f4", 2, last, d->block_last, sizeof(float));
    if (!code) code = write_npy(folder, "logits", "<f4", 2, logits, d->logits, sizeof(float));
    if (!code) code = write_npy(folder, "tokens", "<i8", 1, steps, tokens, sizeof *tokens);
    free(ids);
    free(tokens);
    return code;
}

/* =============================================================================================== run >>run */
/* The knob of the vision stage from --preprocess, --tier, --max_crops, --crops, --vision_tokens. */
static int tile_options_of(const options *o, vp_tile_options *t) {
    const char *how = text_of(o, "preprocess"), *tier = text_of(o, "tier");
    int by_tier = tier != NULL, by_crops = given(o, "crops"), by_tokens = given(o, "vision_tokens");
    *t = vp_tile_options_default();
    t->fit = strcmp(how, "adaptive") ? VP_FIT_FILL : VP_FIT_PAD;
    t->max_crops = (int32_t)number_of(o, "max_crops");
    if (by_tier + by_crops + by_tokens > 1) return complain(EXIT_USAGE, "--tier, --crops and --vision_tokens exclude each other");
    if (by_tier && given(o, "preprocess") && strcmp(how, "tier"))
        return complain(EXIT_USAGE, "--tier %s goes with --preprocess tier, not %s", tier, how);
    if (!by_tier && !strcmp(how, "tier"))
        return complain(EXIT_USAGE, "--preprocess tier needs --tier low, medium or high (for --crops: --preprocess adaptive-fill)");
    if (given(o, "max_crops") && (by_crops || by_tokens))
        return complain(EXIT_USAGE, "--max_crops is for adaptive tiling; leave it out with --crops and --vision_tokens");
    if (by_tier) {
        t->rule = VP_TILE_TIER;
        t->fit = VP_FIT_FILL;
        t->tier = vp_tier_find(tier);
        if (given(o, "max_crops") && t->max_crops != t->tier->max_crops)
            return complain(EXIT_USAGE, "--max_crops %d contradicts --tier %s (at most %d crops)", t->max_crops, tier, t->tier->max_crops);
        t->max_crops = t->tier->max_crops;
    } else if (by_crops || by_tokens) {
        t->rule = by_crops ? VP_TILE_CROPS : VP_TILE_TOKENS;
        t->crops = (int32_t)number_of(o, "crops");
        t->vision_tokens = (int32_t)number_of(o, "vision_tokens");
    }
    return 0;
}
static int32_t target_tokens_of(const vp_tile_options *t, const vp_layout *l) {
    return t->rule == VP_TILE_TOKENS ? t->vision_tokens : l->theoretical_tokens;
}

static int load_image(const char *path, vp_image *image, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    vp_result r = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (r == VP_OK) r = vp_image_decode((const uint8_t *)file, bytes, image, &error);
    free(file);
    if (r == VP_OK) return 0;
    error_line(line, sizeof line, r, &error);
    if (strstr(line, path)) snprintf(reason, capacity, "%s", line);
    else snprintf(reason, capacity, "%.180s: %.320s", path, line);
    return r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT;
}

static int tokenize_prompt(const model *m, sample *a) {
    size_t count = 0, bytes = strlen(a->prompt);
    vp_result r;
    a->text_ids = (int32_t *)resize(NULL, bytes + 1, sizeof *a->text_ids); /* a byte makes one token at most... */
    r = vp_tokenizer_encode(m->tokenizer, a->prompt, bytes, a->text_ids, bytes + 1, &count);
    if (r == VP_ERR_CAPACITY) { /* ... but normalisation can lengthen the text */
        a->text_ids = (int32_t *)resize(a->text_ids, count, sizeof *a->text_ids);
        r = vp_tokenizer_encode(m->tokenizer, a->prompt, bytes, a->text_ids, count, &count);
    }
    if (r != VP_OK || count > INT32_MAX / 2)
        return complain(EXIT_USAGE, "the prompt cannot be tokenized: %s", r != VP_OK ? vp_result_text(r) : "it is too long");
    a->text_count = (int32_t)count;
    a->text_ids = (int32_t *)resize(a->text_ids, count, sizeof *a->text_ids); /* a data set keeps many */
    return 0;
}

typedef struct run_state {
    model m;
    session s;
    sample a;
    vp_image image;
    vp_layout layout;
    vp_tile_options tiles;
    int32_t *blocks;
    work k;
    vp_dump dump;
    timing *runs;
    int32_t run_count;
} run_state;

static int run_choose_knobs(const options *o, run_state *x) {
    const vp_model_config *c = &x->m.config;
    int64_t top_k = given(o, "top_k") ? number_of(o, "top_k") : c->top_k;
    const option_value *list = opt(o, "active_blocks");
    if (top_k > c->expert_count) return complain(EXIT_USAGE, "--top_k %lld: the model has %d experts", (long long)top_k, c->expert_count);
    if (list->given && (given(o, "num_active_blocks") || given(o, "importance_scores_file")))
        return complain(EXIT_USAGE, "--active_blocks names the blocks; leave --num_active_blocks and --importance_scores_file out");
    x->k.top_k = (int32_t)top_k;
    x->blocks = (int32_t *)resize(NULL, (size_t)c->block_count, sizeof *x->blocks);
    x->k.blocks = x->blocks;
    if (!list->given) {
        x->k.block_count = given(o, "num_active_blocks") ? (int32_t)number_of(o, "num_active_blocks") : c->block_count;
        return choose_blocks(o, &x->m, x->k.block_count, x->blocks);
    }
    for (int32_t b = 0; b < c->block_count; b++)
        for (size_t i = 0; i < list->count; i++) if (list->numbers[i] == b) x->blocks[x->k.block_count++] = b;
    for (size_t i = 0; i < list->count; i++)
        if (list->numbers[i] >= c->block_count)
            return complain(EXIT_USAGE, "--active_blocks %lld: the model has blocks 0..%d", (long long)list->numbers[i], c->block_count - 1);
    return 0;
}

static int check_sequence(const model *m, const work *k) {
    if (positions_of(k) <= m->config.max_positions) return 0;
    return complain(EXIT_USAGE, "the sequence needs %lld positions (1 BOS + %d image + %d text + %d new - 1), the model has %d: "
                                "use fewer crops, less text or fewer new tokens",
                    (long long)positions_of(k), k->layout ? k->layout->image_tokens : 0, k->text_count, k->new_tokens, m->config.max_positions);
}

/* options -> plan of one request; nothing big is loaded yet */
static int run_prepare(const options *o, run_state *x) {
    vp_error error = {VP_OK, -1, "", ""};
    const char *text = text_of(o, "prompt"), *style = text_of(o, "style"), *image = o->operand_count ? o->operands[0] : NULL;
    char reason[LINE_BYTES];
    vp_result r;
    int code;
    if (!text) return complain(EXIT_USAGE, "run needs a question: -p TEXT");
    if (style && given(o, "raw_prompt")) return complain(EXIT_USAGE, "--style and --raw_prompt exclude each other");
    if ((code = tile_options_of(o, &x->tiles)) != 0 || (code = check_device(o)) != 0 || (code = check_gemm(o)) != 0) return code;
    if ((code = model_load(o, &x->m)) != 0 || (code = run_choose_knobs(o, x)) != 0) return code;
    if (!given(o, "max_crops") && x->tiles.rule == VP_TILE_ADAPTIVE) x->tiles.max_crops = x->m.config.geometry.max_crops;
    x->a.prompt = given(o, "raw_prompt") ? copy_text(text, strlen(text)) : make_prompt(style, text);
    x->a.question = copy_text(text, strlen(text));
    if ((code = tokenize_prompt(&x->m, &x->a)) != 0) return code;
    if (image) {
        x->a.image_path = copy_text(image, strlen(image));
        if ((code = load_image(image, &x->image, reason, sizeof reason)) != 0) return complain(code, "%s", reason);
        x->a.width_px = x->image.width_px;
        x->a.height_px = x->image.height_px;
        r = vp_layout_compute(&x->m.config.geometry, &x->tiles, x->image.width_px, x->image.height_px, &x->layout, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, image, r, &error);
        x->k.image = &x->image;
        x->k.layout = &x->layout;
    }
    x->k.text_ids = x->a.text_ids;
    x->k.text_count = x->a.text_count;
    x->k.new_tokens = (int32_t)number_of(o, "max_new_tokens");
    x->k.ignore_eos = given(o, "ignore_eos");
    if ((code = check_sequence(&x->m, &x->k)) != 0) return code;
    return text_of(o, "dump") ? make_folder(text_of(o, "dump")) : 0;
}

static int run_measure(const options *o, run_state *x) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    int code;
    x->run_count = (int32_t)number_of(o, "num_runs");
    x->runs = timings_make(x->run_count, x->k.new_tokens);
    if ((code = engine_open(o, &x->m, sequence_of(&x->k) + x->k.new_tokens, x->k.layout ? x->layout.views : 1, &x->s.engine)) != 0) return code;
    x->s.m = &x->m;
    if (x->run_count > 1) r = run_chain(&x->s, &x->k, &x->runs[0], &error); /* warm-up; its times are overwritten */
    if (text_of(o, "dump")) {
        dump_reserve(&x->dump, &x->m, &x->k);
        x->k.dump = &x->dump;
    }
    for (int32_t i = 0; i < x->run_count && r == VP_OK; i++) {
        show_progress("run %d of %d", i + 1, x->run_count);
        r = run_chain(&x->s, &x->k, &x->runs[i], &error);
    }
    close_progress();
    if (r != VP_OK) return complain_result(exit_code_of(r), NULL, r, &error);
    return text_of(o, "dump") ? write_dump(text_of(o, "dump"), &x->s, &x->k, &x->runs[x->run_count - 1], &x->dump) : 0;
}

static void print_visible(const char *text, size_t bytes) { /* control codes of noise answers do not reach the terminal */
    for (; bytes--; text++) {
        if ((unsigned char)*text < 32 && *text != '\n' && *text != '\t') printf("\\x%02x", *text);
        else if (*text == 127) printf("\\x7f");
        else putchar(*text);
    }
}

/* A row of the table: of a stage, or with steps > 0 of one of so many decode steps. TFLOP/s and GB/s are what the arithmetic needs per time:
 * beside the machine's peaks they show how far a stage is from the hardware. */
static void print_stage(const run_state *x, const char *name, int stage, int32_t steps, double total) {
    double v[DETAIL_COUNT], ms;
    for (int d = 0; d < DETAIL_COUNT; d++) v[d] = metric_mean(x->runs, x->run_count, stage_metric(stage, d)) / (steps ? steps : 1);
    ms = v[0];
    if (!isfinite(ms)) printf("%-18s %11s %8s %11s %9s %10s %9s %9s %8s\n", name, "-", "-", "-", "-", "-", "-", "-", "-");
    else if (is_host_stage(stage))
        printf("%-18s %11.3f %7.2f%% %11.3f %9s %10s %9s %9s %8s\n", name, ms, 100 * ms / total, v[DETAIL_WALL], "-", "-", "-", "-", "-");
    else
        printf("%-18s %11.3f %7.2f%% %11.3f %9.0f %10.4g %9.4g %9.3g %8.3g\n", name, ms, 100 * ms / total, v[DETAIL_WALL], v[DETAIL_LAUNCHES],
               v[DETAIL_FLOPS] / 1e9, v[DETAIL_BYTES] / 1e9, ms > 0 ? v[DETAIL_FLOPS] / ms / 1e9 : 0.0, ms > 0 ? v[DETAIL_BYTES] / ms / 1e6 : 0.0);
}

static void print_stages(const run_state *x) {
    double total = metric_mean(x->runs, x->run_count, METRIC_TOTAL), per_token = metric_mean(x->runs, x->run_count, METRIC_PER_TOKEN);
    double unaccounted = metric_mean(x->runs, x->run_count, METRIC_UNACCOUNTED);
    int32_t steps = x->runs[0].token_count - 1;
    printf("\n%-18s %11s %8s %11s %9s %10s %9s %9s %8s%s\n", "stage", "ms", "share", "host ms", "launches", "GFLOP", "GB", "TFLOP/s", "GB/s",
           x->m.synthetic ? "   (synthetic weights)" : "");
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, i == VP_STAGE_DECODE ? "%s (%d step%s)" : "%s", vp_stage_name((vp_stage)i), steps, steps == 1 ? "" : "s");
        print_stage(x, name, i, 0, total);
        if (i == VP_STAGE_DECODE && steps > 1) print_stage(x, "  a step", i, steps, total);
    }
    printf("%-18s %11.3f %7.2f%%\n", "unaccounted", unaccounted, 100 * unaccounted / total);
    printf("%-18s %11.3f %7.2f%%\n\n", "total", total, 100.0);
    printf("closure  sum of stages / total = %.5f; total: decoded image to text, %s\n", metric_mean(x->runs, x->run_count, METRIC_CLOSURE),
           x->run_count > 1 ? "mean of the runs after a warm-up" : "one cold run (--num_runs R warms up and repeats)");
    printf("TTFT     %.3f ms\n", metric_mean(x->runs, x->run_count, METRIC_TTFT));
    if (isfinite(per_token)) printf("TPOT     %.3f ms a token, %.2f tokens/s\n", per_token, 1000 / per_token);
    else printf("TPOT     -, one token has no decode step\n");
}

static void print_run(const options *o, const run_state *x) {
    const vp_layout *l = x->k.layout;
    const timing *t = &x->runs[0];
    const char *note = vp_engine_device_note(x->s.engine), *cpu = gpu_of(x->s.engine) < 0 ? "no CUDA: " : "";
    printf("answer   ");
    print_visible(t->answer, t->answer_bytes);
    printf("\nmodel    %s%s, %s, top_k %d of %d, blocks %d of %d\n", x->m.name,
           x->m.synthetic ? " (synthetic weights: latency is real, the answer is noise)" : "",
           text_of(o, "weights"), x->k.top_k, x->m.config.expert_count, x->k.block_count, x->m.config.block_count);
    printf("device   %s%s%s%s%s; gemm %s for 1 row, %s for 1024\n", vp_engine_device(x->s.engine), note[0] ? " (" : "", note[0] ? cpu : "", note,
           note[0] ? ")" : "", vp_engine_gemm(x->s.engine, 1), vp_engine_gemm(x->s.engine, 1024));
    if (l) {
        printf("image    %dx%d -> tiling %dx%d (rows x cols), %d crops + global view, canvas %dx%d, %s\n", l->width_px, l->height_px, l->tiling.rows,
               l->tiling.cols,
               l->crops, l->canvas_width_px, l->canvas_height_px, x->tiles.tier ? x->tiles.tier->name : text_of(o, "preprocess"));
        printf("tokens   %d = 1 BOS + %d image (%d features, %d column, %d marker) + %d text; theoretical vision tokens %d\n", sequence_of(&x->k),
               l->image_tokens,
               l->feature_tokens, l->col_tokens, l->marker_tokens, x->k.text_count, l->theoretical_tokens);
    } else printf("tokens   %d = 1 BOS + %d text, no image\n", sequence_of(&x->k), x->k.text_count);
    printf("output   %d token%s%s\n", t->token_count, t->token_count == 1 ? "" : "s", t->ended_by_eos ? ", the last is EOS" : "");
    print_stages(x);
}

static void print_run_json(const options *o, const run_state *x) {
    vp_score_outcome scored;
    scoring s;
    point p = {&x->a, x->k.layout, x->tiles.tier ? x->tiles.tier->name : NULL, 0, 0, x->k.top_k, x->k.blocks, x->k.block_count, x->runs, x->run_count,
               NULL, VP_SCORE_VQA_SEED, given(o, "ignore_eos")};
    double per_token = metric_mean(x->runs, x->run_count, METRIC_PER_TOKEN);
    vp_json_writer w;
    if (p.layout) {
        p.target_tokens = target_tokens_of(&x->tiles, p.layout);
        p.target_crops = p.layout->crops;
    }
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-run-1");
    put_text(&w, "model", x->m.name);
    put_bool(&w, "synthetic", x->m.synthetic);
    put_answer(&w, "answer", &x->runs[0]);
    put_text(&w, "image", x->a.image_path);
    if (p.layout) put_pair(&w, "image_size", x->a.height_px, x->a.width_px); else put_null(&w, "image_size");
    put_text(&w, "preprocess", x->tiles.tier ? "tier" : text_of(o, "preprocess"));
    put_ints(&w, "active_block_indices", x->k.blocks, x->k.block_count);
    put_point_layout(&w, &p);
    put_point_tokens(&w, &p);
    score_point(&p, &s, &scored);
    put_point_answer(&w, &p, &scored);
    scoring_free(&s);
    put_bool(&w, "warm", x->run_count > 1);
    put_double(&w, "tokens_per_second", 1000 / per_token);
    put_point_times(&w, &p);
    vp_json_key(&w, "provenance");
    vp_json_begin_object(&w);
    put_provenance(&w, o, x->s.engine);
    vp_json_end_object(&w);
    put_config(&w, o);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

/* what would be asked: the text, its ids (they follow BOS and the image's tokens), and the length of the whole */
static void print_prompt(const run_state *x) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 0);
    vp_json_begin_object(&w);
    put_text(&w, "prompt_text", x->a.prompt);
    put_ints(&w, "ids", x->k.text_ids, x->k.text_count);
    put_int(&w, "text_tokens", x->k.text_count);
    put_int(&w, "image_tokens", x->k.layout ? x->k.layout->image_tokens : 0);
    put_int(&w, "total_sequence_length", sequence_of(&x->k));
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

static int profile_check(const options *o); /* >>profile */
static int profile_run(const options *o, run_state *x);
static int command_run(const options *o) {
    run_state x;
    int code, shows = given(o, "show_prompt"), profiles = given(o, "profile");
    memset(&x, 0, sizeof x);
    if (shows && (given(o, "dump") || profiles))
        return complain(EXIT_USAGE, "--show_prompt does not run the model: leave --%s out", profiles ? "profile" : "dump");
    if ((code = profile_check(o)) != 0) return code;
    code = run_prepare(o, &x);
    if (!code && !shows) code = profiles ? profile_run(o, &x) : run_measure(o, &x);
    if (!code && shows) print_prompt(&x);
    else if (profiles) {} /* has told already */
    else if (!code && given(o, "json")) print_run_json(o, &x);
    else if (!code) print_run(o, &x);
    timings_free(x.runs, x.run_count);
    session_free(&x.s);
    model_free(&x.m);
    sample_free(&x.a);
    if (x.image.rgb) vp_image_free(&x.image);
    free(x.blocks);
    free(x.dump.image_features);
    free(x.dump.block_last);
    free(x.dump.logits);
    return code;
}

/* ============================================================================================== tile >>tile */
typedef struct column { const char *name; size_t offset; } column; /* an int32 of vp_layout */
enum { SPECIAL_TIER = 1000000, SPECIAL_MAX_CROPS, SPECIAL_ERROR, SPECIAL_FILE };
#define LAYOUT(member) offsetof(vp_layout, member)
static const column COLUMNS_PAD[] = {
    {"width", LAYOUT(width_px)}, {"height", LAYOUT(height_px)}, {"max_crops", SPECIAL_MAX_CROPS},
    {"rows", LAYOUT(tiling.rows)}, {"cols", LAYOUT(tiling.cols)}, {"num_crops_with_global", LAYOUT(views)},
    {"features", LAYOUT(feature_tokens)}, {"col_tokens", LAYOUT(col_tokens)}, {"marker_tokens", LAYOUT(marker_tokens)},
    {"total_image_tokens", LAYOUT(image_tokens)}, {"target_width_px", LAYOUT(canvas_width_px)}, {"target_height_px", LAYOUT(canvas_height_px)},
    {"scaled_width_px", LAYOUT(resized_width_px)}, {"scaled_height_px", LAYOUT(resized_height_px)},
    {"pad_left", LAYOUT(offset_left_px)}, {"pad_top", LAYOUT(offset_top_px)},
    {"global_scaled_width_px", LAYOUT(global_resized_width_px)}, {"global_scaled_height_px", LAYOUT(global_resized_height_px)},
    {"error", SPECIAL_ERROR}, {"file", SPECIAL_FILE}};
static const column COLUMNS_FILL[] = { /* tier is there for tiers only */
    {"width", LAYOUT(width_px)}, {"height", LAYOUT(height_px)}, {"tier", SPECIAL_TIER}, {"max_crops", SPECIAL_MAX_CROPS},
    {"num_crops", LAYOUT(crops)}, {"rows", LAYOUT(tiling.rows)}, {"cols", LAYOUT(tiling.cols)}, {"num_crops_with_global", LAYOUT(views)},
    {"target_vision_tokens", LAYOUT(theoretical_tokens)}, {"actual_vision_tokens", LAYOUT(feature_tokens)},
    {"col_tokens", LAYOUT(col_tokens)}, {"marker_tokens", LAYOUT(marker_tokens)}, {"sequence_contribution", LAYOUT(image_tokens)},
    {"target_width_px", LAYOUT(canvas_width_px)}, {"target_height_px", LAYOUT(canvas_height_px)},
    {"resized_width_px", LAYOUT(resized_width_px)}, {"resized_height_px", LAYOUT(resized_height_px)},
    {"crop_left", LAYOUT(offset_left_px)}, {"crop_top", LAYOUT(offset_top_px)},
    {"global_resized_width_px", LAYOUT(global_resized_width_px)}, {"global_resized_height_px", LAYOUT(global_resized_height_px)},
    {"error", SPECIAL_ERROR}, {"file", SPECIAL_FILE}};

typedef struct tile_job {
    vp_geometry geometry;
    vp_tile_options tiles;
    const column *columns; int column_count;
    int csv, json, has_files;
    int64_t row_count, refused_count;
    vp_json_writer w;
} tile_job;

/* one row of output; layout NULL: refused because of error, width and height then may be unknown, 0 */
typedef struct tile_row {
    const vp_layout *layout, *partial; /* partial: of a refused size, tiling, canvas and resized sizes alone */
    int64_t width_px, height_px;
    const char *error, *file;
} tile_row;

static int column_is_used(const tile_job *job, const column *c) {
    if (c->offset == SPECIAL_TIER) return job->tiles.tier != NULL;
    if (c->offset == SPECIAL_MAX_CROPS) return job->tiles.rule == VP_TILE_ADAPTIVE || job->tiles.rule == VP_TILE_TIER;
    return c->offset != SPECIAL_FILE || job->has_files;
}
static int column_is_partial(const column *c) { /* known of a refused size */
    static const size_t known[] = {LAYOUT(tiling.rows), LAYOUT(tiling.cols), LAYOUT(views), LAYOUT(canvas_width_px), LAYOUT(canvas_height_px),
                                   LAYOUT(resized_width_px), LAYOUT(resized_height_px), LAYOUT(global_resized_width_px),
                                   LAYOUT(global_resized_height_px)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) if (c->offset == known[i]) return 1;
    return 0;
}
static void print_csv_text(const char *text) {
    int quote = text[strcspn(text, ",\"\r\n")] != 0;
    if (quote) putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    if (quote) putchar('"');
}

/* value of a column: a number (returns 1), a text (2), or nothing (0) */
static int column_value(const tile_job *job, const column *c, const tile_row *row, int64_t *number, const char **text) {
    int32_t value;
    switch (c->offset) {
    case SPECIAL_TIER: *text = job->tiles.tier->name; return 2;
    case SPECIAL_MAX_CROPS: *number = job->tiles.max_crops; return 1;
    case SPECIAL_ERROR: *text = row->error; return row->error ? 2 : 0;
    case SPECIAL_FILE: *text = row->file; return row->file ? 2 : 0;
    default: break;
    }
    if (c->offset == offsetof(vp_layout, width_px) || c->offset == offsetof(vp_layout, height_px)) {
        *number = c->offset == offsetof(vp_layout, width_px) ? row->width_px : row->height_px;
        return *number != 0;
    }
    if (!row->layout && !(row->partial && column_is_partial(c))) return 0;
    memcpy(&value, (const char *)(row->layout ? row->layout : row->partial) + c->offset, sizeof value);
    *number = value;
    return 1;
}

static void tile_print_head(tile_job *job) {
    const char *comma = "";
    if (job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (job->csv) {
        for (int i = 0; i < job->column_count; i++) if (column_is_used(job, &job->columns[i])) {
            printf("%s%s", comma, job->columns[i].name);
            comma = ",";
        }
        putchar('\n');
    } else printf("%-13s %-9s %6s %11s %11s %12s %8s %9s\n", "size", "rows,cols", "views", "canvas", "resized", "theoretical", "vision", "sequence");
}

static void tile_print(tile_job *job, const tile_row *row) {
    const vp_layout *l = row->layout;
    const char *comma = "", *text = NULL;
    char size[48], canvas[32], resized[32], tiling[24];
    int64_t number = 0;
    if (!job->row_count++) tile_print_head(job);
    if (!l) job->refused_count++;
    if (job->json) vp_json_begin_object(&job->w);
    for (int i = 0; i < job->column_count && (job->json || job->csv); i++) {
        int kind;
        if (!column_is_used(job, &job->columns[i])) continue;
        kind = column_value(job, &job->columns[i], row, &number, &text);
        if (job->json) {
            vp_json_key(&job->w, job->columns[i].name);
            if (kind == 1) vp_json_int(&job->w, number); else if (kind == 2) json_lossy(&job->w, text); else vp_json_null(&job->w);
            continue;
        }
        fputs(comma, stdout);
        if (kind == 1) printf("%lld", (long long)number); else if (kind == 2) print_csv_text(text);
        comma = ",";
    }
    if (job->json) vp_json_end_object(&job->w);
    else if (job->csv) putchar('\n');
    else {
        snprintf(size, sizeof size, "%lldx%lld", (long long)row->width_px, (long long)row->height_px);
        if (!l) { printf("%-13s refused: %s\n", row->width_px ? size : "-", row->error); return; }
        snprintf(tiling, sizeof tiling, "%d,%d", l->tiling.rows, l->tiling.cols);
        snprintf(canvas, sizeof canvas, "%dx%d", l->canvas_width_px, l->canvas_height_px);
        snprintf(resized, sizeof resized, "%dx%d", l->resized_width_px, l->resized_height_px);
        printf("%-13s %-9s %6d %11s %11s %12d %8d %9d%s%s\n", size, tiling, l->views, canvas, resized, l->theoretical_tokens, l->feature_tokens,
               l->image_tokens,
               row->file ? "  " : "", row->file ? row->file : "");
    }
}

/* "640x480", and in lists also "640 480" and "640,480"; 0 when it is no size */
static int parse_size(const char *text, const char *separators, int64_t *width, int64_t *height) {
    size_t first = strspn(text, "0123456789"), gap = strspn(text + first, separators), second = strspn(text + first + gap, "0123456789");
    if (!first || !gap || !second || first > 18 || second > 18 || text[first + gap + second]) return 0;
    if (gap > 1 && memchr(text + first, 'x', gap)) return 0;
    *width = strtoll(text, NULL, 10);
    *height = strtoll(text + first + gap, NULL, 10);
    return 1;
}

/* What is known of a size that adaptive fit-and-pad refuses: tiling, canvas and the resized sizes, one of them 0 (as goldens/tiling has it).
 * The resized sizes are those of vp_layout_compute, float32 step by step. */
static int tile_refused(const tile_job *job, int32_t width, int32_t height, vp_layout *l) {
    const vp_geometry *g = &job->geometry;
    if (job->tiles.rule != VP_TILE_ADAPTIVE || job->tiles.fit != VP_FIT_PAD) return 0;
    if (vp_tiler_adaptive(g, width, height, job->tiles.max_crops, &l->tiling) != VP_OK) return 0;
    if (vp_select_canvas(g, l->tiling, &l->canvas_width_px, &l->canvas_height_px) != VP_OK) return 0;
    l->views = l->tiling.rows * l->tiling.cols + 1;
    return vp_tiler_shrink(l->canvas_width_px, l->canvas_height_px, width, height, &l->resized_width_px, &l->resized_height_px) == VP_OK
        && vp_tiler_shrink(g->crop_px, g->crop_px, width, height, &l->global_resized_width_px, &l->global_resized_height_px) == VP_OK;
}

/* Makes the row of a size; the error's text goes to `line`. Returns 0 or the exit code it would have alone. */
static int tile_size(const tile_job *job, int64_t width, int64_t height, vp_layout *layout, tile_row *row, char *line, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_ERR_RANGE;
    row->layout = NULL;
    row->width_px = width;
    row->height_px = height;
    row->error = line;
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX) snprintf(line, capacity, "sides must be 1..%d pixels", INT32_MAX);
    else r = vp_layout_compute(&job->geometry, &job->tiles, (int32_t)width, (int32_t)height, layout, &error);
    if (r != VP_OK) {
        if (error.code != VP_OK || error.text[0]) error_line(line, capacity, r, &error);
        if (error.code != VP_OK && tile_refused(job, (int32_t)width, (int32_t)height, layout)) row->partial = layout;
        return EXIT_USAGE;
    }
    row->layout = layout;
    row->error = NULL;
    return 0;
}

/* A size or an image file on the command line. */
static int tile_operand(tile_job *job, const char *text, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    tile_row row = {NULL, NULL, 0, 0, NULL, NULL};
    vp_layout layout;
    char line[LINE_BYTES], *file = NULL;
    int64_t width = 0, height = 0;
    int32_t w = 0, h = 0;
    size_t bytes = 0;
    int code;
    if (parse_size(text, "x", &width, &height)) code = tile_size(job, width, height, &layout, &row, line, sizeof line);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX+-.,")] == 0) {
        row.error = "want WIDTHxHEIGHT in pixels, like 640x480";
        code = EXIT_USAGE;
    } else {
        vp_result r = vp_file_read(text, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
        if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &w, &h, &error);
        free(file);
        if (r == VP_OK) code = tile_size(job, w, h, &layout, &row, line, sizeof line);
        else {
            code = EXIT_INPUT;
            error_line(line, sizeof line, r, &error);
            row.error = line;
        }
        row.file = text;
    }
    if (code && alone) return strstr(row.error, text) ? complain(code, "%s", row.error) : complain(code, "%s: %s", text, row.error);
    if (code && !row.file && !row.width_px) { /* the words themselves, where there is no number to show */
        static char both[LINE_BYTES * 2];
        snprintf(both, sizeof both, "%s: %s", text, row.error);
        row.error = both;
    }
    tile_print(job, &row);
    return 0;
}

static int tile_list(tile_job *job, const char *path) {
    int from_stdin = !strcmp(path, "-");
    FILE *f = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL, line[LINE_BYTES];
    size_t capacity = 0;
    ssize_t bytes;
    if (!f) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = getline(&text, &capacity, f)) > 0) {
        tile_row row = {NULL, NULL, 0, 0, line, NULL};
        vp_layout layout;
        int64_t width = 0, height = 0;
        char *start = text;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        start += strspn(start, " \t");
        if (!*start || *start == '#') continue;
        if (!parse_size(start, "x \t,", &width, &height)) snprintf(line, sizeof line, "not a size: %.40s", start);
        else tile_size(job, width, height, &layout, &row, line, sizeof line);
        tile_print(job, &row);
    }
    bytes = ferror(f);
    if (!from_stdin) fclose(f);
    free(text);
    return bytes ? complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno)) : 0;
}

static int family_command(const options *o);
static int command_tile(const options *o) {
    const char *list = text_of(o, "sizes");
    int64_t width, height;
    tile_job job;
    int code;
    memset(&job, 0, sizeof job);
    job.geometry = vp_geometry_default();
    job.csv = given(o, "csv");
    job.json = given(o, "json");
    if (given(o, "list_families") || takes_keys(o)) return family_command(o);
    if (given(o, "max_tokens") || given(o, "draw"))
        return complain(EXIT_USAGE, "--%s goes with --family, --checkpoint or --compare", given(o, "draw") ? "draw" : "max_tokens");
    if (!list && !o->operand_count) return complain(EXIT_USAGE, "tile needs sizes (640x480), image files, or --sizes LIST");
    if (job.csv && job.json) return complain(EXIT_USAGE, "--csv and --json exclude each other");
    if ((code = tile_options_of(o, &job.tiles)) != 0) return code;
    job.columns = job.tiles.fit == VP_FIT_PAD ? COLUMNS_PAD : COLUMNS_FILL;
    job.column_count = job.tiles.fit == VP_FIT_PAD ? (int)(sizeof COLUMNS_PAD / sizeof *COLUMNS_PAD)
        : (int)(sizeof COLUMNS_FILL / sizeof *COLUMNS_FILL);
    for (size_t i = 0; i < o->operand_count; i++)
        job.has_files |= !parse_size(o->operands[i], "x", &width, &height) && access(o->operands[i], F_OK) == 0;
    for (size_t i = 0; i < o->operand_count && !code; i++) code = tile_operand(&job, o->operands[i], !list && o->operand_count == 1);
    if (!code && list) code = tile_list(&job, list);
    if (!code && !job.row_count) code = complain(EXIT_INPUT, "--sizes %s: there is no size in it", list);
    if (job.json && job.row_count) {
        vp_json_end_array(&job.w);
        vp_json_finish(&job.w);
        putchar('\n');
    }
    if (!code && job.refused_count) code = complain(EXIT_INPUT, "%lld of %lld sizes refused; see their error", (long long)job.refused_count,
                                                    (long long)job.row_count);
    return code;
}

/* ========================================================================================== tokenize >>tokenize */
static int load_any_tokenizer(const options *o, model *m) {
    const char *file = text_of(o, "tokenizer");
    char *json = NULL, *path;
    size_t bytes = 0;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code = 0;
    if ((file != NULL) + given(o, "model") + given(o, "synthetic") != 1)
        return complain(EXIT_USAGE, "tokenize needs one of --tokenizer FILE, --model DIR and --synthetic NAME");
    if (given(o, "synthetic")) {
        m->name = text_of(o, "synthetic");
        return load_preset(m);
    }
    path = file ? copy_text(file, strlen(file)) : join_path(text_of(o, "model"), "tokenizer.json");
    if ((r = vp_file_read(path, JSON_FILE_BYTES_MAX, &json, &bytes, &error)) != VP_OK) code = complain_result(exit_code_of(r), path, r, &error);
    if (!code) code = load_tokenizer(json, bytes, path, &m->tokenizer);
    free(json);
    free(path);
    return code;
}

/* output waits in `out` until every line is good: a failing command prints nothing on stdout */
typedef struct tokenize_job {
    const vp_tokenizer *tokenizer;
    int decode, flags;
    int64_t seed; /* of records that say none */
    buffer ids, text;
    text_buffer out;
    parsed record;
} tokenize_job;

static void add_tokens(tokenize_job *job, const char *text, size_t bytes, const int32_t *ids, size_t count) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, &job->out, 0);
    vp_json_begin_object(&w);
    vp_json_key(&w, "text");
    vp_json_string_bytes(&w, text, bytes);
    put_ints(&w, "ids", ids, (int32_t)count);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    text_add(&job->out, "\n", 1);
}

/* Ids of a text -> job->ids. */
static vp_result encode_text(tokenize_job *job, const char *text, size_t bytes, size_t *count) {
    vp_result r;
    reserve(&job->ids, bytes + 1, sizeof(int32_t));
    r = vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data, job->ids.bytes / sizeof(int32_t), count);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&job->ids, *count, sizeof(int32_t));
    return vp_tokenizer_encode(job->tokenizer, text, bytes, (int32_t *)job->ids.data, job->ids.bytes / sizeof(int32_t), count);
}
/* Text of job->ids -> job->text. */
static vp_result decode_ids(tokenize_job *job, size_t count, size_t *bytes) {
    const int32_t *ids = (const int32_t *)job->ids.data;
    vp_result r;
    reserve(&job->text, 1024, 1);
    r = vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&job->text, *bytes + 1, 1);
    return vp_tokenizer_decode(job->tokenizer, ids, count, job->flags, (char *)job->text.data, job->text.bytes, bytes);
}

static int encode_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    size_t count = 0;
    vp_result r;
    if (vp_utf8_valid_bytes(text, bytes) != bytes)
        return complain(EXIT_USAGE, "line %lld: not UTF-8 at byte %zu", (long long)line, vp_utf8_valid_bytes(text, bytes));
    r = encode_text(job, text, bytes, &count);
    if (r != VP_OK) return complain(exit_code_of(r), "line %lld: %s", (long long)line, vp_result_text(r));
    add_tokens(job, text, bytes, (const int32_t *)job->ids.data, count);
    return 0;
}

/* ids separated by blanks or commas, brackets allowed: [1, 2, 3] */
static int decode_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    const char *p = text;
    size_t count = 0, needed = 0;
    vp_result r;
    int32_t *ids = (int32_t *)reserve(&job->ids, bytes / 2 + 1, sizeof(int32_t));
    for (;;) {
        char *end;
        long long value;
        p += strspn(p, " \t,[]");
        if (!*p) break;
        if (!isdigit((unsigned char)*p)) return complain(EXIT_USAGE, "line %lld: \"%.20s\" is no token id", (long long)line, p);
        errno = 0;
        value = strtoll(p, &end, 10);
        if (errno || value > INT32_MAX) return complain(EXIT_USAGE, "line %lld: token id %.20s is too large", (long long)line, p);
        ids[count++] = (int32_t)value;
        p = end;
    }
    if ((size_t)(p - text) != bytes) return complain(EXIT_USAGE, "line %lld: a NUL byte stands in it", (long long)line);
    r = decode_ids(job, count, &needed);
    if (r != VP_OK) return complain(exit_code_of(r), "line %lld: %s", (long long)line, vp_result_text(r));
    add_tokens(job, (const char *)job->text.data, needed, ids, count);
    return 0;
}

/* what a line of --jsonl asks for: a question makes it a record, whatever else it holds */
typedef enum line_kind { LINE_NOTHING, LINE_TEXT, LINE_IDS, LINE_RECORD } line_kind;
static line_kind kind_of_line(const tokenize_job *job, const vp_json *j) {
    int ids = has_value(j, 0, "ids"), text = has_value(j, 0, "text");
    if (job->decode) return ids ? LINE_IDS : LINE_NOTHING;
    if (has_value(j, 0, "question") || has_value(j, 0, "questions")) return LINE_RECORD;
    if (text) return LINE_TEXT;
    if (has_value(j, 0, "dataset") || has_value(j, 0, "style")) return LINE_RECORD;
    return ids ? LINE_IDS : LINE_NOTHING;
}

/* The line's members but those that are made anew; the object stays open. */
static vp_result add_members(vp_json_writer *w, const vp_json *j, const char *made, const char *also_made, vp_error *error) {
    vp_json_begin_object(w);
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key;
        if (vp_json_equals(j, i, made) || (also_made && vp_json_equals(j, i, also_made))) continue;
        if ((key = node_text(j, i)) == NULL) return vp_fail(error, VP_ERR_UNSUPPORTED, -1, "", "a key holds \\u0000");
        vp_json_key(w, key);
        json_node(w, j, i + 1);
        free(key);
    }
    return VP_OK;
}

static vp_result jsonl_ids(tokenize_job *job, const vp_json *j, vp_json_writer *w, vp_error *error) {
    uint32_t array = vp_json_get(j, 0, "ids");
    size_t count = 0, bytes = 0;
    vp_result r;
    if (!node_is(j, array, VP_JSON_ARRAY)) return bad_member(error, "ids", "an array of token ids");
    reserve(&job->ids, j->nodes[array].count, sizeof(int32_t));
    for (uint32_t i = array + 1; i < j->nodes[array].end; i = j->nodes[i].end) {
        int64_t id = -1;
        if (vp_json_to_int(j, i, &id) != VP_OK || id < 0 || id > INT32_MAX) return bad_member(error, "ids", "an array of token ids");
        ((int32_t *)job->ids.data)[count++] = (int32_t)id;
    }
    if ((r = decode_ids(job, count, &bytes)) != VP_OK) return r;
    if ((r = add_members(w, j, "text", NULL, error)) != VP_OK) return r;
    vp_json_key(w, "text");
    vp_json_string_bytes(w, (const char *)job->text.data, bytes);
    return VP_OK;
}
static vp_result jsonl_text(tokenize_job *job, const vp_json *j, vp_json_writer *w, vp_error *error) {
    uint32_t node = vp_json_get(j, 0, "text");
    size_t bytes = 0, count = 0;
    vp_result r;
    if (!node_is(j, node, VP_JSON_STRING)) return bad_member(error, "text", "a string");
    reserve(&job->text, (size_t)j->nodes[node].bytes + 1, 1); /* unescaping never lengthens */
    r = vp_json_text(j, node, (char *)job->text.data, job->text.bytes, &bytes);
    if (r == VP_OK) r = encode_text(job, (const char *)job->text.data, bytes, &count);
    if (r == VP_OK) r = add_members(w, j, "ids", NULL, error);
    if (r == VP_OK) put_ints(w, "ids", (const int32_t *)job->ids.data, (int32_t)count);
    return r;
}
static vp_result jsonl_record(tokenize_job *job, const vp_json *j, int64_t line, vp_json_writer *w, vp_error *error) {
    prompt_fields f;
    char *text = NULL;
    size_t count = 0;
    vp_result r;
    memset(&f, 0, sizeof f);
    r = read_prompt_fields(j, &f, error);
    if (r == VP_OK && f.dataset && !f.style && !vp_prompt_dataset_find(f.dataset))
        r = vp_fail(error, VP_ERR_NOT_FOUND, -1, "", "\"dataset\" is none of the known ones; say its \"style\"");
    if (r == VP_OK) r = build_prompt(&f, NULL, NULL, job->seed, line - 1, &text, NULL, error);
    if (r == VP_OK) r = encode_text(job, text, strlen(text), &count);
    if (r == VP_OK) r = add_members(w, j, "prompt_text", "ids", error);
    if (r == VP_OK) {
        put_text(w, "prompt_text", text);
        put_ints(w, "ids", (const int32_t *)job->ids.data, (int32_t)count);
    }
    free(text);
    prompt_fields_free(&f);
    return r;
}

/* One object with what it lacks added at its end. */
static int jsonl_line(tokenize_job *job, const char *text, size_t bytes, int64_t line) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &job->record.json;
    vp_json_writer w;
    vp_result r;
    if (!text[strspn(text, " \t\r")] && strlen(text) == bytes) return 0;
    r = parse_json(&job->record, text, bytes, &error);
    if (r == VP_OK && !node_is(j, 0, VP_JSON_OBJECT)) r = vp_fail(&error, VP_ERR_FORMAT, -1, "", "want one JSON object");
    if (r != VP_OK)
        return complain(EXIT_INPUT, "line %lld: %s (byte %lld)", (long long)line, error.text, (long long)(error.offset < 0 ? 0 : error.offset));
    vp_json_writer_init_sink(&w, text_sink, &job->out, 0);
    switch (kind_of_line(job, j)) {
    case LINE_TEXT: r = jsonl_text(job, j, &w, &error); break;
    case LINE_IDS: r = jsonl_ids(job, j, &w, &error); break;
    case LINE_RECORD: r = jsonl_record(job, j, line, &w, &error); break;
    default: r = vp_fail(&error, VP_ERR_FORMAT, -1, "", job->decode ? "has no \"ids\"" : "has none of \"text\", \"ids\", \"question\", \"dataset\"");
    }
    if (r != VP_OK) {
        char reason[LINE_BYTES];
        error_line(reason, sizeof reason, r, &error);
        return complain(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, "line %lld: %s", (long long)line, reason);
    }
    vp_json_end_object(&w);
    if ((r = vp_json_finish(&w)) != VP_OK) return complain(EXIT_INPUT, "line %lld: %s", (long long)line, vp_result_text(r));
    text_add(&job->out, "\n", 1);
    return 0;
}

static int command_tokenize(const options *o) {
    tokenize_job job;
    int (*take)(tokenize_job *, const char *, size_t, int64_t) = given(o, "jsonl") ? jsonl_line : given(o, "decode") ? decode_line : encode_line;
    model m;
    char *text = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    int code;
    memset(&job, 0, sizeof job);
    memset(&m, 0, sizeof m);
    job.decode = given(o, "decode");
    job.flags = (given(o, "skip_special") ? VP_DECODE_SKIP_SPECIAL : 0) | (given(o, "clean_up") ? VP_DECODE_CLEAN_UP : 0);
    job.seed = number_of(o, "seed");
    if (job.flags && !job.decode) return complain(EXIT_USAGE, "--skip_special and --clean_up go with --decode");
    if (given(o, "jsonl") && o->operand_count) return complain(EXIT_USAGE, "--jsonl reads lines from stdin: leave \"%s\" out", o->operands[0]);
    code = load_any_tokenizer(o, &m);
    job.tokenizer = m.tokenizer;
    for (size_t i = 0; i < o->operand_count && !code; i++) code = take(&job, o->operands[i], strlen(o->operands[i]), (int64_t)i + 1);
    for (int64_t line = 1; !code && !o->operand_count && (bytes = getline(&text, &capacity, stdin)) > 0; line++) {
        if (text[bytes - 1] == '\n') text[--bytes] = 0;
        code = take(&job, text, (size_t)bytes, line);
    }
    if (!code && job.out.bytes) fwrite(job.out.data, 1, job.out.bytes, stdout);
    free(text);
    free(job.out.data);
    free(job.ids.data);
    free(job.text.data);
    free(job.record.nodes);
    model_free(&m);
    return code;
}

/* ============================================================================================= score >>score
 * Rows in, rows out: rules on texts alone, metrics of the library's table, and metrics of a whole corpus. */
typedef struct score_job {
    const options *o;
    const char *name, *source;  /* the metric as it was asked for; the file, or "stdin" */
    char *text; size_t text_bytes;
    const char **lines; size_t *line_bytes, line_count, line_capacity; /* blank lines left out; for messages, their numbers */
    int64_t *line_numbers;
    tally t;
    int bad_lines, by_words;
} score_job;
/* members of the open object that a rule shows beside the score; may set the score of a rule that is no metric */
typedef void (*score_details)(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o);

static char *more_room(scoring *s) { return (char *)reserve(&s->more, scoring_room(s), 1); }
/* A text through a rule of the library. */
static void put_ruled(vp_json_writer *w, const char *key, scoring *s, const char *text, vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    size_t room = strlen(text) * 2 + 64;
    char *out = (char *)resize(NULL, room, 1);
    if (key) vp_json_key(w, key);
    if (rule(text, out, room, NULL) == VP_OK) json_lossy(w, out); else vp_json_null(w);
    free(out);
    (void)s;
}
static void put_ruled_references(vp_json_writer *w, const char *key, scoring *s, vp_result (*rule)(const char *, char *, size_t, size_t *)) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->sample.reference_count; i++) put_ruled(w, NULL, s, s->sample.references[i], rule);
    vp_json_end_array(w);
}
/* The same rule with another cleaning, or another rule: one number. */
static void put_other_score(vp_json_writer *w, const char *key, scoring *s, vp_score_metric metric, vp_score_cleaning cleaning) {
    vp_score_outcome other;
    buffer kept = s->scratch;
    s->scratch = s->more; /* the first outcome's texts stay */
    put_double(w, key, scoring_run(s, metric, cleaning, &other) == VP_OK ? other.score : (double)NAN);
    s->more = s->scratch;
    s->scratch = kept;
}
static void put_each(vp_json_writer *w, scoring *s, const char *prediction,
                     vp_result (*rule)(const char *, const char *const *, size_t, char *, size_t, double *)) {
    vp_json_key(w, "each");
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->sample.reference_count; i++) {
        double score = (double)NAN;
        if (rule(prediction, s->sample.references + i, 1, more_room(s), scoring_room(s), &score) != VP_OK) score = (double)NAN;
        json_double_or_null(w, score);
    }
    vp_json_end_array(w);
}
static void put_index(vp_json_writer *w, const char *key, int32_t index) { if (index >= 0) put_int(w, key, index); else put_null(w, key); }

static void details_vqa_seed(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_ruled(w, "prediction_processed", s, o->cleaned, vp_score_vqa_normalise);
    if (s->sample.is_plain_reference || !s->sample.references) return;
    put_ruled_references(w, "references_processed", s, vp_score_vqa_normalise);
    int64_t matches = 0;
    for (size_t i = 0; i < s->sample.reference_count; i++) {
        double one = 0;
        if (vp_score_vqa_seed(o->cleaned, s->sample.references + i, 1, more_room(s), scoring_room(s), &one) == VP_OK) matches += one > 0;
    }
    put_int(w, "matches", matches);
}
static void details_official(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int identical = 1;
    char *first = (char *)resize(NULL, s->text_bytes + 1, 1), *other = (char *)resize(NULL, s->text_bytes + 1, 1);
    char text[400];
    (void)j;
    for (size_t i = 1; i < s->sample.reference_count && identical; i++)
        identical = vp_score_vqa_strip(s->sample.references[0], first, s->text_bytes + 1, NULL) == VP_OK
            && vp_score_vqa_strip(s->sample.references[i], other, s->text_bytes + 1, NULL) == VP_OK && !strcmp(first, other);
    free(first);
    free(other);
    put_bool(w, "all_references_identical", identical);
    put_ruled_references(w, "references_compared", s, identical ? vp_score_vqa_strip : vp_score_vqa_normalise_official);
    snprintf(text, sizeof text, "%.2f", 100 * o->score); /* correctly rounded, as Python's round */
    put_double(w, "percent_2_decimals", isnan(o->score) ? o->score : strtod(text, NULL));
}
static void details_em(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    size_t room = strlen(s->sample.prediction) + 1;
    char *cleaned = (char *)resize(NULL, room, 1);
    double score = (double)NAN;
    (void)j;
    put_text(w, "cleaned", o->cleaned);
    if (s->sample.references && vp_score_clean_frequent(s->sample.prediction, more_room(s), scoring_room(s), cleaned, room, NULL) == VP_OK)
        vp_score_em_unstripped(cleaned, s->sample.references, s->sample.reference_count, more_room(s), scoring_room(s), &score);
    put_double(w, "score_vqa_eval", score);
    free(cleaned);
}
static void details_anls(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_each(w, s, o->cleaned, vp_score_anls);
}
static void details_relaxed(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    put_each(w, s, o->cleaned, vp_score_relaxed);
}
static void details_jaccard(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    (void)o;
    put_other_score(w, "score_compute_accuracy", s, VP_SCORE_CAPTION_JACCARD, VP_SCORE_CLEAN_LAST);
}
static void details_mc(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "cleaned", o->cleaned);
    put_index(w, "predicted_index", o->option_index);
}
static void details_vqa_eval(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "cleaned_vqa_eval", o->cleaned);
    put_index(w, "predicted_index", o->option_index);
}
/* letters as labels are counted with the boxes' kind, other labels with both */
static void details_ai2d(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int letters = node_is(j, vp_json_get(j, 0, "abc_label"), VP_JSON_TRUE);
    int clear = node_is(j, vp_json_get(j, 0, "has_transparent_box"), VP_JSON_TRUE);
    details_vqa_eval(w, s, j, o);
    put_double(w, "score_transparent", letters && !clear ? (double)NAN : o->score);
    put_double(w, "score_opaque", letters && clear ? (double)NAN : o->score);
    put_double(w, "score_mc", o->score);
}
static void details_real_world(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    if (s->sample.question_type && !strcmp(s->sample.question_type, "multiple_choice")) {
        put_index(w, "predicted_index", o->option_index);
        return;
    }
    put_ruled(w, "prediction_processed", s, o->cleaned, vp_score_vqa_normalise);
    if (s->sample.reference_count) put_ruled(w, "reference_processed", s, s->sample.references[0], vp_score_vqa_normalise);
}
static void details_mmmu_choice(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    char letter[2] = {(char)('A' + (o->option_index < 0 ? 0 : o->option_index)), 0};
    (void)s;
    (void)j;
    put_bool(w, "unparsed", o->is_unparsed);
    put_text(w, "parsed", o->option_index < 0 ? NULL : letter);
}
static void details_mmmu_open(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    vp_score_mmmu_answer a;
    (void)j;
    if (vp_score_mmmu_parse(o->cleaned, more_room(s), scoring_room(s), &a) != VP_OK) return;
    vp_json_key(w, "parsed_strings");
    vp_json_begin_array(w);
    for (size_t i = 0; i < a.strings.count; i++) json_lossy(w, a.strings.texts[i]);
    vp_json_end_array(w);
    vp_json_key(w, "parsed_numbers");
    vp_json_begin_array(w);
    for (size_t i = 0; i < a.number_count; i++) {
        if (isfinite(a.numbers[i])) vp_json_double(w, a.numbers[i]);
        else vp_json_string(w, isnan(a.numbers[i]) ? "nan" : a.numbers[i] < 0 ? "-inf" : "inf");
    }
    vp_json_end_array(w);
}
static void details_mmmu(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int choice = o->option_index >= 0 || o->is_unparsed;
    (choice ? details_mmmu_choice : details_mmmu_open)(w, s, j, o);
}
static void details_vista(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)s;
    (void)j;
    put_text(w, "normalised", o->parsed);
}

/* ---- rules on texts alone: no score */
static vp_result clean_frequent(const char *text, char *out, size_t capacity, size_t *needed) {
    size_t room = vp_score_scratch_bytes(strlen(text), 1);
    char *scratch = (char *)resize(NULL, room, 1);
    vp_result r = vp_score_clean_frequent(text, scratch, room, out, capacity, needed);
    free(scratch);
    return r;
}
static void details_normalise(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    (void)o;
    put_ruled(w, "processed", s, s->sample.prediction, vp_score_vqa_normalise);
}
static void details_cleaning(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    (void)j;
    (void)o;
    put_ruled(w, "cleaned", s, s->sample.prediction, vp_score_clean);
    put_ruled(w, "cleaned_vqa_eval", s, s->sample.prediction, clean_frequent);
}
static void details_numbers(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    vp_score_texts numbers = {NULL, 0};
    (void)j;
    (void)o;
    vp_score_mmmu_numbers(s->sample.prediction, more_room(s), scoring_room(s), &numbers);
    vp_json_key(w, "numbers");
    vp_json_begin_array(w);
    for (size_t i = 0; i < numbers.count; i++) json_lossy(w, numbers.texts[i]);
    vp_json_end_array(w);
}
static void details_tokens(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    size_t bytes = strlen(s->sample.prediction), room = bytes * 6 + 1;
    char *out = (char *)resize(NULL, room, 1);
    (void)j;
    (void)o;
    put_text(w, "tokens", vp_caption_tokenise(s->sample.prediction, bytes, out, room, NULL) == VP_OK ? out : NULL);
    put_text(w, "tokenizer", "built-in tokenizer");
    free(out);
}
static void details_select(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    int32_t index = -1;
    (void)j;
    if (vp_score_select_option(s->sample.prediction, s->sample.options, s->sample.option_count, more_room(s), scoring_room(s), &index) != VP_OK)
        o->reason = "the row has no options, or two that are equal after lower-casing and stripping: the reference stops there";
    put_index(w, "selected_index", index);
    vp_json_key(w, "distances");
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->sample.option_count; i++) {
        size_t distance = 0;
        vp_score_option_distance(s->sample.prediction, s->sample.options[i], more_room(s), scoring_room(s), &distance);
        vp_json_int(w, (int64_t)distance);
    }
    vp_json_end_array(w);
}
static const char *experiments_name(vp_score_metric metric) {
    switch (metric) {
    case VP_SCORE_VQA_SEED: return "vqa_score";
    case VP_SCORE_ANLS: return "ansl_em";
    case VP_SCORE_MMMU: return "mmmu_score";
    case VP_SCORE_CAPTION_JACCARD: return "cider_score"; /* what it says, and never runs */
    default: return vp_score_metric_of(metric)->name;
    }
}
/* as a run of the experiments: metric and cleaning by data set */
static void details_end_to_end(vp_json_writer *w, scoring *s, const vp_json *j, vp_score_outcome *o) {
    vp_score_metric metric = VP_SCORE_VQA_SEED;
    char *dataset = node_text(j, vp_json_get(j, 0, "dataset"));
    const vp_score_metric_info *info;
    vp_score_metric_for_dataset(dataset ? dataset : "", &metric);
    info = vp_score_metric_of(metric);
    s->sample.is_plain_reference = 0; /* one string becomes a list of one there */
    if (scoring_run(s, metric, info->run_cleaning, o) != VP_OK) o->reason = "the row is too large";
    put_text(w, "metric", experiments_name(metric));
    put_text(w, "cleaned", o->cleaned);
    if (o->is_unparsed) put_bool(w, "unparsed", 1);
    free(dataset);
}

/* instead of a vp_score_metric: a rule on texts alone, or the number of a corpus of captions that is the score */
enum { RULE_TEXT = -1, RULE_CIDER_D = -2, RULE_BLEU_1 = -3, RULE_BLEU_4 = -6, RULE_ROUGE_L = -7, RULE_CAPTIONS = -8 /* CIDEr-D, and the words */ };
typedef struct score_rule {
    const char *name;
    int metric;
    score_details details;
} score_rule;
static const score_rule SCORE_RULES[] = {
    {"vqa_seed", VP_SCORE_VQA_SEED, details_vqa_seed},
    {"vqa_official", VP_SCORE_VQA_OFFICIAL, details_official},
    {"em", VP_SCORE_EM, details_em},
    {"anls", VP_SCORE_ANLS, details_anls},
    {"relaxed", VP_SCORE_RELAXED, details_relaxed},
    {"mc", VP_SCORE_MC, details_mc},
    {"mc_ai2d", VP_SCORE_MC_TEXT, details_ai2d},
    {"mmmu", VP_SCORE_MMMU, details_mmmu},
    {"mmmu_multiple_choice", VP_SCORE_MMMU_CHOICE, details_mmmu_choice},
    {"mmmu_open", VP_SCORE_MMMU_OPEN, details_mmmu_open},
    {"a_okvqa", VP_SCORE_A_OKVQA, NULL},
    {"real_world_qa", VP_SCORE_REAL_WORLD_QA, details_real_world},
    {"seed_bench", VP_SCORE_SEED_BENCH, details_vqa_eval},
    {"math_vista_local", VP_SCORE_MATH_VISTA, details_vista},
    {"caption_jaccard", VP_SCORE_CAPTION_JACCARD, details_jaccard},
    {"vqa_normalise", RULE_TEXT, details_normalise},
    {"prediction_cleaning", RULE_TEXT, details_cleaning},
    {"mmmu_numbers", RULE_TEXT, details_numbers},
    {"select_option", RULE_TEXT, details_select},
    {"end_to_end", RULE_TEXT, details_end_to_end},
    {"ptb_tokens", RULE_TEXT, details_tokens},
    {"captions", RULE_CAPTIONS, NULL},
    {"cider", RULE_CIDER_D, NULL},
    {"bleu", RULE_BLEU_4, NULL},
    {"bleu_1", RULE_BLEU_1, NULL},
    {"bleu_2", RULE_BLEU_1 - 1, NULL},
    {"bleu_3", RULE_BLEU_1 - 2, NULL},
    {"bleu_4", RULE_BLEU_4, NULL},
    {"rouge_l", RULE_ROUGE_L, NULL},
};
enum { SCORE_RULE_COUNT = sizeof SCORE_RULES / sizeof SCORE_RULES[0] };

static int is_corpus(const score_rule *rule) { return rule->metric < RULE_TEXT; }
static const score_rule *find_rule(const char *name) {
    vp_score_metric metric;
    int known = vp_score_metric_find(name, &metric) == VP_OK;
    char plain[32] = ""; /* papers write CIDEr-D, BLEU-4, ROUGE-L */
    for (size_t i = 0; name[i] && i + 1 < sizeof plain; i++) plain[i] = name[i] == '-' ? '_' : (char)tolower((unsigned char)name[i]);
    if (!strcmp(plain, "cider_d")) return find_rule("cider");
    for (int i = 0; i < SCORE_RULE_COUNT; i++) {
        const score_rule *rule = &SCORE_RULES[i];
        if (!strcmp(rule->name, is_corpus(rule) ? plain : name) || (known && rule->metric == (int)metric)) return rule;
    }
    return NULL;
}
enum { ANY_RULE, METRICS_OF_ROWS, METRICS };
static int unknown_metric(const char *name, int wanted) {
    char names[512] = "";
    size_t used = 0;
    const score_rule *rule = find_rule(name);
    if (wanted == METRICS_OF_ROWS && rule && is_corpus(rule))
        return complain(EXIT_USAGE, "--metric: %s is of a whole corpus: sweep with caption_jaccard, then vlmprof rescore RESULT.json --metric %s",
                        rule->name, rule->name);
    for (int i = 0; i < SCORE_RULE_COUNT && used < sizeof names; i++) {
        rule = &SCORE_RULES[i];
        if (wanted == ANY_RULE || rule->metric >= 0 || (wanted == METRICS && is_corpus(rule)))
            used += (size_t)snprintf(names + used, sizeof names - used, " %s", rule->name);
    }
    return complain(EXIT_USAGE, "--metric: \"%.60s\" is none of:%s", name, names);
}

/* One row of the input -> one row of the output. */
static void score_row(score_job *job, const score_rule *rule, scoring *s, parsed *p, size_t line, vp_json_writer *w) {
    static const vp_score_cleaning cleanings[] = {VP_SCORE_CLEAN_NONE, VP_SCORE_CLEAN_LAST, VP_SCORE_CLEAN_FREQUENT};
    const char *clean = text_of(job->o, "clean"), *trouble = NULL, *prediction_key = "prediction";
    vp_score_outcome o = {(double)NAN, NULL, 0, -1, NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    vp_result r = parse_json(p, job->lines[line], job->line_bytes[line], &error);
    scoring_clear(s);
    vp_json_begin_object(w);
    if (r != VP_OK || !node_is(&p->json, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "line %lld: %s (byte %lld)", (long long)job->line_numbers[line],
                 r == VP_OK ? "want one JSON object" : error.text, (long long)(error.offset < 0 ? 0 : error.offset));
        trouble = reason;
        job->bad_lines++;
    } else {
        uint32_t id = vp_json_get(&p->json, 0, "id");
        if (id != VP_JSON_NONE) { vp_json_key(w, "id"); json_node(w, &p->json, id); }
        if (!has_value(&p->json, 0, "prediction")) prediction_key = has_value(&p->json, 0, "text") ? "text" : "pred";
        s->sample.prediction = scoring_own(s, node_text(&p->json, vp_json_get(&p->json, 0, prediction_key)));
        trouble = scoring_read(s, rule->metric, &p->json, 0);
        if (!s->sample.prediction) trouble = "the row has no prediction that is a text";
    }
    if (!trouble && rule->metric >= 0) {
        const vp_score_metric_info *info = vp_score_metric_of((vp_score_metric)rule->metric);
        vp_score_cleaning cleaning = info->own_cleaning;
        for (int i = 0; i < 3; i++) if (!strcmp(clean, i == 0 ? "none" : i == 1 ? "last" : "frequent")) cleaning = cleanings[i];
        if (!strcmp(clean, "run")) cleaning = info->run_cleaning;
        r = scoring_run(s, (vp_score_metric)rule->metric, cleaning, &o);
        if (r != VP_OK) trouble = vp_result_text(r);
    }
    if (!trouble && rule->details) rule->details(w, s, &p->json, &o);
    if (!trouble) trouble = o.reason;
    if (isnan(o.score) && !trouble) trouble = "this rule gives no score";
    put_double(w, "score", o.score);
    if (trouble) put_text(w, "reason", trouble);
    vp_json_end_object(w);
    tally_add(&job->t, o.score, o.is_unparsed, s->sample.prediction && !(o.cleaned ? o.cleaned : s->sample.prediction)[0]);
}

/* 0 or an exit code */
static int put_line(vp_json_writer *w, text_buffer *line, const char *source) {
    vp_result r = vp_json_finish(w);
    if (r != VP_OK) return complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", source, vp_result_text(r));
    text_add(line, "\n", 1);
    return fwrite(line->data, 1, line->bytes, stdout) == line->bytes ? 0 : EXIT_OUTPUT; /* main says why */
}

static void score_add_line(score_job *job, const char *line, size_t bytes, int64_t number) {
    if (job->line_count == job->line_capacity) {
        job->line_capacity = job->line_capacity * 2 + 1024;
        job->lines = (const char **)resize((void *)job->lines, job->line_capacity, sizeof *job->lines);
        job->line_bytes = (size_t *)resize(job->line_bytes, job->line_capacity, sizeof *job->line_bytes);
        job->line_numbers = (int64_t *)resize(job->line_numbers, job->line_capacity, sizeof *job->line_numbers);
    }
    job->lines[job->line_count] = line;
    job->line_bytes[job->line_count] = bytes;
    job->line_numbers[job->line_count++] = number;
}
/* lines end at \n alone: texts may hold other separators */
static void score_lines(score_job *job) {
    char *line = job->text, *end;
    if (!job->text_bytes) return; /* then there is no text either */
    for (int64_t number = 1; line < job->text + job->text_bytes; line = end + 1, number++) {
        end = (char *)memchr(line, '\n', (size_t)(job->text + job->text_bytes - line));
        if (!end) end = job->text + job->text_bytes;
        size_t bytes = (size_t)(end - line), blank = 0;
        while (blank < bytes && strchr(" \t\r", line[blank]) && line[blank]) blank++;
        if (blank < bytes) score_add_line(job, line, bytes, number);
    }
}
/* The elements of one JSON array instead. */
static void score_list(score_job *job, const vp_json *j, uint32_t list) {
    job->line_count = 0;
    for (uint32_t i = list + 1, k = 1; i < j->nodes[list].end; i = j->nodes[i].end, k++) {
        size_t quotes = node_is(j, i, VP_JSON_STRING);
        score_add_line(job, j->text + j->nodes[i].start - quotes, (size_t)j->nodes[i].bytes + 2 * quotes, (int64_t)k);
    }
}

/* FILE, or stdin */
static int score_read(score_job *job) {
    const char *path = job->o->operand_count ? job->o->operands[0] : "-";
    vp_error error = {VP_OK, -1, "", ""};
    text_buffer t = {NULL, 0, 0};
    char piece[65536];
    size_t bytes;
    vp_result r;
    job->source = strcmp(path, "-") ? path : "stdin";
    if (strcmp(path, "-")) {
        r = is_folder(path) ? vp_fail(&error, VP_ERR_READ, -1, path, "is a folder; want a JSONL file")
            : vp_file_read(path, SIZE_MAX / 4, &job->text, &job->text_bytes, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, path, r, &error);
    } else {
        while ((bytes = fread(piece, 1, sizeof piece, stdin)) > 0) text_add(&t, piece, bytes);
        if (ferror(stdin)) { free(t.data); return complain(EXIT_INPUT, "stdin cannot be read: %s", strerror(errno)); }
        job->text = t.data;
        job->text_bytes = t.bytes;
    }
    score_lines(job);
    return job->line_count ? 0 : complain(EXIT_INPUT, "%s: there is no line in it", job->source);
}

static int score_rows(score_job *job, const score_rule *rule) {
    scoring s;
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    text_buffer line = {NULL, 0, 0};
    vp_json_writer w;
    int code = 0;
    memset(&s, 0, sizeof s);
    job->t.is_binary = rule->metric >= 0 && vp_score_metric_of((vp_score_metric)rule->metric)->is_binary;
    for (size_t i = 0; i < job->line_count && !code; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&w, text_sink, &line, 0);
        score_row(job, rule, &s, &p, i, &w);
        code = put_line(&w, &line, job->source);
    }
    if (!code) tally_print(&job->t, job->name);
    if (!code && job->bad_lines)
        code = complain(EXIT_INPUT, "%s: %d lines are no JSON objects: their rows say why", job->source, job->bad_lines);
    scoring_free(&s);
    free(p.nodes);
    free(line.data);
    return code;
}

/* ---- metrics of a corpus of captions: an image's score depends on all the others */
typedef struct caption_row {
    char *id, *reason, *cleaned; /* owned; id is JSON */
    const char *id_key, *trouble; /* trouble: no score */
    size_t first, reference_count; /* its texts */
    int has_words; /* the row gave them, or the built-in tokenizer changed a text */
} caption_row;
typedef struct captions {
    int by_words; /* texts as they are: words between white space */
    size_t tokenised_count; /* texts that the built-in tokenizer took apart */
    vp_caption_text *texts; size_t text_count, text_capacity; /* owned; an image's candidate before its references */
    caption_row *rows; size_t row_count, row_capacity;
} captions;

static void captions_clear(captions *c) {
    for (size_t i = 0; i < c->text_count; i++) free((void *)(size_t)c->texts[i].text);
    for (size_t i = 0; i < c->row_count; i++) { free(c->rows[i].id); free(c->rows[i].reason); free(c->rows[i].cleaned); }
    c->text_count = c->row_count = c->tokenised_count = 0;
}
static void captions_free(captions *c) {
    captions_clear(c);
    free(c->texts);
    free(c->rows);
}
/* Returns whether the words are another text than what was given. */
static int caption_add_text(captions *c, const char *text, int is_words) {
    size_t bytes = strlen(text), room = bytes * 6 + 1, used = bytes;
    char *own;
    if (is_words) own = copy_text(text, bytes);
    else {
        own = (char *)resize(NULL, room, 1);
        if (vp_caption_tokenise(text, bytes, own, room, &used) != VP_OK) own[used = 0] = 0; /* the room is enough for any text */
        own = (char *)resize(own, used + 1, 1);
        c->tokenised_count++;
    }
    if (c->text_count == c->text_capacity) {
        c->text_capacity = c->text_capacity * 2 + 1024;
        c->texts = (vp_caption_text *)resize(c->texts, c->text_capacity, sizeof *c->texts);
    }
    c->texts[c->text_count].text = own;
    c->texts[c->text_count++].bytes = used;
    return strcmp(own, text) != 0;
}
static caption_row *caption_add_row(captions *c, const vp_json *j, uint32_t id, const char *id_key) {
    caption_row *row;
    if (c->row_count == c->row_capacity) {
        c->row_capacity = c->row_capacity * 2 + 256;
        c->rows = (caption_row *)resize(c->rows, c->row_capacity, sizeof *c->rows);
    }
    row = &c->rows[c->row_count++];
    memset(row, 0, sizeof *row);
    row->first = c->text_count;
    row->id_key = id_key;
    if (id != VP_JSON_NONE) {
        text_buffer t = {NULL, 0, 0};
        vp_json_writer w;
        vp_json_writer_init_sink(&w, text_sink, &t, 0);
        json_node(&w, j, id);
        if (vp_json_finish(&w) == VP_OK) row->id = t.data; else free(t.data);
    }
    return row;
}
/* candidate: NULL for none; the references are those of `object`. */
static void caption_add(captions *c, caption_row *row, scoring *s, const vp_json *j, uint32_t object, const char *candidate, int is_words) {
    const char *trouble = NULL;
    if (is_words) {
        if (!scoring_list(s, 0, j, vp_json_get(j, object, "references_tokenised"), &s->sample.references, &s->sample.reference_count))
            trouble = "the references must be texts";
    } else trouble = scoring_read(s, VP_SCORE_CAPTION_JACCARD, j, object);
    if (!candidate) trouble = "the row has no prediction that is a text";
    if (!trouble && !s->sample.reference_count) trouble = "the row has no references to compare with";
    row->trouble = trouble;
    if (trouble) return;
    row->reference_count = s->sample.reference_count;
    row->has_words = caption_add_text(c, candidate, is_words || c->by_words) || is_words;
    for (size_t i = 0; i < row->reference_count; i++)
        if (caption_add_text(c, s->sample.references[i], is_words || c->by_words)) row->has_words = 1;
}
/* An object of an image: its texts, or those that it says are taken apart already. */
static void caption_add_object(captions *c, scoring *s, const vp_json *j, uint32_t object) {
    static const char *const keys[] = {"candidate_tokenised", "candidate", "prediction", "pred", "caption", "text"};
    int id_is_image = !has_value(j, object, "id") && has_value(j, object, "image_id"), key = 0;
    caption_row *row = caption_add_row(c, j, vp_json_get(j, object, id_is_image ? "image_id" : "id"), id_is_image ? "image_id" : "id");
    scoring_clear(s);
    if (!has_value(j, object, "references_tokenised")) key = 1;
    while (key < 5 && !has_value(j, object, keys[key])) key++;
    caption_add(c, row, s, j, object, scoring_own(s, node_text(j, vp_json_get(j, object, keys[key]))), key == 0);
}

static double caption_number(int metric, const vp_caption_scores *a) {
    return metric <= RULE_BLEU_1 && metric >= RULE_BLEU_4 ? a->bleu[RULE_BLEU_1 - metric] : metric == RULE_ROUGE_L ? a->rouge_l : a->cider_d;
}
static void put_caption_scores(vp_json_writer *w, const vp_caption_scores *a) { /* NULL: none */
    vp_json_key(w, "bleu");
    if (a) vp_json_begin_array(w); else vp_json_null(w);
    for (int n = 0; n < 4 && a; n++) vp_json_double(w, a->bleu[n]);
    if (a) vp_json_end_array(w);
    put_double(w, "cider_d", a ? a->cider_d : (double)NAN);
    put_double(w, "rouge_l", a ? a->rouge_l : (double)NAN);
}
/* each: of the rows with a score, in their order */
typedef struct caption_result { vp_caption_scores *each, corpus; size_t scored_count; } caption_result;
/* 0 or an exit code; no row with a score is no error. */
static int captions_score(const captions *c, const char *source, caption_result *r) {
    vp_caption_image *images = (vp_caption_image *)resize(NULL, c->row_count, sizeof *images);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = VP_OK;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].trouble) continue;
        images[r->scored_count].candidate = c->texts[c->rows[i].first];
        images[r->scored_count].references = c->texts + c->rows[i].first + 1;
        images[r->scored_count++].reference_count = c->rows[i].reference_count;
    }
    r->each = (vp_caption_scores *)resize(NULL, r->scored_count, sizeof *r->each);
    if (r->scored_count) result = vp_caption_corpus(images, r->scored_count, VP_CAPTION_TOKENISED, r->each, &r->corpus, &error);
    free(images);
    if (result == VP_OK) return 0;
    free(r->each);
    r->each = NULL;
    return complain_result(exit_code_of(result), source, result, &error);
}
static void put_caption_row(vp_json_writer *w, const captions *c, const caption_row *row, int metric, const vp_caption_scores *scores) {
    if (row->id) { vp_json_key(w, row->id_key); vp_json_raw(w, row->id, strlen(row->id)); }
    if (row->cleaned) put_text(w, "pred_cleaned", row->cleaned);
    if (metric == RULE_CAPTIONS && row->has_words) {
        put_text(w, "candidate_tokenised", c->texts[row->first].text);
        vp_json_key(w, "references_tokenised");
        vp_json_begin_array(w);
        for (size_t i = 1; i <= row->reference_count; i++) json_lossy(w, c->texts[row->first + i].text);
        vp_json_end_array(w);
    }
    put_caption_scores(w, scores);
    put_double(w, "score", scores ? caption_number(metric, scores) : (double)NAN);
    if (row->trouble) put_text(w, "reason", row->trouble);
}
static void put_caption_corpus(vp_json_writer *w, const captions *c, const caption_result *r, int metric) {
    vp_json_key(w, "corpus");
    vp_json_begin_object(w);
    put_caption_scores(w, r->scored_count ? &r->corpus : NULL);
    put_double(w, "score", r->scored_count ? caption_number(metric, &r->corpus) : (double)NAN);
    put_int(w, "images", (int64_t)r->scored_count);
    put_text(w, "tokenizer", c->tokenised_count ? "built-in tokenizer" : NULL);
    vp_json_end_object(w);
}
static void caption_summary(const captions *c, const caption_result *r, const char *metric) {
    const vp_caption_scores *a = &r->corpus;
    fprintf(stderr, "vlmprof: %s: %lld rows", metric, (long long)c->row_count);
    if (r->scored_count)
        fprintf(stderr, ", corpus of %lld: BLEU-1..4 %.6f %.6f %.6f %.6f, CIDEr-D %.6f, ROUGE-L %.6f (%s)", (long long)r->scored_count, a->bleu[0],
                a->bleu[1], a->bleu[2], a->bleu[3], a->cider_d, a->rouge_l, c->tokenised_count ? "built-in tokenizer" : "words as they are");
    fprintf(stderr, "; %lld without a score\n", (long long)(c->row_count - r->scored_count));
}
/* One line an image; the last line has the corpus too. */
static int captions_print(const captions *c, int metric, const char *name, const char *source) {
    text_buffer line = {NULL, 0, 0};
    caption_result r;
    vp_json_writer w;
    int code = captions_score(c, source, &r);
    for (size_t i = 0, k = 0; i < c->row_count && !code; i++) {
        line.bytes = 0;
        vp_json_writer_init_sink(&w, text_sink, &line, 0);
        vp_json_begin_object(&w);
        put_caption_row(&w, c, &c->rows[i], metric, c->rows[i].trouble ? NULL : &r.each[k++]);
        if (i + 1 == c->row_count) put_caption_corpus(&w, c, &r, metric);
        vp_json_end_object(&w);
        code = put_line(&w, &line, source);
    }
    if (!code) caption_summary(c, &r, name);
    free(r.each);
    free(line.data);
    return code;
}
/* A set, an object {"name", "images": [...]}, is a corpus and a line of its own. */
static int caption_set_print(score_job *job, scoring *s, const vp_json *j, uint32_t object, int metric) {
    captions c;
    caption_result r;
    text_buffer line = {NULL, 0, 0};
    vp_json_writer w;
    char label[160], *name = node_text(j, vp_json_get(j, object, "name"));
    uint32_t images = vp_json_get(j, object, "images");
    int code;
    memset(&c, 0, sizeof c);
    c.by_words = job->by_words;
    for (uint32_t i = images + 1; i < j->nodes[images].end; i = j->nodes[i].end) {
        if (node_is(j, i, VP_JSON_OBJECT)) caption_add_object(&c, s, j, i);
        else caption_add_row(&c, j, VP_JSON_NONE, "id")->trouble = "want one JSON object";
    }
    code = captions_score(&c, job->source, &r);
    vp_json_writer_init_sink(&w, text_sink, &line, 0);
    vp_json_begin_object(&w);
    if (name) put_text(&w, "name", name);
    vp_json_key(&w, "images");
    vp_json_begin_array(&w);
    for (size_t i = 0, k = 0; i < c.row_count && !code; i++) {
        vp_json_begin_object(&w);
        put_caption_row(&w, &c, &c.rows[i], metric, c.rows[i].trouble ? NULL : &r.each[k++]);
        vp_json_end_object(&w);
    }
    vp_json_end_array(&w);
    put_caption_corpus(&w, &c, &r, metric);
    put_double(&w, "score", r.scored_count ? caption_number(metric, &r.corpus) : (double)NAN);
    if (!r.scored_count) put_text(&w, "reason", "no image of the set has a prediction and references");
    vp_json_end_object(&w);
    if (!code) code = put_line(&w, &line, job->source);
    snprintf(label, sizeof label, "%.60s%s%.80s", job->name, name ? ", " : "", name ? name : "");
    for (char *p = label; *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?';
    if (!code) caption_summary(&c, &r, label);
    free(r.each);
    free(line.data);
    free(name);
    captions_free(&c);
    return code;
}

/* Lines of images, or of sets where the first is one. */
static int caption_lines(score_job *job, scoring *s, parsed *p, int metric) {
    captions c;
    int are_sets = 0, code = 0;
    memset(&c, 0, sizeof c);
    c.by_words = job->by_words;
    for (size_t i = 0; i < job->line_count && !code; i++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result r = parse_json(p, job->lines[i], job->line_bytes[i], &error);
        int is_object = r == VP_OK && node_is(&p->json, 0, VP_JSON_OBJECT);
        int is_set = is_object && node_is(&p->json, vp_json_get(&p->json, 0, "images"), VP_JSON_ARRAY);
        caption_row *row;
        if (!i) are_sets = is_set;
        if (is_set && are_sets) code = caption_set_print(job, s, &p->json, 0, metric);
        else if (is_object && !is_set && !are_sets) caption_add_object(&c, s, &p->json, 0);
        else {
            row = caption_add_row(&c, &p->json, VP_JSON_NONE, "id");
            row->reason = (char *)resize(NULL, LINE_BYTES, 1);
            snprintf(row->reason, LINE_BYTES, "line %lld: %s (byte %lld)", (long long)job->line_numbers[i],
                     r != VP_OK ? error.text : are_sets ? "want a set, as the first line is" : "want one JSON object of an image",
                     (long long)(error.offset < 0 ? 0 : error.offset));
            row->trouble = row->reason;
            job->bad_lines++;
            if (are_sets && (code = captions_print(&c, metric, job->name, job->source)) == 0) captions_clear(&c);
        }
    }
    if (!code && c.row_count) code = captions_print(&c, metric, job->name, job->source);
    captions_free(&c);
    return code;
}

/* The text is one object {"sets": [...]}, one array of images or of sets, or lines. */
static int score_captions(score_job *job, int metric) {
    const char *clean = text_of(job->o, "clean");
    scoring s;
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    uint32_t list = VP_JSON_NONE;
    int code = 0;
    if (strcmp(clean, "rule") && strcmp(clean, "none"))
        return complain(EXIT_USAGE, "--clean: captions know \"rule\" (built-in tokenizer) and \"none\" (words between white space)");
    memset(&s, 0, sizeof s);
    job->by_words = !strcmp(clean, "none");
    if (parse_json(&p, job->text, job->text_bytes, &error) == VP_OK) {
        if (node_is(&p.json, 0, VP_JSON_ARRAY)) list = 0;
        else if (node_is(&p.json, 0, VP_JSON_OBJECT)) list = vp_json_get(&p.json, 0, "sets");
    }
    if (node_is(&p.json, list, VP_JSON_ARRAY)) score_list(job, &p.json, list);
    code = caption_lines(job, &s, &p, metric);
    if (!code && job->bad_lines)
        code = complain(EXIT_INPUT, "%s: %d lines are no JSON objects of the first one's kind: their rows say why", job->source, job->bad_lines);
    scoring_free(&s);
    free(p.nodes);
    return code;
}

static int command_score(const options *o) {
    score_job job;
    const score_rule *rule;
    int code;
    memset(&job, 0, sizeof job);
    job.o = o;
    job.name = text_of(o, "metric");
    if (!job.name) return complain(EXIT_USAGE, "score needs --metric M; see vlmprof score --help");
    if ((rule = find_rule(job.name)) == NULL) return unknown_metric(job.name, ANY_RULE);
    code = score_read(&job);
    if (!code) code = is_corpus(rule) ? score_captions(&job, rule->metric) : score_rows(&job, rule);
    free(job.text);
    free((void *)job.lines);
    free(job.line_bytes);
    free(job.line_numbers);
    return code;
}

/* ---- rescore: a result file's answers again */
typedef struct rescore_job { vp_score_metric metric; vp_score_cleaning cleaning; int compares, differ_count; tally t; } rescore_job;

/* A string up to its first \u0000, as a sweep scores it; NULL: no string. */
static char *node_text_cut(const vp_json *j, uint32_t node) {
    char *out;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    out = (char *)resize(NULL, (size_t)j->nodes[node].bytes + 1, 1);
    if (vp_json_text(j, node, out, (size_t)j->nodes[node].bytes + 1, NULL) != VP_OK) { free(out); return NULL; }
    return out;
}

static void rescore_row(rescore_job *job, scoring *s, const vp_json *j, uint32_t row, vp_json_writer *w) {
    vp_score_outcome o = {(double)NAN, NULL, 0, -1, NULL, NULL};
    uint32_t metadata = vp_json_get(j, row, "metadata"), status = vp_json_get(j, row, "status"), id = vp_json_get(j, row, "sample_id");
    double stored = node_number(j, vp_json_get(j, row, "accuracy")), score;
    const char *trouble = NULL;
    scoring_clear(s);
    vp_json_begin_object(w);
    vp_json_key(w, "sample_id");
    if (id != VP_JSON_NONE) json_node(w, j, id); else vp_json_null(w);
    s->sample.prediction = scoring_own(s, node_text_cut(j, vp_json_get(j, row, "pred")));
    if (status != VP_JSON_NONE && !vp_json_equals(j, status, "ok")) trouble = "the point failed: no answer";
    else if (!s->sample.prediction) trouble = "the row has no \"pred\"";
    else if (!node_is(j, metadata, VP_JSON_OBJECT)) trouble = "the row has no \"metadata\"";
    else trouble = scoring_read(s, (int)job->metric, j, metadata);
    scoring_as_run(s);
    if (!trouble && scoring_run(s, job->metric, job->cleaning, &o) != VP_OK) trouble = "the row is too large";
    if (!trouble) trouble = o.reason;
    score = o.is_unparsed ? 0 : o.score;
    put_double(w, "accuracy", score);
    put_text(w, "accuracy_reason", trouble);
    put_double(w, "accuracy_stored", stored);
    put_text(w, "pred_cleaned", o.cleaned);
    put_bool(w, "unparsed", o.is_unparsed);
    vp_json_end_object(w);
    if (job->compares && !(isnan(stored) && isnan(score)) && !(fabs(stored - score) <= 1e-12)) job->differ_count++;
    tally_add(&job->t, o.score, o.is_unparsed, o.cleaned && !o.cleaned[0]);
}

/* A corpus metric: the rows of a result file as images. */
static int rescore_captions(const vp_json *j, uint32_t rows, const score_rule *rule, const char *path) {
    int is_clean = vp_json_get(j, 0, "schema") == VP_JSON_NONE; /* as files of the experiments are */
    scoring s;
    captions c;
    int code;
    memset(&s, 0, sizeof s);
    memset(&c, 0, sizeof c);
    for (uint32_t i = rows + 1; i < j->nodes[rows].end; i = j->nodes[i].end) {
        uint32_t metadata = vp_json_get(j, i, "metadata"), status = vp_json_get(j, i, "status");
        caption_row *row = caption_add_row(&c, j, vp_json_get(j, i, "sample_id"), "sample_id");
        char *candidate = node_text_cut(j, vp_json_get(j, i, "pred"));
        scoring_clear(&s);
        scoring_own(&s, candidate);
        if (candidate && !is_clean) {
            row->cleaned = (char *)resize(NULL, strlen(candidate) + 1, 1);
            if (vp_score_clean(candidate, row->cleaned, strlen(candidate) + 1, NULL) != VP_OK) row->cleaned[0] = 0; /* never: no text grows */
            candidate = row->cleaned;
        }
        if (status != VP_JSON_NONE && !vp_json_equals(j, status, "ok")) row->trouble = "the point failed: no answer";
        else if (!node_is(j, metadata, VP_JSON_OBJECT)) row->trouble = "the row has no \"metadata\"";
        else caption_add(&c, row, &s, j, metadata, candidate, 0);
    }
    code = captions_print(&c, rule->metric, rule->name, path);
    captions_free(&c);
    scoring_free(&s);
    return code;
}

/* --metric, else the file's own, else its data set's; does the file say that its accuracies are of the same? */
static int rescore_metric(const options *o, const vp_json *j, rescore_job *job) {
    char *stored = node_text(j, vp_json_get(j, 0, "accuracy_metric")), *dataset = node_text(j, vp_json_get(j, 0, "dataset_name"));
    vp_score_metric own = VP_SCORE_VQA_SEED;
    int known = stored && vp_score_metric_find(stored, &own) == VP_OK, code = 0;
    if (!known) vp_score_metric_for_dataset(dataset ? dataset : "", &own);
    job->metric = own;
    if (given(o, "metric") && vp_score_metric_find(text_of(o, "metric"), &job->metric) != VP_OK) code = unknown_metric(text_of(o, "metric"), METRICS);
    job->compares = job->metric == own && (known || !given(o, "metric"));
    /* files of the experiments hold answers that are cleaned already */
    job->cleaning = vp_json_get(j, 0, "schema") == VP_JSON_NONE ? VP_SCORE_CLEAN_NONE : vp_score_metric_of(job->metric)->run_cleaning;
    job->t.is_binary = vp_score_metric_of(job->metric)->is_binary;
    free(stored);
    free(dataset);
    return code;
}

static int command_rescore(const options *o) {
    const char *path = o->operand_count ? o->operands[0] : NULL;
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    text_buffer out = {NULL, 0, 0};
    const score_rule *rule = given(o, "metric") ? find_rule(text_of(o, "metric")) : NULL;
    rescore_job job;
    scoring s;
    vp_json_writer w;
    char *text = NULL;
    size_t bytes = 0;
    uint32_t rows;
    int code = 0;
    vp_result r;
    if (!path) return complain(EXIT_USAGE, "rescore needs a RESULT.json of a sweep");
    memset(&job, 0, sizeof job);
    memset(&s, 0, sizeof s);
    r = is_folder(path) ? vp_fail(&error, VP_ERR_READ, -1, path, "is a folder; want a result file")
        : vp_file_read(path, SIZE_MAX / 4, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r != VP_OK) {
        free(text);
        free(p.nodes);
        return complain_result(EXIT_INPUT, path, r, &error);
    }
    rows = vp_json_get(&p.json, 0, "per_sample_results");
    if (!node_is(&p.json, rows, VP_JSON_ARRAY)) code = complain(EXIT_INPUT, "%s has no \"per_sample_results\": want a result file of a sweep", path);
    if (!code && rule && is_corpus(rule)) code = rescore_captions(&p.json, rows, rule, path);
    else if (!code) code = rescore_metric(o, &p.json, &job);
    for (uint32_t i = rows + 1; !code && !(rule && is_corpus(rule)) && i < p.json.nodes[rows].end; i = p.json.nodes[i].end) {
        vp_json_writer_init_sink(&w, text_sink, &out, 0);
        rescore_row(&job, &s, &p.json, i, &w);
        if (vp_json_finish(&w) != VP_OK) code = complain(EXIT_WORK, "%s: a row cannot be written as JSON: %s", path, vp_result_text(w.result));
        text_add(&out, "\n", 1);
    }
    if (!code && out.bytes) fwrite(out.data, 1, out.bytes, stdout); /* main looks at stdout */
    if (!code && !(rule && is_corpus(rule))) tally_print(&job.t, vp_score_metric_of(job.metric)->name);
    if (!code && job.differ_count)
        code = complain(EXIT_WORK, "%s: %d of %lld stored accuracies differ from those of %s", path, job.differ_count, (long long)job.t.row_count,
                        vp_score_metric_of(job.metric)->name);
    scoring_free(&s);
    free(p.nodes);
    free(out.data);
    free(text);
    return code;
}

/* ============================================================================================== data >>data
 * A data set's file is gone through once to find its records; which ones are sampled is drawn from their number, and only those are read. */

/* ---- sources: files by pieces; what is no regular file (a pipe) is held in memory */
typedef struct source { const char *path; int fd; char *memory; size_t memory_bytes; } source;

static vp_result source_open(source *s, const char *path, vp_error *error) {
    struct stat info;
    s->path = path;
    s->memory = NULL;
    s->fd = -1;
    if (stat(path, &info) || !S_ISREG(info.st_mode)) return vp_file_read(path, SIZE_MAX / 4, &s->memory, &s->memory_bytes, error);
    s->fd = open(path, O_RDONLY);
    return s->fd >= 0 ? VP_OK : vp_fail(error, VP_ERR_READ, -1, path, strerror(errno));
}
static void source_close(source *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->memory);
    s->fd = -1;
    s->memory = NULL;
}
/* Up to `bytes` bytes from a place; 0 at the end, -1 after a read error. */
static ssize_t source_read(const source *s, int64_t offset, char *out, size_t bytes) {
    ssize_t n;
    if (s->fd >= 0) {
        while ((n = pread(s->fd, out, bytes, (off_t)offset)) < 0 && errno == EINTR) { }
        return n;
    }
    if ((uint64_t)offset >= s->memory_bytes) return 0;
    if (bytes > s->memory_bytes - (size_t)offset) bytes = s->memory_bytes - (size_t)offset;
    memcpy(out, s->memory + offset, bytes);
    return (ssize_t)bytes;
}
static vp_result source_text(const source *s, int64_t offset, int64_t bytes, text_buffer *out, vp_error *error) {
    out->bytes = 0;
    while ((int64_t)out->bytes < bytes) {
        char piece[65536];
        int64_t left = bytes - (int64_t)out->bytes;
        ssize_t n = source_read(s, offset + (int64_t)out->bytes, piece, left < (int64_t)sizeof piece ? (size_t)left : sizeof piece);
        if (n <= 0) return vp_fail(error, VP_ERR_READ, offset + (int64_t)out->bytes, s->path, "the file changed while it was read");
        text_add(out, piece, (size_t)n);
    }
    return VP_OK;
}

/* ---- one JSON object of any size, value by value: a window moves over the source */
enum { WINDOW_BYTES = 1 << 18, VALUE_BYTES_MAX = 64 << 20 };
typedef struct json_stream {
    const source *s;
    char *data; size_t begin, end, capacity; /* unread bytes are data[begin, end) */
    int64_t base;                            /* place of data[0] in the source */
    int ended;
    parsed value;                            /* the latest one */
} json_stream;

static int64_t stream_place(const json_stream *j) { return j->base + (int64_t)j->begin; }
static vp_result stream_fail(const json_stream *j, const char *text, vp_error *error) {
    return vp_fail(error, VP_ERR_FORMAT, stream_place(j), j->s->path, text);
}
/* More bytes behind those that are there: 0 at the end, or when a read failed. */
static int stream_more(json_stream *j) {
    ssize_t n;
    if (j->ended) return 0;
    if (j->begin) memmove(j->data, j->data + j->begin, j->end - j->begin);
    j->base += (int64_t)j->begin;
    j->end -= j->begin;
    j->begin = 0;
    if (j->capacity - j->end < WINDOW_BYTES) {
        j->capacity = j->end * 2 + WINDOW_BYTES;
        j->data = (char *)resize(j->data, j->capacity, 1);
    }
    n = source_read(j->s, j->base + (int64_t)j->end, j->data + j->end, WINDOW_BYTES);
    if (n <= 0) j->ended = 1;
    else j->end += (size_t)n;
    return n > 0;
}
/* The next character behind white space, which stays; 0 at the end. */
static char stream_peek(json_stream *j) {
    for (;; j->begin++) {
        if (j->begin == j->end && !stream_more(j)) return 0;
        if (!strchr(" \t\r\n", j->data[j->begin]) || !j->data[j->begin]) return j->data[j->begin];
    }
}
/* Takes one character if it is the next. */
static int stream_take(json_stream *j, char c) {
    if (stream_peek(j) != c || j->begin == j->end) return 0;
    j->begin++;
    return 1;
}
/* Length of the value that begins here; 0: it does not end, or is too long. The strict reader judges it afterwards. */
static size_t stream_extent(json_stream *j) {
    size_t at = 0;
    int depth = 0, quoted = 0, escaped = 0;
    for (;; at++) {
        char c;
        if (at == VALUE_BYTES_MAX) return 0;
        if (j->begin + at == j->end && !stream_more(j)) return depth || quoted ? 0 : at;
        c = j->data[j->begin + at];
        if (quoted) {
            if (escaped) escaped = 0;
            else if (c == '\\') escaped = 1;
            else if (c == '"') {
                quoted = 0;
                if (!depth) return at + 1;
            }
        } else if (c == '"' && (depth || !at)) quoted = 1;
        else if (c == '{' || c == '[') depth++;
        else if (c == '}' || c == ']') {
            if (!depth) return at;
            if (!--depth) return at + 1;
        } else if (!depth && (c == ',' || c == ':' || c == '"' || c == ' ' || c == '\t' || c == '\r' || c == '\n')) return at;
    }
}
/* The next value -> j->value, whose text is good until the next call; *place is where it stands. */
static vp_result stream_value(json_stream *j, int64_t *place, size_t *bytes, vp_error *error) {
    vp_error inner = {VP_OK, -1, "", ""};
    vp_result r;
    stream_peek(j);
    *bytes = stream_extent(j); /* can move the window, not its place in the file */
    *place = stream_place(j);
    if (!*bytes && j->end - j->begin >= VALUE_BYTES_MAX) return stream_fail(j, "a value is longer than 64 MiB", error);
    if (!*bytes) return stream_fail(j, "the file ends inside a value, or a value is missing", error);
    r = parse_json(&j->value, j->data + j->begin, *bytes, &inner);
    if (r != VP_OK) return vp_fail(error, r, *place + (inner.offset < 0 ? 0 : inner.offset), j->s->path, inner.text);
    j->begin += *bytes;
    return VP_OK;
}

/* What is told of each element of the array and of each other member (key NULL, key); a failure ends the walk with it. */
typedef struct stream_visitor {
    const char *array; /* name of the array whose elements are visited */
    vp_result (*element)(void *user, const vp_json *value, int64_t place, size_t bytes, vp_error *error);
    vp_result (*member)(void *user, const char *key, const vp_json *value); /* may be NULL */
    void *user;
    int found;
} stream_visitor;

static vp_result stream_array(json_stream *j, stream_visitor *v, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    vp_result r = VP_OK;
    v->found = 1;
    if (!stream_take(j, '[')) return stream_fail(j, "an array must stand here", error);
    if (stream_take(j, ']')) return VP_OK;
    do {
        r = stream_value(j, &place, &bytes, error);
        if (r == VP_OK) r = v->element(v->user, &j->value.json, place, bytes, error);
    } while (r == VP_OK && stream_take(j, ','));
    if (r != VP_OK) return r;
    return stream_take(j, ']') ? VP_OK : stream_fail(j, "a comma or the end of the array is missing", error);
}
static vp_result stream_object(json_stream *j, stream_visitor *v, vp_error *error) {
    int64_t place = 0;
    size_t bytes = 0;
    vp_result r = VP_OK;
    if (!stream_take(j, '{')) return stream_fail(j, "want one JSON object", error);
    if (!stream_take(j, '}')) {
        do {
            char *key = NULL;
            r = stream_value(j, &place, &bytes, error);
            if (r == VP_OK && (key = node_text(&j->value.json, 0)) == NULL) r = stream_fail(j, "want a key", error);
            if (r == VP_OK && !stream_take(j, ':')) r = stream_fail(j, "a colon is missing", error);
            if (r == VP_OK && !strcmp(key, v->array)) r = stream_array(j, v, error);
            else if (r == VP_OK && (r = stream_value(j, &place, &bytes, error)) == VP_OK && v->member) r = v->member(v->user, key, &j->value.json);
            free(key);
        } while (r == VP_OK && stream_take(j, ','));
        if (r != VP_OK) return r;
        if (!stream_take(j, '}')) return stream_fail(j, "a comma or the end of the object is missing", error);
    }
    return stream_peek(j) || j->begin < j->end ? stream_fail(j, "text stands behind the object", error) : VP_OK;
}
/* Goes through {..., ARRAY: [...], ...}; memory: the longest single value, twice, and its nodes. */
static vp_result stream_walk(const source *s, stream_visitor *v, vp_error *error) {
    json_stream j;
    vp_result r;
    memset(&j, 0, sizeof j);
    j.s = s;
    r = stream_object(&j, v, error);
    free(j.data);
    free(j.value.nodes);
    return r;
}

/* ---- a data set in memory: of each sample what a plan needs and where the rest stands, whatever the records hold */
enum { REASONS_MAX = 255 };
typedef enum data_kind { DATA_LINES, DATA_VQA, DATA_FOLDER } data_kind;
typedef struct entry {
    int64_t id, start, note_start;          /* places of the record and of VQA v2's annotation, -1: it has none */
    uint64_t hash;                          /* of these bytes: what is measured is what was planned */
    uint32_t bytes, note_bytes;
    int32_t width_px, height_px;            /* 0: there is no image that can be used */
    int32_t text_count;                     /* tokens of the prompt */
    unsigned char has_image, no_bos, reason; /* reason: why the image cannot be used, from 1 in dataset.reasons */
} entry;
typedef struct dataset {
    const options *o;
    const char *path;
    char *task;
    data_kind kind;
    source s, notes; char *notes_path;      /* open as long as the data set: samples are read when their turn comes */
    char **names; size_t name_count;        /* DATA_FOLDER: of the images */
    char *subtype;                          /* DATA_VQA: "val2014" */
    const vp_prompt_dataset *defaults;      /* prompts and max_new_tokens; NULL: none of the nine */
    int32_t new_tokens;
    vp_score_metric metric;
    entry *samples; size_t count;           /* ascending by id */
    char *reasons[REASONS_MAX]; int32_t reason_count;
    uint64_t hash;                          /* of all records, prompts and image sizes */
} dataset;
static void dataset_free(dataset *d) {
    source_close(&d->s);
    source_close(&d->notes);
    texts_free(d->names, d->name_count);
    for (int32_t i = 0; i < d->reason_count; i++) free(d->reasons[i]);
    free(d->notes_path);
    free(d->subtype);
    free(d->samples);
    free(d->task);
}

/* ---- records: where they stand, and which stratum they belong to */
typedef struct place { int64_t start; uint32_t bytes, number; } place;
typedef struct question_at { int64_t id; size_t index; } question_at; /* index: of a place, later of a sample */
typedef struct reader { parsed scratch, note; text_buffer text, note_text; } reader;
/* what is there while a data set is loaded */
typedef struct loader {
    const model *m;
    dataset *d;
    place *places; size_t population, capacity;
    const char *field;         /* --stratify_by */
    uint64_t *strata;          /* with it, by place */
    size_t with_field;         /* records that have it */
    int64_t *question_ids;     /* DATA_VQA, by place */
    question_at *questions; size_t question_count; /* sorted by id */
    reader r;
} loader;
static void reader_free(reader *r) {
    free(r->scratch.nodes);
    free(r->note.nodes);
    free(r->text.data);
    free(r->note_text.data);
}

static vp_result add_place(loader *l, int64_t start, int64_t bytes, int64_t number, vp_error *error) {
    place *p;
    if (bytes > INT32_MAX || number > UINT32_MAX || l->population == UINT32_MAX)
        return vp_fail(error, VP_ERR_UNSUPPORTED, start, l->d->path, "a record over 2 GiB, or more than 4294967295 records");
    if (l->population == l->capacity) {
        l->capacity = l->capacity * 2 + 1024;
        l->places = (place *)resize(l->places, l->capacity, sizeof *l->places);
        if (l->field) l->strata = (uint64_t *)resize(l->strata, l->capacity, sizeof *l->strata);
        if (l->d->kind == DATA_VQA) l->question_ids = (int64_t *)resize(l->question_ids, l->capacity, sizeof *l->question_ids);
    }
    p = &l->places[l->population];
    p->start = start;
    p->bytes = (uint32_t)bytes;
    p->number = (uint32_t)number;
    if (l->field) l->strata[l->population] = 0;
    l->population++;
    return VP_OK;
}
/* a value's stratum: equal texts are equal values; records without the field are a stratum of their own */
static void read_stratum(loader *l, const vp_json *j, size_t index) {
    uint32_t node = l->field ? vp_json_get(j, 0, l->field) : VP_JSON_NONE;
    if (node == VP_JSON_NONE || l->strata[index]) return;
    l->with_field++;
    l->strata[index] = hash_bytes(HASH_START + j->nodes[node].type, j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes) | 1;
}

static vp_result find_lines(loader *l, vp_error *error) {
    const source *s = &l->d->s;
    char *piece = (char *)resize(NULL, WINDOW_BYTES, 1);
    int64_t start = 0, offset = 0, number = 0;
    int blank = 1;
    ssize_t n = 0;
    vp_result r = VP_OK;
    while (r == VP_OK && (n = source_read(s, offset, piece, WINDOW_BYTES)) >= 0) {
        for (ssize_t i = 0; r == VP_OK && (i < n || (!n && !i)); i++) {
            if (n && piece[i] != '\n') {
                blank &= piece[i] == ' ' || piece[i] == '\t' || piece[i] == '\r';
                continue;
            }
            if (!blank) r = add_place(l, start, offset + i - start, number, error);
            start = offset + i + 1;
            blank = 1;
            number++;
        }
        if (!n) break;
        offset += n;
    }
    free(piece);
    if (n < 0) return vp_fail(error, VP_ERR_READ, offset, s->path, strerror(errno));
    for (size_t i = 0; r == VP_OK && l->field && i < l->population; i++) {
        vp_error inner = {VP_OK, -1, "", ""};
        r = source_text(s, l->places[i].start, l->places[i].bytes, &l->r.text, error);
        if (r == VP_OK) r = parse_json(&l->r.scratch, l->r.text.data, l->r.text.bytes, &inner);
        if (r != VP_OK && inner.code) return vp_fail(error, r, l->places[i].start + (inner.offset < 0 ? 0 : inner.offset), s->path, inner.text);
        if (r == VP_OK) read_stratum(l, &l->r.scratch.json, i);
    }
    return r;
}

/* VQA v2 has "questions": [{...}]; a line of tally_qa has "questions": ["..."] */
static vp_result see_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    (void)at;
    (void)bytes;
    *(int *)user = node_is(value, 0, VP_JSON_OBJECT);
    return vp_fail(error, VP_ERR_INTERRUPTED, -1, "", "seen");
}
static int is_vqa(const source *s) {
    int seen = 0;
    stream_visitor v = {"questions", see_question, NULL, &seen, 0};
    stream_walk(s, &v, NULL);
    return seen;
}
static vp_result take_question(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0, image = 0;
    vp_result r;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), &id) != VP_OK
        || vp_json_to_int(value, vp_json_get(value, 0, "image_id"), &image) != VP_OK || image < 0
        || !node_is(value, vp_json_get(value, 0, "question"), VP_JSON_STRING))
        return vp_fail(error, VP_ERR_FORMAT, at, l->d->path, "a question needs \"question\", a whole \"question_id\" and a whole \"image_id\"");
    if ((r = add_place(l, at, (int64_t)bytes, (int64_t)l->population, error)) != VP_OK) return r;
    l->question_ids[l->population - 1] = id;
    read_stratum(l, value, l->population - 1);
    return VP_OK;
}
static vp_result take_member(void *user, const char *key, const vp_json *value) {
    dataset *d = ((loader *)user)->d;
    if (strcmp(key, "data_subtype")) return VP_OK;
    free(d->subtype);
    d->subtype = node_text(value, 0);
    return VP_OK;
}
/* "val2014" from the file, else from its name; test-dev's images are test's. It becomes part of file names: letters and digits only. */
static vp_result check_subtype(dataset *d, vp_error *error) {
    const char *at = strstr(d->path, "mscoco_"), *end = at ? strstr(at, "_questions") : NULL;
    if (!d->subtype && end) d->subtype = copy_text(at + 7, (size_t)(end - at - 7));
    if (d->subtype && !strcmp(d->subtype, "test-dev2015")) memcpy(d->subtype, "test2015", 9);
    for (at = d->subtype; at && isalnum((unsigned char)*at); at++) { }
    if (at && at > d->subtype && !*at) return VP_OK;
    return vp_fail(error, VP_ERR_FORMAT, -1, d->path, "\"data_subtype\" must be a word like val2014: images are named after it");
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int is_image_name(const char *name) {
    static const char *const ends[] = {"jpg", "jpeg", "png", "bmp", "gif", "ppm", "pgm", "tga", "psd", "hdr"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '.' || !dot) return 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t k = 0;
        while (dot[k + 1] && tolower((unsigned char)dot[k + 1]) == ends[i][k]) k++;
        if (!dot[k + 1] && !ends[i][k]) return 1;
    }
    return 0;
}
static vp_result find_images(loader *l, vp_error *error) {
    dataset *d = l->d;
    DIR *folder = opendir(d->path);
    size_t capacity = 0;
    vp_result r = VP_OK;
    if (!folder) return vp_fail(error, VP_ERR_READ, -1, d->path, strerror(errno));
    for (struct dirent *e; r == VP_OK && (e = readdir(folder)) != NULL;) {
        char *path = join_path(d->path, e->d_name);
        if (is_image_name(e->d_name) && !is_folder(path) && (r = add_place(l, 0, 0, (int64_t)d->name_count, error)) == VP_OK) {
            if (d->name_count == capacity) d->names = (char **)resize(d->names, capacity = capacity * 2 + 64, sizeof *d->names);
            d->names[d->name_count++] = copy_text(e->d_name, strlen(e->d_name));
        }
        free(path);
    }
    closedir(folder);
    if (r == VP_OK && !d->name_count) return vp_fail(error, VP_ERR_NOT_FOUND, -1, d->path, "there is no image in the folder");
    if (d->name_count) qsort(d->names, d->name_count, sizeof *d->names, compare_names);
    return r;
}

/* ---- annotations of VQA v2 */
/* v2_OpenEnded_mscoco_val2014_questions.json -> v2_mscoco_val2014_annotations.json; NULL: the name is no official one, or nothing is there */
static char *find_annotations(const char *path) {
    static const char word[] = "OpenEnded_", tail[] = "_questions.json";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *open_ended = strstr(name, word), *end = strstr(name, tail);
    text_buffer t = {NULL, 0, 0};
    if (!open_ended || !end || end < open_ended + strlen(word) || end[strlen(tail)]) return NULL;
    text_add(&t, path, (size_t)(open_ended - path));
    text_add(&t, open_ended + strlen(word), (size_t)(end - open_ended) - strlen(word));
    text_add_string(&t, "_annotations.json");
    if (access(t.data, F_OK) == 0) return t.data;
    free(t.data);
    return NULL;
}
static int compare_questions(const void *a, const void *b) {
    const question_at *x = (const question_at *)a, *y = (const question_at *)b;
    return (x->id > y->id) - (x->id < y->id);
}
/* The first of the questions that an annotation belongs to, or the end; an id can stand there more than once. */
static vp_result find_question(const loader *l, const vp_json *value, int64_t at, size_t *first, int64_t *id, vp_error *error) {
    size_t low = 0, high = l->question_count;
    if (vp_json_to_int(value, vp_json_get(value, 0, "question_id"), id) != VP_OK)
        return vp_fail(error, VP_ERR_FORMAT, at, "", "an annotation needs a whole \"question_id\"");
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->questions[middle].id < *id) low = middle + 1; else high = middle;
    }
    *first = low;
    return VP_OK;
}
static vp_result take_stratum(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0;
    size_t i = 0;
    vp_result r = find_question(l, value, at, &i, &id, error);
    (void)bytes;
    for (; r == VP_OK && i < l->question_count && l->questions[i].id == id; i++) read_stratum(l, value, l->questions[i].index);
    return r;
}
static vp_result take_annotation(void *user, const vp_json *value, int64_t at, size_t bytes, vp_error *error) {
    loader *l = (loader *)user;
    int64_t id = 0;
    size_t i = 0;
    vp_result r = find_question(l, value, at, &i, &id, error);
    for (; r == VP_OK && i < l->question_count && l->questions[i].id == id; i++) { /* of two annotations the last counts */
        l->d->samples[l->questions[i].index].note_start = at;
        l->d->samples[l->questions[i].index].note_bytes = (uint32_t)bytes; /* at most VALUE_BYTES_MAX */
    }
    return r;
}
/* Goes through the annotations, if there are any, with `element`; the file is opened by the first call. */
static vp_result walk_annotations(loader *l, vp_result (*element)(void *, const vp_json *, int64_t, size_t, vp_error *), vp_error *error) {
    dataset *d = l->d;
    const char *named = text_of(d->o, "annotations");
    stream_visitor v = {"annotations", element, NULL, l, 0};
    vp_result r;
    if (!d->notes_path) {
        d->notes_path = named ? copy_text(named, strlen(named)) : find_annotations(d->path);
        if (!d->notes_path) return VP_OK;
        if ((r = source_open(&d->notes, d->notes_path, error)) != VP_OK) return r;
    }
    r = stream_walk(&d->notes, &v, error);
    return r == VP_OK && !v.found ? vp_fail(error, VP_ERR_FORMAT, -1, d->notes_path, "has no \"annotations\"") : r;
}
/* The questions by id: of the places that the samples were drawn as, or (chosen NULL) of all places. */
static void sort_questions(loader *l, const int64_t *chosen, size_t count) {
    l->questions = (question_at *)resize(l->questions, count, sizeof *l->questions);
    l->question_count = count;
    for (size_t i = 0; i < count; i++) {
        l->questions[i].id = l->question_ids[chosen ? (size_t)chosen[i] : i];
        l->questions[i].index = i;
    }
    if (count) qsort(l->questions, count, sizeof *l->questions, compare_questions);
}
static vp_result find_strata(loader *l, vp_error *error) {
    if (l->with_field) return VP_OK; /* the questions have the field */
    sort_questions(l, NULL, l->population);
    return walk_annotations(l, take_stratum, error);
}
static vp_result find_notes(loader *l, const int64_t *chosen, vp_error *error) {
    dataset *d = l->d;
    size_t found = 0;
    vp_result r;
    sort_questions(l, chosen, d->count);
    r = walk_annotations(l, take_annotation, error);
    for (size_t i = 0; i < d->count; i++) found += d->samples[i].note_start >= 0;
    if (r == VP_OK && d->notes_path && !found)
        r = vp_fail(error, VP_ERR_MISMATCH, -1, d->notes_path, "holds no annotation of these questions: it belongs to other ones");
    return r;
}

/* ---- one record -> sample */
static int bad_record(const char *path, int64_t line, const char *text) {
    return complain(EXIT_INPUT, "%s: line %lld: %s", path, (long long)line + 1, text);
}

/* answers: an array of strings, or one string; scoring reads them from the record */
static int check_references(const char *path, const vp_json *j, const sample *a) {
    uint32_t node = vp_json_get(j, 0, "answers");
    int good = !has_value(j, 0, "answers") || node_is(j, node, VP_JSON_STRING) || node_is(j, node, VP_JSON_ARRAY);
    if (good && node_is(j, node, VP_JSON_ARRAY))
        for (uint32_t i = node + 1; i < j->nodes[node].end; i = j->nodes[i].end) good &= node_is(j, i, VP_JSON_STRING);
    return good ? 0 : bad_record(path, a->id, "\"answers\" must be an array of strings");
}

/* Prompt, ids and data set of a parsed record. */
static int read_prompt(const dataset *d, const model *m, const vp_json *j, sample *a) {
    prompt_fields f;
    vp_prompt_info info;
    vp_error error = {VP_OK, -1, "", ""};
    char reason[LINE_BYTES];
    int code = 0;
    vp_result r;
    memset(&f, 0, sizeof f);
    r = read_prompt_fields(j, &f, &error);
    if (r == VP_OK && !f.question_count && !d->defaults && !prompt_dataset_of(&f, NULL))
        r = vp_fail(&error, VP_ERR_FORMAT, -1, "", "\"question\" must be a string");
    if (r == VP_OK)
        r = build_prompt(&f, d->defaults, text_of(d->o, "style"), number_of(d->o, "seed"), a->id, &a->prompt, &info, &error);
    if (r == VP_OK) {
        a->dataset = prompt_dataset_of(&f, d->defaults);
        a->no_image = !info.has_image;
        a->no_bos = !info.bos_prepended;
        a->question = f.question_count ? copy_text(f.questions[f.question_count - 1], strlen(f.questions[f.question_count - 1])) : copy_text("", 0);
        a->style = info.style ? copy_text(info.style, strlen(info.style)) : NULL;
        code = tokenize_prompt(m, a);
    } else {
        error_line(reason, sizeof reason, r, &error);
        code = bad_record(d->path, a->id, reason);
    }
    prompt_fields_free(&f);
    return code;
}
/* Relative names start at --image_dir, else at the data set's own folder. */
static char *image_path_of(const dataset *d, const char *name) {
    const char *path = d->path, *slash = strrchr(path, '/');
    char *folder, *joined;
    if (name[0] == '/') return copy_text(name, strlen(name));
    if (text_of(d->o, "image_dir")) return join_path(text_of(d->o, "image_dir"), name);
    if (d->kind == DATA_FOLDER) return join_path(path, name);
    if (!slash) return copy_text(name, strlen(name));
    folder = copy_text(path, (size_t)(slash - path) + 1);
    joined = join_path(folder, name);
    free(folder);
    return joined;
}
/* COCO_val2014_000000262148.jpg, in the folder or in its val2014 */
static char *official_image(const dataset *d, int64_t image_id) {
    size_t capacity = strlen(d->subtype) + 48;
    char *name = (char *)resize(NULL, capacity, 1), *inside, *first, *second;
    snprintf(name, capacity, "COCO_%s_%012lld.jpg", d->subtype, (long long)image_id);
    first = image_path_of(d, name);
    inside = join_path(d->subtype, name);
    second = image_path_of(d, inside);
    free(name);
    free(inside);
    if (access(first, F_OK) && access(second, F_OK) == 0) {
        free(first);
        return second;
    }
    free(second);
    return first;
}

/* The sample's text, which stays for the metadata -> prompt, references, image. */
static int read_record(const dataset *d, const model *m, parsed *scratch, sample *a) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &scratch->json;
    char *name, reason[LINE_BYTES];
    int64_t image_id = 0;
    uint32_t node;
    int code;
    vp_result r = parse_json(scratch, a->record, strlen(a->record), &error);
    if (r != VP_OK || !node_is(j, 0, VP_JSON_OBJECT)) {
        snprintf(reason, sizeof reason, "%s (byte %lld)", r == VP_OK ? "want one JSON object" : error.text,
                 (long long)(error.offset < 0 ? 0 : error.offset));
        return bad_record(d->path, a->id, reason);
    }
    if ((code = read_prompt(d, m, j, a)) != 0 || (code = check_references(d->path, j, a)) != 0) return code;
    if (d->kind == DATA_VQA) {
        vp_json_to_int(j, vp_json_get(j, 0, "image_id"), &image_id); /* checked when it was found */
        a->image_path = official_image(d, image_id);
        return 0;
    }
    node = vp_json_get(j, 0, "image");
    if (a->no_image || node == VP_JSON_NONE || node_is(j, node, VP_JSON_NULL)) return 0;
    if ((name = node_text(j, node)) == NULL) return bad_record(d->path, a->id, "\"image\" must be a string");
    a->image_path = image_path_of(d, name);
    free(name);
    return 0;
}

/* "answers": of an annotation, the texts alone */
static vp_result put_answers(vp_json_writer *w, const vp_json *note, const char *key, vp_error *error) {
    uint32_t answers = vp_json_get(note, 0, "answers");
    if (!node_is(note, answers, VP_JSON_ARRAY)) return vp_fail(error, VP_ERR_FORMAT, -1, "annotations", "\"answers\" must be an array");
    vp_json_key(w, "answers");
    vp_json_begin_array(w);
    for (uint32_t i = answers + 1; i < note->nodes[answers].end; i = note->nodes[i].end) {
        uint32_t text = node_is(note, i, VP_JSON_OBJECT) ? vp_json_get(note, i, key) : VP_JSON_NONE;
        if (text == VP_JSON_NONE && node_is(note, i, VP_JSON_OBJECT)) text = vp_json_get(note, i, "answer");
        if (!node_is(note, text, VP_JSON_STRING)) return vp_fail(error, VP_ERR_FORMAT, -1, "annotations", "each of \"answers\" needs a text");
        json_node(w, note, text);
    }
    vp_json_end_array(w);
    return VP_OK;
}
/* Question and annotation as one record, as a line of JSONL would have it: "id" first, answers as strings. */
static vp_result merge_note(const dataset *d, reader *x, int has_note, text_buffer *out, vp_error *error) {
    const char *answer = d->defaults && !strcmp(d->defaults->name, "okvqa") ? "raw_answer" : "answer"; /* as the reference scores OK-VQA */
    const vp_json *j = &x->scratch.json, *n = &x->note.json;
    vp_json_writer w;
    vp_result r = parse_json(&x->scratch, x->text.data, x->text.bytes, error);
    if (r == VP_OK && has_note) r = parse_json(&x->note, x->note_text.data, x->note_text.bytes, error);
    if (r != VP_OK) return r;
    vp_json_writer_init_sink(&w, text_sink, out, 0);
    vp_json_begin_object(&w);
    vp_json_key(&w, "id");
    json_node(&w, j, vp_json_get(j, 0, "question_id"));
    for (uint32_t i = 1; i < j->node_count; i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        if (key && strcmp(key, "id") && (strcmp(key, "answers") || !has_note)) {
            vp_json_key(&w, key);
            json_node(&w, j, i + 1);
        }
        free(key);
    }
    if (has_note && (r = put_answers(&w, n, answer, error)) != VP_OK) return r;
    for (uint32_t i = 1; has_note && i < n->node_count; i = n->nodes[i + 1].end) {
        char *key = node_text(n, i);
        if (key && strcmp(key, "id") && strcmp(key, "answers") && vp_json_get(j, 0, key) == VP_JSON_NONE) {
            vp_json_key(&w, key);
            json_node(&w, n, i + 1);
        }
        free(key);
    }
    vp_json_end_object(&w);
    return vp_json_finish(&w);
}
/* an image of a folder and the one question */
static void make_folder_record(const dataset *d, const char *name, text_buffer *out) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, out, 0);
    vp_json_begin_object(&w);
    put_text(&w, "id", name);
    put_text(&w, "image", name);
    if (text_of(d->o, "prompt")) put_text(&w, "question", text_of(d->o, "prompt"));
    vp_json_end_object(&w);
    vp_json_finish(&w);
}
/* What stands at an entry's places -> x->text and x->note_text, and the hash of both. */
static vp_result fetch_texts(const dataset *d, reader *x, const entry *e, uint64_t *hash, vp_error *error) {
    vp_result r = VP_OK;
    x->text.bytes = x->note_text.bytes = 0;
    if (d->kind == DATA_FOLDER) make_folder_record(d, d->names[e->id], &x->text);
    else r = source_text(&d->s, e->start, e->bytes, &x->text, error);
    if (r == VP_OK && e->note_start >= 0) r = source_text(&d->notes, e->note_start, e->note_bytes, &x->note_text, error);
    *hash = hash_bytes(hash_bytes(HASH_START, x->text.data, x->text.bytes), x->note_text.data, x->note_text.bytes);
    return r;
}
/* The fetched texts -> the sample: record, prompt, ids, image path. 0 or an exit code, after a message. */
static int read_sample(const dataset *d, const model *m, reader *x, const entry *e, sample *a) {
    vp_error error = {VP_OK, -1, "", ""};
    text_buffer merged = {NULL, 0, 0};
    vp_result r = VP_OK;
    int code;
    a->id = e->id;
    if (d->kind == DATA_VQA) r = merge_note(d, x, e->note_start >= 0, &merged, &error);
    else if (memchr(x->text.data, 0, x->text.bytes))
        r = vp_fail(&error, VP_ERR_FORMAT, e->start + (int64_t)strlen(x->text.data), d->path, "a NUL byte stands in it");
    if (r == VP_OK) a->record = d->kind == DATA_VQA ? copy_text(merged.data, merged.bytes) : copy_text(x->text.data, x->text.bytes);
    code = r == VP_OK ? read_record(d, m, &x->scratch, a) : complain_result(exit_code_of(r), d->path, r, &error);
    free(merged.data);
    return code;
}

/* Loads a sample that was planned, for sample_free: its record, prompt, tokens and image path, and the size that its image had.
 * 0; or EXIT_INPUT after a message, *a empty: the file cannot be read, or says something else now. */
static int dataset_sample(const dataset *d, const model *m, size_t index, sample *a) {
    const entry *e = &d->samples[index];
    vp_error error = {VP_OK, -1, "", ""};
    reader x;
    uint64_t hash = 0;
    vp_result r;
    int code;
    memset(a, 0, sizeof *a);
    memset(&x, 0, sizeof x);
    r = fetch_texts(d, &x, e, &hash, &error);
    if (r != VP_OK) code = complain_result(exit_code_of(r), d->path, r, &error);
    else if (hash != e->hash)
        code = bad_record(d->path, e->id, "the record changed since the sweep was planned: put the file back, or sweep it into another folder");
    else code = read_sample(d, m, &x, e, a);
    reader_free(&x);
    a->width_px = e->width_px;
    a->height_px = e->height_px;
    if (!code && e->reason) {
        char reason[LINE_BYTES];
        snprintf(reason, sizeof reason, "%.320s: %.480s", a->image_path, d->reasons[e->reason - 1]);
        a->reason = copy_text(reason, strlen(reason));
    }
    if (!code) return 0;
    sample_free(a);
    memset(a, 0, sizeof *a);
    return code;
}
/* A planned sample's image; EXIT_INPUT and a reason where it vanished, broke or has another size now. */
static int sample_image(const sample *a, vp_image *image, char *reason, size_t capacity) {
    int code = load_image(a->image_path, image, reason, capacity);
    if (code || (image->width_px == a->width_px && image->height_px == a->height_px)) return code;
    snprintf(reason, capacity, "%.320s: the image has %d x %d pixels, and had %d x %d when the sweep was planned", a->image_path, image->width_px,
             image->height_px, a->width_px, a->height_px);
    vp_image_free(image);
    return EXIT_INPUT;
}

/* The number of a reason, equal texts once; the last place stands for all that find no room. */
static int32_t add_reason(dataset *d, const char *text) {
    int32_t i = 0;
    while (i < d->reason_count && strcmp(d->reasons[i], text)) i++;
    if (i < d->reason_count) return i + 1;
    if (i == REASONS_MAX) return REASONS_MAX;
    if (i == REASONS_MAX - 1) text = "the image cannot be used (the list of reasons is full: look at the file)";
    d->reasons[d->reason_count++] = copy_text(text, strlen(text));
    return d->reason_count;
}
/* The upright size from the file's header; a file that cannot be used gives its sample a reason, and does not end the sweep. */
static void read_image_size(dataset *d, const char *path, entry *e) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, reason[LINE_BYTES];
    size_t bytes = 0;
    vp_result r = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &e->width_px, &e->height_px, &error);
    free(file);
    if (r == VP_OK) return;
    error_line(reason, sizeof reason, r, &error);
    e->reason = (unsigned char)add_reason(d, !strcmp(error.where, path) && error.text[0] ? error.text : reason);
}

/* ---- a whole data set */
static vp_result find_records(loader *l, vp_error *error) {
    stream_visitor v = {"questions", take_question, take_member, l, 0};
    dataset *d = l->d;
    vp_result r;
    if (is_folder(d->path)) {
        d->kind = DATA_FOLDER;
        return find_images(l, error);
    }
    if ((r = source_open(&d->s, d->path, error)) != VP_OK) return r;
    d->kind = is_vqa(&d->s) ? DATA_VQA : DATA_LINES;
    if (d->kind == DATA_LINES) return find_lines(l, error);
    if (!d->defaults) d->defaults = vp_prompt_dataset_find("coco_2014_vqa");
    r = stream_walk(&d->s, &v, error);
    if (r == VP_OK) r = check_subtype(d, error);
    return r == VP_OK && l->field ? find_strata(l, error) : r;
}
/* --prompt, --annotations, --image_dir go with some kinds of data only: a word that has no effect is a mistake. */
static int check_data_options(const loader *l) {
    const dataset *d = l->d;
    const options *o = d->o;
    int caption = d->defaults && d->defaults->kind == VP_PROMPT_CAPTION;
    if (d->kind == DATA_FOLDER && !given(o, "prompt") && !caption)
        return complain(EXIT_USAGE, "--data %s is a folder of images: what is asked of each? -p TEXT", d->path);
    if (d->kind != DATA_FOLDER && given(o, "prompt"))
        return complain(EXIT_USAGE, "-p goes with a folder of images; %s has its own questions", d->path);
    if (d->kind != DATA_VQA && given(o, "annotations"))
        return complain(EXIT_USAGE, "--annotations goes with VQA v2's question file; %s is none", d->path);
    if (d->kind == DATA_FOLDER && given(o, "image_dir"))
        return complain(EXIT_USAGE, "--image_dir goes with files; --data %s is a folder", d->path);
    if (d->kind == DATA_FOLDER && l->field) return complain(EXIT_USAGE, "--stratify_by: images of a folder have no field \"%s\"", l->field);
    if (l->population && l->field && !l->with_field)
        return complain(EXIT_USAGE, "--stratify_by: no record of %s has \"%s\"", d->path, l->field);
    return 0;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
/* Draws the samples: *chosen int64 [d->count], ascending, malloc'ed. Strata are numbered by their hashes, which no order of records moves. */
static int choose_records(loader *l, int64_t **chosen) {
    const options *o = l->d->o;
    uint32_t seed = (uint32_t)number_of(o, "seed"), *stratum, strata = 0;
    size_t count = (size_t)number_of(o, "num_samples");
    uint64_t *values;
    vp_result r;
    if (!l->field || l->population > INT32_MAX) {
        *chosen = (int64_t *)resize(NULL, l->population, sizeof **chosen);
        vp_sampler_dataset(seed, l->population, count, *chosen, &l->d->count);
        return 0;
    }
    values = (uint64_t *)resize(NULL, l->population, sizeof *values);
    stratum = (uint32_t *)resize(NULL, l->population, sizeof *stratum);
    memcpy(values, l->strata, l->population * sizeof *values);
    qsort(values, l->population, sizeof *values, compare_numbers);
    for (size_t i = 0; i < l->population; i++) if (!i || values[i] != values[strata - 1]) values[strata++] = values[i];
    for (size_t i = 0; i < l->population; i++) {
        const uint64_t *found = (const uint64_t *)bsearch(&l->strata[i], values, strata, sizeof *values, compare_numbers);
        stratum[i] = (uint32_t)(found - values);
    }
    *chosen = (int64_t *)resize(NULL, l->population + 2 * (size_t)strata, sizeof **chosen);
    r = vp_sampler_stratified(seed, stratum, l->population, strata, count, *chosen, &l->d->count);
    free(values);
    free(stratum);
    return r == VP_OK ? 0 : complain(EXIT_USAGE, "--stratify_by: %s", vp_result_text(r));
}

/* Places of the drawn records; those of all others are forgotten. */
static int keep_places(loader *l, const int64_t *chosen) {
    dataset *d = l->d;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    d->samples = (entry *)zeroed(d->count, sizeof *d->samples);
    for (size_t i = 0; i < d->count; i++) {
        const place *p = &l->places[chosen[i]];
        d->samples[i].id = p->number;
        d->samples[i].start = p->start;
        d->samples[i].bytes = p->bytes;
        d->samples[i].note_start = -1;
    }
    if (d->kind == DATA_VQA) r = find_notes(l, chosen, &error);
    free(l->places);
    l->places = NULL;
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), d->path, r, &error);
}
/* Every sample is read once, so that what is wrong with it is told before anything is measured; what a plan needs stays. */
static int check_samples(loader *l) {
    dataset *d = l->d;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_prompt_dataset *same = NULL;
    sample a, before; /* questions about an image stand together: its size is read once */
    int code = 0;
    d->hash = HASH_START;
    memset(&before, 0, sizeof before);
    for (size_t i = 0; i < d->count && !code; i++) {
        entry *e = &d->samples[i];
        vp_result r = fetch_texts(d, &l->r, e, &e->hash, &error);
        memset(&a, 0, sizeof a);
        code = r == VP_OK ? read_sample(d, l->m, &l->r, e, &a) : complain_result(exit_code_of(r), d->path, r, &error);
        if (!code && interrupted) code = complain(EXIT_INTERRUPTED, "interrupted while %s was read; nothing was measured or written", d->path);
        if (!code) {
            same = !i || same == a.dataset ? a.dataset : NULL;
            e->text_count = a.text_count;
            e->no_bos = a.no_bos != 0;
            e->has_image = a.image_path != NULL;
            if (a.image_path && before.image_path && !strcmp(before.image_path, a.image_path)) {
                e->width_px = e[-1].width_px;
                e->height_px = e[-1].height_px;
                e->reason = e[-1].reason;
            } else if (a.image_path) read_image_size(d, a.image_path, e);
            d->hash = hash_text(hash_text(hash_text(d->hash, a.record), a.prompt), a.image_path);
            d->hash = hash_number(hash_number(hash_number(d->hash, a.id), e->width_px), e->height_px);
            show_progress("%s: %zu of %zu samples", d->path, i + 1, d->count);
        }
        sample_free(&before);
        before = a;
    }
    sample_free(&before);
    close_progress();
    if (!d->defaults) d->defaults = same; /* defaults that the records agree on count for a file whose name says nothing */
    return code;
}

/* The data set's name for its result files: --dataset_name, or the last part of the path without its ending. */
static char *task_name(const options *o, const char *path) {
    const char *name = text_of(o, "dataset_name");
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    if (!name) {
        const char *dot, *start = path + bytes;
        while (start > path && start[-1] != '/') start--;
        dot = is_folder(path) ? NULL : strrchr(start, '.');
        return copy_text(start, dot && dot > start ? (size_t)(dot - start) : (size_t)(path + bytes - start));
    }
    return copy_text(name, strlen(name));
}
/* --metric, else the metric of the data set's name, else of the name that its first record has. 0 or an exit code. */
static int settle_metric(const model *m, dataset *d) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    vp_score_metric unknown;
    char *name = NULL;
    sample a;
    int code = 0;
    if (text_of(d->o, "metric") && vp_score_metric_find(text_of(d->o, "metric"), &d->metric) == VP_OK) return 0; /* checked before */
    vp_score_metric_for_dataset("", &unknown);
    vp_score_metric_for_dataset(d->defaults ? d->defaults->name : d->task, &d->metric);
    if (d->metric != unknown || !d->count) return 0;
    if ((code = dataset_sample(d, m, 0, &a)) != 0) return code;
    if (parse_json(&p, a.record, strlen(a.record), NULL) == VP_OK && (name = node_text(&p.json, vp_json_get(&p.json, 0, "dataset"))) != NULL)
        vp_score_metric_for_dataset(name, &d->metric);
    sample_free(&a);
    free(name);
    free(p.nodes);
    return 0;
}

/* File or folder -> the sampled records, in file order. d->path is set; dataset_free, also after a failure. */
static int load_dataset(const options *o, const model *m, dataset *d) {
    vp_error error = {VP_OK, -1, "", ""};
    loader l;
    int64_t *chosen = NULL;
    vp_result r;
    int code;
    memset(&l, 0, sizeof l);
    l.m = m;
    l.d = d;
    l.field = text_of(o, "stratify_by");
    d->o = o;
    d->s.fd = d->notes.fd = -1;
    d->task = task_name(o, d->path);
    d->defaults = vp_prompt_dataset_find(d->task);
    for (char *c = d->task; *c; c++) if (*c == '_') *c = '-';
    r = find_records(&l, &error);
    code = r == VP_OK ? check_data_options(&l) : complain_result(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, d->path, r, &error);
    if (!code && !l.population) code = complain(EXIT_INPUT, "%s: there is no %s in it", d->path, d->kind == DATA_VQA ? "question" : "line");
    if (!code) code = choose_records(&l, &chosen);
    if (!code) code = keep_places(&l, chosen);
    free(chosen);
    free(l.places);
    free(l.strata);
    free(l.question_ids);
    free(l.questions);
    if (!code) code = check_samples(&l);
    reader_free(&l.r);
    d->new_tokens = given(o, "max_new_tokens") ? (int32_t)number_of(o, "max_new_tokens") : d->defaults ? d->defaults->max_new_tokens : 16;
    return code ? code : settle_metric(m, d);
}

/* ============================================================================================== plan >>plan */
/* one configuration: a data set and a setting of the knobs */
typedef struct shape { int32_t views, sequence, top_k, block_count; } shape;
typedef struct cell {
    const dataset *set;
    const vp_tier *tier; int32_t vision_tokens; /* one of them */
    int32_t top_k, block_count;
    int32_t *blocks;
    char *file_name;
    int32_t need_sequence, need_views; /* of its longest request */
    int32_t in_book;                   /* its number in the journal that was there, -1: none */
    shape *shapes; size_t shape_count; /* whose kernels were timed */
    char *dropped;                     /* why it does not fit into memory; NULL: it does */
} cell;

typedef struct plan {
    dataset *sets; size_t set_count;
    cell *cells; size_t cell_count; /* the cells of a data set stand together */
    int32_t run_count, new_tokens, max_sequence, max_views;
    int ignore_eos;
    uint64_t fingerprint; /* of model, data, seed and options; not of the grid, so that a grid can grow */
    size_t point_count, repeats; /* repeats: points that the strategy's rule names again, left out */
} plan;

static vp_tile_options cell_tiles(const cell *c) {
    vp_tile_options t = vp_tile_options_default();
    t.fit = VP_FIT_FILL;
    t.rule = c->tier ? VP_TILE_TIER : VP_TILE_TOKENS;
    t.tier = c->tier;
    t.vision_tokens = c->vision_tokens;
    return t;
}

/* Layout of a sample's image in a configuration; NULL for text only and where the image cannot be used (then reason says why). */
static const vp_layout *cell_layout(const model *m, const cell *c, const entry *e, vp_layout *layout, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_tile_options tiles = cell_tiles(c);
    vp_result r;
    snprintf(reason, capacity, "%s", e->reason ? c->set->reasons[e->reason - 1] : "");
    if (!e->has_image || e->reason) return NULL;
    r = vp_layout_compute(&m->config.geometry, &tiles, e->width_px, e->height_px, layout, &error);
    if (r == VP_OK) return layout;
    error_line(reason, capacity, r, &error);
    return NULL;
}

static int32_t entry_sequence(const entry *e, const vp_layout *l) { return !e->no_bos + (l ? l->image_tokens : 0) + e->text_count; }

static void cell_work(const plan *p, const cell *c, const sample *a, const vp_layout *layout, const vp_image *image, work *k) {
    memset(k, 0, sizeof *k);
    k->image = image;
    k->layout = layout;
    k->text_ids = a->text_ids;
    k->text_count = a->text_count;
    k->no_bos = a->no_bos;
    k->top_k = c->top_k;
    k->blocks = c->blocks;
    k->block_count = c->block_count;
    k->new_tokens = c->set->new_tokens;
    k->ignore_eos = p->ignore_eos;
}

/* File name, and the longest request of the configuration. A sequence that does not fit becomes a failed row later. */
static void plan_cell(const model *m, plan *p, cell *c) {
    char name[512], reason[LINE_BYTES];
    vp_layout layout;
    int64_t crops = 0, count = 0;
    for (size_t i = 0; i < c->set->count; i++) {
        const entry *e = &c->set->samples[i];
        const vp_layout *l = cell_layout(m, c, e, &layout, reason, sizeof reason);
        int64_t need = (int64_t)entry_sequence(e, l) + c->set->new_tokens - 1;
        if (l) { crops += l->crops; count++; }
        if (reason[0]) continue;
        if (need > m->config.max_positions) continue;
        if (need > c->need_sequence) c->need_sequence = (int32_t)need;
        if (l && l->views > c->need_views) c->need_views = l->views;
    }
    if (c->need_sequence > p->max_sequence) p->max_sequence = c->need_sequence;
    if (c->need_views > p->max_views) p->max_views = c->need_views;
    if (c->tier) /* the mean is cut to an integer, as the experiments do */
        snprintf(name, sizeof name, "%s_imgsizetier-%s_crops%d_topk%d_blocks%d.json", c->set->task, c->tier->name,
                 count ? (int)(crops / count) : 0, c->top_k, c->block_count);
    else snprintf(name, sizeof name, "%s_imgsizetokens%d_topk%d_blocks%d.json", c->set->task, c->vision_tokens, c->top_k, c->block_count);
    c->file_name = copy_text(name, strlen(name));
    c->in_book = -1;
    p->point_count += c->set->count;
}

static int check_lists(const options *o, const model *m) {
    const option_value *tiers = opt(o, "tier_list"), *tokens = opt(o, "vision_tokens_list"), *ks = opt(o, "top_k_list");
    int32_t least = 2 * vp_geometry_tokens_per_crop(&m->config.geometry);
    if (tiers->given && tokens->given) return complain(EXIT_USAGE, "--tier_list and --vision_tokens_list exclude each other");
    for (size_t i = 0; i < tiers->count; i++) if (!vp_tier_find(tiers->items[i]))
        return complain(EXIT_USAGE, "--tier_list: \"%s\" is none of: low medium high", tiers->items[i]);
    for (size_t i = 0; i < tokens->count; i++) if (tokens->numbers[i] < least)
        return complain(EXIT_USAGE, "--vision_tokens_list %s: the global view and one crop have %d tokens already", tokens->items[i], least);
    for (size_t i = 0; i < ks->count; i++) if (ks->numbers[i] > m->config.expert_count)
        return complain(EXIT_USAGE, "--top_k_list %s: the model has %d experts", ks->items[i], m->config.expert_count);
    return 0;
}

/* The points of the grid that the strategy visits, as places in the three lists: int32 [*count, 3], malloc'ed. */
static int grid_points(const options *o, const int32_t counts[3], int32_t **index, size_t *count, size_t *repeats) {
    const char *name = text_of(o, "sampling_strategy");
    uint32_t seed = (uint32_t)number_of(o, "seed");
    size_t points = vp_sampler_lhs_points(counts);
    vp_grid_strategy strategy = VP_GRID_FULL;
    vp_result r = vp_sampler_strategy_find(name, &strategy); /* the option table knows the names */
    if (r == VP_OK) r = vp_sampler_grid(strategy, counts, seed, points, NULL, 0, count, repeats);
    if (r != VP_OK && r != VP_ERR_CAPACITY) return complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(r));
    if (!*count) return complain(EXIT_USAGE, "--sampling_strategy %s draws no point of so small a grid; lengthen the lists or use full", name);
    *index = (int32_t *)resize(NULL, *count * 3, sizeof **index);
    r = vp_sampler_grid(strategy, counts, seed, points, *index, *count, count, repeats);
    return r == VP_OK ? 0 : complain(EXIT_USAGE, "--sampling_strategy %s: %s", name, vp_result_text(r));
}

static int plan_grid(const options *o, const model *m, plan *p) {
    const option_value *tiers = opt(o, "tier_list"), *tokens = opt(o, "vision_tokens_list");
    const option_value *ks = opt(o, "top_k_list"), *blocks = opt(o, "num_active_blocks_list");
    int32_t counts[3] = {0, ks->given ? (int32_t)ks->count : 1, blocks->given ? (int32_t)blocks->count : 1}, *index = NULL;
    size_t count = 0;
    int code = check_lists(o, m);
    while (vp_tier_at(counts[0])) counts[0]++;
    if (tokens->given || tiers->given) counts[0] = (int32_t)(tokens->given ? tokens->count : tiers->count);
    if (!code) code = grid_points(o, counts, &index, &count, &p->repeats);
    p->cells = (cell *)zeroed(p->set_count * count + 1, sizeof *p->cells);
    for (size_t i = 0; !code && i < p->set_count * count; i++) {
        const int32_t *at = index + i % count * 3;
        cell *c = &p->cells[p->cell_count++];
        c->set = &p->sets[i / count];
        if (tokens->given) c->vision_tokens = (int32_t)tokens->numbers[at[0]];
        else c->tier = tiers->given ? vp_tier_find(tiers->items[at[0]]) : vp_tier_at(at[0]);
        c->top_k = ks->given ? (int32_t)ks->numbers[at[1]] : m->config.top_k;
        c->block_count = blocks->given ? (int32_t)blocks->numbers[at[2]] : m->config.block_count;
        c->blocks = (int32_t *)resize(NULL, (size_t)m->config.block_count, sizeof *c->blocks);
        if ((code = choose_blocks(o, m, c->block_count, c->blocks)) == 0) plan_cell(m, p, c);
    }
    free(index);
    return code;
}

static int plan_fingerprint(const options *o, const model *m, plan *p) {
    static const char *const numbers[] = {"num_runs_per_sample", "seed", "threads", "max_runs", "bare_every"};
    static const char *const texts[] = {"weights", "device", "gemm", "timing", "stop_half_width", "time_box_s"};
    uint64_t h = hash_number(hash_text(HASH_START, m->name), (int64_t)m->identity);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) h = hash_number(h, number_of(o, numbers[i]));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) h = hash_text(h, text_of(o, texts[i]));
    h = hash_number(h, p->ignore_eos);
    if (text_of(o, "importance_scores_file")) {
        vp_error error = {VP_OK, -1, "", ""};
        char *text = NULL;
        size_t bytes = 0;
        vp_result r = vp_file_read(text_of(o, "importance_scores_file"), JSON_FILE_BYTES_MAX, &text, &bytes, &error);
        if (r != VP_OK) return complain_result(EXIT_INPUT, text_of(o, "importance_scores_file"), r, &error);
        h = hash_bytes(h, text, bytes);
        free(text);
    }
    for (size_t s = 0; s < p->set_count; s++) {
        h = hash_text(hash_text(h, p->sets[s].task), vp_score_metric_of(p->sets[s].metric)->name);
        h = hash_number(hash_number(h, p->sets[s].new_tokens), (int64_t)p->sets[s].hash);
    }
    p->fingerprint = h;
    return 0;
}

static int plan_make(const options *o, const model *m, plan *p) {
    const option_value *data = opt(o, "data");
    int code;
    p->run_count = (int32_t)number_of(o, "num_runs_per_sample");
    p->ignore_eos = given(o, "ignore_eos");
    p->max_views = 1;
    p->sets = (dataset *)zeroed(data->count, sizeof *p->sets);
    for (size_t i = 0; i < data->count; i++) {
        dataset *d = &p->sets[p->set_count++];
        d->path = data->items[i];
        if ((code = load_dataset(o, m, d)) != 0) return code;
        if (d->new_tokens > p->new_tokens) p->new_tokens = d->new_tokens;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(d->task, p->sets[k].task))
                return complain(EXIT_USAGE, "--data: %s and %s are both called %s; sweep them into two folders", p->sets[k].path, d->path, d->task);
    }
    code = plan_grid(o, m, p);
    return code ? code : plan_fingerprint(o, m, p);
}
static void plan_free(plan *p) {
    for (size_t s = 0; s < p->set_count; s++) dataset_free(&p->sets[s]);
    for (size_t i = 0; i < p->cell_count; i++) {
        free(p->cells[i].blocks);
        free(p->cells[i].file_name);
        free(p->cells[i].shapes);
        free(p->cells[i].dropped);
    }
    free(p->sets);
    free(p->cells);
}

/* ---- sweep --plan: what a sweep would measure, need and tell; the model itself is not run, nothing is written */
/* FLOPs and bytes of one pass by stage, from its shapes alone, as the engine counts them (tests/test_plan.c: within 1 and 3 %) */
typedef struct pass_cost { double flops[VP_STAGE_COUNT], bytes[VP_STAGE_COUNT]; } pass_cost;
typedef struct pass { int32_t views, sequence, top_k, block_count, new_tokens; } pass;
static void cost_add(pass_cost *c, int stage, double flops, double bytes) { c->flops[stage] += flops; c->bytes[stage] += bytes; }
/* a linear layer, done `times` times: each reads its weights again */
static void cost_linear(pass_cost *c, int stage, double times, double rows, double n, double k, double element, double result_bytes) {
    cost_add(c, stage, times * 2 * rows * n * k, times * (n * k * element + rows * k * element + rows * n * result_bytes));
}
static void cost_vision(const vp_model_config *m, const pass *p, double element, pass_cost *c) {
    double w = m->vit_width, tokens = m->vit_positions, blocks = m->vit_blocks_needed, views = p->views, rows = tokens, /* of one view */
           features = w * m->vit_layer_count, windows = vp_geometry_tokens_per_crop(&m->geometry), members = m->geometry.pool * m->geometry.pool,
           values = (double)m->geometry.patch_px * m->geometry.patch_px * 3, h = m->projector_dim;
    cost_add(c, VP_STAGE_VIT, views * 9 * rows * w, views * (rows * values * (4 + element) + 20 * rows * w + 8 * rows * features));
    cost_linear(c, VP_STAGE_VIT, views, tokens - 1, w, values, element, 4);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, 3 * w, w, element, element);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, w, w, element, 8);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, m->vit_mlp_dim, w, element, element);
    cost_linear(c, VP_STAGE_VIT, views * blocks, rows, w, m->vit_mlp_dim, element, 8);
    cost_add(c, VP_STAGE_VIT, views * blocks * (rows * rows * (4 * w + 5.0 * m->vit_head_count) + 22 * rows * w + 5 * rows * m->vit_mlp_dim),
             views * blocks * (4 * rows * w * element + 2 * rows * w * (4 + element)));
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, w, features, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows * members, 2 * w, features, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, w, w, element, element);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, 2 * h, w, element, 4);
    cost_linear(c, VP_STAGE_CONNECTOR, views, windows, m->d_model, h, element, 4);
    cost_add(c, VP_STAGE_CONNECTOR, views * windows * (members * (3 * features + 4 * w + 2 * w + 5.0 * m->vit_head_count) + features + 4 * h),
             views * windows * (members * features * (4 + element) + features * element + w * (4 + 8 * members + element) + h * (8 + element)));
}
/* `times` blocks over `rows` new tokens that look at `scores` keys in all and read `kept` rows of the cache */
static void cost_blocks(const vp_model_config *m, int stage, double times, double rows, double scores, double kept, int32_t top_k, double element,
                        pass_cost *c) {
    double d = m->d_model, h = m->expert_dim, experts = m->expert_count, pairs = rows * top_k,
           used = experts * (1 - pow(1 - top_k / experts, rows)); /* experts that some token chose, when each is as likely */
    cost_linear(c, stage, times, rows, 3 * d, d, element, 4);
    cost_linear(c, stage, times, rows, d, d, element, 8);
    cost_linear(c, stage, times, rows, experts, d, 4, 4);
    cost_add(c, stage, times * (scores * (4 * d + 5.0 * m->head_count) + 28 * rows * d + rows * experts * (4 + experts) + 2 * experts * pairs),
             times * (kept * 2 * d * element + rows * d * (20 + 5 * element + (element < 4 ? 8 : 0)) + 4 * rows * experts));
    cost_add(c, stage, times * pairs * (6 * h * d + 4 * h + 2 * d),
             times * (used * 3 * h * d * element + pairs * (2 * d * element + h * (16 + 2 * element) + 8 * d + 24) + rows * d * (8 + element)));
}
static void cost_of(const vp_model_config *m, const pass *p, int fp32, pass_cost *c) {
    double n = p->sequence, steps = p->new_tokens - 1, d = m->d_model, vocabulary = m->embedding_size, element = fp32 ? 4 : 2;
    memset(c, 0, sizeof *c);
    if (p->views) cost_vision(m, p, element, c);
    n = p->sequence;
    cost_add(c, VP_STAGE_EMBED, p->views * (double)vp_geometry_tokens_per_crop(&m->geometry) * d,
             n * d * (4 + element) + 12 * p->views * (double)vp_geometry_tokens_per_crop(&m->geometry) * d);
    cost_blocks(m, VP_STAGE_PREFILL, p->block_count, n, n * (n + 1) / 2, 2 * n, p->top_k, element, c);
    cost_linear(c, VP_STAGE_HEAD, 1, 1, vocabulary, d, element, 4);
    cost_add(c, VP_STAGE_SAMPLE, 2 * vocabulary, 4 * vocabulary);
    cost_blocks(m, VP_STAGE_DECODE, p->block_count * steps, 1, n + (steps + 1) / 2, n + (steps + 1) / 2, p->top_k, element, c);
    cost_linear(c, VP_STAGE_DECODE, steps, 1, vocabulary, d, element, 4);
    cost_add(c, VP_STAGE_DECODE, steps * 2 * vocabulary, steps * 4 * vocabulary);
}

/* ---- this machine's rates: a few passes of a model of the same widths and few blocks, random weights */
enum { CALIBRATION_TEXT = 32, CALIBRATION_TOKENS = 4, CALIBRATION_RUNS = 3 };
typedef struct rates {
    char reason[LINE_BYTES];   /* why there are none; "" */
    char device[160];
    double flops_ns[VP_STAGE_COUNT], bytes_ns[VP_STAGE_COUNT]; /* per ns of a stage */
    double view_ns;            /* preprocess and h2d of a view */
    int64_t memory_bytes;      /* that the engine of the whole model will ask for */
    double seconds;            /* that the calibration took */
} rates;
static int is_compute_stage(int stage) { return stage == VP_STAGE_VIT || stage == VP_STAGE_CONNECTOR || stage == VP_STAGE_PREFILL; }
static int64_t parameter_count(const vp_model_config *c) {
    vp_tensor_spec spec;
    int64_t sum = 0;
    for (int64_t i = 0; vp_model_tensor(c, i, &spec) == VP_OK; i++) sum += spec.shape[0] * (spec.dimensions > 1 ? spec.shape[1] : 1);
    return sum;
}
/* weights and KV cache; the rest of an engine's memory hardly depends on the number of blocks */
static int64_t held_bytes(const vp_model_config *c, int fp32, int32_t max_sequence) {
    return (fp32 ? 4 : 2) * (parameter_count(c) + 2 * (int64_t)c->d_model * c->block_count * max_sequence);
}
static vp_model_config calibration_config(const vp_model_config *whole) {
    vp_model_config c = *whole;
    if (parameter_count(whole) <= 64000000) return c;
    if (c.vit_block_count > VP_VIT_LAYERS_MAX) {
        c.vit_block_count = c.vit_blocks_needed = VP_VIT_LAYERS_MAX;
        for (int32_t i = 0; i < c.vit_layer_count; i++) c.vit_layers[i] = -1 - i;
    }
    c.block_count = 1;
    if (c.expert_count > 32 && c.top_k <= 32) c.expert_count = 32;
    if (c.embedding_size > 8192) c.embedding_size = c.vocab_size = 8192;
    return c;
}
static vp_result calibration_pass(vp_engine *engine, const vp_model_config *c, const vp_layout *layout, session *s, vp_stage_times *times,
                                  vp_error *error) {
    vp_request q;
    vp_reply reply;
    int32_t tokens[CALIBRATION_TOKENS], *blocks = (int32_t *)resize(NULL, (size_t)c->block_count, sizeof *blocks);
    int64_t step_ns[CALIBRATION_TOKENS], begin = vp_clock_ns();
    vp_result r = VP_OK;
    work k;
    for (int32_t i = 0; i < c->block_count; i++) blocks[i] = i;
    memset(&q, 0, sizeof q);
    memset(&reply, 0, sizeof reply);
    memset(&k, 0, sizeof k);
    k.layout = layout;
    k.text_count = CALIBRATION_TEXT;
    k.new_tokens = CALIBRATION_TOKENS;
    session_reserve(s, &k);
    if (layout) {
        size_t bytes = (size_t)layout->width_px * (size_t)layout->height_px * 3;
        uint8_t *rgb = (uint8_t *)resize(NULL, bytes, 1);
        memset(rgb, 100, bytes);
        begin = vp_clock_ns();
        r = vp_preprocess(&c->geometry, layout, rgb, (float *)s->pixels.data, (float *)s->masks.data, s->scratch.data, s->scratch.bytes);
        if (r == VP_OK) r = vp_tokens_index_map(&c->geometry, layout, 1, (int32_t *)s->index.data, s->index.bytes / sizeof(int32_t));
        free(rgb);
        q.pixels = (const float *)s->pixels.data;
        q.image_masks = (const float *)s->masks.data;
        q.image_input_idx = (const int32_t *)s->index.data;
        q.views = layout->views;
    }
    reply.times.wall_ns[VP_STAGE_PREPROCESS] = vp_clock_ns() - begin;
    memset(s->ids.data, 0, s->ids.bytes);
    for (int32_t i = 0; i < sequence_of(&k); i++) ((int32_t *)s->ids.data)[i] = i % 256;
    q.input_ids = (const int32_t *)s->ids.data;
    q.input_count = sequence_of(&k);
    q.top_k = c->top_k;
    q.active_blocks = blocks;
    q.active_block_count = c->block_count;
    q.max_new_tokens = CALIBRATION_TOKENS;
    q.ignore_eos = 1;
    reply.tokens = tokens;
    reply.step_ns = step_ns;
    begin = reply.times.wall_ns[VP_STAGE_PREPROCESS];
    if (r == VP_OK) r = vp_engine_run(engine, &q, &reply, error);
    vp_engine_settle(engine);
    reply.times.device_ns[VP_STAGE_PREPROCESS] = begin;
    *times = reply.times;
    free(blocks);
    return r;
}
/* Takes the fastest of some passes. Whatever fails is a reason for no estimate, not for no plan; 0 or EXIT_INTERRUPTED. */
static int calibrate(const options *o, const model *m, const plan *p, rates *x) {
    model small = *m;
    vp_engine_options e;
    vp_engine *engine = NULL;
    vp_error error = {VP_OK, -1, "", ""};
    vp_tile_options tiles = vp_tile_options_default();
    vp_layout layout;
    session s;
    int fp32 = !strcmp(text_of(o, "weights"), "fp32");
    int32_t views = 0, sequence = CALIBRATION_TEXT + CALIBRATION_TOKENS;
    int64_t start = vp_clock_ns();
    vp_result r = VP_OK;
    memset(&s, 0, sizeof s);
    small.config = calibration_config(&m->config);
    small.checkpoint = NULL;
    s.m = &small;
    tiles.rule = VP_TILE_CROPS;
    tiles.fit = VP_FIT_FILL;
    tiles.crops = 1;
    if (p->max_views > 1 && (r = vp_layout_compute(&m->config.geometry, &tiles, 640, 480, &layout, &error)) == VP_OK) {
        views = layout.views;
        sequence += layout.image_tokens;
    }
    if (sequence < p->max_sequence) sequence = p->max_sequence;
    e = engine_options_of(o, &small, sequence, views > p->max_views ? views : p->max_views);
    e.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
    e.gemm = text_of(o, "gemm");
    if (r == VP_OK) r = vp_engine_open(&e, &engine, &error);
    for (int i = 0; i < CALIBRATION_RUNS && r == VP_OK && !interrupted; i++) {
        vp_stage_times t;
        r = calibration_pass(engine, &small.config, views ? &layout : NULL, &s, &t, &error);
        for (int stage = 0; stage < VP_STAGE_COUNT && i && r == VP_OK; stage++) { /* the first warms up */
            double ns = (double)(t.device_ns[stage] > 0 ? t.device_ns[stage] : 1);
            x->flops_ns[stage] = fmax(x->flops_ns[stage], (double)t.flops[stage] / ns);
            x->bytes_ns[stage] = fmax(x->bytes_ns[stage], (double)t.bytes[stage] / ns);
        }
        if (views && r == VP_OK) x->view_ns = (double)(t.device_ns[VP_STAGE_PREPROCESS] + t.device_ns[VP_STAGE_H2D]) / views;
    }
    close_progress();
    if (engine) {
        x->memory_bytes = (int64_t)vp_engine_bytes(engine) - held_bytes(&small.config, fp32, sequence) + held_bytes(&m->config, fp32, sequence);
        snprintf(x->device, sizeof x->device, "%s", vp_engine_device(engine));
        vp_engine_close(engine);
    }
    s.engine = NULL;
    session_free(&s);
    if (r != VP_OK) error_line(x->reason, sizeof x->reason, r, &error);
    x->seconds = (double)(vp_clock_ns() - start) / 1e9;
    return interrupted ? EXIT_INTERRUPTED : 0;
}
/* A pass's time: the stages of many tokens by the slower of their arithmetic and of reading memory as decode does, the others by their bytes. */
static double pass_ns(const rates *x, const pass_cost *c, int32_t views) {
    double sum = views * x->view_ns;
    for (int i = VP_STAGE_VIT; i <= VP_STAGE_DECODE; i++) {
        double by_flops = is_compute_stage(i) ? c->flops[i] / x->flops_ns[i] : 0;
        double by_bytes = c->bytes[i] / x->bytes_ns[is_compute_stage(i) ? VP_STAGE_DECODE : i];
        if (c->flops[i] > 0 || c->bytes[i] > 0) sum += by_flops > by_bytes ? by_flops : by_bytes;
    }
    return sum;
}

/* ---- the forecast of a configuration */
typedef struct forecast {
    int64_t crops, vision_tokens, layouts, longest, failing; /* sums over samples; failing: samples that will be failed rows */
    double ns, squares; int64_t count; /* estimate of one run, over the samples that can run */
    double measured_ns; int64_t runs_measured, points_closed; /* from the journals in output_dir */
} forecast;
static void forecast_cell(const model *m, const cell *c, const rates *x, int fp32, forecast *f) {
    for (size_t i = 0; i < c->set->count; i++) {
        const entry *e = &c->set->samples[i];
        char reason[LINE_BYTES];
        vp_layout layout;
        const vp_layout *l = cell_layout(m, c, e, &layout, reason, sizeof reason);
        pass one = {l ? l->views : 0, entry_sequence(e, l), c->top_k, c->block_count, c->set->new_tokens};
        pass_cost spent;
        double ns;
        if (l) {
            f->layouts++;
            f->crops += l->crops;
            f->vision_tokens += l->feature_tokens;
        }
        if (reason[0] || (int64_t)one.sequence + one.new_tokens - 1 > m->config.max_positions) {
            f->failing++;
            continue;
        }
        if (one.sequence > f->longest) f->longest = one.sequence;
        f->count++;
        if (x->reason[0]) continue;
        cost_of(&m->config, &one, fp32, &spent);
        ns = pass_ns(x, &spent, one.views);
        f->ns += ns;
        f->squares += ns * ns;
    }
}

/* Runs that journals hold already, by configuration. A journal of another plan is named in `note`. */
static void read_measured(const plan *p, const char *path, forecast *f, char *note, size_t capacity) {
    FILE *file = fopen(path, "rb");
    parsed x = {{NULL, NULL, 0}, NULL, 0};
    char *line = NULL, wanted[32];
    size_t room = 0;
    ssize_t bytes;
    snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)p->fingerprint);
    for (int64_t number = 0; file && (bytes = getline(&line, &room, file)) > 0 && line[bytes - 1] == '\n'; number++) {
        const vp_json *j = &x.json;
        uint32_t name;
        double ns;
        if (parse_json(&x, line, (size_t)bytes - 1, NULL) != VP_OK || !node_is(j, 0, VP_JSON_OBJECT)) continue;
        if (!number && !vp_json_equals(j, vp_json_get(j, 0, "plan"), wanted)) {
            snprintf(note, capacity, "%.400s belongs to another plan: the sweep would refuse it", path);
            break;
        }
        name = vp_json_get(j, 0, "config");
        if (!node_is(j, name, VP_JSON_STRING)) continue;
        ns = node_number(j, vp_json_get(j, 0, "total_ns"));
        for (size_t i = 0; i < p->cell_count; i++) {
            if (!vp_json_equals(j, name, p->cells[i].file_name)) continue;
            f[i].points_closed += vp_json_get(j, 0, "done") != VP_JSON_NONE || vp_json_get(j, 0, "failed") != VP_JSON_NONE;
            if (!(ns > 0)) break;
            f[i].measured_ns += ns;
            f[i].runs_measured++;
            break;
        }
    }
    if (file) fclose(file);
    free(line);
    free(x.nodes);
}
static void read_journals(const options *o, const plan *p, forecast *f, char *note, size_t capacity) {
    const char *folder = text_of(o, "output_dir");
    DIR *d = folder ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t bytes = strlen(e->d_name);
        char *path;
        if (strncmp(e->d_name, "journal", 7) || bytes < 13 || strcmp(e->d_name + bytes - 6, ".jsonl")) continue;
        path = join_path(folder, e->d_name);
        read_measured(p, path, f, note, capacity);
        free(path);
    }
    if (d) closedir(d);
}

/* all that --plan prints */
typedef struct outlook {
    const options *o;
    const model *m;
    const plan *p;
    rates x;
    forecast *cells;
    double scale;              /* measured / estimated, over the configurations that have both; 1 */
    int64_t runs_measured, runs_left;
    double seconds;            /* of the runs left; NaN: not known */
    size_t fewest;             /* samples of the smallest data set */
    double variation;          /* of T_total over samples, the largest of the configurations; NaN: not known */
    vp_resolution resolution;
    char note[LINE_BYTES];
} outlook;
static const double PLAN_DISCORDANCE = 0.2; /* share of questions on which just one of two configurations is right: as seen on VQA v2; up to 0.5 */
enum { PLAN_SAMPLES_ENOUGH = 500 };

static double cell_ms(const outlook *k, size_t i) { /* T_total of one run, the mean over samples */
    const forecast *f = &k->cells[i];
    if (f->runs_measured) return f->measured_ns / (double)f->runs_measured / 1e6;
    return f->count && f->ns > 0 ? f->ns / (double)f->count * k->scale / 1e6 : (double)NAN;
}
static int64_t cell_runs_left(const outlook *k, size_t i) {
    const forecast *f = &k->cells[i];
    int64_t all = f->count * k->p->run_count, closed = f->points_closed * k->p->run_count;
    int64_t done = f->runs_measured > closed ? f->runs_measured : closed;
    return done < all ? all - done : 0;
}
static void look_ahead(outlook *k) {
    double both = 0, estimated = 0;
    int fp32 = !strcmp(text_of(k->o, "weights"), "fp32");
    k->fewest = SIZE_MAX;
    k->variation = (double)NAN;
    for (size_t i = 0; i < k->p->cell_count; i++) {
        forecast *f = &k->cells[i];
        const cell *c = &k->p->cells[i];
        double mean, spread;
        forecast_cell(k->m, c, &k->x, fp32, f);
        if (c->set->count < k->fewest) k->fewest = c->set->count;
        if (!f->count || !(f->ns > 0)) continue;
        mean = f->ns / (double)f->count;
        spread = sqrt(fmax(0, f->squares / (double)f->count - mean * mean)) / mean;
        if (!(spread <= k->variation)) k->variation = spread;
    }
    read_journals(k->o, k->p, k->cells, k->note, sizeof k->note);
    for (size_t i = 0; i < k->p->cell_count; i++) {
        const forecast *f = &k->cells[i];
        k->runs_measured += f->runs_measured;
        if (!f->runs_measured || !(f->ns > 0)) continue;
        both += f->measured_ns;
        estimated += f->ns / (double)f->count * (double)f->runs_measured;
    }
    k->scale = estimated > 0 ? both / estimated : 1;
    k->seconds = 0;
    for (size_t i = 0; i < k->p->cell_count; i++) {
        int64_t left = cell_runs_left(k, i);
        k->runs_left += left;
        if (left) k->seconds += cell_ms(k, i) / 1e3 * (double)left;
    }
    k->resolution.accuracy = k->resolution.mean = k->resolution.p50 = (double)NAN;
    vp_statistics_resolution(k->fewest, PLAN_DISCORDANCE, isfinite(k->variation) ? k->variation : 0, &k->resolution);
    if (!isfinite(k->variation)) k->resolution.mean = k->resolution.p50 = (double)NAN;
}
static const char *time_source(const outlook *k) {
    int estimate = 0;
    for (size_t i = 0; i < k->p->cell_count; i++) estimate |= !k->cells[i].runs_measured && cell_runs_left(k, i) > 0;
    if (!estimate) return k->runs_measured ? "measured" : k->runs_left ? "none" : "nothing left";
    return k->x.reason[0] ? "none" : k->runs_measured ? "estimate, scaled by what is measured" : "estimate";
}

static void put_plan_data(vp_json_writer *w, const plan *p) {
    vp_json_key(w, "data");
    vp_json_begin_array(w);
    for (size_t s = 0; s < p->set_count; s++) {
        const dataset *d = &p->sets[s];
        int64_t unusable = 0;
        for (size_t i = 0; i < d->count; i++) unusable += d->samples[i].reason > 0;
        vp_json_begin_object(w);
        put_text(w, "dataset_name", d->task);
        put_text(w, "path", d->path);
        put_int(w, "num_samples", (int64_t)d->count);
        put_int(w, "num_unusable_images", unusable);
        put_text(w, "accuracy_metric", vp_score_metric_of(d->metric)->name);
        put_int(w, "max_new_tokens", d->new_tokens);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_plan_cell(vp_json_writer *w, const outlook *k, size_t i) {
    const cell *c = &k->p->cells[i];
    const forecast *f = &k->cells[i];
    double layouts = f->layouts ? (double)f->layouts : (double)NAN;
    vp_json_begin_object(w);
    put_text(w, "file_name", c->file_name);
    put_text(w, "dataset_name", c->set->task);
    put_text(w, "tier", c->tier ? c->tier->name : NULL);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
    put_int(w, "num_samples", (int64_t)c->set->count);
    put_int(w, "num_failing", f->failing);
    put_double(w, "selected_crops_mean", (double)f->crops / layouts);
    put_double(w, "actual_vision_tokens_mean", (double)f->vision_tokens / layouts);
    put_int(w, "total_sequence_length_max", f->longest);
    put_double(w, "T_total_estimate", f->count && f->ns > 0 ? f->ns / (double)f->count / 1e6 : (double)NAN);
    put_double(w, "T_total_measured", f->runs_measured ? cell_ms(k, i) : (double)NAN);
    put_int(w, "num_runs_measured", f->runs_measured);
    put_int(w, "num_runs_left", cell_runs_left(k, i));
    vp_json_end_object(w);
}
static void put_calibration(vp_json_writer *w, const rates *x) {
    vp_json_key(w, "calibration");
    vp_json_begin_object(w);
    put_text(w, "reason", x->reason[0] ? x->reason : NULL);
    put_text(w, "device", x->device[0] ? x->device : NULL);
    put_double(w, "seconds", x->seconds);
    for (int i = VP_STAGE_VIT; i <= VP_STAGE_DECODE; i++) {
        char key[48];
        int compute = is_compute_stage(i);
        double rate = compute ? x->flops_ns[i] * 1e9 : x->bytes_ns[i] * 1e9;
        snprintf(key, sizeof key, "%s_%s_per_s", vp_stage_name((vp_stage)i), compute ? "flops" : "bytes");
        put_double(w, key, rate > 0 ? rate : (double)NAN);
    }
    put_double(w, "view_ms", x->view_ns / 1e6);
    vp_json_end_object(w);
}
static int print_plan_json(const outlook *k) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-plan-1");
    put_text(&w, "model", k->m->name);
    put_bool(&w, "synthetic", k->m->synthetic);
    put_plan_data(&w, k->p);
    vp_json_key(&w, "configurations");
    vp_json_begin_array(&w);
    for (size_t i = 0; i < k->p->cell_count; i++) put_plan_cell(&w, k, i);
    vp_json_end_array(&w);
    put_int(&w, "num_points", (int64_t)k->p->point_count);
    put_int(&w, "num_runs_per_sample", k->p->run_count);
    put_int(&w, "num_runs_measured", k->runs_measured);
    put_int(&w, "num_runs_left", k->runs_left);
    put_double(&w, "expected_seconds", k->seconds);
    put_text(&w, "expected_from", time_source(k));
    put_double(&w, "engine_bytes", k->x.memory_bytes > 0 ? (double)k->x.memory_bytes : (double)NAN);
    put_calibration(&w, &k->x);
    vp_json_key(&w, "resolution");
    vp_json_begin_object(&w);
    put_int(&w, "num_samples", (int64_t)k->fewest);
    put_double(&w, "discordance", PLAN_DISCORDANCE);
    put_double(&w, "accuracy", k->resolution.accuracy);
    put_double(&w, "T_total_variation", k->variation);
    put_double(&w, "T_total_mean", k->resolution.mean);
    put_double(&w, "T_total_p50", k->resolution.p50);
    vp_json_end_object(&w);
    put_bool(&w, "too_few_samples", k->fewest < PLAN_SAMPLES_ENOUGH);
    put_text(&w, "note", k->note[0] ? k->note : NULL);
    put_config(&w, k->o);
    vp_json_end_object(&w);
    return vp_json_finish(&w) == VP_OK && putchar('\n') != EOF && !fflush(stdout) ? 0 : complain(EXIT_OUTPUT, "the plan cannot be written");
}

static void print_plan_grid(const outlook *k) {
    int width = 13;
    for (size_t i = 0; i < k->p->cell_count; i++) if ((int)strlen(k->p->cells[i].file_name) > width) width = (int)strlen(k->p->cells[i].file_name);
    printf("%-*s  crops  vision_tokens  longest  T_total_ms  runs_left  failing\n", width, "configuration");
    for (size_t i = 0; i < k->p->cell_count; i++) {
        const forecast *f = &k->cells[i];
        double layouts = f->layouts ? (double)f->layouts : 1, ms = cell_ms(k, i);
        char time[32] = "-";
        if (isfinite(ms)) snprintf(time, sizeof time, "%s%.4g", f->runs_measured ? "" : "~", ms);
        printf("%-*s  %5.1f  %13.1f  %7lld  %10s  %9lld  %7lld\n", width, k->p->cells[i].file_name, (double)f->crops / layouts,
               (double)f->vision_tokens / layouts, (long long)f->longest, time, (long long)cell_runs_left(k, i), (long long)f->failing);
    }
}
static void print_plan_time(const outlook *k) {
    const rates *x = &k->x;
    const char *from = time_source(k);
    if (x->memory_bytes > 0) printf("memory      %.4g GB on %s: weights, KV cache and buffers\n", (double)x->memory_bytes / 1e9, x->device);
    if (isfinite(k->seconds) && strcmp(from, "none")) {
        int64_t s = (int64_t)ceil(k->seconds);
        printf("time        %lld:%02lld:%02lld for %lld runs, without decoding images and warming up (%s)\n", (long long)(s / 3600),
               (long long)(s / 60 % 60), (long long)(s % 60), (long long)k->runs_left, from);
    } else printf("time        not known: %s\n", x->reason[0] ? x->reason : "no sample can run");
    if (strncmp(from, "estimate", 8) == 0)
        printf("            made of each stage's FLOPs and bytes and the rates of a few blocks (%.1f s): vit %.4g, prefill %.4g TFLOP/s, "
               "decode %.4g GB/s;\n            answers are taken to be as long as allowed\n",
               x->seconds, x->flops_ns[VP_STAGE_VIT] / 1e3, x->flops_ns[VP_STAGE_PREFILL] / 1e3, x->bytes_ns[VP_STAGE_DECODE]);
}
static void print_plan_resolution(const outlook *k) {
    const vp_resolution *r = &k->resolution;
    if (isfinite(r->accuracy))
        printf("resolution  %zu samples tell accuracies apart that differ by %.1f points of 100 (if just one is right on %.0f %% of the questions)\n",
               k->fewest, 100 * r->accuracy, 100 * PLAN_DISCORDANCE);
    else printf("resolution  %zu samples are too few to tell two accuracies apart\n", k->fewest);
    if (isfinite(r->mean))
        printf("            and mean latencies that differ by %.2g %%, P50s by %.2g %% (%.2g %% spread over samples; pairs tell more)\n",
               100 * r->mean, 100 * r->p50, 100 * k->variation);
    if (k->fewest < PLAN_SAMPLES_ENOUGH)
        printf("warning     fewer than %d samples: accuracies of neighbouring configurations differ by less than the noise; raise --num_samples\n",
               PLAN_SAMPLES_ENOUGH);
}
static int print_plan(const outlook *k) {
    const plan *p = k->p;
    printf("plan        %zu configuration%s, %zu points, %d runs each; %lld runs measured, %lld left\n", p->cell_count, p->cell_count == 1 ? "" : "s",
           p->point_count, p->run_count, (long long)k->runs_measured, (long long)k->runs_left);
    for (size_t s = 0; s < p->set_count; s++) {
        const dataset *d = &p->sets[s];
        int64_t unusable = 0;
        for (size_t i = 0; i < d->count; i++) unusable += d->samples[i].reason > 0;
        printf("data        %s: %zu samples of %s, metric %s, at most %d new tokens\n", d->task, d->count, d->path,
               vp_score_metric_of(d->metric)->name, d->new_tokens);
        if (unusable)
            printf("            %lld of their images cannot be used: %s%s\n", (long long)unusable, d->reasons[0], d->reason_count > 1 ? " ..." : "");
    }
    print_plan_grid(k);
    print_plan_time(k);
    print_plan_resolution(k);
    if (p->repeats) printf("note        %s repeats points %zu times; each is measured once\n", text_of(k->o, "sampling_strategy"), p->repeats);
    if (k->note[0]) printf("note        %s\n", k->note);
    return fflush(stdout) || ferror(stdout) ? complain(EXIT_OUTPUT, "the plan cannot be written: %s", strerror(errno)) : 0;
}
/* sweep --plan, the model's shape and the plan being there */
static int show_plan(const options *o, const model *m, const plan *p) {
    outlook k;
    int code;
    memset(&k, 0, sizeof k);
    k.o = o;
    k.m = m;
    k.p = p;
    k.cells = (forecast *)zeroed(p->cell_count, sizeof *k.cells);
    code = calibrate(o, m, p, &k.x);
    if (!code) {
        look_ahead(&k);
        code = given(o, "json") ? print_plan_json(&k) : print_plan(&k);
    }
    free(k.cells);
    return code;
}

/* ============================================================================================ journal >>journal
 * journal.jsonl, or journal_rank<r>of<w>.jsonl of each of w processes: what was measured, one JSON object a line, appended and never changed.
 *   {"schema", "plan", ...}                    the grid and what it is measured on; again whenever the grid changes
 *   {"session": {...}}                         a start of the engine: where and how, and its cold first request
 *   {"sample", "set", ...}                     what does not depend on the configuration; before the sample's first run
 *   {"config", "sample_id", "run", "prev"...}  one run of a point; prev: place of the point's line before it, -1: none
 *   {"config", "sample_id", "bare", "prev"...} a pair of runs, without and with stage times, outside of the point's statistics
 *   {"config", "sample_id", "done" | "failed", "prev" ...} closes a point
 *   {"kernels": {...}}                         the one run of a shape whose kernels were timed one by one
 *   {"finished": true}                         all points of the grid above are closed
 * Only whole lines count. The book is what reading one or more journals gives: of each point one place, that of its last line. */
enum { JOURNAL_SYNC_LINES = 64, POINT_OPEN = 0, POINT_DONE = 1, POINT_FAILED = 2 };
static const int64_t JOURNAL_SYNC_NS = INT64_C(2000000000);

/* ---- writing */
typedef struct journal {
    char *path;
    int fd;          /* the only one of this file in the process: closing any other would give the lock back */
    int64_t end;     /* behind the last whole line */
    int64_t synced_ns;
    int unsynced;
    text_buffer line;
    vp_json_writer w;
} journal;

static int journal_fail(const journal *j) {
    return complain(EXIT_OUTPUT, "%s cannot be written: %s; what is in it is kept: make room and run the same command again", j->path,
                    strerror(errno));
}
static int journal_sync(journal *j) {
    if (!j->unsynced) return 0;
    if (fsync(j->fd)) return journal_fail(j);
    j->unsynced = 0;
    j->synced_ns = vp_clock_ns();
    return 0;
}
/* Appends whole lines in one write; what does not fit as a whole is taken back. */
static int journal_append(journal *j, const char *text, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = pwrite(j->fd, text + done, bytes - done, (off_t)(j->end + (int64_t)done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int kept = n ? errno : ENOSPC;
            if (ftruncate(j->fd, (off_t)j->end)) kept = errno; /* the torn line is dropped by the next start */
            errno = kept;
            return journal_fail(j);
        }
        done += (size_t)n;
    }
    j->end += (int64_t)bytes;
    return ++j->unsynced >= JOURNAL_SYNC_LINES || vp_clock_ns() - j->synced_ns >= JOURNAL_SYNC_NS ? journal_sync(j) : 0;
}
static vp_json_writer *line_begin(journal *j) {
    j->line.bytes = 0;
    vp_json_writer_init_sink(&j->w, text_sink, &j->line, 0);
    vp_json_begin_object(&j->w);
    return &j->w;
}
static int line_end(journal *j) {
    vp_json_end_object(&j->w);
    if (vp_json_finish(&j->w) != VP_OK) return complain(EXIT_WORK, "%s: a line cannot be written as JSON: %s", j->path, vp_result_text(j->w.result));
    text_add(&j->line, "\n", 1);
    return 0;
}
static int line_append(journal *j) {
    int code = line_end(j);
    return code ? code : journal_append(j, j->line.data, j->line.bytes);
}
static void journal_close(journal *j) {
    if (j->fd >= 0) close(j->fd);
    free(j->path);
    free(j->line.data);
}

/* ---- reading */
typedef struct book_entry { int64_t id, line_at; int64_t *last; int32_t file, last_count; } book_entry; /* last: of each configuration of its set */
typedef struct book_set {
    char *task, *path, *metric, *hash;
    int64_t new_tokens, sample_count;
    book_entry **entries; size_t count, capacity, first; /* from `first` on: of the journal that is being read */
    int32_t cell_count;
} book_set;
typedef struct book_cell {
    char *file_name, *tier;
    int32_t set, place;               /* which of its set's configurations */
    int64_t vision_tokens, max_crops; /* 0: none */
    int32_t top_k, block_count; int32_t *blocks;
    int32_t head_file; int64_t head_at;
    int is_wanted;                    /* part of the newest grid */
    int64_t closed, failed;
} book_cell;
typedef struct book_shape { int32_t file, cell; int64_t at, views, sequence; } book_shape;
typedef struct book_file {
    char *path;
    int fd, is_own;
    int64_t end, rank, world_size, lines;
    uint64_t grid;                    /* of its newest head */
    int is_finished, knows_device, on_gpu;
    char *device;                     /* of the last session */
} book_file;
typedef struct book {
    char plan[24];
    char *model;
    int64_t run_count, total_blocks, bare_every;
    int synthetic, ignore_eos;
    char *timing;
    book_file *files; int32_t file_count;
    book_set *sets; int32_t set_count;
    book_cell *cells; int32_t cell_count;
    book_shape *shapes; size_t shape_count;
    int32_t cell_hint; int64_t damaged;
    parsed scratch; text_buffer line;
} book;

static void book_free(book *b) {
    for (int32_t i = 0; i < b->file_count; i++) {
        if (b->files[i].is_own && b->files[i].fd >= 0) close(b->files[i].fd);
        free(b->files[i].path);
        free(b->files[i].device);
    }
    for (int32_t i = 0; i < b->set_count; i++) {
        book_set *s = &b->sets[i];
        for (size_t k = 0; k < s->count; k++) { free(s->entries[k]->last); free(s->entries[k]); }
        free((void *)s->entries);
        free(s->task);
        free(s->path);
        free(s->metric);
        free(s->hash);
    }
    for (int32_t i = 0; i < b->cell_count; i++) { free(b->cells[i].file_name); free(b->cells[i].tier); free(b->cells[i].blocks); }
    free(b->model);
    free(b->timing);
    free(b->files);
    free(b->sets);
    free(b->cells);
    free(b->shapes);
    free(b->scratch.nodes);
    free(b->line.data);
    memset(b, 0, sizeof *b);
}

static int64_t node_int(const vp_json *j, uint32_t object, const char *key, int64_t otherwise) {
    int64_t value = 0;
    return vp_json_to_int(j, vp_json_get(j, object, key), &value) == VP_OK ? value : otherwise;
}
static int32_t book_cell_find(book *b, const vp_json *j, uint32_t name) { /* neighbours in a journal are neighbours in the grid */
    for (int32_t i = 0; i < b->cell_count; i++) {
        int32_t at = (b->cell_hint + i) % b->cell_count;
        if (!vp_json_equals(j, name, b->cells[at].file_name)) continue;
        b->cell_hint = (at + 1) % b->cell_count;
        return at;
    }
    return -1;
}
static int32_t book_cell_named(const book *b, const char *file_name) {
    for (int32_t i = 0; i < b->cell_count; i++) if (!strcmp(b->cells[i].file_name, file_name)) return i;
    return -1;
}
/* Place of a sample among entries [first, count), which ascend by id: where it is, or where it would stand. */
static size_t book_place(const book_set *s, size_t first, int64_t id) {
    size_t low = first, high = s->count;
    if (low < high && s->entries[high - 1]->id < id) return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->entries[middle]->id < id) low = middle + 1; else high = middle;
    }
    return low;
}
static book_entry *book_find(const book_set *s, size_t first, int64_t id) {
    size_t at = book_place(s, first, id);
    return at < s->count && s->entries[at]->id == id ? s->entries[at] : NULL;
}
static int64_t *entry_last(book_entry *e, const book_cell *c) {
    if (c->place >= e->last_count) {
        e->last = (int64_t *)resize(e->last, (size_t)c->place + 1, sizeof *e->last);
        while (e->last_count <= c->place) e->last[e->last_count++] = -1;
    }
    return &e->last[c->place];
}
/* A point's last line, place * 4 + state; -1: nothing measured. */
static int64_t entry_state(const book_entry *e, const book_cell *c) { return c->place < e->last_count ? e->last[c->place] : -1; }

static int book_take_sets(book *b, const vp_json *j, uint32_t data) {
    uint32_t node = data + 1;
    b->set_count = (int32_t)j->nodes[data].count;
    b->sets = (book_set *)zeroed((size_t)b->set_count, sizeof *b->sets);
    for (int32_t i = 0; i < b->set_count; i++, node = j->nodes[node].end) {
        book_set *s = &b->sets[i];
        s->task = node_text(j, vp_json_get(j, node, "task"));
        s->path = node_text(j, vp_json_get(j, node, "path"));
        s->metric = node_text(j, vp_json_get(j, node, "metric"));
        s->hash = node_text(j, vp_json_get(j, node, "content_hash"));
        s->new_tokens = node_int(j, node, "max_new_tokens", 0);
        s->sample_count = node_int(j, node, "num_samples", -1);
        if (!s->task || !s->path || !s->metric || s->sample_count < 0) return 0;
    }
    return 1;
}
/* A configuration of a head line; one that is known already keeps its first head. */
static int book_take_cell(book *b, const vp_json *j, uint32_t node, int32_t file, int64_t at) {
    int32_t known = book_cell_find(b, j, vp_json_get(j, node, "file_name"));
    uint32_t blocks = vp_json_get(j, node, "active_block_indices"), item;
    int64_t set = node_int(j, node, "set", -1), value = 0;
    book_cell *c;
    if (known >= 0) return b->cells[known].is_wanted = 1;
    if (set < 0 || set >= b->set_count || !node_is(j, blocks, VP_JSON_ARRAY)) return 0;
    b->cells = (book_cell *)resize(b->cells, (size_t)b->cell_count + 1, sizeof *b->cells);
    c = &b->cells[b->cell_count];
    memset(c, 0, sizeof *c);
    c->file_name = node_text(j, vp_json_get(j, node, "file_name"));
    if (!c->file_name || strchr(c->file_name, '/') || !strstr(c->file_name, "_imgsize")) { free(c->file_name); return 0; } /* it becomes a path */
    b->cell_count++;
    c->tier = node_text(j, vp_json_get(j, node, "tier"));
    c->set = (int32_t)set;
    c->place = b->sets[set].cell_count++;
    c->vision_tokens = node_int(j, node, "target_vision_tokens", 0);
    c->max_crops = node_int(j, node, "max_crops", 0);
    c->top_k = (int32_t)node_int(j, node, "top_k", 0);
    c->block_count = (int32_t)j->nodes[blocks].count;
    c->blocks = (int32_t *)resize(NULL, (size_t)c->block_count, sizeof *c->blocks);
    item = blocks + 1;
    for (int32_t i = 0; i < c->block_count; i++, item = j->nodes[item].end)
        c->blocks[i] = vp_json_to_int(j, item, &value) == VP_OK ? (int32_t)value : -1;
    c->head_file = file;
    c->head_at = at;
    return c->is_wanted = 1;
}
/* A head line: 0 or an exit code. The first one of all says what the book is about. */
static int book_take_head(book *b, int32_t file, int64_t at) {
    const vp_json *j = &b->scratch.json;
    book_file *f = &b->files[file];
    uint32_t data = vp_json_get(j, 0, "data"), configs = vp_json_get(j, 0, "configs"), node;
    char *name = node_text(j, vp_json_get(j, 0, "plan"));
    int good = name && vp_json_equals(j, vp_json_get(j, 0, "schema"), "vlmprof-journal-2") && node_is(j, data, VP_JSON_ARRAY)
            && node_is(j, configs, VP_JSON_ARRAY), same = good && (!b->plan[0] || !strcmp(name, b->plan));
    if (good && same && !b->set_count) {
        snprintf(b->plan, sizeof b->plan, "%s", name);
        b->model = node_text(j, vp_json_get(j, 0, "model"));
        b->timing = node_text(j, vp_json_get(j, 0, "timing"));
        b->synthetic = node_is(j, vp_json_get(j, 0, "synthetic"), VP_JSON_TRUE);
        b->ignore_eos = node_is(j, vp_json_get(j, 0, "ignore_eos"), VP_JSON_TRUE);
        b->run_count = node_int(j, 0, "num_runs_per_sample", 0);
        b->total_blocks = node_int(j, 0, "num_total_blocks", 0);
        b->bare_every = node_int(j, 0, "bare_every", 0);
        good = book_take_sets(b, j, data) && b->model && b->timing;
    }
    free(name);
    if (!good) return complain(EXIT_USAGE, "%s is no journal of this vlmprof: use another --output_dir, or move the file away", f->path);
    if (!same) return complain(EXIT_USAGE, "%s belongs to another plan (other model, data, seed or options): use another --output_dir, "
                                           "or delete it with its results", f->path);
    f->rank = node_int(j, 0, "rank", 0);
    f->world_size = node_int(j, 0, "world_size", 1);
    f->is_finished = 0;
    for (int32_t i = 0; i < b->cell_count; i++) b->cells[i].is_wanted = 0;
    node = configs + 1;
    for (uint32_t i = 0; i < j->nodes[configs].count; i++, node = j->nodes[node].end) good &= book_take_cell(b, j, node, file, at);
    f->grid = 0;
    for (int32_t i = 0; i < b->cell_count; i++) if (b->cells[i].is_wanted) f->grid += hash_text(HASH_START, b->cells[i].file_name);
    return good ? 0 : complain(EXIT_USAGE, "%s: a configuration in its head cannot be read", f->path);
}
static void book_take_sample(book *b, int32_t file, int64_t at, int64_t id) {
    int64_t set = node_int(&b->scratch.json, 0, "set", -1);
    book_set *s;
    book_entry *e;
    size_t spot;
    if (set < 0 || set >= b->set_count) return;
    s = &b->sets[set];
    if ((e = book_find(s, s->first, id)) != NULL) { e->line_at = at; return; }
    if (s->count == s->capacity) {
        s->capacity = s->capacity * 2 + 64;
        s->entries = (book_entry **)resize((void *)s->entries, s->capacity, sizeof *s->entries);
    }
    spot = book_place(s, s->first, id);
    memmove((void *)(s->entries + spot + 1), (const void *)(s->entries + spot), (s->count - spot) * sizeof *s->entries);
    e = s->entries[spot] = (book_entry *)zeroed(1, sizeof *e);
    s->count++;
    e->id = id;
    e->line_at = at;
    e->file = file;
}
/* A line of a point counts when it follows the point's line before it; else something between is damaged, and the point begins anew. */
static void book_take_point(book *b, int64_t at) {
    const vp_json *j = &b->scratch.json;
    int32_t index = book_cell_find(b, j, vp_json_get(j, 0, "config"));
    book_cell *c = index < 0 ? NULL : &b->cells[index];
    book_set *s = c ? &b->sets[c->set] : NULL;
    book_entry *e = s ? book_find(s, s->first, node_int(j, 0, "sample_id", -1)) : NULL;
    int64_t prev = node_int(j, 0, "prev", -2), *last;
    int state = vp_json_get(j, 0, "done") != VP_JSON_NONE ? POINT_DONE : vp_json_get(j, 0, "failed") != VP_JSON_NONE ? POINT_FAILED : POINT_OPEN;
    if (!e) return;
    last = entry_last(e, c);
    if (*last >= 0) {
        c->closed -= (*last & 3) != POINT_OPEN;
        c->failed -= (*last & 3) == POINT_FAILED;
    }
    if (prev == -1 ? state != POINT_DONE : *last >= 0 && (*last & 3) == POINT_OPEN && *last >> 2 == prev) *last = at * 4 + state;
    else *last = -1;
    if (*last < 0) return;
    c->closed += state != POINT_OPEN;
    c->failed += state == POINT_FAILED;
}
static void book_take_session(book *b, int32_t file, uint32_t node) {
    const vp_json *j = &b->scratch.json;
    book_file *f = &b->files[file];
    free(f->device);
    f->device = node_text(j, vp_json_get(j, node, "device"));
    f->knows_device = f->device != NULL;
    f->on_gpu = f->device && !strncmp(f->device, "cuda", 4);
}
static void book_take_kernels(book *b, int32_t file, int64_t at, uint32_t node) {
    const vp_json *j = &b->scratch.json;
    book_shape *s;
    int32_t index = book_cell_find(b, j, vp_json_get(j, node, "config"));
    if (index < 0) return;
    b->shapes = (book_shape *)resize(b->shapes, b->shape_count + 1, sizeof *b->shapes);
    s = &b->shapes[b->shape_count++];
    s->file = file;
    s->cell = index;
    s->at = at;
    s->views = node_int(j, node, "views", 0);
    s->sequence = node_int(j, node, "total_sequence_length", 0);
}
/* Takes over one whole line; 0 or an exit code. A damaged one is named and left out. */
static int book_take(book *b, int32_t file, int64_t at, const char *line, size_t bytes) {
    book_file *f = &b->files[file];
    vp_json *j = &b->scratch.json;
    int64_t id;
    int good = parse_json(&b->scratch, line, bytes, NULL) == VP_OK && node_is(j, 0, VP_JSON_OBJECT);
    f->lines++;
    if (f->lines == 1 && (!good || vp_json_get(j, 0, "plan") == VP_JSON_NONE))
        return complain(EXIT_USAGE, "%s is no journal of this vlmprof: use another --output_dir, or move the file away", f->path);
    if (!good) {
        if (b->damaged++ < 2) complain(0, "%s: line %lld (byte %lld) is damaged and left out; its point is measured again", f->path,
                                       (long long)f->lines, (long long)at);
        return 0;
    }
    if (vp_json_get(j, 0, "plan") != VP_JSON_NONE) return book_take_head(b, file, at);
    if (vp_json_get(j, 0, "config") != VP_JSON_NONE) book_take_point(b, at);
    else if ((id = node_int(j, 0, "sample", -1)) >= 0) book_take_sample(b, file, at, id);
    else if (node_is(j, vp_json_get(j, 0, "session"), VP_JSON_OBJECT)) book_take_session(b, file, vp_json_get(j, 0, "session"));
    else if (vp_json_get(j, 0, "kernels") != VP_JSON_NONE) book_take_kernels(b, file, at, vp_json_get(j, 0, "kernels"));
    else if (vp_json_get(j, 0, "finished") != VP_JSON_NONE) f->is_finished = 1;
    return 0;
}
static int compare_entries(const void *a, const void *b) {
    const book_entry *x = *(book_entry *const *)a, *y = *(book_entry *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}
/* Reads a journal into the book. fd stays the caller's unless is_own; *files[..].end is behind its last whole line. */
static int book_read(book *b, const char *path, int fd, int is_own) {
    book_file *f;
    source s = {path, fd, NULL, 0};
    text_buffer t = {NULL, 0, 0};
    int64_t base = 0; /* place of t.data[0] */
    size_t seen = 0;
    int code = 0;
    ssize_t n = 0;
    b->files = (book_file *)resize(b->files, (size_t)b->file_count + 1, sizeof *b->files);
    f = &b->files[b->file_count++];
    memset(f, 0, sizeof *f);
    f->path = copy_text(path, strlen(path));
    f->fd = fd;
    f->is_own = is_own;
    for (int32_t i = 0; i < b->set_count; i++) b->sets[i].first = b->sets[i].count;
    while (!code) {
        char *end = t.bytes > seen ? (char *)memchr(t.data + seen, '\n', t.bytes - seen) : NULL;
        char piece[65536];
        if (end) {
            size_t start = (size_t)(f->end - base), bytes = (size_t)(end - t.data) - start;
            code = book_take(b, b->file_count - 1, f->end, t.data + start, bytes);
            f = &b->files[b->file_count - 1];
            seen = start + bytes + 1;
            f->end = base + (int64_t)seen;
            continue;
        }
        memmove(t.data ? t.data : piece, t.data ? t.data + (f->end - base) : piece, t.bytes - (size_t)(f->end - base)); /* the begun line */
        t.bytes -= (size_t)(f->end - base);
        base = f->end;
        seen = t.bytes;
        if ((n = source_read(&s, base + (int64_t)t.bytes, piece, sizeof piece)) <= 0) break;
        text_add(&t, piece, (size_t)n);
    }
    if (n < 0) code = complain(EXIT_OUTPUT, "%s cannot be read: %s", path, strerror(errno)); /* what is not read must not be cut off */
    free(t.data);
    if (b->damaged > 2) complain(0, "%s: %lld damaged lines in all", path, (long long)b->damaged);
    b->damaged = 0;
    return code;
}
/* Entries of all journals in the order of their ids; two journals must not hold the same sample. */
static int book_sort(book *b) {
    for (int32_t i = 0; i < b->set_count; i++) {
        book_set *s = &b->sets[i];
        if (s->count) qsort((void *)s->entries, s->count, sizeof *s->entries, compare_entries);
        s->first = 0;
        for (size_t k = 1; k < s->count; k++)
            if (s->entries[k]->id == s->entries[k - 1]->id)
                return complain(EXIT_USAGE, "%s and %s both hold sample %lld of %s: they are no parts of one sweep",
                                b->files[s->entries[k - 1]->file].path, b->files[s->entries[k]->file].path, (long long)s->entries[k]->id, s->task);
    }
    return 0;
}
/* Reads a line back into b->line and parses it into b->scratch. */
static int book_line(book *b, int32_t file, int64_t at) {
    const book_file *f = &b->files[file];
    source s = {f->path, f->fd, NULL, 0};
    b->line.bytes = 0;
    for (;;) {
        char piece[16384];
        ssize_t n = source_read(&s, at + (int64_t)b->line.bytes, piece, sizeof piece);
        const char *end = n > 0 ? (const char *)memchr(piece, '\n', (size_t)n) : NULL;
        if (n <= 0) break;
        text_add(&b->line, piece, end ? (size_t)(end - piece) : (size_t)n);
        if (end && parse_json(&b->scratch, b->line.data, b->line.bytes, NULL) == VP_OK) return 0;
        if (end) break;
    }
    return complain(EXIT_OUTPUT, "%s cannot be read back at byte %lld", f->path, (long long)at);
}

/* ---- a journal that this process writes */
static char *journal_name(const char *folder, int64_t rank, int64_t world_size) {
    char name[80];
    if (world_size > 1) snprintf(name, sizeof name, "journal_rank%lldof%lld.jsonl", (long long)rank, (long long)world_size);
    else snprintf(name, sizeof name, "journal.jsonl");
    return join_path(folder, name);
}
static int lock_file(int fd, int wait) { /* 1: held by another process */
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    while (fcntl(fd, wait ? F_SETLKW : F_SETLK, &lock)) {
        if (errno == EINTR && !interrupted) continue;
        return errno == EACCES || errno == EAGAIN || errno == EINTR;
    }
    return 0; /* a file system without locks: nothing can be said */
}
static int is_locked(int fd) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
/* Opens or makes the journal, locks it, reads it into the book (whose plan is set) and drops a torn last line. */
static int journal_open(journal *j, book *b) {
    int code;
    j->fd = open(j->path, O_RDWR | O_CREAT, 0666);
    if (j->fd < 0) return complain(EXIT_OUTPUT, "%s cannot be opened: %s", j->path, strerror(errno));
    if (lock_file(j->fd, 0)) return complain(EXIT_USAGE, "%s: another sweep is writing to this folder", j->path);
    if ((code = book_read(b, j->path, j->fd, 0)) != 0 || (code = book_sort(b)) != 0) return code;
    j->end = b->files[0].end;
    j->synced_ns = vp_clock_ns();
    return ftruncate(j->fd, (off_t)j->end) ? journal_fail(j) : 0;
}

/* ============================================================================================== files >>files
 * Journals -> one result file per configuration; neither the data set, the model nor the engine is needed. */
/* ---- a point as its journal has it */
typedef struct run_mark { int is_throttled; int64_t session, unix_s; char *telemetry; } run_mark; /* session: place of its line */
typedef struct measured {
    sample a;                     /* record: the sample's metadata */
    parsed sizes; char *sizes_text; /* what follows from its layout */
    timing *runs; run_mark *marks; int32_t count, capacity;
    int64_t stamps, retries;
    char *failed, *stop;
    int64_t bare_ns, staged_ns;   /* 0: no pair */
} measured;

static void measured_clear(measured *m) {
    parsed kept = m->sizes;
    for (int32_t i = 0; i < m->count; i++) free(m->marks[i].telemetry);
    timings_free(m->runs, m->count);
    sample_free(&m->a);
    free(m->sizes_text);
    free(m->marks);
    free(m->failed);
    free(m->stop);
    memset(m, 0, sizeof *m);
    m->sizes = kept;
}
static char *raw_text(const vp_json *j, uint32_t node) {
    return node == VP_JSON_NONE ? NULL : copy_text(j->text + j->nodes[node].start, (size_t)j->nodes[node].bytes);
}

/* {"vit": [wall ns, device ns, launches, flops, bytes], ...}: the stages that ran */
static void read_stages(const vp_json *j, uint32_t object, vp_stage_times *t) {
    if (!node_is(j, object, VP_JSON_OBJECT)) return;
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        int64_t *to[5];
        uint32_t list = vp_json_get(j, object, vp_stage_name((vp_stage)i)), item = list + 1;
        if (!node_is(j, list, VP_JSON_ARRAY) || j->nodes[list].count != 5) continue;
        to[0] = &t->wall_ns[i];
        to[1] = &t->device_ns[i];
        to[2] = &t->launches[i];
        to[3] = &t->flops[i];
        to[4] = &t->bytes[i];
        t->ran[i] = 1;
        for (int k = 0; k < 5; k++, item = j->nodes[item].end) if (vp_json_to_int(j, item, to[k]) != VP_OK) t->ran[i] = 0;
    }
}
/* Reads a run's line; 0 when it is not one. */
static int read_run(const vp_json *j, timing *t) {
    uint32_t tokens = vp_json_get(j, 0, "tokens"), steps = vp_json_get(j, 0, "step_ns"), answer = vp_json_get(j, 0, "answer"), item;
    int64_t value = 0;
    memset(t, 0, sizeof *t);
    if (!node_is(j, tokens, VP_JSON_ARRAY) || !node_is(j, steps, VP_JSON_ARRAY) || !node_is(j, answer, VP_JSON_STRING)) return 0;
    t->total_ns = node_int(j, 0, "total_ns", 0);
    t->token_count = (int32_t)j->nodes[tokens].count;
    t->ended_by_eos = node_is(j, vp_json_get(j, 0, "ended_by_eos"), VP_JSON_TRUE);
    t->tokens = (int32_t *)zeroed((size_t)t->token_count + 1, sizeof *t->tokens);
    t->step_ns = (int64_t *)zeroed((size_t)t->token_count + 1, sizeof *t->step_ns);
    item = tokens + 1;
    for (int32_t i = 0; i < t->token_count; i++, item = j->nodes[item].end)
        if (vp_json_to_int(j, item, &value) == VP_OK) t->tokens[i] = (int32_t)value;
    item = steps + 1;
    for (int32_t i = 0; i < t->token_count && (uint32_t)i < j->nodes[steps].count; i++, item = j->nodes[item].end)
        if (vp_json_to_int(j, item, &value) == VP_OK) t->step_ns[i] = value;
    t->answer = (char *)zeroed((size_t)j->nodes[answer].bytes + 1, 1); /* unescaping never lengthens */
    if (vp_json_text(j, answer, t->answer, (size_t)j->nodes[answer].bytes + 1, &t->answer_bytes) != VP_OK) t->answer_bytes = 0;
    read_stages(j, vp_json_get(j, 0, "stages"), &t->times);
    return t->total_ns > 0;
}
static int add_run(measured *m, const vp_json *j) {
    if (m->count == m->capacity) {
        m->capacity = m->capacity * 2 + 8;
        m->runs = (timing *)resize(m->runs, (size_t)m->capacity, sizeof *m->runs);
        m->marks = (run_mark *)resize(m->marks, (size_t)m->capacity, sizeof *m->marks);
    }
    m->marks[m->count].is_throttled = node_is(j, vp_json_get(j, 0, "throttled"), VP_JSON_TRUE);
    m->marks[m->count].session = node_int(j, 0, "session", -1);
    m->marks[m->count].unix_s = node_int(j, 0, "unix_s", 0);
    m->marks[m->count].telemetry = raw_text(j, vp_json_get(j, 0, "telemetry"));
    m->stamps = node_int(j, 0, "stamps", 0);
    return read_run(j, &m->runs[m->count++]);
}
static void reverse_runs(measured *m) { /* the journal leads from the last to the first */
    for (int32_t i = 0, k = m->count - 1; i < k; i++, k--) {
        timing t = m->runs[i];
        run_mark mark = m->marks[i];
        m->runs[i] = m->runs[k];
        m->marks[i] = m->marks[k];
        m->runs[k] = t;
        m->marks[k] = mark;
    }
}
/* A closed point with all its lines; 0 or an exit code. */
static int read_point(book *b, const book_cell *c, const book_entry *e, measured *m) {
    const vp_json *j = &b->scratch.json;
    int64_t at = entry_state(e, c) >> 2;
    uint32_t node;
    int code;
    measured_clear(m);
    while (at >= 0) {
        int64_t prev;
        if ((code = book_line(b, e->file, at)) != 0) return code;
        prev = node_int(j, 0, "prev", -1);
        if (vp_json_get(j, 0, "run") != VP_JSON_NONE) {
            if (!add_run(m, j)) return complain(EXIT_OUTPUT, "%s: the run at byte %lld cannot be read", b->files[e->file].path, (long long)at);
        } else if ((node = vp_json_get(j, 0, "bare")) != VP_JSON_NONE) {
            m->bare_ns = node_int(j, node, "bare_total_ns", 0);
            m->staged_ns = node_int(j, node, "staged_total_ns", 0);
        } else {
            m->failed = node_text(j, vp_json_get(j, 0, "failed"));
            m->stop = node_text(j, vp_json_get(j, 0, "stop"));
            m->retries = node_int(j, 0, "retries", 0);
            m->sizes_text = raw_text(j, vp_json_get(j, 0, "sizes"));
        }
        if (prev >= at) return complain(EXIT_OUTPUT, "%s: the line at byte %lld names no line before it", b->files[e->file].path, (long long)at);
        at = prev;
    }
    reverse_runs(m);
    if (!m->sizes_text || parse_json(&m->sizes, m->sizes_text, strlen(m->sizes_text), NULL) != VP_OK || !node_is(&m->sizes.json, 0, VP_JSON_OBJECT))
        return complain(EXIT_OUTPUT, "%s: a point of sample %lld lacks its sizes", b->files[e->file].path, (long long)e->id);
    if ((code = book_line(b, e->file, e->line_at)) != 0) return code;
    m->a.id = e->id;
    m->a.prompt = node_text(j, vp_json_get(j, 0, "prompt"));
    m->a.record = raw_text(j, vp_json_get(j, 0, "metadata"));
    return 0;
}

/* ---- what the points of a configuration are gathered into; each list has its own count because points can lack a number */
enum { METRIC_ALL = METRIC_STAGE + VP_STAGE_COUNT };
enum {
    LIST_METRICS = 0, LIST_RUNS = METRIC_ALL, /* a point's mean over its runs; each run by itself */
    LIST_TARGET = 2 * METRIC_ALL, LIST_ACTUAL, LIST_DIFF, LIST_CROPS, LIST_ACCURACY,
    LIST_TILING, LIST_HEIGHT, LIST_WIDTH, LIST_TOKENS, /* of each layout: tiling, canvas, theoretical tokens */
    LIST_OUTPUT, LIST_RATE, LIST_STAMPS, LIST_BARE, LIST_STAGED,
    LIST_STEP, LIST_STEP_AT, /* decode step times, and the position of each */
    LIST_COUNT
};
typedef struct list { double *values; size_t count, capacity; } list;
typedef struct used_session { int32_t file; int64_t at; } used_session;
typedef struct gathered {
    list lists[LIST_COUNT];
    int64_t ok_count, failed_count, missing_count, unparsed_count, truncated_count, empty_count;
    int64_t outlier_count, throttled_count, retry_count, run_count, stops[VP_STOP_LAST_ + 1];
    used_session *sessions; size_t session_count; /* in the order of their first points */
    int64_t first_s, last_s;                      /* when the runs were */
    tally t;
} gathered;

static void gathered_free(gathered *g) {
    for (int i = 0; i < LIST_COUNT; i++) free(g->lists[i].values);
    free(g->sessions);
}
static const char *metric_name(int metric) { return metric < METRIC_STAGE ? METRIC_KEYS[metric] : vp_stage_name((vp_stage)(metric - METRIC_STAGE)); }
static void list_add(list *l, double value) {
    if (!isfinite(value)) return;
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 64;
        l->values = (double *)resize(l->values, l->capacity, sizeof *l->values);
    }
    l->values[l->count++] = value;
}
static size_t session_index(const gathered *g, int32_t file, int64_t at) {
    size_t i = 0;
    while (i < g->session_count && (g->sessions[i].file != file || g->sessions[i].at != at)) i++;
    return i;
}
static point point_of(const book *b, const book_cell *c, const measured *m) {
    point p;
    memset(&p, 0, sizeof p);
    p.a = &m->a;
    p.tier = c->tier;
    p.top_k = c->top_k;
    p.blocks = c->blocks;
    p.block_count = c->block_count;
    p.runs = m->runs;
    p.run_count = m->failed ? 0 : m->count;
    p.reason = m->failed;
    p.ignore_eos = b->ignore_eos;
    if (vp_score_metric_find(b->sets[c->set].metric, &p.metric) != VP_OK) p.metric = VP_SCORE_VQA_SEED;
    return p;
}
/* Flags of the runs whose total stands out: uint8 [count]; too few runs flag none. Returns their number. */
static int find_outliers(const measured *m, uint8_t *flags, vp_outliers *o) {
    double *values = (double *)resize(NULL, (size_t)m->count * 2, sizeof *values);
    int known;
    for (int32_t i = 0; i < m->count; i++) values[i] = metric_of(&m->runs[i], METRIC_TOTAL);
    memset(flags, 0, (size_t)m->count);
    memset(o, 0, sizeof *o);
    known = vp_statistics_outliers(values, (size_t)m->count, VP_OUTLIER_THRESHOLD, values + m->count, flags, o) == VP_OK;
    free(values);
    return known;
}

static void gather_layout(gathered *g, const vp_json *j) {
    double target = node_number(j, vp_json_get(j, 0, "target_vision_tokens")), actual = node_number(j, vp_json_get(j, 0, "actual_vision_tokens"));
    uint32_t tiling = vp_json_get(j, 0, "actual_tiling"), size = vp_json_get(j, 0, "theoretical_image_size");
    list_add(&g->lists[LIST_TARGET], target);
    list_add(&g->lists[LIST_ACTUAL], actual);
    list_add(&g->lists[LIST_DIFF], target - actual);
    list_add(&g->lists[LIST_CROPS], node_number(j, vp_json_get(j, 0, "actual_num_crops")));
    if (!node_is(j, tiling, VP_JSON_ARRAY) || !node_is(j, size, VP_JSON_ARRAY)) return;
    list_add(&g->lists[LIST_TILING], node_number(j, vp_json_at(j, tiling, 0)) * 65536 + node_number(j, vp_json_at(j, tiling, 1)));
    list_add(&g->lists[LIST_HEIGHT], node_number(j, vp_json_at(j, size, 0)));
    list_add(&g->lists[LIST_WIDTH], node_number(j, vp_json_at(j, size, 1)));
    list_add(&g->lists[LIST_TOKENS], node_number(j, vp_json_get(j, 0, "theoretical_vision_tokens")));
}
static void gather_runs(gathered *g, const measured *m, int32_t file) {
    uint8_t *flags = (uint8_t *)zeroed((size_t)m->count, 1);
    vp_outliers o;
    double total = metric_mean(m->runs, m->count, METRIC_TOTAL);
    if (find_outliers(m, flags, &o)) g->outlier_count += (int64_t)o.count;
    free(flags);
    for (int k = 0; k < METRIC_ALL; k++) {
        list_add(&g->lists[LIST_METRICS + k], metric_mean(m->runs, m->count, k));
        for (int32_t i = 0; i < m->count; i++) list_add(&g->lists[LIST_RUNS + k], metric_of(&m->runs[i], k));
    }
    for (int32_t i = 0; i < m->count; i++) {
        g->throttled_count += m->marks[i].is_throttled;
        if (!g->first_s || m->marks[i].unix_s < g->first_s) g->first_s = m->marks[i].unix_s;
        if (m->marks[i].unix_s > g->last_s) g->last_s = m->marks[i].unix_s;
        for (int32_t s = 0; s + 1 < m->runs[i].token_count && m->runs[i].times.ran[VP_STAGE_DECODE]; s++) {
            list_add(&g->lists[LIST_STEP], (double)m->runs[i].step_ns[s] / 1e6);
            list_add(&g->lists[LIST_STEP_AT], s + 1);
        }
        if (session_index(g, file, m->marks[i].session) < g->session_count) continue;
        g->sessions = (used_session *)resize(g->sessions, g->session_count + 1, sizeof *g->sessions);
        g->sessions[g->session_count].file = file;
        g->sessions[g->session_count++].at = m->marks[i].session;
    }
    g->run_count += m->count;
    list_add(&g->lists[LIST_OUTPUT], m->runs[0].token_count);
    list_add(&g->lists[LIST_RATE], m->runs[0].token_count / total * 1e3);
    list_add(&g->lists[LIST_STAMPS], (double)m->stamps);
    if (m->bare_ns <= 0 || m->staged_ns <= 0) return;
    list_add(&g->lists[LIST_BARE], (double)m->bare_ns / 1e6);
    list_add(&g->lists[LIST_STAGED], (double)m->staged_ns / 1e6);
}
static void gather_point(gathered *g, const point *p, const measured *m, int32_t file) {
    vp_score_outcome o;
    scoring s;
    double accuracy;
    gather_layout(g, &m->sizes.json);
    if (m->failed) g->failed_count++; else g->ok_count++;
    g->retry_count += m->retries;
    for (int i = 0; m->stop && i <= VP_STOP_LAST_; i++) g->stops[i] += !strcmp(m->stop, vp_stop_name(i));
    if (p->run_count) gather_runs(g, m, file);
    score_point(p, &s, &o);
    accuracy = o.is_unparsed ? 0 : o.score;
    list_add(&g->lists[LIST_ACCURACY], accuracy);
    tally_add(&g->t, accuracy, 0, 0);
    g->unparsed_count += p->run_count && o.is_unparsed;
    g->truncated_count += p->run_count && !p->ignore_eos && !p->runs[0].ended_by_eos;
    g->empty_count += p->run_count && o.cleaned && !o.cleaned[0];
    scoring_free(&s);
}

/* ---- numbers into the file */
/* Statistics of a list; 0 when it is empty. The sorted values go to *sorted (malloc'ed, may be NULL). */
static int list_statistics(const list *l, vp_statistics *s, double **sorted) {
    double *scratch = (double *)resize(NULL, l->count, sizeof *scratch);
    int good = l->count && vp_statistics_compute(l->values, l->count, scratch, s) == VP_OK;
    if (sorted) *sorted = scratch; else free(scratch);
    return good;
}
/* NAME_mean ... NAME_p99, null where there is no value; without a name: mean ... p99 */
static void put_statistics(vp_json_writer *w, const char *name, const list *l) {
    static const char *const suffixes[] = {"mean", "std", "p50", "p95", "p99"};
    vp_statistics s;
    int good = list_statistics(l, &s, NULL);
    double values[5] = {0, 0, 0, 0, 0};
    if (good) { values[0] = s.mean; values[1] = s.std; values[2] = s.p50; values[3] = s.p95; values[4] = s.p99; }
    for (int i = 0; i < 5; i++) {
        char key[96];
        snprintf(key, sizeof key, "%s%s%s", name, name[0] ? "_" : "", suffixes[i]);
        put_double(w, key, good ? values[i] : (double)NAN);
    }
}
static double list_mean(const list *l) { return l->count ? vp_statistics_mean(l->values, l->count) : (double)NAN; }
static double list_std(const list *l) { return l->count ? vp_statistics_std(l->values, l->count) : (double)NAN; }
static double list_p50(const list *l) {
    vp_statistics s;
    return list_statistics(l, &s, NULL) ? s.p50 : (double)NAN;
}
static void put_interval(vp_json_writer *w, const char *key, int known, double low, double high) {
    vp_json_key(w, key);
    if (!known || !isfinite(low) || !isfinite(high)) { vp_json_null(w); return; }
    vp_json_begin_array(w);
    vp_json_double(w, low);
    vp_json_double(w, high);
    vp_json_end_array(w);
}
/* {"count", "mean" ... "p99", "p50_interval", "unsupported": percentiles that so few values do not tell} */
static void put_distribution(vp_json_writer *w, const char *key, const list *l) {
    static const double percentiles[] = {50, 95, 99};
    static const char *const names[] = {"p50", "p95", "p99"};
    double *sorted = NULL, low = 0, high = 0;
    vp_statistics s;
    int known = list_statistics(l, &s, &sorted) && vp_statistics_percentile_interval(sorted, l->count, 50, 0.95, &low, &high) == VP_OK;
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_int(w, "count", (int64_t)l->count);
    put_statistics(w, "", l);
    put_interval(w, "p50_interval", known, low, high);
    vp_json_key(w, "unsupported");
    vp_json_begin_array(w);
    for (int i = 0; i < 3; i++) if (!vp_statistics_percentile_supported(l->count, percentiles[i])) vp_json_string(w, names[i]);
    vp_json_end_array(w);
    vp_json_end_object(w);
    free(sorted);
}
static void put_distributions(vp_json_writer *w, const gathered *g) {
    static const char *const keys[] = {"over_samples", "over_runs"}; /* each sample's mean over its runs; every run by itself */
    vp_json_key(w, "statistics");
    vp_json_begin_object(w);
    for (int which = 0; which < 2; which++) {
        vp_json_key(w, keys[which]);
        vp_json_begin_object(w);
        for (int k = 0; k < METRIC_ALL; k++) put_distribution(w, metric_name(k), &g->lists[(which ? LIST_RUNS : LIST_METRICS) + k]);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

/* {"pos_1": {...}, ...}: decode steps by position, over samples and runs; position 1 is the first decode step */
static void put_step_statistics(vp_json_writer *w, const gathered *g) {
    const list *values = &g->lists[LIST_STEP], *at = &g->lists[LIST_STEP_AT];
    size_t positions = 0, *starts, *fill;
    double *grouped = (double *)resize(NULL, values->count, sizeof *grouped);
    for (size_t i = 0; i < at->count; i++) if ((size_t)at->values[i] > positions) positions = (size_t)at->values[i];
    starts = (size_t *)zeroed(positions + 2, sizeof *starts);
    fill = (size_t *)zeroed(positions + 2, sizeof *fill);
    for (size_t i = 0; i < at->count; i++) starts[(size_t)at->values[i] + 1]++;
    for (size_t p = 1; p < positions + 2; p++) starts[p] += starts[p - 1];
    for (size_t i = 0; i < at->count; i++) grouped[starts[(size_t)at->values[i]] + fill[(size_t)at->values[i]]++] = values->values[i];
    vp_json_key(w, "T_decode_per_step_stats");
    vp_json_begin_object(w);
    for (size_t p = 1; p <= positions; p++) {
        list one = {grouped + starts[p], fill[p], fill[p]};
        char key[32];
        snprintf(key, sizeof key, "pos_%zu", p);
        vp_json_key(w, key);
        vp_json_begin_object(w);
        put_statistics(w, "", &one);
        put_int(w, "count", (int64_t)one.count);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    free(grouped);
    free(starts);
    free(fill);
}

/* Over samples (each the mean over its runs); T_total_runs over all single runs; milliseconds, population std, linear percentiles. */
static void put_aggregate(vp_json_writer *w, const char *key, const gathered *g) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE; m++) put_statistics(w, METRIC_KEYS[m], &g->lists[LIST_METRICS + m]);
    put_statistics(w, "T_total_runs", &g->lists[LIST_RUNS + METRIC_TOTAL]);
    put_double(w, "vision_tokens_mean", list_mean(&g->lists[LIST_ACTUAL]));
    put_double(w, "vision_tokens_std", list_std(&g->lists[LIST_ACTUAL]));
    put_double(w, "vision_tokens_diff_mean", list_mean(&g->lists[LIST_DIFF]));
    put_step_statistics(w, g);
    vp_json_end_object(w);
}

/* the most frequent of sorted values, the smallest of equals */
static double most_frequent(const double *sorted, size_t count) {
    size_t best = 0, best_count = 0, start = 0;
    for (size_t i = 1; i <= count; i++) {
        if (i < count && !(sorted[i] > sorted[start])) continue;
        if (i - start > best_count) { best = start; best_count = i - start; }
        start = i;
    }
    return sorted[best];
}

/* selected_crops_*, *_vision_tokens_*, theoretical_* */
static void put_vision(vp_json_writer *w, const book_cell *c, const gathered *g) {
    double *sorted = NULL;
    vp_statistics s;
    put_double(w, "selected_crops_mean", list_mean(&g->lists[LIST_CROPS]));
    put_double(w, "selected_crops_std", list_std(&g->lists[LIST_CROPS]));
    vp_json_key(w, "selected_crops_distribution");
    vp_json_begin_object(w);
    if (list_statistics(&g->lists[LIST_CROPS], &s, &sorted)) {
        size_t start = 0;
        for (size_t i = 1; i <= s.count; i++) {
            char key[32];
            if (i < s.count && !(sorted[i] > sorted[start])) continue;
            snprintf(key, sizeof key, "%d", (int)sorted[start]);
            put_int(w, key, (int64_t)(i - start));
            start = i;
        }
    }
    vp_json_end_object(w);
    free(sorted);
    put_double(w, "target_vision_tokens_mean", list_mean(&g->lists[LIST_TARGET]));
    put_double(w, "target_vision_tokens_std", list_std(&g->lists[LIST_TARGET]));
    put_double(w, "actual_vision_tokens_mean", list_mean(&g->lists[LIST_ACTUAL]));
    put_double(w, "actual_vision_tokens_std", list_std(&g->lists[LIST_ACTUAL]));
    vp_json_key(w, "max_crops");
    if (c->max_crops) vp_json_int(w, c->max_crops); else vp_json_null(w);
    if (list_statistics(&g->lists[LIST_TILING], &s, &sorted)) {
        int32_t code = (int32_t)most_frequent(sorted, s.count), rows = code / 65536, cols = code % 65536;
        size_t i = 0;
        while ((int32_t)g->lists[LIST_TILING].values[i] != code) i++;
        put_int(w, "theoretical_num_crops", (int64_t)rows * cols);
        put_pair(w, "theoretical_tiling", rows, cols);
        put_pair(w, "theoretical_image_size", (int64_t)g->lists[LIST_HEIGHT].values[i], (int64_t)g->lists[LIST_WIDTH].values[i]);
        put_int(w, "theoretical_vision_tokens", (int64_t)g->lists[LIST_TOKENS].values[i]);
    } else {
        put_null(w, "theoretical_num_crops");
        put_null(w, "theoretical_tiling");
        put_null(w, "theoretical_image_size");
        put_null(w, "theoretical_vision_tokens");
    }
    free(sorted);
}

/* standard error of the mean; of 0/1 metrics Wilson's interval too; answers that a reader should know of */
static void put_accuracy_spread(vp_json_writer *w, vp_score_metric metric, const gathered *g) {
    tally t = g->t;
    double low = 0, high = 0;
    int known;
    t.is_binary = vp_score_metric_of(metric)->is_binary;
    known = tally_interval(&t, &low, &high);
    put_double(w, "accuracy_standard_error", tally_error(&t));
    put_interval(w, "accuracy_interval", known, low, high); /* 95 % */
    put_int(w, "num_unparsed", g->unparsed_count);
    put_int(w, "num_truncated", g->truncated_count);
    put_int(w, "num_empty", g->empty_count);
}

/* ---- a row */
static void put_run_marks(vp_json_writer *w, const measured *m, const gathered *g, int32_t file) {
    uint8_t *flags = (uint8_t *)zeroed((size_t)m->count, 1);
    double *sorted = (double *)resize(NULL, (size_t)m->count * 2, sizeof *sorted), low = 0, high = 0;
    vp_outliers o;
    vp_statistics s;
    int known, ran = m->count > 0 && !m->failed;
    for (int32_t i = 0; i < m->count; i++) sorted[m->count + i] = metric_of(&m->runs[i], METRIC_TOTAL);
    known = ran && vp_statistics_compute(sorted + m->count, (size_t)m->count, sorted, &s) == VP_OK;
    put_text(w, "stop", m->stop);
    put_int(w, "num_runs", ran ? m->count : 0);
    put_double(w, "T_total_p50", known ? s.p50 : (double)NAN);
    known = known && vp_statistics_percentile_interval(sorted, (size_t)m->count, 50, 0.95, &low, &high) == VP_OK;
    put_interval(w, "T_total_p50_interval", known, low, high);
    put_double(w, "tokens_per_s", ran ? m->runs[0].token_count / metric_mean(m->runs, m->count, METRIC_TOTAL) * 1e3 : (double)NAN);
    known = find_outliers(m, flags, &o);
    if (known) put_bool(w, "slow_first_run", o.slow_first);
    else put_null(w, "slow_first_run");
    vp_json_key(w, "run_flags"); /* of each run */
    vp_json_begin_object(w);
    for (int which = 0; which < 4; which++) {
        static const char *const keys[] = {"outlier", "throttled", "session", "telemetry"};
        vp_json_key(w, keys[which]);
        vp_json_begin_array(w);
        for (int32_t i = 0; ran && i < m->count; i++) {
            if (which == 0 && !known) vp_json_null(w);
            else if (which == 0) vp_json_bool(w, flags[i]);
            else if (which == 1) vp_json_bool(w, m->marks[i].is_throttled);
            else if (which == 2) vp_json_int(w, (int64_t)session_index(g, file, m->marks[i].session)); /* in session_list */
            else if (m->marks[i].telemetry) vp_json_raw(w, m->marks[i].telemetry, strlen(m->marks[i].telemetry));
            else vp_json_null(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
    put_int(w, "stamps", m->stamps);
    put_double(w, "T_total_bare", m->bare_ns > 0 ? (double)m->bare_ns / 1e6 : (double)NAN);
    put_double(w, "T_total_staged", m->staged_ns > 0 ? (double)m->staged_ns / 1e6 : (double)NAN);
    put_int(w, "num_retries", m->retries);
    free(flags);
    free(sorted);
}
static void put_row(vp_json_writer *w, const point *p, const measured *m, const gathered *g, int32_t file) {
    const vp_json *j = &m->sizes.json;
    vp_score_outcome o;
    scoring s;
    score_point(p, &s, &o);
    vp_json_begin_object(w);
    put_int(w, "sample_id", p->a->id);
    put_text(w, "status", p->reason ? "failed" : "ok");
    put_text(w, "reason", p->reason);
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        if (key) vp_json_key(w, key);
        if (key) json_node(w, j, i + 1);
        free(key);
    }
    put_point_tokens(w, p);
    put_point_answer(w, p, &o);
    vp_json_key(w, "metadata");
    vp_json_raw(w, p->a->record, strlen(p->a->record));
    put_point_times(w, p);
    put_run_marks(w, m, g, file);
    vp_json_end_object(w);
    scoring_free(&s);
}

/* ---- the head of a file */
static void put_date(vp_json_writer *w, const char *key, int64_t unix_s) {
    char text[40];
    time_t t = (time_t)unix_s;
    struct tm utc;
    put_text(w, key, unix_s && gmtime_r(&t, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) ? text : NULL);
}
static void put_sessions(vp_json_writer *w, book *b, const gathered *g) {
    put_date(w, "measured_from", g->first_s);
    put_date(w, "measured_to", g->last_s);
    put_int(w, "sessions", (int64_t)g->session_count);
    for (int all = 0; all < 2; all++) { /* the latest one, with its cold first request; all */
        size_t i = all || !g->session_count ? 0 : g->session_count - 1;
        vp_json_key(w, all ? "session_list" : "provenance");
        if (all) vp_json_begin_array(w);
        else if (!g->session_count) vp_json_null(w);
        for (; i < g->session_count; i++) {
            uint32_t node = g->sessions[i].at >= 0 && !book_line(b, g->sessions[i].file, g->sessions[i].at)
                          ? vp_json_get(&b->scratch.json, 0, "session") : VP_JSON_NONE;
            if (node_is(&b->scratch.json, node, VP_JSON_OBJECT)) json_node(w, &b->scratch.json, node); else vp_json_null(w);
        }
        if (all) vp_json_end_array(w);
    }
}
/* The tool's own cost: stamps times the cost of one, and pairs of runs without and with them in random order. */
static void put_tool_cost(vp_json_writer *w, book *b, const gathered *g) {
    const list *bare = &g->lists[LIST_BARE], *staged = &g->lists[LIST_STAGED];
    double *scratch = (double *)resize(NULL, bare->count, sizeof *scratch), stamp_ns = (double)NAN, stamps = list_mean(&g->lists[LIST_STAMPS]);
    vp_paired p;
    int paired = bare->count == staged->count && bare->count && vp_statistics_paired(bare->values, staged->values, bare->count, scratch, &p) == VP_OK;
    if (g->session_count && g->sessions[g->session_count - 1].at >= 0
        && !book_line(b, g->sessions[g->session_count - 1].file, g->sessions[g->session_count - 1].at))
        stamp_ns = node_number(&b->scratch.json, vp_json_get(&b->scratch.json, vp_json_get(&b->scratch.json, 0, "session"), "stamp_cost_ns"));
    vp_json_key(w, "tool_cost");
    vp_json_begin_object(w);
    put_double(w, "stamps_per_request", stamps);
    put_double(w, "stamp_cost_ns", stamp_ns);
    put_double(w, "stamps_share", stamps * stamp_ns / (list_mean(&g->lists[LIST_METRICS + METRIC_TOTAL]) * 1e6));
    put_int(w, "bare_pairs", paired ? (int64_t)p.count : 0);
    put_double(w, "bare_difference_ms", paired ? p.mean.value : (double)NAN); /* staged - bare */
    put_interval(w, "bare_difference_ms_interval", paired, p.mean.low, p.mean.high);
    put_double(w, "bare_difference_share", paired ? p.relative_mean.value : (double)NAN);
    put_interval(w, "bare_difference_share_interval", paired, p.relative_mean.low, p.relative_mean.high);
    put_double(w, "bare_difference_share_median", paired ? p.relative_median.value : (double)NAN);
    put_interval(w, "bare_difference_share_median_interval", paired, p.relative_median.low, p.relative_median.high);
    vp_json_end_object(w);
    free(scratch);
}
static void put_kernel_pass(vp_json_writer *w, book *b, const book_cell *c) {
    vp_json_key(w, "kernel_pass"); /* of shapes whose kernels were timed one by one; device less kernels is idle */
    vp_json_begin_array(w);
    for (size_t i = 0; i < b->shape_count; i++) {
        if (&b->cells[b->shapes[i].cell] != c || book_line(b, b->shapes[i].file, b->shapes[i].at)) continue;
        json_node(w, &b->scratch.json, vp_json_get(&b->scratch.json, 0, "kernels"));
    }
    vp_json_end_array(w);
}
static void put_run_counts(vp_json_writer *w, const gathered *g) {
    put_int(w, "num_runs", g->run_count);
    put_int(w, "num_outlier_runs", g->outlier_count);
    put_int(w, "num_throttled_runs", g->throttled_count);
    put_int(w, "num_retries", g->retry_count);
    vp_json_key(w, "stops"); /* what ended the runs of how many points */
    vp_json_begin_object(w);
    for (int i = 1; i <= VP_STOP_LAST_; i++) put_int(w, vp_stop_name(i), g->stops[i]);
    vp_json_end_object(w);
}
static void put_setting(vp_json_writer *w, const book *b, const book_cell *c) {
    const vp_tier *tier = c->tier ? vp_tier_find(c->tier) : NULL;
    put_text(w, "tier", c->tier);
    vp_json_key(w, "tier_range");
    if (tier) {
        vp_json_begin_object(w);
        put_int(w, "min_crops", tier->min_crops);
        put_int(w, "max_crops", tier->max_crops);
        vp_json_end_object(w);
    } else vp_json_null(w);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_int(w, "num_total_blocks", b->total_blocks);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
}
/* "plan", "status" and "num_failed" stand first: the next sweep reads only the head of the file to know it. */
static void put_result_head(vp_json_writer *w, book *b, const book_cell *c, const gathered *g, vp_score_metric metric) {
    const book_set *s = &b->sets[c->set];
    put_text(w, "schema", "vlmprof-sweep-2");
    put_text(w, "plan", b->plan);
    put_text(w, "status", g->missing_count ? "partial" : g->failed_count ? "complete with failures" : "complete");
    put_int(w, "num_failed", g->failed_count);
    put_int(w, "num_ok", g->ok_count);
    put_int(w, "num_missing", g->missing_count);
    put_int(w, "num_samples", s->sample_count);
    put_int(w, "num_runs_per_sample", b->run_count);
    put_text(w, "timing", b->timing);
    put_bool(w, "synthetic", b->synthetic);
    put_text(w, "model", b->model);
    put_text(w, "dataset_name", s->task);
    put_text(w, "data", s->path);
    put_text(w, "data_hash", s->hash);
    put_int(w, "max_new_tokens", s->new_tokens);
    put_setting(w, b, c);
    put_double(w, "accuracy", list_mean(&g->lists[LIST_ACCURACY]));
    put_double(w, "accuracy_std", list_std(&g->lists[LIST_ACCURACY]));
    put_text(w, "accuracy_metric", s->metric);
    put_int(w, "accuracy_count", (int64_t)g->lists[LIST_ACCURACY].count);
    put_text(w, "accuracy_reason", g->lists[LIST_ACCURACY].count ? NULL : "no record has answers to compare with");
    put_accuracy_spread(w, metric, g);
    put_vision(w, c, g);
    put_run_counts(w, g);
    put_sessions(w, b, g);
    put_tool_cost(w, b, g);
    put_kernel_pass(w, b, c);
    vp_json_key(w, "config");
    if (!book_line(b, c->head_file, c->head_at) && node_is(&b->scratch.json, vp_json_get(&b->scratch.json, 0, "options"), VP_JSON_OBJECT))
        json_node(w, &b->scratch.json, vp_json_get(&b->scratch.json, 0, "options"));
    else vp_json_null(w);
    put_aggregate(w, "aggregate_stats", g);
    put_aggregate(w, "latency_stats", g);
    put_distributions(w, g);
}

/* ---- a file */
typedef struct out_file { int fd, error; size_t used; char data[65536]; } out_file;
static void out_flush(out_file *f) {
    size_t done = 0;
    while (!f->error && done < f->used) {
        ssize_t n = write(f->fd, f->data + done, f->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) f->error = n ? errno : ENOSPC; else done += (size_t)n;
    }
    f->used = 0;
}
static vp_result out_sink(void *user, const char *p, size_t bytes) {
    out_file *f = (out_file *)user;
    while (bytes && !f->error) {
        size_t piece = bytes < sizeof f->data - f->used ? bytes : sizeof f->data - f->used;
        memcpy(f->data + f->used, p, piece);
        f->used += piece;
        p += piece;
        bytes -= piece;
        if (f->used == sizeof f->data) out_flush(f);
    }
    return f->error ? VP_ERR_WRITE : VP_OK;
}
/* what the table and --json tell of a configuration */
typedef struct summary { char *path; int64_t ok, failed, missing, accuracy_count; double p50[METRIC_STAGE], accuracy, rate, closure; } summary;
typedef struct summaries { summary *items; size_t count; } summaries;
static void summaries_free(summaries *s) {
    for (size_t i = 0; i < s->count; i++) free(s->items[i].path);
    free(s->items);
}
static void summarize(summaries *all, char *path, const gathered *g) {
    summary *s;
    all->items = (summary *)resize(all->items, all->count + 1, sizeof *all->items);
    s = &all->items[all->count++];
    s->path = path;
    s->ok = g->ok_count;
    s->failed = g->failed_count;
    s->missing = g->missing_count;
    s->accuracy = list_mean(&g->lists[LIST_ACCURACY]);
    s->accuracy_count = (int64_t)g->lists[LIST_ACCURACY].count;
    s->rate = list_p50(&g->lists[LIST_RATE]);
    s->closure = list_p50(&g->lists[LIST_METRICS + METRIC_CLOSURE]);
    for (int k = 0; k < METRIC_STAGE; k++) s->p50[k] = list_p50(&g->lists[LIST_METRICS + k]);
}

static int gather_cell(book *b, const book_cell *c, gathered *g, measured *m) {
    const book_set *s = &b->sets[c->set];
    int code;
    for (size_t i = 0; i < s->count; i++) {
        point p;
        if ((entry_state(s->entries[i], c) & 3) == POINT_OPEN || entry_state(s->entries[i], c) < 0) continue;
        if ((code = read_point(b, c, s->entries[i], m)) != 0) return code;
        p = point_of(b, c, m);
        gather_point(g, &p, m, s->entries[i]->file);
    }
    g->missing_count = s->sample_count - g->ok_count - g->failed_count;
    return 0;
}
static int put_result(vp_json_writer *w, book *b, const book_cell *c, const gathered *g, measured *m) {
    const book_set *s = &b->sets[c->set];
    text_buffer row = {NULL, 0, 0};
    vp_json_writer one; /* a row stands on one line */
    vp_score_metric metric = point_of(b, c, m).metric;
    int code = 0;
    vp_json_begin_object(w);
    put_result_head(w, b, c, g, metric);
    vp_json_key(w, "per_sample_results");
    vp_json_begin_array(w);
    for (size_t i = 0; i < s->count && !code; i++) {
        point p;
        if ((entry_state(s->entries[i], c) & 3) == POINT_OPEN || entry_state(s->entries[i], c) < 0) continue;
        if ((code = read_point(b, c, s->entries[i], m)) != 0) break;
        p = point_of(b, c, m);
        row.bytes = 0;
        vp_json_writer_init_sink(&one, text_sink, &row, 0);
        put_row(&one, &p, m, g, s->entries[i]->file);
        if (vp_json_finish(&one) != VP_OK) w->result = one.result; else vp_json_raw(w, row.data, row.bytes);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
    free(row.data);
    return code;
}
/* One configuration -> FOLDER/NAME.json, by way of a temporary file. */
static int write_result(book *b, const book_cell *c, const char *folder, summaries *all) {
    char *temporary = join_path(folder, ".vlmprof-writing"), *path = join_path(folder, c->file_name);
    out_file *f = (out_file *)zeroed(1, sizeof *f);
    gathered *g = (gathered *)zeroed(1, sizeof *g);
    measured m;
    vp_json_writer w;
    int code;
    memset(&m, 0, sizeof m);
    code = gather_cell(b, c, g, &m);
    f->fd = code ? -1 : open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (!code && f->fd < 0) f->error = errno;
    if (f->fd >= 0) {
        vp_json_writer_init_sink(&w, out_sink, f, 1);
        code = put_result(&w, b, c, g, &m);
        if (!code && vp_json_finish(&w) != VP_OK && !f->error) code = complain(EXIT_WORK, "%s: %s", path, vp_result_text(w.result));
        out_sink(f, "\n", 1);
        out_flush(f);
        if (!f->error && fsync(f->fd)) f->error = errno;
        if (close(f->fd) && !f->error) f->error = errno;
    }
    if (!code && !f->error && rename(temporary, path)) f->error = errno;
    if (!code && !f->error) f->error = sync_folder(folder);
    if (f->error)
        code = complain(EXIT_OUTPUT, "%s cannot be written: %s; its points are in the journal: make room and run the same command again", path,
                        strerror(f->error));
    if (code) unlink(temporary);
    if (!code) {
        summarize(all, path, g);
        path = NULL;
    }
    measured_clear(&m);
    free(m.sizes.nodes);
    gathered_free(g);
    free(g);
    free(f);
    free(temporary);
    free(path);
    return code;
}

/* A result file that is there already must be of this plan; *status is malloc'ed, NULL without a file. */
static int check_result(const char *folder, const char *file_name, const char *fingerprint, char **status) {
    char head[512], wanted[48], *path = join_path(folder, file_name), *at;
    FILE *f = fopen(path, "rb");
    int code = 0;
    *status = NULL;
    if (f) {
        head[fread(head, 1, sizeof head - 1, f)] = 0;
        fclose(f);
        snprintf(wanted, sizeof wanted, "\"plan\": \"%s\"", fingerprint);
        if (!strstr(head, wanted) || (at = strstr(head, "\"status\": \"")) == NULL)
            code = complain(EXIT_USAGE, "%s is there already and belongs to another plan: use another --output_dir, or delete it", path);
        else *status = copy_text(at + 11, strcspn(at + 11, "\""));
    }
    free(path);
    return code;
}
/* Files of all configurations of the newest grid. */
static int write_results(book *b, const char *folder, summaries *all) {
    char *status;
    int code = 0;
    for (int32_t i = 0; i < b->cell_count && !code; i++) {
        if (!b->cells[i].is_wanted) continue;
        if ((code = check_result(folder, b->cells[i].file_name, b->plan, &status)) == 0) code = write_result(b, &b->cells[i], folder, all);
        free(status);
    }
    return code;
}

/* ============================================================================================== sweep >>sweep */
enum { FAILURES_IN_A_ROW = 8 }; /* then something is wrong with the machine, not with the points */
/* a point of the sample that is being measured */
typedef struct open_point {
    cell *c;
    vp_layout layout; const vp_layout *l; /* NULL: text only */
    work k;
    int is_open, has_bare, bare_is_due, is_first; /* first: of its configuration */
    int32_t runs, retries;
    int64_t last, spent_ns;               /* last: place of its last line */
    double *totals, *scratch;             /* [max_runs] */
} open_point;
typedef struct sweep {
    const options *o;
    model m;
    plan p;
    session s;
    journal j;
    book b;                         /* what was there when this process began */
    parsed scratch;
    timing *run;                    /* the one that is being measured */
    open_point *open;               /* per cell of a data set */
    shape *warm; size_t warm_count;
    vp_rank rank;
    char device[32];
    vp_stop_rule rule;
    int32_t max_retries, bare_every;
    int timing_off, kernel_pass, was_open;
    int64_t session_at, start_ns, runs_now;
    vp_telemetry telemetry; int64_t telemetry_ns; int has_telemetry, is_throttled;
    text_buffer held; int streak;   /* lines of points that failed in a row */
    size_t point_count, done, done_before; /* of this process */
    int64_t failed;
    summaries results; int has_merged;
} sweep;

static int sweep_message(const sweep *x, const char *what) {
    close_progress();
    return fprintf(stderr, "vlmprof: %s: %zu of %zu points are in %s; run the same command again to go on\n", what, x->done, x->point_count,
                   x->j.path) < 0;
}

/* ---- lines */
static int is_same_grid(const sweep *x) {
    size_t wanted = 0;
    for (int32_t i = 0; i < x->b.cell_count; i++) wanted += (size_t)x->b.cells[i].is_wanted;
    for (size_t i = 0; i < x->p.cell_count; i++) if (x->p.cells[i].in_book < 0 || !x->b.cells[x->p.cells[i].in_book].is_wanted) return 0;
    return wanted == x->p.cell_count;
}
static void put_head_cell(vp_json_writer *w, const sweep *x, const cell *c) {
    int32_t crops = 0;
    vp_json_begin_object(w);
    put_text(w, "file_name", c->file_name);
    put_int(w, "set", (int64_t)(c->set - x->p.sets));
    put_text(w, "tier", c->tier ? c->tier->name : NULL);
    vp_json_key(w, "target_vision_tokens");
    if (c->tier) vp_json_null(w); else vp_json_int(w, c->vision_tokens);
    vp_json_key(w, "max_crops");
    if (c->tier) vp_json_int(w, c->tier->max_crops);
    else if (vp_select_crops(&x->m.config.geometry, c->vision_tokens, &crops) == VP_OK) vp_json_int(w, crops);
    else vp_json_null(w);
    put_int(w, "top_k", c->top_k);
    put_int(w, "num_active_blocks", c->block_count);
    put_ints(w, "active_block_indices", c->blocks, c->block_count);
    vp_json_end_object(w);
}
static int write_head(sweep *x) {
    vp_json_writer *w = line_begin(&x->j);
    char hash[24];
    put_text(w, "schema", "vlmprof-journal-2");
    put_text(w, "plan", x->b.plan);
    put_int(w, "rank", x->rank.rank);
    put_int(w, "world_size", x->rank.world_size);
    put_text(w, "model", x->m.name);
    put_bool(w, "synthetic", x->m.synthetic);
    put_text(w, "timing", text_of(x->o, "timing"));
    put_bool(w, "ignore_eos", x->p.ignore_eos);
    put_int(w, "num_runs_per_sample", x->p.run_count);
    put_int(w, "num_total_blocks", x->m.config.block_count);
    put_int(w, "bare_every", x->bare_every);
    vp_json_key(w, "options");
    put_options(w, x->o);
    vp_json_key(w, "data");
    vp_json_begin_array(w);
    for (size_t i = 0; i < x->p.set_count; i++) {
        const dataset *d = &x->p.sets[i];
        vp_json_begin_object(w);
        put_text(w, "task", d->task);
        put_text(w, "path", d->path);
        put_text(w, "metric", vp_score_metric_of(d->metric)->name);
        put_int(w, "max_new_tokens", d->new_tokens);
        put_int(w, "num_samples", (int64_t)d->count);
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)d->hash);
        put_text(w, "content_hash", hash);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "configs");
    vp_json_begin_array(w);
    for (size_t i = 0; i < x->p.cell_count; i++) put_head_cell(w, x, &x->p.cells[i]);
    vp_json_end_array(w);
    return line_append(&x->j);
}
/* After the engine's first request, which is the cold one: where and how this session measures. */
static int write_session(sweep *x, const work *k, const timing *cold) {
    vp_json_writer *w = line_begin(&x->j);
    int64_t at = x->j.end;
    int code;
    vp_json_key(w, "session");
    vp_json_begin_object(w);
    put_provenance(w, x->o, x->s.engine);
    put_int(w, "rank", x->rank.rank);
    put_int(w, "world_size", x->rank.world_size);
    put_text(w, "launcher", x->rank.launcher);
    put_int(w, "stamp_cost_ns", vp_engine_stamp_cost_ns(x->s.engine));
    vp_json_key(w, "cold");
    vp_json_begin_object(w);
    put_double(w, "T_total", metric_of(cold, METRIC_TOTAL));
    put_double(w, "TTFT", metric_of(cold, METRIC_TTFT));
    put_int(w, "views", k->layout ? k->layout->views : 0);
    put_int(w, "total_sequence_length", sequence_of(k));
    put_int(w, "output_tokens", cold->token_count);
    vp_json_end_object(w);
    vp_json_end_object(w);
    code = line_append(&x->j);
    x->session_at = at;
    return code;
}
static int write_sample(sweep *x, size_t set, const sample *a) {
    vp_json_writer *w = line_begin(&x->j);
    put_int(w, "sample", a->id);
    put_int(w, "set", (int64_t)set);
    put_text(w, "prompt", a->prompt);
    put_int(w, "input_text_tokens", a->text_count);
    put_metadata(w, &x->scratch, a);
    return line_append(&x->j);
}
/* The beginning of a point's line; `last` becomes this line's place once it is written. */
static vp_json_writer *point_begin(sweep *x, const open_point *p, const sample *a) {
    vp_json_writer *w = line_begin(&x->j);
    put_text(w, "config", p->c->file_name);
    put_int(w, "sample_id", a->id);
    put_int(w, "prev", p->last);
    return w;
}
static int point_append(sweep *x, open_point *p) {
    int64_t at;
    text_buffer line;
    int code = line_end(&x->j);
    if (code) return code;
    if (x->held.bytes && (code = journal_append(&x->j, x->held.data, x->held.bytes)) != 0) return code; /* a success behind them: they stand */
    x->held.bytes = 0;
    x->streak = 0;
    at = x->j.end;
    line = x->j.line;
    if ((code = journal_append(&x->j, line.data, line.bytes)) == 0) p->last = at;
    return code;
}
static void put_stages(vp_json_writer *w, const vp_stage_times *t) {
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!t->ran[i]) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_array(w);
        vp_json_int(w, t->wall_ns[i]);
        vp_json_int(w, t->device_ns[i]);
        vp_json_int(w, t->launches[i]);
        vp_json_int(w, t->flops[i]);
        vp_json_int(w, t->bytes[i]);
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}
static int write_run(sweep *x, open_point *p, const sample *a, const timing *t) {
    vp_json_writer *w = point_begin(x, p, a);
    put_int(w, "run", p->runs);
    put_int(w, "session", x->session_at);
    put_int(w, "unix_s", (int64_t)time(NULL));
    put_int(w, "total_ns", t->total_ns);
    put_int(w, "stamps", x->timing_off ? 0 : t->times.stamps + CHAIN_STAMPS);
    put_stages(w, &t->times);
    vp_json_key(w, "step_ns");
    vp_json_begin_array(w);
    for (int32_t i = 0; !x->timing_off && i + 1 < t->token_count; i++) vp_json_int(w, t->step_ns[i]);
    vp_json_end_array(w);
    put_ints(w, "tokens", t->tokens, t->token_count);
    put_answer(w, "answer", t);
    put_bool(w, "ended_by_eos", t->ended_by_eos);
    put_bool(w, "throttled", x->is_throttled);
    vp_json_key(w, "telemetry");
    if (x->has_telemetry) put_telemetry(w, &x->telemetry); else vp_json_null(w);
    return point_append(x, p);
}
static void put_point_layout_of(vp_json_writer *w, const sweep *x, const open_point *p, const sample *a) {
    vp_tile_options tiles = cell_tiles(p->c);
    point q;
    memset(&q, 0, sizeof q);
    q.a = a;
    q.layout = p->l;
    q.tier = p->c->tier ? p->c->tier->name : NULL;
    q.top_k = p->c->top_k;
    q.block_count = p->c->block_count;
    if (p->l) {
        q.target_tokens = target_tokens_of(&tiles, p->l);
        q.target_crops = p->l->crops;
        if (!p->c->tier) vp_select_crops(&x->m.config.geometry, p->c->vision_tokens, &q.target_crops);
    }
    vp_json_key(w, "sizes");
    vp_json_begin_object(w);
    put_point_layout(w, &q);
    vp_json_end_object(w);
}
static int write_done(sweep *x, open_point *p, const sample *a, vp_stop stop) {
    vp_json_writer *w = point_begin(x, p, a);
    int code;
    put_int(w, "done", p->runs);
    put_text(w, "stop", vp_stop_name((int32_t)stop));
    put_int(w, "retries", p->retries);
    put_point_layout_of(w, x, p, a);
    code = point_append(x, p);
    p->is_open = 0;
    x->done += !code;
    return code;
}
/* hold: the line waits until a success shows that it is this point that fails; FAILURES_IN_A_ROW such lines are dropped, the points stay open. */
static int write_failed(sweep *x, open_point *p, const sample *a, const char *reason, int hold) {
    vp_json_writer *w = point_begin(x, p, a);
    int code;
    put_text(w, "failed", reason);
    put_int(w, "attempts", p->retries + 1);
    put_int(w, "retries", p->retries);
    put_point_layout_of(w, x, p, a);
    if ((code = line_end(&x->j)) != 0) return code;
    if (hold) text_add(&x->held, x->j.line.data, x->j.line.bytes);
    else code = journal_append(&x->j, x->j.line.data, x->j.line.bytes); /* says nothing about the failures before it */
    p->is_open = 0;
    x->done += !code;
    x->failed += !code;
    return code;
}
static int check_streak(sweep *x, int exit_code, const char *reason) {
    if (++x->streak < FAILURES_IN_A_ROW) return 0;
    for (const char *p = x->held.data; x->held.bytes && p && (p = strchr(p, '\n')) != NULL; p++) { x->done--; x->failed--; }
    complain(exit_code, "%d failures in a row, the last one: %s", FAILURES_IN_A_ROW, reason);
    sweep_message(x, "stopped, these points are left open");
    return exit_code;
}

/* ---- the engine */
/* The engine is open: says where "auto" went, and refuses to mix times of a CPU and of a GPU in one set of results. */
static int check_session(sweep *x) {
    const book_file *f = &x->b.files[0];
    const char *note = vp_engine_device_note(x->s.engine);
    if (note[0] && !x->was_open && !given(x->o, "quiet"))
        complain(0, gpu_of(x->s.engine) < 0 ? "device: cpu (no CUDA: %s)" : "device: %s", note);
    if (!f->knows_device || f->on_gpu == (gpu_of(x->s.engine) >= 0)) return 0;
    return complain(EXIT_DEVICE, "the points in %s were measured on %s, this is %s: use another --output_dir", x->j.path, f->device,
                    vp_engine_device(x->s.engine));
}
/* The longest request of the configurations that are left; those with the largest one can be dropped. */
static int engine_needs(const sweep *x, int32_t *sequence, int32_t *views) {
    int left = 0;
    *sequence = 1;
    *views = 1;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        const cell *c = &x->p.cells[i];
        if (c->dropped) continue;
        left++;
        if (c->need_sequence > *sequence) *sequence = c->need_sequence;
        if (c->need_views > *views) *views = c->need_views;
    }
    return left;
}
static int drop_largest(sweep *x, int32_t sequence, int32_t views, const char *reason) {
    int dropped = 0, left = 0;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        const cell *c = &x->p.cells[i];
        left += !c->dropped && !(views > 1 ? c->need_views == views : c->need_sequence == sequence);
    }
    for (size_t i = 0; left && i < x->p.cell_count; i++) {
        cell *c = &x->p.cells[i];
        if (c->dropped || !(views > 1 ? c->need_views == views : c->need_sequence == sequence)) continue;
        c->dropped = copy_text(reason, strlen(reason));
        complain(0, "%s does not fit: %s", c->file_name, reason);
        dropped++;
    }
    return dropped;
}
/* Opens the engine, for as many configurations as fit into memory. 0, or the exit code that ends the sweep; *r tells of the device. */
static int engine_ready(sweep *x, vp_result *r, vp_error *error) {
    int32_t sequence, views;
    int code = 0;
    *r = VP_OK;
    while (!x->s.engine && !code) {
        char reason[LINE_BYTES];
        vp_error none = {VP_OK, -1, "", ""};
        *error = none;
        if (!engine_needs(x, &sequence, &views)) return 0;
        *r = engine_try(x->o, &x->m, x->device, sequence, views, &x->s.engine, error);
        if (*r == VP_OK) {
            x->warm_count = 0;
            x->session_at = -1;
            code = check_session(x);
            x->was_open = 1;
            return code;
        }
        if (*r == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, sizeof reason, *r, error);
        if (*r == VP_ERR_MEMORY && drop_largest(x, sequence, views, reason)) continue;
        return x->was_open ? 0 : complain_result(exit_code_of(*r), x->m.name, *r, error);
    }
    return code;
}
/* One untimed short request per shape (views, sequence in steps of 256), image encoder included. */
static int warm_up(sweep *x, const work *k, vp_result *result, vp_error *error) {
    shape now = {k->layout ? k->layout->views : 0, sequence_of(k) / 256, k->top_k, k->block_count};
    work once = *k;
    int shape_is_warm = 0, knobs_are_warm = 0; /* a GPU records a decode step for each choice of knobs */
    for (size_t i = 0; i < x->warm_count; i++) {
        shape_is_warm |= x->warm[i].views == now.views && x->warm[i].sequence == now.sequence;
        knobs_are_warm |= x->warm[i].top_k == now.top_k && x->warm[i].block_count == now.block_count;
    }
    if (shape_is_warm && knobs_are_warm) return 0;
    if (once.new_tokens > 2) once.new_tokens = 2;
    once.ignore_eos = 1;
    once.timing = VP_TIMING_STAGE; /* the cold first request has its TTFT */
    if ((*result = run_chain(&x->s, &once, x->run, error)) != VP_OK) return 0;
    x->warm = (shape *)resize(x->warm, x->warm_count + 1, sizeof *x->warm);
    x->warm[x->warm_count++] = now;
    return x->session_at < 0 ? write_session(x, k, x->run) : 0;
}
static void read_telemetry(sweep *x) {
    vp_telemetry before = x->telemetry, now;
    int64_t start = vp_clock_ns();
    if (x->telemetry_ns && start - x->telemetry_ns < INT64_C(50000000)) return; /* reading has a cost, and clocks move slowly */
    x->telemetry_ns = start;
    if (vp_device_telemetry(gpu_of(x->s.engine), &now, NULL) != VP_OK) { x->has_telemetry = x->is_throttled = 0; return; }
    x->is_throttled = now.has_throttle_reasons ? (now.throttle_reasons & VP_THROTTLE_SLOWED) != 0
                    : x->has_telemetry && now.throttle_count > before.throttle_count;
    x->telemetry = now;
    x->has_telemetry = 1;
}
/* One run, tried again after errors of the device; afterwards `reason` is empty, or says why it failed. 0, or the exit code that ends the sweep. */
static int try_run(sweep *x, open_point *p, const work *k, char *reason, size_t capacity, int *is_device) {
    *is_device = 0;
    for (int32_t attempt = 0;; attempt++) {
        vp_error error = {VP_OK, -1, "", ""};
        vp_result r = VP_OK;
        int code = engine_ready(x, &r, &error);
        if (code) return code;
        if (p->c->dropped) { snprintf(reason, capacity, "%s", p->c->dropped); return 0; }
        if (r == VP_OK && (code = warm_up(x, k, &r, &error)) != 0) return code;
        if (r == VP_OK) r = run_chain(&x->s, k, x->run, &error);
        reason[0] = 0;
        if (r == VP_OK) return 0;
        if (r == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
        error_line(reason, capacity, r, &error);
        if (r != VP_ERR_DEVICE && r != VP_ERR_MEMORY) return 0;
        if (x->s.engine && vp_engine_broken(x->s.engine)) { /* the next attempt opens a new one: a new session */
            vp_engine_close(x->s.engine);
            x->s.engine = NULL;
        }
        if (attempt < x->max_retries) { p->retries++; continue; }
        if (r == VP_ERR_MEMORY) {
            p->c->dropped = copy_text(reason, strlen(reason));
            complain(0, "%s does not fit: %s", p->c->file_name, reason);
        } else *is_device = 1;
        return 0;
    }
}

/* ---- a sample */
/* Takes up a point where its last line in the journal left it. */
static int resume_point(sweep *x, open_point *p, const book_entry *e) {
    const vp_json *j = &x->b.scratch.json;
    int64_t state = e && p->c->in_book >= 0 ? entry_state(e, &x->b.cells[p->c->in_book]) : -1;
    int code;
    p->is_open = state < 0 || (state & 3) == POINT_OPEN || ((state & 3) == POINT_FAILED && given(x->o, "retry_failed"));
    p->runs = p->retries = 0;
    p->has_bare = 0;
    p->spent_ns = 0;
    p->last = state >= 0 && (state & 3) == POINT_OPEN ? state >> 2 : -1;
    for (int64_t at = p->last; at >= 0;) {
        int64_t run, prev;
        if ((code = book_line(&x->b, 0, at)) != 0) return code;
        run = node_int(j, 0, "run", -1);
        prev = node_int(j, 0, "prev", -1);
        if (run < 0) p->has_bare = 1;
        else if (run < x->rule.max_runs) {
            if (run >= p->runs) p->runs = (int32_t)run + 1;
            p->totals[run] = (double)node_int(j, 0, "total_ns", 0);
            p->spent_ns += node_int(j, 0, "total_ns", 0);
        }
        at = prev < at ? prev : -1;
    }
    return 0;
}
/* The pair that tells what stage times cost: the point once more without and with them, in random order. */
static int measure_bare(sweep *x, open_point *p, const sample *a) {
    uint64_t toss = hash_text(hash_number(hash_number(HASH_START, number_of(x->o, "seed")), a->id), p->c->file_name);
    int64_t ns[2] = {0, 0};
    int bare_first = (int)(toss >> 33 & 1), is_device, code;
    char reason[LINE_BYTES] = "";
    vp_json_writer *w;
    p->has_bare = 1;
    for (int i = 0; i < 2; i++) {
        work k = p->k;
        int bare = (i == 0) == bare_first;
        k.timing = bare ? VP_TIMING_OFF : VP_TIMING_STAGE;
        if ((code = try_run(x, p, &k, reason, sizeof reason, &is_device)) != 0) return code;
        if (reason[0]) return 0; /* the point has its runs; a pair less is no loss */
        ns[bare] = x->run->total_ns;
    }
    w = point_begin(x, p, a);
    vp_json_key(w, "bare");
    vp_json_begin_object(w);
    put_int(w, "bare_total_ns", ns[1]);
    put_int(w, "staged_total_ns", ns[0]);
    put_bool(w, "bare_first", bare_first);
    vp_json_end_object(w);
    put_int(w, "session", x->session_at);
    return point_append(x, p);
}
/* Once per shape and configuration, when asked for: every kernel between two stamps of its own. */
static int measure_kernels(sweep *x, open_point *p, const sample *a) {
    work k = p->k;
    int32_t views = p->l ? p->l->views : 0;
    char reason[LINE_BYTES] = "";
    int is_device, code;
    vp_json_writer *w;
    if (!x->kernel_pass) return 0;
    for (size_t i = 0; i < p->c->shape_count; i++) if (p->c->shapes[i].views == views && p->c->shapes[i].sequence == sequence_of(&k) / 256) return 0;
    p->c->shapes = (shape *)resize(p->c->shapes, p->c->shape_count + 1, sizeof *p->c->shapes);
    p->c->shapes[p->c->shape_count].views = views;
    p->c->shapes[p->c->shape_count++].sequence = sequence_of(&k) / 256;
    k.timing = VP_TIMING_KERNEL;
    if ((code = try_run(x, p, &k, reason, sizeof reason, &is_device)) != 0) return code;
    if (reason[0] || !x->run->times.has_kernels) return 0;
    w = line_begin(&x->j);
    vp_json_key(w, "kernels");
    vp_json_begin_object(w);
    put_text(w, "config", p->c->file_name);
    put_int(w, "sample_id", a->id);
    put_int(w, "views", views);
    put_int(w, "total_sequence_length", sequence_of(&k));
    put_double(w, "T_total", metric_of(x->run, METRIC_TOTAL));
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        double device = stage_value(x->run, i, DETAIL_DEVICE), kernels = (double)x->run->times.kernel_ns[i] / 1e6;
        if (!isfinite(device)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        put_double(w, "device_ms", device);
        put_double(w, "kernel_ms", kernels);
        put_double(w, "idle_share", device > 0 ? 1 - kernels / device : (double)NAN);
        vp_json_key(w, "parts"); /* kernel_ms by part of the model */
        vp_json_begin_object(w);
        for (int part = 0; part < VP_PART_COUNT; part++)
            if (x->run->times.part_ns[i][part]) put_double(w, vp_part_name((vp_part)part), (double)x->run->times.part_ns[i][part] / 1e6);
        vp_json_end_object(w);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
    return line_append(&x->j);
}
static int profile_point(sweep *x, const open_point *q, const sample *a, int is_first); /* >>profile */
static int close_point(sweep *x, open_point *p, const sample *a, vp_stop stop) {
    int code = p->bare_is_due && !p->has_bare ? measure_bare(x, p, a) : 0;
    if (!code) code = measure_kernels(x, p, a);
    if (!code) code = profile_point(x, p, a, p->is_first);
    return code ? code : write_done(x, p, a, stop);
}
static void sweep_progress(const sweep *x, const cell *c, const sample *a, int32_t run) {
    double seconds = (double)(vp_clock_ns() - x->start_ns) / 1e9;
    double rate = (double)(x->done - x->done_before) / (seconds > 1e-9 ? seconds : 1e-9);
    int64_t left = rate > 0 ? (int64_t)((double)(x->point_count - x->done) / rate) : 0;
    char eta[40] = "?";
    if (given(x->o, "quiet")) return;
    if (rate > 0) snprintf(eta, sizeof eta, "%lld:%02lld:%02lld", (long long)(left / 3600), (long long)(left / 60 % 60), (long long)(left % 60));
    show_progress("%zu of %zu points, %.2f points/s, ETA %s, sample %lld, run %d, %s", x->done, x->point_count, rate, eta, (long long)a->id, run,
                  c->file_name);
}
/* The next run of a point, and whether it was the last one. */
static int measure_run(sweep *x, open_point *p, const sample *a) {
    char reason[LINE_BYTES] = "";
    vp_stop stop = VP_STOP_NOT;
    int is_device, code;
    if (p->runs < x->rule.min_runs || vp_stop_decide(&x->rule, p->totals, (size_t)p->runs, p->spent_ns, p->scratch, &stop) != VP_OK
        || stop == VP_STOP_NOT) {
        if ((code = try_run(x, p, &p->k, reason, sizeof reason, &is_device)) != 0) return code;
        if (reason[0]) {
            if ((code = write_failed(x, p, a, reason, is_device)) != 0) return code;
            return is_device ? check_streak(x, EXIT_DEVICE, reason) : 0;
        }
        read_telemetry(x);
        if ((code = write_run(x, p, a, x->run)) != 0) return code;
        p->totals[p->runs++] = (double)x->run->total_ns;
        p->spent_ns += x->run->total_ns;
        x->runs_now++;
        sweep_progress(x, p->c, a, p->runs);
        if (p->runs < x->rule.min_runs || interrupted) return 0;
        if (vp_stop_decide(&x->rule, p->totals, (size_t)p->runs, p->spent_ns, p->scratch, &stop) != VP_OK || stop == VP_STOP_NOT) return 0;
    }
    return close_point(x, p, a, stop);
}
/* What can be said without the engine: 1 and a reason when the point fails. */
static int cannot_run(const sweep *x, const open_point *p, const char *image_reason, char *reason, size_t capacity) {
    int64_t need = positions_of(&p->k);
    if (!reason[0] && p->l && image_reason[0]) snprintf(reason, capacity, "%s", image_reason);
    if (!reason[0] && need > x->m.config.max_positions)
        snprintf(reason, capacity, "the sequence needs %lld positions with its new tokens, the model has %d", (long long)need,
                 x->m.config.max_positions);
    return reason[0] != 0;
}
/* A sample is loaded: its image, and a first look at every open point. */
static int sample_begin(sweep *x, size_t count, const sample *a, const entry *e, vp_image *image) {
    char image_reason[LINE_BYTES] = "", reason[LINE_BYTES];
    int tried = 0, vanished = 0, code = 0;
    for (size_t i = 0; i < count && !code; i++) {
        open_point *p = &x->open[i];
        if (!p->is_open) continue;
        p->l = cell_layout(&x->m, p->c, e, &p->layout, reason, sizeof reason);
        if (a->reason) snprintf(reason, sizeof reason, "%s", a->reason);
        cell_work(&x->p, p->c, a, p->l, image, &p->k);
        if (x->timing_off) p->k.timing = VP_TIMING_OFF;
        if (p->l && !tried++ && sample_image(a, image, image_reason, sizeof image_reason) == EXIT_DEVICE)
            return complain(EXIT_DEVICE, "%s", image_reason);
        if (image_reason[0] && access(a->image_path, R_OK)) vanished = 1;
        if (cannot_run(x, p, image_reason, reason, sizeof reason)) code = write_failed(x, p, a, reason, vanished);
    }
    return code || !vanished ? code : check_streak(x, EXIT_INPUT, image_reason);
}
/* All configurations of one sample, run by run: drift of the machine hits all alike. The image is decoded once. */
static int sweep_sample(sweep *x, cell *cells, size_t cell_count, size_t index) {
    const dataset *d = cells->set;
    size_t set = (size_t)(d - x->p.sets), open_count = 0;
    const book_entry *e = x->b.set_count ? book_find(&x->b.sets[set], 0, d->samples[index].id) : NULL;
    vp_image image = {0, 0, NULL};
    sample a;
    int code = 0;
    for (size_t i = 0; i < cell_count && !code; i++) {
        x->open[i].c = &cells[i];
        code = resume_point(x, &x->open[i], e);
        x->open[i].bare_is_due = x->bare_every && !x->timing_off && (index + i) % (size_t)x->bare_every == 0;
        x->open[i].is_first = !index;
        open_count += (size_t)x->open[i].is_open;
    }
    if (code || !open_count) return code;
    if ((code = dataset_sample(d, &x->m, index, &a)) != 0) return code;
    if (!e) code = write_sample(x, set, &a);
    if (!code) code = sample_begin(x, cell_count, &a, &d->samples[index], &image);
    for (int64_t round = 0; !code && !interrupted && open_count; round++) {
        open_count = 0;
        for (size_t i = 0; i < cell_count && !code && !interrupted; i++) {
            if (x->open[i].is_open && (x->open[i].runs <= round)) code = measure_run(x, &x->open[i], &a);
            open_count += (size_t)x->open[i].is_open;
        }
    }
    if (image.rgb) vp_image_free(&image);
    sample_free(&a);
    return code;
}
static int sweep_loop(sweep *x) {
    int code = 0;
    x->start_ns = vp_clock_ns();
    for (size_t first = 0; first < x->p.cell_count && !code;) {
        const dataset *d = x->p.cells[first].set;
        size_t last = first, at = 0, stride = 1, count = 0;
        while (last < x->p.cell_count && x->p.cells[last].set == d) last++;
        vp_sampler_shard(d->count, x->rank.rank, x->rank.world_size, &at, &stride, &count);
        for (; count && !code && !interrupted; at += stride, count--) code = sweep_sample(x, &x->p.cells[first], last - first, at);
        first = last;
    }
    if (!code && !interrupted && x->held.bytes) code = journal_append(&x->j, x->held.data, x->held.bytes);
    if (!code && !interrupted && !(x->b.files[0].is_finished && is_same_grid(x) && x->j.end == x->b.files[0].end)) {
        put_bool(line_begin(&x->j), "finished", 1);
        code = line_append(&x->j);
    }
    if (code != EXIT_OUTPUT) { /* what was written before an error counts */
        int synced = journal_sync(&x->j);
        if (!code) code = synced;
    }
    close_progress();
    return code;
}

/* ---- ranks */
/* "journal.jsonl" or "journal_rank1of2.jsonl": its numbers; 0 for other names. */
static int parse_journal_name(const char *name, int64_t *rank, int64_t *world_size) {
    long long r = 0, w = 1;
    int used = -1;
    if (!strcmp(name, "journal.jsonl")) used = 0;
    else if (sscanf(name, "journal_rank%lldof%lld.jsonl%n", &r, &w, &used) != 2 || used < 0 || name[used]) return 0;
    *rank = r;
    *world_size = w;
    return 1;
}
/* All journals of a folder into the book; `own` (may be NULL) is read through its open file. Returns 0 or an exit code. */
static int read_folder(book *b, const char *folder, const journal *own) {
    DIR *d = opendir(folder);
    int64_t rank, world_size;
    char **names = NULL;
    size_t count = 0;
    int code = 0;
    if (!d) return complain(EXIT_INPUT, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!parse_journal_name(e->d_name, &rank, &world_size)) continue;
        names = (char **)resize((void *)names, count + 1, sizeof *names);
        names[count++] = copy_text(e->d_name, strlen(e->d_name));
    }
    closedir(d);
    if (count) qsort((void *)names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count && !code; i++) {
        char *path = join_path(folder, names[i]);
        if (own && !strcmp(path, own->path)) code = book_read(b, path, own->fd, 0);
        else {
            int fd = open(path, O_RDONLY);
            struct stat info;
            if (fd < 0 || fstat(fd, &info)) code = complain(EXIT_INPUT, "%s: %s", path, strerror(errno));
            else if (info.st_size) code = book_read(b, path, fd, 1);
            else close(fd); /* of a rank that has just begun */
        }
        free(path);
    }
    texts_free(names, count);
    return code;
}
static book_file *book_rank(const book *b, int64_t rank) {
    for (int32_t i = 0; i < b->file_count; i++) if (b->files[i].rank == rank) return &b->files[i];
    return NULL;
}
/* One sweep's journals, each once, of one kind of device. Whether all of them are there is another question. */
static int check_parts(const book *b) {
    const book_file *first = b->files;
    for (int32_t i = 1; i < b->file_count; i++) {
        const book_file *f = &b->files[i];
        if (f->world_size != first->world_size)
            return complain(EXIT_USAGE, "%s is of %lld processes, %s of %lld: they are no parts of one sweep", first->path,
                            (long long)first->world_size, f->path, (long long)f->world_size);
        if (book_rank(b, f->rank) != f)
            return complain(EXIT_USAGE, "%s and %s are both of rank %lld: they overlap", book_rank(b, f->rank)->path, f->path, (long long)f->rank);
        if (f->grid != first->grid)
            return complain(EXIT_USAGE, "%s and %s have different grids: run the same command on every rank", first->path, f->path);
        if (f->knows_device && first->knows_device && f->on_gpu != first->on_gpu)
            return complain(EXIT_USAGE, "%s was measured on %s, %s on %s: their times do not belong into one file", first->path, first->device,
                            f->path, f->device);
    }
    return 0;
}
/* How many ranks have not finished; the first ones are named in `text`. */
static int64_t missing_ranks(const book *b, char *text, size_t capacity) {
    int64_t missing = 0, world_size = b->files[0].world_size;
    size_t used = 0;
    text[0] = 0;
    for (int64_t r = 0; r < world_size && r < 1000000; r++) {
        const book_file *f = book_rank(b, r);
        if (f && f->is_finished) continue;
        if (missing++ < 4)
            used += (size_t)snprintf(text + used, capacity - used, "%srank %lld (%s)", missing > 1 ? ", " : "", (long long)r,
                                     !f ? "no journal" : is_locked(f->fd) ? "still running" : "stopped");
        else if (missing == 6) used += (size_t)snprintf(text + used, capacity - used, " and more");
    }
    return missing;
}
static int64_t missing_points(const book *b) {
    int64_t missing = 0;
    for (int32_t i = 0; i < b->cell_count; i++)
        if (b->cells[i].is_wanted) missing += b->sets[b->cells[i].set].sample_count - b->cells[i].closed;
    return missing;
}
/* Journals of the book -> files. */
static int merge_book(book *b, const char *folder, int partial, summaries *results) {
    char text[400];
    int64_t missing;
    int code = check_parts(b);
    if (!code) code = book_sort(b);
    if (code) return code;
    if ((missing = missing_ranks(b, text, sizeof text)) > 0 && !partial)
        return complain(EXIT_WORK, "not merged: %lld of %lld ranks are not finished: %s; run the part of rank R with RANK=R WORLD_SIZE=%lld and "
                        "the same command, or merge with --partial", (long long)missing, (long long)b->files[0].world_size, text,
                        (long long)b->files[0].world_size);
    if ((missing = missing_points(b)) > 0 && !partial)
        return complain(EXIT_WORK, "not merged: %lld points are missing, their lines are damaged; run the same sweep command again, or merge with "
                        "--partial", (long long)missing);
    return write_results(b, folder, results);
}
/* What the merge was made from: the same text again means that there is nothing to do. */
static void merge_state(const book *b, char *text, size_t capacity) {
    uint64_t h = hash_text(HASH_START, VLMPROF_VERSION);
    for (int64_t r = 0; r < b->files[0].world_size && book_rank(b, r); r++) h = hash_number(h, book_rank(b, r)->end);
    snprintf(text, capacity, "merged %s %016llx\n", b->plan, (unsigned long long)h);
}
/* Holds the folder's merge lock while its file is open; -1 after a message. */
static int merge_lock(const char *folder) {
    char *path = join_path(folder, ".vlmprof-merge");
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0) complain(EXIT_OUTPUT, "%s cannot be opened: %s", path, strerror(errno));
    else lock_file(fd, 1);
    free(path);
    return fd;
}
static int are_files_there(const sweep *x) {
    int there = 1;
    for (size_t i = 0; i < x->p.cell_count; i++) {
        char *path = join_path(text_of(x->o, "output_dir"), x->p.cells[i].file_name);
        there &= access(path, F_OK) == 0;
        free(path);
    }
    return there;
}
/* After the last point: the files of a sweep; of several processes the one that finds all others finished writes them, once. */
static int sweep_merge(sweep *x) {
    const char *folder = text_of(x->o, "output_dir");
    char state[96], before[96] = "", text[400];
    int code, fd = merge_lock(folder);
    book all;
    if (fd < 0) return EXIT_OUTPUT;
    memset(&all, 0, sizeof all);
    if (read(fd, before, sizeof before - 1) < 0) before[0] = 0;
    code = read_folder(&all, folder, &x->j);
    if (!code) merge_state(&all, state, sizeof state);
    if (!code && missing_ranks(&all, text, sizeof text)) {
        if (!given(x->o, "quiet"))
            fprintf(stderr, "vlmprof: rank %d of %d is done; the last one writes the result files; not finished: %s%s\n", x->rank.rank,
                    x->rank.world_size, text, strstr(text, "(stopped)") || strstr(text, "(no journal)")
                    ? "; the part of a dead rank R can be run alone: RANK=R, the same WORLD_SIZE and the same command" : "");
    } else if (!code && (x->rank.world_size == 1 || strcmp(before, state) || !are_files_there(x))) {
        code = merge_book(&all, folder, 0, &x->results);
        x->has_merged = !code;
        if (!code && (pwrite(fd, state, strlen(state), 0) != (ssize_t)strlen(state) || ftruncate(fd, (off_t)strlen(state)) || fsync(fd)))
            code = complain(EXIT_OUTPUT, "%s/.vlmprof-merge cannot be written: %s", folder, strerror(errno));
    }
    book_free(&all);
    close(fd);
    return code;
}

/* ---- what is told at the end */
static void print_results(const summaries *all) {
    int width = 20;
    for (size_t i = 0; i < all->count; i++) {
        const char *name = strrchr(all->items[i].path, '/');
        int bytes = (int)strlen(name ? name + 1 : all->items[i].path) - 5;
        if (bytes > width) width = bytes;
    }
    fprintf(stderr, "%-*s %9s %9s %9s %9s %9s %9s %9s %9s\n", width, "P50 over samples, ms", "vision", "prefill", "decode", "total", "TTFT", "TPOT",
            "tokens/s", "accuracy");
    for (size_t i = 0; i < all->count; i++) {
        static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_TOTAL, METRIC_TTFT, METRIC_PER_TOKEN};
        const summary *s = &all->items[i];
        const char *name = strrchr(s->path, '/') ? strrchr(s->path, '/') + 1 : s->path;
        fprintf(stderr, "%-*.*s", width, (int)strlen(name) - 5, name);
        for (int k = 0; k < 6; k++) {
            if (isfinite(s->p50[columns[k]])) fprintf(stderr, " %9.3f", s->p50[columns[k]]); else fprintf(stderr, " %9s", "-");
        }
        if (isfinite(s->rate)) fprintf(stderr, " %9.2f", s->rate); else fprintf(stderr, " %9s", "-");
        if (isfinite(s->accuracy)) fprintf(stderr, " %9.4f\n", s->accuracy); else fprintf(stderr, " %9s\n", "-");
    }
}
static void put_results(vp_json_writer *w, const summaries *all) {
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < all->count; i++) {
        const summary *s = &all->items[i];
        vp_json_begin_object(w);
        put_text(w, "file", s->path);
        put_int(w, "num_ok", s->ok);
        put_int(w, "num_failed", s->failed);
        put_int(w, "num_missing", s->missing);
        for (int k = 0; k < METRIC_STAGE; k++) {
            char key[64];
            snprintf(key, sizeof key, "%s_p50", METRIC_KEYS[k]);
            put_double(w, key, s->p50[k]);
        }
        put_double(w, "tokens_per_s_p50", s->rate);
        put_double(w, "accuracy", s->accuracy);
        put_int(w, "accuracy_count", s->accuracy_count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static int print_summary(const sweep *x, int code) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "output_dir", text_of(x->o, "output_dir"));
    put_text(&w, "status", code ? "complete with failures" : "complete");
    put_text(&w, "journal", x->j.path);
    put_int(&w, "rank", x->rank.rank);
    put_int(&w, "world_size", x->rank.world_size);
    put_bool(&w, "merged", x->has_merged);
    put_int(&w, "points", (int64_t)x->point_count);
    put_int(&w, "measured_now", (int64_t)(x->done - x->done_before));
    put_int(&w, "runs_now", x->runs_now);
    put_int(&w, "failed", x->failed);
    put_bool(&w, "synthetic", x->m.synthetic);
    put_results(&w, &x->results);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return code;
}
static int sweep_report(const sweep *x) {
    int quiet = given(x->o, "quiet"), code = x->failed ? EXIT_WORK : 0;
    char rank[64] = "";
    if (interrupted) {
        sweep_message(x, "interrupted");
        return EXIT_INTERRUPTED;
    }
    if (x->rank.world_size > 1) snprintf(rank, sizeof rank, "rank %d of %d: ", x->rank.rank, x->rank.world_size);
    if (!quiet && x->results.count && (!code || isatty(STDERR_FILENO))) print_results(&x->results); /* a failing command says little */
    if (!quiet)
        fprintf(stderr, "vlmprof: %s%zu configurations, %zu points (%zu measured now, %lld failed) in %s%s\n", rank, x->p.cell_count, x->point_count,
                x->done - x->done_before, (long long)x->failed, text_of(x->o, "output_dir"),
                x->m.synthetic ? "; synthetic weights: latency is real, accuracy is not" : "");
    if (x->p.repeats && !quiet)
        fprintf(stderr, "vlmprof: %s repeats points %zu times; each was measured once\n", text_of(x->o, "sampling_strategy"), x->p.repeats);
    if (x->failed)
        fprintf(stderr, "vlmprof: failed points are rows with status \"failed\" and a reason in the result files; --retry_failed measures them "
                "again\n");
    return given(x->o, "json") ? print_summary(x, code) : code;
}

/* ---- before the first point */
static const char *environment(void *user, const char *name) {
    (void)user;
    return getenv(name);
}
/* Which part of the sweep this process has, and on which device. */
static int sweep_rank(sweep *x) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = vp_rank_from_environment(environment, NULL, &x->rank, &error);
    const char *device = text_of(x->o, "device");
    int32_t visible = 0, index;
    if (r != VP_OK) return complain_result(EXIT_USAGE, "environment", r, &error);
    snprintf(x->device, sizeof x->device, "%s", device);
    if (x->rank.world_size < 2 || (strcmp(device, "auto") && strcmp(device, "cuda")) || vp_device_count(&visible, NULL) != VP_OK) return 0;
    index = vp_rank_device(&x->rank, visible);
    if (index < 0 && x->rank.local_rank < 0) index = x->rank.rank % visible; /* run alone, by RANK and WORLD_SIZE only */
    snprintf(x->device, sizeof x->device, "cuda:%d", index);
    return 0;
}
/* Journals of another number of processes hold samples that this process would measure again. */
static int check_folder(const sweep *x, const char *folder) {
    DIR *d = opendir(folder);
    int64_t rank, world_size;
    int code = 0;
    for (struct dirent *e; d && !code && (e = readdir(d)) != NULL;)
        if (parse_journal_name(e->d_name, &rank, &world_size) && world_size != x->rank.world_size)
            code = complain(EXIT_USAGE, "%s/%s is of a sweep with %lld processes, this one has %d: go on with as many, or use another "
                            "--output_dir", folder, e->d_name, (long long)world_size, x->rank.world_size);
    if (d) closedir(d);
    return code;
}
static int sweep_rules(sweep *x) {
    const options *o = x->o;
    x->rule.min_runs = number_of(o, "num_runs_per_sample");
    x->rule.half_width = opt(o, "stop_half_width")->real / 100;
    x->rule.confidence = 0.95;
    x->rule.box_ns = (int64_t)(opt(o, "time_box_s")->real * 1e9);
    x->rule.max_runs = x->rule.half_width > 0 ? number_of(o, "max_runs") : x->rule.min_runs;
    x->max_retries = (int32_t)number_of(o, "max_retries");
    x->bare_every = (int32_t)number_of(o, "bare_every");
    x->timing_off = !strcmp(text_of(o, "timing"), "off");
    x->kernel_pass = given(o, "kernel_pass") && !x->timing_off;
    if (!(x->rule.half_width > 0) && (given(o, "max_runs") || given(o, "time_box_s")))
        return complain(EXIT_USAGE, "--max_runs and --time_box_s go with --stop_half_width: without it every point has --num_runs_per_sample runs");
    if (given(o, "max_runs") && x->rule.max_runs < x->rule.min_runs)
        return complain(EXIT_USAGE, "--max_runs %lld is less than --num_runs_per_sample %lld", (long long)x->rule.max_runs,
                        (long long)x->rule.min_runs);
    if (x->rule.max_runs < x->rule.min_runs) x->rule.max_runs = x->rule.min_runs;
    return 0;
}
static int check_sweep_options(const options *o) {
    vp_score_metric metric;
    if (!given(o, "data")) return complain(EXIT_USAGE, "sweep needs --data FILE.jsonl (or VQA v2's question file, or a folder of images)");
    if (!given(o, "output_dir") && !given(o, "plan")) return complain(EXIT_USAGE, "sweep needs --output_dir DIR");
    if (text_of(o, "metric") && vp_score_metric_find(text_of(o, "metric"), &metric) != VP_OK)
        return unknown_metric(text_of(o, "metric"), METRICS_OF_ROWS);
    if (text_of(o, "dataset_name") && (!text_of(o, "dataset_name")[0] || strchr(text_of(o, "dataset_name"), '/')))
        return complain(EXIT_USAGE, "--dataset_name becomes part of file names: it must not be empty or hold a slash");
    if (text_of(o, "dataset_name") && opt(o, "data")->count > 1)
        return complain(EXIT_USAGE, "--dataset_name names one --data file; several are named after their stems");
    if (text_of(o, "annotations") && opt(o, "data")->count > 1)
        return complain(EXIT_USAGE, "--annotations goes with one --data file; several find theirs by their official names");
    return 0;
}
/* The journal, what it holds already, and this process' share of the points. */
static int sweep_open(sweep *x) {
    const char *folder = text_of(x->o, "output_dir");
    char *status;
    int code;
    snprintf(x->b.plan, sizeof x->b.plan, "%016llx", (unsigned long long)x->p.fingerprint);
    x->j.path = journal_name(folder, x->rank.rank, x->rank.world_size);
    if ((code = make_folder(folder)) != 0 || (code = check_folder(x, folder)) != 0 || (code = journal_open(&x->j, &x->b)) != 0) return code;
    for (size_t i = 0; i < x->p.cell_count && !code; i++) {
        cell *c = &x->p.cells[i];
        size_t first = 0, stride = 1, count = 0;
        c->in_book = book_cell_named(&x->b, c->file_name);
        vp_sampler_shard(c->set->count, x->rank.rank, x->rank.world_size, &first, &stride, &count);
        x->point_count += count;
        if (c->in_book >= 0) {
            const book_cell *known = &x->b.cells[c->in_book];
            x->done += (size_t)(given(x->o, "retry_failed") ? known->closed - known->failed : known->closed);
            x->failed += given(x->o, "retry_failed") ? 0 : known->failed;
        }
        if ((code = check_result(folder, c->file_name, x->b.plan, &status)) == 0 && status && !x->j.end && strcmp(status, "partial")
            && x->rank.world_size == 1)
            code = complain(EXIT_USAGE, "%s/%s is there but %s is not: its points would be measured again; use another --output_dir, or delete "
                            "it", folder, c->file_name, x->j.path);
        free(status);
    }
    x->done_before = x->done;
    return !code && !is_same_grid(x) ? write_head(x) : code;
}
/* All that can be known before anything is measured or written. */
static int profile_check_sweep(const options *o); /* >>profile */
static int sweep_plan(sweep *x) {
    const options *o = x->o;
    int code;
    if ((code = check_sweep_options(o)) != 0 || (code = profile_check_sweep(o)) != 0) return code;
    if ((code = sweep_rules(x)) != 0 || (code = sweep_rank(x)) != 0) return code;
    if ((code = check_device(o)) != 0 || (code = check_gemm(o)) != 0 || (code = model_load(o, &x->m)) != 0) return code;
    return plan_make(o, &x->m, &x->p);
}
static int sweep_prepare(sweep *x) {
    int code = sweep_open(x);
    if (code) return code;
    x->run = timings_make(1, x->p.new_tokens);
    x->open = (open_point *)zeroed(x->p.cell_count, sizeof *x->open);
    for (size_t i = 0; i < x->p.cell_count; i++) {
        x->open[i].totals = (double *)zeroed((size_t)x->rule.max_runs + 1, sizeof *x->open[i].totals);
        x->open[i].scratch = (double *)zeroed((size_t)x->rule.max_runs + 1, sizeof *x->open[i].scratch);
    }
    for (size_t i = 0; i < x->b.shape_count && x->kernel_pass; i++) { /* shapes that were timed kernel by kernel */
        const book_shape *s = &x->b.shapes[i];
        for (size_t k = 0; k < x->p.cell_count; k++) {
            cell *c = &x->p.cells[k];
            if (c->in_book != s->cell) continue;
            c->shapes = (shape *)resize(c->shapes, c->shape_count + 1, sizeof *c->shapes);
            c->shapes[c->shape_count].views = (int32_t)s->views;
            c->shapes[c->shape_count++].sequence = (int32_t)(s->sequence / 256);
        }
    }
    x->s.m = &x->m;
    x->session_at = -1;
    return 0;
}
static void sweep_free(sweep *x) {
    timings_free(x->run, 1);
    for (size_t i = 0; x->open && i < x->p.cell_count; i++) { free(x->open[i].totals); free(x->open[i].scratch); }
    free(x->open);
    session_free(&x->s);
    book_free(&x->b);
    journal_close(&x->j);
    plan_free(&x->p);
    model_free(&x->m);
    summaries_free(&x->results);
    free(x->scratch.nodes);
    free(x->warm);
    free(x->held.data);
}
static int command_sweep(const options *o) {
    sweep x;
    int code;
    memset(&x, 0, sizeof x);
    x.o = o;
    x.j.fd = -1;
    sweep_runs = 1;
    code = sweep_plan(&x);
    if (!code && given(o, "plan")) code = show_plan(o, &x.m, &x.p);
    else if (!code) {
        code = sweep_prepare(&x);
        if (!code && !interrupted) code = sweep_loop(&x);
        if (!code && !interrupted) code = sweep_merge(&x);
        if (!code || code == EXIT_INTERRUPTED) code = sweep_report(&x);
    }
    sweep_free(&x);
    return code;
}

/* ---- merge by hand */
static int command_merge(const options *o) {
    const char *folder = text_of(o, "output_dir") ? text_of(o, "output_dir") : o->operand_count ? o->operands[0] : NULL;
    summaries results = {NULL, 0};
    int64_t failed = 0, missing = 0;
    book b;
    int code = 0, fd = -1;
    if (!folder || !o->operand_count) return complain(EXIT_USAGE, "merge needs the folders with the journals: vlmprof merge DIR...");
    memset(&b, 0, sizeof b);
    for (size_t i = 0; i < o->operand_count && !code; i++) code = read_folder(&b, o->operands[i], NULL);
    if (!code && !b.file_count) code = complain(EXIT_INPUT, "%s: there is no journal of a sweep in it", o->operands[0]);
    if (!code) code = make_folder(folder);
    if (!code && (fd = merge_lock(folder)) < 0) code = EXIT_OUTPUT;
    if (!code) code = merge_book(&b, folder, given(o, "partial"), &results);
    if (fd >= 0) close(fd);
    for (size_t i = 0; i < results.count; i++) { failed += results.items[i].failed; missing += results.items[i].missing; }
    if (!code && (failed || missing)) code = EXIT_WORK;
    if (results.count && !given(o, "quiet")) {
        if (!code || isatty(STDERR_FILENO)) print_results(&results);
        fprintf(stderr, "vlmprof: %zu result files from %d journals in %s (%lld points failed, %lld missing)\n", results.count, b.file_count, folder,
                (long long)failed, (long long)missing);
    }
    if (results.count && given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 1);
        vp_json_begin_object(&w);
        put_text(&w, "output_dir", folder);
        put_text(&w, "status", missing ? "partial" : failed ? "complete with failures" : "complete");
        put_results(&w, &results);
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) code = complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
    }
    summaries_free(&results);
    book_free(&b);
    return code;
}

/* ============================================================================================ convert >>convert
 * Everything is written into a folder of its own inside OUT and moved out at the end, config.json last: a folder without it is no model. What
 * this command wrote is listed in CONVERTED, so that it replaces its own output and nobody else's. */
#define CONVERTED "vlmprof_convert.json"
#define CONVERTING ".vlmprof-converting"
enum { SMALL_FILE_BYTES_MAX = 256 << 20 };

typedef struct names { char **items; size_t count; } names;
static void names_add(names *n, const char *name) {
    n->items = (char **)resize((void *)n->items, n->count + 1, sizeof *n->items);
    n->items[n->count++] = copy_text(name, strlen(name));
}
static int names_have(const names *n, const char *name) {
    for (size_t i = 0; i < n->count; i++) if (!strcmp(n->items[i], name)) return 1;
    return 0;
}
static void names_free(names *n) {
    for (size_t i = 0; i < n->count; i++) free(n->items[i]);
    free((void *)n->items);
    memset(n, 0, sizeof *n);
}
static int names_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }
/* the entries of a folder, in the order of their names */
static void names_of_folder(const char *folder, names *n) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) names_add(n, e->d_name);
    if (d) closedir(d);
    if (n->count) qsort((void *)n->items, n->count, sizeof *n->items, names_order);
}

typedef struct convert_job {
    const options *o;
    model m;
    const char *out;
    char *staging;
    names old;    /* what an earlier convert wrote here */
    int made_out; /* the folder was not there before */
    int packed;
} convert_job;

static int write_small(const char *folder, const char *name, const char *data, size_t bytes) {
    char *path = join_path(folder, name);
    FILE *f = fopen(path, "wb");
    int bad = !f;
    if (f) {
        bad = bytes && fwrite(data, 1, bytes, f) != bytes;
        bad |= fflush(f) != 0 || fsync(fileno(f)) != 0;
        bad |= fclose(f) != 0;
    }
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
    free(path);
    return bad ? EXIT_OUTPUT : 0;
}
static void remove_staging(const char *staging) {
    names inside = {NULL, 0};
    names_of_folder(staging, &inside);
    for (size_t i = 0; i < inside.count; i++) {
        char *path = join_path(staging, inside.items[i]);
        unlink(path);
        free(path);
    }
    names_free(&inside);
    rmdir(staging);
}

/* Files beside the weights that a model needs or that others read: configuration, tokenizer, code, licence. */
static int is_small_file(const char *name) {
    static const char *const endings[] = {".json", ".txt", ".py", ".jinja", ".md"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '.' || !strcmp(name, CONVERTED) || strstr(name, ".index.json")) return 0;
    if (!strncmp(name, "LICENSE", 7) || !strncmp(name, "NOTICE", 6)) return 1;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++) if (!strcmp(dot, endings[i])) return 1;
    return 0;
}
static int copy_small_files(const convert_job *j) {
    names inside = {NULL, 0};
    int code = 0;
    names_of_folder(j->m.name, &inside);
    for (size_t i = 0; i < inside.count && !code; i++) {
        char *path = join_path(j->m.name, inside.items[i]), *text = NULL;
        vp_error error = {VP_OK, -1, "", ""};
        struct stat info;
        size_t bytes = 0;
        if (is_small_file(inside.items[i]) && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            vp_result r = vp_file_read(path, SMALL_FILE_BYTES_MAX, &text, &bytes, &error);
            code = r == VP_OK ? write_small(j->staging, inside.items[i], text, bytes) : complain_result(EXIT_INPUT, path, r, &error);
        }
        free(text);
        free(path);
    }
    names_free(&inside);
    return code;
}

/* ---- what a preset lacks: its config.json and the byte tokenizer as a tokenizer.json */
static void put_preset_language(vp_json_writer *w, const vp_model_config *c) {
    put_int(w, "d_model", c->d_model);
    put_int(w, "n_heads", c->head_count);
    put_int(w, "n_layers", c->block_count);
    put_int(w, "moe_num_experts", c->expert_count);
    put_int(w, "moe_top_k", c->top_k);
    put_int(w, "mlp_hidden_size", 2 * (int64_t)c->expert_dim);
    put_int(w, "vocab_size", c->vocab_size);
    put_int(w, "embedding_size", c->embedding_size);
    put_int(w, "additional_vocab_size", c->additional_vocab_size);
    put_int(w, "max_sequence_length", c->max_sequence_length);
    put_int(w, "max_position_embeddings", c->max_positions);
    put_double(w, "rope_theta", c->rope_theta);
    put_double(w, "layer_norm_eps", (double)c->norm_eps);
    put_pair(w, "overlap_margins", c->geometry.margin_left_patches, c->geometry.margin_right_patches);
    put_int(w, "max_crops", c->geometry.max_crops);
    put_ints(w, "vit_layers", c->vit_layers, c->vit_layer_count);
}
static void put_preset_vision(vp_json_writer *w, const vp_model_config *c) {
    vp_json_key(w, "vision_backbone");
    vp_json_begin_object(w);
    put_text(w, "image_model_type", "openai");
    put_text(w, "image_mlp_activations", "quick_gelu");
    put_text(w, "resize_mode", "default");
    put_pair(w, "image_default_input_size", c->geometry.crop_px, c->geometry.crop_px);
    put_int(w, "image_patch_size", c->geometry.patch_px);
    put_int(w, "image_pos_patch_size", c->geometry.patch_px);
    put_int(w, "image_emb_dim", c->vit_width);
    put_int(w, "image_num_heads", c->vit_head_count);
    put_int(w, "image_num_key_value_heads", c->vit_head_count);
    put_int(w, "image_head_dim", c->vit_head_dim);
    put_int(w, "image_mlp_dim", c->vit_mlp_dim);
    put_int(w, "image_num_layers", c->vit_block_count);
    put_int(w, "image_num_pos", c->vit_positions);
    put_double(w, "image_norm_eps", (double)c->vit_norm_eps);
    vp_json_end_object(w);
}
static int write_preset_config(const convert_job *j) {
    static const char *const words[][2] = {
        {"model_type", "molmo"}, {"block_type", "moe"}, {"activation_type", "swiglu"}, {"crop_mode", "overlap-and-resize-c2"},
        {"image_padding_embed", "pad_and_partial_pad"}, {"image_pooling_2d", "attention-meanq"}, {"image_projector", "mlp"},
        {"layer_norm_type", "rms"}, {"rope_impl", "llama"}};
    static const char *const yes[] = {"attention_layer_norm", "attention_layer_norm_with_affine", "layer_norm_with_affine", "moe_dropless", "rope",
                                      "use_col_tokens"};
    static const char *const no[] = {"alibi", "bias_for_layer_norm", "include_bias", "norm_after", "normalize_input_embeds", "qkv_bias",
                                     "scale_logits", "unconditioned", "use_cls_feature", "weight_tying"};
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &text, 2);
    vp_json_begin_object(&w);
    vp_json_key(&w, "architectures");
    vp_json_begin_array(&w);
    vp_json_string(&w, "OLMoForCausalLM");
    vp_json_end_array(&w);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) put_text(&w, words[i][0], words[i][1]);
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) put_bool(&w, yes[i], 1);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) put_bool(&w, no[i], 0);
    put_int(&w, "fix_image_input_idx", 2);
    put_int(&w, "image_pooling_h", j->m.config.geometry.pool);
    put_int(&w, "image_pooling_w", j->m.config.geometry.pool);
    put_preset_language(&w, &j->m.config);
    put_preset_vision(&w, &j->m.config);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, "config.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* the character that stands for a byte in GPT-2's alphabet */
static void alphabet_text(int byte, char out[4]) {
    int code = byte, others = 0;
    for (int b = 0; b <= byte; b++) {
        int shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte && !shown) code = 256 + others;
        others += !shown;
    }
    memset(out, 0, 4);
    if (code < 128) out[0] = (char)code;
    else {
        out[0] = (char)(unsigned char)(0xC0 | code >> 6);
        out[1] = (char)(unsigned char)(0x80 | (code & 63));
    }
}
static void put_byte_level(vp_json_writer *w, const char *key) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_text(w, "type", "ByteLevel");
    put_bool(w, "add_prefix_space", 0);
    put_bool(w, "trim_offsets", 1);
    put_bool(w, "use_regex", 1);
    vp_json_end_object(w);
}
typedef struct special_token { const char *content; int32_t id; } special_token;
static void put_special_tokens(vp_json_writer *w, const special_token *specials, int count) {
    vp_json_key(w, "added_tokens");
    vp_json_begin_array(w);
    for (int i = 0; i < count; i++) {
        vp_json_begin_object(w);
        put_int(w, "id", specials[i].id);
        put_text(w, "content", specials[i].content);
        put_bool(w, "single_word", 0);
        put_bool(w, "lstrip", 0);
        put_bool(w, "rstrip", 0);
        put_bool(w, "normalized", 0);
        put_bool(w, "special", 1);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static int write_preset_tokenizer(const convert_job *j) {
    const vp_special_ids *ids = &j->m.ids;
    const special_token specials[] = {
        {"<|padding|>", ids->pad}, {"<|endoftext|>", ids->eos}, {"<im_start>", ids->im_start}, {"<im_end>", ids->im_end},
        {"<im_patch>", ids->im_patch}, {"<im_col>", ids->im_col}, {"<|image|>", ids->image}};
    enum { SPECIALS = sizeof specials / sizeof specials[0] };
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &text, 1);
    vp_json_begin_object(&w);
    put_text(&w, "version", "1.0");
    put_null(&w, "truncation");
    put_null(&w, "padding");
    put_special_tokens(&w, specials, SPECIALS);
    put_null(&w, "normalizer");
    put_byte_level(&w, "pre_tokenizer");
    put_null(&w, "post_processor");
    put_byte_level(&w, "decoder");
    vp_json_key(&w, "model");
    vp_json_begin_object(&w);
    put_text(&w, "type", "BPE");
    vp_json_key(&w, "vocab");
    vp_json_begin_object(&w);
    for (int b = 0; b < 256; b++) {
        char character[4];
        alphabet_text(b, character);
        put_int(&w, character, b + 2);
    }
    for (int i = 0; i < SPECIALS; i++) put_int(&w, specials[i].content, specials[i].id);
    vp_json_end_object(&w);
    vp_json_key(&w, "merges");
    vp_json_begin_array(&w);
    vp_json_end_array(&w);
    vp_json_end_object(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, "tokenizer.json", text.data, text.bytes);
    free(text.data);
    return code;
}

/* ---- the folder */
/* reads the list of an earlier convert; 0: there is none, or it is none of ours */
static int read_converted(convert_job *j) {
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *path = join_path(j->out, CONVERTED), *text = NULL;
    size_t bytes = 0;
    int good = vp_file_read(path, 1 << 20, &text, &bytes, NULL) == VP_OK && parse_json(&p, text, bytes, NULL) == VP_OK
               && node_is(&p.json, 0, VP_JSON_OBJECT) && vp_json_equals(&p.json, vp_json_get(&p.json, 0, "schema"), "vlmprof-convert-1");
    uint32_t files = good ? vp_json_get(&p.json, 0, "files") : VP_JSON_NONE;
    good = good && node_is(&p.json, files, VP_JSON_ARRAY);
    for (uint32_t i = 0; good && i < p.nodes[files].count; i++) {
        char *name = node_text(&p.json, vp_json_at(&p.json, files, i));
        good = name && *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
        if (good) names_add(&j->old, name);
        free(name);
    }
    if (!good) names_free(&j->old);
    free(p.nodes);
    free(text);
    free(path);
    return good;
}
/* OUT is new, empty, or of an earlier convert; a killed one's remains are swept away */
static int open_folder(convert_job *j) {
    names inside = {NULL, 0};
    struct stat in, out;
    int code = 0;
    if (stat(j->out, &out) == 0 && !j->m.synthetic && stat(j->m.name, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return complain(EXIT_USAGE, "convert: IN and OUT are the same folder; give OUT another name");
    j->made_out = access(j->out, F_OK) != 0;
    if ((code = make_folder(j->out)) != 0) return code;
    remove_staging(j->staging);
    names_of_folder(j->out, &inside);
    if (inside.count && !read_converted(j))
        code = complain(EXIT_USAGE, "convert: %s is not empty and not an earlier output of convert (%s ...): choose another folder", j->out,
                        inside.items[0]);
    names_free(&inside);
    if (!code && mkdir(j->staging, 0777)) code = complain(EXIT_OUTPUT, "%s: the folder cannot be made: %s", j->staging, strerror(errno));
    return code;
}
static int write_converted(const convert_job *j) {
    names inside = {NULL, 0};
    text_buffer text = {NULL, 0, 0};
    vp_json_writer w;
    int code;
    names_of_folder(j->staging, &inside);
    vp_json_writer_init_sink(&w, text_sink, &text, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-convert-1");
    put_text(&w, "version", VLMPROF_VERSION);
    put_text(&w, "layout", text_of(j->o, "layout"));
    put_text(&w, j->m.synthetic ? "synthetic" : "source", j->m.name);
    vp_json_key(&w, "seed");
    if (j->m.synthetic) vp_json_int(&w, number_of(j->o, "seed")); else vp_json_null(&w);
    vp_json_key(&w, "files");
    vp_json_begin_array(&w);
    for (size_t i = 0; i < inside.count; i++) json_lossy(&w, inside.items[i]);
    vp_json_end_array(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    code = write_small(j->staging, CONVERTED, text.data, text.bytes);
    free(text.data);
    names_free(&inside);
    return code;
}
static int write_weights(convert_job *j) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_convert_options c = vp_convert_options_default();
    vp_result r;
    c.config = &j->m.config;
    c.checkpoint = j->m.checkpoint;
    c.seed = (uint64_t)number_of(j->o, "seed");
    c.directory = j->staging;
    c.layout = j->packed ? VP_CONVERT_PACKED : VP_CONVERT_HF;
    c.shard_bytes = (uint64_t)number_of(j->o, "max_shard_mb") * 1000000u;
    c.threads = (int32_t)number_of(j->o, "threads");
    c.progress = engine_progress;
    r = vp_engine_convert(&c, &error);
    close_progress();
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), j->out, r, &error);
}
static int move_file(const convert_job *j, const char *name) {
    char *from = join_path(j->staging, name), *to = join_path(j->out, name);
    int bad = rename(from, to) != 0;
    if (bad) complain(EXIT_OUTPUT, "%s cannot be written: %s; convert again", to, strerror(errno));
    free(from);
    free(to);
    return bad ? EXIT_OUTPUT : 0;
}
/* From here on nothing is half: first the old config.json goes, last the new one comes. What stands beside the list of an earlier convert stays. */
static int commit_folder(convert_job *j) {
    names inside = {NULL, 0};
    char *path;
    int code = 0;
    names_of_folder(j->staging, &inside);
    for (size_t i = 0; i < inside.count && !code; i++) {
        path = join_path(j->out, inside.items[i]);
        if (access(path, F_OK) == 0 && strcmp(inside.items[i], CONVERTED) && !names_have(&j->old, inside.items[i]))
            code = complain(EXIT_USAGE, "convert: %s is not of an earlier convert and would be overwritten: choose another folder", path);
        free(path);
    }
    for (int config = 1; config >= 0 && !code; config--)
        for (size_t i = 0; i < j->old.count; i++) {
            if ((strcmp(j->old.items[i], "config.json") == 0) != config) continue;
            path = join_path(j->out, j->old.items[i]);
            unlink(path);
            free(path);
        }
    if (!code) code = move_file(j, CONVERTED);
    for (size_t i = 0; i < inside.count && !code; i++)
        if (strcmp(inside.items[i], CONVERTED) && strcmp(inside.items[i], "config.json")) code = move_file(j, inside.items[i]);
    sync_folder(j->out);
    if (!code) code = move_file(j, "config.json");
    names_free(&inside);
    return code;
}

static int convert_inputs(convert_job *j) {
    const options *o = j->o;
    size_t wanted = given(o, "synthetic") ? 1 : 2;
    int code;
    if (o->operand_count != wanted)
        return complain(EXIT_USAGE, "convert needs %s; see vlmprof convert --help",
                        wanted == 1 ? "OUT (and no IN) with --synthetic NAME" : "IN and OUT");
    j->m.synthetic = wanted == 1;
    j->m.name = j->m.synthetic ? text_of(o, "synthetic") : o->operands[0];
    j->out = o->operands[wanted - 1];
    if (!*j->out) return complain(EXIT_USAGE, "convert: OUT is empty");
    j->packed = !strcmp(text_of(o, "layout"), "packed");
    j->staging = join_path(j->out, CONVERTING);
    if (!j->m.synthetic && !is_folder(j->m.name)) return complain(EXIT_INPUT, "%s: no such folder", j->m.name);
    if ((code = j->m.synthetic ? load_preset(&j->m) : load_folder(&j->m)) != 0 || (code = checkpoint_open(&j->m)) != 0) return code;
    if (is_packed(&j->m)) return complain(EXIT_INPUT, "%s: the weights are packed already; give the folder they were made of", j->m.name);
    return 0;
}
static void report_converted(const convert_job *j, int64_t since_ns) {
    model written;
    memset(&written, 0, sizeof written);
    written.name = j->out;
    weigh_files(&written);
    fprintf(stderr, "vlmprof: %s: %s, %.4g GB of weights in %lld file%s, %.1f s%s\n", j->out, text_of(j->o, "layout"),
            (double)written.file_bytes / 1e9, (long long)written.file_count, written.file_count == 1 ? "" : "s",
            (double)(vp_clock_ns() - since_ns) / 1e9, j->m.synthetic ? "; random weights" : "");
}
static int command_convert(const options *o) {
    int64_t since_ns = vp_clock_ns();
    int code, opened = 0;
    convert_job j;
    memset(&j, 0, sizeof j);
    j.o = o;
    sweep_runs = 1; /* a signal lets the temporary files go first */
    code = convert_inputs(&j);
    if (!code) code = open_folder(&j);
    opened = !code;
    if (!code) code = j.m.synthetic ? write_preset_config(&j) : copy_small_files(&j);
    if (!code && j.m.synthetic) code = write_preset_tokenizer(&j);
    if (!code) code = write_weights(&j);
    if (!code) code = write_converted(&j);
    if (!code && interrupted) code = complain(EXIT_INTERRUPTED, "convert: interrupted; nothing was changed");
    if (!code) code = commit_folder(&j);
    if (opened) remove_staging(j.staging);
    sync_folder(j.out ? j.out : ".");
    if (code && j.made_out) rmdir(j.out); /* when it is empty */
    if (!code) report_converted(&j, since_ns);
    names_free(&j.old);
    free(j.staging);
    model_free(&j.m);
    return code;
}

/* ========================================================================================== family >>family
 * tile with --family, --checkpoint or --compare: sizes are gathered first, then counted, inverted or drawn. */
typedef struct image_size { int64_t width, height; char *file, *error; int code; } image_size; /* error: no size; code: the exit code it has alone */
typedef struct family_job {
    vp_family *families; size_t family_count;
    image_size *sizes; size_t size_count, size_capacity;
    int csv, json, compare, has_files;
    int64_t row_count, refused_count;
    vp_json_writer w;
} family_job;
#define COUNTED(member) offsetof(vp_vision_count, member)
static const column FAMILY_COLUMNS[] = { /* int64 of vp_vision_count */
    {"resized_width", COUNTED(resized_width_px)}, {"resized_height", COUNTED(resized_height_px)}, {"rows", COUNTED(rows)}, {"cols", COUNTED(cols)},
    {"tiles_with_global", COUNTED(views)}, {"feature_tokens", COUNTED(feature_tokens)}, {"separator_tokens", COUNTED(separator_tokens)},
    {"marker_tokens", COUNTED(marker_tokens)}, {"total_tokens", COUNTED(total_tokens)}};
enum { FAMILY_COLUMN_COUNT = sizeof FAMILY_COLUMNS / sizeof *FAMILY_COLUMNS };

/* ---- sizes */
static image_size *add_size(family_job *job, int64_t width, int64_t height, const char *file) {
    image_size *s;
    if (job->size_count == job->size_capacity) {
        job->size_capacity = job->size_capacity * 2 + 16;
        job->sizes = (image_size *)resize(job->sizes, job->size_capacity, sizeof *job->sizes);
    }
    s = &job->sizes[job->size_count++];
    memset(s, 0, sizeof *s);
    s->width = width;
    s->height = height;
    s->code = EXIT_USAGE;
    if (file) s->file = copy_text(file, strlen(file));
    job->has_files |= file != NULL;
    return s;
}
static void add_file(family_job *job, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    char *file = NULL, line[LINE_BYTES];
    size_t bytes = 0;
    int32_t width = 0, height = 0;
    vp_result r = vp_file_read(path, IMAGE_FILE_BYTES_MAX, &file, &bytes, &error);
    image_size *s;
    if (r == VP_OK) r = vp_image_size((const uint8_t *)file, bytes, &width, &height, &error);
    free(file);
    s = add_size(job, r == VP_OK ? width : 0, r == VP_OK ? height : 0, path);
    if (r == VP_OK) return;
    error_line(line, sizeof line, r, &error);
    s->error = copy_text(line, strlen(line));
    s->code = EXIT_INPUT;
}
static int add_folder(family_job *job, const char *path) {
    names n = {NULL, 0};
    const size_t before = job->size_count;
    names_of_folder(path, &n);
    for (size_t i = 0; i < n.count; i++) {
        char *file = join_path(path, n.items[i]);
        if (is_image_name(n.items[i]) && !is_folder(file)) add_file(job, file);
        free(file);
    }
    names_free(&n);
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "%s: there is no image in the folder", path);
}
static int add_operand(family_job *job, const char *text) {
    int64_t width = 0, height = 0;
    if (parse_size(text, "x", &width, &height)) add_size(job, width, height, NULL);
    else if (is_folder(text)) return add_folder(job, text);
    else if (access(text, F_OK) && text[strspn(text, "0123456789xX+-.,")] == 0) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "%s: want WIDTHxHEIGHT in pixels, like 640x480", text);
        add_size(job, 0, 0, NULL)->error = copy_text(line, strlen(line));
    } else add_file(job, text);
    return 0;
}
static int add_list(family_job *job, const char *path) {
    int from_stdin = !strcmp(path, "-");
    FILE *f = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL, line[LINE_BYTES];
    size_t capacity = 0, before = job->size_count;
    ssize_t bytes;
    if (!f) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = getline(&text, &capacity, f)) > 0) {
        int64_t width = 0, height = 0;
        char *start = text;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        start += strspn(start, " \t");
        if (!*start || *start == '#') continue;
        if (parse_size(start, "x \t,", &width, &height)) { add_size(job, width, height, NULL); continue; }
        snprintf(line, sizeof line, "not a size: %.40s", start);
        add_size(job, 0, 0, NULL)->error = copy_text(line, strlen(line));
    }
    bytes = ferror(f);
    if (!from_stdin) fclose(f);
    free(text);
    if (bytes) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    return job->size_count > before ? 0 : complain(EXIT_INPUT, "--sizes %s: there is no size in it", path);
}

/* ---- families */
static int unknown_family(const char *name) {
    const char *best = "";
    int least = 1000;
    for (int32_t i = 0; vp_family_at(i); i++) {
        int distance = edit_distance(name, vp_family_at(i)->name);
        if (distance < least) { least = distance; best = vp_family_at(i)->name; }
    }
    return complain(EXIT_USAGE, "--family: \"%.60s\" is not known; the nearest is %s; vlmprof tile --list_families shows all", name, best);
}
static vp_family *add_family(family_job *job) {
    job->families = (vp_family *)resize(job->families, job->family_count + 1, sizeof *job->families);
    return &job->families[job->family_count++];
}
static int families_of_checkpoint(family_job *job, const char *folder) {
    static const char *const config_names[3] = {"preprocessor_config.json", "processor_config.json", "config.json"};
    parsed p[3];
    const vp_json *files[3] = {NULL, NULL, NULL};
    char *text[3] = {NULL, NULL, NULL};
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    int code = 0, found = 0;
    memset(p, 0, sizeof p);
    for (int i = 0; i < 3 && !code; i++) {
        char *path = join_path(folder, config_names[i]);
        size_t bytes = 0;
        if (access(path, F_OK) == 0) {
            found++;
            r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text[i], &bytes, &error);
            if (r == VP_OK) r = parse_json(&p[i], text[i], bytes, &error);
            if (r == VP_OK && !node_is(&p[i].json, 0, VP_JSON_OBJECT)) r = vp_fail(&error, VP_ERR_FORMAT, -1, path, "not a JSON object");
            files[i] = &p[i].json;
            if (r != VP_OK) code = complain_result(exit_code_of(r), path, r, &error);
        }
        free(path);
    }
    if (!code && !found) code = complain(EXIT_INPUT, "%s: there is neither preprocessor_config.json nor config.json", folder);
    if (!code && (r = vp_family_from_config(add_family(job), files, &error)) != VP_OK) code = complain_result(EXIT_INPUT, folder, r, &error);
    for (int i = 0; i < 3; i++) { free(text[i]); free(p[i].nodes); }
    return code;
}
static int set_keys(family_job *job, const options *o) {
    const char *crops[2] = {"max_crops", text_of(o, "max_crops")};
    for (size_t i = 0; i < o->key_count + (given(o, "max_crops") ? 2 : 0); i += 2) {
        const char *const *key = i < o->key_count ? &o->keys[i] : crops;
        vp_error error = {VP_OK, -1, "", ""};
        size_t taken = 0;
        for (size_t k = 0; k < job->family_count; k++) {
            vp_result r = vp_family_set(&job->families[k], key[0], key[1], &error);
            if (r == VP_ERR_RANGE) return complain(EXIT_USAGE, "--%s: \"%s\": %s", key[0], key[1], error.text);
            taken += r == VP_OK;
        }
        for (size_t k = 0; k < i && k < o->key_count; k += 2)
            if (!strcmp(o->keys[k], key[0])) return complain(EXIT_USAGE, "--%s is given twice", key[0]);
        if (!taken) return complain(EXIT_USAGE, "unknown option --%s: %s; see vlmprof tile --help", key[0], error.text);
    }
    return 0;
}
static int families_of(family_job *job, const options *o) {
    static const char *const foreign[] = {"preprocess", "tier", "crops", "vision_tokens"};
    const char *wanted = job->compare ? text_of(o, "compare") : text_of(o, "family");
    int code = 0;
    if (given(o, "family") + given(o, "checkpoint") + given(o, "compare") != 1)
        return complain(EXIT_USAGE, "--family, --checkpoint and --compare exclude each other");
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (given(o, foreign[i])) return complain(EXIT_USAGE, "--%s is for Molmo's own tiling; leave it out with a family", foreign[i]);
    if (given(o, "checkpoint")) code = families_of_checkpoint(job, text_of(o, "checkpoint"));
    for (; !code && wanted; wanted = job->compare && strchr(wanted, ',') ? strchr(wanted, ',') + 1 : NULL) {
        size_t bytes = job->compare ? strcspn(wanted, ",") : strlen(wanted);
        char *name = copy_text(wanted, bytes);
        const vp_family_preset *preset = vp_family_find(name);
        if (preset) vp_family_default(preset, add_family(job)); else code = unknown_family(name);
        free(name);
    }
    return code ? code : set_keys(job, o);
}
/* a key's value in the words of the command line */
static void key_text(const vp_family *f, const vp_family_key *key, char *out, size_t capacity) {
    if (key->slot == VP_SLOT_RATIO) {
        snprintf(out, capacity, "%.15g", f->ratio);
    } else if (key->slot == VP_SLOT_SPLIT && f->preset->words) {
        const char *word = f->preset->words;
        for (int64_t i = 0; i < f->value[VP_SLOT_SPLIT]; i++) word = strchr(word, ' ') + 1;
        snprintf(out, capacity, "%.*s", (int)strcspn(word, " "), word);
    } else snprintf(out, capacity, "%lld", (long long)f->value[key->slot]);
}
static void put_keys(vp_json_writer *w, const vp_family *f, int count) {
    char text[64];
    for (int i = 0; i < count; i++) {
        const vp_family_key *key = &f->preset->keys[i];
        if (!key->name) continue;
        key_text(f, key, text, sizeof text);
        vp_json_key(w, key->name);
        if (key->slot == VP_SLOT_SPLIT && f->preset->words) vp_json_string(w, text);
        else if (key->slot == VP_SLOT_RATIO) vp_json_double(w, f->ratio);
        else vp_json_int(w, f->value[key->slot]);
    }
}

/* ---- rows */
static int is_constant(const vp_family *f) { return !strcmp(f->preset->rule, "constant"); }
static void family_head(family_job *job) {
    const vp_family *f = &job->families[0];
    if (job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (job->csv) {
        printf("width,height%s", job->compare || is_constant(f) ? ",family" : "");
        for (int i = 0; i < f->preset->column_count && !job->compare; i++) printf(",%s", f->preset->keys[i].name);
        for (int i = 0; i < FAMILY_COLUMN_COUNT; i++) printf(",%s", FAMILY_COLUMNS[i].name);
        printf(",error%s\n", job->has_files ? ",file" : "");
    } else printf("%-13s %-22s %11s %9s %6s %9s %10s %8s %8s\n", "size", "family", "resized", "rows,cols", "views", "features", "separators",
                  "markers", "tokens");
}
static int64_t counted(const vp_vision_count *c, int i) {
    int64_t value;
    memcpy(&value, (const char *)c + FAMILY_COLUMNS[i].offset, sizeof value);
    return value;
}
static void row_json(family_job *job, const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    vp_json_writer *w = &job->w;
    vp_json_begin_object(w);
    if (s->width) put_int(w, "width", s->width); else put_null(w, "width");
    if (s->width) put_int(w, "height", s->height); else put_null(w, "height");
    put_text(w, "family", f->preset->name);
    put_keys(w, f, f->preset->column_count);
    for (int i = 0; i < FAMILY_COLUMN_COUNT; i++)
        if (c && counted(c, i) >= 0) put_int(w, FAMILY_COLUMNS[i].name, counted(c, i)); else put_null(w, FAMILY_COLUMNS[i].name);
    put_text(w, "error", error);
    if (job->has_files) put_text(w, "file", s->file);
    vp_json_end_object(w);
}
static void row_csv(const family_job *job, const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    char text[64];
    if (s->width || !s->error) printf("%lld,%lld", (long long)s->width, (long long)s->height); else putchar(',');
    if (job->compare || is_constant(f)) printf(",%s", f->preset->name);
    for (int i = 0; i < f->preset->column_count && !job->compare; i++) {
        key_text(f, &f->preset->keys[i], text, sizeof text);
        printf(",%s", text);
    }
    for (int i = 0; i < FAMILY_COLUMN_COUNT; i++) {
        putchar(',');
        if (c && counted(c, i) >= 0) printf("%lld", (long long)counted(c, i));
    }
    putchar(',');
    if (error) print_csv_text(error);
    if (job->has_files) putchar(',');
    if (s->file) print_csv_text(s->file);
    putchar('\n');
}
static void row_text(const vp_family *f, const image_size *s, const vp_vision_count *c, const char *error) {
    char size[48], resized[48] = "-", cells[48] = "-", views[24] = "-";
    snprintf(size, sizeof size, "%lldx%lld", (long long)s->width, (long long)s->height);
    if (!c) { printf("%-13s %-22s refused: %s\n", s->width ? size : "-", f->preset->name, error); return; }
    if (c->resized_width_px >= 0) snprintf(resized, sizeof resized, "%lldx%lld", (long long)c->resized_width_px, (long long)c->resized_height_px);
    if (c->rows >= 0) snprintf(cells, sizeof cells, "%lld,%lld", (long long)c->rows, (long long)c->cols);
    if (c->views >= 0) snprintf(views, sizeof views, "%lld", (long long)c->views);
    printf("%-13s %-22s %11s %9s %6s %9lld %10lld %8lld %8lld%s%s\n", size, f->preset->name, resized, cells, views, (long long)c->feature_tokens,
           (long long)c->separator_tokens, (long long)c->marker_tokens, (long long)c->total_tokens, s->file ? "  " : "", s->file ? s->file : "");
}
/* One image in one family. Returns 0, or the exit code it has alone when it is alone and refused. */
static int family_row(family_job *job, const vp_family *f, const image_size *s, int alone) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count c;
    char line[LINE_BYTES] = "";
    vp_result r = VP_ERR_RANGE;
    if (s->error) snprintf(line, sizeof line, "%s", s->error);
    else if (s->width < 1 || s->height < 1 || s->width > VP_FAMILY_PX_LIMIT || s->height > VP_FAMILY_PX_LIMIT)
        snprintf(line, sizeof line, "%lldx%lld: sides must be 1..%d pixels", (long long)s->width, (long long)s->height, VP_FAMILY_PX_LIMIT);
    else if ((r = vp_family_count(f, (int32_t)s->width, (int32_t)s->height, &c, &error)) != VP_OK) error_line(line, sizeof line, r, &error);
    if (r != VP_OK && alone) return complain(s->code, "%s%s%s", s->file && !strstr(line, s->file) ? s->file : "", s->file ? ": " : "", line);
    job->refused_count += r != VP_OK;
    if (!job->row_count++) family_head(job);
    if (job->json) row_json(job, f, s, r == VP_OK ? &c : NULL, r == VP_OK ? NULL : line);
    else if (job->csv) row_csv(job, f, s, r == VP_OK ? &c : NULL, r == VP_OK ? NULL : line);
    else row_text(f, s, r == VP_OK ? &c : NULL, line);
    return 0;
}
static int family_rows(family_job *job) {
    const int alone = job->size_count == 1 && job->family_count == 1;
    int code = 0;
    for (size_t i = 0; i < job->size_count && !code; i++)
        for (size_t k = 0; k < job->family_count && !code; k++) code = family_row(job, &job->families[k], &job->sizes[i], alone);
    if (job->json && job->row_count) {
        vp_json_end_array(&job->w);
        vp_json_finish(&job->w);
        putchar('\n');
    }
    if (!code && job->refused_count) code = complain(EXIT_INPUT, "%lld of %lld rows refused; see their error", (long long)job->refused_count,
                                                    (long long)job->row_count);
    return code;
}

/* ---- the other way */
static int family_invert(family_job *job, const options *o) {
    int32_t (*sizes)[2] = (int32_t (*)[2])resize(NULL, job->size_count, sizeof *sizes);
    const double share = (double)number_of(o, "percentile") / 100.0;
    const int64_t tokens = number_of(o, "max_tokens");
    char images[64] = "the image";
    int code = 0;
    if (job->size_count > 1) snprintf(images, sizeof images, "%lld %% of %zu images", (long long)number_of(o, "percentile"), job->size_count);
    for (size_t i = 0; i < job->size_count && !code; i++) {
        const image_size *s = &job->sizes[i];
        if (s->error) code = complain(s->code, "%s", s->error);
        else if (s->width < 1 || s->height < 1 || s->width > VP_FAMILY_PX_LIMIT || s->height > VP_FAMILY_PX_LIMIT)
            code = complain(EXIT_USAGE, "%lldx%lld: sides must be 1..%d pixels", (long long)s->width, (long long)s->height, VP_FAMILY_PX_LIMIT);
        sizes[i][0] = (int32_t)(code ? 0 : s->width);
        sizes[i][1] = (int32_t)(code ? 0 : s->height);
    }
    if (!code && job->json) {
        vp_json_writer_init_sink(&job->w, file_sink, stdout, 2);
        vp_json_begin_array(&job->w);
    } else if (!code && job->csv) printf("family,key,value,unlimited,max_tokens,percentile,images\n");
    for (size_t k = 0; k < job->family_count && !code; k++) {
        const vp_family *f = &job->families[k];
        const vp_family_key *knob = vp_family_knob(f);
        vp_error error = {VP_OK, -1, "", ""};
        int64_t value = 0;
        int unlimited = 0;
        vp_result r = vp_family_largest(f, (const int32_t (*)[2])sizes, job->size_count, share, tokens, &value, &unlimited, &error);
        if (r != VP_OK && !job->compare) code = complain_result(EXIT_WORK, f->preset->name, r, &error);
        if (job->json && !code) {
            vp_json_begin_object(&job->w);
            put_text(&job->w, "family", f->preset->name);
            put_text(&job->w, "key", knob ? knob->name : NULL);
            if (r == VP_OK) put_int(&job->w, "value", value); else put_null(&job->w, "value");
            put_bool(&job->w, "unlimited", r == VP_OK && unlimited);
            put_int(&job->w, "max_tokens", tokens);
            put_int(&job->w, "percentile", number_of(o, "percentile"));
            put_int(&job->w, "images", (int64_t)job->size_count);
            put_text(&job->w, "error", r == VP_OK ? NULL : error.text);
            vp_json_end_object(&job->w);
        } else if (job->csv && !code) {
            printf("%s,%s,", f->preset->name, knob ? knob->name : "");
            if (r == VP_OK) printf("%lld", (long long)value);
            printf(",%d,%lld,%lld,%zu\n", r == VP_OK && unlimited, (long long)tokens, (long long)number_of(o, "percentile"), job->size_count);
        } else if (!code && r != VP_OK) printf("%-22s %s\n", f->preset->name, error.text);
        else if (!code && unlimited) printf("%-22s --%s: no value gives %s more than %lld tokens\n", f->preset->name, knob->name, images,
            (long long)tokens);
        else if (!code) printf("%-22s --%s %lld keeps %s at %lld tokens\n", f->preset->name, knob->name, (long long)value, images, (long long)tokens);
    }
    if (job->json && !code) {
        vp_json_end_array(&job->w);
        vp_json_finish(&job->w);
        putchar('\n');
    }
    free(sizes);
    return code;
}

/* ---- drawings: the canvas with its tiles at the left, the global view at the right; both at most 900 pixels high */
typedef struct canvas { uint8_t *rgb; int32_t width, height; } canvas;
static void paint(canvas *p, int32_t x, int32_t y, const uint8_t rgb[3]) {
    if (x >= 0 && y >= 0 && x < p->width && y < p->height) memcpy(p->rgb + ((size_t)y * (size_t)p->width + (size_t)x) * 3, rgb, 3);
}
/* the image, or a checkerboard where there is none, over a rectangle: every pixel is the mean of at most 4 x 4 samples */
static void paint_image(canvas *p, const vp_image *image, int32_t left, int32_t top, int32_t width, int32_t height) {
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            int32_t sum[3] = {0, 0, 0};
            uint8_t rgb[3];
            for (int k = 0; k < 16; k++) {
                const double u = (x + (k % 4 + 0.5) / 4) / width, v = (y + (k / 4 + 0.5) / 4) / height;
                if (image->rgb) {
                    const uint8_t *from = image->rgb + ((size_t)(v * image->height_px) * (size_t)image->width_px + (size_t)(u * image->width_px)) * 3;
                    for (int c = 0; c < 3; c++) sum[c] += from[c];
                } else for (int c = 0; c < 3; c++) sum[c] += (int)(u * image->width_px / 32) % 2 == (int)(v * image->height_px / 32) % 2 ? 200 : 150;
            }
            for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(sum[c] / 16);
            paint(p, left + x, top + y, rgb);
        }
    }
}
static void paint_frame(canvas *p, double left, double top, double right, double bottom, int thick, const uint8_t rgb[3]) {
    const int32_t x0 = (int32_t)left, y0 = (int32_t)top, x1 = (int32_t)right - 1, y1 = (int32_t)bottom - 1;
    for (int t = 0; t < thick; t++) {
        for (int32_t x = x0; x <= x1; x++) { paint(p, x, y0 + t, rgb); paint(p, x, y1 - t, rgb); }
        for (int32_t y = y0; y <= y1; y++) { paint(p, x0 + t, y, rgb); paint(p, x1 - t, y, rgb); }
    }
}
/* Where an image lies: fitted inside with its aspect kept (in the middle or at the top left), or squashed over all of it. `scale` is drawn pixels
 * a canvas pixel, 0 for the global view, which most families squash. */
static void draw_fit(const vp_family *f, const image_size *s, double width, double height, double scale, double spot[4]) {
    const char *rule = f->preset->rule, *name = f->preset->name;
    const int llama = !strcmp(name, "llama4") || !strcmp(name, "mllama"), deepseek = !strcmp(name, "deepseek_vl2");
    const int middle = !strcmp(rule, "molmo") || deepseek || (scale > 0 ? !strcmp(rule, "anyres") || !strcmp(name, "aria") : !strcmp(rule, "ocr"));
    const int corner = scale > 0 && (llama || !strcmp(rule, "padded") || !strcmp(rule, "growing"));
    double across = width / (double)s->width, down = height / (double)s->height, fit;
    if (llama && scale > 0) { /* not enlarged over a tile */
        const double tile = (double)f->value[VP_SLOT_TILE];
        const double most_w = ((double)s->width > tile ? (double)s->width : tile) * scale;
        const double most_h = ((double)s->height > tile ? (double)s->height : tile) * scale;
        across = (most_w < width ? most_w : width) / (double)s->width;
        down = (most_h < height ? most_h : height) / (double)s->height;
    }
    fit = across < down ? across : down;
    spot[2] = middle || corner ? (double)s->width * fit : width;
    spot[3] = middle || corner ? (double)s->height * fit : height;
    if (spot[2] < 1) spot[2] = 1;
    if (spot[3] < 1) spot[3] = 1;
    spot[0] = middle ? (width - spot[2]) / 2 : 0;
    spot[1] = middle ? (height - spot[3]) / 2 : 0;
}
/* Tiles in one frame each; the overlapping crops of Molmo shifted by their stride; token grids where the whole image is one view. */
static void draw_tiles(canvas *p, const vp_family *f, const vp_vision_count *c, double width, double height) {
    static const uint8_t colours[4][3] = {{230, 60, 60}, {50, 110, 230}, {40, 160, 70}, {240, 150, 20}};
    const int molmo = !strncmp(f->preset->name, "molmo", 5), second = !strcmp(f->preset->name, "molmo2");
    const double margin = molmo ? 112 : 0, stride = second ? 266 : molmo ? 224 : 0;
    int64_t rows = c->rows < 1 ? 1 : c->rows, cols = c->cols < 1 ? 1 : c->cols, merge = 1;
    int thick = 3;
    if (c->views < 0) { /* units of one token */
        if (f->value[VP_SLOT_MERGE] > 1 && c->feature_tokens < rows * cols) merge = f->value[VP_SLOT_MERGE];
        thick = 1;
        rows = (rows + merge - 1) / merge;
        cols = (cols + merge - 1) / merge;
        if (width / (double)cols < 4 || height / (double)rows < 4) rows = cols = 1; /* too fine to see */
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < cols; k++) {
            const double unit_x = molmo ? width / ((double)cols * stride + margin) : width / (double)cols;
            const double unit_y = molmo ? height / ((double)rows * stride + margin) : height / (double)rows;
            const double x = (double)k * (molmo ? stride * unit_x : unit_x), y = (double)r * (molmo ? stride * unit_y : unit_y);
            paint_frame(p, x, y, x + (molmo ? (stride + margin) * unit_x : unit_x), y + (molmo ? (stride + margin) * unit_y : unit_y), thick,
                        c->views < 0 ? colours[1] : colours[(r % 2) * 2 + k % 2]);
        }
}
/* pixels of the canvas that is cut into tiles */
static void draw_canvas(const vp_family *f, const image_size *s, const vp_vision_count *c, double *width, double *height) {
    const char *rule = f->preset->rule;
    const int molmo = !strcmp(rule, "molmo"), slices = c->rows > 1 && (!strcmp(rule, "lfm2") || !strcmp(rule, "slices"));
    const double tile = molmo ? 224 : (double)f->value[VP_SLOT_TILE], margin = molmo ? 112 : 0;
    *width = (double)(c->resized_width_px > 0 ? c->resized_width_px : s->width);
    *height = (double)(c->resized_height_px > 0 ? c->resized_height_px : s->height);
    if (!molmo && !slices && strcmp(f->preset->name, "mllama")) return; /* else the resized image is not the canvas */
    *width = (double)c->cols * tile + margin;
    *height = (double)c->rows * tile + margin;
}
static int draw_family(const vp_family *f, const image_size *s, const vp_image *image, const char *path) {
    static const uint8_t green[3] = {20, 120, 60};
    vp_error error = {VP_OK, -1, "", ""};
    vp_vision_count c;
    canvas p = {NULL, 0, 0};
    double width, height, scale, spot[4];
    int32_t w, h, side = 0, code = 0;
    vp_result r = vp_family_count(f, (int32_t)s->width, (int32_t)s->height, &c, &error);
    if (r != VP_OK) return complain_result(EXIT_USAGE, f->preset->name, r, &error);
    draw_canvas(f, s, &c, &width, &height);
    scale = 900 / (width > height ? width : height);
    if (scale > 1) scale = 1;
    w = (int32_t)(width * scale) > 1 ? (int32_t)(width * scale) : 1;
    h = (int32_t)(height * scale) > 1 ? (int32_t)(height * scale) : 1;
    if (c.views > c.rows * c.cols && c.rows * c.cols > 0) side = 224;
    p.width = w + (side ? side + 24 : 0);
    p.height = h > side ? h : side;
    p.rgb = (uint8_t *)resize(NULL, (size_t)p.width * (size_t)p.height, 3);
    memset(p.rgb, 235, (size_t)p.width * (size_t)p.height * 3);
    for (int32_t y = 0; y < h; y++) memset(p.rgb + (size_t)y * (size_t)p.width * 3, 0, (size_t)w * 3); /* what is padded stays black */
    draw_fit(f, s, w, h, scale, spot);
    paint_image(&p, image, (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
    draw_tiles(&p, f, &c, w, h);
    if (side) {
        if (!strcmp(f->preset->rule, "padded") || !strcmp(f->preset->rule, "growing")) { /* the whole canvas, squashed */
            spot[2] *= (double)side / w;
            spot[3] *= (double)side / h;
        } else draw_fit(f, s, side, side, 0, spot);
        for (int32_t y = 0; y < side; y++) memset(p.rgb + ((size_t)y * (size_t)p.width + (size_t)w + 24) * 3, 0, (size_t)side * 3);
        paint_image(&p, image, w + 24 + (int32_t)spot[0], (int32_t)spot[1], (int32_t)spot[2], (int32_t)spot[3]);
        paint_frame(&p, w + 24, 0, w + 24 + side, side, 3, green);
    }
    errno = 0;
    if (!stbi_write_png(path, p.width, p.height, 3, p.rgb, p.width * 3))
        code = complain(EXIT_OUTPUT, "--draw %s: cannot be written: %s", path, strerror(errno ? errno : EIO));
    free(p.rgb);
    return code;
}
static int family_draw(family_job *job, const options *o) {
    vp_image image = {0, 0, NULL};
    char reason[LINE_BYTES];
    int code = 0;
    if (job->size_count != 1 || job->family_count != 1) return complain(EXIT_USAGE, "--draw needs one family and one image or size");
    if (job->sizes->error) return complain(job->sizes->code, "%s", job->sizes->error);
    if (job->sizes->width < 1 || job->sizes->height < 1 || job->sizes->width > VP_FAMILY_PX_LIMIT || job->sizes->height > VP_FAMILY_PX_LIMIT)
        return complain(EXIT_USAGE, "sides must be 1..%d pixels", VP_FAMILY_PX_LIMIT);
    image.width_px = (int32_t)job->sizes->width;
    image.height_px = (int32_t)job->sizes->height;
    if (job->sizes->file && (code = load_image(job->sizes->file, &image, reason, sizeof reason)) != 0) return complain(code, "%s", reason);
    code = draw_family(&job->families[0], &job->sizes[0], &image, text_of(o, "draw"));
    if (image.rgb) vp_image_free(&image);
    return code;
}

/* ---- the list */
static void list_families(int json) {
    static vp_family f;
    char text[64];
    vp_json_writer w;
    if (json) {
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_array(&w);
    } else printf("%-27s %-15s %-10s keys and their published values\n", "family", "rule", "certainty");
    for (int32_t i = 0; vp_family_at(i); i++) {
        const vp_family_preset *p = vp_family_at(i);
        vp_family_default(p, &f);
        if (json) {
            vp_json_begin_object(&w);
            put_text(&w, "family", p->name);
            put_text(&w, "aliases", p->aliases);
            put_text(&w, "rule", p->rule);
            put_text(&w, "certainty", vp_certainty_text(p->certainty));
            vp_json_key(&w, "keys");
            vp_json_begin_object(&w);
            put_keys(&w, &f, VP_FAMILY_KEYS_LIMIT);
            vp_json_end_object(&w);
            vp_json_end_object(&w);
            continue;
        }
        printf("%-27s %-15s %-10s", p->name, p->rule, vp_certainty_text(p->certainty));
        for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++) {
            if (!p->keys[k].name) continue;
            key_text(&f, &p->keys[k], text, sizeof text);
            printf(" %s=%s", p->keys[k].name, text);
        }
        putchar('\n');
    }
    if (!json) return;
    vp_json_end_array(&w);
    vp_json_finish(&w);
    putchar('\n');
}

static int family_command(const options *o) {
    family_job job;
    int code = 0;
    memset(&job, 0, sizeof job);
    job.csv = given(o, "csv");
    job.json = given(o, "json");
    job.compare = given(o, "compare");
    if (job.csv && job.json) return complain(EXIT_USAGE, "--csv and --json exclude each other");
    if (given(o, "list_families")) {
        list_families(job.json);
        return 0;
    }
    code = families_of(&job, o);
    if (!code && !text_of(o, "sizes") && !o->operand_count)
        code = complain(EXIT_USAGE, "tile needs sizes (640x480), image files, folders, or --sizes LIST");
    for (size_t i = 0; i < o->operand_count && !code; i++) code = add_operand(&job, o->operands[i]);
    if (!code && text_of(o, "sizes")) code = add_list(&job, text_of(o, "sizes"));
    if (!code && given(o, "draw")) code = family_draw(&job, o);
    if (!code && given(o, "max_tokens")) code = family_invert(&job, o);
    else if (!code) code = family_rows(&job);
    for (size_t i = 0; i < job.size_count; i++) { free(job.sizes[i].file); free(job.sizes[i].error); }
    free(job.sizes);
    free(job.families);
    return code;
}

/* ============================================================================================ results >>results
 * Result files, ours and the experiments' own, -> flat arrays of what was measured. All that reports, estimates and comparisons are made of. */
/* One array a number that a sample has: means over its runs, ms. The first are METRIC_*, from COLUMN_STAGE on those of the stages by DETAIL_*. */
enum {
    COLUMN_ACCURACY = METRIC_STAGE, COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS, COLUMN_STAGE,
    COLUMN_COUNT = COLUMN_STAGE + DETAIL_COUNT * VP_STAGE_COUNT
};
static int stage_column(int stage, int detail) { return COLUMN_STAGE + detail * VP_STAGE_COUNT + stage; }

/* A configuration: its file. Texts are NULL and numbers -1 where a file does not say (the experiments' own say little). */
typedef struct result_file {
    char *path;
    int is_foreign;                  /* of the experiments: no "schema" */
    char *task, *tier;               /* tier NULL: by target tokens, or not said */
    int64_t target_tokens, top_k, block_count, total_blocks, expert_count;
    int32_t *blocks; size_t listed_blocks; /* active_block_indices */
    char *status, *model, *weights, *importance, *data, *data_hash, *metric, *timing, *device, *host, *version, *measured_from, *measured_to;
    int is_synthetic;
    int64_t seed, runs_per_sample, max_new_tokens, ignore_eos;
    int64_t failed_count, missing_count, throttled_runs, outlier_runs;
    double accuracy;                 /* of the file: a metric of a whole corpus has no other; NaN: none */
    double cost_share, cost_low, cost_high; /* of stage times: staged less bare, as a share of T_total */
    double kernel_ms[VP_STAGE_COUNT], kernel_device_ms[VP_STAGE_COUNT]; /* sums over the shapes whose kernels were timed; NaN: none */
    double part_ms[VP_STAGE_COUNT][VP_PART_COUNT]; /* kernel_ms by part; a stage without any: not known */
    size_t count;                    /* samples that were measured, ascending by id */
    int64_t *ids;
    double *columns[COLUMN_COUNT];   /* [count]; NULL: nobody has it. NaN: this sample has not */
    double *run_total; size_t *run_at; /* each run's T_total: of sample i from run_at[i] to run_at[i + 1] */
    char error[LINE_BYTES];          /* why the file cannot be used; empty: it can */
    int is_other;                    /* 1: JSON, but no result; 2: one of our own reports; 3: not even JSON */
} result_file;

/* Configurations of one data set, next to one another; the samples that all `paired` ones have, for paired statistics. */
typedef struct result_group {
    size_t first, count;
    size_t *paired, paired_count;    /* places in files of those with at least half of the most samples */
    int64_t *ids; size_t id_count;   /* common to all of them */
    size_t uncommon_count;           /* ids that some of them lack */
} result_group;
typedef struct text_list { char **items; size_t count; } text_list;
typedef struct results {
    result_file *files; size_t count; /* by task, image size, top_k, blocks */
    result_group *groups; size_t group_count;
    text_list notes;                  /* what a reader must know: files left out, samples that are missing */
} results;

static void text_list_add(text_list *l, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    l->items = (char **)resize(l->items, l->count + 1, sizeof *l->items);
    l->items[l->count++] = copy_text(line, strlen(line));
}
static void text_list_free(text_list *l) {
    for (size_t i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
}
static void result_file_free(result_file *f) {
    char **texts[] = {&f->path, &f->task, &f->tier, &f->status, &f->model, &f->weights, &f->importance, &f->data, &f->data_hash, &f->metric,
                      &f->timing, &f->device, &f->host, &f->version, &f->measured_from, &f->measured_to};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free(*texts[i]);
    for (int i = 0; i < COLUMN_COUNT; i++) free(f->columns[i]);
    free(f->blocks);
    free(f->ids);
    free(f->run_total);
    free(f->run_at);
    memset(f, 0, sizeof *f);
}
static void results_free(results *r) {
    for (size_t i = 0; i < r->count; i++) result_file_free(&r->files[i]);
    for (size_t i = 0; i < r->group_count; i++) {
        free(r->groups[i].paired);
        free(r->groups[i].ids);
    }
    free(r->files);
    free(r->groups);
    text_list_free(&r->notes);
    memset(r, 0, sizeof *r);
}
static double result_at(const result_file *f, int which, size_t row) { return f->columns[which] ? f->columns[which][row] : (double)NAN; }

/* Place of a sample, or f->count. */
static size_t result_row(const result_file *f, int64_t id) {
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->ids[middle] < id) low = middle + 1; else high = middle;
    }
    return low < f->count && f->ids[low] == id ? low : f->count;
}

/* ---- a file. What is wrong is written into f->error: files are read side by side. */
#define MS_MOST 1e12 /* thirty years: sums and squares of such values are still finite */
enum { RESULT_READERS = 4, RESULT_BYTES_MOST = 1 << 30 };
static int result_fail(result_file *f, const vp_json *j, uint32_t node, size_t row, const char *key, const char *what) {
    char row_text[96] = "";
    if (row != SIZE_MAX) snprintf(row_text, sizeof row_text, "per_sample_results[%zu], ", row);
    if (!f->error[0])
        snprintf(f->error, sizeof f->error, "%.500s: %sbyte %llu: %.80s %.100s", f->path, row_text,
                 (unsigned long long)(node == VP_JSON_NONE ? 0 : j->nodes[node].start), key, what);
    return 0;
}
static int key_is(const vp_json *j, uint32_t key, const char *text, size_t bytes) {
    return j->nodes[key].bytes == bytes && !memcmp(j->text + j->nodes[key].start, text, bytes);
}
/* A number within bounds, or NaN for null; 0: f->error says why not. */
static int result_number(result_file *f, const vp_json *j, uint32_t node, size_t row, const char *key, double least, double most, double *value) {
    *value = (double)NAN;
    if (node_is(j, node, VP_JSON_NULL)) return 1;
    if (!node_is(j, node, VP_JSON_NUMBER) || vp_json_to_double(j, node, value) != VP_OK) return result_fail(f, j, node, row, key, "is no number");
    if (!(*value >= least && *value <= most)) return result_fail(f, j, node, row, key, "is out of range");
    return 1;
}
/* A whole number of the head, or -1 where there is none. */
static int result_count(result_file *f, const vp_json *j, uint32_t object, const char *key, int64_t most, int64_t *value) {
    uint32_t node = vp_json_get(j, object, key);
    *value = -1;
    if (node == VP_JSON_NONE || node_is(j, node, VP_JSON_NULL)) return 1;
    if (vp_json_to_int(j, node, value) != VP_OK || *value < 0 || *value > most)
        return result_fail(f, j, node, SIZE_MAX, key, "is no count that makes sense");
    return 1;
}
static char *result_text(const vp_json *j, uint32_t object, const char *key) {
    char *text = node_text(j, vp_json_get(j, object, key));
    for (char *p = text; p && *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?'; /* it will stand in tables */
    return text;
}
static void result_put(result_file *f, size_t rows, int which, size_t row, double value) {
    if (!isfinite(value)) return;
    if (!f->columns[which]) {
        f->columns[which] = (double *)resize(NULL, rows, sizeof(double));
        for (size_t i = 0; i < rows; i++) f->columns[which][i] = (double)NAN;
    }
    f->columns[which][row] = value;
}

/* "stages" and "stage_detail": which stage a key names, or VP_STAGE_COUNT */
static int stage_of_key(const vp_json *j, uint32_t key) {
    int stage = 0;
    while (stage < VP_STAGE_COUNT && !key_is(j, key, vp_stage_name((vp_stage)stage), strlen(vp_stage_name((vp_stage)stage)))) stage++;
    return stage;
}
static int read_stage_times(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(j, object, VP_JSON_OBJECT)) return 1;
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        int stage = stage_of_key(j, key);
        double value;
        if (stage == VP_STAGE_COUNT) continue;
        if (!result_number(f, j, key + 1, row, vp_stage_name((vp_stage)stage), 0, MS_MOST, &value)) return 0;
        result_put(f, rows, stage_column(stage, 0), f->count, value);
    }
    return 1;
}
static int read_stage_details(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row) {
    uint32_t key = object + 1;
    if (!node_is(j, object, VP_JSON_OBJECT)) return 1;
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        int stage = stage_of_key(j, key);
        uint32_t item = key + 2;
        if (stage == VP_STAGE_COUNT || !node_is(j, key + 1, VP_JSON_OBJECT)) continue;
        for (uint32_t n = 0; n < j->nodes[key + 1].count; n++, item = j->nodes[item + 1].end) {
            int d = DETAIL_WALL;
            double value;
            while (d < DETAIL_COUNT && !key_is(j, item, DETAIL_KEYS[d], strlen(DETAIL_KEYS[d]))) d++;
            if (d == DETAIL_COUNT || d == DETAIL_DEVICE) continue; /* the device's time is what "stages" has: half of the time here is numbers */
            if (!result_number(f, j, item + 1, row, DETAIL_KEYS[d], 0, 1e24, &value)) return 0;
            result_put(f, rows, stage_column(stage, d), f->count, value);
        }
    }
    return 1;
}
/* "runs": T_total of each run */
static int read_runs(result_file *f, const vp_json *j, uint32_t object, size_t row, size_t *capacity) {
    uint32_t array = vp_json_get(j, object, "T_total"), item = array + 1;
    size_t at = f->run_at[f->count];
    if (!node_is(j, array, VP_JSON_ARRAY)) return 1;
    for (uint32_t i = 0; i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        double value;
        if (!result_number(f, j, item, row, "runs.T_total", 0, MS_MOST, &value)) return 0;
        if (!isfinite(value)) continue;
        if (at == *capacity) {
            *capacity = *capacity * 2 + 1024;
            f->run_total = (double *)resize(f->run_total, *capacity, sizeof(double));
        }
        f->run_total[at++] = value;
    }
    f->run_at[f->count + 1] = at;
    return 1;
}

typedef struct row_key { const char *name; int column; double least, most; } row_key;
static const row_key ROW_KEYS[] = {
    {"T_vision_total", METRIC_VISION, 0, MS_MOST}, {"T_LLM_prefill", METRIC_PREFILL, 0, MS_MOST}, {"T_LLM_decode", METRIC_DECODE, 0, MS_MOST},
    {"T_total", METRIC_TOTAL, 0, MS_MOST}, {"T_decode_per_token", METRIC_PER_TOKEN, 0, MS_MOST}, {"TTFT", METRIC_TTFT, 0, MS_MOST},
    {"unaccounted", METRIC_UNACCOUNTED, -MS_MOST, MS_MOST}, {"accuracy", COLUMN_ACCURACY, -1e6, 1e6},
    {"actual_num_crops", COLUMN_VIEWS, 0, 1e6}, {"actual_vision_tokens", COLUMN_VISION_TOKENS, 0, 1e9},
    {"input_text_tokens", COLUMN_TEXT_TOKENS, 0, 1e9}, {"actual_text_tokens", COLUMN_TEXT_TOKENS, 0, 1e9},
    {"total_sequence_length", COLUMN_SEQUENCE, 0, 1e9}, {"output_tokens", COLUMN_OUTPUT_TOKENS, 0, 1e9},
};
enum { ROW_KEY_COUNT = sizeof ROW_KEYS / sizeof ROW_KEYS[0] };
enum { ROW_ID = -1, ROW_STATUS = -2, ROW_STAGES = -3, ROW_DETAIL = -4, ROW_RUNS = -5, ROW_OTHER = -6 };
static int row_member(const vp_json *j, uint32_t key, const row_key **found) {
    static const struct { const char *name; int what; } others[] = {{"sample_id", ROW_ID}, {"status", ROW_STATUS}, {"stages", ROW_STAGES},
                                                                    {"stage_detail", ROW_DETAIL}, {"runs", ROW_RUNS}};
    for (int i = 0; i < ROW_KEY_COUNT; i++)
        if (key_is(j, key, ROW_KEYS[i].name, strlen(ROW_KEYS[i].name))) { *found = &ROW_KEYS[i]; return ROW_KEYS[i].column; }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) if (key_is(j, key, others[i].name, strlen(others[i].name))) return others[i].what;
    return ROW_OTHER;
}
/* What a row implies: views are crops and the global view; N tokens take N - 1 steps, where the experiments divided by N. */
static void finish_row(result_file *f, size_t rows) {
    double crops = result_at(f, COLUMN_VIEWS, f->count), tokens = result_at(f, COLUMN_OUTPUT_TOKENS, f->count), steps = tokens - 1;
    if (isfinite(crops)) f->columns[COLUMN_VIEWS][f->count] = crops + 1;
    else if (!f->is_foreign) {
        result_put(f, rows, COLUMN_VIEWS, f->count, 0); /* a question without an image */
        result_put(f, rows, COLUMN_VISION_TOKENS, f->count, 0);
    }
    if (f->is_foreign && f->columns[METRIC_PER_TOKEN])
        f->columns[METRIC_PER_TOKEN][f->count] = steps > 0 ? result_at(f, METRIC_DECODE, f->count) / steps : (double)NAN;
    result_put(f, rows, METRIC_CLOSURE, f->count, 1 - result_at(f, METRIC_UNACCOUNTED, f->count) / result_at(f, METRIC_TOTAL, f->count));
    f->count++;
}
/* Reads one object of per_sample_results; failed ones are counted and leave nothing. */
static int read_row(result_file *f, const vp_json *j, uint32_t object, size_t rows, size_t row, size_t *capacity) {
    uint32_t key = object + 1;
    int has_id = 0, failed = 0;
    if (!node_is(j, object, VP_JSON_OBJECT)) return result_fail(f, j, object, row, "the row", "is no object");
    f->run_at[f->count + 1] = f->run_at[f->count];
    for (int i = 0; i < COLUMN_COUNT; i++) if (f->columns[i]) f->columns[i][f->count] = (double)NAN; /* a failed row may have left a number */
    for (uint32_t m = 0; m < j->nodes[object].count; m++, key = j->nodes[key + 1].end) {
        const row_key *k = NULL;
        int what = row_member(j, key, &k);
        double value;
        if (what == ROW_ID) {
            has_id = vp_json_to_int(j, key + 1, &f->ids[f->count]) == VP_OK && f->ids[f->count] >= 0;
            if (!has_id) return result_fail(f, j, key + 1, row, "sample_id", "is no whole number from 0");
        } else if (what == ROW_STATUS) failed = !vp_json_equals(j, key + 1, "ok");
        else if (what == ROW_STAGES) { if (!read_stage_times(f, j, key + 1, rows, row)) return 0; }
        else if (what == ROW_DETAIL) { if (!read_stage_details(f, j, key + 1, rows, row)) return 0; }
        else if (what == ROW_RUNS) { if (!read_runs(f, j, key + 1, row, capacity)) return 0; }
        else if (what != ROW_OTHER) {
            if (!result_number(f, j, key + 1, row, k->name, k->least, k->most, &value)) return 0;
            if (k->column != COLUMN_TEXT_TOKENS || isfinite(value)) result_put(f, rows, k->column, f->count, value);
        }
    }
    if (!has_id) return result_fail(f, j, object, row, "sample_id", "is missing");
    if (failed) { f->failed_count++; return 1; }
    if (!(result_at(f, METRIC_TOTAL, f->count) > 0)) return result_fail(f, j, object, row, "T_total", "is missing or 0");
    finish_row(f, rows);
    return 1;
}

typedef struct row_order { int64_t id; size_t at; } row_order;
static int by_row_id(const void *a, const void *b) {
    const row_order *x = (const row_order *)a, *y = (const row_order *)b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : x->at < y->at ? -1 : x->at > y->at;
}
/* Rows ascending by id, as ours are written; a repeated id is an error. */
static int sort_rows(result_file *f) {
    row_order *order = (row_order *)resize(NULL, f->count, sizeof *order);
    double *moved = (double *)resize(NULL, f->count, sizeof *moved), *runs;
    size_t *at, filled = 0, sorted = 1;
    for (size_t i = 0; i < f->count; i++) { order[i].id = f->ids[i]; order[i].at = i; }
    while (sorted < f->count && f->ids[sorted - 1] < f->ids[sorted]) sorted++;
    if (sorted < f->count) qsort(order, f->count, sizeof *order, by_row_id);
    for (size_t i = 1; i < f->count && !f->error[0]; i++)
        if (order[i].id == order[i - 1].id)
            snprintf(f->error, sizeof f->error, "%.500s: sample_id %lld stands in two rows", f->path, (long long)order[i].id);
    if (sorted < f->count) {
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (!f->columns[c]) continue;
            for (size_t i = 0; i < f->count; i++) moved[i] = f->columns[c][order[i].at];
            memcpy(f->columns[c], moved, f->count * sizeof *moved);
        }
        runs = (double *)resize(NULL, f->run_at[f->count], sizeof *runs);
        at = (size_t *)zeroed(f->count + 1, sizeof *at);
        for (size_t i = 0; i < f->count; i++) {
            for (size_t r = f->run_at[order[i].at]; r < f->run_at[order[i].at + 1]; r++) runs[filled++] = f->run_total[r];
            at[i + 1] = filled;
            f->ids[i] = order[i].id;
        }
        free(f->run_total);
        free(f->run_at);
        f->run_total = runs;
        f->run_at = at;
    }
    free(order);
    free(moved);
    return !f->error[0];
}
static int read_rows(result_file *f, const vp_json *j, uint32_t array) {
    size_t rows = j->nodes[array].count, capacity = 0;
    uint32_t item = array + 1;
    f->ids = (int64_t *)zeroed(rows + 1, sizeof *f->ids); /* one more: the row behind the last is written to before it is known to be bad */
    f->run_at = (size_t *)zeroed(rows + 2, sizeof *f->run_at);
    for (size_t i = 0; i < rows; i++, item = j->nodes[item].end) if (!read_row(f, j, item, rows, i, &capacity)) return 0;
    return sort_rows(f);
}

static int read_blocks(result_file *f, const vp_json *j, uint32_t array) {
    uint32_t item = array + 1;
    if (!node_is(j, array, VP_JSON_ARRAY)) return 1;
    f->blocks = (int32_t *)zeroed((size_t)j->nodes[array].count + 1, sizeof *f->blocks);
    for (uint32_t i = 0; i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        int64_t value;
        if (vp_json_to_int(j, item, &value) != VP_OK || value < 0 || value > 1000000)
            return result_fail(f, j, item, SIZE_MAX, "active_block_indices", "holds no block's number");
        f->blocks[f->listed_blocks++] = (int32_t)value;
    }
    return 1;
}
static void read_kernel_pass(result_file *f, const vp_json *j, uint32_t array) {
    uint32_t item = array + 1;
    for (int s = 0; s < VP_STAGE_COUNT; s++) f->kernel_ms[s] = f->kernel_device_ms[s] = (double)NAN;
    memset(f->part_ms, 0, sizeof f->part_ms);
    for (uint32_t i = 0; node_is(j, array, VP_JSON_ARRAY) && i < j->nodes[array].count; i++, item = j->nodes[item].end) {
        uint32_t stages = vp_json_get(j, item, "stages");
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            uint32_t stage = vp_json_get(j, stages, vp_stage_name((vp_stage)s));
            double device = node_number(j, vp_json_get(j, stage, "device_ms")), kernels = node_number(j, vp_json_get(j, stage, "kernel_ms"));
            if (!(device >= 0 && device <= MS_MOST && kernels >= 0 && kernels <= MS_MOST)) continue;
            f->kernel_device_ms[s] = (isfinite(f->kernel_device_ms[s]) ? f->kernel_device_ms[s] : 0) + device;
            f->kernel_ms[s] = (isfinite(f->kernel_ms[s]) ? f->kernel_ms[s] : 0) + kernels;
            for (int part = 0; part < VP_PART_COUNT; part++) {
                double ms = node_number(j, vp_json_get(j, vp_json_get(j, stage, "parts"), vp_part_name((vp_part)part)));
                if (ms >= 0 && ms <= kernels * (1 + 1e-9)) f->part_ms[s][part] += ms;
            }
        }
    }
}
/* <task>_imgsize...: what the file name says of the task */
static char *task_of_path(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *end = strstr(name, "_imgsize");
    char *task = copy_text(name, end ? (size_t)(end - name) : strcspn(name, "."));
    for (char *p = task; *p; p++) if ((unsigned char)*p < 32 || *p == 127) *p = '?';
    return task;
}
static void read_provenance(result_file *f, const vp_json *j) {
    uint32_t from = vp_json_get(j, 0, "provenance"), config = vp_json_get(j, 0, "config"), cost = vp_json_get(j, 0, "tool_cost");
    uint32_t interval = vp_json_get(j, cost, "bare_difference_share_interval");
    vp_model_config preset;
    f->device = result_text(j, from, "device");
    f->host = result_text(j, from, "host");
    f->version = result_text(j, from, "version");
    f->measured_from = result_text(j, 0, "measured_from");
    f->measured_to = result_text(j, 0, "measured_to");
    f->weights = result_text(j, config, "weights");
    f->importance = result_text(j, config, "importance_scores_file");
    f->seed = node_int(j, config, "seed", -1);
    f->ignore_eos = vp_json_get(j, config, "ignore_eos") == VP_JSON_NONE ? -1 : node_is(j, vp_json_get(j, config, "ignore_eos"), VP_JSON_TRUE);
    f->cost_share = node_number(j, vp_json_get(j, cost, "bare_difference_share"));
    f->cost_low = node_number(j, vp_json_at(j, interval, 0));
    f->cost_high = node_number(j, vp_json_at(j, interval, 1));
    if (f->expert_count < 0 && f->is_synthetic && f->model && vp_model_config_preset(f->model, &preset) == VP_OK)
        f->expert_count = preset.expert_count;
}
static int read_head(result_file *f, const vp_json *j) {
    static const char *const stats[] = {"aggregate_stats", "latency_stats"};
    uint32_t node;
    f->is_foreign = vp_json_get(j, 0, "schema") == VP_JSON_NONE;
    f->task = result_text(j, 0, "dataset_name");
    if (!f->task) f->task = task_of_path(f->path);
    f->tier = result_text(j, 0, "tier");
    f->status = result_text(j, 0, "status");
    f->model = result_text(j, 0, "model");
    f->data = result_text(j, 0, "data");
    f->data_hash = result_text(j, 0, "data_hash");
    f->metric = result_text(j, 0, "accuracy_metric");
    f->timing = result_text(j, 0, "timing");
    f->is_synthetic = node_is(j, vp_json_get(j, 0, "synthetic"), VP_JSON_TRUE);
    if (!result_count(f, j, 0, "target_vision_tokens", 1000000000, &f->target_tokens) || !result_count(f, j, 0, "top_k", 1000000, &f->top_k)
        || !result_count(f, j, 0, "num_active_blocks", 1000000, &f->block_count)
        || !result_count(f, j, 0, "num_total_blocks", 1000000, &f->total_blocks) || !result_count(f, j, 0, "num_experts", 1000000, &f->expert_count)
        || !result_count(f, j, 0, "num_runs_per_sample", 1000000, &f->runs_per_sample)
        || !result_count(f, j, 0, "max_new_tokens", 1000000000, &f->max_new_tokens)
        || !result_count(f, j, 0, "num_missing", INT64_C(1) << 60, &f->missing_count)
        || !result_count(f, j, 0, "num_throttled_runs", INT64_C(1) << 60, &f->throttled_runs)
        || !result_count(f, j, 0, "num_outlier_runs", INT64_C(1) << 60, &f->outlier_runs)) return 0;
    if (f->top_k < 1) return result_fail(f, j, vp_json_get(j, 0, "top_k"), SIZE_MAX, "top_k", "is missing or 0");
    if (f->block_count < 1) return result_fail(f, j, vp_json_get(j, 0, "num_active_blocks"), SIZE_MAX, "num_active_blocks", "is missing or 0");
    node = vp_json_get(j, 0, "accuracy");
    f->accuracy = (double)NAN;
    if (node != VP_JSON_NONE && !result_number(f, j, node, SIZE_MAX, "accuracy", -1e6, 1e6, &f->accuracy)) return 0;
    for (int i = 0; i < 2; i++) { /* by one of its names; what it says is computed again from the rows */
        node = vp_json_get(j, 0, stats[i]);
        if (node != VP_JSON_NONE && !node_is(j, node, VP_JSON_OBJECT)) return result_fail(f, j, node, SIZE_MAX, stats[i], "is no object");
    }
    read_provenance(f, j);
    read_kernel_pass(f, j, vp_json_get(j, 0, "kernel_pass"));
    return read_blocks(f, j, vp_json_get(j, 0, "active_block_indices"));
}
/* Reads f->path into f; f->is_other or f->error where it is not to be used. */
static void read_result(result_file *f, parsed *scratch) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_json *j = &scratch->json;
    char *text = NULL, *schema;
    size_t bytes = 0;
    uint32_t rows;
    vp_result r = vp_file_read(f->path, RESULT_BYTES_MOST, &text, &bytes, &error);
    if (r == VP_OK && (r = parse_json(scratch, text, bytes, &error)) != VP_OK) {
        f->is_other = 3;
        snprintf(f->error, sizeof f->error, "%.500s: byte %lld: %.200s", f->path, (long long)error.offset,
                 error.text[0] ? error.text : vp_result_text(r));
    } else if (r != VP_OK) {
        error_line(f->error, sizeof f->error, r, &error);
        if (!strstr(f->error, f->path)) snprintf(f->error, sizeof f->error, "%.500s: %.200s", f->path, vp_result_text(r));
    } else {
        schema = result_text(j, 0, "schema");
        rows = vp_json_get(j, 0, "per_sample_results");
        if (schema && (!strncmp(schema, "vlmprof-report", 14) || !strncmp(schema, "vlmprof-estimator", 17))) f->is_other = 2;
        else if (!node_is(j, rows, VP_JSON_ARRAY) || (schema && strncmp(schema, "vlmprof-sweep-", 14))) f->is_other = 1;
        else if (read_head(f, j) && read_rows(f, j, rows) && !f->count && !f->failed_count)
            snprintf(f->error, sizeof f->error, "%.500s: per_sample_results is empty", f->path);
        free(schema);
    }
    free(text);
}

/* ---- many files */
static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int result_name_is_ours(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    return strstr(name, "_imgsize") != NULL;
}
/* The *.json of a folder, or the file itself; 0 or an exit code. */
static int list_results(text_list *paths, const char *operand) {
    size_t first = paths->count;
    DIR *d;
    if (!is_folder(operand)) {
        text_list_add(paths, "%s", operand);
        return 0;
    }
    d = opendir(operand);
    if (!d) return complain(EXIT_INPUT, "%s: the folder cannot be read: %s", operand, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const char *dot = strrchr(e->d_name, '.');
        char *path;
        if (e->d_name[0] == '.' || !dot || strcmp(dot, ".json")) continue;
        path = join_path(operand, e->d_name);
        text_list_add(paths, "%s", path);
        free(path);
    }
    closedir(d);
    if (paths->count == first)
        return complain(EXIT_INPUT, "%s: the folder holds no result files (*_imgsize*.json): run vlmprof sweep, or merge", operand);
    qsort(paths->items + first, paths->count - first, sizeof *paths->items, by_text);
    return 0;
}
/* Image sizes from small to large: tiers in their order, other names behind them, then target tokens. */
static int64_t size_rank(const result_file *f) {
    if (f->tier) {
        for (int32_t i = 0; vp_tier_at(i); i++) if (!strcmp(f->tier, vp_tier_at(i)->name)) return i;
        return 100;
    }
    return 1000 + f->target_tokens;
}
static int compare_settings(const result_file *x, const result_file *y) { /* 0: the same point of the grid */
    int task = strcmp(x->task, y->task), tier = strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
    if (task) return task;
    if (size_rank(x) != size_rank(y)) return size_rank(x) < size_rank(y) ? -1 : 1;
    if (tier) return tier;
    if (x->top_k != y->top_k) return x->top_k < y->top_k ? -1 : 1;
    return x->block_count != y->block_count ? (x->block_count < y->block_count ? -1 : 1) : 0;
}
static int by_setting(const void *a, const void *b) {
    const result_file *x = (const result_file *)a, *y = (const result_file *)b;
    int order = compare_settings(x, y);
    return order ? order : strcmp(x->path, y->path);
}
/* "medium k4 b12"; "576 tokens k4 b12" */
static const char *setting_text(const result_file *f, char out[80]) {
    if (f->tier) snprintf(out, 80, "%.30s k%lld b%lld", f->tier, (long long)f->top_k, (long long)f->block_count);
    else if (f->target_tokens >= 0)
        snprintf(out, 80, "%lld tokens k%lld b%lld", (long long)f->target_tokens, (long long)f->top_k, (long long)f->block_count);
    else snprintf(out, 80, "k%lld b%lld", (long long)f->top_k, (long long)f->block_count);
    return out;
}

/* Configurations that take part in paired statistics, and the samples that all of them have. */
static void pair_group(results *r, result_group *g) {
    size_t most = 0, *seen;
    int64_t *all = NULL;
    size_t all_count = 0;
    for (size_t i = g->first; i < g->first + g->count; i++) if (r->files[i].count > most) most = r->files[i].count;
    g->paired = (size_t *)zeroed(g->count, sizeof *g->paired);
    for (size_t i = g->first; i < g->first + g->count; i++) {
        char name[80];
        if (r->files[i].count && r->files[i].count * 2 >= most) g->paired[g->paired_count++] = i;
        else text_list_add(&r->notes, "%.60s %s: %zu of %zu samples are measured: left out of fronts and effects", r->files[i].task,
                           setting_text(&r->files[i], name), r->files[i].count, most);
    }
    for (size_t p = 0; p < g->paired_count; p++) { /* the union, ascending: small next to the files */
        const result_file *f = &r->files[g->paired[p]];
        int64_t *both = (int64_t *)resize(NULL, all_count + f->count, sizeof *both);
        size_t a = 0, b = 0, n = 0;
        while (a < all_count || b < f->count) {
            if (b == f->count || (a < all_count && all[a] < f->ids[b])) both[n++] = all[a++];
            else {
                if (a < all_count && all[a] == f->ids[b]) a++;
                both[n++] = f->ids[b++];
            }
        }
        free(all);
        all = both;
        all_count = n;
    }
    seen = (size_t *)zeroed(all_count, sizeof *seen);
    for (size_t p = 0; p < g->paired_count; p++)
        for (size_t a = 0, b = 0; b < r->files[g->paired[p]].count; a++)
            if (all[a] == r->files[g->paired[p]].ids[b]) { seen[a]++; b++; }
    for (size_t a = 0; a < all_count; a++) if (seen[a] == g->paired_count) all[g->id_count++] = all[a];
    g->ids = all;
    g->uncommon_count = all_count - g->id_count;
    if (g->uncommon_count)
        text_list_add(&r->notes, "%.60s: %zu of %zu samples are not measured in all configurations: left out of what is paired",
                      r->files[g->first].task,
                      g->uncommon_count, all_count);
    free(seen);
}
static void group_results(results *r) {
    size_t kept = 0;
    qsort(r->files, r->count, sizeof *r->files, by_setting);
    for (size_t i = 0; i < r->count; i++) {
        if (kept && !compare_settings(&r->files[kept - 1], &r->files[i])) {
            text_list_add(&r->notes, "%.300s is the same configuration as %.300s: left out", r->files[i].path, r->files[kept - 1].path);
            result_file_free(&r->files[i]);
        } else if (kept++ != i) r->files[kept - 1] = r->files[i];
    }
    r->count = kept;
    for (size_t i = 0; i < r->count; i++) {
        if (!i || strcmp(r->files[i].task, r->files[i - 1].task)) {
            r->groups = (result_group *)resize(r->groups, r->group_count + 1, sizeof *r->groups);
            memset(&r->groups[r->group_count], 0, sizeof *r->groups);
            r->groups[r->group_count++].first = i;
        }
        r->groups[r->group_count - 1].count++;
    }
    for (size_t i = 0; i < r->group_count; i++) pair_group(r, &r->groups[i]);
}
/* Keeps the usable files; 0 or an exit code. A file that the caller named, or that is called as a result is, must be one. */
static int keep_results(results *r, const text_list *paths, const unsigned char *is_named) {
    size_t kept = 0, others = 0;
    const char *first_other = NULL;
    int code = 0;
    for (size_t i = 0; i < r->count; i++) {
        result_file *f = &r->files[i];
        int must = is_named[i] || result_name_is_ours(paths->items[i]);
        if (f->is_other == 1 && must) snprintf(f->error, sizeof f->error, "%.500s is no result file: it has no per_sample_results", f->path);
        if (!code && f->error[0] && (must || f->is_other != 3)) code = complain(EXIT_INPUT, "%s", f->error);
        else if (!code && f->is_other == 2 && is_named[i]) code = complain(EXIT_INPUT, "%s is a report, no result file", f->path);
        if (f->is_other & 1 && !others++) first_other = paths->items[i];
        if (f->is_other || f->error[0]) result_file_free(f);
        else if (kept++ != i) { r->files[kept - 1] = *f; memset(f, 0, sizeof *f); }
    }
    r->count = kept;
    if (code) return code;
    if (others)
        text_list_add(&r->notes, "%.300s%s no result file%s: left out", first_other, others > 1 ? " and others are" : " is", others > 1 ? "s" : "");
    return kept ? 0 : complain(EXIT_INPUT, "%s: no result file in it", paths->items[0]);
}
/* Reads folders and files, RESULT_READERS at a time: what stays in memory is arrays. 0 or an exit code. */
static int read_results(results *r, const char *const *operands, size_t operand_count) {
    text_list paths = {NULL, 0};
    unsigned char *is_named = NULL;
    int code = 0;
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < operand_count && !code; i++) {
        size_t before = paths.count;
        code = list_results(&paths, operands[i]);
        is_named = (unsigned char *)resize(is_named, paths.count, 1);
        for (size_t k = before; k < paths.count; k++) is_named[k] = !is_folder(operands[i]);
    }
    if (!code) {
        r->files = (result_file *)zeroed(paths.count, sizeof *r->files);
        r->count = paths.count;
        for (size_t i = 0; i < paths.count; i++) r->files[i].path = copy_text(paths.items[i], strlen(paths.items[i]));
#ifdef _OPENMP
        #pragma omp parallel num_threads(RESULT_READERS)
#endif
        {
            parsed scratch = {{NULL, NULL, 0}, NULL, 0};
#ifdef _OPENMP
            #pragma omp for schedule(dynamic)
#endif
            for (int64_t i = 0; i < (int64_t)paths.count; i++) read_result(&r->files[i], &scratch);
            free(scratch.nodes);
        }
        code = keep_results(r, &paths, is_named);
    }
    if (!code) group_results(r);
    else results_free(r);
    text_list_free(&paths);
    free(is_named);
    return code;
}
/* The samples of a group that have all of some columns in all paired configurations: *ids is malloc'ed. Returns their number. */
static size_t paired_ids(const results *r, const result_group *g, const int *columns, int column_count, int64_t **ids) {
    unsigned char *good = (unsigned char *)resize(NULL, g->id_count, 1);
    size_t count = 0;
    memset(good, 1, g->id_count);
    for (size_t p = 0; p < g->paired_count; p++) {
        const result_file *f = &r->files[g->paired[p]];
        for (size_t a = 0, b = 0; a < g->id_count; a++) {
            while (f->ids[b] < g->ids[a]) b++; /* it is there: the id is common */
            for (int i = 0; i < column_count; i++) good[a] &= isfinite(result_at(f, columns[i], b)) != 0;
        }
    }
    *ids = (int64_t *)resize(NULL, g->id_count, sizeof **ids);
    for (size_t a = 0; a < g->id_count; a++) if (good[a]) (*ids)[count++] = g->ids[a];
    free(good);
    return count;
}
/* double [paired_count, id_count] of a column, malloc'ed; ids as above */
static double *paired_column(const results *r, const result_group *g, int which, const int64_t *ids, size_t id_count) {
    double *values;
    if (id_count && g->paired_count > SIZE_MAX / sizeof *values / id_count) id_count = SIZE_MAX; /* resize refuses it */
    values = (double *)resize(NULL, id_count, g->paired_count * sizeof *values);
    for (size_t p = 0; p < g->paired_count; p++) {
        const result_file *f = &r->files[g->paired[p]];
        for (size_t a = 0, b = 0; a < id_count; a++) {
            while (f->ids[b] < ids[a]) b++;
            values[p * id_count + a] = result_at(f, which, b);
        }
    }
    return values;
}

/* ============================================================================================= report >>report
 * E1: where the time of a request goes. E2: what accuracy it buys, and what the knobs do to both. Computed once into a `report`; text, Markdown,
 * CSV, JSON and HTML only print it. Intervals are at 95 %. */
enum { KNOB_SIZE, KNOB_TOP_K, KNOB_BLOCKS, KNOBS };
static const char *const KNOB_NAMES[KNOBS] = {"image size", "top_k", "blocks"};
static const char *const KNOB_KEYS[KNOBS] = {"image_size", "top_k", "num_active_blocks"};
typedef struct report_settings {
    int axis;             /* METRIC_*: the latency that accuracy is held against */
    double percentile;    /* over samples; -1: the mean */
    size_t resamples;
    uint32_t seed;
    double epsilon_share, epsilon_accuracy; /* of the median latency; absolute */
    double peak_tflops, peak_gbs;           /* NaN: the best that these files reach */
    double budget, min_accuracy;            /* infinite: none */
} report_settings;

typedef enum bound { BOUND_NONE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LAUNCH } bound;
static const char *const BOUND_NAMES[] = {"-", "compute", "memory", "launch"};
typedef struct stage_cost {
    vp_estimate p50;             /* ms over samples */
    double mean, share;          /* ms; of the mean T_total */
    double flops, bytes, launches, tflops, gbs; /* means a request; achieved; NaN: not counted */
    double host_share;           /* wall / ms: on a GPU the share of the time in which the host was still sending work */
    double idle_share;           /* of the device, where kernels were timed; NaN: not known */
    double parts[VP_PART_COUNT]; /* shares of the same time by part of the model; with idle_share 1 where any is known, else NaN */
    bound limit;                 /* what holds it up */
} stage_cost;
typedef struct decomposition {   /* of one file */
    const result_file *file;
    vp_estimate p50[METRIC_STAGE];
    double mean[METRIC_STAGE], p95[METRIC_STAGE], p99[METRIC_STAGE];
    size_t counts[METRIC_STAGE]; /* samples that have it */
    stage_cost stages[VP_STAGE_COUNT];
    double closure, unaccounted_share, idle_share, run_spread; /* run_spread: median over samples of a sample's runs' std / mean */
} decomposition;

typedef struct curve_bin { double x; vp_estimate y; size_t count; } curve_bin;
typedef struct curve { /* a latency against what it should grow with */
    const char *name, *x_name, *y_name, *unit; /* unit of the slope */
    char label[48];                            /* of which configurations */
    curve_bin *bins; size_t bin_count;
    vp_estimate slope; double intercept, r2; size_t count; /* NaN: x does not vary */
} curve;

typedef struct knob_front { int knob; int32_t level; uint32_t *front; size_t count; double area; } knob_front;
typedef struct knob_gain { size_t from, to; int knob; vp_gain gain; } knob_gain;
typedef struct tradeoff {        /* of one group; indices are places in group->paired */
    const result_group *group;
    char reason[160];            /* why there is none; empty: there is */
    int is_corpus;               /* accuracy of whole files only: no intervals */
    int64_t *ids; size_t config_count, sample_count;
    double *latency, *accuracy;  /* [config_count, sample_count]; accuracy NULL for a corpus metric */
    vp_bootstrap_point *points;  /* [config_count]; NaN where not known */
    double *at_latency, *at_accuracy; /* the points as two arrays */
    uint32_t *front, *kept; size_t front_count, kept_count; /* kept: after epsilon */
    double epsilon_latency, area, area_latency, area_accuracy;
    int32_t *levels; vp_knobs knobs; int knob_of[KNOBS]; /* knobs that vary: KNOB_* of each column of levels */
    size_t level_example[KNOBS][VP_KNOB_LEVEL_LIMIT];    /* a configuration with that level, for its name */
    vp_effect *effects[2]; size_t effect_count; double *shares[2]; int32_t order; /* of latency and accuracy, means over samples; 0: none */
    knob_front *fronts; size_t knob_front_count;
    knob_gain *gains; size_t gain_count;
} tradeoff;
typedef struct report {
    const results *r;
    report_settings settings;
    text_list warnings, findings;
    decomposition *items;        /* [r->count] */
    double peak_tflops, peak_gbs;
    int peaks_are_given;
    curve *curves; size_t curve_count; size_t *curve_group; /* group of each */
    tradeoff *tradeoffs;         /* [r->group_count] */
} report;

/* ---- E1 */
static vp_estimate estimate_none(void) {
    vp_estimate e = {(double)NAN, (double)NAN, (double)NAN};
    return e;
}
/* Median with its interval; sorts the values. */
static vp_estimate median_of(double *values, size_t count) {
    vp_estimate e = estimate_none();
    vp_statistics s;
    if (!count || vp_statistics_compute(values, count, values, &s) != VP_OK) return e;
    e.value = s.p50;
    if (vp_statistics_percentile_interval(values, count, 50, 0.95, &e.low, &e.high) != VP_OK) e.low = e.high = (double)NAN;
    return e;
}
/* The finite values of a column into out; their number. */
static size_t column_values(const result_file *f, int which, double *out) {
    size_t count = 0;
    for (size_t i = 0; f->columns[which] && i < f->count; i++) if (isfinite(f->columns[which][i])) out[count++] = f->columns[which][i];
    return count;
}
/* Mean with samples that lack it as 0: parts of a mean total that add up. */
static double column_part(const result_file *f, int which, double *scratch) {
    size_t count = column_values(f, which, scratch);
    return count ? vp_statistics_sum(scratch, count) / (double)f->count : (double)NAN;
}
static double run_spread_of(const result_file *f, double *scratch) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t runs = f->run_at[i + 1] - f->run_at[i];
        if (runs < 2) continue;
        scratch[count++] = vp_statistics_std(f->run_total + f->run_at[i], runs) / vp_statistics_mean(f->run_total + f->run_at[i], runs)
                         * sqrt((double)runs / (double)(runs - 1));
    }
    return median_of(scratch, count).value;
}
static void decompose_stage(decomposition *d, int stage, double total, double *scratch) {
    const result_file *f = d->file;
    stage_cost *s = &d->stages[stage];
    double wall = column_part(f, stage_column(stage, DETAIL_WALL), scratch);
    s->mean = column_part(f, stage_column(stage, 0), scratch);
    s->share = s->mean / total;
    s->p50 = median_of(scratch, column_values(f, stage_column(stage, 0), scratch));
    s->flops = column_part(f, stage_column(stage, DETAIL_FLOPS), scratch);
    s->bytes = column_part(f, stage_column(stage, DETAIL_BYTES), scratch);
    s->launches = column_part(f, stage_column(stage, DETAIL_LAUNCHES), scratch);
    s->tflops = s->mean > 0 ? s->flops / s->mean / 1e9 : (double)NAN;
    s->gbs = s->mean > 0 ? s->bytes / s->mean / 1e6 : (double)NAN;
    s->host_share = s->mean > 0 && !is_host_stage(stage) ? wall / s->mean : (double)NAN;
    s->idle_share = f->kernel_device_ms[stage] > 0 ? 1 - f->kernel_ms[stage] / f->kernel_device_ms[stage] : (double)NAN;
    for (int part = 0; part < VP_PART_COUNT; part++)
        s->parts[part] = f->part_ms[stage][part] > 0 && f->kernel_device_ms[stage] > 0 ? f->part_ms[stage][part] / f->kernel_device_ms[stage]
                                                                                       : (double)NAN;
}
static void decompose(decomposition *d, const result_file *f) {
    double *scratch = (double *)resize(NULL, f->count, sizeof *scratch), device = 0, kernels = 0;
    d->file = f;
    for (int m = 0; m < METRIC_STAGE; m++) {
        size_t count = d->counts[m] = column_values(f, m, scratch);
        d->mean[m] = vp_statistics_mean(scratch, count);
        d->p50[m] = median_of(scratch, count);
        d->p95[m] = vp_statistics_percentile(scratch, count, 95);
        d->p99[m] = vp_statistics_percentile(scratch, count, 99);
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        decompose_stage(d, s, d->mean[METRIC_TOTAL], scratch);
        if (!(f->kernel_device_ms[s] >= 0)) continue;
        device += f->kernel_device_ms[s];
        kernels += f->kernel_ms[s];
    }
    d->idle_share = device > 0 ? 1 - kernels / device : (double)NAN;
    d->unaccounted_share = d->mean[METRIC_UNACCOUNTED] / d->mean[METRIC_TOTAL];
    d->closure = 1 - d->unaccounted_share;
    d->run_spread = run_spread_of(f, scratch);
    free(scratch);
}
/* The roofs: as given, else the best that a stage of at least a hundredth of a request reaches. */
static void find_peaks(report *p) {
    const double *given_tflops = &p->settings.peak_tflops, *given_gbs = &p->settings.peak_gbs;
    for (size_t i = 0; i < p->r->count; i++) {
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!(c->share >= 0.01)) continue;
            if (c->tflops > p->peak_tflops) p->peak_tflops = c->tflops;
            if (c->gbs > p->peak_gbs) p->peak_gbs = c->gbs;
        }
    }
    if (isfinite(*given_tflops)) p->peak_tflops = *given_tflops;
    if (isfinite(*given_gbs)) p->peak_gbs = *given_gbs;
    p->peaks_are_given = isfinite(*given_tflops) && isfinite(*given_gbs);
}
/* A third of a roof is needed to call it the limit; below that starting work, waiting and small shapes take the time. */
static bound bound_of(const report *p, const stage_cost *c) {
    double compute = c->tflops / p->peak_tflops, memory = c->gbs / p->peak_gbs;
    if (!(c->mean > 0) || !(c->flops > 0 || c->bytes > 0) || !(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return BOUND_NONE;
    if (c->idle_share > 0.5) return BOUND_LAUNCH;
    if (!(compute >= 1.0 / 3 || memory >= 1.0 / 3)) return BOUND_LAUNCH;
    return compute >= memory ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* ---- curves */
typedef struct xy { double x, y; } xy;
typedef struct xy_list { xy *items; size_t count, capacity; } xy_list;
static void xy_add(xy_list *l, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 256;
        l->items = (xy *)resize(l->items, l->capacity, sizeof *l->items);
    }
    l->items[l->count].x = x;
    l->items[l->count++].y = y;
}
static int by_x(const void *a, const void *b) {
    const xy *p = (const xy *)a, *q = (const xy *)b;
    return p->x < q->x ? -1 : p->x > q->x ? 1 : p->y < q->y ? -1 : p->y > q->y;
}
static void fit_curve(curve *c, const xy_list *l) {
    double *x = (double *)resize(NULL, l->count, 2 * sizeof *x), *y = (double *)resize(NULL, l->count, 2 * sizeof *y), *fitted = y + l->count;
    vp_linear_options o = vp_linear_options_default();
    vp_linear_errors e;
    vp_linear fit;
    c->slope = estimate_none();
    c->intercept = c->r2 = (double)NAN;
    c->count = l->count;
    for (size_t i = 0; i < l->count; i++) { x[2 * i] = 1; x[2 * i + 1] = l->items[i].x; y[i] = l->items[i].y; }
    if (l->count > 2 && vp_linear_compute(x, y, l->count, 2, &o, &fit, NULL) == VP_OK) {
        c->slope.value = fit.coefficient[1];
        c->intercept = fit.coefficient[0];
        if (vp_linear_coefficient(&fit, 1, 0.95, &c->slope.low, &c->slope.high) != VP_OK) c->slope.low = c->slope.high = (double)NAN;
        for (size_t i = 0; i < l->count; i++) fitted[i] = vp_linear_value(&fit, x + 2 * i);
        if (vp_linear_errors_compute(y, fitted, l->count, x, &e) == VP_OK) c->r2 = e.r2;
    }
    free(x);
    free(y);
}
/* Medians over each x, or over tenths of the points where there are more than a dozen of them. */
static void bin_curve(curve *c, xy_list *l) {
    enum { BINS = 12 };
    double *values = (double *)resize(NULL, l->count, sizeof *values);
    size_t distinct = 0, start = 0;
    qsort(l->items, l->count, sizeof *l->items, by_x);
    for (size_t i = 0; i < l->count; i++) distinct += !i || l->items[i].x > l->items[i - 1].x;
    c->bins = (curve_bin *)zeroed(BINS, sizeof *c->bins);
    for (size_t i = 1; i <= l->count; i++) {
        int is_end = i == l->count || (distinct <= BINS ? l->items[i].x > l->items[i - 1].x : i >= (c->bin_count + 1) * l->count / BINS);
        curve_bin *b = &c->bins[c->bin_count];
        if (!is_end) continue;
        for (size_t k = start; k < i; k++) values[k - start] = l->items[k].y;
        b->x = l->items[start + (i - start) / 2].x;
        b->y = median_of(values, i - start);
        b->count = i - start;
        c->bin_count++;
        start = i;
    }
    free(values);
}
static void add_curve(report *p, size_t group, const curve *kind, const char *label, xy_list *l) {
    curve *c;
    if (l->count) {
        p->curves = (curve *)resize(p->curves, p->curve_count + 1, sizeof *p->curves);
        p->curve_group = (size_t *)resize(p->curve_group, p->curve_count + 1, sizeof *p->curve_group);
        p->curve_group[p->curve_count] = group;
        c = &p->curves[p->curve_count++];
        *c = *kind;
        snprintf(c->label, sizeof c->label, "%s", label);
        fit_curve(c, l);
        bin_curve(c, l);
    }
    free(l->items);
    memset(l, 0, sizeof *l);
}
static int same_size(const result_file *x, const result_file *y) {
    return size_rank(x) == size_rank(y) && !strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
}
/* The language model's knobs do nothing to vision: a sample counts once a size, with its mean over the configurations of that size. */
static void vision_curve(report *p, size_t group) {
    static const curve kind = {"vision", "views", "T_vision_total", "ms/view", "", NULL, 0, {0, 0, 0}, 0, 0, 0};
    const result_group *g = &p->r->groups[group];
    xy_list points = {NULL, 0, 0};
    size_t end = g->first + g->count;
    for (size_t first = g->first, next; first < end; first = next) {
        const result_file *f = &p->r->files[first];
        for (next = first + 1; next < end && same_size(f, &p->r->files[next]);) next++;
        for (size_t i = 0; i < f->count; i++) {
            double sum = 0, count = 0;
            for (size_t k = first; k < next; k++) {
                const result_file *other = &p->r->files[k];
                size_t row = i < other->count && other->ids[i] == f->ids[i] ? i : result_row(other, f->ids[i]);
                double ms = row < other->count ? result_at(other, METRIC_VISION, row) : (double)NAN;
                if (isfinite(ms)) { sum += ms; count++; }
            }
            xy_add(&points, result_at(f, COLUMN_VIEWS, i), sum / count);
        }
    }
    add_curve(p, group, &kind, "all", &points);
}
static void language_curves(report *p, size_t group) {
    static const curve kinds[] = {
        {"prefill", "total_sequence_length", "T_LLM_prefill", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode", "decode steps", "T_LLM_decode", "ms/step", "", NULL, 0, {0, 0, 0}, 0, 0, 0},
        {"decode context", "total_sequence_length", "T_decode_per_token", "ms/token", "", NULL, 0, {0, 0, 0}, 0, 0, 0}};
    static const int xs[] = {COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS, COLUMN_SEQUENCE}, ys[] = {METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const result_group *g = &p->r->groups[group];
    unsigned char *done = (unsigned char *)zeroed(g->count, 1);
    for (int which = 0; which < 3; which++) {
        memset(done, 0, g->count);
        for (size_t a = 0; a < g->count; a++) {
            const result_file *f = &p->r->files[g->first + a];
            xy_list points = {NULL, 0, 0};
            char label[48];
            if (done[a]) continue;
            snprintf(label, sizeof label, "k%lld b%lld", (long long)f->top_k, (long long)f->block_count);
            for (size_t b = a; b < g->count; b++) {
                const result_file *other = &p->r->files[g->first + b];
                if (other->top_k != f->top_k || other->block_count != f->block_count) continue;
                done[b] = 1;
                for (size_t i = 0; i < other->count; i++)
                    if (which != 1) xy_add(&points, result_at(other, xs[which], i), result_at(other, ys[which], i));
                    else if (result_at(other, COLUMN_OUTPUT_TOKENS, i) > 1)
                        xy_add(&points, result_at(other, xs[which], i) - 1, result_at(other, ys[which], i));
            }
            add_curve(p, group, &kinds[which], label, &points);
        }
    }
    free(done);
}

/* ---- E2 */
static int compare_knob(const result_file *x, const result_file *y, int knob) {
    if (knob == KNOB_TOP_K) return x->top_k != y->top_k ? (x->top_k < y->top_k ? -1 : 1) : 0;
    if (knob == KNOB_BLOCKS) return x->block_count != y->block_count ? (x->block_count < y->block_count ? -1 : 1) : 0;
    if (size_rank(x) != size_rank(y)) return size_rank(x) < size_rank(y) ? -1 : 1;
    return strcmp(x->tier ? x->tier : "", y->tier ? y->tier : "");
}
/* Values of a knob, ascending: a configuration of each; VP_KNOB_LEVEL_LIMIT + 1: too many. */
static int32_t find_levels(tradeoff *t, const results *r, int knob) {
    size_t *examples = t->level_example[knob];
    int32_t count = 0;
    for (size_t i = 0; i < t->config_count; i++) {
        const result_file *f = &r->files[t->group->paired[i]];
        int32_t at = 0;
        while (at < count && compare_knob(&r->files[t->group->paired[examples[at]]], f, knob) < 0) at++;
        if (at < count && !compare_knob(&r->files[t->group->paired[examples[at]]], f, knob)) continue;
        if (count == VP_KNOB_LEVEL_LIMIT) return count + 1;
        memmove(examples + at + 1, examples + at, (size_t)(count - at) * sizeof *examples);
        examples[at] = i;
        count++;
    }
    return count;
}
/* Levels of the knobs that vary; 0 when none does, or one has too many. */
static int find_knobs(tradeoff *t, const results *r) {
    for (int k = 0; k < KNOBS; k++) {
        int32_t count = find_levels(t, r, k);
        if (count > VP_KNOB_LEVEL_LIMIT) return 0;
        if (count < 2) continue;
        t->knobs.level_counts[t->knobs.knob_count] = count;
        t->knob_of[t->knobs.knob_count++] = k;
    }
    t->levels = (int32_t *)zeroed(t->config_count * KNOBS, sizeof *t->levels);
    for (size_t i = 0; i < t->config_count; i++) {
        for (int32_t k = 0; k < t->knobs.knob_count; k++) {
            const size_t *examples = t->level_example[t->knob_of[k]];
            int32_t *level = &t->levels[i * (size_t)t->knobs.knob_count + (size_t)k];
            while (compare_knob(&r->files[t->group->paired[examples[*level]]], &r->files[t->group->paired[i]], t->knob_of[k])) ++*level;
        }
    }
    t->knobs.levels = t->levels;
    t->knobs.config_count = t->config_count;
    return t->knobs.knob_count > 0;
}
static void find_effects(tradeoff *t) {
    const double *values[2];
    values[0] = t->latency;
    values[1] = t->accuracy;
    for (t->order = t->knobs.knob_count > 1 ? 2 : 1; t->order > 0; t->order--) {
        size_t bytes = vp_effects_scratch_bytes(&t->knobs, t->order), terms = VP_KNOB_LIMIT * VP_KNOB_LIMIT;
        vp_result done = VP_OK;
        void *scratch;
        t->effect_count = vp_effect_count(&t->knobs, t->order);
        if (!t->effect_count) continue;
        scratch = resize(NULL, bytes, 1);
        for (int v = 0; v < 2 && done == VP_OK && values[v]; v++) {
            t->effects[v] = (vp_effect *)zeroed(t->effect_count, sizeof *t->effects[v]);
            t->shares[v] = (double *)zeroed(terms, sizeof(double));
            done = vp_effects(&t->knobs, values[v], t->sample_count, t->order, 0.95, scratch, bytes, t->effects[v], t->shares[v], NULL);
        }
        free(scratch);
        if (done == VP_OK) return;
        for (int v = 0; v < 2; v++) {
            free(t->effects[v]);
            free(t->shares[v]);
            t->effects[v] = NULL;
            t->shares[v] = NULL;
        }
    }
    t->order = 0; /* holes of the grid, or a single sample: nothing can be told apart */
    t->effect_count = 0;
}
static void find_knob_fronts(tradeoff *t) {
    int32_t *keys = (int32_t *)resize(NULL, t->config_count, sizeof *keys);
    for (int32_t k = 0; k < t->knobs.knob_count; k++) {
        for (int32_t level = 0; level < t->knobs.level_counts[k]; level++) {
            knob_front *f;
            t->fronts = (knob_front *)resize(t->fronts, t->knob_front_count + 1, sizeof *t->fronts);
            f = &t->fronts[t->knob_front_count++];
            f->knob = t->knob_of[k];
            f->level = level;
            f->front = (uint32_t *)zeroed(t->config_count, sizeof *f->front);
            f->count = 0;
            for (size_t i = 0; i < t->config_count; i++) keys[i] = t->levels[i * (size_t)t->knobs.knob_count + (size_t)k];
            if (vp_pareto_front_fixed(t->at_latency, t->at_accuracy, keys, level, t->config_count, f->front, &f->count) != VP_OK) f->count = 0;
            f->area = vp_pareto_area(t->at_latency, t->at_accuracy, t->config_count, f->front, f->count, t->area_latency, t->area_accuracy);
        }
    }
    free(keys);
}
static void find_gains(tradeoff *t) {
    for (size_t i = 0; i < t->config_count && t->accuracy; i++) {
        for (int32_t k = 0; k < t->knobs.knob_count; k++) {
            knob_gain g;
            g.from = i;
            g.knob = t->knob_of[k];
            if (vp_knob_next(&t->knobs, i, k, &g.to) != VP_OK) continue;
            if (vp_gain_compute(t->latency + i * t->sample_count, t->accuracy + i * t->sample_count, t->latency + g.to * t->sample_count,
                                t->accuracy + g.to * t->sample_count, t->sample_count, 0.95, &g.gain) != VP_OK) continue;
            t->gains = (knob_gain *)resize(t->gains, t->gain_count + 1, sizeof *t->gains);
            t->gains[t->gain_count++] = g;
        }
    }
}
static void find_front(tradeoff *t, const report_settings *s) {
    vp_epsilon e;
    double *sorted = (double *)resize(NULL, t->config_count, sizeof *sorted);
    vp_statistics middle;
    t->front = (uint32_t *)zeroed(t->config_count, sizeof *t->front);
    t->kept = (uint32_t *)zeroed(t->config_count, sizeof *t->kept);
    t->at_latency = (double *)resize(NULL, t->config_count, sizeof(double));
    t->at_accuracy = (double *)resize(NULL, t->config_count, sizeof(double));
    t->area_latency = 0;
    t->area_accuracy = HUGE_VAL;
    for (size_t i = 0; i < t->config_count; i++) {
        t->at_latency[i] = t->points[i].latency;
        t->at_accuracy[i] = t->points[i].accuracy;
        if (t->at_latency[i] > t->area_latency) t->area_latency = t->at_latency[i];
        if (t->at_accuracy[i] < t->area_accuracy) t->area_accuracy = t->at_accuracy[i];
    }
    vp_statistics_compute(t->at_latency, t->config_count, sorted, &middle);
    free(sorted);
    e.latency = t->epsilon_latency = s->epsilon_share * middle.p50;
    e.accuracy = s->epsilon_accuracy;
    e.relative = 0;
    if (vp_pareto_front(t->at_latency, t->at_accuracy, t->config_count, VP_PARETO_FIRST, t->front, &t->front_count) != VP_OK) t->front_count = 0;
    if (vp_pareto_epsilon(t->at_latency, t->at_accuracy, t->config_count, t->front, t->front_count, e, t->kept, &t->kept_count) != VP_OK)
        t->kept_count = 0;
    t->area = vp_pareto_area(t->at_latency, t->at_accuracy, t->config_count, t->front, t->front_count, t->area_latency, t->area_accuracy);
}
static size_t equal_points(const tradeoff *t, size_t config) { /* how many have this very latency and accuracy, itself included */
    size_t count = 0;
    for (size_t i = 0; i < t->config_count; i++)
        count += !(t->at_latency[i] < t->at_latency[config] || t->at_latency[i] > t->at_latency[config])
              && !(t->at_accuracy[i] < t->at_accuracy[config] || t->at_accuracy[i] > t->at_accuracy[config]);
    return count;
}
static void bootstrap_points(tradeoff *t, const report_settings *s) {
    vp_bootstrap_options o = vp_bootstrap_options_default();
    size_t bytes = vp_bootstrap_scratch_bytes(t->config_count, t->sample_count, s->resamples);
    void *scratch;
    o.resamples = s->resamples;
    o.seed = s->seed;
    o.percentile = s->percentile;
    o.budget = s->budget;
    o.min_accuracy = s->min_accuracy;
    scratch = resize(NULL, bytes, 1);
    if (vp_bootstrap(t->latency, t->accuracy, t->config_count, t->sample_count, &o, scratch, bytes, t->points) != VP_OK)
        snprintf(t->reason, sizeof t->reason, "the values are too large to be drawn from");
    free(scratch);
}
/* The accuracy of a corpus metric belongs to a whole file: points without intervals. */
static void corpus_points(tradeoff *t, const results *r, const report_settings *s) {
    double *sorted = (double *)resize(NULL, t->sample_count, sizeof *sorted);
    for (size_t i = 0; i < t->config_count; i++) {
        vp_bootstrap_point *p = &t->points[i];
        vp_statistics stats;
        p->latency_low = p->latency_high = p->accuracy_low = p->accuracy_high = p->membership = p->within_budget = p->best = (double)NAN;
        p->accuracy = r->files[t->group->paired[i]].accuracy;
        vp_statistics_compute(t->latency + i * t->sample_count, t->sample_count, sorted, &stats);
        p->latency = s->percentile < 0 ? stats.mean : vp_statistics_percentile(sorted, t->sample_count, s->percentile);
        if (s->percentile >= 0) vp_statistics_percentile_interval(sorted, t->sample_count, s->percentile, 0.95, &p->latency_low, &p->latency_high);
        else vp_statistics_mean_interval(sorted, t->sample_count, 0.95, &p->latency_low, &p->latency_high);
    }
    free(sorted);
}
static void trade_off(tradeoff *t, const results *r, const result_group *g, const report_settings *s) {
    int columns[2], files_have = 1, rows_have = 1;
    columns[0] = s->axis;
    columns[1] = COLUMN_ACCURACY;
    t->group = g;
    t->config_count = g->paired_count;
    for (size_t i = 0; i < g->paired_count; i++) {
        files_have &= isfinite(r->files[g->paired[i]].accuracy) != 0;
        rows_have &= r->files[g->paired[i]].columns[COLUMN_ACCURACY] != NULL;
    }
    t->is_corpus = files_have && !rows_have;
    t->sample_count = paired_ids(r, g, columns, t->is_corpus ? 1 : 2, &t->ids);
    if (!files_have && !rows_have) snprintf(t->reason, sizeof t->reason, "no accuracy: the data have no answers to compare with");
    else if (t->sample_count < 2)
        snprintf(t->reason, sizeof t->reason, "%zu samples have %s and an accuracy in all configurations: at least 2 are needed", t->sample_count,
                 METRIC_KEYS[s->axis]);
    if (t->reason[0]) return;
    t->latency = paired_column(r, g, s->axis, t->ids, t->sample_count);
    t->points = (vp_bootstrap_point *)zeroed(t->config_count, sizeof *t->points);
    if (t->is_corpus) corpus_points(t, r, s);
    else {
        t->accuracy = paired_column(r, g, COLUMN_ACCURACY, t->ids, t->sample_count);
        bootstrap_points(t, s);
    }
    if (t->reason[0]) return;
    find_front(t, s);
    if (!find_knobs(t, r)) return;
    find_effects(t);
    find_knob_fronts(t);
    find_gains(t);
}
static void tradeoff_free(tradeoff *t) {
    void *all[] = {t->ids, t->latency, t->accuracy, t->points, t->at_latency, t->at_accuracy, t->front, t->kept, t->levels, t->effects[0],
                   t->effects[1],
                   t->shares[0], t->shares[1], t->gains};
    for (size_t i = 0; i < t->knob_front_count; i++) free(t->fronts[i].front);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    free(t->fronts);
}
/* "medium", "576 tokens", "4": a knob's level */
static const char *level_text(const tradeoff *t, const results *r, int knob, int32_t level, char out[48]) {
    const result_file *f = &r->files[t->group->paired[t->level_example[knob][level]]];
    if (knob == KNOB_SIZE && f->tier) snprintf(out, 48, "%.40s", f->tier);
    else if (knob == KNOB_SIZE) snprintf(out, 48, "%lld tokens", (long long)f->target_tokens);
    else snprintf(out, 48, "%lld", (long long)(knob == KNOB_TOP_K ? f->top_k : f->block_count));
    return out;
}

/* ---- what a reader must know first */
static size_t differing_files(const results *r, size_t offset) { /* files whose text differs from the first's */
    size_t count = 0;
    for (size_t i = 1; i < r->count; i++) {
        const char *a = *(char *const *)(const void *)((const char *)&r->files[0] + offset);
        const char *b = *(char *const *)(const void *)((const char *)&r->files[i] + offset);
        count += strcmp(a ? a : "", b ? b : "") != 0;
    }
    return count;
}
static void warn_of_files(report *p) {
    static const struct { const char *name; size_t offset; } same[] = {{"device", offsetof(result_file, device)}, {"model", offsetof(result_file,
                                                                                          model)},
        {"weights", offsetof(result_file, weights)}, {"timing", offsetof(result_file, timing)}, {"version", offsetof(result_file, version)}};
    const results *r = p->r;
    int64_t failed = 0, missing = 0, throttled = 0, outliers = 0, runs = 0, synthetic = 0, foreign = 0, coarse = 0;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        failed += f->failed_count;
        missing += f->missing_count > 0 ? f->missing_count : 0;
        throttled += f->throttled_runs > 0 ? f->throttled_runs : 0;
        outliers += f->outlier_runs > 0 ? f->outlier_runs : 0;
        runs += f->run_at ? (int64_t)f->run_at[f->count] : 0;
        synthetic += f->is_synthetic;
        foreign += f->is_foreign;
        coarse += !f->columns[stage_column(VP_STAGE_PREFILL, 0)];
    }
    if (synthetic)
        text_list_add(&p->warnings, "synthetic weights in %lld of %zu files: latency is real, accuracy is not", (long long)synthetic, r->count);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (differing_files(r, same[i].offset))
            text_list_add(&p->warnings, "the files differ in their %s: what lies between them is not the knobs alone", same[i].name);
    if (failed) text_list_add(&p->warnings, "%lld points failed; they are in no number", (long long)failed);
    if (missing) text_list_add(&p->warnings, "%lld points are not measured yet; they are in no number", (long long)missing);
    if (throttled) text_list_add(&p->warnings, "%lld of %lld runs were measured while the device held its clocks down; they are kept",
                                 (long long)throttled, (long long)runs);
    if (outliers) text_list_add(&p->warnings, "%lld of %lld runs stand out by their total (modified z over 3.5); they are kept", (long long)outliers,
                                (long long)runs);
    if (foreign) text_list_add(&p->warnings, "%lld files are the experiments' own: no stages, no closure; ms a token is divided by N - 1 here",
                               (long long)foreign);
    else if (coarse) text_list_add(&p->warnings, "%lld files hold no stage times (--timing off)", (long long)coarse);
}
static void warn_of_samples(report *p) {
    size_t least = SIZE_MAX, p95 = 0, p99 = 0, open = 0;
    double worst = 1, spread = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const decomposition *d = &p->items[i];
        if (d->file->count < least) least = d->file->count;
        p95 += !vp_statistics_percentile_supported(d->counts[METRIC_TOTAL], 95);
        p99 += !vp_statistics_percentile_supported(d->counts[METRIC_TOTAL], 99);
        open += d->closure < 0.99;
        if (d->closure < worst) worst = d->closure;
        if (d->run_spread > spread) spread = d->run_spread;
    }
    if (least < 500) text_list_add(&p->warnings, "only %zu samples in the smallest file: 500 and more are advised for fronts", least);
    if (spread > 0.05)
        text_list_add(&p->warnings, "runs of one request spread by up to %.1f %% (standard deviation): the machine was not quiet", 100 * spread);
    if (p95)
        text_list_add(&p->warnings, "P95 comes from fewer than 60 samples in %zu of %zu configurations: it is close to the largest value", p95,
                      p->r->count);
    if (p99)
        text_list_add(&p->warnings, "P99 comes from fewer than 300 samples in %zu of %zu configurations: it is close to the largest value", p99,
                      p->r->count);
    if (open)
        text_list_add(&p->warnings, "the stages add up to less than 99 %% of T_total in %zu of %zu configurations (least: %.2f %%)", open,
                      p->r->count, 100 * worst);
}

/* ---- findings in words */
static const char *const SHARE_NAMES[] = {"vision (vit + connector)", "prefill (embed to sample)", "decode"};
static double main_share(const decomposition *d, int metric) {
    double share = 0;
    int first = metric == METRIC_VISION ? VP_STAGE_VIT : metric == METRIC_PREFILL ? VP_STAGE_EMBED : VP_STAGE_DECODE;
    int last = metric == METRIC_VISION ? VP_STAGE_CONNECTOR : metric == METRIC_PREFILL ? VP_STAGE_SAMPLE : VP_STAGE_DECODE;
    for (int s = first; s <= last; s++) if (isfinite(d->stages[s].share)) share += d->stages[s].share;
    return share > 0 ? share : d->mean[metric] / d->mean[METRIC_TOTAL]; /* the experiments' files know the sums alone */
}
static void find_dominant(report *p) {
    size_t wins[3] = {0, 0, 0};
    for (int m = METRIC_VISION; m <= METRIC_DECODE; m++) {
        for (size_t i = 0; i < p->r->count; i++) {
            double share = main_share(&p->items[i], m);
            int wins_all = share > 0;
            for (int k = METRIC_VISION; k <= METRIC_DECODE; k++) wins_all &= k == m || !(main_share(&p->items[i], k) >= share);
            wins[m] += (size_t)wins_all;
        }
    }
    for (int m = METRIC_VISION; m <= METRIC_DECODE; m++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (size_t i = 0; i < p->r->count; i++) {
            double share = main_share(&p->items[i], m);
            if (share < low) low = share;
            if (share > high) high = share;
        }
        if (high > 0)
            text_list_add(&p->findings, "%s takes %.1f to %.1f %% of a request; it is the largest part in %zu of %zu configurations", SHARE_NAMES[m],
                                    100 * low, 100 * high, wins[m], p->r->count);
    }
}
/* The configuration that differs from one at a knob's lowest level by standing at its highest; config_count: not measured. */
static size_t other_end(const tradeoff *t, size_t config, int32_t knob) {
    size_t width = (size_t)t->knobs.knob_count, i = 0;
    for (; i < t->config_count; i++) {
        int same = t->levels[i * width + (size_t)knob] == t->knobs.level_counts[knob] - 1;
        for (size_t k = 0; k < width; k++) same &= k == (size_t)knob || t->levels[i * width + k] == t->levels[config * width + k];
        if (same) break;
    }
    return i;
}
/* Sums of `values` [config_count, sample_count] over the configurations at a knob's two ends, all other knobs alike; returns the pairs found. */
static size_t sum_ends(const tradeoff *t, int32_t knob, const double *values, double *low, double *high) {
    size_t pairs = 0;
    memset(low, 0, t->sample_count * sizeof *low);
    memset(high, 0, t->sample_count * sizeof *high);
    for (size_t i = 0; i < t->config_count; i++) {
        size_t end = t->levels[i * (size_t)t->knobs.knob_count + (size_t)knob] ? t->config_count : other_end(t, i, knob);
        if (end == t->config_count) continue;
        pairs++;
        for (size_t n = 0; n < t->sample_count; n++) {
            low[n] += values[i * t->sample_count + n];
            high[n] += values[end * t->sample_count + n];
        }
    }
    return pairs;
}
/* What a knob does from its lowest to its highest value, all others alike; paired over the samples. No effect where the interval holds 0. */
static void find_changes(report *p, const tradeoff *t) {
    double *low = (double *)resize(NULL, t->sample_count, 2 * sizeof *low), *high = low + t->sample_count;
    const char *task = p->r->group_count > 1 ? p->r->files[t->group->first].task : "";
    for (int32_t k = 0; k < t->knobs.knob_count; k++) {
        char first[48], last[48], knob[400];
        vp_mean_interval change;
        size_t pairs = sum_ends(t, k, t->latency, low, high);
        double base = vp_statistics_mean(low, t->sample_count) / 100, points;
        if (!pairs || !(base > 0) || vp_paired_t(low, high, t->sample_count, 0.95, &change) != VP_OK) continue;
        snprintf(knob, sizeof knob, "%.240s%s%s from %s to %s", task, *task ? ": " : "", KNOB_NAMES[t->knob_of[k]],
                 level_text(t, p->r, t->knob_of[k], 0, first), level_text(t, p->r, t->knob_of[k], t->knobs.level_counts[k] - 1, last));
        text_list_add(&p->findings, "%s changes mean %s by %+.1f %% [%+.1f, %+.1f]%s", knob, METRIC_KEYS[p->settings.axis], change.mean / base,
                      change.low / base, change.high / base, change.low / base > -3 && change.high / base < 3 ? ": flat, it buys no time" : "");
        if (!t->accuracy) continue;
        sum_ends(t, k, t->accuracy, low, high);
        points = 100.0 / (double)pairs;
        if (vp_paired_t(low, high, t->sample_count, 0.95, &change) != VP_OK) continue;
        if (change.low <= 0 && change.high >= 0)
            text_list_add(&p->findings, "%s shows no effect on accuracy: the interval of %+.2f points, [%+.2f, %+.2f], holds 0", knob,
                          points * change.mean, points * change.low, points * change.high);
        else
            text_list_add(&p->findings, "%s changes accuracy by %+.2f points [%+.2f, %+.2f]", knob, points * change.mean, points * change.low,
                          points * change.high);
    }
    free(low);
}
static void find_decode(report *p) {
    double low = HUGE_VAL, high = -HUGE_VAL, least = HUGE_VAL, most = -HUGE_VAL;
    size_t count = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const stage_cost *c = &p->items[i].stages[VP_STAGE_DECODE];
        double step = p->items[i].mean[METRIC_PER_TOKEN], floor_ms = c->bytes / c->mean * step / p->peak_gbs / 1e6;
        if (!(floor_ms > 0) || !(step > 0)) continue;
        count++;
        if (step < low) low = step;
        if (step > high) high = step;
        if (floor_ms / step < least) least = floor_ms / step;
        if (floor_ms / step > most) most = floor_ms / step;
    }
    if (count)
        text_list_add(&p->findings, "a decode step takes %.3g to %.3g ms; its bytes at %.4g GB/s would take %.0f to %.0f %% of that", low, high,
                      p->peak_gbs,
                             100 * least, 100 * most);
}
static void find_idle(report *p) {
    double least = HUGE_VAL, most = -HUGE_VAL, host = 0;
    size_t known = 0, bound_count = 0, sent = 0;
    for (size_t i = 0; i < p->r->count; i++) {
        const decomposition *d = &p->items[i];
        if (d->file->device && !strncmp(d->file->device, "cuda", 4) && d->stages[VP_STAGE_DECODE].host_share > 0) {
            sent++;
            if (d->stages[VP_STAGE_DECODE].host_share > host) host = d->stages[VP_STAGE_DECODE].host_share;
        }
        if (!isfinite(d->idle_share)) continue;
        known++;
        bound_count += d->idle_share > 0.3;
        if (d->idle_share < least) least = d->idle_share;
        if (d->idle_share > most) most = d->idle_share;
    }
    if (known) text_list_add(&p->findings, "the device is idle %.1f to %.1f %% of a request%s", 100 * least, 100 * most,
                             bound_count ? ": bound by the host, faster kernels would not help much" : ": not bound by the host");
    else text_list_add(&p->findings, "how long the device is idle is not known: sweep with --kernel_pass tells");
    if (sent && host > 0.9)
        text_list_add(&p->findings, "sending the work of decode takes the host up to %.0f %% of its time on the device: bound by the host",
                      100 * host);
}

/* ---- all of it */
static void report_make(report *p, const results *r, const report_settings *s) {
    memset(p, 0, sizeof *p);
    p->r = r;
    p->settings = *s;
    p->items = (decomposition *)zeroed(r->count, sizeof *p->items);
    p->tradeoffs = (tradeoff *)zeroed(r->group_count, sizeof *p->tradeoffs);
    for (size_t i = 0; i < r->count; i++) decompose(&p->items[i], &r->files[i]);
    find_peaks(p);
    for (size_t i = 0; i < r->count; i++)
        for (int k = 0; k < VP_STAGE_COUNT; k++) p->items[i].stages[k].limit = bound_of(p, &p->items[i].stages[k]);
    warn_of_files(p);
    warn_of_samples(p);
    for (size_t i = 0; i < r->notes.count; i++) text_list_add(&p->warnings, "%s", r->notes.items[i]);
    find_dominant(p);
    find_decode(p);
    find_idle(p);
    for (size_t i = 0; i < r->group_count; i++) {
        vision_curve(p, i);
        language_curves(p, i);
        trade_off(&p->tradeoffs[i], r, &r->groups[i], s);
        if (!p->tradeoffs[i].reason[0]) find_changes(p, &p->tradeoffs[i]);
    }
}
static void report_free(report *p) {
    for (size_t i = 0; i < p->curve_count; i++) free(p->curves[i].bins);
    for (size_t i = 0; p->tradeoffs && i < p->r->group_count; i++) tradeoff_free(&p->tradeoffs[i]);
    text_list_free(&p->warnings);
    text_list_free(&p->findings);
    free(p->curves);
    free(p->curve_group);
    free(p->items);
    free(p->tradeoffs);
}

/* ---- a document of headings, lines and tables; printed as text or as Markdown */
typedef enum block_kind { BLOCK_HEADING, BLOCK_LINE, BLOCK_TABLE } block_kind;
typedef struct text_block { block_kind kind; char *text; size_t columns; text_list cells; } text_block; /* of a table: first its heads */
typedef struct document { text_block *blocks; size_t count; } document;

static text_block *document_add(document *d, block_kind kind) {
    d->blocks = (text_block *)resize(d->blocks, d->count + 1, sizeof *d->blocks);
    memset(&d->blocks[d->count], 0, sizeof *d->blocks);
    d->blocks[d->count].kind = kind;
    return &d->blocks[d->count++];
}
static void document_text(document *d, block_kind kind, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    document_add(d, kind)->text = copy_text(line, strlen(line));
}
/* heads: separated by |; cells follow by text_list_add(table->...) row by row, until the next block is added */
static text_list *document_table(document *d, const char *heads) {
    text_block *b = document_add(d, BLOCK_TABLE);
    for (;;) {
        size_t bytes = strcspn(heads, "|");
        text_list_add(&b->cells, "%.*s", (int)bytes, heads);
        b->columns++;
        if (!heads[bytes]) return &b->cells;
        heads += bytes + 1;
    }
}
static void document_free(document *d) {
    for (size_t i = 0; i < d->count; i++) {
        free(d->blocks[i].text);
        text_list_free(&d->blocks[i].cells);
    }
    free(d->blocks);
}
/* columns that a text takes on a screen: UTF-8's continuation bytes take none */
static size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}
static void text_pad(text_buffer *out, size_t width, char with) { while (width--) text_add(out, &with, 1); }
static void print_table(text_buffer *out, const text_block *b, int is_markdown) {
    size_t *widths = (size_t *)zeroed(b->columns, sizeof *widths), rows = b->cells.count / b->columns;
    for (size_t i = 0; i < rows * b->columns; i++)
        if (text_width(b->cells.items[i]) > widths[i % b->columns]) widths[i % b->columns] = text_width(b->cells.items[i]);
    for (size_t i = 0; i < rows * b->columns; i++) {
        size_t at = i % b->columns, pad = widths[at] - text_width(b->cells.items[i]);
        text_add_string(out, is_markdown ? (at ? " | " : "| ") : at ? "  " : "  ");
        if (at) text_pad(out, pad, ' '); /* numbers to the right, names to the left */
        text_add_string(out, b->cells.items[i]);
        if (!at && b->columns > 1) text_pad(out, pad, ' ');
        if (at + 1 < b->columns) continue;
        text_add_string(out, is_markdown ? " |\n" : "\n");
        for (size_t c = 0; is_markdown && i + 1 == b->columns && c < b->columns; c++) {
            text_add_string(out, "|");
            text_pad(out, widths[c] + 1, '-');
            text_add_string(out, c ? ":" : "-");
        }
        if (is_markdown && i + 1 == b->columns) text_add_string(out, "|\n");
    }
    free(widths);
}
static void document_print(const document *d, int is_markdown, text_buffer *out) {
    for (size_t i = 0; i < d->count; i++) {
        const text_block *b = &d->blocks[i];
        if (i && (b->kind != BLOCK_LINE || d->blocks[i - 1].kind != BLOCK_LINE)) text_add_string(out, "\n");
        if (b->kind == BLOCK_TABLE) print_table(out, b, is_markdown);
        else {
            if (is_markdown) text_add_string(out, b->kind == BLOCK_HEADING ? "## " : "- ");
            else if (b->kind == BLOCK_LINE) text_add_string(out, "  ");
            text_add_string(out, b->text);
            text_add_string(out, "\n");
        }
    }
}

/* ---- the report in words and tables */
typedef struct figure { char text[64]; } figure;
static figure figure_of(const char *format, double value) {
    figure f;
    if (isfinite(value)) snprintf(f.text, sizeof f.text, format, value); else snprintf(f.text, sizeof f.text, "-");
    return f;
}
/* Four digits that matter of a value of this size, without an exponent where people do without. */
static figure figure_sized(double value, double size) {
    figure f = figure_of(size >= 1000 || !(size > 0) ? "%.0f" : size >= 100 ? "%.1f" : size >= 10 ? "%.2f" : size >= 0.01 ? "%.3f" : "%.2e", value);
    if (f.text[0] == '-' && f.text[1] && !f.text[1 + strspn(f.text + 1, "0.")]) memmove(f.text, f.text + 1, strlen(f.text)); /* no "-0.000" */
    return f;
}
static figure figure_number(double value) { return figure_sized(value, fabs(value)); }
static figure figure_x(double x) { return x > -1e15 && x < 1e15 && !(fabs(x - floor(x)) > 0) ? figure_of("%.0f", x) : figure_number(x); }
static figure figure_percent(double share) { return figure_of("%.1f", 100 * share); }
static double range_size(double low, double high) {
    return isfinite(low) && isfinite(high) ? fmax(fabs(low), fabs(high)) : isfinite(low) ? fabs(low) : fabs(high);
}
static figure figure_range(double scale, double low, double high) { /* "[1.2, 3.4]", both with the decimals of the larger; empty: no interval */
    double size = range_size(low, high) * scale;
    figure f, a = figure_sized(low * scale, size), b = figure_sized(high * scale, size);
    if (isfinite(low) || isfinite(high)) snprintf(f.text, sizeof f.text, "[%.28s, %.28s]", a.text, b.text);
    else f.text[0] = 0;
    return f;
}
static figure figure_estimate(double scale, double value, double low, double high) { /* "2.3 [1.2, 3.4]" */
    double size = range_size(low, high) > fabs(value) ? range_size(low, high) : fabs(value);
    figure f, v = figure_sized(value * scale, size * scale), range = figure_range(scale, low, high);
    snprintf(f.text, sizeof f.text, "%.24s%s%.36s", v.text, range.text[0] ? " " : "", range.text);
    return f;
}
static figure figure_of_estimate(vp_estimate e) { return figure_estimate(1, e.value, e.low, e.high); }
static const char *percentile_text(double percentile) {
    return percentile < 0 ? "mean" : percentile < 60 ? "P50" : percentile < 97 ? "P95" : "P99";
}
static void write_summary(document *d, const report *p) {
    const results *r = p->r;
    const result_file *f = &r->files[0];
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->files[i].count < least) least = r->files[i].count;
        if (r->files[i].count > most) most = r->files[i].count;
    }
    document_text(d, BLOCK_HEADING, "vlmprof report: %zu configuration%s", r->count, r->count == 1 ? "" : "s");
    for (size_t i = 0; i < r->group_count; i++) {
        const result_file *first = &r->files[r->groups[i].first];
        document_text(d, BLOCK_LINE, "data set %s: %zu configuration%s, accuracy by %s", first->task, r->groups[i].count,
                      r->groups[i].count == 1 ? "" : "s",
                      first->metric ? first->metric : "a metric that is not said");
    }
    document_text(d, BLOCK_LINE, "model %s%s%s%s, %s", f->model ? f->model : "not said", f->is_synthetic ? " (synthetic weights)" : "",
                  f->weights ? ", " : "",
                  f->weights ? f->weights : "", f->device ? f->device : "device not said");
    if (least == most) document_text(d, BLOCK_LINE, "%zu samples a configuration", most);
    else document_text(d, BLOCK_LINE, "%zu to %zu samples a configuration", least, most);
    if (f->runs_per_sample > 0)
        document_text(d, BLOCK_LINE, "%lld run%s a sample or more; a sample's value is the mean of its runs", (long long)f->runs_per_sample,
                                              f->runs_per_sample == 1 ? "" : "s");
    if (f->measured_from && f->measured_to) document_text(d, BLOCK_LINE, "first file measured %s to %s by vlmprof %s on %s", f->measured_from,
                                                          f->measured_to,
                                                          f->version ? f->version : "?", f->host ? f->host : "?");
    if (p->warnings.count) document_text(d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < p->warnings.count; i++) document_text(d, BLOCK_LINE, "%s", p->warnings.items[i]);
    if (p->findings.count) document_text(d, BLOCK_HEADING, "Findings");
    for (size_t i = 0; i < p->findings.count; i++) document_text(d, BLOCK_LINE, "%s", p->findings.items[i]);
}
/* "low k4 b12", with the data set in front where there are several */
static const char *full_name(const results *r, const result_file *f, char out[160]) {
    char name[80];
    setting_text(f, name);
    if (r->group_count > 1) snprintf(out, 160, "%.70s %s", f->task, name); else snprintf(out, 160, "%s", name);
    return out;
}
static void write_latencies(document *d, const report *p) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "E1: latency, ms; P50 over samples [95 %% interval]");
    t = document_table(d, "configuration|T_total|P95|TTFT|vision|prefill|decode|ms/token|run spread %|closure %|idle %");
    for (size_t i = 0; i < p->r->count; i++) {
        static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
        const decomposition *c = &p->items[i];
        char name[160];
        text_list_add(t, "%s", full_name(p->r, c->file, name));
        text_list_add(t, "%s", figure_of_estimate(c->p50[METRIC_TOTAL]).text);
        text_list_add(t, "%s", figure_number(c->p95[METRIC_TOTAL]).text);
        for (int m = 0; m < 5; m++) text_list_add(t, "%s", figure_of_estimate(c->p50[metrics[m]]).text);
        text_list_add(t, "%s", figure_percent(c->run_spread).text);
        text_list_add(t, "%s", figure_of("%.2f", 100 * c->closure).text);
        text_list_add(t, "%s", figure_percent(c->idle_share).text);
    }
}
static int stage_is_known(const report *p, int stage) {
    for (size_t i = 0; i < p->r->count; i++) if (isfinite(p->items[i].stages[stage].mean)) return 1;
    return 0;
}
static void write_shares(document *d, const report *p) {
    text_buffer heads = {NULL, 0, 0};
    text_list *t;
    text_add_string(&heads, "configuration");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!stage_is_known(p, s)) continue;
        text_add_string(&heads, "|");
        text_add_string(&heads, vp_stage_name((vp_stage)s));
    }
    if (heads.bytes > 13) {
        text_add_string(&heads, "|unaccounted|sum");
        document_text(d, BLOCK_HEADING, "E1: where the time goes, %% of T_total (means)");
        t = document_table(d, heads.data);
        for (size_t i = 0; i < p->r->count; i++) {
            const decomposition *c = &p->items[i];
            double sum = c->unaccounted_share;
            char name[160];
            text_list_add(t, "%s", full_name(p->r, c->file, name));
            for (int s = 0; s < VP_STAGE_COUNT; s++) {
                if (isfinite(c->stages[s].share)) sum += c->stages[s].share;
                if (stage_is_known(p, s)) text_list_add(t, "%s", figure_of("%.2f", 100 * c->stages[s].share).text);
            }
            text_list_add(t, "%s", figure_of("%.4f", 100 * c->unaccounted_share).text);
            text_list_add(t, "%s", figure_of("%.2f", 100 * sum).text);
        }
    }
    free(heads.data);
}
/* What prefill and decode are made of, where kernels were timed one by one. */
static const int PART_STAGES[] = {VP_STAGE_PREFILL, VP_STAGE_DECODE};
static int part_is_known(const report *p, int part) {
    for (size_t i = 0; i < p->r->count; i++)
        for (int s = 0; s < 2; s++) if (isfinite(p->items[i].stages[PART_STAGES[s]].parts[part])) return 1;
    return 0;
}
static int stage_has_parts(const stage_cost *c) {
    for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(c->parts[part])) return 1;
    return 0;
}
static void write_parts(document *d, const report *p) {
    text_buffer heads = {NULL, 0, 0};
    text_list *t = NULL;
    text_add_string(&heads, "configuration|stage");
    for (int part = 0; part < VP_PART_COUNT; part++) {
        if (!part_is_known(p, part)) continue;
        text_add_string(&heads, "|");
        text_add_string(&heads, vp_part_name((vp_part)part));
    }
    text_add_string(&heads, "|idle");
    for (size_t i = 0; i < p->r->count; i++)
        for (int s = 0; s < 2; s++) {
            const stage_cost *c = &p->items[i].stages[PART_STAGES[s]];
            char name[160];
            if (!stage_has_parts(c)) continue;
            if (!t) {
                document_text(d, BLOCK_HEADING, "E1: what prefill and decode are made of, %% of their time on the device (--kernel_pass)");
                t = document_table(d, heads.data);
            }
            text_list_add(t, "%s", full_name(p->r, p->items[i].file, name));
            text_list_add(t, "%s", vp_stage_name((vp_stage)PART_STAGES[s]));
            for (int part = 0; part < VP_PART_COUNT; part++)
                if (part_is_known(p, part)) text_list_add(t, "%s", figure_of("%.1f", 100 * c->parts[part]).text);
            text_list_add(t, "%s", figure_of("%.1f", 100 * c->idle_share).text);
        }
    free(heads.data);
}
static const char *limits_text(const report *p, int stage, char out[96]) { /* "memory 10, launch 2" */
    size_t used = 0;
    out[0] = 0;
    for (int b = BOUND_COMPUTE; b <= BOUND_LAUNCH; b++) {
        size_t count = 0;
        for (size_t i = 0; i < p->r->count; i++) count += p->items[i].stages[stage].limit == (bound)b;
        if (count == p->r->count) snprintf(out, 96, "%s", BOUND_NAMES[b]);
        else if (count) used += (size_t)snprintf(out + used, 96 - used, "%s%s %zu", used ? ", " : "", BOUND_NAMES[b], count);
    }
    return out;
}
static void write_roofline(document *d, const report *p) {
    text_list *t;
    if (!(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return;
    document_text(d, BLOCK_HEADING, "E1: work against time, means over all configurations");
    document_text(d, BLOCK_LINE, "roofs %s TFLOP/s and %s GB/s: %s; launch: neither roof is reached to a third", figure_number(p->peak_tflops).text,
                  figure_number(p->peak_gbs).text, p->peaks_are_given ? "as given" : "the best of stages that take 1 % of a request or more "
                                                                                     "(--peak_tflops, --peak_gbs)");
    t = document_table(d, "stage|GFLOP|MB|launches|ms|TFLOP/s|% of roof|GB/s|% of roof|idle %|bound");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        double flops = 0, bytes = 0, launches = 0, ms = 0, idle = 0, count = 0, idle_count = 0;
        char limits[96];
        for (size_t i = 0; i < p->r->count; i++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!(c->flops > 0 || c->bytes > 0)) continue;
            flops += c->flops;
            bytes += c->bytes;
            launches += c->launches;
            ms += c->mean;
            count++;
            if (isfinite(c->idle_share)) { idle += c->idle_share; idle_count++; }
        }
        if (!(count > 0) || !(ms > 0)) continue;
        text_list_add(t, "%s", vp_stage_name((vp_stage)s));
        text_list_add(t, "%s", figure_number(flops / count / 1e9).text);
        text_list_add(t, "%s", figure_number(bytes / count / 1e6).text);
        text_list_add(t, "%s", figure_number(launches / count).text);
        text_list_add(t, "%s", figure_number(ms / count).text);
        text_list_add(t, "%s", figure_number(flops / ms / 1e9).text);
        text_list_add(t, "%s", figure_percent(flops / ms / 1e9 / p->peak_tflops).text);
        text_list_add(t, "%s", figure_number(bytes / ms / 1e6).text);
        text_list_add(t, "%s", figure_percent(bytes / ms / 1e6 / p->peak_gbs).text);
        text_list_add(t, "%s", figure_percent(idle / idle_count).text);
        text_list_add(t, "%s", limits_text(p, s, limits));
    }
}
static void write_curves(document *d, const report *p, size_t group) {
    text_list *t = NULL;
    for (size_t i = 0; i < p->curve_count; i++) {
        const curve *c = &p->curves[i];
        if (p->curve_group[i] != group) continue;
        if (!t) {
            document_text(d, BLOCK_HEADING, "E1: scaling of %s: ms against what it should grow with, straight lines [95 %% interval]",
                          p->r->files[p->r->groups[group].first].task);
            t = document_table(d, "latency|against|of|slope|unit|at 0, ms|R2|points");
        }
        text_list_add(t, "%s", c->y_name);
        text_list_add(t, "%s", c->x_name);
        text_list_add(t, "%s", c->label);
        text_list_add(t, "%s", figure_of_estimate(c->slope).text);
        text_list_add(t, "%s", c->unit);
        text_list_add(t, "%s", figure_number(c->intercept).text);
        text_list_add(t, "%s", figure_of("%.3f", c->r2).text);
        text_list_add(t, "%zu", c->count);
    }
    for (size_t i = 0; i < p->curve_count; i++) { /* medians: of vision, and of the largest language model */
        const curve *c = &p->curves[i];
        int is_last = i + 1 == p->curve_count || p->curve_group[i + 1] != group || strcmp(p->curves[i + 1].name, c->name);
        if (p->curve_group[i] != group || !is_last) continue;
        document_text(d, BLOCK_LINE, "medians of %s over %s (%s)", c->y_name, c->x_name, c->label);
        t = document_table(d, "at|ms|points");
        for (size_t b = 0; b < c->bin_count; b++) {
            text_list_add(t, "%s", figure_x(c->bins[b].x).text);
            text_list_add(t, "%s", figure_of_estimate(c->bins[b].y).text);
            text_list_add(t, "%zu", c->bins[b].count);
        }
    }
}

static int is_listed(const uint32_t *items, size_t count, size_t value) {
    for (size_t i = 0; i < count; i++) if (items[i] == value) return 1;
    return 0;
}
static void write_front(document *d, const report *p, const tradeoff *t) {
    const char *axis = METRIC_KEYS[p->settings.axis], *percentile = percentile_text(p->settings.percentile);
    text_list *table;
    size_t near_count = 0;
    document_text(d, BLOCK_HEADING, "E2: front of accuracy against %s of %s, %s, %zu samples in common", percentile, axis,
                  p->r->files[t->group->first].task, t->sample_count);
    if (t->is_corpus)
        document_text(d, BLOCK_LINE,
                      "the metric %s is one of the whole corpus: no sample has a score of its own, so there are no intervals of accuracy, no "
                      "memberships, no effects on it", p->r->files[t->group->first].metric ? p->r->files[t->group->first].metric : "of these files");
    else document_text(d, BLOCK_LINE,
                       "member: share of %zu draws of the samples in which it is on the front; * steps of at least %s ms and %.3g points",
                       p->settings.resamples, figure_number(t->epsilon_latency).text, 100 * p->settings.epsilon_accuracy);
    if (!(t->area > 0))
        document_text(d, BLOCK_LINE, "no configuration is more accurate than the fastest one: the front is a single point");
    table = document_table(d, "configuration|ms|accuracy|member %|equal points|");
    for (size_t i = 0; i < t->front_count; i++) {
        const vp_bootstrap_point *b = &t->points[t->front[i]];
        char name[80];
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[t->front[i]]], name));
        text_list_add(table, "%s", figure_estimate(1, b->latency, b->latency_low, b->latency_high).text);
        text_list_add(table, "%s", figure_estimate(1, b->accuracy, b->accuracy_low, b->accuracy_high).text);
        text_list_add(table, "%s", figure_percent(b->membership).text);
        text_list_add(table, "%zu", equal_points(t, t->front[i]));
        text_list_add(table, "%s", is_listed(t->kept, t->kept_count, t->front[i]) ? "*" : "");
    }
    for (size_t i = 0; i < t->config_count; i++) {
        char name[80];
        if (!(t->points[i].membership >= 0.05) || is_listed(t->front, t->front_count, i)) continue;
        if (!near_count++) {
            document_text(d, BLOCK_LINE, "not on it, but perhaps members");
            table = document_table(d, "configuration|ms|accuracy|member %");
        }
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[i]], name));
        text_list_add(table, "%s", figure_estimate(1, t->points[i].latency, t->points[i].latency_low, t->points[i].latency_high).text);
        text_list_add(table, "%s", figure_estimate(1, t->points[i].accuracy, t->points[i].accuracy_low, t->points[i].accuracy_high).text);
        text_list_add(table, "%s", figure_percent(t->points[i].membership).text);
    }
}
static void effect_name(const tradeoff *t, const results *r, const vp_effect *e, char out[160]) {
    char a[48], b[48];
    if (e->kind == VP_EFFECT_MEAN) { snprintf(out, 160, "mean"); return; }
    level_text(t, r, t->knob_of[e->knob_a], e->level_a, a);
    if (e->kind != VP_EFFECT_PAIR) { snprintf(out, 160, "%s %s", KNOB_NAMES[t->knob_of[e->knob_a]], a); return; }
    level_text(t, r, t->knob_of[e->knob_b], e->level_b, b);
    snprintf(out, 160, "%s %s x %s %s", KNOB_NAMES[t->knob_of[e->knob_a]], a, KNOB_NAMES[t->knob_of[e->knob_b]], b);
}
static void write_share_row(text_list *table, const tradeoff *t, const char *name, int32_t term) {
    text_list_add(table, "%s", name);
    for (int v = 0; v < 2; v++) text_list_add(table, "%s", t->shares[v] ? figure_percent(t->shares[v][term]).text : "-");
}
static void write_effect_shares(document *d, const tradeoff *t) {
    int32_t knobs = t->knobs.knob_count, term = knobs;
    text_list *table;
    document_text(d, BLOCK_LINE, "shares of the variance between the configurations' means, %%");
    table = document_table(d, "term|latency|accuracy");
    for (int32_t a = 0; a < knobs; a++) write_share_row(table, t, KNOB_NAMES[t->knob_of[a]], a);
    for (int32_t a = 0; a < knobs && t->order == 2; a++) {
        for (int32_t b = a + 1; b < knobs; b++) {
            char name[64];
            snprintf(name, sizeof name, "%s x %s", KNOB_NAMES[t->knob_of[a]], KNOB_NAMES[t->knob_of[b]]);
            write_share_row(table, t, name, term++);
        }
    }
    write_share_row(table, t, "what is left", term);
}
static void write_effect(text_list *table, const vp_effect *e, double scale) {
    text_list_add(table, "%s", e ? figure_estimate(scale, e->estimate, e->low, e->high).text : "-");
}
static void write_effects(document *d, const report *p, const tradeoff *t) {
    text_list *table;
    char name[160];
    if (!t->order) {
        document_text(d, BLOCK_LINE, "effects of knobs: %s", t->knobs.knob_count ? "this grid cannot tell them apart" : "no knob varies");
        return;
    }
    document_text(d, BLOCK_HEADING, "E2: effects of the knobs on mean %s and accuracy [95 %% interval]", METRIC_KEYS[p->settings.axis]);
    write_effect_shares(d, t);
    document_text(d, BLOCK_LINE, "main effects: a level's mean less the mean of all; latency mean %s ms%s%s",
                  figure_number(t->effects[0][0].estimate).text,
                  t->effects[1] ? ", accuracy mean " : "", t->effects[1] ? figure_number(t->effects[1][0].estimate).text : "");
    table = document_table(d, "level|latency, ms|accuracy, points");
    for (size_t i = 0; i < t->effect_count; i++) {
        if (t->effects[0][i].kind != VP_EFFECT_MAIN) continue;
        effect_name(t, p->r, &t->effects[0][i], name);
        text_list_add(table, "%s", name);
        write_effect(table, &t->effects[0][i], 1);
        write_effect(table, t->effects[1] ? &t->effects[1][i] : NULL, 100);
    }
}
/* Pairs of levels whose effect together is not that of both: those that stand a test adjusted for their number, the largest first. */
typedef struct found_pair { size_t at; double size; } found_pair;
static int by_size(const void *a, const void *b) {
    const found_pair *x = (const found_pair *)a, *y = (const found_pair *)b;
    return x->size > y->size ? -1 : x->size < y->size ? 1 : x->at < y->at ? -1 : x->at > y->at;
}
static size_t find_pairs(const vp_effect *effects, size_t effect_count, found_pair *found) {
    double *p = (double *)resize(NULL, effect_count, 2 * sizeof *p), *adjusted = p + effect_count;
    size_t *at = (size_t *)resize(NULL, effect_count, sizeof *at), count = 0, kept = 0;
    uint32_t *order = (uint32_t *)resize(NULL, effect_count, sizeof *order);
    for (size_t i = 0; i < effect_count; i++) {
        if (effects[i].kind != VP_EFFECT_PAIR || !(effects[i].p >= 0 && effects[i].p <= 1)) continue;
        at[count] = i;
        p[count++] = effects[i].p;
    }
    if (count && vp_adjust(p, count, VP_ADJUST_BENJAMINI_HOCHBERG, order, adjusted) == VP_OK) {
        for (size_t i = 0; i < count; i++) {
            if (!(adjusted[i] <= 0.05)) continue;
            found[kept].at = at[i];
            found[kept++].size = fabs(effects[at[i]].estimate);
        }
    }
    qsort(found, kept, sizeof *found, by_size);
    free(p);
    free(at);
    free(order);
    return kept;
}
static void write_pairs(document *d, const report *p, const tradeoff *t) {
    enum { SHOWN = 8 };
    found_pair *found = (found_pair *)resize(NULL, t->effect_count, sizeof *found);
    for (int v = 0; v < 2 && t->order == 2; v++) {
        size_t count = t->effects[v] ? find_pairs(t->effects[v], t->effect_count, found) : 0;
        text_list *table;
        if (!t->effects[v]) continue;
        document_text(d, BLOCK_LINE, "interactions in %s: %zu that stand (Benjamini-Hochberg, 5 %%)%s", v ? "accuracy" : "latency", count,
                      count > SHOWN ? ", the largest 8" : "");
        if (!count) continue;
        table = document_table(d, v ? "levels together|points more than both alone" : "levels together|ms more than both alone");
        for (size_t i = 0; i < count && i < SHOWN; i++) {
            char name[160];
            effect_name(t, p->r, &t->effects[v][found[i].at], name);
            text_list_add(table, "%s", name);
            write_effect(table, &t->effects[v][found[i].at], v ? 100 : 1);
        }
    }
    free(found);
}
static void write_knob_fronts(document *d, const report *p, const tradeoff *t) {
    text_list *table;
    if (!t->knob_front_count) return;
    document_text(d, BLOCK_HEADING, "E2: fronts with one knob held");
    document_text(d, BLOCK_LINE, "area: what the front dominates up to the slowest and the least accurate configuration, %% of the whole front's");
    table = document_table(d, "held|points|area %|fastest|most accurate");
    for (size_t i = 0; i < t->knob_front_count; i++) {
        const knob_front *f = &t->fronts[i];
        char level[48], fast[80], best[80];
        text_list_add(table, "%s %s", KNOB_NAMES[f->knob], level_text(t, p->r, f->knob, f->level, level));
        text_list_add(table, "%zu", f->count);
        text_list_add(table, "%s", figure_percent(f->area / t->area).text);
        text_list_add(table, "%s", f->count ? setting_text(&p->r->files[t->group->paired[f->front[0]]], fast) : "-");
        text_list_add(table, "%s", f->count ? setting_text(&p->r->files[t->group->paired[f->front[f->count - 1]]], best) : "-");
    }
}
static void write_gains(document *d, const report *p, const tradeoff *t) {
    text_list *table = NULL;
    for (size_t i = 0; i < t->gain_count; i++) {
        const knob_gain *g = &t->gains[i];
        char from[80], level[48];
        if (!is_listed(t->front, t->front_count, g->from)) continue;
        if (!table) {
            document_text(d, BLOCK_HEADING, "E2: what the next level of a knob buys, from the front's points; means over samples");
            table = document_table(d, "from|to|ms more|points more|points per ms");
        }
        for (int32_t k = 0, level_index = 0; k < t->knobs.knob_count; k++) {
            if (t->knob_of[k] != g->knob) continue;
            level_index = t->levels[g->to * (size_t)t->knobs.knob_count + (size_t)k];
            level_text(t, p->r, g->knob, level_index, level);
        }
        text_list_add(table, "%s", setting_text(&p->r->files[t->group->paired[g->from]], from));
        text_list_add(table, "%s %s", KNOB_NAMES[g->knob], level);
        text_list_add(table, "%s", figure_estimate(1, g->gain.latency.mean, g->gain.latency.low, g->gain.latency.high).text);
        text_list_add(table, "%s", figure_estimate(100, g->gain.accuracy.mean, g->gain.accuracy.low, g->gain.accuracy.high).text);
        if (isfinite(g->gain.low) && isfinite(g->gain.high))
            text_list_add(table, "%s", figure_estimate(100, g->gain.gain, g->gain.low, g->gain.high).text);
        else text_list_add(table, "unbounded"); /* the ms more may be none */
    }
}
static void report_write(document *d, const report *p) {
    write_summary(d, p);
    write_latencies(d, p);
    write_shares(d, p);
    write_parts(d, p);
    write_roofline(d, p);
    for (size_t i = 0; i < p->r->group_count; i++) write_curves(d, p, i);
    for (size_t i = 0; i < p->r->group_count; i++) {
        const tradeoff *t = &p->tradeoffs[i];
        if (t->reason[0]) {
            document_text(d, BLOCK_HEADING, "E2: %s", p->r->files[t->group->first].task);
            document_text(d, BLOCK_LINE, "no front: %s", t->reason);
            continue;
        }
        write_front(d, p, t);
        write_effects(d, p, t);
        write_pairs(d, p, t);
        write_knob_fronts(d, p, t);
        write_gains(d, p, t);
    }
}

/* ---- the report as CSV: a row a configuration */
static void csv_text(text_buffer *out, const char *text) {
    int quoted = text[strcspn(text, ",\"\n\r")] != 0;
    if (quoted) text_add_string(out, "\"");
    for (const char *c = text; *c; c++) text_add(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    if (quoted) text_add_string(out, "\"");
}
static void csv_number(text_buffer *out, double value) { /* empty: none */
    char text[26];
    vp_number_format(value, text);
    text_add_string(out, ",");
    text_add_string(out, text);
}
static void csv_heads(text_buffer *out) {
    text_add_string(out, "task,tier,target_vision_tokens,top_k,num_active_blocks,num_samples");
    for (int m = 0; m < METRIC_STAGE; m++) {
        static const char *const suffixes[] = {"mean", "p50", "p50_low", "p50_high", "p95", "p99"};
        for (int k = 0; k < 6; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", METRIC_KEYS[m], suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        static const char *const suffixes[] = {"ms", "share", "tflops", "gbs"};
        for (int k = 0; k < 4; k++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s", vp_stage_name((vp_stage)s), suffixes[k]);
            text_add_string(out, head);
        }
    }
    for (int s = 0; s < 2; s++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) {
            char head[64];
            snprintf(head, sizeof head, ",%s_%s_share", vp_stage_name((vp_stage)PART_STAGES[s]), vp_part_name((vp_part)part));
            text_add_string(out, head);
        }
    text_add_string(out, ",idle_share,accuracy,accuracy_low,accuracy_high,latency,latency_low,latency_high,front,membership,path\n");
}
static void csv_row(text_buffer *out, const report *p, size_t file) {
    const decomposition *c = &p->items[file];
    const result_file *f = c->file;
    const tradeoff *t = p->tradeoffs;
    size_t config = 0;
    while (file >= t->group->first + t->group->count) t++;
    while (config < t->config_count && t->group->paired[config] != file) config++;
    csv_text(out, f->task);
    text_add_string(out, ",");
    csv_text(out, f->tier ? f->tier : "");
    csv_number(out, f->target_tokens >= 0 ? (double)f->target_tokens : (double)NAN);
    csv_number(out, (double)f->top_k);
    csv_number(out, (double)f->block_count);
    csv_number(out, (double)f->count);
    for (int m = 0; m < METRIC_STAGE; m++) {
        double values[6];
        values[0] = c->mean[m]; values[1] = c->p50[m].value; values[2] = c->p50[m].low; values[3] = c->p50[m].high; values[4] = c->p95[m];
        values[5] = c->p99[m];
        for (int k = 0; k < 6; k++) csv_number(out, values[k]);
    }
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        csv_number(out, c->stages[s].mean);
        csv_number(out, c->stages[s].share);
        csv_number(out, c->stages[s].tflops);
        csv_number(out, c->stages[s].gbs);
    }
    for (int s = 0; s < 2; s++)
        for (int part = VP_PART_EMBED; part < VP_PART_COUNT; part++) csv_number(out, c->stages[PART_STAGES[s]].parts[part]);
    csv_number(out, c->idle_share);
    if (config == t->config_count || t->reason[0]) {
        csv_number(out, f->accuracy);
        text_add_string(out, ",,,,,,,");
    } else {
        const vp_bootstrap_point *b = &t->points[config];
        csv_number(out, b->accuracy);
        csv_number(out, b->accuracy_low);
        csv_number(out, b->accuracy_high);
        csv_number(out, b->latency);
        csv_number(out, b->latency_low);
        csv_number(out, b->latency_high);
        csv_number(out, is_listed(t->front, t->front_count, config));
        csv_number(out, b->membership);
    }
    text_add_string(out, ",");
    csv_text(out, f->path);
    text_add_string(out, "\n");
}

/* ---- the report as JSON */
static void put_list(vp_json_writer *w, const char *key, const text_list *l) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < l->count; i++) json_lossy(w, l->items[i]);
    vp_json_end_array(w);
}
static void put_range(vp_json_writer *w, const char *key, double low, double high) { put_interval(w, key, 1, low, high); }
static void put_setting_of(vp_json_writer *w, const result_file *f) {
    put_text(w, "dataset_name", f->task);
    put_text(w, "tier", f->tier);
    vp_json_key(w, "target_vision_tokens");
    if (f->target_tokens >= 0) vp_json_int(w, f->target_tokens); else vp_json_null(w);
    put_int(w, "top_k", f->top_k);
    put_int(w, "num_active_blocks", f->block_count);
}
static void put_stage_cost(vp_json_writer *w, const stage_cost *c) {
    vp_json_begin_object(w);
    put_double(w, "mean_ms", c->mean);
    put_double(w, "share", c->share);
    put_double(w, "p50_ms", c->p50.value);
    put_range(w, "p50_interval", c->p50.low, c->p50.high);
    put_double(w, "flops", c->flops);
    put_double(w, "bytes", c->bytes);
    put_double(w, "launches", c->launches);
    put_double(w, "tflops_per_s", c->tflops);
    put_double(w, "gb_per_s", c->gbs);
    put_double(w, "host_share", c->host_share);
    put_double(w, "idle_share", c->idle_share);
    vp_json_key(w, "parts"); /* null: kernels were not timed */
    if (stage_has_parts(c)) {
        vp_json_begin_object(w);
        for (int part = 0; part < VP_PART_COUNT; part++) if (isfinite(c->parts[part])) put_double(w, vp_part_name((vp_part)part), c->parts[part]);
        vp_json_end_object(w);
    } else vp_json_null(w);
    put_text(w, "bound", c->limit == BOUND_NONE ? NULL : BOUND_NAMES[c->limit]);
    vp_json_end_object(w);
}
static void put_decomposition(vp_json_writer *w, const decomposition *d) {
    vp_json_begin_object(w);
    put_setting_of(w, d->file);
    put_text(w, "path", d->file->path);
    put_int(w, "num_samples", (int64_t)d->file->count);
    put_int(w, "num_failed", d->file->failed_count);
    vp_json_key(w, "latency_ms");
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE; m++) {
        vp_json_key(w, METRIC_KEYS[m]);
        vp_json_begin_object(w);
        put_int(w, "count", (int64_t)d->counts[m]);
        put_double(w, "mean", d->mean[m]);
        put_double(w, "p50", d->p50[m].value);
        put_range(w, "p50_interval", d->p50[m].low, d->p50[m].high);
        put_double(w, "p95", d->p95[m]);
        put_double(w, "p99", d->p99[m]);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    put_double(w, "closure", d->closure);
    put_double(w, "unaccounted_share", d->unaccounted_share);
    put_double(w, "idle_share", d->idle_share);
    put_double(w, "run_spread", d->run_spread);
    put_double(w, "tool_cost_share", d->file->cost_share);
    put_range(w, "tool_cost_share_interval", d->file->cost_low, d->file->cost_high);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!isfinite(d->stages[s].mean)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)s));
        put_stage_cost(w, &d->stages[s]);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void put_curve(vp_json_writer *w, const report *p, size_t i) {
    const curve *c = &p->curves[i];
    vp_json_begin_object(w);
    put_text(w, "name", c->name);
    put_text(w, "dataset_name", p->r->files[p->r->groups[p->curve_group[i]].first].task);
    put_text(w, "of", c->label);
    put_text(w, "x", c->x_name);
    put_text(w, "y", c->y_name);
    put_text(w, "unit", c->unit);
    put_double(w, "slope", c->slope.value);
    put_range(w, "slope_interval", c->slope.low, c->slope.high);
    put_double(w, "intercept_ms", c->intercept);
    put_double(w, "r2", c->r2);
    put_int(w, "count", (int64_t)c->count);
    vp_json_key(w, "bins");
    vp_json_begin_array(w);
    for (size_t b = 0; b < c->bin_count; b++) {
        vp_json_begin_object(w);
        put_double(w, "x", c->bins[b].x);
        put_double(w, "p50_ms", c->bins[b].y.value);
        put_range(w, "p50_interval", c->bins[b].y.low, c->bins[b].y.high);
        put_int(w, "count", (int64_t)c->bins[b].count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static void put_e1(vp_json_writer *w, const report *p) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-e1-1");
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &p->warnings);
    put_list(w, "findings", &p->findings);
    put_double(w, "peak_tflops", p->peak_tflops > 0 ? p->peak_tflops : (double)NAN);
    put_double(w, "peak_gbs", p->peak_gbs > 0 ? p->peak_gbs : (double)NAN);
    put_bool(w, "peaks_are_given", p->peaks_are_given);
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->r->count; i++) put_decomposition(w, &p->items[i]);
    vp_json_end_array(w);
    vp_json_key(w, "curves");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->curve_count; i++) put_curve(w, p, i);
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static void put_points(vp_json_writer *w, const report *p, const tradeoff *t) {
    vp_json_key(w, "configurations");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->config_count; i++) {
        const vp_bootstrap_point *b = &t->points[i];
        vp_json_begin_object(w);
        put_setting_of(w, &p->r->files[t->group->paired[i]]);
        put_double(w, "latency_ms", b->latency);
        put_range(w, "latency_interval", b->latency_low, b->latency_high);
        put_double(w, "accuracy", b->accuracy);
        put_range(w, "accuracy_interval", b->accuracy_low, b->accuracy_high);
        put_double(w, "membership", b->membership);
        put_bool(w, "on_front", is_listed(t->front, t->front_count, i));
        put_bool(w, "on_epsilon_front", is_listed(t->kept, t->kept_count, i));
        put_int(w, "equal_points", (int64_t)equal_points(t, i));
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_effects(vp_json_writer *w, const report *p, const tradeoff *t) {
    static const char *const values[] = {"latency", "accuracy"}, *const kinds[] = {"mean", "main", "step", "interaction"};
    for (int v = 0; v < 2; v++) {
        char key[32];
        snprintf(key, sizeof key, "%s_effects", values[v]);
        vp_json_key(w, key);
        vp_json_begin_array(w);
        for (size_t i = 0; t->effects[v] && i < t->effect_count; i++) {
            const vp_effect *e = &t->effects[v][i];
            char name[160], level[48];
            vp_json_begin_object(w);
            effect_name(t, p->r, e, name);
            put_text(w, "kind", kinds[e->kind]);
            put_text(w, "name", name);
            put_text(w, "knob", e->knob_a < 0 ? NULL : KNOB_KEYS[t->knob_of[e->knob_a]]);
            put_text(w, "level", e->knob_a < 0 ? NULL : level_text(t, p->r, t->knob_of[e->knob_a], e->level_a, level));
            if (e->kind == VP_EFFECT_PAIR) {
                put_text(w, "second_knob", KNOB_KEYS[t->knob_of[e->knob_b]]);
                put_text(w, "second_level", level_text(t, p->r, t->knob_of[e->knob_b], e->level_b, level));
            }
            put_double(w, "estimate", e->estimate);
            put_range(w, "interval", e->low, e->high);
            put_double(w, "p", e->p);
            vp_json_end_object(w);
        }
        vp_json_end_array(w);
    }
}
static void put_shares(vp_json_writer *w, const tradeoff *t) {
    vp_json_key(w, "variance_shares");
    vp_json_begin_array(w);
    for (int32_t a = 0, term = 0, knobs = t->knobs.knob_count; t->order && a <= knobs + (t->order == 2 ? knobs * (knobs - 1) / 2 : 0); a++, term++) {
        char name[80] = "left";
        int32_t pair = a - knobs, first = 0;
        if (pair < 0) snprintf(name, sizeof name, "%s", KNOB_KEYS[t->knob_of[a]]);
        else if (t->order == 2 && pair < knobs * (knobs - 1) / 2) {
            while (pair >= knobs - 1 - first) pair -= knobs - 1 - first++;
            snprintf(name, sizeof name, "%s x %s", KNOB_KEYS[t->knob_of[first]], KNOB_KEYS[t->knob_of[first + 1 + pair]]);
        }
        vp_json_begin_object(w);
        put_text(w, "term", name);
        put_double(w, "latency", t->shares[0] ? t->shares[0][term] : (double)NAN);
        put_double(w, "accuracy", t->shares[1] ? t->shares[1][term] : (double)NAN);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_knob_fronts(vp_json_writer *w, const report *p, const tradeoff *t) {
    vp_json_key(w, "fronts_with_knob_held");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->knob_front_count; i++) {
        const knob_front *f = &t->fronts[i];
        char level[48];
        vp_json_begin_object(w);
        put_text(w, "knob", KNOB_KEYS[f->knob]);
        put_text(w, "level", level_text(t, p->r, f->knob, f->level, level));
        put_double(w, "area", f->area);
        vp_json_key(w, "front"); /* places in configurations */
        vp_json_begin_array(w);
        for (size_t k = 0; k < f->count; k++) vp_json_int(w, f->front[k]);
        vp_json_end_array(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_gains(vp_json_writer *w, const tradeoff *t) {
    vp_json_key(w, "marginal_gains");
    vp_json_begin_array(w);
    for (size_t i = 0; i < t->gain_count; i++) {
        const knob_gain *g = &t->gains[i];
        vp_json_begin_object(w);
        put_int(w, "from", (int64_t)g->from);
        put_int(w, "to", (int64_t)g->to);
        put_text(w, "knob", KNOB_KEYS[g->knob]);
        put_double(w, "latency_ms", g->gain.latency.mean);
        put_range(w, "latency_interval", g->gain.latency.low, g->gain.latency.high);
        put_double(w, "accuracy", g->gain.accuracy.mean);
        put_range(w, "accuracy_interval", g->gain.accuracy.low, g->gain.accuracy.high);
        put_double(w, "accuracy_per_ms", g->gain.gain);
        put_range(w, "accuracy_per_ms_interval", g->gain.low, g->gain.high);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_tradeoff(vp_json_writer *w, const report *p, const tradeoff *t) {
    const uint32_t *fronts[2];
    size_t counts[2];
    vp_json_begin_object(w);
    put_text(w, "dataset_name", p->r->files[t->group->first].task);
    put_text(w, "reason", t->reason[0] ? t->reason : NULL);
    put_bool(w, "corpus_metric", t->is_corpus);
    put_int(w, "num_samples", (int64_t)t->sample_count);
    if (!t->reason[0]) {
        fronts[0] = t->front; fronts[1] = t->kept;
        counts[0] = t->front_count; counts[1] = t->kept_count;
        put_double(w, "epsilon_ms", t->epsilon_latency);
        put_double(w, "area", t->area);
        put_points(w, p, t);
        for (int which = 0; which < 2; which++) {
            vp_json_key(w, which ? "epsilon_front" : "front"); /* places in configurations */
            vp_json_begin_array(w);
            for (size_t i = 0; i < counts[which]; i++) vp_json_int(w, fronts[which][i]);
            vp_json_end_array(w);
        }
        put_shares(w, t);
        put_effects(w, p, t);
        put_knob_fronts(w, p, t);
        put_gains(w, t);
    }
    vp_json_end_object(w);
}
static void put_e2(vp_json_writer *w, const report *p) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-e2-1");
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &p->warnings);
    put_text(w, "latency", METRIC_KEYS[p->settings.axis]);
    put_text(w, "percentile", percentile_text(p->settings.percentile));
    put_int(w, "resamples", (int64_t)p->settings.resamples);
    put_int(w, "seed", p->settings.seed);
    put_double(w, "epsilon_accuracy", p->settings.epsilon_accuracy);
    vp_json_key(w, "datasets");
    vp_json_begin_array(w);
    for (size_t i = 0; i < p->r->group_count; i++) put_tradeoff(w, p, &p->tradeoffs[i]);
    vp_json_end_array(w);
    vp_json_end_object(w);
}

/* ---- the command */
typedef enum report_form { FORM_TEXT, FORM_MARKDOWN, FORM_CSV, FORM_JSON, FORM_HTML, FORM_E1, FORM_E2 } report_form;
static void page_write(const report *p, text_buffer *out);
static void report_form_write(const report *p, report_form form, text_buffer *out) {
    vp_json_writer w;
    if (form == FORM_TEXT || form == FORM_MARKDOWN) {
        document d = {NULL, 0};
        report_write(&d, p);
        document_print(&d, form == FORM_MARKDOWN, out);
        document_free(&d);
    } else if (form == FORM_HTML) page_write(p, out);
    else if (form == FORM_CSV) {
        csv_heads(out);
        for (size_t i = 0; i < p->r->count; i++) csv_row(out, p, i);
    } else {
        vp_json_writer_init_sink(&w, text_sink, out, 1);
        if (form == FORM_JSON) {
            vp_json_begin_object(&w);
            put_text(&w, "schema", "vlmprof-report-1");
            vp_json_key(&w, "e1_stage_decomposition");
        }
        if (form != FORM_E2) put_e1(&w, p);
        if (form == FORM_JSON) vp_json_key(&w, "e2_pareto_coupling");
        if (form != FORM_E1) put_e2(&w, p);
        if (form == FORM_JSON) vp_json_end_object(&w);
        vp_json_finish(&w);
        text_add_string(out, "\n");
    }
}
/* FOLDER/NAME, by way of a temporary file; 0 or an exit code. */
static int write_whole(const char *folder, const char *name, const char *data, size_t bytes) {
    char own[48], *temporary, *path = join_path(folder, name);
    int good, code = 0;
    FILE *f;
    snprintf(own, sizeof own, ".vlmprof-writing-%ld", (long)getpid());
    temporary = join_path(folder, own);
    f = fopen(temporary, "wb");
    good = f && fwrite(data, 1, bytes, f) == bytes && !fflush(f) && !fsync(fileno(f));
    if (f) good = !fclose(f) && good;
    if (!good || rename(temporary, path)) {
        code = complain(EXIT_OUTPUT, "%s cannot be written: %s", path, strerror(errno));
        unlink(temporary);
    }
    free(temporary);
    free(path);
    return code;
}
static int write_report_files(const report *p, const char *folder) {
    static const struct { const char *name; report_form form; } files[] = {{"report.md", FORM_MARKDOWN}, {"report.csv", FORM_CSV},
        {"report.html", FORM_HTML}, {"e1_stage_decomposition.json", FORM_E1}, {"e2_pareto_coupling.json", FORM_E2}};
    int code = make_folder(folder);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !code; i++) {
        text_buffer out = {NULL, 0, 0};
        report_form_write(p, files[i].form, &out);
        code = write_whole(folder, files[i].name, out.data, out.bytes);
        free(out.data);
    }
    return code;
}
static int write_page(const char *path, const text_buffer *out) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? copy_text(path, (size_t)(slash + 1 - path)) : copy_text(".", 1);
    int code = write_whole(folder, slash ? slash + 1 : path, out->data, out->bytes);
    free(folder);
    return code;
}
static int axis_of(const char *name) {
    return !strcmp(name, "vision") ? METRIC_VISION : !strcmp(name, "prefill") ? METRIC_PREFILL : !strcmp(name, "decode") ? METRIC_DECODE
         : !strcmp(name, "ttft") ? METRIC_TTFT : METRIC_TOTAL;
}
/* What report and best share; a figure that is not given is NaN or infinite. */
static report_settings settings_of(const options *o) {
    report_settings s;
    memset(&s, 0, sizeof s);
    s.axis = axis_of(text_of(o, "latency"));
    s.percentile = !strcmp(text_of(o, "percentile"), "mean") ? -1 : strtod(text_of(o, "percentile"), NULL);
    s.resamples = (size_t)number_of(o, "resamples");
    s.seed = (uint32_t)number_of(o, "seed");
    s.peak_tflops = s.peak_gbs = (double)NAN;
    s.budget = HUGE_VAL;
    s.min_accuracy = -HUGE_VAL;
    return s;
}
static int print_whole(const text_buffer *out) {
    return fwrite(out->data, 1, out->bytes, stdout) == out->bytes ? 0 : complain(EXIT_OUTPUT, "stdout cannot be written: %s", strerror(errno));
}
static int command_report(const options *o) {
    static const char *const forms[] = {"", "markdown", "csv", "json", "html"};
    report_settings s = settings_of(o);
    report_form form = FORM_TEXT;
    results r;
    report p;
    int code = 0, asked = 0;
    if (!o->operand_count) return complain(EXIT_USAGE, "report: give a folder of result files; see vlmprof report --help");
    for (int i = FORM_MARKDOWN; i <= FORM_HTML; i++) if (given(o, forms[i])) { form = (report_form)i; asked++; }
    if (asked > 1)
        return complain(EXIT_USAGE, "report: --markdown, --csv, --json and --html are forms of one output: give one, or --output_dir for all");
    if (given(o, "peak_tflops")) s.peak_tflops = opt(o, "peak_tflops")->real;
    if (given(o, "peak_gbs")) s.peak_gbs = opt(o, "peak_gbs")->real;
    s.epsilon_share = opt(o, "epsilon_latency")->real / 100;
    s.epsilon_accuracy = opt(o, "epsilon_accuracy")->real / 100;
    if ((code = read_results(&r, o->operands, o->operand_count)) != 0) return code;
    report_make(&p, &r, &s);
    for (size_t i = 0; i < p.warnings.count && form == FORM_CSV; i++) fprintf(stderr, "vlmprof: %s\n", p.warnings.items[i]);
    if (text_of(o, "output_dir")) code = write_report_files(&p, text_of(o, "output_dir"));
    if (!code && (asked || !text_of(o, "output_dir"))) {
        text_buffer out = {NULL, 0, 0};
        report_form_write(&p, form, &out);
        code = form == FORM_HTML && text_of(o, "html") ? write_page(text_of(o, "html"), &out) : print_whole(&out);
        free(out.data);
    } else if (!code)
        fprintf(stderr, "vlmprof: report.html, report.md, report.csv, e1_stage_decomposition.json, e2_pareto_coupling.json in %s\n",
                text_of(o, "output_dir"));
    report_free(&p);
    results_free(&r);
    return code;
}

/* ========================================================================================= estimate >>estimate
 * E3: what a request will cost. fit: result files -> a model for each stage, with its errors on configurations that it never saw. predict: that
 * model -> milliseconds with intervals; its errors on other result files; its recalibration to another device. Mathematics: vp_latency_*. */
#define ESTIMATOR_SCHEMA "vlmprof-estimator-1"
#define ESTIMATE_LEVEL 0.95
enum { ESTIMATE_TOTAL = VP_LATENCY_STAGE_COUNT, ESTIMATE_PARTS, ESTIMATE_KINDS = VP_LATENCY_MEAN + 1, ESTIMATOR_BYTES_MOST = 1 << 24 };
enum { SPLIT_NONE, SPLIT_CONFIG, SPLIT_SIZE, SPLIT_COUNT };
static const char *const ESTIMATE_KIND_KEYS[ESTIMATE_KINDS] = {"physical", "seed", "mean"};
static const char *const SPLIT_KEYS[SPLIT_COUNT] = {"in_sample", "leave_one_configuration_out", "leave_one_image_size_out"};
static const char *const SPLIT_NAMES[SPLIT_COUNT] = {"in sample", "configuration left out", "image size left out"};
static const char *const LINEAR_STATE_KEYS[] = {"used", "at zero", "dropped"};
static const double BUDGET_SHARES[] = {0.5, 0.7, 0.85, 1.0}; /* of the reference latency, as the experiments have them */
enum { BUDGET_COUNT = sizeof BUDGET_SHARES / sizeof BUDGET_SHARES[0] };
#define BUDGET_TOLERANCE 1.1 /* a violation is worse than this times the budget */
static const size_t CURVE_POINTS[] = {10, 25, 50, 100};
enum { CURVE_COUNT = sizeof CURVE_POINTS / sizeof CURVE_POINTS[0], CURVE_DRAWS = 200 };

#define REQUEST(member) offsetof(vp_latency_request, member)
static const column ESTIMATE_KNOBS[] = {
    {"views", REQUEST(views)}, {"vision_tokens", REQUEST(vision_tokens)}, {"text_tokens", REQUEST(text_tokens)}, {"sequence", REQUEST(sequence)},
    {"output_tokens", REQUEST(output_tokens)}, {"tier_index", REQUEST(tier_index)}, {"top_k", REQUEST(top_k)},
    {"num_active_blocks", REQUEST(active_blocks)}};
enum { ESTIMATE_KNOB_COUNT = sizeof ESTIMATE_KNOBS / sizeof ESTIMATE_KNOBS[0], KNOB_TEXT = 2, KNOB_OUTPUT = 4, KNOB_TIER, KNOB_EXPERTS, KNOB_ACTIVE };
static int32_t knob_at(const vp_latency_request *q, int knob) {
    int32_t value;
    memcpy(&value, (const char *)q + ESTIMATE_KNOBS[knob].offset, sizeof value);
    return value;
}
static const char *part_name(int part) { return part == ESTIMATE_TOTAL ? "total" : vp_latency_stage_name((vp_latency_stage)part); }
static int stage_runs(int stage, const vp_latency_request *q) {
    return stage == VP_LATENCY_VISION ? q->views > 0 : stage != VP_LATENCY_DECODE || q->output_tokens > 1;
}

/* ---- result files -> rows: one a sample and configuration */
typedef struct measurements {
    vp_latency_request *requests;
    double *measured, *total;     /* ms [count, VP_LATENCY_STAGE_COUNT], NaN: not measured; [count] */
    uint32_t *configs, *sizes;    /* which file, which image size */
    size_t count, config_count, size_count;
    size_t incomplete, not_positive; /* samples without a count or prefill; stages of 0 ms or less */
    double noise; size_t noise_count; /* sum of what is not known of each sample's own T_total, as a share; samples with two runs or more */
    const char *device, *model;
} measurements;
static void measurements_free(measurements *m) {
    free(m->requests);
    free(m->measured);
    free(m->total);
    free(m->configs);
    free(m->sizes);
}
static int32_t tier_index_of(const result_file *f) {
    for (int32_t i = 0; f->tier && vp_tier_at(i); i++) if (!strcmp(f->tier, vp_tier_at(i)->name)) return i;
    return 0;
}
/* The request of a sample; 0: something about it is not known. */
static int request_of(const result_file *f, size_t row, int32_t expert_count, vp_latency_request *q) {
    static const int columns[] = {COLUMN_VIEWS, COLUMN_VISION_TOKENS, COLUMN_TEXT_TOKENS, COLUMN_SEQUENCE, COLUMN_OUTPUT_TOKENS};
    int32_t counts[5];
    for (int i = 0; i < 5; i++) {
        double value = result_at(f, columns[i], row);
        if (!(value >= (i < 3 ? 0 : 1) && value <= 1e9)) return 0;
        counts[i] = (int32_t)value;
    }
    q->views = counts[0];
    q->vision_tokens = counts[1];
    q->text_tokens = counts[2];
    q->sequence = counts[3];
    q->output_tokens = counts[4];
    q->tier_index = tier_index_of(f);
    q->top_k = (int32_t)f->top_k;
    q->expert_count = expert_count;
    q->active_blocks = (int32_t)f->block_count;
    return 1;
}
/* The mean of few runs is off itself: by its standard error, times what |error| is of that on average. */
static void measure_noise(measurements *m, const result_file *f, size_t row) {
    size_t first = f->run_at ? f->run_at[row] : 0, count = f->run_at ? f->run_at[row + 1] - first : 0;
    double mean, sum = 0;
    if (count < 2) return;
    mean = vp_statistics_mean(f->run_total + first, count);
    for (size_t i = 0; i < count; i++) sum += (f->run_total[first + i] - mean) * (f->run_total[first + i] - mean);
    if (!(mean > 0)) return;
    m->noise += 0.79788456080286536 * sqrt(sum / (double)(count - 1) / (double)count) / mean; /* sqrt(2 / pi) */
    m->noise_count++;
}
static void measure_row(measurements *m, const result_file *f, size_t row, int32_t expert_count) {
    static const int columns[] = {METRIC_VISION, METRIC_PREFILL, METRIC_DECODE};
    double *stages = m->measured + m->count * VP_LATENCY_STAGE_COUNT;
    vp_latency_request *q = &m->requests[m->count];
    if (!request_of(f, row, expert_count, q) || !(result_at(f, METRIC_PREFILL, row) > 0)) { m->incomplete++; return; }
    m->total[m->count] = stages[VP_LATENCY_OTHER] = result_at(f, METRIC_TOTAL, row);
    for (int s = 0; s < VP_LATENCY_OTHER; s++) {
        stages[s] = (double)NAN;
        if (!stage_runs(s, q)) continue;
        stages[s] = result_at(f, columns[s], row);
        stages[VP_LATENCY_OTHER] -= stages[s];
    }
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        if (!stage_runs(s, q) || stages[s] > 0) continue;
        m->not_positive += stages[s] <= 0;
        stages[s] = (double)NAN;
    }
    measure_noise(m, f, row);
    m->count++;
}
static int number_experts(const options *o, const results *r, int64_t *experts, text_list *warnings) {
    int64_t said = -1;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        if (f->expert_count > 0 && said > 0 && f->expert_count != said)
            return complain(EXIT_USAGE, "%s is of a model with %lld experts, others of one with %lld: fit them apart", f->path,
                            (long long)f->expert_count, (long long)said);
        if (f->expert_count > 0) said = f->expert_count;
    }
    if (o->command == FIT && given(o, "num_experts")) said = number_of(o, "num_experts");
    else if (said < 0 && *experts > 0) said = *experts;
    else if (said < 0) {
        said = 64;
        text_list_add(warnings, "the files do not say how many experts the model has: 64 assumed, as MolmoE-1B has; --num_experts N says it");
    }
    for (size_t i = 0; i < r->count; i++)
        if (r->files[i].top_k > said)
            return complain(EXIT_INPUT, "%s: top_k %lld is more than the model's %lld experts", r->files[i].path, (long long)r->files[i].top_k,
                            (long long)said);
    *experts = said;
    return 0;
}
/* What must be one and the same in all files: a model of two devices would be one of neither. */
static int check_same(const results *r) {
    static const struct { const char *name; size_t offset; } texts[] = {{"device", offsetof(result_file, device)},
        {"model", offsetof(result_file, model)}, {"weights", offsetof(result_file, weights)}};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        for (size_t i = 1; i < r->count; i++) {
            const char *first = *(char *const *)(const void *)((const char *)&r->files[0] + texts[t].offset);
            const char *other = *(char *const *)(const void *)((const char *)&r->files[i] + texts[t].offset);
            if (strcmp(first ? first : "not said", other ? other : "not said"))
                return complain(EXIT_USAGE, "%.300s and %.300s differ in their %s (%.100s, %.100s): fit them apart", r->files[0].path,
                                r->files[i].path, texts[t].name, first ? first : "not said", other ? other : "not said");
        }
    return 0;
}
static void warn_of_measurements(const measurements *m, const results *r, text_list *warnings) {
    int64_t failed = 0, missing = 0, throttled = 0, synthetic = 0;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        synthetic += f->is_synthetic;
        failed += f->failed_count;
        missing += f->missing_count > 0 ? f->missing_count : 0;
        throttled += f->throttled_runs > 0 ? f->throttled_runs : 0;
    }
    if (synthetic) text_list_add(warnings, "synthetic weights: latency is real, but random experts are chosen more evenly than trained ones");
    if (m->count < 30) text_list_add(warnings, "%zu measurements are few: errors and intervals say little", m->count);
    if (failed || missing) text_list_add(warnings, "%lld points failed, %lld are missing", (long long)failed, (long long)missing);
    if (throttled) text_list_add(warnings, "%lld runs were throttled: the clocks were below their own", (long long)throttled);
    if (m->incomplete)
        text_list_add(warnings, "%zu samples left out: a token count or the time of their prefill is not in the file", m->incomplete);
    if (m->not_positive) text_list_add(warnings, "%zu stage times of 0 ms or less left out", m->not_positive);
    for (size_t i = 0; i < r->notes.count; i++) text_list_add(warnings, "%s", r->notes.items[i]);
}
/* Every row that is whole, of all files as they are. */
static void measurements_read(measurements *m, const results *r, int64_t experts) {
    size_t rows = 0;
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < r->count; i++) rows += r->files[i].count;
    m->requests = (vp_latency_request *)zeroed(rows, sizeof *m->requests);
    m->measured = (double *)resize(NULL, rows, VP_LATENCY_STAGE_COUNT * sizeof *m->measured);
    m->total = (double *)resize(NULL, rows, sizeof *m->total);
    m->configs = (uint32_t *)resize(NULL, rows, sizeof *m->configs);
    m->sizes = (uint32_t *)resize(NULL, rows, sizeof *m->sizes);
    m->config_count = r->count;
    m->device = r->files[0].device ? r->files[0].device : "not said";
    m->model = r->files[0].model ? r->files[0].model : "not said";
    for (size_t i = 0; i < r->count; i++) {
        size_t first = m->count, other = 0;
        while (other < i && !same_size(&r->files[other], &r->files[i])) other++;
        if (other == i) m->size_count++;
        for (size_t k = 0; k < r->files[i].count; k++) measure_row(m, &r->files[i], k, (int32_t)experts);
        for (size_t k = first; k < m->count; k++) { m->configs[k] = (uint32_t)i; m->sizes[k] = (uint32_t)other; }
    }
}
/* *experts: 0, or what a model says. 0 or an exit code. */
static int measurements_make(const options *o, const results *r, int64_t *experts, measurements *m, text_list *warnings) {
    int code;
    memset(m, 0, sizeof *m);
    if ((code = check_same(r)) != 0 || (code = number_experts(o, r, experts, warnings)) != 0) return code;
    measurements_read(m, r, *experts);
    if (!m->count)
        return complain(EXIT_INPUT, "%s: no sample has the times of its stages and its token counts (was it measured with --timing off?)",
                        r->files[0].path);
    warn_of_measurements(m, r, warnings);
    return 0;
}

/* ---- errors */
enum { EVALUATION_POINTS = 200 };
typedef struct evaluation {
    vp_linear_errors errors[ESTIMATE_KINDS][SPLIT_COUNT][ESTIMATE_PARTS]; /* count 0: none */
    vp_guardrail guardrails[BUDGET_COUNT + 1];
    double noise; /* share by which the mean over a sample's runs is off, on average: no model's MAPE is below it; NaN: single runs */
    int guardrail_count, guardrail_split;
    double reference_ms;  /* P95 of measured totals; budgets are shares of it */
    double own_budget_ms; /* one more that was asked for; 0: none */
    double points[ESTIMATE_PARTS][EVALUATION_POINTS][2]; /* measured and predicted, by the same split: for a plot */
    size_t point_counts[ESTIMATE_PARTS];
} evaluation;
/* What a fit of all rows says of each: [ESTIMATE_PARTS, count]; NaN where there is nothing to compare. */
static void predict_rows(const vp_latency_model *fits, const measurements *m, double *predicted) {
    for (size_t i = 0; i < m->count; i++) {
        vp_latency_prediction p;
        int good = vp_latency_predict(fits, &m->requests[i], &p) == VP_OK;
        for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++)
            predicted[(size_t)s * m->count + i] = good && isfinite(m->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s]) ? p.stage[s] : (double)NAN;
    }
}
static void predict_left_out(vp_latency_features kind, const measurements *m, int split, double *predicted) {
    const uint32_t *groups = split == SPLIT_CONFIG ? m->configs : m->sizes;
    size_t bytes = vp_latency_leave_out_scratch_bytes(m->config_count);
    double *values = (double *)resize(NULL, m->count, sizeof *values);
    void *scratch = resize(NULL, bytes, 1);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        double *out = predicted + (size_t)s * m->count;
        for (size_t i = 0; i < m->count; i++) values[i] = m->measured[i * VP_LATENCY_STAGE_COUNT + (size_t)s];
        if ((split == SPLIT_CONFIG ? m->config_count : m->size_count) > 1
            && vp_latency_leave_out(kind, (vp_latency_stage)s, m->requests, values, groups, m->count, m->config_count, scratch, bytes, out,
                                    NULL) == VP_OK)
            continue;
        for (size_t i = 0; i < m->count; i++) out[i] = (double)NAN; /* one group alone, or too few rows without it */
    }
    free(scratch);
    free(values);
}
/* The total of a row is the sum of the stages that run; one that has no prediction leaves none. */
static void add_totals(const measurements *m, double *predicted) {
    for (size_t i = 0; i < m->count; i++) {
        double sum = 0;
        for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) if (stage_runs(s, &m->requests[i])) sum += predicted[(size_t)s * m->count + i];
        predicted[ESTIMATE_TOTAL * m->count + i] = sum;
    }
}
static double measured_part(const measurements *m, int part, size_t row) {
    return part == ESTIMATE_TOTAL ? m->total[row] : m->measured[row * VP_LATENCY_STAGE_COUNT + (size_t)part];
}
/* Rows of a part that have both numbers; pairs: double [2, count], first the measured ones. */
static size_t pair_rows(const measurements *m, const double *predicted, int part, double *pairs) {
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        double p = predicted[(size_t)part * m->count + i], y = measured_part(m, part, i);
        if (!isfinite(p) || !isfinite(y)) continue;
        pairs[n] = y;
        pairs[m->count + n++] = p;
    }
    return n;
}
static void errors_of(const measurements *m, const double *predicted, vp_linear_errors errors[ESTIMATE_PARTS]) {
    double *pairs = (double *)resize(NULL, m->count, 3 * sizeof *pairs);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs);
        memset(&errors[part], 0, sizeof errors[part]);
        if (n) vp_linear_errors_compute(pairs, pairs + m->count, n, pairs + 2 * m->count, &errors[part]);
    }
    free(pairs);
}
/* Which requests a budget lets through, by predictions of totals; budgets are shares of the P95 that was measured. */
static void guard_budgets(const measurements *m, const double *predicted, evaluation *e) {
    double *pairs = (double *)resize(NULL, m->count, 3 * sizeof *pairs);
    size_t n = pair_rows(m, predicted, ESTIMATE_TOTAL, pairs);
    vp_statistics s;
    if (n && vp_statistics_compute(pairs, n, pairs + 2 * m->count, &s) == VP_OK) {
        e->reference_ms = s.p95;
        e->guardrail_count = BUDGET_COUNT + (e->own_budget_ms > 0);
        for (int b = 0; b < e->guardrail_count; b++)
            vp_guardrail_compute(pairs + m->count, pairs, n, b < BUDGET_COUNT ? e->reference_ms * BUDGET_SHARES[b] : e->own_budget_ms, 1,
                                 BUDGET_TOLERANCE, &e->guardrails[b]);
    }
    free(pairs);
}
/* Rows from first to last, as many as a plot can show. */
static void pick_points(const measurements *m, const double *predicted, evaluation *e) {
    double *pairs = (double *)resize(NULL, m->count, 2 * sizeof *pairs);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs), shown = n < EVALUATION_POINTS ? n : (size_t)EVALUATION_POINTS;
        for (size_t i = 0; i < shown; i++) {
            size_t row = (size_t)((double)i * (double)n / (double)shown);
            e->points[part][i][0] = pairs[row];
            e->points[part][i][1] = pairs[m->count + row];
        }
        e->point_counts[part] = shown;
    }
    free(pairs);
}
static int evaluate(const measurements *m, vp_latency_features chosen, evaluation *e) {
    double *predicted = (double *)resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    vp_latency_model *fits = (vp_latency_model *)zeroed(1, sizeof *fits);
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r = VP_OK;
    memset(e, 0, sizeof *e);
    e->noise = m->noise_count ? m->noise / (double)m->noise_count : (double)NAN;
    for (int kind = 0; kind < ESTIMATE_KINDS && r == VP_OK; kind++) {
        r = vp_latency_fit((vp_latency_features)kind, m->requests, m->measured, m->count, fits, &error);
        for (int split = 0; split < SPLIT_COUNT && r == VP_OK; split++) {
            if (split == SPLIT_NONE) predict_rows(fits, m, predicted);
            else predict_left_out((vp_latency_features)kind, m, split, predicted);
            add_totals(m, predicted);
            errors_of(m, predicted, e->errors[kind][split]);
            if (kind != (int)chosen || split == SPLIT_SIZE || !e->errors[kind][split][ESTIMATE_TOTAL].count) continue;
            e->guardrail_split = split;
            guard_budgets(m, predicted, e);
            pick_points(m, predicted, e);
        }
    }
    free(fits);
    free(predicted);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), "fit", r, &error);
}

/* ---- the model and its file */
typedef struct knob_range { int32_t least, median, most; } knob_range;
typedef struct estimator {
    vp_latency_model model;
    double correlation[VP_LATENCY_STAGE_COUNT][VP_LATENCY_STAGE_COUNT]; /* of what the stages' models miss: for intervals of totals */
    knob_range ranges[ESTIMATE_KNOB_COUNT];                             /* of the data */
    int64_t expert_count;
    char *model_name, *device;
    int is_synthetic;
    char *provenance, *recalibration; /* JSON; the latter NULL: as fitted */
    text_list warnings;
} estimator;
static void estimator_free(estimator *e) {
    free(e->model_name);
    free(e->device);
    free(e->provenance);
    free(e->recalibration);
    text_list_free(&e->warnings);
    free(e);
}
static int by_count(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}
static void find_ranges(const measurements *m, estimator *e) {
    int32_t *values = (int32_t *)resize(NULL, m->count, sizeof *values);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        for (size_t i = 0; i < m->count; i++) values[i] = knob_at(&m->requests[i], k);
        qsort(values, m->count, sizeof *values, by_count);
        e->ranges[k].least = values[0];
        e->ranges[k].median = values[(m->count - 1) / 2];
        e->ranges[k].most = values[m->count - 1];
    }
    free(values);
}
/* Correlation of two stages' residuals, weighted as the fit weighs them, over the rows that have both. */
static double residual_correlation(const measurements *m, const double *predicted, int a, int b, int is_relative) {
    double x = 0, y = 0, xx = 0, yy = 0, both = 0, n = 0, spread;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < m->count; i++) {
            double p = predicted[(size_t)a * m->count + i], q = predicted[(size_t)b * m->count + i], u, v;
            if (!isfinite(p) || !isfinite(q)) continue;
            u = measured_part(m, a, i);
            v = measured_part(m, b, i);
            u = is_relative ? (u - p) / u : u - p;
            v = is_relative ? (v - q) / v : v - q;
            if (!turn) { x += u; y += v; n++; continue; }
            xx += (u - x / n) * (u - x / n);
            yy += (v - y / n) * (v - y / n);
            both += (u - x / n) * (v - y / n);
        }
    }
    spread = sqrt(xx) * sqrt(yy);
    return spread > 0 ? fmax(-1, fmin(1, both / spread)) : 0; /* rounding alone takes it past 1 */
}
static void find_correlations(const measurements *m, estimator *e) {
    double *predicted = (double *)resize(NULL, m->count, VP_LATENCY_STAGE_COUNT * sizeof *predicted);
    predict_rows(&e->model, m, predicted);
    for (int a = 0; a < VP_LATENCY_STAGE_COUNT; a++)
        for (int b = 0; b < VP_LATENCY_STAGE_COUNT; b++)
            e->correlation[a][b] = a == b ? 1
                : residual_correlation(m, predicted, a < b ? a : b, a < b ? b : a, e->model.features == VP_LATENCY_PHYSICAL);
    free(predicted);
}
static void warn_of_fit(estimator *e, const measurements *m) {
    if (m->config_count < 2) text_list_add(&e->warnings, "one configuration alone: no error on configurations that were not seen can be told");
    if (m->size_count < 2) text_list_add(&e->warnings, "one image size alone: no error on image sizes that were not seen can be told");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_linear *fit = &e->model.fit[s];
        text_buffer features = {NULL, 0, 0};
        if (!e->model.fitted[s]) {
            text_list_add(&e->warnings, "%s: nothing was measured of this stage: it is not in the model", part_name(s));
            continue;
        }
        for (int c = 0; c < fit->columns; c++) {
            if (fit->state[c] != VP_LINEAR_DROPPED) continue;
            if (features.bytes) text_add_string(&features, ", ");
            text_add_string(&features, vp_latency_column_name(e->model.features, (vp_latency_stage)s, c));
        }
        if (features.bytes)
            text_list_add(&e->warnings, "%s: these data cannot tell %s from the features before: left out, what they cost lies in the others",
                          part_name(s), features.data);
        if (fit->degrees < 10) text_list_add(&e->warnings, "%s: %.0f degrees of freedom are few", part_name(s), fit->degrees);
        free(features.data);
    }
}
static void put_data_sets(vp_json_writer *w, const results *r) {
    vp_json_key(w, "data_sets");
    vp_json_begin_array(w);
    for (size_t i = 0; i < r->group_count; i++) {
        const result_file *f = &r->files[r->groups[i].first];
        vp_json_begin_object(w);
        put_text(w, "dataset_name", f->task);
        put_text(w, "data", f->data);
        put_text(w, "data_hash", f->data_hash);
        put_int(w, "configurations", (int64_t)r->groups[i].count);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
/* What a model was made of, as JSON text; malloc'ed. */
static char *provenance_of(const results *r, const measurements *m) {
    text_buffer out = {NULL, 0, 0};
    const result_file *f = &r->files[0];
    vp_json_writer w;
    vp_json_writer_init_sink(&w, text_sink, &out, 1);
    vp_json_begin_object(&w);
    put_text(&w, "device", m->device);
    put_text(&w, "host", f->host);
    put_text(&w, "model", m->model);
    put_bool(&w, "synthetic", f->is_synthetic);
    put_text(&w, "weights", f->weights);
    put_text(&w, "timing", f->timing);
    put_text(&w, "measured_by", f->version);
    put_text(&w, "measured_from", f->measured_from);
    put_text(&w, "measured_to", f->measured_to);
    put_data_sets(&w, r);
    put_int(&w, "configurations", (int64_t)m->config_count);
    put_int(&w, "image_sizes", (int64_t)m->size_count);
    put_int(&w, "rows", (int64_t)m->count);
    put_int(&w, "rows_left_out", (int64_t)m->incomplete);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) abort(); /* memory ends the program before */
    return out.data;
}
static int estimator_make(const measurements *m, const results *r, vp_latency_features kind, int64_t experts, estimator *e) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_result result = vp_latency_fit(kind, m->requests, m->measured, m->count, &e->model, &error);
    if (result != VP_OK) return complain_result(exit_code_of(result), "fit", result, &error);
    e->expert_count = experts;
    e->is_synthetic = r->files[0].is_synthetic;
    e->model_name = copy_text(m->model, strlen(m->model));
    e->device = copy_text(m->device, strlen(m->device));
    e->provenance = provenance_of(r, m);
    find_ranges(m, e);
    find_correlations(m, e);
    warn_of_fit(e, m);
    return 0;
}

static void put_errors(vp_json_writer *w, const vp_linear_errors *e) {
    if (!e->count) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rows", (int64_t)e->count);
    put_double(w, "mae_ms", e->mae);
    put_double(w, "rmse_ms", e->rmse);
    put_double(w, "mape_percent", 100 * e->mape);
    put_double(w, "r2", e->r2);
    put_double(w, "p95_absolute_ms", e->p95_absolute);
    put_double(w, "max_absolute_ms", e->max_absolute);
    put_double(w, "bias_ms", e->bias);
    vp_json_end_object(w);
}
static void put_parts(vp_json_writer *w, const vp_linear_errors errors[ESTIMATE_PARTS]) {
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        put_errors(w, &errors[part]);
    }
    vp_json_end_object(w);
}
static void put_guardrail(vp_json_writer *w, const vp_guardrail *g) {
    vp_json_begin_object(w);
    put_double(w, "budget_ms", g->budget);
    put_int(w, "requests", (int64_t)g->count);
    put_int(w, "accepted", (int64_t)g->accepted);
    put_int(w, "over_budget", (int64_t)g->over_budget);
    put_int(w, "violations", (int64_t)g->violations);
    put_int(w, "false_accepts", (int64_t)g->false_accepts);
    put_int(w, "false_rejects", (int64_t)g->false_rejects);
    put_double(w, "violation_rate", g->violation_rate);
    put_double(w, "false_accept_rate", g->false_accept_rate);
    put_double(w, "false_reject_rate", g->false_reject_rate);
    vp_json_end_object(w);
}
static void put_guardrails(vp_json_writer *w, const evaluation *e, const char *predictions) {
    vp_json_key(w, "guardrail");
    vp_json_begin_object(w);
    put_text(w, "predictions", predictions);
    put_double(w, "reference_ms", e->reference_ms);
    put_text(w, "reference", "P95 of T_total over the rows");
    put_double(w, "violation_tolerance", BUDGET_TOLERANCE);
    vp_json_key(w, "budgets");
    vp_json_begin_array(w);
    for (int b = 0; b < e->guardrail_count; b++) put_guardrail(w, &e->guardrails[b]);
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static void put_measured_predicted(vp_json_writer *w, const evaluation *e) {
    vp_json_key(w, "measured_predicted_ms");
    vp_json_begin_object(w);
    put_text(w, "predictions", SPLIT_KEYS[e->guardrail_split]);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        vp_json_begin_array(w);
        for (size_t i = 0; i < e->point_counts[part]; i++) {
            vp_json_begin_array(w);
            for (int k = 0; k < 2; k++) vp_json_double(w, e->points[part][i][k]);
            vp_json_end_array(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}
static void put_evaluation(vp_json_writer *w, const evaluation *e) {
    vp_json_key(w, "evaluation");
    vp_json_begin_object(w);
    for (int kind = 0; kind < ESTIMATE_KINDS; kind++) {
        vp_json_key(w, ESTIMATE_KIND_KEYS[kind]);
        vp_json_begin_object(w);
        for (int split = 0; split < SPLIT_COUNT; split++) {
            vp_json_key(w, SPLIT_KEYS[split]);
            put_parts(w, e->errors[kind][split]);
        }
        vp_json_end_object(w);
    }
    put_double(w, "run_noise_mape_percent", 100 * e->noise);
    put_guardrails(w, e, SPLIT_KEYS[e->guardrail_split]);
    put_measured_predicted(w, e);
    vp_json_end_object(w);
}
/* "ms" for the constant, "ms per views" for others */
static const char *unit_text(const char *name, char out[64]) {
    if (strcmp(name, "1")) snprintf(out, 64, "ms / (%.40s)", name); else snprintf(out, 64, "ms");
    return out;
}
static void put_stage_model(vp_json_writer *w, const estimator *e, int s) {
    const vp_linear *fit = &e->model.fit[s];
    const vp_affine *line = &e->model.affine[s];
    char unit[64];
    if (!e->model.fitted[s]) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rows", (int64_t)fit->rows);
    put_double(w, "degrees_of_freedom", fit->degrees);
    put_double(w, "sigma", fit->sigma);
    put_double(w, "condition", fit->condition);
    vp_json_key(w, "columns");
    vp_json_begin_array(w);
    for (int c = 0; c < fit->columns; c++) {
        const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
        double low = (double)NAN, high = (double)NAN;
        int known = vp_linear_coefficient(fit, c, ESTIMATE_LEVEL, &low, &high) == VP_OK;
        vp_json_begin_object(w);
        put_text(w, "name", name);
        put_text(w, "unit", unit_text(name, unit));
        put_text(w, "state", LINEAR_STATE_KEYS[fit->state[c]]);
        put_double(w, "coefficient", fit->coefficient[c]);
        put_double(w, "standard_error", fit->error[c]);
        put_interval(w, "interval", known, low, high);
        vp_json_key(w, "root");
        vp_json_begin_array(w);
        for (int k = 0; k < fit->columns; k++) vp_json_double(w, fit->root[c * fit->columns + k]);
        vp_json_end_array(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "affine");
    vp_json_begin_object(w);
    put_double(w, "slope", line->slope);
    put_double(w, "offset_ms", line->offset);
    put_double(w, "condition", line->condition);
    put_int(w, "measurements", (int64_t)line->count);
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void put_ranges(vp_json_writer *w, const estimator *e) {
    vp_json_key(w, "ranges");
    vp_json_begin_object(w);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        vp_json_key(w, ESTIMATE_KNOBS[k].name);
        vp_json_begin_object(w);
        put_int(w, "least", e->ranges[k].least);
        put_int(w, "median", e->ranges[k].median);
        put_int(w, "most", e->ranges[k].most);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}
/* The file: {"schema": "vlmprof-estimator-1", ...}. evaluation may be NULL. */
static vp_result put_estimator(vp_json_writer *w, const estimator *e, const evaluation *evaluated) {
    vp_json_begin_object(w);
    put_text(w, "schema", ESTIMATOR_SCHEMA);
    put_text(w, "version", VLMPROF_VERSION);
    put_list(w, "warnings", &e->warnings);
    put_text(w, "features", ESTIMATE_KIND_KEYS[e->model.features]);
    put_text(w, "model", e->model_name);
    put_bool(w, "synthetic", e->is_synthetic);
    put_text(w, "device", e->device);
    put_int(w, "num_experts", e->expert_count);
    put_double(w, "level", ESTIMATE_LEVEL);
    vp_json_key(w, "provenance");
    vp_json_raw(w, e->provenance, strlen(e->provenance));
    if (e->recalibration) {
        vp_json_key(w, "recalibration");
        vp_json_raw(w, e->recalibration, strlen(e->recalibration));
    }
    put_ranges(w, e);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_json_key(w, part_name(s));
        put_stage_model(w, e, s);
    }
    vp_json_end_object(w);
    vp_json_key(w, "residual_correlation");
    vp_json_begin_array(w);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_json_begin_array(w);
        for (int k = 0; k < VP_LATENCY_STAGE_COUNT; k++) vp_json_double(w, e->correlation[s][k]);
        vp_json_end_array(w);
    }
    vp_json_end_array(w);
    if (evaluated) put_evaluation(w, evaluated);
    vp_json_end_object(w);
    return vp_json_finish(w);
}
static int write_estimator(const char *path, const estimator *e, const evaluation *evaluated) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : copy_text(".", 1);
    text_buffer out = {NULL, 0, 0};
    vp_json_writer w;
    vp_result r;
    int code;
    vp_json_writer_init_sink(&w, text_sink, &out, 1);
    r = put_estimator(&w, e, evaluated);
    text_add_string(&out, "\n");
    code = r == VP_OK ? write_whole(folder, slash ? slash + 1 : path, out.data, out.bytes) : complain(EXIT_WORK, "%s: %s", path, vp_result_text(r));
    free(out.data);
    free(folder);
    return code;
}

/* ---- reading it back: every byte may be wrong */
typedef struct estimator_reader { const char *path; parsed p; int code; char where[128]; } estimator_reader;
/* The first thing that is wrong is told, at `where`.key; returns a node that is none. */
static uint32_t estimator_fail(estimator_reader *r, uint32_t node, const char *key, const char *what) {
    if (!r->code)
        r->code = complain(EXIT_INPUT, "%s: byte %llu: %s%s%s %s", r->path,
                           (unsigned long long)(node < r->p.json.node_count ? r->p.json.nodes[node].start : 0), r->where, r->where[0] ? "." : "",
                           key, what);
    return VP_JSON_NONE;
}
static uint32_t estimator_member(estimator_reader *r, uint32_t object, const char *key, vp_json_type type) {
    uint32_t node = vp_json_get(&r->p.json, object, key);
    static const char *const kinds[] = {"is missing", "is not of the right type"};
    return node_is(&r->p.json, node, type) ? node : estimator_fail(r, node == VP_JSON_NONE ? object : node, key, kinds[node != VP_JSON_NONE]);
}
static double estimator_node(estimator_reader *r, uint32_t node, const char *key, double least, double most) {
    double value = node_number(&r->p.json, node);
    if (!(value >= least && value <= most)) estimator_fail(r, node, key, "is out of range");
    return value;
}
static double estimator_number(estimator_reader *r, uint32_t object, const char *key, double least, double most) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_NUMBER);
    return node == VP_JSON_NONE ? (double)NAN : estimator_node(r, node, key, least, most);
}
/* null stands for what is not known: NaN */
static double estimator_optional(estimator_reader *r, uint32_t object, const char *key, double least, double most) {
    return node_is(&r->p.json, vp_json_get(&r->p.json, object, key), VP_JSON_NULL) ? (double)NAN : estimator_number(r, object, key, least, most);
}
static int64_t estimator_count(estimator_reader *r, uint32_t object, const char *key, int64_t least, int64_t most) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_NUMBER);
    int64_t value = least;
    if (node != VP_JSON_NONE && (vp_json_to_int(&r->p.json, node, &value) != VP_OK || value < least || value > most))
        estimator_fail(r, node, key, "is no count that makes sense");
    return r->code ? least : value;
}
static char *estimator_text(estimator_reader *r, uint32_t object, const char *key) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_STRING);
    char *text = node == VP_JSON_NONE ? NULL : result_text(&r->p.json, object, key);
    if (node != VP_JSON_NONE && !text) estimator_fail(r, node, key, "is no text");
    return text ? text : copy_text("", 0);
}
/* An object's member, by a list of words: its place in the list. */
static int estimator_word(estimator_reader *r, uint32_t object, const char *key, const char *const *words, int count) {
    uint32_t node = estimator_member(r, object, key, VP_JSON_STRING);
    for (int i = 0; node != VP_JSON_NONE && i < count; i++) if (vp_json_equals(&r->p.json, node, words[i])) return i;
    if (node != VP_JSON_NONE) estimator_fail(r, node, key, "is no word that is known");
    return 0;
}
static void read_stage_column(estimator_reader *r, uint32_t node, estimator *e, int s, int c) {
    const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
    vp_linear *fit = &e->model.fit[s];
    uint32_t named, root, item;
    snprintf(r->where, sizeof r->where, "stages.%s.columns[%d]", part_name(s), c);
    if (!node_is(&r->p.json, node, VP_JSON_OBJECT)) { estimator_fail(r, node, "name", "is missing"); return; }
    named = estimator_member(r, node, "name", VP_JSON_STRING);
    if (named != VP_JSON_NONE && !vp_json_equals(&r->p.json, named, name))
        estimator_fail(r, named, "name", "is not the one that this version computes");
    fit->state[c] = (unsigned char)estimator_word(r, node, "state", LINEAR_STATE_KEYS, 3);
    fit->coefficient[c] = estimator_number(r, node, "coefficient", e->model.features == VP_LATENCY_PHYSICAL ? 0 : -1e30, 1e30);
    fit->error[c] = estimator_optional(r, node, "standard_error", 0, 1e30);
    if (fit->state[c] != VP_LINEAR_USED && !(fit->coefficient[c] <= 0 && fit->coefficient[c] >= 0))
        estimator_fail(r, node, "coefficient", "is not 0 though the column is not used");
    fit->used_columns += fit->state[c] == VP_LINEAR_USED;
    root = estimator_member(r, node, "root", VP_JSON_ARRAY);
    if (root == VP_JSON_NONE) return;
    if (r->p.json.nodes[root].count != (uint32_t)fit->columns) { estimator_fail(r, root, "root", "has not one number a column"); return; }
    item = root + 1;
    for (int k = 0; k < fit->columns; k++, item = r->p.json.nodes[item].end)
        fit->root[c * fit->columns + k] = estimator_node(r, item, "root", -1e30, 1e30);
}
static void read_stage_model(estimator_reader *r, uint32_t object, estimator *e, int s) {
    vp_linear *fit = &e->model.fit[s];
    vp_affine *line = &e->model.affine[s];
    uint32_t columns, affine, item;
    int count = 0;
    while (vp_latency_column_name(e->model.features, (vp_latency_stage)s, count)) count++;
    line->slope = line->condition = 1;
    if (node_is(&r->p.json, vp_json_get(&r->p.json, object, part_name(s)), VP_JSON_NULL)) return;
    object = estimator_member(r, object, part_name(s), VP_JSON_OBJECT);
    if (r->code) return;
    snprintf(r->where, sizeof r->where, "stages.%s", part_name(s));
    e->model.fitted[s] = 1;
    fit->rows = (uint64_t)estimator_count(r, object, "rows", 1, INT64_C(1) << 53);
    fit->degrees = estimator_number(r, object, "degrees_of_freedom", 0, 1e16);
    fit->sigma = estimator_optional(r, object, "sigma", 0, 1e30);
    fit->condition = estimator_optional(r, object, "condition", 1 - 1e-9, 1e300);
    fit->columns = count;
    columns = estimator_member(r, object, "columns", VP_JSON_ARRAY);
    affine = estimator_member(r, object, "affine", VP_JSON_OBJECT);
    if (!r->code && r->p.json.nodes[columns].count != (uint32_t)count) estimator_fail(r, columns, "columns", "has another number of columns");
    if (r->code) return;
    item = columns + 1;
    for (int c = 0; c < count; c++, item = r->p.json.nodes[item].end) read_stage_column(r, item, e, s, c);
    snprintf(r->where, sizeof r->where, "stages.%s", part_name(s));
    if (!(fabs(fit->degrees - ((double)fit->rows - fit->used_columns)) <= 0))
        estimator_fail(r, object, "degrees_of_freedom", "is not rows - used columns");
    snprintf(r->where, sizeof r->where, "stages.%s.affine", part_name(s));
    line->slope = estimator_number(r, affine, "slope", -1e12, 1e12);
    line->offset = estimator_number(r, affine, "offset_ms", -MS_MOST, MS_MOST);
    line->condition = estimator_optional(r, affine, "condition", 1 - 1e-9, 1e300);
    line->count = (size_t)estimator_count(r, affine, "measurements", 0, INT64_C(1) << 40);
}
static void read_ranges(estimator_reader *r, uint32_t object, estimator *e) {
    for (int k = 0; k < ESTIMATE_KNOB_COUNT && !r->code; k++) {
        uint32_t range;
        snprintf(r->where, sizeof r->where, "ranges");
        range = estimator_member(r, object, ESTIMATE_KNOBS[k].name, VP_JSON_OBJECT);
        snprintf(r->where, sizeof r->where, "ranges.%s", ESTIMATE_KNOBS[k].name);
        if (r->code) return;
        e->ranges[k].least = (int32_t)estimator_count(r, range, "least", 0, 1000000000);
        e->ranges[k].median = (int32_t)estimator_count(r, range, "median", e->ranges[k].least, 1000000000);
        e->ranges[k].most = (int32_t)estimator_count(r, range, "most", e->ranges[k].median, 1000000000);
    }
}
static void read_correlations(estimator_reader *r, uint32_t rows, estimator *e) {
    r->where[0] = 0;
    for (uint32_t s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        uint32_t row = vp_json_at(&r->p.json, rows, s);
        for (uint32_t k = 0; k < VP_LATENCY_STAGE_COUNT && !r->code; k++)
            e->correlation[s][k] = estimator_node(r, vp_json_at(&r->p.json, row, k), "residual_correlation", s == k ? 1 : -1, 1);
        for (uint32_t k = 0; k < s && !r->code; k++)
            if (!(fabs(e->correlation[s][k] - e->correlation[k][s]) <= 0)) estimator_fail(r, row, "residual_correlation", "is not symmetric");
    }
}
static void check_duplicates(estimator_reader *r) {
    const vp_json *j = &r->p.json;
    uint32_t *scratch = (uint32_t *)resize(NULL, j->node_count, sizeof *scratch), duplicate;
    for (uint32_t i = 0; i < j->node_count && !r->code; i++)
        if (node_is(j, i, VP_JSON_OBJECT) && vp_json_has_duplicates(j, i, scratch, j->node_count, &duplicate) == VP_OK && duplicate != VP_JSON_NONE)
            estimator_fail(r, duplicate, "a key", "stands twice");
    free(scratch);
}
static char *estimator_raw(const vp_json *j, uint32_t node) { return copy_text(j->text + j->nodes[node].start, j->nodes[node].bytes); }
static void read_estimator_nodes(estimator_reader *r, estimator *e) {
    const vp_json *j = &r->p.json;
    uint32_t stages, ranges, correlations, provenance, warnings, item, synthetic = vp_json_get(j, 0, "synthetic");
    check_duplicates(r);
    e->model.features = (vp_latency_features)estimator_word(r, 0, "features", ESTIMATE_KIND_KEYS, ESTIMATE_KINDS);
    e->model_name = estimator_text(r, 0, "model");
    e->device = estimator_text(r, 0, "device");
    e->is_synthetic = node_is(j, synthetic, VP_JSON_TRUE);
    if (!e->is_synthetic && !node_is(j, synthetic, VP_JSON_FALSE)) estimator_fail(r, synthetic, "synthetic", "is neither true nor false");
    e->expert_count = estimator_count(r, 0, "num_experts", 1, 1000000);
    provenance = estimator_member(r, 0, "provenance", VP_JSON_OBJECT);
    warnings = estimator_member(r, 0, "warnings", VP_JSON_ARRAY);
    ranges = estimator_member(r, 0, "ranges", VP_JSON_OBJECT);
    stages = estimator_member(r, 0, "stages", VP_JSON_OBJECT);
    correlations = estimator_member(r, 0, "residual_correlation", VP_JSON_ARRAY);
    if (r->code) return;
    e->provenance = estimator_raw(j, provenance);
    item = warnings + 1;
    for (uint32_t i = 0; i < j->nodes[warnings].count && !r->code; i++, item = j->nodes[item].end) {
        char *text = node_text(j, item);
        if (text) text_list_add(&e->warnings, "%s", text); else estimator_fail(r, item, "warnings", "holds what is no text");
        free(text);
    }
    read_ranges(r, ranges, e);
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT && !r->code; s++) {
        snprintf(r->where, sizeof r->where, "stages");
        read_stage_model(r, stages, e, s);
    }
    if (!r->code) read_correlations(r, correlations, e);
}
/* 0 or an exit code; *out is malloc'ed on success. */
static int read_estimator(const char *path, estimator **out) {
    estimator_reader *r = (estimator_reader *)zeroed(1, sizeof *r);
    estimator *e = (estimator *)zeroed(1, sizeof *e);
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    size_t bytes = 0;
    vp_result result = vp_file_read(path, ESTIMATOR_BYTES_MOST, &text, &bytes, &error);
    int code;
    r->path = path;
    if (result != VP_OK) r->code = complain_result(EXIT_INPUT, path, result, &error);
    else if ((result = parse_json(&r->p, text, bytes, &error)) != VP_OK)
        r->code = complain(EXIT_INPUT, "%s: byte %lld: %s", path, (long long)error.offset, error.text[0] ? error.text : vp_result_text(result));
    else if (!node_is(&r->p.json, 0, VP_JSON_OBJECT) || !vp_json_equals(&r->p.json, vp_json_get(&r->p.json, 0, "schema"), ESTIMATOR_SCHEMA))
        r->code = complain(EXIT_INPUT, "%s is no model of vlmprof fit: its schema is not %s", path, ESTIMATOR_SCHEMA);
    else read_estimator_nodes(r, e);
    code = r->code;
    if (code) estimator_free(e); else *out = e;
    free(r->p.nodes);
    free(r);
    free(text);
    return code;
}

/* ---- fit */
static void error_row(text_list *table, const char *first, const char *second, const vp_linear_errors *e) {
    text_list_add(table, "%s", first);
    if (second) text_list_add(table, "%s", second);
    text_list_add(table, "%s", e->count ? figure_number(e->mae).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.2f", 100 * e->mape).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.4f", e->r2).text : "-");
    text_list_add(table, "%s", e->count ? figure_number(e->p95_absolute).text : "-");
    text_list_add(table, "%s", e->count ? figure_of("%.3f", e->bias).text : "-");
    text_list_add(table, "%zu", e->count);
}
static void write_guardrails(document *d, const evaluation *e, const char *predictions) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Guardrail: only requests predicted to hold a budget are let through (%s)", predictions);
    document_text(d, BLOCK_LINE, "budgets are shares of %.3f ms, the P95 of T_total; a violation takes more than %.1f times the budget",
                  e->reference_ms, BUDGET_TOLERANCE);
    table = document_table(d, "share|budget ms|let through|violations %|false accepts %|false rejects %");
    for (int b = 0; b < e->guardrail_count; b++) {
        const vp_guardrail *g = &e->guardrails[b];
        text_list_add(table, "%s", b < BUDGET_COUNT ? figure_of("%.2f", BUDGET_SHARES[b]).text : "given");
        text_list_add(table, "%s", figure_number(g->budget).text);
        text_list_add(table, "%zu of %zu", g->accepted, g->count);
        text_list_add(table, "%s", figure_percent(g->violation_rate).text);
        text_list_add(table, "%s", figure_percent(g->false_accept_rate).text);
        text_list_add(table, "%s", figure_percent(g->false_reject_rate).text);
    }
    document_text(d, BLOCK_LINE, "violations: of those let through; false accepts: of those over the budget; false rejects: of those within it");
}
static void write_coefficients(document *d, const estimator *e) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Coefficients (%s features, 95 %% intervals)", ESTIMATE_KIND_KEYS[e->model.features]);
    table = document_table(d, "stage|feature|coefficient|interval|unit|state");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++)
        for (int c = 0; e->model.fitted[s] && c < e->model.fit[s].columns; c++) {
            const char *name = vp_latency_column_name(e->model.features, (vp_latency_stage)s, c);
            double low = (double)NAN, high = (double)NAN;
            char unit[64];
            vp_linear_coefficient(&e->model.fit[s], c, ESTIMATE_LEVEL, &low, &high);
            text_list_add(table, "%s", part_name(s));
            text_list_add(table, "%s", name);
            text_list_add(table, "%.4g", e->model.fit[s].coefficient[c]);
            if (e->model.fit[s].state[c] == VP_LINEAR_USED && isfinite(low)) text_list_add(table, "[%.4g, %.4g]", low, high);
            else text_list_add(table, "-");
            text_list_add(table, "%s", unit_text(name, unit));
            text_list_add(table, "%s", LINEAR_STATE_KEYS[e->model.fit[s].state[c]]);
        }
}
static void write_fit(document *d, const estimator *e, const evaluation *v, const measurements *m) {
    if (e->warnings.count) document_text(d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < e->warnings.count; i++) document_text(d, BLOCK_LINE, "%s", e->warnings.items[i]);
    document_text(d, BLOCK_HEADING, "vlmprof fit: %zu measurements of %zu configurations, %zu image sizes", m->count, m->config_count, m->size_count);
    document_text(d, BLOCK_LINE, "model %s, %s", e->model_name, e->device);
    if (isfinite(v->noise))
        document_text(d, BLOCK_LINE, "the runs of a sample scatter so that the mean of its T_total is off by %.2f %% on average; "
                      "no MAPE of the total can be below that, and a load that drifts from sample to sample comes on top", 100 * v->noise);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        text_list *table;
        document_text(d, BLOCK_HEADING, "Errors of %s", part_name(part));
        table = document_table(d, "features|rows predicted|MAE ms|MAPE %|R2|P95 error ms|bias ms|rows");
        for (int kind = 0; kind < ESTIMATE_KINDS; kind++)
            for (int split = 0; split < SPLIT_COUNT; split++)
                error_row(table, split ? "" : ESTIMATE_KIND_KEYS[kind], SPLIT_NAMES[split], &v->errors[kind][split][part]);
    }
    write_coefficients(d, e);
    if (v->reference_ms > 0) write_guardrails(d, v, SPLIT_NAMES[v->guardrail_split]);
}
static int print_document(const document *d) {
    text_buffer out = {NULL, 0, 0};
    int code;
    document_print(d, 0, &out);
    code = print_whole(&out);
    free(out.data);
    return code;
}
static int print_estimator(const estimator *e, const evaluation *v) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    if (put_estimator(&w, e, v) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return 0;
}
static int command_fit(const options *o) {
    const char *path = text_of(o, "output"), *folder = text_of(o, "output_dir");
    estimator *e;
    evaluation v;
    measurements m;
    results r;
    int64_t experts = 0;
    int kind = 0, code;
    if (!o->operand_count) return complain(EXIT_USAGE, "fit: give folders of result files; see vlmprof fit --help");
    if ((code = read_results(&r, o->operands, o->operand_count)) != 0) return code;
    while (strcmp(ESTIMATE_KIND_KEYS[kind], text_of(o, "features"))) kind++;
    e = (estimator *)zeroed(1, sizeof *e);
    if ((code = measurements_make(o, &r, &experts, &m, &e->warnings)) == 0)
        code = estimator_make(&m, &r, (vp_latency_features)kind, experts, e);
    if (!code) code = evaluate(&m, e->model.features, &v);
    if (!code && path) code = write_estimator(path, e, &v);
    if (!code && folder && (code = make_folder(folder)) == 0) {
        char *file = join_path(folder, "e3_latency_estimator.json");
        code = write_estimator(file, e, &v);
        free(file);
    }
    if (!code && given(o, "json")) code = print_estimator(e, &v);
    else if (!code) {
        document d = {NULL, 0};
        write_fit(&d, e, &v, &m);
        code = print_document(&d);
        document_free(&d);
    }
    measurements_free(&m);
    estimator_free(e);
    results_free(&r);
    return code;
}

/* ---- predict: one request */
typedef struct prediction {
    char name[48];                     /* "640x480"; empty: counts were given */
    vp_latency_request request;
    double value[ESTIMATE_PARTS], low[ESTIMATE_PARTS], high[ESTIMATE_PARTS]; /* ms; NaN: the stage is not in the model, or no interval is known */
    double within;                     /* probability to hold the budget; NaN: none given */
} prediction;
/* The interval of a sum: half-widths add as their residuals are correlated. */
static void predict_total_interval(const estimator *e, prediction *p) {
    double half[VP_LATENCY_STAGE_COUNT], sum = 0, widest = 0;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        half[s] = stage_runs(s, &p->request) && e->model.fitted[s] ? (p->high[s] - p->low[s]) / 2 : 0;
        widest = half[s] <= widest ? widest : half[s]; /* NaN stays */
    }
    for (int a = 0; a < VP_LATENCY_STAGE_COUNT; a++) for (int b = 0; b < VP_LATENCY_STAGE_COUNT; b++) sum += e->correlation[a][b] * half[a] * half[b];
    sum = sum >= widest * widest ? sqrt(sum) : widest; /* what cancels out in these rows need not do so in a new one */
    p->low[ESTIMATE_TOTAL] = p->value[ESTIMATE_TOTAL] - sum;
    p->high[ESTIMATE_TOTAL] = p->value[ESTIMATE_TOTAL] + sum;
}
/* 0: a count of the request is out of range */
static int predict_request(const estimator *e, double budget, prediction *p) {
    const double z = vp_normal_quantile(0.5 + ESTIMATE_LEVEL / 2);
    vp_latency_prediction made;
    if (vp_latency_predict(&e->model, &p->request, &made) != VP_OK) return 0;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        vp_linear_range range;
        p->value[s] = p->low[s] = p->high[s] = made.stage[s];
        if (!e->model.fitted[s] || !stage_runs(s, &p->request)) continue;
        p->low[s] = p->high[s] = (double)NAN;
        if (vp_latency_interval(&e->model, (vp_latency_stage)s, &p->request, ESTIMATE_LEVEL, &range) != VP_OK) continue;
        p->low[s] = range.low;
        p->high[s] = range.high;
    }
    p->value[ESTIMATE_TOTAL] = made.total;
    predict_total_interval(e, p);
    p->within = 1 - vp_normal_tail((budget - made.total) / ((p->high[ESTIMATE_TOTAL] - made.total) / z));
    return 1;
}
/* A knob outside of what was measured, once for all requests that share it; what cannot be. */
static void warn_of_ranges(const estimator *e, const prediction *p, size_t count, text_list *warnings) {
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) {
        const knob_range *range = &e->ranges[k];
        size_t outside = 0;
        int32_t value = 0;
        if ((k == KNOB_TEXT || k == KNOB_TIER) && e->model.features != VP_LATENCY_SEED) continue; /* no feature of it */
        for (size_t i = 0; i < count; i++) {
            int32_t at = knob_at(&p[i].request, k);
            if ((at < range->least || at > range->most) && !outside++) value = at;
        }
        if (outside)
            text_list_add(warnings, "extrapolation: %s %d is outside of %d..%d, the data of the model (%zu of %zu requests)",
                          ESTIMATE_KNOBS[k].name, value, range->least, range->most, outside, count);
    }
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        size_t negative = 0;
        for (size_t i = 0; i < count; i++) negative += p[i].value[s] < 0;
        if (!e->model.fitted[s]) text_list_add(warnings, "%s is not in the model: the total is without it", part_name(s));
        if (negative)
            text_list_add(warnings, "%s: below 0 ms in %zu of %zu requests: %s", part_name(s), negative, count,
                          e->model.affine[s].count ? "they are too small for the line of the recalibration"
                                                   : "these features allow what no machine does");
    }
}
static const char *verdict_of(const prediction *p, double budget) {
    return p->high[ESTIMATE_TOTAL] <= budget ? "holds" : p->low[ESTIMATE_TOTAL] > budget ? "exceeds" : "unsure";
}
static void write_prediction(document *d, const prediction *p, double budget) {
    const vp_latency_request *q = &p->request;
    text_list *table;
    document_text(d, BLOCK_HEADING,
                  "%s%s%d views, %d vision tokens, %d text tokens, sequence %d, top_k %d of %d, %d blocks, %d output tokens",
                  p->name, p->name[0] ? ": " : "", q->views, q->vision_tokens, q->text_tokens, q->sequence, q->top_k, q->expert_count,
                  q->active_blocks, q->output_tokens);
    table = document_table(d, "stage|ms|95 % interval");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        int runs = part == ESTIMATE_TOTAL || stage_runs(part, q);
        text_list_add(table, "%s", part_name(part));
        text_list_add(table, "%s", !runs ? "does not run" : figure_of("%.3f", p->value[part]).text);
        if (runs && isfinite(p->low[part])) text_list_add(table, "[%.3f, %.3f]", p->low[part], p->high[part]);
        else text_list_add(table, "-");
    }
    if (isfinite(budget))
        document_text(d, BLOCK_LINE, "budget %.3f ms: %s, with probability %s", budget, verdict_of(p, budget), figure_of("%.3f", p->within).text);
}
static void put_prediction(vp_json_writer *w, const prediction *p, double budget) {
    vp_json_begin_object(w);
    put_text(w, "size", p->name[0] ? p->name : NULL);
    for (int k = 0; k < ESTIMATE_KNOB_COUNT; k++) put_int(w, ESTIMATE_KNOBS[k].name, knob_at(&p->request, k));
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        int runs = part == ESTIMATE_TOTAL || stage_runs(part, &p->request);
        vp_json_key(w, part_name(part));
        if (!runs || !isfinite(p->value[part])) { vp_json_null(w); continue; }
        vp_json_begin_object(w);
        put_double(w, "ms", p->value[part]);
        put_range(w, "interval_ms", p->low[part], p->high[part]);
        vp_json_end_object(w);
    }
    if (isfinite(budget)) {
        put_double(w, "budget_ms", budget);
        put_text(w, "verdict", verdict_of(p, budget));
        put_double(w, "probability_within_budget", p->within);
    }
    vp_json_end_object(w);
}
static int print_predictions(const options *o, const estimator *e, const prediction *p, size_t count, double budget, const text_list *warnings) {
    if (given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_object(&w);
        put_text(&w, "schema", "vlmprof-prediction-1");
        put_text(&w, "model", e->model_name);
        put_text(&w, "device", e->device);
        put_list(&w, "warnings", warnings);
        vp_json_key(&w, "predictions");
        vp_json_begin_array(&w);
        for (size_t i = 0; i < count; i++) put_prediction(&w, &p[i], budget);
        vp_json_end_array(&w);
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
        return 0;
    }
    document d = {NULL, 0};
    int code;
    if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
    for (size_t i = 0; i < count; i++) write_prediction(&d, &p[i], budget);
    code = print_document(&d);
    document_free(&d);
    return code;
}
/* A count of the command line, or the data's median. */
static int32_t knob_of(const options *o, const estimator *e, int knob) {
    return given(o, ESTIMATE_KNOBS[knob].name) ? (int32_t)number_of(o, ESTIMATE_KNOBS[knob].name) : e->ranges[knob].median;
}
static int predict_size(const options *o, const vp_tile_options *tiles, const char *text, prediction *p) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_geometry geometry = vp_geometry_default();
    int64_t width = 0, height = 0;
    vp_layout l;
    vp_result r;
    if (!parse_size(text, "x", &width, &height) || width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return complain(EXIT_USAGE, "%s: want WIDTHxHEIGHT in pixels, like 640x480", text);
    if ((r = vp_layout_compute(&geometry, tiles, (int32_t)width, (int32_t)height, &l, &error)) != VP_OK)
        return complain_result(EXIT_USAGE, text, r, &error);
    snprintf(p->name, sizeof p->name, "%lldx%lld%s%s", (long long)width, (long long)height, tiles->rule == VP_TILE_TIER ? " " : "",
             tiles->rule == VP_TILE_TIER ? tiles->tier->name : "");
    for (int32_t i = 0; text_of(o, "tier") && vp_tier_at(i); i++) if (!strcmp(vp_tier_at(i)->name, text_of(o, "tier"))) p->request.tier_index = i;
    p->request.views = l.views;
    p->request.vision_tokens = l.feature_tokens;
    p->request.sequence = 1 + l.image_tokens + p->request.text_tokens;
    return 0;
}
/* --views, --vision_tokens, --sequence: counts as they are */
static int predict_counts(const options *o, prediction *p) {
    vp_latency_request *q = &p->request;
    q->views = (int32_t)number_of(o, "views");
    q->vision_tokens = given(o, "vision_tokens") ? (int32_t)number_of(o, "vision_tokens") : 0;
    if (!given(o, "views")) return complain(EXIT_USAGE, "predict: say what the request is: sizes like 640x480, or --views N (0: text only)");
    if (given(o, "tier") || given(o, "crops") || given(o, "max_crops") || given(o, "preprocess"))
        return complain(EXIT_USAGE, "predict: --tier, --crops, --max_crops and --preprocess are for sizes like 640x480");
    if (q->views && !(given(o, "vision_tokens") && given(o, "sequence")))
        return complain(EXIT_USAGE, "predict: --views %d needs --vision_tokens and --sequence; or give sizes like 640x480", q->views);
    if (!q->views && q->vision_tokens) return complain(EXIT_USAGE, "predict: --vision_tokens %d without --views", q->vision_tokens);
    q->sequence = given(o, "sequence") ? (int32_t)number_of(o, "sequence") : 1 + q->text_tokens;
    if (q->vision_tokens >= q->sequence)
        return complain(EXIT_USAGE, "predict: %d vision tokens do not fit into a sequence of %d", q->vision_tokens, q->sequence);
    return 0;
}
static int predict_requests(const options *o, const estimator *e) {
    size_t count = o->operand_count > 1 ? o->operand_count - 1 : 1;
    double budget = given(o, "budget_ms") ? opt(o, "budget_ms")->real : (double)NAN;
    prediction *p = (prediction *)zeroed(count, sizeof *p);
    text_list warnings = {NULL, 0};
    vp_tile_options tiles;
    int code = 0;
    if (o->operand_count > 1 && (given(o, "views") || given(o, "sequence")))
        code = complain(EXIT_USAGE, "predict: --views and --sequence are for requests without a size");
    if (!code && o->operand_count > 1) code = tile_options_of(o, &tiles);
    for (size_t i = 0; i < count && !code; i++) {
        vp_latency_request *q = &p[i].request;
        q->text_tokens = knob_of(o, e, KNOB_TEXT);
        q->output_tokens = knob_of(o, e, KNOB_OUTPUT);
        q->top_k = knob_of(o, e, KNOB_EXPERTS);
        q->active_blocks = knob_of(o, e, KNOB_ACTIVE);
        q->expert_count = (int32_t)e->expert_count;
        if (q->top_k > q->expert_count) code = complain(EXIT_USAGE, "--top_k: %d is more than the model's %d experts", q->top_k, q->expert_count);
        if (!code) code = o->operand_count > 1 ? predict_size(o, &tiles, o->operands[i + 1], &p[i]) : predict_counts(o, &p[i]);
        if (!code && !predict_request(e, budget, &p[i])) code = complain(EXIT_USAGE, "predict: a count of the request is out of range");
    }
    if (!code) {
        warn_of_ranges(e, p, count, &warnings);
        code = print_predictions(o, e, p, count, budget, &warnings);
    }
    text_list_free(&warnings);
    free(p);
    return code;
}

/* ---- predict --data: how far it is off; --recalibrate: another device */
typedef struct trial_errors { vp_linear_errors errors[ESTIMATE_PARTS]; double inside[ESTIMATE_PARTS]; } trial_errors; /* share within the intervals */
static void try_model(const estimator *e, const measurements *m, trial_errors *t, evaluation *v) {
    double *predicted = (double *)resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    size_t inside[ESTIMATE_PARTS] = {0};
    predict_rows(&e->model, m, predicted);
    add_totals(m, predicted);
    errors_of(m, predicted, t->errors);
    for (size_t i = 0; i < m->count; i++) {
        prediction p;
        memset(&p, 0, sizeof p);
        p.request = m->requests[i];
        if (!predict_request(e, (double)NAN, &p)) continue;
        for (int part = 0; part < ESTIMATE_PARTS; part++) {
            double y = measured_part(m, part, i);
            inside[part] += isfinite(predicted[(size_t)part * m->count + i]) && y >= p.low[part] && y <= p.high[part];
        }
    }
    for (int part = 0; part < ESTIMATE_PARTS; part++)
        t->inside[part] = t->errors[part].count ? (double)inside[part] / (double)t->errors[part].count : (double)NAN;
    if (v) guard_budgets(m, predicted, v);
    free(predicted);
}
static void write_trial(document *d, const char *heading, const trial_errors *t) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "%s", heading);
    table = document_table(d, "stage|MAE ms|MAPE %|R2|P95 error ms|bias ms|rows|within 95 % interval %");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        error_row(table, part_name(part), NULL, &t->errors[part]);
        text_list_add(table, "%s", figure_percent(t->inside[part]).text);
    }
}
static void put_trial(vp_json_writer *w, const char *key, const trial_errors *t) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    vp_json_key(w, "errors");
    put_parts(w, t->errors);
    vp_json_key(w, "share_within_intervals");
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) put_double(w, part_name(part), t->inside[part]);
    vp_json_end_object(w);
    vp_json_end_object(w);
}
static void warn_of_target(const estimator *e, const measurements *m, text_list *warnings) {
    prediction *p = (prediction *)zeroed(m->count, sizeof *p);
    if (strcmp(e->device, m->device)) text_list_add(warnings, "the model is of %s, these files of %s", e->device, m->device);
    if (strcmp(e->model_name, m->model))
        text_list_add(warnings, "the model is of %s, these files of %s: other weights, other shapes", e->model_name, m->model);
    for (size_t i = 0; i < m->count; i++) p[i].request = m->requests[i];
    warn_of_ranges(e, p, m->count, warnings);
    free(p);
}
static int predict_files(const options *o, const estimator *e, const measurements *m, const text_list *warnings) {
    trial_errors t;
    evaluation v;
    document d = {NULL, 0};
    int code = 0;
    memset(&v, 0, sizeof v);
    if (given(o, "budget_ms")) v.own_budget_ms = opt(o, "budget_ms")->real;
    try_model(e, m, &t, &v);
    if (given(o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, file_sink, stdout, 2);
        vp_json_begin_object(&w);
        put_text(&w, "schema", "vlmprof-prediction-1");
        put_text(&w, "model", e->model_name);
        put_text(&w, "device", e->device);
        put_text(&w, "measured_on", m->device);
        put_list(&w, "warnings", warnings);
        put_trial(&w, "measured", &t);
        if (v.reference_ms > 0) put_guardrails(&w, &v, "of this model");
        vp_json_end_object(&w);
        if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
        putchar('\n');
        return 0;
    }
    if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
    for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
    write_trial(&d, "Predictions against measurements", &t);
    if (v.reference_ms > 0) write_guardrails(&d, &v, "this model");
    code = print_document(&d);
    document_free(&d);
    return code;
}

typedef struct recalibration {
    size_t wanted;                        /* measurements that the lines are made of */
    uint32_t seed;
    vp_affine_curve curves[ESTIMATE_PARTS][CURVE_COUNT]; /* draws 0: none */
    trial_errors before, after;           /* over the measurements that were not drawn */
    size_t left;
} recalibration;
static measurements pick_rows(const measurements *m, const int64_t *order, size_t count) { /* its texts and groups are m's own */
    measurements p = *m;
    p.requests = (vp_latency_request *)resize(NULL, count, sizeof *p.requests);
    p.measured = (double *)resize(NULL, count, VP_LATENCY_STAGE_COUNT * sizeof *p.measured);
    p.total = (double *)resize(NULL, count, sizeof *p.total);
    p.configs = p.sizes = NULL;
    p.count = count;
    for (size_t i = 0; i < count; i++) {
        p.requests[i] = m->requests[order[i]];
        p.total[i] = m->total[order[i]];
        memcpy(p.measured + i * VP_LATENCY_STAGE_COUNT, m->measured + (size_t)order[i] * VP_LATENCY_STAGE_COUNT,
               VP_LATENCY_STAGE_COUNT * sizeof *p.measured);
    }
    return p;
}
/* What N measurements do for all others, by stage; the total's line is drawn through totals. */
static void find_curves(const estimator *e, const measurements *m, recalibration *c) {
    double *predicted = (double *)resize(NULL, m->count, ESTIMATE_PARTS * sizeof *predicted);
    double *pairs = (double *)resize(NULL, m->count, 2 * sizeof *pairs);
    vp_latency_model *plain = (vp_latency_model *)resize(NULL, 1, sizeof *plain);
    *plain = e->model;
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        memset(&plain->affine[s], 0, sizeof plain->affine[s]);
        plain->affine[s].slope = plain->affine[s].condition = 1;
    }
    predict_rows(plain, m, predicted);
    add_totals(m, predicted);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        size_t n = pair_rows(m, predicted, part, pairs), bytes = vp_affine_curve_scratch_bytes(n, CURVE_DRAWS);
        void *scratch = resize(NULL, bytes, 1);
        for (int k = 0; k < CURVE_COUNT; k++)
            if (vp_affine_learning(pairs + m->count, pairs, n, CURVE_POINTS[k], CURVE_DRAWS, c->seed, scratch, bytes, &c->curves[part][k]) != VP_OK)
                memset(&c->curves[part][k], 0, sizeof c->curves[part][k]);
        free(scratch);
    }
    free(plain);
    free(pairs);
    free(predicted);
}
static void write_recalibration(document *d, const estimator *e, const recalibration *c, const measurements *m) {
    text_list *table;
    document_text(d, BLOCK_HEADING, "Recalibration to %s: %zu of %zu measurements, drawn with seed %u", m->device, c->wanted, m->count, c->seed);
    table = document_table(d, "stage|slope|offset ms|measurements|condition");
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) {
        const vp_affine *line = &e->model.affine[s];
        text_list_add(table, "%s", part_name(s));
        text_list_add(table, "%s", figure_number(line->count ? line->slope : (double)NAN).text);
        text_list_add(table, "%s", figure_number(line->count ? line->offset : (double)NAN).text);
        text_list_add(table, "%zu", line->count);
        text_list_add(table, "%s", figure_number(line->count ? line->condition : (double)NAN).text);
    }
    if (c->left) {
        write_trial(d, "Before, on the measurements that were not drawn", &c->before);
        write_trial(d, "After, on the same", &c->after);
    }
    document_text(d, BLOCK_HEADING, "Learning curve: MAPE %% of the rest after N measurements, mean [P5, P95] of %d draws", CURVE_DRAWS);
    table = document_table(d, "stage|before|10|25|50|100|lines refused");
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        double before = (double)NAN;
        size_t refused = 0;
        for (int k = 0; k < CURVE_COUNT; k++) {
            if (c->curves[part][k].draws) before = c->curves[part][k].before;
            refused += c->curves[part][k].refused;
        }
        text_list_add(table, "%s", part_name(part));
        text_list_add(table, "%s", figure_percent(before).text);
        for (int k = 0; k < CURVE_COUNT; k++) {
            const vp_affine_curve *learned = &c->curves[part][k];
            text_list_add(table, "%s", learned->draws ? figure_estimate(100, learned->mean, learned->low, learned->high).text : "-");
        }
        text_list_add(table, "%zu", refused);
    }
}
static void put_recalibration(vp_json_writer *w, const recalibration *c, const measurements *m, const char *folder) {
    vp_json_begin_object(w);
    put_text(w, "device", m->device);
    put_text(w, "data", folder);
    put_int(w, "measurements", (int64_t)c->wanted);
    put_int(w, "of", (int64_t)m->count);
    put_int(w, "seed", c->seed);
    if (c->left) put_trial(w, "before", &c->before);
    if (c->left) put_trial(w, "after", &c->after);
    vp_json_key(w, "learning_curve");
    vp_json_begin_object(w);
    for (int part = 0; part < ESTIMATE_PARTS; part++) {
        vp_json_key(w, part_name(part));
        vp_json_begin_array(w);
        for (int k = 0; k < CURVE_COUNT; k++) {
            const vp_affine_curve *learned = &c->curves[part][k];
            if (!learned->draws) continue;
            vp_json_begin_object(w);
            put_int(w, "measurements", (int64_t)learned->points);
            put_int(w, "draws", (int64_t)learned->draws);
            put_int(w, "refused", (int64_t)learned->refused);
            put_double(w, "mape_percent_before", 100 * learned->before);
            put_double(w, "mape_percent", 100 * learned->mean);
            put_range(w, "mape_percent_p5_p95", 100 * learned->low, 100 * learned->high);
            vp_json_end_object(w);
        }
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
    vp_json_end_object(w);
}
/* Lines through `wanted` drawn rows; what they do for the others. 0 or an exit code. */
static int recalibrate(estimator *e, const measurements *m, recalibration *c) {
    int64_t *order = (int64_t *)resize(NULL, m->count, sizeof *order);
    double *scratch = (double *)resize(NULL, c->wanted, 2 * sizeof *scratch);
    measurements drawn, rest;
    vp_error error = {VP_OK, -1, "", ""};
    vp_random random;
    vp_result r;
    for (size_t i = 0; i < m->count; i++) order[i] = (int64_t)i;
    vp_random_seed(&random, c->seed);
    vp_random_permutation(&random, order, m->count);
    drawn = pick_rows(m, order, c->wanted);
    c->left = m->count - c->wanted;
    rest = pick_rows(m, order + c->wanted, c->left);
    find_curves(e, m, c);
    if (c->left) try_model(e, &rest, &c->before, NULL);
    /* a stage that is not measured here keeps its line, which is not of these */
    for (int s = 0; s < VP_LATENCY_STAGE_COUNT; s++) e->model.affine[s].count = 0;
    r = vp_latency_recalibrate(&e->model, drawn.requests, drawn.measured, drawn.count, 0, scratch, &error);
    if (r == VP_OK && c->left) try_model(e, &rest, &c->after, NULL);
    measurements_free(&drawn);
    measurements_free(&rest);
    free(scratch);
    free(order);
    return r == VP_OK ? 0 : complain_result(exit_code_of(r), "recalibration refused", r, &error);
}
static int predict_recalibrate(const options *o, estimator *e, const measurements *m, const text_list *warnings) {
    const char *path = text_of(o, "output");
    recalibration *c = (recalibration *)zeroed(1, sizeof *c);
    text_buffer out = {NULL, 0, 0};
    vp_json_writer w;
    int code = 0;
    c->wanted = (size_t)number_of(o, "measurements");
    c->seed = (uint32_t)number_of(o, "seed");
    if (c->wanted > m->count)
        code = complain(EXIT_USAGE, "-n %zu: %s holds %zu measurements", c->wanted, text_of(o, "recalibrate"), m->count);
    if (!code) code = recalibrate(e, m, c);
    if (!code) {
        vp_json_writer_init_sink(&w, text_sink, &out, 1);
        put_recalibration(&w, c, m, text_of(o, "recalibrate"));
        if (vp_json_finish(&w) != VP_OK) abort(); /* memory ends the program before */
        free(e->recalibration);
        free(e->device);
        e->recalibration = out.data;
        e->device = copy_text(m->device, strlen(m->device));
        code = write_estimator(path, e, NULL);
    }
    if (!code && given(o, "json")) code = print_estimator(e, NULL);
    else if (!code) {
        document d = {NULL, 0};
        if (warnings->count) document_text(&d, BLOCK_HEADING, "Warnings");
        for (size_t i = 0; i < warnings->count; i++) document_text(&d, BLOCK_LINE, "%s", warnings->items[i]);
        write_recalibration(&d, e, c, m);
        code = print_document(&d);
        document_free(&d);
    }
    free(c);
    return code;
}
/* Options that do not go together, before anything is read. */
static int check_predict_options(const options *o) {
    static const char *const of_request[] = {"tier", "crops", "max_crops", "preprocess", "views", "vision_tokens", "text_tokens", "sequence", "top_k",
                                             "num_active_blocks", "output_tokens"};
    int by_files = given(o, "data") || given(o, "recalibrate");
    if (!o->operand_count) return complain(EXIT_USAGE, "predict: give a model of vlmprof fit; see vlmprof predict --help");
    if (given(o, "data") && given(o, "recalibrate")) return complain(EXIT_USAGE, "predict: --data and --recalibrate exclude each other");
    if (given(o, "recalibrate") && !given(o, "output")) return complain(EXIT_USAGE, "predict: --recalibrate needs -o FILE for the new model");
    if (!given(o, "recalibrate") && (given(o, "output") || given(o, "measurements") || given(o, "seed")))
        return complain(EXIT_USAGE, "predict: -o, -n and --seed go with --recalibrate DIR");
    if (given(o, "recalibrate") && given(o, "budget_ms")) return complain(EXIT_USAGE, "predict: --budget_ms goes with requests and --data");
    if (by_files && o->operand_count > 1) return complain(EXIT_USAGE, "predict: sizes and --data or --recalibrate exclude each other");
    for (size_t i = 0; i < sizeof of_request / sizeof of_request[0] && by_files; i++)
        if (given(o, of_request[i]))
            return complain(EXIT_USAGE, "predict: --%s is for a request; with --data and --recalibrate the files say it", of_request[i]);
    return 0;
}
static int command_predict(const options *o) {
    estimator *e = NULL;
    measurements m;
    results r;
    text_list warnings = {NULL, 0};
    const char *folder = text_of(o, "data") ? text_of(o, "data") : text_of(o, "recalibrate");
    int code;
    if ((code = check_predict_options(o)) != 0 || (code = read_estimator(o->operands[0], &e)) != 0) return code;
    if (!folder) code = predict_requests(o, e);
    else if ((code = read_results(&r, &folder, 1)) == 0) {
        int64_t experts = e->expert_count;
        if ((code = measurements_make(o, &r, &experts, &m, &warnings)) == 0) {
            warn_of_target(e, &m, &warnings);
            code = (given(o, "data") ? predict_files(o, e, &m, &warnings) : predict_recalibrate(o, e, &m, &warnings));
        }
        measurements_free(&m);
        results_free(&r);
    }
    text_list_free(&warnings);
    estimator_free(e);
    return code;
}

/* =============================================================================================== html >>html
 * The report as one page: no network, no library; plots are SVG that is made here. Texts of files come in by page_text alone, which leaves nothing of
 * them that a browser would take for markup. Colours are those of Okabe and Ito, for all kinds of sight. */
static void page_add(text_buffer *out, const char *format, ...) { /* markup of our own: numbers and our own words */
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_add_string(out, line);
}
/* Bytes of a character that may stand in a page as it is; 0: a control character, or one that turns the reading direction. */
static size_t page_character(const unsigned char *p, size_t left) {
    size_t bytes = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (bytes > left || vp_utf8_valid_bytes((const char *)p, bytes) != bytes) return 0;
    if (p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && p[1] < 0xA0)) return 0;
    if (p[0] == 0xE2 && ((p[1] == 0x80 && p[2] >= 0xA8 && p[2] <= 0xAE) || (p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9))) return 0;
    return bytes;
}
/* A text as content or as an attribute in quotes; what is no text is shown as U+FFFD. */
static void page_text(text_buffer *out, const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    size_t left = strlen(text);
    while (left) {
        size_t bytes = page_character(p, left);
        const char *entity = *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : *p == '"' ? "&quot;" : *p == '\'' ? "&#39;"
                           : bytes ? NULL : "\xEF\xBF\xBD";
        if (entity) text_add_string(out, entity); else text_add(out, (const char *)p, bytes);
        if (!bytes) bytes = 1;
        p += bytes;
        left -= bytes;
    }
}
static void page_element(text_buffer *out, const char *tag, const char *text) { /* tag: a name of our own */
    page_add(out, "<%s>", tag);
    page_text(out, text);
    page_add(out, "</%s>", tag);
}

/* ---- axes */
enum { TICKS_MOST = 16 };
typedef struct span { double low, high; } span; /* of values; low > high: none yet */
typedef struct scale {
    double low, high; int is_log;
    double from, to;                 /* px */
    double ticks[TICKS_MOST]; int tick_count, digits; /* behind the point; -1: as short as can be; -2: with k, M, G, T */
} scale;
static span span_none(void) { span s; s.low = HUGE_VAL; s.high = -HUGE_VAL; return s; }
static void span_add(span *s, double value) {
    if (!isfinite(value)) return;
    if (value < s->low) s->low = value;
    if (value > s->high) s->high = value;
}
static void span_add_estimate(span *s, vp_estimate e) { span_add(s, e.value); span_add(s, e.low); span_add(s, e.high); }
static double nice_step(double least) { /* 1, 2 or 5 times a power of ten, not below least */
    double power = pow(10, floor(log10(least))), m = least / power;
    return power * (m <= 1.0000001 ? 1 : m <= 2.0000001 ? 2 : m <= 5.0000001 ? 5 : 10);
}
static void scale_linear(scale *a, span s, int parts) {
    double step;
    if (!(s.high > s.low)) { /* one value: some room around it */
        double room = fabs(s.low) > 0 ? fabs(s.low) / 10 : 1;
        s.low -= room;
        s.high += room;
    }
    step = nice_step((s.high - s.low) / parts);
    a->low = floor(s.low / step + 1e-6) * step;
    a->high = ceil(s.high / step - 1e-6) * step;
    a->digits = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6);
    if (a->digits > 6 || fabs(a->high) >= 1e6 || fabs(a->low) >= 1e6) a->digits = -1;
    for (int i = 0; i < TICKS_MOST && a->low + i * step <= a->high + step / 2; i++) {
        double tick = a->low + i * step;
        a->ticks[a->tick_count++] = fabs(tick) < step / 1e6 ? 0 : tick;
    }
}
static void scale_log(scale *a, span s) {
    static const double parts[] = {1, 2, 5};
    int first = (int)floor(log10(s.low) + 1e-9), last = (int)ceil(log10(s.high) - 1e-9), stride, is_fine;
    a->is_log = 1;
    if (last <= first) last = first + 1;
    is_fine = last - first <= 3;
    stride = (last - first + 7) / 8;
    for (int e = first; e <= last; e += is_fine ? 1 : stride)
        for (int i = 0; i < (is_fine ? 3 : 1) && a->tick_count < TICKS_MOST; i++) a->ticks[a->tick_count++] = pow(10, e) * parts[i];
    a->low = pow(10, first);
    a->high = pow(10, last);
    if (is_fine) { /* from tick to tick */
        int from = 0, to;
        while (from + 1 < a->tick_count && a->ticks[from + 1] <= s.low * 1.0000001) from++;
        for (to = from; to + 1 < a->tick_count && a->ticks[to] < s.high * 0.9999999;) to++;
        if (to == from) { if (from) from--; else to++; }
        a->low = a->ticks[from];
        a->high = a->ticks[to];
        a->tick_count = to - from + 1;
        memmove(a->ticks, a->ticks + from, (size_t)a->tick_count * sizeof *a->ticks);
    }
    a->digits = -1;
}
static scale scale_make(span s, int is_log, double from, double to) {
    scale a;
    memset(&a, 0, sizeof a);
    a.from = from;
    a.to = to;
    if (!(s.high >= s.low)) { s.low = 0; s.high = 1; }
    if (is_log && s.low > 0) scale_log(&a, s); else scale_linear(&a, s, fabs(to - from) < 220 ? 4 : 6);
    return a;
}
static double scale_place(const scale *a, double value) {
    double share = a->is_log ? log(value / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
    return a->from + share * (a->to - a->from);
}
static figure scale_text(const scale *a, double value) {
    figure f;
    if (a->digits == -2) {
        static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
        int power = 0;
        for (; power < 5 && value >= 999.5; power++) value /= 1000;
        snprintf(f.text, sizeof f.text, "%.3g%s", value, prefixes[power]);
    } else if (a->digits < 0) snprintf(f.text, sizeof f.text, "%.4g", value); else snprintf(f.text, sizeof f.text, "%.*f", a->digits, value);
    return f;
}

/* ---- plots */
enum { PLOT_LEFT = 62, PLOT_RIGHT = 14, PLOT_TOP = 12, PLOT_BOTTOM = 46 };
#define LETTER_PX 6.4 /* what a letter takes at 11 px, rather too much: so that texts stay apart */
typedef struct plot { text_buffer *out; double width, height; scale x, y; int x_prefix, y_prefix; } plot; /* prefix: k, M, G at the ticks */
typedef enum colour_set { COLOUR_SERIES, COLOUR_RAMP } colour_set;
enum { SERIES_GREY = 6, SERIES_COUNT = 9 }; /* classes s0..s8 of the style sheet */

static double text_px(const char *text) { return LETTER_PX * (double)text_width(text); }
static void plot_open(plot *p, text_buffer *out, const char *caption, double width, double height) {
    memset(p, 0, sizeof *p);
    p->out = out;
    p->width = width;
    p->height = height;
    page_add(out, "<svg viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx\" role=\"img\" aria-label=\"", width, height, width * 1.15);
    page_text(out, caption);
    text_add_string(out, "\">\n");
}
static void plot_close(plot *p) { text_add_string(p->out, "</svg></figure>\n"); }
static void figure_open(text_buffer *out, const char *caption, int is_wide) {
    page_add(out, "<figure%s><figcaption>", is_wide ? " class=\"wide\"" : "");
    page_text(out, caption);
    text_add_string(out, "</figcaption>\n");
}
static void plot_text(plot *p, double x, double y, const char *anchor, const char *more, const char *text) { /* more: attributes of our own */
    page_add(p->out, "<text x=\"%.1f\" y=\"%.1f\"%s%s%s%s>", x, y, *anchor ? " text-anchor=\"" : "", anchor, *anchor ? "\"" : "", more);
    page_text(p->out, text);
    text_add_string(p->out, "</text>");
}
static void plot_segment(plot *p, const char *kind, double x1, double y1, double x2, double y2) {
    page_add(p->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>", kind, x1, y1, x2, y2);
}
static void plot_labels(plot *p, const char *x_label, const char *y_label) {
    char turn[64];
    double middle = (p->y.from + p->y.to) / 2;
    plot_text(p, (p->x.from + p->x.to) / 2, p->height - 6, "middle", " class=\"n\"", x_label);
    snprintf(turn, sizeof turn, " class=\"n\" transform=\"rotate(-90 14 %.1f)\"", middle);
    plot_text(p, 14, middle, "middle", turn, y_label);
    text_add_string(p->out, "\n");
}
static void plot_y_axis(plot *p) {
    for (int i = 0; i < p->y.tick_count; i++) {
        double at = scale_place(&p->y, p->y.ticks[i]);
        plot_segment(p, "g", p->x.from, at, p->x.to, at);
        plot_text(p, p->x.from - 6, at + 4, "end", "", scale_text(&p->y, p->y.ticks[i]).text);
    }
}
static void plot_x_axis(plot *p) {
    double used = -HUGE_VAL;
    for (int i = 0; i < p->x.tick_count; i++) {
        double at = scale_place(&p->x, p->x.ticks[i]);
        figure f = scale_text(&p->x, p->x.ticks[i]);
        plot_segment(p, "g", at, p->y.from, at, p->y.to);
        if (at - text_px(f.text) / 2 < used) continue;
        plot_text(p, at, p->y.from + 18, "middle", "", f.text);
        used = at + text_px(f.text) / 2 + 8;
    }
}
/* A frame for values between the ends of two spans. */
static void plot_frame(plot *p, span x, int x_log, span y, int y_log, const char *x_label, const char *y_label) {
    p->x = scale_make(x, x_log, PLOT_LEFT, p->width - PLOT_RIGHT);
    p->y = scale_make(y, y_log, p->height - PLOT_BOTTOM, PLOT_TOP);
    if (p->x_prefix) p->x.digits = -2;
    if (p->y_prefix) p->y.digits = -2;
    plot_y_axis(p);
    plot_x_axis(p);
    plot_labels(p, x_label, y_label);
}
static void colour_open(text_buffer *out, colour_set set, int at, int count) { /* what follows has this colour */
    static const int ends[3][3] = {{16, 122, 190}, {0, 158, 115}, {230, 159, 0}}; /* blue, green, orange: ever lighter, too */
    double t = count > 1 ? 2.0 * at / (count - 1) : 0, part;
    int first = t < 1 ? 0 : 1, rgb[3];
    if (set == COLOUR_SERIES) { page_add(out, "<g class=\"s%d\">", at % SERIES_COUNT); return; }
    part = t - first;
    for (int c = 0; c < 3; c++) rgb[c] = (int)(ends[first][c] + part * (ends[first + 1][c] - ends[first][c]) + 0.5);
    page_add(out, "<g style=\"--c:#%02x%02x%02x\">", (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
}
/* A mark that shows a text under the pointer (NULL: none); shapes differ too, for prints without colours. */
static void plot_mark(text_buffer *out, int sign, double x, double y, double r, double opacity, const char *title) {
    char fade[32] = "";
    if (opacity < 0.995) snprintf(fade, sizeof fade, " opacity=\"%.2f\"", opacity);
    switch (sign % 5) {
    case 0: page_add(out, "<circle class=\"m\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"%s", x, y, r, fade); break;
    case 1: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fv%.1fh%.1fz\"%s", x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, -r * 1.8, fade); break;
    case 2: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"%s", x, y - r * 1.2, r * 1.15, r * 2, -r * 2.3, fade); break;
    case 3: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"%s", x, y - r * 1.3, r * 1.3, r * 1.3, -r * 1.3, r * 1.3,
                     -r * 1.3, -r * 1.3, fade); break;
    default: page_add(out, "<path class=\"m\" d=\"M%.1f %.1fh%.1fl%.1f %.1fz\"%s", x - r * 1.15, y - r, r * 2.3, -r * 1.15, r * 2.1, fade);
    }
    if (title) { text_add_string(out, "><title>"); page_text(out, title); page_add(out, "</title></%s>\n", sign % 5 ? "path" : "circle"); }
    else text_add_string(out, "/>\n");
}
static void plot_whiskers(plot *p, double x, double y, vp_estimate horizontal, vp_estimate vertical) {
    if (isfinite(horizontal.low) && isfinite(horizontal.high) && horizontal.low > (p->x.is_log ? 0 : -HUGE_VAL))
        plot_segment(p, "w", scale_place(&p->x, horizontal.low), y, scale_place(&p->x, horizontal.high), y);
    if (isfinite(vertical.low) && isfinite(vertical.high) && vertical.low > (p->y.is_log ? 0 : -HUGE_VAL))
        plot_segment(p, "w", x, scale_place(&p->y, vertical.low), x, scale_place(&p->y, vertical.high));
}
static void legend_open(text_buffer *out) { text_add_string(out, "<p class=\"legend\">"); }
static void legend_item(text_buffer *out, colour_set set, int at, int count, int sign, const char *text) { /* sign -1: a bar; -2: a line */
    text_add_string(out, "<span><svg viewBox=\"0 0 14 12\">");
    colour_open(out, set, at, count);
    if (sign == -1) text_add_string(out, "<rect class=\"b\" y=\"1\" width=\"14\" height=\"10\"/>");
    else {
        text_add_string(out, "<path class=\"l\" d=\"M0 6H14\"/>");
        if (sign >= 0) plot_mark(out, sign, 7, 6, 3.4, 1, NULL);
    }
    text_add_string(out, "</g></svg>");
    page_text(out, text);
    text_add_string(out, "</span> ");
}
static void legend_close(text_buffer *out) { text_add_string(out, "</p>\n"); }
static int needs_log(span s) { return s.low > 0 && s.high / s.low > 30; }

/* ---- E1: stage stack */
enum { STACK_OTHER = VP_STAGE_COUNT, STACK_OUTSIDE, STACK_PARTS, STACK_ROWS = 24 };
/* Stages with a colour of their own; the small ones share grey. */
static int stack_series(int part) {
    switch (part) {
    case VP_STAGE_PREPROCESS: return 5;
    case VP_STAGE_VIT: return 0;
    case VP_STAGE_CONNECTOR: return 2;
    case VP_STAGE_EMBED: return 7;
    case VP_STAGE_PREFILL: return 3;
    case VP_STAGE_HEAD: return 4;
    case VP_STAGE_DECODE: return 1;
    case STACK_OUTSIDE: return 8;
    default: return SERIES_GREY;
    }
}
static const char *stack_part_name(int part, int is_coarse) {
    if (is_coarse) return part == VP_STAGE_VIT ? "vision" : part == VP_STAGE_PREFILL ? "prefill" : part == VP_STAGE_DECODE ? "decode" : "rest";
    return part == STACK_OTHER ? "h2d, sample, detok" : part == STACK_OUTSIDE ? "in no stage" : vp_stage_name((vp_stage)part);
}
/* Mean ms of the parts of a request; files without stages have the sums alone. */
static void stack_parts(const decomposition *d, int is_coarse, double parts[STACK_PARTS]) {
    double rest = d->mean[METRIC_TOTAL];
    memset(parts, 0, STACK_PARTS * sizeof *parts);
    for (int s = 0; s < VP_STAGE_COUNT && !is_coarse; s++)
        if (d->stages[s].mean > 0) parts[stack_series(s) == SERIES_GREY ? STACK_OTHER : s] += d->stages[s].mean;
    if (is_coarse) {
        if (isfinite(d->mean[METRIC_VISION])) parts[VP_STAGE_VIT] = d->mean[METRIC_VISION];
        if (isfinite(d->mean[METRIC_PREFILL])) parts[VP_STAGE_PREFILL] = d->mean[METRIC_PREFILL];
        if (isfinite(d->mean[METRIC_DECODE])) parts[VP_STAGE_DECODE] = d->mean[METRIC_DECODE];
    }
    for (int i = 0; i < STACK_PARTS; i++) rest -= parts[i];
    if (rest > 0) parts[STACK_OUTSIDE] = rest;
}
static double stack_sum(const decomposition *d, int is_coarse) { /* the length of its bar: parts that are more than the total show */
    double parts[STACK_PARTS], sum = 0;
    stack_parts(d, is_coarse, parts);
    for (int i = 0; i < STACK_PARTS; i++) sum += parts[i];
    return sum;
}
static void stack_title(const report *p, const decomposition *d, int is_coarse, text_buffer *title) {
    double parts[STACK_PARTS];
    char name[160];
    stack_parts(d, is_coarse, parts);
    text_add_string(title, full_name(p->r, d->file, name));
    page_add(title, ": %s ms", figure_number(d->mean[METRIC_TOTAL]).text);
    for (int i = 0; i < STACK_PARTS; i++)
        if (parts[i] > 0) page_add(title, "\n%s %s ms, %.1f %%", stack_part_name(i, is_coarse), figure_number(parts[i]).text,
                                   100 * parts[i] / d->mean[METRIC_TOTAL]);
}
static void stack_legend(text_buffer *out, const report *p, int is_coarse) {
    int seen[STACK_PARTS] = {0};
    for (size_t i = 0; i < p->r->count; i++) {
        double parts[STACK_PARTS];
        stack_parts(&p->items[i], is_coarse, parts);
        for (int k = 0; k < STACK_PARTS; k++) seen[k] |= parts[k] >= 0.0005 * p->items[i].mean[METRIC_TOTAL];
    }
    legend_open(out);
    for (int k = 0; k < STACK_PARTS; k++) if (seen[k]) legend_item(out, COLOUR_SERIES, stack_series(k), 0, -1, stack_part_name(k, is_coarse));
    legend_close(out);
}
typedef struct ranked { size_t at; double key; } ranked;
static int by_key(const void *a, const void *b) {
    const ranked *x = (const ranked *)a, *y = (const ranked *)b;
    return x->key < y->key ? -1 : x->key > y->key ? 1 : x->at < y->at ? -1 : x->at > y->at;
}
static void stack_row(plot *q, const report *p, const decomposition *d, int is_coarse, double y) {
    double parts[STACK_PARTS], at = 0;
    text_buffer title = {NULL, 0, 0};
    char name[160];
    figure total = figure_number(d->mean[METRIC_TOTAL]);
    stack_parts(d, is_coarse, parts);
    stack_title(p, d, is_coarse, &title);
    plot_text(q, q->x.from - 8, y + 12, "end", "", full_name(p->r, d->file, name));
    text_add_string(q->out, "<g><title>");
    page_text(q->out, title.data);
    text_add_string(q->out, "</title>");
    for (int i = 0; i < STACK_PARTS; i++) {
        double from = scale_place(&q->x, at), to = scale_place(&q->x, at + parts[i]);
        at += parts[i];
        if (to - from >= 0.05)
            page_add(q->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>", stack_series(i), from, y, to - from);
    }
    text_add_string(q->out, "</g>");
    plot_text(q, scale_place(&q->x, at) + 6, y + 12, "", "", total.text);
    text_add_string(q->out, "\n");
    free(title.data);
}
static void stack_rows(text_buffer *out, const report *p, int is_coarse, const ranked *rows, size_t count, const char *caption) {
    plot q;
    span s = {0, 0};
    double left = 60;
    for (size_t i = 0; i < count; i++) {
        char name[160];
        double px = text_px(full_name(p->r, p->items[rows[i].at].file, name)) + 16;
        span_add(&s, stack_sum(&p->items[rows[i].at], is_coarse));
        if (px > left) left = px;
    }
    figure_open(out, caption, 1);
    stack_legend(out, p, is_coarse);
    plot_open(&q, out, caption, 1000, (double)count * 20 + 50);
    q.x = scale_make(s, 0, left, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "mean T_total, ms");
    for (size_t i = 0; i < count; i++) stack_row(&q, p, &p->items[rows[i].at], is_coarse, 3 + 20 * (double)i);
    plot_close(&q);
}
/* All configurations as thin bars, the fastest first: one path a part, and a clear field a configuration for the pointer. */
static void stack_all(text_buffer *out, const report *p, int is_coarse, const ranked *rows, size_t count) {
    static const char caption[] = "All configurations, from fastest to slowest";
    plot q;
    span y = {0, 0}, x = {0, 0};
    x.high = (double)count;
    for (size_t i = 0; i < count; i++) span_add(&y, stack_sum(&p->items[rows[i].at], is_coarse));
    figure_open(out, caption, 1);
    plot_open(&q, out, caption, 1000, 300);
    q.x = scale_make(x, 0, PLOT_LEFT, q.width - PLOT_RIGHT);
    q.x.low = 0;
    q.x.high = (double)count;
    q.y = scale_make(y, 0, q.height - 30, PLOT_TOP);
    plot_y_axis(&q);
    plot_labels(&q, "configurations, ascending by mean T_total", "mean T_total, ms");
    for (int part = 0; part < STACK_PARTS; part++) {
        page_add(out, "<path class=\"a s%d\" d=\"", stack_series(part));
        for (size_t i = 0; i < count; i++) {
            double parts[STACK_PARTS], below = 0, from = scale_place(&q.x, (double)i), wide = scale_place(&q.x, (double)i + 1) - from, high, low;
            stack_parts(&p->items[rows[i].at], is_coarse, parts);
            for (int k = 0; k < part; k++) below += parts[k];
            low = scale_place(&q.y, below);
            high = scale_place(&q.y, below + parts[part]);
            if (low - high >= 0.05) page_add(out, "M%.1f %.1fv%.1fh%.1fv%.1fz", from, low, high - low, wide * 0.94, low - high);
        }
        text_add_string(out, "\"/>\n");
    }
    for (size_t i = 0; i < count; i++) {
        text_buffer title = {NULL, 0, 0};
        stack_title(p, &p->items[rows[i].at], is_coarse, &title);
        page_add(out, "<rect class=\"h\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.0f\"><title>", scale_place(&q.x, (double)i), PLOT_TOP,
                 (q.x.to - q.x.from) / (double)count, q.y.from - PLOT_TOP);
        page_text(out, title.data);
        text_add_string(out, "</title></rect>\n");
        free(title.data);
    }
    plot_close(&q);
}
static int is_on_front(const report *p, size_t file) {
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        for (size_t i = 0; i < t->front_count; i++) if (t->group->paired[t->front[i]] == file) return 1;
    }
    return 0;
}
static void page_stack(text_buffer *out, const report *p) {
    size_t count = 0, shown = 0;
    int is_coarse = 1, has_front = 0;
    ranked *rows = (ranked *)zeroed(p->r->count, sizeof *rows), *few = (ranked *)zeroed(p->r->count, sizeof *few);
    for (int s = 0; s < VP_STAGE_COUNT; s++) is_coarse &= !stage_is_known(p, s);
    for (size_t i = 0; i < p->r->count; i++) {
        if (!(p->items[i].mean[METRIC_TOTAL] > 0)) continue;
        rows[count].at = i;
        rows[count++].key = p->items[i].mean[METRIC_TOTAL];
        has_front |= is_on_front(p, i);
    }
    if (count <= STACK_ROWS) stack_rows(out, p, is_coarse, rows, count, "Where the time of a request goes: means over samples");
    else {
        qsort(rows, count, sizeof *rows, by_key);
        for (size_t i = 0; i < count && shown < STACK_ROWS; i++)
            if (has_front ? is_on_front(p, rows[i].at) : i < STACK_ROWS / 2 || i >= count - STACK_ROWS / 2) few[shown++] = rows[i];
        stack_rows(out, p, is_coarse, few, shown, has_front ? "Where the time of a request goes: configurations on a Pareto front, means over samples"
                   : "Where the time of a request goes: the fastest and the slowest dozen, means over samples");
        stack_all(out, p, is_coarse, rows, count);
    }
    free(rows);
    free(few);
}

/* ---- E1: prefill and decode by part, where kernels were timed one by one */
enum { PARTS_IDLE = VP_PART_COUNT, PARTS_CONFIGURATIONS = 12 };
static int part_series(int part) {
    switch (part) {
    case VP_PART_DENSE: return 0;
    case VP_PART_ATTENTION: return 1;
    case VP_PART_ROUTER: return 5;
    case VP_PART_EXPERTS: return 3;
    case VP_PART_HEAD: return 4;
    case PARTS_IDLE: return 8;
    default: return SERIES_GREY;
    }
}
static const char *part_text(int part) { return part == PARTS_IDLE ? "idle" : vp_part_name((vp_part)part); }
static double part_share(const stage_cost *c, int part) { return part == PARTS_IDLE ? c->idle_share : c->parts[part]; }
static void parts_row(plot *q, const report *p, const decomposition *d, int stage, double y) {
    const stage_cost *c = &d->stages[stage];
    char name[160];
    double at = 0;
    plot_text(q, q->x.from - 8, y + 12, "end", "", full_name(p->r, d->file, name));
    plot_text(q, 4, y + 12, "", "", vp_stage_name((vp_stage)stage));
    page_add(q->out, "<g><title>%s", vp_stage_name((vp_stage)stage));
    for (int part = 0; part <= PARTS_IDLE; part++)
        if (part_share(c, part) > 0) page_add(q->out, "\n%s %.1f %%", part_text(part), 100 * part_share(c, part));
    text_add_string(q->out, "</title>");
    for (int part = 0; part <= PARTS_IDLE; part++) {
        double from = scale_place(&q->x, 100 * at), to;
        if (!(part_share(c, part) > 0)) continue;
        at += part_share(c, part);
        to = scale_place(&q->x, 100 * at);
        if (to - from >= 0.05)
            page_add(q->out, "<rect class=\"b s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"15\"/>", part_series(part), from, y, to - from);
    }
    text_add_string(q->out, "</g>\n");
}
static void page_parts(text_buffer *out, const report *p) {
    static const char caption[] = "What prefill and decode are made of (--kernel_pass), at most a dozen configurations";
    plot q;
    span s = {0, 100};
    double left = 60;
    size_t rows[PARTS_CONFIGURATIONS], count = 0;
    int seen[PARTS_IDLE + 1] = {0};
    for (size_t i = 0; i < p->r->count && count < PARTS_CONFIGURATIONS; i++) {
        char name[160];
        double px = text_px(full_name(p->r, p->items[i].file, name)) + 72;
        if (!stage_has_parts(&p->items[i].stages[VP_STAGE_PREFILL]) && !stage_has_parts(&p->items[i].stages[VP_STAGE_DECODE])) continue;
        for (int k = 0; k < 2; k++)
            for (int part = 0; part <= PARTS_IDLE; part++) seen[part] |= part_share(&p->items[i].stages[PART_STAGES[k]], part) >= 0.0005;
        if (px > left) left = px;
        rows[count++] = i;
    }
    if (!count) return;
    figure_open(out, caption, 1);
    legend_open(out);
    for (int part = 0; part <= PARTS_IDLE; part++) if (seen[part]) legend_item(out, COLOUR_SERIES, part_series(part), 0, -1, part_text(part));
    legend_close(out);
    plot_open(&q, out, caption, 1000, (double)count * 42 + 50);
    q.x = scale_make(s, 0, left, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "% of the stage's time on the device");
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) parts_row(&q, p, &p->items[rows[i]], PART_STAGES[k], 3 + 42 * (double)i + 18 * k);
    plot_close(&q);
}

/* ---- E1: scaling */
enum { CURVES_SHOWN = 6 };
static int shown_at(size_t rank, size_t count, size_t most) { /* which of `most` evenly spread ones the rank-th is; -1: none */
    if (count <= most) return (int)rank;
    for (size_t k = 0; k < most; k++) if (rank == k * (count - 1) / (most - 1)) return (int)k;
    return -1;
}
static void curve_span(const curve *c, span *x, span *y) {
    for (size_t b = 0; b < c->bin_count; b++) {
        span_add(x, c->bins[b].x);
        span_add_estimate(y, c->bins[b].y);
    }
    for (size_t b = 0; b < c->bin_count; b += c->bin_count > 1 ? c->bin_count - 1 : 1) span_add(y, c->intercept + c->slope.value * c->bins[b].x);
}
static void curve_line(plot *q, const curve *c, const char *kind) {
    double from = c->bins[0].x, to = c->bins[c->bin_count - 1].x, a = c->intercept + c->slope.value * from, b = c->intercept + c->slope.value * to;
    if (isfinite(a) && isfinite(b))
        plot_segment(q, kind, scale_place(&q->x, from), scale_place(&q->y, a), scale_place(&q->x, to), scale_place(&q->y, b));
}
static void curve_marks(plot *q, const curve *c, int sign) {
    for (size_t b = 0; b < c->bin_count; b++) {
        char title[256];
        double x = scale_place(&q->x, c->bins[b].x), y = scale_place(&q->y, c->bins[b].y.value);
        snprintf(title, sizeof title, "%s\n%s %s: median %s ms, %zu points", c->label, c->x_name, figure_x(c->bins[b].x).text,
                 figure_of_estimate(c->bins[b].y).text, c->bins[b].count);
        plot_whiskers(q, x, y, estimate_none(), c->bins[b].y);
        plot_mark(q->out, sign, x, y, 3.6, 1, title);
    }
}
/* "k4 b12: 12.3 [12.0, 12.6] us/token"; steepest: of the slopes that stand together, so that they share a unit */
static void slope_text(const curve *c, double steepest, char out[160]) {
    static const struct { double scale; const char *prefix; } units[] = {{1, "m"}, {1e3, "\xC2\xB5"}, {1e6, "n"}}; /* of a second */
    int u = steepest >= 1 ? 0 : steepest >= 1e-3 ? 1 : 2;
    if (!isfinite(c->slope.value)) snprintf(out, 160, "%s: all alike, no line", c->label);
    else snprintf(out, 160, "%s: %s %s%s", c->label, figure_estimate(units[u].scale, c->slope.value, c->slope.low, c->slope.high).text,
                  units[u].prefix, c->unit + 1); /* units begin with ms */
}
/* The curves of a group with one name; of many those whose slopes spread evenly from least to greatest, all others as thin lines. */
static void page_curves_of(text_buffer *out, const report *p, size_t group, const char *name) {
    ranked *order = (ranked *)zeroed(p->curve_count, sizeof *order);
    size_t count = 0;
    span x = span_none(), y = {0, 0};
    char caption[256];
    double steepest = 0;
    const curve *first = NULL;
    plot q;
    for (size_t i = 0; i < p->curve_count; i++) {
        if (p->curve_group[i] != group || strcmp(p->curves[i].name, name) || !p->curves[i].bin_count) continue;
        order[count].at = i;
        order[count++].key = isfinite(p->curves[i].slope.value) ? p->curves[i].slope.value : 0;
        if (fabs(p->curves[i].slope.value) > steepest) steepest = fabs(p->curves[i].slope.value);
        curve_span(&p->curves[i], &x, &y);
        first = first ? first : &p->curves[i];
    }
    if (!first) { free(order); return; }
    if (count > CURVES_SHOWN) qsort(order, count, sizeof *order, by_key);
    snprintf(caption, sizeof caption, "%s against %s", first->y_name, first->x_name);
    figure_open(out, caption, 0);
    legend_open(out);
    for (size_t i = 0; i < count; i++) {
        const curve *c = &p->curves[order[i].at];
        char text[160];
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        slope_text(c, steepest, text);
        legend_item(out, COLOUR_SERIES, at, 0, at, text);
    }
    legend_close(out);
    plot_open(&q, out, caption, 520, 320);
    snprintf(caption, sizeof caption, "%s, ms", first->y_name);
    plot_frame(&q, x, 0, y, 0, first->x_name, caption);
    for (size_t i = 0; i < count; i++) if (shown_at(i, count, CURVES_SHOWN) < 0) curve_line(&q, &p->curves[order[i].at], "t");
    for (size_t i = 0; i < count; i++) {
        int at = shown_at(i, count, CURVES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_SERIES, at, 0);
        curve_line(&q, &p->curves[order[i].at], "l");
        curve_marks(&q, &p->curves[order[i].at], at);
        text_add_string(out, "</g>\n");
    }
    plot_close(&q);
    free(order);
}

/* ---- E1: work against time */
static int has_work(const stage_cost *c) { return c->flops > 0 && c->bytes > 0 && c->mean > 0 && c->tflops > 0 && isfinite(c->tflops * 1e12); }
static void work_title(const report *p, const decomposition *d, int stage, char title[512]) {
    const stage_cost *c = &d->stages[stage];
    char name[160];
    snprintf(title, 512, "%s, %s\n%s ms, %s GFLOP, %s MB\n%s TFLOP/s, %s GB/s: %s", vp_stage_name((vp_stage)stage), full_name(p->r, d->file, name),
             figure_number(c->mean).text, figure_number(c->flops / 1e9).text, figure_number(c->bytes / 1e6).text, figure_number(c->tflops).text,
             figure_number(c->gbs).text, BOUND_NAMES[c->limit]);
}
static double work_x(const stage_cost *c, int is_roofline) { return is_roofline ? c->flops / c->bytes : c->flops; }
static double work_y(const stage_cost *c, int is_roofline) { return is_roofline ? c->tflops * 1e12 : c->mean; }
/* The roofs as lines: what no stage gets past, or the least time that work can take. */
static void work_roofs(plot *q, const report *p, int is_roofline) {
    double from = q->x.low, to = q->x.high, knee = p->peak_tflops * 1e3 / p->peak_gbs, ends[3], y[3];
    int count = 0;
    ends[count++] = from;
    if (is_roofline && knee > from && knee < to) ends[count++] = knee;
    ends[count++] = to;
    text_add_string(q->out, "<path class=\"r\" d=\"");
    for (int i = 0; i < count; i++) {
        double roof = ends[i] * p->peak_gbs * 1e9, peak = p->peak_tflops * 1e12;
        y[i] = !is_roofline ? ends[i] / peak * 1e3 : roof < peak ? roof : peak;
        page_add(q->out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&q->x, ends[i]), scale_place(&q->y, y[i]));
    }
    text_add_string(q->out, "\"/>\n");
}
static void page_work(text_buffer *out, const report *p, int is_roofline) {
    static const char *const titles[] = {"FLOPs against time; dashed: the least time at the compute roof",
                                           "Roofline: what is reached against FLOPs a byte; dashed: roofs"};
    span x = span_none(), y = span_none();
    int seen[VP_STAGE_COUNT] = {0};
    plot q;
    for (size_t i = 0; i < p->r->count; i++) {
        for (int s = 0; s < VP_STAGE_COUNT; s++) {
            const stage_cost *c = &p->items[i].stages[s];
            if (!has_work(c)) continue;
            seen[s] = 1;
            span_add(&x, work_x(c, is_roofline));
            span_add(&y, work_y(c, is_roofline));
        }
    }
    if (!(x.low > 0) || !(y.low > 0) || !(x.high >= x.low) || !(p->peak_tflops > 0) || !(p->peak_gbs > 0)) return;
    if (is_roofline) span_add(&y, p->peak_tflops * 1e12);
    figure_open(out, titles[is_roofline], 0);
    legend_open(out);
    for (int s = 0; s < VP_STAGE_COUNT; s++) if (seen[s]) legend_item(out, COLOUR_SERIES, stack_series(s), 0, s, vp_stage_name((vp_stage)s));
    legend_close(out);
    plot_open(&q, out, titles[is_roofline], 520, 340);
    q.x_prefix = !is_roofline;
    q.y_prefix = is_roofline;
    plot_frame(&q, x, 1, y, 1, is_roofline ? "FLOPs a byte" : "FLOPs a request", is_roofline ? "FLOP/s" : "ms a request");
    page_add(out, "<clipPath id=\"k%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath><g clip-path=\"url(#k%d)\">",
             is_roofline,
             q.x.from, q.y.to, q.x.to - q.x.from, q.y.from - q.y.to, is_roofline);
    work_roofs(&q, p, is_roofline);
    page_add(out, "</g><g%s>", p->r->count > 40 ? " class=\"many\"" : "");
    for (int s = 0; s < VP_STAGE_COUNT; s++) {
        if (!seen[s]) continue;
        colour_open(out, COLOUR_SERIES, stack_series(s), 0);
        for (size_t i = 0; i < p->r->count; i++) {
            const stage_cost *c = &p->items[i].stages[s];
            char title[512];
            if (!has_work(c)) continue;
            work_title(p, &p->items[i], s, title);
            plot_mark(out, s, scale_place(&q.x, work_x(c, is_roofline)), scale_place(&q.y, work_y(c, is_roofline)), p->r->count > 40 ? 2.6 : 3.6, 1,
                      title);
        }
        text_add_string(out, "</g>\n");
    }
    text_add_string(out, "</g>");
    plot_close(&q);
}

/* ---- E2: the front */
/* Accuracy has room from 0 to 1 where nothing tells its levels apart. */
static void span_room(span *y, int v) {
    if (v && !(y->high > y->low) && y->low >= 0 && y->high <= 1) { y->low = 0; y->high = 1; }
}
enum { FRONT_WHISKERS = 40, BOXES_MOST = 2048 };
typedef struct box { double x, y, width, height; } box;
typedef struct boxes { box items[BOXES_MOST]; size_t count; } boxes;
static int box_is_free(const boxes *b, box n) {
    for (size_t i = 0; i < b->count; i++) {
        const box *o = &b->items[i];
        if (n.x < o->x + o->width && o->x < n.x + n.width && n.y < o->y + o->height && o->y < n.y + n.height) return 0;
    }
    return 1;
}
static void box_take(boxes *b, double x, double y, double width, double height) {
    box n;
    n.x = x; n.y = y; n.width = width; n.height = height;
    if (b->count < BOXES_MOST) b->items[b->count++] = n;
}
/* Writes a point's name beside it where nothing stands yet; a name that has no room is left to the table and the pointer. */
static void plot_name(plot *q, boxes *b, double x, double y, const char *text) {
    static const struct { double x, y; } corners[] = {{8, -7}, {9, 4}, {8, 15}, {-1, -14}, {-1, 20}, {9, 26}, {9, -22}};
    double px = text_px(text);
    for (int side = 1; side >= 0; side--) { /* first to the left: no point of a front stands above there */
        for (size_t i = 0; i < sizeof corners / sizeof corners[0] && b->count < BOXES_MOST; i++) {
            box n;
            n.x = side ? x - corners[i].x - px : x + corners[i].x;
            n.y = y + corners[i].y - 11;
            n.width = px;
            n.height = 14;
            if (n.x < q->x.from + 2 || n.x + px > q->x.to - 2 || n.y < q->y.to || n.y + 14 > q->y.from || !box_is_free(b, n)) continue;
            box_take(b, n.x, n.y, px, 14);
            plot_text(q, n.x, n.y + 11, "", " class=\"o\"", text);
            return;
        }
    }
}
static vp_estimate point_latency(const vp_bootstrap_point *b) {
    vp_estimate e;
    e.value = b->latency;
    e.low = b->latency_low;
    e.high = b->latency_high;
    return e;
}
static vp_estimate point_accuracy(const vp_bootstrap_point *b) {
    vp_estimate e;
    e.value = b->accuracy;
    e.low = b->accuracy_low;
    e.high = b->accuracy_high;
    return e;
}
static int has_whiskers(const tradeoff *t, size_t i) { return t->config_count <= FRONT_WHISKERS || is_listed(t->front, t->front_count, i); }
static void front_line(plot *q, const tradeoff *t) { /* steps: what the next member costs is only reached there */
    if (!t->front_count) return;
    text_add_string(q->out, "<g class=\"s1\"><path class=\"l\" d=\"");
    for (size_t i = 0; i < t->front_count; i++) {
        double x = scale_place(&q->x, t->at_latency[t->front[i]]), y = scale_place(&q->y, t->at_accuracy[t->front[i]]);
        page_add(q->out, i ? "H%.1fV%.1f" : "M%.1f %.1f", x, y);
    }
    page_add(q->out, "H%.1f\"/></g>\n", q->x.to);
}
static void front_mark(plot *q, const report *p, const tradeoff *t, size_t i) {
    const vp_bootstrap_point *b = &t->points[i];
    int is_member = is_listed(t->front, t->front_count, i);
    double x = scale_place(&q->x, b->latency), y = scale_place(&q->y, b->accuracy);
    char name[80], title[512];
    if (!isfinite(x) || !isfinite(y)) return;
    snprintf(title, sizeof title, "%s%s\n%s %s ms\naccuracy %s\nmember of the front in %s %% of the resamples",
             setting_text(&p->r->files[t->group->paired[i]], name),
             is_member ? ", on the front" : "", percentile_text(p->settings.percentile), figure_of_estimate(point_latency(b)).text,
             figure_of_estimate(point_accuracy(b)).text, figure_percent(b->membership).text);
    page_add(q->out, "<g class=\"s%d\">", is_member ? 1 : 0);
    if (has_whiskers(t, i)) plot_whiskers(q, x, y, point_latency(b), point_accuracy(b));
    plot_mark(q->out, is_member ? 3 : 0, x, y, is_member ? 5 : 4, is_member ? 1 : isfinite(b->membership) ? 0.4 + 0.6 * b->membership : 0.6, title);
    text_add_string(q->out, "</g>\n");
}
static void page_front(text_buffer *out, const report *p, const tradeoff *t) {
    boxes *b = (boxes *)zeroed(1, sizeof *b);
    span x = span_none(), y = span_none();
    char caption[256], label[64], name[80];
    plot q;
    for (size_t i = 0; i < t->config_count; i++) {
        span_add(&x, t->points[i].latency);
        span_add(&y, t->points[i].accuracy);
        if (!has_whiskers(t, i)) continue;
        span_add_estimate(&x, point_latency(&t->points[i]));
        span_add_estimate(&y, point_accuracy(&t->points[i]));
    }
    span_room(&y, 1);
    snprintf(caption, sizeof caption, "Accuracy against %s of %s; %s", percentile_text(p->settings.percentile), METRIC_KEYS[p->settings.axis],
             t->is_corpus ? "a metric of the whole corpus has no intervals"
             : t->config_count > FRONT_WHISKERS ? "95 % intervals of the front's members" : "95 % intervals");
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 1, 0, 3, "on the Pareto front");
    legend_item(out, COLOUR_SERIES, 0, 0, 0, "not on it; the fuller the colour, the likelier a member in a resample");
    legend_close(out);
    plot_open(&q, out, caption, 1000, 460);
    snprintf(label, sizeof label, "%s of %s, ms", percentile_text(p->settings.percentile), METRIC_KEYS[p->settings.axis]);
    plot_frame(&q, x, needs_log(x), y, 0, label, "accuracy");
    front_line(&q, t);
    for (int members = 0; members < 2; members++)
        for (size_t i = 0; i < t->config_count; i++) if (is_listed(t->front, t->front_count, i) == members) front_mark(&q, p, t, i);
    for (size_t i = 0; i < t->front_count; i++)
        box_take(b, scale_place(&q.x, t->at_latency[t->front[i]]) - 7, scale_place(&q.y, t->at_accuracy[t->front[i]]) - 7, 14, 14);
    for (size_t i = 0; i < t->config_count; i++)
        box_take(b, scale_place(&q.x, t->at_latency[i]) - 4, scale_place(&q.y, t->at_accuracy[i]) - 4, 8, 8);
    for (size_t i = 0; i < t->front_count; i++)
        plot_name(&q, b, scale_place(&q.x, t->at_latency[t->front[i]]), scale_place(&q.y, t->at_accuracy[t->front[i]]),
                  setting_text(&p->r->files[t->group->paired[t->front[i]]], name));
    plot_close(&q);
    free(b);
}

/* ---- E2: what the knobs do */
static const vp_effect *effect_of(const tradeoff *t, int v, vp_effect_kind kind, int32_t knob_a, int32_t a, int32_t knob_b, int32_t b) {
    for (size_t i = 0; i < t->effect_count; i++) {
        const vp_effect *e = &t->effects[v][i];
        if (e->kind == kind && e->knob_a == knob_a && e->level_a == a && e->knob_b == knob_b && e->level_b == b) return e;
    }
    return NULL;
}
static double effect_value(const vp_effect *e) { return e ? e->estimate : 0; }
static const char *value_label(const report *p, int v, char out[48]) {
    if (v) snprintf(out, 48, "mean accuracy"); else snprintf(out, 48, "mean %s, ms", METRIC_KEYS[p->settings.axis]);
    return out;
}
static const char *knob_label(const report *p, const tradeoff *t, int32_t knob) {
    int is_size = t->knob_of[knob] == KNOB_SIZE && !p->r->files[t->group->paired[t->level_example[KNOB_SIZE][0]]].tier;
    return is_size ? "image size, target vision tokens" : KNOB_NAMES[t->knob_of[knob]];
}
/* An axis of a knob's levels at equal steps, named where there is room. */
static void plot_levels(plot *q, const report *p, const tradeoff *t, int32_t knob) {
    int32_t count = t->knobs.level_counts[knob];
    double used = -HUGE_VAL, step = (q->width - PLOT_LEFT - PLOT_RIGHT) / count;
    memset(&q->x, 0, sizeof q->x);
    q->x.from = PLOT_LEFT;
    q->x.to = q->width - PLOT_RIGHT;
    q->x.low = -0.5;
    q->x.high = count - 0.5;
    for (int32_t i = 0; i < count; i++) {
        char text[48];
        double at = q->x.from + step * (i + 0.5), half;
        level_text(t, p->r, t->knob_of[knob], i, text);
        text[strcspn(text, " ")] = 0; /* "576 tokens": the axis says what */
        half = text_px(text) / 2;
        if (at - half < used || at - half < 0 || at + half > q->width) continue;
        plot_text(q, at, q->height - PLOT_BOTTOM + 18, "middle", "", text);
        used = at + half + 8;
    }
}
/* A knob's levels, all others in the mean: mean and interval. */
static void page_main_effect(text_buffer *out, const report *p, const tradeoff *t, int32_t knob, int v) {
    span y = span_none();
    double mean = t->effects[v][0].estimate;
    char caption[160], label[48];
    plot q;
    for (int32_t i = 0; i < t->knobs.level_counts[knob]; i++) {
        const vp_effect *e = effect_of(t, v, VP_EFFECT_MAIN, knob, i, -1, -1);
        if (!e) return;
        span_add(&y, mean + e->estimate);
        span_add(&y, mean + e->low);
        span_add(&y, mean + e->high);
    }
    snprintf(caption, sizeof caption, "%s by %s", v ? "Accuracy" : "Latency",
             KNOB_NAMES[t->knob_of[knob]]);
    figure_open(out, caption, 0);
    span_room(&y, v);
    plot_open(&q, out, caption, 520, 260);
    q.y = scale_make(y, 0, q.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&q, p, t, knob);
    plot_y_axis(&q);
    plot_labels(&q, knob_label(p, t, knob), value_label(p, v, label));
    plot_segment(&q, "r", q.x.from, scale_place(&q.y, mean), q.x.to, scale_place(&q.y, mean));
    colour_open(out, COLOUR_SERIES, v ? 1 : 0, 0);
    for (int32_t i = 0; i < t->knobs.level_counts[knob]; i++) {
        const vp_effect *e = effect_of(t, v, VP_EFFECT_MAIN, knob, i, -1, -1);
        vp_estimate whole;
        char title[256], level[48];
        whole.value = mean + e->estimate;
        whole.low = mean + e->low;
        whole.high = mean + e->high;
        snprintf(title, sizeof title, "%s %s: %s", KNOB_NAMES[t->knob_of[knob]], level_text(t, p->r, t->knob_of[knob], i, level),
                 figure_of_estimate(whole).text);
        plot_whiskers(&q, scale_place(&q.x, i), scale_place(&q.y, whole.value), estimate_none(), whole);
        plot_mark(out, v ? 3 : 0, scale_place(&q.x, i), scale_place(&q.y, whole.value), 4, 1, title);
    }
    text_add_string(out, "</g>");
    plot_close(&q);
}
/* Mean of a pair of levels, as the effects make it up. */
static double pair_mean(const tradeoff *t, int v, int32_t a, int32_t la, int32_t b, int32_t lb) {
    return t->effects[v][0].estimate + effect_value(effect_of(t, v, VP_EFFECT_MAIN,
                                                              a, la, -1, -1)) + effect_value(effect_of(t, v, VP_EFFECT_MAIN, b, lb, -1, -1))
         + effect_value(effect_of(t, v, VP_EFFECT_PAIR, a, la, b, lb));
}
enum { LINES_SHOWN = 8 };
/* A line a level of knob b over the levels of knob a: parallel lines are no interaction. */
static void page_interaction(text_buffer *out, const report *p, const tradeoff *t, int32_t a, int32_t b, int v) {
    int32_t levels = t->knobs.level_counts[a], lines = t->knobs.level_counts[b];
    int shown = lines < LINES_SHOWN ? lines : LINES_SHOWN;
    span y = span_none();
    char caption[160], label[48], level[48];
    plot q;
    for (int32_t i = 0; i < levels; i++) for (int32_t k = 0; k < lines; k++) span_add(&y, pair_mean(t, v, a, i, b, k));
    snprintf(caption, sizeof caption, "%s by %s and %s", v ? "Accuracy" : "Latency", KNOB_NAMES[t->knob_of[a]],
             KNOB_NAMES[t->knob_of[b]]);
    figure_open(out, caption, 0);
    legend_open(out);
    page_text(out, KNOB_NAMES[t->knob_of[b]]);
    text_add_string(out, ": ");
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at >= 0) legend_item(out, COLOUR_RAMP, at, shown, at, level_text(t, p->r, t->knob_of[b], k, level));
    }
    legend_close(out);
    span_room(&y, v);
    plot_open(&q, out, caption, 520, 280);
    q.y = scale_make(y, 0, q.height - PLOT_BOTTOM, PLOT_TOP);
    plot_levels(&q, p, t, a);
    plot_y_axis(&q);
    plot_labels(&q, knob_label(p, t, a), value_label(p, v, label));
    for (int32_t k = 0; k < lines; k++) {
        int at = shown_at((size_t)k, (size_t)lines, LINES_SHOWN);
        if (at < 0) continue;
        colour_open(out, COLOUR_RAMP, at, shown);
        text_add_string(out, "<path class=\"l\" d=\"");
        for (int32_t i = 0; i < levels; i++) page_add(out, "%c%.1f %.1f", i ? 'L' : 'M', scale_place(&q.x, i),
                                                      scale_place(&q.y, pair_mean(t, v, a, i, b, k)));
        text_add_string(out, "\"/>");
        for (int32_t i = 0; i < levels; i++) {
            const vp_effect *e = effect_of(t, v, VP_EFFECT_PAIR, a, i, b, k);
            char title[256], other[48];
            vp_estimate pair;
            pair.value = e ? e->estimate : 0;
            pair.low = e ? e->low : (double)NAN;
            pair.high = e ? e->high : (double)NAN;
            snprintf(title, sizeof title, "%s %s, %s %s: %s\nover what both do alone: %s", KNOB_NAMES[t->knob_of[a]],
                     level_text(t, p->r, t->knob_of[a], i, level),
                     KNOB_NAMES[t->knob_of[b]], level_text(t, p->r, t->knob_of[b], k, other), figure_number(pair_mean(t, v, a, i, b, k)).text,
                     figure_of_estimate(pair).text);
            plot_mark(out, at, scale_place(&q.x, i), scale_place(&q.y, pair_mean(t, v, a, i, b, k)), 3.4, 1, title);
        }
        text_add_string(out, "</g>\n");
    }
    plot_close(&q);
}
/* Shares of the variance between configurations, as bars. */
static void page_shares(text_buffer *out, const tradeoff *t) {
    static const char caption[] = "What makes configurations differ: shares of the variance between their means";
    int32_t knobs = t->knobs.knob_count, terms = knobs + (t->order == 2 ? knobs * (knobs - 1) / 2 : 0) + 1;
    plot q;
    span x = {0, 100};
    for (int32_t term = 0; term < terms; term++) for (int v = 0; v < 2 && t->shares[v]; v++) span_add(&x, 100 * t->shares[v][term]);
    if (x.low < 0) x.low = 0; /* a grid with holes: bars begin at 0 */
    figure_open(out, caption, 1);
    legend_open(out);
    legend_item(out, COLOUR_SERIES, 0, 0, -1, "latency");
    if (t->shares[1]) legend_item(out, COLOUR_SERIES, 1, 0, -1, "accuracy");
    legend_close(out);
    plot_open(&q, out, caption, 1000, 34.0 * terms + 50);
    q.x = scale_make(x, 0, 170, q.width - 64);
    q.y.from = q.height - 42;
    plot_x_axis(&q);
    plot_text(&q, (q.x.from + q.x.to) / 2, q.height - 6, "middle", " class=\"n\"", "share of the variance, %");
    for (int32_t term = 0, a = 0, b = 0; term < terms; term++) {
        char name[80] = "what is left";
        double y = 4 + 34.0 * term;
        if (term < knobs) snprintf(name, sizeof name, "%s", KNOB_NAMES[t->knob_of[term]]);
        else if (term < terms - 1) {
            if (++b == knobs) b = ++a + 1;
            snprintf(name, sizeof name, "%s x %s", KNOB_NAMES[t->knob_of[a]], KNOB_NAMES[t->knob_of[b]]);
        }
        plot_text(&q, q.x.from - 8, y + 18, "end", "", name);
        for (int v = 0; v < 2 && t->shares[v]; v++) {
            double share = 100 * t->shares[v][term], end = scale_place(&q.x, share > 0 ? share : 0);
            page_add(out, "<rect class=\"b s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\"/>", v, q.x.from, y + 13 * v, end - q.x.from);
            plot_text(&q, end + 6, y + 10 + 13 * v, "", "", figure_of("%.1f %%", share).text);
        }
    }
    plot_close(&q);
}
static void page_coupling(text_buffer *out, const report *p, const tradeoff *t) {
    if (!t->order) { page_element(out, "p",
                                  t->knobs.knob_count ? "Effects of knobs: this grid cannot tell them apart." : "No knob varies."); return; }
    if (t->shares[0]) page_shares(out, t);
    text_add_string(out,
                    "<p class=\"wide soft\">Means over all other knobs. By one knob: 95 % intervals of the difference to the mean of all "
                     "(dashed). By "
                         "two knobs: lines that are not parallel are an interaction.</p>\n");
    for (int32_t a = 0; a < t->knobs.knob_count; a++) for (int v = 0; v < 2; v++) if (t->effects[v]) page_main_effect(out, p, t, a, v);
    for (int32_t a = 0; a < t->knobs.knob_count && t->order == 2; a++)
        for (int32_t b = a + 1; b < t->knobs.knob_count; b++) for (int v = 0; v < 2; v++) if (t->effects[v]) page_interaction(out, p, t, a, b, v);
}

/* ---- E3: predicted against measured, by models that never saw the configuration */
enum { HELD_DOTS = 1500, EXPERTS_ASSUMED = 64 };
static int64_t experts_said(const results *r) {
    int64_t said = -1;
    for (size_t i = 0; i < r->count; i++) if (r->files[i].expert_count > said) said = r->files[i].expert_count;
    return said;
}
/* As pair_rows, where a logarithm can be taken, with each row's file. */
static size_t held_pairs(const measurements *m, const double *predicted, int part, double *pairs, uint32_t *files) {
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        double y = measured_part(m, part, i), x = predicted[(size_t)part * m->count + i];
        if (!(isfinite(y) && y > 0) || !(isfinite(x) && x > 0)) continue;
        pairs[count] = y;
        pairs[m->count + count] = x;
        files[count++] = m->configs[i];
    }
    return count;
}
static void held_dots(plot *q, const double *real, const double *guess, size_t count) {
    size_t stride = count / HELD_DOTS + 1;
    text_add_string(q->out, "<path class=\"d\" d=\"");
    for (size_t i = 0; i < count; i += stride) page_add(q->out, "M%.1f %.1fh0", scale_place(&q->x, real[i]), scale_place(&q->y, guess[i]));
    text_add_string(q->out, "\"/>\n");
}
/* A mark a configuration: mean measured and predicted, with its own mean error. */
static void held_marks(plot *q, const report *p, const double *real, const double *guess, const uint32_t *files, size_t count) {
    for (size_t first = 0, end; first < count; first = end) {
        double y = 0, x = 0, off = 0, n;
        char name[160], title[512];
        for (end = first; end < count && files[end] == files[first]; end++) {
            y += real[end];
            x += guess[end];
            off += fabs(guess[end] - real[end]) / real[end];
        }
        n = (double)(end - first);
        snprintf(title, sizeof title, "%s\nmeasured %s ms, predicted %s ms (means)\nmean error of a sample %s %%",
                 full_name(p->r, &p->r->files[files[first]], name),
                 figure_number(y / n).text, figure_number(x / n).text, figure_percent(off / n).text);
        plot_mark(q->out, 0, scale_place(&q->x, y / n), scale_place(&q->y, x / n), 3.4, 1, title);
    }
}
static void page_held_out(text_buffer *out, const report *p, const measurements *m, const double *predicted, int part) {
    double *pairs = (double *)resize(NULL, m->count, 3 * sizeof *pairs);
    uint32_t *files = (uint32_t *)resize(NULL, m->count, sizeof *files);
    size_t count = held_pairs(m, predicted, part, pairs, files);
    vp_linear_errors e;
    span s = span_none();
    char caption[320];
    plot q;
    if (count > 1 && vp_linear_errors_compute(pairs, pairs + m->count, count, pairs + 2 * m->count, &e) == VP_OK) {
        for (size_t i = 0; i < count; i++) { span_add(&s, pairs[i]); span_add(&s, pairs[m->count + i]); }
        snprintf(caption, sizeof caption, "%s: mean error %.2f %%", part_name(part), 100 * e.mape);
        figure_open(out, caption, 0);
        page_add(out, "<p class=\"legend\">|error| mean %s ms, P95 %s ms; bias %s ms; R2 %s; %zu samples</p>", figure_number(e.mae).text,
                 figure_number(e.p95_absolute).text, figure_of(fabs(e.bias) < 1 ? "%+.3f" : "%+.2f", e.bias).text,
                 figure_of("%.4f", e.r2).text, count);
        plot_open(&q, out, caption, 520, 340);
        if (!needs_log(s)) span_add(&s, 0);
        plot_frame(&q, s, needs_log(s), s, needs_log(s), "measured, ms", "predicted, ms");
        plot_segment(&q, "r", scale_place(&q.x, q.x.low), scale_place(&q.y, q.x.low), scale_place(&q.x, q.x.high), scale_place(&q.y, q.x.high));
        colour_open(out, COLOUR_SERIES, part == VP_LATENCY_VISION ? 0 : part == VP_LATENCY_PREFILL ? 3 : part == VP_LATENCY_DECODE ? 1 : 2, 0);
        held_dots(&q, pairs, pairs + m->count, count);
        held_marks(&q, p, pairs, pairs + m->count, files, count);
        text_add_string(out, "</g>\n");
        plot_close(&q);
    }
    free(pairs);
    free(files);
}
static void page_estimates(text_buffer *out, const report *p) {
    static const int parts[] = {ESTIMATE_TOTAL, VP_LATENCY_VISION, VP_LATENCY_PREFILL, VP_LATENCY_DECODE};
    int64_t experts = experts_said(p->r);
    measurements m;
    double *predicted;
    size_t before;
    measurements_read(&m, p->r, experts > 0 ? experts : (int64_t)EXPERTS_ASSUMED);
    predicted = (double *)resize(NULL, m.count, ESTIMATE_PARTS * sizeof *predicted);
    predict_left_out(VP_LATENCY_PHYSICAL, &m, SPLIT_CONFIG, predicted);
    add_totals(&m, predicted);
    text_add_string(out,
                    "<section id=\"e3\"><h2>Predicted against measured</h2>\n<p class=\"soft\">Each configuration is predicted by a model of all "
                         "others: linear in physical features, no coefficient below 0. Large marks: means of configurations; dots: samples; "
                         "dashed: equal.");
    if (experts < 0) page_add(out, " The files do not say how many experts the model has: %d are assumed.", (int)EXPERTS_ASSUMED);
    text_add_string(out, "</p>\n<div class=\"grid\">");
    before = out->bytes;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) page_held_out(out, p, &m, predicted, parts[i]);
    text_add_string(out, "</div>");
    if (out->bytes == before + 6) text_add_string(out,
                                                  "<p>Nothing can be predicted: one configuration alone, or no token counts and stage times.</p>");
    text_add_string(out, "</section>\n");
    measurements_free(&m);
    free(predicted);
}

/* ---- words and tables */
static const vp_bootstrap_point *boot_point(const report *p, size_t file, int *on_front) {
    *on_front = is_on_front(p, file);
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        for (size_t i = 0; t->points && i < t->config_count; i++) if (t->group->paired[i] == file) return &t->points[i];
    }
    return NULL;
}
static void table_cell(text_buffer *out, figure f) {
    text_add_string(out, "<td>");
    page_text(out, f.text);
}
static void table_range(text_buffer *out, vp_estimate e) { /* the value, its interval small behind it */
    table_cell(out, figure_number(e.value));
    if (isfinite(e.low) || isfinite(e.high)) page_add(out, " <small>%s</small>", figure_range(1, e.low, e.high).text);
}
static void table_row(text_buffer *out, const report *p, size_t i) {
    static const int metrics[] = {METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN};
    const decomposition *d = &p->items[i];
    int on_front;
    const vp_bootstrap_point *b = boot_point(p, i, &on_front);
    char name[160];
    page_add(out, "<tr><th scope=\"row\" data-v=\"%zu\">", i);
    page_text(out, full_name(p->r, d->file, name));
    page_add(out, "<td>%zu", d->file->count);
    if (b) table_range(out, point_accuracy(b)); else table_cell(out, figure_number(d->file->accuracy));
    table_range(out, d->p50[METRIC_TOTAL]);
    table_cell(out, figure_number(d->p95[METRIC_TOTAL]));
    for (int m = 0; m < 5; m++) table_cell(out, figure_number(d->p50[metrics[m]].value));
    table_cell(out, figure_of("%.2f", 100 * d->closure));
    table_cell(out, figure_percent(d->run_spread));
    table_cell(out, figure_percent(d->idle_share));
    page_add(out, "<td data-v=\"%d\">%s", on_front, on_front ? "yes" : "");
    table_cell(out, figure_percent(b ? b->membership : (double)NAN));
    text_add_string(out, "\n");
}
static void page_table(text_buffer *out, const report *p) {
    static const char *const heads[] = {"configuration", "samples", "accuracy", "T_total P50, ms", "P95, ms", "TTFT, ms", "vision, ms",
                                        "prefill, ms", "decode, ms",
                                        "ms a token", "closure, %", "run spread, %", "idle, %", "front", "member, %"};
    text_add_string(out,
                    "<section id=\"table\"><h2>All configurations</h2><p>Medians over samples, in brackets 95 % intervals; a click on a head sorts."
                         "</p>\n<div class=\"scroll\"><table class=\"sort\"><thead><tr>");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) page_add(out, "<th scope=\"col\"><button>%s</button>", heads[i]);
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = 0; i < p->r->count; i++) table_row(out, p, i);
    text_add_string(out, "</tbody></table></div></section>\n");
}
/* What a text field of the files says; where they differ, the first three. */
static void provenance_text(text_buffer *out, const results *r, const char *name, size_t offset) {
    const char *seen[4];
    size_t count = 0;
    for (size_t i = 0; i < r->count && count < 4; i++) {
        const char *text = *(char *const *)(const void *)((const char *)&r->files[i] + offset);
        size_t k = 0;
        while (text && k < count && strcmp(seen[k], text)) k++;
        if (text && k == count) seen[count++] = text;
    }
    if (!count) return;
    page_element(out, "dt", name);
    text_add_string(out, "<dd>");
    for (size_t i = 0; i < count && i < 3; i++) {
        if (i) text_add_string(out, "; ");
        page_text(out, seen[i]);
    }
    text_add_string(out, count > 3 ? "; and others</dd>\n" : "</dd>\n");
}
static void provenance_number(text_buffer *out, const results *r, const char *name, size_t offset) {
    int64_t first, other;
    int differ = 0;
    memcpy(&first, (const char *)&r->files[0] + offset, sizeof first);
    for (size_t i = 1; i < r->count; i++) {
        memcpy(&other, (const char *)&r->files[i] + offset, sizeof other);
        differ |= other != first;
    }
    if (first >= 0 || differ) page_add(out, "<dt>%s</dt><dd>%lld%s</dd>\n", name, (long long)first, differ ? " (others differ)" : "");
}
static void provenance_times(text_buffer *out, const results *r) { /* as texts: ISO 8601 sorts by time */
    const char *first = NULL, *last = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const result_file *f = &r->files[i];
        if (f->measured_from && (!first || strcmp(f->measured_from, first) < 0)) first = f->measured_from;
        if (f->measured_to && (!last || strcmp(f->measured_to, last) > 0)) last = f->measured_to;
    }
    if (!first || !last) return;
    text_add_string(out, "<dt>measured</dt><dd>");
    page_text(out, first);
    text_add_string(out, " to ");
    page_text(out, last);
    text_add_string(out, "</dd>\n");
}
static void page_provenance(text_buffer *out, const report *p) {
    static const struct { const char *name; size_t offset; } texts[] = {
        {"data set", offsetof(result_file, task)}, {"data", offsetof(result_file, data)}, {"data hash", offsetof(result_file, data_hash)},
        {"accuracy by", offsetof(result_file, metric)}, {"model", offsetof(result_file, model)}, {"weights", offsetof(result_file, weights)},
        {"importance scores", offsetof(result_file, importance)}, {"device", offsetof(result_file, device)}, {"host", offsetof(result_file, host)},
        {"vlmprof", offsetof(result_file, version)}, {"timing", offsetof(result_file, timing)}, {"status", offsetof(result_file, status)}};
    static const struct { const char *name; size_t offset; } numbers[] = {
        {"seed", offsetof(result_file, seed)}, {"runs a sample, at least", offsetof(result_file, runs_per_sample)},
        {"most new tokens", offsetof(result_file, max_new_tokens)}, {"experts", offsetof(result_file, expert_count)},
        {"decoder blocks", offsetof(result_file, total_blocks)}};
    const result_file *f = &p->r->files[0];
    text_add_string(out, "<section id=\"source\"><h2>Provenance</h2><dl>\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) provenance_text(out, p->r, texts[i].name, texts[i].offset);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) provenance_number(out, p->r, numbers[i].name, numbers[i].offset);
    provenance_times(out, p->r);
    if (isfinite(f->cost_share)) {
        vp_estimate tool;
        tool.value = 100 * f->cost_share; tool.low = 100 * f->cost_low; tool.high = 100 * f->cost_high;
        page_add(out, "<dt>cost of stage times</dt><dd>%s %% of T_total</dd>\n", figure_of_estimate(tool).text);
    }
    page_add(out, "<dt>report by</dt><dd>vlmprof %s, %zu resamples, seed %u</dd>\n", VLMPROF_VERSION, p->settings.resamples,
             (unsigned)p->settings.seed);
    text_add_string(out, "</dl></section>\n");
}
static void page_list(text_buffer *out, const char *id, const char *title, const text_list *items) {
    if (!items->count) return;
    page_add(out, "<section id=\"%s\"><h2>%s</h2><ul>\n", id, title);
    for (size_t i = 0; i < items->count; i++) {
        page_element(out, "li", items->items[i]);
        text_add_string(out, "\n");
    }
    text_add_string(out, "</ul></section>\n");
}

/* ---- the page */
static void page_style(text_buffer *out) {
    text_add_string(out,
        "<style>\n"
        ":root{color-scheme:light dark;--bg:#fff;--fg:#1a1c1f;--soft:#5a6068;--line:#dfe2e6;--box:#f5f6f8;--warn:#fdf3e3;--edge:#c77700}\n"
        "@media(prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#e6e8ea;--soft:#a3abb4;--line:#343a41;--box:#1f2328;--warn:#33281a;"
        "--edge:#e69f00}.s0{--c:#2487cb!important}}\n"
        "*{box-sizing:border-box}body{margin:0 auto;padding:1.2rem 1.5rem 4rem;max-width:1180px;background:var(--bg);color:var(--fg);"
        "font:15px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;padding-top:.4rem;border-top:1px solid var(--line)}h3{"
        "font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0}a{color:inherit}\n"
        "nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--soft);font-size:.9rem;margin:.4rem 0 0}.soft{color:var(--soft)}\n"
        "#warnings{background:var(--warn);border-left:4px solid var(--edge);padding:.1rem 1rem .5rem;margin:1rem 0}#warnings h2{border:0;"
        "margin:.5rem 0 .2rem}ul{margin:.2rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;margin:0}@media(min-width:900px){dl{"
        "grid-template-columns:max-content 1fr max-content 1fr}}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n");
    text_add_string(out,
        ".grid .wide{grid-column:1/-1}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:1rem}figure{"
        "margin:0;padding:.8rem;background:var(--box);border-radius:6px;break-inside:avoid;min-width:0}"
        "figcaption{font-weight:600;font-size:.9rem;margin-bottom:.3rem}\n"
        "svg{display:block;width:100%;height:auto;overflow:visible;font:11px system-ui,sans-serif;fill:var(--fg)}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.2rem 0 .5rem}.legend span{display:inline-flex;"
        "align-items:center;gap:.35rem}.legend svg{width:14px;height:12px;flex:none}\n"
        ".s0{--c:#0072b2}.s1{--c:#d55e00}.s2{--c:#009e73}.s3{--c:#e69f00}.s4{--c:#cc79a7}.s5{--c:#56b4e9}.s6{--c:#8c8c8c}.s7{--c:#f0e442}.s8{"
        "--c:var(--fg)}\n"
        ".m{fill:var(--c);stroke:var(--fg);stroke-width:.6;stroke-opacity:.55}.l{stroke:var(--c);stroke-width:1.8;fill:none}.w{"
        "stroke:var(--c);stroke-width:1.2;opacity:.8;fill:none}.b{fill:var(--c);stroke:var(--box);stroke-width:.5}.a{fill:var(--c)}.h{"
        "fill:transparent}.h:hover{fill:var(--fg);fill-opacity:.18}.g{stroke:var(--line);stroke-width:1}.t{stroke:var(--soft);"
        "stroke-width:.7;opacity:.35}.r{stroke:var(--soft);stroke-width:1.4;stroke-dasharray:5 4;fill:none}.d{stroke:var(--c);"
        "stroke-width:2.2;stroke-linecap:round;opacity:.55}.n{fill:var(--soft)}.o{paint-order:stroke;stroke:var(--box);stroke-width:3px;"
        "stroke-linejoin:round}.many .m{stroke-width:.25}.many .m:hover,.m:hover{stroke-width:2.5;stroke-opacity:1}\n");
    text_add_string(out,
        ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.76rem;font-variant-numeric:tabular-nums;width:100%}td,th{"
        "padding:.2rem .32rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}tbody th{text-align:left;"
        "font-weight:500}thead th{white-space:normal;vertical-align:bottom;background:var(--box)}thead th:first-child{text-align:left}"
        "tbody tr:hover{background:var(--box)}small{color:var(--soft)}\n"
        "button{all:unset;cursor:pointer;font-weight:600}button:focus-visible{outline:2px solid var(--edge)}"
        "th[aria-sort=ascending] button::after{content:' \\25B2'}th[aria-sort=descending] button::after{content:' \\25BC'}\n"
        "@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--line:#ccc;--box:#fff;--warn:#fff;--edge:#000}body{"
        "max-width:none;padding:0;font-size:10pt}nav{display:none}.scroll{overflow:visible}table{font-size:6.5pt}td,th{padding:1pt 2pt}thead{"
        "display:table-header-group;break-inside:avoid}tr{break-inside:avoid}h2,h3,.soft{break-after:avoid}.grid{grid-template-columns:1fr 1fr}*{"
        "print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "</style>\n");
}
static void page_script(text_buffer *out) { /* sorts a table by a column: numbers by value, what is none goes last */
    text_add_string(out,
        "<script>\nfor (const b of document.querySelectorAll('table.sort button')) b.onclick = () => {\n"
        "  const h = b.parentNode, body = h.closest('table').tBodies[0], i = h.cellIndex\n"
        "  const way = h.getAttribute('aria-sort') == 'ascending' ? -1 : 1\n"
        "  const value = r => parseFloat(r.cells[i].dataset.v ?? r.cells[i].textContent)\n"
        "  for (const other of h.parentNode.cells) other.removeAttribute('aria-sort')\n"
        "  h.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending')\n"
        "  const rows = [...body.rows].map(r => [value(r), r])\n"
        "  rows.sort((x, y) => isNaN(x[0]) - isNaN(y[0]) || way * (x[0] - y[0]) || 0)\n"
        "  body.append(...rows.map(x => x[1]))\n}\n</script>\n");
}
static void page_head(text_buffer *out, const report *p) {
    size_t samples = 0;
    for (size_t i = 0; i < p->r->count; i++) if (p->r->files[i].count > samples) samples = p->r->files[i].count;
    text_add_string(out,
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                         "<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>vlmprof: ");
    page_text(out, p->r->files[0].task);
    page_add(out, ", %zu configurations</title>\n", p->r->count);
    page_style(out);
    text_add_string(out, "</head><body>\n<header><h1>");
    for (size_t i = 0; i < p->r->group_count && i < 3; i++) {
        if (i) text_add_string(out, ", ");
        page_text(out, p->r->files[p->r->groups[i].first].task);
    }
    if (p->r->group_count > 3) page_add(out, " and %zu more", p->r->group_count - 3);
    page_add(out, "</h1><p class=\"soft\">%zu configuration%s, up to %zu samples each", p->r->count, p->r->count == 1 ? "" : "s", samples);
    if (p->r->files[0].model) { text_add_string(out, ", model "); page_text(out, p->r->files[0].model); }
    if (p->r->files[0].device) { text_add_string(out, ", "); page_text(out, p->r->files[0].device); }
    text_add_string(out, "</p><nav><a href=\"#source\">Provenance</a><a href=\"#findings\">Findings</a><a href=\"#e1\">Where time goes</a>"
                         "<a href=\"#e2\">What it buys</a><a href=\"#e3\">Predicted</a><a href=\"#table\">All configurations</a></nav></header>\n");
}
static void page_e1(text_buffer *out, const report *p) {
    static const char *const kinds[] = {"vision", "prefill", "decode", "decode context"};
    text_add_string(out, "<section id=\"e1\"><h2>Where the time goes</h2>\n<div class=\"grid\">");
    page_stack(out, p);
    page_parts(out, p);
    page_work(out, p, 0);
    page_work(out, p, 1);
    text_add_string(out, "</div>\n");
    if (p->peak_tflops > 0 && p->peak_gbs > 0)
        page_add(out, "<p class=\"soft\">Roofs %s TFLOP/s and %s GB/s: %s.</p>\n", figure_number(p->peak_tflops).text,
                 figure_number(p->peak_gbs).text,
                 p->peaks_are_given ? "as given" : "the best that stages of 1 % of a request or more reach here, not the device's own");
    for (size_t g = 0; g < p->r->group_count; g++) {
        text_add_string(out, "<h3>Scaling: ");
        page_text(out, p->r->files[p->r->groups[g].first].task);
        text_add_string(out,
                        "</h3><p class=\"soft\">Medians with 95 % intervals and fitted lines with their slopes; of many settings a few, from the "
                             "least to the greatest slope, and all others in grey.</p><div class=\"grid\">");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) page_curves_of(out, p, g, kinds[i]);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
static void page_e2(text_buffer *out, const report *p) {
    text_add_string(out, "<section id=\"e2\"><h2>What it buys</h2>\n");
    for (size_t g = 0; g < p->r->group_count; g++) {
        const tradeoff *t = &p->tradeoffs[g];
        text_add_string(out, "<h3>");
        page_text(out, p->r->files[p->r->groups[g].first].task);
        text_add_string(out, "</h3>");
        if (t->reason[0]) { page_element(out, "p", t->reason); continue; }
        text_add_string(out, "<div class=\"grid\">");
        page_front(out, p, t);
        page_coupling(out, p, t);
        text_add_string(out, "</div>\n");
    }
    text_add_string(out, "</section>\n");
}
static void page_write(const report *p, text_buffer *out) {
    page_head(out, p);
    page_list(out, "warnings", "Warnings", &p->warnings);
    page_provenance(out, p);
    page_list(out, "findings", "Findings", &p->findings);
    page_e1(out, p);
    page_e2(out, p);
    page_estimates(out, p);
    page_table(out, p);
    page_script(out);
    text_add_string(out, "</body></html>\n");
}

/* =========================================================================================== compare >>compare
 * Which configuration holds a budget; and whether a change made a model slower or worse. */
/* ---- best */
static const result_group *group_of(const results *r, const char *task, int *code) {
    *code = 0;
    for (size_t i = 0; i < r->group_count; i++) if (task && !strcmp(r->files[r->groups[i].first].task, task)) return &r->groups[i];
    if (!task && r->group_count == 1) return &r->groups[0];
    *code = complain(EXIT_USAGE, task ? "--dataset_name: no result file is of \"%.100s\"; the first is of \"%.100s\""
                                      : "the files are of several data sets: --dataset_name names one, such as %.0s\"%.100s\"",
                     task ? task : "", r->files[0].task);
    return NULL;
}
typedef struct pick { size_t config, runner_up; int has_runner_up; double within, within_low, within_high; size_t within_of; } pick;
/* Wilson's interval of a share at 95 %. */
static void share_interval(size_t hits, size_t count, double *low, double *high) {
    double z = vp_normal_quantile(0.975), n = (double)count, p = (double)hits / n, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    *low = hits ? middle - half : 0;
    *high = hits < count ? middle + half : 1;
}
/* Requests within the budget: each run of T_total, else each sample. */
static void share_within(const results *r, const tradeoff *t, const report_settings *s, pick *k) {
    const result_file *f = &r->files[t->group->paired[k->config]];
    const double *values = t->latency + k->config * t->sample_count;
    size_t hits = 0;
    k->within_of = t->sample_count;
    if (s->axis == METRIC_TOTAL && f->run_at[f->count]) {
        values = f->run_total;
        k->within_of = f->run_at[f->count];
    }
    for (size_t i = 0; i < k->within_of; i++) hits += values[i] <= s->budget;
    k->within = (double)hits / (double)k->within_of;
    share_interval(hits, k->within_of, &k->within_low, &k->within_high);
}
static int pick_best(const results *r, const tradeoff *t, const report_settings *s, pick *k) {
    double *accuracy = (double *)resize(NULL, t->config_count, 2 * sizeof *accuracy), *latency = accuracy + t->config_count;
    size_t *places = (size_t *)resize(NULL, t->config_count, sizeof *places), count = 0;
    uint32_t best;
    int found = vp_pareto_best(t->at_latency, t->at_accuracy, t->config_count, s->budget, s->min_accuracy, &best) == VP_OK;
    memset(k, 0, sizeof *k);
    if (found) {
        k->config = best;
        for (size_t i = 0; i < t->config_count; i++) {
            if (i == best) continue;
            places[count] = i;
            latency[count] = t->at_latency[i];
            accuracy[count++] = t->at_accuracy[i];
        }
        k->has_runner_up = vp_pareto_best(latency, accuracy, count, s->budget, s->min_accuracy, &best) == VP_OK;
        if (k->has_runner_up) k->runner_up = places[best];
        share_within(r, t, s, k);
    }
    free(accuracy);
    free(places);
    return found;
}
static void shell_word(text_buffer *out, const char *word) {
    int plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@+=")];
    if (!plain) text_add_string(out, "'");
    for (const char *c = word; *c; c++) if (*c == '\'') text_add_string(out, "'\\''"); else text_add(out, c, 1);
    if (!plain) text_add_string(out, "'");
}
/* Options of `run` that set a configuration; malloc'ed. */
static char *options_text(const result_file *f) {
    text_buffer out = {NULL, 0, 0};
    char piece[96];
    int is_first_n = 1;
    text_add_string(&out, f->is_synthetic ? "--synthetic " : "--model ");
    shell_word(&out, f->model ? f->model : "DIR");
    if (f->tier) {
        text_add_string(&out, " --tier ");
        shell_word(&out, f->tier);
    } else if (f->target_tokens > 0) {
        snprintf(piece, sizeof piece, " --vision_tokens %lld", (long long)f->target_tokens);
        text_add_string(&out, piece);
    }
    snprintf(piece, sizeof piece, " --top_k %lld", (long long)f->top_k);
    text_add_string(&out, piece);
    for (size_t i = 0; i < f->listed_blocks; i++) is_first_n &= f->blocks[i] == (int32_t)i;
    if (is_first_n) snprintf(piece, sizeof piece, " --num_active_blocks %lld", (long long)f->block_count);
    else snprintf(piece, sizeof piece, " --active_blocks ");
    text_add_string(&out, piece);
    for (size_t i = 0; !is_first_n && i < f->listed_blocks; i++) {
        snprintf(piece, sizeof piece, "%s%d", i ? "," : "", (int)f->blocks[i]);
        text_add_string(&out, piece);
    }
    if (f->weights && strcmp(f->weights, "bf16")) {
        text_add_string(&out, " --weights ");
        shell_word(&out, f->weights);
    }
    if (f->max_new_tokens > 0) {
        snprintf(piece, sizeof piece, " --max_new_tokens %lld", (long long)f->max_new_tokens);
        text_add_string(&out, piece);
    }
    if (f->ignore_eos > 0) text_add_string(&out, " --ignore_eos");
    return out.data;
}
static void print_pick(const results *r, const tradeoff *t, const report_settings *s, const pick *k) {
    const vp_bootstrap_point *p = &t->points[k->config], *second = &t->points[k->runner_up];
    const char *of = percentile_text(s->percentile), *axis = METRIC_KEYS[s->axis];
    char name[80], *words = options_text(&r->files[t->group->paired[k->config]]);
    printf("%s: the best within %s ms (%s of %s) of %s\n", setting_text(&r->files[t->group->paired[k->config]], name), figure_x(s->budget).text, of,
           axis,
           r->files[t->group->first].task);
    printf("  accuracy    %s\n", figure_estimate(1, p->accuracy, p->accuracy_low, p->accuracy_high).text);
    printf("  %-4s        %s ms\n", of, figure_estimate(1, p->latency, p->latency_low, p->latency_high).text);
    printf("  budget      %s %% of %zu %s within it [%s, %s]", figure_percent(k->within).text, k->within_of,
           k->within_of == t->sample_count ? "requests" : "timed requests", figure_percent(k->within_low).text, figure_percent(k->within_high).text);
    if (t->is_corpus) printf("\n");
    else printf("; held by the %s in %s %% of %zu draws; the best in %s %%\n", of, figure_percent(p->within_budget).text, s->resamples,
                figure_percent(p->best).text);
    if (k->has_runner_up)
        printf("  runner-up   %s: accuracy %s, %s %s ms\n", setting_text(&r->files[t->group->paired[k->runner_up]], name),
               figure_estimate(1, second->accuracy, second->accuracy_low, second->accuracy_high).text, of,
               figure_estimate(1, second->latency, second->latency_low, second->latency_high).text);
    else printf("  runner-up   none: no other configuration holds it\n");
    printf("  run it      vlmprof run IMAGE -p TEXT %s\n", words);
    free(words);
}
static void put_picked(vp_json_writer *w, const results *r, const tradeoff *t, size_t config) {
    const vp_bootstrap_point *b = &t->points[config];
    char *words = options_text(&r->files[t->group->paired[config]]);
    vp_json_begin_object(w);
    put_setting_of(w, &r->files[t->group->paired[config]]);
    put_double(w, "accuracy", b->accuracy);
    put_range(w, "accuracy_interval", b->accuracy_low, b->accuracy_high);
    put_double(w, "latency_ms", b->latency);
    put_range(w, "latency_interval", b->latency_low, b->latency_high);
    put_double(w, "probability_within_budget", b->within_budget);
    put_double(w, "probability_best", b->best);
    put_text(w, "options", words);
    vp_json_end_object(w);
    free(words);
}
static int put_pick(const results *r, const tradeoff *t, const report_settings *s, const pick *k) {
    vp_json_writer w;
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-report-best-1");
    put_text(&w, "latency", METRIC_KEYS[s->axis]);
    put_text(&w, "percentile", percentile_text(s->percentile));
    put_double(&w, "budget_ms", s->budget);
    put_double(&w, "min_accuracy", s->min_accuracy);
    put_int(&w, "num_samples", (int64_t)t->sample_count);
    vp_json_key(&w, "best");
    put_picked(&w, r, t, k->config);
    put_double(&w, "requests_within_budget", k->within);
    put_range(&w, "requests_within_budget_interval", k->within_low, k->within_high);
    put_int(&w, "requests", (int64_t)k->within_of);
    vp_json_key(&w, "runner_up");
    if (k->has_runner_up) put_picked(&w, r, t, k->runner_up); else vp_json_null(&w);
    vp_json_end_object(&w);
    if (vp_json_finish(&w) != VP_OK) return complain(EXIT_OUTPUT, "stdout cannot be written");
    putchar('\n');
    return 0;
}
static int none_holds(const results *r, const tradeoff *t, const report_settings *s) {
    size_t fastest = 0;
    char name[80], more[64] = "";
    for (size_t i = 1; i < t->config_count; i++) if (t->at_latency[i] < t->at_latency[fastest]) fastest = i;
    if (isfinite(s->min_accuracy)) snprintf(more, sizeof more, " with an accuracy of %.4g", s->min_accuracy);
    return complain(EXIT_WORK, "best: none of %zu configurations holds %s ms at the %s of %s%s; the fastest is %s: %s ms, accuracy %.4g",
                    t->config_count,
                    figure_x(s->budget).text, percentile_text(s->percentile), METRIC_KEYS[s->axis], more,
                    setting_text(&r->files[t->group->paired[fastest]], name), figure_number(t->at_latency[fastest]).text, t->at_accuracy[fastest]);
}
static int command_best(const options *o) {
    report_settings s = settings_of(o);
    const result_group *g;
    results r;
    tradeoff t;
    pick k;
    int code;
    if (!o->operand_count) return complain(EXIT_USAGE, "best: give a folder of result files; see vlmprof best --help");
    if (!given(o, "budget_ms")) return complain(EXIT_USAGE, "best: --budget_ms MS is needed");
    s.budget = opt(o, "budget_ms")->real;
    if (given(o, "min_accuracy")) s.min_accuracy = opt(o, "min_accuracy")->real;
    if ((code = read_results(&r, o->operands, o->operand_count)) != 0) return code;
    memset(&t, 0, sizeof t);
    g = group_of(&r, text_of(o, "dataset_name"), &code);
    if (!code) {
        trade_off(&t, &r, g, &s);
        if (t.reason[0]) code = complain(EXIT_INPUT, "best: %s", t.reason);
        else if (!pick_best(&r, &t, &s, &k)) code = none_holds(&r, &t, &s);
        else {
            for (size_t i = 0; i < r.notes.count; i++) fprintf(stderr, "vlmprof: %s\n", r.notes.items[i]);
            if (r.files[g->first].is_synthetic) fprintf(stderr, "vlmprof: synthetic weights: latency is real, accuracy is not\n");
            if (given(o, "json")) code = put_pick(&r, &t, &s, &k); else print_pick(&r, &t, &s, &k);
        }
    }
    tradeoff_free(&t);
    results_free(&r);
    return code;
}

/* ---- compare */
enum { COMPARED = 7 }; /* the last is accuracy */
static const int COMPARED_COLUMNS[COMPARED] = {METRIC_TOTAL, METRIC_TTFT, METRIC_VISION, METRIC_PREFILL, METRIC_DECODE, METRIC_PER_TOKEN,
                                               COLUMN_ACCURACY};
static const char *compared_name(int which) { return which + 1 < COMPARED ? METRIC_KEYS[COMPARED_COLUMNS[which]] : "accuracy"; }
typedef struct result_pair { const result_file *a, *b; } result_pair;
typedef struct compared_row { /* one comparison */
    const result_pair *pair;  /* NULL: over all configurations of a task */
    const char *task;
    int which;
    double mean_a, mean_b, deviation; /* of the differences on the scale */
    int is_mcnemar;
    size_t needed;            /* samples; 0: not known */
} compared_row;
typedef struct comparison_job {
    const options *o;
    results a, b;
    result_pair *pairs; size_t pair_count;
    compared_row *rows; vp_comparison *verdicts; size_t count;
    text_list warnings;
    double margin, accuracy_margin, effect;
} comparison_job;
#define COMPARE_ALPHA 0.05

/* What must be alike; the words are those of --force. */
static const char *const ALIKE[] = {"configuration", "device", "clocks", "model", "weights", "data", "seed", "runs", "timing", "metric",
                                    "max_new_tokens",
                                    "blocks"};
enum { ALIKE_COUNT = sizeof ALIKE / sizeof ALIKE[0] };
static int texts_differ(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") != 0; }
static double throttled_share(const result_file *f) {
    return f->throttled_runs > 0 && f->run_at[f->count] ? (double)f->throttled_runs / (double)f->run_at[f->count] : 0;
}
static int differs(const result_file *a, const result_file *b, int what, char out[2][80]) {
    const char *texts[2] = {NULL, NULL};
    int64_t numbers[2] = {-1, -1};
    out[0][0] = out[1][0] = 0;
    switch (what) {
    case 0: setting_text(a, out[0]); setting_text(b, out[1]); return texts_differ(out[0], out[1]);
    case 1: texts[0] = a->device; texts[1] = b->device; break;
    case 2:
        snprintf(out[0], 80, "%.0f %% throttled", 100 * throttled_share(a));
        snprintf(out[1], 80, "%.0f %% throttled", 100 * throttled_share(b));
        return fabs(throttled_share(a) - throttled_share(b)) > 0.05;
    case 3: texts[0] = a->model; texts[1] = b->model; break;
    case 4: texts[0] = a->weights; texts[1] = b->weights; break;
    case 5: texts[0] = a->data_hash ? a->data_hash : a->data; texts[1] = b->data_hash ? b->data_hash : b->data; break;
    case 6: numbers[0] = a->seed; numbers[1] = b->seed; break;
    case 7: numbers[0] = a->runs_per_sample; numbers[1] = b->runs_per_sample; break;
    case 8: texts[0] = a->timing; texts[1] = b->timing; break;
    case 9: texts[0] = a->metric; texts[1] = b->metric; break;
    case 10: numbers[0] = a->max_new_tokens; numbers[1] = b->max_new_tokens; break;
    default:
        snprintf(out[0], 80, "%zu blocks", a->listed_blocks);
        snprintf(out[1], 80, "%zu others", b->listed_blocks);
        return a->listed_blocks && b->listed_blocks
            && (a->listed_blocks != b->listed_blocks || memcmp(a->blocks, b->blocks, a->listed_blocks * sizeof *a->blocks));
    }
    for (int i = 0; i < 2; i++) {
        if (texts[i] || numbers[i] < 0) snprintf(out[i], 80, "%.60s", texts[i] ? texts[i] : "not said");
        else snprintf(out[i], 80, "%lld", (long long)numbers[i]);
    }
    return texts_differ(texts[0], texts[1]) || numbers[0] != numbers[1];
}
static int is_forced(const options *o, const char *what) {
    const option_value *v = opt(o, "force");
    for (size_t i = 0; i < v->count; i++) if (!strcmp(v->items[i], what) || !strcmp(v->items[i], "all")) return 1;
    return 0;
}
static int check_alike(comparison_job *j) {
    text_buffer refused = {NULL, 0, 0}, words = {NULL, 0, 0};
    int code = 0;
    for (int what = 0; what < ALIKE_COUNT; what++) {
        char values[2][80], line[240];
        size_t i = 0;
        while (i < j->pair_count && !differs(j->pairs[i].a, j->pairs[i].b, what, values)) i++;
        if (i == j->pair_count) continue;
        snprintf(line, sizeof line, "%s (%s / %s)", ALIKE[what], values[0], values[1]);
        if (is_forced(j->o, ALIKE[what])) text_list_add(&j->warnings, "they differ in %s: compared all the same", line);
        else {
            text_add_string(&refused, refused.bytes ? ", " : "");
            text_add_string(&refused, line);
            text_add_string(&words, " ");
            text_add_string(&words, ALIKE[what]);
        }
    }
    if (refused.bytes)
        code = complain(EXIT_USAGE, "compare: not comparable: %.600s; --force%.200s compares them all the same", refused.data, words.data);
    free(refused.data);
    free(words.data);
    return code;
}
/* A's configurations with B's; 0 or an exit code. */
static int pair_files(comparison_job *j) {
    size_t only_a = 0;
    j->pairs = (result_pair *)zeroed(j->a.count, sizeof *j->pairs);
    for (size_t i = 0; i < j->a.count; i++) {
        const result_file *a = &j->a.files[i];
        size_t k = 0;
        while (k < j->b.count && compare_settings(a, &j->b.files[k])) k++;
        if (k == j->b.count && (j->a.count > 1 || j->b.count > 1)) { only_a++; continue; }
        j->pairs[j->pair_count].a = a;
        j->pairs[j->pair_count++].b = &j->b.files[k < j->b.count ? k : 0]; /* a file against a file: whatever they are */
    }
    if (!j->pair_count) return complain(EXIT_USAGE, "compare: %s and %s have no configuration in common", j->o->operands[0], j->o->operands[1]);
    if (only_a) text_list_add(&j->warnings, "%zu configurations are only in %s", only_a, j->o->operands[0]);
    if (j->b.count > j->pair_count) text_list_add(&j->warnings, "%zu configurations are only in %s", j->b.count - j->pair_count, j->o->operands[1]);
    return 0;
}

/* Values of one column of a pair, sample by sample; latencies of 0 are of stages that did not run. */
static size_t pair_values(const result_pair *p, int which, double *x, double *y, int64_t *ids) {
    int is_latency = which + 1 < COMPARED, c = COMPARED_COLUMNS[which];
    size_t count = 0;
    for (size_t i = 0, k = 0; i < p->a->count && k < p->b->count;) {
        if (p->a->ids[i] != p->b->ids[k]) { if (p->a->ids[i] < p->b->ids[k]) i++; else k++; continue; }
        x[count] = result_at(p->a, c, i);
        y[count] = result_at(p->b, c, k);
        if (ids) ids[count] = p->a->ids[i];
        count += isfinite(x[count]) && isfinite(y[count]) && (!is_latency || (x[count] > 0 && y[count] > 0));
        i++;
        k++;
    }
    return count;
}
static void add_comparison(comparison_job *j, const compared_row *row, const double *x, const double *y, size_t count) {
    int is_latency = row->which + 1 < COMPARED, is_binary = 1;
    double margin = is_latency ? j->margin : j->accuracy_margin, *d;
    vp_comparison c;
    compared_row r = *row;
    uint64_t only_x = 0, only_y = 0;
    if (vp_compare_paired(x, y, count, is_latency ? VP_SCALE_LOG : VP_SCALE_ABSOLUTE, margin, COMPARE_ALPHA, &c) != VP_OK) return; /* too few */
    d = (double *)resize(NULL, count, sizeof *d);
    for (size_t i = 0; i < count; i++) {
        d[i] = is_latency ? log(y[i] / x[i]) : y[i] - x[i];
        is_binary &= (!(x[i] > 0) || !(x[i] < 1)) && (!(y[i] > 0) || !(y[i] < 1)) && x[i] >= 0 && x[i] <= 1 && y[i] >= 0 && y[i] <= 1;
        only_x += x[i] > y[i];
        only_y += y[i] > x[i];
    }
    r.deviation = vp_statistics_std(d, count) * sqrt((double)count / ((double)count - 1));
    r.mean_a = vp_statistics_mean(x, count);
    r.mean_b = vp_statistics_mean(y, count);
    if (!is_latency && is_binary) {
        r.is_mcnemar = 1;
        c.p_difference = vp_mcnemar(only_x, only_y);
    }
    free(d);
    j->rows = (compared_row *)resize(j->rows, j->count + 1, sizeof *j->rows);
    j->verdicts = (vp_comparison *)resize(j->verdicts, j->count + 1, sizeof *j->verdicts);
    j->rows[j->count] = r;
    j->verdicts[j->count++] = c;
}
/* All configurations of a task together: a sample counts once, with the mean of its logarithms of B / A, or of its differences. */
static void compare_overall(comparison_job *j, size_t first, size_t last, int which) {
    int is_latency = which + 1 < COMPARED;
    size_t most = 0, filled = 0, count = 0;
    double *x, *y, *sum_x, *sum_y;
    int64_t *ids;
    row_order *order;
    compared_row row;
    for (size_t p = first; p < last; p++) most += j->pairs[p].a->count;
    x = (double *)resize(NULL, most, 4 * sizeof *x);
    y = x + most; sum_x = y + most; sum_y = sum_x + most;
    ids = (int64_t *)resize(NULL, most, sizeof *ids);
    order = (row_order *)resize(NULL, most, sizeof *order);
    for (size_t p = first; p < last; p++) filled += pair_values(&j->pairs[p], which, x + filled, y + filled, ids + filled);
    for (size_t i = 0; i < filled; i++) { order[i].id = ids[i]; order[i].at = i; }
    qsort(order, filled, sizeof *order, by_row_id);
    for (size_t i = 0, n; i < filled; i += n) {
        double a = 0, b = 0;
        for (n = 0; i + n < filled && order[i + n].id == order[i].id; n++) {
            a += is_latency ? log(x[order[i + n].at]) : x[order[i + n].at];
            b += is_latency ? log(y[order[i + n].at]) : y[order[i + n].at];
        }
        sum_x[count] = is_latency ? exp(a / (double)n) : a / (double)n;
        sum_y[count++] = is_latency ? exp(b / (double)n) : b / (double)n;
    }
    memset(&row, 0, sizeof row);
    row.task = j->pairs[first].a->task;
    row.which = which;
    add_comparison(j, &row, sum_x, sum_y, count);
    free(x);
    free(ids);
    free(order);
}
static void compare_pair(comparison_job *j, const result_pair *p) {
    size_t most = p->a->count < p->b->count ? p->a->count : p->b->count;
    double *x = (double *)resize(NULL, most + 1, 2 * sizeof *x), *y = x + most + 1;
    for (int which = 0; which < COMPARED; which++) {
        compared_row row;
        memset(&row, 0, sizeof row);
        row.pair = p;
        row.task = p->a->task;
        row.which = which;
        add_comparison(j, &row, x, y, pair_values(p, which, x, y, NULL));
    }
    free(x);
}
static void warn_of_pairs(comparison_job *j) {
    size_t missing = 0, pairs = 0, lengths = 0, synthetic = 0;
    for (size_t p = 0; p < j->pair_count; p++) {
        const result_file *a = j->pairs[p].a, *b = j->pairs[p].b;
        size_t both = 0;
        for (size_t i = 0; i < a->count; i++) {
            size_t k = result_row(b, a->ids[i]);
            double x = result_at(a, COLUMN_OUTPUT_TOKENS, i), y;
            if (k == b->count) continue;
            y = result_at(b, COLUMN_OUTPUT_TOKENS, k);
            both++;
            lengths += x < y || x > y;
        }
        pairs += both;
        missing += a->count + b->count - 2 * both;
        synthetic += a->is_synthetic || b->is_synthetic;
    }
    if (synthetic) text_list_add(&j->warnings, "synthetic weights: latency is real, accuracy is not");
    if (missing) text_list_add(&j->warnings, "%zu samples are measured on one side only: left out; %zu pairs are compared", missing, pairs);
    if (lengths) text_list_add(&j->warnings,
                               "answers differ in length in %zu of %zu pairs: T_LLM_decode and T_total compare different work, see "
                               "T_decode_per_token",
                               lengths, pairs);
}
static int compare_all(comparison_job *j) {
    uint32_t *order;
    double *values;
    for (size_t first = 0, last; first < j->pair_count; first = last) {
        for (last = first + 1; last < j->pair_count && !strcmp(j->pairs[last].a->task, j->pairs[first].a->task);) last++;
        for (int which = 0; which < COMPARED && last - first > 1; which++) compare_overall(j, first, last, which);
        for (size_t p = first; p < last; p++) compare_pair(j, &j->pairs[p]);
    }
    if (!j->count) return complain(EXIT_USAGE, "compare: the two sides have fewer than 2 samples in common");
    order = (uint32_t *)resize(NULL, j->count, sizeof *order);
    values = (double *)resize(NULL, j->count, sizeof *values);
    if (vp_compare_adjust(j->verdicts, j->count, VP_ADJUST_HOLM, COMPARE_ALPHA, order, values) != VP_OK) abort(); /* made by vp_compare_paired */
    for (size_t i = 0; i < j->count; i++) {
        compared_row *r = &j->rows[i];
        double margin = r->which + 1 < COMPARED ? j->margin : j->accuracy_margin, effect = r->which + 1 < COMPARED ? j->effect : 2 * margin;
        if (vp_compare_plan(r->deviation, margin, effect, COMPARE_ALPHA / (double)j->count, 0.95, &r->needed) != VP_OK) r->needed = 0;
    }
    free(order);
    free(values);
    return 0;
}
/* FASTER is "the second is lower": of an accuracy that is worse. */
static const char *verdict_text(const compared_row *r, const vp_comparison *c) {
    if (r->which + 1 < COMPARED || c->verdict == VP_VERDICT_SAME || c->verdict == VP_VERDICT_UNSURE) return vp_verdict_name(c->verdict);
    return c->verdict == VP_VERDICT_FASTER ? "LOWER" : "HIGHER";
}
static int is_worse(const compared_row *r, const vp_comparison *c) {
    return c->verdict == (r->which + 1 < COMPARED ? VP_VERDICT_SLOWER : VP_VERDICT_FASTER);
}
static void write_comparison(document *d, const comparison_job *j) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "B %s against A %s: %zu configurations", j->o->operands[1], j->o->operands[0], j->pair_count);
    for (size_t i = 0; i < j->warnings.count; i++) document_text(d, BLOCK_LINE, "warning: %s", j->warnings.items[i]);
    document_text(d, BLOCK_LINE,
                  "differences paired by sample, B less A, each with its 95 %% interval; SAME: within +-%.3g %%, of accuracy +-%.3g points",
                  100 * j->margin,
                  100 * j->accuracy_margin);
    document_text(d, BLOCK_LINE, "verdicts hold for all %zu comparisons together (Holm, 5 %%); accuracy of 0/1 scores by McNemar's test", j->count);
    t = document_table(d, "configuration|of|A|B|difference|unit|pairs|verdict");
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        const vp_comparison *c = &j->verdicts[i];
        char name[80], full[160];
        if (r->pair) setting_text(r->pair->a, name); else snprintf(name, sizeof name, "all");
        if (j->a.group_count > 1) snprintf(full, sizeof full, "%.70s %s", r->task, name); else snprintf(full, sizeof full, "%s", name);
        text_list_add(t, "%s", full);
        text_list_add(t, "%s", compared_name(r->which));
        text_list_add(t, "%s", figure_number(r->mean_a).text);
        text_list_add(t, "%s", figure_number(r->mean_b).text);
        text_list_add(t, "%+.2f [%+.2f, %+.2f]", 100 * c->estimate, 100 * c->low, 100 * c->high);
        text_list_add(t, "%s", r->which + 1 < COMPARED ? "%" : "points");
        text_list_add(t, "%zu", c->count);
        text_list_add(t, "%s", verdict_text(r, c));
    }
}
static void write_plan(document *d, const comparison_job *j) {
    text_list *t;
    document_text(d, BLOCK_HEADING, "samples that would do");
    document_text(d, BLOCK_LINE,
                  "so that, 95 times of 100, SAME is said when nothing changed and a change of %.3g %% (accuracy: %.3g points) is "
                  "found,", 100 * j->effect,
                  200 * j->accuracy_margin);
    document_text(d, BLOCK_LINE, "by the spread of these differences, with as many comparisons");
    t = document_table(d, "configuration|of|spread|needed|there are");
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        char name[80];
        text_list_add(t, "%s", r->pair ? setting_text(r->pair->a, name) : "all");
        text_list_add(t, "%s", compared_name(r->which));
        text_list_add(t, "%.3f %s", 100 * r->deviation, r->which + 1 < COMPARED ? "%" : "points");
        if (r->needed) text_list_add(t, "%zu", r->needed); else text_list_add(t, "-");
        text_list_add(t, "%zu", j->verdicts[i].count);
    }
}
static void put_comparisons(vp_json_writer *w, const comparison_job *j, int worse) {
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-report-compare-1");
    put_text(w, "a", j->o->operands[0]);
    put_text(w, "b", j->o->operands[1]);
    put_list(w, "warnings", &j->warnings);
    put_double(w, "margin", j->margin);
    put_double(w, "accuracy_margin", j->accuracy_margin);
    put_double(w, "alpha", COMPARE_ALPHA);
    put_text(w, "adjustment", "holm");
    put_bool(w, "worse", worse);
    vp_json_key(w, "comparisons");
    vp_json_begin_array(w);
    for (size_t i = 0; i < j->count; i++) {
        const compared_row *r = &j->rows[i];
        const vp_comparison *c = &j->verdicts[i];
        int is_latency = r->which + 1 < COMPARED;
        vp_json_begin_object(w);
        put_text(w, "dataset_name", r->task);
        put_text(w, "of", compared_name(r->which));
        vp_json_key(w, "configuration"); /* null: all together */
        if (r->pair) {
            vp_json_begin_object(w);
            put_setting_of(w, r->pair->a);
            vp_json_end_object(w);
        } else vp_json_null(w);
        put_text(w, "scale", is_latency ? "log" : "absolute");
        put_text(w, "test", r->is_mcnemar ? "mcnemar" : "paired t");
        put_double(w, "a", r->mean_a);
        put_double(w, "b", r->mean_b);
        put_int(w, "pairs", (int64_t)c->count);
        put_double(w, "difference", c->estimate);
        put_range(w, "difference_interval", c->low, c->high);
        put_double(w, "p_difference", c->p_difference);
        put_double(w, "p_equivalence", c->p_equivalence);
        put_text(w, "verdict", verdict_text(r, c));
        vp_json_key(w, "samples_needed");
        if (r->needed) vp_json_int(w, (int64_t)r->needed); else vp_json_null(w);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    vp_json_end_object(w);
}
static int tell_comparison(const comparison_job *j) {
    text_buffer out = {NULL, 0, 0};
    size_t worse = 0, unsure = 0;
    int code;
    for (size_t i = 0; i < j->count; i++) {
        worse += (size_t)is_worse(&j->rows[i], &j->verdicts[i]);
        unsure += j->verdicts[i].verdict == VP_VERDICT_UNSURE;
    }
    if (given(j->o, "json")) {
        vp_json_writer w;
        vp_json_writer_init_sink(&w, text_sink, &out, 1);
        put_comparisons(&w, j, worse > 0);
        if (vp_json_finish(&w) != VP_OK) abort();
        text_add_string(&out, "\n");
    } else {
        document d = {NULL, 0};
        write_comparison(&d, j);
        if (given(j->o, "plan")) write_plan(&d, j);
        document_text(&d, BLOCK_HEADING, "%s: %zu of %zu comparisons are worse, %zu are unsure", worse ? "WORSE" : "not worse", worse, j->count,
                      unsure);
        document_print(&d, 0, &out);
        document_free(&d);
    }
    code = print_whole(&out);
    free(out.data);
    return code ? code : worse ? EXIT_WORK : 0;
}
static int check_force(const options *o) {
    const option_value *v = opt(o, "force");
    for (size_t i = 0; i < v->count; i++) {
        int known = !strcmp(v->items[i], "all");
        for (int k = 0; k < ALIKE_COUNT; k++) known |= !strcmp(v->items[i], ALIKE[k]);
        if (known) continue;
        return complain(EXIT_USAGE, "--force: \"%.60s\" is none of: all configuration device clocks model weights data seed runs timing metric "
                        "max_new_tokens blocks", v->items[i]);
    }
    return 0;
}
static int command_compare(const options *o) {
    comparison_job j;
    int code;
    if (o->operand_count != 2) return complain(EXIT_USAGE,
                                               "compare: give two folders or files of results, before and after; see vlmprof compare --help");
    if ((code = check_force(o)) != 0) return code;
    memset(&j, 0, sizeof j);
    j.o = o;
    j.margin = opt(o, "margin")->real / 100;
    j.accuracy_margin = opt(o, "accuracy_margin")->real / 100;
    j.effect = opt(o, "effect")->real / 100;
    if (!(j.margin > 0) || !(j.accuracy_margin > 0)) return complain(EXIT_USAGE, "compare: a margin of 0 would make nothing the same: give more");
    if (!(j.effect > j.margin)) {
        if (given(o, "effect") || given(o, "plan")) return complain(EXIT_USAGE, "compare: --effect must be more than --margin");
        j.effect = 1.5 * j.margin; /* of the JSON's samples_needed */
    }
    code = read_results(&j.a, o->operands, 1);
    if (!code) code = read_results(&j.b, o->operands + 1, 1);
    for (int side = 0; side < 2 && !code; side++) {
        const results *r = side ? &j.b : &j.a;
        for (size_t i = 0; i < r->notes.count; i++) text_list_add(&j.warnings, "%s", r->notes.items[i]);
    }
    if (!code) code = pair_files(&j);
    if (!code) code = check_alike(&j);
    if (!code) {
        warn_of_pairs(&j);
        code = compare_all(&j);
    }
    if (!code) code = tell_comparison(&j);
    results_free(&j.a);
    results_free(&j.b);
    text_list_free(&j.warnings);
    free(j.pairs);
    free(j.rows);
    free(j.verdicts);
    return code;
}

/* =========================================================================================== profile >>profile
 * A request operation by operation: the engine's launch records, its stages and the host's ranges go into one table (vp_ops) and into a trace. Rows
 * nest: a step is its ranges, the engine's range is its stages, a stage is its launches; self is what is not within. So the self times of a step's
 * rows add up to it, and the self time of a stage is its idle time. Times of this mode cost time themselves (--cost): they never enter the
 * statistics of stages. */
enum { PROFILE_RANGES = 64, PROFILE_LAUNCHES_MOST = 1 << 20, PROFILE_ROWS_MOST = 1 << 17, COST_MODES = 4 };
static const char *const STAGE_RANGES[VP_STAGE_COUNT] = {
#define STAGE_RANGE(name, text) "stage::" text,
    VP_STAGES(STAGE_RANGE)
#undef STAGE_RANGE
};
static const struct { const char *word; uint32_t flag; } GROUPS[] = {
    {"none", 0}, {"shape", VP_OPS_BY_SHAPE}, {"stage", VP_OPS_BY_STAGE}, {"part", VP_OPS_BY_PART}, {"block", VP_OPS_BY_BLOCK},
    {"step", VP_OPS_BY_STEP}, {"place", VP_OPS_BY_PLACE}};

typedef struct profiler {
    const options *o;
    session *s;
    int on_gpu;
    vp_launch *launches; int64_t launch_capacity;
    vp_span *spans; int64_t span_capacity;              /* CPU, while a trace is written */
    vp_range records[PROFILE_RANGES]; vp_ranges ranges;
    vp_op *rows; vp_ops ops;
    int64_t steps, lost_launches;                       /* recorded; launches that found no room */
    double stage_ns[VP_STAGE_COUNT], op_ns[VP_STAGE_COUNT], total_ns; /* on the device, sums over the recorded steps */
    int64_t negative_idle;                              /* stages whose launches took longer than they did */
    vp_trace *trace; char *trace_path;                  /* that is being written */
    text_list notes;                                    /* for stderr, when all is done */
    int64_t traces;                                     /* that were closed */
} profiler;

static uint32_t groups_of(const options *o) { /* --group_by, checked before */
    const option_value *v = opt(o, "group_by");
    uint32_t flags = given(o, "group_by_input_shape") ? (uint32_t)VP_OPS_BY_SHAPE : 0;
    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < sizeof GROUPS / sizeof *GROUPS; k++) if (!strcmp(v->items[i], GROUPS[k].word)) flags |= GROUPS[k].flag;
    return flags;
}
/* more than a request makes, where that is below a million */
static int64_t launch_bound(const model *m, int32_t new_tokens) {
    int64_t blocks = (int64_t)m->config.block_count + 2;
    int64_t most = 64 * (blocks + m->config.vit_block_count + 16) + (int64_t)new_tokens * blocks * 48;
    return most < PROFILE_LAUNCHES_MOST ? most : (int64_t)PROFILE_LAUNCHES_MOST;
}
static int profiler_open(profiler *p, const options *o, session *s, int32_t new_tokens, uint32_t group_by, int32_t stack_n) {
    int64_t row_count;
    vp_ceilings ceilings;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    memset(p, 0, sizeof *p);
    p->o = o;
    p->s = s;
    p->on_gpu = gpu_of(s->engine) >= 0;
    p->launch_capacity = launch_bound(s->m, new_tokens);
    p->launches = (vp_launch *)resize(NULL, (size_t)p->launch_capacity, sizeof *p->launches);
    row_count = p->launch_capacity + 64 < PROFILE_ROWS_MOST ? p->launch_capacity + 64 : (int64_t)PROFILE_ROWS_MOST;
    p->rows = (vp_op *)resize(NULL, (size_t)row_count, sizeof *p->rows);
    vp_ops_init(&p->ops, p->rows, row_count, group_by, stack_n);
    p->ops.clock = p->on_gpu ? VP_OPS_DEVICE : VP_OPS_HOST;
    p->ops.device_name = p->on_gpu ? "CUDA" : NULL;
    vp_ranges_init(&p->ranges, p->records, PROFILE_RANGES, 0, "main", vp_engine_range_hooks());
    if ((r = vp_engine_ceilings(s->engine, &ceilings, &error)) != VP_OK) return complain_result(exit_code_of(r), "ceilings", r, &error);
    p->ops.ceilings.bytes_per_s = ceilings.bytes_per_s;
    p->ops.ceilings.flops_per_s = ceilings.flops_per_s;
    return 0;
}
static void profiler_free(profiler *p) {
    vp_trace_free(p->trace);
    free(p->trace_path);
    free(p->launches);
    free(p->spans);
    free(p->rows);
    texts_free(p->notes.items, p->notes.count);
}

/* ---- one request into the table */
static void stack_of(vp_op *op, int stage, const char *part) { /* innermost first, behind the operation's own place */
    if (part) op->stack[op->stack_count++].name = part;
    op->stack[op->stack_count++].name = STAGE_RANGES[stage];
    op->stack[op->stack_count++].name = "engine";
    op->stack[op->stack_count++].name = "request";
}
static vp_result add_launch(profiler *p, const vp_launch *l) {
    vp_op op = vp_op_default();
    op.name = l->name;
    op.stage = vp_stage_name((vp_stage)l->stage);
    op.part = vp_part_name((vp_part)l->part);
    op.block = l->block < 0 ? (int32_t)VP_OP_NONE : l->block;
    op.step = l->step > 0 ? l->step : (int32_t)VP_OP_NONE;
    op.file = op.stack[0].file = "vlmprof_kernels.cu";
    op.line = op.stack[0].line = l->line;
    op.stack[0].name = l->name;
    op.stack_count = 1;
    stack_of(&op, l->stage, op.part);
    memcpy(op.shape, l->shape, sizeof op.shape);
    op.dimensions = l->dimensions;
    op.host_total_ns = op.host_self_ns = l->host_ns;
    if (p->on_gpu) op.device_total_ns = op.device_self_ns = l->ns;
    op.flops = (int64_t)l->flops;
    op.bytes = (int64_t)l->bytes;
    return vp_ops_add(&p->ops, &op);
}
/* The stages of a pass as rows around its launches; *engine_ns gets their time on the host. */
static vp_result add_stages(profiler *p, const timing *t, int64_t *engine_ns) {
    int64_t host_ns[VP_STAGE_COUNT] = {0}, device_ns[VP_STAGE_COUNT] = {0};
    vp_result r = VP_OK;
    for (int64_t i = 0; i < t->launch_count && i < p->launch_capacity; i++) {
        host_ns[p->launches[i].stage] += p->launches[i].host_ns;
        device_ns[p->launches[i].stage] += p->launches[i].ns;
    }
    *engine_ns = 0;
    for (int i = 0; i < VP_STAGE_COUNT && r == VP_OK; i++) {
        vp_op op = vp_op_default();
        if (!t->times.ran[i] || is_host_stage(i)) continue;
        p->stage_ns[i] += (double)t->times.device_ns[i];
        p->op_ns[i] += (double)device_ns[i];
        p->negative_idle += device_ns[i] > t->times.device_ns[i];
        *engine_ns += t->times.wall_ns[i];
        op.name = STAGE_RANGES[i];
        op.stage = vp_stage_name((vp_stage)i);
        stack_of(&op, i, NULL);
        op.host_total_ns = t->times.wall_ns[i];
        op.host_self_ns = t->times.wall_ns[i] > host_ns[i] ? t->times.wall_ns[i] - host_ns[i] : 0;
        if (p->on_gpu) op.device_total_ns = device_ns[i]; /* as torch: an annotation has no device time of its own */
        r = vp_ops_add(&p->ops, &op);
    }
    return r;
}
static vp_result add_pass(profiler *p, const timing *t, int64_t step_ns) {
    vp_op op = vp_op_default();
    int64_t engine_ns = 0, within_ns = 0;
    vp_result r = add_stages(p, t, &engine_ns);
    for (int64_t i = 0; i < t->launch_count && r == VP_OK; i++) {
        if (i < p->launch_capacity) r = add_launch(p, &p->launches[i]); else p->lost_launches++;
        if (r == VP_ERR_CAPACITY) r = VP_OK; /* counted by the table */
    }
    for (int64_t i = 0; i < p->ranges.count; i++) {
        if (!strcmp(p->records[i].name, "engine")) p->records[i].children_ns += engine_ns;
        if (!p->records[i].depth) within_ns += p->records[i].end_ns - p->records[i].begin_ns;
    }
    if (r == VP_OK) r = vp_ops_add_ranges(&p->ops, &p->ranges);
    op.name = "ProfilerStep*";
    op.host_total_ns = step_ns;
    op.host_self_ns = step_ns - within_ns;
    if (r == VP_OK) r = vp_ops_add(&p->ops, &op);
    p->total_ns += (double)step_ns;
    p->steps++;
    return r;
}

/* ---- traces */
/* The file of the cycle that begins: --trace FILE or --chrome_trace for the first one, and DIR/profiler_traces/<worker>.<ns>.pt.trace.json for each.
 * *path: NULL where none is wanted, and with a notice where a file of that name was written already. 0 or an exit code. */
static int trace_path_of(profiler *p, const char *worker, char **path) {
    const options *o = p->o;
    const char *file = o->command == RUN ? text_of(o, "trace") : NULL, *folder = text_of(o, "output_dir");
    char name[700], *traces;
    struct timespec now;
    int code;
    *path = NULL;
    if ((!file && !folder) || (o->command == SWEEP && !given(o, "trace"))) return 0;
    if (file || (o->command == RUN && given(o, "chrome_trace"))) {
        *path = file ? copy_text(file, strlen(file)) : join_path(folder, VP_TRACE_NAME);
        if (!p->traces) return file ? 0 : make_folder(folder);
        text_list_add(&p->notes, "%s is saved already: the traces of later cycles are left out; --output_dir alone gives each cycle its own file",
                      *path);
        free(*path);
        *path = NULL;
        return 0;
    }
    traces = join_path(folder, "profiler_traces");
    timespec_get(&now, TIME_UTC);
    code = make_folder(traces);
    if (!code && vp_trace_file_name(worker, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, name, sizeof name) != VP_OK)
        code = complain(EXIT_OUTPUT, "%s: no name for a trace can be made", traces);
    if (!code) *path = join_path(traces, name);
    free(traces);
    return code;
}
static int trace_failed(const profiler *p, vp_result r, const vp_error *error) {
    if (r == VP_OK || r == VP_ERR_CAPACITY) return 0; /* full: told when it is closed */
    return complain_result(exit_code_of(r) == EXIT_USAGE ? EXIT_WORK : exit_code_of(r), p->trace_path, r, error);
}
/* What the engine holds stands at the start of a trace as one change of memory for each block. */
static int trace_memory_blocks(profiler *p, int64_t at_ns) {
    uint64_t sums[2] = {0, 0};
    vp_memory_block b;
    vp_error error = {VP_OK, -1, "", ""};
    int code = 0;
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b) && !code; i++) {
        int on_device = p->on_gpu && b.on_device;
        sums[on_device] += b.bytes;
        code = trace_failed(p, vp_trace_memory(p->trace, at_ns, on_device ? 0 : -1, (uint64_t)i + 1, (int64_t)b.bytes, sums[on_device],
                                               sums[on_device], &error), &error);
    }
    return code;
}
static int trace_begin(profiler *p, const char *path) {
    vp_trace_options t = vp_trace_options_default();
    vp_trace_device device;
    vp_device_info gpu;
    vp_rank rank;
    vp_error error = {VP_OK, -1, "", ""};
    const vp_trace_metadata metadata[] = {{"vlmprof_version", VLMPROF_VERSION}, {"model", p->s->m->name}, {"device", vp_engine_device(p->s->engine)}};
    vp_result r;
    free(p->trace_path);
    p->trace_path = copy_text(path, strlen(path));
    t.path = path;
    t.max_bytes = (uint64_t)number_of(p->o, "trace_max_bytes");
    t.record_shapes = given(p->o, "record_shapes");
    t.with_stack = given(p->o, "with_stack");
    t.profile_memory = given(p->o, "profile_memory");
    if (vp_rank_from_environment(environment, NULL, &rank, NULL) == VP_OK) {
        t.rank = rank.rank;
        t.world_size = rank.world_size;
    }
    t.metadata = metadata;
    t.metadata_count = 3;
    if (p->on_gpu && vp_device_describe(gpu_of(p->s->engine), &gpu, &error) == VP_OK) {
        device = vp_trace_device_of(0, gpu.name, gpu.memory_bytes, gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count);
        t.devices = &device;
        t.device_count = 1;
        t.emulated = strstr(gpu.name, "emulated") != NULL;
    }
    if (!p->on_gpu && !p->spans) { /* 8 threads of each launch: what is more is left out */
        p->span_capacity = p->launch_capacity * 8;
        p->spans = (vp_span *)resize(NULL, (size_t)p->span_capacity, sizeof *p->spans);
    }
    r = vp_trace_open(&t, &p->trace, &error);
    if (r != VP_OK) return complain_result(r == VP_ERR_RANGE ? EXIT_USAGE : exit_code_of(r), path, r, &error);
    return given(p->o, "profile_memory") ? trace_memory_blocks(p, vp_clock_ns()) : 0;
}
static int trace_pass(profiler *p, const timing *t, int64_t step, int64_t begin_ns, int64_t end_ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_stage_times times = t->times;
    vp_trace_run run;
    vp_result r;
    int code;
    memset(&run, 0, sizeof run);
    times.ran[VP_STAGE_PREPROCESS] = times.ran[VP_STAGE_DETOK] = 0; /* they are ranges */
    run.begin_ns = t->engine_begin_ns;
    run.device = p->on_gpu ? 0 : -1;
    run.launches = p->launches;
    run.launch_count = t->launch_count < p->launch_capacity ? t->launch_count : p->launch_capacity;
    run.spans = p->spans;
    run.span_count = t->span_count < p->span_capacity ? t->span_count : p->span_capacity;
    run.times = &times;
    run.step_ns = t->step_ns;
    run.step_count = t->token_count > 1 ? t->token_count - 1 : 0;
    if ((code = trace_failed(p, vp_trace_step_begin(p->trace, step, begin_ns, &error), &error)) != 0) return code;
    if ((code = trace_failed(p, vp_trace_ranges(p->trace, &p->ranges, &error), &error)) != 0) return code;
    if ((code = trace_failed(p, vp_trace_launches(p->trace, &run, &error), &error)) != 0) return code;
    r = vp_trace_step_end(p->trace, end_ns, &error);
    return r == VP_ERR_STATE ? 0 : trace_failed(p, r, &error); /* the step's begin found no room */
}
static int trace_end(profiler *p) {
    vp_trace_info info;
    vp_error error = {VP_OK, -1, "", ""};
    vp_result r;
    int code = 0;
    if (!p->trace) return 0;
    r = vp_trace_close(p->trace, &info, &error);
    if (r != VP_OK) code = complain_result(exit_code_of(r), p->trace_path, r, &error);
    else if (info.truncated)
        text_list_add(&p->notes, "%s: recording stopped at --trace_max_bytes %lld: %lld steps and %lld launches are left out", p->trace_path,
                      (long long)number_of(p->o, "trace_max_bytes"), (long long)info.dropped_steps, (long long)info.dropped_launches);
    if (r == VP_OK) text_list_add(&p->notes, "trace written: %s (%lld events, %llu bytes)", p->trace_path, (long long)info.events,
                                  (unsigned long long)info.bytes);
    p->traces += r == VP_OK;
    vp_trace_free(p->trace);
    p->trace = NULL;
    return code;
}

/* ---- one pass of the schedule's steps */
/* Of a run: the image is decoded and the prompt tokenized again, within the step. Else NULL. */
typedef struct profile_source { sample *a; vp_image *image; } profile_source;
static int prepare_pass(profiler *p, const profile_source *from, work *k) {
    char reason[LINE_BYTES];
    int code = 0;
    if (!from) return 0;
    if (k->layout) {
        vp_range_payload payload;
        memset(&payload, 0, sizeof payload);
        vp_image_free(from->image);
        from->image->rgb = NULL;
        VP_RANGE(&p->ranges, "load image");
        if ((code = load_image(from->a->image_path, from->image, reason, sizeof reason)) != 0) complain(code, "%s", reason);
        else if (from->image->width_px != k->layout->width_px || from->image->height_px != k->layout->height_px)
            code = complain(EXIT_INPUT, "%s: the image has changed", from->a->image_path);
        payload.memory_bytes = payload.bytes = (int64_t)k->layout->width_px * k->layout->height_px * 3;
        vp_range_set(&p->ranges, &payload);
        vp_range_end(&p->ranges);
    }
    if (code) return code;
    VP_RANGE(&p->ranges, "tokenize");
    free(from->a->text_ids);
    from->a->text_ids = NULL;
    code = tokenize_prompt(p->s->m, from->a);
    k->text_ids = from->a->text_ids;
    vp_range_end(&p->ranges);
    return code;
}
/* One request with every launch timed. record: into the table and, where one is open, into the trace; else it only warms up. */
static int profile_pass(profiler *p, work *base, const profile_source *from, timing *t, int64_t step, int record) {
    vp_error error = {VP_OK, -1, "", ""};
    work k = *base;
    int64_t begin_ns, end_ns;
    vp_result r;
    int code;
    vp_ranges_clear(&p->ranges);
    k.timing = VP_TIMING_KERNEL;
    k.launches = p->launches;
    k.launch_capacity = p->launch_capacity;
    if (p->trace) {
        k.spans = p->spans;
        k.span_capacity = p->span_capacity;
    }
    k.ranges = &p->ranges;
    begin_ns = vp_clock_ns();
    code = prepare_pass(p, from, &k);
    base->text_ids = k.text_ids;
    if (code) return code;
    if ((r = run_chain(p->s, &k, t, &error)) != VP_OK) return complain_result(exit_code_of(r), NULL, r, &error);
    end_ns = vp_clock_ns();
    if (!record) {
        if (t->launch_count <= p->launch_capacity) return 0;
        p->launch_capacity = t->launch_count;
        p->launches = (vp_launch *)resize(p->launches, (size_t)p->launch_capacity, sizeof *p->launches);
        return 0;
    }
    if ((r = add_pass(p, t, end_ns - begin_ns)) != VP_OK) return complain(EXIT_WORK, "the table of operations: %s", vp_result_text(r));
    return p->trace ? trace_pass(p, t, step, begin_ns, end_ns) : 0;
}

/* ---- run --profile */
static vp_schedule schedule_of(const options *o) {
    vp_schedule s = vp_schedule_default();
    s.skip_first = number_of(o, "skip_first");
    s.wait = number_of(o, "wait");
    s.warmup = number_of(o, "warmup");
    s.active = number_of(o, "active");
    s.repeat = number_of(o, "repeat");
    s.every_n_steps = number_of(o, "schedule_every_n_steps");
    return s;
}
/* How many requests: --num_runs, or as many as the schedule's cycles need. 0 or an exit code. */
static int plan_steps(const options *o, vp_schedule *s, int64_t *steps) {
    vp_error error = {VP_OK, -1, "", ""};
    int no_warmup = 0;
    int64_t cycle;
    vp_result r;
    *s = schedule_of(o);
    if ((r = vp_schedule_check(s, &no_warmup, &error)) != VP_OK) return complain_result(EXIT_USAGE, "schedule", r, &error);
    cycle = s->wait + s->warmup + s->active;
    if (given(o, "num_runs")) *steps = number_of(o, "num_runs");
    else if (!s->repeat) return complain(EXIT_USAGE, "--repeat 0 goes on until the runs end: say how many with --num_runs");
    else *steps = s->skip_first + (s->repeat - 1) * (s->every_n_steps ? s->every_n_steps : cycle) + cycle;
    if (*steps > 1000000) return complain(EXIT_USAGE, "this schedule has %lld requests: at most 1000000", (long long)*steps);
    if (no_warmup)
        complain(0, "--warmup 0: the first recorded request pays for what starts up in this mode; --warmup 1 keeps that out of the table");
    return 0;
}
/* Says which keys there are; 0 or an exit code. */
static int check_sort_key(const char *key) {
    text_buffer all = {NULL, 0, 0};
    int code;
    for (int32_t i = 0; key && vp_ops_key_name(i); i++) {
        if (!strcmp(vp_ops_key_name(i), key)) { free(all.data); return 0; }
        if (i) text_add_string(&all, " ");
        text_add_string(&all, vp_ops_key_name(i));
    }
    code = key ? complain(EXIT_USAGE, "--sort_by: \"%s\" is none of: %s", key, all.data) : 0;
    free(all.data);
    return code;
}
static int check_groups(const options *o) {
    const option_value *groups = opt(o, "group_by");
    for (size_t i = 0; i < groups->count; i++) {
        size_t k = 0;
        while (k < sizeof GROUPS / sizeof *GROUPS && strcmp(groups->items[i], GROUPS[k].word)) k++;
        if (k == sizeof GROUPS / sizeof *GROUPS)
            return complain(EXIT_USAGE, "--group_by: \"%s\" is none of: none shape stage part block step place", groups->items[i]);
    }
    return check_sort_key(text_of(o, "sort_by"));
}
static int profile_check(const options *o) {
    static const char *const only[] = {"sort_by", "group_by", "group_by_input_shape", "group_by_stack_n", "row_limit", "profile_format", "trace",
        "output_dir", "chrome_trace", "trace_max_bytes", "record_shapes", "profile_memory", "with_stack", "wait", "warmup", "active", "repeat",
        "skip_first", "schedule_every_n_steps", "cost", "cost_rounds", "output"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !given(o, "profile"); i++)
        if (given(o, only[i])) return complain(EXIT_USAGE, "--%s goes with --profile", only[i]);
    if (given(o, "trace") && given(o, "output_dir")) return complain(EXIT_USAGE, "--trace FILE and --output_dir DIR exclude each other");
    if (given(o, "chrome_trace") && !given(o, "output_dir")) return complain(EXIT_USAGE, "--chrome_trace needs --output_dir DIR");
    if (given(o, "cost_rounds") && !given(o, "cost")) return complain(EXIT_USAGE, "--cost_rounds goes with --cost");
    if (given(o, "dump") && given(o, "profile")) return complain(EXIT_USAGE, "--dump and --profile exclude each other: copying would be timed");
    if (given(o, "json") && given(o, "profile_format"))
        return complain(EXIT_USAGE, "--json has a form of its own: leave --profile_format out (--profile_format json is the bare table)");
    return check_groups(o);
}
static int32_t stack_frames_of(const options *o) {
    return given(o, "group_by_stack_n") ? (int32_t)number_of(o, "group_by_stack_n") : given(o, "with_stack") ? 1 : 0;
}

/* The loop of requests: what the schedule says of each. A cycle that the loop's end or Ctrl-C cuts short is saved as well. */
static int profile_loop(profiler *p, run_state *x, const vp_schedule *schedule, int64_t steps) {
    profile_source from = {&x->a, &x->image};
    vp_error error = {VP_OK, -1, "", ""};
    vp_schedule_step now;
    int64_t in_cycle = 0;
    int code = 0;
    for (int64_t i = 0; i < steps && !code && !interrupted; i++) {
        vp_result r = vp_schedule_at(schedule, i, &now);
        int record = r == VP_OK && (now.state == VP_SCHEDULE_RECORD || now.state == VP_SCHEDULE_RECORD_AND_SAVE);
        if (r != VP_OK) return complain(EXIT_USAGE, "schedule: %s", vp_result_text(r));
        show_progress("request %lld of %lld: %s", (long long)i + 1, (long long)steps, vp_schedule_state_name(now.state));
        if (record && !in_cycle++) {
            char *path = NULL;
            if ((code = trace_path_of(p, NULL, &path)) == 0 && path) code = trace_begin(p, path);
            free(path);
        }
        if (now.state == VP_SCHEDULE_NONE && !code) {
            if ((r = run_chain(&x->s, &x->k, x->runs, &error)) != VP_OK) code = complain_result(exit_code_of(r), NULL, r, &error);
        } else if (!code) code = profile_pass(p, &x->k, &from, x->runs, i, record);
        if (now.ends_cycle) {
            in_cycle = 0;
            if (!code) code = trace_end(p);
        }
    }
    if (in_cycle && !code) {
        text_list_add(&p->notes, "the last cycle was cut short after %lld of %lld active requests: what it recorded is saved", (long long)in_cycle,
                      (long long)schedule->active);
        code = trace_end(p);
    }
    return code;
}

/* ---- what this mode costs: whole requests in each mode, in random order within every round, held against the bare one of the same round */
enum { COST_OFF, COST_STAGE, COST_OP, COST_TRACE };
static const char *const COST_NAMES[COST_MODES] = {"off", "stage", "op", "trace"};
typedef struct cost_report { double *ns[COST_MODES]; size_t rounds; vp_paired paired[COST_MODES]; } cost_report;
static void cost_free(cost_report *c) { for (int i = 0; i < COST_MODES; i++) free(c->ns[i]); }
/* From the start of a request until the next could start: with what the mode does with its records. */
static int cost_run(profiler *p, work *k, timing *t, int mode, int64_t step, double *ns) {
    vp_error error = {VP_OK, -1, "", ""};
    vp_trace *trace = p->trace;
    int64_t begin = vp_clock_ns();
    int code;
    if (mode >= COST_OP) {
        if (mode == COST_OP) p->trace = NULL;
        code = profile_pass(p, k, NULL, t, step, 1);
        p->trace = trace;
    } else {
        vp_result r;
        k->timing = mode == COST_OFF ? VP_TIMING_OFF : VP_TIMING_STAGE;
        r = run_chain(p->s, k, t, &error);
        code = r == VP_OK ? 0 : complain_result(exit_code_of(r), NULL, r, &error);
        k->timing = VP_TIMING_STAGE;
    }
    *ns = (double)(vp_clock_ns() - begin);
    return code;
}
/* The same request in all modes. A profiler of its own, so that these runs are in no table; its trace is thrown away. */
static int cost_measure(const options *o, session *s, work *k, timing *t, cost_report *c) {
    const char *temporary = getenv("TMPDIR");
    char path[600];
    uint64_t state = (uint64_t)number_of(o, "seed");
    profiler *p = (profiler *)zeroed(1, sizeof *p);
    double *scratch;
    int code;
    c->rounds = (size_t)number_of(o, "cost_rounds");
    scratch = (double *)zeroed(c->rounds, sizeof *scratch);
    for (int i = 0; i < COST_MODES; i++) c->ns[i] = (double *)zeroed(c->rounds, sizeof *c->ns[i]);
    snprintf(path, sizeof path, "%.500s/vlmprof-cost-%ld.pt.trace.json", temporary ? temporary : "/tmp", (long)getpid());
    code = profiler_open(p, o, s, k->new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = trace_begin(p, path);
    for (int mode = COST_MODES; mode-- > 0 && !code;) code = cost_run(p, k, t, mode, 0, scratch); /* each mode once untimed */
    for (size_t round = 0; round < c->rounds && !code && !interrupted; round++) {
        int order[COST_MODES] = {0, 1, 2, 3};
        show_progress("cost of the profiler: round %zu of %zu", round + 1, c->rounds);
        for (int i = COST_MODES - 1; i > 0; i--) {
            int other, held;
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            other = (int)((state >> 33) % (uint64_t)(i + 1));
            held = order[i];
            order[i] = order[other];
            order[other] = held;
        }
        for (int i = 0; i < COST_MODES && !code; i++) code = cost_run(p, k, t, order[i], (int64_t)round + 1, &c->ns[order[i]][round]);
    }
    if (interrupted && !code) c->rounds = 0;
    for (int i = 0; i < COST_MODES && !code && c->rounds; i++) vp_statistics_paired(c->ns[COST_OFF], c->ns[i], c->rounds, scratch, &c->paired[i]);
    profiler_free(p); /* an unfinished trace leaves no file */
    free(p);
    free(scratch);
    return code;
}
static void write_cost(text_buffer *out, const cost_report *c) {
    char line[300];
    snprintf(line, sizeof line, "\ncost of the profiler: %zu rounds of one request in each mode, in random order, held against off; 95 %% intervals\n"
                                "%-8s %12s %12s %30s %30s\n", c->rounds, "mode", "mean ms", "median ms",
             "mean of differences, %", "median of differences, %");
    text_add_string(out, line);
    for (int i = 0; i < COST_MODES; i++) {
        const vp_paired *p = &c->paired[i];
        double *sorted = (double *)resize(NULL, c->rounds, sizeof *sorted);
        char mean[64] = "-", median[64] = "-";
        memcpy(sorted, c->ns[i], c->rounds * sizeof *sorted);
        if (i) {
            snprintf(mean, sizeof mean, "%+.2f [%+.2f, %+.2f]", 100 * p->relative_mean.value, 100 * p->relative_mean.low,
                     100 * p->relative_mean.high);
            snprintf(median, sizeof median, "%+.2f [%+.2f, %+.2f]", 100 * p->relative_median.value, 100 * p->relative_median.low,
                     100 * p->relative_median.high);
        }
        snprintf(line, sizeof line, "%-8s %12.3f %12.3f %30s %30s\n", COST_NAMES[i], vp_statistics_mean(c->ns[i], c->rounds) / 1e6,
                 median_of(sorted, c->rounds).value / 1e6, mean, median);
        text_add_string(out, line);
        free(sorted);
    }
}
static void put_estimate_percent(vp_json_writer *w, const char *key, vp_estimate e) {
    vp_json_key(w, key);
    vp_json_begin_object(w);
    put_double(w, "value", 100 * e.value);
    put_double(w, "low", 100 * e.low);
    put_double(w, "high", 100 * e.high);
    vp_json_end_object(w);
}
static void put_cost(vp_json_writer *w, const cost_report *c) {
    vp_json_key(w, "cost");
    if (!c->rounds) { vp_json_null(w); return; }
    vp_json_begin_object(w);
    put_int(w, "rounds", (int64_t)c->rounds);
    for (int i = 0; i < COST_MODES; i++) {
        vp_json_key(w, COST_NAMES[i]);
        vp_json_begin_object(w);
        put_double(w, "mean_ms", vp_statistics_mean(c->ns[i], c->rounds) / 1e6);
        if (i) {
            put_estimate_percent(w, "mean_difference_percent", c->paired[i].relative_mean);
            put_estimate_percent(w, "median_difference_percent", c->paired[i].relative_median);
        }
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

/* ---- telling it */
static vp_ops_print_options print_options_of(const options *o) {
    vp_ops_print_options how = vp_ops_print_options_default();
    how.row_limit = number_of(o, "row_limit");
    how.with_flops = how.with_rates = 1;
    how.with_memory = given(o, "profile_memory");
    return how;
}
static void write_stages_closure(text_buffer *out, const profiler *p) {
    double stages = 0, ops = 0, n = (double)p->steps;
    char line[200];
    snprintf(line, sizeof line, "\n%-12s %14s %14s %14s %8s   mean of %lld request%s\n", "stage", "device ms", "operations ms", "idle ms", "idle %",
             (long long)p->steps, p->steps == 1 ? "" : "s");
    text_add_string(out, line);
    for (int i = 0; i <= VP_STAGE_COUNT; i++) {
        double stage = i < VP_STAGE_COUNT ? p->stage_ns[i] : stages, op = i < VP_STAGE_COUNT ? p->op_ns[i] : ops;
        if (!(stage > 0)) continue;
        snprintf(line, sizeof line, "%-12s %14.4f %14.4f %14.4f %8.2f\n", i < VP_STAGE_COUNT ? vp_stage_name((vp_stage)i) : "sum", stage / n / 1e6,
                 op / n / 1e6, (stage - op) / n / 1e6, 100 * (stage - op) / stage);
        text_add_string(out, line);
        if (i == VP_STAGE_COUNT) break;
        stages += stage;
        ops += op;
    }
    snprintf(line, sizeof line, "%-12s %14.4f   whole requests, image file to text, with the stamps of this mode\n", "step", p->total_ns / n / 1e6);
    text_add_string(out, line);
}
static int64_t peak_resident_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : (int64_t)usage.ru_maxrss * 1024;
}
static void write_memory(text_buffer *out, const profiler *p) {
    char line[200];
    vp_memory_block b;
    text_add_string(out, "\nmemory                          bytes   where\n");
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b); i++) {
        snprintf(line, sizeof line, "%-20s %16llu   %s\n", b.name, (unsigned long long)b.bytes, p->on_gpu && b.on_device ? "device" : "host");
        text_add_string(out, line);
    }
    snprintf(line, sizeof line, "%-20s %16lld   host: the most that this process had resident\n", "peak", (long long)peak_resident_bytes());
    text_add_string(out, line);
}
static void write_profile_notes(text_buffer *out, const profiler *p) {
    char line[300];
    snprintf(line, sizeof line, "ceilings measured on this device: reading %.4g GB/s, products %.4g TFLOP/s\n", p->ops.ceilings.bytes_per_s / 1e9,
             p->ops.ceilings.flops_per_s / 1e12);
    text_add_string(out, line);
    if (p->ops.dropped_calls + p->lost_launches) {
        snprintf(line, sizeof line, "%lld calls are in no row: there was no room\n", (long long)(p->ops.dropped_calls + p->lost_launches));
        text_add_string(out, line);
    }
    if (p->negative_idle) {
        snprintf(line, sizeof line, "%lld stages have operations that add up to more than the stage\n", (long long)p->negative_idle);
        text_add_string(out, line);
    }
}
static vp_result write_table(text_buffer *out, const profiler *p, const char *format) {
    vp_ops_print_options how = print_options_of(p->o);
    vp_json_writer w;
    vp_result r;
    if (!strcmp(format, "csv")) return vp_ops_print_csv(&p->ops, text_sink, out);
    if (!strcmp(format, "cprofile")) return vp_ops_print_cprofile(&p->ops, &how, text_sink, out);
    if (!strcmp(format, "torch")) return vp_ops_print_torch(&p->ops, &how, text_sink, out);
    vp_json_writer_init_sink(&w, text_sink, out, 1);
    vp_ops_write_json(&w, &p->ops);
    r = vp_json_finish(&w);
    text_add_string(out, "\n");
    return r;
}
static void put_profile_memory(vp_json_writer *w, const profiler *p) {
    vp_memory_block b;
    vp_json_key(w, "memory");
    vp_json_begin_object(w);
    vp_json_key(w, "blocks");
    vp_json_begin_array(w);
    for (int32_t i = 0; vp_engine_memory(p->s->engine, i, &b); i++) {
        vp_json_begin_object(w);
        put_text(w, "name", b.name);
        put_int(w, "bytes", (int64_t)b.bytes);
        put_bool(w, "on_device", p->on_gpu && b.on_device);
        put_int(w, "bytes_a_position", (int64_t)b.bytes_a_position);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
    put_int(w, "peak_resident_bytes", peak_resident_bytes());
    vp_json_end_object(w);
}
static void put_profile(vp_json_writer *w, const profiler *p, const run_state *x, const cost_report *c) {
    double n = (double)p->steps;
    vp_json_begin_object(w);
    put_text(w, "schema", "vlmprof-profile-1");
    put_text(w, "model", x->m.name);
    put_bool(w, "synthetic", x->m.synthetic);
    put_answer(w, "answer", x->runs);
    put_text(w, "timing", "op");
    put_int(w, "steps", p->steps);
    put_double(w, "step_ms", p->total_ns / n / 1e6);
    put_int(w, "lost_launches", p->lost_launches);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        if (!(p->stage_ns[i] > 0)) continue;
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        put_double(w, "device_ms", p->stage_ns[i] / n / 1e6);
        put_double(w, "operations_ms", p->op_ns[i] / n / 1e6);
        put_double(w, "idle_ms", (p->stage_ns[i] - p->op_ns[i]) / n / 1e6);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    put_profile_memory(w, p);
    put_cost(w, c);
    vp_json_key(w, "ops");
    vp_ops_write_json(w, &p->ops);
    vp_json_key(w, "provenance");
    vp_json_begin_object(w);
    put_provenance(w, p->o, p->s->engine);
    vp_json_end_object(w);
    put_config(w, p->o);
    vp_json_end_object(w);
}
static int profile_tell(profiler *p, const run_state *x, const cost_report *c) {
    const options *o = p->o;
    const char *format = text_of(o, "profile_format"), *file = text_of(o, "output");
    const char *key = text_of(o, "sort_by") ? text_of(o, "sort_by") : !strcmp(format, "cprofile") ? "tottime"
                    : p->on_gpu ? "self_device_time_total" : "self_cpu_time_total";
    int is_text = !given(o, "json") && (!strcmp(format, "torch") || !strcmp(format, "cprofile"));
    text_buffer table = {NULL, 0, 0}, rest = {NULL, 0, 0};
    vp_json_writer w;
    vp_result r = vp_ops_sort(&p->ops, key);
    int code = 0;
    if (r == VP_OK && !given(o, "json")) r = write_table(&table, p, format);
    else if (r == VP_OK) {
        vp_json_writer_init_sink(&w, text_sink, &table, 2);
        put_profile(&w, p, x, c);
        r = vp_json_finish(&w);
        text_add_string(&table, "\n");
    }
    if (r != VP_OK) code = complain(EXIT_WORK, "the table of operations: %s", vp_result_text(r));
    if (!code && (is_text || file) && !given(o, "json")) {
        write_stages_closure(&rest, p);
        if (given(o, "profile_memory")) write_memory(&rest, p);
        write_profile_notes(&rest, p);
        if (c->rounds) write_cost(&rest, c);
    }
    if (!code && file) code = write_page(file, &table);
    else if (!code) fwrite(table.data, 1, table.bytes, stdout); /* main checks stdout */
    if (!code && rest.bytes) fwrite(rest.data, 1, rest.bytes, stdout);
    free(table.data);
    free(rest.data);
    return code;
}
static int profile_run(const options *o, run_state *x) {
    profiler *p = (profiler *)zeroed(1, sizeof *p);
    cost_report cost;
    vp_schedule schedule;
    vp_schedule_sum sum;
    int64_t steps = 0;
    int code = plan_steps(o, &schedule, &steps);
    memset(&cost, 0, sizeof cost);
    sweep_runs = 1; /* Ctrl-C: the request that runs is finished, and what was recorded is saved and told */
    if (!code && (vp_schedule_count(&schedule, steps, &sum) != VP_OK || sum.recorded_steps + sum.partial_steps < 1))
        code = complain(EXIT_USAGE, "none of %lld request%s would be recorded: this schedule skips the first %lld", (long long)steps,
                        steps == 1 ? "" : "s", (long long)(schedule.skip_first + schedule.wait + schedule.warmup));
    x->run_count = 1;
    x->runs = timings_make(1, x->k.new_tokens);
    if (!code) code = engine_open(o, &x->m, sequence_of(&x->k) + x->k.new_tokens, x->k.layout ? x->layout.views : 1, &x->s.engine);
    x->s.m = &x->m;
    if (!code) code = profiler_open(p, o, &x->s, x->k.new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = profile_loop(p, x, &schedule, steps);
    if (!code && !interrupted && given(o, "cost")) code = cost_measure(o, &x->s, &x->k, x->runs, &cost);
    close_progress();
    for (size_t i = 0; i < p->notes.count; i++) complain(0, "%s", p->notes.items[i]);
    if (!code && p->steps) code = profile_tell(p, x, &cost);
    if (!code && interrupted) code = EXIT_INTERRUPTED;
    cost_free(&cost);
    profiler_free(p);
    free(p);
    return code;
}

/* ---- sweep --use_profiler */
static int profile_check_sweep(const options *o) {
    static const char *const only[] = {"use_profiler_on_all_samples", "sort_by", "group_by", "group_by_input_shape", "group_by_stack_n", "row_limit",
        "trace", "trace_max_bytes", "record_shapes", "profile_memory", "with_stack"};
    for (size_t i = 0; i < sizeof only / sizeof *only && !given(o, "use_profiler"); i++)
        if (given(o, only[i])) return complain(EXIT_USAGE, "--%s goes with --use_profiler", only[i]);
    return check_groups(o);
}
/* Is the file of this point there, written by this configuration and sample? The index of a configuration changes when the grid does. */
static int is_profiled(const char *path, const char *head) {
    char line[600] = "";
    FILE *f = fopen(path, "rb");
    int same = f && fgets(line, sizeof line, f) && !strncmp(line, head, strlen(head)) && line[strlen(head)] == '\n';
    if (f) fclose(f);
    return same;
}
/* A measured point once more, operation by operation, into profiler_results_config_<i>_sample_<j>.txt and, when asked for, a trace. Nothing of it
 * enters the journal. A device that fails here fails the next point as well, and is dealt with there. */
static int profile_point(sweep *x, const open_point *q, const sample *a, int is_first) {
    const options *o = x->o;
    char name[120], worker[120], head[500];
    size_t config = (size_t)(q->c - x->p.cells);
    text_buffer out = {NULL, 0, 0};
    work k = q->k;
    char *path, *file = NULL;
    profiler *p;
    int code;
    if (!given(o, "use_profiler") || !(is_first || given(o, "use_profiler_on_all_samples"))) return 0;
    snprintf(name, sizeof name, "profiler_results_config_%zu_sample_%lld.txt", config, (long long)a->id);
    snprintf(worker, sizeof worker, "config_%zu_sample_%lld", config, (long long)a->id);
    snprintf(head, sizeof head, "%.400s, sample %lld", q->c->file_name, (long long)a->id);
    path = join_path(text_of(o, "output_dir"), name);
    code = is_profiled(path, head);
    free(path);
    if (code) return 0;
    p = (profiler *)zeroed(1, sizeof *p);
    code = profiler_open(p, o, &x->s, k.new_tokens, groups_of(o), stack_frames_of(o));
    if (!code) code = profile_pass(p, &k, NULL, x->run, 0, 0);
    if (!code && (code = trace_path_of(p, worker, &file)) == 0 && file) code = trace_begin(p, file);
    if (!code) code = profile_pass(p, &k, NULL, x->run, 0, 1);
    if (!code) code = trace_end(p);
    if (!code && p->steps) {
        vp_ops_sort(&p->ops, text_of(o, "sort_by") ? text_of(o, "sort_by") : p->on_gpu ? "self_device_time_total" : "self_cpu_time_total");
        text_add_string(&out, head);
        text_add_string(&out, "\n");
        if (write_table(&out, p, "torch") != VP_OK) code = EXIT_WORK;
        write_stages_closure(&out, p);
        if (given(o, "profile_memory")) write_memory(&out, p);
        write_profile_notes(&out, p);
        if (!code) code = write_whole(text_of(o, "output_dir"), name, out.data, out.bytes);
    }
    free(file);
    free(out.data);
    profiler_free(p);
    free(p);
    return code == EXIT_OUTPUT ? code : 0;
}

/* ============================================================================================= trace >>trace
 * A Chrome trace as Kineto writes it, ours or torch.profiler's, told in tables. The file is read event by event: what is held of it is 64 bytes a
 * slice and every name once. Times are int64 nanoseconds, made of the file's decimal microseconds without a double in between.
 *
 * Operations follow torch.profiler's key_averages(): a slice of a host thread is within the innermost one there that encloses it; self is the time
 * no slice within covers; a slice that is the only one within another of its name is counted as that one; device time is that of the kernels whose
 * "External id" is the operation's (without one: whose launch lies in it). Where slices of a thread overlap without nesting, torch counts the
 * common time twice in what is around them; here once, so that self is never negative. */
enum { TRACE_VALUE_BYTES_MAX = 4 << 20, TRACE_ROWS_MAX = 1 << 18, ENDS_EARLY = -1, IS_TABLE = -2 };
#define TRACE_NS_LIMIT INT64_C(4000000000000000000) /* of a time, and of all durations together: sums of two fit */
#define NO_INDEX UINT32_MAX

/* every text once */
typedef struct text_table { text_buffer text; size_t *starts; uint32_t count, capacity; uint32_t *slots; size_t slot_count; } text_table;
static const char *name_at(const text_table *n, uint32_t index) { return n->text.data + n->starts[index]; }
static void text_table_grow(text_table *n) {
    size_t slots = n->slot_count ? n->slot_count * 2 : 256;
    n->slots = (uint32_t *)resize(n->slots, slots, sizeof *n->slots);
    n->slot_count = slots;
    memset(n->slots, 0xff, slots * sizeof *n->slots);
    for (uint32_t i = 0; i < n->count; i++) {
        size_t at = (size_t)hash_text(HASH_START, name_at(n, i)) & (slots - 1);
        while (n->slots[at] != NO_INDEX) at = (at + 1) & (slots - 1);
        n->slots[at] = i;
    }
}
static uint32_t name_add(text_table *n, const char *text) {
    size_t at;
    if ((size_t)n->count * 2 >= n->slot_count) text_table_grow(n);
    at = (size_t)hash_text(HASH_START, text) & (n->slot_count - 1);
    for (; n->slots[at] != NO_INDEX; at = (at + 1) & (n->slot_count - 1)) if (!strcmp(name_at(n, n->slots[at]), text)) return n->slots[at];
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? n->capacity * 2 : 256;
        n->starts = (size_t *)resize(n->starts, n->capacity, sizeof *n->starts);
    }
    n->starts[n->count] = n->text.bytes;
    text_add(&n->text, text, strlen(text) + 1);
    n->slots[at] = n->count;
    return n->count++;
}
static void text_table_free(text_table *n) {
    free(n->text.data);
    free(n->starts);
    free(n->slots);
}

typedef enum trace_category { TRACE_OP, TRACE_USER, TRACE_RUNTIME, TRACE_PYTHON, TRACE_SPAN, TRACE_KERNEL, TRACE_COPY, TRACE_SET, TRACE_DEVICE_USER,
                              TRACE_NOTHING } trace_category; /* SPAN: a worker's part of an operation */
static int is_host_category(int c) { return c <= TRACE_SPAN; }
static int is_device_work(int c) { return c == TRACE_KERNEL || c == TRACE_COPY || c == TRACE_SET; }
static int is_annotation(int c) { return c == TRACE_USER || c == TRACE_DEVICE_USER; }

typedef struct trace_event {
    int64_t begin_ns, ns, external, correlation, bytes; /* external, correlation: -1 none */
    uint32_t name, shapes, track, order;                /* shapes: a name, or NO_INDEX */
    uint8_t category;
} trace_event;
typedef struct trace_memory { int64_t ns, bytes, allocated, reserved; int32_t type, device; } trace_memory; /* type 0: CPU, its device -1 */

typedef struct trace {
    const char *path;
    text_table names, tracks;               /* a track's text is "pid tid" */
    uint32_t *labels; uint32_t label_count; /* of tracks: a name, or NO_INDEX */
    trace_event *events; size_t count, capacity;
    trace_memory *memory; size_t memory_count, memory_capacity;
    int64_t seen, flows, counters, instants, marks; /* events of the file, and those that are no slices */
    int64_t no_name, no_time, no_duration, other;   /* left out: events that lack it, phases that are not read */
    int64_t schema, world_size, rank, device_count;  /* -1: not told */
    uint32_t devices, trace_name, host_name;         /* names, or NO_INDEX */
    int is_own, is_emulated, is_partial, is_cut; /* partial: what lies before the cut is enough */
    int64_t bytes, all_ns;             /* of the file; sum of all durations */
} trace;

static void trace_free(trace *t) {
    text_table_free(&t->names);
    text_table_free(&t->tracks);
    free(t->labels);
    free(t->events);
    free(t->memory);
}

/* ---- the file, piece by piece */
typedef struct trace_input {
    FILE *file;
    const char *path;
    text_buffer value;     /* the value that was read last, and where it began */
    int64_t start, offset;
    size_t at, filled;
    parsed json;
    buffer scratch;
    unsigned char block[65536];
} trace_input;
typedef enum value_end { VALUE_WHOLE, VALUE_CUT, VALUE_LARGE } value_end;

static int input_peek(trace_input *in) { /* -1: the end */
    if (in->at == in->filled) {
        in->filled = fread(in->block, 1, sizeof in->block, in->file);
        in->at = 0;
        if (!in->filled) return -1;
    }
    return in->block[in->at];
}
static int input_take(trace_input *in) {
    int c = input_peek(in);
    if (c >= 0) { in->at++; in->offset++; }
    return c;
}
static int input_space(trace_input *in) { /* the next byte that is no white space, left where it is */
    int c;
    while ((c = input_peek(in)) == ' ' || c == '\n' || c == '\r' || c == '\t') input_take(in);
    return c;
}
static int is_value_end(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':' || c == ']' || c == '}'; }
/* The bytes of one value: up to its closing bracket or quote; whether it is JSON is the strict reader's business. */
static value_end input_value(trace_input *in) {
    text_buffer *v = &in->value;
    int64_t depth = 0;
    int in_string = 0, escaped = 0, c;
    v->bytes = 0;
    input_space(in);
    in->start = in->offset;
    while ((c = input_peek(in)) >= 0) {
        if (!in_string && !depth && v->bytes && is_value_end(c)) return VALUE_WHOLE;
        if (v->bytes >= TRACE_VALUE_BYTES_MAX) return VALUE_LARGE;
        in->at++;
        in->offset++;
        if (v->bytes + 2 > v->capacity) {
            v->capacity = (v->bytes + 2) * 2;
            v->data = (char *)resize(v->data, v->capacity, 1);
        }
        v->data[v->bytes++] = (char)c;
        if (in_string) {
            if (escaped) escaped = 0;
            else if (c == '\\') escaped = 1;
            else if (c == '"') in_string = 0;
            if (in_string || depth) continue;
            return VALUE_WHOLE;
        }
        if (c == '"') in_string = 1;
        else if (c == '{' || c == '[') depth++;
        else if ((c == '}' || c == ']') && --depth <= 0) return VALUE_WHOLE;
    }
    return VALUE_CUT;
}

static int input_bad(const trace_input *in, int64_t offset, const char *what) {
    return complain(EXIT_INPUT, "%s: malformed at byte %lld: %s", in->path, (long long)offset, what);
}
/* The file ends too early, or its reading fails. */
static int input_ended(trace *t, const trace_input *in, const char *where) {
    if (ferror(in->file)) return complain(EXIT_INPUT, "%s: cannot be read beyond byte %lld: %s", in->path, (long long)in->offset, strerror(errno));
    if (!in->offset) return complain(EXIT_INPUT, "%s: the file is empty", in->path);
    t->is_cut = 1;
    if (t->is_partial) return ENDS_EARLY;
    return complain(EXIT_INPUT, "%s: cut off at byte %lld, %s; %lld whole events lie before it (--partial shows them)", in->path,
                    (long long)in->offset, where, (long long)t->seen);
}
/* A whole value, parsed into in->json; 0 or an exit code. */
static int input_parse(trace *t, trace_input *in, const char *where) {
    vp_error error = {VP_OK, -1, "", ""};
    value_end end = input_value(in);
    if (end == VALUE_CUT) return input_ended(t, in, where);
    if (end == VALUE_LARGE)
        return complain(EXIT_INPUT, "%s: the value at byte %lld is longer than %d MiB: this is no trace", in->path, (long long)in->start,
                        TRACE_VALUE_BYTES_MAX >> 20);
    if (parse_json(&in->json, in->value.data, in->value.bytes, &error) == VP_OK) return 0;
    return input_bad(in, in->start + (error.offset > 0 ? error.offset : 0), error.text);
}

/* ---- one event */
static const char *scratch_text(trace_input *in, uint32_t node, size_t *bytes) { /* NULL: no string */
    const vp_json *j = &in->json.json;
    size_t capacity, needed = 0;
    if (!node_is(j, node, VP_JSON_STRING)) return NULL;
    capacity = (size_t)j->nodes[node].bytes + 1;
    reserve(&in->scratch, capacity, 1);
    if (vp_json_text(j, node, (char *)in->scratch.data, capacity, &needed) != VP_OK) return NULL;
    if (bytes) *bytes = needed;
    return (const char *)in->scratch.data;
}
static uint32_t text_name(trace *t, trace_input *in, uint32_t node) { /* NO_INDEX: no string */
    const char *text = scratch_text(in, node, NULL);
    return text ? name_add(&t->names, text) : NO_INDEX;
}
/* A number, or a string that holds one, times 10^power as a whole number, rounded half away from zero; 0: it is none, or beyond TRACE_NS_LIMIT. */
static int node_decimal(const vp_json *j, uint32_t node, int power, int64_t *out) {
    const char *p;
    size_t bytes, i;
    double value;
    int64_t sum = 0;
    if (!node_is(j, node, VP_JSON_NUMBER) && !node_is(j, node, VP_JSON_STRING)) return 0;
    p = j->text + j->nodes[node].start;
    bytes = (size_t)j->nodes[node].bytes;
    if (vp_number_parse(p, bytes, &value) != VP_OK || !(fabs(value) * pow(10, power) < (double)TRACE_NS_LIMIT)) return 0;
    if (memchr(p, 'e', bytes) || memchr(p, 'E', bytes)) {
        *out = llround(value * pow(10, power));
        return 1;
    }
    for (i = *p == '-'; i < bytes && p[i] != '.'; i++) sum = sum * 10 + (p[i] - '0');
    i += i < bytes;
    for (int places = 0; places < power; places++) sum = sum * 10 + (i < bytes ? p[i++] - '0' : 0);
    sum += i < bytes && p[i] >= '5';
    *out = *p == '-' ? -sum : sum;
    return 1;
}
static int64_t node_whole(const vp_json *j, uint32_t node, int64_t fallback) {
    int64_t value;
    return node_decimal(j, node, 0, &value) ? value : fallback;
}
/* The values of some keys of an object, in one pass; of equal keys the last counts. */
static void find_members(const vp_json *j, uint32_t object, const char *const *keys, uint32_t *found, int count) {
    for (int k = 0; k < count; k++) found[k] = VP_JSON_NONE;
    if (!node_is(j, object, VP_JSON_OBJECT)) return;
    for (uint32_t key = object + 1; key < j->nodes[object].end; key = j->nodes[key + 1].end)
        for (int k = 0; k < count; k++) if (vp_json_equals(j, key, keys[k])) { found[k] = key + 1; break; }
}

enum { FIELD_PHASE, FIELD_CATEGORY, FIELD_NAME, FIELD_PROCESS, FIELD_THREAD, FIELD_TIME, FIELD_DURATION, FIELD_ARGUMENTS, FIELD_COUNT };
static const char *const FIELD_KEYS[FIELD_COUNT] = {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"};
enum { ARGUMENT_EXTERNAL, ARGUMENT_EXTERNAL_OLD, ARGUMENT_CORRELATION, ARGUMENT_BYTES, ARGUMENT_SHAPES, ARGUMENT_COUNT };
static const char *const ARGUMENT_KEYS[ARGUMENT_COUNT] = {"External id", "external id", "correlation", "bytes", "Input Dims"};
enum { MEMORY_BYTES, MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_TYPE, MEMORY_DEVICE, MEMORY_COUNT };
static const char *const MEMORY_KEYS[MEMORY_COUNT] = {"Bytes", "Total Allocated", "Total Reserved", "Device Type", "Device Id"};

static trace_category category_of(const char *text) { /* NULL: a slice of a program that names none */
    size_t bytes = text ? strlen(text) : 0;
    if (!bytes || !strcmp(text, "cpu_op")) return TRACE_OP;
    if (!strcmp(text, "user_annotation")) return TRACE_USER;
    if (!strcmp(text, "gpu_user_annotation")) return TRACE_DEVICE_USER;
    if (!strcmp(text, "kernel")) return TRACE_KERNEL;
    if (!strcmp(text, "gpu_memcpy")) return TRACE_COPY;
    if (!strcmp(text, "gpu_memset")) return TRACE_SET;
    if (!strcmp(text, "python_function")) return TRACE_PYTHON;
    if (!strcmp(text, "thread_span")) return TRACE_SPAN;
    if ((bytes > 8 && !strcmp(text + bytes - 8, "_runtime")) || (bytes > 7 && !strcmp(text + bytes - 7, "_driver"))) return TRACE_RUNTIME;
    if (!strcmp(text, "Trace") || !strcmp(text, "cuda_sync") || !strcmp(text, "cuda_event")) return TRACE_NOTHING;
    return TRACE_OP;
}
/* A process and a thread as the file spells them, numbers and texts alike. */
static uint32_t track_of(trace *t, const vp_json *j, uint32_t process, uint32_t thread) {
    uint32_t pair[2] = {process, thread}, track;
    text_buffer text = {NULL, 0, 0};
    for (int i = 0; i < 2; i++) {
        if (i) text_add(&text, " ", 1);
        if (node_is(j, pair[i], VP_JSON_STRING) || node_is(j, pair[i], VP_JSON_NUMBER))
            text_add(&text, j->text + j->nodes[pair[i]].start, (size_t)j->nodes[pair[i]].bytes);
        else text_add(&text, "-", 1);
    }
    track = name_add(&t->tracks, text.data);
    free(text.data);
    if (track == t->label_count) {
        t->labels = (uint32_t *)resize(t->labels, (size_t)track + 1, sizeof *t->labels);
        t->labels[t->label_count++] = NO_INDEX;
    }
    return track;
}
static void add_slice(trace *t, trace_input *in, const uint32_t *f) {
    const vp_json *j = &in->json.json;
    trace_event e;
    uint32_t a[ARGUMENT_COUNT];
    memset(&e, 0, sizeof e);
    e.category = (uint8_t)category_of(scratch_text(in, f[FIELD_CATEGORY], NULL));
    if (e.category == TRACE_NOTHING) return;
    if (f[FIELD_DURATION] == VP_JSON_NONE) { t->no_duration++; return; }
    if (!node_decimal(j, f[FIELD_TIME], 3, &e.begin_ns) || !node_decimal(j, f[FIELD_DURATION], 3, &e.ns) || e.ns < 0
        || e.ns > TRACE_NS_LIMIT - t->all_ns) {
        t->no_time++;
        return;
    }
    if ((e.name = text_name(t, in, f[FIELD_NAME])) == NO_INDEX) { t->no_name++; return; }
    t->all_ns += e.ns;
    if (!strncmp(name_at(&t->names, e.name), "ProfilerStep#", 13)) {
        if (t->is_own && e.ns == 1000) return; /* closes the file, for readers that drop the last step */
        e.name = name_add(&t->names, "ProfilerStep*");
    }
    find_members(j, f[FIELD_ARGUMENTS], ARGUMENT_KEYS, a, ARGUMENT_COUNT);
    e.external = node_whole(j, a[a[ARGUMENT_EXTERNAL] == VP_JSON_NONE ? ARGUMENT_EXTERNAL_OLD : ARGUMENT_EXTERNAL], -1);
    e.correlation = node_whole(j, a[ARGUMENT_CORRELATION], -1);
    e.bytes = node_whole(j, a[ARGUMENT_BYTES], 0);
    e.track = track_of(t, j, f[FIELD_PROCESS], f[FIELD_THREAD]);
    e.shapes = NO_INDEX;
    if (node_is(j, a[ARGUMENT_SHAPES], VP_JSON_ARRAY)) {
        char *text = copy_text(j->text + j->nodes[a[ARGUMENT_SHAPES]].start, (size_t)j->nodes[a[ARGUMENT_SHAPES]].bytes);
        e.shapes = name_add(&t->names, text);
        free(text);
    }
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 4096;
        t->events = (trace_event *)resize(t->events, t->capacity, sizeof *t->events);
    }
    e.order = (uint32_t)t->count;
    t->events[t->count++] = e;
}
static void add_memory(trace *t, const vp_json *j, const uint32_t *f) {
    trace_memory m;
    int64_t device;
    uint32_t a[MEMORY_COUNT];
    find_members(j, f[FIELD_ARGUMENTS], MEMORY_KEYS, a, MEMORY_COUNT);
    if (!node_decimal(j, f[FIELD_TIME], 3, &m.ns) || !node_decimal(j, a[MEMORY_BYTES], 0, &m.bytes)) { t->no_time++; return; }
    m.allocated = node_whole(j, a[MEMORY_ALLOCATED], -1);
    m.reserved = node_whole(j, a[MEMORY_RESERVED], -1);
    m.type = node_whole(j, a[MEMORY_TYPE], 0) != 0; /* 0: the CPU */
    device = node_whole(j, a[MEMORY_DEVICE], 0);
    if (m.type && !(device >= 0 && device < 256)) { t->other++; return; }
    m.device = m.type ? (int32_t)device : -1;
    if (t->memory_count == t->memory_capacity) {
        t->memory_capacity = t->memory_capacity ? t->memory_capacity * 2 : 1024;
        t->memory = (trace_memory *)resize(t->memory, t->memory_capacity, sizeof *t->memory);
    }
    t->memory[t->memory_count++] = m;
}
static void add_event(trace *t, trace_input *in) {
    const vp_json *j = &in->json.json;
    uint32_t f[FIELD_COUNT];
    t->seen++;
    find_members(j, 0, FIELD_KEYS, f, FIELD_COUNT);
    if (!node_is(j, f[FIELD_PHASE], VP_JSON_STRING) || j->nodes[f[FIELD_PHASE]].bytes != 1) { t->other++; return; }
    switch (j->text[j->nodes[f[FIELD_PHASE]].start]) {
    case 'X': add_slice(t, in, f); break;
    case 'i': case 'I':
        t->instants++;
        if (vp_json_equals(j, f[FIELD_NAME], "[memory]")) add_memory(t, j, f);
        break;
    case 'M':
        t->marks++;
        if (vp_json_equals(j, f[FIELD_NAME], "thread_name")) {
            uint32_t label = text_name(t, in, vp_json_get(j, f[FIELD_ARGUMENTS], "name")), track = track_of(t, j, f[FIELD_PROCESS], f[FIELD_THREAD]);
            if (label != NO_INDEX) t->labels[track] = label;
        }
        break;
    case 's': case 't': case 'f': t->flows++; break;
    case 'C': t->counters++; break;
    default: t->other++;
    }
}

/* ---- the whole file */
/* 0, or IS_TABLE: this is no trace but a saved table of operations. */
static int add_metadata(trace *t, trace_input *in, const char *key) {
    const vp_json *j = &in->json.json;
    if (!strcmp(key, "schema") && (vp_json_equals(j, 0, "vlmprof-ops-1") || vp_json_equals(j, 0, "vlmprof-profile-1"))) return IS_TABLE;
    if (!strcmp(key, "schemaVersion")) t->schema = node_whole(j, 0, -1);
    else if (!strcmp(key, "traceName")) t->trace_name = text_name(t, in, 0);
    else if (!strcmp(key, "host_name")) t->host_name = text_name(t, in, 0);
    else if (!strcmp(key, "dropped_steps")) t->is_own = 1; /* vp_trace_open wrote it */
    else if (!strcmp(key, "emulated")) t->is_emulated = node_is(j, 0, VP_JSON_TRUE) || node_whole(j, 0, 0) == 1;
    else if (!strcmp(key, "distributedInfo")) {
        t->rank = node_whole(j, vp_json_get(j, 0, "rank"), -1);
        t->world_size = node_whole(j, vp_json_get(j, 0, "world_size"), -1);
    } else if (!strcmp(key, "deviceProperties") && node_is(j, 0, VP_JSON_ARRAY)) {
        text_buffer all = {NULL, 0, 0};
        t->device_count = j->nodes[0].count;
        for (uint32_t i = 1; i < j->nodes[0].end; i = j->nodes[i].end) {
            const char *name = scratch_text(in, vp_json_get(j, i, "name"), NULL);
            if (all.bytes) text_add(&all, ", ", 2);
            text_add_string(&all, name ? name : "?");
        }
        t->devices = all.bytes ? name_add(&t->names, all.data) : NO_INDEX;
        free(all.data);
    }
    return 0;
}
/* The array of events, behind its opening bracket. */
static int read_events(trace *t, trace_input *in) {
    int c = input_space(in), code;
    if (c == ']') { input_take(in); return 0; }
    for (;;) {
        char where[64];
        snprintf(where, sizeof where, "in event %lld", (long long)t->seen + 1);
        if ((code = input_parse(t, in, where)) != 0) return code;
        if (in->json.json.nodes[0].type != VP_JSON_OBJECT) return input_bad(in, in->start, "an event is an object");
        if (t->count >= NO_INDEX - 1) return complain(EXIT_DEVICE, "%s: more than 2^32 slices", in->path);
        add_event(t, in);
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind an event");
        input_take(in);
        if (c == ']') return 0;
        if (c != ',') return input_bad(in, in->offset - 1, "a comma or ] is missing behind an event");
    }
}
static int read_members(trace *t, trace_input *in) {
    int c = input_space(in), code, has_events = 0;
    while (c != '}') {
        char key[64];
        const char *text;
        if ((code = input_parse(t, in, "among the file's members")) != 0) return code;
        if (!(text = scratch_text(in, 0, NULL))) return input_bad(in, in->start, "a member's name is missing");
        snprintf(key, sizeof key, "%s", text);
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind a member's name");
        if (input_take(in) != ':') return input_bad(in, in->offset - 1, "a colon is missing behind a member's name");
        c = input_space(in);
        if (!strcmp(key, "traceEvents") && c == '[') {
            if (has_events++) return input_bad(in, in->offset, "traceEvents is there twice");
            input_take(in);
            code = read_events(t, in);
        } else if ((code = input_parse(t, in, "in the file's metadata")) == 0) code = add_metadata(t, in, key);
        if (code) return code;
        if ((c = input_space(in)) < 0) return input_ended(t, in, "behind a member");
        if (c != ',' && c != '}') return input_bad(in, in->offset, "a comma or } is missing behind a member");
        if (c == ',') {
            input_take(in);
            if ((c = input_space(in)) == '}') return input_bad(in, in->offset, "a comma stands before }");
            if (c < 0) return input_ended(t, in, "among the file's members");
        }
    }
    input_take(in);
    return has_events ? 0 : complain(EXIT_INPUT, "%s: there is no array traceEvents: this is no Chrome trace", in->path);
}
static int read_top(trace *t, trace_input *in) {
    int c = input_space(in), code;
    if (c == 0x1f) return complain(EXIT_INPUT, "%s: is gzip-compressed: gunzip it first, or gunzip -c FILE.gz | vlmprof trace -", in->path);
    if (c < 0) return input_ended(t, in, "at its start");
    if (c != '{' && c != '[') return complain(EXIT_INPUT, "%s: is no JSON: it begins with byte 0x%02x", in->path, (unsigned)c);
    input_take(in);
    if ((code = c == '[' ? read_events(t, in) : read_members(t, in)) != 0) return code;
    if (input_space(in) >= 0) return input_bad(in, in->offset, "there is text behind the end");
    return ferror(in->file) ? input_ended(t, in, "at its end") : 0;
}
static int trace_read(trace *t, const char *path, int is_partial) {
    trace_input *in = (trace_input *)zeroed(1, sizeof *in);
    int code;
    memset(t, 0, sizeof *t);
    t->path = in->path = strcmp(path, "-") ? path : "stdin";
    t->is_partial = is_partial;
    t->schema = t->world_size = t->rank = t->device_count = -1;
    t->devices = t->trace_name = t->host_name = NO_INDEX;
    in->file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!in->file) code = complain(EXIT_INPUT, "%s: cannot be opened: %s", path, strerror(errno));
    else if (is_folder(path)) code = complain(EXIT_INPUT, "%s: is a folder: name one of its *.pt.trace.json files", path);
    else code = read_top(t, in);
    if (code == ENDS_EARLY) code = 0;
    t->bytes = in->offset;
    if (in->file && in->file != stdin) fclose(in->file);
    free(in->value.data);
    free(in->scratch.data);
    free(in->json.nodes);
    free(in);
    return code;
}

/* ---- operations: who is within whom, and whose the device's time is */
typedef struct host_op {
    uint32_t event, parent, key, children; /* parent: an operation, or NO_INDEX; key: what rows are told apart by */
    int64_t covered_ns, covered_end;       /* by slices within */
    int64_t own_device_ns, device_ns;      /* of its own launches; with those within */
    int64_t bytes[2], within_bytes[2];     /* memory of the CPU and of devices: during it, and during slices directly within */
    uint32_t alias;                        /* the operation that counts for this one, or NO_INDEX */
    int is_nested_in_own;                  /* within another of its key */
} host_op;
typedef struct id_index { int64_t id; uint32_t index; } id_index;
typedef struct cover { int64_t begin, end, before; } cover; /* a stretch of a track without a gap, and how much of the track is covered before it */
typedef struct trace_row {
    const char *name, *where;
    int64_t calls, total_ns, min_ns, max_ns, busy_ns, bytes;
    int64_t host_wait_ns, kernel_wait_ns, queue_most; /* of a stream */
    double queue_mean;
} trace_row;
typedef struct trace_rows { trace_row *items; size_t count; } trace_rows;
enum { TRACE_DEVICES = 257 }; /* the CPU, and devices 0..255 */
typedef struct trace_peak { int64_t changes, allocated, reserved, left, at_ns; } trace_peak; /* allocated, reserved: the most; -1: not told */
typedef struct trace_tables {
    const trace *t;
    int64_t first_ns, last_ns, kernel_ns;
    int64_t overlaps, launched, unlaunched; /* slices of a thread that overlap without nesting; device slices with and without their launch */
    vp_statistics delay;                    /* us, start on the device less end of the launching call; all 0 where there is none */
    text_table keys;
    vp_ops ops; vp_op *op_rows;
    cover *covers; size_t *cover_start;     /* of each track, [track_count + 1] */
    int64_t *within_ns;                     /* of each host slice that is no worker's part: what slices within cover */
    trace_rows annotations, kernels, calls, tracks;
    trace_peak peaks[TRACE_DEVICES];
} trace_tables;

static int id_order(const void *left, const void *right) {
    const id_index *a = (const id_index *)left, *b = (const id_index *)right;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}
static uint32_t id_find(const id_index *ids, size_t count, int64_t id) { /* the first of that id, or NO_INDEX */
    size_t low = 0, high = count;
    if (id < 0) return NO_INDEX;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle].id < id) low = middle + 1; else high = middle;
    }
    return low < count && ids[low].id == id ? ids[low].index : NO_INDEX;
}
static int slice_order(const void *left, const void *right) { /* by track and begin, the longer first: the outer one before what is within */
    const trace_event *a = (const trace_event *)left, *b = (const trace_event *)right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}
static int is_hidden(const char *name) { /* torch's own helpers, which its tables leave out */
    static const char *const hidden[] = {"profiler::_record_function_enter", "profiler::_record_function_enter_new",
                                         "profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) if (!strcmp(name, hidden[i])) return 1;
    return 0;
}
/* "External id" of operations and annotations, or correlation of launching calls -> event */
static id_index *index_events(const trace *t, int by_correlation, size_t *count) {
    id_index *ids = (id_index *)resize(NULL, t->count, sizeof *ids);
    *count = 0;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int64_t id = by_correlation ? e->correlation : e->external;
        if (id < 0 || (by_correlation ? e->category != TRACE_RUNTIME : e->category != TRACE_OP && e->category != TRACE_USER)) continue;
        if (!by_correlation && is_hidden(name_at(&t->names, e->name))) continue;
        ids[*count].id = id;
        ids[(*count)++].index = (uint32_t)i;
    }
    qsort(ids, *count, sizeof *ids, id_order);
    return ids;
}
/* A runtime call belongs to the thread of the operation that it serves, as torch has it. Then all slices into their final order. */
static void order_slices(trace *t) {
    size_t count;
    id_index *ids = index_events(t, 0, &count);
    for (size_t i = 0; i < t->count; i++) {
        uint32_t owner = t->events[i].category == TRACE_RUNTIME ? id_find(ids, count, t->events[i].external) : NO_INDEX;
        if (owner != NO_INDEX) t->events[i].track = t->events[owner].track;
    }
    free(ids);
    if (t->count) qsort(t->events, t->count, sizeof *t->events, slice_order);
}

static uint32_t key_of(trace_tables *x, const trace_event *e, int by_shapes) {
    const trace *t = x->t;
    text_buffer text = {NULL, 0, 0};
    uint32_t key;
    if (!by_shapes || e->shapes == NO_INDEX) return name_add(&x->keys, name_at(&t->names, e->name));
    text_add_string(&text, name_at(&t->names, e->name));
    text_add(&text, " ", 1);
    text_add_string(&text, name_at(&t->names, e->shapes));
    key = name_add(&x->keys, text.data);
    free(text.data);
    return key;
}
/* Host slices as operations, in the order of the slices; a parent stands before what is within. */
static host_op *collect_ops(trace_tables *x, int by_shapes, size_t *count) {
    const trace *t = x->t;
    host_op *ops = (host_op *)zeroed(t->count, sizeof *ops);
    *count = 0;
    for (size_t i = 0; i < t->count; i++) {
        host_op *p = &ops[*count];
        if (t->events[i].category > TRACE_PYTHON || is_hidden(name_at(&t->names, t->events[i].name))) continue;
        p->event = (uint32_t)i;
        p->parent = p->alias = NO_INDEX;
        p->key = key_of(x, &t->events[i], by_shapes);
        p->covered_end = t->events[i].begin_ns;
        (*count)++;
    }
    return ops;
}
static void cover_parent(host_op *p, const trace_event *e) { /* slices within come in the order of their begin */
    int64_t begin = e->begin_ns > p->covered_end ? e->begin_ns : p->covered_end, end = e->begin_ns + e->ns;
    p->children++;
    if (end <= begin) return;
    p->covered_ns += end - begin;
    p->covered_end = end;
}
static void nest_ops(trace_tables *x, host_op *ops, size_t count) {
    const trace_event *events = x->t->events;
    uint32_t *stack = (uint32_t *)resize(NULL, count, sizeof *stack), *open = (uint32_t *)zeroed(x->keys.count + 1, sizeof *open);
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        const trace_event *e = &events[ops[i].event];
        for (; depth; depth--) {
            const trace_event *p = &events[ops[stack[depth - 1]].event];
            int64_t end = p->begin_ns + p->ns;
            if (p->track == e->track && e->begin_ns < end && e->begin_ns + e->ns <= end) break;
            x->overlaps += p->track == e->track && e->begin_ns < end;
            open[ops[stack[depth - 1]].key]--;
        }
        if (depth) {
            ops[i].parent = stack[depth - 1];
            cover_parent(&ops[stack[depth - 1]], e);
        }
        ops[i].is_nested_in_own = open[ops[i].key]++ > 0;
        stack[depth++] = (uint32_t)i;
    }
    free(stack);
    free(open);
}
/* Each device slice's time to the operation that asked for it. */
static void charge_device(trace_tables *x, host_op *ops, size_t count) {
    const trace *t = x->t;
    size_t external_count, correlation_count;
    id_index *external = index_events(t, 0, &external_count), *correlation = index_events(t, 1, &correlation_count);
    uint32_t *op_of = (uint32_t *)resize(NULL, t->count, sizeof *op_of);
    memset(op_of, 0xff, t->count * sizeof *op_of);
    for (size_t i = 0; i < count; i++) op_of[ops[i].event] = (uint32_t)i;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        uint32_t owner;
        if (!is_device_work(e->category)) continue;
        owner = id_find(external, external_count, e->external);
        if (owner == NO_INDEX) owner = id_find(correlation, correlation_count, e->correlation);
        if (owner == NO_INDEX || (owner = op_of[owner]) == NO_INDEX) continue;
        if (t->events[ops[owner].event].category == TRACE_RUNTIME && ops[owner].parent != NO_INDEX) owner = ops[owner].parent;
        ops[owner].own_device_ns += e->ns;
    }
    free(external);
    free(correlation);
    free(op_of);
}
static int memory_order(const void *left, const void *right) {
    const trace_memory *a = (const trace_memory *)left, *b = (const trace_memory *)right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}
static size_t memory_before(const trace *t, int64_t ns) { /* records earlier than that */
    size_t low = 0, high = t->memory_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->memory[middle].ns < ns) low = middle + 1; else high = middle;
    }
    return low;
}
static int64_t wrapping_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); } /* sums of a hostile file's bytes */
/* Memory taken and given back during each operation, on whatever thread, as torch counts it; what no operation covers is a row "[memory]". */
static void charge_memory(trace_tables *x, host_op *ops, size_t count, int64_t alone[2], int64_t *alone_calls) {
    const trace *t = x->t;
    int64_t (*sums)[2] = (int64_t (*)[2])zeroed(t->memory_count + 1, sizeof *sums);
    int64_t *covered = (int64_t *)zeroed(t->memory_count + 1, sizeof *covered);
    for (size_t i = 0; i < t->memory_count; i++)
        for (int k = 0; k < 2; k++) sums[i + 1][k] = wrapping_add(sums[i][k], (t->memory[i].type != 0) == k ? t->memory[i].bytes : 0);
    for (size_t i = 0; i < count; i++) {
        const trace_event *e = &t->events[ops[i].event];
        size_t first = memory_before(t, e->begin_ns), last = memory_before(t, e->begin_ns + e->ns + 1);
        covered[first]++;
        covered[last]--;
        for (int k = 0; k < 2; k++) ops[i].bytes[k] = wrapping_add(sums[last][k], -sums[first][k]);
    }
    for (size_t i = 0; i < t->memory_count; i++) {
        if (i) covered[i] += covered[i - 1];
        if (covered[i]) continue;
        alone[t->memory[i].type != 0] = wrapping_add(alone[t->memory[i].type != 0], t->memory[i].bytes);
        ++*alone_calls;
    }
    free(sums);
    free(covered);
}
/* The only slice within one of its own name is that one (torch's _remove_dup_nodes). */
static void merge_repeats(trace_tables *x, host_op *ops, size_t count) {
    const trace_event *events = x->t->events;
    for (size_t i = 0; i < count; i++) {
        host_op *p;
        if (ops[i].parent == NO_INDEX) continue;
        if (ops[ops[i].parent].alias != NO_INDEX) ops[i].parent = ops[ops[i].parent].alias;
        p = &ops[ops[i].parent];
        if (p->children != 1 || events[p->event].name != events[ops[i].event].name) continue;
        p->children = ops[i].children;
        p->covered_ns = ops[i].covered_ns;
        p->own_device_ns = ops[i].own_device_ns;
        ops[i].alias = ops[i].parent;
    }
}
static int ops_failed(const trace_tables *x, vp_result r) {
    return r == VP_OK ? 0 : complain(exit_code_of(r) == EXIT_USAGE ? EXIT_INPUT : exit_code_of(r), "%s: the table of operations: %s", x->t->path,
                                     vp_result_text(r));
}
static vp_result add_op(trace_tables *x, const host_op *p) {
    const trace_event *e = &x->t->events[p->event];
    vp_op op = vp_op_default();
    op.name = name_at(&x->keys, p->key);
    op.primitive_calls = !p->is_nested_in_own;
    op.host_total_ns = e->ns;
    op.host_self_ns = e->ns - p->covered_ns;
    op.device_total_ns = p->device_ns;
    op.device_self_ns = p->own_device_ns;
    op.host_memory_bytes = p->bytes[0];
    op.host_self_memory_bytes = wrapping_add(p->bytes[0], -p->within_bytes[0]);
    op.device_memory_bytes = p->bytes[1];
    op.device_self_memory_bytes = wrapping_add(p->bytes[1], -p->within_bytes[1]);
    return vp_ops_add(&x->ops, &op);
}
static int table_ops(trace_tables *x, int by_shapes) {
    const trace *t = x->t;
    size_t count;
    host_op *ops = collect_ops(x, by_shapes, &count);
    int64_t alone[2] = {0, 0}, alone_calls = 0;
    vp_result r = VP_OK;
    nest_ops(x, ops, count);
    charge_device(x, ops, count);
    charge_memory(x, ops, count, alone, &alone_calls);
    merge_repeats(x, ops, count);
    for (size_t i = count; i-- > 0;) { /* from within to without */
        host_op *p;
        if (ops[i].alias != NO_INDEX) continue;
        ops[i].device_ns += ops[i].own_device_ns;
        if (ops[i].parent == NO_INDEX) continue;
        p = &ops[ops[i].parent];
        p->device_ns += ops[i].device_ns;
        for (int k = 0; k < 2; k++) p->within_bytes[k] = wrapping_add(p->within_bytes[k], ops[i].bytes[k]);
    }
    if (x->keys.count >= TRACE_ROWS_MAX) {
        free(ops);
        return complain(EXIT_INPUT, "%s: more than %d different operations: this is no trace of a program", t->path, TRACE_ROWS_MAX);
    }
    x->within_ns = (int64_t *)zeroed(t->count, sizeof *x->within_ns);
    for (size_t i = 0; i < count; i++) x->within_ns[ops[i].event] = ops[i].covered_ns;
    x->op_rows = (vp_op *)resize(NULL, (size_t)x->keys.count + 1, sizeof *x->op_rows);
    r = vp_ops_init(&x->ops, x->op_rows, (int64_t)x->keys.count + 1, 0, 0);
    for (size_t i = 0; i < count && r == VP_OK; i++)
        if (ops[i].alias == NO_INDEX && t->events[ops[i].event].category != TRACE_PYTHON) r = add_op(x, &ops[i]);
    if (r == VP_OK && alone_calls) {
        vp_op op = vp_op_default();
        op.name = "[memory]";
        op.calls = op.primitive_calls = alone_calls;
        op.host_memory_bytes = op.host_self_memory_bytes = alone[0];
        op.device_memory_bytes = op.device_self_memory_bytes = alone[1];
        r = vp_ops_add(&x->ops, &op);
    }
    free(ops);
    return ops_failed(x, r);
}

/* ---- devices: what covers a track, kernels, launches, streams */
static int is_cover(const trace_event *e) { return !is_annotation(e->category) && e->category != TRACE_PYTHON; }
static void table_covers(trace_tables *x) {
    const trace *t = x->t;
    size_t count = 0;
    uint32_t track = 0;
    x->covers = (cover *)resize(NULL, t->count, sizeof *x->covers);
    x->cover_start = (size_t *)zeroed((size_t)t->tracks.count + 1, sizeof *x->cover_start);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int64_t end = e->begin_ns + e->ns;
        cover *last = count ? &x->covers[count - 1] : NULL;
        if (!is_cover(e)) continue;
        while (track < e->track) x->cover_start[++track] = count;
        if (count > x->cover_start[track] && e->begin_ns <= last->end) {
            if (end > last->end) last->end = end;
            continue;
        }
        x->covers[count].before = count > x->cover_start[track] ? last->before + (last->end - last->begin) : 0;
        x->covers[count].begin = e->begin_ns;
        x->covers[count++].end = end;
    }
    while (track < t->tracks.count) x->cover_start[++track] = count;
}
static int64_t covered_before(const trace_tables *x, uint32_t track, int64_t ns) {
    size_t first = x->cover_start[track], low = first, high = x->cover_start[track + 1];
    const cover *c;
    while (low < high) { /* the first that begins at ns or later */
        size_t middle = low + (high - low) / 2;
        if (x->covers[middle].begin < ns) low = middle + 1; else high = middle;
    }
    if (low == first) return 0;
    c = &x->covers[low - 1];
    return c->before + ((ns < c->end ? ns : c->end) - c->begin);
}
static trace_row *row_new(trace_rows *rows, const char *name, const char *where) {
    trace_row *r;
    if (!(rows->count & (rows->count - 1))) rows->items = (trace_row *)resize(rows->items, rows->count ? rows->count * 2 : 1, sizeof *rows->items);
    r = &rows->items[rows->count++];
    memset(r, 0, sizeof *r);
    r->name = name;
    r->where = where;
    r->min_ns = INT64_MAX;
    return r;
}
static void row_add(trace_row *r, const trace_event *e) {
    r->calls++;
    r->total_ns += e->ns;
    r->bytes = wrapping_add(r->bytes, e->bytes);
    if (e->ns < r->min_ns) r->min_ns = e->ns;
    if (e->ns > r->max_ns) r->max_ns = e->ns;
}
static int total_order(const void *left, const void *right) {
    const trace_row *a = (const trace_row *)left, *b = (const trace_row *)right;
    if (a->total_ns != b->total_ns) return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}
/* Rows by name of the slices that `which` tells; annotations of host and device apart. */
static void table_names(trace_tables *x, trace_rows *rows, int (*which)(int category)) {
    const trace *t = x->t;
    uint32_t *row_of = (uint32_t *)resize(NULL, (size_t)t->names.count * 2 + 1, sizeof *row_of);
    memset(row_of, 0xff, (size_t)t->names.count * 2 * sizeof *row_of);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        int on_device = !is_host_category(e->category);
        uint32_t *at = &row_of[(size_t)e->name * 2 + (size_t)on_device];
        if (!which(e->category)) continue;
        if (*at == NO_INDEX) {
            *at = (uint32_t)rows->count;
            row_new(rows, name_at(&t->names, e->name), on_device ? "device" : "host");
        }
        row_add(&rows->items[*at], e);
        if (e->category == TRACE_USER) rows->items[*at].busy_ns += x->within_ns[i];
        else if (e->category == TRACE_DEVICE_USER)
            rows->items[*at].busy_ns += covered_before(x, e->track, e->begin_ns + e->ns) - covered_before(x, e->track, e->begin_ns);
    }
    free(row_of);
    if (rows->count) qsort(rows->items, rows->count, sizeof *rows->items, total_order);
}
static int is_runtime_call(int category) { return category == TRACE_RUNTIME; }

/* Time between the end of the launching call and the start on the device (HTA's launch delay, but not cut at 0). */
static void table_launches(trace_tables *x) {
    const trace *t = x->t;
    size_t count, delays = 0;
    id_index *calls = index_events(t, 1, &count);
    double *delay = (double *)resize(NULL, t->count, sizeof *delay);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        uint32_t call;
        if (!is_device_work(e->category)) continue;
        x->kernel_ns += e->ns;
        call = id_find(calls, count, e->correlation);
        if (call == NO_INDEX) { x->unlaunched++; continue; }
        delay[delays++] = (double)(e->begin_ns - t->events[call].begin_ns - t->events[call].ns) / 1e3;
    }
    x->launched = (int64_t)delays;
    if (delays) vp_statistics_compute(delay, delays, delay, &x->delay);
    free(delay);
    free(calls);
    table_names(x, &x->calls, is_runtime_call);
}

/* A stream's queue: one more from the start of the launching call, one less when the device begins (HTA's queue length). */
typedef struct queue_change { int64_t ns; int by; } queue_change;
static int change_order(const void *left, const void *right) {
    const queue_change *a = (const queue_change *)left, *b = (const queue_change *)right;
    if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
    return b->by - a->by;
}
static void measure_queue(trace_row *r, queue_change *changes, size_t count) {
    double area = 0;
    int64_t length = 0;
    if (!count) return;
    qsort(changes, count, sizeof *changes, change_order);
    for (size_t i = 0; i < count; i++) {
        if (i) area += (double)length * (double)(changes[i].ns - changes[i - 1].ns);
        length += changes[i].by;
        if (length > r->queue_most) r->queue_most = length;
    }
    if (changes[count - 1].ns > changes[0].ns) r->queue_mean = area / (double)(changes[count - 1].ns - changes[0].ns);
}
/* One track: slices first .. last, in the order of their begin. A gap is the host's where the next slice was launched after it began, the
 * device's own below 30 ns (both as HTA has it). */
static void table_track(trace_tables *x, size_t first, size_t last, const id_index *calls, size_t call_count) {
    const trace *t = x->t;
    uint32_t track = t->events[first].track, label = t->labels[track];
    queue_change *changes = (queue_change *)resize(NULL, (last - first) * 2, sizeof *changes);
    size_t change_count = 0;
    int64_t end = 0, begin = 0;
    trace_row *r = NULL;
    for (size_t i = first; i < last; i++) {
        const trace_event *e = &t->events[i];
        uint32_t call;
        if (!is_cover(e)) continue;
        if (!r) {
            r = row_new(&x->tracks, label == NO_INDEX ? name_at(&t->tracks, track) : name_at(&t->names, label),
                        is_host_category(e->category) ? "host" : "device");
            begin = end = e->begin_ns;
        }
        row_add(r, e);
        call = is_device_work(e->category) ? id_find(calls, call_count, e->correlation) : NO_INDEX;
        if (e->begin_ns > end && is_device_work(e->category)) {
            if (call != NO_INDEX && t->events[call].begin_ns > end) r->host_wait_ns += e->begin_ns - end;
            else if (e->begin_ns - end < 30) r->kernel_wait_ns += e->begin_ns - end;
        }
        if (e->begin_ns + e->ns > end) end = e->begin_ns + e->ns;
        if (call == NO_INDEX) continue;
        changes[change_count].ns = t->events[call].begin_ns;
        changes[change_count++].by = 1;
        changes[change_count].ns = e->begin_ns;
        changes[change_count++].by = -1;
    }
    if (r) {
        r->total_ns = end - begin;
        r->busy_ns = covered_before(x, track, end) - covered_before(x, track, begin);
        measure_queue(r, changes, change_count);
    }
    free(changes);
}
static void table_tracks(trace_tables *x) {
    const trace *t = x->t;
    size_t count;
    id_index *calls = index_events(t, 1, &count);
    for (size_t i = 0, next; i < t->count; i = next) {
        for (next = i; next < t->count && t->events[next].track == t->events[i].track; next++) {}
        table_track(x, i, next, calls, count);
    }
    free(calls);
}
/* Per device: the most that was allocated and reserved, and what was left at the end. */
static void table_memory(trace_tables *x) {
    const trace *t = x->t;
    for (size_t i = 0; i < t->memory_count; i++) {
        const trace_memory *m = &t->memory[i];
        trace_peak *p = &x->peaks[m->device + 1];
        if (!p->changes++) p->allocated = p->reserved = -1;
        if (m->allocated > p->allocated) {
            p->allocated = m->allocated;
            p->at_ns = m->ns;
        }
        if (m->reserved > p->reserved) p->reserved = m->reserved;
        p->left = wrapping_add(p->left, m->bytes);
    }
}
static int trace_summarise(trace_tables *x, trace *t, int by_shapes) {
    int code;
    memset(x, 0, sizeof *x);
    x->t = t;
    order_slices(t);
    if (t->memory_count) qsort(t->memory, t->memory_count, sizeof *t->memory, memory_order);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (!i || e->begin_ns < x->first_ns) x->first_ns = e->begin_ns;
        if (!i || e->begin_ns + e->ns > x->last_ns) x->last_ns = e->begin_ns + e->ns;
    }
    if ((code = table_ops(x, by_shapes)) != 0) return code;
    table_covers(x);
    table_names(x, &x->annotations, is_annotation);
    table_names(x, &x->kernels, is_device_work);
    table_launches(x);
    table_tracks(x);
    table_memory(x);
    return 0;
}
static void tables_free(trace_tables *x) {
    text_table_free(&x->keys);
    free(x->op_rows);
    free(x->within_ns);
    free(x->covers);
    free(x->cover_start);
    free(x->annotations.items);
    free(x->kernels.items);
    free(x->calls.items);
    free(x->tracks.items);
}

/* ---- as text */
static char *time_text(double ns, char out[32]) { /* as torch prints times */
    if (ns >= 1e9) snprintf(out, 32, "%.3fs", ns / 1e9);
    else if (ns >= 1e6) snprintf(out, 32, "%.3fms", ns / 1e6);
    else snprintf(out, 32, "%.3fus", ns / 1e3);
    return out;
}
static void print_name(const char *name) { /* 55 columns, the rest is cut between characters */
    char text[56];
    size_t bytes = strlen(name), columns = 0;
    if (bytes > 55) {
        size_t kept = 52;
        while (kept && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
        snprintf(text, sizeof text, "%.*s...", (int)kept, name);
    } else snprintf(text, sizeof text, "%s", name);
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p < 32 || *p == 127) *p = '?';
        columns += ((unsigned char)*p & 0xc0) != 0x80;
    }
    printf("%s%*s", text, columns < 55 ? (int)(55 - columns) : 0, "");
}
static void print_more(size_t count, int64_t limit) {
    if (limit >= 0 && (size_t)limit < count) printf("... %zu more (--row_limit)\n", count - (size_t)limit);
}
static size_t shown(const trace_rows *rows, int64_t limit) { return limit >= 0 && (size_t)limit < rows->count ? (size_t)limit : rows->count; }
static double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

static void print_annotations(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    double whole = (double)(x->last_ns - x->first_ns);
    printf("\n%-55s %-6s %9s %12s %12s %12s %12s %8s %8s\n", "annotation", "where", "calls", "total", "avg", "busy", "idle", "idle %", "share %");
    for (size_t i = 0; i < shown(&x->annotations, limit); i++) {
        const trace_row *r = &x->annotations.items[i];
        print_name(r->name);
        printf(" %-6s %9lld %12s %12s %12s %12s %8.2f %8.2f\n", r->where, (long long)r->calls, time_text((double)r->total_ns, a),
               time_text((double)r->total_ns / (double)r->calls, b), time_text((double)r->busy_ns, c),
               time_text((double)(r->total_ns - r->busy_ns), d), share_of((double)(r->total_ns - r->busy_ns), (double)r->total_ns),
               share_of((double)r->total_ns, whole));
    }
    print_more(x->annotations.count, limit);
}
static void print_calls(const trace_rows *rows, const char *head, double whole, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    printf("\n%-55s %9s %12s %12s %12s %12s %8s\n", head, "calls", "total", "avg", "min", "max", "share %");
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const trace_row *r = &rows->items[i];
        print_name(r->name);
        printf(" %9lld %12s %12s %12s %12s %8.2f\n", (long long)r->calls, time_text((double)r->total_ns, a),
               time_text((double)r->total_ns / (double)r->calls, b), time_text((double)r->min_ns, c), time_text((double)r->max_ns, d),
               share_of((double)r->total_ns, whole));
    }
    print_more(rows->count, limit);
}
static void print_launches(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32];
    double whole = 0;
    for (size_t i = 0; i < x->calls.count; i++) whole += (double)x->calls.items[i].total_ns;
    if (x->calls.count) print_calls(&x->calls, "call of the runtime", whole, limit);
    if (!x->launched) return;
    printf("launch delay, end of the call to start on the device: mean %s, P50 %s, P99 %s, most %s", time_text(x->delay.mean * 1e3, a),
           time_text(x->delay.p50 * 1e3, b), time_text(x->delay.p99 * 1e3, c), time_text(x->delay.max * 1e3, d));
    printf("; %lld device slices, %lld more without their launch\n", (long long)x->launched, (long long)x->unlaunched);
}
static void print_tracks(const trace_tables *x, int64_t limit) {
    char a[32], b[32], c[32], d[32], e[32];
    printf("\n%-55s %-6s %9s %12s %12s %12s %8s %12s %12s %7s %9s\n", "track", "where", "slices", "span", "busy", "idle", "idle %", "host wait",
           "kernel wait", "queue", "mean");
    for (size_t i = 0; i < shown(&x->tracks, limit); i++) {
        const trace_row *r = &x->tracks.items[i];
        int on_device = !strcmp(r->where, "device");
        print_name(r->name);
        printf(" %-6s %9lld %12s %12s %12s %8.2f", r->where, (long long)r->calls, time_text((double)r->total_ns, a), time_text((double)r->busy_ns, b),
               time_text((double)(r->total_ns - r->busy_ns), c), share_of((double)(r->total_ns - r->busy_ns), (double)r->total_ns));
        if (on_device)
            printf(" %12s %12s %7lld %9.3f\n", time_text((double)r->host_wait_ns, d), time_text((double)r->kernel_wait_ns, e),
                   (long long)r->queue_most, r->queue_mean);
        else printf(" %12s %12s %7s %9s\n", "-", "-", "-", "-");
    }
    print_more(x->tracks.count, limit);
}
static void print_memory(const trace_tables *x) {
    printf("\n%-12s %9s %16s %16s %16s   %s\n", "memory", "changes", "most allocated", "most reserved", "taken - given", "most at");
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const trace_peak *p = &x->peaks[i];
        char name[24], at[32];
        if (!p->changes) continue;
        if (i) snprintf(name, sizeof name, "device %d", i - 1); else snprintf(name, sizeof name, "CPU");
        printf("%-12s %9lld %16lld %16lld %16lld   %s\n", name, (long long)p->changes, (long long)p->allocated, (long long)p->reserved,
               (long long)p->left, time_text((double)(p->at_ns - x->first_ns), at));
    }
}
static const trace_row *row_named(const trace_rows *rows, const char *name) {
    for (size_t i = 0; i < rows->count; i++) if (!strcmp(rows->items[i].name, name)) return &rows->items[i];
    return NULL;
}
static void print_trace_summary(const trace_tables *x) {
    const trace *t = x->t;
    const trace_row *steps = row_named(&x->annotations, "ProfilerStep*");
    char a[32], b[32], c[32];
    printf("trace     ");
    print_visible(t->path, strlen(t->path));
    printf(": %lld events in %lld bytes%s\n", (long long)t->seen, (long long)t->bytes, t->is_cut ? ", CUT OFF there" : "");
    printf("events    %zu slices, %zu changes of memory, %lld flows, %lld counter values\n", t->count, t->memory_count, (long long)t->flows,
           (long long)t->counters);
    if (t->no_duration + t->no_time + t->no_name + t->other)
        printf("left out  %lld without dur, %lld whose ts or dur is no number in range, %lld without a name, %lld of another kind\n",
               (long long)t->no_duration, (long long)t->no_time, (long long)t->no_name, (long long)t->other);
    if (x->overlaps) printf("overlaps  %lld slices of host threads overlap without nesting\n", (long long)x->overlaps);
    printf("duration  %s, first slice to last\n", time_text((double)(x->last_ns - x->first_ns), a));
    if (steps)
        printf("steps     %lld, avg %s, min %s, max %s\n", (long long)steps->calls, time_text((double)steps->total_ns / (double)steps->calls, a),
               time_text((double)steps->min_ns, b), time_text((double)steps->max_ns, c));
    if (t->device_count >= 0)
        printf("devices   %s%s\n", t->devices == NO_INDEX ? "none: CPU only" : name_at(&t->names, t->devices),
               t->is_emulated && t->devices != NO_INDEX && !strstr(name_at(&t->names, t->devices), "emulated") ? " (emulated)" : "");
    if (t->rank >= 0) printf("rank      %lld of %lld\n", (long long)t->rank, (long long)t->world_size);
    if (t->host_name != NO_INDEX) {
        printf("host      ");
        print_visible(name_at(&t->names, t->host_name), strlen(name_at(&t->names, t->host_name)));
        putchar('\n');
    }
}

/* ---- as CSV and JSON; times in us with the file's three decimals */
static double us_of(int64_t ns) { return (double)ns / 1e3; }
static void csv_whole(text_buffer *out, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, ",%lld", (long long)value);
    text_add_string(out, text);
}
/* Empty: means nothing for this kind of row. */
static void csv_trace_row(text_buffer *out, const trace_row *r, double whole, int has_busy, int has_queue) {
    const double none = (double)NAN;
    csv_text(out, r->name);
    text_add_string(out, ",");
    csv_text(out, r->where);
    csv_whole(out, r->calls);
    csv_number(out, us_of(r->total_ns));
    csv_number(out, us_of(r->total_ns) / (double)r->calls);
    csv_number(out, us_of(r->min_ns));
    csv_number(out, us_of(r->max_ns));
    csv_number(out, share_of((double)r->total_ns, whole));
    csv_number(out, has_busy ? us_of(r->busy_ns) : none);
    csv_number(out, has_busy ? us_of(r->total_ns - r->busy_ns) : none);
    csv_number(out, has_queue ? us_of(r->host_wait_ns) : none);
    csv_number(out, has_queue ? us_of(r->kernel_wait_ns) : none);
    csv_number(out, has_queue ? (double)r->queue_most : none);
    csv_number(out, has_queue ? r->queue_mean : none);
    csv_whole(out, r->bytes);
    text_add_string(out, "\n");
}
static int print_trace_csv(trace_tables *x, const char *which, int64_t limit) {
    const trace_rows *rows = !strcmp(which, "annotations") ? &x->annotations : !strcmp(which, "kernels") ? &x->kernels
                           : !strcmp(which, "launches") ? &x->calls : !strcmp(which, "tracks") ? &x->tracks : NULL;
    text_buffer out = {NULL, 0, 0};
    double whole = rows == &x->kernels ? (double)x->kernel_ns : (double)(x->last_ns - x->first_ns);
    if (!strcmp(which, "all") || !strcmp(which, "ops")) return ops_failed(x, vp_ops_print_csv(&x->ops, file_sink, stdout));
    if (rows) {
        int is_tracks = rows == &x->tracks;
        text_add_string(&out, "name,where,calls,total_us,avg_us,min_us,max_us,share_percent,busy_us,idle_us,host_wait_us,kernel_wait_us,queue_most,"
                              "queue_mean,bytes\n");
        for (size_t i = 0; i < shown(rows, limit); i++)
            csv_trace_row(&out, &rows->items[i], whole, is_tracks || rows == &x->annotations, is_tracks && !strcmp(rows->items[i].where, "device"));
    } else {
        text_add_string(&out, "device,changes,most_allocated_bytes,most_reserved_bytes,left_bytes,at_us\n");
        for (int i = 0; i < TRACE_DEVICES; i++) {
            const trace_peak *p = &x->peaks[i];
            char line[200];
            if (!p->changes) continue;
            snprintf(line, sizeof line, "%s%d,%lld,%lld,%lld,%lld,%.3f\n", i ? "device " : "CPU ", i ? i - 1 : 0, (long long)p->changes,
                     (long long)p->allocated, (long long)p->reserved, (long long)p->left, us_of(p->at_ns - x->first_ns));
            text_add_string(&out, line);
        }
    }
    fwrite(out.data, 1, out.bytes, stdout); /* main checks stdout */
    free(out.data);
    return 0;
}

static void put_trace_rows(vp_json_writer *w, const char *key, const trace_rows *rows, double whole, int64_t limit) {
    vp_json_key(w, key);
    vp_json_begin_array(w);
    for (size_t i = 0; i < shown(rows, limit); i++) {
        const trace_row *r = &rows->items[i];
        vp_json_begin_object(w);
        put_text(w, "name", r->name);
        put_text(w, "where", r->where);
        put_int(w, "calls", r->calls);
        put_double(w, "total_us", us_of(r->total_ns));
        put_double(w, "avg_us", us_of(r->total_ns) / (double)r->calls);
        put_double(w, "min_us", us_of(r->min_ns));
        put_double(w, "max_us", us_of(r->max_ns));
        put_double(w, "share_percent", share_of((double)r->total_ns, whole));
        if (!strcmp(key, "annotations") || !strcmp(key, "tracks")) {
            put_double(w, "busy_us", us_of(r->busy_ns));
            put_double(w, "idle_us", us_of(r->total_ns - r->busy_ns));
        }
        if (!strcmp(key, "tracks") && !strcmp(r->where, "device")) {
            put_double(w, "host_wait_us", us_of(r->host_wait_ns));
            put_double(w, "kernel_wait_us", us_of(r->kernel_wait_ns));
            put_int(w, "queue_most", r->queue_most);
            put_double(w, "queue_mean", r->queue_mean);
        }
        if (r->bytes) put_int(w, "bytes", r->bytes);
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_trace_memory(vp_json_writer *w, const trace_tables *x) {
    vp_json_key(w, "memory");
    vp_json_begin_array(w);
    for (int i = 0; i < TRACE_DEVICES; i++) {
        const trace_peak *p = &x->peaks[i];
        if (!p->changes) continue;
        vp_json_begin_object(w);
        put_text(w, "device_type", i ? "device" : "CPU");
        put_int(w, "device", i - 1);
        put_int(w, "changes", p->changes);
        put_int(w, "most_allocated_bytes", p->allocated);
        put_int(w, "most_reserved_bytes", p->reserved);
        put_int(w, "left_bytes", p->left);
        put_double(w, "at_us", us_of(p->at_ns - x->first_ns));
        vp_json_end_object(w);
    }
    vp_json_end_array(w);
}
static void put_trace_summary(vp_json_writer *w, const trace_tables *x) {
    const trace *t = x->t;
    const trace_row *steps = row_named(&x->annotations, "ProfilerStep*");
    vp_json_key(w, "summary");
    vp_json_begin_object(w);
    put_text(w, "file", t->path);
    put_int(w, "bytes", t->bytes);
    put_bool(w, "cut_off", t->is_cut);
    put_int(w, "events", t->seen);
    put_int(w, "slices", (int64_t)t->count);
    put_int(w, "without_dur", t->no_duration);
    put_int(w, "with_bad_times", t->no_time);
    put_int(w, "without_name", t->no_name);
    put_int(w, "of_another_kind", t->other);
    put_int(w, "overlaps", x->overlaps);
    put_double(w, "duration_us", us_of(x->last_ns - x->first_ns));
    put_int(w, "steps", steps ? steps->calls : 0);
    put_double(w, "step_avg_us", steps ? us_of(steps->total_ns) / (double)steps->calls : (double)NAN);
    put_text(w, "devices", t->devices == NO_INDEX ? NULL : name_at(&t->names, t->devices));
    put_bool(w, "emulated", t->is_emulated);
    if (t->rank < 0) put_null(w, "rank"); else put_int(w, "rank", t->rank);
    if (t->world_size < 0) put_null(w, "world_size"); else put_int(w, "world_size", t->world_size);
    put_text(w, "host_name", t->host_name == NO_INDEX ? NULL : name_at(&t->names, t->host_name));
    put_text(w, "trace_name", t->trace_name == NO_INDEX ? NULL : name_at(&t->names, t->trace_name));
    vp_json_end_object(w);
}
static int print_trace_json(trace_tables *x, int64_t limit) {
    vp_json_writer w;
    double whole = (double)(x->last_ns - x->first_ns), calls = 0;
    for (size_t i = 0; i < x->calls.count; i++) calls += (double)x->calls.items[i].total_ns;
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-trace-1");
    put_trace_summary(&w, x);
    put_trace_rows(&w, "annotations", &x->annotations, whole, limit);
    vp_json_key(&w, "ops");
    vp_ops_write_json(&w, &x->ops);
    put_trace_rows(&w, "kernels", &x->kernels, (double)x->kernel_ns, limit);
    vp_json_key(&w, "launches");
    vp_json_begin_object(&w);
    put_trace_rows(&w, "calls", &x->calls, calls, limit);
    put_int(&w, "device_slices_with_launch", x->launched);
    put_int(&w, "device_slices_without_launch", x->unlaunched);
    vp_json_key(&w, "delay_us");
    if (x->launched) {
        vp_json_begin_object(&w);
        put_double(&w, "mean", x->delay.mean);
        put_double(&w, "min", x->delay.min);
        put_double(&w, "p50", x->delay.p50);
        put_double(&w, "p95", x->delay.p95);
        put_double(&w, "p99", x->delay.p99);
        put_double(&w, "max", x->delay.max);
        vp_json_end_object(&w);
    } else vp_json_null(&w);
    vp_json_end_object(&w);
    put_trace_rows(&w, "tracks", &x->tracks, whole, limit);
    put_trace_memory(&w, x);
    vp_json_end_object(&w);
    putchar('\n');
    return ops_failed(x, vp_json_finish(&w));
}

static int print_trace_text(trace_tables *x, const char *which, int64_t limit, const vp_ops_print_options *how, int is_cprofile) {
    int all = !strcmp(which, "all");
    vp_result r = VP_OK;
    if (all || !strcmp(which, "summary")) print_trace_summary(x);
    if ((all && x->annotations.count) || !strcmp(which, "annotations")) print_annotations(x, limit);
    if ((all && x->ops.count) || !strcmp(which, "ops")) {
        if (all) putchar('\n');
        r = (is_cprofile ? vp_ops_print_cprofile : vp_ops_print_torch)(&x->ops, how, file_sink, stdout);
        if (!is_cprofile) print_more((size_t)x->ops.count, limit);
    }
    if ((all && x->kernels.count) || !strcmp(which, "kernels")) print_calls(&x->kernels, "kernel or copy", (double)x->kernel_ns, limit);
    if ((all && x->calls.count) || !strcmp(which, "launches")) print_launches(x, limit);
    if ((all && x->tracks.count) || !strcmp(which, "tracks")) print_tracks(x, limit);
    if ((all && x->t->memory_count) || !strcmp(which, "memory")) print_memory(x);
    return ops_failed(x, r);
}

/* The operations in the words that --profile_format, --csv or --json ask for, to stdout. */
static vp_result print_saved(const options *o, vp_ops *ops, const vp_ops_print_options *how) {
    vp_json_writer w;
    vp_result r;
    if (given(o, "csv")) return vp_ops_print_csv(ops, file_sink, stdout);
    if (!given(o, "json"))
        return (strcmp(text_of(o, "profile_format"), "torch") ? vp_ops_print_cprofile : vp_ops_print_torch)(ops, how, file_sink, stdout);
    vp_json_writer_init_sink(&w, file_sink, stdout, 1);
    vp_ops_write_json(&w, ops);
    r = vp_json_finish(&w);
    putchar('\n');
    return r;
}
/* What run --profile saved as JSON, sorted again. */
static int show_saved(const options *o, const char *path) {
    vp_ops_print_options how = vp_ops_print_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL, *held = NULL;
    size_t bytes = 0, capacity = 64;
    const char *key = text_of(o, "sort_by");
    vp_op *rows = NULL;
    vp_ops ops;
    int code = 0;
    vp_result r = vp_file_read(path, JSON_FILE_BYTES_MAX, &text, &bytes, &error);
    if (r == VP_OK) r = parse_json(&p, text, bytes, &error);
    if (r == VP_OK) {
        uint32_t table = vp_json_get(&p.json, 0, "ops"), array;
        if (table == VP_JSON_NONE) table = 0;
        array = vp_json_get(&p.json, table, "rows");
        if (node_is(&p.json, array, VP_JSON_ARRAY)) capacity += p.json.nodes[array].count;
        rows = (vp_op *)resize(NULL, capacity, sizeof *rows);
        held = (char *)resize(NULL, bytes + 1, 1);
        r = vp_ops_init(&ops, rows, (int64_t)capacity, 0, 0);
        if (r == VP_OK) r = vp_ops_read_json(&ops, &p.json, table, held, bytes + 1, &error);
    }
    if (r == VP_OK && key) r = vp_ops_sort(&ops, key);
    how.row_limit = number_of(o, "row_limit");
    how.with_flops = how.with_rates = 1;
    for (int64_t i = 0; r == VP_OK && i < ops.count; i++) how.with_memory |= ops.rows[i].host_memory_bytes || ops.rows[i].device_memory_bytes;
    if (r == VP_OK) r = print_saved(o, &ops, &how);
    if (r != VP_OK) code = complain_result(r == VP_ERR_MEMORY ? EXIT_DEVICE : EXIT_INPUT, path, r, &error);
    else if (!given(o, "csv") && !given(o, "json") && !strcmp(text_of(o, "profile_format"), "torch")) print_more((size_t)ops.count, how.row_limit);
    free(p.nodes);
    free(text);
    free(held);
    free(rows);
    return code;
}
static int command_trace(const options *o) {
    vp_ops_print_options print = vp_ops_print_options_default();
    int64_t limit = given(o, "row_limit") || !(given(o, "json") || given(o, "csv")) ? number_of(o, "row_limit") : -1;
    const char *key = text_of(o, "sort_by"), *which = text_of(o, "table");
    trace t;
    trace_tables x;
    int code;
    if (!o->operand_count) return complain(EXIT_USAGE, "trace needs a file: a *.pt.trace.json, or - for stdin");
    if (given(o, "json") && given(o, "csv")) return complain(EXIT_USAGE, "--json and --csv exclude each other");
    if (given(o, "json") && given(o, "table")) return complain(EXIT_USAGE, "--json has all tables: leave --table out");
    if (given(o, "csv") && !strcmp(which, "summary")) return complain(EXIT_USAGE, "--csv has tables only, no summary");
    if ((code = check_sort_key(key)) != 0) return code;
    memset(&x, 0, sizeof x);
    code = trace_read(&t, o->operands[0], given(o, "partial"));
    if (code == IS_TABLE) {
        trace_free(&t);
        if (!strcmp(o->operands[0], "-")) return complain(EXIT_USAGE, "a saved table of operations is read from a file, not from stdin");
        return show_saved(o, o->operands[0]);
    }
    if (!code) code = trace_summarise(&x, &t, given(o, "group_by_input_shape"));
    if (!code) {
        x.ops.device_name = x.kernel_ns ? "CUDA" : NULL;
        print.row_limit = limit;
        print.with_memory = t.memory_count > 0;
        if (given(o, "group_by_input_shape")) print.max_name_column_width = -1;
        code = ops_failed(&x, vp_ops_sort(&x.ops, key ? key : x.kernel_ns ? "device_time_total" : "self_cpu_time_total"));
    }
    if (!code) {
        if (given(o, "json")) code = print_trace_json(&x, limit);
        else if (given(o, "csv")) code = print_trace_csv(&x, which, limit);
        else code = print_trace_text(&x, which, limit, &print, strcmp(text_of(o, "profile_format"), "torch"));
    }
    tables_free(&x);
    trace_free(&t);
    return code;
}

/* =============================================================================================== info >>info */
enum { ROW_CLASSES = 3 }; /* of the GEMM kernels' choice: one row, few, many */
static const int32_t CLASS_ROWS[ROW_CLASSES] = {1, 8, 1024};

typedef struct cpu_info {
    char name[200];
    int64_t threads, memory_bytes, available_bytes; /* -1: unknown */
    char chosen[2][ROW_CLASSES][24];                /* GEMM kernels in bf16 and fp32 */
} cpu_info;

static int64_t meminfo_bytes(const char *text, const char *key) { /* "\nKey:   N kB" */
    const char *p = text ? strstr(text, key) : NULL;
    return p ? strtoll(p + strlen(key), NULL, 10) * 1024 : -1;
}
/* Name and threads come from an engine of a tiny model, as its kernels do: "cpu: NAME, N threads". */
static int read_cpu(cpu_info *c) {
    vp_model_config config;
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL, *comma;
    size_t bytes = 0;
    vp_result r = vp_model_config_preset("tiny", &config);
    for (int fp32 = 0; fp32 < 2 && r == VP_OK; fp32++) {
        vp_engine_options e = vp_engine_options_default();
        vp_engine *engine = NULL;
        e.config = &config;
        e.device = "cpu";
        e.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
        e.max_sequence = 1;
        if ((r = vp_engine_open(&e, &engine, &error)) != VP_OK) break;
        snprintf(c->name, sizeof c->name, "%s", vp_engine_device(engine) + strlen("cpu: "));
        for (int i = 0; i < ROW_CLASSES; i++) snprintf(c->chosen[fp32][i], sizeof c->chosen[fp32][i], "%s", vp_engine_gemm(engine, CLASS_ROWS[i]));
        vp_engine_close(engine);
    }
    if (r != VP_OK) return complain_result(exit_code_of(r), "info", r, &error);
    comma = strrchr(c->name, ',');
    c->threads = comma ? strtoll(comma + 1, NULL, 10) : -1;
    if (comma) *comma = 0;
    if (vp_file_read("/proc/meminfo", 1 << 20, &text, &bytes, NULL) != VP_OK) text = NULL;
    c->memory_bytes = meminfo_bytes(text, "MemTotal:");
    c->available_bytes = meminfo_bytes(text, "MemAvailable:");
    free(text);
    return 0;
}

/* what a checkpoint holds */
enum { PART_VISION, PART_EXPERTS, PART_LANGUAGE, PART_EMBEDDINGS, PART_COUNT };
static const char *const PART_KEYS[PART_COUNT] = {"vision", "experts", "other_llm", "embeddings_and_head"};
static const char *const DTYPE_KEYS[] = {"F32", "BF16", "F16"}; /* by vp_dtype */
typedef struct holdings { int64_t parameters, parts[PART_COUNT], tensors, dtypes[3], tokens; } holdings;

static void read_holdings(const model *m, holdings *h) {
    vp_tensor_spec spec;
    memset(h, 0, sizeof *h);
    h->tensors = vp_model_tensor_count(&m->config);
    for (int64_t i = 0; i < h->tensors && vp_model_tensor(&m->config, i, &spec) == VP_OK; i++) {
        int64_t count = spec.shape[0] * (spec.dimensions > 1 ? spec.shape[1] : 1);
        vp_tensor tensor;
        h->parameters += count;
        h->parts[strstr(spec.name, "vision_backbone.") ? PART_VISION : strstr(spec.name, ".experts.") ? PART_EXPERTS
                 : strstr(spec.name, ".wte.") || strstr(spec.name, "lm_head") ? PART_EMBEDDINGS : PART_LANGUAGE] += count;
        if (m->checkpoint && vp_checkpoint_find(m->checkpoint, spec.name, &tensor) == VP_OK) h->dtypes[tensor.dtype]++;
    }
    for (int32_t id = 0; id < m->config.embedding_size + m->config.additional_vocab_size; id++) { /* ids that stand for a text */
        char nothing[1];
        size_t needed = 0;
        vp_tokenizer_decode(m->tokenizer, &id, 1, 0, nothing, 0, &needed);
        h->tokens += needed > 0;
    }
}
/* of keys and values of all blocks; see vp_engine_open */
static int64_t cache_bytes(const model *m, int fp32) { return (fp32 ? 8 : 4) * (int64_t)m->config.d_model * m->config.block_count; }

static void put_model(vp_json_writer *w, const model *m, const holdings *h) {
    const vp_model_config *c = &m->config;
    vp_json_begin_object(w);
    put_text(w, "name", m->name);
    put_bool(w, "synthetic", m->synthetic);
    put_text(w, "architecture", m->architecture);
    put_int(w, "num_blocks", c->block_count);
    put_int(w, "d_model", c->d_model);
    put_int(w, "num_heads", c->head_count);
    put_int(w, "num_experts", c->expert_count);
    put_int(w, "expert_dim", c->expert_dim);
    put_int(w, "top_k", c->top_k);
    put_int(w, "embedding_size", c->embedding_size);
    put_int(w, "max_positions", c->max_positions);
    put_int(w, "vit_num_blocks", c->vit_block_count);
    put_int(w, "vit_blocks_needed", c->vit_blocks_needed);
    put_int(w, "vit_width", c->vit_width);
    put_int(w, "vit_num_heads", c->vit_head_count);
    put_int(w, "vit_mlp_dim", c->vit_mlp_dim);
    put_int(w, "tokenizer_size", h->tokens);
    vp_json_key(w, "parameters");
    vp_json_begin_object(w);
    put_int(w, "total", h->parameters);
    for (int i = 0; i < PART_COUNT; i++) put_int(w, PART_KEYS[i], h->parts[i]);
    vp_json_end_object(w);
    put_int(w, "tensors", h->tensors);
    vp_json_key(w, "dtypes"); /* tensors of each */
    vp_json_begin_object(w);
    for (int i = 0; i < 3; i++) put_int(w, DTYPE_KEYS[i], h->dtypes[i]);
    vp_json_end_object(w);
    put_bool(w, "packed", is_packed(m)); /* for the CPU, in bf16 */
    put_int(w, "files", m->file_count);
    put_int(w, "file_bytes", m->file_bytes);
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_json_key(w, fp32 ? "fp32" : "bf16");
        vp_json_begin_object(w);
        put_int(w, "weights_bytes", (fp32 ? 4 : 2) * h->parameters);
        put_int(w, "kv_cache_bytes_per_token", cache_bytes(m, fp32));
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
}

static void print_model(const model *m, const holdings *h) {
    const vp_model_config *c = &m->config;
    printf("model       %s: %s%s\n", m->name, m->architecture, m->synthetic ? ", random weights" : "");
    printf("language    %d blocks of width %d, %d heads; %d experts of width %d, top_k %d; %d positions at most\n", c->block_count, c->d_model,
           c->head_count, c->expert_count, c->expert_dim, c->top_k, c->max_positions);
    printf("vision      %d blocks of width %d (%d are run), %d heads, mlp %d\n", c->vit_block_count, c->vit_width, c->vit_blocks_needed,
           c->vit_head_count, c->vit_mlp_dim);
    printf("tokenizer   %lld tokens; %d rows of embeddings\n", (long long)h->tokens, c->embedding_size + c->additional_vocab_size);
    printf("parameters  %.4g M: vision %.4g M, experts %.4g M, other LLM %.4g M, embeddings and head %.4g M\n", (double)h->parameters / 1e6,
           (double)h->parts[PART_VISION] / 1e6, (double)h->parts[PART_EXPERTS] / 1e6, (double)h->parts[PART_LANGUAGE] / 1e6,
           (double)h->parts[PART_EMBEDDINGS] / 1e6);
    if (!m->synthetic) {
        printf("files       %lld tensors (%s", (long long)h->tensors, is_packed(m) ? "packed for the CPU, bf16" : "");
        for (int i = 0, shown = 0; i < 3; i++) if (h->dtypes[i]) printf("%s%lld %s", shown++ ? ", " : "", (long long)h->dtypes[i], DTYPE_KEYS[i]);
        printf(") in %lld file%s, %.4g GB\n", (long long)m->file_count, m->file_count == 1 ? "" : "s", (double)m->file_bytes / 1e9);
    }
    for (int fp32 = 0; fp32 < 2; fp32++)
        printf("%-11s weights %.4g GB, KV cache %lld bytes a token (%.4g GB for all positions), and buffers\n", fp32 ? "  fp32" : "  bf16",
               (fp32 ? 4 : 2) * (double)h->parameters / 1e9, (long long)cache_bytes(m, fp32), (double)cache_bytes(m, fp32) * c->max_positions / 1e9);
}

/* GPUs as text lines or as JSON objects */
static void show_gpus(vp_json_writer *w, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        vp_device_info gpu;
        vp_error error = {VP_OK, -1, "", ""};
        char driver[24], runtime[24];
        vp_result r = vp_device_describe(i, &gpu, &error);
        if (w && r == VP_OK) put_gpu(w, i, &gpu);
        else if (w) {
            vp_json_begin_object(w);
            put_int(w, "index", i);
            put_text(w, "error", error.text);
            vp_json_end_object(w);
        } else if (r != VP_OK) printf("gpu %d       cannot be used: %s\n", i, error.text);
        else
            printf("gpu %d       %s, compute capability %d.%d, %d multiprocessors, %.4g GB, %.4g GB free; driver for CUDA %s, runtime %s\n", i,
                   gpu.name, gpu.compute_major, gpu.compute_minor, gpu.multiprocessor_count, (double)gpu.memory_bytes / 1e9,
                   (double)gpu.free_bytes / 1e9, version_text(gpu.driver_version, driver), version_text(gpu.runtime_version, runtime));
    }
}

static void print_info(const cpu_info *c, int32_t gpu_count, const char *no_gpu, const model *m, const holdings *h) {
    printf("vlmprof     %s, %s\n", VLMPROF_VERSION, build_text());
    printf("cpu         %s, %lld thread%s\n", c->name, (long long)c->threads, c->threads == 1 ? "" : "s");
    printf("memory      %.4g GB, %.4g GB available\n", (double)c->memory_bytes / 1e9, (double)c->available_bytes / 1e9);
    printf("gemm        ");
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) printf("%s%s", i ? ", " : "", vp_engine_gemm_name(i));
    putchar('\n');
    for (int fp32 = 0; fp32 < 2; fp32++)
        printf("  %s      fastest: %s for 1 row, %s for few, %s for many\n", fp32 ? "fp32" : "bf16", c->chosen[fp32][0], c->chosen[fp32][1],
               c->chosen[fp32][2]);
    if (no_gpu) printf("gpu         none: %s\n", no_gpu);
    show_gpus(NULL, gpu_count);
    if (m) print_model(m, h);
}

static void print_info_json(const cpu_info *c, int32_t gpu_count, const char *no_gpu, const model *m, const holdings *h) {
    vp_json_writer w;
    char text[24];
    vp_json_writer_init_sink(&w, file_sink, stdout, 2);
    vp_json_begin_object(&w);
    put_text(&w, "schema", "vlmprof-info-1");
    put_text(&w, "version", VLMPROF_VERSION);
    put_text(&w, "compiler", __VERSION__);
    put_text(&w, "cuda_toolkit", vp_device_toolkit() ? version_text(vp_device_toolkit(), text) : NULL);
    vp_json_key(&w, "cpu");
    vp_json_begin_object(&w);
    put_text(&w, "name", c->name);
    put_int(&w, "threads", c->threads);
    put_int(&w, "memory_bytes", c->memory_bytes);
    put_int(&w, "available_bytes", c->available_bytes);
    vp_json_key(&w, "gemm");
    vp_json_begin_array(&w);
    for (int32_t i = 0; vp_engine_gemm_name(i); i++) vp_json_string(&w, vp_engine_gemm_name(i));
    vp_json_end_array(&w);
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_json_key(&w, fp32 ? "gemm_fp32" : "gemm_bf16"); /* the fastest for 1, 8 and 1024 rows */
        vp_json_begin_object(&w);
        for (int i = 0; i < ROW_CLASSES; i++) {
            snprintf(text, sizeof text, "rows_%d", CLASS_ROWS[i]);
            put_text(&w, text, c->chosen[fp32][i]);
        }
        vp_json_end_object(&w);
    }
    vp_json_end_object(&w);
    vp_json_key(&w, "gpus");
    vp_json_begin_array(&w);
    show_gpus(&w, gpu_count);
    vp_json_end_array(&w);
    put_text(&w, "gpus_note", no_gpu);
    vp_json_key(&w, "model");
    if (m) put_model(&w, m, h); else vp_json_null(&w);
    vp_json_end_object(&w);
    vp_json_finish(&w);
    putchar('\n');
}

static int command_info(const options *o) {
    int has_model = given(o, "model") || given(o, "synthetic"), code = 0;
    vp_error no_gpu = {VP_OK, -1, "", ""};
    int32_t gpu_count = 0;
    const char *reason;
    cpu_info cpu;
    holdings h;
    model m;
    memset(&m, 0, sizeof m);
    memset(&h, 0, sizeof h);
    memset(&cpu, 0, sizeof cpu);
    if (has_model && (code = model_load(o, &m)) == 0 && (code = checkpoint_open(&m)) == 0) read_holdings(&m, &h);
    if (!code) code = read_cpu(&cpu);
    if (!code) {
        reason = vp_device_count(&gpu_count, &no_gpu) == VP_OK ? NULL : no_gpu.text;
        (given(o, "json") ? print_info_json : print_info)(&cpu, gpu_count, reason, has_model ? &m : NULL, &h);
    }
    model_free(&m);
    return code;
}

/* ============================================================================================ selftest >>selftest */
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
        t->image.rgb = (uint8_t *)resize(NULL, (size_t)width_px * (size_t)height_px, 3);
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
    t->blocks = (int32_t *)resize(NULL, (size_t)c->block_count, sizeof *t->blocks);
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
        r = run_chain(&s, &k, &out->runs[i], error);
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

static int command_selftest(const options *o) {
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

/* =============================================================================================== main >>main */
static int unknown_command(const char *name) {
    const char *best = COMMANDS[0].name;
    for (int i = 1; i < COMMAND_COUNT; i++) if (edit_distance(name, COMMANDS[i].name) < edit_distance(name, best)) best = COMMANDS[i].name;
    return complain(EXIT_USAGE, "unknown command \"%.60s\"; the nearest is %s; see vlmprof --help", name, best);
}

/* An OpenMP runtime reads before main how long idle threads spin, and its default spins on through a busy neighbour's time slice: on a
 * loaded machine every barrier then costs 4 ms. Once, with a short spin in the environment, the program starts itself again. */
static void calm_threads(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("GOMP_SPINCOUNT", "1000", 1);
    execv("/proc/self/exe", argv); /* where that is not possible, the program goes on as it is */
}

static void on_signal(int number) {
    (void)number;
    if (interrupted || !sweep_runs) _exit(EXIT_INTERRUPTED); /* a sweep asked twice ends at once, too: whole lines are in the journal */
    interrupted = 1;
}
static void catch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv) {
    const command *c = NULL;
    options o;
    int code;
    catch_signals();
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    calm_threads(argv);
    memset(&o, 0, sizeof o);
    for (int i = 0; i < COMMAND_COUNT; i++) if (!strcmp(argv[1], COMMANDS[i].name)) c = &COMMANDS[i];
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        code = 0;
    } else if (!strcmp(argv[1], "--version")) {
        printf("vlmprof %s (%s)\n", VLMPROF_VERSION, build_text());
        code = 0;
    } else if (!c) return unknown_command(argv[1]);
    else {
        o.command = c->bit;
        o.command_name = c->name;
        code = options_parse(&o, argc, argv);
        if (!code && given(&o, "help")) print_help(c);
        else if (!code && o.operand_count > c->operands_most)
            code = complain(EXIT_USAGE, "%s: \"%s\" is one operand too many; usage: vlmprof %s %s", c->name, o.operands[c->operands_most],
                            c->name, c->operands);
        else if (!code) code = c->run(&o);
        options_free(&o);
    }
    if (fflush(stdout) || ferror(stdout)) code = complain(EXIT_OUTPUT, "stdout cannot be written: %s", strerror(errno));
    return code;
}
