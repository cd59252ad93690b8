/* page.c: what the HTML page is built of: markup, escaped texts, elements. */
#include "report/page.h"

#include "base/console.h"
#include "vlmprof.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void page_add(struct text_buffer *out, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_add_string(out, line);
}
/* Bytes of a character that may stand in a page as it is; 0: a control character, or one that turns the reading
 * direction. */
static size_t page_character(const unsigned char *octets, size_t left) {
    size_t bytes = octets[0] < 0x80 ? 1 : octets[0] < 0xE0 ? 2 : octets[0] < 0xF0 ? 3 : 4;
    if (bytes > left || vp_utf8_valid_bytes((const char *)octets, bytes) != bytes) return 0;
    if (octets[0] < 0x20 || octets[0] == 0x7F || (octets[0] == 0xC2 && octets[1] < 0xA0)) return 0;
    if (octets[0] == 0xE2
        && ((octets[1] == 0x80 && octets[2] >= 0xA8 && octets[2] <= 0xAE)
            || (octets[1] == 0x81 && octets[2] >= 0xA6 && octets[2] <= 0xA9)))
        return 0;
    return bytes;
}
void page_text(struct text_buffer *out, const char *text) {
    const unsigned char *octets = (const unsigned char *)text;
    size_t left = strlen(text);
    while (left) {
        size_t bytes = page_character(octets, left);
        const char *entity = *octets == '&'    ? "&amp;"
                             : *octets == '<'  ? "&lt;"
                             : *octets == '>'  ? "&gt;"
                             : *octets == '"'  ? "&quot;"
                             : *octets == '\'' ? "&#39;"
                             : bytes           ? NULL
                                               : "\xEF\xBF\xBD";
        if (entity) text_add_string(out, entity); else text_add(out, (const char *)octets, bytes);
        if (!bytes) bytes = 1;
        octets += bytes;
        left -= bytes;
    }
}
void page_element(struct text_buffer *out, const char *tag, const char *text) {
    page_add(out, "<%s>", tag);
    page_text(out, text);
    page_add(out, "</%s>", tag);
}
