/* removed.c: what to do instead of commands and options that are gone. */
#include "base/removed.h"

#include <string.h>

const struct removed_word REMOVED_WORDS[] = {
    {"load", NULL, "sweep --endpoint measures each question at concurrency 1; AIPerf and guidellm measure load"},
    {"best", "slo", "use --budget_ms with --latency and --percentile"},
    {"best", "slo_share", "use --budget_ms with --percentile"},
    {"predict", "workers", "AIPerf and guidellm test servers under load"},
    {"predict", "rate", "AIPerf and guidellm test servers under load"},
    {"predict", "family", "latency models describe vlmprof's engine; vlmprof tile --family counts tokens"},
    {"run", "endpoint", "vlmprof ask asks a server"},
    {NULL, "color", "colours are used on a terminal, unless NO_COLOR is set"},
    {NULL, "unique_image", "it is the default; --same_image sends the file unchanged"},
    {"run", "group_by_input_shape", "use --group_by shape"},
    {"sweep", "group_by_input_shape", "use --group_by shape"},
    {NULL, NULL, NULL},
};

static int is_same(const char *row, const char *word) { return row && word ? !strcmp(row, word) : row == word; }

const char *removed_find(const char *command, const char *option) {
    for (const struct removed_word *row = REMOVED_WORDS; row->instead; row++)
        if (is_same(row->option, option) && ((option && !row->command) || is_same(row->command, command)))
            return row->instead;
    return NULL;
}
