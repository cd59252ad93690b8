/* page_style.h: what all pages have: their first and last lines, the style sheet, the script. */
#ifndef VLMPROF_CLI_PAGE_STYLE_H
#define VLMPROF_CLI_PAGE_STYLE_H
#include "base/memory.h"

/* Light and dark, prints, and which drawing of a figure is shown at which width. */
void page_style(struct text_buffer *out);

/* The script of all pages: titles under pointer, finger and keyboard; series and data sets that can be hidden; tables
 * that are sorted, filtered and copied. Without it the page still shows all it has. */
void page_script(struct text_buffer *out);

/* What a page begins with, up to its title. No script but this one will run in it: the page names it by its hash. */
void page_begin(struct text_buffer *out, const struct text_buffer *script);

/* The script and the end of the page. */
void page_end(struct text_buffer *out, const struct text_buffer *script);

#endif
