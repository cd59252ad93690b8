/* removed.c: what to do instead of commands and options that are gone. */
#include "base/options.h"

#include <string.h>

const struct removed_word REMOVED_WORDS[] = {
    {"load", NULL, "sweep --endpoint URL --request_rate_list or --concurrency_list measures a server under load"},
    {"best", "slo", "use --most request_rate with --limit, or --budget_ms with --latency and --percentile"},
    {"best", "slo_share", "use --budget_ms with --percentile"},
    {"best", "require_better_than", "vlmprof report compares each pruned configuration with keeping random tokens"},
    {"predict", "workers", "sweep --request_rate_list measures load"},
    {"predict", "rate", "sweep --request_rate_list measures load"},
    {"predict", "recalibrate", "vlmprof fit fits a model to the other device's result files"},
    {"predict", "family", "latency models describe vlmprof's engine; vlmprof tile --family counts tokens"},
    {"tile", "draw", "the columns rows,cols and resized show how an image is tiled"},
    {"run", "endpoint", "vlmprof ask sends the question to a server"},
    {NULL, "color", "colours are used on a terminal, unless NO_COLOR is set"},
    {NULL, "unique_image", "this is the default; --same_image sends the file unchanged"},
    {"ask", "baseline", "sweep --baseline compares the answers and distributions of many questions"},
    {"audit", "pruning_rounds", "ask --twins and sweep --twins measure what an image costs"},
    {"audit", "images_per_request", "ask with several images and --family compares the token count with the rule"},
    {"run", "chrome_trace", "--trace FILE writes the trace of the first cycle"},
    {"run", "cost", "compare its times with a run without --profile"},
    {NULL, "group_by_input_shape", "use --group_by shape"},
    {"data", NULL,
     "sweep --plan describes a data file; python -m vlmprof.data SOURCE -o data.jsonl converts other formats"},
    {NULL, "data_format", "--data takes JSONL; python -m vlmprof.data SOURCE -o data.jsonl converts other formats"},
    {NULL, "prompt_origin", "python -m vlmprof.data writes the prompts of other tools into JSONL"},
    {"report", "markdown", "the plain text report is just as readable in a code block"},
    {"merge", "layout", "the script in vlmprof help reference copies result files for the published scripts"},
    {"rescore", NULL,
     "vlmprof score --predictions RESULTS prints the answers for use with any scorer; vlmprof score RESULTS --scores "
     "FILE puts its scores into result files"},
    {"score", "references", "vlmprof score reads the references from the lines of its file"},
    {"score", "baseline", "vlmprof compare compares two sweeps sample by sample"},
    {"score", "by", "vlmprof report --by FIELD prints the accuracy of each category"},
    {"convert", NULL, "weights are packed when opened; transformers' save_pretrained writes a bf16 folder"},
    {"conform", NULL, "run --dump writes a request's stages; python -m vlmprof.conform DUMP OTHER compares them"},
    {NULL, "mmproj", "GGUF files are no longer read; transformers' save_pretrained converts one to a folder"},
    {"--gpu", "persistent", "decode steps run as one CUDA graph"},
    {"--gpu", "clusters", "linear layers use cuBLAS; on Hopper, --gpu wgmma runs the experts with wgmma"},
    {"--gpu", "mma", "this is the default; on Hopper, --gpu wgmma runs the experts with wgmma"},
    {NULL, NULL, NULL},
};

static int is_same(const char *row, const char *word) { return row && word ? !strcmp(row, word) : row == word; }

const char *removed_find(const char *command, const char *option) {
    for (const struct removed_word *row = REMOVED_WORDS; row->instead; row++)
        if (is_same(row->option, option) && ((option && !row->command) || is_same(row->command, command)))
            return row->instead;
    return NULL;
}
