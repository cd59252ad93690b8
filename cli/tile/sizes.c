/* sizes.c: reads image sizes from text. Nothing here touches an image. */
#include "tile/family.h"

#include "base/console.h"
#include "base/files.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int can_parse_size(const char *text, const char *separators, int64_t *width, int64_t *height) {
    size_t first = strspn(text, "0123456789"), gap = strspn(text + first, separators),
           second = strspn(text + first + gap, "0123456789");
    if (!first || !gap || !second || first > 18 || second > 18 || text[first + gap + second]) return 0;
    if (gap > 1 && memchr(text + first, 'x', gap)) return 0;
    *width = strtoll(text, NULL, 10);
    *height = strtoll(text + first + gap, NULL, 10);
    return 1;
}
int read_size(const char *what, const char *text, int32_t *width_px, int32_t *height_px) {
    int64_t width = 0, height = 0;
    if (!can_parse_size(text, SIZE_SEPARATORS, &width, &height) || width < 1 || height < 1 || width > INT32_MAX
        || height > INT32_MAX)
        return complain(EXIT_USAGE, "%s\"%s\" is not an image size; expected WIDTHxHEIGHT in pixels, like 640x480",
                        what, text);
    *width_px = (int32_t)width;
    *height_px = (int32_t)height;
    return 0;
}

enum { SIZE_LINE_MAX = 4096 };
int size_list_read(const char *path, void (*add)(void *user, const char *line), void *user) {
    int from_stdin = !strcmp(path, "-"), failed;
    FILE *file = from_stdin ? stdin : fopen(path, "rb");
    char *text = NULL;
    size_t capacity = 0, bytes, number = 0;
    if (!file) return complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno));
    errno = 0;
    while ((bytes = line_read(file, &text, &capacity, SIZE_LINE_MAX)) > 0 && bytes <= SIZE_LINE_MAX) {
        const char *line = text;
        number++;
        while (bytes && isspace((unsigned char)text[bytes - 1])) text[--bytes] = 0;
        line += strspn(line, " \t");
        if (*line && *line != '#') add(user, line);
    }
    failed = ferror(file);
    if (!from_stdin) fclose(file);
    free(text);
    if (bytes)
        return complain(EXIT_INPUT, "--sizes %s: line %zu has %zu bytes, but a line must be one WxH", path, number + 1,
                        bytes);
    return failed ? complain(EXIT_INPUT, "--sizes %s: %s", path, strerror(errno)) : 0;
}
