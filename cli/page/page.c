/* page.c: what the HTML page is built of: markup, escaped texts, elements. */
#include "page/page.h"

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
void page_text(struct text_buffer *out, const char *text) {
    size_t left = strlen(text);
    while (left) {
        size_t hidden = vp_utf8_control(text, left), plain = hidden ? 0 : strcspn(text, "&<>\"'"),
               shown = vp_utf8_visible_bytes(text, plain);
        const char *entity = *text == '&'    ? "&amp;"
                             : *text == '<'  ? "&lt;"
                             : *text == '>'  ? "&gt;"
                             : *text == '"'  ? "&quot;"
                             : *text == '\'' ? "&#39;"
                                             : "\xEF\xBF\xBD"; /* U+FFFD stands for what would steer */
        if (shown) text_add(out, text, shown); else text_add_string(out, entity);
        if (!shown) shown = hidden ? hidden : 1;
        text += shown;
        left -= shown;
    }
}
void page_element(struct text_buffer *out, const char *tag, const char *text) {
    page_add(out, "<%s>", tag);
    page_text(out, text);
    page_add(out, "</%s>", tag);
}
void page_set_open(struct text_buffer *out, const struct results *results, size_t group) {
    page_add(out, "<div data-set=\"%zu\">", group);
    page_element(out, "h3", results->files[results->groups[group].first].task);
}
void page_items(struct text_buffer *out, const struct text_list *items, size_t from, size_t to) {
    if (from == to) return;
    text_add_string(out, "<ul>\n");
    for (size_t i = from; i < to; i++) {
        page_element(out, "li", items->items[i]);
        text_add_string(out, "\n");
    }
    text_add_string(out, "</ul>\n");
}
