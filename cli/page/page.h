/* page.h: what the HTML page is built of: markup, escaped texts, elements. */
#ifndef VLMPROF_CLI_PAGE_H
#define VLMPROF_CLI_PAGE_H
#include "base/memory.h"
#include "report/result_read.h"

/* Adds markup: numbers and our own words, never a text of a file. At most LINE_BYTES at a time. */
void page_add(struct text_buffer *out, const char *format, ...);

/* Adds a text as content, or as an attribute in quotes. Bytes that are no text are shown as U+FFFD. */
void page_text(struct text_buffer *out, const char *text);

/* Adds <tag>text</tag>; tag is a name of our own. */
void page_element(struct text_buffer *out, const char *tag, const char *text);

/* Adds the texts of a list from one place up to another, as a list; nothing where there are none. */
void page_items(struct text_buffer *out, const struct text_list *items, size_t from, size_t to);

/* Opens the part of a section that shows one data set, under its name; the reader can hide it. Ends with </div>. */
void page_set_open(struct text_buffer *out, const struct results *results, size_t group);

#endif
