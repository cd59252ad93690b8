/* page.c: the building blocks of the HTML pages, and their head and foot. */
#include "page/page.h"

#include "base/console.h"
#include "base/table.h"

#include <inttypes.h>
#include <unistd.h>

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
                             : *text == '\n' ? "\n" /* titles of marks have lines */
                                             : "\xEF\xBF\xBD"; /* control and invalid bytes become U+FFFD */
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
void page_day(struct text_buffer *out, const char *date) {
    char day[11];
    snprintf(day, sizeof day, "%s", date ? date : "");
    text_add_string(out, "<span class=\"day\">");
    page_text(out, day);
    text_add_string(out, "</span>");
}
void page_set_open(struct text_buffer *out, const struct results *results, size_t group) {
    if (results->group_count == 1) { text_add_string(out, "<div>"); return; }
    page_add(out, "<div data-set=\"%zu\">", group);
    page_element(out, "h3", results->files[results->groups[group].first].dataset_name);
}
void page_items(struct text_buffer *out, const struct text_list *items, size_t from, size_t to) {
    if (from == to) return;
    text_add_string(out, "<ul>\n");
    for (size_t i = from; i < to; i++) {
        const char *text = items->items[i], *option;
        text_add_string(out, "<li>");
        for (; (option = strstr(text, "--")) != NULL; text = option) { /* names of options are not broken */
            const size_t bytes = 2 + strspn(option + 2, "abcdefghijklmnopqrstuvwxyz_0123456789");
            char *before = copy_text(text, (size_t)(option - text)), *name = copy_text(option, bytes);
            page_text(out, before);
            page_element(out, "code", name);
            option += bytes;
            FREE_ALL(before, name);
        }
        page_text(out, text);
        text_add_string(out, "</li>\n");
    }
    text_add_string(out, "</ul>\n");
}
void page_warnings(struct text_buffer *out, const struct text_list *warnings) {
    if (!warnings->count) return;
    text_add_string(out, "<div id=\"warnings\"><h3>Warnings</h3>");
    page_items(out, warnings, 0, warnings->count);
    text_add_string(out, "</div>\n");
}

/* ---- sections, lists of names, tables */
void page_section_open(struct text_buffer *out, const char *id, const char *heading) {
    page_add(out, "<section id=\"%s\"><h2>%s</h2>\n", id, heading);
}
void page_section_close(struct text_buffer *out) { text_add_string(out, "</section>\n"); }
void page_folded_open(struct text_buffer *out, const char *id, const char *heading, const char *what, int is_open) {
    page_add(out, "<section id=\"%s\"><details%s><summary><h2>%s</h2> <span>%s</span></summary>\n", id,
             is_open ? " open" : "", heading, what);
}
void page_folded_close(struct text_buffer *out) { text_add_string(out, "</details></section>\n"); }
void page_more_open(struct text_buffer *out, const char *what) {
    page_add(out, "<details><summary>%s</summary><div class=\"grid\">", what);
}
void page_more_close(struct text_buffer *out) { text_add_string(out, "</div></details>"); }
void page_list_open(struct text_buffer *out, const char *id, const char *heading, const char *what) {
    page_folded_open(out, id, heading, what, 0);
    text_add_string(out, "<dl>\n");
}
void page_list_item(struct text_buffer *out, const char *name, const char *text) {
    page_element(out, "dt", name);
    page_element(out, "dd", text);
    text_add_string(out, "\n");
}
void page_list_close(struct text_buffer *out) {
    text_add_string(out, "</dl>");
    page_folded_close(out);
}
void page_words(struct text_buffer *out, const char *const words[][2], size_t count) {
    page_list_open(out, "words", "Words", "What the names on this page mean.");
    for (size_t i = 0; i < count; i++) page_list_item(out, words[i][0], words[i][1]);
    page_list_close(out);
}
void page_table_open(struct text_buffer *out, const char *label, int is_sorted) {
    page_add(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table%s><thead><tr>", label,
             is_sorted ? " class=\"sort\"" : "");
}
void page_heads(struct text_buffer *out, page_head kind, const char *names) {
    for (const char *name = names; *name; name += strcspn(name, "|"), name += *name == '|')
        page_add(out, "<th scope=\"col\"%s>%s%.*s%s", kind == HEAD_TEXTS ? " class=\"x\"" : "",
                 kind == HEAD_FIXED ? "" : "<button>", (int)strcspn(name, "|"), name,
                 kind == HEAD_FIXED ? "" : "</button>");
}
static void add_rows(struct text_buffer *out, const struct text_list *cells, size_t first, size_t columns) {
    text_add_string(out, "</thead><tbody>\n");
    for (size_t i = first; i < cells->count; i++) {
        if (i % columns == 0) text_add_string(out, "<tr>");
        page_add(out, i % columns ? "<td>" : "<th scope=\"row\">");
        page_text(out, cells->items[i]);
        if ((i + 1) % columns == 0) text_add_string(out, "</tr>\n");
    }
    text_add_string(out, "</tbody></table></div>\n");
}
void page_table_of(struct text_buffer *out, const char *caption, const struct table *table) {
    struct text_list cells = {NULL, 0};
    const size_t columns = table_texts(&cells, table);
    page_table_open(out, caption, 1);
    for (size_t i = 0; i < columns; i++) page_heads(out, i ? HEAD_NUMBERS : HEAD_TEXTS, cells.items[i]);
    add_rows(out, &cells, columns, columns);
    text_list_free(&cells);
}
void page_cells(struct text_buffer *out, const char *caption, const char *heads, const struct text_list *cells) {
    size_t columns = 1;
    for (const char *at = heads; (at = strchr(at, '|')) != NULL; at++) columns++;
    page_table_open(out, caption, 0);
    page_heads(out, HEAD_FIXED, heads);
    add_rows(out, cells, 0, columns);
}

/* ---- the whole page */
static void add_lines(struct text_buffer *out, const char *const *lines) {
    while (*lines) text_add_string(out, *lines++);
}
/* Removes the tags of markup, because a title must have none. */
static void add_untagged(struct text_buffer *out, const char *markup) {
    while (*markup) {
        const size_t bytes = strcspn(markup, "<");
        text_add(out, markup, bytes);
        markup += bytes;
        markup += strcspn(markup, ">");
        if (*markup) markup++;
    }
}
static void add_links(struct text_buffer *out, const struct page *page, const struct page_link *links) {
    char section[60];
    text_add_string(out, "<nav aria-label=\"Sections\">");
    for (; links->id; links++) {
        snprintf(section, sizeof section, "<section id=\"%s\">", links->id);
        if (strstr(page->body.data, section)) page_add(out, "<a href=\"#%s\">%s</a>", links->id, links->name);
    }
    text_add_string(out, "</nav>");
}
/* Only the script with the nonce runs. page_text keeps texts from being markup; this is the second line of defence. */
static void add_head(struct text_buffer *out, const struct page *page, uint64_t nonce) {
    page_add(out,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
             "<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
             "style-src 'unsafe-inline'; script-src 'nonce-%016" PRIx64 "'\">\n<title>vlmprof: ",
             nonce);
    add_untagged(out, page->heading.data);
    if (page->is_titled_by_both) {
        text_add_string(out, ", ");
        add_untagged(out, page->subtitle.data);
    }
    text_add_string(out, "</title>\n<style>\n");
    add_lines(out, PAGE_CSS);
    if (page->has_chart) add_lines(out, FLAME_CSS);
    text_add_string(out, "</style>\n</head>");
}
void page_write(struct page *page, const struct page_link *links, struct text_buffer *out) {
    uint64_t nonce = 0; /* random; without random numbers a hash of the page, with its measured times */
    struct text_buffer *const parts[] = {&page->heading, &page->subtitle, &page->body};
    if (getentropy(&nonce, sizeof nonce)) nonce = hash_text(hash_text(HASH_START, page->heading.data), page->body.data);
    add_head(out, page, nonce);
    text_add_string(out, "<body>\n<header><h1>");
    text_add(out, page->heading.data, page->heading.bytes);
    text_add_string(out, "</h1><p class=\"soft\">");
    text_add(out, page->subtitle.data, page->subtitle.bytes);
    text_add_string(out, "</p>");
    add_links(out, page, links);
    text_add_string(out, "</header>\n<main>\n");
    text_add(out, page->body.data, page->body.bytes);
    page_add(out, "</main>\n<script nonce=\"%016" PRIx64 "\">", nonce);
    add_lines(out, PAGE_JS);
    if (page->has_chart) add_lines(out, FLAME_JS);
    text_add_string(out, "</script>\n</body></html>\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) free(parts[i]->data);
}
