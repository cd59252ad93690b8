/* removed.c: what to do instead of commands and options that are gone. */
#include "base/removed.h"

#include <string.h>

const struct removed_word REMOVED_WORDS[] = {
    {"convert", NULL, "weights are packed as the model opens; transformers' save_pretrained writes a bf16 folder"},
    {"conform", NULL, "run --dump writes a request's stages; python -m vlmprof.conform DUMP OTHER compares them"},
    {NULL, "mmproj", "GGUF files are not read any more; transformers' save_pretrained makes a folder of one"},
    {NULL, NULL, NULL},
};

static int is_same(const char *row, const char *word) { return row && word ? !strcmp(row, word) : row == word; }

const char *removed_find(const char *command, const char *option) {
    for (const struct removed_word *row = REMOVED_WORDS; row->instead; row++)
        if (is_same(row->option, option) && ((option && !row->command) || is_same(row->command, command)))
            return row->instead;
    return NULL;
}
