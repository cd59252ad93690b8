/* choices.h: files of choices, which name a configuration for each sample: lines of JSON {"id", "config", "knobs",
 * "overhead_ms"}, as `policy` writes them. Samples and configurations come in; an index for each sample goes out. */
#ifndef VLMPROF_CLI_CHOICES_H
#define VLMPROF_CLI_CHOICES_H
#include "results/knobs.h"

/* A configuration that a line may choose. file_name: of its result file. */
struct choice_config { const struct knob_values *knobs; const char *file_name; };

struct choices {
    char *const *ids; size_t count; /* of the samples, as JSON; NULL: not known */
    const struct choice_config *configs; size_t config_count;
    /* [count + 1], by choices_read: indices in configs, or -1 without a line, and times, 0 if a line lacks it; last
     * those of the line with "static": true, the best single configuration. The caller frees both */
    int32_t *of; double *overhead_ms;
    size_t strangers;    /* lines of other samples */
};

/* Reads a file; the first four members of *choices are set and the rest is zeroed. A line chooses by "knobs" or,
 * without them, by "config", and exactly one configuration must match. Returns 0 or an exit code after a message. */
int choices_read(const char *path, struct choices *choices);

#endif
