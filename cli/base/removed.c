/* removed.c: what to do instead of commands and options that are gone. */
#include "base/options.h"

#include <string.h>

const struct removed_word REMOVED_WORDS[] = {
    {"load", NULL, "sweep --endpoint URL --request_rate_list or --concurrency_list measures a server under load"},
    {"data", NULL, "sweep --plan describes a data file; python -m vlmprof.data SOURCE -o F.jsonl converts others"},
    {"rescore", NULL, "vlmprof score --predictions RESULTS prints the answers; score --scores FILE takes any scores"},
    {NULL, NULL, NULL},
};

static int is_same(const char *row, const char *word) { return row && word ? !strcmp(row, word) : row == word; }
const char *removed_find(const char *command, const char *option) {
    for (const struct removed_word *row = REMOVED_WORDS; row->instead; row++)
        if (is_same(row->option, option) && ((option && !row->command) || is_same(row->command, command)))
            return row->instead;
    return NULL;
}
