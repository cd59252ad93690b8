/* option_rows.h: rows that the option tables of several commands share.
 * A command lists them in its own table of struct option_spec; the help shows them in that order. */
#ifndef VLMPROF_CLI_OPTION_ROWS_H
#define VLMPROF_CLI_OPTION_ROWS_H
#include "base/options.h"

/* Rules for options of vlmprof's own engine, in commands that also have --endpoint. */
#define OF_ENGINE \
    .excludes = "endpoint", .because = "the server decides this; use --request_knob to set fields of the request"

/* Option rows for one question, to the engine or to a server. */
#define OPTION_PROMPT {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"}
#define OPTION_MAX_NEW_TOKENS {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "maximum tokens per answer"}
#define OPTION_COLD \
    {"cold", FLAG, NULL, NULL, 0, 0, NULL, \
     "skip the warm-up: the first timed run includes start-up costs, and no request is sent before it"}

#define OPTION_MODEL \
    {"model", TEXT, "DIR", NULL, 0, 0, NULL, \
     "checkpoint folder: config.json, tokenizer.json, *.safetensors", \
     .excludes = "synthetic endpoint"}
#define OPTION_SYNTHETIC \
    {"synthetic", TEXT, "NAME", NULL, 0, 0, NULL, \
     "seeded random weights in a real model's shape (tiny, molmoe-1b, ...): latency is real, answers are noise", \
     .excludes = "model endpoint"}
#define OPTION_PREPROCESS \
    {"preprocess", CHOICE, "HOW", "adaptive", 0, 0, "adaptive adaptive-fill tier", \
     "adaptive: fit and pad; adaptive-fill: fill and centre-crop; tier: fill, with crops set by --tier", OF_ENGINE}
#define OPTION_TIER \
    {"tier", CHOICE, "T", NULL, 0, 0, "low medium high", \
     "number of crops: low 1-3, medium 4-8, high 9-15; implies --preprocess tier", \
     .excludes = "crops vision_tokens endpoint"}
#define OPTION_MAX_CROPS \
    {"max_crops", COUNT, "N", "12", 1, 1024, NULL, \
     "adaptive tiling: maximum crops, excluding the global view (default: the checkpoint's, otherwise 12)", \
     .excludes = "crops vision_tokens endpoint", .unless = "family", .because = "it only applies to adaptive tiling"}
#define OPTION_CROPS \
    {"crops", COUNT, "N", NULL, 1, 1024, NULL, "exactly N crops, in the grid closest to the image's aspect ratio", \
     .excludes = "vision_tokens endpoint"}
#define OPTION_VISION_TOKENS \
    {"vision_tokens", COUNT, "N", NULL, 1, 1000000, NULL, "target number of vision tokens: N / 144 - 1 crops", \
     OF_ENGINE}
#define OPTION_IMAGE_KNOB(values) \
    {"image_knob", TEXT, values, NULL, 0, 0, NULL, \
     "the model's own image size setting: Molmo max_crops, SmolVLM longest_edge, InternVL max_patches, " \
     "min_patches, Qwen-VL max_pixels, min_pixels, Gemma 3 max_num_crops, min_crop_size", \
     .excludes = "tier_list vision_tokens_list vision_tokens endpoint"}
#define OPTION_CSV \
    {"csv", FLAG, NULL, NULL, 0, 0, NULL, "comma-separated values", .excludes = "json"}
#define OPTION_IMPORTANCE_SCORES_FILE \
    {"importance_scores_file", TEXT, "FILE", NULL, 0, 0, NULL, \
     "JSON {\"block\": score}: keep the first and last blocks, and the highest-scoring others", OF_ENGINE}
#define OPTION_IGNORE_EOS \
    {"ignore_eos", FLAG, NULL, NULL, 0, 0, NULL, "always generate max_new_tokens tokens"}
#define WEIGHTS_NAMES "bf16 fp32 int8 int4"
#define OPTION_WEIGHTS \
    {"weights", CHOICE, "TYPE", "bf16", 0, 0, WEIGHTS_NAMES, \
     "bf16; fp32: fp32 arithmetic everywhere; int8, int4: integer weights in the language model's blocks, with one " \
     "scale per 32 values of a row", \
     OF_ENGINE}
#define OPTION_HEAD_WEIGHTS \
    {"head_weights", CHOICE, "TYPE", "bf16", 0, 0, "bf16 int8 int4", \
     "weight type of the output head; --weights int8 and int4 do not affect it; bf16: not quantized", OF_ENGINE}
#define OPTION_VISION_WEIGHTS \
    {"vision_weights", CHOICE, "TYPE", "bf16", 0, 0, "bf16 int8 int4", \
     "weight type of the linear layers in the vision tower and the connector; --weights int8 and int4 do not affect " \
     "it; bf16: not quantized", OF_ENGINE}
#define ACTIVATIONS_NAMES "auto bf16 int16 int8"
/* of run and of sweep */
#define OPTION_ACTIVATIONS(kind, value, usual, words, more) \
    {"activations", kind, value, usual, 0, 0, words, \
     "activation type for int8 and int4 weights in prefill and vision" more ": bf16 (unchanged; weights " \
     "are converted to bf16, which is slower), int16 or int8 (if the CPU supports it), auto (the fastest supported " \
     "one); decode steps always use int16", OF_ENGINE}
#define OPTION_SEED \
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, \
     "seed for synthetic weights, data sampling and caption prompts"}
#define OPTION_DEVICE \
    {"device", TEXT, "D", "auto", 0, 0, NULL, "auto (the first GPU, otherwise the CPU), cpu, cuda or cuda:N", OF_ENGINE}
#define OPTION_THREADS \
    {"threads", COUNT, "N", "0", 0, 4096, NULL, "CPU threads; 0: all that this process may use", OF_ENGINE}
#define OPTION_GEMM \
    {"gemm", TEXT, "NAME", "auto", 0, 0, NULL, "CPU matrix kernel; auto: the fastest in a short benchmark", \
     OF_ENGINE}
#define OPTION_GPU \
    {"gpu", TEXTS, "WORD...", NULL, 0, 0, NULL, \
     "GPU switches: library (cuBLAS for every matrix product, instead of vlmprof's kernels), events (profiles use " \
     "events even if CUPTI could time the launches); not measured yet: dependent (decode kernels fetch weights while " \
     "the previous one runs), wgmma (Hopper: experts use wgmma, not mma.sync), tuned (the fastest of 8 cuBLAS " \
     "algorithms per shape, timed in the warm-up). Kernels for int8 and int4 weights have not been measured either", \
     OF_ENGINE}
#define OPTION_LATENCY \
    {"latency", CHOICE, "PART", "total", 0, 0, "total vision prefill decode ttft", \
     "the latency to compare: total, vision, prefill, decode or ttft"}
#define OPTION_AT \
    {"at", TEXTS, "KNOB=VALUE...", NULL, 0, 0, NULL, \
     "only configurations with these knob values, such as request_rate=4"}
#define OPTION_RESAMPLES \
    {"resamples", COUNT, "N", "1000", 10, 1000000, NULL, "number of bootstrap resamples"}
#define OPTION_JSON \
    {"json", FLAG, NULL, NULL, 0, 0, NULL, "print JSON instead of text"}
#define OPTION_JSON_LINES \
    {"json", FLAG, NULL, NULL, 0, 0, NULL, \
     "add a last line {\"summary\": ...} with the counts; stdout is one JSON object per line either way"}
#define OPTION_SORT_BY \
    {"sort_by", TEXT, "KEY", NULL, 0, 0, NULL, \
     "sort key for the operations: self_cpu_time_total, cuda_time_total, count, cumulative, ... (default: self time " \
     "on the CPU or GPU)"}
/* All rows that select the contents of the profiler's table of operations. */
#define OPTIONS_OF_OPERATIONS \
    OPTION_SORT_BY, \
    {"row_limit", COUNT, "N", "100", 0, INT32_MAX, NULL, "maximum number of rows in the table"}, \
    {"group_by", TEXTS, "WHAT...", "part", 0, 0, NULL, \
     "group operations by: none, or any of shape, stage, part (of the model), block, step (of decoding), place " \
     "(line)"}, \
    {"record_shapes", FLAG, NULL, NULL, 0, 0, NULL, "record shapes in traces"}, \
    {"profile_memory", FLAG, NULL, NULL, 0, 0, NULL, \
     "show memory use in the table and in traces, and the engine's memory"}, \
    {"with_stack", FLAG, NULL, NULL, 0, 0, NULL, \
     "show the source lines and the enclosing ranges of each operation, in the table and in traces"}
#define OPTIONS_OF_ALL OPTIONS_WITH_QUIET("print only errors on stderr, no warnings or progress")
#define OPTIONS_WITH_QUIET(words) \
    {"quiet", FLAG, NULL, NULL, 0, 0, NULL, words}, {"help", FLAG, NULL, NULL, 0, 0, NULL, "show this help"}
/* A row that is not an option: the title of the following options in the help. */
#define OPTION_GROUP(title) \
    {title, GROUP, NULL, NULL, 0, 0, NULL, NULL}
/* The same with rules: RULED_GROUP("profiling", .needs = "profile"). */
#define RULED_GROUP(title, ...) \
    {title, GROUP, NULL, NULL, 0, 0, NULL, NULL, __VA_ARGS__}
#endif
