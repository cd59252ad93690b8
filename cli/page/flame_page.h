/* flame_page.h: one profiled request as a page of HTML: a flame chart over time, its stages, the table of operations.
 * What was recorded comes in; a page that needs no network and no other file goes out. */
#ifndef VLMPROF_CLI_FLAME_PAGE_H
#define VLMPROF_CLI_FLAME_PAGE_H
#include "page/flame.h"

void flame_page_write(const struct flame *flame, struct text_buffer *out);

#endif
