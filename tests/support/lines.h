/* lines.h: a text that grows line by line, for synthetic journals. */
#ifndef VLMPROF_TEST_LINES_H
#define VLMPROF_TEST_LINES_H
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>

/* Appends to `lines`; returns where that is. */
static struct text_buffer lines;
static long long add(const char *format, ...) {
    char line[4096];
    long long at = (long long)lines.bytes;
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    text_add_string(&lines, line);
    return at;
}

#endif
