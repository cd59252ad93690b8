/* command_conform.c: runs the same model, image and question through two stacks, and finds the first stage at which
 * they diverge. The built-in engine runs the request in fp32, and again in the other stack's precision to see the
 * effect of rounding. The other stack's values come from the built-in engine with another checkpoint, from .npy files,
 * or from a server. */
#include "base/console.h"
#include "base/document.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option_rows.h"
#include "base/options.h"
#include "base/table.h"
#include "commands/commands.h"
#include "conform/compare.h"
#include "conform/script.h"
#include "conform/stack.h"
#include "measure/input.h"
#include "server/endpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec CONFORM_OPTIONS[] = {
    OPTION_GROUP("the model, run by the built-in engine in fp32"),
    {"model", TEXT, "DIR", NULL, 0, 0, NULL, "checkpoint folder or GGUF file", .is_required = 1, .unless = "script"},
    OPTION_MMPROJ,
    OPTION_GROUP("the stack to compare with"),
    {"against", TEXT, "WHAT", NULL, 0, 0, NULL,
     "another folder or GGUF file (run by the built-in engine), dump:DIR (.npy files of another stack) or a server URL",
     .is_required = 1, .unless = "script"},
    {"against_mmproj", TEXT, "FILE", NULL, 0, 0, NULL, "GGUF file of the vision tower, if --against is a GGUF file",
     .needs = "against"},
    {"precision", CHOICE, "P", "auto", 0, 0, "auto fp32 fp16 bf16 int8 int4",
     "precision of the other stack; auto: fp32 if that explains the differences, otherwise as the weights and files "
     "show"},
    OPTION_ENDPOINT_MODEL,
    OPTIONS_OF_CLIENT,
    OPTION_GROUP("the request"),
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"},
    {"raw_prompt", FLAG, NULL, NULL, 0, 0, NULL, "tokenize TEXT verbatim"},
    {"max_new_tokens", COUNT, "N", "8", 1, 100000, NULL, "tokens of the greedy answer"},
    OPTION_SEED,
    OPTION_DEVICE,
    OPTION_THREADS,
    OPTION_GEMM,
    OPTION_GPU,
    OPTION_GROUP("output"),
    {"script", FLAG, NULL, NULL, 0, 0, NULL,
     "print a Python script that writes the files of dump:DIR with transformers, and "
     "exit", .excludes = "model against prompt json"},
    OPTION_JSON,
    OPTIONS_OF_ALL,
};

struct comparison {
    const struct options *options;
    const char *against;
    int is_dump, is_server;
    enum precision precision;
    struct endpoint endpoint;
    struct conformity worst;
    size_t cases;
    char architecture[64];
};

/* ---- one case */
/* The precision that may explain differences: as given, or the coarser one of the stored weights on both sides. Equally
 * stored weights are not a reason for a difference between two runs of the built-in engine. Another stack may compute
 * in the type of its weights. */
static enum precision choose_precision(const struct comparison *comparison, enum precision ours,
                                       enum precision theirs) {
    const char *given = text_of(comparison->options, "precision");
    for (int i = 0; i < PRECISIONS_KNOWN; i++) if (!strcmp(given, PRECISION_NAMES[i])) return (enum precision)i;
    if (comparison->is_dump && theirs != PRECISION_FP32) return theirs;
    if (comparison->is_dump || comparison->is_server) return ours > PRECISION_BF16 ? ours : PRECISION_BF16;
    return ours == theirs ? PRECISION_FP32 : ours > theirs ? ours : theirs;
}
/* Returns 1 if another stack's files show that it computes in fp32: after the pixels, a stage with real numbers differs
 * from ours by no more than another order of summation would cause. */
static int shows_fp32(const struct conformity *in_fp32) {
    for (int stage = CONFORM_TOWER; stage <= CONFORM_PREFILL; stage++) {
        const enum verdict verdict = in_fp32->stages[stage].verdict;
        if (verdict == VERDICT_EQUAL || verdict == VERDICT_ROUNDING) return 1;
    }
    return 0;
}
/* The built-in engine's name for the precision; fp16 is derived from bf16. */
static const char *weights_word(enum precision precision) {
    return precision == PRECISION_FP16 ? "bf16" : PRECISION_NAMES[precision];
}
/* Gets the other side's values. */
static int take_theirs(struct comparison *comparison, const struct probe *probe, const struct request *request,
                       const struct stack *ours, struct request *other, struct stack *theirs) {
    const struct options *options = comparison->options;
    const char *given = text_of(options, "precision");
    int code;
    if (comparison->is_dump) return stack_of_dump(comparison->against, request, ours, theirs);
    if (comparison->is_server) return stack_of_server(&comparison->endpoint, probe, theirs);
    code = probe_open(comparison->against, text_of(options, "against_mmproj"), probe, other);
    if (code) return code;
    theirs->precision = stored_precision(&other->model);
    if (other->model.config.embedding_size != request->model.config.embedding_size)
        return complain(EXIT_INPUT, "%s has %d logits, but %s has %d: they are not the same model", comparison->against,
                        other->model.config.embedding_size, request->model.name, request->model.config.embedding_size);
    return stack_run(options, other, has_word("bf16 int8 int4", given) ? given : "fp32", theirs);
}
static int compare_case(struct comparison *comparison, const struct probe *probe) {
    struct request request = {0}, other = {0};
    struct stack ours = {0}, rounded = {0}, theirs = {0};
    struct conformity one;
    int code;
    code = probe_open(text_of(comparison->options, "model"), text_of(comparison->options, "mmproj"), probe, &request);
    if (!code) code = stack_run(comparison->options, &request, "fp32", &ours);
    if (!code) code = take_theirs(comparison, probe, &request, &ours, &other, &theirs);
    if (!code) {
        struct conform_pair pair = {&request.model, &ours, NULL, &theirs, PRECISION_FP32};
        enum precision precision = choose_precision(comparison, stored_precision(&request.model), theirs.precision);
        conform_compare(&pair, &one);
        if (comparison->is_dump && !strcmp(text_of(comparison->options, "precision"), "auto") && shows_fp32(&one))
            precision = PRECISION_FP32;
        if (precision != PRECISION_FP32 && conform_first(&one) < CONFORM_STAGES) {
            code = stack_run(comparison->options, &request, weights_word(precision), &rounded);
            pair.rounded = &rounded;
            pair.precision = precision;
            if (!code) conform_compare(&pair, &one);
        }
        if (pair.precision > comparison->precision) comparison->precision = pair.precision;
    }
    if (!code) {
        if (comparison->cases++) conform_merge(&comparison->worst, &one);
        else comparison->worst = one;
        snprintf(comparison->architecture, sizeof comparison->architecture, "%s",
                 vp_architecture_name(request.model.config.architecture));
    }
    stack_free(&ours);
    stack_free(&rounded);
    stack_free(&theirs);
    request_close(&request);
    request_close(&other);
    return code;
}

/* ---- output */
struct stage_row { const char *stage, *verdict; double distance, bound; const char *note; };
static const struct table_column STAGE_COLUMNS[] = {
    {CELL(struct stage_row, stage), "stage", "stage"},
    {CELL(struct stage_row, verdict), "verdict", "verdict"},
    {CELL(struct stage_row, distance), "distance", "distance", .format = "%.2g"},
    {CELL(struct stage_row, bound), "bound", "explained by rounding", .format = "%.2g"},
    {CELL(struct stage_row, note), "note", ""},
};
static void fill_rows(const struct conformity *conformity, struct stage_row rows[CONFORM_STAGES]) {
    for (int stage = 0; stage < CONFORM_STAGES; stage++) {
        const struct stage_verdict *verdict = &conformity->stages[stage];
        rows[stage] = (struct stage_row){CONFORM_STAGE_NAMES[stage], VERDICT_NAMES[verdict->verdict], verdict->distance,
                                         verdict->bound, verdict->note[0] ? verdict->note : NULL};
    }
}
/* The stages that may cause the first visible difference: that stage, and the unseen ones before it. */
static void add_possible(const struct conformity *conformity, int first, struct text_list *possible) {
    for (int stage = 0; stage <= first && first < CONFORM_STAGES; stage++)
        if (stage == first
            || (conformity->stages[stage].verdict == VERDICT_UNSEEN
                && strcmp(conformity->stages[stage].note, "the request has no image") != 0))
            text_list_copy(possible, CONFORM_STAGE_NAMES[stage]);
}
static void print_finding(const struct comparison *comparison, int first, const struct text_list *possible) {
    const struct stage_verdict *at = first < CONFORM_STAGES ? &comparison->worst.stages[first] : NULL;
    int rounded = 0, seen = 0;
    for (int stage = 0; stage < CONFORM_STAGES; stage++) {
        rounded |= comparison->worst.stages[stage].verdict == VERDICT_ROUNDING;
        seen += comparison->worst.stages[stage].verdict != VERDICT_UNSEEN;
    }
    if (!at && rounded)
        print_plain("The two stacks differ by no more than rounding (%s) in the %d stages that both show.\n\n",
                    PRECISION_NAMES[comparison->precision], seen);
    else if (!at) print_plain("The two stacks are equal in the %d stages that both show.\n\n", seen);
    else if (at->note[0]) print_plain("They diverge at %s: %s.\n", CONFORM_STAGE_NAMES[first], at->note);
    else
        print_plain("They diverge at %s: the distance is %.2g, and rounding (%s) explains %.2g.\n",
                    CONFORM_STAGE_NAMES[first], at->distance, PRECISION_NAMES[comparison->precision], at->bound);
    if (at && possible->count > 1) {
        print_plain("Not seen, so also possible:");
        for (size_t i = 0; i + 1 < possible->count; i++) print_plain(" %s", possible->items[i]);
        print_plain(".\n");
    }
    if (at) print_plain("\n");
}
static void print_comparison(const struct comparison *comparison, const struct table *table, int first,
                             const struct text_list *possible) {
    struct document document = {0};
    print_finding(comparison, first, possible);
    document_add_table(&document, table);
    print_document(&document);
}
static void print_json(const struct comparison *comparison, const struct table *table, int first,
                       const struct text_list *possible) {
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, file_sink, stdout, 2);
    PUT(&writer, KEY_OBJECT(NULL), KEY("schema", "vlmprof-conform-1"),
        KEY("model", text_of(comparison->options, "model")), KEY("against", text_of(comparison->options, "against")),
        KEY("architecture", comparison->architecture), KEY("precision", PRECISION_NAMES[comparison->precision]),
        KEY("images", (int64_t)comparison->options->operand_count),
        KEY("first_difference", first < CONFORM_STAGES ? CONFORM_STAGE_NAMES[first] : NULL),
        KEY_TEXTS("possible_stages", possible));
    table_put(&writer, "stages", table);
    PUT(&writer, END_OBJECT);
    json_end(&writer); /* main checks stdout */
}

/* ---- the command */
/* Complains about a value of --against that cannot be used. */
static int check_against(const char *against) {
    if (!strcmp(against, "dump:"))
        return complain(EXIT_USAGE, "--against dump:DIR: give the folder that contains the .npy files");
    if (strstr(against, "://") && strncmp(against, "http://", 7) != 0 && strncmp(against, "https://", 8) != 0)
        return complain(EXIT_USAGE, "--against %.300s: a URL must begin with http:// or https://", against);
    if (strncmp(against, "dump:", 5) != 0 && !strstr(against, "://") && access(against, F_OK) != 0)
        return complain(EXIT_INPUT, "--against %.300s: no such folder or file; use dump:DIR for another stack's .npy "
                                    "files, http://HOST:PORT for a server", against);
    return 0;
}
static int conform_prepare(struct comparison *comparison) {
    const struct options *options = comparison->options;
    int code;
    comparison->against = text_of(options, "against");
    if (!text_of(options, "prompt")) return complain(EXIT_USAGE, "conform needs a question: -p TEXT");
    if ((code = check_against(comparison->against)) != 0) return code;
    comparison->is_dump = !strncmp(comparison->against, "dump:", 5);
    comparison->is_server = !comparison->is_dump && strstr(comparison->against, "://") != NULL;
    if (comparison->is_dump) comparison->against += 5;
    if (comparison->is_dump && options->operand_count > 1)
        return complain(EXIT_USAGE, "dump:DIR contains the values of one request: give only one image");
    if (!strcmp(text_of(options, "precision"), "fp16") && !comparison->is_dump && !comparison->is_server)
        return complain(EXIT_USAGE, "--precision fp16 is only for dump:DIR and servers; the built-in engine does not "
                                    "support it");
    if ((code = check_device(options)) != 0 || (code = check_gemm(options)) != 0
        || (code = check_gpu_switches(options)) != 0 || !comparison->is_server)
        return code;
    code = endpoint_open(options, comparison->against, text_of(options, "endpoint_model"), &comparison->endpoint);
    return code ? code : endpoint_choose_model(&comparison->endpoint);
}
static int run_command(const struct options *options) {
    struct stage_row rows[CONFORM_STAGES];
    struct text_list possible = {NULL, 0};
    int code, first;
    if (is_given(options, "script")) {
        for (size_t i = 0; DUMP_PY[i]; i++) fputs(DUMP_PY[i], stdout);
        return 0;
    }
    struct comparison comparison = {.options = options};
    code = conform_prepare(&comparison);
    for (size_t i = 0; !code && (i < options->operand_count || !i) && !interrupted; i++) {
        const struct probe probe = {options->operand_count ? options->operands[i] : NULL, text_of(options, "prompt"),
                                    is_given(options, "raw_prompt"), (int32_t)number_of(options, "max_new_tokens")};
        code = compare_case(&comparison, &probe);
    }
    if (!code) {
        const struct table table = TABLE(STAGE_COLUMNS, rows, CONFORM_STAGES, NULL, 0);
        fill_rows(&comparison.worst, rows);
        first = conform_first(&comparison.worst);
        add_possible(&comparison.worst, first, &possible);
        (is_given(options, "json") ? print_json : print_comparison)(&comparison, &table, first, &possible);
        code = interrupted ? EXIT_INTERRUPTED : first < CONFORM_STAGES ? EXIT_WORK : 0;
    }
    text_list_free(&possible);
    endpoint_close(&comparison.endpoint);
    return code;
}

const struct command command_conform = {
    "conform", "[IMAGE...] -p TEXT --model DIR --against DIR|FILE.gguf|dump:DIR|URL",
    "run the same model in two stacks and find the first stage at which they diverge by more than rounding",
    "vlmprof conform cat.jpg -p \"What is this?\" --model checkpoint --against checkpoint-q8_0.gguf\n"
    "  vlmprof conform --script > dump.py && python3 dump.py --model checkpoint --image cat.jpg -p \"What is this?\" "
    "--output dumped\n"
    "  vlmprof conform cat.jpg -p \"What is this?\" --model checkpoint --against dump:dumped\n"
    "  vlmprof conform cat.jpg -p \"What is this?\" --model checkpoint --against http://127.0.0.1:8000 --json",
    100, COMMAND_OPTIONS(CONFORM_OPTIONS), NULL, run_command};
