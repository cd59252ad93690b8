/* page_style.h: the style sheet and the script of the page. */
#ifndef VLMPROF_CLI_PAGE_STYLE_H
#define VLMPROF_CLI_PAGE_STYLE_H
#include "base/memory.h"

/* Light and dark, prints, and which drawing of a figure is shown at which width. */
void page_style(struct text_buffer *out);

/* Titles under pointer, finger and keyboard; series and data sets that can be hidden; tables that are sorted, filtered
 * and copied. Without it the page still shows all it has. */
void page_script(struct text_buffer *out);

#endif
