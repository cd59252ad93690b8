/* flame_script.h: the style and the script of the flame chart, behind those of all pages (page_style.h). */
#ifndef VLMPROF_CLI_FLAME_SCRIPT_H
#define VLMPROF_CLI_FLAME_SCRIPT_H
#include "base/memory.h"

void flame_style(struct text_buffer *out);

/* Draws what flame_data_write wrote: as wide as the page is, with the labels that fit, zoomed by click, key and
 * button. */
void flame_script(struct text_buffer *out);

#endif
