/* guide.h: the guides that the program carries.
 * The texts are the files of cli/guides/. A rule of the Makefile turns them into one generated file,
 * build/cli/guides.c, which defines what is declared here.
 * Their form: the first line is "NAME - SUMMARY"; "## " starts a heading, "- " a point of a list; lines that begin with
 * spaces are shown unchanged; other lines are paragraphs, which empty lines separate. */
#ifndef VLMPROF_CLI_GUIDE_H
#define VLMPROF_CLI_GUIDE_H
#include <stddef.h>

struct guide {
    const char *name;
    const char *const *lines; size_t line_count; /* without line ends */
};
/* In the order of their names; the last one has no name. */
extern const struct guide GUIDES[];

/* The guide of a name, or NULL. */
const struct guide *guide_find(const char *name);

/* What is after "NAME - " in its first line. */
const char *guide_summary(const struct guide *guide);

#endif
