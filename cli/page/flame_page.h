/* flame_page.h: writes a profiled request as an HTML page: a flame chart over time, its stages, and the table of
 * operations. The page needs no network and no other file. */
#ifndef VLMPROF_CLI_FLAME_PAGE_H
#define VLMPROF_CLI_FLAME_PAGE_H
#include "page/flame.h"

void flame_page_write(const struct flame *flame, struct text_buffer *out);

#endif
