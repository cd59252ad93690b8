/* removed.c: what to do instead of commands and options that are gone. */
#include "base/options.h"

#include <string.h>

const struct removed_word REMOVED_WORDS[] = {
    {"load", NULL, "sweep --endpoint URL --request_rate_list or --concurrency_list measures a server under load"},
    {"run", "endpoint", "vlmprof ask sends the question to a server"},
    {"data", NULL,
     "sweep --plan describes a data file; python -m vlmprof.data SOURCE -o data.jsonl converts other formats"},
    {NULL, "data_format", "--data takes JSONL; python -m vlmprof.data SOURCE -o data.jsonl converts other formats"},
    {NULL, "prompt_origin", "python -m vlmprof.data writes the prompts of other tools into JSONL"},
    {"rescore", NULL,
     "vlmprof score --predictions RESULTS prints the answers for use with any scorer; vlmprof score RESULTS --scores "
     "FILE puts its scores into result files"},
    {"score", "references", "vlmprof score reads the references from the lines of its file"},
    {"convert", NULL, "weights are packed when opened; transformers' save_pretrained writes a bf16 folder"},
    {"conform", NULL, "run --dump writes a request's stages; python -m vlmprof.conform DUMP OTHER compares them"},
    {NULL, "mmproj", "GGUF files are no longer read; transformers' save_pretrained converts one to a folder"},
    {NULL, NULL, NULL},
};

static int is_same(const char *row, const char *word) { return row && word ? !strcmp(row, word) : row == word; }

const char *removed_find(const char *command, const char *option) {
    for (const struct removed_word *row = REMOVED_WORDS; row->instead; row++)
        if (is_same(row->option, option) && ((option && !row->command) || is_same(row->command, command)))
            return row->instead;
    return NULL;
}
