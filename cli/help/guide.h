/* guide.h: the guides in the program. The texts are the files of cli/guides/. A rule of the Makefile turns them into
 * a generated file, which defines what is declared here. Their format: the first line is "NAME -
 * SUMMARY". "## " starts a heading, "- " a list item. Lines that begin with spaces are shown unchanged. Other lines are
 * paragraphs, separated by empty lines. */
#ifndef VLMPROF_CLI_GUIDE_H
#define VLMPROF_CLI_GUIDE_H
#include <stddef.h>

struct guide {
    const char *name;
    const char *const *lines; size_t line_count; /* without line ends */
};
/* In order of names; the last one has no name. */
extern const struct guide GUIDES[];

/* The guide with this name, or NULL. */
const struct guide *guide_find(const char *name);

/* The text after "NAME - " in its first line. */
const char *guide_summary(const struct guide *guide);

#endif
